//! Policies: decisions by rules.

use outrigger_protocol::shared::PermissionDeny;
use serde::Deserialize;

use super::layers::{DecidedBy, Foreseen, Layer, Opinion, Outlook, place_of};
use super::rules::{Call, Place, Rule, RuleError, Rules};
use super::{PermissionDecision, PermissionHandler, PermissionRequest};
use crate::transport::BoxFuture;

/// Decides by [rules](super::rules) about what the CLI asks.
///
/// Rules that refuse win over rules that ask, those win over rules that allow, and these over the
/// [default](PolicyDefault), in whatever order they were given. What only a person may answer (questions to the user, plans) no rule
/// allows.
///
/// As a handler by itself a policy refuses what it wants to be asked: nobody is there to be asked. As a layer of a
/// [`chain`](super::chain) it leaves that to the last layer.
///
/// ```
/// use outrigger::Policy;
///
/// let policy = Policy::read_only()
///     .allow(["Bash(git log *)", "Bash(cargo test *)", "Edit(src/**)"])?
///     .deny(["Read(.env)"])?;
/// # Ok::<(), outrigger::permissions::rules::RuleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    default: PolicyDefault,
    allow: Rules,
    deny: Rules,
    ask: Rules,
    place: Option<Place>,
}

/// What a [`Policy`] does with calls that no rule is about. In a [`PolicyFile`](super::PolicyFile) in small letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyDefault {
    /// Allows them.
    Allow,
    /// Leaves them to the last layer of the [`chain`](super::chain); refuses them if there is none.
    Ask,
    /// Refuses them.
    #[default]
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

const ONLY_A_PERSON: &str = "only a person may answer this, and nobody is there to be asked";

/// What a policy says, and why.
enum Says<'a> {
    Refuses(&'a Rule),
    Asks(&'a Rule),
    Allows(Vec<&'a Rule>),
    /// No rule is about it; why none allows it.
    Nothing(String),
}

impl Policy {
    /// A policy without rules.
    pub fn new(default: PolicyDefault) -> Self {
        Self {
            default,
            allow: Rules::default(),
            deny: Rules::default(),
            ask: Rules::default(),
            place: None,
        }
    }

    /// Refuses everything that the CLI asks about.
    pub fn deny_all() -> Self {
        Self::new(PolicyDefault::Deny)
    }

    /// Allows everything that the CLI asks about, but for what only a person may answer. Deny rules of the CLI still bind.
    pub fn allow_all() -> Self {
        Self::new(PolicyDefault::Allow)
    }

    /// Leaves everything that the CLI asks about to the last layer of a [`chain`](super::chain).
    pub fn ask_all() -> Self {
        Self::new(PolicyDefault::Ask)
    }

    /// Allows the built-in tools that only read, and refuses the rest.
    ///
    /// The CLI itself runs shell commands that it knows to be read-only without asking.
    pub fn read_only() -> Self {
        Self::deny_all().reading()
    }

    /// Allows what these rules cover and refuses the rest.
    ///
    /// # Errors
    /// As [`allow`](Self::allow).
    pub fn allow_list<S: AsRef<str>>(rules: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        Self::deny_all().allow(rules)
    }

    /// Refuses what these rules could mean and allows the rest.
    ///
    /// # Errors
    /// As [`deny`](Self::deny).
    pub fn deny_list<S: AsRef<str>>(rules: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        Self::allow_all().deny(rules)
    }

    /// Allows the built-in tools that only read as well.
    pub fn reading(mut self) -> Self {
        let reading = READING.iter().filter_map(|tool| tool.parse().ok());
        self.allow.extend(reading);
        self
    }

    /// Allows the calls that these rules surely mean.
    ///
    /// # Errors
    /// The first rule that can't be read, or that [may not allow](Rule::check_allow).
    pub fn allow<S: AsRef<str>>(mut self, rules: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        let rules = Rules::parse(rules)?;
        rules.iter().try_for_each(Rule::check_allow)?;
        self.allow.extend(rules);
        Ok(self)
    }

    /// Refuses the calls that these rules could mean, whatever else is allowed.
    ///
    /// # Errors
    /// The first rule that can't be read.
    pub fn deny<S: AsRef<str>>(mut self, rules: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        self.deny.extend(Rules::parse(rules)?);
        Ok(self)
    }

    /// Has somebody asked about the calls that these rules could mean, even if a rule allows them.
    ///
    /// # Errors
    /// The first rule that can't be read.
    pub fn ask<S: AsRef<str>>(mut self, rules: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        self.ask.extend(Rules::parse(rules)?);
        Ok(self)
    }

    /// Says what relative paths and `~/` in the rules mean. Unless this is set, the directory in which the session was started
    /// and its home directory.
    pub fn place(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Both policies in one: the rules of both, and the stricter default.
    pub fn and(mut self, other: Self) -> Self {
        self.allow.extend(other.allow);
        self.deny.extend(other.deny);
        self.ask.extend(other.ask);
        self.default = self.default.max(other.default);
        self.place = self.place.or(other.place);
        self
    }

    fn says(&self, call: &Call<'_>) -> Says<'_> {
        if let Some(rule) = self.deny.touches(call) {
            return Says::Refuses(rule);
        }
        if let Some(rule) = self.ask.touches(call) {
            return Says::Asks(rule);
        }
        match self.allow.covers(call) {
            Ok(rules) => Says::Allows(rules),
            Err(why) => Says::Nothing(why),
        }
    }

    fn call<'a>(&self, request: &'a PermissionRequest) -> Call<'a> {
        let place = self.place.clone().unwrap_or_else(|| place_of(request));
        Call::new(&request.tool_name, &request.input, place)
    }

    fn opinion(&self, request: &PermissionRequest) -> (Opinion, Option<String>) {
        let tool = &request.tool_name;
        let allow = || Opinion::Decided(PermissionDecision::allow());
        match self.says(&self.call(request)) {
            Says::Refuses(rule) => (
                Opinion::Decided(refused(tool, rule).into()),
                Some(rule.to_string()),
            ),
            Says::Asks(rule) => (Opinion::Ask, Some(rule.to_string())),
            _ if request.requires_user_interaction => (Opinion::Ask, None),
            Says::Allows(rules) => (allow(), Some(list(&rules))),
            Says::Nothing(why) => match self.default {
                PolicyDefault::Allow => (allow(), None),
                PolicyDefault::Ask => (Opinion::Pass, None),
                PolicyDefault::Deny => (
                    Opinion::Decided(PermissionDecision::deny(format!(
                        "the policy does not allow {tool}: {why}"
                    ))),
                    None,
                ),
            },
        }
    }

    /// What this policy by itself says about a call. What it wants to be asked it refuses.
    ///
    /// This looks at the file system if rules for files are about the call.
    pub fn decision(&self, request: &PermissionRequest) -> PermissionDecision {
        self.decide_now(request).0
    }

    fn decide_now(&self, request: &PermissionRequest) -> (PermissionDecision, DecidedBy) {
        let (opinion, rule) = self.opinion(request);
        let decision = match (opinion, &rule) {
            (Opinion::Decided(decision), _) => decision,
            _ if request.requires_user_interaction => PermissionDecision::deny(ONLY_A_PERSON),
            (_, Some(rule)) => PermissionDecision::deny(format!(
                "the policy's rule `{rule}` wants somebody to be asked about this, and nobody is there"
            )),
            _ => PermissionDecision::deny(format!(
                "the policy wants somebody to be asked about {}, and nobody is there",
                request.tool_name
            )),
        };
        (decision, DecidedBy { layer: None, rule })
    }
}

fn refused(tool: &str, rule: &Rule) -> PermissionDeny {
    PermissionDeny::new(format!("the policy refuses {tool} by its rule `{rule}`"))
}

fn list(rules: &[&Rule]) -> String {
    rules
        .iter()
        .map(|rule| rule.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

impl Default for Policy {
    fn default() -> Self {
        Self::deny_all()
    }
}

impl Layer for Policy {
    fn consider<'a>(&'a self, request: &'a PermissionRequest) -> BoxFuture<'a, (Opinion, Option<String>)> {
        Box::pin(std::future::ready(self.opinion(request)))
    }

    fn refuses(&self, request: &PermissionRequest) -> Option<(PermissionDeny, String)> {
        let rule = self.deny.touches(&self.call(request))?;
        Some((refused(&request.tool_name, rule), rule.to_string()))
    }

    fn foresee(&self, call: &Call<'_>) -> Foreseen {
        let here;
        let call = match &self.place {
            Some(place) => {
                here = Call::new(call.tool(), call.input(), place.clone());
                &here
            }
            None => call,
        };
        match self.says(call) {
            Says::Refuses(rule) => {
                Foreseen::new(Outlook::Refused, "a rule of the policy refuses it").by(rule.as_str())
            }
            Says::Asks(rule) => {
                Foreseen::new(Outlook::Asked, "a rule of the policy wants somebody to be asked")
                    .by(rule.as_str())
            }
            Says::Allows(rules) => {
                Foreseen::new(Outlook::Allowed, "rules of the policy allow it").by(list(&rules))
            }
            Says::Nothing(why) => match self.default {
                PolicyDefault::Allow => Foreseen::new(
                    Outlook::Allowed,
                    "no rule of the policy is about it, and it allows the rest",
                ),
                PolicyDefault::Ask => {
                    Foreseen::new(Outlook::Asked, format!("the policy leaves it to others: {why}"))
                }
                PolicyDefault::Deny => {
                    Foreseen::new(Outlook::Refused, format!("the policy refuses the rest: {why}"))
                }
            },
        }
    }
}

impl PermissionHandler for Policy {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(std::future::ready(self.decision(&request)))
    }

    fn decide_and_tell<'a>(
        &'a self,
        request: PermissionRequest,
    ) -> BoxFuture<'a, (PermissionDecision, DecidedBy)> {
        Box::pin(std::future::ready(self.decide_now(&request)))
    }

    fn foresee(&self, call: &Call<'_>) -> Foreseen {
        let foreseen = Layer::foresee(self, call);
        match foreseen.outlook {
            // Nobody is there to be asked.
            Outlook::Asked => Foreseen {
                outlook: Outlook::Refused,
                ..foreseen
            },
            _ => foreseen,
        }
    }
}

#[cfg(test)]
mod tests;
