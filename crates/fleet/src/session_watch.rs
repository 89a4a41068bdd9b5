//! Who sees the sessions that a batch or a supervised session starts.

use std::fmt;

use outrigger::Session;
use outrigger::options::Options;

/// A session, or a process of one, that is about to start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Starting {
    /// The id of the job, or the name of the supervised session.
    pub name: String,
    /// Counts from 1: the try of the job, in all runs of its batch; or the process of the supervised session, in this program.
    pub number: u32,
    /// Why the process was started.
    pub reason: StartReason,
}

/// Why a session is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartReason {
    /// A try of a job.
    Attempt,
    /// The first process of a supervised session in this program.
    First,
    /// The process of a supervised session had ended.
    Restart,
    /// The conversation of a supervised session was handed over to a new one.
    Rotation,
}

impl StartReason {
    /// The variant in `snake_case`, for telemetry.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attempt => "attempt",
            Self::First => "first",
            Self::Restart => "restart",
            Self::Rotation => "rotation",
        }
    }
}

/// Is called with the session once it has started, and dropped if it does not start.
pub type OnStarted = Box<dyn FnOnce(&Session) + Send>;

/// Sees each session that a [`Batch`](crate::batch::Batch) or a [`Supervised`](crate::supervise::Supervised) session starts: telemetry, for example.
pub trait SessionWatch: fmt::Debug + Send + Sync + 'static {
    /// A session is about to start with these options; returns those that it starts with. A session that is revived, or comes from a pool, keeps the
    /// options that it has.
    ///
    /// It is called on the task that starts the session, and must not wait.
    fn starting(&self, starting: &Starting, options: Options) -> (Options, OnStarted);
}
