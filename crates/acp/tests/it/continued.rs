//! Stored sessions that go on: their plans.

use std::path::Path;

use outrigger::testing::Simulated;
use outrigger::testing::sim::script::Script;
use serde_json::{Value, json};

use crate::editor::{Editor, updates};

const TASKS: &str = r##"
real_tools: true
tools: [TaskCreate, TaskUpdate, Bash]
prompts:
  - prompt: plan it
    steps:
      - call: {tool: TaskCreate, input: {subject: Write it, description: d}, result: "Task #1 created successfully: Write it", details: {task: {id: "1", subject: Write it}}}
      - call: {tool: TaskCreate, input: {subject: Test it, description: d}, result: "Task #2 created successfully: Test it", details: {task: {id: "2", subject: Test it}}}
      - say: planned
  - prompt: go on
    steps:
      - call: {tool: TaskUpdate, input: {taskId: "2", status: completed}, result: "Updated task #2 status", details: {success: true, taskId: "2", updatedFields: [status], statusChange: {from: pending, to: completed}}}
      - say: done
  - prompt: what is not known
    steps:
      - call: {tool: TaskUpdate, input: {taskId: "7", status: completed}, result: "Updated task #7 status", details: {success: true, taskId: "7", updatedFields: [status], statusChange: {from: pending, to: completed}}}
      - say: done
"##;

fn editor_of(cli: &Simulated, home: &Path) -> Editor {
    Editor::of_options(cli.options().env("CLAUDE_CONFIG_DIR", home.join("config")))
}

fn plans(lines: &[Value]) -> Vec<String> {
    let plans = updates(lines, "plan").into_iter();
    let text = |plan: &Value| {
        let entries = plan["entries"].as_array().expect("entries").iter();
        let text = |entry: &Value| format!("{} {}", entry["content"], entry["status"]).replace('"', "");
        entries.map(text).collect::<Vec<_>>().join(", ")
    };
    plans.map(text).collect()
}

#[tokio::test]
async fn a_plan_goes_on_where_it_was() {
    for (method, meta, told) in [
        (
            "session/load",
            json!({}),
            vec!["Write it pending", "Write it pending, Test it pending"],
        ),
        (
            "session/load",
            json!({"claudeCode": {"replay": {"limit": 1}}}),
            vec!["Write it pending", "Write it pending, Test it pending"],
        ),
        ("session/resume", json!({}), vec![]),
    ] {
        let home = tempfile::tempdir().expect("a directory");
        let cli = Simulated::script(Script::from_yaml(TASKS).expect("a script"));
        let mut editor = editor_of(&cli, home.path());
        editor.initialize(json!({})).await;
        let (session, _) = editor.open(home.path()).await;
        editor.turn(&session, "plan it").await;
        editor.call("session/close", json!({"sessionId": session})).await;
        let open = json!({"sessionId": session, "cwd": home.path(), "mcpServers": [], "_meta": meta});
        let id = editor.ask(method, open).await;
        let (lines, answer) = editor.until(id).await;
        assert!(answer.get("error").is_none(), "{answer:#}");
        assert_eq!(plans(&lines), told, "{method}");
        let (lines, _) = editor.turn(&session, "go on").await;
        assert_eq!(plans(&lines), ["Write it pending, Test it completed"], "{method}");
        let (lines, _) = editor.turn(&session, "what is not known").await;
        assert!(plans(&lines).is_empty(), "{method}: {lines:#?}");
        editor.leave().await;
    }
}
