//! Things that go wrong, on purpose: between a client and whatever CLI it speaks to.
//!
//! A [`Fault`] says what goes wrong and where; a [`Schedule`] is a list of them with a seed. They are data, and read and written by
//! serde: in a file, a fault is one object.
//!
//! ```yaml
//! seed: 7
//! faults:
//!   - {fault: chop, bytes: 1}
//!   - {fault: stall, ms: 60000, at: {phase: result, nth: 2}}
//!   - {fault: end, at: {after_bytes: 65536}}
//! ```

pub mod chaos;
mod effect;
mod engine;
mod moment;
mod place;
mod process;
mod random;
mod reader;
mod reshape;
mod schedule;
mod strike;
#[cfg(test)]
mod tests;
mod wire;
mod words;
mod writer;

pub use chaos::{Case, Chaos, ChaosFailure, Profile, chaos};
pub use effect::Effect;
pub use place::{At, Direction, Phase};
pub use reader::{FaultyReader, FloodedReader};
pub use reshape::reshaped;
pub use schedule::{Fault, Schedule, Stage, Unfit};
pub use strike::Strike;
pub use wire::Wire;
pub use writer::FaultyWriter;
