//! What must hold of bodies and cursors of clients, for inputs that a machine makes up.

use serde::de::DeserializeOwned;

use super::reading::cursor;
use super::sending::{SentEvents, frames};
use super::{schedules, sessions, tokens, webhooks};
use crate::token::Scope;

/// The first byte says what the rest is.
pub fn run(data: &[u8]) {
    let [kind, rest @ ..] = data else { return };
    match kind % 4 {
        0 => body_of_events(rest),
        1 => text_of_cursor(rest),
        2 => outrigger_host_hooks::laws(rest),
        _ => {
            read::<sessions::Create>(rest);
            read::<tokens::Issue>(rest);
            read::<tokens::Exchange>(rest);
            read::<webhooks::AddWebhook>(rest);
            read::<schedules::AddSchedule>(rest);
        }
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) {
    drop(serde_json::from_slice::<T>(body));
}

/// Frames keep their bytes and their order, and what the host takes as a decision needs the scope for decisions, and nothing else does.
fn body_of_events(body: &[u8]) {
    let Ok(sent) = serde_json::from_slice::<SentEvents>(body) else {
        return;
    };
    let count = sent.events.len();
    let Ok(frames) = frames("s", sent) else { return };
    assert!(count > 0, "nothing is sent, and accepted");
    assert_eq!(frames.len(), count, "a frame is lost");
    let mut left = body;
    for (scope, frame) in frames {
        let text = frame.get().as_bytes();
        let at = left.windows(text.len()).position(|window| window == text);
        assert!(at.is_some(), "{} is not in the body", frame.get());
        left = &left[at.unwrap_or_default() + text.len()..];
        if let Some(is_decision) = outrigger_host::is_decision(frame) {
            assert_eq!(
                is_decision,
                scope == Scope::Approve,
                "the scope is that of another frame"
            );
        }
    }
}

/// A cursor is a number in digits, and nothing that is like one.
fn text_of_cursor(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse::<u64>().ok().filter(|_| digits);
    assert_eq!(cursor(text).ok(), number);
}
