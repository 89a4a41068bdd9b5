//! The configuration of the agent.

use std::path::PathBuf;
use std::time::Duration;

use outrigger::env::Environment;
use outrigger::options::{Auth, Isolation};
use outrigger::{Agent, Options};

use crate::host::Host;

/// The configuration of the agent. Directories, MCP servers and modes come from the editor with each session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// The options of each session's CLI, which requests of the editor extend. The agent sets the permission handler itself: the user of
    /// the editor decides. Editors can choose the mode `bypassPermissions` only with
    /// [`allow_dangerously_skip_permissions`](Options::allow_dangerously_skip_permissions), which is on by default, and off in options that
    /// a program makes itself.
    pub options: Options,
    /// How long a cancelled prompt may stay open. A CLI that has not ended the turn by then is killed, and revived for the next prompt.
    /// 10 s by default.
    pub cancel_floor: Duration,
    /// How long all sessions together may take to end after the editor has gone; then their processes are killed. 3 s by default.
    pub exit_grace: Duration,
    /// Whether to keep a spare: a CLI that is started ahead, so that the next session opens at once. It is an idle process of 160 to 260
    /// MB that other programs do not see. It starts after the first session that a spare could have served. True by default.
    pub spare: bool,
    /// The maximum age of a spare. An older one is ended, and another is started after the next session. A spare is also discarded when
    /// the user's settings or sign-in have changed. 30 minutes by default.
    pub spare_age: Duration,
    /// Whether edits of the main agent go through the editor's `fs/write_text_file`, if the editor has it, so that they can be accepted
    /// and rejected in its own review. False by default.
    pub review_edits: bool,
    /// Whether to compact large conversations that nobody goes on with. `None`, the default, never does.
    pub idle_compaction: Option<IdleCompaction>,
    /// Which versions of the protocol are served. [`Protocol::Auto`] by default.
    pub protocol: Protocol,
    /// The host that the sessions live on; on this machine if `None`.
    pub(crate) host: Option<Host>,
}

/// When to compact a conversation that nobody goes on with.
///
/// The first prompt after a pause that outlasts the API's prompt cache is billed for the whole context. A compaction before that costs
/// less, as it reads the cache, and makes the next prompts cheaper. The agent announces it a minute before: a prompt or a cancel calls it
/// off. It runs once, until the user's next prompt, and not while a background task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdleCompaction {
    /// How long nothing has to happen in the session.
    pub after: Duration,
    /// From how many tokens in the context on. 200,000 by default.
    pub from_tokens: u64,
}

impl IdleCompaction {
    /// After this time.
    pub fn new(after: Duration) -> Self {
        let from_tokens = 200_000;
        Self { after, from_tokens }
    }

    /// Sets [`from_tokens`](Self::from_tokens).
    pub fn from_tokens(self, from_tokens: u64) -> Self {
        Self { from_tokens, ..self }
    }
}

/// Which versions of the protocol are served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// The version that the editor asks for in `initialize`: version 1, or the draft of version 2.
    #[default]
    Auto,
    /// Version 1, whatever the editor asks for.
    V1,
    /// Only the draft of version 2: an editor that asks for version 1 gets an error.
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
            review_edits: false,
            idle_compaction: None,
            protocol: Protocol::Auto,
            host: None,
        }
    }
}

impl Config {
    /// The user's own Claude Code, as in a terminal: their settings, account and environment, but without the variables of a session in
    /// which this program itself was started.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`options`](Self::options).
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the path of the CLI, instead of a search.
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

    /// Sets [`review_edits`](Self::review_edits).
    pub fn review_edits(mut self, review: bool) -> Self {
        self.review_edits = review;
        self
    }

    /// Sets [`idle_compaction`](Self::idle_compaction).
    pub fn idle_compaction(mut self, settings: IdleCompaction) -> Self {
        self.idle_compaction = Some(settings);
        self
    }

    /// Has the sessions on a host instead of this machine. They go on when the editor leaves, and the account, the options and the MCP servers are
    /// the operator's. [`options`](Self::options), the spare, the review of edits and the compaction do not apply.
    #[cfg(feature = "host")]
    pub fn host(mut self, host: outrigger_host_client::HostClient) -> Self {
        self.host = Some(Host::new(host));
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
        .allow_dangerously_skip_permissions(true)
        .client_app(concat!("outrigger-acp/", env!("CARGO_PKG_VERSION")))
}

/// Whether the environment declares a sandbox.
pub(crate) fn is_sandbox() -> bool {
    std::env::var_os("IS_SANDBOX").is_some_and(|value| !value.is_empty() && value != "0" && value != "false")
}

/// Adds what every session needs.
pub(crate) fn always(mut options: Options) -> Options {
    options.allow_dangerously_skip_permissions &= may_bypass(&options);
    options.include_partial_messages = true;
    options.forward_subagent_text = true;
    // As in a terminal, so that files can be rewound. A session store has no place for the copies.
    options.enable_file_checkpointing |= !options.has_session_store();
    options
}

/// Whether permissions may be bypassed. The CLI rejects that for root outside of a sandbox.
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
