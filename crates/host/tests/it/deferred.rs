//! Approvals that outlive the process, and the host.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger::SessionId;
use outrigger::options::Launch;
use outrigger::permissions::{Opinion, PermissionDecision, PermissionRequest, layer};
use outrigger::protocol::RawJson;
use outrigger::testing::Simulated;
use outrigger::transport::{BoxFuture, Connection, Transport};
use outrigger_fleet::budget::{Amount, Budget, Cap};
use outrigger_fleet::gate::{Gate, GateLimits, Visitor};
use outrigger_host::{
    Approval, ApprovalKind, ApprovalState, HostError, HostPolicy, LogEvent, SessionHost, SessionState,
    Subscription, TurnBudget,
};
use serde_json::json;
use uuid::Uuid;

use crate::place::{Place, processed, say, until, user};

const ASKS: &str = "%tool Bash {\"command\":\"touch made\",\"description\":\"Make it\"}\n%say done";

fn policy(place: &Place) -> HostPolicy {
    let mut policy = policy_without(place);
    policy.deferred = Some("Bash|AskUserQuestion|ExitPlanMode".to_owned());
    policy
}

fn policy_without(place: &Place) -> HostPolicy {
    let mut policy = place.policy();
    // The SDK does not know the version of a CLI in memory.
    policy.options = policy.options.await_initialize(true);
    policy
}

fn allow() -> RawJson {
    json!({"behavior": "allow"}).into()
}

/// A session whose call waits, and whose process has ended.
async fn waiting(host: &SessionHost, id: &SessionId, text: &str) -> (Approval, Uuid) {
    let mut events = host
        .subscribe(id, host.session(id).await.unwrap().head_seq)
        .await
        .unwrap();
    let prompt = Uuid::new_v4();
    host.send(id, user(text, prompt), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "process_exited").await;
    let mut pending = host
        .approvals(Some(id), Some(ApprovalState::Pending), None, 10)
        .await
        .unwrap();
    assert_eq!(pending.len(), 1);
    let approval = pending.remove(0);
    assert!(approval.deferred);
    let session = host.session(id).await.unwrap();
    assert_eq!(
        (session.state, session.pending_approvals),
        (SessionState::RequiresAction, 1)
    );
    (approval, prompt)
}

async fn told(host: &SessionHost, id: &SessionId) -> Vec<Arc<LogEvent>> {
    host.events(id, 0, 1000).await.unwrap().events
}

fn marks(events: &[Arc<LogEvent>], prompt: Uuid) -> Vec<String> {
    let payloads = events
        .iter()
        .filter(|event| event.kind == "delivery_update")
        .map(|event| event.payload.to_value().unwrap());
    payloads
        .filter(|payload| payload["event_id"] == prompt.to_string())
        .map(|payload| payload["status"].as_str().unwrap().to_owned())
        .collect()
}

async fn state(events: &mut Subscription, state: &str) {
    until(events, |event, payload| {
        event.kind == "session_state_changed" && payload["state"] == state
    })
    .await;
}

#[tokio::test]
async fn a_call_waits_over_hosts_and_prompts_wait_behind_it() {
    let place = Place::new();
    for is_allowed in [true, false] {
        let host = place.host_with(policy(&place)).await;
        let id = place.session(&host).await;
        let (approval, prompt) = waiting(&host, &id, ASKS).await;
        assert_eq!(approval.kind, ApprovalKind::Tool);
        assert_eq!(approval.tool_name.as_deref(), Some("Bash"));
        // Nothing needs a process, and none is started for a prompt or a client.
        let later = Uuid::new_v4();
        host.send(&id, user("%say later", later), "ada").await.unwrap();
        host.resume(&id).await.unwrap();
        let refused = host.rewind(&id, prompt, true, "ada").await;
        assert!(matches!(refused, Err(HostError::TurnRuns(_))), "{refused:?}");
        let started = place.cli.started().len();
        host.shutdown().await;
        drop(host);

        let host = place.host_with(policy(&place)).await;
        assert_eq!(
            host.session(&id).await.unwrap().state,
            SessionState::RequiresAction
        );
        let head = host.session(&id).await.unwrap().head_seq;
        let mut events = host.subscribe(&id, head).await.unwrap();
        let decision = match is_allowed {
            true => allow(),
            false => json!({"behavior": "deny", "message": "not today"}).into(),
        };
        let decided = host.decide(approval.id, decision, "bob").await.unwrap();
        assert_eq!(decided.decided_by.as_deref(), Some("bob"));
        state(&mut events, "running").await;
        processed(&mut events, prompt, "processed").await;
        processed(&mut events, later, "processed").await;
        assert_eq!(place.cli.started().len(), started + 1, "one process for both");
        let told = told(&host, &id).await;
        assert_eq!(marks(&told, prompt), ["received", "processing", "processed"]);
        assert_eq!(marks(&told, later), ["received", "processing", "processed"]);
        let denied = told.iter().any(|event| event.payload.get().contains("not today"));
        assert_eq!(denied, !is_allowed);
        let asked = |kind: &str| told.iter().filter(|event| event.kind == kind).count();
        assert_eq!((asked("control_request"), asked("approval_decided")), (1, 1));
        assert_eq!(asked("decision_not_applied"), 0);
        assert_eq!(host.session(&id).await.unwrap().state, SessionState::Idle);
        // What is over is over.
        host.shutdown().await;
        drop((events, host));
        let host = place.host_with(policy(&place)).await;
        say(&host, &id, "%say more").await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_decision_that_no_process_has_got_is_carried_out_by_the_next_host() {
    let place = Place::new();
    let host = place.host_with(policy(&place)).await;
    let id = place.session(&host).await;
    let (approval, prompt) = waiting(&host, &id, ASKS).await;
    host.shutdown().await;
    // Committed, and nobody acts on it.
    host.decide(approval.id, allow(), "ada").await.unwrap();
    drop(host);
    let host = place.host_with(policy(&place)).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    processed(&mut events, prompt, "processed").await;
    let told = told(&host, &id).await;
    assert_eq!(marks(&told, prompt), ["received", "processing", "processed"]);
    host.shutdown().await;
}

/// A CLI that comes up when the one before it has written what it still had to write.
#[derive(Debug, Clone)]
struct Behind {
    cli: Simulated,
    transcript: PathBuf,
    /// What is written then.
    late: String,
}

impl Transport for Behind {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        std::fs::write(&self.transcript, &self.late).unwrap();
        self.cli.open(launch)
    }

    fn home(&self) -> Option<&Path> {
        self.cli.home()
    }
}

/// The transcript of the only session.
fn transcript(place: &Place) -> PathBuf {
    let projects = place.dir.path().join("claude/projects");
    let project = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap();
    let mut files = std::fs::read_dir(project.path()).unwrap();
    files.next().unwrap().unwrap().path()
}

/// Whether the CLI has noted the call before it was killed is known from the transcript, once nobody writes to it any more.
#[tokio::test]
async fn a_decision_about_a_call_that_was_noted_late_is_applied_and_one_that_was_not_is_given_up_at_once() {
    for is_noted in [true, false] {
        let place = Place::new();
        let host = place.host_with(policy(&place)).await;
        let id = place.session(&host).await;
        let (approval, prompt) = waiting(&host, &id, ASKS).await;
        host.shutdown().await;
        drop(host);
        let transcript = transcript(&place);
        let whole = std::fs::read_to_string(&transcript).unwrap();
        let is_note = |line: &&str| line.contains("hook_deferred_tool");
        assert_eq!(whole.lines().filter(is_note).count(), 1);
        let lines: Vec<&str> = whole.lines().take_while(|line| !is_note(line)).collect();
        let without = lines.join("\n") + "\n";
        std::fs::write(&transcript, &without).unwrap();
        let mut policy = policy(&place);
        policy.options = policy.options.transport(Behind {
            cli: place.cli.clone(),
            transcript,
            late: if is_noted { whole } else { without },
        });
        let (budget, of_turns) = budget();
        policy.budget = Some(of_turns);
        let mut limits = GateLimits::default();
        limits.max_running = 1;
        policy.gate = Some(Gate::new(limits));
        let host = place.host_with(policy).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.decide(approval.id, allow(), "ada").await.unwrap();
        let end = if is_noted { "processed" } else { "interrupted" };
        // Well before the two minutes that a process has to ask.
        processed(&mut events, prompt, end).await;
        let told = told(&host, &id).await;
        let is_lost = told.iter().any(|event| event.kind == "decision_not_applied");
        assert_eq!(is_lost, !is_noted);
        // A turn that does not go on costs nothing, and has no place at the gate.
        assert_eq!(budget.reserved().tokens, 0);
        assert_eq!(budget.spent().tokens > 0, is_noted);
        let other = place.session(&host).await;
        say(&host, &other, "%say hello").await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_decision_is_carried_out_under_a_policy_that_defers_nothing_or_something_else() {
    let place = Place::new();
    for tools in [None, Some("Write"), Some("^mcp__"), Some("Bash"), Some("*")] {
        let host = place.host_with(policy(&place)).await;
        let id = place.session(&host).await;
        let (approval, prompt) = waiting(&host, &id, ASKS).await;
        host.shutdown().await;
        drop(host);
        let mut policy = policy_without(&place);
        policy.deferred = tools.map(str::to_owned);
        let host = place.host_with(policy).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.decide(approval.id, allow(), "ada").await.unwrap();
        processed(&mut events, prompt, "processed").await;
        let told = told(&host, &id).await;
        assert!(told.iter().all(|event| event.kind != "decision_not_applied"));
        assert_eq!(
            told.iter()
                .filter(|event| event.kind == "approval_opened")
                .count(),
            1,
            "nobody is asked again"
        );
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_decision_outlives_a_start_that_fails() {
    let place = Place::new();
    let host = place.host_with(policy(&place)).await;
    let id = place.session(&host).await;
    let (approval, prompt) = waiting(&host, &id, ASKS).await;
    host.shutdown().await;
    drop(host);
    // The directory of the session is allowed no more.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut strict = policy(&place);
    strict.roots = vec![elsewhere.path().to_owned()];
    let host = place.host_with(strict).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.decide(approval.id, allow(), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "resume_failed").await;
    state(&mut events, "failed").await;
    host.shutdown().await;
    drop((events, host));
    let host = place.host_with(policy(&place)).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    processed(&mut events, prompt, "processed").await;
    let told = told(&host, &id).await;
    assert!(told.iter().all(|event| event.kind != "decision_not_applied"));
    host.shutdown().await;
}

#[tokio::test]
async fn the_wire_of_the_official_client_answers_a_call_that_waits() {
    let place = Place::new();
    let host = place.host_with(policy(&place)).await;
    let id = place.session(&host).await;
    let question = json!({"questions": [{"question": "Which roof?", "header": "Roof", "multiSelect": false, "options": [
        {"label": "Slate", "description": "heavy"}, {"label": "Thatch", "description": "light"}]}]});
    let asks = format!("%tool AskUserQuestion {question}\n%say {{{{last}}}}");
    let (approval, prompt) = waiting(&host, &id, &asks).await;
    assert_eq!(approval.kind, ApprovalKind::Question);
    // The client has the request, with the input as the model wrote it.
    let told = told(&host, &id).await;
    let request = told.iter().find(|event| event.kind == "control_request").unwrap();
    let request = request.payload.to_value().unwrap();
    assert_eq!(request["request"]["subtype"], "can_use_tool");
    assert_eq!(request["request"]["input"], question);
    let mut answer = question.clone();
    answer["answers"] = json!({"Which roof?": "Thatch"});
    let response = json!({"type": "control_response", "response": {"subtype": "success",
        "request_id": request["request_id"], "response": {"behavior": "allow", "updatedInput": answer}}});
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, response.into(), "ada").await.unwrap();
    until(&mut events, |event, payload| {
        event.kind == "control_cancel_request" && payload["request_id"] == request["request_id"]
    })
    .await;
    let result = until(&mut events, |event, payload| {
        event.kind == "result" && payload["terminal_reason"] == "completed"
    })
    .await;
    assert!(result.payload.get().contains("Thatch"), "{}", result.payload);
    processed(&mut events, prompt, "processed").await;
    assert_eq!(
        host.approval(approval.id).await.unwrap().state,
        ApprovalState::Answered
    );
    host.shutdown().await;
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_of_a_call_that_waits() {
    let place = Place::new();
    for by_frame in [false, true] {
        let host = place.host_with(policy(&place)).await;
        let id = place.session(&host).await;
        let (approval, prompt) = waiting(&host, &id, ASKS).await;
        // Also in a host that has not seen it.
        host.shutdown().await;
        drop(host);
        let host = place.host_with(policy(&place)).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        if by_frame {
            let frame =
                json!({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}});
            host.send(&id, frame.into(), "ada").await.unwrap();
            until(&mut events, |event, payload| {
                event.kind == "control_response" && payload["response"]["subtype"] == "success"
            })
            .await;
        } else {
            host.interrupt(&id).await.unwrap();
        }
        processed(&mut events, prompt, "processed").await;
        let approval = host.approval(approval.id).await.unwrap();
        assert_eq!(
            (approval.state, approval.decided_by),
            (ApprovalState::Denied, None)
        );
        let told = told(&host, &id).await;
        assert!(
            !told.iter().any(|event| event.payload.get().contains("\"done\"")),
            "the model is not asked again"
        );
        say(&host, &id, "%say more").await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_stop_leaves_a_call_open_and_an_archived_session_carries_nothing_out() {
    let place = Place::new();
    let host = place.host_with(policy(&place)).await;
    let id = place.session(&host).await;
    let (pending, prompt) = waiting(&host, &id, ASKS).await;
    let behind = Uuid::new_v4();
    host.send(&id, user("%say behind", behind), "ada").await.unwrap();
    host.stop(&id).await.unwrap();
    assert_eq!(
        host.approval(pending.id).await.unwrap().state,
        ApprovalState::Pending
    );
    let started = place.cli.started().len();
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.archive(&id).await.unwrap();
    processed(&mut events, prompt, "interrupted").await;
    assert_eq!(
        host.approval(pending.id).await.unwrap().state,
        ApprovalState::Superseded
    );
    let late = host.decide(pending.id, allow(), "ada").await;
    assert!(matches!(late, Err(HostError::TooLate(_))), "{late:?}");

    // One that was decided, and not carried out.
    let other = place.session(&host).await;
    let (decided, prompt) = waiting(&host, &other, ASKS).await;
    host.shutdown().await;
    host.decide(decided.id, allow(), "ada").await.unwrap();
    host.archive(&other).await.unwrap();
    drop((events, host));
    let host = place.host_with(policy(&place)).await;
    let mut events = host.subscribe(&other, 0).await.unwrap();
    until(&mut events, |event, _| event.kind == "decision_not_applied").await;
    processed(&mut events, prompt, "interrupted").await;
    assert_eq!(place.cli.started().len(), started + 1);
    assert_eq!(
        marks(&told(&host, &id).await, behind),
        ["received", "not_begun"],
        "an archived session begins nothing"
    );
    host.delete(&other).await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_that_nobody_decides_expires_over_hosts_and_is_denied() {
    let place = Place::new();
    let mut policy = policy(&place);
    policy.approvals_expire = Some(Duration::from_secs(3600));
    let host = place.host_with(policy.clone()).await;
    let id = place.session(&host).await;
    let (approval, prompt) = waiting(&host, &id, ASKS).await;
    host.shutdown().await;
    drop(host);
    // The next host counts from the question on.
    policy.approvals_expire = Some(Duration::from_millis(1));
    let host = place.host_with(policy).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    processed(&mut events, prompt, "processed").await;
    let approval = host.approval(approval.id).await.unwrap();
    assert_eq!(
        (approval.state, approval.decided_by),
        (ApprovalState::Expired, None)
    );
    let told = told(&host, &id).await;
    assert!(
        told.iter()
            .any(|event| event.kind == "user" && event.payload.get().contains("nobody decided in time"))
    );
    host.shutdown().await;
}

/// The clock was ahead when the call was made, or was set back since.
#[tokio::test]
async fn a_call_of_the_future_waits_for_as_long_as_any_other() {
    let place = Place::new();
    for (patience, state) in [
        (Duration::from_secs(1800), ApprovalState::Allowed),
        (Duration::from_millis(1), ApprovalState::Expired),
    ] {
        let host = place.host_with(policy(&place)).await;
        let id = place.session(&host).await;
        let (approval, prompt) = waiting(&host, &id, ASKS).await;
        host.shutdown().await;
        drop(host);
        let log = rusqlite::Connection::open(place.dir.path().join("host.db")).unwrap();
        let changed = log.execute(
            "UPDATE approvals SET opened_at = opened_at + 3600000 WHERE state = 'pending'",
            [],
        );
        assert_eq!(changed.unwrap(), 1);
        drop(log);
        let mut policy = policy(&place);
        policy.approvals_expire = Some(patience);
        let host = place.host_with(policy).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        if state == ApprovalState::Allowed {
            // There is no process to stop. The reply comes when the session has recovered.
            host.stop(&id).await.unwrap();
            tokio::time::pause();
            tokio::time::sleep(patience - Duration::from_secs(100)).await;
            tokio::time::resume();
            host.decide(approval.id, allow(), "ada").await.unwrap();
        }
        processed(&mut events, prompt, "processed").await;
        assert_eq!(host.approval(approval.id).await.unwrap().state, state);
        host.shutdown().await;
    }
}

#[tokio::test]
async fn the_operators_code_decides_before_people_and_again_when_they_have_decided() {
    let place = Place::new();
    let mut policy = policy(&place);
    policy.decides_first = Some(Arc::new(layer(async |request: PermissionRequest| {
        let input = request.input.get();
        if input.contains("forbidden") {
            Opinion::Decided(PermissionDecision::deny("the operator forbids it"))
        } else if input.contains("fine") {
            Opinion::Decided(PermissionDecision::allow())
        } else {
            Opinion::Pass
        }
    })));
    let host = place.host_with(policy.clone()).await;
    let id = place.session(&host).await;
    let call = |command: &str| {
        format!(
            "%tool Bash {}\n%say done",
            json!({"command": command, "description": "x"})
        )
    };
    say(&host, &id, &call("touch forbidden")).await;
    say(&host, &id, &call("touch fine")).await;
    assert!(host.approvals(None, None, None, 10).await.unwrap().is_empty());
    let (approval, prompt) = waiting(&host, &id, ASKS).await;
    host.shutdown().await;
    drop(host);
    // A policy that was tightened meanwhile holds.
    policy.decides_first = Some(Arc::new(layer(async |_: PermissionRequest| {
        Opinion::Decided(PermissionDecision::deny("nothing any more"))
    })));
    let host = place.host_with(policy).await;
    let head = host.session(&id).await.unwrap().head_seq;
    let mut events = host.subscribe(&id, head).await.unwrap();
    host.decide(approval.id, allow(), "ada").await.unwrap();
    until(&mut events, |event, payload| {
        event.kind == "user" && payload.to_string().contains("nothing any more")
    })
    .await;
    until(&mut events, |event, _| event.kind == "decision_not_applied").await;
    processed(&mut events, prompt, "processed").await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_turn_goes_on_only_when_the_gate_lets_it() {
    let place = Place::new();
    let host = place.host_with(policy(&place)).await;
    let id = place.session(&host).await;
    let (approval, prompt) = waiting(&host, &id, ASKS).await;
    host.shutdown().await;
    drop(host);
    let mut limits = GateLimits::default();
    limits.max_running = 1;
    let gate = Gate::new(limits);
    let mut policy = policy(&place);
    policy.gate = Some(gate.clone());
    let host = place.host_with(policy).await;
    let pass = gate.enter(Visitor::new("other")).await.unwrap();
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.decide(approval.id, allow(), "ada").await.unwrap();
    while gate.state().waiting < 1 {
        tokio::task::yield_now().await;
    }
    let started = place.cli.started().len();
    assert_eq!(host.session(&id).await.unwrap().state, SessionState::Running);
    drop(pass);
    processed(&mut events, prompt, "processed").await;
    assert_eq!(place.cli.started().len(), started + 1);
    assert_eq!(gate.state().running, 0, "the place at the gate is given back");
    host.shutdown().await;
}

#[tokio::test]
async fn an_interrupt_drops_a_decision_that_no_process_has_got() {
    for by_frame in [false, true] {
        let place = Place::new();
        let mut limits = GateLimits::default();
        limits.max_running = 1;
        let gate = Gate::new(limits);
        let mut policy = policy(&place);
        policy.gate = Some(gate.clone());
        let host = place.host_with(policy).await;
        let id = place.session(&host).await;
        let (approval, prompt) = waiting(&host, &id, ASKS).await;
        let pass = gate.enter(Visitor::new("other")).await.unwrap();
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.decide(approval.id, allow(), "ada").await.unwrap();
        while gate.state().waiting < 1 {
            tokio::task::yield_now().await;
        }
        if by_frame {
            let frame =
                json!({"type": "control_request", "request_id": "i", "request": {"subtype": "interrupt"}});
            host.send(&id, frame.into(), "ada").await.unwrap();
        } else {
            host.interrupt(&id).await.unwrap();
        }
        let dropped = until(&mut events, |event, _| event.kind == "decision_not_applied").await;
        assert!(
            dropped.payload.get().contains("interrupted"),
            "{}",
            dropped.payload
        );
        processed(&mut events, prompt, "interrupted").await;
        drop(pass);
        // It is not carried out later either: whoever wants it has to decide anew.
        host.send(&id, user("%say more", Uuid::new_v4()), "ada")
            .await
            .unwrap();
        until(&mut events, |event, payload| {
            event.kind == "control_request"
                && payload["request"]["tool_use_id"] == json!(approval.tool_use_id)
        })
        .await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_turn_that_calls_again_waits_again() {
    let place = Place::new();
    let host = place.host_with(policy(&place)).await;
    let id = place.session(&host).await;
    let again = "%tool Bash {\"command\":\"touch one\",\"description\":\"x\"}\n%tool Bash {\"command\":\"touch two\",\"description\":\"x\"}\n%say done";
    let (first, prompt) = waiting(&host, &id, again).await;
    let mut events = host
        .subscribe(&id, host.session(&id).await.unwrap().head_seq)
        .await
        .unwrap();
    host.decide(first.id, allow(), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    let pending = host
        .approvals(Some(&id), Some(ApprovalState::Pending), None, 10)
        .await
        .unwrap();
    assert_eq!(pending.len(), 1);
    assert!(pending[0].deferred && pending[0].request.get().contains("touch two"));
    // At once, maybe before its process has ended.
    host.decide(pending[0].id, allow(), "ada").await.unwrap();
    processed(&mut events, prompt, "processed").await;
    assert_eq!(
        marks(&told(&host, &id).await, prompt),
        ["received", "processing", "processed"]
    );
    host.shutdown().await;
}

/// Nobody follows a turn that background work begins.
#[tokio::test]
async fn a_call_of_a_turn_that_background_work_began_is_carried_out() {
    let place = Place::new();
    let host = place.host_with(policy(&place)).await;
    let id = place.session(&host).await;
    let agent = json!({"description": "look", "run_in_background": true,
        "prompt": "%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}\n%say looked"});
    let mut events = host.subscribe(&id, 0).await.unwrap();
    // What follows the first text is the turn that the end of the agent begins.
    say(&host, &id, &format!("%tool Agent {agent}\n%say started\n{ASKS}")).await;
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    let open = |approvals: Vec<Approval>| {
        assert_eq!(approvals.len(), 1);
        approvals[0].clone()
    };
    let pending = Some(ApprovalState::Pending);
    let of_agent = open(host.approvals(Some(&id), pending, None, 10).await.unwrap());
    assert!(!of_agent.deferred);
    host.decide(of_agent.id, allow(), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "process_exited").await;
    let waits = open(host.approvals(Some(&id), pending, None, 10).await.unwrap());
    assert!(waits.deferred);
    host.decide(waits.id, allow(), "ada").await.unwrap();
    until(&mut events, |event, payload| {
        let done = &payload["message"]["content"][0];
        event.kind == "user" && done["tool_use_id"] == json!(waits.tool_use_id) && done["is_error"] == false
    })
    .await;
    host.shutdown().await;
}

/// A budget of which each turn reserves more than half.
fn budget() -> (Budget, TurnBudget) {
    let budget = Budget::new("host", Cap::tokens(1_000_000));
    let reserve = Amount {
        tokens: 600_000,
        ..Amount::default()
    };
    (budget.clone(), TurnBudget::new(budget, reserve))
}

#[tokio::test]
async fn a_call_that_waits_holds_nothing_of_the_budget_and_goes_on_when_it_may() {
    for is_allowed in [true, false] {
        let place = Place::new();
        let (budget, of_turns) = budget();
        let mut policy = policy(&place);
        policy.budget = Some(of_turns.clone());
        let host = place.host_with(policy).await;
        let id = place.session(&host).await;
        let (approval, prompt) = waiting(&host, &id, ASKS).await;
        assert_eq!(
            budget.reserved().tokens,
            0,
            "what waits for a person reserves nothing"
        );
        let spent = budget.spent().tokens;
        assert!(spent > 0, "the turn is charged so far");
        // Others take what is left, and somebody decides.
        let other = budget.reserve(of_turns.reserve).unwrap();
        let mut events = host
            .subscribe(&id, host.session(&id).await.unwrap().head_seq)
            .await
            .unwrap();
        let decision = match is_allowed {
            true => allow(),
            false => json!({"behavior": "deny", "message": "not today"}).into(),
        };
        host.decide(approval.id, decision, "ada").await.unwrap();
        until(&mut events, |event, _| event.kind == "budget_exhausted").await;
        let started = place.cli.started().len();
        other.release();
        // It asks again now and then.
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(6)).await;
        tokio::time::resume();
        processed(&mut events, prompt, "processed").await;
        assert_eq!(place.cli.started().len(), started + 1);
        let told = told(&host, &id).await;
        assert!(told.iter().all(|event| event.kind != "decision_not_applied"));
        assert_eq!(marks(&told, prompt), ["received", "processing", "processed"]);
        assert_eq!(budget.reserved().tokens, 0);
        assert!(budget.spent().tokens > spent, "the rest of the turn is charged");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn the_rest_of_a_turn_that_exceeds_the_budget_is_interrupted() {
    let place = Place::new();
    let host = place.host_with(policy(&place)).await;
    let id = place.session(&host).await;
    let more = format!("{ASKS}\n%tool Bash {{\"command\":\"touch more\",\"description\":\"x\"}}\n%say end");
    let (approval, prompt) = waiting(&host, &id, &more.replace("%say done\n", "")).await;
    host.shutdown().await;
    drop(host);
    let mut policy = policy(&place);
    let amount = Amount {
        tokens: 1,
        ..Amount::default()
    };
    let budget = Budget::new("host", Cap::tokens(10));
    policy.budget = Some(TurnBudget::new(budget.clone(), amount));
    let host = place.host_with(policy).await;
    let mut events = host
        .subscribe(&id, host.session(&id).await.unwrap().head_seq)
        .await
        .unwrap();
    host.decide(approval.id, allow(), "ada").await.unwrap();
    let failed = until(&mut events, |event, _| event.kind == "prompt_failed").await;
    assert!(failed.payload.get().contains("exhausted"), "{}", failed.payload);
    processed(&mut events, prompt, "processed").await;
    assert_eq!(budget.reserved().tokens, 0);
    // Nothing is left open.
    let pending = host
        .approvals(Some(&id), Some(ApprovalState::Pending), None, 10)
        .await
        .unwrap();
    assert!(pending.is_empty(), "{pending:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_that_waits_keeps_no_host_from_being_drained() {
    let place = Place::new();
    let host = place.host_with(policy(&place)).await;
    let id = place.session(&host).await;
    let (approval, prompt) = waiting(&host, &id, ASKS).await;
    host.drain().await;
    // Decided now, it is carried out by the next host.
    let started = place.cli.started().len();
    host.decide(approval.id, allow(), "ada").await.unwrap();
    host.shutdown().await;
    assert_eq!(place.cli.started().len(), started);
    drop(host);
    let host = place.host_with(policy(&place)).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    processed(&mut events, prompt, "processed").await;
    let told = told(&host, &id).await;
    assert!(told.iter().all(|event| event.kind != "decision_not_applied"));
    host.shutdown().await;
}
