//! What sessions have used.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use outrigger::{SessionUsage, Tokens};
use schemars::JsonSchema;
use serde::Serialize;

use crate::extract::InSession;
use crate::front_state::FrontState;
use crate::problem::Refusal;

/// Tokens, and what they cost.
#[derive(Serialize, JsonSchema)]
pub(super) struct TokenUsage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_creation: u64,
    web_searches: u64,
    /// In US dollars, by the CLI's price table.
    cost_usd: f64,
}

/// What was used: the sum of the results.
#[derive(Serialize, JsonSchema)]
pub(super) struct Usage {
    /// In US dollars, by the CLI's price table.
    cost_usd: f64,
    /// How many results there were.
    results: u64,
    by_model: BTreeMap<String, TokenUsage>,
}

impl From<Tokens> for TokenUsage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input: tokens.input,
            output: tokens.output,
            cache_read: tokens.cache_read,
            cache_creation: tokens.cache_creation,
            web_searches: tokens.web_searches,
            cost_usd: tokens.cost_usd,
        }
    }
}

impl From<SessionUsage> for Usage {
    fn from(usage: SessionUsage) -> Self {
        let models = usage.by_model.into_iter();
        Self {
            cost_usd: usage.cost_usd,
            results: usage.results,
            by_model: models.map(|(model, tokens)| (model, tokens.into())).collect(),
        }
    }
}

pub(super) async fn of_session(
    State(shared): State<Arc<FrontState>>,
    InSession(session): InSession,
) -> Result<Json<Usage>, Refusal> {
    Ok(Json(shared.host.usage(&session).await?.into()))
}

pub(super) async fn of_all(State(shared): State<Arc<FrontState>>) -> Result<Json<Usage>, Refusal> {
    Ok(Json(shared.host.total_usage().await?.into()))
}
