//! What kind of frame something is, as far as its shape depends on it.

use std::collections::HashMap;

use serde_json::Value;

use crate::script::fill::each_string;

/// Names the kinds of the frames of a process. It has to see the frames of both sides, since what a response is depends on the
/// request.
#[derive(Debug, Clone, Default)]
pub struct Kinds {
    /// The subtypes of the client's requests, by their ids.
    asked: HashMap<String, String>,
    /// The kinds of the CLI's requests, by their ids.
    asked_by_cli: HashMap<String, String>,
    /// The events of hook callbacks, by their ids.
    hooks: HashMap<String, String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("?").to_owned()
}

impl Kinds {
    /// The kind of a frame that the client writes next.
    pub fn of_client(&mut self, frame: &Value) -> String {
        let kind = frame["type"].as_str().unwrap_or("?");
        match kind {
            "control_request" => {
                let request = &frame["request"];
                let subtype = text(&request["subtype"]);
                if let Some(id) = frame["request_id"].as_str() {
                    self.asked.insert(id.to_owned(), subtype.clone());
                }
                if subtype == "initialize" {
                    self.note_hooks(request);
                }
                format!("{kind}/{subtype}")
            }
            "control_response" => {
                let response = &frame["response"];
                let asked = response["request_id"].as_str();
                let asked = asked.and_then(|id| self.asked_by_cli.get(id));
                let asked = asked.map_or("nobody", String::as_str);
                let subtype = text(&response["subtype"]);
                match response["response"]["behavior"].as_str() {
                    Some(behavior) => format!("{kind}/{asked}/{subtype}/{behavior}"),
                    None => format!("{kind}/{asked}/{subtype}"),
                }
            }
            _ => kind.to_owned(),
        }
    }

    /// The kind of a frame that the CLI writes next.
    pub fn of_cli(&mut self, frame: &Value) -> String {
        let kind = frame["type"].as_str().unwrap_or("?");
        let detail = match kind {
            "control_response" => {
                let response = &frame["response"];
                let asked = response["request_id"].as_str().and_then(|id| self.asked.get(id));
                let asked = asked.map_or("nobody", String::as_str);
                Some(format!("{asked}/{}", text(&response["subtype"])))
            }
            "control_request" => {
                let request = &frame["request"];
                let about = match request["subtype"].as_str() {
                    Some("hook_callback") => self
                        .hooks
                        .get(request["callback_id"].as_str().unwrap_or_default()),
                    _ => None,
                };
                let about = about.cloned().or_else(|| {
                    let method = &request["message"]["method"];
                    method.as_str().map(str::to_owned)
                });
                let subtype = text(&request["subtype"]);
                let detail = about.map_or(subtype.clone(), |about| format!("{subtype}/{about}"));
                if let Some(id) = frame["request_id"].as_str() {
                    self.asked_by_cli.insert(id.to_owned(), detail.clone());
                }
                Some(detail)
            }
            "command_lifecycle" => Some(text(&frame["state"])),
            "stream_event" => Some(text(&frame["event"]["type"])),
            "assistant" | "user" => {
                let content = &frame["message"]["content"];
                let block = content
                    .get(0)
                    .map_or("string", |block| block["type"].as_str().unwrap_or("?"));
                let within = if frame["parent_tool_use_id"].is_string() {
                    "subagent/"
                } else {
                    ""
                };
                Some(format!("{within}{block}"))
            }
            _ => frame["subtype"].as_str().map(str::to_owned),
        };
        detail.map_or_else(|| kind.to_owned(), |detail| format!("{kind}/{detail}"))
    }

    fn note_hooks(&mut self, request: &Value) {
        for (event, matchers) in request["hooks"].as_object().into_iter().flatten() {
            let ids = matchers.as_array().into_iter().flatten();
            let ids = ids.flat_map(|matcher| matcher["hookCallbackIds"].as_array().into_iter().flatten());
            for id in ids.filter_map(Value::as_str) {
                self.hooks.insert(id.to_owned(), event.clone());
            }
        }
    }
}

/// The frame with a name in place of each of these texts, such as the directory that is another in each run.
pub fn placeless(value: &Value, places: &[(&str, &str)]) -> Value {
    let mut value = value.clone();
    each_string(&mut value, &mut |text| {
        for (place, name) in places {
            *text = text.replace(place, name);
        }
    });
    value
}
