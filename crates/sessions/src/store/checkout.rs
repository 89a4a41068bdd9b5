//! A private copy of a session in a store, as the CLI would have it on disk.

use std::fs;
use std::path::{Path, PathBuf};

use outrigger_protocol::RawJson;
use uuid::Uuid;

use super::{Result, SessionKey, SessionStore, StoreError, StoreErrorKind, split_metadata};
use crate::id::SessionId;
use crate::place::SessionFile;
use crate::write::draft::{create_dir, replace};

/// The copy; removed when it is dropped.
#[derive(Debug)]
pub(super) struct Checkout {
    place: PathBuf,
    file: PathBuf,
}

impl Checkout {
    /// Of the session and these of its parts, whose names are files below it.
    pub(super) async fn of(store: &dyn SessionStore, key: &SessionKey, parts: &[String]) -> Result<Self> {
        let main = store.load(key).await?.ok_or_else(|| not_found(key))?;
        let mut loaded = Vec::new();
        for part in parts {
            loaded.extend(
                store
                    .load(&key.with_subpath(part))
                    .await?
                    .map(|entries| (part, entries)),
            );
        }
        let place = std::env::temp_dir().join(format!("outrigger-store-{}", Uuid::new_v4()));
        let project = place.join("projects").join("checkout");
        // Dropped, it removes what was made so far.
        let checkout = Self {
            file: project.join(format!("{}.jsonl", key.session_id)),
            place,
        };
        create_dir(&project).map_err(unwritable)?;
        write(&checkout.file, &main)?;
        for (part, entries) in loaded {
            let file = checkout.file.with_extension("").join(format!("{part}.jsonl"));
            create_dir(file.parent().unwrap_or(&checkout.place)).map_err(unwritable)?;
            let (lines, metadata) = split_metadata(entries);
            write(&file, &lines)?;
            if let Some(metadata) = metadata {
                replace(&file.with_extension("meta.json"), metadata.as_bytes()).map_err(unwritable)?;
            }
        }
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
        // What is temporary goes with the system's directory for it at the latest.
        let _ = fs::remove_dir_all(&self.place);
    }
}

fn write(file: &Path, entries: &[RawJson]) -> Result<()> {
    let mut text = String::new();
    for entry in entries {
        // Line ends can only stand between the parts of a value, where a blank means the same.
        text.extend(
            entry
                .get()
                .chars()
                .map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }),
        );
        text.push('\n');
    }
    replace(file, text.as_bytes()).map_err(unwritable)
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
