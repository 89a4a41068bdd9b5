//! Tool calls and terminals.

use agent_client_protocol::v2::schema::{
    AbsolutePath, Diff as WireDiff, DiffChange, DiffPatch, SessionUpdate, Terminal, TerminalExitStatus,
    TerminalId, TerminalOutputChunk, TerminalUpdate, TextContent, ToolCallContent, ToolCallStatus,
    ToolCallUpdate,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::{about, raw, truncate};
use super::{ContentBlock, block, kind, locations, patch};
use crate::event::{
    CallChange, CallContent, Content, Diff, NewToolCall, Status, TerminalChange, TerminalEvent,
};

pub(super) fn begun(call: NewToolCall) -> SessionUpdate {
    let mut update = ToolCallUpdate::new(call.id)
        .name(call.tool.to_string())
        .title(call.title)
        .kind(kind(call.kind))
        .status(status(call.status))
        .content(contents(call.content))
        .locations(locations(call.locations))
        .meta(about(&call.tool, call.parent.as_deref(), None));
    if let Some(input) = call.input.as_ref().and_then(raw) {
        update = update.raw_input(input);
    }
    SessionUpdate::ToolCallUpdate(update)
}

pub(super) fn changed(change: CallChange) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(self::change(change))
}

pub(super) fn change(change: CallChange) -> ToolCallUpdate {
    let meta = about(&change.tool, change.parent.as_deref(), change.elapsed);
    let mut update = ToolCallUpdate::new(change.id).meta(meta);
    if let Some(title) = change.title {
        update = update.title(title);
    }
    if let Some(known) = change.kind {
        update = update.kind(kind(known));
    }
    if let Some(known) = change.status {
        update = update.status(status(known));
    }
    if let Some(content) = change.content {
        update = update.content(contents(content));
    }
    if let Some(known) = change.locations {
        update = update.locations(locations(known));
    }
    if let Some(input) = change.input.as_ref().and_then(raw) {
        update = update.raw_input(input);
    }
    if let Some(output) = change.output.as_ref().and_then(raw) {
        update = update.raw_output(output);
    }
    update
}

pub(super) fn terminal(change: TerminalChange) -> SessionUpdate {
    let id = TerminalId::new(change.id);
    match change.what {
        TerminalEvent::Opened { command, cwd } => {
            let mut update = TerminalUpdate::new(id).command(command);
            if let Some(cwd) = cwd {
                update = update.cwd(AbsolutePath::new(cwd));
            }
            SessionUpdate::TerminalUpdate(update)
        }
        TerminalEvent::Output { bytes, .. } => {
            SessionUpdate::TerminalOutputChunk(TerminalOutputChunk::new(id, STANDARD.encode(bytes)))
        }
        TerminalEvent::Exited { code, signal } => {
            let exit = TerminalExitStatus::new()
                .exit_code(code.map(i64::from))
                .signal(signal);
            SessionUpdate::TerminalUpdate(TerminalUpdate::new(id).exit_status(exit))
        }
    }
}

fn contents(contents: Vec<CallContent>) -> Vec<ToolCallContent> {
    contents.into_iter().map(content).collect()
}

fn content(content: CallContent) -> ToolCallContent {
    match content {
        CallContent::Content(Content::Text(text)) => {
            ContentBlock::Text(TextContent::new(truncate::text(text, truncate::MOST_TEXT))).into()
        }
        CallContent::Content(content) => block(content).into(),
        CallContent::Diff(diff) => of_diff(&diff).into(),
        CallContent::Terminal(id) => Terminal::new(TerminalId::new(id)).into(),
    }
}

/// The changed file, with a patch unless it is too long.
fn of_diff(diff: &Diff) -> WireDiff {
    let path = AbsolutePath::new(diff.path.clone());
    let change = match diff.old {
        Some(_) => DiffChange::modify(path),
        None => DiffChange::add(path),
    };
    let size = diff.new.len() + diff.old.as_ref().map_or(0, String::len);
    let patch = (size <= truncate::MOST_DIFF).then(|| DiffPatch::new(patch::of(diff)));
    WireDiff::new(vec![change]).with_patch(patch)
}

fn status(status: Status) -> ToolCallStatus {
    match status {
        Status::Pending => ToolCallStatus::Pending,
        Status::InProgress => ToolCallStatus::InProgress,
        Status::Completed => ToolCallStatus::Completed,
        Status::Failed => ToolCallStatus::Failed,
        Status::Cancelled => ToolCallStatus::Cancelled,
    }
}
