//! When the API refuses, fails, or breaks off.

use outrigger::protocol::inbound::system::SystemMessage;
use outrigger::{Cause, Event, Outcome, Verdict};
use outrigger_sim::api::ApiError;

use super::flow::{end, events, rest, soon, system};
use super::rig::{Rig, turn};

/// What the CLI said about trying again: the status of each failure.
fn retries(events: &[Event]) -> Vec<Option<u64>> {
    system(events)
        .filter_map(|message| match message {
            SystemMessage::ApiRetry(retry) => Some(retry.error_status),
            _ => None,
        })
        .collect()
}

fn said(events: &[Event]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// The error is an error in every way that a program may look at it, and no word of it is the model's.
fn failed(seen: &[Event], outcome: &Outcome, cause: Cause) {
    assert_eq!(
        outcome.cause(),
        Some(cause),
        "{:?} {}",
        outcome.terminal_reason(),
        outcome.result_text()
    );
    assert!(!outcome.is_success());
    assert!(
        seen.iter().any(|event| matches!(event, Event::ApiError { .. })),
        "{seen:?}"
    );
    assert_eq!(said(seen), "");
    assert!(outcome.error_text().is_some(), "the CLI's own words");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_errors_at_once() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    for status in [400, 403, 404] {
        let (seen, outcome) = events(
            &session,
            &format!("%error {status} n=99 msg=\"refused by the test\""),
        )
        .await;
        failed(&seen, &outcome, Cause::Api { status: Some(status) });
        assert_eq!(outcome.api_error_status(), Some(status));
        assert_eq!(retries(&seen), []);
        assert_eq!(turn(&session, "%say on").await.0, ["text on"]);
    }
    let (seen, outcome) = events(&session, "%error 413 n=99").await;
    assert!(
        !outcome.is_success() && outcome.api_error_status() == Some(413),
        "{outcome:?}"
    );
    assert_eq!(said(&seen), "");
    let error = outcome.answer().unwrap_err();
    assert!(error.outcome().is_some(), "{error}");
    assert_eq!(session.close().await.unwrap().code, Some(1));
}

#[tokio::test]
async fn a_conversation_that_is_too_long() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let (seen, outcome) = events(
        &session,
        "%error 400 n=99 msg=\"prompt is too long: 208310 tokens > 200000 maximum\"",
    )
    .await;
    failed(&seen, &outcome, Cause::TooLong);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_retried() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    for (fault, status) in [
        ("%error 529 n=1", Some(529)),
        ("%error 500 n=1", Some(500)),
        ("%drop n=1", None),
        ("%cut n=1", None),
    ] {
        let (seen, outcome) = events(&session, &format!("{fault}\n%say whole answer")).await;
        assert_eq!(outcome.verdict(), &Verdict::Completed, "{fault}");
        assert_eq!(
            (outcome.result_text(), said(&seen).as_str()),
            ("whole answer", "whole answer"),
            "{fault}"
        );
        assert_eq!(retries(&seen), [status], "{fault}");
    }
    // This one the CLI keeps to itself.
    let (seen, outcome) = events(&session, "%sse-error overloaded_error n=1\n%say whole answer").await;
    assert_eq!(
        (outcome.result_text(), said(&seen).as_str()),
        ("whole answer", "whole answer")
    );

    rig.api().push(ApiError::new(429).retry_after(1));
    let (seen, outcome) = events(&session, "%say after a while").await;
    assert_eq!(outcome.verdict(), &Verdict::Completed);
    let delay = system(&seen).find_map(|message| match message {
        SystemMessage::ApiRetry(retry) => Some(retry.retry_delay_ms),
        _ => None,
    });
    // The header's second, and a little at random.
    assert!(
        delay.is_some_and(|delay| (1000.0..2000.0).contains(&delay)),
        "{delay:?}"
    );
}

#[tokio::test]
async fn a_cut_with_partial_messages_says_the_answer() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .include_partial_messages(true)
        .start()
        .await
        .unwrap();
    let (seen, outcome) = events(&session, "%cut n=1\n%say whole answer").await;
    assert_eq!(outcome.result_text(), "whole answer");
    // What the broken response had said can't be taken back, and the whole answer follows it.
    assert!(said(&seen).ends_with("whole answer"), "{}", said(&seen));
    assert_eq!(session.stats().misfits, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_pass_is_an_error_in_the_end() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .env("CLAUDE_CODE_MAX_RETRIES", "1")
        .start()
        .await
        .unwrap();
    for (status, cause) in [
        (529, Cause::Api { status: Some(529) }),
        (500, Cause::Api { status: Some(500) }),
        (429, Cause::RateLimit),
        (401, Cause::InvalidKey),
    ] {
        let (seen, outcome) = events(&session, &format!("%error {status} n=99")).await;
        let passes = cause != Cause::InvalidKey;
        failed(&seen, &outcome, cause);
        assert_eq!(retries(&seen), [Some(status)], "{status}");
        // What the CLI waited itself.
        assert_eq!(outcome.is_transient(), passes);
        assert_eq!(
            outcome.retry_after().is_some_and(|delay| delay.as_millis() > 100),
            passes,
            "{:?}",
            outcome.retry_after()
        );
    }
    let (seen, outcome) = events(&session, "%cut n=99\n%say whole answer").await;
    assert_eq!(
        outcome.cause(),
        Some(Cause::ConnectionFailed),
        "{:?}",
        outcome.terminal_reason()
    );
    assert!(seen.iter().any(|event| matches!(event, Event::ApiError { .. })));
    assert_eq!(turn(&session, "%say on").await.0, ["text on"]);
    assert_eq!(
        session.close().await.unwrap().code,
        Some(0),
        "the last result was good"
    );
}

#[tokio::test]
async fn retrying_can_be_ended() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    // Even a wrong key is tried again and again.
    let mut running = session.prompt("%error 401 n=99").await.unwrap();
    soon(async {
        loop {
            let event = running.next().await.expect("it goes on").unwrap();
            if retries(&[event]) == [Some(401)] {
                return;
            }
        }
    })
    .await;
    soon(running.cancel()).await.unwrap();
    assert_eq!(end(&mut running).await.verdict(), &Verdict::Interrupted);
    assert_eq!(turn(&session, "%say on").await.0, ["text on"]);
}

#[tokio::test]
async fn nobody_listens() {
    let rig = Rig::start().await;
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = unused.local_addr().unwrap();
    drop(unused);
    let session = rig
        .options()
        .env("ANTHROPIC_BASE_URL", format!("http://{address}"))
        .env("CLAUDE_CODE_MAX_RETRIES", "1")
        .start()
        .await
        .unwrap();
    let (seen, outcome) = events(&session, "hello?").await;
    failed(&seen, &outcome, Cause::ConnectionFailed);
    assert_eq!(retries(&seen), [None]);
}

#[tokio::test]
async fn another_model_takes_over() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .model("claude-sonnet-4-5")
        .fallback_model("claude-haiku-4-5")
        .start()
        .await
        .unwrap();
    let (seen, outcome) = events(&session, "%error 529 n=3\n%say by the other one").await;
    assert_eq!(
        (outcome.verdict(), outcome.result_text()),
        (&Verdict::Completed, "by the other one")
    );
    let fallbacks = system(&seen).filter(|message| matches!(message, SystemMessage::ModelFallback(_)));
    assert_eq!(fallbacks.count(), 1);
    let models: Vec<_> = outcome.usage().by_model.keys().cloned().collect();
    assert!(models.iter().any(|model| model.contains("haiku")), "{models:?}");
}

#[tokio::test]
async fn odd_ends_of_an_answer() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    for reason in ["stop_sequence", "pause_turn", "something_new"] {
        let (_, outcome) = turn(&session, &format!("%stop {reason}\n%say all of it")).await;
        assert_eq!(
            (outcome.verdict(), outcome.result_text()),
            (&Verdict::Completed, "all of it"),
            "{reason}"
        );
    }
    // The CLI asks the model to go on, by itself.
    for fault in ["%stop max_tokens\n%say part", "%json []"] {
        let mut running = session.prompt(format!("{fault}\n%say the rest")).await.unwrap();
        let (_, outcome) = rest(&mut running).await;
        assert_eq!(
            (outcome.verdict(), outcome.result_text()),
            (&Verdict::Completed, "the rest"),
            "{fault}"
        );
        assert_eq!(outcome.prompts().len(), 1);
    }
    // One refusal the CLI tells the model of, and lets it try again.
    let (_, outcome) = events(&session, "%stop refusal\n%say I would rather not\n%say all right").await;
    assert_eq!(outcome.answer().unwrap().text(), "all right");
    assert_eq!(turn(&session, "%say on").await.0, ["text on"]);
}

/// What the model's safeguards refuse is no trouble with the network, and is refused again.
#[tokio::test]
async fn a_refusal_is_a_cause_of_its_own() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let script = "%stop refusal\n%say no\n%stop refusal\n%say no again";
    let (_, outcome) = events(&session, script).await;
    assert_eq!(outcome.cause(), Some(Cause::Refused), "{outcome:?}");
    assert!(!outcome.is_transient() && outcome.retry_after().is_none());
    let error = outcome.answer().unwrap_err();
    assert!(error.hint().unwrap().contains("safeguards"), "{error}");
    assert_eq!(turn(&session, "%say on").await.0, ["text on"]);
}
