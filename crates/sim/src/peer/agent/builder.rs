//! The settings of a simulated agent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::played::{Player, Source};
use super::{Agent, Brain, Builder, Feature, Outcome, payload, structured, subagent, transcript};
use crate::flaw::Flaw;
use crate::inject::Schedule;
use crate::running::{ClientIo, Running, Witness};
use crate::script::{Gates, Progress, Reply, Script};

impl Builder {
    /// Lets the model follow the [directives](crate::directive) in the prompts. This is the default.
    pub fn directives(self) -> Self {
        self.source(Source::Prompts)
    }

    /// Lets the model give these replies in order, to any request, and `ok` once they have run out.
    pub fn replies(self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.source(Source::Replies(replies.into_iter().collect()))
    }

    /// Lets this play the model.
    pub fn brain(self, brain: impl Brain + 'static) -> Self {
        self.source(Source::Brain(Box::new(brain)))
    }

    /// The gates of [replies](Reply::hold), which the test opens.
    pub fn gates(mut self, gates: &Gates) -> Self {
        self.agent.brain.gates = gates.clone();
        self
    }

    /// Lets this script play the model, and judge in the end. If the script does not pass its [`check`](Script::check), every reply is
    /// an error with the reason.
    pub fn script(mut self, script: &Script, gates: &Gates) -> Self {
        self.agent.brain = Player::among_others(script, gates, Progress::new());
        self.agent.brain.alone = true;
        self
    }

    /// Lets this script play the model together with all others that have this progress. It does not judge what is expected in the
    /// end: that is for [`Script::judge`], once all are done.
    pub fn script_in(mut self, script: &Script, gates: &Gates, progress: &Progress) -> Self {
        self.agent.brain = Player::among_others(script, gates, progress.clone());
        self
    }

    fn source(mut self, source: Source) -> Self {
        self.agent.brain.source = source;
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
        self.agent.config.model_given = true;
        self
    }

    /// The permission mode at the beginning; `default` unless set.
    pub fn permission_mode(mut self, mode: impl Into<String>) -> Self {
        self.agent.config.mode = mode.into();
        self.agent.config.mode_given = true;
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

    /// Whether the client gets permission requests, as with `--permission-prompt-tool stdio`; true unless set.
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

    /// Adds rules for tools that always need a permission request, like `permissions.ask` of the settings.
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

    /// Uses something that is not simulated: each turn ends with an error that names it.
    pub(in crate::peer) fn unsimulated(mut self, feature: Feature) -> Self {
        self.agent.config.unsimulated.push(feature);
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
    /// simulated tools.
    pub fn files(mut self, files: impl IntoIterator<Item = (String, String)>) -> Self {
        self.agent.config.files.extend(files);
        self
    }

    /// Keeps sessions in this directory, like `CLAUDE_CONFIG_DIR` for the CLI; they are not kept unless set.
    ///
    /// The files are where the CLI puts them, `projects/<working directory>/<session id>.jsonl`, and have the
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

    /// Sends records as `transcript_mirror` lines too, as with `--session-mirror`.
    pub fn session_mirror(mut self, mirror: bool) -> Self {
        self.agent.config.mirror = mirror;
        self
    }

    /// The program that started the session, in its records, like `CLAUDE_CODE_ENTRYPOINT`; `sdk-cli` unless set.
    pub fn entrypoint(mut self, entrypoint: impl Into<String>) -> Self {
        self.agent.config.entrypoint = entrypoint.into();
        self
    }

    /// Resumes the session of this id, as with `--resume`. The agent ends with an error result and exit code 1 if
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

    /// Resumes the last session of the working directory, if there is one, as with `--continue`.
    pub fn continue_latest(mut self) -> Self {
        self.agent.config.resume = Some(transcript::Resume::Latest);
        self
    }

    /// Continues in a new session that begins with a copy, as with `--fork-session`.
    pub fn fork_session(mut self, fork: bool) -> Self {
        self.agent.config.fork = fork;
        self
    }

    /// Continues after the assistant's message of this uuid, as with `--resume-session-at`.
    pub fn resume_session_at(mut self, uuid: impl Into<String>) -> Self {
        self.agent.config.resume_at = Some(uuid.into());
        self
    }

    /// The prompt whose turn may be left behind by that, as with `--resume-drops-turn`.
    pub fn resume_drops_turn(mut self, uuid: impl Into<String>) -> Self {
        self.agent.config.resume_drops = Some(uuid.into());
        self
    }

    /// How much a session may cost, in US dollars, as with `--max-budget-usd`.
    pub fn max_budget_usd(mut self, limit: f64) -> Self {
        self.agent.config.max_budget = Some(limit);
        self
    }

    /// Requires answers that match this JSON schema, as with `--json-schema`.
    ///
    /// # Errors
    ///
    /// When the schema is invalid, with the reason.
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

    /// Whether `rewind_files` can restore files to their state before a prompt, as with
    /// `CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true`. Changes by commands are not recorded.
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

    /// The addition to the system prompt, as with `--append-system-prompt`; the brain gets it.
    pub fn append_system_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.agent.config.appended_prompt = Some(prompt.into());
        self
    }

    /// The session's name, as with `--name`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.agent.config.title = Some(name.into());
        self
    }

    /// The model to use once the other one stays overloaded, as with `--fallback-model`.
    pub fn fallback_model(mut self, model: &str) -> Self {
        self.agent.config.fallback = Some(payload::resolve_model(model));
        self
    }

    /// How long background agents may keep the process alive once its input has ended, like
    /// `CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS`; 10 minutes unless set.
    pub fn background_wait(mut self, most: Duration) -> Self {
        self.agent.config.patience = most;
        self
    }

    /// Whether times are counted instead of measured, so that the same conversation always has the same times:
    /// each line of the agent takes a millisecond, and waits of the model or of a simulated command end at once
    /// and are added. Waits for the client, for real commands and for servers take their time, and count nothing.
    pub fn virtual_clock(mut self, counted: bool) -> Self {
        self.agent.config.virtual_clock = counted;
        self
    }

    /// How many tokens fit into the context: a million unless set. The conversation is compacted before a request once the
    /// last one, with its answer, had that many less 33,000; how many it had stands in the script.
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.agent.config.context_window = tokens;
        self
    }

    /// The sources of which settings files, slash commands and files with instructions are read from the disk, as with
    /// `--setting-sources`: `user` (in the [`config_dir`](Self::config_dir)), `project` and `local` (in the
    /// [`cwd`](Self::cwd)). None unless set; a [`CommandLine`](crate::peer::CommandLine) without the flag means all.
    ///
    /// Permissions that the host grants for good are written to the files of these sources, as the CLI does.
    pub fn setting_sources<S: Into<String>>(mut self, sources: impl IntoIterator<Item = S>) -> Self {
        self.agent.config.sources = sources.into_iter().map(Into::into).collect();
        self
    }

    /// Settings for `get_settings`, like `--settings`.
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

    /// Whether the agent is all that its process does, so that [faults](Self::faults) may affect the process.
    pub fn owns_process(mut self, owns: bool) -> Self {
        self.agent.config.process = owns;
        self
    }

    /// Calls this with each flaw of the client as soon as it is found, so that a flaw is known even if the process is killed.
    pub fn on_flaw(mut self, tell: impl Fn(&Flaw) + Send + Sync + 'static) -> Self {
        self.agent.config.witness = Some(Witness(Arc::new(tell)));
        self
    }

    /// Adds a tool, or replaces a built-in one.
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
