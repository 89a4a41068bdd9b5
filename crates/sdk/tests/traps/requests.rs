//! Traps about what the CLI asks.

use std::time::Duration;

use outrigger::hooks::{self, HookOutput, event};
use outrigger::permissions::PermissionResult;
use outrigger::testing::Simulated;
use outrigger::testing::assert::{Answer, Trace, question};
use outrigger::testing::sim::peer::faulty::frames;
use serde_json::{Value, json};

use crate::kit::{AGES, Says as _, agreed, cli, outcome};

fn trace(cli: &Simulated) -> Trace {
    agreed(cli);
    Trace::from(cli.report().unwrap())
}

fn call(id: &str, hook: &str) -> Value {
    json!({"type": "control_request", "request_id": id, "request": {
        "subtype": "hook_callback", "callback_id": hook, "tool_use_id": "toolu_1",
        "input": {
            "session_id": "s", "transcript_path": "/t", "cwd": "/c", "prompt_id": "p", "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1",
        }
    }})
}

/// Guards: `conn/cli_requests.rs` keeps a panic in its request, `hooks/` has a deadline of its own; both refuse.
#[tokio::test(start_paused = true)]
async fn hook_timeout_or_panic_is_deny() {
    let cli = cli(|script| {
        script
            .patience(AGES)
            .begins()
            .says(call("panics", "hook_0"))
            .takes_answer("panics")
            .says(call("hangs", "hook_1"))
            .takes_answer("hangs")
            .ends("done")
    });
    let session = cli
        .options()
        .hook(hooks::pre_tool_use(|_, _| async {
            panic!("a bug") as HookOutput<event::PreToolUse>
        }))
        .hook(
            hooks::pre_tool_use(|_, _| std::future::pending::<HookOutput<event::PreToolUse>>())
                .timeout(Duration::from_secs(5)),
        )
        .start()
        .await
        .unwrap();
    assert_eq!(outcome(&session, "go").await.result_text(), "done");
    for asked in trace(&cli).asks() {
        let Answer::Success(answer) = asked.answer else {
            panic!("{asked:?}");
        };
        assert_eq!(
            answer["hookSpecificOutput"]["permissionDecision"], "deny",
            "{answer}"
        );
    }
}

/// Guard: `conn/core/open_requests.rs`, what was withdrawn is not answered, and whoever decides is told to stop.
#[tokio::test(start_paused = true)]
async fn cancel_pending_permission() {
    let cli = cli(|script| {
        script
            .begins()
            .says(frames::ask("q", "Bash"))
            .sleep(Duration::from_secs(1))
            .says(frames::withdraw("q"))
            .sleep(Duration::from_secs(100))
            .ends("changed my mind")
    });
    let session = cli
        .options()
        .can_use_tool(|_| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            PermissionResult::allow()
        })
        .start()
        .await
        .unwrap();
    assert_eq!(outcome(&session, "go").await.result_text(), "changed my mind");
    let trace = trace(&cli);
    trace.asked([question("Bash").withdrawn()]).unwrap();
    assert!(
        !trace
            .lines()
            .iter()
            .any(|line| line.from_client && line.json["response"]["request_id"] == "q")
    );
}

/// Guard: the types of `permissions/`: an allowance has the input in it or leaves it as it is, which the CLI
/// takes for the same; `null`, which it does not take, cannot be said.
#[tokio::test(start_paused = true)]
async fn allow_without_input_impossible() {
    let cli = cli(|script| {
        script
            .begins()
            .says(frames::ask("q", "Bash"))
            .takes_answer("q")
            .ends("done")
    });
    let session = cli
        .options()
        .can_use_tool(|_| async { PermissionResult::allow() })
        .start()
        .await
        .unwrap();
    outcome(&session, "go").await;
    let asks = trace(&cli).asks();
    let Answer::Success(answer) = &asks[0].answer else {
        panic!("{asks:?}");
    };
    assert_eq!(answer["behavior"], "allow");
    let input = answer.as_object().unwrap().get("updatedInput");
    assert!(
        input.is_none_or(|input| *input == asks[0].request["input"]),
        "{answer}"
    );
}

/// Guard: `permissions/`, what the model asks a person is not answered by a handler that allows every call.
#[tokio::test(start_paused = true)]
async fn question_without_handler() {
    let cli = cli(|script| {
        let mut asked = frames::ask("q", "AskUserQuestion");
        asked["request"]["input"] = json!({"questions": [{"question": "Deploy?", "header": "Deploy", "multiSelect": false,
            "options": [{"label": "Yes", "description": "go"}, {"label": "No", "description": "stay"}]}]});
        script.begins().says(asked).takes_answer("q").ends("done")
    });
    let session = cli
        .options()
        .can_use_tool(|_| async { PermissionResult::allow() })
        .start()
        .await
        .unwrap();
    outcome(&session, "go").await;
    trace(&cli).asked([question("AskUserQuestion").denied()]).unwrap();
}

/// Guards: `conn/core/open_requests.rs` claims the right to answer, once; `conn/cli_requests.rs` answers what nobody handles.
#[tokio::test(start_paused = true)]
async fn every_inbound_id_answered_once() {
    let unheard =
        |id: &str| json!({"type": "control_request", "request_id": id, "request": {"subtype": "unheard_of"}});
    let cli = cli(move |script| {
        script
            .begins()
            .says(frames::ask("a", "Bash"))
            .says(frames::ask("a", "Bash"))
            .says(unheard("b"))
            .says(call("c", "hook_of_nobody"))
            .says(
                json!({"type": "control_request", "request_id": "d", "request": {"subtype": "can_use_tool"}}),
            )
            .sleep(Duration::from_secs(10))
            .expect(outrigger::testing::sim::peer::Match::any())
            .expect(outrigger::testing::sim::peer::Match::any())
            .expect(outrigger::testing::sim::peer::Match::any())
            .expect(outrigger::testing::sim::peer::Match::any())
            .ends("done")
    });
    let session = cli
        .options()
        .can_use_tool(|_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            PermissionResult::allow()
        })
        .start()
        .await
        .unwrap();
    outcome(&session, "go").await;
    let trace = trace(&cli);
    for id in ["a", "b", "c", "d"] {
        let answers = trace
            .lines()
            .iter()
            .filter(|line| line.from_client && line.json["response"]["request_id"] == id);
        assert_eq!(answers.count(), 1, "{id}");
    }
    trace.all_answered().unwrap();
}
