//! A gate over a store, with two processes' worth of gates, simulated CLIs, and paused time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use outrigger::Cause;
use outrigger::sessions::store::{BoxFuture, Result, StoreError, StoreErrorKind, StoredValue, ValueStore};
use outrigger::testing::Simulated;
use outrigger_fleet::GuardedTurn;
use outrigger_fleet::gate::{Gate, GateError, GateLimits, GatePhase, Visitor};
use tokio::time::Instant;

/// A store in memory, whose clock is tokio's.
#[derive(Debug)]
struct Memory {
    began: Instant,
    values: Mutex<HashMap<String, (u64, String)>>,
    /// Whether it does not answer.
    silent: AtomicBool,
    /// Of how many writes the reply is lost yet.
    lost: AtomicUsize,
}

impl Memory {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            values: Mutex::default(),
            silent: AtomicBool::new(false),
            lost: AtomicUsize::new(0),
        })
    }

    fn check(&self) -> Result<()> {
        match self.silent.load(Ordering::Relaxed) {
            true => Err(StoreError::new(StoreErrorKind::Failed, "pulled the plug")),
            false => Ok(()),
        }
    }
}

impl ValueStore for Memory {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StoredValue>> {
        Box::pin(async move {
            // Others come in between.
            tokio::task::yield_now().await;
            self.check()?;
            let (version, text) = self.values.lock().unwrap().get(name).cloned().unwrap_or_default();
            let now = Duration::from_secs(1_700_000_000) + self.began.elapsed();
            Ok(StoredValue::new(version, text, now))
        })
    }

    fn replace<'a>(&'a self, name: &'a str, version: u64, text: &'a str) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.check()?;
            {
                let mut values = self.values.lock().unwrap();
                let (stored, value) = values.entry(name.to_owned()).or_default();
                if *stored != version {
                    return Ok(false);
                }
                *stored += 1;
                text.clone_into(value);
            }
            let lost = self
                .lost
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            match lost {
                Ok(_) => Err(StoreError::new(StoreErrorKind::Failed, "the reply is lost")),
                Err(_) => Ok(true),
            }
        })
    }
}

async fn gate(store: &Arc<Memory>, change: impl FnOnce(&mut GateLimits)) -> Gate {
    let mut limits = GateLimits::default();
    change(&mut limits);
    Gate::over(store.clone(), "account", limits).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn two_processes_share_places_and_what_one_of_them_learns() {
    let store = Memory::new();
    let one = gate(&store, |limits| limits.max_running = 1).await;
    let two = gate(&store, |limits| limits.max_running = 1).await;
    let pass = one.enter(Visitor::new("a")).await.unwrap();
    let error = two
        .enter(Visitor::new("b").patience(Duration::from_secs(5)))
        .await
        .unwrap_err();
    assert!(matches!(error, GateError::Patience { .. }), "{error}");
    assert!(error.to_string().contains("1 turns run"), "{error}");

    let before = Instant::now();
    let entering = two.enter(Visitor::new("b"));
    let leaving = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(pass);
    };
    let (pass, ()) = tokio::join!(entering, leaving);
    assert!(
        before.elapsed() < Duration::from_millis(1300),
        "{:?}",
        before.elapsed()
    );
    drop(pass.unwrap());

    // One is told to wait, and the other one waits, too.
    one.close_for(Duration::from_secs(60));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let before = Instant::now();
    let pass = two.enter(Visitor::new("b")).await.unwrap();
    let waited = before.elapsed();
    assert!(
        waited >= Duration::from_secs(59) && waited < Duration::from_secs(61),
        "{waited:?}"
    );
    assert_eq!(two.state().phase, GatePhase::Probing);
    // Somebody knows better.
    one.open();
    let other = one.enter(Visitor::new("a").patience(Duration::from_secs(1)));
    assert!(matches!(other.await.unwrap_err(), GateError::Patience { .. }));
    drop(pass);
    drop(one.enter(Visitor::new("a")).await.unwrap());
    assert_eq!(one.state().phase, GatePhase::Open);
}

#[tokio::test(start_paused = true)]
async fn the_places_of_a_process_that_is_gone_are_free_again() {
    let store = Memory::new();
    let one = gate(&store, |limits| limits.max_running = 2).await;
    // A process that dies, with one turn that runs and one visitor: its runtime ends, and nobody drops anything.
    let dead = Arc::clone(&store);
    let began = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let held = runtime.block_on(async {
            let gate = gate(&dead, |limits| limits.max_running = 2).await;
            let passes = [
                gate.enter(Visitor::new("d")).await.unwrap(),
                gate.enter(Visitor::new("d")).await.unwrap(),
            ];
            (passes, gate)
        });
        drop(runtime);
        std::mem::forget(held);
    });
    began.join().unwrap();
    let before = Instant::now();
    let pass = one.enter(Visitor::new("a")).await.unwrap();
    let waited = before.elapsed();
    assert!(
        waited > Duration::from_secs(15) && waited < Duration::from_secs(31),
        "{waited:?}"
    );

    // One that goes in good order gives its place up at once, and so does a visitor who does not wait any longer.
    let two = gate(&store, |limits| limits.max_running = 2).await;
    let other = two.enter(Visitor::new("b")).await.unwrap();
    let mut impatient = Box::pin(one.enter(Visitor::new("a")));
    assert!(impatient.as_mut().now_or_never().is_none());
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!((one.state().running, one.state().waiting), (2, 1));
    drop(impatient);
    drop((other, two));
    let before = Instant::now();
    let another = one.enter(Visitor::new("a")).await.unwrap();
    assert!(
        before.elapsed() < Duration::from_secs(1),
        "{:?}",
        before.elapsed()
    );
    drop((pass, another));
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!((one.state().running, one.state().waiting), (0, 0));
}

/// Neither who waits already, nor who comes later.
#[test]
fn nobody_waits_for_a_task_that_went_with_its_runtime() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let (first, second) = (runtime(), runtime());
    let store = Memory::new();
    let gate = first.block_on(gate(&store, |limits| limits.max_running = 1));
    let held = first.block_on(gate.enter(Visitor::new("a"))).unwrap();
    let mut waits = Box::pin(gate.enter(Visitor::new("b")));
    assert!(waits.as_mut().now_or_never().is_none());
    drop(first);
    let comes = gate.enter(Visitor::new("c"));
    let ends =
        async { tokio::time::timeout(Duration::from_secs(60), async { (waits.await, comes.await) }).await };
    let (waited, came) = second.block_on(ends).unwrap();
    for end in [waited, came] {
        let error = end.unwrap_err();
        assert!(error.to_string().contains("ended with its runtime"), "{error}");
    }
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn no_time_is_too_long_for_a_gate() {
    for gate in [
        Gate::new(GateLimits::default()),
        gate(&Memory::new(), |_| {}).await,
    ] {
        gate.close_for(Duration::MAX);
        let visitor = Visitor::new("a").patience(Duration::from_secs(60));
        let error = gate.enter(visitor).await.unwrap_err();
        assert!(matches!(error, GateError::Patience { .. }), "{error}");
        let GatePhase::Closed(until) = gate.state().phase else {
            panic!("{}", gate.state())
        };
        assert!(until - Instant::now() > Duration::from_secs(360 * 24 * 3600));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_begins_while_the_store_is_silent_and_a_lost_reply_loses_no_place() {
    let store = Memory::new();
    let one = gate(&store, |limits| limits.max_running = 1).await;
    let pass = one.enter(Visitor::new("a")).await.unwrap();
    store.silent.store(true, Ordering::Relaxed);
    let before = Instant::now();
    let error = one.enter(Visitor::new("b")).await.unwrap_err();
    let waited = before.elapsed();
    assert!(error.to_string().contains("pulled the plug"), "{error}");
    assert!(
        waited >= Duration::from_secs(30) && waited < Duration::from_secs(41),
        "{waited:?}"
    );
    let error = Gate::over(store.clone(), "account", GateLimits::default())
        .await
        .unwrap_err();
    assert!(matches!(error, GateError::Store { .. }), "{error}");

    // What happened meanwhile is told later: the turn has ended, and the API refused another one.
    drop(pass);
    one.close_for(Duration::from_secs(20));
    store.silent.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(one.state().running, 0);
    assert!(matches!(one.state().phase, GatePhase::Closed(_)));
    store.lost.store(2, Ordering::Relaxed);
    let before = Instant::now();
    let pass = one.enter(Visitor::new("b")).await.unwrap();
    let waited = before.elapsed();
    assert!(
        waited >= Duration::from_secs(18) && waited < Duration::from_secs(21),
        "{waited:?}"
    );
    assert_eq!((one.state().running, one.state().waiting), (1, 0));
    drop(pass);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!((one.state().running, one.state().waiting), (0, 0));
}

/// Fifty sessions in two processes, with four turns each; the API refuses everything for a minute, and says when it will not. What it
/// sees in that time are the turns that nobody could know about, and the probes.
#[tokio::test(start_paused = true)]
async fn fifty_sessions_of_two_processes_leave_an_overloaded_api_alone() {
    let store = Memory::new();
    let gates = [
        gate(&store, |limits| limits.max_running = 10).await,
        gate(&store, |limits| limits.max_running = 10).await,
    ];
    let began = Instant::now();
    let refuses = began + Duration::from_millis(3500)..began + Duration::from_millis(63_500);
    let refused = Mutex::new(Vec::new());
    let cli = Simulated::agent(|agent| agent);
    let sessions = join_all((0..50).map(|_| cli.options().start())).await;
    let turns = sessions.into_iter().enumerate().map(|(index, session)| {
        let (gate, refuses, refused) = (&gates[index % 2], &refuses, &refused);
        async move {
            let session = session.unwrap();
            let mut answered = 0;
            while answered < 4 {
                let pass = gate.enter(Visitor::new(index.to_string())).await.unwrap();
                let now = Instant::now();
                let prompt = if refuses.contains(&now) {
                    refused.lock().unwrap().push(now);
                    "%error 529 n=99\n%say never"
                } else {
                    "%delay 1000\n%say done"
                };
                let turn = session.prompt(prompt).await.unwrap();
                let outcome = GuardedTurn::new(turn).pass(pass).outcome().await.unwrap();
                match outcome.cause() {
                    None => answered += 1,
                    Some(cause) => assert_eq!(cause, Cause::Api { status: Some(529) }),
                }
            }
            session.close().await.unwrap();
        }
    });
    join_all(turns).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    for gate in &gates {
        // A process without visitors and turns hears of the others when it enters again.
        drop(gate.enter(Visitor::new("last")).await.unwrap());
        assert_eq!(gate.state().phase, GatePhase::Open);
    }
    let refused = refused.into_inner().unwrap();
    let first = *refused.first().expect("some turn was refused");
    let at_once = refused
        .iter()
        .filter(|at| at.duration_since(first) < Duration::from_millis(300))
        .count();
    assert!(at_once <= 10, "{at_once}");
    let probes = refused.len() - at_once;
    assert!(probes <= 10, "{probes} probes");
}

#[tokio::test(start_paused = true)]
async fn priorities_hold_between_processes_and_age_there_too() {
    let store = Memory::new();
    let limits = |limits: &mut GateLimits| limits.max_running = 1;
    let (one, two) = (gate(&store, limits).await, gate(&store, limits).await);
    for (head_start, expected) in [
        // The priority counts, wherever its visitor waits.
        (Duration::from_secs(1), ["high", "low"]),
        // One that has waited for long is not passed by whoever is more important by less than its wait.
        (Duration::from_secs(200), ["low", "high"]),
    ] {
        let order = Arc::new(Mutex::new(Vec::new()));
        let enter = |gate: &Gate, name: &'static str, priority: i32| {
            let (gate, order) = (gate.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                let pass = gate.enter(Visitor::new(name).priority(priority)).await.unwrap();
                order.lock().unwrap().push(name);
                tokio::time::sleep(Duration::from_secs(5)).await;
                drop(pass);
            })
        };
        let held = one.enter(Visitor::new("holder")).await.unwrap();
        let low = enter(&one, "low", 0);
        tokio::time::sleep(head_start).await;
        let high = enter(&two, "high", 5);
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(held);
        low.await.unwrap();
        high.await.unwrap();
        assert_eq!(*order.lock().unwrap(), expected, "{head_start:?}");
    }
}
