//! Why an event happens, and who caused it.
// Written by `cargo xtask types` from what upstream declares and upstream/hooks/cause.toml: change that instead.

crate::open_enum! {
    /// Who sent a prompt.
    pub enum PromptSource {
        /// A person.
        User = "user",
        /// The driving program.
        Sdk = "sdk",
        /// The CLI.
        System = "system",
        /// A loop.
        LoopWakeup = "loop_wakeup",
        /// A schedule.
        ScheduleWakeup = "schedule_wakeup",
        /// An event that the session polls for.
        PollEvent = "poll_event",
    }
}

crate::open_enum! {
    /// What became a prompt.
    pub enum ExpansionType {
        /// A slash command.
        SlashCommand = "slash_command",
        /// A prompt of an MCP server.
        McpPrompt = "mcp_prompt",
    }
}

crate::open_enum! {
    /// Who started a skill or a command.
    pub enum SkillInvoker {
        /// A person, or the driving program.
        User = "user",
        /// The model.
        Claude = "claude",
        /// Something else, such as a subagent that loads its skills, or something that is not known.
        Unnamed = "other",
    }
}

crate::open_enum! {
    /// Why a session begins.
    pub enum SessionStartSource {
        /// The process started.
        Startup = "startup",
        /// An old session goes on.
        Resume = "resume",
        /// `/clear`.
        Clear = "clear",
        /// Compaction.
        Compact = "compact",
        /// A copy of an old session.
        Fork = "fork",
    }
}

crate::open_enum! {
    /// Why a session ends.
    pub enum ExitReason {
        /// `/clear`.
        Clear = "clear",
        /// Another session goes on.
        Resume = "resume",
        /// The user signed out.
        Logout = "logout",
        /// The user left.
        PromptInputExit = "prompt_input_exit",
        /// Anything else.
        Unnamed = "other",
    }
}

crate::open_enum! {
    /// Who wants compaction.
    pub enum CompactTrigger {
        /// A person, or the driving program.
        Manual = "manual",
        /// The CLI, because the conversation got too long.
        Auto = "auto",
    }
}

crate::open_enum! {
    /// Who changes the model.
    pub enum ModelSwitchSource {
        /// `/model`.
        Command = "command",
        /// The terminal's list of models.
        Picker = "picker",
        /// `set_model`.
        Sdk = "sdk",
        /// The CLI. Only after the fact.
        Auto = "auto",
        /// A resumed session. Only after the fact.
        Resume = "resume",
    }
}

crate::open_enum! {
    /// How long the API keeps a conversation in its cache.
    pub enum CacheTtl {
        /// Five minutes.
        FiveMinutes = "5m",
        /// One hour.
        OneHour = "1h",
    }
}

crate::open_enum! {
    /// Where the price of a model comes from.
    pub enum ModelPricing {
        /// The settings.
        Configured = "configured",
        /// The CLI's list.
        Catalog = "catalog",
        /// A guess.
        Default = "default",
    }
}

crate::open_enum! {
    /// Why the CLI was run without a session.
    pub enum SetupTrigger {
        /// To set a project up.
        Init = "init",
        /// To maintain a project.
        Maintenance = "maintenance",
    }
}

crate::open_enum! {
    /// Which settings changed.
    pub enum ConfigChangeSource {
        /// The user's settings.
        UserSettings = "user_settings",
        /// The project's settings.
        ProjectSettings = "project_settings",
        /// The project's settings on this machine.
        LocalSettings = "local_settings",
        /// The organization's settings.
        PolicySettings = "policy_settings",
        /// Skills.
        Skills = "skills",
    }
}

crate::open_enum! {
    /// Whose instructions a file has.
    pub enum InstructionsKind {
        /// The user's instructions.
        User = "User",
        /// The project's instructions.
        Project = "Project",
        /// The project's instructions on this machine.
        Local = "Local",
        /// The organization's instructions.
        Managed = "Managed",
    }
}

crate::open_enum! {
    /// Why a file of instructions was loaded.
    pub enum InstructionsLoadReason {
        /// The session began.
        SessionStart = "session_start",
        /// A tool used the directory of the file.
        NestedTraversal = "nested_traversal",
        /// A tool used a file that the instructions are for.
        PathGlobMatch = "path_glob_match",
        /// Another file includes it.
        Include = "include",
        /// The conversation was compacted.
        Compact = "compact",
    }
}

crate::open_enum! {
    /// What happened to a file.
    pub enum FileEvent {
        /// The file was changed.
        Change = "change",
        /// The file was added.
        Add = "add",
        /// The file was removed.
        Unlink = "unlink",
    }
}

crate::open_enum! {
    /// Who added a directory.
    pub enum DirectoryAddedSource {
        /// `/add-dir`.
        SlashCommand = "slash_command",
        /// `register_repo_root`.
        RegisterRepoRoot = "register_repo_root",
    }
}
