//! Compaction: a summary replaces the conversation, on request or because the context is full.

use std::time::Duration;

use serde_json::{Value, json};

use super::context::{Prompt, Said};
use super::hooks::{Cause, Fired};
use super::local::Answer;
use super::turn::{End, Turn};

/// The summary of a compacted conversation.
const SUMMARY: &str = "This session is being continued from a previous conversation that ran out of context. The summary \
     below covers the earlier portion of the conversation.\n\nSummary:\nA summary of the conversation so far.";

/// How many tokens the summary is taken to have.
const SUMMARY_TOKENS: u64 = 100;

/// How many tokens of the context are kept free.
pub(super) const BUFFER: u64 = 33_000;

/// How it came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Manual,
    Auto,
}

impl Trigger {
    fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

impl Turn {
    /// Puts a summary in the place of the conversation.
    pub(super) async fn compact_by_hand(&mut self, prompt: &Prompt, instructions: &str) -> End {
        let end = |text: &str| End::Local {
            command: Some("compact".to_owned()),
            text: text.to_owned(),
        };
        let began = self.ctx.log.elapsed();
        let compacting = json!({"status": "compacting"});
        self.ctx.send_system("status", compacting).await;
        let custom = (!instructions.is_empty()).then_some(instructions);
        let (blocked, before) = self.before_compaction(Trigger::Manual, custom).await;
        if blocked || self.ctx.state().history < 2 {
            self.send_uncompacted(blocked).await;
            self.send_init().await;
            let text = "Not enough messages to compact.";
            self.say_locally(&Answer::of("compact", text), instructions).await;
            return end(text);
        }
        let behind = self.behind_compaction(Trigger::Manual).await;
        let done = json!({"status": null, "compact_result": "success"});
        self.ctx.send_system("status", done).await;
        self.send_init().await;
        self.send_boundary(Trigger::Manual, self.ctx.log.elapsed().saturating_sub(began))
            .await;
        let message = json!({"role": "user", "content": SUMMARY});
        self.say_summary(message, json!({"isReplay": false, "isSynthetic": true}))
            .await;
        let hooks: Vec<String> = [("PreCompact", before), ("PostCompact", behind)]
            .into_iter()
            .filter(|(_, called)| *called)
            .map(|(event, _)| format!("{event} [callback] completed successfully"))
            .collect();
        let done = format!(
            "<local-command-stdout>Compacted {}</local-command-stdout>",
            hooks.join("\n")
        );
        self.ctx
            .say(Said {
                agent: None,
                kind: "user",
                message: json!({"role": "user", "content": done}),
                extra: json!({"isReplay": true}),
                shown: true,
                kept: None,
            })
            .await;
        self.ctx.keep(|transcript| transcript.prompted(&prompt.text));
        end("")
    }

    /// Puts a summary in the place of the conversation if the context is full; once in a turn.
    pub(super) async fn compact_if_full(&mut self) {
        let full = {
            let state = self.ctx.state();
            state.context >= self.ctx.config.context_window.saturating_sub(BUFFER)
        };
        if self.agent.is_some() || self.compacted || !full {
            return;
        }
        self.compacted = true;
        let began = self.ctx.log.elapsed();
        let (blocked, _) = self.before_compaction(Trigger::Auto, None).await;
        let compacting = json!({"status": "compacting", "compact_output_chars": 0});
        self.ctx.send_system("status", compacting).await;
        // The prompt of this turn is not to be lost, and one before it makes no summary.
        if blocked || self.ctx.state().prompts < 3 {
            self.send_uncompacted(blocked).await;
            return;
        }
        self.behind_compaction(Trigger::Auto).await;
        let done = json!({"status": null, "compact_result": "success"});
        self.ctx.send_system("status", done).await;
        self.send_boundary(Trigger::Auto, self.ctx.log.elapsed().saturating_sub(began))
            .await;
        let message = json!({"role": "user", "content": [{"type": "text", "text": SUMMARY}]});
        self.user_lines += 1;
        self.say_summary(message, json!({"isSynthetic": true})).await;
        self.ctx.state().prompts = 2;
    }

    async fn say_summary(&mut self, message: Value, extra: Value) {
        {
            let mut state = self.ctx.state();
            state.history = 0;
            state.prompts = 1;
            state.context = SUMMARY_TOKENS;
            state.instructions = Some("compact");
        }
        self.ctx
            .say(Said {
                agent: None,
                kind: "user",
                kept: Some(json!({"message": message, "isCompactSummary": true, "promptId": self.prompt_id})),
                message,
                extra,
                shown: true,
            })
            .await;
    }

    async fn send_uncompacted(&self, blocked: bool) {
        let error = if blocked {
            "blocked_by_hook"
        } else {
            "too_few_groups"
        };
        let fields = json!({"status": null, "compact_result": "failed", "compact_error": error});
        self.ctx.send_system("status", fields).await;
    }

    /// PreCompact: whether a hook blocks it, and whether any hook was called.
    async fn before_compaction(&self, trigger: Trigger, custom: Option<&str>) -> (bool, bool) {
        let trigger = trigger.as_str();
        let fields = json!({"trigger": trigger, "custom_instructions": custom});
        let fired = self.fire("PreCompact", Some(trigger), None, fields).await;
        let fired = fired.unwrap_or_default();
        let blocks = |fired: &Fired| matches!(fired, Fired::Answer(answer) if answer["decision"] == "block");
        (fired.iter().any(blocks), !fired.is_empty())
    }

    /// After the summary: the end of the agent that wrote it, the new beginning, and PostCompact. Returns whether a
    /// PostCompact hook was called.
    async fn behind_compaction(&self, trigger: Trigger) -> bool {
        if self.ctx.is_hooked("SubagentStop") {
            let (id, _) = self.ctx.state().ids.agent();
            let path = self.agent_path(&id);
            let fields = json!({
                "stop_hook_active": false, "agent_transcript_path": path, "last_assistant_message": SUMMARY,
                "background_tasks": [], "session_crons": [],
            });
            let cause = Cause {
                agent: Some((&id, "")),
                ..Cause::session(self.prompt_id.as_deref())
            };
            let asked = self
                .ctx
                .call_hooks("SubagentStop", Some(""), None, &cause, fields)
                .await;
            self.ctx.collect(asked).await;
        }
        let model = self.ctx.state().model.clone();
        let fields = json!({"source": "compact", "model": model});
        let _ = self.fire("SessionStart", Some("compact"), None, fields).await;
        let trigger = trigger.as_str();
        let fields = json!({"trigger": trigger, "compact_summary": SUMMARY});
        let fired = self.fire("PostCompact", Some(trigger), None, fields).await;
        fired.is_ok_and(|fired| !fired.is_empty())
    }

    /// Where the conversation was cut.
    async fn send_boundary(&mut self, trigger: Trigger, took: Duration) {
        let tip = self.ctx.keep(super::transcript::Transcript::cut).flatten();
        let tip = tip.unwrap_or_else(|| self.ctx.uuid());
        let (uuid, anchor) = (self.ctx.uuid(), self.ctx.uuid());
        let (tokens, dropped, keeps) = {
            let mut state = self.ctx.state();
            let before = state.context;
            if trigger == Trigger::Auto {
                state.dropped += before.saturating_sub(SUMMARY_TOKENS);
            }
            (before, state.dropped, state.prompts > 1)
        };
        let (ms, trigger) = (took.as_millis() as u64, trigger.as_str());
        let kept = json!({
            "subtype": "compact_boundary", "content": "Conversation compacted", "level": "info", "isMeta": false,
            "logicalParentUuid": tip,
            "compactMetadata": {
                "trigger": trigger, "preTokens": tokens, "postTokens": SUMMARY_TOKENS, "durationMs": ms,
            },
        });
        self.ctx.record(None, "system", &uuid, kept);
        let mut metadata = json!({
            "trigger": trigger, "pre_tokens": tokens, "post_tokens": SUMMARY_TOKENS,
            "cumulative_dropped_tokens": dropped, "duration_ms": ms,
        });
        // Of a short conversation nothing is kept word for word.
        if keeps {
            metadata["preserved_segment"] =
                json!({"head_uuid": tip, "anchor_uuid": anchor, "tail_uuid": tip});
            metadata["preserved_messages"] =
                json!({"anchor_uuid": anchor, "uuids": [tip], "all_uuids": [tip]});
        }
        let mut line = json!({
            "type": "system", "subtype": "compact_boundary", "session_id": self.ctx.state().session_id, "uuid": uuid,
            "compact_metadata": metadata,
        });
        line["logical_parent_uuid"] = json!(tip);
        self.ctx.send(line).await;
    }
}
