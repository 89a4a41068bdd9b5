//! Recording from one scripted API and playing back from a file, asked by a plain HTTP client.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::api::tests::{SOON, ask, content, events, prompt, send, user};
use crate::api::{AnsweredBy, ApiError, MessagesApi, MessagesApiBuilder, Outcome, Reply};
use crate::script::{Raw, Step, Usage};

/// An API that records what it passes on to another.
struct Proxied {
    upstream: MessagesApi,
    proxy: MessagesApi,
    file: PathBuf,
    _place: TempDir,
}

async fn proxied(upstream: MessagesApiBuilder) -> Proxied {
    let place = TempDir::new().unwrap();
    let file = place.path().join("traffic.ndjson");
    let upstream = upstream.start().await.unwrap();
    let proxy = MessagesApi::builder()
        .upstream(Upstream::new(&upstream.base_url()).unwrap())
        .record(Recorder::create(&file, Redaction::new()).unwrap())
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
    let recording = Recording::parse(text, "test").unwrap();
    MessagesApi::builder()
        .replay(Replay::new(recording))
        .start()
        .await
        .unwrap()
}

impl Proxied {
    /// What was recorded once so many requests have been dealt with.
    async fn recorded(&self, count: usize) -> String {
        let done = |requests: &[crate::api::ApiRequest]| {
            requests.len() >= count && requests.iter().all(|request| request.outcome != Outcome::Pending)
        };
        self.proxy
            .wait_until("all to be answered", SOON, done)
            .await
            .unwrap();
        assert_eq!(self.proxy.write_failure(), None);
        fs::read_to_string(&self.file).unwrap()
    }
}

#[tokio::test]
async fn what_was_recorded_is_played_back() {
    let rig = proxied(
        MessagesApi::builder()
            .reply(
                Reply::think("hm")
                    .and_call("Bash", json!({"command": "ls"}))
                    .step(Usage::new(7, 5)),
            )
            .reply(ApiError::new(529).retry_after(3))
            .reply(Reply::say("done")),
    )
    .await;
    let proxy = rig.proxy.address();
    let mut messages = user("list it");
    let first = ask(proxy, &prompt(true, messages.clone())).await;
    messages
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "assistant", "content": content(&first)}));
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_sim_000001_1", "content": "a.txt"});
    messages
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "user", "content": [result]}));
    let second = prompt(true, messages.clone());
    let failed = ask(proxy, &second).await;
    assert!(
        failed.starts_with("HTTP/1.1 529") && failed.contains("retry-after: 3"),
        "{failed}"
    );
    let third = ask(proxy, &second).await;
    let whole = ask(proxy, &prompt(false, user("again"))).await;
    let text = rig.recorded(4).await;
    assert_eq!(rig.upstream.requests()[0].headers["x-api-key"], "dummy");
    rig.upstream.shutdown().await;

    let api = replaying(&text).await;
    assert_eq!(
        events(&ask(api.address(), &prompt(true, user("list it"))).await),
        events(&first)
    );
    let again = ask(api.address(), &second).await;
    assert!(
        again.starts_with("HTTP/1.1 529") && again.contains("retry-after: 3"),
        "{again}"
    );
    assert_eq!(api.unplayed(), [3, 4]);
    assert_eq!(events(&ask(api.address(), &second).await), events(&third));
    let replayed = ask(api.address(), &prompt(false, user("again"))).await;
    let body =
        |answer: &str| -> Value { serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap() };
    assert_eq!(body(&replayed), body(&whole));
    assert!(api.unplayed().is_empty());
    let by: Vec<_> = api
        .requests()
        .into_iter()
        .map(|request| request.answered_by)
        .collect();
    assert_eq!(by, (1..=4).map(AnsweredBy::Recording).collect::<Vec<_>>());
}

#[tokio::test]
async fn nothing_of_the_client_s_own_is_written() {
    let rig =
        proxied(MessagesApi::builder().reply(Reply::say("in /srv/place/a it is sk-ant-api03-000000000000")))
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
        "profile",
    ] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains("look at {{cwd}}/a, key <redacted>"), "{text}");

    // Played back, it is the place of the session now.
    let api = replaying(&text).await;
    let elsewhere = body
        .to_string()
        .replace("/srv/place", "/else/where")
        .replace("SYSTEM-PROMPT", "other")
        .replace("REAL-KEY-12345678", "<redacted>");
    let answer = send(api.address(), "POST /v1/messages", &[], &elsewhere).await.0;
    assert_eq!(content(&answer)[0]["text"], "in /else/where/a it is <redacted>");
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
            ),
    )
    .await;
    let mut recorded = Vec::new();
    for text in ["one", "two", "three"] {
        recorded.push(ask(rig.proxy.address(), &prompt(true, user(text))).await);
    }
    assert_eq!(recorded[1], "");
    let text = rig.recorded(3).await;
    let outcomes: Vec<_> = rig
        .proxy
        .requests()
        .iter()
        .map(|request| request.outcome)
        .collect();
    assert_eq!(
        outcomes,
        [Outcome::Broken, Outcome::Broken, Outcome::Answered(200)]
    );
    let api = replaying(&text).await;
    let body = |answer: &str| {
        answer
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.replace(char::is_numeric, ""))
            .unwrap_or_default()
    };
    for (name, was) in ["one", "two", "three"].into_iter().zip(recorded) {
        let is = ask(api.address(), &prompt(true, user(name))).await;
        let lines = |answer: &str| -> Vec<String> {
            let events = answer
                .lines()
                .filter(|line| line.starts_with("event: ") || line.starts_with("data: "));
            events.map(str::to_owned).collect()
        };
        assert_eq!(lines(&is), lines(&was), "{name}: {}", body(&is));
    }
    let outcomes: Vec<_> = api.requests().iter().map(|request| request.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Broken, Outcome::Broken, Outcome::Answered(200)]
    );
}

#[tokio::test]
async fn a_client_that_hung_up_is_kept_waiting_again() {
    let rig = proxied(MessagesApi::builder().reply(Reply::say("never ends").step(Step::Stall))).await;
    let address = rig.proxy.address();
    let client = tokio::spawn(async move { ask(address, &prompt(true, user("x"))).await });
    rig.upstream.wait_for_requests(1, SOON).await.unwrap();
    // What was sent before the stall has to get through.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    client.abort();
    let text = rig.recorded(1).await;
    assert!(text.contains(r#""ended":"client_gone""#), "{text}");
    let api = replaying(&text).await;
    let address = api.address();
    let body = prompt(true, user("x"));
    let waiting = tokio::time::timeout(std::time::Duration::from_millis(200), ask(address, &body));
    assert!(waiting.await.is_err());
}

#[tokio::test]
async fn what_was_not_recorded_is_refused_with_the_nearest() {
    let rig = proxied(MessagesApi::builder().default_reply(Reply::say("yes"))).await;
    for text in ["fix the tests in /a/b/c.rs", "something else"] {
        ask(rig.proxy.address(), &prompt(true, user(text))).await;
    }
    let text = rig.recorded(2).await;
    let api = replaying(&text).await;
    let told = |answer: String| -> String {
        assert!(
            answer.starts_with("HTTP/1.1 400") && answer.contains("x-should-retry: false"),
            "{answer}"
        );
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["error"]["message"].as_str().unwrap().to_owned()
    };
    let near = told(ask(api.address(), &prompt(true, user("fix the tests in /x/d.rs"))).await);
    assert!(
        near.contains("nearest is exchange 1")
            && near.contains("<path>/c.rs")
            && near.contains("<path>/d.rs"),
        "{near}"
    );
    let mut other = prompt(true, user("something else"));
    other["model"] = "model-y".into();
    let model = told(ask(api.address(), &other).await);
    assert!(
        model.contains("the model was model-x, now it is model-y"),
        "{model}"
    );
    // Where the file is does not matter; but it is answered only as often as it was asked.
    let right = prompt(true, user("fix the tests in /x/y/z/c.rs"));
    assert_eq!(content(&ask(api.address(), &right).await)[0]["text"], "yes");
    let once_more = told(ask(api.address(), &right).await);
    assert!(
        once_more.contains("no further answer") && once_more.contains("exchange 1"),
        "{once_more}"
    );
    let unmatched = api.unmatched();
    assert_eq!(unmatched.len(), 3);
    assert_eq!(unmatched[0].answered_by.unmatched(), Some(near.as_str()));
}

#[tokio::test]
async fn every_session_plays_one_of_the_recorded_ones() {
    let rig = proxied(MessagesApi::builder()).await;
    let ask_as = async |address, session: &str, text: &str| {
        let body = prompt(true, user(text)).to_string();
        let answer = send(
            address,
            "POST /v1/messages",
            &[("x-claude-code-session-id", session)],
            &body,
        )
        .await
        .0;
        content(&answer)[0]["text"].as_str().unwrap().to_owned()
    };
    for (session, reply) in [("one", "a"), ("two", "b"), ("one", "c")] {
        rig.upstream.push(Reply::say(reply));
        ask_as(rig.proxy.address(), session, "hi").await;
    }
    let text = rig.recorded(3).await;
    let api = replaying(&text).await;
    let mut said = Vec::new();
    for session in ["x", "y", "y", "x", "z", "z"] {
        said.push(ask_as(api.address(), session, "hi").await);
    }
    // x plays the first, y the second and then what is left of the first; z begins anew.
    assert_eq!(said, ["a", "b", "a", "c", "a", "c"]);
}

#[tokio::test]
async fn what_a_recording_lacks_can_go_upstream() {
    let first = proxied(MessagesApi::builder().default_reply(Reply::say("old"))).await;
    ask(first.proxy.address(), &prompt(true, user("known"))).await;
    let text = first.recorded(1).await;
    let upstream = MessagesApi::builder()
        .default_reply(Reply::say("new"))
        .start()
        .await
        .unwrap();
    let api = MessagesApi::builder()
        .replay(Replay::new(Recording::parse(&text, "test").unwrap()))
        .upstream(Upstream::new(&upstream.base_url()).unwrap())
        .start()
        .await
        .unwrap();
    assert_eq!(
        content(&ask(api.address(), &prompt(true, user("known"))).await)[0]["text"],
        "old"
    );
    assert_eq!(
        content(&ask(api.address(), &prompt(true, user("unknown"))).await)[0]["text"],
        "new"
    );
    assert_eq!(api.requests()[1].answered_by, AnsweredBy::Upstream);
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_told_and_not_recorded() {
    let rig = proxied(MessagesApi::builder()).await;
    rig.upstream.shutdown().await;
    let answer = ask(rig.proxy.address(), &prompt(true, user("x"))).await;
    assert!(
        answer.starts_with("HTTP/1.1 502") && answer.contains("cannot pass the request on"),
        "{answer}"
    );
    rig.proxy
        .wait_until("it", SOON, |requests| {
            requests[0].outcome == Outcome::Answered(502)
        })
        .await
        .unwrap();
    let text = fs::read_to_string(&rig.file).unwrap();
    assert_eq!(Recording::parse(&text, "x").unwrap().exchanges.len(), 0);
    for url in ["ftp://x", "localhost:1", "http://x/?y", "no url"] {
        Upstream::new(url).unwrap_err();
    }
    Upstream::new("https://api.example.com/base/").unwrap();
    let exists = Recorder::create(&rig.file, Redaction::new()).unwrap_err();
    assert_eq!(exists.kind(), std::io::ErrorKind::AlreadyExists);
}
