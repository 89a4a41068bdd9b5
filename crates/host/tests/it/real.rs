//! A host with the real CLI, behind a scripted API.

use std::time::Duration;

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::{PermissionMode, SettingSource};
use outrigger::sessions::Sessions;
use outrigger::testing::RealCli;
use outrigger_host::log::SqliteLog;
use outrigger_host::{
    Delivered, HostError, HostPolicy, MemoryLimits, NewFork, NewSession, SessionHost, Subscription,
};
use serde_json::json;
use uuid::Uuid;

use crate::spares::counted;

/// Longer than anything here takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(90);

fn user(text: &str, uuid: Uuid) -> RawJson {
    json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}).into()
}

async fn until(events: &mut Subscription, kind: &str, status: &str) {
    let found = async {
        loop {
            if let Delivered::Event(event) = events.next().await.unwrap()
                && event.kind == kind
                && (status.is_empty() || event.payload.to_value().unwrap()["status"] == status)
            {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found)
        .await
        .unwrap_or_else(|_| panic!("no {kind} {status}"));
}

#[tokio::test]
async fn a_session_is_leased_asks_and_goes_on_in_another_process() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    let policy = HostPolicy::new(real.options(), [&project]);
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let host = SessionHost::open(policy, log).await.unwrap();
    let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let call = "%tool Bash {\"command\": \"touch made\", \"description\": \"Make it\"}\n%say done";
    host.send(&id, user(call, Uuid::new_v4()), "ada").await.unwrap();
    until(&mut events, "approval_opened", "").await;
    // Nobody else may drive it.
    let sessions = Sessions::at(real.sandbox().config());
    assert!(sessions.claim(&id).take().is_err(), "the host has the lease");
    let pending = host.approvals(None, None, None, 10).await.unwrap();
    assert_eq!(pending.len(), 1);
    assert!(!project.join("made").exists());
    let allow: RawJson =
        json!({"behavior": "allow", "updatedInput": {"command": "touch made", "description": "Make it"}})
            .into();
    host.decide(pending[0].id, allow, "ada").await.unwrap();
    until(&mut events, "delivery_update", "processed").await;
    assert!(project.join("made").exists());

    host.stop(&id).await.unwrap();
    until(&mut events, "process_exited", "").await;
    host.send(&id, user("%say again", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, "delivery_update", "processed").await;
    host.shutdown().await;
    drop(sessions.claim(&id).take().expect("the lease is released"));
}

#[tokio::test]
async fn spares_become_leased_sessions() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    let below = project.join("below");
    std::fs::create_dir(&below).unwrap();
    let mut policy = HostPolicy::new(real.options(), [&project]).spares(1);
    policy.max_processes = 2;
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let host = SessionHost::open(policy, log).await.unwrap();
    let sessions = Sessions::at(real.sandbox().config());
    let ready = || counted(&host, |counts| counts.ready == 1 && counts.reserved == 0);

    ready().await;
    let id = host.create(NewSession::new(&below), "ada").await.unwrap().id;
    drop(sessions.claim(&id).take().expect("a spare has no lease"));
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let call = "%tool Bash {\"command\": \"touch made\", \"description\": \"Make it\"}\n%say done";
    host.send(&id, user(call, Uuid::new_v4()), "ada").await.unwrap();
    until(&mut events, "approval_opened", "").await;
    assert!(sessions.claim(&id).take().is_err(), "the host has the lease");
    assert_eq!(host.spares().claimed, 1);
    let pending = host.approvals(None, None, None, 10).await.unwrap();
    host.decide(pending[0].id, json!({"behavior": "allow"}).into(), "ada")
        .await
        .unwrap();
    until(&mut events, "delivery_update", "processed").await;
    assert!(below.join("made").exists());
    // It goes on in a process that is resumed.
    host.stop(&id).await.unwrap();
    until(&mut events, "process_exited", "").await;
    drop(sessions.claim(&id).take().expect("the lease is released"));
    host.send(&id, user("%say again", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, "delivery_update", "processed").await;

    // A session can do without the spare that has its id, because another one needed the place.
    ready().await;
    let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
    let mut other = NewSession::new(&project);
    other.id = Some(SessionId::random());
    let other = host.create(other, "ada").await.unwrap().id;
    for id in [other, id] {
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.send(&id, user("%say alone", Uuid::new_v4()), "ada")
            .await
            .unwrap();
        until(&mut events, "delivery_update", "processed").await;
        assert!(sessions.claim(&id).take().is_err(), "the host has the lease");
    }
    assert_eq!(host.spares().claimed, 1);
    host.shutdown().await;
    let spares = real.sandbox().config().join("spares");
    assert_eq!(
        std::fs::read_dir(spares).unwrap().count(),
        0,
        "the directories of spares are removed"
    );
}

/// What a project's own settings fix for good is fixed in a spare: the CLI refuses the claim, and the session starts its own process.
#[tokio::test]
async fn a_directory_that_a_spare_cannot_have_gets_a_process_of_its_own() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    std::fs::create_dir_all(project.join(".claude")).unwrap();
    std::fs::write(
        project.join(".claude/settings.json"),
        json!({"env": {"MADE": "here"}}).to_string(),
    )
    .unwrap();
    let options = real.options().setting_sources([SettingSource::Project]);
    let policy = HostPolicy::new(options, [&project]).spares(1);
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let host = SessionHost::open(policy, log).await.unwrap();
    counted(&host, |counts| counts.ready == 1).await;
    let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("%say one", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, "delivery_update", "processed").await;
    let counts = host.spares();
    assert_eq!((counts.claimed, counts.refused, counts.failed), (0, 1, 0));
    host.shutdown().await;
}

/// What the CLI makes of a file in which no prompt is, it does not say anywhere.
#[tokio::test]
async fn a_session_whose_first_process_has_stored_no_prompt_begins_all_the_same() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let policy = HostPolicy::new(real.options(), [&project]);
    let host = SessionHost::open(policy, log).await.unwrap();
    let stored = Sessions::at(real.sandbox().config()).project_dir(&project);
    for left in [
        "",
        "{\"type\":\"user\",\"mess",
        "{\"type\":\"mode\",\"mode\":\"normal\"}\n",
    ] {
        let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.resume(&id).await.unwrap();
        until(&mut events, "process_started", "").await;
        host.stop(&id).await.unwrap();
        until(&mut events, "process_exited", "").await;
        std::fs::create_dir_all(&stored).unwrap();
        let file = stored.join(format!("{id}.jsonl"));
        std::fs::write(&file, left).unwrap();
        host.send(&id, user("%say two", Uuid::new_v4()), "ada")
            .await
            .unwrap();
        until(&mut events, "delivery_update", "processed").await;
        assert!(std::fs::read_to_string(&file).unwrap().contains("two"), "{left}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn files_are_taken_back_in_a_later_process_and_a_fork_goes_on() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    let options = real.options().enable_file_checkpointing(true);
    let policy = HostPolicy::new(options.permission_mode(PermissionMode::AcceptEdits), [&project]);
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let host = SessionHost::open(policy, log).await.unwrap();
    let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let file = project.join("made.txt");
    let call = format!(
        "%tool Write {}\n%say done",
        json!({"file_path": file, "content": "text"})
    );
    let prompt = Uuid::new_v4();
    host.send(&id, user(&call, prompt), "ada").await.unwrap();
    until(&mut events, "delivery_update", "processed").await;
    assert!(file.exists());
    host.stop(&id).await.unwrap();

    let would = host.rewind(&id, prompt, true, "ada").await.unwrap();
    assert_eq!(would.to_value().unwrap()["canRewind"], true, "{would}");
    assert!(file.exists());
    host.rewind(&id, prompt, false, "ada").await.unwrap();
    assert!(!file.exists());

    let fork = host.fork(&id, NewFork::default(), "ada").await.unwrap().id;
    let mut events = host.subscribe(&fork, 0).await.unwrap();
    host.send(&fork, user("%say forked", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, "delivery_update", "processed").await;
    let mut transcript = host.transcript(&fork).await.unwrap();
    let mut text = Vec::new();
    while let Some(piece) = transcript.next().await.unwrap() {
        text.extend(piece);
    }
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("made.txt") && text.contains("%say forked"));
    assert_eq!(
        host.usage(&fork).await.unwrap().results,
        1,
        "what the other session used is not the fork's"
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_session_that_the_cli_left_is_adopted_when_nobody_drives_it() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    let outside = place.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let elsewhere = real.options().cwd(&outside).start().await.unwrap();
    elsewhere
        .prompt("%say elsewhere")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    let hidden = elsewhere.id().unwrap();
    elsewhere.close().await.unwrap();
    let session = real.options().cwd(&project).start().await.unwrap();
    session
        .prompt("%say before")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    let id = session.id().unwrap();

    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let host = SessionHost::open(HostPolicy::new(real.options(), [&project]), log)
        .await
        .unwrap();
    let listed = host.adoptable(None, 10).await.unwrap();
    assert_eq!(
        listed.iter().map(|one| &one.id).collect::<Vec<_>>(),
        [&id],
        "only what is in a root"
    );
    assert!(listed[0].driven_by.is_some());
    let busy = host.adopt(&id, None, "ada").await;
    assert!(matches!(busy, Err(HostError::InUse(..))), "{busy:?}");
    let refused = host.adopt(&hidden, None, "ada").await;
    assert!(matches!(refused, Err(HostError::NotAllowed(_))), "{refused:?}");
    let missing = host.adopt(&SessionId::random(), None, "ada").await;
    assert!(matches!(missing, Err(HostError::NotStored(_))), "{missing:?}");
    session.close().await.unwrap();

    let adopted = host.adopt(&id, Some(project.clone()), "ada").await.unwrap();
    assert!(adopted.adopted && adopted.has_history);
    assert_eq!(host.adopt(&id, None, "ada").await.unwrap().id, id);
    assert!(host.adoptable(Some(project), 10).await.unwrap().is_empty());
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("%say after", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, "delivery_update", "processed").await;
    let mut transcript = host.transcript(&id).await.unwrap();
    let mut text = String::new();
    while let Some(piece) = transcript.next().await.unwrap() {
        text.push_str(&String::from_utf8(piece).unwrap());
    }
    assert!(text.contains("%say before") && text.contains("%say after"));
    host.shutdown().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_with_too_much_memory_is_replaced_or_killed() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    let open = |limits: MemoryLimits| {
        let mut policy = HostPolicy::new(real.options(), [&project]);
        policy.memory = Some(limits);
        SessionHost::open(policy, SqliteLog::open(place.path().join("host.db")).unwrap())
    };
    let mut soft = MemoryLimits::new();
    (soft.soft, soft.every) = (Some(1), Duration::from_millis(100));
    let host = open(soft).await.unwrap();
    let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    // The turn is not cut off, and the prompt behind it has another process.
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    host.send(&id, user("%delay 1500\n%say one", first), "ada")
        .await
        .unwrap();
    host.send(&id, user("%say two", second), "ada").await.unwrap();
    until(&mut events, "memory_limit", "").await;
    until(&mut events, "result", "").await;
    until(&mut events, "process_exited", "").await;
    until(&mut events, "process_started", "").await;
    until(&mut events, "result", "").await;
    host.shutdown().await;
    drop((events, host));

    let mut hard = MemoryLimits::new();
    (hard.hard, hard.every) = (Some(1024 * 1024), Duration::from_millis(100));
    let host = open(hard).await.unwrap();
    let head = host.session(&id).await.unwrap().head_seq;
    let mut events = host.subscribe(&id, head).await.unwrap();
    host.send(&id, user("%delay 60000\n%say three", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, "memory_limit", "").await;
    until(&mut events, "process_exited", "").await;
    until(&mut events, "delivery_update", "interrupted").await;
    host.shutdown().await;
}

#[tokio::test]
async fn what_a_prompt_names_is_neither_read_nor_run() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    let outside = place.path().join("outside.txt");
    std::fs::write(&outside, "the operator's secret").unwrap();
    let policy = HostPolicy::new(real.options(), [&project]);
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let host = SessionHost::open(policy, log).await.unwrap();
    let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    // The CLI would read the file without asking, and the command would take another model.
    let mention = format!("Look at @{}\n%say no", outside.display());
    for content in [
        json!(mention),
        json!([{"type": "text", "text": mention}]),
        json!("/model haiku"),
        json!([{"type": "text", "text": "/model haiku"}]),
    ] {
        let frame =
            json!({"type": "user", "uuid": Uuid::new_v4(), "message": {"role": "user", "content": content}});
        host.send(&id, frame.into(), "ada").await.unwrap();
        until(&mut events, "delivery_update", "processed").await;
    }
    host.shutdown().await;
    let bodies: Vec<String> = real
        .api()
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .collect();
    assert!(
        bodies.iter().any(|body| body.contains("/model haiku")),
        "it is text"
    );
    assert!(!bodies.iter().any(|body| body.contains("the operator's secret")));
    assert!(
        !bodies
            .iter()
            .any(|body| body.contains("\"model\":\"claude-haiku"))
    );
}

#[tokio::test]
async fn a_changed_input_is_held_to_the_rules_of_the_operator() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    let options = real.options().disallowed_tools(["Bash(touch forbidden:*)"]);
    let policy = HostPolicy::new(options, [&project]);
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let host = SessionHost::open(policy, log).await.unwrap();
    let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let call = "%tool Bash {\"command\": \"touch made\", \"description\": \"Make it\"}\n%say done";
    host.send(&id, user(call, Uuid::new_v4()), "ada").await.unwrap();
    until(&mut events, "approval_opened", "").await;
    let pending = host.approvals(None, None, None, 10).await.unwrap();
    let changed: RawJson =
        json!({"behavior": "allow", "updatedInput": {"command": "touch forbidden", "description": "Make it"}})
            .into();
    // The CLI would run it.
    let refused = host.decide(pending[0].id, changed, "ada").await.unwrap_err();
    assert!(matches!(refused, HostError::NotAllowed(_)), "{refused}");
    let same: RawJson =
        json!({"behavior": "allow", "updatedInput": {"description": "Make it", "command": "touch made"}})
            .into();
    host.decide(pending[0].id, same, "ada").await.unwrap();
    until(&mut events, "delivery_update", "processed").await;
    assert!(project.join("made").exists() && !project.join("forbidden").exists());
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_that_shuts_down_does_not_let_a_turn_go_on() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    let path = place.path().join("host.db");
    let policy = HostPolicy::new(real.options(), [&project]);
    let host = SessionHost::open(policy, SqliteLog::open(&path).unwrap())
        .await
        .unwrap();
    let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let call = "%tool Bash {\"command\": \"touch made\", \"description\": \"Make it\"}\n%say I went on.";
    host.send(&id, user(call, Uuid::new_v4()), "ada").await.unwrap();
    until(&mut events, "approval_opened", "").await;
    let asked = real.api().requests().len();
    host.shutdown().await;
    assert_eq!(
        real.api().requests().len(),
        asked,
        "the model hears of no denial that nobody made"
    );
}

/// Between the look at the directory of a session and the start of its process, the directory can become a link to another place.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_was_started_outside_of_the_roots_gets_no_prompt() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    // What is seen of the swap is where the process is.
    let program = place.path().join("claude");
    let moves = place.path().join("moves");
    let script = format!(
        "#!/bin/sh\nif [ -e {} ]; then cd {}; fi\nexec {} \"$@\"\n",
        moves.display(),
        outside.path().display(),
        outrigger::testing::sim::claude::executable()
            .await
            .unwrap()
            .display()
    );
    outrigger_needs::script(&program, script).unwrap();
    let policy = HostPolicy::new(real.options().cli_path(&program), [&project]);
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let host = SessionHost::open(policy, log).await.unwrap();
    let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    std::fs::write(&moves, "").unwrap();
    let prompt = Uuid::new_v4();
    host.send(&id, user("%say one", prompt), "ada").await.unwrap();
    until(&mut events, "start_failed", "").await;
    let log = host.events(&id, 0, 1000).await.unwrap().events;
    let kinds: Vec<_> = log.iter().map(|event| &*event.kind).collect();
    assert!(!kinds.contains(&"process_started"), "{kinds:?}");
    let failed = log.iter().find(|event| event.kind == "start_failed").unwrap();
    assert!(
        failed.payload.get().contains("where the process was started"),
        "{}",
        failed.payload
    );
    assert!(real.api().message_requests().is_empty(), "the model was asked");
    // Where it belongs, it goes on with the prompt.
    std::fs::remove_file(&moves).unwrap();
    host.send(&id, user("%say two", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, "delivery_update", "processed").await;
    host.shutdown().await;
}
