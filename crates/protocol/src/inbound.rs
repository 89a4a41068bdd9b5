//! What the CLI writes on its stdout.

mod api;
mod api_error;
mod assistant;
mod context_usage;
mod control;
mod control_request;
mod lifecycle;
mod notice;
mod rate_limit;
mod result;
mod stream;
pub mod system;
mod user;

pub use api::*;
pub use api_error::*;
pub use assistant::*;
pub use context_usage::*;
pub use control::*;
pub use control_request::*;
pub use lifecycle::*;
pub use notice::*;
pub use rate_limit::*;
pub use result::*;
pub use stream::*;
pub use system::SystemMessage;
pub use user::*;

use crate::RawJson;

/// Generates [`Message`] and its decoding, one line a kind.
macro_rules! messages {
    (
        told { $( $(#[$m:meta])* $wire:literal => $var:ident($ty:ty), )+ }
        control { $( $(#[$cm:meta])* $cwire:literal => $cvar:ident($cty:ty), )+ }
    ) => {
        /// One frame, decoded: everything the CLI may write on stdout, by its `type`.
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub enum Message {
            $( $(#[$m])* $var(Box<$ty>), )+
            $( $(#[$cm])* $cvar(Box<$cty>), )+
            /// A `type` that this build does not know, as it came.
            Unknown(RawJson),
        }

        impl Message {
            /// The types that this build knows.
            pub const KNOWN: &'static [&'static str] = &[$($wire,)+ $($cwire),+];

            pub(crate) fn from_text(kind: &str, text: &str) -> Result<Self, serde_json::Error> {
                match kind {
                    $( $cwire => outrigger_json::decode::decode(text).map(|body| Self::$cvar(Box::new(body))), )+
                    _ => Self::told_from_text(kind, text),
                }
            }

            /// The same without what is asked and answered, each of which would be an `Unknown`.
            pub(crate) fn told_from_text(kind: &str, text: &str) -> Result<Self, serde_json::Error> {
                match kind {
                    $( $wire => outrigger_json::decode::decode(text).map(|body| Self::$var(Box::new(body))), )+
                    _ => {
                        crate::drift::note("Message", kind, crate::drift::DriftKind::UnknownTag);
                        RawJson::from_text(text).map(Self::Unknown)
                    }
                }
            }

            /// Writes the typed part again with each of its fields, unset ones as null, and without the `type` tag.
            ///
            /// What the frame has and this has not is what the types do not know of.
            ///
            /// # Errors
            /// When a map key is no string, which no type here has.
            // Only callers compile it: most programs only read messages.
            #[inline]
            pub fn to_body(&self) -> Result<RawJson, serde_json::Error> {
                crate::whole::write(|| match self {
                    $( Self::$var(body) => RawJson::encode(&**body), )+
                    $( Self::$cvar(body) => RawJson::encode(&**body), )+
                    Self::Unknown(raw) => Ok(raw.clone()),
                })
            }
        }
    };
}

messages! {
    told {
        /// What the model said.
        "assistant" => Assistant(AssistantMessage),
        /// What goes to the model: tool results, replayed prompts, texts of the CLI.
        "user" => User(UserMessage),
        /// The end of a turn.
        "result" => Result(ResultMessage),
        /// Everything that is neither said nor asked, by subtype.
        "system" => System(SystemMessage),
        /// One event of the API's stream.
        "stream_event" => StreamEvent(StreamEvent),
        /// A sign of life while a long control request runs.
        "keep_alive" => KeepAlive(KeepAlive),
        /// What becomes of a prompt.
        "command_lifecycle" => CommandLifecycle(CommandLifecycle),
        /// A tool is still running.
        "tool_progress" => ToolProgress(ToolProgress),
        /// What a row of tool calls did, in a line.
        "tool_use_summary" => ToolUseSummary(ToolUseSummary),
        /// How a login is going.
        "auth_status" => AuthStatus(AuthStatus),
        /// How much of a subscription is left.
        "rate_limit_event" => RateLimitEvent(RateLimitEvent),
        /// What the user might ask next.
        "prompt_suggestion" => PromptSuggestion(PromptSuggestion),
        /// The conversation starts from scratch.
        "conversation_reset" => ConversationReset(ConversationReset),
        /// The goal that the session works towards.
        "active_goal" => ActiveGoal(ActiveGoal),
        /// When the conversation will be compacted.
        "autocompact_state" => AutocompactState(AutocompactState),
        /// What was written to the session file.
        "transcript_mirror" => TranscriptMirror(TranscriptMirror),
    }
    control {
        /// The CLI asks.
        "control_request" => ControlRequest(ControlRequest),
        /// The CLI answers.
        "control_response" => ControlResponse(ControlResponse),
        /// The CLI takes a request of its own back.
        "control_cancel_request" => ControlCancelRequest(ControlCancelRequest),
    }
}
