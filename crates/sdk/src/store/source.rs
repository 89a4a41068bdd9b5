//! Where the conversation of a session is found.

use std::fmt;
use std::path::PathBuf;

use outrigger_sessions::SessionId;

use crate::env::Surroundings;
use crate::location::project_key;
use crate::options::{Options, RunAs};
use crate::store_config::Keeping;

/// Where the conversation of a session is found.
#[derive(Clone, Default)]
pub(crate) struct Source {
    /// The CLI's config directory, if it is on this machine.
    pub(crate) config: Option<PathBuf>,
    /// Whose it is, and with whose rights it is read, if that is somebody else.
    pub(crate) user: Option<RunAs>,
    /// The store, and under what its project is filed there.
    pub(crate) store: Option<(Keeping, String)>,
    pub(crate) begins: Begins,
    /// The session that is gone on with, where the options name it.
    going_on: Option<SessionId>,
}

/// Which conversation it is before the CLI has said so.
#[derive(Debug, Clone, Default)]
pub(crate) enum Begins {
    /// One in which nothing was said.
    #[default]
    New,
    With(SessionId),
    /// The CLI knows.
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
    /// That of a session with these options, as far as they tell.
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

    /// The id that the session has from its start. That of a new one, or of a fork, only the CLI knows.
    pub(crate) fn going_on(&self) -> Option<&SessionId> {
        self.going_on.as_ref()
    }
}
