//! What options say of whose a session is.

use std::time::Duration;

use super::{Isolation, Options, OptionsError};
use crate::ownership::LeaseOptions;

/// The shortest that makes sense: a renewal is a call of a database.
const LEAST_TTL: Duration = Duration::from_millis(100);

/// Whose sessions are.
impl Options {
    /// Drives the session alone: claims its id before the CLI is started, keeps the claim up while it lives, and gives it back when
    /// it ends. [`OnBusy`](crate::OnBusy) alone will do: `.lease(OnBusy::Fork)`.
    ///
    /// * **Where**: in the session store, if there is one [with leases](crate::sessions::store::SessionStore::leases), for all
    ///   machines that use it; else on disk, in `outrigger/leases` of the CLI's config directory, for all processes that use that.
    ///   On disk a CLI counts too that somebody started by hand and that lists itself as running.
    /// * **Who comes second** gets what [`LeaseOptions::on_busy`] says: an error that names the holder
    ///   ([`Error::as_lease_problem`](crate::Error::as_lease_problem)); a fork, made by the CLI, with an id of its own
    ///   ([`Session::forked_from`](crate::Session::forked_from)); or the session, which its holder then loses.
    /// * **Who loses it** stops: the process is ended, and everybody who waits gets an error that says who took it, since when.
    ///   Entries that come too late are refused by the store, and told by `mirror_error`.
    /// * **When it ends**, also by being dropped, the session is free at once. When this program is killed, a session on disk is
    ///   free as soon as its CLI has ended; one in a store when [`LeaseOptions::ttl`] is over.
    ///
    /// A new session gets an id from here for that (`--session-id`); what `/clear` begins is claimed as it is seen.
    ///
    /// Off unless set, because it costs something and can refuse what worked before: a small file for each session that ever had a
    /// lease, which stays since its number must not be used again, and a look at it every second; in a store, a call before the
    /// start and one for each third of `ttl`. It is advisory: it binds those who claim.
    pub fn lease(mut self, lease: impl Into<LeaseOptions>) -> Self {
        self.hosting.lease = Some(lease.into());
        self
    }

    /// What can't go together with a lease.
    pub(crate) fn check_lease(&self, is_spare: bool, is_far: bool) -> Result<(), OptionsError> {
        let Some(lease) = &self.hosting.lease else {
            return Ok(());
        };
        if lease.ttl < LEAST_TTL {
            return Err(OptionsError::invalid(
                "lease",
                format!("ttl: {:?}", lease.ttl),
                "has to last 100 ms at least, since renewing it takes time",
            ));
        }
        if self.persist_session == Some(false) {
            return Err(OptionsError::Conflict {
                options: ["lease", "persist_session"],
                advice: "a session that is not kept can't be driven by anybody else",
            });
        }
        if is_spare {
            return Err(OptionsError::Conflict {
                options: ["lease", "prewarm"],
                advice: "a spare has no session yet that could be claimed: start it directly",
            });
        }
        let keeping = self.hosting.store.keeping();
        let in_store = keeping.is_some_and(|keeping| keeping.store.leases().is_some());
        if is_far && !in_store {
            return Err(OptionsError::Requires {
                option: "lease",
                needs: "session_store",
                advice: "the CLI's files are on another machine, where nothing can be claimed from here: keep the \
                         sessions in a store that has leases",
            });
        }
        if self.continue_conversation && !self.hosting.store.is_set() {
            return Err(OptionsError::Conflict {
                options: ["lease", "continue_conversation"],
                advice: "only the CLI knows which session that is, and it has to be claimed before: name it with `resume`",
            });
        }
        let by_title = |resume: &String| outrigger_sessions::SessionId::new(resume).is_err();
        if self.resume.as_ref().is_some_and(by_title) {
            return Err(OptionsError::Conflict {
                options: ["lease", "resume"],
                advice: "only the CLI knows which session a title is, and it has to be claimed before: name its id",
            });
        }
        Ok(())
    }

    /// Whether nobody else can find the session's files.
    pub(crate) fn is_private(&self) -> bool {
        self.isolation == Isolation::Hermetic && self.hermetic_home.is_none()
    }
}

#[cfg(test)]
mod tests;
