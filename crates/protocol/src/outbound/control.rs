//! What a program may ask of the CLI, and what the CLI answers.
//!
//! One type a request, in the files by topic; [`OutboundRequest`] is all of them. A request that has no type here goes
//! through [`RawRequest`](super::RawRequest).

mod account;
mod ask;
mod context;
mod dialog;
mod diff;
mod files;
mod mcp;
mod model;
mod permission;
mod plugin;
mod session;
mod settings;
mod task;
mod turn;
mod usage;

pub use account::*;
pub use ask::*;
pub use context::*;
pub use dialog::*;
pub use diff::*;
pub use files::*;
pub use mcp::*;
pub use model::*;
pub use permission::*;
pub use plugin::*;
pub use session::*;
pub use settings::*;
pub use task::*;
pub use turn::*;
pub use usage::*;

use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};

use super::initialize::{Initialize, InitializeReply};
use crate::RawJson;
use crate::shared::Effort;
use crate::wire_enum;

/// Something that a program may ask of the CLI.
pub trait ControlRequest: Serialize {
    /// The `subtype` of the request on the wire.
    const SUBTYPE: &'static str;
    /// What the CLI answers.
    type Reply: DeserializeOwned;

    /// Reads the answer. One that is absent or null is an empty object.
    ///
    /// # Errors
    /// When the answer does not have the shape that this build expects.
    fn read_reply(payload: Option<&RawJson>) -> Result<Self::Reply, serde_json::Error> {
        match payload {
            Some(payload) if !payload.is_null() => payload.decode(),
            _ => serde_json::from_str("{}"),
        }
    }
}

/// An answer that says no more than that it was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Ack {}

impl<'de> Deserialize<'de> for Ack {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Newer CLIs may say more; that must not fail what was done.
        RawJson::deserialize(deserializer).map(|_| Self {})
    }
}

/// Generates a request: a struct, `new` with what it needs, and a setter for what it may have.
///
/// Fields are `name: "wireName" => Type`. `optional` ones are left out if unset; of `nullable` ones, `None` is null.
macro_rules! request {
    ($(#[$m:meta])* pub struct $name:ident {
        $(required { $( $(#[doc = $rdoc:literal])* $rfield:ident : $rwire:literal => $rty:ty, )+ })?
        $(optional { $( $(#[doc = $odoc:literal])* $ofield:ident : $owire:literal => $oty:ty, )+ })?
        $(nullable { $( $(#[doc = $ndoc:literal])* $nfield:ident : $nwire:literal => $nty:ty, )+ })?
        $(extra { $extra:ident })?
    }) => {
        $(#[$m])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[non_exhaustive]
        pub struct $name {
            $($( $(#[doc = $rdoc])* #[serde(rename = $rwire)] pub $rfield: $rty, )+)?
            $($(
                $(#[doc = $odoc])*
                #[serde(rename = $owire, default, skip_serializing_if = "crate::whole::unset")]
                pub $ofield: Option<$oty>,
            )+)?
            $($(
                $(#[doc = $ndoc])*
                #[serde(rename = $nwire, default, skip_serializing_if = "crate::whole::unset",
                    deserialize_with = "crate::outbound::control::present")]
                pub $nfield: Option<Option<$nty>>,
            )+)?
            $(
                /// Fields that have no type here, to be written after the others. Not read back.
                #[serde(flatten, skip_deserializing)]
                pub $extra: std::collections::BTreeMap<String, $crate::RawJson>,
            )?
        }

        impl $name {
            /// The request with what it needs, and nothing else.
            pub fn new($($( $rfield: impl Into<$rty>, )+)?) -> Self {
                Self {
                    $($( $rfield: $rfield.into(), )+)?
                    $($( $ofield: None, )+)?
                    $($( $nfield: None, )+)?
                    $($extra: std::collections::BTreeMap::new(),)?
                }
            }

            $($(
                $(#[doc = $odoc])*
                pub fn $ofield(mut self, value: impl Into<$oty>) -> Self {
                    self.$ofield = Some(value.into());
                    self
                }
            )+)?
            $($(
                $(#[doc = $ndoc])*
                pub fn $nfield(mut self, value: Option<$nty>) -> Self {
                    self.$nfield = Some(value);
                    self
                }
            )+)?
        }

        $crate::outbound::control::request!(@default $name $($($rfield)+)?);
    };
    (@default $name:ident) => {
        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
    };
    (@default $name:ident $($field:ident)+) => {};
}
pub(crate) use request;

/// Reads a field that is there, null included.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Generates what is listed by request.
macro_rules! requests {
    ($( $(#[$m:meta])* $wire:literal => $var:ident -> $reply:ty; )+) => {
        wire_enum! {
            /// Everything that a program may ask of the CLI, by `subtype`. For reading what was sent; to send, use the requests
            /// themselves.
            pub enum OutboundRequest by "subtype" { $( $(#[$m])* $wire => $var(Box<$var>), )+ }
        }

        $(
            impl ControlRequest for $var {
                const SUBTYPE: &'static str = $wire;
                type Reply = $reply;

                // Only callers compile it: no program makes every request.
                #[inline]
                fn read_reply(payload: Option<&RawJson>) -> Result<Self::Reply, serde_json::Error> {
                    match payload {
                        Some(payload) if !payload.is_null() => payload.read(),
                        _ => RawJson::from(serde_json::Value::Object(serde_json::Map::new())).read(),
                    }
                }
            }

            impl From<$var> for OutboundRequest {
                fn from(request: $var) -> Self {
                    Self::$var(Box::new(request))
                }
            }
        )+

        /// Reads the answer to a request of that subtype and writes it again, each field of its type included. `None` for a
        /// subtype that this build does not know.
        ///
        /// What the payload has and the result has not is what the types do not know of.
        // Only callers compile it: most programs do not judge recordings.
        #[inline]
        pub fn check_reply(subtype: &str, payload: &RawJson) -> Option<Result<RawJson, serde_json::Error>> {
            fn check<R: ControlRequest<Reply: Serialize>>(payload: &RawJson) -> Result<RawJson, serde_json::Error> {
                let reply = R::read_reply(Some(payload))?;
                crate::whole::write(|| RawJson::encode(&reply))
            }
            match subtype {
                $( $wire => Some(check::<$var>(payload)), )+
                _ => None,
            }
        }
    };
}

requests! {
    /// Begins: hooks, servers, agents, prompt.
    "initialize" => Initialize -> InitializeReply;
    /// Stops the turn.
    "interrupt" => Interrupt -> InterruptReply;
    /// Takes back a prompt that waits.
    "cancel_async_message" => CancelAsyncMessage -> CancelAsyncMessageReply;
    /// Ends the session.
    "end_session" => EndSession -> Ack;
    /// Changes the permission mode.
    "set_permission_mode" => SetPermissionMode -> SetPermissionModeReply;
    /// Lists the rules in force.
    "list_permission_rules" => ListPermissionRules -> ListPermissionRulesReply;
    /// Sets a permission mode of its own for one MCP server.
    "set_mcp_permission_mode_override" => SetMcpPermissionModeOverride -> SetMcpPermissionModeOverrideReply;
    /// Changes the model.
    "set_model" => SetModel -> SetModelReply;
    /// Lists the models.
    "list_models" => ListModels -> ListModelsReply;
    /// Changes how the model thinks.
    "set_max_thinking_tokens" => SetMaxThinkingTokens -> Ack;
    /// Reports the state of the MCP servers.
    "mcp_status" => McpStatus -> McpStatusReply;
    /// Replaces the MCP servers that were added at run time.
    "mcp_set_servers" => McpSetServers -> McpSetServersReply;
    /// Hands a message of an MCP server of the driving program to the CLI.
    "mcp_message" => McpMessage -> McpMessageReply;
    /// Connects an MCP server again.
    "mcp_reconnect" => McpReconnect -> Ack;
    /// Switches an MCP server on or off.
    "mcp_toggle" => McpToggle -> Ack;
    /// Calls a tool of an MCP server without the model.
    "mcp_call" => McpCall -> McpCallReply;
    /// Reads a resource of an MCP server.
    "mcp_read_resource" => McpReadResource -> McpReadResourceReply;
    /// Begins to sign in to an MCP server.
    "mcp_authenticate" => McpAuthenticate -> McpAuthenticateReply;
    /// Forgets the sign-in to an MCP server.
    "mcp_clear_auth" => McpClearAuth -> Ack;
    /// Ends the sign-in to an MCP server.
    "mcp_oauth_callback_url" => McpOauthCallbackUrl -> Ack;
    /// Lets an MCP server send prompts.
    "channel_enable" => ChannelEnable -> Ack;
    /// Reads the account's connectors again.
    "reload_connectors" => ReloadConnectors -> Ack;
    /// Restores files to what they were.
    "rewind_files" => RewindFiles -> RewindFilesReply;
    /// Reads a file.
    "read_file" => ReadFile -> ReadFileReply;
    /// Lists a directory.
    "list_directory" => ListDirectory -> ListDirectoryReply;
    /// Suggests files for a mention.
    "file_suggestions" => FileSuggestions -> FileSuggestionsReply;
    /// Tells the CLI that the model has read a file.
    "seed_read_state" => SeedReadState -> Ack;
    /// Adds a working directory.
    "register_repo_root" => RegisterRepoRoot -> RegisterRepoRootReply;
    /// Changes the working directory.
    "set_cwd" => SetCwd -> SetCwdReply;
    /// Shows what changed in the working directory.
    "get_workspace_diff" => GetWorkspaceDiff -> GetWorkspaceDiffReply;
    /// Gives the session a title.
    "rename_session" => RenameSession -> Ack;
    /// Sets the session's colour.
    "set_color" => SetColor -> Ack;
    /// Has a small model write a title.
    "generate_session_title" => GenerateSessionTitle -> GenerateSessionTitleReply;
    /// Claims a process that was started ahead.
    "claim_session" => ClaimSession -> ClaimSessionReply;
    /// Gives the conversation as text.
    "export_conversation" => ExportConversation -> ExportConversationReply;
    /// Gives the plan of plan mode.
    "get_plan" => GetPlan -> GetPlanReply;
    /// Says whether anybody reads along.
    "set_has_subscribers" => SetHasSubscribers -> Ack;
    /// Says whether a prompt is held back.
    "set_message_waiting" => SetMessageWaiting -> Ack;
    /// Says that somebody is typing.
    "prompt_draft_activity" => PromptDraftActivity -> Ack;
    /// Pauses suggestions of prompts.
    "set_prompt_suggestions_paused" => SetPromptSuggestionsPaused -> Ack;
    /// Opens the session to claude.ai, or closes it.
    "remote_control" => RemoteControl -> RemoteControlReply;
    /// Reports what fills the context.
    "get_context_usage" => GetContextUsage -> GetContextUsageReply;
    /// Reports what the session has cost, as text.
    "get_session_cost" => GetSessionCost -> GetSessionCostReply;
    /// Reports what was used of the account's limits.
    "get_usage" => GetUsage -> GetUsageReply;
    /// Reports the CLI's version.
    "get_binary_version" => GetBinaryVersion -> GetBinaryVersionReply;
    /// Changes settings for this session.
    "apply_flag_settings" => ApplyFlagSettings -> Ack;
    /// Reports the settings in force.
    "get_settings" => GetSettings -> GetSettingsReply;
    /// Changes a settings file.
    "update_settings" => UpdateSettings -> Ack;
    /// Lists the hooks.
    "get_hooks_listing" => GetHooksListing -> GetHooksListingReply;
    /// Loads the plugins again.
    "reload_plugins" => ReloadPlugins -> ReloadPluginsReply;
    /// Loads the skills again.
    "reload_skills" => ReloadSkills -> ReloadSkillsReply;
    /// Loads the output styles again.
    "reload_output_styles" => ReloadOutputStyles -> ReloadOutputStylesReply;
    /// Stops a task.
    "stop_task" => StopTask -> Ack;
    /// Moves running tools into the background.
    "background_tasks" => BackgroundTasks -> BackgroundTasksReply;
    /// Reads the output of a task.
    "get_task_output" => GetTaskOutput -> GetTaskOutputReply;
    /// Runs a command as a task.
    "start_shell_task" => StartShellTask -> StartShellTaskReply;
    /// Asks the model something beside the conversation.
    "side_question" => SideQuestion -> SideQuestionReply;
    /// Rates what the model said.
    "message_rated" => MessageRated -> Ack;
    /// Sends feedback.
    "submit_feedback" => SubmitFeedback -> SubmitFeedbackReply;
    /// Sends the answer to a survey.
    "submit_survey_feedback" => SubmitSurveyFeedback -> SubmitFeedbackReply;
    /// Begins a sign-in to the account.
    "claude_authenticate" => ClaudeAuthenticate -> ClaudeAuthenticateReply;
    /// Ends the sign-in with a code.
    "claude_oauth_callback" => ClaudeOauthCallback -> ClaudeOauthReply;
    /// Waits for the sign-in to end.
    "claude_oauth_wait_for_completion" => ClaudeOauthWaitForCompletion -> ClaudeOauthReply;
    /// What `/memory` shows.
    "get_memory_dialog" => GetMemoryDialog -> GetMemoryDialogReply;
    /// What `/skills` shows.
    "get_skills_dialog" => GetSkillsDialog -> GetSkillsDialogReply;
    /// What `/status` shows.
    "get_status" => GetStatus -> GetStatusReply;
    /// What `/sandbox` shows.
    "get_sandbox_dialog" => GetSandboxDialog -> GetSandboxDialogReply;
    /// What `/chrome` shows.
    "get_chrome_dialog" => GetChromeDialog -> GetChromeDialogReply;
    /// Lists the browsers that are connected.
    "get_chrome_browsers" => GetChromeBrowsers -> GetChromeBrowsersReply;
    /// Chooses a browser.
    "select_chrome_browser" => SelectChromeBrowser -> SelectChromeBrowserReply;
    /// Says which browsers run on this computer.
    "set_chrome_browser_hints" => SetChromeBrowserHints -> Ack;
    /// Turns speech into text.
    "dictate" => Dictate -> DictateReply;
}

impl ModelInfo {
    /// The efforts that it takes, as far as this build knows them.
    pub fn efforts(&self) -> impl Iterator<Item = Effort> {
        self.supported_effort_levels
            .iter()
            .flatten()
            .filter_map(|level| Effort::from_wire(level))
    }
}

impl From<&str> for ToolName {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}
