//! Tool calls as the CLI recorded them: each key must have a field.
//!
//! `OUTRIGGER_RECORDINGS` may name a directory of recorded conversations (`*.jsonl`, one `{"dir":…,"msg":…}` a line);
//! all tool calls in them are then checked too.

use std::collections::HashMap;
use std::path::Path;

use outrigger_protocol::RawJson;
use outrigger_protocol::tools::{
    BUILTIN_TOOL_NAMES, LEGACY_TOOL_NAME_ALIASES, ToolInput, ToolOutput, canonical_name,
};

use crate::support::uncovered;

fn check<T: serde::Serialize>(what: &str, came: &RawJson, typed: &T, into: &mut Vec<String>) {
    let typed = serde_json::to_value(typed).unwrap();
    let lost = uncovered(&came.to_value().unwrap(), &typed);
    into.extend(lost.into_iter().map(|lost| format!("{what}{lost}")));
}

/// Reads one call both ways and returns what is wrong. A call that failed may have had an input that does not fit.
fn problems(tool: &str, input: &RawJson, output: Option<&RawJson>) -> Vec<String> {
    let mut found = Vec::new();
    let typed = ToolInput::read(tool, input);
    check(&format!("{tool} input"), input, &typed, &mut found);
    let Some(output) = output else { return found };
    if let ToolInput::Misfit(misfit) = &typed
        && !output.get().starts_with('"')
    {
        found.push(format!("{tool} input: {}", misfit.reason));
    }
    let typed = ToolOutput::read(tool, output);
    check(&format!("{tool} output"), output, &typed, &mut found);
    if let ToolOutput::Misfit(misfit) = &typed {
        found.push(format!("{tool} output: {}", misfit.reason));
    }
    found
}

#[derive(serde::Deserialize)]
struct Call {
    tool: String,
    input: RawJson,
    output: RawJson,
}

fn calls() -> Vec<Call> {
    include_str!("../fixtures/tool_calls.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn every_key_of_a_recorded_call_has_a_field() {
    for call in calls() {
        assert_eq!(
            problems(&call.tool, &call.input, Some(&call.output)),
            Vec::<String>::new()
        );
    }
}

#[test]
fn recorded_calls_are_read_as_their_tool() {
    for call in calls() {
        let (input, output) = (
            ToolInput::read(&call.tool, &call.input),
            ToolOutput::read(&call.tool, &call.output),
        );
        let known = ToolInput::KNOWN.contains(&canonical_name(&call.tool));
        match (&input, call.tool.starts_with("mcp__")) {
            (ToolInput::Mcp(_), true) => {}
            (ToolInput::Unknown(_), false) => assert!(!known, "{}", call.tool),
            (ToolInput::Misfit(_), false) => assert!(matches!(output, ToolOutput::Failed(_))),
            _ => assert!(known, "{}", call.tool),
        }
        match (&output, call.tool.starts_with("mcp__")) {
            (ToolOutput::Mcp(_), true) => {}
            (ToolOutput::Unknown(_), false) => assert!(!known, "{}", call.tool),
            (ToolOutput::Failed(_), false) => assert!(known && call.output.get().starts_with('"')),
            (ToolOutput::Misfit(misfit), _) => panic!("{}: {}", call.tool, misfit.reason),
            _ => assert!(known, "{}", call.tool),
        }
    }
}

#[derive(serde::Deserialize)]
struct Recorded {
    dir: String,
    msg: RawJson,
}

#[derive(serde::Deserialize)]
struct UserOrAssistant {
    message: Option<Message>,
    tool_use_result: Option<RawJson>,
}

#[derive(serde::Deserialize)]
struct Message {
    content: Option<RawJson>,
}

#[derive(serde::Deserialize)]
struct Block {
    id: Option<String>,
    name: Option<String>,
    input: Option<RawJson>,
    tool_use_id: Option<String>,
}

fn recording(path: &Path) -> Vec<String> {
    let mut uses: HashMap<String, (String, RawJson)> = HashMap::new();
    let mut found = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let Ok(recorded) = serde_json::from_str::<Recorded>(line) else {
            continue;
        };
        if recorded.dir != "out" {
            continue;
        }
        let Ok(frame) = recorded.msg.decode::<UserOrAssistant>() else {
            continue;
        };
        let blocks = frame.message.and_then(|message| message.content);
        let blocks = blocks.and_then(|content| content.decode::<Vec<Block>>().ok());
        for block in blocks.unwrap_or_default() {
            if let (Some(id), Some(name), Some(input)) = (block.id, block.name, block.input) {
                found.extend(problems(&name, &input, None));
                uses.insert(id, (name, input));
            }
            if let Some((name, input)) = block.tool_use_id.and_then(|id| uses.get(&id)) {
                found.extend(problems(name, input, frame.tool_use_result.as_ref()));
            }
        }
    }
    found
}

#[test]
fn every_key_of_further_recordings_has_a_field() {
    let Some(directory) = std::env::var_os("OUTRIGGER_RECORDINGS") else {
        return;
    };
    let mut found = Vec::new();
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            files += 1;
            found.extend(recording(&path));
        }
    }
    assert!(files > 0, "no recordings there");
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[derive(serde::Deserialize)]
struct Documented {
    tool: String,
    input: Option<RawJson>,
    output: Option<RawJson>,
}

/// One value for each alternative of the published schemas, with all optional keys there.
#[test]
fn every_documented_key_and_value_has_its_place() {
    for line in include_str!("../fixtures/tool_shapes.jsonl").lines() {
        let documented: Documented = serde_json::from_str(line).unwrap();
        let mut found = Vec::new();
        let ((), drift) = outrigger_protocol::drift::watch(|| {
            if let Some(input) = &documented.input {
                check(
                    "input",
                    input,
                    &ToolInput::read(&documented.tool, input),
                    &mut found,
                );
            }
            if let Some(output) = &documented.output {
                check(
                    "output",
                    output,
                    &ToolOutput::read(&documented.tool, output),
                    &mut found,
                );
            }
        });
        let drift: Vec<String> = drift
            .iter()
            // The schema of this input leaves room for more keys.
            .filter(|drift| drift.place != "ExitPlanModeInput")
            .map(ToString::to_string)
            .collect();
        assert_eq!((drift, found), (vec![], vec![]), "{}: {line}", documented.tool);
    }
}

#[test]
fn what_does_not_fit_is_kept() {
    let odd = RawJson::from_text(r#"{"command":5,"extra":"\ud83d"}"#).unwrap();
    match ToolInput::read("Bash", &odd) {
        ToolInput::Misfit(misfit) => {
            assert_eq!((misfit.tag.as_str(), &misfit.raw), ("Bash", &odd));
            assert!(misfit.reason.contains("expected a string"), "{}", misfit.reason);
        }
        other => panic!("{other:?}"),
    }
    for (tool, output) in [
        ("mcp__a__b", "7"),
        ("Artifact", r#"{"new":1}"#),
        ("Read", r#"{"type":"hologram"}"#),
    ] {
        let raw = RawJson::from_text(output).unwrap();
        let written = RawJson::encode(&ToolOutput::read(tool, &raw)).unwrap();
        assert_eq!(written, raw, "{tool}");
    }
}

#[test]
fn a_tool_goes_by_all_its_names() {
    let input = RawJson::from_text(r#"{"description":"a","prompt":"b"}"#).unwrap();
    for name in ["Agent", "Task"] {
        assert!(matches!(ToolInput::read(name, &input), ToolInput::Agent(_)));
    }
    let input = RawJson::from_text(r#"{"file_path":"/a","old_string":"b","new_string":"c"}"#).unwrap();
    for name in ["Edit", "FileEdit"] {
        assert!(matches!(ToolInput::read(name, &input), ToolInput::Edit(_)));
    }
}

#[test]
fn every_alias_leads_to_a_tool_that_is_none_itself() {
    let earlier = LEGACY_TOOL_NAME_ALIASES.map(|(earlier, _)| earlier);
    let of_schemas = ["FileEdit", "FileRead", "FileWrite", "ProposeSkills"];
    for name in earlier.into_iter().chain(of_schemas) {
        let now = canonical_name(name);
        assert!(BUILTIN_TOOL_NAMES.contains(&now), "{name} leads to {now}");
        assert!(!BUILTIN_TOOL_NAMES.contains(&name), "{name}");
        assert_eq!(canonical_name(now), now);
    }
}

#[test]
fn no_tool_is_listed_twice() {
    let once: std::collections::BTreeSet<_> = BUILTIN_TOOL_NAMES.iter().collect();
    assert_eq!(once.len(), BUILTIN_TOOL_NAMES.len());
}

#[test]
fn answers_may_be_lists_and_questions_of_other_kinds_are_read() {
    use outrigger_protocol::tools::{AskUserQuestionInput, AskUserQuestionOutput, GivenAnswer};
    let asked = r#"{"title":"Deck","questions":[
        {"question":"Which?","header":"h","kind":"choice","multiSelect":true,"options":[{"label":"A"},{"label":"B"}]},
        {"question":"Why?","header":"h","kind":"text","placeholder":"because","multiSelect":false},
        {"question":"How many?","header":"h","kind":"number","min":1,"max":9.5,"step":0.5,"defaultValue":2,"unit":"px","options":[]}
    ],"answers":{"Which?":["A","B"],"Why?":"so"},"followUp":true}"#;
    let input: AskUserQuestionInput = serde_json::from_str(asked).unwrap();
    assert_eq!(input.questions[0].options[0].description, "");
    assert_eq!(input.questions[1].kind.as_deref(), Some("text"));
    assert_eq!(input.questions[2].max, Some(9.5));
    let output: AskUserQuestionOutput = serde_json::from_str(asked).unwrap();
    assert!(matches!(&output.answers["Which?"], GivenAnswer::List(list) if list == &["A", "B"]));
    assert!(matches!(&output.answers["Why?"], GivenAnswer::Text(text) if text == "so"));
    assert_eq!(output.follow_up, Some(true));
}
