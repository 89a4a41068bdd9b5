//! What `outrigger sessions list` and `agents` show: at terminals of several widths, filtered, sorted, and where there is nothing. And
//! what `show` says of parallel calls and of times.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::kept::{ONE, Place, TWO};
use crate::rig::PATIENCE;
use crate::terminal::ends_with;
use crate::tool::ran;

const THREE: &str = "99999999-cccc-4ccc-8ccc-000000000003";

/// A session with a tag, on a branch, written to so many hours ago.
fn session(
    place: &Place,
    dir: &Path,
    id: &str,
    title: &str,
    tag: Option<&str>,
    branch: &str,
    hours: u64,
) -> PathBuf {
    let path = place.session(dir, id, "count the files", Some(title));
    let mut text = fs::read_to_string(&path).unwrap();
    text = text.replace("\"gitBranch\":\"main\"", &format!("\"gitBranch\":{branch:?}"));
    if let Some(tag) = tag {
        text += &(json!({"type": "tag", "tag": tag, "sessionId": id}).to_string() + "\n");
    }
    fs::write(&path, text).unwrap();
    written(&path, hours);
    path
}

/// Has a file written to so many hours and a half ago.
fn written(path: &Path, hours: u64) {
    let then = SystemTime::now() - Duration::from_secs(hours * 3600 + 1800);
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(then).unwrap();
}

/// Three sessions; two ids begin alike.
fn three() -> Place {
    let place = Place::new();
    let long = "fix the login, and all that was broken by the mending of the login before: 日本語の題名";
    session(
        &place,
        &place.project,
        ONE,
        long,
        Some("release"),
        "feature/login-by-mail-and-password",
        3,
    );
    session(&place, &place.project, TWO, "counting", None, "main", 50);
    session(
        &place,
        &place.project,
        THREE,
        "About trees",
        Some("someday"),
        "HEAD",
        1200,
    );
    place
}

/// What a command shows at a terminal that is so wide.
fn shown(place: &Place, columns: usize, args: &[&str]) -> String {
    let ours = place.command(&[args, &["--no-pager"]].concat());
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", &format!("stty cols {columns} -onlcr; exec \"$0\" \"$@\"")])
        .arg(ours.get_program())
        .args(ours.get_args())
        .env_clear()
        .envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .envs([("TERM", "xterm"), ("NO_COLOR", "1"), ("PATH", "/usr/bin:/bin")])
        .current_dir(&place.project)
        .stdin(Stdio::inherit());
    let patience = u64::try_from(PATIENCE.as_millis() / 3).unwrap();
    let mut session = rexpect::session::spawn_command(command, Some(patience)).expect("a terminal");
    // What is read is told byte by byte.
    let told = session.exp_eof().unwrap();
    let bytes: Vec<u8> = told.chars().map(|c| u8::try_from(c).unwrap()).collect();
    let text = String::from_utf8(bytes).unwrap();
    ends_with(&mut session, 0);
    for line in text.lines() {
        assert!(line.chars().count() <= columns, "{columns}: {line:?}");
    }
    text
}

#[test]
fn a_list_is_as_wide_as_its_terminal() {
    let place = three();
    insta::assert_snapshot!(shown(&place, 100, &["list"]), @r#"
    WHEN      ID          BRANCH                    TAG       TITLE
    3 h ago   11111111-a  feature/login-by-mail-a…  #release  fix the login, and all that was broken by…
    2 d ago   11111111-b  main                                counting
    50 d ago  9999                                  #someday  About trees
    "#);
    insta::assert_snapshot!(shown(&place, 60, &["list"]), @r#"
    WHEN      ID          BRANCH      TAG       TITLE
    3 h ago   11111111-a  feature/l…  #release  fix the login, …
    2 d ago   11111111-b  main                  counting
    50 d ago  9999                    #someday  About trees
    "#);
    insta::assert_snapshot!(shown(&place, 36, &["list"]), @r#"
    ID          TITLE
    11111111-a  fix the login, and all …
    11111111-b  counting
    9999        About trees
    "#);
    // What is shown of an id is enough.
    let text = place.done(&["show", "11111111-a"]);
    assert!(text.contains("fix the login"), "{text}");
    // Elsewhere everything is whole.
    let text = place.done(&["list"]);
    assert!(
        text.contains(ONE) && text.contains("日本語の題名") && !text.contains("WHEN"),
        "{text}"
    );
}

#[test]
fn a_list_can_be_filtered_and_sorted() {
    let place = three();
    place.done(&["archive", TWO]);
    for (path, hours) in [(ONE, 3), (TWO, 50), (THREE, 1200)] {
        let file = place
            .sessions()
            .find(&outrigger::sessions::SessionId::new(path).unwrap());
        written(&file.unwrap().path, hours);
    }
    let ids = |args: &[&str]| -> Vec<String> {
        let lines = place.lines(&[&["list", "--json"], args].concat());
        let lines = lines.as_array().unwrap().iter();
        lines
            .map(|line| line["sessionId"].as_str().unwrap().to_owned())
            .collect()
    };
    for (args, expected) in [
        (&[][..], &[ONE, TWO, THREE][..]),
        (&["--tag", "release"], &[ONE]),
        (&["--branch", "main"], &[TWO]),
        (&["--title", "TREES"], &[THREE]),
        (&["--title", "t"], &[ONE, TWO, THREE]),
        (&["--since", "2d"], &[ONE]),
        (&["--since", "3d"], &[ONE, TWO]),
        (&["--since", "2020-01-01"], &[ONE, TWO, THREE]),
        (&["--archived"], &[TWO]),
        (&["--no-archived"], &[ONE, THREE]),
        (&["--sort", "title"], &[THREE, TWO, ONE]),
        (&["--sort", "size", "--limit", "1"], &[ONE]),
        (&["--sort", "title", "--limit", "1", "--offset", "1"], &[TWO]),
        // What is left out does not count.
        (&["--no-archived", "--limit", "2"], &[ONE, THREE]),
        (&["--limit", "1", "--offset", "1"], &[TWO]),
    ] {
        assert_eq!(ids(args), expected, "{args:?}");
    }
    assert_eq!(place.run(&["list", "--since", "yesterday"]).1, 2);
    assert_eq!(place.run(&["list", "--archived", "--no-archived"]).1, 2);
    // The other names of commands.
    assert_eq!(place.done(&["ls", "--json"]), place.done(&["list", "--json"]));
    place.done(&["rm", THREE, "--yes"]);
    assert_eq!(ids(&[]), [ONE, TWO]);
    place.done(&["mv", TWO, "/elsewhere", "--yes"]);
    assert_eq!(ids(&[]), [ONE]);
}

#[test]
fn that_there_is_nothing_is_said() {
    let place = three();
    let missing = place.project.with_file_name("missing");
    let missing = missing.to_str().unwrap();
    let other = place.project.with_file_name("other");
    fs::create_dir(&other).unwrap();
    for (args, words) in [
        (
            &["list", "--tag", "none"][..],
            "there are no such sessions of this project; --all",
        ),
        (
            &["list", "--json", "--tag", "none"],
            "there are no such sessions of this project",
        ),
        (
            &["list", "--all", "--branch", "none"],
            "there are no such sessions\n",
        ),
        (&["list", "--dir", missing], "missing is no directory here"),
        (
            &["list", "--dir", other.to_str().unwrap()],
            "there are no sessions of ",
        ),
        (
            &["search", "nowhere at all"],
            "\"nowhere at all\" was found nowhere",
        ),
        (
            &["show", "00000000-0000-4000-8000-00000000000f"],
            "there is no session 00000000-0000-4000-8000-00000000000f in any project of ",
        ),
        (&["agents", ONE], "has no subagents"),
        (&["agents", ONE, "--json"], "has no subagents"),
    ] {
        let output = place.command(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(
            said.contains(words) && output.stdout.is_empty(),
            "{args:?}: {said}"
        );
    }
}

/// A message of a transcript.
fn record(number: usize, kind: &str, content: &Value) -> String {
    let parent = (number > 0).then(|| format!("0000000{}-0000-4000-8000-00000000000b", number - 1));
    json!({
        "parentUuid": parent, "isSidechain": false, "type": kind, "uuid": format!("0000000{number}-0000-4000-8000-00000000000b"),
        "sessionId": ONE, "timestamp": "2026-02-03T20:05:06.000Z", "cwd": "/x", "message": {"role": kind, "content": content},
    })
    .to_string()
        + "\n"
}

fn call(id: &str, command: &str) -> Value {
    json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}])
}

fn result(id: &str, text: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": id, "content": text}])
}

#[test]
fn results_of_parallel_calls_name_their_call_and_times_are_those_of_the_zone() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "count the files", Some("counting"));
    let talk = [
        ("user", json!("count the files")),
        ("assistant", call("a", "ls one")),
        ("assistant", call("b", "ls two")),
        ("assistant", call("c", "ls two")),
        ("user", result("c", "of the third")),
        ("user", result("a", "of the first")),
        ("user", result("b", "of the second")),
        ("assistant", call("d", "ls <four>")),
        ("user", result("d", "of the fourth")),
    ];
    let lines: String = talk
        .iter()
        .enumerate()
        .map(|(number, (kind, content))| record(number, kind, content))
        .collect();
    fs::write(&path, lines).unwrap();
    let mut command = place.command(&["show", ONE]);
    let (text, _) = ran(command.env("TZ", "XST-5:30"));
    insta::assert_snapshot!(text.split_once("\n\n").unwrap().1, @r#"
    You  2026-02-04 01:35
    count the files

    Claude  2026-02-04 01:35
    > Bash ls one
    > Bash ls two
    > Bash ls two (2)
      of the third
    < Bash ls one
      of the first
    < Bash ls two
      of the second
    > Bash ls <four>
      of the fourth
    "#);
    let mut command = place.command(&["show", ONE, "--markdown"]);
    let (text, _) = ran(command.env("TZ", "XST-5:30"));
    for words in [
        "## You (2026-02-04 01:35 XST)",
        "**Calls `Bash`** (2)",
        "<summary>Result of Bash ls two (2)</summary>\n\n```\nof the third",
        "<summary>Result of Bash ls &lt;four&gt;</summary>\n\n```\nof the fourth",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let mut command = place.command(&["search", "count"]);
    let (text, _) = ran(command.env("TZ", "XST-5:30"));
    assert!(text.contains("2026-02-04 01:35  asked"), "{text}");
}

#[test]
fn subagents_are_listed_and_named_by_their_beginning() {
    let place = Place::new();
    let path = place.session(&place.project, ONE, "count the files", Some("counting"));
    let agents = path.with_extension("").join("subagents");
    fs::create_dir_all(&agents).unwrap();
    for (id, kind, task) in [
        (
            "a1b2c3",
            "Explore",
            "find all callers of a function that has a long name",
        ),
        ("a1ffff", "Plan", "plan the mending"),
        ("7", "Explore", ""),
    ] {
        let said = json!({
            "parentUuid": null, "isSidechain": true, "type": "user", "uuid": "s", "sessionId": ONE, "agentId": id,
            "message": {"role": "user", "content": format!("this is {id}")},
        });
        let transcript = agents.join(format!("agent-{id}.jsonl"));
        fs::write(&transcript, format!("{said}\n")).unwrap();
        written(&transcript, 2);
        let meta = json!({"agentType": kind, "toolUseId": "toolu_1", "description": task});
        fs::write(agents.join(format!("agent-{id}.meta.json")), meta.to_string()).unwrap();
    }
    insta::assert_snapshot!(place.done(&["agents", ONE]), @r#"
    2 h ago  7       Explore
    2 h ago  a1b2c3  Explore  find all callers of a function that has a long name
    2 h ago  a1ffff  Plan     plan the mending
    "#);
    insta::assert_snapshot!(shown(&place, 50, &["agents", ONE]), @r#"
    WHEN     AGENT   TYPE     TASK
    2 h ago  7       Explore
    2 h ago  a1b2c3  Explore  find all callers of a f…
    2 h ago  a1ffff  Plan     plan the mending
    "#);
    let lines = place.done(&["agents", "counting", "--json"]);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[1]["agentId"], "a1b2c3");
    assert_eq!(lines[1]["agentType"], "Explore");

    assert!(
        place
            .done(&["show", ONE, "--agent", "a1b"])
            .contains("this is a1b2c3")
    );
    assert!(place.done(&["show", ONE, "--agent", "7"]).contains("this is 7"));
    for (agent, code, words) in [
        (
            "a1",
            2,
            "several subagents could be meant by \"a1\": a1b2c3, a1ffff",
        ),
        ("b", 1, "lists those that there are"),
    ] {
        let output = place.command(&["show", ONE, "--agent", agent]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(words), "{said}");
    }
}
