//! How sessions come to be: created, forked, and adopted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger::SessionId;
use serde_json::json;

use super::{SessionHost, blocking};
use crate::clock::now;
use crate::error::{HostError, Result};
use crate::event::{SessionRecord, SessionState};
use crate::log::Write;
use crate::spares::Reservation;
use crate::stored::{self, Adoptable};
use crate::workspace::{self, NewWorktree};

/// The kind of the records that have the id of the session which was created under a key.
pub(super) const CREATIONS: &str = "creations";

/// The kind of the records that have the key under which a session was created.
pub(super) const KEYS: &str = "creation_keys";

/// The longest title that a client can give, in bytes: it is in each list of sessions.
const TITLE: usize = 4096;

/// What a new session is.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NewSession {
    /// The id; one that the host chooses if unset. A client that repeats a creation with the same id and the same values gets the session that is there. A
    /// session with an id of a client does not take a [spare process](crate::HostPolicy::spares).
    pub id: Option<SessionId>,
    /// What the client knows the creation by if the host chooses the id: a client that repeats it with the same key and the same values gets the session that
    /// is there. The session has the key as its id unless it takes that of a spare process. Not used with an [`id`](Self#structfield.id).
    pub key: Option<SessionId>,
    /// The working directory, which has to be in a root of the policy.
    pub cwd: PathBuf,
    /// A title, of at most 4096 bytes.
    pub title: Option<String>,
    /// The model, if the policy lets clients choose it.
    pub model: Option<String>,
    /// The permission mode, if the policy lets clients choose it.
    pub permission_mode: Option<String>,
    /// A git worktree to be made for it, of the repository that `cwd` is in, if the policy lets clients have one.
    pub worktree: Option<NewWorktree>,
}

impl NewSession {
    /// A session in this directory.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            ..Self::default()
        }
    }
}

/// What the fork of a session is.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NewFork {
    /// The id; random if unset.
    pub id: Option<SessionId>,
    /// A title; that of the other session if unset.
    pub title: Option<String>,
}

impl SessionHost {
    /// Creates a session. No process is started before its first prompt.
    ///
    /// # Errors
    /// When the policy does not allow it, or the id is that of another session: one that the host has, or one that the CLI has stored on this machine. Only
    /// [`adopt`](Self::adopt) takes over what is stored.
    pub async fn create(&self, new: NewSession, actor: impl Into<String>) -> Result<SessionRecord> {
        let policy = &self.0.shared.policy;
        policy.check(new.model.as_deref(), new.permission_mode.as_deref())?;
        check_title(new.title.as_deref())?;
        let mut cwd = policy.directory(&new.cwd)?;
        let (id, reserved) = match &new.id {
            Some(id) => {
                if !self.is_known(id).await? && self.is_stored(id).await? {
                    return Err(HostError::Reused(format!("the session id {id}")));
                }
                (id.clone(), None)
            }
            None => self.choose_id(&new).await?,
        };
        let asked = new.worktree.as_ref().map(|new| [&new.branch, &new.base]);
        let request = json!([
            cwd.to_string_lossy(),
            new.title,
            new.model,
            new.permission_mode,
            asked
        ]);
        let mut worktree = None;
        // Until the session is in the log, so that no other one plans the same branch.
        let mut planning = None;
        if let Some(new) = &new.worktree {
            let not_allowed = || HostError::NotAllowed("git worktrees".to_owned());
            let workspaces = policy.workspaces.as_ref().ok_or_else(not_allowed)?;
            let known = async || match self.session(&id).await {
                Ok(known) => Ok(known.worktree.map(|worktree| (worktree, known.cwd.into()))),
                Err(HostError::NoSession(_)) => Ok(None),
                Err(error) => Err(error),
            };
            let mut found = known().await?;
            if found.is_none() {
                planning = Some(self.0.shared.worktrees.lock().await);
                // The same creation may have had the lock.
                found = known().await?;
            }
            let (planned, inside) = match found {
                Some(found) => found,
                None => {
                    let is_allowed = |directory: &Path| policy.directory(directory);
                    let others = self.log().worktrees().await?;
                    workspace::plan(workspaces, is_allowed, &id, &cwd, new, &others).await?
                }
            };
            (worktree, cwd) = (Some(planned), inside);
        }
        let Some(cwd) = cwd.to_str().map(str::to_owned) else {
            return Err(HostError::Invalid(format!(
                "the directory {} is not UTF-8",
                cwd.display()
            )));
        };
        let record = SessionRecord {
            id,
            state: SessionState::Idle,
            cwd,
            worktree,
            adopted: false,
            forked_from: None,
            title: new.title,
            model: new.model,
            permission_mode: new.permission_mode,
            epoch: 0,
            head_seq: 0,
            trimmed_seq: 0,
            has_history: false,
            pending_approvals: 0,
            created_at: now(),
            created_by: Some(actor.into()),
        };
        let created = self.insert(record, &request).await?;
        drop(planning);
        if let Some(reserved) = reserved {
            reserved.keep();
        }
        Ok(created)
    }

    /// The id of a new session: that of a spare if the session may take one.
    async fn choose_id(&self, new: &NewSession) -> Result<(SessionId, Option<Reservation>)> {
        let spares = &self.0.shared.spares;
        let has_own = new.model.is_some() || new.permission_mode.is_some();
        let of_spare = || if has_own { None } else { spares.reserve() };
        let Some(key) = &new.key else {
            let reserved = of_spare();
            let id = reserved.as_ref().map(|spare| spare.id().clone());
            return Ok((id.unwrap_or_else(SessionId::random), reserved));
        };
        let _turn = self.0.keys.lock().await;
        let recorded = self.log().record(CREATIONS, key.as_str()).await?;
        let recorded = recorded.map(|id| id.read::<SessionId>()).transpose();
        let recorded =
            recorded.map_err(|error| HostError::Invalid(format!("the creation {key}: {error}")))?;
        // Without a record it is of a time without spares.
        let before = recorded.as_ref().unwrap_or(key);
        if self.is_known(before).await? {
            return Ok((before.clone(), None));
        }
        // What was stored under the id is of a session that was deleted.
        let is_stored = self.is_stored(before).await?;
        if let Some(recorded) = recorded.filter(|_| !is_stored) {
            return Ok((recorded, None));
        }
        let reserved = of_spare();
        let id = match &reserved {
            Some(spare) => spare.id().clone(),
            None if is_stored => SessionId::random(),
            None => key.clone(),
        };
        if id == *key && !spares.are_wanted() {
            return Ok((id, None));
        }
        // Before the session: a repetition must not find another spare. What finds the record when the session is deleted comes first.
        for (kind, name, value) in [(KEYS, &id, key), (CREATIONS, key, &id)] {
            let value = Some(json!(value).into());
            self.log().put_record(kind, name.as_str(), value).await?;
        }
        Ok((id, reserved))
    }

    /// Whether the host has a session of this id.
    async fn is_known(&self, id: &SessionId) -> Result<bool> {
        match self.session(id).await {
            Ok(_) => Ok(true),
            Err(HostError::NoSession(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the CLI has stored something under an id. A new session would go on with it.
    async fn is_stored(&self, id: &SessionId) -> Result<bool> {
        let (shared, id) = (Arc::clone(&self.0.shared), id.clone());
        blocking(move || Ok(stored::is_stored(&shared.policy, &id))).await
    }

    /// Writes a new session, or finds it if the same was asked for before.
    async fn insert(&self, record: SessionRecord, request: &serde_json::Value) -> Result<SessionRecord> {
        let id = record.id.clone();
        let create = Write::Create {
            record: Box::new(record),
            request: request.to_string(),
        };
        self.log().write(&id, vec![create]).await?;
        self.session(&id).await
    }

    /// Makes a session that begins with the conversation of another one as it is stored now, in the same directory and with the same options.
    /// The other session goes on unchanged. The events of before stay in its log; the CLI's undo history of files is not copied.
    ///
    /// A client that repeats a fork with the same id gets the session that is there.
    ///
    /// # Cancel safety
    /// Dropped, it may have made the session or not; or a stored session that no session of the host knows, with which a repetition with the same id goes on.
    ///
    /// # Errors
    /// When a turn of the other session runs, it has no stored turn, the id is in use, or the log fails.
    pub async fn fork(
        &self,
        session: &SessionId,
        new: NewFork,
        actor: impl Into<String>,
    ) -> Result<SessionRecord> {
        let source = self.session(session).await?;
        let NewFork { id, title } = new;
        check_title(title.as_deref())?;
        let id = id.unwrap_or_else(SessionId::random);
        let record = SessionRecord {
            id: id.clone(),
            state: SessionState::Idle,
            adopted: false,
            forked_from: Some(session.clone()),
            title: title.clone().or_else(|| source.title.clone()),
            epoch: 0,
            head_seq: 0,
            trimmed_seq: 0,
            has_history: true,
            pending_approvals: 0,
            created_at: now(),
            created_by: Some(actor.into()),
            ..source.clone()
        };
        let request = json!({"fork_of": session, "title": title});
        if self.is_known(&id).await? {
            return self.insert(record, &request).await;
        }
        if matches!(
            source.state,
            SessionState::Starting | SessionState::Running | SessionState::RequiresAction
        ) {
            return Err(HostError::TurnRuns(session.clone()));
        }
        let shared = Arc::clone(&self.0.shared);
        let title = record.title.clone();
        blocking(move || stored::fork(&shared.policy, &source, id, title.as_deref())).await?;
        self.insert(record, &request).await
    }

    /// Up to `limit` sessions that the CLI left on this machine, the newest first: of one directory, or of all roots of the policy. Those that the host
    /// has are left out.
    ///
    /// # Errors
    /// When the directory is in no root, or the stored sessions or the log can't be read.
    pub async fn adoptable(&self, cwd: Option<PathBuf>, limit: usize) -> Result<Vec<Adoptable>> {
        let shared = Arc::clone(&self.0.shared);
        let listed = blocking(move || stored::adoptable(&shared.policy, cwd.as_deref())).await?;
        let mut found = Vec::new();
        for session in listed {
            if found.len() == limit {
                break;
            }
            if !self.is_known(&session.id).await? {
                found.push(session);
            }
        }
        Ok(found)
    }

    /// Takes over a session that the CLI left on this machine, in a root of the policy. The next prompt goes on with it. Its log begins now: the
    /// conversation of before is in its [transcript](Self::transcript) alone.
    ///
    /// # Cancel safety
    /// Dropped, the session may be adopted or not. Adopting it again returns it.
    ///
    /// # Errors
    /// [`HostError::InUse`] while another process drives it; when nothing of it is stored, its directory is in no root, or the log fails.
    pub async fn adopt(
        &self,
        session: &SessionId,
        cwd: Option<PathBuf>,
        actor: impl Into<String>,
    ) -> Result<SessionRecord> {
        let turn = Arc::clone(&self.0.adoptions).lock_owned().await;
        match self.session(session).await {
            Ok(known) if known.adopted => return Ok(known),
            Ok(_) => return Err(HostError::Reused(format!("the session id {session}"))),
            Err(HostError::NoSession(_)) => {}
            Err(error) => return Err(error),
        }
        let (shared, id) = (Arc::clone(&self.0.shared), session.clone());
        // Whoever leaves in the middle leaves its turn when the lease is given back.
        let adopt = move || Ok((stored::adopt(&shared.policy, &id, cwd.as_deref())?, turn));
        let (adoption, turn) = blocking(adopt).await?;
        let Some(cwd) = adoption.cwd.to_str().map(str::to_owned) else {
            return Err(HostError::Invalid(format!(
                "the directory {} is not UTF-8",
                adoption.cwd.display()
            )));
        };
        let record = SessionRecord {
            id: session.clone(),
            state: SessionState::Idle,
            cwd,
            worktree: None,
            adopted: true,
            forked_from: None,
            title: adoption.title.clone(),
            model: None,
            permission_mode: None,
            epoch: 0,
            head_seq: 0,
            trimmed_seq: 0,
            has_history: true,
            pending_approvals: 0,
            created_at: now(),
            created_by: Some(actor.into()),
        };
        let adopted = self.insert(record, &json!("adopted")).await;
        drop((adoption, turn));
        adopted
    }
}

pub(super) fn check_title(title: Option<&str>) -> Result<()> {
    match title {
        Some(title) if title.len() > TITLE => Err(HostError::Invalid(format!(
            "the title is longer than {TITLE} bytes"
        ))),
        _ => Ok(()),
    }
}
