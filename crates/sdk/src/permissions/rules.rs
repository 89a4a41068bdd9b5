//! Permission rules in the CLI's own syntax.
//!
//! One judge reads rules: the CLI. A [`Policy`](super::Policy) hands its rules to the CLI when the session starts
//! (`--allowedTools`, `--disallowedTools`, `permissions.ask` of `--settings`), and answers only what the CLI still asks. So a
//! rule in a policy means exactly what the same rule means in the CLI's settings, and what the CLI asks about in spite of a rule
//! (a path outside of the working directories, a settings file, `awk 'BEGIN { system(…) }'`) no rule of a policy allows.
//!
//! This module reads rules only far enough to refuse those that the CLI would skip without a word, or that say something else
//! than it looks.
//!
//! | rule | means |
//! |---|---|
//! | `Bash` | every call of the tool |
//! | `Bash(git status)` | this command |
//! | `Bash(git log *)`, `Bash(git log:*)` | this command, with any arguments or none |
//! | `Bash(git * main)` | a `*` stands for any text |
//! | `Read(src/**)`, `Read(./.env)` | files below the working directory, with the patterns of a `.gitignore` |
//! | `Edit(/docs/**)`, `Edit(~/notes/*.md)`, `Edit(//tmp/x)` | from the working directory, the home directory, the root; `Edit` stands for all tools that write files |
//! | `WebFetch(domain:example.com)`, `WebFetch(domain:*.example.com)` | a host; the hosts below it |
//! | `mcp__server`, `mcp__server__*`, `mcp__server__get_*` | tools of an MCP server |
//! | `Agent(name)`, `Skill(name)` | a kind of subagent; a skill |
//! | `*`, `mcp__*` | all tools; only to refuse or ask |
//! | `Tool(field:value)` | calls with this value in their input; only to refuse or ask |
//!
//! `Read` and `Edit` without parentheses mean all files there are, also outside of the working directories. Where such a
//! `Read` refuses or asks, it is about that tool alone: `Grep`, `Glob` and commands read on.
//!
//! A rule that refuses is no sandbox. The CLI looks for the command in each part of a line, behind `sudo`, `env`, `xargs` and the
//! like, and for files that commands name. It does not look into `sh -c '…'`, `eval`, scripts, `find -exec`, or behind options
//! such as `git -C . push`. A file that may not be read is hidden from `Grep` and `Glob`, and refused to a command that names the file,
//! not to one that finds it (`cat *.txt`, `grep -r x .`). A rule that has somebody asked about a file holds for the tools that name
//! the file alone: nobody is asked about commands (`cat secret.txt`), or when `Grep` comes upon it in a directory. Allow what is needed
//! rather than refuse what is feared.

mod syntax;

use std::fmt;
use std::str::FromStr;

use outrigger_protocol::shared::PermissionRuleValue;
use outrigger_protocol::tools::canonical_name;

use super::PolicyError;

/// A permission rule: `Tool` or `Tool(what)`. See the [module](self).
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
    tools: Tools,
    /// Whether it is about every call of these tools.
    is_whole: bool,
    /// Why it can't stand among the rules that allow.
    not_to_allow: Option<&'static str>,
}

/// A rule that can't be read, or could be read otherwise than it looks.
#[derive(Clone, PartialEq, Eq)]
pub struct RuleError {
    rule: String,
    problem: String,
}

/// The tools that a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Tools {
    One(String),
    /// Those of an MCP server, whose names begin like this.
    Server(String),
    /// Names with `*` in them.
    Pattern(String),
}

/// Which calls of a tool a rule could be about, as far as its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    None,
    /// Some of them; only the CLI can tell which.
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

    /// The rule, as it was given, up to 200 characters.
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rule `{}` {}", self.rule.escape_debug(), self.problem)
    }
}

impl std::error::Error for RuleError {}

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

    /// Whether this may stand in a list of rules that allow.
    ///
    /// # Errors
    /// When it names its tools by a pattern, which the CLI skips; when it leaves open which program a command runs; when it is
    /// about a field, which says nothing of the rest of a call.
    pub fn check_allow(&self) -> Result<(), RuleError> {
        match self.not_to_allow {
            Some(problem) => Err(RuleError::new(&self.text, problem)),
            None => Ok(()),
        }
    }

    /// Checks a rule of an answer that allows. The CLI would take it in its two parts, without splitting it.
    pub(crate) fn check_answer(value: &PermissionRuleValue, is_suggested: bool) -> Result<(), RuleError> {
        let text = value.to_string();
        match syntax::parts(&text, &value.tool_name, value.rule_content.as_deref()) {
            Ok(rule) => rule.check_allow(),
            // The CLI knows what it means by a rule of its own that is not understood here.
            Err(_) if is_suggested => Ok(()),
            Err(problem) => Err(RuleError::new(&text, problem)),
        }
    }

    /// Whether it is about every call of this tool.
    pub fn names_all_of(&self, tool: &str) -> bool {
        self.about(tool) == About::All
    }

    /// Which calls of this tool the rule could be about.
    pub(crate) fn about(&self, tool: &str) -> About {
        let tool = canonical_name(tool);
        let named = match &self.tools {
            Tools::One(name) => name == tool,
            Tools::Server(prefix) => tool.len() > prefix.len() && tool.starts_with(prefix),
            Tools::Pattern(pattern) => matches(pattern, tool),
        };
        if named {
            return if self.is_whole { About::All } else { About::Some };
        }
        let Tools::One(name) = &self.tools else {
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

/// Rules that the CLI judges, by what they do: what refuses wins over what asks, and that over what allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// The CLI runs what these mean without asking, unless its own checks want it asked. No session starts with one that
    /// [may not allow](Rule::check_allow).
    pub allow: Vec<Rule>,
    /// The CLI asks about what these mean, whatever allows it.
    pub ask: Vec<Rule>,
    /// The CLI refuses what these mean.
    pub deny: Vec<Rule>,
    /// A rule that allows what a layer before it should have been asked about, and that layer.
    pub(crate) misplaced: Option<(Rule, String)>,
    /// What is wrong with these, or with a policy that they are of.
    pub(crate) problem: Option<PolicyError>,
}

impl Rules {
    /// Adds the rules of another list.
    pub(super) fn add(&mut self, other: Self) {
        self.add_strict(&other);
        add(&mut self.allow, &other.allow);
        self.misplaced = self.misplaced.take().or(other.misplaced);
        self.problem = self.problem.take().or(other.problem);
    }

    /// The rules as the CLI gets them, whoever made the list: with a rule that [may not allow](Rule::check_allow), or of a policy that is
    /// wrong, none of them allows.
    pub(crate) fn checked(mut self) -> Self {
        if let Some(error) = self.allow.iter().find_map(|rule| rule.check_allow().err()) {
            self.problem
                .get_or_insert(PolicyError::Rule { list: "allow", error });
        }
        if self.problem.is_some() {
            self.allow.clear();
        }
        self
    }

    /// Adds the rules of another list that ask or refuse.
    pub(super) fn add_strict(&mut self, other: &Self) {
        add(&mut self.ask, &other.ask);
        add(&mut self.deny, &other.deny);
    }
}

fn add(rules: &mut Vec<Rule>, more: &[Rule]) {
    for rule in more {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
}

#[cfg(test)]
mod tests;
