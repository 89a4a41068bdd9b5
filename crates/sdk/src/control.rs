//! The control requests as methods of the session, one for each that has a typed shape.
//!
//! A method takes what a request must have. What it may have besides is set on the request itself, which goes through
//! [`Session::request`]:
//!
//! ```no_run
//! # async fn example(session: outrigger::Session) -> outrigger::Result<()> {
//! use outrigger::protocol::outbound::control::RewindFiles;
//!
//! let would = session.request(&RewindFiles::new("0b7c…").dry_run(true)).await?;
//! println!("{:?}", would.files_changed);
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::control::*;
use outrigger_protocol::shared::{JsonObject, PermissionMode};
use outrigger_sessions::MessageId;

use crate::error::{Error, Result};
use crate::session::Session;

/// Declares the methods; each sends one request and waits for its answer, at most for the control deadline.
macro_rules! methods {
    ($( $(#[$doc:meta])* $subtype:literal fn $name:ident($($arg:ident: $ty:ty),*) -> $reply:ty = $request:expr; )+) => {
        /// Control requests. See [`Session::request`] for deadlines, cancelling and errors, which are the same for all.
        impl Session {
            $(
                $(#[$doc])*
                #[doc = concat!("\nSends `", $subtype, "`.")]
                ///
                /// # Cancel safety
                /// As [`request`](Self::request).
                ///
                /// # Errors
                /// As [`request`](Self::request).
                pub async fn $name(&self, $($arg: $ty),*) -> Result<$reply> {
                    self.request(&$request).await
                }
            )+
        }

        #[cfg(test)]
        pub(crate) const SUBTYPES: &[&str] = &[$($subtype),+];
    };
}

methods! {
    // ---- Turns and tasks
    /// Asks the CLI to end by itself. A turn that runs is aborted, and its result still comes.
    "end_session" fn end_session() -> Ack = EndSession::new();
    /// Stops a background task or agent. Succeeds for ids that the CLI does not know, too.
    "stop_task" fn stop_task(task_id: &str) -> Ack = StopTask::new(task_id);
    /// Moves work that runs in the foreground to the background, so that the turn goes on.
    "background_tasks" fn background_tasks() -> BackgroundTasksReply = BackgroundTasks::new();
    /// The output of a background shell so far.
    "get_task_output" fn get_task_output(task_id: &str) -> GetTaskOutputReply = GetTaskOutput::new(task_id);
    /// Runs a command in a background shell, without the model.
    "start_shell_task" fn start_shell_task(command: &str) -> StartShellTaskReply = StartShellTask::new(command);
    /// Asks the model something beside the conversation. The conversation does not change.
    "side_question" fn side_question(question: &str) -> SideQuestionReply = SideQuestion::new(question);

    // ---- Model and permissions
    /// Changes the model, from the next API request on, even in mid-turn. `None` is the default model. The CLI accepts any
    /// string; it may try the model out first, by an API request of one word.
    "set_model" fn set_model(model: Option<&str>) -> SetModelReply = SetModel::new().model(model.map(str::to_owned));
    /// The models that can be chosen.
    "list_models" fn list_models() -> ListModelsReply = ListModels::new();
    /// How many tokens the model may think with, from the next API request on: 0 is none, `None` the default.
    "set_max_thinking_tokens" fn set_max_thinking_tokens(tokens: Option<u64>) -> Ack =
        SetMaxThinkingTokens::new().max_thinking_tokens(tokens);
    /// Changes the permission mode, for calls that no rule decides. A permission request that is open stays open.
    "set_permission_mode" fn set_permission_mode(mode: PermissionMode) -> SetPermissionModeReply = SetPermissionMode::new(mode);
    /// The permission rules that hold, and where each comes from.
    "list_permission_rules" fn list_permission_rules() -> ListPermissionRulesReply = ListPermissionRules::new();

    // ---- MCP
    /// The MCP servers, whether they are connected, and their tools.
    "mcp_status" fn mcp_status() -> McpStatusReply = McpStatus::new();
    /// Connects an MCP server again.
    "mcp_reconnect" fn mcp_reconnect(server: &str) -> Ack = McpReconnect::new(server);
    /// Turns an MCP server on or off.
    "mcp_toggle" fn mcp_toggle(server: &str, enabled: bool) -> Ack = McpToggle::new(server, enabled);
    /// Calls a tool of an MCP server (`mcp__SERVER__TOOL`), without the model. For calls that take long use
    /// [`request_within`](Self::request_within).
    "mcp_call" fn mcp_call(tool: &str, arguments: JsonObject) -> McpCallReply = McpCall::new(tool).arguments(arguments);
    /// Reads a `ui://` resource of an MCP server.
    "mcp_read_resource" fn mcp_read_resource(server: &str, uri: &str) -> McpReadResourceReply = McpReadResource::new(server, uri);
    /// Passes a JSON-RPC message to the CLI's client of an MCP server in this program.
    "mcp_message" fn mcp_message(server: &str, message: RawJson) -> McpMessageReply = McpMessage::new(server, message);
    /// Begins to sign in to an MCP server.
    "mcp_authenticate" fn mcp_authenticate(server: &str) -> McpAuthenticateReply = McpAuthenticate::new(server);
    /// Ends a sign-in to an MCP server with the address that the browser was sent to.
    "mcp_oauth_callback_url" fn mcp_oauth_callback_url(server: &str, callback_url: &str) -> Ack =
        McpOauthCallbackUrl::new(server, callback_url);
    /// Signs out of an MCP server.
    "mcp_clear_auth" fn mcp_clear_auth(server: &str) -> Ack = McpClearAuth::new(server);
    /// Lets messages in through the channel of a plugin's MCP server.
    "channel_enable" fn channel_enable(server: &str) -> Ack = ChannelEnable::new(server);
    /// Reads the account's connectors again.
    "reload_connectors" fn reload_connectors() -> Ack = ReloadConnectors::new();
    /// Sets a permission mode of its own for one MCP server; `None` removes it.
    "set_mcp_permission_mode_override" fn set_mcp_permission_mode_override(server: &str, mode: Option<McpPermissionMode>)
        -> SetMcpPermissionModeOverrideReply = SetMcpPermissionModeOverride::new(server, mode);

    // ---- Files
    /// Restores the files to what they were before a prompt ([`Turn::id`](crate::Turn::id)). Needs `enable_file_checkpointing`.
    "rewind_files" fn rewind_files(user_message_id: impl Into<MessageId>) -> RewindFilesReply =
        RewindFiles::new(Into::<MessageId>::into(user_message_id));
    /// Reads a file as the agent may.
    "read_file" fn read_file(path: &str) -> ReadFileReply = ReadFile::new(path);
    /// Lists a directory as the agent may.
    "list_directory" fn list_directory(path: &str) -> ListDirectoryReply = ListDirectory::new(path);
    /// Paths that match the beginning that somebody typed.
    "file_suggestions" fn file_suggestions(query: &str) -> FileSuggestionsReply = FileSuggestions::new(query);
    /// Says that the model has read a file as it was at `mtime`, in milliseconds since 1970. The model can then edit the file.
    "seed_read_state" fn seed_read_state(path: &str, mtime: f64) -> Ack = SeedReadState::new(path, mtime);
    /// Adds a directory below the working directory as the root of a repository.
    "register_repo_root" fn register_repo_root(directory: &str) -> RegisterRepoRootReply = RegisterRepoRoot::new(directory);
    /// Changes the working directory.
    "set_cwd" fn set_cwd(path: &str) -> SetCwdReply = SetCwd::new(path);
    /// What has changed in the working directory.
    "get_workspace_diff" fn get_workspace_diff() -> GetWorkspaceDiffReply = GetWorkspaceDiff::new();

    // ---- The session
    /// Names the session, as the user would.
    "rename_session" fn rename_session(title: &str) -> Ack = RenameSession::new(title).source(TitleSource::Host);
    /// Has a small model write a title for a description. The session's title does not change.
    "generate_session_title" fn generate_session_title(description: &str) -> GenerateSessionTitleReply =
        GenerateSessionTitle::new(description);
    /// The colour of the session's prompt, where the CLI has one.
    "set_color" fn set_color(color: &str) -> Ack = SetColor::new(color);
    /// Claims a spare process for a session. The process must have been started with `--await-claim`.
    "claim_session" fn claim_session(cwd: &str) -> ClaimSessionReply = ClaimSession::new(cwd);
    /// The conversation as text.
    "export_conversation" fn export_conversation() -> ExportConversationReply = ExportConversation::new();
    /// The plan of plan mode, if one was written.
    "get_plan" fn get_plan() -> GetPlanReply = GetPlan::new();
    /// Says whether anybody reads the session's messages as they come.
    "set_has_subscribers" fn set_has_subscribers(has_subscribers: Option<bool>) -> Ack = SetHasSubscribers::new(has_subscribers);
    /// Says whether the program holds back a prompt.
    "set_message_waiting" fn set_message_waiting(waiting: bool) -> Ack = SetMessageWaiting::new(waiting);
    /// Says that somebody is writing a prompt.
    "prompt_draft_activity" fn prompt_draft_activity() -> Ack = PromptDraftActivity::new();
    /// Pauses or resumes suggestions of prompts.
    "set_prompt_suggestions_paused" fn set_prompt_suggestions_paused(paused: bool) -> Ack = SetPromptSuggestionsPaused::new(paused);
    /// Opens the session to claude.ai, or closes it.
    "remote_control" fn remote_control(enabled: bool) -> RemoteControlReply = RemoteControl::new(enabled);

    // ---- What there is
    /// What fills the model's context. In detail the CLI makes some thirty API requests to count tokens.
    "get_context_usage" fn get_context_usage() -> GetContextUsageReply = GetContextUsage::new();
    /// What the session has cost, in the CLI's words.
    "get_session_cost" fn get_session_cost() -> GetSessionCostReply = GetSessionCost::new();
    /// What the session and the account used.
    "get_usage" fn get_usage() -> GetUsageReply = GetUsage::new();
    /// The CLI's version.
    "get_binary_version" fn get_binary_version() -> GetBinaryVersionReply = GetBinaryVersion::new();
    /// The settings in force, and where each comes from.
    "get_settings" fn get_settings() -> GetSettingsReply = GetSettings::new();
    /// Changes the settings layer of the session: a shallow merge, `null` takes a key away. Write whole paths in it: where the CLI looks for
    /// `Read(/x)`, or for a relative path of the sandbox, depends on how the session got its settings.
    "apply_flag_settings" fn apply_flag_settings(settings: JsonObject) -> Ack = ApplyFlagSettings::new(settings);
    /// Changes a settings file. The CLI allows few keys.
    "update_settings" fn update_settings(source: WritableSettings, settings: JsonObject) -> Ack =
        UpdateSettings::new(source, settings);
    /// The hooks that are configured.
    "get_hooks_listing" fn get_hooks_listing() -> GetHooksListingReply = GetHooksListing::new();
    /// Loads the plugins again.
    "reload_plugins" fn reload_plugins() -> ReloadPluginsReply = ReloadPlugins::new();
    /// Loads the skills again.
    "reload_skills" fn reload_skills() -> ReloadSkillsReply = ReloadSkills::new();
    /// Loads the output styles again.
    "reload_output_styles" fn reload_output_styles() -> ReloadOutputStylesReply = ReloadOutputStyles::new();

    // ---- Account and feedback
    /// Begins a sign-in to the account.
    "claude_authenticate" fn claude_authenticate() -> ClaudeAuthenticateReply = ClaudeAuthenticate::new();
    /// Ends a sign-in with the code that the browser showed.
    "claude_oauth_callback" fn claude_oauth_callback(authorization_code: &str, state: &str) -> ClaudeOauthReply =
        ClaudeOauthCallback::new(authorization_code, state);
    /// Waits for a sign-in in the browser; pass a deadline by [`request_within`](Self::request_within) for more time.
    "claude_oauth_wait_for_completion" fn claude_oauth_wait_for_completion() -> ClaudeOauthReply =
        ClaudeOauthWaitForCompletion::new();
    /// Rates a message.
    "message_rated" fn message_rated(message_uuid: impl Into<MessageId>, sentiment: Sentiment) -> Ack =
        MessageRated::new(Into::<MessageId>::into(message_uuid), sentiment);
    /// Sends feedback to Anthropic.
    "submit_feedback" fn submit_feedback(description: &str) -> SubmitFeedbackReply = SubmitFeedback::new(description);

    // ---- The contents of the CLI's dialogs
    /// What the status dialog shows.
    "get_status" fn get_status() -> GetStatusReply = GetStatus::new();
    /// What the memory dialog shows.
    "get_memory_dialog" fn get_memory_dialog() -> GetMemoryDialogReply = GetMemoryDialog::new();
    /// What the skills dialog shows.
    "get_skills_dialog" fn get_skills_dialog() -> GetSkillsDialogReply = GetSkillsDialog::new();
    /// What the sandbox dialog shows.
    "get_sandbox_dialog" fn get_sandbox_dialog() -> GetSandboxDialogReply = GetSandboxDialog::new();
    /// What the dialog about the browser extension shows.
    "get_chrome_dialog" fn get_chrome_dialog() -> GetChromeDialogReply = GetChromeDialog::new();
    /// The browsers that are connected.
    "get_chrome_browsers" fn get_chrome_browsers() -> GetChromeBrowsersReply = GetChromeBrowsers::new();
    /// Chooses the browser to use.
    "select_chrome_browser" fn select_chrome_browser(device_id: &str) -> SelectChromeBrowserReply = SelectChromeBrowser::new(device_id);
}

impl Session {
    /// Says that the model has seen the file at `path` as it is now on this machine, so that it may edit it without reading it
    /// first. Sends `seed_read_state`.
    ///
    /// # Cancel safety
    /// As [`request`](Self::request).
    ///
    /// # Errors
    /// As [`request`](Self::request), and when the file's time can't be read or its path is not UTF-8.
    pub async fn seed_read_state_of(&self, path: impl AsRef<Path>) -> Result<Ack> {
        let path = path.as_ref();
        let failed = |error| Error::invalid_because(format!("file {}", path.display()), error);
        let modified = std::fs::metadata(path)
            .and_then(|meta| meta.modified())
            .map_err(failed)?;
        let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let name = path
            .to_str()
            .ok_or_else(|| Error::invalid(format!("path {}: it is not UTF-8", path.display())))?;
        self.seed_read_state(name, since.as_secs_f64() * 1000.0).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_typed_request_has_a_method() {
        // These are sent by methods that do more than that, or only make sense as typed requests.
        let elsewhere = [
            "initialize",
            "interrupt",
            "mcp_set_servers",
            "cancel_async_message",
            "submit_survey_feedback",
            "set_chrome_browser_hints",
            "dictate",
        ];
        let missing: Vec<_> = OutboundRequest::KNOWN
            .iter()
            .filter(|subtype| !SUBTYPES.contains(subtype) && !elsewhere.contains(subtype))
            .collect();
        assert!(missing.is_empty(), "requests without a method: {missing:?}");
    }
}
