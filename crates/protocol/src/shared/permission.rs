//! Permissions: modes, rules, changes to them, and the decision on one tool call.

mod result;
mod update;

pub use result::*;
pub use update::*;

use crate::open_enum;
use crate::shared::closed_enum::closed_enum;

closed_enum! {
    /// How tool calls are decided that no rule decides. A program can set these modes; [`ReportedPermissionMode`] has those that the
    /// CLI reports.
    #[non_exhaustive]
    pub enum PermissionMode {
        /// Everything that is not plainly harmless is asked. The CLI also knows it as `manual`.
        Default = "default",
        /// Edits of files in the working directories are allowed, the rest is asked.
        AcceptEdits = "acceptEdits",
        /// Nothing is asked and nothing but deny rules refuses. The CLI must have been launched with leave for it.
        BypassPermissions = "bypassPermissions",
        /// The model may look and plan but not change anything.
        Plan = "plan",
        /// What would be asked is refused instead.
        DontAsk = "dontAsk",
        /// A classifier decides. The CLI requests permission where the classifier is unsure.
        Auto = "auto",
    }
}

open_enum! {
    /// A permission mode as the CLI reports it. Newer CLIs may have modes that this build cannot ask for.
    pub enum ReportedPermissionMode {
        /// See [`PermissionMode::Default`].
        Default = "default",
        /// See [`PermissionMode::AcceptEdits`].
        AcceptEdits = "acceptEdits",
        /// See [`PermissionMode::BypassPermissions`].
        BypassPermissions = "bypassPermissions",
        /// See [`PermissionMode::Plan`].
        Plan = "plan",
        /// See [`PermissionMode::DontAsk`].
        DontAsk = "dontAsk",
        /// See [`PermissionMode::Auto`].
        Auto = "auto",
    }
}

impl ReportedPermissionMode {
    /// The same mode as one that can be asked for; `None` if this build does not know it.
    pub fn known(&self) -> Option<PermissionMode> {
        PermissionMode::from_wire(self.as_str())
    }
}

impl From<PermissionMode> for ReportedPermissionMode {
    fn from(mode: PermissionMode) -> Self {
        Self::from(mode.as_str())
    }
}

impl PartialEq<PermissionMode> for ReportedPermissionMode {
    fn eq(&self, other: &PermissionMode) -> bool {
        self.as_str() == other.as_str()
    }
}

closed_enum! {
    /// What a rule does with the calls that it matches.
    pub enum PermissionBehavior {
        /// Calls run without a question.
        Allow = "allow",
        /// Calls are denied.
        Deny = "deny",
        /// Each call needs permission, whatever the mode.
        Ask = "ask",
    }
}

closed_enum! {
    /// Where a change of permissions is kept.
    #[non_exhaustive]
    pub enum PermissionUpdateDestination {
        /// The user's settings, for all projects.
        UserSettings = "userSettings",
        /// The project's settings, which are usually shared.
        ProjectSettings = "projectSettings",
        /// The project's settings on this machine. Also makes the CLI add that file to git's global ignore list.
        LocalSettings = "localSettings",
        /// This session's memory only.
        Session = "session",
        /// The layer of the command line; gone with the process.
        CliArg = "cliArg",
    }
}

closed_enum! {
    /// How a person came to a decision, for the CLI's statistics.
    #[non_exhaustive]
    pub enum PermissionDecisionClassification {
        /// Allowed this once.
        UserTemporary = "user_temporary",
        /// Allowed for good.
        UserPermanent = "user_permanent",
        /// Rejected.
        UserReject = "user_reject",
    }
}
