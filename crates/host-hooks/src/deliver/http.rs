//! Messages by HTTP.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use jiff::fmt::rfc2822;
use jiff::{Timestamp, Zoned};
use outrigger_host::AddressRule;
use outrigger_host::log::BoxFuture;
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service;
use url::{Host, Url};

use super::{Deliver, DeliveryError, Message};

/// How long the connection may take. The whole attempt has a deadline of its own.
const CONNECT: Duration = Duration::from_secs(10);

/// Sends messages by HTTP/1.1. It follows no redirects, uses no proxy, and calls the addresses that a rule has, whatever a name resolves to.
#[derive(Debug, Clone)]
pub struct HttpDeliver {
    secure: Sender,
    plain: Sender,
    rule: Arc<AddressRule>,
}

type Sender = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// Why there is no client for HTTP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The system has no certificates of authorities, by which receivers could be known.
    #[error("the system's certificates cannot be read; install `ca-certificates`")]
    Roots(#[source] io::Error),
    /// The TLS library does not work as it is built.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

impl HttpDeliver {
    /// Trusts the certificate authorities of the system.
    ///
    /// # Errors
    /// When the system has none.
    pub fn new(rule: AddressRule) -> Result<Self, HttpError> {
        let builder = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
            .map_err(HttpError::Roots)?;
        // The builder is spent by the first connector.
        let plain = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
            .map_err(HttpError::Roots)?;
        let rule = Arc::new(rule);
        Ok(Self {
            secure: sender(
                builder
                    .https_only()
                    .enable_http1()
                    .wrap_connector(connector(&rule, true)),
            ),
            plain: sender(
                plain
                    .https_or_http()
                    .enable_http1()
                    .wrap_connector(connector(&rule, false)),
            ),
            rule,
        })
    }

    /// Trusts these certificate authorities, and no others.
    ///
    /// # Errors
    /// When TLS can't be set up.
    pub fn with_roots(rule: AddressRule, roots: RootCertStore) -> Result<Self, HttpError> {
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(HttpError::Tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let builder = || HttpsConnectorBuilder::new().with_tls_config(config.clone());
        let rule = Arc::new(rule);
        Ok(Self {
            secure: sender(
                builder()
                    .https_only()
                    .enable_http1()
                    .wrap_connector(connector(&rule, true)),
            ),
            plain: sender(
                builder()
                    .https_or_http()
                    .enable_http1()
                    .wrap_connector(connector(&rule, false)),
            ),
            rule,
        })
    }

    async fn send(&self, message: Message) -> Result<(), DeliveryError> {
        let url = target(&message.url, &self.rule).map_err(DeliveryError::new)?;
        let sender = if url.scheme() == "https" {
            &self.secure
        } else {
            &self.plain
        };
        let request = Request::builder()
            .method(Method::POST)
            .uri(url.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("outrigger/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", message.id)
            .header("webhook-timestamp", message.timestamp)
            .header("webhook-signature", message.signature)
            .body(Full::from(message.body))
            .map_err(|error| DeliveryError::new(error.to_string()))?;
        let response = sender
            .request(request)
            .await
            .map_err(|error| DeliveryError::new(chain(&error)))?;
        judge(&response, Timestamp::now())
    }
}

impl Deliver for HttpDeliver {
    fn deliver(&self, message: Message) -> BoxFuture<'_, Result<(), DeliveryError>> {
        Box::pin(self.send(message))
    }
}

fn sender(connector: HttpsConnector<HttpConnector<Resolver>>) -> Sender {
    Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(1)
        .build(connector)
}

fn connector(rule: &Arc<AddressRule>, is_encrypted: bool) -> HttpConnector<Resolver> {
    let mut connector = HttpConnector::new_with_resolver(Resolver {
        rule: Arc::clone(rule),
        is_encrypted,
    });
    connector.enforce_http(false);
    connector.set_connect_timeout(Some(CONNECT));
    connector
}

/// Why an address cannot be one of a webhook, or the address as it is called.
pub(crate) fn target(url: &str, rule: &AddressRule) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|error| format!("the address is not valid: {error}"))?;
    let is_encrypted = match url.scheme() {
        "https" => true,
        "http" if rule.allows_http() => false,
        other => {
            return Err(format!(
                "the address has to begin with `https`, and not with `{other}`"
            ));
        }
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the address must have no user and no password".to_owned());
    }
    let address = match url.host() {
        None => return Err("the address has no host".to_owned()),
        // What it resolves to is looked at when it is called.
        Some(Host::Domain(_)) => return Ok(url),
        Some(Host::Ipv4(address)) => IpAddr::from(address),
        Some(Host::Ipv6(address)) => IpAddr::from(address),
    };
    if !rule.allows(address, is_encrypted) {
        return Err(refused(address));
    }
    Ok(url)
}

fn refused(address: IpAddr) -> String {
    format!("the operator's rule does not allow calls to {address}")
}

/// Resolves names to the addresses that the rule has, so that the connection goes to what was looked at.
#[derive(Debug, Clone)]
struct Resolver {
    rule: Arc<AddressRule>,
    is_encrypted: bool,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { rule, is_encrypted } = self.clone();
        Box::pin(async move {
            // The connector sets the port.
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let refusal = found.first().map(|address| refused(address.ip()));
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| rule.allows(address.ip(), is_encrypted))
                .collect();
            match refusal {
                Some(refusal) if allowed.is_empty() => {
                    Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal))
                }
                _ => Ok(allowed.into_iter()),
            }
        })
    }
}

fn judge<B>(response: &Response<B>, now: Timestamp) -> Result<(), DeliveryError> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| pause(value, now));
    let note = if status.is_redirection() {
        "; redirects are not followed"
    } else {
        ""
    };
    Err(DeliveryError {
        reason: format!("the address answered {status}{note}"),
        retry_after,
        is_gone: status == StatusCode::GONE,
    })
}

/// The value of `Retry-After`: seconds, or a date.
fn pause(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until: Zoned = rfc2822::parse(value.trim()).ok()?;
    Some(Duration::try_from(until.timestamp().duration_since(now)).unwrap_or_default())
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn an_address_is_checked_as_it_would_be_called() {
        let public = AddressRule::public();
        let loopback = AddressRule::public().allow("127.0.0.0/8").unwrap();
        for url in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://169.254.169.254/latest",
            "http://example.com/",
            "ftp://example.com/",
            "https://user:secret@example.com/",
            "file:///etc/passwd",
            "https:///",
            "/hook",
            "",
        ] {
            target(url, &public).unwrap_err();
        }
        target("https://example.com:8443/hook?x=1", &public).unwrap();
        target("http://0x7f.1:8080/", &loopback).unwrap();
        target("https://10.0.0.1/", &loopback).unwrap_err();
    }

    #[test]
    fn an_address_may_say_how_long_it_wants_to_be_left_alone() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        for (value, expected) in [
            ("120", Some(120)),
            ("Sun, 01 Mar 2026 12:01:00 GMT", Some(60)),
            ("Sun, 01 Mar 2026 11:00:00 GMT", Some(0)),
            ("-1", None),
            ("soon", None),
        ] {
            assert_eq!(pause(value, now), expected.map(Duration::from_secs), "{value}");
        }
    }
}
