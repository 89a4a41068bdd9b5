//! Schedules as resources.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use outrigger::SessionId;
use outrigger_host::{MissedRuns, Schedule};
use outrigger_host_hooks::NewSchedule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::entries::Made;
use crate::extract::{Body, Caller, Of};
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};

#[derive(Serialize, JsonSchema)]
pub(super) struct ScheduleList {
    schedules: Vec<Schedule>,
}

/// What a schedule is to be.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddSchedule {
    /// The session that gets the prompt.
    #[schemars(with = "uuid::Uuid")]
    session_id: String,
    /// The times, as a cron expression of five fields, or a nickname such as `@daily`.
    cron: String,
    /// The IANA name of the time zone, such as `Europe/Berlin`.
    time_zone: String,
    /// The text of the prompt.
    prompt: String,
    /// What becomes of times that passed while the host was down; they are skipped unless said.
    #[schemars(with = "Option<MissedRuns>")]
    missed: Option<String>,
}

pub(super) async fn list(State(shared): State<Arc<FrontState>>) -> Result<Json<ScheduleList>, Refusal> {
    let schedules = shared.schedules.list().await?;
    Ok(Json(ScheduleList { schedules }))
}

pub(super) async fn add(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    Body(body): Body<AddSchedule>,
) -> Result<(StatusCode, Extension<Made>, Json<Schedule>), Refusal> {
    let session = SessionId::new(&body.session_id).map_err(|_| Problem::UnknownSession)?;
    let mut new = NewSchedule::new(session, body.cron, body.time_zone, body.prompt);
    if let Some(missed) = body.missed {
        let unknown = || Problem::InvalidRequest.because("`missed` is `skip` or `latest`");
        new.missed = MissedRuns::of_name(&missed).ok_or_else(unknown)?;
    }
    let schedule = shared.schedules.add(new, token.label).await?;
    Ok((
        StatusCode::CREATED,
        Extension(Made(schedule.id.to_string())),
        Json(schedule),
    ))
}

pub(super) async fn remove(State(shared): State<Arc<FrontState>>, Of(id): Of) -> Result<StatusCode, Refusal> {
    shared.schedules.remove(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
