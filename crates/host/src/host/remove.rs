//! How sessions are ended for good, and what is removed of them.

use outrigger::SessionId;
use serde_json::json;

use super::SessionHost;
use super::create::{CREATIONS, KEYS};
use crate::error::{HostError, Result};
use crate::event::SessionState;
use crate::log::{NewEvent, Write};
use crate::workspace::{self, CleanUp, WorkspacePolicy};

impl SessionHost {
    /// Ends a session for good: it takes no prompts any more, and can be read. Prompts that wait are not begun, and are marked so
    /// ([`Delivery::NotBegun`](crate::Delivery::NotBegun)). A deferred call that waits is never carried out.
    ///
    /// # Errors
    /// When the session is missing, or the log fails.
    pub async fn archive(&self, session: &SessionId) -> Result<()> {
        let give_up = Write::GiveUpAll {
            reason: "the session was archived".to_owned(),
        };
        self.write_and_wake(session, vec![Write::Enter(SessionState::Ended), give_up])
            .await?;
        self.0.shared.spares.forget(session);
        self.stop(session).await?;
        self.clean_up(session, &[CleanUp::Archived]).await
    }

    /// Removes the worktree if the policy says so, and tells what became of it.
    async fn clean_up(&self, session: &SessionId, when: &[CleanUp]) -> Result<()> {
        let Some(workspaces) = &self.0.shared.policy.workspaces else {
            return Ok(());
        };
        if !when.contains(&workspaces.clean_up) {
            return Ok(());
        }
        let has_worktree = self.session(session).await?.worktree.is_some();
        let removed = match self.remove_workspace(session, false).await {
            Ok(removed) => removed.map(str::to_owned),
            // It is kept, and can be removed later.
            Err(HostError::Workspace(error)) => Some(error),
            Err(error) => return Err(error),
        };
        if !has_worktree {
            return Ok(());
        }
        let (kind, why) = match removed {
            None => ("workspace_removed", None),
            Some(why) => ("workspace_kept", Some(why)),
        };
        let event = NewEvent::host(kind, json!({"type": kind, "reason": why}));
        self.log()
            .write(session, vec![Write::Append(event)])
            .await
            .map(drop)
    }

    /// Removes the git worktree of an archived session with its branch, and what the host keeps of its files. A worktree with changes, with commits of its
    /// own, with repositories in it (such as submodules that somebody has checked out), or in which another session works, is kept, and the reason is
    /// returned; so is one that somebody has moved. With `force` only another session keeps it. One that was moved stays where it is then, with its branch,
    /// and the host forgets it. What the host keeps for a fork goes in any case.
    ///
    /// Files that git ignores are removed without asking. A branch with commits of its own stays in any case.
    ///
    /// # Cancel safety
    /// Dropped, a part may be left. Call it again.
    ///
    /// # Errors
    /// When the session is missing or not archived, the policy has no workspaces, git fails, or the log can't be read.
    pub async fn remove_workspace(&self, session: &SessionId, force: bool) -> Result<Option<&'static str>> {
        let record = self.session(session).await?;
        if record.state != SessionState::Ended {
            return Err(HostError::Invalid(format!(
                "the session {session} has to be archived before its workspace is removed"
            )));
        }
        let workspaces = self.workspaces()?;
        let others = match &record.worktree {
            Some(worktree) => self.log().others_in(&worktree.path, session).await?,
            None => 0,
        };
        let making = &self.0.shared.worktrees;
        let removed = workspace::remove(workspaces, &record, others > 0, force, making).await;
        removed.map_err(HostError::Workspace)
    }

    pub(super) fn workspaces(&self) -> Result<&WorkspacePolicy> {
        let workspaces = self.0.shared.policy.workspaces.as_ref();
        workspaces.ok_or_else(|| HostError::NotAllowed("workspaces".to_owned()))
    }

    /// Removes an archived session from the log. The CLI's transcript stays.
    ///
    /// # Errors
    /// When the session is missing, was not archived, or the log fails.
    pub async fn delete(&self, session: &SessionId) -> Result<()> {
        if self.session(session).await?.state != SessionState::Ended {
            return Err(HostError::Invalid(format!(
                "the session {session} has to be archived before it is deleted"
            )));
        }
        self.stop(session).await?;
        self.clean_up(session, &[CleanUp::Archived, CleanUp::Deleted])
            .await?;
        self.log().write(session, vec![Write::Delete]).await?;
        let Some(key) = self.log().record(KEYS, session.as_str()).await? else {
            return Ok(());
        };
        if let Ok(key) = key.read::<SessionId>() {
            self.log().put_record(CREATIONS, key.as_str(), None).await?;
        }
        self.log().put_record(KEYS, session.as_str(), None).await
    }

    /// Removes the events up to a `seq` (retention). A reader with an older cursor is told.
    ///
    /// # Errors
    /// When the session is missing, or the log fails.
    pub async fn trim(&self, session: &SessionId, seq: u64) -> Result<()> {
        self.log().write(session, vec![Write::Trim(seq)]).await.map(drop)
    }
}
