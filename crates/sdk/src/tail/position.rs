//! Where a reader of a tail is.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// Where a [`TailReader`](super::TailReader) is. As text ([`Display`](fmt::Display) and [`FromStr`]) it goes to a client and comes back,
/// for example as the id of a server-sent event: at most 100 ASCII characters without blanks, whose form may change.
///
/// ```
/// use outrigger::Position;
///
/// let position: Position = "-.0.-".parse()?;
/// assert_eq!(position, Position::start());
/// # Ok::<(), outrigger::PositionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The memory that `next` is of; `None` within a history.
    pub(super) log: Option<Uuid>,
    /// The number of the next entry.
    pub(super) next: u64,
    /// The last whole message before it.
    pub(super) message: Option<Uuid>,
}

impl Position {
    /// Before everything.
    pub fn start() -> Self {
        Self {
            log: None,
            next: 0,
            message: None,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |f: &mut fmt::Formatter<'_>, id: Option<Uuid>| match id {
            Some(id) => write!(f, "{id}"),
            None => f.write_str("-"),
        };
        part(f, self.log)?;
        write!(f, ".{}.", self.next)?;
        part(f, self.message)
    }
}

/// A text that is no [`Position`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no position of a tail")]
#[non_exhaustive]
pub struct PositionError;

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let mut parts = text.split('.');
        let (Some(log), Some(next), Some(message), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(PositionError);
        };
        let id = |part: &str| match part {
            "-" => Ok(None),
            part => Uuid::try_parse(part).map(Some).map_err(|_| PositionError),
        };
        Ok(Self {
            log: id(log)?,
            next: next.parse().map_err(|_| PositionError)?,
            message: id(message)?,
        })
    }
}
