//! Ending turns at awkward moments, with a paused clock.

use std::future::Future as _;
use std::task::Poll;
use std::time::Duration;

use outrigger::permissions::PermissionResult;
use outrigger::testing::sim::fault::{At, Effect, Schedule};
use outrigger::testing::{Faulty, Simulated};
use outrigger::{Phase, Verdict};
use outrigger_sim::peer::faulty::frames;
use outrigger_sim::peer::{Match, Steps};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::mcp::cli::Cli;
use crate::support::{PATIENCE, reaching};

const FOR_EVER: Duration = Duration::from_secs(10_000_000);

/// The CLI does not take the prompt back, never reports its turn, and goes on writing.
#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_neither_taken_back_nor_begun_is_given_up() {
    let taken_up = Steps::new()
        .patience(FOR_EVER)
        .initialize()
        .expect(Match::kind("user"));
    let interrupted = || {
        Steps::new()
            .expect(Match::request("interrupt"))
            .reply(json!({"still_queued": []}))
    };
    let refused = || {
        let refused = Steps::new()
            .expect(Match::request("cancel_async_message"))
            .reply(json!({"cancelled": false}));
        let noise =
            || json!({"type": "system", "subtype": "task_progress", "task_id": "t", "session_id": "s"});
        (0..300).fold(refused, |steps, _| {
            steps.sleep(Duration::from_millis(100)).send(noise())
        })
    };
    let with_watchdog = taken_up.then(interrupted()).then(refused()).sleep(FOR_EVER);
    let (options, running) = reaching(with_watchdog.spawn_in_memory());
    let session = options
        .first_token_deadline(Duration::from_secs(20))
        .start()
        .await
        .unwrap();
    let begun = Instant::now();
    let mut turn = session.prompt("anything").await.unwrap();
    let error = timeout(FOR_EVER / 100, turn.outcome())
        .await
        .expect("it ends")
        .unwrap_err();
    assert_eq!(error.stalled(), Some(Phase::FirstToken), "{error}");
    assert!(error.is_closed());
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    assert!(running.exited().is_some());

    for by_session in [false, true] {
        let taken_up = Steps::new()
            .patience(FOR_EVER)
            .initialize()
            .expect(Match::kind("user"));
        let steps = if by_session {
            taken_up.then(interrupted())
        } else {
            taken_up
        };
        let (options, running) = reaching(steps.then(refused()).spawn_in_memory());
        let session = options.start().await.unwrap();
        let turn = session.prompt("anything").await.unwrap();
        let begun = Instant::now();
        let ending = async {
            match by_session {
                true => session.interrupt().await.map(Some),
                false => turn.cancel().await,
            }
        };
        let error = timeout(FOR_EVER / 100, ending)
            .await
            .expect("it ends")
            .unwrap_err();
        assert!(error.is_timeout() && !error.is_closed(), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
        let lines = running.report().lines;
        let asked = lines
            .iter()
            .filter(|line| line.json["request"]["subtype"] == "cancel_async_message");
        assert_eq!(asked.count(), 1);
    }
}

/// The result of the cancelled turn is in the pipe, and the reader takes it while the cancellation waits for its place among the lines
/// to write.
#[tokio::test(start_paused = true)]
async fn cancelling_a_turn_that_ends_just_then_leaves_the_next_one_alone() {
    let (options, cli) = Cli::new();
    let (session, mut cli, _) = cli.start(options).await;
    let mut first = session.prompt("first").await.unwrap();
    let mut second = session.prompt("second").await.unwrap();
    let is_prompt = |line: &Value| line["type"] == "user";
    let id = cli.next(is_prompt).await["uuid"].as_str().unwrap().to_owned();
    cli.send(frames::lifecycle_of(&id, "started")).await;
    first.next_frame().await.unwrap().unwrap();

    cli.send(frames::result_of(&[&id], "done")).await;
    let cancelled = first.cancel();
    tokio::pin!(cancelled);
    // Without a budget no lock is had at once, so the other tasks come first.
    std::future::poll_fn(|cx| {
        while std::pin::pin!(tokio::task::consume_budget()).poll(cx).is_ready() {}
        assert!(cancelled.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    let (ended, ()) = tokio::join!(cancelled, async {
        let asked = cli.next(|_| true).await;
        assert_eq!(
            asked["request"]["subtype"], "interrupt",
            "it comes before the next prompt"
        );
        cli.reply(&asked, json!({"still_queued": []})).await;
    });
    let outcomes = ended.unwrap().expect("the turn ran").outcomes;
    assert_eq!(outcomes[0].verdict(), &Verdict::Completed);
    let id = cli.next(is_prompt).await["uuid"].as_str().unwrap().to_owned();
    cli.send(frames::lifecycle_of(&id, "started")).await;
    cli.send(frames::result_of(&[&id], "done")).await;
    assert_eq!(second.outcome().await.unwrap().verdict(), &Verdict::Completed);
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_turn_after_the_session_has_ended_says_so_unless_the_turn_ended_first() {
    let script = Steps::new()
        .initialize()
        .expect(Match::prompt("first"))
        .send(json!({"type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "result": "done"}))
        .expect(Match::prompt("second"))
        .die(9);
    let (options, _running) = reaching(script.spawn_in_memory());
    let session = options.start().await.unwrap();
    let mut first = session.prompt("first").await.unwrap();
    first.outcome().await.unwrap();
    let second = session.prompt("second").await.unwrap();
    session.wait_ended().await;
    assert!(second.cancel().await.unwrap_err().is_closed());
    assert!(first.cancel().await.unwrap().is_none());
}

/// Nothing else wakes who waits for the end of the run.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_withdrawn_ends_the_run() {
    let minute = Duration::from_secs(60);
    let withdrawn = Steps::new()
        .patience(FOR_EVER)
        .initialize()
        .send(frames::ask("q", "Bash"))
        .sleep(minute)
        .send(frames::withdraw("q"));
    let (options, _running) = reaching(withdrawn.spawn_in_memory());
    let session = options
        .can_use_tool(|_| std::future::pending::<PermissionResult>())
        .start()
        .await
        .unwrap();
    while session.stats().unanswered_by_us == 0 {
        tokio::task::yield_now().await;
    }
    // The ceiling does not count while the request is open.
    let run = timeout(2 * minute, session.wait_run_end(minute / 2)).await;
    run.expect("it wakes").unwrap();
}

/// A CLI that does not report the life of prompts says only in its reply that it has taken one back.
#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_taken_back_ends_even_if_nobody_waits_for_that() {
    let cli = Simulated::agent(|agent| agent);
    let silent = Schedule::new(0).with(Effect::Drop {}, At::kind("command_lifecycle"));
    let faulty = Faulty::new(cli.clone(), silent).unwrap();
    let session = cli.options().transport(faulty).start().await.unwrap();
    let mut running = session.prompt("%slow 100 chunk=1\n%say abcdef").await.unwrap();
    let mut queued = session.queue("%say never").await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    // It is dropped once it has asked.
    assert!(timeout(Duration::ZERO, queued.cancel()).await.is_err());
    let ended = timeout(PATIENCE, queued.outcome())
        .await
        .expect("it ends")
        .unwrap();
    assert_eq!(ended.verdict(), &Verdict::Cancelled);
    assert_eq!(running.outcome().await.unwrap().result_text(), "abcdef");
}
