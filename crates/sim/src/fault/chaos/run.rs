//! One run of a test under a schedule, and what came of it.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::{Case, Cause};
use crate::fault::{Schedule, Strike};

pub(super) enum CaseVerdict {
    Passed(Vec<Strike>),
    Failed(FailedCase),
}

pub(super) struct FailedCase {
    pub(super) cause: Cause,
    pub(super) strikes: Vec<Strike>,
}

/// Runs a case to its end, on the thread that calls it.
type RunCase = dyn Fn(Case) -> Result<(), Cause> + Send + Sync;

pub(super) struct CaseRunner {
    play: Arc<RunCase>,
    patience: Duration,
}

impl CaseRunner {
    pub(super) fn new<F, T>(test: F, deadline: Duration, patience: Duration, paused: bool) -> Self
    where
        F: Fn(Case) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), Box<dyn std::error::Error>>>,
    {
        let play = move |case| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_all().start_paused(paused);
            let runtime = builder
                .build()
                .map_err(|error| Cause::Setup(format!("no runtime can be made: {error}")))?;
            let ended = runtime.block_on(async { tokio::time::timeout(deadline, test(case)).await });
            runtime.shutdown_background();
            match ended {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(Cause::Error(chain(&*error))),
                Err(_) => Err(Cause::Hang(deadline)),
            }
        };
        Self {
            play: Arc::new(play),
            patience,
        }
    }

    pub(super) fn run(&self, schedule: &Schedule) -> CaseVerdict {
        let case = Case::from(schedule);
        let (sender, receiver) = channel();
        let play = Arc::clone(&self.play);
        let its_case = case.clone();
        let thread =
            std::thread::Builder::new().name(std::thread::current().name().unwrap_or("chaos").to_owned());
        let thread = thread.spawn(move || {
            let played = std::panic::catch_unwind(AssertUnwindSafe(|| play(its_case)));
            // Nobody listens any more if it took too long.
            let _ = sender.send(played);
        });
        let cause = match thread {
            Err(error) => Some(Cause::Setup(format!("no thread can be started: {error}"))),
            Ok(_) => match receiver.recv_timeout(self.patience) {
                Ok(Ok(Ok(()))) => None,
                Ok(Ok(Err(cause))) => Some(cause),
                Ok(Err(panic)) => Some(Cause::Panic(message(&*panic))),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    Some(Cause::Busy(self.patience))
                }
            },
        };
        let strikes = case.strikes();
        match cause {
            None => CaseVerdict::Passed(strikes),
            Some(cause) => CaseVerdict::Failed(FailedCase { cause, strikes }),
        }
    }
}

/// An error with those that it comes from.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "something that is no text".to_owned())
}
