//! Sessions in one SQLite file: for a program that keeps its own, on one machine.

mod sqlite_schema;
mod writer;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{
    BoxFuture, Capabilities, LeaseStore, Result, SessionKey, SessionStore, StoreError, StoreErrorKind,
    StoreLease, StoredSession, SummaryEntry,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use self::writer::{Command, Writer};
use crate::acquisitions::Acquisitions;
use crate::unsure::{RunningAppend, UnsureAppends};

/// How long a process waits for another one that writes.
const BUSY: Duration = Duration::from_secs(30);

/// The most connections for reading that are kept open.
const READERS: usize = 8;

/// Keeps sessions in a SQLite database. Cheap to clone; several processes may have it open.
///
/// An append that has returned has been written to disk (WAL, `synchronous=FULL`). One thread writes for the whole process and
/// puts all that wait into one transaction, so that many sessions at once cost not much more than one.
///
/// Reading and listing run where tokio lets blocking work run, so a tokio runtime is needed.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    shared: Arc<SqliteInner>,
    /// Apart, since what runs there has a share in the other.
    unsure: Arc<UnsureAppends<RunningAppend>>,
    acquisitions: Acquisitions,
}

#[derive(Debug)]
struct SqliteInner {
    path: PathBuf,
    writer: Writer,
    readers: Mutex<Vec<Connection>>,
}

impl SqliteStore {
    /// Opens the database, creating it if it does not exist, and upgrades its tables. Blocks until then.
    ///
    /// # Errors
    /// When the file can't be opened or is another database, or was made by a newer version of this crate.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let connection = create(&path)?;
        sqlite_schema::migrate(&connection)?;
        Ok(Self {
            shared: Arc::new(SqliteInner {
                writer: Writer::start(connection)?,
                path,
                readers: Mutex::default(),
            }),
            unsure: Arc::default(),
            acquisitions: Acquisitions::default(),
        })
    }

    /// Upgrades the tables of a database without opening it for use: [`open`](Self::open) does the same by itself.
    /// Returns the new version.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn migrate(path: impl AsRef<Path>) -> Result<u32> {
        sqlite_schema::migrate(&create(path.as_ref())?)
    }

    /// Appends, under the lease if there is one.
    async fn add(&self, key: &SessionKey, entries: &[RawJson], lease: Option<&StoreLease>) -> Result<()> {
        let start = || -> RunningAppend {
            let shared = Arc::clone(&self.shared);
            let (key, entries, fence) = (key.clone(), entries.to_vec(), lease.cloned());
            Box::pin(async move {
                let append = |reply| Command::Append {
                    key,
                    entries,
                    fence,
                    reply,
                };
                shared.writer.send(append).await
            })
        };
        self.unsure.run(key, entries, start).await
    }

    /// Reads, where blocking is allowed.
    async fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        let work = move || {
            let idle = shared
                .readers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop();
            let connection = match idle {
                Some(connection) => connection,
                None => connect(&shared.path)?,
            };
            let done = read(&connection).map_err(|error| failed(what, error));
            let mut readers = shared.readers.lock().unwrap_or_else(PoisonError::into_inner);
            if readers.len() < READERS {
                readers.push(connection);
            }
            done
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| StoreError::failed(what, error))?
    }
}

/// Opens the database; if it does not exist, creates it for this user only. SQLite gives the files beside it the same mode.
fn create(path: &Path) -> Result<Connection> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        // A file that is there must not be opened here: closing it would release the locks that SQLite has in this process.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => {
            let what = format!("{} can't be created as a session store", path.display());
            return Err(StoreError::failed(what, error));
        }
        Ok(_) => {}
    }
    connect(path)
}

fn connect(path: &Path) -> Result<Connection> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        // The mode is a property of the file; the first process sets it.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(connection)
    };
    open().map_err(|error| {
        StoreError::failed(
            format!("{} can't be opened as a session store", path.display()),
            error,
        )
    })
}

fn failed(what: &str, error: rusqlite::Error) -> StoreError {
    StoreError::failed(format!("the SQLite session store could not {what}"), error)
}

/// A subpath as a column has it: no part has an empty one.
fn subpath(key: &SessionKey) -> &str {
    key.subpath.as_deref().unwrap_or_default()
}

/// The summary in this column; `None` if it is damaged.
fn summary_of(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<RawJson>> {
    Ok(row.get_ref(column)?.as_bytes().ok().and_then(crate::summary_data))
}

/// The time in this column; 0 if it is damaged.
fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.try_into().unwrap_or_default())
}

fn damaged(key: &SessionKey) -> StoreError {
    StoreError::new(StoreErrorKind::Damaged, format!("an entry of {key} is no JSON"))
}

impl SessionStore for SqliteStore {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if entries.is_empty() {
                return Ok(());
            }
            self.add(key, entries, None).await
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        Box::pin(async move {
            let of = key.clone();
            let texts = self.read("load a session", move |connection| {
                let mut query = connection.prepare_cached(
                    "SELECT e.entry FROM entry e JOIN transcript t ON t.id = e.transcript
                     WHERE t.project_key = ?1 AND t.session_id = ?2 AND t.subpath = ?3 ORDER BY e.seq",
                )?;
                let rows = query.query_map(params![of.project_key, of.session_id, subpath(&of)], |row| {
                    row.get(0)
                })?;
                rows.collect::<rusqlite::Result<Vec<String>>>()
            });
            let texts = texts.await?;
            if texts.is_empty() {
                return Ok(None);
            }
            let entries: Result<_, _> = texts.into_iter().map(RawJson::from_text).collect();
            entries.map(Some).map_err(|_| damaged(key))
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        let project = project_key.to_owned();
        Box::pin(self.read("list sessions", move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT session_id, mtime FROM transcript WHERE project_key = ?1 AND subpath = ''",
            )?;
            let rows = query.query_map([project], |row| {
                Ok(StoredSession::new(row.get::<_, String>(0)?, time(row, 1)?))
            })?;
            rows.collect()
        }))
    }

    fn list_session_summaries<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SummaryEntry>>> {
        let project = project_key.to_owned();
        Box::pin(self.read("list summaries", move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT session_id, mtime, summary FROM transcript WHERE project_key = ?1 AND subpath = ''",
            )?;
            let rows = query.query_map([project], |row| {
                let data = summary_of(row, 2)?;
                let (id, mtime) = (row.get::<_, String>(0)?, time(row, 1)?);
                Ok(data.map(|data| SummaryEntry::new(id, mtime, data)))
            })?;
            rows.filter_map(Result::transpose).collect()
        }))
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.unsure.forget(key).await;
            let key = key.clone();
            self.shared
                .writer
                .send(|reply| Command::Delete { key, reply })
                .await
        })
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        let of = key.clone();
        Box::pin(self.read("list the parts of a session", move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT subpath FROM transcript WHERE project_key = ?1 AND session_id = ?2 AND subpath <> ''",
            )?;
            let rows = query.query_map([of.project_key, of.session_id], |row| row.get(0))?;
            rows.collect()
        }))
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for SqliteStore {
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        let (key, owner) = (key.main(), owner.to_owned());
        let (shared, of) = (Arc::clone(&self.shared), key.clone());
        let acquire = async move {
            let acquire = |reply| Command::Acquire {
                key: of,
                owner,
                ttl,
                reply,
            };
            shared.writer.send(acquire).await
        };
        Box::pin(self.acquisitions.run(self.clone(), key, acquire))
    }

    fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>> {
        let lease = lease.clone();
        Box::pin(async move {
            self.shared
                .writer
                .send(|reply| Command::Renew { lease, ttl, reply })
                .await
        })
    }

    fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>> {
        let lease = lease.clone();
        Box::pin(async move {
            self.shared
                .writer
                .send(|reply| Command::Release { lease, reply })
                .await
        })
    }

    fn append_fenced<'a>(
        &'a self,
        lease: &'a StoreLease,
        key: &'a SessionKey,
        entries: &'a [RawJson],
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            crate::covered(lease, key)?;
            self.add(key, entries, Some(lease)).await
        })
    }

    fn holder<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<StoreLease>>> {
        let key = key.main();
        Box::pin(async move {
            let of = key.clone();
            let newest_lease = self.read("look at a lease", move |connection| held(connection, &of));
            let held = newest_lease.await?.filter(|held| !held.released);
            Ok(held.map(|held| StoreLease::new(&key, held.owner, held.fence, held.expires_at)))
        })
    }
}

/// The newest lease of a session: its number, its owner, when it runs out, and whether it was given back.
struct StoredLease {
    fence: u64,
    owner: String,
    expires_at: u64,
    released: bool,
}

fn held(connection: &Connection, key: &SessionKey) -> rusqlite::Result<Option<StoredLease>> {
    let mut query = connection.prepare_cached(
        "SELECT fence, owner, expires_at, released FROM lease WHERE project_key = ?1 AND session_id = ?2",
    )?;
    let row = query.query_row(params![key.project_key, key.session_id], |row| {
        Ok(StoredLease {
            fence: row.get(0)?,
            owner: row.get(1)?,
            expires_at: row.get(2)?,
            released: row.get(3)?,
        })
    });
    row.optional()
}
