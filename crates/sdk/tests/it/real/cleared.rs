//! What a living CLI keeps when its conversation is cleared: why a process is not used for a second job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outrigger::mcp::{SdkMcpServer, Tool};
use outrigger::permissions::{PermissionAllow, PermissionRequest, PermissionUpdate};
use outrigger::protocol::shared::{
    PermissionBehavior, PermissionMode, PermissionRuleValue, PermissionUpdateDestination, RulesUpdate,
};
use outrigger::{Prompt, Session};
use serde_json::json;

use super::rig::{Rig, turn};

/// Runs a command, and returns its output.
async fn output(session: &Session, command: &str) -> String {
    let call = json!({"command": command, "description": "Look"});
    let (_, outcome) = turn(session, &format!("%tool Bash {call}\n%say {{{{last}}}}")).await;
    outcome.result_text().to_owned()
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

const PAGE: &str = include_str!("../../../../../docs/many-sessions.md");

/// The table in docs/many-sessions.md: whether each thing is kept.
fn table() -> BTreeMap<String, bool> {
    let (_, rest) = PAGE
        .split_once("| what a process has | after `/clear` |")
        .unwrap();
    let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let is_kept = match cells[2] {
            "kept" => true,
            "gone" => false,
            other => panic!("{other:?} in {row}"),
        };
        (cells[1].to_owned(), is_kept)
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cleared_conversation_keeps_what_the_page_says() {
    let rig = Rig::start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let rule = || {
        let rule = [PermissionRuleValue::calls("Bash", "made-up ruled")];
        PermissionUpdate::AddRules(RulesUpdate::new(
            rule,
            PermissionBehavior::Allow,
            PermissionUpdateDestination::Session,
        ))
    };
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Tool::with_state(
        "count",
        "Counts",
        Arc::clone(&calls),
        async |calls: Arc<AtomicUsize>, _: Nothing, _| calls.fetch_add(1, Ordering::SeqCst).to_string(),
    );
    let session = rig
        .options()
        .sdk_mcp_server("counter", SdkMcpServer::new("counter").tool(count))
        .allowed_tools(["mcp__counter"])
        .can_use_tool(move |request: PermissionRequest| {
            counted.fetch_add(1, Ordering::SeqCst);
            let gives = request.input.get().contains("made-up ruled");
            async move { PermissionAllow::default().updated_permissions(gives.then(rule)) }
        })
        .start()
        .await
        .unwrap();
    // Whether somebody is asked about a command.
    let asks = async |command: &str| {
        let before = asked.load(Ordering::SeqCst);
        output(&session, command).await;
        asked.load(Ordering::SeqCst) > before
    };
    let edit = async |name: &str| {
        let path = rig.sandbox().project().join(name);
        let call = json!({"file_path": path, "old_string": "one", "new_string": "two"});
        let call = format!("%tool Edit {call}\n%say {{{{last}}}}");
        let (_, outcome) = turn(&session, &call).await;
        outcome.result_text().contains("has been updated")
    };
    let project = rig.sandbox().project();
    std::fs::create_dir(project.join("sub")).unwrap();
    // An edit fails if the model has read the file and it has changed since then.
    let write = |name: &str, text: &str| std::fs::write(project.join(name), text).unwrap();
    let read = async |name: &str| {
        write(name, "one\n");
        let call = json!({"file_path": project.join(name)});
        turn(&session, &format!("%tool Read {call}\n%say read")).await;
    };

    turn(&session, "%say a word of the first conversation").await;
    output(&session, "cd sub && export MARK=set").await;
    assert!(
        output(&session, "pwd; echo mark=$MARK")
            .await
            .ends_with("/sub\nmark=")
    );
    assert!(asks("made-up ruled").await && !asks("made-up ruled").await);
    let sleep = json!({"command": "sleep 1000", "description": "Wait", "run_in_background": true});
    turn(&session, &format!("%tool Bash {sleep}\n%say on")).await;
    read("before.txt").await;
    turn(&session, "%tool mcp__counter__count {}\n%say on").await;
    let mode = PermissionMode::AcceptEdits;
    session.set_permission_mode(mode).await.unwrap();
    session.set_model(Some("haiku")).await.unwrap();
    turn(&session, "%say now with another model").await;
    let model = session.init().unwrap().model.clone();
    let (id, used) = (session.id().unwrap(), session.usage().cost_usd);

    let mut cleared = session.prompt(Prompt::command("clear", "")).await.unwrap();
    assert!(cleared.outcome().await.unwrap().is_success());

    let (_, first) = turn(&session, "%say the first of the second").await;
    let requests = rig.api().message_requests();
    let told = serde_json::to_string(requests.last().unwrap().messages()).unwrap();
    let place = output(&session, "pwd; echo mark=$MARK").await;
    let result = first.frame().unwrap().text();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert!(
        !edit("unread.txt").await,
        "a file has to be read before it is edited"
    );
    let (_, counted) = turn(&session, "%tool mcp__counter__count {}\n%say {{last}}").await;
    let processes = output(&session, "ps -eo args | grep -c '^[s]leep 1000'").await;
    let found = BTreeMap::from(
        [
            ("the conversation", told.contains("a word of the first")),
            ("the session id", session.id().unwrap() == id),
            ("the directory after `cd`", place.contains("/sub")),
            ("variables that a command set", place.contains("mark=set")),
            (
                "the permission mode",
                session.init().unwrap().permission_mode == mode,
            ),
            ("the model", session.init().unwrap().model == model),
            ("permission rules of the session", !asks("made-up ruled").await),
            ("which files were read", !edit("before.txt").await),
            ("MCP servers, and what they know", counted.result_text() == "1"),
            (
                "background tasks",
                processes.trim() == "1" && session.tasks().running().count() == 1,
            ),
            (
                "the cost in the CLI's results",
                result["total_cost_usd"].as_f64().unwrap() > used,
            ),
            ("`Session::usage`", session.usage().cost_usd > used),
        ]
        .map(|(what, is_kept)| (what.to_owned(), is_kept)),
    );
    assert!(asks("made-up other").await, "the mode does not allow everything");
    assert_eq!(found, table(), "docs/many-sessions.md");
    session.close().await.unwrap();
}
