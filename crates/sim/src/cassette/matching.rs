//! Compares a client with the recorded one: by meaning, not by bytes.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::file::{Cassette, Said, What};
use super::strings;
use crate::word_list::WordList;

/// Keys whose values name something that one of the two sides made up, or that are lists of such.
const ID_KEYS: WordList = WordList(
    "request_id uuid callback_id hookCallbackIds message_uuid message_id user_message_id user_message_uuid \
     user_message_uuids command_uuid all_uuids uuids still_queued cancelled session_id",
);

/// Keys whose values are times.
const TIME_KEYS: &[&str] = &["timestamp", "created_at", "createdAt"];

/// Which id of the recording is which of the session that is played.
#[derive(Debug, Clone, Default)]
pub(super) struct IdPairs {
    /// The ids that the CLI made when it was recorded: the replay has the same ones.
    of_cli: HashSet<String>,
    /// The ids that the client made then, with their current ones.
    now: HashMap<String, String>,
    then: HashMap<String, String>,
}

impl IdPairs {
    pub(super) fn of(cassette: &Cassette) -> Self {
        let mut of_cli = HashSet::new();
        let mut of_client = HashSet::new();
        let mut collect = |text: &str, into_cli: bool| {
            strings::rewrite(text, |place, text| {
                if !place.is_key && (is_uuid(text) || is_id_key(place.key())) {
                    let (own, other) = if into_cli {
                        (&mut of_cli, &of_client)
                    } else {
                        (&mut of_client, &of_cli)
                    };
                    if !other.contains(text) {
                        own.insert(text.to_owned());
                    }
                }
                None
            });
        };
        // The client chooses the ids on its command line.
        for argument in &cassette.header.argv {
            let value = argument
                .split_once('=')
                .map_or(argument.as_str(), |(_, value)| value);
            if is_uuid(value) {
                collect(&strings::encode(value), false);
            }
        }
        for event in &cassette.events {
            match &event.what {
                What::Out(said, _) => collect(said.text(), true),
                What::In(said) => collect(said.text(), false),
                _ => {}
            }
        }
        Self {
            of_cli,
            ..Self::default()
        }
    }

    /// Learns the current values of the client's command line for the recorded ones.
    pub(super) fn learn_argv(&mut self, then: &[String], now: &[String]) {
        let values = |argv: &[String]| -> HashMap<String, String> {
            let mut found = HashMap::new();
            for (at, argument) in argv.iter().enumerate() {
                let (flag, value) = match argument.split_once('=') {
                    Some((flag, value)) => (flag, Some(value)),
                    None => (argument.as_str(), argv.get(at + 1).map(String::as_str)),
                };
                if let Some(value) = value.filter(|value| flag.starts_with("--") && is_uuid(value)) {
                    found.insert(flag.to_owned(), value.to_owned());
                }
            }
            found
        };
        let now = values(now);
        for (flag, then) in values(then) {
            if let Some(now) = now.get(&flag) {
                self.bind(&then, now);
            }
        }
    }

    fn bind(&mut self, then: &str, now: &str) {
        self.now.insert(then.to_owned(), now.to_owned());
        self.then.insert(now.to_owned(), then.to_owned());
    }

    /// A string of the CLI, with the client's own ids of now.
    pub(super) fn to_now(&self, key: Option<&str>, text: &str) -> Option<String> {
        if let Some(now) = self.now.get(text) {
            return (is_uuid(text) || is_id_key(key)).then(|| now.clone());
        }
        // Within a text only what can't be a word.
        let mut changed: Option<String> = None;
        if text.len() > 36 && text.contains('-') {
            for (then, now) in self.now.iter().filter(|(then, _)| is_uuid(then)) {
                if text.contains(then.as_str()) {
                    let text = changed.as_deref().unwrap_or(text);
                    changed = Some(text.replace(then.as_str(), now));
                }
            }
        }
        changed
    }
}

fn is_id_key(key: Option<&str>) -> bool {
    key.is_some_and(|key| ID_KEYS.has(key))
}

fn is_uuid(text: &str) -> bool {
    uuid::Uuid::try_parse(text).is_ok()
}

/// Where two frames differ.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameDifference {
    /// The JSON pointer of the place.
    pub at: String,
    /// The recorded value; none if the place did not exist.
    pub expected: Option<String>,
    /// What came; nothing if the place is not there.
    pub received: Option<String>,
}

impl std::fmt::Display for FrameDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = if self.at.is_empty() { "the line" } else { &self.at };
        match (&self.expected, &self.received) {
            (Some(expected), Some(received)) => {
                write!(
                    f,
                    "{at}: {} was recorded, {} came",
                    short(expected),
                    short(received)
                )
            }
            (Some(expected), None) => write!(f, "{at}: {} was recorded, nothing came", short(expected)),
            (None, received) => {
                let received = received.as_deref().unwrap_or_default();
                write!(f, "{at}: nothing was recorded, {} came", short(received))
            }
        }
    }
}

/// A text that is short enough for a line.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Compares a line with the recorded one.
pub(super) struct LineComparison<'a> {
    ids: IdPairs,
    ignored: &'a [Vec<String>],
    differences: Vec<FrameDifference>,
    path: Vec<String>,
}

impl<'a> LineComparison<'a> {
    /// The ids as they are known then, or where the two frames differ.
    pub(super) fn of(
        ids: &IdPairs,
        ignored: &'a [Vec<String>],
        then: &Said,
        now: &Said,
    ) -> Result<IdPairs, Vec<FrameDifference>> {
        let mut this = Self {
            ids: ids.clone(),
            ignored,
            differences: Vec::new(),
            path: Vec::new(),
        };
        match (then.value(), now.value()) {
            // Too deep for a value: only equal texts match.
            (Value::Null, _) | (_, Value::Null) if then.text() != now.text() => {
                this.differ(Some(then.text().to_owned()), Some(now.text().to_owned()));
            }
            (then, now) => this.values(&canonical(then), &canonical(now)),
        }
        if this.differences.is_empty() {
            Ok(this.ids)
        } else {
            Err(this.differences)
        }
    }

    fn differ(&mut self, expected: Option<String>, received: Option<String>) {
        let escaped = self
            .path
            .iter()
            .map(|part| part.replace('~', "~0").replace('/', "~1"));
        self.differences.push(FrameDifference {
            at: escaped.map(|part| format!("/{part}")).collect(),
            expected,
            received,
        });
    }

    fn values(&mut self, then: &Value, now: &Value) {
        let path = &self.path;
        let is_here = |pointer: &&Vec<String>| {
            pointer.len() == path.len()
                && pointer
                    .iter()
                    .zip(path)
                    .all(|(part, key)| part == "*" || part == key)
        };
        if self.ignored.iter().find(is_here).is_some() {
            return;
        }
        match (then, now) {
            (Value::Object(then), Value::Object(now)) => self.objects(then, now),
            (Value::Array(then), Value::Array(now)) => {
                for index in 0..then.len().max(now.len()) {
                    self.path.push(index.to_string());
                    match (then.get(index), now.get(index)) {
                        (Some(then), Some(now)) => self.values(then, now),
                        (then, now) => self.differ(then.map(Value::to_string), now.map(Value::to_string)),
                    }
                    self.path.pop();
                }
            }
            (Value::String(then), Value::String(now)) => {
                if !self.strings(then, now) {
                    self.differ(
                        Some(Value::from(then.as_str()).to_string()),
                        Some(Value::from(now.as_str()).to_string()),
                    );
                }
            }
            (Value::Number(then), Value::Number(now)) if then.as_f64() == now.as_f64() => {}
            (then, now) if then == now || self.is_time() => {}
            (then, now) => {
                let shown = |value: &Value| (!value.is_null()).then(|| value.to_string());
                self.differ(shown(then), shown(now));
            }
        }
    }

    fn objects(&mut self, then: &Map<String, Value>, now: &Map<String, Value>) {
        let new = now.keys().filter(|key| !then.contains_key(*key));
        for key in then.keys().chain(new) {
            self.path.push(key.clone());
            // Null is the same as a missing key.
            let of = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
            self.values(&of(then), &of(now));
            self.path.pop();
        }
    }

    fn is_time(&self) -> bool {
        self.path
            .last()
            .is_some_and(|key| TIME_KEYS.contains(&key.as_str()))
    }

    fn strings(&mut self, then: &str, now: &str) -> bool {
        if then == now || self.is_time() || is_time(then) && is_time(now) {
            return true;
        }
        let key = self.path.iter().rev().find(|part| part.parse::<usize>().is_err());
        let is_version_of_server = self
            .path
            .ends_with(&["serverInfo".to_owned(), "version".to_owned()]);
        if is_version_of_server {
            return true;
        }
        let is_id = is_id_key(key.map(String::as_str)) || is_uuid(then) && is_uuid(now);
        if is_id && !self.ids.of_cli.contains(then) {
            return match (self.ids.now.get(then), self.ids.then.get(now)) {
                (None, None) => {
                    self.ids.bind(then, now);
                    true
                }
                (bound, _) => bound.is_some_and(|bound| bound == now),
            };
        }
        let mended = self.ids.to_now(None, then);
        let then = mended.as_deref().unwrap_or(then);
        then == now || without_chance(then) == without_chance(now)
    }
}

/// A prompt may be a text or a list of one text.
fn canonical(mut frame: Value) -> Value {
    if let Some(content) = frame.pointer_mut("/message/content")
        && content.is_string()
    {
        let text = content.take();
        *content = serde_json::json!([{"type": "text", "text": text}]);
    }
    frame
}

/// The names of temporary files without what chance made of them.
fn without_chance(text: &str) -> String {
    let mut parts = text.split(".tmp");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(".tmp");
        let chance = part.bytes().take_while(u8::is_ascii_alphanumeric).count();
        kept.push_str(if chance == 6 { &part[6..] } else { part });
    }
    kept
}

/// Whether this is a time as JSON has them: `2026-01-01T00:00:00…`.
pub(crate) fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = b"dddd-dd-ddTdd:dd:dd";
    bytes.len() >= shape.len()
        && bytes.len() <= 35
        && bytes.iter().zip(shape).all(|(byte, wanted)| match wanted {
            b'd' => byte.is_ascii_digit(),
            _ => byte == wanted,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differ(then: Value, now: Value) -> Vec<String> {
        let ignored = [vec!["ignored".to_owned(), "*".to_owned()]];
        let said = |value: &Value| Said::of(&value.to_string());
        match LineComparison::of(&IdPairs::default(), &ignored, &said(&then), &said(&now)) {
            Ok(_) => Vec::new(),
            Err(differences) => differences.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn what_means_the_same_is_the_same() {
        for (then, now) in [
            (json!({"a": 1, "b": null}), json!({"a": 1.0})),
            (
                json!({"type": "user", "message": {"role": "user", "content": "hi"}}),
                json!({"message": {"content": [{"type": "text", "text": "hi"}], "role": "user"}, "type": "user"}),
            ),
            (json!({"request_id": "req_1"}), json!({"request_id": "7"})),
            (
                json!({"x": "aaaaaaaa-0000-4000-8000-000000000001"}),
                json!({"x": "bbbbbbbb-0000-4000-8000-000000000002"}),
            ),
            (
                json!({"x": "2026-01-01T00:00:00.000Z"}),
                json!({"x": "2027-02-02T10:10:10Z"}),
            ),
            (
                json!({"p": "{{tmp}}/.tmpAbC123/x"}),
                json!({"p": "{{tmp}}/.tmp9zZ000/x"}),
            ),
            (json!({"ignored": {"x": 1}}), json!({"ignored": {"x": 2}})),
        ] {
            assert_eq!(differ(then.clone(), now.clone()), [""; 0], "{then} {now}");
        }
    }

    #[test]
    fn what_means_something_else_is_told_with_its_place() {
        assert_eq!(
            differ(
                json!({"a": {"b/c": ["x", 1]}, "d": true}),
                json!({"a": {"b/c": ["y", 1, 2]}})
            ),
            [
                "/a/b~1c/0: \"x\" was recorded, \"y\" came",
                "/a/b~1c/2: nothing was recorded, 2 came",
                "/d: true was recorded, nothing came",
            ]
        );
    }

    #[test]
    fn an_id_stands_for_one_other() {
        let two = |a: &str, b: &str| json!([{"uuid": a}, {"uuid": b}]);
        assert_eq!(differ(two("1", "1"), two("x", "x")), [""; 0]);
        assert_eq!(differ(two("1", "1"), two("x", "y")).len(), 1);
        assert_eq!(differ(two("1", "2"), two("x", "x")).len(), 1);
    }
}
