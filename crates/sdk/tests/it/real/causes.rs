//! Causes, told from what the real CLI says and does.

use outrigger::options::{Auth, Secret};
use outrigger::{Cause, Error, Event, Options, Session};
use outrigger_sim::api::ApiRequest;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use super::rig::{PATIENCE, Rig, turn};

/// The real CLI with flags behind those of the session, which the options would refuse to pass on.
fn with_flags(rig: &Rig, name: &str, flags: &str) -> Options {
    let text = format!(
        "#!/bin/sh\nexec '{}' \"$@\" {flags}\n",
        rig.executable().display()
    );
    let path = rig.sandbox().project().join(name);
    outrigger_needs::script(&path, text).unwrap();
    rig.options().cli_path(path)
}

async fn refused(options: Options) -> Error {
    timeout(PATIENCE, options.start()).await.unwrap().unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cli_refuses() {
    let rig = Rig::start().await;
    let root = rustix::process::geteuid().is_root();
    let damaged = rig.sandbox().write("damaged.json", "{no json").unwrap();
    let damaged = format!("--mcp-config {}", damaged.display());
    for (flags, cause) in [
        ("--no-such-flag", Cause::UnknownOption),
        ("--permission-mode bogus", Cause::InvalidArgument),
        ("--max-budget-usd -1", Cause::InvalidArgument),
        ("--model", Cause::InvalidArgument),
        ("--session-id nope", Cause::InvalidArgument),
        ("--json-schema {no", Cause::InvalidArgument),
        ("--setting-sources nonsense", Cause::InvalidArgument),
        ("--resume-session-at x", Cause::InvalidArgument),
        (
            "--resume 00000000-0000-4000-8000-000000000000",
            Cause::UnknownSession,
        ),
        ("--resume no-such-title", Cause::UnknownSession),
        ("--mcp-config /no/such.json", Cause::McpConfig),
        (&damaged, Cause::McpConfig),
        ("--settings /no/such.json", Cause::Settings),
        ("--dangerously-skip-permissions", Cause::RootBypass),
    ] {
        if cause == Cause::RootBypass && !root {
            continue;
        }
        let error = refused(with_flags(&rig, "flags", flags)).await;
        assert_eq!(error.cause(), Some(cause), "{flags}: {error:?}");
        assert_eq!(
            error.exit().and_then(|exit| exit.code),
            Some(1),
            "{flags}: {error}"
        );
        assert!(error.hint().is_some());
        // A sentence or two, whatever the CLI writes.
        assert!(error.to_string().len() < 1000, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_it_from_starting() {
    let rig = Rig::start().await;
    for (name, value, reason) in [
        ("HTTPS_PROXY", "::::", "proxy_invalid"),
        ("CLAUDE_CODE_TMPDIR", "/proc/no/such", "temp_dir_unusable"),
    ] {
        let error = refused(rig.options().env(name, value)).await;
        assert_eq!(
            error.cause(),
            Some(Cause::StartupFailed(Some(reason.to_owned()))),
            "{error:?}"
        );
    }
    let long = "x".repeat(200 * 1024);
    let error = refused(rig.options().extra_arg("no-such-flag", Some(&long))).await;
    assert_eq!(
        error.cause(),
        Some(Cause::ArgumentsTooLong),
        "{}",
        error.to_string().len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_and_the_api() {
    let rig = Rig::start().await;
    let failed = async |session: &Session, prompt: &str| {
        let (_, outcome) = turn(session, prompt).await;
        outcome.answer().unwrap_err().cause()
    };

    let nobody = rig.options().auth(Auth::Unchecked).start().await.unwrap();
    assert_eq!(failed(&nobody, "%say hello").await, Some(Cause::NotLoggedIn));

    let session = rig
        .options()
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .start()
        .await
        .unwrap();
    for (status, cause) in [
        (401, Cause::InvalidKey),
        (403, Cause::Api { status: Some(403) }),
        (400, Cause::Api { status: Some(400) }),
        (529, Cause::Api { status: Some(529) }),
    ] {
        let prompt = format!("%error {status} n=100 msg=\"no\"");
        assert_eq!(failed(&session, &prompt).await, Some(cause), "{status}");
    }

    // Port 9 of this machine: nobody is there.
    let alone = rig
        .options()
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .auth(Auth::ApiKey(Secret::new(ApiRequest::DUMMY_KEY)))
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    let alone = alone.start().await.unwrap();
    assert_eq!(failed(&alone, "%say hello").await, Some(Cause::ConnectionFailed));
    // The exit of a CLI that nobody here ended repeats that, and is no crash.
    let watcher = alone.clone();
    // Whether it answers before it ends does not matter here.
    let _ = alone.raw_request("end_session", serde_json::json!({})).await;
    let ended = timeout(PATIENCE, watcher.wait_ended()).await.unwrap();
    assert_eq!(ended.exit().and_then(|exit| exit.code), Some(1), "{ended}");
    assert_eq!(ended.cause(), Some(Cause::ConnectionFailed), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits() {
    let rig = Rig::start().await;
    let session = rig.options().max_turns(1_u64).start().await.unwrap();
    let (_, outcome) = turn(&session, "%tool Bash {\"command\":\"true\"}\n%say over").await;
    let error = outcome.answer().unwrap_err();
    assert_eq!(error.cause(), Some(Cause::MaxTurns));
    let session = rig.options().max_budget_usd(0.000_001).start().await.unwrap();
    let (_, outcome) = turn(&session, "%tool Bash {\"command\":\"true\"}\n%say over").await;
    let error = outcome.answer().unwrap_err();
    assert_eq!(error.cause(), Some(Cause::Budget));
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_from_outside() {
    let rig = Rig::start().await;
    for (signal, cause) in [
        (Signal::TERM, Cause::Terminated { signal: 15 }),
        (Signal::HUP, Cause::Terminated { signal: 1 }),
        (Signal::KILL, Cause::Killed),
        (Signal::SEGV, Cause::Crashed { signal: Some(11) }),
        (Signal::ABORT, Cause::Crashed { signal: Some(6) }),
    ] {
        let session = rig.session().await;
        let mut running = session.prompt("%hang").await.unwrap();
        let begun = async {
            while let Some(event) = running.next().await {
                if matches!(event.unwrap(), Event::Message(_, frame) if frame.kind() == "system") {
                    break;
                }
            }
        };
        timeout(PATIENCE, begun).await.unwrap();
        let pid = i32::try_from(session.pid().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
        let error = timeout(PATIENCE, running.outcome()).await.unwrap().unwrap_err();
        assert_eq!(error.cause(), Some(cause), "{error:?}");
        let end = error.end().unwrap();
        assert!(end.mid_turn, "{end:?}");
        let kinds: Vec<&str> = end.last_frames.iter().map(|note| note.kind.as_str()).collect();
        assert!(kinds.contains(&"system") && kinds.len() <= 16, "{kinds:?}");
        assert!(end.to_string().len() < 1000, "{end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_we_end_is_not_blamed_on_others() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let watcher = session.clone();
    session.kill().await.unwrap();
    assert_eq!(watcher.wait_ended().await.cause(), Some(Cause::EndedByUs));
    let session = rig.session().await;
    let watcher = session.clone();
    session.close().await.unwrap();
    assert_eq!(watcher.wait_ended().await.cause(), Some(Cause::EndedByUs));
}
