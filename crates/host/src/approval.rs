//! Questions of a session to a person, as resources.

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

/// Declares an enum whose values have names in the log.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $name { $($(#[$value_doc])* $value,)+ }

        impl $name {
            /// The name in the log and on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }

            /// The value of this name.
            pub fn of_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$value),)+ _ => None }
            }
        }
    };
}
pub(crate) use named;

named! {
    /// What a session asks for.
    ApprovalKind {
        /// A tool call may run.
        Tool = "tool",
        /// The model asks the user (`AskUserQuestion`).
        Question = "question",
        /// A plan may be carried out (`ExitPlanMode`).
        Plan = "plan",
        /// An MCP server asks for values (`elicitation`).
        Form = "form",
        /// The CLI shows a dialog (`request_user_dialog`).
        Dialog = "dialog",
    }
}

named! {
    /// Where an approval stands. Only `pending` ever changes.
    ApprovalState {
        /// Nobody has decided yet.
        Pending = "pending",
        /// The call may run.
        Allowed = "allowed",
        /// The call was denied.
        Denied = "denied",
        /// The question, the form or the dialog was answered.
        Answered = "answered",
        /// Nobody decided in time.
        Expired = "expired",
        /// The process that asked has ended, it withdrew the question, or the session went on without the call.
        Superseded = "superseded",
    }
}

/// A question of a session to a person.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Approval {
    /// The host's id.
    pub id: Uuid,
    /// The place of the approval among all that the host ever had, counted from 1; 0 before it was written.
    pub number: u64,
    /// The session that asks.
    #[schemars(with = "Uuid")]
    pub session_id: SessionId,
    /// What the approval is for.
    pub kind: ApprovalKind,
    /// Where the approval stands.
    pub state: ApprovalState,
    /// Whether the approval outlives the process that asked: any later process of the session carries the decision out. See
    /// [`HostPolicy::deferred`](crate::HostPolicy::deferred).
    pub deferred: bool,
    /// The process that asked, counted from 1 in the session.
    pub epoch: u64,
    /// The `request_id` of the CLI's request; of the host's own, if it is [deferred](Self::deferred).
    pub request_id: String,
    /// The tool, if the approval is about a call.
    pub tool_name: Option<String>,
    /// The id of the call.
    pub tool_use_id: Option<String>,
    /// SHA-256 of the input as it was written, in hexadecimal.
    pub input_hash: String,
    /// The CLI's request (`control_request`), byte for byte. If it is [deferred](Self::deferred), the host has made the frame, and the input in it is as the
    /// CLI wrote it.
    #[schemars(with = "serde_json::Value")]
    pub request: RawJson,
    /// When the approval was opened, in milliseconds since 1970.
    pub opened_at: u64,
    /// Who decided. `None` while it is pending, and if nobody did: it expired, or its turn was interrupted.
    pub decided_by: Option<String>,
    /// When the approval left `pending`, in milliseconds since 1970.
    pub decided_at: Option<u64>,
    /// What was decided: the `response` that the CLI gets.
    #[schemars(with = "Option<serde_json::Value>")]
    pub decision: Option<RawJson>,
    /// The superseded approval that was about the same call. Its decision, if any, is never applied to this one.
    pub supersedes: Option<Uuid>,
}
