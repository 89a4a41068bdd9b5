//! What the CLI does with a value that its key cannot hold, key by key.
//!
//! A file of the user or of a project is refused as a whole, unless its key is in one of these lists. In what an administrator
//! manages only the key is lost, and for some keys the strictest value takes its place.

/// A null counts as if the key were absent.
pub(super) const NULL_IS_ABSENT: &[&str] = &[
    "allowManagedHooksOnly",
    "allowManagedMcpServersOnly",
    "allowManagedPermissionRulesOnly",
    "allowedMarketplaces",
    "autoContinueAtUsageLimit",
    "autoUploadSessions",
    "blockedMarketplaces",
    "channelsEnabled",
    "disableAgentView",
    "disableArtifact",
    "disableAutoMode",
    "disableBundledSkills",
    "disableClaudeAiConnectors",
    "disableCommandPluginSources",
    "disableDeepLinkRegistration",
    "disableRemoteControl",
    "disableSideloadFlags",
    "disableSkillShellExecution",
    "disableWindowsBashCommandSplit",
    "disableWorkflows",
    "enableAllProjectMcpServers",
    "enableArtifact",
    "enableWorkflows",
    "enforceAvailableModels",
    "fastModePerSessionOptIn",
    "feedbackDrafts",
    "fileCheckpointingEnabled",
    "isolatePeerMachines",
    "remoteControlAtStartup",
    "skipAutoPermissionPrompt",
    "skipDangerousModePermissionPrompt",
    "skipWebFetchPreflight",
    "strictKnownMarketplaces",
    "syncClaudeAiPlugins",
    "syncClaudeAiSkills",
    "useAutoModeDuringPlan",
];

/// The key is left out, and the rest of the file counts.
pub(super) const LEFT_OUT: &[&str] = &[
    "allowedMcpServers",
    "allowedProviders",
    "appendPlugins",
    "askUserQuestionTimeout",
    "autoCompactWindow",
    "bashOutputMaxChars",
    "crossSessionInbound",
    "deniedMcpServers",
    "dialogExpiry",
    "editorMode",
    "effortLevel",
    "extraKnownMarketplaces",
    "footerLinksRegexes",
    "forceLoginGatewayUrl",
    "forceLoginMethod",
    "hooks",
    "keybindingFlavor",
    "maxEffortLevel",
    "maxProseWidth",
    "modelPricing",
    "modelSettings",
    "policyHelper",
    "preferredNotifChannel",
    "prependPlugins",
    "promptCacheTtl",
    "spellcheck",
    "spinnerTipsOverride",
    "strictPluginOnlyCustomization",
    "subagentPromptCacheTtl",
    "subagentStatusLine",
    "taskOutputMaxChars",
    "teammateMode",
    "theme",
    "ultracode",
    "viewMode",
    "vimInsertModeRemaps",
];

/// Only an administrator's count; anybody else's are left out.
pub(super) const MANAGED_ONLY: &[&str] = &[
    "attributionProjectPolicy",
    "availableModelsMatch",
    "deniedModels",
    "managedMcpServers",
    "modelPicker",
];

/// Lists and maps of which a single entry that does not fit is left out.
pub(super) const ENTRY_BY_ENTRY: &[&str] = &[
    "allowedMcpServers",
    "allowedProviders",
    "deniedMcpServers",
    "extraKnownMarketplaces",
    "footerLinksRegexes",
    "modelSettings",
];

/// The same in what an administrator manages.
pub(super) const MANAGED_ENTRY_BY_ENTRY: &[&str] = &[
    "allowedChannelPlugins",
    "blockedMarketplaces",
    "deniedModels",
    "managedMcpServers",
    "strictKnownMarketplaces",
];

/// A text counts as a list of one.
pub(super) const ONE_OR_MANY: &[&str] = &["enabledMcpjsonServers", "disabledMcpjsonServers"];

/// Objects of which the CLI keeps only the keys that it knows.
pub(super) const KNOWN_KEYS_ONLY: &[&str] = &[
    "attributionProjectPolicy",
    "autoMode",
    "fileSuggestion",
    "modelPricing",
    "remote",
    "statusLine",
    "voice",
    "worktree",
];

/// What stands in for a value that does not fit, whoever wrote it.
pub(super) const INSTEAD: &[(&str, &str)] = &[
    ("desktopMcpServersListScope", r#""all""#),
    ("gatewayInternalNetworks", r#"["(unreadable)"]"#),
];

/// What stands in for a managed value that does not fit: whoever manages a key wants it strict.
pub(super) const MANAGED_INSTEAD: &[(&str, &str)] = &[
    ("allowManagedHooksOnly", "true"),
    ("allowManagedMcpServersOnly", "true"),
    ("allowManagedPermissionRulesOnly", "true"),
    ("allowedChannelPlugins", "[]"),
    ("allowedHttpHookUrls", "[]"),
    ("allowedMcpServers", "[]"),
    ("allowedProviders", "[]"),
    ("attribution", r#"{"sessionUrl":false}"#),
    ("autoContinueAtUsageLimit", "false"),
    ("autoMode", r#"{"classifyAllShell":true}"#),
    ("autoUploadSessions", "false"),
    ("availableModels", "[]"),
    ("availableModelsMatch", r#""exact""#),
    ("channelsEnabled", "false"),
    ("crossSessionInbound", r#""refuse""#),
    ("disableAgentView", "true"),
    ("disableArtifact", "true"),
    ("disableAutoMode", r#""disable""#),
    ("disableBundledSkills", "true"),
    ("disableClaudeAiConnectors", "true"),
    ("disableCommandPluginSources", "true"),
    ("disableDeepLinkRegistration", r#""disable""#),
    ("disableRemoteControl", "true"),
    ("disableSideloadFlags", "true"),
    ("disableSkillShellExecution", "true"),
    ("disableWindowsBashCommandSplit", "true"),
    ("disableWorkflows", "true"),
    ("enableAllProjectMcpServers", "false"),
    ("enableArtifact", "false"),
    ("enableWorkflows", "false"),
    ("enforceAvailableModels", "true"),
    ("fastModePerSessionOptIn", "true"),
    ("feedbackDrafts", r#""off""#),
    ("forceLoginOrgUUID", "[]"),
    ("httpHookAllowedEnvVars", "[]"),
    ("isolatePeerMachines", "true"),
    (
        "permissions",
        r#"{"disableBypassPermissionsMode":"disable","blockReadsOutsideWorkingDirectories":true,"blockWritesOutsideWorkingDirectories":true,"disableAutoMode":"disable","denyInsteadOfPrompting":true}"#,
    ),
    ("remoteControlAtStartup", "false"),
    (
        "sandbox",
        r#"{"autoAllowBashIfSandboxed":false,"allowUnsandboxedCommands":false,"network":{"strictAllowlist":true,"allowManagedDomainsOnly":true,"allowAllUnixSockets":false,"allowLocalBinding":false},"filesystem":{"allowManagedReadPathsOnly":true,"disabled":false},"credentials":{"allowPlaintextInject":false,"sigv4":{"streaming":"deny","presigned":"deny","sigv4a":"deny"}},"windows":{"backend":"sandboxuser"},"enableWeakerNestedSandbox":false,"allowNestedUserNamespaces":false,"enableWeakerNetworkIsolation":false,"allowAppleEvents":false}"#,
    ),
    ("skipAutoPermissionPrompt", "false"),
    ("skipDangerousModePermissionPrompt", "false"),
    ("skipWebFetchPreflight", "false"),
    ("strictKnownMarketplaces", "[]"),
    ("strictPluginOnlyCustomization", "true"),
    ("syncClaudeAiPlugins", "false"),
    ("syncClaudeAiSkills", "false"),
    ("useAutoModeDuringPlan", "false"),
    ("worktree", r#"{"bgIsolation":"worktree"}"#),
];

/// Managed keys for which even a null means the strictest value.
pub(super) const MANAGED_NULL_IS_STRICT: &[&str] = &[
    "allowedChannelPlugins",
    "allowedHttpHookUrls",
    "allowedMcpServers",
    "allowedProviders",
    "availableModels",
    "crossSessionInbound",
    "forceLoginOrgUUID",
    "httpHookAllowedEnvVars",
];
