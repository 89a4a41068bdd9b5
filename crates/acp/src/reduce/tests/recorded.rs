//! Conversations with the real CLI. A difference in a snapshot is a difference for editors: look at it before it is accepted.

use super::support::{Run, fixture, frames};

/// Feeds the frames; permission is given at once, and output files are empty.
fn story(name: &str) -> String {
    let mut run = Run::new();
    for frame in fixture(name) {
        run.frame(&frame);
        run.now += std::time::Duration::from_millis(1);
    }
    run.wait(10_000);
    run.story()
}

macro_rules! recorded {
    ($($name:ident),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                insta::assert_snapshot!(stringify!($name), story(stringify!($name)));
            }
        )+
    };
}

recorded! {
    agent_interrupted, agent_streamed, background_agent, background_bash, compaction, huge_output, interrupted,
    parallel_edits, retried, sent_to_background, thinking, todos,
}

/// Every kind of frame that the real CLI was seen to write goes through, and none is taken for unknown.
#[test]
fn every_kind_of_frame_is_handled() {
    let text = include_str!("../../../../protocol/tests/recordings/excerpts.jsonl");
    let mut run = Run::new();
    let mut count = 0;
    for line in text.lines() {
        // The lines hold what no JSON reader takes whole, so the frame is cut out of its line.
        let Some((_, message)) = line.split_once("\"dir\": \"out\", \"msg\": ") else {
            continue;
        };
        for frame in frames(message.strip_suffix('}').unwrap()) {
            run.frame(&frame);
            count += 1;
        }
    }
    assert!(count > 200, "{count} frames");
    run.wait(10_000);
    let story = run.story();
    assert!(
        !story.contains("extra unknown") && !story.contains("extra misfit"),
        "{story}"
    );
}
