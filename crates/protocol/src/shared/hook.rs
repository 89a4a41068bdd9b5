//! Hooks: the events, what the CLI tells about each, and what may be answered.

mod base;
mod cause;
mod input;
mod output;

pub use base::*;
pub use cause::*;
pub use input::*;
pub use output::*;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire_enum;

/// One hook event as a type, so that input and answer fit together. See [`event`] for the events.
pub trait HookKind: Sized + Send + Sync + 'static {
    /// The event.
    const EVENT: HookEvent;
    /// What the CLI sends with the event.
    type Input: fmt::Debug + Clone + DeserializeOwned + Send + 'static;
    /// What may be answered beyond the common part; [`NoOutput`] if nothing.
    type Output: fmt::Debug + Clone + Serialize + Send + 'static;

    /// The answer as one of all events' answers.
    fn wrap(output: Self::Output) -> HookSpecificOutput;
}

/// The output type of an event: `NoOutput` if its row names none.
macro_rules! output {
    () => {
        NoOutput
    };
    ($out:ident) => {
        $out
    };
}

/// Wraps the output of an event. `NoOutput` has no value, so there is nothing to wrap.
macro_rules! wrap {
    ($output:expr, $var:ident) => {
        match $output {}
    };
    ($output:expr, $var:ident, $out:ident) => {
        HookSpecificOutput::$var($output)
    };
}

/// Generates all that depends on the event from one row for each: its name, its input, and its output if it has one. The SDK has the
/// rest, what a failure of a hook means and what a matcher matches, in rows of its own: it does not compile while one is missing.
macro_rules! hooks {
    ($( $(#[$m:meta])* $wire:literal => $var:ident($input:ident) $(-> $out:ident)?; )+) => {
        crate::open_enum! {
            /// What a hook may be called for. Callbacks for [`SessionStart`](Self::SessionStart), [`SessionEnd`](Self::SessionEnd) and
            /// [`Setup`](Self::Setup) are not called when the process starts or ends: they run before `initialize` is read, or after
            /// stdin is gone.
            pub enum HookEvent { $( $(#[$m])* $var = $wire, )+ }
        }

        wire_enum! {
            /// The input of a hook, by event.
            pub enum HookInput by "hook_event_name" { $( $(#[$m])* $wire => $var($input), )+ }
        }

        wire_enum! {
            /// The part of a hook's output that is specific to its event. With a name that is not the event's the CLI does not run
            /// the tool.
            pub enum HookSpecificOutput by "hookEventName" {
                $( $( #[doc = concat!("The output of ", $wire, " hooks.")] $wire => $var($out), )? )+
            }
        }

        impl HookInput {
            /// What is told about every event; `None` if this build does not know the event or the input does not fit.
            pub fn base(&self) -> Option<HookBase<'_>> {
                match self {
                    $( Self::$var(input) => Some(HookBase {
                        session_id: &input.session_id,
                        transcript_path: &input.transcript_path,
                        cwd: &input.cwd,
                        prompt_id: input.prompt_id.as_deref(),
                        permission_mode: input.permission_mode.as_ref(),
                        agent_id: input.agent_id.as_deref(),
                        agent_type: input.agent_type.as_deref(),
                        effort: input.effort.as_ref().map(|effort| effort.level.as_str()),
                    }), )+
                    Self::Unknown(_) | Self::Misfit(_) => None,
                }
            }

            /// The event.
            pub fn event(&self) -> HookEvent {
                HookEvent::from(&*self.tag())
            }
        }

        /// The events as types; none of them has a value.
        pub mod event {
            use super::*;
            $(
                $(#[$m])*
                #[derive(Debug, Clone, Copy)]
                pub enum $var {}

                impl HookKind for $var {
                    const EVENT: HookEvent = HookEvent::$var;
                    type Input = $input;
                    type Output = output!($($out)?);
                    fn wrap(output: output!($($out)?)) -> HookSpecificOutput {
                        wrap!(output, $var $(, $out)?)
                    }
                }
            )+
        }
    };
}

hooks! {
    /// A tool is about to run. May allow, refuse, ask, or change the input.
    "PreToolUse" => PreToolUse(PreToolUseInput) -> PreToolUseOutput;
    /// A tool has run. May replace what the model sees.
    "PostToolUse" => PostToolUse(PostToolUseInput) -> PostToolUseOutput;
    /// A tool has failed.
    "PostToolUseFailure" => PostToolUseFailure(PostToolUseFailureInput) -> ContextOutput;
    /// All tools that one message of the model called have run.
    "PostToolBatch" => PostToolBatch(PostToolBatchInput) -> ContextOutput;
    /// The CLI has something to tell the user.
    "Notification" => Notification(NotificationInput) -> ContextOutput;
    /// A prompt was sent. The hook may refuse the prompt.
    "UserPromptSubmit" => UserPromptSubmit(UserPromptSubmitInput) -> UserPromptSubmitOutput;
    /// A slash command or an MCP prompt became a prompt.
    "UserPromptExpansion" => UserPromptExpansion(UserPromptExpansionInput) -> UserPromptExpansionOutput;
    /// A session begins, after `/clear` or compaction too.
    "SessionStart" => SessionStart(SessionStartInput) -> SessionStartOutput;
    /// A session ends.
    "SessionEnd" => SessionEnd(SessionEndInput);
    /// A turn is about to end. If the hook blocks, the turn goes on.
    "Stop" => Stop(StopInput) -> ContextOutput;
    /// A turn ended because of an API error.
    "StopFailure" => StopFailure(StopFailureInput);
    /// A subagent begins.
    "SubagentStart" => SubagentStart(SubagentStartInput) -> ContextOutput;
    /// A subagent is about to end. Also comes around compaction.
    "SubagentStop" => SubagentStop(SubagentStopInput) -> ContextOutput;
    /// The conversation is about to be compacted.
    "PreCompact" => PreCompact(PreCompactInput);
    /// The conversation has been compacted.
    "PostCompact" => PostCompact(PostCompactInput);
    /// The model is about to be changed.
    "PreModelSwitch" => PreModelSwitch(PreModelSwitchInput) -> PreModelSwitchOutput;
    /// The model has been changed.
    "PostModelSwitch" => PostModelSwitch(PostModelSwitchInput) -> ContextOutput;
    /// Somebody is about to be asked for permission. Races with `can_use_tool`; the first decision counts.
    "PermissionRequest" => PermissionRequest(PermissionRequestInput) -> PermissionRequestOutput;
    /// A tool call was refused.
    "PermissionDenied" => PermissionDenied(PermissionDeniedInput) -> PermissionDeniedOutput;
    /// The CLI was run to set up or maintain a project.
    "Setup" => Setup(SetupInput) -> ContextOutput;
    /// A teammate is about to be idle.
    "TeammateIdle" => TeammateIdle(TeammateIdleInput);
    /// A task was put on the team's list.
    "TaskCreated" => TaskCreated(TaskInput);
    /// A task on the team's list is about to be done.
    "TaskCompleted" => TaskCompleted(TaskInput);
    /// An MCP server asks the user something. May answer.
    "Elicitation" => Elicitation(ElicitationInput) -> ElicitationOutput;
    /// The user answered an MCP server. May change the answer.
    "ElicitationResult" => ElicitationResult(ElicitationResultInput) -> ElicitationOutput;
    /// A settings file changed.
    "ConfigChange" => ConfigChange(ConfigChangeInput);
    /// A worktree is to be made. The hook makes the worktree.
    "WorktreeCreate" => WorktreeCreate(WorktreeCreateInput) -> WorktreeCreateOutput;
    /// A worktree is to be removed.
    "WorktreeRemove" => WorktreeRemove(WorktreeRemoveInput);
    /// A file of instructions was loaded.
    "InstructionsLoaded" => InstructionsLoaded(InstructionsLoadedInput);
    /// The working directory changed.
    "CwdChanged" => CwdChanged(CwdChangedInput) -> WatchOutput;
    /// A watched file changed.
    "FileChanged" => FileChanged(FileChangedInput) -> WatchOutput;
    /// A working directory was added.
    "DirectoryAdded" => DirectoryAdded(DirectoryAddedInput);
    /// Text of the model is about to be shown. May replace what is shown.
    "MessageDisplay" => MessageDisplay(MessageDisplayInput) -> MessageDisplayOutput;
    /// A skill or a command holds a shell command that is about to run. May refuse it. From CLI 2.1.332 on.
    "PreSkillShellCommand" => PreSkillShellCommand(PreSkillShellCommandInput) -> PreSkillShellCommandOutput;
}
