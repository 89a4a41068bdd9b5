//! Owns sessions of the Claude Code CLI, for a server: clients come and go, processes start and end, and what was accepted stays.
//!
//! A [`SessionHost`] keeps all that is durable in a [log](log::SqliteLog). It starts a process when a prompt waits, ends it when it is idle, and resumes the
//! session on the next prompt. What the CLI asks for is an [`Approval`], which anyone may [decide](SessionHost::decide), once.
//!
//! ```no_run
//! use outrigger::{Agent, protocol::RawJson};
//! use outrigger_host::{Delivered, HostPolicy, NewSession, SessionHost, log::SqliteLog};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = HostPolicy::new(Agent::builder(), ["/srv/projects"]);
//! let host = SessionHost::open(policy, SqliteLog::open("/var/lib/outrigger/host.db")?).await?;
//! let session = host.create(NewSession::new("/srv/projects/shop"), "ada").await?;
//! let prompt = RawJson::from_text(r#"{"type":"user","message":{"role":"user","content":"Run the tests."}}"#)?;
//! host.send(&session.id, prompt, "ada").await?;
//! let mut events = host.subscribe(&session.id, 0).await?;
//! while let Delivered::Event(event) = events.next().await? {
//!     println!("{} {}", event.seq, event.kind);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! * What [`send`](SessionHost::send) and [`decide`](SessionHost::decide) returned is on disk. A host that is killed goes on from it.
//! * A prompt is given to at most one process. If the process or the host ends during its turn, it is reported as `interrupted` and not sent
//!   again, because tools may have run. Prompts that no process got are given to the next one.
//! * A decision is for one call, and is applied at most once. When the process that asked has ended, the approval is `superseded`, unless the tool is one of
//!   [`HostPolicy::deferred`]: then it waits over any process and host. If the model asks again, that is a new approval, which names the earlier one.
//! * A session has at most one process: the host holds its lease, and only one host can have a log open.
//!
//! Files, git, and what tools did are outside of the log. Credentials of the model are the operator's, from the policy.

mod address_rule;
mod admission;
mod approval;
mod audit;
mod clock;
mod core;
mod error;
mod event;
mod git;
mod handler;
mod host;
pub mod log;
mod memory;
mod owner;
mod policy;
mod schedule;
mod serve_policy;
mod spares;
mod stored;
mod subscription;
mod webhook;
mod wire;
mod workspace;

pub use address_rule::AddressRule;
pub use admission::TurnBudget;
pub use approval::{Approval, ApprovalKind, ApprovalState};
pub use audit::AuditEntry;
pub use error::{HostError, Result};
pub use event::{Accepted, Delivery, Effect, LogEvent, SessionRecord, SessionState, Source, Worktree};
pub use host::{NewFork, NewSession, SessionHost};
pub use memory::MemoryLimits;
pub use policy::HostPolicy;
pub use schedule::{DueRun, MissedRuns, Schedule};
pub use serve_policy::{ServePolicy, ServePolicyError, ServerSettings, TlsFiles};
pub use spares::SpareCounts;
pub use stored::{Adoptable, Transcript};
pub use subscription::{Delivered, Subscription};
pub use webhook::{Webhook, WebhookEvent, WebhookSecret, WebhookWrite};
/// For the fuzz target of the workspace. No part of the API.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use wire::is_decision;
pub use workspace::{CleanUp, DiffFrom, NewWorktree, WorkspaceDiff, WorkspacePolicy};
