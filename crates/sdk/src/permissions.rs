//! Permission requests: decides whether a tool call may run.

mod explanation;
mod layers;
mod person;
mod plan_approval;
mod policy;
mod policy_file;
mod question;
mod request;
pub mod rules;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use outrigger_protocol::shared::{
    PermissionAllow, PermissionDecisionClassification, PermissionDeny, PermissionResult, PermissionUpdate,
};

use outrigger_protocol::shared::JsonObject;
use outrigger_protocol::{Frame, RawJson};

pub use self::explanation::{Decider, DecisionStep, Explanation, Warning};
pub use self::layers::{
    Chain, Decided, DecidedBy, Foreseen, Layer, Opinion, Outlook, Sink, chain, layer, record,
};
pub use self::person::{PersonReply, one_at_a_time};
pub use self::plan_approval::{PlanReply, PlanRequest};
pub use self::policy::{Policy, PolicyDefault, PolicyError};
pub use self::policy_file::PolicyFile;
pub use self::question::{Answers, QuestionReply, QuestionRequest};
pub use self::request::PermissionRequest;
use crate::callback_kind::Callback;
use crate::conn::cli_requests::{Answerer, CliReply, CliRequest};
use crate::deadline::{NoResult, in_time};
use crate::peer::BoxFuture;
use crate::rule::{About, Rule, refused_change};

/// Decides about the tool calls for which the CLI requests permission.
///
/// The CLI requests permission only for calls that its own rules and mode leave open: calls that a rule or `bypassPermissions`
/// allows or denies never get here. Each request has a task of its own, so a handler may take hours; the CLI sets no limit, and
/// [`Options::permission_deadline`](crate::Options::permission_deadline) can set one. When the CLI withdraws its request (an
/// interrupt, a hook that decided first), the SDK drops the future. A handler that panics, fails or misses the deadline denies the
/// call. The SDK also denies a call if the handler allows it with a change that removes rules of the session's start
/// (`removeRules` or `replaceRules` of `cliArg`, unless those rules allow), with an allow rule that the CLI could read more
/// widely than it looks ([`Rule::check_allow`](rules::Rule::check_allow)), or with another input, if a rule of the session that denies is
/// about the tool: the CLI applies no rule to that input, as it does to one that a `PreToolUse` hook returns.
///
/// A [`Policy`] is a handler, a [`chain`] makes a handler of several, and an async function or closure is one if it takes a
/// [`PermissionRequest`] and its output converts into a [`PermissionDecision`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not decide about tool calls",
    label = "neither a policy nor an async closure from `PermissionRequest` to a decision",
    note = "give a `Policy`, a `chain()` or an `async fn(PermissionRequest) -> PermissionDecision` to `.permissions(…)`, and a bare \
            async closure to `.can_use_tool(async |request| …)`"
)]
pub trait PermissionHandler: Send + Sync + 'static {
    /// Decides about one call.
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision>;

    /// Whether the handler also answers the model's questions to the user (`AskUserQuestion`), by allowing the call with the
    /// answers in its input. If neither it nor [`Options::questions`](crate::Options::questions) does, the model does not get that
    /// tool.
    fn answers_questions(&self) -> bool {
        false
    }

    /// As [`decide`](Self::decide), and reports what decided: the layer of a [`chain`], the rule of a [`Policy`]. [`record`] calls it.
    fn decide_and_tell<'a>(
        &'a self,
        request: PermissionRequest,
    ) -> BoxFuture<'a, (PermissionDecision, DecidedBy)> {
        Box::pin(async { (self.decide(request).await, DecidedBy::default()) })
    }

    /// What the handler would decide about a call, as far as that is known without calling it.
    /// [`Options::explain`](crate::Options::explain) calls this.
    fn foresee(&self, tool: &str, input: &RawJson) -> Foreseen {
        let _ = (tool, input);
        Foreseen::unknown("the permission handler decides when it is asked")
    }

    /// Rules that the CLI evaluates for this handler before it requests permission: those of a [`Policy`], or of the policies in a
    /// [`chain`]. The SDK calls this whenever it starts a process for the session, and passes the rules to the CLI. Rules that change
    /// later do not reach that process; a policy with such rules allows nothing there.
    fn rules(&self) -> rules::Rules {
        rules::Rules::default()
    }
}

/// The decision of a [`PermissionHandler`] about a call.
#[derive(Debug, Clone)]
pub enum PermissionDecision {
    /// The call runs.
    Allow(PermissionAllow),
    /// The call is denied.
    Deny(PermissionDeny),
    /// The request stays open, for a later [`Session::decide`](crate::Session::decide) with its id. Until then it is in
    /// [`Session::pending`](crate::Session::pending). There is no deadline.
    Parked,
}

impl PermissionDecision {
    /// Allows the call as the model made it.
    pub fn allow() -> Self {
        Self::Allow(PermissionAllow::default())
    }

    /// Denies the call; the model reads `message` as the tool's result.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::Deny(PermissionDeny::new(message))
    }

    /// Whether the call runs.
    pub fn is_allow(&self) -> bool {
        matches!(self, Self::Allow(_))
    }
}

impl From<PermissionResult> for PermissionDecision {
    fn from(result: PermissionResult) -> Self {
        match result {
            PermissionResult::Allow(allow) => Self::Allow(allow),
            PermissionResult::Deny(deny) => Self::Deny(deny),
        }
    }
}

impl From<PermissionAllow> for PermissionDecision {
    fn from(allow: PermissionAllow) -> Self {
        Self::Allow(allow)
    }
}

impl From<PermissionDeny> for PermissionDecision {
    fn from(deny: PermissionDeny) -> Self {
        Self::Deny(deny)
    }
}

/// An error denies the call; the model reads its text.
impl<D: Into<PermissionDecision>, E: fmt::Display> From<Result<D, E>> for PermissionDecision {
    fn from(result: Result<D, E>) -> Self {
        match result {
            Ok(decision) => decision.into(),
            Err(error) => Self::deny(format!("the permission handler failed: {error}")),
        }
    }
}

/// An async function, or an async closure that names the type of its argument.
///
/// ```
/// use outrigger::permissions::{chain, PermissionRequest, PermissionResult, Policy};
///
/// async fn by_hand(request: PermissionRequest) -> PermissionResult {
///     if request.tool_name == "Read" { PermissionResult::allow() } else { PermissionResult::deny("only reading, please") }
/// }
///
/// let handler = chain().layer("rules", Policy::ask_all().deny(["Read(.env)"])).last("by hand", by_hand);
/// # let _ = handler;
/// ```
///
/// # Cancel safety
/// The SDK drops the future when the CLI withdraws its request, and when the session ends; then it sends no reply.
impl<F, R> PermissionHandler for F
where
    F: Fn(PermissionRequest) -> R + Send + Sync + 'static,
    R: Future<Output: Into<PermissionDecision>> + Send + 'static,
{
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        // The function may panic before it has made its future: that is caught where this one is polled.
        Box::pin(async move { self(request).await.into() })
    }
}

impl PermissionHandler for Arc<dyn PermissionHandler> {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        (**self).decide(request)
    }

    fn answers_questions(&self) -> bool {
        (**self).answers_questions()
    }

    fn decide_and_tell<'a>(
        &'a self,
        request: PermissionRequest,
    ) -> BoxFuture<'a, (PermissionDecision, DecidedBy)> {
        (**self).decide_and_tell(request)
    }

    fn foresee(&self, tool: &str, input: &RawJson) -> Foreseen {
        (**self).foresee(tool, input)
    }

    fn rules(&self) -> rules::Rules {
        (**self).rules()
    }
}

/// Answers `can_use_tool`.
#[derive(Clone)]
pub(crate) struct Permissions {
    pub(crate) handler: Arc<dyn PermissionHandler>,
    /// Answers questions to the user; the handler if `None`.
    pub(crate) questions: Option<Callback<QuestionRequest, QuestionReply>>,
    /// Decides about plans; the handler if `None`.
    pub(crate) plans: Option<Callback<PlanRequest, PermissionDecision>>,
    /// Knows plans that were decided already.
    pub(crate) plans_first: Option<DecidedPlans>,
    /// The deadline of each; none if `None`.
    pub(crate) deadline: Option<Duration>,
}

/// The reply to a plan that was decided already.
pub(crate) type DecidedPlans = Arc<dyn Fn(&PlanRequest) -> Option<PlanReply> + Send + Sync>;

impl Answerer for Permissions {
    fn accept(&self, asking: CliRequest) -> BoxFuture<'static, CliReply> {
        let permissions = self.clone();
        Box::pin(async move {
            let CliRequest { frame, context } = asking;
            let deadline = permissions
                .deadline
                .map(|deadline| (deadline, context.cancelled().clone()));
            let request = match PermissionRequest::read(&frame, context) {
                Ok(request) => request,
                Err(reason) => {
                    return refused(format!(
                        "the permission request could not be read, so it is denied: {reason}"
                    ));
                }
            };
            let call = DecidedCall::of(&request);
            let deciding = async move { permissions.decide(request).await };
            let decision = match deadline {
                None => deciding.await,
                Some((deadline, cancelled)) => {
                    let decided = in_time(deadline, deciding).await;
                    decided.map_err(NoResult::unwind).unwrap_or_else(|_| {
                        cancelled.cancel();
                        PermissionDecision::deny(format!("no decision within {deadline:?}"))
                    })
                }
            };
            match decision {
                PermissionDecision::Parked => CliReply::Parked,
                PermissionDecision::Allow(allow) => call.answer(allow.into()),
                PermissionDecision::Deny(deny) => call.answer(deny.into()),
            }
        })
    }

    fn refuse(&self, _: &Frame, why: &str) -> CliReply {
        refused(why)
    }
}

impl Permissions {
    async fn decide(&self, request: PermissionRequest) -> PermissionDecision {
        if let Some(questions) = &self.questions
            && let Some(asked) = QuestionRequest::of(&request)
        {
            return questions(asked).await.into();
        }
        if let Some(decided) = &self.plans_first
            && let Some(plan) = PlanRequest::of(&request)
            && let Some(reply) = decided(&plan)
        {
            return reply.into();
        }
        if let Some(plans) = &self.plans
            && let Some(plan) = PlanRequest::of(&request)
        {
            return plans(plan).await;
        }
        self.handler.decide(request).await
    }
}

fn refused(why: impl Into<String>) -> CliReply {
    CliReply::success(&PermissionResult::deny(why))
}

/// What is known of a call when its decision is written.
pub(crate) struct DecidedCall {
    tool_use_id: Option<String>,
    is_question: bool,
    input: RawJson,
    /// The changes that the CLI suggested.
    suggestions: Vec<PermissionUpdate>,
    /// Of the rules that deny, one that could be about this tool with another input.
    denied_by: Option<String>,
}

/// The first of the session's rules that deny some calls of this tool.
fn denying_rule(request: &PermissionRequest) -> Option<String> {
    let Some(session) = request.context.session() else {
        return Some("any, while the session begins".to_owned());
    };
    let options = session.origin();
    let handed = options.hosting.handlers.rules();
    let set = options
        .disallowed_tools
        .iter()
        .filter_map(|rule| rule.parse().ok());
    let mut all = handed.deny.iter().cloned().chain(set);
    all.find(|rule: &Rule| rule.about(&request.tool_name) != About::None)
        .map(|rule| format!("`{rule}`"))
}

impl DecidedCall {
    pub(crate) fn of(request: &PermissionRequest) -> Self {
        Self {
            tool_use_id: request.tool_use_id.clone(),
            is_question: request.tool_name == QUESTION,
            input: request.input.clone(),
            suggestions: request.suggestions.clone(),
            denied_by: denying_rule(request),
        }
    }

    /// The reply for a decision. A decision that the CLI would reject or misread becomes a denial with the reason.
    pub(crate) fn answer(self, result: PermissionResult) -> CliReply {
        let result = match result {
            PermissionResult::Allow(mut allow) => match self.misread(&allow) {
                Some(why) => self.denial(PermissionDeny::new(why)),
                None => {
                    // Older CLIs take no allowance without the input, and all of them take one with it.
                    if keeps_input(&allow) {
                        allow.updated_input = JsonObject::try_from(self.input).ok();
                    }
                    allow.tool_use_id = self.tool_use_id;
                    allow.into()
                }
            },
            PermissionResult::Deny(deny) => self.denial(deny),
        };
        CliReply::success(&result)
    }

    /// Whether the call runs with the input that the CLI has judged.
    fn keeps(&self, allow: &PermissionAllow) -> bool {
        let same = |input: &JsonObject| {
            let (new, old) = (input.as_raw(), &self.input);
            new.get() == old.get()
                || new
                    .to_value()
                    .is_ok_and(|new| old.to_value().is_ok_and(|old| old == new))
        };
        keeps_input(allow) || allow.updated_input.as_ref().is_some_and(same)
    }

    fn denial(self, mut deny: PermissionDeny) -> PermissionResult {
        deny.tool_use_id = self.tool_use_id;
        deny.into()
    }

    /// Why the CLI would misread an allowance.
    fn misread(&self, allow: &PermissionAllow) -> Option<String> {
        let updates = allow.updated_permissions.as_deref().unwrap_or_default();
        if updates.len() > PermissionUpdate::LIMIT {
            return Some(format!(
                "the permission handler allowed this with {} changes of permissions, but the CLI takes {} at most",
                updates.len(),
                PermissionUpdate::LIMIT
            ));
        }
        let refused = updates
            .iter()
            .find_map(|update| refused_change(update, &self.suggestions));
        if let Some(why) = refused {
            return Some(format!("the permission handler allowed this {why}"));
        }
        if let Some(rule) = &self.denied_by
            && !self.is_question
            && !self.keeps(allow)
        {
            return Some(format!(
                "the permission handler changed the input, and the CLI does not apply rules that deny (here {rule}) to an input that \
                 comes with an answer: change it in a `PreToolUse` hook"
            ));
        }
        (self.is_question && !has_answers(allow)).then(|| question::UNANSWERED.to_owned())
    }
}

/// Whether the call runs with its own input.
fn keeps_input(allow: &PermissionAllow) -> bool {
    let is_empty = |input: &JsonObject| {
        let text = input.get().bytes();
        text.filter(|byte| !byte.is_ascii_whitespace()).eq(*b"{}")
    };
    allow.updated_input.as_ref().is_none_or(is_empty)
}

fn has_answers(allow: &PermissionAllow) -> bool {
    let input = allow.updated_input.as_ref();
    let fields = input.and_then(|input| input.as_raw().decode::<BTreeMap<String, RawJson>>().ok());
    fields.is_some_and(|fields| fields.contains_key("answers"))
}

/// The tool by which the model puts questions to the user.
pub(crate) const QUESTION: &str = "AskUserQuestion";

/// The tool by which the model requests approval of a plan.
pub(crate) const PLAN: &str = "ExitPlanMode";
