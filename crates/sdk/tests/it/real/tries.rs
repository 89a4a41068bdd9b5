//! Turns that are repeated, and turns with a time in all.

use std::time::Duration;

use outrigger::{Cause, Event, Outcome, Phase, Retry, RetryEvent, Retrying, Verdict};
use outrigger_sim::api::ApiError;

use super::rig::{PATIENCE, Rig, turn};

async fn ended(turn: &mut Retrying) -> Outcome {
    let ended = tokio::time::timeout(PATIENCE, turn.outcome());
    ended.await.expect("in time").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_fails_for_what_passes_is_repeated() {
    let rig = Rig::start().await;
    let options = rig.options().env("CLAUDE_CODE_MAX_RETRIES", "0");
    let session = options.start().await.unwrap();
    let soon = Retry::new().delays(Duration::from_millis(50), Duration::from_millis(200));
    for (status, cause) in [(529, Cause::Api { status: Some(529) }), (429, Cause::RateLimit)] {
        rig.api().push(ApiError::new(status));
        let mut turn = session
            .prompt_retrying("%say whole answer", soon.clone())
            .await
            .unwrap();
        let answer = tokio::time::timeout(PATIENCE, turn.answer())
            .await
            .expect("in time")
            .unwrap();
        assert_eq!(answer.text(), "whole answer");
        let [failed] = turn.failed() else {
            panic!("{:?}", turn.failed())
        };
        assert_eq!((failed.error.cause(), failed.tools), (Some(cause), false));
    }
    // A connection that breaks each time.
    let (mut turn, retry) = (None, soon.clone().tries(2));
    for fault in ["%drop n=99", "%cut n=99"] {
        let prompt = format!("{fault}\n%say never");
        let turn = turn.insert(session.prompt_retrying(prompt, retry.clone()).await.unwrap());
        let outcome = ended(turn).await;
        assert_eq!(
            outcome.cause(),
            Some(Cause::ConnectionFailed),
            "{:?}",
            outcome.error_text()
        );
        assert_eq!(turn.failed().len(), 1, "{fault}");
    }
    // What stays.
    let mut turn = session
        .prompt_retrying("%error 400 n=99", soon.clone())
        .await
        .unwrap();
    assert_eq!(
        ended(&mut turn).await.cause(),
        Some(Cause::Api { status: Some(400) })
    );
    assert!(turn.failed().is_empty());
    // What passes, behind a tool that ran.
    let prompt = "%tool Bash {\"command\":\"true\"}\n%error 529 n=99\n%say never";
    let mut turn = session.prompt_retrying(prompt, soon).await.unwrap();
    let mut ran = false;
    while let Some(event) = turn.next().await {
        ran |= matches!(event, RetryEvent::Event(Event::ToolResult(_)));
    }
    let outcome = ended(&mut turn).await;
    assert!(ran && outcome.is_transient(), "{outcome:?}");
    assert!(turn.failed().is_empty());
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_and_a_run_end_when_their_time_is_over() {
    let rig = Rig::start().await;
    let options = rig.options().turn_deadline(Duration::from_secs(3));
    let session = options.start().await.unwrap();
    let error = session
        .prompt("%hang\n%say begun")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap_err();
    assert_eq!(
        (error.stalled(), error.cause()),
        (Some(Phase::Turn), Some(Cause::DeadlinePassed))
    );
    assert_eq!(error.outcome().unwrap().verdict(), &Verdict::Interrupted);
    assert_eq!(turn(&session, "%say on").await.0, ["text on"]);
    session.set_run_deadline(Duration::from_secs(2));
    let ended = tokio::time::timeout(PATIENCE, session.wait_ended())
        .await
        .expect("in time");
    assert_eq!(
        (ended.stalled(), ended.cause()),
        (Some(Phase::Run), Some(Cause::DeadlinePassed))
    );
}
