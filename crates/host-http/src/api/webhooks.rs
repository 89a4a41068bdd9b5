//! Webhooks as resources.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use outrigger_host::{Webhook, WebhookEvent};
use outrigger_host_hooks::NewWebhook;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::entries::Made;
use crate::extract::{Body, Caller, Of};
use crate::front_state::FrontState;
use crate::problem::{Problem, Refusal};

#[derive(Serialize, JsonSchema)]
pub(super) struct WebhookList {
    webhooks: Vec<Webhook>,
}

/// What a webhook is to be.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddWebhook {
    /// Where the events are sent. The operator says which addresses are allowed.
    url: String,
    /// The events that are sent.
    #[schemars(with = "Vec<WebhookEvent>", length(min = 1))]
    events: Vec<String>,
    /// Whether messages have parts of the conversation; not unless said.
    #[serde(default)]
    content: bool,
}

/// A new webhook.
#[derive(Serialize, JsonSchema)]
pub(super) struct AddedWebhook {
    #[serde(flatten)]
    webhook: Webhook,
    /// The secret by which its receiver verifies messages (Standard Webhooks). It is shown this once.
    secret: String,
}

pub(super) async fn list(State(shared): State<Arc<FrontState>>) -> Result<Json<WebhookList>, Refusal> {
    let webhooks = shared.webhooks.list().await?;
    Ok(Json(WebhookList { webhooks }))
}

pub(super) async fn add(
    State(shared): State<Arc<FrontState>>,
    Caller(token): Caller,
    Body(body): Body<AddWebhook>,
) -> Result<(StatusCode, Extension<Made>, Json<AddedWebhook>), Refusal> {
    let events = body.events.iter().map(|name| {
        let unknown = || Problem::InvalidRequest.because(format!("there is no event `{name}`"));
        WebhookEvent::of_name(name).ok_or_else(unknown)
    });
    let mut new = NewWebhook::new(body.url, events.collect::<Result<Vec<_>, _>>()?);
    new.content = body.content;
    let (webhook, secret) = shared.webhooks.add(new, token.label).await?;
    let made = Extension(Made(webhook.id.to_string()));
    let added = AddedWebhook {
        webhook,
        secret: secret.reveal().to_owned(),
    };
    Ok((StatusCode::CREATED, made, Json(added)))
}

pub(super) async fn remove(State(shared): State<Arc<FrontState>>, Of(id): Of) -> Result<StatusCode, Refusal> {
    shared.webhooks.remove(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn enable(State(shared): State<Arc<FrontState>>, Of(id): Of) -> Result<StatusCode, Refusal> {
    shared.webhooks.enable(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
