//! Conversations with the real CLI. A changed snapshot is a change for editors: review it before you accept it.

use outrigger::protocol::inbound::{Message, SystemMessage};

use super::support::{Run, fixture, frames};
use crate::event::Event;
use crate::reduce::ReducedStep;

/// Feeds the frames. Permission is given at once, and output files are empty.
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

/// No recorded frame of the real CLI counts as unknown.
#[test]
fn every_kind_of_frame_is_handled() {
    let text = include_str!("../../../../protocol/tests/recordings/excerpts.jsonl");
    let mut run = Run::new();
    let mut count = 0;
    for line in text.lines() {
        // Some lines are not readable as JSON, so the frame is cut out of the text.
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

/// The unions may grow, so their matches have a catch-all arm. No known kind may reach it.
#[test]
fn each_known_kind_is_handled_by_name() {
    let variant = |tag: &str| {
        let words = tag.split('_').map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        });
        words.collect::<String>()
    };
    for tag in SystemMessage::KNOWN {
        let name = format!("S::{}(", variant(tag));
        assert!(include_str!("../system.rs").contains(&name), "{name}");
    }
    for tag in Message::KNOWN {
        let name = format!("Message::{}(", variant(tag));
        assert!(include_str!("../../reduce.rs").contains(&name), "{name}");
    }
}

/// Programs get all of a message of an unknown kind.
#[test]
fn what_is_new_is_told_to_programs() {
    let mut run = Run::new();
    run.json(serde_json::json!({"type": "surprise", "uuid": "1", "a": 1}));
    run.json(
        serde_json::json!({"type": "system", "subtype": "surprise", "uuid": "2", "session_id": "s", "b": 2}),
    );
    run.json(serde_json::json!({"type": "system", "subtype": "session_title_changed", "uuid": "3", "session_id": "s"}));
    let steps = std::mem::take(&mut run.steps);
    let told: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            ReducedStep::Event(Event::Extra(extra)) => Some((extra.topic.as_str(), extra.data.get())),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 3, "{steps:?}");
    assert!(
        told[0].0 == "unknown" && told[0].1.contains("\"a\":1"),
        "{told:?}"
    );
    assert!(
        told[1].0 == "unknown" && told[1].1.contains("\"b\":2"),
        "{told:?}"
    );
    assert!(
        told[2].0 == "misfit" && told[2].1.contains("session_title_changed"),
        "{told:?}"
    );
}

#[test]
fn only_what_others_said_is_news() {
    let mut run = Run::new();
    run.reducer.prompted("own");
    let mut echo = |uuid: &str, name: &str, value: serde_json::Value| {
        let mut frame = serde_json::json!({"type": "user", "uuid": uuid, "session_id": "s", "parent_tool_use_id": null,
            "isReplay": true, "message": {"role": "user", "content": format!("words of {uuid}")}});
        frame[name] = value;
        run.json(frame);
        run.story()
    };
    let none = serde_json::Value::Null;
    assert_eq!(echo("own", "x", none.clone()), "");
    assert_eq!(
        echo("other", "x", none.clone()),
        "user other \"words of other\"\n"
    );
    for (uuid, name, value) in [
        ("1", "is_meta", true.into()),
        ("2", "isSynthetic", true.into()),
        ("3", "is_visible_in_transcript_only", true.into()),
        ("4", "parent_tool_use_id", "t".into()),
        ("5", "origin", serde_json::json!({"kind": "task-notification"})),
        ("6", "isReplay", false.into()),
    ] {
        assert_eq!(echo(uuid, name, value), "", "{name}");
    }
}

#[test]
fn a_title_is_told_once_and_that_of_the_user_holds() {
    let mut run = Run::new();
    for (title, told) in [
        ("How it began", "Title(\"How it began\")\n"),
        ("How it began", ""),
        ("By the model", "Title(\"By the model\")\n"),
    ] {
        let steps = run.reducer.titled(title.to_owned());
        run.take(steps);
        assert_eq!(run.story(), told);
    }
    run.json(
        serde_json::json!({"type": "system", "subtype": "session_title_changed", "title": "Mine", "uuid": "1",
        "session_id": "s"}),
    );
    assert_eq!(run.story(), "Title(\"Mine\")\n");
    let steps = run.reducer.titled("By the model".to_owned());
    run.take(steps);
    assert_eq!(run.story(), "");
}
