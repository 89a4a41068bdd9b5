//! Scripts, played to a plain HTTP client.

use std::time::Duration;

use serde_json::{Value, json};

use super::tests::{SOON, ask, content, prompt, send, user};
use super::{AnsweredBy, MessagesApi, RequestOutcome};
use crate::script::{Expect, Script};

fn text(answer: &str) -> String {
    let text = content(answer)
        .first()
        .and_then(|block| block["text"].as_str().map(str::to_owned));
    text.unwrap_or_default()
}

async fn playing(yaml: &str) -> MessagesApi {
    let script = Script::from_yaml(yaml).unwrap();
    MessagesApi::builder()
        .script(script)
        .unwrap()
        .start()
        .await
        .unwrap()
}

/// A client that keeps a conversation, as the CLI does.
struct Talk<'a> {
    api: &'a MessagesApi,
    headers: Vec<(&'a str, &'a str)>,
    messages: Vec<Value>,
}

impl<'a> Talk<'a> {
    fn new(api: &'a MessagesApi) -> Self {
        Self {
            api,
            headers: Vec::new(),
            messages: Vec::new(),
        }
    }

    fn of(api: &'a MessagesApi, headers: &[(&'a str, &'a str)]) -> Self {
        Self {
            headers: headers.to_vec(),
            ..Self::new(api)
        }
    }

    /// Sends the conversation as it is; a whole answer is added to it.
    async fn go_on(&mut self) -> String {
        let body = prompt(true, json!(self.messages)).to_string();
        let (answer, _) = send(self.api.address(), "POST /v1/messages", &self.headers, &body).await;
        if answer.contains("message_stop") {
            let blocks = content(&answer);
            self.messages
                .push(json!({"role": "assistant", "content": blocks}));
        }
        answer
    }

    /// Says this, and gives the first text of the answer.
    async fn say(&mut self, words: &str) -> String {
        self.messages.push(json!({"role": "user", "content": words}));
        text(&self.go_on().await)
    }

    /// Sends the result of the last call, and gives the first text of the answer.
    async fn result(&mut self, result: &str) -> String {
        let blocks = self.messages.last().unwrap()["content"].as_array().unwrap();
        let call = blocks
            .iter()
            .rev()
            .find(|block| block["type"] == "tool_use")
            .unwrap();
        let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": result});
        self.messages.push(json!({"role": "user", "content": [result]}));
        text(&self.go_on().await)
    }
}

#[tokio::test]
async fn a_loop_of_tool_calls_is_played_and_judged() {
    let api = playing(
        r"
prompts:
  - prompt: {regex: '^list (?<what>\w+)$'}
    steps:
      - think: hm
      - say: I look.
      - usage: {input: 7, output: 3, cache_read: 2}
      - call: {tool: Bash, input: {command: 'ls {{what}}'}}
      - assert: {result: a.txt, is_error: false}
      - say: '{{what}} has {{result}}, {{ what }}, {{{what}}}'
  - {from: subagent, times: any, steps: [say: below]}
expect:
  prompts: 1
  api_requests: 2
  tools: [{tool: Bash, input: {command: ls it}, times: 1, is_error: false}]
  tool_results: [{contains: a.txt}]
",
    )
    .await;
    let flaws = api.verdict().unwrap_err();
    assert_eq!(flaws.0.len(), 5, "{flaws}");
    let mut talk = Talk::new(&api);
    talk.messages.push(json!({"role": "user", "content": "list it"}));
    let first = talk.go_on().await;
    let kinds: Vec<Value> = content(&first)
        .iter()
        .map(|block| block["type"].clone())
        .collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use"]);
    assert!(first.contains(r#""cache_read_input_tokens":2"#), "{first}");
    assert_eq!(talk.result("a.txt").await, "it has a.txt, {{ what }}, {it}");
    api.verdict().unwrap();
    let rule: std::sync::Arc<str> = "prompts[0]".into();
    assert_eq!(api.requests()[1].answered_by, AnsweredBy::Script(rule));

    // Nothing is for another prompt, which the client sends twice.
    talk.say("more").await;
    let refused = talk.go_on().await;
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    let told = api.verdict().unwrap_err().to_string();
    assert!(
        told.contains(
            "expect.no_unmatched: request 3, asked 2 times: no rule of the script is for the prompt \"more\""
        ) && told.contains("4 requests for a message came instead of 2"),
        "{told}"
    );
}

#[tokio::test]
async fn every_session_and_subagent_has_its_own_place() {
    let api =
        playing("prompts: [{steps: [say: one]}, {steps: [say: two]}, {from: subagent, steps: [say: below]}]")
            .await;
    let session = |id| ("x-claude-code-session-id", id);
    let mut a = Talk::of(&api, &[session("a")]);
    let mut b = Talk::of(&api, &[session("b")]);
    let mut sub = Talk::of(&api, &[session("a"), ("x-claude-code-agent-id", "s")]);
    assert_eq!(a.say("x").await, "one");
    assert_eq!(b.say("x").await, "one");
    assert_eq!(sub.say("x").await, "below");
    assert_eq!(a.say("x").await, "two");
    assert_eq!(a.say("x").await, "");
    let told = api
        .check(&Expect::default().sessions(2).subagents(1))
        .unwrap_err()
        .to_string();
    assert!(told.contains("request 5: no rule"), "{told}");
    let mut lenient = Expect::default().sessions(3).subagents(1);
    lenient.no_unmatched = false;
    assert_eq!(
        api.check(&lenient).unwrap_err().to_string(),
        "script: expect.sessions: 2 sessions asked instead of 3"
    );
}

#[tokio::test]
async fn rules_have_conditions() {
    let api = playing(
        r"
unmatched: ok
prompts:
  - {anytime: true, model: model-y, steps: [say: by model]}
  - {anytime: true, has_tool: Special, steps: [say: by tool]}
  - {prompt: test, steps: [{call: {tool: Bash, input: {command: test}}}, {say: never reached}]}
  - {tool_result: {regex: '^(?<count>\d+) passed'}, steps: [say: 'all {{count}} of {{prompt}}']}
  - {tool_result: {contains: failed}, times: any, steps: [say: red]}
",
    )
    .await;
    let mut other = prompt(true, user("x"));
    other["model"] = "model-y".into();
    let mut tool = prompt(true, user("y"));
    tool["tools"] = json!([{"name": "Special"}]);
    assert_eq!(text(&ask(api.address(), &other).await), "by model");
    assert_eq!(text(&ask(api.address(), &tool).await), "by tool");
    let mut talk = Talk::new(&api);
    talk.say("test").await;
    assert_eq!(talk.result("12 passed").await, "all 12 of test");
    assert_eq!(talk.say("and now").await, "ok");
    api.verdict().unwrap();
}

#[tokio::test]
async fn every_fault_does_what_it_is_called() {
    let api = playing(
        r"
prompts:
  - steps:
      - api_error: {status: 429, message: slow down, retry_after: 2, headers: {x-more: 'yes'}, times: 2}
      - drop
      - say: ab
      - cut
      - say: ab
      - truncated
      - say: ab
      - malformed_event
      - say: ab
      - error_event: overloaded_error
      - content_type: text/html
      - headers: {x-mine: 'yes'}
      - wait: 50ms
      - pace: {chunk: 1, every: 1ms}
      - say: abcd
      - stop_reason: max_tokens
      - redacted: zzz
      - block: {type: new_kind, of: block}
      - say: abcd
      - stall
      - say: the end
",
    )
    .await;
    let body = prompt(true, user("x"));
    let mut answers = Vec::new();
    for _ in 0..7 {
        answers.push(ask(api.address(), &body).await);
    }
    let [http, again, drop, cut, truncated, malformed, error] = &answers[..] else {
        unreachable!()
    };
    for http in [http, again] {
        assert!(
            http.starts_with("HTTP/1.1 429") && http.contains("slow down") && http.contains("retry-after: 2"),
            "{http}"
        );
        assert!(http.contains("x-more: yes"), "{http}");
    }
    assert_eq!(drop, "");
    for answer in [cut, truncated, malformed, error] {
        assert!(
            answer.contains(r#""text":"b""#)
                && !answer.contains("content_block_stop")
                && !answer.contains("message_stop"),
            "{answer}"
        );
    }
    assert!(
        !cut.ends_with("0\r\n\r\n") && truncated.ends_with("0\r\n\r\n"),
        "{cut}{truncated}"
    );
    assert!(malformed.contains("\"ind\n"), "{malformed}");
    assert!(error.contains("overloaded_error"), "{error}");
    let begun = std::time::Instant::now();
    let slow = ask(api.address(), &body).await;
    assert!(begun.elapsed() >= Duration::from_millis(54));
    assert!(
        slow.contains("content-type: text/html")
            && slow.contains("x-mine: yes")
            && slow.contains("max_tokens")
            && slow.matches("text_delta").count() == 4,
        "{slow}"
    );
    // The CLI goes on by itself, with words of its own, which are no prompt.
    let words = json!([
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "abcd"},
        {"role": "user", "content": "Go on."},
    ]);
    let address = api.address();
    let client = tokio::spawn(async move { ask(address, &prompt(true, words)).await });
    api.wait_for_requests(9, SOON).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(api.requests()[8].outcome, RequestOutcome::Pending);
    client.abort();
    assert_eq!(
        api.verdict().unwrap_err().to_string(),
        "script:24:9: no request came for the steps from here on"
    );
}

/// An assertion is judged where it stands in the answer, once, and told if the answer does not come so far.
#[cfg(feature = "players")]
#[tokio::test]
async fn assertions_are_judged_where_they_stand() {
    use std::sync::{Arc, Mutex};

    use crate::running::Line;

    let frames = Arc::new(Mutex::new(Vec::new()));
    let playing = async |yaml: &str| {
        let seen = Arc::clone(&frames);
        let api = MessagesApi::builder().frames(move |_| seen.lock().unwrap().clone());
        let api = api.script(Script::from_yaml(yaml).unwrap()).unwrap();
        api.start().await.unwrap()
    };
    for held in [
        "{say: a}, {wait: {gate: g}}, {assert: {requests: {set_model: 1}}}, {say: b}, {cut}, {assert: {prompts: 7}}",
        "{assert: {requests: {set_model: 0}}}, {wait: {gate: g}}, {assert: {requests: {set_model: 1}}}, {api_error: 500}, \
         {assert: {prompts: 7}}",
        "{wait: {gate: g}}, {assert: {requests: {set_model: 1}}}, {drop}, {assert: {prompts: 7}}",
    ] {
        frames.lock().unwrap().clear();
        let api = playing(&format!("prompts: [{{steps: [{held}]}}]")).await;
        let address = api.address();
        let client = tokio::spawn(async move { ask(address, &prompt(true, user("x"))).await });
        api.gate("g").reached(1, SOON).await.unwrap();
        let sets_model = json!({"type": "control_request", "request": {"subtype": "set_model"}});
        frames.lock().unwrap().push(Line::new(true, sets_model));
        api.gate("g").open();
        client.await.unwrap();
        let told = api.verdict().unwrap_err();
        assert!(
            told.0.iter().all(|flaw| !flaw.what.contains("set_model")),
            "{held}: {told}"
        );
        assert!(told.to_string().contains("was not judged"), "{held}: {told}");
    }
}

/// What the CLI sends when background work has ended is no prompt.
#[tokio::test]
async fn the_end_of_background_work_gets_the_steps_for_it() {
    let api = playing(
        r"
prompts:
  - times: any
    steps:
      - background: {command: make, then: [say: 'it is made, {{prompt}}']}
      - subagent: {description: look, prompt: go below, background: true, steps: [say: from below], then: [say: it is back]}
      - say: They run.
",
    )
    .await;
    let mut talk = Talk::new(&api);
    talk.say("go").await;
    let id = |talk: &Talk<'_>| {
        talk.messages.last().unwrap()["content"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let make = id(&talk);
    talk.result("it runs").await;
    let look = id(&talk);
    assert_eq!(talk.result("it runs").await, "They run.");
    let mut below = Talk::of(&api, &[("x-claude-code-agent-id", "s")]);
    assert_eq!(below.say("go below").await, "from below");
    for (id, said) in [
        (look, "it is back"),
        (make, "it is made, go"),
        ("toolu_x".into(), "ok"),
    ] {
        let note = format!(
            "<system-reminder>\n<task-notification>\n<tool-use-id>{id}</tool-use-id>\n</task-notification>\n"
        );
        assert_eq!(talk.say(&note).await, said);
    }
    api.verdict().unwrap();
}

/// A turn under way goes on as it would have, and the steps for the end of background work follow.
#[tokio::test]
async fn background_work_that_ends_in_a_turn_begins_none() {
    let api = playing(
        r"
prompts:
  - prompt: go
    steps:
      - background: {command: make, then: [say: It is made.]}
      - call: {tool: Bash}
      - say: Done.
",
    )
    .await;
    let mut talk = Talk::new(&api);
    talk.say("go").await;
    let id = |talk: &Talk<'_>| talk.messages.last().unwrap()["content"][0]["id"].clone();
    let made = id(&talk);
    talk.result("it runs").await;
    let result = json!({"type": "tool_result", "tool_use_id": id(&talk), "content": ""});
    talk.messages.push(json!({"role": "user", "content": [result]}));
    let note = format!(
        "<task-notification>\n<tool-use-id>{}</tool-use-id>",
        made.as_str().unwrap()
    );
    talk.messages.push(json!({"role": "system", "content": note}));
    let answer = talk.go_on().await;
    let blocks = content(&answer);
    let said: Vec<&Value> = blocks.iter().map(|block| &block["text"]).collect();
    assert_eq!(said, ["Done.", "It is made."]);
    api.verdict().unwrap();
}

/// An interrupted prompt stays in front of the next one, and a prompt may come while tools run.
#[tokio::test]
async fn prompts_are_told_from_what_the_cli_says_itself() {
    let api = playing(
        r"
prompts:
  - {prompt: one, steps: [{say: half}, {wait: interrupt}, {say: whole}]}
  - {prompt: two, steps: [{call: {tool: Bash}}, {say: Two.}]}
  - {prompt: three, steps: [say: Three.]}
  - {prompt: two, steps: [say: Two again.]}
",
    )
    .await;
    let address = api.address();
    let one = prompt(true, user("one")).to_string();
    let client = tokio::spawn(async move { send(address, "POST /v1/messages", &[], &one).await });
    api.wait_for_requests(1, SOON).await.unwrap();
    client.abort();
    let mut talk = Talk::new(&api);
    let texts =
        ["one\n", "[Request interrupted by user]\n", "two"].map(|text| json!({"type": "text", "text": text}));
    talk.messages.push(json!({"role": "user", "content": texts}));
    talk.go_on().await;
    let id = talk.messages.last().unwrap()["content"][0]["id"].clone();
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": ""});
    talk.messages.push(json!({"role": "user", "content": [result]}));
    let note = "The user sent a new message while you were working:\nthree\n\nThis is how it is.";
    talk.messages.push(json!({"role": "system", "content": note}));
    let answer = talk.go_on().await;
    let said: Vec<Value> = content(&answer)
        .iter()
        .map(|block| block["text"].clone())
        .collect();
    assert_eq!(said, ["Two.", "Three."]);
    assert_eq!(talk.say("two").await, "Two again.");
    api.check(&Expect::default().prompts(4)).unwrap();
}

#[tokio::test]
async fn a_loop_without_a_new_prompt_is_refused() {
    let api = playing(
        r"
requests_per_prompt: 3
prompts:
  - {prompt: go, times: any, steps: [call: {tool: Bash}]}
  - {tool_result: {contains: ''}, times: any, steps: [call: {tool: Bash}]}
",
    )
    .await;
    let mut talk = Talk::new(&api);
    talk.say("go").await;
    for _ in 0..2 {
        talk.result("again").await;
    }
    api.verdict().unwrap();
    for _ in 0..2 {
        talk.messages
            .push(json!({"role": "user", "content": "<system-reminder><task-notification>"}));
        let answer = talk.go_on().await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    let told = api.verdict().unwrap_err().to_string();
    assert!(
        told.contains("request 4, asked 2 times: more than 3 requests came since the last prompt, \"go\"")
            && told.contains("for the rule at script:5:5"),
        "{told}"
    );
    talk.say("go").await;
    assert_eq!(api.requests()[5].outcome, RequestOutcome::Answered(200));
}

#[tokio::test]
async fn what_only_the_simulator_plays_is_refused_with_its_place() {
    let told = |yaml: &str| {
        let script = Script::from_yaml(yaml).unwrap();
        script.check(crate::script::ScriptPlayer::Simulator).unwrap();
        MessagesApi::builder().script(script).unwrap_err().to_string()
    };
    let steps = [
        (
            "call: {tool: Bash, result: x}",
            "`result`: the real CLI runs its tools",
        ),
        ("ask: {permission: {tool: Bash}}", "`ask: permission`: "),
        (
            "ask: {elicitation: {server: s, message: m}}",
            "`ask: elicitation`: ",
        ),
        ("ask: {request: {subtype: x}}", "`ask: request`: "),
        (
            "background: {command: x, exit: 1}",
            "`after`, `output` and `exit` of `background`: ",
        ),
        ("rate_limit: {status: rejected}", "`rate_limit`: "),
        ("compact: {}", "`compact`: "),
        ("cost: 1", "`cost`: "),
        ("raw: {line: x}", "`raw`: "),
        ("stderr: x", "`stderr`: "),
        ("exit: 1", "`exit`: "),
        ("fault: {fault: chop, bytes: 1}", "`fault`: "),
        ("wait: prompt", "`wait: prompt`: "),
        (
            "assert: {permission: allowed}",
            "`assert`: the API does not see the client",
        ),
        (
            "subagent: {description: x, steps: [{say: a}, {cost: 1}]}",
            "`cost`: ",
        ),
    ];
    for (step, why) in steps {
        let error = told(&format!("prompts:\n  - steps:\n      - {step}\n"));
        assert!(error.starts_with("script:3:"), "{error}");
        assert!(
            error.contains(&format!("the scripted API cannot play {why}")),
            "{error}"
        );
    }
    for (field, name) in [
        ("files: {a: b}", "files"),
        ("model: opus", "model"),
        ("faults: [{fault: chop, bytes: 1}]", "faults"),
        ("expect: {requests: {interrupt: 1}}", "expect.requests"),
    ] {
        let error = told(field);
        assert!(error.contains(&format!("cannot play `{name}`: ")), "{error}");
    }
}

#[test]
fn what_only_the_api_plays_is_refused_with_its_place() {
    let told = |yaml: &str| {
        let script = Script::from_yaml(yaml).unwrap();
        script.check(crate::script::ScriptPlayer::Api).unwrap();
        script.spawn_in_memory().unwrap_err().to_string()
    };
    let steps = [
        "truncated",
        "malformed_event",
        "content_type: text/html",
        "headers: {a: b}",
        "stop_sequence: x",
        "more: x",
        "raw: {event: x}",
        "raw: {block: '{}'}",
        "api_error: {status: 429, headers: {x-a: b}}",
        "usage: {cache_read: 1}",
        "say: '{{plan}}'",
    ];
    for step in steps {
        let error = told(&format!("prompts:\n  - steps:\n      - {step}\n"));
        assert!(
            error.starts_with("script:3:9: the simulator cannot play `"),
            "{error}"
        );
    }
    let error = told("expect: {sessions: 1}");
    assert_eq!(
        error,
        "script: the simulator cannot play `expect.sessions`: nobody asks an API here"
    );
}

#[tokio::test]
async fn a_response_may_have_text_behind_a_call_and_parts_as_they_are() {
    let api = playing(
        r#"
prompts:
  - steps:
      - response:
          - call: {tool: Bash, input: {command: ls}}
          - say: half
          - wait: 1ms
          - more: ' and half'
          - raw: {block: '{"type":"text","text":"{{prompt}}"}'}
      - response: []
"#,
    )
    .await;
    let mut talk = Talk::new(&api);
    talk.say("go").await;
    let blocks = talk.messages[1]["content"].as_array().unwrap();
    let texts: Vec<&Value> = blocks.iter().map(|block| &block["text"]).collect();
    assert_eq!(texts, [&Value::Null, &json!("half and half"), &json!("go")]);
    talk.messages.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": blocks[0]["id"], "content": "a.txt"},
    ]}));
    assert_eq!(content(&talk.go_on().await), Vec::<Value>::new());
    api.verdict().unwrap();
}
