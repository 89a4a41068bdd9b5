//! The checksum of an event: SQLite has none of its own, and a byte that a disk turned would be another word in a text.

use crate::event::LogEvent;

/// Of all that an event is.
pub(super) fn of(event: &LogEvent) -> i64 {
    let mut sum = crc32fast::Hasher::new();
    let mut part = |bytes: &[u8]| {
        // The length first, so that nothing moves from one part to the next.
        sum.update(&(bytes.len() as u64).to_le_bytes());
        sum.update(bytes);
    };
    part(event.session_id.as_str().as_bytes());
    for number in [event.seq, event.epoch, event.at] {
        part(&number.to_le_bytes());
    }
    part(event.event_id.as_bytes());
    part(event.source.as_str().as_bytes());
    part(event.actor.as_deref().unwrap_or_default().as_bytes());
    part(&[u8::from(event.actor.is_some())]);
    part(event.kind.as_bytes());
    part(event.payload.get().as_bytes());
    sum.finalize().into()
}
