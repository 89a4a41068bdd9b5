//! What the API refuses or fails at: each status, tried again and for ever, and the texts that the CLI knows.

use serde_json::json;

use crate::scenario::Scenario;

fn failing(name: &str) -> Scenario {
    Scenario::new(name).variable("CLAUDE_CODE_MAX_RETRIES", "1")
}

/// Each status: once, for ever, and for ever with a text of its own, and then a turn that succeeds.
pub(super) fn statuses() -> Vec<Scenario> {
    let groups: [(&str, &[u16]); 4] = [
        ("refusals", &[400, 401, 402, 403]),
        ("odd_refusals", &[404, 405, 408, 409, 418]),
        ("limits", &[422, 429]),
        ("failures", &[500, 501, 502, 503, 504, 529]),
    ];
    let scenario = |(name, statuses): (&str, &[u16])| {
        let scenario = failing(&format!("statuses_of_{name}"));
        statuses.iter().fold(scenario, |scenario, status| {
            scenario
                .turn(&format!("%error {status}\n%say done"))
                .turn(&format!("%error {status} n=99\n%say never"))
                .turn(&format!(
                    "%error {status} n=99 msg=\"Something of its own.\"\n%say never"
                ))
                .turn("%say well")
        })
    };
    groups.map(scenario).into()
}

/// Texts by which the CLI knows what is wrong.
pub(super) fn texts() -> Vec<Scenario> {
    let texts = [
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
        "This organization has been disabled.",
        "invalid x-api-key",
        "invalid model name: opus-99",
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
        "messages: `tool_use` ids must be unique",
        "Output blocked by content filtering policy",
        "API key authentication is disabled",
        "OAuth authentication is currently not allowed for this organization.",
        "Overloaded",
    ];
    let scenario = |status: u16| {
        let scenario = failing(&format!("texts_of_{status}"));
        texts
            .iter()
            .fold(scenario, |scenario, text| told(scenario, status, text))
    };
    [400, 403, 404, 422, 500].map(scenario).into()
}

fn told(scenario: Scenario, status: u16, text: &str) -> Scenario {
    scenario.turn(&format!("%error {status} n=99 msg={}\n%say never", json!(text)))
}

/// What the request has too much of. Behind other prompts the CLI would compact them, so that each is alone.
pub(super) fn too_much() -> Vec<Scenario> {
    let room = "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again";
    let texts = [
        ("tokens", "prompt is too long: 250000 tokens > 200000 maximum"),
        ("room", room),
        ("pages", "maximum of 100 PDF pages"),
        ("pdf", "The PDF specified was not valid."),
        ("password", "The PDF specified is password protected."),
        (
            "image",
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
        ),
        (
            "images",
            "messages.0.content.1.image: image dimensions exceed max allowed size for many-image requests: 2000 pixels",
        ),
        ("unreadable", "Could not process image"),
    ];
    let one =
        |status: u16, (name, text): (&str, &str)| told(failing(&format!("{name}_{status}")), status, text);
    let mut all: Vec<Scenario> = texts.map(|text| one(400, text)).into();
    let [tokens, room, pages, .., image, _, _] = texts;
    all.extend([401, 413, 422, 429].map(|status| one(status, tokens)));
    all.extend([413, 422].map(|status| one(status, room)));
    all.extend([401, 413].map(|status| one(status, pages)));
    all.push(one(422, image));
    all.push(failing("room_is_made").turn(&format!("%error 400 msg={}\n%say done", json!(room))));
    all.push(failing("too_large").turn("%error 413 n=9\n%say never"));
    all
}

/// What a request leaves out when the API refuses it, and what the session then leaves out.
pub(super) fn repairs() -> Vec<Scenario> {
    let series = |name: &str, status: u16, times: &[u32]| {
        times.iter().fold(failing(name), |scenario, times| {
            scenario.turn(&format!("%error {status} n={times}\n%say done"))
        })
    };
    vec![
        series("refused_once_each_time", 400, &[1, 1, 1, 1]),
        series("refused_twice_then_once", 400, &[2, 1, 1]),
        series("refused_three_times", 400, &[3, 1, 2, 1]),
        series("refused_five_times", 400, &[5, 1]),
        series("refused_for_ever_then_once", 400, &[9, 1, 9, 1]),
        series("unprocessable_twice", 422, &[2, 2]),
        series("not_found_each_time", 404, &[1, 1, 2, 1]),
        failing("refused_behind_a_tool").turn("%say zero").turn(
            "%tool Read {\"file_path\":\"none\"}\n%error 400 n=2 msg=\"Something of its own.\"\n%say done",
        ),
        failing("not_found_in_a_stream")
            .flags("--include-partial-messages")
            .turn("%error 404\n%say done"),
        failing("dropped_in_a_stream")
            .flags("--include-partial-messages")
            .turn("%drop\n%say done")
            .turn("%drop n=9\n%say never"),
        failing("refused_in_a_stream")
            .flags("--include-partial-messages")
            .turn("%error 400\n%say done"),
        failing("refused_and_overloaded").turn("%error 400 n=2\n%error 529\n%error 400\n%say done"),
        failing("an_agent_is_refused")
            .turn(&format!(
                "{}\n%error 400\n%say done",
                agent("%error 400 n=2\n%say deep")
            ))
            .turn("%error 400 n=2\n%say done"),
        failing("an_agent_is_refused_for_ever")
            .turn(&format!("{}\n%say done", agent("%error 400 n=9\n%say deep"))),
    ]
}

fn agent(prompt: &str) -> String {
    let input = json!({
        "description": "look", "prompt": prompt, "subagent_type": "general-purpose", "run_in_background": false,
    });
    format!("%tool Agent {input}")
}

/// Responses that break off, as often as this: with nothing complete in them, behind a complete block, and one way after another.
pub(super) fn broken() -> Vec<Scenario> {
    // Its pace lets the CLI see the beginning of a response before its end.
    const CUT: &str = "%slow 20 chunk=3\n%cut";
    const FAILED: &str = "%sse-error api_error";
    const OVERLOADED: &str = "%sse-error overloaded_error";
    const TEXT: &str = "%say some words of it";
    const THOUGHT: &str = "%think about it\n%+say some words of it";
    let ways = [CUT, FAILED, OVERLOADED];
    let turns = |scenario: Scenario, times: &[u32], content: &str| {
        let turns = ways
            .iter()
            .flat_map(|way| times.iter().map(move |n| format!("{way} n={n}\n{content}")));
        turns
            .fold(scenario, |scenario, turn| scenario.turn(&turn))
            .turn("%say well")
    };
    let seen = |name: &str, retries| {
        Scenario::new(name)
            .variable("CLAUDE_CODE_MAX_RETRIES", retries)
            .flags("--include-partial-messages")
    };
    // The command ends behind the response, and the connection breaks when the CLI is done with starting the command: what the CLI
    // has not read when a connection breaks is lost.
    let call = "%slow 300 chunk=8\n%tool Bash {\"command\": \"sleep 1.5\"}\n%+say some words of it";
    let one_after_another = [
        format!("{CUT}\n{FAILED} n=2"),
        format!("%slow 20 chunk=3\n{FAILED}\n%cut"),
        format!("%slow 20 chunk=3\n{FAILED}\n%cut n=99"),
        format!("{FAILED} n=99"),
        format!("{OVERLOADED} n=99"),
        format!("{FAILED}\n%error 400 n=99"),
        format!("%error 500\n{CUT}"),
        format!("{FAILED}\n%drop n=99"),
        format!("%drop\n{CUT} n=4"),
        "%error 500 n=2\n%error 529 n=3".to_owned(),
    ];
    let mixed = |name: &str, retries| {
        let turns = one_after_another.iter().map(|way| format!("{way}\n{TEXT}"));
        turns.fold(seen(name, retries), |scenario, turn| scenario.turn(&turn))
    };
    let below = format!("{FAILED} n=2\n{THOUGHT}").replace('\n', "\\n");
    vec![
        turns(seen("broken_texts", "1"), &[1, 2, 3], TEXT),
        turns(seen("broken_texts_again", "2"), &[2, 3, 99], TEXT),
        turns(seen("broken_behind_thoughts", "1"), &[1, 3, 9], THOUGHT),
        turns(failing("broken_unseen"), &[2], TEXT).turn(&format!("{FAILED} n=2\n{THOUGHT}")),
        turns(
            seen("broken_behind_calls", "1").answer("can_use_tool", super::allow),
            &[9],
            call,
        ),
        mixed("broken_in_many_ways", "2"),
        mixed("broken_without_retries", "0"),
        failing("broken_below").turn(
            &super::CALL
                .replace("RB", "false")
                .replace("%say from below", &below),
        ),
    ]
}
