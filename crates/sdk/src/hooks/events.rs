//! The hook events: one row for each, which says all that the SDK knows of it.

use outrigger_protocol::shared::hook::{HookEvent, HookKind, event};

use super::failure::{self, Failure};
use super::{Context, Hook, IntoHookOutput};

/// What the SDK knows of an event beyond its types.
pub(super) struct EventRow {
    name: &'static str,
    /// What the event's matcher matches.
    pub(super) matcher: Subject,
    /// What a failure of its hook means.
    pub(super) failure: Failure,
}

/// What the CLI compares a matcher with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The name of the tool.
    Tool,
    /// Another text of the event.
    Text,
    /// Nothing: the CLI calls the hook whatever its matcher is.
    Nothing,
}

/// An event that this build does not know. It may guard something, so a failure blocks.
static UNKNOWN: EventRow = EventRow {
    name: "",
    matcher: Subject::Text,
    failure: Failure::Guards(failure::block::<event::UserPromptSubmit>),
};

/// The row of an event.
pub(super) fn row(event: &HookEvent) -> &'static EventRow {
    ROWS.iter()
        .find(|row| row.name == event.as_str())
        .unwrap_or(&UNKNOWN)
}

macro_rules! subject {
    (Tool) => {
        Subject::Tool
    };
    (Nothing) => {
        Subject::Nothing
    };
    ($text:literal) => {
        Subject::Text
    };
}

/// What a matcher matches, for the docs.
macro_rules! subject_doc {
    (Tool) => {
        "the tool's name"
    };
    (Nothing) => {
        "–"
    };
    ($text:literal) => {
        $text
    };
}

/// What a failure means, for the docs.
macro_rules! failure_doc {
    (Guards) => {
        "blocks"
    };
    (MayBlock) => {
        "is ignored"
    };
    (MayBlockHere) => {
        "is ignored"
    };
    (Observes) => {
        "is ignored"
    };
}

/// What blocks, for the docs.
macro_rules! refusal_doc {
    () => {
        "cannot block"
    };
    (block) => {
        "`decision: block`"
    };
    (block_once) => {
        "`decision: block`, but not twice in a row"
    };
    (decline) => {
        "`decision: block`"
    };
    (deny_call) => {
        "a denial"
    };
    (deny_permission) => {
        "a denial"
    };
    (deny_model) => {
        "a denial"
    };
    (deny_command) => {
        "a denial"
    };
    (withhold_output) => {
        "a notice in place of the texts in the output, and the end of the turn"
    };
    (withhold_text) => {
        "a notice in place of the text"
    };
}

/// What a matcher matches, for the docs of a function.
macro_rules! matcher_sentence {
    (Nothing) => {
        "The event has no matchers."
    };
    ($matcher:tt) => {
        concat!("A matcher matches ", subject_doc!($matcher), ".")
    };
}

/// What a failure means, for the docs of a function.
macro_rules! failure_sentence {
    (Guards $refusal:ident) => {
        concat!(
            "A failure blocks, by ",
            refusal_doc!($refusal),
            ", unless [`OnFailure::Continue`](super::OnFailure::Continue) is set."
        )
    };
    (MayBlock $refusal:ident) => {
        concat!(
            "A failure is ignored unless [`OnFailure::Block`](super::OnFailure::Block) is set; then it blocks, by ",
            refusal_doc!($refusal),
            "."
        )
    };
    (MayBlockHere $refusal:ident) => {
        failure_sentence!(MayBlock $refusal)
    };
    (Observes) => {
        "A failure is ignored: the hook cannot block."
    };
}

/// Generates all that the SDK has for each event from its row: the function that makes a hook, what its matcher matches, what a
/// failure means, and the table in the docs.
///
/// `matcher` is `Tool`, `Nothing`, or words for the text that it matches. `failure` is a variant of [`Failure`], with the function of
/// its module that refuses; a refusal that is no output of the event does not compile.
macro_rules! hooks {
    ($(
        $(#[$m:meta])*
        $name:ident => $event:ident { matcher: $matcher:tt, failure: $failure:ident $( ($refusal:ident) )? }
    )+) => {
        $(
            $(#[$m])*
            ///
            #[doc = concat!(matcher_sentence!($matcher), " ", failure_sentence!($failure $($refusal)?))]
            ///
            /// # Cancel safety
            /// As [`Hook::new`].
            pub fn $name<F, R>(callback: F) -> Hook<event::$event>
            where
                F: Fn(<event::$event as HookKind>::Input, Context) -> R + Send + Sync + 'static,
                R: Future<Output: IntoHookOutput<event::$event>> + Send + 'static,
            {
                Hook::new(callback)
            }
        )+

        static ROWS: &[EventRow] = &[$( EventRow {
            name: stringify!($event),
            matcher: subject!($matcher),
            failure: Failure::$failure $( (failure::$refusal::<event::$event>) )?,
        }, )+];

        // An event of the protocol without a row does not compile.
        const _: () = assert!(
            is_same(&[$( stringify!($event) ),+], HookEvent::KNOWN),
            "`hooks!` has to have a row for each event of `outrigger_protocol::shared::hook`, in the same order"
        );

        /// The table of events for the docs of [`OnFailure`].
        macro_rules! event_table {
            () => {
                concat!(
                    "| event | a matcher matches | a failure, unless set otherwise | how it blocks |\n|---|---|---|---|\n",
                    $(
                        "| [`", stringify!($event), "`](fn@", stringify!($name), ") | ", subject_doc!($matcher), " | ",
                        failure_doc!($failure), " | ", refusal_doc!($($refusal)?), " |\n",
                    )+
                )
            };
        }
    };
}

const fn is_same(left: &[&str], right: &[&str]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        let (left, right) = (left[index].as_bytes(), right[index].as_bytes());
        if left.len() != right.len() {
            return false;
        }
        let mut byte = 0;
        while byte < left.len() {
            if left[byte] != right[byte] {
                return false;
            }
            byte += 1;
        }
        index += 1;
    }
    true
}

hooks! {
    /// A tool is about to run; the model's call is complete. The CLI calls the hook for every call, also for those that need no
    /// permission and for those of subagents (`agent_id`).
    ///
    /// The hook may return a [`PreToolUseOutput`](super::PreToolUseOutput): `allow` runs the tool without a permission request, `deny`
    /// does not run it and gives the model the reason, `ask` requests permission whatever the rules say, `defer` ends the turn with
    /// the call left open ([`Verdict::Deferred`](crate::Verdict::Deferred)).
    /// `updated_input` runs the tool with another input, with a decision or without. [`stop`](super::HookOutput::stop) ends the
    /// turn, but the tool still runs. The output [`in_background`](super::HookOutput::in_background) decides nothing.
    ///
    /// For a matcher, `Agent` and `Task` are the same tool.
    pre_tool_use => PreToolUse { matcher: Tool, failure: Guards(deny_call) }

    /// A tool has run and did not fail.
    ///
    /// The hook may return a [`PostToolUseOutput`](super::PostToolUseOutput): more context for the model, or another output in place
    /// of the tool's. That output must have the exact shape of the tool's own (`tool_response`): **the CLI silently drops one of
    /// another shape, and the model reads the original**. [`block`](super::HookOutput::block) gives the model a reason and leaves
    /// the output as it is; [`stop`](super::HookOutput::stop) ends the turn.
    ///
    /// For a hook that keeps something from the model, set [`OnFailure::Block`](super::OnFailure::Block).
    post_tool_use => PostToolUse { matcher: Tool, failure: MayBlock(withhold_output) }

    /// A tool has failed, or was interrupted.
    ///
    /// The hook may return a [`ContextOutput`](super::ContextOutput) for the model.
    post_tool_use_failure => PostToolUseFailure { matcher: Tool, failure: Observes }

    /// All tools that one response of the model called are done, also those that do not exist. The model has not read their
    /// outputs yet.
    ///
    /// The hook may return a [`ContextOutput`](super::ContextOutput); [`block`](super::HookOutput::block) and
    /// [`stop`](super::HookOutput::stop) end the turn.
    post_tool_batch => PostToolBatch { matcher: Nothing, failure: MayBlock(block) }

    /// The CLI notifies a user who may look elsewhere: a permission request has been open for some seconds (`permission_prompt`), or
    /// an elicitation of an MCP server was answered (`elicitation_response`).
    ///
    /// The hook may return a [`ContextOutput`](super::ContextOutput).
    notification => Notification { matcher: "the kind of notification", failure: Observes }

    /// A prompt was sent and has not reached the model. Slash commands count, too, and so do prompts that the CLI takes into a running
    /// turn, and the ends of background tasks, as texts that begin with `<task-notification>`.
    ///
    /// The hook may return a [`UserPromptSubmitOutput`](super::UserPromptSubmitOutput): more context, or a title for the session.
    /// [`block`](super::HookOutput::block) and [`stop`](super::HookOutput::stop) keep the prompt from the model: the turn ends at
    /// once with [`Verdict::NotRun`](crate::Verdict::NotRun) and the reason as its text.
    /// Of a prompt or a task in a running turn, `block` keeps it from the model, and the turn goes on.
    user_prompt_submit => UserPromptSubmit { matcher: Nothing, failure: Guards(block) }

    /// A slash command or a prompt of an MCP server became a prompt. Called after
    /// [`user_prompt_submit`](fn@super::user_prompt_submit).
    ///
    /// The hook may return a [`UserPromptExpansionOutput`](super::UserPromptExpansionOutput); [`block`](super::HookOutput::block) and
    /// [`stop`](super::HookOutput::stop) keep the prompt from the model.
    user_prompt_expansion => UserPromptExpansion { matcher: "the command's name", failure: Guards(block) }

    /// A conversation begins within the session: after `/clear` and after compaction.
    ///
    /// **Not called when the session starts**, resumed or not: the CLI runs these hooks before it knows any callback. For that,
    /// send a prompt after [`Options::start`](crate::Options::start), set `system_prompt`, or configure a command in
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
    /// The hook may return a [`SessionStartOutput`](super::SessionStartOutput); its `watch_paths` are the files whose changes
    /// [`file_changed`](fn@super::file_changed) reports.
    session_start => SessionStart { matcher: "the source", failure: Observes }

    /// A conversation ends within the session: by `/clear`.
    ///
    /// **Not called when the session ends**: stdin is closed by then. [`Session::close`](crate::Session::close) reports that end, and
    /// a command in [`Options::settings`](crate::Options::settings) runs then, as shown at [`session_start`](fn@super::session_start).
    ///
    /// The event has no output of its own.
    session_end => SessionEnd { matcher: "the reason", failure: Observes }

    /// A turn is about to end, because the model calls no more tools. Not called for an interrupt or an API error.
    ///
    /// The hook may return a [`ContextOutput`](super::ContextOutput). [`block`](super::HookOutput::block) makes the turn go on and
    /// gives the model the reason; `stop_hook_active` is true if the turn goes on because of a hook already.
    stop => Stop { matcher: Nothing, failure: MayBlockHere(block_once) }

    /// A turn ended because of an API error.
    ///
    /// The event has no output of its own.
    stop_failure => StopFailure { matcher: "the kind of error", failure: Observes }

    /// A subagent begins. Not called for every subagent in every version.
    ///
    /// The hook may return a [`ContextOutput`](super::ContextOutput) for the subagent, and cannot stop it.
    subagent_start => SubagentStart { matcher: "the agent's type", failure: Observes }

    /// A subagent is about to end; also called around compaction. Not called for every subagent in every version, nor for one that
    /// is killed.
    ///
    /// The hook may return a [`ContextOutput`](super::ContextOutput). [`block`](super::HookOutput::block) makes the subagent go on.
    subagent_stop => SubagentStop { matcher: "the agent's type", failure: MayBlockHere(block_once) }

    /// The conversation is about to be compacted.
    ///
    /// The event has no output of its own; [`block`](super::HookOutput::block) leaves the conversation as it is (and a turn that
    /// needs the room fails).
    pre_compact => PreCompact { matcher: "`manual` or `auto`", failure: MayBlock(block) }

    /// The conversation has been compacted.
    ///
    /// The event has no output of its own.
    post_compact => PostCompact { matcher: "`manual` or `auto`", failure: Observes }

    /// The model is about to be changed, for example by [`Session::set_model`](crate::Session::set_model).
    ///
    /// The hook may return a [`PreModelSwitchOutput`](super::PreModelSwitchOutput); the request for a change that is denied fails.
    pre_model_switch => PreModelSwitch { matcher: "the full name of the new model", failure: Guards(deny_model) }

    /// The model has been changed.
    ///
    /// The hook may return a [`ContextOutput`](super::ContextOutput).
    post_model_switch => PostModelSwitch { matcher: "the full name of the new model", failure: Observes }

    /// The CLI is about to request permission for a tool call. It calls the hook together with the session's permission callback, and
    /// **the first of the two decides**: a quick allowance there beats a denial here. To deny for sure, use
    /// [`pre_tool_use`](fn@super::pre_tool_use) or the permission callback.
    ///
    /// The hook may return a [`PermissionRequestOutput`](super::PermissionRequestOutput).
    permission_request => PermissionRequest { matcher: Tool, failure: Guards(deny_permission) }

    /// Auto mode denied a tool call, by its classifier or for lack of one. Not called for other denials.
    ///
    /// The hook may return a [`PermissionDeniedOutput`](super::PermissionDeniedOutput).
    permission_denied => PermissionDenied { matcher: Tool, failure: Observes }

    /// The CLI was run to set a project up.
    ///
    /// **Never called**: the CLI runs these hooks before it knows any callback. Options with such a hook are rejected; a command
    /// in [`Options::settings`](crate::Options::settings) runs, as shown at [`session_start`](fn@super::session_start).
    setup => Setup { matcher: "the trigger", failure: Observes }

    /// A teammate is about to be idle. Only in sessions that work as a team.
    ///
    /// The event has no output of its own; [`block`](super::HookOutput::block) keeps the teammate working.
    teammate_idle => TeammateIdle { matcher: Nothing, failure: MayBlockHere(block) }

    /// A task is about to be put on the list (`TaskCreate`). [`Options::tools`](crate::Options::tools) has to name that tool.
    ///
    /// The event has no output of its own; [`block`](super::HookOutput::block) keeps the task off the list.
    task_created => TaskCreated { matcher: Nothing, failure: MayBlock(block) }

    /// A task on the list is about to be done (`TaskUpdate`).
    ///
    /// The event has no output of its own; [`block`](super::HookOutput::block) leaves the task as it is.
    task_completed => TaskCompleted { matcher: Nothing, failure: MayBlockHere(block) }

    /// An MCP server sent an elicitation, which has not reached the user yet.
    ///
    /// [`block`](super::HookOutput::block) declines it. The protocol has an [`ElicitationOutput`](super::ElicitationOutput) for it,
    /// but CLI 2.1.330 ignores that: to accept or to fill in, set [`Options::elicitation`](crate::Options::elicitation).
    elicitation => Elicitation { matcher: "the server's name", failure: Guards(decline) }

    /// An elicitation of an MCP server was answered, and the server has not received the answer yet.
    ///
    /// [`block`](super::HookOutput::block) declines instead; CLI 2.1.330 ignores an
    /// [`ElicitationOutput`](super::ElicitationOutput).
    elicitation_result => ElicitationResult { matcher: "the server's name", failure: Guards(decline) }

    /// A settings file that the session has loaded changed. New settings may allow more than the old.
    ///
    /// The event has no output of its own; [`block`](super::HookOutput::block) keeps the settings as they were.
    config_change => ConfigChange { matcher: "the source: `user_settings`, `project_settings`, …", failure: Guards(block) }

    /// A worktree is to be made (`EnterWorktree`, agents with a worktree of their own). **With such a hook the CLI makes none
    /// itself**: the hook makes it, and returns a [`WorktreeCreateOutput`](super::WorktreeCreateOutput) with its path.
    ///
    /// Without that output there is no worktree, and the tool fails.
    worktree_create => WorktreeCreate { matcher: Nothing, failure: Guards(block) }

    /// A worktree that a [`worktree_create`](fn@super::worktree_create) hook made is not needed any more: the hook removes it.
    ///
    /// The event has no output of its own.
    worktree_remove => WorktreeRemove { matcher: Nothing, failure: Observes }

    /// A file of instructions (`CLAUDE.md`, a rule) was loaded. Those that are loaded at the start are reported with the first
    /// prompt, or not at all: which of the two is a matter of timing.
    ///
    /// The event has no output of its own.
    instructions_loaded => InstructionsLoaded { matcher: "the reason: `nested_traversal`, …", failure: Observes }

    /// The working directory of the session changed. CLI 2.1.330 calls the hook neither for a `cd` of the model nor for a `set_cwd` of
    /// this program.
    ///
    /// The hook may return a [`WatchOutput`](super::WatchOutput).
    cwd_changed => CwdChanged { matcher: Nothing, failure: Observes }

    /// A watched file changed: one in the `watch_paths` of a hook's output, such as [`session_start`](fn@super::session_start)'s.
    ///
    /// The hook may return a [`WatchOutput`](super::WatchOutput).
    file_changed => FileChanged { matcher: "the file's name", failure: Observes }

    /// A working directory was added to the session.
    ///
    /// The event has no output of its own.
    directory_added => DirectoryAdded { matcher: "the source: `register_repo_root` for a request of this program", failure: Observes }

    /// A text of the model is about to be shown.
    ///
    /// The hook may return a [`MessageDisplayOutput`](super::MessageDisplayOutput): the message and the result then have that text
    /// instead. Partial messages were streamed already.
    message_display => MessageDisplay { matcher: Nothing, failure: MayBlock(withhold_text) }

    /// The text of a skill or of a slash command holds a shell command that is about to run, before the model reads the text. No
    /// tool call belongs to it: neither [`pre_tool_use`](fn@super::pre_tool_use) nor the permission callback sees it. From CLI
    /// 2.1.332 on.
    ///
    /// The hook may return a [`PreSkillShellCommandOutput`](super::PreSkillShellCommandOutput). All decisions but `Allow` refuse the
    /// command, and `Allow` overrules no other hook.
    pre_skill_shell_command => PreSkillShellCommand { matcher: Tool, failure: Guards(deny_command) }
}

/// What the failure of a hook means.
///
/// The default depends on the event:
///
#[doc = event_table!()]
///
/// At an event that this build does not know, a failure blocks by `decision: block`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The CLI goes on as if the hook had returned nothing; the failure is logged.
    Continue,
    /// The hook blocks, as the table says for each event.
    ///
    /// If you set it, [`Options::start`](crate::Options::start) rejects a CLI that does not confirm its own `onFailure`. (At `Stop`,
    /// `SubagentStop`, `TaskCompleted` and `TeammateIdle` the CLI has none; there only the SDK blocks.)
    Block,
}
