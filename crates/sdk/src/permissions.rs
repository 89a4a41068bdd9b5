//! Who decides whether a tool call may run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use outrigger_protocol::shared::{PermissionResult, PermissionUpdate};
use outrigger_protocol::{Frame, RawJson};
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::value::RawValue;

use crate::outcome::Fields;
use crate::transport::BoxFuture;

/// Decides about tool calls that the CLI asks about.
///
/// The CLI asks only what its own rules and mode leave open: what is allowed or denied by a rule, or by
/// `bypassPermissions`, never gets here. Each call is asked in a task of its own, so a handler may take hours; the CLI sets
/// no limit. When the CLI withdraws its question (an interrupt, a hook that decided first) the future is dropped. A handler
/// that panics has refused.
///
/// A [`Policy`] is one, and [`ask`] makes one of an async closure.
pub trait PermissionHandler: Send + Sync + 'static {
    /// Decides about one call.
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionResult>;
}

/// A tool call that waits for a decision (`can_use_tool`).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The tool's name.
    pub tool_name: String,
    /// What it is to be called with.
    pub input: RawJson,
    /// The id of the call.
    pub tool_use_id: String,
    /// The subagent that wants to make the call.
    pub agent_id: Option<String>,
    /// What the call does, in the CLI's words.
    pub description: Option<String>,
    /// A name of the tool for people.
    pub display_name: Option<String>,
    /// A heading for the question.
    pub title: Option<String>,
    /// The path that is outside of what is allowed.
    pub blocked_path: Option<String>,
    /// Why the CLI asks.
    pub decision_reason: Option<String>,
    /// The kind of reason: `rule`, `mode`, `workingDir`, `safetyCheck`, …
    pub decision_reason_type: Option<String>,
    /// Changes of permissions that would spare such questions; to be passed back with an allowance.
    pub suggestions: Vec<PermissionUpdate>,
    /// Whether only a person may answer (a question to the user, the approval of a plan).
    pub requires_user_interaction: bool,
    /// The request as it came.
    pub frame: Frame,
}

impl PermissionRequest {
    pub(crate) fn read(frame: &Frame) -> Result<Self, String> {
        if let Some(flaw) = frame.flaw() {
            return Err(flaw.to_string());
        }
        match serde_json::from_str::<Line<'_>>(&frame.text()) {
            Ok(line) => line.request.read(frame),
            // A key that stands twice, for one: the last one counts.
            Err(_) => Self::read_loosely(frame),
        }
    }

    fn read_loosely(frame: &Frame) -> Result<Self, String> {
        let request = Fields::of(frame)
            .get::<RawJson>("request")
            .ok_or("it has no `request`")?;
        let fields: BTreeMap<String, RawJson> = request.decode().map_err(|error| error.to_string())?;
        let raw = |key: &str| fields.get(key).map(RawJson::as_raw);
        Asked {
            tool_name: raw("tool_name"),
            input: raw("input"),
            tool_use_id: raw("tool_use_id"),
            agent_id: raw("agent_id"),
            description: raw("description"),
            display_name: raw("display_name"),
            title: raw("title"),
            blocked_path: raw("blocked_path"),
            decision_reason: raw("decision_reason"),
            decision_reason_type: raw("decision_reason_type"),
            permission_suggestions: raw("permission_suggestions"),
            requires_user_interaction: raw("requires_user_interaction"),
        }
        .read(frame)
    }
}

#[derive(serde::Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    request: Asked<'a>,
}

/// The fields of a question, none of them decoded.
#[derive(serde::Deserialize)]
struct Asked<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    tool_name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    input: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    tool_use_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    agent_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    description: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    display_name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    title: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    blocked_path: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    decision_reason: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    decision_reason_type: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    permission_suggestions: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    requires_user_interaction: Option<&'a RawValue>,
}

/// A null is a value like any other.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Some)
}

impl Asked<'_> {
    fn read(self, frame: &Frame) -> Result<PermissionRequest, String> {
        fn get<T: DeserializeOwned>(raw: Option<&RawValue>) -> Option<T> {
            RawJson::decode_raw(raw?).ok()
        }
        let needed = |raw, key: &str| get(raw).ok_or(format!("it has no `{key}`"));
        Ok(PermissionRequest {
            tool_name: needed(self.tool_name, "tool_name")?,
            input: self.input.ok_or("it has no `input`")?.to_owned().into(),
            tool_use_id: needed(self.tool_use_id, "tool_use_id")?,
            agent_id: get(self.agent_id),
            description: get(self.description),
            display_name: get(self.display_name),
            title: get(self.title),
            blocked_path: get(self.blocked_path),
            decision_reason: get(self.decision_reason),
            decision_reason_type: get(self.decision_reason_type),
            suggestions: get(self.permission_suggestions).unwrap_or_default(),
            requires_user_interaction: get(self.requires_user_interaction).unwrap_or(false),
            frame: frame.clone(),
        })
    }
}

/// Makes a handler of an async closure.
///
/// ```
/// use outrigger::permissions::{ask, PermissionResult};
///
/// let handler = ask(|request| async move {
///     if request.tool_name == "Read" { PermissionResult::allow() } else { PermissionResult::deny("only reading, please") }
/// });
/// # let _ = handler;
/// ```
///
/// # Cancel safety
/// The closure's future is dropped wherever it is when the CLI withdraws its question, and when the session ends; the
/// question is not answered then.
pub fn ask<F, R>(decide: F) -> impl PermissionHandler
where
    F: Fn(PermissionRequest) -> R + Send + Sync + 'static,
    R: Future<Output = PermissionResult> + Send + 'static,
{
    struct Ask<F>(F);
    impl<F, R> PermissionHandler for Ask<F>
    where
        F: Fn(PermissionRequest) -> R + Send + Sync + 'static,
        R: Future<Output = PermissionResult> + Send + 'static,
    {
        fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionResult> {
            Box::pin((self.0)(request))
        }
    }
    Ask(decide)
}

impl PermissionHandler for Arc<dyn PermissionHandler> {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionResult> {
        (**self).decide(request)
    }
}

/// A plain answer to what the CLI asks.
///
/// It refuses whatever it does not allow by name, and always what only a person may answer: nobody is there to be asked.
#[derive(Clone, PartialEq, Eq)]
pub struct Policy {
    rest: Rest,
    allow: Vec<String>,
    deny: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rest {
    Allow,
    Deny,
}

/// The built-in tools that only read.
const READING: &[&str] = &[
    "Read",
    "Glob",
    "Grep",
    "LSP",
    "NotebookRead",
    "TodoWrite",
    "TaskList",
    "TaskGet",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
    "ToolSearch",
];

impl Policy {
    /// Refuses everything that the CLI asks about.
    pub fn deny_all() -> Self {
        Self {
            rest: Rest::Deny,
            allow: Vec::new(),
            deny: Vec::new(),
        }
    }

    /// Allows everything that the CLI asks about. Deny rules of the CLI still bind.
    pub fn allow_all() -> Self {
        Self {
            rest: Rest::Allow,
            ..Self::deny_all()
        }
    }

    /// Allows the built-in tools that only read, and refuses the rest.
    ///
    /// The CLI itself runs shell commands that it knows to be read-only without asking.
    pub fn read_only() -> Self {
        Self {
            allow: READING.iter().map(|tool| (*tool).to_owned()).collect(),
            ..Self::deny_all()
        }
    }

    /// Allows the tools of these names as well.
    pub fn allow<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.allow.extend(tools.into_iter().map(Into::into));
        self
    }

    /// Refuses the tools of these names, whatever else is allowed.
    pub fn deny<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.deny.extend(tools.into_iter().map(Into::into));
        self
    }

    /// What this policy says about a call.
    pub fn decision(&self, request: &PermissionRequest) -> PermissionResult {
        let tool = &request.tool_name;
        if self.deny.contains(tool) {
            return PermissionResult::deny(format!("the policy refuses {tool}"));
        }
        if request.requires_user_interaction {
            return PermissionResult::deny("only a person may answer this, and nobody is there to be asked");
        }
        if self.rest == Rest::Allow || self.allow.contains(tool) {
            PermissionResult::allow()
        } else {
            PermissionResult::deny(format!("the policy does not allow {tool}"))
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::deny_all()
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("rest", &self.rest)
            .field("allow", &self.allow)
            .field("deny", &self.deny)
            .finish()
    }
}

impl PermissionHandler for Policy {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionResult> {
        Box::pin(std::future::ready(self.decision(&request)))
    }
}
