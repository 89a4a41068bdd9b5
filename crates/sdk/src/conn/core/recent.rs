//! The kinds of the last frames, as evidence for the end.

use std::collections::VecDeque;

use outrigger_protocol::Frame;

use crate::end::FrameNote;

/// How many notes are kept.
const FRAMES: usize = 16;

/// The longest kind or subtype that is kept; those of the CLI are much shorter.
const NAME: usize = 64;

/// The kinds of the last frames, without their contents. Consecutive frames of one kind are one note. Notes are reused, so that
/// this allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Recent {
    notes: VecDeque<FrameNote>,
    /// Whether the last note is of partial messages, which are the most frequent.
    in_partials: bool,
}

impl Recent {
    pub(super) fn on_frame(&mut self, frame: &Frame) {
        let bytes = frame.bytes().len() as u64;
        let is_partial = frame.kind() == "stream_event" && frame.subtype().is_none();
        if is_partial
            && self.in_partials
            && let Some(last) = self.notes.back_mut()
        {
            last.count += 1;
            last.bytes += bytes;
            return;
        }
        self.in_partials = is_partial;
        let kind = short(frame.kind());
        let subtype = short(frame.subtype().unwrap_or_default());
        if let Some(last) = self.notes.back_mut()
            && last.kind == kind
            && last.subtype == subtype
        {
            last.count += 1;
            last.bytes += bytes;
            return;
        }
        let mut note = if self.notes.len() < FRAMES {
            FrameNote::default()
        } else {
            self.notes.pop_front().unwrap_or_default()
        };
        note.kind.clear();
        note.kind.push_str(kind);
        note.subtype.clear();
        note.subtype.push_str(subtype);
        note.count = 1;
        note.bytes = bytes;
        self.notes.push_back(note);
    }

    /// The notes, the oldest first.
    pub(super) fn notes(&self) -> Vec<FrameNote> {
        self.notes.iter().cloned().collect()
    }
}

fn short(name: &str) -> &str {
    name.get(..NAME)
        .unwrap_or(if name.len() < NAME { name } else { "…" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_a_row_are_one_note_and_the_notes_are_bounded() {
        let mut recent = Recent::default();
        let mut see = |line: &str| {
            for frame in Frame::from_line(line.as_bytes()) {
                recent.on_frame(&frame);
            }
        };
        see(r#"{"type":"system","subtype":"init"}"#);
        see(r#"{"type":"stream_event"}"#);
        see(r#"{"type":"stream_event"}"#);
        let shown: Vec<String> = recent.notes().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["system/init (34 B)", "stream_event ×2 (46 B)"]);
        let mut see = |line: String| {
            for frame in Frame::from_line(line.into_bytes()) {
                recent.on_frame(&frame);
            }
        };
        for n in 0..40 {
            see(format!(r#"{{"type":"t{n}"}}"#));
        }
        see(format!(r#"{{"type":"{}"}}"#, "long".repeat(1000)));
        let notes = recent.notes();
        assert_eq!(notes.len(), FRAMES);
        assert_eq!(notes[0].kind, "t25");
        assert_eq!(notes[FRAMES - 1].kind.len(), NAME);
    }
}
