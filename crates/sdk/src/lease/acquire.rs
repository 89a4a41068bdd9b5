//! Acquires the lease of a session before its start.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_sessions::lease::OnBusy;
use outrigger_sessions::store::SessionKey;
use outrigger_sessions::{SessionId, Sessions};

use super::renewal::{Ownership, Where};
use crate::env::Surroundings;
use crate::error::{Error, Result};
use crate::location::{project_key, variable};
use crate::options::{Isolation, Options};
use crate::ownership::{Holder, LeaseProblem};

/// Why a lease cannot be acquired.
pub(super) enum LeaseRefusal {
    /// Another holder has the lease.
    Held(Holder),
    /// Not known.
    Failed(Error),
}

/// Acquires a lease for the session to start, and sets its id in the options. `None` without the option, or if no other program
/// can find the session.
pub(crate) async fn claim(
    options: &mut Options,
    surroundings: &Surroundings,
    is_far: bool,
) -> Result<Option<Arc<Ownership>>> {
    let Some(own) = unacquired(options, surroundings)? else {
        return Ok(None);
    };
    let project = project_key(options, surroundings, is_far)?;
    let on_busy = own.on_busy();
    let going_on = options.resume.clone().filter(|_| !options.fork_session);
    let id = id_of(going_on.as_ref().or(options.session_id.as_ref()))?;
    let held = match own
        .acquire(&SessionKey::new(&project, id.as_str()), on_busy, None)
        .await
    {
        Ok(()) => {
            if going_on.is_none() {
                options.session_id = Some(id.to_string());
            }
            return Ok(Some(own));
        }
        Err(LeaseRefusal::Failed(error)) => return Err(error),
        Err(LeaseRefusal::Held(by)) => by,
    };
    if on_busy != OnBusy::Fork || going_on.is_none() {
        return Err(problem(&id, held));
    }
    // The CLI makes it: it only reads the session that somebody else writes.
    let fork = SessionId::random();
    tracing::debug!(session = %id, %fork, by = %held, "the session is busy; a fork goes on beside it");
    match own
        .acquire(&SessionKey::new(&project, fork.as_str()), OnBusy::Fail, None)
        .await
    {
        Ok(()) => {}
        Err(LeaseRefusal::Held(by)) => return Err(problem(&fork, by)),
        Err(LeaseRefusal::Failed(error)) => return Err(error),
    }
    own.forked_from(id);
    options.fork_session = true;
    options.session_id = Some(fork.to_string());
    Ok(Some(own))
}

/// The lease of a spare, which [`claim_for`] acquires when the spare is claimed; sets the id that its session will have.
pub(crate) fn for_spare(
    options: &mut Options,
    surroundings: &Surroundings,
) -> Result<Option<Arc<Ownership>>> {
    let own = unacquired(options, surroundings)?;
    if own.is_some() {
        options.session_id = Some(id_of(options.session_id.as_ref())?.to_string());
    }
    Ok(own)
}

/// Acquires the lease of a spare's session. `session` has the options of the session, and `id` is that of the spare.
pub(crate) async fn claim_for(
    own: &Ownership,
    id: Option<&String>,
    session: &Options,
    surroundings: &Surroundings,
    is_far: bool,
) -> Result<()> {
    let id = id_of(id)?;
    let project = project_key(session, surroundings, is_far)?;
    let key = SessionKey::new(&project, id.as_str());
    // A new session is nothing that could be forked.
    own.acquire(&key, own.on_busy(), None)
        .await
        .map_err(|refusal| match refusal {
            LeaseRefusal::Held(by) => problem(&id, by),
            LeaseRefusal::Failed(error) => error,
        })
}

/// The lease of these options, before it is acquired. `None` without the option, or if no other program can find the session.
fn unacquired(options: &Options, surroundings: &Surroundings) -> Result<Option<Arc<Ownership>>> {
    let Some(lease) = options.hosting.lease.clone() else {
        return Ok(None);
    };
    let keeping = options.hosting.store.keeping();
    let keeping = keeping.filter(|keeping| keeping.store.leases().is_some());
    let place = match keeping {
        Some(keeping) => Where::Store(keeping),
        None if options.is_private() => return Ok(None),
        None => Where::Disk(Sessions::at(config_dir(options, surroundings)?), options.user),
    };
    Ok(Some(Ownership::new(lease, place)))
}

fn id_of(named: Option<&String>) -> Result<SessionId> {
    match named {
        Some(id) => SessionId::new(id).map_err(|error| Error::invalid_because("session id", error)),
        None => Ok(SessionId::random()),
    }
}

fn problem(id: &SessionId, by: Holder) -> Error {
    Error::of(LeaseProblem::Held {
        session: id.to_string(),
        by,
    })
}

impl Options {
    /// The stored sessions in the config directory that the CLI will use, to read and edit them without a process.
    ///
    /// It accesses them with the rights of this program, also if the CLI runs as [another user](Self::user), who can put links
    /// there.
    ///
    /// # Errors
    /// When there is no home directory, or a hermetic session has only a temporary one.
    pub fn sessions(&self) -> Result<Sessions> {
        Ok(Sessions::at(config_dir(self, &self.hosting.surroundings())?))
    }
}

/// The config directory that the CLI will use.
fn config_dir(options: &Options, surroundings: &Surroundings) -> Result<PathBuf> {
    let no_home = || Error::of(crate::options::OptionsError::NoHome);
    let cwd = options.working_directory(surroundings);
    let cwd = cwd.map_err(Error::of)?;
    if options.isolation == Isolation::Hermetic {
        let root = options.hermetic_home.as_ref().ok_or_else(no_home)?;
        return Ok(cwd.join(root).join("home").join(".claude"));
    }
    let set = |name: &str| variable(options, surroundings, name).map(PathBuf::from);
    if let Some(config) = set("CLAUDE_CONFIG_DIR") {
        return Ok(cwd.join(config));
    }
    let home = crate::env::get(options.environment.own(), "HOME").map(PathBuf::from);
    let home = home.or_else(|| surroundings.home());
    Ok(home.ok_or_else(no_home)?.join(".claude"))
}
