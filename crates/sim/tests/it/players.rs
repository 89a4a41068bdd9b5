//! Programs with one script and either CLI: `outrigger-sim play` and `outrigger-sim conform`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// A program in another language: a process of the CLI for each argument, one after the other, with the argument as its prompt.
const ONE_BY_ONE: &str = r#"
for prompt in "$@"; do
    printf '{"type":"user","message":{"role":"user","content":"%s"},"parent_tool_use_id":null,"session_id":""}\n' "$prompt" |
        claude --output-format stream-json --verbose --input-format stream-json --permission-prompt-tool stdio || exit 3
done
"#;

/// The players.
const BOTH: [&str; 2] = ["--sim", "--real"];

/// The words of the model for three prompts.
const THREE: &str = "
prompts:
  - {prompt: {contains: one}, steps: [say: first]}
  - {prompt: {contains: two}, steps: [say: second]}
  - {prompt: {contains: three}, steps: [say: third]}
";

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    report: Value,
}

impl Ran {
    /// The results of all turns that the program was told.
    fn results(&self) -> Vec<String> {
        let lines = self
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let results = lines.filter(|line| line["type"] == "result");
        results
            .map(|line| line["result"].as_str().unwrap_or("none").to_owned())
            .collect()
    }
}

fn command(place: &Path, arguments: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger-sim"));
    command
        .args(arguments)
        .arg("--")
        .args(program)
        .current_dir(place)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stdin(Stdio::null());
    // Where the pinned CLI is kept.
    for name in ["HOME", "XDG_CACHE_HOME", "OUTRIGGER_CLAUDE_CACHE"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// Runs a shell program with these arguments.
fn play(player: &str, script: &str, program: &str, arguments: &[&str]) -> Ran {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("script.yaml"), script).unwrap();
    let options = ["play", player, "script.yaml", "--report", "report.json"];
    let program = [&["sh", "-c", program, "sh"], arguments].concat();
    let output: Output = command(place.path(), &options, &program).output().unwrap();
    let report = std::fs::read_to_string(place.path().join("report.json")).unwrap_or_default();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        report: serde_json::from_str(&report).unwrap_or_default(),
    }
}

#[test]
fn three_processes_play_one_script() {
    for (player, script) in BOTH.map(|player| (player, THREE)) {
        let ran = play(player, script, ONE_BY_ONE, &["one", "two", "three"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{player}");
        assert_eq!(ran.results(), ["first", "second", "third"], "{player}");
        assert_eq!(ran.report["content"], true);
        assert_eq!(ran.report["player"], player.trim_start_matches("--"));
        assert_eq!(ran.report["exit"], json!({"code": 0, "signal": null}));
        let processes = ran.report["processes"].as_array().unwrap();
        assert_eq!(processes.len(), 3);
        for (process, result) in processes.iter().zip(["first", "second", "third"]) {
            let lines = process["lines"].as_array().unwrap();
            let of = |from: &str, kind: &str| {
                let mut lines = lines.iter();
                let line = lines.find(|line| line["from"] == from && line["kind"] == kind);
                line.map_or(Value::Null, |line| line["frame"].clone())
            };
            assert_eq!(of("client", "user")["type"], "user", "{player}");
            assert_eq!(of("cli", "result/success")["result"], result, "{player}");
            assert_eq!(process["arguments"][0], "--output-format", "{player}");
            assert_eq!(process["running"], false, "{player}");
            assert!(process["pid"].as_i64() > Some(0), "{player}");
            assert!(process["started_ms"].as_f64() > Some(1e12), "{player}");
        }
    }
}

#[test]
fn what_is_left_over_is_judged_once_at_the_end() {
    for (player, script) in BOTH.map(|player| (player, THREE)) {
        let ran = play(player, script, ONE_BY_ONE, &["one", "two"]);
        assert_eq!(ran.code, Some(97), "{player}: {}", ran.stderr);
        assert_eq!(ran.results(), ["first", "second"], "{player}");
        let flaws = ran.report["flaws"].as_array().unwrap();
        assert_eq!((flaws.len(), &ran.report["content"]), (1, &json!(false)));
        let place = flaws[0]["place"].as_str().unwrap();
        assert_eq!(place, "script.yaml:5:5", "{player}");
        assert!(ran.stderr.contains(place), "{}", ran.stderr);
    }
}

#[test]
fn a_program_that_fails_is_told_apart_from_a_script_that_is_not_content() {
    for (player, script) in BOTH.map(|player| (player, THREE)) {
        let all = format!("{ONE_BY_ONE}\nexit 5");
        let ran = play(player, script, &all, &["one", "two", "three"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(5), ""), "{player}");
        assert_eq!(ran.report["exit"]["code"], 5);

        let ran = play(player, script, "exit 5", &[]);
        assert_eq!(ran.code, Some(97), "{player}");
        assert_eq!(ran.report["flaws"].as_array().unwrap().len(), 3);
        for said in ["the program started no CLI", "the program ended with exit code 5"] {
            assert!(ran.stderr.contains(said), "{}", ran.stderr);
        }
    }
    let ran = play("--sim", "{}", "kill -9 $$", &[]);
    assert_eq!(ran.code, Some(137));
    assert_eq!(ran.report["exit"], json!({"code": null, "signal": 9}));
}

/// Kills a process as soon as it has said something, and goes on with another one.
const KILLS: &str = r#"
mkfifo in
claude --output-format stream-json --verbose --input-format stream-json <in >out &
pid=$!
exec 3>in
printf '{"type":"user","message":{"role":"user","content":"one"},"parent_tool_use_id":null,"session_id":""}\n' >&3
until grep -sq "$1" out; do sleep 0.02; done
kill -9 $pid
{ wait $pid; } 2>/dev/null
[ $? = 137 ] || exit 4
exec 3>&-
printf '{"type":"user","message":{"role":"user","content":"two"},"parent_tool_use_id":null,"session_id":""}\n' |
    claude --output-format stream-json --verbose --input-format stream-json
"#;

#[test]
fn the_others_go_on_behind_a_process_that_was_killed() {
    let script = |more: &str| {
        format!(
            "prompts:\n  - prompt: one\n    steps:\n      - say: half\n{more}      - call: {{tool: Read, input: {{file_path: a}}}}\n      \
             - wait: 10m\n  - {{prompt: two, steps: [say: second]}}\nexpect:\n  tools: [Read]\n  prompts: 2\n"
        )
    };
    let ran = play("--sim", &script(""), KILLS, &["tool_result"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.results(), ["second"]);
    let exits: Vec<&Value> = ran.report["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| &process["exit"])
        .collect();
    let (unknown, good) = (
        json!({"code": null, "signal": null}),
        json!({"code": 0, "signal": null}),
    );
    assert_eq!(exits, [&unknown, &good]);

    // It has no time to tell what it found, and it is known all the same.
    let ran = play(
        "--sim",
        &script("      - assert: {prompts: 7}\n"),
        KILLS,
        &["tool_result"],
    );
    assert_eq!(ran.code, Some(97), "{}", ran.stderr);
    let flaws = ran.report["flaws"].as_array().unwrap();
    assert_eq!(flaws.len(), 1, "{flaws:?}");
    assert_eq!(flaws[0]["place"], "script.yaml:5:9");

    // So is what it has not come to.
    let not_reached = script("").replace("10m\n", "10m\n      - assert: {prompts: 1}\n");
    let ran = play("--sim", &not_reached, KILLS, &["tool_result"]);
    let flaws = ran.report["flaws"].as_array().unwrap();
    assert_eq!((ran.code, flaws.len()), (Some(97), 1), "{flaws:?}");
    assert_eq!(flaws[0]["place"], "script.yaml:7:9");

    let script = "
prompts:
  - {prompt: {contains: one}, times: any, anytime: true, steps: [say: half, stall]}
  - {prompt: {contains: two}, steps: [say: second]}
";
    let ran = play("--real", script, KILLS, &["init"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.results(), ["second"]);
}

#[test]
fn processes_at_once_use_each_rule_once() {
    let script = "prompts:\n  - {anytime: true, times: 2, steps: [say: a]}\n  - {anytime: true, times: 2, steps: [say: b]}\n  \
                  - {anytime: true, times: 2, steps: [say: c]}\n";
    let program = r#"
for number in 1 2 3 4 5 6; do
    printf '{"type":"user","message":{"role":"user","content":"go"}}\n' |
        claude --output-format stream-json --verbose --input-format stream-json >out.$number &
done
wait
cat out.*
"#;
    let ran = play("--sim", script, program, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let mut results = ran.results();
    results.sort();
    assert_eq!(results, ["a", "a", "b", "b", "c", "c"]);
}

#[test]
fn the_program_has_a_place_of_its_own_and_finds_the_player_there() {
    let program = r#"
printf '%s\n' "$(command -v claude)" "$OUTRIGGER_CLAUDE" "$CLAUDE_CODE_EXECUTABLE" "$HOME" "$CLAUDE_CONFIG_DIR" \
    "$ANTHROPIC_API_KEY" "$(pwd)"
ls -A "$HOME/.claude"
"#;
    for player in ["--sim", "--real"] {
        let ran = play(player, "{}", program, &[]);
        assert_eq!(ran.code, Some(0), "{player}: {}", ran.stderr);
        let lines: Vec<&str> = ran.stdout.lines().collect();
        let [found, named, also_named, home, config, key, project] = lines[..] else {
            panic!("{lines:?}");
        };
        assert_eq!((named, also_named), (found, found));
        assert!(found.ends_with("/bin/claude"), "{found}");
        assert_eq!(config, format!("{home}/.claude"));
        assert_eq!(key, "dummy");
        assert_ne!(Some(home), std::env::var("HOME").ok().as_deref());
        assert!(!Path::new(home).exists(), "it is removed");
        assert_ne!(project, home);
    }
}

#[test]
fn the_player_is_the_same_for_a_program_that_clears_its_environment() {
    let program = r#"
printf '{"type":"user","message":{"role":"user","content":"one"},"parent_tool_use_id":null,"session_id":""}\n' |
    env -i PATH=/usr/bin:/bin ANTHROPIC_BASE_URL=http://203.0.113.1 "$CLAUDE_CODE_EXECUTABLE" \
    --output-format stream-json --verbose --input-format stream-json
"#;
    let script = "prompts: [{steps: [say: here]}]";
    for player in BOTH {
        let ran = play(player, script, program, &[]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{player}");
        assert_eq!(ran.results(), ["here"], "{player}");
    }
}

/// Asks for what its argument says, and answers each request for a permission.
const PERMITS: &str = r#"
mkfifo in
claude --output-format stream-json --verbose --input-format stream-json --permission-prompt-tool stdio <in | {
    exec 3>in
    printf '{"type":"user","message":{"role":"user","content":"%s"},"parent_tool_use_id":null,"session_id":""}\n' "$1" >&3
    while read -r line; do
        printf '%s\n' "$line"
        case "$line" in
        *'"subtype":"can_use_tool"'*)
            id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
            printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"behavior":"%s"%s}}}\n' \
                "$id" "$2" "$3" >&3
            ;;
        *'"type":"result"'*) exec 3>&- ;;
        esac
    done
}
"#;

#[test]
fn tools_are_real_and_work_in_a_directory_with_the_files_of_the_script() {
    let script = r#"
files: {a/b.txt: "from the script"}
prompts:
  - steps:
      - call: {tool: Bash, input: {command: "cat a/b.txt; mv a/b.txt here.txt; pwd", description: x}}
      - assert: {permission: allowed, is_error: false, result: {contains: from the script}}
      - say: done
  - steps:
      - call: {tool: Read, input: {file_path: here.txt}}
      - assert: {is_error: false}
      - call: {tool: Read, input: {file_path: a/b.txt}}
      - assert: {is_error: true}
"#;
    let program = format!("({PERMITS})\n[ -e a ] || [ -e here.txt ] && exit 9\nset -- two\n{ONE_BY_ONE}");
    for player in BOTH {
        let ran = play(
            player,
            script,
            &program,
            &[
                "one",
                "allow",
                r#","updatedInput":{"command":"cat a/b.txt; mv a/b.txt here.txt; pwd"}"#,
            ],
        );
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (Some(0), ""),
            "{player}: {}",
            ran.stdout
        );
        assert_eq!(ran.results()[0], "done", "{player}");
    }
    // Unless the script says otherwise.
    let memory = script
        .replace("prompts:", "real_tools: false\nprompts:")
        .replace("cat a/b.txt; mv a/b.txt here.txt; pwd", "x");
    let ran = play("--sim", &memory, ONE_BY_ONE, &["one"]);
    assert_eq!(ran.code, Some(97));
    assert!(!ran.stdout.contains("command not found"), "{}", ran.stdout);
}

#[test]
fn what_the_client_replied_is_judged_with_both() {
    let script = "
prompts:
  - steps:
      - call: {tool: Write, input: {file_path: a.txt, content: b}}
      - assert: {permission: denied, message: {contains: never}}
      - assert: {permission: allowed}
      - say: done
expect: {requests: {interrupt: 1}}
";
    for player in BOTH {
        let ran = play(player, script, PERMITS, &["one", "deny", r#","message":"never""#]);
        assert_eq!(ran.code, Some(97), "{player}: {}", ran.stderr);
        let flaws = ran.report["flaws"].as_array().unwrap();
        assert_eq!(flaws.len(), 2, "{player}: {flaws:?}");
        let requests = "expected 1 control requests `interrupt`, but 0 came";
        assert_eq!(flaws[1]["what"], requests, "{player}");
        assert_eq!(flaws[0]["place"], "script.yaml:6:9", "{player}");
        let what = flaws[0]["what"].as_str().unwrap();
        assert!(
            what.starts_with("expected \"Write\" to be allowed, but it was denied"),
            "{what}"
        );
    }
}

#[test]
fn prompts_are_counted_alike_with_both() {
    let script = "prompts: [{times: any, steps: [say: hi]}]\nexpect: {prompts: 3}\n";
    for player in BOTH {
        let ran = play(player, script, ONE_BY_ONE, &["one", "two"]);
        let flaw = json!({"place": "script.yaml: expect", "what": "expected 3 prompts, but 2 came"});
        assert_eq!(ran.report["flaws"], json!([flaw]), "{player}");
    }
}

#[test]
fn the_program_opens_gates_of_both() {
    let script = "prompts: [{steps: [wait: {gate: go}, say: gone]}]";
    let program = format!(
        r#"{{ until [ -e "$OUTRIGGER_SIM_GATES/go.reached" ]; do sleep 0.02; done; echo reached; : >"$OUTRIGGER_SIM_GATES/go"; }} &
        {ONE_BY_ONE}"#
    );
    for player in BOTH {
        let ran = play(player, script, &program, &["one"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{player}");
        assert_eq!(ran.results(), ["gone"], "{player}");
        let (reached, result) = (ran.stdout.find("reached\n"), ran.stdout.find("\"result\""));
        assert!(reached.is_some() && reached < result, "{player}: {}", ran.stdout);
    }
    let output = conform(script, &program, &["one"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{output:?}");
}

#[test]
fn without_a_script_the_prompts_say_what_the_model_says() {
    for player in BOTH {
        let place = tempfile::tempdir().unwrap();
        let program = ["sh", "-c", ONE_BY_ONE, "sh", "%say hello"];
        let output = command(place.path(), &["play", player], &program)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{player}: {output:?}");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains(r#""result":"hello""#), "{player}: {stdout}");
    }
}

#[test]
fn what_is_not_simulated_is_no_success_without_a_script() {
    let place = tempfile::tempdir().unwrap();
    let program = ["sh", "-c", ONE_BY_ONE, "sh", "/compact"];
    let output = command(place.path(), &["play", "--sim"], &program)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(97), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("/compact"),
        "{output:?}"
    );
}

/// What one process leaves to the next is no flaw, and what nobody reaches is one.
#[test]
fn assertions_are_reached_or_told_with_several_processes() {
    let script = "prompts:\n  - times: any\n    steps:\n      - call: {tool: Bash, input: {command: rm x, description: Remove}}\n      \
                  - assert: {permission: allowed}\n      - say: done\n";
    let program = r#"
printf '{"type":"user","message":{"role":"user","content":"go"},"parent_tool_use_id":null,"session_id":""}\n' |
    claude --output-format stream-json --verbose --input-format stream-json --max-turns 1
true
"#;
    let ran = play("--sim", script, program, &[]);
    let flaws = ran.report["flaws"].as_array().unwrap();
    assert_eq!((ran.code, flaws.len()), (Some(97), 1), "{}", ran.report);
    assert!(
        flaws[0]["what"].as_str().unwrap().contains("not judged"),
        "{}",
        ran.report
    );
}

#[test]
fn a_cli_that_is_none_is_refused_before_the_program_runs() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("no-program"), "").unwrap();
    for cli in ["/no/such/claude", "no-program", "."] {
        for (arguments, code) in [
            (&["play", "--real", "--cli", cli][..], 1),
            (&["conform", "--cli", cli], 2),
        ] {
            let program = ["sh", "-c", "touch ran"];
            let output = command(place.path(), arguments, &program).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
            assert!(said.contains(cli) && said.contains("cannot be run"), "{said}");
            assert!(output.stdout.is_empty(), "{output:?}");
            assert!(!place.path().join("ran").exists(), "{arguments:?}");
        }
    }
}

/// A stage, its answers, and what it said first.
struct Staged {
    child: std::process::Child,
    answers: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
    first: Value,
}

impl Staged {
    fn set(place: &Path, player: &str, script: &str) -> Self {
        use std::io::{BufRead as _, BufReader};
        std::fs::write(place.join("script.yaml"), script).unwrap();
        let mut child = command(place, &["stage", player, "place", "script.yaml"], &[]);
        // The helper has no program behind `--`.
        let arguments: Vec<_> = child.get_args().take(4).map(ToOwned::to_owned).collect();
        let mut without = Command::new(child.get_program());
        without.args(arguments).current_dir(place).env_clear();
        for (name, value) in child.get_envs() {
            without.env(name, value.unwrap_or_default());
        }
        child = without;
        let mut child = child
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        Self {
            child,
            answers,
            first,
        }
    }

    fn report(&mut self, patience_ms: u64) -> Value {
        use std::io::Write as _;
        let asked = json!({"report": {"patience_ms": patience_ms}});
        writeln!(self.child.stdin.as_mut().unwrap(), "{asked}").unwrap();
        serde_json::from_str(&self.answers.next().unwrap().unwrap()).unwrap()
    }

    /// The player, with the environment of this test alone.
    fn claude(&self) -> Command {
        let mut claude = Command::new(self.first["claude"].as_str().unwrap());
        claude
            .args([
                "--output-format",
                "stream-json",
                "--verbose",
                "--input-format",
                "stream-json",
            ])
            .current_dir(self.first["project"].as_str().unwrap());
        claude
    }
}

#[test]
fn a_stage_is_there_until_stdin_ends() {
    use std::io::{BufRead as _, BufReader, Write as _};
    for player in BOTH {
        let place = tempfile::tempdir().unwrap();
        let script = "prompts: [{steps: [say: first]}, {steps: [say: second, wait: interrupt]}]";
        let mut stage = Staged::set(place.path(), player, script);
        let report = stage.report(0);
        assert_eq!(report["flaws"].as_array().unwrap().len(), 2, "{player}: {report}");
        assert_eq!(report["processes"], json!([]), "{player}");

        // It has nothing but the path.
        let mut running = stage
            .claude()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = running.stdin.take().unwrap();
        let prompt = r#"{"type":"user","message":{"role":"user","content":"go"},"parent_tool_use_id":null,"session_id":""}"#;
        writeln!(input, "{prompt}").unwrap();
        let mut lines = BufReader::new(running.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        assert!(lines.any(|line| line.contains(r#""result":"first""#)), "{player}");
        let home = place.path().join("place/home/.claude");
        assert!(
            home.join("projects").is_dir(),
            "{player}: the user's home is not touched"
        );

        let report = stage.report(0);
        let process = &report["processes"][0];
        assert_eq!(process["pid"], running.id(), "{player}");
        assert_eq!(process["running"], true, "{player}");
        let left = report["flaws"][1]["what"].as_str().unwrap().to_owned();
        assert_eq!(
            left,
            format!("process {} was still running at the end", running.id()),
            "{player}"
        );

        drop(input);
        running.wait().unwrap();
        let report = stage.report(10_000);
        assert_eq!(report["processes"][0]["running"], false, "{player}");
        assert_eq!(report["flaws"].as_array().unwrap().len(), 1, "{player}: {report}");

        // One that is killed, and one that is left behind.
        let mut killed = stage
            .claude()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let number = |report: &Value| report["processes"].as_array().unwrap().len();
        while number(&stage.report(0)) < 2 {}
        killed.kill().unwrap();
        killed.wait().unwrap();
        drop(killed.stdin.take());
        let report = stage.report(10_000);
        let told = format!("process {} was killed", killed.id());
        let flaws = report["flaws"].as_array().unwrap();
        let told = flaws.iter().any(|flaw| flaw["what"] == told.as_str());
        assert_eq!(told, player == "--sim", "{player}: {report}");
        let mut left = stage
            .claude()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while number(&stage.report(0)) < 3 {}
        drop(stage.child.stdin.take());
        assert!(stage.child.wait().unwrap().success(), "{player}");
        left.wait().unwrap();
        assert!(
            !Path::new(stage.first["claude"].as_str().unwrap()).exists(),
            "{player}"
        );
    }
}

#[test]
fn a_stage_takes_no_directory_of_another_run() {
    let place = tempfile::tempdir().unwrap();
    let script = "prompts: [{steps: [{wait: {gate: g}}]}]";
    let first = Staged::set(place.path(), "--sim", script);
    assert!(first.first["claude"].is_string(), "{}", first.first);
    let again = Staged::set(place.path(), "--sim", script);
    let error = again.first["error"].as_str().unwrap();
    assert!(
        error.contains("place/home") && error.contains("exists"),
        "{error}"
    );
    for mut stage in [first, again] {
        drop(stage.child.stdin.take());
        stage.child.wait().unwrap();
    }
}

/// Who leaves while the stage waits for processes gets it to end, and the processes with it.
#[test]
fn a_stage_ends_with_stdin_while_it_waits() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let place = tempfile::tempdir().unwrap();
    let mut stage = Staged::set(place.path(), "--sim", "prompts: [{steps: [{wait: 10m}]}]");
    let mut claude = stage
        .claude()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = claude.stdin.take().unwrap();
    writeln!(
        input,
        r#"{{"type":"user","message":{{"role":"user","content":"go"}},"parent_tool_use_id":null,"session_id":""}}"#
    )
    .unwrap();
    let mut lines = BufReader::new(claude.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let mut asks = stage.child.stdin.take().unwrap();
    writeln!(asks, r#"{{"report":{{"patience_ms":3600000}}}}"#).unwrap();
    drop(asks);
    assert!(stage.child.wait().unwrap().success());
    claude.wait().unwrap();
}

#[test]
fn a_copy_of_the_project_is_all_that_is_changed() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("src")).unwrap();
    std::fs::write(place.path().join("src/a.txt"), "a").unwrap();
    std::fs::write(place.path().join("script.yaml"), "{}").unwrap();
    let program = ["sh", "-c", "cat src/a.txt; echo b >src/a.txt; echo c >new.txt"];
    let options = ["play", "--sim", "script.yaml", "--project=."];
    let output = command(place.path(), &options, &program).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, b"a");
    assert_eq!(
        std::fs::read_to_string(place.path().join("src/a.txt")).unwrap(),
        "a"
    );
    assert!(!place.path().join("new.txt").exists());
}

#[test]
fn what_cannot_be_run_is_refused() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("good.yaml"), "{}").unwrap();
    std::fs::write(place.path().join("bad.yaml"), "prompts: [{step: []}]").unwrap();
    std::fs::write(place.path().join("memory.yaml"), "real_tools: false").unwrap();
    let cases: [(&[&str], &[&str], i32, &str); 9] = [
        (
            &["play", "--sim", "bad.yaml"],
            &["true"],
            98,
            "bad.yaml:1:12: unknown field `step`",
        ),
        (
            &["play", "--sim", "none.yaml"],
            &["true"],
            98,
            "none.yaml: cannot be read",
        ),
        (
            &["play", "--real", "bad.yaml"],
            &["true"],
            98,
            "bad.yaml:1:12: unknown field `step`",
        ),
        (
            &["play", "--real", "memory.yaml"],
            &["true"],
            98,
            "the real CLI cannot play `real_tools: false`: the tools of the real CLI always run",
        ),
        (&["stage", "--sim"], &[], 2, "<DIR>"),
        (
            &["conform", "good.yaml", "--gates=."],
            &["true"],
            2,
            "unexpected argument '--gates'",
        ),
        (
            &["play", "--sim", "good.yaml"],
            &["no-such-program"],
            127,
            "cannot run no-such-program",
        ),
        (&["play", "good.yaml"], &["true"], 2, "<--sim|--real>"),
        (&["conform", "good.yaml"], &[], 2, "<PROGRAM>..."),
    ];
    for (options, program, code, said) in cases {
        let output = command(place.path(), options, program).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {stderr}");
        assert!(stderr.contains(said), "{options:?}: {stderr}");
    }
    for name in ["play", "conform", "stage"] {
        let output = command(place.path(), &[name, "--help"], &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let begin = format!("outrigger-sim {name}: ");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(&begin));
        #[cfg(target_os = "linux")]
        {
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let mut help = command(place.path(), &[name, "--help"], &[]);
            assert_eq!(help.stdout(full).status().unwrap().code(), Some(1));
        }
    }
}

#[cfg(unix)]
#[test]
fn a_signal_is_passed_on_to_the_program() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::io::Read as _;
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("script.yaml"), "{}").unwrap();
    let program = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let mut running = command(
        place.path(),
        &["play", "--sim", "script.yaml"],
        &["sh", "-c", program],
    )
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut ready = [0; 6];
    running.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    kill_process(Pid::from_child(&running), Signal::TERM).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(5));
}

fn conform(script: &str, program: &str, arguments: &[&str]) -> Output {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("script.yaml"), script).unwrap();
    let program = [&["sh", "-c", program, "sh"], arguments].concat();
    command(place.path(), &["conform", "script.yaml"], &program)
        .output()
        .unwrap()
}

#[test]
fn conform_shows_where_a_program_goes_another_way() {
    let output = conform("unmatched: ok", ONE_BY_ONE, &["one", "two"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{output:?}");
    assert!(
        shown.contains("Nothing differs that is not known, in 2 processes"),
        "{shown}"
    );

    // Only the real CLI needs an API.
    let program = format!("[ -n \"$ANTHROPIC_BASE_URL\" ] && set -- one\n{ONE_BY_ONE}");
    let output = conform("unmatched: ok", &program, &["one", "two"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}{output:?}");
    for line in [
        "  + user",
        "  + assistant/text",
        "  only with the simulated CLI: result/success",
        "  only with the simulated CLI: user",
    ] {
        assert!(
            shown.lines().any(|shown| shown == line),
            "{line:?} is not in {shown}"
        );
    }
    assert!(!shown.contains("\n  only with the real CLI"), "{shown}");
}
