//! What the CLI reads on its stdin.
