//! The strikes of faults.

use std::fmt;

use super::at::FrameDirection;

/// A fault that has struck, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Strike {
    /// Which fault of the schedule, from 0; those that were armed later are counted on.
    pub fault: usize,
    /// The word for the fault's effect.
    pub effect: String,
    /// Which way the frame went.
    pub direction: FrameDirection,
    /// Which frame of that direction it was, from 1.
    pub frame: u64,
    /// The kind of the frame.
    pub kind: String,
    /// The offset in the stream, as it was written.
    pub byte: u64,
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fault {}, {}: frame {} ", self.fault, self.effect, self.frame)?;
        write!(f, "{}, {}, at byte {}", self.direction, self.kind, self.byte)
    }
}

/// How many strikes are remembered.
const REMEMBERED: usize = 1000;

/// The first strikes, and how many there were.
#[derive(Debug, Default)]
pub(super) struct Strikes {
    pub(super) first: Vec<Strike>,
    pub(super) total: u64,
}

impl Strikes {
    pub(super) fn add(&mut self, strike: Strike) {
        self.total += 1;
        if self.first.len() < REMEMBERED {
            self.first.push(strike);
        }
    }
}
