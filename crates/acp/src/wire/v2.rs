//! Encodes events as `session/update`s of the draft of version 2: it has updates for terminals of the agent and for the state of the
//! session.

mod call;
pub(crate) mod convert;
mod patch;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use agent_client_protocol::v2::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, BackgroundTerminal, BackgroundToolCall,
    BackgroundWork, Command as WireCommand, CompactionId, CompactionStatus, CompactionUpdate,
    ConfigOptionUpdate, ContentBlock, ContentChunk, Cost, ErrorStopReason, IdleStateUpdate, ImageContent,
    MessageId, Notice as WireNotice, NoticeSeverity, PlanEntry as WirePlanEntry, PlanEntryPriority,
    PlanEntryStatus, PlanUpdate, PlanUpdateContent, RequiresActionStateUpdate, ResourceLink,
    RunningStateUpdate, SessionInfoUpdate, SessionUpdate, StateUpdate, StopReason, TextCommandInput,
    TextContent, ToolCallLocation, ToolCallUpdate, ToolKind, UsageUpdate, UserMessage,
};
use serde_json::{Value, json};

use super::{notice_data, ours, parent_meta, status_name, truncate};
use crate::event::{
    CallChange, Chunk, Command, Compaction, Content, Event, Extra, Kind, Location, Notice, PlanEntry,
    PlanStatus, Severity, State, Status, Subagent, Usage,
};
use crate::outcome::End;
use crate::reduce::BackgroundCall;

/// The id of the only plan of a session.
const PLAN: &str = "plan";

/// The state of the session, and its background work. `end` is the result of the work that just ended.
pub(crate) fn state(doing: State, end: Option<End>, background: Vec<BackgroundCall>) -> SessionUpdate {
    let work = background
        .into_iter()
        .map(|background| match background.is_terminal {
            true => BackgroundWork::Terminal(BackgroundTerminal::new(background.call)),
            false => BackgroundWork::ToolCall(BackgroundToolCall::new(background.call)),
        });
    let work: Vec<_> = work.collect();
    SessionUpdate::StateUpdate(match doing {
        State::Running => StateUpdate::Running(RunningStateUpdate::new().background(work)),
        State::RequiresAction => {
            StateUpdate::RequiresAction(RequiresActionStateUpdate::new().background(work))
        }
        State::Idle => {
            let idle = IdleStateUpdate::new().background(work);
            StateUpdate::Idle(match end {
                None => idle,
                Some(Ok(end)) => idle
                    .stop_reason(convert::reason(end.stop_reason))
                    .usage(end.usage.as_ref().map(convert::usage))
                    .meta(end.meta),
                Some(Err(error)) => {
                    let error = ErrorStopReason::new().error(draft::Error::from(error));
                    idle.stop_reason(StopReason::Error(error))
                }
            })
        }
    })
}

/// A prompt that became part of the conversation.
pub(crate) fn prompted(id: &str, said: Vec<ContentBlock>) -> SessionUpdate {
    SessionUpdate::UserMessage(UserMessage::new(id.to_owned()).content(said))
}

pub(crate) fn options(options: &[acp::SessionConfigOption]) -> SessionUpdate {
    SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(convert::options(options)))
}

/// Encodes the events of one session.
#[derive(Debug)]
pub(crate) struct V2Encoder {
    /// The prefix of ids for messages without an id.
    name: String,
    numbered: u64,
    /// `_meta.claudeCode.subagentText`: whether to send text of subagents, marked with their call.
    subagent_text: bool,
}

impl V2Encoder {
    /// `name` is unique among the encoders of a session.
    pub(crate) fn new(name: String, subagent_text: bool) -> Self {
        Self {
            name,
            numbered: 0,
            subagent_text,
        }
    }

    /// The updates for an event, in order; mostly one. The mode is a config option here, which the session sends.
    pub(crate) fn encode(&mut self, event: Event) -> Vec<SessionUpdate> {
        let update = match event {
            Event::User(chunk) => self.content_chunk(chunk).map(SessionUpdate::UserMessageChunk),
            Event::Text(chunk) => self.content_chunk(chunk).map(SessionUpdate::AgentMessageChunk),
            Event::Thought(chunk) => self.content_chunk(chunk).map(SessionUpdate::AgentThoughtChunk),
            Event::Call(call) => Some(call::begun(*call)),
            Event::CallChanged(change) => Some(call::changed(*change)),
            Event::Terminal(change) => Some(call::terminal(change)),
            Event::Plan(entries) => Some(plan(entries)),
            Event::Commands(list) => Some(commands(list)),
            Event::Mode(_) | Event::ConfigChanged => None,
            Event::Title(text) => Some(title(text)),
            Event::Usage(used) => Some(usage(used)),
            Event::Compaction(change) => Some(compaction(change)),
            Event::Notice(shown) => Some(notice(shown)),
            Event::Subagent(agent) => Some(subagent(&agent)),
            // The sessions of subagents are for version 1.
            Event::RecordedAgent(_)
            | Event::AgentPrompt(_)
            | Event::Child(_)
            | Event::ChildState(_)
            | Event::Told(_) => None,
            Event::Extra(data) => Some(extra(*data)),
        };
        update.into_iter().collect()
    }

    /// The call in a permission request.
    pub(crate) fn shown(&self, change: CallChange) -> ToolCallUpdate {
        call::change(change)
    }

    fn content_chunk(&mut self, chunk: Chunk) -> Option<ContentChunk> {
        if chunk.parent.is_some() && !self.subagent_text {
            return None;
        }
        let id = chunk.message_id.map(MessageId::new).unwrap_or_else(|| {
            self.numbered += 1;
            MessageId::new(format!("{}-{}", self.name, self.numbered))
        });
        let parent = parent_meta(chunk.parent.as_deref());
        Some(ContentChunk::new(block(chunk.content), id).meta(parent))
    }
}

shared!();

fn plan(entries: Vec<PlanEntry>) -> SessionUpdate {
    let plan = PlanUpdateContent::items(PLAN, plan_entries(entries));
    SessionUpdate::PlanUpdate(PlanUpdate::new(plan))
}

fn command(command: Command) -> AvailableCommand {
    let hint = command.hint.map(TextCommandInput::new);
    let input = hint.map(AvailableCommandInput::Text);
    AvailableCommand::Command(WireCommand::new(command.name, command.description).input(input))
}

#[cfg(test)]
mod tests;
