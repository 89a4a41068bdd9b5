//! A mark in the environment of a session's processes, by which those are found that left its process group and its family.

use std::ffi::OsString;
use std::io;
use std::process::Command;

use uuid::Uuid;

/// The variable. A session within a session has the marks of both, with a colon between them.
const VARIABLE: &str = "OUTRIGGER_SESSION_MARK";

/// The mark of one session's processes.
#[derive(Debug, Clone)]
pub(super) struct Mark(String);

impl Mark {
    /// A new one, which the process that is started by the command is going to have, and all that it starts.
    ///
    /// # Errors
    /// Where the system shows nobody's environment.
    pub(super) fn put(command: &mut Command) -> io::Result<Self> {
        if !cfg!(target_os = "linux") {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "detached processes can be found and ended on Linux only: choose `Detached::Leave`",
            ));
        }
        let mark = format!("outrigger-{}", Uuid::new_v4().simple());
        command.env(VARIABLE, joined(std::env::var_os(VARIABLE), &mark));
        Ok(Self(mark))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Hands the marks of outer sessions on, so that what is started here is theirs, too.
pub(super) fn pass_on(command: &mut Command) {
    if let Some(outer) = std::env::var_os(VARIABLE) {
        command.env(VARIABLE, outer);
    }
}

fn joined(outer: Option<OsString>, mark: &str) -> OsString {
    let mut all = outer.unwrap_or_default();
    if !all.is_empty() {
        all.push(":");
    }
    all.push(mark);
    all
}

#[cfg(target_os = "linux")]
pub(super) use linux::end;

#[cfg(not(target_os = "linux"))]
pub(super) fn end(_: &Mark) {}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs::File;
    use std::io::{self, Read as _};
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use memchr::memmem::Finder;
    use rustix::io::Errno;
    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
    };

    use super::Mark;

    /// How long the end of a session waits for this. An environment lies in the memory of its process, and whoever reads it waits
    /// for a page that a hanging file system owes.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Whoever forks faster than we look is not waited for without end.
    const ROUNDS: usize = 16;

    /// The system lets no environment grow beyond 6 MiB.
    const MOST_BYTES: u64 = 8 * 1024 * 1024;

    /// How long killed processes may take to become children of this process, where orphans come to it.
    const ORPHANS_GO: Duration = Duration::from_millis(200);

    /// Kills all processes that have the mark. They are stopped first, so that none starts another behind our back.
    pub(in crate::child) fn end(mark: &Mark) {
        let (tell, told) = mpsc::channel();
        let sought = mark.clone();
        let thread = thread::Builder::new().name("outrigger-detached".to_owned());
        let started = thread.spawn(move || {
            // Nobody may wait any more.
            let _ = tell.send(kill(sought.as_str()));
        });
        if let Err(error) = started {
            tracing::warn!(%error, "processes that were detached are not ended");
            return;
        }
        match told.recv_timeout(PATIENCE) {
            Ok(Ok(0)) => {}
            Ok(Ok(ended)) => tracing::debug!(ended, "processes that were detached were ended"),
            Ok(Err(error)) => tracing::warn!(%error, "processes that were detached can't be found"),
            Err(_) => {
                tracing::warn!("looking for processes that were detached takes too long; some may be left")
            }
        }
    }

    fn kill(mark: &str) -> io::Result<usize> {
        let finder = Finder::new(mark);
        let mut seen = HashSet::new();
        let mut stopped = Vec::new();
        for _ in 0..ROUNDS {
            let before = stopped.len();
            for entry in std::fs::read_dir("/proc")?.flatten() {
                let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
                let Some(pid) = pid.and_then(Pid::from_raw).filter(|pid| !seen.contains(pid)) else {
                    continue;
                };
                // Opened first: should the id become somebody else's meanwhile, a signal goes nowhere.
                let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
                    continue;
                };
                if has(pid, &finder) && pidfd_send_signal(&process, Signal::STOP).is_ok() {
                    seen.insert(pid);
                    stopped.push(process);
                }
            }
            if stopped.len() == before {
                break;
            }
        }
        for process in &stopped {
            // It may be gone already.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        let until = Instant::now() + ORPHANS_GO;
        stopped.iter().for_each(|process| reap(process, until));
        Ok(stopped.len())
    }

    /// Whether a process was started with the mark. One that may not be looked at is not ours.
    fn has(pid: Pid, mark: &Finder<'_>) -> bool {
        let Ok(file) = File::open(format!("/proc/{}/environ", pid.as_raw_pid())) else {
            return false;
        };
        let mut environment = Vec::new();
        let read = file.take(MOST_BYTES).read_to_end(&mut environment);
        read.is_ok() && mark.find(&environment).is_some()
    }

    /// Reaps a process where orphans come to this process; elsewhere it returns at once.
    fn reap(process: &OwnedFd, until: Instant) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        loop {
            match waitid(WaitId::PidFd(process.as_fd()), options) {
                Err(Errno::INTR) => {}
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(2)),
                Ok(_) | Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_within_a_session_has_both_marks() {
        assert_eq!(joined(None, "b"), "b");
        assert_eq!(joined(Some("".into()), "b"), "b");
        assert_eq!(joined(Some("a".into()), "b"), "a:b");
    }
}
