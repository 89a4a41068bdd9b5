//! Laws for frames in any order.

use std::collections::HashMap;

use outrigger::protocol::Frame;
use proptest::prelude::*;

use super::support::{Run, fixture};
use crate::event::{Content, Event, Status};
use crate::reduce::ReducedStep;

const ALL: [&str; 12] = [
    "agent_interrupted",
    "agent_streamed",
    "background_agent",
    "background_bash",
    "compaction",
    "huge_output",
    "interrupted",
    "parallel_edits",
    "retried",
    "sent_to_background",
    "thinking",
    "todos",
];

/// Each call is reported once, before its updates, and ends at most once, without updates behind its end.
fn check_calls(steps: &[ReducedStep]) -> Result<(), TestCaseError> {
    let mut ended: HashMap<String, bool> = HashMap::new();
    for step in steps {
        match step {
            ReducedStep::Event(Event::Call(call)) => {
                let before = ended.insert(call.id.to_string(), false);
                prop_assert_eq!(before, None, "{} was told of twice", call.id);
            }
            ReducedStep::Event(Event::CallChanged(change)) => {
                let is_last = matches!(
                    change.status,
                    Some(Status::Completed | Status::Failed | Status::Cancelled)
                );
                let has_ended = ended.get_mut(&*change.id);
                prop_assert!(has_ended.is_some(), "{} is not known", change.id);
                if let Some(has_ended) = has_ended {
                    prop_assert!(!*has_ended, "{} had ended", change.id);
                    *has_ended = is_last;
                }
            }
            ReducedStep::Event(Event::Terminal(change)) => {
                prop_assert_eq!(
                    ended.get(&*change.call),
                    Some(&false),
                    "terminal of {}",
                    change.call
                );
            }
            ReducedStep::Event(Event::Compaction(change)) => {
                let is_last = change.status != Status::InProgress;
                let before = ended.insert(change.id.to_string(), is_last);
                prop_assert_eq!(before, is_last.then_some(false), "compaction {}", change.id);
            }
            _ => {}
        }
    }
    Ok(())
}

fn texts(steps: &[ReducedStep]) -> String {
    let texts = steps.iter().filter_map(|step| match step {
        ReducedStep::Event(Event::Text(chunk)) => match &chunk.content {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    });
    texts.collect()
}

/// The text of the whole messages.
fn whole_texts(frames: &[Frame]) -> String {
    let mut text = String::new();
    for frame in frames.iter().filter(|frame| frame.kind() == "assistant") {
        let frame: serde_json::Value = serde_json::from_slice(frame.bytes()).unwrap();
        for block in frame["message"]["content"].as_array().unwrap() {
            text += block["text"].as_str().unwrap_or_default();
        }
    }
    text
}

/// What to do with a frame, by a number.
fn disturb(frames: &[Frame], plan: &[(usize, usize)]) -> Vec<Frame> {
    let mut frames = frames.to_vec();
    for (what, at) in plan {
        if frames.is_empty() {
            break;
        }
        let at = at % frames.len();
        match what % 4 {
            0 => drop(frames.remove(at)),
            1 => frames.insert(at, frames[at].clone()),
            2 => {
                let frame = frames.remove(at);
                frames.insert((at * 7 + what) % (frames.len() + 1), frame);
            }
            _ => {
                let other = (at * 3 + what) % frames.len();
                frames.swap(at, other);
            }
        }
    }
    frames
}

#[test]
fn the_text_that_is_told_is_the_text_that_was_said() {
    for name in ALL {
        let frames = fixture(name);
        let mut run = Run::new();
        for frame in &frames {
            run.frame(frame);
        }
        assert_eq!(texts(&run.steps), whole_texts(&frames), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn lost_late_and_doubled_frames_upset_nothing(
        name in 0..ALL.len(),
        plan in proptest::collection::vec((0usize..100, 0usize..1000), 0..40),
        waits in proptest::collection::vec(0u64..400, 1..20),
    ) {
        let mut run = Run::new();
        let frames = disturb(&fixture(ALL[name]), &plan);
        for (frame, wait) in frames.iter().zip(waits.iter().cycle()) {
            run.wait(*wait);
            run.frame(frame);
        }
        run.wait(60_000);
        let steps = run.reducer.died();
        run.take(steps);
        prop_assert_eq!(run.reducer.due(), None);
        check_calls(&run.steps)?;
    }

    #[test]
    fn pieces_that_are_lost_at_the_end_come_with_the_whole(name in 0..ALL.len(), keep in 0usize..20) {
        // Only the first deltas of each block come.
        let frames = fixture(ALL[name]);
        let mut count = 0;
        let frames: Vec<_> = frames.into_iter().filter(|frame| {
            count = if frame.delta().is_some() { count + 1 } else { 0 };
            count <= keep
        }).collect();
        let mut run = Run::new();
        for frame in &frames {
            run.frame(frame);
        }
        prop_assert_eq!(texts(&run.steps), whole_texts(&frames));
    }

    #[test]
    fn frames_that_come_twice_count_once(name in 0..ALL.len(), again in proptest::collection::vec(0usize..1000, 0..20)) {
        let frames = fixture(ALL[name]);
        let mut run = Run::new();
        for (number, frame) in frames.iter().enumerate() {
            run.frame(frame);
            // Some earlier frames come again, at once or much later.
            for at in again.iter().map(|at| at % frames.len()).filter(|at| at % 3 == number % 3 && *at <= number) {
                run.frame(&frames[at]);
            }
        }
        prop_assert_eq!(texts(&run.steps), whole_texts(&frames));
    }

    #[test]
    fn pieces_that_come_after_the_whole_are_not_told_again(name in 0..ALL.len(), late in 0usize..50) {
        // Deltas of a block move behind its whole message.
        let mut frames = fixture(ALL[name]);
        let pieces: Vec<_> = (0..frames.len()).filter(|at| frames[*at].delta().is_some()).collect();
        if let Some(at) = pieces.get(late % pieces.len().max(1)) {
            let whole = (*at..frames.len()).find(|at| frames[*at].kind() == "assistant");
            if let Some(whole) = whole {
                // The later deltas of the block move along: deltas keep their order.
                let moved: Vec<_> = frames.drain(*at..whole).collect();
                let whole = *at;
                for (number, frame) in moved.into_iter().enumerate() {
                    frames.insert(whole + 1 + number, frame);
                }
            }
        }
        let mut run = Run::new();
        for frame in &frames {
            run.frame(frame);
        }
        prop_assert_eq!(texts(&run.steps), whole_texts(&frames));
    }

    #[test]
    fn any_line_at_all_is_survived(lines in proptest::collection::vec("[ -~é]{0,60}", 0..20)) {
        let mut run = Run::new();
        for line in lines {
            for frame in Frame::from_line(line) {
                run.frame(&frame);
            }
        }
        check_calls(&run.steps)?;
    }
}

/// The events of each frame.
fn told(frames: &[Frame]) -> (Vec<Vec<ReducedStep>>, Vec<ReducedStep>) {
    let mut run = Run::new();
    let steps = frames.iter().map(|frame| {
        run.frame(frame);
        std::mem::take(&mut run.steps)
    });
    let steps = steps.collect();
    let rest = run.reducer.died();
    run.take(rest);
    (steps, run.steps)
}

/// The sorted letters of the emitted text and thoughts.
fn letters(steps: &[ReducedStep]) -> Vec<(bool, char)> {
    let mut letters = Vec::new();
    for step in steps {
        let (is_text, chunk) = match step {
            ReducedStep::Event(Event::Text(chunk)) => (true, chunk),
            ReducedStep::Event(Event::Thought(chunk)) => (false, chunk),
            _ => continue,
        };
        if let Content::Text(text) = &chunk.content {
            letters.extend(text.chars().map(|letter| (is_text, letter)));
        }
    }
    letters.sort_unstable();
    letters
}

/// The calls whose results a frame has.
fn results(frame: &Frame) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_slice(frame.bytes()).unwrap_or_default();
    let blocks = json["message"]["content"].as_array().into_iter().flatten();
    let results = blocks.filter(|block| frame.kind() == "user" && block["type"] == "tool_result");
    results
        .filter_map(|block| Some(block["tool_use_id"].as_str()?.to_owned()))
        .collect()
}

fn ended(steps: &[ReducedStep]) -> Vec<&str> {
    let ended = steps.iter().filter_map(|step| match step {
        ReducedStep::Event(Event::CallChanged(change)) => {
            let ended = change
                .status
                .filter(|status| matches!(status, Status::Completed | Status::Failed));
            ended.map(|_| &*change.id)
        }
        _ => None,
    });
    ended.collect()
}

/// What frames of this conversation say otherwise when another one is lost or reshaped.
fn broken_by_changes(name: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let frames = fixture(name);
    let (whole, _) = told(&frames);
    for at in 0..frames.len() {
        let depth = match frames[at].kind() {
            "assistant" | "user" | "stream_event" => 4,
            _ => 2,
        };
        let others = outrigger_sim::fault::reshaped(frames[at].line(), depth);
        // A block without text keeps its position.
        let lost = br#"{"type":"keep_alive"}"#.to_vec();
        for line in std::iter::once(lost).chain(others) {
            let mut changed = frames.clone();
            changed[at] = Frame::from_line(&line).remove(0);
            let (now, rest) = told(&changed);
            let mut complain = |why: String| {
                let line = String::from_utf8_lossy(&line).into_owned();
                broken.push(format!("{name}: frame {at} as {line:.300}: {why}"));
            };
            let mut lost = letters(&whole[at]);
            let said = letters(&now[at]);
            if said == lost {
                lost.clear();
            } else if !said.is_empty() {
                complain(format!("it says {said:?} instead of {lost:?}"));
            }
            for number in (0..frames.len()).filter(|number| *number != at) {
                let (now, before) = (letters(&now[number]), letters(&whole[number]));
                if now != before {
                    let mut expected = before.clone();
                    expected.append(&mut lost);
                    expected.sort_unstable();
                    if number < at || now != expected {
                        complain(format!("frame {number} says {now:?} instead of {before:?}"));
                    }
                }
            }
            for number in (0..frames.len()).filter(|number| *number != at) {
                for call in results(&frames[number]) {
                    if ended(&whole[number]).contains(&call.as_str())
                        && !ended(&now[number]).contains(&call.as_str())
                    {
                        complain(format!("frame {number} does not end {call}"));
                    }
                }
            }
            let all: Vec<_> = now.into_iter().flatten().chain(rest).collect();
            if let Err(why) = check_calls(&all) {
                complain(why.to_string());
            }
        }
    }
    broken
}

#[test]
fn a_frame_that_is_lost_or_reshaped_costs_no_other_what_it_says() {
    // A thread for each conversation: one alone takes as long as all other tests of this crate's units.
    let broken: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = ALL
            .iter()
            .map(|name| scope.spawn(|| broken_by_changes(name)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let some = broken.iter().take(12).cloned().collect::<Vec<_>>().join("\n");
    assert!(broken.is_empty(), "{}:\n{some}", broken.len());
}
