//! A session: one task that owns the CLI's session, reads what it says in order, and answers the editor.

pub(crate) mod activity;
mod actor;
mod conversation;
mod early_orders;
mod flags;
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
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) use self::actor::{Actor, Inbox, Parts};
pub(crate) use self::early_orders::{Start, arrival};
use self::prompt_reply::PromptReply;
use crate::answer::Answer;
use crate::error;
use crate::rewind::{Rewind, Rewound};
use crate::steer::{Steer, Steered};

/// How many orders may wait for a session. Those of an editor that sends more are refused.
const ORDERS: usize = 256;

/// What a session is told to do.
pub(crate) enum Order {
    /// Says something to the model.
    Prompt {
        request: acp::PromptRequest,
        answer: PromptReply,
    },
    /// Says something to the model while it works.
    Steer {
        request: Steer,
        reply: oneshot::Sender<Result<Steered, Error>>,
    },
    /// Ends all prompts that are open.
    Cancel,
    SetMode {
        request: acp::SetSessionModeRequest,
        answer: Answer<acp::SetSessionModeResponse>,
    },
    SetOption {
        request: acp::SetSessionConfigOptionRequest,
        answer: Answer<acp::SetSessionConfigOptionResponse>,
    },
    /// Goes back to an earlier prompt.
    Rewind {
        request: Rewind,
        reply: oneshot::Sender<Result<Rewound, Error>>,
    },
    /// Gives the session a title; told with whether the CLI has taken it.
    SetTitle {
        title: String,
        reply: oneshot::Sender<Result<bool, Error>>,
    },
    /// Does something about its MCP servers.
    Mcp {
        wish: mcp_servers::Wish,
        reply: mcp_servers::Reply,
    },
    /// Ends the session, and then says so.
    Close(oneshot::Sender<()>),
}

impl Order {
    pub(crate) fn refuse(self, error: Error) {
        match self {
            Self::Prompt { answer, .. } => answer.refuse(error),
            Self::SetMode { answer, .. } => answer.refuse(error),
            Self::SetOption { answer, .. } => answer.refuse(error),
            // Whoever asked may have gone.
            Self::Rewind { reply, .. } => drop(reply.send(Err(error))),
            Self::SetTitle { reply, .. } => drop(reply.send(Err(error))),
            Self::Steer { reply, .. } => drop(reply.send(Err(error))),
            Self::Mcp { reply, .. } => drop(reply.send(Err(error))),
            Self::Cancel | Self::Close(_) => {}
        }
    }
}

/// A session that runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Handle {
    orders: mpsc::Sender<Order>,
    cancel: CancelBell,
}

/// Rings even when the queue of orders is full.
#[derive(Clone, Default)]
pub(crate) struct CancelBell(std::sync::Arc<tokio::sync::Notify>);

impl CancelBell {
    pub(crate) fn ring(&self) {
        self.0.notify_one();
    }

    pub(crate) async fn rung(&self) {
        self.0.notified().await;
    }
}

impl Handle {
    /// Hands an order on, without waiting.
    pub(crate) fn order(&self, order: Order) {
        match self.orders.try_send(order) {
            Ok(()) => {}
            // A cancel must not get lost.
            Err(mpsc::error::TrySendError::Full(Order::Cancel)) => self.cancel.ring(),
            Err(mpsc::error::TrySendError::Full(order)) => {
                order.refuse(error::internal(format!(
                    "the session is busy: {ORDERS} requests wait already; wait for some of them to be answered"
                )));
            }
            Err(mpsc::error::TrySendError::Closed(order)) => {
                order.refuse(error::internal("the session was closed"))
            }
        }
    }

    /// Goes back to an earlier prompt.
    pub(crate) async fn rewind(&self, request: Rewind) -> Result<Rewound, Error> {
        self.told(|reply| Order::Rewind { request, reply }).await
    }

    /// Gives the session a title, and returns whether the CLI has taken it.
    pub(crate) async fn set_title(&self, title: String) -> Result<bool, Error> {
        self.told(|reply| Order::SetTitle { title, reply }).await
    }

    /// Says something to the model while it works.
    pub(crate) async fn steer(&self, request: Steer) -> Result<Steered, Error> {
        self.told(|reply| Order::Steer { request, reply }).await
    }

    async fn told<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Order,
    ) -> Result<T, Error> {
        let (reply, told) = oneshot::channel();
        self.order(order(reply));
        match told.await {
            Ok(told) => told,
            Err(_) => Err(error::internal("the session was closed")),
        }
    }

    /// Whether both are of the same session.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.orders.same_channel(&other.orders)
    }

    /// Ends the session, and waits for that.
    pub(crate) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.orders.send(Order::Close(done)).await.is_ok() {
            // An error is as good: the task has ended.
            let _ = closed.await;
        }
    }
}

/// Both ends of a session's orders.
pub(crate) fn orders() -> (Handle, mpsc::Receiver<Order>, CancelBell) {
    let (orders, ordered) = mpsc::channel(ORDERS);
    let cancel = CancelBell::default();
    let handle = Handle {
        orders,
        cancel: cancel.clone(),
    };
    (handle, ordered, cancel)
}

/// What ends a session from outside: the end of the connection.
pub(crate) type Stop = CancellationToken;
