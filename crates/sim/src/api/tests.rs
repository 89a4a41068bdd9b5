//! The scripted API, asked by a plain HTTP client.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::script::{Raw, Script, Step, Usage};

/// The headers of a client without a key.
const DUMMY: &[(&str, &str)] = &[("x-api-key", "dummy"), ("x-claude-code-session-id", "s1")];

pub(super) const SOON: Duration = Duration::from_secs(20);

/// Sends one request and reads until the server closes: status, headers and body as text, and how it ended.
pub(super) async fn send(
    address: SocketAddr,
    head: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (String, std::io::Result<usize>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let end = tokio::time::timeout(SOON, stream.read_to_end(&mut answer))
        .await
        .expect("the server closes");
    (String::from_utf8(answer).unwrap(), end)
}

pub(super) async fn ask(address: SocketAddr, body: &Value) -> String {
    send(address, "POST /v1/messages?beta=true", DUMMY, &body.to_string())
        .await
        .0
}

pub(super) fn prompt(stream: bool, messages: Value) -> Value {
    json!({"model": "model-x", "stream": stream, "messages": messages})
}

pub(super) fn user(text: &str) -> Value {
    json!([{"role": "user", "content": [{"type": "text", "text": text}]}])
}

/// The data of each event of a streamed answer.
pub(super) fn events(answer: &str) -> Vec<Value> {
    let lines = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn kinds(answer: &str) -> Vec<String> {
    events(answer)
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

/// What a client would put together from the events.
pub(super) fn content(answer: &str) -> Vec<Value> {
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    for event in events(answer) {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(event["index"], blocks.len());
                blocks.push(event["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                let index = event["index"].as_u64().unwrap() as usize;
                for key in ["text", "thinking", "signature"] {
                    if let Some(more) = event["delta"].get(key).and_then(Value::as_str) {
                        let whole = blocks[index][key].as_str().unwrap().to_owned() + more;
                        blocks[index][key] = whole.into();
                    }
                }
                inputs[index] += event["delta"]["partial_json"].as_str().unwrap_or_default();
            }
            "content_block_stop" => {
                let index = event["index"].as_u64().unwrap() as usize;
                assert_eq!(index, blocks.len() - 1);
                if !inputs[index].is_empty() {
                    blocks[index]["input"] = serde_json::from_str(&inputs[index]).unwrap();
                }
            }
            _ => {}
        }
    }
    blocks
}

#[tokio::test]
async fn streams_every_kind_of_block_in_order() {
    let mut usage = Usage::new(7, 9);
    (usage.cache_creation, usage.cache_read) = (11, 13);
    let reply = Reply::think("let me see")
        .and_say("two tools")
        .and_call("Bash", json!({"command": "ls"}))
        .and_call("Read", json!({"file_path": "/a"}))
        .step(Step::Redacted("QUJD".into()))
        .step(usage);
    let api = MessagesApi::builder()
        .reply(reply.clone())
        .reply(reply)
        .start()
        .await
        .unwrap();
    let answer = ask(api.address(), &prompt(true, user("hi"))).await;

    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/event-stream"), "{answer}");
    let expected = json!([
        {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmF0dXJl"},
        {"type": "text", "text": "two tools"},
        {"type": "tool_use", "id": "toolu_sim_000001_2", "name": "Bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "toolu_sim_000001_3", "name": "Read", "input": {"file_path": "/a"}},
        {"type": "redacted_thinking", "data": "QUJD"},
    ]);
    assert_eq!(Value::from(content(&answer)), expected);
    let events = events(&answer);
    assert_eq!(events[0]["message"]["model"], "model-x");
    assert_eq!(events[0]["message"]["usage"]["output_tokens"], 1);
    let ends = &events[events.len() - 2..];
    assert_eq!(
        ends[0]["delta"],
        json!({"stop_reason": "tool_use", "stop_sequence": null})
    );
    assert_eq!(
        ends[0]["usage"],
        json!({"input_tokens": 7, "output_tokens": 9, "cache_creation_input_tokens": 11, "cache_read_input_tokens": 13})
    );
    assert_eq!(ends[1], json!({"type": "message_stop"}));

    let whole = ask(api.address(), &prompt(false, user("hi"))).await;
    let whole: Value = serde_json::from_str(whole.split_once("\r\n\r\n").unwrap().1).unwrap();
    let mut expected = expected;
    expected[2]["id"] = "toolu_sim_000002_2".into();
    expected[3]["id"] = "toolu_sim_000002_3".into();
    assert_eq!(whole["content"], expected);
    assert_eq!(whole["stop_reason"], "tool_use");
    api.shutdown().await;
}

#[tokio::test]
async fn ids_do_not_repeat_in_a_conversation_that_another_server_began() {
    let reply = Reply::think("hm").and_call("Bash", json!({"command": "ls"}));
    let api = MessagesApi::builder().reply(reply).start().await.unwrap();
    let mut body = prompt(false, user("hi"));
    body["messages"] = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_sim_000007_1", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_sim_000007_1", "content": "a"}]},
    ]);
    let whole = ask(api.address(), &body).await;
    let whole: Value = serde_json::from_str(whole.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(whole["content"][1]["id"], "toolu_sim_000008_1");
    api.shutdown().await;
}

#[tokio::test]
async fn keeps_what_it_was_asked() {
    let api = MessagesApi::builder().log_limit(2).start().await.unwrap();
    send(api.address(), "POST /v1/messages", DUMMY, "")
        .await
        .1
        .unwrap();
    let answer = send(api.address(), "HEAD /api/hello", DUMMY, "").await.0;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = send(api.address(), "GET /elsewhere?x=1", DUMMY, "").await.0;
    assert!(
        answer.starts_with("HTTP/1.1 404") && answer.contains("not_found_error"),
        "{answer}"
    );
    ask(api.address(), &prompt(true, user("hello"))).await;

    let requests = api
        .wait_until("the last one to be answered", SOON, |requests| {
            requests
                .last()
                .is_some_and(|request| request.outcome == RequestOutcome::Answered(200))
        })
        .await
        .unwrap();
    assert_eq!((api.request_count(), api.forgotten_requests()), (4, 2));
    let [other, last] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(
        (other.route(), other.outcome, other.path.as_str()),
        (Route::Other, RequestOutcome::Answered(404), "/elsewhere?x=1")
    );
    assert_eq!(last.number, 4);
    assert_eq!(last.model(), Some("model-x"));
    assert_eq!(last.session_id(), Some("s1"));
    assert_eq!(last.headers["x-api-key"], "dummy");
    assert_eq!(last.last_user_text().as_deref(), Some("hello"));
    assert!(last.stream() && last.route() == Route::Messages);

    let error = api
        .wait_for_requests(9, Duration::from_millis(1))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("9 requests for a message"), "{error}");
}

#[tokio::test]
async fn keys_are_not_recorded() {
    let api = MessagesApi::builder().start().await.unwrap();
    let mut stream = TcpStream::connect(api.address()).await.unwrap();
    let request = "GET /x HTTP/1.1\r\nhost: sim\r\nauthorization: Bearer not-a-dummy\r\nx-api-key: other\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.read_to_end(&mut Vec::new()).await.unwrap();
    let headers = &api.requests()[0].headers;
    assert_eq!(
        (headers["authorization"].as_str(), headers["x-api-key"].as_str()),
        ("<redacted>", "<redacted>")
    );
}

#[tokio::test]
async fn rules_come_first_then_replies_then_the_default() {
    let api = MessagesApi::builder()
        .rule({
            let mut times = 1;
            move |request| {
                let fits = times > 0 && request.model() == Some("model-x");
                times -= u32::from(fits);
                fits.then(|| Reply::say("rain"))
            }
        })
        .rule(|request| {
            let session = request.session_id().unwrap_or_default();
            (request.turn == 2).then(|| Reply::say(format!("second of {session}")))
        })
        .reply(Reply::say("queued"))
        .default_reply(Reply::say("default"))
        .start()
        .await
        .unwrap();
    let mut answers = Vec::new();
    for text in ["weather?", "weather?", "weather?", "weather?"] {
        let answer = ask(api.address(), &prompt(true, user(text))).await;
        answers.push(content(&answer)[0]["text"].as_str().unwrap().to_owned());
    }
    assert_eq!(answers, ["rain", "second of s1", "queued", "default"]);
}

#[tokio::test]
async fn faults_are_the_apis_own_errors() {
    let mut api = MessagesApi::builder();
    let kinds = [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "overloaded_error"),
        (529, "overloaded_error"),
    ];
    for (status, _) in kinds {
        api = api.reply(ApiError::new(status).message("as told").retry_after(3));
    }
    let api = api.start().await.unwrap();
    for (status, kind) in kinds {
        let answer = ask(api.address(), &prompt(true, user("x"))).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("retry-after: 3\r\n"), "{answer}");
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["error"], json!({"type": kind, "message": "as told"}));
    }
}

#[tokio::test]
async fn streams_break_where_the_script_says() {
    let api = MessagesApi::builder()
        .reply(Reply::say("abc").step(Step::ErrorEvent("overloaded_error".into())))
        .reply(Reply::say("abc").step(Step::Cut))
        .reply(Reply::new().step(Step::Drop))
        .reply(Reply::new().step(Step::Cut))
        .start()
        .await
        .unwrap();
    let answer = ask(api.address(), &prompt(true, user("x"))).await;
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "by the script"}});
    assert_eq!(events(&answer).last(), Some(&error));
    assert!(
        !kinds(&answer).contains(&"content_block_stop".to_owned()),
        "{answer}"
    );

    let cut = ask(api.address(), &prompt(true, user("x"))).await;
    assert_eq!(
        kinds(&cut),
        ["message_start", "content_block_start"]
            .into_iter()
            .chain(["content_block_delta"; 3])
            .collect::<Vec<_>>()
    );
    assert!(
        !cut.ends_with("0\r\n\r\n"),
        "the body is not ended properly: {cut}"
    );

    let (answer, _) = send(
        api.address(),
        "POST /v1/messages",
        DUMMY,
        &prompt(true, user("x")).to_string(),
    )
    .await;
    assert_eq!(answer, "");
    let (answer, _) = send(
        api.address(),
        "POST /v1/messages",
        DUMMY,
        &prompt(false, user("x")).to_string(),
    )
    .await;
    assert_eq!(answer, "");
    let outcomes: Vec<_> = api.requests().iter().map(|request| request.outcome).collect();
    assert_eq!(
        outcomes,
        [
            RequestOutcome::Answered(200),
            RequestOutcome::Broken,
            RequestOutcome::Broken,
            RequestOutcome::Broken
        ]
    );
}

#[tokio::test]
async fn gates_hold_replies_until_they_are_let_through() {
    let api = MessagesApi::builder()
        .reply(
            Reply::say("one ")
                .hold("middle")
                .step(Step::More("two".into()))
                .hold("end"),
        )
        .reply(Reply::new().hold("start").and_say("late"))
        .start()
        .await
        .unwrap();
    let (address, body) = (api.address(), prompt(true, user("x")));
    let first = tokio::spawn({
        let body = body.clone();
        async move { ask(address, &body).await }
    });
    api.gate("middle").reached(1, SOON).await.unwrap();
    assert_eq!(api.gate("end").arrivals(), 0);
    assert_eq!(api.requests()[0].outcome, RequestOutcome::Pending);
    api.gate("middle").release();
    api.gate("end").reached(1, SOON).await.unwrap();
    api.gate("end").open();
    let answer = first.await.unwrap();
    assert_eq!(content(&answer), [json!({"type": "text", "text": "one two"})]);

    // A client that goes away while its reply is held uses up no release.
    let second = tokio::spawn({
        let body = body.clone();
        async move { ask(address, &body).await }
    });
    api.gate("start").reached(1, SOON).await.unwrap();
    second.abort();
    api.wait_until("the client to be gone", SOON, |requests| {
        requests[1].outcome == RequestOutcome::ClientGone
    })
    .await
    .unwrap();
    api.push(Reply::new().hold("start").and_say("later"));
    api.gate("start").release();
    assert_eq!(content(&ask(address, &body).await)[0]["text"], "later");
}

#[tokio::test]
async fn shutdown_does_not_wait_for_held_replies() {
    let api = MessagesApi::builder()
        .reply(Reply::say("x").step(Step::Stall))
        .start()
        .await
        .unwrap();
    let address = api.address();
    let asked = tokio::spawn(async move { ask(address, &prompt(true, user("x"))).await });
    api.wait_for_requests(1, SOON).await.unwrap();
    tokio::time::timeout(SOON, api.shutdown())
        .await
        .expect("it stops");
    asked.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_script_can_name_the_file_that_the_plan_goes_to() {
    let api = MessagesApi::builder().start().await.unwrap();
    let told = "<system-reminder>Not README.md and not plans/.md: write it to `/home/u/.claude/plans/a-b.md` (see docs/plans).</system-reminder>";
    let script = "%tool Write {\"file_path\":\"{{plan}}\",\"content\":\"x\"}";
    let messages = json!([{"role": "user", "content": [
        {"type": "text", "text": script},
        {"type": "text", "text": told},
    ]}]);
    let blocks = content(&ask(api.address(), &prompt(true, messages)).await);
    assert_eq!(blocks[0]["input"]["file_path"], "/home/u/.claude/plans/a-b.md");
}

#[tokio::test]
async fn the_prompt_says_what_the_model_answers() {
    let api = MessagesApi::builder().start().await.unwrap();
    let script = "do this:\n%think hm\n%+tool Bash {\"command\":\"ls\"}\n%+tool Read {\"file_path\":\"/a\"}\n%error 529 n=2\n%say got {{last}}";
    let mut messages = user(script);
    let first = ask(api.address(), &prompt(true, messages.clone())).await;
    let blocks = content(&first);
    assert_eq!(blocks.len(), 3);

    let history = messages.as_array_mut().unwrap();
    history.push(json!({"role": "assistant", "content": blocks}));
    history.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "1", "content": "first"},
        {"type": "tool_result", "tool_use_id": "2", "content": [{"type": "text", "text": "second"}]},
        {"type": "text", "text": "<system-reminder>\n%say not this\n</system-reminder>"},
    ]}));
    let again = prompt(true, messages.clone());
    for _ in 0..2 {
        assert!(ask(api.address(), &again).await.starts_with("HTTP/1.1 529"));
    }
    assert_eq!(
        content(&ask(api.address(), &again).await),
        [json!({"type": "text", "text": "got second"})]
    );

    // The script is used up: a prompt without one gets the default.
    let history = messages.as_array_mut().unwrap();
    history.push(json!({"role": "assistant", "content": [{"type": "text", "text": "got second"}]}));
    history.push(json!({"role": "user", "content": "and now?"}));
    assert_eq!(
        content(&ask(api.address(), &prompt(true, messages)).await)[0]["text"],
        "ok"
    );
}

#[tokio::test]
async fn directives_break_hold_and_leave_empty() {
    let api = MessagesApi::builder().start().await.unwrap();
    let address = api.address();
    let script = prompt(
        true,
        user(
            "%json []\n%cut\n%sse-error api_error\n%drop\n%usage in=1 out=2\n%stop refusal\n%say a{{gate:g}}b",
        ),
    );
    api.gate("g").open();
    assert_eq!(
        kinds(&ask(address, &script).await),
        ["message_start", "message_delta", "message_stop"]
    );
    assert!(!ask(address, &script).await.contains("message_stop"));
    assert!(ask(address, &script).await.contains("\"api_error\""));
    assert_eq!(ask(address, &script).await, "");
    let answer = ask(address, &script).await;
    assert_eq!(content(&answer)[0]["text"], "ab");
    assert!(
        answer.contains(r#""stop_reason":"refusal""#) && answer.contains(r#""output_tokens":2"#),
        "{answer}"
    );
    assert_eq!(api.gate("g").arrivals(), 1);

    let unknown = ask(address, &prompt(true, user("%sya hello"))).await;
    assert!(
        unknown.starts_with("HTTP/1.1 400") && unknown.contains("sya"),
        "{unknown}"
    );
}

#[tokio::test]
async fn lone_surrogates_pass_both_ways() {
    let block = r#"{"type":"text","text":"lone \ud83d end"}"#;
    let api = MessagesApi::builder()
        .reply(Reply::new().step(Raw::Block(block.into())))
        .start()
        .await
        .unwrap();
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"cut \ud83d"}]}"#;
    let answer = send(api.address(), "POST /v1/messages", DUMMY, body).await.0;
    assert!(
        answer.contains(r#"{"type":"text_delta","text":"lone \ud83d end"}"#),
        "{answer}"
    );
    assert_eq!(
        api.requests()[0].last_user_text().as_deref(),
        Some("cut \u{fffd}")
    );
}

#[tokio::test]
async fn counts_tokens_and_refuses_what_is_no_json() {
    let api = MessagesApi::builder().input_tokens(123).start().await.unwrap();
    let answer = send(
        api.address(),
        "POST /v1/messages/count_tokens?beta=true",
        DUMMY,
        "{}",
    )
    .await
    .0;
    assert!(answer.ends_with(r#"{"input_tokens":123}"#), "{answer}");
    let answer = send(api.address(), "POST /v1/messages", DUMMY, "{").await.0;
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("not JSON"),
        "{answer}"
    );
}

#[tokio::test]
async fn models_are_there_and_listed_if_they_were_named() {
    let api = MessagesApi::builder().models(["a", "b"]).start().await.unwrap();
    let get = async |path: &str| send(api.address(), &format!("GET {path}"), DUMMY, "").await.0;
    let list = get("/v1/models?limit=1000").await;
    assert!(
        list.contains(r#""first_id":"a""#) && list.contains(r#""last_id":"b""#),
        "{list}"
    );
    assert!(get("/v1/models/b").await.contains(r#""id":"b""#));
    assert!(get("/v1/models/c").await.starts_with("HTTP/1.1 404"));
    let by: Vec<_> = api
        .requests()
        .into_iter()
        .map(|request| request.answered_by)
        .collect();
    assert_eq!(by[..2], [AnsweredBy::Server, AnsweredBy::Server]);
    assert_eq!(by[2].unmatched(), Some("model: c"));
}

#[tokio::test]
async fn what_nothing_is_for_can_be_refused() {
    let api = MessagesApi::builder()
        .refuse_unmatched()
        .reply(Reply::say("x"))
        .start()
        .await
        .unwrap();
    ask(api.address(), &prompt(true, user("one"))).await;
    let refused = ask(api.address(), &prompt(true, user("two"))).await;
    assert!(
        refused.starts_with("HTTP/1.1 400") && refused.contains("x-should-retry: false"),
        "{refused}"
    );
    let unmatched = api.unmatched();
    assert_eq!(unmatched.len(), 1);
    assert!(unmatched[0].answered_by.unmatched().unwrap().contains("\"two\""));
}

#[tokio::test]
async fn a_line_with_a_percent_sign_is_no_directive_where_a_script_has_the_rules() {
    let script = Script::from_yaml("prompts: [{prompt: hi, times: any, steps: [say: x]}]").unwrap();
    let api = MessagesApi::builder()
        .script(script)
        .unwrap()
        .start()
        .await
        .unwrap();
    for text in ["Fix this:\n% a comment", "%say hello"] {
        let refused = ask(api.address(), &prompt(true, user(text))).await;
        assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    }
    assert_eq!(api.unmatched().len(), 2);
    assert_eq!(api.verdict().unwrap_err().0.len(), 2);
}

#[tokio::test]
async fn the_log_file_tells_of_each_request() {
    let place = tempfile::TempDir::new().unwrap();
    let path = place.path().join("log.ndjson");
    let api = MessagesApi::builder()
        .log_file(std::fs::File::create(&path).unwrap())
        .reply(Reply::new().step(Step::Drop))
        .start()
        .await
        .unwrap();
    let secret = prompt(true, user("the key is sk-ant-api03-000000000000"));
    ask(api.address(), &secret).await;
    send(
        api.address(),
        "POST /v1/messages",
        &[("x-api-key", "REAL-KEY")],
        "{",
    )
    .await
    .1
    .unwrap();
    ask(api.address(), &secret).await;
    api.wait_until("all", SOON, |requests| {
        requests
            .last()
            .is_some_and(|last| last.outcome == RequestOutcome::Answered(200))
            && requests.len() == 3
    })
    .await
    .unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("REAL-KEY") && !text.contains("sk-ant"), "{text}");
    let lines: Vec<LogLine> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let short: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line.number,
                line.answered_by.as_str(),
                line.outcome.as_str(),
                line.status,
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            (1, "queue", "broken", None),
            (2, "nothing", "answered", Some(400)),
            (3, "default", "answered", Some(200))
        ]
    );
    assert!(lines[1].unmatched.as_ref().unwrap().contains("not JSON"));
    assert_eq!(
        lines[2].asked.prompt.as_ref().unwrap().text,
        "the key is {{secret}}"
    );
    assert_eq!(api.write_failure(), None);
}

#[tokio::test]
async fn bodies_can_lie_about_themselves() {
    let api = MessagesApi::builder()
        .reply(Reply::say("abc").step(Step::Truncated))
        .reply(Reply::say("abc").step(Step::Truncated))
        .reply(
            Reply::new()
                .step(Raw::Event("event: x\ndata: {no\n\n".into()))
                .and_say("abc"),
        )
        .reply(Reply::say("<html>").step(Step::ContentType("text/html".into())))
        .start()
        .await
        .unwrap();
    let ended = ask(api.address(), &prompt(true, user("x"))).await;
    assert!(
        ended.ends_with("0\r\n\r\n") && !ended.contains("message_stop"),
        "{ended}"
    );
    let half = ask(api.address(), &prompt(false, user("x"))).await;
    let half = half.split_once("\r\n\r\n").unwrap().1;
    assert!(
        half.starts_with(r#"{"id""#) && serde_json::from_str::<Value>(half).is_err(),
        "{half}"
    );
    let malformed = ask(api.address(), &prompt(true, user("x"))).await;
    assert!(
        malformed.contains("data: {no\n") && malformed.contains("message_stop"),
        "{malformed}"
    );
    let html = ask(api.address(), &prompt(true, user("x"))).await;
    assert!(
        html.contains("content-type: text/html\r\n") && !html.contains("event-stream"),
        "{html}"
    );
}

#[tokio::test]
async fn the_working_directory_is_the_one_told_last() {
    let api = MessagesApi::builder().start().await.unwrap();
    let told =
        |place: &str| format!("# Environment\n - Primary working directory: {place}\n - Platform: linux");
    let mut body = prompt(
        true,
        json!([
            {"role": "user", "content": "Primary working directory: /of/the/user"},
            {"role": "system", "content": [{"type": "text", "text": told("/first")}]},
            {"role": "assistant", "content": "x"},
            {"role": "system", "content": told("/second (was /first)")},
        ]),
    );
    ask(api.address(), &body).await;
    body["messages"] = user("%say in {{cwd}}");
    ask(api.address(), &body).await;
    body["system"] = json!([{"type": "text", "text": told("/system")}]);
    assert_eq!(content(&ask(api.address(), &body).await)[0]["text"], "in /system");
    let places: Vec<_> = api
        .requests()
        .iter()
        .map(|request| request.working_directory())
        .collect();
    assert_eq!(
        places,
        [Some("/second".to_owned()), None, Some("/system".to_owned())]
    );
}

#[tokio::test]
async fn a_reply_that_the_api_cannot_give_is_refused_with_the_reason() {
    let api = MessagesApi::builder()
        .reply(Reply::tool("Bash", json!({"command": "ls"})).result("a.txt"))
        .reply(Reply::tool("Bash", json!({"command": "ls"})))
        .start()
        .await
        .unwrap();
    let refused = ask(api.address(), &prompt(true, user("x"))).await;
    assert!(
        refused.starts_with("HTTP/1.1 400") && refused.contains("the scripted API cannot play `result`"),
        "{refused}"
    );
    assert_eq!(api.unmatched().len(), 1);
    assert_eq!(
        content(&ask(api.address(), &prompt(true, user("x"))).await)[0]["name"],
        "Bash"
    );
}
