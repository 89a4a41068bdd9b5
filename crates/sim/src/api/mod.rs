//! A scripted Messages API on loopback, for the real `claude`.
//!
//! [`MessagesApi`] listens on 127.0.0.1, serves any number of CLI processes at once, and keeps their requests.
//! The reply to a request comes from the first of these that matches:
//!
//! 1. the [rules](MessagesApiBuilder::rule) of a test, in the order in which they were added;
//! 2. the replies given in order with [`MessagesApiBuilder::reply`] and [`MessagesApi::push`];
//! 3. the [script](crate::script), if there is one;
//! 4. the upstream API, if there is one, so that nothing below counts; an `ApiRecorder` makes a script of what it answers (cargo feature
//!    `api-record`);
//! 5. the [directives](crate::directive) in the prompt, so that one server can serve any conversation;
//! 6. the default reply: the text `ok`, or an error with [`refuse_unmatched`](MessagesApiBuilder::refuse_unmatched).
//!
//! The current script is that of the last user message that has directives, and the number of the model's answers since
//! then is the position in it. A prompt without directives continues an unfinished script, such as the CLI's own
//! "please continue". In text, `{{gate:NAME}}` holds the reply there. Directives that cannot be parsed are answered with a 400 that has the reason.
//!
//! ```
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! use outrigger_sim::api::{ApiError, MessagesApi, Reply};
//! use outrigger_sim::script::Step;
//! use std::time::Duration;
//!
//! let api = MessagesApi::builder()
//!     .rule(|request| request.agent_id().map(|_| Reply::say("report")))
//!     .reply(ApiError::new(529))
//!     .reply(Reply::think("let me see").and_call("Bash", serde_json::json!({"command": "ls"})))
//!     .reply(Reply::say("half ").hold("middle").step(Step::More("whole".into())))
//!     .start()
//!     .await?;
//! println!("ANTHROPIC_BASE_URL={}", api.base_url());
//! // … start the CLI and send a prompt …
//! api.gate("middle").reached(1, Duration::from_secs(30)).await?;
//! api.gate("middle").open();
//! for request in api.requests() {
//!     println!("{:?} {} {:?}", request.at, request.path, request.last_user_text());
//! }
//! api.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! Waits end by events: a [`Gate`] holds a reply until the test opens it, and the
//! waiting helpers wake when a request arrives. Only pauses in a script depend on the clock.

mod answer;
mod connection;
mod conversation;
#[cfg(feature = "api-record")]
mod forward;
mod heard;
mod line;
mod log;
mod message;
mod ndjson;
mod obey;
mod play;
#[cfg(feature = "api-record")]
mod record;
mod render;
mod request;
mod server;
#[cfg(feature = "api-record")]
mod upstream;
mod verdict;

pub use line::{KeptResult, KeptText, LogLine, RequestContent};
#[cfg(feature = "api-record")]
pub use record::ApiRecorder;
pub use request::{AnsweredBy, ApiRequest, RequestOutcome, Route, ToolResult};
pub use server::{MessagesApi, MessagesApiBuilder, StartError};
#[cfg(feature = "api-record")]
pub use upstream::{Upstream, UpstreamError};

pub use crate::script::{ApiError, Gate, Reply, WaitError};

#[cfg(test)]
mod played_tests;
#[cfg(test)]
mod tests;
