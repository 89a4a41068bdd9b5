//! A front with a certificate.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outrigger_host_http::{Front, Limits, ServeError, Tls, Tokens};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::rig::host;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn files(&self) -> (PathBuf, PathBuf) {
        (self.dir.path().join("cert.pem"), self.dir.path().join("key.pem"))
    }

    /// A new certificate for `host.example.com`.
    fn certify(&self) -> CertificateDer<'static> {
        let made = rcgen::generate_simple_self_signed(["host.example.com".to_owned()]).unwrap();
        let (certificate, key) = self.files();
        std::fs::write(certificate, made.cert.pem()).unwrap();
        std::fs::write(key, made.signing_key.serialize_pem()).unwrap();
        made.cert.der().clone()
    }

    fn tls(&self) -> Tls {
        let (certificate, key) = self.files();
        Tls::from_pem_files(certificate, key).unwrap()
    }
}

struct Served {
    _dir: tempfile::TempDir,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), ServeError>>,
}

/// Serves on every address of the machine.
async fn serve(tls: Tls, limits: Limits) -> Served {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path()).await;
    let tokens = Tokens::open(host.event_log()).await.unwrap();
    let front = Front::new(host, tokens)
        .limits(limits)
        .tls(tls, ["host.example.com"]);
    let (stop, stopped) = oneshot::channel();
    let served = tokio::spawn(front.serve(listener, async {
        let _ = stopped.await;
    }));
    Served {
        _dir: dir,
        address: ([127, 0, 0, 1], port).into(),
        stop,
        served,
    }
}

impl Served {
    async fn connect(
        &self,
        trusted: &CertificateDer<'static>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("host.example.com").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

async fn healthy(stream: &mut TlsStream<TcpStream>, host: &str) -> u16 {
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    let answer = std::str::from_utf8(&answer).unwrap();
    answer.strip_prefix("HTTP/1.1 ").unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_front_with_a_certificate_listens_beyond_loopback() {
    let place = Place::new();
    let certificate = place.certify();
    let served = serve(place.tls(), Limits::default()).await;
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let mut stream = served.connect(&certificate, &[version]).await.unwrap();
        assert_eq!(healthy(&mut stream, "host.example.com").await, 204);
        let mut stream = served.connect(&certificate, &[version]).await.unwrap();
        assert_eq!(healthy(&mut stream, "evil.example").await, 421);
    }
    // Plain text gets no answer of the front.
    let mut plain = TcpStream::connect(served.address).await.unwrap();
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    served.stop.send(()).unwrap();
    served.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_certificate_is_replaced_while_the_front_serves() {
    let place = Place::new();
    let first = place.certify();
    let tls = place.tls();
    let served = serve(tls.clone(), Limits::default()).await;
    let versions = rustls::ALL_VERSIONS;
    let mut before = served.connect(&first, versions).await.unwrap();
    let second = place.certify();
    tls.reload().unwrap();
    served.connect(&first, versions).await.unwrap_err();
    let mut after = served.connect(&second, versions).await.unwrap();
    assert_eq!(healthy(&mut after, "host.example.com").await, 204);
    // A connection of before goes on.
    assert_eq!(healthy(&mut before, "host.example.com").await, 204);

    // Files that cannot be used change nothing.
    std::fs::write(place.files().1, "no key").unwrap();
    tls.reload().unwrap_err();
    served.connect(&second, versions).await.unwrap();
}

#[tokio::test]
async fn a_handshake_that_never_comes_loses_its_connection() {
    let place = Place::new();
    let certificate = place.certify();
    let mut limits = Limits::default();
    limits.head_patience = Duration::from_millis(50);
    limits.connections = 1;
    let served = serve(place.tls(), limits).await;
    let mut silent = TcpStream::connect(served.address).await.unwrap();
    let mut rest = Vec::new();
    let _ = silent.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
    // Its place is free again.
    let mut stream = served.connect(&certificate, rustls::ALL_VERSIONS).await.unwrap();
    assert_eq!(healthy(&mut stream, "host.example.com").await, 204);
}

#[tokio::test]
async fn a_front_that_shuts_down_does_not_wait_for_handshakes() {
    let place = Place::new();
    place.certify();
    let served = serve(place.tls(), Limits::default()).await;
    let mut silent = TcpStream::connect(served.address).await.unwrap();
    // The first bytes of a handshake, so that the connection was surely accepted when the answer to the next one comes.
    silent.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
    let mut broken = TcpStream::connect(served.address).await.unwrap();
    broken.write_all(b"plain text").await.unwrap();
    let _ = broken.read_to_end(&mut Vec::new()).await;
    served.stop.send(()).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), served.served).await;
    ended.expect("it waits for the handshake").unwrap().unwrap();
}

#[tokio::test]
async fn a_front_listens_as_the_policy_file_says() {
    let place = Place::new();
    let certificate = place.certify();
    let policy = place.dir.path().join("policy.toml");
    let text = "sessions.roots = [\".\"]\n[server]\nlisten = \"0.0.0.0:0\"\n[server.tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\nnames = [\"host.example.com\"]\n";
    std::fs::write(&policy, text).unwrap();
    let file = outrigger_host::ServePolicy::read(&policy).unwrap();
    let listener = TcpListener::bind(file.server.listen).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let host = host(dir.path()).await;
    let tokens = Tokens::open(host.event_log()).await.unwrap();
    let unusable = Front::new(host.clone(), tokens.clone());
    let front = Front::new(host, tokens).settings(&file.server).unwrap();
    let (stop, stopped) = oneshot::channel();
    let served = tokio::spawn(front.serve(listener, async {
        let _ = stopped.await;
    }));
    let served = Served {
        address: ([127, 0, 0, 1], port).into(),
        stop,
        served,
        _dir: dir,
    };
    let mut stream = served.connect(&certificate, rustls::ALL_VERSIONS).await.unwrap();
    assert_eq!(healthy(&mut stream, "host.example.com").await, 204);
    std::fs::remove_file(place.files().1).unwrap();
    unusable.settings(&file.server).unwrap_err();
}
