//! Scripts: what the model says to which prompts, and expectations of the client.
//!
//! A script is a readable file, or is built in Rust; both can express the same. Two players play it: the simulated
//! [`Agent`](crate::peer::Agent), and the scripted Messages API behind the real CLI. It is the model, and it judges the client: prompts without a
//! rule, replies that do not match an `assert`, and what is missing in the end are [flaws](Flaw). What only one player can
//! play, the other rejects before it starts, with the place and the way on: [`Script::check`].
//!
//! ```
//! use outrigger_sim::script::{Script, Assert, Permitted, Rule};
//! use serde_json::json;
//!
//! let built = Script::new().rule(
//!     Rule::containing("tidy up")
//!         .say("I will remove the old log.")
//!         .call("Bash", json!({"command": "rm old.log", "description": "Remove the log"}))
//!         .assert(Assert::permission(Permitted::Allowed))
//!         .say("Done."),
//! );
//! let read = Script::from_yaml(
//!     r#"
//! prompts:
//!   - prompt: {contains: tidy up}
//!     steps:
//!       - say: I will remove the old log.
//!       - call: {tool: Bash, input: {command: rm old.log, description: Remove the log}}
//!       - assert: {permission: allowed}
//!       - say: Done.
//! "#,
//! )?;
//! assert_eq!(built, read);
//! # Ok::<(), outrigger_sim::script::ScriptError>(())
//! ```

mod assertion;
mod build;
mod check;
pub(crate) mod course;
pub(crate) mod error;
mod expect;
pub(crate) mod fill;
mod gates;
pub(crate) mod judge;
mod misfit;
pub(crate) mod place;
mod progress;
pub(crate) mod response;
mod rule;
mod schema;
pub(crate) mod short;
mod slips;
mod step;
mod text;
pub(crate) mod yaml_value;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::inject::Fault;

pub use assertion::{Assert, Permitted};
pub use check::ScriptPlayer;
pub use error::ScriptError;
pub use expect::{Expect, ToolCalled};
pub use gates::{Gate, GateFiles, Gates, WaitError};
pub use place::{Placed, Position};
pub use progress::Progress;
pub use response::Reply;
pub use rule::{Asker, Rule, Times};
pub use schema::json_schema;
pub use step::{
    ApiError, Ask, Background, Bytes, Call, Choice, ChoiceQuestion, Compact, Elicitation, ExitStep,
    Permission, RateLimit, Raw, ResponsePace, Run, Step, Subagent, Usage, Wait,
};
pub use text::{Pattern, TextMatch};

pub use crate::flaw::{Flaw, Flaws};

use short::Span;

/// A script for sessions of the simulated agent, or of the real CLI with the scripted API.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Script {
    /// The model, or an alias for one, unless the command line names another.
    #[serde(deserialize_with = "short::given")]
    pub model: Option<String>,
    /// The permission mode at the beginning, unless the command line names another.
    #[serde(deserialize_with = "short::given")]
    pub permission_mode: Option<String>,
    /// The built-in tools that there are, unless the command line names others; those of the CLI unless given.
    #[serde(deserialize_with = "short::given")]
    pub tools: Option<Vec<String>>,
    /// MCP servers inside the client, besides those that it names itself.
    pub mcp_servers: Vec<String>,
    /// What ids are made from. Unless given 0 in memory, and something else each time for the executable.
    #[serde(deserialize_with = "short::given")]
    pub seed: Option<u64>,
    /// How times are made.
    pub clock: Clock,
    /// How slowly everything comes; at once unless given.
    pub pacing: Pacing,
    /// Whether `Bash`, `Read`, `Write` and `Edit` really run and touch files, in the working directory. Unless given they do in a run
    /// of `outrigger-sim play`, and with the simulated CLI alone they do not.
    #[serde(deserialize_with = "short::given")]
    pub real_tools: Option<bool>,
    /// Files that exist at the beginning, by their paths relative to the working directory. Where tools really run they are
    /// written, unless they are there already.
    pub files: BTreeMap<String, String>,
    /// How long a `wait` for the client lasts before it is a failure; 30 seconds unless given.
    #[serde(deserialize_with = "short::duration")]
    #[schemars(with = "Span")]
    pub patience: Duration,
    /// The faults of the pipes and of the process.
    pub faults: Vec<Fault>,
    /// The reply to a prompt without a rule.
    pub unmatched: Unmatched,
    /// How many requests to the model may come without a new prompt of the client; 100 unless given. One more is refused.
    #[serde(deserialize_with = "short::requests")]
    #[schemars(range(min = 1))]
    pub requests_per_prompt: u32,
    /// The models that there are, for requests to the API that list them.
    pub models: Vec<String>,
    /// What requests to the API that count tokens are answered; a quarter of their length unless given.
    #[serde(deserialize_with = "short::given")]
    pub input_tokens: Option<u64>,
    /// Which prompts are answered how.
    pub prompts: Vec<Placed<Rule>>,
    /// What must have happened in the end.
    pub expect: Expect,
    /// The file that it came from, for messages.
    #[serde(skip)]
    source: Source,
}

/// How times are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Clock {
    /// Times are measured.
    #[default]
    Real,
    /// Times are counted, so that they repeat: each line takes a millisecond, and waits of the model end at once and
    /// are added; see [`Builder::virtual_clock`](crate::peer::agent::Builder::virtual_clock).
    Virtual,
}

/// How slowly things come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Pacing {
    /// The time before each turn, and before each response of the model.
    #[serde(deserialize_with = "short::duration")]
    #[schemars(with = "Span")]
    pub turn: Duration,
    /// The time before each piece of a response.
    #[serde(deserialize_with = "short::duration")]
    #[schemars(with = "Span")]
    pub every: Duration,
    /// Characters in such a piece, at least one; 8 unless given.
    #[serde(deserialize_with = "short::chunk_if_any")]
    #[schemars(range(min = 1))]
    pub chunk: Option<usize>,
}

/// The reply to a prompt without a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unmatched {
    /// The prompt is a failure of the client; the turn ends with an API error that has the reason.
    #[default]
    Error,
    /// The prompt is answered `ok`.
    Ok,
}

/// The source of a script. Does not take part in comparisons.
#[derive(Debug, Clone, Default)]
struct Source(Option<Arc<str>>);

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Default for Script {
    fn default() -> Self {
        Self {
            model: None,
            permission_mode: None,
            tools: None,
            mcp_servers: Vec::new(),
            seed: None,
            clock: Clock::default(),
            pacing: Pacing::default(),
            real_tools: None,
            files: BTreeMap::new(),
            patience: Duration::from_secs(30),
            faults: Vec::new(),
            unmatched: Unmatched::default(),
            requests_per_prompt: 100,
            models: Vec::new(),
            input_tokens: None,
            prompts: Vec::new(),
            expect: Expect::default(),
            source: Source::default(),
        }
    }
}

impl Script {
    /// A script without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a script from YAML. JSON is YAML too.
    ///
    /// # Errors
    ///
    /// When the text is not YAML, or is not a script, with the line and the column.
    pub fn from_yaml(text: &str) -> Result<Self, ScriptError> {
        error::read(text, None)
    }

    /// Reads a script from a YAML file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a script; see [`from_yaml`](Self::from_yaml).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ScriptError::io(&name, &error))?;
        error::read(&text, Some(&name))
    }

    /// Writes its [`files`](Self::files) below this directory, unless they are there already.
    ///
    /// # Errors
    ///
    /// When one cannot be written, or a link on the way to it leads out of the directory.
    pub fn write_files(&self, directory: &Path) -> io::Result<()> {
        for (name, content) in &self.files {
            let path = directory.join(name);
            if path.symlink_metadata().is_ok() {
                continue;
            }
            if let Some(parent) = path.parent() {
                let there = parent.ancestors().find(|above| above.symlink_metadata().is_ok());
                let there = there.unwrap_or(directory).canonicalize()?;
                if !there.starts_with(directory.canonicalize()?) {
                    let what = format!("{name}: a link on the way leads to {}", there.display());
                    return Err(io::Error::other(what));
                }
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, content)?;
        }
        Ok(())
    }

    /// The name of the script.
    pub(crate) fn name(&self) -> &str {
        self.source.0.as_deref().unwrap_or("script")
    }

    /// The name of this place: `script.yaml:12:7`, `12:7`, or a path through the script.
    pub(crate) fn place(&self, at: Option<Position>, path: &str) -> String {
        match at {
            Some(at) => format!("{}:{at}", self.name()),
            None => path.to_owned(),
        }
    }
}

/// The reference of the format.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/scripts.md")]
mod reference {}

#[cfg(test)]
mod tests;
