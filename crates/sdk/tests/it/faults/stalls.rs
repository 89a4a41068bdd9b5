//! It lives, and nothing happens.

use std::time::Duration;

use outrigger::transport::Exit;
use outrigger::{Options, Phase, Verdict};
use outrigger_sim::peer::faulty::{FaultyScript, FaultyStep, Grandchild, frames};
use serde_json::json;

use super::stand::{Stand, on_both_runtimes, read, turn};

const SHORT: Duration = Duration::from_millis(150);

fn impatient(stand: &Stand) -> Options {
    stand
        .options()
        .first_token_deadline(SHORT)
        .between_events_deadline(SHORT)
        .interrupt_deadline(SHORT)
        .close_grace(SHORT)
        .term_grace(SHORT)
}

/// A turn up to where it stalls.
fn up_to(phase: Phase) -> FaultyScript {
    let begun = FaultyScript::new().initialize().prompt();
    if phase == Phase::FirstToken {
        return begun;
    }
    let [message, block] = frames::stream_begins();
    begun.line(message).line(block).line(frames::delta("so far"))
}

async fn a_stall_ends_the_turn_and_the_session_goes_on() {
    for phase in [Phase::FirstToken, Phase::BetweenEvents] {
        let stand = Stand::new(
            &up_to(phase)
                .request("interrupt")
                .reply(json!({"still_queued": []}))
                .line(frames::aborted())
                .line(frames::lifecycle("completed"))
                .turn("next"),
        );
        let session = impatient(&stand)
            .include_partial_messages(true)
            .start()
            .await
            .unwrap();
        let mut stalled = session.prompt("go").await.unwrap();
        let error = stalled.outcome().await.unwrap_err();
        assert_eq!(error.stalled(), Some(phase), "{error}");
        assert_eq!(error.outcome().unwrap().verdict(), &Verdict::Interrupted);
        assert!(error.is_transient());
        assert_eq!(turn(&session, "go").await.1.result_text(), "next");
        stand.closed(session).await;
    }
}

/// It confirms no interrupt and ignores SIGTERM, and so do its children.
async fn a_stall_that_nothing_ends_is_killed_with_its_family() {
    for phase in [Phase::FirstToken, Phase::BetweenEvents] {
        let deaf = Grandchild {
            survives: true,
            own_session: true,
            holds_pipes: false,
        };
        let stand = Stand::new(
            &FaultyScript::new()
                .grandchild(deaf)
                .step(FaultyStep::Survive)
                .then(up_to(phase))
                .step(FaultyStep::Hold),
        );
        let session = impatient(&stand).start().await.unwrap();
        let mut stalled = session.prompt("go").await.unwrap();
        let error = stalled.outcome().await.unwrap_err();
        assert_eq!(error.stalled(), Some(phase), "{error}");
        let ended = session.wait_ended().await;
        assert_eq!(ended.exit(), Some(Exit::with_signal(9)), "{ended}");
        assert!(session.prompt("late").await.unwrap_err().is_closed());
        stand.gone().await;
    }
}

/// A tool that runs, and a question to the host, have no deadline.
async fn a_tool_and_a_question_may_take_longer() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .prompt()
            .line(frames::tool_use("t1", "Bash", json!({"command": "make"})))
            .request("made")
            .reply(json!({}))
            .line(frames::tool_result("t1", "made"))
            .line(frames::tool_use("t2", "Bash", json!({"command": "rm"})))
            .ask("q", "Bash")
            .answer_to("q")
            .line(frames::tool_result("t2", "no"))
            .result("fine"),
    );
    let session = impatient(&stand)
        .can_use_tool(|_| async {
            tokio::time::sleep(3 * SHORT).await;
            outrigger::permissions::PermissionResult::deny("no")
        })
        .start()
        .await
        .unwrap();
    let mut running = session.prompt("go").await.unwrap();
    // Longer than any deadline for the model; that nothing happened shows only by waiting.
    tokio::time::sleep(3 * SHORT).await;
    session.raw_request("made", json!({})).await.unwrap();
    let (told, outcome) = read(&mut running).await;
    assert_eq!((told.len(), outcome.result_text()), (4, "fine"));
    let interrupts = stand
        .received()
        .iter()
        .filter(|line| line["request"]["subtype"] == "interrupt")
        .count();
    assert_eq!(interrupts, 0);
    stand.closed(session).await;
}

on_both_runtimes!(
    a_stall_ends_the_turn_and_the_session_goes_on,
    a_stall_that_nothing_ends_is_killed_with_its_family,
    a_tool_and_a_question_may_take_longer,
);
