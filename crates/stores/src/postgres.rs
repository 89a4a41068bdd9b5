//! Sessions in PostgreSQL: for any number of machines.

mod postgres_schema;
#[cfg(feature = "postgres-tls")]
mod postgres_tls;
mod target;
mod value_table;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use futures_util::TryStreamExt as _;
use outrigger_protocol::RawJson;
use outrigger_sessions::store::{
    BoxFuture, Capabilities, LeaseStore, Result, SessionKey, SessionStore, StoreError, StoreErrorKind,
    StoreLease, StoredSession, SummaryEntry, fold_summary, uuid,
};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{NoTls, Row};

use self::target::PostgresTarget;
use crate::acquisitions::Acquisitions;
use crate::unsure::UnsureAppends;

/// How many connections [`PostgresStore::connect`] opens at most.
const CONNECTIONS: usize = 16;

/// How long a call waits for a connection, a new one or one of the pool's.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a call waits for the next answer of the server: to a statement, or for a row.
const SILENCE: Duration = Duration::from_secs(30);

/// How long the tables may take to be brought up to date.
const MIGRATION: Duration = Duration::from_secs(300);

/// Adds entries if the lease is the newest, all in one statement: the lease is locked for as long as the statement's transaction, so
/// nobody takes the session over in between. `$3` and `$4` are its number and owner, null where none is asked for. The transcript's row
/// is locked too, so appends to it follow each other, and their numbers are in the order in which they are committed. `$8` is the name
/// of the append, of 32 characters: the last eight are kept, so that one that is sent again is not done twice.
///
/// Answers whether the lease is the newest, and what became of the transcript: nothing if the append was done before.
const APPEND: &str = "
    WITH held AS MATERIALIZED (
        SELECT 1 FROM outrigger_lease
        WHERE project_key = $1 AND session_id = $2 AND fence = $3 AND owner = $4 AND NOT released FOR SHARE
    ), target AS (
        INSERT INTO outrigger_transcript AS t (project_key, session_id, subpath, next_seq, mtime, appends)
        SELECT $1, $2, $5, cardinality($6::text[]), outrigger_now(), $8
        WHERE $3::bigint IS NULL OR EXISTS (SELECT 1 FROM held)
        ON CONFLICT (project_key, session_id, subpath) DO UPDATE
        SET next_seq = t.next_seq + excluded.next_seq, mtime = GREATEST(t.mtime + 1, excluded.mtime),
            appends = excluded.appends || left(t.appends, 7 * 32)
        WHERE strpos(t.appends, excluded.appends) = 0
        RETURNING id, next_seq, mtime, summary
    ), added AS (
        INSERT INTO outrigger_entry (transcript, seq, uuid, entry)
        SELECT target.id, target.next_seq - cardinality($6::text[]) + given.n, given.uuid, given.entry
        FROM target, unnest($6::text[], $7::text[]) WITH ORDINALITY AS given (entry, uuid, n)
        ON CONFLICT DO NOTHING
        RETURNING seq
    )
    SELECT $3::bigint IS NULL OR EXISTS (SELECT 1 FROM held), target.id, target.mtime, target.summary,
        ARRAY(SELECT seq - (target.next_seq - cardinality($6::text[])) FROM added ORDER BY seq) AS added
    FROM (SELECT 1) AS one LEFT JOIN target ON true";

/// Keeps sessions in a PostgreSQL database, 12 or newer. Cheap to clone.
///
/// Entries are `text` columns, not `jsonb`, which would refuse NUL and lone surrogates and give back other text: in JSON text NUL
/// is written `\u0000`, which is nothing special to a database. Times, also those of leases, are the server's.
///
/// A call fails that gets no answer from the server for 30 seconds, be it for a lock that another one has; its connection is closed.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pool: Pool,
    /// The names of appends.
    unsure: Arc<UnsureAppends<String>>,
    acquisitions: Acquisitions,
}

impl PostgresStore {
    /// Opens a pool of connections and brings the tables up to date. `config` is a connection string as libpq has it:
    /// `host=/run/postgresql user=app dbname=app`, or `postgresql://app@db.example.com/app?sslmode=verify-full`.
    ///
    /// With the feature `postgres-tls`, `sslmode` means the same as for libpq: `prefer`, the default, uses TLS if the server has it, and
    /// `require` insists on TLS; neither checks the certificate. `verify-ca` checks it against the authorities in the file `sslrootcert`.
    /// `verify-full` also checks the server's name, and uses the system's authorities if no file is given: use it over a
    /// network. `require` with a file is `verify-ca`, and `prefer` with a file checks the authorities if the server has TLS.
    /// `sslrootcert=system` is `verify-full` with the system's authorities, and an error with any other `sslmode`: these authorities sign the
    /// certificates of anybody. Unlike libpq, `prefer` fails when the TLS handshake fails, and no file is searched in the home
    /// directory. Unix sockets have no TLS. Also unlike libpq, `tcp_user_timeout` and `keepalives_idle` are 30 s unless they are given, so
    /// that a server that went without a word is noticed. Without the feature there is no TLS, and a `config` that insists on it is an
    /// error.
    ///
    /// # Cancel safety
    /// Dropped, the tables are as they were or up to date.
    ///
    /// # Errors
    /// When `config` can't be read, the server can't be reached or fails the checks above, or the tables were made by a newer version of
    /// this crate.
    pub async fn connect(config: &str) -> Result<Self> {
        let target = PostgresTarget::read(config)?;
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        #[cfg(feature = "postgres-tls")]
        let manager = if target.config.get_ssl_mode() == SslMode::Disable {
            Manager::from_config(target.config, NoTls, recycling)
        } else {
            let connector = postgres_tls::connector(&target)?;
            Manager::from_config(target.config, connector, recycling)
        };
        #[cfg(not(feature = "postgres-tls"))]
        let manager = if target.config.get_ssl_mode() == SslMode::Require {
            let what = "this sslmode needs the feature `postgres-tls` of outrigger-stores";
            return Err(StoreError::new(StoreErrorKind::Invalid, what));
        } else {
            Manager::from_config(target.config, NoTls, recycling)
        };
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(PATIENCE))
            .build()
            .map_err(|error| StoreError::failed("the PostgreSQL session store has no pool", error))?;
        let store = Self::new(pool);
        store.migrate().await?;
        Ok(store)
    }

    /// Uses a pool of the program's own. The tables have to be there: see [`migrate`](Self::migrate).
    pub fn new(pool: Pool) -> Self {
        Self {
            pool,
            unsure: Arc::default(),
            acquisitions: Acquisitions::default(),
        }
    }

    /// Upgrades the tables, safely beside other processes that do the same, and returns their version. They are made in the
    /// first schema of the connection's search path, under names that begin with `outrigger_`.
    ///
    /// # Cancel safety
    /// Dropped, the tables are as they were or up to date.
    ///
    /// # Errors
    /// When the server fails, or the tables were made by a newer version of this crate.
    pub async fn migrate(&self) -> Result<u32> {
        let mut lent = self.client().await?;
        let migrated = postgres_schema::migrate(lent.client()?);
        let done = tokio::time::timeout(MIGRATION, migrated).await;
        let done = done.unwrap_or_else(|_| Err(silent("bring its tables up to date", MIGRATION)));
        lent.give_back(&done);
        done
    }

    async fn client(&self) -> Result<Lent> {
        let client = self.pool.get().await;
        let client = client
            .map_err(|error| StoreError::failed("the PostgreSQL session store can't be reached", error))?;
        Ok(Lent(Some(client)))
    }

    async fn query(&self, what: &str, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let mut lent = self.client().await?;
        let done = async {
            let client = lent.client()?;
            let statement = answered(what, client.prepare_cached(text)).await?;
            let parameters = parameters.iter().map(|parameter| *parameter as &dyn ToSql);
            let mut rows = pin!(answered(what, client.query_raw(&statement, parameters)).await?);
            let mut all = Vec::new();
            while let Some(row) = answered(what, rows.try_next()).await? {
                all.push(row);
            }
            Ok(all)
        }
        .await;
        lent.give_back(&done);
        done
    }

    /// Checks that the lease is the session's newest and was not released.
    async fn is_mine(&self, lease: &StoreLease) -> Result<()> {
        let text = "SELECT 1 FROM outrigger_lease
                    WHERE project_key = $1 AND session_id = $2 AND fence = $3 AND owner = $4 AND NOT released";
        let fence = lease.fence as i64;
        let parameters: [&(dyn ToSql + Sync); 4] =
            [&lease.project_key, &lease.session_id, &fence, &lease.owner];
        let held = self.query("look at a lease", text, &parameters).await?;
        held.first().map(drop).ok_or_else(|| crate::is_over(lease))
    }

    /// Acquires a lease.
    async fn take(&self, key: &SessionKey, owner: &str, ttl: Duration) -> Result<StoreLease> {
        let text = "
                INSERT INTO outrigger_lease AS l (project_key, session_id, fence, owner, expires_at, released)
                VALUES ($1, $2, 1, $3, outrigger_now() + $4, false)
                ON CONFLICT (project_key, session_id) DO UPDATE
                SET fence = l.fence + 1, owner = excluded.owner, expires_at = excluded.expires_at, released = false
                WHERE l.released OR l.expires_at <= outrigger_now() OR l.owner = excluded.owner
                RETURNING fence, expires_at";
        let ttl = crate::millis(ttl) as i64;
        let taken = self
            .query(
                "acquire a lease",
                text,
                &[&key.project_key, &key.session_id, &owner, &ttl],
            )
            .await?;
        if let Some(row) = taken.first() {
            return Ok(StoreLease::new(
                key,
                owner,
                row.get::<_, i64>(0) as u64,
                row.get::<_, i64>(1) as u64,
            ));
        }
        let text = "SELECT owner, expires_at FROM outrigger_lease WHERE project_key = $1 AND session_id = $2";
        let held = self
            .query("look at a lease", text, &[&key.project_key, &key.session_id])
            .await?;
        let held = held.first().map(|row| (row.get(0), row.get::<_, i64>(1) as u64));
        Err(crate::is_held(key, held))
    }

    /// Appends, under the lease if there is one.
    async fn add(&self, key: &SessionKey, entries: &[RawJson], lease: Option<&StoreLease>) -> Result<()> {
        let again = self.unsure.take(key, entries);
        let name = again.unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string());
        let under_way = self.unsure.begin(key, entries, name.clone());
        let done = self.add_as(&name, key, entries, lease).await;
        under_way.end(&done);
        done
    }

    /// Appends under this name, unless that was done before.
    async fn add_as(
        &self,
        name: &str,
        key: &SessionKey,
        entries: &[RawJson],
        lease: Option<&StoreLease>,
    ) -> Result<()> {
        let mut lent = self.client().await?;
        let done = add_with(lent.client()?, name, key, entries, lease).await;
        lent.give_back(&done);
        done
    }
}

/// A connection of the pool. Dropped before it is given back, it is closed: an answer may be on its way there, or never come.
struct Lent(Option<Object>);

impl Lent {
    fn client(&mut self) -> Result<&mut Object> {
        let gone = || StoreError::new(StoreErrorKind::Failed, "the connection was given back");
        self.0.as_mut().ok_or_else(gone)
    }

    /// The call has come to this.
    fn give_back<T>(mut self, done: &Result<T>) {
        if !done.as_ref().is_err_and(StoreError::may_pass) {
            drop(self.0.take());
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(Object::take(client));
        }
    }
}

/// Appends under this name by this connection, unless that was done before.
async fn add_with(
    client: &mut Object,
    name: &str,
    key: &SessionKey,
    entries: &[RawJson],
    lease: Option<&StoreLease>,
) -> Result<()> {
    const WHAT: &str = "append";
    let texts: Vec<&str> = entries.iter().map(RawJson::get).collect();
    // A column can't have NUL, and no uuid of the CLI's does.
    let uuids: Vec<Option<String>> = entries
        .iter()
        .map(|entry| uuid(entry).filter(|uuid| !uuid.contains('\0')))
        .collect();
    let fence = lease.map(|lease| lease.fence as i64);
    let owner = lease.map(|lease| lease.owner.as_str());
    let transaction = answered(WHAT, client.transaction()).await?;
    let statement = answered(WHAT, transaction.prepare_cached(APPEND)).await?;
    let parameters: [&(dyn ToSql + Sync); 8] = [
        &key.project_key,
        &key.session_id,
        &fence,
        &owner,
        &subpath(key),
        &texts,
        &uuids,
        &name,
    ];
    let row = answered(WHAT, transaction.query_one(&statement, &parameters)).await?;
    if let (false, Some(lease)) = (row.get(0), lease) {
        return Err(crate::is_over(lease));
    }
    if let (Some(id), true) = (row.get::<_, Option<i64>>(1), key.is_main()) {
        let (mtime, added): (i64, Vec<i64>) = (row.get(2), row.get(4));
        let added: Vec<RawJson> = added
            .iter()
            .filter_map(|n| entries.get(*n as usize - 1).cloned())
            .collect();
        if !added.is_empty() {
            let summary = match summary_of(&row, 3) {
                Some(before) => {
                    let before = SummaryEntry::new(&key.session_id, mtime as u64, before);
                    fold_summary(Some(&before), key, &added)
                }
                None => {
                    let all = "SELECT entry FROM outrigger_entry WHERE transcript = $1 ORDER BY seq";
                    let all = answered(WHAT, transaction.prepare_cached(all)).await?;
                    let all = answered(WHAT, transaction.query(&all, &[&id])).await?;
                    let all: Vec<RawJson> = all
                        .iter()
                        .filter_map(|row| RawJson::from_text(row.get::<_, String>(0)).ok())
                        .collect();
                    fold_summary(None, key, &all)
                }
            };
            let update = "UPDATE outrigger_transcript SET summary = $2 WHERE id = $1";
            let update = answered(WHAT, transaction.prepare_cached(update)).await?;
            answered(WHAT, transaction.execute(&update, &[&id, &summary.data.get()])).await?;
        }
    }
    answered(WHAT, transaction.commit()).await
}

/// The summary in this column; `None` if it is damaged.
fn summary_of(row: &Row, column: usize) -> Option<RawJson> {
    crate::summary_data(row.try_get::<_, &str>(column).ok()?.as_bytes())
}

/// The time in this column; 0 if it is damaged.
fn time(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).try_into().unwrap_or_default()
}

/// Waits for an answer of the server, but not for ever.
async fn answered<T>(
    what: &str,
    answer: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
) -> Result<T> {
    match tokio::time::timeout(SILENCE, answer).await {
        Ok(answer) => answer.map_err(|error| failed(what, error)),
        Err(_) => Err(silent(what, SILENCE)),
    }
}

fn silent(what: &str, limit: Duration) -> StoreError {
    let what = format!("the PostgreSQL session store could not {what}: no answer within {limit:?}");
    StoreError::new(StoreErrorKind::Failed, what)
}

fn failed(what: &str, error: tokio_postgres::Error) -> StoreError {
    let what = format!("the PostgreSQL session store could not {what}");
    // Data that the server can't store, such as a NUL or a key that is too long, fails the next time too.
    let is_refused = error.code().is_some_and(|code| {
        let code = code.code();
        code.starts_with("22") || code == SqlState::PROGRAM_LIMIT_EXCEEDED.code()
    });
    if is_refused {
        return StoreError::new(StoreErrorKind::Invalid, what).caused_by(error);
    }
    StoreError::failed(what, error)
}

fn damaged(key: &SessionKey) -> StoreError {
    StoreError::new(
        StoreErrorKind::Damaged,
        format!("{key} can't be read from the session store"),
    )
}

/// A subpath as a column has it: no part has an empty one.
fn subpath(key: &SessionKey) -> &str {
    key.subpath.as_deref().unwrap_or_default()
}

impl SessionStore for PostgresStore {
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
            let text =
                "SELECT e.entry FROM outrigger_entry e JOIN outrigger_transcript t ON t.id = e.transcript
                        WHERE t.project_key = $1 AND t.session_id = $2 AND t.subpath = $3 ORDER BY e.seq";
            let rows = self
                .query(
                    "load a session",
                    text,
                    &[&key.project_key, &key.session_id, &subpath(key)],
                )
                .await?;
            if rows.is_empty() {
                return Ok(None);
            }
            let entries: Result<_, _> = rows
                .iter()
                .map(|row| RawJson::from_text(row.get::<_, String>(0)))
                .collect();
            entries.map(Some).map_err(|_| damaged(key))
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        Box::pin(async move {
            let text =
                "SELECT session_id, mtime FROM outrigger_transcript WHERE project_key = $1 AND subpath = ''";
            let rows = self.query("list sessions", text, &[&project_key]).await?;
            let session = |row: &Row| StoredSession::new(row.get::<_, String>(0), time(row, 1));
            Ok(rows.iter().map(session).collect())
        })
    }

    fn list_session_summaries<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SummaryEntry>>> {
        Box::pin(async move {
            let text = "SELECT session_id, mtime, summary FROM outrigger_transcript WHERE project_key = $1 AND subpath = ''";
            let rows = self.query("list summaries", text, &[&project_key]).await?;
            let summary = |row: &Row| {
                let data = summary_of(row, 2)?;
                Some(SummaryEntry::new(row.get::<_, String>(0), time(row, 1), data))
            };
            Ok(rows.iter().filter_map(summary).collect())
        })
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // Entries go with their transcript.
            let text = "DELETE FROM outrigger_transcript
                        WHERE project_key = $1 AND session_id = $2 AND ($3::text IS NULL OR subpath = $3)";
            self.query("delete", text, &[&key.project_key, &key.session_id, &key.subpath])
                .await
                .map(drop)
        })
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(async move {
            let text = "SELECT subpath FROM outrigger_transcript WHERE project_key = $1 AND session_id = $2 AND subpath <> ''";
            let rows = self
                .query(
                    "list the parts of a session",
                    text,
                    &[&key.project_key, &key.session_id],
                )
                .await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for PostgresStore {
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        let (store, key, owner) = (self.clone(), key.main(), owner.to_owned());
        let of = key.clone();
        let acquire = async move { store.take(&of, &owner, ttl).await };
        Box::pin(self.acquisitions.run(self.clone(), key, acquire))
    }

    fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>> {
        Box::pin(async move {
            let text = "
                UPDATE outrigger_lease SET expires_at = outrigger_now() + $5
                WHERE project_key = $1 AND session_id = $2 AND fence = $3 AND owner = $4 AND NOT released RETURNING expires_at";
            let (fence, ttl) = (lease.fence as i64, crate::millis(ttl) as i64);
            let parameters: [&(dyn ToSql + Sync); 5] =
                [&lease.project_key, &lease.session_id, &fence, &lease.owner, &ttl];
            let renewed = self.query("renew a lease", text, &parameters).await?;
            let row = renewed.first().ok_or_else(|| crate::is_over(lease))?;
            let key = SessionKey::new(&lease.project_key, &lease.session_id);
            Ok(StoreLease::new(
                &key,
                &lease.owner,
                lease.fence,
                row.get::<_, i64>(0) as u64,
            ))
        })
    }

    fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let text = "UPDATE outrigger_lease SET released = true
                        WHERE project_key = $1 AND session_id = $2 AND fence = $3 AND owner = $4";
            let fence = lease.fence as i64;
            let parameters: [&(dyn ToSql + Sync); 4] =
                [&lease.project_key, &lease.session_id, &fence, &lease.owner];
            self.query("release a lease", text, &parameters).await.map(drop)
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
            if entries.is_empty() {
                return self.is_mine(lease).await;
            }
            self.add(key, entries, Some(lease)).await
        })
    }

    fn holder<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<StoreLease>>> {
        Box::pin(async move {
            let text = "SELECT owner, fence, expires_at FROM outrigger_lease
                        WHERE project_key = $1 AND session_id = $2 AND NOT released";
            let held = self
                .query("look at a lease", text, &[&key.project_key, &key.session_id])
                .await?;
            Ok(held.first().map(|row| {
                let owner: String = row.get(0);
                StoreLease::new(
                    key,
                    owner,
                    row.get::<_, i64>(1) as u64,
                    row.get::<_, i64>(2) as u64,
                )
            }))
        })
    }
}
