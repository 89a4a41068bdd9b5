//! Who answers what the CLI asks, as options say it.

use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::inbound::{HostAuthTokenRefresh, OauthTokenRefresh};
use outrigger_protocol::outbound::{
    ElicitationResult, HostAuthTokenAnswer, OauthTokenAnswer, UserDialogResult,
};

use super::Options;
use crate::callback_kind::{Callback, Reply, callback};
use crate::callbacks::{Callbacks, Handlers, Whole};
use crate::dialog::{DialogCallback, DialogRequest};
use crate::elicitation::ElicitationRequest;
use crate::permissions::{
    PermissionDecision, PermissionHandler, PermissionRequest, PlanReply, PlanRequest, QUESTION,
    QuestionReply, QuestionRequest,
};
use crate::token::TokenRequest;

impl Handlers {
    /// What the CLI has to be told of them when it is started.
    pub(crate) fn announced(&self, mut options: Options, asks_host: bool) -> Options {
        if asks_host
            && !self.answers_questions()
            && !options.disallowed_tools.iter().any(|tool| tool == QUESTION)
        {
            // A question that nobody answers reads like consent to the model.
            options.disallowed_tools.push(QUESTION.to_owned());
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

/// What answers the CLI's questions. Whatever is not set is refused.
impl Options {
    /// Who decides about tool calls that the CLI asks about; [`Policy::deny_all`](crate::Policy::deny_all) unless set. A
    /// [`Policy`](crate::Policy), a [`chain`](crate::permissions::chain), an async function. For a closure there is
    /// [`can_use_tool`](Self::can_use_tool), too, which sets the same.
    pub fn permissions(mut self, handler: impl PermissionHandler) -> Self {
        self.hosting.handlers.set_permissions(Arc::new(handler));
        self.hosting.handlers.permissions_set = true;
        self
    }

    /// [`permissions`](Self::permissions) for an async closure, which decides about tool calls that the CLI asks about. The
    /// last of the two that is called counts.
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

    /// How long the permission handler may take to decide, and whoever answers questions and plans; for ever unless set. Then
    /// the call is refused. A request that was left open ([`PermissionDecision::Parked`]) has no deadline.
    pub fn permission_deadline(mut self, deadline: Duration) -> Self {
        self.hosting.handlers.permission_deadline = Some(deadline);
        self
    }

    /// Who answers what the model asks the user (`AskUserQuestion`).
    ///
    /// Unless this is set, or the permission handler says that it does
    /// ([`PermissionHandler::answers_questions`]), the model does not get that tool: an answer of nothing reads like consent.
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

    /// Who approves plans (`ExitPlanMode`). Unless it is set, the permission handler decides about them as about other calls.
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

    /// Who answers MCP servers that ask the user. Declined unless set.
    pub fn elicitation<F, R>(mut self, answer: F) -> Self
    where
        F: Fn(ElicitationRequest) -> R + Send + Sync + 'static,
        R: Future<Output: Into<Reply<ElicitationResult>>> + Send + 'static,
    {
        self.hosting.handlers.elicitation = Some(callback(answer));
        self
    }

    /// Who shows dialogs of a kind (such as `refusal_fallback_prompt`). The CLI asks for kinds that were declared in this way,
    /// and does without the dialog otherwise.
    pub fn dialog<F, R>(mut self, kind: impl Into<String>, show: F) -> Self
    where
        F: Fn(DialogRequest) -> R + Send + Sync + 'static,
        R: Future<Output: Into<Reply<UserDialogResult>>> + Send + 'static,
    {
        self.hosting.handlers.dialogs.insert(kind.into(), callback(show));
        self
    }

    /// Who gives a fresh token of the sign-in when the CLI's own was refused or runs out, for
    /// [`Auth::OAuthToken`](crate::options::Auth::OAuthToken). It has 60 s; then, and if it fails, there is none.
    pub fn oauth_token_refresh<F, R>(mut self, refresh: F) -> Self
    where
        F: Fn(TokenRequest<OauthTokenRefresh>) -> R + Send + Sync + 'static,
        R: Future<Output = OauthTokenAnswer> + Send + 'static,
    {
        self.hosting.handlers.oauth_token = Some(callback(refresh));
        self
    }

    /// Who gives a fresh credential of the host when the CLI's own was refused. It has 60 s; then, and if it fails, there is
    /// none.
    pub fn host_auth_token_refresh<F, R>(mut self, refresh: F) -> Self
    where
        F: Fn(TokenRequest<HostAuthTokenRefresh>) -> R + Send + Sync + 'static,
        R: Future<Output = HostAuthTokenAnswer> + Send + 'static,
    {
        self.hosting.handlers.host_auth_token = Some(callback(refresh));
        self
    }

    /// Has one object handle permissions, questions, plans, elicitation, dialogs and token refresh. Replaces what was set for
    /// these before.
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
