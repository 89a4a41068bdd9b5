//! Serves sessions to the official browser client of the Claude Agent SDK.
//!
//! `@anthropic-ai/claude-agent-sdk/browser` connects to a session over HTTP: it reads events as server-sent events and resumes
//! by `Last-Event-ID`, and it sends prompts, control requests and decisions by POST. A [`Front`] is the server side of that wire.
//! It keeps no events: a [`Host`] does, which the program implements on its log.
//!
//! ```no_run
//! use outrigger_host_http::{Front, Host, Scope, Tokens};
//! use tokio::net::TcpListener;
//!
//! # async fn example(host: impl Host) -> Result<(), Box<dyn std::error::Error>> {
//! let tokens = Tokens::default();
//! let (token, _record) = tokens.issue("laptop", [Scope::Read, Scope::Send, Scope::Approve], None)?;
//! println!("Authorization: Bearer {}", token.reveal());
//!
//! let listener = TcpListener::bind("127.0.0.1:7070").await?;
//! Front::new(host, tokens).serve(listener, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is served
//!
//! | route | scope | what |
//! |---|---|---|
//! | `GET /v1/sessions/{id}/events/stream` | read | server-sent events, after the cursor in `Last-Event-ID` or `?after=` |
//! | `GET /v1/sessions/{id}/events` | read | a page of durable events, `?after=` and `?limit=` |
//! | `POST /v1/sessions/{id}/events` | send, or approve for decisions | `{"session_id", "events": [{"payload"}]}` |
//! | `GET /healthz` | none | 204 while the front accepts connections |
//!
//! Errors are problem documents (RFC 9457). Their `type` is stable, see [`Problem`].
//!
//! # What it promises
//!
//! - A stream emits each durable event once, in order, from the cursor on. When the replay has reached what was the head at the
//!   start of the stream, the stream emits `synced`. A reader that is too slow is disconnected; it resumes from its cursor.
//! - A send that was answered with 202 is durable, because the host says so before the answer.
//! - A request without a valid token reaches no session. A token that is revoked or expires ends its streams.
//! - A request for a foreign host name, or from a foreign origin, is rejected.
//!
//! # What it does not do
//!
//! - It does not send tokens over a network in plain text: it listens on loopback addresses, with a certificate ([`Front::tls`]), or
//!   behind a proxy whose host names are stated ([`Front::behind_proxy`]).
//! - It creates and ends no sessions.

mod host;
mod limits;
mod problem;
mod token;

mod front;

pub use front::{Front, ServeError, Tls, TlsError};
pub use host::{
    Accepted, DeliveryStatus, Effect, Ephemeral, Event, Host, HostError, InvalidPayload, Page, Payload,
    PayloadKind, Source, Subscription,
};
pub use limits::Limits;
pub use problem::Problem;
pub use token::{Actor, InvalidToken, Scope, Token, TokenRecord, Tokens};
