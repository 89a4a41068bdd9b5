//! Many schedules against one test, and the shortest that breaks it.

mod case;
mod over;
mod profile;
mod run;
mod shrink;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::time::Duration;

pub use case::Case;
pub use over::{Client, Life, Peer};
pub use profile::Profile;
use run::{CaseRunner, CaseVerdict};

use super::{Schedule, Strike};

/// Names the only seed to run.
pub const SEED: &str = "OUTRIGGER_CHAOS_SEED";

/// Holds the only schedule to run, as JSON.
pub const SCHEDULE: &str = "OUTRIGGER_CHAOS_SCHEDULE";

/// Says how many seeds to run.
pub const SEEDS: &str = "OUTRIGGER_CHAOS_SEEDS";

/// How many runs shrinking may take.
const SHRINKING: usize = 400;

/// Runs a test under many schedules of faults; see [`Chaos::run`].
pub fn chaos(profile: Profile) -> Chaos {
    Chaos {
        profile,
        seeds: 100,
        deadline: Duration::from_secs(24 * 3600),
        patience: Duration::from_secs(60),
        paused: true,
    }
}

/// A chaos that is set up; [`chaos`] makes one.
#[derive(Debug, Clone)]
#[must_use = "nothing runs before `run`"]
pub struct Chaos {
    profile: Profile,
    seeds: u64,
    deadline: Duration,
    patience: Duration,
    paused: bool,
}

impl Chaos {
    /// Runs on the real clock, which real processes need. Sets the deadline to a minute.
    pub fn real_time(mut self) -> Self {
        self.paused = false;
        self.deadline = Duration::from_secs(60);
        self.patience = Duration::from_secs(120);
        self
    }

    /// Runs `test` once for each seed, each time with another schedule, on a thread and a runtime of its own. Its clock is paused
    /// unless [`real_time`](Self::real_time) says otherwise: pipes in memory take no time.
    ///
    /// A panic, an error, and not coming to an end are failures. The first one ends it, and its schedule is shrunk: to fewer faults,
    /// and then to smaller ones that strike less often, as long as the same sort of failure comes of it.
    ///
    /// ```
    /// use outrigger_sim::fault::{Case, FrameDirection, Profile, Stage, chaos};
    /// use tokio::io::AsyncReadExt as _;
    ///
    /// // A client that survives whatever loses nothing, as long as it reads whole lines.
    /// let summary = chaos(Profile::harmless().on(Stage::Streams).output_only().without("insert").without("noise"))
    ///     .seeds(20)
    ///     .run(|case: Case| async move {
    ///         let lines = &b"{\"type\":\"a\"}\n{\"type\":\"b\"}\n"[..];
    ///         let mut stdout = case.wire(Stage::Streams)?.reader(FrameDirection::Output, lines);
    ///         let mut text = String::new();
    ///         stdout.read_to_string(&mut text).await?;
    ///         assert_eq!(text.lines().count(), 2);
    ///         Ok(())
    ///     })?;
    /// assert_eq!(summary.runs, 20);
    /// # Ok::<(), Box<outrigger_sim::fault::ChaosFailure>>(())
    /// ```
    ///
    /// # Errors
    /// The failure, with the seed, the shrunk schedule, and how to run just that one. It reads well in the output of `unwrap`.
    pub fn run<F, T>(self, test: F) -> Result<Summary, Box<ChaosFailure>>
    where
        F: Fn(Case) -> T + Send + Sync + 'static,
        T: Future<Output = Result<(), Box<dyn std::error::Error>>>,
    {
        let runner = CaseRunner::new(test, self.deadline, self.patience, self.paused);
        if let Ok(text) = std::env::var(SCHEDULE) {
            let schedule: Schedule = text
                .parse()
                .map_err(|error| ChaosFailure::unreadable(SCHEDULE, &error))?;
            return match runner.run(&schedule) {
                CaseVerdict::Passed(strikes) => Ok(Summary {
                    runs: 1,
                    strikes: strikes.len() as u64,
                }),
                CaseVerdict::Failed(failed) => Err(ChaosFailure::new(&schedule, schedule.clone(), failed, 0)),
            };
        }
        let only = number(SEED)?;
        let seeds = match (only, number(SEEDS)?) {
            (Some(seed), _) => seed..seed.saturating_add(1),
            (None, Some(seeds)) => 0..seeds,
            (None, None) => 0..self.seeds,
        };
        let mut summary = Summary { runs: 0, strikes: 0 };
        for seed in seeds {
            let schedule = self.profile.schedule(seed);
            match runner.run(&schedule) {
                CaseVerdict::Passed(strikes) => {
                    summary.runs += 1;
                    summary.strikes += strikes.len() as u64;
                }
                CaseVerdict::Failed(failed) => {
                    let (shrunk, failed, tried) =
                        shrink::shrink(&runner, schedule.clone(), failed, SHRINKING);
                    return Err(ChaosFailure::new(&schedule, shrunk, failed, tried));
                }
            }
        }
        Ok(summary)
    }
}

setters! { Chaos:
    /// How many seeds to try, from 0; 100 unless set. The environment variable [`SEEDS`] overrules it.
    seeds(seeds: u64) = seeds;

    /// How long a run may take on its own clock before it counts as hanging; a day unless set. With a paused clock, waiting costs
    /// nothing, so that only what really waits for ever is found.
    deadline(deadline: Duration) = deadline;

    /// How long a run may take in real time, for what turns in circles without ever letting the clock go on; a minute unless
    /// set. Its thread is left behind then.
    patience(patience: Duration) = patience;
}

fn number(variable: &str) -> Result<Option<u64>, Box<ChaosFailure>> {
    match std::env::var(variable) {
        Ok(text) => match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(error) => Err(ChaosFailure::unreadable(variable, &error)),
        },
        Err(_) => Ok(None),
    }
}

/// What was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// How many schedules.
    pub runs: u64,
    /// How often the faults of all cases struck. None at all means that nothing was tested.
    pub strikes: u64,
}

/// In what way a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The case panicked, with this message.
    Panic(String),
    /// The case gave this error.
    Error(String),
    /// The case did not come to an end within this time on its clock.
    Hang(Duration),
    /// The case turned in circles for this long in real time.
    Busy(Duration),
    /// What chaos was told by the environment makes no sense.
    Setup(String),
}

impl Cause {
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(message) => write!(f, "it panicked: {message}"),
            Self::Error(message) => write!(f, "it failed: {message}"),
            Self::Hang(time) => write!(f, "it hangs: no end within {time:?} on its clock"),
            Self::Busy(time) => write!(
                f,
                "it turns in circles: no end within {time:?}, and its clock stands still"
            ),
            Self::Setup(message) => f.write_str(message),
        }
    }
}

/// A test that broke, and the least that breaks it.
#[derive(Clone)]
#[non_exhaustive]
pub struct ChaosFailure {
    /// In what way, with the shrunk schedule.
    pub cause: Cause,
    /// The shrunk schedule.
    pub schedule: Schedule,
    /// How many faults the schedule had that broke it first.
    pub faults_before: usize,
    /// What the faults of the shrunk schedule struck.
    pub strikes: Vec<Strike>,
    /// How many schedules were tried to shrink it.
    pub tried: usize,
    /// The test's name, if the thread has it.
    test: Option<String>,
}

impl ChaosFailure {
    fn new(before: &Schedule, schedule: Schedule, failed: run::FailedCase, tried: usize) -> Box<Self> {
        let thread = std::thread::current();
        Box::new(Self {
            cause: failed.cause,
            schedule,
            faults_before: before.faults.len(),
            strikes: failed.strikes,
            tried,
            test: thread.name().filter(|name| *name != "main").map(str::to_owned),
        })
    }

    fn unreadable(variable: &str, error: &dyn fmt::Display) -> Box<Self> {
        Box::new(Self {
            cause: Cause::Setup(format!("{variable} cannot be read: {error}")),
            schedule: Schedule::default(),
            faults_before: 0,
            strikes: Vec::new(),
            tried: 0,
            test: None,
        })
    }
}

/// How many strikes are shown.
const SHOWN: usize = 8;

impl fmt::Display for ChaosFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Cause::Setup(message) = &self.cause {
            return f.write_str(message);
        }
        let seed = self.schedule.seed;
        writeln!(f, "chaos, seed {seed}: {}", self.cause)?;
        writeln!(
            f,
            "the shortest schedule that does this ({} of {} faults, {} tried):",
            self.schedule.faults.len(),
            self.faults_before,
            self.tried
        )?;
        writeln!(f, "{}", self.schedule)?;
        for strike in self.strikes.iter().take(SHOWN) {
            writeln!(f, "  {strike}")?;
        }
        if self.strikes.len() > SHOWN {
            writeln!(f, "  and {} more", self.strikes.len() - SHOWN)?;
        }
        let test = self.test.as_deref().unwrap_or("");
        writeln!(f, "to run this seed alone:      {SEED}={seed} cargo test {test}")?;
        let one_line = self.schedule.to_string().replace("\n", "").replace("'", "'\\''");
        write!(
            f,
            "to run this schedule alone:  {SCHEDULE}='{one_line}' cargo test {test}"
        )
    }
}

/// Reads well in the output of `unwrap`.
impl fmt::Debug for ChaosFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for ChaosFailure {}
