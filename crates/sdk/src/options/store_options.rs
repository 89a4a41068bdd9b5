//! What options say of session stores.

use std::sync::Arc;
use std::time::Duration;

use outrigger_sessions::store::SessionStore;

use super::{Options, OptionsError};
use crate::store_config::StoreFlush;

/// Where conversations are kept.
impl Options {
    /// Keeps the conversation in this store too, and goes on from it. `--session-mirror`.
    ///
    /// * **As it runs**, all that the CLI adds to its transcript and those of its subagents is appended to the store, as
    ///   [`session_store_flush`](Self::session_store_flush) says; the CLI waits for none of it. A turn's outcome is told when the
    ///   store has the turn, and [`close`](crate::Session::close) returns when it has everything.
    /// * **A store that is away** loses nothing. What it did not take is tried again for as long as the session lives, at first
    ///   after 0.2 s, in the end every 15 to 30 s, and nothing is appended behind it meanwhile; an append that takes a minute counts
    ///   as failed, too. Up to [`buffer_bytes`](Self::buffer_bytes) wait in memory, the rest in a temporary file
    ///   ([`slow_reader`](Self::slow_reader)). Outcomes wait no longer than
    ///   [`session_store_patience`](Self::session_store_patience): then a `system` message `mirror_lag` tells that the store is
    ///   behind, outcomes come at once, and another `mirror_lag` tells when it has caught up;
    ///   [`Stats::store_lag`](crate::Stats::store_lag) has how far it is behind, and why. The end of the session waits for
    ///   [`session_store_grace`](Self::session_store_grace). What is missing then stays on this machine's disk, and comes into the
    ///   store when the session goes on from here, or by `outrigger sessions push`.
    /// * **What will not come by itself** is told by a `system` message `mirror_error` among the session's
    ///   [frames](crate::Session::frames) and counted by [`Stats::mirror_errors`](crate::Stats::mirror_errors): what somebody else's
    ///   lease refuses, what the store says it can never take, and what the end of the session left. Where a report of the CLI is longer
    ///   than [`max_line_bytes`](Self::max_line_bytes), nothing is stored behind it until the session goes on from here.
    /// * **To go on**, with [`resume`](Self::resume) and a session id that the store has for the working directory, or with
    ///   [`continue_conversation`](Self::continue_conversation) and the newest session there, the transcripts are written to a
    ///   private temporary directory that is the CLI's `CLAUDE_CONFIG_DIR`, together with the user's settings (without plugins)
    ///   and login (without its refresh token, which must not be used up in a place that goes away). It goes when the process has
    ///   ended, also if this program is killed ([`Local`](crate::Local)); what stays all the same is removed by the next session
    ///   that goes on from a store. A [hermetic](crate::options::Isolation::Hermetic) session has such a directory whether it goes on
    ///   or begins, and nothing of the user's in it. What the store doesn't have is left to the CLI, which may have it on disk, and
    ///   the store gets it from its beginning; with `continue_conversation` a new session begins.
    /// * **Before it goes on**, what this machine has of the session and the store lacks is appended to the store: from the user's
    ///   config directory, and from private directories whose sessions ended, or whose programs were killed, before the store had
    ///   everything. Where the CLI was killed or failed, nobody knows whether it reported all that it wrote, so its transcripts count
    ///   as such. Of those the transcripts stay until then, for 30 days at most, and nothing else, least of all a login. Where
    ///   somebody else went on with the session meanwhile, nothing is mixed: the session goes on from the store, and what is here
    ///   stays and is told by `mirror_error`.
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

    /// How long a turn's outcome waits for the store to have the turn; 10 s unless set. Then the store counts as behind, and until
    /// it has caught up no outcome waits for it.
    pub fn session_store_patience(mut self, patience: Duration) -> Self {
        self.hosting.store.patience = Some(patience);
        self
    }

    /// How long the end of the session waits for the store to take what is left; 30 s unless set.
    pub fn session_store_grace(mut self, grace: Duration) -> Self {
        self.hosting.store.grace = Some(grace);
        self
    }

    /// What can't go together with a store.
    pub(crate) fn check_store(&self, is_spare: bool) -> Result<(), OptionsError> {
        let set = &self.hosting.store;
        let Some(keeping) = set.keeping() else {
            let is_set = [
                (set.flush.is_some(), "session_store_flush"),
                (set.load_timeout.is_some(), "load_timeout"),
                (set.patience.is_some(), "session_store_patience"),
                (set.grace.is_some(), "session_store_grace"),
            ];
            let Some((_, orphan)) = is_set.into_iter().find(|(is_set, _)| *is_set) else {
                return Ok(());
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
        if self.worktree.is_some() {
            return Err(OptionsError::Conflict {
                options: ["session_store", "worktree"],
                advice: "the store would file the conversation under a project that nobody looks in; make the worktree and name it as `cwd`",
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
