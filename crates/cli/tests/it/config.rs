//! The configuration file and its profiles.

use std::fs;

use serde_json::{Value, json};

use crate::flags::Stub;
use crate::tool::ran;

/// A place with this configuration.
fn with(config: &str) -> Stub {
    let stub = Stub::new("exit 1");
    fs::create_dir_all(stub.path("config/outrigger")).unwrap();
    fs::write(stub.path("config/outrigger/config.toml"), config).unwrap();
    stub
}

const CONFIG: &str = r#"
model = "sonnet"
max-turns = 7
deny = ["Read(.env)"]
verbose = true

[profiles.work]
model = "opus"
allow = ["Read", "Bash(git log:*)"]
deny = ["Bash(rm:*)"]
max-budget-usd = 1.5
verbose = false
append-system-prompt = "Be brief."

[profiles.home]
isolation = "project"
"#;

#[test]
fn the_command_line_outranks_the_environment_that_outranks_the_profile_that_outranks_the_rest() {
    let stub = with(CONFIG);
    let has = |args: &[&str], flags: &[&str], not: &[&str]| {
        let argv = stub.argv(args);
        for flag in flags {
            assert!(
                argv.iter().any(|arg| arg == flag),
                "{flag} of {args:?}: {argv:#?}"
            );
        }
        for flag in not {
            assert!(
                !argv.iter().any(|arg| arg.starts_with(flag)),
                "{flag} of {args:?}: {argv:#?}"
            );
        }
    };
    has(
        &[],
        &[
            "--model=sonnet",
            "--max-turns=7",
            "--include-hook-events",
            "--disallowedTools=Read(.env),AskUserQuestion",
        ],
        &["--allowedTools"],
    );
    has(
        &["--profile", "work"],
        &[
            "--model=opus",
            "--max-turns=7",
            "--max-budget-usd=1.5",
            "--allowedTools=Read,Bash(git log:*)",
        ],
        &["--include-hook-events"],
    );
    has(
        &["--profile", "work", "--model", "haiku", "--allow", "Grep"],
        &["--model=haiku", "--allowedTools=Grep"],
        &[],
    );
    has(&["--no-config"], &[], &["--model", "--max-turns"]);
    has(&["--profile", ""], &["--model=sonnet"], &[]);
    // A prohibition is not taken back by another one.
    let argv = stub.argv(&["--profile", "work", "--deny", "Write"]);
    let denied = argv
        .iter()
        .find(|arg| arg.starts_with("--disallowedTools="))
        .unwrap();
    for rule in ["Write", "Bash(rm:*)", "Read(.env)"] {
        assert!(denied.contains(rule), "{denied}");
    }

    let cli = stub.path("claude");
    let run = ["run", "hello", "--no-ask", "--cli", cli.to_str().unwrap()];
    let mut command = stub.command(&run);
    let argv = stub.started_by(command.env("OUTRIGGER_PROFILE", "work"));
    assert!(argv.contains(&"--model=opus".to_owned()), "{argv:#?}");
    // What a profile denies is not left out where both are given.
    let both = [&run[..], &["--no-config", "--profile", "work"]].concat();
    assert_eq!(stub.command(&both).output().unwrap().status.code(), Some(2));
    let mut command = stub.command(&[&run[..], &["--no-config"]].concat());
    let argv = stub.started_by(command.env("OUTRIGGER_PROFILE", "work"));
    assert!(!argv.contains(&"--model=opus".to_owned()), "{argv:#?}");
    let mut command = stub.command(&[&run[..], &["--profile", "home"]].concat());
    let argv = stub.started_by(command.env("OUTRIGGER_PROFILE", "work"));
    assert!(
        argv.contains(&"--setting-sources=project,local".to_owned()),
        "{argv:#?}"
    );
    assert!(argv.contains(&"--model=sonnet".to_owned()), "{argv:#?}");

    // What excludes a flag of the command line gives way to it.
    stub.argv(&["--profile", "work", "--system-prompt", "Mine."]);
    // Another file, and a choice in the file.
    fs::write(
        stub.path("other.toml"),
        "profile = \"x\"\nprofiles.x.model = \"haiku\"",
    )
    .unwrap();
    has(&["--config", "other.toml"], &["--model=haiku"], &[]);
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_the_nearest_key() {
    for (config, words) in [
        (
            "\nmodle = \"opus\"",
            "config.toml:2:1: there is no key `modle`; did you mean `model`?",
        ),
        (
            "[profiles.a]\n\nmax-turn = 1",
            "config.toml:3:1: there is no key `max-turn`; did you mean `max-turns`?",
        ),
        ("zzz = 1", "config.toml:1:1: there is no key `zzz`; the keys are"),
        (
            "model = 7",
            "config.toml:1:9: `model` has to be a string, and is a number",
        ),
        (
            "max-turns = \"7\"",
            "config.toml:1:13: `max-turns` has to be a number, and is a string",
        ),
        (
            "verbose = \"yes\"",
            "config.toml:1:11: `verbose` has to be true or false, and is a string",
        ),
        (
            "allow = 7",
            "config.toml:1:9: `allow` has to be a list of strings",
        ),
        (
            "allow = [7]",
            "config.toml:1:9: `allow` cannot be a list of anything but strings",
        ),
        ("model = { a = 1 }", "config.toml:1:9: `model` cannot be a table"),
        (
            "isolation = \"none\"",
            "config.toml:1:13: `isolation`: \"none\" is none of: plain, hermetic, project, interactive",
        ),
        (
            "effort = \"huge\"",
            "config.toml:1:10: `effort`: \"huge\" is none of: low, medium, high, xhigh, max",
        ),
        (
            "max-turns = -1",
            "config.toml:1:13: `max-turns`: \"-1\" cannot be taken",
        ),
        (
            "timeout = \"soon\"",
            "config.toml:1:11: `timeout`: \"soon\" cannot be taken",
        ),
        (
            "env = [\"A=1\", \"MY_TOKEN=x\"]",
            "config.toml:1:7: `env`: MY_TOKEN looks like a secret",
        ),
        (
            "profile = \"wrok\"\n[profiles.work]",
            "config.toml:1:11: there is no profile \"wrok\"; did you mean \"work\"?",
        ),
        ("profiles = 1", "config.toml:1:12: `profiles` has to be a table"),
        (
            "no-config = true",
            "config.toml:1:1: there is no key `no-config`; it can only be given on the command line",
        ),
        (
            "system-prompt = \"a\"\nappend-system-prompt = \"b\"",
            "config.toml:2:1: `append-system-prompt` and `system-prompt` of line 1 exclude",
        ),
        ("a = [", "config.toml:1:"),
    ] {
        let stub = with(config);
        for args in [
            &["run", "hello", "--no-ask"][..],
            &["config", "show"],
            &["config", "check"],
        ] {
            let output = stub.command(args).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{config}: {said}");
            assert!(said.contains(words), "{config}: {said}");
        }
        // Help needs no file.
        assert_eq!(ran(&mut stub.command(&["run", "--help"])).1, 0);
    }
    // A recorder whose client is elsewhere takes no flags of an agent, and must not stand in its way.
    let stub = with("a = [");
    let mut recorder = stub.command(&["record", "-o", "session.ndjson", "--", "true"]);
    assert_eq!(ran(recorder.env("OUTRIGGER_PROFILE", "work")).1, 0);
    let stub = Stub::new("exit 1");
    for (args, words) in [
        (&["--profile", "work"][..], "since there is no file"),
        (&["--config", "missing.toml"], "missing.toml: "),
    ] {
        let output = stub
            .command(&[&["run", "hello"], args].concat())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn what_holds_is_shown_with_its_place() {
    let stub = with(CONFIG);
    let (text, code) = ran(&mut stub.command(&["config", "path"]));
    let path = stub.path("config/outrigger/config.toml");
    assert_eq!((text.trim(), code), (path.to_str().unwrap(), 0));
    let (text, code) = ran(&mut stub.command(&["config", "show", "--profile", "work"]));
    assert_eq!(code, 0);
    insta::assert_snapshot!(text, @r#"
    model = "opus"   # line 8 (profile work)
    allow = ["Read","Bash(git log:*)"]   # line 9 (profile work)
    deny = ["Bash(rm:*)"]   # line 10 (profile work)
    max-budget-usd = 1.5   # line 11 (profile work)
    verbose = false   # line 12 (profile work)
    append-system-prompt = "Be brief."   # line 13 (profile work)
    max-turns = 7   # line 3
    deny = ["Read(.env)"]   # line 4
    "#);
    let (text, _) = ran(&mut stub.command(&["config", "show", "--json"]));
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        lines[1],
        json!({"key": "max-turns", "value": 7, "file": path, "line": 3, "column": 1, "profile": null})
    );
    let none = Stub::new("exit 1");
    assert_eq!(ran(&mut none.command(&["config", "show"])), (String::new(), 1));
}

#[test]
fn a_check_tells_what_each_key_becomes_and_all_that_is_wrong() {
    let stub = with(CONFIG);
    let path = stub.path("config/outrigger/config.toml");
    let (text, code) = ran(&mut stub.command(&["config", "check"]));
    assert_eq!(code, 0);
    insta::assert_snapshot!(text, @r#"
    model = "sonnet"   # 2:1: --model=sonnet
    max-turns = 7   # 3:1: --max-turns=7
    deny = ["Read(.env)"]   # 4:1: '--deny=Read(.env)'
    verbose = true   # 5:1: --verbose

    [profiles.home]
    isolation = "project"   # 16:1: --isolation=project

    [profiles.work]
    model = "opus"   # 8:1: --model=opus
    allow = ["Read","Bash(git log:*)"]   # 9:1: --allow=Read '--allow=Bash(git log:*)'
    deny = ["Bash(rm:*)"]   # 10:1: '--deny=Bash(rm:*)'
    max-budget-usd = 1.5   # 11:1: --max-budget-usd=1.5
    verbose = false   # 12:1: no --verbose
    append-system-prompt = "Be brief."   # 13:1: '--append-system-prompt=Be brief.'
    "#);

    let wrong = "model = 7\ntimeout = \"1m\"\n  modle = \"opus\"\n\n[profiles.a]\neffort = \"üü\"\nallow = [1]\nzzz = 1\n";
    fs::write(stub.path("wrong.toml"), wrong).unwrap();
    let output = stub.command(&["config", "check", "wrong.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @"
    wrong.toml:1:9: `model` has to be a string, and is a number
    wrong.toml:3:3: there is no key `modle`; did you mean `model`?
    wrong.toml:6:10: `effort`: \"üü\" is none of: low, medium, high, xhigh, max
    wrong.toml:7:9: `allow` cannot be a list of anything but strings
    wrong.toml:8:1: there is no key `zzz`; the keys are the flags of `outrigger run` and `chat`
    outrigger: wrong.toml is read; problems: 5; profiles: a
    ");
    let (text, _) = ran(&mut stub.command(&["config", "check", "wrong.toml", "--json"]));
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines[1],
        json!({
            "file": "wrong.toml", "line": 2, "column": 1, "profile": null,
            "key": "timeout", "value": "1m", "flags": ["--timeout=1m"], "commands": ["run"],
        })
    );
    let problem = lines.iter().find(|line| line["line"] == 3).unwrap();
    assert_eq!(
        *problem,
        json!({
            "file": "wrong.toml", "line": 3, "column": 3,
            "problem": "there is no key `modle`; did you mean `model`?", "suggestion": "model",
        })
    );
    // Where it matters, the first is told, and where the others are.
    let run = stub.command(&["run", "hello", "--config", "wrong.toml"]).output();
    let said = String::from_utf8(run.unwrap().stderr).unwrap();
    assert!(
        said.contains("wrong.toml:1:9: ")
            && said.contains("(`outrigger config check wrong.toml` lists 4 more)"),
        "{said}"
    );

    let none = Stub::new("exit 1");
    let output = none.command(&["config", "check"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let path = path.file_name().unwrap().to_str().unwrap();
    assert!(said.contains(path) && said.contains("none is read"), "{said}");
    assert_eq!(ran(&mut none.command(&["config", "check", "missing.toml"])).1, 2);
}

#[test]
fn a_secret_in_the_file_is_not_shown() {
    let stub = with(
        "env = [\"MY_TOKEN=abc-secret\", \"PLAIN=seen\"]\n\n[profiles.a]\nenv = \"API_KEY=abc-secret\"\n",
    );
    for json in [&[][..], &["--json"]] {
        let output = stub
            .command(&[&["config", "check"], json].concat())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
        let said = said.concat();
        assert!(!said.contains("abc-secret"), "{said}");
        assert!(said.contains("MY_TOKEN=") && said.contains("API_KEY="), "{said}");
        assert!(said.contains("PLAIN=seen"), "{said}");
    }
}
