//! A frame that is lost, or of another shape, costs no other frame what it says, and leaves nothing open that has begun.
//!
//! `OUTRIGGER_RECORDINGS` may name a directory with more recordings than there are here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_sim::fault::reshaped;

use super::tests::{is_bound, show};
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

/// What is told with each frame, and at the end.
fn all_told(frames: &[Frame]) -> Vec<Vec<Event>> {
    let mut reducer = Reducer::default();
    let push = |frame| {
        reducer.push(frame);
        std::iter::from_fn(|| reducer.pop()).collect()
    };
    let mut told: Vec<Vec<Event>> = frames.iter().map(push).collect();
    reducer.end();
    told.push(std::iter::from_fn(|| reducer.pop()).collect());
    told
}

/// What is told with each frame, without where messages and blocks begin and end.
fn without_bounds(told: &[Vec<Event>]) -> Vec<Vec<Event>> {
    let said = |events: &Vec<Event>| events.iter().filter(|event| !is_bound(event)).cloned().collect();
    told.iter().map(said).collect()
}

/// Each event with the number of its frame and the conversation that it is of.
fn each(told: &[Vec<Event>]) -> impl Iterator<Item = (usize, &str, &Event)> {
    told.iter().enumerate().flat_map(|(number, events)| {
        events.iter().map(move |event| match event {
            Event::Subagent(sub) => (number, sub.parent_tool_use_id.as_str(), &sub.event),
            event => (number, "", event),
        })
    })
}

/// Says what breaks the laws of messages and blocks: what is begun ends once, one at a time, and everything is said inside.
fn unbalanced(told: &[Vec<Event>]) -> Option<String> {
    type Id = Option<String>;
    type Block = Option<(u64, BlockKind)>;
    let mut open: BTreeMap<String, (Id, Block)> = BTreeMap::new();
    for (number, parent, event) in each(told) {
        let wrong = |what: &str| Some(format!("{what} at frame {number}: {}", show(event)));
        // What is known of a message is not forgotten.
        let is_of = |known: &Id, id: &Id| known.is_none() || known == id;
        let within = |kinds: fn(&BlockKind) -> bool| match open.get(parent) {
            Some((_, Some((_, kind)))) => kinds(kind),
            _ => false,
        };
        let is_call = |kind: &BlockKind| !matches!(kind, BlockKind::Text | BlockKind::Thinking);
        match event {
            Event::MessageStart { id, .. } => {
                let before = open.insert(parent.to_owned(), (id.clone(), None));
                if before.is_some() {
                    return wrong("a message begins in another");
                }
            }
            Event::ContentBlockStart {
                message_id,
                index,
                kind,
            } => match open.get_mut(parent) {
                Some((known, block @ None)) if is_of(known, message_id) => {
                    known.clone_from(message_id);
                    *block = Some((*index, kind.clone()));
                }
                _ => return wrong("a block begins where none can"),
            },
            Event::ContentBlockStop {
                message_id,
                index,
                kind,
            } => match open.get_mut(parent) {
                Some((known, block)) if is_of(known, message_id) => {
                    if block.take() != Some((*index, kind.clone())) {
                        return wrong("another block ends than began");
                    }
                    known.clone_from(message_id);
                }
                _ => return wrong("a block ends outside of its message"),
            },
            Event::MessageStop { id, .. } => match open.remove(parent) {
                Some((known, None)) if is_of(&known, id) => {}
                _ => return wrong("a message ends that can't"),
            },
            Event::Text(_) if !within(|kind| *kind == BlockKind::Text) => return wrong("outside"),
            Event::Thinking(_) if !within(|kind| *kind == BlockKind::Thinking) => return wrong("outside"),
            Event::ToolUse(_) | Event::ToolInput { .. } if !within(is_call) => return wrong("outside"),
            // One that does not fit its type has its name.
            Event::Block(_) if !within(|_| true) => return wrong("outside"),
            _ => {}
        }
    }
    (!open.is_empty()).then(|| format!("left open: {open:?}"))
}

/// The block of text and the block of thinking that each frame is of.
type ByFrame = BTreeMap<usize, (usize, usize)>;

/// In which block each frame told text or thinking, counted from the beginning, for each conversation.
fn blocks(told: &[Vec<Event>]) -> BTreeMap<String, ByFrame> {
    let mut blocks: BTreeMap<String, (usize, ByFrame)> = BTreeMap::new();
    for (number, parent, event) in each(told) {
        let (count, frames) = blocks.entry(parent.to_owned()).or_default();
        match event {
            Event::ContentBlockStart { .. } => *count += 1,
            Event::Text(_) | Event::Thinking(_) => {
                frames.entry(number).or_insert((*count, *count)).1 = *count;
            }
            _ => {}
        }
    }
    blocks
        .into_iter()
        .map(|(parent, (_, frames))| (parent, frames))
        .collect()
}

/// Says where texts of different blocks have come together, or those of one apart.
fn parted_otherwise(told: &[Vec<Event>], whole: &[Vec<Event>], at: usize) -> Option<String> {
    let (now, before) = (blocks(told), blocks(whole));
    for (parent, now) in &now {
        let Some(before) = before.get(parent) else {
            continue;
        };
        let both: Vec<usize> = now
            .keys()
            .copied()
            .filter(|n| *n != at && before.contains_key(n))
            .collect();
        for pair in both.windows(2) {
            let (one, other) = (pair[0], pair[1]);
            let (is_one, was_one) = (now[&one].1 == now[&other].0, before[&one].1 == before[&other].0);
            if is_one != was_one {
                let how = if is_one { "together" } else { "apart" };
                return Some(format!("frames {one} and {other} of `{parent}` are {how}"));
            }
        }
    }
    None
}

/// What a program prints that ends a line with each block of text.
fn printed(told: &[Vec<Event>]) -> String {
    let mut printed = String::new();
    for event in told.iter().flatten() {
        match event {
            Event::Text(text) => printed.push_str(text),
            Event::ContentBlockStop {
                kind: BlockKind::Text,
                ..
            } => printed.push('\n'),
            _ => {}
        }
    }
    printed
}

fn shown(events: &[Event]) -> Vec<String> {
    events.iter().map(show).collect()
}

/// What is said in pieces: the letters of it, in an order of no meaning.
fn letters(events: &[Event]) -> Vec<(bool, char)> {
    let mut letters = Vec::new();
    for event in events {
        match event {
            // Without its mark an error of the API is a text of the CLI's like others: what it says is said.
            Event::Text(text) | Event::ApiError { text, .. } => {
                letters.extend(text.chars().map(|letter| (true, letter)));
            }
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
fn check(frames: &[Frame], all: &[Vec<Event>], at: usize, other: Option<Frame>) -> Result<(), String> {
    let mut changed = frames.to_vec();
    let is_lost = other.is_none();
    match other {
        Some(other) => changed[at] = other,
        None => drop(changed.remove(at)),
    }
    let mut told = all_told(&changed);
    if is_lost {
        told.insert(at, Vec::new());
    }
    if let Some(why) = unbalanced(&told).or_else(|| parted_otherwise(&told, all, at)) {
        return Err(why);
    }
    let (told, whole) = (without_bounds(&told), &without_bounds(all));
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
        let whole = all_told(&frames);
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

#[test]
fn what_has_begun_ends_wherever_the_frames_end_or_are_left_out() {
    let mut cases = 0;
    for (path, frames) in conversations() {
        let whole = all_told(&frames);
        assert_eq!(unbalanced(&whole), None, "{}", path.display());
        for at in 0..=frames.len() {
            cases += 1;
            let cut = unbalanced(&all_told(&frames[..at]));
            assert_eq!(cut, None, "{} ends before frame {at}", path.display());
            let mut reducer = Reducer::default();
            let mut told = Vec::new();
            for (number, frame) in frames.iter().enumerate() {
                if number == at {
                    reducer.lagged(Lag::default());
                }
                reducer.push(frame);
                told.push(std::iter::from_fn(|| reducer.pop()).collect());
            }
            reducer.end();
            told.push(std::iter::from_fn(|| reducer.pop()).collect());
            let lagged = unbalanced(&told);
            assert_eq!(lagged, None, "{} lags before frame {at}", path.display());
        }
    }
    assert!(cases > 200, "too few cases: {cases}");
}

#[test]
fn no_message_begins_twice_and_texts_are_parted_alike_whether_they_stream_or_not() {
    for (path, frames) in conversations() {
        let whole = all_told(&frames);
        let mut ids: Vec<String> = Vec::new();
        for event in whole.iter().flatten() {
            let event = match event {
                Event::Subagent(sub) => &sub.event,
                event => event,
            };
            if let Event::MessageStart { id: Some(id), .. } = event {
                assert!(!ids.contains(id), "{}: {id} begins twice", path.display());
                ids.push(id.clone());
            }
        }
        let finished: Vec<Frame> = frames
            .iter()
            .filter(|frame| frame.kind() != "stream_event")
            .cloned()
            .collect();
        assert_eq!(
            printed(&whole),
            printed(&all_told(&finished)),
            "{}",
            path.display()
        );
    }
}

/// It has two marks, and one is enough: what the CLI says is not told as said by the model.
#[test]
fn an_error_of_the_api_that_does_not_name_its_kind_is_one() {
    let line = r#"{"type":"assistant","message":{"id":"m","type":"message","role":"assistant","model":"<synthetic>",
        "content":[{"type":"text","text":"API Error: 400"}],"stop_reason":"stop_sequence","stop_sequence":"",
        "usage":{"input_tokens":0,"output_tokens":0}},"parent_tool_use_id":null,"session_id":"s","uuid":"u",
        "is_api_error_message":true,"api_error_type":"invalid_request_error"}"#;
    let told = all_told(&Frame::from_line(line.replace('\n', "")));
    assert_eq!(shown(&told[0]), ["error invalid_request_error: API Error: 400"]);
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
