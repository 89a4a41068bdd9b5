//! A permission rule; see [`permissions::rules`](crate::permissions::rules).

mod change;
mod settings_form;
mod syntax;

use std::fmt;
use std::str::FromStr;

use outrigger_protocol::shared::PermissionRuleValue;
use outrigger_protocol::tools::canonical_name;

pub(crate) use self::change::refused_change;
pub(crate) use self::settings_form::in_settings;
pub(crate) use self::syntax::in_its_letters;

/// A permission rule: `Tool` or `Tool(what)`. See the [module](crate::permissions::rules).
///
/// ```
/// use outrigger::permissions::rules::Rule;
///
/// let rule: Rule = "Bash(git log *)".parse()?;
/// assert_eq!(rule.as_str(), "Bash(git log *)");
/// let error = "bash(git log *)".parse::<Rule>().unwrap_err();
/// assert_eq!(error.to_string(), "the rule `bash(git log *)` names a tool in other letters than its own: write `Bash`");
/// # Ok::<(), outrigger::permissions::rules::RuleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    text: String,
    tools: ToolPattern,
    /// Whether the rule matches every call of its tools.
    is_whole: bool,
    /// Why the rule cannot be an allow rule.
    not_to_allow: Option<&'static str>,
}

/// An invalid rule, or one that the CLI would misread.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("the rule `{}` {problem}", .rule.escape_debug())]
pub struct RuleError {
    rule: String,
    problem: String,
}

/// The tools of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ToolPattern {
    One(String),
    /// The tools of an MCP server, whose names have this prefix.
    Server(String),
    /// Names with `*` in them.
    Pattern(String),
}

/// Which calls of a tool a rule could match, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    None,
    /// Some of the calls; only the CLI knows which.
    Some,
    All,
}

/// Tools whose rules are written with the name of another tool.
const GOES_BY: &[(&str, &str)] = &[
    ("Write", "Edit"),
    ("NotebookEdit", "Edit"),
    ("MultiEdit", "Edit"),
    ("Glob", "Read"),
    ("Grep", "Read"),
    ("LS", "Read"),
    ("LSP", "Read"),
    ("NotebookRead", "Read"),
];

impl RuleError {
    fn new(rule: &str, problem: impl Into<String>) -> Self {
        Self {
            rule: rule.chars().take(200).collect(),
            problem: problem.into(),
        }
    }

    /// The rule, up to 200 characters.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

crate::error::debug_for_people!(RuleError);

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        syntax::read(text).map_err(|problem| RuleError::new(text, problem))
    }
}

impl TryFrom<&PermissionRuleValue> for Rule {
    type Error = RuleError;

    fn try_from(value: &PermissionRuleValue) -> Result<Self, RuleError> {
        value.to_string().parse()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Rule {
    /// The rule as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Checks whether this may be an allow rule.
    ///
    /// # Errors
    /// When it names its tools by a pattern, which the CLI skips; when it does not determine the program of a command; when it
    /// matches a field, which does not limit the rest of a call.
    pub fn check_allow(&self) -> Result<(), RuleError> {
        match self.not_to_allow {
            Some(problem) => Err(RuleError::new(&self.text, problem)),
            None => Ok(()),
        }
    }

    /// Reads a rule of settings. The CLI splits nothing of it, unlike rules on its command line.
    pub(crate) fn of_settings(text: &str) -> Result<Self, RuleError> {
        let parts = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let (name, spec) = parts.map_or((text, None), |(name, spec)| (name, Some(spec)));
        syntax::parts(text, name, spec).map_err(|problem| RuleError::new(text, problem))
    }

    /// Checks an allow rule of a reply. The CLI gets it in two parts, without splitting it.
    fn check_answer(value: &PermissionRuleValue, is_suggested: bool) -> Result<(), RuleError> {
        let text = value.to_string();
        match syntax::parts(&text, &value.tool_name, value.rule_content.as_deref()) {
            Ok(rule) => rule.check_allow(),
            // The CLI knows what it means by a rule of its own that is not understood here.
            Err(_) if is_suggested => Ok(()),
            Err(problem) => Err(RuleError::new(&text, problem)),
        }
    }

    /// Checks an entry of the tools that a subagent may not use. The CLI looks for the name alone, and takes no notice of an entry that
    /// it does not understand: the subagent would keep the tool.
    pub(crate) fn check_taken(text: &str) -> Result<(), RuleError> {
        let wrong = |problem| RuleError::new(text, problem);
        syntax::whole_tool(text).map_err(wrong)?;
        let rule: Self = text.parse()?;
        match &rule.tools {
            ToolPattern::Pattern(pattern) if !syntax::is_whole_server(pattern) => Err(wrong(
                "takes no tool from a subagent, since a `*` only stands for all tools of an MCP server there: write each name, \
                 `mcp__server__*` or `mcp__*`"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Checks an entry of the tools that a subagent may use. The CLI gives it the whole tool.
    pub(crate) fn check_given(text: &str) -> Result<(), RuleError> {
        let is_about_agents = text
            .split('(')
            .next()
            .is_some_and(|name| canonical_name(name) == "Agent");
        match syntax::whole_tool(text) {
            Err(problem) if !is_about_agents => Err(RuleError::new(text, problem)),
            _ => Ok(()),
        }
    }

    /// Whether the rule matches every call of this tool.
    pub fn names_all_of(&self, tool: &str) -> bool {
        self.about(tool) == About::All
    }

    /// Which calls of this tool the rule could match.
    pub(crate) fn about(&self, tool: &str) -> About {
        let tool = canonical_name(tool);
        let named = match &self.tools {
            ToolPattern::One(name) => name == tool,
            ToolPattern::Server(prefix) => tool.len() > prefix.len() && tool.starts_with(prefix),
            ToolPattern::Pattern(pattern) => matches(pattern, tool),
        };
        if named {
            return if self.is_whole { About::All } else { About::Some };
        }
        let ToolPattern::One(name) = &self.tools else {
            return About::None;
        };
        let runs_commands = matches!(tool, "Bash" | "Monitor");
        let by = GOES_BY.iter().find(|(own, _)| *own == tool).map(|(_, by)| *by);
        let goes_by = match name.as_str() {
            "Read" | "Edit" => by.is_some() || matches!(tool, "Read" | "Edit") || runs_commands,
            "Bash" => runs_commands,
            _ => false,
        };
        if goes_by { About::Some } else { About::None }
    }
}

/// Whether the name matches the pattern, in which a `*` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return name.ends_with(part);
        }
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
