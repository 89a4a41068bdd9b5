//! A scripted Messages API on loopback, for the real `claude` to talk to.
//!
//! [`MessagesApi`] listens on 127.0.0.1, answers any number of CLI processes at once, and keeps what it was asked.
//! What it answers is decided per request, first match wins:
//!
//! 1. the [`Rule`]s, in the order in which they were added;
//! 2. the replies given in order with [`MessagesApiBuilder::reply`] and [`MessagesApi::push`];
//! 3. the [script](script::ApiScript), if there is one;
//! 4. a [recording](traffic), if there is one, and the API that requests are passed on to, if there is one; then nothing below counts;
//! 5. the [directives](crate::directive) in the prompt, so that one server can serve any conversation;
//! 6. the default reply, the text `ok`, or a refusal if that is [wished](MessagesApiBuilder::refuse_unmatched).
//!
//! The script in force is that of the last user message that has directives, and the number of the model's answers since
//! then says how far it is. A prompt without directives goes on with an unfinished script, which is how the CLI's own
//! "please continue" is met. In text and in the strings of a tool's input, `{{last}}` becomes the newest tool result,
//! `{{plan}}` the file that the CLI wants the plan written to and `{{cwd}}` its working directory; in text, `{{gate:NAME}}` holds the reply there.
//! Directives that cannot be read are answered with a 400 that says why.
//!
//! ```
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! use outrigger_sim::api::{ApiFault, MessagesApi, Reply, When};
//! use std::time::Duration;
//!
//! let api = MessagesApi::builder()
//!     .rule(When::any().from_subagent().reply(Reply::say("report")))
//!     .reply(ApiFault::new(529))
//!     .reply(Reply::new().thinking("let me see").tool("Bash", serde_json::json!({"command": "ls"})))
//!     .reply(Reply::new().text("half ").hold("middle").more_text("whole"))
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
//! Everything that waits is released by events: a [`Gate`] holds a reply open until the test lets it go on, and the
//! waiting helpers wake when a request arrives. Nothing here looks at the wall clock except pauses that a script asks for.

mod answer;
mod connection;
mod conversation;
mod error;
#[cfg(feature = "api-record")]
mod forward;
mod gate;
mod line;
mod log;
mod ndjson;
mod obey;
mod render;
mod reply;
mod request;
mod rule;
pub mod script;
mod server;
pub mod traffic;

pub use error::{StartError, WaitError};
pub use gate::Gate;
pub use line::LogLine;
pub use reply::{ApiFault, Pace, Reply, Usage};
pub use request::{AnsweredBy, ApiRequest, Outcome, Route, ToolResult};
pub use rule::{Rule, When};
pub use server::{MessagesApi, MessagesApiBuilder};

#[cfg(test)]
mod tests;
