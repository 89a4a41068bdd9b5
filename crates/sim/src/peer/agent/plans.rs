//! The tools that need a person: questions, and plans that are to be approved.

use serde_json::{Value, json};

use super::brain::ToolOutcome;
use super::context::Context;

/// Where plans are kept.
pub(super) fn directory(ctx: &Context) -> String {
    format!("{}/.claude/plans/", ctx.config.home)
}

/// The plan that the model has written: the path of its file, and its contents.
pub(super) fn written(ctx: &Context) -> Option<(String, String)> {
    let state = ctx.state();
    let (path, real) = state.plan.clone()?;
    let content = if real {
        drop(state);
        std::fs::read_to_string(&path).ok()?
    } else {
        state.files.get(&path).cloned()?
    };
    Some((path, content))
}

/// The result of the tool, once the person has answered.
pub(super) fn answered(input: &Value) -> ToolOutcome {
    let answers = input["answers"].as_object().into_iter().flatten();
    let shown: Vec<String> = answers
        .map(|(question, answer)| {
            let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
            format!("\"{question}\"=\"{answer}\"")
        })
        .collect();
    let text = if shown.is_empty() {
        "The user did not answer the questions.".to_owned()
    } else {
        let shown = shown.join(", ");
        format!(
            "Your questions have been answered: {shown}. You can now continue with these answers in mind."
        )
    };
    let answers = input.get("answers").cloned().unwrap_or_else(|| json!({}));
    ToolOutcome::text(text).with_details(json!({"questions": input["questions"], "answers": answers}))
}

/// The tool that begins a plan, and the one that ends it.
pub(super) async fn switch(ctx: &Context, entering: bool) -> ToolOutcome {
    let mode = if entering { "plan" } else { "default" };
    let changes = {
        let mut state = ctx.state();
        // The answer to the question may have chosen a mode already.
        let changes = entering != (state.mode == "plan");
        if changes {
            state.mode = mode.to_owned();
        }
        changes
    };
    if changes {
        let fields = json!({"status": null, "permissionMode": mode});
        ctx.send_system("status", fields).await;
    }
    if entering {
        return ToolOutcome::text("Entered plan mode.")
            .with_details(json!({"message": "Entered plan mode."}));
    }
    match written(ctx) {
        Some((path, plan)) => ToolOutcome::text(format!(
            "User has approved your plan. You can now start coding. Start with updating your todo list if applicable\n\nYour \
             plan has been saved to: {path}\nYou can refer back to it if needed during implementation.\n\n## Approved \
             Plan:\n{plan}"
        ))
        .with_details(json!({"plan": plan, "isAgent": false, "filePath": path})),
        None => {
            let path = format!("{}plan.md", directory(ctx));
            ToolOutcome::text("User has approved exiting plan mode. You can now proceed.")
                .with_details(json!({"plan": null, "isAgent": false, "filePath": path}))
        }
    }
}
