//! Spare processes, which new sessions take.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outrigger::options::Launch;
use outrigger::permissions::{Opinion, PermissionDecision, PermissionRequest, layer};
use outrigger::testing::Simulated;
use outrigger::testing::sim::peer::{Match, Signal, Steps};
#[cfg(target_os = "linux")]
use outrigger::transport::{self, Exit, Process};
use outrigger::transport::{BoxFuture, Connection, Transport};
use outrigger::{Options, SessionId};
use outrigger_host::{
    ApprovalState, HostPolicy, NewFork, NewSession, NewWorktree, SessionHost, SessionState, SpareCounts,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::place::{Place, processed, say, until, user};

/// Longer than anything here takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

const WRITE: &str = "%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}";

/// Waits for a state of the spares.
pub(crate) async fn counted(host: &SessionHost, is_there: impl Fn(SpareCounts) -> bool) -> SpareCounts {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let counts = host.spares();
        if is_there(counts) {
            return counts;
        }
        assert!(tokio::time::Instant::now() < end, "there are {counts:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn with_spares(place: &Place, spares: usize) -> HostPolicy {
    place.policy().spares(spares)
}

/// How the processes of a session came to be.
async fn processes(host: &SessionHost, id: &SessionId) -> Vec<(bool, bool)> {
    let page = host.events(id, 0, 1000).await.unwrap();
    let started = page.events.iter().filter(|event| event.kind == "process_started");
    let of = |payload: Value| (payload["spare"] == true, payload["resumed"] == true);
    started
        .map(|event| of(event.payload.to_value().unwrap()))
        .collect()
}

fn alive(cli: &Simulated) -> usize {
    let started = cli.started();
    started
        .iter()
        .filter(|running| running.exited().is_none())
        .count()
}

#[tokio::test]
async fn the_first_prompt_of_a_new_session_goes_to_a_spare() {
    let place = Place::new();
    let mut policy = with_spares(&place, 1);
    policy.deferred = Some("Bash".to_owned());
    policy.options = place.options().await_initialize(true);
    let host = place.host_with(policy).await;
    counted(&host, |counts| counts.ready == 1).await;
    let dir = place.dir.path().join("project");
    std::fs::create_dir(&dir).unwrap();
    let id = host.create(NewSession::new(&dir), "ada").await.unwrap().id;
    assert_eq!((host.spares().reserved, place.cli.started().len()), (1, 1));
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let prompt = Uuid::new_v4();
    host.send(&id, user(WRITE, prompt), "ada").await.unwrap();
    let init = until(&mut events, |event, payload| {
        event.kind == "system" && payload["subtype"] == "init"
    });
    let init = init.await.payload.to_value().unwrap();
    let real = dir.canonicalize().unwrap();
    assert_eq!(
        (init["session_id"].as_str(), init["cwd"].as_str()),
        (Some(id.as_str()), real.to_str()),
        "it is this session, in its directory"
    );
    // Its questions are the session's.
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    let pending = host.approvals(Some(&id), None, None, 10).await.unwrap();
    assert_eq!((pending.len(), pending[0].deferred), (1, false));
    host.decide(pending[0].id, json!({"behavior": "allow"}).into(), "ada")
        .await
        .unwrap();
    processed(&mut events, prompt, "processed").await;

    // So is its hook, and what was left open is carried out by a process that is resumed.
    let prompt = Uuid::new_v4();
    let call = "%tool Bash {\"command\":\"ls\",\"description\":\"x\"}\n%say done";
    host.send(&id, user(call, prompt), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    let pending = host
        .approvals(Some(&id), Some(ApprovalState::Pending), None, 10)
        .await;
    let pending = pending.unwrap();
    assert_eq!((pending.len(), pending[0].deferred), (1, true));
    host.decide(pending[0].id, json!({"behavior": "allow"}).into(), "ada")
        .await
        .unwrap();
    processed(&mut events, prompt, "processed").await;
    assert_eq!(processes(&host, &id).await, [(true, false), (false, true)]);
    // All of it is stored in the project of the session's directory.
    let stored = host.transcript(&id).await.unwrap().next().await.unwrap();
    assert!(String::from_utf8(stored.unwrap()).unwrap().contains("a.txt"));

    // It is replaced.
    let counts = counted(&host, |counts| counts.ready == 1).await;
    assert_eq!((counts.claimed, counts.refused, counts.failed), (1, 0, 0));
    host.shutdown().await;
    assert_eq!(alive(&place.cli), 0);
}

#[tokio::test]
async fn code_of_the_operator_decides_first_in_a_spare_too() {
    let place = Place::new();
    let mut policy = with_spares(&place, 1);
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    policy.decides_first = Some(Arc::new(layer(move |request: PermissionRequest| {
        counter.fetch_add(1, Ordering::Relaxed);
        async move {
            match request.input.get().contains("forbidden") {
                true => Opinion::Decided(PermissionDecision::deny("the operator forbids it")),
                false => Opinion::Pass,
            }
        }
    })));
    let host = place.host_with(policy).await;
    counted(&host, |counts| counts.ready == 1).await;
    let id = place.session(&host).await;
    say(
        &host,
        &id,
        "%tool Write {\"file_path\":\"a.txt\",\"content\":\"forbidden\"}",
    )
    .await;
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user(WRITE, Uuid::new_v4()), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    assert_eq!(processes(&host, &id).await, [(true, false)]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_session_that_a_spare_is_not_made_for_starts_its_own_process() {
    let place = Place::new();
    let mut policy = with_spares(&place, 1);
    policy.models = vec!["opus".to_owned()];
    policy.permission_modes = vec!["plan".to_owned()];
    let host = place.host_with(policy).await;
    counted(&host, |counts| counts.ready == 1).await;
    let new = || NewSession::new(place.dir.path());
    let (mut model, mut mode, mut id) = (new(), new(), new());
    model.model = Some("opus".to_owned());
    mode.permission_mode = Some("plan".to_owned());
    id.id = Some(SessionId::random());
    for new in [model, mode, id] {
        let session = host.create(new, "ada").await.unwrap().id;
        assert_eq!(host.spares().reserved, 0);
        say(&host, &session, "%say one").await;
        assert_eq!(processes(&host, &session).await, [(false, false)]);
    }
    assert_eq!(host.spares().ready, 1);

    // A model that is chosen before the first prompt comes too late for the spare, which ends.
    let session = host.create(new(), "ada").await.unwrap().id;
    assert_eq!(host.spares().reserved, 1);
    let mut update = outrigger_host::log::Update::default();
    update.model = Some(Some("opus".to_owned()));
    host.update(&session, update).await.unwrap();
    let before = place.cli.started().len();
    say(&host, &session, "%say two").await;
    assert_eq!(processes(&host, &session).await, [(false, false)]);
    let started = place.cli.started();
    assert!(
        started[..before].iter().any(|spare| spare.exited().is_some()),
        "the spare"
    );

    // A fork goes on with what is stored, which no spare can.
    counted(&host, |counts| counts.ready == 1 && counts.reserved == 0).await;
    let fork = host.fork(&session, NewFork::default(), "ada").await.unwrap().id;
    say(&host, &fork, "%say three").await;
    assert_eq!(processes(&host, &fork).await, [(false, true)]);
    assert_eq!(host.spares().claimed, 0);
    host.shutdown().await;
}

#[tokio::test]
async fn there_are_no_spares_for_options_that_depend_on_the_directory() {
    let place = Place::new();
    let mut policy = with_spares(&place, 1);
    policy.options = policy.options.additional_directories(["beside"]);
    let host = place.host_with(policy).await;
    let id = place.session(&host).await;
    say(&host, &id, "%say one").await;
    assert_eq!(
        (host.spares(), place.cli.started().len()),
        (SpareCounts::default(), 1)
    );
    host.shutdown().await;
}

#[tokio::test]
async fn spares_count_as_processes_and_go_first() {
    let place = Place::new();
    let mut policy = with_spares(&place, 3);
    policy.max_processes = 2;
    let host = place.host_with(policy).await;
    counted(&host, |counts| counts.ready == 2).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut new = NewSession::new(place.dir.path());
        new.id = Some(SessionId::random());
        let id = host.create(new, "ada").await.unwrap().id;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        host.send(&id, user(WRITE, Uuid::new_v4()), "ada").await.unwrap();
        until(&mut events, |event, _| event.kind == "approval_opened").await;
        assert!(alive(&place.cli) <= 2, "one of two places is the session's");
        ids.push(id);
    }
    // Both are in a turn, and the spares are gone.
    assert_eq!((host.spares().ready, alive(&place.cli)), (0, 2));
    for id in &ids {
        assert_eq!(processes(&host, id).await, [(false, false)]);
        assert_eq!(
            host.session(id).await.unwrap().state,
            SessionState::RequiresAction
        );
    }
    // A place that is free is filled.
    host.stop(&ids[0]).await.unwrap();
    counted(&host, |counts| counts.ready == 1).await;
    assert_eq!(alive(&place.cli), 2);
    host.shutdown().await;
    assert_eq!(alive(&place.cli), 0);
}

#[tokio::test]
async fn a_spare_that_dies_is_replaced_and_its_session_starts_its_own_process() {
    let place = Place::new();
    let host = place.host_with(with_spares(&place, 1)).await;
    counted(&host, |counts| counts.ready == 1).await;
    let id = place.session(&host).await;
    place.cli.started()[0].signal(Signal::Kill);
    counted(&host, |counts| counts.failed == 1).await;
    say(&host, &id, "%say one").await;
    assert_eq!(processes(&host, &id).await, [(false, false)]);
    counted(&host, |counts| counts.ready == 1 && counts.reserved == 0).await;
    let id = place.session(&host).await;
    say(&host, &id, "%say two").await;
    assert_eq!(processes(&host, &id).await, [(true, false)]);
    // An archived session needs none.
    counted(&host, |counts| counts.ready == 1).await;
    let id = place.session(&host).await;
    let spare = place.cli.started().pop().unwrap();
    host.archive(&id).await.unwrap();
    spare.exit().await;
    host.shutdown().await;
}

#[tokio::test]
async fn the_end_of_a_host_is_the_end_of_its_spares() {
    let place = Place::new();
    let host = place.host_with(with_spares(&place, 2)).await;
    counted(&host, |counts| counts.ready == 2).await;
    host.shutdown().await;
    assert_eq!((alive(&place.cli), host.spares().ready), (0, 0));
    drop(host);

    let host = place.host_with(with_spares(&place, 2)).await;
    counted(&host, |counts| counts.ready == 2).await;
    drop(host);
    for spare in place.cli.started() {
        tokio::time::timeout(PATIENCE, spare.exit()).await.unwrap();
    }

    // A session that is in a turn outlives the last handle, and no spare does.
    let host = place.host_with(with_spares(&place, 1)).await;
    counted(&host, |counts| counts.ready == 1).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user(WRITE, Uuid::new_v4()), "ada").await.unwrap();
    until(&mut events, |event, _| event.kind == "approval_opened").await;
    counted(&host, |counts| counts.ready == 1).await;
    let spare = place.cli.started().pop().unwrap();
    assert!(spare.exited().is_none());
    drop(host);
    tokio::time::timeout(PATIENCE, spare.exit()).await.unwrap();
    assert_eq!(alive(&place.cli), 1);
}

/// One CLI for spares, and one for what is started otherwise.
#[derive(Debug, Clone)]
struct Apart {
    spares: Simulated,
    own: Simulated,
}

impl Transport for Apart {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        match launch.args.iter().any(|arg| arg == "--await-claim") {
            true => self.spares.open(launch),
            false => self.own.open(launch),
        }
    }

    fn home(&self) -> Option<&std::path::Path> {
        self.own.home()
    }
}

/// A spare that says that it is another process of this machine.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone)]
struct Posing {
    cli: Simulated,
    pid: u32,
}

#[cfg(target_os = "linux")]
struct Posed {
    process: Box<dyn Process>,
    pid: u32,
}

#[cfg(target_os = "linux")]
impl Transport for Posing {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let mut connection = self.cli.open(launch).await?;
            if launch.args.iter().any(|arg| arg == "--await-claim") {
                let (process, pid) = (connection.process, self.pid);
                connection.process = Box::new(Posed { process, pid });
            }
            Ok(connection)
        })
    }

    fn home(&self) -> Option<&std::path::Path> {
        self.cli.home()
    }
}

#[cfg(target_os = "linux")]
impl Process for Posed {
    fn id(&self) -> Option<u32> {
        Some(self.pid)
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        self.process.wait()
    }

    fn signal(&mut self, signal: transport::Signal) -> io::Result<()> {
        self.process.signal(signal)
    }
}

/// Between the look at the directory of a session and the claim, the directory can become a link to another place.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_spare_that_a_claim_takes_out_of_the_roots_gets_no_prompt() {
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    let mut sleep = tokio::process::Command::new("sleep");
    sleep.arg("600").current_dir(outside.path()).kill_on_drop(true);
    let elsewhere = sleep.spawn().unwrap();
    let mut policy = with_spares(&place, 1);
    policy.options = place.options().transport(Posing {
        cli: place.cli.clone(),
        pid: elsewhere.id().unwrap(),
    });
    let host = place.host_with(policy).await;
    counted(&host, |counts| counts.ready == 1).await;
    let id = place.session(&host).await;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    host.send(&id, user("%say one", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    let failed = until(&mut events, |event, _| event.kind == "start_failed").await;
    let why = failed.payload.get();
    assert!(why.contains("where the process was started"), "{why}");
    assert_eq!(processes(&host, &id).await, []);
    tokio::time::timeout(PATIENCE, place.cli.started()[0].exit())
        .await
        .unwrap();
    assert_eq!(host.spares().claimed, 0);
    // A process that is where it belongs goes on with the prompt.
    say(&host, &id, "%say two").await;
    assert_eq!(processes(&host, &id).await, [(false, false)]);
    host.shutdown().await;
}

async fn refuses(steps: fn() -> Steps) -> SpareCounts {
    let place = Place::new();
    let apart = Apart {
        spares: Simulated::steps(steps),
        own: place.cli.clone(),
    };
    let mut policy = with_spares(&place, 1);
    let options: Options = place.options();
    policy.options = options.transport(apart.clone());
    let host = place.host_with(policy).await;
    counted(&host, |counts| counts.ready == 1).await;
    let id = place.session(&host).await;
    say(&host, &id, "%say one").await;
    assert_eq!(
        processes(&host, &id).await,
        [(false, false)],
        "one process, which is its own"
    );
    let spare = apart.spares.started().remove(0);
    assert!(
        spare.exited().is_some(),
        "it ended before the other one was started"
    );
    let counts = host.spares();
    host.shutdown().await;
    counts
}

#[tokio::test]
async fn a_session_whose_claim_fails_starts_its_own_process() {
    let counts = refuses(|| {
        let steps = Steps::new().initialize().expect(Match::request("claim_session"));
        steps.reply_error("project_settings_not_claimable: env")
    })
    .await;
    assert_eq!((counts.refused, counts.failed), (1, 0), "it is the session's");
    let counts = refuses(|| {
        let steps = Steps::new().initialize().expect(Match::request("claim_session"));
        steps.exit(1)
    })
    .await;
    assert_eq!((counts.refused, counts.failed), (1, 1), "it is the spare's");
    // Another session than the one that has the lease.
    let counts = refuses(|| {
        let other = json!({"session_id": Uuid::new_v4(), "initialize": {}});
        let steps = Steps::new().initialize().expect(Match::request("claim_session"));
        steps.reply(other)
    })
    .await;
    assert_eq!(counts.refused, 1);
}

#[tokio::test]
async fn a_creation_that_fails_keeps_no_spare() {
    let place = Place::new();
    let host = place.host_with(with_spares(&place, 1)).await;
    counted(&host, |counts| counts.ready == 1).await;
    let key = SessionId::random();
    for key in [None, Some(key)] {
        let mut new = NewSession::new(place.dir.path());
        new.key.clone_from(&key);
        // The policy has no worktrees, and says so when the session has its id.
        let mut failing = new.clone();
        failing.worktree = Some(NewWorktree::default());
        host.create(failing, "ada").await.unwrap_err();
        assert_eq!(host.spares().reserved, 0);
        counted(&host, |counts| counts.ready == 1).await;
        // Repeated in another way, it is a session like any other.
        let id = host.create(new, "ada").await.unwrap().id;
        say(&host, &id, "%say one").await;
        counted(&host, |counts| counts.ready == 1 && counts.reserved == 0).await;
        assert_eq!(processes(&host, &id).await, [(key.is_none(), false)]);
    }
    assert_eq!(host.sessions(None, 10).await.unwrap().len(), 2);
    host.shutdown().await;
    assert_eq!(alive(&place.cli), 0);
}

#[tokio::test]
async fn two_creations_at_once_are_two_sessions_unless_they_have_one_key() {
    let place = Place::new();
    let host = place.host_with(with_spares(&place, 2)).await;
    counted(&host, |counts| counts.ready == 2).await;
    let one = NewSession::new(place.dir.path());
    let (first, second) = tokio::join!(host.create(one.clone(), "ada"), host.create(one.clone(), "ada"));
    let (first, second) = (first.unwrap().id, second.unwrap().id);
    assert_ne!(first, second);
    assert_eq!(host.spares().reserved, 2);

    // Spares come and go meanwhile.
    for id in [&first, &second] {
        host.archive(id).await.unwrap();
    }
    for _ in 0..20 {
        let mut keyed = one.clone();
        keyed.key = Some(SessionId::random());
        let mut creations = Vec::new();
        for _ in 0..8 {
            let (host, keyed) = (host.clone(), keyed.clone());
            creations.push(tokio::spawn(async move {
                host.create(keyed, "ada").await.unwrap().id
            }));
        }
        let mut ids = std::collections::BTreeSet::new();
        for creation in creations {
            ids.insert(creation.await.unwrap());
        }
        assert_eq!(ids.len(), 1);
        let id = ids.first().unwrap();
        host.archive(id).await.unwrap();
        host.delete(id).await.unwrap();
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_creation_that_is_repeated_finds_the_session_that_took_a_spare() {
    let place = Place::new();
    let host = place.host_with(with_spares(&place, 2)).await;
    counted(&host, |counts| counts.ready == 2).await;
    let key = SessionId::random();
    let new = || {
        let mut new = NewSession::new(place.dir.path());
        new.key = Some(key.clone());
        new
    };
    let (first, second) = tokio::join!(host.create(new(), "ada"), host.create(new(), "ada"));
    let id = first.unwrap().id;
    assert_eq!(second.unwrap().id, id);
    assert_ne!(id, key);
    assert_eq!(host.spares().reserved, 1);
    say(&host, &id, "%say one").await;
    assert_eq!(processes(&host, &id).await, [(true, false)]);
    host.shutdown().await;
    drop(host);

    // Another host knows it, without spares, too.
    let host = place.host().await;
    assert_eq!(host.create(new(), "ada").await.unwrap().id, id);
    host.archive(&id).await.unwrap();
    host.delete(&id).await.unwrap();
    assert_eq!(host.create(new(), "ada").await.unwrap().id, key);
    host.shutdown().await;
    drop(host);
    let host = place.host_with(with_spares(&place, 1)).await;
    counted(&host, |counts| counts.ready == 1).await;
    assert_eq!(host.create(new(), "ada").await.unwrap().id, key);
    host.shutdown().await;
}
