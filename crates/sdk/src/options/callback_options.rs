//! The options for callbacks.

use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::inbound::{HostAuthTokenRefresh, OauthTokenRefresh};
use outrigger_protocol::outbound::{
    ElicitationResult, HostAuthTokenAnswer, OauthTokenAnswer, UserDialogResult,
};

use super::Options;
use crate::callback_kind::{Callback, CallbackReply, callback};
use crate::callbacks::{Callbacks, Handlers, Whole};
use crate::dialog::{DialogCallback, DialogRequest};
use crate::elicitation::ElicitationRequest;
use crate::permissions::{
    PermissionDecision, PermissionHandler, PermissionRequest, PlanReply, PlanRequest, QUESTION,
    QuestionReply, QuestionRequest,
};
use crate::token::TokenRequest;

/// The tool by which the model enters plan mode, without a request.
const ENTER_PLAN: &str = "EnterPlanMode";

impl Handlers {
    /// Whether somebody decides about plans, or about calls in plan mode.
    pub(super) fn decides_in_plan_mode(&self) -> bool {
        self.permissions_set || self.plans.is_some() || self.plans_first.is_some()
    }

    /// The callbacks that the launch has to announce.
    pub(crate) fn announced(&self, mut options: Options, asks_host: bool) -> Options {
        let mut take = |tool: &str| {
            if !options.disallowed_tools.iter().any(|other| other == tool) {
                options.disallowed_tools.push(tool.to_owned());
            }
        };
        // A question that nobody answers reads like consent to the model.
        if asks_host && !self.answers_questions() {
            take(QUESTION);
        }
        // Nobody would approve its plan, and in plan mode the CLI has a classifier allow what nobody decides about.
        if asks_host && !self.decides_in_plan_mode() {
            take(ENTER_PLAN);
        }
        if self.oauth_token.is_some() {
            options = options.env("CLAUDE_CODE_SDK_HAS_OAUTH_REFRESH", "1");
        }
        if self.host_auth_token.is_some() {
            options = options.env("CLAUDE_CODE_SDK_HAS_HOST_AUTH_REFRESH", "1");
        }
        options
    }
}

/// Callbacks for the CLI's requests. A request without a callback is rejected.
impl Options {
    /// Decides about permission requests; [`Policy::deny_all`](crate::Policy::deny_all) unless set. It is a
    /// [`Policy`](crate::Policy), a [`chain`](crate::permissions::chain) or an async function.
    /// [`can_use_tool`](Self::can_use_tool) sets the same, and takes a closure.
    pub fn permissions(mut self, handler: impl PermissionHandler) -> Self {
        self.hosting.handlers.set_permissions(Arc::new(handler));
        self.hosting.handlers.permissions_set = true;
        self
    }

    /// As [`permissions`](Self::permissions), for an async closure. The last call of the two counts.
    ///
    /// ```
    /// use outrigger::permissions::PermissionResult;
    /// # use outrigger::Agent;
    ///
    /// let options = Agent::builder().can_use_tool(async |request| match request.tool_name.as_str() {
    ///     "Read" => PermissionResult::allow(),
    ///     _ => PermissionResult::deny("only reading, please"),
    /// });
    /// ```
    pub fn can_use_tool<F, R>(self, decide: F) -> Self
    where
        F: Fn(PermissionRequest) -> R + Send + Sync + 'static,
        R: Future<Output: Into<PermissionDecision>> + Send + 'static,
    {
        self.permissions(decide)
    }

    /// The deadline of the permission handler, and of the callbacks for questions and plans; none unless set. After it the call is
    /// denied. A parked request ([`PermissionDecision::Parked`]) has no deadline.
    pub fn permission_deadline(mut self, deadline: Duration) -> Self {
        self.hosting.handlers.permission_deadline = Some(deadline);
        self
    }

    /// Answers the model's questions to the user (`AskUserQuestion`).
    ///
    /// Unless this is set, or the permission handler answers questions ([`PermissionHandler::answers_questions`]), the model does
    /// not get that tool: the model would take an empty answer for consent.
    ///
    /// ```
    /// # use outrigger::Agent;
    /// let options = Agent::builder().questions(|asked| async move {
    ///     // The first choice of the first question.
    ///     asked.answers().choose(0, [0])
    /// });
    /// ```
    pub fn questions<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(QuestionRequest) -> R + Send + Sync + 'static,
        R: Future<Output: Into<QuestionReply>> + Send + 'static,
    {
        self.hosting.handlers.questions = Some(callback(answer));
        self
    }

    /// Decides about plans (`ExitPlanMode`). Unless set, the permission handler decides about them as about other calls.
    pub fn plans<F, R>(mut self, decide: F) -> Self
    where
        F: Fn(PlanRequest) -> R + Send + Sync + 'static,
        R: Future<Output: Into<PlanReply>> + Send + 'static,
    {
        self.hosting.handlers.plans = Some(callback(move |plan| {
            let reply = decide(plan);
            async { PermissionDecision::from(reply.await.into()) }
        }));
        self
    }

    /// Replies to plans before the callback of [`plans`](Self::plans) and the permission handler are asked; these get the plans for which it returns
    /// `None`. For replies that were given earlier and elsewhere, such as approvals that outlive the process. It must not wait.
    pub fn plans_first<F>(mut self, decided: F) -> Self
    where
        F: Fn(&PlanRequest) -> Option<PlanReply> + Send + Sync + 'static,
    {
        self.hosting.handlers.plans_first = Some(Arc::new(decided));
        self
    }

    /// Answers elicitations of MCP servers. They are declined unless set.
    pub fn elicitation<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(ElicitationRequest) -> R + Send + Sync + 'static,
        R: Future<Output: Into<CallbackReply<ElicitationResult>>> + Send + 'static,
    {
        self.hosting.handlers.elicitation = Some(callback(answer));
        self
    }

    /// Shows dialogs of a kind (such as `refusal_fallback_prompt`). The CLI only requests dialogs of kinds that were declared in
    /// this way.
    pub fn dialog<F, R>(mut self, kind: impl Into<String>, show: F) -> Self
    where
        F: Fn(DialogRequest) -> R + Send + Sync + 'static,
        R: Future<Output: Into<CallbackReply<UserDialogResult>>> + Send + 'static,
    {
        self.hosting.handlers.dialogs.insert(kind.into(), callback(show));
        self
    }

    /// Returns a fresh token of the sign-in when the CLI's own was rejected or expires, for
    /// [`Auth::OAuthToken`](crate::options::Auth::OAuthToken). After 60 s, and if the callback fails, the reply has no token.
    pub fn oauth_token_refresh<F, R>(mut self, refresh: F) -> Self
    where
        F: Fn(TokenRequest<OauthTokenRefresh>) -> R + Send + Sync + 'static,
        R: Future<Output = OauthTokenAnswer> + Send + 'static,
    {
        self.hosting.handlers.oauth_token = Some(callback(refresh));
        self
    }

    /// Returns a fresh credential of the host when the CLI's own was rejected. After 60 s, and if the callback fails, the reply
    /// has no credential.
    pub fn host_auth_token_refresh<F, R>(mut self, refresh: F) -> Self
    where
        F: Fn(TokenRequest<HostAuthTokenRefresh>) -> R + Send + Sync + 'static,
        R: Future<Output = HostAuthTokenAnswer> + Send + 'static,
    {
        self.hosting.handlers.host_auth_token = Some(callback(refresh));
        self
    }

    /// Sets one object as the callbacks for permissions, questions, plans, elicitation, dialogs and token refresh. Replaces
    /// earlier callbacks for these.
    pub fn callbacks(mut self, callbacks: impl Callbacks) -> Self {
        let all = Arc::new(callbacks);
        let handlers = &mut self.hosting.handlers;
        handlers.set_permissions(Arc::new(Whole(Arc::clone(&all))));
        handlers.permissions_set = true;
        handlers.questions = all
            .answers_questions()
            .then(|| by(&all, |all, asked| async move { all.question(asked).await }));
        handlers.plans = Some(by(&all, |all, plan| async move { all.plan(plan).await }));
        handlers.elicitation = Some(by(
            &all,
            |all, request| async move { all.elicitation(request).await },
        ));
        handlers.oauth_token = all
            .gives_oauth_tokens()
            .then(|| by(&all, |all, request| async move { all.oauth_token(request).await }));
        handlers.host_auth_token = all.gives_host_auth_tokens().then(|| {
            by(
                &all,
                |all, request| async move { all.host_auth_token(request).await },
            )
        });
        let show: DialogCallback = by(&all, |all, request| async move { all.dialog(request).await });
        let kinds = all.dialog_kinds().into_iter();
        handlers.dialogs = kinds.map(|kind| (kind, Arc::clone(&show))).collect();
        self
    }
}

/// A callback that is a method of an object.
fn by<C, Q, A, R>(object: &Arc<C>, call: impl Fn(Arc<C>, Q) -> R + Send + Sync + 'static) -> Callback<Q, A>
where
    C: Send + Sync + 'static,
    R: Future<Output = A> + Send + 'static,
{
    let object = Arc::clone(object);
    Arc::new(move |request| Box::pin(call(Arc::clone(&object), request)))
}
