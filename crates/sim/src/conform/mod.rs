//! Compares two CLIs that were told the same: the real one and the simulated one.
//!
//! What is compared is which kinds of frames came in which order, which fields, of which types, the frames of each kind had, and the
//! inputs of tools, and the flags and counts in their results, by value. [`Listed`] has the differences that are known.

mod compare;
mod comparison;
mod differences;
mod kinds;

pub use compare::{Difference, Spoken, What, Who, compare};
pub use comparison::{Comparison, Conversation};
pub use differences::Listed;
pub use kinds::{Kinds, placeless};
