//! Traps that take a real process.

use std::path::Path;
use std::time::Duration;

use outrigger::Options;
use outrigger::options::{Auth, Secret};
use outrigger::testing::assert::{living_of, no_process_left};
use outrigger::testing::sim::peer::faulty::{self, FaultyScript, FaultyStep, Grandchild, Note};

/// Longer than anything here takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

fn options(script: &FaultyScript, home: &Path) -> Options {
    std::fs::write(home.join("script.json"), script.to_json()).unwrap();
    outrigger::Agent::builder()
        .auth(Auth::ApiKey(Secret::new("simulated")))
        .cli_path(faulty::executable().unwrap())
        .cwd(home)
        .env("HOME", home)
        .env("CLAUDE_CONFIG_DIR", home)
        .env(faulty::SCRIPT, home.join("script.json"))
        .env(faulty::LOG, home.join("log.jsonl"))
}

fn grandchildren(home: &Path) -> Vec<u32> {
    let log = std::fs::read_to_string(home.join("log.jsonl")).unwrap();
    let notes = log.lines().map(|line| serde_json::from_str(line).unwrap());
    notes
        .filter_map(|note| match note {
            Note::Grandchild(pid) => Some(pid),
            _ => None,
        })
        .collect()
}

/// Ends what a test that fails would leave.
struct Ends(Vec<u32>);

impl Drop for Ends {
    fn drop(&mut self) {
        let pids = self.0.iter().map(u32::to_string);
        let _ = std::process::Command::new("kill").arg("-9").args(pids).output();
    }
}

/// Guard: `child/unix.rs`, whoever does not go is killed, and with it what it started, also in sessions of their own.
#[tokio::test]
async fn sigterm_ignoring_child_and_grandchild() {
    let home = tempfile::tempdir().unwrap();
    let deaf = |own_session| Grandchild {
        survives: true,
        own_session,
        holds_pipes: false,
    };
    let script = FaultyScript::new()
        .grandchild(deaf(false))
        .grandchild(deaf(true))
        .step(FaultyStep::Survive)
        .initialize()
        .step(FaultyStep::Hold);
    let short = Duration::from_millis(100);
    let session = options(&script, home.path())
        .close_grace(short)
        .term_grace(short)
        .start()
        .await
        .unwrap();
    let pid = session.pid().unwrap();
    let started = grandchildren(home.path());
    assert_eq!(started.len(), 2);
    let _ends = Ends(started.clone());
    assert!(started.iter().all(|pid| !living_of(*pid).is_empty()));
    let exit = session.close().await.unwrap();
    assert_eq!(exit.signal, Some(9));
    for pid in started.into_iter().chain([pid]) {
        no_process_left(pid, PATIENCE).unwrap();
    }
}

/// Guard: `conn/kill_without_runtime.rs` and `child/`, ending a process takes no runtime.
#[test]
fn drop_without_runtime() {
    let home = tempfile::tempdir().unwrap();
    let script = FaultyScript::new()
        .step(FaultyStep::Survive)
        .initialize()
        .step(FaultyStep::Hold);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let session = runtime.block_on(options(&script, home.path()).start()).unwrap();
    let pid = session.pid().unwrap();
    assert!(!living_of(pid).is_empty());
    let _ends = Ends(vec![pid]);
    drop(runtime);
    drop(session);
    no_process_left(pid, PATIENCE).unwrap();
}
