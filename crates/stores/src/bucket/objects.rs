//! Calls of the object store, each with a deadline.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, UpdateVersion};
use outrigger_sessions::store::{Result, StoreError};

/// How long a request may take with all tries of its client; with more than a few bytes, so many more seconds as there are MiB.
const REQUEST: Duration = Duration::from_secs(30);

/// How long a list may take.
const LIST: Duration = Duration::from_secs(300);

/// The result of a conditional write.
pub(super) enum Put {
    Stored(UpdateVersion),
    /// The condition did not hold, or it is not known whether it did.
    Refused(StoreError),
}

/// An object as a list has it.
pub(super) struct ListedObject {
    pub(super) path: Path,
    /// Its ETag, where the list has it.
    pub(super) tag: Option<String>,
    /// When it was written by the server's clock, in milliseconds since 1970.
    pub(super) mtime: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Objects(pub(super) Arc<dyn ObjectStore>);

impl Objects {
    pub(super) async fn put(&self, path: &Path, body: Bytes, mode: PutMode) -> Result<Put> {
        let limit = REQUEST + Duration::from_secs(body.len() as u64 >> 20);
        let put = self.0.put_opts(path, PutPayload::from(body), mode.into());
        match tokio::time::timeout(limit, put).await {
            Ok(Ok(stored)) => Ok(Put::Stored(stored.into())),
            Ok(Err(error)) => match &error {
                Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotFound { .. } => {
                    Ok(Put::Refused(failed("write", path, error)))
                }
                _ => Err(failed("write", path, error)),
            },
            Err(_) => Err(late("write", path, limit)),
        }
    }

    /// An object and when it was written, if it is there. `bytes` is about how many it has.
    pub(super) async fn get(&self, path: &Path, bytes: u64) -> Result<Option<(Bytes, UpdateVersion)>> {
        let limit = REQUEST + Duration::from_secs(bytes >> 20);
        let get = async {
            let got = self.0.get(path).await?;
            let version = UpdateVersion {
                e_tag: got.meta.e_tag.clone(),
                version: got.meta.version.clone(),
            };
            Ok((got.bytes().await?, version))
        };
        match tokio::time::timeout(limit, get).await {
            Ok(Ok(got)) => Ok(Some(got)),
            Ok(Err(Error::NotFound { .. })) => Ok(None),
            Ok(Err(error)) => Err(failed("read", path, error)),
            Err(_) => Err(late("read", path, limit)),
        }
    }

    /// When the object was written by the server's clock, in milliseconds since 1970.
    pub(super) async fn written_at(&self, path: &Path) -> Result<u64> {
        match tokio::time::timeout(REQUEST, self.0.head(path)).await {
            Ok(Ok(meta)) => Ok(meta.last_modified.timestamp_millis().max(0) as u64),
            Ok(Err(error)) => Err(failed("look at", path, error)),
            Err(_) => Err(late("look at", path, REQUEST)),
        }
    }

    /// Removes objects; that one isn't there is no error.
    pub(super) async fn delete(&self, paths: Vec<Path>) -> Result<()> {
        let Some(first) = paths.first().cloned() else {
            return Ok(());
        };
        let paths = futures_util::stream::iter(paths.into_iter().map(Ok)).boxed();
        let mut deleted = self.0.delete_stream(paths);
        let delete = async {
            while let Some(deleted) = deleted.next().await {
                match deleted {
                    Ok(_) | Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(failed("remove", &first, error)),
                }
            }
            Ok(())
        };
        let done = tokio::time::timeout(LIST, delete).await;
        done.unwrap_or_else(|_| Err(late("remove", &first, LIST)))
    }

    /// The objects below a path.
    pub(super) async fn list(&self, path: &Path) -> Result<Vec<ListedObject>> {
        let listed = self.0.list(Some(path)).map_ok(|meta| ListedObject {
            mtime: meta.last_modified.timestamp_millis().max(0) as u64,
            path: meta.location,
            tag: meta.e_tag,
        });
        match tokio::time::timeout(LIST, listed.try_collect()).await {
            Ok(Ok(list)) => Ok(list),
            Ok(Err(error)) => Err(failed("list", path, error)),
            Err(_) => Err(late("list", path, LIST)),
        }
    }
}

fn failed(action: &str, path: &Path, error: Error) -> StoreError {
    StoreError::failed(
        format!("the session store could not {action} {path} in its bucket"),
        error,
    )
}

fn late(action: &str, path: &Path, limit: Duration) -> StoreError {
    let why = format!("no answer within {} s", limit.as_secs());
    StoreError::failed(
        format!("the session store could not {action} {path} in its bucket"),
        why,
    )
}
