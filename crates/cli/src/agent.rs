//! What both `run` and `chat` take: which CLI to start, as whom, and with what leave.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ValueEnum, ValueHint};
use outrigger::hooks::{self, HookOutput};
use outrigger::options::{Auth, Isolation, Options, Secret, Tools, Worktree};
use outrigger::permissions::Policy;
use outrigger::protocol::settings::Settings;
use outrigger::protocol::shared::{
    Effort, JsonObject, OutputFormat, PermissionMode, PluginConfig, SettingSource, SystemPrompt,
};
use serde::de::DeserializeOwned;

use crate::ask::Responder;
use crate::exit::{Failure, Status};
use crate::policy;
use crate::screen::{Notes, Screen};
use crate::text_file;

/// Names that hold secrets. Every process of the machine can read a command line, so they are refused there.
const SECRET: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
];

/// Matches the tools of all MCP servers.
const MCP_TOOLS: &str = "^mcp__";

/// The agent to start, and the conversation that it goes on with.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    #[command(flatten)]
    conversation: ChosenConversation,
    #[command(flatten)]
    session: SessionArgs,
}

/// Which conversation the command goes on with.
#[derive(Debug, clap::Args)]
struct ChosenConversation {
    /// Goes on with this session: its id or title.
    #[arg(long, value_name = "ID", conflicts_with = "continue_latest")]
    resume: Option<String>,
    /// Goes on with the latest session of the working directory.
    #[arg(long = "continue")]
    continue_latest: bool,
    /// Goes on in a new session instead of the old one.
    #[arg(long)]
    fork_session: bool,
    /// The id of the new session, a UUID.
    #[arg(long, value_name = "UUID")]
    session_id: Option<String>,
}

/// The agent of any session.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionArgs {
    /// The model, or an alias such as `opus`.
    #[arg(long)]
    model: Option<String>,
    /// The model, or several separated by commas, for when the first is overloaded.
    #[arg(long, value_name = "MODELS")]
    fallback_model: Option<String>,
    /// Beta features of the API, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    betas: Vec<String>,
    /// How hard the model thinks.
    #[arg(long, value_name = "LEVEL", value_parser = effort())]
    effort: Option<Effort>,
    /// The agent that the conversation runs as.
    #[arg(long)]
    agent: Option<String>,
    /// Subagents, by name: JSON, or a file with it. Each has a `description` and a `prompt`.
    #[arg(long, value_name = "JSON|FILE", value_hint = ValueHint::FilePath)]
    agents: Option<String>,
    /// Told to the model instead of Claude Code's own system prompt.
    #[arg(long, value_name = "TEXT", conflicts_with = "append_system_prompt")]
    system_prompt: Option<String>,
    /// Told to the model after Claude Code's own system prompt.
    #[arg(long, value_name = "TEXT")]
    append_system_prompt: Option<String>,

    /// The working directory; the current one unless given.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Works in a git worktree that the CLI makes, or made by this name before; without a name the CLI makes one up. It is left behind.
    /// Write the prompt before it, or `--worktree=NAME`.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    worktree: Option<String>,
    /// One more directory that tools may work in. Can be repeated.
    #[arg(long, value_name = "DIR")]
    add_dir: Vec<PathBuf>,
    /// Keeps nothing of the session on disk, so that it can't be resumed.
    #[arg(long)]
    no_session_persistence: bool,

    /// A rule for tool calls that need no question, such as `Read` or `Bash(git log:*)`. Can be repeated.
    #[arg(long, value_name = "RULE", help_heading = "Permissions")]
    allow: Vec<String>,
    /// A rule for tool calls that are refused. Can be repeated.
    #[arg(long, value_name = "RULE", help_heading = "Permissions")]
    deny: Vec<String>,
    /// A file with rules (TOML or JSON): what it refuses is refused, what it allows runs. The rest is denied, unless the file's `default`
    /// says otherwise: `"ask"` asks at the terminal.
    #[arg(long, value_name = "FILE", help_heading = "Permissions")]
    policy: Option<PathBuf>,
    /// The built-in tools that the agent has at all, separated by commas; an empty value is none.
    #[arg(long, value_name = "NAMES", help_heading = "Permissions")]
    tools: Option<String>,
    /// How calls are decided that no rule decides.
    #[arg(long, value_name = "MODE", value_parser = permission_mode(), help_heading = "Permissions")]
    permission_mode: Option<PermissionMode>,
    /// Never asks at the terminal: refuses what would be asked.
    #[arg(long, help_heading = "Permissions")]
    pub(crate) no_ask: bool,

    /// The most round trips to the API that a turn may take.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_turns: Option<u64>,
    /// The most that the session may cost, in US dollars by the CLI's own prices.
    #[arg(long, value_name = "USD", help_heading = "Limits")]
    max_budget_usd: Option<f64>,

    /// How much of the user's and the project's configuration the session sees.
    #[arg(long, value_enum, default_value = "plain", help_heading = "Surroundings")]
    isolation: IsolationChoice,
    /// The home of a hermetic session, to be kept; a temporary one unless given.
    #[arg(long, value_name = "DIR", help_heading = "Surroundings")]
    hermetic_home: Option<PathBuf>,
    /// Says that this is a throw-away sandbox, in which root may skip permissions (IS_SANDBOX=1).
    #[arg(long, help_heading = "Surroundings")]
    assume_sandbox: bool,
    /// The settings files to load, separated by commas. Outranks what `--isolation` says of them.
    #[arg(long, value_name = "SOURCES", value_delimiter = ',', value_parser = setting_source(), help_heading = "Surroundings")]
    setting_sources: Option<Vec<SettingSource>>,
    /// Settings of the session's own, which outrank those of the files: JSON, or a file with it.
    #[arg(long, value_name = "JSON|FILE", value_hint = ValueHint::FilePath, help_heading = "Surroundings")]
    settings: Option<String>,
    /// A directory with a plugin. Can be repeated.
    #[arg(long, value_name = "DIR", help_heading = "Surroundings")]
    plugin_dir: Vec<PathBuf>,
    /// A file with MCP servers. Can be repeated.
    #[arg(long, value_name = "FILE", help_heading = "Surroundings")]
    mcp_config: Vec<PathBuf>,
    /// Which account pays.
    #[arg(long, value_enum, default_value = "inherit", help_heading = "Surroundings")]
    auth: AuthChoice,
    /// The environment variable that holds the key or token for `--auth`, instead of the usual one.
    #[arg(long, value_name = "NAME", help_heading = "Surroundings")]
    auth_env: Option<String>,
    /// A variable for the CLI: `NAME=VALUE`, or `NAME` to pass on this one's. Not for secrets. Can be repeated.
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "Surroundings")]
    env: Vec<String>,
    /// Passes the whole environment on, except for credentials and the marks of an outer session; else only a list of
    /// harmless variables passes.
    #[arg(long, help_heading = "Surroundings")]
    inherit_env: bool,
    /// The CLI to start; unless given, the one that OUTRIGGER_CLAUDE names, or else one that is found.
    #[arg(long, value_name = "PATH", help_heading = "Surroundings")]
    cli: Option<PathBuf>,
    /// The file for the CLI's debug log.
    #[arg(long, value_name = "FILE", help_heading = "Surroundings")]
    debug_file: Option<PathBuf>,

    /// Has the CLI report the hooks that run, as frames of `--json`; `--verbose` does so, too.
    #[arg(long)]
    include_hook_events: bool,
    /// Shows the model's thinking, what tools return, who decided on their calls, hooks, MCP servers, and other messages of the
    /// CLI.
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Shows no tool calls and no summary.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `--isolation`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum IsolationChoice {
    /// The user's login and sessions, but no settings file and no configured MCP server.
    Plain,
    /// Nothing of the user's: a home of its own that is removed with the session.
    Hermetic,
    /// The project's settings, with the hooks and MCP servers that it brings.
    Project,
    /// Everything that `claude` itself would load.
    Interactive,
}

/// `--auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuthChoice {
    /// Whatever the CLI finds, as at the terminal: a key in the environment outranks the stored login.
    Inherit,
    /// The same, and the session also starts when the CLI reports no account.
    Unchecked,
    /// Only the login that `claude` stored.
    Login,
    /// Only the `apiKeyHelper` program of the settings.
    ApiKeyHelper,
    /// A key of the Claude API, from ANTHROPIC_API_KEY.
    ApiKey,
    /// A bearer token, from ANTHROPIC_AUTH_TOKEN.
    AuthToken,
    /// A subscription's token, from CLAUDE_CODE_OAUTH_TOKEN.
    OauthToken,
    /// A gateway: ANTHROPIC_BASE_URL, with the token from ANTHROPIC_AUTH_TOKEN.
    Gateway,
    /// Amazon Bedrock.
    Bedrock,
    /// Google Vertex AI.
    Vertex,
    /// Microsoft Foundry.
    Foundry,
}

/// Takes a word of the protocol, all of which completions and errors name.
fn word<T: Clone + Send + Sync + 'static>(
    words: &'static [&'static str],
    read: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words).try_map(move |word| read(&word).ok_or("this build does not know it"))
}

fn permission_mode() -> impl TypedValueParser<Value = PermissionMode> {
    const MODES: &[&str] = &[
        "default",
        "acceptEdits",
        "plan",
        "dontAsk",
        "auto",
        "bypassPermissions",
    ];
    word(MODES, PermissionMode::from_wire)
}

fn effort() -> impl TypedValueParser<Value = Effort> {
    word(&["low", "medium", "high", "xhigh", "max"], Effort::from_wire)
}

fn setting_source() -> impl TypedValueParser<Value = SettingSource> {
    word(&["user", "project", "local"], SettingSource::from_wire)
}

impl std::ops::Deref for AgentArgs {
    type Target = SessionArgs;

    fn deref(&self) -> &SessionArgs {
        &self.session
    }
}

impl AgentArgs {
    /// [`SessionArgs::read`], for this conversation.
    pub(crate) fn read(&self) -> Result<ReadArgs, Failure> {
        let ChosenConversation {
            resume,
            continue_latest,
            fork_session,
            session_id,
        } = &self.conversation;
        let mut read = self.session.read()?;
        read.options = read
            .options
            .continue_conversation(*continue_latest)
            .fork_session(*fork_session);
        read.options.resume.clone_from(resume);
        read.options.session_id.clone_from(session_id);
        Ok(read)
    }
}

/// What the flags and the files of flags say.
pub(crate) struct ReadArgs {
    options: Options,
    policy: Option<Policy>,
    is_verbose: bool,
}

impl ReadArgs {
    /// The options with what answers the CLI, and with what there is to see when more is to be shown.
    pub(crate) fn hosted(self, asking: &Responder, screen: &Screen) -> Options {
        let notes = self.is_verbose.then(|| screen.notes());
        let options = asking.answers(self.options, self.policy, notes.clone());
        match notes {
            Some(notes) => observed(options, &notes),
            None => options,
        }
    }
}

impl SessionArgs {
    /// The options that they make.
    fn options(&self) -> Result<Options, Failure> {
        let mut options = Options::new(self.auth()?)
            .isolation(match self.isolation {
                IsolationChoice::Plain => Isolation::Plain,
                IsolationChoice::Hermetic => Isolation::Hermetic,
                IsolationChoice::Project => Isolation::Project,
                IsolationChoice::Interactive => Isolation::Interactive,
            })
            .client_app(concat!("outrigger-cli/", env!("CARGO_PKG_VERSION")))
            .include_partial_messages(true)
            .include_hook_events(self.verbose || self.include_hook_events)
            .betas(&self.betas)
            .additional_directories(self.add_dir.iter().cloned())
            .allowed_tools(self.allow.iter().cloned())
            .disallowed_tools(self.deny.iter().cloned())
            .mcp_config_files(self.mcp_config.iter().cloned());
        options.model = self.model.clone();
        options.fallback_model = self.fallback_model.clone();
        options.effort = self.effort;
        options.agent = self.agent.clone();
        if let Some(given) = &self.agents {
            options.agents = object("--agents", given)?;
        }
        options.cwd = self.cwd.clone();
        options.worktree = self.worktree.as_deref().map(|name| match name {
            "" => Worktree::Unnamed,
            name => name.into(),
        });
        options.persist_session = self.no_session_persistence.then_some(false);
        options.debug_file = self.debug_file.clone();
        if let Some(given) = &self.settings {
            // Inline, so that the rules of a policy that ask can be laid on them.
            options = options.settings(object::<Settings>("--settings", given)?);
        }
        for directory in &self.plugin_dir {
            options.plugins.push(PluginConfig::local(plugin(directory)?));
        }
        options.max_turns = self.max_turns;
        options.max_budget_usd = self.max_budget_usd;
        options.setting_sources = self.setting_sources.clone();
        options.cli_path = self.cli.clone();
        options.permission_mode = self.permission_mode;
        options.hermetic_home = self.hermetic_home.clone();
        options.assume_sandbox = self.assume_sandbox;
        // Who names this mode means it; the CLI wants to be told twice.
        options.allow_dangerously_skip_permissions =
            self.permission_mode == Some(PermissionMode::BypassPermissions);
        options.system_prompt = match (&self.system_prompt, &self.append_system_prompt) {
            (Some(text), _) => Some(SystemPrompt::Text(text.clone())),
            (None, Some(text)) => Some(SystemPrompt::Preset {
                append: Some(text.clone()),
                exclude_dynamic_sections: None,
                snapshot: None,
            }),
            (None, None) => None,
        };
        options.tools = self.tools.as_deref().map(|names| {
            let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
            Tools::only(names)
        });
        if self.inherit_env {
            options.environment = outrigger::env::Environment::inherit_all();
        }
        for variable in &self.env {
            options = match variable.split_once('=') {
                Some((name, _)) if SECRET.contains(&name) => {
                    return Err(usage(format!(
                        "--env {name}: every process of this machine can read a command line; set {name} in the environment and choose by --auth"
                    )));
                }
                Some((name, value)) => options.env(name, value),
                None => {
                    options.environment = options.environment.clone().pass(variable);
                    options
                }
            };
        }
        Ok(options)
    }

    /// Whether the CLI works somewhere else than it is started.
    pub(crate) fn is_in_worktree(&self) -> bool {
        self.worktree.is_some()
    }

    /// Reads the files that flags name. That is for before signals are caught: a file may be a pipe that nobody writes to, and a signal
    /// then ends the program.
    ///
    /// # Errors
    /// When a file cannot be read, or what it or a flag says is wrong.
    pub(crate) fn read(&self) -> Result<ReadArgs, Failure> {
        Ok(ReadArgs {
            policy: self.policy.as_deref().map(policy::read).transpose()?,
            options: self.options()?,
            is_verbose: self.verbose,
        })
    }

    fn auth(&self) -> Result<Auth, Failure> {
        let secret = |usual: &str| {
            let name = self.auth_env.as_deref().unwrap_or(usual);
            match std::env::var(name) {
                Ok(value) if !value.trim().is_empty() => Ok(Secret::new(value)),
                _ => Err(usage(format!(
                    "--auth: the environment variable {name} is not set, or not text"
                ))),
            }
        };
        let auth = match self.auth {
            AuthChoice::ApiKey => Auth::ApiKey(secret("ANTHROPIC_API_KEY")?),
            AuthChoice::AuthToken => Auth::AuthToken(secret("ANTHROPIC_AUTH_TOKEN")?),
            AuthChoice::OauthToken => Auth::OAuthToken(secret("CLAUDE_CODE_OAUTH_TOKEN")?),
            AuthChoice::Gateway => Auth::Gateway {
                base_url: std::env::var("ANTHROPIC_BASE_URL")
                    .map_err(|_| usage("--auth gateway: ANTHROPIC_BASE_URL is not set".to_owned()))?,
                token: secret("ANTHROPIC_AUTH_TOKEN")?,
            },
            _ if self.auth_env.is_some() => {
                return Err(usage(
                    "--auth-env goes with --auth api-key, auth-token, oauth-token or gateway".to_owned(),
                ));
            }
            AuthChoice::Inherit => Auth::Inherit,
            AuthChoice::Unchecked => Auth::Unchecked,
            AuthChoice::Login => Auth::Login,
            AuthChoice::ApiKeyHelper => Auth::ApiKeyHelper,
            AuthChoice::Bedrock => Auth::Bedrock,
            AuthChoice::Vertex => Auth::Vertex,
            AuthChoice::Foundry => Auth::Foundry,
        };
        Ok(auth)
    }
}

/// Shows how long calls of MCP tools took, by the CLI's own clock, which stands while somebody is asked.
fn observed(options: Options, notes: &Notes) -> Options {
    let took = |ms: Option<f64>| ms.map_or_else(String::new, |ms| format!(" in {:.2} s", ms / 1000.0));
    let (done, failed) = (notes.clone(), notes.clone());
    options
        .hook(
            hooks::post_tool_use(move |call, _| {
                done.say(&format!(
                    "MCP call {} returned{}",
                    call.tool_name,
                    took(call.duration_ms)
                ));
                std::future::ready(HookOutput::none())
            })
            .matcher(MCP_TOOLS),
        )
        .hook(
            hooks::post_tool_use_failure(move |call, _| {
                failed.say(&format!(
                    "MCP call {} failed{}",
                    call.tool_name,
                    took(call.duration_ms)
                ));
                std::future::ready(HookOutput::none())
            })
            .matcher(MCP_TOOLS),
        )
}

/// Whether a variable of this name is likely to hold a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
    SECRET.contains(&name.as_str()) || words.iter().any(|word| name.contains(word))
}

/// The schema in the file of `--schema`, which is read before signals are caught, as other files are.
pub(crate) fn schema(path: &Path) -> Result<OutputFormat, Failure> {
    let text = text_file::read(path)
        .with_context(|| format!("--schema: cannot read {}", path.display()))
        .map_err(|error| Failure::new(Status::Usage, error))?;
    let schema: JsonObject = serde_json::from_str(&text)
        .map_err(|error| usage(format!("--schema: {} is no JSON object: {error}", path.display())))?;
    Ok(OutputFormat::JsonSchema { schema })
}

/// Whether a value is JSON itself, and not the name of a file with it.
fn is_json(given: &str) -> bool {
    given.trim_start().starts_with(['{', '['])
}

/// The directory of a plugin from the root on, since `--cwd` may put the CLI into another place than this program.
fn plugin(directory: &Path) -> Result<String, Failure> {
    let wrong = |why: String| usage(format!("--plugin-dir {}: {why}", directory.display()));
    let path = std::path::absolute(directory).map_err(|error| wrong(error.to_string()))?;
    if !path.is_dir() {
        return Err(wrong("it is no directory".to_owned()));
    }
    let path = path.into_os_string().into_string();
    path.map_err(|_| wrong("its name is not UTF-8".to_owned()))
}

/// Reads a value of a flag: JSON, or a file with it.
///
/// # Errors
/// When the file can't be read, or what is in it is something else: with the line and the key.
pub(crate) fn object<T: DeserializeOwned>(flag: &str, given: &str) -> Result<T, Failure> {
    let (text, place) = if is_json(given) {
        (given.to_owned(), String::new())
    } else {
        let text = text_file::read(Path::new(given)).with_context(|| format!("{flag}: cannot read {given}"));
        let text = text.map_err(|error| Failure::new(Status::Usage, error))?;
        (text, format!(" {given}:"))
    };
    let mut reader = serde_json::Deserializer::from_str(&text);
    let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let key = match error.path().to_string() {
            key if key == "." || key == "?" => String::new(),
            key => format!(" in `{key}`:"),
        };
        usage(format!("{flag}:{place}{key} {}", error.inner()))
    })?;
    let end = reader.end();
    end.map_err(|error| usage(format!("{flag}:{place} {error}")))?;
    Ok(read)
}

/// A failure of the person who typed.
pub(crate) fn usage(message: String) -> Failure {
    Failure::new(Status::Usage, anyhow::anyhow!(message))
}
