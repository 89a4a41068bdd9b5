//! Inputs and outputs of the built-in tools.
