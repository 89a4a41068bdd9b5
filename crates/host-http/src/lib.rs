//! Serves the sessions of a host over HTTP: to people, to programs, and to the official browser client of the Claude Agent SDK.
//!
//! `@anthropic-ai/claude-agent-sdk/browser` connects to a session over HTTP: it reads events as server-sent events and resumes
//! by `Last-Event-ID`, and it sends prompts, control requests and decisions by POST. A [`Front`] is the server side of that wire, with a REST
//! API beside it. What is durable is in the log of the [`SessionHost`](outrigger_host::SessionHost).
//!
//! ```no_run
//! use outrigger_host::SessionHost;
//! use outrigger_host_http::{Front, Scope, Tokens};
//! use tokio::net::TcpListener;
//!
//! # async fn example(host: SessionHost) -> Result<(), Box<dyn std::error::Error>> {
//! let tokens = Tokens::open(host.event_log()).await?;
//! let (token, _record) = tokens.issue("laptop", [Scope::Read, Scope::Send, Scope::Approve], None).await?;
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
//! [`openapi`] is the document of all routes, which a front serves as `/openapi.json`.
//! Errors are problem documents (RFC 9457). Their `type` is stable, see [`Problem`].
//!
//! # What it promises
//!
//! - A stream emits each durable event once, in order, from the cursor on. When the replay has reached what was the head at the
//!   start of the stream, the stream emits `synced`. A reader that is slow reads later from the log; one that takes nothing for
//!   too long is disconnected, and resumes from its cursor.
//! - A send that was answered with 202 is durable, because the host says so before the answer.
//! - A request without a valid token reaches no session. A token that is revoked or expires ends its streams, and the
//!   transcripts that are read with it.
//! - A request for a foreign host name, or from a foreign origin, is rejected.
//!
//! # What it does not do
//!
//! - It does not send tokens over a network in plain text: it listens on loopback addresses, with a certificate ([`Front::tls`]), or
//!   behind a proxy whose host names are stated ([`Front::behind_proxy`]).

mod api;
mod extract;
mod front;
mod front_state;
mod limits;
mod peer;
mod problem;
mod rate;
mod token;

/// The laws of bodies and cursors, for the fuzz target of the workspace. No part of the API.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use api::laws;
pub use api::openapi;
pub use front::{Front, ServeError, Tls, TlsError};
pub use limits::Limits;
pub use problem::Problem;
pub use token::{InvalidToken, Scope, Token, TokenRecord, Tokens};

/// The examples of the page on hosts, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/host.md")]
struct HostPage;

/// The examples of the page on policy files, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/host-policy.md")]
struct PolicyPage;
