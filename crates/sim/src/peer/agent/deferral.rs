//! Calls that a hook defers: this process ends the turn, and the one that resumes the session goes on with it.

use serde_json::{Value, json};

use super::brain::CallResult;
use super::caller::ModelCall;
use super::context::{Context, Priority, QueuedPrompt};
use super::transcript::Deferred;
use super::turn::{End, Turn};

/// The prompt that the CLI gives itself.
pub(super) const PROMPT: &str = "Continue from where you left off.";

/// Announces that a deferred call is about to be taken up. Gives the prompt that stands for it.
pub(super) async fn announce(ctx: &Context) -> QueuedPrompt {
    let prompt = QueuedPrompt {
        uuid: Some(ctx.uuid()),
        text: PROMPT.to_owned(),
        message: json!({"role": "user", "content": PROMPT}),
        priority: Priority::Next,
        origin: None,
        query: true,
        composed: true,
    };
    let timestamp = ctx.timestamp();
    ctx.keep(|transcript| {
        transcript.enqueue(PROMPT, timestamp.clone());
        transcript.dequeue(timestamp);
    });
    ctx.send_lifecycle(&prompt, "started").await;
    prompt
}

impl Turn {
    /// Records that a call waits for a decision, for the process that resumes the session.
    pub(super) fn keep_deferred(&self, call: &Value) {
        if self.agent.is_some() {
            return;
        }
        let attachment = json!({
            "type": "hook_deferred_tool", "toolUseID": call["id"], "toolName": call["name"], "toolInput": call["input"],
            "hookName": "settings", "hookEvent": "PreToolUse", "permissionMode": self.ctx.state().mode,
        });
        let uuid = self.ctx.uuid();
        self.ctx
            .record(None, "attachment", &uuid, json!({"attachment": attachment}));
    }

    /// Makes a deferred call, before the turn begins for the host.
    pub(super) async fn take_up(&mut self, deferred: &Deferred) -> Result<Vec<CallResult>, End> {
        if self.missing(&deferred.name).is_some() {
            return Err(End::Unavailable(
                json!({"id": deferred.id, "name": deferred.name, "input": deferred.input}),
            ));
        }
        let prompt_id = {
            let mut tally = self.tally();
            tally.last_assistant.clone_from(&deferred.answer);
            tally.prompt_id.take()
        };
        // What comes of the call stands directly behind it.
        self.ctx.keep(|transcript| transcript.go_back(&deferred.answer));
        self.hands.take(ModelCall::new(
            &deferred.id,
            &deferred.name,
            deferred.input.clone(),
        ));
        let hands = self.hands.clone();
        let results = hands.beside(self.finish_calls()).await?;
        {
            let mut tally = self.tally();
            tally.prompt_id.clone_from(&prompt_id);
            // It counts for the turn in which the model made it.
            tally.user_lines = 0;
        }
        let fields = json!({
            "promptId": prompt_id, "message": {"role": "user", "content": PROMPT}, "isMeta": true,
            "permissionMode": self.ctx.state().mode, "promptSource": "system", "turnOrigin": "system",
        });
        let uuid = self.ctx.uuid();
        self.ctx.record(None, "user", &uuid, fields);
        if self.tally().stopped_by_hook {
            return Err(End::HookStopped);
        }
        Ok(results)
    }
}
