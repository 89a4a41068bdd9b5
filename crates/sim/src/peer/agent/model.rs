//! Switches the session to another model, and reports it.

use serde_json::{Value, json};

use super::context::{Context, ConversationLine};
use super::control::ControlReply;
use super::hooks::Fired;
use super::models::{self, Model};

/// `set_model`.
pub(super) async fn set(ctx: &Context, request: &Value) -> ControlReply {
    let name = match &request["model"] {
        Value::Null => "default",
        Value::String(name) => name,
        _ => {
            let error = "set_model: model must be a string";
            return ControlReply::SameModel(error.to_owned(), "invalid_request");
        }
    };
    match switch(ctx, name).await {
        Ok(model) => ControlReply::Payload(json!({"model": model})),
        Err(refused) => refused,
    }
}

/// Switches the model unless a hook blocks it, reports it if it is another one, and returns it.
pub(super) async fn switch(ctx: &Context, name: &str) -> Result<String, ControlReply> {
    let model = models::resolve(name);
    let before = ctx.state().model.clone();
    if model == before {
        return Ok(model);
    }
    let (prompt_id, context) = {
        let state = ctx.state();
        (state.prompt_id.clone(), state.context)
    };
    // What the conversation costs to be cached anew, which is a quarter more than to be read, in hundredths of a cent.
    let write = (context as f64 * Model::of(&model).price().0 * 1.25 / 1e2).round() / 1e4;
    let fields = json!({
        "from_model": before, "to_model": model, "requested_model": name, "source": "sdk", "context_tokens": context,
        "prompt_cache_warm": context > 0, "cache_ttl": "5m", "estimated_cache_write_usd": write, "pricing": "catalog",
    });
    let fired = ctx
        .fire(
            "PreModelSwitch",
            Some(&model),
            prompt_id.as_deref(),
            fields.clone(),
        )
        .await;
    for fired in fired {
        let Fired::Answer(answer) = fired else { continue };
        let output = &answer["hookSpecificOutput"];
        if output["permissionDecision"] == "deny" {
            let reason = output["permissionDecisionReason"].as_str().unwrap_or_default();
            let error = format!("Model switch blocked by a PreModelSwitch hook: {reason}");
            return Err(ControlReply::SameModel(error, "blocked_by_hook"));
        }
    }
    {
        let mut state = ctx.state();
        state.model.clone_from(&model);
        state.switched = Some(fields);
    }
    let shown = if name == model || name == "default" {
        model.clone()
    } else {
        format!("{name} ({model})")
    };
    // A conversation that has not begun yet does not say so.
    let begun = {
        let state = ctx.state();
        state.prompts > 0 || state.history > 0
    };
    if !begun {
        return Ok(model);
    }
    let content = format!("<local-command-stdout>Set model to `{shown}`</local-command-stdout>");
    ctx.say(ConversationLine {
        agent: None,
        kind: "user",
        message: json!({"role": "user", "content": content}),
        extra: json!({"isReplay": true}),
        shown: true,
        kept: None,
    })
    .await;
    Ok(model)
}
