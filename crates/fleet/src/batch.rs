//! Many prompts, each in a session of its own, resumable after the program was killed.
//!
//! A [`Batch`] takes [`BatchJob`]s from a stream and emits a [`JobResult`] for each: as they end, or in the order of the jobs. Some run at
//! once. A job that fails for a cause that passes is tried again ([`Retry`]). A [`Gate`] and a [`Budget`] are those of all other turns
//! of the program.
//!
//! ```no_run
//! use futures_util::stream;
//! use outrigger::{Agent, Policy, Retry};
//! use outrigger_fleet::batch::{Batch, BatchJob, Journal};
//!
//! # async fn example(tickets: Vec<(String, String)>) -> Result<(), Box<dyn std::error::Error>> {
//! let jobs = tickets.into_iter().map(|(id, text)| BatchJob::new(id, format!("Classify this ticket: {text}")));
//! let batch = Batch::new(Agent::builder().permissions(Policy::read_only()))
//!     .jobs(8)
//!     .retry(Retry::new().tries(3))
//!     .journal(Journal::open("tickets.journal").await?);
//! let mut run = batch.run(stream::iter(jobs))?;
//! while let Some(result) = run.next().await {
//!     match result.result {
//!         Ok(done) => println!("{}: {}", result.id, done.text),
//!         Err(failure) => eprintln!("{}: {failure}", result.id),
//!     }
//! }
//! let summary = run.finish().await?;
//! println!("{summary}");
//! # Ok(())
//! # }
//! ```
//!
//! # What a journal promises
//!
//! With a [`Journal`], a batch may be killed at any moment and run again with the same jobs:
//!
//! * A job whose result is in the journal is not run again. The next run emits its result again, with [`JobResult::is_replayed`].
//! * A job that had not begun is run.
//! * A job that was running is looked up in its stored session. If the answer is there, it is taken from there. If the model had not
//!   called a tool, the job is run again in a new session. Else tools may have run, as they may if nothing is stored or a part of it cannot
//!   be read: [`Retry::after_tools`] decides whether the job fails, goes on in its session, or is run again.
//! * When the look itself fails, for example since another process has the session, it is tried again as a prompt is. If it still fails, so
//!   does the job in this run, and the next run looks again. [`AfterTools::Repeat`](outrigger::AfterTools::Repeat) runs it again at once if
//!   the error does not pass.
//!
//! So no job is forgotten, and none is done twice, except that a request to the API may be repeated whose answer was not stored when
//! the program was killed.

mod attempt;
mod journal;
mod progress;
mod stored;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use outrigger::options::Options;
use outrigger::protocol::RawJson;
use outrigger::{Cause, Error, Pool, PoolKey, Retry, SessionId};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

use self::attempt::{Attempts, JobEnd};
pub use self::journal::{Journal, JournalError};
use self::progress::Counts;
pub use self::progress::{Monitor, Progress, Summary};
use crate::budget::{Amount, Budget};
use crate::gate::{Gate, GateError};
use crate::session_watch::SessionWatch;

/// One prompt of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchJob {
    /// Names the job, in the journal and in its result. No two jobs of a batch may have the same.
    pub id: String,
    /// The prompt.
    pub prompt: String,
}

impl BatchJob {
    /// A job.
    pub fn new(id: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            prompt: prompt.into(),
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobResult {
    /// The job's id.
    pub id: String,
    /// The place of the job among all jobs, from 0.
    pub index: u64,
    /// The answer, or why there is none.
    pub result: Result<JobAnswer, JobFailure>,
    /// How often the job was tried, in all runs of the batch.
    pub tries: u32,
    /// What all tries have spent. What a killed program had spent on a job counts as what was reserved for it.
    pub spent: Amount,
    /// The session of the last try.
    pub session_id: Option<SessionId>,
    /// Whether the result is from the journal: an earlier run emitted it, or was killed before it could.
    pub is_replayed: bool,
}

/// The answer of a job.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct JobAnswer {
    /// The model's text.
    pub text: String,
    /// The structured output, if the options ask for one.
    pub output: Option<RawJson>,
    /// Whether the answer was found in the stored session of a program that was killed.
    pub is_recovered: bool,
}

impl JobAnswer {
    /// The structured output as a `T`.
    ///
    /// # Errors
    /// When there is none, or it does not have the shape of `T`.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        match &self.output {
            Some(output) => serde_json::from_str(output.get()),
            None => Err(serde::de::Error::custom(
                "the job has no structured output; `Options::output_as` asks for one",
            )),
        }
    }
}

/// Why a job has no answer. `Display` is the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct JobFailure {
    /// The message of the error.
    pub message: String,
    /// The cause, if it is known.
    pub cause: Option<Cause>,
    /// Whether the cause passes: the job was tried as often as it may be.
    pub is_transient: bool,
    /// Whether tools may have run in one of the tries.
    pub tools_may_have_run: bool,
}

/// The order in which results are emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BatchOrder {
    /// As the jobs end.
    #[default]
    AsTheyEnd,
    /// As the jobs came. A job that takes long holds the results of later ones back; as many jobs as may run at once run or wait.
    AsTheyCame,
}

/// Why no job begins any more.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum BatchStop {
    /// The budget is exhausted.
    Budget(crate::budget::Exhausted),
    /// The batch's deadline has passed.
    Deadline(Duration),
    /// Every job would fail in the same way: no CLI, no login, wrong options.
    Fatal(Error),
    /// The gate refuses turns: its store fails, or too many of others wait.
    Gate(GateError),
    /// The journal cannot be written to.
    Journal(Arc<JournalError>),
    /// Two jobs have this id, or the journal has another prompt for it.
    WrongJob {
        /// The id of the job.
        id: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// [`Monitor::stop`] was called.
    Asked,
}

impl fmt::Display for BatchStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget(exhausted) => exhausted.fmt(f),
            Self::Deadline(time) => write!(f, "the deadline of the batch, {time:?}, has passed"),
            Self::Fatal(_) => f.write_str("no job can succeed"),
            Self::Gate(error) => error.fmt(f),
            Self::Journal(error) => error.fmt(f),
            Self::WrongJob { id, problem } => write!(f, "the job {id:?}: {problem}"),
            Self::Asked => f.write_str("the batch was asked to stop"),
        }
    }
}

/// The options of a batch name a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{option}` is for one session, and a batch makes many")]
#[non_exhaustive]
pub struct NamesSession {
    /// The option.
    pub option: &'static str,
}

/// How many prompts are run. See the [module](self).
#[derive(Debug, Clone)]
#[must_use = "a batch does nothing until it is run"]
pub struct Batch {
    options: Options,
    jobs: usize,
    order: BatchOrder,
    retry: Retry,
    retry_failed: bool,
    gate: Option<Gate>,
    model: Option<String>,
    budget: Option<(Budget, Amount)>,
    pool: Option<(Pool, PoolKey)>,
    deadline: Option<Duration>,
    journal: Option<Journal>,
    watch: Option<Arc<dyn SessionWatch>>,
}

impl Batch {
    /// A batch whose sessions have these options: 4 jobs at once, one try each, and results as the jobs end.
    ///
    /// The options may not name a session. [`Options::turn_deadline`] bounds each try. Each session has a process of its own, which
    /// ends with its job.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            jobs: 4,
            order: BatchOrder::default(),
            retry: Retry::new().tries(1),
            retry_failed: false,
            gate: None,
            model: None,
            budget: None,
            pool: None,
            deadline: None,
            journal: None,
            watch: None,
        }
    }

    /// Sees the session of each try: for telemetry.
    pub fn watch(mut self, watch: impl SessionWatch) -> Self {
        self.watch = Some(Arc::new(watch));
        self
    }

    /// How many jobs run at once; 0 counts as 1.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs.max(1);
        self
    }

    /// The order of the results.
    pub fn order(mut self, order: BatchOrder) -> Self {
        self.order = order;
        self
    }

    /// How often a job is tried that fails for a cause that passes, or whose process died. Each try has a session of its own, except that
    /// [`AfterTools::GoOn`](outrigger::AfterTools::GoOn) goes on in the session of the last.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Also runs the jobs again that failed in an earlier run of this journal.
    pub fn retry_failed(mut self) -> Self {
        self.retry_failed = true;
        self
    }

    /// Each try enters this gate. `model` is the model for [`GateLimits::by_model`](crate::gate::GateLimits::by_model). When the gate refuses a try,
    /// no further job begins.
    pub fn gate(mut self, gate: Gate, model: Option<&str>) -> Self {
        self.gate = Some(gate);
        self.model = model.map(str::to_owned);
        self
    }

    /// Each try reserves this amount of the budget before it begins. When the budget is exhausted, no further job begins. What earlier
    /// runs of the journal spent is charged to the budget first.
    pub fn budget(mut self, budget: Budget, for_each: Amount) -> Self {
        self.budget = Some((budget, for_each));
        self
    }

    /// Sessions come from this pool, with the options of its key in place of those of [`new`](Self::new), in the directory of those.
    ///
    /// A process is never used for two jobs: the CLI does not forget all of a session with `/clear`.
    pub fn pool(mut self, pool: Pool, key: PoolKey) -> Self {
        self.pool = Some((pool, key));
        self
    }

    /// When this time is over, no further job begins, and those that run are interrupted. They count as not done.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Keeps what is done, for the next run.
    pub fn journal(mut self, journal: Journal) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Runs the jobs of a stream. No job begins before the first [`BatchRun::next`].
    ///
    /// # Errors
    /// When the options name a session.
    pub fn run<S>(self, jobs: S) -> Result<BatchRun, NamesSession>
    where
        S: Stream<Item = BatchJob> + Send + 'static,
    {
        Attempts::check(&self.options)?;
        let counts = Arc::new(Counts::new(jobs.size_hint()));
        let monitor = Monitor::new(Arc::clone(&counts));
        if let (Some((budget, _)), Some(journal)) = (&self.budget, &self.journal) {
            let earlier = journal.spent();
            if earlier != Amount::default() {
                budget.charge(earlier);
            }
        }
        let (at_once, order) = (self.jobs, self.order);
        let attempts = Arc::new(Attempts::new(self, counts));
        let running = {
            let begins = Arc::clone(&attempts);
            let jobs = jobs
                .enumerate()
                .take_until(async move { begins.stopped().await })
                .map(move |(index, job)| JobTask::spawn(Arc::clone(&attempts), index, job));
            match order {
                BatchOrder::AsTheyEnd => jobs.buffer_unordered(at_once).boxed(),
                BatchOrder::AsTheyCame => jobs.buffered(at_once).boxed(),
            }
        };
        let results = running.filter_map(std::future::ready).boxed();
        Ok(BatchRun {
            results: Some(results),
            monitor,
        })
    }
}

/// A batch that runs. Dropping it kills the sessions that run; with a journal, the next run goes on from there.
#[must_use = "no job begins unless this is read"]
pub struct BatchRun {
    results: Option<BoxStream<'static, JobResult>>,
    monitor: Monitor,
}

impl fmt::Debug for BatchRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BatchRun").field(&self.monitor.progress()).finish()
    }
}

impl BatchRun {
    /// The next result; `None` when no job runs and none begins any more. [`finish`](Self::finish) says why.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped. Jobs that run go on; no other begins before the next call.
    pub async fn next(&mut self) -> Option<JobResult> {
        let results = self.results.as_mut()?;
        let next = results.next().await;
        if next.is_none() {
            self.results = None;
        }
        next
    }

    /// How far the batch is; also for others, while this is read.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Runs what is left, drops its results, and says how the batch ended.
    ///
    /// # Errors
    /// When it could not go on: [`BatchStop::Fatal`], [`BatchStop::Gate`], [`BatchStop::Journal`] and [`BatchStop::WrongJob`]. A batch that
    /// stopped for its budget or its deadline has a summary that says so.
    ///
    /// # Cancel safety
    /// As [`next`](Self::next), except for the results that were dropped.
    pub async fn finish(mut self) -> Result<Summary, BatchError> {
        while self.next().await.is_some() {}
        let summary = self.monitor.summary();
        match summary.stopped {
            Some(
                BatchStop::Fatal(_) | BatchStop::Gate(_) | BatchStop::Journal(_) | BatchStop::WrongJob { .. },
            ) => Err(BatchError(summary)),
            _ => Ok(summary),
        }
    }
}

/// A batch that could not go on. Its summary says how far it came.
#[derive(Debug, Clone)]
pub struct BatchError(Summary);

impl BatchError {
    /// How far the batch came, and why it stopped.
    pub fn summary(&self) -> &Summary {
        &self.0
    }

    /// The error that every job would have ended with.
    pub fn error(&self) -> Option<&Error> {
        match &self.0.stopped {
            Some(BatchStop::Fatal(error)) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.stopped {
            Some(stop) => stop.fmt(f),
            None => f.write_str("the batch stopped"),
        }
    }
}

impl std::error::Error for BatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.stopped {
            Some(BatchStop::Fatal(error)) => Some(error),
            Some(BatchStop::Journal(error)) => error.source(),
            _ => None,
        }
    }
}

/// A job on a task of its own, which ends with this.
struct JobTask(JoinHandle<JobEnd>);

impl JobTask {
    /// Its result; `None` if the job did not end before the batch stopped.
    fn spawn(
        attempts: Arc<Attempts>,
        index: usize,
        job: BatchJob,
    ) -> Pin<Box<dyn Future<Output = Option<JobResult>> + Send>> {
        Box::pin(async move {
            let mut this = Self(tokio::spawn(Arc::clone(&attempts).job(index, job)));
            match (&mut this.0).await {
                Ok(JobEnd::Result(result)) => Some(*result),
                // A panic is a fault of this crate or of a callback of the program; the job counts as not done.
                Ok(JobEnd::NotDone) | Err(_) => None,
            }
        })
    }
}

impl Drop for JobTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
