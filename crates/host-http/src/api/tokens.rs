//! Tokens as resources, and the code of the first start.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use outrigger_host::AuditEntry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::entries::Made;
use crate::extract::{Body, Of};
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};
use crate::token::{Scope, Token, TokenRecord};

/// What is known of a token.
#[derive(Serialize, JsonSchema)]
pub(super) struct TokenInfo {
    id: Uuid,
    /// The name of the token, which is the `actor` of events.
    label: String,
    scopes: Vec<Scope>,
    /// When the token expires, in milliseconds since 1970.
    expires_at: Option<u64>,
    revoked: bool,
}

impl From<TokenRecord> for TokenInfo {
    fn from(record: TokenRecord) -> Self {
        Self {
            id: record.id,
            label: record.label,
            scopes: record.scopes.into_iter().collect(),
            expires_at: record.expires_at,
            revoked: record.revoked,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct TokenList {
    tokens: Vec<TokenInfo>,
}

/// A new token.
#[derive(Serialize, JsonSchema)]
pub(super) struct Issued {
    #[serde(flatten)]
    known: TokenInfo,
    /// The token. It is shown this once.
    token: String,
}

impl Issued {
    fn new((token, record): (Token, TokenRecord)) -> (StatusCode, Extension<Made>, Json<Self>) {
        let made = Extension(Made(record.id.to_string()));
        let issued = Self {
            known: record.into(),
            token: token.reveal().to_owned(),
        };
        (StatusCode::CREATED, made, Json(issued))
    }
}

/// What a token is to be.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Issue {
    /// The name of the token, which is the `actor` of events. At most 200 bytes, without control characters.
    label: String,
    scopes: Vec<Scope>,
    /// When the token expires, in milliseconds since 1970; never if it is not there.
    expires_at: Option<u64>,
}

/// A code.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    /// The code that the host printed.
    code: String,
}

pub(super) async fn list(State(shared): State<Arc<FrontState>>) -> Json<TokenList> {
    let tokens = shared.tokens.records().into_iter().map(TokenInfo::from).collect();
    Json(TokenList { tokens })
}

pub(super) async fn issue(
    State(shared): State<Arc<FrontState>>,
    Body(body): Body<Issue>,
) -> Result<(StatusCode, Extension<Made>, Json<Issued>), Refusal> {
    let issued = shared
        .tokens
        .issue(body.label, body.scopes, body.expires_at)
        .await?;
    Ok(Issued::new(issued))
}

pub(super) async fn revoke(State(shared): State<Arc<FrontState>>, Of(id): Of) -> Result<StatusCode, Refusal> {
    if shared.tokens.revoke(id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::NotFound.into())
    }
}

pub(super) async fn exchange(
    State(shared): State<Arc<FrontState>>,
    Body(body): Body<Exchange>,
) -> Result<(StatusCode, Extension<Made>, Json<Issued>), Refusal> {
    let entry = |record: &TokenRecord| {
        let mut entry = AuditEntry::new(record.id, &*record.label, "POST", "/v1/tokens/exchange", 201);
        entry.object = Some(record.id.to_string());
        entry
    };
    match shared.tokens.exchange(&body.code, entry).await? {
        Some(issued) => Ok(Issued::new(issued)),
        None => Err(Problem::Unauthorized.because("the code is unknown, was used, or is too old")),
    }
}

/// The code is behind `#`, so that no browser sends it in an address.
pub(super) async fn welcome() -> impl IntoResponse {
    (
        [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
            (header::REFERRER_POLICY, "no-referrer"),
            (
                header::CONTENT_SECURITY_POLICY,
                "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'",
            ),
        ],
        include_str!("welcome.html"),
    )
}
