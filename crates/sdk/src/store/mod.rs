//! Sessions whose conversation is kept in a store: what the CLI writes down goes there as it is written, and any machine can go
//! on with it.
//!
//! The CLI works on files all the same. With [`Options::session_store`] it tells every line that it adds to them, and this module
//! hands those to the store in portions. To go on with a session it writes what the store has into a private directory for the CLI
//! to find, which goes when the process has ended.

mod call;
mod mirror;
mod place;
mod resume;
mod seed;

use std::sync::Arc;
use std::time::Duration;

use outrigger_sessions::store::SessionStore;

pub(crate) use self::call::{Failure, call};
pub(crate) use self::mirror::{Mirror, Places};
pub(crate) use self::place::Place;
pub(crate) use self::resume::{config_dir, failed, find, load, project_key, variable};
use crate::options::{Options, OptionsError};

/// How long the store may take over one call of a resume unless another time is set.
const LOAD: Duration = Duration::from_secs(60);

/// When what the CLI writes down is handed to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum StoreFlush {
    /// At the end of each turn and of the session, and when more than 500 entries or 1 MiB wait: one append for each
    /// transcript then.
    #[default]
    Batched,
    /// As it comes: an append for each frame of the CLI, which is about ten a second while it works.
    Eager,
}

/// What of the options is about a store.
#[derive(Clone)]
pub(crate) struct Keeping {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) flush: StoreFlush,
    pub(crate) load_timeout: Duration,
}

/// What is set of it; without a store the rest means nothing.
#[derive(Clone, Default)]
pub(crate) struct StoreOptions {
    store: Option<Arc<dyn SessionStore>>,
    flush: Option<StoreFlush>,
    load_timeout: Option<Duration>,
}

impl StoreOptions {
    pub(crate) fn keeping(&self) -> Option<Keeping> {
        Some(Keeping {
            store: Arc::clone(self.store.as_ref()?),
            flush: self.flush.unwrap_or_default(),
            load_timeout: self.load_timeout.unwrap_or(LOAD),
        })
    }

    pub(crate) fn is_set(&self) -> bool {
        self.store.is_some()
    }
}

/// Where conversations are kept.
impl Options {
    /// Keeps the conversation in this store too, and goes on from it. `--session-mirror`.
    ///
    /// * **As it runs**, all that the CLI adds to its transcript and those of its subagents is appended to the store, as
    ///   [`session_store_flush`](Self::session_store_flush) says; the CLI waits for none of it. A turn's outcome is told when the
    ///   store has the turn, and [`close`](crate::Session::close) returns when it has everything. An append that fails is tried
    ///   twice more, after 0.2 s and 0.8 s; one that takes a minute is given up, since it may still happen. What could then not
    ///   be stored is left out and told by a `system` message `mirror_error` among the session's
    ///   [frames](crate::Session::frames) and [`Stats::mirror_errors`](crate::Stats::mirror_errors);
    ///   [`import_to_store`](crate::sessions::store::import_to_store) brings it later from the files. At most
    ///   [`buffer_bytes`](Self::buffer_bytes) wait for a slow store.
    /// * **To go on**, with [`resume`](Self::resume) and a session id that the store has for the working directory, or with
    ///   [`continue_conversation`](Self::continue_conversation) and the newest session there, the transcripts are written to a
    ///   private temporary directory that is the CLI's `CLAUDE_CONFIG_DIR`, together with the user's settings (without plugins)
    ///   and login (without its refresh token, which must not be used up in a place that goes away). It goes when the process has
    ///   ended, also if this program is killed ([`Local`](crate::Local)); what stays all the same is removed by the next session
    ///   that goes on from a store. A [hermetic](crate::options::Isolation::Hermetic) session has them in its own home and nothing of the user's.
    ///   What the store doesn't have is left to the CLI, which may have it on disk; with `continue_conversation` a new session
    ///   begins.
    ///
    /// Transcripts are filed under the CLI's name for the working directory
    /// ([`project_dir_name`](crate::sessions::place::project_dir_name)).
    ///
    /// Behind a transport of another machine, nothing is written for the CLI: there a store is only appended to. A
    /// [spare](Self::prewarm) can't go on with a session. On macOS a login that is in the keychain does not reach a session that
    /// goes on from a store: use a token.
    pub fn session_store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.hosting.store.store = Some(store);
        self
    }

    /// Whether the conversation is kept in a store.
    pub fn has_session_store(&self) -> bool {
        self.hosting.store.is_set()
    }

    /// When entries are handed to the store; [`StoreFlush::Batched`] unless set.
    pub fn session_store_flush(mut self, flush: StoreFlush) -> Self {
        self.hosting.store.flush = Some(flush);
        self
    }

    /// How long the store may take over each load and list before the session starts; 60 s unless set.
    pub fn load_timeout(mut self, timeout: Duration) -> Self {
        self.hosting.store.load_timeout = Some(timeout);
        self
    }

    /// What can't go together with a store.
    pub(crate) fn check_store(&self, is_spare: bool) -> Result<(), OptionsError> {
        let set = &self.hosting.store;
        let Some(keeping) = set.keeping() else {
            let orphan = match (set.flush, set.load_timeout) {
                (Some(_), _) => "session_store_flush",
                (_, Some(_)) => "load_timeout",
                _ => return Ok(()),
            };
            return Err(OptionsError::Requires {
                option: orphan,
                needs: "session_store",
                advice: "it says how a store is used",
            });
        };
        if self.persist_session == Some(false) {
            return Err(OptionsError::Conflict {
                options: ["session_store", "persist_session"],
                advice: "the store gets what the CLI writes to disk, so it has to write it",
            });
        }
        if self.enable_file_checkpointing {
            return Err(OptionsError::Conflict {
                options: ["session_store", "enable_file_checkpointing"],
                advice: "checkpoints are on this disk alone, and elsewhere the conversation would lack them",
            });
        }
        if self.continue_conversation && !keeping.store.capabilities().list_sessions {
            return Err(OptionsError::Requires {
                option: "continue_conversation",
                needs: "session_store",
                advice: "this store can't list sessions: name one with `resume`",
            });
        }
        if is_spare && (self.resume.is_some() || self.continue_conversation) {
            return Err(OptionsError::Conflict {
                options: ["session_store", "resume"],
                advice: "a spare has no directory yet, which the store needs to find the session: start it directly",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
