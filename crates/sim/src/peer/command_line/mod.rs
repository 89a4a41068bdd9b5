//! The CLI's command line: its flags, their values, and how it rejects wrong ones.

mod flags;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::flags::{FLAGS, MODES, Takes, flag_name, long_name, takes};
use super::agent::delivered::FIELDS;
use super::agent::{Agent, Builder, Feature, payload};

/// A command line of the CLI that has been read, whether or not the simulation does something with a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    given: Vec<(&'static str, Vec<String>)>,
}

/// Why the CLI would not start, or (for `--version`) its output instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The exit code.
    pub code: i32,
    /// The output on stdout.
    pub stdout: String,
    /// The output on stderr.
    pub stderr: String,
}

/// The surroundings of a process that the simulation looks at.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Surroundings {
    /// The working directory.
    pub cwd: PathBuf,
    /// The environment.
    pub env: Vec<(String, String)>,
    /// Whether the user may do everything, for whom the CLI refuses to run without permissions.
    pub root: bool,
}

impl Surroundings {
    /// The surroundings of a process in this directory with this environment.
    pub fn new(cwd: impl Into<PathBuf>, env: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            cwd: cwd.into(),
            env: env.into_iter().collect(),
            root: false,
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.env.iter().rev().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

impl Refusal {
    /// A refusal with this complaint on stderr, and the exit code 1.
    pub fn new(complaint: impl Into<String>) -> Self {
        refuse(complaint)
    }
}

impl CommandLine {
    /// Reads arguments, without the program's name.
    ///
    /// # Errors
    ///
    /// An unknown flag, a value that is missing or not accepted, a combination of flags that the CLI does not accept; and
    /// `--version`, whose refusal has the exit code 0.
    pub fn read(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, Refusal> {
        let mut arguments = arguments
            .into_iter()
            .map(|argument| argument.into().to_string_lossy().into_owned())
            .peekable();
        let mut given = Vec::new();
        while let Some(argument) = arguments.next() {
            if argument == "--" || !argument.starts_with('-') {
                return Err(refuse(
                    "error: a prompt on the command line is not simulated: write it to stdin, or let the real CLI play this \
                     script (`outrigger mock-api`)",
                ));
            }
            let (name, attached) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (argument.as_str(), None),
            };
            let unknown = || refuse(format!("error: unknown option '{argument}'"));
            let shown = *FLAGS
                .iter()
                .find(|flag| flag_name(flag) == name)
                .ok_or_else(unknown)?;
            let takes = takes(shown);
            let mut values = Vec::new();
            match (takes, attached) {
                (Takes::Nothing, Some(_)) => return Err(unknown()),
                (Takes::Nothing, None) => {}
                (_, Some(value)) => values.push(value),
                (Takes::Perhaps, None) => values.extend(arguments.next_if(|next| !next.starts_with('-'))),
                (_, None) => match arguments.next() {
                    Some(value) => values.push(value),
                    None => return Err(refuse(format!("error: option '{shown}' argument missing"))),
                },
            }
            if takes == Takes::Many {
                while let Some(value) = arguments.next_if(|next| !next.starts_with('-')) {
                    values.push(value);
                }
            }
            given.push((shown, values));
        }
        let this = Self { given };
        this.check()?;
        Ok(this)
    }

    /// Whether the CLI takes what follows this argument for its value, whatever it looks like.
    pub fn takes_next(argument: &str) -> bool {
        FLAGS
            .iter()
            .any(|shown| flag_name(shown) == argument && matches!(takes(shown), Takes::One | Takes::Many))
    }

    /// Whether a flag was given, by its long name.
    pub fn has(&self, flag: &str) -> bool {
        self.given.iter().any(|(shown, _)| long_name(shown) == flag)
    }

    /// The value of a flag, by its long name: the last one if there are several.
    pub fn value(&self, flag: &str) -> Option<&str> {
        self.values(flag).last()
    }

    /// All values of a flag, by its long name.
    pub fn values(&self, flag: &str) -> impl DoubleEndedIterator<Item = &str> {
        let given = self
            .given
            .iter()
            .filter(move |(shown, _)| long_name(shown) == flag);
        given.flat_map(|(_, values)| values.iter().map(String::as_str))
    }

    fn initialize_fields(&self) -> impl Iterator<Item = &str> {
        self.values("--initialize-fields")
            .flat_map(|names| names.split(','))
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.has("--version") {
            return Err(Refusal {
                code: 0,
                stdout: format!("{} (Claude Code)\n", payload::VERSION),
                stderr: String::new(),
            });
        }
        let wrong = |flag: &str, value: &str, why: &str| {
            refuse(format!(
                "error: option '{flag}' argument '{value}' is invalid. {why}"
            ))
        };
        if let Some(mode) = self.value("--permission-mode")
            && !MODES.split(", ").chain(["default"]).any(|known| known == mode)
        {
            let why = format!("Allowed choices are {MODES}.");
            return Err(wrong("--permission-mode <mode>", mode, &why));
        }
        if let Some(amount) = self.value("--max-budget-usd")
            && !amount.parse::<f64>().is_ok_and(|amount| amount > 0.0)
        {
            let why = "--max-budget-usd must be a number greater than 0";
            return Err(wrong("--max-budget-usd <amount>", amount, why));
        }
        if let Some(turns) = self.value("--max-turns")
            && !turns.parse::<u64>().is_ok_and(|turns| turns > 0)
        {
            return Err(wrong(
                "--max-turns <turns>",
                turns,
                "--max-turns must be a positive integer",
            ));
        }
        if let Some(id) = self.value("--session-id")
            && uuid::Uuid::parse_str(id).is_err()
        {
            return Err(refuse("Error: Invalid session ID. Must be a valid UUID."));
        }
        if self.has("--session-id")
            && (self.has("--resume") || self.has("--continue"))
            && !self.has("--fork-session")
        {
            return Err(refuse(
                "Error: --session-id with --continue or --resume also needs --fork-session.",
            ));
        }
        if self.has("--resume-session-at") && !self.has("--resume") {
            return Err(refuse("Error: --resume-session-at requires --resume"));
        }
        if self.has("--resume-drops-turn") && !self.has("--resume-session-at") {
            return Err(refuse("Error: --resume-drops-turn requires --resume-session-at"));
        }
        if let Some(mode) = self.value("--thinking")
            && !["enabled", "adaptive", "disabled"].contains(&mode)
        {
            let why = "Allowed choices are enabled, adaptive, disabled.";
            return Err(wrong("--thinking <mode>", mode, why));
        }
        let sources = self.value("--setting-sources").unwrap_or_default();
        let unknown = sources
            .split(',')
            .find(|source| !["user", "project", "local", ""].contains(source));
        if let Some(source) = unknown {
            let what = format!("Invalid setting source: {source}. Valid options are: user, project, local");
            return Err(refuse(format!("Error processing --setting-sources: {what}")));
        }
        for field in self.initialize_fields() {
            let Some((_, flag)) = FIELDS.iter().find(|(name, _)| *name == field) else {
                let names = self.value("--initialize-fields").unwrap_or_default();
                let why = format!(
                    "This Claude Code does not take \"{field}\" in --initialize-fields. Update Claude Code, or send the value by its \
                     flag."
                );
                return Err(wrong("--initialize-fields <names>", names, &why));
            };
            if !self.has("--await-initialize") {
                return Err(refuse(
                    "Error: --initialize-fields requires --await-initialize and --input-format=stream-json with stdin piped, and cannot \
                     be used with --sdk-url or a subcommand.",
                ));
            }
            if self.has(flag) {
                return Err(refuse(format!(
                    "Error: --initialize-fields={field} cannot be used with {flag}."
                )));
            }
        }
        let stream = |flag| self.value(flag) == Some("stream-json");
        if !stream("--output-format") || !stream("--input-format") {
            return Err(refuse(if stream("--input-format") {
                "Error: --input-format=stream-json requires output-format=stream-json."
            } else {
                "error: only --output-format stream-json with --input-format stream-json is simulated"
            }));
        }
        if !self.has("--verbose") {
            let what = "When using --print, --output-format=stream-json requires --verbose";
            return Err(refuse(format!("Error: {what}")));
        }
        Ok(())
    }

    /// The agent that these flags and these surroundings call for.
    ///
    /// `OUTRIGGER_SIM_REAL_TOOLS=1` lets tools really run, `OUTRIGGER_SIM_SEED` makes ids repeat,
    /// `OUTRIGGER_SIM_CLOCK=virtual` makes times repeat.
    ///
    /// # Errors
    ///
    /// Settings or MCP configurations that cannot be read.
    pub fn agent(&self, around: &Surroundings) -> Result<Builder, Refusal> {
        self.agent_from(Agent::builder(), around)
    }

    /// Applies these flags and these surroundings to an agent that has settings already; see
    /// [`agent`](Self::agent).
    ///
    /// # Errors
    ///
    /// Settings or MCP configurations that cannot be read.
    pub fn agent_from(&self, base: Builder, around: &Surroundings) -> Result<Builder, Refusal> {
        let unasked = self.has("--dangerously-skip-permissions")
            || self.has("--allow-dangerously-skip-permissions")
            || self.value("--permission-mode") == Some("bypassPermissions");
        if unasked && around.root && around.get("IS_SANDBOX") != Some("1") {
            return Err(refuse(
                "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons",
            ));
        }
        let (cwd, worktree) = self.place(around)?;
        let mut agent = base
            .cwd(cwd)
            .worktree(worktree)
            .strict_mcp_config(self.has("--strict-mcp-config"))
            .partial_messages(self.has("--include-partial-messages"))
            .replay_user_messages(self.has("--replay-user-messages"))
            .await_initialize(self.has("--await-initialize"))
            .startup_failure_results(around.get("CLAUDE_CODE_STARTUP_FAILURE_RESULTS") == Some("1"))
            .await_claim(self.has("--await-claim"))
            .bypass_launched(
                self.has("--dangerously-skip-permissions")
                    || self.has("--allow-dangerously-skip-permissions"),
            )
            .permission_prompts(
                self.value("--permission-prompt-tool") == Some("stdio")
                    && self.value("--permission-prompts") != Some("none"),
            )
            .unattended(self.value("--permission-prompts") == Some("none"))
            .whole_todos(around.get("CLAUDE_CODE_ENABLE_TASKS") == Some("0"))
            .allowed_tools(self.values("--allowedTools"))
            .disallowed_tools(self.values("--disallowedTools"));
        if let Some(limit) = parsed(around.get("MCP_TIMEOUT")).filter(|limit| *limit > 0) {
            agent = agent.mcp_timeout(std::time::Duration::from_millis(limit));
        }
        let run = |name: &str| {
            parsed(around.get(name))
                .filter(|limit| *limit > 0)
                .map(std::time::Duration::from_millis)
        };
        agent = agent.command_time(run("BASH_DEFAULT_TIMEOUT_MS"), run("BASH_MAX_TIMEOUT_MS"));
        let cap = around.get("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP");
        if let Some(cap) = cap.and_then(|cap| cap.parse().ok()) {
            agent = agent.stop_hook_block_cap(cap);
        }
        if around.get("OUTRIGGER_SIM_REAL_TOOLS") == Some("1") {
            agent = agent.real_tools(true);
        }
        for settings in self.values("--settings") {
            let (settings, directory) = read_settings(settings, &around.cwd)?;
            agent = agent.settings(&settings, directory);
        }
        agent = agent.initialize_fields(self.initialize_fields().map(str::to_owned).collect());
        for config in self.values("--mcp-config") {
            let config = read_mcp_config(config, &around.cwd)?;
            let servers = config["mcpServers"].as_object().into_iter().flatten();
            let sdk = servers
                .filter(|(_, server)| server["type"] == "sdk")
                .map(|(name, _)| name.clone());
            agent = agent.sdk_mcp_servers(sdk);
            for (name, server) in config["mcpServers"].as_object().into_iter().flatten() {
                if server["type"] != "sdk" && server.is_object() {
                    agent = agent.mcp_server(name, server.clone());
                }
            }
        }
        let bypasses = self
            .has("--dangerously-skip-permissions")
            .then_some("bypassPermissions");
        agent = agent
            .given(around.get("HOME"), Builder::home)
            .given(
                self.value("--model")
                    .or_else(|| around.get("ANTHROPIC_MODEL").filter(|model| !model.is_empty())),
                Builder::model,
            )
            .given(around.get("CLAUDE_CODE_SUBAGENT_MODEL"), Builder::subagent_model)
            .given(
                bypasses.or(self.value("--permission-mode")),
                Builder::permission_mode,
            )
            .given(self.tools(), Builder::tools)
            .given(parsed(self.value("--max-turns")), Builder::max_turns)
            .given(
                parsed(around.get("CLAUDE_CODE_MAX_RETRIES")),
                Builder::max_retries,
            );
        for directory in self.values("--add-dir") {
            agent = agent.add_directory(directory);
        }
        if self.has("--plugin-dir") || self.has("--plugin-dir-no-mcp") || self.has("--plugin-url") {
            agent = agent.unsimulated(Feature::Plugins);
        }
        let is_simple = !matches!(
            around.get("CLAUDE_CODE_SIMPLE"),
            None | Some("" | "0" | "false" | "no" | "off")
        );
        if is_simple
            || self.has("--bare")
            || self.has("--project-config-root")
            || self.has("--restricted")
            || self.has("--safe-mode")
        {
            agent = agent.unsimulated(Feature::Flags);
        }
        if self.has("--agent") {
            agent = agent.unsimulated(Feature::MainAgent);
        }
        if self
            .value("--permission-prompt-tool")
            .is_some_and(|tool| tool != "stdio")
        {
            agent = agent.unsimulated(Feature::PermissionTool);
        }
        if self.value("--autocompact").is_some_and(|limit| limit != "auto") {
            agent = agent.unsimulated(Feature::Autocompact);
        }
        if self.has("--managed-settings") || self.has("--managed-settings-in-initialize") {
            agent = agent.unsimulated(Feature::ManagedSettings);
        }
        if around.get("CLAUDE_CODE_SDK_READS_SESSION_STATE") == Some("1") {
            agent = agent.sdk_reads_session_state();
        } else if around.get("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") == Some("1") {
            agent = agent.emit_session_state_events();
        }
        let seed = parsed(around.get("OUTRIGGER_SIM_SEED"));
        agent = agent.seed(seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0));
        if around.get("OUTRIGGER_SIM_CLOCK") == Some("virtual") {
            agent = agent.virtual_clock(true);
        }
        self.session(agent, around)
    }

    /// Where it works: with `--worktree` in a git worktree of this name, which is made unless it is there. Then also what the transcript says of it.
    fn place(&self, around: &Surroundings) -> Result<(PathBuf, Option<Value>), Refusal> {
        if !self.has("--worktree") {
            return Ok((around.cwd.clone(), None));
        }
        let name = match self.value("--worktree") {
            Some(name) => name.to_owned(),
            None => format!("sim-{:08x}", uuid::Uuid::new_v4().as_fields().0),
        };
        let wrong = |why: &str| {
            refuse(format!(
                "Error creating worktree: Invalid worktree name \"{name}\"{why}"
            ))
        };
        if name.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(wrong(": must not contain \".\" or \"..\" path segments"));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !name
            .split('/')
            .all(|part| !part.is_empty() && part.chars().all(plain))
        {
            return Err(wrong(""));
        }
        let root = git(&around.cwd, &["rev-parse", "--show-toplevel"]).map_err(|_| {
            refuse(format!(
                "Error: Can only use --worktree in a git repository, but {} is not a git repository. Configure a WorktreeCreate hook \
                 to use --worktree with other VCS systems.",
                around.cwd.display()
            ))
        })?;
        let place = Path::new(root.trim_end()).join(".claude/worktrees").join(&name);
        let branch = format!("worktree-{}", name.replace('/', "+"));
        let path = place.to_string_lossy();
        if !place.is_dir() {
            git(&around.cwd, &["worktree", "add", "-q", "-B", &branch, &path])
                .map_err(|why| refuse(format!("Error creating worktree: {why}")))?;
        }
        let told = |arguments: &[&str]| {
            git(&around.cwd, arguments).map_or(Value::Null, |text| text.trim_end().into())
        };
        let worktree = json!({
            "originalCwd": around.cwd.to_string_lossy(), "preEnterOriginalCwd": around.cwd.to_string_lossy(), "worktreePath": path,
            "worktreeName": name, "worktreeBranch": branch, "originalBranch": told(&["branch", "--show-current"]),
            "originalHeadCommit": told(&["rev-parse", "HEAD"]),
        });
        Ok((place, Some(worktree)))
    }

    /// The flags about the session: where it is stored, which one to resume, its budget, and the like.
    fn session(&self, mut agent: Builder, around: &Surroundings) -> Result<Builder, Refusal> {
        agent = agent
            .session_persistence(!self.has("--no-session-persistence"))
            .session_mirror(self.has("--session-mirror"))
            .forward_subagent_text(self.has("--forward-subagent-text"))
            .disable_slash_commands(self.has("--disable-slash-commands"))
            .fork_session(self.has("--fork-session"));
        // Without a home the CLI would take that of the account; nothing is kept here then.
        let config_dir = around.get("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let home = around.get("HOME").map(|home| Path::new(home).join(".claude"));
        let on = |key: &str| matches!(around.get(key), Some("1" | "true"));
        agent = agent.file_checkpointing(on("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"));
        let background_wait = parsed(around.get("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"));
        let from_file = |flag: &str| -> Result<Option<String>, Refusal> {
            let Some(path) = self.value(flag) else {
                return Ok(None);
            };
            let text = std::fs::read_to_string(around.cwd.join(path));
            let missing = |_| refuse(format!("Error: System prompt file not found: {path}"));
            text.map(Some).map_err(missing)
        };
        let written = |flag: &str| self.value(flag).map(str::to_owned);
        let system = from_file("--system-prompt-file")?.or(written("--system-prompt"));
        let appended = from_file("--append-system-prompt-file")?.or(written("--append-system-prompt"));
        agent = agent
            .given(config_dir.or(home), Builder::config_dir)
            .given(around.get("CLAUDE_CONFIG_DIR"), Builder::config_dir_is_named)
            .given(around.get("CLAUDE_CODE_TMPDIR"), Builder::temp_dir)
            .given(
                background_wait.map(std::time::Duration::from_millis),
                Builder::background_wait,
            )
            .given(around.get("CLAUDE_CODE_ENTRYPOINT"), Builder::entrypoint)
            .given(around.get("CLAUDE_AGENT_SDK_VERSION"), Builder::by_official_sdk)
            .given(self.value("--name"), Builder::name)
            .given(self.value("--fallback-model"), Builder::fallback_model)
            .given(system, Builder::system_prompt)
            .given(appended, Builder::append_system_prompt)
            .given(self.value("--session-id"), Builder::session_id)
            .given(self.value("--resume-session-at"), Builder::resume_session_at)
            .given(self.value("--resume-drops-turn"), Builder::resume_drops_turn)
            .given(parsed(self.value("--max-budget-usd")), Builder::max_budget_usd);
        if self.has("--resume") {
            agent = match self.value("--resume") {
                Some(id) => agent.resume(id),
                None => agent.resume_without_id(),
            };
        } else if self.has("--continue") {
            agent = agent.continue_latest();
        }
        let all = ["user", "project", "local"];
        agent = match self.value("--setting-sources") {
            Some(sources) => agent.setting_sources(sources.split(',').filter(|source| !source.is_empty())),
            None => agent.setting_sources(all),
        };
        if let Some(schema) = self.value("--json-schema") {
            let schema: Value = serde_json::from_str(schema)
                .map_err(|error| refuse(format!("Error: --json-schema is not valid JSON: {error}")))?;
            agent = agent
                .json_schema(&schema)
                .map_err(|what| refuse(format!("Error: --json-schema is not a valid JSON Schema: {what}")))?;
        }
        if let Some(agents) = self.value("--agents") {
            let text = if agents.trim_start().starts_with('{') {
                agents.to_owned()
            } else {
                std::fs::read_to_string(around.cwd.join(agents)).unwrap_or_else(|_| agents.to_owned())
            };
            let agents: Value = serde_json::from_str(&text).map_err(|error| {
                refuse(format!(
                    "Error: Invalid --agents configuration:\ninvalid JSON: {error}"
                ))
            })?;
            agent = agent.agents(&agents);
        }
        Ok(agent)
    }

    /// The built-in tools that `--tools` names; none for its `default`.
    fn tools(&self) -> Option<Vec<String>> {
        if !self.has("--tools") || self.value("--tools") == Some("default") {
            return None;
        }
        let names = self.values("--tools").flat_map(|names| names.split([',', ' ']));
        Some(names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// The CLI's warning on stderr when it starts all the same.
    pub fn warning(&self) -> Option<String> {
        const LEVELS: &str = "low, medium, high, xhigh, max";
        let level = self.value("--effort")?;
        (!LEVELS.split(", ").any(|known| known == level)).then(|| {
            format!(
                "Warning: Unknown --effort value '{level}' — ignoring it and using the default effort. Valid values: \
                 {LEVELS}."
            )
        })
    }
}

/// A value that is a number; any other counts as none.
fn parsed<T: std::str::FromStr>(value: Option<&str>) -> Option<T> {
    value?.parse().ok()
}

fn refuse(stderr: impl Into<String>) -> Refusal {
    Refusal {
        code: 1,
        stdout: String::new(),
        stderr: stderr.into() + "\n",
    }
}

/// What git writes, or what it complains of.
fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = std::process::Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr).trim_end().to_owned()),
    }
}

/// Settings are JSON, or the path of a file; like the CLI, this treats invalid JSON as a path.
/// The settings, and the directory of their file, if they are in one.
fn read_settings(settings: &str, cwd: &Path) -> Result<(Value, Option<PathBuf>), Refusal> {
    if let Ok(json @ Value::Object(_)) = serde_json::from_str(settings) {
        return Ok((json, None));
    }
    let path = cwd.join(settings);
    let text = std::fs::read_to_string(&path)
        .map_err(|_| refuse(format!("Error: Settings file not found: {}", path.display())))?;
    let directory = path.parent().map(Path::to_owned);
    let settings = serde_json::from_str(&text).map_err(|error| {
        refuse(format!(
            "Error: Invalid settings file {}: {error}",
            path.display()
        ))
    })?;
    Ok((settings, directory))
}

fn read_mcp_config(config: &str, cwd: &Path) -> Result<Value, Refusal> {
    if let Ok(json @ Value::Object(_)) = serde_json::from_str(config) {
        return Ok(json);
    }
    let path = cwd.join(config);
    let invalid = |what: String| refuse(format!("Error: Invalid MCP configuration:\n{what}"));
    let text = std::fs::read_to_string(&path)
        .map_err(|_| invalid(format!("MCP config file not found: {}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| invalid(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::flags::WITHOUT_EFFECT;
    use super::*;

    const BASE: &str =
        "--output-format stream-json --verbose --input-format stream-json --permission-prompt-tool stdio";

    fn read(more: &str) -> Result<CommandLine, Refusal> {
        CommandLine::read(
            BASE.split(' ')
                .chain(more.split(' ').filter(|word| !word.is_empty())),
        )
    }

    #[test]
    fn both_forms_and_all_kinds_of_values() {
        let line = read(
            "--model=opus --resume --allowedTools Bash(ls:*) Read --add-dir=/a /b -c --tools= --debug x",
        )
        .unwrap();
        assert_eq!(line.value("--model"), Some("opus"));
        assert!(line.has("--resume") && line.value("--resume").is_none());
        assert_eq!(
            line.values("--allowedTools").collect::<Vec<_>>(),
            ["Bash(ls:*)", "Read"]
        );
        assert_eq!(line.values("--add-dir").collect::<Vec<_>>(), ["/a", "/b"]);
        assert!(line.has("--continue"));
        assert_eq!(line.tools(), Some(Vec::new()));
        assert_eq!(line.value("--debug"), Some("x"));
        assert_eq!(line.value("--permission-prompt-tool"), Some("stdio"));
    }

    /// Which flags do something shows in the source of this file.
    #[test]
    fn each_flag_has_an_effect_or_is_known_to_have_none() {
        let source = include_str!("mod.rs");
        let code = &source[source.find("impl CommandLine").unwrap()..source.find("mod tests").unwrap()];
        for shown in FLAGS.iter() {
            let name = long_name(shown);
            let used = code.contains(&format!("\"{name}\")"));
            assert_ne!(used, WITHOUT_EFFECT.contains(&name), "{name}");
        }
    }

    #[test]
    fn root_is_not_run_without_permissions() {
        let line = read("--dangerously-skip-permissions").unwrap();
        let mut around = Surroundings::default();
        assert!(line.agent(&around).is_ok());
        around.root = true;
        let refusal = line.agent(&around).unwrap_err();
        assert!(refusal.stderr.contains("cannot be used with root"), "{refusal:?}");
        assert!(
            read("--permission-mode bypassPermissions")
                .unwrap()
                .agent(&around)
                .is_err()
        );
        around.env.push(("IS_SANDBOX".to_owned(), "1".to_owned()));
        assert!(line.agent(&around).is_ok());
    }

    #[test]
    fn refusals() {
        for (more, stderr) in [
            ("--no-such-flag", "error: unknown option '--no-such-flag'\n"),
            ("--verbose=1", "error: unknown option '--verbose=1'\n"),
            ("--model", "error: option '--model <model>' argument missing\n"),
            (
                "--session-id nope",
                "Error: Invalid session ID. Must be a valid UUID.\n",
            ),
            (
                "--resume 00000000-0000-4000-8000-000000000000 --resume-drops-turn nope",
                "Error: --resume-drops-turn requires --resume-session-at\n",
            ),
            (
                "--permission-mode bogus",
                "error: option '--permission-mode <mode>' argument 'bogus' is invalid. Allowed choices are acceptEdits, \
                 auto, bypassPermissions, manual, dontAsk, plan.\n",
            ),
            (
                "--max-budget-usd -1",
                "error: option '--max-budget-usd <amount>' argument '-1' is invalid. --max-budget-usd must be a number \
                 greater than 0\n",
            ),
            (
                "--setting-sources nonsense",
                "Error processing --setting-sources: Invalid setting source: nonsense. Valid options are: user, project, \
                 local\n",
            ),
        ] {
            let refusal = read(more).unwrap_err();
            assert_eq!((refusal.code, refusal.stderr.as_str()), (1, stderr));
        }
        let refusal = CommandLine::read(["--version"]).unwrap_err();
        assert_eq!(
            (refusal.code, refusal.stdout.as_str()),
            (0, "2.1.332 (Claude Code)\n")
        );
        let refusal = CommandLine::read(["--output-format", "stream-json", "--input-format", "stream-json"])
            .unwrap_err();
        assert!(refusal.stderr.contains("requires --verbose"));
        let around = Surroundings::new("/home/user/project", []);
        let refusal = read("--settings {nope").unwrap().agent(&around).unwrap_err();
        assert_eq!(
            refusal.stderr,
            "Error: Settings file not found: /home/user/project/{nope\n"
        );
        let refusal = read("--mcp-config {nope").unwrap().agent(&around).unwrap_err();
        assert_eq!(
            refusal.stderr,
            "Error: Invalid MCP configuration:\nMCP config file not found: /home/user/project/{nope\n"
        );
    }
}
