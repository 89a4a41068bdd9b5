//! A faulty connection to the CLI: frames that are lost, late, repeated, reordered or foreign, and its end at any moment. Each prompt is
//! answered once, and each call is reported once and ends once.

use std::collections::HashMap;
use std::time::Duration;

use outrigger::testing::sim::fault::{At, Effect, Schedule};
use outrigger::testing::{Faulty, Simulated};
use outrigger_acp::Config;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::editor::{Editor, said};

/// The faults.
fn effect() -> impl Strategy<Value = Effect> {
    prop_oneof![
        4 => Just(Effect::Drop {}),
        2 => (1u64..3000).prop_map(|ms| Effect::Delay { ms }),
        3 => (1u64..3).prop_map(|times| Effect::Duplicate { times }),
        3 => (1u64..6).prop_map(|by| Effect::Reorder { by }),
        1 => Just(Effect::Insert { frame: None }),
        1 => Just(Effect::Noise { text: "no frame".to_owned() }),
        1 => (1u64..40).prop_map(|bytes| Effect::Truncate { bytes }),
        1 => Just(Effect::Glue {}),
        1 => Just(Effect::Exit { code: 0 }),
    ]
}

/// Checks the updates of calls: each call is reported first, and has no update after its end.
fn check_calls(lines: &[Value]) -> Result<(), TestCaseError> {
    let mut ended: HashMap<String, bool> = HashMap::new();
    for update in lines.iter().map(|line| &line["params"]["update"]) {
        let id = update["toolCallId"].as_str().unwrap_or_default().to_owned();
        match update["sessionUpdate"].as_str() {
            Some("tool_call") => {
                prop_assert_eq!(ended.insert(id.clone(), false), None, "{} is told of twice", id);
            }
            Some("tool_call_update") => {
                prop_assert_eq!(ended.get(&id), Some(&false), "{}: {}", id, update);
                let is_last = matches!(update["status"].as_str(), Some("completed" | "failed"));
                ended.insert(id, is_last);
            }
            _ => {}
        }
    }
    Ok(())
}

async fn play(schedule: Schedule, keeps_order: bool, loses_nothing: bool) -> Result<(), TestCaseError> {
    let cli = Simulated::agent(|agent| agent.directives());
    let faulty = Faulty::new(cli.clone(), &schedule).expect("faults of a transport");
    let config = Config::new()
        .options(cli.options().transport(faulty))
        .cancel_floor(Duration::from_secs(5));
    let mut editor = Editor::with(config);
    editor.initialize(json!({})).await;
    let home = tempfile::tempdir().expect("a directory");
    editor.answer = Box::new(|_| Some(json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}})));
    let opening = editor
        .ask("session/new", json!({"cwd": home.path(), "mcpServers": []}))
        .await;
    // The start may take up to the SDK's own time limit.
    tokio::time::sleep(Duration::from_secs(200)).await;
    let (_, opened) = editor.until(opening).await;
    let Some(session) = opened["result"]["sessionId"].as_str().map(str::to_owned) else {
        prop_assert!(opened["error"].is_object(), "{}", opened);
        return Ok(());
    };
    let write = json!({"file_path": home.path().join("a.txt"), "content": "hello"});
    let mut prompts = Vec::new();
    for text in [
        "%think of it\n%+say one",
        &format!("%tool Write {write}\n%say two"),
        "%say three",
    ] {
        prompts.push(editor.prompt(&session, text).await);
    }
    let mut lines = Vec::new();
    // Long enough for late frames. Meanwhile questions are answered.
    let late = tokio::time::Instant::now() + Duration::from_secs(15);
    while let Ok(Some(line)) = tokio::time::timeout_at(late, editor.next()).await {
        lines.push(line);
    }
    // Then the user cancels.
    editor
        .notify("session/cancel", json!({"sessionId": session}))
        .await;
    let enough = late + Duration::from_secs(10);
    while let Ok(Some(line)) = tokio::time::timeout_at(enough, editor.next()).await {
        lines.push(line);
    }
    let answers = |id: i64| {
        lines
            .iter()
            .filter(move |line| line.get("method").is_none() && line["id"] == id)
    };
    for id in &prompts {
        prop_assert_eq!(answers(*id).count(), 1, "answers to {}: {:#?}", id, lines);
    }
    check_calls(&lines)?;
    let has_ended = |id: &i64| answers(*id).any(|line| line["result"]["stopReason"] == "end_turn");
    if keeps_order && loses_nothing && prompts.iter().all(has_ended) {
        prop_assert_eq!(said(&lines), "onetwothree");
    }
    if keeps_order {
        // All updates of a turn come before the answer to its prompt, and none after the last.
        let last = prompts.iter().filter_map(|id| {
            lines
                .iter()
                .position(|line| line.get("method").is_none() && line["id"] == *id)
        });
        let rest = &lines[last.max().unwrap_or_default()..];
        let late = rest.iter().find(|line| {
            let kind = line["params"]["update"]["sessionUpdate"].as_str();
            matches!(
                kind,
                Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "tool_call_update")
            )
        });
        prop_assert!(late.is_none(), "behind the last answer: {:?}", late);
    }
    editor.leave().await;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn each_prompt_is_answered_once(
        seed in any::<u64>(),
        faults in proptest::collection::vec((effect(), 1u64..80), 0..5),
    ) {
        let keeps_order = faults.iter().all(|(effect, _)| {
            matches!(effect, Effect::Drop {} | Effect::Delay { .. } | Effect::Duplicate { .. } | Effect::Noise { .. })
        });
        let loses_nothing = !faults.iter().any(|(effect, _)| *effect == Effect::Drop {});
        let schedule = faults
            .into_iter()
            .fold(Schedule::new(seed), |schedule, (effect, nth)| schedule.with(effect, At::anywhere().nth(nth)));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(play(schedule, keeps_order, loses_nothing))?;
    }
}

/// The texts of a turn may be held back for a moment. Without a result, nothing else sends them in time.
#[tokio::test(start_paused = true)]
async fn texts_of_a_turn_whose_result_is_lost_come_before_the_answer() {
    for nth in 1..=3 {
        let schedule = Schedule::new(0).with(Effect::Drop {}, At::kind("result").nth(nth));
        play(schedule, true, false).await.expect("updates before answers");
    }
}
