//! Every public future is polled a number of times and then dropped, for all numbers up to its end, and in three ways. The
//! session must go on as if nothing had been asked, and leave nothing behind at its end.
//!
//! The clock is paused and the peers are in memory, so the same polls happen in every run.

mod cases;
mod complete;
mod control;
mod leaks;
mod programs;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger::{Session, Verdict};
use outrigger_sim::peer::{Agent, Running};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::support::{PATIENCE, session};

/// When a future that was polled often enough is dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum When {
    /// Before anything else happens.
    AtOnce,
    /// When it would be polled again: what it waited for has happened, and it does not get to see that.
    Woken,
    /// After the rest of the world has gone on.
    Later,
}

/// How a future is given up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancel {
    pub(crate) polls: usize,
    pub(crate) when: When,
}

impl Cancel {
    /// Polls `future` so often and drops it then; its output if it came to its end before.
    pub(crate) async fn of<F: Future>(self, future: F) -> Option<F::Output> {
        let mut future = Box::pin(future);
        let mut left = self.polls;
        let polled = poll_fn(|cx| {
            if left == 0 {
                return Poll::Ready(None);
            }
            left -= 1;
            match future.as_mut().poll(cx) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending if left == 0 && self.when != When::Woken => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        });
        // One that nothing wakes any more is dropped all the same.
        let output = timeout(2 * PATIENCE, polled).await.ok().flatten();
        if output.is_none() && self.when == When::Later {
            sleep(Duration::from_millis(300)).await;
        }
        output
    }
}

/// A call that is given up, in a session that is idle. Tells whether it came to its end.
struct Case {
    /// `Type::method`, as [`complete`] finds it in the source.
    name: &'static str,
    /// Whether the session has ended once this has, or may have.
    ends: bool,
    run: Box<dyn Fn(Session, Cancel) -> BoxFuture<'static, bool>>,
}

fn case<F>(name: &'static str, run: impl Fn(Session, Cancel) -> F + 'static) -> Case
where
    F: Future<Output = bool> + Send + 'static,
{
    Case {
        name,
        ends: false,
        run: Box::new(move |session, cancel| Box::pin(run(session, cancel))),
    }
}

impl Case {
    fn ends_the_session(mut self) -> Self {
        self.ends = true;
        self
    }
}

/// Longer than all deadlines of a case together.
const HANGS: Duration = Duration::from_secs(3600);

/// More polls than any future here takes until it is done.
const ENOUGH: usize = 200;

/// Gives a call up after each number of polls, until it comes to its end, and in each way.
async fn survives(case: &Case) {
    for when in [When::AtOnce, When::Woken, When::Later] {
        let mut ground = None;
        for polls in 0.. {
            assert!(polls < ENOUGH, "{} does not end ({when:?})", case.name);
            let cancel = Cancel { polls, when };
            let (session, running) = match ground.take() {
                Some(ground) => ground,
                None => self::session(agent()).await,
            };
            let what = format!("{} dropped after {polls} polls ({when:?})", case.name);
            let ended = timeout(HANGS, (case.run)(session.clone(), cancel))
                .await
                .unwrap_or_else(|_| panic!("it hangs: {what}, {:?}", session.stats()));
            if case.ends {
                if session.prompt("%say still here").await.is_ok() {
                    // It was given up before it had any effect, or is taking effect now.
                    sleep(Duration::from_secs(30)).await;
                }
                closes(session, &running, &what).await;
            } else {
                still_works(&session, &what).await;
                ground = Some((session, running));
            }
            if ended {
                break;
            }
        }
        if let Some((session, running)) = ground {
            closes(session, &running, case.name).await;
        }
    }
}

/// The peer of these tests.
fn agent() -> outrigger_sim::peer::agent::Builder {
    Agent::builder()
        .allowed_tools(["Bash"])
        .latency(Duration::from_millis(3))
}

/// The session takes a prompt, answers for it, and answers a request; nothing is left over of what was before.
async fn still_works(session: &Session, after: &str) {
    let prompted = async {
        let mut turn = session.prompt("%say mine").await.unwrap();
        let (text, outcome) = turn.text().await.unwrap();
        assert_eq!(
            (text.as_str(), outcome.result_text(), outcome.verdict()),
            ("mine", "mine", &Verdict::Completed),
            "{after}"
        );
        assert_eq!(outcome.prompts(), [turn.id().to_string()], "{after}");
    };
    timeout(PATIENCE, prompted)
        .await
        .unwrap_or_else(|_| panic!("no turn of its own: {after}, {:?}", session.stats()));
    timeout(PATIENCE, session.mcp_status())
        .await
        .unwrap_or_else(|_| panic!("no answer: {after}"))
        .unwrap();
    session
        .wait_run_end(PATIENCE)
        .await
        .unwrap_or_else(|error| panic!("{error}: {after}"));
    // A cancellation may still be on its way.
    sleep(Duration::from_secs(1)).await;
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
    assert_eq!(left, (0, 0, 0, 0, 0, 0, 0), "{after}: {stats:?}");
}

/// The session ends in good order and leaves no task behind; each request of either side was answered at most once.
async fn closes(session: Session, running: &Arc<Running>, after: &str) {
    timeout(PATIENCE, session.close())
        .await
        .unwrap_or_else(|_| panic!("it does not close: {after}"))
        .unwrap_or_else(|error| panic!("{error}: {after}"));
    no_tasks(after).await;
    in_order(running, after);
}

/// All tasks of this runtime have ended: those of sessions and those of peers.
async fn no_tasks(after: &str) {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    for _ in 0..100 {
        if tasks() == 0 {
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
    panic!("{} tasks are left: {after}", tasks());
}

/// What the peer saw of control requests is in order.
fn in_order(running: &Running, after: &str) {
    let report = running.report();
    let ids = |lines: Vec<&serde_json::Value>, kind: &str| -> Vec<String> {
        let of_kind = lines.into_iter().filter(|line| line["type"] == kind);
        let id = |line: &serde_json::Value| {
            let outer = &line["request_id"];
            let id = if outer.is_null() {
                &line["response"]["request_id"]
            } else {
                outer
            };
            id.to_string()
        };
        of_kind.map(id).collect()
    };
    let (sent, received) = (|| report.sent().collect(), || report.received().collect());
    let count = |ids: &[String], id: &String| ids.iter().filter(|other| *other == id).count();
    let answers = ids(received(), "control_response");
    let withdrawn = ids(sent(), "control_cancel_request");
    for asked in ids(sent(), "control_request") {
        let answers = count(&answers, &asked);
        let wanted = answers == 1 || (answers == 0 && withdrawn.contains(&asked));
        assert!(
            wanted || report.exit.is_some() && answers == 0,
            "request {asked} has {answers} answers: {after}"
        );
    }
    let asked = ids(received(), "control_request");
    let cancelled = ids(received(), "control_cancel_request");
    let place = |kind: &str, id: &String| {
        let id: serde_json::Value = serde_json::from_str(id).unwrap();
        report
            .received()
            .position(|line| line["type"] == kind && line["request_id"] == id)
    };
    for id in &cancelled {
        assert!(
            place("control_request", id) < place("control_cancel_request", id),
            "the cancellation of {id} has overtaken it: {after}"
        );
        assert_eq!(
            (count(&asked, id), count(&cancelled, id)),
            (1, 1),
            "cancellation of {id}: {after}"
        );
    }
}
