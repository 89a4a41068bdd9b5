//! Interrupts, in every phase of a turn.

use std::sync::Mutex;

use outrigger::permissions::PermissionResult;
use outrigger::{Outcome, Policy, Session, Verdict};
use outrigger_sim::api::Reply;
use tokio::sync::oneshot;

use super::flow::{Pipe, bash, end, rest, soon, until};
use super::rig::{PATIENCE, Rig, turn};

/// The turn after an interrupt is its own.
async fn next_is_its_own(session: &Session) {
    let (seen, outcome) = turn(session, "%say mine").await;
    // With partial messages a text comes in pieces.
    assert_eq!(seen.concat().replace("text ", ""), "mine");
    assert_eq!(
        (outcome.verdict(), outcome.prompts().len()),
        (&Verdict::Completed, 1)
    );
}

fn is_interrupted(outcome: &Outcome) {
    assert_eq!(
        outcome.verdict(),
        &Verdict::Interrupted,
        "{:?}",
        outcome.terminal_reason()
    );
    assert!(!outcome.is_success());
}

#[tokio::test]
async fn before_the_first_byte() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    rig.api().push(Reply::new().hold("headers").and_say("never"));
    let mut running = session.prompt("go").await.unwrap();
    rig.api().gate("headers").reached(1, PATIENCE).await.unwrap();
    let interrupted = soon(session.interrupt()).await.unwrap();
    is_interrupted(&interrupted.outcomes[0]);
    let (seen, outcome) = rest(&mut running).await;
    is_interrupted(&outcome);
    assert!(seen.is_empty(), "{seen:?}");
    next_is_its_own(&session).await;
}

#[tokio::test]
async fn while_the_answer_is_written() {
    let rig = Rig::start().await;
    for partial in [false, true] {
        let session = rig
            .options()
            .include_partial_messages(partial)
            .start()
            .await
            .unwrap();
        let gate = format!("middle-{partial}");
        let mut running = session
            .prompt(format!("%say half {{{{gate:{gate}}}}}never"))
            .await
            .unwrap();
        rig.api().gate(&gate).reached(1, PATIENCE).await.unwrap();
        if partial {
            let mut said = String::new();
            while said != "half " {
                let outrigger::Event::Text(text) = soon(running.next()).await.unwrap().unwrap() else {
                    continue;
                };
                said += &text;
            }
        }
        soon(session.interrupt()).await.unwrap();
        let (seen, outcome) = rest(&mut running).await;
        is_interrupted(&outcome);
        // What had come is said once: as it came, or with the end. The CLI need not have read it yet in the other case.
        let expected: &[&str] = if partial { &[""] } else { &["text half ", ""] };
        assert!(expected.contains(&seen.concat().as_str()), "{seen:?}");
        next_is_its_own(&session).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn during_a_command() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let started = Pipe::new(&rig.sandbox().project(), "started");
    let mut running = session
        .prompt(format!(
            "{}\n%say never",
            bash("echo started > started; tail -f /dev/null")
        ))
        .await
        .unwrap();
    assert_eq!(started.read().await, "started\n");
    soon(session.interrupt()).await.unwrap();
    let (seen, outcome) = rest(&mut running).await;
    is_interrupted(&outcome);
    assert_eq!(outcome.terminal_reason(), Some("aborted_tools"));
    assert_eq!(seen, ["use Bash", "result error"]);
    next_is_its_own(&session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn during_a_permission_question() {
    struct Dropped(Option<oneshot::Sender<()>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let rig = Rig::start().await;
    let ((asked, was_asked), (gone, was_dropped)) = (oneshot::channel(), oneshot::channel());
    let once = Mutex::new(Some((asked, Dropped(Some(gone)))));
    let handler = move |_| {
        let (asked, guard) = once.lock().unwrap().take().expect("it is asked once");
        asked.send(()).unwrap();
        async move {
            let _guard = guard;
            std::future::pending::<PermissionResult>().await
        }
    };
    let session = rig.options().permissions(handler).start().await.unwrap();
    let mut frames = session.frames();
    let mut running = session
        .prompt(format!("{}\n%say never", bash("touch x")))
        .await
        .unwrap();
    soon(was_asked).await.unwrap();
    assert_eq!(session.stats().unanswered_by_us, 1);
    soon(session.interrupt()).await.unwrap();
    soon(was_dropped).await.expect("the handler's future is dropped");
    is_interrupted(&end(&mut running).await);
    assert_eq!(session.stats().unanswered_by_us, 0);
    next_is_its_own(&session).await;
    session.close().await.unwrap();
    let mut kinds = Vec::new();
    while let Some(frame) = soon(frames.next()).await {
        kinds.push(frame.unwrap().kind().to_owned());
    }
    let count = |kind: &str| kinds.iter().filter(|seen| *seen == kind).count();
    assert_eq!(
        (count("control_request"), count("control_cancel_request")),
        (1, 1),
        "{kinds:?}"
    );
    assert!(!rig.sandbox().project().join("x").exists());
}

#[tokio::test]
async fn right_behind_the_prompt() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    // The first prompt of a process, and later ones.
    for number in 0..4 {
        let mut running = session
            .prompt(format!("%say {{{{gate:never-{number}}}}}x"))
            .await
            .unwrap();
        let interrupted = soon(session.interrupt()).await.unwrap();
        assert_eq!(interrupted.outcomes.len(), 1, "{number}: {interrupted:?}");
        let outcome = end(&mut running).await;
        assert!(
            matches!(outcome.verdict(), Verdict::Interrupted | Verdict::Cancelled),
            "{number}: {:?}",
            outcome.verdict()
        );
    }
    next_is_its_own(&session).await;
}

#[tokio::test]
async fn right_behind_the_prompt_by_its_turn() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    for number in 0..3 {
        let mut running = session
            .prompt(format!("%say {{{{gate:never-{number}}}}}x"))
            .await
            .unwrap();
        soon(running.cancel()).await.unwrap();
        let outcome = end(&mut running).await;
        assert!(
            matches!(outcome.verdict(), Verdict::Interrupted | Verdict::Cancelled),
            "{:?}",
            outcome.verdict()
        );
    }
    next_is_its_own(&session).await;
}

#[tokio::test]
async fn with_nothing_running_it_does_nothing() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    assert!(soon(session.interrupt()).await.unwrap().outcomes.is_empty());
    next_is_its_own(&session).await;
    assert!(soon(session.interrupt()).await.unwrap().outcomes.is_empty());
    next_is_its_own(&session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twice_at_once() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut running = session.prompt("%say {{gate:held}}never").await.unwrap();
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    let (one, two) = soon(async { tokio::join!(session.interrupt(), session.interrupt()) }).await;
    one.unwrap();
    two.unwrap();
    is_interrupted(&end(&mut running).await);
    assert_eq!(session.usage().results, 1);
    next_is_its_own(&session).await;
}

#[tokio::test]
async fn queued_prompts_survive_or_are_taken_back() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    for cancel in [false, true] {
        let gate = format!("held-{cancel}");
        let mut first = session
            .prompt(format!("%say {{{{gate:{gate}}}}}never"))
            .await
            .unwrap();
        rig.api().gate(&gate).reached(1, PATIENCE).await.unwrap();
        let mut queued = session.queue("%say queued").await.unwrap();
        let interrupted = if cancel {
            soon(session.interrupt_and_cancel_queued()).await.unwrap()
        } else {
            soon(session.interrupt()).await.unwrap()
        };
        is_interrupted(&end(&mut first).await);
        let id = queued.id().to_string();
        if cancel {
            assert_eq!(
                end(&mut queued).await.verdict(),
                &Verdict::Cancelled,
                "{interrupted:?}"
            );
        } else {
            assert_eq!(interrupted.receipt.still_queued, [id]);
            assert_eq!(end(&mut queued).await.result_text(), "queued");
        }
    }
    next_is_its_own(&session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_turn_begins_when_the_last_has_drained() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut first = session.prompt("%say begun {{gate:held}}never").await.unwrap();
    rig.api().gate("held").reached(1, PATIENCE).await.unwrap();
    let mut held = session.prompt("%say after").await.unwrap();
    let interrupt = tokio::spawn({
        let session = session.clone();
        async move { session.interrupt().await }
    });
    let mut last = session.prompt("%say last").await.unwrap();
    assert_eq!(until(&mut last, "text last").await, ["text last"]);
    soon(interrupt).await.unwrap().unwrap();
    is_interrupted(&end(&mut first).await);
    assert_eq!(end(&mut held).await.result_text(), "after");
}
