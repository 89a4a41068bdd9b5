//! What the CLI says of its transcript, on its way to the store. The clock is paused, so that waiting costs nothing.

use std::sync::Arc;
use std::time::Duration;

use outrigger::protocol::Frame;
use outrigger::protocol::inbound::Message;
use outrigger::protocol::inbound::system::{MirrorLag, SystemMessage};
use outrigger::sessions::store::SessionKey;
use outrigger::{Frames, Options, Session, StoreFlush, Turn};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Fate, Kept};
use crate::callbacks::{Wire, agent};

const ID: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";

fn main() -> SessionKey {
    SessionKey::new("-p", ID)
}

fn stored(kept: &Arc<Kept>) -> Options {
    agent().session_store(Arc::clone(kept) as _)
}

/// Entries of the main transcript, or of a part's.
fn mirrored(part: Option<&str>, entries: impl IntoIterator<Item = Value>) -> Value {
    let part = part.map(|part| format!("/{part}")).unwrap_or_default();
    let entries: Vec<_> = entries.into_iter().collect();
    json!({"type": "transcript_mirror", "filePath": format!("/far/.claude/projects/-p/{ID}{part}.jsonl"), "entries": entries})
}

fn entry(n: usize) -> Value {
    json!({"type": "user", "uuid": format!("u{n}")})
}

fn result() -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": "done", "session_id": ID})
}

struct Stage {
    session: Session,
    wire: Wire,
    frames: Frames,
}

impl Stage {
    async fn start(options: Options) -> Self {
        let (session, wire, _) = Wire::start(options).await;
        let frames = session.frames();
        Self {
            session,
            wire,
            frames,
        }
    }

    async fn prompt(&mut self) -> Turn {
        let turn = self.session.prompt("go").await.unwrap();
        self.wire.line().await;
        turn
    }

    /// The next that the session says of its store being behind.
    async fn lag(&mut self) -> MirrorLag {
        loop {
            let frame: Frame = self.frames.next().await.expect("the session lives").unwrap();
            if let Ok(Message::System(system)) = frame.decode()
                && let SystemMessage::MirrorLag(lag) = *system
            {
                return lag;
            }
        }
    }

    /// The next frame that is a `mirror_error`, of all that the session says.
    async fn mirror_error(&mut self) -> (Value, String) {
        loop {
            let frame: Frame = self.frames.next().await.expect("the session lives").unwrap();
            assert_ne!(frame.kind(), "transcript_mirror", "it is taken out");
            if let Ok(Message::System(system)) = frame.decode()
                && let SystemMessage::MirrorError(error) = *system
            {
                return (serde_json::to_value(&error.key).unwrap(), error.error);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_cli_writes_is_stored_before_the_outcome_is_told() {
    let kept = Kept::with([Fate::Takes(Duration::from_secs(7))]);
    let mut stage = Stage::start(stored(&kept)).await;
    let mut turn = stage.prompt().await;
    let watch = turn.watch();
    let begun = Instant::now();
    let odd = r#"{"type":"transcript_mirror","filePath":"/far/.claude/projects/-p/ID.jsonl","entries":[{"type":"x", "t":"\ud800\u0000"}]}"#;
    stage.wire.say(&mirrored(None, [entry(1), entry(2)])).await;
    stage
        .wire
        .say(&mirrored(Some("subagents/agent-1"), [entry(3)]))
        .await;
    let odd = Frame::from_line(odd.replace("ID", ID));
    stage.wire.say_raw(odd[0].line()).await;
    stage.wire.say(&result()).await;
    // The CLI is answered meanwhile: nobody but the outcome waits for the store.
    stage
        .wire
        .ask(
            "q",
            &json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"}),
        )
        .await;
    assert_eq!(stage.wire.answer().await.0, "q");
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(watch.now().is_none(), "it is not stored yet");
    assert!(turn.outcome().await.unwrap().is_success());
    assert_eq!(begun.elapsed().as_secs(), 7);
    assert!(watch.now().is_some());

    // One append for each transcript, in the order in which they came first.
    let sub = main().with_subpath("subagents/agent-1");
    assert_eq!(kept.appended(), [(main(), 3), (sub.clone(), 1)]);
    let texts = kept.texts(&main());
    assert_eq!(texts[0], entry(1).to_string());
    assert_eq!(texts[2], r#"{"type":"x", "t":"\ud800\u0000"}"#);
    assert_eq!(kept.texts(&sub), [entry(3).to_string()]);
    let stats = stage.session.stats();
    assert_eq!(
        (
            stats.mirrored_entries,
            stats.mirror_errors,
            stats.mirror_waiting_bytes
        ),
        (4, 0, 0)
    );
    assert!(stats.unknown.is_empty() && stats.misfits == 0, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_the_last_turn_is_stored_before_the_session_is_closed() {
    let kept = Kept::with([Fate::Takes(Duration::from_secs(3))]);
    let mut stage = Stage::start(stored(&kept)).await;
    stage.wire.say(&mirrored(None, [entry(1)])).await;
    let wire = stage.wire;
    let closing = stage.session.close();
    let ends = async move {
        wire.end().await;
    };
    let (closed, ()) = tokio::join!(closing, ends);
    closed.unwrap();
    assert_eq!(kept.appended(), [(main(), 1)]);
    assert_eq!(kept.texts(&main()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_asked_until_it_is_back_and_nothing_overtakes() {
    let kept = Kept::with([Fate::Fails, Fate::Panics]);
    kept.appends.lock().unwrap().extend([Fate::Fails; 10]);
    let mut stage = Stage::start(stored(&kept)).await;
    let begun = Instant::now();
    for n in 1..=3 {
        let mut turn = stage.prompt().await;
        stage.wire.say(&mirrored(None, [entry(n)])).await;
        stage.wire.say(&result()).await;
        assert!(turn.outcome().await.unwrap().is_success());
        // The first waits; then the store is known to be behind.
        assert_eq!(begun.elapsed().as_secs(), 10, "turn {n}");
        let lag = stage.session.stats().store_lag.expect("it is behind");
        assert!(lag.is_behind && lag.bytes > 0, "{lag:?}");
        assert_eq!(lag.error.as_deref(), Some("write: no disk"));
    }
    let behind = stage.lag().await;
    assert!(
        behind.behind && behind.bytes > 0 && behind.since.is_some(),
        "{behind:?}"
    );
    assert_eq!(behind.error.as_deref(), Some("write: no disk"));
    assert_eq!(kept.texts(&main()).len(), 0);

    let caught_up = stage.lag().await;
    assert!(!caught_up.behind, "{caught_up:?}");
    let all: Vec<_> = (1..=3).map(|n| entry(n).to_string()).collect();
    assert_eq!(kept.texts(&main()), all);
    let times: Vec<_> = kept.log.lock().unwrap().iter().map(|(at, ..)| *at).collect();
    // What may have been done is sent again as it was, and what came meanwhile behind it.
    let sizes: Vec<_> = kept.appended().into_iter().map(|(_, size)| size).collect();
    assert_eq!(sizes, [vec![1; 13], vec![2]].concat());
    for (nth, pair) in times[..13].windows(2).enumerate() {
        let whole = Duration::from_millis(200 << nth).min(Duration::from_secs(30));
        let pause = pair[1] - pair[0];
        assert!(
            pause >= whole / 2 && pause <= whole + Duration::from_millis(2),
            "{nth}: {pause:?}"
        );
    }
    let stats = stage.session.stats();
    assert_eq!(
        (stats.store_lag, stats.mirror_errors, stats.mirror_waiting_bytes),
        (None, 0, 0)
    );

    // The next outcome waits again.
    kept.appends
        .lock()
        .unwrap()
        .push_back(Fate::Takes(Duration::from_secs(3)));
    let begun = Instant::now();
    let mut turn = stage.prompt().await;
    stage.wire.say(&mirrored(None, [entry(4)])).await;
    stage.wire.say(&result()).await;
    turn.outcome().await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 3);
    assert_eq!(kept.texts(&main()).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_append_that_hangs_is_asked_for_again_after_a_minute() {
    let kept = Kept::with([Fate::Hangs]);
    let mut stage = Stage::start(stored(&kept).session_store_patience(Duration::from_secs(2))).await;
    let mut turn = stage.prompt().await;
    let begun = Instant::now();
    stage.wire.say(&mirrored(None, [entry(1)])).await;
    stage.wire.say(&result()).await;
    turn.outcome().await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 2);
    assert!(stage.lag().await.behind);
    assert!(!stage.lag().await.behind);
    assert_eq!(begun.elapsed().as_secs(), 60);
    assert_eq!(kept.appended().len(), 2);
    assert_eq!(kept.texts(&main()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_transcript_that_the_store_can_never_take_holds_up_no_other() {
    let kept = Kept::with([Fate::Refuses]);
    let mut stage = Stage::start(stored(&kept)).await;
    for n in 1..=2 {
        let mut turn = stage.prompt().await;
        let part = mirrored(Some("subagents/agent-1"), [entry(10 + n)]);
        stage.wire.say(&part).await;
        stage.wire.say(&mirrored(None, [entry(n)])).await;
        stage.wire.say(&result()).await;
        turn.outcome().await.unwrap();
    }
    let (key, error) = stage.mirror_error().await;
    assert_eq!(
        key,
        json!({"projectKey": "-p", "sessionId": ID, "subpath": "subagents/agent-1"})
    );
    assert_eq!(error, "such a name");
    // What comes later of it is not appended behind what is missing.
    let sub = main().with_subpath("subagents/agent-1");
    assert_eq!(kept.appended(), [(sub.clone(), 1), (main(), 1), (main(), 1)]);
    assert_eq!((kept.texts(&main()).len(), kept.texts(&sub).len()), (2, 0));
    let stats = stage.session.stats();
    assert_eq!((stats.mirror_errors, stats.store_lag), (1, None));
}

#[tokio::test(start_paused = true)]
async fn one_transcript_that_fails_holds_up_no_other() {
    let kept = Kept::new();
    *kept.fails_for.lock().unwrap() = Some("subagents/agent-1".to_owned());
    let mut stage = Stage::start(stored(&kept)).await;
    for n in 1..=3 {
        let mut turn = stage.prompt().await;
        let part = mirrored(Some("subagents/agent-1"), [entry(10 + n)]);
        stage.wire.say(&part).await;
        stage.wire.say(&mirrored(None, [entry(n)])).await;
        stage.wire.say(&result()).await;
        turn.outcome().await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(kept.texts(&main()).len(), 3);
    *kept.fails_for.lock().unwrap() = None;
    tokio::time::sleep(Duration::from_secs(40)).await;
    let sub = main().with_subpath("subagents/agent-1");
    let all: Vec<_> = (11..=13).map(|n| entry(n).to_string()).collect();
    assert_eq!(kept.texts(&sub), all);
    assert_eq!(stage.session.stats().store_lag, None);
}

#[tokio::test(start_paused = true)]
async fn the_end_waits_for_a_store_that_is_away_and_then_tells_what_is_missing() {
    for (fails, is_stored) in [(8, true), (10_000, false)] {
        let kept = Kept::with(std::iter::repeat_n(Fate::Fails, fails));
        let options = stored(&kept).session_store_grace(Duration::from_secs(20));
        let mut stage = Stage::start(options).await;
        stage.wire.say(&mirrored(None, [entry(1)])).await;
        let begun = Instant::now();
        let wire = stage.wire;
        let closing = stage.session.clone().close();
        let (closed, ()) = tokio::join!(closing, wire.end());
        closed.unwrap();
        assert_eq!(kept.texts(&main()).len() == 1, is_stored);
        assert_eq!(
            begun.elapsed().as_secs() >= 20,
            !is_stored,
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(stage.session.stats().mirror_errors, u64::from(!is_stored));
        let mut told = String::new();
        while let Some(Ok(frame)) = stage.frames.next().await {
            if frame.subtype() == Some("mirror_error") {
                told = String::from_utf8_lossy(frame.bytes()).into_owned();
            }
        }
        assert_eq!(told.contains("no disk"), !is_stored, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn much_is_stored_before_the_turn_ends() {
    for (entries, size) in [(501, 1), (3, 400 << 10)] {
        let kept = Kept::new();
        let mut stage = Stage::start(stored(&kept)).await;
        let _turn = stage.prompt().await;
        let large = |n| json!({"type": "x", "uuid": format!("u{n}"), "t": "x".repeat(size)});
        for n in 0..entries - 1 {
            stage.wire.say(&mirrored(None, [large(n)])).await;
        }
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(kept.appended(), [], "{entries} of {size}");
        stage.wire.say(&mirrored(None, [large(entries)])).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(kept.appended(), [(main(), entries)], "{entries} of {size}");
    }
}

#[tokio::test(start_paused = true)]
async fn eager_means_an_append_for_each_frame() {
    let kept = Kept::new();
    let mut stage = Stage::start(stored(&kept).session_store_flush(StoreFlush::Eager)).await;
    let _turn = stage.prompt().await;
    stage.wire.say(&mirrored(None, [entry(1), entry(2)])).await;
    stage.wire.say(&mirrored(None, [])).await;
    stage.wire.say(&mirrored(None, [entry(3)])).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(kept.appended(), [(main(), 2), (main(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_room_in_memory_waits_on_disk() {
    let kept = Kept::with([Fate::Fails; 6]);
    let mut stage = Stage::start(stored(&kept).buffer_bytes(6000)).await;
    let mut turn = stage.prompt().await;
    let large = |n: usize| json!({"type": "x", "uuid": format!("u{n}"), "t": "x".repeat(300 << 10)});
    let of = |n: usize| match n % 3 {
        0 => Some("subagents/agent-1"),
        _ => None,
    };
    for n in 0..20 {
        stage.wire.say(&mirrored(of(n), [large(n)])).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let stats = stage.session.stats();
    assert!(stats.mirror_waiting_bytes > 5 << 20, "{stats:?}");
    stage.wire.say(&result()).await;
    turn.outcome().await.unwrap();
    let sub = main().with_subpath("subagents/agent-1");
    for (key, is_sub) in [(main(), false), (sub, true)] {
        let all = (0..20).filter(|n| of(*n).is_some() == is_sub);
        let all: Vec<_> = all.map(|n| large(n).to_string()).collect();
        assert!(kept.texts(&key) == all, "{key}");
    }
    let stats = stage.session.stats();
    assert_eq!((stats.mirror_errors, stats.mirror_waiting_bytes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_room_at_all_is_told_and_nothing_is_stored_behind_it() {
    let kept = Kept::with([Fate::Takes(Duration::from_secs(5))]);
    let options = stored(&kept)
        .session_store_flush(StoreFlush::Eager)
        .buffer_bytes(6000)
        .slow_reader(outrigger::SlowReader::Spill {
            dir: None,
            limit: 100,
        });
    let mut stage = Stage::start(options).await;
    let mut turn = stage.prompt().await;
    for n in 0..8 {
        let large = json!({"type": "x", "uuid": format!("u{n}"), "t": "x".repeat(2000)});
        stage.wire.say(&mirrored(None, [large])).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stage.wire.say(&result()).await;
    turn.outcome().await.unwrap();
    let (_, error) = stage.mirror_error().await;
    assert!(
        error.contains("found no room") && error.contains("sessions push"),
        "{error}"
    );
    let texts = kept.texts(&main());
    for (nth, text) in texts.iter().enumerate() {
        assert!(text.contains(&format!("\"u{nth}\"")), "{nth}: {text:.60}");
    }
    assert!((1..8).contains(&texts.len()), "{}", texts.len());
    assert!(stage.session.stats().store_lag.is_some());
}

/// The CLI reports a line of the transcript once.
#[tokio::test(start_paused = true)]
async fn nothing_is_stored_behind_a_report_that_was_too_long() {
    let long = "x".repeat(20_000);
    let report = |uuid: &str| {
        let report = mirrored(None, [json!({"type": "x", "uuid": uuid, "t": long})]);
        let Value::Object(mut fields) = report else {
            unreachable!()
        };
        let kind = fields.remove("type").unwrap();
        let fields = Value::Object(fields).to_string();
        // The kind stands first, or behind all that is kept.
        [
            format!("{{\"type\":{kind},{}", &fields[1..]),
            format!("{},\"type\":{kind}}}", &fields[..fields.len() - 1]),
        ]
    };
    for line in report("u2") {
        let kept = Kept::new();
        let mut stage = Stage::start(stored(&kept).max_line_bytes(10_000usize)).await;
        let mut turn = stage.prompt().await;
        stage.wire.say(&mirrored(None, [entry(1)])).await;
        stage.wire.say_raw(line.as_bytes()).await;
        stage.wire.say(&mirrored(None, [entry(3)])).await;
        stage.wire.say(&result()).await;
        assert!(turn.outcome().await.unwrap().is_success());
        assert_eq!(stage.session.stats().mirror_errors, 1);
        let (_, error) = stage.mirror_error().await;
        assert!(
            error.contains("over the cap") && error.contains("sessions push"),
            "{error}"
        );
        assert_eq!(kept.texts(&main()), [entry(1).to_string()]);
        assert!(stage.session.stats().store_lag.is_some());
    }
    // One that is known to be something else is none.
    let kept = Kept::new();
    let mut stage = Stage::start(stored(&kept).max_line_bytes(10_000usize)).await;
    let mut turn = stage.prompt().await;
    let other = format!(r#"{{"type":"system","subtype":"x","t":"{long}"}}"#);
    stage.wire.say_raw(other.as_bytes()).await;
    stage.wire.say(&mirrored(None, [entry(1)])).await;
    stage.wire.say(&result()).await;
    turn.outcome().await.unwrap();
    assert_eq!(kept.texts(&main()), [entry(1).to_string()]);
    assert_eq!(stage.session.stats().mirror_errors, 0);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_no_transcript_is_told() {
    let kept = Kept::new();
    let mut stage = Stage::start(stored(&kept)).await;
    let mut turn = stage.prompt().await;
    let elsewhere =
        json!({"type": "transcript_mirror", "filePath": "/elsewhere/x.jsonl", "entries": [entry(1)]});
    stage.wire.say(&elsewhere).await;
    stage
        .wire
        .say(&json!({"type": "transcript_mirror", "entries": []}))
        .await;
    stage.wire.say(&result()).await;
    turn.outcome().await.unwrap();
    assert!(stage.mirror_error().await.1.contains("/elsewhere/x.jsonl"));
    assert!(stage.mirror_error().await.1.contains("can't be read"));
    assert_eq!(kept.appended(), []);
}

#[tokio::test(start_paused = true)]
async fn without_a_store_the_frames_are_the_readers() {
    let mut stage = Stage::start(agent()).await;
    stage.wire.say(&mirrored(None, [entry(1)])).await;
    let frame = loop {
        let frame = stage.frames.next().await.unwrap().unwrap();
        if frame.kind() != "control_response" {
            break frame;
        }
    };
    assert_eq!(frame.kind(), "transcript_mirror");
}
