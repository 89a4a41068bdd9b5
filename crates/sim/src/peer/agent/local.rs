//! Slash commands that the CLI answers itself, without the model.

use serde_json::{Value, json};

use super::context::{Prompt, Said};
use super::turn::{End, Turn};
use super::{background, commands, control, cost, not_simulated, payload};
use crate::flaw::Flaw;

/// Commands of the terminal that are refused here.
const UNAVAILABLE: &[&str] = &[
    "bug",
    "doctor",
    "exit",
    "help",
    "hooks",
    "ide",
    "login",
    "logout",
    "memory",
    "permissions",
    "quit",
    "resume",
    "status",
    "theme",
    "vim",
];

/// The answer of a command.
pub(super) struct Answer {
    /// The name under which it ran, unless it is not available.
    ran: Option<&'static str>,
    text: String,
}

impl Answer {
    pub(super) fn of(ran: &'static str, text: impl Into<String>) -> Self {
        Self {
            ran: Some(ran),
            text: text.into(),
        }
    }
}

/// A model's name as it is shown: `claude-opus-5-5` is `Opus 5.5`.
fn shown_model(model: &str) -> String {
    let mut parts = model.strip_prefix("claude-").unwrap_or(model).split('-');
    let mut family = parts.next().unwrap_or_default().to_owned();
    if let Some(first) = family.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let version: Vec<&str> = parts.collect();
    format!("{family} {}", version.join(".")).trim_end().to_owned()
}

impl Turn {
    /// Ends a turn that uses what is not simulated.
    pub(super) async fn refuse_unsimulated(&mut self) -> Option<End> {
        let feature = not_simulated::used(&self.ctx, &self.prompts)?;
        let text = not_simulated::feature(feature);
        self.ctx.log.flaw(Flaw::new("prompt", text.clone()));
        self.send_init().await;
        for prompt in &self.prompts {
            self.take_in(prompt).await;
        }
        Some(End::NotSimulated(text))
    }

    /// Answers a command of the CLI. `None` is for the model.
    pub(super) async fn answer_locally(&mut self) -> Option<End> {
        let [prompt] = &self.prompts[..] else {
            return None;
        };
        if self.ctx.config.no_commands || prompt.composed || !prompt.query {
            return None;
        }
        let prompt = prompt.clone();
        let (name, arguments) = commands::called(&prompt.text)?;
        match name {
            "clear" | "new" | "reset" => return Some(self.clear(&prompt).await),
            "compact" => return Some(self.compact_by_hand(&prompt, arguments).await),
            _ => {}
        }
        let answer = match name {
            "usage" | "cost" => Answer::of("usage", self.cost_text()),
            "context" => Answer::of("context", self.context_text()),
            "model" => Answer::of("model", self.model_text(arguments)),
            "mcp" => Answer::of("mcp", self.mcp_text()),
            "agents" => Answer::of("agents", "The /agents wizard has been removed."),
            "effort" => Answer::of("effort", effort_text(arguments)),
            "rename" if !arguments.is_empty() => {
                control::rename(&self.ctx, arguments).await;
                Answer::of("rename", format!("Session renamed to: {arguments}"))
            }
            name if UNAVAILABLE.contains(&name) => Answer {
                ran: None,
                text: format!("/{name} isn't available in this environment."),
            },
            name => {
                let own = commands::all(&self.ctx)
                    .iter()
                    .any(|command| command.name == name);
                let text = not_simulated::command(name).filter(|_| !own)?;
                self.ctx.log.flaw(Flaw::new("prompt", text.clone()));
                self.send_init().await;
                self.take_in(&prompt).await;
                return Some(End::NotSimulated(text));
            }
        };
        self.send_init().await;
        self.take_in(&prompt).await;
        self.say_locally(&answer, arguments).await;
        Some(End::Local {
            command: answer.ran.map(|_| name.to_owned()),
            text: answer.text,
        })
    }

    pub(super) async fn say_locally(&mut self, answer: &Answer, arguments: &str) {
        let id = self.ctx.uuid();
        let mut message = payload::synthetic_message(&id, &answer.text);
        message["stop_reason"] = json!("end_turn");
        message["stop_sequence"] = Value::Null;
        let mut extra = json!({
            "local_command_source": format!("<local-command-stdout>{}</local-command-stdout>", answer.text),
        });
        match answer.ran {
            Some(command) => extra["local_command_run"] = json!({"command": command, "args": arguments}),
            None => extra["local_command_outcome"] = json!({"kind": "unavailable_headless"}),
        }
        self.ctx
            .say(Said {
                agent: None,
                kind: "assistant",
                kept: Some(json!({"message": message})),
                message,
                extra,
                shown: true,
            })
            .await;
    }

    fn cost_text(&self) -> String {
        let state = self.ctx.state();
        cost::text(&state.used, state.api_time, self.ctx.log.elapsed())
    }

    fn context_text(&self) -> String {
        let usage = control::context_usage(&self.ctx);
        let mut text = format!(
            "## Context Usage\n\n**Model:** {}  \n**Tokens:** {} / {} ({}%)\n\n### Estimated usage by category\n\n| Category | \
             Tokens |\n|----------|--------|",
            usage["model"].as_str().unwrap_or_default(),
            usage["totalTokens"],
            usage["maxTokens"],
            usage["percentage"],
        );
        for category in usage["categories"].as_array().into_iter().flatten() {
            let name = category["name"].as_str().unwrap_or_default();
            text.push_str(&format!("\n| {name} | {} |", category["tokens"]));
        }
        text
    }

    fn model_text(&self, name: &str) -> String {
        let mut state = self.ctx.state();
        if name.is_empty() {
            let mut shown = shown_model(&state.model);
            if state.model == payload::MODEL {
                shown.push_str(" (default)");
            }
            return format!("Current model: `{shown}`\nUsage: /model <name>.");
        }
        state.model = payload::resolve_model(name);
        format!(
            "Set model to `{}` for this session only",
            shown_model(&state.model)
        )
    }

    fn mcp_text(&self) -> String {
        let status = super::mcp::status(&self.ctx);
        let servers = status["mcpServers"].as_array().into_iter().flatten();
        let lines: Vec<String> = servers
            .map(|server| {
                let text = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
                format!("{}: {}", text("name"), text("status"))
            })
            .collect();
        let usage =
            "Usage: /mcp [reconnect|enable|disable [<server>|all]]. With no server name, applies to all.";
        if lines.is_empty() {
            return format!("No MCP servers are configured. Add one with `claude mcp add`.\n{usage}");
        }
        format!("{}\n{usage}", lines.join("\n"))
    }

    /// Begins another conversation, with another id.
    async fn clear(&mut self, prompt: &Prompt) -> End {
        let _ = self
            .fire("SessionEnd", Some("clear"), None, json!({"reason": "clear"}))
            .await;
        background::stop_everything(&self.ctx);
        let id = self.ctx.uuid();
        // A prompt that came without one has an id of the CLI's own.
        let cause = prompt.uuid.clone().unwrap_or_else(|| self.ctx.uuid());
        let reset = json!({
            "type": "conversation_reset", "user_message_uuid": cause, "new_conversation_id": id, "trigger": "clear", "uuid": id,
            "session_id": self.ctx.state().session_id, "timestamp": self.ctx.timestamp(),
        });
        self.ctx.send(reset).await;
        background::send_list(&self.ctx).await;
        self.ctx.send_mirror().await;
        {
            let mut state = self.ctx.state();
            state.session_id = state.ids.uuid();
            state.used.clear();
            state.used_since.clear();
            state.api_time = std::time::Duration::ZERO;
            state.history = 0;
            state.prompts = 0;
            state.context = 0;
            state.dropped = 0;
            state.instructions = Some("session_start");
            state.resumed = false;
            state.past.clear();
            state.title = None;
            state.subagents = super::subagent::Stats::default();
            let session_id = state.session_id.clone();
            drop(state);
            self.ctx.keep(|transcript| transcript.reset(&session_id));
        }
        self.ctx
            .fire("SessionStart", Some("clear"), None, json!({"source": "clear"}))
            .await;
        self.send_init().await;
        self.take_in(prompt).await;
        End::Local {
            command: Some("clear".to_owned()),
            text: String::new(),
        }
    }
}

fn effort_text(level: &str) -> String {
    match level {
        "" => "Current effort level: medium".to_owned(),
        level => format!("Set effort level to {level}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_shown_by_name() {
        assert_eq!(shown_model("claude-opus-5-5"), "Opus 5.5");
        assert_eq!(shown_model("claude-haiku-5-5"), "Haiku 5.5");
        assert_eq!(shown_model("x"), "X");
    }
}
