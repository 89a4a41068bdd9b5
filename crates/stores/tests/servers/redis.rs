//! Redis for the tests: each server in a directory of its own, reached by a socket in it.

use std::net::TcpListener;
use std::path::Path;
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
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
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
    Server::start_in(&TLS, true, |place| certify(place, "DNS:localhost"))
}

/// Makes an authority, and has it certify a server of this name.
fn certify(place: &Path, name: &str) {
    let name = format!(
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -addext subjectAltName={name} \
         -keyout server.key -out server.csr"
    );
    let steps = [
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority \
         -addext basicConstraints=critical,CA:TRUE -keyout authority.key -out authority.pem",
        &name,
        "x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 \
         -copy_extensions copy -out server.pem",
    ];
    for step in steps {
        let made = Command::new("openssl")
            .args(step.split_whitespace())
            .current_dir(place)
            .output();
        let made = made.expect("OpenSSL is not installed: apt-get install openssl");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
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
    joined((0..3).map(node).collect(), &[])
}

/// A cluster of three that prove to be `127.0.0.1`, by the authority of which each has the `authority.pem`.
pub(crate) fn redis_cluster_with_tls() -> Vec<Server> {
    let made = tempfile::tempdir().unwrap();
    certify(made.path(), "IP:127.0.0.1");
    let copy = |place: &Path| {
        for file in std::fs::read_dir(made.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), place.join(file.file_name())).unwrap();
        }
    };
    let cluster = ["--cluster-enabled", "yes", "--tls-cluster", "yes"];
    let node = |_| Server::start_in(&[&TLS[..], &cluster].concat(), true, copy);
    let nodes = (0..3).map(node).collect();
    let authority = made.path().join("authority.pem").display().to_string();
    joined(nodes, &["--tls", "--cacert", &authority])
}

fn joined(nodes: Vec<Server>, how: &[&str]) -> Vec<Server> {
    let mut create = Command::new("redis-cli");
    create.args(how).args(["--cluster", "create"]);
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

/// Ports that nobody has at the moment.
fn free_ports() -> [u16; 2] {
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|held| held.local_addr().unwrap().port())
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it takes too long until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
