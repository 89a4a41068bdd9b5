//! TLS for PostgreSQL, with as much of the server's identity looked at as its users expect of `sslmode`.

use std::sync::Arc;

use outrigger_sessions::store::{Result, StoreError};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::target::{PostgresTarget, Trust};

/// What connections to that target are made with.
pub(super) fn connector(target: &PostgresTarget) -> Result<MakeRustlsConnect> {
    let config = match target.trust {
        Trust::Anybody => with(Lax {
            authorities: None,
            provider: crate::trusted_certificates::provider(),
        })?,
        Trust::Authority => {
            let roots = Arc::new(crate::trusted_certificates::roots(target.authorities.as_deref())?);
            let provider = crate::trusted_certificates::provider();
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
            let verifier =
                verifier.map_err(|error| StoreError::failed("no certificate can be looked at", error))?;
            with(Lax {
                authorities: Some(verifier),
                provider,
            })?
        }
        Trust::Name => crate::trusted_certificates::client(crate::trusted_certificates::roots(
            target.authorities.as_deref(),
        )?)?,
    };
    Ok(MakeRustlsConnect::new(config))
}

fn with(verifier: Lax) -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(crate::trusted_certificates::provider())
        .with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| StoreError::failed("TLS can't be set up", error))?;
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(builder.with_no_client_auth())
}

/// Checks less than the server's name: only its authority, or nothing. That the server has the key of its certificate is
/// checked in any case.
#[derive(Debug)]
struct Lax {
    authorities: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lax {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is looked at last, when the authority has been found.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            done => done,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
