//! Passes the lines of the CLI's stderr to a callback.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

/// How many lines, and how many bytes, may wait for the callback. More is dropped.
const LINES: usize = 1024;
const BYTES: usize = 1 << 20;

/// The longest line. A longer one comes in parts.
const LINE: usize = 16 * 1024;

/// The callback.
#[derive(Clone)]
pub(crate) struct StderrCallback(Arc<dyn Fn(&str) + Send + Sync>);

impl StderrCallback {
    pub(crate) fn new(callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    fn call(&self, line: &str) {
        if catch_unwind(AssertUnwindSafe(|| (self.0)(line))).is_err() {
            tracing::warn!("the stderr callback panicked");
        }
    }
}

/// The lines that were dropped, since the callback was too slow.
#[derive(Debug, Clone, Copy, Default)]
struct DroppedLines {
    lines: u64,
    bytes: u64,
}

impl fmt::Display for DroppedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, bytes } = self;
        write!(f, "[outrigger: {lines} lines of {bytes} bytes were dropped here]")
    }
}

impl DroppedLines {
    fn report(self, callback: &StderrCallback) {
        if self.lines > 0 {
            tracing::warn!(self.lines, self.bytes, "the stderr callback is too slow");
            callback.call(&self.to_string());
        }
    }
}

struct WaitingLine {
    /// The lines that were dropped before this one.
    missed: DroppedLines,
    line: String,
}

/// Cuts bytes into lines, and passes them on without waiting.
pub(crate) struct Lines {
    begun: Vec<u8>,
    /// The beginning of the line was passed on already.
    is_cut: bool,
    missed: DroppedLines,
    bytes: Arc<AtomicUsize>,
    queue: mpsc::Sender<WaitingLine>,
    /// The last dropped lines, if no line comes after them.
    last: Arc<Mutex<DroppedLines>>,
}

impl Lines {
    /// The callback runs on a thread of its own, so that it may block. The thread ends when these lines do.
    pub(crate) fn to(callback: StderrCallback) -> std::io::Result<Self> {
        let (queue, mut lines) = mpsc::channel::<WaitingLine>(LINES);
        let (bytes, last) = (
            Arc::<AtomicUsize>::default(),
            Arc::<Mutex<DroppedLines>>::default(),
        );
        let (waiting, missed) = (Arc::clone(&bytes), Arc::clone(&last));
        let (runtime, span) = (tokio::runtime::Handle::current(), tracing::Span::current());
        std::thread::Builder::new()
            .name("outrigger-stderr".to_owned())
            .spawn(move || {
                let (_runtime, _span) = (runtime.enter(), span.entered());
                while let Some(WaitingLine { missed, line }) = lines.blocking_recv() {
                    missed.report(&callback);
                    callback.call(&line);
                    waiting.fetch_sub(line.len(), Ordering::Relaxed);
                }
                let missed = *missed.lock().unwrap_or_else(PoisonError::into_inner);
                missed.report(&callback);
            })?;
        Ok(Self {
            begun: Vec::new(),
            is_cut: false,
            missed: DroppedLines::default(),
            bytes,
            queue,
            last,
        })
    }

    /// Takes what was read.
    pub(crate) fn push(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            let room = LINE - self.begun.len();
            let end = chunk.iter().take(room).position(|byte| *byte == b'\n');
            let (part, rest) = match end {
                Some(end) => (&chunk[..end], &chunk[end + 1..]),
                None => chunk.split_at(room.min(chunk.len())),
            };
            self.begun.extend_from_slice(part);
            chunk = rest;
            let is_full = end.is_none() && self.begun.len() == LINE;
            let is_told = self.begun.is_empty() && self.is_cut;
            if is_full || (end.is_some() && !is_told) {
                self.flush();
            }
            if is_full || end.is_some() {
                self.is_cut = is_full;
            }
        }
    }

    fn flush(&mut self) {
        let text = String::from_utf8_lossy(&self.begun);
        let line = text.strip_suffix('\r').unwrap_or(&text).to_owned();
        self.begun.clear();
        let size = line.len();
        let has_room = self.bytes.fetch_add(size, Ordering::Relaxed) + size <= BYTES;
        let missed = self.missed;
        if has_room && self.queue.try_send(WaitingLine { missed, line }).is_ok() {
            self.missed = DroppedLines::default();
        } else {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            self.missed.lines += 1;
            self.missed.bytes += size as u64;
        }
    }
}

impl Drop for Lines {
    /// The last line may have no line ending.
    fn drop(&mut self) {
        if !self.begun.is_empty() {
            self.flush();
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = self.missed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    /// A callback that gives away what it gets, and lines for it.
    fn lines() -> (Lines, Receiver<String>) {
        let (told, seen) = channel();
        let told = Mutex::new(told);
        let callback = StderrCallback::new(move |line| told.lock().unwrap().send(line.to_owned()).unwrap());
        (Lines::to(callback).unwrap(), seen)
    }

    #[tokio::test]
    async fn lines_come_whole_however_they_were_read() {
        let text = "one\n\nthr\u{e9}e\r\nfour";
        for size in 1..text.len() {
            let (mut lines, seen) = lines();
            for chunk in text.as_bytes().chunks(size) {
                lines.push(chunk);
            }
            drop(lines);
            assert_eq!(
                seen.iter().collect::<Vec<_>>(),
                ["one", "", "thr\u{e9}e", "four"],
                "{size}"
            );
        }
    }

    #[tokio::test]
    async fn a_line_without_end_comes_in_parts() {
        let (mut lines, seen) = lines();
        for more in [1, 0] {
            lines.push(&vec![b'x'; 2 * LINE + more]);
            lines.push(b"\n");
        }
        lines.push(b"\n");
        drop(lines);
        let sizes: Vec<usize> = seen.iter().map(|line| line.len()).collect();
        assert_eq!(sizes, [LINE, LINE, 1, LINE, LINE, 0]);
    }

    #[tokio::test]
    async fn a_slow_callback_holds_nobody_up_and_is_told_what_it_missed() {
        let (told, seen) = channel::<String>();
        let (go, wait) = channel::<()>();
        let (begins, begun) = channel::<()>();
        let (told, wait) = (Mutex::new(told), Mutex::new(wait));
        let callback = StderrCallback::new(move |line| {
            let _ = begins.send(());
            let _ = wait.lock().unwrap().recv();
            told.lock().unwrap().send(line.to_owned()).unwrap();
        });
        let mut lines = Lines::to(callback).unwrap();
        lines.push(b"0\n");
        // Now the first line is out of the queue, and the callback is slow.
        begun.recv().unwrap();
        for number in 1..2 * LINES {
            lines.push(format!("{number}\n").as_bytes());
        }
        // From here on it is quick.
        drop(go);
        drop(lines);
        let seen: Vec<String> = seen.iter().collect();
        let (missed, read) = seen.split_last().unwrap();
        let expected: Vec<String> = (0..=LINES).map(|number| number.to_string()).collect();
        assert_eq!(read, expected);
        assert!(missed.contains(&format!("{} lines of ", LINES - 1)), "{missed}");
    }

    #[tokio::test]
    async fn what_waits_is_bounded_in_bytes() {
        let (go, wait) = channel::<()>();
        let wait = Mutex::new(wait);
        let callback = StderrCallback::new(move |_| {
            let _ = wait.lock().unwrap().recv();
        });
        let mut lines = Lines::to(callback).unwrap();
        for _ in 0..LINES {
            lines.push(&[b'x'; LINE - 1]);
            lines.push(b"\n");
        }
        assert!(lines.bytes.load(Ordering::Relaxed) <= BYTES);
        assert!(lines.missed.lines > 0);
        drop(go);
    }

    #[tokio::test]
    async fn a_panic_costs_its_line() {
        let (told, seen) = channel();
        let told = Mutex::new(told);
        let callback = StderrCallback::new(move |line| {
            assert_ne!(line, "bad");
            told.lock().unwrap().send(line.to_owned()).unwrap();
        });
        let mut lines = Lines::to(callback).unwrap();
        lines.push(b"one\nbad\ntwo\n");
        drop(lines);
        assert_eq!(seen.iter().collect::<Vec<_>>(), ["one", "two"]);
    }
}
