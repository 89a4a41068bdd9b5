//! A child process on Unix, and the thread that owns it.
//!
//! One thread starts the process, waits for its end and reaps it, and lives exactly as long. That gives three things:
//!
//! * The kernel's signal at the death of the parent means the *thread* that forked. It may not be a worker of a runtime, which
//!   ends whenever it likes.
//! * The end is seen and the process reaped without a runtime, also after the last one was shut down.
//! * The end is seen *before* the process is reaped. As long as it is not, its id, which is that of its group, belongs to
//!   nobody else, so that what is left of the group can be signalled without hitting strangers.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal as Unix, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::{oneshot, watch};

use super::family;
use super::guardian::Guardian;
use super::mark::{self, Mark};
use super::{Detached, Local};
use crate::options::{Launch, RunAs};
use crate::peer::{BoxFuture, Connection, Exit, Process, Signal, Signaller};

/// The thread calls nothing deep.
const STACK: usize = 64 * 1024;

/// How long the end is held back for the guardian to be gone too, so that whoever waited for the end finds nothing left.
const GUARDIAN_GOES: Duration = Duration::from_millis(200);

/// How long killed members of the group may take to become ours to reap, where orphans come to this process.
const ORPHANS_GO: Duration = Duration::from_millis(200);

/// What is started, and how it is to end.
struct StartPlan {
    command: Command,
    guarded: bool,
    /// What a guardian removes.
    leftovers: Vec<PathBuf>,
    run_as: Option<RunAs>,
    /// Finds detached processes, if they are to end.
    mark: Option<Mark>,
}

pub(super) async fn start(launch: &Launch, local: Local) -> io::Result<Connection> {
    let mut command = launch.command();
    let mark = match local.detached {
        Detached::End => Some(Mark::put(&mut command)?),
        Detached::Leave => {
            mark::pass_on(&mut command);
            None
        }
    };
    let plan = StartPlan {
        command,
        guarded: local.guardian,
        leftovers: launch.guard.leftovers(),
        run_as: launch.run_as,
        mark,
    };
    let (tell, told) = oneshot::channel();
    thread::Builder::new()
        .name("outrigger-child".to_owned())
        .stack_size(STACK)
        .spawn(move || own(plan, tell))?;
    let gone = |_| io::Error::other("the thread that starts the CLI ended");
    let (pipes, process) = told.await.map_err(gone)??;
    Ok(Connection {
        stdin: Box::new(tokio::process::ChildStdin::from_std(pipes.stdin)?),
        stdout: Box::new(tokio::process::ChildStdout::from_std(pipes.stdout)?),
        stderr: Some(Box::new(tokio::process::ChildStderr::from_std(pipes.stderr)?)),
        process: Box::new(process),
    })
}

struct ChildPipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

/// The life of the owning thread.
fn own(mut plan: StartPlan, tell: oneshot::Sender<io::Result<(ChildPipes, LocalProcess)>>) {
    let Started {
        mut child,
        leader,
        pipes,
        guardian,
    } = match spawn(&mut plan) {
        Ok(started) => started,
        Err(error) => {
            // Whoever asked may have gone meanwhile.
            let _ = tell.send(Err(error));
            return;
        }
    };
    let (end, ended) = watch::channel(None);
    let life = Arc::new(ProcessGroup {
        leader,
        reaped: Mutex::new(false),
    });
    let process = LocalProcess {
        life: Arc::clone(&life),
        ended,
        #[cfg(target_os = "linux")]
        memory: super::oom::Kills::counted(),
    };
    // If nobody waits for it any more, dropping the process kills it, and it is reaped below.
    drop(tell.send(Ok((pipes, process))));

    let seen = wait_unreaped(leader);
    let held = life.lock();
    // What the CLI left behind in its group would be orphaned from here on. An error can't be told to anybody.
    let _ = family::kill(leader);
    drop(held);
    if let Some(mark) = &plan.mark {
        mark::end(mark);
    }
    let mut reaped = life.lock();
    let guardian = guardian.map(Guardian::dismiss);
    let exit = seen.and_then(|()| child.wait()).map(Exit::from);
    *reaped = true;
    drop(reaped);
    reap_orphans(leader);
    let guardian = guardian.and_then(|guardian| guardian.gone_within(GUARDIAN_GOES));
    end.send_replace(Some(exit.map_err(|error| error.kind())));
    if let Some(guardian) = guardian {
        guardian.wait();
    }
}

struct Started {
    child: Child,
    leader: Pid,
    pipes: ChildPipes,
    guardian: Option<Guardian>,
}

fn spawn(plan: &mut StartPlan) -> io::Result<Started> {
    let _held = hold_standard_descriptors();
    // Before the CLI, so that there is none without it, and because it depends on it how the CLI is to end.
    let guardian = plan.guarded.then(|| {
        let started = Guardian::start(plan.mark.as_ref(), &plan.leftovers, plan.run_as);
        started
            .inspect_err(|error| tracing::warn!(%error, "no guardian watches over the CLI"))
            .ok()
    });
    let guardian = guardian.flatten();
    let command = &mut plan.command;
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    #[cfg(target_os = "linux")]
    match &guardian {
        None => die_with_this_thread(command, Unix::KILL),
        Some(_) if fork_is_cheap() => die_with_this_thread(command, Unix::TERM),
        Some(_) => {}
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            if let Some(guardian) = guardian {
                guardian.dismiss().wait();
            }
            return Err(error);
        }
    };
    let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (Some(leader), Some(stdin), Some(stdout), Some(stderr)) = (
        leader,
        child.stdin.take(),
        child.stdout.take(),
        child.stderr.take(),
    ) else {
        return Err(io::Error::other("the child was started without pipes"));
    };
    let guardian = guardian.map(|mut guardian| {
        guardian.watch_over(leader);
        guardian
    });
    Ok(Started {
        child,
        leader,
        pipes: ChildPipes {
            stdin,
            stdout,
            stderr,
        },
        guardian,
    })
}

/// Whether this program is small enough for a fork: that copies its page tables and holds up all of its threads meanwhile.
/// Without anything to do between fork and exec, a child is started without a copy.
#[cfg(target_os = "linux")]
fn fork_is_cheap() -> bool {
    const SMALL_KIB: u64 = 64 * 1024;

    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = resident.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kib.is_some_and(|kib: u64| kib < SMALL_KIB)
}

/// Has the kernel signal the child when the thread that starts it dies, which is when this process does.
#[cfg(target_os = "linux")]
fn die_with_this_thread(command: &mut Command, signal: Unix) {
    use rustix::process::{getpid, getppid, set_parent_process_death_signal};

    let parent = getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(signal))?;
        match getppid() {
            // The parent died before that: there will be no signal any more.
            Some(now) if now != parent => Err(Errno::SRCH.into()),
            // `None`: the parent is in another pid namespace, from where its death can't be told. The guardian sees it.
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec only what is async-signal-safe may be done, because other threads of the parent may have
    // held locks, of the allocator for one, which nobody will ever release in the child. `prepare` makes two system calls
    // directly (rustix has no state of its own for them), compares two integers that it captured, and makes an `io::Error`
    // from an error number, which does not allocate. It does not unwind.
    unsafe {
        command.pre_exec(prepare);
    }
}

/// Keeps the descriptors 0, 1 and 2 from being given to new pipes, in a program that closed its own: starting a child moves its
/// pipes to these numbers, and would lose one that is there already.
fn hold_standard_descriptors() -> Vec<File> {
    let mut held = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        if file.as_raw_fd() > 2 {
            break;
        }
        held.push(file);
    }
    held
}

/// Waits for the end of a child and leaves it to be reaped.
fn wait_unreaped(child: Pid) -> io::Result<()> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    rustix::io::retry_on_intr(|| waitid(WaitId::Pid(child), options))?;
    Ok(())
}

/// Reaps what was left of the group where orphans come to this process: as the first process of a container, or as a
/// "child subreaper". Elsewhere there is nothing to be reaped, and it returns at once.
fn reap_orphans(group: Pid) {
    let until = Instant::now() + ORPHANS_GO;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pgid(Some(group)), options) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(2)),
            Ok(None) | Err(_) => return,
        }
    }
}

/// What the thread and the session share.
struct ProcessGroup {
    /// The process, which leads its group.
    leader: Pid,
    /// Whether the id may be somebody else's by now. Held while the group is signalled.
    reaped: Mutex<bool>,
}

impl ProcessGroup {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.reaped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let reaped = self.lock();
        if *reaped {
            return Ok(());
        }
        let done = match signal {
            Signal::Terminate => kill_process_group(self.leader, Unix::TERM),
            Signal::Kill => family::kill(self.leader),
        };
        match done {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            // macOS says so of a group whose members are all zombies.
            Err(Errno::PERM) if cfg!(target_os = "macos") => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

struct LocalProcess {
    life: Arc<ProcessGroup>,
    ended: watch::Receiver<Option<Result<Exit, io::ErrorKind>>>,
    #[cfg(target_os = "linux")]
    memory: Option<super::oom::Kills>,
}

impl Process for LocalProcess {
    fn id(&self) -> Option<u32> {
        u32::try_from(self.life.leader.as_raw_pid()).ok()
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<Exit>> {
        Box::pin(async move {
            let ended = self
                .ended
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|ended| *ended);
            let unseen = |kind| {
                io::Error::new(
                    kind,
                    "the end of the CLI was not seen: was it reaped by other code?",
                )
            };
            ended.unwrap_or(Err(io::ErrorKind::Other)).map_err(unseen)
        })
    }

    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.life.signal(signal)
    }

    fn signaller(&self) -> Option<Box<dyn Signaller>> {
        Some(Box::new(Remote(Arc::clone(&self.life))))
    }

    #[cfg(target_os = "linux")]
    fn killed_for_memory(&self) -> Option<bool> {
        self.memory.as_ref()?.happened()
    }
}

struct Remote(Arc<ProcessGroup>);

impl Signaller for Remote {
    fn signal(&self, signal: Signal) -> io::Result<()> {
        self.0.signal(signal)
    }

    fn is_gone(&self) -> bool {
        *self.0.lock()
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        // An error can't be reported from here; the group is most likely gone.
        let _ = self.life.signal(Signal::Kill);
    }
}
