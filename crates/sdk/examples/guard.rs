//! A guard: code that sees every call of a tool before it runs, also those that nobody would be asked about, and can refuse it.
//!
//! `cargo run --example guard`, and with `-- --real` against the installed `claude`.

#![expect(
    clippy::print_stdout,
    reason = "an example talks to the person at the terminal"
)]

mod support;

use std::time::Duration;

use outrigger::hooks::{self, HookOutput, OnFailure, PreToolUseOutput};
use outrigger::protocol::tools::ToolInput;

/// What the scripted model does.
const SCRIPT: &str = r#"%tool Bash {"command": "echo hello > public.txt", "description": "Write a file"}
%tool Bash {"command": "cat .env", "description": "Look for settings"}
%say Done."#;

#[tokio::main]
async fn main() -> support::Result {
    let guard = hooks::pre_tool_use(|call, _| async move {
        let ToolInput::Bash(bash) = ToolInput::read(&call.tool_name, &call.tool_input) else {
            return HookOutput::none();
        };
        println!("guard: looks at `{}`", bash.command);
        if bash.command.contains(".env") {
            HookOutput::specific(PreToolUseOutput::deny("the guard keeps .env to itself"))
        } else {
            HookOutput::none()
        }
    })
    .matcher("Bash")
    // A guard that panics, fails or takes too long has refused. A CLI that does not promise the same is not used.
    .timeout(Duration::from_secs(5))
    .on_failure(OnFailure::Block);

    let stage = support::Stage::open().await?;
    // By this rule nobody is asked about commands. The guard sees them all the same.
    let agent = stage.agent().allowed_tools(["Bash"]).hook(guard);
    let session = agent.start().await?;
    let prompt = stage.prompt("Write public.txt, then show me .env.", SCRIPT);
    support::show(&session, prompt).await?;
    session.close().await?;
    Ok(())
}
