//! Five hooks: `hooks.py`.

use outrigger::hooks::{self, HookOutput, PostToolUseOutput, PreToolUseOutput, UserPromptSubmitOutput};
use outrigger::protocol::tools::ToolInput;
use serde_json::json;

use crate::support::{Result, Stage, show};

pub(crate) async fn run(stage: &Stage) -> Result {
    pre_tool_use(stage).await?;
    user_prompt_submit(stage).await?;
    post_tool_use(stage).await?;
    decisions(stage).await?;
    stop(stage).await
}

/// Refuses commands by their text.
async fn pre_tool_use(stage: &Stage) -> Result {
    println!("--- PreToolUse");
    let guard = hooks::pre_tool_use(|call, _| async move {
        if call.tool_input.get().contains("foo.sh") {
            println!("hook: blocked");
            return HookOutput::specific(PreToolUseOutput::deny("foo.sh is not to be run"));
        }
        HookOutput::none()
    });
    let session = stage
        .agent()
        .allowed_tools(["Bash"])
        .hook(guard.matcher("Bash"))
        .start()
        .await?;
    let script =
        "%tool Bash {\"command\": \"./foo.sh --help\"}\n%tool Bash {\"command\": \"echo hello\"}\n%say Done.";
    show(
        &session,
        stage.prompt("Run ./foo.sh --help, then echo hello.", script),
    )
    .await?;
    session.close().await?;
    Ok(())
}

/// Tells the model something with each prompt.
async fn user_prompt_submit(stage: &Stage) -> Result {
    println!("--- UserPromptSubmit");
    let colour = hooks::user_prompt_submit(|_, _| async {
        HookOutput::specific(
            UserPromptSubmitOutput::default().additional_context("My favourite colour is pink."),
        )
    });
    let session = stage.agent().hook(colour).start().await?;
    show(
        &session,
        stage.prompt("What is my favourite colour?", "%say Pink."),
    )
    .await?;
    session.close().await?;
    Ok(())
}

/// Looks at what a tool gave back.
async fn post_tool_use(stage: &Stage) -> Result {
    println!("--- PostToolUse");
    let review = hooks::post_tool_use(|call, _| async move {
        if !call.tool_response.get().contains("error") {
            return HookOutput::none();
        }
        println!("hook: the command reported an error");
        HookOutput::specific(
            PostToolUseOutput::default().additional_context("The command failed. Try another one."),
        )
        .system_message("The command reported an error")
    });
    let session = stage
        .agent()
        .allowed_tools(["Bash"])
        .hook(review.matcher("Bash"))
        .start()
        .await?;
    let script = "%tool Bash {\"command\": \"echo error: no such thing\"}\n%say It failed.";
    show(&session, stage.prompt("Run a command that fails.", script)).await?;
    session.close().await?;
    Ok(())
}

/// Decides about each call, and says why.
async fn decisions(stage: &Stage) -> Result {
    println!("--- permissionDecision");
    let strict = hooks::pre_tool_use(|call, _| async move {
        match call.tool() {
            ToolInput::Write(write) if write.file_path.contains("important") => {
                HookOutput::specific(PreToolUseOutput::deny("important files stay as they are"))
                    .system_message("A write was blocked")
            }
            _ => HookOutput::specific(PreToolUseOutput::allow()),
        }
    });
    let session = stage.agent().hook(strict.matcher("Write")).start().await?;
    let write = |name| json!({"file_path": stage.project().join(name), "content": "x"});
    let script = format!(
        "%tool Write {}\n%tool Write {}\n%say Done.",
        write("important.txt"),
        write("notes.txt")
    );
    show(
        &session,
        stage.prompt("Write important.txt and notes.txt.", &script),
    )
    .await?;
    session.close().await?;
    Ok(())
}

/// Ends the turn.
async fn stop(stage: &Stage) -> Result {
    println!("--- continue: false");
    let halt = hooks::post_tool_use(|call, _| async move {
        if call.tool_response.get().contains("critical") {
            return HookOutput::stop("a critical error");
        }
        HookOutput::none()
    });
    let session = stage
        .agent()
        .allowed_tools(["Bash"])
        .hook(halt.matcher("Bash"))
        .start()
        .await?;
    let script = "%tool Bash {\"command\": \"echo critical error\"}\n%say This is not said.";
    let mut turn = session.prompt(stage.prompt("Run the check.", script)).await?;
    // A turn that a hook ended has no answer, so this is about the outcome.
    println!("outcome: {}", turn.outcome().await?.verdict());
    session.close().await?;
    Ok(())
}
