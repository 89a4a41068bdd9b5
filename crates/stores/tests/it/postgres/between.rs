//! A place between a store and its server at which connections break.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

use crate::servers::postgres::Server;

/// What happens to what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    Open,
    /// The next COMMIT is carried out, and instead of the reply the connection ends.
    CutAfterCommit,
    /// A connection on which something is sent forwards nothing any more.
    Silent,
}

/// Dropped, it takes no more connections.
pub(crate) struct Between {
    pub(crate) directory: tempfile::TempDir,
    passage: Arc<Mutex<Passage>>,
    listening: JoinHandle<()>,
}

impl Drop for Between {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Between {
    pub(crate) fn new(server: &Server) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let to = server.directory.path().join(".s.PGSQL.5432");
        let passage = Arc::new(Mutex::new(Passage::Open));
        let of_all = Arc::clone(&passage);
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, to.clone(), Arc::clone(&of_all)));
            }
        });
        Self {
            directory,
            passage,
            listening,
        }
    }

    pub(crate) fn set(&self, passage: Passage) {
        *self.passage.lock().unwrap() = passage;
    }

    pub(crate) fn is(&self, passage: Passage) -> bool {
        *self.passage.lock().unwrap() == passage
    }
}

async fn pass(mut client: UnixStream, to: PathBuf, passage: Arc<Mutex<Passage>>) {
    let Ok(mut server) = UnixStream::connect(to).await else {
        return;
    };
    let (mut sent, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let is = |which| *passage.lock().unwrap() == which;
    loop {
        let (from_client, n) = tokio::select! {
            n = client.read(&mut sent) => (true, n.unwrap_or(0)),
            n = server.read(&mut answered) => (false, n.unwrap_or(0)),
        };
        if n == 0 {
            return;
        }
        if is(Passage::Silent) {
            std::future::pending::<()>().await;
        }
        if from_client {
            server.write_all(&sent[..n]).await.unwrap();
        } else {
            client.write_all(&answered[..n]).await.unwrap();
        }
        if from_client && is(Passage::CutAfterCommit) && has(&sent[..n], b"COMMIT\0") {
            *passage.lock().unwrap() = Passage::Open;
            let n = server.read(&mut answered).await.unwrap();
            assert!(has(&answered[..n], b"COMMIT\0"), "the server has not committed");
            return;
        }
    }
}

fn has(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
