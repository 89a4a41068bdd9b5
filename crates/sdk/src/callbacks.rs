//! The callbacks that a session has, and one object that handles all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::Frame;
use outrigger_protocol::RawJson;
use outrigger_protocol::inbound::{HostAuthTokenRefresh, OauthTokenRefresh};
use outrigger_protocol::outbound::{
    ElicitationResult, HostAuthTokenAnswer, Initialize, OauthTokenAnswer, UserDialogResult,
};

use crate::callback_kind::{Callback, CallbackReply};
use crate::conn::cli_requests::{Answerer, CliReply, CliRequest, Others};
use crate::dialog::{DialogCallback, DialogRequest, Dialogs};
use crate::elicitation::{ElicitationRequest, Elicitations};
use crate::hooks::{Hooks, Registration};
use crate::peer::BoxFuture;
use crate::permissions::rules::Rules;
use crate::permissions::{
    DecidedPlans, Foreseen, PermissionDecision, PermissionHandler, PermissionRequest, Permissions,
    PlanRequest, Policy, QuestionReply, QuestionRequest,
};
use crate::token::{TokenRequest, TokenRequests};

/// One object that handles all kinds of CLI requests, for [`Options::callbacks`](crate::Options::callbacks). The SDK rejects
/// requests that the object does not handle.
///
/// Each method may be written as an `async fn`. Hooks and MCP servers are registered separately, since there may be many.
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
        let why = format!("no callback decides about {}", request.tool_name);
        async { PermissionDecision::deny(why) }
    }

    /// Rules that the CLI evaluates before it requests permission; see [`PermissionHandler::rules`]. An object that calls a
    /// [`Policy`] returns the policy's rules here.
    fn permission_rules(&self) -> Rules {
        Rules::default()
    }

    /// Whether [`question`](Self::question) answers. If not, the model does not get the tool.
    fn answers_questions(&self) -> bool {
        false
    }

    /// Answers questions of the model to the user; see [`Options::questions`](crate::Options::questions).
    fn question(&self, _request: QuestionRequest) -> impl Future<Output = QuestionReply> + Send {
        async { QuestionReply::Declined("there is nobody to ask".to_owned()) }
    }

    /// Decides about a plan; see [`Options::plans`](crate::Options::plans). A [`PlanReply`](crate::permissions::PlanReply) is
    /// such a decision. By default the plan is a tool call like others, about which [`permission`](Self::permission) decides.
    fn plan(&self, request: PlanRequest) -> impl Future<Output = PermissionDecision> + Send {
        self.permission(request.request)
    }

    /// Answers an elicitation of an MCP server; see [`Options::elicitation`](crate::Options::elicitation).
    fn elicitation(
        &self,
        _request: ElicitationRequest,
    ) -> impl Future<Output = CallbackReply<ElicitationResult>> + Send {
        async { ElicitationResult::Decline.into() }
    }

    /// The kinds of dialogs that [`dialog`](Self::dialog) shows; the CLI requests no others.
    fn dialog_kinds(&self) -> Vec<String> {
        Vec::new()
    }

    /// Shows a dialog; see [`Options::dialog`](crate::Options::dialog).
    fn dialog(
        &self,
        _request: DialogRequest,
    ) -> impl Future<Output = CallbackReply<UserDialogResult>> + Send {
        async { UserDialogResult::Cancelled.into() }
    }

    /// Whether [`oauth_token`](Self::oauth_token) returns tokens. If not, the CLI does not request any.
    fn gives_oauth_tokens(&self) -> bool {
        false
    }

    /// Returns a fresh token of the sign-in; see [`Options::oauth_token_refresh`](crate::Options::oauth_token_refresh).
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

    /// Whether [`host_auth_token`](Self::host_auth_token) returns credentials. If not, the CLI does not request any.
    fn gives_host_auth_tokens(&self) -> bool {
        false
    }

    /// Returns a fresh credential of the host; see [`Options::host_auth_token_refresh`](crate::Options::host_auth_token_refresh).
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

/// The permission handler of such an object.
pub(crate) struct Whole<C>(pub(crate) Arc<C>);

impl<C: Callbacks> PermissionHandler for Whole<C> {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(self.0.permission(request))
    }

    fn rules(&self) -> Rules {
        self.0.permission_rules()
    }
}

/// Denies what no callback handles.
struct Nobody(&'static str);

impl Answerer for Nobody {
    fn accept(&self, _: CliRequest) -> BoxFuture<'static, CliReply> {
        Box::pin(std::future::ready(CliReply::Error(self.0.to_owned())))
    }

    fn refuse(&self, _: &Frame, why: &str) -> CliReply {
        CliReply::Error(why.to_owned())
    }
}

/// The callbacks that were set.
#[derive(Clone)]
pub(crate) struct Handlers {
    permissions: Arc<dyn PermissionHandler>,
    /// The rules that a process was started with.
    handed: Option<Arc<Rules>>,
    /// Whether the program set it.
    pub(crate) permissions_set: bool,
    pub(crate) permission_deadline: Option<Duration>,
    pub(crate) hooks: Vec<Registration>,
    pub(crate) questions: Option<Callback<QuestionRequest, QuestionReply>>,
    pub(crate) plans: Option<Callback<PlanRequest, PermissionDecision>>,
    pub(crate) plans_first: Option<DecidedPlans>,
    pub(crate) elicitation: Option<Callback<ElicitationRequest, CallbackReply<ElicitationResult>>>,
    pub(crate) dialogs: BTreeMap<String, DialogCallback>,
    pub(crate) oauth_token: Option<Callback<TokenRequest<OauthTokenRefresh>, OauthTokenAnswer>>,
    pub(crate) host_auth_token: Option<Callback<TokenRequest<HostAuthTokenRefresh>, HostAuthTokenAnswer>>,
    pub(crate) token_deadline: Duration,
}

impl Default for Handlers {
    fn default() -> Self {
        Self {
            permissions: Arc::new(Policy::deny_all()),
            handed: None,
            permissions_set: false,
            permission_deadline: None,
            hooks: Vec::new(),
            questions: None,
            plans: None,
            plans_first: None,
            elicitation: None,
            dialogs: BTreeMap::new(),
            oauth_token: None,
            host_auth_token: None,
            token_deadline: Duration::from_secs(60),
        }
    }
}

impl Handlers {
    /// The answerers of one session.
    pub(crate) fn host(&self) -> crate::conn::Answerers {
        crate::conn::Answerers {
            permissions: Arc::new(Permissions {
                handler: Arc::clone(&self.permissions),
                questions: self.questions.clone(),
                plans: self.plans.clone(),
                plans_first: self.plans_first.clone(),
                deadline: self.permission_deadline,
            }),
            hooks: Arc::new(Hooks::new(&self.hooks)),
            mcp: Arc::new(Nobody("SDK MCP server not found")),
            elicitation: Arc::new(Elicitations(self.elicitation.clone())),
            dialogs: Arc::new(Dialogs(Arc::new(self.dialogs.clone()))),
            tokens: Arc::new(TokenRequests {
                oauth: self.oauth_token.clone(),
                host: self.host_auth_token.clone(),
                deadline: self.token_deadline,
            }),
            others: Arc::new(Others),
        }
    }

    pub(crate) fn set_permissions(&mut self, handler: Arc<dyn PermissionHandler>) {
        self.permissions = handler;
        self.handed = None;
    }

    /// The rules for the CLI, [checked](Rules::checked): those that its process was started with, or before that those that the handler
    /// has now.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        let handed = self.handed.clone();
        handed.unwrap_or_else(|| Arc::new(self.permissions.rules().checked()))
    }

    /// Takes the rules that the handler has now, for a process that is about to start.
    pub(crate) fn take_rules(&mut self) {
        self.handed = None;
        self.handed = Some(self.rules());
    }

    /// The permission handler's expected decision about a call.
    pub(crate) fn foresee(&self, tool: &str, input: &RawJson) -> Foreseen {
        self.permissions.foresee(tool, input)
    }

    /// Whether a callback answers the model's questions to the user.
    pub(crate) fn answers_questions(&self) -> bool {
        self.questions.is_some() || self.permissions.answers_questions()
    }

    /// Adds the callbacks to `initialize`.
    pub(crate) fn introduce(&self, initialize: &mut Initialize) {
        if !self.dialogs.is_empty() {
            initialize.supported_dialog_kinds = Some(self.dialogs.keys().cloned().collect());
        }
    }
}
