//! What is new in a request: the CLI sends the whole conversation each time.

use super::request::{ApiRequest, ended, folded, notes, own_words, user_texts};
use crate::script::course::ModelCaller;

/// Who sends this request.
pub(super) fn who(asked: &ApiRequest) -> ModelCaller {
    ModelCaller {
        session: asked.session_id().map(str::to_owned),
        agent: asked.agent_id().map(str::to_owned),
    }
}

/// What the last request of somebody had.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// How many messages came before the user's last ones, and the texts in those.
    before: usize,
    texts: Vec<String>,
    /// Whether the reply to it broke off, so that it is sent again.
    failed: bool,
    /// Whether the CLI goes on by itself after the reply to it, with words of its own.
    goes_on: bool,
}

/// What is new in a request.
#[derive(Debug)]
pub(super) struct New {
    pub(super) prompts: Vec<String>,
    /// Whether the request begins a turn.
    pub(super) begins: bool,
    /// Whether the request is sent again.
    pub(super) again: bool,
    /// The tags of the steps whose background work has ended.
    pub(super) woken_by: Vec<u64>,
}

impl Heard {
    /// Takes in a request.
    pub(super) fn hear(&mut self, tail: Tail) -> New {
        let known = self.before == tail.before
            && tail.texts.len() >= self.texts.len()
            && tail.texts.iter().zip(&self.texts).all(|(now, then)| now == then);
        let again = known && tail.texts.len() == self.texts.len() && self.failed;
        let mut prompts: Vec<String> = match known && !again && tail.texts.len() > self.texts.len() {
            true => tail.texts[self.texts.len()..].to_vec(),
            false => tail.texts.clone(),
        };
        prompts.retain(|text| !own_words(text));
        if again || self.goes_on {
            prompts.clear();
        }
        let begins = !prompts.is_empty() || (!again && tail.woken && !tail.goes_on);
        self.before = tail.before;
        self.texts = tail.texts;
        if !again {
            prompts.extend(tail.folded);
        }
        New {
            prompts,
            begins,
            again,
            woken_by: if again { Vec::new() } else { tail.woken_by },
        }
    }

    /// Takes in what became of it.
    pub(super) fn answered(&mut self, failed: bool, goes_on: bool) {
        self.failed = failed;
        self.goes_on = goes_on;
    }
}

/// What came since the model's last answer.
#[derive(Default)]
pub(super) struct Tail {
    before: usize,
    /// The texts of the user.
    texts: Vec<String>,
    /// Prompts that came while the turn ran.
    folded: Vec<String>,
    /// Whether background work has ended.
    woken: bool,
    /// The tags of the steps whose background work has ended.
    woken_by: Vec<u64>,
    /// Whether the turn goes on with the results of tools.
    goes_on: bool,
}

impl Tail {
    pub(super) fn of(asked: &ApiRequest) -> Self {
        let messages = asked.messages();
        let role = |message: &serde_json::Value| message["role"].as_str().map(str::to_owned);
        let last = messages
            .iter()
            .rposition(|message| role(message).as_deref() == Some("assistant"));
        let before = last.map_or(0, |last| last + 1);
        let mut tail = Self {
            before,
            ..Self::default()
        };
        for message in &messages[before..] {
            let texts = user_texts(message).into_iter();
            tail.texts.extend(texts.map(|text| text.trim_end().to_owned()));
            for text in notes(message) {
                tail.folded.extend(folded(text));
                if let Some(tag) = ended(text) {
                    tail.woken = true;
                    let tag = tag
                        .strip_prefix("toolu_script_")
                        .and_then(|tag| tag.parse::<u64>().ok());
                    tail.woken_by.extend(tag);
                }
            }
        }
        // Behind an interrupt a result ends its turn.
        let interrupted = tail.texts.iter().any(|text| own_words(text));
        tail.goes_on = !interrupted && !asked.new_tool_results().is_empty();
        tail
    }
}
