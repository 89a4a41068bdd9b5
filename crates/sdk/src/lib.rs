//! Drive the Claude Code CLI from Rust: start it, talk to it in turns, decide what its tools may do, and control it while it runs.
//!
//! ```no_run
//! use outrigger::{Agent, BlockKind, Event, Policy};
//!
//! # async fn example() -> outrigger::Result<()> {
//! let session = Agent::builder().model("sonnet").cwd(".").permissions(Policy::read_only()).start().await?;
//! let mut turn = session.prompt("Why does the build fail?").await?;
//! while let Some(event) = turn.next().await {
//!     match event? {
//!         Event::Text(text) => print!("{text}"),
//!         Event::ContentBlockStop { kind: BlockKind::Text, .. } => println!(),
//!         _ => {}
//!     }
//! }
//! println!("${:.4}", turn.answer().await?.cost());
//! session.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! For one question and one answer there are [`Options::query_text`], [`Options::query`] (a stream) and
//! [`Options::query_as`] (a value of your own type, as [`Options::output_as`] has the turns of a session give).
//!
//! # Five nouns
//!
//! * [`Options`], from [`Agent::builder`]: what to start and how. Checked before anything is started.
//! * [`Session`]: a running CLI. A cheap handle whose methods work at any time and from any task.
//! * [`Turn`]: what the CLI does for one prompt. A stream of [`Event`]s, an [`Answer`], and an [`Outcome`].
//! * [`Outcome`]: how a turn ended, as one [`Verdict`] with the [`Cause`] of a failure, and the cost. A failed turn has an outcome,
//!   too; only a turn that succeeded has an [`Answer`].
//! * [`Frame`](protocol::Frame): one line of the CLI as it came. All of the above is made of frames; [`Session::frames`] is their
//!   stream.
//!
//! # What to rely on
//!
//! * **Your turn is yours.** A prompt is stamped with an id, and its turn resolves by that id. Results of background work, of
//!   schedules, or of an interrupted turn go to [`Session::ambient`] and resolve no other future. Each
//!   [`Session::prompt`] gets a turn of its own; [`queue`](Session::queue), [`steer`](Session::steer) and
//!   [`prompt_now`](Session::prompt_now) send the prompt to the CLI's own queue, which may merge or fold it.
//! * **The end of a turn is not the end of the run.** Background agents go on and report in ambient turns.
//!   [`Session::wait_run_end`] waits for them, and [`query`](Options::query) and [`query_text`](Options::query_text) do so by
//!   themselves. [`query_as`](Options::query_as) ends with its turn.
//! * **Nothing is lost.** Unknown types, subtypes, values, blocks and fields arrive with their bytes; a frame that does not decode
//!   is an [`Event::Undecodable`] and does not affect others; [`Session::stats`] counts both.
//! * **Nothing fails open.** If a callback panics, fails or is late, or there is none, the SDK rejects the request in the way of
//!   its kind, exactly once, and never after the CLI withdrew it.
//! * **Nothing hangs unnoticed.** When the process dies, all that waits gets the same error at once, with exit status, stderr,
//!   last frames and a [`Cause`] with advice. Start, control requests and interrupts have deadlines; a turn has none,
//!   since it may take hours, but a model that does not answer ends it ([`Options::first_token_deadline`]).
//! * **Nothing is orphaned.** The CLI ends with its session, and does not outlive this program, even if that is killed
//!   ([`Local`]). [`Session::revive`] starts a new process for a session whose process died.
//! * **A slow reader affects no other.** The CLI's pipe is always read; frames for a slow reader wait in memory up to
//!   [`Options::buffer_bytes`], and then on disk ([`SlowReader`]).
//! * **Dropping is safe.** Every future may be dropped at any point; *Cancel safety* in its docs says what happens then. Dropping
//!   the future of a request cancels it at the CLI. Dropping the last handle ends the process and its whole process group.
//!
//! # Careful defaults
//!
//! A session only sees what the options allow: the environment passes an allow-list ([`env`](mod@env)), settings files are read
//! only with another [`Isolation`](options::Isolation), and the account that pays is the one that
//! `claude` itself would use, or one that you choose ([`Auth`](options::Auth)). A start without an account fails with
//! [`Cause::NotLoggedIn`], and so does one that would be paid by another account than the chosen one.
//!
//! # Requests of the CLI
//!
//! Permission requests ([`permissions`]), questions of the model and plans, hooks ([`hooks`]), calls of tools in this program
//! ([`mcp`]), elicitations of MCP servers, dialogs, fresh tokens: each has a typed callback on [`Options`]. [`Callbacks`] is for
//! programs that prefer one object for all of these but hooks and tools. The SDK rejects requests without a callback, or whose callback fails. A
//! callback may call its session, and a person may answer hours later ([`Session::pending`]).
//!
//! # Stored sessions
//!
//! [`Options::session_store`] keeps conversations in a session store, from which any machine can resume them; with
//! [`Options::lease`] only one process drives a session; [`Session::history`] replays the conversation so far. [`sessions`] reads
//! and edits stored sessions without a process. [`Options::initialize_field`] and [`Session::raw_request`] reach what has no
//! method.
//!
//! # Cargo features
//!
//! None is on by default.
//!
//! * `tools`: tools that are functions of this program, and MCP servers written with the crate `rmcp`, in [`mcp`].
//! * `testing`: a simulated CLI, cassettes and faults for the tests of programs.
//! * `testing-real`: the same with the real CLI, of a pinned version that npm fetches once, behind a scripted API on loopback.
//! * `search`: the search in all stored sessions.
//! * `serde`: events, outcomes, usage and errors as JSON, and back.

// On docs.rs, what needs a feature says so.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod advice;
pub mod discover;
pub mod env;
pub mod hooks;
pub mod mcp;
pub mod options;
pub mod permissions;
pub mod settings;
#[cfg(feature = "testing")]
pub mod testing;

mod account;
mod answer;
mod assemble;
mod callback_kind;
mod callbacks;
mod cause;
mod child;
mod claim;
mod conn;
mod control;
mod deadline;
mod dialog;
mod elicitation;
mod end;
mod error;
#[cfg(feature = "serde")]
mod error_report;
mod event;
#[cfg(feature = "serde")]
mod event_line;
mod event_reader;
mod fields;
#[cfg(feature = "serde")]
mod frame_form;
mod history;
mod lease;
mod ledger;
mod location;
mod lost;
mod observer;
mod outcome;
mod ownership;
mod peer;
mod pending;
mod phase;
mod pool;
mod private_dir;
mod prompt;
mod query;
mod redact;
mod regular_file;
mod remove_tree;
mod retry;
mod revive;
mod rule;
mod session;
mod spare;
mod spawn;
mod start;
mod stats;
mod stderr;
mod store;
mod store_config;
mod streams;
mod tail;
mod token;
mod usage;
mod value_syntax;
mod version;

pub use answer::Answer;
pub use assemble::{Assembler, PartialBlock, PartialContent};
pub use callback_kind::CallbackReply;
pub use callbacks::Callbacks;
pub use cause::Cause;
pub use child::{Detached, Local};
pub use claim::{Claim, ClaimProblem};
pub use conn::Context;
pub use conn::budget::SlowReader;
/// The laws of the connection's core, for the fuzz target of the workspace. No part of the API.
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub use conn::core::laws::run as core_laws;
pub use dialog::{DialogRequest, UserDialogResult};
pub use elicitation::{ElicitationRequest, ElicitationResult};
pub use end::{End, FrameNote};
pub use error::{Error, Refusal, Result};
#[cfg(feature = "serde")]
pub use error_report::ErrorReport;
#[cfg(feature = "serde")]
pub use event::UnknownEvent;
#[doc(hidden)]
pub use event::untold;
pub use event::{BlockKind, Event, Lag, SubagentEvent, ToolResult, ToolUse};
#[cfg(feature = "serde")]
pub use event_line::EventLine;
pub use event_reader::EventReader;
pub use history::History;
pub use ledger::{Task, TaskState, TaskUsage, Tasks};
pub use lost::{Lost, LostPrompt, PromptProgress};
pub use observer::Observer;
pub use options::Options;
#[doc(inline)]
pub use options::transport;
pub use outcome::{Outcome, Verdict};
pub use outrigger_protocol as protocol;
pub use outrigger_sessions as sessions;
pub use outrigger_sessions::lease::OnBusy;
pub use outrigger_sessions::{MessageId, SessionId};
pub use ownership::{Holder, LeaseOptions, LeaseProblem};
pub use pending::Pending;
pub use permissions::Policy;
pub use phase::Phase;
pub use pool::{Pool, PoolKey, PoolLimits, PoolOrigin, PoolStats, Pooled};
pub use prompt::{Prompt, PromptWarning};
pub use query::{Query, Run};
pub use retry::{AfterTools, FailedTry, Retry, RetryEvent, Retrying};
pub use revive::{ReviveProblem, Revived};
pub use session::{Drained, Interrupted, OutcomeWatch, Session, SessionState, Turn, WeakSession};
pub use spare::{ClaimFailed, Spare};
pub use start::Agent;
pub use stats::{Stats, StoreLag};
pub use store_config::StoreFlush;
pub use streams::{Ambient, AmbientEvent, Frames};
pub use tail::{Missed, Position, PositionError, Tail, TailItem, TailLimits, TailReader, TailStep};
pub use token::{
    HostAuthTokenAnswer, HostAuthTokenRefresh, NoTokenReason, OauthTokenAnswer, OauthTokenRefresh,
    TokenRequest,
};
pub use usage::{SessionUsage, Tokens, TurnUsage};
pub use version::{CliAge, CliVersion, OLDEST_CLI_VERSION};

/// The README's examples, compiled.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of the page on production, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/production.md")]
struct Production;

/// The examples of the page on events as JSON, compiled.
#[cfg(all(doctest, feature = "serde"))]
#[doc = include_str!("../../../docs/events.md")]
struct EventsPage;

/// The examples of the page on installing, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/install.md")]
struct InstallPage;

/// The examples of the page on the first program, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/first-program.md")]
struct FirstProgramPage;

/// The examples of the page on tools, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tools.md")]
struct ToolsPage;

/// The examples of the page on servers, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/hosting.md")]
struct HostingPage;

/// The examples of the page for users of the Python SDK, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from-python.md")]
struct ComingFromPython;

/// The examples of the page for users of the TypeScript SDK, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from-typescript.md")]
struct ComingFromTypescript;

/// The examples of the page on callbacks, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/callbacks.md")]
struct CallbacksPage;

/// The examples of the page on sessions, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sessions.md")]
struct SessionsPage;

/// The examples of the page on slash commands, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/slash-commands.md")]
struct SlashCommandsPage;

/// The examples of the page on tests, compiled.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../../docs/testing.md")]
struct TestingPage;

/// The examples of the page on cassettes, compiled.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../../docs/cassettes.md")]
struct CassettesPage;

/// The examples of the page on faults, compiled.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../../docs/faults.md")]
struct FaultsPage;
