//! What all inputs of hooks have, and what some of them have in common.

use super::input::*;
use crate::shared::ReportedPermissionMode;
use crate::tools::ToolInput;

/// What is told about every event.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HookBase<'a> {
    /// The session.
    pub session_id: &'a str,
    /// The file with the session's transcript.
    pub transcript_path: &'a str,
    /// The working directory.
    pub cwd: &'a str,
    /// The prompt that is being answered.
    pub prompt_id: Option<&'a str>,
    /// How tool calls are decided at the moment.
    pub permission_mode: Option<&'a ReportedPermissionMode>,
    /// The subagent, if one is concerned.
    pub agent_id: Option<&'a str>,
    /// The type of that subagent.
    pub agent_type: Option<&'a str>,
    /// How hard the model thinks.
    pub effort: Option<&'a str>,
}

macro_rules! tools {
    ($($name:ident)+) => { $(
        impl $name {
            /// The input by the tool's own type; a tool or an input that this build does not know stays as it came.
            pub fn tool(&self) -> ToolInput {
                ToolInput::read(&self.tool_name, &self.tool_input)
            }
        }
    )+ };
}

tools! { PreToolUseInput PostToolUseInput PostToolUseFailureInput PermissionRequestInput }
