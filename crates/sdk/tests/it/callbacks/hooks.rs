//! Hooks of a session, line by line.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger::hooks::{
    self, Context, Handler, HandlerError, Hook, HookOutput, OnFailure, PreToolUseInput, PreToolUseOutput,
    event,
};
use outrigger::transport::Pipes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::{AGES, Wire, agent};

fn call(hook: &str, event: &str) -> Value {
    json!({
        "subtype": "hook_callback",
        "callback_id": hook,
        "tool_use_id": "toolu_1",
        "input": {
            "session_id": "s", "transcript_path": "/t", "cwd": "/c", "prompt_id": "p", "permission_mode": "default",
            "hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1",
            "tool_response": {"stdout": "secret"}, "stop_hook_active": false, "agent_id": "a", "agent_type": "b",
        }
    })
}

fn denied(reason: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": reason}})
}

/// Answers several events as one object.
struct Desk(AtomicUsize);

impl Handler<event::PreToolUse> for Desk {
    async fn call(
        &self,
        input: PreToolUseInput,
        context: Context,
    ) -> Result<HookOutput<event::PreToolUse>, HandlerError> {
        assert!(context.session().is_some());
        assert_eq!(context.request_id().as_str(), "r1");
        if self.0.fetch_add(1, Ordering::Relaxed) > 0 {
            Err("out of order")?;
        }
        Ok(HookOutput::specific(PreToolUseOutput::deny(format!(
            "no {} here",
            input.tool_name
        ))))
    }
}

impl Handler<event::PostToolUse> for Desk {
    async fn call(
        &self,
        _: hooks::PostToolUseInput,
        _: Context,
    ) -> Result<HookOutput<event::PostToolUse>, HandlerError> {
        Ok(HookOutput::none())
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_answers_its_events_and_errors_are_refusals() {
    let desk = Arc::new(Desk(AtomicUsize::new(0)));
    let options = agent()
        .hook(Hook::<event::PreToolUse>::of(Arc::clone(&desk)).matcher("Bash"))
        .hook(Hook::<event::PostToolUse>::of(desk));
    let (_session, mut wire, initialize) = Wire::start(options).await;
    assert_eq!(
        initialize["hooks"],
        json!({
            "PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"], "timeout": 600.0, "onFailure": "block"}],
            "PostToolUse": [{"hookCallbackIds": ["hook_1"], "timeout": 600.0}],
        })
    );
    wire.ask("r1", &call("hook_0", "PreToolUse")).await;
    assert_eq!(wire.answer().await, ("r1".into(), denied("no Bash here")));
    wire.ask("r2", &call("hook_1", "PostToolUse")).await;
    assert_eq!(wire.answer().await, ("r2".into(), json!({})));
    wire.ask("r1", &call("hook_0", "PreToolUse")).await;
    let (_, answer) = wire.answer().await;
    assert_eq!(answer, denied("the PreToolUse hook failed: out of order"));
}

#[tokio::test(start_paused = true)]
async fn hooks_are_answered_as_they_are_done() {
    let hook = |seconds| {
        hooks::pre_tool_use(move |_, _| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            HookOutput::none()
        })
    };
    let (session, mut wire, _) = Wire::start(agent().hook(hook(30)).hook(hook(20)).hook(hook(10))).await;
    for number in 0..3 {
        wire.ask(
            &format!("r{number}"),
            &call(&format!("hook_{number}"), "PreToolUse"),
        )
        .await;
    }
    for id in ["r2", "r1", "r0"] {
        assert_eq!(wire.answer().await, (id.into(), json!({})));
    }
    assert_eq!(session.stats().unanswered_by_us, 0);
}

/// Every way of failing that has to do with the session.
#[tokio::test(start_paused = true)]
async fn a_guard_that_fails_has_refused_in_time() {
    let hangs = hooks::pre_tool_use(|_, _| std::future::pending::<HookOutput<event::PreToolUse>>());
    let options = agent()
        .hook(hangs.clone())
        .hook(hangs.timeout(Duration::from_secs(5)))
        .hook(hooks::pre_tool_use(|_, _| async {
            panic!("a bug") as HookOutput<_>
        }))
        .hook(hooks::stop(|_, _| async { panic!("a bug") as HookOutput<_> }));
    let (_session, mut wire, initialize) = Wire::start(options).await;
    for (hook, seconds, why) in [
        ("hook_0", 585, "it was not done within 585s"),
        ("hook_1", 5, "it was not done within 5s"),
        ("hook_2", 0, "it panicked"),
    ] {
        let asked = Instant::now();
        wire.ask("r", &call(hook, "PreToolUse")).await;
        let (_, answer) = wire.answer().await;
        assert_eq!(answer, denied(&format!("the PreToolUse hook failed: {why}")));
        assert_eq!(asked.elapsed().as_secs(), seconds);
    }
    let given: Vec<f64> = initialize["hooks"]["PreToolUse"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hook| hook["timeout"].as_f64().unwrap())
        .collect();
    assert_eq!(given, [600.0, 20.0, 600.0], "the CLI waits longer than we do");
    wire.ask("s", &call("hook_3", "Stop")).await;
    assert_eq!(wire.answer().await, ("s".into(), json!({})));
    wire.silent().await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_called_off_hears_of_it_and_says_nothing() {
    let (tell, mut told) = mpsc::unbounded_channel();
    struct Dropped(mpsc::UnboundedSender<&'static str>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send("dropped").unwrap();
        }
    }
    let hook = hooks::pre_tool_use(move |_, context: Context| {
        let (dropped, tell) = (Dropped(tell.clone()), tell.clone());
        tokio::spawn(async move {
            context.cancelled().cancelled().await;
            tell.send("cancelled").unwrap();
        });
        async move {
            dropped.0.send("called").unwrap();
            std::future::pending::<HookOutput<event::PreToolUse>>().await
        }
    });
    let (session, mut wire, _) = Wire::start(agent().hook(hook)).await;
    for ends in [false, true] {
        wire.ask("r", &call("hook_0", "PreToolUse")).await;
        assert_eq!(told.recv().await, Some("called"));
        if ends {
            session.clone().kill().await.ok();
        } else {
            wire.withdraw("r").await;
        }
        let mut both = [told.recv().await.unwrap(), told.recv().await.unwrap()];
        both.sort_unstable();
        assert_eq!(both, ["cancelled", "dropped"]);
        if !ends {
            wire.silent().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_control_its_session() {
    let hook = hooks::pre_tool_use(|_, context: Context| async move {
        let session = context.session().ok_or("no session")?;
        session
            .set_model(Some("sonnet"))
            .await
            .map_err(|error| error.to_string())?;
        Ok::<_, String>(HookOutput::none())
    });
    let (_session, mut wire, _) = Wire::start(agent().hook(hook)).await;
    wire.ask("r", &call("hook_0", "PreToolUse")).await;
    let request = wire.line().await;
    assert_eq!(request["request"]["subtype"], "set_model");
    wire.say(&json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": request["request_id"], "response": {"model": "sonnet"}}}))
        .await;
    assert_eq!(wire.answer().await, ("r".into(), json!({})));
}

#[tokio::test(start_paused = true)]
async fn work_in_the_background_goes_on_until_the_session_ends() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let hook = Hook::<event::PostToolUse>::in_background(move |input, context: Context| {
        let tell = tell.clone();
        async move {
            tokio::spawn({
                let (tell, context) = (tell.clone(), context.clone());
                async move {
                    context.cancelled().cancelled().await;
                    tell.send("cancelled").unwrap();
                }
            });
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(input.tool_name, "Bash");
            tell.send("an hour later").unwrap();
            std::future::pending().await
        }
    });
    let (session, mut wire, initialize) = Wire::start(agent().hook(hook)).await;
    assert_eq!(initialize["hooks"]["PostToolUse"][0]["timeout"], 15.0);
    let asked = Instant::now();
    wire.ask("r", &call("hook_0", "PostToolUse")).await;
    assert_eq!(wire.answer().await, ("r".into(), json!({"async": true})));
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert_eq!(told.recv().await, Some("an hour later"));
    assert!(timeout(AGES, told.recv()).await.is_err(), "it goes on");
    session.kill().await.ok();
    assert_eq!(told.recv().await, Some("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn a_promise_that_the_cli_does_not_keep_is_an_error_at_the_start() {
    let hook = || hooks::user_prompt_submit(|_, _| async { HookOutput::none() });
    let promise = hook().on_failure(OnFailure::Block);
    let on_failure = "hook_on_failure_supported";
    for (hook, said, error) in [
        (promise.clone(), json!({"hooks_applied": true}), Some(on_failure)),
        (promise.clone(), json!({on_failure: false}), Some(on_failure)),
        (promise, json!({on_failure: true}), None),
        (hook(), json!({}), None),
        (
            hook(),
            json!({"hooks_applied": false, on_failure: true}),
            Some("hooks_applied"),
        ),
    ] {
        let (ours, theirs) = tokio::io::duplex(1024 * 1024);
        let (stdout, stdin) = tokio::io::split(ours);
        let (lines, write) = tokio::io::split(theirs);
        let mut wire = Wire {
            write,
            lines: BufReader::new(lines).lines(),
        };
        let starting = tokio::spawn(agent().hook(hook).transport(Pipes::new(stdin, stdout)).start());
        let request = wire.line().await;
        let mut response = said.clone();
        response["account"] = json!({"apiKeySource": "ANTHROPIC_API_KEY"});
        wire.say(&json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": request["request_id"], "response": response}}))
            .await;
        match (starting.await.unwrap(), error) {
            (Ok(_), None) => {}
            (Err(failed), Some(field)) => {
                let failed = failed.to_string();
                assert!(failed.contains("`hook`") && failed.contains(field), "{failed}");
            }
            (started, _) => panic!("{said}: {started:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_hooks_are_the_same_when_the_program_introduces_itself_again() {
    let options = agent()
        .hook(hooks::stop(|_, _| async { HookOutput::block("once more") }))
        .hook(hooks::pre_tool_use(|_, _| async { HookOutput::none() }).matcher("Bash"));
    let (session, mut wire, initialize) = Wire::start(options).await;
    let again = tokio::spawn(async move {
        session.reinitialize().await.unwrap();
        session
    });
    let said = wire.initialized(&[]).await;
    assert_eq!(said["hooks"], initialize["hooks"]);
    let _session = again.await.unwrap();
    wire.ask("r", &call("hook_0", "Stop")).await;
    let block = json!({"decision": "block", "reason": "once more"});
    assert_eq!(wire.answer().await, ("r".into(), block));
}

/// With more requests than there is room for, a guard refuses without having been called.
#[tokio::test(start_paused = true)]
async fn a_guard_for_which_there_is_no_room_refuses() {
    let (called, count) = (Arc::new(AtomicUsize::new(0)), 4096);
    let hook = {
        let called = Arc::clone(&called);
        hooks::pre_tool_use(move |_, _| {
            called.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<HookOutput<event::PreToolUse>>()
        })
    };
    let watcher = hooks::notification(|_, _| async { HookOutput::none() });
    let (session, mut wire, _) = Wire::start(agent().hook(hook).hook(watcher)).await;
    for number in 0..count {
        wire.ask(&format!("r{number}"), &call("hook_0", "PreToolUse"))
            .await;
    }
    wire.ask("one more", &call("hook_0", "PreToolUse")).await;
    let why = "the PreToolUse hook failed: too many requests are open at once";
    assert_eq!(wire.answer().await, ("one more".into(), denied(why)));
    wire.ask("to look on", &call("hook_1", "Notification")).await;
    assert_eq!(wire.answer().await, ("to look on".into(), json!({})));
    assert_eq!(session.stats().unanswered_by_us, count);
    assert_eq!(called.load(Ordering::Relaxed), count);
}

/// The CLI would confirm them, and call none of them from then on.
#[tokio::test(start_paused = true)]
async fn settings_at_run_time_leave_the_hooks_on() {
    let hook = || hooks::pre_tool_use(|_, _| async { HookOutput::none() });
    let (session, mut wire, _) = Wire::start(agent().hook(hook())).await;
    let object = |value: Value| outrigger::protocol::shared::JsonObject::encode(&value).unwrap();
    for value in [json!("1"), json!(true), json!(1)] {
        let settings = json!({"env": {"CLAUDE_CODE_SIMPLE": value}});
        let error = session.apply_flag_settings(object(settings.clone())).await;
        assert!(error.unwrap_err().to_string().contains("CLAUDE_CODE_SIMPLE"));
        let raw = json!({ "settings": settings });
        assert!(session.raw_request("apply_flag_settings", raw).await.is_err());
    }
    wire.silent_for(Duration::from_secs(1)).await;
    // A change replaces all of the variables.
    for (change, sent) in [
        (
            json!({"env": {"A": "b"}}),
            json!({"env": {"A": "b", "CLAUDE_CODE_SIMPLE": "0"}}),
        ),
        (json!({"env": null}), json!({"env": {"CLAUDE_CODE_SIMPLE": "0"}})),
        (json!({"model": "m"}), json!({"model": "m"})),
    ] {
        let change = object(change);
        let applying = tokio::spawn({
            let session = session.clone();
            async move { session.apply_flag_settings(change).await }
        });
        let request = wire.line().await;
        assert_eq!(request["request"]["settings"], sent);
        let response = json!({"subtype": "success", "request_id": request["request_id"]});
        wire.say(&json!({"type": "control_response", "response": response}))
            .await;
        applying.await.unwrap().unwrap();
    }
    session.kill().await.unwrap();
}
