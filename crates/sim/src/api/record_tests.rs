//! Recording what another scripted API answers, and playing that, asked by a plain HTTP client.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::api::tests::{SOON, ask, content, prompt, send, user};
use crate::api::{ApiError, MessagesApi, MessagesApiBuilder, Reply, RequestOutcome, Upstream};
use crate::script::{Raw, Script, Step, Usage};

/// An API that records what it passes on to another.
struct Proxied {
    upstream: MessagesApi,
    proxy: MessagesApi,
    file: PathBuf,
    _place: TempDir,
}

async fn proxied(upstream: MessagesApiBuilder) -> Proxied {
    let place = TempDir::new().unwrap();
    let file = place.path().join("recorded.yaml");
    let upstream = upstream.start().await.unwrap();
    let proxy = MessagesApi::builder()
        .upstream(Upstream::new(&upstream.base_url()).unwrap())
        .record(ApiRecorder::create(&file, Rules::new()).unwrap())
        .home("/srv/home")
        .start()
        .await
        .unwrap();
    Proxied {
        upstream,
        proxy,
        file,
        _place: place,
    }
}

async fn replaying(text: &str) -> MessagesApi {
    MessagesApi::builder()
        .script(Script::from_yaml(text).unwrap())
        .unwrap()
        .start()
        .await
        .unwrap()
}

impl Proxied {
    /// What was recorded once so many requests have been dealt with.
    async fn recorded(&self, count: usize) -> String {
        let done = |requests: &[ApiRequest]| {
            requests.len() >= count
                && requests
                    .iter()
                    .all(|request| request.outcome != RequestOutcome::Pending)
        };
        self.proxy
            .wait_until("all to be answered", SOON, done)
            .await
            .unwrap();
        assert_eq!(self.proxy.write_failure(), None);
        std::fs::read_to_string(&self.file).unwrap()
    }
}

/// A prompt, and what came after it.
fn going_on(first: &str) -> Value {
    let mut messages = user("list it");
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_sim_000001_1", "content": "a.txt"});
    let more = [
        json!({"role": "assistant", "content": content(first)}),
        json!({"role": "user", "content": [result]}),
    ];
    messages.as_array_mut().unwrap().extend(more);
    prompt(true, messages)
}

#[tokio::test]
async fn what_was_recorded_is_a_script_that_answers_the_same() {
    let rig = proxied(
        MessagesApi::builder()
            .reply(
                Reply::think("hm")
                    .and_call("Bash", json!({"command": "ls {{x}} {{ y }}"}))
                    .step(Usage::new(7, 5)),
            )
            .reply(ApiError::new(529).retry_after(3).message("of org_01AbC"))
            .reply(Reply::say("done"))
            .reply(Reply::say("half a").step(Step::StopReason("max_tokens".into()))),
    )
    .await;
    let proxy = rig.proxy.address();
    let play = async |address| {
        let first = ask(address, &prompt(true, user("list it"))).await;
        let second = going_on(&first);
        let failed = ask(address, &second).await;
        assert!(
            failed.starts_with("HTTP/1.1 529") && failed.contains("retry-after: 3"),
            "{failed}"
        );
        let third = ask(address, &second).await;
        let whole = ask(address, &prompt(false, user("again"))).await;
        let body: Value = serde_json::from_str(whole.split_once("\r\n\r\n").unwrap().1).unwrap();
        (
            content(&first),
            content(&third),
            body["content"].clone(),
            body["stop_reason"].clone(),
        )
    };
    let was = play(proxy).await;
    let text = rig.recorded(4).await;
    assert_eq!(rig.upstream.requests()[0].headers["x-api-key"], "dummy");
    assert!(!text.contains("org_01AbC"), "{text}");
    let script: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        script["prompts"][0]["steps"][0]["response"][0],
        json!({"usage": {"input": 7, "output": 5, "cache_creation": 0, "cache_read": 0}})
    );

    let api = replaying(&text).await;
    let unplayed = api.verdict().unwrap_err().to_string();
    assert_eq!(
        unplayed.matches("this rule was never used").count(),
        2,
        "{unplayed}"
    );
    assert_eq!(play(api.address()).await, was);
    api.verdict().unwrap();
    // The simulated CLI can play it as well.
    Script::from_yaml(
        &text
            .replace("\"retry-after\": \"3\"", "")
            .replace("\"kind\": \"overloaded_error\",", ""),
    )
    .unwrap()
    .check(crate::script::ScriptPlayer::Simulator)
    .unwrap();
}

#[tokio::test]
async fn nothing_of_the_client_s_own_is_written() {
    let rig = proxied(MessagesApi::builder().reply(Reply::say(
        "in /srv/place/a and /home/jane/x it is sk-ant-api03-000000000000",
    )))
    .await;
    let body = json!({
        "model": "m", "stream": true,
        "system": [{"type": "text", "text": "SYSTEM-PROMPT\n - Primary working directory: /srv/place\n"}],
        "tools": [{"name": "Bash", "description": "TOOL-DESCRIPTION"}],
        "metadata": {"user_id": "ACCOUNT"},
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "<system-reminder>REMINDER</system-reminder>"},
            {"type": "text", "text": "look at /srv/place/a, key REAL-KEY-12345678"}]}],
    });
    let (answer, _) = send(
        rig.proxy.address(),
        "POST /v1/messages",
        &[
            ("x-api-key", "REAL-KEY-12345678"),
            ("cookie", "COOKIE"),
            ("x-claude-code-session-id", "SESSION"),
        ],
        &body.to_string(),
    )
    .await;
    assert!(
        answer.contains("/srv/place") || answer.contains("sk-ant"),
        "the client sees all: {answer}"
    );
    send(rig.proxy.address(), "GET /api/oauth/profile", &[], "")
        .await
        .1
        .unwrap();
    let text = rig.recorded(2).await;
    for secret in [
        "SYSTEM-PROMPT",
        "TOOL-DESCRIPTION",
        "ACCOUNT",
        "REMINDER",
        "REAL-KEY",
        "COOKIE",
        "SESSION",
        "sk-ant",
        "/srv/place",
        "jane",
        "profile",
    ] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }

    // Played, it is the place of the session now, and any key.
    let api = replaying(&text).await;
    let elsewhere = body
        .to_string()
        .replace("/srv/place", "/else/where")
        .replace("SYSTEM-PROMPT", "other")
        .replace("REAL-KEY-12345678", "ANOTHER-KEY-1234");
    let answer = send(api.address(), "POST /v1/messages", &[], &elsewhere).await.0;
    assert_eq!(
        content(&answer)[0]["text"],
        "in /else/where/a and /home/user/x it is <redacted>"
    );
}

#[tokio::test]
async fn broken_answers_break_again() {
    let rig = proxied(
        MessagesApi::builder()
            .reply(Reply::say("abc").step(Step::Cut))
            .reply(Reply::new().step(Step::Drop))
            .reply(
                Reply::say("abc")
                    .step(Raw::Event("event: x\ndata: {\n\n".into()))
                    .step(Step::Truncated),
            )
            .reply(Reply::say("ab").step(Step::ErrorEvent("overloaded_error".into()))),
    )
    .await;
    let prompts = ["one", "two", "three", "four"];
    for text in prompts {
        ask(rig.proxy.address(), &prompt(true, user(text))).await;
    }
    let text = rig.recorded(4).await;
    let script: Value = serde_json::from_str(&text).unwrap();
    let last = |n: usize| {
        let steps = script["prompts"][n]["steps"][0]["response"].as_array().unwrap();
        steps.last().unwrap().clone()
    };
    let ends = json!(["cut", "drop", "truncated", {"error_event": "overloaded_error"}]);
    assert_eq!(json!([last(0), last(1), last(2), last(3)]), ends);
    let api = replaying(&text).await;
    for text in prompts {
        ask(api.address(), &prompt(true, user(text))).await;
    }
    let outcomes = |api: &MessagesApi| -> Vec<RequestOutcome> {
        api.requests().iter().map(|request| request.outcome).collect()
    };
    assert_eq!(outcomes(&api), outcomes(&rig.proxy));
}

#[test]
fn a_text_with_citations_is_recorded_with_them() {
    let events = [
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "so"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"url": "a"}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"url": "b"}}}),
    ];
    let mut message = RecordedMessage::default();
    for event in events {
        message.event(&format!("event: x\ndata: {event}"));
    }
    let block = json!({"type": "text", "text": "so", "citations": [{"url": "a"}, {"url": "b"}]});
    assert_eq!(step(&message.blocks[&0]), json!({ "block": block }));
    assert_eq!(
        step(&json!({"type": "text", "text": "so", "citations": null})),
        json!({"say": "so"})
    );
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_recorded_and_reported() {
    let rig = proxied(MessagesApi::builder().reply(Reply::say("x".repeat(LONGEST_ANSWER)))).await;
    let answer = ask(rig.proxy.address(), &prompt(false, user("much"))).await;
    assert!(answer.len() > LONGEST_ANSWER, "the client gets all of it");
    let done = |requests: &[ApiRequest]| {
        requests
            .iter()
            .all(|request| request.outcome != RequestOutcome::Pending)
    };
    rig.proxy.wait_until("the answer", SOON, done).await.unwrap();
    let failure = rig.proxy.write_failure().unwrap();
    assert!(failure.contains("is not recorded"), "{failure}");
    let text = std::fs::read_to_string(&rig.file).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({"prompts": []})
    );
}

#[tokio::test]
async fn a_client_that_hung_up_is_kept_waiting_again() {
    let rig = proxied(MessagesApi::builder().reply(Reply::say("never ends").step(Step::Stall))).await;
    let address = rig.proxy.address();
    let client = tokio::spawn(async move { ask(address, &prompt(true, user("x"))).await });
    rig.upstream.wait_for_requests(1, SOON).await.unwrap();
    client.abort();
    let text = rig.recorded(1).await;
    assert!(text.contains("\"stall\""), "{text}");
    Script::from_yaml(&text).unwrap();
}

#[tokio::test]
async fn every_session_plays_all_of_it_and_what_it_lacks_can_go_upstream() {
    let rig = proxied(MessagesApi::builder()).await;
    let ask_as = async |address, session: &str, text: &str| {
        let body = prompt(true, user(text)).to_string();
        let named = [("x-claude-code-session-id", session)];
        let answer = send(address, "POST /v1/messages", &named, &body).await.0;
        content(&answer)[0]["text"].as_str().unwrap().to_owned()
    };
    for (session, reply) in [("one", "a"), ("two", "b"), ("one", "c")] {
        rig.upstream.push(Reply::say(reply));
        ask_as(rig.proxy.address(), session, reply).await;
    }
    let text = rig.recorded(3).await;
    let upstream = MessagesApi::builder().default_reply(Reply::say("new"));
    let upstream = upstream.start().await.unwrap();
    let api = MessagesApi::builder()
        .script(Script::from_yaml(&text).unwrap())
        .unwrap()
        .upstream(Upstream::new(&upstream.base_url()).unwrap())
        .start()
        .await
        .unwrap();
    let mut said = Vec::new();
    for (session, text) in [("x", "c"), ("y", "b"), ("y", "c"), ("x", "a"), ("x", "unknown")] {
        said.push(ask_as(api.address(), session, text).await);
    }
    assert_eq!(said, ["c", "b", "c", "a", "new"]);
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_told_and_not_recorded() {
    let mut rig = proxied(MessagesApi::builder()).await;
    let other = MessagesApi::builder().start().await.unwrap();
    std::mem::replace(&mut rig.upstream, other).shutdown().await;
    let answer = ask(rig.proxy.address(), &prompt(true, user("x"))).await;
    assert!(
        answer.starts_with("HTTP/1.1 502") && answer.contains("cannot pass the request on"),
        "{answer}"
    );
    let text = rig.recorded(1).await;
    let script: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(script["prompts"], json!([]));
    for url in ["ftp://x", "localhost:1", "http://x/?y", "no url"] {
        Upstream::new(url).unwrap_err();
    }
    Upstream::new("https://api.example.com/base/").unwrap();
    let exists = ApiRecorder::create(&rig.file, Rules::new()).unwrap_err();
    assert_eq!(exists.kind(), io::ErrorKind::AlreadyExists);
}
