//! Going on with sessions of the real CLI whose process died.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger::permissions::{PermissionRequest, PermissionResult};
use outrigger::protocol::shared::PermissionMode;
use outrigger::{
    Claim, Detached, Event, Local, Lost, Options, Policy, PromptProgress, ReviveProblem, Revived, Session,
    SessionUsage, Verdict,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::rig::{PATIENCE, Rig, turn};
use crate::witness::none_left;

fn signal(session: &Session, signal: Signal) {
    let pid = Pid::from_raw(session.pid().unwrap().cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// SIGKILL by somebody else.
pub(crate) async fn kill(session: &Session) {
    signal(session, Signal::KILL);
    session.wait_ended().await;
}

/// The commands of a CLI that is killed like this live on, so it is arranged that they end.
fn with_commands(rig: &Rig) -> Options {
    let transport = Local::new().detached(Detached::End);
    rig.options().transport(transport)
}

/// Whether the transcript has this text.
fn is_written(rig: &Rig, text: &str) -> bool {
    let projects = rig.sandbox().config().join("projects");
    let files = |directory: &std::path::Path| -> Vec<_> {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let transcripts = files(&projects).into_iter().flat_map(|project| files(&project));
    transcripts
        .filter_map(|transcript| std::fs::read_to_string(transcript).ok())
        .any(|transcript| transcript.contains(text))
}

async fn revived(session: &Session) -> (Session, Lost) {
    let revived = tokio::time::timeout(PATIENCE, session.revive()).await.unwrap();
    let Revived { session, lost, .. } = revived.unwrap();
    (session, lost)
}

async fn why_not(session: &Session) -> ReviveProblem {
    let error = session.revive().await.unwrap_err();
    let problem = error.as_revive_problem();
    problem.unwrap_or_else(|| panic!("{error}")).clone()
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let patience = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < patience, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether each tool call in the last request to the model is followed by its result; how many there are.
fn answered_calls(rig: &Rig) -> usize {
    let requests = rig.api().message_requests();
    let messages = requests.last().unwrap().messages().to_vec();
    let blocks = |message: &Value, kind: &str, id: &str| -> Vec<String> {
        let blocks = message["content"].as_array().into_iter().flatten();
        blocks
            .filter(|block| block["type"] == kind)
            .filter_map(|block| Some(block[id].as_str()?.to_owned()))
            .collect()
    };
    let mut calls = 0;
    for (at, message) in messages.iter().enumerate() {
        for call in blocks(message, "tool_use", "id") {
            let results = messages
                .get(at + 1)
                .map(|next| blocks(next, "tool_result", "tool_use_id"));
            assert!(
                results.unwrap_or_default().contains(&call),
                "{call} has no result: {messages:?}"
            );
            calls += 1;
        }
    }
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_killed_in_a_turn_goes_on_as_it_was() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    assert_eq!(why_not(&session).await, ReviveProblem::Alive);
    turn(&session, "%say one").await;
    session
        .set_permission_mode(PermissionMode::AcceptEdits)
        .await
        .unwrap();
    session.set_model(Some("haiku")).await.unwrap();
    session.set_max_thinking_tokens(Some(0)).await.unwrap();
    let settings =
        serde_json::from_value::<serde_json::Map<_, _>>(json!({"permissions": {"deny": ["WebFetch"]}}));
    session
        .apply_flag_settings(settings.unwrap().into())
        .await
        .unwrap();
    let id = session.id().unwrap();

    let begun = session.prompt("%hang\n%say two").await.unwrap();
    until("the request", || rig.api().message_requests().len() == 2).await;
    until("its being written down", || is_written(&rig, "%say two")).await;
    let queued = session.queue("%say three").await.unwrap();
    let held = session.prompt("%say four").await.unwrap();
    kill(&session).await;
    let error = begun.watch().outcome().await.unwrap_err();
    assert!(error.is_closed(), "{error}");

    let (again, lost) = revived(&session).await;
    let prompts: Vec<_> = lost
        .prompts
        .iter()
        .map(|lost| (lost.id.clone(), lost.progress))
        .collect();
    assert_eq!(
        prompts,
        [
            (begun.id().to_string(), PromptProgress::Begun),
            (queued.id().to_string(), PromptProgress::Sent),
            (held.id().to_string(), PromptProgress::NotSent),
        ]
    );
    assert!(lost.tasks.is_empty() && lost.questions.is_empty() && lost.not_repeated.is_empty());
    // The same conversation, and nothing was said in it.
    assert_eq!(again.id().as_deref(), Some(id.as_str()));
    assert_eq!(rig.api().message_requests().len(), 2);
    assert_eq!(why_not(&session).await, ReviveProblem::AlreadyRevived);

    let used = session.usage();
    assert!(
        used.results == 1 && used.total().output > 0 && again.usage() == used,
        "{used:?}"
    );

    let held = lost.prompts.last().unwrap().prompt.clone();
    let mut sent_again = again.prompt(held).await.unwrap();
    let (text, outcome) = sent_again.text().await.unwrap();
    assert_eq!((text.as_str(), outcome.verdict()), ("four", &Verdict::Completed));
    let output = |usage: &SessionUsage| usage.total().output;
    assert_eq!(
        output(&again.usage()),
        output(&used) + outcome.usage().total().output
    );
    assert_eq!(session.usage(), used, "the old handle stays as it was");
    assert_eq!(again.id().unwrap(), id);
    let init = again.init().unwrap();
    assert_eq!(init.permission_mode.as_str(), "acceptEdits");
    assert!(init.model.contains("haiku"), "{}", init.model);
    let requests = rig.api().message_requests();
    let asked = requests.last().unwrap();
    assert!(asked.model().unwrap().contains("haiku"));
    assert!(!asked.tools().any(|tool| tool == "WebFetch"));
    let told = serde_json::to_string(asked.messages()).unwrap();
    assert!(
        told.contains("%say one") && told.contains("%say two") && !told.contains("%say three"),
        "{told}"
    );

    // And once more.
    kill(&again).await;
    let (third, lost) = revived(&again).await;
    assert!(lost.prompts.is_empty());
    turn(&third, "%say five").await;
    assert_eq!((third.id().unwrap(), third.ids().len()), (id, 1));
    assert_eq!(third.init().unwrap().permission_mode.as_str(), "acceptEdits");
    third.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_was_running_does_not_spoil_the_conversation() {
    let rig = Rig::start().await;
    let session = with_commands(&rig)
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    let mut running = session
        .prompt("%tool Bash {\"command\":\"tail -f /dev/null\"}\n%say done")
        .await
        .unwrap();
    while let Some(event) = running.next().await {
        if matches!(event.unwrap(), Event::ToolUse(_)) {
            break;
        }
    }
    // It is written down a moment later.
    tokio::time::sleep(Duration::from_secs(1)).await;
    kill(&session).await;
    let (again, lost) = revived(&session).await;
    assert_eq!(lost.prompts[0].progress, PromptProgress::Begun);
    let (seen, outcome) = turn(&again, "%say on we go").await;
    assert_eq!(
        (seen.as_slice(), outcome.verdict()),
        (["text on we go".to_owned()].as_slice(), &Verdict::Completed)
    );
    answered_calls(&rig);
    again.close().await.unwrap();
    none_left(&rig.sandbox().home()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ran_and_what_was_asked_is_told() {
    let rig = Rig::start().await;
    let (asked, mut was_asked) = tokio::sync::mpsc::channel(8);
    let handler = move |request: PermissionRequest| {
        let asked = asked.clone();
        async move {
            if request.input.get().contains("background") {
                return PermissionResult::allow();
            }
            asked.send(()).await.unwrap();
            std::future::pending().await
        }
    };
    let session = with_commands(&rig).permissions(handler).start().await.unwrap();
    turn(
        &session,
        "%tool Bash {\"command\":\"sleep 300\",\"run_in_background\":true,\"description\":\"background\"}\n%say started",
    )
    .await;
    let _open = session
        .prompt("%tool Bash {\"command\":\"touch x\"}\n%say done")
        .await
        .unwrap();
    was_asked.recv().await.unwrap();
    session.set_cwd("/").await.ok();
    kill(&session).await;
    let (again, lost) = revived(&session).await;
    assert_eq!(lost.tasks.len(), 1, "{:?}", lost.tasks);
    assert_eq!(lost.tasks[0].task_type.as_deref(), Some("local_bash"));
    assert_eq!(lost.questions.len(), 1);
    assert_eq!(lost.questions[0].subtype(), Some("can_use_tool"));
    assert_eq!(lost.prompts.len(), 1);
    turn(&again, "%say on we go").await;
    answered_calls(&rig);
    again.close().await.unwrap();
    none_left(&rig.sandbox().home()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_a_watchdog_ended_is_revived() {
    let rig = Rig::start().await;
    let options = rig
        .options()
        .first_token_deadline(Some(Duration::from_secs(2)))
        .interrupt_deadline(Duration::from_secs(1))
        .term_grace(Duration::from_secs(1));
    let session = options.start().await.unwrap();
    turn(&session, "%say one").await;
    let stuck = session.prompt("%delay 60000\n%say two").await.unwrap();
    until("the request", || rig.api().message_requests().len() == 2).await;
    signal(&session, Signal::STOP);
    let error = stuck.watch().outcome().await.unwrap_err();
    assert!(error.stalled().is_some(), "{error}");
    session.wait_ended().await;
    let (again, lost) = revived(&session).await;
    assert_eq!(lost.prompts.len(), 1);
    assert_eq!(turn(&again, "%say three").await.0, ["text three"]);
    again.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_by_the_current_id() {
    let rig = Rig::start().await;
    let first = rig.session().await;
    turn(&first, "%say one").await;
    let id = first.id().unwrap();
    first.close().await.unwrap();

    let fork: Options = rig.options().resume(id.clone()).fork_session(true);
    let session = fork.start().await.unwrap();
    turn(&session, "%say two").await;
    let forked = session.id().unwrap();
    assert_ne!(forked, id);
    kill(&session).await;
    let (again, _) = revived(&session).await;
    turn(&again, "%say three").await;
    assert_eq!(again.id().unwrap(), forked);
    again.close().await.unwrap();

    let own = uuid::Uuid::new_v4().to_string();
    let session = rig.options().session_id(own.clone()).start().await.unwrap();
    turn(&session, "%say one").await;
    kill(&session).await;
    let (again, _) = revived(&session).await;
    turn(&again, "%say two").await;
    assert_eq!(again.id().unwrap(), own);
    again.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claimed_session_is_revived_with_its_claim() {
    let rig = Rig::start().await;
    let spare = rig.options().prewarm().await.unwrap();
    let claim = Claim::new(rig.sandbox().project())
        .permission_mode(PermissionMode::Plan)
        .append_system_prompt("Be a witness.");
    let session = spare.claim(claim).await.unwrap();
    turn(&session, "%say one").await;
    kill(&session).await;
    let (again, _) = revived(&session).await;
    turn(&again, "%say two").await;
    assert_eq!(again.id(), session.id());
    assert_eq!(again.init().unwrap().permission_mode.as_str(), "plan");
    let requests = rig.api().message_requests();
    assert!(
        requests.last().unwrap().body["system"]
            .to_string()
            .contains("Be a witness.")
    );
    again.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_gone_on_with_is_said() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    kill(&session).await;
    assert_eq!(why_not(&session).await, ReviveProblem::NeverBegan);
    // A fresh start is at hand.
    let fresh = session.options().clone().start().await.unwrap();
    turn(&fresh, "%say hello").await;
    fresh.close().await.unwrap();

    let session = rig.options().persist_session(false).start().await.unwrap();
    turn(&session, "%say hello").await;
    kill(&session).await;
    assert_eq!(why_not(&session).await, ReviveProblem::NotKept);

    // Claimed, but nothing was ever said: it has an id and no conversation.
    let spare = rig.options().prewarm().await.unwrap();
    let session = spare.claim(Claim::new(rig.sandbox().project())).await.unwrap();
    kill(&session).await;
    assert_eq!(why_not(&session).await, ReviveProblem::NeverBegan);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_were_set_at_run_time_are_set_again() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    turn(&session, "%say one").await;
    let servers = serde_json::from_value::<BTreeMap<String, _>>(
        json!({"absent": {"type": "stdio", "command": "/nonexistent/server", "args": []}}),
    );
    let reply = session.mcp_set_servers(servers.unwrap()).await.unwrap();
    assert!(reply.errors.contains_key("absent"), "{reply:?}");
    kill(&session).await;
    let (again, lost) = revived(&session).await;
    assert!(lost.mcp_servers.contains_key("absent"), "{lost:?}");
    turn(&again, "%say two").await;
    again.close().await.unwrap();
}
