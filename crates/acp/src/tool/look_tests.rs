//! Titles, kinds, files and changes, tool by tool.

use serde_json::{Value, json};

use super::*;

fn seen(tool: &str, input: &Value) -> Look {
    let place = Place { cwd: "/w".into() };
    look(tool, &RawJson::from(input.clone()), &place)
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
            "Skill: greet you",
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
        let look = seen(tool, &input);
        assert_eq!(
            (look.title.as_str(), look.kind, look.named),
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
            let look = seen(tool, &input);
            assert_eq!((look.title.as_str(), look.named), (title, false), "{tool}");
        }
    }
}

#[test]
fn changes_are_shown_once() {
    let edit = json!({"file_path": "a.rs", "old_string": "x", "new_string": "y", "replace_all": true});
    let look = seen("Edit", &edit);
    let diff = |old: Option<&str>, new: &str| {
        CallContent::Diff(Diff {
            path: "/w/a.rs".into(),
            old: old.map(str::to_owned),
            new: new.to_owned(),
            line: None,
        })
    };
    assert_eq!(look.content, [diff(Some("x"), "y")]);
    assert_eq!(look.input.get(), r#"{"file_path":"a.rs","replace_all":true}"#);
    assert_eq!(
        look.locations,
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
    // Half an edit is none.
    let half = seen("Edit", &json!({"file_path": "/w/a.rs", "old_string": "x"}));
    assert_eq!(half.content, []);
    assert!(half.input.get().contains("old_string"));
}

#[test]
fn reading_says_where() {
    let look = seen("Read", &json!({"file_path": "/w/a.rs", "offset": 5}));
    assert_eq!(
        look.locations,
        [Location {
            path: "/w/a.rs".into(),
            line: Some(5)
        }]
    );
    let look = seen(
        "Read",
        &json!({"file_path": "/w/a.rs", "offset": u64::MAX, "limit": u64::MAX}),
    );
    assert_eq!(
        look.locations,
        [Location {
            path: "/w/a.rs".into(),
            line: None
        }]
    );
}
