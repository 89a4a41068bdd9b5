//! Sessions from their first prompt to the next host.

use std::collections::BTreeSet;
use std::time::Duration;

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::{Match, Signal, Steps};
use outrigger_host::log::{NewEvent, Update, Write};
use outrigger_host::{
    ApprovalState, Delivered, Delivery, Effect, HostError, NewSession, SessionState, Source, Subscription,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::place::{PATIENCE, Place, processed, say, until, user};

#[tokio::test]
async fn a_session_goes_on_after_its_process_and_after_its_host() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let first = Uuid::new_v4();
    let sent = host.send(&id, user("%say one", first), "ada").await.unwrap();
    let again = host.send(&id, user("%say one", first), "ada").await.unwrap();
    assert_eq!(again.effect, Effect::Repeated);
    assert_eq!(again.seq, sent.seq);
    let other = host
        .send(&id, user("%say other", first), "ada")
        .await
        .unwrap_err();
    assert!(matches!(other, HostError::Reused(_)), "{other}");
    processed(&mut events, first, "processed").await;

    // The process ends, and the next prompt resumes the session.
    host.stop(&id).await.unwrap();
    let second = Uuid::new_v4();
    host.send(&id, user("%say two", second), "ada").await.unwrap();
    until(&mut events, |event, payload| {
        event.kind == "process_started" && payload["resumed"] == true
    })
    .await;
    processed(&mut events, second, "processed").await;
    host.shutdown().await;
    let cursor = events.cursor();
    drop((events, host));

    let host = place.host().await;
    let third = Uuid::new_v4();
    host.send(&id, user("%say three", third), "ada").await.unwrap();
    let mut events = host.subscribe(&id, cursor).await.unwrap();
    processed(&mut events, third, "processed").await;
    let page = host.events(&id, 0, 1000).await.unwrap();
    let numbers: Vec<u64> = page.events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=page.head_seq).collect::<Vec<_>>());
    let prompts = page
        .events
        .iter()
        .filter(|event| event.kind == "user" && event.actor.is_some())
        .count();
    assert_eq!(prompts, 3);
    let results = page.events.iter().filter(|event| event.kind == "result").count();
    assert_eq!(results, 3);
    host.shutdown().await;
}

/// Where the CLI stores sessions.
fn project(place: &Place) -> std::path::PathBuf {
    let projects = place.dir.path().join("claude/projects");
    std::fs::read_dir(projects)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path()
}

/// The first process can be killed between making the file of its session and writing to it. The CLI neither resumes such a session nor begins one of its id.
#[tokio::test]
async fn a_session_whose_first_process_has_stored_no_prompt_begins_all_the_same() {
    let place = Place::new();
    let host = place.host().await;
    let other = place.session(&host).await;
    say(&host, &other, "%say one").await;
    let project = project(&place);
    let prompt = std::fs::read_to_string(project.join(format!("{other}.jsonl"))).unwrap();
    let prompt = prompt.lines().find(|line| line.contains("\"user\"")).unwrap();
    for left in [
        "",
        "{\"type\":\"user\",\"mess",
        "{\"type\":\"mode\",\"mode\":\"normal\"}\n",
    ] {
        let id = place.session(&host).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.resume(&id).await.unwrap();
        until(&mut events, |event, _| event.kind == "process_started").await;
        host.stop(&id).await.unwrap();
        let file = project.join(format!("{id}.jsonl"));
        std::fs::write(&file, left).unwrap();
        say(&host, &id, "%say two").await;
        assert!(std::fs::read_to_string(&file).unwrap().contains("two"), "{left}");
        let aside = std::fs::read_to_string(file.with_extension("jsonl.unusable"));
        assert_eq!(aside.unwrap_or_default(), left);
    }
    // What has a prompt is gone on with.
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.resume(&id).await.unwrap();
    until(&mut events, |event, _| event.kind == "process_started").await;
    host.stop(&id).await.unwrap();
    let stored = prompt.replace(other.as_str(), id.as_str()) + "\n";
    std::fs::write(project.join(format!("{id}.jsonl")), &stored).unwrap();
    say(&host, &id, "%say three").await;
    let after = std::fs::read_to_string(project.join(format!("{id}.jsonl"))).unwrap();
    assert!(after.starts_with(&stored), "{after}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_process_that_dies_in_a_turn_is_told_and_the_next_prompt_goes_on() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    host.send(&id, user("%hang", first), "ada").await.unwrap();
    host.send(&id, user("%say on", second), "ada").await.unwrap();
    until(&mut events, |event, payload| {
        event.kind == "system" && payload["subtype"] == "init"
    })
    .await;
    place.cli.started().last().unwrap().signal(Signal::Kill);
    processed(&mut events, first, "interrupted").await;
    processed(&mut events, second, "processed").await;
    let page = host.events(&id, 0, 1000).await.unwrap();
    let begun = page
        .events
        .iter()
        .filter(|event| event.payload.get().contains("processing"));
    assert_eq!(begun.count(), 2, "each prompt was given to one process");
    host.shutdown().await;
}

/// Polls a future so often, and drops it.
async fn begin<T>(polls: usize, future: impl Future<Output = T>) {
    let mut future = std::pin::pin!(future);
    for _ in 0..polls {
        let done =
            std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_ready())).await;
        if done {
            return;
        }
        // The writer is another thread.
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_a_process_says_before_it_dies_is_kept() {
    const SAID: u64 = 300;
    for code in [0, 1] {
        let place = Place::new();
        let mut policy = place.policy();
        let dying = Simulated::steps(move || {
            let steps = Steps::new().initialize().expect(Match::kind("user"));
            let say = |steps: Steps, n| steps.send(json!({"type": "system", "subtype": "news", "n": n}));
            (0..SAID).fold(steps, say).exit(code)
        });
        policy.options = policy.options.transport(dying);
        let host = place.host_with(policy).await;
        let id = place.session(&host).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        let prompt = Uuid::new_v4();
        host.send(&id, user("hello", prompt), "ada").await.unwrap();
        let exited = until(&mut events, |event, _| event.kind == "process_exited").await;
        let told = host.events(&id, 0, 1000).await.unwrap().events;
        let before = told.iter().filter(|event| event.seq < exited.seq);
        let payloads = before.map(|event| event.payload.to_value().unwrap());
        let said: Vec<_> = payloads.filter_map(|payload| payload["n"].as_u64()).collect();
        assert!(said.iter().copied().eq(0..SAID), "{said:?}");
        processed(&mut events, prompt, "interrupted").await;
        host.shutdown().await;
    }
}

/// A client would send the prompt again, and the model would do everything twice.
#[tokio::test]
async fn a_prompt_whose_turn_has_its_result_is_processed_whatever_ends_then() {
    let place = Place::new();
    let prompt = Uuid::new_v4();
    let mut policy = place.policy();
    policy.options = policy.options.transport(Simulated::steps(move || {
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1,
            "num_turns": 1, "result": "done", "total_cost_usd": 0.0, "usage": {}, "modelUsage": {}, "permission_denials": [],
            "uuid": Uuid::new_v4(), "stop_reason": "end_turn", "user_message_uuid": prompt, "user_message_uuids": [prompt]});
        let steps = Steps::new().initialize().expect(Match::kind("user"));
        steps.send(result).exit(1)
    }));
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("hello", prompt), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "process_exited").await;
    processed(&mut events, prompt, "processed").await;
    host.shutdown().await;
    drop((events, host));
    // As if the host had been killed between the two.
    let log = rusqlite::Connection::open(place.dir.path().join("host.db")).unwrap();
    log.execute_batch("UPDATE accepted SET delivery = 'processing'; UPDATE sessions SET state = 'running'")
        .unwrap();
    drop(log);
    let host = place.host().await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    for _ in 0..2 {
        processed(&mut events, prompt, "processed").await;
    }
    until(&mut events, |_, payload| payload["state"] == "idle").await;
    let told = host.events(&id, 0, 1000).await.unwrap().events;
    assert!(
        told.iter()
            .all(|event| !event.payload.get().contains("interrupted"))
    );
    host.shutdown().await;
}

/// What is on disk is done, whether its sender waited for it or not.
#[tokio::test]
async fn a_sender_that_leaves_in_the_middle_leaves_nothing_lying_about() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    for polls in 1..4 {
        let prompt = Uuid::new_v4();
        let ask = "%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}";
        begin(polls, host.send(&id, user(ask, prompt), "ada")).await;
        let opened = until(&mut events, |event, _| event.kind == "approval_opened").await;
        let approval = opened.payload.to_value().unwrap()["approval_id"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let deny: RawJson = json!({"behavior": "deny", "message": "no"}).into();
        // Reading the approval takes some polls, before which nothing is decided.
        let mut polls = polls;
        while host.approval(approval).await.unwrap().state == ApprovalState::Pending {
            begin(polls, host.decide(approval, deny.clone(), "ada")).await;
            polls += 1;
        }
        processed(&mut events, prompt, "processed").await;
    }
    host.shutdown().await;
}

#[tokio::test]
async fn the_first_decision_counts_and_the_second_caller_learns_whose_it_was() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let prompt = Uuid::new_v4();
    host.send(
        &id,
        user("%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}", prompt),
        "ada",
    )
    .await
    .unwrap();
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    let open = host
        .approvals(None, Some(ApprovalState::Pending), None, 10)
        .await
        .unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].tool_name.as_deref(), Some("Write"));
    assert_eq!(host.session(&id).await.unwrap().pending_approvals, 1);
    let deny: RawJson = json!({"behavior": "deny", "message": "not now"}).into();
    let answer: RawJson = json!({"answer": 42}).into();
    assert!(matches!(
        host.decide(open[0].id, answer, "eve").await,
        Err(HostError::Invalid(_))
    ));
    // What comes along with an allow must not widen the policy.
    for change in [
        json!({"type": "setMode", "mode": "bypassPermissions", "destination": "session"}),
        json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"}),
        json!({"type": "setMode", "mode": "newMode", "destination": "session"}),
        json!({"type": "addDirectories", "directories": ["/"], "destination": "session"}),
        json!({"type": "addDirectories", "directories": [".."], "destination": "session"}),
        json!({"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "userSettings"}),
        json!({"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "newPlace"}),
        json!({"type": "removeRules", "rules": [{"toolName": "Bash"}], "behavior": "deny", "destination": "session"}),
        json!({"type": "replaceRules", "rules": [], "behavior": "deny", "destination": "session"}),
        json!({"type": "newChange", "destination": "session"}),
    ] {
        let allow: RawJson = json!({"behavior": "allow", "updatedPermissions": [change]}).into();
        let refused = host.decide(open[0].id, allow.clone(), "eve").await;
        assert!(
            matches!(refused, Err(HostError::NotAllowed(_))),
            "{change}: {refused:?}"
        );
        let frame = json!({"type": "control_response", "response":
            {"subtype": "success", "request_id": open[0].request_id, "response": allow}});
        let refused = host.send(&id, frame.into(), "eve").await;
        assert!(
            matches!(refused, Err(HostError::NotAllowed(_))),
            "{change}: {refused:?}"
        );
    }
    assert_eq!(host.session(&id).await.unwrap().pending_approvals, 1);
    let decided = host.decide(open[0].id, deny.clone(), "ada").await.unwrap();
    assert_eq!(decided.state, ApprovalState::Denied);
    match host.decide(open[0].id, deny, "bob").await {
        Err(HostError::TooLate(approval)) => assert_eq!(approval.decided_by.as_deref(), Some("ada")),
        other => panic!("{other:?}"),
    }
    processed(&mut events, prompt, "processed").await;
    let page = host.events(&id, 0, 1000).await.unwrap();
    assert!(
        page.events
            .iter()
            .any(|event| event.kind == "user" && event.payload.get().contains("not now"))
    );
    host.shutdown().await;
}

#[tokio::test]
async fn an_approval_of_a_process_that_ended_is_superseded_and_never_applied() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let ask = "%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}";
    host.send(&id, user(ask, Uuid::new_v4()), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    let first = host
        .approvals(Some(&id), Some(ApprovalState::Pending), None, 10)
        .await
        .unwrap()
        .remove(0);
    host.stop(&id).await.unwrap();
    let allow: RawJson = json!({"behavior": "allow"}).into();
    let late = host.decide(first.id, allow.clone(), "ada").await;
    assert!(matches!(late, Err(HostError::TooLate(approval)) if approval.state == ApprovalState::Superseded));

    let again = Uuid::new_v4();
    host.send(&id, user(ask, again), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    let second = host
        .approvals(Some(&id), Some(ApprovalState::Pending), None, 10)
        .await
        .unwrap()
        .remove(0);
    assert_eq!(second.supersedes, Some(first.id));
    // Changes that are the session's own may come along.
    let rule = json!({"type": "addRules", "rules": [{"toolName": "Write"}], "behavior": "allow", "destination": "session"});
    let inside =
        json!({"type": "addDirectories", "directories": [place.dir.path()], "destination": "session"});
    let allow = json!({"behavior": "allow", "updatedPermissions": [rule, inside]});
    host.decide(second.id, allow.into(), "ada").await.unwrap();
    processed(&mut events, again, "processed").await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_client_ends_a_start_that_waits_for_a_place() {
    let place = Place::new();
    let mut policy = place.policy();
    policy.max_processes = 1;
    let host = place.host_with(policy).await;
    let (first, second) = (place.session(&host).await, place.session(&host).await);
    let mut events = host.subscribe(&first, 0).await.unwrap();
    host.send(&first, user("%hang", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, |_, payload| payload["state"] == "running").await;
    let mut events = host.subscribe(&second, 0).await.unwrap();
    let mut prompts = Vec::new();
    for is_interrupted in [true, false] {
        let prompt = Uuid::new_v4();
        prompts.push(prompt);
        host.send(&second, user("%say hello", prompt), "ada")
            .await
            .unwrap();
        until(&mut events, |_, payload| payload["state"] == "starting").await;
        let ended = async {
            match is_interrupted {
                true => host.interrupt(&second).await,
                false => host.stop(&second).await,
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.unwrap().unwrap();
        until(&mut events, |event, _| event.kind == "start_failed").await;
        until(&mut events, |_, payload| payload["state"] == "failed").await;
    }
    // What waits goes on with the next prompt.
    host.stop(&first).await.unwrap();
    prompts.push(say(&host, &second, "%say more").await);
    let mut events = host.subscribe(&second, 0).await.unwrap();
    for prompt in prompts {
        processed(&mut events, prompt, "processed").await;
    }
    host.shutdown().await;
}

#[tokio::test]
async fn the_end_does_not_wait_for_a_process_that_is_starting() {
    let place = Place::new();
    let mut policy = place.policy();
    let slow = || Steps::new().sleep(Duration::from_secs(3600)).initialize();
    policy.options = policy.options.transport(Simulated::steps(slow));
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("hello", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, |_, payload| payload["state"] == "starting").await;
    // Less than the deadline of a start.
    let soon = Duration::from_secs(20);
    tokio::time::timeout(soon, host.shutdown()).await.unwrap();
}

#[tokio::test]
async fn a_client_ends_the_start_of_a_cli_and_the_prompt_is_not_begun() {
    let place = Place::new();
    let mut policy = place.policy();
    let slow = Simulated::steps(|| Steps::new().sleep(Duration::from_secs(3600)).initialize());
    policy.options = policy.options.transport(slow.clone());
    let host = place.host_with(policy).await;
    // Less than the deadline of a start.
    let soon = Duration::from_secs(20);
    for (n, end) in ["stop", "interrupt", "archive"].into_iter().enumerate() {
        let id = place.session(&host).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        let prompt = Uuid::new_v4();
        host.send(&id, user("hello", prompt), "ada").await.unwrap();
        while slow.started().len() <= n {
            tokio::task::yield_now().await;
        }
        let ended = async {
            match end {
                "stop" => host.stop(&id).await,
                "interrupt" => host.interrupt(&id).await,
                _ => host.archive(&id).await,
            }
        };
        tokio::time::timeout(soon, ended).await.unwrap().unwrap();
        let failed = until(&mut events, |event, _| event.kind == "start_failed").await;
        assert!(failed.payload.get().contains("stopped by a client"), "{end}");
        let told = host.events(&id, 0, 1000).await.unwrap().events;
        let begun = told
            .iter()
            .any(|event| event.payload.get().contains("\"processing\""));
        assert!(!begun, "{end}");
    }
    host.shutdown().await;
}

/// An interrupt that comes when the process ends has nothing to do any more; one that the CLI refuses is no mistake of the client.
#[tokio::test]
async fn an_interrupt_of_a_process_that_ends_is_no_error() {
    for ends in [true, false] {
        let place = Place::new();
        let mut policy = place.policy();
        let cli = Simulated::steps(move || {
            let steps = Steps::new().initialize().expect(Match::kind("user"));
            let steps = steps.expect(Match::request("interrupt"));
            match ends {
                true => steps.exit(0),
                false => steps.reply_error("no").expect_end().exit(0),
            }
        });
        policy.options = policy.options.transport(cli);
        let host = place.host_with(policy).await;
        let id = place.session(&host).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.interrupt(&id).await.unwrap();
        host.send(&id, user("hello", Uuid::new_v4()), "ada")
            .await
            .unwrap();
        until(&mut events, |_, payload| payload["status"] == "processing").await;
        let interrupted = host.interrupt(&id).await;
        match ends {
            true => interrupted.unwrap(),
            false => assert!(matches!(interrupted, Err(HostError::Cli(_))), "{interrupted:?}"),
        }
        host.shutdown().await;
    }
}

/// While the log fails, nothing can be done. Who asks is told so, and does not wait for its end.
#[tokio::test]
async fn who_asks_while_the_log_fails_is_told() {
    let place = Place::new();
    let mut policy = place.policy();
    let speaking = Simulated::steps(|| {
        let steps = Steps::new().initialize().expect(Match::kind("user"));
        let steps = steps.expect(Match::request("interrupt")).reply(json!({}));
        steps
            .send(json!({"type": "system", "subtype": "status"}))
            .expect_end()
            .exit(0)
    });
    policy.options = policy.options.transport(speaking);
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("hello", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, |_, payload| payload["status"] == "processing").await;
    let other = rusqlite::Connection::open(place.dir.path().join("host.db")).unwrap();
    other
        .execute_batch(
            "CREATE TRIGGER fault BEFORE INSERT ON events BEGIN SELECT RAISE(FAIL, 'the disk is full'); END",
        )
        .unwrap();
    // What the process says cannot be written, and ends it.
    host.interrupt(&id).await.unwrap();
    let refused = async {
        loop {
            if let Err(error) = host.interrupt(&id).await {
                break error;
            }
        }
    };
    // Without a reply, it would wait for the end of the fault.
    let failed = tokio::time::timeout(Duration::from_secs(60), refused)
        .await
        .unwrap();
    assert!(
        matches!(&failed, HostError::Log(why) if why.contains("the disk is full")),
        "{failed}"
    );
    host.stop(&id).await.unwrap();
    other.execute_batch("DROP TRIGGER fault").unwrap();
    until(&mut events, |_, payload| payload["status"] == "interrupted").await;
    host.shutdown().await;
}

#[tokio::test]
async fn prompts_that_wait_in_an_archived_session_are_told_and_never_begun() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let (runs, waits) = (Uuid::new_v4(), Uuid::new_v4());
    host.send(&id, user("%hang", runs), "ada").await.unwrap();
    processed(&mut events, runs, "processing").await;
    host.send(&id, user("%say hello", waits), "ada").await.unwrap();
    host.archive(&id).await.unwrap();
    processed(&mut events, waits, "not_begun").await;
    processed(&mut events, runs, "interrupted").await;
    assert_eq!(host.counts().await.unwrap().waiting_prompts, 0);
    let log = host.event_log();
    assert!(log.unfinished().await.unwrap().is_empty());
    // What is over stays so.
    let mark = Write::Mark(waits, Delivery::Processing);
    let written = log.write(&id, vec![mark]).await.unwrap();
    assert!(written.events.is_empty());
    host.shutdown().await;
}

/// Its worktree and its branch may be gone, and a start would make them again.
#[tokio::test]
async fn an_archived_session_gets_no_process() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    host.archive(&id).await.unwrap();
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, request("a", json!({"subtype": "initialize"})), "ada")
        .await
        .unwrap();
    assert_eq!(replied(&mut events, "a").await["subtype"], "error");
    assert!(place.cli.started().is_empty());
    host.shutdown().await;
}

#[tokio::test]
async fn more_sessions_than_processes_take_turns() {
    let place = Place::new();
    let mut policy = place.policy();
    policy.max_processes = 1;
    let host = place.host_with(policy).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(place.session(&host).await);
    }
    for id in ids.iter().chain(&ids) {
        let mut events = host.subscribe(id, 0).await.unwrap();
        let prompt = Uuid::new_v4();
        host.send(id, user("%say hello", prompt), "ada").await.unwrap();
        processed(&mut events, prompt, "processed").await;
        assert_eq!(host.session(id).await.unwrap().state, SessionState::Idle);
    }
    assert!(
        place.cli.started().len() >= 6,
        "each prompt needed a process of its own"
    );
    host.shutdown().await;
}

#[tokio::test]
async fn clients_get_what_the_policy_gives_them() {
    let place = Place::new();
    let host = place.host().await;
    let outside = tempfile::tempdir().unwrap();
    let link = place.dir.path().join("link");
    std::os::unix::fs::symlink(outside.path(), &link).unwrap();
    for cwd in [
        outside.path(),
        &link,
        &place.dir.path().join(".."),
        &place.dir.path().join("missing"),
    ] {
        let refused = host.create(NewSession::new(cwd), "eve").await;
        assert!(
            matches!(refused, Err(HostError::NotAllowed(_))),
            "{}",
            cwd.display()
        );
    }
    let mut new = NewSession::new(place.dir.path());
    new.permission_mode = Some("bypassPermissions".to_owned());
    assert!(matches!(
        host.create(new, "eve").await,
        Err(HostError::NotAllowed(_))
    ));
    let mut new = NewSession::new(place.dir.path());
    new.id = Some(SessionId::random());
    let made = host.create(new.clone(), "ada").await.unwrap();
    assert_eq!(host.create(new.clone(), "ada").await.unwrap().id, made.id);
    new.title = Some("another".to_owned());
    assert!(matches!(host.create(new, "ada").await, Err(HostError::Reused(_))));

    host.archive(&made.id).await.unwrap();
    let refused = host.send(&made.id, user("hello", Uuid::new_v4()), "ada").await;
    assert!(matches!(refused, Err(HostError::Archived(_))));
    host.delete(&made.id).await.unwrap();
    assert!(matches!(
        host.session(&made.id).await,
        Err(HostError::NoSession(_))
    ));
    host.shutdown().await;
}

#[tokio::test]
async fn a_reader_gets_each_event_once_from_any_cursor() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let mut live = host.subscribe(&id, 0).await.unwrap();
    let prompt = Uuid::new_v4();
    host.send(&id, user("%say hello", prompt), "ada").await.unwrap();
    processed(&mut live, prompt, "processed").await;
    let head = host.session(&id).await.unwrap().head_seq;
    for cursor in 0..=head {
        let mut events = host.subscribe(&id, cursor).await.unwrap();
        let mut seen = Vec::new();
        let synced = loop {
            match events.next().await.unwrap() {
                Delivered::Event(event) => seen.push(event.seq),
                Delivered::Synced { seq } => break seq,
                other => panic!("{other:?}"),
            }
        };
        let unique: BTreeSet<u64> = seen.iter().copied().collect();
        assert_eq!(seen.len(), unique.len());
        assert_eq!(seen, (cursor + 1..=synced).collect::<Vec<_>>());
    }
    assert!(matches!(
        host.subscribe(&id, head + 1000).await,
        Err(HostError::Invalid(_))
    ));
    host.trim(&id, 3).await.unwrap();
    let mut events = host.subscribe(&id, 1).await.unwrap();
    assert!(matches!(
        events.next().await.unwrap(),
        Delivered::Truncated { seq: 3 }
    ));
    assert!(matches!(events.next().await.unwrap(), Delivered::Event(event) if event.seq == 4));
    host.shutdown().await;
}

#[tokio::test]
async fn readers_of_a_session_that_was_deleted_are_at_the_end_whoever_gets_its_id() {
    let place = Place::new();
    let host = place.host().await;
    let mut new = NewSession::new(place.dir.path());
    new.id = Some(SessionId::random());
    let id = host.create(new.clone(), "ada").await.unwrap().id;
    let mut live = host.subscribe(&id, 0).await.unwrap();
    while !matches!(live.next().await.unwrap(), Delivered::Synced { .. }) {}
    // One that waits, and one that has to read the log first.
    let waits = tokio::spawn(async move {
        while live.next().await.is_ok() {}
        (live.next().await, live)
    });
    let mut slow = host.subscribe(&id, 0).await.unwrap();
    let mut hints = host.hints();
    host.archive(&id).await.unwrap();
    host.delete(&id).await.unwrap();
    let (ended, mut live) = tokio::time::timeout(PATIENCE, waits).await.unwrap().unwrap();
    assert!(matches!(ended, Err(HostError::NoSession(_))), "{ended:?}");
    while !hints.next().await.unwrap().is_gone() {}

    // Another session with the id, which has more events than they have read.
    host.create(new, "bob").await.unwrap();
    let mut update = Update::default();
    for n in 0..10 {
        update.title = Some(Some(n.to_string()));
        host.update(&id, update.clone()).await.unwrap();
    }
    for reader in [&mut live, &mut slow] {
        for _ in 0..2 {
            let ended = reader.next().await;
            assert!(matches!(ended, Err(HostError::NoSession(_))), "{ended:?}");
        }
    }
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let created = until(&mut events, |event, _| event.kind == "session_created").await;
    assert_eq!((created.seq, created.actor.as_deref()), (1, Some("bob")));
    host.shutdown().await;
}

fn request(id: &str, request: Value) -> RawJson {
    json!({"type": "control_request", "request_id": id, "request": request}).into()
}

/// The response to a request of a client.
async fn replied(events: &mut Subscription, id: &str) -> Value {
    let event = until(events, |event, payload| {
        event.kind == "control_response" && payload["response"]["request_id"] == id
    })
    .await;
    event.payload.to_value().unwrap()["response"].clone()
}

#[tokio::test]
async fn what_clients_ask_for_is_replied_to_by_an_event() {
    let place = Place::new();
    let mut policy = place.policy();
    policy.permission_modes = vec!["plan".to_owned()];
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    // Without a process nothing runs, and nothing is asked.
    host.send(&id, request("i", json!({"subtype": "interrupt"})), "ada")
        .await
        .unwrap();
    assert_eq!(replied(&mut events, "i").await["subtype"], "success");
    host.send(&id, request("c", json!({"subtype": "mcp_status"})), "ada")
        .await
        .unwrap();
    assert_eq!(replied(&mut events, "c").await["subtype"], "error");
    assert!(place.cli.started().is_empty());

    // The first `initialize` starts a process; the second one is replied to from the log. Nobody learns of the operator's account.
    for name in ["a", "b"] {
        host.send(
            &id,
            request(name, json!({"subtype": "initialize", "hooks": null})),
            "ada",
        )
        .await
        .unwrap();
        let reply = replied(&mut events, name).await;
        assert!(reply["response"]["commands"].is_array(), "{reply}");
        assert_eq!(reply["response"]["account"], json!({}));
    }
    assert_eq!(place.cli.started().len(), 1);
    let hooks = json!({"subtype": "initialize", "hooks": {"PreToolUse": [{"hookCallbackIds": ["h"]}]}});
    host.send(&id, request("h", hooks), "ada").await.unwrap();
    let refused = replied(&mut events, "h").await;
    assert!(refused["error"].as_str().unwrap().contains("hooks"), "{refused}");

    // A request that is sent again is replied to once.
    let again = host
        .send(
            &id,
            request("a", json!({"subtype": "initialize", "hooks": null})),
            "ada",
        )
        .await
        .unwrap();
    assert_eq!(again.effect, Effect::Repeated);
    host.send(&id, request("s", json!({"subtype": "mcp_status"})), "ada")
        .await
        .unwrap();
    let status = replied(&mut events, "s").await;
    assert!(status["response"]["mcpServers"].is_array(), "{status}");

    // What widens the policy is refused; what it allows holds for the next process, too.
    for (name, asked) in [
        (
            "w1",
            json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
        ),
        ("w2", json!({"subtype": "set_model", "model": "opus"})),
        ("w6", json!({"subtype": "set_model", "model": null})),
        (
            "w7",
            json!({"subtype": "set_permission_mode", "mode": ["bypassPermissions"]}),
        ),
        ("w3", json!({"subtype": "apply_flag_settings", "settings": {}})),
        ("w4", json!({"subtype": "mcp_set_servers", "servers": {}})),
        ("w5", json!({"subtype": "set_cwd", "cwd": "/"})),
    ] {
        host.send(&id, request(name, asked), "ada").await.unwrap();
        assert_eq!(replied(&mut events, name).await["subtype"], "error", "{name}");
    }
    host.send(
        &id,
        request("m", json!({"subtype": "set_permission_mode", "mode": "plan"})),
        "ada",
    )
    .await
    .unwrap();
    assert_eq!(replied(&mut events, "m").await["subtype"], "success");
    assert_eq!(
        host.session(&id).await.unwrap().permission_mode.as_deref(),
        Some("plan")
    );

    // An interrupt that follows a prompt is about its turn.
    let prompt = Uuid::new_v4();
    let both = vec![
        user("%hang", prompt),
        request("stop", json!({"subtype": "interrupt"})),
    ];
    let accepted = host.send_all(&id, both, "ada").await.unwrap();
    assert_eq!(accepted.len(), 2);
    processed(&mut events, prompt, "processed").await;
    assert_eq!(replied(&mut events, "stop").await["subtype"], "success");

    // A batch is taken whole or not at all.
    let head = host.session(&id).await.unwrap().head_seq;
    let half = vec![
        user("%say half", Uuid::new_v4()),
        json!({"type": "assistant"}).into(),
    ];
    host.send_all(&id, half, "ada").await.unwrap_err();
    assert_eq!(host.session(&id).await.unwrap().head_seq, head);
    host.shutdown().await;
}

/// On one thread, the task that was begun last would run first.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn changes_reach_the_process_in_their_order() {
    let place = Place::new();
    let mut policy = place.policy();
    policy.permission_modes = ["acceptEdits", "plan"].map(str::to_owned).to_vec();
    policy.max_processes = 1;
    let host = place.host_with(policy).await;
    let (first, id) = (place.session(&host).await, place.session(&host).await);
    let mut events = host.subscribe(&first, 0).await.unwrap();
    host.send(&first, user("%hang", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, |_, payload| payload["state"] == "running").await;
    // All of them wait for its start.
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.resume(&id).await.unwrap();
    until(&mut events, |_, payload| payload["state"] == "starting").await;
    for mode in ["acceptEdits", "plan"] {
        let mut update = Update::default();
        update.permission_mode = Some(Some(mode.to_owned()));
        host.update(&id, update).await.unwrap();
    }
    host.stop(&first).await.unwrap();
    until(&mut events, |event, _| event.kind == "process_started").await;
    let modes = || {
        let report = place.cli.report().unwrap();
        let asked = report.received().map(|line| &line["request"]);
        let modes = asked.filter(|request| request["subtype"] == "set_permission_mode");
        modes.map(|request| request["mode"].clone()).collect::<Vec<_>>()
    };
    while modes().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(modes().last().unwrap(), "plan");
    host.shutdown().await;
}

#[tokio::test]
async fn a_process_that_does_not_take_a_change_is_replaced() {
    let place = Place::new();
    let mut policy = place.policy();
    policy.permission_modes = vec!["plan".to_owned()];
    policy.options = policy.options.transport(Simulated::steps(|| {
        let steps = Steps::new().initialize();
        let steps = steps.expect(Match::request("set_permission_mode"));
        steps.reply_error("not now").expect_end().exit(0)
    }));
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.resume(&id).await.unwrap();
    until(&mut events, |event, _| event.kind == "process_started").await;
    let mut update = Update::default();
    update.permission_mode = Some(Some("plan".to_owned()));
    host.update(&id, update).await.unwrap();
    let told = until(&mut events, |event, _| event.kind == "change_not_applied").await;
    assert!(told.payload.get().contains("not now"), "{}", told.payload);
    until(&mut events, |event, _| event.kind == "process_exited").await;
    host.resume(&id).await.unwrap();
    until(&mut events, |event, _| event.kind == "process_started").await;
    host.shutdown().await;
}

/// A question that the CLI withdraws in one write with it, as when the call was aborted at once.
#[tokio::test]
async fn a_question_that_comes_with_its_withdrawal_waits_for_nobody() {
    let place = Place::new();
    let uuid = Uuid::new_v4();
    let asking = Simulated::steps(move || {
        let ask = json!({"type": "control_request", "request_id": "r", "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t"}});
        let cancel = json!({"type": "control_cancel_request", "request_id": "r"});
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1,
            "num_turns": 1, "result": "done", "total_cost_usd": 0.0, "usage": {}, "modelUsage": {}, "permission_denials": [],
            "uuid": Uuid::new_v4(), "stop_reason": "end_turn", "user_message_uuid": uuid, "user_message_uuids": [uuid]});
        let steps = Steps::new().initialize().expect(Match::kind("user"));
        steps
            .send_raw(format!("{ask}\n{cancel}\n"))
            .send(result)
            .expect_end()
            .exit(0)
    });
    let mut policy = place.policy();
    policy.options = policy.options.transport(asking);
    policy.max_processes = 1;
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("ask", uuid), "ada").await.unwrap();
    processed(&mut events, uuid, "processed").await;
    let session = host.session(&id).await.unwrap();
    assert_eq!(
        (session.state, session.pending_approvals),
        (SessionState::Idle, 0)
    );
    let approvals = host.approvals(Some(&id), None, None, 10).await.unwrap();
    assert_eq!(approvals.len(), 1);
    assert_eq!(approvals[0].state, ApprovalState::Superseded);
    // The process is idle, and gives its place to another session.
    let other = place.session(&host).await;
    let mut events = host.subscribe(&other, 0).await.unwrap();
    host.resume(&other).await.unwrap();
    until(&mut events, |event, _| event.kind == "process_started").await;
    host.shutdown().await;
}

/// The CLI may not know whether its question arrived, and an id may come again for another question.
#[tokio::test]
async fn a_question_that_comes_twice_is_asked_once_and_its_process_goes_on() {
    let place = Place::new();
    let uuid = Uuid::new_v4();
    let asking = Simulated::steps(move || {
        let ask = json!({"type": "control_request", "request_id": "r", "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t"}});
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1,
            "num_turns": 1, "result": "done", "total_cost_usd": 0.0, "usage": {}, "modelUsage": {}, "permission_denials": [],
            "uuid": Uuid::new_v4(), "stop_reason": "end_turn", "user_message_uuid": uuid, "user_message_uuids": [uuid]});
        let steps = Steps::new().initialize().expect(Match::kind("user"));
        steps
            .send_raw(format!("{ask}\n{ask}\n"))
            .expect(Match::kind("control_response"))
            .send(ask)
            .expect(Match::kind("control_response"))
            .send(result)
            .expect_end()
            .exit(0)
    });
    let mut policy = place.policy();
    policy.options = policy.options.transport(asking);
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("ask", uuid), "ada").await.unwrap();
    for asked in 1..=2 {
        until(&mut events, |event, _| event.kind == "approval_opened").await;
        let approvals = host.approvals(Some(&id), None, None, 10).await.unwrap();
        assert_eq!(approvals.len(), asked);
        let allow: RawJson = json!({"behavior": "allow"}).into();
        host.decide(approvals[asked - 1].id, allow, "ada").await.unwrap();
    }
    processed(&mut events, uuid, "processed").await;
    let session = host.session(&id).await.unwrap();
    assert_eq!(
        (session.state, session.pending_approvals, session.epoch),
        (SessionState::Idle, 0, 1)
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_question_whose_id_is_a_number_is_answered() {
    let place = Place::new();
    let uuid = Uuid::new_v4();
    let asking = Simulated::steps(move || {
        let ask = json!({"type": "control_request", "request_id": 7, "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t"}});
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1,
            "num_turns": 1, "result": "done", "total_cost_usd": 0.0, "usage": {}, "modelUsage": {}, "permission_denials": [],
            "uuid": Uuid::new_v4(), "stop_reason": "end_turn", "user_message_uuid": uuid, "user_message_uuids": [uuid]});
        let steps = Steps::new().initialize().expect(Match::kind("user"));
        steps
            .send(ask)
            .expect(json!({"type": "control_response", "response": {"request_id": 7}}))
            .send(result)
            .expect_end()
            .exit(0)
    });
    let mut policy = place.policy();
    policy.options = policy.options.transport(asking);
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("ask", uuid), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    let approvals = host.approvals(Some(&id), None, None, 10).await.unwrap();
    let allow: RawJson = json!({"behavior": "allow"}).into();
    host.decide(approvals[0].id, allow, "ada").await.unwrap();
    processed(&mut events, uuid, "processed").await;
    assert_eq!(host.session(&id).await.unwrap().pending_approvals, 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_late_response_is_told_who_decided() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let prompt = Uuid::new_v4();
    host.send(
        &id,
        user(
            "%tool Write {\"file_path\":\"a.txt\",\"content\":\"a\"}\n%say done",
            prompt,
        ),
        "ada",
    )
    .await
    .unwrap();
    let asked = until(&mut events, |event, _| event.kind == "control_request").await;
    let request_id = asked.payload.to_value().unwrap()["request_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let response = |behavior: &str| -> RawJson {
        let answer = match behavior {
            "allow" => {
                json!({"behavior": "allow", "updatedInput": {"file_path": place.dir.path().join("a.txt"), "content": "a"}})
            }
            _ => json!({"behavior": "deny", "message": "no"}),
        };
        json!({"type": "control_response", "response": {"subtype": "success", "request_id": request_id, "response": answer}}).into()
    };
    let first = host.send(&id, response("allow"), "ada").await.unwrap();
    assert_eq!(first.effect, Effect::Stored);
    let repeated = host.send(&id, response("allow"), "ada").await.unwrap();
    assert_eq!((repeated.effect, repeated.seq), (Effect::Repeated, first.seq));
    let late = host.send(&id, response("deny"), "bob").await.unwrap();
    assert_eq!(
        late.effect,
        Effect::Decided {
            by: Some("ada".to_owned())
        }
    );
    assert_eq!((late.event_id, late.seq), (first.event_id, first.seq));
    // Clients that still show the question are told, too.
    until(&mut events, |event, payload| {
        event.kind == "control_cancel_request" && payload["request_id"] == request_id
    })
    .await;
    processed(&mut events, prompt, "processed").await;
    let unknown = json!({"type": "control_response", "response": {"subtype": "success", "request_id": "none", "response": {}}});
    host.send(&id, unknown.into(), "ada").await.unwrap_err();
    host.shutdown().await;
}

/// What waits is in memory, and read again for each frame that comes.
#[tokio::test]
async fn what_waits_for_a_session_has_bounds_and_a_repetition_is_known_all_the_same() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let running = Uuid::new_v4();
    host.send(&id, user("%hang", running), "ada").await.unwrap();
    processed(&mut events, running, "processing").await;
    // By their number.
    let known = Uuid::new_v4();
    let mut many = vec![user("%say known", known)];
    many.extend((0..998).map(|n| user(&format!("%say {n}"), Uuid::new_v4())));
    host.send_all(&id, many, "ada").await.unwrap();
    let full = host.send(&id, user("%say more", Uuid::new_v4()), "ada").await;
    assert!(matches!(full, Err(HostError::Busy(_))), "{full:?}");
    let again = host.send(&id, user("%say known", known), "ada").await.unwrap();
    assert_eq!(again.effect, Effect::Repeated);
    // All or nothing: the second has no room.
    let other = place.session(&host).await;
    let large = "x".repeat(20 << 20);
    let both = [Uuid::new_v4(), Uuid::new_v4()].map(|uuid| user(&large, uuid));
    let full = host.send_all(&other, both.to_vec(), "ada").await;
    assert!(matches!(full, Err(HostError::Busy(_))), "{full:?}");
    assert_eq!(
        host.session(&other).await.unwrap().head_seq,
        1,
        "nothing is stored"
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_page_of_long_events_is_short_and_readers_get_all_of_them() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    let text = "x".repeat(3 << 20);
    for n in 0..5 {
        let payload = json!({"type": "assistant", "n": n, "text": text});
        let event = NewEvent::new(Source::Worker, "assistant", payload.into());
        host.event_log()
            .write(&id, vec![Write::Append(event)])
            .await
            .unwrap();
    }
    let head = host.session(&id).await.unwrap().head_seq;
    let (mut after, mut pages) = (0, 0);
    while after < head {
        let page = host.events(&id, after, 1000).await.unwrap();
        let bytes: usize = page.events.iter().map(|event| event.payload.get().len()).sum();
        assert!(bytes < 8 << 20, "{bytes}");
        assert_eq!(page.events[0].seq, after + 1);
        after = page.events.last().unwrap().seq;
        pages += 1;
    }
    assert!(pages > 2, "{pages}");
    let mut events = host.subscribe(&id, 0).await.unwrap();
    for seq in 1..=head {
        let Delivered::Event(event) = events.next().await.unwrap() else {
            panic!("an event")
        };
        assert_eq!(event.seq, seq);
    }
    assert!(matches!(events.next().await.unwrap(), Delivered::Synced { .. }));
    // What is in each list is short, too.
    let mut new = NewSession::new(place.dir.path());
    new.title = Some("x".repeat(4097));
    let long = host.create(new, "ada").await;
    assert!(matches!(long, Err(HostError::Invalid(_))), "{long:?}");
    let mut update = Update::default();
    update.title = Some(Some("x".repeat(4097)));
    let long = host.update(&id, update).await;
    assert!(matches!(long, Err(HostError::Invalid(_))), "{long:?}");
    host.shutdown().await;
}
