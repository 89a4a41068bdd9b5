//! Changes a cassette so that it can still be played.

use std::collections::HashMap;

use serde_json::Value;

use super::file::{Cassette, Event, LineEnd, Said, What};
use super::strings;

impl Cassette {
    /// Cuts it after the result of this many prompts, with the end of a session of that length. A cassette with no
    /// more prompts is unchanged.
    ///
    /// Results without a prompt (of background work) do not count.
    pub fn trim_to_turns(&mut self, turns: usize) {
        let mut seen = 0;
        let last = self.events.iter().position(|event| {
            let What::Out(said, _) = &event.what else {
                return false;
            };
            let frame = said.value();
            if frame["type"] == "result" && frame["origin"].is_null() {
                seen += 1;
            }
            seen >= turns
        });
        let Some(last) = last.filter(|_| turns > 0) else {
            return;
        };
        // These lines follow a result and belong to it: the end of its prompt's life, the state. The client's next line
        // does not.
        let rest = self.events.get(last + 1..).unwrap_or_default();
        let more = rest.iter().take_while(|event| {
            let What::Out(said, _) = &event.what else {
                return false;
            };
            let frame = said.value();
            frame["type"] == "command_lifecycle" && frame["state"] == "completed"
                || frame["subtype"] == "session_state_changed" && frame["state"] == "idle"
        });
        let keep = last + 1 + more.count();
        if self.events.len() <= keep || self.nothing_is_said_from(keep) {
            return;
        }
        self.events.truncate(keep);
        self.torn = None;
        let at = self.events.last().map(|event| event.at).unwrap_or_default();
        let ends_badly = self
            .out()
            .filter(|said| said.kind().starts_with("result"))
            .last()
            .is_some_and(|said| said.value()["is_error"] == true);
        self.events.push(Event {
            at,
            what: What::StdinClosed,
        });
        self.events.push(Event {
            at,
            what: What::Exit {
                // The exit code of the CLI repeats its last result.
                code: Some(i32::from(ends_badly)),
                signal: None,
            },
        });
    }

    fn nothing_is_said_from(&self, from: usize) -> bool {
        !self.events[from..]
            .iter()
            .any(|event| matches!(event.what, What::In(_)))
    }

    /// Drops partial messages; the whole messages stay.
    pub fn without_stream_events(&mut self) {
        self.events.retain(|event| match &event.what {
            What::Out(said @ Said::Frame(_), LineEnd::There) => said.value()["type"] != "stream_event",
            _ => true,
        });
    }

    /// Drops stderr.
    pub fn without_stderr(&mut self) {
        self.events.retain(|event| !matches!(event.what, What::Err(_)));
    }

    /// Replaces each id by one that depends only on its order, so that recording again changes little of the file.
    ///
    /// Ids are UUIDs, and the names that the API gives to messages, tool calls and requests.
    pub fn edit_ids(&mut self) {
        let mut names: HashMap<String, String> = HashMap::new();
        let mut uuids = 0_u64;
        let mut others: HashMap<&'static str, u64> = HashMap::new();
        let mut collect = |text: &str| {
            strings::rewrite(text, |_, text| {
                if names.contains_key(text) {
                    return None;
                }
                if uuid::Uuid::try_parse(text).is_ok() && text.len() == 36 {
                    uuids += 1;
                    names.insert(text.to_owned(), format!("00000000-0000-4000-8000-{uuids:012x}"));
                } else if let Some(prefix) = prefix(text) {
                    let number = others.entry(prefix).or_default();
                    *number += 1;
                    names.insert(text.to_owned(), format!("{prefix}{number:024}"));
                }
                None
            });
        };
        for argument in &self.header.argv {
            let value = argument
                .split_once('=')
                .map_or(argument.as_str(), |(_, value)| value);
            collect(&Value::from(value).to_string());
        }
        for event in &self.events {
            if let What::In(said) | What::Out(said, _) = &event.what {
                collect(said.text());
            }
        }
        // The longest first: one may begin like another.
        let mut pairs: Vec<_> = names.into_iter().collect();
        pairs.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(id.len()));
        let pairs = &pairs;
        let renamed = |text: &str| {
            let mut changed: Option<String> = None;
            for (id, name) in pairs {
                let now = changed.as_deref().unwrap_or(text);
                if now.contains(id.as_str()) {
                    changed = Some(now.replace(id.as_str(), name));
                }
            }
            changed
        };
        for event in &mut self.events {
            match &mut event.what {
                What::In(said) | What::Out(said, _) => *said = said.map(renamed),
                What::Err(text) => *text = renamed(text).unwrap_or_else(|| text.clone()),
                _ => {}
            }
        }
        for argument in &mut self.header.argv {
            *argument = renamed(argument).unwrap_or_else(|| argument.clone());
        }
    }
}

/// The prefix of the API's ids.
fn prefix(text: &str) -> Option<&'static str> {
    let is_rest = |rest: &str| rest.len() >= 8 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    ["toolu_", "msg_", "req_"]
        .into_iter()
        .find(|prefix| text.strip_prefix(prefix).is_some_and(is_rest))
}
