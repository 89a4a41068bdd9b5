//! Webhooks: who is told, and the tasks that tell.

mod dispatch;
mod health;
mod payload;
mod signature;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use outrigger_host::log::SqliteLog;
use outrigger_host::{
    AddressRule, HostError, Result, SessionHost, Webhook, WebhookEvent, WebhookSecret, WebhookWrite,
};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use uuid::Uuid;

use self::dispatch::Dispatcher;
use crate::clock::Clock;
use crate::deliver::{Deliver, target};

/// How long a failed reading of the log pauses the webhooks.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How much webhooks may take.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WebhookLimits {
    /// Webhooks of a host; 100 by default.
    pub webhooks: usize,
    /// Messages of one webhook on their way at once, each of another session; 4 by default. While its address fails, there is one.
    pub parallel: usize,
    /// How long an attempt may take; 15 s by default.
    pub attempt: Duration,
    /// The pause after the first failure; 5 s by default. It doubles with each further one. Each pause is shortened at random by up to half, so that
    /// many hosts do not come back at once.
    pub first_pause: Duration,
    /// The longest pause; 1 h by default. An address may ask for a longer one by `Retry-After`, up to a day.
    pub longest_pause: Duration,
    /// How long an address may fail before its webhook is disabled; 3 days by default. Ten attempts have to fail as well, so that a clock
    /// that is set forward disables nothing.
    pub give_up: Duration,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        Self {
            webhooks: 100,
            parallel: 4,
            attempt: Duration::from_secs(15),
            first_pause: Duration::from_secs(5),
            longest_pause: Duration::from_secs(3600),
            give_up: Duration::from_secs(3 * 24 * 3600),
        }
    }
}

/// What a new webhook is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NewWebhook {
    /// Where the events are sent.
    pub url: String,
    /// The events that are sent.
    pub events: Vec<WebhookEvent>,
    /// See [`Webhook::content`]. Off by default.
    pub content: bool,
}

impl NewWebhook {
    /// A webhook for these events, without their content.
    pub fn new(url: impl Into<String>, events: impl IntoIterator<Item = WebhookEvent>) -> Self {
        Self {
            url: url.into(),
            events: events.into_iter().collect(),
            content: false,
        }
    }
}

/// The webhooks of a host. Cheap to clone. Nothing is sent unless [`run`](Self::run) runs.
#[derive(Debug, Clone)]
pub struct Webhooks(Arc<WebhooksInner>);

pub(crate) struct WebhooksInner {
    log: Arc<SqliteLog>,
    rule: AddressRule,
    limits: WebhookLimits,
    clock: Clock,
    /// Tells `run` that the list is another one.
    changed: watch::Sender<()>,
}

impl std::fmt::Debug for WebhooksInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks")
            .field("rule", &self.rule)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Webhooks {
    /// The webhooks of a host, whose addresses the rule has to allow.
    pub fn new(host: &SessionHost, rule: AddressRule, limits: WebhookLimits) -> Self {
        Self::with_clock(host, rule, limits, Clock::default())
    }

    /// Like [`new`](Self::new), with a clock of the program.
    pub fn with_clock(host: &SessionHost, rule: AddressRule, limits: WebhookLimits, clock: Clock) -> Self {
        Self(Arc::new(WebhooksInner {
            log: host.event_log(),
            rule,
            limits,
            clock,
            changed: watch::Sender::new(()),
        }))
    }

    /// Adds a webhook. It gets the events from now on. The secret, by which its receiver verifies messages, is shown here and nowhere else.
    ///
    /// # Cancel safety
    /// Dropped, it may have added the webhook or not.
    ///
    /// # Errors
    /// When the address is not valid or the rule does not allow it, when no event is asked for, when there are too many webhooks, and when the log
    /// fails.
    pub async fn add(&self, new: NewWebhook, actor: impl Into<String>) -> Result<(Webhook, WebhookSecret)> {
        let url = target(&new.url, &self.0.rule).map_err(HostError::Invalid)?;
        if new.events.is_empty() {
            return Err(HostError::Invalid("the webhook is for no events".to_owned()));
        }
        let known = self.0.log.webhooks().await?.len();
        if known >= self.0.limits.webhooks {
            return Err(HostError::Invalid(format!(
                "there are {known} webhooks already; remove one first"
            )));
        }
        let secret = signature::secret()
            .map_err(|error| HostError::Invalid(format!("the system has no random bytes: {error}")))?;
        let mut webhook = Webhook::new(url, secret.clone(), new.events);
        webhook.events.sort_unstable();
        webhook.events.dedup();
        webhook.content = new.content;
        webhook.created_at = self.0.clock.millis();
        webhook.created_by = Some(actor.into());
        self.write(WebhookWrite::Add(Box::new(webhook.clone()))).await?;
        Ok((webhook, secret))
    }

    /// All webhooks, the oldest first.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn list(&self) -> Result<Vec<Webhook>> {
        self.0.log.webhooks().await
    }

    /// Removes a webhook.
    ///
    /// # Errors
    /// When there is none of this id, or the log fails.
    pub async fn remove(&self, id: Uuid) -> Result<()> {
        self.write(WebhookWrite::Remove(id)).await
    }

    /// Enables a webhook that was disabled. It gets what it missed.
    ///
    /// # Errors
    /// When there is none of this id, or the log fails.
    pub async fn enable(&self, id: Uuid) -> Result<()> {
        self.write(WebhookWrite::Enable(id)).await
    }

    async fn write(&self, write: WebhookWrite) -> Result<()> {
        self.0.log.write_webhook(write).await?;
        self.0.changed.send_replace(());
        Ok(())
    }

    /// Delivers events, for as long as it is polled. One runs at a time for a host; two would send each event twice.
    ///
    /// # Cancel safety
    /// Dropped, it stops. What was not confirmed is sent again by the next one.
    pub async fn run(&self, deliver: Arc<dyn Deliver>) -> Infallible {
        let mut changed = self.0.changed.subscribe();
        let mut tasks = JoinSet::new();
        let mut running: HashMap<Uuid, AbortHandle> = HashMap::new();
        loop {
            changed.borrow_and_update();
            let webhooks = match self.0.log.webhooks().await {
                Ok(webhooks) => webhooks,
                Err(error) => {
                    tracing::error!(%error, "the webhooks cannot be read");
                    tokio::time::sleep(AFTER_FAILURE).await;
                    continue;
                }
            };
            let wanted: HashMap<Uuid, Webhook> = webhooks
                .into_iter()
                .filter(|webhook| webhook.disabled_at.is_none())
                .map(|webhook| (webhook.id, webhook))
                .collect();
            running.retain(|id, task| {
                let is_wanted = wanted.contains_key(id);
                if !is_wanted {
                    task.abort();
                }
                is_wanted && !task.is_finished()
            });
            for (id, webhook) in wanted {
                running.entry(id).or_insert_with(|| {
                    let dispatcher = Dispatcher::new(Arc::clone(&self.0), webhook, Arc::clone(&deliver));
                    tasks.spawn(dispatcher.run())
                });
            }
            // A task ends when its webhook is disabled, or when the log fails.
            tokio::select! {
                _ = changed.changed() => {}
                Some(ended) = tasks.join_next() => {
                    if let Ok(Err(error)) = ended {
                        tracing::error!(%error, "a webhook pauses because the log failed");
                        tokio::time::sleep(AFTER_FAILURE).await;
                    }
                }
            }
        }
    }
}
