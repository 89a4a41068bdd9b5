//! A function decides about tools, and changes what they are called with: `tool_permission_callback.py`.

use std::path::PathBuf;

use outrigger::permissions::{PermissionAllow, PermissionDecision, PermissionRequest};
use outrigger::protocol::tools::ToolInput;
use serde_json::json;

use crate::support::{Result, Stage, show};

const DANGEROUS: &[&str] = &["rm -rf", "sudo", "chmod 777", "mkfs"];

/// What the scripted model does after it wrote a file.
const SCRIPT: &str = r#"%tool Bash {"command": "sudo reboot"}
%tool Bash {"command": "touch made.txt"}
%say That was it."#;

/// Decides about one call. An error refuses it.
async fn decide(project: PathBuf, request: PermissionRequest) -> serde_json::Result<PermissionDecision> {
    println!("asked about {}", request.tool_name);
    Ok(match request.tool() {
        ToolInput::Read(_) | ToolInput::Glob(_) | ToolInput::Grep(_) => PermissionDecision::allow(),
        ToolInput::Write(write) if write.file_path.starts_with("/etc/") => {
            PermissionDecision::deny("no writing to system directories")
        }
        ToolInput::Write(write) => {
            let name = write.file_path.rsplit('/').next().unwrap_or_default();
            println!("  goes to safe_output/{name} instead");
            let path = project.join("safe_output").join(name);
            let input = json!({ "file_path": path, "content": write.content });
            PermissionAllow::default().updated_input(input)?.into()
        }
        ToolInput::Bash(bash) => match DANGEROUS.iter().find(|words| bash.command.contains(*words)) {
            Some(words) => PermissionDecision::deny(format!("a dangerous command: {words}")),
            None => PermissionDecision::allow(),
        },
        _ => PermissionDecision::deny("nobody knows this tool"),
    })
}

pub(crate) async fn run(stage: &Stage) -> Result {
    let project = stage.project();
    let write = json!({"file_path": project.join("elsewhere/hello.py"), "content": "print('hello')"});
    let script = format!("%tool Write {write}\n{SCRIPT}");
    let agent = stage
        .agent()
        .can_use_tool(move |request| decide(project.clone(), request));
    let session = agent.start().await?;
    show(
        &session,
        stage.prompt("Write hello.py, reboot, make a file.", &script),
    )
    .await?;
    println!("made.txt is there: {}", stage.project().join("made.txt").exists());
    println!(
        "redirected: {}",
        stage.project().join("safe_output/hello.py").exists()
    );
    session.close().await?;
    Ok(())
}
