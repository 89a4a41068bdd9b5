//! Stored sessions that go on: their plans, and what their prompts had for the model only.

use std::path::Path;

use outrigger::testing::Simulated;
use outrigger::testing::sim::script::Script;
use serde_json::{Value, json};

use crate::draft;
use crate::editor::{Editor, updates};
use crate::schema::Version;

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

#[tokio::test]
async fn texts_of_files_are_not_shown_as_words_of_the_user() {
    for version in [Version::V1, Version::Draft] {
        let home = tempfile::tempdir().expect("a directory");
        let cli = Simulated::agent(|agent| agent.directives().real_tools(true));
        let mut editor = editor_of(&cli, home.path());
        let session = match version {
            Version::V1 => {
                editor.initialize(json!({"fs": {"readTextFile": true}})).await;
                editor.open(home.path()).await.0
            }
            Version::Draft => {
                draft::meet(&mut editor, &json!({})).await;
                draft::opened(&mut editor, home.path()).await
            }
        };
        let file = home.path().join("b.txt");
        std::fs::write(&file, "SAVED").expect("a file");
        editor.answer = Box::new(|_| Some(json!({"content": "UNSAVED"})));
        let prompt = json!([
            {"type": "text", "text": "%say look at"},
            {"type": "resource", "resource": {"uri": "file:///w/a.rs", "text": "LONG FILE"}},
            {"type": "resource_link", "uri": format!("file://{}", file.display()), "name": "b"},
            {"type": "text", "text": "please"},
        ]);
        let params = json!({"sessionId": session, "prompt": prompt});
        let id = editor.ask("session/prompt", params).await;
        match version {
            Version::V1 => drop(editor.until(id).await),
            Version::Draft => drop(draft::idle(&mut editor).await),
        }
        let report = cli.report().expect("it was started");
        let got = |text: &str| report.received().any(|line| line.to_string().contains(text));
        assert!(got("LONG FILE"));
        assert_eq!(got("UNSAVED"), version == Version::V1);
        editor.call("session/close", json!({"sessionId": session})).await;
        let mut open = json!({"sessionId": session, "cwd": home.path(), "mcpServers": []});
        let method = match version {
            Version::V1 => "session/load",
            Version::Draft => {
                open["replayFrom"] = json!({"type": "start"});
                "session/resume"
            }
        };
        let id = editor.ask(method, open).await;
        let (lines, answer) = editor.until(id).await;
        assert!(answer.get("error").is_none(), "{answer:#}");
        let chunks = updates(&lines, "user_message_chunk").into_iter();
        let words: Vec<&str> = chunks
            .filter_map(|chunk| chunk["content"]["text"].as_str())
            .collect();
        let link = format!("[@b.txt](file://{})", file.display());
        assert_eq!(
            words,
            ["%say look at", "[@a.rs](file:///w/a.rs)", &link, "please"],
            "{lines:#?}"
        );
        let listed = editor.call("session/list", json!({})).await;
        let title = listed["sessions"][0]["title"].as_str().expect("a title");
        assert!(title.contains("please") && !title.contains("context"), "{title}");
        editor.leave().await;
    }
}
