//! `outrigger sessions`, over transcripts in a config directory of the test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use outrigger::sessions::Sessions;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool::{outrigger, ran};

const ONE: &str = "11111111-aaaa-4aaa-8aaa-000000000001";
const TWO: &str = "11111111-bbbb-4bbb-8bbb-000000000002";

/// A config directory, and a project that nobody else has.
struct Place {
    _root: TempDir,
    config: PathBuf,
    project: PathBuf,
}

impl Place {
    fn new() -> Self {
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

    fn sessions(&self) -> Sessions {
        Sessions::at(&self.config)
    }

    /// Writes a transcript: the prompt, a call, its result, an answer.
    fn session(&self, dir: &Path, id: &str, prompt: &str, title: Option<&str>) -> PathBuf {
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

    fn command(&self, args: &[&str]) -> Command {
        let mut command = outrigger(&["sessions"]);
        command
            .args(args)
            .env("CLAUDE_CONFIG_DIR", &self.config)
            .current_dir(&self.project);
        command
    }

    fn run(&self, args: &[&str]) -> (String, i32) {
        ran(&mut self.command(args))
    }

    fn done(&self, args: &[&str]) -> String {
        let (text, code) = self.run(args);
        assert_eq!(code, 0, "{args:?}");
        text
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.done(args)).unwrap()
    }
}

#[test]
fn those_of_the_project_are_listed_and_all_on_demand() {
    let place = Place::new();
    let other = place.project.with_file_name("other");
    place.session(&place.project, ONE, "count the files", Some("counting"));
    place.session(&other, TWO, "something else", None);
    let text = place.done(&["list"]);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains(ONE) && text.contains("counting") && text.contains("(main)"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "no colours where there is no terminal");
    let text = place.done(&["list", "--all"]);
    assert!(
        text.contains(TWO) && text.contains(other.to_str().unwrap()),
        "{text}"
    );
    let text = place.done(&["list", "--dir", other.to_str().unwrap()]);
    assert!(text.contains(TWO) && !text.contains(ONE), "{text}");
    let infos = place.json(&["list", "--json"]);
    assert_eq!(infos[0]["sessionId"], ONE);
    assert_eq!(infos[0]["customTitle"], "counting");
    assert_eq!(infos[0]["firstPrompt"], "count the files");
    assert_eq!(infos[0]["gitBranch"], "main");
    assert!(infos[0]["lastModified"].is_number() && infos[0]["fileSize"].is_number());
    assert_eq!(
        place
            .json(&["list", "--all", "--limit", "1", "--json"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(place.run(&["list", "--all", "--dir", "."]).1, 2);
}

#[test]
fn a_conversation_is_shown_for_people_and_for_programs() {
    let place = Place::new();
    place.session(&place.project, ONE, "count the files", Some("counting"));
    let text = place.done(&["show", ONE]);
    for part in [
        "counting\n",
        "You  2026-02-03 04:05",
        "count the files",
        "> Bash ls",
        "  one\n",
        "Claude",
        "Two files.",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(
        !text.contains('\u{1b}'),
        "what a transcript says is no command for the terminal: {text:?}"
    );
    let text = place.done(&["show", "--markdown", ONE]);
    for part in [
        "# counting\n",
        "## You (2026-02-03 04:05 UTC)",
        "**Calls `Bash`**",
        "````\none\n```\ntwo\n````",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let messages = place.json(&["show", ONE, "--json"]);
    assert_eq!(messages.as_array().unwrap().len(), 4);
    assert_eq!(messages[0]["type"], "user");
    assert_eq!(messages[0]["session_id"], ONE);
    assert_eq!(messages[0]["message"]["content"], "count the files");
    assert_eq!(messages[0]["parent_tool_use_id"], Value::Null);
    let one = place.json(&["show", ONE, "--json", "--offset", "3", "--limit", "1"]);
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0], messages[3]);
}

#[test]
fn a_session_is_found_by_id_beginning_and_title() {
    let place = Place::new();
    let other = place.project.with_file_name("other");
    place.session(&place.project, ONE, "x", Some("first title"));
    place.session(&other, TWO, "y", Some("second title"));
    for name in [TWO, "11111111-b", "11111111-B", "second title"] {
        assert_eq!(
            place.json(&["show", name, "--json"])[0]["session_id"],
            TWO,
            "{name}"
        );
        // --dir keeps the search in one project.
        assert_eq!(place.run(&["show", name, "--dir", "."]).1, 1, "{name}");
    }
    assert_eq!(
        place.json(&["show", "1111", "--dir", ".", "--json"])[0]["session_id"],
        ONE
    );
    let output = place.command(&["show", "1111"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains(ONE) && said.contains(TWO) && said.contains("second title"),
        "{said}"
    );
    for name in ["111", "title", "22222222", "11111111-aaaa-4aaa-8aaa-00000000000f"] {
        assert_eq!(place.run(&["show", name]).1, 1, "{name}");
    }
}

#[test]
fn damaged_lines_are_told_and_the_rest_is_shown() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "x", None);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}{{\"type\":\"us")).unwrap();
    let output = place.command(&["show", ONE]).output().unwrap();
    let (said, shown) = (
        String::from_utf8(output.stderr).unwrap(),
        String::from_utf8(output.stdout).unwrap(),
    );
    assert!(
        said.contains("line 5") && said.contains("sessions repair"),
        "{said}"
    );
    assert!(shown.contains("Two files."), "{shown}");
}
