//! `outrigger mock-api`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::tool::{outrigger, ran};

/// The real CLI, and a place for files.
struct Place {
    directory: TempDir,
    claude: PathBuf,
}

impl Place {
    async fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
            claude: outrigger_sim::claude::executable().await.unwrap(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_string_lossy().into_owned()
    }

    /// `outrigger mock-api --sandbox` with these arguments, which runs the real CLI with this prompt.
    fn claude(&self, arguments: &[&str], prompt: &str) -> Command {
        let claude = self.claude.to_string_lossy();
        let mut all = vec!["mock-api", "--sandbox"];
        all.extend(arguments);
        all.extend(["--", &claude, "-p", prompt, "--permission-mode", "acceptEdits"]);
        let mut command = outrigger(&all);
        command.current_dir(self.directory.path());
        command
    }
}

/// What a command wrote on stderr, and its exit status.
fn failed(command: &mut Command) -> (String, i32) {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    println!("{}\n{stderr}", String::from_utf8_lossy(&output.stdout));
    (stderr, output.status.code().unwrap())
}

fn lines(path: impl AsRef<Path>) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const SCRIPT: &str = r"
prompts:
  - prompt: {contains: write it}
    steps:
      - api_error: {status: 529, times: 1}
      - say: I write.
      - call: {tool: Write, input: {file_path: '{{cwd}}/made.txt', content: made}}
      - say: Written.
expect:
  api_requests: 3
  tool_results: [{contains: made.txt}]
";

#[tokio::test]
async fn the_real_cli_plays_a_script_and_is_judged() {
    let place = Place::new().await;
    fs::write(place.path("s.yaml"), SCRIPT).unwrap();
    let arguments = ["--script", &place.path("s.yaml"), "--log", &place.path("log")];
    let (said, code) = ran(&mut place.claude(&arguments, "please write it"));
    assert_eq!((said.trim(), code), ("Written.", 0));
    assert_eq!(fs::read_to_string(place.path("made.txt")).unwrap(), "made");
    let log = lines(place.path("log"));
    let statuses: Vec<_> = log.iter().map(|line| line["status"].as_u64()).collect();
    assert_eq!(statuses, [Some(529), Some(200), Some(200)]);
    assert_eq!(log[1]["answered_by"], "script prompts[0]");

    // Nothing is for another prompt, and nothing of the script was asked for.
    let (told, code) = failed(&mut place.claude(&arguments, "something else"));
    assert_eq!(code, 1);
    assert!(told.contains("the API was not asked as expected"), "{told}");
    assert!(
        told.contains("s.yaml: expect.no_unmatched: request 1, asked ")
            && told.contains(" times: no rule of the script is for the prompt"),
        "{told}"
    );
    assert!(told.contains("s.yaml:3:5: this rule was never used"), "{told}");
}

#[tokio::test]
async fn a_file_opens_a_gate() {
    let place = Place::new().await;
    fs::write(
        place.path("s.yaml"),
        "prompts: [{steps: [wait: {gate: go}, say: gone]}]",
    )
    .unwrap();
    let (told, code) = failed(&mut place.claude(&["--script", &place.path("s.yaml")], "x"));
    assert_eq!(code, 2);
    assert!(
        told.contains("it waits for the gate `go`: say with --gates"),
        "{told}"
    );

    let gates = place.path("gates");
    fs::create_dir(&gates).unwrap();
    let arguments = ["--script", &place.path("s.yaml"), "--gates", &gates];
    let running = place
        .claude(&arguments, "x")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let reached = place.path("gates/go.reached");
    tokio::time::timeout(Duration::from_secs(60), async {
        while !Path::new(&reached).exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    fs::write(place.path("gates/go"), "").unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "gone");
}

#[tokio::test]
async fn the_real_cli_is_recorded_and_replayed_elsewhere() {
    let place = Place::new().await;
    fs::write(place.path("s.yaml"), SCRIPT).unwrap();
    // What is recorded from is another mock-api, in the place of the real API.
    let mut upstream = outrigger(&["mock-api", "--script", &place.path("s.yaml")]);
    let mut upstream = upstream.stdout(Stdio::piped()).spawn().unwrap();
    let url = {
        use std::io::{BufRead as _, BufReader};
        let lines = BufReader::new(upstream.stdout.as_mut().unwrap()).lines();
        let lines = lines.map(|line| line.unwrap());
        let mut urls =
            lines.filter_map(|line| line.strip_prefix("export ANTHROPIC_BASE_URL=").map(str::to_owned));
        urls.next().unwrap()
    };
    let recording = place.path("recorded.yaml");
    let mut record = place.claude(&["--upstream", &url, "--record", &recording], "please write it");
    record.env("ANTHROPIC_API_KEY", "REAL-KEY-0123456789");
    let (said, code) = ran(&mut record);
    assert_eq!((said.trim(), code), ("Written.", 0));
    let id = i32::try_from(upstream.id()).unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(id).unwrap(),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert!(
        upstream.wait().unwrap().success(),
        "it was asked as its script expects"
    );

    let text = fs::read_to_string(&recording).unwrap();
    for secret in ["REAL-KEY", "You are", "Claude Code", &place.path("")] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains("{{cwd}}/made.txt"), "{text}");

    let elsewhere = Place::new().await;
    let (said, code) = ran(&mut elsewhere.claude(&["--script", &recording], "please write it"));
    assert_eq!((said.trim(), code), ("Written.", 0));
    assert_eq!(fs::read_to_string(elsewhere.path("made.txt")).unwrap(), "made");

    let (told, code) = failed(&mut elsewhere.claude(&["--script", &recording], "please write that"));
    assert_eq!(code, 1);
    assert!(
        told.contains("no rule of the script is for the prompt") && told.contains("this rule was never used"),
        "{told}"
    );
}

#[test]
fn commands_get_the_environment_and_give_their_status() {
    let shell = "echo $ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY $CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC $CLAUDE_CODE_USE_BEDROCK $HOME; exit 7";
    let mut command = outrigger(&["mock-api", "--sandbox", "--", "/bin/sh", "-c", shell]);
    let (said, code) = ran(command.env("CLAUDE_CODE_USE_BEDROCK", "bedrock"));
    assert_eq!(code, 7);
    assert!(
        said.starts_with("http://127.0.0.1:") && said.contains(" dummy 1 /"),
        "{said}"
    );
    let home = said.trim().rsplit(' ').next().unwrap();
    assert!(!said.contains("bedrock") && !Path::new(home).exists(), "{said}");
    let (_, code) = ran(&mut outrigger(&["mock-api", "--", "/bin/sh", "-c", "kill -9 $$"]));
    assert_eq!(code, 137);
    let (told, code) = failed(&mut outrigger(&["mock-api", "--", "/nowhere/claude"]));
    assert!(code == 3 && told.contains("cannot run /nowhere/claude"), "{told}");
}

#[test]
fn mistakes_are_told() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("s.yaml");
    fs::write(&file, "prompts:\n  - prompt: x\n    stps: [say: a]\n").unwrap();
    let path = file.to_str().unwrap();
    let (told, code) = failed(&mut outrigger(&["mock-api", "--script", path]));
    assert_eq!(code, 2);
    assert!(
        told.contains("s.yaml:3:5: unknown field `stps`, did you mean `steps`?"),
        "{told}"
    );
    for (step, why) in [
        ("wait: {gate: g}", "s.yaml: it waits for the gate `g`"),
        ("cost: 1", "s.yaml:1:20: the scripted API cannot play `cost`: "),
    ] {
        fs::write(&file, format!("prompts: [{{steps: [{step}]}}]\n")).unwrap();
        let (told, code) = failed(&mut outrigger(&["mock-api", "--script", path]));
        assert!(code == 2 && told.contains(why), "{told}");
    }
    let (told, code) = failed(&mut outrigger(&[
        "mock-api",
        "--upstream",
        "http://127.0.0.1:1",
        "--record",
        path,
    ]));
    assert_eq!(code, 1);
    assert!(told.contains("--overwrite replaces it"), "{told}");
    let (schema, code) = ran(&mut outrigger(&["mock-api", "--schema"]));
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(
        (&schema["title"], code),
        (
            &Value::from("Script for the simulated claude and for the scripted API"),
            0
        )
    );
}

#[test]
fn a_port_that_is_taken_and_a_script_that_is_empty_are_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let (told, code) = failed(&mut outrigger(&["mock-api", "--port", &port, "--", "true"]));
    assert_eq!(code, 1, "{told}");
    assert!(
        told.contains(&format!("127.0.0.1:{port}")) && told.contains("in use"),
        "{told}"
    );
    let place = TempDir::new().unwrap();
    let file = place.path().join("empty.yaml");
    for text in ["", "\n# nothing\n", "---\n"] {
        fs::write(&file, text).unwrap();
        let (told, code) = failed(&mut outrigger(&[
            "mock-api",
            "--script",
            file.to_str().unwrap(),
            "--",
            "true",
        ]));
        assert_eq!(code, 2, "{told}");
        assert!(told.contains("empty.yaml") && told.contains("empty"), "{told}");
    }
}

#[test]
fn a_recording_of_nothing_replaces_no_script() {
    let place = TempDir::new().unwrap();
    let file = place.path().join("kept.json");
    fs::write(&file, "{\"prompts\": []}\n# kept").unwrap();
    let name = file.to_str().unwrap();
    let record = [
        "mock-api",
        "--upstream",
        "http://127.0.0.1:9",
        "--record",
        name,
        "--overwrite",
        "--",
        "true",
    ];
    assert_eq!(failed(&mut outrigger(&record)).1, 0);
    assert!(fs::read_to_string(&file).unwrap().ends_with("# kept"));
}
