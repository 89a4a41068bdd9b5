//! Nothing hangs: the watchdog of each phase, on a paused clock.

use std::time::Duration;

use outrigger::permissions::PermissionResult;
use outrigger::protocol::outbound::control::McpStatus;
use outrigger::{Cause, Phase, Verdict};
use outrigger_sim::peer::faulty::frames;
use outrigger_sim::peer::{Agent, Match, Steps};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{reaching, session};

const FIRST: Duration = Duration::from_secs(600);
const NEXT: Duration = Duration::from_secs(300);
const FOR_EVER: Duration = Duration::from_secs(10_000_000);

#[tokio::test(start_paused = true)]
async fn a_cli_that_does_not_initialize_is_ended_and_its_last_words_are_kept() {
    let script = Steps::new()
        .patience(FOR_EVER)
        .complain("loading 13 plugins")
        .expect(Match::request("initialize"))
        .sleep(Duration::from_secs(100_000));
    let (options, running) = reaching(script.spawn_in_memory());
    let begun = Instant::now();
    let error = options
        .initialize_deadline(Duration::from_secs(30))
        .start()
        .await
        .unwrap_err();
    assert_eq!(error.stalled(), Some(Phase::Initialize), "{error}");
    assert!(error.is_closed());
    assert_eq!(error.stderr_tail(), Some("loading 13 plugins\n"), "{error}");
    // The deadline, and at most the grace after SIGTERM.
    assert!(begun.elapsed() < Duration::from_secs(36), "{:?}", begun.elapsed());
    assert!(running.exited().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_begin_to_answer_ends_the_turn_and_not_the_session() {
    let (session, _running) = session(Agent::builder()).await;
    let begun = Instant::now();
    let mut turn = session.prompt("%hang\n%say ").await.unwrap();
    let error = turn.outcome().await.unwrap_err();
    assert_eq!(error.stalled(), Some(Phase::FirstToken), "{error}");
    assert!(!error.is_closed());
    assert_eq!(error.outcome().unwrap().verdict(), &Verdict::Interrupted);
    assert!(begun.elapsed() >= FIRST && begun.elapsed() < FIRST + Duration::from_secs(25));
    let (text, outcome) = session
        .prompt("%say on we go")
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert_eq!(
        (text.as_str(), outcome.verdict()),
        ("on we go", &Verdict::Completed)
    );
    session.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stops_in_the_middle_ends_the_turn() {
    let agent = Agent::builder().directives().partial_messages(true);
    let (options, _running) = reaching(agent.spawn_in_memory());
    let session = options.include_partial_messages(true).start().await.unwrap();
    let begun = Instant::now();
    let mut turn = session.prompt("%hang\n%say half of").await.unwrap();
    let error = turn.text().await.unwrap_err();
    assert_eq!(error.stalled(), Some(Phase::BetweenEvents), "{error}");
    assert!(begun.elapsed() >= NEXT && begun.elapsed() < FIRST);
    // Slow is not silent.
    let prompt = "%slow 200000 chunk=1\n%say word";
    let (text, _) = session.prompt(prompt).await.unwrap().text().await.unwrap();
    assert_eq!(text, "word");
}

#[tokio::test(start_paused = true)]
async fn a_cli_that_does_not_end_the_turn_is_ended() {
    let script = Steps::new()
        .patience(FOR_EVER)
        .initialize()
        .expect(Match::kind("user"))
        .send(json!({"type":"system","subtype":"init","session_id":"s-1"}))
        .expect(Match::request("mcp_status"))
        .expect(Match::request("interrupt"))
        .sleep(Duration::from_secs(100_000));
    let (options, running) = reaching(script.spawn_in_memory());
    let session = options
        .first_token_deadline(Duration::from_secs(20))
        .start()
        .await
        .unwrap();
    let mut turn = session.prompt("anything").await.unwrap();
    turn.next_frame().await.unwrap().unwrap();
    let status = McpStatus::new();
    let (turn, run, ended, request) = tokio::join!(
        turn.outcome(),
        session.wait_run_end(Duration::from_secs(50_000)),
        session.wait_ended(),
        session.request_within(&status, FOR_EVER),
    );
    for error in [turn.unwrap_err(), run.unwrap_err(), ended] {
        assert_eq!(error.stalled(), Some(Phase::FirstToken), "{error}");
        assert!(error.is_closed());
    }
    assert_eq!(request.unwrap_err().stalled(), Some(Phase::FirstToken));
    assert!(running.exited().is_some());
    assert_eq!(session.id().as_deref(), Some("s-1"), "to be resumed by");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_the_cli_never_takes_up_is_taken_back() {
    let script = Steps::new()
        .patience(FOR_EVER)
        .initialize()
        .expect(Match::kind("user"))
        .expect(Match::request("interrupt"))
        .reply(json!({"still_queued": []}))
        .expect(Match::request("cancel_async_message"))
        .reply(json!({"cancelled": true}))
        .expect_end()
        .exit(0);
    let (options, running) = reaching(script.spawn_in_memory());
    let session = options.start().await.unwrap();
    let error = session
        .prompt("anything")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap_err();
    assert_eq!(error.stalled(), Some(Phase::FirstToken), "{error}");
    assert_eq!(error.outcome().unwrap().verdict(), &Verdict::Cancelled);
    session.close().await.unwrap();
    running.report().verdict.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_person_may_think_for_days_and_a_tool_may_run_as_long() {
    let day = Duration::from_secs(86_400);
    let (options, _running) = reaching(Agent::builder().directives().spawn_in_memory());
    let session = options
        .can_use_tool(move |_| async move {
            tokio::time::sleep(3 * day).await;
            PermissionResult::allow()
        })
        .start()
        .await
        .unwrap();
    let begun = Instant::now();
    let prompt = "%tool Bash {\"command\":\"touch x\"}\n%say done";
    let (text, outcome) = session.prompt(prompt).await.unwrap().text().await.unwrap();
    assert_eq!((text.as_str(), outcome.verdict()), ("done", &Verdict::Completed));
    assert!(begun.elapsed() >= 3 * day);

    let turn = |text: &str| {
        json!({"type":"assistant","session_id":"s","parent_tool_use_id":null,"message":{
        "id":"m","role":"assistant","content":[{"type":"text","text":text}]}})
    };
    let script = Steps::new()
        .patience(FOR_EVER)
        .initialize()
        .expect(Match::kind("user"))
        .send(json!({"type":"system","subtype":"init","session_id":"s"}))
        .send(
            json!({"type":"assistant","session_id":"s","parent_tool_use_id":null,"message":{
            "id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}),
        )
        .sleep(3 * day)
        .send(
            json!({"type":"user","session_id":"s","parent_tool_use_id":null,"message":{
            "role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"x"}]}}),
        )
        .send(turn("the result is in, and now nothing"))
        .expect(Match::request("interrupt"))
        .sleep(100 * day);
    let (options, _running) = reaching(script.spawn_in_memory());
    let session = options.start().await.unwrap();
    let begun = Instant::now();
    let error = session
        .prompt("anything")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap_err();
    assert_eq!(error.stalled(), Some(Phase::FirstToken), "{error}");
    assert!(begun.elapsed() >= 3 * day && begun.elapsed() < 3 * day + 2 * FIRST);
}

#[tokio::test(start_paused = true)]
async fn who_wants_to_wait_for_ever_may() {
    let (options, _running) = reaching(Agent::builder().directives().spawn_in_memory());
    let session = options.first_token_deadline(None).start().await.unwrap();
    let mut turn = session.prompt("%hang\n%say ").await.unwrap();
    let waited = tokio::time::timeout(Duration::from_secs(1_000_000), turn.outcome()).await;
    assert!(waited.is_err());
    turn.cancel().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_turn_has_its_time_whatever_it_waits_for() {
    let (options, _running) = reaching(Agent::builder().directives().spawn_in_memory());
    let session = options
        .turn_deadline(Duration::from_secs(60))
        .can_use_tool(|_| async move {
            tokio::time::sleep(FOR_EVER).await;
            PermissionResult::allow()
        })
        .start()
        .await
        .unwrap();
    for prompt in [
        "%hang\n%say begun",
        "%tool Bash {\"command\":\"touch x\"}\n%say never",
    ] {
        let begun = Instant::now();
        let error = session.prompt(prompt).await.unwrap().answer().await.unwrap_err();
        assert_eq!(error.stalled(), Some(Phase::Turn), "{error}");
        assert_eq!(error.cause(), Some(Cause::DeadlinePassed));
        assert!(error.is_timeout() && !error.is_closed() && !error.is_transient());
        assert_eq!(error.outcome().unwrap().verdict(), &Verdict::Interrupted);
        let took = begun.elapsed().as_secs();
        assert!((60..80).contains(&took), "{took}");
    }
    // Each turn has its own, and time between turns does not count.
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        let outcome = session
            .prompt("%delay 40000\n%say x")
            .await
            .unwrap()
            .outcome()
            .await
            .unwrap();
        assert_eq!(outcome.verdict(), &Verdict::Completed);
    }
    // Also when prompts wait behind each other.
    let turns = [
        session.prompt("%delay 40000\n%say a").await,
        session.prompt("%delay 40000\n%say b").await,
    ];
    for turn in turns {
        assert!(turn.unwrap().outcome().await.unwrap().is_success());
    }
    session.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_does_not_end_in_its_time_is_killed() {
    let script = Steps::new()
        .patience(FOR_EVER)
        .initialize()
        .expect(Match::kind("user"))
        .send(json!({"type":"system","subtype":"init","session_id":"s-1"}))
        .expect(Match::request("interrupt"))
        .sleep(Duration::from_secs(100_000));
    let (options, running) = reaching(script.spawn_in_memory());
    let session = options
        .turn_deadline(Duration::from_secs(20))
        .start()
        .await
        .unwrap();
    let begun = Instant::now();
    let error = session
        .prompt("anything")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap_err();
    assert!(error.is_closed(), "{error}");
    assert_eq!(
        (error.stalled(), error.cause()),
        (Some(Phase::Turn), Some(Cause::DeadlinePassed))
    );
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert!(running.exited().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_run_has_its_time_in_all_and_the_session_ends() {
    for prompt in ["%hang\n%say begun", "%say nothing runs"] {
        let (options, running) = reaching(Agent::builder().directives().spawn_in_memory());
        let session = options
            .run_deadline(Duration::from_secs(60))
            .start()
            .await
            .unwrap();
        let begun = Instant::now();
        let mut turn = session.prompt(prompt).await.unwrap();
        let turn = turn.outcome().await;
        let ended = session.wait_ended().await;
        assert_eq!(
            (ended.stalled(), ended.cause()),
            (Some(Phase::Run), Some(Cause::DeadlinePassed))
        );
        assert!(ended.is_closed());
        if prompt.contains("hang") {
            let error = turn.unwrap_err();
            assert_eq!(error.cause(), Some(Cause::DeadlinePassed), "{error}");
            assert_eq!(
                error.outcome().unwrap().verdict(),
                &Verdict::Interrupted,
                "it had time to end"
            );
        } else {
            assert!(turn.unwrap().is_success());
        }
        let took = begun.elapsed().as_secs();
        assert!((59..80).contains(&took), "{took}");
        assert!(running.exited().is_some());
        assert_eq!(
            session.prompt("more").await.unwrap_err().cause(),
            Some(Cause::DeadlinePassed)
        );
    }
    // It can be changed, also to none.
    let (options, _running) = reaching(Agent::builder().directives().spawn_in_memory());
    let session = options
        .run_deadline(Duration::from_secs(60))
        .start()
        .await
        .unwrap();
    session.set_run_deadline(Duration::from_secs(600));
    tokio::time::sleep(Duration::from_secs(500)).await;
    session.set_run_deadline(None);
    tokio::time::sleep(Duration::from_secs(500)).await;
    assert!(
        session
            .prompt("%say on")
            .await
            .unwrap()
            .outcome()
            .await
            .unwrap()
            .is_success()
    );
    session.close().await.unwrap();
}

/// What the CLI says between turns, and prompts that end without a result, start no clock.
#[tokio::test(start_paused = true)]
async fn a_prompt_after_a_long_pause_has_all_its_time() {
    let hour = Duration::from_secs(3600);
    let answered = || {
        Steps::new()
            .expect(Match::kind("user"))
            .sleep(Duration::from_secs(60))
            .send_with(|seen| {
                let id = seen.last()["uuid"].as_str().unwrap_or_default();
                frames::result_of(&[id], "done")
            })
    };
    let ended_as = |state: &'static str| {
        Steps::new().expect(Match::kind("user")).send_with(move |seen| {
            let id = seen.last()["uuid"].as_str().unwrap_or_default();
            frames::lifecycle_of(id, state)
        })
    };
    let status = json!({"type": "system", "subtype": "status", "session_id": "s", "permissionMode": "plan"});
    let said = json!({"type": "user", "session_id": "s", "parent_tool_use_id": null, "message": {
        "role": "user", "content": "<local-command-stdout>ok</local-command-stdout>"}});
    for (pause, prompts) in [
        (Steps::new().send(status), 0),
        (Steps::new().send(said), 0),
        (ended_as("completed"), 1),
        (ended_as("cancelled"), 1),
        (ended_as("discarded"), 1),
    ] {
        let steps = Steps::new()
            .patience(FOR_EVER)
            .initialize()
            .then(pause)
            .then(answered());
        let (options, running) = reaching(steps.spawn_in_memory());
        let session = options
            .turn_deadline(Duration::from_secs(120))
            .start()
            .await
            .unwrap();
        for _ in 0..prompts {
            session.prompt("in vain").await.unwrap().outcome().await.unwrap();
        }
        tokio::time::sleep(hour).await;
        let outcome = session.prompt("go").await.unwrap().outcome().await.unwrap();
        assert_eq!(outcome.verdict(), &Verdict::Completed);
        session.close().await.unwrap();
        running.report().verdict.unwrap();
    }
}

/// The time of a request of the CLI is not the model's, and silence after the reply is noticed, whatever other deadline there is.
#[tokio::test(start_paused = true)]
async fn silence_after_a_long_request_is_noticed_with_a_deadline_for_all() {
    let long = 5 * FIRST;
    let script = || {
        Steps::new()
            .patience(FOR_EVER)
            .initialize()
            .expect(Match::kind("user"))
            .send(json!({"type":"system","subtype":"init","session_id":"s"}))
            .send(frames::ask("q", "Bash"))
            .expect(Match::kind("control_response"))
            .expect(Match::request("interrupt"))
            .sleep(FOR_EVER)
    };
    for in_all in [Phase::Turn, Phase::Run] {
        let (options, _running) = reaching(script().spawn_in_memory());
        let options = match in_all {
            Phase::Turn => options.turn_deadline(100 * FIRST),
            _ => options.run_deadline(100 * FIRST),
        };
        let session = options
            .can_use_tool(move |_| async move {
                tokio::time::sleep(long).await;
                PermissionResult::allow()
            })
            .start()
            .await
            .unwrap();
        let begun = Instant::now();
        let mut turn = session.prompt("anything").await.unwrap();
        let error = turn.outcome().await.unwrap_err();
        assert_eq!(error.stalled(), Some(Phase::FirstToken), "{error}");
        let took = begun.elapsed();
        assert!(took >= long + FIRST && took < long + 2 * FIRST, "{took:?}");
    }
}
