//! However a callback fails, what goes out is the refusal that the CLI understands as one.
//!
//! Hooks and MCP servers have tables of their own.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use outrigger::options::Launch;
use outrigger::permissions::rules::Rules;
use outrigger::permissions::{Answers, PermissionDecision, PermissionHandler, PermissionRequest, PlanReply};
use outrigger::transport::{BoxFuture, Connection, Pipes, Transport};
use outrigger::{
    Claim, ElicitationResult, HostAuthTokenAnswer, OauthTokenAnswer, Options, Policy, Pool, PoolLimits,
    PoolOrigin, UserDialogResult,
};
use serde_json::{Value, json};

use super::{Wire, agent, bash, dialog, elicitation, plan, question};

/// A way for a callback to fail.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Failure {
    /// It panics when it is called.
    PanicsAtOnce,
    /// It panics later.
    Panics,
    /// It says that something went wrong.
    Fails,
    /// It never says anything.
    Hangs,
}

async fn fail<T>(failure: Failure) -> Result<T, &'static str> {
    tokio::time::sleep(Duration::from_millis(10)).await;
    match failure {
        Failure::Fails => Err("the database is away"),
        Failure::Hangs => std::future::pending().await,
        Failure::Panics | Failure::PanicsAtOnce => panic!("a bug"),
    }
}

/// Fails before there is a future.
fn called(failure: Failure, calls: &AtomicUsize) {
    calls.fetch_add(1, Ordering::Relaxed);
    if failure == Failure::PanicsAtOnce {
        panic!("a bug");
    }
}

const DEADLINE: Duration = Duration::from_secs(600);

/// Callbacks for everything, all of which fail in this way.
fn failing(failure: Failure, calls: &Arc<AtomicUsize>) -> Options {
    macro_rules! failing {
        ($what:ty) => {{
            let calls = Arc::clone(calls);
            move |_| {
                called(failure, &calls);
                fail::<$what>(failure)
            }
        }};
    }
    // These have no way to say that they failed.
    macro_rules! bare {
        ($none:expr) => {{
            let calls = Arc::clone(calls);
            move |_| {
                called(failure, &calls);
                async move { fail(failure).await.unwrap_or($none) }
            }
        }};
    }
    agent()
        .can_use_tool(failing!(PermissionDecision))
        .permission_deadline(DEADLINE)
        .questions(failing!(Answers))
        .plans(failing!(PlanReply))
        .elicitation(failing!(ElicitationResult))
        .dialog("trust", failing!(UserDialogResult))
        .oauth_token_refresh(bare!(OauthTokenAnswer {
            access_token: None,
            reason: None
        }))
        .host_auth_token_refresh(bare!(HostAuthTokenAnswer {
            auth_token: None,
            material_unchanged: None
        }))
}

fn denied(why: &str, call: &str) -> Value {
    json!({"behavior": "deny", "message": why, "toolUseID": call})
}

/// One that was not even shown to a callback.
fn turned_away(why: &str) -> Value {
    json!({"behavior": "deny", "message": why})
}

/// Each kind, and its answers to a callback that panics, fails and hangs; `None` where hanging is allowed, since a person
/// answers.
fn kinds() -> Vec<(Value, Value, Value, Option<Value>)> {
    let panicked = "the callback for this request panicked";
    let late = "no decision within 600s";
    vec![
        (
            bash("x"),
            turned_away(panicked),
            denied("the permission handler failed: the database is away", "toolu_x"),
            Some(denied(late, "toolu_x")),
        ),
        (
            question(),
            turned_away(panicked),
            denied(
                "the question could not be answered: the database is away",
                "toolu_q",
            ),
            Some(denied(late, "toolu_q")),
        ),
        (
            plan(),
            turned_away(panicked),
            denied("the plan could not be shown: the database is away", "toolu_p"),
            Some(denied(late, "toolu_p")),
        ),
        (
            elicitation(),
            json!({"action": "decline"}),
            json!({"action": "decline"}),
            None,
        ),
        (
            dialog(),
            json!({"behavior": "cancelled"}),
            json!({"behavior": "cancelled"}),
            None,
        ),
        (
            json!({"subtype": "oauth_token_refresh"}),
            json!({"accessToken": null}),
            json!({"accessToken": null}),
            Some(json!({"accessToken": null})),
        ),
        (
            json!({"subtype": "host_auth_token_refresh", "status": 401}),
            json!({"authToken": null}),
            json!({"authToken": null}),
            Some(json!({"authToken": null})),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn whatever_a_callback_does_it_is_refused() {
    for failure in [
        Failure::PanicsAtOnce,
        Failure::Panics,
        Failure::Fails,
        Failure::Hangs,
    ] {
        let calls = Arc::default();
        let (session, mut wire, _) = Wire::start(failing(failure, &calls)).await;
        for (number, (request, panics, fails, hangs)) in kinds().into_iter().enumerate() {
            let what = format!("{failure:?}: {request}");
            let id = number.to_string();
            wire.ask(&id, &request).await;
            let expected = match failure {
                Failure::PanicsAtOnce | Failure::Panics => Some(panics),
                Failure::Fails => Some(fails),
                Failure::Hangs => hangs,
            };
            match expected {
                Some(expected) => assert_eq!(wire.answer().await, (id, expected), "{what}"),
                // For ever: until it is withdrawn.
                None => {
                    wire.silent().await;
                    wire.withdraw(&id).await;
                    wire.silent().await;
                }
            }
            assert_eq!(calls.load(Ordering::Relaxed), number + 1, "{what}");
            assert_eq!(session.stats().unanswered_by_us, 0, "{what}");
        }
        session.kill().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_can_not_be_read_is_refused_and_shown_to_nobody() {
    let calls = Arc::default();
    let (session, mut wire, _) = Wire::start(failing(Failure::PanicsAtOnce, &calls)).await;
    let unreadable = "the permission request could not be read, so it is denied: ";
    for (id, request, answer) in [
        (
            "input",
            json!({"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t"}),
            turned_away(&format!("{unreadable}it has no `input`")),
        ),
        (
            "name",
            json!({"subtype": "can_use_tool", "tool_name": 7, "input": {}, "tool_use_id": "t"}),
            turned_away(&format!("{unreadable}it has no `tool_name`")),
        ),
        (
            "elicitation",
            json!({"subtype": "elicitation", "message": 7}),
            json!({"action": "decline"}),
        ),
        (
            "oauth",
            json!({"subtype": "oauth_token_refresh", "kind": 7}),
            json!({"accessToken": null}),
        ),
        (
            "host",
            json!({"subtype": "host_auth_token_refresh", "status": "many"}),
            json!({"authToken": null}),
        ),
    ] {
        wire.ask(id, &request).await;
        assert_eq!(wire.answer().await, (id.to_owned(), answer));
    }
    // A dialog of whose kind nobody knows is nobody's here.
    wire.ask(
        "dialog",
        &json!({"subtype": "request_user_dialog", "payload": {}}),
    )
    .await;
    wire.silent().await;
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert_eq!(session.stats().unanswered_by_us, 0);
    session.kill().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_there_is_no_room_for_is_refused() {
    let calls = Arc::default();
    let options = failing(Failure::Hangs, &calls).buffer_bytes(10_000);
    let (session, mut wire, _) = Wire::start(options).await;
    // One may always be asked, however big.
    wire.ask("big", &bash(&"x".repeat(10_000))).await;
    wire.silent_for(Duration::from_secs(1)).await;
    for (number, (request, refused, _, _)) in kinds().into_iter().enumerate() {
        let expected = if refused["message"].is_string() {
            turned_away("too many requests are open at once")
        } else {
            refused
        };
        wire.ask(&number.to_string(), &request).await;
        assert_eq!(wire.answer().await, (number.to_string(), expected), "{request}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    session.kill().await.unwrap();
}

/// A permission is only as wide as what the handler was asked about and said.
#[tokio::test(start_paused = true)]
async fn an_allowance_that_the_cli_would_misread_is_a_refusal() {
    use outrigger::permissions::{PermissionAllow, PermissionResult, PermissionUpdate};
    use outrigger::protocol::shared::{PermissionMode, PermissionUpdateDestination};

    struct Careless;
    impl outrigger::permissions::PermissionHandler for Careless {
        fn decide<'a>(
            &'a self,
            request: outrigger::permissions::PermissionRequest,
        ) -> outrigger::transport::BoxFuture<'a, PermissionDecision> {
            let update =
                PermissionUpdate::set_mode(PermissionMode::AcceptEdits, PermissionUpdateDestination::Session);
            let decision = match request.tool_name.as_str() {
                "Bash" => {
                    let many = vec![update; PermissionUpdate::LIMIT + 1];
                    PermissionAllow::default().updated_permissions(many).into()
                }
                _ => PermissionResult::allow(),
            };
            Box::pin(std::future::ready(decision.into()))
        }

        fn answers_questions(&self) -> bool {
            true
        }
    }

    let (session, mut wire, _) = Wire::start(agent().permissions(Careless)).await;
    wire.ask("a", &bash("x")).await;
    let (_, answer) = wire.answer().await;
    assert_eq!(answer["behavior"], "deny");
    assert!(
        answer["message"].as_str().unwrap().contains("4097 changes"),
        "{answer}"
    );
    wire.ask("b", &question()).await;
    let (_, answer) = wire.answer().await;
    assert_eq!(
        answer,
        denied("the user did not answer; do not take that for consent", "toolu_q")
    );
    session.kill().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_session_ends_and_so_do_its_callbacks() {
    struct Alive(Arc<AtomicUsize>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let alive = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&alive);
    let (token, mut tokens) = tokio::sync::mpsc::unbounded_channel();
    let options = agent().can_use_tool(move |request| {
        count.fetch_add(1, Ordering::Relaxed);
        let alive = Alive(Arc::clone(&count));
        token.send(request.context.cancelled().clone()).unwrap();
        async move {
            let _alive = alive;
            std::future::pending::<PermissionDecision>().await
        }
    });
    let (session, mut wire, _) = Wire::start(options).await;
    wire.ask("a", &bash("x")).await;
    wire.ask("b", &bash("y")).await;
    let (first, second) = (tokens.recv().await.unwrap(), tokens.recv().await.unwrap());
    wire.withdraw("a").await;
    first.cancelled().await;
    assert!(!second.is_cancelled());
    session.kill().await.unwrap();
    second.cancelled().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

/// CLIs up to 2.1.205 run nothing that is allowed without its input.
#[tokio::test(start_paused = true)]
async fn an_allowance_says_the_input_that_the_call_has() {
    use outrigger::permissions::{PermissionAllow, PermissionResult};
    use outrigger::protocol::shared::JsonObject;

    let options = agent().can_use_tool(async |request: outrigger::permissions::PermissionRequest| {
        let changed = match request.description.as_deref() {
            Some("changed") => Some(JsonObject::try_from(json!({"command": "other"})).unwrap()),
            Some("empty") => Some(JsonObject::empty()),
            _ => None,
        };
        let allow = PermissionAllow::default();
        PermissionResult::from(match changed {
            Some(input) => allow.updated_input(input).unwrap(),
            None => allow,
        })
    });
    let (session, mut wire, _) = Wire::start(options).await;
    // As the model wrote it: with blanks, a key twice, and a number that no other program would write again.
    let input = r#"{ "command":"x",  "n":1.50e1,"half":"\ud83d","command":"x" }"#;
    for (id, description, expected) in [
        ("plain", "plain", input),
        ("empty", "empty", input),
        ("changed", "changed", r#"{"command":"other"}"#),
    ] {
        let request = format!(
            r#"{{"type":"control_request","request_id":"{id}","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{input},"tool_use_id":"t","description":"{description}"}}}}"#
        );
        wire.say_raw(request.as_bytes()).await;
        let line = wire.raw_line().await;
        assert!(line.contains(&format!(r#""updatedInput":{expected}"#)), "{line}");
    }
    session.kill().await.unwrap();
}

/// As the first CLIs of version 2.0 ask.
#[tokio::test(start_paused = true)]
async fn a_request_without_the_id_of_its_call_is_decided() {
    let options = agent().can_use_tool(async |request: outrigger::permissions::PermissionRequest| {
        assert_eq!((request.tool_use_id.as_deref(), request.call_id()), (None, "a"));
        match request.tool_name.as_str() {
            "Bash" => outrigger::permissions::PermissionResult::allow(),
            _ => outrigger::permissions::PermissionResult::deny("no"),
        }
    });
    let (session, mut wire, _) = Wire::start(options).await;
    for (tool, expected) in [
        (
            "Bash",
            json!({"behavior": "allow", "updatedInput": {"command": "x"}}),
        ),
        ("Write", json!({"behavior": "deny", "message": "no"})),
    ] {
        let request = json!({"subtype": "can_use_tool", "tool_name": tool, "input": {"command": "x"}});
        wire.ask("a", &request).await;
        assert_eq!(wire.answer().await, ("a".to_owned(), expected));
    }
    session.kill().await.unwrap();
}

/// Callbacks that block their thread for longer than they have, and then say yes. Here time itself is what is tested.
fn blocking() -> Options {
    fn block() {
        std::thread::sleep(Duration::from_millis(150));
    }
    let deadline = Duration::from_millis(30);
    agent()
        .can_use_tool(|_| {
            block();
            std::future::ready(PermissionDecision::allow())
        })
        .permission_deadline(deadline)
        .questions(async |asked: outrigger::permissions::QuestionRequest| {
            block();
            asked.answers().choose(0, [0])
        })
        .plans(async |_| {
            block();
            PlanReply::approve()
        })
}

async fn late_answers_do_not_count() {
    let (session, mut wire, _) = Wire::start(blocking()).await;
    let late = "no decision within 30ms";
    for (request, expected) in [
        (bash("x"), denied(late, "toolu_x")),
        (question(), denied(late, "toolu_q")),
        (plan(), denied(late, "toolu_p")),
    ] {
        let id = request["tool_name"].as_str().unwrap();
        wire.ask(id, &request).await;
        assert_eq!(wire.answer().await, (id.to_owned(), expected));
    }
    session.kill().await.unwrap();
}

#[tokio::test]
async fn what_a_callback_says_late_does_not_count_although_it_blocks_the_only_thread() {
    late_answers_do_not_count().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_callback_says_late_does_not_count_although_it_blocks_one_of_the_threads() {
    late_answers_do_not_count().await;
}

/// Asks a policy that may be replaced at any time, and counts how often its rules were taken.
struct Changing {
    policy: Arc<RwLock<Policy>>,
    calls: Arc<AtomicUsize>,
}

impl PermissionHandler for Changing {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        let decision = self.policy.read().unwrap().decision(&request);
        Box::pin(std::future::ready(decision))
    }

    fn rules(&self) -> Rules {
        self.calls.fetch_add(1, Ordering::Relaxed);
        PermissionHandler::rules(&*self.policy.read().unwrap())
    }
}

/// The process was started with a rule for `WebSearch`.
async fn only_known_rules_bind(policy: &RwLock<Policy>, wire: &mut Wire) {
    for (id, rules, behavior) in [
        ("1", &["WebSearch"][..], "allow"),
        ("2", &["WebSearch", "Bash(rm *)"], "deny"),
        ("3", &["WebSearch"], "allow"),
    ] {
        *policy.write().unwrap() = Policy::deny_list(rules);
        wire.ask(id, &bash("x")).await;
        let (_, answer) = wire.answer().await;
        assert_eq!(answer["behavior"], behavior, "{rules:?}: {answer}");
    }
}

/// What a process was started with counts, and not what the handler has by now.
#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_allows_nothing_until_the_cli_has_its_rules() {
    let policy = Arc::new(RwLock::new(Policy::deny_list(["WebSearch"])));
    let calls = Arc::<AtomicUsize>::default();
    let handler = Changing {
        policy: Arc::clone(&policy),
        calls: Arc::clone(&calls),
    };
    let (_session, mut wire, _) = Wire::start(agent().permissions(handler)).await;
    only_known_rules_bind(&policy, &mut wire).await;
    assert_eq!(
        calls.load(Ordering::Relaxed),
        1,
        "one process has the rules of one moment"
    );
}

/// A pool prepares a claim with its own options, and not with those that the process was started with.
#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_allows_nothing_in_a_session_of_a_pool_either() {
    struct Reopened(Pipes);
    impl Transport for Reopened {
        fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
            self.0.open(launch)
        }
    }
    let policy = Arc::new(RwLock::new(Policy::deny_list(["WebSearch"])));
    let handler = Changing {
        policy: Arc::clone(&policy),
        calls: Arc::default(),
    };
    let (pipes, mut wire) = Wire::pair();
    let pool = Pool::new(PoolLimits::default().memory(1 << 40));
    let options = agent().cwd("/p").permissions(handler);
    let key = pool.keep(options.transport(Reopened(pipes)), 1).unwrap();
    wire.initialized(&[]).await;
    while pool.stats().spares == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (pooled, ()) = tokio::join!(pool.get(&key, Claim::new("/p")), async {
        let request = wire.line().await;
        let initialize = json!({"account": {"apiKeySource": "ANTHROPIC_API_KEY"}});
        let claimed = json!({"status": "ok", "session_id": "s", "initialize": initialize});
        let id = &request["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": claimed});
        wire.say(&json!({"type": "control_response", "response": response}))
            .await;
    });
    let pooled = pooled.unwrap();
    assert!(matches!(pooled.origin, PoolOrigin::Spare { .. }));
    only_known_rules_bind(&policy, &mut wire).await;
}
