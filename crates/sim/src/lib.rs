//! Scripted peers.
//!
//! | feature | what it adds |
//! |---|---|
//! | `api` (default) | [`api`]: the scripted Messages API, and with it an HTTP server |
//! | `api-record` | passing requests on to a real API and recording them; needs an HTTP client with TLS |
//! | `claude` (default) | [`claude`]: the pinned CLI; needs code for fetching and unpacking |
//! | `players` (default) | [`players`] and [`conform`]: a program with either CLI, and the two compared; needs a reader for TOML |
//!
//! Without these features the crate has the peers in memory, over tokio and serde, with a reader for YAML.

// First, since its macro is known in what follows.
#[macro_use]
mod setters;

#[cfg(feature = "api")]
pub mod api;
pub mod assert;
pub mod cassette;
#[cfg(feature = "claude")]
pub mod claude;
#[cfg(feature = "players")]
pub mod conform;
pub mod directive;
pub mod fault;
mod fields;
mod flaw;
mod inject;
mod matcher;
mod near;
pub mod peer;
#[cfg(feature = "players")]
pub mod players;
mod running;
pub mod script;
mod word_list;

/// The examples of the page on the scripted API, compiled.
#[cfg(all(doctest, feature = "api"))]
#[doc = include_str!("../../../docs/mock-api.md")]
struct MockApiPage;
