//! The variables of what the CLI starts: commands, and MCP servers.

use tokio::process::Command;

use super::context::Context;
use super::models::Model;
use super::payload;

/// Sets the variables that all processes of a session get, and takes those away that the CLI keeps for itself.
fn of_all(ctx: &Context, command: &mut Command) {
    command.envs(ctx.state().settings.env());
    let changed = ctx.state().environment.clone().into_iter();
    // Logins are kept from what the CLI starts.
    command.envs(changed.filter(|(name, _)| name != "CLAUDE_CODE_OAUTH_TOKEN"));
    for (name, _) in std::env::vars_os() {
        let is_kept_back = name == "CLAUDE_CODE_OAUTH_TOKEN" || name.to_string_lossy().starts_with("OTEL_");
        if is_kept_back {
            command.env_remove(name);
        }
    }
    command.envs([
        ("CLAUDECODE", "1"),
        ("CLAUDE_CODE_ENTRYPOINT", &ctx.config.entrypoint),
        ("CLAUDE_CODE_SESSION_ID", &ctx.state().session_id),
        ("COREPACK_ENABLE_AUTO_PIN", "0"),
        ("NoDefaultCurrentDirectoryInExePath", "1"),
    ]);
}

/// The value of `AI_AGENT` for a part of the CLI.
fn agent(part: &str) -> String {
    format!("claude-code_{}_{part}", payload::VERSION.replace('.', "-"))
}

/// Sets the variables of a command line.
pub(super) fn of_command(ctx: &Context, command: &mut Command) {
    of_all(ctx, command);
    command.envs([
        ("AI_AGENT", agent("agent").as_str()),
        ("CLAUDE_CODE_CHILD_SESSION", "1"),
        ("CLAUDE_CODE_SESSION_ATTENDED", "0"),
        ("CLAUDE_PID", &std::process::id().to_string()),
        ("GIT_EDITOR", "true"),
        ("SHELL", "/bin/bash"),
    ]);
    if let Ok(executable) = std::env::current_exe() {
        command.env("CLAUDE_CODE_EXECPATH", executable);
    }
    if Model::of(&ctx.state().model).has_effort() {
        command.env("CLAUDE_EFFORT", "medium");
    }
}

/// Sets the variables of an MCP server.
pub(super) fn of_server(ctx: &Context, command: &mut Command) {
    of_all(ctx, command);
    // What a server calls the program that uses it is up to the host.
    if std::env::var_os("AI_AGENT").is_none() {
        command.env("AI_AGENT", agent("harness"));
    }
    command.envs([
        (
            "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS",
            ctx.state().session_id.as_str(),
        ),
        ("CLAUDE_PROJECT_DIR", &ctx.project().to_string_lossy()),
    ]);
}
