//! TLS: the certificate of the front, from files that may change while it serves.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

/// How often a front that serves looks whether the files have changed.
const LOOK: Duration = Duration::from_secs(30);

/// The certificate and the key of a front, in PEM files. Clones share them.
///
/// The front speaks TLS 1.2 and 1.3, and HTTP/1.1 in it. While it serves, it looks every 30 s whether the files have changed, and reads them
/// again. A program that is told of a new certificate, for example by a signal, calls [`reload`](Self::reload). A connection keeps the
/// certificate that it began with.
#[derive(Debug, Clone)]
pub struct Tls(Arc<Files>);

/// Why the files of [`Tls`] can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file can't be read, or has no PEM section of its kind.
    #[error("cannot read the {what} {}: {why}", .path.display())]
    File {
        /// `certificate` or `private key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The key is of a kind that is not supported, or it is not the key of the certificate.
    #[error("cannot use the private key {} with the certificate {}: {why}", .key.display(), .certificate.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong with them.
        why: String,
    },
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
    /// What the files looked like when they were read last, with or without success.
    seen: Mutex<FileStamps>,
}

/// When a file was changed, and its size. `None` for a file that is not there.
type Stamp = Option<(SystemTime, u64)>;

type FileStamps = [Stamp; 2];

impl Tls {
    /// Reads a chain of certificates, the front's own first, and its private key (PKCS #8, PKCS #1 or SEC 1).
    ///
    /// # Errors
    /// When a file can't be read or has nothing of its kind, and when the key is not that of the certificate.
    pub fn from_pem_files(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, TlsError> {
        let (certificate, key) = (certificate.into(), key.into());
        // Before they are read: a change in between is seen at the next look.
        let seen = [stamp(&certificate), stamp(&key)];
        let current = read(&certificate, &key)?;
        Ok(Self(Arc::new(Files {
            certificate,
            key,
            current: RwLock::new(Arc::new(current)),
            seen: Mutex::new(seen),
        })))
    }

    /// Reads the files again, for the connections from now on.
    ///
    /// # Errors
    /// As [`from_pem_files`](Self::from_pem_files). Then the front goes on with what it has.
    pub fn reload(&self) -> Result<(), TlsError> {
        let files = &*self.0;
        let now = [stamp(&files.certificate), stamp(&files.key)];
        *files.seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
        let current = Arc::new(read(&files.certificate, &files.key)?);
        *files.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.0) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Follows the files. Never ready.
    pub(super) async fn follow(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let tls = self.clone();
            // A panic in it would be one of the file system's; the next look tries again.
            let _ = tokio::task::spawn_blocking(move || tls.reload_if_changed()).await;
        }
    }

    fn reload_if_changed(&self) {
        let files = &*self.0;
        let now = [stamp(&files.certificate), stamp(&files.key)];
        if *files.seen.lock().unwrap_or_else(PoisonError::into_inner) == now {
            return;
        }
        match self.reload() {
            Ok(()) => info!(certificate = %files.certificate.display(), "the certificate was read again"),
            // Often only one of the two files is written yet: the next look sees the other one.
            Err(error) => {
                warn!(%error, "the certificate has changed and cannot be used; the front keeps the one that it has")
            }
        }
    }
}

impl ResolvesServerCert for Files {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(
            &self.current.read().unwrap_or_else(PoisonError::into_inner),
        ))
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let failed = |what, path: &Path, why: &dyn std::fmt::Display| TlsError::File {
        what,
        path: path.to_owned(),
        why: why.to_string(),
    };
    let unreadable = |error| failed("certificate", certificate, &error);
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .map_err(unreadable)?
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    if chain.is_empty() {
        return Err(failed(
            "certificate",
            certificate,
            &io::Error::other("the file has no section CERTIFICATE"),
        ));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| failed("private key", key, &error))?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, private, &provider).map_err(|error| TlsError::Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn current(tls: &Tls) -> Vec<u8> {
        tls.0.current.read().unwrap().cert[0].to_vec()
    }

    /// A certificate in these files, with a time of change of its own, however coarse the clock of the file system is.
    fn write(certificate: &Path, key: &Path, second: u64) -> rcgen::CertifiedKey<rcgen::KeyPair> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(certificate, made.cert.pem()).unwrap();
        std::fs::write(key, made.signing_key.serialize_pem()).unwrap();
        for path in [certificate, key] {
            touch(path, second);
        }
        made
    }

    fn touch(path: &Path, second: u64) {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second))
            .unwrap();
    }

    #[test]
    fn files_that_change_are_read_again_once_they_fit() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        let first = write(&certificate, &key, 1);
        let tls = Tls::from_pem_files(&certificate, &key).unwrap();
        assert_eq!(current(&tls), first.cert.der().to_vec());

        // The certificate is new, and the key is still the old one: the front keeps the pair that fits.
        let old_key = std::fs::read(&key).unwrap();
        let second = write(&certificate, &key, 2);
        let new_key = std::fs::read(&key).unwrap();
        std::fs::write(&key, &old_key).unwrap();
        touch(&key, 3);
        tls.reload_if_changed();
        assert_eq!(current(&tls), first.cert.der().to_vec());
        let error = tls.reload().unwrap_err();
        assert!(matches!(error, TlsError::Pair { .. }), "{error}");
        std::fs::write(&key, new_key).unwrap();
        touch(&key, 4);
        tls.reload_if_changed();
        assert_eq!(current(&tls), second.cert.der().to_vec());

        // Files that look as before are not read.
        write(&certificate, &key, 4);
        touch(&certificate, 2);
        let seen = [stamp(&certificate), stamp(&key)];
        *tls.0.seen.lock().unwrap() = seen;
        tls.reload_if_changed();
        assert_eq!(current(&tls), second.cert.der().to_vec());
    }

    #[test]
    fn files_that_are_none_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        let missing = Tls::from_pem_files(&certificate, &key).unwrap_err();
        assert!(missing.to_string().contains("cert.pem"), "{missing}");
        write(&certificate, &key, 1);
        std::fs::write(&key, "no key").unwrap();
        let empty = Tls::from_pem_files(&certificate, &key).unwrap_err();
        assert!(
            matches!(
                &empty,
                TlsError::File {
                    what: "private key",
                    ..
                }
            ),
            "{empty}"
        );
        let swapped = Tls::from_pem_files(&key, &certificate).unwrap_err();
        assert!(
            matches!(
                &swapped,
                TlsError::File {
                    what: "certificate",
                    ..
                }
            ),
            "{swapped}"
        );
    }
}
