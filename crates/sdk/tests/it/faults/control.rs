//! The CLI answers control requests in other ways than it should.

use std::time::Duration;

use outrigger_sim::peer::faulty::{FaultyScript, frames};
use serde_json::json;

use super::stand::{Stand, on_both_runtimes, read, turn};

async fn an_error_answer_is_an_error() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .request("set_permission_mode")
            .line(frames::error("$request", "no such mode"))
            .turn("fine"),
    );
    let session = stand.session().await;
    let error = session
        .raw_request("set_permission_mode", json!({"mode": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.as_refusal().unwrap().message, "no such mode");
    let (_, outcome) = turn(&session, "go").await;
    assert_eq!(outcome.result_text(), "fine");
    stand.closed(session).await;
}

/// While nobody reads any stream of the session.
async fn of_150_requests_in_a_row_each_gets_its_answer() {
    let one = FaultyScript::new()
        .repeat(20, FaultyScript::new().say("unread"))
        .request("mcp_status")
        .reply(json!({"n": "$i"}));
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .prompt()
            .repeat(150, one)
            .result("fine"),
    );
    let session = stand.session().await;
    let mut running = session.prompt("go").await.unwrap();
    for number in 0..150 {
        let reply = session.raw_request("mcp_status", json!({})).await.unwrap();
        let reply: serde_json::Value = reply.decode().unwrap();
        assert_eq!(reply["n"], number.to_string());
    }
    let (told, outcome) = read(&mut running).await;
    assert_eq!((told.len(), outcome.result_text()), (3000, "fine"));
    stand.closed(session).await;
}

/// Answered in the opposite order, all at once.
async fn answers_in_another_order_reach_whom_they_answer() {
    let mut script = FaultyScript::new().initialize();
    for _ in 0..20 {
        script = script.request("mcp_status");
    }
    // The ids of the 20, behind that of `initialize`.
    for number in (1..=20).rev() {
        let id = format!("$request.{number}");
        script = script.line(frames::success(&id, json!({"id": id})));
    }
    let stand = Stand::new(&script);
    let session = stand.session().await;
    let asked = (0..20).map(|_| {
        let session = session.clone();
        tokio::spawn(async move { session.raw_request("mcp_status", json!({})).await.unwrap() })
    });
    let mut ids = Vec::new();
    for reply in asked.collect::<Vec<_>>() {
        let reply: serde_json::Value = reply.await.unwrap().decode().unwrap();
        ids.push(reply["id"].as_str().unwrap().to_owned());
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 20, "nobody got another's answer");
    stand.closed(session).await;
}

async fn a_request_that_is_never_answered_is_given_up_and_the_session_lives() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .request("mcp_status")
            .take(json!({"type": "control_cancel_request", "request_id": "$request"}))
            // It comes late, twice, and for somebody who never asked.
            .line(frames::success("$request", json!({"too": "late"})))
            .line(frames::success("$request", json!({"too": "late"})))
            .line(frames::success("nobody", json!({})))
            .line(json!({"type": "control_response"}))
            .line(json!({"type": "control_response", "response": {"subtype": "never_seen", "request_id": 5}}))
            .turn("fine"),
    );
    let session = stand
        .options()
        .control_deadline(Duration::from_millis(200))
        .start()
        .await
        .unwrap();
    let error = session.raw_request("mcp_status", json!({})).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    let (_, outcome) = turn(&session, "go").await;
    assert_eq!(outcome.result_text(), "fine");
    let stats = session.stats();
    assert_eq!((stats.unanswered_by_cli, stats.unmatched_responses), (0, 5));
    stand.closed(session).await;
}

async fn a_second_answer_changes_nothing() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .request("mcp_status")
            .reply(json!({"first": true}))
            .line(frames::error("$request", "second"))
            .request("mcp_status")
            .reply(json!({"third": true})),
    );
    let session = stand.session().await;
    for expected in [r#"{"first":true}"#, r#"{"third":true}"#] {
        let reply = session.raw_request("mcp_status", json!({})).await.unwrap();
        assert_eq!(reply.get(), expected);
    }
    assert_eq!(session.stats().unmatched_responses, 1);
    stand.closed(session).await;
}

/// Slow, but in time: what comes before the answer is not lost, and questions in it are answered.
async fn requests_of_the_cli_before_initialize_is_answered_are_served() {
    let stand = Stand::new(
        &FaultyScript::new()
            .request("initialize")
            .ask("early", "Bash")
            .answer_to("early")
            .line(json!({"type": "keep_alive"}))
            .line(frames::initialized())
            .turn("fine"),
    );
    let session = stand.session().await;
    let (_, outcome) = turn(&session, "go").await;
    assert_eq!(outcome.result_text(), "fine");
    session.close().await.unwrap();
    assert_eq!(stand.answers().len(), 1);
    stand.gone().await;
}

/// An interrupt that is never confirmed, and one that is confirmed but ends nothing, have deadlines; the session is not blocked
/// by them.
async fn interrupts_that_do_nothing_are_given_up() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .prompt()
            .request("interrupt")
            .take(json!({"type": "control_cancel_request", "request_id": "$request"}))
            .request("interrupt")
            .reply(json!({"still_queued": []}))
            .request("over")
            .reply(json!({}))
            .result("ended by itself")
            .turn("next"),
    );
    let session = stand
        .options()
        .interrupt_deadline(Duration::from_millis(200))
        .start()
        .await
        .unwrap();
    let mut running = session.prompt("go").await.unwrap();
    assert!(running.next().await.is_some());
    for _ in 0..2 {
        let error = session.interrupt().await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
    }
    session.raw_request("over", json!({})).await.unwrap();
    assert_eq!(running.outcome().await.unwrap().result_text(), "ended by itself");
    let (_, outcome) = turn(&session, "go").await;
    assert_eq!(outcome.result_text(), "next");
    stand.closed(session).await;
}

on_both_runtimes!(
    an_error_answer_is_an_error,
    of_150_requests_in_a_row_each_gets_its_answer,
    answers_in_another_order_reach_whom_they_answer,
    a_request_that_is_never_answered_is_given_up_and_the_session_lives,
    a_second_answer_changes_nothing,
    requests_of_the_cli_before_initialize_is_answered_are_served,
    interrupts_that_do_nothing_are_given_up,
);
