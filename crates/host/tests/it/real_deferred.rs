//! Approvals that outlive the process and the host, with the real CLI.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger::protocol::shared::PermissionMode;
use outrigger::sessions::Sessions;
use outrigger::testing::RealCli;
use outrigger_host::log::SqliteLog;
use outrigger_host::{Approval, ApprovalState, HostPolicy, NewSession, SessionHost, SessionState};
use serde_json::json;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::place::{PATIENCE, processed, until, user};

/// Leaves a line for each time that it runs.
const ASKS: &str = "%tool Bash {\"command\":\"echo ran >> made\",\"description\":\"Make it\"}\n%say {{last}}";

/// The CLI, which outlives the hosts.
struct Place {
    runtime: Runtime,
    real: RealCli,
    dir: tempfile::TempDir,
    mode: Option<PermissionMode>,
    rules: Vec<String>,
}

impl Place {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let real = runtime.block_on(RealCli::directives()).unwrap();
        Self {
            runtime,
            real,
            dir: tempfile::tempdir().unwrap(),
            mode: None,
            rules: Vec::new(),
        }
    }

    fn project(&self) -> PathBuf {
        self.real.sandbox().project().to_owned()
    }

    fn policy(&self) -> HostPolicy {
        let mut options = self.real.options().disallowed_tools(self.rules.clone());
        if let Some(mode) = &self.mode {
            options = options.permission_mode(*mode);
        }
        let mut policy = HostPolicy::new(options, [self.project()]);
        policy.deferred = Some("*".to_owned());
        policy
    }

    async fn host(&self) -> SessionHost {
        let log = SqliteLog::open(self.dir.path().join("host.db")).unwrap();
        SessionHost::open(self.policy(), log).await.unwrap()
    }

    /// Runs a host, and drops it without a shutdown: what it does ends where it is.
    fn with_host<T>(&self, work: impl AsyncFnOnce(SessionHost) -> T) -> T {
        let runtime = Runtime::new().unwrap();
        let done = runtime.block_on(async { work(self.host().await).await });
        drop(runtime);
        done
    }

    /// Waits until the CLI has noted that it left a call open, which it does behind the result. Killed before, it knows of none.
    async fn noted(&self, id: &SessionId) {
        let project = Sessions::at(self.real.sandbox().config()).project_dir(self.project());
        let transcript = project.join(format!("{id}.jsonl"));
        let noted = async {
            while !std::fs::read_to_string(&transcript).is_ok_and(|it| it.contains("\"hook_deferred_tool\""))
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, noted).await.unwrap();
    }

    /// A session whose call waits.
    async fn waiting(&self, host: &SessionHost, text: &str) -> (SessionId, Approval, Uuid) {
        let id = host
            .create(NewSession::new(self.project()), "ada")
            .await
            .unwrap()
            .id;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        let prompt = Uuid::new_v4();
        host.send(&id, user(text, prompt), "ada").await.unwrap();
        until(&mut events, |event, payload| {
            event.kind == "result" && payload["terminal_reason"] == "tool_deferred"
        })
        .await;
        let approval = host
            .approvals(Some(&id), Some(ApprovalState::Pending), None, 10)
            .await
            .unwrap()
            .remove(0);
        assert!(approval.deferred);
        self.noted(&id).await;
        (id, approval, prompt)
    }
}

fn ran(project: &Path) -> usize {
    let made = std::fs::read_to_string(project.join("made")).unwrap_or_default();
    made.lines().count()
}

fn allow(input: Option<serde_json::Value>) -> RawJson {
    match input {
        Some(input) => json!({"behavior": "allow", "updatedInput": input}).into(),
        None => json!({"behavior": "allow"}).into(),
    }
}

/// What the model was told of the call.
async fn said(host: &SessionHost, id: &SessionId) -> String {
    let events = host.events(id, 0, 1000).await.unwrap().events;
    let last = events.iter().rfind(|event| event.kind == "result").unwrap();
    last.payload.to_value().unwrap()["result"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_decision_is_carried_out_once_by_the_next_host() {
    for (is_early, is_allowed) in [(false, true), (false, false), (true, true)] {
        let place = Place::new();
        let project = place.project();
        let decision = || match is_allowed {
            // What a browser sends along.
            true => allow(Some(
                json!({"description": "Make it", "command": "echo ran >> made"}),
            )),
            false => json!({"behavior": "deny", "message": "not today"}).into(),
        };
        let (id, approval, prompt) = place.with_host(async |host| place.waiting(&host, ASKS).await);
        assert_eq!(ran(&project), 0);
        if is_early {
            // Committed by a host that does not act on it any more.
            place.with_host(async |host| {
                host.shutdown().await;
                host.decide(approval.id, decision(), "ada").await.unwrap();
            });
        }
        place.with_host(async |host| {
            let mut events = host.subscribe(&id, 0).await.unwrap();
            if !is_early {
                let state = host.session(&id).await.unwrap().state;
                assert_eq!(state, SessionState::RequiresAction);
                host.decide(approval.id, decision(), "ada").await.unwrap();
            }
            processed(&mut events, prompt, "processed").await;
            assert_eq!(ran(&project), usize::from(is_allowed));
            let said = said(&host, &id).await;
            assert_eq!(said.contains("not today"), !is_allowed, "{said}");
            let used = host.usage(&id).await.unwrap();
            assert!(used.results >= 2 && used.cost_usd > 0.0, "{used:?}");
        });
        // And nothing is carried out again.
        place.with_host(async |host| {
            let head = host.session(&id).await.unwrap().head_seq;
            let mut events = host.subscribe(&id, head).await.unwrap();
            let more = Uuid::new_v4();
            host.send(&id, user("%say more", more), "ada").await.unwrap();
            processed(&mut events, more, "processed").await;
            assert_eq!(ran(&project), usize::from(is_allowed));
        });
    }
}

#[test]
fn questions_are_answered_and_plans_are_approved_later() {
    let question = json!({"questions": [{"question": "Which roof?", "header": "Roof", "multiSelect": false, "options": [
        {"label": "Slate", "description": "heavy"}, {"label": "Thatch", "description": "light"}]}]});
    let mut answered = question.clone();
    answered["answers"] = json!({"Which roof?": "Thatch"});
    let asks = format!("%tool AskUserQuestion {question}\n%say {{{{last}}}}");
    let plans = "%tool ExitPlanMode {}\n%say {{last}}";
    for (mode, text, decision, expected) in [
        (None, &*asks, allow(Some(answered)), "Thatch"),
        (
            Some(PermissionMode::Plan),
            plans,
            allow(Some(json!({}))),
            "approved",
        ),
        (
            Some(PermissionMode::Plan),
            plans,
            json!({"behavior": "deny", "message": "smaller steps"}).into(),
            "smaller steps",
        ),
    ] {
        let mut place = Place::new();
        place.mode = mode;
        let (id, approval, prompt) = place.with_host(async |host| place.waiting(&host, text).await);
        place.with_host(async |host| {
            let mut events = host.subscribe(&id, 0).await.unwrap();
            host.decide(approval.id, decision, "ada").await.unwrap();
            processed(&mut events, prompt, "processed").await;
            let said = said(&host, &id).await;
            assert!(said.contains(expected), "{expected}: {said}");
        });
    }
}

#[test]
fn an_interrupt_denies_and_a_rule_of_the_operator_holds_whatever_people_allow() {
    let place = Place::new();
    let (id, approval, prompt) = place.with_host(async |host| place.waiting(&host, ASKS).await);
    place.with_host(async |host| {
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.interrupt(&id).await.unwrap();
        processed(&mut events, prompt, "processed").await;
        assert_eq!(
            host.approval(approval.id).await.unwrap().state,
            ApprovalState::Denied
        );
        let more = Uuid::new_v4();
        host.send(&id, user("%say more", more), "ada").await.unwrap();
        processed(&mut events, more, "processed").await;
        assert_eq!(ran(&place.project()), 0);
    });

    let mut place = Place::new();
    place.rules = vec!["Bash(echo ran:*)".to_owned()];
    place.with_host(async |host| {
        let (id, approval, prompt) = place.waiting(&host, ASKS).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.decide(approval.id, allow(None), "eve").await.unwrap();
        until(&mut events, |event, _| event.kind == "decision_not_applied").await;
        processed(&mut events, prompt, "processed").await;
        assert_eq!(ran(&place.project()), 0);
    });
}

#[test]
fn a_process_that_dies_with_the_decision_leads_to_another_question() {
    let place = Place::new();
    // The command ends the CLI before it has noted what came of the call.
    let asks = ASKS.replace("echo ran >> made", "echo ran >> made; kill -9 $PPID");
    place.with_host(async |host| {
        let (id, first, prompt) = place.waiting(&host, &asks).await;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.decide(first.id, allow(None), "ada").await.unwrap();
        processed(&mut events, prompt, "interrupted").await;
        assert_eq!(ran(&place.project()), 1);
        let next = Uuid::new_v4();
        host.send(&id, user("%say next", next), "ada").await.unwrap();
        until(&mut events, |event, _| event.kind == "approval_opened").await;
        let mut pending = host
            .approvals(Some(&id), Some(ApprovalState::Pending), None, 10)
            .await
            .unwrap();
        let second = pending.remove(0);
        assert_eq!((second.supersedes, second.deferred), (Some(first.id), false));
        assert_eq!(second.tool_use_id, first.tool_use_id);
        let deny = json!({"behavior": "deny", "message": "once is enough"});
        host.decide(second.id, deny.into(), "ada").await.unwrap();
        processed(&mut events, next, "processed").await;
        assert_eq!(ran(&place.project()), 1);
    });
}

#[test]
fn of_two_calls_at_once_the_second_is_asked_about_while_the_process_waits() {
    let place = Place::new();
    let call = |number: u8| {
        format!(
            "Bash {}",
            json!({"command": format!("echo {number} >> made"), "description": "x"})
        )
    };
    let text = format!("%tool {}\n%+tool {}\n%say done", call(1), call(2));
    place.with_host(async |host| {
        let id = host
            .create(NewSession::new(place.project()), "ada")
            .await
            .unwrap()
            .id;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        let prompt = Uuid::new_v4();
        host.send(&id, user(&text, prompt), "ada").await.unwrap();
        for _ in 0..2 {
            until(&mut events, |event, _| event.kind == "approval_opened").await;
        }
        let pending = host
            .approvals(Some(&id), Some(ApprovalState::Pending), None, 10)
            .await
            .unwrap();
        assert_eq!(
            pending
                .iter()
                .map(|approval| approval.deferred)
                .collect::<Vec<_>>(),
            [true, false]
        );
        for approval in &pending {
            host.decide(approval.id, allow(None), "ada").await.unwrap();
        }
        processed(&mut events, prompt, "processed").await;
        let made = std::fs::read_to_string(place.project().join("made")).unwrap();
        let mut lines: Vec<&str> = made.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["1", "2"]);
    });
}

#[test]
fn a_start_that_waits_for_a_lease_hears_a_stop_and_the_shutdown() {
    let place = Place::new();
    place.runtime.block_on(async {
        let mut policy = place.policy();
        policy.lease_patience = Duration::from_secs(3600);
        let log = SqliteLog::open(place.dir.path().join("host.db")).unwrap();
        let host = SessionHost::open(policy, log).await.unwrap();
        let id = host
            .create(NewSession::new(place.project()), "ada")
            .await
            .unwrap()
            .id;
        let sessions = Sessions::at(place.real.sandbox().config());
        let _lease = sessions.claim(&id).take().unwrap();
        let mut events = host.subscribe(&id, 0).await.unwrap();
        let prompt = Uuid::new_v4();
        host.send(&id, user("%say never", prompt), "ada").await.unwrap();
        until(&mut events, |event, payload| {
            event.kind == "session_state_changed" && payload["state"] == "starting"
        })
        .await;
        host.stop(&id).await.unwrap();
        let failed = until(&mut events, |event, _| event.kind == "start_failed").await;
        assert!(
            failed.payload.get().contains("stopped by a client"),
            "{}",
            failed.payload
        );
        // The next prompt tries again, and the shutdown does not wait for it.
        host.send(&id, user("%say never", Uuid::new_v4()), "ada")
            .await
            .unwrap();
        until(&mut events, |event, payload| {
            event.kind == "session_state_changed" && payload["state"] == "starting"
        })
        .await;
        host.shutdown().await;
    });
}
