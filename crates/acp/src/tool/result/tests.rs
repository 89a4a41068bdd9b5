//! The views of results, tool by tool.

use serde_json::{Value, json};

use super::*;

fn shown(tool: &str, content: Value, output: Value, is_error: bool) -> ToolResultView {
    let dir = WorkDir { cwd: "/w".into() };
    let content: Option<MessageContent> = serde_json::from_value(content).unwrap();
    let output = (!output.is_null()).then(|| RawJson::from(output));
    result(tool, content.as_ref(), output.as_ref(), is_error, &dir)
}

fn printed(text: &str, code: Option<i32>) -> Option<Printed> {
    Some(Printed {
        text: text.to_owned(),
        code,
    })
}

#[test]
fn a_command_is_shown_as_what_it_printed() {
    let bash = |stdout: &str, stderr: &str, more: Value| {
        let mut output = json!({"stdout": stdout, "stderr": stderr, "interrupted": false});
        output
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        shown("Bash", json!("what the model sees"), output, false).printed
    };
    assert_eq!(bash("hi", "", json!({})), printed("hi", Some(0)));
    assert_eq!(bash("hi\n", "oh", json!({})), printed("hi\noh", Some(0)));
    assert_eq!(
        bash("", "", json!({"returnCodeInterpretation": "No matches found"})),
        printed("", None)
    );
    assert_eq!(bash("hi", "", json!({"interrupted": true})), printed("hi", None));
    let long = bash(
        "begin",
        "",
        json!({"persistedOutputPath": "/x/y.txt", "persistedOutputSize": 9}),
    );
    assert_eq!(
        long,
        printed("begin\n… all of the output, 9 bytes, is in /x/y.txt", Some(0))
    );

    let failed = shown(
        "Bash",
        json!("Exit code 7\nno such thing"),
        json!("Error: Exit code 7\nno"),
        true,
    );
    assert_eq!(failed.printed, printed("no such thing", Some(7)));
    assert_eq!(failed.content, None);
    let refused = shown("Bash", json!("User denied this action"), json!("Error: …"), true);
    assert_eq!(refused.printed, printed("User denied this action", None));
    let silent = shown(
        "Bash",
        json!("(Bash completed with no output)"),
        Value::Null,
        false,
    );
    assert_eq!(silent.printed, printed("", Some(0)));
    // Without the structure, as in some transcripts, the text is used.
    assert_eq!(
        shown("Bash", json!("hi"), Value::Null, false).printed,
        printed("hi", Some(0))
    );
}

#[test]
fn a_command_in_the_background_names_its_file() {
    let launched = |said: &str| {
        let output = json!({"stdout": "", "stderr": "", "interrupted": false, "backgroundTaskId": "b1"});
        let shown = shown("Bash", json!(said), output, false);
        assert_eq!((&shown.content, &shown.printed), (&None, &None));
        shown.background.unwrap()
    };
    let said = "Command running in background with ID: b1. Output is being written to: /t/a b/b1.output. You will be notified";
    let background = launched(said);
    assert_eq!(
        (background.task.as_str(), background.file),
        ("b1", Some("/t/a b/b1.output".into()))
    );
    for odd in [
        "Output is being written to: /etc/passwd. You will",
        "Output is being written to: b1.output",
        "nothing",
    ] {
        assert_eq!(launched(odd).file, None, "{odd}");
    }
}

#[test]
fn an_edit_is_shown_by_its_hunks() {
    let hunk = json!({"oldStart": 3, "oldLines": 2, "newStart": 3, "newLines": 2,
        "lines": [" a", "-b", "+c", "\\ No newline at end of file"]});
    let output = json!({"filePath": "/w/x.rs", "oldString": "b", "newString": "c", "originalFile": null,
        "structuredPatch": [hunk], "userModified": false, "replaceAll": false});
    let edit = shown("Edit", json!("The file … has been updated"), output, false);
    let diff = Diff {
        path: "/w/x.rs".into(),
        old: Some("a\nb\n".into()),
        new: "a\nc\n".into(),
        line: Some(3),
    };
    assert_eq!(edit.content, Some(vec![CallContent::Diff(diff)]));
    assert_eq!(
        edit.locations,
        Some(vec![Location {
            path: "/w/x.rs".into(),
            line: Some(4)
        }])
    );

    let output = json!({"type": "create", "filePath": "/w/x.rs", "content": "hello\n", "structuredPatch": [],
        "originalFile": null, "userModified": false});
    assert_eq!(
        shown("Write", json!("File created"), output, false),
        ToolResultView::default()
    );
    assert_eq!(
        shown("MultiEdit", json!("done"), Value::Null, false),
        ToolResultView::default()
    );
}

#[test]
fn an_agent_is_shown_by_its_answer_and_never_by_what_is_internal() {
    let metadata = "Async agent launched successfully. (This tool result is internal metadata — never quote)\nagentId: a1b (internal ID)";
    let output = json!({"status": "async_launched", "agentId": "a1b", "description": "d", "prompt": "p", "outputFile": "/t/a1b.output"});
    let background = Some(Background {
        task: "a1b".into(),
        file: None,
    });
    for output in [output, Value::Null, json!({"status": "new_status"})] {
        let shown = shown("Task", json!([{"type": "text", "text": metadata}]), output, false);
        assert_eq!((shown.content, &shown.background), (None, &background));
    }
    let output = json!({"status": "completed", "agentId": "a1b", "prompt": "p", "content": [{"type": "text", "text": "done"}],
        "totalToolUseCount": 0, "totalDurationMs": 1, "totalTokens": 1, "usage": {}});
    let framed = json!([{"type": "text", "text": "[Subagent hand-back] …\n  done"}]);
    let shown = shown("Agent", framed, output, false);
    assert_eq!(shown.content, Some(vec![plain("done")]));
    let output = json!({"status": "completed", "agentId": "a1b", "prompt": "p", "totalToolUseCount": 0, "totalDurationMs": 1,
        "content": [{"type": "text", "text": "a note"}, {"type": "text", "text": "done"}, {"type": "text", "text": "a tail"}],
        "totalTokens": 1, "usage": {}, "harnessNoteCount": 1, "harnessTailCount": 1});
    let shown = super::tests::shown("Agent", json!("x"), output, false);
    assert_eq!(shown.content, Some(vec![plain("done")]));
}

#[test]
fn what_others_give_is_shown_as_it_is() {
    let text = |shown: ToolResultView| match shown.content.unwrap().remove(0) {
        CallContent::Content(Content::Text(text)) => text,
        other => panic!("{other:?}"),
    };
    let read = shown(
        "Read",
        json!("1\tx\n\n<system-reminder>no</system-reminder>"),
        Value::Null,
        false,
    );
    assert_eq!(text(read), "```\n1\tx\n```");
    let failed = shown(
        "Read",
        json!("<tool_use_error>no file</tool_use_error>"),
        json!("Error"),
        true,
    );
    assert_eq!(text(failed), "```\nno file\n```");
    let mcp = shown(
        "mcp__a__b",
        json!("sum: 5"),
        json!({"content": "x", "structuredContent": {"sum": 5}}),
        false,
    );
    assert_eq!(mcp.output.as_ref().map(RawJson::get), Some(r#"{"sum":5}"#));
    assert_eq!(text(mcp), "sum: 5");
    let output = json!({"content": "x", "structuredContent": {"sum": 5}});
    let mcp = shown("mcp__a__b", json!("{ \"sum\": 5 }"), output, false);
    assert_eq!(mcp.output, None);
    let search = json!({"query": "q", "durationSeconds": 1, "results":
        [{"tool_use_id": "t", "content": [{"title": "T", "url": "https://e.x"}]}, "a remark"]});
    assert_eq!(
        text(shown("WebSearch", json!("Links: …"), search, false)),
        "- [T](https://e.x)\na remark"
    );
    let image =
        json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]);
    assert!(matches!(
        shown("Read", image, Value::Null, false).content.unwrap()[0],
        CallContent::Content(Content::Image { .. })
    ));
    assert_eq!(
        shown("ExitPlanMode", json!("approved"), Value::Null, false),
        ToolResultView::default()
    );
    assert_eq!(
        shown("New", json!(null), json!({"a": 1}), false).content,
        Some(vec![])
    );
}

#[test]
fn the_exit_code_is_in_the_summary() {
    for (summary, code) in [
        ("Background command \"x\" completed (exit code 0)", Some(0)),
        (
            "Background command \"exit code 3\" failed with exit code 127",
            Some(127),
        ),
        ("Background command \"x\" was stopped", None),
        ("exit code ", None),
    ] {
        assert_eq!(code_in(summary), code, "{summary}");
    }
}
