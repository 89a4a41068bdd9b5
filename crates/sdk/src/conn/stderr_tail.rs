//! The end of stderr, as evidence for the end of the process.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::redact::redacted;

/// The last bytes of stderr.
pub(super) struct StderrTail {
    kept: Mutex<TailBytes>,
    cap: usize,
}

#[derive(Default)]
struct TailBytes {
    bytes: VecDeque<u8>,
    /// Whether earlier bytes were dropped.
    cut: bool,
}

impl StderrTail {
    pub(super) fn new(cap: usize) -> Self {
        Self {
            kept: Mutex::default(),
            cap,
        }
    }

    pub(super) fn push(&self, chunk: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes.extend(chunk);
        let over = kept.bytes.len().saturating_sub(self.cap);
        kept.bytes.drain(..over);
        kept.cut |= over > 0;
    }

    /// The text without secrets.
    pub(super) fn text(&self, secrets: &[String]) -> String {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(kept.bytes.make_contiguous()).into_owned();
        redacted(text, secrets, kept.cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_bounded() {
        let tail = StderrTail::new(4);
        tail.push(b"a c");
        assert_eq!(tail.text(&[]), "a c");
        tail.push(b"d fg");
        // The rest of a cut word is not shown: it could be the end of a key.
        assert_eq!(tail.text(&[]), "… fg");
    }
}
