//! Permission rules in a settings file.
// Written by `cargo xtask types` from what upstream declares and upstream/settings/permissions.toml: change that instead.

crate::open_struct::open_struct! {
    /// Which tool calls run, are refused, or are asked.
    pub struct PermissionSettings {
        /// Rules for calls that run without a question, such as `Bash(git status:*)`.
        allow: "allow" => Vec<String>,
        /// Rules for calls that are refused.
        deny: "deny" => Vec<String>,
        /// Rules for calls that are always asked.
        ask: "ask" => Vec<String>,
        /// The mode a session begins in. The CLI also takes `manual` for `default`.
        default_mode: "defaultMode" => crate::shared::ReportedPermissionMode,
        /// `disable` takes the mode `bypassPermissions` away.
        disable_bypass_permissions_mode: "disableBypassPermissionsMode" => String,
        /// Whether file tools are refused to read outside the working directories, whatever the mode and the rules. True in any
        /// file wins.
        block_reads_outside_working_directories: "blockReadsOutsideWorkingDirectories" => bool,
        /// Whether file tools are refused to write outside the working directories, whatever the mode and the rules. True in any
        /// file wins.
        block_writes_outside_working_directories: "blockWritesOutsideWorkingDirectories" => bool,
        /// Directories that may be read all the same, as absolute paths. Only heeded from `--settings` and from settings sent
        /// over the protocol.
        block_reads_exempt_paths: "blockReadsExemptPaths" => Vec<String>,
        /// Working directories in the spelling in which they were given. Only heeded from `--settings` and from settings sent
        /// over the protocol.
        working_directories_as_given: "workingDirectoriesAsGiven" => Vec<String>,
        /// Directories that count as outside although they are inside. Only heeded from `--settings` and from settings sent over
        /// the protocol.
        working_directories_exclude: "workingDirectoriesExclude" => Vec<String>,
        /// `disable` takes the mode `auto` away.
        disable_auto_mode: "disableAutoMode" => String,
        /// Whether what would be asked is refused at once.
        deny_instead_of_prompting: "denyInsteadOfPrompting" => bool,
        /// More working directories.
        additional_directories: "additionalDirectories" => Vec<String>,
    }
}

crate::open_struct::open_struct! {
    /// Instructions for the classifier of the mode `auto`. `$defaults` in a list stands for the built-in entries.
    pub struct AutoModeSettings {
        /// What may run.
        allow: "allow" => Vec<String>,
        /// What may run only if the user clearly wants it.
        soft_deny: "soft_deny" => Vec<String>,
        /// What may not run at all.
        hard_deny: "hard_deny" => Vec<String>,
        /// Facts about the surroundings.
        environment: "environment" => Vec<String>,
        /// Whether the classifier also looks at shell commands that a rule allows; false if absent.
        classify_all_shell: "classifyAllShell" => bool,
    }
}
