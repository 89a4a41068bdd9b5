//! Session stores: transcripts kept elsewhere, so that any machine can resume them.
//!
//! A [`SessionStore`] keeps what the CLI writes to a transcript. The SDK appends to it while a session runs
//! (`Options::session_store`) and resumes from it; [`import_to_store`] imports transcripts from disk. [`MemoryStore`] is for
//! tests, the crate `outrigger-stores` has durable ones, and [`conformance`] tests a store of your own.
//!
//! The contract is that of the official SDKs, with two more promises. Entries come back as the same text, byte for byte: an entry is
//! JSON that may have unknown parts, and text that a database would not accept as its own JSON (NUL, lone surrogates,
//! great depth) must not be lost. And an entry with a `uuid` that the transcript has already is not stored again, so that
//! an append can be repeated after any doubt.

mod checkout;
mod compare;
#[cfg(feature = "conformance")]
pub mod conformance;
mod entry;
mod import_from_disk;
mod key;
mod lease_store;
mod memory;
mod sessions;
mod store_error;
mod summary;
mod transcripts;
mod values;

use std::future::Future;
use std::pin::Pin;

use outrigger_protocol::RawJson;
use serde::{Deserialize, Serialize};

pub use self::compare::{Difference, StoreComparison, compare};
pub use self::entry::uuid;
pub use self::import_from_disk::{
    Batches, ImportCounts, ImportOptions, import_to_store, portions, split_metadata,
};
pub use self::key::SessionKey;
pub use self::lease_store::{LeaseStore, StoreLease};
pub use self::memory::MemoryStore;
pub use self::sessions::StoreSessions;
pub use self::store_error::{Result, StoreError, StoreErrorKind};
pub use self::summary::{SummaryEntry, fold_summary};
pub use self::transcripts::{Transcripts, is_part_name, pull_into};
pub use self::values::{StoredValue, ValueStore};

/// A boxed future, as object-safe traits return it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which of the functions that a store need not have it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Capabilities {
    /// [`SessionStore::list_sessions`].
    pub list_sessions: bool,
    /// [`SessionStore::list_session_summaries`].
    pub list_session_summaries: bool,
    /// [`SessionStore::delete`].
    pub delete: bool,
    /// [`SessionStore::list_subkeys`].
    pub list_subkeys: bool,
}

impl Capabilities {
    /// Append and load alone.
    pub const NONE: Self = Self {
        list_sessions: false,
        list_session_summaries: false,
        delete: false,
        list_subkeys: false,
    };

    /// Everything.
    pub const ALL: Self = Self {
        list_sessions: true,
        list_session_summaries: true,
        delete: true,
        list_subkeys: true,
    };
}

/// A session that a store has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoredSession {
    /// The session's id.
    pub session_id: String,
    /// When the main transcript was last appended to, in milliseconds since 1970 by the store's clock.
    pub mtime: u64,
}

impl StoredSession {
    /// A session that was last appended to at `mtime`.
    pub fn new(session_id: impl Into<String>, mtime: u64) -> Self {
        Self {
            session_id: session_id.into(),
            mtime,
        }
    }
}

/// Keeps transcripts. Many tasks use it at once as `Arc<dyn SessionStore>`.
///
/// An implementation reports by [`capabilities`](Self::capabilities) which of the optional functions it has; the others return
/// [`Unsupported`](StoreErrorKind::Unsupported).
///
/// # Cancel safety
/// The futures may be dropped. A write that has begun may then have happened or not, as after a lost connection: repeat
/// it, which is harmless for entries with a `uuid`. No write may be half done: an append is stored as a whole or not at all.
pub trait SessionStore: Send + Sync + 'static {
    /// Appends entries to a transcript, in order, and returns when they are as durable as the store makes them. An
    /// entry whose `uuid` the transcript has already is skipped; one without is always added. An empty append does not
    /// create a transcript.
    ///
    /// Appends to one transcript are in the order of the calls, if each is awaited before the next; others in the
    /// order in which the store processed them.
    ///
    /// # Errors
    /// When it is not known that all were stored. The SDK sends the same append again as long as the kind is
    /// [`Failed`](StoreErrorKind::Failed), and appends nothing to the transcript meanwhile; it treats any other kind
    /// as permanent.
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>>;

    /// All entries of a transcript in order, each as it was appended; `None` if there is no such transcript.
    ///
    /// # Errors
    /// When it can't be read; never for a missing one.
    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>>;

    /// Which of the functions below it has.
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    /// The sessions of a project, without their parts, in any order.
    ///
    /// # Errors
    /// [`Unsupported`](StoreErrorKind::Unsupported) unless the store has it, or when it fails.
    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        let _ = project_key;
        Box::pin(std::future::ready(Err(StoreError::unsupported("list_sessions"))))
    }

    /// What [`fold_summary`] made of each session of a project, kept up to date by [`append`](Self::append) so that a list
    /// costs no reading of transcripts. `mtime` is by the same clock as that of [`list_sessions`](Self::list_sessions).
    ///
    /// A summary that is damaged is left out, so that the session is loaded instead; the next append makes it anew.
    ///
    /// # Errors
    /// [`Unsupported`](StoreErrorKind::Unsupported) unless the store has it, or when it fails.
    fn list_session_summaries<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SummaryEntry>>> {
        let _ = project_key;
        Box::pin(std::future::ready(Err(StoreError::unsupported(
            "list_session_summaries",
        ))))
    }

    /// Removes a transcript: with a `subpath` that part alone, else the session with all its parts and its summary. What isn't
    /// there is no error.
    ///
    /// # Errors
    /// [`Unsupported`](StoreErrorKind::Unsupported) unless the store has it, or when it fails.
    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<()>> {
        let _ = key;
        Box::pin(std::future::ready(Err(StoreError::unsupported("delete"))))
    }

    /// The subpaths that a session has, in any order; the `subpath` of `key` does not matter.
    ///
    /// # Errors
    /// [`Unsupported`](StoreErrorKind::Unsupported) unless the store has it, or when it fails.
    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        let _ = key;
        Box::pin(std::future::ready(Err(StoreError::unsupported("list_subkeys"))))
    }

    /// The leases of the store, if it has leases.
    fn leases(&self) -> Option<&dyn LeaseStore> {
        None
    }
}
