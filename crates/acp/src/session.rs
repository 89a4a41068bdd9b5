//! A session: one task that owns the CLI's session, reads its frames in order, and answers the editor.

pub(crate) mod activity;
mod actor;
mod conversation;
mod early_commands;
mod flags;
mod idle_compaction;
mod lifecycle;
mod lookups;
pub(crate) mod mcp_servers;
mod process;
mod prompt_buffers;
pub(crate) mod prompt_reply;
pub(crate) mod prompts;
mod rewinding;
mod sign_in;
mod tail;
mod title;
mod updates;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use self::actor::{Actor, OnHost, Parts};
pub(crate) use self::early_commands::{Start, arrival};
use self::prompt_reply::PromptReply;
pub(crate) use self::updates::{Output, Updates};
use crate::ask::QuestionCancel;
use crate::response_sender::ResponseSender;
use crate::rewind::{Rewind, Rewound};
use crate::steer::{Steer, Steered};
use crate::{children, error};

/// How many commands may wait for a session. More are rejected.
pub(crate) const COMMANDS: usize = 256;

/// A request to the task of a session.
pub(crate) enum SessionCommand {
    Prompt {
        request: acp::PromptRequest,
        answer: PromptReply,
    },
    /// Adds a prompt to the running turn.
    Steer {
        request: Steer,
        reply: oneshot::Sender<Result<Steered, Error>>,
    },
    /// Cancels all open prompts.
    Cancel,
    /// Cancels the work of a subagent.
    CancelAgent(String),
    SetMode {
        request: acp::SetSessionModeRequest,
        answer: ResponseSender<acp::SetSessionModeResponse>,
    },
    SetOption {
        request: acp::SetSessionConfigOptionRequest,
        answer: ResponseSender<acp::SetSessionConfigOptionResponse>,
    },
    /// Rewinds to an earlier prompt.
    Rewind {
        request: Rewind,
        reply: oneshot::Sender<Result<Rewound, Error>>,
    },
    /// Sets the title. The reply is whether the CLI has taken it.
    SetTitle {
        title: String,
        reply: oneshot::Sender<Result<bool, Error>>,
    },
    Mcp {
        wish: mcp_servers::Wish,
        reply: mcp_servers::McpReply,
    },
}

impl SessionCommand {
    pub(crate) fn refuse(self, error: Error) {
        match self {
            Self::Prompt { answer, .. } => answer.refuse(error),
            Self::SetMode { answer, .. } => answer.refuse(error),
            Self::SetOption { answer, .. } => answer.refuse(error),
            // The caller may have gone.
            Self::Rewind { reply, .. } => drop(reply.send(Err(error))),
            Self::SetTitle { reply, .. } => drop(reply.send(Err(error))),
            Self::Steer { reply, .. } => drop(reply.send(Err(error))),
            Self::Mcp { reply, .. } => drop(reply.send(Err(error))),
            Self::Cancel | Self::CancelAgent(_) => {}
        }
    }

    /// The session is closed: prompts are cancelled, and everything else is refused.
    pub(crate) fn closed(self) {
        match self {
            Self::Prompt { answer, .. } => answer.cancel(),
            other => other.refuse(closed()),
        }
    }
}

fn closed() -> Error {
    error::internal("the session was closed")
}

/// What a session replies to a command.
type SessionReply<T> = BoxFuture<'static, Result<T, Error>>;

/// A handle of a session. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Handle {
    commands: mpsc::Sender<SessionCommand>,
    cancel: CancelBell,
    questions: QuestionCancel,
    /// Fires when the session is to end.
    end: CancellationToken,
    /// Fires when it has ended.
    ended: CancellationToken,
}

/// What reaches a session through its handles.
pub(crate) struct Inbox {
    pub(crate) commands: mpsc::Receiver<SessionCommand>,
    pub(crate) cancel: CancelBell,
    /// Fires when the session is closed, and at the end of the connection.
    pub(crate) end: CancellationToken,
    /// Fires at the end of the connection.
    pub(crate) stop: CancellationToken,
    /// Fires behind that, when no message of the editor is left to be handled.
    pub(crate) handled: CancellationToken,
}

impl Inbox {
    /// The session has ended: refuses the commands that wait.
    fn close(&mut self) {
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            command.closed();
        }
    }
}

/// Signals a cancel, even when the queue of commands is full.
#[derive(Clone, Default)]
pub(crate) struct CancelBell(std::sync::Arc<Bell>);

#[derive(Default)]
struct Bell {
    rings: tokio::sync::Notify,
    rung: std::sync::Mutex<Rung>,
}

/// What is to be cancelled.
#[derive(Debug, Default)]
pub(crate) struct Rung {
    /// All open prompts.
    pub(crate) all: bool,
    /// The work of these subagents.
    pub(crate) agents: std::collections::BTreeSet<String>,
}

impl CancelBell {
    pub(crate) fn ring(&self) {
        self.rings(|rung| rung.all = true);
    }

    pub(crate) fn ring_for(&self, agent: String) {
        self.rings(|rung| {
            // No session has more subagents with sessions.
            if rung.agents.len() < children::MOST {
                rung.agents.insert(agent);
            }
        });
    }

    fn rings(&self, what: impl FnOnce(&mut Rung)) {
        what(
            &mut self
                .0
                .rung
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        self.0.rings.notify_one();
    }

    pub(crate) async fn rung(&self) -> Rung {
        self.0.rings.notified().await;
        self.take()
    }

    /// What has been rung for, without waiting.
    pub(crate) fn take(&self) -> Rung {
        std::mem::take(
            &mut *self
                .0
                .rung
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }
}

impl Handle {
    /// Sends a command, without waiting.
    pub(crate) fn command(&self, command: SessionCommand) {
        match self.commands.try_send(command) {
            Ok(()) => {}
            // A cancel must not be dropped.
            Err(mpsc::error::TrySendError::Full(SessionCommand::Cancel)) => self.cancel.ring(),
            Err(mpsc::error::TrySendError::Full(SessionCommand::CancelAgent(agent))) => {
                self.cancel.ring_for(agent)
            }
            Err(mpsc::error::TrySendError::Full(command)) => {
                command.refuse(error::internal(format!(
                    "the session is busy: {COMMANDS} requests wait already; wait for some of them to be answered"
                )));
            }
            Err(mpsc::error::TrySendError::Closed(command)) => command.refuse(closed()),
        }
    }

    /// Cancels all open prompts, or the work of a subagent. Their questions to the user end at once: the editor's next message may be
    /// an answer.
    pub(crate) fn cancel(&self, agent: Option<String>) {
        self.questions.cancel(agent.as_deref());
        self.command(match agent {
            Some(agent) => SessionCommand::CancelAgent(agent),
            None => SessionCommand::Cancel,
        });
    }

    /// Rewinds to an earlier prompt.
    pub(crate) fn rewind(&self, request: Rewind) -> SessionReply<Rewound> {
        self.answer_to(|reply| SessionCommand::Rewind { request, reply })
    }

    /// Sets the title, and returns whether the CLI has taken it.
    pub(crate) fn set_title(&self, title: String) -> SessionReply<bool> {
        self.answer_to(|reply| SessionCommand::SetTitle { title, reply })
    }

    /// Adds a prompt to the running turn.
    pub(crate) fn steer(&self, request: Steer) -> SessionReply<Steered> {
        self.answer_to(|reply| SessionCommand::Steer { request, reply })
    }

    /// Sends a command now, so that commands keep the order of the editor's requests.
    fn answer_to<T: Send + 'static>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> SessionCommand,
    ) -> SessionReply<T> {
        let (reply, answer) = oneshot::channel();
        self.command(command(reply));
        Box::pin(async move { answer.await.unwrap_or_else(|_| Err(closed())) })
    }

    /// Whether both are handles of one session.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.commands.same_channel(&other.commands)
    }

    /// Ends the session. Its questions to the user end at once. Neither a full queue nor a caller that goes away keeps it open.
    pub(crate) fn close(&self) {
        self.questions.cancel(None);
        self.end.cancel();
    }

    /// Whether the session ends, or has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Waits for the end of the session and of its process.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

/// The handle of a new session, what its task reads, and a guard to drop at its end. `stop` fires at the end of the connection, and
/// `handled` when it has handled all messages before.
pub(crate) fn new(
    questions: QuestionCancel,
    stop: &CancellationToken,
    handled: &CancellationToken,
) -> (Handle, Inbox, DropGuard) {
    let (commands, receiver) = mpsc::channel(COMMANDS);
    let handle = Handle {
        commands,
        cancel: CancelBell::default(),
        questions,
        end: stop.child_token(),
        ended: CancellationToken::new(),
    };
    let inbox = Inbox {
        commands: receiver,
        cancel: handle.cancel.clone(),
        end: handle.end.clone(),
        stop: stop.clone(),
        handled: handled.clone(),
    };
    let ended = handle.ended.clone().drop_guard();
    (handle, inbox, ended)
}
