//! Counts what has no type: frames of unknown kinds, fields and values.

use std::collections::BTreeMap;

use outrigger_protocol::Frame;
use outrigger_protocol::drift::{Drift, DriftKind};
use outrigger_protocol::inbound::Message;
use outrigger_protocol::inbound::system::SystemMessage;

use super::Core;

/// How many kinds of drift are counted separately; the rest is counted together.
const MAX_DRIFT_KINDS: usize = 256;

impl Core {
    pub(super) fn note_drift(&mut self, frame: &Frame) {
        let unknown = if frame.flaw().is_some() {
            self.stats.misfits += 1;
            return;
        } else if !Message::KNOWN.contains(&frame.kind()) {
            frame.kind().to_owned()
        } else if frame.kind() == "system"
            && !frame
                .subtype()
                .is_some_and(|tag| SystemMessage::KNOWN.contains(&tag))
        {
            format!("system/{}", frame.subtype().unwrap_or_default())
        } else {
            return;
        };
        note(&mut self.stats.unknown, unknown);
    }

    /// Counts misfits and drift of decoded frames.
    pub(super) fn note_decoded(&mut self, misfits: u64, drift: &[Drift]) {
        self.stats.misfits += misfits;
        // Frames of unknown kinds were counted on arrival, also if no reader decodes them.
        let counted = |drift: &Drift| {
            drift.kind == DriftKind::UnknownTag && matches!(drift.place, "Message" | "SystemMessage")
        };
        for drift in drift.iter().filter(|drift| !counted(drift)) {
            note(&mut self.stats.unknown, drift.to_string());
        }
    }
}

fn note(unknown: &mut BTreeMap<String, u64>, what: String) {
    if unknown.len() >= MAX_DRIFT_KINDS && !unknown.contains_key(&what) {
        *unknown.entry("others".to_owned()).or_default() += 1;
    } else {
        *unknown.entry(what).or_default() += 1;
    }
}
