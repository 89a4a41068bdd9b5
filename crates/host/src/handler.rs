//! What decides about tool calls of a session: the operator's code, then people.

use std::sync::{Arc, OnceLock};

use outrigger::permissions::rules::Rules;
use outrigger::permissions::{
    self, Layer, Opinion, PermissionDecision, PermissionHandler, PermissionRequest,
};

use outrigger::hooks::{self, Hook, HookOutput, PreToolUseInput, PreToolUseOutput};
use outrigger::protocol::Frame;
use outrigger::{CallbackReply, ElicitationResult, Options, SessionId};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

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
    /// Fires when the CLI does not wait any more.
    pub(crate) withdrawn: CancellationToken,
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

/// The channels to the owner of a process.
#[derive(Debug)]
pub(crate) struct ToOwner {
    /// The ids of requests that are for people.
    pub(crate) for_people: mpsc::Sender<String>,
    pub(crate) hooks: mpsc::Sender<HookRequest>,
}

/// The owner of a process, whom its handlers ask. A spare has none before its claim, and everything that it asks is denied.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnerSlot(Arc<OnceLock<ToOwner>>);

impl OwnerSlot {
    /// The process has this owner from now on. Only the first one counts.
    pub(crate) fn take(&self, owner: ToOwner) {
        drop(self.0.set(owner));
    }

    fn owner(&self) -> Option<&ToOwner> {
        self.0.get()
    }
}

/// Why a spare may do nothing.
const NO_OWNER: &str = "Nobody can be asked: the process has no session yet.";

/// The options with the handlers of a host: for a session's process, and for a spare.
pub(crate) fn with_handlers(
    policy: &HostPolicy,
    options: Options,
    session: &SessionId,
    seat: &OwnerSlot,
    deferred: Option<&str>,
) -> Options {
    let asked = seat.clone();
    let options = options
        .permissions(of(policy, seat.clone()))
        .elicitation(move |_| {
            let has_owner = asked.owner().is_some();
            async move {
                match has_owner {
                    true => CallbackReply::Parked,
                    false => ElicitationResult::Decline.into(),
                }
            }
        });
    match deferred {
        Some(matcher) => options.hook(hook(policy, session.clone(), matcher, seat.clone())),
        None => options,
    }
}

/// The hook that leaves calls open for people. The operator's code decides before.
fn hook(
    policy: &HostPolicy,
    session: SessionId,
    matcher: &str,
    seat: OwnerSlot,
) -> Hook<hooks::event::PreToolUse> {
    let first = policy.decides_first.clone();
    let hook = hooks::pre_tool_use(move |input: PreToolUseInput, context| {
        let (first, session, seat) = (first.clone(), session.clone(), seat.clone());
        before_call(input, context.cancelled().clone(), first, session, seat)
    });
    hook.matcher(matcher)
}

async fn before_call(
    input: PreToolUseInput,
    withdrawn: CancellationToken,
    first: Option<Arc<dyn Layer>>,
    session: SessionId,
    seat: OwnerSlot,
) -> HookOutput<hooks::event::PreToolUse> {
    let deny = |why: &str| HookOutput::specific(PreToolUseOutput::deny(why));
    let Some(owner) = seat.owner() else {
        return deny(NO_OWNER);
    };
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
        withdrawn,
        reply,
    };
    // An owner that is gone has killed the process, or does so.
    let gone = "Nobody can be asked about this call: the host closes.";
    if owner.hooks.send(asked).await.is_err() {
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
fn of(policy: &HostPolicy, seat: OwnerSlot) -> impl PermissionHandler + use<> {
    let first = policy.decides_first.clone();
    let is_alone = first.is_none();
    permissions::chain()
        .layer(
            "policy",
            First {
                layer: first,
                seat: seat.clone(),
            },
        )
        .last("people", Inbox { seat, is_alone })
}

/// Leaves every question to the inbox.
struct Inbox {
    seat: OwnerSlot,
    /// Whether nothing decides before, so that the owner knows that every request is for people.
    is_alone: bool,
}

impl PermissionHandler for Inbox {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async move {
            let Some(owner) = self.seat.owner() else {
                return PermissionDecision::deny(NO_OWNER);
            };
            if !self.is_alone {
                // An owner that is gone has superseded the question.
                drop(owner.for_people.send(request.id().to_string()).await);
            }
            PermissionDecision::Parked
        })
    }

    fn answers_questions(&self) -> bool {
        true
    }
}

/// The operator's own code, if there is any.
struct First {
    layer: Option<Arc<dyn Layer>>,
    seat: OwnerSlot,
}

impl Layer for First {
    fn consider<'a>(&'a self, request: &'a PermissionRequest) -> BoxFuture<'a, (Opinion, Option<String>)> {
        match &self.layer {
            // Without an owner the inbox denies.
            Some(layer) if self.seat.owner().is_some() => layer.consider(request),
            _ => Box::pin(async { (Opinion::Pass, None) }),
        }
    }

    fn rules(&self) -> Rules {
        self.layer.as_ref().map(|layer| layer.rules()).unwrap_or_default()
    }

    fn only_has_rules(&self) -> bool {
        self.layer.as_ref().is_none_or(|layer| layer.only_has_rules())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::atomic::{AtomicUsize, Ordering};

    use outrigger::Agent;
    use outrigger::permissions::layer;
    use serde_json::json;

    use super::*;

    fn request() -> PermissionRequest {
        let line = json!({
            "type": "control_request", "request_id": "r", "request": {
                "subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t",
            },
        });
        let frames = Frame::from_line(line.to_string());
        PermissionRequest::from_frame(&frames[0]).unwrap()
    }

    fn input() -> PreToolUseInput {
        let input = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "/t", "cwd": "/", "tool_name": "Bash",
            "tool_input": {"command": "ls"}, "tool_use_id": "t",
        });
        serde_json::from_value(input).unwrap()
    }

    #[tokio::test]
    async fn a_process_without_an_owner_may_do_nothing() {
        let mut policy = HostPolicy::new(Agent::builder(), ["/"]);
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        policy.decides_first = Some(Arc::new(layer(move |_: PermissionRequest| {
            let is_first = counter.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                match is_first {
                    true => Opinion::Decided(PermissionDecision::allow()),
                    false => Opinion::Pass,
                }
            }
        })));
        let seat = OwnerSlot::default();
        let handler = of(&policy, seat.clone());
        let denied = |decision: &PermissionDecision| matches!(decision, PermissionDecision::Deny(deny) if deny.message == NO_OWNER);
        assert!(denied(&handler.decide(request()).await));
        assert_eq!(
            asked.load(Ordering::Relaxed),
            0,
            "the operator's code would allow it"
        );
        let hooked = before_call(
            input(),
            CancellationToken::new(),
            policy.decides_first.clone(),
            SessionId::random(),
            seat.clone(),
        );
        let hooked = format!("{:?}", hooked.await);
        assert!(hooked.contains("Deny") && hooked.contains(NO_OWNER), "{hooked}");

        let (for_people, mut asks) = mpsc::channel(1);
        let (hooks, _) = mpsc::channel(1);
        seat.take(ToOwner { for_people, hooks });
        assert!(matches!(
            handler.decide(request()).await,
            PermissionDecision::Allow(_)
        ));
        assert!(matches!(
            handler.decide(request()).await,
            PermissionDecision::Parked
        ));
        assert_eq!(asks.recv().await.unwrap(), "r");

        // Nobody else can sit down.
        let (for_people, mut others) = mpsc::channel(1);
        let (hooks, _) = mpsc::channel(1);
        seat.take(ToOwner { for_people, hooks });
        assert!(matches!(
            handler.decide(request()).await,
            PermissionDecision::Parked
        ));
        assert!(others.try_recv().is_err() && asks.try_recv().is_ok());
    }
}
