//! The program: its output, its processes, and their end.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::{Sandbox, executable};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::editor::{PATIENCE, said};

const PROGRAM: &str = env!("CARGO_BIN_EXE_outrigger-acp");

/// All descendants of a process.
fn below(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while at < found.len() {
        let children = format!("/proc/{0}/task/{0}/children", found[at]);
        let children = std::fs::read_to_string(children).unwrap_or_default();
        found.extend(
            children
                .split_whitespace()
                .filter_map(|child| child.parse::<u32>().ok()),
        );
        // Each thread has its own children.
        for task in std::fs::read_dir(format!("/proc/{}/task", found[at]))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children
                .split_whitespace()
                .filter_map(|child| child.parse::<u32>().ok());
            let new: Vec<u32> = children.filter(|child| !found.contains(child)).collect();
            found.extend(new);
        }
        at += 1;
    }
    found.remove(0);
    found
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Input,
    Terminated,
    Killed,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_however_it_ends() {
    let api = MessagesApi::builder()
        .directives(true)
        .start()
        .await
        .expect("the API starts");
    let sandbox = Sandbox::new().expect("a directory");
    let cli = executable().await.expect("the pinned CLI");
    for end in [End::Input, End::Terminated, End::Killed] {
        let mut agent = Command::new(PROGRAM)
            .env_clear()
            .envs(sandbox.env(&api.base_url()))
            .env("CLAUDE_CODE_EXECUTABLE", &cli)
            .env("CLAUDECODE", "1")
            .env("CLAUDE_CODE_ENTRYPOINT", "of-an-outer-session")
            .env("CLAUDE_CODE_SSE_PORT", "of-an-outer-session")
            .env("CLAUDE_CODE_SESSION_ID", "of-an-outer-session")
            .env("RUST_LOG", "debug")
            .current_dir(sandbox.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let pid = agent.id().expect("it runs");
        let mut stdin = agent.stdin.take().expect("a pipe");
        let mut stdout = BufReader::new(agent.stdout.take().expect("a pipe")).lines();
        let lines = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "session/new",
                "params": {"cwd": sandbox.project(), "mcpServers": []}}),
        ];
        let mut answers = Vec::new();
        for line in &lines {
            stdin
                .write_all(format!("{line}\n").as_bytes())
                .await
                .expect("it reads");
            let answer = loop {
                let said = tokio::time::timeout(PATIENCE, stdout.next_line()).await;
                let said = said
                    .expect("it answers in time")
                    .expect("text")
                    .expect("it is there");
                // Only protocol messages, whatever is logged.
                let said: Value = serde_json::from_str(&said).expect("JSON");
                assert!(said.get("error").is_none(), "{said}");
                if said["id"] == line["id"] {
                    break said;
                }
            };
            answers.push(answer);
        }
        let session = answers[1]["result"]["sessionId"]
            .as_str()
            .expect("an id")
            .to_owned();
        let hang = json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": [{"type": "text", "text": "%hang\n%say one"}]}});
        stdin
            .write_all(format!("{hang}\n").as_bytes())
            .await
            .expect("it reads");
        // The CLI of the session, and the spare.
        let is_cli = |pid: &u32| {
            let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
            exe.is_ok_and(|exe| exe == Path::new(&cli).canonicalize().unwrap_or_default())
        };
        let both = async {
            while below(pid).iter().filter(|pid| is_cli(pid)).count() < 2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, both).await;
        assert!(in_time.is_ok(), "two CLIs among {:?}", below(pid));
        let started = below(pid);
        let claude = started.iter().find(|pid| is_cli(pid));
        let claude = claude.unwrap_or_else(|| panic!("a CLI among {started:?}"));
        let env = std::fs::read(format!("/proc/{claude}/environ")).expect("its environment");
        let env = String::from_utf8_lossy(&env).into_owned();
        assert!(
            !env.split('\0').any(|pair| pair.starts_with("CLAUDECODE=")),
            "{env}"
        );
        assert!(!env.contains("of-an-outer-session"), "{env}");

        let agent_pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
        match end {
            End::Input => drop(stdin),
            End::Terminated => kill_process(agent_pid, Signal::TERM).expect("it is there"),
            End::Killed => kill_process(agent_pid, Signal::KILL).expect("it is there"),
        }
        let status = tokio::time::timeout(PATIENCE, agent.wait())
            .await
            .expect("it ends")
            .expect("it is seen");
        assert_eq!(status.success(), end != End::Killed, "{end:?}: {status}");
        let gone = async {
            while started.iter().any(|pid| is_alive(*pid)) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, gone).await;
        assert!(
            in_time.is_ok(),
            "{end:?}: still there of {started:?}: {:?}",
            started.iter().filter(|pid| is_alive(**pid)).collect::<Vec<_>>()
        );
        // A killed agent can't clean up.
        if end != End::Killed {
            let parked = std::fs::read_dir(sandbox.config().join("spares")).expect("where spares are");
            assert_eq!(parked.count(), 0, "{end:?}");
        } else {
            std::fs::remove_dir_all(sandbox.config().join("spares")).expect("it can be tidied up");
        }
    }
}

/// The program with the real CLI, and the lines of both.
struct Program {
    agent: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    asked: u64,
}

impl Program {
    async fn start(sandbox: &Sandbox, api: &MessagesApi) -> Self {
        let mut agent = Command::new(PROGRAM)
            .arg("--no-spare")
            .env_clear()
            .envs(sandbox.env(&api.base_url()))
            .env(
                "CLAUDE_CODE_EXECUTABLE",
                executable().await.expect("the pinned CLI"),
            )
            .current_dir(sandbox.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let stdin = agent.stdin.take().expect("a pipe");
        let stdout = BufReader::new(agent.stdout.take().expect("a pipe")).lines();
        Self {
            agent,
            stdin,
            stdout,
            asked: 0,
        }
    }

    async fn write(&mut self, line: &str) {
        let written = async {
            self.stdin.write_all(line.as_bytes()).await?;
            self.stdin.write_all(b"\n").await
        };
        let in_time = tokio::time::timeout(LONG, written).await;
        in_time.expect("it reads in time").expect("it reads");
    }

    /// Reads up to a line, and returns it, its length, and the lines before.
    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> (Value, usize, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let line = tokio::time::timeout(LONG, self.stdout.next_line()).await;
            let line = line
                .unwrap_or_else(|_| panic!("nothing came behind {before:?}"))
                .expect("text")
                .expect("it is there");
            let value: Value = serde_json::from_str(&line).expect("JSON");
            if is_it(&value) {
                return (value, line.len(), before);
            }
            before.push(value);
        }
    }

    /// The answer to a request, and the lines before.
    async fn call(&mut self, method: &str, params: &str) -> (Value, Vec<Value>) {
        self.asked += 1;
        let id = self.asked;
        self.write(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ))
        .await;
        let (answer, _, before) = self
            .until(|line| line["id"] == id && line.get("method").is_none())
            .await;
        (answer, before)
    }

    async fn open(&mut self, sandbox: &Sandbox) -> String {
        let params = json!({"cwd": sandbox.project(), "mcpServers": []}).to_string();
        let (opened, _) = self.call("session/new", &params).await;
        opened["result"]["sessionId"].as_str().expect("an id").to_owned()
    }

    async fn prompt(&mut self, session: &str, text: &str) -> (Value, Vec<Value>) {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.call("session/prompt", &params.to_string()).await
    }
}

/// Longer than a line of 64 MiB takes on a busy machine.
const LONG: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_64_mib_and_the_death_of_an_idle_cli_are_survived() {
    let api = MessagesApi::builder().directives(true).start().await;
    let api = api.expect("the API starts");
    let sandbox = Sandbox::new().expect("a directory");
    let mut editor = Program::start(&sandbox, &api).await;
    editor.call("initialize", r#"{"protocolVersion":1}"#).await;
    let session = editor.open(&sandbox).await;
    let long = "x".repeat(64 * 1024 * 1024);

    // One that is no JSON: the editor gets an error, without what it sent.
    editor.write(&long).await;
    let (told, length, _) = editor.until(|line| line.get("error").is_some()).await;
    assert_eq!(
        (&told["id"], &told["error"]["code"]),
        (&Value::Null, &json!(-32700))
    );
    assert!(length < 32 * 1024, "{length} bytes");

    // One that is a request: its own error, as short.
    let params = format!(r#"{{"sessionId":"{long}","modeId":"plan"}}"#);
    let (told, _) = editor.call("session/set_mode", &params).await;
    assert_eq!(told["error"]["code"], -32002);
    assert!(told.to_string().len() < 32 * 1024);

    // One that is a prompt: the CLI's error, and the session can be closed and another one opened.
    let (told, _) = editor.prompt(&session, &long).await;
    assert_eq!(told["error"]["code"], -32603, "{told}");
    let said = told["error"]["message"].as_str().expect("a message");
    assert!(said.contains("too large") || said.contains("too long"), "{said}");
    let params = json!({"sessionId": session}).to_string();
    editor.call("session/close", &params).await;
    let session = editor.open(&sandbox).await;
    assert_eq!(spoken(&editor.prompt(&session, "%say one").await), "one");

    // The CLI dies while nothing runs: the editor sees the next answer, and no error.
    let pid = editor.agent.id().expect("it runs");
    let started = below(pid);
    for pid in &started {
        // One ends with the other.
        let pid = Pid::from_raw(i32::try_from(*pid).expect("a pid")).expect("a pid");
        let _ = kill_process(pid, Signal::KILL);
    }
    let gone = async {
        while started.iter().any(|pid| is_alive(*pid)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, gone).await;
    assert!(!started.is_empty() && in_time.is_ok(), "{started:?}");
    assert_eq!(spoken(&editor.prompt(&session, "%say two").await), "two");
    drop(editor.stdin);
    let status = tokio::time::timeout(PATIENCE, editor.agent.wait()).await;
    assert!(status.expect("it ends").expect("it is seen").success());
}

/// What the model said in a turn that ended well.
fn spoken((answer, lines): &(Value, Vec<Value>)) -> String {
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}: {lines:#?}");
    said(lines)
}

#[tokio::test]
async fn the_cli_can_be_had_through_it() {
    let cli = tempfile::tempdir().unwrap();
    let script = cli.path().join("claude");
    outrigger_needs::script(
        &script,
        "#!/bin/sh\nprintf '%s|' \"$@\" \"${CLAUDECODE-unset}\"\nexit 7\n",
    )
    .unwrap();
    let output = Command::new(PROGRAM)
        .args(["--log", "/dev/null", "--cli", "auth", "login", "--help"])
        .env("CLAUDE_CODE_EXECUTABLE", &script)
        .env("CLAUDECODE", "1")
        .output()
        .await
        .expect("the program starts");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "auth|login|--help|unset|"
    );
    assert_eq!(output.status.code(), Some(7));
}

/// Some editors start their agents with little more than a `PATH`.
#[tokio::test]
async fn without_home_in_the_environment_it_is_that_of_the_user() {
    let place = tempfile::tempdir().unwrap();
    let (script, told) = (place.path().join("claude"), place.path().join("told"));
    outrigger_needs::script(
        &script,
        format!("#!/bin/sh\necho \"$HOME\" > '{}'\nexit 1\n", told.display()),
    )
    .unwrap();
    let mut agent = Command::new(PROGRAM)
        .arg("--no-spare")
        .env_clear()
        .env("CLAUDE_CODE_EXECUTABLE", &script)
        .env("CLAUDE_CONFIG_DIR", place.path())
        .env("ANTHROPIC_API_KEY", "sk-none")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts");
    let mut stdin = agent.stdin.take().expect("a pipe");
    let mut stdout = BufReader::new(agent.stdout.take().expect("a pipe")).lines();
    let open = json!({"cwd": place.path(), "mcpServers": []});
    for (method, params) in [
        ("initialize", json!({"protocolVersion": 1})),
        ("session/new", open),
    ] {
        let line = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .await
            .expect("it reads");
        let said = tokio::time::timeout(PATIENCE, stdout.next_line()).await;
        let said = said.expect("in time").expect("text").expect("it is there");
        assert!(!said.contains("home directory"), "{said}");
    }
    let home = std::fs::read_to_string(&told).expect("the CLI was started");
    assert!(Path::new(home.trim()).is_absolute(), "{home:?}");
}

/// With its log, which the tests inside of this program do not have.
#[tokio::test]
async fn what_does_not_decode_is_refused_by_the_program() {
    let home = tempfile::tempdir().unwrap();
    for level in [None, Some("trace")] {
        let mut command = Command::new(PROGRAM);
        command.env_clear().env("HOME", home.path());
        if let Some(level) = level {
            command.env("RUST_LOG", level);
        }
        let mut agent = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let mut stdin = agent.stdin.take().expect("a pipe");
        let mut stdout = BufReader::new(agent.stdout.take().expect("a pipe")).lines();
        let wrong = json!({"sessionId": 5, "cwd": 5, "methodId": 5, "prompt": "x".repeat(1000)});
        let mut requests = vec![("initialize", json!({"protocolVersion": 1}), 0)];
        for method in [
            "authenticate",
            "session/new",
            "session/load",
            "session/resume",
            "session/fork",
            "session/list",
            "session/close",
            "session/delete",
            "session/prompt",
            "session/set_mode",
            "session/set_config_option",
            "_session/history",
            "_session/rewind",
            "_session/steering",
            "_session/mcp_toggle",
        ] {
            requests.push((method, wrong.clone(), -32602));
        }
        // No answer, and no harm.
        requests.push(("session/cancel", wrong.clone(), 0));
        requests.push(("session/unheard_of", wrong.clone(), -32601));
        for (id, (method, params, code)) in requests.into_iter().enumerate() {
            let is_request = method != "session/cancel";
            let mut line = json!({"jsonrpc": "2.0", "method": method, "params": params});
            if is_request {
                line["id"] = json!(id);
            }
            stdin
                .write_all(format!("{line}\n").as_bytes())
                .await
                .expect("it reads");
            if !is_request {
                continue;
            }
            let said = tokio::time::timeout(PATIENCE, stdout.next_line()).await;
            let said = said.unwrap_or_else(|_| panic!("{level:?}: no answer to {method}"));
            let said: Value = serde_json::from_str(&said.expect("text").expect("it is there")).expect("JSON");
            assert_eq!(said["id"], id, "{said}");
            assert_eq!(
                said["error"]["code"].as_i64().unwrap_or(0),
                code,
                "{method}: {said}"
            );
            // What was sent is not sent back.
            assert!(!said.to_string().contains("xxxx"), "{said}");
        }
        drop(stdin);
        let status = tokio::time::timeout(PATIENCE, agent.wait()).await;
        assert!(status.expect("it ends").expect("it is seen").success());
    }
}
