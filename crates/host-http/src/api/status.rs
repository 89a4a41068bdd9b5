//! How the host is.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

use crate::front_state::FrontState;
use crate::problem::Refusal;

pub(super) async fn alive() -> StatusCode {
    StatusCode::NO_CONTENT
}

pub(super) async fn ready(State(shared): State<Arc<FrontState>>) -> Result<StatusCode, Refusal> {
    shared.host.sessions(None, 1).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn metrics(State(shared): State<Arc<FrontState>>) -> Result<impl IntoResponse, Refusal> {
    let counts = shared.host.counts().await?;
    let mut text = String::from(
        "# HELP outrigger_host_sessions Sessions in each state.\n# TYPE outrigger_host_sessions gauge\n",
    );
    for (state, count) in counts.sessions {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "outrigger_host_sessions{{state=\"{}\"}} {count}",
            state.as_str()
        );
    }
    let spares = shared.host.spares();
    for (name, help, value) in [
        (
            "spares",
            "Spare processes that wait for new sessions.",
            spares.ready,
        ),
        (
            "approvals_pending",
            "Approvals that nobody has decided.",
            counts.pending_approvals,
        ),
        (
            "prompts_waiting",
            "Prompts that no process has got.",
            counts.waiting_prompts,
        ),
        ("streams", "Streams that are open.", shared.streams.count() as u64),
    ] {
        let _ = write!(
            text,
            "# HELP outrigger_host_{name} {help}\n# TYPE outrigger_host_{name} gauge\noutrigger_host_{name} {value}\n"
        );
    }
    for (name, help, value) in [
        (
            "spares_claimed",
            "Sessions whose process was a spare.",
            spares.claimed,
        ),
        (
            "spares_refused",
            "Sessions that started a process because their spare could not become it.",
            spares.refused,
        ),
        (
            "spares_failed",
            "Spare processes that could not be started, or ended by themselves.",
            spares.failed,
        ),
    ] {
        let _ = write!(
            text,
            "# HELP outrigger_host_{name}_total {help}\n# TYPE outrigger_host_{name}_total counter\noutrigger_host_{name}_total {value}\n"
        );
    }
    Ok((
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    ))
}
