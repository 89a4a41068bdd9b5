//! What decides about tool calls of a session: the operator's code, then people.

use std::sync::Arc;

use outrigger::permissions::rules::Rules;
use outrigger::permissions::{
    self, Layer, Opinion, PermissionDecision, PermissionHandler, PermissionRequest,
};

use outrigger::SessionId;
use outrigger::hooks::{self, Hook, HookOutput, PreToolUseInput, PreToolUseOutput};
use outrigger::protocol::Frame;
use tokio::sync::{mpsc, oneshot};

use crate::approval::Approval;
use crate::log::BoxFuture;
use crate::policy::HostPolicy;
use crate::wire;

/// A call that is about to be made, and that people decide about while no process needs to run.
pub(crate) struct HookRequest {
    /// The approval that it would be.
    pub(crate) approval: Box<Approval>,
    /// Whether a subagent makes the call. Such a call cannot be left open.
    pub(crate) is_of_subagent: bool,
    /// Whether a prompt of this process led to the call.
    pub(crate) has_prompt: bool,
    pub(crate) reply: oneshot::Sender<HookReply>,
}

/// What the CLI does with the call.
#[derive(Debug)]
pub(crate) enum HookReply {
    /// The turn ends, and the call is left open.
    Defer,
    /// Its permission handler decides, whatever rules allow.
    Ask,
}

/// The hook that leaves calls open for people. The operator's code decides before.
pub(crate) fn hook(
    policy: &HostPolicy,
    session: SessionId,
    matcher: &str,
    to_owner: mpsc::Sender<HookRequest>,
) -> Hook<hooks::event::PreToolUse> {
    let first = policy.decides_first.clone();
    let hook = hooks::pre_tool_use(move |input: PreToolUseInput, _| {
        let (first, session, to_owner) = (first.clone(), session.clone(), to_owner.clone());
        before_call(input, first, session, to_owner)
    });
    hook.matcher(matcher)
}

async fn before_call(
    input: PreToolUseInput,
    first: Option<Arc<dyn Layer>>,
    session: SessionId,
    to_owner: mpsc::Sender<HookRequest>,
) -> HookOutput<hooks::event::PreToolUse> {
    let deny = |why: &str| HookOutput::specific(PreToolUseOutput::deny(why));
    let call = input.tool_use_id.as_deref();
    let approval = call.and_then(|call| wire::deferred(&session, &input.tool_name, call, &input.tool_input));
    let Some(approval) = approval else {
        return deny("Nobody can be asked about this call: the CLI does not name it.");
    };
    if let Some(first) = first {
        let frames = Frame::from_line(approval.request.get());
        let request = frames.first().map(PermissionRequest::from_frame);
        let Some(Ok(request)) = request else {
            return deny("Nobody can be asked about this call: it cannot be read.");
        };
        match first.consider(&request).await.0 {
            Opinion::Decided(PermissionDecision::Deny(denied)) => return deny(&denied.message),
            // Rules decide, and then the code is asked again.
            Opinion::Decided(PermissionDecision::Allow(_)) => return HookOutput::none(),
            Opinion::Decided(PermissionDecision::Parked) | Opinion::Ask | Opinion::Pass => {}
        }
    }
    let (reply, answer) = oneshot::channel();
    let asked = HookRequest {
        approval: Box::new(approval),
        is_of_subagent: input.agent_id.is_some(),
        has_prompt: input.prompt_id.is_some(),
        reply,
    };
    // An owner that is gone has killed the process, or does so.
    let gone = "Nobody can be asked about this call: the host closes.";
    if to_owner.send(asked).await.is_err() {
        return deny(gone);
    }
    match answer.await {
        Ok(HookReply::Defer) => HookOutput::specific(PreToolUseOutput::defer()),
        Ok(HookReply::Ask) => {
            HookOutput::specific(PreToolUseOutput::ask("the operator wants people to decide"))
        }
        Err(_) => deny(gone),
    }
}

/// The handler of a session. If the operator's code decides first, the handler sends the ids of the requests that are for people.
pub(crate) fn of(policy: &HostPolicy, for_people: mpsc::Sender<String>) -> impl PermissionHandler + use<> {
    let first = First(policy.decides_first.clone());
    let for_people = first.0.is_some().then_some(for_people);
    permissions::chain()
        .layer("policy", first)
        .last("people", Inbox(for_people))
}

/// Leaves every question to the inbox.
struct Inbox(Option<mpsc::Sender<String>>);

impl PermissionHandler for Inbox {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async move {
            if let Some(for_people) = &self.0 {
                // An owner that is gone has superseded the question.
                drop(for_people.send(request.id().to_string()).await);
            }
            PermissionDecision::Parked
        })
    }

    fn answers_questions(&self) -> bool {
        true
    }
}

/// The operator's own code, if there is any.
struct First(Option<Arc<dyn Layer>>);

impl Layer for First {
    fn consider<'a>(&'a self, request: &'a PermissionRequest) -> BoxFuture<'a, (Opinion, Option<String>)> {
        match &self.0 {
            Some(layer) => layer.consider(request),
            None => Box::pin(async { (Opinion::Pass, None) }),
        }
    }

    fn rules(&self) -> Rules {
        self.0.as_ref().map(|layer| layer.rules()).unwrap_or_default()
    }

    fn only_has_rules(&self) -> bool {
        self.0.as_ref().is_none_or(|layer| layer.only_has_rules())
    }
}
