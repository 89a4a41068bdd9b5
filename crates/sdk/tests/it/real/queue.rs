//! Prompts that meet each other.

use outrigger::{Prompt, Verdict};
use uuid::Uuid;

use super::flow::{end, rest, soon, until};
use super::rig::{PATIENCE, Rig, turn};

/// A turn that runs until its gate is opened, and then says `first`.
const HELD: &str = "%say {{gate:held}}first";

#[tokio::test(flavor = "multi_thread")]
async fn prompts_that_are_sent_together_get_turns_of_their_own_in_order() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut turns = Vec::new();
    for number in 0..4 {
        turns.push(session.prompt(format!("%say {number}")).await.unwrap());
    }
    for (number, turn) in turns.iter_mut().enumerate() {
        let (seen, outcome) = rest(turn).await;
        assert_eq!(seen, [format!("text {number}")]);
        assert_eq!(outcome.prompts(), [turn.id().to_string()]);
    }
    assert_eq!(session.usage().results, 4);
}

#[tokio::test]
async fn prompts_that_wait_at_the_cli_are_merged_and_share_the_outcome() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut first = session.prompt(HELD).await.unwrap();
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    let mut second = session.queue("also").await.unwrap();
    let mut third = session.queue("%say both").await.unwrap();
    // The CLI has read them once it answers what was written behind them.
    soon(session.mcp_status()).await.unwrap();
    rig.api().gate("held").open();
    assert_eq!(end(&mut first).await.prompts(), [first.id().to_string()]);
    let (outcome, same) = (end(&mut second).await, end(&mut third).await);
    assert_eq!((outcome.result_text(), same.result_text()), ("both", "both"));
    let mut prompts = outcome.prompts().to_vec();
    prompts.sort();
    let mut expected = vec![second.id().to_string(), third.id().to_string()];
    expected.sort();
    assert_eq!(prompts, expected);
    assert_eq!(session.usage().results, 2);
}

#[tokio::test]
async fn steering_is_folded_into_the_running_turn() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut first = session
        .prompt("%say {{gate:held}}look\n%+tool Bash {\"command\":\"echo hi\"}\n%say done")
        .await
        .unwrap();
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    let mut steered = session.steer("mind the gap").await.unwrap();
    soon(session.mcp_status()).await.unwrap();
    rig.api().gate("held").open();
    let (seen, outcome) = rest(&mut first).await;
    assert_eq!(seen, ["text look", "use Bash", "result ok", "text done"]);
    let same = end(&mut steered).await;
    assert_eq!(
        (outcome.result_text(), same.result_text(), outcome.prompts().len()),
        ("done", "done", 2)
    );
    assert_eq!(session.usage().results, 1);
    let last = rig.api().message_requests().pop().unwrap();
    assert!(last.body["messages"].to_string().contains("mind the gap"));
    assert_eq!(turn(&session, "%say next").await.1.prompts().len(), 1);
}

#[tokio::test]
async fn steering_without_a_boundary_ahead_gets_a_turn() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut first = session.prompt(HELD).await.unwrap();
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    let mut steered = session.steer("%say second").await.unwrap();
    soon(session.mcp_status()).await.unwrap();
    rig.api().gate("held").open();
    assert_eq!(rest(&mut first).await.0, ["text first"]);
    let (seen, outcome) = rest(&mut steered).await;
    assert_eq!(
        (seen, outcome.prompts().len()),
        (vec!["text second".to_owned()], 1)
    );
    // And with nothing running, steering is a prompt like any other.
    let mut idle = session.steer("%say third").await.unwrap();
    assert_eq!(end(&mut idle).await.result_text(), "third");
}

#[tokio::test]
async fn a_prompt_for_now_displaces_the_running_turn() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut first = session.prompt("%say begun {{gate:held}}never").await.unwrap();
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    let mut now = session.prompt_now("%say now").await.unwrap();
    let (seen, outcome) = rest(&mut now).await;
    assert_eq!(
        (seen, outcome.verdict()),
        (vec!["text now".to_owned()], &Verdict::Completed)
    );
    assert_eq!(outcome.prompts(), [now.id().to_string()]);
    let displaced = end(&mut first).await;
    assert_eq!(displaced.verdict(), &Verdict::Interrupted);
    assert!(!displaced.is_success());
    assert_eq!(turn(&session, "%say next").await.0, ["text next"]);
}

#[tokio::test]
async fn waiting_prompts_can_be_taken_back() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut first = session.prompt(HELD).await.unwrap();
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    let mut held = session.prompt("%say held here").await.unwrap();
    let mut queued = session.queue("%say queued there").await.unwrap();
    for waiting in [&mut held, &mut queued] {
        assert!(soon(waiting.cancel()).await.unwrap().is_none());
        assert_eq!(end(waiting).await.verdict(), &Verdict::Cancelled);
        assert!(soon(waiting.cancel()).await.unwrap().is_none(), "again");
    }
    rig.api().gate("held").open();
    assert_eq!(end(&mut first).await.result_text(), "first");
    assert_eq!(turn(&session, "%say next").await.0, ["text next"]);
    assert_eq!(rig.api().message_requests().len(), 2);
}

#[tokio::test]
async fn cancelling_a_running_turn_interrupts_it() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut first = session.prompt(HELD).await.unwrap();
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    let interrupted = soon(first.cancel()).await.unwrap().expect("it was running");
    assert_eq!(interrupted.outcomes.len(), 1);
    assert_eq!(end(&mut first).await.verdict(), &Verdict::Interrupted);
}

#[tokio::test]
async fn an_id_that_was_used_is_refused_rather_than_waited_for() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let id = Uuid::new_v4();
    let prompt = || Prompt::text("%say once").uuid(id);
    let mut first = session.prompt(prompt()).await.unwrap();
    assert!(
        session.prompt(prompt()).await.unwrap_err().is_invalid(),
        "while it is open"
    );
    let outcome = end(&mut first).await;
    assert_eq!(outcome.prompts(), [id.to_string()]);
    let error = session.queue(prompt()).await.unwrap_err();
    assert!(
        error.is_invalid() && error.to_string().contains(&id.to_string()),
        "{error}"
    );
    assert_eq!(turn(&session, "%say next").await.0, ["text next"]);
}

#[tokio::test]
async fn replayed_prompts_confuse_nobody() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .extra_arg("replay-user-messages", None)
        .start()
        .await
        .unwrap();
    let mut replays = 0;
    let mut frames = session.frames();
    for number in 0..3 {
        let (seen, outcome) = turn(&session, &format!("%say {number}")).await;
        assert_eq!(
            (seen, outcome.prompts().len()),
            (vec![format!("text {number}")], 1)
        );
    }
    let mut first = session.prompt(HELD).await.unwrap();
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    let mut queued = session.queue("%say queued").await.unwrap();
    soon(session.mcp_status()).await.unwrap();
    rig.api().gate("held").open();
    assert_eq!(until(&mut first, "text first").await, ["text first"]);
    assert_eq!(rest(&mut queued).await.0, ["text queued"]);
    session.close().await.unwrap();
    while let Some(frame) = soon(frames.next()).await {
        replays += usize::from(frame.unwrap().text().contains("\"isReplay\":true"));
    }
    assert_eq!(replays, 5);
}

#[tokio::test]
async fn an_id_from_before_the_session_was_resumed_gets_no_result() {
    let rig = Rig::start().await;
    let id = Uuid::new_v4();
    let prompt = || Prompt::text("%say once").uuid(id);
    let session = rig.session().await;
    let mut first = session.prompt(prompt()).await.unwrap();
    end(&mut first).await;
    drop(first);
    let name = session.id().unwrap();
    soon(session.close()).await.unwrap();

    let session = rig.options().resume(name).start().await.unwrap();
    let mut again = session.prompt(prompt()).await.unwrap();
    assert_eq!(end(&mut again).await.verdict(), &Verdict::NoResult);
    assert_eq!(turn(&session, "%say next").await.0, ["text next"]);
    assert_eq!(rig.api().message_requests().len(), 2);
}
