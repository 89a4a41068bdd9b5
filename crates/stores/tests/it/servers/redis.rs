//! Redis for the tests: each server in a directory of its own, reached by a socket in it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::ports::free_ports;

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
    bus: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// With these options. What is not said to be kept is in memory alone. With `ports`, others reach it by them: the second is for
    /// the nodes of a cluster.
    fn start(arguments: &[&str], has_ports: bool) -> Self {
        Self::start_in(arguments, has_ports, |_| {})
    }

    /// The same in a directory that is prepared first.
    fn start_in(arguments: &[&str], has_ports: bool, prepare: impl Fn(&Path)) -> Self {
        let begun = Instant::now();
        loop {
            let [port, bus] = if has_ports { free_ports() } else { [0, 0] };
            let directory = tempfile::tempdir().unwrap();
            prepare(directory.path());
            let place = directory.path().display().to_string();
            let (port_text, bus_text) = (port.to_string(), bus.to_string());
            let socket = format!("{place}/redis.sock");
            let has_tls = arguments.contains(&"--tls-cert-file");
            let port_name = if has_tls { "--tls-port" } else { "--port" };
            let mut own = vec!["--port", "0", "--bind", "127.0.0.1", port_name, &port_text];
            own.extend(["--unixsocket", &socket, "--dir", &place, "--save", ""]);
            if arguments.contains(&"--cluster-enabled") {
                own.extend(["--cluster-port", &bus_text]);
            }
            let arguments: Vec<String> = own.iter().chain(arguments).map(ToString::to_string).collect();
            let mut server = Self {
                process: process(&arguments),
                arguments,
                directory,
                port,
                bus,
            };
            if server.is_up() {
                return server;
            }
            // Somebody else was faster to have the port.
            assert!(begun.elapsed() < PATIENCE, "Redis does not start");
        }
    }

    /// What it says to a command, as a person would see it: a line for each part, or why not.
    pub(crate) fn cli(&self, arguments: &[&str]) -> String {
        let mut lines = Vec::new();
        match self.ask(arguments) {
            Ok(said) => show(&said, &mut lines),
            Err(error) => lines.push(error.to_string()),
        }
        lines.join("\n").trim().to_owned()
    }

    fn ask(&self, arguments: &[&str]) -> redis::RedisResult<redis::Value> {
        let socket = self.directory.path().join("redis.sock");
        let address = format!("unix://{}", socket.display());
        let mut connection = redis::Client::open(address)?.get_connection()?;
        redis::cmd(arguments[0])
            .arg(&arguments[1..])
            .query(&mut connection)
    }

    /// Waits until it takes commands; `false` if it has ended.
    fn is_up(&mut self) -> bool {
        let begun = Instant::now();
        while self.process.try_wait().unwrap().is_none() {
            if self.cli(&["PING"]) == "PONG" {
                return true;
            }
            assert!(begun.elapsed() < PATIENCE, "Redis takes no commands");
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        let kill = format!("kill {signal} {pid}");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// The address of a node of a cluster, of one with TLS, or of a lone server.
    pub(crate) fn redis_url(&self) -> String {
        let has = |option: &str| self.arguments.iter().any(|argument| argument == option);
        let port = self.port;
        match (has("--cluster-enabled"), has("--tls-cert-file")) {
            (true, true) => format!("rediss://127.0.0.1:{port}"),
            (true, false) => format!("redis://127.0.0.1:{port}"),
            (false, true) => format!("rediss://localhost:{port}"),
            (false, false) => format!("redis+unix://{}/redis.sock", self.directory.path().display()),
        }
    }

    pub(crate) fn kill_and_start_again(&mut self) {
        self.stop();
        self.start_again();
    }

    /// Kills it.
    pub(crate) fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let _ = std::fs::remove_file(self.directory.path().join("redis.sock"));
    }

    /// Starts it again, with what it kept on disk.
    pub(crate) fn start_again(&mut self) {
        self.process = process(&self.arguments);
        assert!(self.is_up(), "Redis does not start again");
    }

    /// It answers nothing any more, but is there.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }
}

fn show(said: &redis::Value, lines: &mut Vec<String>) {
    use redis::Value;
    match said {
        Value::Nil => lines.push(String::new()),
        Value::Int(number) => lines.push(number.to_string()),
        Value::Okay => lines.push("OK".to_owned()),
        Value::SimpleString(text) => lines.push(text.clone()),
        Value::BulkString(bytes) => lines.push(String::from_utf8_lossy(bytes).into_owned()),
        Value::Array(parts) | Value::Set(parts) => parts.iter().for_each(|part| show(part, lines)),
        other => lines.push(format!("{other:?}")),
    }
}

fn process(arguments: &[String]) -> Child {
    let has_tls = arguments.iter().any(|argument| argument == TLS[0]);
    let program = if has_tls {
        outrigger_needs::redis_with_tls()
    } else {
        outrigger_needs::redis()
    };
    Command::new(program.unwrap_or_else(|missing| panic!("{missing}")))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A lone server with these options.
pub(crate) fn redis(arguments: &[&str]) -> Server {
    Server::start(arguments, false)
}

/// One that another can copy.
pub(crate) fn redis_with_port() -> Server {
    Server::start(&[], true)
}

/// Relative to the directory in which a server works.
const TLS: [&str; 8] = [
    "--tls-cert-file",
    "server.pem",
    "--tls-key-file",
    "server.key",
    "--tls-ca-cert-file",
    "authority.pem",
    "--tls-auth-clients",
    "no",
];

/// One that proves to be `localhost` by an authority of its own, which is in `authority.pem`.
pub(crate) fn redis_with_tls() -> Server {
    Server::start_in(&TLS, true, |place| certify(place, "localhost"))
}

/// Makes an authority, and has it certify a server of this name or address.
fn certify(place: &Path, name: &str) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let server = server.signed_by(&key, &issuer).unwrap().pem();
    for (file, text) in [
        ("authority.pem", authority),
        ("server.pem", server),
        ("server.key", key.serialize_pem()),
    ] {
        std::fs::write(place.join(file), text).unwrap();
    }
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
    let node = |_| Server::start(&["--cluster-enabled", "yes"], true);
    joined((0..3).map(node).collect())
}

/// A cluster of three that prove to be `127.0.0.1`, by the authority of which each has the `authority.pem`.
pub(crate) fn redis_cluster_with_tls() -> Vec<Server> {
    let made = tempfile::tempdir().unwrap();
    certify(made.path(), "127.0.0.1");
    let copy = |place: &Path| {
        for file in std::fs::read_dir(made.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), place.join(file.file_name())).unwrap();
        }
    };
    let cluster = ["--cluster-enabled", "yes", "--tls-cluster", "yes"];
    let node = |_| Server::start_in(&[&TLS[..], &cluster].concat(), true, copy);
    joined((0..3).map(node).collect())
}

/// Shares the slots among the nodes, and has each meet the first.
fn joined(nodes: Vec<Server>) -> Vec<Server> {
    const SLOTS: usize = 16384;
    for (number, node) in nodes.iter().enumerate() {
        let (from, to) = (
            number * SLOTS / nodes.len(),
            (number + 1) * SLOTS / nodes.len() - 1,
        );
        let slots = ["CLUSTER", "ADDSLOTSRANGE", &from.to_string(), &to.to_string()];
        assert_eq!(node.cli(&slots), "OK");
        // Of two with the same number the nodes would have to make two first.
        let epoch = (number + 1).to_string();
        assert_eq!(node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]), "OK");
    }
    let (first, others) = nodes.split_first().unwrap();
    for node in others {
        let (port, bus) = (first.port.to_string(), first.bus.to_string());
        assert_eq!(node.cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]), "OK");
    }
    for node in &nodes {
        wait_until("the cluster is whole", || {
            node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
                && node.cli(&["CLUSTER", "NODES"]).trim().lines().count() == nodes.len()
        });
    }
    nodes
}

/// A cluster of a node that has everything, and of its replica.
pub(crate) fn redis_cluster_with_replica() -> [Server; 2] {
    let node = || Server::start(&["--cluster-enabled", "yes"], true);
    let nodes = [node(), node()];
    let [all, replica] = &nodes;
    assert_eq!(all.cli(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]), "OK");
    let (port, bus) = (all.port.to_string(), all.bus.to_string());
    assert_eq!(replica.cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]), "OK");
    let id = all.cli(&["CLUSTER", "MYID"]);
    wait_until("it knows the other", || {
        replica.cli(&["CLUSTER", "REPLICATE", &id]) == "OK"
    });
    wait_until("it has what the other has", || {
        replica
            .cli(&["INFO", "replication"])
            .contains("master_link_status:up")
            && all.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
    });
    nodes
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it takes too long until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
