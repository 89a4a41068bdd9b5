//! A model that says nothing, behind the real CLI.

use std::time::Duration;

use outrigger::{Options, Phase, Policy, Verdict};

use super::rig::{PATIENCE, Rig, turn};

const SHORT: Duration = Duration::from_millis(700);

/// Runs a prompt whose turn must stall, and then another that must not.
async fn stalls(rig: &Rig, options: Options, prompt: &str, phase: Phase) {
    let session = options.start().await.unwrap();
    let mut stalled = session.prompt(prompt).await.unwrap();
    let error = tokio::time::timeout(PATIENCE, stalled.outcome())
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.stalled(), Some(phase), "{error}");
    assert!(!error.is_closed(), "the session goes on: {error}");
    assert_eq!(error.outcome().unwrap().verdict(), &Verdict::Interrupted);
    let id = session.id().unwrap();
    session.close().await.unwrap();

    // With deadlines that suit the machine, the conversation is taken up again.
    let session = rig.options().resume(id).start().await.unwrap();
    let (seen, outcome) = turn(&session, "%say here again").await;
    assert_eq!(seen, ["text here again"]);
    assert_eq!(outcome.verdict(), &Verdict::Completed);
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_model_that_does_not_begin_is_given_up() {
    let rig = Rig::start().await;
    let options = rig.options().first_token_deadline(SHORT);
    stalls(&rig, options, "%hang", Phase::FirstToken).await;
}

#[tokio::test]
async fn a_model_that_stops_in_mid_answer_is_given_up() {
    let rig = Rig::start().await;
    let options = rig
        .options()
        .include_partial_messages(true)
        .between_events_deadline(SHORT);
    stalls(&rig, options, "%hang\n%say half of", Phase::BetweenEvents).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_tool_may_take_longer_than_the_model() {
    let rig = Rig::start().await;
    let options = rig
        .options()
        .include_partial_messages(true)
        .permissions(Policy::allow_all())
        .between_events_deadline(SHORT);
    let session = options.start().await.unwrap();
    let (seen, outcome) = turn(&session, "%tool Bash {\"command\":\"sleep 2\"}\n%say done").await;
    assert_eq!(seen[..2], ["use Bash", "result ok"]);
    assert_eq!(
        (outcome.verdict(), outcome.result_text()),
        (&Verdict::Completed, "done")
    );
    session.close().await.unwrap();
}
