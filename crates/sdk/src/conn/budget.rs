//! The memory for frames that readers have not read yet, and what happens to more.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::event::Lag;

/// What happens to frames that no longer fit into the memory of a session, because their reader is slow.
///
/// The CLI never waits for a reader: it would stop replying to control requests, too. So its frames need another place. No frame
/// is dropped silently: the reader gets a [`Lag`] in place of dropped frames.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlowReader {
    /// Frames wait in unnamed temporary files, readable by this user only, in `dir` or the system's temporary directory, and keep
    /// their order. The space is free once they are read, or the reader is dropped.
    /// Reading from the pipe waits for these writes, and for nothing else. Beyond `limit` bytes in all, and when the disk fails,
    /// the newest frames are dropped.
    Spill {
        /// Where the files are made; the system's directory for temporary files if `None`.
        dir: Option<PathBuf>,
        /// How many bytes the files of one session may hold.
        limit: u64,
    },
    /// The newest frames are dropped: from half of the memory on only partial messages, which the finished messages repeat; when
    /// it is full, all frames. A reader that never reads takes the memory of the others.
    LeaveOut,
}

impl SlowReader {
    /// The default: up to 4 GiB in the system's temporary directory.
    pub const fn spill() -> Self {
        Self::Spill {
            dir: None,
            limit: 4 << 30,
        }
    }
}

impl Default for SlowReader {
    fn default() -> Self {
        Self::spill()
    }
}

/// The budget that all readers of a session share.
#[derive(Debug)]
pub(crate) struct Budget {
    cap: usize,
    pub(super) overflow: SlowReader,
    held: AtomicUsize,
    spilled: AtomicU64,
    waiting: AtomicU64,
    left_out_frames: AtomicU64,
    left_out_bytes: AtomicU64,
}

// The counts guard no other memory, so no order among them is needed.
const ORDER: Ordering = Ordering::Relaxed;

impl Budget {
    pub(crate) fn new(cap: usize, overflow: SlowReader) -> Self {
        Self {
            cap,
            overflow,
            held: AtomicUsize::new(0),
            spilled: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            left_out_frames: AtomicU64::new(0),
            left_out_bytes: AtomicU64::new(0),
        }
    }

    /// Takes `size` bytes if the total stays at or below `cap`.
    fn take_within(&self, size: usize, cap: usize) -> bool {
        self.held
            .fetch_update(ORDER, ORDER, |held| {
                held.checked_add(size).filter(|held| *held <= cap)
            })
            .is_ok()
    }

    /// Takes room for a frame; `false` when there is none.
    pub(super) fn take(&self, size: usize, is_partial: bool) -> bool {
        let partials_first = is_partial && self.overflow == SlowReader::LeaveOut;
        self.take_within(size, if partials_first { self.cap / 2 } else { self.cap })
    }

    /// Takes room for what comes back from disk, a small piece at a time.
    pub(super) fn take_back(&self, size: usize) {
        self.held.fetch_add(size, ORDER);
    }

    pub(super) fn give(&self, size: usize) {
        self.held.fetch_sub(size, ORDER);
    }

    /// Takes room on disk; `false` when there is none.
    pub(super) fn take_disk(&self, size: u64) -> bool {
        let SlowReader::Spill { limit, .. } = self.overflow else {
            return false;
        };
        self.spilled
            .fetch_update(ORDER, ORDER, |spilled| {
                spilled.checked_add(size).filter(|spilled| *spilled <= limit)
            })
            .is_ok()
    }

    pub(super) fn give_disk(&self, size: u64) {
        self.spilled.fetch_sub(size, ORDER);
    }

    pub(super) fn leave_out(&self, lag: Lag) {
        self.left_out_frames.fetch_add(lag.frames, ORDER);
        self.left_out_bytes.fetch_add(lag.bytes, ORDER);
    }

    pub(super) fn waits(&self, frames: u64) {
        self.waiting.fetch_add(frames, ORDER);
    }

    pub(super) fn waits_no_more(&self, frames: u64) {
        self.waiting.fetch_sub(frames, ORDER);
    }

    /// Frames that wait for readers, in memory and on disk.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(ORDER)
    }

    /// Bytes that wait in memory for readers.
    pub(crate) fn held(&self) -> usize {
        self.held.load(ORDER)
    }

    /// Bytes that wait on disk for readers.
    pub(crate) fn spilled(&self) -> u64 {
        self.spilled.load(ORDER)
    }

    /// The dropped frames, as readers were told or will be.
    pub(crate) fn left_out(&self) -> Lag {
        Lag {
            frames: self.left_out_frames.load(ORDER),
            bytes: self.left_out_bytes.load(ORDER),
        }
    }
}
