//! SeaweedFS for the tests: a server that speaks as Amazon S3 does, and keeps conditions when many write at once.

use std::fs::File;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::ports::free_ports;

/// How long it may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is started anew, since somebody else may take its ports in between.
const TRIES: usize = 5;

pub(crate) const KEY: &str = "outrigger";
pub(crate) const SECRET: &str = "not-a-secret";
/// It is made when it is first written to.
pub(crate) const BUCKET: &str = "sessions";

/// One that runs; dropped, it is killed, and what it has is thrown away.
pub(crate) struct Server {
    process: Child,
    directory: tempfile::TempDir,
    /// Where it is reached.
    pub(crate) url: String,
}

impl Drop for Server {
    #[allow(clippy::print_stderr, reason = "a benchmark starts it as well")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read(log_of(&self.directory)).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let lines: Vec<_> = log.lines().collect();
            let last = lines.len().saturating_sub(50);
            eprintln!("the last that SeaweedFS wrote:\n{}", lines[last..].join("\n"));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[allow(dead_code, reason = "not every test has a use for it")]
impl Server {
    /// It answers nothing any more, but is there.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    }
}

pub(crate) fn start() -> Server {
    let program = outrigger_needs::seaweedfs().unwrap_or_else(|missing| panic!("{missing}"));
    for _ in 0..TRIES {
        if let Some(server) = try_start(&program) {
            return server;
        }
    }
    panic!("SeaweedFS does not start: {}", program.display());
}

/// Where it writes what it does.
fn log_of(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("log")
}

fn try_start(program: &PathBuf) -> Option<Server> {
    let directory = tempfile::tempdir().unwrap();
    let users = directory.path().join("users.json");
    let user = format!(
        r#"{{"identities":[{{"name":"test","credentials":[{{"accessKey":"{KEY}","secretKey":"{SECRET}"}}],
            "actions":["Admin","Read","Write","List"]}}]}}"#
    );
    std::fs::write(&users, user).unwrap();
    let ports = free_ports::<8>();
    let names = ["master", "volume", "filer", "s3"];
    let ports_of_all = names.iter().zip(ports.chunks(2));
    let ports_of_all = ports_of_all.flat_map(|(name, ports)| {
        [
            format!("-{name}.port={}", ports[0]),
            format!("-{name}.port.grpc={}", ports[1]),
        ]
    });
    let process = Command::new(program)
        .args(["server", "-filer", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"])
        .args(["-master.volumeSizeLimitMB=64", "-volume.max=8"])
        // On a disk that is nearly full it would else write nothing, and let whoever writes wait.
        .arg("-volume.minFreeSpace=1KiB")
        // What it would also do: tell its makers of itself, and listen where another one does.
        .args([
            "-master.telemetry=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
        ])
        .arg(format!(
            "-filer.localSocket={}",
            directory.path().join("filer.sock").display()
        ))
        .arg(format!(
            "-s3.localSocket={}",
            directory.path().join("s3.sock").display()
        ))
        .arg(format!("-dir={}", directory.path().display()))
        .arg(format!("-s3.config={}", users.display()))
        .args(ports_of_all)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(log_of(&directory)).unwrap())
        .spawn()
        .unwrap();
    let mut server = Server {
        process,
        directory,
        url: format!("http://127.0.0.1:{}", ports[6]),
    };
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", ports[6])).is_err() {
        if server.process.try_wait().unwrap().is_some() {
            return None;
        }
        assert!(begun.elapsed() < PATIENCE, "SeaweedFS takes no connections");
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(server)
}
