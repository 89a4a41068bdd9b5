//! Replays the conversation of a session as events.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use outrigger_protocol::Frame;
use outrigger_sessions::store::{SessionKey, SessionStore, Transcripts};
use outrigger_sessions::{Error as FilesError, MessageOptions, Messages, SessionFile, SessionId, Sessions};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::error::{Error, Kind, Result};
use crate::event::{Event, Reducer};
use crate::options::RunAs;
use crate::options::handover::as_user;
use crate::private_dir::private_directory;
use crate::session::Session;
use crate::store::Begins;
use crate::store_config::{call, failed};

/// How much is read at once, and held until it is asked for.
const PAGE_MESSAGES: usize = 64;
const PAGE_BYTES: usize = 1 << 20;

/// How long it is waited for the last message that was told to be written down, and how often it is looked.
const WRITTEN: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(20);

/// How many messages from the end on it is looked for.
const LAST: usize = 64;

/// How long a store may take over it, where a session's options don't say.
const LOAD: Duration = Duration::from_secs(60);

/// The messages of a conversation so far, the oldest first: [`Event`]s and [`Frame`]s as a [`Turn`](crate::Turn) brings them while
/// it runs, so that both can be shown by the same code. From [`Session::history`], or without a process from
/// [`open`](Self::open) and [`of_store`](Self::of_store).
///
/// They are what the CLI would go on with: the main conversation, with what compactions kept. What runs live and is not part of a
/// conversation is not in it: results, partial messages, notices, what subagents say. What a prompt said is an
/// [`Event::Message`]; live the CLI repeats prompts only on request. Messages have the ids that they were told with; those of the
/// model say why it stopped and what it took, which is not known yet when they are told.
///
/// Some are read at a time, where blocking is allowed: at most 64 messages, or as many as have 1 MiB, are held (and 16 bytes for each
/// message that there is).
pub struct History {
    state: HistoryState,
    /// Read and not handed out.
    page: VecDeque<Frame>,
    reducer: Reducer,
    count: usize,
    damaged: u64,
    is_behind: bool,
    /// Where a copy is, until it is read.
    place: Option<TempDir>,
}

enum HistoryState {
    Idle(Reading),
    Busy(JoinHandle<Page>),
    /// Emitted after the events that were read before.
    Failed(Error),
    Over,
}

type RemainingMessages = Box<std::iter::Take<std::iter::Skip<Messages>>>;

/// What is being read: nothing, where nothing is left.
type Reading = Option<RemainingMessages>;

/// What is left, what was read, and why no more.
type Page = (Reading, Vec<Frame>, Option<FilesError>);

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History")
            .field("len", &self.count)
            .field("is_behind", &self.is_behind)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// The messages of the conversation so far, as the CLI would resume it: those of the user and of the model, as the events of
    /// turns. They are read from the CLI's transcript, also after the session has ended; if that is gone, as for a session that
    /// was [resumed from a store](crate::Options::session_store), from the store.
    ///
    /// The CLI writes a message to the transcript shortly after it has sent the frame. This waits for the last message that it
    /// sent, at most a second; [`History::is_behind`] reports if that was not enough. A message that the model is writing is not
    /// in the history. After `/clear` the history is that of the new conversation.
    ///
    /// # Cancel safety
    /// The future only reads.
    ///
    /// # Errors
    /// When the transcript or the store can't be read; when the CLI is on another machine, and there is no store; and before the first
    /// turn of a session that was resumed by its title or continued from disk, since the CLI has not reported its id.
    pub async fn history(&self) -> Result<History> {
        self.history_with(&MessageOptions::new()).await
    }

    /// As [`history`](Self::history), for some of the messages, or with the CLI's own notes, such as the boundaries of compactions. `dir` is ignored.
    ///
    /// # Cancel safety
    /// As [`history`](Self::history).
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub async fn history_with(&self, options: &MessageOptions) -> Result<History> {
        let source = self.source().clone();
        let (said, last) = {
            let core = self.conn().core();
            let said = core.session_id().map(SessionId::new);
            (said, core.last_told().map(str::to_owned))
        };
        let id = match (said, source.begins) {
            (Some(id), _) => id.map_err(|error| Error::misfit("the session's id", error))?,
            (None, Begins::With(id)) => id,
            (None, Begins::New) => return Ok(History::of(None, options, None)),
            (None, Begins::Unknown) => {
                return Err(Error::invalid_because(
                    "session for a history",
                    "the CLI says only in its first turn which one it goes on with; prompt it first, or resume it by its id",
                ));
            }
        };
        let kept = match &source.config {
            Some(config) => {
                let sessions = Sessions::at(config);
                written(sessions, source.user, id.clone(), options, last.as_deref()).await?
            }
            None if source.store.is_none() => {
                return Err(Error::invalid_because(
                    "session for a history",
                    "its transcript is on another machine; keep it in a session store",
                ));
            }
            None => None,
        };
        if let Some(history) = kept {
            return Ok(history);
        }
        if let Some((keeping, project)) = source.store
            && let Some((messages, place)) =
                stored(keeping.store, keeping.load_timeout, project, id, options).await?
        {
            return Ok(History::of(Some(messages), options, last.as_deref()).keeping(place));
        }
        // Nothing was written yet.
        Ok(History::of(None, options, last.as_deref()))
    }
}

impl History {
    /// The history of a session on disk, without a process.
    ///
    /// # Cancel safety
    /// The future only reads.
    ///
    /// # Errors
    /// When there is no such session, or its transcript can't be read ([`Error::as_files_error`]).
    pub async fn open(sessions: &Sessions, id: &SessionId, options: &MessageOptions) -> Result<Self> {
        let (sessions, of, set) = (sessions.clone(), id.clone(), whole(options));
        let dir = options.dir.clone();
        let opened = blocking(move || {
            let file = match dir {
                Some(dir) => sessions.find_in(&of, dir),
                None => sessions.find(&of),
            };
            file?.messages(&set)
        });
        let messages = opened.await?.map_err(|error| unreadable(id, error))?;
        Ok(Self::of(Some(messages), options, None))
    }

    /// The history of a session in a store, without a process: of the sessions of this working directory. It loads all entries of
    /// the session into a private copy.
    ///
    /// # Cancel safety
    /// The future only reads.
    ///
    /// # Errors
    /// When the store fails or takes longer than a minute, or does not have the session ([`Error::as_store_error`]).
    pub async fn of_store(
        store: Arc<dyn SessionStore>,
        dir: impl AsRef<Path>,
        id: &SessionId,
        options: &MessageOptions,
    ) -> Result<Self> {
        let dir = dir.as_ref().to_owned();
        let project = blocking(move || {
            outrigger_sessions::place::project_dir_name(&outrigger_sessions::place::real_path(&dir))
        });
        let project = project.await?;
        let what = format!("load of {}", SessionKey::new(&project, id.as_str()));
        match stored(store, LOAD, project, id.clone(), options).await? {
            Some((messages, place)) => Ok(Self::of(Some(messages), options, None).keeping(place)),
            None => Err(Error::new(Kind::Store {
                what,
                source: outrigger_sessions::store::StoreError::new(
                    outrigger_sessions::store::StoreErrorKind::NotFound,
                    "the store has no such session for this directory",
                ),
            })),
        }
    }

    /// `last` is the id of the last message that the CLI sent.
    fn of(messages: Option<Messages>, options: &MessageOptions, last: Option<&str>) -> Self {
        let limit = match options.limit {
            0 => usize::MAX,
            limit => limit,
        };
        let is_behind = match (&messages, last) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(messages), Some(last)) => !has(messages, last),
        };
        let all = messages.as_ref().map_or(0, Messages::count_all);
        Self {
            count: all.saturating_sub(options.offset).min(limit),
            damaged: messages.as_ref().map_or(0, Messages::damaged),
            is_behind,
            state: HistoryState::Idle(
                messages.map(|messages| Box::new(messages.skip(options.offset).take(limit))),
            ),
            page: VecDeque::new(),
            reducer: Reducer::default(),
            place: None,
        }
    }

    fn keeping(mut self, place: Option<TempDir>) -> Self {
        self.place = place;
        self
    }

    /// The number of messages. A message may make several events, or none.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of damaged lines of the transcript, which are in no conversation.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Whether the history lacks the last message of the running session: the CLI has not written it yet, or it is not part of the
    /// conversation that the CLI would resume. Always false without a running session.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// The next event; `None` at the end. An error is the last item.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was not returned is returned by the next call.
    ///
    /// # Errors
    /// When the transcript can't be read any more, or was changed in place.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The next message as the frame that a running session would have emitted. It reads from the same queue as
    /// [`next`](Self::next); use one or the other.
    ///
    /// # Cancel safety
    /// As [`next`](Self::next).
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn next_frame(&mut self) -> Option<Result<Frame>> {
        std::future::poll_fn(|cx| self.poll_frame(cx)).await
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event>>> {
        loop {
            if let Some(event) = self.reducer.pop() {
                return Poll::Ready(Some(Ok(event)));
            }
            match ready!(self.poll_frame(cx)) {
                Some(Ok(frame)) => drop(self.reducer.push(&frame)),
                Some(Err(error)) => {
                    // What was begun ends before the error is told.
                    self.reducer.end();
                    let Some(event) = self.reducer.pop() else {
                        return Poll::Ready(Some(Err(error)));
                    };
                    self.state = HistoryState::Failed(error);
                    return Poll::Ready(Some(Ok(event)));
                }
                None => {
                    self.reducer.end();
                    return Poll::Ready(self.reducer.pop().map(Ok));
                }
            }
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame>>> {
        loop {
            if let Some(frame) = self.page.pop_front() {
                return Poll::Ready(Some(Ok(frame)));
            }
            match std::mem::replace(&mut self.state, HistoryState::Over) {
                HistoryState::Over | HistoryState::Idle(None) => return Poll::Ready(None),
                HistoryState::Failed(error) => return Poll::Ready(Some(Err(error))),
                HistoryState::Idle(Some(reading)) => {
                    self.state = HistoryState::Busy(tokio::task::spawn_blocking(move || turn_page(reading)));
                }
                HistoryState::Busy(mut reading) => match Pin::new(&mut reading).poll(cx) {
                    Poll::Pending => {
                        self.state = HistoryState::Busy(reading);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok((rest, page, None))) => {
                        self.page.extend(page);
                        self.state = HistoryState::Idle(rest);
                    }
                    Poll::Ready(Ok((_, page, Some(source)))) => {
                        self.page.extend(page);
                        let what = "the rest of the conversation could not be read".to_owned();
                        self.state = HistoryState::Failed(Error::new(Kind::Files { what, source }));
                    }
                    Poll::Ready(Err(broken)) => {
                        return Poll::Ready(Some(Err(Error::invalid_because("history", broken))));
                    }
                },
            }
        }
    }
}

impl Stream for History {
    type Item = Result<Event>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_event(cx)
    }
}

/// Reads some, where blocking is allowed.
fn turn_page(mut reading: RemainingMessages) -> Page {
    let (mut page, mut bytes) = (Vec::new(), 0);
    while page.len() < PAGE_MESSAGES && bytes < PAGE_BYTES {
        match reading.next() {
            None => return (None, page, None),
            Some(Err(error)) => return (None, page, Some(error)),
            Some(Ok(message)) => {
                let frame = message.to_frame();
                bytes += frame.as_ref().map_or(0, |frame| frame.bytes().len());
                page.extend(frame);
            }
        }
    }
    (Some(reading), page, None)
}

/// Whether a message is among the last ones. What can't be read is told when it is asked for.
fn has(messages: &Messages, uuid: &str) -> bool {
    let all = messages.count_all();
    (all.saturating_sub(LAST)..all).rev().any(|number| {
        messages
            .get(number)
            .ok()
            .flatten()
            .is_some_and(|message| message.uuid == uuid)
    })
}

/// The transcript, with the last message that the CLI sent if it comes soon. `None` if there is no file.
async fn written(
    sessions: Sessions,
    user: Option<RunAs>,
    id: SessionId,
    options: &MessageOptions,
    last: Option<&str>,
) -> Result<Option<History>> {
    let until = Instant::now() + WRITTEN;
    let mut seen = None;
    let mut found: Option<History> = None;
    loop {
        let (sessions, of, set) = (sessions.clone(), id.clone(), options.clone());
        let told = last.map(str::to_owned);
        let looked = blocking(move || {
            let config = sessions.config_dir().to_owned();
            // A name in a home may be a link to what only this program may read.
            let look = || -> outrigger_sessions::Result<Option<(u64, Option<History>)>> {
                let file: SessionFile = match sessions.find(&of) {
                    Ok(file) => file,
                    Err(FilesError::NotFound(_)) => return Ok(None),
                    Err(error) => return Err(error),
                };
                if seen == Some(file.size) {
                    return Ok(Some((file.size, None)));
                }
                let messages = file.messages(&whole(&set))?;
                Ok(Some((
                    file.size,
                    Some(History::of(Some(messages), &set, told.as_deref())),
                )))
            };
            as_user(user, || Ok(look())).unwrap_or_else(|source| {
                Err(FilesError::Io {
                    action: "act as the CLI's user in",
                    path: config,
                    source,
                })
            })
        });
        if let Some((size, history)) = looked.await?.map_err(|error| unreadable(&id, error))? {
            seen = Some(size);
            found = history.or(found);
        }
        let is_behind = match &found {
            Some(history) => history.is_behind,
            None => last.is_some(),
        };
        if !is_behind || Instant::now() >= until {
            return Ok(found);
        }
        sleep(STEP).await;
    }
}

/// The conversation in a store, from a private copy. `None` if the store lacks the session.
async fn stored(
    store: Arc<dyn SessionStore>,
    timeout: Duration,
    project: String,
    id: SessionId,
    options: &MessageOptions,
) -> Result<Option<(Messages, Option<TempDir>)>> {
    let key = SessionKey::new(project, id.as_str());
    let of = key.clone();
    let loaded = call(timeout, async move { store.load(&of).await }).await;
    let loaded = loaded.map_err(|failure| failed(format!("load of {key}"), failure))?;
    let Some(entries) = loaded.filter(|entries| !entries.is_empty()) else {
        return Ok(None);
    };
    let (of, set) = (id.clone(), whole(options));
    let opened = blocking(move || {
        let place = private_directory("outrigger-history-").map_err(|source| FilesError::Io {
            action: "create a directory in",
            path: std::env::temp_dir(),
            source,
        })?;
        let sessions = Sessions::at(place.path());
        let project = sessions.projects_dir().join("history");
        Transcripts::new(entries).write(&project, &of)?;
        let messages = sessions.find(&of)?.messages(&set)?;
        // Where open files can be removed, nothing is left from here on even if this program is killed.
        Ok((messages, cfg!(not(unix)).then_some(place)))
    });
    let opened = opened.await?.map_err(|error| unreadable(&id, error))?;
    Ok(Some(opened))
}

/// All of it: a part is taken later, since it has to be known how it ends.
fn whole(options: &MessageOptions) -> MessageOptions {
    options.clone().limit(0).offset(0)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|broken| Error::invalid_because("history", broken))
}

fn unreadable(id: &SessionId, source: FilesError) -> Error {
    Error::new(Kind::Files {
        what: format!("the history of session {id} could not be read"),
        source,
    })
}
