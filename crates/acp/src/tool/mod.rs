//! What a tool call looks like to a person: title, kind, files, changes; from its input, and from what came of it.

mod fields;
mod look;
mod markdown;
mod partial;
mod place;
mod result;

pub(crate) use fields::Fields;
pub(crate) use look::{LOST, Look, Role, look, role};
pub(crate) use markdown::{fenced, line, without_keys, without_reminders};
pub(crate) use partial::Partial;
pub(crate) use place::Place;
pub(crate) use result::{Background, Printed, REFUSED, Shown, blocks, code_in, is_refusal, result};
