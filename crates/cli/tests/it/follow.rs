//! `outrigger sessions follow`, while this process writes.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::kept::{ONE, Place};

/// A command that follows, which is killed if a test fails; and what it says.
struct Following {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Following {
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut command = place.command(&["follow", ONE]);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// Waits for a line with this in it, and returns those up to it.
    fn until(&mut self, words: &str) -> String {
        let mut seen = String::new();
        while !seen.contains(words) {
            let count = self.stdout.read_line(&mut seen).unwrap();
            assert_ne!(count, 0, "it ended before it said {words:?}: {seen}");
        }
        seen
    }

    fn json(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Waits for the end; the exit status, the rest of stdout, and stderr.
    fn ended(&mut self) -> (Option<i32>, String, String) {
        let (mut rest, mut said) = (String::new(), String::new());
        self.stdout.read_to_string(&mut rest).unwrap();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), rest, said)
    }
}

fn record(kind: &str, nth: usize, content: Value) -> String {
    let uuid = format!("1111111{nth}-0000-4000-8000-00000000000a");
    let record = json!({
        "parentUuid": null, "isSidechain": false, "type": kind, "uuid": uuid, "sessionId": ONE,
        "timestamp": "2026-02-03T05:00:00.000Z", "message": {"role": kind, "content": content},
    });
    format!("{record}\n")
}

fn append(path: &Path, text: &str) {
    let mut file = File::options().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_is_written_from_now_on_is_shown_until_ctrl_c() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "count the files", Some("counting"));
    let mut follow = Following::start(&place, &[]);
    // It says which session it is once it follows.
    let head = follow.until("session");
    assert!(head.starts_with("counting\n") && head.contains(ONE), "{head}");
    let prompt = record("user", 1, json!("and the \u{1b}[31mdirectories?"));
    let (begun, rest) = prompt.split_at(60);
    append(&path, begun);
    append(&path, rest);
    let call = json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls -d"}}]);
    append(&path, &record("assistant", 2, call));
    append(
        &path,
        "{\"type\":\"mode\",\"mode\":\"normal\"}\n{\"parentUuid\":null,\"isSidechain\":true,\"type\":\"user\",\"uuid\":\"s\",\"message\":{\"role\":\"user\",\"content\":\"beside\"}}\nno record\n",
    );
    append(
        &path,
        &record("assistant", 3, json!([{"type": "text", "text": "Three."}])),
    );
    let shown = follow.until("Three.");
    assert!(
        shown.contains("You  2026-02-03 05:00\nand the \\u{1b}[31mdirectories?\n"),
        "{shown}"
    );
    assert!(shown.contains("> Bash ls -d\n"), "{shown}");
    assert!(
        !shown.contains("count the files") && !shown.contains("beside"),
        "{shown}"
    );
    follow.signal(Signal::INT);
    let (code, rest, said) = follow.ended();
    assert_eq!((code, rest.as_str()), (Some(130), ""));
    assert!(said.contains("a damaged line was left out"), "{said}");
}

#[test]
fn programs_get_a_line_of_json_for_each_message() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "count the files", None);
    let shown = place.lines(&["show", ONE, "--json"]);
    let mut all = Following::start(&place, &["--json", "--from-start"]);
    for message in shown.as_array().unwrap() {
        assert_eq!(all.json(), *message);
    }
    let mut last = Following::start(&place, &["--json", "-n", "1", "--subagents", "--system"]);
    assert_eq!(last.json(), shown[3]);
    // What a subagent that begins later says comes with its name.
    let agents = path.with_extension("").join("subagents");
    fs::create_dir_all(&agents).unwrap();
    let sidechain = json!({"type": "user", "uuid": "s", "isSidechain": true, "sessionId": ONE, "message": {"role": "user", "content": "go"}});
    fs::write(agents.join("agent-7.jsonl"), format!("{sidechain}\n")).unwrap();
    let said = last.json();
    assert_eq!(
        (&said["agentId"], &said["message"]["content"]),
        (&json!("7"), &json!("go"))
    );
    let note = json!({"type": "system", "subtype": "turn_duration", "uuid": "n", "sessionId": ONE});
    append(&path, &format!("{note}\n"));
    append(&path, &record("user", 1, json!("more")));
    assert_eq!(last.json()["type"], "system");
    for follow in [&mut all, &mut last] {
        assert_eq!(follow.json()["message"]["content"], "more");
        follow.signal(Signal::TERM);
        assert_eq!(follow.ended(), (Some(143), String::new(), String::new()));
    }
}

#[test]
fn a_transcript_that_is_replaced_is_told_anew_and_one_that_is_deleted_ends_it() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "x", None);
    let mut follow = Following::start(&place, &["--json", "-n", "1"]);
    let last = follow.json();
    let other = path.with_extension("tmp");
    fs::write(&other, record("user", 1, json!("anew"))).unwrap();
    fs::rename(&other, &path).unwrap();
    let first = follow.json();
    assert_eq!(first["message"]["content"], "anew");
    assert_ne!(first, last);
    fs::remove_file(&path).unwrap();
    let (code, rest, said) = follow.ended();
    assert_eq!((code, rest.as_str()), (Some(1), ""));
    assert!(
        said.contains("was replaced") && said.contains("was deleted"),
        "{said}"
    );
    assert_eq!(place.run(&["follow", ONE]).1, 1, "there is no such session");
}

#[test]
fn it_ends_when_nobody_reads_it_any_more() {
    let place = Place::new();
    place.session(&place.project, ONE, "x", None);
    let mut command = place.command(&["follow", ONE, "--json", "-n", "1"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    // Nothing is written meanwhile.
    assert_eq!(child.wait().unwrap().code(), Some(141));
}
