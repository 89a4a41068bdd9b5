//! Somewhere to read and write, calls of tools, and what became of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use outrigger::{Event, Options, Session};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::real::rig::{PATIENCE, Rig};

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Did {
    /// It ran, well or not.
    Ran,
    /// The CLI asked, and was told no.
    Asked,
    /// The CLI refused it by itself.
    Refused,
}

/// A project with a link that leads out of it, a home, and files outside that nobody may touch.
pub(super) struct Place {
    pub(super) rig: Rig,
}

impl Place {
    pub(super) async fn new() -> Self {
        let rig = Rig::start().await;
        let root = rig.sandbox().path();
        for directory in [
            "project/src/deep",
            "project/sub",
            "project/.git/hooks",
            "out/dir",
            "home/.ssh",
            "home/notes",
        ] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for (file, text) in [
            ("project/top.txt", "x\n"),
            ("project/sub/f", "x\n"),
            ("project/.env", "TOPSECRET\n"),
            ("out/secret", "TOPSECRET\n"),
            ("out/dir/f", "TOPSECRET\n"),
            ("home/.ssh/id_test", "TOPSECRET\n"),
            ("home/notes/a", "x\n"),
        ] {
            fs::write(root.join(file), text).unwrap();
        }
        std::os::unix::fs::symlink("../../out", root.join("project/src/link")).unwrap();
        Self { rig }
    }

    /// The path of something here.
    pub(super) fn at(&self, path: &str) -> String {
        self.rig
            .sandbox()
            .path()
            .join(path)
            .to_string_lossy()
            .into_owned()
    }

    /// The files outside of the project, with what is in them.
    pub(super) fn outside(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let root = self.rig.sandbox().path();
        for directory in ["out", "home/.ssh", "home/notes"] {
            list(root, &root.join(directory), &mut files);
        }
        files
    }

    /// The files of the project, too.
    pub(super) fn everything(&self) -> BTreeMap<String, String> {
        let mut files = self.outside();
        let root = self.rig.sandbox().path();
        list(root, &root.join("project"), &mut files);
        files
    }
}

fn list(root: &Path, directory: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            list(root, &path, files);
        } else {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            files.insert(name, fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

pub(super) type Call = (&'static str, Value);

pub(super) fn bash(command: &str) -> Call {
    ("Bash", json!({ "command": command }))
}

pub(super) fn read(path: &str) -> Call {
    ("Read", json!({ "file_path": path }))
}

pub(super) fn write(path: &str, content: &str) -> Call {
    ("Write", json!({"file_path": path, "content": content}))
}

pub(super) fn edit(path: &str, old: &str, new: &str) -> Call {
    (
        "Edit",
        json!({"file_path": path, "old_string": old, "new_string": new}),
    )
}

/// Makes the calls in a session of its own.
pub(super) async fn made(options: Options, calls: &[Call]) -> Vec<(Did, String)> {
    let session = options.start().await.expect("the session starts");
    let did = self::calls(&session, calls).await;
    session.close().await.unwrap();
    did
}

/// Makes the calls in one turn and tells what became of each, and what the model got to read.
pub(super) async fn calls(session: &Session, calls: &[Call]) -> Vec<(Did, String)> {
    let mut prompt = String::new();
    for (tool, input) in calls {
        writeln!(prompt, "%tool {tool} {input}").unwrap();
    }
    prompt.push_str("%say done\n");
    let mut turn = session.prompt(prompt).await.unwrap();
    let mut did = Vec::new();
    let reading = async {
        while let Some(event) = turn.next().await {
            if let Event::ToolResult(result) = event.unwrap() {
                let text = serde_json::to_string(&result.content).unwrap();
                did.push((of(&text), text));
            }
        }
    };
    timeout(PATIENCE * 2, reading)
        .await
        .expect("the turn ends in time");
    assert_eq!(did.len(), calls.len(), "{did:?}");
    did
}

fn of(text: &str) -> Did {
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    match () {
        () if says(&["it was asked", "the policy "]) => Did::Asked,
        () if says(&[
            "has been denied",
            "denied by your permission",
            "deny rule",
            "No such tool available",
        ]) =>
        {
            Did::Refused
        }
        () => Did::Ran,
    }
}
