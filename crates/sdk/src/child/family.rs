//! Ends a process with all its descendants.

use std::collections::HashSet;

use rustix::io;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Kills the process group of `leader`, and what its members started outside of it: the CLI runs each command in a session of
/// its own, and only it knows them.
///
/// Everything is stopped before it is killed, so that nothing is started behind our back, and no id is used twice. Descendants
/// are found on Linux only.
pub(super) fn kill(leader: Pid) -> io::Result<()> {
    let descendants = stop(leader);
    let killed = kill_process_group(leader, Signal::KILL);
    for pid in descendants {
        // Those of the group are gone, and one that may not be signalled is not ours to end.
        let _ = kill_process(pid, Signal::KILL);
    }
    killed
}

/// Stops the group and its descendants, and returns the descendants.
#[cfg(target_os = "linux")]
fn stop(leader: Pid) -> HashSet<Pid> {
    // Whoever forks faster than we look is not waited for without end.
    const ROUNDS: usize = 16;

    // A group without members has nothing to be stopped.
    let _ = kill_process_group(leader, Signal::STOP);
    let mut stopped = HashSet::from([leader]);
    for _ in 0..ROUNDS {
        let before = stopped.len();
        let parents = parents();
        let mut found = true;
        while found {
            found = false;
            for (pid, parent) in &parents {
                if stopped.contains(parent) && stopped.insert(*pid) {
                    found = true;
                    let _ = kill_process(*pid, Signal::STOP);
                }
            }
        }
        if stopped.len() == before {
            break;
        }
    }
    stopped.remove(&leader);
    stopped
}

#[cfg(not(target_os = "linux"))]
fn stop(_: Pid) -> HashSet<Pid> {
    HashSet::new()
}

/// All processes with their parents.
#[cfg(target_os = "linux")]
fn parents() -> Vec<(Pid, Pid)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((Pid::from_raw(pid)?, Pid::from_raw(parent(&stat)?)?))
        })
        .collect()
}

/// The parent's id in a line of `/proc/PID/stat`: `1 (name) S 0 …`. The name may hold anything, parentheses and spaces too.
#[cfg(target_os = "linux")]
fn parent(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_anything() {
        assert_eq!(parent("12 (a) S 7 12"), Some(7));
        assert_eq!(parent("12 (a) S 1 (b) R 9 12"), Some(9));
        assert_eq!(parent("12 (a)"), None);
    }

    #[test]
    fn this_process_has_a_parent() {
        let this = rustix::process::getpid();
        let expected = rustix::process::getppid().unwrap();
        assert!(parents().contains(&(this, expected)));
    }
}
