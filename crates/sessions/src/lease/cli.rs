//! The CLI's own list of its processes, in `sessions/` of the config directory.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use super::{Busy, Owner};
use crate::clock::iso;
use crate::file;
use crate::id::SessionId;
use crate::owner::host;

/// How many entries are looked at: the CLI removes those of processes that are gone.
const MOST_ENTRIES: usize = 10_000;

/// How much of an entry is read.
const MOST_BYTES: u64 = 64 * 1024;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    pid: u32,
    session_id: String,
    started_at: Option<f64>,
    proc_start: Option<String>,
    kind: Option<String>,
    entrypoint: Option<String>,
    cwd: Option<PathBuf>,
    version: Option<String>,
    status: Option<String>,
    status_updated_at: Option<f64>,
}

/// A CLI process of this machine, as it lists itself.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CliProcess {
    /// The process.
    pub pid: u32,
    /// The session that the CLI drives.
    pub session_id: SessionId,
    /// The working directory of the CLI.
    pub cwd: Option<PathBuf>,
    /// When the CLI started.
    pub started_at: SystemTime,
    /// The version of the CLI.
    pub version: Option<String>,
    /// What started the CLI, in its own words: `cli` at a terminal, `sdk-rust` by Outrigger.
    pub entrypoint: Option<String>,
    /// What the CLI does, in its own words: `busy`, `idle`, `waiting`. Missing before the first turn.
    pub status: Option<String>,
    /// Since when.
    pub status_since: Option<SystemTime>,
}

/// The living CLI processes that list themselves in this config directory, the newest last. Entries with ids that are none are left out.
pub fn cli_processes(config_dir: impl AsRef<Path>) -> Vec<CliProcess> {
    let time = |ms: f64| UNIX_EPOCH + Duration::from_millis(ms.max(0.0) as u64);
    let mut found: Vec<_> = listed(config_dir.as_ref())
        .filter(lives)
        .filter_map(|entry| {
            Some(CliProcess {
                pid: entry.pid,
                session_id: SessionId::new(&entry.session_id).ok()?,
                cwd: entry.cwd,
                started_at: time(entry.started_at.unwrap_or_default()),
                version: entry.version,
                entrypoint: entry.entrypoint,
                status: entry.status,
                status_since: entry.status_updated_at.map(time),
            })
        })
        .collect();
    found.sort_by_key(|process| (process.started_at, process.pid));
    found
}

/// The CLI process that drives a session on this machine, if it lists itself and is alive.
///
/// The CLI lists each of its processes in a file of the config directory and removes the file when it ends. A killed process leaves
/// its file behind: then no such process exists, or it started at another time than the file says.
pub fn driven_by_cli(config_dir: impl AsRef<Path>, id: &SessionId) -> Option<Busy> {
    Some(Driver::of(config_dir.as_ref(), id, None)?.busy(id))
}

/// A CLI process that drives a session.
#[derive(Debug)]
pub(super) struct Driver(Entry);

impl Driver {
    /// `own` is a process whose CLI does not count.
    pub(super) fn of(config_dir: &Path, id: &SessionId, own: Option<u32>) -> Option<Self> {
        listed(config_dir)
            .filter(|entry| entry.session_id.eq_ignore_ascii_case(id.as_str()) && lives(entry))
            .find(|entry| own.is_none_or(|own| !is_within(entry.pid, own)))
            .map(Self)
    }

    pub(super) fn busy(&self, id: &SessionId) -> Busy {
        let Self(entry) = self;
        let since = UNIX_EPOCH + Duration::from_millis(entry.started_at.unwrap_or_default().max(0.0) as u64);
        // The kind of a CLI that a program drives is `interactive`, too.
        let name = match (entry.entrypoint.as_deref(), entry.kind.as_deref()) {
            (Some(by), Some("interactive") | None) if by != "cli" => {
                format!("the CLI that a program drives ({by})")
            }
            (_, kind) => format!("the CLI ({})", kind.unwrap_or("of an unknown kind")),
        };
        Busy {
            id: id.clone(),
            owner: Owner {
                name,
                pid: entry.pid,
                host: host(),
                since: iso(since),
            },
            fence: None,
        }
    }

    /// Whether this holder has certainly started the CLI: it is the holder's child process and leads a process group of its own,
    /// on this machine, and belongs to the user whose rights this process has. The files of both may have any content, and a process
    /// with the rights of another user could otherwise kill processes of more users. Only Linux reports this.
    #[cfg(target_os = "linux")]
    pub(super) fn is_of(&self, holder: &Owner) -> bool {
        let Self(entry) = self;
        let Some(now) = Stat::of(entry.pid) else {
            return false;
        };
        holder.host == host()
            && now.parent == holder.pid
            && now.group == entry.pid
            && entry.proc_start.as_deref() == Some(&*now.start)
            && is_own(entry.pid)
            && group(entry.pid).is_some_and(|group| rustix::process::test_kill_process(group).is_ok())
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_of(&self, _: &Owner) -> bool {
        false
    }

    /// Kills its process group; only after [`is_of`](Self::is_of). After SIGTERM the CLI also ends the commands that it runs.
    #[cfg(target_os = "linux")]
    pub(super) fn end(&self, by_force: bool) {
        use rustix::process::{Signal, kill_process_group};
        let signal = if by_force { Signal::KILL } else { Signal::TERM };
        // Whether it is gone is looked at afterwards.
        let _ = group(self.0.pid).map(|group| kill_process_group(group, signal));
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn end(&self, _: bool) {}
}

/// Whether a process is of the user with whose rights this thread acts.
#[cfg(target_os = "linux")]
fn is_own(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() == own)
}

/// Whether a process is this one, or in the group that this one leads: a script may start the CLI.
fn is_within(pid: u32, leader: u32) -> bool {
    #[cfg(unix)]
    let is_led = group(leader).is_some_and(|leader| {
        group(pid).is_some_and(|pid| rustix::process::getpgid(Some(pid)) == Ok(leader))
    });
    #[cfg(not(unix))]
    let is_led = false;
    pid == leader || is_led
}

#[cfg(unix)]
fn group(pid: u32) -> Option<rustix::process::Pid> {
    i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw)
}

/// Whether a living CLI process lists itself in this config directory.
pub fn cli_runs_in(config_dir: impl AsRef<Path>) -> bool {
    listed(config_dir.as_ref()).any(|entry| lives(&entry))
}

fn listed(config_dir: &Path) -> impl Iterator<Item = Entry> {
    let entries = fs::read_dir(config_dir.join("sessions"));
    let entries = entries.into_iter().flatten().flatten().take(MOST_ENTRIES);
    entries.filter_map(|entry| read(&entry.path()))
}

fn read(path: &Path) -> Option<Entry> {
    let is_entry = path.extension().is_some_and(|extension| extension == "json");
    if !is_entry {
        return None;
    }
    let mut text = Vec::new();
    let file = file::open(path).ok()?;
    let length = file.take(MOST_BYTES + 1).read_to_end(&mut text).ok()?;
    (length as u64 <= MOST_BYTES).then(|| serde_json::from_slice(&text).ok())?
}

fn lives(entry: &Entry) -> bool {
    match (started(entry.pid), &entry.proc_start) {
        (Started::At(now), Some(then)) => now == *then,
        (Started::Gone, _) => false,
        (Started::At(_) | Started::Unknown, _) => true,
    }
}

enum Started {
    /// In the system's own count.
    At(String),
    Gone,
    /// The system does not report it.
    #[cfg_attr(target_os = "linux", expect(dead_code, reason = "Linux says it"))]
    Unknown,
}

#[cfg(target_os = "linux")]
fn started(pid: u32) -> Started {
    match Stat::of(pid) {
        Some(stat) => Started::At(stat.start),
        None => Started::Gone,
    }
}

/// What the system reports about a living process.
#[cfg(target_os = "linux")]
struct Stat {
    parent: u32,
    group: u32,
    /// In ticks since the system began.
    start: String,
}

#[cfg(target_os = "linux")]
impl Stat {
    /// `None` if there is no such process, or it is a zombie.
    fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in parentheses, which may have anything in it; the 22nd is the start.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        Some(Self {
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            start: fields.nth(16)?.to_owned(),
        })
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn started(pid: u32) -> Started {
    use rustix::process::test_kill_process;
    match group(pid).map(test_kill_process) {
        None | Some(Err(rustix::io::Errno::SRCH)) => Started::Gone,
        Some(_) => Started::Unknown,
    }
}

#[cfg(not(unix))]
fn started(_: u32) -> Started {
    Started::Unknown
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use serde_json::json;

    /// The files are the CLI's user's, and may name any process. Whoever acts as that user may be able to end more.
    #[test]
    fn only_a_process_of_the_same_user_is_ended() {
        use std::os::unix::process::CommandExt as _;

        let of = |other: bool| {
            let mut command = std::process::Command::new("sleep");
            command.arg("60").process_group(0);
            if other {
                command.uid(65_534).gid(65_534);
            }
            let mut child = command.spawn().unwrap();
            let pid = child.id();
            let holder = Owner::here("test");
            let driver = Driver(Entry {
                pid,
                session_id: SessionId::random().to_string(),
                started_at: None,
                proc_start: Stat::of(pid).map(|stat| stat.start),
                kind: None,
                entrypoint: None,
                cwd: None,
                version: None,
                status: None,
                status_updated_at: None,
            });
            let is_of = driver.is_of(&holder);
            child.kill().unwrap();
            child.wait().unwrap();
            is_of
        };
        assert!(of(false));
        // Without the superuser nobody else's can be made.
        if rustix::process::geteuid().is_root() {
            assert!(!of(true));
        }
    }

    #[test]
    fn only_a_living_process_counts() {
        let place = tempfile::tempdir().unwrap();
        let id = SessionId::random();
        assert_eq!(driven_by_cli(place.path(), &id), None);
        let dir = place.path().join("sessions");
        fs::create_dir(&dir).unwrap();
        let pid = std::process::id();
        let Started::At(start) = started(pid) else {
            panic!("this process lives")
        };
        let put = |session: &str, pid: u32, start: &str| {
            let entry = json!({"pid": pid, "sessionId": session, "procStart": start, "startedAt": 1_795_346_562_705_u64, "kind": "interactive"});
            fs::write(dir.join("1.json"), entry.to_string()).unwrap();
        };
        fs::write(dir.join("2.json"), "{").unwrap();
        fs::write(dir.join("1.x.key"), "{}").unwrap();
        put(id.as_str(), pid, &start);
        let busy = driven_by_cli(place.path(), &id).unwrap();
        assert_eq!((busy.owner.pid, busy.fence), (pid, None));
        assert!(
            busy.to_string().contains("the CLI") && busy.owner.since.starts_with("2026-11-22T"),
            "{busy}"
        );
        // A CLI that a program drives says the same of its kind.
        let entry = json!({"pid": pid, "sessionId": id.as_str(), "procStart": &start, "kind": "interactive", "entrypoint": "sdk-rs"});
        fs::write(dir.join("1.json"), entry.to_string()).unwrap();
        let busy = driven_by_cli(place.path(), &id).unwrap();
        assert!(
            busy.to_string()
                .contains("the CLI that a program drives (sdk-rs)"),
            "{busy}"
        );
        let entry = json!({"pid": pid, "sessionId": id.as_str(), "procStart": &start, "entrypoint": "sdk-rust", "status": "busy",
            "statusUpdatedAt": 1_795_346_562_705_u64, "cwd": "/p"});
        fs::write(dir.join("1.json"), entry.to_string()).unwrap();
        let [process] = &cli_processes(place.path())[..] else {
            panic!("one runs")
        };
        assert_eq!(
            (process.pid, &process.session_id, process.status.as_deref()),
            (pid, &id, Some("busy"))
        );
        assert!(process.status_since > Some(UNIX_EPOCH) && process.cwd.as_deref() == Some(Path::new("/p")));
        put(SessionId::random().as_str(), pid, &start);
        assert_eq!(driven_by_cli(place.path(), &id), None);
        put(id.as_str(), pid, "1");
        assert_eq!(cli_processes(place.path()), []);
        assert_eq!(
            driven_by_cli(place.path(), &id),
            None,
            "another process has the number now"
        );
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        put(id.as_str(), child.id(), &start);
        assert_eq!(driven_by_cli(place.path(), &id), None);
    }
}
