//! A tool call that waits for a decision.

use std::borrow::Cow;
use std::collections::BTreeMap;

use outrigger_protocol::inbound::{
    AskRule, CanUseTool, ComputerFolder, DecisionReasonType, RequestingServer,
};
use outrigger_protocol::shared::{PermissionUpdate, RequestId};
use outrigger_protocol::tools::{ToolInput, canonical_name};
use outrigger_protocol::{Frame, RawJson, walk};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::value::RawValue;

use crate::conn::Context;
use crate::error::{Error, Result};
use crate::fields::Fields;

/// Declares the request with what is read of it: the fields that must be there, the optional ones, and the marks, which are
/// set unless they are absent or plainly false.
macro_rules! request {
    (
        optional { $( $(#[$doc:meta])* $field:ident: $ty:ty, )+ }
        marks { $( $(#[$mark_doc:meta])* $mark:ident, )+ }
    ) => {
        /// A tool call that waits for a decision (`can_use_tool`).
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct PermissionRequest {
            /// The tool's name.
            pub tool_name: String,
            /// The input. [`tool`](Self::tool) decodes it.
            pub input: RawJson,
            /// The id of the call; `None` if the CLI is too old to send it. [`call_id`](Self::call_id) always has one.
            pub tool_use_id: Option<String>,
            /// Changes of permissions that would avoid such requests (`permission_suggestions`); an allowance can return them.
            pub suggestions: Vec<PermissionUpdate>,
            $( $(#[$doc])* pub $field: Option<$ty>, )+
            $( $(#[$mark_doc])* pub $mark: bool, )+
            /// The request's id, whether it was withdrawn, and the session.
            pub context: Context,
            /// The frame of the request, to store it or to [decode](PermissionRequest::from_frame) it elsewhere.
            pub frame: Frame,
            /// Whether only the last layer of a chain may allow the call.
            pub(super) is_for_last: bool,
        }

        /// The fields of a request, none of them decoded.
        #[derive(serde::Deserialize)]
        struct ToolRequest<'a> {
            #[serde(borrow, default, deserialize_with = "present")]
            tool_name: Option<&'a RawValue>,
            #[serde(borrow, default, deserialize_with = "present")]
            input: Option<&'a RawValue>,
            #[serde(borrow, default, deserialize_with = "present")]
            tool_use_id: Option<&'a RawValue>,
            #[serde(borrow, default, deserialize_with = "present")]
            permission_suggestions: Option<&'a RawValue>,
            $(
                #[serde(borrow, default, deserialize_with = "present")]
                $field: Option<&'a RawValue>,
            )+
            $(
                #[serde(borrow, default, deserialize_with = "present")]
                $mark: Option<&'a RawValue>,
            )+
        }

        impl<'a> ToolRequest<'a> {
            /// Of a repeated key the last value counts.
            fn loosely(fields: &'a BTreeMap<String, RawJson>) -> Self {
                let raw = |key: &str| fields.get(key).map(RawJson::as_raw);
                Self {
                    tool_name: raw("tool_name"),
                    input: raw("input"),
                    tool_use_id: raw("tool_use_id"),
                    permission_suggestions: raw("permission_suggestions"),
                    $( $field: raw(stringify!($field)), )+
                    $( $mark: raw(stringify!($mark)), )+
                }
            }

            fn read(self, frame: &Frame, context: Context) -> Result<PermissionRequest, String> {
                let needed = |raw, key: &str| text(raw).ok_or_else(|| format!("it has no `{key}`"));
                Ok(PermissionRequest {
                    tool_name: needed(self.tool_name, "tool_name")?,
                    input: self.input.ok_or("it has no `input`")?.to_owned().into(),
                    tool_use_id: text(self.tool_use_id),
                    suggestions: get(self.permission_suggestions).unwrap_or_default(),
                    $( $field: get(self.$field), )+
                    $( $mark: is_marked(self.$mark), )+
                    context,
                    frame: frame.clone(),
                    is_for_last: false,
                })
            }
        }
    };
}

request! {
    optional {
        /// The MCP server of the tool.
        mcp_server: RequestingServer,
        /// The subagent that makes the call; `None` in the main conversation.
        agent_id: String,
        /// The CLI's description of the call.
        description: String,
        /// The display name of the tool.
        display_name: String,
        /// A title for the request.
        title: String,
        /// The path that is not allowed.
        blocked_path: String,
        /// Why the CLI requests permission.
        decision_reason: String,
        /// The kind of reason: a rule, the mode, the working directory, …
        decision_reason_type: DecisionReasonType,
        /// The reason as a code.
        decision_reason_code: String,
        /// The source of the ask rule that matched.
        decision_reason_rule_source: String,
        /// The event of the hook whose output was `ask`.
        decision_reason_hook_event: String,
        /// Where that hook is configured.
        decision_reason_hook_source: String,
        /// The plugin that brought that hook.
        decision_reason_hook_plugin_id: String,
        /// The ask rule that matched.
        matched_ask_rule: AskRule,
        /// Whether a classifier may approve it.
        classifier_approvable: bool,
        /// Whether a dialog usually offers a permanent rule.
        rule_usually_offered: bool,
        /// Whether only the policy of the MCP server requires the request, and no rule, mode or hook of the user.
        server_policy_ask_only: bool,
        /// The plugin concerned.
        plugin: String,
        /// What the server wants to be asked.
        server_prompt: String,
        /// The folder of a computer.
        computer_folder: ComputerFolder,
        /// `one_at_a_time` or `all_at_once`.
        provenance_prompt_line: String,
        /// The kind of tool.
        tool_kind: String,
        /// The skill of an MCP server.
        mcp_skill: RawJson,
    }
    marks {
        /// Whether only a person may answer (a question to the user, the approval of a plan).
        requires_user_interaction,
        /// Whether a dialog should preselect "no".
        default_to_no,
        /// Whether a dialog should not offer a permanent rule.
        suppress_always_allow_rule,
        /// Whether the check of auto mode requires the request.
        auto_modes_check_raised,
    }
}

impl PermissionRequest {
    /// Decodes a stored request, from [`frame`](Self::frame) or a recording. Its context belongs to no session.
    ///
    /// # Errors
    /// When the frame is not a `can_use_tool`, or lacks a required field.
    pub fn from_frame(frame: &Frame) -> Result<Self> {
        let id = Fields::of(frame).get::<RequestId>("request_id");
        let id = id.unwrap_or_else(|| frame.request_id().unwrap_or_default().into());
        if frame.subtype() != Some("can_use_tool") {
            return Err(Error::invalid("permission request: it is no `can_use_tool`"));
        }
        Self::read(frame, Context::detached(id))
            .map_err(|reason| Error::invalid(format!("permission request: {reason}")))
    }

    pub(crate) fn read(frame: &Frame, context: Context) -> Result<Self, String> {
        if let Some(flaw) = frame.flaw() {
            return Err(flaw.to_string());
        }
        match serde_json::from_str::<RequestLine<'_>>(&frame.text()) {
            Ok(line) => line.request.read(frame, context),
            // A key that stands twice, for one.
            Err(_) => {
                let request = Fields::of(frame)
                    .get::<RawJson>("request")
                    .ok_or("it has no `request`")?;
                let fields = request.read().map_err(|error| error.to_string())?;
                ToolRequest::loosely(&fields).read(frame, context)
            }
        }
    }

    /// The id of the request, for [`Session::decide`](crate::Session::decide).
    pub fn id(&self) -> &RequestId {
        self.context.request_id()
    }

    /// The id of the call; the id of the request if an old CLI does not send it.
    pub fn call_id(&self) -> &str {
        self.tool_use_id
            .as_deref()
            .unwrap_or(self.context.request_id().as_str())
    }

    /// The input as the type of the tool; raw JSON if this build does not know the tool or the shape.
    // Made where it is called: there are many tools.
    #[inline]
    pub fn tool(&self) -> ToolInput {
        ToolInput::read(&self.tool_name, &self.input)
    }

    /// The input as the type of one tool; `None` if the request is about another tool, or the input is a misfit. Unlike
    /// [`tool`](Self::tool), it compiles no code for other tools.
    pub(crate) fn tool_as<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let input = (canonical_name(&self.tool_name) == name).then(|| self.input.read());
        input?.ok()
    }

    /// The whole request as the protocol's type, which can be serialized.
    ///
    /// # Errors
    /// When a field has another type.
    // Made where it is called: most programs do not ask for it.
    #[inline]
    pub fn wire(&self) -> Result<CanUseTool> {
        let request = Fields::of(&self.frame)
            .get::<RawJson>("request")
            .unwrap_or_default();
        request
            .read()
            .map_err(|error| Error::misfit("`can_use_tool`", error))
    }
}

#[derive(serde::Deserialize)]
struct RequestLine<'a> {
    #[serde(borrow)]
    request: ToolRequest<'a>,
}

/// A null is a value like any other.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Some)
}

fn get<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
    RawJson::decode_raw(raw?).ok()
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    walk::string(raw?.get()).map(Cow::into_owned)
}

/// A mark requires caution, so one that cannot be read counts as set.
fn is_marked(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| !matches!(raw.get(), "false" | "null"))
}
