//! Requests that are answered later, from elsewhere, or that come again.

use std::future::Future as _;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use outrigger::permissions::{
    PermissionDecision, PermissionRequest, PermissionResult, PlanReply, QuestionReply, QuestionRequest,
};
use outrigger::protocol::shared::PermissionMode;
use outrigger::protocol::{Frame, RawJson};
use outrigger::{CallbackReply, Callbacks, ElicitationResult, Pending, UserDialogResult};
use serde_json::json;

use super::{AGES, Wire, agent, asked, bash, dialog, elicitation, plan, question};

fn parking() -> outrigger::Options {
    agent()
        .can_use_tool(async |_| PermissionDecision::Parked)
        .permission_deadline(Duration::from_secs(5))
        .questions(async |_| QuestionReply::Parked)
        .plans(async |_| PlanReply::Parked)
        .elicitation(async |_| CallbackReply::Parked)
        .dialog("trust", async |_| CallbackReply::Parked)
}

/// More than the pipe and the queue of the writer hold.
#[test]
fn decisions_from_outside_of_the_runtime_wait_for_a_cli_that_does_not_read() {
    const MANY: usize = 100;
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    let (session, mut wire) = runtime.block_on(async {
        let (pipes, mut wire) = Wire::narrow();
        let starting = tokio::spawn(parking().transport(pipes).start());
        wire.initialized(&[]).await;
        let session = starting.await.unwrap().unwrap();
        for number in 0..MANY {
            wire.ask(&number.to_string(), &bash("x")).await;
        }
        while session.pending().len() < MANY {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        (session, wire)
    });
    let why = "x".repeat(1000);
    for number in 0..MANY {
        let id = number.to_string().as_str().into();
        let decided = std::pin::pin!(session.decide(&id, PermissionResult::deny(&*why)));
        let mut nobody = std::task::Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(decided) = decided.poll(&mut nobody) else {
            panic!("it waits");
        };
        decided.unwrap();
    }
    runtime.block_on(async {
        let mut answered = Vec::new();
        for _ in 0..MANY {
            let (id, answer) = wire.answer().await;
            assert_eq!(answer["message"], why);
            answered.push(id.parse::<usize>().unwrap());
        }
        answered.sort_unstable();
        assert_eq!(answered, Vec::from_iter(0..MANY));
        assert_eq!(session.stats().unanswered_by_us, 0);
    });
}

#[tokio::test(start_paused = true)]
async fn what_is_parked_waits_for_months_and_is_answered_once() {
    let (session, mut wire, initialize) = Wire::start(parking()).await;
    assert_eq!(initialize["supportedDialogKinds"], json!(["trust"]));
    for (id, request) in [
        ("tool", bash("x")),
        ("question", question()),
        ("plan", plan()),
        ("elicitation", elicitation()),
        ("dialog", dialog()),
    ] {
        wire.ask(id, &request).await;
    }
    wire.silent().await;
    let mut pending = session.pending();
    pending.sort_by_key(|pending| pending.id().as_str().to_owned());
    let ids: Vec<_> = pending.iter().map(|pending| pending.id().as_str()).collect();
    assert_eq!(ids, ["dialog", "elicitation", "plan", "question", "tool"]);

    let Pending::Permission(asked) = &pending[3] else {
        panic!("{:?}", pending[3]);
    };
    let asked = QuestionRequest::of(asked).unwrap();
    let answers = asked.answers().choose(0, [0, 1]).unwrap();
    let answers = answers.write(1, "at noon").unwrap().note(1, "sharp").unwrap();
    session.decide(pending[3].id(), answers).await.unwrap();
    let (id, answer) = wire.answer().await;
    assert_eq!(id, "question");
    assert_eq!(answer["behavior"], "allow");
    let input = &answer["updatedInput"];
    assert_eq!(
        input["answers"],
        json!({"Which?": "Apple, Pear", "When?": "at noon"})
    );
    assert_eq!(
        input["annotations"],
        json!({"Which?": {"preview": "a pear"}, "When?": {"notes": "sharp"}})
    );
    assert_eq!(input["questions"], question()["input"]["questions"]);

    session
        .decide(pending[4].id(), PermissionResult::deny("no"))
        .await
        .unwrap();
    assert_eq!(
        wire.answer().await.1,
        json!({"behavior": "deny", "message": "no", "toolUseID": "toolu_x"})
    );
    let PermissionDecision::Allow(allow) =
        PermissionDecision::from(PlanReply::Approve(Some(PermissionMode::AcceptEdits)))
    else {
        panic!("a plan that is approved is allowed");
    };
    session.decide(pending[2].id(), allow).await.unwrap();
    assert_eq!(
        wire.answer().await.1["updatedPermissions"],
        json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}])
    );
    let form = ElicitationResult::Accept { content: None };
    // A request is answered by the verb of its kind.
    let wrong = session
        .answer_dialog(pending[1].id(), UserDialogResult::Cancelled)
        .await;
    assert!(wrong.unwrap_err().is_invalid());
    session
        .answer_elicitation(pending[1].id(), form.clone())
        .await
        .unwrap();
    assert_eq!(wire.answer().await.1, json!({"action": "accept"}));
    let result = UserDialogResult::Completed {
        result: RawJson::from_text("{\"trusted\":true}").unwrap(),
    };
    session.answer_dialog(pending[0].id(), result).await.unwrap();
    assert_eq!(
        wire.answer().await.1,
        json!({"behavior": "completed", "result": {"trusted": true}})
    );

    assert!(session.pending().is_empty());
    for request in &pending {
        let again = session.decide(request.id(), PermissionResult::allow()).await;
        assert!(again.unwrap_err().is_not_open());
    }
    assert!(
        session
            .answer_elicitation(pending[1].id(), form)
            .await
            .unwrap_err()
            .is_not_open()
    );
    wire.silent().await;
    session.kill().await.unwrap();
}

/// Whoever shows a parked request elsewhere is told that there is nothing left to decide.
#[tokio::test(start_paused = true)]
async fn what_is_parked_is_told_that_somebody_decided() {
    let (keep, mut kept) = tokio::sync::mpsc::unbounded_channel();
    let options = agent().can_use_tool(move |request: PermissionRequest| {
        keep.send((request.id().clone(), request.context.cancelled().clone()))
            .unwrap();
        async { PermissionDecision::Parked }
    });
    let (session, mut wire, _) = Wire::start(options).await;
    wire.ask("a", &bash("x")).await;
    wire.ask("b", &bash("y")).await;
    wire.silent().await;
    let (first, told) = kept.recv().await.unwrap();
    let (_, other) = kept.recv().await.unwrap();
    assert!(!told.is_cancelled());
    session
        .decide(&first, PermissionResult::deny("no"))
        .await
        .unwrap();
    assert_eq!(wire.answer().await.0, "a");
    assert!(told.is_cancelled() && !other.is_cancelled());
    session.kill().await.unwrap();
    assert!(other.is_cancelled());
}

/// What was handed out can be put away as text, and read again.
#[tokio::test(start_paused = true)]
async fn a_parked_request_is_a_value() {
    let (keep, mut kept) = tokio::sync::mpsc::unbounded_channel();
    let options = agent().can_use_tool(move |request: PermissionRequest| {
        keep.send((
            serde_json::to_string(request.id()).unwrap(),
            request.frame.text().into_owned(),
        ))
        .unwrap();
        async { PermissionDecision::Parked }
    });
    let (session, mut wire, _) = Wire::start(options).await;
    let mut request = bash("x");
    request["agent_id"] = json!("a1");
    request["mcp_server"] = json!({"name": "s", "source": "sdk"});
    request["matched_ask_rule"] = json!({"source": "userSettings", "tool_name": "Bash", "rule_content": "x"});
    request["default_to_no"] = json!("perhaps");
    request["server_policy_ask_only"] = json!("perhaps");
    wire.ask("a", &request).await;
    let (id, text) = kept.recv().await.unwrap();

    let frame = Frame::from_line(text.into_bytes()).remove(0);
    let read = PermissionRequest::from_frame(&frame).unwrap();
    assert_eq!(read.agent_id.as_deref(), Some("a1"));
    assert_eq!(read.mcp_server.as_ref().unwrap().source, "sdk");
    assert_eq!(read.matched_ask_rule.as_ref().unwrap().source, "userSettings");
    // A mark that can't be read asks for care.
    assert!(read.default_to_no && !read.requires_user_interaction);
    assert_eq!(read.server_policy_ask_only, None);
    let id = serde_json::from_str(&id).unwrap();
    assert_eq!(read.id(), &id);
    session.decide(&id, PermissionResult::allow()).await.unwrap();
    assert_eq!(
        wire.answer().await,
        (
            "a".to_owned(),
            json!({"behavior": "allow", "updatedInput": {"command": "x"}, "toolUseID": "toolu_x"})
        )
    );
    session.kill().await.unwrap();
}

/// Somebody else may be quicker than the handler, which is then stopped.
#[tokio::test(start_paused = true)]
async fn a_decision_from_elsewhere_stops_the_handler() {
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&tokens);
    let options = agent().can_use_tool(move |request: PermissionRequest| {
        keep.lock().unwrap().push(request.context.cancelled().clone());
        async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            PermissionDecision::deny("too late")
        }
    });
    let (session, mut wire, _) = Wire::start(options).await;
    wire.ask("a", &bash("x")).await;
    wire.silent_for(Duration::from_secs(60)).await;
    session
        .decide(&"a".into(), PermissionResult::allow())
        .await
        .unwrap();
    assert_eq!(wire.answer().await.1["behavior"], "allow");
    wire.silent().await;
    assert!(tokens.lock().unwrap()[0].is_cancelled());
    session.kill().await.unwrap();
}

/// What the CLI lists as open when it is introduced to again reaches its handler once.
#[tokio::test(start_paused = true)]
async fn what_is_listed_as_open_is_asked_once() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&seen);
    let options = agent().can_use_tool(move |request: PermissionRequest| {
        let waiver = request.server_policy_ask_only;
        keep.lock()
            .unwrap()
            .push((request.id().as_str().to_owned(), waiver));
        async { PermissionDecision::Parked }
    });
    let (session, mut wire, first) = Wire::start(options).await;
    let of_server = |command: &str| {
        let mut request = bash(command);
        request["server_policy_ask_only"] = json!(true);
        request
    };
    wire.ask("answered", &bash("x")).await;
    wire.ask("open", &of_server("y")).await;
    wire.silent_for(Duration::from_secs(1)).await;
    session
        .decide(&"answered".into(), PermissionResult::allow())
        .await
        .unwrap();
    wire.answer().await;

    for _ in 0..2 {
        let again = tokio::spawn({
            let session = session.clone();
            async move { session.reinitialize().await }
        });
        // One that was asked of somebody who was here before is among them.
        let listed = [
            asked("answered", &bash("x")),
            asked("open", &of_server("y")),
            asked("inherited", &of_server("z")),
        ];
        assert_eq!(wire.initialized(&listed).await, first);
        again.await.unwrap().unwrap();
    }
    // And one of them comes by itself, too.
    wire.ask("inherited", &of_server("z")).await;
    wire.silent().await;
    // Why the CLI asked holds when it asks, not when it lists.
    let expected = [("answered", None), ("open", Some(true)), ("inherited", None)];
    assert_eq!(
        *seen.lock().unwrap(),
        expected.map(|(id, waiver)| (id.to_owned(), waiver))
    );
    assert_eq!(session.pending().len(), 2);
    session
        .decide(&"inherited".into(), PermissionResult::allow())
        .await
        .unwrap();
    assert_eq!(wire.answer().await.0, "inherited");
    session.kill().await.unwrap();
}

/// One object for all; what it does not handle is refused, and the tool for questions is not offered.
#[tokio::test(start_paused = true)]
async fn one_object_may_handle_all() {
    struct Some;
    impl Callbacks for Some {
        async fn plan(&self, request: outrigger::permissions::PlanRequest) -> PermissionDecision {
            assert_eq!(request.plan.as_deref(), Option::Some("# Do it"));
            assert_eq!(request.plan_file_path.as_deref(), Option::Some("/plans/a.md"));
            PlanReply::KeepPlanning("think of the tests".to_owned()).into()
        }

        fn dialog_kinds(&self) -> Vec<String> {
            vec!["trust".to_owned()]
        }

        async fn dialog(&self, request: outrigger::DialogRequest) -> CallbackReply<UserDialogResult> {
            assert_eq!(request.payload.get(), r#"{"path":"/p"}"#);
            UserDialogResult::Completed {
                result: RawJson::from_text("1").unwrap(),
            }
            .into()
        }

        fn gives_oauth_tokens(&self) -> bool {
            true
        }

        async fn oauth_token(
            &self,
            request: outrigger::TokenRequest<outrigger::protocol::inbound::OauthTokenRefresh>,
        ) -> outrigger::OauthTokenAnswer {
            outrigger::OauthTokenAnswer {
                access_token: request.kind.clone(),
                reason: None,
            }
        }
    }
    let (session, mut wire, initialize) = Wire::start(agent().callbacks(Some)).await;
    assert_eq!(initialize["supportedDialogKinds"], json!(["trust"]));
    for (request, answer) in [
        (
            plan(),
            json!({"behavior": "deny", "message": "think of the tests", "toolUseID": "toolu_p"}),
        ),
        (dialog(), json!({"behavior": "completed", "result": 1})),
        (elicitation(), json!({"action": "decline"})),
        (
            json!({"subtype": "oauth_token_refresh", "kind": "sessions"}),
            json!({"accessToken": "sessions"}),
        ),
        (
            json!({"subtype": "host_auth_token_refresh"}),
            json!({"authToken": null}),
        ),
        (
            bash("x"),
            json!({"behavior": "deny", "message": "no callback decides about Bash", "toolUseID": "toolu_x"}),
        ),
    ] {
        wire.ask("a", &request).await;
        assert_eq!(wire.answer().await.1, answer);
    }
    session.kill().await.unwrap();
}

/// A callback may call the session that asks it, whatever it asks.
#[tokio::test(start_paused = true)]
async fn a_callback_may_control_its_session() {
    let options = agent().can_use_tool(async |request: PermissionRequest| {
        let session = request.context.session().expect("it runs");
        session.set_permission_mode(PermissionMode::Plan).await?;
        Ok::<_, outrigger::Error>(PermissionDecision::allow())
    });
    let (session, mut wire, _) = Wire::start(options).await;
    wire.ask("a", &bash("x")).await;
    let request = wire.line().await;
    assert_eq!(
        request["request"],
        json!({"subtype": "set_permission_mode", "mode": "plan"})
    );
    wire.say(&json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": request["request_id"], "response": {"mode": "plan"}
    }}))
    .await;
    assert_eq!(wire.answer().await.1["behavior"], "allow");

    // When it can't, that is a refusal which says why.
    wire.ask("b", &bash("y")).await;
    let request = wire.line().await;
    wire.say(&json!({"type": "control_response", "response": {
        "subtype": "error", "request_id": request["request_id"], "error": "not today"
    }}))
    .await;
    let (_, answer) = wire.answer().await;
    assert_eq!(answer["behavior"], "deny");
    assert!(
        answer["message"].as_str().unwrap().ends_with("not today"),
        "{answer}"
    );
    tokio::time::timeout(AGES, session.kill()).await.unwrap().unwrap();
}
