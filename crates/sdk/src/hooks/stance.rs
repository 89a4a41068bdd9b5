//! What a failing hook means, by event: what is refused, what is let through, and how each event is told no.

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::hook::{
    AnyHookOutput, ElicitationAction, ElicitationOutput, HookEvent, HookKind, HookOutput,
    MessageDisplayOutput, PermissionRequestDecision, PermissionRequestDeny, PostToolUseOutput,
    PreModelSwitchDecision, PreModelSwitchOutput, PreToolUseOutput, event,
};
use serde::Deserialize;

use super::mask;

/// What a hook of an event can do about what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stance {
    /// It is there to say no, and what it guards is dangerous: a failure is a no unless told otherwise.
    Guards,
    /// It can say no, which costs more than it saves when nobody meant it: a failure is a no if told so.
    MayBlock,
    /// Nothing it says keeps anything from happening.
    Observes,
}

pub(super) fn stance(event: &HookEvent) -> Stance {
    match event {
        HookEvent::PreToolUse
        | HookEvent::UserPromptSubmit
        | HookEvent::UserPromptExpansion
        | HookEvent::PermissionRequest
        | HookEvent::PreModelSwitch
        | HookEvent::Elicitation
        | HookEvent::ElicitationResult
        // New settings may allow more than the old.
        | HookEvent::ConfigChange
        | HookEvent::WorktreeCreate => Stance::Guards,
        // A turn that may not end, a conversation that may not be compacted, a model that is not told what its tools gave: each
        // would stop the work, and none of them lets the agent do more.
        HookEvent::PostToolUse
        | HookEvent::PostToolBatch
        | HookEvent::Stop
        | HookEvent::SubagentStop
        | HookEvent::PreCompact
        | HookEvent::TeammateIdle
        | HookEvent::TaskCreated
        | HookEvent::TaskCompleted
        | HookEvent::MessageDisplay => Stance::MayBlock,
        HookEvent::PostToolUseFailure
        | HookEvent::Notification
        | HookEvent::SessionStart
        | HookEvent::SessionEnd
        | HookEvent::StopFailure
        | HookEvent::SubagentStart
        | HookEvent::PostCompact
        | HookEvent::PostModelSwitch
        | HookEvent::PermissionDenied
        | HookEvent::Setup
        | HookEvent::WorktreeRemove
        | HookEvent::InstructionsLoaded
        | HookEvent::CwdChanged
        | HookEvent::FileChanged
        | HookEvent::DirectoryAdded => Stance::Observes,
        // What it is for is not known, so it may well guard something.
        _ => Stance::Guards,
    }
}

/// Whether the CLI heeds `onFailure` at this event.
pub(super) fn heeds_on_failure(event: &HookEvent) -> bool {
    !matches!(
        event,
        HookEvent::Stop | HookEvent::SubagentStop | HookEvent::TaskCompleted | HookEvent::TeammateIdle
    )
}

/// The answer by which a hook of this event refuses; no opinion where nothing can be refused. `input` is what the CLI told, if
/// that is known.
pub(super) fn refusal(event: &HookEvent, input: Option<&RawJson>, why: &str) -> AnyHookOutput {
    match event {
        HookEvent::PreToolUse => {
            HookOutput::<event::PreToolUse>::specific(PreToolUseOutput::deny(why)).into()
        }
        HookEvent::PermissionRequest => HookOutput::<event::PermissionRequest>::specific(
            PermissionRequestDecision::Deny(PermissionRequestDeny::default().message(why)).into(),
        )
        .into(),
        HookEvent::PreModelSwitch => {
            let denied = PreModelSwitchOutput::default()
                .permission_decision(PreModelSwitchDecision::Deny)
                .permission_decision_reason(why);
            HookOutput::<event::PreModelSwitch>::specific(denied).into()
        }
        // The CLI goes by `decision` here; `action` is what the protocol documents.
        HookEvent::Elicitation => HookOutput::<event::Elicitation>::block(why)
            .and_specific(ElicitationOutput::default().action(ElicitationAction::Decline))
            .into(),
        HookEvent::ElicitationResult => HookOutput::<event::ElicitationResult>::block(why)
            .and_specific(ElicitationOutput::default().action(ElicitationAction::Decline))
            .into(),
        HookEvent::PostToolUse => withheld(input, why),
        HookEvent::MessageDisplay => {
            let shown = format!("[withheld: {why}]");
            HookOutput::<event::MessageDisplay>::specific(
                MessageDisplayOutput::default().display_content(shown),
            )
            .into()
        }
        // Otherwise a hook that always fails would keep the turn going for ever.
        HookEvent::Stop | HookEvent::SubagentStop if goes_on_by_a_hook(input) => nothing(),
        event if stance(event) == Stance::Observes => nothing(),
        _ => block::<event::UserPromptSubmit>(why),
    }
}

/// No opinion.
pub(super) fn nothing() -> AnyHookOutput {
    HookOutput::<event::Stop>::none().into()
}

/// The refusal that names no event, and so is the same for all.
fn block<E: HookKind>(why: &str) -> AnyHookOutput {
    HookOutput::<E>::block(why).into()
}

/// Keeps from the model what a tool gave, as far as that can be done: the texts in it are replaced, since the CLI takes only what
/// has the shape of the tool's own output, and the turn ends.
fn withheld(input: Option<&RawJson>, why: &str) -> AnyHookOutput {
    #[derive(Deserialize)]
    struct Given {
        tool_response: RawJson,
    }
    let mut output = HookOutput::<event::PostToolUse>::block(why).common(|common| {
        common.r#continue = Some(false);
        common.stop_reason = Some(why.to_owned());
    });
    if let Some(given) = input.and_then(|input| input.decode::<Given>().ok()) {
        let notice = format!("[withheld: {why}]");
        if let Some(masked) = mask::texts(&given.tool_response, &notice) {
            output = output.and_specific(PostToolUseOutput::default().updated_tool_output(masked));
        }
    }
    output.into()
}

fn goes_on_by_a_hook(input: Option<&RawJson>) -> bool {
    #[derive(Deserialize)]
    struct Told {
        stop_hook_active: bool,
    }
    // If it can't be read, it may be so.
    input.is_none_or(|input| input.decode::<Told>().map_or(true, |told| told.stop_hook_active))
}

/// What the CLI compares a matcher with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The tool's name.
    Tool,
    /// Something else that the event has.
    Other,
    /// Nothing: it is called whatever the matcher is.
    None,
    /// It depends on what the event is, which is not known.
    Unknown,
}

pub(super) fn subject(event: &HookEvent) -> Subject {
    match event {
        HookEvent::PreToolUse
        | HookEvent::PostToolUse
        | HookEvent::PostToolUseFailure
        | HookEvent::PermissionRequest
        | HookEvent::PermissionDenied => Subject::Tool,
        HookEvent::PostToolBatch
        | HookEvent::UserPromptSubmit
        | HookEvent::Stop
        | HookEvent::TeammateIdle
        | HookEvent::TaskCreated
        | HookEvent::TaskCompleted
        | HookEvent::WorktreeCreate
        | HookEvent::WorktreeRemove
        | HookEvent::CwdChanged
        | HookEvent::MessageDisplay => Subject::None,
        HookEvent::Other(_) => Subject::Unknown,
        _ => Subject::Other,
    }
}
