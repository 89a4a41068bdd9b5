//! Settings files and the sandbox.
