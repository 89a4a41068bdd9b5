//! The settings file itself.
// Written by `cargo xtask types` from what upstream declares and upstream/settings/root.toml: change that instead.

use std::collections::BTreeMap;

use super::hooks::HookMatcherSettings;
use super::parts::{
    Attribution, AttributionProjectPolicy, CacheTtl, CommandSetting, DialogTimeout, FooterLink,
    McpServerRule, ModelPicker, ModelPricing, ModelSettings, OneOrMany, PluginOnly, PolicyHelper,
    RemoteSettings, SkillVisibility, SourcesBehavior, Spellcheck, SpinnerTips, SpinnerVerbs, SshConfig,
    StatusLine, VoiceSettings, WorktreeSettings,
};
use super::permissions::{AutoModeSettings, PermissionSettings};
use super::plugins::{ChannelPlugin, MarketplaceSettings, MarketplaceSource, PluginEnabled, PluginOptions};
use super::sandbox::SandboxSettings;
use crate::RawJson;

crate::open_struct::open_struct! {
    /// The content of a settings file, of `--settings`, or of what goes over the protocol as settings.
    pub struct Settings {
        /// The JSON Schema of settings files, for editors.
        schema: "$schema" => String,
        /// A command that writes the API key.
        api_key_helper: "apiKeyHelper" => String,
        /// A command that writes the `Proxy-Authorization` header.
        proxy_auth_helper: "proxyAuthHelper" => String,
        /// A command that writes AWS credentials.
        aws_credential_export: "awsCredentialExport" => String,
        /// A command that renews the AWS login.
        aws_auth_refresh: "awsAuthRefresh" => String,
        /// A command that renews the GCP login.
        gcp_auth_refresh: "gcpAuthRefresh" => String,
        /// A launcher to put in front of the CLI's background processes.
        process_wrapper: "processWrapper" => String,
        /// A program that computes managed settings.
        policy_helper: "policyHelper" => PolicyHelper,
        /// A command that suggests files for `@`.
        file_suggestion: "fileSuggestion" => CommandSetting,
        /// Whether files that git ignores are left out of suggestions; true if absent.
        respect_gitignore: "respectGitignore" => bool,
        /// After how many days transcripts are deleted; 30 if absent.
        cleanup_period_days: "cleanupPeriodDays" => serde_json::Number,
        /// After how many days transcripts of the desktop app are deleted; 0 for never, as if absent.
        desktop_session_cleanup_period_days: "desktopSessionCleanupPeriodDays" => serde_json::Number,
        /// Whether skills come over from claude.ai.
        sync_claude_ai_skills: "syncClaudeAiSkills" => bool,
        /// Whether plugins come over from claude.ai.
        sync_claude_ai_plugins: "syncClaudeAiPlugins" => bool,
        /// How long a skill's description may be in the model's list, in characters; 1536 if absent.
        skill_listing_max_desc_chars: "skillListingMaxDescChars" => u64,
        /// Which part of the context the model's list of skills may take; 0.01 if absent.
        skill_listing_budget_fraction: "skillListingBudgetFraction" => serde_json::Number,
        /// Whether WSL also heeds the managed settings of Windows. Only heeded from an administrator's settings.
        wsl_inherits_windows_settings: "wslInheritsWindowsSettings" => bool,
        /// Environment variables for the CLI.
        env: "env" => BTreeMap<String, String>,
        /// What commits and pull requests say about who helped.
        attribution: "attribution" => Attribution,
        /// The project that usage is counted for.
        attribution_project: "attributionProject" => String,
        /// The project that usage is counted for if `attributionProject` is absent.
        attribution_project_policy: "attributionProjectPolicy" => AttributionProjectPolicy,
        /// Older form of `attribution`.
        include_co_authored_by: "includeCoAuthoredBy" => bool,
        /// Whether the system prompt explains how to commit; true if absent.
        include_git_instructions: "includeGitInstructions" => bool,
        /// Permission rules.
        permissions: "permissions" => PermissionSettings,
        /// The model.
        model: "model" => String,
        /// Models to use when the first model is not available, in order.
        fallback_model: "fallbackModel" => Vec<String>,
        /// The only models that the user may pick.
        available_models: "availableModels" => Vec<String>,
        /// Whether `availableModels` also limits the default model.
        enforce_available_models: "enforceAvailableModels" => bool,
        /// Whether an entry also stands for longer names: `prefix`, as if absent, or `exact`.
        available_models_match: "availableModelsMatch" => String,
        /// Models that the user may not pick.
        denied_models: "deniedModels" => Vec<String>,
        /// A provider's own names of models.
        model_overrides: "modelOverrides" => BTreeMap<String, String>,
        /// What the list of models offers.
        model_picker: "modelPicker" => ModelPicker,
        /// How the CLI computes what usage costs.
        model_pricing: "modelPricing" => ModelPricing,
        /// Whether the CLI uses all MCP servers of a project without a question to the user.
        enable_all_project_mcp_servers: "enableAllProjectMcpServers" => bool,
        /// Servers of `.mcp.json` that are used.
        enabled_mcpjson_servers: "enabledMcpjsonServers" => Vec<String>,
        /// Servers of `.mcp.json` that are not used.
        disabled_mcpjson_servers: "disabledMcpjsonServers" => Vec<String>,
        /// Whether the CLI ignores MCP servers of claude.ai.
        disable_claude_ai_connectors: "disableClaudeAiConnectors" => bool,
        /// Who sees which skill.
        skill_overrides: "skillOverrides" => BTreeMap<String, SkillVisibility>,
        /// Whether the CLI ignores its own skills.
        disable_bundled_skills: "disableBundledSkills" => bool,
        /// MCP servers for all users. Only heeded from managed settings.
        managed_mcp_servers: "managedMcpServers" => BTreeMap<String, RawJson>,
        /// The only MCP servers that may be used.
        allowed_mcp_servers: "allowedMcpServers" => Vec<McpServerRule>,
        /// MCP servers that may not be used.
        denied_mcp_servers: "deniedMcpServers" => Vec<McpServerRule>,
        /// Hooks, by event.
        hooks: "hooks" => BTreeMap<String, Vec<HookMatcherSettings>>,
        /// How the CLI makes worktrees.
        worktree: "worktree" => WorktreeSettings,
        /// Whether no hook runs, and no command for the status line.
        disable_all_hooks: "disableAllHooks" => bool,
        /// Whether the CLI does not remind sessions that must answer through a tool.
        disable_reply_check: "disableReplyCheck" => bool,
        /// Whether background agents are off.
        disable_agent_view: "disableAgentView" => bool,
        /// Whether remote control from claude.ai is off.
        disable_remote_control: "disableRemoteControl" => bool,
        /// Whether workflows are off.
        disable_workflows: "disableWorkflows" => bool,
        /// Older form of `enableArtifact`.
        disable_artifact: "disableArtifact" => bool,
        /// Whether artifacts are on.
        enable_artifact: "enableArtifact" => bool,
        /// Whether workflows are on.
        enable_workflows: "enableWorkflows" => bool,
        /// How many agents a workflow should have: `unrestricted`, `small`, `medium` or `large`.
        workflow_size_guideline: "workflowSizeGuideline" => String,
        /// Whether a keyword in a prompt starts a workflow; true if absent.
        workflow_keyword_trigger_enabled: "workflowKeywordTriggerEnabled" => bool,
        /// Whether skills cannot run commands while they load.
        disable_skill_shell_execution: "disableSkillShellExecution" => bool,
        /// Whether the CLI checks commands on Windows whole, instead of each part.
        disable_windows_bash_command_split: "disableWindowsBashCommandSplit" => bool,
        /// The shell for `!` commands: `bash`, as if absent, or `powershell`.
        default_shell: "defaultShell" => String,
        /// Whether the CLI shows what a command changed in files.
        bash_edit_diff_enabled: "bashEditDiffEnabled" => bool,
        /// How much of a command's output the model gets, in characters; 30000 if absent.
        bash_output_max_chars: "bashOutputMaxChars" => u64,
        /// No longer has any effect.
        task_output_max_chars: "taskOutputMaxChars" => u64,
        /// Whether the model replies to `!` commands; true if absent.
        respond_to_bash_commands: "respondToBashCommands" => bool,
        /// Whether only managed hooks run. Only heeded from managed settings.
        allow_managed_hooks_only: "allowManagedHooksOnly" => bool,
        /// The only addresses HTTP hooks may send to; `*` stands for anything.
        allowed_http_hook_urls: "allowedHttpHookUrls" => Vec<String>,
        /// The only environment variables HTTP hooks may use.
        http_hook_allowed_env_vars: "httpHookAllowedEnvVars" => Vec<String>,
        /// Whether only managed permission rules count. Only heeded from managed settings.
        allow_managed_permission_rules_only: "allowManagedPermissionRulesOnly" => bool,
        /// Whether only the managed list of allowed MCP servers counts. Only heeded from managed settings.
        allow_managed_mcp_servers_only: "allowManagedMcpServersOnly" => bool,
        /// What the lists of MCP servers mean for the desktop app.
        desktop_mcp_servers_list_scope: "desktopMcpServersListScope" => String,
        /// Whether MCP servers of claude.ai come on top of managed ones. Only heeded from managed settings.
        allow_all_claude_ai_mcps: "allowAllClaudeAiMcps" => bool,
        /// Whether the browser's MCP server comes on top of managed ones. Only heeded from managed settings.
        allow_claude_in_chrome_with_managed_mcp: "allowClaudeInChromeWithManagedMcp" => bool,
        /// What of the CLI only plugins may customize. Only heeded from managed settings.
        strict_plugin_only_customization: "strictPluginOnlyCustomization" => PluginOnly,
        /// A command whose output is the status line.
        status_line: "statusLine" => StatusLine,
        /// Where links to pull requests lead.
        pr_url_template: "prUrlTemplate" => String,
        /// Links to show in the footer.
        footer_links_regexes: "footerLinksRegexes" => Vec<FooterLink>,
        /// A command that writes the status lines of subagents. Deprecated upstream.
        subagent_status_line: "subagentStatusLine" => CommandSetting,
        /// Which plugins are on, by `plugin@marketplace`.
        enabled_plugins: "enabledPlugins" => BTreeMap<String, PluginEnabled>,
        /// Managed plugins whose hooks run first.
        prepend_plugins: "prependPlugins" => Vec<String>,
        /// Managed plugins whose hooks run last.
        append_plugins: "appendPlugins" => Vec<String>,
        /// Marketplaces that the CLI offers, by name.
        extra_known_marketplaces: "extraKnownMarketplaces" => BTreeMap<String, MarketplaceSettings>,
        /// Another name of `extraKnownMarketplaces`, which wins.
        additional_marketplaces: "additionalMarketplaces" => BTreeMap<String, MarketplaceSettings>,
        /// The only marketplaces that may be added. Only heeded from managed settings.
        strict_known_marketplaces: "strictKnownMarketplaces" => Vec<MarketplaceSource>,
        /// Another name of `strictKnownMarketplaces`, which wins.
        allowed_marketplaces: "allowedMarketplaces" => Vec<MarketplaceSource>,
        /// Marketplaces that may not be added. Only heeded from managed settings.
        blocked_marketplaces: "blockedMarketplaces" => Vec<MarketplaceSource>,
        /// Whether plugins that a command makes are not installed.
        disable_command_plugin_sources: "disableCommandPluginSources" => bool,
        /// Whether flags that bring in plugins, agents and MCP servers are refused. Only heeded from managed settings.
        disable_sideload_flags: "disableSideloadFlags" => bool,
        /// Marketplaces whose plugins may be suggested.
        plugin_suggestion_marketplaces: "pluginSuggestionMarketplaces" => Vec<String>,
        /// The only way to log in: `claudeai`, `console` or `gateway`.
        force_login_method: "forceLoginMethod" => String,
        /// The gateway to log in to.
        force_login_gateway_url: "forceLoginGatewayUrl" => String,
        /// Networks the gateway is in, as IPv4 blocks.
        gateway_internal_networks: "gatewayInternalNetworks" => Vec<String>,
        /// How the CLI combines settings of the program that starts it with an administrator's.
        parent_settings_behavior: "parentSettingsBehavior" => SourcesBehavior,
        /// How the CLI combines the sources of managed settings.
        managed_sources_behavior: "managedSourcesBehavior" => SourcesBehavior,
        /// The only organizations to log in to.
        force_login_org_uuid: "forceLoginOrgUUID" => OneOrMany,
        /// Whether a CLI started by a runner's session may use the runner's access.
        allow_nested_model_access_under_force_login: "allowNestedModelAccessUnderForceLogin" => bool,
        /// The only providers of the API. Only heeded from managed settings.
        allowed_providers: "allowedProviders" => Vec<String>,
        /// Whether the CLI waits for fresh managed settings when it starts, and ends if it gets none.
        force_remote_settings_refresh: "forceRemoteSettingsRefresh" => bool,
        /// A command that writes headers for OpenTelemetry.
        otel_headers_helper: "otelHeadersHelper" => String,
        /// The output style.
        output_style: "outputStyle" => String,
        /// How much the CLI shows at first: `default`, `verbose` or `focus`.
        view_mode: "viewMode" => String,
        /// The language of answers.
        language: "language" => String,
        /// Whether `WebFetch` skips the check whether a domain is safe.
        skip_web_fetch_preflight: "skipWebFetchPreflight" => bool,
        /// The sandbox.
        sandbox: "sandbox" => SandboxSettings,
        /// How likely the CLI shows a survey, from 0 to 1.
        feedback_survey_rate: "feedbackSurveyRate" => serde_json::Number,
        /// How the CLI reports drafts of feedback: `notify`, `quiet` or `off`.
        feedback_drafts: "feedbackDrafts" => String,
        /// Whether tips are shown.
        spinner_tips_enabled: "spinnerTipsEnabled" => bool,
        /// Words to show while the model works.
        spinner_verbs: "spinnerVerbs" => SpinnerVerbs,
        /// Tips to show while the model works.
        spinner_tips_override: "spinnerTipsOverride" => SpinnerTips,
        /// Whether diffs are shown without colours for the language.
        syntax_highlighting_disabled: "syntaxHighlightingDisabled" => bool,
        /// How wide text may be, in columns.
        max_prose_width: "maxProseWidth" => u64,
        /// Whether the CLI checks the spelling of the user's input.
        spellcheck: "spellcheck" => Spellcheck,
        /// Whether a session's name becomes the terminal's title; true if absent.
        terminal_title_from_rename: "terminalTitleFromRename" => bool,
        /// How long the prompt cache is kept for the main conversation.
        prompt_cache_ttl: "promptCacheTtl" => CacheTtl,
        /// How long the prompt cache is kept for everything but the main conversation.
        subagent_prompt_cache_ttl: "subagentPromptCacheTtl" => CacheTtl,
        /// Whether the model thinks; true if absent.
        always_thinking_enabled: "alwaysThinkingEnabled" => bool,
        /// How hard the model thinks.
        effort_level: "effortLevel" => crate::shared::Effort,
        /// How hard the model may think.
        max_effort_level: "maxEffortLevel" => crate::shared::Effort,
        /// Settings of single models.
        model_settings: "modelSettings" => BTreeMap<String, ModelSettings>,
        /// Whether the session works in workflows by itself.
        ultracode: "ultracode" => bool,
        /// How full the context may be before it is compacted, in tokens.
        auto_compact_window: "autoCompactWindow" => u64,
        /// The model that advises.
        advisor_model: "advisorModel" => String,
        /// Whether the fast mode is on; false if absent.
        fast_mode: "fastMode" => bool,
        /// Whether each session begins without the fast mode.
        fast_mode_per_session_opt_in: "fastModePerSessionOptIn" => bool,
        /// Whether prompts are suggested; true if absent.
        prompt_suggestion_enabled: "promptSuggestionEnabled" => bool,
        /// Whether `:name:` becomes an emoji; true if absent.
        emoji_completion_enabled: "emojiCompletionEnabled" => bool,
        /// Whether the user may clear the context when accepting a plan; false if absent.
        show_clear_context_on_plan_accept: "showClearContextOnPlanAccept" => bool,
        /// How long the terminal waits for an answer to a question of the model's.
        ask_user_question_timeout: "askUserQuestionTimeout" => DialogTimeout,
        /// How long a dialog in another place waits for an answer.
        dialog_expiry: "dialogExpiry" => DialogTimeout,
        /// The agent that leads the conversation.
        agent: "agent" => String,
        /// Texts one of which is shown at the start.
        company_announcements: "companyAnnouncements" => Vec<String>,
        /// What the user set for plugins, by `plugin@marketplace`.
        plugin_configs: "pluginConfigs" => BTreeMap<String, PluginOptions>,
        /// Sessions in the cloud.
        remote: "remote" => RemoteSettings,
        /// Where updates come from: `latest`, `stable` or `rc`.
        auto_updates_channel: "autoUpdatesChannel" => String,
        /// The oldest version that an update installs.
        minimum_version: "minimumVersion" => String,
        /// The oldest version that starts. Only heeded from managed settings.
        required_minimum_version: "requiredMinimumVersion" => String,
        /// The newest version that starts. Only heeded from managed settings.
        required_maximum_version: "requiredMaximumVersion" => String,
        /// Where a native installation gets its releases: the mirror for governments. Any other value stops installations and
        /// updates.
        downloads_mirror_url: "downloadsMirrorUrl" => String,
        /// Where plans are kept.
        plans_directory: "plansDirectory" => String,
        /// How the terminal is drawn: `default` or `fullscreen`.
        tui: "tui" => String,
        /// Dictation.
        voice: "voice" => VoiceSettings,
        /// Whether MCP servers may push messages into sessions. Only heeded from managed settings.
        channels_enabled: "channelsEnabled" => bool,
        /// The only plugins that may push messages into sessions. Only heeded from managed settings.
        allowed_channel_plugins: "allowedChannelPlugins" => Vec<ChannelPlugin>,
        /// Whether the CLI moves less on the screen.
        prefers_reduced_motion: "prefersReducedMotion" => bool,
        /// How times are shown: `auto`, `12-hour`, `24-hour`, `24-hour-utc`, or a pattern with `%`.
        time_format: "timeFormat" => String,
        /// The time zone of times shown.
        time_zone: "timeZone" => String,
        /// Whether the model keeps a memory of the project.
        auto_memory_enabled: "autoMemoryEnabled" => bool,
        /// Where the memory is kept. Not heeded from a project's shared settings.
        auto_memory_directory: "autoMemoryDirectory" => String,
        /// Whether the CLI tidies the memory in the background.
        auto_dream_enabled: "autoDreamEnabled" => bool,
        /// Whether the CLI requests and shows summaries of thinking.
        show_thinking_summaries: "showThinkingSummaries" => bool,
        /// Whether the user has agreed to the mode `bypassPermissions`.
        skip_dangerous_mode_permission_prompt: "skipDangerousModePermissionPrompt" => bool,
        /// `disable` forbids the mode `auto`.
        disable_auto_mode: "disableAutoMode" => String,
        /// Machines to connect to.
        ssh_configs: "sshConfigs" => Vec<SshConfig>,
        /// Machines whose host a command prints, for the desktop app.
        ssh_host_commands: "sshHostCommands" => Vec<RawJson>,
        /// Instructions for the model. Only heeded from managed settings.
        claude_md: "claudeMd" => String,
        /// Files of instructions that the CLI ignores.
        claude_md_excludes: "claudeMdExcludes" => Vec<String>,
        /// A text that the CLI adds to its warning about plugins. Only heeded from managed settings.
        plugin_trust_message: "pluginTrustMessage" => String,
        /// The colours.
        theme: "theme" => String,
        /// The keys of the editor: `normal` or `vim`.
        editor_mode: "editorMode" => String,
        /// No longer has any effect.
        keybinding_flavor: "keybindingFlavor" => String,
        /// Pairs of keys that end the editor's insert mode.
        vim_insert_mode_remaps: "vimInsertModeRemaps" => BTreeMap<String, RawJson>,
        /// Whether the output of tools is shown whole.
        verbose: "verbose" => bool,
        /// How the CLI notifies the user at the terminal.
        preferred_notif_channel: "preferredNotifChannel" => String,
        /// Whether a full context is compacted.
        auto_compact_enabled: "autoCompactEnabled" => bool,
        /// Whether the CLI prepares the compaction before the context is full.
        precompute_compaction_enabled: "precomputeCompactionEnabled" => bool,
        /// Whether a long conversation is compacted while nothing happens; true if absent.
        idle_compaction: "idleCompaction" => bool,
        /// Whether the CLI switches to another model when a message is flagged.
        switch_models_on_flag: "switchModelsOnFlag" => bool,
        /// Whether the session goes on by itself when a usage limit ends.
        auto_continue_at_usage_limit: "autoContinueAtUsageLimit" => bool,
        /// Whether the view follows the conversation.
        auto_scroll_enabled: "autoScrollEnabled" => bool,
        /// Whether the mouse wheel gets faster.
        wheel_scroll_acceleration_enabled: "wheelScrollAccelerationEnabled" => bool,
        /// Whether the CLI keeps files as they were before edits.
        file_checkpointing_enabled: "fileCheckpointingEnabled" => bool,
        /// Whether the CLI shows how long a turn took.
        show_turn_duration: "showTurnDuration" => bool,
        /// Whether the CLI shows when messages came.
        show_message_timestamps: "showMessageTimestamps" => bool,
        /// Whether progress is reported to the terminal.
        terminal_progress_bar_enabled: "terminalProgressBarEnabled" => bool,
        /// Whether the list of tasks is shown.
        todo_feature_enabled: "todoFeatureEnabled" => bool,
        /// How teammates run: `auto`, `tmux`, `iterm2` or `in-process`.
        teammate_mode: "teammateMode" => String,
        /// Whether each session can be driven from claude.ai at once.
        remote_control_at_startup: "remoteControlAtStartup" => bool,
        /// Whether messages to sessions on other machines need a permission request.
        isolate_peer_machines: "isolatePeerMachines" => bool,
        /// What the CLI does when no background service runs: `transient` or `ask`.
        daemon_cold_start: "daemonColdStart" => String,
        /// What the CLI does with messages from other sessions: `accept`, `hold` or `refuse`.
        cross_session_inbound: "crossSessionInbound" => String,
        /// Whether sessions can be watched on claude.ai.
        auto_upload_sessions: "autoUploadSessions" => bool,
        /// Whether a phone is notified when the session waits for an answer.
        input_needed_notif_enabled: "inputNeededNotifEnabled" => bool,
        /// Whether the model may send notices to a phone.
        agent_push_notif_enabled: "agentPushNotifEnabled" => bool,
        /// Whether the user has agreed to the mode `auto`.
        skip_auto_permission_prompt: "skipAutoPermissionPrompt" => bool,
        /// Whether planning uses the mode `auto`; true if absent.
        use_auto_mode_during_plan: "useAutoModeDuringPlan" => bool,
        /// Instructions for the classifier of the mode `auto`.
        auto_mode: "autoMode" => AutoModeSettings,
        /// `disable` keeps the CLI from registering its links with the system.
        disable_deep_link_registration: "disableDeepLinkRegistration" => String,
        /// Older form of `voice`.
        voice_enabled: "voiceEnabled" => bool,
        /// What the CLI shows of a transcript: `chat` or `transcript`.
        default_view: "defaultView" => String,
    }
}
