//! The task of a webhook: from the log to its address.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use outrigger::SessionId;
use outrigger_host::log::{Hint, NewEvent, Write};
use outrigger_host::{HostError, Result, Source, Webhook, WebhookWrite};
use serde_json::json;
use tokio::time::Instant;

use super::health::{AfterFailure, Health};
use super::payload::{self, Unsigned};
use super::{WebhooksInner, signature};
use crate::deliver::{Deliver, DeliveryError, Message};

/// How many events are read from the log at once.
const PAGE: usize = 100;

/// How many sessions are remembered to have news. Further ones are looked for in the log.
const DIRTY: usize = 1024;

/// How many sessions are asked for at once.
const SCAN: usize = 256;

/// How many cursors are remembered, so that events which the webhook does not want are not read again.
const POSITIONS: usize = 4096;

pub(super) struct Dispatcher {
    job: Arc<DeliveryContext>,
    health: Health,
    /// Sessions that may have events for the webhook.
    dirty: BTreeSet<SessionId>,
    /// The session that had its turn last. Those after it have theirs before it has another one.
    last: Option<SessionId>,
    /// Up to which session the log was searched for sessions with news. `None` when the search is done.
    scan: Option<Option<SessionId>>,
    /// Whether the search begins anew when it is done. Begun anew at once, it might never come to the last sessions.
    scan_again: bool,
    /// Sessions whose events are being delivered.
    busy: HashMap<SessionId, BusySession>,
    positions: HashMap<SessionId, u64>,
}

/// What has become of a session since its events are being delivered.
#[derive(Default)]
struct BusySession {
    has_news: bool,
    /// Whether the session was deleted, so that the position is that of no session any more.
    is_gone: bool,
}

/// What the deliveries of a webhook share.
struct DeliveryContext {
    shared: Arc<WebhooksInner>,
    webhook: Webhook,
    deliver: Arc<dyn Deliver>,
}

/// What became of a page of a session.
struct DeliveredPage {
    session: SessionId,
    /// The last event that the webhook has got or did not want.
    position: u64,
    delivered: bool,
    end: PageEnd,
}

enum PageEnd {
    /// All events were read.
    Reached,
    /// There may be more.
    More,
    /// The session was removed.
    Gone,
    /// The next events can't be read, or no message can be made of them. Those of other sessions can.
    Unsendable(HostError),
    Failed(DeliveryError),
}

/// What woke a dispatcher.
enum Woke {
    Done(Result<DeliveredPage>),
    /// A session has news; `None` if any may.
    News(Option<Hint>),
    Resumed,
}

impl Dispatcher {
    pub(super) fn new(shared: Arc<WebhooksInner>, webhook: Webhook, deliver: Arc<dyn Deliver>) -> Self {
        Self {
            health: Health::new(webhook.failing_since),
            job: Arc::new(DeliveryContext {
                shared,
                webhook,
                deliver,
            }),
            dirty: BTreeSet::new(),
            last: None,
            scan: Some(None),
            scan_again: false,
            busy: HashMap::new(),
            positions: HashMap::new(),
        }
    }

    /// Delivers until the webhook is disabled.
    pub(super) async fn run(mut self) -> Result<()> {
        let log = Arc::clone(&self.job.shared.log);
        // Before the log is searched: nothing falls between.
        let mut hints = log.hub().hints();
        let mut deliveries = FuturesUnordered::new();
        let mut paused: Option<Instant> = None;
        loop {
            if paused.is_none() {
                self.search().await?;
                let most = if self.health.is_failing() {
                    1
                } else {
                    self.job.shared.limits.parallel.max(1)
                };
                while deliveries.len() < most
                    && let Some(session) = self.next()
                {
                    let position = self.positions.get(&session).copied();
                    self.busy.insert(session.clone(), BusySession::default());
                    deliveries.push(Arc::clone(&self.job).page(session, position));
                }
                if deliveries.len() < most && self.scan.is_some() {
                    continue;
                }
            }
            let woke = tokio::select! {
                biased;
                Some(done) = deliveries.next() => Woke::Done(done),
                hint = hints.next() => Woke::News(hint),
                () = wait(paused) => Woke::Resumed,
            };
            match woke {
                Woke::Resumed => paused = None,
                Woke::News(hint) => {
                    self.forget(hint.as_ref());
                    self.session_changed(hint.map(|hint| hint.session_id));
                }
                Woke::Done(done) => match self.settle(done?, paused.is_some()).await? {
                    None => {}
                    Some(AfterFailure::Pause(pause)) => paused = Some(Instant::now() + pause),
                    Some(AfterFailure::Disable) => return Ok(()),
                },
            }
        }
    }

    /// The session whose turn it is.
    fn next(&mut self) -> Option<SessionId> {
        let after = self.last.as_ref().and_then(|last| {
            let mut after = self.dirty.range((Bound::Excluded(last), Bound::Unbounded));
            after.next().cloned()
        });
        let next = match after {
            Some(session) => self.dirty.take(&session),
            None => self.dirty.pop_first(),
        };
        self.last = next.clone().or(self.last.take());
        next
    }

    /// Looks for sessions with news, if few are known: those that fail stay known.
    async fn search(&mut self) -> Result<()> {
        let Some(after) = self.scan.as_ref().filter(|_| self.dirty.len() < SCAN) else {
            return Ok(());
        };
        let (log, id) = (&self.job.shared.log, self.job.webhook.id);
        let found = log.behind(id, after.as_ref(), SCAN).await?;
        self.scan = if found.len() == SCAN {
            Some(found.last().cloned())
        } else {
            std::mem::take(&mut self.scan_again).then_some(None)
        };
        for session in found {
            self.session_changed(Some(session));
        }
        Ok(())
    }

    /// Forgets how far sessions were read that were deleted, or may have been: others may have their ids.
    fn forget(&mut self, hint: Option<&Hint>) {
        let is_gone = |session: &SessionId| match hint {
            Some(hint) => hint.is_gone() && hint.session_id == *session,
            None => true,
        };
        self.positions.retain(|session, _| !is_gone(session));
        for (session, busy) in &mut self.busy {
            busy.is_gone |= is_gone(session);
        }
    }

    fn session_changed(&mut self, session: Option<SessionId>) {
        let Some(session) = session else {
            self.search_again();
            return;
        };
        if let Some(busy) = self.busy.get_mut(&session) {
            busy.has_news = true;
        } else if self.dirty.len() < DIRTY || self.dirty.contains(&session) {
            self.dirty.insert(session);
        } else {
            // It is found when some of the known ones are done.
            self.search_again();
        }
    }

    fn search_again(&mut self) {
        self.scan_again = self.scan.as_ref().is_some_and(Option::is_some);
        if !self.scan_again {
            self.scan = Some(None);
        }
    }

    /// Takes in what became of a delivery. `is_paused` says whether another one has failed in the meantime.
    async fn settle(&mut self, done: DeliveredPage, is_paused: bool) -> Result<Option<AfterFailure>> {
        let DeliveredPage {
            session,
            position,
            delivered,
            end,
        } = done;
        let BusySession { has_news, is_gone } = self.busy.remove(&session).unwrap_or_default();
        let (log, webhook) = (Arc::clone(&self.job.shared.log), self.job.webhook.id);
        if delivered && self.health.succeed() {
            self.update(WebhookWrite::Failing {
                webhook,
                failing: None,
            })
            .await?;
        }
        if self.positions.len() >= POSITIONS {
            // They are in the log, too.
            self.positions.clear();
        }
        if !is_gone {
            self.positions.insert(session.clone(), position);
        }
        let error = match end {
            PageEnd::Gone => {
                self.positions.remove(&session);
                return Ok(None);
            }
            PageEnd::Reached => {
                if has_news {
                    self.dirty.insert(session);
                }
                return Ok(None);
            }
            PageEnd::More => {
                self.dirty.insert(session);
                return Ok(None);
            }
            PageEnd::Unsendable(error) => {
                tracing::error!(%error, %webhook, %session, "a webhook does not get the events of a session");
                if has_news {
                    self.dirty.insert(session);
                }
                let error = error.to_string();
                self.update(WebhookWrite::Unsendable { webhook, error }).await?;
                return Ok(None);
            }
            PageEnd::Failed(error) => error,
        };
        self.dirty.insert(session.clone());
        if is_paused && !error.is_gone {
            return Ok(None);
        }
        let (now, limits) = (self.job.shared.clock.millis(), &self.job.shared.limits);
        let next = if error.is_gone {
            AfterFailure::Disable
        } else {
            self.health.fail(now, error.retry_after, fastrand::f64(), limits)
        };
        if next == AfterFailure::Disable {
            tracing::warn!(%webhook, url = self.job.webhook.url, %error, "a webhook was disabled");
            let reason = error.reason;
            let disable = WebhookWrite::Disable {
                webhook,
                at: now,
                reason: reason.clone(),
            };
            self.update(disable).await?;
            let payload = json!({"type": "webhook_disabled", "webhook_id": webhook, "reason": reason});
            let event = NewEvent::new(Source::Host, "webhook_disabled", payload.into());
            match log.write(&session, vec![Write::Append(event)]).await {
                Ok(_) | Err(HostError::NoSession(_)) => {}
                Err(error) => return Err(error),
            }
            return Ok(Some(next));
        }
        let since = self.health.since().unwrap_or(now);
        let failing = Some((since, error.reason));
        self.update(WebhookWrite::Failing { webhook, failing }).await?;
        Ok(Some(next))
    }

    /// A webhook that was removed in the meantime needs no update: its task is about to be ended.
    async fn update(&self, write: WebhookWrite) -> Result<()> {
        match self.job.shared.log.write_webhook(write).await {
            Err(HostError::NoWebhook(_)) => Ok(()),
            result => result,
        }
    }
}

async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

impl DeliveryContext {
    /// Delivers the next events of a session, in order, up to the first failure.
    async fn page(self: Arc<Self>, session: SessionId, position: Option<u64>) -> Result<DeliveredPage> {
        let log = &self.shared.log;
        let mut position = match position {
            Some(position) => position,
            None => log.webhook_cursor(self.webhook.id, &session).await?,
        };
        let mut delivered = false;
        let end = match self.deliver_page(&session, &mut position, &mut delivered).await {
            Ok(end) => end,
            Err(HostError::NoSession(_)) => PageEnd::Gone,
            Err(error @ (HostError::Damaged(_) | HostError::Invalid(_))) => PageEnd::Unsendable(error),
            Err(error) => return Err(error),
        };
        Ok(DeliveredPage {
            session,
            position,
            delivered,
            end,
        })
    }

    async fn deliver_page(
        &self,
        session: &SessionId,
        position: &mut u64,
        delivered: &mut bool,
    ) -> Result<PageEnd> {
        let log = &self.shared.log;
        let page = log.events(session, *position, PAGE).await?;
        if page.head_seq < *position {
            // Another session has the id of one that was removed.
            *position = 0;
            return Ok(PageEnd::More);
        }
        if page.trimmed_seq > *position {
            let message = payload::truncated(session, page.trimmed_seq).map_err(unwritable)?;
            if let Err(error) = self.attempt(message).await {
                return Ok(PageEnd::Failed(error));
            }
            *delivered = true;
            *position = page.trimmed_seq;
            self.confirm(session, *position).await?;
        }
        for event in &page.events {
            let kind = payload::kind(event).filter(|kind| self.webhook.events.contains(kind));
            if let Some(kind) = kind {
                let approval = match payload::opened(event) {
                    Some(id) => match log.approval(id).await {
                        Ok(approval) => Some(approval),
                        Err(HostError::NoApproval(_)) => None,
                        Err(error) => return Err(error),
                    },
                    None => None,
                };
                let message =
                    payload::message(&self.webhook, event, kind, approval.as_ref()).map_err(unwritable)?;
                if let Err(error) = self.attempt(message).await {
                    return Ok(PageEnd::Failed(error));
                }
                *delivered = true;
                self.confirm(session, event.seq).await?;
            }
            *position = event.seq;
        }
        // A page of long events is short.
        if *position >= page.head_seq {
            return Ok(PageEnd::Reached);
        }
        // So that a restart does not read again what is not wanted.
        self.confirm(session, *position).await?;
        Ok(PageEnd::More)
    }

    /// Makes it durable that the webhook has got the events up to here.
    async fn confirm(&self, session: &SessionId, seq: u64) -> Result<()> {
        let cursor = WebhookWrite::Cursor {
            webhook: self.webhook.id,
            session: session.clone(),
            seq,
        };
        self.shared.log.write_webhook(cursor).await
    }

    async fn attempt(&self, Unsigned { id, body }: Unsigned) -> Result<(), DeliveryError> {
        let timestamp = self.shared.clock.now().as_second();
        let signature = signature::signature(&self.webhook.secret, &id, timestamp, &body)
            .ok_or_else(|| DeliveryError::new("the webhook has no secret that can sign; make it anew"))?;
        let message = Message::new(&self.webhook.url, id, timestamp, signature, body);
        let limit = self.shared.limits.attempt;
        match tokio::time::timeout(limit, self.deliver.deliver(message)).await {
            Ok(delivered) => delivered,
            Err(_) => Err(DeliveryError::new(format!(
                "the address did not answer within {}",
                seconds(limit)
            ))),
        }
    }
}

fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

fn unwritable(error: serde_json::Error) -> HostError {
    HostError::Invalid(format!("a message of a webhook: {error}"))
}
