//! Which certificates of servers to trust.

use std::path::Path;
use std::sync::Arc;

use outrigger_sessions::store::{Result, StoreError, StoreErrorKind};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// The one provider of cryptography that this workspace has.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The authorities in a PEM file, or else those of the system.
pub(crate) fn roots(file: Option<&Path>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let unusable = |why: String| {
        let what = format!("there is no certificate authority in {}: {why}", file.display());
        StoreError::new(StoreErrorKind::Invalid, what)
    };
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unusable(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| unusable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unusable("it has no certificate".to_owned()));
    }
    Ok(roots)
}

/// Servers must have a certificate of these authorities.
pub(crate) fn client(roots: RootCertStore) -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| StoreError::failed("TLS can't be set up", error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
