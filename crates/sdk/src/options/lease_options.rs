//! The options for leases.

use std::time::Duration;

use super::{Isolation, Options, OptionsError, conflict, invalid, refuse, requires};
use crate::ownership::LeaseOptions;

/// The shortest time to live: each renewal is a call of a database.
const LEAST_TTL: Duration = Duration::from_millis(100);

/// Leases.
impl Options {
    /// Takes a lease, the exclusive right to drive the session: acquired before the CLI starts, renewed while the session lives,
    /// and released when it ends. A plain [`OnBusy`](crate::OnBusy) works, too: `.lease(OnBusy::Fork)`.
    ///
    /// * **Where**: in the session store, if there is one [with leases](crate::sessions::store::SessionStore::leases), for all
    ///   machines that use it; else on disk, in `outrigger/leases` of the CLI's config directory, for all processes that use that.
    ///   On disk, a running CLI that was started by hand counts, too, if it lists itself as running.
    /// * **A second program** gets, depending on [`LeaseOptions::on_busy`]: an error that names the holder
    ///   ([`Error::as_lease_problem`](crate::Error::as_lease_problem)); a fork, made by the CLI, with an id of its own
    ///   ([`Session::forked_from`](crate::Session::forked_from)); or the session, which its holder loses.
    /// * **A holder that loses the lease** stops: the SDK ends the process, and all that waits gets an error that names the new
    ///   holder. The store rejects later entries of the former holder; `mirror_error` reports them.
    /// * **When the session ends**, also by being dropped, it is free at once. When this program is killed, a session on disk is
    ///   free as soon as its CLI has ended; a session in a store after [`LeaseOptions::ttl`].
    ///
    /// For the lease, the SDK chooses the id of a new session (`--session-id`). For a conversation that `/clear` begins, it acquires a lease when it sees the id.
    /// A [spare](Self::prewarm) has no lease before its claim, which acquires it before anything is sent.
    ///
    /// Off unless set, because it has a cost and can reject a start: on disk, a small file for each session that ever had a lease,
    /// which stays since its number must not be used again, and a check of it every second; in a store, a call before the start
    /// and one per third of `ttl`. Leases are advisory: they only bind programs that take them.
    pub fn lease(mut self, lease: impl Into<LeaseOptions>) -> Self {
        self.hosting.lease = Some(lease.into());
        self
    }

    /// Rejects options that contradict a lease.
    pub(crate) fn check_lease(&self, is_far: bool) -> Result<(), OptionsError> {
        let Some(lease) = &self.hosting.lease else {
            return Ok(());
        };
        let keeping = self.hosting.store.keeping();
        let in_store = keeping.is_some_and(|keeping| keeping.store.leases().is_some());
        let by_title = |resume: &String| outrigger_sessions::SessionId::new(resume).is_err();
        refuse! {
            lease.ttl < LEAST_TTL
                => invalid("lease", format!("ttl: {:?}", lease.ttl),
                    "has to last 100 ms at least, since renewing it takes time"),
            self.persist_session == Some(false)
                => conflict(["lease", "persist_session"],
                    "a session that is not kept can't be driven by anybody else"),
            is_far && !in_store
                => requires("lease", "session_store",
                    "the CLI's files are on another machine, where nothing can be claimed from here: keep the sessions in a store that has \
                     leases"),
            self.continue_conversation && !self.hosting.store.is_set()
                => conflict(["lease", "continue_conversation"],
                    "only the CLI knows which session that is, and it has to be claimed before: name it with `resume`"),
            self.resume.as_ref().is_some_and(by_title)
                => conflict(["lease", "resume"],
                    "only the CLI knows which session a title is, and it has to be claimed before: name its id"),
        }
        Ok(())
    }

    /// Whether no other program can find the session's files.
    pub(crate) fn is_private(&self) -> bool {
        self.isolation == Isolation::Hermetic && self.hermetic_home.is_none()
    }
}

#[cfg(test)]
mod tests;
