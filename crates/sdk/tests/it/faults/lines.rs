//! What comes on stdout and is not as it should be.

use outrigger::Event;
use outrigger_sim::peer::faulty::{FaultyScript, Piece, frames};
use serde_json::{Value, json};

use super::stand::{Stand, on_both_runtimes, one_turn, read, turn};

/// A conversation up to the first prompt's turn.
fn begun() -> FaultyScript {
    FaultyScript::new().initialize().prompt()
}

/// A line of JSON with its end, for steps that write bytes.
fn line(frame: &Value) -> String {
    format!("{frame}\n")
}

async fn an_unknown_message_type_is_kept() {
    let stand = Stand::new(
        &begun()
            .line(json!({"type": "never_seen", "session_id": frames::SESSION, "x": [1]}))
            .line(json!({"type": "system", "subtype": "never_seen_either", "session_id": frames::SESSION}))
            .say("after")
            .result("fine"),
    );
    let session = stand.session().await;
    let (told, outcome) = turn(&session, "go").await;
    assert_eq!(told, ["never_seen", "system/never_seen_either", "text after"]);
    assert_eq!(outcome.result_text(), "fine");
    let stats = session.stats();
    let unknown: Vec<_> = stats.unknown.keys().map(String::as_str).collect();
    assert_eq!(
        (unknown, stats.misfits),
        (vec!["never_seen", "system/never_seen_either"], 0)
    );
    stand.closed(session).await;
}

async fn an_unknown_content_block_leaves_its_message_whole() {
    let (told, _) = one_turn(
        begun()
            .line(frames::assistant(json!([
                {"type": "text", "text": "before"},
                {"type": "never_seen", "x": 1},
                {"type": "text", "text": "behind"},
            ])))
            .result("fine"),
    )
    .await;
    assert_eq!(told, ["text before", "block", "text behind"]);
}

/// New values of fields that have a list of values, and fields of another type than ever before.
async fn odd_values_and_fields_lose_no_result() {
    let mut odd = frames::result("fine");
    odd["stop_reason"] = json!("never_seen");
    odd["fast_mode_state"] = json!("sideways");
    odd["usage"]["service_tier"] = json!("platinum");
    odd["num_turns"] = json!("several");
    odd["permission_denials"] = json!(7);
    let mut mistyped = frames::text("lost nothing");
    mistyped["message"]["usage"] = json!("much");
    let stand = Stand::new(
        &begun()
            .line(mistyped)
            .line(odd)
            .line(frames::lifecycle("completed")),
    );
    let session = stand.session().await;
    let mut turn = session.prompt("go").await.unwrap();
    let (told, outcome) = read(&mut turn).await;
    assert_eq!((outcome.result_text(), outcome.is_success()), ("fine", true));
    // What does not fit is handed on as it came.
    assert!(
        told == ["text lost nothing"] || told == ["undecodable assistant"],
        "{told:?}"
    );
    stand.closed(session).await;
}

async fn noise_between_the_lines_is_passed_over() {
    let stand = Stand::new(
        &FaultyScript::new()
            .raw("warming up\n")
            .initialize()
            .raw("[SandboxDebug] noise\n\n   \n\r\n")
            .prompt()
            .raw("Debugger attached.\n")
            .say("one")
            .raw(vec![0xff, 0xfe, b'\n', 0, b'\n'])
            .raw("42\n[1, 2]\n\"text\"\nnull\ntrue\n{}\n")
            .say("two")
            .result("fine"),
    );
    let session = stand.session().await;
    let (told, outcome) = turn(&session, "go").await;
    let said: Vec<_> = told.iter().filter(|line| line.starts_with("text ")).collect();
    assert_eq!(said, ["text one", "text two"], "{told:?}");
    assert_eq!(outcome.result_text(), "fine");
    assert!(session.stats().misfits > 0);
    stand.closed(session).await;
}

async fn a_broken_line_costs_nothing_but_itself() {
    let whole = frames::text("broken").to_string();
    let mut script = begun();
    // At the brace, inside a string, and one byte before the end.
    for end in [1, whole.len() / 2, whole.len() - 1] {
        script = script.raw(format!("{}\n", &whole[..end])).say("unharmed");
    }
    let stand = Stand::new(&script.result("fine"));
    let session = stand.session().await;
    let (told, outcome) = turn(&session, "go").await;
    let said = told.iter().filter(|line| *line == "text unharmed").count();
    assert_eq!((said, outcome.result_text()), (3, "fine"), "{told:?}");
    assert_eq!(session.stats().misfits, 3);
    stand.closed(session).await;
}

/// A line with a tool's result of so many bytes, in pieces, so that no script is as long.
fn long_result(bytes: usize) -> Vec<Piece> {
    let mut frame = frames::tool_result("t", "@");
    frame["tool_use_result"] = json!({"stdout": "as above"});
    let frame = line(&frame);
    let (before, behind) = frame.split_once('@').unwrap();
    vec![
        before.into(),
        Piece::Times("0123456789abcdef".into(), bytes / 16),
        behind.into(),
    ]
}

async fn a_long_line_comes_whole(bytes: usize) {
    let stand = Stand::new(&begun().pieces(long_result(bytes)).say("next").result("fine"));
    let session = stand.session().await;
    let (told, outcome) = turn(&session, "go").await;
    assert_eq!(told, [format!("result {bytes} bytes"), "text next".into()]);
    assert_eq!(outcome.result_text(), "fine");
    stand.closed(session).await;
}

async fn a_line_of_24_mb_comes_whole_by_default() {
    a_long_line_comes_whole(24_000_000).await;
}

async fn a_line_of_80_mib_comes_whole_by_default() {
    a_long_line_comes_whole(80 * 1024 * 1024).await;
}

async fn text_cut_inside_its_characters_is_whole() {
    let text = "äöü€漢字🙂";
    let mut flood = String::new();
    for number in 0..1000 {
        flood += &line(&frames::text(&format!("{number} {text}")));
    }
    // A prime number of bytes, so that the cuts fall everywhere.
    let (told, _) = one_turn(begun().cut(8191, flood).result("fine")).await;
    let expected: Vec<_> = (0..1000).map(|number| format!("text {number} {text}")).collect();
    assert!(told == expected, "{} lines", told.len());
}

/// The reader sees the bytes one by one.
async fn a_character_may_be_cut_at_every_byte() {
    let (told, _) = one_turn(begun().cut(1, line(&frames::text("aä€🙂z"))).result("fine")).await;
    assert_eq!(told, ["text aä€🙂z"]);
}

async fn more_than_10_mb_in_all_is_no_limit() {
    let long = "x".repeat(2000);
    let (told, _) = one_turn(
        begun()
            .repeat(6000, FaultyScript::new().say(&format!("$i {long}")))
            .result("fine"),
    )
    .await;
    let expected = (0..6000).map(|number| format!("text {number} {long}"));
    assert!(told.iter().cloned().eq(expected), "{} lines", told.len());
}

async fn a_lone_surrogate_spoils_nothing() {
    let spoiled = frames::text("cut @ here").to_string().replace('@', "\\ud83d");
    let (told, _) = one_turn(begun().raw(format!("{spoiled}\n")).say("next").result("fine")).await;
    assert_eq!(told, ["text cut \u{fffd} here", "text next"]);
}

async fn nesting_of_5000_is_passed_through() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let spoiled = frames::tool_use("t", "Deep", json!({"x": "@"}))
        .to_string()
        .replace("\"@\"", &deep);
    let stand = Stand::new(&begun().raw(format!("{spoiled}\n")).say("next").result("fine"));
    let session = stand.session().await;
    let mut turn = session.prompt("go").await.unwrap();
    let mut inputs = Vec::new();
    while let Some(event) = turn.next().await {
        if let Event::ToolUse(tool) = event.unwrap() {
            inputs.push(tool.input.get().to_owned());
        }
    }
    assert_eq!(inputs, [format!("{{\"x\":{deep}}}")]);
    assert_eq!(turn.outcome().await.unwrap().result_text(), "fine");
    stand.closed(session).await;
}

async fn several_frames_on_a_line_and_separators_inside_strings() {
    let both = format!(
        "{}{}\n",
        frames::text("one\u{2028}still one\u{2029}\u{85}"),
        frames::text("two")
    );
    let (told, _) = one_turn(begun().raw(both).result("fine")).await;
    assert_eq!(told, ["text one\u{2028}still one\u{2029}\u{85}", "text two"]);
}

/// The last line has no end, and is a frame all the same.
async fn a_last_line_without_its_end_counts() {
    // Bytes do not know the prompt's id, and the running turn is whose result it is.
    let stand = Stand::new(&begun().raw(frames::nobodys_result("fine").to_string()));
    let session = stand.session().await;
    let mut turn = session.prompt("go").await.unwrap();
    let watch = turn.watch();
    // Only the end of the input makes it end, and so makes the line the last.
    let exit = session.close().await.unwrap();
    assert_eq!(exit.code, Some(0));
    assert_eq!(watch.outcome().await.unwrap().result_text(), "fine");
    assert_eq!(turn.outcome().await.unwrap().result_text(), "fine");
    stand.gone().await;
}

on_both_runtimes!(
    an_unknown_message_type_is_kept,
    an_unknown_content_block_leaves_its_message_whole,
    odd_values_and_fields_lose_no_result,
    noise_between_the_lines_is_passed_over,
    a_broken_line_costs_nothing_but_itself,
    a_line_of_24_mb_comes_whole_by_default,
    a_line_of_80_mib_comes_whole_by_default,
    text_cut_inside_its_characters_is_whole,
    a_character_may_be_cut_at_every_byte,
    more_than_10_mb_in_all_is_no_limit,
    a_lone_surrogate_spoils_nothing,
    nesting_of_5000_is_passed_through,
    several_frames_on_a_line_and_separators_inside_strings,
    a_last_line_without_its_end_counts,
);
