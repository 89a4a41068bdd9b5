//! Titles, kinds, files and changes, tool by tool.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

fn seen(tool: &str, input: &Value) -> CallView {
    let dir = WorkDir { cwd: "/w".into() };
    view(tool, &RawJson::from(input.clone()), &dir)
}

#[test]
fn a_title_names_the_target() {
    use Kind::*;
    for (tool, input, kind, title) in [
        ("Bash", json!({"command": "cargo\n test"}), Execute, "cargo test"),
        ("PowerShell", json!({"command": "dir"}), Execute, "dir"),
        ("Read", json!({"file_path": "/w/a.rs"}), Read, "Read a.rs"),
        (
            "Read",
            json!({"file_path": "a.rs", "offset": 5, "limit": 3}),
            Read,
            "Read a.rs (5 - 7)",
        ),
        (
            "Read",
            json!({"file_path": "a.rs", "offset": 5}),
            Read,
            "Read a.rs (from line 5)",
        ),
        (
            "Read",
            json!({"file_path": "/x/a.pdf", "pages": "1-3"}),
            Read,
            "Read /x/a.pdf (pages 1-3)",
        ),
        ("Write", json!({"file_path": "/w/a.rs"}), Edit, "Write a.rs"),
        ("Edit", json!({"file_path": "/w/d/a.rs"}), Edit, "Edit d/a.rs"),
        ("MultiEdit", json!({"file_path": "/w/a.rs"}), Edit, "Edit a.rs"),
        (
            "NotebookEdit",
            json!({"notebook_path": "/w/n.ipynb"}),
            Edit,
            "Edit a cell of n.ipynb",
        ),
        (
            "Glob",
            json!({"pattern": "**/*.rs", "path": "/w/src"}),
            Search,
            "Find **/*.rs in src",
        ),
        (
            "Grep",
            json!({"pattern": "fn", "glob": "*.rs"}),
            Search,
            "grep \"fn\" (*.rs)",
        ),
        (
            "WebFetch",
            json!({"url": "https://example.com"}),
            Fetch,
            "Fetch https://example.com",
        ),
        (
            "WebSearch",
            json!({"query": "rust"}),
            Fetch,
            "Search the web for \"rust\"",
        ),
        (
            "Task",
            json!({"description": "look around"}),
            Think,
            "look around",
        ),
        (
            "Agent",
            json!({"description": "look around"}),
            Think,
            "look around",
        ),
        ("KillShell", json!({"shell_id": "b1"}), Execute, "Stop b1"),
        (
            "TaskOutput",
            json!({"task_id": "b1"}),
            Read,
            "Read the output of b1",
        ),
        (
            "TodoWrite",
            json!({"todos": [{"content": "a"}, {"content": "b"}]}),
            Think,
            "Update TODOs: a, b",
        ),
        ("ExitPlanMode", json!({}), SwitchMode, "Approve Plan"),
        ("EnterPlanMode", json!({}), SwitchMode, "Enter plan mode"),
        (
            "Skill",
            json!({"skill": "greet", "args": "you"}),
            Other,
            "Load skill: greet you",
        ),
        (
            "AskUserQuestion",
            json!({"questions": [{"question": "Why?"}]}),
            Other,
            "Why?",
        ),
        ("mcp__calc__add", json!({"a": 1}), Other, "add (calc)"),
        (
            "mcp__db__run",
            json!({"query": "select 1"}),
            Other,
            "run (db): select 1",
        ),
        (
            "Monitor",
            json!({"description": "the log"}),
            Execute,
            "Watch: the log",
        ),
        (
            "CronCreate",
            json!({"cron": "0 9 * * *", "prompt": "hi"}),
            Other,
            "Schedule (0 9 * * *): hi",
        ),
        ("Surprise", json!({"title": "x"}), Other, "Surprise: x"),
    ] {
        let view = seen(tool, &input);
        assert_eq!(
            (view.title.as_str(), view.kind, view.named),
            (title, kind, true),
            "{tool}"
        );
    }
}

#[test]
fn without_its_target_a_call_has_no_name_yet() {
    for (tool, title) in [
        ("Bash", "Run a command"),
        ("Read", "Read"),
        ("Agent", "Start an agent"),
        ("Surprise", "Surprise"),
    ] {
        for input in [json!({}), json!({"command": 7, "file_path": null}), json!([])] {
            let view = seen(tool, &input);
            assert_eq!((view.title.as_str(), view.named), (title, false), "{tool}");
        }
    }
}

#[test]
fn changes_are_shown_once() {
    let edit = json!({"file_path": "a.rs", "old_string": "x", "new_string": "y", "replace_all": true});
    let view = seen("Edit", &edit);
    let diff = |old: Option<&str>, new: &str| {
        CallContent::Diff(Diff {
            path: "/w/a.rs".into(),
            old: old.map(str::to_owned),
            new: new.to_owned(),
            line: None,
        })
    };
    assert_eq!(view.content, [diff(Some("x"), "y")]);
    assert_eq!(view.input.get(), r#"{"file_path":"a.rs","replace_all":true}"#);
    assert_eq!(
        view.locations,
        [Location {
            path: "/w/a.rs".into(),
            line: None
        }]
    );

    let write = seen("Write", &json!({"file_path": "/w/a.rs", "content": ""}));
    assert_eq!(write.content, [diff(None, "")]);
    let many = json!({"file_path": "/w/a.rs", "edits": [
        {"old_string": "", "new_string": "b"}, {"old_string": "c", "new_string": ""}, {"old_string": "only"}
    ]});
    assert_eq!(
        seen("MultiEdit", &many).content,
        [diff(None, "b"), diff(Some("c"), "")]
    );
    // A partial edit is not shown.
    let half = seen("Edit", &json!({"file_path": "/w/a.rs", "old_string": "x"}));
    assert_eq!(half.content, []);
    assert!(half.input.get().contains("old_string"));
}

#[test]
fn reading_says_where() {
    let view = seen("Read", &json!({"file_path": "/w/a.rs", "offset": 5}));
    assert_eq!(
        view.locations,
        [Location {
            path: "/w/a.rs".into(),
            line: Some(5)
        }]
    );
    let view = seen(
        "Read",
        &json!({"file_path": "/w/a.rs", "offset": u64::MAX, "limit": u64::MAX}),
    );
    assert_eq!(
        view.locations,
        [Location {
            path: "/w/a.rs".into(),
            line: None
        }]
    );
}

/// Each tool of the CLI has its title, kind, files and number of content parts here. A new tool is in the protocol's list and not here.
#[test]
fn each_tool_of_the_cli_has_a_look() {
    use Kind::*;
    let file = "/w/a.rs";
    type Row = (
        &'static str,
        Value,
        Kind,
        &'static str,
        &'static [&'static str],
        usize,
    );
    let table: Vec<Row> = vec![
        (
            "Agent",
            json!({"description": "look", "prompt": "p"}),
            Think,
            "look",
            &[],
            1,
        ),
        (
            "Artifact",
            json!({"file_path": "/w/a.html", "title": "A page"}),
            Other,
            "Artifact: A page",
            &["/w/a.html"],
            0,
        ),
        (
            "AskUserQuestion",
            json!({"questions": [{"question": "Why?"}]}),
            Other,
            "Why?",
            &[],
            0,
        ),
        ("Bash", json!({"command": "ls"}), Execute, "ls", &[], 0),
        (
            "ClaudeDesign",
            json!({"operation": "list", "arguments": {}}),
            Other,
            "ClaudeDesign: list",
            &[],
            0,
        ),
        (
            "CronCreate",
            json!({"cron": "* * * * *", "prompt": "p"}),
            Other,
            "Schedule (* * * * *): p",
            &[],
            0,
        ),
        ("CronDelete", json!({"id": "c1"}), Other, "Unschedule c1", &[], 0),
        ("CronList", json!({}), Other, "List what is scheduled", &[], 0),
        (
            "Edit",
            json!({"file_path": file, "old_string": "a", "new_string": "b"}),
            Edit,
            "Edit a.rs",
            &["/w/a.rs"],
            1,
        ),
        ("EnterPlanMode", json!({}), SwitchMode, "Enter plan mode", &[], 0),
        (
            "EnterWorktree",
            json!({"name": "tree"}),
            Other,
            "Enter worktree tree",
            &[],
            0,
        ),
        (
            "ExitPlanMode",
            json!({"plan": "p"}),
            SwitchMode,
            "Approve Plan",
            &[],
            1,
        ),
        (
            "ExitWorktree",
            json!({"action": "keep"}),
            Other,
            "Leave the worktree: keep",
            &[],
            0,
        ),
        (
            "Glob",
            json!({"pattern": "*.rs", "path": "/w/src"}),
            Search,
            "Find *.rs in src",
            &["/w/src"],
            0,
        ),
        ("Grep", json!({"pattern": "fn"}), Search, "grep \"fn\"", &[], 0),
        (
            "ListMcpResourcesTool",
            json!({"server": "db"}),
            Search,
            "List the resources of db",
            &[],
            0,
        ),
        (
            "Monitor",
            json!({"description": "the log", "command": "tail -f log"}),
            Execute,
            "Watch: the log",
            &[],
            0,
        ),
        (
            "NotebookEdit",
            json!({"notebook_path": "/w/n.ipynb", "new_source": "1", "edit_mode": "insert"}),
            Edit,
            "Insert a cell in n.ipynb",
            &["/w/n.ipynb"],
            1,
        ),
        (
            "OfferChromeSetup",
            json!({}),
            Other,
            "Offer to set up Chrome",
            &[],
            0,
        ),
        (
            "Projects",
            json!({"method": "read", "path": "docs/a.md"}),
            Other,
            "Projects: docs/a.md",
            &[],
            0,
        ),
        (
            "propose_skills",
            json!({"proposals": [{}, {}]}),
            Other,
            "Propose 2 skills",
            &[],
            0,
        ),
        (
            "PushNotification",
            json!({"message": "done"}),
            Other,
            "Notify: done",
            &[],
            0,
        ),
        (
            "Read",
            json!({"file_path": file}),
            Read,
            "Read a.rs",
            &["/w/a.rs"],
            0,
        ),
        (
            "ReadMcpResourceDirTool",
            json!({"server": "db", "uri": "db://a"}),
            Read,
            "Read db://a",
            &[],
            0,
        ),
        (
            "ReadMcpResourceTool",
            json!({"server": "db", "uri": "db://a/b"}),
            Read,
            "Read db://a/b",
            &[],
            0,
        ),
        ("ReadNotifications", json!({}), Read, "Read notifications", &[], 0),
        (
            "RefreshMcpTools",
            json!({"server": "db"}),
            Other,
            "Look for new tools of db",
            &[],
            0,
        ),
        (
            "RemoteTrigger",
            json!({"action": "list"}),
            Other,
            "Trigger: list",
            &[],
            0,
        ),
        (
            "ReportFindings",
            json!({"findings": [{}]}),
            Other,
            "Report a finding",
            &[],
            0,
        ),
        (
            "ScheduleWakeup",
            json!({"delaySeconds": 60, "reason": "to look again"}),
            Other,
            "Wake up later: to look again",
            &[],
            0,
        ),
        (
            "SendFeedback",
            json!({"kind": "bug", "title": "It broke", "details": "d"}),
            Other,
            "Feedback: It broke",
            &[],
            0,
        ),
        (
            "SetGoal",
            json!({"condition": "all is green"}),
            Other,
            "Goal: all is green",
            &[],
            0,
        ),
        (
            "ShowOnboardingRolePicker",
            json!({}),
            Other,
            "Ask for a role",
            &[],
            0,
        ),
        (
            "TaskCreate",
            json!({"subject": "a task", "description": "d"}),
            Think,
            "Create task: a task",
            &[],
            0,
        ),
        ("TaskGet", json!({"taskId": "1"}), Think, "Look at task 1", &[], 0),
        ("TaskList", json!({}), Think, "List tasks", &[], 0),
        ("TaskStop", json!({"task_id": "b1"}), Execute, "Stop b1", &[], 0),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "completed"}),
            Think,
            "Update task 1",
            &[],
            0,
        ),
        (
            "TodoWrite",
            json!({"todos": [{"content": "a"}]}),
            Think,
            "Update TODOs: a",
            &[],
            0,
        ),
        (
            "ToolSearch",
            json!({"query": "select:Cron"}),
            Search,
            "Find tools: select:Cron",
            &[],
            0,
        ),
        (
            "WebFetch",
            json!({"url": "https://example.com/", "prompt": "p"}),
            Fetch,
            "Fetch https://example.com/",
            &[],
            1,
        ),
        (
            "WebSearch",
            json!({"query": "rust"}),
            Fetch,
            "Search the web for \"rust\"",
            &[],
            0,
        ),
        (
            "Workflow",
            json!({"name": "review"}),
            Think,
            "Workflow: review",
            &[],
            0,
        ),
        (
            "Write",
            json!({"file_path": file, "content": "a"}),
            Edit,
            "Write a.rs",
            &["/w/a.rs"],
            1,
        ),
    ];
    let looked_at: BTreeSet<&str> = table.iter().map(|row| row.0).collect();
    let known = outrigger::protocol::tools::ToolInput::KNOWN;
    assert_eq!(looked_at, known.iter().copied().collect());
    for (tool, input, kind, title, files, shown) in table {
        let view = seen(tool, &input);
        let places: Vec<_> = view.locations.iter().map(|place| place.path.to_str()).collect();
        let files: Vec<_> = files.iter().copied().map(Some).collect();
        assert_eq!(
            (view.title.as_str(), view.kind, view.named),
            (title, kind, true),
            "{tool}"
        );
        assert_eq!((places, view.content.len()), (files, shown), "{tool}");
    }
}
