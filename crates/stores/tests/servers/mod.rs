//! Real servers for the tests, each in a directory of its own and reached by a socket in it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs; dropped, it ends.
pub(crate) struct Server {
    process: Child,
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
    let run = |program: &str| {
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
    let process = run("postgres")
        .arg("-D")
        .arg(&data)
        .arg("-k")
        .arg(directory.path())
        .args(["-c", "listen_addresses=", "-c", "max_connections=200"])
        .arg(format!("--port={port}"))
        .args(settings.iter().map(|setting| format!("--{setting}")))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server { process, directory };
    wait_for(&server.directory.path().join(format!(".s.PGSQL.{port}")));
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
