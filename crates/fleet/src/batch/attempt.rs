//! One job, from its first try to its end.

use std::sync::Arc;
use std::time::Duration;

use outrigger::options::Options;
use outrigger::sessions::store::StoreError;
use outrigger::{AfterTools, Cause, Claim, Error, Outcome, Session, SessionId, Turn, Verdict};
use tokio::time::{Instant, sleep, sleep_until};
use uuid::Uuid;

use super::journal::JournaledJob;
use super::progress::Counts;
use super::stored::{self, Stored};
use super::{Batch, BatchJob, BatchStop, JobAnswer, JobFailure, JobResult, NamesSession};
use crate::budget::{Amount, Reservation};
use crate::gate::{Pass, Visitor};
use crate::guarded::GuardedTurn;
use crate::session_watch::{StartReason, Starting};
use crate::tool_watch::ToolWatch;

/// How long the interrupted turns of a batch whose deadline has passed may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// The failure of a job that is not to be run again.
const TOOLS_MAY_HAVE_RUN: &str = "the program was killed while tools of this job may have run; `Retry::after_tools` says what then happens";

/// What the jobs of a batch share.
#[derive(Debug)]
pub(super) struct Attempts {
    batch: Batch,
    counts: Arc<Counts>,
    /// When the batch has to be over.
    until: Option<Instant>,
}

/// How the task of a job ended.
pub(super) enum JobEnd {
    Result(Box<JobResult>),
    /// The batch stopped before.
    NotDone,
}

/// How a try ended.
enum Tried {
    Done(JobAnswer),
    Failed {
        error: Error,
        tools: bool,
    },
    /// The turn was interrupted, since the batch has to stop.
    Broken,
}

/// Whether the job has to be left to the next run of the batch.
struct Leave;

impl Attempts {
    pub(super) fn check(options: &Options) -> Result<(), NamesSession> {
        let named = [
            (options.session_id.is_some(), "session_id"),
            (options.resume.is_some(), "resume"),
            (options.continue_conversation, "continue_conversation"),
        ];
        match named.into_iter().find(|(is_set, _)| *is_set) {
            Some((_, option)) => Err(NamesSession { option }),
            None => Ok(()),
        }
    }

    pub(super) fn new(batch: Batch, counts: Arc<Counts>) -> Self {
        Self {
            // A deadline that the clock cannot count is none.
            until: batch
                .deadline
                .and_then(|deadline| Instant::now().checked_add(deadline)),
            batch,
            counts,
        }
    }

    /// Whether no further job begins.
    fn is_stopped(&self) -> bool {
        if let (Some(until), Some(deadline)) = (self.until, self.batch.deadline)
            && Instant::now() >= until
        {
            self.counts.stop(BatchStop::Deadline(deadline));
        }
        self.counts.is_stopped()
    }

    /// Runs a job to its end.
    pub(super) async fn job(self: Arc<Self>, index: usize, job: BatchJob) -> JobEnd {
        let index = index.try_into().unwrap_or(u64::MAX);
        let known = match &self.batch.journal {
            None => JournaledJob::default(),
            Some(journal) => match journal.meet(&job) {
                Ok(known) => known,
                Err(problem) => {
                    self.counts.stop(BatchStop::WrongJob { id: job.id, problem });
                    return JobEnd::NotDone;
                }
            },
        };
        let again = self.batch.retry_failed && matches!(known.end, Some(Err(_)));
        if let Some(result) = known.result(&job.id, index)
            && !again
        {
            self.counts.replay(result.result.is_ok(), result.spent);
            return JobEnd::Result(Box::new(result));
        }
        if self.is_stopped() {
            return JobEnd::NotDone;
        }
        self.counts.begin();
        self.counts.spend(known.spent);
        let mut course = Course {
            job: &job,
            shared: &self,
            tries: known.tries,
            failed: 0,
            spent: known.spent,
            session: known.session.clone(),
            tools: known.tools && !again,
            began: Instant::now(),
        };
        match course.run(known.is_open).await {
            Ok(result) => {
                let (tries, spent, session_id) = (course.tries, course.spent, course.session);
                self.counts.end(result.is_ok());
                JobEnd::Result(Box::new(JobResult {
                    id: job.id,
                    index,
                    result,
                    tries,
                    spent,
                    session_id,
                    is_replayed: false,
                }))
            }
            Err(Leave) => {
                self.counts.leave();
                JobEnd::NotDone
            }
        }
    }

    /// Waits for what a try needs: its part of the budget, and its place at the gate.
    async fn admitted(&self, job: &BatchJob) -> Result<(Option<Reservation>, Option<Pass>), Leave> {
        let reservation = match &self.batch.budget {
            None => None,
            Some((budget, amount)) => loop {
                let freed = budget.freed();
                match budget.reserve(*amount) {
                    Ok(reservation) => break Some(reservation),
                    // Turns that run, of this batch or others, have reserved more than they will use, perhaps.
                    Err(exhausted) if exhausted.is_for_now() && !self.is_stopped() => {
                        self.unless_stopped(freed).await?
                    }
                    Err(exhausted) => {
                        self.counts.stop(BatchStop::Budget(exhausted));
                        return Err(Leave);
                    }
                }
            },
        };
        let pass = match &self.batch.gate {
            None => None,
            Some(gate) => {
                let mut visitor = Visitor::new(&job.id);
                if let Some(model) = &self.batch.model {
                    visitor = visitor.model(model);
                }
                let entered = self.unless_stopped(gate.enter(visitor)).await;
                if let Ok(Err(refused)) = &entered {
                    self.counts.stop(BatchStop::Gate(refused.clone()));
                }
                match entered {
                    Ok(Ok(pass)) if !self.is_stopped() => Some(pass),
                    _ => {
                        if let Some(reservation) = reservation {
                            reservation.release();
                        }
                        return Err(Leave);
                    }
                }
            }
        };
        Ok((reservation, pass))
    }

    /// Waits for what comes before a prompt is sent, as long as the batch has not stopped and its deadline has not passed.
    async fn unless_stopped<T>(&self, future: impl Future<Output = T>) -> Result<T, Leave> {
        tokio::select! {
            biased;
            value = future => Ok(value),
            () = self.stopped() => Err(Leave),
        }
    }

    /// Waits until no further job begins: until the batch has stopped or its deadline has passed.
    pub(super) async fn stopped(&self) {
        tokio::select! {
            () = self.over() => {}
            () = self.counts.stopped() => {}
        }
    }

    /// Waits for the deadline of the batch.
    async fn over(&self) {
        patience(self.until).await;
        self.is_stopped();
    }

    /// Starts the session of a try: that of an earlier one, or a new one.
    async fn start_try(
        &self,
        job: &BatchJob,
        number: u32,
        resume: Option<&SessionId>,
    ) -> outrigger::Result<(Session, Option<SessionId>)> {
        let options = self.batch.options.clone();
        let Some(watch) = &self.batch.watch else {
            return self.start(options, resume).await;
        };
        let starting = Starting {
            name: job.id.clone(),
            number,
            reason: StartReason::Attempt,
        };
        let (options, started) = watch.starting(&starting, options);
        let (session, id) = self.start(options, resume).await?;
        started(&session);
        Ok((session, id))
    }

    async fn start(
        &self,
        options: Options,
        resume: Option<&SessionId>,
    ) -> outrigger::Result<(Session, Option<SessionId>)> {
        if let Some(id) = resume {
            let session = options.resume(id.to_string()).start().await?;
            return Ok((session, Some(id.clone())));
        }
        if let Some((pool, key)) = &self.batch.pool {
            let cwd = options.cwd.clone().or_else(|| std::env::current_dir().ok());
            let claim = Claim::new(cwd.unwrap_or_else(|| ".".into()));
            let session = pool.get(key, claim).await?.session;
            let id = session.id();
            return Ok((session, id));
        }
        // The CLI tells its own id with the first turn, and the journal needs it before.
        let id = Uuid::new_v4().to_string();
        let session = options.session_id(&id).start().await?;
        Ok((session, SessionId::new(&id).ok()))
    }
}

/// A job that runs.
struct Course<'a> {
    job: &'a BatchJob,
    shared: &'a Attempts,
    /// The tries in all runs.
    tries: u32,
    /// The tries that failed in this run.
    failed: u32,
    spent: Amount,
    session: Option<SessionId>,
    /// A tool may have run in a try.
    tools: bool,
    began: Instant,
}

/// What the next try does.
enum NextTry {
    /// The prompt in a new session.
    Anew,
    /// This text in the session of the last try.
    GoOn(String),
}

impl Course<'_> {
    /// Tries until there is an end. `is_open`: the last try of a killed program has none.
    async fn run(&mut self, is_open: bool) -> Result<Result<JobAnswer, JobFailure>, Leave> {
        let mut next = NextTry::Anew;
        if is_open {
            match self.look().await? {
                Ok(Stored::Answer(done)) => return self.end(Ok(done)).await,
                Ok(stored) => self.tools |= matches!(stored, Stored::Tools),
                Err(error) => {
                    self.tools = true;
                    if passes(&error) || *self.shared.batch.retry.rule_after_tools() != AfterTools::Repeat {
                        // The journal gets no end, for nobody knows it: the next run of the batch looks again.
                        let mut failure = self.failure(&error);
                        failure.message = format!(
                            "what came of the job is not known, and the next run looks again: {error}"
                        );
                        return Ok(Err(failure));
                    }
                }
            }
            match self.shared.batch.retry.rule_after_tools() {
                _ if !self.tools => {}
                AfterTools::GoOn(text) if self.session.is_some() => next = NextTry::GoOn(text.clone()),
                AfterTools::Repeat => {}
                _ => {
                    let failure = JobFailure {
                        message: TOOLS_MAY_HAVE_RUN.to_owned(),
                        cause: None,
                        is_transient: false,
                        tools_may_have_run: true,
                    };
                    return self.end(Err(failure)).await;
                }
            }
        }
        loop {
            let tried = self.once(next).await?;
            let (error, tools) = match tried {
                Tried::Done(done) => return self.end(Ok(done)).await,
                Tried::Broken => return Err(Leave),
                Tried::Failed { error, tools } => (error, tools),
            };
            self.tools |= tools;
            self.failed += 1;
            if is_fatal(&error) {
                self.shared.counts.stop(BatchStop::Fatal(error));
                return Err(Leave);
            }
            let retry = &self.shared.batch.retry;
            let rule = retry.rule_after_tools();
            let wait = match passes(&error) && !(self.tools && *rule == AfterTools::Stop) {
                true => retry.next_wait(self.failed, self.began.elapsed(), error.retry_after()),
                false => None,
            };
            let Some(wait) = wait else {
                return self.end(Err(self.failure(&error))).await;
            };
            next = match rule {
                AfterTools::GoOn(text) if self.tools && self.session.is_some() => NextTry::GoOn(text.clone()),
                _ => NextTry::Anew,
            };
            self.shared.counts.retry();
            self.shared.unless_stopped(sleep(wait)).await?;
            if self.shared.is_stopped() {
                return Err(Leave);
            }
        }
    }

    /// What the stored session of a try shows that has no end. What passes is tried again, as a prompt is.
    async fn look(&self) -> Result<outrigger::Result<Stored>, Leave> {
        let options = &self.shared.batch.options;
        let id = match &self.session {
            Some(id) if options.persist_session != Some(false) => id,
            // There is nothing to look at, so any tool may have run.
            _ => return Ok(Ok(Stored::Tools)),
        };
        let retry = &self.shared.batch.retry;
        let mut failed = 0;
        loop {
            let looked = async {
                let (session, _) = self.shared.start(options.clone(), Some(id)).await?;
                let stored = stored::read(&session, options.output_format.is_some()).await;
                drop(session.close().await);
                stored
            };
            let error = match self.shared.unless_stopped(looked).await? {
                Ok(stored) => return Ok(Ok(stored)),
                // The CLI writes the prompt down before the model sees it.
                Err(error) if error.cause() == Some(Cause::UnknownSession) => return Ok(Ok(Stored::Nothing)),
                Err(error) => error,
            };
            if is_fatal(&error) {
                self.shared.counts.stop(BatchStop::Fatal(error));
                return Err(Leave);
            }
            failed += 1;
            let wait = match passes(&error) {
                true => retry.next_wait(failed, self.began.elapsed(), error.retry_after()),
                false => None,
            };
            let Some(wait) = wait else { return Ok(Err(error)) };
            self.shared.unless_stopped(sleep(wait)).await?;
            if self.shared.is_stopped() {
                return Err(Leave);
            }
        }
    }

    /// One try.
    async fn once(&mut self, next: NextTry) -> Result<Tried, Leave> {
        let (reservation, pass) = self.shared.admitted(self.job).await?;
        let reserved = reservation.as_ref().map(Reservation::amount).unwrap_or_default();
        let (prompt, resume) = match &next {
            NextTry::Anew => (self.job.prompt.as_str(), None),
            NextTry::GoOn(text) => (text.as_str(), self.session.clone()),
        };
        let (session, id) = match self
            .shared
            .unless_stopped(
                self.shared
                    .start_try(self.job, self.tries.saturating_add(1), resume.as_ref()),
            )
            .await
        {
            Ok(Ok(started)) => started,
            failed => {
                // Nothing was sent, so nothing was spent.
                reservation.into_iter().for_each(Reservation::release);
                return match failed {
                    Ok(Err(error)) => Ok(Tried::Failed { error, tools: false }),
                    _ => Err(Leave),
                };
            }
        };
        self.session = id;
        self.tries = self.tries.saturating_add(1);
        if let Some(journal) = &self.shared.batch.journal
            && let Err(error) = journal.begin(self.job, self.session.clone(), reserved).await
        {
            reservation.into_iter().for_each(Reservation::release);
            self.shared.counts.stop(BatchStop::Journal(error));
            drop(session.close().await);
            return Err(Leave);
        }
        let tried = match session.prompt(prompt).await {
            Ok(turn) => self.turn(turn, reservation, pass).await,
            Err(error) => {
                reservation.into_iter().for_each(Reservation::release);
                Ok(Tried::Failed { error, tools: false })
            }
        };
        let spent = Amount::from(&session.usage());
        self.spent += spent;
        self.shared.counts.spend(spent);
        // The id may have come with the first turn only.
        self.session = session.id().or(self.session.take());
        // A turn that fails to end has its process killed.
        match tried {
            Ok(Tried::Done(_)) => drop(session.close().await),
            _ => drop(session.kill().await),
        }
        if let Some(journal) = &self.shared.batch.journal
            && let Err(error) = journal.tried(self.job, spent).await
        {
            self.shared.counts.stop(BatchStop::Journal(error));
            return Err(Leave);
        }
        tried
    }

    /// The turn of a try.
    async fn turn(
        &self,
        turn: Turn,
        reservation: Option<Reservation>,
        pass: Option<Pass>,
    ) -> Result<Tried, Leave> {
        let mut guarded = GuardedTurn::new(turn);
        if let Some(reservation) = reservation {
            guarded = guarded.reservation(reservation);
        }
        if let Some(pass) = pass {
            guarded = guarded.pass(pass);
        }
        let mut watch = ToolWatch::default();
        let over = self.shared.over();
        tokio::pin!(over);
        // Set when the deadline of the batch has passed.
        let mut until: Option<Instant> = None;
        loop {
            // The deadlines come first: a CLI that never stops talking must not put them off.
            let event = tokio::select! {
                biased;
                () = &mut over, if until.is_none() => {
                    until = Some(Instant::now() + 2 * GRACE);
                    drop(tokio::time::timeout(GRACE, guarded.turn().cancel()).await);
                    continue;
                }
                // The CLI did not end the turn that it was to interrupt.
                () = patience(until) => return Ok(Tried::Broken),
                event = guarded.next() => event,
            };
            let Some(Ok(event)) = event else { break };
            if watch.observe(&event)
                && let Some(journal) = &self.shared.batch.journal
                && let Err(error) = journal.tools(self.job).await
            {
                self.shared.counts.stop(BatchStop::Journal(error));
                return Err(Leave);
            }
        }
        let ended = guarded.outcome().await;
        if let Some(exhausted) = guarded.exhausted() {
            self.shared.counts.stop(BatchStop::Budget(exhausted.clone()));
        }
        let tools = watch.ran();
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(error) => return Ok(Tried::Failed { error, tools }),
        };
        if *outcome.verdict() == Verdict::Interrupted && (until.is_some() || guarded.exhausted().is_some()) {
            return Ok(Tried::Broken);
        }
        Ok(
            match done(&outcome, self.shared.batch.options.output_format.is_some()) {
                Ok(done) => Tried::Done(done),
                Err(error) => Tried::Failed { error, tools },
            },
        )
    }

    async fn end(&self, end: Result<JobAnswer, JobFailure>) -> Result<Result<JobAnswer, JobFailure>, Leave> {
        if let Some(journal) = &self.shared.batch.journal
            && let Err(error) = journal.end(self.job, &end).await
        {
            self.shared.counts.stop(BatchStop::Journal(error));
            return Err(Leave);
        }
        Ok(end)
    }

    fn failure(&self, error: &Error) -> JobFailure {
        JobFailure {
            message: error.to_string(),
            cause: error.cause(),
            is_transient: passes(error),
            tools_may_have_run: self.tools,
        }
    }
}

/// Waits until then; for ever, if there is no such moment.
async fn patience(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// The answer of a turn.
fn done(outcome: &Outcome, wants_output: bool) -> outrigger::Result<JobAnswer> {
    let output = match (wants_output, outcome.structured_output()) {
        (true, None) => Some(outcome.output()?),
        (_, output) => output.cloned(),
    };
    let answer = outcome.clone().answer()?;
    Ok(JobAnswer {
        text: answer.text().to_owned(),
        output,
        is_recovered: false,
    })
}

/// Whether another try may succeed.
fn passes(error: &Error) -> bool {
    let may_store = error.as_store_error().is_some_and(StoreError::may_pass);
    error.is_transient() || error.is_closed() || may_store || error.cause() == Some(Cause::SessionInUse)
}

/// Whether every job would end with this error.
fn is_fatal(error: &Error) -> bool {
    match error.cause() {
        Some(Cause::NotLoggedIn | Cause::InvalidKey | Cause::Billing) => true,
        Some(cause) => {
            let of_one = matches!(cause, Cause::UnknownSession | Cause::SessionInUse);
            cause.is_start() && !cause.is_transient() && !of_one
        }
        None => error.as_options_error().is_some(),
    }
}
