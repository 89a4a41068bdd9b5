//! Records what an API answers, as a script that answers the same.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

use axum::http::HeaderMap;
use regex_lite::Regex;
use serde_json::{Map, Value, json};

use super::heard::{Heard, Tail, who};
use super::request::{ApiRequest, Route};
use super::server::lock;
use crate::cassette::{Places, Redactor, Rules, home_of_somebody, replace_placeholders};
use crate::script::course::ModelCaller;
use crate::script::fill::each_string;

/// Writes down what passes through a [`MessagesApi`](super::MessagesApi) on its way to an [`Upstream`](super::Upstream): as a
/// [script](crate::script) in JSON, with a rule for each prompt. Clones write into the same file.
///
/// Keys, tokens and names of users are redacted, and directories are variables. Neither the system prompt nor the descriptions of tools
/// are written. The file is whole after each answer.
///
/// Not recorded are the turns that the CLI begins by itself when background work has ended; a script has them in the `then` of a step.
#[derive(Debug, Clone)]
pub struct ApiRecorder(Arc<ApiRecorderInner>);

#[derive(Debug)]
struct ApiRecorderInner {
    path: PathBuf,
    redaction: Rules,
    recorded: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    rules: Vec<Value>,
    /// Of everybody: what was heard, and the rule for the last prompt.
    heard: HashMap<ModelCaller, (Heard, Option<usize>)>,
    /// The working directories of sessions.
    places: HashMap<Option<String>, String>,
    failed: Option<String>,
}

/// The headers of an answer that the CLI acts upon.
const KEPT_HEADERS: &[&str] = &["retry-after", "retry-after-ms", "x-should-retry"];
const KEPT_PREFIX: &str = "anthropic-ratelimit-";

/// A longer answer is not recorded. Tests do not wait for 64 MiB.
const LONGEST_ANSWER: usize = if cfg!(test) { 64 << 10 } else { 64 << 20 };

impl ApiRecorder {
    /// Records into a new file, with these rules of redaction beside those that always hold.
    ///
    /// # Errors
    /// When it exists already, or cannot be written.
    pub fn create(path: impl AsRef<Path>, redaction: Rules) -> io::Result<Self> {
        OpenOptions::new().write(true).create_new(true).open(&path)?;
        let recorder = Self::into(path.as_ref(), redaction);
        recorder.write(&[])?;
        Ok(recorder)
    }

    /// The same in the place of a file that may exist, which is as it was until there is an answer to record.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace(path: impl AsRef<Path>, redaction: Rules) -> io::Result<Self> {
        let path = path.as_ref();
        if !path.exists() {
            return Self::create(path, redaction);
        }
        OpenOptions::new().write(true).open(path)?;
        Ok(Self::into(path, redaction))
    }

    fn into(path: &Path, redaction: Rules) -> Self {
        Self(Arc::new(ApiRecorderInner {
            path: path.to_owned(),
            redaction,
            recorded: Mutex::default(),
        }))
    }

    /// Why something could not be written.
    pub fn failed(&self) -> Option<String> {
        lock(&self.0.recorded).failed.clone()
    }

    fn write(&self, rules: &[Value]) -> io::Result<()> {
        // Of a prompt that nothing answered there is nothing to play.
        let rules: Vec<_> = rules.iter().filter(|rule| rule["steps"] != json!([])).collect();
        let mut part = self.0.path.clone().into_os_string();
        part.push(".part");
        fs::write(&part, format!("{:#}\n", json!({"prompts": rules})))?;
        fs::rename(part, &self.0.path)
    }

    /// Takes in a request. Nothing of one that belongs to no prompt.
    pub(super) fn begin(&self, request: &ApiRequest, headers: &HeaderMap, home: &str) -> Option<Tape> {
        if request.route() != Route::Messages {
            return None;
        }
        let mut redaction = self.0.redaction.clone();
        for name in ["x-api-key", "authorization", "proxy-authorization", "cookie"] {
            for value in headers.get_all(name) {
                let value = value.to_str().unwrap_or_default();
                let bare = value.strip_prefix("Bearer ").unwrap_or(value);
                // Words like `dummy` are no secret, and would be found everywhere.
                if bare.len() >= 12 {
                    redaction = redaction.literal(bare);
                }
            }
        }
        let who = who(request);
        let mut recorded = lock(&self.0.recorded);
        let Recorded {
            rules, heard, places, ..
        } = &mut *recorded;
        if let Some(directory) = request.working_directory() {
            places.insert(who.session.clone(), directory);
        }
        let places = Places {
            cwd: places.get(&who.session).cloned().unwrap_or_default(),
            home: home.to_owned(),
            tmp: String::new(),
            ..Places::default()
        };
        let redactor = Redactor::new(&places, redaction);
        let (heard, rule) = heard.entry(who.clone()).or_default();
        let new = heard.hear(Tail::of(request));
        if !new.prompts.is_empty() {
            let prompt = pattern(&new.prompts.join("\n"), &redactor);
            let from = if who.agent.is_some() { "subagent" } else { "main" };
            *rule = Some(rules.len());
            rules.push(json!({
                "prompt": prompt, "model": request.model(), "from": from, "anytime": true, "steps": [],
            }));
        } else if new.begins {
            *rule = None;
        }
        let rule = (*rule)?;
        Some(Tape {
            recorder: self.clone(),
            who,
            rule,
            redactor,
            status: None,
            headers: Map::new(),
            body: Vec::new(),
            length: 0,
            ended: Some(AnswerEnd::ClientGone),
        })
    }
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerEnd {
    Whole,
    /// The connection to the API broke.
    Cut,
    /// The CLI hung up.
    ClientGone,
}

/// An answer on its way. Is written down when it is dropped.
#[derive(Debug)]
pub(super) struct Tape {
    recorder: ApiRecorder,
    who: ModelCaller,
    rule: usize,
    redactor: Redactor,
    /// None before the answer began.
    status: Option<u16>,
    headers: Map<String, Value>,
    body: Vec<u8>,
    /// How much came, which may be more than is kept.
    length: usize,
    /// None if nothing is to be written.
    ended: Option<AnswerEnd>,
}

impl Tape {
    pub(super) fn head(&mut self, status: u16, headers: &HeaderMap) {
        self.status = Some(status);
        let kept = headers.iter().filter(|(name, _)| {
            KEPT_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(KEPT_PREFIX)
        });
        self.headers.extend(kept.map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.into())
        }));
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.length = self.length.saturating_add(bytes.len());
        if self.length <= LONGEST_ANSWER {
            self.body.extend_from_slice(bytes);
        }
    }

    pub(super) fn end(mut self, ended: AnswerEnd) {
        self.ended = Some(ended);
    }

    /// Writes nothing down.
    pub(super) fn discard(mut self) {
        self.ended = None;
    }

    /// The step as it is written. What cannot be redacted is not written.
    fn redacted(&self, mut step: Value) -> Result<Value, String> {
        if self.length > LONGEST_ANSWER {
            return Err(format!(
                "an answer of {} bytes is not recorded: the limit is {LONGEST_ANSWER}",
                self.length
            ));
        }
        // With their keys, since those tell what is secret, too.
        if let Some(text) = self.redactor.line(&step.to_string()) {
            let why =
                |error| format!("a redacted answer is not recorded, because it is no JSON any more: {error}");
            step = serde_json::from_str(&text).map_err(why)?;
        }
        scriptable(&mut step);
        Ok(step)
    }

    /// The steps that answer the same.
    fn answer(&self, ended: AnswerEnd) -> Answered {
        let text = String::from_utf8_lossy(&self.body);
        let body: Option<Value> = serde_json::from_str(&text).ok();
        let error = body.as_ref().map_or(&Value::Null, |body| &body["error"]);
        if let Some(status @ 400..) = self.status {
            let message = error["message"].as_str().map(anonymous);
            let failure = json!({
                "status": status, "kind": error["type"], "message": message, "headers": self.headers, "times": 1,
            });
            return Answered {
                step: json!({"api_error": failure}),
                failed: true,
                goes_on: false,
            };
        }
        let mut message = RecordedMessage::default();
        match body {
            Some(body) => message.whole(&body),
            None => text.split("\n\n").for_each(|event| message.event(event)),
        }
        let mut steps = Vec::new();
        if !self.headers.is_empty() {
            steps.push(json!({"headers": self.headers}));
        }
        steps.extend(message.usage());
        steps.extend(message.blocks.values().map(step));
        let stop = message.stop["stop_reason"].as_str().unwrap_or_default();
        let flaw = match (ended, message.error) {
            (_, Some(error)) => Some(json!({"error_event": error})),
            (AnswerEnd::ClientGone, _) => Some("stall".into()),
            (AnswerEnd::Cut, _) if self.status.is_none() => Some("drop".into()),
            (AnswerEnd::Cut, _) => Some("cut".into()),
            (AnswerEnd::Whole, _) if !message.complete => Some("truncated".into()),
            (AnswerEnd::Whole, _) => None,
        };
        if let Some(sequence) = message.stop["stop_sequence"].as_str() {
            steps.push(json!({"stop_sequence": sequence}));
        }
        if flaw.is_none() && !matches!(stop, "" | "end_turn" | "tool_use" | "stop_sequence") {
            steps.push(json!({"stop_reason": stop}));
        }
        let is_hidden =
            |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
        let failed = flaw.is_some();
        steps.extend(flaw);
        Answered {
            failed,
            goes_on: stop == "max_tokens" || (!failed && message.blocks.values().all(is_hidden)),
            step: json!({"response": steps}),
        }
    }
}

/// What an answer was.
struct Answered {
    step: Value,
    failed: bool,
    /// Whether the CLI asks once more by itself.
    goes_on: bool,
}

impl Drop for Tape {
    fn drop(&mut self) {
        let Some(ended) = self.ended else { return };
        let answered = self.answer(ended);
        let step = self.redacted(answered.step);
        let mut recorded = lock(&self.recorder.0.recorded);
        if let Some((heard, _)) = recorded.heard.get_mut(&self.who) {
            heard.answered(answered.failed, answered.goes_on);
        }
        match (step, recorded.rules[self.rule]["steps"].as_array_mut()) {
            (Ok(step), Some(steps)) => steps.push(step),
            (Err(why), _) => drop(recorded.failed.get_or_insert(why)),
            (Ok(_), None) => {}
        }
        if let Err(error) = self.recorder.write(&recorded.rules) {
            recorded.failed.get_or_insert_with(|| error.to_string());
        }
    }
}

/// A message of the model.
#[derive(Default)]
struct RecordedMessage {
    blocks: BTreeMap<u64, Value>,
    /// Inputs of tools that come in pieces.
    inputs: BTreeMap<u64, String>,
    usage: Map<String, Value>,
    stop: Value,
    error: Option<String>,
    complete: bool,
}

impl RecordedMessage {
    fn whole(&mut self, body: &Value) {
        let blocks = body["content"].as_array().cloned().unwrap_or_default();
        self.blocks = (0..).zip(blocks).collect();
        self.count(&body["usage"]);
        self.stop = body.clone();
        self.complete = true;
    }

    fn event(&mut self, text: &str) {
        let mut lines = text.lines();
        let data = lines.find_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok());
        let Some(data) = data else { return };
        let index = data["index"].as_u64().unwrap_or_default();
        match data["type"].as_str().unwrap_or_default() {
            "message_start" => self.count(&data["message"]["usage"]),
            "content_block_start" => drop(self.blocks.insert(index, data["content_block"].clone())),
            "content_block_delta" => {
                let delta = &data["delta"];
                if let Some(piece) = delta["partial_json"].as_str() {
                    let input = self.inputs.entry(index).or_default();
                    input.push_str(piece);
                    // Pieces of an input mean something together only.
                    if let (Ok(input), Some(block)) =
                        (serde_json::from_str(input), self.blocks.get_mut(&index))
                    {
                        block["input"] = input;
                    }
                }
                if let (false, Some(block)) = (delta["citation"].is_null(), self.blocks.get_mut(&index)) {
                    match &mut block["citations"] {
                        Value::Array(citations) => citations.push(delta["citation"].clone()),
                        none => *none = json!([delta["citation"]]),
                    }
                }
                for field in ["text", "thinking"] {
                    if let (Some(piece), Some(Value::String(text))) = (
                        delta[field].as_str(),
                        self.blocks.get_mut(&index).and_then(|block| block.get_mut(field)),
                    ) {
                        text.push_str(piece);
                    }
                }
            }
            "message_delta" => {
                self.count(&data["usage"]);
                self.stop = data["delta"].clone();
            }
            "message_stop" => self.complete = true,
            "error" => self.error = data["error"]["type"].as_str().map(str::to_owned),
            _ => {}
        }
    }

    fn count(&mut self, usage: &Value) {
        self.usage.extend(usage.as_object().cloned().unwrap_or_default());
    }

    fn usage(&self) -> Option<Value> {
        let tokens = |name: &str| self.usage.get(name).and_then(Value::as_u64).unwrap_or_default();
        let usage = json!({
            "input": tokens("input_tokens"), "output": tokens("output_tokens"),
            "cache_creation": tokens("cache_creation_input_tokens"), "cache_read": tokens("cache_read_input_tokens"),
        });
        (!self.usage.is_empty()).then(|| json!({"usage": usage}))
    }
}

/// A content block as a step.
fn step(block: &Value) -> Value {
    match block["type"].as_str().unwrap_or_default() {
        "text" if block["citations"].as_array().is_none_or(Vec::is_empty) => json!({"say": block["text"]}),
        "thinking" => json!({"think": block["thinking"]}),
        "redacted_thinking" => json!({"redacted": block["data"]}),
        "tool_use" => json!({"call": {"tool": block["name"], "input": block["input"]}}),
        _ => json!({"block": block}),
    }
}

/// The text of an error without organizations.
fn anonymous(text: &str) -> String {
    static WHO: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\borg_[A-Za-z0-9]+").ok()
    });
    match &*WHO {
        Some(who) => who.replace_all(text, "<account>").into_owned(),
        None => text.to_owned(),
    }
}

/// A pattern of prompts that are like this one in another place.
fn pattern(prompt: &str, redactor: &Redactor) -> Value {
    const ANYTHING: &str = "\0";
    let redacted = redactor.text(prompt).unwrap_or_else(|| prompt.to_owned());
    let open = replace_placeholders(&redacted, |name| match name.strip_prefix(AS_IS) {
        Some(name) => Some(format!("{{{{{name}}}}}")),
        None => is_ours(name).then(|| ANYTHING.to_owned()),
    });
    let mut open = open.unwrap_or(redacted);
    while let Some(home) = home_of_somebody(&open) {
        open = open.replace(&home.to_owned(), ANYTHING);
    }
    match open.contains(ANYTHING) {
        false => json!({"exact": prompt}),
        true => {
            let escaped = regex_lite::escape(open.trim()).replace(ANYTHING, ".*");
            json!({"regex": format!(r"(?s)^\s*{escaped}\s*$")})
        }
    }
}

/// Before the name of a placeholder: it stood in the text.
const AS_IS: &str = "as-is:";

/// Whether redaction has put a placeholder of this name.
fn is_ours(name: &str) -> bool {
    let kind = name.split_once(':').map_or(name, |(kind, _)| kind);
    matches!(kind, "cwd" | "cwd_slug" | "home" | "secret" | "email" | "account")
}

/// Makes the placeholders in all strings what a script understands.
fn scriptable(value: &mut Value) {
    each_string(value, &mut |text| {
        let open = |name: &str| Some(format!("{{{{braces}}}}{name}}}}}"));
        let changed = replace_placeholders(text, |name| match name.strip_prefix(AS_IS) {
            Some(name) => open(name),
            None if matches!(name, "cwd" | "home") => None,
            None if name == "cwd_slug" => Some("project".to_owned()),
            None if is_ours(name) => Some("<redacted>".to_owned()),
            None => open(name),
        });
        *text = changed.unwrap_or_else(|| std::mem::take(text));
        while let Some(home) = home_of_somebody(text).map(str::to_owned) {
            let above = home.len() - home.rsplit(['/', '\\']).next().map_or(0, str::len);
            *text = text.replace(&home, &format!("{}user", &home[..above]));
        }
    });
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
