//! Has a plan approved before anything is done: the model plans, the person reads, and sends it back or lets it go on.
//!
//! `cargo run --example plan`, and with `-- --real` against the installed `claude`. The scripted model asks twice: send the first plan
//! back, and approve the second.

#![expect(
    clippy::print_stdout,
    reason = "an example talks to the person at the terminal"
)]

mod support;

use outrigger::options::PermissionMode;
use outrigger::permissions::{PlanReply, PlanRequest};

/// What the scripted model does.
const SCRIPT: &str = r#"%tool Write {"file_path": "{{plan}}", "content": "1. Make a file.\n2. Be done.\n"}
%tool ExitPlanMode {}
%tool ExitPlanMode {}
%tool Bash {"command": "touch house.txt", "description": "Make the file"}
%say Built."#;

/// An error, here the end of the input, keeps the model planning.
async fn decide(plan: PlanRequest) -> std::io::Result<PlanReply> {
    println!(
        "The plan:\n{}",
        plan.plan.as_deref().unwrap_or("(nothing is written down)")
    );
    let answer = support::ask("Go on? [y]es, [e]dits without asking, or what to change:").await?;
    Ok(match answer.as_str() {
        "y" => PlanReply::approve(),
        "e" => PlanReply::approve_and_accept_edits(),
        change => PlanReply::KeepPlanning(format!("the user wants a change: {change}")),
    })
}

#[tokio::main]
async fn main() -> support::Result {
    let stage = support::Stage::open().await?;
    let agent = stage.agent().permission_mode(PermissionMode::Plan).plans(decide);
    // Nobody is asked about this once the plan is approved.
    let agent = agent.allowed_tools(["Bash(touch house.txt)"]);
    let session = agent.start().await?;
    let prompt = stage.prompt("Plan how to make a file house.txt, then make it.", SCRIPT);
    support::show(&session, prompt).await?;
    session.close().await?;
    Ok(())
}
