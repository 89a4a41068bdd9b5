//! Policies: rules for the CLI, and a default for the calls that they leave open.

use outrigger_protocol::RawJson;
use outrigger_protocol::inbound::DecisionReasonType;
use outrigger_protocol::shared::PermissionDeny;
use serde::Deserialize;

use super::layers::{DecidedBy, Foreseen, Layer, Opinion, Outlook};
use super::rules::{Rule, RuleError, Rules};
use super::{PLAN, PermissionDecision, PermissionHandler, PermissionRequest, QUESTION};
use crate::error::debug_for_people;
use crate::peer::BoxFuture;
use crate::rule::About;

/// [Rules](super::rules) for the CLI, and a default for the calls that they leave open.
///
/// The CLI evaluates the rules: the SDK passes them to it when the session starts. Deny rules win over ask rules, and ask rules
/// over allow rules, in whatever order they were added. They hold for every call, also for those that the CLI would run without a
/// request, such as reading in the working directory.
///
/// If the CLI requests permission in spite of the rules, the [default](PolicyDefault) decides: no rule allows such a call. A call
/// that a rule allows runs without a request to this program, so neither [`record`](super::record) nor a layer of a
/// [`chain`](super::chain) sees it; a `PreToolUse` hook does.
///
/// As the only handler, a policy denies calls of its ask rules, since nobody can be asked. As a layer of a [`chain`](super::chain)
/// it passes them to the last layer. It never allows requests that only a person may answer (questions to the user, plans).
///
/// On a machine whose administrator takes only rules of managed settings (`allowManagedPermissionRulesOnly`) the CLI ignores the
/// rules of a policy.
///
/// A policy with a wrong rule allows nothing, and no session starts with it. The first such problem is kept, and reported by
/// [`check`](Self::check), by [`Options::check`](crate::Options::check) and when the session starts.
///
/// ```
/// use outrigger::Policy;
///
/// let policy = Policy::read_only()
///     .allow(["Bash(git log *)", "Bash(cargo test *)", "Edit(src/**)"])
///     .deny(["Read(.env)"]);
/// assert_eq!(policy.check(), Ok(()));
///
/// let wrong = policy.allow(["bash(git diff *)"]);
/// assert_eq!(
///     wrong.check().unwrap_err().to_string(),
///     "in `allow` the rule `bash(git diff *)` names a tool in other letters than its own: write `Bash`"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    default: PolicyDefault,
    rules: Rules,
}

/// What a [`Policy`] does with permission requests. Lower case in a [`PolicyFile`](super::PolicyFile).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyDefault {
    /// Allows the calls.
    Allow,
    /// Passes the calls to the last layer of the [`chain`](super::chain); denies them if there is none.
    Ask,
    /// Denies the calls.
    #[default]
    Deny,
}

/// What is wrong with a [`Policy`], or with a [`PolicyFile`](super::PolicyFile). `Display` names the rule and the reason.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A rule in one of the lists is wrong.
    #[error("in `{list}` {error}")]
    Rule {
        /// The list: `allow`, `ask` or `deny`.
        list: &'static str,
        /// What is wrong with the rule.
        #[source]
        error: RuleError,
    },
    /// The file says that it is read-only, and that everything else is allowed.
    #[error(
        "`read_only` and `default = \"allow\"` contradict each other: everything would be allowed; leave one out"
    )]
    ReadOnlyAllowsAll,
}

debug_for_people!(PolicyError);

/// Reading in the working directories, and tools that only look at what the session knows.
const READING: &[&str] = &[
    "Read(./**)",
    "TodoWrite",
    "TaskList",
    "TaskGet",
    "ListMcpResourcesTool",
    "ReadMcpResourceTool",
    "ToolSearch",
];

/// Tools that the CLI runs without a request and that do more than read: worktrees and branches, prompts that run later, and messages to
/// other sessions.
const MORE_THAN_READING: &[&str] = &[
    "CronCreate",
    "CronDelete",
    "EnterWorktree",
    "ExitWorktree",
    "ScheduleWakeup",
    "SendMessage",
    "Agent(isolation:worktree)",
];

/// Reasons that the CLI gives only if no rule that asks is one, but for commands.
const HEEDS_RULES: &[DecisionReasonType] = &[
    DecisionReasonType::Hook,
    DecisionReasonType::Mode,
    DecisionReasonType::SafetyCheck,
    DecisionReasonType::WorkingDir,
];

const UNBOUND: &str = "the policy's rules were not handed to the CLI, so the policy allows nothing: a handler that asks a policy has to pass on \
     its `rules()`, which go to the CLI when its process starts";

const ONLY_A_PERSON: &str = "only a person may answer this, and there is nobody to ask";

impl Policy {
    /// A policy without rules.
    pub fn new(default: PolicyDefault) -> Self {
        Self {
            default,
            rules: Rules::default(),
        }
    }

    /// Denies all permission requests.
    pub fn deny_all() -> Self {
        Self::new(PolicyDefault::Deny)
    }

    /// Allows all permission requests except those that only a person may answer, also those of the CLI's own checks, for example
    /// for a change of its settings files. Deny rules hold.
    pub fn allow_all() -> Self {
        Self::new(PolicyDefault::Allow)
    }

    /// Passes all permission requests to the last layer of a [`chain`](super::chain).
    pub fn ask_all() -> Self {
        Self::new(PolicyDefault::Ask)
    }

    /// Allows reading in the working directories, and denies all other permission requests.
    ///
    /// It also denies tools for which the CLI requests no permission and that do more than read: worktrees (`EnterWorktree`,
    /// `ExitWorktree`, a subagent in one), prompts that run later (`CronCreate`, `CronDelete`, `ScheduleWakeup`), and messages to other
    /// sessions and to subagents (`SendMessage`). For a session that needs one of them, begin with `Policy::deny_all().reading()`.
    ///
    /// The CLI itself runs shell commands that it knows to be read-only without a request, `git status` among them. Git then runs the
    /// programs that `.git/config` names. A directory that came with its `.git`, as an archive for example, can bring such programs:
    /// deny `Bash(git *)` there. Files outside of the working directories are denied; allow `Read` for all files. What commands read is
    /// the CLI's judgment, and not without gaps (`wc --files0-from=FILE`; `grep -R` and `cat dir/*/x` follow links that lead out of the
    /// directory): deny `Bash` and `Monitor` where that matters.
    pub fn read_only() -> Self {
        Self::deny_all().reading().no_more_than_reading()
    }

    pub(super) fn no_more_than_reading(self) -> Self {
        self.deny(MORE_THAN_READING)
    }

    /// Allows the calls that these rules match, and denies all other permission requests. A wrong rule is kept as a problem, as by
    /// [`allow`](Self::allow).
    pub fn allow_list<S: AsRef<str>>(rules: impl IntoIterator<Item = S>) -> Self {
        Self::deny_all().allow(rules)
    }

    /// Denies the calls that these rules match, and allows the rest. See [`rules`](super::rules) for what deny rules do not cover.
    /// A wrong rule is kept as a problem, as by [`deny`](Self::deny).
    pub fn deny_list<S: AsRef<str>>(rules: impl IntoIterator<Item = S>) -> Self {
        Self::allow_all().deny(rules)
    }

    /// Allows reading in the working directories as well.
    pub fn reading(mut self) -> Self {
        let reading = READING.iter().filter_map(|rule| rule.parse().ok());
        self.rules.allow.extend(reading);
        self
    }

    /// Lets the CLI run the calls that these rules match without a request, unless its own checks require one.
    ///
    /// A rule that can't be read, or that [may not allow](Rule::check_allow), is kept as a problem: see [`check`](Self::check).
    pub fn allow<S: AsRef<str>>(self, rules: impl IntoIterator<Item = S>) -> Self {
        let read = |text: &str| {
            let rule: Rule = text.parse()?;
            rule.check_allow().map(|()| rule)
        };
        self.adding("allow", |rules| &mut rules.allow, rules, read)
    }

    /// Makes the CLI deny the calls that these rules match, whatever else is allowed. A rule for a whole tool removes the tool:
    /// the model does not see it.
    ///
    /// A rule that can't be read is kept as a problem: see [`check`](Self::check).
    pub fn deny<S: AsRef<str>>(self, rules: impl IntoIterator<Item = S>) -> Self {
        self.adding("deny", |rules| &mut rules.deny, rules, str::parse)
    }

    /// Makes the CLI request permission for the calls that these rules match, even if a rule allows them.
    ///
    /// The CLI cannot parse some commands before they run, such as `$(echo touch) x`, and does not report whether a rule matches
    /// them. A policy with an ask rule for commands does not allow such commands.
    ///
    /// A rule that cannot be read is kept as a problem: see [`check`](Self::check).
    pub fn ask<S: AsRef<str>>(self, rules: impl IntoIterator<Item = S>) -> Self {
        self.adding("ask", |rules| &mut rules.ask, rules, str::parse)
    }

    /// Adds the valid rules to a list, and keeps the problem of the first invalid one.
    fn adding<S: AsRef<str>>(
        mut self,
        list: &'static str,
        of: fn(&mut Rules) -> &mut Vec<Rule>,
        rules: impl IntoIterator<Item = S>,
        read: impl Fn(&str) -> Result<Rule, RuleError>,
    ) -> Self {
        for rule in rules {
            match read(rule.as_ref()) {
                Ok(rule) => of(&mut self.rules).push(rule),
                Err(error) => {
                    self.rules
                        .problem
                        .get_or_insert(PolicyError::Rule { list, error });
                }
            }
        }
        self
    }

    /// Checks whether the policy can be used. [`Options::check`](crate::Options::check) and the start of a session check each
    /// policy of the permission handler, too.
    ///
    /// # Errors
    /// The first wrong rule. With it, the policy denies every call.
    pub fn check(&self) -> Result<(), PolicyError> {
        self.rules.problem.clone().map_or(Ok(()), Err)
    }

    /// Both policies in one: the rules of both, and the stricter default. A problem of either stays.
    pub fn and(mut self, other: Self) -> Self {
        self.rules.add(other.rules);
        self.default = self.default.max(other.default);
        self
    }

    fn opinion(&self, request: &PermissionRequest) -> (Opinion, Option<String>) {
        let tool = &request.tool_name;
        if let Some(problem) = &self.rules.problem {
            return (Opinion::Decided(PermissionDecision::deny(invalid(problem))), None);
        }
        let names = |rules: &[Rule]| rules.iter().find(|rule| rule.names_all_of(tool)).cloned();
        // The CLI does not ask about a tool that it was told to refuse. One that asks all the same is refused here.
        if let Some(rule) = names(&self.rules.deny) {
            return (
                Opinion::Decided(refused(tool, &rule).into()),
                Some(rule.to_string()),
            );
        }
        if let Some(rule) = names(&self.rules.ask) {
            return (Opinion::Ask, Some(rule.to_string()));
        }
        if is_for_a_person(request) || asks(&self.rules.ask, request, self.default != PolicyDefault::Deny) {
            return (Opinion::Ask, None);
        }
        if self.default != PolicyDefault::Deny && !self.binds(request) {
            return (Opinion::Decided(PermissionDecision::deny(UNBOUND)), None);
        }
        let opinion = match self.default {
            PolicyDefault::Allow => Opinion::Decided(PermissionDecision::allow()),
            PolicyDefault::Ask => Opinion::Pass,
            PolicyDefault::Deny => {
                let why = match &request.decision_reason {
                    Some(reason) => format!("the CLI asked about it: {reason}"),
                    None => "the CLI asked about it in spite of the policy's rules".to_owned(),
                };
                Opinion::Decided(PermissionDecision::deny(format!(
                    "the policy does not allow this call of {tool}: {why}"
                )))
            }
        };
        (opinion, None)
    }

    /// Whether the CLI of the session has the ask and deny rules. It lacks them if the policy is inside a handler that does not
    /// pass its rules on.
    fn binds(&self, request: &PermissionRequest) -> bool {
        if self.rules.ask.is_empty() && self.rules.deny.is_empty() {
            return true;
        }
        request.context.session().is_some_and(|session| {
            let handed = session.origin().hosting.handlers.rules();
            self.rules.ask.iter().all(|rule| handed.ask.contains(rule))
                && self.rules.deny.iter().all(|rule| handed.deny.contains(rule))
        })
    }

    /// The decision of this policy alone about a permission request. It denies calls of its ask rules.
    pub fn decision(&self, request: &PermissionRequest) -> PermissionDecision {
        self.decide_now(request).0
    }

    fn decide_now(&self, request: &PermissionRequest) -> (PermissionDecision, DecidedBy) {
        let (opinion, rule) = self.opinion(request);
        let decision = match (opinion, &rule) {
            (Opinion::Decided(decision), _) => decision,
            _ if is_for_a_person(request) => PermissionDecision::deny(ONLY_A_PERSON),
            (_, Some(rule)) => PermissionDecision::deny(format!(
                "the policy's rule `{rule}` requires asking a person, and there is nobody to ask"
            )),
            _ => PermissionDecision::deny(format!(
                "the policy requires asking a person about this call of {}, and there is nobody to ask",
                request.tool_name
            )),
        };
        (decision, DecidedBy { layer: None, rule })
    }

    fn foresees(&self, tool: &str) -> Foreseen {
        if let Some(problem) = &self.rules.problem {
            return Foreseen::new(Outlook::Refused, invalid(problem));
        }
        let names = |rules: &[Rule]| rules.iter().find(|rule| rule.names_all_of(tool)).cloned();
        if let Some(rule) = names(&self.rules.deny) {
            return Foreseen::new(Outlook::Refused, "a rule of the policy refuses it").by(rule.as_str());
        }
        if let Some(rule) = names(&self.rules.ask) {
            return Foreseen::new(Outlook::Asked, "a rule of the policy requires asking a person")
                .by(rule.as_str());
        }
        match self.default {
            PolicyDefault::Allow => {
                Foreseen::new(Outlook::Allowed, "the policy allows what the CLI asks about")
            }
            PolicyDefault::Ask => Foreseen::new(
                Outlook::Asked,
                "the policy leaves to others what the CLI asks about",
            ),
            PolicyDefault::Deny => {
                Foreseen::new(Outlook::Refused, "the policy refuses what the CLI asks about")
            }
        }
    }
}

/// Whether one of these ask rules may be the reason for the request. The CLI reports the kind of reason, not always the rule. If that is
/// ambiguous, it is as `unsure` says.
pub(super) fn asks(rules: &[Rule], request: &PermissionRequest, unsure: bool) -> bool {
    if rules.is_empty() {
        return false;
    }
    let tool = &request.tool_name;
    if request.matched_ask_rule.is_some() || rules.iter().any(|rule| rule.names_all_of(tool)) {
        return true;
    }
    match &request.decision_reason_type {
        Some(reason) if *reason == DecisionReasonType::Rule => true,
        Some(reason) if *reason == DecisionReasonType::SubcommandResults => unsure,
        // Of a command that it cannot read it does not tell whether a rule is about it.
        Some(reason) if runs_commands(&request.tool_name) || !HEEDS_RULES.contains(reason) => {
            let is_about = |rule: &Rule| rule.about(tool) != About::None;
            unsure && rules.iter().any(is_about)
        }
        Some(_) => false,
        // Older CLIs never say why they ask.
        None => {
            unsure
                && request.context.session().is_some_and(|session| {
                    !session
                        .cli_version()
                        .is_some_and(|version| version.is_since(crate::version::TELLS_REASONS))
                })
        }
    }
}

fn runs_commands(tool: &str) -> bool {
    matches!(tool, "Bash" | "Monitor" | "PowerShell")
}

/// Whether only a person may answer. Older CLIs do not report it.
fn is_for_a_person(request: &PermissionRequest) -> bool {
    request.requires_user_interaction || matches!(&*request.tool_name, QUESTION | PLAN)
}

/// The reason that an invalid policy gives.
fn invalid(problem: &PolicyError) -> String {
    format!("the policy is invalid, so it allows nothing: {problem}")
}

fn refused(tool: &str, rule: &Rule) -> PermissionDeny {
    PermissionDeny::new(format!("the policy refuses {tool} by its rule `{rule}`"))
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

    fn rules(&self) -> Rules {
        self.rules.clone().checked()
    }

    fn only_has_rules(&self) -> bool {
        self.default == PolicyDefault::Ask
    }

    fn foresee(&self, tool: &str, _: &RawJson) -> Foreseen {
        self.foresees(tool)
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

    fn rules(&self) -> Rules {
        self.rules.clone().checked()
    }

    fn foresee(&self, tool: &str, _: &RawJson) -> Foreseen {
        let foreseen = self.foresees(tool);
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
