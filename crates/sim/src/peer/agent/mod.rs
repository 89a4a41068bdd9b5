//! A simulated agent: the CLI's side of the conversation, played for real.
//!
//! What it does follows what CLI 2.1.330 was seen to do: the frames, their fields and their order. What the model would
//! say comes from a [`Brain`]. Times are tokio's, ids come from a seed: the same conversation gives the same lines.
//!
//! Simulated are turns, streaming, permissions, queueing, background commands, subagents, structured output, budgets,
//! sessions on disk, slash commands, compaction by hand, MCP servers inside the host and as processes, API errors, and
//! control requests about these.
//!
//! Hooks are called for UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure, PostToolBatch,
//! Stop, StopFailure, SubagentStart, SubagentStop, PreCompact and PostCompact, and for the SessionEnd and SessionStart of
//! `/clear`; those for other events are taken and never called.
//!
//! Not simulated: MCP servers over the network, which count as failed, compaction that nobody asked for, plugins, skills,
//! settings files, and what the CLI writes into a session's file for itself alone.

mod act;
mod background;
mod brain;
mod context;
mod control;
mod cost;
mod disk;
mod ending;
mod files;
mod hooks;
mod ids;
mod listings;
mod local;
mod mcp;
mod mcp_control;
pub(crate) mod payload;
mod permission;
mod pipe;
mod plans;
mod search;
mod session;
mod settings;
mod stream;
mod structured;
mod subagent;
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
use tokio::sync::{mpsc, watch};

use crate::fault::{Direction, Schedule, Stage, Wire};
use crate::script::Flaw;

use super::running::{self, ClientIo, Exit, Log, Running};

pub(crate) use act::{Act, Deed, Look, rate_limit};
pub use brain::{AgentInfo, Ask, Brain, CallPlan, Gate, Outcome, Reply, ToolResult};

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
    brain: Box<dyn Brain>,
}

/// Says what a simulated agent is like.
#[must_use]
pub struct Builder {
    agent: Agent,
}

/// How long a process with faults lives on while its client reads what is left.
const LINGER: Duration = Duration::from_secs(10);

/// A tool of the test's own.
pub(super) type Handler = Arc<dyn Fn(&Value) -> Outcome + Send + Sync>;

/// What a simulated agent is like.
#[derive(Clone)]
pub(super) struct Config {
    /// What goes wrong on its pipes, and with it.
    pub(super) faults: Option<Schedule>,
    /// Whether it is a process of its own.
    pub(super) process: bool,
    /// The faults at work.
    pub(super) wire: Option<Wire>,
    pub(super) cwd: PathBuf,
    pub(super) home: String,
    pub(super) model: String,
    pub(super) mode: String,
    pub(super) bypass_launched: bool,
    pub(super) session_id: Option<String>,
    pub(super) partial: bool,
    pub(super) replay: bool,
    /// Whether `session_state_changed` is sent, and marked `sdk_host_only`.
    pub(super) session_state: Option<bool>,
    pub(super) permission_prompts: bool,
    pub(super) allowed: Vec<String>,
    pub(super) disallowed: Vec<String>,
    pub(super) asked: Vec<String>,
    pub(super) await_initialize: bool,
    pub(super) await_claim: bool,
    pub(super) sdk_servers: Vec<String>,
    pub(super) tools: Option<Vec<String>>,
    pub(super) directories: Vec<String>,
    pub(super) max_turns: Option<u64>,
    pub(super) max_retries: u32,
    pub(super) latency: Duration,
    pub(super) seed: u64,
    pub(super) real_tools: bool,
    pub(super) files: BTreeMap<String, String>,
    pub(super) handlers: Vec<(String, Handler)>,
    /// Where sessions are kept, if anywhere.
    config_dir: Option<PathBuf>,
    persist: bool,
    /// Whether what is kept is also shown to the host.
    mirror: bool,
    entrypoint: String,
    resume: Option<transcript::Resume>,
    fork: bool,
    resume_at: Option<String>,
    max_budget: Option<f64>,
    schema: Option<structured::Schema>,
    agents: std::collections::BTreeMap<String, subagent::Definition>,
    forward_text: bool,
    /// Whether slash commands are for the model.
    no_commands: bool,
    /// Whether files are remembered as they were before each prompt.
    checkpoints: bool,
    settings: serde_json::Map<String, Value>,
    /// MCP servers that are not the host's, with their configurations.
    servers: Vec<(String, Value)>,
    system_prompt: Option<String>,
    appended_prompt: Option<String>,
    title: Option<String>,
    fallback: Option<String>,
    /// How long agents in the background may hold the process up at its end.
    patience: Duration,
}

impl Agent {
    /// An agent as a bare `claude --permission-prompt-tool stdio` with stream-json in and out would be, whose model does
    /// what the [directives](crate::directive) in the prompts say.
    pub fn builder() -> Builder {
        let config = Config {
            cwd: PathBuf::from("/home/user/project"),
            home: "/home/user".to_owned(),
            model: payload::MODEL.to_owned(),
            mode: "default".to_owned(),
            bypass_launched: false,
            session_id: None,
            partial: false,
            replay: false,
            session_state: None,
            permission_prompts: true,
            allowed: Vec::new(),
            disallowed: Vec::new(),
            asked: Vec::new(),
            await_initialize: false,
            await_claim: false,
            sdk_servers: Vec::new(),
            tools: None,
            directories: Vec::new(),
            max_turns: None,
            max_retries: 10,
            latency: Duration::from_millis(2),
            seed: 0,
            faults: None,
            process: false,
            wire: None,
            real_tools: false,
            files: BTreeMap::new(),
            handlers: Vec::new(),
            config_dir: None,
            persist: true,
            mirror: false,
            entrypoint: "sdk-cli".to_owned(),
            resume: None,
            fork: false,
            resume_at: None,
            max_budget: None,
            schema: None,
            agents: std::collections::BTreeMap::new(),
            forward_text: false,
            no_commands: false,
            checkpoints: false,
            settings: serde_json::Map::new(),
            servers: Vec::new(),
            system_prompt: None,
            appended_prompt: None,
            title: None,
            fallback: None,
            patience: Duration::from_secs(600),
        };
        Builder {
            agent: Self {
                config,
                brain: Box::new(brain::Directives::default()),
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
        let log = Log::new();
        let (exit_sender, exit) = watch::channel(None);
        let (signals, signal) = mpsc::channel(8);
        let running = Running {
            log: log.clone(),
            exit,
            signals,
        };
        let Self { mut config, brain } = self;
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
                    let stdin = wire.reader(Direction::Input, stdin);
                    let stdout = wire.writer(Direction::Output, stdout);
                    // What is written to stderr goes through a pipe, so that a flood comes between the lines.
                    let (complaints, pipe) = tokio::io::duplex(running::PIPE);
                    let mut flooded = wire.stderr(pipe);
                    let flood = tokio::spawn(async move {
                        let mut stderr = stderr;
                        let _ = tokio::io::copy(&mut flooded, &mut stderr).await;
                        let _ = stderr.shutdown().await;
                    });
                    let exit = session::run(config, brain, log, signal, stdin, stdout, complaints).await;
                    // What was written before the end arrives, whatever held it back.
                    wire.over();
                    let arrive = async {
                        wire.drained().await;
                        let _ = flood.await;
                    };
                    // A client that reads nothing more does not keep the process.
                    let _ = tokio::time::timeout(LINGER, arrive).await;
                    // A fault may strike what is written last, when the agent itself has ended already.
                    wire.ending().unwrap_or(exit)
                }
            };
            let _ = exit_sender.send(Some(exit));
        });
        running
    }
}

impl Builder {
    /// Lets the model do what the [directives](crate::directive) in the prompts say. This is the default.
    pub fn directives(self) -> Self {
        self.brain(brain::Directives::default())
    }

    /// Lets the model give these replies in order, whatever it is asked, and `ok` once they have run out.
    pub fn replies(self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.brain(brain::Replies(replies.into_iter().collect()))
    }

    /// Lets this play the model.
    pub fn brain(mut self, brain: impl Brain + 'static) -> Self {
        self.agent.brain = Box::new(brain);
        self
    }

    /// The working directory; `/home/user/project` unless set.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.agent.config.cwd = cwd.into();
        self
    }

    /// The home directory, which is only named and never touched; `/home/user` unless set.
    pub fn home(mut self, home: impl Into<String>) -> Self {
        self.agent.config.home = home.into();
        self
    }

    /// The model, or an alias for one.
    pub fn model(mut self, model: &str) -> Self {
        self.agent.config.model = payload::resolve_model(model);
        self
    }

    /// The permission mode at the beginning; `default` unless set.
    pub fn permission_mode(mut self, mode: impl Into<String>) -> Self {
        self.agent.config.mode = mode.into();
        self
    }

    /// Whether `bypassPermissions` may be switched on later.
    pub fn bypass_launched(mut self, launched: bool) -> Self {
        self.agent.config.bypass_launched = launched;
        self
    }

    /// The session id; one made from the seed unless set.
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        self.agent.config.session_id = Some(id.into());
        self
    }

    /// Whether `stream_event` lines are sent, as with `--include-partial-messages`.
    pub fn partial_messages(mut self, partial: bool) -> Self {
        self.agent.config.partial = partial;
        self
    }

    /// Whether each prompt comes back when its turn begins, as with `--replay-user-messages`.
    pub fn replay_user_messages(mut self, replay: bool) -> Self {
        self.agent.config.replay = replay;
        self
    }

    /// Sends `session_state_changed` lines, as with `CLAUDE_CODE_SDK_READS_SESSION_STATE=1`.
    pub fn sdk_reads_session_state(mut self) -> Self {
        self.agent.config.session_state = Some(true);
        self
    }

    /// Sends `session_state_changed` lines, as with `CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1`.
    pub fn emit_session_state_events(mut self) -> Self {
        self.agent.config.session_state = Some(false);
        self
    }

    /// Whether the client is asked for permissions, as with `--permission-prompt-tool stdio`; it is unless set.
    pub fn permission_prompts(mut self, prompts: bool) -> Self {
        self.agent.config.permission_prompts = prompts;
        self
    }

    /// Adds rules of `--allowedTools`.
    pub fn allowed_tools<S: Into<String>>(mut self, rules: impl IntoIterator<Item = S>) -> Self {
        self.agent
            .config
            .allowed
            .extend(rules.into_iter().map(Into::into));
        self
    }

    /// Adds rules of `--disallowedTools`.
    pub fn disallowed_tools<S: Into<String>>(mut self, rules: impl IntoIterator<Item = S>) -> Self {
        self.agent
            .config
            .disallowed
            .extend(rules.into_iter().map(Into::into));
        self
    }

    /// Adds rules for tools that are always asked for, as `permissions.ask` of the settings has them.
    pub fn asked_tools<S: Into<String>>(mut self, rules: impl IntoIterator<Item = S>) -> Self {
        self.agent.config.asked.extend(rules.into_iter().map(Into::into));
        self
    }

    /// Whether the first line must be an `initialize` request, as with `--await-initialize`.
    pub fn await_initialize(mut self, awaited: bool) -> Self {
        self.agent.config.await_initialize = awaited;
        self
    }

    /// Whether it is a spare that waits to be claimed, as with `--await-claim`.
    pub fn await_claim(mut self, awaited: bool) -> Self {
        self.agent.config.await_claim = awaited;
        self
    }

    /// Names MCP servers inside the host, as `--mcp-config` does; `initialize` may name them too.
    pub fn sdk_mcp_servers<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.agent
            .config
            .sdk_servers
            .extend(names.into_iter().map(Into::into));
        self
    }

    /// The built-in tools that there are, as with `--tools`.
    pub fn tools<S: Into<String>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.agent.config.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a directory, as with `--add-dir`.
    pub fn add_directory(mut self, directory: impl Into<String>) -> Self {
        self.agent.config.directories.push(directory.into());
        self
    }

    /// How many rounds a turn may have, as with `--max-turns`.
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.agent.config.max_turns = Some(turns);
        self
    }

    /// How often a failed request is repeated, as with `CLAUDE_CODE_MAX_RETRIES`; 10 unless set.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.agent.config.max_retries = retries;
        self
    }

    /// How long it takes to begin a turn and to get a response of the model; 2 ms each unless set.
    pub fn latency(mut self, latency: Duration) -> Self {
        self.agent.config.latency = latency;
        self
    }

    /// What ids are made from.
    pub fn seed(mut self, seed: u64) -> Self {
        self.agent.config.seed = seed;
        self
    }

    /// Lets `Bash`, `Read`, `Write`, `Edit`, `Glob` and `Grep` really run and touch files. Unless set they act on files in
    /// memory, `Glob` and `Grep` are only there if [`tools`](Self::tools) names them (as with the CLI), and
    /// `Bash` understands `echo`, `cat`, `touch`, `rm`, `sleep`, `true`, `false` and `exit`, joined by `;` and `&&`.
    pub fn real_tools(mut self, real: bool) -> Self {
        self.agent.config.real_tools = real;
        self
    }

    /// Files that exist at the beginning, by their paths relative to the working directory. They are in memory only, for
    /// tools that are pretended.
    pub fn files(mut self, files: impl IntoIterator<Item = (String, String)>) -> Self {
        self.agent.config.files.extend(files);
        self
    }

    /// Keeps sessions in this directory, as `CLAUDE_CONFIG_DIR` has the CLI do; they are not kept unless set.
    ///
    /// The files are where the CLI puts them, `projects/<working directory>/<session id>.jsonl`, and hold the
    /// conversation in its records. They are created with the first prompt.
    pub fn config_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.agent.config.config_dir = Some(directory.into());
        self
    }

    /// Whether the session is kept, if a directory for that is set, as without `--no-session-persistence`.
    pub fn session_persistence(mut self, persist: bool) -> Self {
        self.agent.config.persist = persist;
        self
    }

    /// Sends what is kept as `transcript_mirror` lines too, as with `--session-mirror`.
    pub fn session_mirror(mut self, mirror: bool) -> Self {
        self.agent.config.mirror = mirror;
        self
    }

    /// What started the session, in its records, as `CLAUDE_CODE_ENTRYPOINT` says; `sdk-cli` unless set.
    pub fn entrypoint(mut self, entrypoint: impl Into<String>) -> Self {
        self.agent.config.entrypoint = entrypoint.into();
        self
    }

    /// Goes on with the session of this id, as with `--resume`. The agent ends with an error result and exit code 1 if
    /// there is none.
    pub fn resume(mut self, session_id: impl Into<String>) -> Self {
        self.agent.config.resume = Some(transcript::Resume::Id(Some(session_id.into())));
        self
    }

    /// `--resume` without a value, which ends it.
    pub(in crate::peer) fn resume_without_id(mut self) -> Self {
        self.agent.config.resume = Some(transcript::Resume::Id(None));
        self
    }

    /// Goes on with the last session of the working directory, if there is one, as with `--continue`.
    pub fn continue_latest(mut self) -> Self {
        self.agent.config.resume = Some(transcript::Resume::Latest);
        self
    }

    /// Goes on in a session of its own that begins with a copy, as with `--fork-session`.
    pub fn fork_session(mut self, fork: bool) -> Self {
        self.agent.config.fork = fork;
        self
    }

    /// Goes on behind the assistant's message of this uuid, as with `--resume-session-at`.
    pub fn resume_session_at(mut self, uuid: impl Into<String>) -> Self {
        self.agent.config.resume_at = Some(uuid.into());
        self
    }

    /// How much a session may cost, in US dollars, as with `--max-budget-usd`.
    pub fn max_budget_usd(mut self, limit: f64) -> Self {
        self.agent.config.max_budget = Some(limit);
        self
    }

    /// Demands answers in the shape of this JSON schema, as with `--json-schema`.
    ///
    /// # Errors
    ///
    /// What is wrong with the schema.
    pub fn json_schema(mut self, schema: &Value) -> Result<Self, String> {
        self.agent.config.schema = Some(structured::Schema::read(schema)?);
        Ok(self)
    }

    /// Defines kinds of subagents, as with `--agents`: an object of definitions by name. As with the CLI, one that is
    /// wrong drops them all.
    pub fn agents(mut self, agents: &Value) -> Self {
        self.agent.config.agents = subagent::Definition::read_all(agents).unwrap_or_default();
        self
    }

    /// Whether the text of subagents in the foreground is shown, as with `--forward-subagent-text`.
    pub fn forward_subagent_text(mut self, forward: bool) -> Self {
        self.agent.config.forward_text = forward;
        self
    }

    /// Whether `rewind_files` can bring files back to what they were before a prompt, as with
    /// `CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true`. What commands do to files is not remembered.
    pub fn file_checkpointing(mut self, enabled: bool) -> Self {
        self.agent.config.checkpoints = enabled;
        self
    }

    /// Configures an MCP server that is not the host's, as `--mcp-config` does. One of type `stdio` is really started, with
    /// the first `initialize` or prompt; others count as failed.
    pub fn mcp_server(mut self, name: impl Into<String>, config: Value) -> Self {
        self.agent.config.servers.push((name.into(), config));
        self
    }

    /// The system prompt in the place of the CLI's own, as with `--system-prompt`; the brain gets to see it.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.agent.config.system_prompt = Some(prompt.into());
        self
    }

    /// What is added to the system prompt, as with `--append-system-prompt`; the brain gets to see it.
    pub fn append_system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.agent.config.appended_prompt = Some(prompt.into());
        self
    }

    /// The session's name, as with `--name`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.agent.config.title = Some(name.into());
        self
    }

    /// The model that is asked once the other one stays overloaded, as with `--fallback-model`.
    pub fn fallback_model(mut self, model: &str) -> Self {
        self.agent.config.fallback = Some(payload::resolve_model(model));
        self
    }

    /// How long agents in the background may hold the process up once its input has ended, as
    /// `CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS` says; 10 minutes unless set.
    pub fn background_wait(mut self, most: Duration) -> Self {
        self.agent.config.patience = most;
        self
    }

    /// Settings that `get_settings` tells, as `--settings` has them.
    pub(in crate::peer) fn settings(mut self, settings: &Value) -> Self {
        let settings = settings.as_object().into_iter().flatten();
        let settings = settings.map(|(key, value)| (key.clone(), value.clone()));
        self.agent.config.settings.extend(settings);
        self
    }

    /// Whether slash commands are left to the model, as with `--disable-slash-commands`.
    pub fn disable_slash_commands(mut self, disable: bool) -> Self {
        self.agent.config.no_commands = disable;
        self
    }

    /// Lets this go wrong on its pipes, and with it. What cannot be done there is a flaw of the report.
    pub fn faults(mut self, schedule: Schedule) -> Self {
        self.agent.config.faults = Some(schedule);
        self
    }

    /// Whether it is all that its process does, so that [faults](Self::faults) may do to the process what they do.
    pub fn owns_process(mut self, owns: bool) -> Self {
        self.agent.config.process = owns;
        self
    }

    /// Adds a tool, or replaces what a built-in one does.
    pub fn tool(
        mut self,
        name: impl Into<String>,
        run: impl Fn(&Value) -> Outcome + Send + Sync + 'static,
    ) -> Self {
        self.agent.config.handlers.push((name.into(), Arc::new(run)));
        self
    }

    /// The agent, ready to run.
    pub fn build(self) -> Agent {
        self.agent
    }

    /// Builds it and runs it over pipes in memory; see [`Agent::spawn_in_memory`].
    pub fn spawn_in_memory(self) -> (ClientIo, Running) {
        self.agent.spawn_in_memory()
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
