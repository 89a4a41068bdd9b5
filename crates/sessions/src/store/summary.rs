//! The data of a session for lists, updated with each append, so that lists need not read transcripts.

use outrigger_protocol::{RawJson, walk};
use serde::{Deserialize, Serialize};

use super::SessionKey;
use super::entry::{self, EntryFields};
use crate::clock;
use crate::id::SessionId;
use crate::read::SessionInfo;

/// How many characters of a first prompt are kept.
const PROMPT_CHARS: usize = 200;

/// The fields of entries of which the last one counts, and their names in a summary.
const LAST_WINS: [(&str, &str); 5] = [
    ("customTitle", "customTitle"),
    ("aiTitle", "aiTitle"),
    ("lastPrompt", "lastPrompt"),
    ("summary", "summaryHint"),
    ("gitBranch", "gitBranch"),
];

/// The summary of a session as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SummaryEntry {
    /// The session.
    pub session_id: String,
    /// When the store wrote it, by the same clock as [`StoredSession::mtime`](super::StoredSession::mtime). A summary that is
    /// older than its session is not trusted.
    pub mtime: u64,
    /// A JSON object that stores keep unchanged and do not inspect. Its keys are those of the official TypeScript SDK, so
    /// that both can work on the same store.
    pub data: RawJson,
}

impl SummaryEntry {
    /// A summary that a store has kept.
    pub fn new(session_id: impl Into<String>, mtime: u64, data: RawJson) -> Self {
        Self {
            session_id: session_id.into(),
            mtime,
            data,
        }
    }
}

/// The summary after `entries` were appended to the session `key`; `before` is the old one. Stores call this in their `append`, for
/// the session itself and never for its parts, with the entries that were really added.
///
/// The result depends only on the entries: in pieces or at once they give the same `data`. Fields of the beginning (creation,
/// directory, first prompt, whether it is a side chain) keep their first values; titles, tags, branch and last prompt have the
/// last ones. `mtime` is unchanged: the store sets it, by its own clock, as it writes.
pub fn fold_summary(before: Option<&SummaryEntry>, key: &SessionKey, entries: &[RawJson]) -> SummaryEntry {
    let mut data = match before {
        Some(before) => Data::of(before.data.get()),
        None => Data(Vec::new()),
    };
    for entry in entries {
        data.add(&EntryFields::of(entry.get()));
    }
    SummaryEntry {
        session_id: before
            .map_or(&key.session_id, |before| &before.session_id)
            .clone(),
        mtime: before.map_or(0, |before| before.mtime),
        data: data.encode(),
    }
}

/// The object, in order, with what is in it that isn't ours.
struct Data(Vec<(String, String)>);

impl Data {
    fn of(text: &str) -> Self {
        let pairs = EntryFields::of(text).into_pairs();
        let mut data = Self(Vec::new());
        for (key, value) in pairs {
            data.set_raw(&key, value.to_owned());
        }
        data
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    fn set_raw(&mut self, key: &str, value: String) {
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    fn set(&mut self, key: &str, value: &str) {
        self.set_raw(key, quoted(value));
    }

    fn add(&mut self, entry: &EntryFields<'_>) {
        if self.get("isSidechain").is_none() {
            self.set_raw("isSidechain", entry.is_true("isSidechain").to_string());
        }
        if self.get("createdAt").is_none()
            && let Some(at) = entry.text("timestamp").and_then(|at| clock::parse(&at))
        {
            self.set_raw("createdAt", at.to_string());
        }
        if self.get("cwd").is_none()
            && let Some(cwd) = entry.text("cwd").filter(|cwd| !cwd.is_empty())
        {
            self.set("cwd", &cwd);
        }
        self.add_prompt(entry);
        for (field, name) in LAST_WINS {
            // The text is kept as it was written, with its escapes.
            if let Some(value) = entry.get(field).filter(|value| value.starts_with('"')) {
                self.set_raw(name, value.to_owned());
            }
        }
        match entry.text("type").as_deref() {
            Some("tag") => match entry.text("tag").filter(|tag| !tag.is_empty()) {
                Some(tag) => self.set("tag", &tag),
                None => self.0.retain(|(name, _)| name != "tag"),
            },
            Some("relocated") => {
                if let Some(cwd) = entry.text("relocatedCwd").filter(|cwd| !cwd.is_empty()) {
                    self.set("cwd", &cwd);
                }
            }
            _ => {}
        }
    }

    fn add_prompt(&mut self, entry: &EntryFields<'_>) {
        if self.get("firstPromptLocked") == Some("true") {
            return;
        }
        let (prompt, command) = first_prompt(entry);
        if let Some(command) = command
            && self.get("commandFallback").is_none()
        {
            self.set("commandFallback", &command);
        }
        if let Some(prompt) = prompt {
            self.set("firstPrompt", &prompt);
            self.set_raw("firstPromptLocked", "true".to_owned());
        }
    }

    fn encode(&self) -> RawJson {
        let mut text = String::from("{");
        for (key, value) in &self.0 {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&quoted(key));
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        // Each part is JSON that was read as such, or written here.
        RawJson::from_text(text).unwrap_or_default()
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What an entry has of a first prompt: the prompt, and the command to show if no entry has one.
fn first_prompt(entry: &EntryFields<'_>) -> (Option<String>, Option<String>) {
    let mut command = None;
    let is_prompt = entry.text("type").as_deref() == Some("user")
        && !entry.is_true("isMeta")
        && !entry.is_true("isCompactSummary");
    let message = is_prompt.then(|| entry.get("message")).flatten();
    let Some(texts) = message.and_then(texts) else {
        return (None, None);
    };
    for text in texts {
        let text = text.replace('\n', " ");
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        if let Some(name) = between(text, "<command-name>", "</command-name>") {
            command.get_or_insert_with(|| name.to_owned());
            continue;
        }
        if let Some(input) = between(text, "<bash-input>", "</bash-input>") {
            return (Some(format!("! {}", input.trim())), command);
        }
        if !is_made(text) {
            return (Some(shortened(text)), command);
        }
    }
    (None, command)
}

/// The texts of a message; none if it carries the result of a tool.
fn texts(message: &str) -> Option<Vec<String>> {
    let fields = EntryFields::of(message);
    let content = fields.get("content")?;
    if let Some(text) = entry::text(content) {
        return Some(vec![text]);
    }
    let mut blocks = Vec::new();
    walk::elements(content, |block| blocks.push(block))?;
    let mut texts = Vec::new();
    for block in blocks {
        let block = EntryFields::of(block);
        match block.text("type").as_deref() {
            Some("tool_result") => return None,
            Some("text") => texts.extend(block.text("text")),
            _ => {}
        }
    }
    Some(texts)
}

fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let inner = &text[text.find(open)? + open.len()..];
    Some(&inner[..inner.find(close)?])
}

/// Whether a program wrote it: it begins with a tag, or tells of an interruption.
fn is_made(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix("[Request interrupted by user") {
        return rest.contains(']');
    }
    let Some(tag) = text.strip_prefix('<') else {
        return false;
    };
    let name = tag.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')));
    let is_name = tag.starts_with(|c: char| c.is_ascii_lowercase());
    is_name && name.is_some_and(|end| tag[end..].starts_with(|c: char| c == '>' || c.is_whitespace()))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(PROMPT_CHARS) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// What a summary shows; `None` for a side chain, and where there is nothing to show.
pub(super) fn info(id: &SessionId, summary: &SummaryEntry, mtime: u64) -> Option<SessionInfo> {
    let data = EntryFields::of(summary.data.get());
    if data.is_true("isSidechain") {
        return None;
    }
    let text = |name: &str| data.text(name).filter(|text| !text.is_empty());
    let prompt = if data.is_true("firstPromptLocked") {
        text("firstPrompt")
    } else {
        text("commandFallback")
    };
    let title = text("customTitle").or_else(|| text("aiTitle"));
    let shown = title
        .clone()
        .or_else(|| text("lastPrompt"))
        .or_else(|| text("summaryHint"));
    let mut info = SessionInfo::bare(id.clone(), mtime);
    info.summary = shown.or_else(|| prompt.clone())?;
    info.custom_title = title;
    info.first_prompt = prompt;
    info.git_branch = text("gitBranch");
    info.cwd = text("cwd");
    info.tag = text("tag");
    info.created_at = data.get("createdAt").and_then(|at| at.parse().ok());
    Some(info)
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
