//! What shells are offered: the program is asked as their scripts ask it, and bash itself asks.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::kept::{ONE, Place, TWO};
use crate::rig::PATIENCE;
use crate::tool::{outrigger, ran};

/// Asks for the last of these words behind `outrigger`, as zsh does.
fn ask(place: &Place, words: &[&str]) -> Command {
    let mut command = outrigger(&["--", "outrigger"]);
    command
        .args(words)
        .env("OUTRIGGER_COMPLETE", "zsh")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_IFS", "\n")
        .env("CLAUDE_CONFIG_DIR", &place.config)
        .env("XDG_CONFIG_HOME", &place.project)
        .current_dir(&place.project);
    command
}

/// The words that are offered, and what is said of each.
#[track_caller]
fn described(place: &Place, words: &[&str]) -> Vec<(String, String)> {
    let Output {
        status,
        stdout,
        stderr,
    } = ask(place, words).output().unwrap();
    assert!(status.success() && stderr.is_empty(), "{words:?}: {stderr:?}");
    let text = String::from_utf8(stdout).unwrap();
    let lines = text
        .lines()
        .map(|line| line.split_once(':').unwrap_or((line, "")));
    lines
        .map(|(word, help)| (word.to_owned(), help.to_owned()))
        .collect()
}

#[track_caller]
fn offered(place: &Place, words: &[&str]) -> Vec<String> {
    let all = described(place, words).into_iter();
    all.map(|(word, _)| word).collect()
}

/// Says when a transcript was written to: so long ago.
fn written(path: &Path, ago: Duration) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - ago).unwrap();
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn sessions_are_offered_by_their_ids_the_last_first() {
    let place = Place::new();
    written(&place.session(&place.project, ONE, "x", None), 3 * HOUR);
    let titled = place.session(&place.project, TWO, "x", Some("A title:\nof two \u{1b}[31mlines"));
    written(&titled, HOUR);
    let elsewhere = place.project.join("elsewhere");
    let third = "22222222-cccc-4ccc-8ccc-000000000003";
    place.session(&elsewhere, third, "x", None);
    let began = "11111111-dddd-4ddd-8ddd-000000000004";
    let empty = place.session(&place.project, began, "x", None);
    fs::write(&empty, "").unwrap();
    fs::write(empty.with_file_name("notes.jsonl"), "x").unwrap();

    let two = [
        (TWO, "1 h ago, A title: of two \\\\u{1b}[31mlines"),
        (ONE, "3 h ago, x"),
    ]
    .map(|(id, ago)| (id.to_owned(), ago.to_owned()));
    assert_eq!(described(&place, &["sessions", "show", ""]), two);
    for command in [
        "agents",
        "follow",
        "export",
        "fork",
        "rename",
        "tag",
        "archive",
        "unarchive",
        "mv",
        "repair",
        "rm",
        "status",
        "push",
        "pull",
    ] {
        let found = offered(&place, &["sessions", command, "1"]);
        assert_eq!(found, [TWO, ONE], "{command}");
    }
    assert_eq!(offered(&place, &["sessions", "rm", ONE, "11111111-B"]), [TWO]);
    assert_eq!(offered(&place, &["run", "--resume", "11111111-a"]), [ONE]);
    assert_eq!(
        offered(&place, &["chat", "--resume=11111111-a"]),
        [format!("--resume={ONE}")]
    );
    // One of another project is found by its id, too, but the CLI does not go on with it here.
    assert_eq!(offered(&place, &["sessions", "show", "2"]), [third]);
    assert_eq!(
        offered(&place, &["sessions", "show", "--dir", "elsewhere", ""]),
        [third]
    );
    assert_eq!(
        offered(&place, &["sessions", "show", "--dir", "elsewhere", "1"]),
        [""; 0]
    );
    assert_eq!(offered(&place, &["run", "--resume", "2"]), [""; 0]);
    assert_eq!(
        offered(&place, &["run", "--cwd", "elsewhere", "--resume", "2"]),
        [third]
    );
}

/// What a subagent was to do is said of it.
#[test]
fn subagents_are_offered_once_their_session_was_typed() {
    let place = Place::new();
    let file = place.session(&place.project, ONE, "x", None);
    place.session(&place.project, TWO, "x", None);
    let agents = file.with_extension("").join("subagents");
    fs::create_dir_all(&agents).unwrap();
    fs::copy(&file, agents.join("agent-a1.jsonl")).unwrap();
    fs::copy(&file, agents.join("agent-b2.jsonl")).unwrap();
    fs::write(
        agents.join("agent-a1.meta.json"),
        r#"{"agentType":"Explore","description":"look around"}"#,
    )
    .unwrap();
    let both = [("a1", "look around"), ("b2", "")].map(|(id, task)| (id.to_owned(), task.to_owned()));
    for words in [
        &["sessions", "show", ONE, "--agent", ""][..],
        &["sessions", "show", "11111111-a", "--json", "--agent", ""],
        &["sessions", "show", "--dir", ".", ONE, "--agent", ""],
    ] {
        assert_eq!(described(&place, words), both, "{words:?}");
    }
    assert_eq!(
        offered(&place, &["sessions", "show", ONE, "--agent", "b"]),
        ["b2"]
    );
    for words in [
        &["sessions", "show", TWO, "--agent", ""][..],
        &["sessions", "show", "--agent", ""],
        &["sessions", "show", "11111111", "--agent", ""],
    ] {
        assert_eq!(offered(&place, words), [""; 0], "{words:?}");
    }
}

/// Nobody waits at a keyboard for whole transcripts to be read.
#[test]
fn long_transcripts_are_not_read_whole_and_not_all_are_offered() {
    let place = Place::new();
    let dir = place.sessions().project_dir(&place.project);
    fs::create_dir_all(&dir).unwrap();
    let id = |nth: u64| format!("11111111-aaaa-4aaa-8aaa-{nth:012}");
    for nth in 0..150 {
        let path = dir.join(format!("{}.jsonl", id(nth)));
        // As long as nobody could read, of one line.
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        written(&path, Duration::from_secs(nth * 60));
    }
    let found = offered(&place, &["sessions", "show", ""]);
    assert_eq!(found, (0..100).map(id).collect::<Vec<_>>());
    assert_eq!(offered(&place, &["sessions", "show", &id(149)]), [id(149)]);
}

#[test]
fn profiles_and_models_are_offered() {
    let place = Place::new();
    fs::create_dir(place.project.join("outrigger")).unwrap();
    let config = place.project.join("outrigger/config.toml");
    // A key that nobody knows is no reason to offer nothing.
    fs::write(
        &config,
        "bogus = 1\n[profiles.work]\n[profiles.home]\n[profiles.\"two words\"]\n",
    )
    .unwrap();
    assert_eq!(offered(&place, &["run", "--profile", ""]), ["home", "work"]);
    assert_eq!(offered(&place, &["config", "show", "--profile", "w"]), ["work"]);
    fs::write(place.project.join("other.toml"), "profiles.other.model = \"x\"").unwrap();
    let words = ["chat", "--config", "other.toml", "--profile", ""];
    assert_eq!(offered(&place, &words), ["other"]);
    assert_eq!(offered(&place, &["run", "--model", "so"]), ["sonnet"]);
    assert_eq!(
        offered(&place, &["run", "--effort", ""]),
        ["low", "medium", "high", "xhigh", "max"]
    );
}

#[test]
fn files_are_offered_where_one_can_stand() {
    let place = Place::new();
    fs::write(place.project.join("notes.txt"), "x").unwrap();
    for words in [
        &["run", "--file", "no"][..],
        &["run", "--settings", "no"],
        &["chat", "--agents", "no"],
        &["settings", "show", "--managed-settings", "no"],
        &["config", "check", "no"],
        &["record", "--", "no"],
        &["mock-api", "--", "no"],
    ] {
        assert_eq!(offered(&place, words), ["notes.txt"], "{words:?}");
    }
}

/// Flags would keep the one word that can stand there from being completed at once.
#[test]
fn flags_are_offered_once_one_is_begun_or_nothing_else_can_stand() {
    let place = Place::new();
    assert!(offered(&place, &["sessions", ""]).contains(&"show".to_owned()));
    for words in [&["sessions", ""][..], &[""]] {
        let found = offered(&place, words);
        assert!(
            found.iter().all(|word| !word.starts_with('-')),
            "{words:?}: {found:?}"
        );
    }
    assert_eq!(offered(&place, &["run", "--max-t"]), ["--max-turns"]);
    assert!(offered(&place, &["run", "--he"]).contains(&"--help".to_owned()));
    assert!(offered(&place, &["run", ""]).contains(&"--model".to_owned()));
}

/// Whatever is said would stand in the line that is typed.
#[test]
fn nothing_is_said_of_what_goes_wrong() {
    let place = Place::new();
    let words = ["sessions", "show", ""];
    let silent = |command: &mut Command, code: i32| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // No project, no home, a file in its place; a file that is no TOML; a word that does not exist.
    let flags = silent(&mut ask(&place, &words), 0);
    assert!(flags.contains("--json"), "{flags}");
    let mut homeless = ask(&place, &words);
    silent(homeless.env_remove("CLAUDE_CONFIG_DIR").env_remove("HOME"), 0);
    let mut blocked = ask(&place, &words);
    silent(blocked.env("CLAUDE_CONFIG_DIR", "/dev/null"), 0);
    fs::create_dir(place.project.join("outrigger")).unwrap();
    fs::write(place.project.join("outrigger/config.toml"), "a = [").unwrap();
    assert_eq!(offered(&place, &["run", "--profile", ""]), [""; 0]);
    assert_eq!(offered(&place, &["bogus", "x"]), [""; 0]);
    // A shell that nobody knows, and an index beyond the words.
    assert_eq!(
        silent(ask(&place, &words).env("OUTRIGGER_COMPLETE", "tcl"), 1),
        ""
    );
    assert_eq!(
        silent(ask(&place, &words).env("_CLAP_COMPLETE_INDEX", "9"), 1),
        ""
    );
    // Whoever completes nothing.
    let mut off = outrigger(&["config", "path"]);
    assert_eq!(ran(off.env("OUTRIGGER_COMPLETE", "0")).1, 0);
}

/// Whether a shell takes the script; shells that are not there are passed over.
fn is_taken(shell: &str, args: &[&str], script: &str) {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("script");
    fs::write(&file, script).unwrap();
    let mut command = Command::new(shell);
    let Ok(output) = command.args(args).arg(&file).stdin(Stdio::null()).output() else {
        println!("{shell} is not there");
        return;
    };
    assert!(output.status.success(), "{shell}: {output:?}");
}

#[test]
fn each_shell_gets_a_script_that_asks_this_program() {
    for (shell, args) in [
        ("bash", &["-n"][..]),
        ("zsh", &["-n"]),
        ("fish", &["--no-execute"]),
        ("elvish", &[]),
        ("powershell", &[]),
    ] {
        let (script, code) = ran(&mut outrigger(&["completions", shell]));
        assert_eq!(code, 0);
        for word in ["OUTRIGGER_COMPLETE", env!("CARGO_BIN_EXE_outrigger")] {
            assert!(script.contains(word), "{word} in {shell}");
        }
        if !args.is_empty() {
            is_taken(shell, args, &script);
        }
    }
    assert_eq!(ran(&mut outrigger(&["completions", "tcl"])).1, 2);
    // One that is found by its name is found by that again, also where the next version of it is.
    let here = Path::new(env!("CARGO_BIN_EXE_outrigger")).parent().unwrap();
    let mut named = Command::new("/bin/sh");
    named.args(["-c", "outrigger completions fish"]).env("PATH", here);
    let (script, _) = ran(&mut named);
    assert!(
        script.contains("OUTRIGGER_COMPLETE=fish outrigger --"),
        "{script}"
    );
}

/// Somebody types, and presses the key.
#[test]
fn bash_completes_the_id_of_a_session() {
    let place = Place::new();
    place.session(&place.project, ONE, "x", None);
    let (script, _) = ran(&mut outrigger(&["completions", "bash"]));
    fs::write(place.project.join("script"), script).unwrap();
    let mut command = Command::new("bash");
    command
        .args(["--noprofile", "--norc", "-i"])
        .envs([("TERM", "dumb"), ("HISTFILE", ""), ("HOME", "/nowhere")])
        .env("CLAUDE_CONFIG_DIR", &place.config)
        .current_dir(&place.project);
    let patience = u64::try_from(PATIENCE.as_millis()).unwrap();
    let mut bash = rexpect::session::spawn_command(command, Some(patience)).expect("a terminal");
    // This terminal does not echo, and then bash does not either.
    bash.send_line("stty echo; source ./script; echo rea''dy")
        .unwrap();
    bash.exp_string("ready").unwrap();
    bash.send("outrigger sessions show 1\t").unwrap();
    bash.flush().unwrap();
    bash.exp_string(&format!("show {ONE}")).unwrap();
    // The words that are there already count.
    bash.send("--js\t").unwrap();
    bash.flush().unwrap();
    bash.exp_string("--json").unwrap();
    // Away with the line.
    bash.send_control('u').unwrap();
    bash.send_line("exit 0").unwrap();
    bash.exp_eof().unwrap();
}
