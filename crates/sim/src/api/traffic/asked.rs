//! The content of a request, without the CLI's own prompts.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::redact::{Redaction, normalised};
use crate::api::request::ApiRequest;

/// The longest text that is kept as it is.
const LONGEST: usize = 400;

/// The content of a request, in short. A log and a recording keep it, and a replay compares it.
///
/// Of the system prompt and the descriptions of tools it has only digests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Asked {
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether a subagent asks.
    pub subagent: bool,
    /// The user's last text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Kept>,
    /// The results of tools since the model's last answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_results: Vec<KeptResult>,
    /// How many messages the conversation has.
    pub messages: usize,
    /// How many tools the model may call.
    pub tools: usize,
    /// A digest of the tools with their descriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_digest: Option<String>,
    /// A digest of the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_digest: Option<String>,
}

/// A text, or the beginning of a long one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Kept {
    /// The text, at most its first 400 characters.
    pub text: String,
    /// For a longer one, how many characters it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chars: Option<usize>,
    /// For a longer text, a digest of its meaning: of all of it without ids, dates and paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct KeptResult {
    /// The text of it.
    #[serde(flatten)]
    pub kept: Kept,
    /// Whether the call failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl Asked {
    /// The content of this request.
    pub fn of(request: &ApiRequest, redaction: &Redaction) -> Self {
        let keep = |text: &str| Kept::of(text, redaction);
        let tools = request.body.get("tools").filter(|tools| tools.is_array());
        let system = request.system_text();
        Self {
            model: request.model().map(str::to_owned),
            stream: request.stream(),
            subagent: request.agent_id().is_some(),
            prompt: request.last_user_text().map(|text| keep(&text)),
            tool_results: request
                .new_tool_results()
                .into_iter()
                .map(|result| KeptResult {
                    kept: keep(&result.text),
                    is_error: result.is_error,
                })
                .collect(),
            messages: request.messages().len(),
            tools: request.tools().count(),
            tools_digest: tools.map(|tools| digest(&tools.to_string())),
            system_digest: (!system.is_empty()).then(|| digest(&system)),
        }
    }

    /// The first thing in which the two mean something else; `None` when they mean the same.
    ///
    /// Not compared: ids, dates, directories of paths, the system prompt, which tools there are, and what came before in the
    /// conversation.
    pub fn difference(&self, asked: &Self, tool_results: bool) -> Option<String> {
        if self.subagent != asked.subagent {
            return Some(format!("{} asked, now {} does", self.who(), asked.who()));
        }
        if self.model != asked.model {
            let name = |asked: &Self| asked.model.clone().unwrap_or_else(|| "no model".to_owned());
            return Some(format!("the model was {}, now it is {}", name(self), name(asked)));
        }
        if (self.tools == 0) != (asked.tools == 0) {
            return Some(format!(
                "there were {} tools, now there are {}",
                self.tools, asked.tools
            ));
        }
        match (&self.prompt, &asked.prompt) {
            (Some(was), Some(is)) => {
                if let Some(how) = was.difference(is) {
                    return Some(format!("the prompt {how}"));
                }
            }
            (None, None) => {}
            (was, _) => {
                let (then, now) = if was.is_some() {
                    ("a", "none")
                } else {
                    ("no", "one")
                };
                return Some(format!("there was {then} prompt, now there is {now}"));
            }
        }
        let (was, is) = (&self.tool_results, &asked.tool_results);
        if was.len() != is.len() {
            return Some(format!(
                "{} results of tools had come, now {} did",
                was.len(),
                is.len()
            ));
        }
        if !tool_results {
            return None;
        }
        was.iter().zip(is).enumerate().find_map(|(place, (was, is))| {
            let place = place + 1;
            if was.is_error != is.is_error {
                let told = |is_error| if is_error { "failed" } else { "succeeded" };
                return Some(format!(
                    "the tool whose result is number {place} {}, now it {}",
                    told(was.is_error),
                    told(is.is_error)
                ));
            }
            let how = was.kept.difference(&is.kept)?;
            Some(format!("tool result {place} {how}"))
        })
    }

    fn who(&self) -> &'static str {
        if self.subagent {
            "a subagent"
        } else {
            "the main loop"
        }
    }

    /// How much of it is alike, for finding the nearest of several that differ.
    pub(super) fn likeness(&self, asked: &Self) -> usize {
        let prompts = match (&self.prompt, &asked.prompt) {
            (Some(was), Some(is)) if was.difference(is).is_none() => 100,
            (Some(was), Some(is)) => was.likeness(is) / 2,
            (None, None) => 100,
            _ => 0,
        };
        let results = match (&self.tool_results[..], &asked.tool_results[..]) {
            (was, is) if was.len() == is.len() => {
                let alike = was
                    .iter()
                    .zip(is)
                    .filter(|(was, is)| was.kept.difference(&is.kept).is_none());
                20 + 10 * alike.count().min(4)
            }
            _ => 0,
        };
        let flag = |alike: bool| 5 * usize::from(alike);
        prompts
            + results
            + flag(self.subagent == asked.subagent)
            + flag(self.model == asked.model)
            + flag((self.tools == 0) == (asked.tools == 0))
    }

    /// In one line.
    pub(super) fn describe(&self) -> String {
        let who = self.who();
        let model = self.model.as_deref().unwrap_or("no model");
        let prompt = self
            .prompt
            .as_ref()
            .map_or_else(|| "no prompt".to_owned(), |prompt| quoted(&prompt.text, 0));
        let results = match self.tool_results.len() {
            0 => String::new(),
            1 => " and the result of a tool".to_owned(),
            count => format!(" and the results of {count} tools"),
        };
        format!("{who} with {model}, {prompt}{results}")
    }
}

impl Kept {
    fn of(text: &str, redaction: &Redaction) -> Self {
        let text = without_reminders(&redaction.text(text));
        let chars = text.chars().count();
        if chars <= LONGEST {
            return Self {
                text,
                chars: None,
                digest: None,
            };
        }
        Self {
            digest: Some(digest(&normalised(&text))),
            chars: Some(chars),
            text: text.chars().take(LONGEST).collect(),
        }
    }

    /// In which way the other means something else.
    fn difference(&self, other: &Self) -> Option<String> {
        match (&self.digest, &other.digest) {
            (Some(was), Some(is)) if was == is => return None,
            _ => {}
        }
        let (was, is) = (normalised(&self.text), normalised(&other.text));
        if was != is {
            let at = alike(&was, &is);
            return Some(format!(
                "was {}, now it is {} (first difference at character {at})",
                quoted(&was, at),
                quoted(&is, at)
            ));
        }
        if self.digest == other.digest {
            return None;
        }
        Some(format!(
            "differs behind its first {LONGEST} characters, which are {}",
            quoted(&was, 0)
        ))
    }

    fn likeness(&self, other: &Self) -> usize {
        let (was, is) = (normalised(&self.text), normalised(&other.text));
        let same = alike(&was, &is);
        100 * same / was.chars().count().max(is.chars().count()).max(1)
    }
}

/// How many characters two texts have in common at their beginnings.
fn alike(was: &str, is: &str) -> usize {
    let pairs = was.chars().zip(is.chars());
    pairs.take_while(|(was, is)| was == is).count()
}

/// The part of a text around this character, in quotes.
fn quoted(text: &str, at: usize) -> String {
    const AROUND: usize = 40;
    let start = at.saturating_sub(AROUND / 2);
    let part: String = text.chars().skip(start).take(2 * AROUND).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if text.chars().count() > start + 2 * AROUND {
        "…"
    } else {
        ""
    };
    format!("{before}{part:?}{after}")
}

/// The CLI's additions to prompts and results do not count.
fn without_reminders(text: &str) -> String {
    const START: &str = "<system-reminder>";
    const END: &str = "</system-reminder>";
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, behind)) = rest.split_once(START) {
        kept.push_str(before);
        match behind.split_once(END) {
            Some((_, after)) => rest = after,
            None => return kept.trim().to_owned(),
        }
    }
    kept.push_str(rest);
    kept.trim().to_owned()
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
