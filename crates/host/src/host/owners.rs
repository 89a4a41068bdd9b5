//! The tasks that own sessions, and how they are reached.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::{Inner, SessionHost};
use crate::error::{HostError, Result};
use crate::event::SessionState;
use crate::log::{Receipt, Write};
use crate::owner::{ClientControlRequest, Command, Contact, Owner};

/// The most commands that wait for a session.
const COMMANDS: usize = 64;

/// How long a session whose log failed waits before it tries again.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Owners(Mutex<HashMap<SessionId, Arc<Contact>>>);

impl Owners {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Contact>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionHost {
    /// Whether there was an owner that got the command.
    pub(super) fn command(&self, session: &SessionId, command: Command) -> Result<bool> {
        let Some(contact) = self.0.owners.lock().get(session).cloned() else {
            return Ok(false);
        };
        match contact.tell(command) {
            Ok(()) => Ok(true),
            Err(mpsc::error::TrySendError::Closed(_)) => Ok(false),
            Err(mpsc::error::TrySendError::Full(_)) => Err(HostError::Busy("the session")),
        }
    }

    /// Asks the CLI, with a process that is started for it if there is none. Waits for a place for as long as it takes.
    pub(super) async fn ask(
        &self,
        session: &SessionId,
        subtype: &'static str,
        fields: serde_json::Value,
        needs_rest: bool,
    ) -> Result<RawJson> {
        if self.session(session).await?.state == SessionState::Ended {
            return Err(HostError::Archived(session.clone()));
        }
        let (reply, answer) = oneshot::channel();
        let ask = ClientControlRequest {
            subtype,
            fields,
            needs_rest,
            reply,
        };
        self.reach(session, Some(Command::Ask(ask)), false)?;
        // Without a reply the owner has ended, as it does when the log fails.
        answer.await.unwrap_or(Err(HostError::Busy("the session")))
    }

    /// Does a transaction, and tells the owner of the session. A caller who is gone by then does not keep the owner from hearing of it: what is on
    /// disk would lie there until somebody sends something else.
    pub(super) async fn write_and_wake(&self, session: &SessionId, steps: Vec<Write>) -> Result<Receipt> {
        let (host, session) = (self.clone(), session.clone());
        let written = tokio::spawn(async move {
            let receipt = host.log().write(&session, steps).await?;
            host.wake(&session);
            Ok(receipt)
        });
        // It does not panic, so that only the end of the runtime ends it early.
        written.await.unwrap_or(Err(HostError::Closed))
    }

    /// Tells the owner of a session that the log has news, and makes one if there is none.
    pub(super) fn wake(&self, session: &SessionId) {
        // A host that closes leaves it to the next one.
        drop(self.reach(session, None, false));
    }

    /// Wakes the owner of a session, and makes one if there is none. The owner gets the command before it may end.
    pub(super) fn reach(&self, session: &SessionId, command: Option<Command>, is_wanted: bool) -> Result<()> {
        let mut owners = self.0.owners.lock();
        if self.0.closed.load(Ordering::Acquire) {
            return Err(HostError::Closed);
        }
        if let Some(contact) = owners.get(session) {
            if let Some(command) = command {
                let sent = contact.tell(command);
                sent.map_err(|_| HostError::Busy("the session"))?;
            }
            contact.is_wanted.fetch_or(is_wanted, Ordering::AcqRel);
            contact.calls.fetch_add(1, Ordering::AcqRel);
            contact.wake.notify_one();
            return Ok(());
        }
        let (commands, received) = mpsc::channel(COMMANDS);
        let contact = Arc::new(Contact {
            wake: Notify::new(),
            calls: AtomicU64::new(1),
            seen: AtomicU64::new(0),
            commands,
            is_wanted: AtomicBool::new(is_wanted),
            is_idle: AtomicBool::new(false),
            idle_since: AtomicU64::new(0),
            is_leaving: AtomicBool::new(false),
            release: Notify::new(),
            stops: watch::Sender::new(0),
        });
        if let Some(command) = command {
            // A new queue has room.
            drop(contact.tell(command));
        }
        owners.insert(session.clone(), Arc::clone(&contact));
        drop(owners);
        let mut tasks = self.0.tasks();
        // Those that have ended need no room.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(own(Arc::clone(&self.0), session.clone(), contact, received));
        Ok(())
    }
}

/// Owns a session until it has nothing to do.
async fn own(inner: Arc<Inner>, id: SessionId, contact: Arc<Contact>, mut commands: mpsc::Receiver<Command>) {
    loop {
        let mut owner = Owner::new(Arc::clone(&inner.shared), id.clone(), Arc::clone(&contact));
        let failed = owner.run(&mut commands).await.err();
        let is_closed = inner.closed.load(Ordering::Acquire);
        if let Some(error) = &failed {
            tracing::error!(%error, session = %id, "the owner of a session ended");
            if !is_closed && matches!(error, HostError::Log(_)) {
                let error = error.to_string();
                let refused = refuse(&mut commands, &contact, &error);
                drop(tokio::time::timeout(AFTER_FAILURE, refused).await);
                continue;
            }
        }
        let mut owners = inner.owners.lock();
        if is_closed
            || failed.is_some()
            || contact.calls.load(Ordering::Acquire) == contact.seen.load(Ordering::Acquire)
        {
            owners.remove(&id);
            return;
        }
    }
}

/// Answers commands while the log fails, so that nobody waits for it. There is no process any more.
async fn refuse(commands: &mut mpsc::Receiver<Command>, contact: &Contact, error: &str) {
    let failed = || HostError::Log(error.to_owned());
    while let Some(command) = commands.recv().await {
        if command.ends_start() {
            contact.stop_taken();
        }
        // Who asked may be gone.
        match command {
            Command::Interrupt(reply) => drop(reply.send(Err(failed()))),
            Command::Ask(ask) => drop(ask.reply.send(Err(failed()))),
            Command::Stop(reply) => {
                let _ = reply.send(());
            }
            Command::Shutdown(reply) => {
                let _ = reply.send(());
                return;
            }
            // The next process begins with it.
            Command::Apply(_) => {}
        }
    }
}

/// The process that was idle for longest ends, unless as many end already as starts wait.
pub(super) fn make_room(owners: &Weak<Owners>, waiting_starts: &AtomicUsize) {
    let Some(owners) = owners.upgrade() else {
        return;
    };
    let owners = owners.lock();
    let is_leaving = |contact: &Contact| contact.is_leaving.load(Ordering::Acquire);
    let leaving = owners.values().filter(|contact| is_leaving(contact)).count();
    if leaving >= waiting_starts.load(Ordering::Acquire) {
        return;
    }
    let idle = owners
        .values()
        .filter(|contact| contact.is_idle.load(Ordering::Acquire) && !is_leaving(contact));
    if let Some(oldest) = idle.min_by_key(|contact| contact.idle_since.load(Ordering::Relaxed)) {
        oldest.is_leaving.store(true, Ordering::Release);
        oldest.release.notify_one();
    }
}
