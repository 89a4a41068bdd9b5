//! The changes of a session at run time, to repeat them in a new process.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_protocol::shared::JsonObject;
use outrigger_protocol::{Frame, RawJson};
use serde::Deserialize;

use crate::fields::Fields;

/// How many requests with a target are remembered.
const MAX_REQUESTS: usize = 256;

/// The requests that a new process would need, and that cannot be repeated: their target may be gone, or a person has to agree.
const NOT_REPEATED: &[&str] = &[
    "channel_enable",
    "register_repo_root",
    "remote_control",
    "seed_read_state",
    "set_cwd",
    "set_has_subscribers",
    "set_prompt_suggestions_paused",
];

/// What differs from the start of the session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    /// The last permission mode, set by the program or reported by the CLI.
    pub(crate) mode: Option<String>,
    /// The keys of the session's settings layer that were set, with their values.
    pub(crate) settings: BTreeMap<String, RawJson>,
    /// The last request of each kind, by subtype and target, as it was sent.
    pub(crate) requests: BTreeMap<(&'static str, String), RawJson>,
    /// The changes that are not repeated.
    pub(crate) not_repeated: BTreeSet<&'static str>,
    /// The model as the last `init` had it, and the mode beside it.
    reported: Option<(String, Option<String>)>,
}

impl Changes {
    /// The same after all repeatable changes were repeated.
    pub(crate) fn repeated(mut self) -> Self {
        self.not_repeated.clear();
        self.reported = None;
        self
    }

    /// Notes a request that the CLI accepted.
    pub(crate) fn note(&mut self, subtype: &str, body: &RawJson) {
        #[derive(Deserialize, Default)]
        struct About {
            #[serde(default)]
            mode: Option<String>,
            #[serde(default, rename = "serverName")]
            server: Option<String>,
            #[serde(default)]
            settings: Option<JsonObject>,
        }
        let about = || body.decode::<About>().unwrap_or_default();
        match subtype {
            "set_permission_mode" => self.mode = about().mode.or(self.mode.take()),
            "apply_flag_settings" => {
                if let Some(settings) = about().settings {
                    self.note_settings(&settings);
                }
            }
            "set_model" => {
                self.reported = None;
                self.requests.insert(("set_model", String::new()), body.clone());
            }
            "set_max_thinking_tokens" => self.keep("set_max_thinking_tokens", String::new(), body),
            "mcp_set_servers" => self.keep("mcp_set_servers", String::new(), body),
            "mcp_toggle" => self.keep("mcp_toggle", about().server.unwrap_or_default(), body),
            "set_mcp_permission_mode_override" => {
                let server = about().server.unwrap_or_default();
                self.keep("set_mcp_permission_mode_override", server, body);
            }
            other => self
                .not_repeated
                .extend(NOT_REPEATED.iter().filter(|subtype| **subtype == other)),
        }
    }

    fn keep(&mut self, subtype: &'static str, about: String, body: &RawJson) {
        let key = (subtype, about);
        if self.requests.len() < MAX_REQUESTS || self.requests.contains_key(&key) {
            self.requests.insert(key, body.clone());
        } else {
            self.not_repeated.insert(subtype);
        }
    }

    /// Notes settings that the CLI accepted at run time.
    pub(crate) fn note_settings(&mut self, settings: &JsonObject) {
        let fields: BTreeMap<String, RawJson> = settings.decode().unwrap_or_default();
        if fields.contains_key("model") {
            self.reported = None;
        }
        self.settings.extend(fields);
    }

    /// Notes the changes that a frame reports.
    pub(crate) fn on_frame(&mut self, frame: &Frame) {
        match frame.subtype() {
            Some("init") if frame.kind() == "system" => self.on_init(frame),
            Some("status") if frame.kind() == "system" => self.on_status(frame),
            _ => {}
        }
    }

    /// Notes the model and mode of a `system/init`. Commands in the conversation can change the model, too.
    fn on_init(&mut self, frame: &Frame) {
        let fields = Fields::of(frame);
        let mode: Option<String> = fields.get("permissionMode");
        if mode.is_some() {
            self.mode.clone_from(&mode);
        }
        let Some(model) = fields.get::<String>("model") else {
            return;
        };
        match &self.reported {
            // A mode may have its own model, which nobody chose.
            Some((before, beside)) if *before != model && *beside == mode => {
                #[derive(serde::Serialize)]
                struct Request<'a> {
                    subtype: &'a str,
                    model: &'a str,
                }
                let request = Request {
                    subtype: "set_model",
                    model: &model,
                };
                if let Ok(request) = RawJson::encode(&request) {
                    self.requests.insert(("set_model", String::new()), request);
                }
            }
            _ => {}
        }
        self.reported = Some((model, mode));
    }

    /// Notes the mode of a `system/status`.
    fn on_status(&mut self, frame: &Frame) {
        let mode: Option<String> = Fields::of(frame).get("permissionMode");
        if mode.is_some() {
            self.mode = mode;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(json: &str) -> Frame {
        Frame::from_line(json.as_bytes()).remove(0)
    }

    fn raw(json: &str) -> RawJson {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn the_last_word_counts() {
        let mut changes = Changes::default();
        changes.note(
            "set_permission_mode",
            &raw(r#"{"subtype":"set_permission_mode","mode":"plan"}"#),
        );
        assert_eq!(changes.mode.as_deref(), Some("plan"));
        changes.on_status(&frame(
            r#"{"type":"system","subtype":"status","status":null,"permissionMode":"acceptEdits"}"#,
        ));
        changes.on_status(&frame(
            r#"{"type":"system","subtype":"status","status":"compacting"}"#,
        ));
        assert_eq!(changes.mode.as_deref(), Some("acceptEdits"));
        for effort in ["low", "high"] {
            let body = format!(r#"{{"settings":{{"effortLevel":"{effort}","fastMode":null}}}}"#);
            changes.note("apply_flag_settings", &raw(&body));
        }
        assert_eq!(changes.settings["effortLevel"].get(), "\"high\"");
        assert!(changes.settings["fastMode"].is_null());
        for on in [true, false] {
            let body = format!(r#"{{"subtype":"mcp_toggle","serverName":"a","enabled":{on}}}"#);
            changes.note("mcp_toggle", &raw(&body));
        }
        assert_eq!(changes.requests.len(), 1);
        changes.note("set_cwd", &raw("{}"));
        changes.note("get_plan", &raw("{}"));
        assert_eq!(changes.not_repeated.iter().collect::<Vec<_>>(), [&"set_cwd"]);
    }

    #[test]
    fn a_model_that_the_cli_reports_is_a_change_only_if_it_changed_by_itself() {
        let init = |model: &str, mode: &str| {
            frame(&format!(
                r#"{{"type":"system","subtype":"init","model":"{model}","permissionMode":"{mode}","session_id":"s"}}"#
            ))
        };
        let model = |changes: &Changes| {
            let request = changes.requests.get(&("set_model", String::new()))?;
            request.decode::<BTreeMap<String, String>>().ok()?.remove("model")
        };
        let mut changes = Changes::default();
        changes.on_init(&init("opus-1", "default"));
        changes.on_init(&init("opus-1", "default"));
        assert_eq!(model(&changes), None);
        // The plan mode's own model.
        changes.on_init(&init("opus-2", "plan"));
        changes.on_init(&init("opus-1", "default"));
        assert_eq!(model(&changes), None);
        changes.note("set_model", &raw(r#"{"subtype":"set_model","model":"haiku"}"#));
        changes.on_init(&init("haiku-7", "default"));
        assert_eq!(model(&changes).as_deref(), Some("haiku"));
        changes.on_init(&init("sonnet-7", "default"));
        assert_eq!(model(&changes).as_deref(), Some("sonnet-7"));
    }
}
