//! Ends what is left of a run of tests when this program is ended before the run is, by Ctrl-C for one: servers that do not heed it,
//! and what has a process group of its own. All of a run is found by a mark in its environment, which Linux shows.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

#[cfg(target_os = "linux")]
pub(crate) use linux::Sweeper;

/// Waits for the end of stdin, and then ends all that has the mark unless the run was over before.
#[cfg(target_os = "linux")]
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    linux::run(arguments)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &[OsString]) -> Result<ExitCode> {
    anyhow::bail!("only Linux shows the environment of processes")
}

/// Elsewhere nothing is found.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Sweeper;

#[cfg(not(target_os = "linux"))]
impl Sweeper {
    pub(crate) fn watch_over(_: &mut std::process::Command) -> Result<Self> {
        Ok(Self)
    }

    pub(crate) fn dismiss(self) {}
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::io::{Read as _, Write as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, ExitCode, Stdio};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use anyhow::{Context as _, Result, bail};
    use rustix::process::{Pid, Signal, kill_process};

    /// The variable that all of a run has.
    const MARK: &str = "OUTRIGGER_TEST_RUN";

    /// How long what was told to end may take to do so by itself.
    const GRACE: Duration = Duration::from_secs(2);

    /// Whoever starts processes faster than they are ended is not ended without end.
    const ROUNDS: usize = 16;

    /// A process of its own, which outlives this one.
    pub(crate) struct Sweeper(Child);

    impl Sweeper {
        /// Marks what the command is going to run.
        pub(crate) fn watch_over(command: &mut Command) -> Result<Self> {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let mark = format!("{MARK}={}-{}", std::process::id(), now.as_nanos());
            if let Some((name, value)) = mark.split_once('=') {
                command.env(name, value);
            }
            let this = std::env::current_exe().context("cannot tell where this program is")?;
            let started = Command::new(this)
                .arg("sweep")
                .arg(&mark)
                .env_remove(MARK)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                // What a terminal sends is not for it.
                .process_group(0)
                .spawn();
            Ok(Self(started.context("cannot run this program")?))
        }

        /// The run is over: what it left is wanted.
        pub(crate) fn dismiss(mut self) {
            if let Some(mut stdin) = self.0.stdin.take() {
                // One that is gone ends nothing either.
                let _ = stdin.write_all(b"over");
            }
            let _ = self.0.wait();
        }
    }

    pub(super) fn run(arguments: &[OsString]) -> Result<ExitCode> {
        let [mark] = arguments else {
            bail!("`sweep` needs a mark");
        };
        let mark = mark.to_str().filter(|mark| mark.starts_with(MARK));
        let mark = mark.context("that is no mark of a run")?;
        let mut told = Vec::new();
        std::io::stdin().read_to_end(&mut told)?;
        if told == b"over" {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(GRACE);
        for _ in 0..ROUNDS {
            let found = marked(mark)?;
            if found.is_empty() {
                break;
            }
            for pid in found {
                // It may have ended by itself.
                let _ = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn marked(mark: &str) -> Result<Vec<Pid>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            let Some(pid) = pid.and_then(Pid::from_raw) else {
                continue;
            };
            // What may not be looked at is not ours.
            let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if environ
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
            {
                found.push(pid);
            }
        }
        Ok(found)
    }
}
