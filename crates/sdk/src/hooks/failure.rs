//! What the failure of a hook means, by event, and the outputs that refuse.

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::hook::{
    AnyHookOutput, ElicitationAction, ElicitationOutput, HookKind, HookOutput, MessageDisplayOutput,
    PermissionRequestDecision, PermissionRequestDeny, PermissionRequestOutput, PostToolUseOutput,
    PreModelSwitchDecision, PreModelSwitchOutput, PreSkillShellCommandOutput, PreToolUseOutput, event,
};
use serde::Deserialize;

use super::{OnFailure, withheld};

/// Makes the output by which a hook refuses. Its arguments are the input of the hook, if that is known, and the reason.
pub(super) type RefusalOutput = fn(Option<&RawJson>, &str) -> AnyHookOutput;

/// What a failure of a hook means, by what its event is for.
#[derive(Clone, Copy)]
pub(super) enum Failure {
    /// The hook guards something dangerous: a failure refuses unless set otherwise.
    Guards(RefusalOutput),
    /// The hook can refuse, and a refusal by accident costs more than it saves: a turn that may not end, a conversation that is not
    /// compacted. Nothing of that lets the agent do more. A failure refuses if set so.
    MayBlock(RefusalOutput),
    /// As `MayBlock`, at an event for which the CLI has no `onFailure` of its own.
    MayBlockHere(RefusalOutput),
    /// Nothing depends on the output of the hook.
    Observes,
}

impl Failure {
    /// What a failure means unless set otherwise.
    pub(super) fn by_default(self) -> OnFailure {
        match self {
            Self::Guards(_) => OnFailure::Block,
            Self::MayBlock(_) | Self::MayBlockHere(_) | Self::Observes => OnFailure::Continue,
        }
    }

    /// Whether the CLI has an `onFailure` of its own for the event.
    pub(super) fn has_switch(self) -> bool {
        matches!(self, Self::Guards(_) | Self::MayBlock(_))
    }

    /// The output that refuses, or that decides nothing where nothing can be refused.
    pub(super) fn refusal(self, input: Option<&RawJson>, why: &str) -> AnyHookOutput {
        match self {
            Self::Guards(refusal) | Self::MayBlock(refusal) | Self::MayBlockHere(refusal) => {
                refusal(input, why)
            }
            Self::Observes => nothing(),
        }
    }
}

/// The output that decides nothing.
pub(super) fn nothing() -> AnyHookOutput {
    HookOutput::<event::Stop>::none().into()
}

pub(super) fn block<E: HookKind>(_: Option<&RawJson>, why: &str) -> AnyHookOutput {
    HookOutput::<E>::block(why).into()
}

/// Blocks unless the turn goes on because of a hook already: otherwise a hook that always fails would keep it going for ever.
pub(super) fn block_once<E: HookKind>(input: Option<&RawJson>, why: &str) -> AnyHookOutput {
    #[derive(Deserialize)]
    struct Input {
        stop_hook_active: bool,
    }
    // An input that cannot be read may be of such a turn.
    let is_active = input.is_none_or(|input| {
        input
            .decode::<Input>()
            .map_or(true, |input| input.stop_hook_active)
    });
    if is_active {
        nothing()
    } else {
        block::<E>(input, why)
    }
}

/// The CLI goes by `decision` here; `action` is what the protocol documents.
pub(super) fn decline<E: HookKind<Output = ElicitationOutput>>(
    _: Option<&RawJson>,
    why: &str,
) -> AnyHookOutput {
    let declined = ElicitationOutput::default().action(ElicitationAction::Decline);
    HookOutput::<E>::block(why).and_specific(declined).into()
}

pub(super) fn deny_call<E: HookKind<Output = PreToolUseOutput>>(
    _: Option<&RawJson>,
    why: &str,
) -> AnyHookOutput {
    HookOutput::<E>::specific(PreToolUseOutput::deny(why)).into()
}

pub(super) fn deny_permission<E: HookKind<Output = PermissionRequestOutput>>(
    _: Option<&RawJson>,
    why: &str,
) -> AnyHookOutput {
    let denied = PermissionRequestDecision::Deny(PermissionRequestDeny::default().message(why));
    HookOutput::<E>::specific(denied.into()).into()
}

pub(super) fn deny_command<E: HookKind<Output = PreSkillShellCommandOutput>>(
    _: Option<&RawJson>,
    why: &str,
) -> AnyHookOutput {
    HookOutput::<E>::specific(PreSkillShellCommandOutput::deny(why)).into()
}

pub(super) fn deny_model<E: HookKind<Output = PreModelSwitchOutput>>(
    _: Option<&RawJson>,
    why: &str,
) -> AnyHookOutput {
    let denied = PreModelSwitchOutput::default()
        .permission_decision(PreModelSwitchDecision::Deny)
        .permission_decision_reason(why);
    HookOutput::<E>::specific(denied).into()
}

pub(super) fn withhold_text<E: HookKind<Output = MessageDisplayOutput>>(
    _: Option<&RawJson>,
    why: &str,
) -> AnyHookOutput {
    let shown = format!("[withheld: {why}]");
    HookOutput::<E>::specific(MessageDisplayOutput::default().display_content(shown)).into()
}

/// Replaces the texts in the output of the tool, and ends the turn. Only an output of the tool's own shape reaches the model.
pub(super) fn withhold_output<E: HookKind<Output = PostToolUseOutput>>(
    input: Option<&RawJson>,
    why: &str,
) -> AnyHookOutput {
    #[derive(Deserialize)]
    struct Input {
        tool_response: RawJson,
    }
    let mut output = HookOutput::<E>::block(why).common(|common| {
        common.r#continue = Some(false);
        common.stop_reason = Some(why.to_owned());
    });
    if let Some(input) = input.and_then(|input| input.decode::<Input>().ok()) {
        let notice = format!("[withheld: {why}]");
        if let Some(replaced) = withheld::replace_texts(&input.tool_response, &notice) {
            output = output.and_specific(PostToolUseOutput::default().updated_tool_output(replaced));
        }
    }
    output.into()
}
