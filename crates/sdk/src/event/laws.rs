//! A frame that is lost, or of another shape, costs no other frame what it says.
//!
//! `OUTRIGGER_RECORDINGS` may name a directory with more recordings than there are here.

use std::path::{Path, PathBuf};

use outrigger_sim::fault::reshaped;

use super::tests::show;
use super::*;

/// The recorded conversations: what the CLI wrote.
fn conversations() -> Vec<(PathBuf, Vec<Frame>)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut places = vec![
        here.join("../protocol/tests/recordings"),
        here.join("../acp/src/fixtures"),
    ];
    places.extend(std::env::var_os("OUTRIGGER_RECORDINGS").map(PathBuf::from));
    let mut conversations = Vec::new();
    for place in places {
        let entries = std::fs::read_dir(place).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(&path).unwrap();
            // Excerpts are of many conversations.
            if !path.ends_with("excerpts.jsonl") {
                conversations.push((path, text.lines().flat_map(written).collect()));
            }
        }
    }
    conversations
}

/// The frames of a line: as they came, or with the direction in which they went.
fn written(line: &str) -> Vec<Frame> {
    #[derive(serde::Deserialize)]
    struct Recorded {
        dir: String,
        msg: RawJson,
    }
    match serde_json::from_str::<Recorded>(line) {
        Ok(recorded) if recorded.dir == "out" => Frame::from_line(recorded.msg.get()),
        Ok(_) => Vec::new(),
        Err(_) => Frame::from_line(line),
    }
}

/// What is told with each frame.
fn told(frames: &[Frame]) -> Vec<Vec<Event>> {
    let mut reducer = Reducer::default();
    let push = |frame| {
        reducer.push(frame);
        std::iter::from_fn(|| reducer.pop()).collect()
    };
    frames.iter().map(push).collect()
}

fn shown(events: &[Event]) -> Vec<String> {
    events.iter().map(show).collect()
}

/// What is said in pieces: the letters of it, in an order of no meaning.
fn letters(events: &[Event]) -> Vec<(bool, char)> {
    let mut letters = Vec::new();
    for event in events {
        match event {
            Event::Text(text) => letters.extend(text.chars().map(|letter| (true, letter))),
            Event::Thinking(text) => letters.extend(text.chars().map(|letter| (false, letter))),
            Event::Subagent(sub) => letters.extend(self::letters(std::slice::from_ref(&sub.event))),
            _ => {}
        }
    }
    letters.sort_unstable();
    letters
}

fn without_pieces(events: &[Event]) -> Vec<String> {
    let said = |event: &&Event| match event {
        Event::Text(_) | Event::Thinking(_) => false,
        Event::Subagent(sub) => !matches!(sub.event, Event::Text(_) | Event::Thinking(_)),
        _ => true,
    };
    events.iter().filter(said).map(show).collect()
}

/// Compares what is told without the frame `at`, or with another in its place, with what is told of the conversation as it was.
fn check(frames: &[Frame], whole: &[Vec<Event>], at: usize, other: Option<Frame>) -> Result<(), String> {
    let mut changed = frames.to_vec();
    let is_lost = other.is_none();
    match other {
        Some(other) => changed[at] = other,
        None => drop(changed.remove(at)),
    }
    let mut told = self::told(&changed);
    if is_lost {
        told.insert(at, Vec::new());
    }
    // Of its own it says what it did, or what is lost of it is told when the finished line comes.
    let mut lost = letters(&whole[at]);
    let said = letters(&told[at]);
    if said == lost {
        lost.clear();
    } else if !said.is_empty() {
        return Err(format!(
            "it says {:?} instead of {:?}",
            shown(&told[at]),
            shown(&whole[at])
        ));
    }
    for (number, (now, before)) in told.iter().zip(whole).enumerate() {
        if number == at || shown(now) == shown(before) {
            continue;
        }
        let mut expected = letters(before);
        expected.extend(&lost);
        expected.sort_unstable();
        let is_mended = number > at && !lost.is_empty() && letters(now) == expected;
        if !is_mended || without_pieces(now) != without_pieces(before) {
            let (now, before) = (shown(now), shown(before));
            return Err(format!("frame {number} says {now:?} instead of {before:?}"));
        }
        lost.clear();
    }
    Ok(())
}

#[test]
fn a_frame_that_is_lost_or_reshaped_costs_no_other_what_it_says() {
    let (mut cases, mut broken) = (0, Vec::new());
    for (path, frames) in conversations() {
        let whole = told(&frames);
        for at in 0..frames.len() {
            // What is told as it comes has no other shape that matters here.
            let depth = match frames[at].kind() {
                "assistant" | "user" | "stream_event" => 4,
                _ => 0,
            };
            let others = reshaped(frames[at].line(), depth);
            let others = others
                .into_iter()
                .map(|line| Some(Frame::from_line(line).remove(0)));
            for other in std::iter::once(None).chain(others) {
                cases += 1;
                let line = other.as_ref().map(|frame| frame.text().into_owned());
                if let Err(why) = check(&frames, &whole, at, other) {
                    let line = line.unwrap_or_else(|| "lost".to_owned());
                    broken.push(format!("{}: frame {at} as {line:.300}: {why}", path.display()));
                }
            }
        }
    }
    assert!(cases > 3000, "too few cases: {cases}");
    let some = broken.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(broken.is_empty(), "{} of {cases} cases:\n{some}", broken.len());
}

/// What the assembler gives back for each frame, and how many blocks it has then.
fn assembled(frames: &[Frame]) -> Vec<Option<(String, usize)>> {
    use crate::assemble::PartialContent;
    let mut assembler = crate::assemble::Assembler::new();
    let push = |frame: &Frame| {
        let block = assembler.push(frame)?;
        let content = match &block.content {
            PartialContent::Text(text) | PartialContent::Thinking(text) => text.clone(),
            PartialContent::ToolUse { input, .. } => input.clone(),
            PartialContent::Other(block) => format!("{block:?}"),
        };
        Some((content, assembler.blocks().count()))
    };
    frames.iter().map(push).collect()
}

#[test]
fn a_frame_that_is_lost_or_reshaped_costs_no_block_of_the_assembler() {
    let mut broken = Vec::new();
    for (path, frames) in conversations() {
        let whole = assembled(&frames);
        for at in 0..frames.len() {
            if !matches!(frames[at].kind(), "assistant" | "stream_event") {
                continue;
            }
            let others = reshaped(frames[at].line(), 4).into_iter();
            let others = others.map(|line| Some(Frame::from_line(line).remove(0)));
            for other in std::iter::once(None).chain(others) {
                let mut changed = frames.clone();
                let line = other.as_ref().map(|frame| frame.text().into_owned());
                // One that says nothing holds its place.
                changed[at] = other.unwrap_or_else(|| Frame::from_line(r#"{"type":"keep_alive"}"#).remove(0));
                for (number, (now, before)) in assembled(&changed).iter().zip(&whole).enumerate() {
                    let is_fine = match (now, before) {
                        _ if number == at => true,
                        (Some((now, blocks)), Some((before, known)))
                            if frames[number].kind() == "assistant" =>
                        {
                            now == before && blocks <= known
                        }
                        (Some((now, _)), Some(_)) => {
                            let piece = frames[number].delta();
                            piece.is_none_or(|piece| now.contains(&*piece.text))
                        }
                        (None, Some(_)) => frames[number].event_type() == Some("content_block_stop"),
                        (_, None) => true,
                    };
                    if !is_fine {
                        let line = line.as_deref().unwrap_or("lost");
                        broken.push(format!(
                            "{}: frame {at} as {line:.300}: {number} is {now:?} instead of {before:?}",
                            path.display()
                        ));
                    }
                }
            }
        }
    }
    let some = broken.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(broken.is_empty(), "{}:\n{some}", broken.len());
}
