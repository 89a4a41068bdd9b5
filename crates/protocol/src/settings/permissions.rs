//! Permission rules in a settings file.
// Written by `cargo xtask types` from what upstream declares and upstream/settings/permissions.toml: change that instead.

crate::open_struct::open_struct! {
    /// Which tool calls run, are denied, or need a permission request.
    pub struct PermissionSettings {
        /// Rules for calls that run without a permission request, such as `Bash(git status:*)`.
        allow: "allow" => Vec<String>,
        /// Rules for calls that are denied.
        deny: "deny" => Vec<String>,
        /// Rules for calls that always need a permission request.
        ask: "ask" => Vec<String>,
        /// The permission mode in which a session begins. The CLI also takes `manual` for `default`.
        default_mode: "defaultMode" => crate::shared::ReportedPermissionMode,
        /// `disable` forbids the mode `bypassPermissions`.
        disable_bypass_permissions_mode: "disableBypassPermissionsMode" => String,
        /// Whether the CLI denies file tools to read outside the working directories, whatever the mode and the rules. True in
        /// any file wins.
        block_reads_outside_working_directories: "blockReadsOutsideWorkingDirectories" => bool,
        /// Whether the CLI denies file tools to write outside the working directories, whatever the mode and the rules. True in
        /// any file wins.
        block_writes_outside_working_directories: "blockWritesOutsideWorkingDirectories" => bool,
        /// Absolute paths of directories that file tools may read even so. Only heeded from `--settings` and from settings sent
        /// over the protocol.
        block_reads_exempt_paths: "blockReadsExemptPaths" => Vec<String>,
        /// Working directories in the spelling in which they were given. Only heeded from `--settings` and from settings sent
        /// over the protocol.
        working_directories_as_given: "workingDirectoriesAsGiven" => Vec<String>,
        /// Directories that count as outside although they are inside. Only heeded from `--settings` and from settings sent over
        /// the protocol.
        working_directories_exclude: "workingDirectoriesExclude" => Vec<String>,
        /// `disable` forbids the mode `auto`.
        disable_auto_mode: "disableAutoMode" => String,
        /// Whether the CLI denies calls that would need a permission request.
        deny_instead_of_prompting: "denyInsteadOfPrompting" => bool,
        /// More working directories.
        additional_directories: "additionalDirectories" => Vec<String>,
    }
}

crate::open_struct::open_struct! {
    /// Instructions for the classifier of the mode `auto`. `$defaults` in a list stands for the built-in entries.
    pub struct AutoModeSettings {
        /// What the classifier lets run.
        allow: "allow" => Vec<String>,
        /// What the classifier lets run only if the user clearly wants it.
        soft_deny: "soft_deny" => Vec<String>,
        /// What the classifier never lets run.
        hard_deny: "hard_deny" => Vec<String>,
        /// Facts about the environment, for the classifier.
        environment: "environment" => Vec<String>,
        /// Whether the classifier also looks at shell commands that a rule allows; false if absent.
        classify_all_shell: "classifyAllShell" => bool,
    }
}
