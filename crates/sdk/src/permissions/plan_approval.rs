//! The approval of a plan: `ExitPlanMode`, typed.

use outrigger_protocol::shared::{
    PermissionAllow, PermissionDeny, PermissionMode, PermissionResult, PermissionUpdate,
    PermissionUpdateDestination,
};
use outrigger_protocol::tools::ExitPlanModeInput;

use super::{PLAN, PermissionDecision, PermissionRequest};

/// A plan of the model that waits for approval. Approving it ends plan mode.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlanRequest {
    /// The plan, in Markdown. `None` if the model wrote none to the plan's file; the CLI passes on no other.
    pub plan: Option<String>,
    /// The file that the plan is in.
    pub plan_file_path: Option<String>,
    /// The request, with its id, its subagent, and whether it was withdrawn.
    pub request: PermissionRequest,
}

impl PlanRequest {
    /// The plan of a request; `None` if the request is about another tool, or is a misfit.
    pub fn of(request: &PermissionRequest) -> Option<Self> {
        let input: ExitPlanModeInput = request.tool_as(PLAN)?;
        Some(Self {
            plan: input.plan,
            plan_file_path: input.plan_file_path,
            request: request.clone(),
        })
    }
}

/// The decision about a plan.
#[derive(Debug, Clone)]
pub enum PlanReply {
    /// The model carries the plan out, in this mode (`default` if `None`).
    Approve(Option<PermissionMode>),
    /// The model goes on planning, and reads the reason.
    KeepPlanning(String),
    /// The request stays open, for a later [`Session::decide`](crate::Session::decide).
    Parked,
}

impl PlanReply {
    /// The model carries the plan out, with a permission request for each change as usual.
    pub fn approve() -> Self {
        Self::Approve(None)
    }

    /// The model carries the plan out, without permission requests for edits in the working directories.
    pub fn approve_and_accept_edits() -> Self {
        Self::Approve(Some(PermissionMode::AcceptEdits))
    }
}

/// An error keeps the model planning; the model reads its text.
impl<E: std::fmt::Display> From<Result<PlanReply, E>> for PlanReply {
    fn from(reply: Result<PlanReply, E>) -> Self {
        reply.unwrap_or_else(|error| Self::KeepPlanning(format!("the plan could not be shown: {error}")))
    }
}

impl From<PlanReply> for PermissionDecision {
    fn from(reply: PlanReply) -> Self {
        match reply {
            PlanReply::Approve(None) => Self::allow(),
            PlanReply::Approve(Some(mode)) => {
                let change = PermissionUpdate::set_mode(mode, PermissionUpdateDestination::Session);
                PermissionResult::from(PermissionAllow::default().updated_permissions([change])).into()
            }
            PlanReply::KeepPlanning(why) => PermissionDeny::new(why).into(),
            PlanReply::Parked => Self::Parked,
        }
    }
}
