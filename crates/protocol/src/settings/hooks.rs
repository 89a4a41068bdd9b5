//! Hooks in a settings file: what runs when something happens.
// Written by `cargo xtask types` from what upstream declares and upstream/settings/hooks.toml: change that instead.

use std::collections::BTreeMap;

use crate::RawJson;

crate::open_struct::open_struct! {
    /// Hooks that share a matcher.
    pub struct HookMatcherSettings {
        /// Which tools or values they are for; all if absent.
        matcher: "matcher" => String,
        /// The hooks.
        hooks: "hooks" => Vec<HookHandler>,
    }
}

crate::wire_enum! {
    /// What a hook does.
    pub enum HookHandler by "type" {
        /// Runs a command.
        "command" => Command(CommandHook),
        /// Asks a model.
        "prompt" => Prompt(PromptHook),
        /// Asks a model that may use tools.
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
        /// Its arguments. With them the command is run without a shell.
        args: "args" => Vec<String>,
        /// A permission rule that the tool call must match.
        condition: "if" => String,
        /// The shell that runs it: `bash` or `powershell`.
        shell: "shell" => String,
        /// How long it may run, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// What its failure means.
        on_failure: "onFailure" => HookFailurePolicy,
        /// What is shown while it runs.
        status_message: "statusMessage" => String,
        /// Whether it runs once and is then gone.
        once: "once" => bool,
        /// Whether the session goes on without waiting for it.
        is_async: "async" => bool,
        /// Whether it runs in the background and wakes the model if it objects.
        async_rewake: "asyncRewake" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A hook that asks a model.
    pub struct PromptHook in "type" {
        /// The question; `$ARGUMENTS` in it becomes the event as JSON.
        prompt: "prompt" => String,
        /// A permission rule that the tool call must match.
        condition: "if" => String,
        /// How long it may take, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// The model; a small one if absent.
        model: "model" => String,
        /// Whether the turn goes on, with the reason told to the model, when it objects.
        continue_on_block: "continueOnBlock" => bool,
        /// What is shown while it runs.
        status_message: "statusMessage" => String,
        /// Whether it runs once and is then gone.
        once: "once" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A hook that asks a model which may use tools to find out.
    pub struct AgentHook in "type" {
        /// The question; `$ARGUMENTS` in it becomes the event as JSON.
        prompt: "prompt" => String,
        /// A permission rule that the tool call must match.
        condition: "if" => String,
        /// How long it may take, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// The model; a small one if absent.
        model: "model" => String,
        /// What is shown while it runs.
        status_message: "statusMessage" => String,
        /// Whether it runs once and is then gone.
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
        /// How long it may take, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// What its failure means.
        on_failure: "onFailure" => HookFailurePolicy,
        /// More headers. `$NAME` in one stands for an environment variable.
        headers: "headers" => BTreeMap<String, String>,
        /// The environment variables that may stand in headers.
        allowed_env_vars: "allowedEnvVars" => Vec<String>,
        /// What is shown while it runs.
        status_message: "statusMessage" => String,
        /// Whether it runs once and is then gone.
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
        /// How long it may take, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// What its failure means.
        on_failure: "onFailure" => HookFailurePolicy,
        /// What is shown while it runs.
        status_message: "statusMessage" => String,
        /// Whether it runs once and is then gone.
        once: "once" => bool,
    }
}

crate::open_enum! {
    /// What the failure of a hook means.
    pub enum HookFailurePolicy {
        /// Nothing; the session goes on.
        Continue = "continue",
        /// The same as an objection.
        Block = "block",
    }
}
