//! The smaller parts of a settings file.
// Written by `cargo xtask types` from what upstream declares and upstream/settings/parts.toml: change that instead.

use std::collections::BTreeMap;

use crate::RawJson;

crate::open_struct::open_struct! {
    /// A program that works out managed settings when the CLI starts. Only heeded from an administrator's settings.
    pub struct PolicyHelper {
        /// The program, as an absolute path.
        path: "path" => String,
        /// How long it may run, in milliseconds.
        timeout_ms: "timeoutMs" => u64,
        /// How often it is run again, in milliseconds; 0 for never.
        refresh_interval_ms: "refreshIntervalMs" => u64,
    }
}

crate::open_struct::open_struct! {
    /// A command that the CLI runs to get something to show.
    pub struct CommandSetting {
        /// Always `command`.
        kind: "type" => String,
        /// The command.
        command: "command" => String,
    }
}

crate::open_struct::open_struct! {
    /// A command whose output is the status line.
    pub struct StatusLine {
        /// Always `command`.
        kind: "type" => String,
        /// The command.
        command: "command" => String,
        /// Columns to leave free at the sides.
        padding: "padding" => i64,
        /// How often to run it anew although nothing happened, in seconds.
        refresh_interval: "refreshInterval" => serde_json::Number,
        /// Whether to leave out the CLI's own line about the editor's mode.
        hide_vim_mode_indicator: "hideVimModeIndicator" => bool,
    }
}

/// What commits and pull requests say about who helped with them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Attribution {
    /// False for nothing at all.
    Flag(bool),
    /// Texts of one's own.
    Texts(AttributionTexts),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(Attribution {
    Bool => Flag,
    Object => Texts,
});

crate::open_struct::open_struct! {
    /// What commits and pull requests say about who helped with them. An absent text is the CLI's own, an empty one is none.
    pub struct AttributionTexts {
        /// What commits say, trailers included.
        commit: "commit" => String,
        /// What pull requests say.
        pr: "pr" => String,
        /// Whether they link to a session on claude.ai; true if absent.
        session_url: "sessionUrl" => bool,
    }
}

crate::open_struct::open_struct! {
    /// Which project usage is put down to when nobody says. Only heeded from managed settings.
    pub struct AttributionProjectPolicy {
        /// The project's id.
        default_project: "default" => String,
    }
}

crate::open_struct::open_struct! {
    /// What the list of models offers.
    pub struct ModelPicker {
        /// The models, in order.
        options: "options" => Vec<ModelPickerOption>,
        /// Whether the CLI's own choices are left out.
        replace_built_in_options: "replaceBuiltInOptions" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A model in the list.
    pub struct ModelPickerOption {
        /// The model.
        model: "model" => String,
        /// What it is called there.
        label: "label" => String,
        /// What is said about it there.
        description: "description" => String,
        /// The known model whose abilities it has.
        behaves_as: "behavesAs" => String,
    }
}

crate::open_struct::open_struct! {
    /// What usage is reckoned to cost.
    pub struct ModelPricing {
        /// A factor on the list prices.
        multiplier: "multiplier" => serde_json::Number,
        /// Prices by model.
        overrides: "overrides" => BTreeMap<String, ModelPrice>,
    }
}

crate::open_struct::open_struct! {
    /// Prices in US dollars per million tokens.
    pub struct ModelPrice {
        /// Input that came from no cache.
        input: "input" => serde_json::Number,
        /// Output.
        output: "output" => serde_json::Number,
        /// Input read from the cache.
        cache_read: "cacheRead" => serde_json::Number,
        /// Input written to the cache.
        cache_write: "cacheWrite" => serde_json::Number,
    }
}

crate::open_struct::open_struct! {
    /// What holds for one model.
    pub struct ModelSettings {
        /// How hard it thinks.
        effort_level: "effortLevel" => crate::shared::Effort,
        /// How hard it may think.
        max_effort_level: "maxEffortLevel" => crate::shared::Effort,
        /// How full the context may be before it is compacted.
        auto_compact_window: "autoCompactWindow" => AutoCompactWindow,
    }
}

/// How full the context may be before it is compacted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AutoCompactWindow {
    /// A word; the CLI knows `auto`.
    Word(String),
    /// So many tokens.
    Tokens(u64),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(AutoCompactWindow {
    String => Word,
    Number => Tokens,
});

crate::open_struct::open_struct! {
    /// A rule for MCP servers; it is about those that have all that is set.
    pub struct McpServerRule {
        /// The name.
        server_name: "serverName" => String,
        /// The command and its arguments, exactly.
        server_command: "serverCommand" => Vec<String>,
        /// The address; `*` stands for anything.
        server_url: "serverUrl" => String,
    }
}

crate::open_struct::open_struct! {
    /// How worktrees are made.
    pub struct WorktreeSettings {
        /// Directories to link to the main checkout instead of having them twice.
        symlink_directories: "symlinkDirectories" => Vec<String>,
        /// Directories to check out; all if absent.
        sparse_paths: "sparsePaths" => Vec<String>,
        /// Where new ones branch off: `fresh` for the remote's default branch, `head` for the current commit.
        base_ref: "baseRef" => String,
        /// Whether background sessions must use one: `worktree` or `none`.
        bg_isolation: "bgIsolation" => String,
        /// Where the desktop app puts them for sessions over SSH.
        location: "location" => String,
    }
}

crate::open_struct::open_struct! {
    /// A link to show in the footer when some text turns up.
    pub struct FooterLink {
        /// The kind of rule; the CLI knows `regex`.
        kind: "type" => String,
        /// The text, as a regular expression.
        pattern: "pattern" => String,
        /// The address, with `{name}` for the expression's groups.
        url: "url" => String,
        /// What to show.
        label: "label" => String,
    }
}

/// Where only plugins may customize the CLI.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PluginOnly {
    /// Everywhere or nowhere.
    Flag(bool),
    /// In these: `skills`, `agents`, `hooks`, `mcp`.
    Surfaces(Vec<String>),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(PluginOnly {
    Bool => Flag,
    Array => Surfaces,
});

/// One text or several.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(OneOrMany {
    String => One,
    Array => Many,
});

crate::open_struct::open_struct! {
    /// Words to show while the model works.
    pub struct SpinnerVerbs {
        /// Whether they come on top of the CLI's own or instead: `append` or `replace`.
        mode: "mode" => String,
        /// The words.
        verbs: "verbs" => Vec<String>,
    }
}

crate::open_struct::open_struct! {
    /// Tips to show while the model works.
    pub struct SpinnerTips {
        /// Whether the CLI's own are left out.
        exclude_default: "excludeDefault" => bool,
        /// The tips: texts, or objects with `id` and `text`.
        tips: "tips" => Vec<RawJson>,
        /// A file with more.
        tips_file: "tipsFile" => String,
        /// What to show in front of them.
        label: "label" => String,
    }
}

crate::open_struct::open_struct! {
    /// Whether the spelling of what one types is checked.
    pub struct Spellcheck {
        /// Whether it is; false if absent.
        enabled: "enabled" => bool,
        /// The program: `aspell`, `hunspell`, `ispell` or `auto`.
        checker: "checker" => String,
        /// The dictionary.
        language: "language" => String,
        /// The colour of what is wrong.
        color: "color" => String,
    }
}

crate::open_struct::open_struct! {
    /// Sessions in the cloud.
    pub struct RemoteSettings {
        /// The environment to use.
        default_environment_id: "defaultEnvironmentId" => String,
    }
}

crate::open_struct::open_struct! {
    /// Dictation.
    pub struct VoiceSettings {
        /// Whether voice input is on.
        enabled: "enabled" => bool,
        /// Whether one holds a key or taps it: `hold` or `tap`.
        mode: "mode" => String,
        /// Whether letting go sends the prompt.
        auto_submit: "autoSubmit" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A machine to connect to.
    pub struct SshConfig {
        /// The id of the connection in all settings.
        id: "id" => String,
        /// What it is called.
        name: "name" => String,
        /// The host, with or without a user.
        ssh_host: "sshHost" => String,
        /// The port; 22 if absent.
        ssh_port: "sshPort" => u16,
        /// The file with the private key.
        ssh_identity_file: "sshIdentityFile" => String,
        /// The directory to begin in.
        start_directory: "startDirectory" => String,
    }
}

crate::open_enum! {
    /// Who gets to see a skill.
    pub enum SkillVisibility {
        /// Everybody.
        On = "on",
        /// The model gets its name without the description.
        NameOnly = "name-only",
        /// The user only.
        UserInvocableOnly = "user-invocable-only",
        /// Nobody.
        Off = "off",
    }
}

crate::open_enum! {
    /// How long the prompt cache is kept.
    pub enum CacheTtl {
        /// Five minutes.
        FiveMinutes = "5m",
        /// One hour.
        OneHour = "1h",
    }
}

crate::open_enum! {
    /// How several sources of settings go together.
    pub enum SourcesBehavior {
        /// Only the first one counts.
        FirstWins = "first-wins",
        /// The sources are merged.
        Merge = "merge",
    }
}

crate::open_enum! {
    /// How long to wait for an answer.
    pub enum DialogTimeout {
        /// A minute.
        SixtySeconds = "60s",
        /// Five minutes.
        FiveMinutes = "5m",
        /// Ten minutes.
        TenMinutes = "10m",
        /// For ever.
        Never = "never",
    }
}
