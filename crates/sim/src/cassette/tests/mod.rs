//! Recording, what is in the file, reading back and playing.

mod exact;
mod leaks;
mod recordings;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};

use super::*;
use crate::peer::{Agent, Exit, Reply, Steps};

/// A file in memory.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn about(env: &[(&str, &str)]) -> About {
    let env = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    About::new(["claude", "--verbose"], env, "/home/jane/project")
}

/// Says lines to a peer, each when a line of this kind has come, and gives all that it said.
async fn converse(
    mut stdin: impl AsyncWrite + Unpin,
    stdout: impl tokio::io::AsyncRead + Unpin,
    said: &[(&str, Value)],
) -> Vec<Value> {
    let mut lines = BufReader::new(stdout).lines();
    let mut seen = Vec::new();
    for (after, line) in said {
        while !after.is_empty() {
            let Some(line) = lines.next_line().await.unwrap() else {
                return seen;
            };
            if line.is_empty() {
                continue;
            }
            let frame: Value = serde_json::from_str(&line).unwrap();
            let kind = crate::running::kind(&frame);
            seen.push(frame);
            if kind == *after {
                break;
            }
        }
        let mut line = line.clone();
        // The answer to what was asked last.
        if line["response"]["request_id"] == "$last" {
            line["response"]["request_id"] = seen.last().unwrap()["request_id"].clone();
        }
        // A peer that is gone has said why.
        if stdin.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            break;
        }
    }
    loop {
        match lines.next_line().await.unwrap() {
            None => return seen,
            Some(line) => {
                let frame: Value = serde_json::from_str(&line).unwrap();
                let kind = crate::running::kind(&frame);
                seen.push(frame);
                if kind.starts_with("result/") {
                    break;
                }
            }
        }
    }
    drop(stdin);
    while let Some(line) = lines.next_line().await.unwrap() {
        seen.push(serde_json::from_str(&line).unwrap());
    }
    seen
}

fn prompt(uuid: &str, text: &str) -> Value {
    json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}})
}

fn request(id: &str, subtype: &str) -> Value {
    json!({"type": "control_request", "request_id": id, "request": {"subtype": subtype}})
}

fn allow() -> Value {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": "$last", "response": {"behavior": "allow"}}})
}

const FIRST: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const SECOND: &str = "bbbbbbbb-0000-4000-8000-000000000002";

fn conversation(uuid: &str, id: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("", request(id, "initialize")),
        (
            "control_response/success",
            prompt(uuid, "%tool Bash {\"command\":\"touch a.txt\"}\n%say done"),
        ),
        ("control_request/can_use_tool", allow()),
    ]
}

/// A session with a simulated CLI, recorded.
async fn recorded(agent: crate::peer::agent::Builder, about: &About, said: &[(&str, Value)]) -> String {
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), about).unwrap();
    let (io, running) = agent.spawn_in_memory();
    let (stdin, stdout) = (recorder.stdin(io.stdin), recorder.stdout(io.stdout));
    let mut stderr = recorder.stderr(io.stderr);
    converse(stdin, stdout, said).await;
    stderr.read_to_string(&mut String::new()).await.unwrap();
    match running.exit().await {
        Exit::Code(code) => recorder.exit(Some(code), None),
        Exit::Signal(signal) => recorder.exit(None, Some(signal)),
    }
    recorder.finish().unwrap();
    paper.text()
}

async fn session() -> String {
    let agent = Agent::builder()
        .cwd("/home/jane/project")
        .home("/home/jane")
        .directives();
    recorded(
        agent,
        &about(&[("HOME", "/home/jane"), ("USER", "jane")]),
        &conversation(FIRST, "req_1"),
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn a_session_is_written_down_and_plays_again_with_other_ids_and_directories() {
    let text = session().await;
    assert!(!text.contains("jane"), "{text}");
    let cassette = Cassette::parse(&text).unwrap();
    assert_eq!(cassette.to_text(), text);
    assert_eq!(cassette.header.version, VERSION);
    assert_eq!(cassette.header.cwd, "{{cwd}}");
    assert_eq!(cassette.cli_version().as_deref(), Some("2.1.332"));
    assert_eq!(cassette.exit(), Some((Some(0), None)));
    assert!(matches!(cassette.events.last().unwrap().what, What::Exit { .. }));

    let env = [("HOME".to_owned(), "/Users/joe".to_owned())];
    let replay = CassetteReplay::new(cassette.clone()).surroundings(["claude"], env, "/srv/there");
    let (io, playing) = replay.spawn_in_memory();
    let seen = converse(io.stdin, io.stdout, &conversation(SECOND, "other")).await;
    assert_eq!(playing.exit().await, Exit::Code(0), "{:?}", playing.divergence());
    assert_eq!(playing.running().report().verdict, Ok(()));

    let recorded: Vec<_> = cassette.out().map(Said::value).collect();
    assert_eq!(seen.len(), recorded.len());
    let kinds = |frames: &[Value]| frames.iter().map(crate::running::kind).collect::<Vec<_>>();
    assert_eq!(kinds(&seen), kinds(&recorded));
    let played = Value::from(seen).to_string();
    assert!(
        played.contains("/srv/there") && !played.contains("{{cwd}}"),
        "{played}"
    );
    assert!(played.contains(SECOND) && !played.contains(FIRST), "{played}");
    assert!(
        played.contains("\"other\"") && !played.contains("req_1"),
        "{played}"
    );
}

async fn replayed(text: &str, said: &[(&str, Value)]) -> Option<Divergence> {
    let replay = CassetteReplay::new(Cassette::parse(text).unwrap()).name("it.ndjson");
    let (io, playing) = replay.spawn_in_memory();
    converse(io.stdin, io.stdout, said).await;
    let exit = playing.exit().await;
    let divergence = playing.divergence();
    let wrong = exit == Exit::Code(CassetteReplay::DIVERGED);
    assert_eq!(divergence.is_some(), wrong, "{exit:?} {divergence:?}");
    let mut complaint = Vec::new();
    let mut stderr = io.stderr;
    stderr.read_to_end(&mut complaint).await.unwrap();
    if let Some(divergence) = &divergence {
        let complaint = String::from_utf8_lossy(&complaint);
        assert!(
            complaint.trim_end().ends_with(&divergence.to_string()),
            "{complaint}"
        );
        assert!(playing.running().report().verdict.is_err());
    }
    divergence
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_something_else_is_told_where_and_what() {
    let text = session().await;
    let mut other = conversation(FIRST, "req_1");
    other[1].1 = prompt(FIRST, "%say something else");
    let divergence = replayed(&text, &other).await.unwrap();
    let shown = divergence.to_string();
    assert!(
        shown.contains("left the recording at line 4 of it.ndjson"),
        "{shown}"
    );
    assert!(shown.contains("EXPECTED user"), "{shown}");
    assert!(
        shown.contains("BUT      /message/content/0/text: \"%tool Bash"),
        "{shown}"
    );
    assert!(shown.contains("3 < control_response/success"), "{shown}");
    assert!(shown.contains("7 < system/init"), "{shown}");

    // The wrong order, too little, too much.
    let mut swapped = conversation(FIRST, "req_1");
    swapped.swap(0, 1);
    (swapped[0].0, swapped[1].0) = ("", "");
    let shown = replayed(&text, &swapped).await.unwrap().to_string();
    assert!(
        shown.contains("EXPECTED control_request/initialize") && shown.contains("RECEIVED user"),
        "{shown}"
    );

    let shown = replayed(&text, &conversation(FIRST, "req_1")[..2])
        .await
        .unwrap()
        .to_string();
    assert!(
        shown.contains("EXPECTED control_response/success") && shown.contains("RECEIVED nothing within 30s"),
        "{shown}"
    );

    let mut more = conversation(FIRST, "req_1");
    more.push(("result/success", prompt(SECOND, "and this")));
    let shown = replayed(&text, &more).await.unwrap().to_string();
    assert!(
        shown.contains("EXPECTED the end of the input") && shown.contains("and this"),
        "{shown}"
    );

    let mut denied = conversation(FIRST, "req_1");
    denied[2].1["response"]["response"]["behavior"] = json!("deny");
    let shown = replayed(&text, &denied).await.unwrap().to_string();
    assert!(
        shown.contains("/response/response/behavior: \"allow\" was recorded, \"deny\" came"),
        "{shown}"
    );
}

#[tokio::test(start_paused = true)]
async fn requests_that_only_ask_may_come_at_another_time() {
    let agent = || Agent::builder().directives();
    let asks = ("control_response/success", request("ctx", "get_settings"));
    let say = |after, uuid| (after, prompt(uuid, "%say hi"));
    let early = [
        ("", request("i", "initialize")),
        asks.clone(),
        say("control_response/success", FIRST),
    ];
    let late = [
        ("", request("i", "initialize")),
        say("control_response/success", FIRST),
        ("system/init", request("ctx", "get_settings")),
    ];
    for (then, now) in [(&early, &late), (&late, &early)] {
        let text = recorded(agent(), &about(&[]), then).await;
        assert!(text.contains("get_settings"));
        assert_eq!(replayed(&text, now).await, None, "{text}");
        // Unless it was never made.
        let without: Vec<_> = now
            .iter()
            .filter(|(_, line)| line["request"]["subtype"] != "get_settings")
            .cloned()
            .collect();
        assert!(replayed(&text, &without).await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_played_at_the_pace_that_is_asked_for() {
    let script = Steps::new()
        .initialize()
        .sleep(Duration::from_secs(8))
        .send(json!({"type": "result", "subtype": "success"}))
        .expect_end()
        .exit(0);
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), &about(&[])).unwrap();
    let (io, running) = script.spawn_in_memory();
    let said = [("", request("i", "initialize"))];
    converse(recorder.stdin(io.stdin), recorder.stdout(io.stdout), &said).await;
    running.exit().await;
    recorder.exit(Some(0), None);
    recorder.finish().unwrap();
    let cassette = Cassette::parse(&paper.text()).unwrap();
    for (pace, seconds) in [(Pace::None, 0), (Pace::Original, 8), (Pace::Scaled(0.5), 4)] {
        let begun = tokio::time::Instant::now();
        let (io, playing) = CassetteReplay::new(cassette.clone()).pace(pace).spawn_in_memory();
        converse(io.stdin, io.stdout, &said).await;
        assert_eq!(playing.exit().await, Exit::Code(0));
        assert_eq!(begun.elapsed().as_secs(), seconds, "{pace:?}");
    }
}

/// The recorder is killed in the middle of each line in turn.
#[tokio::test(start_paused = true)]
async fn a_recording_that_was_cut_off_can_be_read_up_to_there() {
    let text = session().await;
    let first = text.find('\n').unwrap();
    let whole = Cassette::parse(&text).unwrap();
    for cut in (first + 1..text.len())
        .step_by(97)
        .filter(|cut| text.is_char_boundary(*cut))
    {
        let cassette = Cassette::parse(&text[..cut]).unwrap();
        let lines = text[..cut].matches('\n').count() - 1;
        assert!(cassette.events.len() - lines <= 1, "at {cut}");
        assert_eq!(cassette.events, whole.events[..cassette.events.len()]);
        let torn = text[..cut].rsplit('\n').next().filter(|last| !last.is_empty());
        assert!(
            cassette.torn.as_deref() == torn || cassette.events.len() > lines,
            "at {cut}"
        );
    }
    // Damage elsewhere is no torn line.
    let damaged = text.replacen("\"dir\":\"out\"", "\"dir\":\"up\"", 1);
    let error = Cassette::parse(&damaged).unwrap_err().to_string();
    assert_eq!(
        error,
        "line 3 of the cassette is damaged: unknown direction \"up\""
    );
    for (first, says) in [
        ("{}", "a field of it is missing, or is something else"),
        ("junk", "no JSON from column 1 on"),
        ("{\"t\":0", "its JSON ends too early"),
    ] {
        let error = Cassette::parse(&format!("{first}\n")).unwrap_err();
        assert!(
            matches!(&error, CassetteError::NoHeader(why) if why == says),
            "{error}"
        );
    }
}

#[test]
fn a_disk_that_is_full_does_not_stop_the_session_and_is_told() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let recorder = Recorder::new(Full(2), &about(&[])).unwrap();
        let (there, mut here) = tokio::io::duplex(1024);
        let mut stdin = recorder.stdin(there);
        for _ in 0..3 {
            stdin.write_all(b"{\"type\":\"keep_alive\"}\n").await.unwrap();
        }
        drop(stdin);
        let mut passed = String::new();
        here.read_to_string(&mut passed).await.unwrap();
        assert_eq!(passed.lines().count(), 3);
        let error = recorder.finish().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        assert!(Recorder::new(Full(0), &about(&[])).is_err());
    });
}

/// Everything that must not be in a file, and where it was put.
#[tokio::test(start_paused = true)]
async fn replies_of_a_model_that_are_recorded_are_those_that_are_played() {
    let agent = Agent::builder()
        .partial_messages(true)
        .replies([Reply::say("a longer answer of several words")]);
    let said = [
        ("", request("i", "initialize")),
        ("control_response/success", prompt(FIRST, "hi")),
    ];
    let text = recorded(agent, &about(&[]), &said).await;
    let cassette = Cassette::parse(&text).unwrap();
    let (io, playing) = CassetteReplay::new(cassette.clone()).spawn_in_memory();
    let seen = converse(io.stdin, io.stdout, &said).await;
    assert_eq!(playing.divergence(), None);
    // The directories are those of nobody, then and now.
    let recorded = cassette
        .out()
        .map(|said| said.map(|line| Places::default().fill(line)).value());
    assert_eq!(seen, recorded.collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn what_is_cut_and_renamed_plays_as_before() {
    let turns = [
        ("", request("i", "initialize")),
        ("control_response/success", prompt(FIRST, "%say one")),
        ("result/success", prompt(SECOND, "%say two")),
    ];
    let agent = Agent::builder().partial_messages(true).directives();
    // Two results: the first is no end.
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), &about(&[])).unwrap();
    let (io, running) = agent.spawn_in_memory();
    let seen = converse(recorder.stdin(io.stdin), recorder.stdout(io.stdout), &turns).await;
    assert_eq!(seen.iter().filter(|frame| frame["type"] == "result").count(), 2);
    assert_eq!(running.exit().await, Exit::Code(0));
    recorder.exit(Some(0), None);
    recorder.finish().unwrap();
    let whole = Cassette::parse(&paper.text()).unwrap();

    let mut cut = whole.clone();
    cut.trim_to_turns(2);
    assert_eq!(cut, whole);
    cut.trim_to_turns(1);
    cut.without_stream_events();
    assert!(!cut.to_text().contains("stream_event") && whole.to_text().contains("stream_event"));
    cut.edit_ids();
    let again = cut.clone();
    cut.edit_ids();
    assert_eq!(cut, again, "a second time changes nothing");
    assert!(!cut.to_text().contains(FIRST) && cut.to_text().contains("00000000-0000-4000-8000-000000000001"));
    assert_eq!(replayed(&cut.to_text(), &turns[..2]).await, None);
    assert!(replayed(&cut.to_text(), &turns).await.is_some());
    assert_eq!(replayed(&whole.to_text(), &turns).await, None);
}

#[tokio::test(start_paused = true)]
async fn the_command_line_is_compared_by_what_it_says() {
    let cassette = |argv: Value| {
        let header = json!({"t": 0, "dir": "meta", "msg": {"cassette": 2, "argv": argv}});
        Cassette::parse(&format!("{header}\n")).unwrap()
    };
    let then = json!([
        "claude",
        "--verbose",
        "--model",
        "opus",
        "--add-dir={{home}}/x",
        "--session-id",
        FIRST,
        "--token",
        "{{secret}}"
    ]);
    let play = async |argv: &[&str], ignored: &str| {
        let replay = CassetteReplay::new(cassette(then.clone())).ignore(ignored);
        let env = [("HOME".to_owned(), "/home/jo".to_owned())];
        let (io, playing) = replay
            .surroundings(argv.to_vec(), env, "/home/jo/it")
            .spawn_in_memory();
        drop(io.stdin);
        playing.exit().await;
        playing.divergence()
    };
    let same = [
        "--session-id",
        SECOND,
        "--model=opus",
        "-d",
        "--add-dir",
        "/home/jo/x",
        "--verbose",
        "--token",
        "another",
    ];
    assert_eq!(play(&same, "/none").await, None);
    // Nothing is known of it.
    assert_eq!(play(&[], "/none").await, None);
    let other = same.map(|argument| argument.replace("opus", "sonnet"));
    let other: Vec<&str> = other.iter().map(String::as_str).collect();
    let divergence = play(&other, "/none").await.unwrap();
    assert_eq!(divergence.line, 1);
    assert_eq!(
        divergence.to_string().lines().last().unwrap().trim(),
        "BUT      /argv/--model/0: \"opus\" was recorded, \"sonnet\" came"
    );
    assert_eq!(play(&other, "/argv/--model").await, None);
    assert_eq!(play(&other, "/argv").await, None);
    let more: Vec<&str> = same
        .iter()
        .copied()
        .chain(["--include-partial-messages"])
        .collect();
    let divergence = play(&more, "/none").await.unwrap().to_string();
    assert!(
        divergence.contains("/argv/--include-partial-messages: nothing was recorded, [true] came"),
        "{divergence}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_file_can_be_read_and_played_and_one_of_another_version_cannot() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cassettes/session.ndjson");
    let cassette = Cassette::read(path).unwrap();
    assert_eq!(cassette.exit(), Some((Some(0), None)));
    let text = cassette.to_text();
    assert_eq!(replayed(&text, &conversation(SECOND, "other")).await, None);
    for version in [1, 99] {
        let other = text.replacen(
            &format!("\"cassette\":{VERSION}"),
            &format!("\"cassette\":{version}"),
            1,
        );
        let error = Cassette::parse(&other).unwrap_err();
        assert!(
            matches!(error, CassetteError::Version(found) if found == version),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
#[ignore = "writes the file"]
async fn write_file() {
    let mut cassette = Cassette::parse(&session().await).unwrap();
    cassette.edit_ids();
    // A blank line, and a byte that is no UTF-8.
    let event = |what| Event {
        at: Duration::ZERO,
        what,
    };
    cassette
        .events
        .insert(1, event(What::Out(Said::Text(String::new()), LineEnd::There)));
    cassette
        .events
        .insert(2, event(What::Err("caf\u{10FFE9}".to_owned())));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cassettes");
    std::fs::create_dir_all(path).unwrap();
    cassette.write(format!("{path}/session.ndjson")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_follows_a_signal_is_played_when_it_is_sent() {
    let text = [
        r#"{"t":0,"dir":"meta","msg":{"cassette":2}}"#,
        r#"{"t":0,"dir":"out","msg":{"type":"system"}}"#,
        r#"{"t":1,"dir":"meta","msg":{"signal":"SIGINT"}}"#,
        r#"{"t":1,"dir":"out","msg":{"type":"result"}}"#,
        r#"{"t":1,"dir":"meta","msg":{"exit_code":1,"exit_signal":null}}"#,
    ];
    let cassette = Cassette::parse(&text.join("\n")).unwrap();
    let (mut io, playing) = CassetteReplay::new(cassette.clone()).spawn_in_memory();
    playing.running().signal(crate::peer::Signal::Int);
    let mut said = String::new();
    io.stdout.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "{\"type\":\"system\"}\n{\"type\":\"result\"}\n");
    assert_eq!(playing.exit().await, Exit::Code(1));

    let (_io, playing) = CassetteReplay::new(cassette.clone()).spawn_in_memory();
    assert_eq!(
        playing.exit().await,
        Exit::Code(CassetteReplay::DIVERGED),
        "nobody signals"
    );
    let (_io, playing) = CassetteReplay::new(cassette).spawn_in_memory();
    playing.running().signal(crate::peer::Signal::Kill);
    assert_eq!(playing.exit().await, Exit::Signal(9));
}
