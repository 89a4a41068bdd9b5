//! Replies about the session and its environment.

use serde_json::{Value, json};

use super::brain::{AgentInfo, Ask, SIDE_QUESTION};
use super::context::Context;
use super::control::Reply;
use super::{disk, export, mcp, payload, plans};
use crate::script::response::Block;

/// Answers a request for something that is listed; `None` is about something else.
pub(super) async fn handle(
    ctx: &Context,
    id: Option<&Value>,
    subtype: &str,
    request: &Value,
) -> Option<Reply> {
    let initialize = || {
        let state = ctx.state();
        payload::initialize(&ctx.config.home, &state.mode, state.session_state)
    };
    Some(match subtype {
        "reload_plugins" => {
            let listed = initialize();
            Reply::Payload(json!({
                "commands": listed["commands"], "agents": listed["agents"], "plugins": payload::plugins(),
                "mcpServers": mcp::status(ctx)["mcpServers"], "error_count": 0,
            }))
        }
        "reload_skills" => Reply::Payload(json!({"skills": initialize()["commands"]})),
        "reload_output_styles" => {
            Reply::Payload(json!({"available_output_styles": initialize()["available_output_styles"]}))
        }
        "get_hooks_listing" => Reply::Payload(payload::reply("get_hooks_listing")),
        "get_skills_dialog" => Reply::Payload(json!({"skills": []})),
        "get_plan" => Reply::Payload(match plans::written(ctx) {
            Some((path, content)) => json!({"exists": true, "content": content, "path": path}),
            None => json!({"exists": false}),
        }),
        "get_status" => Reply::Payload(status(ctx)),
        "generate_session_title" => {
            let words = request["description"]
                .as_str()
                .unwrap_or_default()
                .split_whitespace();
            let title = words.take(6).collect::<Vec<_>>().join(" ");
            Reply::Payload(json!({"title": title}))
        }
        "side_question" => {
            let fields = json!({"request_id": id, "status": "started"});
            ctx.send_system("control_request_progress", fields).await;
            let response = aside(ctx, request["question"].as_str().unwrap_or_default()).await;
            Reply::Payload(json!({"response": response, "synthetic": false}))
        }
        "export_conversation" => Reply::Payload(export::conversation(ctx)),
        "message_rated" => rated(request),
        "get_memory_dialog" => Reply::Payload(memory(ctx).await),
        "get_sandbox_dialog" => Reply::Payload(payload::reply("get_sandbox_dialog")),
        "set_prompt_suggestions_paused" => Reply::Done,
        "remote_control" if request["enabled"] == false => Reply::Done,
        "submit_feedback" => Reply::Payload(json!({
            "feedback_id": null,
            "unavailable_reason": "/feedback has been disabled via the CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC environment \
                                   variable",
        })),
        _ => return None,
    })
}

/// An opinion on a message, which goes nowhere.
fn rated(request: &Value) -> Reply {
    let among = |key: &str, known: &[&str]| known.iter().any(|known| request[key] == *known);
    let fits = request["messageUuid"].is_string()
        && among("sentiment", &["positive", "negative"])
        && (request["surface"].is_null() || among("surface", &["tool_use", "assistant_text"]))
        && (request["cleared"].is_null() || request["cleared"].is_boolean());
    if fits {
        return Reply::Payload(json!({}));
    }
    Reply::Error(
        "message_rated: messageUuid must be a string, sentiment \"positive\" or \"negative\", surface \"tool_use\" or \
         \"assistant_text\", and cleared a boolean"
            .to_owned(),
    )
}

/// The files with instructions that there could be.
async fn memory(ctx: &Context) -> Value {
    let home = std::path::PathBuf::from(&ctx.config.home).join(".claude");
    let config_dir = ctx.config.config_dir.as_ref().unwrap_or(&home);
    let (user, project) = (config_dir.join("CLAUDE.md"), ctx.project().join("CLAUDE.md"));
    let (user, project) = (user.to_string_lossy(), project.to_string_lossy());
    let user_there = disk::load(ctx, &user, ctx.config.reads("user")).await.is_some();
    let project_there = disk::load(ctx, &project, ctx.config.reads("project"))
        .await
        .is_some();
    let folder = super::transcript::project(config_dir, &ctx.project()).join("memory");
    json!({
        "files": [
            {
                "kind": "user", "path": user, "label": "User instructions", "description": "Saved in ~/.claude/CLAUDE.md",
                "exists": user_there,
            },
            {
                "kind": "project", "path": project, "label": "Project instructions", "description": "Saved in ./CLAUDE.md",
                "exists": project_there,
            },
        ],
        "folders": [{
            "kind": "auto", "path": format!("{}/", folder.to_string_lossy()), "label": "Open auto-memory folder",
            "description": "",
        }],
        "memories": [],
        "auto_memory": {"enabled": true, "toggleable": true, "status": "on"},
        "auto_dream": {"shown": false, "enabled": false, "toggleable": true, "status": "off", "detail": ""},
    })
}

fn status(ctx: &Context) -> Value {
    let state = ctx.state();
    let row = |label: &str, value: &str| json!({"label": label, "value": value});
    let mut session = vec![
        row("Version", payload::VERSION),
        row("Session ID", &state.session_id),
        row("cwd", &ctx.cwd().to_string_lossy()),
    ];
    session.extend(state.title.as_deref().map(|title| row("Session name", title)));
    json!({"sections": [
        {"title": "Session", "rows": session},
        {"title": "Environment", "rows": [row("Model", &state.model)]},
    ]})
}

/// Calls the model outside of the conversation, as an agent of its own.
async fn aside(ctx: &Context, question: &str) -> String {
    let ask = {
        let mut state = ctx.state();
        let (id, _) = state.ids.agent();
        Ask {
            prompt: question.to_owned(),
            prompts: vec![question.to_owned()],
            turn: state.turns.saturating_sub(1),
            history: state.history,
            model: state.model.clone(),
            agent: Some(AgentInfo {
                id,
                kind: SIDE_QUESTION.to_owned(),
                description: question.to_owned(),
                tool_use_id: String::new(),
                background: true,
                depth: 1,
                tag: None,
            }),
            ..Ask::default()
        }
    };
    let response = ctx.brain.lock().await.respond(&ask);
    let usage = response.usage;
    ctx.state()
        .use_tokens(&ask.model, usage.input, usage.output, response.cost);
    let blocks = response.blocks.into_iter();
    let texts = blocks.filter_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    texts.collect()
}
