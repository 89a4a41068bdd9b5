//! What can go wrong in a host.

use outrigger::SessionId;
use uuid::Uuid;

use crate::approval::Approval;

/// A result of a host.
pub type Result<T, E = HostError> = std::result::Result<T, E>;

/// Why a host did not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The log could not be opened, read or written: the disk is full, another process has the log open, the directory is not there. Nothing was
    /// stored.
    #[error("the log failed: {0}; nothing was stored")]
    Log(String),
    /// The file of the log is not what was written to it: a disk or another program has changed it.
    #[error(
        "the log is damaged: {0}; end the host and keep the file, let `outrigger host check` say what is wrong, and restore a backup"
    )]
    Damaged(String),
    /// The log was made by a newer version of this crate.
    #[error(
        "the log has version {found}, and this program knows versions up to {known}: upgrade the program"
    )]
    NewerLog {
        /// The version of the file.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// There is no such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// There is no such approval.
    #[error("there is no approval {0}")]
    NoApproval(Uuid),
    /// There is no such webhook.
    #[error("there is no webhook {0}")]
    NoWebhook(Uuid),
    /// There is no such schedule, or it is not due any more when it was.
    #[error("there is no schedule {0} that is due then")]
    NoSchedule(Uuid),
    /// The approval is not pending any more. It says who decided, and when.
    #[error("the approval {} is {} already{}", .0.id, .0.state.as_str(), .0.decided_by.as_deref().map(|by| format!(", by {by}")).unwrap_or_default())]
    TooLate(Box<Approval>),
    /// The CLI has stored nothing of the session where the host looks for it.
    #[error(
        "the CLI has stored nothing of the session {0} on this machine; a session has to have a turn first"
    )]
    NotStored(SessionId),
    /// What the CLI has stored can't be read or copied.
    #[error("the stored session: {0}")]
    Stored(String),
    /// The files of the session could not be prepared or read.
    #[error("the workspace: {0}")]
    Workspace(String),
    /// Another process drives the session, so that it can't be adopted.
    #[error("the session {0} is driven by {1}; end it there first")]
    InUse(SessionId, String),
    /// A turn runs, and what was asked for would come into its way.
    #[error("a turn of the session {0} runs; interrupt the turn, or wait for its end")]
    TurnRuns(SessionId),
    /// The CLI did not do what it was asked to do.
    #[error("the CLI refused: {0}")]
    Cli(String),
    /// The policy of the operator does not allow this.
    #[error("the operator's policy does not allow {0}")]
    NotAllowed(String),
    /// The request makes no sense; nothing was stored.
    #[error("the request is not valid: {0}")]
    Invalid(String),
    /// The key or the id was used before, for something else.
    #[error("{0} was used before for something else")]
    Reused(String),
    /// The session takes no prompts any more.
    #[error("the session {0} is archived; no prompt was stored")]
    Archived(SessionId),
    /// Too much waits for the log or for the session.
    #[error("too much waits for {0}; try again in a second")]
    Busy(&'static str),
    /// The host is shutting down.
    #[error("the host is shutting down")]
    Closed,
}

impl From<rusqlite::Error> for HostError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error;
        use rusqlite::ffi::ErrorCode;
        let text = match &error {
            Error::FromSqlConversionFailure(.., cause) => cause.to_string(),
            error => error.to_string(),
        };
        match error {
            Error::FromSqlConversionFailure(..)
            | Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..) => Self::Damaged(text),
            error => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(text),
                // Only this one passes by itself.
                Some(ErrorCode::DiskFull) => Self::Log(format!("{text}, so try again when it has room")),
                _ => Self::Log(text),
            },
        }
    }
}
