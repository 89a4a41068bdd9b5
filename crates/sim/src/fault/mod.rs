//! Faults on purpose: between a client and any CLI.
//!
//! A [`Fault`] is an effect and a place; a [`Schedule`] is a list of them with a seed. They are data, read and written by
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

pub use self::chaos::{Case, Chaos, ChaosFailure, Profile, chaos};
pub use crate::inject::{
    At, Effect, Fault, FaultyReader, FaultyWriter, FloodedReader, FrameDirection, Phase, Schedule, Stage,
    Strike, Unfit, Wire, reshaped,
};
