//! Claims: what makes a spare a session.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::WorkspaceTrust;
use outrigger_protocol::outbound::control::ClaimSession;
use outrigger_protocol::settings::Settings;
use outrigger_protocol::shared::{AgentDefinition, JsonObject, PermissionMode, SystemPrompt};

use crate::error::{Error, ModuleProblem, Result};
use crate::mcp::SdkMcpServer;
use crate::options::inline_settings::{SettingsPlace, placed};
use crate::options::{self, Auth, Encoded, Options, OptionsError, Secret, Secrets, SettingsInput, invalid};

/// The settings that decide about hooks. A spare has its hooks from when it was started.
const HOOK_KEYS: &[&str] = &[
    "hooks",
    "disableAllHooks",
    "allowManagedHooksOnly",
    "allowedHttpHookUrls",
    "httpHookAllowedEnvVars",
];

/// The settings that the CLI takes only once it is a session, or that are to outlast what the directory's own settings say.
const LATE_KEYS: &[&str] = &[
    "model",
    "agent",
    "fastMode",
    "permissions",
    "availableModels",
    "disableAutoMode",
];

const OAUTH_TOKEN: &str = "CLAUDE_CODE_OAUTH_TOKEN";
const SESSION_ACCESS_TOKEN: &str = "CLAUDE_CODE_SESSION_ACCESS_TOKEN";
const HOST_SESSION_ID: &str = "CLAUDE_CODE_HOST_SESSION_ID";

/// The options that are set when a spare becomes a session: the directory, and what depends on it.
///
/// All else is fixed when the spare is started, see [`Options::prewarm`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Claim {
    /// The session's working directory. A relative path is relative to this process's.
    pub cwd: PathBuf,
    /// The permission mode; that of the spare if unset.
    pub permission_mode: Option<PermissionMode>,
    /// The model; that of the spare if unset.
    pub model: Option<String>,
    /// The most tokens to think with, 0 for none; that of the spare if unset.
    pub max_thinking_tokens: Option<u64>,
    /// Settings on top of those of the spare, each key as a whole. Paths begin as in [`Options::settings`]: in the claim's directory. Keys
    /// about hooks are rejected.
    pub settings: Option<Encoded<Settings>>,
    /// More directories that tools may work in, in addition to those of the spare. Relative paths are relative to `cwd`.
    pub additional_directories: Vec<PathBuf>,
    /// A text after the system prompt. Rejected if the spare has such a text: the CLI would drop that one.
    pub append_system_prompt: Option<String>,
    /// The session's title.
    pub title: Option<String>,
    /// Subagents, in addition to those of the spare.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// MCP servers in this program, in addition to those of the spare.
    pub sdk_mcp_servers: Vec<(String, SdkMcpServer)>,
    /// Whether the user trusts the directory.
    pub workspace_trust: Option<WorkspaceTrust>,
    /// A newer token of the same account, for a spare with [`Auth::OAuthToken`].
    pub oauth_token: Option<Secret>,
    /// A token for the session itself, for programs that serve sessions to others.
    pub session_access_token: Option<Secret>,
    /// The program's own id of the session.
    pub host_session_id: Option<String>,
}

/// Declares the setters.
macro_rules! setters {
    ($($name:ident: $ty:ty => $value:expr;)+) => {
        impl Claim {
            $(
                #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
                pub fn $name(mut self, $name: $ty) -> Self {
                    self.$name = $value;
                    self
                }
            )+
        }
    };
}

setters! {
    permission_mode: PermissionMode => Some(permission_mode);
    model: impl Into<String> => Some(model.into());
    max_thinking_tokens: u64 => Some(max_thinking_tokens);
    settings: Settings => Some(settings.into());
    append_system_prompt: impl Into<String> => Some(append_system_prompt.into());
    title: impl Into<String> => Some(title.into());
    workspace_trust: WorkspaceTrust => Some(workspace_trust);
    oauth_token: impl Into<Secret> => Some(oauth_token.into());
    session_access_token: impl Into<Secret> => Some(session_access_token.into());
    host_session_id: impl Into<String> => Some(host_session_id.into());
}

impl Claim {
    /// A session in this directory, otherwise with the spare's options.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            permission_mode: None,
            model: None,
            max_thinking_tokens: None,
            settings: None,
            additional_directories: Vec::new(),
            append_system_prompt: None,
            title: None,
            agents: BTreeMap::new(),
            sdk_mcp_servers: Vec::new(),
            workspace_trust: None,
            oauth_token: None,
            session_access_token: None,
            host_session_id: None,
        }
    }

    /// Replaces [`additional_directories`](Self#structfield.additional_directories).
    pub fn additional_directories<P: Into<PathBuf>>(
        mut self,
        directories: impl IntoIterator<Item = P>,
    ) -> Self {
        self.additional_directories = directories.into_iter().map(Into::into).collect();
        self
    }

    /// Adds to [`agents`](Self#structfield.agents), or replaces one.
    pub fn agent(mut self, name: impl Into<String>, agent: AgentDefinition) -> Self {
        self.agents.insert(name.into(), agent);
        self
    }

    /// Adds to [`sdk_mcp_servers`](Self#structfield.sdk_mcp_servers); as
    /// [`Options::sdk_mcp_server`](crate::Options::sdk_mcp_server).
    pub fn sdk_mcp_server(mut self, name: impl Into<String>, server: SdkMcpServer) -> Self {
        self.sdk_mcp_servers.push((name.into(), server));
        self
    }

    /// Checks the claim for a spare with the options `base`, and prepares it for sending. It reads the disk.
    pub(crate) fn prepare(self, base: &Options) -> Result<Prepared> {
        let cold = self.cold(base)?;
        let host = base.host();
        let surroundings = base.hosting.surroundings();
        cold.options.check_in(&surroundings, host).map_err(wrong)?;
        let cwd = if host.remote {
            self.cwd.clone()
        } else {
            let cwd = cold.options.working_directory(&surroundings).map_err(wrong)?;
            for directory in &self.additional_directories {
                let path = cwd.join(directory);
                // The CLI would pass over one that is not there.
                std::fs::read_dir(&path).map_err(|error| {
                    wrong(OptionsError::File {
                        option: "additional_directories",
                        path,
                        error: error.to_string(),
                    })
                })?;
            }
            cwd
        };

        let mut request = ClaimSession::new(utf8("cwd", &cwd)?).include_initialize(true);
        request.permission_mode = self.permission_mode;
        request.append_system_prompt = self.append_system_prompt.clone();
        request.title = self.title.clone();
        request.workspace_trust = self.workspace_trust.clone();
        request.agents = (!self.agents.is_empty()).then(|| self.agents.clone());
        let servers: BTreeMap<String, SdkMcpServer> = self.sdk_mcp_servers.iter().cloned().collect();
        if !servers.is_empty() {
            let all = base
                .hosting
                .mcp
                .servers()
                .into_keys()
                .chain(servers.keys().cloned());
            request.sdk_mcp_servers = Some(all.collect());
        }
        let directories = self.additional_directories.iter();
        let directories: Vec<String> = directories
            .map(|directory| utf8("additional_directories", directory))
            .collect::<Result<_>>()?;
        request.additional_directories = (!directories.is_empty()).then_some(directories);
        let env: BTreeMap<String, String> = self
            .variables()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        request.env = (!env.is_empty()).then_some(env);

        let place = SettingsPlace::new(base, host, &cwd);
        let place = |settings: JsonObject| {
            let placed = placed(&settings, &place).and_then(|settings| base.with_hooks_kept(settings));
            placed.map_err(wrong)
        };
        let settings = self.settings.as_ref().map(|settings| object(&fields(settings)?));
        let settings = settings.transpose()?.map(place).transpose()?;
        let (early, late) = match settings {
            Some(settings) => split(&settings)?,
            None => (None, None),
        };
        let overlay = cold.overlay.map(place).transpose()?;
        let mut secrets = Secrets::default();
        let tokens = [&self.oauth_token, &self.session_access_token];
        for token in tokens.into_iter().flatten() {
            secrets.add("", token.reveal());
        }
        if let Some(settings) = &self.settings {
            secrets.add_settings(settings);
        }
        for agent in self.agents.values() {
            secrets.add_below(agent);
        }
        let secrets = secrets.into_list();
        Ok(Prepared {
            secrets: secrets.iter().map(|secret| secret.reveal().to_owned()).collect(),
            early,
            request,
            late,
            servers,
            model: self.model,
            max_thinking_tokens: self.max_thinking_tokens,
            cold: Cold {
                options: cold.options.cwd(cwd),
                overlay,
            },
        })
    }

    fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            (OAUTH_TOKEN, self.oauth_token.as_ref().map(Secret::reveal)),
            (
                SESSION_ACCESS_TOKEN,
                self.session_access_token.as_ref().map(Secret::reveal),
            ),
            (HOST_SESSION_ID, self.host_session_id.as_deref()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    /// The options that start the same session without a spare. `base` has the spare's options.
    fn cold(&self, base: &Options) -> Result<Cold> {
        let mut options = base.clone().cwd(&self.cwd);
        options.permission_mode = self.permission_mode.or(options.permission_mode);
        options.model = self.model.clone().or(options.model);
        if self.max_thinking_tokens.is_some() {
            options.thinking = None;
            options.max_thinking_tokens = self.max_thinking_tokens;
        }
        options
            .additional_directories
            .extend(self.additional_directories.iter().cloned());
        for (name, server) in &self.sdk_mcp_servers {
            options = options.sdk_mcp_server(name, server.clone());
        }
        options.title = self.title.clone().or(options.title);
        options.workspace_trust = self.workspace_trust.clone().or(options.workspace_trust);
        options.agents.extend(self.agents.clone());
        if let Some(text) = &self.append_system_prompt {
            append(&mut options, text)?;
        }
        for (name, value) in self.variables() {
            if name != OAUTH_TOKEN {
                options = options.env(OsString::from(name), value);
            }
        }
        if let Some(token) = &self.oauth_token {
            if !matches!(options.auth, Auth::OAuthToken(_)) {
                return Err(conflict(
                    ["oauth_token", "auth"],
                    "a claim can't change which account pays: start the spare with `Auth::OAuthToken`",
                ));
            }
            options.auth = Auth::OAuthToken(token.clone());
        }
        let mut overlay = None;
        if let Some(settings) = &self.settings {
            // Nothing else looks at them where the spare's settings are a file.
            let own = fields(settings)?;
            options.check_own_settings(&object(&own)?).map_err(wrong)?;
            if let Some(key) = own.keys().find(|key| HOOK_KEYS.contains(&key.as_str())) {
                let problem =
                    "decides about hooks, which a spare has from its start: give it to the options instead";
                return Err(wrong(invalid("settings", key, problem)));
            }
            let merged = match &options.settings {
                None => Some(own.clone()),
                Some(SettingsInput::Inline(base)) => {
                    let mut merged = fields(base)?;
                    merged.extend(own.clone());
                    Some(merged)
                }
                Some(SettingsInput::File(_)) => None,
            };
            match merged {
                Some(merged) => {
                    let settings = Encoded::new(object(&merged)?);
                    options.settings = Some(SettingsInput::Inline(settings));
                }
                // A file stays a file; what is on top of it follows.
                None => overlay = Some(object(&own)?),
            }
        }
        Ok(Cold { options, overlay })
    }
}

/// A claim that was checked.
#[derive(Clone)]
pub(crate) struct Prepared {
    /// The secrets of the claim.
    pub(crate) secrets: Vec<String>,
    /// Settings that go before the claim, so that they decide what it starts.
    pub(crate) early: Option<JsonObject>,
    pub(crate) request: ClaimSession,
    /// Settings that go behind it.
    pub(crate) late: Option<JsonObject>,
    /// Servers for the CLI to connect to.
    pub(crate) servers: BTreeMap<String, SdkMcpServer>,
    pub(crate) model: Option<String>,
    pub(crate) max_thinking_tokens: Option<u64>,
    pub(crate) cold: Cold,
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("cold", &self.cold)
            .finish_non_exhaustive()
    }
}

/// The same session without a spare.
#[derive(Debug, Clone)]
pub(crate) struct Cold {
    pub(crate) options: Options,
    /// Settings to apply before the first prompt, which the options can't hold.
    pub(crate) overlay: Option<JsonObject>,
}

fn append(options: &mut Options, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        let problem = "is empty: leave it unset instead";
        return Err(wrong(invalid("append_system_prompt", "", problem)));
    }
    let last = match options.system_prompt.get_or_insert(SystemPrompt::PRESET) {
        SystemPrompt::Preset {
            append: append @ None,
            ..
        } if options.system_prompt_file.is_none() => {
            *append = Some(text.to_owned());
            return Ok(());
        }
        SystemPrompt::Text(prompt) => Some(prompt),
        SystemPrompt::List(prompt) | SystemPrompt::Custom { prompt, .. } => prompt.last_mut(),
        _ => None,
    };
    match last {
        // As the CLI joins them.
        Some(last) => {
            last.push_str("\n\n");
            last.push_str(text);
            Ok(())
        }
        None => Err(conflict(
            ["append_system_prompt", "system_prompt"],
            "the spare has a text after its system prompt, or a prompt from a file, that this one would take the place of",
        )),
    }
}

fn fields(settings: &Encoded<Settings>) -> Result<BTreeMap<String, RawJson>> {
    let json = settings.json();
    let json = json.ok_or_else(|| wrong(invalid("settings", "", "cannot be written as JSON")))?;
    json.read()
        .map_err(|error| Error::invalid_because("settings", error))
}

fn object(fields: &BTreeMap<String, RawJson>) -> Result<JsonObject> {
    JsonObject::encode(fields).map_err(|error| Error::invalid_because("settings", error))
}

/// The keys that go before a claim, and those that go behind it.
fn split(settings: &JsonObject) -> Result<(Option<JsonObject>, Option<JsonObject>)> {
    let fields: BTreeMap<String, RawJson> = settings
        .read()
        .map_err(|error| Error::invalid_because("settings", error))?;
    let (late, early): (BTreeMap<_, _>, BTreeMap<_, _>) = fields
        .into_iter()
        .partition(|(key, _)| LATE_KEYS.contains(&key.as_str()));
    let some = |fields: BTreeMap<_, _>| (!fields.is_empty()).then(|| object(&fields)).transpose();
    Ok((some(early)?, some(late)?))
}

fn utf8(option: &'static str, path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        let problem = "is not UTF-8, which a claim has to be";
        wrong(invalid(option, path.to_string_lossy(), problem))
    })
}

fn wrong(error: OptionsError) -> Error {
    Error::of(error)
}

fn conflict(options: [&'static str; 2], advice: &'static str) -> Error {
    wrong(options::conflict(options, advice))
}

/// Why a claim failed. No prompt was sent, and the process ends: start the session with [`Options::start`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimProblem {
    /// The CLI rejected the claim.
    #[error("the CLI refused the claim: {message}{}", in_brackets(.code))]
    Refused {
        /// The code of the reason: `project_settings_not_claimable` (the directory's own settings set something that is fixed in a
        /// spare), `permission_mode_not_claimable`, `cwd_not_found`, `cwd_not_a_directory`, `unsafe_path`, …
        code: String,
        /// The CLI's explanation.
        message: String,
    },
    /// The CLI rejected the claim's settings.
    #[error("the CLI refused the claim's settings: {message}")]
    SettingsNotApplied {
        /// The CLI's explanation.
        message: String,
    },
    /// The CLI rejected another part of the claim.
    #[error("the CLI refused the claim's `{option}`: {message}")]
    OptionNotApplied {
        /// The part: `model` or `max_thinking_tokens`.
        option: &'static str,
        /// The CLI's explanation.
        message: String,
    },
    /// The CLI reports another session than the claimed one.
    #[error("`{option}` of the claimed session is {got:?} instead of {asked:?}")]
    Differs {
        /// The field that differs.
        option: &'static str,
        /// The claimed value.
        asked: String,
        /// The reported value.
        got: String,
    },
}

impl ClaimProblem {
    /// Parses the CLI's error, which begins with the code.
    pub(crate) fn refused(message: &str, code: Option<&str>) -> Self {
        let (word, rest) = message.split_once(": ").unwrap_or(("", message));
        let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let (word, message) = if is_word { (word, rest) } else { ("", message) };
        Self::Refused {
            code: code.unwrap_or(word).to_owned(),
            message: message.to_owned(),
        }
    }
}

impl ModuleProblem for ClaimProblem {}

impl Error {
    /// Why the claim of a spare failed, if the error is about that.
    pub fn as_claim_problem(&self) -> Option<&ClaimProblem> {
        self.problem()
    }
}

fn in_brackets(code: &str) -> String {
    match code {
        "" => String::new(),
        _ => format!(" [{code}]"),
    }
}

#[cfg(test)]
mod tests;
