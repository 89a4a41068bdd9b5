//! `outrigger batch`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::rig::Rig;

/// The results by their ids; no id comes twice.
fn results(path: &Path) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut results = BTreeMap::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let id = line["id"].as_str().unwrap().to_owned();
        assert!(results.insert(id.clone(), line).is_none(), "{id} came twice");
    }
    results
}

/// Writes the file with the prompts.
fn prompts(rig: &Rig, lines: &[Value]) -> PathBuf {
    let path = rig.sandbox.project().join("prompts.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn each_prompt_has_a_result_and_what_is_done_is_not_done_again() {
    let rig = Rig::start().await;
    let path = prompts(
        &rig,
        &[
            json!({"id": "a", "prompt": "%say one", "metadata": {"row": 1}}),
            json!({"id": "b", "prompt": "%error 400 n=9 msg=\"no such thing\""}),
            json!("%say three"),
        ],
    );
    let out = rig.sandbox.project().join("results.jsonl");
    let args = [
        path.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--jobs",
        "2",
    ];
    let ran = rig.ran("batch", &args, "").await;
    assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("2 done, 1 failed"), "{ran:?}");
    assert!(
        ran.stderr.contains("b: ") && ran.stderr.contains("no such thing"),
        "{ran:?}"
    );
    let first = results(&out);
    assert_eq!(first.keys().collect::<Vec<_>>(), ["3", "a", "b"]);
    assert_eq!(
        (&first["a"]["text"], &first["a"]["metadata"]["row"]),
        (&json!("one"), &json!(1))
    );
    assert_eq!(
        (&first["b"]["status"], &first["3"]["text"]),
        (&json!("failed"), &json!("three"))
    );

    // The same once more is a mistake, unless it is said to go on.
    let ran = rig.ran("batch", &args, "").await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("--resume"), "{ran:?}");
    let asked = rig.api.requests().len();
    let ran = rig.ran("batch", &[&args[..], &["--resume"]].concat(), "").await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(rig.api.requests().len(), asked, "nothing is asked again");
    let again = results(&out);
    assert_eq!((&again["a"], again.len()), (&first["a"], 3));
}

#[tokio::test]
async fn a_batch_that_is_killed_goes_on() {
    let rig = Rig::start().await;
    let path = prompts(
        &rig,
        &[
            json!({"id": "quick", "prompt": "%say quick"}),
            json!({"id": "slow", "prompt": "%hang\n%say begun"}),
        ],
    );
    let out = rig.sandbox.project().join("results.jsonl");
    let args = [
        path.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--jobs",
        "1",
    ];
    let mut child = rig.spawn("batch", &args);
    // The first is done, and the second runs.
    let begun = async {
        loop {
            let journal = std::fs::read_to_string(out.with_extension("jsonl.journal")).unwrap_or_default();
            if journal.contains("\"begin\":{\"id\":\"slow\"") {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::rig::PATIENCE, begun)
        .await
        .expect("it begins");
    child.start_kill().unwrap();
    rig.finish(child).await;

    // With other words for the same id, it is not the same batch.
    let other = prompts(&rig, &[json!({"id": "quick", "prompt": "%say other"})]);
    let ran = rig
        .ran(
            "batch",
            &[other.to_str().unwrap(), "--out", args[2], "--resume"],
            "",
        )
        .await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("another prompt"), "{ran:?}");

    let path = prompts(
        &rig,
        &[
            json!({"id": "quick", "prompt": "%say quick"}),
            json!({"id": "slow", "prompt": "%hang\n%say begun"}),
            json!({"id": "new", "prompt": "%say new"}),
        ],
    );
    let more = ["--resume", "--timeout", "15s"];
    let args = [&[path.to_str().unwrap()], &args[1..], &more].concat();
    let ran = rig.ran("batch", &args, "").await;
    // What hangs is left once more.
    assert_eq!(ran.code, Some(124), "{ran:?}");
    let results = results(&out);
    assert_eq!(results["quick"]["text"], "quick");
    assert!(!results.contains_key("slow"), "{results:?}");
}

#[tokio::test]
async fn answers_of_a_shape_go_to_stdout_in_the_order_of_the_prompts() {
    let rig = Rig::start().await;
    let schema = rig.sandbox.project().join("schema.json");
    let shape = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    std::fs::write(&schema, shape.to_string()).unwrap();
    let prompt = |n: u8| {
        json!({"id": n, "prompt": format!("%tool StructuredOutput {{\"n\": {n}}}\n%say done")}).to_string()
    };
    let input = format!("{}\n{}\n", prompt(1), prompt(2));
    let args = [
        "-",
        "--out",
        "-",
        "--ordered",
        "--quiet",
        "--schema",
        schema.to_str().unwrap(),
    ];
    let ran = rig.ran("batch", &args, &input).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let outputs: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["output"]["n"].clone())
        .collect();
    assert_eq!(outputs, [1, 2]);
    assert_eq!(ran.stderr, "");
}

#[tokio::test]
async fn the_most_that_it_may_cost_ends_a_batch() {
    let rig = Rig::start().await;
    let lines: Vec<Value> = (0..6)
        .map(|n| json!(format!("%usage in=100000 out=1000\n%say {n}")))
        .collect();
    let path = prompts(&rig, &lines);
    let out = rig.sandbox.project().join("results.jsonl");
    let args = [
        path.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--jobs",
        "1",
        "--max-cost",
        "0.5",
        "--reserve",
        "0.2",
    ];
    let ran = rig.ran("batch", &args, "").await;
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(
        ran.stderr.contains("exhausted") && ran.stderr.contains("--resume goes on"),
        "{ran:?}"
    );
    let spent: f64 = results(&out)
        .values()
        .map(|line| line["cost_usd"].as_f64().unwrap())
        .sum();
    assert!(spent > 0.0 && spent <= 0.7, "{spent}");
}

#[tokio::test]
async fn wrong_prompts_are_named_before_anything_is_sent() {
    let rig = Rig::start().await;
    let path = prompts(&rig, &[json!("%say fine"), json!({"id": "x"})]);
    let out = rig.sandbox.project().join("results.jsonl");
    let ran = rig
        .ran(
            "batch",
            &[path.to_str().unwrap(), "--out", out.to_str().unwrap()],
            "",
        )
        .await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("line 2"), "{ran:?}");
    assert!(rig.api.requests().is_empty() && !out.exists());
}

/// A start that fails leaves nothing that keeps the same command from beginning.
#[tokio::test]
async fn what_failed_to_begin_is_begun_by_the_same_command() {
    let rig = Rig::start().await;
    let path = prompts(&rig, &[json!({"id": "a", "prompt": "%say one"})]);
    let out = rig.sandbox.project().join("results.jsonl");
    let args = [path.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let ran = rig.ran_without_account("batch", &args).await;
    assert_eq!(ran.code, Some(8), "{ran:?}");
    let wrong = [&args[..], &["--max-cost", "1", "--reserve", "-1"]].concat();
    let ran = rig.ran("batch", &wrong, "").await;
    assert_eq!(ran.code, Some(2), "{ran:?}");

    let ran = rig.ran("batch", &args, "").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(results(&out)["a"]["text"], "one");
    // What has begun is gone on with, and not begun again.
    std::fs::remove_file(&out).unwrap();
    let ran = rig.ran("batch", &args, "").await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains(".journal is there already"), "{ran:?}");
}

#[tokio::test]
async fn nothing_that_is_read_is_written_over() {
    let rig = Rig::start().await;
    let path = prompts(&rig, &[json!("%say one")]);
    let before = std::fs::read(&path).unwrap();
    let path = path.to_str().unwrap();
    let link = rig.sandbox.project().join("link.jsonl");
    std::os::unix::fs::symlink(path, &link).unwrap();
    // Another name of the same file, and a link to what is not there yet.
    let hard = rig.sandbox.project().join("hard.jsonl");
    std::fs::hard_link(path, &hard).unwrap();
    let dangling = rig.sandbox.project().join("dangling.jsonl");
    std::os::unix::fs::symlink("new.jsonl", &dangling).unwrap();
    let schema = rig.sandbox.project().join("schema.json");
    std::fs::write(&schema, "{}").unwrap();
    let hard_schema = rig.sandbox.project().join("hard_schema.json");
    std::fs::hard_link(&schema, &hard_schema).unwrap();
    let (link, new) = (link.to_str().unwrap(), "new.jsonl");
    let (hard, schema) = (hard.to_str().unwrap(), schema.to_str().unwrap());
    let hard_schema = hard_schema.to_str().unwrap();
    for args in [
        vec!["--out", hard],
        vec!["--out", new, "--journal", hard],
        vec!["--out", new, "--journal", "dangling.jsonl"],
        vec!["--out", "dangling.jsonl", "--journal", new],
        vec!["--out", schema, "--schema", schema],
        vec!["--out", hard_schema, "--schema", schema],
        vec!["--out", new, "--journal", schema, "--schema", hard_schema],
        vec!["--out", path],
        vec!["--out", link],
        vec!["--out", new, "--journal", path],
        vec!["--out", new, "--journal", new],
        vec!["--out", new, "--journal", "./new.jsonl"],
        vec!["--out", "-", "--journal", link],
    ] {
        let ran = rig
            .ran("batch", &[&[path, "--resume"], &args[..]].concat(), "")
            .await;
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("are the same file"), "{args:?}: {ran:?}");
        assert_eq!(std::fs::read(path).unwrap(), before, "{args:?}");
    }
    assert_eq!(std::fs::read(schema).unwrap(), b"{}");
    // The standard input may be the file, too.
    let command = rig.std_command("batch", &["-", "--resume", "--out", hard, "--journal", new]);
    let child = tokio::process::Command::from(command)
        .stdin(std::fs::File::open(path).unwrap())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let ran = rig.finish(child).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("are the same file"), "{ran:?}");
    assert_eq!(std::fs::read(path).unwrap(), before);
    // What is no file of results is not written anew, either.
    for text in [
        "notes\n",
        "{\"batch\":1}\n",
        "{\"id\": \"a\", \"prompt\": \"x\"}\n",
        "[1]",
    ] {
        let notes = rig.sandbox.project().join("notes");
        std::fs::write(&notes, text).unwrap();
        let ran = rig.ran("batch", &[path, "--resume", "--out", "notes"], "").await;
        assert_eq!(ran.code, Some(2), "{text}: {ran:?}");
        assert!(ran.stderr.contains("has no results"), "{text}: {ran:?}");
        assert_eq!(std::fs::read_to_string(&notes).unwrap(), text);
    }
    assert!(!rig.sandbox.project().join(new).exists());
    assert!(rig.api.requests().is_empty());
}

#[tokio::test]
async fn a_full_disk_is_named_and_what_is_done_is_kept() {
    let rig = Rig::start().await;
    let path = rig.sandbox.project().join("prompts.jsonl");
    let line = r#"{"prompt":"%say one","metadata":{"b":123456789012345678901234567890,"a":1}}"#;
    std::fs::write(&path, line).unwrap();
    let journal = rig.sandbox.project().join("journal");
    let (path, journal) = (path.to_str().unwrap(), journal.to_str().unwrap());
    let args = [path, "--journal", journal, "--out"];
    let full = rig.ran("batch", &[&args[..], &["/dev/full"]].concat(), "").await;
    assert_eq!(full.code, Some(1), "{full:?}");
    assert!(full.stderr.contains("cannot write /dev/full"), "{full:?}");
    let asked = rig.api.requests().len();
    let ran = rig
        .ran("batch", &[&args[..], &["-", "--resume"]].concat(), "")
        .await;
    assert_eq!((ran.code, rig.api.requests().len()), (Some(0), asked), "{ran:?}");
    // As it came.
    let metadata = r#""metadata":{"b":123456789012345678901234567890,"a":1}"#;
    assert!(ran.stdout.contains(metadata), "{ran:?}");
}

/// The journal is what says that a prompt was answered and paid for.
#[tokio::test]
async fn results_stay_when_the_journal_is_not_theirs() {
    let rig = Rig::start().await;
    let path = prompts(&rig, &[json!({"id": "a", "prompt": "%say one"})]);
    let out = rig.sandbox.project().join("results.jsonl");
    let args = [path.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let ran = rig.ran("batch", &args, "").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (before, asked) = (std::fs::read(&out).unwrap(), rig.api.requests().len());

    let other = [&args[..], &["--resume", "--journal", "other"]].concat();
    std::fs::rename(out.with_extension("jsonl.journal"), out.with_extension("kept")).unwrap();
    // The second time, the journal is there.
    for args in [&other, &other, &[&args[..], &["--resume"]].concat()] {
        let ran = rig.ran("batch", args, "").await;
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("knows of nothing"), "{args:?}: {ran:?}");
        assert_eq!(std::fs::read(&out).unwrap(), before, "{args:?}");
    }
    assert_eq!(rig.api.requests().len(), asked);
}

/// Makes a pipe with this name.
#[cfg(unix)]
fn pipe(rig: &Rig, name: &str) -> PathBuf {
    let pipe = rig.sandbox.project().join(name);
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    pipe
}

/// The other end of a pipe, once the program has opened its own.
#[cfg(unix)]
async fn other_end(pipe: PathBuf) -> std::fs::File {
    let opened = tokio::task::spawn_blocking(move || std::fs::File::options().write(true).open(pipe));
    opened.await.unwrap().unwrap()
}

#[cfg(unix)]
fn signal(child: &tokio::process::Child, signal: rustix::process::Signal) {
    let pid = i32::try_from(child.id().expect("it runs")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Waits until a file has these words.
#[cfg(unix)]
async fn until_written(file: &Path, words: &str) {
    let written = async {
        while !std::fs::read_to_string(file).is_ok_and(|text| text.contains(words)) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::rig::PATIENCE, written)
        .await
        .expect("it is written");
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_ends_it_while_it_opens_its_files() {
    let rig = Rig::start().await;
    let path = prompts(&rig, &[json!("%say never")]);
    let path = path.to_str().unwrap();
    // Nobody reads the results, and the journal is opened before.
    let results = pipe(&rig, "results");
    let child = rig.spawn("batch", &[path, "--out", results.to_str().unwrap()]);
    until_written(&results.with_extension("journal"), "batch").await;
    signal(&child, rustix::process::Signal::INT);
    let ran = rig.finish(child).await;
    assert_eq!((ran.code, &*ran.stderr), (Some(130), ""), "{ran:?}");
    assert!(rig.api.requests().is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_ends_it_while_nobody_reads_its_results() {
    let rig = Rig::start().await;
    // More than a pipe holds.
    let path = prompts(&rig, &[json!(format!("%say {}", "x".repeat(200_000)))]);
    let journal = rig.sandbox.project().join("journal");
    let args = [
        path.to_str().unwrap(),
        "--out",
        "-",
        "--journal",
        journal.to_str().unwrap(),
    ];
    let mut child = rig.spawn("batch", &args);
    // Kept open.
    let stdout = child.stdout.take();
    until_written(&journal, "\"end\"").await;
    signal(&child, rustix::process::Signal::TERM);
    let ran = rig.finish(child).await;
    assert_eq!(ran.code, Some(143), "{ran:?}");
    drop(stdout);
}

/// The same for a conversation, and for one prompt.
#[cfg(unix)]
#[tokio::test]
async fn a_signal_ends_it_while_it_reads_the_files_of_its_flags() {
    let rig = Rig::start().await;
    let path = prompts(&rig, &[json!("%say never")]);
    let path = path.to_str().unwrap();
    for flag in ["--schema", "--policy", "--settings", "--agents"] {
        for (command, args) in [
            ("run", &["%say never"][..]),
            ("batch", &[path, "--out", "results"][..]),
            ("chat", &[][..]),
        ] {
            if (command, flag) == ("chat", "--schema") {
                continue;
            }
            let pipe = pipe(&rig, &format!("{command}{flag}"));
            let child = rig.spawn(command, &[args, &[flag, pipe.to_str().unwrap()]].concat());
            let writer = other_end(pipe).await;
            signal(&child, rustix::process::Signal::TERM);
            let ran = rig.finish(child).await;
            // It is the signal that ends it.
            assert_eq!(ran.code, None, "{command} {flag}: {ran:?}");
            drop(writer);
        }
    }
    assert!(rig.api.requests().is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_ends_it_while_its_prompts_are_read() {
    let rig = Rig::start().await;
    let pipe = pipe(&rig, "prompts");
    let child = rig.spawn("batch", &[pipe.to_str().unwrap(), "--out", "results"]);
    // The signals are caught first.
    let mut writer = other_end(pipe).await;
    std::io::Write::write_all(&mut writer, b"\"%say never\"\n").unwrap();
    signal(&child, rustix::process::Signal::INT);
    let ran = rig.finish(child).await;
    assert_eq!((ran.code, &*ran.stderr), (Some(130), ""), "{ran:?}");
    assert!(rig.api.requests().is_empty());
    drop(writer);
}
