//! The API that requests are passed on to.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::uri::{Authority, Scheme};
use axum::http::{HeaderMap, HeaderName, Method, Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(30);

/// A Messages API that requests are passed on to, with the key that the CLI sends.
///
/// Speaks HTTP/1.1, over TLS with the certificates that the system trusts if the address is an `https` one. Takes no account of
/// `HTTPS_PROXY` and its like.
#[derive(Debug, Clone)]
pub struct Upstream {
    client: Client<HttpsConnector<HttpConnector>, Body>,
    scheme: Scheme,
    authority: Authority,
    prefix: String,
}

/// An address is no base address of an API.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("{url:?} is no base URL of an API: {what}")]
pub struct UpstreamError {
    /// The address.
    pub url: String,
    /// The reason.
    pub what: String,
}

/// Why a request got no answer from upstream.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// There is no connection.
    Unreachable(String),
    /// The connection broke.
    Broken,
}

impl Upstream {
    /// The API at this base URL, as `ANTHROPIC_BASE_URL` has it: `https://api.anthropic.com`, perhaps with a path.
    ///
    /// # Errors
    /// When it is no address of that kind, or the system's certificates cannot be read.
    pub fn new(base_url: &str) -> Result<Self, UpstreamError> {
        let wrong = |what: String| UpstreamError {
            url: base_url.to_owned(),
            what,
        };
        let uri: Uri = base_url.parse().map_err(|error| wrong(format!("{error}")))?;
        let parts = uri.into_parts();
        let scheme = parts
            .scheme
            .filter(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
        let scheme = scheme.ok_or_else(|| wrong("it begins with neither http:// nor https://".to_owned()))?;
        let authority = parts
            .authority
            .ok_or_else(|| wrong("it names no host".to_owned()))?;
        let path = parts.path_and_query.as_ref().map_or("", |path| path.as_str());
        if path.contains('?') {
            return Err(wrong("it has a query".to_owned()));
        }
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT));
        http.set_nodelay(true);
        let builder = hyper_rustls::HttpsConnectorBuilder::new();
        let https = if scheme == Scheme::HTTPS {
            let trusting = builder.with_native_roots();
            let trusting = trusting
                .map_err(|error| wrong(format!("the system's certificates cannot be read: {error}")))?;
            trusting.https_only().enable_http1().wrap_connector(http)
        } else {
            // No certificate is looked at on this way, so none has to be there.
            let none = rustls::RootCertStore::empty();
            let config =
                rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
                    .with_safe_default_protocol_versions()
                    .map_err(|error| wrong(error.to_string()))?
                    .with_root_certificates(none)
                    .with_no_client_auth();
            builder
                .with_tls_config(config)
                .https_or_http()
                .enable_http1()
                .wrap_connector(http)
        };
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(https),
            scheme,
            authority,
            prefix: path.trim_end_matches('/').to_owned(),
        })
    }

    /// Passes a request on, and returns the answer as soon as its head is there.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Unanswered> {
        let unreachable = |what: String| {
            Unanswered::Unreachable(format!(
                "cannot pass the request on to {}: {what}",
                self.authority
            ))
        };
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{path}", self.prefix))
            .build();
        let mut request = Request::new(Body::from(body));
        *request.uri_mut() = uri.map_err(|error| unreachable(error.to_string()))?;
        *request.method_mut() = method;
        *request.headers_mut() = passed_on(headers);
        self.client.request(request).await.map_err(|error| {
            if error.is_connect() {
                let cause = std::error::Error::source(&error);
                unreachable(cause.map_or_else(|| error.to_string(), |cause| root(cause).to_string()))
            } else {
                Unanswered::Broken
            }
        })
    }
}

fn root<'a>(mut error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    while let Some(cause) = error.source() {
        error = cause;
    }
    error
}

/// The headers without those that are about the connection. Nothing is to be compressed, since it is read on the way.
pub(super) fn passed_on(headers: &HeaderMap) -> HeaderMap {
    const OF_THE_CONNECTION: &[&str] = &[
        "host",
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "accept-encoding",
    ];
    let kept = |name: &HeaderName| !OF_THE_CONNECTION.contains(&name.as_str());
    headers
        .iter()
        .filter(|(name, _)| kept(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
