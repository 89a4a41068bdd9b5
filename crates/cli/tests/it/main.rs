//! Tests of the `outrigger` command from the outside.

mod demo;
mod doctor;
mod protocol;
mod tool;
