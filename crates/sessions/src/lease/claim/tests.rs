//! Leases, between threads and between processes that are killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::*;
use crate::write::testing::TestConfigDir;

const DIR: &str = "OUTRIGGER_TEST_LEASE_DIR";
const TURNS: &str = "OUTRIGGER_TEST_LEASE_TURNS";
const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

fn busy(result: Result<Lease>) -> Busy {
    match result {
        Err(Error::Busy(busy)) => *busy,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_has_a_session_at_a_time() {
    let place = TestConfigDir::new();
    let id = SessionId::new(ID).unwrap();
    let claim = || place.sessions.claim(&id).owner("a");
    let first = claim().take().unwrap();
    assert_eq!((first.fence(), first.taken_from()), (Fence(1), None));
    first.check().unwrap();
    let busy_with = busy(claim().take());
    assert_eq!(
        (busy_with.fence, busy_with.owner.pid),
        (Some(Fence(1)), std::process::id())
    );
    let told = busy_with.to_string();
    assert!(
        told.contains(ID) && told.contains("driven by a ") && told.contains("fence 1"),
        "{told}"
    );
    // The same id in capitals is the same session; another is not.
    busy(
        place
            .sessions
            .claim(&SessionId::new(&ID.to_uppercase()).unwrap())
            .take(),
    );
    drop(place.sessions.claim(&SessionId::random()).take().unwrap());

    first.release().unwrap();
    let second = claim().take().unwrap();
    assert_eq!((second.fence(), second.taken_from()), (Fence(2), None));
    drop(second);
    assert_eq!(claim().take().unwrap().fence(), Fence(3));
    let left: Vec<_> = fs::read_dir(place.sessions.config_dir().join("outrigger/leases"))
        .unwrap()
        .collect();
    assert_eq!(
        left.len(),
        4,
        "a file and a lock for each of two sessions: {left:?}"
    );
}

#[test]
fn a_session_that_is_taken_over_is_lost_to_its_holder() {
    let place = TestConfigDir::new();
    let file = place.session(&["{}"]);
    let claim = |name| {
        place
            .sessions
            .claim(&file.id)
            .owner(name)
            .on_busy(OnBusy::TakeOver)
    };
    let old = claim("old").take().unwrap();
    assert_eq!(old.wanted_by().unwrap(), None);
    let new = claim("new").patience(Duration::from_millis(50)).take().unwrap();
    assert_eq!((new.fence(), &*new.taken_from().unwrap().name), (Fence(2), "old"));
    let Err(Error::Fenced(by)) = old.check() else {
        panic!("it is fenced off")
    };
    assert_eq!((&*by.owner.name, by.fence), ("new", Some(Fence(2))));
    assert!(matches!(old.wanted_by(), Err(Error::Fenced(_))));
    assert!(matches!(
        old.guard(|| file.rename("old's")),
        Err(Error::Fenced(_))
    ));
    new.guard(|| file.rename("new's")).unwrap();
    assert!(!fs::read_to_string(&file.path).unwrap().contains("old's"));
    // What the old one lets go is not the new one's.
    old.release().unwrap();
    new.check().unwrap();
    busy(place.sessions.claim(&file.id).take());
}

#[test]
fn a_holder_that_is_asked_can_let_go_in_time() {
    let place = TestConfigDir::new();
    let id = SessionId::random();
    let old = place.sessions.claim(&id).owner("old").take().unwrap();
    let sessions = &place.sessions;
    std::thread::scope(|scope| {
        let claim = sessions
            .claim(&id)
            .owner("new")
            .on_busy(OnBusy::TakeOver)
            .patience(Duration::from_secs(60));
        let new = scope.spawn(move || claim.take().unwrap());
        let until = Instant::now() + Duration::from_secs(30);
        while old.wanted_by().unwrap().is_none() {
            assert!(Instant::now() < until, "nobody asks");
            thread::sleep(STEP);
        }
        assert_eq!(old.wanted_by().unwrap().unwrap().name, "new");
        old.release().unwrap();
        let new = new.join().unwrap();
        assert_eq!(
            (new.fence(), new.taken_from(), new.wanted_by().unwrap()),
            (Fence(2), None, None)
        );
    });
}

#[test]
fn a_claim_that_is_stopped_leaves_the_session_to_its_holder() {
    let place = TestConfigDir::new();
    let id = SessionId::random();
    let old = place.sessions.claim(&id).owner("old").take().unwrap();
    let (sessions, stop) = (&place.sessions, Arc::new(AtomicBool::new(false)));
    std::thread::scope(|scope| {
        let claim = sessions
            .claim(&id)
            .on_busy(OnBusy::TakeOver)
            .patience(Duration::MAX)
            .stop(Arc::clone(&stop));
        let new = scope.spawn(move || claim.take());
        let until = Instant::now() + Duration::from_secs(30);
        while old.wanted_by().unwrap().is_none() && !new.is_finished() {
            assert!(Instant::now() < until, "nobody asks");
            thread::sleep(STEP);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(new.join().unwrap(), Err(Error::Stopped)));
    });
    assert_eq!(old.wanted_by().unwrap(), None);
    let stopped = sessions
        .claim(&id)
        .on_busy(OnBusy::TakeOver)
        .patience(Duration::ZERO)
        .stop(stop);
    assert!(matches!(stopped.take(), Err(Error::Stopped)));
    old.check().unwrap();
}

#[test]
fn a_busy_session_can_be_forked() {
    let place = TestConfigDir::new();
    let file = place.session(&[r#"{"type":"user","uuid":"u","parentUuid":null,"message":{"content":"x"}}"#]);
    let claim = || place.sessions.claim(&file.id).on_busy(OnBusy::Fork);
    let first = claim().take().unwrap();
    assert_eq!((first.id(), first.forked_from()), (&file.id, None));
    let second = claim().take().unwrap();
    assert_eq!(second.forked_from(), Some(&file.id));
    assert!(place.sessions.find(second.id()).unwrap().size > 0);
    busy(place.sessions.claim(second.id()).take());
    assert!(
        place.sessions.claim(&SessionId::random()).take().is_ok(),
        "it need not exist"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_cli_that_nobody_claimed_for_counts() {
    let place = TestConfigDir::new();
    let id = SessionId::random();
    let cli = Command::new("sleep").arg("60").spawn().unwrap();
    let mut cli = Killed(cli);
    let dir = place.sessions.config_dir().join("sessions");
    fs::create_dir_all(&dir).unwrap();
    fs::write(
        dir.join("1.json"),
        format!(r#"{{"pid":{},"sessionId":"{id}"}}"#, cli.0.id()),
    )
    .unwrap();
    let claim = || {
        place
            .sessions
            .claim(&id)
            .on_busy(OnBusy::TakeOver)
            .patience(Duration::from_millis(30))
    };
    assert_eq!(busy(claim().take()).fence, None);
    // Beside a holder it is not known whose it is: then the holder is not fenced off, and not asked any more.
    fs::rename(dir.join("1.json"), dir.join("1.off")).unwrap();
    let holder = claim().take().unwrap();
    fs::rename(dir.join("1.off"), dir.join("1.json")).unwrap();
    assert_eq!(busy(claim().take()).fence, Some(Fence(1)));
    assert_eq!(holder.wanted_by().unwrap(), None);
    // Not even where the holder died.
    fs::rename(dir.join("1.json"), dir.join("1.off")).unwrap();
    let mut dying = claim().take().unwrap();
    fs::rename(dir.join("1.off"), dir.join("1.json")).unwrap();
    dying.held = None;
    std::mem::forget(dying);
    assert_eq!(busy(claim().on_busy(OnBusy::Fail).take()).fence, None);
    cli.0.kill().unwrap();
    cli.0.wait().unwrap();
    assert_eq!(claim().take().unwrap().fence(), Fence(3));
}

/// After `/clear` the CLI lists itself with the new session before the claimer knows of that.
#[cfg(target_os = "linux")]
#[test]
fn the_cli_of_the_claimer_does_not_count() {
    use std::os::unix::process::CommandExt as _;

    let place = TestConfigDir::new();
    let id = SessionId::random();
    let dir = place.sessions.config_dir().join("sessions");
    fs::create_dir_all(&dir).unwrap();
    let sleeper = |group: i32| {
        let sleeper = Command::new("sleep").arg("60").process_group(group).spawn();
        let sleeper = Killed(sleeper.unwrap());
        let pid = sleeper.0.id();
        let entry = format!(r#"{{"pid":{pid},"sessionId":"{id}"}}"#);
        fs::write(dir.join(format!("{pid}.json")), entry).unwrap();
        (sleeper, pid)
    };
    let (_cli, pid) = sleeper(0);
    let claim = || place.sessions.claim(&id);
    busy(claim().take());
    drop(claim().own_cli(pid).take().unwrap());
    // What it started in its group is its own as well.
    let (_behind_a_script, inner) = sleeper(i32::try_from(pid).unwrap());
    drop(claim().own_cli(pid).take().unwrap());
    assert_eq!(busy(claim().own_cli(inner).take()).owner.pid, pid);
    let (_other, other) = sleeper(0);
    assert_eq!(busy(claim().own_cli(pid).take()).owner.pid, other);
}

#[cfg(target_os = "linux")]
const CLI: &str = "OUTRIGGER_TEST_LEASE_CLI";

/// What the process of the next test runs: it has the session, and a child that stands for its CLI.
#[cfg(target_os = "linux")]
#[test]
fn holder_with_a_cli() {
    use std::os::unix::process::CommandExt as _;

    let Some(script) = std::env::var_os(CLI) else {
        return;
    };
    let dir = PathBuf::from(std::env::var_os(DIR).unwrap());
    let id = SessionId::new(ID).unwrap();
    let lease = Sessions::at(&dir).claim(&id).owner("hung").take().unwrap();
    let mut cli = Command::new("sh")
        .arg("-c")
        .arg(script)
        .process_group(0)
        .spawn()
        .unwrap();
    let pid = cli.id();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let start = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(19)
        .unwrap();
    fs::create_dir_all(dir.join("sessions")).unwrap();
    let entry = format!(
        r#"{{"pid":{pid},"sessionId":"{ID}","procStart":"{start}","kind":"interactive","entrypoint":"sdk-rs"}}"#
    );
    // Whole at once: it is read while it is written.
    fs::write(dir.join("sessions/draft"), entry).unwrap();
    fs::rename(dir.join("sessions/draft"), dir.join("sessions/1.json")).unwrap();
    cli.wait().unwrap();
    let told = matches!(lease.check(), Err(Error::Fenced(_)));
    fs::write(dir.join("told"), told.to_string()).unwrap();
}

/// A holder that was stopped answers nobody and ends nothing. Who takes the session over gets it, and nothing writes behind its back.
#[cfg(target_os = "linux")]
#[test]
fn a_holder_that_hangs_is_displaced_and_its_cli_ended() {
    use rustix::process::{Pid, Signal, kill_process};

    for script in [
        "exec sleep 600",
        "trap '' TERM; touch deaf; while :; do sleep 1; done",
    ] {
        let place = TestConfigDir::new();
        let config = place.sessions.config_dir();
        fs::create_dir_all(config).unwrap();
        let id = SessionId::new(ID).unwrap();
        let holder = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "lease::claim::tests::holder_with_a_cli",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(DIR, config)
            .env(CLI, script)
            .current_dir(config)
            .stdout(Stdio::null())
            .spawn();
        let mut holder = Killed(holder.unwrap());
        let until = Instant::now() + Duration::from_secs(60);
        while driven_by_cli(config, &id).is_none() || script.contains("deaf") && !config.join("deaf").exists()
        {
            assert!(Instant::now() < until, "no CLI is listed");
            thread::sleep(STEP);
        }
        let pid = Pid::from_raw(i32::try_from(holder.0.id()).unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        let claim = place.sessions.claim(&id).owner("new").on_busy(OnBusy::TakeOver);
        let lease = claim.patience(Duration::from_millis(100)).take().unwrap();
        assert_eq!(
            (lease.fence(), &*lease.taken_from().unwrap().name),
            (Fence(2), "hung")
        );
        assert_eq!(driven_by_cli(config, &id), None);
        kill_process(pid, Signal::CONT).unwrap();
        assert!(holder.0.wait().unwrap().success());
        assert_eq!(fs::read_to_string(config.join("told")).unwrap(), "true");
        lease.check().unwrap();
    }
}

#[test]
fn numbers_are_never_used_again() {
    let place = TestConfigDir::new();
    let id = SessionId::new(ID).unwrap();
    drop(place.sessions.claim(&id).take().unwrap());
    let path = place
        .sessions
        .config_dir()
        .join("outrigger/leases")
        .join(format!("{ID}.json"));
    fs::write(&path, "{").unwrap();
    let error = place.sessions.claim(&id).take().unwrap_err();
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

/// A process that is ended when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn holder(dir: &Path, turns: usize) -> Killed {
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "lease::claim::tests::holder_process",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIR, dir)
        .env(TURNS, turns.to_string())
        .stdout(Stdio::null())
        .spawn();
    Killed(child.unwrap())
}

/// What the processes of the next test run: drive the session as often as they are told to.
#[test]
fn holder_process() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else {
        return;
    };
    let turns: usize = std::env::var(TURNS).unwrap().parse().unwrap();
    let sessions = Sessions::at(&dir);
    let id = SessionId::new(ID).unwrap();
    let driving = dir.join("driving");
    for _ in 0..turns {
        let lease = loop {
            match sessions.claim(&id).take() {
                Ok(lease) => break lease,
                Err(Error::Busy(_)) => thread::sleep(Duration::from_millis(1)),
                Err(error) => panic!("{error}"),
            }
        };
        if lease.taken_from().is_some() {
            // It died with it.
            let _ = fs::remove_file(&driving);
        }
        fs::File::create_new(&driving).expect("nobody else drives the session");
        let mut log = fs::File::options()
            .append(true)
            .create(true)
            .open(dir.join("log"))
            .unwrap();
        std::io::Write::write_all(&mut log, format!("{}\n", lease.fence()).as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(2));
        fs::remove_file(&driving).unwrap();
        lease.release().unwrap();
    }
}

#[test]
fn processes_never_drive_a_session_together_even_if_some_are_killed() {
    let place = TestConfigDir::new();
    let config = place.sessions.config_dir();
    fs::create_dir_all(config).unwrap();
    let mut working: Vec<Killed> = (0..3).map(|_| holder(config, 25)).collect();
    let mut dying: Vec<Killed> = (0..3).map(|_| holder(config, 10_000)).collect();
    let fences = || -> Vec<u64> {
        let log = fs::read_to_string(config.join("log")).unwrap_or_default();
        log.lines().map(|line| line.parse().unwrap()).collect()
    };
    let until = Instant::now() + Duration::from_secs(120);
    for (nth, dying) in dying.iter_mut().enumerate() {
        while fences().len() < 20 * (nth + 1) {
            assert!(Instant::now() < until, "too slow: {:?}", fences());
            thread::sleep(Duration::from_millis(5));
        }
        dying.0.kill().unwrap();
        dying.0.wait().unwrap();
    }
    for worker in &mut working {
        assert!(worker.0.wait().unwrap().success());
    }
    let fences = fences();
    assert!(
        fences.len() >= 75 && fences.is_sorted_by(|a, b| a < b),
        "{fences:?}"
    );
}

#[test]
fn what_a_killed_owner_leaves_is_taken_over() {
    let place = TestConfigDir::new();
    let config = place.sessions.config_dir();
    fs::create_dir_all(config).unwrap();
    let id = SessionId::new(ID).unwrap();
    let lease = place.sessions.claim(&id).take().unwrap();
    // As a process that is killed: its locks go, and nothing else happens.
    let mut lease = lease;
    lease.held = None;
    std::mem::forget(lease);
    let next = place.sessions.claim(&id).take().unwrap();
    assert_eq!(
        (next.fence(), next.taken_from().unwrap().pid),
        (Fence(2), std::process::id())
    );
}

/// Whoever has a session may move and mend it; others may not while its holder lives.
#[test]
fn what_somebody_else_drives_is_neither_moved_nor_mended() {
    use crate::relocate::RelocateOptions;

    let place = TestConfigDir::new();
    let file = place.session(&["{\"type\":\"user\",\"uuid\":\"u\",\"message\":{}}", "{\"torn"]);
    let copy = RelocateOptions::new().copy(true);
    let lease = place.sessions.claim(&file.id).owner("worker").take().unwrap();
    assert_eq!(place.sessions.driven_by(&file.id).unwrap(), None, "it is ours");
    file.relocate(&place.sessions, "/mine", &copy).unwrap();

    let state = place
        .sessions
        .config_dir()
        .join(format!("outrigger/leases/{}.json", file.id));
    let text = fs::read_to_string(&state).unwrap();
    let other = text.replace(&format!("\"pid\":{}", std::process::id()), "\"pid\":1");
    assert_ne!(text, other);
    fs::write(&state, other).unwrap();
    let busy = place.sessions.driven_by(&file.id).unwrap().unwrap();
    assert_eq!((busy.owner.name.as_str(), busy.fence), ("worker", Some(Fence(1))));
    for moved in [&copy, &RelocateOptions::new()] {
        let moved = file.relocate(&place.sessions, "/theirs", moved);
        assert!(matches!(moved, Err(Error::Busy(_))), "{moved:?}");
    }
    let repair = file.repair().unwrap();
    assert!(matches!(repair.in_place(), Err(Error::Busy(_))));
    assert!(file.path.exists());
    drop(lease);
    assert_eq!(place.sessions.driven_by(&file.id).unwrap(), None);
    repair.in_place().unwrap();
}
