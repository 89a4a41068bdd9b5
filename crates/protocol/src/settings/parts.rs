//! The smaller parts of a settings file.
// Written by `cargo xtask types` from what upstream declares and upstream/settings/parts.toml: change that instead.

use std::collections::BTreeMap;

use crate::RawJson;

crate::open_struct::open_struct! {
    /// A program that works out managed settings when the CLI starts. Only heeded from an administrator's settings.
    pub struct PolicyHelper {
        /// The program, as an absolute path.
        path: "path" => String,
        /// How long the program may run, in milliseconds.
        timeout_ms: "timeoutMs" => u64,
        /// How often the CLI runs the program again, in milliseconds; 0 for never.
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
        /// How many columns stay free at the sides.
        padding: "padding" => i64,
        /// How often the command runs again although nothing happened, in seconds.
        refresh_interval: "refreshInterval" => serde_json::Number,
        /// Whether the CLI hides its own line about the editor's mode.
        hide_vim_mode_indicator: "hideVimModeIndicator" => bool,
    }
}

/// What commits and pull requests say about who helped.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Attribution {
    /// False: commits and pull requests say nothing.
    Flag(bool),
    /// Texts of the user's own.
    Texts(AttributionTexts),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(Attribution {
    Bool => Flag,
    Object => Texts,
});

crate::open_struct::open_struct! {
    /// What commits and pull requests say about who helped. If a text is absent, the CLI uses its own; an empty text adds
    /// nothing.
    pub struct AttributionTexts {
        /// What commits say, trailers included.
        commit: "commit" => String,
        /// What pull requests say.
        pr: "pr" => String,
        /// Whether commits and pull requests link to a session on claude.ai; true if absent.
        session_url: "sessionUrl" => bool,
    }
}

crate::open_struct::open_struct! {
    /// Which project usage is counted for if no project is set. Only heeded from managed settings.
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
        /// Whether the CLI's own choices are hidden.
        replace_built_in_options: "replaceBuiltInOptions" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A model in the list.
    pub struct ModelPickerOption {
        /// The model.
        model: "model" => String,
        /// The name of the model in the list.
        label: "label" => String,
        /// The description of the model in the list.
        description: "description" => String,
        /// The known model whose abilities this model has.
        behaves_as: "behavesAs" => String,
    }
}

crate::open_struct::open_struct! {
    /// How the CLI computes what usage costs.
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
    /// Settings of one model.
    pub struct ModelSettings {
        /// How hard the model thinks.
        effort_level: "effortLevel" => crate::shared::Effort,
        /// How hard the model may think at most.
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
    /// A number of tokens.
    Tokens(u64),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(AutoCompactWindow {
    String => Word,
    Number => Tokens,
});

crate::open_struct::open_struct! {
    /// A rule for MCP servers. The rule matches servers that have everything that is set.
    pub struct McpServerRule {
        /// The name of the server.
        server_name: "serverName" => String,
        /// The command and its arguments, exactly.
        server_command: "serverCommand" => Vec<String>,
        /// The address of the server; `*` stands for anything.
        server_url: "serverUrl" => String,
    }
}

crate::open_struct::open_struct! {
    /// How the CLI makes worktrees.
    pub struct WorktreeSettings {
        /// Directories that a worktree links to the main checkout instead of copying.
        symlink_directories: "symlinkDirectories" => Vec<String>,
        /// Directories to check out; all if absent.
        sparse_paths: "sparsePaths" => Vec<String>,
        /// Where new worktrees branch off: `fresh` for the remote's default branch, `head` for the current commit.
        base_ref: "baseRef" => String,
        /// Whether background sessions must use a worktree: `worktree` or `none`.
        bg_isolation: "bgIsolation" => String,
        /// Where the desktop app puts worktrees for sessions over SSH.
        location: "location" => String,
    }
}

crate::open_struct::open_struct! {
    /// A link that the footer shows when a text occurs.
    pub struct FooterLink {
        /// The kind of rule; the CLI knows `regex`.
        kind: "type" => String,
        /// The text, as a regular expression.
        pattern: "pattern" => String,
        /// The address, with `{name}` for the expression's groups.
        url: "url" => String,
        /// The text of the link.
        label: "label" => String,
    }
}

/// What of the CLI only plugins may customize.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PluginOnly {
    /// Everything, or nothing.
    Flag(bool),
    /// Some of `skills`, `agents`, `hooks`, `mcp`.
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
    /// One text.
    One(String),
    /// Several texts.
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
        /// Whether the words are added to the CLI's own (`append`) or take their place (`replace`).
        mode: "mode" => String,
        /// The words.
        verbs: "verbs" => Vec<String>,
    }
}

crate::open_struct::open_struct! {
    /// Tips to show while the model works.
    pub struct SpinnerTips {
        /// Whether the CLI's own tips are hidden.
        exclude_default: "excludeDefault" => bool,
        /// The tips: texts, or objects with `id` and `text`.
        tips: "tips" => Vec<RawJson>,
        /// A file with more tips.
        tips_file: "tipsFile" => String,
        /// The text in front of each tip.
        label: "label" => String,
    }
}

crate::open_struct::open_struct! {
    /// Whether the CLI checks the spelling of the user's input.
    pub struct Spellcheck {
        /// Whether the CLI checks the spelling; false if absent.
        enabled: "enabled" => bool,
        /// The program: `aspell`, `hunspell`, `ispell` or `auto`.
        checker: "checker" => String,
        /// The dictionary.
        language: "language" => String,
        /// The colour of misspelled words.
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
        /// Whether the user holds the key or taps it: `hold` or `tap`.
        mode: "mode" => String,
        /// Whether the prompt is sent when the user lets go of the key.
        auto_submit: "autoSubmit" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A machine to connect to.
    pub struct SshConfig {
        /// The id of the connection in all settings.
        id: "id" => String,
        /// The name of the connection.
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
    /// Who sees a skill.
    pub enum SkillVisibility {
        /// The user and the model.
        On = "on",
        /// The model gets its name without the description.
        NameOnly = "name-only",
        /// The user only.
        UserInvocableOnly = "user-invocable-only",
        /// Neither the user nor the model.
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
    /// How the CLI combines several sources of settings.
    pub enum SourcesBehavior {
        /// Only the first one counts.
        FirstWins = "first-wins",
        /// The sources are merged.
        Merge = "merge",
    }
}

crate::open_enum! {
    /// How long the CLI waits for an answer.
    pub enum DialogTimeout {
        /// One minute.
        SixtySeconds = "60s",
        /// Five minutes.
        FiveMinutes = "5m",
        /// Ten minutes.
        TenMinutes = "10m",
        /// The CLI waits for ever.
        Never = "never",
    }
}
