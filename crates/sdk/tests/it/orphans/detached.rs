//! What a command detached on purpose: left where the CLI leaves it, ended where that is chosen, and what is not found.

use std::path::Path;

use outrigger::{Detached, Local, Policy};

use super::{Host, Place, STUBBORN};
use crate::witness::{command_line, living_in, none_left, until};

/// A process that left the group and the family of whoever started it, as its parent is gone.
const DETACHED: &str = "(setsid sleep 1003 > /dev/null 2>&1 < /dev/null &)\n(setsid sh -c 'trap \"\" TERM HUP; sleep 1003 & sleep 1003' > /dev/null 2>&1 < /dev/null &)";

fn is_detached(command: &str) -> bool {
    command.trim_end() == "sleep 1003"
}

/// Those that live here; they are no longer wanted.
fn end_by_hand(home: &Path) {
    for pid in living_in(home)
        .into_keys()
        .filter_map(rustix::process::Pid::from_raw)
    {
        // It may have ended meanwhile.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

async fn detached_in(home: &Path, wanted: usize) {
    until("what is detached", || {
        let all = living_in(home);
        match all.values().filter(|command| is_detached(command)).count() {
            found if found == wanted => Ok(()),
            _ => Err(format!("{all:#?}")),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_detached_ends_if_that_is_chosen() {
    for end in ["close", "kill", "drop", "by itself"] {
        let after = if end == "by itself" {
            "read -r line"
        } else {
            "cat > /dev/null"
        };
        let place = Place::new(DETACHED, after);
        let mut job = place.job("here");
        job.end_detached = true;
        let session = job.start().await;
        detached_in(&place.home(), 3).await;
        match end {
            "close" => drop(session.close().await.unwrap()),
            "kill" => drop(session.kill().await.unwrap()),
            "drop" => drop(session),
            _ => {
                let mut turn = session.prompt("hello").await.unwrap();
                turn.outcome().await.unwrap_err();
            }
        }
        none_left(&place.home()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_detached_is_left_unless_that_is_chosen() {
    let place = Place::new(DETACHED, "cat > /dev/null");
    let other = Place::new(DETACHED, "cat > /dev/null");
    let mut job = place.job("here");
    let session = job.start().await;
    detached_in(&place.home(), 3).await;
    session.close().await.unwrap();
    detached_in(&place.home(), 3).await;
    // Another session that ends its own leaves them, too.
    job = other.job("here");
    job.end_detached = true;
    let session = job.start().await;
    detached_in(&other.home(), 3).await;
    session.close().await.unwrap();
    none_left(&other.home()).await;
    detached_in(&place.home(), 3).await;
    end_by_hand(&place.home());
    none_left(&place.home()).await;
}

/// The program is killed: its guardian ends what was detached. Without one, nobody does, as the docs say.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_detached_does_not_survive_a_killed_program() {
    for guardian in [true, false] {
        let place = Place::new(&format!("{DETACHED}\n{STUBBORN}"), "exec sleep 1000");
        let mut job = place.job("spawned task");
        job.guardian = guardian;
        job.end_detached = true;
        let mut host = Host::start(&job);
        assert_eq!(host.said(&job).await, "ready");
        detached_in(&place.home(), 3).await;
        host.kill();
        if !guardian {
            until("the end of the CLI", || {
                let all = living_in(&place.home());
                let lives =
                    |command: &String| command.trim_end() == "sleep 1000" && !command.contains("stubborn");
                match all.values().filter(|command| lives(command)).count() {
                    0 | 1 => Ok(()),
                    _ => Err(format!("{all:#?}")),
                }
            })
            .await;
            detached_in(&place.home(), 3).await;
            end_by_hand(&place.home());
        }
        none_left(&place.home()).await;
    }
}

/// What the docs say that it does not hold for.
#[tokio::test(flavor = "multi_thread")]
async fn who_clears_its_environment_is_not_found() {
    let place = Place::new(
        "mkfifo \"$HOME/alive\"\n(exec env -i setsid sleep 1004 < \"$HOME/alive\" > /dev/null 2>&1 &)\nexec 3> \"$HOME/alive\"",
        "cat > /dev/null",
    );
    let mut job = place.job("here");
    job.end_detached = true;
    let session = job.start().await;
    let found = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let alive = place.home().join("alive");
        pids.find(|pid| {
            command_line(*pid).trim_end() == "sleep 1004"
                && std::fs::read_link(format!("/proc/{pid}/fd/0")).is_ok_and(|stdin| stdin == alive)
        })
    };
    let pid = until("the process", || found().ok_or_else(String::new)).await;
    session.close().await.unwrap();
    assert_eq!(found(), Some(pid));
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// What the CLI itself does, and what is made of it: whatever ends the session.
#[tokio::test(flavor = "multi_thread")]
async fn the_real_cli_leaves_what_a_command_detached() {
    let rig = crate::real::rig::Rig::start().await;
    let home = rig.sandbox().home();
    let command = "setsid nohup sleep 1003 > /dev/null 2>&1 &";
    let prompt = format!(
        "%tool Bash {}\n%say over",
        serde_json::json!({ "command": command })
    );
    for detached in [Detached::Leave, Detached::End] {
        for end in ["end of stdin", "SIGTERM", "SIGKILL", "end_session", "kill"] {
            let session = rig
                .options()
                .permissions(Policy::allow_all())
                .transport(Local::new().detached(detached))
                .start()
                .await
                .unwrap();
            crate::real::rig::turn(&session, &prompt).await;
            detached_in(&home, 1).await;
            let cli = rustix::process::Pid::from_raw(session.pid().unwrap().try_into().unwrap()).unwrap();
            let send = |signal| rustix::process::kill_process(cli, signal).unwrap();
            match end {
                "end of stdin" => drop(session.close().await.unwrap()),
                "SIGTERM" => send(rustix::process::Signal::TERM),
                "SIGKILL" => send(rustix::process::Signal::KILL),
                "end_session" => drop(session.end_session().await.unwrap()),
                _ => drop(session.kill().await.unwrap()),
            }
            if detached == Detached::Leave {
                // Of all that is left it is the one.
                until("the end of the CLI", || {
                    let all = living_in(&home);
                    match all.values().all(|command| is_detached(command)) {
                        true => Ok(()),
                        false => Err(format!("{end}: {all:#?}")),
                    }
                })
                .await;
                detached_in(&home, 1).await;
                end_by_hand(&home);
            }
            none_left(&home).await;
        }
    }
}
