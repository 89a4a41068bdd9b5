//! Whatever the order of requests, answers, withdrawals and repetitions: exactly one answer, none after a withdrawal, and nothing
//! left over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::permissions::{PermissionDecision, PermissionRequest, PermissionResult};
use outrigger::{Ambient, AmbientEvent, Event, Session};
use outrigger_sim::peer::faulty::frames;
use proptest::prelude::*;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Wire, agent, asked, bash};

/// The requests that there are.
const IDS: u8 = 5;

#[derive(Debug, Clone, Copy)]
enum Says {
    Allow,
    Deny,
    Park,
    Panic,
    /// Ends without saying anything: its future waits for ever.
    Nothing,
}

#[derive(Debug, Clone)]
enum Step {
    /// The CLI asks, or asks again.
    Ask(u8),
    /// The handler comes to a decision.
    Handler(u8, Says),
    /// Somebody else decides.
    Elsewhere(u8),
    /// The CLI withdraws.
    Withdraw(u8),
    /// The CLI is introduced to again, and lists these as open.
    List(BTreeSet<u8>),
    /// Two things at once: the CLI withdraws while somebody decides.
    Race(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 0..IDS;
    let says = prop_oneof![
        Just(Says::Allow),
        Just(Says::Deny),
        Just(Says::Park),
        Just(Says::Panic),
        Just(Says::Nothing)
    ];
    let step = prop_oneof![
        4 => id.clone().prop_map(Step::Ask),
        4 => (id.clone(), says).prop_map(|(id, says)| Step::Handler(id, says)),
        2 => id.clone().prop_map(Step::Elsewhere),
        2 => id.clone().prop_map(Step::Withdraw),
        1 => proptest::collection::btree_set(id.clone(), 0..4).prop_map(Step::List),
        1 => id.prop_map(Step::Race),
    ];
    proptest::collection::vec(step, 1..40)
}

/// What a request is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Deciding,
    Parked,
}

type Gates = Arc<Mutex<BTreeMap<String, oneshot::Sender<Says>>>>;

struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn run(steps: Vec<Step>) {
    let gates = Gates::default();
    let alive = Arc::new(AtomicUsize::new(0));
    let asks = Arc::new(AtomicUsize::new(0));
    let options = agent().can_use_tool({
        let (gates, alive, asks) = (Arc::clone(&gates), Arc::clone(&alive), Arc::clone(&asks));
        move |request: PermissionRequest| {
            asks.fetch_add(1, Ordering::Relaxed);
            alive.fetch_add(1, Ordering::Relaxed);
            let here = Alive(Arc::clone(&alive));
            let (open, gate) = oneshot::channel();
            gates
                .lock()
                .unwrap()
                .insert(request.id().as_str().to_owned(), open);
            async move {
                let _here = here;
                match gate.await {
                    Ok(Says::Allow) => PermissionDecision::allow(),
                    Ok(Says::Deny) => PermissionDecision::deny("no"),
                    Ok(Says::Park) => PermissionDecision::Parked,
                    Ok(Says::Panic) => panic!("a bug"),
                    Ok(Says::Nothing) | Err(_) => std::future::pending().await,
                }
            }
        }
    });
    let (session, mut wire, _) = Wire::start(options).await;
    let mut open: BTreeMap<u8, State> = BTreeMap::new();
    let mut answered: BTreeSet<u8> = BTreeSet::new();
    let mut expected_asks = 0;
    for step in steps {
        let what = format!("{step:?} with {open:?}");
        let mut expected: Vec<(u8, &str)> = Vec::new();
        match step {
            Step::Ask(id) => {
                wire.ask(&id.to_string(), &bash("x")).await;
                if let std::collections::btree_map::Entry::Vacant(entry) = open.entry(id) {
                    entry.insert(State::Deciding);
                    expected_asks += 1;
                }
            }
            Step::Handler(id, says) => {
                if open.get(&id) == Some(&State::Deciding)
                    && let Some(gate) = gates.lock().unwrap().remove(&id.to_string())
                {
                    let _ = gate.send(says);
                    let answer = match says {
                        Says::Allow => Some("allow"),
                        Says::Deny | Says::Panic => Some("deny"),
                        Says::Park | Says::Nothing => None,
                    };
                    match answer {
                        Some(answer) => {
                            open.remove(&id);
                            expected.push((id, answer));
                        }
                        None => {
                            open.insert(id, State::Parked);
                        }
                    }
                }
            }
            Step::Elsewhere(id) => {
                let decided = session
                    .decide(&id.to_string().as_str().into(), PermissionResult::allow())
                    .await;
                match open.remove(&id) {
                    Some(_) => {
                        decided.expect(&what);
                        expected.push((id, "allow"));
                    }
                    None => assert!(decided.expect_err(&what).is_not_open(), "{what}"),
                }
            }
            Step::Withdraw(id) => {
                wire.withdraw(&id.to_string()).await;
                open.remove(&id);
            }
            Step::Race(id) => {
                wire.withdraw(&id.to_string()).await;
                let decided = session
                    .decide(&id.to_string().as_str().into(), PermissionResult::allow())
                    .await;
                let was_open = open.remove(&id).is_some();
                // Whoever comes first; but what was told to be decided is sent.
                if decided.is_ok() {
                    assert!(was_open, "{what}");
                    expected.push((id, "allow"));
                }
            }
            Step::List(ids) => {
                let again = tokio::spawn({
                    let session = session.clone();
                    async move { session.reinitialize().await }
                });
                let listed: Vec<_> = ids.iter().map(|id| asked(&id.to_string(), &bash("x"))).collect();
                wire.initialized(&listed).await;
                again.await.unwrap().unwrap();
                for id in ids {
                    if !open.contains_key(&id) && !answered.contains(&id) {
                        open.insert(id, State::Deciding);
                        expected_asks += 1;
                    }
                }
            }
        }
        answered.extend(expected.iter().map(|(id, _)| *id));
        for (id, behavior) in expected {
            let (to, answer) = wire.answer().await;
            assert_eq!(
                (to, &answer["behavior"]),
                (id.to_string(), &behavior.into()),
                "{what}"
            );
        }
        wire.silent_for(Duration::from_millis(5)).await;
        check(&session, &open, &what);
        assert_eq!(asks.load(Ordering::Relaxed), expected_asks, "{what}");
    }
    timeout(super::AGES, session.kill()).await.unwrap().unwrap();
    // The tasks that are told to stop get to do so.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

fn check(session: &Session, open: &BTreeMap<u8, State>, what: &str) {
    let pending: BTreeSet<_> = session
        .pending()
        .iter()
        .map(|pending| pending.id().as_str().to_owned())
        .collect();
    let expected: BTreeSet<_> = open.keys().map(u8::to_string).collect();
    assert_eq!(pending, expected, "{what}");
    assert_eq!(session.stats().unanswered_by_us, open.len(), "{what}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn each_request_is_answered_once_or_withdrawn(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(steps));
    }
}

/// The CLI goes on with a deferred call before the program can listen.
#[tokio::test(start_paused = true)]
async fn the_first_who_listens_gets_the_turn_that_began_before() {
    let turn = |text: &str| [frames::init(), frames::text(text), frames::result_of(&[], "done")];
    async fn heard(ambient: &mut Ambient) -> (String, usize) {
        let (mut texts, mut ended) = (String::new(), 0);
        while let Ok(Some(event)) = timeout(Duration::from_secs(1), ambient.next()).await {
            match event {
                AmbientEvent::Event(Event::Text(text)) => texts.push_str(&text),
                AmbientEvent::TurnEnded(_) => ended += 1,
                _ => {}
            }
        }
        (texts, ended)
    }
    let (session, mut wire, _) = Wire::start(agent().resume("0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22")).await;
    wire.say(&frames::state("running")).await;
    for line in turn("early") {
        wire.say(&line).await;
    }
    wire.silent_for(Duration::from_secs(1)).await;
    assert_eq!(session.usage().results, 1);
    let (mut first, mut second) = (session.ambient(), session.ambient());
    assert_eq!(heard(&mut first).await, ("early".to_owned(), 1));
    assert_eq!(heard(&mut second).await, (String::new(), 0));
    for line in turn("late") {
        wire.say(&line).await;
    }
    assert_eq!(heard(&mut first).await, ("late".to_owned(), 1));
    assert_eq!(heard(&mut second).await, ("late".to_owned(), 1));
    session.kill().await.unwrap();

    // Not for ever: not more than there is room for, and not beyond a prompt.
    for (text, is_prompted) in [("x".repeat(1024 * 1024), false), ("x".to_owned(), true)] {
        let (session, mut wire, _) = Wire::start(agent()).await;
        for line in turn(&text) {
            wire.say(&line).await;
        }
        wire.silent_for(Duration::from_secs(1)).await;
        assert_eq!(session.usage().results, 1);
        let _turn = match is_prompted {
            true => Some(session.prompt("go").await.unwrap()),
            false => None,
        };
        assert_eq!(heard(&mut session.ambient()).await, (String::new(), 0));
        session.kill().await.unwrap();
    }
}
