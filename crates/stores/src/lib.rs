//! Session stores that last: they keep conversations of the Claude Code CLI, so that any machine can resume them.
//!
//! All are [`SessionStore`](outrigger_sessions::store::SessionStore)s for the SDK's `Options::session_store`. Each
//! is a feature; none is on by default.
//!
//! | feature | store | use | an append that has returned survives |
//! |---|---|---|---|
//! | `sqlite` | `SqliteStore` | one machine, any number of processes: the one to begin with | a power failure |
//! | `directory` | `DirectoryStore` | files to copy, mount and inspect | a power failure |
//! | `postgres` | `PostgresStore` | any number of machines | a power failure, unless `synchronous_commit` is off |
//! | `redis` | `RedisStore` | any number of machines that have a Redis or Valkey anyway | depends on the server's settings: by default only the end of programs |
//! | `s3` | `BucketStore`, `S3` | any number of machines, in a bucket of Amazon S3 or of a server with the same API | what the bucket survives |
//! | `bucket` | `BucketStore` | the same over an `object_store` of the program's own | what that store survives |
//!
//! With `redis-tls` and `postgres-tls` those servers can be reached through TLS, too, by rustls and *ring*.
//!
//! All keep the whole contract (`outrigger_sessions::store::conformance::check`): entries come back as the same text; an append is
//! stored as a whole or not at all, and may be sent again; a session has one owner at a time, and a former owner can't write any more.
//! When an append fails, or its future is dropped, it may have been done. The same entries, sent again next by the same store or a
//! clone of it, are then stored once, those without a `uuid` too.
//! A lease whose acquisition was dropped, as at a timeout, is given back as soon as the store has it.
//! Tests check this with owners that are real processes, killed and stopped at random. All stores need a tokio runtime.

#[cfg(any(
    feature = "bucket",
    feature = "directory",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
mod acquisitions;
#[cfg(feature = "bucket")]
mod bucket;
#[cfg(feature = "directory")]
mod directory;
#[cfg(any(feature = "bucket", feature = "directory"))]
mod lines;
#[cfg(any(feature = "bucket", feature = "directory"))]
mod names;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "postgres-tls", feature = "s3"))]
mod trusted_certificates;
#[cfg(any(
    feature = "bucket",
    feature = "directory",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
mod unsure;

#[cfg(feature = "bucket")]
pub use bucket::BucketStore;
#[cfg(feature = "s3")]
pub use bucket::S3;
#[cfg(feature = "directory")]
pub use directory::DirectoryStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(feature = "redis")]
pub use redis::{RedisOptions, RedisStore};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;

#[cfg(any(
    feature = "bucket",
    feature = "directory",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
mod shared {
    use std::time::Duration;
    #[cfg(any(feature = "bucket", feature = "directory", feature = "sqlite"))]
    use std::time::{SystemTime, UNIX_EPOCH};

    use outrigger_protocol::RawJson;
    use outrigger_sessions::store::{Result, SessionKey, StoreError, StoreErrorKind, StoreLease};

    /// The data of a summary as it was stored; `None` if it is damaged. It can be made anew from the entries.
    pub(crate) fn summary_data(stored: &[u8]) -> Option<RawJson> {
        let text = std::str::from_utf8(stored).ok()?;
        RawJson::from_text(text)
            .ok()
            .filter(|data| data.get().starts_with('{'))
    }

    /// Milliseconds since 1970 by this machine's clock.
    #[cfg(any(feature = "bucket", feature = "directory", feature = "sqlite"))]
    pub(crate) fn now_ms() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis() as u64)
    }

    /// How long a lease lasts, in milliseconds: at most some 140,000 years, which every database can add to the time.
    pub(crate) fn millis(ttl: Duration) -> u64 {
        const MOST: u64 = 1 << 52;
        u64::try_from(ttl.as_millis()).unwrap_or(MOST).min(MOST)
    }

    /// Checks that the lease is for the session that is written.
    pub(crate) fn covered(lease: &StoreLease, key: &SessionKey) -> Result<()> {
        if lease.covers(key) {
            return Ok(());
        }
        let what = format!(
            "the lease of {}/{} does not cover {key}",
            lease.project_key, lease.session_id
        );
        Err(StoreError::new(StoreErrorKind::Invalid, what))
    }

    /// The error for who comes while another has the lease. Between two looks it may have been given back.
    pub(crate) fn is_held(key: &SessionKey, by: Option<(String, u64)>) -> StoreError {
        let (owner, until) = by.unwrap_or_default();
        StoreError::new(
            StoreErrorKind::Held { owner, until },
            format!("the session {} is leased", key.main()),
        )
    }

    /// The error for who was overtaken.
    pub(crate) fn is_over(lease: &StoreLease) -> StoreError {
        StoreError::fenced(format!(
            "the lease {} of {}/{} is over: it was released, or another owner has taken the session over",
            lease.fence, lease.project_key, lease.session_id
        ))
    }
}

#[cfg(any(feature = "bucket", feature = "directory", feature = "sqlite"))]
pub(crate) use shared::now_ms;
#[cfg(any(
    feature = "bucket",
    feature = "directory",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
pub(crate) use shared::{covered, is_held, is_over, millis, summary_data};
