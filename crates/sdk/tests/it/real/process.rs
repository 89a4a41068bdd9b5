//! How sessions end: by themselves, by us, by others, and with nothing left behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

use outrigger::transport::Exit;
use outrigger::{Cause, Error, Options, Policy, Session, Verdict};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use super::rig::{PATIENCE, Rig, turn};
use crate::witness::{self, living_in};

/// A turn whose tool runs until it is ended.
const ENDLESS: &str = "%tool Bash {\"command\":\"touch begun; tail -f /dev/null\"}\n%say over";

/// The processes that live in this sandbox: those that have its home in their environment, tools and grandchildren included.
fn processes(rig: &Rig) -> BTreeMap<i32, String> {
    living_in(&rig.sandbox().home())
}

async fn until(rig: &Rig, what: &str, wanted: impl Fn(&BTreeMap<i32, String>) -> bool) {
    witness::until(what, || {
        let now = processes(rig);
        if wanted(&now) {
            Ok(())
        } else {
            Err(format!("{now:#?}"))
        }
    })
    .await;
}

pub(crate) async fn none_left(rig: &Rig) {
    witness::none_left(&rig.sandbox().home()).await;
}

/// Starts the turn and waits until its tool runs.
async fn running_tool(rig: &Rig, session: &Session) -> outrigger::Turn {
    let running = session.prompt(ENDLESS).await.unwrap();
    until(rig, "the tool", |all| {
        all.values().any(|command| command.starts_with("tail -f"))
    })
    .await;
    running
}

fn impatient(rig: &Rig) -> Options {
    rig.options()
        .permissions(Policy::allow_all())
        .close_grace(Duration::from_millis(300))
        .term_grace(Duration::from_secs(20))
}

fn send(session: &Session, signal: Signal) {
    let pid = i32::try_from(session.pid().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_lets_the_turn_finish() {
    let rig = Rig::start().await;
    let session = rig.options().close_grace(PATIENCE).start().await.unwrap();
    let mut running = session.prompt("%say {{gate:end}}finished").await.unwrap();
    rig.api().gate("end").reached(1, PATIENCE).await.unwrap();
    let closing = session.clone().close();
    tokio::pin!(closing);
    let first = std::future::poll_fn(|cx| Poll::Ready(closing.as_mut().poll(cx))).await;
    assert!(first.is_pending(), "the turn still runs");
    rig.api().gate("end").open();
    let outcome = timeout(PATIENCE, running.outcome()).await.unwrap().unwrap();
    assert_eq!(
        (outcome.verdict(), outcome.result_text()),
        (&Verdict::Completed, "finished")
    );
    assert_eq!(
        timeout(PATIENCE, closing).await.unwrap().unwrap(),
        Exit::with_code(0)
    );
    none_left(&rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_does_not_wait_for_ever() {
    let rig = Rig::start().await;
    let session = impatient(&rig).start().await.unwrap();
    let mut hanging = session.prompt("%hang").await.unwrap();
    rig.api().wait_for_requests(1, PATIENCE).await.unwrap();
    let exit = timeout(PATIENCE, session.close()).await.unwrap().unwrap();
    // SIGTERM, which the CLI turns into an exit code.
    assert_eq!(exit, Exit::with_code(143));
    let error = hanging.outcome().await.unwrap_err();
    assert_eq!(error.exit(), Some(exit));
    assert_eq!(
        error.to_string(),
        "the CLI ended with exit code 143: it was closed"
    );
    none_left(&rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_repeated_by_the_exit_code_is_no_crash() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let (_, outcome) = turn(&session, "%error 400 n=100 msg=\"no\"").await;
    assert_eq!(outcome.cause(), Some(Cause::Api { status: Some(400) }));
    let watcher = session.clone();
    assert_eq!(session.close().await.unwrap(), Exit::with_code(1));
    let ended = watcher.wait_ended().await;
    assert!(ended.to_string().contains("its last result"), "{ended}");
    assert_eq!(ended.outcome().unwrap().api_error_status(), Some(400));
}

/// What everybody who waits gets when the process is ended by a signal from outside.
async fn hit_by(signal: Signal, in_mid_turn: bool) -> Error {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let mut waiting = Vec::new();
    if in_mid_turn {
        let mut running = running_tool(&rig, &session).await;
        let watch = running.watch();
        waiting.push(tokio::spawn(async move {
            watch.outcome().await.map(|outcome| outcome.verdict().clone())
        }));
        waiting.push(tokio::spawn(async move {
            while let Some(event) = running.next().await {
                event?;
            }
            running.outcome().await.map(|outcome| outcome.verdict().clone())
        }));
    } else {
        turn(&session, "%say one").await;
    }
    let waiter = session.clone();
    let aside = rig.api().request_count();
    let question = tokio::spawn(async move { waiter.side_question("%hang").await.map(drop) });
    rig.api()
        .wait_until("the side question", PATIENCE, |requests| {
            requests.len() as u64 > aside
        })
        .await
        .unwrap();
    send(&session, signal);
    let ended = timeout(PATIENCE, session.wait_ended())
        .await
        .expect("the end is seen");
    let asked = timeout(PATIENCE, question).await.unwrap().unwrap();
    assert!(asked.unwrap_err().is_closed());
    for wait in waiting {
        // SIGINT ends the turn in an orderly way first.
        match timeout(PATIENCE, wait).await.unwrap().unwrap() {
            Ok(verdict) => assert_eq!((signal, verdict), (Signal::INT, Verdict::Interrupted)),
            Err(error) => assert_eq!(error.exit(), ended.exit()),
        }
    }
    assert!(session.prompt("%say late").await.unwrap_err().is_closed());
    none_left(&rig).await;
    ended
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_in_mid_turn() {
    for (signal, exit) in [
        (Signal::TERM, Exit::with_code(143)),
        (Signal::HUP, Exit::with_code(129)),
        (Signal::INT, Exit::with_code(0)),
    ] {
        let ended = hit_by(signal, true).await;
        assert_eq!((signal, ended.exit()), (signal, Some(exit)), "{ended}");
    }
}

/// The commands of a CLI that somebody else kills are not ours to find, so here the model is what is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_from_outside_in_mid_turn_reaches_whoever_waits() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut running = session.prompt("%hang").await.unwrap();
    rig.api()
        .wait_until("the prompt", PATIENCE, |requests| !requests.is_empty())
        .await
        .unwrap();
    send(&session, Signal::KILL);
    let error = timeout(PATIENCE, running.outcome()).await.unwrap().unwrap_err();
    let killed = Exit::with_signal(9);
    assert_eq!(error.exit(), Some(killed), "{error}");
    assert_eq!(error.cause(), Some(Cause::Killed));
    assert!(session.prompt("%say late").await.unwrap_err().is_closed());
    none_left(&rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_when_idle() {
    for (signal, exit) in [
        (Signal::TERM, Exit::with_code(143)),
        (Signal::HUP, Exit::with_code(129)),
        (Signal::INT, Exit::with_code(0)),
        (Signal::KILL, Exit::with_signal(9)),
    ] {
        let ended = hit_by(signal, false).await;
        assert_eq!((signal, ended.exit()), (signal, Some(exit)), "{ended}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_leaves_nothing() {
    let rig = Rig::start().await;
    let session = impatient(&rig).start().await.unwrap();
    let mut running = running_tool(&rig, &session).await;
    let exit = timeout(PATIENCE, session.kill()).await.unwrap().unwrap();
    assert_eq!(exit, Exit::with_signal(9));
    assert!(running.outcome().await.unwrap_err().is_closed());
    none_left(&rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_leaves_nothing() {
    let rig = Rig::start().await;
    let idle = impatient(&rig).start().await.unwrap();
    let busy = impatient(&rig).start().await.unwrap();
    let running = running_tool(&rig, &busy).await;
    drop((idle, busy));
    // A turn holds the session.
    assert!(!processes(&rig).is_empty());
    drop(running);
    none_left(&rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn giving_up_the_start_leaves_nothing() {
    let rig = Rig::start().await;
    let starting = tokio::spawn(rig.options().start());
    until(&rig, "the process", |all| !all.is_empty()).await;
    starting.abort();
    none_left(&rig).await;
}

#[test]
fn a_runtime_that_goes_away_leaves_nothing() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let theirs = tokio::runtime::Runtime::new().unwrap();
    let rig = theirs.block_on(Rig::start());
    let session = runtime.block_on(async {
        let session = impatient(&rig).start().await.unwrap();
        let running = running_tool(&rig, &session).await;
        drop(running);
        session
    });
    drop(runtime);
    theirs.block_on(none_left(&rig));
    // A handle that is left over says so, and does not wait for what nobody reads.
    let late = theirs.block_on(async { timeout(PATIENCE, session.prompt("%say late")).await });
    let late = late.expect("it does not wait for ever");
    let outcome = theirs.block_on(async {
        match late {
            Err(error) => error,
            Ok(mut turn) => timeout(PATIENCE, turn.outcome())
                .await
                .expect("nor does its turn")
                .unwrap_err(),
        }
    });
    assert!(outcome.is_closed(), "{outcome}");
}

/// An executable script in the sandbox's project.
fn script(rig: &Rig, name: &str, text: &str) -> PathBuf {
    let path = rig.sandbox().project().join(name);
    outrigger_needs::script(&path, text).unwrap();
    path
}

/// A shell script that answers `initialize` and goes on with `rest`.
fn talking(rig: &Rig, name: &str, before: &str, rest: &str) -> PathBuf {
    let answer = r#"{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"account":{"apiKeySource":"ANTHROPIC_API_KEY"}}}}\n"#;
    script(
        rig,
        name,
        &format!(
            "#!/bin/sh\n{before}\nread -r line\nid=${{line#*'\"request_id\":\"'}}\nid=${{id%%'\"'*}}\n\
             printf '{answer}' \"$id\"\n{rest}\n"
        ),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_start_says_why() {
    let rig = Rig::start().await;
    let start = |cli: &Path| rig.options().cli_path(cli).start();
    let plain = rig.sandbox().write("plain", "#!/bin/sh\nexit 0\n").unwrap();

    // What is wrong with a file is in the chain of causes.
    let chain = |error: &Error| {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        text
    };
    let missing = start(&rig.sandbox().project().join("none")).await.unwrap_err();
    assert!(
        missing.is_invalid() && chain(&missing).contains("project/none"),
        "{}",
        chain(&missing)
    );
    let plain_error = start(&plain).await.unwrap_err();
    assert!(
        plain_error.is_invalid() && chain(&plain_error).contains("project/plain"),
        "{}",
        chain(&plain_error)
    );
    let cwd = rig
        .options()
        .cwd(rig.sandbox().path().join("gone"))
        .start()
        .await
        .unwrap_err();
    assert!(
        cwd.as_options_error().is_some() && cwd.to_string().contains("does not exist"),
        "{cwd}"
    );

    let orphan = script(&rig, "orphan", "#!/no/such/interpreter\n");
    let error = start(&orphan).await.unwrap_err();
    assert!(
        chain(&error).contains("/no/such/interpreter"),
        "{}",
        chain(&error)
    );

    let quiet = script(&rig, "quiet", "#!/bin/sh\necho it broke >&2\nexit 7\n");
    let error = start(&quiet).await.unwrap_err();
    assert_eq!(error.exit(), Some(Exit::with_code(7)));
    assert_eq!(
        error.to_string(),
        "the CLI ended with exit code 7; stderr: it broke"
    );

    let flag = rig
        .options()
        .extra_arg("no-such-flag", None)
        .start()
        .await
        .unwrap_err();
    assert_eq!(flag.exit(), Some(Exit::with_code(1)), "{flag}");
    assert!(
        flag.stderr_tail()
            .unwrap()
            .contains("unknown option '--no-such-flag'"),
        "{flag}"
    );
    assert!(flag.hint().unwrap().contains("flag"));

    let silent = script(&rig, "silent", "#!/bin/sh\ncat > /dev/null\n");
    let error = rig
        .options()
        .cli_path(&silent)
        .initialize_deadline(Duration::from_millis(100))
        .start()
        .await
        .unwrap_err();
    assert!(
        error.is_timeout() && error.to_string().contains("initialize"),
        "{error}"
    );
    none_left(&rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cli_that_will_not_end_is_killed_with_its_children() {
    let rig = Rig::start().await;
    let stubborn = talking(
        &rig,
        "stubborn",
        "trap '' TERM HUP INT",
        "tail -f /dev/null &\nwhile :; do wait; done",
    );
    let session = rig
        .options()
        .cli_path(&stubborn)
        .close_grace(Duration::from_millis(50))
        .term_grace(Duration::from_millis(50))
        .start()
        .await
        .unwrap();
    until(&rig, "the grandchild", |all| {
        all.values().any(|command| command.starts_with("tail"))
    })
    .await;
    let exit = timeout(PATIENCE, session.close()).await.unwrap().unwrap();
    assert_eq!(exit, Exit::with_signal(9));
    none_left(&rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cli_that_falls_silent_is_ended() {
    let rig = Rig::start().await;
    let mute = talking(&rig, "mute", "", "exec >&-\nexec sleep 1000");
    let session = impatient(&rig).cli_path(&mute).start().await.unwrap();
    let mut lost = session.prompt("hello").await.unwrap();
    let error = timeout(PATIENCE, lost.outcome()).await.unwrap().unwrap_err();
    assert_eq!(error.exit(), Some(Exit::with_signal(15)));
    assert!(error.to_string().contains("it closed its stdout"), "{error}");
    none_left(&rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn much_on_stderr_does_not_block() {
    let rig = Rig::start().await;
    let flood = "head -c 4000000 /dev/zero | tr '\\0' x >&2";
    let loud = talking(
        &rig,
        "loud",
        flood,
        &format!("{flood}\necho last words >&2\nread -r line\nexit 3"),
    );
    let session = rig.options().cli_path(&loud).start().await.unwrap();
    let mut lost = session.prompt("hello").await.unwrap();
    let error = timeout(PATIENCE, lost.outcome()).await.unwrap().unwrap_err();
    assert_eq!(error.exit(), Some(Exit::with_code(3)));
    let tail = error.stderr_tail().unwrap();
    assert!(
        tail.len() <= 64 * 1024 && tail.ends_with("xlast words\n"),
        "{}",
        tail.len()
    );
}
