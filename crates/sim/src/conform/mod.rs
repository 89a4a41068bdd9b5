//! Compares two CLIs that were told the same: the real one and the simulated one.
//!
//! What is compared is which kinds of frames came in which order, which fields, of which types, the frames of each kind had, and the
//! values of those: words of the protocol, numbers and whether something is so, as far as they are not ids, times and sizes; of
//! prose, the inputs of tools. [`Listed`] has the differences that are known.

mod compare;
mod comparison;
mod differences;
mod kinds;

pub use compare::{Difference, DifferenceKind, DifferenceSide, Spoken, compare};
pub use comparison::{Comparison, Conversation};
pub use differences::Listed;
pub use kinds::{Kinds, placeless};
