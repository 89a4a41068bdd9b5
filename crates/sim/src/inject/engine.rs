//! Faults done to the bytes of one direction, without any input or output of its own.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::at::{FrameDirection, Phase};
use super::effect::Effect;
use super::grandchild::Grandchild;
use super::moment::{self, Moments};
use super::random::Random;
use super::schedule::Fault;
use super::strike::{Strike, Strikes};
use crate::running::Exit;

/// What happens next on the stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// These bytes come next, in reads of their own.
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Nothing more until the process ends.
    Stall,
    /// At most this many bytes a second from here on.
    Rate(u64),
    End,
    /// The process ends.
    Over(Exit),
    Survive,
    Grandchild(Grandchild),
    Stderr(u64),
}

/// A fault that may strike.
#[derive(Debug)]
pub(super) struct Armed {
    fault: Fault,
    /// The place of the fault in the schedule.
    index: usize,
    /// How many frames fitted so far, whether or not it struck.
    fitted: u64,
    struck: u64,
}

impl Armed {
    pub(super) fn new(index: usize, fault: Fault) -> Self {
        Self {
            fault,
            index,
            fitted: 0,
            struck: 0,
        }
    }
}

/// A frame that comes by.
struct PassingFrame<'f> {
    direction: FrameDirection,
    seed: u64,
    number: u64,
    kind: &'f str,
    phases: &'f [Phase],
    /// Where in the stream it begins and ends.
    start: u64,
    end: u64,
}

impl Armed {
    /// Whether the fault is to strike this frame, and, if that is inside of the frame, at which byte.
    fn aims_at(&mut self, frame: &PassingFrame<'_>) -> Option<Option<usize>> {
        let at = &self.fault.at;
        let fits_kind = match &at.kind {
            None => true,
            Some(kind) => {
                frame.kind == kind || (!kind.contains('/') && frame.kind.split('/').next() == Some(kind))
            }
        };
        let fits_phase = at.phase.is_none_or(|phase| frame.phases.contains(&phase));
        if at.direction != frame.direction || !fits_kind || !fits_phase {
            return None;
        }
        let mut inside = None;
        if let Some(bytes) = at.after_bytes {
            let exact = at.kind.is_none() && at.phase.is_none() && point(&self.fault.effect).is_some();
            if exact {
                let here = (frame.start < bytes && bytes <= frame.end) || (bytes == 0 && frame.start == 0);
                if !here {
                    return None;
                }
                // A line in the middle of another would spoil that: it comes behind it, however long it becomes.
                let whole = matches!(self.fault.effect, Effect::Insert { .. } | Effect::Noise { .. });
                inside = Some(match whole {
                    true => usize::MAX,
                    false => usize::try_from(bytes - frame.start).unwrap_or(usize::MAX),
                });
            } else if frame.start < bytes {
                return None;
            }
        }
        self.fitted += 1;
        if at.nth.is_some_and(|nth| nth != self.fitted) || at.times.is_some_and(|times| self.struck >= times)
        {
            return None;
        }
        if let Some(probability) = at.probability {
            let salt = self.fault.effect.name();
            let mut random = Random::of_frame(frame.seed, frame.direction, frame.number, &salt);
            if random.fraction() >= probability {
                return None;
            }
        }
        Some(inside)
    }
}

/// The changes to a frame.
#[derive(Default)]
struct FrameChanges {
    bytes: Vec<u8>,
    before: Vec<Action>,
    inside: Vec<(usize, Action)>,
    behind: Vec<Action>,
    cuts: Vec<usize>,
    chop: Option<usize>,
    copies: u64,
    dropped: bool,
    hold: Option<u64>,
    merge: Option<u64>,
}

/// The faults of one direction.
#[derive(Debug, Default)]
pub(super) struct WireEngine {
    direction: FrameDirection,
    seed: u64,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
    /// Where in the stream it begins.
    start: u64,
    frames: u64,
    moments: Moments,
    /// Frames that come later: behind how many more.
    held: Vec<(u64, Vec<u8>)>,
    /// Frames that come together: how many are waited for.
    merging: Option<(u64, Vec<u8>)>,
    actions: VecDeque<Action>,
}

impl WireEngine {
    pub(super) fn new(direction: FrameDirection, seed: u64) -> Self {
        Self {
            direction,
            seed,
            ..Self::default()
        }
    }

    pub(super) fn next(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Bytes that were written.
    pub(super) fn feed(&mut self, mut bytes: &[u8], armed: &mut [Armed], strikes: &mut Strikes) {
        while let Some(end) = memchr(bytes) {
            self.line.extend(&bytes[..=end]);
            bytes = &bytes[end + 1..];
            self.frame(armed, strikes);
        }
        self.line.extend(bytes);
    }

    /// The end of the stream.
    pub(super) fn finish(&mut self, armed: &mut [Armed], strikes: &mut Strikes) {
        if !self.line.is_empty() {
            self.frame(armed, strikes);
        }
        self.release();
    }

    /// Whether frames wait for others.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty() || self.merging.is_some()
    }

    /// Lets all frames go that wait for others.
    pub(super) fn release(&mut self) {
        self.end_merge();
        for (_, bytes) in std::mem::take(&mut self.held) {
            self.actions.push_back(Action::Bytes(bytes));
        }
    }

    fn frame(&mut self, armed: &mut [Armed], strikes: &mut Strikes) {
        let bytes = std::mem::take(&mut self.line);
        self.frames += 1;
        let start = self.start;
        self.start += bytes.len() as u64;
        if armed.is_empty() {
            // The kind does not matter here, but the moments must go on.
            let kind = moment::kind(&bytes);
            self.moments.see(&kind);
            self.put(bytes, &[], None);
            return;
        }
        let kind = moment::kind(&bytes);
        let phases = match self.direction {
            FrameDirection::Output => self.moments.see(&kind),
            FrameDirection::Input => Vec::new(),
        };
        let passing = PassingFrame {
            direction: self.direction,
            seed: self.seed,
            number: self.frames,
            kind: &kind,
            phases: &phases,
            start,
            end: self.start,
        };
        let mut shape = FrameChanges {
            bytes,
            ..FrameChanges::default()
        };
        for armed in armed {
            if let Some(inside) = armed.aims_at(&passing) {
                let effect = armed.fault.effect.name();
                let random = Random::of_frame(self.seed ^ 1, self.direction, self.frames, &effect);
                if !apply(&armed.fault, inside, random, &mut shape) {
                    continue;
                }
                armed.struck += 1;
                strikes.add(Strike {
                    fault: armed.index,
                    effect,
                    direction: self.direction,
                    frame: self.frames,
                    kind: kind.clone(),
                    byte: start.saturating_add(inside.unwrap_or(0) as u64).min(self.start),
                });
            }
        }
        self.form(shape);
    }

    fn form(&mut self, shape: FrameChanges) {
        if !shape.before.is_empty() {
            self.end_merge();
            self.actions.extend(shape.before);
        }
        if let Some(by) = shape.hold.filter(|_| !shape.dropped) {
            for _ in 0..=shape.copies {
                self.held.push((by, shape.bytes.clone()));
            }
        }
        if shape.dropped || shape.hold.is_some() {
            let inside = shape.inside.into_iter().map(|(_, action)| action);
            self.actions.extend(inside.chain(shape.behind));
            return;
        }
        if let Some(frames) = shape.merge
            && self.merging.is_none()
        {
            // This frame counts, too.
            self.merging = Some((frames + 1, Vec::new()));
        }
        let mut rest = shape.bytes.clone();
        let mut taken = 0;
        let mut inside = shape.inside;
        inside.sort_by_key(|(at, _)| *at);
        for (at, action) in inside {
            let at = at.min(shape.bytes.len());
            let tail = rest.split_off(at - taken);
            let head = std::mem::replace(&mut rest, tail);
            taken = at;
            if !head.is_empty() {
                self.actions.push_back(Action::Bytes(head));
            }
            self.actions.push_back(action);
        }
        if !rest.is_empty() {
            self.put(rest, &shape.cuts, shape.chop);
        }
        for _ in 0..shape.copies {
            self.put(shape.bytes.clone(), &shape.cuts, shape.chop);
        }
        if !shape.behind.is_empty() {
            self.end_merge();
            self.actions.extend(shape.behind);
        }
        self.one_more();
    }

    /// A frame has come: those that were held for it are nearer.
    fn one_more(&mut self) {
        let mut due = Vec::new();
        self.held.retain_mut(|(by, bytes)| {
            *by -= 1;
            if *by == 0 {
                due.push(std::mem::take(bytes));
            }
            *by > 0
        });
        for bytes in due {
            self.put(bytes, &[], None);
        }
    }

    fn put(&mut self, bytes: Vec<u8>, cuts: &[usize], chop: Option<usize>) {
        if let Some((frames, merged)) = &mut self.merging {
            merged.extend(bytes);
            *frames -= 1;
            if *frames == 0 {
                self.end_merge();
            }
            return;
        }
        if let Some(size) = chop {
            for piece in bytes.chunks(size.max(1)) {
                self.actions.push_back(Action::Bytes(piece.to_vec()));
            }
            return;
        }
        let mut cuts: Vec<usize> = cuts
            .iter()
            .copied()
            .filter(|cut| *cut > 0 && *cut < bytes.len())
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut from = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            self.actions.push_back(Action::Bytes(bytes[from..cut].to_vec()));
            from = cut;
        }
    }

    fn end_merge(&mut self) {
        if let Some((_, merged)) = self.merging.take()
            && !merged.is_empty()
        {
            self.actions.push_back(Action::Bytes(merged));
        }
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

/// Does an effect to a frame. Gives whether it does anything to this one.
fn apply(fault: &Fault, inside: Option<usize>, mut random: Random, shape: &mut FrameChanges) -> bool {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    if let Some(point) = point(&fault.effect) {
        match inside {
            Some(at) => shape.inside.push((at, point)),
            None if fault.at.behind => shape.behind.push(point),
            None => shape.before.push(point),
        }
        return true;
    }
    let before = shape.bytes.len();
    match &fault.effect {
        Effect::Drop {} => shape.dropped = true,
        Effect::Delay { ms } => shape.before.push(Action::Pause(Duration::from_millis(*ms))),
        Effect::Split { bytes } => shape.cuts.push(size(*bytes)),
        Effect::Chop { bytes } => shape.chop = Some(size(*bytes)),
        Effect::Merge { frames } => shape.merge = Some(*frames),
        Effect::Glue {} => {
            shape.bytes.truncate(body(&shape.bytes));
            return shape.bytes.len() < before;
        }
        Effect::Corrupt { bytes } => corrupt(&mut shape.bytes, *bytes, &mut random),
        Effect::Truncate { bytes } => {
            let end = body(&shape.bytes);
            shape.bytes.drain(size(*bytes).min(end)..end);
            return shape.bytes.len() < before;
        }
        Effect::Duplicate { times } => shape.copies += times,
        Effect::Reorder { by } => shape.hold = Some(*by),
        Effect::AddFields { fields } => return add_fields(&mut shape.bytes, fields),
        Effect::SetValue { pointer, value } => {
            return edit(&mut shape.bytes, |json| {
                let place = json.pointer_mut(pointer);
                place.map(|place| *place = value.clone().unwrap_or_else(|| json!("unheard_of")))
            });
        }
        _ => {}
    }
    true
}

/// What an effect does between two bytes; none if it changes a frame.
fn point(effect: &Effect) -> Option<Action> {
    Some(match effect {
        Effect::Stall { ms: None } => Action::Stall,
        Effect::Stall { ms: Some(ms) } => Action::Pause(Duration::from_millis(*ms)),
        Effect::Slow { bytes_per_second } => Action::Rate(*bytes_per_second),
        Effect::End {} => Action::End,
        Effect::Exit { code } => Action::Over(Exit::Code(*code)),
        Effect::Signal { signal } => Action::Over(Exit::Signal(*signal)),
        Effect::IgnoreTerm {} => Action::Survive,
        Effect::Grandchild(grandchild) => Action::Grandchild(*grandchild),
        Effect::Insert { frame } => Action::Bytes(line(&match frame {
            Some(frame) => frame.to_string(),
            None => {
                json!({"type": "unheard_of", "subtype": "unheard_of", "nested": {"list": [1, {"a": null}]}})
                    .to_string()
            }
        })),
        Effect::Noise { text } => Action::Bytes(line(text)),
        Effect::Stderr { bytes } => Action::Stderr(*bytes),
        _ => return None,
    })
}

fn line(text: &str) -> Vec<u8> {
    let mut line = text.as_bytes().to_vec();
    line.push(b'\n');
    line
}

/// How long a line is without its end.
fn body(line: &[u8]) -> usize {
    line.strip_suffix(b"\n").unwrap_or(line).len()
}

fn corrupt(line: &mut [u8], bytes: u64, random: &mut Random) {
    let end = body(line);
    for _ in 0..bytes.min(end as u64) {
        let at = random.below(end as u64) as usize;
        // Another value, and no line end, which would make two lines of one.
        let mut value = line[at];
        while value == line[at] || value == b'\n' {
            value = random.below(256) as u8;
        }
        line[at] = value;
    }
}

fn add_fields(line: &mut Vec<u8>, fields: &Map<String, Value>) -> bool {
    let unheard = Map::from_iter([("unheard_of".to_owned(), json!({"a": [1, "b"]}))]);
    let fields = if fields.is_empty() { &unheard } else { fields };
    edit(line, |json| {
        let object = json.as_object_mut();
        object.map(|object| object.extend(fields.clone()))
    })
}

/// Changes a frame as JSON, if it is any, and if there is something to change. Its keys are in another order then.
fn edit(line: &mut Vec<u8>, change: impl FnOnce(&mut Value) -> Option<()>) -> bool {
    let end = body(line);
    let text = String::from_utf8_lossy(&line[..end]);
    if let Ok(mut json) = crate::running::parse(&text)
        && json.is_object()
        && change(&mut json).is_some()
    {
        let changed = json.to_string();
        line.splice(..end, changed.into_bytes());
        return true;
    }
    false
}
