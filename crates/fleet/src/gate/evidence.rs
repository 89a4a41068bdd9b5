//! What the events and the outcome of a turn show about the API.

use std::time::{Duration, SystemTime};

use outrigger::protocol::inbound::{Message, RateLimitEvent, RateLimitStatus, SystemMessage};
use outrigger::{Cause, Event, Outcome};

/// What a turn shows about the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// The API refused a request for want of capacity; and the time that it gave.
    Limited(Option<Duration>),
    /// The API answered a request.
    Answered,
}

impl Evidence {
    pub(super) fn of_event(event: &Event) -> Option<Self> {
        match event {
            Event::MessageStart { model, .. } => {
                // Messages that the CLI writes itself say nothing about the API.
                let by_the_api = model.as_deref().is_some_and(|model| model != "<synthetic>");
                by_the_api.then_some(Self::Answered)
            }
            Event::Subagent(subagent) => Self::of_event(&subagent.event),
            Event::Message(message, _) => match &**message {
                Message::RateLimitEvent(event) => of_limit(event),
                Message::System(system) => match &**system {
                    SystemMessage::ApiRetry(retry) if is_limit(retry.error_status) => {
                        Some(Self::Limited(milliseconds(retry.retry_delay_ms)))
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn of_outcome(outcome: &Outcome) -> Option<Self> {
        let limited = match outcome.cause() {
            Some(Cause::RateLimit) => true,
            Some(Cause::Api { status }) => is_limit(status.map(u64::from)),
            _ => false,
        };
        // A success is no evidence by itself: a local command succeeds without the API.
        limited.then(|| Self::Limited(outcome.retry_after()))
    }
}

/// Too many requests, or the API is overloaded.
fn is_limit(status: Option<u64>) -> bool {
    matches!(status, Some(429 | 529))
}

fn of_limit(event: &RateLimitEvent) -> Option<Evidence> {
    let info = &event.rate_limit_info;
    // Whoever pays for what is beyond the limit may go on.
    let goes_on = info.is_using_overage == Some(true);
    if info.status != RateLimitStatus::Rejected || goes_on {
        return None;
    }
    let resets = info
        .resets_at
        .and_then(|at| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at)));
    let wait = resets.map(|at| at.duration_since(SystemTime::now()).unwrap_or_default());
    Some(Evidence::Limited(wait))
}

fn milliseconds(count: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(count / 1000.0).ok()
}
