//! Real servers for the tests, each in a directory of its own and reached by a socket in it.

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
        // It ends by SIGTERM, which its keeper passes on; its data is thrown away.
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.process.wait();
    }
}

#[allow(dead_code, reason = "not every test has a use for it")]
impl Server {
    /// Ends it at once, as a crash does.
    pub(crate) fn stop(&mut self) {
        // Not its keeper, which passes on SIGTERM alone.
        let pid = std::fs::read_to_string(self.directory.path().join("data/postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap_or_default();
        let sent = Command::new("kill").args(["-QUIT", pid]).status().unwrap();
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
    let programs = postgres_programs().expect("PostgreSQL is not installed: apt-get install postgresql");
    let directory = tempfile::tempdir().unwrap();
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    let run = move |program: &str| {
        let program = programs.join(program);
        if !is_root {
            return Command::new(program);
        }
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    };
    let settings = settings(directory.path());
    if is_root {
        let owned = Command::new("chown")
            .args(["-R", "postgres"])
            .arg(directory.path())
            .status();
        assert!(
            owned.unwrap().success(),
            "there is no user postgres: apt-get install postgresql"
        );
    }
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

fn postgres_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.flatten().map(|version| version.path().join("bin"));
    programs.filter(|programs| programs.join("initdb").exists()).max()
}

fn wait_for(socket: &Path) {
    let begun = Instant::now();
    while !socket.exists() {
        assert!(begun.elapsed() < PATIENCE, "{} does not appear", socket.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}
