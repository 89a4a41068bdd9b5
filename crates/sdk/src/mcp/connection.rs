//! One run of a server: from the CLI's `initialize` to the next, or to the session's end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_protocol::RawJson;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::jsonrpc::{CANCELLED, RequestId, failure};
use super::raw::{self, RawMessage, RawSender};
use super::server::SdkMcpServer;
use super::server_messages::ServerMessages;
use crate::conn::Context;
use crate::spawn::spawn;

/// How many messages may wait for a server, which takes them as fast as it can read them.
pub(super) const MAX_WAITING: usize = 4096;

/// A message for the server.
struct Letter {
    message: RawJson,
    /// The request that the message came in. None for what this program sends itself.
    context: Option<Context>,
}

/// What waits for the server's answers, by the ids of the JSON-RPC requests.
#[derive(Default)]
struct OpenCalls {
    answers: HashMap<RequestId, oneshot::Sender<RawJson>>,
    ended: bool,
}

#[derive(Default)]
pub(super) struct ConnectionInner {
    open: Mutex<OpenCalls>,
    /// The server said that its tools are others now.
    tools_changed: AtomicBool,
}

impl ConnectionInner {
    fn open(&self) -> MutexGuard<'_, OpenCalls> {
        // Valid after every line, and nothing that could panic runs while it is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the reply to a request to who waits for it.
    pub(super) fn answer(&self, id: &RequestId, answer: RawJson) {
        let waiting = self.open().answers.remove(id);
        // Where nobody waits, it was withdrawn.
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    pub(super) fn tools_changed(&self) {
        self.tools_changed.store(true, Ordering::Relaxed);
    }

    /// Nobody answers any more.
    pub(super) fn end(&self) {
        let mut open = self.open();
        open.ended = true;
        open.answers.clear();
    }
}

/// Ends what waits when the server's task is through, in whatever way.
struct EndOnDrop(Arc<ConnectionInner>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Why a request was not taken in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// A request with this id is open.
    Duplicate,
    /// The server has ended.
    Ended,
    /// Too many messages wait.
    Full,
}

/// A server that runs. Dropping it ends it, and drops what it was doing.
pub(super) struct ServerConnection {
    inbox: mpsc::Sender<Letter>,
    shared: Arc<ConnectionInner>,
    _end: DropGuard,
}

impl ServerConnection {
    /// Starts a server. Runs none of its code here.
    pub(super) fn start(
        name: &str,
        server: &SdkMcpServer,
        messages: &Arc<ServerMessages>,
        session: &CancellationToken,
    ) -> Self {
        let (inbox, letters) = mpsc::channel(MAX_WAITING);
        let end = session.child_token();
        let shared = Arc::<ConnectionInner>::default();
        let link = ServerLink {
            letters,
            sender: RawSender::new(name, Arc::clone(&shared), Arc::clone(messages)),
        };
        spawn(run(server.serve(), link, end.clone()));
        Self {
            inbox,
            shared,
            _end: end.drop_guard(),
        }
    }

    /// Hands a request to the server; the receiver gets its JSON-RPC answer, and is told when there will be none.
    pub(super) fn ask(
        &self,
        id: RequestId,
        message: RawJson,
        context: Option<Context>,
    ) -> Result<oneshot::Receiver<RawJson>, NotTaken> {
        let mut open = self.shared.open();
        if open.ended {
            return Err(NotTaken::Ended);
        }
        // One that was withdrawn is answered by nobody and waits no more.
        if open.answers.get(&id).is_some_and(|waiting| !waiting.is_closed()) {
            return Err(NotTaken::Duplicate);
        }
        self.post(message, context)?;
        let (answer, answered) = oneshot::channel();
        open.answers.insert(id, answer);
        Ok(answered)
    }

    /// Hands something to the server that has no answer.
    pub(super) fn post(&self, message: RawJson, context: Option<Context>) -> Result<(), NotTaken> {
        self.inbox
            .try_send(Letter { message, context })
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => NotTaken::Full,
                mpsc::error::TrySendError::Closed(_) => NotTaken::Ended,
            })
    }

    /// Answers a request that the CLI has cancelled, whose answer the server is not to give any more.
    pub(super) fn cancelled(&self, id: &RequestId) {
        let answer = failure(Some(id), CANCELLED, "the request was cancelled");
        self.shared.answer(id, answer);
    }

    pub(super) fn tools_changed(&self) -> bool {
        self.shared.tools_changed.load(Ordering::Relaxed)
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        // What is still at work has its own time to end; nobody waits for it.
        self.shared.end();
    }
}

async fn run(serve: raw::Serve, link: ServerLink, end: CancellationToken) {
    let _ending = EndOnDrop(Arc::clone(&link.sender.shared));
    raw::run(serve, link, end).await;
}

/// The way between a server and the CLI.
pub(super) struct ServerLink {
    letters: mpsc::Receiver<Letter>,
    pub(super) sender: RawSender,
}

impl ServerLink {
    /// The next message, as it came.
    pub(super) async fn next(&mut self) -> Option<RawMessage> {
        let Letter { message, context } = self.letters.recv().await?;
        Some(RawMessage { message, context })
    }
}

#[cfg(feature = "tools")]
impl ServerLink {
    /// Answers all that waits, and what comes until nobody can reach this any more.
    pub(super) fn refuse_all(&mut self, why: &str) {
        self.close();
        let shared = &self.sender.shared;
        let waiting: Vec<RequestId> = shared.open().answers.keys().cloned().collect();
        for id in waiting {
            shared.answer(&id, failure(Some(&id), super::jsonrpc::INTERNAL_ERROR, why));
        }
    }

    /// Takes no more messages.
    pub(super) fn close(&mut self) {
        self.letters.close();
    }
}
