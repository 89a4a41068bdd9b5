//! A host, and the sessions that this agent has of it.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error, ErrorCode};
use outrigger::protocol::Frame;
use outrigger_host_client::{self as client, Fork, HostClient, NewSession, Session, SessionState};
use tokio_util::sync::CancellationToken;

use super::link::HostLink;
use super::log_frames::LogFrames;
use crate::error::{self, bad};
use crate::timestamp;

/// A host. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Host(HostClient);

impl Host {
    pub(crate) fn new(client: HostClient) -> Self {
        Self(client)
    }

    /// Makes a session in this directory of the host.
    ///
    /// # Errors
    /// When the operator does not allow the directory, or the host refuses or is away.
    pub(crate) async fn create(&self, cwd: &Path) -> Result<HostSession, Error> {
        let Some(dir) = cwd.to_str() else {
            return Err(bad("cwd", format!("{} is not UTF-8", cwd.display())));
        };
        match self.0.create_session(&NewSession::new(dir)).await {
            Ok(session) => Ok(self.seat(&session)),
            Err(error) => Err(match error.problem() {
                Some(problem) if matches!(problem.status, 400 | 403) => bad("cwd", &error),
                _ => self.failed(&error),
            }),
        }
    }

    /// A session that is there.
    ///
    /// # Errors
    /// When there is none, it was archived, or the host refuses or is away.
    pub(crate) async fn find(&self, id: &acp::SessionId) -> Result<HostSession, Error> {
        let session = self.0.session(&id.0).await;
        let session = session.map_err(|error| self.failed_of(&error, id))?;
        if session.state == SessionState::Ended {
            let why = format!(
                "session {} was archived on its host, and takes no prompts any more",
                id.0
            );
            return Err(Error::new(ErrorCode::INVALID_PARAMS, why));
        }
        Ok(self.seat(&session))
    }

    /// A copy of a session.
    ///
    /// # Errors
    /// When there is none, a turn runs in it, nothing of it is stored, or the host refuses or is away.
    pub(crate) async fn fork(&self, id: &acp::SessionId) -> Result<HostSession, Error> {
        let fork = self.0.fork(&id.0, &Fork::default()).await;
        let fork = fork.map_err(|error| self.failed_of(&error, id))?;
        Ok(self.seat(&fork))
    }

    /// All sessions, the newest first, in one page.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub(crate) async fn list(
        &self,
        request: acp::ListSessionsRequest,
    ) -> Result<acp::ListSessionsResponse, Error> {
        let wants_archived = match &request.archived {
            None | Some(acp::SessionArchiveFilter::Exclude) => Some(false),
            Some(acp::SessionArchiveFilter::Only) => Some(true),
            Some(acp::SessionArchiveFilter::Include) => None,
            Some(_) => return Err(bad("archived", "it is not exclude, include or only")),
        };
        if request.cursor.is_some() {
            return Err(bad("cursor", "a host lists all sessions at once"));
        }
        let mut all = self.0.all_sessions().await.map_err(|error| self.failed(&error))?;
        all.sort_by_key(|session| std::cmp::Reverse(session.created_at));
        let listed = all.iter().filter_map(|session| {
            let is_archived = session.state == SessionState::Ended;
            let cwd = PathBuf::from(&session.cwd);
            let is_wanted = wants_archived.is_none_or(|wanted| wanted == is_archived)
                && request.cwd.as_ref().is_none_or(|wanted| *wanted == cwd);
            let created = i64::try_from(session.created_at).unwrap_or_default();
            is_wanted.then(|| {
                acp::SessionInfo::new(session.id.clone(), cwd)
                    .title(session.title.clone())
                    .updated_at(timestamp::iso(created))
                    .archived(is_archived)
            })
        });
        Ok(acp::ListSessionsResponse::new(listed.collect::<Vec<_>>()))
    }

    /// Removes a session with its log.
    ///
    /// # Errors
    /// When there is none, or the host refuses or is away.
    pub(crate) async fn delete(&self, id: &acp::SessionId) -> Result<(), Error> {
        let deleted = self.0.delete_session(&id.0).await;
        deleted.map_err(|error| self.failed_of(&error, id))
    }

    /// # Errors
    /// When there is no such session, or the host refuses or is away.
    pub(crate) async fn set_title(&self, id: &acp::SessionId, title: &str) -> Result<(), Error> {
        let titled = self.0.set_title(&id.0, Some(title)).await;
        titled.map(drop).map_err(|error| self.failed_of(&error, id))
    }

    fn seat(&self, session: &Session) -> HostSession {
        HostSession {
            client: self.0.clone(),
            id: session.id.clone(),
            cwd: PathBuf::from(&session.cwd),
            mode: session.permission_mode.clone(),
            model: session.model.clone(),
            is_working: matches!(
                session.state,
                SessionState::Running | SessionState::RequiresAction
            ),
            looked_up: session.head_seq,
            head: session.head_seq,
            read: 0,
            frames: LogFrames::new(&*session.id),
        }
    }

    fn failed_of(&self, error: &client::Error, id: &acp::SessionId) -> Error {
        match error.problem() {
            Some(problem) if problem.status == 404 => error::no_session(&id.0),
            _ => self.failed(error),
        }
    }

    fn failed(&self, error: &client::Error) -> Error {
        failed(self.0.address(), error)
    }
}

/// An error of a host, for the user of an editor.
fn failed(host: &str, error: &client::Error) -> Error {
    let said = whole(error);
    let status = error.problem().map(|problem| problem.status);
    match status {
        Some(401) => Error::new(
            ErrorCode::AUTH_REQUIRED,
            format!("The host at {host} does not take the token of this agent: {said}"),
        ),
        Some(400 | 403) => Error::new(ErrorCode::INVALID_PARAMS, format!("{said} (the host at {host})")),
        _ => error::internal(format!("{said} (the host at {host})")),
    }
}

/// An error with its causes.
pub(super) fn whole(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(behind) = source {
        let more = behind.to_string();
        if !said.contains(&more) {
            said = format!("{said}: {more}");
        }
        source = behind.source();
    }
    said
}

/// A session of a host, about to be opened.
#[derive(Debug)]
pub(crate) struct HostSession {
    client: HostClient,
    id: String,
    cwd: PathBuf,
    mode: Option<String>,
    model: Option<String>,
    is_working: bool,
    /// The newest event when the session was looked up.
    looked_up: u64,
    /// The newest event of the log, as far as it is known.
    head: u64,
    /// The last event that was read as history.
    read: u64,
    frames: LogFrames,
}

impl HostSession {
    pub(crate) fn id(&self) -> acp::SessionId {
        acp::SessionId::new(self.id.clone())
    }

    /// The directory, on the host.
    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The permission mode that a client has chosen.
    pub(crate) fn mode(&self) -> Option<&str> {
        self.mode.as_deref()
    }

    /// The model that a client has chosen.
    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Whether a turn runs, at the end of what was read.
    pub(crate) fn is_working(&self) -> bool {
        self.is_working
    }

    /// Something that the user should know.
    pub(crate) fn notice(&self, said: &str) -> Vec<Frame> {
        Frame::from_line(self.frames.notice(said, &uuid::Uuid::new_v4().to_string()))
    }

    /// The next frames of the log from its beginning; `None` behind the last one.
    ///
    /// # Errors
    /// When the host refuses or is away.
    pub(crate) async fn page(&mut self) -> Result<Option<Vec<Frame>>, Error> {
        if self.read >= self.head {
            return Ok(None);
        }
        let page = self.client.events(&self.id, self.read, None).await;
        let page = page.map_err(|error| failed(self.client.address(), &error))?;
        let mut frames = Vec::new();
        if page.first_seq > self.read + 1 {
            frames.extend(self.notice("The host does not keep the beginning of this session any more"));
        }
        for event in &page.events {
            let told: Vec<Frame> = self
                .frames
                .event(event)
                .into_iter()
                .flat_map(Frame::from_line)
                .collect();
            if event.sequence_num > self.looked_up {
                for frame in &told {
                    match (frame.kind(), frame.subtype()) {
                        ("system", Some("init")) => self.is_working = true,
                        ("result", _) => self.is_working = false,
                        _ => {}
                    }
                }
            }
            frames.extend(told);
        }
        match page.events.last() {
            Some(last) => (self.read, self.head) = (last.sequence_num, self.head.max(page.head_seq)),
            None => self.head = self.read,
        }
        Ok(Some(frames))
    }

    /// What connects this agent with the session, from the end of what was read on; from now on, if nothing was read.
    /// `left` fires when the editor leaves.
    pub(crate) fn link(self, left: CancellationToken) -> HostLink {
        let cursor = if self.read > 0 { self.read } else { self.head };
        HostLink::new(self.client, self.id, cursor, self.frames, left)
    }
}
