//! What can be read of sessions.

use std::sync::Arc;

use outrigger::{SessionId, SessionUsage};
use uuid::Uuid;

use super::{SessionHost, blocking};
use crate::approval::{Approval, ApprovalState};
use crate::error::Result;
use crate::event::SessionRecord;
use crate::log::{Counts, Hints, Page};
use crate::stored::Transcript;
use crate::subscription::Subscription;
use crate::workspace::{self, DiffFrom, WorkspaceDiff};

impl SessionHost {
    /// A session.
    ///
    /// # Errors
    /// When there is none, or the log can't be read.
    pub async fn session(&self, id: &SessionId) -> Result<SessionRecord> {
        self.log().session(id).await
    }

    /// Up to `limit` sessions, at most 1000, with an id after `after`, in the order of their ids.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn sessions(&self, after: Option<&SessionId>, limit: usize) -> Result<Vec<SessionRecord>> {
        self.log().sessions(after, limit).await
    }

    /// Up to `limit` events, at most 1000, after a `seq`; fewer if they are long, so that a page has 4 MiB or a single event. The last page is that whose last
    /// event is [`Page::head_seq`].
    ///
    /// # Errors
    /// When the session is missing, or the log can't be read.
    pub async fn events(&self, session: &SessionId, after: u64, limit: usize) -> Result<Page> {
        self.log().events(session, after, limit).await
    }

    /// Reads a session from a cursor, and on.
    ///
    /// # Errors
    /// When the session is missing, the cursor is after its newest event, or the log can't be read.
    pub async fn subscribe(&self, session: &SessionId, after: u64) -> Result<Subscription> {
        Subscription::new(Arc::clone(self.log()), session.clone(), after).await
    }

    /// Hints about all sessions, from now on.
    pub fn hints(&self) -> Hints {
        self.log().hub().hints()
    }

    /// How much the log has.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn counts(&self) -> Result<Counts> {
        self.log().counts().await
    }

    /// Up to `limit` approvals, at most 1000, the oldest first, from behind the [number](Approval::number) `after` on: of one session or of all, in one
    /// state or in any.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn approvals(
        &self,
        session: Option<&SessionId>,
        state: Option<ApprovalState>,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Approval>> {
        self.log().approvals(session, state, after, limit).await
    }

    /// An approval.
    ///
    /// # Errors
    /// When there is none, or the log can't be read.
    pub async fn approval(&self, id: Uuid) -> Result<Approval> {
        self.log().approval(id).await
    }

    /// The transcript of a session: what the CLI has stored of it.
    ///
    /// # Errors
    /// When the session is missing, it has no stored turn, or the file can't be opened.
    pub async fn transcript(&self, session: &SessionId) -> Result<Transcript> {
        let record = self.session(session).await?;
        let shared = Arc::clone(&self.0.shared);
        blocking(move || Transcript::open(&shared.policy, &record)).await
    }

    /// What a session has used, over all its processes: the sum of its logged results. A turn that was cut off has no result.
    ///
    /// # Errors
    /// When the session is missing, or the log can't be read.
    pub async fn usage(&self, session: &SessionId) -> Result<SessionUsage> {
        self.session(session).await?;
        self.log().usage(Some(session)).await
    }

    /// What all sessions have used together, those that were deleted included.
    ///
    /// # Errors
    /// When the log can't be read.
    pub async fn total_usage(&self) -> Result<SessionUsage> {
        self.log().usage(None).await
    }

    /// What changed in the files of a session, by whomever: new, changed and removed files, without those that git ignores. Of a session, one is made at a
    /// time, and of all sessions four.
    ///
    /// # Errors
    /// When the session is missing, the policy has no workspaces or no snapshots, no turn has begun yet, or git fails.
    pub async fn diff(&self, session: &SessionId, from: DiffFrom) -> Result<WorkspaceDiff> {
        let record = self.session(session).await?;
        let _turn = self.0.diffs.enter(session).await?;
        let files = || self.0.shared.policy.files_of(&record);
        workspace::diff(self.workspaces()?, &record, files, from).await
    }
}
