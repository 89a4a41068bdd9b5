//! What holds turns up, and what ends processes: budgets, the gate, memory, and approvals that nobody decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use outrigger::SessionId;
use outrigger::permissions::{Opinion, PermissionDecision, PermissionRequest, Policy, layer};
use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::{Match, Steps};
use outrigger_fleet::budget::{Amount, Budget, Cap};
use outrigger_fleet::gate::{Gate, GateLimits, Visitor};
use outrigger_host::log::Update;
use outrigger_host::{ApprovalState, HostError, NewSession, SessionState, TurnBudget};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use uuid::Uuid;

use crate::place::{PATIENCE, Place, processed, say, until, user};

const WRITE: &str = "%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}";

#[tokio::test]
async fn an_approval_that_nobody_decides_expires_and_is_denied() {
    let place = Place::new();
    let mut policy = place.policy();
    policy.approvals_expire = Some(Duration::from_millis(20));
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let prompt = Uuid::new_v4();
    host.send(&id, user(WRITE, prompt), "ada").await.unwrap();
    processed(&mut events, prompt, "processed").await;
    let approvals = host.approvals(Some(&id), None, None, 10).await.unwrap();
    assert_eq!(approvals.len(), 1);
    assert_eq!(
        (approvals[0].state, &approvals[0].decided_by),
        (ApprovalState::Expired, &None)
    );
    let page = host.events(&id, 0, 1000).await.unwrap();
    let told = |event: &&Arc<outrigger_host::LogEvent>| {
        event.kind == "user" && event.payload.get().contains("nobody decided in time")
    };
    assert_eq!(
        page.events.iter().filter(told).count(),
        1,
        "the model is told why"
    );
    host.shutdown().await;
}

#[tokio::test]
async fn rules_and_the_operators_code_decide_before_people() {
    let place = Place::new();
    let mut policy = place.policy();
    policy.options = place.options().allowed_tools(["Write"]);
    policy.decides_first =
        Some(Arc::new(layer(
            async |request: PermissionRequest| match request.input.get().contains("forbidden") {
                true => Opinion::Decided(PermissionDecision::deny("the operator forbids it")),
                false => Opinion::Pass,
            },
        )));
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    say(&host, &id, WRITE).await;
    say(
        &host,
        &id,
        "%tool Bash {\"command\":\"rm forbidden\",\"description\":\"x\"}",
    )
    .await;
    assert!(
        host.approvals(None, None, None, 10).await.unwrap().is_empty(),
        "nobody was asked"
    );
    let page = host.events(&id, 0, 1000).await.unwrap();
    assert!(
        page.events
            .iter()
            .any(|event| event.payload.get().contains("the operator forbids it"))
    );
    let mut events = host.subscribe(&id, page.head_seq).await.unwrap();
    let asks = "%tool Bash {\"command\":\"rm other\",\"description\":\"x\"}";
    host.send(&id, user(asks, Uuid::new_v4()), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    host.shutdown().await;
}

/// The CLI asks nobody about calls that a rule of the session allows, or that read in a directory of the session.
#[tokio::test]
async fn no_client_can_keep_the_operators_code_from_being_asked() {
    for has_code in [true, false] {
        let place = Place::new();
        let mut policy = place.policy();
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        policy.decides_first = Some(match has_code {
            true => Arc::new(layer(move |_: PermissionRequest| {
                counter.fetch_add(1, Ordering::Relaxed);
                async { Opinion::Pass }
            })),
            // The CLI knows these rules.
            false => Arc::new(Policy::ask_all().deny(["Bash(rm *)"])),
        });
        let host = place.host_with(policy).await;
        let id = place.session(&host).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        let prompt = Uuid::new_v4();
        host.send(&id, user(WRITE, prompt), "ada").await.unwrap();
        until(&mut events, |event, _| event.kind == "approval_opened").await;
        let open = host.approvals(None, None, None, 10).await.unwrap().remove(0);
        let rule = |behavior: &str| json!({"type": "addRules", "rules": [{"toolName": "Write"}], "behavior": behavior, "destination": "session"});
        let directory =
            json!({"type": "addDirectories", "directories": [place.dir.path()], "destination": "session"});
        let changed = |changes: &[&Value]| json!({"behavior": "allow", "updatedPermissions": changes}).into();
        if has_code {
            for change in [rule("allow"), directory.clone()] {
                let refused = host
                    .decide(open.id, changed(&[&rule("ask"), &change]), "eve")
                    .await;
                assert!(
                    matches!(refused, Err(HostError::NotAllowed(_))),
                    "{change}: {refused:?}"
                );
            }
            let gone = json!({"type": "removeDirectories", "directories": ["/"], "destination": "session"});
            host.decide(open.id, changed(&[&rule("ask"), &gone]), "ada")
                .await
                .unwrap();
        } else {
            host.decide(open.id, changed(&[&rule("allow"), &directory]), "ada")
                .await
                .unwrap();
        }
        processed(&mut events, prompt, "processed").await;
        host.send(&id, user(WRITE, Uuid::new_v4()), "ada").await.unwrap();
        if has_code {
            until(&mut events, |event, _| event.kind == "approval_opened").await;
            assert_eq!(asked.load(Ordering::Relaxed), 2);
        }
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_turn_waits_for_the_budget_without_a_process_and_then_runs() {
    let place = Place::new();
    let budget = Budget::new("host", Cap::tokens(1_000_000));
    let reserve = || Amount {
        tokens: 600_000,
        ..Amount::default()
    };
    let mut policy = place.policy();
    policy.budget = Some(TurnBudget::new(budget.clone(), reserve()));
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let other = budget.reserve(reserve()).unwrap();
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let prompt = Uuid::new_v4();
    host.send(&id, user("%say hello", prompt), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "budget_exhausted").await;
    assert_eq!(place.cli.started().len(), 0);
    assert_eq!(host.session(&id).await.unwrap().state, SessionState::Idle);
    other.release();
    // It asks again now and then.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(6)).await;
    tokio::time::resume();
    processed(&mut events, prompt, "processed").await;
    let told = host.events(&id, 0, 1000).await.unwrap().events;
    assert_eq!(
        told.iter()
            .filter(|event| event.kind == "budget_exhausted")
            .count(),
        1
    );
    assert_eq!(budget.reserved().tokens, 0);
    assert!(budget.spent().tokens > 0, "the turn is charged");
    host.shutdown().await;
}

fn more_than_half() -> (Budget, TurnBudget) {
    let budget = Budget::new("host", Cap::tokens(1_000_000));
    let reserve = Amount {
        tokens: 600_000,
        ..Amount::default()
    };
    (budget.clone(), TurnBudget::new(budget, reserve))
}

#[tokio::test]
async fn a_turn_that_does_not_begin_costs_nothing() {
    let place = Place::new();
    let host = place.host().await;
    let id = place.session(&host).await;
    host.shutdown().await;
    drop(host);
    let (budget, of_turns) = more_than_half();
    let mut policy = place.policy();
    policy.budget = Some(of_turns);
    // The directory of the session is allowed no more.
    let elsewhere = tempfile::tempdir().unwrap();
    policy.roots = vec![elsewhere.path().to_owned()];
    let host = place.host_with(policy).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    for _ in 0..2 {
        let prompt = user("%say hello", Uuid::new_v4());
        host.send(&id, prompt, "ada").await.unwrap();
        until(&mut events, |event, _| event.kind == "start_failed").await;
    }
    host.shutdown().await;
    assert_eq!((budget.reserved(), budget.spent()), Default::default());
}

#[tokio::test]
async fn an_archived_session_does_not_wait_for_the_budget() {
    let place = Place::new();
    let (budget, of_turns) = more_than_half();
    let other = budget.reserve(of_turns.reserve).unwrap();
    let mut policy = place.policy();
    policy.budget = Some(of_turns);
    let host = place.host_with(policy).await;
    let mut new = NewSession::new(place.dir.path());
    new.id = Some(SessionId::random());
    let id = host.create(new.clone(), "ada").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("%say one", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, |event, _| event.kind == "budget_exhausted").await;
    host.archive(&id).await.unwrap();
    host.delete(&id).await.unwrap();
    // Another session gets the id, and nothing that the one before was waiting with.
    host.create(new, "ada").await.unwrap();
    let mut events = host.subscribe(&id, 0).await.unwrap();
    other.release();
    let prompt = Uuid::new_v4();
    host.send(&id, user("%say two", prompt), "ada").await.unwrap();
    processed(&mut events, prompt, "processed").await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_turn_that_exceeds_the_budget_is_interrupted_and_told() {
    let place = Place::new();
    let budget = Budget::new("host", Cap::tokens(10));
    let amount = Amount {
        tokens: 1,
        ..Amount::default()
    };
    let mut policy = place.policy();
    policy.budget = Some(TurnBudget::new(budget, amount));
    policy.options = place.options().allowed_tools(["Write"]);
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let prompt = Uuid::new_v4();
    host.send(&id, user(&format!("{WRITE}\n{WRITE}\n%say done"), prompt), "ada")
        .await
        .unwrap();
    let told = until(&mut events, |event, _| event.kind == "prompt_failed").await;
    assert!(told.payload.get().contains("exhausted"), "{}", told.payload);
    processed(&mut events, prompt, "processed").await;
    host.shutdown().await;
}

/// What it would spend until its end, nobody knows.
#[tokio::test]
async fn a_turn_that_exceeds_the_budget_and_is_not_interrupted_is_killed() {
    let place = Place::new();
    let stubborn = Simulated::steps(|| {
        let init = json!({"type": "system", "subtype": "init"});
        let calls = json!({"type": "assistant", "parent_tool_use_id": null, "uuid": Uuid::new_v4(), "session_id": "s", "message": {
            "id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": null, "stop_sequence": null,
            "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}],
            "usage": {"input_tokens": 100, "output_tokens": 1}}});
        let steps = Steps::new().initialize().expect(Match::kind("user"));
        let steps = steps.send(init).send(calls);
        let steps = steps.expect(Match::request("interrupt")).reply_error("no");
        steps.expect_end().exit(0)
    });
    let mut policy = place.policy();
    let amount = Amount {
        tokens: 1,
        ..Amount::default()
    };
    policy.budget = Some(TurnBudget::new(Budget::new("host", Cap::tokens(10)), amount));
    policy.options = policy.options.transport(stubborn);
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let prompt = Uuid::new_v4();
    host.send(&id, user("hello", prompt), "ada").await.unwrap();
    let told = until(&mut events, |event, _| event.kind == "prompt_failed").await;
    assert!(told.payload.get().contains("exhausted"), "{}", told.payload);
    until(&mut events, |event, _| event.kind == "process_exited").await;
    processed(&mut events, prompt, "interrupted").await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_turn_waits_at_the_gate_and_outlives_its_host_there() {
    let place = Place::new();
    let gate = || {
        let mut limits = GateLimits::default();
        limits.max_running = 1;
        Gate::new(limits)
    };
    let held = gate();
    let mut policy = place.policy();
    policy.gate = Some(held.clone());
    let host = place.host_with(policy.clone()).await;
    let (one, two) = (place.session(&host).await, place.session(&host).await);
    let pass = held.enter(Visitor::new("other")).await.unwrap();
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    host.send(&one, user("%say one", first), "ada").await.unwrap();
    host.send(&two, user("%say two", second), "ada").await.unwrap();
    while held.state().waiting < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(place.cli.started().len(), 0);
    // A host that closes does not wait, and the next one takes the prompts up.
    host.shutdown().await;
    drop((host, pass));
    policy.gate = Some(gate());
    let host = place.host_with(policy).await;
    for (id, prompt) in [(one, first), (two, second)] {
        let mut events = host.subscribe(&id, 0).await.unwrap();
        processed(&mut events, prompt, "processed").await;
        let marks = host.events(&id, 0, 1000).await.unwrap().events;
        let marks = marks
            .iter()
            .filter(|event| event.payload.get().contains("\"processing\""));
        assert_eq!(marks.count(), 1);
    }
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sessions_share_few_places_and_each_gets_its_turn() {
    let place = Place::new();
    let mut policy = place.policy();
    policy.max_processes = 2;
    let host = place.host_with(policy).await;
    let mut sessions = tokio::task::JoinSet::new();
    for _ in 0..24 {
        let (host, id) = (host.clone(), place.session(&host).await);
        sessions.spawn(async move {
            let mut events = host.subscribe(&id, 0).await.unwrap();
            for round in 0..6 {
                // A process without a turn is idle from its start. The prompt may come while it ends for another session.
                host.resume(&id).await.unwrap();
                if round == 0 {
                    until(&mut events, |event, _| event.kind == "process_started").await;
                }
                let prompt = Uuid::new_v4();
                host.send(&id, user(&format!("%say {round}"), prompt), "ada")
                    .await
                    .unwrap();
                processed(&mut events, prompt, "processed").await;
            }
        });
    }
    while let Some(ended) = sessions.join_next().await {
        ended.unwrap();
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_that_is_drained_begins_no_turn_and_lets_those_that_run_end() {
    let place = Place::new();
    let host = place.host().await;
    let (one, two) = (place.session(&host).await, place.session(&host).await);
    let mut events = host.subscribe(&one, 0).await.unwrap();
    let (first, next, other) = (Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
    host.send(&one, user(&format!("{WRITE}\n%say done"), first), "ada")
        .await
        .unwrap();
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    let drained = tokio::spawn({
        let host = host.clone();
        async move { host.drain().await }
    });
    // Known to be drained: what comes now is taken, and waits, in a session with a process and in one without.
    tokio::task::yield_now().await;
    host.send(&one, user("%say next", next), "ada").await.unwrap();
    host.send(&two, user("%say other", other), "ada").await.unwrap();
    assert!(!drained.is_finished(), "a turn runs");
    let pending = host
        .approvals(Some(&one), Some(ApprovalState::Pending), None, 10)
        .await
        .unwrap();
    let deny = serde_json::json!({"behavior": "deny", "message": "no"}).into();
    host.decide(pending[0].id, deny, "ada").await.unwrap();
    processed(&mut events, first, "processed").await;
    drained.await.unwrap();
    assert_eq!(place.cli.started().len(), 1, "no process for the other session");
    host.shutdown().await;
    for (id, prompt) in [(&one, next), (&two, other)] {
        let told = host.events(id, 0, 1000).await.unwrap().events;
        let marks = told.iter().filter(|event| event.kind == "delivery_update");
        let marks: Vec<_> = marks
            .map(|event| event.payload.to_value().unwrap())
            .filter(|payload| payload["event_id"] == prompt.to_string())
            .map(|payload| payload["status"].clone())
            .collect();
        assert_eq!(marks, ["received"]);
    }
    drop((events, host));
    // The next host has them.
    let host = place.host().await;
    for (id, prompt) in [(&one, next), (&two, other)] {
        let mut events = host.subscribe(id, 0).await.unwrap();
        processed(&mut events, prompt, "processed").await;
    }
    // Without turns it is drained at once, and a gate that would let them in changes nothing.
    host.drain().await;
    host.shutdown().await;
}

/// The process of the turn before is to be replaced, and the next one takes long to start.
#[tokio::test]
async fn a_turn_that_begins_with_another_process_is_waited_for_by_a_host_that_is_drained() {
    let place = Place::new();
    let (first, next) = (Uuid::new_v4(), Uuid::new_v4());
    let mut policy = place.policy();
    policy.permission_modes = vec!["plan".to_owned()];
    policy.options = policy.options.transport(Simulated::start(move |_, started| {
        if started > 0 {
            return Steps::new().sleep(Duration::from_secs(3600)).spawn_in_memory();
        }
        let result = json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1,
            "num_turns": 1, "result": "done", "total_cost_usd": 0.0, "usage": {}, "modelUsage": {}, "permission_denials": [],
            "uuid": Uuid::new_v4(), "stop_reason": "end_turn", "user_message_uuid": first, "user_message_uuids": [first]});
        let steps = Steps::new().initialize().expect(Match::kind("user"));
        // It has the prompt: what is asked of it next could overtake one that it has not.
        let steps = steps.send(json!({"type": "system", "subtype": "status", "status": null, "uuid": Uuid::new_v4()}));
        let steps = steps.expect(Match::request("set_permission_mode"));
        let steps = steps.reply_error("not now");
        let steps = steps.expect(Match::request("mcp_status"));
        let steps = steps.reply(json!({"mcpServers": []}));
        steps.send(result).expect_end().exit(0).spawn_in_memory()
    }));
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("one", first), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "system").await;
    host.send(&id, user("two", next), "ada").await.unwrap();
    let mut update = Update::default();
    update.permission_mode = Some(Some("plan".to_owned()));
    host.update(&id, update).await.unwrap();
    until(&mut events, |event, _| event.kind == "change_not_applied").await;
    let asks = json!({"type": "control_request", "request_id": "s", "request": {"subtype": "mcp_status"}});
    host.send(&id, asks.into(), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "process_exited").await;
    until(&mut events, |_, payload| payload["state"] == "starting").await;
    assert!(host.drain().now_or_never().is_none(), "a turn begins");
    host.shutdown().await;
}

#[tokio::test]
async fn a_turn_that_waited_at_the_gate_does_not_begin_in_a_host_that_is_drained() {
    let place = Place::new();
    let mut limits = GateLimits::default();
    limits.max_running = 1;
    let gate = Gate::new(limits);
    let mut policy = place.policy();
    policy.gate = Some(gate.clone());
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let pass = gate.enter(Visitor::new("other")).await.unwrap();
    let prompt = Uuid::new_v4();
    host.send(&id, user("%say one", prompt), "ada").await.unwrap();
    while gate.state().waiting < 1 {
        tokio::task::yield_now().await;
    }
    host.drain().await;
    drop(pass);
    // It is let in, and gives its place back.
    drop(gate.enter(Visitor::new("another")).await.unwrap());
    host.shutdown().await;
    assert_eq!(place.cli.started().len(), 0);
    let told = host.events(&id, 0, 1000).await.unwrap().events;
    assert!(
        !told
            .iter()
            .any(|event| event.payload.get().contains("\"processing\""))
    );
}

#[tokio::test]
async fn prompts_behind_one_that_the_gate_refused_begin_with_the_next_try() {
    let place = Place::new();
    let mut limits = GateLimits::default();
    (limits.max_running, limits.max_waiting) = (1, 1);
    let gate = Gate::new(limits);
    let mut policy = place.policy();
    policy.gate = Some(gate.clone());
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    // With a process the owner stays, and what it knows.
    say(&host, &id, "%say hello").await;
    let head = host.session(&id).await.unwrap().head_seq;
    let mut events = host.subscribe(&id, head).await.unwrap();
    let pass = gate.enter(Visitor::new("other")).await.unwrap();
    let waits = tokio::spawn({
        let gate = gate.clone();
        async move { gate.enter(Visitor::new("another")).await.unwrap() }
    });
    while gate.state().waiting < 1 {
        tokio::task::yield_now().await;
    }
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    host.send(&id, user("%say one", first), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "turn_not_admitted").await;
    drop(pass);
    drop(waits.await.unwrap());
    host.send(&id, user("%say two", second), "ada").await.unwrap();
    processed(&mut events, first, "processed").await;
    processed(&mut events, second, "processed").await;
    host.shutdown().await;
}

/// The end of an agent begins another turn, which no prompt waits for.
#[tokio::test]
async fn an_agent_in_the_background_is_work_until_it_has_reported() {
    for is_drained in [false, true] {
        let place = Place::new();
        let budget = Budget::new("host", Cap::tokens(1_000_000));
        let reserve = Amount {
            tokens: 1,
            ..Amount::default()
        };
        let mut policy = place.policy();
        policy.budget = Some(TurnBudget::new(budget.clone(), reserve));
        policy.max_processes = 1;
        policy.idle = Duration::from_secs(10);
        let host = place.host_with(policy).await;
        let (one, two) = (place.session(&host).await, place.session(&host).await);
        let agent = json!({"description": "look", "prompt": "%delay 3600000\n%say looked", "run_in_background": true});
        say(
            &host,
            &one,
            &format!("%tool Agent {agent}\n%say started\n%say reported"),
        )
        .await;
        let spent = budget.spent().tokens;
        let other = Uuid::new_v4();
        let drained = tokio::spawn({
            let host = host.clone();
            async move {
                if is_drained {
                    host.drain().await;
                }
            }
        });
        // Another session waits for the place.
        host.send(&two, user("%say hello", other), "ada").await.unwrap();
        tokio::time::pause();
        tokio::time::sleep(Duration::from_secs(1800)).await;
        let told = host.events(&one, 0, 1000).await.unwrap().events;
        assert!(told.iter().all(|event| event.kind != "process_exited"));
        assert_eq!(drained.is_finished(), !is_drained);
        tokio::time::sleep(Duration::from_secs(1900)).await;
        tokio::time::resume();
        let mut events = host.subscribe(&one, 0).await.unwrap();
        until(&mut events, |event, payload| {
            event.kind == "result" && payload["result"] == "reported"
        })
        .await;
        drained.await.unwrap();
        assert!(budget.spent().tokens > spent, "the turn is charged");
        if !is_drained {
            let mut events = host.subscribe(&two, 0).await.unwrap();
            processed(&mut events, other, "processed").await;
        }
        host.shutdown().await;
    }
}

/// A CLI that begins to write a line again and again when it gets a prompt, until it is killed. If the prompt is given, its turn ends first.
fn without_end(line: &'static str, ends: Option<Uuid>) -> Simulated {
    const BEGINS: &str = "it begins";
    Simulated::start(move |_, _| {
        let mut steps = Steps::new().initialize().expect(Match::kind("user"));
        if let Some(prompt) = ends {
            steps = steps.send(json!({"type": "result", "subtype": "success", "is_error": false, "duration_ms": 1,
                "duration_api_ms": 1, "num_turns": 1, "result": "done", "total_cost_usd": 0.0, "usage": {}, "modelUsage": {},
                "permission_denials": [], "uuid": Uuid::new_v4(), "stop_reason": "end_turn", "user_message_uuid": prompt,
                "user_message_uuids": [prompt]}));
        }
        let steps = steps
            .send(json!({"type": "system", "subtype": BEGINS}))
            .expect_end();
        let (mut client, running) = steps.patience(PATIENCE).spawn_in_memory();
        let (near, mut far) = tokio::io::duplex(1 << 16);
        let mut own = std::mem::replace(&mut client.stdout, near);
        tokio::spawn(async move {
            let (mut chunk, mut seen, mut has_begun) = (vec![0; 4096], String::new(), false);
            loop {
                tokio::select! {
                    read = own.read(&mut chunk) => {
                        let read = &chunk[..read.unwrap()];
                        if read.is_empty() || far.write_all(read).await.is_err() {
                            return;
                        }
                        seen += &String::from_utf8_lossy(read);
                        has_begun = seen.contains(BEGINS);
                    }
                    written = far.write_all(line.as_bytes()), if has_begun => if written.is_err() {
                        return;
                    },
                }
            }
        });
        (client, running)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_writes_without_end_is_stopped_all_the_same() {
    for line in [
        "{\"type\":\"system\",\"subtype\":\"news\"}\n",
        "{\"type\":\"keep_alive\"}\n",
    ] {
        let place = Place::new();
        let mut policy = place.policy();
        policy.options = policy.options.transport(without_end(line, None));
        policy.max_processes = 1;
        let host = place.host_with(policy).await;
        let id = place.session(&host).await;
        let (prompt, waits) = (Uuid::new_v4(), Uuid::new_v4());
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.send(&id, user("write", prompt), "ada").await.unwrap();
        until(&mut events, |_, payload| payload["subtype"] == "it begins").await;
        host.send(&id, user("and more", waits), "ada").await.unwrap();
        tokio::time::timeout(PATIENCE, host.stop(&id))
            .await
            .unwrap()
            .unwrap();
        // The place is free for the prompt that waits.
        let begun = async {
            while host.session(&id).await.unwrap().epoch < 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, begun).await.unwrap();
        tokio::time::timeout(PATIENCE, host.archive(&id))
            .await
            .unwrap()
            .unwrap();
        tokio::time::timeout(PATIENCE, host.shutdown()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_writes_without_end_and_does_nothing_is_idle() {
    let place = Place::new();
    let prompt = Uuid::new_v4();
    let mut policy = place.policy();
    let writes = without_end("{\"type\":\"keep_alive\"}\n", Some(prompt));
    policy.options = policy.options.transport(writes);
    policy.idle = Duration::from_millis(50);
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("hello", prompt), "ada").await.unwrap();
    until(&mut events, |event, payload| {
        event.kind == "process_exited" && payload["reason"] == "released"
    })
    .await;
    tokio::time::timeout(PATIENCE, host.shutdown()).await.unwrap();
}

#[tokio::test]
async fn a_start_ends_the_process_that_was_idle_for_longest_and_no_other() {
    let place = Place::new();
    let slow = Simulated::steps(|| {
        let steps = Steps::new().initialize().expect_end();
        // Longer than a start waits before it asks for a place again.
        steps.sleep(Duration::from_secs(1)).exit(0)
    });
    let mut policy = place.policy();
    policy.options = policy.options.transport(slow.clone());
    policy.max_processes = 3;
    let host = place.host_with(policy).await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        let id = place.session(&host).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.resume(&id).await.unwrap();
        until(&mut events, |event, payload| {
            event.kind == "session_state_changed" && payload["state"] == "idle"
        })
        .await;
        sessions.push(id);
    }
    // As long as one that was told to end takes.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let ended: Vec<bool> = slow
        .started()
        .iter()
        .map(|process| process.exited().is_some())
        .collect();
    assert_eq!(ended, [true, false, false, false]);
    host.shutdown().await;
}

#[tokio::test]
async fn starts_get_their_places_in_the_order_in_which_they_asked() {
    let place = Place::new();
    let mut policy = place.policy();
    policy.max_processes = 1;
    let host = place.host_with(policy).await;
    let mut sessions = Vec::new();
    for _ in 0..5 {
        let id = place.session(&host).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.send(&id, user("%hang", Uuid::new_v4()), "ada")
            .await
            .unwrap();
        until(&mut events, |_, payload| payload["state"] == "starting").await;
        // So that they ask again at different times, if they do.
        tokio::time::sleep(Duration::from_millis(60)).await;
        sessions.push((id, events));
    }
    for (id, mut events) in sessions {
        until(&mut events, |event, _| event.kind == "process_started").await;
        host.stop(&id).await.unwrap();
    }
    host.shutdown().await;
}

/// What comes later never has the number of what was removed, and who reads on from there misses nothing.
#[tokio::test]
async fn a_page_of_approvals_begins_behind_one_that_is_gone() {
    let place = Place::new();
    let host = place.host().await;
    let ask = async || {
        let id = place.session(&host).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.send(&id, user(WRITE, Uuid::new_v4()), "ada").await.unwrap();
        until(&mut events, |event, _| event.kind == "approval_opened").await;
        id
    };
    let (_, gone) = (ask().await, ask().await);
    let first = host.approvals(None, None, None, 2).await.unwrap();
    let last = first.last().unwrap();
    assert_eq!(last.session_id, gone);
    host.archive(&gone).await.unwrap();
    host.delete(&gone).await.unwrap();
    let later = ask().await;
    let second = host.approvals(None, None, Some(last.number), 2).await.unwrap();
    assert_eq!(second.len(), 1);
    assert_eq!((&second[0].session_id, second[0].number), (&later, 3));
    host.shutdown().await;
}
