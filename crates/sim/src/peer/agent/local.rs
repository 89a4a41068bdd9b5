//! Slash commands that the CLI answers itself, without the model.

use serde_json::json;

use super::context::QueuedPrompt;
use super::turn::{End, Turn};
use super::{background, commands, not_simulated};
use crate::flaw::Flaw;

impl Turn {
    /// Ends a turn that uses what is not simulated.
    pub(super) async fn refuse_unsimulated(&mut self) -> Option<End> {
        let feature = not_simulated::used(&self.ctx, &self.prompts)?;
        Some(self.refuse(not_simulated::feature(feature)).await)
    }

    async fn refuse(&self, text: String) -> End {
        self.ctx.log.flaw(Flaw::new("prompt", text.clone()));
        self.send_init().await;
        for prompt in &self.prompts {
            self.take_in(prompt).await;
        }
        End::NotSimulated(text)
    }

    /// Answers a command of the CLI. `None` is for the model.
    pub(super) async fn answer_locally(&mut self) -> Option<End> {
        let [prompt] = &self.prompts[..] else {
            return None;
        };
        if self.ctx.config.no_commands || prompt.composed || !prompt.query {
            return None;
        }
        let (name, _) = commands::called(&prompt.text)?;
        if matches!(name, "clear" | "new" | "reset") {
            let prompt = prompt.clone();
            return Some(self.clear(&prompt).await);
        }
        let text = not_simulated::command(name)?;
        let own = commands::all(&self.ctx)
            .iter()
            .any(|command| command.name == name);
        match own {
            true => None,
            false => Some(self.refuse(text).await),
        }
    }

    /// Begins another conversation, with another id.
    async fn clear(&mut self, prompt: &QueuedPrompt) -> End {
        let _ = self
            .fire("SessionEnd", Some("clear"), None, json!({"reason": "clear"}))
            .await;
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
            state.api_time = std::time::Duration::ZERO;
            state.history = 0;
            state.prompts = 0;
            state.context = 0;
            state.instructions = Some("session_start");
            state.resumed = false;
            state.past.clear();
            state.title = None;
            state.subagents = super::subagent::Stats::default();
            let session_id = state.session_id.clone();
            drop(state);
            self.ctx.keep(|transcript| transcript.reset(&session_id));
        }
        background::link_agents(&self.ctx);
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
