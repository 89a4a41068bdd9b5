//! A receiver of messages in memory, which does what the test says.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use outrigger_host::log::BoxFuture;
use outrigger_host_hooks::{Deliver, DeliveryError, Message};
use serde_json::Value;
use tokio::sync::mpsc;

/// What it answers to the message of this number, counted from 0.
type Answers = dyn Fn(usize) -> Answer + Send + Sync;

pub(crate) enum Answer {
    Taken,
    Refused(DeliveryError),
    /// Refused, once another task had its turn.
    RefusedLater(DeliveryError),
    /// None at all.
    Silence,
    /// Taken, once another task had its turn.
    TakenLater,
}

pub(crate) struct Receiver {
    answers: Box<Answers>,
    count: AtomicUsize,
    at_once: AtomicUsize,
    pub(crate) most_at_once: AtomicUsize,
    pub(crate) answered: AtomicUsize,
    attempts: mpsc::UnboundedSender<Message>,
    pub(crate) seen: Mutex<HashMap<String, usize>>,
}

/// The attempts, in their order.
pub(crate) struct Attempts(mpsc::UnboundedReceiver<Message>);

impl Receiver {
    pub(crate) fn new(answers: impl Fn(usize) -> Answer + Send + Sync + 'static) -> (Arc<Self>, Attempts) {
        let (attempts, received) = mpsc::unbounded_channel();
        let receiver = Self {
            answers: Box::new(answers),
            count: AtomicUsize::new(0),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            attempts,
            seen: Mutex::default(),
        };
        (Arc::new(receiver), Attempts(received))
    }

    async fn take(&self, message: Message) -> Result<(), DeliveryError> {
        let at_once = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(at_once, Ordering::SeqCst);
        let id = message.id.clone();
        let _ = self.attempts.send(message);
        let answer = match (self.answers)(self.count.fetch_add(1, Ordering::SeqCst)) {
            Answer::Refused(error) => Err(error),
            Answer::Silence => std::future::pending().await,
            Answer::Taken => Ok(()),
            Answer::TakenLater => {
                others().await;
                Ok(())
            }
            Answer::RefusedLater(error) => {
                others().await;
                Err(error)
            }
        };
        if answer.is_ok() {
            *self.seen.lock().unwrap().entry(id).or_default() += 1;
        }
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        self.answered.fetch_add(1, Ordering::SeqCst);
        answer
    }
}

/// Lets other tasks have their turns.
async fn others() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

impl Deliver for Receiver {
    fn deliver(&self, message: Message) -> BoxFuture<'_, Result<(), DeliveryError>> {
        Box::pin(self.take(message))
    }
}

impl Attempts {
    pub(crate) async fn next(&mut self) -> Message {
        self.0.recv().await.unwrap()
    }

    /// The body of the next one.
    pub(crate) async fn body(&mut self) -> Value {
        serde_json::from_str(&self.next().await.body).unwrap()
    }

    /// The names of the states in the next ones.
    pub(crate) async fn states(&mut self, count: usize) -> Vec<String> {
        let mut states = Vec::new();
        for _ in 0..count {
            states.push(self.body().await["data"]["state"].as_str().unwrap().to_owned());
        }
        states
    }

    pub(crate) fn is_empty(&mut self) -> bool {
        self.0.try_recv().is_err()
    }
}
