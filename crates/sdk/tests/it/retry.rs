//! Turns that fail for a cause that passes are repeated, and others are not.

use std::time::Duration;

use outrigger::{AfterTools, Cause, Event, Phase, Retry, RetryEvent, Retrying, Session, Verdict};
use outrigger_sim::peer::{Agent, Match, Steps};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cancel::{Cancel, When};
use crate::support::{reaching, session};

const SESSION: &str = "00000000-0000-4000-8000-000000000001";

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": SESSION, "uuid": "u"})
}

fn failed(status: u16) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": true, "terminal_reason": "api_error", "api_error_status": status,
        "result": format!("API Error: {status}"), "num_turns": 1, "session_id": SESSION, "total_cost_usd": 0.0})
}

fn done() -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed", "result": "done",
        "num_turns": 1, "session_id": SESSION, "total_cost_usd": 0.0})
}

fn tool() -> Value {
    json!({"type": "assistant", "session_id": SESSION, "uuid": "a", "parent_tool_use_id": null, "message": {"id": "m", "type": "message",
        "role": "assistant", "model": "x", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]}})
}

fn limit(resets_at: u64) -> Value {
    json!({"type": "rate_limit_event", "session_id": SESSION, "uuid": "l",
        "rate_limit_info": {"status": "rejected", "resetsAt": resets_at}})
}

/// A CLI whose turns bring these frames, with the prompts that it has to get.
async fn scripted(turns: Vec<(&str, Vec<Value>)>) -> (Session, std::sync::Arc<outrigger_sim::peer::Running>) {
    let mut steps = Steps::new()
        .patience(Duration::from_secs(10_000_000))
        .initialize();
    for (prompt, frames) in turns {
        steps = steps.expect(Match::prompt(prompt)).send(init());
        for frame in frames {
            steps = steps.send(frame);
        }
    }
    let (options, running) = reaching(steps.expect_end().exit(0).spawn_in_memory());
    (options.start().await.unwrap(), running)
}

/// How it ended, and the waits before.
async fn tried(session: &Session, retry: Retry) -> (Retrying, outrigger::Result<outrigger::Outcome>) {
    let mut turn = session.prompt_retrying("do it", retry).await.unwrap();
    let ended = turn.outcome().await;
    (turn, ended)
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_repeated_and_waited_for() {
    let (session, running) = scripted(vec![
        ("do it", vec![failed(529)]),
        ("do it", vec![failed(500)]),
        ("do it", vec![done()]),
    ])
    .await;
    let began = Instant::now();
    let mut turn = session.prompt_retrying("do it", Retry::new()).await.unwrap();
    let mut waits = Vec::new();
    while let Some(event) = turn.next().await {
        if let RetryEvent::Failed(failed) = event {
            assert!(turn.turn().is_none() && !failed.tools);
            waits.push((failed.error.cause(), failed.wait));
        }
    }
    let causes: Vec<_> = waits.iter().map(|(cause, _)| cause.clone()).collect();
    let api = |status| Some(Cause::Api { status: Some(status) });
    assert_eq!(causes, [api(529), api(500)]);
    let waited: Duration = waits.iter().map(|(_, wait)| *wait).sum();
    assert!(
        began.elapsed() >= waited && waited >= Duration::from_millis(7400),
        "{waits:?}"
    );
    assert_eq!(turn.failed().len(), 2);
    assert_eq!(turn.answer().await.unwrap().text(), "done");
    session.close().await.unwrap();
    running.report().verdict.unwrap();
}

/// A time may mean for ever.
#[tokio::test(start_paused = true)]
async fn a_limit_of_any_length_is_waited_for() {
    let (session, _running) = scripted(vec![("do it", vec![limit(1 << 62), failed(429)])]).await;
    let retry = Retry::new().within(Duration::MAX);
    let mut turn = session.prompt_retrying("do it", retry).await.unwrap();
    let failed = loop {
        if let RetryEvent::Failed(failed) = turn.next().await.unwrap() {
            break failed;
        }
    };
    assert!(failed.wait > Duration::from_secs(1 << 60), "{:?}", failed.wait);
}

#[tokio::test(start_paused = true)]
async fn what_stays_is_not_repeated() {
    for (status, cause) in [
        (400, Cause::Api { status: Some(400) }),
        (401, Cause::InvalidKey),
        (403, Cause::Api { status: Some(403) }),
        (404, Cause::Api { status: Some(404) }),
    ] {
        let (session, running) = scripted(vec![("do it", vec![failed(status)])]).await;
        let (turn, ended) = tried(&session, Retry::new()).await;
        assert_eq!(ended.unwrap().cause(), Some(cause));
        assert!(turn.failed().is_empty());
        session.close().await.unwrap();
        running.report().verdict.unwrap();
    }
    let changed = |key: &str, value: Value| {
        let mut frame = failed(200);
        frame[key] = value;
        frame["api_error_status"] = Value::Null;
        frame
    };
    for (frame, cause) in [
        (changed("terminal_reason", json!("max_turns")), Cause::MaxTurns),
        (
            changed("terminal_reason", json!("budget_exhausted")),
            Cause::Budget,
        ),
        (changed("stop_reason", json!("refusal")), Cause::Refused),
        (
            changed("result", json!("Not logged in · Please run /login")),
            Cause::NotLoggedIn,
        ),
        (
            changed("result", json!("Credit balance is too low")),
            Cause::Billing,
        ),
        (
            changed("terminal_reason", json!("prompt_too_long")),
            Cause::TooLong,
        ),
    ] {
        let (session, _running) = scripted(vec![("do it", vec![frame])]).await;
        let (turn, ended) = tried(&session, Retry::new()).await;
        assert_eq!(ended.unwrap().cause(), Some(cause));
        assert!(turn.failed().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_tools_may_have_run_is_not_repeated_unless_told_so() {
    let (session, running) = scripted(vec![("do it", vec![tool(), failed(529)])]).await;
    let (turn, ended) = tried(&session, Retry::new()).await;
    assert!(ended.unwrap().is_transient() && turn.failed().is_empty());
    session.close().await.unwrap();
    running.report().verdict.unwrap();

    // The second try uses no tool, and its failure does not make the first one undone.
    let (session, running) = scripted(vec![
        ("do it", vec![tool(), failed(529)]),
        ("go on", vec![failed(529)]),
        ("go on", vec![done()]),
    ])
    .await;
    let then = AfterTools::GoOn("go on".to_owned());
    let (turn, ended) = tried(&session, Retry::new().after_tools(then)).await;
    assert_eq!(ended.unwrap().verdict(), &Verdict::Completed);
    let tools: Vec<_> = turn.failed().iter().map(|failed| failed.tools).collect();
    assert_eq!(tools, [true, false]);
    session.close().await.unwrap();
    running.report().verdict.unwrap();

    let (session, running) = scripted(vec![
        ("do it", vec![tool(), failed(529)]),
        ("do it", vec![done()]),
    ])
    .await;
    let (_, ended) = tried(&session, Retry::new().after_tools(AfterTools::Repeat)).await;
    assert!(ended.unwrap().is_success());
    session.close().await.unwrap();
    running.report().verdict.unwrap();
    let AfterTools::GoOn(text) = AfterTools::go_on() else {
        panic!("no text")
    };
    assert!(text.contains("do not do it again"));
}

#[tokio::test(start_paused = true)]
async fn a_reset_is_waited_for_if_there_is_time() {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let turns = |seconds: u64| {
        vec![
            ("do it", vec![limit(now.as_secs() + seconds), failed(429)]),
            ("do it", vec![done()]),
        ]
    };
    let (session, _running) = scripted(turns(1000)).await;
    let (turn, ended) = tried(&session, Retry::new()).await;
    assert!(ended.unwrap().is_success());
    let wait = turn.failed()[0].wait.as_secs();
    assert!((900..=1005).contains(&wait), "{wait}");

    let began = Instant::now();
    let (session, _running) = scripted(turns(100_000)).await;
    let (turn, ended) = tried(&session, Retry::new()).await;
    assert_eq!(ended.unwrap().cause(), Some(Cause::RateLimit));
    assert!(
        turn.failed().is_empty() && began.elapsed() < Duration::from_secs(5),
        "at once"
    );
}

#[tokio::test(start_paused = true)]
async fn the_simulated_cli_fails_as_often_as_tries_are_allowed() {
    for (fault, cause) in [
        ("%error 529 n=99", Cause::Api { status: Some(529) }),
        ("%error 429 n=99", Cause::RateLimit),
    ] {
        let (session, _running) = session(Agent::builder().max_retries(1)).await;
        let retry = Retry::new().tries(3);
        let mut turn = session
            .prompt_retrying(format!("{fault}\n%say never"), retry)
            .await
            .unwrap();
        let error = turn.answer().await.unwrap_err();
        assert_eq!(error.cause(), Some(cause), "{fault}");
        assert_eq!(turn.failed().len(), 2, "{fault}");
        session.close().await.unwrap();
    }
    // Time in all.
    let (session, _running) = session(Agent::builder().max_retries(0)).await;
    let retry = Retry::new().tries(1000).within(Duration::from_secs(60));
    let began = Instant::now();
    let mut turn = session.prompt_retrying("%error 529 n=99", retry).await.unwrap();
    assert!(turn.outcome().await.unwrap().is_transient());
    assert!(
        began.elapsed() <= Duration::from_secs(61) && turn.failed().len() > 2,
        "{:?}",
        began.elapsed()
    );
    // A model that is silent.
    let (options, _running) = reaching(Agent::builder().directives().spawn_in_memory());
    let session = options
        .first_token_deadline(Duration::from_secs(20))
        .start()
        .await
        .unwrap();
    let mut turn = session
        .prompt_retrying("%hang\n%say ", Retry::new().tries(2))
        .await
        .unwrap();
    let error = turn.outcome().await.unwrap_err();
    assert_eq!(
        (error.stalled(), turn.failed().len()),
        (Some(Phase::FirstToken), 1)
    );
    // A command may do anything.
    let mut turn = session.prompt_retrying("%say x", Retry::new()).await.unwrap();
    assert!(turn.outcome().await.unwrap().is_success());
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_given_up_at_any_point_goes_on_where_it_was() {
    for when in [When::AtOnce, When::Woken, When::Later] {
        for polls in 0..4 {
            let cancel = Cancel { polls, when };
            let (session, running) =
                scripted(vec![("do it", vec![failed(529)]), ("do it", vec![done()])]).await;
            drop(cancel.of(session.prompt_retrying("do it", Retry::new())).await);
            let mut turn = match session.stats().frames {
                _ if polls == 0 => session.prompt_retrying("do it", Retry::new()).await.unwrap(),
                _ => {
                    session.close().await.unwrap();
                    continue;
                }
            };
            let mut failures = 0;
            loop {
                let event = match cancel.of(turn.next()).await {
                    Some(event) => event,
                    None => turn.next().await,
                };
                match event {
                    Some(RetryEvent::Failed(_)) => failures += 1,
                    Some(RetryEvent::Event(Event::Undecodable(..))) => panic!("undecodable"),
                    Some(_) => {}
                    None => break,
                }
            }
            assert_eq!(failures, 1);
            drop(cancel.of(turn.outcome()).await);
            drop(cancel.of(turn.answer()).await);
            assert_eq!(turn.answer().await.unwrap().text(), "done");
            session.close().await.unwrap();
            running.report().verdict.unwrap();
        }
    }
}
