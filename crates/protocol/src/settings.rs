//! Settings files of the CLI, and merging a sandbox into settings.
//!
//! The same shape is in `settings.json` of the user and of a project, behind `--settings`, and in what the protocol calls
//! settings. Every key is optional, and what has no field is kept in `extra`, so that a file can be read, changed and
//! written back:
//!
//! ```
//! use outrigger_protocol::RawJson;
//! use outrigger_protocol::settings::Settings;
//!
//! let file = RawJson::from_text(r#"{"model":"opus","fromTheFuture":[1,2]}"#)?;
//! let mut settings: Settings = file.decode()?;
//! settings.model = Some("sonnet".to_owned());
//! assert_eq!(RawJson::encode(&settings)?.get(), r#"{"model":"sonnet","fromTheFuture":[1,2]}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod hooks;
mod merge;
mod parts;
mod permissions;
mod plugins;
mod root;
mod sandbox;

pub use hooks::*;
pub use merge::merge_sandbox;
#[doc(hidden)]
pub use merge::merge_sandbox_json;
pub use parts::*;
pub use permissions::*;
pub use plugins::*;
pub use root::Settings;
pub use sandbox::*;
