use std::path::Path;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::*;
use crate::peer::{Exit as End, Report};

/// Sends these prompts, allows what is asked for, and gives the report.
async fn play(script: &Script, prompts: &[&str]) -> Report {
    let (mut client, agent) = script.spawn_in_memory().unwrap();
    for prompt in prompts {
        let line = json!({"type": "user", "message": {"role": "user", "content": prompt}});
        client
            .stdin
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        let results = |report: &Report| report.sent().filter(|line| line["type"] == "result").count();
        let before = results(&agent.report());
        while results(&agent.report()) == before && agent.exited().is_none() {
            for request in open_requests(&agent.report()) {
                let answer = json!({"type": "control_response", "response": {
                    "subtype": "success", "request_id": request, "response": {"behavior": "allow", "updatedInput": {}},
                }});
                client
                    .stdin
                    .write_all(format!("{answer}\n").as_bytes())
                    .await
                    .unwrap();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    drop(client.stdin);
    agent.join().await
}

fn open_requests(report: &Report) -> Vec<Value> {
    let asked = report.sent().filter(|line| line["type"] == "control_request");
    let open = |id: &Value| {
        !report
            .received()
            .any(|line| line["response"]["request_id"] == *id)
    };
    asked
        .map(|line| line["request_id"].clone())
        .filter(open)
        .collect()
}

fn result(report: &Report) -> &Value {
    report
        .sent()
        .filter(|line| line["type"] == "result")
        .last()
        .unwrap()
}

const TIDY: &str = r#"
prompts:
  - prompt: {contains: tidy up}
    steps:
      - think: The log is old.
      - say: I will remove the old log.
      - call: {tool: Bash, input: {command: rm old.log, description: Remove the log}}
      - assert: {permission: allowed, prompts: 1}
      - say: Done.
expect:
  tools: [Bash]
"#;

#[tokio::test(start_paused = true)]
async fn a_script_plays_the_model_and_judges_the_client() {
    let script = Script::from_yaml(TIDY).unwrap();
    let report = play(&script, &["please tidy up"]).await;
    report.content().unwrap();
    assert_eq!(result(&report)["result"], "Done.");
    assert_eq!(report.exit, Some(End::Code(0)));
    let mut kinds = report.sent_kinds();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "system/init",
            "system/thinking_tokens",
            "assistant",
            "control_request/can_use_tool",
            "user",
            "assistant",
            "result/success",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_script_does_not_expect_is_a_flaw() {
    let script = Script::from_yaml(TIDY).unwrap();
    let report = play(&script, &["please clean up"]).await;
    let flaws = report.content().unwrap_err().to_string();
    assert_eq!(
        flaws,
        "script: no rule of the script is for the prompt \"please clean up\"; the nearest is at script:3:5, for something with \
         \"tidy up\"\nscript:3:5: this rule was never used\nscript:11:11: expected Bash to be called at least once, but it \
         never was"
    );
    assert_eq!(result(&report)["is_error"], true);
}

/// What is wrong with a script, as it is told.
fn wrong(yaml: &str) -> String {
    Script::from_yaml(yaml).unwrap_err().to_string()
}

#[test]
fn mistakes_are_told_with_line_and_column() {
    let cases = [
        (
            "prompts:\n  - prompt: hi\n    steps:\n      - call:\n          tol: Bash\n",
            "script:5:11: unknown field `tol`, did you mean `tool`? Known here: tool, input, result, is_error, details, run",
        ),
        (
            "prompts:\n  - steps:\n      - response: [{say: a}, {response: []}]\n",
            "script:3:9: a `response` has no other `response` in it",
        ),
        (
            "prompts:\n  - steps:\n      - sya: hi\n",
            "script:3:9: unknown word `sya`, did you mean `say`? Known here: say, think, call, parallel, ask, plan,",
        ),
        (
            "modle: opus\n",
            "script:1:1: unknown field `modle`, did you mean `model`? Known here: model,",
        ),
        (
            "prompts:\n  - steps:\n      - say: a\n        think: b\n",
            "script:4:9: one thing too many: this takes a mapping with one key (a step is one item of the list)",
        ),
        (
            "prompts:\n  - steps:\n      - call: {input: {}}\n",
            "script:3:16: the field `tool` is missing",
        ),
        (
            "prompts:\n  - prompt: a\n    prompt: b\n",
            "script:3:5: the field `prompt` is given twice",
        ),
        (
            "prompts:\n  - prompt: {regex: '('}\n",
            "script:2:21: `(` is no regular expression",
        ),
        (
            "patience: soon\n",
            "script:1:11: `soon` is no length of time: write 250ms, 2s or 3m",
        ),
        (
            "prompts:\n  - times: 0\n",
            "script:2:12: `0` is no number of prompts: write 1 or more, or `any`",
        ),
        (
            "prompts:\n  - steps:\n      - wait: forever\n",
            "script:3:15: cannot wait for `forever`: write a length of time such as 250ms or 2s, `interrupt` or `prompt`",
        ),
        (
            "prompts:\n  - steps:\n      - exit: 256\n",
            "script:3:15: `256` is no exit code: they go from 0 to 255",
        ),
        (
            "prompts:\n  - steps:\n      - say: a\n      - call: {tool: Bash, is_error: true}\n",
            "script:4:9: `is_error` says what `result` is: give it one",
        ),
        (
            "prompts:\n  - steps:\n      - assert: {}\n",
            "script:3:9: `assert` demands nothing",
        ),
        (
            "files: {../x: y}\n",
            "script:1:15: the file `../x` is not inside the working directory: give a relative path without `..`",
        ),
        (
            "prompts:\n  - prompt: {regex: '(?<what>x)'}\n    steps:\n      - say: '{{waht}}'\n",
            "script:4:9: unknown variable `waht`, did you mean `what`? Known here: what, prompt, result, cwd, home, plan, braces; a named",
        ),
        (
            "prompts:\n  - steps:\n      - background: {command: x, then: [{call: {tool: X, input: {a: ['{{b}}']}}}]}\n",
            "script:3:41: unknown variable `b`",
        ),
        (
            "prompts:\n  - steps:\n      - api_error: 200\n",
            "script:3:20: `200` is no HTTP status of an error: they go from 400 to 599",
        ),
        (
            "prompts:\n  - steps:\n      - api_error: {times: 1, status: 600}\n",
            "script:3:39: `600` is no HTTP status of an error: they go from 400 to 599",
        ),
        (
            "prompts:\n  - steps:\n      - api_error: '529'\n",
            "script:3:20: here goes an HTTP status, or a mapping with `status`, `message`, `kind`, `retry_after`, `headers` and `times`, \
             not the text `529`",
        ),
        (
            "prompts:\n  - prompt: 42\n    steps: []\n",
            "script:2:13: here goes a text, and the number `42` is one only in quotes",
        ),
        (
            "prompts:\n  - prompt: [a]\n",
            "script:2:13: here goes a text, or a mapping with one of `exact`, `contains` and `regex`, not a list",
        ),
        (
            "prompts:\n  - prompt: {regex: a, contains: b}\n",
            "script:2:24: one thing too many: this takes a mapping with one key",
        ),
        (
            "prompts:\n  - steps:\n      - exit: {signal: 99}\n",
            "script:3:24: `99` is no signal: `signal` is the number of a signal, from 1 to 31",
        ),
        (
            "prompts:\n  - steps:\n      - exit: {code: -1}\n",
            "script:3:22: `-1` is no exit code: they go from 0 to 255",
        ),
        (
            "prompts:\n  - steps:\n      - background: {command: x, exit: 300}\n",
            "script:3:40: `300` is no exit code: they go from 0 to 255",
        ),
        (
            "prompts:\n  - steps:\n      - pace: {chunk: 0}\n",
            "script:3:23: a piece of a text has at least 1 character",
        ),
        (
            "pacing: {chunk: 0}\n",
            "script:1:17: a piece of a text has at least 1 character",
        ),
        (
            "prompts:\n  - steps:\n      - fault: {fault: signal, signal: 99}\n",
            "script:3:40: `signal` takes a whole number from 1 to 31, not the number `99`",
        ),
        (
            "prompts:\n  - steps:\n      - fault: {fault: drop, at: {kind: result/succes}}\n",
            "script:3:9: `at`: unknown kind of frame `result/succes`, did you mean `result/success`? Known here: result/error_during_",
        ),
        (
            "faults: [{fault: drop, at: {kind: asistant}}]\n",
            "script:1:35: `at`: unknown kind of frame `asistant`, did you mean `assistant`?",
        ),
        (
            "prompts:\n  - steps:\n      - say: {{prompt}} ok\n",
            "script:3:14: here goes a text: a text with `: ` in it, or with `{` or `[` at its beginning, goes in quotes",
        ),
        (
            "prompts:\n  - steps:\n      - say: {{prompt}}\n",
            "script:3:14: `say` takes a text, not a mapping: a text with `: ` in it, or with `{` or `[` at its beginning, goes in quotes",
        ),
        (
            "prompts:\n  - steps:\n      - call: {tool: Bash, input: {command: {{prompt}}}}\n",
            "script:3:45: the name of a field is a text, not a mapping: a text with",
        ),
        (
            "prompts:\n  - steps:\n      - say: Note: this\n",
            "script:3:18: a field cannot begin here: a text with `: ` in it goes in quotes",
        ),
        (
            "prompts:\n  - steps:\n      - say: %hello\n",
            "script:3:14: a text that begins with this character goes in quotes",
        ),
        (
            "prompts:\n  - steps:\n      - say: *hello\n",
            "script:3:14: no `&name` is there for this alias: a text that begins with `*` goes in quotes",
        ),
        (
            "prompts:\n  - steps:\n      - say: !hello\n",
            "script:3:20: `say` takes a text, not nothing: an empty text is `''`, and one that begins with `#` or `!` goes in quotes",
        ),
        (
            "prompts:\n  - steps:\n      - say: \"a\\d\"\n",
            "script:3:14: inside double quotes, `\\` begins an escape: put the text in single quotes",
        ),
        (
            "prompts:\n\t- prompt: hi\n",
            "script:2:2: here is a tab: indent with spaces",
        ),
        (
            "prompts:\n  - steps:\n      - say:\n",
            "script:3:12: `say` takes a text, not nothing: an empty text is `''`, and one that begins with `#` or `!` goes in quotes",
        ),
        (
            "prompts:\n  - steps:\n      - assert: {permission: denied, message: }\n",
            "script:3:45: here goes a value, not nothing: an empty text is `''`, and one that begins with `#` or `!` goes in quotes",
        ),
        (
            "prompts:\n  - prompt: #urgent\n    steps: []\n",
            "script:2:11: here goes a value, not nothing: an empty text is `''`, and one that begins with `#` or `!` goes in quotes",
        ),
        (
            "prompts:\n  - steps:\n      - assert:\n          hook: ~\n",
            "script:4:17: here goes a value, not nothing: an empty text is `''`, and one that begins with `#` or `!` goes in quotes",
        ),
        (
            "expect:\n  prompts:\n",
            "script:2:10: here goes a value, not nothing: an empty text is `''`, and one that begins with `#` or `!` goes in quotes",
        ),
        (
            "prompts:\n  - steps:\n      - say\n",
            "script:3:9: `say` takes a value: write `say: …`",
        ),
        (
            "prompts:\n  - steps:\n      - drop: 3\n",
            "script:3:9: `drop` stands alone, without a value: write `drop`",
        ),
        (
            "prompts:\n  - steps:\n      - cut: {times: 3}\n",
            "script:3:9: `cut` stands alone, without a value: write `cut`",
        ),
        (
            "prompts:\n  prompt: hi\n  steps: []\n",
            "script:2:3: `prompts` takes a list, not a mapping: each item is on a line that begins with `- `",
        ),
        (
            "prompts:\n  - steps:\n",
            "script:2:10: `steps` takes a list, not nothing: an empty list is `[]`",
        ),
        (
            "- prompt: hi\n  steps: []\n",
            "script:1:1: a script is a mapping, not a list: write `prompts:` on a line above it",
        ),
        (
            "prompts:\n  - steps:\n      - call: Bash\n",
            "script:3:15: `call` takes a mapping with `tool`, `input`, `result`, `is_error`, `details`, `run`, not the text `Bash`: write \
             `{tool: …}`",
        ),
        (
            "prompts:\n  - steps:\n      - call: {tool: Read, input: notes.md}\n",
            "script:3:35: `input` takes a mapping, not the text `notes.md`: write `{name: …}`",
        ),
        (
            "prompts:\n  - steps:\n      - assert: {is_error: no}\n",
            "script:3:28: `is_error` takes `true` or `false`, not the text `no`",
        ),
        (
            "prompts:\n  - steps:\n      - assert: {prompts: -1}\n",
            "script:3:27: `prompts` takes a whole number from 0, not the number `-1`",
        ),
        (
            "prompts:\n  - steps:\n      - cost: free\n",
            "script:3:15: `cost` takes a number, not the text `free`",
        ),
        (
            "prompts:\n  - steps:\n      - cost: -1\n",
            "script:3:15: a cost is a number of US dollars, and not negative",
        ),
        (
            "prompts: []\n---\nprompts: []\n",
            "script:3:1: `---` begins another document, and a script is one: give each a file of its own",
        ),
        (
            "prompts:\n  - steps:\n      - say: a\n      - drop\n",
            "script:4:9: `drop` comes before the first byte of a response",
        ),
        (
            "prompts\n  - steps: []\n",
            "script:1:1: here goes a mapping: each of its fields is `name: value`",
        ),
        (
            "prompts:\n  - steps:\n      - say: \"a\n",
            "script:4:1: the quote is not closed, or the next line of the text is not indented",
        ),
        (
            "{\"prompts\": [{\"prompt\": \"hi\" \"steps\": []}]}\n",
            "script:1:30: behind the closing quote stands more: a `,` is missing, or the whole text goes in quotes",
        ),
        ("prompts: [\n", "script:1:10: this bracket is not closed"),
        (
            "faults:\n  - fault: drop\n  - fault: drop\n    at:\n      kind: result/succes\n",
            "script:5:13: `at`: unknown kind of frame `result/succes`, did you mean `result/success`?",
        ),
        (
            "prompts:\n  - steps:\n      - wait: {request: interupt}\n",
            "script:3:9: unknown control request `interupt`, did you mean `interrupt`?",
        ),
        (
            "prompts:\n  - steps:\n      - wait: {request: can_use_tool}\n",
            "script:3:9: the CLI sends the control request `can_use_tool`: here goes one that the client sends",
        ),
        (
            "prompts:\n  - steps:\n      - assert: {requests: {set_modle: 1}}\n",
            "script:3:9: unknown control request `set_modle`, did you mean `set_model`?",
        ),
        (
            "prompts:\n  - steps:\n      - ask: {request: {subtype: hook_calback}}\n",
            "script:3:9: unknown control request `hook_calback`, did you mean `hook_callback`?",
        ),
        (
            "expect:\n  requests:\n    interrupt: 1\n    set_modle: 1\n",
            "script:4:16: unknown control request `set_modle`, did you mean `set_model`?",
        ),
        (
            "prompts:\n  - steps:\n      - subagent: {description: d, steps: [{call: {tool: Bsh}}]}\n",
            "script:3:44: unknown tool `Bsh`, did you mean `Bash`?",
        ),
        (
            "prompts:\n  - steps:\n      - parallel: [{tool: Read}, {tool: websearch}]\n",
            "script:3:9: unknown tool `websearch`, did you mean `WebSearch`?",
        ),
        (
            "prompts:\n  - steps:\n      - ask: {permission: {tool: Wirte}}\n",
            "script:3:9: unknown tool `Wirte`, did you mean `Write`?",
        ),
        (
            "prompts:\n  - has_tool: Bassh\n",
            "script:2:5: unknown tool `Bassh`, did you mean `Bash`?",
        ),
        (
            "tools: [Read, Gerp]\n",
            "script:1:15: unknown tool `Gerp`, did you mean `Grep`?",
        ),
        (
            "expect: {tools: [Raed]}\n",
            "script:1:18: unknown tool `Raed`, did you mean `Read`?",
        ),
        (
            "permission_mode: acceptedits\n",
            "script:1:18: unknown permission mode `acceptedits`, did you mean `acceptEdits`?",
        ),
        (
            "prompts:\n  - steps:\n      - stop_reason: maxtokens\n",
            "script:3:9: unknown stop reason `maxtokens`, did you mean `max_tokens`?",
        ),
        (
            "prompts:\n  - steps:\n      - rate_limit: {status: rejectd}\n",
            "script:3:9: unknown status `rejectd`, did you mean `rejected`?",
        ),
        (
            "prompts:\n  - steps:\n      - rate_limit: {status: rejected, limit: five_hours}\n",
            "script:3:9: unknown limit `five_hours`, did you mean `five_hour`?",
        ),
        (
            "prompts:\n  - steps:\n      - rate_limit: {status: rejected, utilization: 85}\n",
            "script:3:53: `85` is no part of a whole: it goes from 0 to 1",
        ),
        (
            "prompts:\n  - steps:\n      - error_event: overloaded\n",
            "script:3:9: unknown type of an error `overloaded`, did you mean `overloaded_error`?",
        ),
        (
            "prompts:\n  - steps:\n      - api_error: {status: 529, kind: overloded_error}\n",
            "script:3:9: unknown type of an error `overloded_error`, did you mean `overloaded_error`?",
        ),
        (
            "prompts:\n  - steps:\n      - block: {type: txt, text: a}\n",
            "script:3:9: unknown content block `txt`, did you mean `text`?",
        ),
        (
            "prompts:\n  - steps:\n      - headers: {'retry after': '1'}\n",
            "script:3:9: HTTP carries no such header: a name has",
        ),
        (
            "prompts:\n  - steps:\n      - content_type: \"a\\nb\"\n",
            "script:3:9: HTTP carries no such header",
        ),
        (
            "prompts:\n  - steps:\n      - usage: {input: 18446744073709551615}\n",
            "script:3:24: `18446744073709551615` tokens are more than a response has",
        ),
        (
            "requests_per_prompt: 0\n",
            "script:1:22: a prompt takes at least 1 request",
        ),
        (
            "patience: 9999999999999999999s\n",
            "script:1:11: `9999999999999999999s` is no length of time",
        ),
        (
            "prompts:\n  - steps:\n      - ask: {permission: {tool: Bash, suggestions: [{type: setMod}]}}\n",
            "script:3:9: unknown permission update `setMod`, did you mean `setMode`?",
        ),
        (
            "faults:\n  - fault: split\n",
            "script:2:5: the field `bytes` is missing",
        ),
        (
            "prompts:\n  - steps:\n      - ask: {question: {question: Which?, options: []}}\n",
            "script:3:9: `options` without an answer to choose: give the question some",
        ),
        (
            "prompts:\n  - steps:\n      - ask: {questions: [{question: Which?, options: []}]}\n",
            "script:3:9: `options` without an answer to choose: give the question some",
        ),
    ];
    let mut off = Vec::new();
    for (yaml, expected) in cases {
        let text = wrong(yaml);
        if !text.starts_with(expected) {
            off.push(format!("{yaml}  {text}\n  {expected}"));
        }
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
}

/// A later CLI may have it, or a server: only a slip is a mistake.
#[test]
fn names_that_nobody_knows_yet_are_right() {
    Script::from_yaml(
        "
permission_mode: careful
tools: [Bash, Telescope]
prompts:
  - has_tool: Telescope
    steps:
      - wait: {request: get_model}
      - assert: {requests: {rewire_all: 1}}
      - ask: {request: {subtype: ask_the_oracle}}
      - call: {tool: Telescope}
      - call: {tool: mcp__desk__bsh}
      - call: {tool: '{{prompt}}'}
      - block: {type: hologram}
      - rate_limit: {status: dreaming, limit: one_moon, utilization: 1}
      - api_error: {status: 500, kind: odd_error}
      - error_event: odd_error
      - stop_reason: bored
expect:
  tools: [Telescope]
  requests: {rewire_all: 1}
",
    )
    .unwrap();
}

#[test]
fn a_file_is_named() {
    let error = Script::from_file("/nowhere/script.yaml").unwrap_err().to_string();
    assert!(
        error.starts_with("/nowhere/script.yaml: cannot be read: "),
        "{error}"
    );
}

/// Aliases that would grow without bound are refused by the reader.
#[test]
fn a_script_cannot_blow_up() {
    let mut yaml = "prompts: []\nfiles:\n  a: &a aaaaaaaaaa\nmcp_servers:\n".to_owned();
    yaml.push_str("  - &l0 [x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let items = vec![format!("*l{}", n - 1); 9].join(", ");
        yaml.push_str(&format!("  - &l{n} [{items}]\n"));
    }
    wrong(&yaml);
}

#[test]
fn what_is_read_can_be_built() {
    let read = Script::from_yaml(
        r#"
model: opus
permission_mode: plan
seed: 7
clock: virtual
pacing: {every: 10ms, chunk: 4, turn: 1s}
real_tools: true
files: {a.txt: text}
patience: 500
unmatched: ok
prompts:
  - prompt: hello
    times: 2
    steps:
      - think: hm
      - call: {tool: Read, input: {file_path: a.txt}, run: real}
      - call: {tool: Bash, input: {command: x}, result: no, is_error: true}
      - ask: {question: {question: Which?, options: [a, b]}}
      - ask: {elicitation: {server: s, message: m, schema: {type: object}}}
      - ask: {permission: {tool: Bash, suggestions: [{type: setMode}]}}
      - background: {command: c, after: 1s, output: o, exit: 1, then: [say: done]}
      - api_error: 529
      - api_error: {status: 500, message: m, times: 1}
      - usage: {input: 1, output: 2}
      - cost: 0.25
      - pace: {chunk: 1, every: 1ms}
      - wait: 2s
      - wait: interrupt
      - wait: {request: set_model}
      - wait: {gate: g}
      - assert: {permission: denied, requests: {interrupt: 1}}
      - exit: 3
      - exit: {signal: 9, after_result: true}
  - anytime: true
    times: any
    prompt: {contains: b}
expect:
  tools: [{tool: Read, input: {}}]
  prompts: 2
"#,
    )
    .unwrap();
    let ms = Duration::from_millis;
    let mut limits = Expect::default().prompts(2);
    limits.tools.push(Placed::from(ToolCalled {
        tool: "Read".to_owned(),
        input: Some(json!({})),
        ..ToolCalled::default()
    }));
    let built = Script::new()
        .model("opus")
        .permission_mode("plan")
        .seed(7)
        .virtual_clock()
        .pacing(Pacing::pieces(4, ms(10)).turn(ms(1000)))
        .real_tools(true)
        .file("a.txt", "text")
        .patience(ms(500))
        .unmatched(Unmatched::Ok)
        .rule(
            Rule::of("hello")
                .times(Times::Exactly(2))
                .think("hm")
                .step(Call::new("Read", json!({"file_path": "a.txt"})).run(Run::Real))
                .step(Call::new("Bash", json!({"command": "x"})).error("no"))
                .step(ChoiceQuestion::new("Which?", ["a", "b"]))
                .step(Elicitation::new("s", "m").schema(json!({"type": "object"})))
                .step(Permission::new("Bash", json!({})).suggest(json!({"type": "setMode"})))
                .step(
                    Background::new("c")
                        .after(ms(1000))
                        .output("o")
                        .exit(1)
                        .then(Step::Say("done".to_owned())),
                )
                .step(ApiError::new(529))
                .step(ApiError::new(500).message("m").times(1))
                .step(Usage::new(1, 2))
                .step(Step::Cost(0.25))
                .step(ResponsePace::new(1, ms(1)))
                .wait(Wait::Time(ms(2000)))
                .wait(Wait::Interrupt)
                .wait(Wait::Request("set_model".to_owned()))
                .wait(Wait::Gate("g".to_owned()))
                .assert(Assert::permission(Permitted::Denied).requests("interrupt", 1))
                .step(ExitStep::code(3))
                .step(ExitStep::signal(9).after_result()),
        )
        .rule(Rule::containing("b").anytime().times(Times::Any))
        .expect(limits);
    assert_eq!(read, built);
}

#[tokio::test(start_paused = true)]
async fn a_gate_holds_until_it_is_opened() {
    let script = Script::new().rule(Rule::any().wait(Wait::Gate("door".to_owned())).say("through"));
    let gates = Gates::default();
    let (mut client, agent) = script.agent_with(&gates).unwrap().spawn_in_memory();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    client
        .stdin
        .write_all(format!("{prompt}\n").as_bytes())
        .await
        .unwrap();
    gates.gate("door").arrival().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(agent.report().sent_kinds(), ["system/init"]);
    gates.open("door");
    drop(client.stdin);
    let report = agent.join().await;
    report.content().unwrap();
    assert_eq!(result(&report)["result"], "through");
}

#[tokio::test(start_paused = true)]
async fn rules_are_used_in_their_order_unless_they_are_for_any_time() {
    let script = Script::new()
        .rule(Rule::of("help").anytime().times(Times::Any).say("helping"))
        .rule(Rule::of("one").say("1"))
        .rule(Rule::of("maybe").times(Times::Any).say("?"))
        .rule(Rule::of("two").times(Times::Exactly(2)).say("2"));
    let report = play(&script, &["help", "one", "help", "two", "two"]).await;
    report.content().unwrap();
    let said: Vec<&Value> = report
        .sent()
        .filter(|line| line["type"] == "result")
        .map(|line| &line["result"])
        .collect();
    assert_eq!(said, ["helping", "1", "helping", "2", "2"]);

    let report = play(&script, &["two"]).await;
    let flaws = report.content().unwrap_err().0;
    assert!(
        flaws[0]
            .what
            .ends_with("the nearest is at prompts[3], for \"two\", whose turn it is not"),
        "{}",
        flaws[0]
    );
    assert_eq!(flaws[1].to_string(), "prompts[1]: this rule was never used");
    assert_eq!(
        flaws[2].to_string(),
        "prompts[3]: this rule was used 0 times, not 2"
    );
}

/// The simulated agent has the same engine as the scripted API.
#[tokio::test(start_paused = true)]
async fn a_loop_of_tool_calls_comes_to_an_end() {
    let mut script = Script::new()
        .rule(Rule::of("go").call("Bash", json!({"command": "echo x"})))
        .rule(
            Rule::any()
                .tool_result(TextMatch::Contains("x".to_owned()))
                .times(Times::Any)
                .call("Bash", json!({"command": "echo x"})),
        );
    script.requests_per_prompt = 4;
    script.permission_mode = Some("bypassPermissions".to_owned());
    let report = play(&script, &["go"]).await;
    let flaws = report.content().unwrap_err().to_string();
    let told = "script: more than 4 requests came since the last prompt, \"go\", the last ones for the rule at prompts[1]";
    assert!(flaws.starts_with(told), "{flaws}");
    assert_eq!(result(&report)["is_error"], true);
}

/// Without a check, a script that cannot be played is an error in every reply.
#[tokio::test(start_paused = true)]
async fn a_script_of_the_api_is_not_played_in_part() {
    let script = Script::new().rule(Rule::any().say("a").step(Step::Truncated));
    assert!(script.spawn_in_memory().is_err());
    let agent = script.setting().script(&script, &Gates::default());
    let (mut client, agent) = agent.spawn_in_memory();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    client
        .stdin
        .write_all(format!("{prompt}\n").as_bytes())
        .await
        .unwrap();
    drop(client.stdin);
    let flaws = agent.join().await.content().unwrap_err().to_string();
    assert!(
        flaws.contains("the simulator cannot play `truncated`: "),
        "{flaws}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_exit_behind_the_result_has_its_code() {
    let script = Script::new().rule(Rule::any().say("bye").step(ExitStep::code(3).after_result()));
    let report = play(&script, &["go"]).await;
    report.content().unwrap();
    assert_eq!(report.exit, Some(End::Code(3)));
    assert_eq!(result(&report)["result"], "bye");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_answers_is_a_flaw() {
    let script = Script::new().rule(Rule::any().step(Elicitation::new("s", "m")).say("x"));
    let (mut client, agent) = script.spawn_in_memory().unwrap();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    client
        .stdin
        .write_all(format!("{prompt}\n").as_bytes())
        .await
        .unwrap();
    drop(client.stdin);
    let flaws = agent.join().await.content().unwrap_err().to_string();
    assert_eq!(
        flaws,
        "script: the client did not answer the request `elicitation`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_response_has_its_steps_and_no_others() {
    let script = Script::from_yaml(
        "
prompts:
  - steps:
      - response:
          - call: {tool: Bash, input: {command: 'true'}, result: fine}
          - say: '{{prompt}} came before its call'
      - say: it is {{result}}
  - steps:
      - response: []
      - say: said behind it
",
    )
    .unwrap();
    let report = play(&script, &["this", "that"]).await;
    report.content().unwrap();
    let results = report.sent().filter(|line| line["type"] == "result");
    let results: Vec<&Value> = results.map(|line| &line["result"]).collect();
    assert_eq!(results, ["it is fine", "said behind it"]);
    let said = report.sent().filter(|line| line["type"] == "assistant");
    let texts = said.filter_map(|line| line["message"]["content"][0]["text"].as_str());
    assert_eq!(
        texts.collect::<Vec<_>>(),
        ["this came before its call", "it is fine", "said behind it"]
    );
}

#[cfg(unix)]
#[test]
fn files_are_written_in_the_directory_and_nowhere_else() {
    let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, place.path().join(name)).unwrap();
    link(outside.path(), "out");
    link(&outside.path().join("new.txt"), "dangling.txt");
    std::fs::create_dir(place.path().join("in")).unwrap();
    link(&place.path().join("in"), "within");
    let script = |file: &str| Script::from_yaml(&format!("files: {{{file}: text}}")).unwrap();
    let error = script("out/a/b.txt").write_files(place.path()).unwrap_err();
    assert!(error.to_string().contains("out/a/b.txt"), "{error}");
    for file in ["dangling.txt", "within/a/b.txt", "c/d.txt"] {
        script(file).write_files(place.path()).unwrap();
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(place.path().join("in/a/b.txt").is_file() && place.path().join("c/d.txt").is_file());
}
