//! A CLI that misbehaves, as a real process, and what must come out all the same: nothing lost, nothing hanging, nothing left
//! behind, and an error with the evidence.

mod asking;
mod boundaries;
mod control;
mod death;
mod ending;
mod flow;
mod lines;
mod stalls;
mod stand;
mod turns;
