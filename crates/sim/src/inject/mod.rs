//! Puts faults on pipes. The public names are in [`fault`](crate::fault), which is above the peers, since chaos runs them.

mod at;
mod effect;
mod engine;
pub(crate) mod grandchild;
pub(crate) mod moment;
pub(crate) mod random;
mod reader;
mod reshape;
mod schedule;
mod strike;
#[cfg(test)]
mod tests;
mod wire;
mod words;
mod writer;

pub use at::{At, FrameDirection, Phase};
pub use effect::Effect;
pub(crate) use effect::{SIGNALS, is_signal};
pub use grandchild::Grandchild;
#[cfg(unix)]
pub use grandchild::be_grandchild;
pub use reader::{FaultyReader, FloodedReader};
pub use reshape::reshaped;
pub use schedule::{Fault, Schedule, Stage, Unfit};
pub use strike::Strike;
pub use wire::Wire;
pub use writer::FaultyWriter;
