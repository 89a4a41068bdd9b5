//! The tools that need a person: questions, and plans that are to be approved.

use serde_json::{Value, json};

use super::brain::ToolOutcome;
use super::context::Context;
use crate::fields::JsonFields as _;

/// Where plans are kept.
pub(super) fn directory(ctx: &Context) -> String {
    format!("{}/plans/", ctx.config_dir().display())
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
    let (mut shown, mut are_chosen) = (Vec::new(), true);
    for question in input["questions"].as_array().into_iter().flatten() {
        let text = question["question"].as_str().unwrap_or_default();
        let is_option = |answer: &str| {
            let options = question["options"].as_array();
            options.is_some_and(|options| options.iter().any(|option| option["label"] == answer))
        };
        let takes_many = question["multiSelect"] == true;
        let (answer, is_chosen) = match &input["answers"][text] {
            Value::String(answer) if !answer.is_empty() => {
                let many = || takes_many && answer.split(", ").all(is_option);
                (answer.clone(), is_option(answer) || many())
            }
            Value::Array(answers) => {
                let answers: Vec<&str> = answers.iter().filter_map(Value::as_str).collect();
                let is_chosen =
                    takes_many && !answers.is_empty() && answers.iter().all(|answer| is_option(answer));
                (answers.join(","), is_chosen)
            }
            _ => continue,
        };
        let about = &input["annotations"][text];
        let (preview, notes) = (about["preview"].as_str(), about["notes"].as_str());
        let preview = preview.map_or_else(String::new, |preview| format!(" selected preview:\n{preview}"));
        let noted = notes.map_or_else(String::new, |notes| format!(" notes: {notes}"));
        shown.push(format!("\"{text}\"=\"{answer}\"{preview}{noted}"));
        are_chosen &= is_chosen && notes.is_none();
    }
    let given = shown.join(", ");
    let text = match input["response"].as_str() {
        _ if are_chosen && !shown.is_empty() => {
            format!(
                "Your questions have been answered: {given}. You can now continue with these answers in mind."
            )
        }
        _ if !shown.is_empty() => {
            format!(
                "The user answered: {given}. Read the answers: they may want something else than was offered."
            )
        }
        Some(response) => format!("The user responded: {response}"),
        None => "The user did not answer the questions.".to_owned(),
    };
    let answers = input.get("answers").cloned().unwrap_or_else(|| json!({}));
    let mut details = json!({"questions": input["questions"], "answers": answers});
    for key in ["annotations", "response"] {
        details.put(key, input.get(key));
    }
    ToolOutcome::text(text).with_details(details)
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
