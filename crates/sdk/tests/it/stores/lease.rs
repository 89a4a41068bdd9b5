//! Whose a session is: two of the SDK's sessions on one id. In a store the clock is paused, so that waiting costs nothing.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::options::Launch;
use outrigger::protocol::RawJson;
use outrigger::sessions::lease::driven_by_cli;
use outrigger::sessions::store::{
    BoxFuture as StoreFuture, LeaseStore, MemoryStore, Result as StoreResult, SessionKey, SessionStore,
    StoreLease,
};
use outrigger::sessions::{SessionId, Sessions};
use outrigger::transport::{BoxFuture, Connection, Pipes, Transport};
use outrigger::{
    Cause, Claim, ClaimProblem, LeaseOptions, LeaseProblem, OnBusy, Options, Pool, PoolLimits, Session,
    Spare, Turn,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Fate, befall};
use crate::callbacks::{Wire, agent};

const ID: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";
const OTHER: &str = "1f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";

fn key(id: &str) -> SessionKey {
    SessionKey::new("-p", id)
}

/// A store in memory whose calls do what they are told to.
#[derive(Default)]
struct Leased {
    memory: MemoryStore,
    acquires: Mutex<VecDeque<Fate>>,
    /// What becomes of the answers to leases that were acquired.
    answers: Mutex<VecDeque<Fate>>,
    renewals: Mutex<VecDeque<Fate>>,
    renewed: Mutex<Vec<Instant>>,
}

impl Leased {
    async fn holder(&self, id: &str) -> Option<String> {
        self.memory
            .holder(&key(id))
            .await
            .unwrap()
            .map(|lease| lease.owner)
    }

    fn entries(&self, id: &str) -> Vec<String> {
        let entries = self.memory.entries(&key(id));
        entries.iter().map(|entry| entry.get().to_owned()).collect()
    }
}

impl SessionStore for Leased {
    fn append<'a>(&'a self, key: &'a SessionKey, _: &'a [RawJson]) -> StoreFuture<'a, StoreResult<()>> {
        panic!("{key} is appended to without a lease")
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, StoreResult<Option<Vec<RawJson>>>> {
        self.memory.load(key)
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for Leased {
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> StoreFuture<'a, StoreResult<StoreLease>> {
        Box::pin(async move {
            let fate = self.acquires.lock().unwrap().pop_front();
            befall(fate).await?;
            let lease = self.memory.acquire(key, owner, ttl).await;
            let fate = self.answers.lock().unwrap().pop_front();
            befall(fate).await?;
            lease
        })
    }

    fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> StoreFuture<'a, StoreResult<StoreLease>> {
        Box::pin(async move {
            self.renewed.lock().unwrap().push(Instant::now());
            let fate = self.renewals.lock().unwrap().pop_front();
            befall(fate).await?;
            self.memory.renew(lease, ttl).await
        })
    }

    fn release<'a>(&'a self, lease: &'a StoreLease) -> StoreFuture<'a, StoreResult<()>> {
        self.memory.release(lease)
    }

    fn append_fenced<'a>(
        &'a self,
        lease: &'a StoreLease,
        key: &'a SessionKey,
        entries: &'a [RawJson],
    ) -> StoreFuture<'a, StoreResult<()>> {
        self.memory.append_fenced(lease, key, entries)
    }

    fn holder<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, StoreResult<Option<StoreLease>>> {
        self.memory.holder(key)
    }
}

/// Options for a session of this store, by somebody of this name.
fn stored(store: &Arc<Leased>, name: &str, on_busy: OnBusy) -> Options {
    agent()
        .cwd("/p")
        .session_store(Arc::clone(store) as _)
        .lease(LeaseOptions::new().owner(name).on_busy(on_busy))
}

fn mirrored(id: &str, n: usize) -> Value {
    let entry = json!({"type": "user", "uuid": format!("u{n}")});
    json!({"type": "transcript_mirror", "filePath": format!("/far/.claude/projects/-p/{id}.jsonl"), "entries": [entry]})
}

fn result() -> Value {
    result_of(ID)
}

fn result_of(id: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": "done", "session_id": id})
}

fn init(id: &str) -> Value {
    json!({"type": "system", "subtype": "init", "session_id": id})
}

async fn prompt(session: &Session, wire: &mut Wire) -> Turn {
    let turn = session.prompt("go").await.unwrap();
    wire.line().await;
    turn
}

/// Ends a session whose peer ends when its stdin does.
async fn close(session: Session, wire: Wire) {
    let (closed, ()) = tokio::join!(session.close(), wire.end());
    closed.unwrap();
}

fn held(error: &outrigger::Error) -> &LeaseProblem {
    let problem = error.as_lease_problem().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(error.cause(), Some(Cause::SessionInUse), "{error}");
    assert!(error.hint().is_some());
    problem
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_second_is_told_who_has_the_session() {
    let store = Arc::<Leased>::default();
    let first = stored(&store, "first", OnBusy::Fail).resume(ID);
    let (session, wire, _) = Wire::start(first).await;
    assert_eq!(session.fence(), Some(1));
    let (pipes, _far) = Wire::pair();
    let second = stored(&store, "second", OnBusy::Fail).resume(ID);
    let error = second.clone().transport(pipes).start().await.unwrap_err();
    let LeaseProblem::Held { session: of, by } = held(&error) else {
        panic!("{error}")
    };
    assert_eq!(of, ID);
    let pid = std::process::id();
    assert!(by.who.starts_with(&format!("first (process {pid} on ")), "{by}");
    assert!(by.who.contains(", since 2"), "{by}");
    assert!(by.until.is_some());

    close(session, wire).await;
    assert_eq!(store.holder(ID).await, None);
    let (session, wire, _) = Wire::start(second).await;
    assert_eq!(session.fence(), Some(2));
    close(session, wire).await;
}

/// A spare with the lease of a session that somebody else may have until it is claimed.
async fn spare(store: &Arc<Leased>) -> (Spare, Wire) {
    let (pipes, mut wire) = Wire::pair();
    let options = stored(store, "first", OnBusy::Fail).session_id(ID);
    let starting = tokio::spawn(options.transport(pipes).prewarm());
    wire.initialized(&[]).await;
    (starting.await.unwrap().unwrap(), wire)
}

/// The request of a claim.
async fn claim_of(wire: &mut Wire) -> Value {
    let request = wire.line().await;
    assert_eq!(request["request"]["subtype"], "claim_session", "{request}");
    request["request_id"].clone()
}

/// The CLI's answer to a claim: a session of this id.
fn claimed(request: &Value, id: &str) -> Value {
    let initialize = json!({"account": {"apiKeySource": "ANTHROPIC_API_KEY"}});
    let session = json!({"status": "ok", "session_id": id, "initialize": initialize});
    let response = json!({"subtype": "success", "request_id": request, "response": session});
    json!({"type": "control_response", "response": response})
}

#[tokio::test(start_paused = true)]
async fn a_spare_takes_the_lease_when_it_is_claimed() {
    let store = Arc::<Leased>::default();
    let (spare, mut wire) = spare(&store).await;
    assert_eq!(store.holder(ID).await, None, "it has no session yet");
    let ages = Duration::from_secs(3600);
    let other = store.memory.acquire(&key(ID), "second", ages).await.unwrap();
    let failed = spare.claim(Claim::new("/p")).await.unwrap_err();
    assert!(matches!(held(&failed.error), LeaseProblem::Held { by, .. } if by.who == "second"));
    let spare = failed.spare.expect("nothing was sent to it");
    store.memory.release(&other).await.unwrap();

    let claiming = tokio::spawn(spare.claim(Claim::new("/p")));
    let request = claim_of(&mut wire).await;
    assert!(
        store.holder(ID).await.unwrap().starts_with("first"),
        "before the CLI is asked"
    );
    wire.say(&claimed(&request, ID)).await;
    let session = claiming.await.unwrap().unwrap();
    assert_eq!(
        (session.fence(), store.renewed.lock().unwrap().len()),
        (Some(2), 0)
    );
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(!store.renewed.lock().unwrap().is_empty(), "it is kept");
    close(session, wire).await;
    assert_eq!(store.holder(ID).await, None);
}

/// Its transcript is on another machine, and the store has it under the directory of the claim.
#[tokio::test(start_paused = true)]
async fn the_history_of_a_claimed_session_is_that_of_its_own_directory() {
    let store = Arc::<MemoryStore>::default();
    let (pipes, mut wire) = Wire::pair();
    let options = agent().cwd("/spare").session_store(Arc::clone(&store) as _);
    let starting = tokio::spawn(options.transport(pipes).prewarm());
    wire.initialized(&[]).await;
    let spare = starting.await.unwrap().unwrap();
    let claiming = tokio::spawn(spare.claim(Claim::new("/p")));
    let request = claim_of(&mut wire).await;
    wire.say(&claimed(&request, ID)).await;
    let session = claiming.await.unwrap().unwrap();
    let mut turn = prompt(&session, &mut wire).await;
    let record = json!({
        "type": "user", "uuid": OTHER, "parentUuid": null, "sessionId": ID, "cwd": "/p", "isSidechain": false,
        "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": "go"},
    });
    let file = format!("/far/.claude/projects/-p/{ID}.jsonl");
    wire.say(&json!({"type": "transcript_mirror", "filePath": file, "entries": [record]}))
        .await;
    wire.say(&result()).await;
    turn.outcome().await.unwrap();
    assert_eq!(store.entries(&key(ID)).len(), 1);
    assert_eq!(session.history().await.unwrap().len(), 1);
    close(session, wire).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_gives_the_lease_back_when_the_process_has_ended() {
    let store = Arc::<Leased>::default();
    for is_dropped in [true, false] {
        let (spare, mut wire) = spare(&store).await;
        let ended = spare.wait_ended();
        let claiming = tokio::spawn(spare.claim(Claim::new("/p")));
        let request = claim_of(&mut wire).await;
        if is_dropped {
            claiming.abort();
        } else {
            wire.say(&claimed(&request, OTHER)).await;
            let error = claiming.await.unwrap().unwrap_err().error;
            let problem = error.as_claim_problem().unwrap();
            assert!(matches!(
                problem,
                ClaimProblem::Differs {
                    option: "session_id",
                    ..
                }
            ));
        }
        assert!(store.holder(ID).await.is_some(), "the process may run");
        wire.end().await;
        ended.await;
        assert_eq!(store.holder(ID).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_hands_out_a_session_that_has_its_lease() {
    let store = Arc::<Leased>::default();
    let (pipes, mut wire) = Wire::pair();
    let args = Arc::<Mutex<Vec<String>>>::default();
    let options = stored(&store, "first", OnBusy::Fail).transport(Shown(pipes, Arc::clone(&args)));
    let pool = Pool::new(PoolLimits::default().memory(1 << 40));
    let place = pool.keep(options, 1).unwrap();
    wire.initialized(&[]).await;
    while pool.stats().spares == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let id = value(&args.lock().unwrap(), "--session-id").unwrap().to_owned();
    assert_eq!(store.holder(&id).await, None, "it has no session yet");
    let (handed, ()) = tokio::join!(pool.get(&place, Claim::new("/p")), async {
        let request = claim_of(&mut wire).await;
        let holder = store.holder(&id).await.expect("before the CLI is asked");
        assert!(holder.starts_with("first"), "{holder}");
        wire.say(&claimed(&request, &id)).await;
    });
    let session = handed.unwrap().session;
    assert_eq!(session.fence(), Some(1));
    close(session, wire).await;
    assert_eq!(store.holder(&id).await, None);
    pool.close().await;
}

/// A transport that shows what it was to start.
struct Shown(Pipes, Arc<Mutex<Vec<String>>>);

impl Transport for Shown {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        let shown = launch.args.iter().map(|arg| arg.to_string_lossy().into_owned());
        self.1.lock().unwrap().extend(shown);
        self.0.open(launch)
    }
}

/// Starts a session, and tells by which arguments.
async fn shown(options: Options) -> (Session, Wire, Vec<String>) {
    let (pipes, mut wire) = Wire::pair();
    let args = Arc::<Mutex<Vec<String>>>::default();
    let starting = tokio::spawn(options.transport(Shown(pipes, Arc::clone(&args))).start());
    wire.initialized(&[]).await;
    let session = starting.await.unwrap().unwrap();
    let args = args.lock().unwrap().clone();
    (session, wire, args)
}

fn value<'a>(args: &'a [String], flag: &str) -> Option<&'a str> {
    args.iter()
        .find_map(|arg| arg.strip_prefix(flag)?.strip_prefix('='))
}

#[tokio::test(start_paused = true)]
async fn a_fork_goes_on_beside_the_holder() {
    let store = Arc::<Leased>::default();
    let (first, wire, args) = shown(stored(&store, "first", OnBusy::Fork).resume(ID)).await;
    assert_eq!(value(&args, "--resume"), Some(ID));
    assert_eq!((value(&args, "--session-id"), first.forked_from()), (None, None));
    let (second, other, args) = shown(stored(&store, "second", OnBusy::Fork).resume(ID)).await;
    assert_eq!(value(&args, "--resume"), Some(ID));
    assert!(args.iter().any(|arg| arg == "--fork-session"), "{args:?}");
    let fork = value(&args, "--session-id")
        .expect("the fork has an id")
        .to_owned();
    assert_ne!(fork, ID);
    assert_eq!(second.forked_from().as_deref(), Some(ID));
    assert!(store.holder(ID).await.unwrap().starts_with("first"));
    assert!(store.holder(&fork).await.unwrap().starts_with("second"));
    // Started once more, it is what was asked for first.
    assert_eq!(second.options().session_id, None);
    close(second, other).await;
    assert_eq!(store.holder(&fork).await, None);
    close(first, wire).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_session_has_an_id_that_is_claimed_before_it_starts() {
    let store = Arc::<Leased>::default();
    let (session, wire, args) = shown(stored(&store, "first", OnBusy::Fail)).await;
    let id = value(&args, "--session-id")
        .expect("it is chosen here")
        .to_owned();
    assert!(store.holder(&id).await.is_some());
    close(session, wire).await;
    // A fork, too, is a new session: the one that it is made of is only read.
    let (session, wire, _) = shown(stored(&store, "first", OnBusy::Fail).resume(ID)).await;
    let forking = stored(&store, "second", OnBusy::Fail)
        .resume(ID)
        .fork_session(true);
    let (fork, other, args) = shown(forking).await;
    assert!(
        store
            .holder(value(&args, "--session-id").unwrap())
            .await
            .is_some()
    );
    close(fork, other).await;
    close(session, wire).await;
}

#[tokio::test(start_paused = true)]
async fn who_is_taken_over_while_a_turn_runs_ends_and_writes_nothing_more() {
    let store = Arc::<Leased>::default();
    let first = stored(&store, "first", OnBusy::Fail).resume(ID);
    let (old, mut wire, _) = Wire::start(first).await;
    let mut frames = old.frames();
    let mut turn = prompt(&old, &mut wire).await;
    wire.say(&init(ID)).await;
    wire.say(&mirrored(ID, 1)).await;
    wire.say(&result()).await;
    turn.outcome().await.unwrap();
    let mut turn = prompt(&old, &mut wire).await;

    let (new, mut other, _) = Wire::start(stored(&store, "second", OnBusy::TakeOver).resume(ID)).await;
    assert!(new.fence() > old.fence(), "{:?}", new.fence());
    wire.say(&mirrored(ID, 2)).await;
    wire.say(&result()).await;
    let error = old.wait_ended().await;
    let LeaseProblem::TakenOver { session, fence, by } = held(&error) else {
        panic!("{error}")
    };
    assert_eq!((session.as_str(), *fence), (ID, Some(1)));
    let by = by.as_ref().expect("the store knows");
    assert!(
        by.who.starts_with("second (process ") && by.who.contains(", since 2"),
        "{by}"
    );
    assert_eq!(by.fence, new.fence());
    let said = error.to_string();
    assert!(said.contains("was taken over by second"), "{said}");
    // The turn has its outcome, since the CLI ended it; what it said is told not to be stored.
    turn.outcome().await.unwrap();
    assert_eq!(old.stats().mirror_errors, 1);
    let mut refused = None;
    while let Some(frame) = frames.next().await {
        let frame = frame.unwrap();
        if frame.subtype() == Some("mirror_error") {
            refused = Some(String::from_utf8_lossy(frame.bytes()).into_owned());
        }
    }
    assert!(refused.expect("it is told").contains("is over"));
    assert!(old.close().await.unwrap_err().as_lease_problem().is_some());

    let mut turn = prompt(&new, &mut other).await;
    other.say(&mirrored(ID, 3)).await;
    other.say(&result()).await;
    turn.outcome().await.unwrap();
    let kept: Vec<_> = [1, 3]
        .map(|n| json!({"type": "user", "uuid": format!("u{n}")}).to_string())
        .into();
    assert_eq!(store.entries(ID), kept);
    close(new, other).await;
}

#[tokio::test(start_paused = true)]
async fn who_is_taken_over_and_says_nothing_finds_out_at_the_next_renewal() {
    let store = Arc::<Leased>::default();
    let first = stored(&store, "first", OnBusy::Fail).resume(ID);
    let (old, mut wire, _) = Wire::start(first).await;
    let mut turn = prompt(&old, &mut wire).await;
    let (new, other, _) = Wire::start(stored(&store, "second", OnBusy::TakeOver).resume(ID)).await;
    let begun = Instant::now();
    let error = turn.outcome().await.unwrap_err();
    assert!(matches!(held(&error), LeaseProblem::TakenOver { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    assert!(error.is_closed());
    assert!(old.prompt("more").await.is_err());
    // What the first lets go is not the second's.
    old.wait_ended().await;
    assert!(store.holder(ID).await.unwrap().starts_with("second"));
    close(new, other).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_as_long_as_the_session_lives() {
    let store = Arc::<Leased>::default();
    let (session, wire, _) = Wire::start(stored(&store, "first", OnBusy::Fail).resume(ID)).await;
    // One that fails for a while is no loss.
    store
        .renewals
        .lock()
        .unwrap()
        .extend([Fate::Takes(Duration::from_secs(1)), Fate::Fails, Fate::Panics]);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let renewed = store.renewed.lock().unwrap().len();
    assert!((28..=34).contains(&renewed), "{renewed}");
    assert_eq!(session.fence(), Some(1));
    close(session, wire).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(store.renewed.lock().unwrap().len(), renewed, "it is over");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_can_not_be_renewed_ends_the_session_before_it_runs_out() {
    for fate in [Fate::Fails, Fate::Hangs] {
        let store = Arc::<Leased>::default();
        store.renewals.lock().unwrap().extend([fate; 100]);
        let begun = Instant::now();
        let (session, _wire, _) = Wire::start(stored(&store, "first", OnBusy::Fail).resume(ID)).await;
        let error = session.wait_ended().await;
        let took = begun.elapsed().as_secs();
        assert!((50..60).contains(&took), "{fate:?}: {took}");
        let Some(LeaseProblem::NotRenewed { session: of, why, .. }) = error.as_lease_problem() else {
            panic!("{error}")
        };
        assert_eq!(of, ID);
        assert!(why.contains("no disk") || why.contains("took longer"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_may_last_for_ever() {
    let store = Arc::<Leased>::default();
    let lease = LeaseOptions::new().ttl(Duration::MAX);
    let options = stored(&store, "first", OnBusy::Fail).lease(lease).resume(ID);
    let (session, wire, _) = Wire::start(options).await;
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(session.fence(), Some(1));
    close(session, wire).await;
    assert_eq!(store.holder(ID).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_dropped_is_let_go() {
    let store = Arc::<Leased>::default();
    let (session, wire, _) = Wire::start(stored(&store, "first", OnBusy::Fail).resume(ID)).await;
    drop(session);
    wire.end().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(store.holder(ID).await, None);

    // A start that is given up.
    let (pipes, mut wire) = Wire::pair();
    let options = stored(&store, "first", OnBusy::Fail).resume(ID);
    let starting = tokio::spawn(options.transport(pipes).start());
    wire.line().await;
    assert!(store.holder(ID).await.is_some());
    starting.abort();
    wire.end().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(store.holder(ID).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_clear_begins_is_claimed_and_what_it_ended_is_let_go() {
    let store = Arc::<Leased>::default();
    let (session, mut wire, _) = Wire::start(stored(&store, "first", OnBusy::Fail).resume(ID)).await;
    wire.say(&init(ID)).await;
    wire.say(&mirrored(ID, 1)).await;
    // The CLI may write before it says where.
    wire.say(&mirrored(OTHER, 2)).await;
    wire.say(&init(OTHER)).await;
    wire.say(&result_of(OTHER)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((store.entries(ID).len(), store.entries(OTHER).len()), (1, 1));
    assert_eq!(session.stats().mirror_errors, 0);
    assert!(store.holder(OTHER).await.is_some());
    assert_eq!(store.holder(ID).await, None);
    close(session, wire).await;
    assert_eq!(store.holder(OTHER).await, None);
}

/// The mirror and the renewal find out at the same time that the new conversation has no lease.
#[tokio::test(start_paused = true)]
async fn what_clear_begins_is_claimed_once() {
    let store = Arc::<Leased>::default();
    let (session, mut wire, _) = Wire::start(stored(&store, "first", OnBusy::Fail).resume(ID)).await;
    wire.say(&init(ID)).await;
    // Of two leases the older one would be the last that is known here.
    let seconds = |n| Fate::Takes(Duration::from_secs(n));
    store.answers.lock().unwrap().extend([seconds(2), seconds(1)]);
    wire.say(&mirrored(OTHER, 1)).await;
    wire.say(&init(OTHER)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(session.fence(), Some(1));
    assert_eq!(
        (store.entries(OTHER).len(), session.stats().mirror_errors),
        (1, 0)
    );
    close(session, wire).await;
    assert_eq!(store.holder(OTHER).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_comes_after_the_end_is_given_back() {
    let store = Arc::<Leased>::default();
    let (session, mut wire, _) = Wire::start(stored(&store, "first", OnBusy::Fail).resume(ID)).await;
    wire.say(&init(ID)).await;
    let late = Fate::Takes(Duration::from_secs(15));
    store.answers.lock().unwrap().push_back(late);
    wire.say(&init(OTHER)).await;
    while store.holder(OTHER).await.is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    close(session, wire).await;
    assert!(store.holder(OTHER).await.is_some(), "the answer is not there yet");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(store.holder(OTHER).await, None);
}

/// The store is away for a moment, or hangs, just when the conversation begins anew.
#[tokio::test(start_paused = true)]
async fn what_clear_begins_is_claimed_as_soon_as_the_store_is_back() {
    let store = Arc::<Leased>::default();
    let (session, mut wire, _) = Wire::start(stored(&store, "first", OnBusy::Fail).resume(ID)).await;
    wire.say(&init(ID)).await;
    store
        .acquires
        .lock()
        .unwrap()
        .extend([Fate::Fails, Fate::Hangs, Fate::Panics]);
    wire.say(&init(OTHER)).await;
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert!(store.acquires.lock().unwrap().is_empty());
    assert!(store.holder(OTHER).await.unwrap().starts_with("first"));
    let mut turn = prompt(&session, &mut wire).await;
    wire.say(&mirrored(OTHER, 1)).await;
    wire.say(&result_of(OTHER)).await;
    turn.outcome().await.unwrap();
    assert_eq!(store.entries(OTHER).len(), 1);
    close(session, wire).await;
    assert_eq!(store.holder(OTHER).await, None);

    for fate in [Fate::Fails, Fate::Hangs] {
        let (session, mut wire, _) = Wire::start(stored(&store, "first", OnBusy::Fail).resume(ID)).await;
        store.acquires.lock().unwrap().extend([fate; 100]);
        let begun = Instant::now();
        wire.say(&init(OTHER)).await;
        let error = session.wait_ended().await;
        let took = begun.elapsed().as_secs();
        assert!((50..60).contains(&took), "{fate:?}: {took}");
        let Some(LeaseProblem::NotRenewed { session: of, .. }) = error.as_lease_problem() else {
            panic!("{error}")
        };
        assert_eq!(of, OTHER);
        store.acquires.lock().unwrap().clear();
    }
}

// ---- On disk, with the clock of the system ---------------------------------------------------------------------------

/// A CLI in memory that passes for one on this machine.
struct Near(Shown);

impl Transport for Near {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        self.0.open(launch)
    }

    fn is_local(&self) -> bool {
        true
    }
}

fn near(home: &Path, name: &str, on_busy: OnBusy) -> Options {
    agent()
        .cli_path(std::env::current_exe().unwrap())
        .cwd(home)
        .env("HOME", home)
        .env("CLAUDE_CONFIG_DIR", home.join("config"))
        .lease(LeaseOptions::new().owner(name).on_busy(on_busy))
        .resume(ID)
}

async fn start_near(options: Options) -> outrigger::Result<(Session, Wire, Vec<String>)> {
    let (pipes, mut wire) = Wire::pair();
    let args = Arc::<Mutex<Vec<String>>>::default();
    // Kept until it is known how it ends, so that the pipes are.
    let options = options.transport(Near(Shown(pipes, Arc::clone(&args))));
    let mut starting = tokio::spawn(options.clone().start());
    tokio::select! {
        ended = &mut starting => Err(ended.unwrap().expect_err("nobody answers it")),
        _ = wire.initialized(&[]) => {
            let session = starting.await.unwrap()?;
            let args = args.lock().unwrap().clone();
            Ok((session, wire, args))
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_disk_the_second_fails_forks_or_gets_it() {
    let home = tempfile::tempdir().unwrap();
    let (first, mut wire, args) = start_near(near(home.path(), "first", OnBusy::Fail))
        .await
        .unwrap();
    assert_eq!((value(&args, "--resume"), first.fence()), (Some(ID), Some(1)));
    let mut turn = prompt(&first, &mut wire).await;

    let error = start_near(near(home.path(), "second", OnBusy::Fail))
        .await
        .err()
        .expect("it is busy");
    let by = held(&error).holder().unwrap();
    assert!(by.who.starts_with("first (process "), "{error}");
    assert_eq!(by.fence, Some(1));

    let (fork, other, args) = start_near(near(home.path(), "third", OnBusy::Fork))
        .await
        .unwrap();
    assert!(args.iter().any(|arg| arg == "--fork-session"), "{args:?}");
    assert_eq!(fork.forked_from().as_deref(), Some(ID));
    close(fork, other).await;

    // Asked for, it is handed over.
    let (last, other, _) = start_near(near(home.path(), "last", OnBusy::TakeOver))
        .await
        .unwrap();
    let error = turn.outcome().await.unwrap_err();
    let LeaseProblem::HandedOver { session, to } = held(&error) else {
        panic!("{error}")
    };
    assert_eq!(session, ID);
    assert!(to.who.starts_with("last (process "), "{error}");
    assert_eq!(last.fence(), Some(2));
    close(last, other).await;
    // Free: anybody can have it.
    let sessions = Sessions::at(home.path().join("config"));
    let id = SessionId::new(ID).unwrap();
    assert!(driven_by_cli(sessions.config_dir(), &id).is_none());
    drop(sessions.claim(&id).take().unwrap());
}

/// Whoever does not ask takes it by force: the holder notices within a second, and its process is killed.
#[tokio::test(flavor = "multi_thread")]
async fn on_disk_a_holder_that_is_fenced_off_ends() {
    let home = tempfile::tempdir().unwrap();
    let (first, mut wire, _) = start_near(near(home.path(), "first", OnBusy::Fail))
        .await
        .unwrap();
    let mut turn = prompt(&first, &mut wire).await;
    let by_force = LeaseOptions::new()
        .owner("second")
        .on_busy(OnBusy::TakeOver)
        .patience(Duration::ZERO);
    let options = near(home.path(), "", OnBusy::Fail).lease(by_force);
    let (second, other, _) = start_near(options).await.unwrap();
    let error = turn.outcome().await.unwrap_err();
    let LeaseProblem::TakenOver {
        fence: Some(1), by, ..
    } = held(&error)
    else {
        panic!("{error}")
    };
    assert!(
        by.as_ref().unwrap().who.starts_with("second (process "),
        "{error}"
    );
    first.wait_ended().await;
    close(second, other).await;
}

/// A disk that hangs for a while after `/clear`: there is one attempt to get the lease, which ends when the disk is back.
#[tokio::test]
async fn on_disk_a_lease_that_takes_long_is_acquired_once() {
    let home = tempfile::tempdir().unwrap();
    let (session, mut wire, _) = start_near(near(home.path(), "first", OnBusy::Fail))
        .await
        .unwrap();
    wire.say(&init(ID)).await;
    let leases = home.path().join("config/outrigger/leases");
    let lock = std::fs::File::create(leases.join(format!("{OTHER}.lock"))).unwrap();
    lock.lock().unwrap();
    tokio::time::pause();
    wire.say(&init(OTHER)).await;
    while session.id().as_deref() != Some(OTHER) {
        tokio::task::yield_now().await;
    }
    // Less than a session goes on without a lease.
    for _ in 0..80 {
        tokio::time::advance(Duration::from_millis(100)).await;
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
    lock.unlock().unwrap();
    // The clock stands still as long as a thread works on the files.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let state = std::fs::read(leases.join(format!("{OTHER}.json"))).unwrap();
    let state: Value = serde_json::from_slice(&state).unwrap();
    assert_eq!((&state["fence"], &state["released"]), (&json!(1), &json!(false)));
    assert_eq!(session.fence(), Some(1));
    close(session, wire).await;
}

/// Nobody waits for the session any more, so it stays its holder's.
#[tokio::test(flavor = "multi_thread")]
async fn on_disk_a_take_over_whose_caller_has_gone_leaves_the_holder() {
    let home = tempfile::tempdir().unwrap();
    let sessions = Sessions::at(home.path().join("config"));
    let id = SessionId::new(ID).unwrap();
    let holder = sessions.claim(&id).owner("first").take().unwrap();
    let is_wanted = async |wanted: bool| {
        while holder.wanted_by().unwrap().is_some() != wanted {
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(20);
    let lease = LeaseOptions::new()
        .owner("second")
        .on_busy(OnBusy::TakeOver)
        .patience(patience);
    let (pipes, _wire) = Wire::pair();
    let options = near(home.path(), "", OnBusy::Fail).lease(lease);
    let options = options.transport(Near(Shown(pipes, Arc::default())));
    tokio::select! {
        _ = options.start() => panic!("the holder does not let go"),
        () = is_wanted(true) => {}
    }
    let withdrawn = tokio::time::timeout(patience / 2, is_wanted(false));
    withdrawn.await.expect("the request is withdrawn");
    holder.check().unwrap();
}

/// Without an option nothing of this happens.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_option_nothing_is_claimed() {
    let home = tempfile::tempdir().unwrap();
    let (first, wire, _) = start_near(near(home.path(), "first", OnBusy::Fail))
        .await
        .unwrap();
    close(first, wire).await;
    assert!(home.path().join("config/outrigger/leases").is_dir());

    let home = tempfile::tempdir().unwrap();
    let options = agent()
        .cli_path(std::env::current_exe().unwrap())
        .cwd(home.path())
        .env("HOME", home.path())
        .resume(ID);
    let (first, wire, args) = start_near(options).await.unwrap();
    assert_eq!((first.fence(), value(&args, "--session-id")), (None, None));
    close(first, wire).await;
    assert!(!home.path().join(".claude").exists());
}
