//! The one thread that writes: it takes all that waits and commits it together.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{
    Result, SessionKey, StoreError, StoreErrorKind, StoreLease, SummaryEntry, fold_summary, uuid,
};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::{StoredLease, failed, held, subpath, summary_of, time};

/// How many writes may wait; further ones fail as busy.
const QUEUE: usize = 4096;

/// How many are committed together at most, so that the first does not wait for ever.
const GROUP: usize = 256;

/// The channel of the reply. Its receiver may be gone.
type ReplySender<T> = oneshot::Sender<Result<T>>;

/// Something to write.
pub(super) enum Command {
    Append {
        key: SessionKey,
        entries: Vec<RawJson>,
        fence: Option<StoreLease>,
        reply: ReplySender<()>,
    },
    Delete {
        key: SessionKey,
        reply: ReplySender<()>,
    },
    Acquire {
        key: SessionKey,
        owner: String,
        ttl: Duration,
        reply: ReplySender<StoreLease>,
    },
    Renew {
        lease: StoreLease,
        ttl: Duration,
        reply: ReplySender<StoreLease>,
    },
    Release {
        lease: StoreLease,
        reply: ReplySender<()>,
    },
}

/// The queue of the thread, which ends when the last of them is dropped.
#[derive(Debug)]
pub(super) struct Writer {
    queue: SyncSender<Command>,
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Self> {
        let (queue, commands) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("outrigger-sqlite".to_owned());
        let started = thread.spawn(move || run(connection, &commands));
        started
            .map_err(|error| StoreError::failed("the SQLite session store has no thread to write", error))?;
        Ok(Self { queue })
    }

    /// Has something written, and waits until it is committed.
    pub(super) async fn send<T>(&self, command: impl FnOnce(ReplySender<T>) -> Command) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.queue.try_send(command(reply)).map_err(|error| {
            let what = match error {
                TrySendError::Full(_) => "too many writes wait for the SQLite session store: try again later",
                TrySendError::Disconnected(_) => "the thread of the SQLite session store has ended",
            };
            StoreError::new(StoreErrorKind::Failed, what)
        })?;
        let gone = |_| {
            StoreError::new(
                StoreErrorKind::Failed,
                "the thread of the SQLite session store has ended",
            )
        };
        answer.await.map_err(gone)?
    }
}

/// An answer that is given once the transaction is committed.
type CommitReply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

fn run(mut connection: Connection, commands: &Receiver<Command>) {
    while let Ok(first) = commands.recv() {
        let mut group = vec![first];
        while group.len() < GROUP
            && let Ok(next) = commands.try_recv()
        {
            group.push(next);
        }
        let mut told: Vec<CommitReply> = Vec::with_capacity(group.len());
        let committed = commit(&mut connection, group, &mut told);
        for tell in told {
            tell(committed.clone());
        }
    }
}

/// Does them in one transaction. What one of them gets wrong is undone for it alone.
fn commit(
    connection: &mut Connection,
    group: Vec<Command>,
    told: &mut Vec<CommitReply>,
) -> Result<(), StoreError> {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let mut transaction = match begun {
        Ok(transaction) => transaction,
        Err(error) => {
            let error = failed("begin to write", error);
            told.extend(group.into_iter().map(|command| refused(command, &error)));
            return Err(error);
        }
    };
    for command in group {
        told.push(perform(&mut transaction, command));
    }
    transaction.commit().map_err(|error| failed("commit", error))
}

fn refused(command: Command, error: &StoreError) -> CommitReply {
    let error = error.clone();
    match command {
        Command::Append { reply, .. } | Command::Delete { reply, .. } | Command::Release { reply, .. } => {
            after(reply, Err(error))
        }
        Command::Acquire { reply, .. } | Command::Renew { reply, .. } => after(reply, Err(error)),
    }
}

fn perform(transaction: &mut Transaction<'_>, command: Command) -> CommitReply {
    match command {
        Command::Append {
            key,
            entries,
            fence,
            reply,
        } => after(
            reply,
            apart(transaction, |at| append(at, &key, &entries, fence.as_ref())),
        ),
        Command::Delete { key, reply } => after(reply, apart(transaction, |at| delete(at, &key))),
        Command::Acquire {
            key,
            owner,
            ttl,
            reply,
        } => after(reply, apart(transaction, |at| acquire(at, &key, &owner, ttl))),
        Command::Renew { lease, ttl, reply } => after(reply, apart(transaction, |at| renew(at, lease, ttl))),
        Command::Release { lease, reply } => after(reply, apart(transaction, |at| release(at, &lease))),
    }
}

/// Gives the answer once it is known whether the group was committed.
fn after<T: Send + 'static>(reply: ReplySender<T>, done: Result<T>) -> CommitReply {
    Box::new(move |committed| {
        // The receiver may be gone.
        let _ = reply.send(committed.and(done));
    })
}

/// In a savepoint, so that what fails leaves the others of the group as they are.
fn apart<T>(transaction: &mut Transaction<'_>, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let savepoint = transaction.savepoint().map_err(|error| failed("write", error))?;
    let done = work(&savepoint)?;
    savepoint.commit().map_err(|error| failed("write", error))?;
    Ok(done)
}

fn append(
    connection: &Connection,
    key: &SessionKey,
    entries: &[RawJson],
    fence: Option<&StoreLease>,
) -> Result<()> {
    if let Some(lease) = fence {
        mine(connection, lease)?;
    }
    if entries.is_empty() {
        return Ok(());
    }
    try_append(connection, key, entries).map_err(|error| failed("append", error))
}

fn try_append(connection: &Connection, key: &SessionKey, entries: &[RawJson]) -> rusqlite::Result<()> {
    // A clock that was set back must not make a session older.
    let (id, mtime) = connection
        .prepare_cached(
            "INSERT INTO transcript (project_key, session_id, subpath, mtime) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET mtime = MAX(mtime + 1, excluded.mtime) RETURNING id, mtime",
        )?
        .query_row(
            params![key.project_key, key.session_id, subpath(key), crate::now_ms()],
            |row| Ok((row.get::<_, i64>(0)?, time(row, 1)?)),
        )?;
    let mut last: i64 = connection
        .prepare_cached("SELECT COALESCE(MAX(seq), 0) FROM entry WHERE transcript = ?1")?
        .query_row([id], |row| row.get(0))?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO entry (transcript, seq, uuid, entry) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?;
    let mut added = Vec::new();
    for entry in entries {
        if insert.execute(params![id, last + 1, uuid(entry), entry.get()])? > 0 {
            last += 1;
            added.push(entry.clone());
        }
    }
    if key.is_main() && !added.is_empty() {
        let before = connection
            .prepare_cached("SELECT summary FROM transcript WHERE id = ?1")?
            .query_row([id], |row| summary_of(row, 0))?;
        let summary = match before {
            Some(before) => {
                let before = SummaryEntry::new(&key.session_id, mtime, before);
                fold_summary(Some(&before), key, &added)
            }
            None => fold_summary(None, key, &readable(connection, id)?),
        };
        connection
            .prepare_cached("UPDATE transcript SET summary = ?2 WHERE id = ?1")?
            .execute(params![id, summary.data.get()])?;
    }
    Ok(())
}

/// All entries of a transcript that can be read.
fn readable(connection: &Connection, id: i64) -> rusqlite::Result<Vec<RawJson>> {
    let mut query =
        connection.prepare_cached("SELECT entry FROM entry WHERE transcript = ?1 ORDER BY seq")?;
    let entries = query.query_map([id], |row| {
        let text = row.get_ref(0)?.as_str().unwrap_or_default();
        Ok(RawJson::from_text(text).ok())
    })?;
    entries.filter_map(rusqlite::Result::transpose).collect()
}

fn delete(connection: &Connection, key: &SessionKey) -> Result<()> {
    let which = if key.is_main() { "" } else { " AND subpath = ?3" };
    let these = format!("FROM transcript WHERE project_key = ?1 AND session_id = ?2{which}");
    let statements = [
        format!("DELETE FROM entry WHERE transcript IN (SELECT id {these})"),
        format!("DELETE {these}"),
    ];
    for statement in statements {
        let deleted = connection
            .prepare_cached(&statement)
            .and_then(|mut statement| match &key.subpath {
                None => statement.execute(params![key.project_key, key.session_id]),
                Some(part) => statement.execute(params![key.project_key, key.session_id, part]),
            });
        deleted.map_err(|error| failed("delete", error))?;
    }
    Ok(())
}

fn acquire(connection: &Connection, key: &SessionKey, owner: &str, ttl: Duration) -> Result<StoreLease> {
    let now = crate::now_ms();
    let until = now + crate::millis(ttl);
    // One statement compares and takes the lease.
    let taken: Option<u64> = connection
        .prepare_cached(
            "INSERT INTO lease (project_key, session_id, fence, owner, expires_at, released) VALUES (?1, ?2, 1, ?3, ?4, 0)
             ON CONFLICT DO UPDATE SET fence = fence + 1, owner = excluded.owner, expires_at = excluded.expires_at, released = 0
             WHERE released OR expires_at <= ?5 OR owner = excluded.owner RETURNING fence",
        )
        .and_then(|mut statement| {
            let row = statement.query_row(params![key.project_key, key.session_id, owner, until, now], |row| row.get(0));
            row.optional()
        })
        .map_err(|error| failed("acquire a lease", error))?;
    if let Some(fence) = taken {
        return Ok(StoreLease::new(key, owner, fence, until));
    }
    let held = held(connection, key).map_err(|error| failed("look at a lease", error))?;
    Err(crate::is_held(
        key,
        held.map(|held| (held.owner, held.expires_at)),
    ))
}

/// Checks that the lease is the session's newest and was not released.
fn mine(connection: &Connection, lease: &StoreLease) -> Result<StoredLease> {
    let key = SessionKey::new(&lease.project_key, &lease.session_id);
    let held = held(connection, &key).map_err(|error| failed("look at a lease", error))?;
    held.filter(|held| held.fence == lease.fence && held.owner == lease.owner && !held.released)
        .ok_or_else(|| crate::is_over(lease))
}

fn renew(connection: &Connection, mut lease: StoreLease, ttl: Duration) -> Result<StoreLease> {
    mine(connection, &lease)?;
    lease.expires_at = crate::now_ms() + crate::millis(ttl);
    let statement = "UPDATE lease SET expires_at = ?3 WHERE project_key = ?1 AND session_id = ?2";
    let renewed = connection.prepare_cached(statement).and_then(|mut statement| {
        statement.execute(params![lease.project_key, lease.session_id, lease.expires_at])
    });
    renewed.map_err(|error| failed("renew a lease", error))?;
    Ok(lease)
}

fn release(connection: &Connection, lease: &StoreLease) -> Result<()> {
    let statement = "UPDATE lease SET released = 1 WHERE project_key = ?1 AND session_id = ?2 AND fence = ?3 AND owner = ?4";
    let released = connection.prepare_cached(statement).and_then(|mut statement| {
        statement.execute(params![
            lease.project_key,
            lease.session_id,
            lease.fence,
            lease.owner
        ])
    });
    released
        .map(drop)
        .map_err(|error| failed("release a lease", error))
}
