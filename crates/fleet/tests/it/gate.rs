//! The gate, with simulated CLIs and paused time.

use std::sync::Mutex;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use outrigger::testing::Simulated;
use outrigger::{Cause, Event, Turn};
use outrigger_fleet::GuardedTurn;
use outrigger_fleet::gate::{Gate, GateError, GateLimits, GatePhase, Pass, Visitor};
use tokio::time::Instant;

fn guarded(pass: Pass, turn: Turn) -> GuardedTurn {
    GuardedTurn::new(turn).pass(pass)
}

fn limits(change: impl FnOnce(&mut GateLimits)) -> GateLimits {
    let mut limits = GateLimits::default();
    change(&mut limits);
    limits
}

#[tokio::test(start_paused = true)]
async fn a_pass_is_a_place_and_whoever_gives_up_leaves_none_behind() {
    let gate = Gate::new(limits(|limits| {
        limits.max_running = 1;
        limits.max_waiting = 2;
    }));
    let first = gate.enter(Visitor::new("a")).await.unwrap();
    let mut second = Box::pin(gate.enter(Visitor::new("b")));
    let mut third = Box::pin(gate.enter(Visitor::new("c")));
    assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
    let error = gate.enter(Visitor::new("d")).await.unwrap_err();
    assert!(matches!(error, GateError::Full { waiting: 2, .. }), "{error}");
    assert_eq!((gate.state().running, gate.state().waiting), (1, 2));

    // The pass is granted to the second visitor, which goes before it takes it.
    drop(first);
    assert_eq!((gate.state().running, gate.state().waiting), (1, 1));
    drop(second);
    let third = third.now_or_never().unwrap().unwrap();
    assert_eq!((gate.state().running, gate.state().waiting), (1, 0));

    let patient = Visitor::new("e").patience(Duration::from_secs(2));
    let before = Instant::now();
    let error = gate.enter(patient).await.unwrap_err();
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert!(
        error
            .to_string()
            .contains("within 2s: the gate is open; 1 turns run"),
        "{error}"
    );
    assert_eq!(gate.state().waiting, 0);
    drop(third);
    assert_eq!(gate.state().running, 0);
}

#[tokio::test(start_paused = true)]
async fn one_refusal_holds_all_sessions_back_until_a_probe_is_answered() {
    let gate = Gate::new(GateLimits::default());
    let mut changes = gate.changes();
    let cli = Simulated::agent(|agent| agent);
    let (one, other) = (
        cli.options().start().await.unwrap(),
        cli.options().start().await.unwrap(),
    );

    let pass = gate.enter(Visitor::new("one")).await.unwrap();
    let mut turn = guarded(
        pass,
        one.prompt("%error 429 n=1\n%delay 60000\n%say late")
            .await
            .unwrap(),
    );
    // The CLI reports its first retry.
    while gate.state().phase == GatePhase::Open {
        turn.next().await.unwrap().unwrap();
    }
    let GatePhase::Closed(until) = changes.next().await else {
        panic!("not closed")
    };
    assert!(until > Instant::now());

    let pass = gate.enter(Visitor::new("other")).await.unwrap();
    assert!(Instant::now() >= until);
    assert_eq!(gate.state().phase, GatePhase::Probing);
    let third = Visitor::new("third").patience(Duration::from_secs(3600));
    let mut third = Box::pin(gate.enter(third));
    assert!(third.as_mut().now_or_never().is_none());

    let mut probe = guarded(pass, other.prompt("%say quick").await.unwrap());
    // The answer opens the gate when it begins, and not when the turn ends.
    loop {
        let event = probe.next().await.unwrap().unwrap();
        if matches!(event, Event::MessageStart { .. }) {
            break;
        }
    }
    assert_eq!(gate.state().phase, GatePhase::Open);
    assert_eq!(gate.state().running, 3);
    drop(third.now_or_never().unwrap().unwrap());
    assert_eq!(probe.answer().await.unwrap().text(), "quick");
    assert_eq!(turn.answer().await.unwrap().text(), "late");
    assert_eq!(gate.state().running, 0);
}

#[tokio::test(start_paused = true)]
async fn other_failures_do_not_close_the_gate() {
    let gate = Gate::new(GateLimits::default());
    let cli = Simulated::agent(|agent| agent);
    let session = cli.options().start().await.unwrap();
    for prompt in [
        "%error 400 n=9\n%say no",
        "%error 500 n=1\n%say yes",
        "%say <synthetic>",
    ] {
        let pass = gate.enter(Visitor::new("a")).await.unwrap();
        let _ = guarded(pass, session.prompt(prompt).await.unwrap())
            .outcome()
            .await
            .unwrap();
        assert_eq!(gate.state().phase, GatePhase::Open, "{prompt}");
    }
    gate.close_for(Duration::from_secs(60));
    let before = Instant::now();
    let pass = gate.enter(Visitor::new("a")).await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(60));
    drop(pass);
    gate.open();
    assert_eq!(gate.state().phase, GatePhase::Open);
}

/// An account whose API refuses requests in one stretch of time.
struct Account {
    refuses: std::ops::Range<Instant>,
    /// When each turn began that was refused.
    refused: Mutex<Vec<Instant>>,
}

impl Account {
    /// What the model does with a prompt that comes now.
    fn prompt(&self) -> &'static str {
        let now = Instant::now();
        if self.refuses.contains(&now) {
            self.refused.lock().unwrap().push(now);
            "%error 529 n=99\n%say never"
        } else {
            "%delay 1000\n%say done"
        }
    }
}

/// Fifty sessions with four turns each; the API is overloaded for a minute. What begins in that time are the turns that nobody could
/// know about, and one probe for each closing.
#[tokio::test(start_paused = true)]
async fn fifty_sessions_leave_an_overloaded_api_alone_and_all_of_them_end() {
    let gate = Gate::new(limits(|limits| limits.max_running = 10));
    let began = Instant::now();
    let account = Account {
        refuses: began + Duration::from_millis(3500)..began + Duration::from_millis(63_500),
        refused: Mutex::default(),
    };
    let cli = Simulated::agent(|agent| agent);
    let sessions = join_all((0..50).map(|_| cli.options().start())).await;
    let turns = sessions.into_iter().enumerate().map(|(index, session)| {
        let (gate, account) = (&gate, &account);
        async move {
            let session = session.unwrap();
            let mut answered = 0;
            while answered < 4 {
                let pass = gate.enter(Visitor::new(index.to_string())).await.unwrap();
                let turn = session.prompt(account.prompt()).await.unwrap();
                let outcome = guarded(pass, turn).outcome().await.unwrap();
                match outcome.cause() {
                    None => answered += 1,
                    Some(cause) => assert_eq!(cause, Cause::Api { status: Some(529) }),
                }
            }
            session.close().await.unwrap();
        }
    });
    join_all(turns).await;
    assert_eq!(gate.state().running + gate.state().waiting, 0);
    assert_eq!(gate.state().phase, GatePhase::Open);

    let refused = account.refused.into_inner().unwrap();
    let first = *refused.first().expect("some turn was refused");
    // Ten turns run at once, and may all have been refused before the gate knew.
    let at_once = refused
        .iter()
        .filter(|at| at.duration_since(first) < Duration::from_millis(100))
        .count();
    assert!(at_once <= 10, "{at_once}");
    let probes = refused.len() - at_once;
    // Each closing is twice as long as the one before: fewer than ten in a minute, were it not for the retries of the CLI itself.
    assert!(probes <= 10, "{probes} probes");
}
