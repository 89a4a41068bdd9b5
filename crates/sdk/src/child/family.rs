//! Ends a process with all its descendants.

use std::collections::HashSet;
#[cfg(target_os = "linux")]
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

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
        let all = processes();
        let mut found = true;
        while found {
            found = false;
            for ProcessEntry { pid, parent, group } in all.iter() {
                // Members of the group may have outlived their leader.
                if (stopped.contains(parent) || *group == leader) && stopped.insert(*pid) {
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

/// A process.
#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq)]
struct ProcessEntry {
    pid: Pid,
    parent: Pid,
    group: Pid,
}

/// All processes that have a parent.
#[cfg(target_os = "linux")]
fn processes() -> Arc<Vec<ProcessEntry>> {
    static LOOKS: Looks<Vec<ProcessEntry>> = Looks::new();
    LOOKS.after_now(read_processes)
}

#[cfg(target_os = "linux")]
fn read_processes() -> Vec<ProcessEntry> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let (parent, group) = parent_and_group(&stat)?;
            Some(ProcessEntry {
                pid: Pid::from_raw(pid)?,
                parent: Pid::from_raw(parent)?,
                group: Pid::from_raw(group)?,
            })
        })
        .collect()
}

/// Looks that serve all who ask at the same time: a program that ends many sessions at once would look at all of their processes
/// for each of them.
#[cfg(target_os = "linux")]
struct Looks<T> {
    state: Mutex<LooksState<T>>,
    done: Condvar,
}

#[cfg(target_os = "linux")]
struct LooksState<T> {
    /// How many were begun, and how many of them are done: all, or all but the last.
    begun: u64,
    done: u64,
    /// How many wait.
    waiting: usize,
    seen: Option<Arc<T>>,
}

#[cfg(target_os = "linux")]
impl<T> Looks<T> {
    const fn new() -> Self {
        Self {
            state: Mutex::new(LooksState {
                begun: 0,
                done: 0,
                waiting: 0,
                seen: None,
            }),
            done: Condvar::new(),
        }
    }

    /// What a look has seen that begins after this call. `look` may not panic: all others would wait for it.
    fn after_now(&self, look: impl FnOnce() -> T) -> Arc<T> {
        let mut state = self.state();
        // One that has begun already may have passed by what was started since.
        let wanted = state.begun + 1;
        while state.begun > state.done {
            state.waiting += 1;
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
            if let Some(seen) = state.seen.clone().filter(|_| state.done >= wanted) {
                return seen;
            }
        }
        state.begun += 1;
        drop(state);
        let seen = Arc::new(look());
        let mut state = self.state();
        state.done = state.begun;
        state.seen = Some(Arc::clone(&seen));
        self.done.notify_all();
        seen
    }

    fn state(&self) -> MutexGuard<'_, LooksState<T>> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ids of the parent and of the group in a line of `/proc/PID/stat`: `1 (name) S 0 1 …`. The name may hold anything,
/// parentheses and spaces too.
#[cfg(target_os = "linux")]
fn parent_and_group(stat: &str) -> Option<(i32, i32)> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_anything() {
        assert_eq!(parent_and_group("12 (a) S 7 12"), Some((7, 12)));
        assert_eq!(parent_and_group("12 (a) S 1 (b) R 9 11 12"), Some((9, 11)));
        assert_eq!(parent_and_group("12 (a)"), None);
    }

    /// Callers that ask while a look at the processes is under way wait for it; then one look serves them all.
    #[test]
    fn one_look_serves_all_who_asked_before_it() {
        let looks = Looks::new();
        let count = std::sync::atomic::AtomicU32::new(0);
        let next = || count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        std::thread::scope(|scope| {
            let mut others = Vec::new();
            let first = looks.after_now(|| {
                others.extend((0..4).map(|_| scope.spawn(|| *looks.after_now(next))));
                while looks.state().waiting < others.len() {
                    std::thread::yield_now();
                }
                next()
            });
            assert_eq!(*first, 0);
            for other in others {
                assert_eq!(other.join().unwrap(), 1);
            }
        });
        assert_eq!(*looks.after_now(next), 2);
    }

    #[test]
    fn this_process_has_a_parent_and_a_group() {
        let this = ProcessEntry {
            pid: rustix::process::getpid(),
            parent: rustix::process::getppid().unwrap(),
            group: rustix::process::getpgrp(),
        };
        assert!(processes().contains(&this));
    }
}
