//! One run of a server: from the CLI's `initialize` to the next, or to the session's end.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_protocol::RawJson;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetExtensions, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use rmcp::service::{RoleServer, serve_server_with_ct};
use rmcp::transport::Transport;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::guard::{CANCELLED, Guarded, caught_call};
use super::outlet::Outlet;
use super::output::failed;
use super::raw::{self, RawMessage, RawSender};
use super::server::{Made, SdkMcpServer};
use crate::callbacks::Context;

/// How many messages may wait for a server, which takes them as fast as it can read them.
pub(super) const MAX_WAITING: usize = 4096;

/// A message for the server.
struct Letter {
    message: RawJson,
    /// The request that it came in. None for what this program says itself.
    context: Option<Context>,
}

/// What waits for the server's answers, by the ids of the JSON-RPC requests.
#[derive(Default)]
struct Open {
    answers: HashMap<RequestId, oneshot::Sender<RawJson>>,
    ended: bool,
}

#[derive(Default)]
pub(super) struct Shared {
    open: Mutex<Open>,
    /// The server said that its tools are others now.
    tools_changed: AtomicBool,
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        // Valid after every line, and nothing that could panic runs while it is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, id: &RequestId, answer: &ServerJsonRpcMessage) {
        let text = RawJson::encode(answer).or_else(|error| {
            let why = format!("the answer could not be written as JSON: {error}");
            RawJson::encode(&failure(Some(id.clone()), ErrorCode::INTERNAL_ERROR, why))
        });
        match text {
            Ok(text) => self.answer_with(id, text),
            // Without an answer the one who waits says that there is none.
            Err(_) => drop(self.open().answers.remove(id)),
        }
    }

    /// Answers with what is a JSON-RPC message already.
    pub(super) fn answer_with(&self, id: &RequestId, answer: RawJson) {
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
    fn end(&self) {
        let mut open = self.open();
        open.ended = true;
        open.answers.clear();
    }
}

/// Ends what waits when the server's task is through, in whatever way.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Why a request was not taken in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// One with this id is open.
    Duplicate,
    /// The server has ended.
    Ended,
    /// Too many messages wait.
    Full,
}

/// A server that runs. Dropping it ends it, and drops what it was doing.
pub(super) struct Connection {
    inbox: mpsc::Sender<Letter>,
    shared: Arc<Shared>,
    _end: DropGuard,
}

impl Connection {
    /// Starts a server. Runs none of its code here.
    pub(super) fn start(
        name: &str,
        server: &SdkMcpServer,
        outlet: &Arc<Outlet>,
        session: &CancellationToken,
    ) -> Self {
        let (inbox, letters) = mpsc::channel(MAX_WAITING);
        let end = session.child_token();
        let shared = Arc::<Shared>::default();
        let link = Link {
            letters,
            sender: RawSender::new(name, Arc::clone(&shared), Arc::clone(outlet)),
        };
        tokio::spawn(run(server.clone(), link, end.clone()));
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
        let answer = failure(Some(id.clone()), CANCELLED, "the request was cancelled");
        self.shared.answer(id, &answer);
    }

    pub(super) fn tools_changed(&self) -> bool {
        self.shared.tools_changed.load(Ordering::Relaxed)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // What is still at work has its own time to end; nobody waits for it.
        self.shared.end();
    }
}

pub(super) fn failure(
    id: Option<RequestId>,
    code: ErrorCode,
    why: impl Into<String>,
) -> ServerJsonRpcMessage {
    JsonRpcMessage::error(ErrorData::new(code, why.into(), None), id)
}

async fn run(server: SdkMcpServer, mut link: Link, end: CancellationToken) {
    let _ending = Ending(Arc::clone(&link.sender.shared));
    let name = Arc::clone(&link.sender.name);
    let handler = match caught_call(|| server.make()) {
        Ok(Made::Service(handler)) => handler,
        Ok(Made::Raw(serve)) => return raw::run(serve, link, end).await,
        Err(panic) => {
            tracing::error!(server = %name, panic, "making an MCP server panicked");
            link.refuse_all(&format!("the server could not be made: {panic}"));
            return;
        }
    };
    let guarded = Guarded {
        handler,
        has_grace: server.has_grace(),
    };
    match serve_server_with_ct(guarded, link, end).await {
        Ok(running) => {
            let ended = running.waiting().await;
            tracing::debug!(server = %name, ?ended, "an MCP server ended");
        }
        Err(error) => tracing::debug!(server = %name, %error, "an MCP server did not begin"),
    }
}

/// The way between a server and the CLI.
pub(super) struct Link {
    letters: mpsc::Receiver<Letter>,
    pub(super) sender: RawSender,
}

impl Link {
    /// The next message, as it came.
    pub(super) async fn next(&mut self) -> Option<RawMessage> {
        let Letter { message, context } = self.letters.recv().await?;
        Some(RawMessage { message, context })
    }

    /// Reads a message; one that can't be read is answered here.
    fn read(&self, letter: Letter) -> Option<ClientJsonRpcMessage> {
        let read = match letter.message.decode::<ClientJsonRpcMessage>() {
            Ok(JsonRpcMessage::Request(request)) if is_misread(&request.request) => {
                Err("its parameters are not those of a tool call".to_owned())
            }
            Ok(message) => Ok(message),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(mut message) => {
                if let (JsonRpcMessage::Request(request), Some(context)) = (&mut message, letter.context) {
                    request.request.extensions_mut().insert(context);
                }
                Some(message)
            }
            Err(error) => {
                let head: Head = letter.message.decode().unwrap_or_default();
                let why = format!("the message could not be read: {error}");
                tracing::warn!(server = %self.sender.name, method = head.method, why);
                if let Some(id) = head.id() {
                    // The model is to see what is wrong with its call.
                    let answer = if head.method.as_deref() == Some("tools/call") {
                        JsonRpcMessage::response(ServerResult::CallToolResult(failed(why)), id.clone())
                    } else {
                        failure(Some(id.clone()), ErrorCode::INVALID_REQUEST, why)
                    };
                    self.sender.shared.answer(&id, &answer);
                }
                None
            }
        }
    }

    /// Answers all that waits, and what comes until nobody can reach this any more.
    fn refuse_all(&mut self, why: &str) {
        self.letters.close();
        let shared = &self.sender.shared;
        let waiting: Vec<RequestId> = shared.open().answers.keys().cloned().collect();
        for id in waiting {
            shared.answer(&id, &failure(Some(id.clone()), ErrorCode::INTERNAL_ERROR, why));
        }
    }
}

impl Transport<RoleServer> for Link {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sender = self.sender.clone();
        async move {
            match &item {
                JsonRpcMessage::Response(response) => sender.shared.answer(&response.id, &item),
                JsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        sender.shared.answer(id, &item);
                    }
                }
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {
                    let is_change = matches!(
                        &item,
                        JsonRpcMessage::Notification(notification)
                            if matches!(notification.notification, ServerNotification::ToolListChangedNotification(_))
                    );
                    let message = RawJson::encode(&item).map_err(io::Error::other)?;
                    sender.tell(message, is_change).await?;
                }
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let letter = self.letters.recv().await?;
            if let Some(message) = self.read(letter) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.letters.close();
        self.sender.shared.end();
        Ok(())
    }
}

/// Whether a tool call was read as something that only has its name.
fn is_misread(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::CustomRequest(request) if request.method == "tools/call")
}

/// The head of a JSON-RPC message.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct Head {
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(default)]
    id: Option<RawJson>,
}

impl Head {
    /// The id, if it is one: a string or a whole number.
    pub(super) fn id(&self) -> Option<RequestId> {
        self.id.as_ref()?.decode().ok()
    }

    /// Whether there is anything as an id, be it one or not.
    pub(super) fn has_id(&self) -> bool {
        self.id.as_ref().is_some_and(|id| !id.is_null())
    }
}
