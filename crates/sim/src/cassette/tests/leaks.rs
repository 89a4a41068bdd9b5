//! What was planted and must not be in a file.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

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
        json!({"type": "user", "raw": ["Host", "here", "Authorization", "Basic planted"], "all": [["cookie", "id=planted"]],
               "har": [{"name": "X-Api-Key", "value": "planted0"}]}).to_string(),
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
    let redactor = Redactor::new(&Places::default(), RedactionRules::new());
    for event in &cassette.events {
        if let What::In(said) | What::Out(said, _) = &event.what {
            assert_eq!(redactor.leaks(said.text()), [""; 0], "{}", said.text());
        }
    }
}

#[tokio::test]
async fn the_leaks_of_a_file_that_was_not_redacted_are_found() {
    let redactor = Redactor::new(&Places::default(), RedactionRules::new().literal(PHRASE));
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
