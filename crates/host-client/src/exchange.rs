//! Requests and their answers.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use crate::address::{Address, Token};
use crate::backoff::Backoff;
use crate::error::{Error, Problem, Result};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How much of a refusal is read.
const REFUSAL: usize = 1 << 20;

/// Which requests are sent again when their answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The host knows a repetition, or it changes nothing.
    Safe,
    /// Sent twice the request would do another thing: only what was surely not done is sent again.
    Unsafe,
}

/// What bounds the client.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// How long one try of the request may take.
    pub(crate) deadline: Duration,
    /// All tries.
    pub(crate) patience: Duration,
    pub(crate) answer_bytes: usize,
    pub(crate) event_bytes: usize,
    /// A stream in which nothing comes, not even a comment.
    pub(crate) silence: Duration,
    pub(crate) backoff: Backoff,
}

/// A request.
pub(crate) struct HostRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
    pub(crate) key: Option<HeaderValue>,
    pub(crate) repeat: Repeat,
    /// Whether the token goes with it.
    pub(crate) is_known: bool,
}

impl HostRequest {
    pub(crate) fn new(method: Method, path: String, repeat: Repeat) -> Self {
        Self {
            method,
            path,
            body: None,
            key: None,
            repeat,
            is_known: true,
        }
    }

    pub(crate) fn get(path: String) -> Self {
        Self::new(Method::GET, path, Repeat::Safe)
    }

    /// A read that needs no token, and gets none.
    pub(crate) fn open(path: &str) -> Self {
        Self::get(path.to_owned()).anonymous()
    }

    pub(crate) fn anonymous(mut self) -> Self {
        self.is_known = false;
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Some(body.into());
        self
    }
}

/// The answer to a request.
pub(crate) struct HostResponse {
    pub(crate) body: Bytes,
}

/// A failure, and whether an earlier try may have been done.
pub(crate) struct Failed {
    pub(crate) error: Error,
    pub(crate) may_be_done: bool,
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

/// The connections to a host.
#[derive(Debug)]
pub(crate) struct Exchange {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    address: Address,
    authorization: Option<HeaderValue>,
    pub(crate) bounds: Bounds,
    /// Whether the host was reached once. Until then, that it is not there is no outage.
    reached: AtomicBool,
}

impl Exchange {
    pub(crate) fn new(
        address: Address,
        token: Option<&Token>,
        authorities: &[CertificateDer<'static>],
        bounds: Bounds,
    ) -> Result<Self> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT));
        http.set_keepalive(Some(Duration::from_secs(30)));
        http.set_nodelay(true);
        // Without TLS nobody is asked who they are, and a machine without certificates is a client, too.
        let trusted = match address.is_tls {
            true => trusted(authorities)?,
            false => RootCertStore::empty(),
        };
        let config = ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|source| Error::Unreachable {
                host: address.base().to_owned(),
                source: source.into(),
            })?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let builder = HttpsConnectorBuilder::new().with_tls_config(config);
        let builder = match address.is_tls {
            true => builder.https_only(),
            false => builder.https_or_http(),
        };
        let connector = builder.enable_http1().wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(10))
            .build(connector);
        Ok(Self {
            client,
            address,
            authorization: token.map(Token::header),
            bounds,
            reached: AtomicBool::new(false),
        })
    }

    pub(crate) fn host(&self) -> &str {
        self.address.base()
    }

    /// Whether a later try makes sense.
    pub(crate) fn may_pass(&self, error: &Error) -> bool {
        match error {
            Error::Unreachable { .. } => self.reached.load(Ordering::Relaxed),
            error => error.is_transient(),
        }
    }

    /// Sends a request until there is an answer, within the patience.
    pub(crate) async fn send(&self, request: &HostRequest) -> Result<HostResponse, Failed> {
        let began = Instant::now();
        let mut may_be_done = false;
        let mut tries = 0;
        loop {
            let error = match timeout(self.bounds.deadline, self.once(request)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => Error::TimedOut(self.bounds.deadline),
            };
            let failed = |error, may_be_done| Failed { error, may_be_done };
            // A server that failed may have failed behind the deed.
            let is_done_perhaps = error.may_be_done();
            if !self.may_pass(&error)
                || (is_done_perhaps && request.repeat == Repeat::Unsafe)
                || error.problem().is_some_and(|problem| problem.status == 500)
            {
                return Err(failed(error, may_be_done));
            }
            may_be_done |= is_done_perhaps;
            let wait = self.bounds.backoff.drawn(tries, error.retry_after());
            if began.elapsed().saturating_add(wait) > self.bounds.patience {
                return Err(failed(error, may_be_done));
            }
            debug!(path = request.path, %error, ?wait, "a request is sent again");
            tries += 1;
            sleep(wait).await;
        }
    }

    async fn once(&self, request: &HostRequest) -> Result<HostResponse> {
        let response = self
            .open(request, HeaderValue::from_static("application/json"))
            .await?;
        let body = whole(response.into_body(), self.bounds.answer_bytes).await?;
        Ok(HostResponse { body })
    }

    /// Sends a request once, and reads the head of its answer. Refusals and redirects are errors.
    pub(crate) async fn open(
        &self,
        request: &HostRequest,
        accept: HeaderValue,
    ) -> Result<Response<Incoming>> {
        let uri = self.address.of(&request.path)?;
        let mut http_request = Request::new(Full::new(request.body.clone().unwrap_or_default()));
        *http_request.method_mut() = request.method.clone();
        *http_request.uri_mut() = uri;
        let headers = http_request.headers_mut();
        headers.insert(header::ACCEPT, accept);
        if request.body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = &request.key {
            headers.insert(HeaderName::from_static("idempotency-key"), key.clone());
        }
        if request.is_known
            && let Some(authorization) = &self.authorization
        {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        let response = self.client.request(http_request).await.map_err(|source| {
            if source.is_connect() {
                Error::Unreachable {
                    host: self.host().to_owned(),
                    source: source.into(),
                }
            } else {
                self.reached.store(true, Ordering::Relaxed);
                Error::Lost {
                    source: source.into(),
                }
            }
        })?;
        self.reached.store(true, Ordering::Relaxed);
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() || status.is_informational() {
            return Err(Error::Unexpected(redirect(status, response.headers())));
        }
        let retry_after = retry_after(response.headers());
        // That a refusal is cut off does not make it less of one.
        let body = whole(response.into_body(), REFUSAL).await.unwrap_or_default();
        Err(Error::Refused(Box::new(Problem::read(
            status.as_u16(),
            retry_after,
            &body,
        ))))
    }
}

/// Whose certificates count: the authorities of the system, and these.
fn trusted(authorities: &[CertificateDer<'static>]) -> Result<RootCertStore> {
    let mut trusted = RootCertStore::empty();
    let of_system = rustls_native_certs::load_native_certs();
    for error in &of_system.errors {
        debug!(%error, "certificates of the system that cannot be read");
    }
    trusted.add_parsable_certificates(of_system.certs);
    for authority in authorities {
        let wrong = |error| Error::Invalid(format!("a certificate of an authority cannot be used: {error}"));
        trusted.add(authority.clone()).map_err(wrong)?;
    }
    if trusted.is_empty() {
        let none = "this machine has no certificates of authorities, by which the host could be known";
        return Err(Error::Invalid(none.to_owned()));
    }
    Ok(trusted)
}

fn redirect(status: StatusCode, headers: &HeaderMap) -> String {
    let place = headers
        .get(header::LOCATION)
        .map(|place| String::from_utf8_lossy(place.as_bytes()).into_owned())
        .unwrap_or_else(|| "nowhere".to_owned());
    format!(
        "a redirect ({}) to {place:?}, which is not followed, so that the token goes nowhere else",
        status.as_u16()
    )
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

async fn whole(body: Incoming, limit: usize) -> Result<Bytes> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::TooLarge(limit)),
        Err(source) => Err(Error::Lost { source }),
    }
}

/// The next bytes of a body; `None` at its end.
///
/// Cancel safe.
pub(crate) async fn next_bytes(body: &mut Incoming) -> Result<Option<Bytes>> {
    use hyper::body::Body as _;
    use std::pin::Pin;

    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                // Trailers say nothing.
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
            Some(Err(source)) => {
                return Err(Error::Lost {
                    source: source.into(),
                });
            }
        }
    }
}
