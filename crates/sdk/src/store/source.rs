//! The location of a session's conversation.

use std::fmt;
use std::path::PathBuf;

use outrigger_sessions::SessionId;

use crate::env::Surroundings;
use crate::location::project_key;
use crate::options::{Options, RunAs};
use crate::store_config::Keeping;

/// The location of a session's conversation.
#[derive(Clone, Default)]
pub(crate) struct Source {
    /// The CLI's config directory, if it is on this machine.
    pub(crate) config: Option<PathBuf>,
    /// The other user whose conversation this is, and with whose rights it is read.
    pub(crate) user: Option<RunAs>,
    /// The store, and under what its project is filed there.
    pub(crate) store: Option<(Keeping, String)>,
    pub(crate) begins: Begins,
    /// The session to resume, if the options name it.
    going_on: Option<SessionId>,
}

/// The conversation before the CLI has reported its id.
#[derive(Debug, Clone, Default)]
pub(crate) enum Begins {
    /// A new conversation.
    #[default]
    New,
    With(SessionId),
    /// Only the CLI knows it.
    Unknown,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("config", &self.config)
            .field("begins", &self.begins)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// The location for these options, as far as they determine it.
    pub(crate) fn of(options: &Options, surroundings: &Surroundings, is_far: bool) -> Self {
        let begins = match &options.resume {
            Some(id) => SessionId::new(id).map_or(Begins::Unknown, Begins::With),
            None if options.continue_conversation => Begins::Unknown,
            None => Begins::New,
        };
        let keeping = options.hosting.store.keeping();
        let project = || project_key(options, surroundings, is_far).ok();
        let going_on = match &begins {
            Begins::With(id) if !options.fork_session => Some(id.clone()),
            _ => None,
        };
        Self {
            config: None,
            user: options.user,
            store: keeping.and_then(|keeping| Some((keeping, project()?))),
            begins,
            going_on,
        }
    }

    /// The id of the session at its start. Only the CLI knows that of a new session or a fork.
    pub(crate) fn going_on(&self) -> Option<&SessionId> {
        self.going_on.as_ref()
    }
}
