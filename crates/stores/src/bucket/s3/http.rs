//! The HTTP client that the object store's requests go through: small, and with the same TLS as the rest of the workspace.

use std::error::Error;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::header::{HeaderValue, USER_AGENT};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientConfigKey;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use outrigger_sessions::store::Result;
use rustls::ClientConfig;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);

/// How long the server may take from the request to the head of its answer. What follows has the deadline of the whole request.
const ANSWER: Duration = Duration::from_secs(20);

/// How long a connection is kept that nobody uses; servers close theirs after a minute or so.
const IDLE: Duration = Duration::from_secs(20);

/// Settings of other clients. Any value but the default is rejected, not ignored.
const NOT_HERE: [ClientConfigKey; 14] = [
    ClientConfigKey::AllowInvalidCertificates,
    ClientConfigKey::NoSystemCertificates,
    ClientConfigKey::Http1Only,
    ClientConfigKey::Http2KeepAliveInterval,
    ClientConfigKey::Http2KeepAliveTimeout,
    ClientConfigKey::Http2KeepAliveWhileIdle,
    ClientConfigKey::Http2MaxFrameSize,
    ClientConfigKey::Http2Only,
    ClientConfigKey::PoolIdleTimeout,
    ClientConfigKey::PoolMaxIdlePerHost,
    ClientConfigKey::ProxyCaCertificate,
    ClientConfigKey::ProxyExcludes,
    ClientConfigKey::ProxyUrl,
    ClientConfigKey::ReadTimeout,
];

#[derive(Debug)]
pub(super) struct Connector {
    tls: ClientConfig,
}

impl Connector {
    /// Trusts the authorities in this file, or those of the system.
    pub(super) fn new(authorities: Option<&Path>) -> Result<Self> {
        let tls = crate::trusted_certificates::client(crate::trusted_certificates::roots(authorities)?)?;
        Ok(Self { tls })
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let usual = ClientOptions::default();
        let unusual = |key: &&ClientConfigKey| options.get_config_value(key) != usual.get_config_value(key);
        if let Some(key) = NOT_HERE.iter().find(unusual) {
            let why = format!("the client of the session store has no {}", key.as_ref());
            return Err(object_store::Error::NotSupported { source: why.into() });
        }
        let duration = |key, usual: Duration| {
            let set = options.get_config_value(&key);
            set.and_then(|text| duration(&text)).unwrap_or(usual)
        };
        let mut http = hyper_util::client::legacy::connect::HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(duration(ClientConfigKey::ConnectTimeout, CONNECT)));
        http.set_nodelay(true);
        let https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(self.tls.clone());
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let https = if allow_http.as_deref() == Some("true") {
            https.https_or_http()
        } else {
            https.https_only()
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(https.enable_http1().wrap_connector(http));
        let agent = options.get_config_value(&ClientConfigKey::UserAgent);
        let agent =
            agent.unwrap_or_else(|| concat!("outrigger-stores/", env!("CARGO_PKG_VERSION")).to_owned());
        let agent = HeaderValue::from_str(&agent)
            .map_err(|error| object_store::Error::NotSupported { source: error.into() })?;
        Ok(HttpClient::new(Service {
            client,
            agent,
            answer: duration(ClientConfigKey::Timeout, ANSWER).min(ANSWER),
        }))
    }
}

/// A duration as object_store shows it: `1m 30s`.
fn duration(text: &str) -> Option<Duration> {
    let parts = text.split_whitespace().map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = part[..end].parse().ok()?;
        match &part[end..] {
            "h" => Some(Duration::from_secs(number * 3600)),
            "m" => Some(Duration::from_secs(number * 60)),
            "s" => Some(Duration::from_secs(number)),
            "ms" => Some(Duration::from_millis(number)),
            _ => None,
        }
    });
    parts.sum()
}

#[derive(Debug)]
struct Service {
    client: Client<HttpsConnector<hyper_util::client::legacy::connect::HttpConnector>, HttpRequestBody>,
    agent: HeaderValue,
    /// How long the head of an answer may take.
    answer: Duration,
}

impl Service {
    async fn ask(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let headers = request.headers_mut();
        headers.entry(USER_AGENT).or_insert_with(|| self.agent.clone());
        let answer = tokio::time::timeout(self.answer, self.client.request(request)).await;
        let answer = answer.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
        let answer = answer.map_err(|error| HttpError::new(kind(&error), error))?;
        Ok(answer.map(|body| {
            HttpResponseBody::new(body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error)))
        }))
    }
}

impl HttpService for Service {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(self.ask(request))
    }
}

/// Whether a request may be repeated. One that may have been carried out may be, too: writes name the version that they replace,
/// and find out whether they replaced it.
fn kind(error: &legacy::Error) -> HttpErrorKind {
    if error.is_connect() {
        return HttpErrorKind::Connect;
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && (error.is_closed() || error.is_incomplete_message() || error.is_body_write_aborted())
        {
            return HttpErrorKind::Request;
        }
        if error.is::<std::io::Error>() {
            return HttpErrorKind::Interrupted;
        }
        cause = error.source();
    }
    HttpErrorKind::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_clients_have_is_refused() {
        let connector = Connector::new(None).unwrap();
        connector.connect(&ClientOptions::default()).unwrap();
        let proxy = ClientOptions::default().with_proxy_url("http://proxy");
        let error = connector.connect(&proxy).unwrap_err();
        assert!(error.to_string().contains("proxy_url"), "{error}");
        let insecure =
            ClientOptions::default().with_config(ClientConfigKey::AllowInvalidCertificates, "true");
        assert!(connector.connect(&insecure).is_err());
    }

    #[test]
    fn durations_are_read_as_they_are_shown() {
        let shown = |set: Duration| {
            let options = ClientOptions::default().with_connect_timeout(set);
            options
                .get_config_value(&ClientConfigKey::ConnectTimeout)
                .unwrap()
        };
        for seconds in [1, 5, 60, 90, 3661] {
            let set = Duration::from_secs(seconds) + Duration::from_millis(5);
            assert_eq!(duration(&shown(set)), Some(set), "{}", shown(set));
        }
    }
}
