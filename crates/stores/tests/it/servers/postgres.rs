//! Real servers for the tests, each in a directory of its own and reached by a socket in it.

use std::os::unix::fs::{MetadataExt as _, lchown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs; dropped, it ends.
pub(crate) struct Server {
    process: Child,
    start: Box<dyn Fn() -> Child + Send + Sync>,
    socket: PathBuf,
    /// Where its socket is.
    pub(crate) directory: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        // By SIGINT it ends without waiting for its clients; its data is thrown away.
        let pid = self.process.id().to_string();
        let _ = Command::new("sh").args(["-c", "kill -INT $0", &pid]).status();
        let _ = self.process.wait();
    }
}

#[allow(dead_code, reason = "not every test has a use for it")]
impl Server {
    /// Ends it at once, as a crash does.
    pub(crate) fn stop(&mut self) {
        let pid = self.process.id().to_string();
        let sent = Command::new("sh")
            .args(["-c", "kill -QUIT $0", &pid])
            .status()
            .unwrap();
        assert!(sent.success());
        self.process.wait().unwrap();
        let _ = std::fs::remove_file(&self.socket);
    }

    /// Starts it again.
    pub(crate) fn start_again(&mut self) {
        self.process = (self.start)();
        wait_for(&self.socket);
    }
}

/// PostgreSQL, which does not run as the superuser.
pub(crate) fn postgres() -> Server {
    postgres_with(5432, |_| Vec::new())
}

/// The same with these settings, which may name files that are made in its directory, and a port of its own.
pub(crate) fn postgres_with(port: u16, settings: impl FnOnce(&Path) -> Vec<String>) -> Server {
    let postgres = outrigger_needs::postgres().unwrap_or_else(|missing| panic!("{missing}"));
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path());
    let mut programs = postgres.programs;
    let user = is_root().then(user);
    if let Some(user) = user {
        if postgres.is_movable {
            // What is installed below a home directory of the superuser is out of reach.
            let copy = directory.path().join("installed");
            copy_tree(programs.parent().unwrap(), &copy);
            programs = copy.join("bin");
        }
        hand_over(directory.path(), user);
    }
    let run = move |program: &str| {
        let mut command = Command::new(programs.join(program));
        if let Some((user, group)) = user {
            command.uid(user).gid(group).current_dir("/");
        }
        command
    };
    let data = directory.path().join("data");
    let made = run("initdb")
        .arg("-D")
        .arg(&data)
        .args([
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "initdb: {}",
        String::from_utf8_lossy(&made.stderr)
    );
    let place = directory.path().to_owned();
    let start = move || {
        run("postgres")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&place)
            .args(["-c", "listen_addresses=", "-c", "max_connections=200"])
            .arg(format!("--port={port}"))
            .args(settings.iter().map(|setting| format!("--{setting}")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let socket = directory.path().join(format!(".s.PGSQL.{port}"));
    let server = Server {
        process: start(),
        start: Box::new(start),
        socket,
        directory,
    };
    wait_for(&server.socket);
    server
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// Who runs it for the superuser, as numbers: the one that a package of the system made for it, or `nobody`.
fn user() -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let user = |name: &str| {
        let mut fields = users.lines().map(|line| line.split(':'));
        let mut fields = fields.find(|fields| fields.clone().next() == Some(name))?.skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    user("postgres")
        .or_else(|| user("nobody"))
        .expect("there is a user `nobody`")
}

fn hand_over(path: &Path, user: (u32, u32)) {
    lchown(path, Some(user.0), Some(user.1)).unwrap();
    if std::fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            hand_over(&entry.unwrap().path(), user);
        }
    }
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn wait_for(socket: &Path) {
    let begun = Instant::now();
    while !socket.exists() {
        assert!(begun.elapsed() < PATIENCE, "{} does not appear", socket.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}
