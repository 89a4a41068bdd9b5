//! Stored sessions: lists them, renames, archives, deletes, forks and replays them.

use std::path::{Path, PathBuf};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use outrigger::Options;
use outrigger::sessions::write::ForkOptions;
use outrigger::sessions::{self, ListOptions, MessageOptions, SessionId, SessionInfo, Sessions};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::client::Client;
use crate::error::{self, bad};
use crate::history::{self, History};
use crate::lineage::{self, Lineages};
use crate::sdk_error;

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
    let title = info.custom_title.unwrap_or(info.summary);
    Some(
        acp::SessionInfo::new(id, cwd)
            .title(title)
            .updated_at(timestamp(info.last_modified))
            .archived(info.archived == Some(true)),
    )
}

/// The title of a session, or else its first prompt. `None` without messages.
pub(crate) async fn title_of(options: &Options, conversation: &str) -> Result<Option<String>, Error> {
    let Ok(id) = SessionId::new(conversation) else {
        return Ok(None);
    };
    let info = work(options, move |sessions| sessions.info(&id, None)).await?;
    let known = info.and_then(|info| info.custom_title.or(info.first_prompt));
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

/// Forks a session, up to a message if there is one, and returns the new id.
pub(crate) async fn fork(
    options: &Options,
    id: &acp::SessionId,
    up_to: Option<&str>,
) -> Result<acp::SessionId, Error> {
    let id = known(id)?;
    let wanted = up_to.map(str::to_owned);
    let fork = work(options, move |sessions| {
        let id = lineage::conversation(&sessions, &id);
        let mut fork = ForkOptions::new();
        if let Some(message) = wanted {
            let Some(record) = record_of(&sessions, &id, &message)? else {
                return Ok(None);
            };
            fork = fork.up_to_message_id(record);
        }
        sessions.fork(&id, &fork).map(Some)
    });
    match fork.await? {
        Some(fork) => Ok(acp::SessionId::new(fork.to_string())),
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

/// Replays a session to the editor. Waits while the editor is behind.
pub(crate) async fn replay(
    options: &Options,
    session: &acp::SessionId,
    cwd: &Path,
    client: &Client,
) -> Result<(), Error> {
    let id = known(session)?;
    let (tell, mut told) = mpsc::channel(AHEAD);
    let read = work(options, move |sessions| {
        let options = MessageOptions::new().include_system_messages(true);
        let file = sessions.find(&lineage::conversation(&sessions, &id))?;
        // A failure means that the receiver is gone.
        history::read(&file, &options, &mut |message| {
            tell.blocking_send(message).is_ok()
        })
    });
    let tell = async {
        let mut history = History::new(cwd.to_owned());
        let mut encoder = client.encoder();
        let mut send = |events: Vec<crate::event::Event>| {
            for event in events {
                for update in encoder.encode(event) {
                    client.update(session, update);
                }
            }
        };
        while let Some(message) = told.recv().await {
            send(history.message(&message));
            client.gate().opened().await;
        }
        send(history.end());
    };
    let (read, ()) = tokio::join!(read, tell);
    read
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

/// Milliseconds since 1970 as ISO 8601 in UTC.
fn timestamp(ms: i64) -> String {
    let (seconds, ms) = (ms.div_euclid(1000), ms.rem_euclid(1000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days count from 1 March of the year 0, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year + era * 400 + late;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(timestamp(1_709_251_200_000), "2024-03-01T00:00:00.000Z");
        assert_eq!(timestamp(4_102_444_799_000), "2099-12-31T23:59:59.000Z");
        assert_eq!(timestamp(-1), "1969-12-31T23:59:59.999Z");
    }
}
