//! What differs between two CLIs that were told the same.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::word_list::WordList;

/// The frames of one side of a conversation, in order, each with its [kind](super::Kinds).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Spoken {
    /// The kinds and the frames.
    pub frames: Vec<(String, Value)>,
}

impl Spoken {
    /// A side with these frames.
    pub fn new(frames: impl IntoIterator<Item = (String, Value)>) -> Self {
        Self {
            frames: frames.into_iter().collect(),
        }
    }

    /// All that [`compare`] reads of it, as text: where the texts of two are the same, nothing differs.
    pub fn compared(&self) -> String {
        format!("{:#?}\n{:#?}\n{:#?}\n", sequence(self), shown(self), fields(self))
    }
}

/// Something that only one of them did.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Difference {
    /// In which scenario, or with which script.
    pub scenario: String,
    /// What the one CLI did.
    pub what: DifferenceKind,
    /// Which CLI did it.
    pub who: DifferenceSide,
}

/// What one CLI did and the other did not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DifferenceKind {
    /// The CLI wrote a frame of this kind where the other wrote none, or one of another kind; or it showed this.
    Frame(String),
    /// Frames of this kind had a field with this path, and of this type or with this value.
    Field {
        /// The kind of the frames.
        kind: String,
        /// The path and the type or the value, as in `message.content[].text: string` or `message.role = "user"`.
        field: String,
    },
}

/// Which of the two CLIs did something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DifferenceSide {
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
        add(DifferenceKind::Frame(kind), who);
    }
    for (shown, who) in diff(&shown(real), &shown(simulated)) {
        add(DifferenceKind::Frame(shown), who);
    }
    let (expected, seen) = (fields(real), fields(simulated));
    let is_stopped = real.frames.iter().any(|(kind, frame)| is_stopped(kind, frame));
    for (kind, expected) in &expected {
        // A kind that only one of them wrote is a difference of the sequences already.
        let Some(seen) = seen.get(kind) else { continue };
        let field = |field: &String| DifferenceKind::Field {
            kind: kind.clone(),
            field: field.clone(),
        };
        for typed in expected.types.difference(&seen.types) {
            add(field(typed), DifferenceSide::Real);
        }
        for typed in seen.types.difference(&expected.types) {
            add(field(typed), DifferenceSide::Simulator);
        }
        // How many there are is compared already.
        if expected.frames != seen.frames {
            continue;
        }
        for (path, values) in &expected.values {
            if is_stopped && USAGE.contains(&name(path)) {
                continue;
            }
            let others = seen.values.get(path);
            for (value, who) in others.map_or_else(Vec::new, |others| diff(values, others)) {
                add(field(&format!("{path} = {value}")), who);
            }
        }
    }
    differences
}

/// Whether this is the result of a turn that was stopped: by an interrupt, or by a prompt for now.
fn is_stopped(kind: &str, frame: &Value) -> bool {
    let reason = frame["terminal_reason"].as_str().unwrap_or_default();
    kind == "result/error_during_execution" || kind.starts_with("result/") && reason.starts_with("aborted_")
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

/// By value, prose too: the inputs of tools wherever they are shown, and all that a permission request and the description of a
/// mirrored agent say.
fn shown(spoken: &Spoken) -> Vec<String> {
    let mut shown = Vec::new();
    // The ids of tasks are drawn.
    let tasks = spoken.frames.iter().map(|(_, frame)| &frame["task_id"]);
    let tasks: BTreeSet<&str> = tasks.filter_map(Value::as_str).collect();
    let mut add = |place: &str, tool: &Value, value: &Value| {
        let tool = tool.as_str().unwrap_or("?");
        let text = format!("{place} {tool} {}", in_order(value));
        shown.push(tasks.iter().fold(text, |text, id| text.replace(id, "{task}")));
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

/// What the frames of a kind have.
#[derive(Debug, Default)]
struct Fields {
    /// How many frames there are.
    frames: usize,
    /// The paths of their fields with the types.
    types: BTreeSet<String>,
    /// The values of fields that are compared by value, by their paths and in order.
    values: BTreeMap<String, Vec<String>>,
}

/// Fields whose values differ each time, or depend on time.
const VARIES: WordList = WordList(
    "description timestamp harnessSectionHash partial_json signature estimated_tokens total_tokens totalTokens pid",
);

/// Fields that depend on time once a turn was stopped: how much had come of a response by then.
const USAGE: &[&str] = &[
    "outputTokens",
    "output_tokens",
    "costUSD",
    "total_cost_usd",
    "totalCostUSD",
];

/// What the names of such fields end with.
const VARIES_AT_THE_END: &[&str] = &[
    "id", "Id", "ids", "_ms", "Ms", "_at", "At", "_time", "Time", "Hint",
];

/// The name of the field with this path.
fn name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path).trim_end_matches("[]")
}

/// The value of a field, as far as it is the same in each run: words of the protocol, numbers and whether something is so. Prose
/// is not: the simulator has its own.
fn constant(path: &str, value: &Value) -> Option<String> {
    let name = name(path);
    if VARIES.has(name) || VARIES_AT_THE_END.iter().any(|end| name.ends_with(end)) {
        return None;
    }
    match value {
        Value::Bool(_) => Some(value.to_string()),
        // The last digits of a sum depend on the order.
        Value::Number(number) => {
            let number = number.as_f64()?;
            let digits = if number.fract() == 0.0 { 0 } else { 7 };
            Some(format!("{number:.digits$}"))
        }
        Value::String(text) => {
            let of_word = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            let is_id = text
                .split(|c: char| !c.is_ascii_digit())
                .any(|digits| digits.len() > 3);
            let is_word = text.chars().all(of_word) && !is_id;
            is_word.then(|| value.to_string())
        }
        _ => None,
    }
}

/// The fields of each kind, from all its frames.
fn fields(spoken: &Spoken) -> BTreeMap<String, Fields> {
    let mut fields = BTreeMap::<String, Fields>::new();
    for (kind, frame) in spoken.frames.iter().filter(|(kind, _)| kind != MIRROR) {
        let fields = fields.entry(kind.clone()).or_default();
        fields.frames += 1;
        walk(frame, String::new(), fields);
    }
    let all = fields.values_mut().flat_map(|fields| fields.values.values_mut());
    all.for_each(|values| values.sort());
    fields
}

fn walk(value: &Value, path: String, into: &mut Fields) {
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
    into.types.insert(format!("{path}: {name}"));
    if let Some(value) = constant(&path, value) {
        into.values.entry(path).or_default().push(value);
    }
}

/// Both sequences of kinds as one: with whose each is, where only one of them has it.
pub(super) fn beside(real: &Spoken, simulated: &Spoken) -> Vec<(String, Option<DifferenceSide>)> {
    steps(&sequence(real), &sequence(simulated))
}

/// What only one of two lists has.
fn diff(expected: &[String], seen: &[String]) -> Vec<(String, DifferenceSide)> {
    let steps = steps(expected, seen).into_iter();
    steps.filter_map(|(kind, who)| Some((kind, who?))).collect()
}

/// The shortest way from one list to the other.
fn steps(expected: &[String], seen: &[String]) -> Vec<(String, Option<DifferenceSide>)> {
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
                steps.push((a.clone(), Some(DifferenceSide::Real)));
                i += 1;
            }
            (_, Some(b)) => {
                steps.push((b.clone(), Some(DifferenceSide::Simulator)));
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
                ("b".to_owned(), DifferenceSide::Real),
                ("b".to_owned(), DifferenceSide::Simulator),
                ("e".to_owned(), DifferenceSide::Simulator)
            ]
        );
        assert_eq!(
            diff(&list("a"), &list("a b")),
            [("b".to_owned(), DifferenceSide::Simulator)]
        );
        assert_eq!(
            diff(&list("a b"), &list("b")),
            [("a".to_owned(), DifferenceSide::Real)]
        );
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
    fn how_turns_end_is_compared_where_both_wrote_as_many_results() {
        let results = |reasons: &[&str]| {
            let results = reasons.iter();
            Spoken::new(results.map(|reason| {
                let frame = serde_json::json!({"type": "result", "stop_reason": reason, "duration_ms": 1});
                ("result/success".to_owned(), frame)
            }))
        };
        assert_eq!(compare("same", &results(&["a", "b"]), &results(&["a", "b"])), []);
        let differences = compare("differs", &results(&["a", "b"]), &results(&["a", "c"]));
        assert_eq!(differences.len(), 2);
        let what = DifferenceKind::Field {
            kind: "result/success".to_owned(),
            field: "stop_reason = \"b\"".to_owned(),
        };
        assert_eq!(differences[0].what, what);
        let missing = compare("missing", &results(&[]), &results(&["a"]));
        assert_eq!(missing.len(), 1, "{missing:?}");
    }

    #[test]
    fn how_much_had_come_is_not_compared_where_a_turn_was_stopped() {
        let result = |reason: &str, tokens: u32| {
            let frame =
                serde_json::json!({"type": "result", "terminal_reason": reason, "total_cost_usd": tokens});
            Spoken::new([("result/success".to_owned(), frame)])
        };
        for (reason, differences) in [("completed", 2), ("aborted_streaming", 0)] {
            let found = compare("one", &result(reason, 1), &result(reason, 2));
            assert_eq!(found.len(), differences, "{reason}");
        }
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
    fn words_and_numbers_are_compared_by_value_and_prose_is_not() {
        let frame = |mode: &str, tokens: u32, text: &str, id: &str| {
            let frame =
                serde_json::json!({"mode": mode, "usage": {"tokens": tokens}, "text": text, "task_id": id});
            Spoken::new([("system/init".to_owned(), frame)])
        };
        let real = frame("plan", 1, "One word.", "a");
        assert_eq!(compare("same", &real, &frame("plan", 1, "Two words.", "b")), []);
        let differences = compare("differs", &real, &frame("default", 2, "One word.", "a"));
        let fields: Vec<_> = differences
            .iter()
            .map(|difference| (&difference.what, difference.who))
            .collect();
        let field = |field: &str| DifferenceKind::Field {
            kind: "system/init".to_owned(),
            field: field.to_owned(),
        };
        assert_eq!(
            fields,
            [
                (&field("mode = \"plan\""), DifferenceSide::Real),
                (&field("mode = \"default\""), DifferenceSide::Simulator),
                (&field("usage.tokens = 1"), DifferenceSide::Real),
                (&field("usage.tokens = 2"), DifferenceSide::Simulator),
            ]
        );
        // Where only one has the field at all, that is the difference.
        let without = Spoken::new([("system/init".to_owned(), serde_json::json!({"mode": "plan"}))]);
        assert_eq!(compare("without", &real, &without).len(), 3);
    }

    #[test]
    fn fields_are_paths_with_types() {
        let frame = serde_json::json!({
            "a": {"b": [{"c": 1}, {"c": null}], "d": []}, "modelUsage": {"some-model": {"in": 1.5}}, "e": {},
        });
        let mut seen = Fields::default();
        walk(&frame, String::new(), &mut seen);
        let expected = [
            "a.b[].c: null",
            "a.b[].c: number",
            "a.d: []",
            "e: {}",
            "modelUsage.*.in: number",
        ];
        assert_eq!(
            seen.types.iter().map(String::as_str).collect::<Vec<_>>(),
            expected
        );
    }
}
