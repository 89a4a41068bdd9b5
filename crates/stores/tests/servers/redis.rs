//! Redis for the tests: each server in a directory of its own, reached by a socket in it.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs; dropped, it is killed, and what it has is thrown away.
pub(crate) struct Server {
    process: Child,
    arguments: Vec<String>,
    /// Where its socket is.
    pub(crate) directory: tempfile::TempDir,
    /// Where other servers and the clients of a cluster reach it.
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// With these options. What is not said to be kept is in memory alone.
    fn start(port: u16, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("redis.sock");
        let place = directory.path().display().to_string();
        let (socket, port_text) = (socket.display().to_string(), port.to_string());
        let own = [
            "--bind",
            "127.0.0.1",
            "--port",
            &port_text,
            "--unixsocket",
            &socket,
            "--dir",
            &place,
            "--save",
            "",
        ];
        let arguments: Vec<String> = own.iter().chain(arguments).map(ToString::to_string).collect();
        let server = Self {
            process: process(&arguments),
            arguments,
            directory,
            port,
        };
        server.wait();
        server
    }

    fn cli(&self, arguments: &[&str]) -> String {
        let socket = self.directory.path().join("redis.sock");
        let said = Command::new("redis-cli")
            .arg("-s")
            .arg(socket)
            .args(arguments)
            .output();
        let said = said.expect("redis-cli is not installed: apt-get install redis-server");
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }

    fn wait(&self) {
        wait_until("it takes commands", || {
            let socket = UnixStream::connect(self.directory.path().join("redis.sock"));
            socket.is_ok_and(|mut socket| socket.write_all(b"PING\r\n").is_ok())
                && self.cli(&["PING"]) == "PONG"
        });
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// The address of a node of a cluster, or of a lone server.
    pub(crate) fn redis_url(&self) -> String {
        if self
            .arguments
            .iter()
            .any(|argument| argument == "--cluster-enabled")
        {
            return format!("redis://127.0.0.1:{}", self.port);
        }
        format!("redis+unix://{}/redis.sock", self.directory.path().display())
    }

    pub(crate) fn kill_and_start_again(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let _ = std::fs::remove_file(self.directory.path().join("redis.sock"));
        self.process = process(&self.arguments);
        self.wait();
    }

    /// It answers nothing any more, but is there.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }
}

fn process(arguments: &[String]) -> Child {
    Command::new("redis-server")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("Redis is not installed: apt-get install redis-server")
}

/// A lone server with these options.
pub(crate) fn redis(arguments: &[&str]) -> Server {
    Server::start(ports::<1>()[0], arguments)
}

/// Has one server copy all that the other has and gets.
pub(crate) fn follow(replica: &Server, server: &Server) {
    let port = server.port.to_string();
    assert_eq!(replica.cli(&["REPLICAOF", "127.0.0.1", &port]), "OK");
    wait_until("it has what the other has", || {
        replica
            .cli(&["INFO", "replication"])
            .contains("master_link_status:up")
    });
}

/// A cluster of three.
pub(crate) fn redis_cluster() -> Vec<Server> {
    let ports = ports::<6>();
    let node = |at: usize| {
        let bus = ports[at + 3].to_string();
        Server::start(ports[at], &["--cluster-enabled", "yes", "--cluster-port", &bus])
    };
    let nodes: Vec<Server> = (0..3).map(node).collect();
    let mut create = Command::new("redis-cli");
    create.args(["--cluster", "create"]);
    create.args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)));
    let created = create.arg("--cluster-yes").stdin(Stdio::null()).output().unwrap();
    assert!(created.status.success(), "{created:?}");
    for node in &nodes {
        wait_until("the cluster is whole", || {
            node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
                && node.cli(&["CLUSTER", "NODES"]).lines().count() == nodes.len()
        });
    }
    nodes
}

/// Ports that nobody has.
fn ports<const N: usize>() -> [u16; N] {
    let held: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    std::array::from_fn(|at| held[at].local_addr().unwrap().port())
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it takes too long until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
