//! The server: routes, and who gets to them.

mod audit;
mod guard;
mod patient_io;
mod tls;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use outrigger_host::{AddressRule, ServerSettings, SessionHost};
use outrigger_host_hooks::{HttpDeliver, HttpError, Schedules, WebhookLimits, Webhooks};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::{debug, warn};

use self::patient_io::PatientIo;
pub use self::tls::{Tls, TlsError};
use crate::api;
use crate::front_state::FrontState;
use crate::limits::{Limits, OpenStreams};
use crate::peer::{Connections, Peer};
use crate::rate::Rates;
use crate::token::Tokens;

/// Serves the sessions of a host over HTTP.
#[derive(Debug)]
#[must_use = "it serves nothing before `serve`"]
pub struct Front {
    host: SessionHost,
    tokens: Tokens,
    limits: Limits,
    names: BTreeSet<String>,
    origins: BTreeSet<String>,
    proxied: bool,
    tls: Option<Tls>,
    callable: AddressRule,
}

/// Why a front does not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is not of the loopback, there is no TLS, and no proxy is stated: tokens would go over the network in plain text.
    #[error(
        "{0} is not a loopback address, and the front has no TLS; listen on 127.0.0.1, give it a certificate, or state the host \
         names of the proxy in front of it that has TLS"
    )]
    Exposed(std::net::SocketAddr),
    /// The TLS library does not work as it is built.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The listener does not say where it listens.
    #[error("cannot tell where the listener listens")]
    Listener(#[source] io::Error),
}

impl Front {
    /// A front of `host` for clients that have one of `tokens`, with the default [`Limits`]. It serves `localhost`, `127.0.0.1`
    /// and `[::1]`, and allows the origins of these names.
    pub fn new(host: SessionHost, tokens: Tokens) -> Self {
        Self {
            host,
            tokens,
            limits: Limits::default(),
            names: ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into(),
            origins: BTreeSet::new(),
            proxied: false,
            tls: None,
            callable: AddressRule::public(),
        }
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Allows web pages of these origins, such as `https://app.example.com`, to be clients. Without it, pages are clients only
    /// if they were served under the host name that they ask.
    pub fn origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.origins.extend(
            origins
                .into_iter()
                .map(|origin| origin.into().to_ascii_lowercase()),
        );
        self
    }

    /// States that a proxy with TLS is in front, which passes on the host names that it serves. The front then listens on any
    /// address, and serves these names, each without a port.
    pub fn behind_proxy(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names
            .extend(names.into_iter().map(|name| name.into().to_ascii_lowercase()));
        self.proxied = true;
        self
    }

    /// Serves TLS and nothing else, on any address, under these host names, each without a port, beside those of the loopback.
    pub fn tls(mut self, tls: Tls, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names
            .extend(names.into_iter().map(|name| name.into().to_ascii_lowercase()));
        self.tls = Some(tls);
        self
    }

    /// Takes over what a policy file says of the server: names, origins, and the certificate. Where the front listens is up to the caller.
    ///
    /// # Errors
    /// When the files of the certificate can't be used.
    pub fn settings(self, settings: &ServerSettings) -> Result<Self, TlsError> {
        let mut front = self.origins(&settings.origins);
        if !settings.proxy_names.is_empty() {
            front = front.behind_proxy(&settings.proxy_names);
        }
        if let Some(files) = &settings.tls {
            let tls = Tls::from_pem_files(&files.certificate, &files.key)?;
            front = front.tls(tls, &files.names);
        }
        Ok(front)
    }

    /// Says which addresses webhooks may have: public ones over `https` without this.
    pub fn webhooks(mut self, callable: AddressRule) -> Self {
        self.callable = callable;
        self
    }

    /// Serves until `shutdown` is ready. Then it accepts no more connections, ends the streams, and returns when the requests
    /// that were running have been answered. What takes longer than a body may take to arrive, and a client to read
    /// ([`Limits::body_patience`], [`Limits::write_patience`]), is cut off: a request may wait for a process that starts only
    /// when another session gives its place. [`SessionHost::shutdown`] beside it ends such waits at once.
    ///
    /// Meanwhile it delivers to the webhooks of the host, and runs its schedules. Of two fronts for one host, each would deliver
    /// every event, so that receivers get it twice.
    ///
    /// # Errors
    /// Before it accepts anything: when the listener is open to the network, and there is neither TLS nor a stated proxy.
    ///
    /// # Cancel safety
    /// Dropping the future closes the listener and all connections at once. What the host accepted stays durable, though its
    /// client may not have been told; the client repeats it, and the host knows repetitions.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let address = listener.local_addr().map_err(ServeError::Listener)?;
        if !address.ip().is_loopback() && !self.proxied && self.tls.is_none() {
            return Err(ServeError::Exposed(address));
        }
        let acceptor = self.tls.as_ref().map(Tls::acceptor).transpose();
        let acceptor = acceptor.map_err(ServeError::Tls)?;
        let follow = async {
            match &self.tls {
                Some(tls) => tls.follow().await,
                None => std::future::pending().await,
            }
        };
        let mut follow = std::pin::pin!(follow);
        let webhooks = Webhooks::new(&self.host, self.callable.clone(), WebhookLimits::default());
        let schedules = Schedules::new(&self.host);
        // They end with this future, wherever it is dropped.
        let mut hooks = JoinSet::new();
        let deliver = Arc::new(deliver(self.callable).map_err(ServeError::Tls)?);
        let (sending, ticking) = (webhooks.clone(), schedules.clone());
        hooks.spawn(async move { sending.run(deliver).await });
        hooks.spawn(async move { ticking.run().await });
        let (close, closing) = watch::channel(false);
        let limits = self.limits.clone();
        let shared = Arc::new(FrontState {
            host: self.host,
            tokens: self.tokens,
            limits: self.limits,
            names: self.names,
            origins: self.origins,
            streams: OpenStreams::default(),
            proxied: self.proxied,
            rates: Rates::new(usize::MAX),
            strangers: Rates::new(STRANGERS),
            webhooks,
            schedules,
            closing: closing.clone(),
        });
        let service = TowerToHyperService::new(router(shared));
        let slots = Arc::new(Semaphore::new(limits.connections));
        let addresses = Connections::default();
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            while connections.try_join_next().is_some() {}
            let accept = async {
                // The semaphore is never closed, so that there always is a slot in the end.
                let slot = Arc::clone(&slots).acquire_owned().await;
                (slot, listener.accept().await)
            };
            let (slot, accepted) = tokio::select! {
                () = &mut shutdown => break,
                () = &mut follow => continue,
                next = accept => next,
            };
            let (stream, peer) = match accepted {
                Ok((stream, address)) => (stream, Peer::from(address.ip())),
                Err(error) => {
                    // Most often there are no more file descriptors; connections that end give some back.
                    warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // A proxy has the connections of all clients.
            let most = match self.proxied {
                true => usize::MAX,
                false => limits.connections_per_address,
            };
            let Some(connected) = addresses.enter(peer, most) else {
                debug!("an address has too many connections");
                continue;
            };
            let io = PatientIo::new(stream, limits.write_patience);
            let (service, patience) = (service.clone(), limits.head_patience);
            let (acceptor, mut closing) = (acceptor.clone(), closing.clone());
            connections.spawn(async move {
                let _slot = (slot, connected);
                let Some(acceptor) = acceptor else {
                    return converse(io, peer, service, patience, closing).await;
                };
                let handshake = tokio::time::timeout(patience, acceptor.accept(io));
                let shaken = tokio::select! {
                    shaken = handshake => shaken,
                    _ = closing.changed() => return,
                };
                match shaken {
                    Ok(Ok(io)) => converse(io, peer, service, patience, closing).await,
                    Ok(Err(error)) => debug!(%error, "a TLS handshake failed"),
                    Err(_) => debug!("a TLS handshake took too long"),
                }
            });
        }
        drop(listener);
        close.send_replace(true);
        let patience = limits.body_patience.max(limits.write_patience);
        let answered = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, answered).await.is_err() {
            debug!(left = connections.len(), "connections are cut off");
            connections.shutdown().await;
        }
        Ok(())
    }
}

/// Sends to the webhooks. A machine without certificates of authorities can serve all the same, and its webhooks say why they fail.
fn deliver(callable: AddressRule) -> Result<HttpDeliver, rustls::Error> {
    let error = match HttpDeliver::new(callable.clone()) {
        Ok(deliver) => return Ok(deliver),
        Err(error) => error,
    };
    warn!(%error, "webhooks with `https` cannot be sent");
    match HttpDeliver::with_roots(callable, rustls::RootCertStore::empty()) {
        Ok(deliver) => Ok(deliver),
        Err(HttpError::Tls(error)) => Err(error),
        Err(error) => Err(rustls::Error::General(error.to_string())),
    }
}

/// Serves a connection until it ends.
async fn converse(
    io: impl AsyncRead + AsyncWrite + Unpin,
    peer: Peer,
    service: TowerToHyperService<Router>,
    patience: Duration,
    mut closing: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(BUFFER)
        .serve_connection(
            TokioIo::new(io),
            service_fn(move |mut request: hyper::Request<Incoming>| {
                request.extensions_mut().insert(peer);
                service.call(request)
            }),
        );
    let mut connection = std::pin::pin!(connection);
    // The sender sends once, when the front shuts down.
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        _ = closing.changed() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended with an error");
    }
}

/// What a connection reads before it is handled, in bytes: also the largest head.
const BUFFER: usize = 64 << 10;

/// Addresses whose requests without a token are counted apart. Further ones count as one.
const STRANGERS: usize = 4096;

/// How long the front waits after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

fn router(shared: Arc<FrontState>) -> Router {
    api::router(&shared)
        .layer(from_fn_with_state(Arc::clone(&shared), guard::guard))
        .layer(from_fn_with_state(Arc::clone(&shared), guard::limit))
        .layer(from_fn(audit::audit))
        .layer(from_fn(guard::label))
        .with_state(shared)
}
