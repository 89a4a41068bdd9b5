//! A connection with an editor.
//!
//! The versions of the protocol differ only here and in `wire`: the handlers pass requests of both to the [hub](Hub) in the types of
//! version 1, each with an [`ResponseSender`](crate::response_sender::ResponseSender).

#[macro_use]
mod handlers;
mod pipe;
mod requests;
mod v1;
mod v2;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::{Agent, ConnectTo as _, Lines};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::client::gate::WriteGate;
use crate::config::{Config, Protocol};
use crate::hub::Hub;

/// The time limit for writing answers after the editor has closed its end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves one editor until it goes away or `stop` fires. Then it ends all sessions and their processes, and writes the line that it has
/// begun to its end, as long as the editor reads.
///
/// `reader` and `writer` carry one JSON message per line, as the protocol demands on stdio. Nothing else is written there.
///
/// # Cancel safety
/// Dropping the future ends all sessions; their processes end in the background.
///
/// # Errors
/// When `reader` or `writer` fails. A `writer` that the editor has closed is the end, and no error.
pub async fn serve(
    config: Config,
    reader: impl AsyncRead + Send + 'static,
    writer: impl AsyncWrite + Send + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    serve_pipes(config, Box::pin(reader), Box::pin(writer), stop).await
}

type Reader = Pin<Box<dyn AsyncRead + Send>>;
type Writer = Pin<Box<dyn AsyncWrite + Send>>;
type Served = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// Boxed here, so that the crates that call [`serve`] do not compile the whole agent again.
fn serve_pipes(config: Config, reader: Reader, writer: Writer, stop: CancellationToken) -> Served {
    Box::pin(async move {
        let gate = Arc::new(WriteGate::default());
        let exit_grace = config.exit_grace;
        // Sessions end with the input, not only after the connection has handled the messages before.
        let stop = stop.child_token();
        let _ends_with_this = stop.clone().drop_guard();
        let hub = Hub::new(config, Arc::clone(&gate), stop.clone());
        let handled = hub.handled().clone().drop_guard();
        let pace = Arc::default();
        let output = pipe::LineWriter::new(writer);
        let lines = Lines::new(
            pipe::outgoing(Arc::clone(&output), gate, Arc::clone(&pace), stop.clone()),
            pipe::incoming(reader, pace, stop.clone()),
        );
        let connection = async {
            match hub.config.protocol {
                Protocol::Auto => {
                    let router = Agent.protocol_router();
                    let router = router.with_v1(v1::agent(&hub)).with_v2(v2::agent(&hub));
                    router.connect_to(lines).await
                }
                Protocol::V1 => v1::agent(&hub).connect_to(lines).await,
                Protocol::V2 => v2::agent(&hub).connect_to(lines).await,
            }
        };
        let served = async {
            let stopped = async {
                stop.cancelled().await;
                // The editor may not read any more.
                tokio::time::sleep(LAST_WORDS).await;
            };
            tokio::select! {
                result = connection => result,
                () = stopped => Ok(()),
            }
        };
        let ended = async {
            stop.cancelled().await;
            hub.ended().await;
        };
        let (result, ended) = tokio::join!(
            async {
                let result = served.await;
                stop.cancel();
                drop(handled);
                pipe::LineWriter::finish(&output).await;
                result
            },
            async {
                stop.cancelled().await;
                tokio::time::timeout(exit_grace, ended).await
            }
        );
        if ended.is_err() {
            tracing::warn!("sessions did not end in time; what is left of them is killed");
        }
        result.map_err(|error| io::Error::other(error.to_string()))
    })
}
