//! Stored sessions: lists them, renames, archives, deletes, forks and replays them.

use std::path::{Path, PathBuf};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use outrigger::Options;
use outrigger::sessions::write::ForkOptions;
use outrigger::sessions::{self, ListOptions, MessageOptions, SessionId, SessionInfo, Sessions};
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};

use crate::children::{Addressed, Children};
use crate::client::Client;
use crate::error::{self, bad};
use crate::event::{Event, RecordedAgent};
use crate::history::{self, History, Page, Recorded, Window};
use crate::lineage::{self, Lineages};
use crate::prompt;
use crate::reduce::TaskPlan;
use crate::sdk_error;
use crate::timestamp;

/// How many sessions a page has.
const PAGE: usize = 50;

/// How many messages a replay reads ahead.
const AHEAD: usize = 16;

/// The prefix of a cursor; the number behind it is how many sessions to skip.
const CURSOR: &str = "offset:";

/// A page of the sessions, newest first.
pub(crate) async fn list(
    options: &Options,
    request: acp::ListSessionsRequest,
) -> Result<acp::ListSessionsResponse, Error> {
    let offset = match request.cursor.as_deref() {
        None => 0,
        Some(cursor) => cursor
            .strip_prefix(CURSOR)
            .and_then(|offset| offset.parse().ok())
            .ok_or_else(|| bad("cursor", "it is not a cursor of an earlier list"))?,
    };
    if let Some(cwd) = request.cwd.as_deref().filter(|cwd| !cwd.is_absolute()) {
        return Err(bad("cwd", format!("{} is not absolute", cwd.display())));
    }
    let wanted = Archived::of(request.archived.as_ref())?;
    let cwd = request.cwd;
    let (found, next) = work(options, move |sessions| {
        let lineages = Lineages::read(&sessions);
        let mut found = Vec::new();
        let mut offset = offset;
        // Filtered sessions are skipped, so that a page may take several reads.
        loop {
            // The CLI marks sessions of editors as those of programs, which its own lists omit.
            let options = ListOptions::new()
                .include_programmatic(true)
                .include_worktrees(false);
            let options = options.limit(PAGE + 1).offset(offset);
            let infos = sessions.list(&match &cwd {
                Some(cwd) => options.dir(cwd),
                None => options,
            })?;
            let is_last = infos.len() <= PAGE;
            for info in infos.into_iter().take(PAGE) {
                if found.len() == PAGE {
                    return Ok((found, Some(offset)));
                }
                offset += 1;
                if wanted.has(&info)
                    && let Some(id) = lineages.listed_as(info.session_id.as_str())
                    && let Some(info) = listed(id, info)
                {
                    found.push(info);
                }
            }
            if is_last {
                return Ok((found, None));
            }
        }
    })
    .await?;
    let next = next.map(|offset| format!("{CURSOR}{offset}"));
    Ok(acp::ListSessionsResponse::new(found).next_cursor(next))
}

/// The filter of a list.
#[derive(Debug, Clone, Copy)]
enum Archived {
    Without,
    With,
    Only,
}

impl Archived {
    fn of(filter: Option<&acp::SessionArchiveFilter>) -> Result<Self, Error> {
        match filter {
            None | Some(acp::SessionArchiveFilter::Exclude) => Ok(Self::Without),
            Some(acp::SessionArchiveFilter::Include) => Ok(Self::With),
            Some(acp::SessionArchiveFilter::Only) => Ok(Self::Only),
            Some(_) => Err(bad("archived", "it is not exclude, include or only")),
        }
    }

    fn has(self, info: &SessionInfo) -> bool {
        let is_archived = info.archived == Some(true);
        match self {
            Self::Without => !is_archived,
            Self::With => true,
            Self::Only => is_archived,
        }
    }
}

/// The entry of a session. A session without a directory can't be resumed.
fn listed(id: String, info: SessionInfo) -> Option<acp::SessionInfo> {
    let cwd = PathBuf::from(info.cwd?);
    let words = || prompt::words_of(&info.summary).to_owned();
    let title = info.custom_title.unwrap_or_else(words);
    Some(
        acp::SessionInfo::new(id, cwd)
            .title(title)
            .updated_at(timestamp::iso(info.last_modified))
            .archived(info.archived == Some(true)),
    )
}

/// The title of a session, or else its first prompt. `None` without messages.
pub(crate) async fn title_of(options: &Options, conversation: &str) -> Result<Option<String>, Error> {
    let Ok(id) = SessionId::new(conversation) else {
        return Ok(None);
    };
    let info = work(options, move |sessions| sessions.info(&id, None)).await?;
    let words = |prompt: String| prompt::words_of(&prompt).to_owned();
    let known = info.and_then(|info| info.custom_title.or(info.first_prompt.map(words)));
    Ok(known.and_then(|text| title(&text).ok()))
}

/// Renames a stored session.
pub(crate) async fn set_title(options: &Options, id: &acp::SessionId, title: &str) -> Result<(), Error> {
    let id = known(id)?;
    let title = title.to_owned();
    work(options, move |sessions| {
        sessions.rename(&lineage::conversation(&sessions, &id), &title)
    })
    .await
}

/// A title in its stored form: one line, trimmed.
pub(crate) fn title(title: &str) -> Result<String, Error> {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    match title.is_empty() {
        true => Err(bad("title", "it is empty")),
        false => Ok(title),
    }
}

/// Archives or unarchives a session.
pub(crate) async fn archive(options: &Options, id: &acp::SessionId, archived: bool) -> Result<(), Error> {
    let id = known(id)?;
    work(options, move |sessions| {
        let id = lineage::conversation(&sessions, &id);
        match archived {
            true => sessions.archive(&id),
            false => sessions.unarchive(&id),
        }
    })
    .await
}

/// Deletes a session with all its conversations.
pub(crate) async fn delete(options: &Options, id: &acp::SessionId) -> Result<(), Error> {
    let id = known(id)?;
    work(options, move |sessions| {
        let mut found = false;
        let later = lineage::later(&sessions, &id);
        for conversation in later.iter().chain([&id]) {
            match sessions.delete(conversation) {
                Ok(()) => found = true,
                // A conversation without messages has no file.
                Err(why) if why.is_not_found() && (found || *conversation != id) => {}
                Err(why) => return Err(why),
            }
        }
        if let Err(error) = lineage::forget(&sessions, &id) {
            tracing::warn!(%error, "what a session went on as could not be forgotten");
        }
        Ok(())
    })
    .await
}

/// Forks a session, up to a message if there is one. The copy gets the id `copy`. A copy that is made after the caller has gone is
/// deleted.
pub(crate) async fn fork(
    options: &Options,
    id: &acp::SessionId,
    up_to: Option<&str>,
    copy: &acp::SessionId,
) -> Result<(), Error> {
    let (id, copy) = (known(id)?, known(copy)?);
    let wanted = up_to.map(str::to_owned);
    let (caller, _waits) = oneshot::channel::<()>();
    let fork = work(options, move |sessions| {
        let id = lineage::conversation(&sessions, &id);
        let mut fork = ForkOptions::new().id(copy);
        if let Some(message) = wanted {
            let Some(record) = record_of(&sessions, &id, &message)? else {
                return Ok(None);
            };
            fork = fork.up_to_message_id(record);
        }
        let copy = sessions.fork(&id, &fork)?;
        if caller.is_closed() {
            sessions.delete(&copy)?;
        }
        Ok(Some(()))
    });
    match fork.await? {
        Some(()) => Ok(()),
        None => Err(bad(
            "_meta.claudeCode.upToMessageId",
            format!("the conversation has no message {}", up_to.unwrap_or_default()),
        )),
    }
}

/// The uuid of the last record of a message, which is named by its uuid or by the API's id.
///
/// # Errors
/// When there is no such message.
fn record_of(sessions: &Sessions, id: &SessionId, message_id: &str) -> sessions::Result<Option<String>> {
    #[derive(Deserialize)]
    struct Of {
        id: Option<String>,
    }
    let mut found = None;
    for message in sessions.messages(id, &MessageOptions::new())? {
        let message = message?;
        if message.uuid == message_id {
            return Ok(Some(message.uuid.into()));
        }
        let of: Option<Of> = message.message.as_ref().and_then(|raw| raw.decode().ok());
        if of.and_then(|of| of.id).as_deref() == Some(message_id) {
            found = Some(message.uuid.into());
        }
    }
    Ok(found)
}

/// The current conversation of a session, if there is one.
pub(crate) async fn find(options: &Options, id: &acp::SessionId) -> Result<String, Error> {
    let id = known(id)?;
    let found = work(options, move |sessions| {
        sessions.find(&lineage::conversation(&sessions, &id))
    });
    Ok(found.await?.id.to_string())
}

/// The subagents of a session, each behind the one that started it. Without those whose place is not recorded.
pub(crate) async fn agents(options: &Options, id: &acp::SessionId) -> Result<Vec<RecordedAgent>, Error> {
    let id = known(id)?;
    work(options, move |sessions| {
        let file = sessions.find(&lineage::conversation(&sessions, &id))?;
        let mut left: Vec<RecordedAgent> = file.subagents().iter().filter_map(history::recorded).collect();
        let mut placed: Vec<RecordedAgent> = Vec::new();
        loop {
            let is_placed = |agent: &RecordedAgent| {
                let parent = agent.parent.as_ref();
                parent.is_none_or(|parent| placed.iter().any(|other| other.agent == *parent))
            };
            let (now, later): (Vec<_>, Vec<_>) = left.into_iter().partition(is_placed);
            if now.is_empty() {
                return Ok(placed);
            }
            placed.extend(now);
            left = later;
        }
    })
    .await
}

/// What a replay leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// The uuid of the first prompt that was replayed, if there are earlier messages.
    pub(crate) before: Option<String>,
    /// The plan at the end of the conversation.
    pub(crate) plan: TaskPlan,
}

/// Replays a session to the editor: its last messages, or all if there is no limit.
pub(crate) async fn replay(
    options: &Options,
    session: &acp::SessionId,
    cwd: &Path,
    client: &Client,
    limit: Option<usize>,
) -> Result<Replayed, Error> {
    let mut encoder = client.encoder();
    let mut children = client.shows_children().then(|| Children::new(session));
    let mut send = |events: Vec<Event>| {
        for event in events {
            let addressed = match &mut children {
                Some(children) => children.route(event),
                None => vec![Addressed { child: None, event }],
            };
            for Addressed { child, event } in addressed {
                for update in encoder.encode(event) {
                    client.update(child.as_ref().unwrap_or(session), update);
                }
            }
        }
    };
    if let Some(limit) = limit {
        let page = last(options, session, cwd, None, limit).await?;
        for event in page.events {
            send(vec![event]);
            client.gate().opened().await;
        }
        let (before, plan) = (page.before, page.plan);
        return Ok(Replayed { before, plan });
    }
    let (read, mut told) = messages(options, known(session)?);
    let tell = async {
        let mut history = History::new(cwd.to_owned());
        while let Some(recorded) = told.recv().await {
            send(history.events(recorded));
            client.gate().opened().await;
        }
        let (last, plan) = history.end();
        send(last);
        plan
    };
    let (read, plan) = tokio::join!(read, tell);
    read.map(|()| Replayed { before: None, plan })
}

/// The last messages of a session, of those before a prompt if there is one.
pub(crate) async fn last(
    options: &Options,
    session: &acp::SessionId,
    cwd: &Path,
    before: Option<&str>,
    limit: usize,
) -> Result<Page, Error> {
    let (read, mut told) = messages(options, known(session)?);
    let tell = async move {
        let mut history = History::new(cwd.to_owned());
        let mut window = Window::new(limit);
        let mut is_found = before.is_none();
        while let Some(recorded) = told.recv().await {
            let Recorded::Message(message) = recorded else {
                window.events(history.events(recorded));
                continue;
            };
            let uuid = message.uuid.clone();
            if before == Some(uuid.as_str()) {
                is_found = true;
                break;
            }
            window.message(&uuid, history.events(Recorded::Message(message)));
        }
        let (last, plan) = history.end();
        is_found.then(|| Page {
            plan,
            ..window.end(last)
        })
    };
    let (read, page) = tokio::join!(read, tell);
    read?;
    page.ok_or_else(|| bad("before", "the conversation has no such message"))
}

/// Reads the messages of a session on a blocking thread, until the receiver is dropped.
fn messages(
    options: &Options,
    id: SessionId,
) -> (impl Future<Output = Result<(), Error>>, mpsc::Receiver<Recorded>) {
    let (tell, told) = mpsc::channel(AHEAD);
    let read = work(options, move |sessions| {
        let options = MessageOptions::new().include_system_messages(true);
        let file = sessions.find(&lineage::conversation(&sessions, &id))?;
        // A failure means that the receiver is gone.
        history::read(&file, &options, &mut |recorded| {
            tell.blocking_send(recorded).is_ok()
        })
    });
    (read, told)
}

/// Checks the form of a session id.
fn known(id: &acp::SessionId) -> Result<SessionId, Error> {
    let id = id.0.as_ref();
    SessionId::new(id).map_err(|_| error::no_session(id))
}

/// Runs file operations on a blocking thread.
pub(crate) async fn work<T: Send + 'static>(
    options: &Options,
    work: impl FnOnce(Sessions) -> sessions::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let sessions = options.sessions().map_err(|error| sdk_error::of_sdk(&error))?;
    let done = tokio::task::spawn_blocking(move || work(sessions)).await;
    done.map_err(|error| error::internal(format!("the work on files broke off: {error}")))?
        .map_err(|error| of_sessions(&error))
}

fn of_sessions(why: &sessions::Error) -> Error {
    if why.is_not_found() {
        return Error::new(
            agent_client_protocol::ErrorCode::RESOURCE_NOT_FOUND,
            format!("Resource not found: {why}"),
        );
    }
    error::internal(why)
}
