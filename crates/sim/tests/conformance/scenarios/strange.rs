//! Links, files, results, answers and prompts that are not as one expects.

use serde_json::{Value, json};

use super::{allow, calc, nothing};
use crate::scenario::{Reply, Scenario, uuid};

fn call(tool: &str, input: Value) -> String {
    format!("%tool {tool} {input}\n")
}

fn bash(command: &str) -> String {
    call("Bash", json!({"command": command}))
}

fn read(path: &str) -> String {
    call("Read", json!({"file_path": path}))
}

fn write(path: &str) -> String {
    call("Write", json!({"file_path": path, "content": "new\n"}))
}

fn edit(path: &str, old: &str) -> String {
    call(
        "Edit",
        json!({"file_path": path, "old_string": old, "new_string": "x"}),
    )
}

fn turn(scenario: Scenario, calls: &[String]) -> Scenario {
    scenario.turn(&(calls.concat() + "%say done"))
}

/// A project with links to what is not there: inside of it, outside of it, and each other.
fn linked(name: &str) -> Scenario {
    Scenario::new(name)
        .link("in", "none")
        .link("out", "../none")
        .link("loop", "loop")
        .answer("can_use_tool", allow)
}

fn links() -> Vec<Scenario> {
    vec![
        turn(
            linked("links_to_nothing"),
            &[
                read("in"),
                read("out"),
                read("loop"),
                write("in"),
                write("out"),
                write("loop"),
                edit("out", ""),
                edit("loop", "a"),
            ],
        ),
        turn(
            linked("commands_and_links_to_nothing"),
            &[
                bash("cat in"),
                bash("cat out"),
                bash("echo x > out"),
                bash("touch out"),
                bash("touch in"),
            ],
        ),
        turn(
            linked("links_to_nothing_and_edits").flags("--permission-mode acceptEdits"),
            &[
                write("in"),
                write("out"),
                write("out/x"),
                bash("echo x > out"),
                bash("touch in"),
            ],
        ),
        turn(
            linked("links_to_nothing_that_is_denied").flag("--disallowedTools", "Read(none)"),
            &[read("in"), bash("cat in"), write("in")],
        ),
    ]
}

fn files() -> Vec<Scenario> {
    let made = bash(
        "printf 'a\\0b\\n' > zero; printf 'caf\\351\\n' > latin; printf '\\377\\376o\\0n\\0\\r\\0\\n\\0' > wide; \
         printf '\\376\\377\\0o\\0n' > high; printf 'one\\rtwo\\r' > cr; printf 'one\\r\\ntwo\\r\\n' > crlf; printf '' > empty; printf \
         x > x.zip",
    );
    let names = ["zero", "latin", "wide", "high", "cr", "crlf", "empty", "x.zip"];
    let project = |name| Scenario::new(name).flags("--permission-mode acceptEdits --allowedTools Bash");
    let all = |calls: Vec<String>| [vec![made.clone()], calls].concat();
    let past = call("Read", json!({"file_path": "empty", "offset": 3}));
    vec![
        turn(
            project("files_that_are_no_text_are_read"),
            &all([names.map(read).to_vec(), vec![past]].concat()),
        ),
        turn(
            project("files_that_are_no_text_are_edited"),
            &all(vec![
                edit("zero", "a"),
                edit("latin", "caf"),
                edit("wide", "on"),
                edit("high", "o"),
                edit("cr", "one"),
                bash("cksum zero latin wide high cr"),
            ]),
        ),
        turn(
            project("files_that_are_no_text_are_written"),
            &all(["zero", "latin", "wide", "cr"]
                .iter()
                .flat_map(|name| [read(name), write(name)])
                .chain([bash("cksum zero latin wide cr")])
                .collect()),
        ),
    ]
}

/// The results of a server's tools, by their names.
const RESULTS: &[(&str, &str)] = &[
    ("nothing", "{}"),
    ("blank", r#"{"content": [{"type": "text", "text": ""}]}"#),
    (
        "meta",
        r#"{"content": [{"type": "text", "text": "m"}], "_meta": {"k": 1}}"#,
    ),
    (
        "structured",
        r#"{"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}}"#,
    ),
    (
        "link",
        r#"{"content": [{"type": "resource_link", "uri": "file:///x", "name": "n", "description": "d"}]}"#,
    ),
    (
        "marked",
        r#"{"content": [{"type": "text", "text": "a", "annotations": {"audience": ["user"]}, "_meta": {"z": 1}}]}"#,
    ),
    ("unknown", r#"{"content": [{"type": "nonsense", "x": 1}]}"#),
    ("no_list", r#"{"content": "text"}"#),
];

fn results() -> Vec<Scenario> {
    let server = |request: &Value| {
        let message = &request["message"];
        let named = |name: &str| RESULTS.iter().find(|(known, _)| *known == name);
        let result = match message["method"].as_str() {
            Some("tools/list") => {
                let tool = |(name, _): &(&str, &str)| json!({"name": name, "description": name, "inputSchema": {"type": "object", "properties": {}}});
                json!({"tools": RESULTS.iter().map(tool).collect::<Vec<_>>()})
            }
            Some("tools/call") => {
                let (_, result) = named(message["params"]["name"].as_str()?)?;
                serde_json::from_str(result).ok()?
            }
            _ => return calc(request),
        };
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        Some(Reply::Payload(json!({"mcp_response": answer})))
    };
    let hooks = json!({
        "PostToolUse": [{"hookCallbackIds": ["behind"]}], "PostToolUseFailure": [{"hookCallbackIds": ["failed"]}],
        "PostToolBatch": [{"hookCallbackIds": ["batch"]}],
    });
    let calls = RESULTS
        .iter()
        .map(|(name, _)| call(&format!("mcp__calc__{name}"), json!({})));
    vec![turn(
        Scenario::with_initialize(
            "results_of_servers",
            json!({"hooks": hooks, "sdkMcpServers": ["calc"]}),
        )
        .answer("mcp_message", server)
        .answer("hook_callback", nothing)
        .flags("--allowedTools mcp__calc"),
        &calls.collect::<Vec<_>>(),
    )]
}

/// A scenario in which a question of the model gets these answers.
fn answered(name: &str, takes_many: bool, more: Value) -> Scenario {
    let option = |label| json!({"label": label, "description": "or not"});
    let question = json!({"question": "A?", "header": "H", "multiSelect": takes_many, "options": [option("a"), option("b")]});
    let scenario = Scenario::new(name).answer("can_use_tool", move |request| {
        let mut input = request["input"].clone();
        for (key, value) in more.as_object().into_iter().flatten() {
            input[key] = value.clone();
        }
        Some(Reply::Payload(
            json!({"behavior": "allow", "updatedInput": input}),
        ))
    });
    turn(
        scenario,
        &[call("AskUserQuestion", json!({"questions": [question]}))],
    )
}

fn answers() -> Vec<Scenario> {
    vec![
        answered(
            "an_answer_in_other_words",
            false,
            json!({"answers": {"A?": "none of them"}}),
        ),
        answered("answers_as_a_list", true, json!({"answers": {"A?": ["a", "b"]}})),
        answered(
            "an_answer_to_another_question",
            false,
            json!({"answers": {"B?": "a"}}),
        ),
        answered("an_answer_that_is_a_number", false, json!({"answers": {"A?": 3}})),
        answered(
            "an_answer_that_is_a_list_of_numbers",
            true,
            json!({"answers": {"A?": [1]}}),
        ),
        answered(
            "an_answer_with_notes",
            false,
            json!({"answers": {"A?": "a"}, "annotations": {"A?": {"notes": "hm"}}}),
        ),
        answered(
            "a_response_to_a_question",
            false,
            json!({"answers": {}, "response": "later"}),
        ),
    ]
}

fn blank_prompts() -> Vec<Scenario> {
    let prompt = |content: Value| json!({"type": "user", "session_id": "", "parent_tool_use_id": null, "message": {"role": "user", "content": content}});
    vec![
        Scenario::new("blank_prompts")
            .send(prompt(json!(" \n ")))
            .until("result")
            .send(prompt(json!([{"type": "text", "text": " \n "}])))
            .until("result")
            .turn("%say on"),
    ]
}

fn failures() -> Vec<Scenario> {
    vec![
        Scenario::new("a_response_that_only_fails")
            .turn("%error 529 n=1")
            .turn("%say on"),
    ]
}

/// A session that is resumed at a prompt, whose answer is gone then.
fn resumed() -> Vec<Scenario> {
    vec![
        Scenario::new("resume_at_a_prompt")
            .prompt_with(1, "%say one", json!({}))
            .until("command_lifecycle/completed")
            .prompt_with(2, "%say two", json!({}))
            .until("command_lifecycle/completed")
            .then_process()
            .flag("--resume", "{session}")
            .flag("--resume-session-at", &uuid(2))
            .turn("%say three"),
    ]
}

pub(super) fn strange() -> Vec<Scenario> {
    [
        links(),
        files(),
        results(),
        answers(),
        blank_prompts(),
        failures(),
        resumed(),
    ]
    .concat()
}
