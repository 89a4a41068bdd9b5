//! `Workflow`: runs a script that drives many agents.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/workflow.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Input of `Workflow`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct WorkflowInput {
    /// The script.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub script: Option<String>,
    /// The name of a saved workflow.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub name: Option<String>,
    /// Ignored by the CLI.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub description: Option<String>,
    /// Ignored by the CLI.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
    /// The `args` of the script.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub args: Option<RawJson>,
    /// The file with the script.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub script_path: Option<String>,
    /// An earlier run to go on from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub resume_from_run_id: Option<String>,
}

/// Output of `Workflow`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct WorkflowOutput {
    /// Where the workflow runs.
    pub status: WorkflowStatus,
    /// The id of the task.
    pub task_id: String,
    /// The kind of the task.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_type: Option<WorkflowTaskType>,
    /// The workflow's name.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub workflow_name: Option<String>,
    /// The id of this run, to go on from later.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub run_id: Option<String>,
    /// What the workflow does.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub summary: Option<String>,
    /// The directory with the transcripts of the agents.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub transcript_dir: Option<String>,
    /// The file that the script was saved to.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub script_path: Option<String>,
    /// The page that shows the session, in the cloud.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub session_url: Option<String>,
    /// A warning that did not stop the workflow.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub warning: Option<String>,
    /// What is wrong with the script.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error: Option<String>,
}

crate::open_enum! {
    /// Where a workflow runs.
    pub enum WorkflowStatus {
        /// In the background on this machine.
        AsyncLaunched = "async_launched",
        /// In the cloud.
        RemoteLaunched = "remote_launched",
    }
}

crate::open_enum! {
    /// The kind of task a workflow is.
    pub enum WorkflowTaskType {
        /// One on this machine.
        LocalWorkflow = "local_workflow",
        /// One in the cloud.
        RemoteAgent = "remote_agent",
    }
}
