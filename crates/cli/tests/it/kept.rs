//! Transcripts in a config directory of the test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use outrigger::sessions::Sessions;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool::{outrigger, ran};

pub(crate) const ONE: &str = "11111111-aaaa-4aaa-8aaa-000000000001";
pub(crate) const TWO: &str = "11111111-bbbb-4bbb-8bbb-000000000002";

/// A config directory, and a project that nobody else has.
pub(crate) struct Place {
    _root: TempDir,
    pub(crate) config: PathBuf,
    pub(crate) project: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        // A link in the way to it, as on macOS, would make other paths of what the records say.
        let real = root.path().canonicalize().unwrap();
        let (config, project) = (real.join("config"), real.join("project"));
        fs::create_dir_all(&project).unwrap();
        Self {
            _root: root,
            config,
            project,
        }
    }

    pub(crate) fn sessions(&self) -> Sessions {
        Sessions::at(&self.config)
    }

    /// Writes a transcript: the prompt, a call, its result, an answer.
    pub(crate) fn session(&self, dir: &Path, id: &str, prompt: &str, title: Option<&str>) -> PathBuf {
        let mut parent = Value::Null;
        let mut lines = Vec::new();
        let talk = [
            ("user", json!(prompt)),
            (
                "assistant",
                json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]),
            ),
            (
                "user",
                json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "one\n```\ntwo"}]),
            ),
            (
                "assistant",
                json!([{"type": "text", "text": "Two files.\u{1b}[31m"}]),
            ),
        ];
        for (nth, (kind, content)) in talk.into_iter().enumerate() {
            let uuid = format!("0000000{nth}-0000-4000-8000-00000000000a");
            let record = json!({
                "parentUuid": parent, "isSidechain": false, "type": kind, "uuid": uuid, "sessionId": id,
                "timestamp": format!("2026-02-03T04:05:0{nth}.000Z"), "cwd": dir, "gitBranch": "main",
                "message": {"role": kind, "content": content},
            });
            parent = json!(uuid);
            lines.push(record.to_string());
        }
        if let Some(title) = title {
            lines.push(json!({"type": "custom-title", "customTitle": title, "sessionId": id}).to_string());
        }
        let path = self.sessions().project_dir(dir).join(format!("{id}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = outrigger(&["sessions"]);
        command
            .args(args)
            .env("CLAUDE_CONFIG_DIR", &self.config)
            .current_dir(&self.project);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> (String, i32) {
        ran(&mut self.command(args))
    }

    pub(crate) fn done(&self, args: &[&str]) -> String {
        let (text, code) = self.run(args);
        assert_eq!(code, 0, "{args:?}");
        text
    }

    /// The one line of JSON that a command writes.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.done(args)).unwrap()
    }

    /// The lines of JSON that a command writes, as a list.
    pub(crate) fn lines(&self, args: &[&str]) -> Value {
        let text = self.done(args);
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .collect()
    }
}
