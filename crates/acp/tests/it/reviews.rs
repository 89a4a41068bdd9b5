//! Edits in the editor's own review, with the real CLI.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::editor::{Editor, said};
use crate::real::Rig;

/// What the editor was asked to write: the path, the text, and the text on disk at that time.
type Written = Arc<Mutex<Vec<(PathBuf, String, Option<String>)>>>;

/// What the editor does with a text: writes this one, or rejects the request.
type Judge = Box<dyn Fn(&str) -> Option<String> + Send>;

struct Reviewed {
    rig: Rig,
    editor: Editor,
    session: String,
    written: Written,
}

impl Reviewed {
    async fn with(judge: Judge) -> Self {
        let rig = Rig::start().await;
        let mut editor = rig.editor();
        let can = json!({
            "fs": {"readTextFile": true, "writeTextFile": true},
            "_meta": {"claudeCode": {"reviewEdits": true}},
        });
        let told = editor.initialize(can).await;
        let ours = &told["agentCapabilities"]["_meta"]["claudeCode"];
        assert_eq!(ours["reviewEdits"], true, "{told:#}");
        let (session, _) = editor.open(&rig.sandbox.project()).await;
        let mode = json!({"sessionId": session, "modeId": "acceptEdits"});
        editor.call("session/set_mode", mode).await;
        let written = Written::default();
        let seen = Arc::clone(&written);
        editor.answer = Box::new(move |asked| {
            let path = PathBuf::from(asked["params"]["path"].as_str()?);
            match asked["method"].as_str()? {
                "fs/read_text_file" => {
                    let text = std::fs::read_to_string(path).unwrap_or_default();
                    Some(json!({"content": text}))
                }
                "fs/write_text_file" => {
                    let text = asked["params"]["content"].as_str()?.to_owned();
                    let before = std::fs::read_to_string(&path).ok();
                    seen.lock().unwrap().push((path.clone(), text.clone(), before));
                    std::fs::write(path, judge(&text)?).unwrap();
                    Some(json!({}))
                }
                other => panic!("{other} was not expected: {asked:#}"),
            }
        });
        Self {
            rig,
            editor,
            session,
            written,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.rig.sandbox.project().join(name)
    }

    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.file(name)).ok()
    }

    fn written(&self) -> Vec<(PathBuf, String, Option<String>)> {
        self.written.lock().unwrap().clone()
    }

    /// The messages of the last API request.
    fn sent(&self) -> String {
        let requests = self.rig.api.message_requests();
        json!(requests.last().expect("a request").messages()).to_string()
    }

    /// The files that are kept for a crash.
    fn kept(&self) -> usize {
        let place = self.rig.sandbox.config().join("outrigger/acp/edits");
        std::fs::read_dir(place).into_iter().flatten().count()
    }

    fn edit(&self, name: &str, old: &str, new: &str) -> String {
        let edit = json!({"file_path": self.file(name), "old_string": old, "new_string": new});
        format!("%tool Edit {edit}\n")
    }

    fn write(&self, name: &str, text: &str) -> String {
        let write = json!({"file_path": self.file(name), "content": text});
        format!("%tool Write {write}\n")
    }

    fn read(&self, name: &str) -> String {
        format!("%tool Read {}\n", json!({"file_path": self.file(name)}))
    }

    async fn turn(&mut self, text: &str) -> String {
        let (lines, answer) = self.editor.turn(&self.session, text).await;
        assert_eq!(answer["stopReason"], "end_turn", "{answer:#}");
        said(&lines)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_editor_writes_what_the_agent_edits() {
    let mut on = Reviewed::with(Box::new(|text| Some(text.to_owned()))).await;
    std::fs::write(on.file("old.txt"), "one\ntwo\n").unwrap();
    // The second edit has to fit what the CLI knows of the file.
    let steps = [
        on.write("new.txt", "fresh\n"),
        on.read("old.txt"),
        on.edit("old.txt", "one", "1"),
        on.edit("old.txt", "two", "2"),
        on.edit("new.txt", "fresh", "stale"),
        "%say done".to_owned(),
    ];
    assert_eq!(on.turn(&steps.concat()).await, "done");
    let (new, old) = (on.file("new.txt"), on.file("old.txt"));
    let text = |text: &str| text.to_owned();
    assert_eq!(
        on.written(),
        [
            (new.clone(), text("fresh\n"), None),
            (old.clone(), text("1\ntwo\n"), Some(text("one\ntwo\n"))),
            (old, text("1\n2\n"), Some(text("1\ntwo\n"))),
            (new, text("stale\n"), Some(text("fresh\n"))),
        ],
        "{}",
        on.sent()
    );
    assert_eq!(on.text("old.txt").as_deref(), Some("1\n2\n"));
    assert_eq!(on.text("new.txt").as_deref(), Some("stale\n"));
    assert!(!on.sent().contains("is_error\":true"), "{}", on.sent());
    // What the editor wrote is what the CLI wrote: the CLI sees no change by somebody else.
    assert!(!on.sent().contains("modified"), "{}", on.sent());
    assert_eq!(on.kept(), 0);
    // What a subagent edits does not go through the editor.
    let inner = on.write("inner.txt", "inside") + "%say written";
    let agent = json!({
        "description": "Write it", "prompt": inner, "subagent_type": "general-purpose", "run_in_background": false,
    });
    on.turn(&format!("%tool Agent {agent}\n%say done")).await;
    assert_eq!(on.text("inner.txt").as_deref(), Some("inside"));
    assert_eq!(on.written().len(), 4);
    on.editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_is_told_what_the_user_made_of_an_edit() {
    let mut on = Reviewed::with(Box::new(|text| match text {
        "rejected\n" => Some("old\n".to_owned()),
        "changed\n" => Some("by me\n".to_owned()),
        text => Some(text.to_owned()),
    }))
    .await;
    std::fs::write(on.file("a.txt"), "old\n").unwrap();
    let rejected = on.read("a.txt") + &on.edit("a.txt", "old", "rejected") + "%say done";
    on.turn(&rejected).await;
    assert_eq!(on.text("a.txt").as_deref(), Some("old\n"));
    assert!(on.sent().contains("The user rejected this edit"), "{}", on.sent());
    let changed = on.read("a.txt") + &on.edit("a.txt", "old", "changed") + "%say done";
    on.turn(&changed).await;
    assert_eq!(on.text("a.txt").as_deref(), Some("by me\n"));
    assert!(
        on.sent().contains("the file has another text now"),
        "{}",
        on.sent()
    );
    // The CLI has seen that, and the next edit is one of the text that is there.
    let again = on.edit("a.txt", "by me", "by both") + "%say done";
    on.turn(&again).await;
    assert_eq!(on.text("a.txt").as_deref(), Some("by both\n"), "{}", on.sent());
    assert_eq!(on.kept(), 0);
    on.editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_stands_if_the_editor_can_not_write_it() {
    let mut on = Reviewed::with(Box::new(|_| None)).await;
    let write = on.write("a.txt", "by the agent") + "%say done";
    let id = on.editor.prompt(&on.session, &write).await;
    let asked = on
        .editor
        .wait_for(|line| line["method"] == "fs/write_text_file")
        .await;
    assert_eq!(on.text("a.txt"), None);
    assert_eq!(on.kept(), 1);
    on.editor.fail(&asked, -32603, "it is not in the project").await;
    let (_, answer) = on.editor.until(id).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer:#}");
    assert_eq!(on.text("a.txt").as_deref(), Some("by the agent"));
    assert!(!on.sent().contains("rejected"), "{}", on.sent());

    // The same if the turn is cancelled while the editor is at it.
    let write = on.write("b.txt", "by the agent") + "%say done";
    let id = on.editor.prompt(&on.session, &write).await;
    let is_it = |line: &Value| {
        let path = line["params"]["path"].as_str().unwrap_or_default();
        line["method"] == "fs/write_text_file" && path.ends_with("b.txt")
    };
    on.editor.wait_for(is_it).await;
    on.editor
        .notify("session/cancel", json!({"sessionId": on.session}))
        .await;
    let (mut lines, answer) = on.editor.until(id).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer:#}");
    let Reviewed { rig, editor, .. } = on;
    lines.extend(editor.leave().await);
    assert!(
        lines.iter().any(|line| line["method"] == "$/cancel_request"),
        "{lines:#?}"
    );
    let file = rig.sandbox.project().join("b.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "by the agent");
}

/// CodeCompanion for Neovim replies so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_of_null_is_a_reply() {
    let mut on = Reviewed::with(Box::new(|_| None)).await;
    let write = on.write("a.txt", "by the agent") + "%say done";
    let id = on.editor.prompt(&on.session, &write).await;
    let asked = on
        .editor
        .wait_for(|line| line["method"] == "fs/write_text_file")
        .await;
    let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": null});
    on.editor.send_raw(&reply.to_string()).await;
    on.editor.until(id).await;
    assert_eq!(on.text("a.txt"), None);
    assert!(on.sent().contains("The user rejected this edit"), "{}", on.sent());
    on.editor.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_saved_is_not_overwritten() {
    let mut on = Reviewed::with(Box::new(|text| Some(text.to_owned()))).await;
    std::fs::write(on.file("a.txt"), "saved\n").unwrap();
    on.editor.answer = Box::new(|asked| match asked["method"].as_str()? {
        "fs/read_text_file" => Some(json!({"content": "typed\n"})),
        other => panic!("{other} was not expected"),
    });
    let edit = on.read("a.txt") + &on.edit("a.txt", "saved", "edited") + "%say done";
    on.turn(&edit).await;
    assert_eq!(on.text("a.txt").as_deref(), Some("saved\n"));
    assert!(on.sent().contains("has unsaved changes"), "{}", on.sent());
    on.editor.leave().await;
}

/// An editor that has the capability and did not ask for it is asked nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_are_reviewed_only_on_request() {
    let rig = Rig::start().await;
    for is_set in [false, true] {
        let mut editor = Editor::with(rig.config.clone().review_edits(is_set));
        let can = json!({"fs": {"readTextFile": true, "writeTextFile": true}});
        editor.initialize(can).await;
        let (session, _) = editor.open(&rig.sandbox.project()).await;
        let mode = json!({"sessionId": session, "modeId": "acceptEdits"});
        editor.call("session/set_mode", mode).await;
        editor.answer = Box::new(move |asked| {
            assert!(is_set, "{asked:#}");
            let path = asked["params"]["path"].as_str()?;
            if asked["method"] == "fs/write_text_file" {
                std::fs::write(path, asked["params"]["content"].as_str()?).unwrap();
                return Some(json!({}));
            }
            Some(json!({"content": ""}))
        });
        let file = rig.sandbox.project().join(format!("{is_set}.txt"));
        let write = json!({"file_path": file, "content": "written"});
        let (lines, _) = editor
            .turn(&session, &format!("%tool Write {write}\n%say done"))
            .await;
        let asked = lines.iter().filter(|line| line["method"] == "fs/write_text_file");
        assert_eq!(asked.count(), usize::from(is_set));
        assert_eq!(std::fs::read_to_string(file).unwrap(), "written");
        editor.leave().await;
    }
}
