//! How the agent is set up.

use std::path::PathBuf;
use std::time::Duration;

use outrigger::env::Environment;
use outrigger::options::{Auth, Isolation};
use outrigger::{Agent, Options};

/// How the agent is set up. What it leaves to the editor (directories, MCP servers, modes) comes with each session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// What each session's CLI is started with, before what the editor asks for. Who decides about tool calls is set by the agent:
    /// the user of the editor does.
    pub options: Options,
    /// How long a prompt that was cancelled may stay open. A CLI that does not end its turn until then is ended itself, and brought
    /// back for the next prompt. 10 s unless set.
    pub cancel_floor: Duration,
    /// How long all sessions together may take to end once the editor has gone; then their processes are killed. 3 s unless set.
    pub exit_grace: Duration,
    /// Whether a CLI is started ahead for the next session, once one was opened that it could have been. The next then opens at once. It is an idle process of 160 to 260 MB that
    /// nobody else sees. True unless set.
    pub spare: bool,
    /// How old such a CLI may become. Then it is ended, and another is started after the next session. One that was started before
    /// the user's settings or sign-in changed is not used either. 30 minutes unless set.
    pub spare_age: Duration,
    /// Which versions of the protocol are served. [`Protocol::Auto`] unless set.
    pub protocol: Protocol,
}

/// Which versions of the protocol are served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// The one that the editor asks for in `initialize`: the first, or the draft of the second.
    #[default]
    Auto,
    /// The first, whatever the editor asks for.
    V1,
    /// The draft of the second, and no other: an editor that asks for the first is refused.
    V2,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            options: as_in_a_terminal(),
            cancel_floor: Duration::from_secs(10),
            exit_grace: Duration::from_secs(3),
            spare: true,
            spare_age: Duration::from_secs(30 * 60),
            protocol: Protocol::Auto,
        }
    }
}

impl Config {
    /// The user's own Claude Code, as it would run in a terminal: their settings, account and environment, without the marks of a
    /// session that this program itself may have been started in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`options`](Self::options).
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Uses this CLI instead of searching for one.
    pub fn cli(mut self, path: impl Into<PathBuf>) -> Self {
        self.options = self.options.cli_path(path);
        self
    }

    /// Sets [`cancel_floor`](Self::cancel_floor).
    pub fn cancel_floor(mut self, floor: Duration) -> Self {
        self.cancel_floor = floor;
        self
    }

    /// Sets [`exit_grace`](Self::exit_grace).
    pub fn exit_grace(mut self, grace: Duration) -> Self {
        self.exit_grace = grace;
        self
    }

    /// Sets [`spare`](Self::spare).
    pub fn spare(mut self, spare: bool) -> Self {
        self.spare = spare;
        self
    }

    /// Sets [`spare_age`](Self::spare_age).
    pub fn spare_age(mut self, age: Duration) -> Self {
        self.spare_age = age;
        self
    }

    /// Sets [`protocol`](Self::protocol).
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }
}

fn as_in_a_terminal() -> Options {
    Agent::builder()
        .auth(Auth::Inherit)
        .isolation(Isolation::Interactive)
        .environment(Environment::inherit_all())
        .assume_sandbox(is_sandbox())
        .client_app(concat!("outrigger-acp/", env!("CARGO_PKG_VERSION")))
}

/// Whether whoever started this program says that it runs in a sandbox.
pub(crate) fn is_sandbox() -> bool {
    std::env::var_os("IS_SANDBOX").is_some_and(|value| !value.is_empty() && value != "0" && value != "false")
}

/// These options with what holds for every session.
pub(crate) fn always(mut options: Options) -> Options {
    options.allow_dangerously_skip_permissions = may_bypass(&options);
    options.include_partial_messages = true;
    options.forward_subagent_text = true;
    // As in a terminal: so that files can be taken back. A session store has no place for the copies.
    options.enable_file_checkpointing |= !options.has_session_store();
    options
}

/// Whether permissions may be bypassed: not by the superuser, whom the CLI refuses that outside of a sandbox.
fn may_bypass(options: &Options) -> bool {
    options.assume_sandbox || !is_superuser()
}

#[cfg(unix)]
fn is_superuser() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_superuser() -> bool {
    false
}
