//! Follows the output files of background commands.

use std::collections::HashMap;
use std::io::SeekFrom;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How often a file is read.
const EVERY: Duration = Duration::from_millis(100);

/// The size of a piece, and how many pieces may wait.
const PIECE: u64 = 64 * 1024;
const WAITING: usize = 4;

/// How many files are followed at once.
const MOST: usize = 64;

/// An event of a followed file.
#[derive(Debug)]
pub(super) enum Tailed {
    More {
        call: Arc<str>,
        bytes: Vec<u8>,
    },
    /// The end: all of it was sent.
    Ended {
        call: Arc<str>,
    },
}

/// The followed files. Dropping this stops all tasks.
#[derive(Debug)]
pub(super) struct Tails {
    news: mpsc::Receiver<Tailed>,
    teller: mpsc::Sender<Tailed>,
    /// By call. Fires when the command has ended.
    open: HashMap<Arc<str>, CancellationToken>,
}

impl Default for Tails {
    fn default() -> Self {
        let (teller, news) = mpsc::channel(WAITING);
        Self {
            news,
            teller,
            open: HashMap::new(),
        }
    }
}

impl Tails {
    /// Follows a file.
    pub(super) fn follow(&mut self, call: Arc<str>, file: PathBuf) {
        if self.open.len() >= MOST || self.open.contains_key(&call) {
            tracing::warn!(%call, file = %file.display(), "the output of this command is not followed");
            return;
        }
        let ended = CancellationToken::new();
        self.open.insert(Arc::clone(&call), ended.clone());
        tokio::spawn(follow(call, file, ended, self.teller.clone()));
    }

    /// The command has ended: the rest of its output is read.
    pub(super) fn finish(&mut self, call: &str) {
        if let Some(ended) = self.open.remove(call) {
            ended.cancel();
        }
    }

    /// The next event.
    pub(super) async fn next(&mut self) -> Tailed {
        match self.news.recv().await {
            Some(tailed) => tailed,
            // The channel is never closed: `self` has a sender.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Tails {
    fn drop(&mut self) {
        for ended in self.open.values() {
            ended.cancel();
        }
    }
}

async fn follow(call: Arc<str>, file: PathBuf, ended: CancellationToken, teller: mpsc::Sender<Tailed>) {
    let mut at = 0;
    loop {
        let is_last = ended.is_cancelled();
        loop {
            match read(&file, at).await {
                Ok(bytes) if bytes.is_empty() => break,
                Ok(bytes) => {
                    at += bytes.len() as u64;
                    let call = Arc::clone(&call);
                    if teller.send(Tailed::More { call, bytes }).await.is_err() {
                        return;
                    }
                }
                // The file may not exist yet, or no longer.
                Err(error) => {
                    tracing::trace!(%error, file = %file.display(), "output can't be read");
                    break;
                }
            }
        }
        if is_last {
            // The session may have ended.
            let _ = teller.send(Tailed::Ended { call }).await;
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = ended.cancelled() => {}
            () = teller.closed() => return,
        }
    }
}

/// Reads a piece of a file from a position.
async fn read(file: &PathBuf, at: u64) -> std::io::Result<Vec<u8>> {
    // To open a FIFO takes as long as nobody writes to it.
    if !tokio::fs::metadata(file).await?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut file = tokio::fs::File::open(file).await?;
    file.seek(SeekFrom::Start(at)).await?;
    let mut bytes = Vec::new();
    file.take(PIECE).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_told_to_its_end() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("output");
        let mut tails = Tails::default();
        tails.follow("call".into(), file.clone());
        std::fs::write(&file, "one").unwrap();
        let Tailed::More { call, bytes } = tails.next().await else {
            panic!("more")
        };
        assert_eq!((&*call, bytes.as_slice()), ("call", &b"one"[..]));
        let big = vec![b'x'; 150 * 1024];
        std::fs::write(&file, [b"one", big.as_slice()].concat()).unwrap();
        tails.finish("call");
        let mut rest = Vec::new();
        loop {
            match tails.next().await {
                Tailed::More { bytes, .. } => rest.extend(bytes),
                Tailed::Ended { call } => break assert_eq!(&*call, "call"),
            }
        }
        assert_eq!(rest, big);
    }

    #[tokio::test]
    #[cfg(unix)]
    async fn what_is_no_file_ends_all_the_same() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        for file in [pipe, "/dev/zero".into()] {
            let mut tails = Tails::default();
            tails.follow("call".into(), file);
            tails.finish("call");
            let next = tokio::time::timeout(std::time::Duration::from_secs(5), tails.next()).await;
            assert!(matches!(next, Ok(Tailed::Ended { .. })));
        }
    }

    #[tokio::test]
    async fn a_file_that_never_is_ends_all_the_same() {
        let mut tails = Tails::default();
        tails.follow("call".into(), "/no/such/output".into());
        tails.finish("call");
        assert!(matches!(tails.next().await, Tailed::Ended { .. }));
    }
}
