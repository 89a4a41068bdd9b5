//! Hooks in a settings file: what runs when something happens.
// Written by `cargo xtask types` from what upstream declares and upstream/settings/hooks.toml: change that instead.

use std::collections::BTreeMap;

use crate::RawJson;

crate::open_struct::open_struct! {
    /// Hooks that share a matcher.
    pub struct HookMatcherSettings {
        /// Which tools or values the hooks are for; all if absent.
        matcher: "matcher" => String,
        /// The hooks that run, in parallel.
        hooks: "hooks" => Vec<HookHandler>,
    }
}

crate::wire_enum! {
    /// What a hook does.
    pub enum HookHandler by "type" {
        /// Runs a command.
        "command" => Command(CommandHook),
        /// Sends a prompt to a model.
        "prompt" => Prompt(PromptHook),
        /// Sends a prompt to a model that may use tools.
        "agent" => Agent(AgentHook),
        /// Sends a request.
        "http" => Http(HttpHook),
        /// Calls a tool of an MCP server.
        "mcp_tool" => McpTool(McpToolHook),
    }
}

crate::open_struct::open_struct! {
    /// A hook that runs a command, with the event as JSON on its stdin.
    pub struct CommandHook in "type" {
        /// The command.
        command: "command" => String,
        /// The command's arguments. With arguments the command runs without a shell.
        args: "args" => Vec<String>,
        /// A permission rule that the tool call must match.
        condition: "if" => String,
        /// The shell that runs the command: `bash` or `powershell`.
        shell: "shell" => String,
        /// How long the command may run, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// What a failure of the hook means.
        on_failure: "onFailure" => HookFailurePolicy,
        /// What the CLI shows while the hook runs.
        status_message: "statusMessage" => String,
        /// Whether the hook runs once and is then removed.
        once: "once" => bool,
        /// Whether the session goes on without waiting for the hook.
        is_async: "async" => bool,
        /// Whether the hook runs in the background, and the model is started again if the hook blocks.
        async_rewake: "asyncRewake" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A hook that sends a prompt to a model.
    pub struct PromptHook in "type" {
        /// The prompt; `$ARGUMENTS` in the prompt becomes the event as JSON.
        prompt: "prompt" => String,
        /// A permission rule that the tool call must match.
        condition: "if" => String,
        /// How long the hook may take, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// The model; a small model if absent.
        model: "model" => String,
        /// Whether the turn goes on when the hook blocks. The model gets the reason.
        continue_on_block: "continueOnBlock" => bool,
        /// What the CLI shows while the hook runs.
        status_message: "statusMessage" => String,
        /// Whether the hook runs once and is then removed.
        once: "once" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A hook that sends a prompt to a model that may use tools.
    pub struct AgentHook in "type" {
        /// The prompt; `$ARGUMENTS` in the prompt becomes the event as JSON.
        prompt: "prompt" => String,
        /// A permission rule that the tool call must match.
        condition: "if" => String,
        /// How long the hook may take, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// The model; a small model if absent.
        model: "model" => String,
        /// What the CLI shows while the hook runs.
        status_message: "statusMessage" => String,
        /// Whether the hook runs once and is then removed.
        once: "once" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A hook that sends the event as JSON in a POST request.
    pub struct HttpHook in "type" {
        /// The address.
        url: "url" => String,
        /// A permission rule that the tool call must match.
        condition: "if" => String,
        /// How long the hook may take, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// What a failure of the hook means.
        on_failure: "onFailure" => HookFailurePolicy,
        /// More headers. `$NAME` in a header stands for an environment variable.
        headers: "headers" => BTreeMap<String, String>,
        /// The environment variables that may stand in headers.
        allowed_env_vars: "allowedEnvVars" => Vec<String>,
        /// What the CLI shows while the hook runs.
        status_message: "statusMessage" => String,
        /// Whether the hook runs once and is then removed.
        once: "once" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A hook that calls a tool of an MCP server.
    pub struct McpToolHook in "type" {
        /// The server.
        server: "server" => String,
        /// The tool.
        tool: "tool" => String,
        /// The tool's input, an object.
        input: "input" => RawJson,
        /// A permission rule that the tool call must match.
        condition: "if" => String,
        /// How long the hook may take, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// What a failure of the hook means.
        on_failure: "onFailure" => HookFailurePolicy,
        /// What the CLI shows while the hook runs.
        status_message: "statusMessage" => String,
        /// Whether the hook runs once and is then removed.
        once: "once" => bool,
    }
}

crate::open_enum! {
    /// What the failure of a hook means.
    pub enum HookFailurePolicy {
        /// A failure means nothing: the session goes on.
        Continue = "continue",
        /// A failure blocks, as if the hook had blocked.
        Block = "block",
    }
}
