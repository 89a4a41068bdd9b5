//! From an event of the log to the body of a message.

use jiff::Timestamp;
use outrigger::SessionId;
use outrigger::protocol::RawJson;
use outrigger_host::{Approval, LogEvent, Source, Webhook, WebhookEvent};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What a message is sent for, whatever a webhook asks for: events were removed before it got them.
const TRUNCATED: &str = "events_truncated";

/// The body of a message.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    /// When the event was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    data: Data<'a>,
}

/// Ids and states; only with content more than that.
#[derive(Serialize, Default)]
struct Data<'a> {
    session_id: &'a str,
    sequence_num: u64,
    #[serde(flatten)]
    facts: Facts,
    /// The event of the log. Not flattened, because that would not keep its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a RawJson>,
}

/// The fields of the payloads of the log that have no conversation in them.
#[derive(Serialize, Deserialize, Default)]
struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_cost_usd: Option<f64>,
}

/// A message without its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unsigned {
    pub(super) id: String,
    pub(super) body: String,
}

/// What a webhook is told of an event, if anything.
pub(super) fn kind(event: &LogEvent) -> Option<WebhookEvent> {
    #[derive(Deserialize)]
    struct Decided {
        state: String,
    }
    Some(match (event.source, &*event.kind) {
        (Source::Host, "session_state_changed") => WebhookEvent::SessionStateChanged,
        (Source::Host, "approval_opened") => WebhookEvent::ApprovalOpened,
        (Source::Host, "approval_superseded") => WebhookEvent::ApprovalSuperseded,
        (Source::Host | Source::Client, "approval_decided") => match event.payload.decode::<Decided>() {
            Ok(decided) if decided.state == "expired" => WebhookEvent::ApprovalExpired,
            _ => WebhookEvent::ApprovalDecided,
        },
        (Source::Worker, "result") => WebhookEvent::TurnResult,
        _ => return None,
    })
}

/// The approval that an event opened: its message says more about it.
pub(super) fn opened(event: &LogEvent) -> Option<Uuid> {
    let facts: Facts = event.payload.decode().ok()?;
    facts.approval_id.filter(|_| event.kind == "approval_opened")
}

/// The message for an event.
pub(super) fn message(
    webhook: &Webhook,
    event: &LogEvent,
    kind: WebhookEvent,
    approval: Option<&Approval>,
) -> serde_json::Result<Unsigned> {
    // A payload of another form is told by its ids.
    let mut facts: Facts = event.payload.decode().unwrap_or_default();
    if let Some(approval) = approval {
        facts.tool_name.clone_from(&approval.tool_name);
    }
    if matches!(kind, WebhookEvent::ApprovalDecided) {
        facts.decided_by.clone_from(&event.actor);
    }
    let millis = i64::try_from(event.at).unwrap_or_default();
    let body = Body {
        kind: kind.as_str(),
        timestamp: Timestamp::from_millisecond(millis).ok().map(|at| at.to_string()),
        data: Data {
            session_id: event.session_id.as_str(),
            sequence_num: event.seq,
            facts,
            event: webhook.content.then_some(&event.payload),
            request: approval
                .filter(|_| webhook.content)
                .map(|approval| &approval.request),
        },
    };
    Ok(Unsigned {
        id: format!("evt_{}_{}", event.session_id, event.seq),
        body: serde_json::to_string(&body)?,
    })
}

/// The message that the events up to a `seq` are gone.
pub(super) fn truncated(session: &SessionId, seq: u64) -> serde_json::Result<Unsigned> {
    let body = Body {
        kind: TRUNCATED,
        timestamp: None,
        data: Data {
            session_id: session.as_str(),
            sequence_num: seq,
            ..Data::default()
        },
    };
    Ok(Unsigned {
        id: format!("evt_{session}_{seq}_truncated"),
        body: serde_json::to_string(&body)?,
    })
}
