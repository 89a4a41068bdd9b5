//! What the stored session of a try shows that a killed program left.

use outrigger::Session;
use outrigger::protocol::Message;
use outrigger::protocol::inbound::StopReason;
use outrigger::protocol::shared::ContentBlock;

use super::JobAnswer;
use crate::tool_watch::STRUCTURED_OUTPUT;

/// What there is of a try.
#[derive(Debug)]
pub(super) enum Stored {
    /// The model's answer.
    Answer(JobAnswer),
    /// The model called a tool, and has not answered.
    Tools,
    /// The model called no tool, and has not answered.
    Nothing,
    /// No session is stored, or it cannot be read.
    Unknown,
}

/// Reads the conversation of a resumed session.
pub(super) async fn read(session: &Session, wants_output: bool) -> Stored {
    let Ok(mut history) = session.history().await else {
        return Stored::Unknown;
    };
    let (mut text, mut output, mut tools, mut is_over, mut last) = (String::new(), None, false, false, None);
    while let Some(frame) = history.next_frame().await {
        let Ok(frame) = frame else { return Stored::Unknown };
        let Ok(Message::Assistant(message)) = frame.decode() else {
            // A prompt or the result of a tool: the model has not answered it yet.
            is_over = false;
            continue;
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
                    output = Some(call.input.clone())
                }
                ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_) => {}
                _ => tools = true,
            }
        }
        is_over = message.error.is_none() && message.message.stop_reason == Some(StopReason::EndTurn);
    }
    let has_output = output.is_some();
    match (wants_output, is_over) {
        (true, _) if has_output => Stored::Answer(JobAnswer {
            text,
            output,
            is_recovered: true,
        }),
        (false, true) => Stored::Answer(JobAnswer {
            text,
            output: None,
            is_recovered: true,
        }),
        _ if tools => Stored::Tools,
        _ => Stored::Nothing,
    }
}
