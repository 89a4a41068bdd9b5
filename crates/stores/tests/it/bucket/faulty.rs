//! An object store in memory of which something goes wrong.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// What goes wrong with a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// `If-None-Match` is not looked at.
    CreatesAlways,
    /// `If-Match` is not looked at.
    ReplacesAlways,
    /// It is done, but the answer is lost, and the client tries again.
    AnswerLost,
    /// It is done, but the client learns of a failure.
    AnswerBroken,
    /// There is never an answer to a write of a head.
    Silent,
    /// While it is away, a write of a head is done, and the client learns of a failure; nothing can be read.
    Away,
    /// While it is away, a write of a head is done, and there is no answer.
    DoneInSilence,
}

#[derive(Debug)]
pub(crate) struct Faulty {
    pub(crate) inner: Arc<InMemory>,
    pub(crate) fault: Fault,
    /// How many objects were read.
    pub(crate) gets: AtomicU64,
    pub(crate) lists: AtomicU64,
    pub(crate) is_away: AtomicBool,
}

impl Faulty {
    pub(crate) fn new(inner: &Arc<InMemory>, fault: Fault) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(inner),
            fault,
            gets: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            is_away: AtomicBool::new(false),
        })
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.fault)
    }
}

fn closed() -> Error {
    let source = "the connection was closed".into();
    Error::Generic {
        store: "test",
        source,
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, path: &Path, payload: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        let is_head = path.as_ref().contains("/heads/");
        match (self.fault, &options.mode) {
            (Fault::CreatesAlways, PutMode::Create) | (Fault::ReplacesAlways, PutMode::Update(_)) => {
                options.mode = PutMode::Overwrite;
            }
            (Fault::AnswerLost, _) if is_head => {
                let _ = self.inner.put_opts(path, payload.clone(), options.clone()).await;
            }
            (Fault::AnswerBroken, _) if is_head => {
                self.inner.put_opts(path, payload, options).await?;
                return Err(closed());
            }
            (Fault::Away, _) if is_head && self.is_away.load(Ordering::Relaxed) => {
                self.inner.put_opts(path, payload, options).await?;
                return Err(closed());
            }
            (Fault::DoneInSilence, _) if is_head && self.is_away.load(Ordering::Relaxed) => {
                self.inner.put_opts(path, payload, options).await?;
                return std::future::pending().await;
            }
            (Fault::Silent, _) if is_head => std::future::pending().await,
            _ => {}
        }
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        if self.fault == Fault::Away && self.is_away.load(Ordering::Relaxed) {
            return Err(closed());
        }
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
