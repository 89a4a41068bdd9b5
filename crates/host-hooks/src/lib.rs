//! Webhooks and schedules of a host of Claude Code sessions.
//!
//! * [`Webhooks`] tells addresses of events by POST: signed as [Standard Webhooks](https://www.standardwebhooks.com), at least once, in order within a
//!   session, from the log, so that a restart loses nothing.
//! * [`Schedules`] sends prompts at times: a cron expression in a time zone. No time is run twice, whatever crashes, and times that passed
//!   while the host was down are reported.
//!
//! Both are futures that run beside a host:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use outrigger_host::{AddressRule, SessionHost, WebhookEvent};
//! use outrigger_host_hooks::{HttpDeliver, NewSchedule, NewWebhook, Schedules, WebhookLimits, Webhooks};
//!
//! # async fn example(host: SessionHost, session: outrigger::SessionId) -> Result<(), Box<dyn std::error::Error>> {
//! let rule = AddressRule::public();
//! let webhooks = Webhooks::new(&host, rule.clone(), WebhookLimits::default());
//! let schedules = Schedules::new(&host);
//! let deliver = Arc::new(HttpDeliver::new(rule)?);
//! let (sending, ticking) = (webhooks.clone(), schedules.clone());
//! tokio::spawn(async move { sending.run(deliver).await });
//! tokio::spawn(async move { ticking.run().await });
//!
//! let (webhook, secret) = webhooks
//!     .add(NewWebhook::new("https://example.com/hook", [WebhookEvent::ApprovalOpened]), "ada")
//!     .await?;
//! println!("{}: verify its messages with {}", webhook.id, secret.reveal());
//! let nightly = NewSchedule::new(session, "0 3 * * *", "Europe/Berlin", "Look for new security advisories.");
//! schedules.add(nightly, "ada").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! * A webhook gets each of its events at least once, and those of a session in their order. An event that is sent again has the same
//!   `webhook-id`, by which its receiver knows it.
//! * An address that fails is tried again with growing pauses. After [`WebhookLimits::give_up`] without success its webhook is disabled, which is
//!   reported by an event `webhook_disabled` of the session whose event could not be delivered, by [`Webhook::disabled_at`](outrigger_host::Webhook::disabled_at), and in
//!   the program's log. Enabled again, it gets what it missed.
//! * Events that were removed from the log before they were delivered (retention) are reported to the webhook as `events_truncated`.
//! * No redirect is followed, and no address is called that the operator's [`AddressRule`](outrigger_host::AddressRule) does not have.

mod clock;
mod deliver;
#[cfg(feature = "fuzzing")]
mod laws;
mod schedules;
mod webhooks;

pub use clock::Clock;
pub use deliver::{Deliver, DeliveryError, HttpDeliver, HttpError, Message};
/// For the fuzz target of the workspace. No part of the API.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use laws::run as laws;
pub use schedules::{NewSchedule, Schedules};
pub use webhooks::{NewWebhook, WebhookLimits, Webhooks};

/// The examples of the page on webhooks, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/webhooks.md")]
struct WebhooksPage;
