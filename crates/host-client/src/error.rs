//! What can go wrong with a host.

use std::fmt;
use std::time::Duration;

use outrigger_json::RawJson;
use serde::Deserialize;

use crate::document::Approval;

/// A result of a client.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a host did not do what it was asked to do, or why that is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is none of a host. Nothing was sent.
    #[error("{address} is no address of a host: {reason}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value of the program cannot be sent. Nothing was sent.
    #[error("{0}; nothing was sent")]
    Invalid(String),
    /// There is no connection to the host. Nothing was sent.
    #[error("cannot reach the host at {host}")]
    Unreachable {
        /// The address of the host.
        host: String,
        /// Why there is none.
        source: Source,
    },
    /// The connection broke before the answer was whole. The host may have done what it was asked to do.
    #[error("the connection to the host broke before its answer was whole")]
    Lost {
        /// The error of the connection.
        source: Source,
    },
    /// The answer, or a sign of life on a stream, did not come in time. The host may have done what it was asked to do.
    #[error("the host said nothing for {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The host refuses.
    #[error("the host refuses: {0}")]
    Refused(Box<Problem>),
    /// The answer is none of a host: a redirect, a page, a document without a field that is needed.
    #[error("the answer is none of a host: {0}")]
    Unexpected(String),
    /// The answer, or an event, is larger than the client takes.
    #[error("the host sent more than {0} bytes at once, the limit of this client")]
    TooLarge(usize),
    /// The stream left an event out, twice at the same place.
    #[error("the host left events out: after the event {after} came the event {found}")]
    Gap {
        /// The last event that came.
        after: u64,
        /// The event that came next.
        found: u64,
    },
    /// The stream has ended with an error before.
    #[error("the stream has ended")]
    Ended,
}

impl Error {
    /// The problem document, if the host refuses.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// The approval with who decided and when, if a decision came too late.
    pub fn decided_before(&self) -> Option<Approval> {
        self.problem()?.approval()
    }

    /// Whether the host may have done what it was asked to do, although this is an error.
    pub fn may_be_done(&self) -> bool {
        match self {
            Self::Lost { .. } | Self::TimedOut(_) => true,
            Self::Refused(problem) => match problem.status {
                // The host says so instead of doing it. A proxy says so, too, when it has lost the host over it.
                408 | 503 => problem.code.is_none(),
                status => (500..=599).contains(&status),
            },
            _ => false,
        }
    }

    /// Whether the same may work later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Lost { .. } | Self::TimedOut(_) => true,
            Self::Refused(problem) => problem.is_transient(),
            _ => false,
        }
    }

    /// How long the host wants to be left alone.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.problem()?.retry_after
    }
}

/// A refusal of the host: a problem document (RFC 9457).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Problem {
    /// The status of the answer.
    pub status: u16,
    /// The kind, such as `unknown-session`: what follows `urn:outrigger:problem:` in `type`. `None` if the answer is no problem document, for example of
    /// a proxy.
    pub code: Option<String>,
    /// A sentence on the kind.
    pub title: Option<String>,
    /// What is said of this case.
    pub detail: Option<String>,
    /// How long to wait before the next try (`Retry-After`), as far as it is given in seconds.
    pub retry_after: Option<Duration>,
    /// The document as it came.
    pub raw: Option<RawJson>,
}

impl Problem {
    const KIND: &'static str = "urn:outrigger:problem:";

    /// Reads the answer of this status.
    pub(crate) fn read(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Document {
            r#type: Option<String>,
            title: Option<String>,
            detail: Option<String>,
        }
        let raw = std::str::from_utf8(body)
            .ok()
            .and_then(|text| RawJson::from_text(text).ok());
        let document: Document = raw.as_ref().and_then(|raw| raw.decode().ok()).unwrap_or_default();
        let kind = document.r#type.as_deref();
        Self {
            status,
            code: kind
                .and_then(|kind| kind.strip_prefix(Self::KIND))
                .map(str::to_owned),
            title: document.title,
            detail: document.detail,
            retry_after,
            raw,
        }
    }

    /// The approval that somebody else decided first (`too-late`).
    pub fn approval(&self) -> Option<Approval> {
        #[derive(Deserialize)]
        struct Document {
            approval: Approval,
        }
        let document: Document = self.raw.as_ref()?.decode().ok()?;
        Some(document.approval)
    }

    /// Whether this is the kind, such as `too-late`.
    pub fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    fn is_transient(&self) -> bool {
        matches!(self.status, 408 | 425 | 429 | 500..=599)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The title says less of the same.
        let text = self.detail.as_deref().or(self.title.as_deref());
        f.write_str(text.unwrap_or("without a reason"))?;
        write!(f, " ({})", self.status)
    }
}
