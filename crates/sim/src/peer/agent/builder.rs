//! The settings of a simulated agent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::models;
use super::played::{ModelPlayer, StepSource};
use super::rules::SettingsPlace;
use super::{Agent, Brain, Builder, Feature, ToolOutcome, mcp, structured, subagent, transcript};
use crate::flaw::Flaw;
use crate::inject::Schedule;
use crate::running::{ClientIo, Running, Witness};
use crate::script::{Gates, Progress, Reply, Script};

impl Builder {
    /// Lets the model follow the [directives](crate::directive) in the prompts. This is the default.
    pub fn directives(self) -> Self {
        self.source(StepSource::Prompts)
    }

    /// Lets the model give these replies in order, to any request, and `ok` once they have run out.
    pub fn replies(self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.source(StepSource::Replies(replies.into_iter().collect()))
    }

    /// Lets this play the model.
    pub fn brain(self, brain: impl Brain + 'static) -> Self {
        self.source(StepSource::Brain(Box::new(brain)))
    }

    /// The gates of [replies](Reply::hold), which the test opens.
    pub fn gates(mut self, gates: &Gates) -> Self {
        self.agent.brain.gates = gates.clone();
        self
    }

    /// Lets this script play the model, and judge in the end. If the script does not pass its [`check`](Script::check), every reply is
    /// an error with the reason.
    pub fn script(mut self, script: &Script, gates: &Gates) -> Self {
        self.agent.brain = ModelPlayer::among_others(script, gates, Progress::new());
        self.agent.brain.alone = true;
        self
    }

    /// Lets this script play the model together with all others that have this progress. It does not judge what is expected in the
    /// end: that is for [`Script::judge`], once all are done.
    pub fn script_in(mut self, script: &Script, gates: &Gates, progress: &Progress) -> Self {
        self.agent.brain = ModelPlayer::among_others(script, gates, progress.clone());
        self
    }

    /// Sets something that may have been given.
    pub(in crate::peer) fn given<T>(self, value: Option<T>, set: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => set(self, value),
            None => self,
        }
    }

    fn source(mut self, source: StepSource) -> Self {
        self.agent.brain.source = source;
        self
    }

    /// The model, or an alias for one.
    pub fn model(mut self, model: &str) -> Self {
        self.agent.config.model = models::resolve(model);
        self.agent.config.model_given = true;
        self
    }

    /// The permission mode at the beginning; `default` unless set.
    pub fn permission_mode(mut self, mode: impl Into<String>) -> Self {
        self.agent.config.mode = mode.into();
        self.agent.config.mode_given = true;
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

    /// An official SDK has started it, which is told of rules that are none.
    pub(in crate::peer) fn by_official_sdk(mut self, _version: &str) -> Self {
        self.agent.config.by_official_sdk = true;
        self
    }

    /// `CLAUDE_CONFIG_DIR` names the directory of the configuration.
    pub(in crate::peer) fn config_dir_is_named(mut self, _directory: &str) -> Self {
        self.agent.config.is_config_dir_named = true;
        self
    }

    /// Files that exist at the beginning, by their paths relative to the working directory. They are in memory only, for
    /// simulated tools.
    pub fn files(mut self, files: impl IntoIterator<Item = (String, String)>) -> Self {
        self.agent.config.files.extend(files);
        self
    }

    /// `--resume` without a value, which ends it.
    pub(in crate::peer) fn resume_without_id(mut self) -> Self {
        self.agent.config.resume = Some(transcript::Resume::Id(None));
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

    /// Configures an MCP server that is not the host's, as `--mcp-config` does. One of type `stdio` is really started, with
    /// the first `initialize` or prompt; others count as failed. What is no configuration is told in `system/init`.
    pub fn mcp_server(mut self, name: impl Into<String>, config: Value) -> Self {
        let name = name.into();
        match mcp::config_error(&name, &config) {
            Some(error) => self.agent.config.server_errors.push(error),
            None => self.agent.config.servers.push((name, config)),
        }
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

    /// How long a command may take, if its call does not say, and at most.
    pub(in crate::peer) fn command_time(
        mut self,
        usual: Option<Duration>,
        longest: Option<Duration>,
    ) -> Self {
        let config = &mut self.agent.config;
        config.usual_run = usual.unwrap_or(config.usual_run);
        config.longest_run = longest.unwrap_or(config.longest_run).max(config.usual_run);
        self
    }

    /// The model of subagents for which nothing else names one.
    pub(in crate::peer) fn subagent_model(mut self, model: &str) -> Self {
        self.agent.config.subagent_model = Some(models::resolve(model)).filter(|model| !model.is_empty());
        self
    }

    /// The git worktree that the [`cwd`](Self::cwd) is, as with `--worktree`.
    pub(in crate::peer) fn worktree(mut self, worktree: Option<Value>) -> Self {
        self.agent.config.worktree = worktree;
        self
    }

    /// Settings of `--settings`, and the directory of their file, if they are in one.
    pub(in crate::peer) fn settings(mut self, settings: &Value, directory: Option<PathBuf>) -> Self {
        let settings = settings.as_object().into_iter().flatten();
        let settings = settings.map(|(key, value)| (key.clone(), value.clone()));
        self.agent.config.settings.extend(settings);
        self.agent.config.settings_place = directory.map_or(SettingsPlace::Elsewhere, SettingsPlace::Beside);
        self
    }

    /// Fields of `initialize` that replace flags, as with `--initialize-fields`.
    pub(in crate::peer) fn initialize_fields(mut self, fields: Vec<String>) -> Self {
        self.agent.config.initialize_fields = fields;
        self
    }

    /// Adds a tool, or replaces a built-in one.
    pub fn tool(
        mut self,
        name: impl Into<String>,
        run: impl Fn(&Value) -> ToolOutcome + Send + Sync + 'static,
    ) -> Self {
        self.agent.config.handlers.push((name.into(), Arc::new(run)));
        self
    }

    /// The agent, ready to run.
    pub fn build(self) -> Agent {
        self.agent
    }

    /// Builds the agent and runs it over pipes in memory; see [`Agent::spawn_in_memory`].
    pub fn spawn_in_memory(self) -> (ClientIo, Running) {
        self.agent.spawn_in_memory()
    }
}

setters! { Builder.agent.config:
    /// The working directory; `/home/user/project` unless set.
    cwd(cwd: impl Into<PathBuf>) = cwd.into();

    /// The home directory, which is only named and never touched; `/home/user` unless set.
    home(home: impl Into<String>) = home.into();

    /// Whether MCP servers of configuration files are left out, as with `--strict-mcp-config`.
    strict_mcp_config(strict: bool) = strict;

    /// Whether `bypassPermissions` may be switched on later.
    bypass_launched(launched: bool) = launched;

    /// The session id; one made from the seed unless set.
    session_id(id: impl Into<String>) = Some(id.into());

    /// Whether `stream_event` lines are sent, as with `--include-partial-messages`.
    partial_messages(partial: bool) => partial = partial;

    /// Whether each prompt comes back when its turn begins, as with `--replay-user-messages`.
    replay_user_messages(replay: bool) => replay = replay;

    /// Sends `session_state_changed` lines, as with `CLAUDE_CODE_SDK_READS_SESSION_STATE=1`.
    sdk_reads_session_state() => session_state = Some(true);

    /// Sends `session_state_changed` lines, as with `CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1`.
    emit_session_state_events() => session_state = Some(false);

    /// Whether the client gets permission requests, as with `--permission-prompt-tool stdio`; true unless set.
    permission_prompts(prompts: bool) = prompts;
    /// Whether nobody can ever be asked, as with `--permission-prompts none`.
    unattended(unattended: bool) = unattended;
    /// Whether the model writes its list of todos as a whole, as with `CLAUDE_CODE_ENABLE_TASKS=0`.
    whole_todos(whole: bool) = whole;
    /// How often Stop and SubagentStop hooks may keep a turn from ending, as with `CLAUDE_CODE_STOP_HOOK_BLOCK_CAP`; eight times unless set.
    stop_hook_block_cap(times: u32) = Some(times);

    /// Whether the first line must be an `initialize` request, as with `--await-initialize`.
    await_initialize(awaited: bool) = awaited;

    /// Whether the client gets a result when the first line is another, as with `CLAUDE_CODE_STARTUP_FAILURE_RESULTS=1`.
    startup_failure_results(told: bool) = told;

    /// Whether the agent is a spare that waits to be claimed, as with `--await-claim`.
    await_claim(awaited: bool) = awaited;

    /// How many rounds a turn may have, as with `--max-turns`.
    max_turns(turns: u64) = Some(turns);

    /// How often a failed request is repeated, as with `CLAUDE_CODE_MAX_RETRIES`; 10 unless set.
    max_retries(retries: u32) = retries;

    /// How long an MCP server may take to connect before it has failed, as with `MCP_TIMEOUT`; 30 s unless set.
    mcp_timeout(limit: Duration) = limit;

    /// How long the agent takes to begin a turn and to get a response of the model; 2 ms each unless set.
    latency(latency: Duration) = latency;

    /// What ids are made from.
    seed(seed: u64) = seed;

    /// Lets `Bash`, `Read`, `Write` and `Edit` really run and touch files. Unless set they act on files in memory, and `Bash`
    /// understands `echo`, `cat`, `touch`, `rm`, `sleep`, `true`, `false` and `exit`, joined by `;` and `&&`.
    real_tools(real: bool) = real;

    /// Keeps the outputs of tasks below this directory, like `CLAUDE_CODE_TMPDIR` for the CLI; below `/tmp` unless set. Commands
    /// that really run keep them on the disk, others in memory.
    temp_dir(directory: impl Into<PathBuf>) = Some(directory.into());

    /// Keeps sessions in this directory, like `CLAUDE_CONFIG_DIR` for the CLI; they are not kept unless set.
    ///
    /// The files are where the CLI puts them, `projects/<working directory>/<session id>.jsonl`, and have the
    /// conversation in its records. They are created with the first prompt.
    config_dir(directory: impl Into<PathBuf>) = Some(directory.into());

    /// Whether the session is kept, if a directory for that is set, as without `--no-session-persistence`.
    session_persistence(persist: bool) => persist = persist;

    /// Sends records as `transcript_mirror` lines too, as with `--session-mirror`.
    session_mirror(mirror: bool) => mirror = mirror;

    /// The program that started the session, in its records, like `CLAUDE_CODE_ENTRYPOINT`; `sdk-cli` unless set.
    entrypoint(entrypoint: impl Into<String>) = entrypoint.into();

    /// Resumes the session of this id, as with `--resume`. The agent ends with an error result and exit code 1 if
    /// there is none.
    resume(session_id: impl Into<String>) = Some(transcript::Resume::Id(Some(session_id.into())));

    /// Resumes the last session of the working directory, if there is one, as with `--continue`.
    continue_latest() => resume = Some(transcript::Resume::Latest);

    /// Continues in a new session that begins with a copy, as with `--fork-session`.
    fork_session(fork: bool) => fork = fork;

    /// Continues after the assistant's message of this uuid, as with `--resume-session-at`.
    resume_session_at(uuid: impl Into<String>) => resume_at = Some(uuid.into());

    /// The prompt whose turn may be left behind by that, as with `--resume-drops-turn`.
    resume_drops_turn(uuid: impl Into<String>) => resume_drops = Some(uuid.into());

    /// How much a session may cost, in US dollars, as with `--max-budget-usd`.
    max_budget_usd(limit: f64) => max_budget = Some(limit);

    /// Defines kinds of subagents, as with `--agents`: an object of definitions by name. As with the CLI, one that is
    /// wrong drops them all.
    agents(agents: &Value) = subagent::Definition::read_all(agents).unwrap_or_default();

    /// Whether the text of subagents in the foreground is shown, as with `--forward-subagent-text`.
    forward_subagent_text(forward: bool) => forward_text = forward;

    /// Whether `rewind_files` can restore files to their state before a prompt, as with
    /// `CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true`. Changes by commands are not recorded.
    file_checkpointing(enabled: bool) => checkpoints = enabled;

    /// The system prompt in the place of the CLI's own, as with `--system-prompt`; the brain gets to see it.
    system_prompt(prompt: impl Into<String>) = Some(prompt.into());

    /// The addition to the system prompt, as with `--append-system-prompt`; the brain gets it.
    append_system_prompt(prompt: impl Into<String>) => appended_prompt = Some(prompt.into());

    /// The session's name, as with `--name`.
    name(name: impl Into<String>) => title = Some(name.into());

    /// The model to use once the other one stays overloaded, as with `--fallback-model`.
    fallback_model(model: &str) => fallback = Some(models::resolve(model));

    /// How long background agents may keep the process alive once its input has ended, like
    /// `CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS`; 10 minutes unless set.
    background_wait(most: Duration) => patience = most;

    /// Whether times are counted instead of measured, so that the same conversation always has the same times:
    /// each line of the agent takes a millisecond, and waits of the model or of a simulated command end at once
    /// and are added. Waits for the client, for real commands and for servers take their time, and count nothing.
    virtual_clock(counted: bool) = counted;

    /// Whether slash commands are left to the model, as with `--disable-slash-commands`.
    disable_slash_commands(disable: bool) => no_commands = disable;

    /// Lets this go wrong on its pipes, and with it. What cannot be done there is a flaw of the report.
    faults(schedule: Schedule) = Some(schedule);

    /// Whether the agent is all that its process does, so that [faults](Self::faults) may affect the process.
    owns_process(owns: bool) => process = owns;

    /// Calls this with each flaw of the client as soon as it is found, so that a flaw is known even if the process is killed.
    on_flaw(tell: impl Fn(&Flaw) + Send + Sync + 'static) => witness = Some(Witness(Arc::new(tell)));
}
