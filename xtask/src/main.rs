//! Everyday commands of the workspace.

fn main() {}
