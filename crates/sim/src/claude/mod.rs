//! Runs the real `claude` in tests: its version, its download, a sandbox, and a driver for its pipes.
//!
//! * [`pin`]: the version that this workspace is tested with, with the packages' checksums.
//! * [`Fetch`]: has the `npm` client download that package, checks it and keeps the executable in a cache.
//! * [`Sandbox`]: a home, a configuration and a project of its own, and an environment with nothing else in it.
//! * [`ClaudeProcess`]: starts it there and exchanges raw frames with it, for tests below the SDK and for recording.
//!
//! ```no_run
//! # async fn demo() -> Result<(), Box<dyn std::error::Error>> {
//! use outrigger_sim::api::MessagesApi;
//! use outrigger_sim::claude::{Launch, Sandbox, executable};
//!
//! let api = MessagesApi::builder().start().await?;
//! let sandbox = Sandbox::new()?;
//! let mut claude = Launch::new(executable().await?, &sandbox, &api.base_url()).spawn()?;
//! claude.initialize().await?;
//! claude.prompt("%say hello").await?;
//! let result = claude.result().await?;
//! assert_eq!(result.value["result"], "hello");
//! claude.finish().await?;
//! # Ok(())
//! # }
//! ```

mod process;
mod transcript;

pub use outrigger_claude::{
    DUMMY_KEY, Fetch, FetchError, FetchFailure, LEADS_ELSEWHERE, Package, Pin, Platform, Progress, Sandbox,
    TERMS, executable, pin,
};
pub use process::{ClaudeProcess, DriveError, Launch, Seen};
pub use transcript::{Direction, Entry, Transcript};
