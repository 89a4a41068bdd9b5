//! `_meta` of session requests, in the form of the TypeScript adapter: options of the SDK, the system prompt, and the request for raw
//! messages.

mod options;
mod raw_messages;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use outrigger::Options;
use outrigger::protocol::shared::SystemPrompt;
use serde_json::{Map, Value};

pub(crate) use self::options::is_option;
pub(crate) use self::raw_messages::{RawMessages, SdkMessage};
use crate::error::bad;
use crate::replay;

/// `_meta` of a session request.
#[derive(Debug, Default)]
pub(crate) struct SessionMeta {
    options: Map<String, Value>,
    /// `_meta.systemPrompt`.
    pub(crate) system_prompt: Option<SystemPrompt>,
    /// `_meta.claudeCode.emitRawSDKMessages`.
    pub(crate) raw: RawMessages,
    /// `_meta.claudeCode.replay.limit`: how many messages are replayed.
    pub(crate) replay_limit: Option<usize>,
}

impl SessionMeta {
    ///
    /// # Errors
    /// When a field is invalid; with its name.
    pub(crate) fn of(meta: Option<&acp::Meta>) -> Result<Self, Error> {
        let Some(meta) = meta else {
            return Ok(Self::default());
        };
        let mut given = Self {
            system_prompt: system_prompt(meta.get("systemPrompt"))?,
            ..Self::default()
        };
        let own = match meta.get("claudeCode") {
            None | Some(Value::Null) => return Ok(given),
            Some(Value::Object(own)) => own,
            Some(_) => return Err(bad("_meta.claudeCode", "it is not an object")),
        };
        given.raw = RawMessages::of(own.get("emitRawSDKMessages"))?;
        given.replay_limit = replay::limit(own.get("replay"))?;
        given.options = match own.get("options") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(options)) => options.clone(),
            Some(_) => return Err(bad("_meta.claudeCode.options", "it is not an object")),
        };
        // `null` counts as missing.
        given.options.retain(|_, value| !value.is_null());
        Ok(given)
    }

    /// Whether there are options, which only the start of a process can apply.
    pub(crate) fn has_options(&self) -> bool {
        !self.options.is_empty()
    }

    /// Applies the options of `_meta` to these.
    ///
    /// # Errors
    /// When an option is unknown, not allowed or invalid; with its name.
    pub(crate) fn put(&self, options: Options) -> Result<Options, Error> {
        self.options.iter().try_fold(options, |options, (name, value)| {
            options::put(options, name, value)
        })
    }
}

/// A string is the whole prompt; `{ "append": … }` follows Claude Code's own prompt.
fn system_prompt(told: Option<&Value>) -> Result<Option<SystemPrompt>, Error> {
    let text = |text: &str| match text.trim() {
        "" => Err(bad("_meta.systemPrompt", "it is empty")),
        _ => Ok(text.to_owned()),
    };
    match told {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(prompt)) => Ok(Some(SystemPrompt::Text(text(prompt)?))),
        Some(Value::Object(prompt)) => {
            let known = ["type", "preset", "append", "excludeDynamicSections"];
            if let Some(unknown) = prompt.keys().find(|key| !known.contains(&key.as_str())) {
                return Err(bad(&format!("_meta.systemPrompt.{unknown}"), "it is not known"));
            }
            for (key, only) in [("type", "preset"), ("preset", "claude_code")] {
                if prompt.get(key).is_some_and(|value| value != only) {
                    return Err(bad(
                        &format!("_meta.systemPrompt.{key}"),
                        format!("it is not {only:?}"),
                    ));
                }
            }
            let append = match prompt.get("append") {
                None | Some(Value::Null) => None,
                Some(Value::String(append)) => Some(text(append)?),
                Some(_) => return Err(bad("_meta.systemPrompt.append", "it is not a string")),
            };
            let exclude_dynamic_sections = match prompt.get("excludeDynamicSections") {
                None | Some(Value::Null) => None,
                Some(Value::Bool(exclude)) => Some(*exclude),
                Some(_) => {
                    return Err(bad(
                        "_meta.systemPrompt.excludeDynamicSections",
                        "it is neither true nor false",
                    ));
                }
            };
            Ok(Some(SystemPrompt::Preset {
                append,
                exclude_dynamic_sections,
                snapshot: None,
            }))
        }
        Some(_) => Err(bad(
            "_meta.systemPrompt",
            "it is neither a text nor an object with `append`",
        )),
    }
}

#[cfg(test)]
mod tests;
