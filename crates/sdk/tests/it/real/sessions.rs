//! Going on with sessions, forking them, and what happens to them on the way.

use outrigger::protocol::inbound::Message;
use outrigger::sessions::Sessions;
use outrigger::transport::Exit;
use outrigger::{Cause, Error, Options, Prompt, Session, SessionUsage, Verdict};
use outrigger_sim::api::ApiRequest;
use uuid::Uuid;

use super::revive::kill;
use super::rig::{Rig, turn};

/// What the model was told in the last request: the words of the user and its own, without what the CLI adds in tags.
fn told(rig: &Rig) -> Vec<String> {
    let requests = rig.api().message_requests();
    let last: &ApiRequest = requests.last().expect("a request");
    let text = |content: &serde_json::Value| match content.as_str() {
        Some(text) => text.to_owned(),
        None => content
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|block| block["text"].as_str())
            .filter(|text| !text.starts_with('<'))
            .collect::<Vec<_>>()
            .join("|"),
    };
    last.messages()
        .iter()
        .filter(|message| message["role"] != "system")
        .filter_map(|message| {
            Some(format!(
                "{} {}",
                message["role"].as_str()?,
                text(&message["content"])
            ))
        })
        .collect()
}

/// A session of two turns that has ended, and its id.
async fn two_turns(rig: &Rig) -> String {
    let session = rig.session().await;
    turn(&session, "%say one").await;
    turn(&session, "%say two").await;
    let id = session.id().unwrap();
    session.close().await.unwrap();
    id.into()
}

const TWO_TURNS: [&str; 4] = ["user %say one", "assistant one", "user %say two", "assistant two"];

/// Goes on with a session by one more turn; returns its id.
async fn third(options: Options) -> (Session, String) {
    let session = options.start().await.unwrap();
    let (seen, outcome) = turn(&session, "%say three").await;
    // Nothing of the history is told again.
    assert_eq!(seen, ["text three"]);
    assert_eq!(
        (outcome.verdict(), outcome.result_text()),
        (&Verdict::Completed, "three")
    );
    let id = session.id().unwrap().into();
    (session, id)
}

async fn refused(options: Options) -> Error {
    let error = options.start().await.expect_err("it is refused");
    assert_eq!(error.exit(), Some(Exit::with_code(1)), "{error}");
    error
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_resumed() {
    let rig = Rig::start().await;
    let id = two_turns(&rig).await;
    let (session, same) = third(rig.options().resume(id.clone())).await;
    assert_eq!(same, id);
    assert_eq!(told(&rig)[..4], TWO_TURNS);
    assert_eq!(session.ids().iter().collect::<Vec<_>>(), [&id]);
    session.close().await.unwrap();

    // From another directory, too.
    let elsewhere = rig.sandbox().path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let (session, same) = third(rig.options().cwd(&elsewhere).resume(id.clone())).await;
    assert_eq!((same, told(&rig).len()), (id, 7));
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_latest_session_goes_on() {
    let rig = Rig::start().await;
    // With nothing to go on with, a session begins.
    let (session, first) = third(rig.options().continue_conversation(true)).await;
    session.close().await.unwrap();
    let (session, same) = third(rig.options().continue_conversation(true)).await;
    assert_eq!(first, same);
    assert_eq!(told(&rig)[..2], ["user %say three", "assistant three"]);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_leaves_the_session_as_it_is() {
    let rig = Rig::start().await;
    let id = two_turns(&rig).await;
    let (session, fork) = third(rig.options().resume(id.clone()).fork_session(true)).await;
    assert_ne!(fork, id);
    assert_eq!(session.forked_from().as_deref(), Some(id.as_str()));
    assert_eq!(told(&rig)[..4], TWO_TURNS);
    session.close().await.unwrap();

    let chosen = Uuid::new_v4().to_string();
    let options = rig
        .options()
        .resume(id.clone())
        .fork_session(true)
        .session_id(chosen.clone());
    let (session, fork) = third(options).await;
    assert_eq!(fork, chosen);
    session.close().await.unwrap();

    let (session, _) = third(rig.options().resume(id)).await;
    assert_eq!(told(&rig).len(), 5, "the forks added nothing");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_from_an_earlier_message() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut first = session.prompt("%say one").await.unwrap();
    let mut answer = None;
    while let Some(Ok(frame)) = first.next_frame().await {
        if let Ok(Message::Assistant(assistant)) = frame.decode() {
            answer = Some(assistant.uuid.clone());
        }
    }
    let answer = answer.unwrap();
    turn(&session, "%say two").await;
    let id = session.id().unwrap();
    drop(first);
    session.close().await.unwrap();

    let back = rig.options().resume(id.clone()).fork_session(true);
    let (session, _) = third(back.clone().resume_session_at(answer)).await;
    assert_eq!(told(&rig), ["user %say one", "assistant one", "user %say three"]);
    session.close().await.unwrap();

    let unknown = Uuid::new_v4().to_string();
    let error = refused(back.resume_session_at(unknown)).await;
    assert!(error.to_string().contains("No message found"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_resumed_says_why() {
    let rig = Rig::start().await;
    let unknown = "00000000-0000-4000-8000-000000000000";
    let error = refused(rig.options().resume(unknown)).await;
    assert_eq!(
        error.to_string(),
        "the CLI ended with exit code 1: the session is unknown; its last result: No conversation found \
         with session ID: 00000000-0000-4000-8000-000000000000"
    );
    assert!(error.outcome().unwrap().errors()[0].contains(unknown));
    assert_eq!(error.cause(), Some(Cause::UnknownSession));

    let session = rig.options().persist_session(false).start().await.unwrap();
    turn(&session, "%say one").await;
    let gone = session.id().unwrap();
    session.close().await.unwrap();
    let error = refused(rig.options().resume(gone)).await;
    assert!(error.to_string().contains("No conversation found"), "{error}");

    let id = two_turns(&rig).await;
    let error = refused(rig.options().session_id(id)).await;
    assert!(error.stderr_tail().unwrap().contains("already in use"), "{error}");
    assert_eq!(error.cause(), Some(Cause::SessionInUse));
}

#[tokio::test(flavor = "multi_thread")]
async fn clearing_begins_a_new_conversation() {
    let rig = Rig::start().await;
    let chosen = Uuid::new_v4().to_string();
    let session = rig.options().session_id(chosen.clone()).start().await.unwrap();
    turn(&session, "%say one").await;
    assert_eq!(session.id().as_deref(), Some(chosen.as_str()));
    let (seen, outcome) = turn_of(&session, Prompt::command("clear", "")).await;
    assert!(seen.is_empty() && outcome.is_success(), "{seen:?} {outcome:?}");
    assert_eq!(outcome.cost(), 0.0);

    let (_, after) = turn(&session, "%say two").await;
    assert_eq!(told(&rig), ["user %say two"]);
    // The CLI counts from zero again, and we do not take that for a refund.
    assert!(after.cost() > 0.0, "{:?}", after.usage());
    let ids = session.ids();
    assert_eq!((ids.len(), ids[0].as_str()), (2, chosen.as_str()));
    assert_eq!(session.id(), ids.last().cloned());
    assert!(session.usage().cost_usd > after.cost(), "{:?}", session.usage());
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_conversation_is_summed_up() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    for number in 0..4 {
        turn(&session, &format!("%say answer {number}")).await;
    }
    let (seen, outcome) = turn_of(&session, Prompt::command("compact", "keep the numbers")).await;
    assert!(!seen.iter().any(|line| line.starts_with("text")), "{seen:?}");
    assert_eq!(
        outcome.verdict(),
        &Verdict::LocalCommand(Some("compact".into())),
        "{outcome:?}"
    );
    let (_, outcome) = turn(&session, "%say on").await;
    assert_eq!(outcome.result_text(), "on");
    // The answers are gone from what the model is told.
    assert!(
        !told(&rig).iter().any(|line| line == "assistant answer 0"),
        "{:?}",
        told(&rig)
    );
    assert_eq!(session.ids().len(), 1);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_commands_are_not_sent() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let error = session
        .prompt(Prompt::command("no-such-command", ""))
        .await
        .unwrap_err();
    assert!(
        error.is_invalid() && error.to_string().contains("/no-such-command"),
        "{error}"
    );
    assert!(
        error.to_string().contains("compact"),
        "it says which there are: {error}"
    );
    // What only looks like a command is text.
    let (_, outcome) = turn(&session, "/compact is what I type\n%say right").await;
    assert_eq!(outcome.result_text(), "right");
    session.close().await.unwrap();
}

async fn turn_of(session: &Session, prompt: Prompt) -> (Vec<String>, outrigger::Outcome) {
    let mut turn = session.prompt(prompt).await.expect("it is accepted");
    let mut seen = Vec::new();
    let run = async {
        while let Some(event) = turn.next().await {
            seen.extend(super::rig::show(&event.expect("the session lives")));
        }
        turn.outcome().await.expect("it ends")
    };
    let outcome = tokio::time::timeout(super::rig::PATIENCE, run)
        .await
        .expect("in time");
    (seen, outcome)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_usage_goes_on_in_the_next_program() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    let mut expected = 0.0;
    for prompt in [
        "%usage in=1000 out=200\n%say one",
        "%usage in=500 out=20\n%say two",
    ] {
        expected += turn(&session, prompt).await.1.cost();
    }
    let (id, used) = (session.id().unwrap(), session.usage());
    session.close().await.unwrap();
    assert!(
        (used.cost_usd - expected).abs() < 1e-9 && used.results == 2,
        "{used:?}"
    );

    // What the CLI recorded is the same, but for the number of results.
    let stored = Sessions::at(rig.sandbox().config());
    let recorded = || SessionUsage::from(&stored.cost(&id, None).unwrap().unwrap());
    assert_eq!(recorded().by_model, used.by_model);
    assert!((recorded().cost_usd - used.cost_usd).abs() < 1e-9);

    let kept = serde_json::to_string(&used).unwrap();
    let options = rig.options().resume(&id);
    let options = options.usage_so_far(serde_json::from_str::<SessionUsage>(&kept).unwrap());
    let session = options.start().await.unwrap();
    assert_eq!(session.usage(), used, "before anything is said");
    let (_, outcome) = turn(&session, "%usage in=100 out=10\n%say three").await;
    assert_eq!(
        outcome.usage().total().input,
        100,
        "the turn pays for itself alone"
    );
    let input = |session: &Session| session.usage().total().input;
    assert_eq!((input(&session), session.usage().results), (1600, 3));

    // A process that replaces this one goes on once more, and counts nothing twice.
    kill(&session).await;
    let revived = session.revive().await.unwrap().session;
    assert_eq!(input(&revived), 1600);
    turn(&revived, "%usage in=10 out=10\n%say four").await;
    assert_eq!((input(&revived), revived.usage().results), (1610, 4));
    revived.close().await.unwrap();
    // The CLI's own record lacks what the killed process has used.
    assert_eq!(recorded().total().input, 1510);
}
