//! Hooks and the life of a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger::hooks::{self, Context, Hook, HookOutput, OnFailure, PreToolUseOutput, event};
use outrigger::options::Isolation;
use outrigger::protocol::settings::Settings;
use outrigger::{Claim, Policy, Verdict};
use serde_json::json;
use tokio::sync::mpsc;

use super::super::flow::{end, soon};
use super::super::rig::{Rig, turn};
use super::{WRITE, is_written, until};

fn no() -> Hook<event::PreToolUse> {
    hooks::pre_tool_use(|_, _| async { HookOutput::specific(PreToolUseOutput::deny("never")) })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_calls_a_hook_off() {
    let rig = Rig::start().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .hook(hooks::pre_tool_use(move |_, context: Context| {
            let tell = tell.clone();
            async move {
                tell.send("called").unwrap();
                tokio::spawn(async move {
                    context.cancelled().cancelled().await;
                    tell.send("called off").unwrap();
                });
                std::future::pending::<HookOutput<_>>().await
            }
        }))
        .start()
        .await
        .unwrap();
    let mut begun = session.prompt(WRITE).await.unwrap();
    assert_eq!(soon(told.recv()).await, Some("called"));
    session.interrupt().await.unwrap();
    assert_eq!(soon(told.recv()).await, Some("called off"));
    assert_eq!(end(&mut begun).await.verdict(), &Verdict::Interrupted);
    assert!(!is_written(&rig));
    assert_eq!(session.stats().unanswered_by_us, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_may_call_the_methods_of_their_session() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .hook(hooks::pre_tool_use(|_, context: Context| async move {
            let session = context.session().ok_or("no session")?;
            let failed = |error: outrigger::Error| error.to_string();
            session.set_model(Some("sonnet")).await.map_err(failed)?;
            let status = session.mcp_status().await.map_err(failed)?;
            assert!(status.mcp_servers.is_empty());
            Ok::<_, String>(HookOutput::none())
        }))
        .start()
        .await
        .unwrap();
    turn(&session, WRITE).await;
    assert!(is_written(&rig));
    // From within one about the end of the turn, which that then does not reach.
    let rig = Rig::start().await;
    let session = rig
        .options()
        .hook(hooks::pre_tool_use(|_, context: Context| async move {
            let session = context.session().ok_or("no session")?;
            session.interrupt().await.map_err(|error| error.to_string())?;
            Ok::<_, String>(HookOutput::none())
        }))
        .start()
        .await
        .unwrap();
    let (_, outcome) = turn(&session, WRITE).await;
    assert_eq!(outcome.verdict(), &Verdict::Interrupted);
    assert!(!is_written(&rig));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_in_the_background_holds_nothing_up() {
    let rig = Rig::start().await;
    let (tell, mut told) = mpsc::unbounded_channel();
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .hook(Hook::<event::PreToolUse>::in_background(move |input, _| {
            let tell = tell.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(2)).await;
                tell.send(input.tool_name).unwrap();
            }
        }))
        .start()
        .await
        .unwrap();
    turn(&session, WRITE).await;
    assert!(is_written(&rig));
    assert!(told.try_recv().is_err(), "the turn is over before the hook");
    assert_eq!(soon(told.recv()).await.as_deref(), Some("Bash"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cli_confirms_what_was_promised() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .hook(no().on_failure(OnFailure::Block))
        .start()
        .await
        .unwrap();
    let reply = session.initialized();
    assert_eq!(
        (reply.hooks_applied, reply.hook_on_failure_supported),
        (Some(true), Some(true))
    );
    turn(&session, WRITE).await;
    assert!(!is_written(&rig));
    session.reinitialize().await.unwrap();
    turn(&session, WRITE).await;
    assert!(!is_written(&rig), "it has the same hooks as before");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_spare_and_a_revived_session_have_the_hooks_too() {
    use rustix::process::{Pid, Signal, kill_process};

    let rig = Rig::start().await;
    let options = rig.options().permissions(Policy::allow_all()).hook(no());
    let spare = options.clone().prewarm().await.unwrap();
    let session = spare.claim(Claim::new(rig.sandbox().project())).await.unwrap();
    let (_, outcome) = turn(&session, WRITE).await;
    assert!(
        outcome.result_text().contains("never") && !is_written(&rig),
        "{}",
        outcome.result_text()
    );

    for session in [session, options.start().await.unwrap()] {
        turn(&session, "%say something to remember").await;
        let pid = Pid::from_raw(session.pid().unwrap().cast_signed()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        session.wait_ended().await;
        let revived = soon(session.revive()).await.unwrap().session;
        let (_, outcome) = turn(&revived, WRITE).await;
        assert!(
            outcome.result_text().contains("never") && !is_written(&rig),
            "{}",
            outcome.result_text()
        );
    }
}

/// The CLI calls no callback when a session starts or ends. A command in the settings is run.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn at_the_start_and_the_end_only_commands_are_run() {
    let rig = Rig::start().await;
    let called = Arc::new(AtomicUsize::new(0));
    let count = || {
        let called = Arc::clone(&called);
        move || called.fetch_add(1, Ordering::Relaxed)
    };
    let (starts, ends) = (count(), count());
    let place = rig.sandbox().path().join("log");
    let command = |word: &str| json!([{"hooks": [{"type": "command", "command": format!("echo {word} >> '{}'", place.display())}]}]);
    let settings: Settings = serde_json::from_value(
        json!({"hooks": {"SessionStart": command("started"), "SessionEnd": command("ended")}}),
    )
    .unwrap();
    let session = rig
        .options()
        .await_initialize(true)
        .settings(settings)
        .hook(hooks::session_start(move |_, _| {
            starts();
            async { HookOutput::none() }
        }))
        .hook(hooks::session_end(move |_, _| {
            ends();
            async { HookOutput::none() }
        }))
        .start()
        .await
        .unwrap();
    turn(&session, "%say hello").await;
    session.close().await.unwrap();
    let log = || std::fs::read_to_string(&place).unwrap_or_default();
    until("the end", || log().contains("ended")).await;
    assert_eq!(log(), "started\nended\n");
    assert_eq!(called.load(Ordering::Relaxed), 0);
}

/// What makes the CLI take hooks, say so, and call none of them. The SDK refuses it where it sees it, and outranks it elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_simple_cli_would_call_no_hooks() {
    let rig = Rig::start().await;
    let simple = rig.options().env("CLAUDE_CODE_SIMPLE", "1").hook(no());
    let error = simple.start().await.unwrap_err().to_string();
    assert!(error.contains("CLAUDE_CODE_SIMPLE"), "{error}");
    // The user's own files are out of sight. The CLI reads one of them with any isolation.
    let config = rig.sandbox().config();
    let on = r#"{"env":{"CLAUDE_CODE_SIMPLE":"1"}}"#;
    std::fs::write(config.join(".claude.json"), on).unwrap();
    std::fs::write(config.join("settings.json"), on).unwrap();
    let file = rig.sandbox().write("own.json", "{}").unwrap();
    let guarded = rig.options().permissions(Policy::allow_all()).hook(no());
    let interactive = guarded.clone().isolation(Isolation::Interactive);
    let later = serde_json::from_str(r#"{"env":{"A":"b"}}"#).unwrap();
    let session = interactive.clone().start().await.unwrap();
    turn(&session, WRITE).await;
    session.apply_flag_settings(later).await.unwrap();
    turn(&session, WRITE).await;
    session.close().await.unwrap();
    let session = guarded.start().await.unwrap();
    turn(&session, WRITE).await;
    assert!(!is_written(&rig));
    let session = interactive.settings(file).start().await.unwrap();
    turn(&session, WRITE).await;
    assert!(
        is_written(&rig),
        "should the CLI call them now, the warning in the docs can go"
    );
}
