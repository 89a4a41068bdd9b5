//! Asks at the terminal before a tool runs: yes, no, or what to do instead.
//!
//! `cargo run --example approve`, and with `-- --real` against the installed `claude`.

#![expect(
    clippy::print_stdout,
    reason = "an example talks to the person at the terminal"
)]

mod support;

use outrigger::permissions::{PermissionDecision, PermissionRequest};

/// What the scripted model does.
const SCRIPT: &str = r#"%say I make a file, and remove it again.
%+tool Bash {"command": "touch hello.txt", "description": "Make a file"}
%tool Bash {"command": "rm hello.txt", "description": "Remove it"}
%say That was it."#;

/// Decides about one call. Others may be asked about meanwhile; an error, here the end of the input, refuses.
async fn decide(request: PermissionRequest) -> std::io::Result<PermissionDecision> {
    println!("{} wants to run: {}", request.tool_name, request.input.get());
    if let Some(reason) = &request.decision_reason {
        println!("  asked because: {reason}");
    }
    let answer = support::ask("Allow it? [y]es, [n]o, or what to do instead:").await?;
    Ok(match answer.as_str() {
        "y" | "yes" => PermissionDecision::allow(),
        "" | "n" | "no" => PermissionDecision::deny("the user refused this"),
        words => PermissionDecision::deny(format!("the user refused this and says: {words}")),
    })
}

#[tokio::main]
async fn main() -> support::Result {
    let stage = support::Stage::open().await?;
    let session = stage.agent().can_use_tool(decide).start().await?;
    let prompt = stage.prompt("Make a file hello.txt, then remove it.", SCRIPT);
    support::show(&session, prompt).await?;
    session.close().await?;
    Ok(())
}
