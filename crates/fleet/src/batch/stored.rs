//! What the stored session of a try shows that a killed program left.

use outrigger::protocol::inbound::{StopReason, SystemMessage};
use outrigger::protocol::shared::ContentBlock;
use outrigger::protocol::{Message, RawJson};
use outrigger::sessions::MessageOptions;
use outrigger::{History, Session};

use super::JobAnswer;
use crate::tool_watch::STRUCTURED_OUTPUT;

/// What there is of a try.
#[derive(Debug)]
pub(super) enum Stored {
    /// The model's answer.
    Answer(JobAnswer),
    /// The model may have called a tool, and has not answered.
    Tools,
    /// The model called no tool, and has not answered.
    Nothing,
}

/// Reads the conversation of a resumed session.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn read(session: &Session, wants_output: bool) -> outrigger::Result<Stored> {
    let all = MessageOptions::new().include_system_messages(true);
    judge(session.history_with(&all).await?, wants_output).await
}

async fn judge(mut history: History, wants_output: bool) -> outrigger::Result<Stored> {
    // A line that cannot be read may have been the call of a tool, and a session that can be resumed has one line at least.
    let mut tools = history.damaged() > 0 || history.is_empty();
    let (mut text, mut is_over, mut last) = (String::new(), false, None);
    // A call for structured output, and what of it the CLI took.
    let mut called: Option<(String, RawJson)> = None;
    let mut output = None;
    while let Some(frame) = history.next_frame().await {
        let message = match frame?.decode() {
            Ok(Message::Assistant(message)) => message,
            Ok(Message::System(note)) => {
                // What came before is not in the history.
                tools |= matches!(*note, SystemMessage::CompactBoundary(_));
                continue;
            }
            Ok(Message::User(message)) => {
                // A prompt or the result of a tool: the model has not answered it yet.
                is_over = false;
                for block in message.message.content.blocks() {
                    if let (ContentBlock::ToolResult(result), Some((id, given))) = (block, &called)
                        && result.tool_use_id == *id
                        && result.is_error != Some(true)
                    {
                        output = Some(given.clone());
                    }
                }
                continue;
            }
            Ok(_) => continue,
            // It may be a message of the model.
            Err(_) => {
                (is_over, tools) = (false, true);
                continue;
            }
        };
        if message.parent_tool_use_id.is_some() {
            continue;
        }
        // Each block of a message may come by itself.
        if last != Some(message.message.id.clone()) {
            text.clear();
            last = Some(message.message.id.clone());
        }
        for block in &message.message.content {
            match block {
                ContentBlock::Text(block) => text.push_str(&block.text),
                ContentBlock::ToolUse(call) if call.name == STRUCTURED_OUTPUT => {
                    called = Some((call.id.clone(), call.input.clone()));
                }
                ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_) => {}
                _ => tools = true,
            }
        }
        is_over = message.error.is_none() && message.message.stop_reason == Some(StopReason::EndTurn);
    }
    // The CLI ends the turn with the first output that fits the schema.
    let is_answered = if wants_output { output.is_some() } else { is_over };
    Ok(match (is_answered, tools) {
        (true, _) => Stored::Answer(JobAnswer {
            text,
            output,
            is_recovered: true,
        }),
        (false, true) => Stored::Tools,
        (false, false) => Stored::Nothing,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::fs::File;

    use outrigger::SessionId;
    use outrigger::sessions::Sessions;
    use serde_json::json;

    use super::*;

    /// What comes behind may be the call of a tool, or the answer.
    #[tokio::test]
    async fn a_history_that_breaks_off_says_nothing() {
        let place = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(place.path());
        let id: SessionId = "00000000-0000-4000-8000-00000000000a".parse().unwrap();
        let path = sessions.projects_dir().join(format!("-p/{id}.jsonl"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text: String = (0..200)
            .map(|n| {
                let uuid = |n: u32| format!("00000000-0000-4000-8000-{n:012}");
                let line = json!({
                    "type": "user", "uuid": uuid(n), "parentUuid": n.checked_sub(1).map(uuid), "sessionId": id,
                    "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": "do it"},
                });
                format!("{line}\n")
            })
            .collect();
        std::fs::write(&path, &text).unwrap();
        let open = async || {
            History::open(&sessions, &id, &MessageOptions::new())
                .await
                .unwrap()
        };
        assert!(matches!(judge(open().await, false).await, Ok(Stored::Nothing)));
        let history = open().await;
        // From here on it cannot be read.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(text.len() as u64 / 2).unwrap();
        let error = judge(history, false).await.unwrap_err();
        assert!(error.to_string().contains("rest of the conversation"), "{error}");
    }
}
