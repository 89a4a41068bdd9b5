//! A client for hosts of Claude Code sessions, such as `outrigger serve`.
//!
//! A host keeps the events of sessions in a log, and serves them over HTTP. A [`HostClient`] creates sessions, sends prompts, reads events
//! from any cursor, and decides about approvals.
//!
//! ```no_run
//! use outrigger_host_client::{HostClient, NewSession, Prompt, StreamItem, Token};
//!
//! # async fn example(token: &str) -> outrigger_host_client::Result<()> {
//! let host = HostClient::builder("http://127.0.0.1:7070").token(Token::new(token)?).build()?;
//! let session = host.create_session(&NewSession::new("/srv/projects/shop")).await?;
//! let sent = host.send_prompt(&session.id, &Prompt::text("Run the tests.")).await?;
//!
//! let mut events = host.stream(&session.id, sent.sequence_num)?;
//! loop {
//!     match events.next().await? {
//!         StreamItem::Event(event) => println!("{} {}", event.sequence_num, event.kind()),
//!         StreamItem::Disconnected { error, retry_in } => eprintln!("{error}; again in {retry_in:?}"),
//!         _ => {}
//!     }
//! }
//! # }
//! ```
//!
//! # What to rely on
//!
//! * **Each durable event once, in order.** A [`SessionStream`] goes on from its cursor when a connection breaks, for as long as it is read. What the
//!   host has removed is told ([`StreamItem::Truncated`]), and a gap is an error.
//! * **A prompt is stored once.** It has a `uuid`. When the answer to a send is lost, the client sends it again, and the host knows it. The
//!   same goes for creations, and for decisions, of which the first counts.
//! * **Nothing is repeated that could happen twice.** An interrupt whose answer is lost is an error, since its repetition could hit the next turn.
//! * **The token goes to the host alone.** Redirects are errors. Without TLS the client talks to loopback addresses only, unless
//!   [`plain_http`](ClientBuilder::plain_http) says otherwise.
//! * **Nothing is lost that this version does not know.** Each document keeps the text that it was read from (`raw`), and unknown names stay.
//! * **Every wait ends.** A request has a deadline, and all its tries together have one ([`ClientBuilder::patience`]). A stream waits for as long as it is
//!   read, and tells each time that its connection broke.

mod address;
mod backoff;
mod client;
mod document;
mod error;
mod exchange;
mod feed;
mod overview;
mod request;
mod sse;
mod stream;
mod transcript;

pub use address::Token;
pub use client::{ClientBuilder, HostClient};
pub use document::{
    Accepted, AddedWebhook, AdoptableSession, Approval, ApprovalKind, ApprovalPage, ApprovalState, Diff,
    Effect, Envelope, EventPage, EventSource, IssuedToken, Schedule, Session, SessionHint, SessionPage,
    SessionState, TokenRecord, Webhook,
};
pub use error::{Error, Problem, Result};
pub use overview::{OverviewItem, OverviewStream};
pub use request::{
    ApprovalFilter, DiffFrom, Fork, NewSchedule, NewSession, NewToken, NewWebhook, NewWorktree, Prompt,
};
pub use stream::{SessionStream, StreamItem};
pub use transcript::Transcript;

/// The examples of the page on hosts that are clients, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/host-clients.md")]
struct HostClientsPage;
