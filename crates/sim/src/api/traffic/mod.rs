//! Traffic between the CLI and a Messages API: recorded once, played back for ever.
//!
//! A [`Recorder`] writes what goes through a [`MessagesApi`](super::MessagesApi) that passes requests on to an `Upstream` (cargo
//! feature `api-record`); a [`Replay`] answers from such a file, where there is neither a key nor a network.
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
//! What a file holds of a request is its meaning ([`Asked`]): the model, what the user said, what tools brought. The CLI's system
//! prompt and its descriptions of tools are there as digests only. A request that the recording has no answer for is refused with
//! an HTTP error that names the nearest recorded one, and the first difference to it.

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
