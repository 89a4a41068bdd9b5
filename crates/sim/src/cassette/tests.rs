//! Recording, what is in the file, reading back and playing.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};

use super::*;
use crate::peer::{Agent, Exit, Reply, Script};

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
            let frame: Value = serde_json::from_str(&line).unwrap();
            let kind = crate::peer::kind_of(&frame);
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
                let kind = crate::peer::kind_of(&frame);
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
    assert_eq!(cassette.cli_version().as_deref(), Some("2.1.330"));
    assert_eq!(cassette.exit(), Some((Some(0), None)));
    assert!(matches!(cassette.events.last().unwrap().what, What::Exit { .. }));

    let env = [("HOME".to_owned(), "/Users/joe".to_owned())];
    let replay = Replay::new(cassette.clone()).surroundings(["claude"], env, "/srv/there");
    let (io, playing) = replay.spawn_in_memory();
    let seen = converse(io.stdin, io.stdout, &conversation(SECOND, "other")).await;
    assert_eq!(playing.exit().await, Exit::Code(0), "{:?}", playing.divergence());
    assert_eq!(playing.running().report().verdict, Ok(()));

    let recorded: Vec<_> = cassette.out().map(Said::value).collect();
    assert_eq!(seen.len(), recorded.len());
    let kinds = |frames: &[Value]| frames.iter().map(crate::peer::kind_of).collect::<Vec<_>>();
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
    let replay = Replay::new(Cassette::parse(text).unwrap()).name("it.ndjson");
    let (io, playing) = replay.spawn_in_memory();
    converse(io.stdin, io.stdout, said).await;
    let exit = playing.exit().await;
    let divergence = playing.divergence();
    let wrong = exit == Exit::Code(Replay::DIVERGED);
    assert_eq!(divergence.is_some(), wrong, "{exit:?} {divergence:?}");
    let mut complaint = String::new();
    let mut stderr = io.stderr;
    stderr.read_to_string(&mut complaint).await.unwrap();
    if let Some(divergence) = &divergence {
        assert_eq!(complaint.trim_end(), divergence.to_string());
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
    let script = Script::new()
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
        let (io, playing) = Replay::new(cassette.clone()).pace(pace).spawn_in_memory();
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
    assert!(matches!(Cassette::parse("{}\n"), Err(CassetteError::NoHeader(_))));
    let newer = text.replacen("\"cassette\":1", "\"cassette\":99", 1);
    assert!(matches!(Cassette::parse(&newer), Err(CassetteError::Newer(99))));
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
const KEY: &str = "sk-ant-api03-pl4nted-KEY_0123456789";
const TOKEN: &str = "planted/token+of=words!";
const PHRASE: &str = "planted phrase with spaces";

fn leak_about() -> About {
    let env = [
        ("ANTHROPIC_API_KEY", KEY),
        ("MY_SERVICE_TOKEN", TOKEN),
        ("CLAUDE_CODE_OAUTH_TOKEN", "planted-oauth"),
        ("CLAUDE_CODE_ENTRYPOINT", "sdk-rust"),
        ("HOME", "/home/jane.planted"),
        ("USER", "jane.planted"),
        ("HOSTNAME", "planted-host"),
        ("CLAUDE_CODE_TMPDIR", "/var/planted-tmp"),
        ("SOMETHING_ELSE", "planted elsewhere"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = format!("--settings={{\"env\":{{\"X\":\"{KEY}\"}}}}");
    let argv = [
        "claude",
        "--api-token",
        "planted-argument",
        &settings,
        "--add-dir=/home/jane.planted/x",
    ];
    About::new(argv, env, "/home/jane.planted/the-project").rules(|rules| {
        rules
            .literal(PHRASE)
            .pattern("planted-[0-9]+")
            .unwrap()
            .pointer("/hidden/*/here")
            .unwrap()
    })
}

#[tokio::test]
async fn nothing_that_was_planted_is_in_the_file() {
    use base64::Engine as _;
    let paper = Paper::default();
    let recorder = Recorder::new(paper.clone(), &leak_about()).unwrap();
    let encoded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let escaped: String = KEY
        .chars()
        .map(|char| format!("\\u{:04x}", u32::from(char)))
        .collect();
    let twice = json!({"nested": json!({"deep": KEY, "at": "/home/jane.planted/x"}).to_string()}).to_string();
    let delta = |text: &str| {
        json!({"type": "stream_event", "parent_tool_use_id": null, "event": {"type": "content_block_delta", "index": 0,
               "delta": {"type": "text_delta", "text": text}}})
        .to_string()
    };
    let json_delta = |text: &str| {
        json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 1,
               "delta": {"type": "input_json_delta", "partial_json": text}}})
        .to_string()
    };
    let mut out: Vec<String> = vec![
        format!("{{\"type\":\"user\",\"text\":\"{escaped}\"}}"),
        format!("{{\"type\":\"user\",\"text\":\"sk\\u002dant\\u002dapi03\\u002dpl4nted and more\"}}"),
        json!({"type": "user", "tool_use_result": {"stdout": twice}}).to_string(),
        json!({"type": "user", "text": format!("base64: {}", encoded(KEY))}).to_string(),
        json!({"type": "user", "text": format!("base64: {}", encoded(&format!("x:{KEY}:planted")))}).to_string(),
        json!({"type": "user", "text": format!("base64: {}", encoded(&format!("user:{TOKEN}\n")))}).to_string(),
        json!({"type": "user", "text": "url https://jane:planted@host/x?token=planted%2Ftoken%2Bof%3Dwords%21&y"}).to_string(),
        json!({"type": "user", "text": format!("the token is {TOKEN}, and the phrase {PHRASE}.")}).to_string(),
        json!({"type": "user", "text": "-----BEGIN RSA PRIVATE KEY-----\nplanted\n-----END RSA PRIVATE KEY-----\nafter"}).to_string(),
        json!({"type": "user", "headers": {"Authorization": "Bearer planted", "cookie": "planted"}, "api_key": "planted"}).to_string(),
        json!({"type": "user", "text": "curl -H 'Authorization: Bearer planted' and X-Api-Key: planted\nAPI_TOKEN=planted"}).to_string(),
        json!({"type": "user", "text": "jane.planted@example.com wrote", "hidden": {"a": {"here": "planted"}}, "n": "planted-123"}).to_string(),
        json!({"type": "control_response", "response": {"subtype": "success", "response": {"account": {
            "email": "planted@example.org", "organization": "Planted Inc.", "tokenSource": "claude.ai", "apiProvider": "firstParty"}}}})
        .to_string(),
        json!({"type": "system", "cwd": "/home/jane.planted/the-project", "memory": "/home/jane.planted/.claude/projects/-home-jane-planted-the-project/",
               "/home/jane.planted/key": 1, "socket": "/var/planted-tmp/1.sock", "host": "planted-host"})
        .to_string(),
        format!("no frame, but {KEY}"),
    ];
    for piece in [
        "it is s",
        "k-a",
        "nt-api03-pl4n",
        "ted-KEY_01234",
        "56789 and ",
        "bearer ",
        "planted",
        "abcd on\n",
        "plan",
        "ted@example",
        ".com",
    ] {
        out.push(delta(piece));
    }
    out.push(
        json!({"type": "stream_event", "event": {"type": "content_block_stop", "index": 0}}).to_string(),
    );
    for piece in [
        "{\"key\":\"sk-",
        "ant-api03-pl4nted",
        "-KEY_0123456789\",\"path\":\"/home/ja",
        "ne.planted/x\"}",
    ] {
        out.push(json_delta(piece));
    }
    out.push(json!({"type": "result", "subtype": "success"}).to_string());

    let (mut theirs, ours) = tokio::io::duplex(1 << 20);
    let mut stdout = recorder.stdout(ours);
    for line in &out {
        theirs.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    drop(theirs);
    let mut passed = String::new();
    stdout.read_to_string(&mut passed).await.unwrap();
    assert_eq!(passed, out.join("\n") + "\n", "what passes is not touched");

    let mut stderr = recorder.stderr(&b"failed with planted-oauth in /home/jane.planted/.claude"[..]);
    stderr.read_to_string(&mut String::new()).await.unwrap();
    let mut stdin = recorder.stdin(tokio::io::sink());
    stdin
        .write_all(format!("{}\n", prompt(FIRST, &format!("use {KEY}"))).as_bytes())
        .await
        .unwrap();
    drop(stdin);
    recorder.exit(Some(0), None);
    recorder.finish().unwrap();

    let text = paper.text();
    let lower = text.to_lowercase();
    let found = ["planted", "pl4nted"].iter().find_map(|word| lower.find(word));
    let around = found.map(|at| &text[at.saturating_sub(150)..(at + 50).min(text.len())]);
    assert_eq!(around, None);
    assert!(!lower.contains("jane"), "{text}");
    let core = encoded(&KEY[..KEY.len() - 2]);
    assert!(!text.contains(&core[..12]), "{text}");
    assert!(!text.contains(&escaped[..16]), "{text}");
    // As it was put there: behind five bytes.
    let within = encoded(&format!("user:{TOKEN}\n"));
    assert!(!text.contains(&within[8..24]), "{text}");
    // What is left is as it was.
    let cassette = Cassette::parse(&text).unwrap();
    assert_eq!(cassette.out().count(), out.len());
    let said = text.matches("{{secret:ANTHROPIC_API_KEY}}").count();
    assert!(said >= 6, "{said} in {text}");
    assert!(
        text.contains("\"tokenSource\":\"claude.ai\"") && text.contains("and more") && text.contains("after"),
        "{text}"
    );
    assert!(text.contains("CLAUDE_CODE_ENTRYPOINT") && !text.contains("SOMETHING_ELSE"));
    // What was taken out is not taken for a secret again.
    let redactor = Redactor::new(&Places::default(), Rules::new());
    for event in &cassette.events {
        if let What::In(said) | What::Out(said, _) = &event.what {
            assert_eq!(redactor.leaks(said.text()), [""; 0], "{}", said.text());
        }
    }
}

#[tokio::test]
async fn the_leaks_of_a_file_that_was_not_redacted_are_found() {
    let redactor = Redactor::new(&Places::default(), Rules::new().literal(PHRASE));
    for text in [
        KEY,
        PHRASE,
        "Authorization: Bearer abcdefgh",
        "jane@example.com",
        "{\\\"x\\\":\\\"sk\\\\u002dant-api\\\"}",
    ] {
        assert_eq!(redactor.leaks(text).len(), 1, "{text}");
    }
    assert_eq!(
        redactor.leaks("task-1, token: abc, user@2.1.0, and let token = next_token();"),
        [""; 0]
    );
}

/// Frames as JSON allows them, of which many look like something else.
fn frame() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        3 => "[a-z /.{}:-]{0,12}",
        1 => "\\PC{0,8}",
        1 => Just("{{cwd}}".to_owned()),
        1 => Just("{{as-is:home}} {{secret}} x".to_owned()),
        1 => Just("{\"raw\":\"x\"}".to_owned()),
        1 => Just("/home/user/project/x and -home-user-project and /tmp/a".to_owned()),
    ];
    let leaf = prop_oneof![
        text.clone().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let value = leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    });
    let delta = "[a-z ]{0,6}".prop_map(|text| {
        json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0, "delta": {"text": text}}}).to_string()
    });
    prop_oneof![
        6 => value.prop_map(|value| value.to_string()),
        2 => delta,
        1 => Just("{\"raw\":\"not text\"}".to_owned()),
        1 => Just("[\"\\ud83d\", 1e400, 0.10000000000000000001]".to_owned()),
        1 => Just("{\"type\":\"result\"}".to_owned()),
        1 => "[a-z][a-z {}\\[\\]\"]{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the CLI writes, in whatever pieces, is what the client reads when it is played.
    #[test]
    fn what_is_recorded_is_what_is_played(
        frames in prop::collection::vec(frame(), 0..20), chunk in 1_usize..200, ends in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (passed, played) = runtime.block_on(async {
            let paper = Paper::default();
            let env = [("HOME".to_owned(), "/home/user".to_owned())];
            let about = About::new(["claude"], env, "/home/user/project");
            let recorder = Recorder::new(paper.clone(), &about).unwrap();
            let mut text = frames.join("\n");
            if ends && !text.is_empty() {
                text.push('\n');
            }
            let (mut theirs, ours) = tokio::io::duplex(1 << 22);
            for piece in text.as_bytes().chunks(chunk) {
                theirs.write_all(piece).await.unwrap();
            }
            drop(theirs);
            let mut passed = Vec::new();
            recorder.stdout(ours).read_to_end(&mut passed).await.unwrap();
            assert_eq!(passed, text.as_bytes());
            recorder.exit(Some(3), None);
            recorder.finish().unwrap();
            let cassette = Cassette::parse(&paper.text()).unwrap();
            let (mut io, playing) = Replay::new(cassette).spawn_in_memory();
            let mut played = String::new();
            io.stdout.read_to_string(&mut played).await.unwrap();
            assert_eq!(playing.exit().await, Exit::Code(3));
            (text, played)
        });
        prop_assert_eq!(played, passed);
    }
}

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
    let (io, playing) = Replay::new(cassette.clone()).spawn_in_memory();
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

/// Files of each version of the format stay readable; their names say which they are.
#[tokio::test(start_paused = true)]
async fn files_of_all_versions_can_be_read_and_played() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cassettes");
    let mut versions = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let cassette = Cassette::read(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(name, format!("v{}", cassette.header.version));
        assert_eq!(cassette.exit(), Some((Some(0), None)));
        let said = conversation(SECOND, "other");
        assert_eq!(replayed(&cassette.to_text(), &said).await, None);
        versions.push(cassette.header.version);
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=VERSION).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
#[ignore = "writes the file of the newest version"]
async fn write_version() {
    let mut cassette = Cassette::parse(&session().await).unwrap();
    cassette.edit_ids();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cassettes");
    std::fs::create_dir_all(path).unwrap();
    cassette.write(format!("{path}/v{VERSION}.ndjson")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_follows_a_signal_is_played_when_it_is_sent() {
    let text = [
        r#"{"t":0,"dir":"meta","msg":{"cassette":1}}"#,
        r#"{"t":0,"dir":"out","msg":{"type":"system"}}"#,
        r#"{"t":1,"dir":"meta","msg":{"signal":"SIGINT"}}"#,
        r#"{"t":1,"dir":"out","msg":{"type":"result"}}"#,
        r#"{"t":1,"dir":"meta","msg":{"exit_code":1,"exit_signal":null}}"#,
    ];
    let cassette = Cassette::parse(&text.join("\n")).unwrap();
    let (mut io, playing) = Replay::new(cassette.clone()).spawn_in_memory();
    playing.running().signal(crate::peer::Signal::Int);
    let mut said = String::new();
    io.stdout.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "{\"type\":\"system\"}\n{\"type\":\"result\"}\n");
    assert_eq!(playing.exit().await, Exit::Code(1));

    let (_io, playing) = Replay::new(cassette.clone()).spawn_in_memory();
    assert_eq!(
        playing.exit().await,
        Exit::Code(Replay::DIVERGED),
        "nobody signals"
    );
    let (_io, playing) = Replay::new(cassette).spawn_in_memory();
    playing.running().signal(crate::peer::Signal::Kill);
    assert_eq!(playing.exit().await, Exit::Signal(9));
}
