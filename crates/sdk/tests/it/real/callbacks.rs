//! What the real CLI asks, and what it makes of the answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::permissions::{
    PermissionAllow, PermissionDecision, PermissionRequest, PermissionResult, PermissionUpdate, PlanReply,
    PlanRequest, QuestionReply,
};
use outrigger::protocol::shared::{
    DirectoriesUpdate, JsonObject, McpServerConfig, PermissionBehavior, PermissionMode, PermissionRuleValue,
    PermissionUpdateDestination, RulesUpdate,
};
use outrigger::{ElicitationRequest, ElicitationResult, Policy, Session, Verdict};
use serde_json::json;
use tokio::sync::mpsc;

use super::flow::{bash, end, rest, soon, tool};
use super::rig::{Rig, turn};

fn question() -> serde_json::Value {
    json!({"questions": [
        {"question": "Which way?", "header": "Way", "multiSelect": false, "options": [
            {"label": "Left", "description": "to the sea"}, {"label": "Right", "description": "to the hills"}]},
        {"question": "With whom?", "header": "Company", "multiSelect": true, "options": [
            {"label": "Ann", "description": ""}, {"label": "Bob", "description": ""}]}
    ]})
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_to_the_user_have_typed_answers() {
    let rig = Rig::start().await;
    let script = format!("{}\n%say {{{{last}}}}", tool("AskUserQuestion", question()));
    let session = rig
        .options()
        .questions(async |asked: outrigger::permissions::QuestionRequest| {
            assert_eq!(asked.questions[0].header, "Way");
            asked.answers().choose(0, [0])?.choose(1, [0, 1])
        })
        .start()
        .await
        .unwrap();
    let (seen, outcome) = turn(&session, &script).await;
    assert_eq!(seen[..2], ["use AskUserQuestion", "result ok"]);
    for said in ["Left", "Ann, Bob"] {
        assert!(outcome.result_text().contains(said), "{}", outcome.result_text());
    }

    let session = rig
        .options()
        .questions(async |_| QuestionReply::Declined("they are asleep".to_owned()))
        .start()
        .await
        .unwrap();
    let (seen, outcome) = turn(&session, &script).await;
    assert_eq!(seen[..2], ["use AskUserQuestion", "result error"]);
    assert!(
        outcome.result_text().contains("they are asleep"),
        "{}",
        outcome.result_text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn with_nobody_to_answer_the_model_does_not_get_the_tool() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::allow_all())
        .start()
        .await
        .unwrap();
    turn(&session, "%say hello").await;
    let offered = rig.api().message_requests();
    assert!(offered[0].tools().any(|tool| tool == "Bash"));
    assert!(!offered[0].tools().any(|tool| tool == "AskUserQuestion"));
    let script = format!("{}\n%say {{{{last}}}}", tool("AskUserQuestion", question()));
    let (seen, _) = turn(&session, &script).await;
    assert_eq!(seen[..2], ["use AskUserQuestion", "result error"]);
}

/// Has the model write a plan where the CLI wants it, and hand it in.
async fn plan(rig: &Rig, session: &Session, then: &str) -> (Vec<String>, outrigger::Outcome) {
    turn(session, "%say thinking").await;
    let said = rig.api().message_requests().last().unwrap().messages().to_vec();
    let text = serde_json::to_string(&said).unwrap();
    let from = text.find("/plans/").expect("the CLI names the plan's file");
    let begin = text[..from]
        .rfind(|c: char| c.is_whitespace() || "\"`(".contains(c))
        .unwrap()
        + 1;
    let end = from + text[from..].find(".md").unwrap() + 3;
    let script = format!(
        "{}\n{}\n{then}",
        tool(
            "Write",
            json!({"file_path": text[begin..end], "content": "# Plan\n1. do it\n"})
        ),
        tool("ExitPlanMode", json!({}))
    );
    turn(session, &script).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_shown_and_approved_with_a_mode() {
    let rig = Rig::start().await;
    let (show, mut shown) = mpsc::unbounded_channel();
    let session = rig
        .options()
        .permission_mode(PermissionMode::Plan)
        .plans(move |plan: PlanRequest| {
            show.send((plan.plan, plan.plan_file_path)).unwrap();
            async { PlanReply::approve_and_accept_edits() }
        })
        .start()
        .await
        .unwrap();
    let written = rig.sandbox().project().join("done.txt");
    let write = tool("Write", json!({"file_path": written, "content": "x"}));
    let (seen, _) = plan(&rig, &session, &format!("{write}\n%say done")).await;
    assert_eq!(
        seen,
        [
            "use Write",
            "result ok",
            "use ExitPlanMode",
            "result ok",
            "use Write",
            "result ok",
            "text done"
        ]
    );
    let (text, path) = shown.recv().await.unwrap();
    assert_eq!(text.as_deref(), Some("# Plan\n1. do it\n"));
    assert!(path.unwrap().ends_with(".md"));
    assert!(written.exists(), "the mode that came with the approval lets it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_not_approved_keeps_the_model_planning() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permission_mode(PermissionMode::Plan)
        .plans(async |_| PlanReply::KeepPlanning("think of the tests".to_owned()))
        .start()
        .await
        .unwrap();
    let (_, outcome) = plan(&rig, &session, "%say {{last}}").await;
    assert!(
        outcome.result_text().contains("think of the tests"),
        "{}",
        outcome.result_text()
    );
    turn(&session, "%say next").await;
    assert_eq!(session.init().unwrap().permission_mode, PermissionMode::Plan);
}

/// A plan without a handler of its own is a tool call like others.
#[tokio::test]
async fn a_permission_handler_may_approve_plans() {
    let rig = Rig::start().await;
    let handler = async |request: PermissionRequest| {
        assert!(request.tool_name == "ExitPlanMode" && request.requires_user_interaction);
        PermissionResult::allow()
    };
    let session = rig
        .options()
        .permission_mode(PermissionMode::Plan)
        .permissions(handler)
        .start()
        .await
        .unwrap();
    let script = format!(
        "{}\n%say on with it",
        tool("ExitPlanMode", json!({"plan": "do it"}))
    );
    let (seen, _) = turn(&session, &script).await;
    assert_eq!(seen, ["use ExitPlanMode", "result ok", "text on with it"]);
    turn(&session, "%say next").await;
    assert_eq!(session.init().unwrap().permission_mode, PermissionMode::Default);
}

/// A person may take longer than every deadline of ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_may_take_longer_than_every_deadline() {
    let rig = Rig::start().await;
    let short = Duration::from_millis(500);
    let session = rig
        .options()
        .can_use_tool(async |_| PermissionDecision::Parked)
        .permission_deadline(short)
        .control_deadline(Duration::from_secs(5))
        .interrupt_deadline(short)
        .first_token_deadline(Some(Duration::from_secs(4)))
        .between_events_deadline(Some(Duration::from_secs(4)))
        .start()
        .await
        .unwrap();
    let mut turn = session
        .prompt(format!("{}\n%say done", bash("touch later.txt")))
        .await
        .unwrap();
    let id = soon(async {
        loop {
            if let Some(pending) = session.pending().first() {
                return pending.id().clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    // What is measured is that nothing happens meanwhile.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(!rig.sandbox().project().join("later.txt").exists());
    session.decide(&id, PermissionResult::allow()).await.unwrap();
    assert_eq!(end(&mut turn).await.result_text(), "done");
    assert!(rig.sandbox().project().join("later.txt").exists());
    let again = session.decide(&id, PermissionResult::allow()).await;
    assert!(again.unwrap_err().is_not_open());
}

/// What is open when a program introduces itself again is listed by the CLI, and asked once.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_survives_a_second_introduction() {
    let rig = Rig::start().await;
    let (asked, mut asks) = mpsc::unbounded_channel();
    let session = rig
        .options()
        .can_use_tool(move |request: PermissionRequest| {
            asked.send(request.id().clone()).unwrap();
            async { PermissionDecision::Parked }
        })
        .start()
        .await
        .unwrap();
    let mut frames = session.frames();
    let mut turn = session
        .prompt(format!("{}\n%say done", bash("touch twice.txt")))
        .await
        .unwrap();
    let id = soon(asks.recv()).await.unwrap();
    session.reinitialize().await.unwrap();
    // The CLI does list it, or this would show nothing.
    let listed = soon(async {
        loop {
            let frame = frames.next().await.unwrap().unwrap();
            if frame.kind() == "control_response" && frame.text().contains("pending_permission_requests") {
                break frame.text().contains(id.as_str());
            }
        }
    })
    .await;
    assert!(listed);
    session.decide(&id, PermissionResult::allow()).await.unwrap();
    assert_eq!(end(&mut turn).await.result_text(), "done");
    assert!(asks.try_recv().is_err(), "it was asked once");
}

/// A call of the `Agent` tool that the turn waits for.
fn agent(prompt: &str) -> String {
    let input = json!({"description": "a helper", "prompt": prompt, "subagent_type": "general-purpose",
        "run_in_background": false});
    tool("Agent", input)
}

/// Subagents ask at the same time; an interrupt takes all questions back.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_takes_back_what_several_agents_ask() {
    let rig = Rig::start().await;
    let (asked, mut asks) = mpsc::unbounded_channel();
    let session = rig
        .options()
        .can_use_tool(move |request: PermissionRequest| {
            asked.send((request.agent_id, request.context)).unwrap();
            std::future::pending::<PermissionDecision>()
        })
        .start()
        .await
        .unwrap();
    let script = format!(
        "{}\n%+{}\n%say never",
        agent(&bash("touch one.txt")),
        &agent(&bash("touch two.txt"))[1..]
    );
    let mut turn = session.prompt(script).await.unwrap();
    let (first, second) = (soon(asks.recv()).await.unwrap(), soon(asks.recv()).await.unwrap());
    assert!(first.0.is_some() && second.0.is_some() && first.0 != second.0);
    assert_eq!(session.pending().len(), 2);
    turn.cancel().await.unwrap();
    let (_, outcome) = rest(&mut turn).await;
    assert_eq!(outcome.verdict(), &Verdict::Interrupted);
    for (_, context) in [&first, &second] {
        soon(context.cancelled().cancelled()).await;
        let late = session
            .decide(context.request_id(), PermissionResult::allow())
            .await;
        assert!(late.unwrap_err().is_not_open());
    }
    assert!(session.pending().is_empty());
    assert_eq!(session.stats().unanswered_by_us, 0);
    assert!(!rig.sandbox().project().join("one.txt").exists());
}

fn bug() -> PermissionDecision {
    panic!("a bug in the handler")
}

/// The call is refused, the model is told, and the session goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_has_refused() {
    let rig = Rig::start().await;
    let session = rig.options().can_use_tool(async |_| bug()).start().await.unwrap();
    let script = format!("{}\n%say {{{{last}}}}", bash("touch never.txt"));
    let (_, outcome) = turn(&session, &script).await;
    assert!(
        outcome.result_text().contains("panicked"),
        "{}",
        outcome.result_text()
    );
    assert!(!rig.sandbox().project().join("never.txt").exists());
    assert_eq!(turn(&session, "%say on").await.1.result_text(), "on");
}

/// All forms of changes that may come with an allowance are taken by the CLI.
#[tokio::test(flavor = "multi_thread")]
async fn changes_of_permissions_come_with_an_allowance() {
    let rig = Rig::start().await;
    let here = PermissionUpdateDestination::Session;
    let rules = |names: &[&str]| {
        let rules = names.iter().map(|rule| PermissionRuleValue::calls("Bash", *rule));
        RulesUpdate::new(rules, PermissionBehavior::Allow, here)
    };
    let elsewhere = rig.sandbox().project().join("../elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let elsewhere = elsewhere.canonicalize().unwrap();
    let directories = || DirectoriesUpdate::new([elsewhere.to_str().unwrap()], here);
    let steps = Arc::new(Mutex::new(vec![
        PermissionUpdate::RemoveDirectories(directories()),
        PermissionUpdate::AddDirectories(directories()),
        PermissionUpdate::RemoveRules(rules(&["touch d.txt"])),
        PermissionUpdate::ReplaceRules(rules(&["touch c.txt", "touch d.txt"])),
        PermissionUpdate::AddRules(rules(&["touch b.txt"])),
    ]));
    let (asked, mut asks) = mpsc::unbounded_channel();
    let session = rig
        .options()
        .can_use_tool(move |request: PermissionRequest| {
            let command = request.input.to_value().unwrap()["command"].to_string();
            asked.send(command).unwrap();
            let update = steps.lock().unwrap().pop();
            async move { PermissionAllow::default().updated_permissions(update) }
        })
        .start()
        .await
        .unwrap();
    let mut seen = Vec::new();
    for command in [
        "touch a.txt",
        // Allowed by the rule that came with the answer before.
        "touch b.txt",
        // Asked, and the answer replaces all rules.
        "touch x.txt",
        "touch c.txt",
        "touch d.txt",
        // No longer allowed; the answer takes one away.
        "touch b.txt",
        "touch c.txt",
        "touch d.txt",
    ] {
        turn(&session, &format!("{}\n%say on", bash(command))).await;
        while let Ok(command) = asks.try_recv() {
            seen.push(command);
        }
    }
    let asked: Vec<_> = seen.iter().map(|command| command.trim_matches('"')).collect();
    // The last one brought the directory in.
    assert_eq!(
        asked,
        ["touch a.txt", "touch x.txt", "touch b.txt", "touch d.txt"]
    );
    let before = session.list_permission_rules().await.unwrap();
    let shown = serde_json::to_string(&before).unwrap();
    assert!(
        shown.contains("touch c.txt") && !shown.contains("touch b.txt"),
        "{shown}"
    );
    turn(&session, &format!("{}\n%say on", bash("touch y.txt"))).await;
    assert_eq!(soon(asks.recv()).await.unwrap(), "\"touch y.txt\"");
}

/// A stdio server in shell script, whose tool asks the user.
const FORMS: &str = r#"while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"forms","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"ask","description":"asks","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"method":"tools/call"'*)
      printf '{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}}}\n'
      IFS= read -r answer
      said=$(printf '%s' "$answer" | tr -d '"\\')
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}\n' "$id" "$said" ;;
  esac
done
"#;

/// That server, as it is configured.
pub(super) fn forms(rig: &Rig) -> McpServerConfig {
    let script = rig.sandbox().project().join("forms.sh");
    std::fs::write(&script, FORMS).unwrap();
    serde_json::from_value(json!({"type": "stdio", "command": "/bin/sh", "args": [script]})).unwrap()
}

/// It connects in the background.
pub(super) async fn forms_are_there(session: &Session) {
    soon(async {
        loop {
            let status = serde_json::to_string(&session.mcp_status().await.unwrap()).unwrap();
            if status.contains("\"connected\"") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

async fn elicited<F, R>(rig: &Rig, answer: Option<F>) -> String
where
    F: Fn(ElicitationRequest) -> R + Send + Sync + 'static,
    R: Future<Output = ElicitationResult> + Send + 'static,
{
    let mut options = rig
        .options()
        .mcp_servers("forms", forms(rig))
        .allowed_tools(["mcp__forms"]);
    if let Some(answer) = answer {
        options = options.elicitation(answer);
    }
    let session = options.start().await.unwrap();
    forms_are_there(&session).await;
    let call = tool("mcp__forms__ask", json!({}));
    let (_, outcome) = turn(&session, &format!("{call}\n%say {{{{last}}}}")).await;
    outcome.result_text().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_mcp_server_asks_the_user() {
    let rig = Rig::start().await;
    let said = elicited(
        &rig,
        Some(|request: ElicitationRequest| async move {
            assert_eq!(
                (request.mcp_server_name.as_str(), request.message.as_str()),
                ("forms", "Which colour?")
            );
            assert!(
                request
                    .requested_schema
                    .as_ref()
                    .unwrap()
                    .get()
                    .contains("colour")
            );
            let content = JsonObject::encode(&json!({"colour": "blue"})).unwrap();
            ElicitationResult::Accept {
                content: Some(content),
            }
        }),
    )
    .await;
    assert!(
        said.contains("action:accept") && said.contains("colour:blue"),
        "{said}"
    );
    // A callback that panics, and none at all, decline.
    let said = elicited(
        &rig,
        Some(|_| async {
            bug();
            ElicitationResult::Decline
        }),
    )
    .await;
    assert!(said.contains("action:decline"), "{said}");
    let nobody = None::<fn(ElicitationRequest) -> std::future::Ready<ElicitationResult>>;
    let said = elicited(&rig, nobody).await;
    assert!(said.contains("action:decline"), "{said}");
}
