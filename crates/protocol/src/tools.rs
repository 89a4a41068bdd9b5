//! What the tools that the CLI brings along take and give.
//!
//! A tool call carries its input as [`RawJson`], because models and other people's tools may put anything there; so do
//! permission requests and hooks. [`ToolInput::read`] makes it a typed value. What came of the call is, besides the text
//! that the model sees, the `tool_use_result` of a user message; [`ToolOutput::read`] makes that a typed value.
//!
//! ```
//! use outrigger_protocol::RawJson;
//! use outrigger_protocol::tools::ToolInput;
//!
//! let input = RawJson::from_text(r#"{"command":"ls","description":"List files"}"#)?;
//! match ToolInput::read("Bash", &input) {
//!     ToolInput::Bash(bash) => assert_eq!(bash.command, "ls"),
//!     other => println!("another tool: {other:?}"),
//! }
//! # Ok::<(), serde_json::Error>(())
//! ```

mod agent;
mod artifact;
mod artifact_asset;
mod artifact_output;
mod artifact_watch;
mod bash;
mod design;
mod edit;
mod feedback;
mod findings;
mod mcp;
mod names;
mod notebook;
mod notify;
mod onboarding;
mod plan;
mod projects;
mod propose;
mod question;
mod read;
mod schedule;
mod search;
mod task;
mod todo;
mod tool_search;
mod web;
mod workflow;
mod worktree;

pub use agent::*;
pub use artifact::*;
pub use artifact_asset::*;
pub use artifact_output::*;
pub use artifact_watch::*;
pub use bash::*;
pub use design::*;
pub use edit::*;
pub use feedback::*;
pub use findings::*;
pub use mcp::*;
pub use names::*;
pub use notebook::*;
pub use notify::*;
pub use onboarding::*;
pub use plan::*;
pub use projects::*;
pub use propose::*;
pub use question::*;
pub use read::*;
pub use schedule::*;
pub use search::*;
pub use task::*;
pub use todo::*;
pub use tool_search::*;
pub use web::*;
pub use workflow::*;
pub use worktree::*;

use std::fmt;

use crate::RawJson;
use crate::drift::{self, DriftKind};
use crate::shape::Shape;
use crate::wire_enum::MisfitValue;

/// Generates [`ToolInput`] and [`ToolOutput`], one line a tool.
macro_rules! tools {
    ($( $wire:literal => $var:ident($input:ty, $output:ty) ),+ $(,)?) => {
        /// The input of a tool call, by tool.
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub enum ToolInput {
            $(
                #[doc = concat!("Input of `", $wire, "`.")]
                $var(Box<$input>),
            )+
            /// Input of an MCP server's tool, as it came; its shape is up to the server.
            Mcp(RawJson),
            /// Input of a tool that this build has no type for, as it came.
            Unknown(RawJson),
            /// Input that is not what its tool takes. Models make such mistakes.
            Misfit(Box<MisfitValue>),
        }

        /// The output of a tool call, by tool.
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub enum ToolOutput {
            $(
                #[doc = concat!("Output of `", $wire, "`.")]
                $var(Box<$output>),
            )+
            /// Output of an MCP server's tool.
            Mcp(Box<McpOutput>),
            /// The text of a failure: the tool failed, was not allowed to run, or is not there.
            Failed(String),
            /// Output of a tool that this build has no type for, as it came.
            Unknown(RawJson),
            /// Output that is not what its tool is known to give.
            Misfit(Box<MisfitValue>),
        }

        impl ToolInput {
            /// The tools that this build has types for, by name.
            pub const KNOWN: &'static [&'static str] = &[$($wire),+];

            /// Reads the input of the tool of this name, which may be an earlier or a schema's name of it.
            ///
            /// Never fails: see [`Unknown`](Self::Unknown) and [`Misfit`](Self::Misfit).
            // Only callers compile it: there are many tools.
            #[inline]
            pub fn read(tool_name: &str, input: &RawJson) -> Self {
                let fitted = match canonical_name(tool_name) {
                    $( $wire => input.read().map(Self::$var), )+
                    name if name.starts_with(MCP_PREFIX) => return Self::Mcp(input.clone()),
                    _ => {
                        drift::note("ToolInput", tool_name, DriftKind::UnknownTag);
                        return Self::Unknown(input.clone());
                    }
                };
                fitted.unwrap_or_else(|error| Self::Misfit(misfit("ToolInput", tool_name, input, &error)))
            }
        }

        impl ToolOutput {
            /// Reads what the tool of this name gave, which may be an earlier or a schema's name of it.
            ///
            /// Takes the `tool_use_result` of a user message, or a hook's `tool_response`. Never fails: see
            /// [`Unknown`](Self::Unknown) and [`Misfit`](Self::Misfit). No tool that this build has a type for gives
            /// a bare text, so a text is [`Failed`](Self::Failed); an MCP tool may, so its texts are [`Mcp`](Self::Mcp).
            // Only callers compile it: there are many tools.
            #[inline]
            pub fn read(tool_name: &str, output: &RawJson) -> Self {
                let name = canonical_name(tool_name);
                if name.starts_with(MCP_PREFIX) {
                    return match output.read() {
                        Ok(fitted) => Self::Mcp(fitted),
                        Err(error) => Self::Misfit(misfit("ToolOutput", tool_name, output, &error)),
                    };
                }
                let text = match Shape::of(output) {
                    Shape::String => output.read::<String>().ok(),
                    _ => None,
                };
                let fitted = match (name, text) {
                    $( ($wire, None) => output.read().map(Self::$var), )+
                    ($($wire)|+, Some(text)) => return Self::Failed(text),
                    _ => {
                        drift::note("ToolOutput", tool_name, DriftKind::UnknownTag);
                        return Self::Unknown(output.clone());
                    }
                };
                fitted.unwrap_or_else(|error| Self::Misfit(misfit("ToolOutput", tool_name, output, &error)))
            }
        }

        impl serde::Serialize for ToolInput {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$var(input) => input.serialize(serializer), )+
                    Self::Mcp(raw) | Self::Unknown(raw) => raw.serialize(serializer),
                    Self::Misfit(misfit) => misfit.raw.serialize(serializer),
                }
            }
        }

        impl serde::Serialize for ToolOutput {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $( Self::$var(output) => output.serialize(serializer), )+
                    Self::Mcp(output) => output.serialize(serializer),
                    Self::Failed(text) => serializer.serialize_str(text),
                    Self::Unknown(raw) => raw.serialize(serializer),
                    Self::Misfit(misfit) => misfit.raw.serialize(serializer),
                }
            }
        }
    };
}

/// As the CLI writes it for the model: choices with commas between them.
impl fmt::Display for GivenAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(choices) => f.write_str(&choices.join(", ")),
            Self::Unknown(raw) => write!(f, "{raw}"),
        }
    }
}

impl McpOutput {
    /// The `structuredContent`, if the server gave one.
    pub fn structured_content(&self) -> Option<RawJson> {
        #[derive(serde::Deserialize)]
        struct Structured {
            #[serde(rename = "structuredContent")]
            content: Option<RawJson>,
        }
        match self {
            Self::Object(raw) => raw.read::<Structured>().ok()?.content,
            _ => None,
        }
    }
}

/// What the names of all MCP servers' tools begin with: `mcp__server__tool`.
const MCP_PREFIX: &str = "mcp__";

fn misfit(place: &'static str, tool: &str, raw: &RawJson, error: &serde_json::Error) -> Box<MisfitValue> {
    let reason = error.to_string();
    drift::note(place, tool, DriftKind::Misfit(reason.clone()));
    Box::new(MisfitValue::__new(tool.to_owned(), reason, raw.clone()))
}

tools! {
    "Agent" => Agent(AgentInput, AgentOutput),
    "AskUserQuestion" => AskUserQuestion(AskUserQuestionInput, AskUserQuestionOutput),
    "Artifact" => Artifact(ArtifactInput, ArtifactOutput),
    "Bash" => Bash(BashInput, BashOutput),
    "ClaudeDesign" => ClaudeDesign(ClaudeDesignInput, ClaudeDesignOutput),
    "CronCreate" => CronCreate(CronCreateInput, CronCreateOutput),
    "CronDelete" => CronDelete(CronDeleteInput, CronDeleteOutput),
    "CronList" => CronList(CronListInput, CronListOutput),
    "Edit" => Edit(FileEditInput, FileEditOutput),
    "EnterPlanMode" => EnterPlanMode(EnterPlanModeInput, EnterPlanModeOutput),
    "EnterWorktree" => EnterWorktree(EnterWorktreeInput, EnterWorktreeOutput),
    "ExitPlanMode" => ExitPlanMode(ExitPlanModeInput, ExitPlanModeOutput),
    "ExitWorktree" => ExitWorktree(ExitWorktreeInput, ExitWorktreeOutput),
    "Glob" => Glob(GlobInput, GlobOutput),
    "Grep" => Grep(GrepInput, GrepOutput),
    "ListMcpResourcesTool" => ListMcpResources(ListMcpResourcesInput, Vec<McpResource>),
    "Monitor" => Monitor(MonitorInput, MonitorOutput),
    "NotebookEdit" => NotebookEdit(NotebookEditInput, NotebookEditOutput),
    "OfferChromeSetup" => OfferChromeSetup(OfferChromeSetupInput, OfferChromeSetupOutput),
    "Projects" => Projects(ProjectsInput, ProjectsOutput),
    "propose_skills" => ProposeSkills(ProposeSkillsInput, ProposeSkillsOutput),
    "PushNotification" => PushNotification(PushNotificationInput, PushNotificationOutput),
    "Read" => Read(FileReadInput, FileReadOutput),
    "ReadMcpResourceDirTool" => ReadMcpResourceDir(ReadMcpResourceDirInput, ReadMcpResourceDirOutput),
    "ReadMcpResourceTool" => ReadMcpResource(ReadMcpResourceInput, ReadMcpResourceOutput),
    "ReadNotifications" => ReadNotifications(ReadNotificationsInput, ReadNotificationsOutput),
    "RefreshMcpTools" => RefreshMcpTools(RefreshMcpToolsInput, Vec<McpRefresh>),
    "RemoteTrigger" => RemoteTrigger(RemoteTriggerInput, RemoteTriggerOutput),
    "ReportFindings" => ReportFindings(ReportFindingsInput, ReportFindingsOutput),
    "ScheduleWakeup" => ScheduleWakeup(ScheduleWakeupInput, ScheduleWakeupOutput),
    "SendFeedback" => SendFeedback(SendFeedbackInput, SendFeedbackOutput),
    "SetGoal" => SetGoal(ProposeGoalInput, ProposeGoalOutput),
    "ShowOnboardingRolePicker" => ShowOnboardingRolePicker(ShowOnboardingRolePickerInput, ShowOnboardingRolePickerOutput),
    "TaskCreate" => TaskCreate(TaskCreateInput, TaskCreateOutput),
    "TaskGet" => TaskGet(TaskGetInput, TaskGetOutput),
    "TaskList" => TaskList(TaskListInput, TaskListOutput),
    "TaskStop" => TaskStop(TaskStopInput, TaskStopOutput),
    "TaskUpdate" => TaskUpdate(TaskUpdateInput, TaskUpdateOutput),
    "TodoWrite" => TodoWrite(TodoWriteInput, TodoWriteOutput),
    "ToolSearch" => ToolSearch(ToolSearchInput, ToolSearchOutput),
    "WebFetch" => WebFetch(WebFetchInput, WebFetchOutput),
    "WebSearch" => WebSearch(WebSearchInput, WebSearchOutput),
    "Workflow" => Workflow(WorkflowInput, WorkflowOutput),
    "Write" => Write(FileWriteInput, FileWriteOutput),
}
