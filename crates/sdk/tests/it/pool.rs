//! Spares and pools against simulated peers, with a paused clock.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger::options::{Auth, Launch, Secret};
use outrigger::testing::sim::fault::{At, Effect, Schedule};
use outrigger::testing::{Faulty, Simulated};
use outrigger::transport::{BoxFuture, Connection, Pipes, Transport};
use outrigger::{Agent, Claim, ClaimProblem, Options, Pool, PoolLimits, PoolOrigin, ReviveProblem, Session};
use outrigger_sim::peer::{self, Match, Running, Signal, Steps};
use serde_json::json;

use crate::support::{PATIENCE, Peer, reaching};

/// Starts a simulated CLI each time.
#[derive(Clone, Default)]
struct Sims {
    started: Arc<Mutex<Vec<Arc<Running>>>>,
    tried: Arc<AtomicUsize>,
    broken: Arc<AtomicBool>,
}

impl Transport for Sims {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            self.tried.fetch_add(1, Ordering::SeqCst);
            if self.broken.load(Ordering::SeqCst) {
                return Err(io::Error::other("broken"));
            }
            // As long as it takes.
            tokio::time::sleep(Duration::from_millis(500)).await;
            let spare = launch.args.iter().any(|arg| arg == "--await-claim");
            let agent = peer::Agent::builder()
                .await_claim(spare)
                .sdk_reads_session_state();
            let (io, running) = agent.spawn_in_memory();
            let running = Arc::new(running);
            self.started.lock().unwrap().push(Arc::clone(&running));
            let stderr = Some(Box::new(io.stderr) as _);
            let pipes = Pipes::with_process(io.stdin, io.stdout, stderr, Peer(running));
            pipes.open(launch).await
        })
    }
}

impl Sims {
    fn options(&self) -> Options {
        let auth = Auth::ApiKey(Secret::new("simulated"));
        Agent::builder()
            .auth(auth)
            .transport(self.clone())
            .cwd("/parking")
    }

    fn alive(&self) -> usize {
        let started = self.started.lock().unwrap();
        started
            .iter()
            .filter(|running| running.exited().is_none())
            .count()
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < end, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn says(session: &Session, text: &str) {
    let mut turn = session.prompt(format!("%say {text}")).await.unwrap();
    assert_eq!(turn.text().await.unwrap().0, text);
}

#[test]
fn a_pool_outlives_its_runtime() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    let sims = Sims::default();
    let pool = Pool::new(roomy());
    let ready = || pool.stats().spares == 1 && sims.alive() == 1;
    let first = runtime();
    let key = first.block_on(async {
        let key = pool.keep(sims.options(), 1).unwrap();
        until("a spare", ready).await;
        key
    });
    // The next is being started, and ends with the runtime, too.
    first.block_on(async {
        pool.get(&key, Claim::new("/a")).await.unwrap();
        until("a start", || pool.stats().starting == 1).await;
    });
    drop(first);
    runtime().block_on(async {
        let pooled = pool.get(&key, Claim::new("/b")).await.unwrap();
        assert!(matches!(pooled.origin, PoolOrigin::Cold), "{:?}", pooled.origin);
        says(&pooled.session, "hello").await;
        until("another spare", || pool.stats().spares == 1).await;
        let pooled = pool.get(&key, Claim::new("/c")).await.unwrap();
        assert!(
            matches!(pooled.origin, PoolOrigin::Spare { .. }),
            "{:?}",
            pooled.origin
        );
        says(&pooled.session, "hello").await;
        pool.close().await;
    });
}

fn roomy() -> PoolLimits {
    PoolLimits::default().memory(1 << 40).spares(64)
}

/// A pool goes on starting spares while it waits for one.
#[tokio::test(start_paused = true)]
async fn spares_that_hang_cost_one_deadline() {
    let cli = Simulated::agent(|agent| agent);
    let hangs = Schedule::new(0).with(Effect::Drop {}, At::kind("control_response").nth(2));
    let faulty = Faulty::new(cli.clone(), hangs).unwrap();
    let pool = Pool::new(roomy());
    let deadline = Duration::from_secs(20);
    let options = cli.options().transport(faulty).control_deadline(deadline);
    let key = pool.keep(options.cwd("/"), 2).unwrap();
    until("filling", || pool.stats().spares == 2).await;
    let began = tokio::time::Instant::now();
    let pooled = pool.get(&key, Claim::new("/")).await.unwrap();
    assert!(matches!(pooled.origin, PoolOrigin::Cold), "{:?}", pooled.origin);
    assert!(began.elapsed() < deadline * 2, "{:?}", began.elapsed());
    says(&pooled.session, "hello").await;
    pool.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_hands_out_spares_and_fills_up_again() {
    let sims = Sims::default();
    let pool = Pool::new(roomy());
    let key = pool.keep(sims.options(), 2).unwrap();
    until("filling", || pool.stats().spares == 2).await;
    let mut sessions = Vec::new();
    for place in ["/a", "/b", "/c"] {
        let pooled = pool.get(&key, Claim::new(place)).await.unwrap();
        match pooled.origin {
            PoolOrigin::Spare { age } => assert!(age < PATIENCE && sessions.len() < 2),
            // It says so when there was none.
            PoolOrigin::Cold => assert_eq!(sessions.len(), 2),
            other => panic!("{other:?}"),
        }
        says(&pooled.session, place).await;
        assert_eq!(
            pooled.session.init().unwrap().cwd,
            if sessions.len() < 2 {
                place
            } else {
                "/home/user/project"
            }
        );
        sessions.push(pooled.session);
    }
    let stats = pool.stats();
    assert_eq!((stats.warm, stats.cold, stats.died), (2, 1, 0));
    until("filling again", || pool.stats().spares == 2).await;
    assert_eq!(sims.alive(), 5);
    pool.close().await;
    assert_eq!((sims.alive(), pool.stats().spares), (3, 0));
    let error = pool.get(&key, Claim::new("/d")).await.unwrap_err();
    assert!(error.is_closed());
    assert!(pool.keep(sims.options(), 1).unwrap_err().is_closed());
    for session in sessions {
        says(&session, "still here").await;
        session.close().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_spare_is_replaced_and_never_handed_out() {
    let sims = Sims::default();
    let pool = Pool::new(roomy());
    let key = pool.keep(sims.options(), 1).unwrap();
    until("filling", || pool.stats().spares == 1).await;
    sims.started.lock().unwrap()[0].signal(Signal::Kill);
    until("its replacement", || {
        sims.started.lock().unwrap().len() == 2 && pool.stats().spares == 1
    })
    .await;
    assert_eq!(pool.stats().died, 1);
    assert_eq!(pool.stats().failures[0].0, 1);
    let pooled = pool.get(&key, Claim::new("/a")).await.unwrap();
    assert!(matches!(pooled.origin, PoolOrigin::Spare { .. }));
    says(&pooled.session, "alive").await;
    // What was good for a session is no failure any more.
    assert_eq!(pool.stats().failures[0].0, 0);
}

/// A time may mean for ever.
#[tokio::test(start_paused = true)]
async fn spares_may_live_for_ever() {
    let (sims, ever) = (Sims::default(), Duration::MAX);
    let pool = Pool::new(roomy().max_age(ever).backoff(ever, ever));
    let _key = pool.keep(sims.options(), 1).unwrap();
    until("filling", || pool.stats().spares == 1).await;
    sims.started.lock().unwrap()[0].signal(Signal::Kill);
    until("its end", || pool.stats().died == 1).await;

    let pool = Pool::new(roomy().max_age(ever).refill_delay(ever));
    let key = pool.keep(sims.options(), 1).unwrap();
    until("filling", || pool.stats().spares == 1).await;
    let pooled = pool.get(&key, Claim::new("/a")).await.unwrap();
    assert!(matches!(pooled.origin, PoolOrigin::Spare { .. }));
    pooled.session.close().await.unwrap();
    pool.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_spare_that_dies_while_it_is_claimed_is_replaced_by_a_start() {
    let sims = Sims::default();
    let pool = Pool::new(roomy());
    let key = pool.keep(sims.options(), 1).unwrap();
    until("filling", || pool.stats().spares == 1).await;
    sims.broken.store(true, Ordering::SeqCst);
    // Nobody has noticed yet.
    sims.started.lock().unwrap()[0].signal(Signal::Kill);
    let error = pool.get(&key, Claim::new("/a")).await.unwrap_err();
    assert!(error.is_spawn(), "{error}");
    sims.broken.store(false, Ordering::SeqCst);
    let pooled = pool.get(&key, Claim::new("/a")).await.unwrap();
    assert!(matches!(pooled.origin, PoolOrigin::Cold));
}

#[tokio::test(start_paused = true)]
async fn failing_starts_are_not_tried_in_a_hurry() {
    let sims = Sims::default();
    sims.broken.store(true, Ordering::SeqCst);
    let pool = Pool::new(roomy());
    let key = pool.keep(sims.options(), 3).unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    // At 0, 1, 3, 7, 15, 31, 63 s, and then each minute.
    assert_eq!(sims.tried.load(Ordering::SeqCst), 7 + 8);
    let stats = pool.stats();
    assert_eq!((stats.failed, stats.failures[0].0), (15, 15));
    assert!(stats.failures[0].1.as_ref().unwrap().is_spawn());
    assert!(pool.get(&key, Claim::new("/a")).await.unwrap_err().is_spawn());
    // As soon as it works again, it is filled.
    sims.broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert_eq!(pool.stats().spares, 3);
}

#[tokio::test(start_paused = true)]
async fn old_spares_are_replaced() {
    let sims = Sims::default();
    let pool = Pool::new(roomy().max_age(Duration::from_secs(300)));
    let key = pool.keep(sims.options(), 1).unwrap();
    tokio::time::sleep(Duration::from_secs(290)).await;
    assert_eq!((sims.started.lock().unwrap().len(), pool.stats().expired), (1, 0));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!((sims.started.lock().unwrap().len(), pool.stats().expired), (2, 1));
    until("its end", || sims.alive() == 1).await;
    let pooled = pool.get(&key, Claim::new("/a")).await.unwrap();
    assert!(matches!(pooled.origin, PoolOrigin::Spare { age } if age < Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn the_limits_are_for_all_keys_together() {
    let sims = Sims::default();
    // A spare that was not measured counts as 260 MiB.
    for limits in [roomy().spares(3), roomy().memory(800 << 20)] {
        let pool = Pool::new(limits);
        pool.keep(sims.options(), 3).unwrap();
        pool.keep(sims.options().model("opus"), 3).unwrap();
        tokio::time::sleep(Duration::from_secs(600)).await;
        let stats = pool.stats();
        assert_eq!((stats.spares, stats.starting, stats.evicted), (3, 0, 0));
        pool.close().await;
    }
    assert_eq!(sims.started.lock().unwrap().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_dropped_leaves_nothing_behind() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let sims = Sims::default();
    let pool = Pool::new(roomy());
    let key = pool.keep(sims.options(), 2).unwrap();
    until("filling", || pool.stats().spares == 2).await;
    // One more is being started.
    let pooled = pool.get(&key, Claim::new("/a")).await.unwrap();
    until("starting", || pool.stats().starting == 1).await;
    drop(pool);
    until("their end", || sims.alive() == 1).await;
    says(&pooled.session, "unmoved").await;
    pooled.session.close().await.unwrap();
    until("the tasks' end", || tasks() == before).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((sims.alive(), tasks()), (0, before));
}

/// Polls a future once.
async fn once(future: impl Future) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| {
        let _ = future.as_mut().poll(cx);
        std::task::Poll::Ready(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_get_can_be_dropped_at_any_point() {
    let sims = Sims::default();
    let pool = Pool::new(roomy());
    let key = pool.keep(sims.options(), 1).unwrap();
    until("filling", || pool.stats().spares == 1).await;
    once(pool.get(&key, Claim::new("/a"))).await;
    for steps in 1..200 {
        let get = pool.get(&key, Claim::new("/a"));
        let some = async {
            for _ in 0..steps {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = some => {}
            _ = get => {}
        }
    }
    until("filling again", || pool.stats().spares == 1 && sims.alive() == 1).await;
    let pooled = pool.get(&key, Claim::new("/a")).await.unwrap();
    assert!(matches!(pooled.origin, PoolOrigin::Spare { .. }));
}

#[tokio::test(start_paused = true)]
async fn keys_are_of_one_pool_and_options_are_checked_at_once() {
    let sims = Sims::default();
    let (one, other) = (Pool::new(roomy()), Pool::new(roomy()));
    let key = one.keep(sims.options(), 0).unwrap();
    assert!(other.get(&key, Claim::new("/a")).await.unwrap_err().is_invalid());
    assert!(one.keep(sims.options().resume("x"), 1).unwrap_err().is_invalid());
    let id = uuid::Uuid::new_v4().to_string();
    assert!(
        one.keep(sims.options().session_id(id), 1)
            .unwrap_err()
            .is_invalid()
    );
    let (pipes, _running) = reaching(peer::Agent::builder().spawn_in_memory());
    assert!(one.keep(pipes, 1).unwrap_err().is_invalid());
    assert_eq!(sims.tried.load(Ordering::SeqCst), 0);
}

fn claimed() -> Steps {
    let reply = json!({
        "status": "ok", "session_id": "s", "sdk_mcp_settled": true,
        "initialize": {"current_permission_mode": "default", "account": {"apiKeySource": "ANTHROPIC_API_KEY"}},
    });
    Steps::new()
        .initialize()
        .expect(Match::request("claim_session"))
        .reply(reply)
}

async fn refused(script: Steps, claim: Claim) -> (outrigger::Error, peer::Report) {
    let (options, running) = reaching(script.spawn_in_memory());
    let failed = options.prewarm().await.unwrap().claim(claim).await.unwrap_err();
    assert!(failed.spare.is_none());
    running.exit().await;
    (failed.error, running.report())
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_not_taken_is_no_session() {
    let here = || Claim::new("/a");
    let script = claimed()
        .expect(Match::request("set_model"))
        .reply_error("no such model");
    let (error, report) = refused(script, here().model("x")).await;
    let problem = error.as_claim_problem().unwrap();
    assert!(
        matches!(problem, ClaimProblem::OptionNotApplied { option: "model", message } if message == "no such model")
    );
    // No prompt was sent, and it was closed.
    assert_eq!(report.verdict, Ok(()));
    assert_eq!(report.received().count(), 3);

    let (error, _) = refused(
        claimed(),
        here().permission_mode(outrigger::protocol::shared::PermissionMode::Plan),
    )
    .await;
    assert!(matches!(
        error.as_claim_problem().unwrap(),
        ClaimProblem::Differs {
            option: "permission_mode",
            ..
        }
    ));

    // Another account than the chosen one.
    let other = json!({"session_id": "s", "initialize": {"account": {"apiKeySource": "/login managed key"}}});
    let script = Steps::new()
        .initialize()
        .expect(Match::request("claim_session"))
        .reply(other);
    let (error, _) = refused(script, here()).await;
    assert!(error.to_string().contains("another account"), "{error}");

    let script = Steps::new()
        .initialize()
        .expect(Match::request("apply_flag_settings"))
        .reply_error("invalid");
    let settings = serde_json::from_value(json!({"effortLevel": "low"})).unwrap();
    let (error, _) = refused(script, here().settings(settings)).await;
    assert!(matches!(
        error.as_claim_problem().unwrap(),
        ClaimProblem::SettingsNotApplied { .. }
    ));

    // An answer that does not say what the session is.
    let script = Steps::new()
        .initialize()
        .expect(Match::request("claim_session"))
        .reply(json!({"status": "ok"}));
    let (error, _) = refused(script, here()).await;
    assert!(error.to_string().contains("claim_session"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_claim_are_not_in_the_evidence() {
    let script = Steps::new()
        .initialize()
        .expect(Match::request("claim_session"))
        .complain("cannot use claimed-token-1")
        .sleep(Duration::from_secs(1))
        .exit(1);
    let (error, _) = refused(script, Claim::new("/a").session_access_token("claimed-token-1")).await;
    let stderr = error.stderr_tail().unwrap();
    assert!(
        stderr.contains("cannot use") && !stderr.contains("claimed-token"),
        "{stderr}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_over_pipes_is_not_revived() {
    let (options, running) = reaching(peer::Agent::builder().spawn_in_memory());
    let session = options.start().await.unwrap();
    says(&session, "hello").await;
    running.signal(Signal::Kill);
    session.wait_ended().await;
    let error = session.revive().await.unwrap_err();
    assert_eq!(error.as_revive_problem(), Some(&ReviveProblem::TransportSpent));
}

#[tokio::test(start_paused = true)]
async fn hooks_have_their_own_time_to_start() {
    let hook = |subtype: &str| {
        json!({"type": "system", "subtype": subtype, "hook_id": "h", "hook_name": "SessionStart:startup",
               "hook_event": "SessionStart", "session_id": "s", "uuid": "u"})
    };
    let slow = |time: u64| {
        Steps::new()
            .patience(Duration::from_secs(3600))
            .send(hook("hook_started"))
            .sleep(Duration::from_secs(time))
            .send(hook("hook_response"))
            .sleep(Duration::from_secs(50))
            .initialize()
    };
    let (options, _running) = reaching(slow(590).spawn_in_memory());
    assert!(options.start().await.is_ok());
    // Their time is not without end, and what is left is the CLI's.
    let (options, _running) = reaching(slow(620).spawn_in_memory());
    let error = options.start().await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    // A deadline that was set counts throughout.
    let (options, _running) = reaching(slow(20).spawn_in_memory());
    let error = options
        .initialize_deadline(Duration::from_secs(30))
        .start()
        .await
        .unwrap_err();
    assert!(error.is_timeout(), "{error}");
}
