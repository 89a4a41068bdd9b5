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

pub use crate::rule::{Rule, RuleError};

use super::PolicyError;

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
