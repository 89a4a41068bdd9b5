//! The types of options that are not a string or a number.

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

use outrigger_protocol::settings::{SandboxSettings, Settings};
use outrigger_protocol::shared::JsonObject;
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};

/// How much of the user's and the project's configuration a session sees.
///
/// This is a preset and no sandbox: the CLI always runs with this process's rights. An explicit
/// [`setting_sources`](super::Options::setting_sources) or [`strict_mcp_config`](super::Options::strict_mcp_config)
/// outranks the preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// The user's home, so that logins and session files are where `claude` keeps them, but no settings file and no configured MCP
    /// server (`--setting-sources=`, `--strict-mcp-config`). This is the default: opening an untrusted checkout runs nothing of
    /// it, nor the prompts that it schedules in `.claude/scheduled_tasks.json`. For that the SDK sets `CLAUDE_CODE_DISABLE_CRON`, unless
    /// the environment decides about it, and the model has no `CronCreate`. What the model runs there is another matter: see
    /// [`Policy::read_only`](crate::Policy::read_only) for git.
    #[default]
    Plain,
    /// Nothing of the user's home: the session has its own `HOME`, `CLAUDE_CONFIG_DIR` and `CLAUDE_CODE_TMPDIR` in a private
    /// directory that is removed with the session, or in [`hermetic_home`](super::Options::hermetic_home), which is kept. No
    /// settings file,
    /// no configured MCP server. The user's logins are not visible, and without a `hermetic_home` sessions cannot be resumed.
    Hermetic,
    /// The project's own settings and those for it on this machine (`--setting-sources=project,local`), in the user's home.
    /// Runs the hooks, MCP servers, key helper and scheduled prompts that the checkout brings, and its settings, slash commands, skills
    /// and agents may allow tool calls in addition to a [`Policy`](crate::Policy): choose it for checkouts that are trusted. Of a
    /// settings file with one value of a wrong type the CLI takes nothing, and does not say so: its deny rules are gone.
    Project,
    /// All that `claude` loads by itself in the user's terminal: besides what [`Project`](Self::Project) has, the user's own. Their
    /// `defaultMode` may be `bypassPermissions` only with
    /// [`allow_dangerously_skip_permissions`](super::Options::allow_dangerously_skip_permissions), or where
    /// [`settings`](super::Options::settings) is a file: then the permission handler gets no request but for ask rules. A session
    /// without a handler is not kept from it.
    /// [`permission_mode`](super::Options::permission_mode) outranks it.
    Interactive,
}

/// The program that runs a CLI that is a script (`.js`, `.mjs`, `.ts`, `.tsx`, `.jsx`). Native builds need none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Runtime {
    /// Node.js.
    #[default]
    Node,
    /// Bun.
    Bun,
    /// Deno.
    Deno,
}

impl Runtime {
    /// The program's name on the `PATH`.
    pub fn program(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Bun => "bun",
            Self::Deno => "deno",
        }
    }
}

/// The built-in tools of the session. Permissions still apply to them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tools {
    /// The default set of Claude Code.
    Preset,
    /// Only these; none if empty.
    Only(Vec<String>),
}

impl Tools {
    /// No built-in tools.
    pub const NONE: Self = Self::Only(Vec::new());

    /// Only the named ones.
    pub fn only<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }
}

/// The skills that the model may use. A settings source or a plugin has to provide them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skills {
    /// All skills that the CLI finds.
    All,
    /// Only these.
    Named(Vec<String>),
}

impl Skills {
    /// Only the named ones.
    pub fn named<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self::Named(names.into_iter().map(Into::into).collect())
    }
}

/// A git worktree for a session of its own, at `.claude/worktrees/NAME` in the repository, on the branch `worktree-NAME`.
///
/// The conversation is filed under the worktree's own project. `cwd` of [`SystemInit`](outrigger_protocol::inbound::system::Init)
/// is its path. A [`worktree_create`](crate::hooks::worktree_create) hook of the settings can create it elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Worktree {
    /// A worktree whose name the CLI chooses.
    Unnamed,
    /// The worktree of this name: letters, digits, dots, underscores and dashes, in parts with slashes between.
    Named(String),
}

impl From<&str> for Worktree {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

impl From<String> for Worktree {
    fn from(name: String) -> Self {
        Self::Named(name)
    }
}

/// What receives permission requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionPrompts {
    /// This program.
    Host,
    /// Nothing: the CLI denies calls that need a decision.
    None,
}

impl PermissionPrompts {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::None => "none",
        }
    }
}

/// The form in which `AskUserQuestion` previews its choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionPreviewFormat {
    /// Markdown.
    Markdown,
    /// HTML.
    Html,
}

impl QuestionPreviewFormat {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Html => "html",
        }
    }
}

/// How an option that may be long or secret reaches the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Delivery {
    /// On the command line while it is short (8 KiB) and holds nothing that looks secret, else in `initialize`.
    #[default]
    Auto,
    /// On the command line, where every process of the machine can read it. Rejected if the value looks secret or is too long.
    CommandLine,
    /// In `initialize`, over stdin: `--await-initialize`, and the CLI has to confirm it. Needs CLI 2.1.330 or newer.
    Initialize,
    /// In a file that only this user can read, and that is removed with the session. For older CLIs.
    File,
}

/// A settings layer for one session. It outranks the user's and the project's settings files.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SettingsInput {
    /// A file. A relative path is taken from the session's working directory.
    File(PathBuf),
    /// The settings themselves.
    Inline(Encoded<Settings>),
}

impl From<Settings> for SettingsInput {
    fn from(settings: Settings) -> Self {
        Self::Inline(settings.into())
    }
}

/// A value of type `T` as JSON; `into()` converts a `T`.
///
/// Settings have hundreds of types. Options store them as JSON, so that only a program that sets some compiles code for these types.
pub struct Encoded<T> {
    /// `None` if the value does not serialize; then the start fails.
    json: Option<JsonObject>,
    of: PhantomData<fn() -> T>,
}

impl<T> Encoded<T> {
    pub(crate) fn new(json: JsonObject) -> Self {
        Self {
            json: Some(json),
            of: PhantomData,
        }
    }

    /// The JSON. `None` if the value did not serialize; then the session does not start.
    pub fn json(&self) -> Option<&JsonObject> {
        self.json.as_ref()
    }

    /// The value.
    ///
    /// # Errors
    /// When there is no JSON, or it does not decode as `T`.
    pub fn decode(&self) -> Result<T, serde_json::Error>
    where
        T: DeserializeOwned,
    {
        let json = self
            .json()
            .ok_or_else(|| serde_json::Error::custom("the value could not be written as JSON"))?;
        json.decode()
    }

    fn encode(value: &T) -> Self
    where
        T: Serialize,
    {
        Self {
            json: JsonObject::encode(value).ok(),
            of: PhantomData,
        }
    }
}

impl<T> Clone for Encoded<T> {
    fn clone(&self) -> Self {
        Self {
            json: self.json.clone(),
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Encoded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

macro_rules! encoded {
    ($($ty:ty),+) => {
        $(
            impl From<$ty> for Encoded<$ty> {
                fn from(value: $ty) -> Self {
                    Self::encode(&value)
                }
            }

            impl From<Box<$ty>> for Encoded<$ty> {
                fn from(value: Box<$ty>) -> Self {
                    Self::encode(&value)
                }
            }
        )+
    };
}

encoded!(Settings, SandboxSettings);

impl From<PathBuf> for SettingsInput {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

/// The user to run the CLI as; Unix only, and only the superuser may choose. `HOME` is not changed by it.
///
/// The SDK does not trust that user: it fills a temporary directory for the session before another user can enter it, and then
/// changes its owner. In the system's temporary directory, other users must not be able to rename this program's files (`/tmp` has
/// the sticky bit for this); else the session does not start. Files in a home or config directory, that of
/// [`hermetic_home`](super::Options::hermetic_home) among them, are read and created with the rights of that user, never with
/// more: settings and logins that only this program may read are not copied, and a home that the user cannot create has to exist.
/// This works on Linux only; elsewhere such sessions do not start. Afterwards the system makes no core dumps of this program.
/// [`Options::sessions`](super::Options::sessions) accesses the user's conversations with the rights of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunAs {
    /// The user's id.
    pub uid: u32,
    /// The id of the user's main group.
    pub gid: u32,
}
