//! The sessions of subagents.

use agent_client_protocol::v1::schema::{
    ContentBlock, Error, ErrorStopReason, IdleStateUpdate, IdleStopReason, RequiresActionStateUpdate,
    RunningStateUpdate, SessionCancelCapabilities, SessionId, SessionMessage, SessionUpdate, StateUpdate,
    SubagentSessionCapabilities, SubagentUpdate, TextContent,
};

use crate::error;
use crate::event::{ChildSession, ChildState, ChildWork, PeerMessage, Status};

pub(super) fn announced(child: ChildSession) -> SessionUpdate {
    let mut update = SubagentUpdate::new(SessionId::new(child.id));
    if let Some(title) = child.title {
        update = update.title(title);
    }
    if let Some(description) = child.description {
        update = update.description(description);
    }
    let cancel = child
        .can_cancel
        .unwrap_or(false)
        .then(SessionCancelCapabilities::new);
    SessionUpdate::SubagentUpdate(update.capabilities(SubagentSessionCapabilities::new().cancel(cancel)))
}

pub(super) fn state(state: ChildState) -> SessionUpdate {
    let work = match state.work {
        ChildWork::Running => StateUpdate::Running(RunningStateUpdate::new()),
        ChildWork::RequiresAction => StateUpdate::RequiresAction(RequiresActionStateUpdate::new()),
        ChildWork::Idle(end, failure) => {
            let reason = end.map(|end| match end {
                Status::Completed => IdleStopReason::EndTurn,
                Status::Failed => {
                    let error = failure.map(|why| Error::from(error::internal(why)));
                    IdleStopReason::Error(ErrorStopReason::new().error(error))
                }
                _ => IdleStopReason::Cancelled,
            });
            StateUpdate::Idle(IdleStateUpdate::new().stop_reason(reason))
        }
    };
    SessionUpdate::SubagentUpdate(SubagentUpdate::new(SessionId::new(state.id)).state(work))
}

pub(super) fn session_message(message: PeerMessage) -> SessionUpdate {
    let text = ContentBlock::Text(TextContent::new(message.text));
    let update = SessionMessage::new(message.message_id)
        .sender_session_id(SessionId::new(message.from))
        .recipient_session_id(SessionId::new(message.to))
        .content(vec![text]);
    SessionUpdate::SessionMessage(update)
}
