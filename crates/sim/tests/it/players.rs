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
until grep -q "$1" out; do sleep 0.02; done
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
    let gate = "prompts: [{steps: [wait: {gate: open}]}]";
    std::fs::write(place.path().join("gate.yaml"), gate).unwrap();
    let cases: [(&[&str], &[&str], i32, &str); 10] = [
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
            &["play", "--sim", "gate.yaml"],
            &["true"],
            98,
            "it waits for the gate `open`",
        ),
        (
            &["play", "--real", "gate.yaml"],
            &["true"],
            98,
            "it waits for the gate `open`, which only --sim can open",
        ),
        (
            &["play", "--real", "gate.yaml", "--gates=."],
            &["true"],
            2,
            "--gates goes with --sim",
        ),
        (
            &["conform", "good.yaml", "--gates=."],
            &["true"],
            2,
            "unknown option '--gates'",
        ),
        (
            &["play", "--sim", "good.yaml"],
            &["no-such-program"],
            127,
            "cannot run no-such-program",
        ),
        (
            &["play", "good.yaml"],
            &["true"],
            2,
            "say which CLI plays: --sim or --real",
        ),
        (&["conform", "good.yaml"], &[], 2, "the program is missing"),
    ];
    for (options, program, code, said) in cases {
        let output = command(place.path(), options, program).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {stderr}");
        assert!(stderr.contains(said), "{options:?}: {stderr}");
    }
    for name in ["play", "conform"] {
        let output = command(place.path(), &[name, "--help"], &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let begin = format!("outrigger-sim {name}: ");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(&begin));
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
