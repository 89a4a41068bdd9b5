//! A function for each event: when the CLI calls the hook, and what it may answer.

use super::{Context, Hook, HookKind, IntoHookOutput, event};

/// Generates the functions.
macro_rules! functions {
    ($( $(#[$m:meta])* $name:ident => $event:ident; )+) => { $(
        $(#[$m])*
        ///
        /// # Cancel safety
        /// As [`Hook::new`].
        pub fn $name<F, R>(answer: F) -> Hook<event::$event>
        where
            F: Fn(<event::$event as HookKind>::Input, Context) -> R + Send + Sync + 'static,
            R: Future<Output: IntoHookOutput<event::$event>> + Send + 'static,
        {
            Hook::new(answer)
        }
    )+ };
}

functions! {
    /// A tool is about to run, the model's call is complete. Called for every call, also for those that need no permission, and for
    /// those of subagents (`agent_id`).
    ///
    /// May answer with a [`PreToolUseOutput`](super::PreToolUseOutput): `allow` runs the tool without a question, `deny` does not
    /// run it and tells the model why, `ask` asks whatever the rules say, `defer` ends the turn with the call left open
    /// ([`Verdict::Deferred`](crate::Verdict::Deferred)).
    /// `updated_input` runs the tool with another input, with a decision or without. [`stop`](super::HookOutput::stop) ends the
    /// turn, but the tool still runs. An [`in_background`](super::HookOutput::in_background) answer is no opinion.
    ///
    /// The matcher is compared with the tool's name; `Agent` and `Task` are the same. A failure is a denial unless told otherwise.
    pre_tool_use => PreToolUse;

    /// A tool has run and did not fail.
    ///
    /// May answer with a [`PostToolUseOutput`](super::PostToolUseOutput): more context for the model, or another output in the
    /// place of the tool's. That has to have the very shape of the tool's own (`tool_response`): one that has not is **dropped
    /// without a word, and the model reads the original**. [`block`](super::HookOutput::block) tells the model something and
    /// does not take the output away, [`stop`](super::HookOutput::stop) ends the turn.
    ///
    /// The matcher is compared with the tool's name. A failure is no opinion unless told otherwise. For a hook that keeps
    /// something from the model set [`OnFailure::Block`](super::OnFailure::Block): then every text in the output is replaced and
    /// the turn ends.
    post_tool_use => PostToolUse;

    /// A tool has failed, or was interrupted.
    ///
    /// May answer with a [`ContextOutput`](super::ContextOutput) for the model. The matcher is compared with the tool's name.
    post_tool_use_failure => PostToolUseFailure;

    /// All tools that one answer of the model called are done, also those that do not exist, and before the model reads any of
    /// their outputs.
    ///
    /// May answer with a [`ContextOutput`](super::ContextOutput); [`block`](super::HookOutput::block) and
    /// [`stop`](super::HookOutput::stop) end the turn. Has no matchers. A failure is no opinion unless told otherwise.
    post_tool_batch => PostToolBatch;

    /// The CLI has something to tell a user who may look elsewhere: that a question about a permission has been open for some
    /// seconds (`permission_prompt`), or what became of one of an MCP server (`elicitation_response`).
    ///
    /// May answer with a [`ContextOutput`](super::ContextOutput). The matcher is compared with the kind of notification.
    notification => Notification;

    /// A prompt was sent, slash commands included, and has not reached the model.
    ///
    /// May answer with a [`UserPromptSubmitOutput`](super::UserPromptSubmitOutput): more context, or a title for the session.
    /// [`block`](super::HookOutput::block) and [`stop`](super::HookOutput::stop) keep the prompt from the model: the turn ends at
    /// once with [`Verdict::NotRun`](crate::Verdict::NotRun) and the reason as its text. Has no matchers. A failure blocks unless told otherwise.
    user_prompt_submit => UserPromptSubmit;

    /// A slash command or a prompt of an MCP server became a prompt. Called after
    /// [`user_prompt_submit`](fn@super::user_prompt_submit).
    ///
    /// May answer with a [`UserPromptExpansionOutput`](super::UserPromptExpansionOutput); [`block`](super::HookOutput::block) and
    /// [`stop`](super::HookOutput::stop) keep it from the model. The matcher is compared with the command's name. A failure blocks
    /// unless told otherwise.
    user_prompt_expansion => UserPromptExpansion;

    /// A conversation begins within the session: after `/clear` and after compaction.
    ///
    /// **Not called when the session starts**, resumed or not: the CLI runs these hooks before it hears of any callback. What is to
    /// happen then is done after [`Options::start`](crate::Options::start), by `system_prompt`, or by a command in
    /// [`Options::settings`](crate::Options::settings):
    ///
    /// ```
    /// use outrigger::Agent;
    /// use outrigger::protocol::settings::{CommandHook, HookHandler, HookMatcherSettings, Settings};
    ///
    /// let mut command = CommandHook::default();
    /// command.command = Some("date >> starts.log".into());
    /// let mut matcher = HookMatcherSettings::default();
    /// matcher.hooks = Some(vec![HookHandler::Command(command)]);
    /// let mut settings = Settings::default();
    /// settings.hooks = Some([("SessionStart".to_owned(), vec![matcher])].into());
    /// let options = Agent::builder().settings(settings);
    /// # let _ = options;
    /// ```
    ///
    /// May answer with a [`SessionStartOutput`](super::SessionStartOutput); `watch_paths` makes
    /// [`file_changed`](fn@super::file_changed) tell about files. The matcher is compared with the source.
    session_start => SessionStart;

    /// A conversation ends within the session: by `/clear`.
    ///
    /// **Not called when the session ends**: stdin is closed by then. [`Session::close`](crate::Session::close) tells of that, and
    /// a command in [`Options::settings`](crate::Options::settings) runs then, as shown at [`session_start`](fn@super::session_start).
    ///
    /// May answer nothing. The matcher is compared with the reason.
    session_end => SessionEnd;

    /// A turn is about to end, because the model calls no tool any more. Not called for an interrupt or an API error.
    ///
    /// May answer with a [`ContextOutput`](super::ContextOutput). [`block`](super::HookOutput::block) makes the turn go on, with
    /// the reason told to the model; `stop_hook_active` says that it does so already. Has no matchers. A failure is no opinion
    /// unless told otherwise, and even then blocks only once.
    stop => Stop;

    /// A turn ended because of an API error.
    ///
    /// May answer nothing. The matcher is compared with the kind of error.
    stop_failure => StopFailure;

    /// A subagent begins. Not called for every subagent in every version.
    ///
    /// May answer with a [`ContextOutput`](super::ContextOutput) for it, and cannot stop it. The matcher is compared with the
    /// agent's type.
    subagent_start => SubagentStart;

    /// A subagent is about to end; also called around compaction. Not called for every subagent in every version, nor for one that
    /// is killed.
    ///
    /// May answer with a [`ContextOutput`](super::ContextOutput). [`block`](super::HookOutput::block) makes it go on. The matcher is
    /// compared with the agent's type. A failure is no opinion unless told otherwise, and even then blocks only once.
    subagent_stop => SubagentStop;

    /// The conversation is about to be compacted.
    ///
    /// May answer nothing of its own; [`block`](super::HookOutput::block) leaves the conversation as it is (and a turn that needs
    /// the room fails). The matcher is `manual` or `auto`. A failure is no opinion unless told otherwise.
    pre_compact => PreCompact;

    /// The conversation has been compacted.
    ///
    /// May answer nothing. The matcher is `manual` or `auto`.
    post_compact => PostCompact;

    /// The model is about to be changed, by [`Session::set_model`](crate::Session::set_model) for one.
    ///
    /// May answer with a [`PreModelSwitchOutput`](super::PreModelSwitchOutput); a change that is denied is an error of whoever
    /// asked for it. The matcher is compared with the full name of the new model. A failure is a denial unless told otherwise.
    pre_model_switch => PreModelSwitch;

    /// The model has been changed.
    ///
    /// May answer with a [`ContextOutput`](super::ContextOutput). The matcher is compared with the full name of the new model.
    post_model_switch => PostModelSwitch;

    /// Somebody is about to be asked whether a tool may run. Called together with the session's permission handler, and **the first
    /// of the two decides**: a quick allowance there beats a denial here. What has to be refused is refused by
    /// [`pre_tool_use`](fn@super::pre_tool_use) or by the handler.
    ///
    /// May answer with a [`PermissionRequestOutput`](super::PermissionRequestOutput). The matcher is compared with the tool's name.
    /// A failure is a denial unless told otherwise.
    permission_request => PermissionRequest;

    /// Auto mode refused a tool call, by its classifier or for want of it. Not called for other refusals.
    ///
    /// May answer with a [`PermissionDeniedOutput`](super::PermissionDeniedOutput). The matcher is compared with the tool's name.
    permission_denied => PermissionDenied;

    /// The CLI was run to set a project up.
    ///
    /// **Never called**: the CLI runs these hooks before it hears of any callback. Options with such a hook are refused; a command
    /// in [`Options::settings`](crate::Options::settings) is run, as shown at [`session_start`](fn@super::session_start).
    setup => Setup;

    /// A teammate is about to be idle. Only in sessions that work as a team.
    ///
    /// May answer nothing of its own; [`block`](super::HookOutput::block) keeps it working. Has no matchers. A failure is no
    /// opinion unless told otherwise.
    teammate_idle => TeammateIdle;

    /// A task is about to be put on the list (`TaskCreate`). That tool has to be asked for by
    /// [`Options::tools`](crate::Options::tools).
    ///
    /// May answer nothing of its own; [`block`](super::HookOutput::block) keeps it off the list. Has no matchers. A failure is no
    /// opinion unless told otherwise.
    task_created => TaskCreated;

    /// A task on the list is about to be done (`TaskUpdate`).
    ///
    /// May answer nothing of its own; [`block`](super::HookOutput::block) leaves it as it is. Has no matchers. A failure is no
    /// opinion unless told otherwise.
    task_completed => TaskCompleted;

    /// An MCP server asks the user something, who has not been asked yet.
    ///
    /// May answer with [`block`](super::HookOutput::block), which declines. An [`ElicitationOutput`](super::ElicitationOutput) is
    /// what the protocol has for it, but CLI 2.1.330 does not heed it: to accept or to fill in, handle the question itself. The
    /// matcher is compared with the server's name. A failure declines unless told otherwise.
    elicitation => Elicitation;

    /// A question of an MCP server was answered, and the server has not got the answer yet.
    ///
    /// May answer with [`block`](super::HookOutput::block), which declines instead; an
    /// [`ElicitationOutput`](super::ElicitationOutput) is not heeded by CLI 2.1.330. The matcher is compared with the server's name.
    /// A failure declines unless told otherwise.
    elicitation_result => ElicitationResult;

    /// A settings file that the session has loaded changed.
    ///
    /// May answer nothing of its own; [`block`](super::HookOutput::block) keeps the settings as they were. The matcher is compared
    /// with the source: `user_settings`, `project_settings`, … A failure blocks unless told otherwise: new settings may allow more.
    config_change => ConfigChange;

    /// A worktree is to be made (`EnterWorktree`, agents with a worktree of their own). **With such a hook the CLI makes none
    /// itself**: the hook does, and answers with a [`WorktreeCreateOutput`](super::WorktreeCreateOutput) that says where.
    ///
    /// Without that in the answer there is no worktree, and the tool fails. Has no matchers.
    worktree_create => WorktreeCreate;

    /// A worktree that a [`worktree_create`](fn@super::worktree_create) hook made is not needed any more: the hook removes it.
    ///
    /// May answer nothing. Has no matchers.
    worktree_remove => WorktreeRemove;

    /// A file of instructions (`CLAUDE.md`, a rule) was loaded. Those that are loaded at the start are told with the first prompt, or
    /// not at all: which of the two is a matter of timing.
    ///
    /// May answer nothing. The matcher is compared with the reason: `nested_traversal`, …
    instructions_loaded => InstructionsLoaded;

    /// The working directory of the session changed. CLI 2.1.330 calls it neither for a `cd` of the model nor for a `set_cwd` of this
    /// program.
    ///
    /// May answer with a [`WatchOutput`](super::WatchOutput). Has no matchers.
    cwd_changed => CwdChanged;

    /// A watched file changed: one that a hook has asked for by `watch_paths`, such as [`session_start`](fn@super::session_start)'s.
    ///
    /// May answer with a [`WatchOutput`](super::WatchOutput). The matcher is compared with the file's name.
    file_changed => FileChanged;

    /// A working directory was added to the session.
    ///
    /// May answer nothing. The matcher is compared with the source: `register_repo_root` for a request of this program.
    directory_added => DirectoryAdded;

    /// Text of the model is about to be shown.
    ///
    /// May answer with a [`MessageDisplayOutput`](super::MessageDisplayOutput): the message and the result then hold that instead.
    /// What was streamed as partial messages has been seen already. Has no matchers. A failure is no opinion unless told
    /// otherwise.
    message_display => MessageDisplay;
}
