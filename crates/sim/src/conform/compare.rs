//! What differs between two CLIs that were told the same.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The frames of one side of a conversation, in order, each with its [kind](super::Kinds).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Spoken {
    /// The kinds and the frames.
    pub frames: Vec<(String, Value)>,
}

impl Spoken {
    /// These frames.
    pub fn new(frames: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self {
            frames: frames.into_iter().collect(),
        }
    }
}

/// Something that only one of them did.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Difference {
    /// In which scenario, or with which script.
    pub scenario: String,
    /// What it did.
    pub what: What,
    /// Who it was.
    pub who: Who,
}

/// What it did.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum What {
    /// It wrote a frame of this kind where the other wrote none, or one of another kind; or it showed this.
    Frame(String),
    /// Frames of this kind had a field with this path and type.
    Field {
        /// The kind of the frames.
        kind: String,
        /// The path and the type, as in `message.content[].text: string`.
        field: String,
    },
}

/// Who it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Who {
    /// The real CLI, or a program with it.
    Real,
    /// The simulated CLI, or a program with it.
    Simulator,
}

/// Objects whose keys are data: what is under them is compared, whatever they are.
const KEYS_ARE_DATA: &[&str] = &["modelUsage", "model_usage_since_last_result", "model_usage"];

/// What a real CLI says, and a simulated one does not, or the other way round.
pub fn compare(scenario: &str, real: &Spoken, simulated: &Spoken) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut add = |what, who| {
        differences.push(Difference {
            scenario: scenario.to_owned(),
            what,
            who,
        });
    };
    let (expected, seen) = (sequence(real), sequence(simulated));
    for (kind, who) in diff(&expected, &seen) {
        add(What::Frame(kind), who);
    }
    for (shown, who) in diff(&shown(real), &shown(simulated)) {
        add(What::Frame(shown), who);
    }
    let (expected, seen) = (fields(real), fields(simulated));
    for (kind, expected) in &expected {
        // A kind that only one of them wrote is a difference of the sequences already.
        let Some(seen) = seen.get(kind) else { continue };
        let field = |field: &String| What::Field {
            kind: kind.clone(),
            field: field.clone(),
        };
        expected
            .difference(seen)
            .for_each(|path| add(field(path), Who::Real));
        seen.difference(expected)
            .for_each(|path| add(field(path), Who::Simulator));
    }
    differences
}

/// What the API sends in pieces.
const PIECES: &[&str] = &["stream_event/content_block_delta", "system/thinking_tokens"];

/// Holds records of the session's file, most of which the CLI keeps for itself, in as many frames as there was time between them.
const MIRROR: &str = "transcript_mirror";

/// The kinds in their order, less what depends on time alone.
fn sequence(spoken: &Spoken) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for (kind, _) in &spoken.frames {
        // A sign of life comes every 30 s, whatever happens.
        let alive = kind == "keep_alive";
        // How many pieces a text comes in depends on how they arrive: one of each kind stands for all that follow each other.
        let is_piece = |kind: &String| PIECES.contains(&kind.as_str());
        let mut pieces = kinds.iter().rev().take_while(|kind| is_piece(kind));
        let repeated = is_piece(kind) && pieces.any(|before| before == kind);
        if !alive && !repeated && kind != MIRROR {
            kinds.push(kind.clone());
        }
    }
    kinds
}

/// By value: the inputs of tools wherever they are shown, the flags and counts in their results, and all that a permission request
/// and the description of a mirrored agent say.
fn shown(spoken: &Spoken) -> Vec<String> {
    let mut shown = Vec::new();
    let mut add = |place: &str, tool: &Value, value: &Value| {
        let tool = tool.as_str().unwrap_or("?");
        shown.push(format!("{place} {tool} {}", in_order(value)));
    };
    for (kind, frame) in &spoken.frames {
        let (request, input) = (&frame["request"], &frame["request"]["input"]);
        for block in frame["message"]["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_use" {
                add("call", &block["name"], &block["input"]);
            }
        }
        if request["subtype"] == "can_use_tool" {
            let mut asked = request.clone();
            if let Some(asked) = asked.as_object_mut() {
                asked.retain(|key, _| !OF_THE_MOMENT.contains(&key.as_str()));
            }
            add("asked", &request["tool_name"], &asked);
        }
        if input["tool_input"].is_object() {
            add(kind, &input["tool_name"], &input["tool_input"]);
        }
        for entry in frame["entries"].as_array().into_iter().flatten() {
            if entry["type"] == "agent_metadata" {
                let mut entry = entry.clone();
                let id = &mut entry["toolUseId"];
                *id = Value::Bool(id.is_string());
                add(kind, &entry["agentType"], &entry);
            }
        }
        let mut details = frame["tool_use_result"].clone();
        if let Some(details) = details.as_object_mut() {
            details.retain(|key, value| value.is_boolean() || key == "toolStats");
        }
        if details.is_object() {
            add(kind, &Value::Null, &details);
        }
        for denial in frame["permission_denials"].as_array().into_iter().flatten() {
            add("denied", &denial["tool_name"], &denial["tool_input"]);
        }
    }
    // The order is that of the frames, which is compared already.
    shown.sort();
    shown
}

/// What a permission request has that differs each time, or is prose.
const OF_THE_MOMENT: &[&str] = &["tool_use_id", "agent_id", "decision_reason"];

/// JSON with sorted keys.
fn in_order(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, String> =
                fields.iter().map(|(key, value)| (key, in_order(value))).collect();
            let fields: Vec<String> = sorted
                .iter()
                .map(|(key, value)| format!("\"{key}\": {value}"))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_order).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// The fields of each kind, from all its frames.
fn fields(spoken: &Spoken) -> BTreeMap<String, BTreeSet<String>> {
    let mut fields = BTreeMap::<String, BTreeSet<String>>::new();
    for (kind, frame) in spoken.frames.iter().filter(|(kind, _)| kind != MIRROR) {
        walk(frame, String::new(), fields.entry(kind.clone()).or_default());
    }
    fields
}

fn walk(value: &Value, path: String, into: &mut BTreeSet<String>) {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) if items.is_empty() => "[]",
        Value::Object(fields) if fields.is_empty() => "{}",
        Value::Array(items) => {
            for item in items {
                walk(item, format!("{path}[]"), into);
            }
            return;
        }
        Value::Object(fields) => {
            let data = KEYS_ARE_DATA.iter().any(|name| path.ends_with(name));
            for (key, value) in fields {
                let key = if data { "*" } else { key };
                let path = if path.is_empty() {
                    key.to_owned()
                } else {
                    format!("{path}.{key}")
                };
                walk(value, path, into);
            }
            return;
        }
    };
    into.insert(format!("{path}: {name}"));
}

/// Both sequences of kinds as one: with whose each is, where only one of them has it.
pub(super) fn beside(real: &Spoken, simulated: &Spoken) -> Vec<(String, Option<Who>)> {
    steps(&sequence(real), &sequence(simulated))
}

/// What only one of two lists has.
fn diff(expected: &[String], seen: &[String]) -> Vec<(String, Who)> {
    let steps = steps(expected, seen).into_iter();
    steps.filter_map(|(kind, who)| Some((kind, who?))).collect()
}

/// The shortest way from one list to the other.
fn steps(expected: &[String], seen: &[String]) -> Vec<(String, Option<Who>)> {
    // lengths[i][j] is that of the longest common part of what is left behind i and j.
    let mut lengths = vec![vec![0_usize; seen.len() + 1]; expected.len() + 1];
    for (i, a) in expected.iter().enumerate().rev() {
        for (j, b) in seen.iter().enumerate().rev() {
            lengths[i][j] = if a == b {
                lengths[i + 1][j + 1] + 1
            } else {
                lengths[i + 1][j].max(lengths[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut steps) = (0, 0, Vec::new());
    while i < expected.len() || j < seen.len() {
        match (expected.get(i), seen.get(j)) {
            (Some(a), Some(b)) if a == b => {
                steps.push((a.clone(), None));
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), _) if j == seen.len() || lengths[i + 1][j] >= lengths[i][j + 1] => {
                steps.push((a.clone(), Some(Who::Real)));
                i += 1;
            }
            (_, Some(b)) => {
                steps.push((b.clone(), Some(Who::Simulator)));
                j += 1;
            }
            (_, None) => break,
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_moved_is_a_difference_on_both_sides() {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(diff(&list("a b c"), &list("a b c")), []);
        assert_eq!(
            diff(&list("a b c d"), &list("a c b e d")),
            [
                ("b".to_owned(), Who::Real),
                ("b".to_owned(), Who::Simulator),
                ("e".to_owned(), Who::Simulator)
            ]
        );
        assert_eq!(diff(&list("a"), &list("a b")), [("b".to_owned(), Who::Simulator)]);
        assert_eq!(diff(&list("a b"), &list("b")), [("a".to_owned(), Who::Real)]);
    }

    #[test]
    fn inputs_are_compared_by_value() {
        let frame = |path: &str| {
            let request = serde_json::json!({
                "subtype": "can_use_tool", "tool_name": "Read", "tool_use_id": path, "input": {"file_path": path},
            });
            let frame = serde_json::json!({"type": "control_request", "request": request});
            Spoken::new([("control_request/can_use_tool".to_owned(), frame)])
        };
        assert_eq!(compare("same", &frame("/a"), &frame("/a")), []);
        assert_eq!(compare("differs", &frame("/a"), &frame("a")).len(), 2);
    }

    #[test]
    fn what_results_say_is_compared_by_value() {
        let frame = |modified: bool| {
            let details = serde_json::json!({"filePath": "/a", "userModified": modified});
            Spoken::new([(
                "user/tool_result".to_owned(),
                serde_json::json!({"type": "user", "tool_use_result": details}),
            )])
        };
        assert_eq!(compare("same", &frame(true), &frame(true)), []);
        assert_eq!(compare("differs", &frame(true), &frame(false)).len(), 2);
    }

    #[test]
    fn fields_are_paths_with_types() {
        let frame = serde_json::json!({
            "a": {"b": [{"c": 1}, {"c": null}], "d": []}, "modelUsage": {"some-model": {"in": 1.5}}, "e": {},
        });
        let mut seen = BTreeSet::new();
        walk(&frame, String::new(), &mut seen);
        let expected = [
            "a.b[].c: null",
            "a.b[].c: number",
            "a.d: []",
            "e: {}",
            "modelUsage.*.in: number",
        ];
        assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
}
