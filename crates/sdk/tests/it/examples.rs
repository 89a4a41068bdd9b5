//! Runs the examples, with what a person would type, and looks at what they show.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use outrigger_sim::api::{MessagesApi, Reply};
use outrigger_sim::claude::{Sandbox, executable};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Longer than any takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// Where cargo puts them: beside the directory of the tests. `cargo test` builds them, unless it is told to build one test alone.
fn program(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.parent().and_then(Path::parent).unwrap();
    let name = format!("{example}{}", std::env::consts::EXE_SUFFIX);
    let path = target.join("examples").join(name);
    assert!(
        path.exists(),
        "{} is not built: run `cargo build -p outrigger --examples`",
        path.display()
    );
    path
}

/// Runs one to its end, which must be a good one, and returns what it showed.
async fn run(example: &str, typed: &str) -> String {
    run_with(example, &[], typed).await
}

async fn run_with(example: &str, arguments: &[&str], typed: &str) -> String {
    let mut command = Command::new(program(example));
    command.args(arguments);
    command.env_clear();
    for name in [
        "PATH",
        "SystemRoot",
        "HOME",
        "LOCALAPPDATA",
        "OUTRIGGER_CLAUDE_CACHE",
        "XDG_CACHE_HOME",
    ] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(typed.as_bytes()).await.unwrap();
    drop(stdin);
    let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = ended
        .unwrap_or_else(|_| panic!("{example} does not end"))
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.status.success(), "{example}: {stdout}{stderr}");
    stdout
}

/// Checks that these come one after the other.
fn in_order(shown: &str, expected: &[&str]) {
    let mut rest = shown;
    for words in expected {
        let Some((_, behind)) = rest.split_once(words) else {
            panic!("{words:?} is not where it should be in:\n{shown}");
        };
        rest = behind;
    }
}

#[tokio::test]
async fn approve() {
    let expected = [
        "Bash wants to run: {\"command\":\"touch hello.txt\"",
        "Allow it?",
        "Bash wants to run: {\"command\":\"rm hello.txt\"",
        "failed: the user refused this and says: keep it",
        "model: That was it.",
    ];
    in_order(&run("approve", "y\nkeep it\n").await, &expected);
    // Nobody answers.
    let shown = run("approve", "").await;
    assert_eq!(
        shown
            .matches("failed: the permission handler failed: unexpected end of file")
            .count(),
        2,
        "{shown}"
    );
}

#[tokio::test]
async fn policy_file() {
    let expected = [
        "touch notes.txt",
        "rm notes.txt",
        "failed: Permission to use Bash with command rm notes.txt has been denied",
        "mkdir notes",
        "[y/N]",
        "allowed by person: ",
        "model: Done.",
    ];
    in_order(&run("policy_file", "y\n").await, &expected);
}

#[tokio::test]
async fn guard() {
    let shown = run("guard", "").await;
    let expected = [
        "guard: looks at `echo hello > public.txt`",
        "guard: looks at `cat .env`",
        "the guard keeps .env to itself",
        "model: Done.",
    ];
    in_order(&shown, &expected);
    assert_eq!(shown.matches("failed:").count(), 1, "{shown}");
}

#[tokio::test]
async fn tool() {
    let expected = [
        "tool: mcp__shopping__add",
        "failed: the count must be at least 1",
        "model: On the list: 2 bread",
        "program: the list is [\"2 bread\"]",
    ];
    in_order(&run("tool", "").await, &expected);
}

#[tokio::test]
async fn question() {
    let expected = ["Which roof?", "2. Thatch (light)", "model: ", "Thatch"];
    in_order(&run("question", "2\n").await, &expected);
    in_order(&run("question", "a flat one\n").await, &["model: ", "a flat one"]);
    let shown = run("question", "7\n").await;
    in_order(
        &shown,
        &["failed: the question could not be answered", "there is no 6"],
    );
}

#[tokio::test]
async fn plan() {
    let shown = run("plan", "smaller steps\ne\n").await;
    let expected = [
        "1. Make a file.",
        "failed: the user wants a change: smaller steps",
        "The plan:",
        "tool: Bash",
        "model: Built.",
    ];
    in_order(&shown, &expected);
    assert_eq!(shown.matches("failed:").count(), 1, "{shown}");
}

/// The README's first program is the example of that name, but for its formatting.
#[test]
fn readme_is_the_readmes_first_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("../../README.md")).unwrap();
    let block = readme.split("```").nth(1).unwrap();
    let example = std::fs::read_to_string(root.join("examples/readme.rs")).unwrap();
    let packed = |text: &str| text.split_whitespace().collect::<String>().replace(",)", ")");
    let shown = block.lines().skip(1).filter(|line| !line.starts_with('#'));
    let (imports, body): (Vec<_>, Vec<_>) = shown.partition(|line| line.starts_with("use "));
    let example = packed(&example);
    for part in [imports, body] {
        assert!(example.contains(&packed(&part.join("\n"))), "{part:#?}");
    }
}

/// Runs the README's first program with the real CLI, in a place of its own, with these variables besides those of that place.
async fn readme(sandbox: &Sandbox, variables: &[(&str, &str)]) -> Output {
    let api = MessagesApi::builder()
        .default_reply(Reply::say("A comma is missing."))
        .start()
        .await
        .unwrap();
    let mut command = Command::new(program("readme"));
    command
        .env_clear()
        .envs(sandbox.env(&api.base_url()))
        .env_remove("ANTHROPIC_API_KEY")
        .env("OUTRIGGER_CLAUDE", executable().await.unwrap())
        .envs(variables.iter().copied())
        .current_dir(sandbox.project())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    output.unwrap().unwrap()
}

#[tokio::test]
async fn the_readmes_program_uses_a_key_of_the_environment() {
    let sandbox = Sandbox::new().unwrap();
    for variable in [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
    ] {
        let output = readme(&sandbox, &[(variable, "dummy")]).await;
        let (stdout, stderr) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{variable}: {stdout}{stderr}");
        assert!(
            stdout.starts_with("A comma is missing.\n$0.0"),
            "{variable}: {stdout}"
        );
    }
}

#[tokio::test]
async fn the_readmes_program_uses_a_login() {
    let sandbox = Sandbox::new().unwrap();
    let login = r#"{"claudeAiOauth": {"accessToken": "sk-ant-oat01-none", "refreshToken": "sk-ant-ort01-none",
        "expiresAt": 4102444800000, "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}}"#;
    std::fs::write(sandbox.config().join(".credentials.json"), login).unwrap();
    let output = readme(&sandbox, &[]).await;
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(stdout.starts_with("A comma is missing.\n$0.0"), "{stdout}");
}

#[tokio::test]
async fn the_readmes_program_fails_without_an_account() {
    let sandbox = Sandbox::new().unwrap();
    for variables in [&[][..], &[("ANTHROPIC_API_KEY", "")]] {
        let output = readme(&sandbox, variables).await;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
        let stderr = String::from_utf8_lossy(&output.stderr).to_lowercase();
        assert!(
            stderr.contains("noaccount") || stderr.contains("not logged in"),
            "{stderr}"
        );
    }
}

/// One of the official Python SDK's examples.
async fn from_python(name: &str, expected: &[&str]) {
    in_order(&run_with("from_python", &[name], "").await, expected);
}

#[tokio::test]
async fn from_python_has_a_test_for_each() {
    let tests = include_str!("examples.rs");
    let listed = run_with("from_python", &[], "").await;
    assert_eq!(listed.lines().count(), 15, "{listed}");
    for name in listed.lines() {
        assert!(tests.contains(&format!("\"{name}\",")), "{name} is not run");
    }
}

#[tokio::test]
async fn from_python_one_question() {
    from_python(
        "quick_start",
        &[
            "Claude: 4.",
            "Claude: A language",
            "Claude: It is written.",
            "Cost: $0.0",
        ],
    )
    .await;
    from_python(
        "system_prompt",
        &["unset: 4.", "empty: 4.", "text: 4.", "preset and more: 4."],
    )
    .await;
    from_python(
        "max_budget_usd",
        &["None: 4.", "Some(0.1): 4.", "the budget is spent: "],
    )
    .await;
    from_python("session_stores", &["Claude: Hello, Ada.", "Claude: Ada."]).await;
    from_python("stderr_callback", &["Claude: 4.", "stderr came: true"]).await;
}

#[tokio::test]
async fn from_python_what_a_session_has() {
    from_python(
        "tools_option",
        &["some: ", "Read", "none: \n", "preset: more than five: true"],
    )
    .await;
    let sources = [
        "none: /deploy is not there",
        "user: /deploy is not there",
        "user and project: /deploy is there",
    ];
    from_python("setting_sources", &sources).await;
    from_python(
        "plugin_example",
        &["Claude: Ahoy, captain!", "plugin: demo-plugin"],
    )
    .await;
    from_python(
        "filesystem_agents",
        &["Claude: Hello to you.", "test-agent found: true"],
    )
    .await;
    from_python(
        "agents",
        &[
            "starts: Agent",
            "subagent: Line 3 leaks a handle.",
            "Claude: The reviewer found a leak.",
        ],
    )
    .await;
}

#[tokio::test]
async fn from_python_callbacks() {
    let hooks = [
        "--- PreToolUse",
        "hook: blocked",
        "foo.sh is not to be run",
        "--- UserPromptSubmit",
        "model: Pink.",
        "--- PostToolUse",
        "hook: the command reported an error",
        "--- permissionDecision",
        "important files stay as they are",
        "model: Done.",
        "--- continue: false",
        "outcome: stopped by a hook",
    ];
    from_python("hooks", &hooks).await;
    let permissions = [
        "asked about Write",
        "goes to safe_output/hello.py instead",
        "failed: a dangerous command: sudo",
        "made.txt is there: true",
        "redirected: true",
    ];
    from_python("tool_permission_callback", &permissions).await;
    let calculator = [
        "model: 15 + 27 = 42",
        "failed: division by zero",
        "model: √144 = 12",
        "model: 2^8 = 256",
    ];
    from_python("mcp_calculator", &calculator).await;
}

#[tokio::test]
async fn from_python_streams() {
    let partial = ["[Three jokes]", "It was shellfish.", "in pieces: true"];
    from_python("include_partial_messages", &partial).await;
    let scenes = [
        "--- many turns",
        "model: Paris.",
        "model: Two million.",
        "--- prompts at once",
        "What is 2 + 2? 4\n",
        "The square root of 144? 12\n",
        "10 % of 80? 8\n",
        "--- interrupt",
        "ended: interrupted",
        "model: Knock",
        "--- events by hand",
        "found Python, Rust, Go",
        "--- queued prompts",
        "Claude: Ask.",
        "Claude: Tokyo.",
        "Claude: 30.",
        "--- a command",
        "model: It says: Hello from bash!",
        "--- control",
        "commands: true",
        "model: With another model.",
        "--- errors",
        "not installed: ",
        "too slow: cancelled",
    ];
    from_python("streaming_mode", &scenes).await;
}
