//! The view of a tool call: title, kind, files and changes, from its input and its result.

mod fields;
mod input;
mod markdown;
mod partial_input;
mod result;
mod work_dir;

pub(crate) use fields::Fields;
pub(crate) use input::{CallView, LOST, Role, role, view};
pub(crate) use markdown::{fenced, line, without_keys, without_reminders};
pub(crate) use partial_input::Partial;
pub(crate) use result::{Background, Printed, REFUSED, ToolResultView, blocks, code_in, is_refusal, result};
pub(crate) use work_dir::WorkDir;
