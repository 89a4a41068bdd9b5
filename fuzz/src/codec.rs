//! Bytes in, typed messages out: nothing panics, nothing is lost, nothing is kept that should not be.

use outrigger_protocol::framer::{Framed, LineFramer};
use outrigger_protocol::inbound::{ApiStreamEvent, BlockDelta};
use outrigger_protocol::{Delta, Frame, FrameReader, Message, MisfitKind, PieceKind, drift};

/// The caps that an input can choose.
const CAPS: [usize; 4] = [16, 200, 4096, 1 << 20];

/// The first byte chooses the cap of a line, the second how the rest is cut into chunks.
pub fn run(data: &[u8]) {
    let [cap, cut, stream @ ..] = data else { return };
    let cap = CAPS[usize::from(*cap) % CAPS.len()];
    let whole = frame(cap, [stream]);
    assert_eq!(whole, frame(cap, chunks(stream, *cut)), "the chunks matter");
    assert_eq!(whole, plainly(cap, stream), "not what a plain reader finds");
    let mut read = Vec::new();
    let mut reader = FrameReader::new(cap);
    for chunk in chunks(stream, *cut) {
        reader.feed(chunk, &mut read);
    }
    reader.finish(&mut read);
    let mut read = read.iter();
    for framed in whole {
        check(framed, &mut read);
    }
    assert_eq!(read.count(), 0, "frames from nowhere");
}

/// What a framer finds, and that it holds no more than it may.
fn frame<'s>(cap: usize, chunks: impl IntoIterator<Item = &'s [u8]>) -> Vec<Framed> {
    let mut framer = LineFramer::new(cap);
    let mut found = Vec::new();
    for chunk in chunks {
        framer.feed(chunk, |framed| found.push(framed));
        assert!(
            framer.held() <= cap,
            "{} bytes held, the cap is {cap}",
            framer.held()
        );
    }
    framer.finish(|framed| found.push(framed));
    assert_eq!(framer.held(), 0);
    found
}

/// Cuts into chunks of sizes that follow from `cut`.
fn chunks(mut stream: &[u8], cut: u8) -> Vec<&[u8]> {
    let mut state = u32::from(cut) | 0x100;
    let mut chunks = Vec::new();
    while !stream.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let most = if cut.is_multiple_of(3) { 3 } else { 700 };
        let size = ((state >> 16) as usize % most).min(stream.len());
        let (chunk, rest) = stream.split_at(size);
        chunks.push(chunk);
        stream = rest;
    }
    chunks
}

/// The rules of framing, in the plainest words.
fn plainly(cap: usize, stream: &[u8]) -> Vec<Framed> {
    let lines = stream.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| {
            if line.len() > cap {
                return Some(Framed::Oversized {
                    head: line[..cap.min(LineFramer::KEPT)].into(),
                    length: line.len() as u64,
                });
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let blank = line.iter().all(u8::is_ascii_whitespace);
            (!blank).then(|| Framed::Line(line.into()))
        })
        .collect()
}

fn check<'f>(framed: Framed, mut read: impl Iterator<Item = &'f Frame>) {
    let line = match &framed {
        Framed::Line(line) | Framed::Oversized { head: line, .. } => line.to_vec(),
        _ => return,
    };
    let oversized = matches!(framed, Framed::Oversized { .. });
    let frames = Frame::read(framed);
    assert!(!frames.is_empty(), "a line without a frame");
    // The frames lie one behind the other, with nothing but space between.
    let mut at = 0;
    for frame in &frames {
        assert_eq!(frame.line(), line, "the line is kept as it came");
        let begin = frame.bytes().as_ptr() as usize - frame.line().as_ptr() as usize;
        assert!(begin >= at, "two frames overlap");
        assert!(
            line[at..begin].iter().all(u8::is_ascii_whitespace),
            "bytes between frames are lost"
        );
        at = begin + frame.bytes().len();
        match frame.flaw() {
            Some(flaw) => assert_eq!(oversized, matches!(flaw.kind, MisfitKind::Oversized(_))),
            None => assert!(!oversized, "an oversized line passes for whole"),
        }
        decode(frame);
        let same = read.next().expect("a frame for each");
        assert_eq!((same.line(), same.bytes()), (frame.line(), frame.bytes()));
        assert_eq!((same.kind(), same.flaw()), (frame.kind(), frame.flaw()));
        assert_eq!((same.uuid(), same.delta()), (frame.uuid(), frame.delta()));
    }
    assert!(
        line[at..].iter().all(u8::is_ascii_whitespace),
        "bytes behind the last frame are lost"
    );
}

fn decode(frame: &Frame) {
    // Whatever routing reads may be asked of any frame.
    let _ = (
        frame.subtype(),
        frame.uuid(),
        frame.session_id(),
        frame.request_id(),
        frame.state(),
    );
    let _ = (
        frame.parent_tool_use_id(),
        frame.command_uuid(),
        frame.origin_kind(),
        frame.is_replay(),
    );
    let _ = frame.user_message_uuids().count();
    let (decoded, drifts) = drift::watch(|| frame.decode());
    for drift in drifts {
        let _ = drift.to_string();
    }
    if let Some(delta) = frame.delta() {
        assert!(
            matches!(&decoded, Ok(message) if is_said(&delta, message)),
            "{delta:?} is not {decoded:?}"
        );
    }
    let Ok(message) = decoded else { return };
    assert!(frame.flaw().is_none(), "a flawed frame was decoded");
    let body = message.to_body().expect("a decoded message can be written");
    let text = frame.text();
    // Not `from_str`: a key may be half of a surrogate pair, and what is kept whole keeps that.
    let kept = body.decode::<Typed>().is_ok_and(|typed| typed.is_typed);
    if kept {
        // What has no type, or did not fit, is kept whole. Only what no JSON reader takes was mended before.
        let mended =
            body.get().contains('\u{fffd}') || body.get().contains("\\ufffd") || text.contains('\u{fffd}');
        assert!(
            mended || body.get() == text.trim(),
            "{} is not {text}",
            body.get()
        );
        return;
    }
    // What was typed can be read again, and says the same: typing it twice changes nothing.
    let tag = serde_json::to_string(frame.kind()).expect("a string can be written");
    let fields = body.get().trim_start_matches('{');
    let comma = if fields.trim() == "}" { "" } else { "," };
    let again = format!("{{\"type\":{tag}{comma}{fields}");
    let [reread] = &Frame::from_line(again.as_bytes())[..] else {
        panic!("a written message is several frames: {again}");
    };
    let reread = reread.decode().unwrap_or_else(|error| panic!("{error}: {again}"));
    let twice = reread.to_body().expect("it can be written again");
    assert_eq!(body.get(), twice.get(), "typing it twice is different");
}

/// Whether a message is what the short way of reading it says.
fn is_said(delta: &Delta<'_>, message: &Message) -> bool {
    let Message::StreamEvent(event) = message else {
        return false;
    };
    let ApiStreamEvent::ContentBlockDelta(event) = &event.event else {
        return false;
    };
    let (kind, text) = match &event.delta {
        BlockDelta::Text(text) => (PieceKind::Text, &text.text),
        BlockDelta::Thinking(thinking) => (PieceKind::Thinking, &thinking.thinking),
        BlockDelta::InputJson(input) => (PieceKind::InputJson, &input.partial_json),
        _ => return false,
    };
    (delta.index, delta.kind, &*delta.text) == (event.index, kind, text)
}

/// Whether an object has a `type`: then it is a frame that was kept as it came.
struct Typed {
    is_typed: bool,
}

impl<'de> serde::Deserialize<'de> for Typed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> serde::de::Visitor<'de> for Keys {
            type Value = Typed;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Typed, A::Error> {
                let mut is_typed = false;
                while let Some((key, _)) = map.next_entry::<String, serde::de::IgnoredAny>()? {
                    is_typed |= key == "type";
                }
                Ok(Typed { is_typed })
            }
        }
        deserializer.deserialize_map(Keys)
    }
}
