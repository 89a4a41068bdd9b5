//! What is said of a session that a command made.

use std::io::{self, Write as _};
use std::path::PathBuf;

use outrigger::sessions::{SessionFile, SessionId};
use serde::Serialize;

use crate::exit::{CommandResult, Status};

/// How the result is shown.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct MadeOutput {
    /// Write what was made as a JSON object with `sessionId` and `path`.
    #[arg(long)]
    json: bool,
}

/// A session that a command made.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Made {
    session_id: SessionId,
    path: PathBuf,
    /// The id that the session had before, if it got another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) was: Option<SessionId>,
    /// Where the old transcript is, if it was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) backup: Option<PathBuf>,
}

impl Made {
    pub(super) fn new(file: &SessionFile) -> Self {
        Self {
            session_id: file.id.clone(),
            path: file.path.clone(),
            was: None,
            backup: None,
        }
    }
}

impl MadeOutput {
    /// Whether the result is for programs.
    pub(super) fn is_json(self) -> bool {
        self.json
    }

    /// Writes the id alone, or the object.
    pub(super) fn write(self, made: &Made) -> CommandResult {
        let mut stdout = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut stdout, made).map_err(io::Error::from)?;
            writeln!(stdout)?;
        } else {
            writeln!(stdout, "{}", made.session_id)?;
        }
        Ok(Status::Success)
    }
}
