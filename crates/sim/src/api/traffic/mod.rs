//! Traffic between the CLI and a Messages API: recorded once, replayed for ever.
//!
//! A [`Recorder`] writes the traffic of a [`MessagesApi`](super::MessagesApi) that passes requests on to an `Upstream` (cargo
//! feature `api-record`); a [`Replay`] replies from such a file, without a key or a network.
//!
//! ```
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! use outrigger_sim::api::MessagesApi;
//! use outrigger_sim::api::traffic::Replay;
//!
//! let api = MessagesApi::builder().replay(Replay::read("traffic.ndjson")?).start().await?;
//! // … run the CLI against api.base_url() …
//! for request in api.unmatched() {
//!     println!("{}: {:?}", request.number, request.answered_by.unmatched());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! For a request the file has its content ([`Asked`]): the model, the user's text, the results of tools. Of the CLI's system
//! prompt and its descriptions of tools it has only digests. A request that was not recorded is rejected with
//! an HTTP error that names the nearest recorded one, and the first difference from it.

mod asked;
#[cfg(feature = "api-record")]
mod recorder;
mod recording;
mod redact;
mod replay;
#[cfg(feature = "api-record")]
mod upstream;

pub use asked::{Asked, Kept, KeptResult};
#[cfg(feature = "api-record")]
pub use recorder::Recorder;
pub use recording::{Answer, Ended, Exchange, Recording, RecordingError, StreamEvent};
pub use redact::Redaction;
pub use replay::Replay;
#[cfg(feature = "api-record")]
pub use upstream::{Upstream, UpstreamError};

pub(super) use replay::Found;
#[cfg(feature = "api-record")]
pub(super) use {
    recorder::Tape,
    upstream::{Unanswered, passed_on},
};

#[cfg(feature = "api-record")]
#[cfg(test)]
mod tests;
