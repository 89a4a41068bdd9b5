//! What goes both ways.
