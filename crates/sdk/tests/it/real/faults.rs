//! Faults that the real CLI can be brought to, on both kinds of runtime. What a stand-in does better is in [`crate::faults`].

use std::time::Duration;

use outrigger::Policy;
use outrigger::protocol::shared::PermissionMode;
use outrigger::transport::Exit;
use rustix::process::{Pid, Signal, kill_process};

use super::flow::{bash, end, rest, soon};
use super::process::none_left;
use super::rig::{PATIENCE, Rig, turn};
use crate::faults::stand::on_both_runtimes;

/// Thousands of partial messages that nobody reads, and a question behind them.
async fn a_question_is_answered_while_thousands_of_messages_wait_unread() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .include_partial_messages(true)
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let mut frames = session.frames();
    let prompt = format!(
        "%slow 0 chunk=2\n%big 6000\n%+{}\n%say allowed",
        bash("touch asked").trim_start_matches('%')
    );
    let mut running = session.prompt(prompt).await.unwrap();
    let outcome = soon(running.watch().outcome()).await.unwrap();
    assert_eq!(outcome.result_text(), "allowed");
    assert!(rig.sandbox().project().join("asked").exists());
    let (seen, _) = rest(&mut running).await;
    let said: usize = seen
        .iter()
        .filter_map(|line| line.strip_prefix("text "))
        .map(str::len)
        .sum();
    assert_eq!(said, 6000 + "allowed".len());
    soon(session.close()).await.unwrap();
    let mut partial = 0;
    while let Some(frame) = soon(frames.next()).await {
        partial += usize::from(frame.expect("nothing is missed").kind() == "stream_event");
    }
    assert!(partial > 2000, "{partial} partial messages");
    none_left(&rig).await;
}

/// While nobody reads, 150 requests in a row; and three changes of the mode before the first turn.
async fn requests_in_a_row_are_answered_and_the_turn_goes_on() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut frames = session.frames();
    for _ in 0..50 {
        for mode in [
            PermissionMode::Plan,
            PermissionMode::AcceptEdits,
            PermissionMode::Default,
        ] {
            soon(session.set_permission_mode(mode)).await.unwrap();
        }
    }
    assert_eq!(turn(&session, "%say fine").await.0, ["text fine"]);
    soon(session.close()).await.unwrap();
    let mut answers = 0;
    while let Some(frame) = soon(frames.next()).await {
        answers += usize::from(frame.expect("nothing is missed").kind() == "control_response");
    }
    assert_eq!(answers, 150);
    none_left(&rig).await;
}

/// It writes down what it does on stderr, and its last words are in the error.
async fn a_cli_that_talks_on_stderr_is_drained() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .extra_arg("debug-to-stderr", None)
        .start()
        .await
        .unwrap();
    for _ in 0..3 {
        assert_eq!(turn(&session, "%say fine").await.0, ["text fine"]);
    }
    let watcher = session.clone();
    soon(session.close()).await.unwrap();
    let ended = soon(watcher.wait_ended()).await;
    let tail = ended.stderr_tail().unwrap();
    assert!(
        tail.len() > 1000 && tail.len() <= 64 * 1024,
        "{} bytes",
        tail.len()
    );
    none_left(&rig).await;
}

/// Lines of many megabytes, by default. On one runtime: the real CLI needs twenty seconds for them.
#[tokio::test]
async fn an_answer_of_12_mb_comes_whole() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let (seen, outcome) = turn(&session, "%big 12000000").await;
    assert_eq!((seen.len(), outcome.result_text().len()), (1, 12_000_000));
    assert_eq!(turn(&session, "%say next").await.0, ["text next"]);
    soon(session.close()).await.unwrap();
    none_left(&rig).await;
}

/// Killed by somebody else while the model is silent: whoever waits is told, and it is reaped.
async fn a_kill_in_mid_turn_reaches_everybody() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let (mut frames, mut ambient) = (session.frames(), session.ambient());
    let mut running = session.prompt("%hang").await.unwrap();
    rig.api().wait_for_requests(1, PATIENCE).await.unwrap();
    let later = session.prompt("%say later").await.unwrap();
    let pid = i32::try_from(session.pid().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let killed = Exit::with_signal(9);
    for error in [
        soon(running.outcome()).await.unwrap_err(),
        soon(later.watch().outcome()).await.unwrap_err(),
        soon(session.wait_run_end(Duration::from_secs(3600)))
            .await
            .unwrap_err(),
        soon(session.wait_ended()).await,
        soon(session.mcp_status()).await.unwrap_err(),
    ] {
        assert_eq!(error.exit(), Some(killed), "{error}");
    }
    while soon(frames.next()).await.is_some() {}
    while soon(ambient.next()).await.is_some() {}
    none_left(&rig).await;
}

/// The program forgets the session, while a command runs and while nothing does.
async fn dropped_without_close_leaves_nothing() {
    let rig = Rig::start().await;
    let options = || {
        rig.options()
            .permissions(Policy::allow_all())
            .close_grace(Duration::from_millis(300))
    };
    let idle = options().start().await.unwrap();
    drop(idle);
    let busy = options().start().await.unwrap();
    let mut running = busy
        .prompt(format!("{}\n%say over", bash("tail -f /dev/null")))
        .await
        .unwrap();
    super::flow::until(&mut running, "use Bash").await;
    drop((busy, running));
    none_left(&rig).await;
}

/// Nobody looks before the end, and a turn that ended well stays so.
async fn an_outcome_from_before_the_end_is_kept() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut running = session.prompt("%say fine").await.unwrap();
    let outcome = end(&mut running).await;
    soon(session.close()).await.unwrap();
    assert_eq!(
        (outcome.result_text(), end(&mut running).await.result_text()),
        ("fine", "fine")
    );
    none_left(&rig).await;
}

on_both_runtimes!(
    a_question_is_answered_while_thousands_of_messages_wait_unread,
    requests_in_a_row_are_answered_and_the_turn_goes_on,
    a_cli_that_talks_on_stderr_is_drained,
    a_kill_in_mid_turn_reaches_everybody,
    dropped_without_close_leaves_nothing,
    an_outcome_from_before_the_end_is_kept,
);
