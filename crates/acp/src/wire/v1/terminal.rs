//! The agent's terminals. Clients with the capability get the output piece by piece in `_meta`; others get a block of text.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    ContentBlock, Meta, SessionUpdate, TextContent, ToolCallContent, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::json;

use super::super::truncate;
use super::V1Encoder;
use crate::event::{CallContent, NewToolCall, TerminalChange, TerminalEvent};
use crate::tool::fenced;

/// The output of a terminal, as far as it is needed.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    /// The output that was not sent; for a block of text, all that is shown.
    text: Vec<u8>,
    /// How many bytes before `text` were dropped.
    dropped: usize,
    exit: Option<(Option<i32>, Option<String>)>,
}

impl V1Encoder {
    pub(super) fn begin_terminals(&mut self, call: &NewToolCall, meta: &mut Meta) {
        let terminals = call.content.iter().filter_map(|content| match content {
            CallContent::Terminal(id) => Some(id),
            _ => None,
        });
        for id in terminals {
            self.terminals.insert(id.clone(), Terminal::default());
            if self.client.terminals {
                meta.insert("terminal_info".to_owned(), json!({"terminal_id": &**id}));
            }
        }
    }

    /// A terminal changed. While its command runs, the change is sent at once, otherwise with the end of its call.
    pub(super) fn terminal(&mut self, change: TerminalChange) -> Option<SessionUpdate> {
        let shows_pieces = self.client.terminals;
        let terminal = self.terminals.get_mut(&change.id)?;
        match change.what {
            TerminalEvent::Opened { .. } => None,
            TerminalEvent::Exited { code, signal } => {
                terminal.exit = Some((code, signal));
                None
            }
            TerminalEvent::Output { bytes, is_live } => {
                terminal.push(
                    &bytes,
                    if shows_pieces {
                        usize::MAX
                    } else {
                        truncate::MOST_TEXT / 4
                    },
                );
                if !is_live {
                    return None;
                }
                let mut meta = Meta::new();
                let mut fields = ToolCallUpdateFields::new();
                match shows_pieces {
                    true => {
                        let data = terminal.take_text(false)?;
                        meta.insert(
                            "terminal_output".to_owned(),
                            json!({"terminal_id": &*change.id, "data": data}),
                        );
                    }
                    false => fields = fields.content(terminal.block()),
                }
                let meta = (!meta.is_empty()).then_some(meta);
                let update = ToolCallUpdate::new(change.call, fields).meta(meta);
                Some(SessionUpdate::ToolCallUpdate(update))
            }
        }
    }

    /// The call of a terminal ends: adds the unsent output to `meta`, or returns the block of text for other clients.
    pub(super) fn end_terminal(&mut self, id: &Arc<str>, meta: &mut Meta) -> Option<Vec<ToolCallContent>> {
        let mut terminal = self.terminals.remove(id)?;
        if !self.client.terminals {
            return terminal.block();
        }
        if let Some(data) = terminal.take_text(true) {
            let data = truncate::text(data, truncate::MOST_TEXT);
            meta.insert(
                "terminal_output".to_owned(),
                json!({"terminal_id": &**id, "data": data}),
            );
        }
        let (code, signal) = terminal.exit.unwrap_or_default();
        meta.insert(
            "terminal_exit".to_owned(),
            json!({"terminal_id": &**id, "exit_code": code, "signal": signal}),
        );
        None
    }
}

impl Terminal {
    /// Appends output, and keeps its end.
    fn push(&mut self, bytes: &[u8], most: usize) {
        self.text.extend_from_slice(bytes);
        if self.text.len() > most {
            let drop = self.text.len() - most;
            self.text.drain(..drop);
            self.dropped += drop;
        }
    }

    /// Takes the text, without an incomplete character at its end.
    fn take_text(&mut self, is_all: bool) -> Option<String> {
        let end = match std::str::from_utf8(&self.text) {
            Err(error) if error.error_len().is_none() && !is_all => error.valid_up_to(),
            _ => self.text.len(),
        };
        let rest = self.text.split_off(end);
        let taken = std::mem::replace(&mut self.text, rest);
        (!taken.is_empty()).then(|| String::from_utf8_lossy(&taken).into_owned())
    }

    fn block(&self) -> Option<Vec<ToolCallContent>> {
        let code = self
            .exit
            .as_ref()
            .and_then(|(code, _)| *code)
            .filter(|code| *code != 0);
        if self.text.is_empty() && code.is_none() {
            return None;
        }
        let mut text = String::new();
        if self.dropped > 0 {
            text.push_str(&format!("… ({} bytes before)\n", self.dropped));
        }
        text.push_str(&String::from_utf8_lossy(&self.text));
        if let Some(code) = code {
            let newline = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            text.push_str(&format!("{newline}Exit code {code}"));
        }
        let text = fenced("console", &text);
        Some(vec![ContentBlock::Text(TextContent::new(text)).into()])
    }
}
