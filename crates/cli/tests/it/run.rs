//! `outrigger run`.

use outrigger::{Event, EventLine};
use outrigger_sim::api::Reply;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

use crate::rig::{PATIENCE, Rig};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test]
async fn the_answer_goes_to_stdout_and_the_rest_to_stderr() {
    let rig = Rig::start().await;
    let ran = rig
        .run(&["%say Looking.\n%+tool Bash {\"command\":\"echo hi\"}\n%say Done."])
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "Looking.\nDone.\n");
    assert!(ran.stderr.contains("Bash: echo hi\n"), "{ran:?}");
    assert!(ran.stderr.contains("2 turns"), "{ran:?}");
    assert!(!ran.stderr.contains('\x1b'), "{ran:?}");
}

#[tokio::test]
async fn texts_of_two_messages_are_two_lines_with_nothing_between() {
    let rig = Rig::start().await;
    let prompt = "%say Looking.\n%+tool Bash {\"command\":\"echo hi\"}\n%say Done.";
    let ran = rig.run(&["--quiet", prompt]).await;
    assert_eq!(
        (ran.code, &*ran.stdout),
        (Some(0), "Looking.\nDone.\n"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn text_comes_as_it_is_written() {
    let rig = Rig::start().await;
    let mut child = rig.spawn("run", &["--no-ask", "%hang\n%say first half"]);
    drop(child.stdin.take());
    let mut stdout = child.stdout.take().unwrap();
    let mut seen = vec![0; "first half".len()];
    // The response never ends, so this is there before the turn is over.
    tokio::time::timeout(PATIENCE, stdout.read_exact(&mut seen))
        .await
        .expect("text comes in time")
        .unwrap();
    assert_eq!(seen, b"first half");
    terminate(&child, rustix::process::Signal::INT);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    let ran = rig.finish(child).await;
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(rest, "\n");
}

fn terminate(child: &tokio::process::Child, signal: rustix::process::Signal) {
    let pid = i32::try_from(child.id().expect("it runs")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[tokio::test]
async fn sigterm_ends_the_session() {
    let rig = Rig::start().await;
    let mut child = rig.spawn("run", &["--no-ask", "--json", "%hang\n%say begun"]);
    drop(child.stdin.take());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let begun = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("content_block_delta") {
                return;
            }
        }
        panic!("it ended early");
    };
    tokio::time::timeout(PATIENCE, begun).await.expect("in time");
    terminate(&child, rustix::process::Signal::TERM);
    while lines.next_line().await.unwrap().is_some() {}
    let ran = rig.finish(child).await;
    assert_eq!(ran.code, Some(143), "{ran:?}");
}

#[tokio::test]
async fn frames_come_as_lines() {
    let rig = Rig::start().await;
    let ran = rig.run(&["--json", "%say Hello \\u00fc"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let frames: Vec<Value> = ran.stdout.lines().map(json).collect();
    let count = |kind: &str, subtype: &str| {
        frames
            .iter()
            .filter(|frame| frame["type"] == kind && (subtype.is_empty() || frame["subtype"] == subtype))
            .count()
    };
    assert_eq!(
        (count("result", "success"), count("system", "init")),
        (1, 1),
        "{ran:?}"
    );
    assert_eq!(count("assistant", ""), 1);
    assert!(count("stream_event", "") > 3);
    assert_eq!(frames.iter().filter(|frame| frame["type"].is_null()).count(), 0);
}

#[tokio::test]
async fn events_come_as_lines_and_can_be_read_again() {
    let rig = Rig::start().await;
    let ran = rig
        .run(&["--json=events", "%tool Bash {\"command\":\"true\"}\n%say Hello ü"])
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<EventLine> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let texts = lines.iter().filter_map(|line| match line {
        EventLine::Event(Event::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    assert!(texts.collect::<String>().starts_with("Hello ü"), "{ran:?}");
    assert!(
        lines
            .iter()
            .any(|line| matches!(line, EventLine::Event(Event::ToolResult(_)))),
        "{ran:?}"
    );
    assert!(
        !lines
            .iter()
            .any(|line| matches!(line, EventLine::Event(Event::Unknown(_)))),
        "{ran:?}"
    );
    // Notices come behind it.
    let ended = lines.iter().rfind(|line| matches!(line, EventLine::TurnEnded(_)));
    let Some(EventLine::TurnEnded(outcome)) = ended else {
        panic!("{ran:?}")
    };
    assert!(outcome.is_success());
    let again: String = lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap() + "\n")
        .collect();
    assert_eq!(again, ran.stdout);

    let failed = rig
        .run(&[
            "--json=events",
            "%error 400 n=9 msg=\"no such thing\"\n%say never",
        ])
        .await;
    let lines = failed
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let is_failure = |line| matches!(line, EventLine::TurnEnded(outcome) if !outcome.is_success());
    assert!(lines.into_iter().any(is_failure), "{failed:?}");
    let id = "00000000-0000-4000-8000-000000000000";
    let unknown = rig.run(&["--json=events", "--resume", id, "x"]).await;
    let last: EventLine = serde_json::from_str(unknown.stdout.lines().last().unwrap()).unwrap();
    let EventLine::Error(error) = last else {
        panic!("{unknown:?}")
    };
    assert_eq!(error.cause, Some(outrigger::Cause::UnknownSession), "{error:?}");
}

#[tokio::test]
async fn json_tells_the_whole_outcome() {
    let rig = Rig::start().await;
    let ran = rig
        .run(&[
            "--output",
            "json",
            "%tool Bash {\"command\":\"touch made\"}\n%say It was refused.\n%usage in=10 out=5",
        ])
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = json(&ran.stdout);
    assert_eq!(report["text"], "It was refused.");
    assert_eq!(report["verdict"], "completed");
    assert_eq!(report["is_success"], true);
    assert_eq!(report["num_turns"], 2);
    assert!(report["cost_usd"].as_f64().unwrap() > 0.0, "{report}");
    assert!(report["duration_ms"].as_u64().unwrap() > 0);
    assert_eq!(report["session_id"].as_str().unwrap().len(), 36);
    let usage = report["usage"].as_object().unwrap();
    assert_eq!(usage.len(), 1, "{report}");
    assert!(
        usage
            .values()
            .all(|model| model["output_tokens"].as_u64().unwrap() > 0)
    );
    let denials = report["permission_denials"].as_array().unwrap();
    assert_eq!(denials.len(), 1, "{report}");
    assert_eq!(denials[0]["tool_input"]["command"], "touch made");
    assert!(!rig.sandbox.project().join("made").exists());
}

#[tokio::test]
async fn rules_allow_and_deny() {
    let rig = Rig::start().await;
    let prompt = "%tool Bash {\"command\":\"touch made\"}\n%say Done.";
    let ran = rig.run(&["--allow", "Bash(touch:*)", prompt]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(rig.sandbox.project().join("made").exists(), "{ran:?}");
    std::fs::remove_file(rig.sandbox.project().join("made")).unwrap();

    let ran = rig
        .run(&["--allow", "Bash", "--deny", "Bash(touch:*)", prompt])
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("  failed: "), "{ran:?}");
    assert!(!rig.sandbox.project().join("made").exists(), "{ran:?}");
}

#[tokio::test]
async fn the_prompt_may_come_on_standard_input() {
    let rig = Rig::start().await;
    for args in [&["--output", "text"][..], &["--output", "text", "-"]] {
        let ran = rig.ran("run", args, "%say From the pipe.").await;
        assert_eq!((ran.code, &*ran.stdout), (Some(0), "From the pipe.\n"), "{ran:?}");
    }
    let ran = rig
        .ran(
            "run",
            &["--quiet", "%say Read it."],
            "what was piped in, @not-a-file",
        )
        .await;
    assert_eq!(
        (ran.code, &*ran.stdout, &*ran.stderr),
        (Some(0), "Read it.\n", "")
    );
    let requests = rig.api.requests();
    let last = format!("{:?}", requests.last().unwrap());
    assert!(last.contains("what was piped in, @not-a-file"), "{last}");
}

#[tokio::test]
async fn wrong_usage_is_told_before_anything_starts() {
    let rig = Rig::start().await;
    for (args, words) in [
        (&[][..], "no prompt"),
        (&["--env", "ANTHROPIC_API_KEY=x", "p"], "every process"),
        (&["--auth", "api-key", "--auth-env", "NOT_SET", "p"], "NOT_SET"),
        (&["--auth-env", "X", "p"], "--auth-env goes with"),
        (
            &["--permission-mode", "yolo", "p"],
            "[possible values: default, acceptEdits",
        ),
        (&["--cwd", "/does/not/exist", "p"], "/does/not/exist"),
        (&["--max-turns", "0", "p"], "--max-turns is"),
        (&["--schema", "/does/not/exist", "p"], "--schema"),
    ] {
        let ran = rig.run(args).await;
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(words), "{args:?}: {ran:?}");
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(rig.api.requests().len(), 0);
    // The last of two `--cli` would be refused, so this one is on its own.
    let mut missing = rig.std_command("run", &[]);
    missing.args(["--no-ask", "p"]);
    let program = missing.get_program().to_owned();
    let ran = std::process::Command::new(program)
        .args(["run", "--no-ask", "--cli", "/does/not/exist", "p"])
        .env_clear()
        .envs(rig.sandbox.env(&rig.api.base_url()))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
}

#[tokio::test]
async fn the_exit_status_tells_what_went_wrong() {
    let rig = Rig::start().await;
    let ran = rig
        .run(&[
            "--output",
            "json",
            "%error 400 n=9 msg=\"no such thing\"\n%say never",
        ])
        .await;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("no such thing"), "{ran:?}");
    let report = json(&ran.stdout);
    assert_eq!(
        (&report["verdict"], &report["cause"], &report["is_success"]),
        (&"failed".into(), &"api".into(), &false.into())
    );
    assert_eq!(report["text"], "", "an error is no answer");
    assert!(report["errors"][0].as_str().unwrap().contains("no such thing"));
    assert_eq!(report["api_error_status"], 400);

    let ran = rig
        .run(&[
            "--max-turns",
            "1",
            "%tool Bash {\"command\":\"echo hi\"}\n%say never",
        ])
        .await;
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("limit of turns"), "{ran:?}");

    // What the model refuses is refused again.
    let ran = rig
        .run(&["%stop refusal\n%say no\n%stop refusal\n%say no again"])
        .await;
    assert_eq!(ran.code, Some(6), "{ran:?}");
    assert!(ran.stderr.contains("safeguards"), "{ran:?}");

    let ran = rig
        .run(&["--resume", "00000000-0000-4000-8000-000000000000", "%say never"])
        .await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("No conversation found"), "{ran:?}");
}

#[tokio::test]
async fn structured_output_is_written_as_json() {
    let rig = Rig::start().await;
    let schema = rig
        .sandbox
        .write(
            "schema.json",
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#,
        )
        .unwrap();
    let ran = rig
        .run(&[
            "--schema",
            schema.to_str().unwrap(),
            "%tool StructuredOutput {\"n\":7}\n%say Seven.",
        ])
        .await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(json(&ran.stdout), serde_json::json!({"n": 7}));
}

#[tokio::test]
async fn a_session_goes_on_where_it_ended() {
    let rig = Rig::start().await;
    let first = json(&rig.run(&["--output", "json", "%say One."]).await.stdout);
    let id = first["session_id"].as_str().unwrap();
    let second = rig.run(&["--output", "json", "--resume", id, "%say Two."]).await;
    let second = json(&second.stdout);
    assert_eq!(second["session_id"], id);
    let requests = rig.api.requests();
    assert!(format!("{:?}", requests.last().unwrap()).contains("One."));
    let fork = rig
        .run(&["--output", "json", "--continue", "--fork-session", "%say Three."])
        .await;
    assert_ne!(json(&fork.stdout)["session_id"], id);
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_it_quietly() {
    let rig = Rig::start().await;
    let mut child = rig.spawn("run", &["--no-ask", "--quiet", "%slow 50 chunk=10\n%big 4000"]);
    drop((child.stdin.take(), child.stdout.take()));
    let ran = rig.finish(child).await;
    assert_eq!((ran.code, &*ran.stderr), (Some(141), ""), "{ran:?}");
}

#[tokio::test]
async fn commands_of_the_cli_are_commands() {
    let rig = Rig::start().await;
    let ran = rig.run(&["--output", "json", "/context"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = json(&ran.stdout);
    assert!(
        report["text"].as_str().unwrap().contains("Context Usage"),
        "{report}"
    );
    // A path is no command.
    let ran = rig.run(&["/etc/hosts is a file\n%say Indeed."]).await;
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "Indeed.\n"), "{ran:?}");
}

#[tokio::test]
async fn it_waits_for_agents_in_the_background() {
    let rig = Rig::start().await;
    rig.api.add_rule(|request| {
        let last = request.messages().last()?.to_string();
        let told = request.agent_id().is_none() && last.contains("<task-notification>");
        told.then(|| Reply::say("The helper is done."))
    });
    let prompt = "%tool Agent {\"description\":\"a helper\",\"subagent_type\":\"general-purpose\",\"prompt\":\"%delay 1500\\n%say found\"}\n%say Started.";
    let ran = rig.run(&[prompt]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "Started.\nThe helper is done.\n", "{ran:?}");

    let ran = rig.run(&["--output", "json", "--no-wait", prompt]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = json(&ran.stdout);
    assert_eq!(
        (&report["text"], &report["follow_ups"]),
        (&"Started.".into(), &serde_json::json!([]))
    );

    let ran = rig.run(&["--quiet", "--wait-limit", "0", prompt]).await;
    assert_eq!((ran.code, &*ran.stdout), (Some(5), "Started.\n"), "{ran:?}");
    assert!(ran.stderr.contains("--wait-limit"), "{ran:?}");
}

#[tokio::test]
async fn a_run_is_interrupted_when_its_time_is_over() {
    let rig = Rig::start().await;
    let ran = rig.run(&["--timeout", "8s", "%hang\n%say begun"]).await;
    assert_eq!(ran.code, Some(124), "{ran:?}");
    assert!(ran.stderr.contains("longer than --timeout allows"), "{ran:?}");
    assert_eq!(ran.stdout, "begun\n", "{ran:?}");
    let ran = rig.run(&["--timeout", "10m", "%say in time"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "in time\n"), "{ran:?}");
}

#[tokio::test]
async fn what_is_no_image_is_not_sent() {
    let rig = Rig::start().await;
    rig.sandbox.write("notes.toml", "a = 1").unwrap();
    rig.sandbox.write("random.png", b"\x01\x02\x03\xff").unwrap();
    for (args, why) in [
        (["--image", "notes.toml"], "no image that the API takes"),
        (["--image", "random.png"], "no image that the API takes"),
        (["--file", "random.png"], "it is named as an image"),
    ] {
        let ran = rig.run(&[args[0], args[1], "%say seen"]).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(why), "{ran:?}");
    }
    assert!(rig.api.message_requests().is_empty());
    // The CLI looks into it, too.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";
    rig.sandbox.write("picture", PNG).unwrap();
    let ran = rig.run(&["--image", "picture", "%say seen"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked = format!("{:?}", rig.api.message_requests().last().unwrap());
    assert!(asked.contains("image/png"), "{asked}");
}

#[tokio::test]
async fn without_an_account_nothing_is_asked() {
    let rig = Rig::start().await;
    let run = async |args: &[&str]| rig.ran_without_account("run", args).await;
    for auth in ["inherit", "login"] {
        let ran = run(&["--no-ask", "--auth", auth, "%say hello"]).await;
        assert_eq!(ran.code, Some(8), "{ran:?}");
        assert_eq!(ran.stdout, "");
        assert!(
            ran.stderr.starts_with("outrigger: the CLI is not logged in"),
            "{ran:?}"
        );
        assert!(ran.stderr.contains("\n  hint: set ANTHROPIC_API_KEY"), "{ran:?}");
        assert!(ran.stderr.contains("another account with --auth"), "{ran:?}");
        assert!(!ran.stderr.contains("Auth::"), "{ran:?}");
    }
    assert_eq!(rig.api.request_count(), 0);
    // Who does not want that checked gets as far as the first turn.
    let ran = run(&["--no-ask", "--auth", "unchecked", "%say hello"]).await;
    assert_eq!(ran.code, Some(8), "{ran:?}");
}

/// What is piped in may come from anywhere, and what a blank precedes is a text on purpose, or by a slip.
#[tokio::test]
async fn a_command_that_is_sent_as_text_is_warned_of() {
    let rig = Rig::start().await;
    let text = "/context\n%say As text.";
    let warning = "warning: /context is a slash command, and was sent as text; ";
    let piped = rig.ran("run", &["--no-ask"], text).await;
    assert_eq!((piped.code, &*piped.stdout), (Some(0), "As text.\n"), "{piped:?}");
    let way_on = "as the argument of `outrigger run`, it is run\n";
    assert!(piped.stderr.contains(&format!("{warning}{way_on}")), "{piped:?}");

    let blank = rig.run(&[&format!(" {text}")]).await;
    assert_eq!(blank.stdout, "As text.\n", "{blank:?}");
    let way_on = "without the blank before it, it is run\n";
    assert!(blank.stderr.contains(&format!("{warning}{way_on}")), "{blank:?}");

    let frames = rig.ran("run", &["--no-ask", "--json"], text).await;
    assert!(
        frames.stdout.lines().all(|line| json(line)["type"].is_string()),
        "{frames:?}"
    );
    assert!(frames.stderr.contains(warning), "{frames:?}");
    let quiet = rig.ran("run", &["--no-ask", "--quiet"], text).await;
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("As text.\n", ""), "{quiet:?}");
    let run = rig.run(&["/context"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.stderr.contains("warning"), "{run:?}");
}

#[tokio::test]
async fn a_run_works_in_a_worktree_of_its_own() {
    outrigger_needs::needs!(outrigger_needs::program("git", "a package of the system has it"));
    let rig = Rig::start().await;
    let project = rig.sandbox.project();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
        let mut command = std::process::Command::new("git");
        command.args(identity).args(arguments).current_dir(&project);
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    let prompt = "%tool Bash {\"command\":\"touch made\"}\n%say Done.";
    let ran = rig.run(&["--allow", "Bash", prompt, "--worktree", "w"]).await;
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "Done.\n"), "{ran:?}");
    let worktree = project.canonicalize().unwrap().join(".claude/worktrees/w");
    assert!(worktree.join("made").exists() && !project.join("made").exists());
    let told = format!("worktree: {}\n", worktree.display());
    assert_eq!(ran.stderr.matches(&told).count(), 1, "{ran:?}");
    let refused = rig.run(&["%say never", "--worktree=../up"]).await;
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("Invalid worktree name"), "{refused:?}");
}

/// The CLI reads this argument late, which makes no other failure of it.
#[tokio::test]
async fn what_the_cli_does_not_start_with_is_no_end_of_a_session() {
    let rig = Rig::start().await;
    for args in [
        &["--worktree=x"][..],
        &["--resume", "11111111-aaaa-4aaa-8aaa-000000000001"],
    ] {
        let ran = rig.run(&[args, &["%say never"]].concat()).await;
        assert_eq!(ran.code, Some(3), "{ran:?}");
    }
}
