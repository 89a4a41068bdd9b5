//! The CLI judges the rules of a policy from a file; a person decides what the CLI still asks, and each such decision is recorded.
//!
//! `cargo run --example policy_file [policy.toml]`, and with `--real` against the installed `claude`.

#![expect(
    clippy::print_stdout,
    reason = "an example talks to the person at the terminal"
)]

mod support;

use outrigger::permissions::{Decided, PermissionDecision, PermissionRequest, PolicyFile, chain, record};

/// Used unless a file is named.
const POLICY: &str = r#"
default = "ask"
allow = ["Bash(touch *)"]
deny = ["Bash(rm *)"]
"#;

/// What the scripted model does.
const SCRIPT: &str = r#"%tool Bash {"command": "touch notes.txt", "description": "Make a file"}
%tool Bash {"command": "rm notes.txt", "description": "Remove it"}
%tool Bash {"command": "mkdir notes", "description": "Make a directory"}
%say Done."#;

async fn by_hand(request: PermissionRequest) -> std::io::Result<PermissionDecision> {
    let question = format!("{} {}? [y/N]", request.tool_name, request.input.get());
    Ok(match support::ask(question).await?.as_str() {
        "y" => PermissionDecision::allow(),
        _ => PermissionDecision::deny("the user refused this"),
    })
}

#[tokio::main]
async fn main() -> support::Result {
    let named = std::env::args().skip(1).find(|argument| argument != "--real");
    let text = match named {
        Some(path) => std::fs::read_to_string(path)?,
        None => POLICY.to_owned(),
    };
    // An unknown key or a rule that cannot be read is an error: a policy that is half understood is none.
    let policy = toml::from_str::<PolicyFile>(&text)?.policy()?;
    // What the rules allow and refuse is settled before anybody here is asked.
    let decide = chain().layer("file", policy).last("person", by_hand);
    let recorded = record(decide, |decided: Decided| {
        let verdict = if decided.decision.is_allow() {
            "allowed"
        } else {
            "refused"
        };
        let layer = decided.by.layer.unwrap_or_default();
        println!("{verdict} by {layer}: {}", decided.request.input.get());
    });

    let stage = support::Stage::open().await?;
    let session = stage.agent().permissions(recorded).start().await?;
    let prompt = stage.prompt("Make notes.txt, remove it, and make a directory notes.", SCRIPT);
    support::show(&session, prompt).await?;
    session.close().await?;
    Ok(())
}
