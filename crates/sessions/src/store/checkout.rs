//! A private copy of a session in a store, as the CLI would have it on disk.

use std::fs;
use std::path::PathBuf;

use uuid::Uuid;

use super::{Result, SessionKey, SessionStore, StoreError, StoreErrorKind, Transcripts};
use crate::id::SessionId;
use crate::place::SessionFile;

/// The copy; removed when it is dropped.
#[derive(Debug)]
pub(super) struct Checkout {
    place: PathBuf,
    file: PathBuf,
}

impl Checkout {
    /// Of the session and these of its parts, whose names are files below it.
    pub(super) async fn of(store: &dyn SessionStore, key: &SessionKey, parts: &[String]) -> Result<Self> {
        let id = SessionId::new(&key.session_id)
            .map_err(|error| StoreError::new(StoreErrorKind::Invalid, error.to_string()))?;
        let main = store.load(key).await?.ok_or_else(|| not_found(key))?;
        let mut transcripts = Transcripts::new(main);
        for part in parts {
            if let Some(entries) = store.load(&key.with_subpath(part)).await? {
                transcripts = transcripts.part(part, entries);
            }
        }
        let place = std::env::temp_dir().join(format!("outrigger-store-{}", Uuid::new_v4()));
        let project = place.join("projects").join("checkout");
        // Dropping it removes what was made so far.
        let checkout = Self {
            file: project.join(format!("{id}.jsonl")),
            place,
        };
        transcripts.write(&project, &id).map_err(unwritable)?;
        Ok(checkout)
    }

    pub(super) fn file(&self) -> Result<SessionFile> {
        let id = self
            .file
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(SessionId::of_file_name);
        let file = id.and_then(|id| SessionFile::at(&id, self.file.clone(), None));
        file.ok_or_else(|| StoreError::new(StoreErrorKind::NotFound, "the session in the store is empty"))
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        // At the latest the system cleans its temporary directory.
        let _ = fs::remove_dir_all(&self.place);
    }
}

fn unwritable(error: crate::Error) -> StoreError {
    StoreError::failed("no copy of the session can be made", error)
}

pub(super) fn not_found(key: &SessionKey) -> StoreError {
    StoreError::new(
        StoreErrorKind::NotFound,
        format!("the session {key} is not in the store"),
    )
}
