//! Permission rules in the CLI's own syntax.
//!
//! Only the CLI evaluates rules. A [`Policy`](super::Policy) passes its rules to the CLI when the session starts
//! (`--allowedTools`, `--disallowedTools`, `permissions.ask` of `--settings`), and answers only the remaining permission requests.
//! So a rule in a policy means exactly what it means in the CLI's settings, and if the CLI requests permission in spite of a rule
//! (a path outside of the working directories, a settings file, `awk 'BEGIN { system(…) }'`) no rule of a policy allows the call.
//!
//! This module parses rules only far enough to reject those that the CLI would silently skip, or that mean something else than
//! they look like.
//!
//! | rule | means |
//! |---|---|
//! | `Bash` | every call of the tool |
//! | `Bash(git status)` | this command |
//! | `Bash(git log *)`, `Bash(git log:*)` | this command, with any arguments or none |
//! | `Bash(git * main)` | a `*` stands for any text |
//! | `Read(src/**)`, `Read(./.env)` | files below the working directory, with the patterns of a `.gitignore` |
//! | `Edit(/docs/**)`, `Edit(~/notes/*.md)`, `Edit(//tmp/x)` | from the working directory, the home directory, the root; `Edit(…)` stands for all tools that write files |
//! | `WebFetch(domain:example.com)`, `WebFetch(domain:*.example.com)` | a host; the hosts below it |
//! | `WebFetch(domain:example.*)`, `WebFetch(domain:10.*.*.*)` | behind the beginning, a `*` stands for what is between two dots |
//! | `mcp__server`, `mcp__server__*`, `mcp__server__get_*` | tools of an MCP server |
//! | `Agent(name)`, `Skill(name)` | a kind of subagent; a skill |
//! | `Skill(name:*)` | skills whose names begin so: `Skill(commit:*)` means `committer`, too |
//! | `*`, `mcp__*` | all tools; only to deny or ask |
//! | `Tool(field:value)` | calls with this value in their input; only to deny or ask |
//!
//! A rule that allows a command with any arguments allows what they do: `git log --output=FILE` writes a file, anywhere. In patterns of
//! paths the CLI does not tell capital letters from small ones: `Edit(src/**)` allows `SRC/x`, too.
//!
//! A path with one `/` in front begins at the session's directory, however the rule gets to the CLI: in settings that are passed as
//! text, where the CLI looks for such a path beside a temporary file, the SDK writes the whole path into the rule, also in inline
//! [`Options::settings`](crate::Options::settings). In a settings file of your own such a path begins in the directory of that file. The
//! directory of a [spare](crate::Spare) is not known when its process starts: there, an ask rule such as `Edit(/x)`
//! matches each `x` below the directory.
//!
//! `Read` and `Edit` without parentheses match all files, also outside of the working directories. As a deny or ask rule, such a
//! rule matches that tool alone: `Grep`, `Glob` and commands can still read, `Write`, `NotebookEdit` and commands can still write.
//! `Edit(//**)` means all of them. A file that a prompt names by `@` is read without a
//! request, wherever it is; only a deny rule for its path, such as `Read(.env)`, keeps it out of the conversation.
//!
//! A deny rule is no sandbox. The CLI looks for the command in each part of a line, behind `sudo`, `env`, `xargs` and the
//! like, and for files in commands that it knows to read or write them. It does not look into `sh -c '…'`, `eval`, scripts, `find -exec`,
//! or behind options such as `git -C . push` and `xargs -I{} rm`, and does not know what `$'rm' x`, `rm${IFS}x` or `$(echo rm) x` will
//! run. A denied file is hidden from `Grep` and `Glob`, and denied to `cat .env` or `diff .env x`, but not to a command that finds it
//! (`cat *.txt`, `grep -r x .`), nor to commands that the CLI does not know (`less .env`, `dd if=.env`) or cannot check before they run
//! (`{ cat .env; }`, `echo "$(cat .env)"`). For most of these the CLI requests permission, and a policy that
//! [allows](super::Policy::allow_all) what is requested allows them. An ask rule for a file only holds for the tools that name the file:
//! not for commands (`cat secret.txt`), nor when `Grep` finds the file in a directory. Prefer allowing what is needed to denying what is
//! dangerous.

pub use crate::rule::{Rule, RuleError};

use super::PolicyError;

/// Rules that the CLI evaluates. Deny wins over ask, and ask over allow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// The CLI runs calls that these match without a request, unless its own checks require one. No session starts with a rule that
    /// [may not allow](Rule::check_allow).
    pub allow: Vec<Rule>,
    /// The CLI requests permission for calls that these match, whatever allows them.
    pub ask: Vec<Rule>,
    /// The CLI denies calls that these match.
    pub deny: Vec<Rule>,
    /// An allow rule behind a layer that decides for itself, and that layer.
    pub(crate) misplaced: Option<(Rule, String)>,
    /// The problem of these rules, or of their policy.
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

    /// The rules for the CLI. If one [may not allow](Rule::check_allow), or the policy is invalid, all allow rules are dropped.
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

    /// Adds the ask and deny rules of another list.
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
