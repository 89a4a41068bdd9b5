//! The program's side: calls in any order, given up anywhere.

use std::time::Duration;

use outrigger::protocol::outbound::control::McpStatus;
use outrigger::{Ambient, Frames, Outcome, OutcomeWatch, Session, Turn};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::peer::Peer;
use super::{ETERNITY, Input};

/// More of anything than this tells nothing new.
const MANY: usize = 32;

pub(super) struct Program {
    session: Option<Session>,
    turns: Vec<Turn>,
    /// Prompts and what waits for their outcome.
    outcomes: Vec<(String, OutcomeWatch)>,
    /// Calls that wait for something, each in a task of its own.
    calls: Vec<JoinHandle<()>>,
    frames: Vec<Frames>,
    ambient: Vec<Ambient>,
    closing: bool,
}

impl Program {
    pub(super) fn new(session: Session) -> Self {
        Self {
            session: Some(session),
            turns: Vec::new(),
            outcomes: Vec::new(),
            calls: Vec::new(),
            frames: Vec::new(),
            ambient: Vec::new(),
            closing: false,
        }
    }

    fn session(&self) -> &Session {
        self.session.as_ref().expect("it is there until the end")
    }

    /// What the session says about itself makes sense.
    pub(super) fn look(&self) {
        let stats = self.session().stats();
        assert!(stats.open_prompts <= self.outcomes.len(), "{stats:?}");
        assert!(stats.unanswered_by_cli <= self.calls.len() + 1, "{stats:?}");
        let open = self
            .outcomes
            .iter()
            .filter(|(_, watch)| watch.now().is_none())
            .count();
        assert_eq!(open, stats.open_prompts, "{stats:?}");
    }

    fn spawn<R>(&mut self, call: impl Future<Output = R> + Send + 'static) {
        if self.calls.len() < MANY {
            self.calls.push(tokio::spawn(async move {
                call.await;
            }));
        }
    }

    pub(super) async fn step(&mut self, step: u8, input: &mut Input<'_>) {
        let session = self.session().clone();
        match step % 16 {
            0..=3 => {
                if self.outcomes.len() >= MANY {
                    return;
                }
                let text = format!("prompt {}", self.outcomes.len());
                let turn = match step % 16 {
                    0 => session.prompt(text).await,
                    1 => session.queue(text).await,
                    2 => session.steer(text).await,
                    _ => session.prompt_now(text).await,
                };
                match turn {
                    Ok(turn) => {
                        self.outcomes.push((turn.id().to_string(), turn.watch()));
                        self.turns.push(turn);
                    }
                    Err(error) => assert!(error.is_closed() || error.is_busy(), "{error}"),
                }
            }
            4 => {
                if let Some(at) = which(&self.turns, input) {
                    drop(self.turns.swap_remove(at));
                }
            }
            5 => {
                if let Some(at) = which(&self.turns, input) {
                    let mut turn = self.turns.swap_remove(at);
                    self.spawn(async move { turn.text().await });
                }
            }
            6 => {
                if let Some(at) = which(&self.turns, input) {
                    let next = self.turns[at].next();
                    let _ = timeout(Duration::from_millis(1), next).await;
                }
            }
            7 => {
                if let Some(at) = which(&self.turns, input) {
                    let turn = self.turns.swap_remove(at);
                    self.spawn(async move { turn.cancel().await });
                }
            }
            8 => self.spawn(async move { session.interrupt().await }),
            9 => self.spawn(async move { session.interrupt_and_cancel_queued().await }),
            10 => {
                let within = Duration::from_millis(1 << (input.byte() % 20));
                self.spawn(async move { session.request_within(&McpStatus::new(), within).await });
            }
            11 => {
                if let Some(at) = which(&self.calls, input) {
                    // Given up wherever it is.
                    self.calls.swap_remove(at).abort();
                }
            }
            12 => self.spawn(async move { session.wait_run_end(Duration::from_secs(30)).await }),
            13 => match input.byte() % 6 {
                0 if self.frames.len() < 4 => self.frames.push(session.frames()),
                1 if self.ambient.len() < 4 => self.ambient.push(session.ambient()),
                2 => drop(self.frames.pop()),
                3 => drop(self.ambient.pop()),
                4 => {
                    if let Some(frames) = self.frames.last_mut() {
                        let _ = timeout(Duration::from_millis(1), frames.next()).await;
                    }
                }
                _ => {
                    if let Some(ambient) = self.ambient.last_mut() {
                        let _ = timeout(Duration::from_millis(1), ambient.next()).await;
                    }
                }
            },
            14 => sleep(Duration::from_millis(1 << (input.byte() % 18))).await,
            _ => {
                self.closing = true;
                self.spawn(async move {
                    match session.clone().close().await {
                        Ok(_) => session.wait_ended().await,
                        Err(error) => error,
                    }
                })
            }
        }
    }

    /// Ends the session in one of the ways there are.
    pub(super) async fn end(&mut self, how: u8) {
        let session = self.session().clone();
        match how % 3 {
            0 => drop(timeout(ETERNITY, session.close()).await.expect("closing ends")),
            1 => drop(timeout(ETERNITY, session.kill()).await.expect("killing ends")),
            _ => {
                drop(session);
                self.session = None;
                self.turns.clear();
            }
        }
    }

    /// Whether the program itself has begun to end the session.
    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whoever waits gets an answer, and it is his own.
    pub(super) async fn everything_resolves(mut self, peer: &Peer, attributed: bool) {
        for call in self.calls.drain(..) {
            match timeout(ETERNITY, call).await.expect("a call does not resolve") {
                Ok(()) => {}
                Err(error) => assert!(error.is_cancelled(), "{error}"),
            }
        }
        for (id, watch) in &self.outcomes {
            let outcome = timeout(ETERNITY, watch.outcome())
                .await
                .expect("an outcome does not come");
            if let Ok(outcome) = outcome {
                self::is_own(&outcome, id, peer, attributed);
            }
        }
        if let Some(session) = &self.session {
            let error = session.prompt("too late").await.expect_err("it has ended");
            assert!(error.is_closed(), "{error}");
            let error = session.mcp_status().await.expect_err("it has ended");
            assert!(error.is_closed(), "{error}");
            for turn in &mut self.turns {
                while let Some(event) = timeout(ETERNITY, turn.next()).await.expect("events end") {
                    drop(event);
                }
            }
            self.turns.clear();
            self.frames.clear();
            self.ambient.clear();
            let stats = session.stats();
            let left = (
                stats.open_prompts,
                stats.held_prompt_bytes,
                stats.unanswered_by_cli,
                stats.unanswered_by_us,
                stats.lagging_frames,
                stats.held_bytes,
                stats.spilled_bytes,
            );
            assert_eq!(left, (0, 0, 0, 0, 0, 0, 0), "{stats:?}");
        }
    }
}

/// A result that a turn ended by is about its prompt.
fn is_own(outcome: &Outcome, id: &str, peer: &Peer, attributed: bool) {
    assert!(
        outcome.prompts().iter().any(|prompt| prompt == id),
        "{id} got {outcome:?}"
    );
    if attributed && outcome.result_text().starts_with("result ") {
        let is_foreign = outcome.origin().is_some_and(|origin| origin != "human");
        let is_guessed = !is_foreign && peer.was_silent_at(outcome.result_text());
        assert!(
            peer.was_named(id) || is_guessed,
            "{id} was never named, and got {outcome:?}"
        );
    }
}

/// One of a list, as the next byte says.
fn which<T>(list: &[T], input: &mut Input<'_>) -> Option<usize> {
    let byte = usize::from(input.byte());
    (!list.is_empty()).then(|| byte % list.len())
}
