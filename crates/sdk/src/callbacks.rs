//! The callbacks of a session: what they have in common, how they are set, and one object that handles all.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use outrigger_protocol::inbound::{HostAuthTokenRefresh, OauthTokenRefresh};
use outrigger_protocol::outbound::{
    ElicitationResult, HostAuthTokenAnswer, Initialize, OauthTokenAnswer, UserDialogResult,
};
use outrigger_protocol::shared::RequestId;
use outrigger_protocol::{Frame, RawJson};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::conn::ask::{Answer, Answerer, Asking, Others};
use crate::conn::{Conn, Withdrawn};
use crate::dialog::{DialogCallback, DialogRequest, Dialogs};
use crate::elicitation::{ElicitationRequest, Elicitations};
use crate::hooks::{Hooks, Registration};
use crate::options::Options;
use crate::outcome::Fields;
use crate::permissions::rules::Rules;
use crate::permissions::{
    PermissionDecision, PermissionHandler, PermissionRequest, Permissions, PlanReply, PlanRequest, Policy,
    QUESTION, QuestionReply, QuestionRequest,
};
use crate::session::Session;
use crate::token::{TokenRequest, Tokens};
use crate::transport::BoxFuture;

/// What a callback knows of the request that it answers. A cheap handle.
#[derive(Clone)]
pub struct Context {
    request_id: RequestId,
    withdrawn: Withdrawn,
    conn: Weak<Conn>,
}

impl Context {
    pub(crate) fn new(request_id: RequestId, withdrawn: Withdrawn, conn: Weak<Conn>) -> Self {
        Self {
            request_id,
            withdrawn,
            conn,
        }
    }

    /// The context of a request that came from no session: it is never withdrawn.
    pub(crate) fn detached(request_id: RequestId) -> Self {
        Self::new(request_id, Withdrawn::default(), Weak::new())
    }

    /// The id of the request, which the CLI chose.
    pub fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// Fires when nobody waits for the answer any more: the CLI withdrew the request (an interrupt, another decision), a
    /// deadline of ours passed, or the session ended.
    ///
    /// The callback's own future is dropped then. This is for what it has spawned or handed out.
    pub fn cancelled(&self) -> &CancellationToken {
        self.withdrawn.token()
    }

    /// The session that asks. Its control methods may be called from within a callback.
    ///
    /// `None` while the session is being started (a hook or an MCP server may be called before), and once its last handle was
    /// dropped. Holding the session keeps it from ending.
    pub fn session(&self) -> Option<Session> {
        self.conn.upgrade()?.session()
    }

    /// Resolves when the session has ended, without keeping it from that.
    pub(crate) fn session_end(&self) -> impl Future<Output = ()> + Send + use<> {
        let ended = self.conn.upgrade().map(|conn| conn.ended.clone());
        let detached = self.conn.ptr_eq(&Weak::new());
        async move {
            match ended {
                Some(mut ended) => {
                    // If nobody is left to say so, it has.
                    let _ = ended.wait_for(Option::is_some).await;
                }
                None if detached => std::future::pending().await,
                None => {}
            }
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("request_id", &self.request_id)
            .field("cancelled", &self.withdrawn.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// What a callback for people says: an answer, or that it comes later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<T> {
    /// The answer.
    Now(T),
    /// The request stays open; somebody answers by its id.
    Parked,
}

impl<T> From<T> for Reply<T> {
    fn from(answer: T) -> Self {
        Self::Now(answer)
    }
}

impl<T: Serialize> Reply<T> {
    pub(crate) fn into_answer(self) -> Answer {
        match self {
            Self::Now(answer) => Answer::success(&answer),
            Self::Parked => Answer::Parked,
        }
    }
}

/// A callback without its types of closure and future. It is called in the task that answers the request.
pub(crate) type Callback<Q, A> = Arc<dyn Fn(Q) -> BoxFuture<'static, A> + Send + Sync>;

fn callback<Q, A, F, R>(call: F) -> Callback<Q, A>
where
    F: Fn(Q) -> R + Send + Sync + 'static,
    R: Future<Output: Into<A>> + Send + 'static,
{
    Arc::new(move |request| {
        let answer = call(request);
        Box::pin(async { answer.await.into() })
    })
}

/// The fields of a request.
pub(crate) fn read<T: DeserializeOwned>(frame: &Frame) -> Result<T, String> {
    if let Some(flaw) = frame.flaw() {
        return Err(flaw.to_string());
    }
    let request = Fields::of(frame)
        .get::<RawJson>("request")
        .ok_or("it has no `request`")?;
    request.read().map_err(|error| error.to_string())
}

/// One object that handles all that the CLI asks, for [`Options::callbacks`]. What it does not handle is answered as if nobody
/// was there: refused.
///
/// Each method may be written as an `async fn`. Hooks and MCP servers are registered apart, since there may be many.
///
/// ```
/// use outrigger::permissions::{PermissionDecision, PermissionRequest};
/// use outrigger::{Agent, Callbacks};
///
/// struct Desk;
///
/// impl Callbacks for Desk {
///     async fn permission(&self, request: PermissionRequest) -> PermissionDecision {
///         PermissionDecision::deny(format!("{} is not for today", request.tool_name))
///     }
/// }
///
/// let options = Agent::builder().callbacks(Desk);
/// ```
pub trait Callbacks: Send + Sync + 'static {
    /// Decides about a tool call; see [`PermissionHandler`].
    fn permission(&self, request: PermissionRequest) -> impl Future<Output = PermissionDecision> + Send {
        let why = format!("nobody here decides about {}", request.tool_name);
        async { PermissionDecision::deny(why) }
    }

    /// Rules that the CLI judges before it asks; see [`PermissionHandler::rules`]. An object that asks a [`Policy`] says the policy's
    /// here.
    fn permission_rules(&self) -> Rules {
        Rules::default()
    }

    /// Whether [`question`](Self::question) answers. Unless it does, the model does not get the tool to ask with.
    fn answers_questions(&self) -> bool {
        false
    }

    /// Answers questions of the model to the user; see [`Options::questions`].
    fn question(&self, _request: QuestionRequest) -> impl Future<Output = QuestionReply> + Send {
        async { QuestionReply::Declined("nobody is there to be asked".to_owned()) }
    }

    /// Decides about a plan; see [`Options::plans`]. A [`PlanReply`] is such a decision. Unless it is handled the plan is a tool
    /// call like others, which [`permission`](Self::permission) decides about.
    fn plan(&self, request: PlanRequest) -> impl Future<Output = PermissionDecision> + Send {
        self.permission(request.request)
    }

    /// Answers an MCP server that asks the user; see [`Options::elicitation`].
    fn elicitation(
        &self,
        _request: ElicitationRequest,
    ) -> impl Future<Output = Reply<ElicitationResult>> + Send {
        async { ElicitationResult::Decline.into() }
    }

    /// The kinds of dialogs that [`dialog`](Self::dialog) shows; the CLI asks for no other.
    fn dialog_kinds(&self) -> Vec<String> {
        Vec::new()
    }

    /// Shows a dialog; see [`Options::dialog`].
    fn dialog(&self, _request: DialogRequest) -> impl Future<Output = Reply<UserDialogResult>> + Send {
        async { UserDialogResult::Cancelled.into() }
    }

    /// Whether [`oauth_token`](Self::oauth_token) gives tokens. Unless it does, the CLI does not ask for any.
    fn gives_oauth_tokens(&self) -> bool {
        false
    }

    /// Gives a fresh token of the sign-in; see [`Options::oauth_token_refresh`].
    fn oauth_token(
        &self,
        _request: TokenRequest<OauthTokenRefresh>,
    ) -> impl Future<Output = OauthTokenAnswer> + Send {
        async {
            OauthTokenAnswer {
                access_token: None,
                reason: None,
            }
        }
    }

    /// Whether [`host_auth_token`](Self::host_auth_token) gives credentials. Unless it does, the CLI does not ask for any.
    fn gives_host_auth_tokens(&self) -> bool {
        false
    }

    /// Gives a fresh credential of the host; see [`Options::host_auth_token_refresh`].
    fn host_auth_token(
        &self,
        _request: TokenRequest<HostAuthTokenRefresh>,
    ) -> impl Future<Output = HostAuthTokenAnswer> + Send {
        async {
            HostAuthTokenAnswer {
                auth_token: None,
                material_unchanged: None,
            }
        }
    }
}

/// Such an object, as far as it decides about tool calls.
struct Whole<C>(Arc<C>);

impl<C: Callbacks> PermissionHandler for Whole<C> {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(self.0.permission(request))
    }

    fn rules(&self) -> Rules {
        self.0.permission_rules()
    }
}

/// Refuses what nobody handles.
struct Nobody(&'static str);

impl Answerer for Nobody {
    fn accept(&self, _: Asking) -> BoxFuture<'static, Answer> {
        Box::pin(std::future::ready(Answer::Error(self.0.to_owned())))
    }

    fn refuse(&self, _: &Frame, why: &str) -> Answer {
        Answer::Error(why.to_owned())
    }
}

/// The callbacks that were set.
#[derive(Clone)]
pub(crate) struct Handlers {
    pub(crate) permissions: Arc<dyn PermissionHandler>,
    /// Whether the program set that one.
    pub(crate) permissions_set: bool,
    permission_deadline: Option<Duration>,
    pub(crate) hooks: Vec<Registration>,
    questions: Option<Callback<QuestionRequest, QuestionReply>>,
    pub(crate) plans: Option<Callback<PlanRequest, PermissionDecision>>,
    elicitation: Option<Callback<ElicitationRequest, Reply<ElicitationResult>>>,
    dialogs: BTreeMap<String, DialogCallback>,
    oauth_token: Option<Callback<TokenRequest<OauthTokenRefresh>, OauthTokenAnswer>>,
    host_auth_token: Option<Callback<TokenRequest<HostAuthTokenRefresh>, HostAuthTokenAnswer>>,
    token_deadline: Duration,
}

impl Default for Handlers {
    fn default() -> Self {
        Self {
            permissions: Arc::new(Policy::deny_all()),
            permissions_set: false,
            permission_deadline: None,
            hooks: Vec::new(),
            questions: None,
            plans: None,
            elicitation: None,
            dialogs: BTreeMap::new(),
            oauth_token: None,
            host_auth_token: None,
            token_deadline: Duration::from_secs(60),
        }
    }
}

impl Handlers {
    /// What answers the CLI in one session.
    pub(crate) fn host(&self) -> crate::conn::Host {
        crate::conn::Host {
            permissions: Arc::new(Permissions {
                handler: Arc::clone(&self.permissions),
                questions: self.questions.clone(),
                plans: self.plans.clone(),
                deadline: self.permission_deadline,
            }),
            hooks: Arc::new(Hooks::new(&self.hooks)),
            mcp: Arc::new(Nobody("SDK MCP server not found")),
            elicitation: Arc::new(Elicitations(self.elicitation.clone())),
            dialogs: Arc::new(Dialogs(Arc::new(self.dialogs.clone()))),
            tokens: Arc::new(Tokens {
                oauth: self.oauth_token.clone(),
                host: self.host_auth_token.clone(),
                deadline: self.token_deadline,
            }),
            others: Arc::new(Others),
        }
    }

    /// Whether anybody answers what the model asks the user.
    pub(crate) fn answers_questions(&self) -> bool {
        self.questions.is_some() || self.permissions.answers_questions()
    }

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

    /// What `initialize` has to say of them.
    pub(crate) fn introduce(&self, initialize: &mut Initialize) {
        if !self.dialogs.is_empty() {
            initialize.supported_dialog_kinds = Some(self.dialogs.keys().cloned().collect());
        }
    }
}

/// What answers the CLI's questions. Whatever is not set is refused.
impl Options {
    /// Who decides about tool calls that the CLI asks about; [`Policy::deny_all`] unless set. A [`Policy`], a
    /// [`chain`](crate::permissions::chain), an async function. For a closure there is [`can_use_tool`](Self::can_use_tool),
    /// too, which sets the same.
    pub fn permissions(mut self, handler: impl PermissionHandler) -> Self {
        self.hosting.handlers.permissions = Arc::new(handler);
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
        handlers.permissions = Arc::new(Whole(Arc::clone(&all)));
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
