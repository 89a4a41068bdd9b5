//! `EnterPlanMode` and `ExitPlanMode`.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/plan.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `EnterPlanMode`: nothing.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct EnterPlanModeInput {}

/// Output of `EnterPlanMode`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct EnterPlanModeOutput {
    /// A confirmation.
    pub message: String,
}

/// Output of `ExitPlanMode`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ExitPlanModeOutput {
    /// The plan that the user saw; null if there is none.
    pub plan: Option<String>,
    /// Whether a subagent made the plan.
    pub is_agent: bool,
    /// Where the plan is saved.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub file_path: Option<String>,
    /// Whether the model can use `Agent` from here.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub has_task_tool: Option<bool>,
    /// Whether the user changed the plan.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub plan_was_edited: Option<bool>,
    /// Whether the plan waits for a team leader's approval.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub awaiting_leader_approval: Option<bool>,
    /// The id of the request for that approval.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub request_id: Option<String>,
}

crate::open_struct::open_struct! {
    /// Input of `ExitPlanMode`. The model may send more keys than the schema has.
    pub struct ExitPlanModeInput {
        /// The plan. The CLI reads it from the plan's file.
        plan: "plan" => String,
        /// The plan's file. The CLI adds it.
        plan_file_path: "planFilePath" => String,
        /// What the model wants to be allowed. No longer used by the CLI.
        allowed_prompts: "allowedPrompts" => Vec<AllowedPrompt>,
    }
}

/// Something that a plan wants to be allowed.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AllowedPrompt {
    /// The tool; always `Bash`.
    pub tool: String,
    /// What the tool is to do, in words.
    pub prompt: String,
}
