//! Traps in what comes in.

use outrigger::testing::sim::fault::{At, Effect, Phase, Schedule};
use outrigger::testing::{Faulty, Simulated};
use outrigger::transport::Exit;
use outrigger::{Outcome, Result};
use serde_json::json;

use outrigger::testing::sim::peer::faulty::frames;

use crate::kit::{Says as _, cli, read};

/// The outcome of a prompt to a simulated CLI, with one thing that goes wrong on the way.
async fn with(effect: Effect, at: At, prompt: &str) -> (Result<Outcome>, String) {
    let cli = Simulated::agent(|agent| agent);
    let faulty = Faulty::new(cli.clone(), Schedule::new(1).with(effect, at)).unwrap();
    let session = match cli.options().transport(faulty.clone()).start().await {
        Ok(session) => session,
        Err(error) => return (Err(error), faulty.story()),
    };
    let outcome = match session.prompt(prompt).await {
        Ok(mut turn) => turn.outcome().await,
        Err(error) => Err(error),
    };
    (outcome, faulty.story())
}

/// Guard: `conn/lane.rs`, a reader that is slow holds up nobody and loses nothing.
#[tokio::test(start_paused = true)]
async fn slow_reader_10k_frames() {
    const FRAMES: usize = 10_000;
    let cli = cli(|script| {
        let said = (0..FRAMES).map(|n| frames::text(&format!("{n}")));
        script.begins().says_all(said).ends("done")
    });
    let session = cli.options().start().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    // Nobody reads, and it comes to its end.
    assert_eq!(turn.watch().outcome().await.unwrap().result_text(), "done");
    let (texts, _) = read(&mut turn).await;
    assert_eq!(texts.len(), FRAMES);
    assert!(texts.iter().enumerate().all(|(n, text)| *text == n.to_string()));
}

/// Guard: `conn/lane.rs`, whoever gave the events up by asking for the outcome does not wait for more.
#[tokio::test(start_paused = true)]
async fn events_behind_the_outcome() {
    let cli = cli(|script| script.turn("done"));
    let session = cli.options().start().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    assert_eq!(turn.outcome().await.unwrap().result_text(), "done");
    let more = tokio::time::timeout(crate::kit::AGES, turn.next()).await;
    assert!(more.expect("it does not hang").is_none());
}

/// Guard: `protocol/wire_enum.rs`, what is unknown is a value; `event.rs`, what does not fit is an event.
#[tokio::test(start_paused = true)]
async fn unknown_type_subtype_block_enum_field_type() {
    let set = |pointer: &str, value| Effect::SetValue {
        pointer: pointer.into(),
        value,
    };
    let faults = [
        (Effect::Insert { frame: None }, At::kind("assistant")),
        (set("/type", None), At::kind("assistant")),
        (set("/subtype", None), At::kind("system/init")),
        (set("/message/content/0/type", None), At::kind("assistant")),
        (set("/message/stop_reason", None), At::kind("assistant")),
        (set("/stop_reason", None), At::kind("result")),
        (set("/num_turns", Some(json!("two"))), At::kind("result")),
        (set("/usage", Some(json!([1]))), At::kind("result")),
        (set("/message/content", Some(json!(7))), At::kind("assistant")),
        (
            Effect::AddFields {
                fields: serde_json::Map::new(),
            },
            At::anywhere(),
        ),
    ];
    for (effect, at) in faults {
        let (outcome, story) = with(effect, at, "%say hello").await;
        assert_eq!(
            outcome
                .unwrap_or_else(|error| panic!("{error}\n{story}"))
                .result_text(),
            "hello",
            "{story}"
        );
        assert!(story.contains("fault 0"), "{story}");
    }
}

/// Guard: `protocol/frame/parse.rs` and `repair.rs`, half a character becomes the replacement character.
#[tokio::test(start_paused = true)]
async fn lone_surrogate() {
    let cli = cli(|script| {
        let half = frames::text("half HALF").to_string().replace("HALF", "\\ud83d");
        script.begins().send_raw(half + "\n").ends("done")
    });
    let session = cli.options().start().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    let (texts, outcome) = read(&mut turn).await;
    assert_eq!(
        (texts.as_slice(), outcome.result_text()),
        (&["half \u{fffd}".to_owned()][..], "done")
    );
}

/// Guard: `protocol/json.rs`, payloads of others are kept as they are.
#[tokio::test(start_paused = true)]
async fn depth_5000() {
    let cli = cli(|script| {
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        let call = frames::tool_use("t", "X", json!({"a": "DEEP"})).to_string();
        script
            .begins()
            .send_raw(call.replace("\"DEEP\"", &deep) + "\n")
            .ends("done")
    });
    let session = cli.options().start().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    let mut depth = 0;
    while let Some(event) = turn.next().await {
        if let outrigger::Event::ToolUse(tool) = event.unwrap() {
            depth = tool.input.get().matches('[').count();
        }
    }
    assert_eq!(
        (depth, turn.outcome().await.unwrap().result_text()),
        (5000, "done")
    );
}

/// Guard: `protocol/framer.rs` cuts bytes at line ends alone.
#[tokio::test(start_paused = true)]
async fn split_utf8_at_every_byte() {
    let text = "naïve 🛶 żółw \u{2028} 漢字";
    let (outcome, story) = with(Effect::Chop { bytes: 1 }, At::anywhere(), &format!("%say {text}")).await;
    assert_eq!(outcome.unwrap().result_text(), text, "{story}");
}

/// Guard: `conn/core.rs`, a line that is no frame is counted and passed over.
#[tokio::test(start_paused = true)]
async fn noise_lines() {
    for text in ["[SandboxDebug] hm", "{\"broken", "", "null", "\u{2028}"] {
        let (outcome, story) = with(Effect::Noise { text: text.into() }, At::anywhere(), "%say hello").await;
        assert_eq!(outcome.unwrap().result_text(), "hello", "{story}");
    }
}

/// Guard: `conn/tasks.rs`, the end of stdout ends whatever waits.
#[tokio::test(start_paused = true)]
async fn eof_mid_line() {
    let mut ended = 0;
    for bytes in (1..16_000).step_by(997) {
        let (outcome, story) = with(Effect::End {}, At::anywhere().after_bytes(bytes), "%say hello").await;
        match outcome {
            Ok(outcome) => assert_eq!(outcome.result_text(), "hello", "{story}"),
            Err(error) => {
                assert!(error.is_closed() || error.end().is_some(), "{error}\n{story}");
                ended += 1;
            }
        }
    }
    assert!(ended > 5, "{ended}");
}

/// Guard: `conn/core/turns.rs`, a turn without a result has no outcome, whatever the exit code says.
#[tokio::test(start_paused = true)]
async fn exit_0_without_result() {
    let (outcome, story) = with(Effect::Exit { code: 0 }, At::phase(Phase::Result), "%say hello").await;
    let error = outcome.unwrap_err();
    assert!(error.is_closed(), "{error}\n{story}");
    assert_eq!(error.exit(), Some(Exit::with_code(0)), "{error}\n{story}");
}

/// Guard: `env.rs`, nothing of this program's environment passes but what is on the list.
#[tokio::test(start_paused = true)]
async fn env_allow_list() {
    let (sender, launched) = std::sync::mpsc::channel();
    let inner = std::sync::Mutex::new(sender);
    let cli = Simulated::start(move |launch, _| {
        let names = launch.env.keys().map(|name| name.to_string_lossy().into_owned());
        inner
            .lock()
            .unwrap()
            .send(names.collect::<Vec<String>>())
            .unwrap();
        outrigger::testing::sim::peer::Steps::new()
            .initialize()
            .spawn_in_memory()
    });
    cli.options().start().await.unwrap();
    let names = launched.recv().unwrap();
    assert!(
        std::env::var_os("CARGO_MANIFEST_DIR").is_some(),
        "this program has it"
    );
    assert!(names.iter().any(|name| name == "PATH"), "{names:?}");
    for leaked in ["CARGO", "CLAUDECODE", "NODE_OPTIONS", "LD_"] {
        assert!(!names.iter().any(|name| name.starts_with(leaked)), "{names:?}");
    }
}
