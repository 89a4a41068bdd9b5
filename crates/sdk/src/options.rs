//! What to start and how: every option of the CLI's official SDKs that is not a callback.
//!
//! [`Options`] is plain data with a setter for each field. [`Options::check`] finds contradictions before anything is started;
//! [`Options::launch`] turns the options into a [`Launch`]: a program, its arguments, its complete environment and
//! the first request to send. Each field says how it reaches the CLI.
//!
//! Three rules hold for all of them. A value never becomes a flag: each is one argument of the form `--flag=value`. Long values,
//! and values that look secret, stay off the command line. An option that could not have an effect is an error.
//!
//! ```
//! use outrigger::options::{Auth, Isolation, Options};
//!
//! let options = Options::new(Auth::Login)
//!     .isolation(Isolation::Project)
//!     .model("opus")
//!     .allowed_tools(["Read", "Bash(git log:*)"]);
//! options.check()?;
//!
//! let twice = options.model("opus").fallback_model("opus");
//! let error = twice.check().unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "`fallback_model` and `model` exclude each other: a model cannot stand in for itself; name another"
//! );
//! # Ok::<(), outrigger::options::OptionsError>(())
//! ```

mod args;
mod auth;
mod callback_options;
mod check;
mod explain;
mod flags;
pub(crate) mod handover;
mod hook_options;
mod hosting;
mod initialize;
pub(crate) mod inline_settings;
mod launch;
mod lease_options;
mod mcp_options;
mod never_asked;
mod options_error;
mod routes;
mod secret;
mod store_options;
#[doc(hidden)]
pub mod transport;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

// What setters take of the protocol, and what goes into that.
pub use outrigger_protocol::RawJson;
pub use outrigger_protocol::outbound::WorkspaceTrust;
pub use outrigger_protocol::settings::{SandboxSettings, Settings};
pub use outrigger_protocol::shared::{
    AgentDefinition, AgentEffort, AgentMcpServer, AgentMemory, Effort, JsonObject, McpOrgMaxPermission,
    McpPermissionPolicy, McpRemoteServerConfig, McpSdkServerConfig, McpServerConfig, McpServerToolPolicy,
    McpStdioServerConfig, OutputFormat, PermissionMode, PluginConfig, PluginKind, SettingSource,
    SystemPrompt, ThinkingConfig, ThinkingDisplay,
};

pub use auth::{Auth, AuthMismatch, NoAccount};
pub(crate) use auth::{CUSTOM_HEADERS, OtherAccount, carry_credentials, reports_none};
pub(crate) use launch::Resumed;
pub use launch::{Confirmation, Host, Launch, LaunchFiles, Unconfirmed};
pub use never_asked::NeverAsked;
pub use options_error::OptionsError;
pub(crate) use options_error::{conflict, delivery, invalid, refuse, requires};
pub use secret::Secret;
pub(crate) use secret::Secrets;
pub use values::{
    Delivery, Encoded, Isolation, PermissionPrompts, QuestionPreviewFormat, RunAs, Runtime, SettingsInput,
    Skills, Tools, Worktree,
};

pub use crate::env::Environment;

/// Declares the fields with their setters, so that the two cannot drift apart.
///
/// `flag` is a switch, `text` and `path` are an optional string and path, `value<T>` is an optional value of that type,
/// `texts`, `paths` and `list<T>` are lists that a setter replaces, `map<T>` is a map that a setter adds to, `own<T>` always
/// has a value.
macro_rules! options {
    (@field flag) => { bool };
    (@field text) => { Option<String> };
    (@field path) => { Option<PathBuf> };
    (@field value $ty:ty) => { Option<$ty> };
    (@field texts) => { Vec<String> };
    (@field paths) => { Vec<PathBuf> };
    (@field list $ty:ty) => { Vec<$ty> };
    (@field map $ty:ty) => { BTreeMap<String, $ty> };
    (@field own $ty:ty) => { $ty };

    (@setter flag $name:ident) => {
        #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
        pub fn $name(mut self, $name: bool) -> Self { self.$name = $name; self }
    };
    (@setter text $name:ident) => {
        #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
        pub fn $name(mut self, $name: impl Into<String>) -> Self { self.$name = Some($name.into()); self }
    };
    (@setter path $name:ident) => {
        #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
        pub fn $name(mut self, $name: impl Into<PathBuf>) -> Self { self.$name = Some($name.into()); self }
    };
    (@setter value $name:ident $ty:ty) => {
        #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
        pub fn $name(mut self, $name: impl Into<$ty>) -> Self { self.$name = Some($name.into()); self }
    };
    (@setter texts $name:ident) => {
        #[doc = concat!("Replaces [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
        pub fn $name<S: Into<String>>(mut self, $name: impl IntoIterator<Item = S>) -> Self {
            self.$name = $name.into_iter().map(Into::into).collect();
            self
        }
    };
    (@setter paths $name:ident) => {
        #[doc = concat!("Replaces [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
        pub fn $name<P: Into<PathBuf>>(mut self, $name: impl IntoIterator<Item = P>) -> Self {
            self.$name = $name.into_iter().map(Into::into).collect();
            self
        }
    };
    (@setter list $name:ident $ty:ty) => {
        #[doc = concat!("Replaces [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
        pub fn $name(mut self, $name: impl IntoIterator<Item = $ty>) -> Self {
            self.$name = $name.into_iter().collect();
            self
        }
    };
    (@setter map $name:ident $ty:ty) => {
        #[doc = concat!("Adds to [`", stringify!($name), "`](Self#structfield.", stringify!($name), "), or replaces an entry.")]
        pub fn $name(mut self, key: impl Into<String>, value: impl Into<$ty>) -> Self {
            self.$name.insert(key.into(), value.into());
            self
        }
    };
    (@setter own $name:ident $ty:ty) => {
        #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
        pub fn $name(mut self, $name: $ty) -> Self { self.$name = $name; self }
    };

    ($(#[$auth_doc:meta])* own<Auth> auth; $($(#[$doc:meta])* $kind:ident$(<$ty:ty>)? $name:ident;)+) => {
        /// How to start a session. See the [module](self) for the rules, and each field for what it does.
        #[derive(Clone)]
        #[non_exhaustive]
        pub struct Options {
            $(#[$auth_doc])*
            pub auth: Auth,
            $( $(#[$doc])* pub $name: options!(@field $kind $($ty)?), )+
            /// The part of the options that this program keeps and the CLI does not get.
            pub(crate) hosting: hosting::Hosting,
        }

        impl Options {
            /// Options with only the account set.
            pub fn new(auth: Auth) -> Self {
                Self { auth, $( $name: Default::default(), )+ hosting: Default::default() }
            }

            options!(@setter own auth Auth);

            /// The names of all options, as [`OptionsError`] names them.
            pub const NAMES: &[&str] = &["auth", $(stringify!($name)),+];

            $( options!(@setter $kind $name $($ty)?); )+
        }

        /// Shows the options that are set, without possible secrets.
        impl fmt::Debug for Options {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut shown = f.debug_struct("Options");
                shown.field("auth", &self.auth);
                $( show(&mut shown, stringify!($name), &self.$name); )+
                shown.finish_non_exhaustive()
            }
        }
    };
}

options! {
    /// Which account pays. Reaches the CLI in its environment.
    own<Auth> auth;
    /// How much of the user's configuration the session sees. `--setting-sources`, `--strict-mcp-config`, `HOME`.
    own<Isolation> isolation;
    /// The home of a hermetic session, which is kept; created if it is missing. The default is a temporary one.
    path hermetic_home;
    /// Which variables of this process's environment the CLI inherits, and which are added. See also [`env`](Self::env).
    own<Environment> environment;
    /// The working directory; this process's if unset. A relative path is taken from there.
    path cwd;
    /// The CLI; searched for if unset, see [`discover`](crate::discover).
    path cli_path;
    /// The runtime for a CLI that is a script.
    own<Runtime> executable;
    /// Arguments before those of the CLI: for the runtime of a script, or for a wrapper named as `cli_path`. These come
    /// first, as they are: do not build them from input.
    texts executable_args;
    /// The user to run the CLI as.
    value<RunAs> user;
    /// Declares that this is a sandbox (`IS_SANDBOX=1`), so that the superuser may skip permissions. For throw-away containers.
    flag assume_sandbox;
    /// Keeps the CLI from updating itself (`DISABLE_AUTOUPDATER=1`): for installations that are pinned.
    flag disable_autoupdater;
    /// The name of the program that uses this SDK, as part of the API's user agent. `CLAUDE_AGENT_SDK_CLIENT_APP`.
    text client_app;
    /// The trusted checkout of which `cwd` is a worktree: project settings come from it. `--project-config-root`.
    path project_config_root;
    /// The git worktree that the CLI makes in the repository of `cwd`, and works in. If a worktree of that name exists, it is used
    /// again. Worktree and branch stay when the session ends, the worktree locked. A session that is resumed goes back to its own
    /// worktree without this option. `--worktree`.
    value<Worktree> worktree;
    /// More directories that tools may work in. `--add-dir` for each.
    paths additional_directories;

    /// The model, or an alias such as `opus`. `--model`.
    text model;
    /// The model, or several separated by commas, to use when the first is overloaded. `--fallback-model`.
    text fallback_model;
    /// How hard the model thinks. `--effort`.
    value<Effort> effort;
    /// Whether and how the model thinks before it answers. `--thinking`, `--max-thinking-tokens`, `--thinking-display`.
    value<ThinkingConfig> thinking;
    /// The most tokens to think with, 0 for none. The older form of `thinking`. `--max-thinking-tokens`.
    value<u64> max_thinking_tokens;
    /// Beta features of the API. `--betas`.
    texts betas;
    /// The most round trips to the API that a turn may take; at least 1. `--max-turns`.
    value<u64> max_turns;
    /// The most that the session may cost, in US dollars by the CLI's own prices. `--max-budget-usd`.
    value<f64> max_budget_usd;
    /// A budget of tokens that the API shows to the model. `--task-budget`.
    value<u64> task_budget;
    /// The system prompt; Claude Code's own if unset. The official SDKs differ: there
    /// unset means an *empty* prompt, which here is `SystemPrompt::Text(String::new())`. Fields of `initialize`.
    value<SystemPrompt> system_prompt;
    /// A file with the system prompt. `--system-prompt-file`.
    path system_prompt_file;
    /// A text that every subagent gets after its own system prompt. `initialize.appendSubagentSystemPrompt`.
    text append_subagent_system_prompt;
    /// The form of the final answer. `--json-schema` and `initialize.jsonSchema`; only the latter above 8 KiB.
    value<OutputFormat> output_format;

    /// The built-in tools; all if unset. `--tools`.
    value<Tools> tools;
    /// [Rules](crate::permissions::rules) for calls that run without a permission request: `Read`, `Bash(git log:*)`,
    /// `mcp__server__tool`. A rule that the CLI would skip or misread is an error. `--allowedTools`; above 8 KiB
    /// `permissions.allow` of
    /// `settings`.
    texts allowed_tools;
    /// [Rules](crate::permissions::rules) for calls that the CLI denies; a bare name removes the tool. A rule that the CLI would
    /// skip is an error. `--disallowedTools`, or `initialize`.
    texts disallowed_tools;
    /// How `disallowed_tools` is delivered.
    own<Delivery> disallowed_tools_delivery;
    /// Aliases of tools: from the name that the model calls to the name of the tool. `initialize.toolAliases`.
    map<String> tool_aliases;
    /// MCP tools that run code, by server, for the CLI's own safety checks. Not declared upstream.
    /// `initialize.codeRunningMcpTools`.
    map<Vec<String>> code_running_mcp_tools;
    /// The skills that the model may use. `Skill` rules in `--allowedTools`; a list also `initialize.skills`.
    value<Skills> skills;
    /// How calls are decided that no rule decides; the mode of the settings if unset. `--permission-mode`.
    value<PermissionMode> permission_mode;
    /// Allows the mode `bypassPermissions`, at the start or later. `--allow-dangerously-skip-permissions`.
    flag allow_dangerously_skip_permissions;
    /// The MCP tool that answers permission requests instead of this program. `--permission-prompt-tool`.
    text permission_prompt_tool_name;
    /// Whether the CLI sends permission requests. `--permission-prompts`.
    value<PermissionPrompts> permission_prompts;
    /// The instructions of plan mode, instead of the CLI's. `initialize.planModeInstructions`.
    text plan_mode_instructions;
    /// The form of previews in `AskUserQuestion`. `CLAUDE_CODE_QUESTION_PREVIEW_FORMAT`.
    value<QuestionPreviewFormat> question_preview_format;
    /// Enables more kinds of questions in `AskUserQuestion`. Not declared upstream. `CLAUDE_CODE_QUESTION_EXTENDED`.
    flag question_extended;
    /// Makes the descriptions of `AskUserQuestion` optional. Not declared upstream. `CLAUDE_CODE_QUESTION_OPTIONAL_DESCRIPTIONS`.
    flag question_optional_descriptions;

    /// The agent that the main conversation runs as. `--agent`.
    text agent;
    /// Subagents, by name. `initialize.agents`.
    map<AgentDefinition> agents;
    /// MCP servers, by name. `--mcp-config`, or `initialize.mcpServers` for those with an environment, headers or a URL that
    /// may hold a secret.
    map<McpServerConfig> mcp_servers;
    /// How `mcp_servers` is delivered.
    own<Delivery> mcp_servers_delivery;
    /// Files with MCP servers. `--mcp-config` for each.
    paths mcp_config_files;
    /// Uses only the MCP servers of these options; depends on `isolation` if unset. `--strict-mcp-config`.
    value<bool> strict_mcp_config;
    /// Plugins to load. `--plugin-dir`, `--plugin-dir-no-mcp`, or `initialize.plugins`.
    list<PluginConfig> plugins;
    /// How `plugins` is delivered.
    own<Delivery> plugin_delivery;

    /// A settings layer for this session. `--settings`, or `initialize.settings`. The permission rules of inline settings are checked like
    /// those of `allowed_tools`; the CLI would skip a wrong one silently. So are the types of values, since of settings with a wrong one
    /// the CLI takes nothing.
    ///
    /// In inline settings, paths of permission rules that have one `/` in front, and relative paths of the sandbox, begin in the session's
    /// directory. The SDK sees to that: for the CLI they would begin beside a temporary file. Where only the CLI knows the directory (a
    /// spare, `worktree`, and for rules a session that is resumed), rules that ask or deny match in more directories, and a relative path
    /// of the sandbox is an error.
    value<SettingsInput> settings;
    /// How inline `settings` are delivered.
    own<Delivery> settings_delivery;
    /// The sandbox for commands, merged into inline `settings`. Relative paths begin in `cwd`. The CLI does not start without it, unless
    /// `failIfUnavailable` says otherwise. Commands in it run without a permission request, unless `autoAllowBashIfSandboxed` is false.
    value<Encoded<SandboxSettings>> sandbox;
    /// Policy from the program that no other settings can loosen. `--managed-settings`, or `initialize.managedSettings`.
    value<Encoded<Settings>> managed_settings;
    /// How `managed_settings` is delivered.
    own<Delivery> managed_settings_delivery;
    /// The settings files to load; depends on `isolation` if unset, none if empty. `--setting-sources`.
    value<Vec<SettingSource>> setting_sources;

    /// Resumes the latest session of the working directory. `--continue`.
    flag continue_conversation;
    /// Resumes this session: its id or title. `--resume`.
    text resume;
    /// The id of the new session, a UUID. `--session-id`.
    text session_id;
    /// Forks the resumed session into a new one. `--fork-session`.
    flag fork_session;
    /// Resumes the session after this message, a UUID; later messages are dropped. `--resume-session-at`.
    text resume_session_at;
    /// The prompt whose turn may be dropped by that; the CLI refuses to drop any other. `--resume-drops-turn`.
    text resume_drops_turn;
    /// Whether the CLI writes the session to disk, so that it can be resumed; true if unset. `--no-session-persistence` if not.
    value<bool> persist_session;
    /// The title of a new session. `initialize.title`.
    text title;

    /// Streams the model's answer as it is written. `--include-partial-messages`.
    flag include_partial_messages;
    /// Reports the hooks that run. `--include-hook-events`.
    flag include_hook_events;
    /// Reports the texts and the thinking of subagents. `initialize.forwardSubagentText`.
    flag forward_subagent_text;
    /// Reports tool calls of subagents' subagents. Not declared upstream. `initialize.forwardNestedSubagentToolCalls`.
    flag forward_nested_subagent_tool_calls;
    /// Sends prompts verbatim: the CLI expands no `@file` and no slash command. Sets `client_composed` on each prompt.
    flag verbatim_prompts;
    /// Suggests a next prompt after each turn. `initialize.promptSuggestions`.
    flag prompt_suggestions;
    /// Sums up every half minute what a background task does. `initialize.agentProgressSummaries`.
    flag agent_progress_summaries;
    /// Declares that the program can stop single tasks, so that an interrupt spares background tasks.
    /// `initialize.perTaskStopAffordance`.
    flag per_task_stop_affordance;
    /// Lets a prompt that follows at once replace the one before. Not declared upstream.
    /// `initialize.rapidFollowupPreempt`.
    flag rapid_followup_preempt;
    /// Keeps copies of changed files, so that they can be restored. `CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING`.
    flag enable_file_checkpointing;
    /// Makes the CLI wait for `initialize` before it sets anything up, even if no option needs it. A resumed session with a tool
    /// call that a hook deferred needs this, or the CLI may not call its hooks for that call. The SDK sets it for resumed sessions
    /// with hooks of this program, unless the CLI says that it is older than 2.1.261. It is not asked behind a
    /// wrapper, `executable_args`, another `user` or a transport of the program's own: there the SDK does not set it. `--await-initialize`.
    flag await_initialize;

    /// Declares that the program offers to switch back from bypassed permissions. Not declared upstream.
    /// `initialize.offersBypassSwitchBack`.
    flag offers_bypass_switch_back;
    /// Declares that the program enforces permissions itself while they are bypassed. Not declared upstream. `initialize.keepsBypassHeld`.
    flag keeps_bypass_held;
    /// MCP servers that are exempt from the isolation of web search. Not declared upstream.
    /// `initialize.webSearchIsolationExemptMcpServers`.
    texts web_search_isolation_exempt_mcp_servers;
    /// Whether the user trusts a directory. Not declared upstream. `initialize.workspaceTrust`.
    value<WorkspaceTrust> workspace_trust;
    /// What kind of work this is, for the API's statistics. Not declared upstream. `--workload`.
    text workload;
    /// Channels by which messages may arrive: `server:NAME`, or `plugin:NAME@MARKETPLACE`. Not declared upstream. `--channels` for
    /// each.
    texts channels;

    /// Writes the CLI's debug log. `--debug`; `debug_file` does it by itself.
    flag debug;
    /// The file for the debug log. `--debug-file`.
    path debug_file;
    /// The longest line that is read from the CLI, in bytes; longer ones are skipped and reported. The codec's default if
    /// unset.
    value<usize> max_line_bytes;

    /// Flags that this build has no option for. See [`extra_arg`](Self::extra_arg).
    own<Vec<(String, Option<String>)>> extra_args;
    /// Fields of `initialize` that this build has no option for. See [`initialize_field`](Self::initialize_field).
    own<BTreeMap<String, RawJson>> initialize_fields;
}

/// Shows an option unless it is unset, which most are.
fn show(shown: &mut fmt::DebugStruct<'_, '_>, name: &'static str, value: &dyn fmt::Debug) {
    // Arguments of MCP servers often hold keys, and there may be many agents.
    const HIDDEN: &[&str] = &[
        "agents",
        "mcp_servers",
        "settings",
        "managed_settings",
        "extra_args",
        "initialize_fields",
        "executable_args",
    ];
    let text = format!("{value:?}");
    if matches!(text.as_str(), "None" | "[]" | "{}" | "false" | "Auto") {
        return;
    }
    let text = if HIDDEN.contains(&name) { "…" } else { &text };
    shown.field(name, &format_args!("{text}"));
}

impl Options {
    /// Adds a variable to the CLI's environment. Outranks everything else. Variables that select an account are rejected: set `auth`.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment = self.environment.set(name, value);
        self
    }

    /// Adds a flag that this build has no option for: `extra_arg("name", Some("value"))` is `--name=value`, with `None` it
    /// is `--name`. The name goes without dashes. [`check`](Self::check) rejects flags that have an option, or that the session
    /// depends on.
    pub fn extra_arg(mut self, flag: impl Into<String>, value: Option<&str>) -> Self {
        self.extra_args.push((flag.into(), value.map(str::to_owned)));
        self
    }

    /// Adds a field to `initialize` that this build has no option for. [`check`](Self::check) rejects a field that an option has
    /// set.
    pub fn initialize_field(mut self, name: impl Into<String>, value: impl Into<RawJson>) -> Self {
        self.initialize_fields.insert(name.into(), value.into());
        self
    }
}
