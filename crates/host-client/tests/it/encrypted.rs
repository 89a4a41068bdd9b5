//! The client with a front that has a certificate of a private authority.

use std::time::Duration;

use outrigger::testing::Simulated;
use outrigger_host::log::SqliteLog;
use outrigger_host::{HostPolicy, SessionHost};
use outrigger_host_client::{ClientBuilder, Error, HostClient, Token};
use outrigger_host_http::{Front, Scope, Tls, Tokens};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::rig::{PATIENCE, soon};

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A front whose certificate is for `localhost`.
struct Encrypted {
    port: u16,
    token: String,
    authority: String,
    front: JoinHandle<()>,
    _place: TempDir,
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        self.front.abort();
    }
}

impl Encrypted {
    async fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let authority = authority("a company");
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["localhost".to_owned()])
            .unwrap()
            .signed_by(&key, &authority)
            .unwrap();
        let files = (place.path().join("cert.pem"), place.path().join("key.pem"));
        std::fs::write(&files.0, certificate.pem()).unwrap();
        std::fs::write(&files.1, key.serialize_pem()).unwrap();
        let tls = Tls::from_pem_files(&files.0, &files.1).unwrap();

        let policy = HostPolicy::new(Simulated::agent(|agent| agent).options(), [place.path()]);
        let log = SqliteLog::open(place.path().join("host.db")).unwrap();
        let host = SessionHost::open(policy, log).await.unwrap();
        let tokens = Tokens::open(host.event_log()).await.unwrap();
        let (token, _) = tokens.issue("ada", Scope::ALL, None).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let front = Front::new(host, tokens).tls(tls, ["localhost"]);
        let front = tokio::spawn(async move {
            front.serve(listener, std::future::pending()).await.unwrap();
        });
        Self {
            port,
            token: token.reveal().to_owned(),
            authority: authority.pem(),
            front,
            _place: place,
        }
    }

    fn builder(&self, name: &str) -> ClientBuilder {
        HostClient::builder(format!("https://{name}:{}", self.port))
            .token(Token::new(&self.token).unwrap())
            .deadline(PATIENCE)
            .patience(Duration::ZERO)
    }
}

#[tokio::test]
async fn a_private_authority_counts_if_it_was_named_and_for_its_names_alone() {
    let served = Encrypted::start().await;
    let trusting = served
        .builder("localhost")
        .authorities(served.authority.as_bytes())
        .unwrap();
    assert_eq!(
        trusting.origin().unwrap(),
        format!("https://localhost:{}", served.port)
    );
    let trusting = trusting.build().unwrap();
    assert_eq!(soon(trusting.all_sessions()).await.unwrap().len(), 0);
    soon(trusting.ready()).await.unwrap();

    let other = authority("somebody else").pem();
    for (why, client) in [
        (
            "UnknownIssuer",
            served.builder("localhost").authorities(other.as_bytes()).unwrap(),
        ),
        (
            "NotValidForName",
            served
                .builder("127.0.0.1")
                .authorities(served.authority.as_bytes())
                .unwrap(),
        ),
    ] {
        let error = soon(client.build().unwrap().all_sessions()).await.unwrap_err();
        assert!(
            matches!(error, Error::Unreachable { .. }) && format!("{error:?}").contains(why),
            "{error:?}"
        );
    }
}

#[test]
fn what_is_no_certificate_is_told() {
    for (pem, said) in [
        ("", "no certificate"),
        (
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            "PEM",
        ),
    ] {
        let error = HostClient::builder("https://localhost")
            .authorities(pem.as_bytes())
            .unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    // A certificate of which only the envelope is one.
    let error = HostClient::builder("https://localhost")
        .authorities(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .unwrap()
        .build()
        .unwrap_err();
    assert!(
        error.to_string().contains("certificate of an authority"),
        "{error}"
    );
}
