//! Forks, transcripts, files that are taken back, and what sessions used.

use std::path::{Path, PathBuf};

use outrigger::SessionId;
use outrigger::protocol::shared::PermissionMode;
use outrigger::sessions::Sessions;
use outrigger_host::{HostError, NewFork, NewSession, SessionHost, SessionState};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::place::{PATIENCE, Place, say, until, user};
use crate::spares::counted;

async fn transcript(host: &SessionHost, id: &SessionId) -> Vec<Value> {
    let mut transcript = host.transcript(id).await.unwrap();
    let mut records = Vec::new();
    while let Some(piece) = transcript.next().await.unwrap() {
        assert!(piece.ends_with(b"\n"));
        let lines = piece.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        records.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
    }
    records
}

#[tokio::test]
async fn a_fork_goes_on_from_where_the_other_session_stood() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let none = host.fork(&id, NewFork::default(), "ada").await;
    assert!(matches!(none, Err(HostError::NotStored(_))), "{none:?}");
    say(&host, &id, "%say first").await;

    let mut new = NewFork::default();
    new.id = Some(SessionId::random());
    new.title = Some("A try".to_owned());
    let fork = host.fork(&id, new.clone(), "bob").await.unwrap();
    assert_eq!(Some(&fork.id), new.id.as_ref());
    assert_eq!(fork.forked_from.as_ref(), Some(&id));
    assert_eq!(
        (fork.title.as_deref(), fork.created_by.as_deref()),
        (Some("A try"), Some("bob"))
    );
    // Repeated, it is the same session; for another session the id is in use.
    assert_eq!(host.fork(&id, new.clone(), "bob").await.unwrap().id, fork.id);
    let other = place.session(&host).await;
    let reused = host.fork(&other, new, "bob").await;
    assert!(matches!(reused, Err(HostError::Reused(_))), "{reused:?}");

    say(&host, &id, "%say original").await;
    let mut events = host.subscribe(&fork.id, 0).await.unwrap();
    say(&host, &fork.id, "%say forked").await;
    until(&mut events, |event, payload| {
        event.kind == "process_started" && payload["resumed"] == true
    })
    .await;
    let text = |records: &[Value]| records.iter().map(Value::to_string).collect::<String>();
    let (original, forked) = (
        text(&transcript(&host, &id).await),
        text(&transcript(&host, &fork.id).await),
    );
    for (text, has) in [
        ("first", (true, true)),
        ("original", (true, false)),
        ("forked", (false, true)),
    ] {
        let said = format!("%say {text}");
        assert_eq!((original.contains(&said), forked.contains(&said)), has, "{text}");
    }
    host.shutdown().await;
}

/// The file of a stored session.
fn file_of(place: &Place, id: &SessionId) -> PathBuf {
    let projects = std::fs::read_dir(place.dir.path().join("claude/projects")).unwrap();
    let files = projects.map(|project| project.unwrap().path().join(format!("{id}.jsonl")));
    files.into_iter().find(|file| file.exists()).unwrap()
}

/// A host may be killed between the copy of the conversation and the commit.
#[tokio::test]
async fn a_fork_that_was_cut_off_is_made_by_its_repetition_and_nothing_else_is_taken_for_one() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    say(&host, &id, "%say first").await;
    let whole = host.fork(&id, NewFork::default(), "ada").await.unwrap().id;
    let copy = std::fs::read_to_string(file_of(&place, &whole)).unwrap();
    let leave = |fork: &SessionId, more: &str| {
        let text = copy.replace(whole.as_str(), fork.as_str()) + more;
        std::fs::write(file_of(&place, &whole).with_file_name(fork.file_name()), text).unwrap();
        let mut new = NewFork::default();
        new.id = Some(fork.clone());
        new
    };
    let fork = SessionId::random();
    let new = leave(&fork, "");
    let other = place.session(&host).await;
    say(&host, &other, "%say other").await;
    let reused = host.fork(&other, new.clone(), "ada").await;
    assert!(matches!(reused, Err(HostError::Reused(_))), "{reused:?}");
    for _ in 0..2 {
        assert_eq!(host.fork(&id, new.clone(), "ada").await.unwrap().id, fork);
    }
    say(&host, &fork, "%say forked").await;
    let forked = format!("{:?}", transcript(&host, &fork).await);
    assert!(forked.contains("%say first") && forked.contains("%say forked"));

    // One that somebody has gone on with is theirs.
    let own = json!({"type": "user", "uuid": Uuid::new_v4(), "message": {"role": "user", "content": "mine"}});
    for more in [format!("{own}\n"), "{\"type\":\"user\",".to_owned()] {
        let reused = host.fork(&id, leave(&SessionId::random(), &more), "ada").await;
        assert!(matches!(reused, Err(HostError::Reused(_))), "{reused:?}");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn what_is_stored_already_is_no_conversation_of_a_new_session() {
    for spares in [0, 1] {
        let place = Place::new();
        let host = place.host_with(place.policy().spares(spares)).await;
        counted(&host, |counts| counts.ready == spares as u64).await;
        let (mut named, mut keyed) = (
            NewSession::new(place.dir.path()),
            NewSession::new(place.dir.path()),
        );
        named.id = Some(SessionId::random());
        keyed.key = Some(SessionId::random());
        let mut keys = Vec::new();
        for new in [&named, &keyed, &keyed] {
            let id = host.create(new.clone(), "ada").await.unwrap().id;
            assert!(!keys.contains(&id), "a deleted session is not made again");
            assert_eq!(host.create(new.clone(), "ada").await.unwrap().id, id, "repeated");
            say(&host, &id, "%say private").await;
            // Repeated after it was stored, too.
            assert_eq!(host.create(new.clone(), "ada").await.unwrap().id, id);
            host.archive(&id).await.unwrap();
            host.delete(&id).await.unwrap();
            keys.push(id);
        }
        let taken = host.create(named.clone(), "eve").await;
        assert!(matches!(taken, Err(HostError::Reused(_))), "{taken:?}");
        // In whatever directory it is stored.
        let elsewhere = place.dir.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        named.cwd = elsewhere;
        let taken = host.create(named.clone(), "eve").await;
        assert!(matches!(taken, Err(HostError::Reused(_))), "{taken:?}");
        let id = named.id.unwrap();
        assert!(matches!(host.session(&id).await, Err(HostError::NoSession(_))));
        // Who may adopt it, may.
        host.adopt(&id, None, "ada").await.unwrap();
        assert!(format!("{:?}", transcript(&host, &id).await).contains("private"));
        host.shutdown().await;
    }
}

/// A client that lost patience asks again while the host is at it.
#[tokio::test]
async fn what_is_asked_for_twice_at_once_is_done_once() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    say(&host, &id, "%say first").await;
    let mut new = NewFork::default();
    new.id = Some(SessionId::random());
    let fork = || host.fork(&id, new.clone(), "ada");
    let (one, two, three) = tokio::join!(fork(), fork(), fork());
    let ids = [one, two, three].map(|fork| fork.unwrap().id);
    assert!(ids.iter().all(|id| Some(id) == new.id.as_ref()));

    host.archive(&id).await.unwrap();
    host.delete(&id).await.unwrap();
    let adopt = || host.adopt(&id, None, "ada");
    let (one, two, three) = tokio::join!(adopt(), adopt(), adopt());
    let created = [one, two, three].map(|adopted| adopted.unwrap().created_at);
    assert!(created.iter().all(|at| *at == created[0]), "{created:?}");
    host.shutdown().await;
}

/// The CLI has one name for `shop-a` and `shop/a`.
#[tokio::test]
async fn a_transcript_of_another_directory_with_the_same_name_is_not_shown() {
    let place = Place::new();
    let host = place.host().await;
    let first = place.session(&host).await;
    say(&host, &first, "%say secret").await;
    let shop = place.dir.path().join("shop/a");
    std::fs::create_dir_all(&shop).unwrap();
    let id = host.create(NewSession::new(&shop), "ada").await.unwrap().id;
    let real = place.dir.path().canonicalize().unwrap();
    let stored = std::fs::read_to_string(file_of(&place, &first)).unwrap();
    let stored = stored.replace(first.as_str(), id.as_str());
    let file = Sessions::at(place.dir.path().join("claude")).project_dir(&shop);
    std::fs::create_dir_all(&file).unwrap();
    let store = |cwd: &Path| {
        let from = format!("\"cwd\":{}", json!(real));
        assert!(stored.contains(&from), "{stored}");
        let text = stored.replace(&from, &format!("\"cwd\":{}", json!(cwd)));
        std::fs::write(file.join(id.file_name()), text).unwrap();
    };
    for other in ["shop-a", "shop.a", "shop"] {
        store(&real.join(other));
        let shown = host.transcript(&id).await;
        assert!(matches!(shown, Err(HostError::NotStored(_))), "{shown:?}");
        let forked = host.fork(&id, NewFork::default(), "ada").await;
        assert!(matches!(forked, Err(HostError::NotStored(_))), "{forked:?}");
    }
    store(&real.join("shop/a"));
    assert!(format!("{:?}", transcript(&host, &id).await).contains("secret"));
    host.shutdown().await;
}

/// All reading of the log takes threads of the same pool.
#[test]
fn readers_of_transcripts_that_take_their_time_hold_up_nothing() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(2).build().unwrap();
    let read = async {
        let place = Place::new();
        let host = place.host().await;
        let id = place.session(&host).await;
        say(&host, &id, "%say one").await;
        let file = file_of(&place, &id);
        let mut text = std::fs::read_to_string(&file).unwrap();
        for n in 0..2000 {
            let filler = "x".repeat(if n == 1000 { 300_000 } else { 300 });
            text += &format!("{{\"type\":\"filler\",\"n\":{n},\"x\":\"{filler}\"}}\n");
        }
        // The CLI is still writing the last line.
        std::fs::write(&file, format!("{text}{{\"type\"")).unwrap();
        let mut slow = Vec::new();
        for _ in 0..8 {
            let mut transcript = host.transcript(&id).await.unwrap();
            let first = transcript.next().await.unwrap().unwrap();
            slow.push((transcript, first));
        }
        host.session(&id).await.unwrap();
        // Each goes on where it was.
        for (mut transcript, mut read) in slow {
            while let Some(piece) = transcript.next().await.unwrap() {
                assert!(piece.ends_with(b"\n"));
                read.extend(piece);
            }
            assert!(read == text.as_bytes());
            assert_eq!(transcript.next().await.unwrap(), None);
        }
        host.shutdown().await;
    };
    let read = runtime.block_on(async { tokio::time::timeout(PATIENCE, read).await });
    // One that holds a thread would keep this waiting, too.
    runtime.shutdown_background();
    read.expect("a thread is free");
}

#[tokio::test]
async fn what_a_turn_would_be_disturbed_by_waits_for_its_end() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let first = say(&host, &id, "%say first").await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("%hang", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, |event, payload| {
        event.kind == "session_state_changed" && payload["state"] == "running"
    })
    .await;
    until(&mut events, |event, payload| {
        event.kind == "session_state_changed" && payload["state"] == "running"
    })
    .await;
    let fork = host.fork(&id, NewFork::default(), "ada").await;
    assert!(matches!(fork, Err(HostError::TurnRuns(_))), "{fork:?}");
    let rewound = host.rewind(&id, first, false, "ada").await;
    assert!(matches!(rewound, Err(HostError::TurnRuns(_))), "{rewound:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn files_are_taken_back_to_a_prompt_by_a_process_or_by_a_new_one() {
    let place = Place::with(|agent| agent.file_checkpointing(true).real_tools(true));
    let mut policy = place.policy();
    policy.options = place.options().permission_mode(PermissionMode::AcceptEdits);
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    say(&host, &id, "%say before").await;
    let file = place.dir.path().join("made.txt");
    let write = format!("%tool Write {}", json!({"file_path": file, "content": "text"}));
    let second = say(&host, &id, &write).await;
    assert!(file.exists());

    let would = host
        .rewind(&id, second, true, "ada")
        .await
        .unwrap()
        .to_value()
        .unwrap();
    assert_eq!(would["canRewind"], true, "{would}");
    assert!(file.exists());
    let done = host
        .rewind(&id, second, false, "ada")
        .await
        .unwrap()
        .to_value()
        .unwrap();
    assert_eq!(done["canRewind"], true, "{done}");
    assert!(!file.exists());
    let events = host.events(&id, 0, 1000).await.unwrap().events;
    let told: Vec<_> = events
        .iter()
        .filter(|event| event.kind == "files_rewound")
        .collect();
    assert_eq!(told.len(), 1, "a dry run changes nothing");
    assert_eq!(told[0].actor.as_deref(), Some("ada"));

    // Without a process one is started, and the session waits for prompts again.
    host.stop(&id).await.unwrap();
    let unknown = host.rewind(&id, Uuid::new_v4(), false, "ada").await;
    assert!(matches!(unknown, Err(HostError::Cli(_))), "{unknown:?}");
    assert_eq!(host.session(&id).await.unwrap().state, SessionState::Idle);
    assert_eq!(place.cli.started().len(), 2);
    say(&host, &id, "%say on").await;
    assert_eq!(place.cli.started().len(), 2);
    host.shutdown().await;
}

#[tokio::test]
async fn usage_is_the_sum_of_the_results_of_all_processes() {
    let place = Place::new();
    let host = place.host().await;
    let (one, two) = (place.session(&host).await, place.session(&host).await);
    assert_eq!(host.usage(&one).await.unwrap().results, 0);
    say(&host, &one, "%say a").await;
    let first = host.usage(&one).await.unwrap();
    assert_eq!(first.results, 1);
    say(&host, &one, "%say a").await;
    assert!(first.total().output > 0, "{first:?}");
    host.stop(&one).await.unwrap();
    say(&host, &one, "%say a").await;
    say(&host, &two, "%say a").await;
    host.shutdown().await;
    drop(host);

    let host = place.host().await;
    let (used, other) = (host.usage(&one).await.unwrap(), host.usage(&two).await.unwrap());
    assert_eq!((used.results, other.results), (3, 1));
    assert_eq!(
        used.total().output,
        3 * first.total().output,
        "no result is counted again"
    );
    let all = host.total_usage().await.unwrap();
    assert_eq!(all.total().output, used.total().output + other.total().output);
    // What was spent stays spent.
    host.archive(&one).await.unwrap();
    host.delete(&one).await.unwrap();
    assert_eq!(host.total_usage().await.unwrap(), all);
    assert!(matches!(host.usage(&one).await, Err(HostError::NoSession(_))));
    host.shutdown().await;
}
