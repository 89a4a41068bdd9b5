//! `outrigger sessions`, over transcripts in a config directory of the test's own.

use std::fs;
use std::path::Path;
use std::process::Command;

use outrigger::sessions::Sessions;
use serde_json::{Value, json};

use crate::kept::{ONE, Place, TWO};
use crate::tool::ran;

#[test]
fn those_of_the_project_are_listed_and_all_on_demand() {
    let place = Place::new();
    let other = place.project.with_file_name("other");
    place.session(&place.project, ONE, "count the files", Some("counting"));
    place.session(&other, TWO, "something else", None);
    let text = place.done(&["list"]);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains(ONE) && text.contains("counting") && text.contains("  main  "),
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
    let infos = place.lines(&["list", "--json"]);
    assert_eq!(infos[0]["sessionId"], ONE);
    assert_eq!(infos[0]["customTitle"], "counting");
    assert_eq!(infos[0]["firstPrompt"], "count the files");
    assert_eq!(infos[0]["gitBranch"], "main");
    assert!(infos[0]["lastModified"].is_number() && infos[0]["fileSize"].is_number());
    assert_eq!(
        place
            .lines(&["list", "--all", "--limit", "1", "--json"])
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
    let messages = place.lines(&["show", ONE, "--json"]);
    assert_eq!(messages.as_array().unwrap().len(), 4);
    assert_eq!(messages[0]["type"], "user");
    assert_eq!(messages[0]["session_id"], ONE);
    assert_eq!(messages[0]["message"]["content"], "count the files");
    assert_eq!(messages[0]["parent_tool_use_id"], Value::Null);
    let one = place.lines(&["show", ONE, "--json", "--offset", "3", "--limit", "1"]);
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0], messages[3]);
}

#[test]
fn what_subagents_said_and_the_cli_noted_is_shown_on_demand() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "count the files", Some("counting"));
    let note = json!({
        "parentUuid": "00000003-0000-4000-8000-00000000000a", "isSidechain": false, "type": "system", "subtype": "local_command",
        "content": "The context was cleared", "uuid": "00000004-0000-4000-8000-00000000000a", "sessionId": ONE,
    });
    let text = fs::read_to_string(&path).unwrap();
    let last = record_after(&note, "thanks");
    fs::write(&path, format!("{text}{note}\n{last}\n")).unwrap();
    let agents = path.with_extension("").join("subagents");
    fs::create_dir_all(&agents).unwrap();
    let said = json!({
        "parentUuid": null, "isSidechain": true, "type": "user", "uuid": "s", "sessionId": ONE, "agentId": "7",
        "message": {"role": "user", "content": "look below"},
    });
    fs::write(agents.join("agent-7.jsonl"), format!("{said}\n")).unwrap();
    fs::write(
        agents.join("agent-7.meta.json"),
        r#"{"agentType":"Explore","toolUseId":"toolu_1"}"#,
    )
    .unwrap();

    let text = place.done(&["show", ONE]);
    assert!(text.contains("subagents  7\n"), "{text}");
    assert!(
        !text.contains("The context was cleared") && !text.contains("look below"),
        "{text}"
    );
    let text = place.done(&["show", ONE, "--system"]);
    assert!(text.contains("[The context was cleared]\n"), "{text}");
    let kinds = |args: &[&str]| -> Vec<Value> {
        let messages = place.lines(args);
        let messages = messages.as_array().unwrap();
        messages.iter().map(|message| message["type"].clone()).collect()
    };
    assert_eq!(
        kinds(&["show", ONE, "--json", "--system"]),
        ["user", "assistant", "user", "assistant", "system", "user"]
    );
    assert_eq!(kinds(&["show", ONE, "--json"]).len(), 5);

    let text = place.done(&["show", ONE, "--agent", "7"]);
    assert!(
        text.contains("look below") && !text.contains("count the files"),
        "{text}"
    );
    let messages = place.lines(&["show", ONE, "--agent", "7", "--json"]);
    assert_eq!(
        (
            &messages[0]["parent_tool_use_id"],
            &messages[0]["message"]["content"]
        ),
        (&json!("toolu_1"), &json!("look below"))
    );
    assert_eq!(messages.as_array().unwrap().len(), 1);
    assert!(
        place
            .done(&["show", ONE, "--agent", "7", "--markdown"])
            .contains("look below")
    );
    let output = place.command(&["show", ONE, "--agent", "8"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(1) && said.contains("no subagent 8"),
        "{said}"
    );
    assert_eq!(place.run(&["show", ONE, "--agent", "../x"]).1, 2);
    assert_eq!(place.run(&["show", ONE, "--agent", "7", "--system"]).1, 2);
}

/// A prompt that follows a record.
fn record_after(record: &Value, prompt: &str) -> Value {
    json!({
        "parentUuid": record["uuid"], "isSidechain": false, "type": "user", "uuid": "00000005-0000-4000-8000-00000000000a",
        "sessionId": ONE, "message": {"role": "user", "content": prompt},
    })
}

#[test]
fn what_another_process_has_claimed_is_neither_moved_nor_mended_nor_deleted() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "x", None);
    let torn = [&fs::read(&path).unwrap()[..], b"{\"type\":"].concat();
    fs::write(&path, &torn).unwrap();
    let to = place.project.with_file_name("other");
    let lease = place
        .sessions()
        .claim(&ONE.parse().unwrap())
        .owner("worker 3")
        .take()
        .unwrap();
    let changing: [&[&str]; 3] = [
        &["delete", ONE, "--yes"],
        &["move", ONE, to.to_str().unwrap(), "--yes"],
        &["repair", ONE, "--in-place", "--yes"],
    ];
    for args in changing {
        let output = place.command(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("is driven by worker 3"), "{args:?}: {said}");
        assert_eq!(fs::read(&path).unwrap(), torn, "{args:?}");
    }
    place.done(&["fork", ONE]);
    drop(lease);
    for args in [changing[2], changing[1], changing[0]] {
        place.done(args);
    }
    assert!(!path.exists());
}

#[test]
fn a_session_is_found_by_id_beginning_and_title() {
    let place = Place::new();
    let other = place.project.with_file_name("other");
    place.session(&place.project, ONE, "x", Some("first title"));
    place.session(&other, TWO, "y", Some("second title"));
    for name in [TWO, "11111111-b", "11111111-B", "second title"] {
        assert_eq!(
            place.lines(&["show", name, "--json"])[0]["session_id"],
            TWO,
            "{name}"
        );
        // --dir keeps the search in one project.
        assert_eq!(place.run(&["show", name, "--dir", "."]).1, 1, "{name}");
    }
    assert_eq!(
        place.lines(&["show", "1111", "--dir", ".", "--json"])[0]["session_id"],
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

#[test]
fn titles_tags_and_the_archive_are_written_where_lists_read_them() {
    let place = Place::new();
    place.session(&place.project, ONE, "x", None);
    place.done(&["rename", ONE, "a title"]);
    place.done(&["tag", "a title", "blue"]);
    place.done(&["archive", "1111"]);
    let info = |name: &str| place.lines(&["list", "--json"])[0][name].clone();
    assert_eq!(
        (info("customTitle"), info("tag"), info("archived")),
        (json!("a title"), json!("blue"), json!(true))
    );
    let text = place.done(&["list"]);
    assert!(text.contains("#blue") && text.contains("archived"), "{text}");
    place.done(&["tag", ONE, "--none"]);
    place.done(&["unarchive", ONE]);
    assert!(matches!(info("tag"), Value::Null | Value::String(_)) && info("tag") != "blue");
    assert_eq!(info("archived"), false);
    for args in [
        &["rename", ONE, " "][..],
        &["rename", TWO, "x"],
        &["archive", ONE, TWO],
    ] {
        assert_eq!(place.run(args).1, 1, "{args:?}");
    }
    assert_eq!(info("archived"), false, "either all that are named, or none");
    assert_eq!(place.run(&["tag", ONE]).1, 2);
}

#[test]
fn a_fork_ends_where_it_is_told_to() {
    let place = Place::new();
    place.session(&place.project, ONE, "x", Some("a title"));
    let up_to = "00000000-0000-4000-8000-00000000000a";
    let made = place.json(&["fork", ONE, "--up-to", up_to, "--json"]);
    let id = made["sessionId"].as_str().unwrap();
    assert!(made["path"].as_str().unwrap().ends_with(&format!("{id}.jsonl")));
    assert_eq!(place.lines(&["show", id, "--json"]).as_array().unwrap().len(), 1);
    let id = place.done(&["fork", ONE, "--title", "another"]);
    assert_eq!(
        place.lines(&["show", "another", "--json"])[0]["session_id"],
        id.trim()
    );
    assert_eq!(place.run(&["fork", ONE, "--up-to", "nothing"]).1, 1);
}

#[test]
fn without_a_terminal_nothing_is_destroyed_unless_yes_is_said() {
    let place = Place::new();
    let other = place.project.with_file_name("other");
    let path = place.session(&place.project, ONE, "x", None);
    let before = fs::read(&path).unwrap();
    fs::write(&path, [&before[..], b"{\"type\":"].concat()).unwrap();
    let torn = fs::read(&path).unwrap();
    let to = other.to_str().unwrap();
    for args in [
        &["delete", ONE][..],
        &["move", ONE, to],
        &["repair", ONE, "--in-place"],
    ] {
        let output = place.command(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("--yes") && said.contains(ONE), "{said}");
        assert_eq!(fs::read(&path).unwrap(), torn, "{args:?}");
    }
    place.session(&other, TWO, "y", None);
    place.done(&["delete", ONE, TWO, "--yes"]);
    assert_eq!(place.run(&["list", "--all", "--json"]), (String::new(), 1));
    assert_eq!(place.run(&["delete", ONE, "--yes"]).1, 1);
}

#[test]
fn of_several_copies_a_directory_names_the_one_to_delete() {
    let place = Place::new();
    let other = place.project.with_file_name("other");
    let here = place.session(&place.project, ONE, "x", None);
    let there = place.session(&other, ONE, "x", None);
    place.done(&["delete", ONE, "--yes", "--dir", other.to_str().unwrap()]);
    assert!(here.exists() && !there.exists());
}

#[test]
fn what_is_left_of_a_session_without_a_transcript_can_be_deleted() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "x", None);
    let beside = path.with_extension("");
    fs::create_dir_all(&beside).unwrap();
    fs::remove_file(&path).unwrap();
    let asked = place.command(&["delete", ONE]).output().unwrap();
    assert_eq!(asked.status.code(), Some(2));
    let said = String::from_utf8(asked.stderr).unwrap();
    assert!(
        said.contains(ONE) && said.contains("without a transcript"),
        "{said}"
    );
    // A directory names a copy, of which there is none, and so does the beginning of an id.
    let dir = place.project.to_str().unwrap();
    for args in [
        &["delete", ONE, "--yes", "--dir", dir][..],
        &["delete", &ONE[..8], "--yes"],
    ] {
        assert_eq!(place.run(args).1, 1, "{args:?}");
    }
    assert!(beside.exists());
    place.session(&place.project, TWO, "y", None);
    place.done(&["delete", ONE, TWO, "--yes"]);
    assert!(!beside.exists());
    assert_eq!(place.run(&["list", "--all", "--json"]), (String::new(), 1));
    assert_eq!(place.run(&["delete", ONE, "--yes"]).1, 1);
}

#[test]
fn what_a_crash_left_is_shown_and_mended() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "x", None);
    assert_eq!(place.done(&["repair", ONE]), "nothing is wrong\n");
    assert_eq!(place.lines(&["repair", ONE, "--json"]), json!([]));
    // The result of the call is lost.
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().take(2).collect();
    let broken = format!("{}\n", lines.join("\n"));
    fs::write(&path, &broken).unwrap();
    assert!(place.done(&["repair", ONE]).contains("toolu_1"));
    let findings = place.lines(&["repair", ONE, "--json"]);
    assert_eq!(
        (&findings[0]["line"], &findings[0]["mendable"]),
        (&json!(2), &json!(true))
    );
    let id = place.done(&["repair", ONE, "--new"]);
    assert_eq!(
        place
            .lines(&["show", id.trim(), "--json"])
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), broken);
    let made = place.json(&["repair", ONE, "--in-place", "--yes", "--json"]);
    assert_eq!(
        fs::read_to_string(made["backup"].as_str().unwrap()).unwrap(),
        broken
    );
    assert_eq!(place.done(&["repair", ONE]), "nothing is wrong\n");
}

#[test]
fn a_session_goes_out_and_comes_back_in() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "count", Some("a title"));
    let file = place.project.join("session.export");
    let name = file.to_str().unwrap();
    place.done(&["export", ONE, name]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(
        place.run(&["export", ONE, name]).1,
        1,
        "what is there is left alone"
    );
    assert_eq!(
        place.done(&["export", ONE, "-", "--jsonl"]),
        fs::read_to_string(&path).unwrap()
    );
    assert!(
        place
            .done(&["export", "a title", "-", "--markdown"])
            .starts_with("# a title\n")
    );
    let said = place.lines(&["show", ONE, "--json"]);
    // With the session there, the import has another id; without, its own.
    let made = place.json(&["import", name, "--json"]);
    assert_eq!(made["was"], ONE);
    assert_ne!(made["sessionId"], ONE);
    place.done(&["delete", ONE, "--yes"]);
    let other = place.project.with_file_name("other");
    let id = place.done(&["import", name, "--dir", other.to_str().unwrap()]);
    assert_eq!(id.trim(), ONE);
    let again = place.lines(&["show", ONE, "--dir", other.to_str().unwrap(), "--json"]);
    assert_eq!(again, said);
    assert_eq!(
        place
            .run(&["import", place.project.join("none").to_str().unwrap()])
            .1,
        1
    );
}

#[test]
fn a_session_is_moved_and_copied() {
    let place = Place::new();
    let other = place.project.with_file_name("other");
    let to = other.to_str().unwrap();
    let path = place.session(&place.project, ONE, "x", None);
    let copy = place.json(&["move", ONE, to, "--copy", "--json"]);
    assert_eq!(copy["was"], ONE);
    assert!(path.exists());
    assert_eq!(place.done(&["move", ONE, to, "--yes"]).trim(), ONE);
    assert!(!path.exists());
    let infos = place.lines(&["list", "--dir", to, "--json"]);
    assert_eq!(infos.as_array().unwrap().len(), 2);
    assert!(
        infos.as_array().unwrap().iter().all(|info| info["cwd"] == to),
        "{infos}"
    );
    let config = place.project.with_file_name("another-config");
    place.done(&["move", ONE, to, "--yes", "--to-config", config.to_str().unwrap()]);
    assert!(Sessions::at(&config).find(&ONE.parse().unwrap()).is_ok());
    assert_eq!(place.run(&["show", ONE]).1, 1);
}

#[cfg(unix)]
mod terminal {
    //! With a pseudo-terminal.

    use rexpect::session::{PtySession, spawn_command};

    use super::*;
    use crate::terminal::ends_with;

    const PATIENCE: u64 = 20_000;

    fn at_terminal(place: &Place, args: &[&str], pager: &str) -> PtySession {
        let mut command = place.command(args);
        // A terminal of its own for all three streams.
        command
            .env("TERM", "xterm")
            .env("PAGER", pager)
            .stdin(std::process::Stdio::inherit());
        spawn_command(command, Some(PATIENCE)).expect("a terminal")
    }

    #[test]
    fn a_person_is_asked_before_a_session_is_deleted() {
        let place = Place::new();
        let path = place.session(&place.project, ONE, "x", Some("my title"));
        for (answer, code, is_left) in [("", 1, true), ("no", 1, true), ("y", 0, false)] {
            let mut session = at_terminal(&place, &["delete", ONE], "cat");
            session.exp_string("my title").unwrap();
            session.exp_string("[y/N]").unwrap();
            session.send_line(answer).unwrap();
            ends_with(&mut session, code);
            assert_eq!(path.exists(), is_left, "{answer:?}");
        }
    }

    #[test]
    fn what_is_long_goes_through_the_pager_with_colours() {
        let place = Place::new();
        place.session(&place.project, ONE, "x", Some("my title"));
        let mut session = at_terminal(&place, &["list"], "sed s/^/PAGED:/");
        session.exp_string("PAGED:\u{1b}[2mWHEN").unwrap();
        session.exp_string("\u{1b}[36m1111\u{1b}").unwrap();
        ends_with(&mut session, 0);
        for args in [&["list", "--no-pager"][..], &["list", "--json"]] {
            let mut session = at_terminal(&place, args, "sed s/^/PAGED:/");
            let text = session.exp_eof().unwrap();
            assert!(text.contains("my title") && !text.contains("PAGED"), "{text}");
        }
        // An interrupt is the pager's.
        let pager = place.project.join("pager");
        let script =
            "trap : INT; cat; echo ready; while ! read -r line </dev/tty; do :; done; echo \"heard $line\"";
        fs::write(&pager, script).unwrap();
        let mut session = at_terminal(&place, &["list"], &format!("sh {}", pager.display()));
        session.exp_string("ready").unwrap();
        session.send_control('c').unwrap();
        session.send_line("more").unwrap();
        session.exp_string("heard").unwrap();
        ends_with(&mut session, 0);
        // One that quits has shown enough; one that is not there keeps nothing back.
        let mut session = at_terminal(&place, &["show", ONE], "true");
        ends_with(&mut session, 0);
        let mut session = at_terminal(&place, &["show", ONE], "no-such-pager");
        session.exp_string("Two files.").unwrap();
        ends_with(&mut session, 0);
    }
}

/// The chapter's commands, in their order.
#[cfg(unix)]
#[test]
fn what_the_documentation_shows_runs() {
    let place = Place::new();
    place.session(
        &place.project,
        ONE,
        "Why does the login fail?",
        Some("fix the login"),
    );
    let chapter = include_str!("../../../../docs/sessions.md");
    let mut script = "set -e\n".to_owned();
    for block in chapter.split("```sh\n").skip(1) {
        script.push_str(block.split("```").next().unwrap());
    }
    assert!(script.matches("outrigger sessions").count() > 12);
    let tool = Path::new(env!("CARGO_BIN_EXE_outrigger")).parent().unwrap();
    let path = format!("{}:{}", tool.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .env_clear()
        .env("PATH", path)
        .env("CLAUDE_CONFIG_DIR", &place.config)
        .current_dir(&place.project)
        .stdin(std::process::Stdio::null());
    let (text, code) = ran(&mut shell);
    assert_eq!(code, 0, "{text}");
    assert!(
        fs::read_to_string(place.project.join("login.md"))
            .unwrap()
            .contains("Two files.")
    );
}

#[test]
fn what_was_said_is_found_again() {
    let place = Place::new();
    place.session(&place.project, ONE, "Where did I put the keys?", None);
    place.session(&place.config.join("elsewhere"), TWO, "The keys are here", None);
    let (text, code) = place.run(&["search", "KEYS"]);
    assert_eq!(code, 0);
    assert!(
        text.contains(ONE) && !text.contains(TWO),
        "of this project only: {text}"
    );
    assert!(
        text.contains("2026-02-03 04:05  asked: Where did I put the keys?"),
        "{text}"
    );
    let (text, _) = place.run(&["search", "keys", "--all", "--json", "--in", "prompts"]);
    let hits: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(hits.len(), 2);
    assert!(
        hits.iter()
            .all(|hit| hit["part"] == "prompt" && hit["snippet"].as_str().unwrap().contains("keys"))
    );
    let (text, _) = place.run(&["search", "Two files"]);
    assert!(
        text.contains("said: Two files.") && !text.contains('\x1b'),
        "{text}"
    );
    for nothing in [
        &["search", "KEYS", "--case-sensitive"][..],
        &["search", "keys", "--in", "answers"],
        &["search", "keys", "--tool", "Edit"],
        &["search", "keys", "--since", "1h"],
        &["search", "keys", "--branch", "other"],
    ] {
        assert_eq!(place.run(nothing), (String::new(), 1), "{nothing:?}");
    }
    assert_eq!(
        place
            .run(&["search", "", "--tool", "Bash", "--limit", "2"])
            .0
            .lines()
            .count(),
        3
    );
}

/// A title means the session of this project, if one has it.
#[test]
fn a_title_is_looked_for_in_this_project_first() {
    let place = Place::new();
    let other = place.project.with_file_name("other");
    place.session(&place.project, ONE, "mine", Some("fix the login"));
    place.session(&other, TWO, "theirs", Some("fix the login"));
    let text = place.done(&["show", "fix the login"]);
    assert!(text.contains("mine") && !text.contains("theirs"), "{text}");
    let text = place.done(&["show", "fix the login", "--dir", other.to_str().unwrap()]);
    assert!(text.contains("theirs"), "{text}");
    // From a third directory, it could be either.
    let mut command = place.command(&["show", "fix the login"]);
    fs::create_dir_all(place.project.with_file_name("third")).unwrap();
    command.current_dir(place.project.with_file_name("third"));
    assert_eq!(ran(&mut command).1, 2);
    // What deletes does not guess.
    place.session(
        &place.project,
        "11111111-cccc-4ccc-8ccc-000000000003",
        "mine, too",
        Some("fix the login"),
    );
    assert_eq!(place.run(&["show", "fix the login"]).1, 2);
}

#[test]
fn a_directory_that_is_not_there_is_told_and_a_file_is_refused() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "count the files", None);
    let export = place.project.join("a.session");
    place.done(&["export", ONE, export.to_str().unwrap()]);
    for args in [
        &["import", "a.session", "--dir", "a.session"][..],
        &["move", ONE, "a.session", "--yes"],
    ] {
        let output = place.command(args).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        assert!(told.contains("is no directory"), "{told}");
        assert!(path.exists());
    }
    // A worktree, say, may be made afterwards.
    for args in [
        &["import", "a.session", "--dir", "nope"][..],
        &["move", ONE, "nope", "--copy"],
    ] {
        let output = place.command(args).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {told}");
        assert!(told.contains("nope is not there"), "{args:?}: {told}");
        assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    }
    fs::create_dir(place.project.join("yes")).unwrap();
    let output = place.command(&["move", ONE, "yes", "--copy"]).output().unwrap();
    assert!(!String::from_utf8(output.stderr).unwrap().contains("is not there"));
}

/// What is there is left alone, which is told in words.
#[test]
fn an_export_replaces_nothing() {
    let place = Place::new();
    place.session(&place.project, ONE, "count the files", None);
    fs::write(place.project.join("a.session"), "old").unwrap();
    for (to, says) in [("a.session", "is there already"), (".", "is a directory")] {
        let output = place.command(&["export", ONE, to]).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(
            told.contains(to) && told.contains(says) && !told.contains("os error"),
            "{told}"
        );
    }
    assert_eq!(fs::read(place.project.join("a.session")).unwrap(), b"old");
}
