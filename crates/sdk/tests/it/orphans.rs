//! Nothing survives the program that started it: not when that is killed, and not when it lives on.
//!
//! The program that is killed here is this test binary, started again as [`host`] with a job.

mod detached;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger::options::{Auth, Secret};
use outrigger::protocol::RawJson;
use outrigger::sessions::place::{project_dir_name, real_path};
use outrigger::sessions::store::{MemoryStore, SessionKey, SessionStore as _};
use outrigger::transport::Exit;
use outrigger::{Agent, Detached, LeaseOptions, LeaseProblem, Local, OnBusy, Options, Policy, Session};
use outrigger_needs::needs;
use serde::{Deserialize, Serialize};

use crate::stores::file::FileStore;
use crate::support::PATIENCE;
use crate::witness::{children_of, command_line, living_in, none_left, until};

const JOB: &str = "OUTRIGGER_TEST_JOB";

const RESUMED: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";

/// What the host is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// One of the arms in [`host`].
    pub(crate) way: String,
    pub(crate) cli: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) guardian: bool,
    /// Whether what was detached is to end.
    pub(crate) end_detached: bool,
    /// Where it writes what it has to say.
    pub(crate) report: PathBuf,
}

impl Job {
    fn options(&self) -> Options {
        let mut options = Agent::builder()
            .auth(Auth::ApiKey(Secret::new("dummy")))
            .cli_path(&self.cli)
            .cwd(&self.cwd)
            .permissions(Policy::allow_all())
            .transport(Local::new().guardian(self.guardian).detached(self.detached()));
        for (name, value) in &self.env {
            if name != "ANTHROPIC_API_KEY" {
                options = options.env(name, value);
            }
        }
        options
    }

    fn detached(&self) -> Detached {
        match self.end_detached {
            true => Detached::End,
            false => Detached::Leave,
        }
    }

    async fn start(&self) -> Session {
        self.options().start().await.unwrap()
    }

    fn say(&self, what: &str) {
        let partial = self.report.with_extension("partial");
        std::fs::write(&partial, what).unwrap();
        std::fs::rename(partial, &self.report).unwrap();
    }
}

/// The program that is killed, or that is to leave nothing behind. Does nothing unless it is given a job.
#[test]
#[ignore = "the other side of the tests in this file, which start it themselves"]
fn host() {
    let Ok(job) = std::env::var(JOB) else { return };
    let job: Job = serde_json::from_str(&job).unwrap();
    // With so much in memory only the guardian watches.
    let ballast = vec![1_u8; if job.way == "large" { 96 * 1024 * 1024 } else { 0 }];
    let multi_thread = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_keep_alive(Duration::from_millis(1))
            .enable_all()
            .build()
            .unwrap()
    };
    match job.way.as_str() {
        "current thread" => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let session = job.start().await;
                job.say("ready");
                session.wait_ended().await;
            });
        }
        "spawned task" | "large" => multi_thread().block_on(async {
            let job = std::sync::Arc::new(job);
            let theirs = std::sync::Arc::clone(&job);
            let session = tokio::spawn(async move { theirs.start().await }).await.unwrap();
            job.say("ready");
            session.wait_ended().await;
        }),
        "ended thread" => {
            let runtime = multi_thread();
            let handle = runtime.handle().clone();
            let session =
                std::thread::scope(|scope| scope.spawn(|| handle.block_on(job.start())).join().unwrap());
            runtime.block_on(stays(&job, session));
        }
        "blocking thread" => {
            let runtime = multi_thread();
            runtime.block_on(async {
                let job = std::sync::Arc::new(job);
                let theirs = std::sync::Arc::clone(&job);
                let handle = tokio::runtime::Handle::current();
                let open = move || handle.block_on(theirs.start());
                let session = tokio::task::spawn_blocking(open).await.unwrap();
                stays(&job, session).await;
            });
        }
        "prompting" => multi_thread().block_on(async {
            let session = job.start().await;
            let command = "%tool Bash {\"command\":\"tail -f /dev/null\"}\n%say over";
            let _running = session.prompt(command).await.unwrap();
            job.say("ready");
            session.wait_ended().await;
        }),
        "without standard streams" => {
            let runtime = multi_thread();
            for fd in 0..3 {
                // SAFETY: nothing here uses the standard streams from now on, and what gets their numbers next owns them.
                unsafe { rustix::io::close(fd) };
            }
            runtime.block_on(async {
                let session = job.start().await;
                job.say("ready");
                session.wait_ended().await;
            });
        }
        // Goes on with a session of a store.
        "resumed" => multi_thread().block_on(async {
            let store = Arc::new(MemoryStore::new());
            let project = project_dir_name(&real_path(&job.cwd));
            let entry = RawJson::from_text(r#"{"type":"user","uuid":"u"}"#).unwrap();
            let key = SessionKey::new(project, RESUMED);
            store.append(&key, &[entry]).await.unwrap();
            let options = job.options().auth(Auth::Inherit).session_store(store);
            let session = options.resume(RESUMED).start().await.unwrap();
            job.say("ready");
            session.wait_ended().await;
        }),
        // Goes on with a session of a store that outlives this program, the one that is named beside the report.
        "resumed for a turn" => multi_thread().block_on(async {
            let id = std::fs::read_to_string(job.report.with_extension("id")).unwrap();
            let prompt = std::fs::read_to_string(job.report.with_extension("prompt")).unwrap();
            let store = Arc::new(FileStore::at(&job.report.with_extension("store")));
            let options = job.options().session_store(store);
            let session = options.resume(id).start().await.unwrap();
            let mut turn = session.prompt(prompt.as_str()).await.unwrap();
            while let Some(event) = turn.next().await {
                if let outrigger::Event::ToolUse(_) = event.unwrap() {
                    job.say("running");
                }
            }
            turn.outcome().await.unwrap();
            session.close().await.unwrap();
            job.say("over");
        }),
        // Has a session for itself: in a store, or on disk.
        "leased in a store" => multi_thread().block_on(async {
            let session = leased_in_a_store(&job, "the host").start().await.unwrap();
            job.say("ready");
            session.wait_ended().await;
        }),
        "leased" => multi_thread().block_on(async {
            let lease = LeaseOptions::new().owner("the host");
            let options = job.options().resume(RESUMED).lease(lease);
            let session = options.start().await.unwrap();
            job.say("ready");
            session.wait_ended().await;
        }),
        "fifty" => {
            let runtime = multi_thread();
            let said = runtime.block_on(fifty(&job));
            job.say(&said);
        }
        "no runtime" => {
            let runtime = multi_thread();
            let session = runtime.block_on(job.start());
            drop(runtime);
            drop(session);
            let this = rustix::process::getpid().as_raw_pid();
            let until = Instant::now() + PATIENCE / 2;
            while !children_of(this).is_empty() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            job.say(&format!("left: {:?}", children_of(this)));
        }
        "adopting" => {
            let this = rustix::process::getpid();
            rustix::process::set_child_subreaper(Some(this)).unwrap();
            let ended = multi_thread().block_on(async {
                let session = job.start().await;
                until("its children", || {
                    let all = living_in(Path::new(&job.env["HOME"]));
                    if all.len() >= 2 {
                        Ok(())
                    } else {
                        Err(format!("{all:?}"))
                    }
                })
                .await;
                session.close().await.unwrap()
            });
            let left = children_of(this.as_raw_pid());
            job.say(&format!("{ended}, left: {left:?}"));
        }
        other => panic!("no such way: {other}"),
    }
    drop(ballast);
}

/// The thread that opened the session ends, and the session does not.
async fn stays(job: &Job, session: Session) {
    let ended = tokio::time::timeout(Duration::from_millis(500), session.wait_ended()).await;
    assert!(ended.is_err(), "{ended:?}");
    job.say("ready");
    session.wait_ended().await;
}

/// Opens and closes sessions, and says what that left behind.
async fn fifty(job: &Job) -> String {
    let count = |directory: &str| std::fs::read_dir(directory).unwrap().count();
    let counts = || {
        let this = rustix::process::getpid().as_raw_pid();
        (
            children_of(this).len(),
            count("/proc/self/task"),
            count("/proc/self/fd"),
        )
    };
    // What a first session makes once: drivers, threads, caches.
    job.start().await.close().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = counts();
    for round in 0..10 {
        let starting = (0..5).map(|_| job.options().start());
        let sessions = futures_util::future::join_all(starting).await;
        for (n, session) in sessions.into_iter().enumerate() {
            let session = session.unwrap();
            match (round + n) % 3 {
                0 => drop(session.close().await.unwrap()),
                1 => drop(session.kill().await.unwrap()),
                _ => drop(session),
            }
        }
    }
    let until = Instant::now() + PATIENCE / 2;
    loop {
        let now = counts();
        if now == before {
            return "nothing".to_owned();
        }
        if Instant::now() > until {
            return format!("(children, threads, descriptors) were {before:?}, are {now:?}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A place with a stand-in for the CLI.
struct Place {
    root: tempfile::TempDir,
    cli: PathBuf,
    env: BTreeMap<String, String>,
}

/// A grandchild that only SIGKILL ends.
const STUBBORN: &str = "sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' stubborn &";

impl Place {
    /// The stand-in does `before`, answers `initialize`, and goes on with `after`.
    fn new(before: &str, after: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let answer = r#"{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"account":{"apiKeySource":"ANTHROPIC_API_KEY"}}}}\n"#;
        let text = format!(
            "#!/bin/sh\n{before}\nread -r line\nid=${{line#*'\"request_id\":\"'}}\nid=${{id%%'\"'*}}\n\
             printf '{answer}' \"$id\"\n{after}\n"
        );
        let cli = root.path().join("stand-in");
        outrigger_needs::script(&cli, text).unwrap();
        let home = root.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(root.path().join("tmp")).unwrap();
        let env = BTreeMap::from([
            ("HOME".to_owned(), home.display().to_string()),
            ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
        ]);
        Self { root, cli, env }
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    fn job(&self, way: &str) -> Job {
        Job {
            way: way.to_owned(),
            cli: self.cli.clone(),
            cwd: self.root.path().to_owned(),
            env: self.env.clone(),
            guardian: true,
            end_detached: false,
            report: self.root.path().join("report"),
        }
    }
}

/// The host, killed when dropped.
pub(crate) struct Host(Child);

impl Host {
    pub(crate) fn start(job: &Job) -> Self {
        Self::start_by(Command::new(std::env::current_exe().unwrap()), job)
    }

    fn start_by(mut command: Command, job: &Job) -> Self {
        // Started more than once, it is not to find its own earlier words.
        let _ = std::fs::remove_file(&job.report);
        command
            .args([
                "--exact",
                "orphans::host",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env("TMPDIR", job.cwd.join("tmp"))
            .env(JOB, serde_json::to_string(job).unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// Waits for its report.
    pub(crate) async fn said(&mut self, job: &Job) -> String {
        until("the host's report", || {
            if let Ok(said) = std::fs::read_to_string(&job.report) {
                return Ok(said);
            }
            let ended = self.0.try_wait().unwrap();
            assert!(ended.is_none(), "the host ended: {ended:?}");
            Err("none".to_owned())
        })
        .await
    }

    fn id(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    /// SIGKILL, as from the system's out-of-memory killer.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It is over already when all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn guardians(host: &Host) -> Vec<i32> {
    let children = children_of(host.id());
    let is_one = |command: &String| command.contains("outrigger-guardian");
    children
        .into_iter()
        .filter(|(_, command)| is_one(command))
        .map(|(pid, _)| pid)
        .collect()
}

async fn gone(guardian: i32) {
    until("the guardian's end", || {
        let command = command_line(guardian);
        if command.contains("outrigger-guardian") {
            Err(command)
        } else {
            Ok(())
        }
    })
    .await;
}

async fn wait_for(place: &Place, what: &str) {
    until(what, || {
        let all = living_in(&place.home());
        if all.values().any(|command| command.contains(what)) {
            Ok(())
        } else {
            Err(format!("{all:#?}"))
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_program_leaves_nothing() {
    for way in [
        "current thread",
        "spawned task",
        "ended thread",
        "blocking thread",
        "without standard streams",
        "large",
    ] {
        let place = Place::new(STUBBORN, "exec sleep 1000");
        let job = place.job(way);
        let mut host = Host::start(&job);
        assert_eq!(host.said(&job).await, "ready", "{way}");
        wait_for(&place, "stubborn").await;
        wait_for(&place, "sleep 1000").await;
        let guardians = guardians(&host);
        assert_eq!(guardians.len(), 1, "{way}");
        host.kill();
        let since = Instant::now();
        none_left(&place.home()).await;
        gone(guardians[0]).await;
        let took = since.elapsed();
        assert!(took < Duration::from_secs(20), "{way}: {took:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stubborn_cli_and_what_it_runs_elsewhere_do_not_survive_either() {
    let elsewhere = "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1001; done' elsewhere &";
    let place = Place::new(
        &format!("trap '' TERM HUP INT\n{elsewhere}"),
        "while :; do sleep 1000; done",
    );
    let job = place.job("current thread");
    let mut host = Host::start(&job);
    assert_eq!(host.said(&job).await, "ready");
    wait_for(&place, "elsewhere").await;
    wait_for(&place, "sleep 1001").await;
    host.kill();
    none_left(&place.home()).await;
}

/// Without a guardian the kernel kills the CLI itself, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_guardian_the_cli_dies_all_the_same() {
    let place = Place::new("trap '' TERM HUP INT", "while :; do sleep 0.1; done");
    let mut job = place.job("spawned task");
    job.guardian = false;
    let mut host = Host::start(&job);
    assert_eq!(host.said(&job).await, "ready");
    assert!(guardians(&host).is_empty());
    host.kill();
    none_left(&place.home()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_process_of_a_container_leaves_nothing() {
    let place = Place::new(STUBBORN, "exec sleep 1000");
    let job = place.job("spawned task");
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    needs!(outrigger_needs::allows(
        Command::new("unshare").args(["--pid", "--fork", "--mount-proc", "true"]),
        "a pid namespace, which only the superuser may make without more",
    ));
    unshare.arg(std::env::current_exe().unwrap());
    let mut host = Host::start_by(unshare, &job);
    assert_eq!(host.said(&job).await, "ready");
    wait_for(&place, "stubborn").await;
    host.kill();
    none_left(&place.home()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_leave_no_process_thread_or_descriptor() {
    let place = Place::new(STUBBORN, "cat > /dev/null");
    let job = place.job("fifty");
    let mut host = Host::start(&job);
    assert_eq!(host.said(&job).await, "nothing");
    none_left(&place.home()).await;
}

/// A process that is killed because its runtime went away is reaped, though no runtime is left to do it.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_runtime_it_is_reaped_all_the_same() {
    let place = Place::new(STUBBORN, "exec sleep 1000");
    let job = place.job("no runtime");
    let mut host = Host::start(&job);
    assert_eq!(host.said(&job).await, "left: {}");
    none_left(&place.home()).await;
}

/// Where orphans come to this process, as in a container without an init, they are reaped too.
#[tokio::test(flavor = "multi_thread")]
async fn adopted_grandchildren_are_reaped() {
    let place = Place::new(STUBBORN, "cat > /dev/null");
    let job = place.job("adopting");
    let mut host = Host::start(&job);
    assert_eq!(host.said(&job).await, "exit code 0, left: {}");
}

/// The CLI ends by itself, and a server that it started does not.
#[tokio::test(flavor = "multi_thread")]
async fn what_outlives_the_cli_in_its_group_is_ended() {
    let place = Place::new(STUBBORN, "read -r line\nexit 3");
    let session = place.job("here").start().await;
    wait_for(&place, "stubborn").await;
    let mut turn = session.prompt("hello").await.unwrap();
    let error = turn.outcome().await.unwrap_err();
    assert_eq!(error.exit(), Some(Exit::with_code(3)));
    none_left(&place.home()).await;
}

/// What the host's sessions have in places of their own, with what is in it.
fn private_places(place: &Place) -> BTreeMap<String, Vec<String>> {
    let names = |directory: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    };
    let temporary = place.root.path().join("tmp");
    let all = names(&temporary).into_iter();
    all.map(|name| (name.clone(), names(&temporary.join(name))))
        .collect()
}

async fn no_private_place(place: &Place) {
    until("no private place", || match private_places(place) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    })
    .await;
}

const CREDENTIALS: &str = r#"{"claudeAiOauth":{"accessToken":"a"}}"#;

/// A place whose user is logged in.
fn logged_in(before: &str, after: &str) -> Place {
    let place = Place::new(before, after);
    let config = place.home().join(".claude");
    std::fs::create_dir(&config).unwrap();
    std::fs::write(config.join(".credentials.json"), CREDENTIALS).unwrap();
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_program_leaves_no_credentials() {
    for before in [STUBBORN, "trap '' TERM HUP INT"] {
        let place = logged_in(before, "while :; do sleep 0.1; done");
        let mut host = Host::start(&place.job("resumed"));
        assert_eq!(host.said(&place.job("resumed")).await, "ready");
        let used = private_places(&place);
        let files = used.values().next().expect("it is in a place of its own");
        assert!(files.iter().any(|name| name == ".credentials.json"), "{used:?}");
        host.kill();
        none_left(&place.home()).await;
        no_private_place(&place).await;
    }
}

/// Where no guardian removes it, the next one does, who needs such a place; and leaves alone what is used.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_program_left_goes_with_the_next_start() {
    let place = logged_in("", "while :; do sleep 0.1; done");
    let mut job = place.job("resumed");
    job.guardian = false;
    let mut first = Host::start(&job);
    assert_eq!(first.said(&job).await, "ready");
    first.kill();
    none_left(&place.home()).await;
    let left = private_places(&place);
    assert_eq!(left.len(), 1, "{left:?}");

    let mut second = Host::start(&job);
    assert_eq!(second.said(&job).await, "ready");
    let used = private_places(&place);
    assert!(used.len() == 1 && !used.keys().eq(left.keys()), "{used:?}");
    let mut third = Host::start(&job);
    assert_eq!(third.said(&job).await, "ready");
    let both = private_places(&place);
    assert!(
        both.len() == 2 && both.contains_key(used.keys().next().unwrap()),
        "{both:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_owner_leaves_a_session_that_others_can_have() {
    let place = Place::new("", "while :; do sleep 0.1; done");
    let job = place.job("leased");
    let mut host = Host::start(&job);
    assert_eq!(host.said(&job).await, "ready");
    let options = || job.options().resume(RESUMED).lease(OnBusy::Fail);
    let error = options().start().await.unwrap_err();
    let by = error.as_lease_problem().and_then(LeaseProblem::holder);
    let who = format!("the host (process {} on ", host.id());
    assert!(by.is_some_and(|by| by.who.starts_with(&who)), "{error}");
    host.kill();
    // Nobody lists the stand-in as running, so nobody waits for it.
    let session = options().start().await.unwrap();
    assert_eq!(session.fence(), Some(2));
    session.kill().await.unwrap();
    none_left(&place.home()).await;
}

const TTL: Duration = Duration::from_secs(2);

/// A session of the store that the host uses too.
fn leased_in_a_store(job: &Job, owner: &str) -> Options {
    job.options()
        .resume(RESUMED)
        .session_store(Arc::new(FileStore::at(&job.cwd.join("store"))))
        .lease(LeaseOptions::new().owner(owner).ttl(TTL))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_owner_leaves_a_lease_in_the_store_that_runs_out() {
    let place = Place::new("", "while :; do sleep 0.1; done");
    let job = place.job("leased in a store");
    let mut host = Host::start(&job);
    assert_eq!(host.said(&job).await, "ready");
    // It is renewed while its owner lives.
    tokio::time::sleep(2 * TTL).await;
    let held = |error: &outrigger::Error| {
        let by = error.as_lease_problem().and_then(LeaseProblem::holder);
        by.is_some_and(|by| by.who.starts_with("the host (process "))
    };
    let options = || leased_in_a_store(&job, "the next");
    let error = options().start().await.unwrap_err();
    assert!(held(&error), "{error}");
    host.kill();
    let since = Instant::now();
    let session = loop {
        match options().start().await {
            Ok(session) => break session,
            Err(error) => assert!(held(&error), "{error}"),
        }
        assert!(since.elapsed() < PATIENCE, "it never runs out");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    // The last renewal was a third of that ago at most, give or take a slow machine.
    assert!(since.elapsed() >= TTL / 2, "{:?}", since.elapsed());
    assert_eq!(session.fence(), Some(2));
    session.kill().await.unwrap();
    none_left(&place.home()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_cli_ends_its_command_when_the_program_is_killed() {
    let rig = crate::real::rig::Rig::start().await;
    let job = Job {
        way: "prompting".to_owned(),
        cli: rig.executable().to_owned(),
        cwd: rig.sandbox().project().to_owned(),
        env: rig.sandbox().env(&rig.api().base_url()),
        guardian: true,
        end_detached: false,
        report: rig.sandbox().path().join("report"),
    };
    let mut host = Host::start(&job);
    assert_eq!(host.said(&job).await, "ready");
    until("the command", || {
        let all = living_in(&rig.sandbox().home());
        if all.values().any(|command| command.starts_with("tail -f")) {
            Ok(())
        } else {
            Err(format!("{all:#?}"))
        }
    })
    .await;
    host.kill();
    none_left(&rig.sandbox().home()).await;
}
