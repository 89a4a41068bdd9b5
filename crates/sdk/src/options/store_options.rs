//! The options for session stores.

use std::sync::Arc;
use std::time::Duration;

use outrigger_sessions::store::SessionStore;

use super::{Options, OptionsError, conflict, refuse, requires};
use crate::store_config::StoreFlush;

/// Session stores.
impl Options {
    /// Keeps the conversation in this session store, too, and resumes it from there. `--session-mirror`.
    ///
    /// * **While the session runs**, the SDK appends to the store all that the CLI adds to its transcript and those of its
    ///   subagents, see [`session_store_flush`](Self::session_store_flush). The CLI never waits for the store. A turn's outcome is
    ///   emitted when the store has the turn, and [`close`](crate::Session::close) returns when the store has everything.
    /// * **While the store is unavailable**, nothing is lost. The SDK retries a failed append for as long as the session lives, at
    ///   first after 0.2 s, later every 15 to 30 s, and appends nothing else before it. An append that takes a minute counts as
    ///   failed, too. Up to [`buffer_bytes`](Self::buffer_bytes) wait in memory, the rest in a temporary file
    ///   ([`slow_reader`](Self::slow_reader)). Outcomes wait no longer than
    ///   [`session_store_patience`](Self::session_store_patience): then a `system` message `mirror_lag` reports that the store is
    ///   behind, and outcomes are emitted at once; another `mirror_lag` reports that it has caught up.
    ///   [`Stats::store_lag`](crate::Stats::store_lag) has the amount and the reason. The end of the session waits for
    ///   [`session_store_grace`](Self::session_store_grace). Entries that are missing then stay on this machine's disk; the SDK
    ///   appends them when the session is resumed here, or `outrigger sessions push` does.
    /// * **Entries that will never arrive** are reported by a `system` message `mirror_error` among the session's
    ///   [frames](crate::Session::frames) and counted by [`Stats::mirror_errors`](crate::Stats::mirror_errors): entries that
    ///   another holder's lease rejects, that the store rejects for good, or that are left at the end of the session. After a
    ///   report of the CLI that is longer than [`max_line_bytes`](Self::max_line_bytes), nothing is appended until the session is
    ///   resumed here.
    /// * **To resume**, with [`resume`](Self::resume) and a session id that the store has for the working directory, or with
    ///   [`continue_conversation`](Self::continue_conversation) and the newest session there, the SDK writes the transcripts to a
    ///   private temporary directory, the CLI's `CLAUDE_CONFIG_DIR`, together with the user's settings (without plugins) and login
    ///   (without refresh tokens, which work only once and would be lost with the directory). The directory is removed when the
    ///   process has ended, also if this program is killed ([`Local`](crate::Local)); if that fails, the next session that is
    ///   resumed from a store removes it. A [hermetic](crate::options::Isolation::Hermetic) session always has such a directory,
    ///   with nothing of the user's in it. If the store lacks the session, the CLI may have it on disk: then the store gets it from
    ///   its beginning; with `continue_conversation` a new session begins.
    /// * **Before the session is resumed**, the SDK appends to the store what the store lacks and this machine has: from the
    ///   user's config directory, and from private directories whose sessions ended, or whose programs were killed, before the
    ///   store had everything. A CLI that was killed or failed may not have reported all that it wrote, so its directory counts,
    ///   too. Only the transcripts of such directories are kept, for at most 30 days, and never a login. If another machine has
    ///   resumed the session meanwhile, nothing is mixed: the session is resumed from the store, and `mirror_error` reports the
    ///   entries that stay here.
    ///
    /// Transcripts are filed under the CLI's name for the working directory
    /// ([`project_dir_name`](crate::sessions::place::project_dir_name)).
    ///
    /// With a transport to another machine, the SDK only appends to the store, and writes nothing for the CLI. A
    /// [spare](Self::prewarm) cannot resume a session. On macOS a login in the keychain does not reach a session that is resumed
    /// from a store: use a token.
    pub fn session_store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.hosting.store.store = Some(store);
        self
    }

    /// Whether a store keeps the conversation.
    pub fn has_session_store(&self) -> bool {
        self.hosting.store.is_set()
    }

    /// When entries are appended to the store; [`StoreFlush::Batched`] unless set.
    pub fn session_store_flush(mut self, flush: StoreFlush) -> Self {
        self.hosting.store.flush = Some(flush);
        self
    }

    /// The deadline of each load and list of the store before the session starts; 60 s unless set.
    pub fn load_timeout(mut self, timeout: Duration) -> Self {
        self.hosting.store.load_timeout = Some(timeout);
        self
    }

    /// How long a turn's outcome waits for the store to have the turn; 10 s unless set. After that the store counts as behind, and
    /// no outcome waits for it until it has caught up.
    pub fn session_store_patience(mut self, patience: Duration) -> Self {
        self.hosting.store.patience = Some(patience);
        self
    }

    /// How long the end of the session waits for the store to have everything; 30 s unless set.
    pub fn session_store_grace(mut self, grace: Duration) -> Self {
        self.hosting.store.grace = Some(grace);
        self
    }

    /// Rejects options that contradict a store.
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
            return Err(requires(orphan, "session_store", "it says how a store is used"));
        };
        let lists = keeping.store.capabilities().list_sessions;
        refuse! {
            self.persist_session == Some(false)
                => conflict(["session_store", "persist_session"],
                    "the store gets what the CLI writes to disk, so it has to write it"),
            self.worktree.is_some()
                => conflict(["session_store", "worktree"],
                    "the store would file the conversation under a project that nobody looks in; make the worktree and name it as `cwd`"),
            self.enable_file_checkpointing
                => conflict(["session_store", "enable_file_checkpointing"],
                    "checkpoints are on this disk alone, and elsewhere the conversation would lack them"),
            self.continue_conversation && !lists
                => requires("continue_conversation", "session_store",
                    "this store can't list sessions: name one with `resume`"),
            is_spare && (self.resume.is_some() || self.continue_conversation)
                => conflict(["session_store", "resume"],
                    "a spare has no directory yet, which the store needs to find the session: start it directly"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
