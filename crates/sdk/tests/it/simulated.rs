//! The SDK against scripted peers in memory, with a paused clock.

use std::sync::Arc;
use std::time::Duration;

use outrigger::options::Environment;
use outrigger::permissions::{PermissionRequest, PermissionResult};
use outrigger::protocol::{Frame, RawJson};
use outrigger::{AmbientEvent, Cause, Event, Observer, Outcome, Policy, Prompt, Verdict};
use outrigger_sim::peer::faulty::frames;
use outrigger_sim::peer::{Agent, Match, Steps};
use serde_json::json;

use crate::support::{PATIENCE, reaching, session};

/// Runs a prompt and returns its events, shown, and its outcome.
async fn turn(session: &outrigger::Session, prompt: &str) -> (Vec<String>, outrigger::Outcome) {
    let mut turn = session.prompt(prompt).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = turn.next().await {
        seen.push(match event.unwrap() {
            Event::Text(text) => format!("text {text}"),
            Event::ToolUse(tool) => format!("use {}", tool.name),
            Event::ToolResult(result) => format!("result {}", if result.is_error { "error" } else { "ok" }),
            _ => continue,
        });
    }
    (seen, turn.outcome().await.unwrap())
}

/// A rule that is wrong is reported by the start, with its list and the reason, before anything runs.
#[tokio::test]
async fn a_policy_that_is_wrong_does_not_start() {
    let (options, running) = reaching(Agent::builder().directives().spawn_in_memory());
    let policy = Policy::read_only().allow(["bash(ls *)"]).deny(["Read(.env)"]);
    let error = options.permissions(policy).start().await.unwrap_err();
    assert!(
        error.to_string().contains(
            "`permissions`: in `allow` the rule `bash(ls *)` names a tool in other letters than its own: write `Bash`"
        ),
        "{error}"
    );
    drop(running);
}

/// Who goes on with a session by its id has the id before the CLI says it. Of others only the CLI knows it.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_resumed_has_its_id_at_once() {
    const ID: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";
    type With = fn(outrigger::Options) -> outrigger::Options;
    let cases: [(With, Option<&str>); 5] = [
        (|options| options.resume(ID), Some(ID)),
        (|options| options.resume(ID).fork_session(true), None),
        (|options| options.resume("a title"), None),
        (|options| options.continue_conversation(true), None),
        (|options| options, None),
    ];
    for (with, expected) in cases {
        let (options, running) = reaching(Agent::builder().directives().spawn_in_memory());
        let session = with(options).start().await.unwrap();
        assert_eq!(session.id().as_deref(), expected);
        assert_eq!(session.ids().len(), usize::from(expected.is_some()));
        // What the CLI says counts.
        turn(&session, "%say one").await;
        let said = session.init().unwrap().session_id.clone();
        assert_eq!(session.id().as_deref(), Some(said.as_str()));
        session.close().await.unwrap();
        drop(running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_of_several_turns_closes_in_good_order() {
    let (session, running) = session(Agent::builder()).await;
    for number in 0..3 {
        let (seen, outcome) = turn(&session, &format!("%say answer {number}")).await;
        assert_eq!(seen, [format!("text answer {number}")]);
        assert_eq!(
            (outcome.verdict(), outcome.result_text()),
            (&Verdict::Completed, format!("answer {number}").as_str())
        );
    }
    assert_eq!(session.usage().results, 3);
    assert_eq!(session.close().await.unwrap().code, Some(0));
    assert!(running.exited().is_some());
}

/// A time may mean for ever.
#[tokio::test(start_paused = true)]
async fn a_session_with_any_time_to_end_closes_in_good_order() {
    let ever = Duration::MAX;
    let (options, running) = reaching(Agent::builder().directives().spawn_in_memory());
    let session = options.close_grace(ever).term_grace(ever).start().await.unwrap();
    assert_eq!(session.close().await.unwrap().code, Some(0));
    assert!(running.exited().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_policy_decides_and_each_request_is_answered_once() {
    let agent = Agent::builder().directives().spawn_in_memory();
    let (options, running) = reaching(agent);
    let session = options.permissions(Policy::read_only()).start().await.unwrap();
    let (seen, outcome) = turn(&session, "%tool Bash {\"command\":\"touch x\"}\n%say done").await;
    assert_eq!(seen, ["use Bash", "result error", "text done"]);
    assert_eq!(outcome.verdict(), &Verdict::Completed);
    session.close().await.unwrap();
    let answers: Vec<_> = running
        .report()
        .received()
        .filter(|line| line["type"] == "control_response")
        .map(|line| line["response"]["response"]["behavior"].clone())
        .collect();
    assert_eq!(answers, ["deny"]);
}

fn bug() -> PermissionResult {
    panic!("a bug in the handler")
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_has_refused() {
    let (options, _running) = reaching(Agent::builder().directives().spawn_in_memory());
    let session = options.can_use_tool(|_| async { bug() }).start().await.unwrap();
    let (seen, _) = turn(&session, "%tool Bash {\"command\":\"touch x\"}\n%say done").await;
    assert_eq!(seen, ["use Bash", "result error", "text done"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_withdrawn_is_never_answered() {
    let (asked, was_asked) = tokio::sync::oneshot::channel::<()>();
    let asked = std::sync::Mutex::new(Some(asked));
    let (options, running) = reaching(Agent::builder().directives().spawn_in_memory());
    let handler = move |_| {
        asked.lock().unwrap().take().unwrap().send(()).unwrap();
        async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            PermissionResult::allow()
        }
    };
    let session = options.permissions(handler).start().await.unwrap();
    let mut turn = session
        .prompt("%tool Bash {\"command\":\"touch x\"}\n%say done")
        .await
        .unwrap();
    was_asked.await.unwrap();
    assert_eq!(session.stats().unanswered_by_us, 1);
    let interrupted = session.interrupt().await.unwrap();
    assert_eq!(interrupted.outcomes.len(), 1);
    assert_eq!(turn.outcome().await.unwrap().verdict(), &Verdict::Interrupted);
    assert_eq!(session.stats().unanswered_by_us, 0);
    // Long after: the handler would have answered by now.
    tokio::time::sleep(Duration::from_secs(7200)).await;
    let (seen, _) = crate::simulated::turn(&session, "%say next").await;
    assert_eq!(seen, ["text next"]);
    let answers = running
        .report()
        .received()
        .filter(|line| line["type"] == "control_response")
        .count();
    assert_eq!(answers, 0);
}

#[tokio::test(start_paused = true)]
async fn prompts_that_are_sent_together_get_turns_of_their_own() {
    let (session, _running) = session(Agent::builder()).await;
    let mut turns = Vec::new();
    for number in 0..4 {
        turns.push(session.prompt(format!("%say {number}")).await.unwrap());
    }
    for (number, turn) in turns.iter_mut().enumerate() {
        let (text, outcome) = turn.text().await.unwrap();
        assert_eq!((text, outcome.prompts().len()), (number.to_string(), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_prompt_can_be_taken_back() {
    let (session, _running) = session(Agent::builder()).await;
    let mut first = session.prompt("%slow 50 chunk=1\n%say abcdefghij").await.unwrap();
    let mut waiting = session.prompt("%say never").await.unwrap();
    let mut queued = session.queue("%say never either").await.unwrap();
    queued.cancel().await.unwrap();
    waiting.cancel().await.unwrap();
    assert_eq!(queued.outcome().await.unwrap().verdict(), &Verdict::Cancelled);
    assert_eq!(waiting.outcome().await.unwrap().verdict(), &Verdict::Cancelled);
    assert_eq!(first.outcome().await.unwrap().result_text(), "abcdefghij");
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_request_is_given_up_and_the_cli_is_told() {
    let script = Steps::new()
        .initialize()
        .expect(Match::request("mcp_status"))
        .expect(Match::kind("control_cancel_request"))
        .expect_end()
        .exit(0);
    let (options, running) = reaching(script.spawn_in_memory());
    let session = options
        .control_deadline(Duration::from_secs(5))
        .start()
        .await
        .unwrap();
    let error = session.raw_request("mcp_status", json!({})).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(session.stats().unanswered_by_cli, 0);
    session.close().await.unwrap();
    running.report().verdict.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_death_of_the_cli_reaches_everybody_who_waits() {
    let script = Steps::new()
        .initialize()
        .expect(Match::prompt("one"))
        .expect(Match::request("mcp_status"))
        .complain("out of cheese")
        .die(9);
    let (options, _running) = reaching(script.spawn_in_memory());
    let session = options.start().await.unwrap();
    let mut one = session.prompt("one").await.unwrap();
    let mut two = session.prompt("two").await.unwrap();
    // The prompt is written by a task of its own; the request must not overtake it here.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let waiting = session.raw_request("mcp_status", json!({}));
    let (request, one, two) = tokio::join!(waiting, one.outcome(), two.outcome());
    for error in [request.unwrap_err(), one.unwrap_err(), two.unwrap_err()] {
        assert_eq!(error.exit().and_then(|exit| exit.signal), Some(9), "{error}");
        assert_eq!(error.cause(), Some(Cause::Killed));
        assert!(error.stderr_tail().unwrap().contains("out of cheese"), "{error}");
    }
    assert!(session.prompt("three").await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_frame_ends_nothing() {
    let script = Steps::new()
        .initialize()
        .expect(Match::prompt("go"))
        .send_raw("[SandboxDebug] noise\n\n{\"type\":\"never_seen\",\"x\":1}{\"type\":\"keep_alive\"}\n{\"type\":\"assistant\",\"message\":7}\n")
        .send_raw([b"{\"type\":\"user\",\"bad\":\"".as_slice(), &[0xff], b"\"}\n"].concat())
        .send(json!({"type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
                     "num_turns": 1, "result": "fine", "surprise": [1]}))
        .expect_end()
        .exit(0);
    let (options, _running) = reaching(script.spawn_in_memory());
    let session = options.start().await.unwrap();
    let mut frames = session.frames();
    let mut turn = session.prompt("go").await.unwrap();
    assert_eq!(turn.outcome().await.unwrap().result_text(), "fine");
    let mut kinds = Vec::new();
    while kinds.len() < 6 {
        kinds.push(frames.next().await.unwrap().unwrap().kind().to_owned());
    }
    assert_eq!(
        kinds,
        ["", "never_seen", "keep_alive", "assistant", "user", "result"]
    );
    let stats = session.stats();
    assert_eq!((stats.misfits, stats.unknown.get("never_seen")), (1, Some(&1)));
}

#[tokio::test(start_paused = true)]
async fn the_version_is_known_and_an_untested_one_is_no_obstacle() {
    let (tested, _running) = session(Agent::builder()).await;
    let version = tested.cli_version().unwrap();
    assert!(version.is_tested(), "{version}");
    let (_, newest) = outrigger::protocol::TESTED_CLI_VERSIONS;
    assert_eq!(version.as_str(), newest);

    let script = Steps::new()
        .initialize_with(json!({"claude_code_version": null}))
        .expect(Match::prompt("go"))
        .send(json!({"type": "system", "subtype": "init", "session_id": "s", "uuid": "u", "cwd": "/", "tools": [],
                     "mcp_servers": [], "model": "m", "permissionMode": "default", "slash_commands": [],
                     "apiKeySource": "ANTHROPIC_API_KEY", "claude_code_version": "99.0.0", "output_style": "default",
                     "skills": [], "plugins": []}))
        .send(json!({"type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
                     "num_turns": 1, "result": "fine"}))
        .expect_end()
        .exit(0);
    let (options, _running) = reaching(script.spawn_in_memory());
    let newer = options.start().await.unwrap();
    assert_eq!(newer.cli_version(), None, "nothing has told it yet");
    let (_, outcome) = turn(&newer, "go").await;
    assert_eq!(outcome.result_text(), "fine");
    let version = newer.cli_version().unwrap();
    assert_eq!(
        (version.as_str(), version.age()),
        ("99.0.0", outrigger::CliAge::Newer)
    );
}

#[tokio::test(start_paused = true)]
async fn background_work_begins_turns_that_resolve_nobody() {
    let (session, _running) = session(Agent::builder().allowed_tools(["Bash"])).await;
    let mut ambient = session.ambient();
    let prompt = r#"%tool Bash {"command":"sleep 2","description":"wait","run_in_background":true}
%say started"#;
    let mut turn = session.prompt(prompt).await.unwrap();
    let own = turn.outcome().await.unwrap();
    assert_eq!(own.result_text(), "started");
    assert_eq!(session.tasks().running().count(), 1);
    session
        .wait_run_end(PATIENCE)
        .await
        .expect("a shell does not keep the run from ending");
    let foreign = tokio::time::timeout(PATIENCE, async {
        loop {
            if let AmbientEvent::TurnEnded(outcome) = ambient.next().await.unwrap() {
                break outcome;
            }
        }
    });
    let foreign = foreign.await.expect("the shell's end wakes the session");
    assert_eq!(session.tasks().running().count(), 0);
    assert_eq!(foreign.origin(), Some("task-notification"));
    let (seen, _) = crate::simulated::turn(&session, "%say mine").await;
    assert_eq!(seen, ["text mine"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_is_checked_against_what_the_cli_reported() {
    let (session, _running) = session(Agent::builder()).await;
    let error = session
        .prompt(Prompt::command("no-such-command", ""))
        .await
        .unwrap_err();
    assert!(
        error.is_invalid() && error.to_string().contains("/no-such-command"),
        "{error}"
    );
    let known = session.command_names();
    assert!(known.iter().any(|name| name == "compact"), "{known:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cli_that_never_answers_initialize_is_ended() {
    let script = Steps::new()
        .expect(Match::request("initialize"))
        .expect(Match::kind("control_cancel_request"));
    let (options, running) = reaching(script.spawn_in_memory());
    let error = options
        .initialize_deadline(Duration::from_secs(7))
        .start()
        .await
        .unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(running.exited().is_some(), "its end was waited for");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_session_ends_the_process() {
    let (session, running) = session(Agent::builder()).await;
    let turn = session.prompt("%hang").await.unwrap();
    drop(session);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(running.exited().is_none(), "a turn keeps its session alive");
    drop(turn);
    running.exit().await;
}

#[tokio::test(start_paused = true)]
async fn what_nobody_handles_is_refused_in_the_way_of_its_kind_once() {
    // What the CLI asks, and what must come back (a part of it).
    let asked = [
        (
            json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"}),
            json!({"behavior": "deny"}),
        ),
        // Without its tool it can't be understood, so it can't be allowed either.
        (
            json!({"subtype": "can_use_tool", "input": {}, "tool_use_id": "t"}),
            json!({"behavior": "deny"}),
        ),
        (
            json!({"subtype": "elicitation", "mcp_server_name": "s", "message": "?"}),
            json!({"action": "decline"}),
        ),
        (
            json!({"subtype": "hook_callback", "callback_id": "hook_0", "input": {}}),
            json!({"decision": "block"}),
        ),
        (
            json!({"subtype": "hook_callback", "callback_id": "x", "input": {"hook_event_name": "PreToolUse"}}),
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}),
        ),
        (
            json!({"subtype": "oauth_token_refresh"}),
            json!({"accessToken": null}),
        ),
        (
            json!({"subtype": "host_auth_token_refresh"}),
            json!({"authToken": null}),
        ),
    ];
    let refused = [
        json!({"subtype": "hook_callback", "callback_id": "hook_0", "input": {"hook_event_name": "PostCompact"}}),
        json!({"subtype": "mcp_message", "server_name": "s", "message": {"jsonrpc": "2.0", "method": "ping", "id": 1}}),
        json!({"subtype": "never_seen_before"}),
        json!({"no_subtype": true}),
    ];
    // An answer of ours would take them from the program that they are for.
    let not_ours = [
        json!({"subtype": "request_user_dialog", "dialog_kind": "k", "payload": {}}),
        json!({"subtype": "remote_tool_call"}),
    ];
    let ask = |id: &str, request: &serde_json::Value| json!({"type": "control_request", "request_id": id, "request": request});
    let mut script = Steps::new().initialize();
    for (number, request) in not_ours.iter().enumerate() {
        script = script.send(ask(&format!("n{number}"), request));
    }
    for (number, (request, answer)) in asked.iter().enumerate() {
        let id = format!("a{number}");
        script = script
            .send(ask(&id, request))
            .expect(json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": answer}}));
    }
    for (number, request) in refused.iter().enumerate() {
        let id = format!("b{number}");
        script = script
            .send(ask(&id, request))
            .expect(json!({"type": "control_response", "response": {"subtype": "error", "request_id": id}}));
    }
    // A numeric id comes back as a number; a request that comes twice is answered once, and one that was withdrawn never.
    let script = script
        .send(json!({"type": "control_request", "request_id": 7, "request": {"subtype": "elicitation"}}))
        .expect(json!({"type": "control_response", "response": {"request_id": 7}}))
        .send_raw(
            concat!(
                r#"{"type":"control_request","request_id":"c","request":{"subtype":"can_use_tool","tool_name":"Wait","input":{},"tool_use_id":"t"}}"#,
                "\n",
                r#"{"type":"control_request","request_id":"c","request":{"subtype":"can_use_tool","tool_name":"Wait","input":{},"tool_use_id":"t"}}"#,
                "\n",
                r#"{"type":"control_cancel_request","request_id":"c"}"#,
                "\n"
            )
            .as_bytes(),
        )
        .sleep(Duration::from_secs(60))
        .send(json!({"type": "control_request", "request_id": "last", "request": {"subtype": "elicitation"}}))
        .expect(json!({"type": "control_response", "response": {"request_id": "last"}}))
        .expect_end()
        .exit(0);
    let (options, running) = reaching(script.spawn_in_memory());
    let handler = ask_slowly();
    let session = options.permissions(handler).start().await.unwrap();
    let mut frames = session.frames();
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(PATIENCE, frames.next()).await {
        if frame.request_id() == Some("last") {
            break;
        }
    }
    // The answer to the last one is on its way.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(session.stats().unanswered_by_us, 0);
    assert_eq!(session.stats().duplicate_requests, 1);
    session.close().await.unwrap();
    running.report().verdict.unwrap();
}

/// Denies at once, except for the tool `Wait`, which takes a second and would be allowed.
fn ask_slowly() -> impl outrigger::permissions::PermissionHandler {
    |request: PermissionRequest| async move {
        if request.tool_name == "Wait" {
            tokio::time::sleep(Duration::from_secs(1)).await;
            return PermissionResult::allow();
        }
        PermissionResult::deny("no")
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_on_a_line_over_the_cap_is_refused_and_its_neighbours_live() {
    let long = "x".repeat(100_000);
    // What routing needs comes before the long part, as it does on the wire.
    let line = format!(
        r#"{{"type":"control_request","request_id":"long","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{{"command":"{long}"}},"tool_use_id":"t"}}}}"#
    );
    let script = Steps::new()
        .initialize()
        .send_raw(format!("{line}\n").into_bytes())
        .expect(json!({"type": "control_response", "response": {"request_id": "long", "response": {"behavior": "deny"}}}))
        .expect_end()
        .exit(0);
    let (options, running) = reaching(script.spawn_in_memory());
    let session = options
        .permissions(Policy::allow_all())
        .max_line_bytes(50_000usize)
        .start()
        .await
        .unwrap();
    let mut frames = session.frames();
    let answered = async {
        while session.stats().misfits == 0 {
            if frames.next().await.is_none() {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.ok();
    session.close().await.unwrap();
    running.report().verdict.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reply_on_a_line_over_the_cap_is_an_error() {
    let script = Steps::new()
        .initialize()
        .expect(Match::request("mcp_status"))
        .reply(json!({"mcpServers": [], "more": "x".repeat(100_000)}))
        .expect_end()
        .exit(0);
    let (options, running) = reaching(script.spawn_in_memory());
    let session = options.max_line_bytes(50_000usize).start().await.unwrap();
    let error = session.raw_request("mcp_status", json!({})).await.unwrap_err();
    let shown = format!("{error:?}");
    assert!(
        shown.contains("the answer to `mcp_status`") && shown.contains("is over the cap"),
        "{shown}"
    );
    session.close().await.unwrap();
    running.report().verdict.unwrap();
}

/// An observer that panics when it is told of this.
struct BadObserver(&'static str);

impl BadObserver {
    fn is_told(&self, of: &str) {
        assert_ne!(self.0, of, "a bug in the observer");
    }
}

impl Observer for BadObserver {
    fn prompt(&self, _: &Frame) {
        self.is_told("prompt");
    }

    fn frame(&self, _: &Frame) {
        self.is_told("frame");
    }

    fn replied(&self, _: &str, _: Option<&RawJson>) {
        self.is_told("reply");
    }

    fn turn_ended(&self, _: &Outcome) {
        self.is_told("turn");
    }

    fn session_ended(&self) {
        self.is_told("end");
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_costs_nobody_else_anything() {
    for of in ["prompt", "frame", "reply", "turn", "end"] {
        let script = Steps::new()
            .initialize()
            .expect(Match::prompt("go"))
            .send(frames::ask("q", "Bash"))
            .expect(json!({"type": "control_response", "response": {"request_id": "q"}}))
            .send(json!({"type": "result", "subtype": "success", "is_error": false,
                         "terminal_reason": "completed", "num_turns": 1, "result": "fine"}))
            .expect_end()
            .exit(0);
        let (options, running) = reaching(script.spawn_in_memory());
        let session = options.permissions(Policy::allow_all()).start().await.unwrap();
        session.observe(Arc::new(BadObserver(of)));
        let mut turn = session.prompt("go").await.unwrap();
        let answer = tokio::time::timeout(PATIENCE, turn.answer()).await;
        assert_eq!(answer.expect(of).unwrap().text(), "fine");
        // The events end as well.
        let rest = async { while turn.next().await.is_some() {} };
        tokio::time::timeout(PATIENCE, rest).await.expect(of);
        session.close().await.unwrap();
        running.report().verdict.unwrap();
    }
}

/// A turn that leaves an agent in the background, which reports when `then` says so.
fn leaves_an_agent(then: Steps) -> Steps {
    let state = |state: &str| json!({"type":"system","subtype":"session_state_changed","state":state});
    Steps::new()
        .patience(Duration::from_secs(1_000_000))
        .initialize()
        .expect(Match::kind("user"))
        .send(state("running"))
        .send(json!({"type":"system","subtype":"init","session_id":"s"}))
        .send(
            json!({"type":"system","subtype":"task_started","task_id":"t","task_type":"local_agent",
            "is_backgrounded":true,"description":"look around"}),
        )
        .send(json!({"type":"system","subtype":"background_tasks_changed",
            "tasks":[{"task_id":"t","task_type":"local_agent"}]}))
        .send(json!({"type":"result","subtype":"success","is_error":false,"result":"later","session_id":"s"}))
        .then(then)
        .expect_end()
        .exit(0)
}

#[tokio::test(start_paused = true)]
async fn draining_ends_at_the_ceiling_and_says_so() {
    let (options, _running) = reaching(leaves_an_agent(Steps::new()).spawn_in_memory());
    let session = options.start().await.unwrap();
    session.prompt("go").await.unwrap().outcome().await.unwrap();
    // The ceiling counts from the result on, not from when somebody begins to wait.
    tokio::time::sleep(Duration::from_secs(400)).await;
    let begun = tokio::time::Instant::now();
    let drained = session.drain_and_close(Duration::from_secs(600)).await.unwrap();
    assert!(drained.ceiling_reached);
    assert_eq!(drained.exit.code, Some(0));
    assert!(
        begun.elapsed() < Duration::from_secs(210),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_rename_is_the_users() {
    let request = json!({"subtype": "rename_session", "title": "Tea", "source": "host"});
    let script = Steps::new()
        .initialize()
        .expect(json!({"type": "control_request", "request": request}))
        .reply(json!({}))
        .expect_end()
        .exit(0);
    let (options, running) = reaching(script.spawn_in_memory());
    let session = options.start().await.unwrap();
    session.rename_session("Tea").await.unwrap();
    session.close().await.unwrap();
    running.report().verdict.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_query_keeps_its_answer_when_background_work_takes_too_long() {
    for (set, seconds) in [(None, 600), (Some("7000"), 7), (Some("soon"), 600)] {
        let (options, _running) = reaching(leaves_an_agent(Steps::new()).spawn_in_memory());
        let mut environment = Environment::listed();
        if let Some(ceiling) = set {
            environment = environment.set("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", ceiling);
        }
        let begun = tokio::time::Instant::now();
        let query = options.environment(environment).query("go").await.unwrap();
        let run = query.finish().await.unwrap();
        assert!(run.ceiling_reached);
        assert_eq!(run.exit.code, Some(0));
        let waited = begun.elapsed().as_secs();
        assert!((seconds..seconds + 30).contains(&waited), "{set:?}: {waited}");
        assert_eq!(run.answer().unwrap().text(), "later");
    }
}

#[tokio::test(start_paused = true)]
async fn draining_waits_while_a_turn_runs_or_somebody_is_asked() {
    let hour = Duration::from_secs(3600);
    let state = |state: &str| json!({"type":"system","subtype":"session_state_changed","state":state});
    let then = Steps::new()
        .sleep(Duration::from_secs(500))
        .send(state("requires_action"))
        .sleep(hour)
        .send(state("running"))
        .sleep(Duration::from_secs(50))
        // The agent reports, which begins a turn; it takes long.
        .send(json!({"type":"system","subtype":"background_tasks_changed","tasks":[]}))
        .send(json!({"type":"system","subtype":"init","session_id":"s"}))
        .sleep(hour)
        .send(
            json!({"type":"result","subtype":"success","is_error":false,"result":"now","session_id":"s",
            "origin":{"kind":"task-notification"}}),
        )
        .send(state("idle"));
    let (options, _running) = reaching(leaves_an_agent(then).spawn_in_memory());
    let session = options.first_token_deadline(None).start().await.unwrap();
    session.prompt("go").await.unwrap().outcome().await.unwrap();
    let drained = session.drain_and_close(Duration::from_secs(600)).await.unwrap();
    assert!(!drained.ceiling_reached);
}

#[tokio::test(start_paused = true)]
async fn a_cli_that_asks_without_end_and_reads_no_answers_is_ended() {
    let mut script = Steps::new().initialize().stop_reading();
    for number in 0..9_000 {
        script = script.send(json!({"type":"control_request","request_id":format!("q{number}"),
            "request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"x".repeat(200)},"tool_use_id":"t"}}));
    }
    let (options, running) = reaching(script.spawn_in_memory());
    let session = options.start().await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, session.wait_ended())
        .await
        .unwrap();
    assert!(ended.to_string().contains("asks without end"), "{ended}");
    assert!(session.stats().unanswered_by_us == 0 && running.exited().is_some());
}

#[tokio::test(start_paused = true)]
async fn questions_have_a_bound_in_bytes_and_those_beyond_it_are_refused() {
    let question = |id: &str| {
        json!({"type":"control_request","request_id":id,"request":{"subtype":"can_use_tool","tool_name":"Write",
            "input":{"content":"x".repeat(60_000)},"tool_use_id":"t"}})
    };
    let script = Steps::new()
        .patience(Duration::from_secs(10_000))
        .initialize()
        .send(question("first"))
        .send(question("second"))
        .expect(Match::kind("control_response"))
        .expect(Match::kind("control_response"))
        .expect_end()
        .exit(0);
    let (options, running) = reaching(script.spawn_in_memory());
    let handler = |_| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        PermissionResult::allow()
    };
    let session = options
        .buffer_bytes(100_000)
        .permissions(handler)
        .start()
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    session.close().await.unwrap();
    running.report().verdict.unwrap();
    let answers: Vec<_> = running
        .report()
        .received()
        .filter(|line| line["type"] == "control_response")
        .map(|line| {
            let response = &line["response"];
            (
                response["request_id"].clone(),
                response["response"]["behavior"].clone(),
            )
        })
        .collect();
    assert_eq!(
        answers,
        [(json!("second"), json!("deny")), (json!("first"), json!("allow"))]
    );
}

#[tokio::test(start_paused = true)]
async fn an_agents_report_is_waited_for_where_the_state_is_never_told() {
    let result = |text: &str| json!({"type":"result","subtype":"success","is_error":false,"result":text,"session_id":"s"});
    let script = Steps::new()
        .initialize()
        .expect(Match::kind("user"))
        .send(json!({"type":"system","subtype":"init","session_id":"s"}))
        .send(
            json!({"type":"system","subtype":"task_started","task_id":"t","task_type":"local_agent",
            "is_backgrounded":true,"description":"look around"}),
        )
        .send(result("later"))
        .send(json!({"type":"system","subtype":"task_notification","task_id":"t","status":"completed"}))
        .sleep(Duration::from_millis(900))
        .send(json!({"type":"system","subtype":"init","session_id":"s"}))
        .sleep(Duration::from_secs(20))
        .send(result("now"))
        .expect_end()
        .exit(0);
    let (options, _running) = reaching(script.spawn_in_memory());
    let answer = options.query_text("go").await.unwrap();
    assert_eq!(answer.text(), "now");

    // An agent whose end begins no turn holds nobody up for long.
    let script = Steps::new()
        .initialize()
        .expect(Match::kind("user"))
        .send(json!({"type":"system","subtype":"init","session_id":"s"}))
        .send(
            json!({"type":"system","subtype":"task_started","task_id":"t","task_type":"local_agent",
            "is_backgrounded":true,"description":"look around"}),
        )
        .send(result("all"))
        .send(json!({"type":"system","subtype":"task_notification","task_id":"t","status":"completed"}))
        .expect_end()
        .exit(0);
    let (options, _running) = reaching(script.spawn_in_memory());
    let begun = tokio::time::Instant::now();
    let answer = options.query_text("go").await.unwrap();
    assert_eq!(answer.text(), "all");
    assert!(begun.elapsed() < Duration::from_secs(5));
}
