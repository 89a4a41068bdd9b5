//! Errors in options, found before anything is started.

use std::path::PathBuf;

use outrigger_protocol::shared::InvalidAgent;

use super::{Auth, Delivery};
use crate::cause::Cause;
use crate::discover::FindError;
use crate::error::{Error, ModuleProblem, debug_for_people};
use crate::permissions::PolicyError;
use crate::rule::RuleError;

/// Options that contradict each other, lack something or cannot reach the CLI. Nothing was started.
///
/// The message has the names of the fields of [`Options`](super::Options), and what to do.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// Two options that exclude each other.
    #[error("`{}` and `{}` exclude each other: {advice}", .options[0], .options[1])]
    Conflict {
        /// The two.
        options: [&'static str; 2],
        /// What to do.
        advice: &'static str,
    },
    /// An option that needs another.
    #[error("`{option}` needs `{needs}`: {advice}")]
    Requires {
        /// The option that is set.
        option: &'static str,
        /// The option that is missing.
        needs: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// A value that the CLI would reject, misread or silently drop.
    #[error("`{option}` {}{problem}", shown(.value))]
    Invalid {
        /// The option.
        option: &'static str,
        /// The value, shortened; empty where it might be secret.
        value: String,
        /// The problem, and what to do.
        problem: &'static str,
    },
    /// A subagent that the CLI would reject. The CLI would silently drop all others, too.
    #[error("`agents`: the CLI would refuse {name:?} and drop all agents with it")]
    Agent {
        /// The name of the subagent.
        name: String,
        /// What is wrong with it.
        #[source]
        problem: InvalidAgent,
    },
    /// An MCP server in this program that the CLI or the model could not use.
    #[error("`sdk_mcp_server`: {name:?} is invalid: {problem}")]
    McpServer {
        /// The name of the server.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A [`Policy`](crate::Policy) of the permission handler has a wrong rule, or the handler has an allow rule that [may not
    /// allow](crate::permissions::rules::Rule::check_allow).
    #[error("`permissions`: {0}")]
    Policy(PolicyError),
    /// A rule that the CLI would skip, split or misread.
    #[error("in `{option}` {error}")]
    Rule {
        /// The option.
        option: &'static str,
        /// What is wrong with the rule.
        #[source]
        error: RuleError,
    },
    /// A policy with allow rules stands behind a layer that decides for itself. The CLI would run the calls that the rules allow
    /// without a request to that layer.
    #[error(
        "`permissions`: the rule `{rule}` allows calls that the CLI then runs without asking, also the layer `{layer}` before it: put \
         the policy first, or make `{layer}` a PreToolUse hook, which sees all calls"
    )]
    RuleBehindLayer {
        /// The first of the rules.
        rule: String,
        /// The layer before the policy.
        layer: String,
    },
    /// The options skip permissions, and the user is the superuser: the CLI rejects that.
    #[error(
        "the CLI does not let root skip permissions (`permission_mode` bypassPermissions): run as another user, or, in a throw-away \
         container only, set `assume_sandbox`"
    )]
    BypassAsRoot,
    /// The options set a variable that belongs to `auth`.
    #[error(
        "the variable {name} is set beside `Auth::{auth}`: leave it out, or choose the `auth` that sets it"
    )]
    AuthVariable {
        /// The variable.
        name: String,
        /// The variant of [`Auth`].
        auth: &'static str,
    },
    /// The credential of the account is in the user's home, which a hermetic session does not see.
    #[error(
        "`Auth::{auth}` lies in the user's home, which `Isolation::Hermetic` hides: give the key or token itself as `auth`, name a \
         `hermetic_home` that holds the login, or choose `Isolation::Plain`"
    )]
    AuthNotReachable {
        /// The variant of [`Auth`].
        auth: &'static str,
    },
    /// There is no home directory for the CLI. Without one, it would write into the one of the system's user database.
    #[error(
        "there is no home directory: set HOME to an absolute path, give one with `env`, or use `Isolation::Hermetic`"
    )]
    NoHome,
    /// The working directory is missing. (The system reports this and a missing program alike.)
    #[error("`cwd`: {}{}{problem}", .path.display(), if .path.as_os_str().is_empty() { "" } else { " " })]
    Cwd {
        /// The directory; empty if there is none at all.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file that an option names is missing or cannot be read.
    #[error("`{option}`: cannot read {}: {error}", .path.display())]
    File {
        /// The option.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: String,
    },
    /// A delivery that the option does not support.
    #[error("`{option}` cannot be delivered by {delivery:?}: {problem}")]
    Delivery {
        /// The option.
        option: &'static str,
        /// The delivery that was set.
        delivery: Delivery,
        /// The reason, and what to set.
        problem: &'static str,
    },
    /// A value that is too long for the command line, and has no other delivery.
    #[error("`{option}` would put {bytes} bytes on the command line: shorten it")]
    TooLong {
        /// The option.
        option: &'static str,
        /// The length of the value in bytes.
        bytes: usize,
    },
    /// A flag of [`Options::extra_arg`](super::Options::extra_arg) that cannot be used.
    #[error("`extra_args`: {flag:?} {problem}")]
    ExtraArg {
        /// The flag.
        flag: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A field of [`Options::initialize_field`](super::Options::initialize_field) that an option has set, or that cannot be sent.
    #[error("`initialize_fields`: {name:?} {problem}")]
    InitializeField {
        /// The field.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A private directory or file of the session could not be created.
    #[error("cannot make a private place for {purpose} in {}: {error}", .path.display())]
    Private {
        /// What the value is for.
        purpose: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        error: String,
    },
    /// The CLI was not found.
    #[error("the Claude Code CLI cannot be used")]
    Cli(#[source] FindError),
    /// The JavaScript runtime for a CLI that is a script was not found.
    #[error(
        "{} needs {name}, which is not on the PATH: install it, or use the native build of Claude Code",
        .script.display()
    )]
    Runtime {
        /// The runtime's program.
        name: String,
        /// The script.
        script: PathBuf,
    },
}

impl OptionsError {
    pub(crate) fn auth_variable(name: &std::ffi::OsStr, auth: &Auth) -> Self {
        Self::AuthVariable {
            name: name.to_string_lossy().into_owned(),
            auth: auth.name(),
        }
    }
}

/// `refuse! { condition => error, … }` returns the error of the first condition that holds.
macro_rules! refuse {
    ($( $wrong:expr => $error:expr ),+ $(,)?) => { $( if $wrong { return Err($error); } )+ };
}
pub(crate) use refuse;

/// A value with what is wrong with it. Shortened: errors end up in logs.
pub(crate) fn invalid(option: &'static str, value: impl AsRef<str>, problem: &'static str) -> OptionsError {
    let value = value.as_ref();
    let mut short: String = value.chars().take(80).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    OptionsError::Invalid {
        option,
        value: short,
        problem,
    }
}

pub(crate) fn conflict(options: [&'static str; 2], advice: &'static str) -> OptionsError {
    OptionsError::Conflict { options, advice }
}

pub(crate) fn requires(option: &'static str, needs: &'static str, advice: &'static str) -> OptionsError {
    OptionsError::Requires {
        option,
        needs,
        advice,
    }
}

pub(crate) fn delivery(option: &'static str, delivery: Delivery, problem: &'static str) -> OptionsError {
    OptionsError::Delivery {
        option,
        delivery,
        problem,
    }
}

/// A value in the message of an error.
fn shown(value: &str) -> String {
    match value {
        "" => String::new(),
        _ => format!("is {value:?}, which "),
    }
}

debug_for_people!(OptionsError);

impl ModuleProblem for OptionsError {
    fn is_invalid(&self) -> bool {
        true
    }

    fn names_options(&self) -> bool {
        true
    }

    /// The cause, if the CLI or the system would have reported the same.
    fn known_cause(&self) -> Option<Cause> {
        Some(match self {
            Self::Cwd { .. } => Cause::CwdMissing,
            Self::BypassAsRoot => Cause::RootBypass,
            Self::TooLong { .. } => Cause::ArgumentsTooLong,
            Self::Cli(error) => error.cause(),
            Self::Runtime { .. } => Cause::WrongPlatform,
            _ => return None,
        })
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Cli(error) => Some(error.advice()),
            // Others say themselves what to do.
            _ => None,
        }
    }
}

impl Error {
    /// The problem of the options, if they were wrong.
    pub fn as_options_error(&self) -> Option<&OptionsError> {
        self.problem()
    }
}

impl From<FindError> for OptionsError {
    fn from(error: FindError) -> Self {
        Self::Cli(error)
    }
}
