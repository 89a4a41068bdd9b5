//! The bounded log of requests.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::line::LogLine;
use super::ndjson::Appender;
use super::request::{AnsweredBy, ApiRequest, RequestOutcome};
use super::verdict::RequestTally;
use crate::cassette::{Places, Redactor, Rules};
use crate::script::WaitError;

/// How many requests are kept by default. The CLI sends its whole system prompt each time, about
/// 55 kB of JSON, so these are some 100 MB at worst.
pub(super) const DEFAULT_LIMIT: usize = 512;

#[derive(Debug)]
pub(super) struct RequestLog {
    limit: usize,
    inner: Mutex<LogInner>,
    file: Option<(Appender, Redactor)>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct LogInner {
    kept: VecDeque<ApiRequest>,
    total: u64,
    tally: RequestTally,
}

impl RequestLog {
    /// Keeps so many requests, of a CLI with this home directory.
    pub(super) fn new(limit: usize, file: Option<File>, home: &str) -> Self {
        let places = Places {
            home: home.to_owned(),
            ..Places::default()
        };
        Self {
            file: file.map(|file| (Appender::new(file), Redactor::new(&places, Rules::new()))),
            limit: limit.max(1),
            inner: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Takes the request in and gives it its number.
    pub(super) fn push(&self, mut request: ApiRequest) -> ApiRequest {
        let mut inner = self.lock();
        inner.total += 1;
        request.number = inner.total;
        inner.tally.came(&request);
        if inner.kept.len() == self.limit {
            inner.kept.pop_front();
            inner.tally.forgotten += 1;
        }
        inner.kept.push_back(request.clone());
        drop(inner);
        self.changed();
        request
    }

    /// Records the source of the reply to a request.
    pub(super) fn decided(&self, number: u64, by: AnsweredBy) {
        if let Some(why) = by.unmatched() {
            self.lock().tally.unmatched(number, why);
        }
        self.change(number, |request| request.answered_by = by);
    }

    pub(super) fn settle(&self, number: u64, outcome: RequestOutcome) {
        let request = self.change(number, |request| request.outcome = outcome);
        // One that is no longer kept had to wait for hundreds of others; only its line is missing.
        if let (Some(request), Some((file, redactor))) = (request, &self.file) {
            file.write(&LogLine::of(&request, redactor));
        }
    }

    /// The counts over all requests.
    pub(super) fn tally(&self) -> RequestTally {
        self.lock().tally.clone()
    }

    /// Why lines are missing in the file, if any are.
    pub(super) fn write_failure(&self) -> Option<String> {
        self.file.as_ref().and_then(|(file, _)| file.failed())
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut ApiRequest)) -> Option<ApiRequest> {
        let mut inner = self.lock();
        let request = inner
            .kept
            .iter_mut()
            .rev()
            .find(|request| request.number == number);
        let changed = request.map(|request| {
            change(request);
            request.clone()
        });
        drop(inner);
        self.changed();
        changed
    }

    pub(super) fn requests(&self) -> Vec<ApiRequest> {
        self.lock().kept.iter().cloned().collect()
    }

    /// How many requests came, and how many of them are no longer kept.
    pub(super) fn counts(&self) -> (u64, u64) {
        let inner = self.lock();
        (inner.total, inner.total - inner.kept.len() as u64)
    }

    pub(super) async fn wait_until(
        &self,
        what: &str,
        within: Duration,
        mut reached: impl FnMut(&[ApiRequest], u64) -> bool,
    ) -> Result<Vec<ApiRequest>, WaitError> {
        let mut changes = self.changes.subscribe();
        let wait = async {
            loop {
                changes.mark_unchanged();
                let (requests, messages) = {
                    let inner = self.lock();
                    (
                        inner.kept.iter().cloned().collect::<Vec<_>>(),
                        inner.tally.messages,
                    )
                };
                if reached(&requests, messages) {
                    return requests;
                }
                // The sender lives as long as this borrow of the log.
                let _ = changes.changed().await;
            }
        };
        tokio::time::timeout(within, wait).await.map_err(|_| WaitError {
            what: what.to_owned(),
            within,
            seen: self.describe(),
        })
    }

    fn describe(&self) -> String {
        let inner = self.lock();
        let mut seen = format!("{} requests had come", inner.total);
        for request in inner.kept.iter().rev().take(8).rev() {
            let text = request.last_user_text().unwrap_or_default();
            let text: String = text.chars().take(60).collect();
            seen += &format!(
                "\n  {} {} {} {text:?} {:?}",
                request.number, request.method, request.path, request.outcome
            );
            if let Some(why) = request.answered_by.unmatched() {
                seen += &format!("\n    refused: {why}");
            }
        }
        seen
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, LogInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
