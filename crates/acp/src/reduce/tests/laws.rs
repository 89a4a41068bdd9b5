//! What holds whatever comes, in whatever order.

use std::collections::HashMap;

use outrigger::protocol::Frame;
use proptest::prelude::*;

use super::support::{Run, fixture};
use crate::event::{Content, Event, Status};
use crate::reduce::Step;

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

/// Each call is told of once, before anything else is said of it, and ends at most once, after which nothing is said.
fn check_calls(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut ended: HashMap<String, bool> = HashMap::new();
    for step in steps {
        match step {
            Step::Event(Event::Call(call)) => {
                let before = ended.insert(call.id.to_string(), false);
                prop_assert_eq!(before, None, "{} was told of twice", call.id);
            }
            Step::Event(Event::CallChanged(change)) => {
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
            Step::Event(Event::Terminal(change)) => {
                prop_assert_eq!(
                    ended.get(&*change.call),
                    Some(&false),
                    "terminal of {}",
                    change.call
                );
            }
            _ => {}
        }
    }
    Ok(())
}

fn texts(steps: &[Step]) -> String {
    let texts = steps.iter().filter_map(|step| match step {
        Step::Event(Event::Text(chunk)) => match &chunk.content {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    });
    texts.collect()
}

/// What was said according to the whole messages alone.
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
        // Of each block only the first pieces come.
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
            // Some that were there before come again, right behind or much later.
            for at in again.iter().map(|at| at % frames.len()).filter(|at| at % 3 == number % 3 && *at <= number) {
                run.frame(&frames[at]);
            }
        }
        prop_assert_eq!(texts(&run.steps), whole_texts(&frames));
    }

    #[test]
    fn pieces_that_come_after_the_whole_are_not_told_again(name in 0..ALL.len(), late in 0usize..50) {
        // Pieces of a block are put behind the message that has all of it.
        let mut frames = fixture(ALL[name]);
        let pieces: Vec<_> = (0..frames.len()).filter(|at| frames[*at].delta().is_some()).collect();
        if let Some(at) = pieces.get(late % pieces.len().max(1)) {
            let whole = (*at..frames.len()).find(|at| frames[*at].kind() == "assistant");
            if let Some(whole) = whole {
                // With it goes what follows of its block: pieces overtake no pieces.
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
