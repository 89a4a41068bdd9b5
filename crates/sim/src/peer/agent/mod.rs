//! A simulated agent: plays the CLI's side of the conversation.
//!
//! Its frames, their fields and their order follow the observed behaviour of CLI 2.1.332. The model's output
//! comes from a [`Brain`]. Times are tokio's, ids come from a seed: the same conversation gives the same lines.
//!
//! Simulated are turns, streaming, permissions, queueing, background commands, subagents, structured output, budgets,
//! stored sessions, `/clear` and commands of files, MCP servers inside the host and as processes, API errors, and control
//! requests about these.
//!
//! Hooks are called for UserPromptSubmit, UserPromptExpansion, PreToolUse, PermissionRequest, PermissionDenied, PostToolUse,
//! PostToolUseFailure, PostToolBatch, Stop, StopFailure, SubagentStart, SubagentStop, PreModelSwitch, PostModelSwitch,
//! MessageDisplay, InstructionsLoaded, Elicitation and ElicitationResult, and for the SessionEnd and SessionStart of `/clear`. Hooks
//! for other events are accepted and never called; the CLI does not call callbacks either when a session begins or is resumed.
//!
//! Not simulated: MCP servers over the network, which count as failed, plugins, skills, hooks in settings files, the tools,
//! slash commands and control requests of `not_simulated.json`, and records that the CLI writes into a session's file, and into git's
//! configuration, for itself alone. `docs/testing.md` has the whole list.

mod act;
mod api_failure;
mod background;
mod bash;
mod brain;
mod builder;
mod caller;
mod commands;
mod context;
mod control;
mod cost;
mod decision;
mod deferral;
pub(super) mod delivered;
mod disk;
mod edits;
mod ending;
mod environment;
mod files;
mod hands;
mod hooks;
mod ids;
mod inputs;
mod local;
mod mcp;
mod mcp_control;
mod model;
mod models;
mod not_simulated;
mod occasions;
mod output;
mod paths;
pub(crate) mod payload;
mod permission;
mod permission_request;
mod pipe;
mod plans;
mod played;
mod reads;
mod resources;
mod rules;
mod runners;
mod sed;
mod session;
mod settings;
mod settings_files;
mod shell;
mod stream;
mod structured;
mod subagent;
mod todos;
mod tools;
mod transcript;
mod turn;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use crate::flaw::Flaw;
use crate::inject::{FrameDirection, Schedule, Stage, Wire};
use crate::running::{self, ClientIo, Exit, Running, Witness};

pub use crate::script::{Gate, Reply};
pub use brain::{AgentInfo, Brain, CallResult, ModelRequest, ToolOutcome};
pub(in crate::peer) use not_simulated::Feature;

/// A simulated agent that is ready to run.
///
/// ```no_run
/// use outrigger_sim::peer::{Agent, Reply};
/// use serde_json::json;
///
/// # fn main() {
/// let (client, agent) = Agent::builder()
///     .replies([
///         Reply::tool("Bash", json!({"command": "touch a.txt", "description": "touch a file"})),
///         Reply::say("done"),
///     ])
///     .spawn_in_memory();
/// # }
/// ```
pub struct Agent {
    config: Config,
    brain: played::ModelPlayer,
}

/// The settings of a simulated agent.
#[must_use]
pub struct Builder {
    agent: Agent,
}

/// The mode in which nobody is asked.
const BYPASS: &str = "bypassPermissions";

/// How long a process with faults stays alive while its client reads the rest.
const LINGER: Duration = Duration::from_secs(10);

/// A tool of the test's own.
pub(super) type Handler = Arc<dyn Fn(&Value) -> ToolOutcome + Send + Sync>;

/// The settings of a simulated agent.
#[derive(Clone, Default)]
pub(super) struct Config {
    /// The faults of its pipes and of its process.
    pub(super) faults: Option<Schedule>,
    /// Whether the agent is a process of its own.
    pub(super) process: bool,
    /// The faults at work.
    pub(super) wire: Option<Wire>,
    pub(super) cwd: PathBuf,
    /// What the transcript says of the git worktree that `cwd` is, if the CLI has made it.
    pub(super) worktree: Option<Value>,
    pub(super) home: String,
    /// Whether no configuration file names MCP servers.
    pub(super) strict_mcp_config: bool,
    pub(super) model: String,
    /// Whether the model was given, so that settings don't change it.
    pub(super) model_given: bool,
    pub(super) mode: String,
    /// Whether the mode was.
    pub(super) mode_given: bool,
    pub(super) bypass_launched: bool,
    pub(super) session_id: Option<String>,
    pub(super) partial: bool,
    pub(super) replay: bool,
    /// Whether `session_state_changed` is sent, and marked `sdk_host_only`.
    pub(super) session_state: Option<bool>,
    pub(super) permission_prompts: bool,
    pub(super) unattended: bool,
    pub(super) whole_todos: bool,
    /// How often hooks may keep a turn from ending; eight times unless set.
    pub(super) stop_hook_block_cap: Option<u32>,
    pub(super) allowed: Vec<String>,
    pub(super) disallowed: Vec<String>,
    pub(super) await_initialize: bool,
    pub(super) startup_failure_results: bool,
    pub(super) await_claim: bool,
    pub(super) sdk_servers: Vec<String>,
    pub(super) tools: Option<Vec<String>>,
    pub(super) directories: Vec<String>,
    /// The features that the flags use and that are not simulated.
    unsimulated: Vec<Feature>,
    pub(super) max_turns: Option<u64>,
    pub(super) max_retries: u32,
    /// How long a server may take to connect.
    mcp_timeout: Duration,
    /// How long a command may take whose call does not say.
    usual_run: Duration,
    /// How long a command may take at most.
    longest_run: Duration,
    /// The model of subagents for which nothing else names one.
    subagent_model: Option<String>,
    pub(super) latency: Duration,
    pub(super) seed: u64,
    /// Whether times are counted and not measured.
    pub(super) virtual_clock: bool,
    pub(super) real_tools: bool,
    /// The directory for the CLI's temporary files; that of the system unless set.
    temp_dir: Option<PathBuf>,
    pub(super) files: BTreeMap<String, String>,
    pub(super) handlers: Vec<(String, Handler)>,
    /// Where sessions are kept, if anywhere.
    config_dir: Option<PathBuf>,
    /// Whether a variable names it.
    is_config_dir_named: bool,
    persist: bool,
    /// Whether records are also sent to the host.
    mirror: bool,
    entrypoint: String,
    by_official_sdk: bool,
    resume: Option<transcript::Resume>,
    fork: bool,
    resume_at: Option<String>,
    resume_drops: Option<String>,
    max_budget: Option<f64>,
    schema: Option<structured::Schema>,
    agents: std::collections::BTreeMap<String, subagent::Definition>,
    forward_text: bool,
    /// Whether slash commands are for the model.
    no_commands: bool,
    /// Whether files are remembered as they were before each prompt.
    checkpoints: bool,
    settings: serde_json::Map<String, Value>,
    settings_place: rules::SettingsPlace,
    /// What the client brings in `initialize` in place of flags.
    initialize_fields: Vec<String>,
    /// MCP servers that are not the host's, with their configurations.
    servers: Vec<(String, Value)>,
    /// What is wrong with those that cannot be.
    server_errors: Vec<Value>,
    system_prompt: Option<String>,
    appended_prompt: Option<String>,
    title: Option<String>,
    fallback: Option<String>,
    /// How long agents in the background may hold the process up at its end.
    patience: Duration,
    /// The sources of settings on disk that count: `user`, `project`, `local`.
    sources: Vec<String>,
    /// Is told each flaw at once.
    witness: Option<Witness>,
}

impl Config {
    /// Whether the process was started so that it may ask nobody, and no settings forbid it.
    fn may_bypass(&self, settings: &settings::Settings) -> bool {
        (self.bypass_launched || self.mode == BYPASS) && !settings.disable(BYPASS)
    }

    /// Whether settings, commands and instructions of this source are read from the disk.
    fn reads(&self, source: &str) -> bool {
        self.sources.iter().any(|known| known == source)
    }
}

impl Agent {
    /// An agent like a bare `claude --permission-prompt-tool stdio` with stream-json in and out, whose model
    /// follows the [directives](crate::directive) in the prompts.
    pub fn builder() -> Builder {
        let config = Config {
            cwd: PathBuf::from("/home/user/project"),
            home: "/home/user".to_owned(),
            model: payload::MODEL.to_owned(),
            mode: "default".to_owned(),
            permission_prompts: true,
            max_retries: 10,
            mcp_timeout: Duration::from_secs(30),
            usual_run: Duration::from_secs(120),
            longest_run: Duration::from_secs(600),
            latency: Duration::from_millis(2),
            persist: true,
            entrypoint: "sdk-cli".to_owned(),
            patience: Duration::from_secs(600),
            ..Config::default()
        };
        Builder {
            agent: Self {
                config,
                brain: played::ModelPlayer::new(),
            },
        }
    }

    /// Runs in a task of its own, over pipes in memory. Must be called inside a tokio runtime.
    pub fn spawn_in_memory(self) -> (ClientIo, Running) {
        let (client, peer) = running::pipes();
        (client, self.spawn(peer.stdin, peer.stdout, peer.stderr))
    }

    /// Runs in a task of its own. Must be called inside a tokio runtime.
    ///
    /// When it ends it has written and flushed everything, unless it was killed.
    pub fn spawn<I, O, E>(self, stdin: I, stdout: O, stderr: E) -> Running
    where
        I: AsyncRead + Unpin + Send + 'static,
        O: AsyncWrite + Unpin + Send + 'static,
        E: AsyncWrite + Unpin + Send + 'static,
    {
        let (running, reins) = running::reins();
        let (log, signal) = (reins.log, reins.signals);
        let Self { mut config, brain } = self;
        if let Some(witness) = config.witness.take() {
            log.witness(witness);
        }
        if config.virtual_clock {
            log.count();
        }
        let stage = if config.process {
            Stage::Process
        } else {
            Stage::Transport
        };
        let wire = config.faults.as_ref().map(|schedule| Wire::new(schedule, stage));
        config.wire = match wire {
            None => None,
            Some(Ok(wire)) => Some(wire),
            Some(Err(unfit)) => {
                log.flaw(Flaw::new("faults", unfit.to_string()));
                None
            }
        };
        tokio::spawn(async move {
            let exit: Exit = match config.wire.clone() {
                None => session::run(config, brain, log, signal, stdin, stdout, stderr).await,
                Some(wire) => {
                    let stdin = wire.reader(FrameDirection::Input, stdin);
                    let stdout = wire.writer(FrameDirection::Output, stdout);
                    // Stderr goes through a pipe, so that a flood comes between the lines.
                    let (complaints, pipe) = tokio::io::duplex(running::PIPE);
                    let mut flooded = wire.stderr(pipe);
                    let flood = tokio::spawn(async move {
                        let mut stderr = stderr;
                        let _ = tokio::io::copy(&mut flooded, &mut stderr).await;
                        let _ = stderr.shutdown().await;
                    });
                    let exit = session::run(config, brain, log, signal, stdin, stdout, complaints).await;
                    // Lines written before the end arrive, even if a fault held them back.
                    wire.over();
                    let arrive = async {
                        wire.drained().await;
                        let _ = flood.await;
                    };
                    // A client that reads nothing more does not keep the process.
                    let _ = tokio::time::timeout(LINGER, arrive).await;
                    // A fault may strike the last lines, when the agent itself has ended already.
                    wire.ending().unwrap_or(exit)
                }
            };
            let _ = reins.exit.send(Some(exit));
        });
        running
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("cwd", &self.config.cwd)
            .field("model", &self.config.model)
            .field("mode", &self.config.mode)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Builder({:?})", self.agent)
    }
}

#[cfg(test)]
mod tests;
