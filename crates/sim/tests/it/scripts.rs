//! The example scripts, played; and the schema that they are written by.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_sim::peer::{ClientIo, Exit, Report, Running};
use outrigger_sim::script::{Script, json_schema};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scripts")
}

fn example(name: &str) -> Script {
    Script::from_file(directory().join(name)).unwrap()
}

/// A client of a script, which answers what it is asked.
struct Client {
    stdin: tokio::io::DuplexStream,
    lines: Lines<BufReader<tokio::io::DuplexStream>>,
    agent: Running,
    /// How it answers a control request.
    answer: fn(&Value) -> Value,
}

impl Client {
    fn new(script: &Script, answer: fn(&Value) -> Value) -> Self {
        let (ClientIo { stdin, stdout, .. }, agent) =
            script.agent().unwrap().partial_messages(true).spawn_in_memory();
        let lines = BufReader::new(stdout).lines();
        Self {
            stdin,
            lines,
            agent,
            answer,
        }
    }

    async fn send(&mut self, line: Value) {
        self.stdin
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn prompt(&mut self, text: &str) {
        self.send(json!({"type": "user", "message": {"role": "user", "content": text}}))
            .await;
    }

    async fn control(&mut self, request: Value) {
        self.send(json!({"type": "control_request", "request_id": "c", "request": request}))
            .await;
    }

    /// The next line of this type, with what is asked before answered.
    async fn next(&mut self, kind: &str) -> Option<Value> {
        while let Some(line) = self.lines.next_line().await.unwrap() {
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["type"] == "control_request" {
                let response = json!({
                    "subtype": "success", "request_id": line["request_id"], "response": (self.answer)(&line["request"]),
                });
                self.send(json!({"type": "control_response", "response": response}))
                    .await;
            }
            if line["type"] == kind {
                return Some(line);
            }
        }
        None
    }

    /// Sends a prompt and gives the text of its result.
    async fn ask(&mut self, text: &str) -> String {
        self.prompt(text).await;
        self.result().await
    }

    async fn result(&mut self) -> String {
        let result = self.next("result").await.unwrap();
        result["result"].as_str().unwrap_or_default().to_owned()
    }

    async fn end(mut self) -> Report {
        self.stdin.shutdown().await.unwrap();
        drop(self.stdin);
        while self.lines.next_line().await.unwrap().is_some() {}
        self.agent.join().await
    }
}

fn allow(_: &Value) -> Value {
    json!({"behavior": "allow", "updatedInput": {}})
}

#[tokio::test(start_paused = true)]
async fn hello() {
    let mut client = Client::new(&example("hello.yaml"), allow);
    assert_eq!(client.ask("Hello").await, "Hello! What can I do for you?");
    client.end().await.content().unwrap();

    let mut client = Client::new(&example("hello.yaml"), allow);
    client.ask("Hello").await;
    let answer = client.ask("Hello").await;
    let flaws = client.end().await.content().unwrap_err().to_string();
    let place = directory().join("hello.yaml").display().to_string();
    assert_eq!(
        flaws,
        format!(
            "{place}: no rule of the script is for the prompt \"Hello\"; the nearest is at {place}:4:5, for \"Hello\", which \
             has been used already (once)"
        )
    );
    assert!(
        answer.contains("no rule of the script is for the prompt"),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn permission() {
    let policy: fn(&Value) -> Value = |request| {
        if request["input"]["command"] == "cargo publish" {
            json!({"behavior": "deny", "message": "never without me"})
        } else {
            allow(request)
        }
    };
    let mut client = Client::new(&example("permission.yaml"), policy);
    assert_eq!(client.ask("please clean up").await, "It is gone.");
    assert_eq!(
        client.ask("now publish it").await,
        "Then I will leave that to you."
    );
    client.end().await.content().unwrap();

    let mut client = Client::new(&example("permission.yaml"), allow);
    client.ask("please clean up").await;
    client.ask("now publish it").await;
    let flaws = client.end().await.content().unwrap_err().0;
    let what: Vec<&str> = flaws.iter().map(|flaw| flaw.what.as_str()).collect();
    assert_eq!(
        what,
        [
            "expected \"Bash\" to be denied, but it was allowed: {\"behavior\":\"allow\",\"updatedInput\":{}}",
            "expected Bash to be called at least once with {\"command\":\"cargo publish\"}, but 0 of its calls fit: \
             {\"command\":\"rm build.log\",\"description\":\"Remove the log\"}, \
             {\"command\":\"cargo publish\",\"description\":\"Publish the crate\"}",
        ]
    );
    assert!(
        flaws[0].place.ends_with("permission.yaml:23:9"),
        "{}",
        flaws[0].place
    );
}

/// The client denies a call in such a way that the turn is over.
#[tokio::test(start_paused = true)]
async fn an_assertion_that_is_not_reached_is_a_flaw() {
    let deny = |_: &Value| json!({"behavior": "deny", "message": "no", "interrupt": true});
    for (more, expected) in [("", 1), ("expect: {every_rule_used: false}\n", 0)] {
        let script = Script::from_yaml(&format!(
            "prompts:\n  - times: any\n    steps:\n      - call: {{tool: Bash, input: {{command: rm x, description: Remove}}}}\n      \
             - assert: {{permission: allowed}}\n      - say: done\n{more}"
        ))
        .unwrap();
        for turns in [1, 2] {
            let mut client = Client::new(&script, deny);
            for _ in 0..turns {
                client.ask("go").await;
            }
            let flaws = client.end().await.flaws;
            assert_eq!(flaws.len(), expected, "{flaws:?}");
            for flaw in flaws {
                assert_eq!(flaw.place, "script:5:9");
                assert!(flaw.what.contains("not judged"), "{flaw}");
            }
        }
    }
}

/// The client interrupts a turn in the middle of a response, whose rest is gone then.
#[tokio::test(start_paused = true)]
async fn an_assertion_in_the_rest_of_an_aborted_response_is_a_flaw() {
    for step in [
        "wait: 10m",
        "wait: interrupt",
        "wait: {request: set_model}",
        "ask: {elicitation: {server: s, message: m}}",
        "stall",
    ] {
        let script = format!(
            "prompts:\n  - steps:\n      - say: a\n      - {step}\n      - assert: {{requests: {{interrupt: 0}}}}\n      - say: b\n"
        );
        let mut client = Client::new(&Script::from_yaml(&script).unwrap(), allow);
        client.prompt("go").await;
        client.next("stream_event").await.unwrap();
        client.control(json!({"subtype": "interrupt"})).await;
        client.result().await;
        let flaws = client.end().await.flaws;
        let places: Vec<&str> = flaws.iter().map(|flaw| flaw.place.as_str()).collect();
        assert_eq!(places, ["script:5:9"], "{step}: {flaws:?}");
        assert!(flaws[0].what.contains("was not judged"), "{step}: {flaws:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn assertions_are_judged_where_they_stand() {
    let script = Script::from_yaml(
        r"
prompts:
  - steps:
      - assert: {requests: {set_model: 0}}
      - api_error: {status: 529, times: 1}
      - assert: {requests: {set_model: 1}}
      - say: a
      - assert: {requests: {set_model: 1}}
      - stall
",
    )
    .unwrap();
    let mut client = Client::new(&script, allow);
    client.prompt("go").await;
    while client.next("system").await.unwrap()["subtype"] != "api_retry" {}
    client
        .control(json!({"subtype": "set_model", "model": "sonnet"}))
        .await;
    while client.next("stream_event").await.unwrap()["event"]["type"] != "content_block_delta" {}
    client.control(json!({"subtype": "interrupt"})).await;
    client.result().await;
    client.end().await.content().unwrap();
}

#[tokio::test(start_paused = true)]
async fn tools() {
    let mut client = Client::new(&example("tools.yaml"), allow);
    assert_eq!(
        client.ask("Fix the answer").await,
        "The code and the README agree now."
    );
    let report = client.end().await;
    report.content().unwrap();
    let result = report.sent().find(|line| line["type"] == "result").unwrap();
    // Five responses, the last of which says what it costs.
    assert_eq!(result["usage"]["input_tokens"], 4 * 10 + 1200);
}

#[tokio::test(start_paused = true)]
async fn questions() {
    let person: fn(&Value) -> Value = |request| match request["subtype"].as_str() {
        Some("elicitation") => json!({"action": "accept", "content": {"account": "test"}}),
        _ if request["tool_name"] == "AskUserQuestion" => {
            let mut input = request["input"].clone();
            input["answers"] = json!({"Which database?": "SQLite"});
            json!({"behavior": "allow", "updatedInput": input})
        }
        _ => allow(request),
    };
    let mut client = Client::new(&example("questions.yaml"), person);
    assert_eq!(client.ask("set up the project").await, "Ready to start.");
    client.end().await.content().unwrap();
}

#[tokio::test(start_paused = true)]
async fn interrupt() {
    let mut client = Client::new(&example("interrupt.yaml"), allow);
    client.prompt("Tell me everything").await;
    client.next("assistant").await.unwrap();
    client.control(json!({"subtype": "interrupt"})).await;
    client.result().await;
    client.prompt("Look at the logs").await;
    client.next("system").await.unwrap();
    client.prompt("And hurry up").await;
    client
        .control(json!({"subtype": "set_model", "model": "haiku"}))
        .await;
    assert_eq!(client.result().await, "It is empty.");
    client.end().await.content().unwrap();

    // Nobody interrupts.
    let mut client = Client::new(&example("interrupt.yaml"), allow);
    client.ask("Tell me everything").await;
    let flaws = client.end().await.content().unwrap_err().0;
    assert_eq!(flaws[0].what, "waited 30s for an interrupt in vain");
}

#[tokio::test(start_paused = true)]
async fn background() {
    let mut client = Client::new(&example("background.yaml"), allow);
    let began = tokio::time::Instant::now();
    assert_eq!(client.ask("Run the tests").await, "They are running.");
    assert!(began.elapsed() < Duration::from_secs(90));
    assert_eq!(client.result().await, "One test fails.");
    assert!(began.elapsed() >= Duration::from_secs(90));
    let report = client.end().await;
    report.content().unwrap();
    let notified = report
        .sent()
        .find(|line| line["subtype"] == "task_notification")
        .unwrap();
    assert_eq!(
        notified["summary"],
        "Background command \"Run the tests\" failed with exit code 101"
    );
}

#[tokio::test(start_paused = true)]
async fn trouble() {
    let mut client = Client::new(&example("trouble.yaml"), allow);
    assert_eq!(client.ask("Try").await, "The third attempt went through.");
    assert_eq!(
        client.ask("Try again").await,
        "API Error: 400 there is no such tool"
    );
    assert_eq!(client.ask("Make room").await, "There is room again.");
    client.prompt("Break down").await;
    assert!(client.next("result").await.is_none());
    let report = client.agent.clone().join().await;
    report.content().unwrap();
    assert_eq!(report.exit, Some(Exit::Signal(9)));
    let kinds = report.sent_kinds();
    for kind in [
        "rate_limit_event",
        "system/api_retry",
        "system/compact_boundary",
        "system/from_the_future",
    ] {
        assert!(kinds.iter().any(|sent| sent == kind), "{kind}: {kinds:?}");
    }
    assert_eq!(kinds.iter().filter(|kind| *kind == "system/api_retry").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn pacing() {
    let mut client = Client::new(&example("pacing.yaml"), allow);
    client.ask("Hi").await;
    let began = tokio::time::Instant::now();
    let joke = client.ask("a joke").await;
    // A turn, a response, and a pause before each piece.
    let pieces = joke.len().div_ceil(12) as u32;
    assert_eq!(
        began.elapsed(),
        Duration::from_millis(2 * 200) + pieces * Duration::from_millis(50)
    );
    client.ask("Hm").await;
    assert_eq!(client.ask("Bye").await, "ok");
    let report = client.end().await;
    report.content().unwrap();
    let init = report.sent().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(init["model"], "claude-haiku-5-5");
}

#[tokio::test(start_paused = true)]
async fn subagent() {
    let mut client = Client::new(&example("subagent.yaml"), allow);
    assert_eq!(client.ask("Review the code").await, "The program does nothing.");
    assert_eq!(client.result().await, "And the linter is content.");
    let report = client.end().await;
    report.content().unwrap();
    let of_agents = report
        .sent()
        .filter(|line| line["type"] == "assistant" && line["parent_tool_use_id"].is_string());
    // Two lines of the first, whose text is not shown, and one of the second.
    assert!(of_agents.count() >= 2);
}

#[tokio::test(start_paused = true)]
async fn faults() {
    let mut client = Client::new(&example("faults.yaml"), allow);
    let began = tokio::time::Instant::now();
    assert_eq!(client.ask("One").await, "This comes late.");
    assert!(began.elapsed() >= Duration::from_secs(2));
    client.prompt("Two").await;
    let first = client.next("assistant").await;
    assert_eq!(first, client.next("assistant").await);
    client.result().await;
    client.prompt("Three").await;
    assert!(client.next("assistant").await.is_some());
    assert!(client.next("result").await.is_none());
    let report = client.agent.clone().join().await;
    report.content().unwrap();
    assert_eq!(report.exit, Some(Exit::Code(4)));
}

#[tokio::test(start_paused = true)]
async fn weather() {
    let mut client = Client::new(&example("weather.yaml"), allow);
    let said = client.ask("What is the weather in Oslo?").await;
    assert_eq!(said, "In Oslo it is 3 degrees.");
    assert_eq!(client.ask("And in Rome?").await, "In Rome it is 21 degrees.");
    client.end().await.content().unwrap();
}

#[tokio::test(start_paused = true)]
async fn network() {
    let mut client = Client::new(&example("network.yaml"), allow);
    assert_eq!(client.ask("Try").await, "The third attempt went through.");
    client.prompt("Try again").await;
    // The event is tried again in silence.
    for attempt in 1..=2 {
        let retry = loop {
            let line = client.next("system").await.unwrap();
            if line["subtype"] == "api_retry" {
                break line;
            }
        };
        assert_eq!(
            (&retry["attempt"], &retry["error_status"]),
            (&json!(attempt), &json!(null))
        );
    }
    assert_eq!(client.result().await, "This came at last.");
    client.end().await.content().unwrap();
}

#[tokio::test(start_paused = true)]
async fn team() {
    let mut client = Client::new(&example("team.yaml"), allow);
    assert_eq!(client.ask("Review it").await, "The reader says: It does nothing.");
    client.end().await.content().unwrap();
}

/// Each example has a test of its name, and is what the schema describes.
#[test]
fn every_example_is_played_and_fits_the_schema() {
    let tests = include_str!("scripts.rs");
    let schema = jsonschema::validator_for(&json_schema()).unwrap();
    let mut found = 0;
    for entry in std::fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            tests.contains(&format!("async fn {name}()")),
            "{name} is not played"
        );
        let value: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let errors: Vec<String> = schema
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
        found += 1;
    }
    assert!(found >= 8, "{found}");
}

/// `UPDATE=1 cargo test -p outrigger-sim --test it schema` writes it anew.
#[test]
fn the_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/script.schema.json");
    let current = format!("{:#}\n", json_schema());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == current,
        "the schema is out of date: run UPDATE=1 cargo test -p outrigger-sim --test it schema"
    );
}

/// Each script of the reference can be read; a list stands for the steps of one.
#[test]
fn the_scripts_of_the_reference_can_be_read() {
    let reference = include_str!("../../../../docs/scripts.md");
    let mut blocks = reference
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let mut read = 0;
    blocks
        .try_for_each(|block| {
            let text = if block.starts_with("- ") {
                let steps: String = block.lines().map(|line| format!("      {line}\n")).collect();
                format!("prompts:\n  - steps:\n{steps}")
            } else {
                block.to_owned()
            };
            read += 1;
            Script::from_yaml(&text).map(|_| ())
        })
        .unwrap();
    assert_eq!(read, 4);
}

/// The reference names every step, and everything that a script, a rule and an assertion have.
#[test]
fn the_reference_is_complete() {
    let reference = include_str!("../../../../docs/scripts.md");
    let schema = json_schema();
    let fields =
        |of: &Value| -> Vec<String> { of["properties"].as_object().unwrap().keys().cloned().collect() };
    let steps = schema["$defs"]["Step"]["oneOf"].as_array().unwrap();
    // A step without anything more is a word.
    let words = steps.iter().filter_map(|step| {
        let one = step["const"].as_str().map(str::to_owned);
        one.map(|word| vec![word]).or_else(|| {
            let words = step["enum"].as_array()?.iter();
            Some(
                words
                    .filter_map(|word| word.as_str().map(str::to_owned))
                    .collect(),
            )
        })
    });
    let mut names: Vec<String> = words.flatten().collect();
    assert!(names.contains(&"truncated".to_owned()), "{names:?}");
    names.extend(
        steps
            .iter()
            .filter(|step| step["properties"].is_object())
            .flat_map(fields),
    );
    names.extend(fields(&schema));
    for part in ["Rule", "Assert", "Expect"] {
        names.extend(fields(&schema["$defs"][part]));
    }
    assert!(names.len() > 40, "{names:?}");
    let missing: Vec<&String> = names
        .iter()
        .filter(|name| !reference.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/scripts.md does not mention {missing:?}");
}
