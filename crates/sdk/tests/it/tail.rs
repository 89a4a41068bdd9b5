//! The events of a session for many readers.

use std::path::Path;
use std::time::Duration;

use outrigger::protocol::inbound::Message;
use outrigger::sessions::SessionId;
use outrigger::{Event, EventLine, Position, Session, TailItem, TailLimits, TailReader, TailStep};
use tokio::time::timeout;

use crate::cancel::{Cancel, When};
use crate::history::{Near, Simulated, near};
use crate::support::PATIENCE;

const TOOLS: &str = "%tool Bash {\"command\":\"true\",\"description\":\"try\"}\n%say tried";

async fn session(home: &Path, resume: Option<&SessionId>) -> Session {
    let mut options = near(home).transport(Near(Simulated(home.to_owned(), resume.cloned())));
    if let Some(id) = resume {
        options = options.resume(id.as_str());
    }
    options.start().await.unwrap()
}

async fn turn(session: &Session, prompt: &str) {
    session.prompt(prompt).await.unwrap().outcome().await.unwrap();
}

/// A step as its lines of JSON.
fn lines(step: &TailStep) -> Vec<String> {
    let line = |line: &EventLine| serde_json::to_string(line).unwrap();
    match &step.item {
        TailItem::Events(events) => {
            assert!(!events.is_empty());
            events
                .iter()
                .cloned()
                .map(EventLine::Event)
                .map(|event| line(&event))
                .collect()
        }
        TailItem::TurnEnded(outcome) => vec![line(&EventLine::TurnEnded(outcome.clone()))],
        other => vec![format!("{other:?}")],
    }
}

/// What a reader of the conversation sees of a step.
fn seen(step: &TailStep) -> Vec<String> {
    let events = match &step.item {
        TailItem::Events(events) => events,
        TailItem::TurnEnded(_) => return vec!["end".to_owned()],
        TailItem::Missed(missed) => {
            return vec![format!("missed {}", if missed.restarts { "all" } else { "some" })];
        }
        other => panic!("{other:?}"),
    };
    let of = |event: &Event| match event {
        Event::Text(text) => Some(format!("text {text}")),
        Event::ToolUse(tool) => Some(format!("use {}", tool.name)),
        Event::ToolResult(_) => Some("result".to_owned()),
        Event::Message(message, _) if matches!(**message, Message::User(_)) => Some("prompt".to_owned()),
        Event::Undecodable(frame, misfit) => panic!("{misfit} {frame:?}"),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// All steps up to the end of the session.
async fn rest(mut reader: TailReader) -> Vec<TailStep> {
    let mut steps = Vec::new();
    while let Some(step) = timeout(PATIENCE, reader.next()).await.expect("it ends") {
        steps.push(step.unwrap());
    }
    steps
}

fn all_seen(steps: &[TailStep]) -> Vec<String> {
    steps.iter().flat_map(seen).collect()
}

/// A message or block that begins ends, also over the seam.
fn is_balanced(steps: &[TailStep]) -> bool {
    let mut open = 0_i32;
    for step in steps {
        let TailItem::Events(events) = &step.item else {
            continue;
        };
        for event in events {
            open += match event {
                Event::MessageStart { .. } | Event::ContentBlockStart { .. } => 1,
                Event::MessageStop { .. } | Event::ContentBlockStop { .. } => -1,
                _ => 0,
            };
            assert!((0..=2).contains(&open), "{steps:#?}");
        }
    }
    open == 0
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_and_what_happens_are_one_stream() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path(), None).await;
    turn(&session, TOOLS).await;
    let tail = session.tail(TailLimits::default());
    turn(&session, "%say two").await;
    let live = tail.live();
    turn(&session, TOOLS).await;
    session.clone().close().await.unwrap();
    let steps = rest(tail.from_start()).await;
    let first = ["prompt", "use Bash", "result", "text tried"];
    let second = ["prompt", "text two", "end"];
    let third = ["prompt", "use Bash", "result", "text tried", "end"];
    assert_eq!(all_seen(&steps), [&first[..], &second, &third].concat());
    assert!(is_balanced(&steps));
    assert_eq!(all_seen(&rest(live).await), third);

    // From each position on, exactly what follows; also through text.
    for (nth, step) in steps.iter().enumerate() {
        let position: Position = step.position.to_string().parse().unwrap();
        assert_eq!(position, step.position);
        let after: Vec<_> = rest(tail.after(&position)).await.iter().flat_map(lines).collect();
        let expected: Vec<_> = steps[nth + 1..].iter().flat_map(lines).collect();
        assert_eq!(after, expected, "after step {nth}: {}", step.position);
    }
    let start = rest(tail.after(&Position::start())).await;
    assert_eq!(all_seen(&start), all_seen(&steps));
    for wrong in ["", "-", "-.0", "-.x.-", "-.0.-.-", "x.0.-", "-.-1.-"] {
        assert!(wrong.parse::<Position>().is_err(), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_too_slow_is_told_and_gets_the_messages_from_the_history() {
    let messages = [
        "prompt",
        "text a",
        "prompt",
        "use Bash",
        "result",
        "text tried",
        "prompt",
        "text b",
    ];
    for limit in [1, 2, 3, 7, 1000] {
        let home = tempfile::tempdir().unwrap();
        let session = session(home.path(), None).await;
        turn(&session, "%say before").await;
        let tail = session.tail(TailLimits::new(limit, 16 << 20));
        let (slow, quick) = (tail.live(), tail.live());
        let quick = tokio::spawn(rest(quick));
        for text in ["%say a", TOOLS, "%say b"] {
            turn(&session, text).await;
        }
        session.clone().close().await.unwrap();
        let slow = rest(slow).await;
        let was_missed = all_seen(&slow).contains(&"missed some".to_owned());
        assert_eq!(was_missed, limit < 1000, "{limit}: {slow:#?}");
        // All that the history has is told once and in order, and nothing that was before.
        for steps in [slow, quick.await.unwrap()] {
            let mut told = all_seen(&steps);
            told.retain(|seen| seen != "end" && !seen.starts_with("missed"));
            assert_eq!(told, messages, "{limit}: {steps:#?}");
            assert!(is_balanced(&steps), "{limit}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_may_go_on_while_a_reader_reads_the_history() {
    let tools = ["prompt", "use Bash", "result", "text tried"];
    for limit in 1..6 {
        let home = tempfile::tempdir().unwrap();
        let session = session(home.path(), None).await;
        let tail = session.tail(TailLimits::new(limit, 16 << 20));
        let mut reader = tail.live();
        turn(&session, TOOLS).await;
        // Now it knows what the memory has, and opens the history with the next step.
        let missed = reader.next().await.unwrap().unwrap();
        assert!(matches!(missed.item, TailItem::Missed(_)), "{limit}: {missed:#?}");
        turn(&session, TOOLS).await;
        turn(&session, "%say b").await;
        session.clone().close().await.unwrap();
        let steps = rest(reader).await;
        let mut read = all_seen(&steps);
        read.retain(|seen| seen != "end" && !seen.starts_with("missed"));
        let expected = [&tools[..], &tools, &["prompt", "text b"]].concat();
        assert_eq!(read, expected, "{limit}: {steps:#?}");
        assert!(is_balanced(&steps), "{limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_reads_a_little_after_each_turn_gets_all_messages() {
    let tools = ["prompt", "use Bash", "result", "text tried"];
    let expected = [&tools[..], &tools, &["prompt", "text b"], &tools].concat();
    for (limit, reads) in (1..6).flat_map(|limit| (1..6).map(move |reads| (limit, reads))) {
        let home = tempfile::tempdir().unwrap();
        let session = session(home.path(), None).await;
        let mut reader = session.tail(TailLimits::new(limit, 16 << 20)).live();
        let mut steps = Vec::new();
        for text in [TOOLS, TOOLS, "%say b", TOOLS] {
            turn(&session, text).await;
            for _ in 0..reads {
                // The last entry is the end of a turn, which is a step.
                if reader.behind() > 0 {
                    let step = timeout(PATIENCE, reader.next()).await.expect("there is more");
                    steps.push(step.unwrap().unwrap());
                }
            }
        }
        session.clone().close().await.unwrap();
        steps.extend(rest(reader).await);
        let mut read = all_seen(&steps);
        read.retain(|seen| seen != "end" && !seen.starts_with("missed"));
        assert_eq!(read, expected, "{limit}, {reads}: {steps:#?}");
        assert!(is_balanced(&steps), "{limit}, {reads}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_of_another_process_goes_on_in_the_history() {
    let home = tempfile::tempdir().unwrap();
    let first = session(home.path(), None).await;
    let tail = first.tail(TailLimits::default());
    turn(&first, TOOLS).await;
    turn(&first, "%say two").await;
    let id = first.id().unwrap();
    first.close().await.unwrap();
    let steps = rest(tail.from_start()).await;
    drop(tail);

    let second = session(home.path(), Some(&id)).await;
    let tail = second.tail(TailLimits::default());
    turn(&second, "%say three").await;
    second.clone().close().await.unwrap();
    let whole = [
        "prompt",
        "use Bash",
        "result",
        "text tried",
        "prompt",
        "text two",
        "prompt",
        "text three",
        "end",
    ];
    for (nth, step) in steps.iter().enumerate() {
        let mut had = all_seen(&steps[..=nth]);
        had.retain(|seen| seen != "end");
        let mut after = all_seen(&rest(tail.after(&step.position)).await);
        assert_eq!(after.remove(0), "missed some", "{nth}");
        // What was told of a message that was not whole comes again.
        let got = [had.clone(), after].concat();
        assert_eq!(got, whole, "{nth} {}", step.position);
    }
    // One that is no part of the conversation.
    let other = Position::start()
        .to_string()
        .replace("-.0.-", "-.0.00000000-0000-4000-8000-00000000dead");
    let seen = all_seen(&rest(tail.after(&other.parse().unwrap())).await);
    assert_eq!(seen[0], "missed all");
    assert_eq!(seen[1..], whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nothing_has_any_more_is_said_to_be_missing() {
    let (session, _running) = crate::support::session(outrigger_sim::peer::Agent::builder()).await;
    let tail = session.tail(TailLimits::new(2, 16 << 20));
    for _ in 0..3 {
        turn(&session, "%say x").await;
    }
    session.clone().close().await.unwrap();
    for reader in [tail.from_start(), tail.after(&Position::start())] {
        let steps = timeout(PATIENCE, collect(reader)).await.expect("it ends");
        match steps {
            Ok(steps) => assert_eq!(all_seen(&steps)[0], "missed some", "{steps:#?}"),
            // A CLI elsewhere has no history here: that is an error, and not silence.
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

async fn collect(mut reader: TailReader) -> outrigger::Result<Vec<TailStep>> {
    let mut steps = Vec::new();
    while let Some(step) = reader.next().await {
        steps.push(step?);
    }
    Ok(steps)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_given_up_at_any_point_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path(), None).await;
    turn(&session, TOOLS).await;
    let tail = session.tail(TailLimits::default());
    turn(&session, "%say two").await;
    session.clone().close().await.unwrap();
    let expected: Vec<_> = rest(tail.from_start()).await.iter().flat_map(lines).collect();
    for when in [When::AtOnce, When::Woken, When::Later] {
        for polls in 0..4 {
            let cancel = Cancel { polls, when };
            let mut reader = tail.from_start();
            let mut told = Vec::new();
            loop {
                let step = match cancel.of(reader.next()).await {
                    Some(step) => step,
                    None => reader.next().await,
                };
                let Some(step) = step else { break };
                told.extend(lines(&step.unwrap()));
            }
            assert_eq!(told, expected, "{polls} {when:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_that_is_dropped_lets_the_session_go() {
    let home = tempfile::tempdir().unwrap();
    let session = session(home.path(), None).await;
    let tail = session.tail(TailLimits::default());
    let mut reader = tail.live();
    drop(tail);
    turn(&session, "%say x").await;
    assert!(reader.next().await.is_some());
    let ended = session.clone();
    let mut frames = session.frames();
    drop((reader, session, ended));
    // The session ends with its last handle.
    let over = async { while frames.next().await.is_some() {} };
    timeout(Duration::from_secs(30), over).await.expect("it ends");
}
