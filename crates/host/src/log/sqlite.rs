//! The log in one SQLite file.

mod entries;
mod hooks;
mod rows;
mod steps;
mod sum;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outrigger::protocol::RawJson;
use outrigger::{SessionId, SessionUsage};
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::hub::{Hint, Hub};
use super::{Counts, Page, PendingWork, Receipt, Received, Write, schema};
use crate::approval::{Approval, ApprovalState};
use crate::audit::AuditEntry;
use crate::error::{HostError, Result};
use crate::event::{SessionRecord, Worktree};
use crate::schedule::Schedule;
use crate::webhook::{Webhook, WebhookWrite};

/// How long a process waits for another one that writes.
const BUSY: Duration = Duration::from_secs(30);

/// How long opening waits for the lock of a log that was just closed, and how often it looks.
const LOCK: Duration = Duration::from_millis(500);
const LOCK_POLL: Duration = Duration::from_millis(10);

/// The most transactions that wait for the writer.
const QUEUE: usize = 1024;

/// The most transactions that are committed at once.
const GROUP: usize = 64;

/// The most connections for reading that are kept open.
const READERS: usize = 8;

/// The most rows that one call returns.
const ROWS: usize = 1000;

/// Something to write.
enum WriteCommand {
    Steps {
        session: SessionId,
        steps: Vec<Write>,
    },
    Webhook(WebhookWrite),
    Audit(AuditEntry),
    Record {
        kind: String,
        id: String,
        value: Option<RawJson>,
    },
}

struct QueuedWrite {
    work: WriteCommand,
    reply: oneshot::Sender<Result<Receipt>>,
}

impl QueuedWrite {
    fn deletes(&self) -> bool {
        matches!(&self.work, WriteCommand::Steps { steps, .. } if steps.iter().any(|step| matches!(step, Write::Delete)))
    }
}

/// A log in a SQLite file: WAL, `synchronous=FULL`, one thread that writes, and all that waits for it in one commit.
///
/// Reading runs where tokio lets blocking work run, so that a tokio runtime is needed. Only one host can have a log open: a second one is refused.
///
/// # Cancel safety
/// A transaction whose future was dropped may be done or not. A client repeats an accepted event with the same id.
#[derive(Debug)]
pub struct SqliteLog {
    path: PathBuf,
    /// `None` only while the log is dropped.
    jobs: Option<mpsc::Sender<QueuedWrite>>,
    writer: Option<std::thread::JoinHandle<()>>,
    hub: Arc<Hub>,
    readers: Arc<Mutex<Vec<Connection>>>,
}

/// Options for a file that only this user may read. SQLite gives the files beside it the same mode.
fn private() -> std::fs::OpenOptions {
    let mut options = std::fs::File::options();
    options.truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes this process the only one that has the log open. The lock ends with the file, also when the process is killed.
fn lock(path: &Path) -> Result<std::fs::File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let failed =
        |error: &dyn std::fmt::Display| HostError::Log(format!("the lock {}: {error}", name.display()));
    let opened = private().create(true).open(&name);
    let file = opened.map_err(|error| failed(&error))?;
    let until = Instant::now() + LOCK;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // A process that this one is starting has the files of this one, locks included, until it runs its program.
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOCK_POLL),
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(failed(
                    &"another process, or another host of this one, has the log open",
                ));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(&error)),
        }
    }
}

/// What [`SqliteLog::check`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// The sessions.
    pub sessions: u64,
    /// The events.
    pub events: u64,
    /// What is wrong, one sentence each. Empty if the log is sound.
    pub problems: Vec<String>,
}

fn connect(path: &Path) -> Result<Connection> {
    connection(path).map_err(|error| not_opened(path, error))
}

/// SQLite does not say which file it could not open or write.
fn not_opened(path: &Path, error: rusqlite::Error) -> HostError {
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => HostError::Log(format!(
            "{}: {error}; SQLite needs to write the log and the files beside it, in a directory that is not read-only",
            path.display()
        )),
        _ => error.into(),
    }
}

fn connection(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a plain fsync leaves what was written in the cache of the disk. Elsewhere these say nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(connection)
}

impl SqliteLog {
    /// Opens the file, creating it if it does not exist, and upgrades its tables. Blocks until then.
    ///
    /// # Errors
    /// When the file can't be opened, is no database or that of another program, or was made by a newer version of this crate.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let lock = lock(&path)?;
        // A file that is there is not opened: closing it would take the locks of SQLite from this process.
        match private().create_new(true).open(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(HostError::Log(format!("{}: {error}", path.display())));
            }
            _ => {}
        }
        let mut connection = connect(&path)?;
        schema::migrate(&mut connection)?;
        let hub = Arc::new(Hub::default());
        let (jobs, queue) = mpsc::channel(QUEUE);
        let published = Arc::clone(&hub);
        let writer = std::thread::Builder::new()
            .name("outrigger-host-log".to_owned())
            .spawn(move || {
                write_all(connection, queue, &published);
                // Only now may another host write.
                drop(lock);
            })
            .map_err(|error| HostError::Log(format!("no thread for writing: {error}")))?;
        Ok(Self {
            path,
            jobs: Some(jobs),
            writer: Some(writer),
            hub,
            readers: Arc::default(),
        })
    }

    /// Copies the log to a new file, while it is in use. The copy is one moment of the log.
    ///
    /// # Errors
    /// When the file exists already, or can't be written.
    pub async fn backup(&self, to: impl AsRef<Path>) -> Result<()> {
        let to = to.as_ref().to_owned();
        self.read(move |connection| copy(connection, &to)).await
    }

    /// Copies the log of another process as [`backup`](Self::backup) does. Blocks until then.
    ///
    /// # Errors
    /// When there is no such log, the copy exists already, or can't be written.
    pub fn backup_of(path: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
        copy(&connect_to_existing(path.as_ref())?, to.as_ref())
    }

    /// Checks the file and what must hold of its events: each is what was stored, by its checksum; the numbers of a session have no gaps, and no
    /// decision is there twice.
    ///
    /// # Errors
    /// When the file can't be read.
    pub async fn check(&self) -> Result<Check> {
        self.read(check).await
    }

    /// Checks the log of another process, or one that no process has open, as [`check`](Self::check) does. Blocks until then.
    ///
    /// # Errors
    /// When there is no such log, or it can't be read.
    pub fn check_of(path: impl AsRef<Path>) -> Result<Check> {
        check(&connect_to_existing(path.as_ref())?)
    }

    /// Up to `count` entries of the audit of another process, or of none, the newest first. Blocks until then.
    ///
    /// # Errors
    /// When there is no such log, it is of an older version, or it can't be read.
    pub fn audit_of(path: impl AsRef<Path>, count: usize) -> Result<Vec<AuditEntry>> {
        entries::read(&connect_to_existing(path.as_ref())?, None, limit(count))
    }

    /// Waits until the thread that writes has committed the work.
    async fn hand_in(&self, work: WriteCommand) -> Result<Receipt> {
        let (reply, written) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or(HostError::Closed)?;
        jobs.send(QueuedWrite { work, reply })
            .await
            .map_err(|_| HostError::Closed)?;
        written.await.map_err(|_| HostError::Closed)?
    }

    /// Reads with a connection of its own, where blocking is allowed.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let readers = Arc::clone(&self.readers);
        let path = self.path.clone();
        let work = move || {
            let idle = readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match idle {
                Some(connection) => connection,
                None => connect(&path)?,
            };
            let result = read(&connection);
            let mut readers = readers.lock().unwrap_or_else(PoisonError::into_inner);
            if readers.len() < READERS {
                readers.push(connection);
            }
            result
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| HostError::Log(error.to_string()))?
    }
}

/// A log that is there, whoever has it open. Only what SQLite keeps beside it is written: of a host that was killed, a connection that may write would
/// carry the last transactions over into the file, and what somebody wants to look at would be another one.
fn connect_to_existing(path: &Path) -> Result<Connection> {
    if !path.exists() {
        return Err(HostError::Log(format!("{}: there is no log", path.display())));
    }
    let opened = || {
        let connection = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY)?;
        // The files beside it are opened by the first that reads.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    opened().map_err(|error| not_opened(path, error))
}

fn copy(connection: &Connection, to: &Path) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| HostError::Log(format!("{}: {error}", to.display()));
    let Some(name) = to.to_str() else {
        return Err(failed(&"SQLite needs a name in UTF-8"));
    };
    // SQLite fills an empty file.
    private()
        .create_new(true)
        .open(to)
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => HostError::Invalid(format!(
                "{} is there already, and a copy replaces no file",
                to.display()
            )),
            _ => failed(&error),
        })?;
    if let Err(error) = connection.execute("VACUUM INTO ?1", [name]) {
        drop(std::fs::remove_file(to));
        return Err(failed(&error));
    }
    // SQLite leaves that to others.
    sync(to).map_err(|error| failed(&error))
}

/// Waits until a new file is on the disk, with its name.
fn sync(path: &Path) -> std::io::Result<()> {
    std::fs::File::options().write(true).open(path)?.sync_all()?;
    #[cfg(unix)]
    if let Some(parent) = path.parent() {
        let parent = if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        };
        std::fs::File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// The most problems that are told.
const PROBLEMS: usize = 100;

fn check(connection: &Connection) -> Result<Check> {
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| rows::number(row, 0))
    };
    let mut found = Check {
        sessions: count("sessions")?,
        events: count("events")?,
        problems: Vec::new(),
    };
    // A part that can't be read is a problem, and the others are looked at all the same.
    for part in [check_file, check_rows, check_laws] {
        if let Err(error) = part(connection, &mut found.problems) {
            found.problems.push(error.to_string());
        }
    }
    if found.problems.len() > PROBLEMS {
        let more = found.problems.len() - PROBLEMS;
        found.problems.truncate(PROBLEMS);
        found.problems.push(format!("and {more} more"));
    }
    Ok(found)
}

/// What SQLite finds.
fn check_file(connection: &Connection, problems: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    for line in statement.query_map([], |row| row.get::<_, String>(0))? {
        let line = line?;
        if line != "ok" {
            problems.push(line);
        }
    }
    Ok(())
}

fn check_rows(connection: &Connection, problems: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut more = 0_u64;
    let checked = rows::check_rows(connection, |problem| match problems.len() {
        0..PROBLEMS => problems.push(problem),
        _ => more += 1,
    });
    if more > 0 {
        problems.push(format!("and {more} more rows"));
    }
    checked
}

/// What must hold between events.
fn check_laws(connection: &Connection, problems: &mut Vec<String>) -> rusqlite::Result<()> {
    for (sql, what) in [
        (
            "SELECT s.id FROM sessions s WHERE s.head_seq - s.trimmed_seq != (SELECT count(*) FROM events e WHERE e.session_id = s.id)
             OR s.head_seq != coalesce((SELECT max(seq) FROM events e WHERE e.session_id = s.id), s.trimmed_seq)
             OR s.trimmed_seq + 1 != coalesce((SELECT min(seq) FROM events e WHERE e.session_id = s.id), s.trimmed_seq + 1)",
            "the numbers of its events have gaps",
        ),
        (
            "SELECT DISTINCT session_id FROM events e WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = e.session_id)",
            "there are events of it, and it is missing",
        ),
        (
            "SELECT session_id FROM events WHERE type = 'approval_decided' GROUP BY session_id, json_extract(payload, '$.approval_id')
             HAVING count(*) > 1",
            "an approval was decided twice",
        ),
        (
            "SELECT a.session_id FROM events a JOIN events b ON b.session_id = a.session_id AND b.seq = a.seq + 1 WHERE b.epoch < a.epoch",
            "an event is of an older process than the one before",
        ),
    ] {
        let mut statement = connection.prepare(sql)?;
        for id in statement.query_map([], |row| row.get::<_, String>(0))? {
            problems.push(format!("{}: {what}", id?));
        }
    }
    Ok(())
}

/// The thread that writes: takes what waits, commits it, then replies and publishes.
fn write_all(mut connection: Connection, mut queue: mpsc::Receiver<QueuedWrite>, hub: &Hub) {
    while let Some(first) = queue.blocking_recv() {
        let mut jobs = vec![first];
        // What comes behind a deletion may be of another session with the id. Readers are told of the deletion first.
        while jobs.len() < GROUP
            && !jobs.last().is_some_and(QueuedWrite::deletes)
            && let Ok(job) = queue.try_recv()
        {
            jobs.push(job);
        }
        let (written, hints) = match commit(&mut connection, &jobs) {
            Ok(written) => written,
            Err(error) => {
                tracing::error!(%error, transactions = jobs.len(), "a commit of the log failed");
                for job in jobs {
                    // A caller that is gone does not need the reply.
                    drop(job.reply.send(Err(HostError::Log(error.to_string()))));
                }
                continue;
            }
        };
        for (job, result) in jobs.into_iter().zip(written) {
            if let Ok(receipt) = &result {
                for event in &receipt.events {
                    hub.publish(event);
                }
            }
            drop(job.reply.send(result));
        }
        for hint in hints {
            hub.hint(hint);
        }
    }
}

/// One commit. A transaction that is refused leaves no trace, and does not harm the others.
fn commit(
    connection: &mut Connection,
    jobs: &[QueuedWrite],
) -> rusqlite::Result<(Vec<Result<Receipt>>, Vec<Hint>)> {
    let mut transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let mut written = Vec::new();
    let mut touched = BTreeSet::new();
    for job in jobs {
        let savepoint = transaction.savepoint()?;
        let result = match &job.work {
            WriteCommand::Steps { session, steps } => steps::apply(&savepoint, session, steps),
            WriteCommand::Webhook(write) => {
                hooks::write_webhook(&savepoint, write).map(|()| Receipt::default())
            }
            WriteCommand::Audit(entry) => entries::add(&savepoint, entry).map(|()| Receipt::default()),
            WriteCommand::Record { kind, id, value } => {
                steps::put_record(&savepoint, kind, id, value.as_ref())
            }
        };
        if result.is_ok() {
            savepoint.commit()?;
            if let WriteCommand::Steps { session, .. } = &job.work {
                touched.insert(session);
            }
        } else {
            savepoint.finish()?;
        }
        written.push(result);
    }
    let mut hints = Vec::new();
    for id in touched {
        match rows::session(&transaction, id.as_str()) {
            Ok(Some(session)) => hints.push(Hint::from(&session)),
            Ok(None) => hints.push(Hint::gone(id)),
            // What was written is there, for the other sessions, too.
            Err(error) => tracing::error!(%error, session = %id, "nobody is told of the news of a session"),
        }
    }
    transaction.commit()?;
    Ok((written, hints))
}

impl Drop for SqliteLog {
    /// Waits for the transactions that were handed in, so that the log can be opened again at once.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has let go of the log, too.
            drop(writer.join());
        }
    }
}

fn limit(limit: usize) -> i64 {
    i64::try_from(limit.min(ROWS)).unwrap_or(i64::MAX)
}

impl SqliteLog {
    /// Does a transaction, and publishes its events when it is on disk.
    ///
    /// # Errors
    /// When the log fails, the session is missing, or a step is refused. Then nothing was written.
    pub async fn write(&self, session: &SessionId, steps: Vec<Write>) -> Result<Receipt> {
        let work = WriteCommand::Steps {
            session: session.clone(),
            steps,
        };
        self.hand_in(work).await
    }

    /// Up to `count` events after a `seq`; fewer if they are long, and at least one if there is one.
    ///
    /// # Errors
    /// When the log fails or the session is missing.
    pub async fn events(&self, session: &SessionId, after: u64, count: usize) -> Result<Page> {
        let session = session.clone();
        self.read(move |connection| {
            let transaction = connection.unchecked_transaction()?;
            let record =
                rows::session(&transaction, session.as_str())?.ok_or(HostError::NoSession(session))?;
            let events = rows::events(&transaction, record.id.as_str(), after, limit(count))?;
            Ok(Page {
                events,
                head_seq: record.head_seq,
                trimmed_seq: record.trimmed_seq,
            })
        })
        .await
    }

    /// A session.
    ///
    /// # Errors
    /// When the log fails or the session is missing.
    pub async fn session(&self, session: &SessionId) -> Result<SessionRecord> {
        let session = session.clone();
        self.read(move |connection| {
            rows::session(connection, session.as_str())?.ok_or(HostError::NoSession(session))
        })
        .await
    }

    /// Up to `count` sessions with an id after `after`, in the order of their ids.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn sessions(&self, after: Option<&SessionId>, count: usize) -> Result<Vec<SessionRecord>> {
        let after = after.map(|id| id.as_str().to_owned()).unwrap_or_default();
        self.read(move |connection| Ok(rows::sessions(connection, &after, limit(count))?))
            .await
    }

    /// How much there is.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn counts(&self) -> Result<Counts> {
        self.read(|connection| Ok(rows::counts(&connection.unchecked_transaction()?)?))
            .await
    }

    /// The sessions that were in the middle of something, or have prompts that wait: what a host that starts has to look at.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn unfinished(&self) -> Result<Vec<SessionId>> {
        self.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT id FROM sessions WHERE state IN ('starting', 'running', 'requires_action')
                 UNION SELECT DISTINCT session_id FROM accepted WHERE delivery IN ('received', 'processing')
                 UNION SELECT DISTINCT session_id FROM approvals WHERE state = 'pending' OR (deferred = 1 AND applied = 0 AND state != 'superseded')",
            )?;
            let ids = statement.query_map([], |row| rows::id(row, 0))?;
            Ok(ids.collect::<rusqlite::Result<_>>()?)
        }).await
    }

    /// What waits for the process of a session. Of what clients sent, only that with a `seq` after `after`, so that nothing long is read again and again.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn waiting(&self, session: &SessionId, after: u64) -> Result<PendingWork> {
        let session = session.clone();
        self.read(move |connection| {
            // What is decided between two of the statements would be in neither list.
            let transaction = connection.unchecked_transaction()?;
            Ok(rows::waiting(&transaction, session.as_str(), after)?)
        })
        .await
    }

    /// Whether the turn of a prompt has its result.
    pub(crate) async fn has_result(&self, session: &SessionId, prompt: &Received) -> Result<bool> {
        let key = (session.as_str().to_owned(), steps::signed(prompt.seq));
        let prompt = prompt.id;
        self.read(move |connection| {
            let sql = "SELECT payload FROM events WHERE session_id = ?1 AND seq > ?2 AND type = 'result'";
            let mut statement = connection.prepare_cached(sql)?;
            for result in statement.query_map(key, |row| rows::json(row, 0))? {
                if rows::ends_turn_of(&result?, prompt) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await
    }

    /// Up to `count` approvals, the oldest first, from behind the [number](Approval::number) `after` on: of one session or of all, in one state or in any.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn approvals(
        &self,
        session: Option<&SessionId>,
        state: Option<ApprovalState>,
        after: Option<u64>,
        count: usize,
    ) -> Result<Vec<Approval>> {
        let session = session.map(|id| id.as_str().to_owned());
        self.read(move |connection| {
            let after = steps::signed(after.unwrap_or_default());
            // A condition that holds if a value is missing would keep SQLite from using an index for it.
            let of_session = if session.is_some() { "session_id = ?1" } else { "?1 IS NULL" };
            let in_state = if state.is_some() { "state = ?2" } else { "?2 IS NULL" };
            let sql = format!(
                "SELECT {} FROM approvals WHERE {of_session} AND {in_state} AND number > ?3 ORDER BY number LIMIT ?4",
                rows::APPROVAL
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let state = state.map(ApprovalState::as_str);
            let found = statement.query_map(params![session, state, after, limit(count)], rows::approval)?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        }).await
    }

    /// How many other sessions that are not archived have this worktree.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn others_in(&self, worktree: &str, session: &SessionId) -> Result<u64> {
        let (worktree, session) = (worktree.to_owned(), session.as_str().to_owned());
        self.read(move |connection| {
            let sql = "SELECT count(*) FROM sessions WHERE worktree IS NOT NULL AND json_extract(worktree, '$.path') = ?1 AND id != ?2 AND state != 'ended'";
            Ok(connection.query_row(sql, [worktree, session], |row| rows::number(row, 0))?)
        }).await
    }

    /// The worktrees of all sessions that are not archived, made or not yet made, each once.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn worktrees(&self) -> Result<Vec<Worktree>> {
        self.read(|connection| Ok(rows::worktrees(connection)?)).await
    }

    /// What a session has used, or all sessions together, those that were deleted included.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn usage(&self, session: Option<&SessionId>) -> Result<SessionUsage> {
        let session = session.map(|id| id.as_str().to_owned());
        self.read(move |connection| Ok(rows::usage(connection, session.as_deref())?))
            .await
    }

    /// An approval.
    ///
    /// # Errors
    /// When the log fails or there is no such approval.
    pub async fn approval(&self, id: Uuid) -> Result<Approval> {
        self.read(move |connection| {
            let sql = format!("SELECT {} FROM approvals WHERE id = ?1", rows::APPROVAL);
            let found = connection
                .query_row(&sql, [id.to_string()], rows::approval)
                .optional()?;
            found.ok_or(HostError::NoApproval(id))
        })
        .await
    }

    /// The newest approval of a session that is about this request of the CLI.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn approval_of(&self, session: &SessionId, request: &str) -> Result<Option<Approval>> {
        let (session, request) = (session.as_str().to_owned(), request.to_owned());
        self.read(move |connection| {
            let sql = format!(
                "SELECT {} FROM approvals WHERE session_id = ?1 AND request_id = ?2 ORDER BY number DESC LIMIT 1",
                rows::APPROVAL
            );
            Ok(connection
                .query_row(&sql, [session, request], rows::approval)
                .optional()?)
        }).await
    }

    /// What the newest process of a session said when it started.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn initialized(&self, session: &SessionId) -> Result<Option<RawJson>> {
        let session = session.as_str().to_owned();
        self.read(move |connection| {
            let sql = "SELECT initialized FROM sessions WHERE id = ?1 AND initialized IS NOT NULL";
            Ok(connection
                .query_row(sql, [session], |row| rows::json(row, 0))
                .optional()?)
        })
        .await
    }

    /// All records of a kind with their ids, in the order of the ids. Records are what is durable and belongs to no session, such as tokens.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn records(&self, kind: &str) -> Result<Vec<(String, RawJson)>> {
        let kind = kind.to_owned();
        self.read(move |connection| {
            let mut statement =
                connection.prepare_cached("SELECT id, value FROM records WHERE kind = ?1 ORDER BY id")?;
            let found = statement.query_map([kind], |row| Ok((row.get(0)?, rows::json(row, 1)?)))?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// The record of a kind with this id.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn record(&self, kind: &str, id: &str) -> Result<Option<RawJson>> {
        let key = [kind.to_owned(), id.to_owned()];
        self.read(move |connection| {
            let sql = "SELECT value FROM records WHERE kind = ?1 AND id = ?2";
            Ok(connection
                .query_row(sql, key, |row| rows::json(row, 0))
                .optional()?)
        })
        .await
    }

    /// Sets a record, or removes it.
    ///
    /// # Errors
    /// When the log fails. Then nothing was written.
    pub async fn put_record(&self, kind: &str, id: &str, value: Option<RawJson>) -> Result<()> {
        let record = WriteCommand::Record {
            kind: kind.to_owned(),
            id: id.to_owned(),
            value,
        };
        self.hand_in(record).await.map(drop)
    }

    /// Adds an entry to the audit. Of more than a million, the oldest are removed.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn audit(&self, entry: AuditEntry) -> Result<()> {
        self.hand_in(WriteCommand::Audit(entry)).await.map(drop)
    }

    /// Up to `count` entries of the audit, the newest first, from before the number `before` on.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn audited(&self, before: Option<u64>, count: usize) -> Result<Vec<AuditEntry>> {
        self.read(move |connection| entries::read(connection, before, limit(count)))
            .await
    }

    /// The webhooks, the oldest first.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn webhooks(&self) -> Result<Vec<Webhook>> {
        self.read(hooks::webhooks).await
    }

    /// Changes the webhooks.
    ///
    /// # Errors
    /// When the log fails, or the webhook is missing.
    pub async fn write_webhook(&self, write: WebhookWrite) -> Result<()> {
        self.hand_in(WriteCommand::Webhook(write)).await.map(drop)
    }

    /// The last event of a session that a webhook has got, or did not want; 0 before the first.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn webhook_cursor(&self, webhook: Uuid, session: &SessionId) -> Result<u64> {
        let session = session.clone();
        self.read(move |connection| hooks::cursor(connection, webhook, session.as_str()))
            .await
    }

    /// Up to `count` sessions with an id after `after` that have events after the cursor of a webhook, in the order of their ids.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn behind(
        &self,
        webhook: Uuid,
        after: Option<&SessionId>,
        count: usize,
    ) -> Result<Vec<SessionId>> {
        let after = after.map(|id| id.as_str().to_owned()).unwrap_or_default();
        self.read(move |connection| hooks::behind(connection, webhook, &after, limit(count)))
            .await
    }

    /// The schedules, the oldest first.
    ///
    /// # Errors
    /// When the log fails.
    pub async fn schedules(&self) -> Result<Vec<Schedule>> {
        self.read(hooks::schedules).await
    }

    /// Where committed events are published.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }
}
