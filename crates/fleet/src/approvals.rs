//! Approvals that outlive the process that asked.
//!
//! A call that needs an approval is deferred: the CLI ends the turn and leaves the call open. The question is a record in an
//! [`ApprovalStore`] before the turn has ended. Then the process may end; any process may [decide](Approvals::decide), today or next week; and
//! any process may have the session [carry the decision out](Approvals::carry_out).
//!
//! ```no_run
//! use outrigger::{Agent, Verdict};
//! use outrigger_fleet::approvals::{ApprovalFiles, Approvals, Decision};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let approvals = Approvals::new(ApprovalFiles::new("/var/lib/helper/approvals")).matcher("Bash|Write");
//! let session = approvals.ask_in(Agent::builder()).start().await?;
//! let outcome = session.prompt("Tidy up.").await?.outcome().await?;
//! assert_eq!(*outcome.verdict(), Verdict::Deferred);
//! session.close().await?;
//!
//! // Later, elsewhere:
//! for approval in approvals.pending().await? {
//!     println!("{}: {} {}", approval.id, approval.tool_name, approval.tool_input);
//!     approvals.decide(&approval.id, Decision::allow(), "Ada").await?;
//! }
//! for approval in approvals.waiting().await? {
//!     let carried = approvals.carry_out(Agent::builder(), &approval).await?;
//!     println!("{}", carried.outcome.answer()?);
//!     carried.session.close().await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! * The first decision counts. Whoever comes second is told who decided, and when.
//! * A decision is for one call with one input. If the model calls the tool anew, or with another input, that is another approval, and the
//!   earlier one is [superseded](ApprovalState::Superseded).
//! * A decision is carried out at most once. If the process dies after the CLI was told and before the tool has run, the call is asked about
//!   anew.
//! * Nothing is allowed by nobody: a store that fails, and an approval whose time is over, deny the call.
//! * One call of a session is open at a time. Of several in the same answer of the model, the last one is, and supersedes the others. A call
//!   of a subagent is denied, since no process could take it up again.
//!
//! # Questions and plans
//!
//! A question of the model (`AskUserQuestion`) is decided with its answers: [`Approval::answers`], [`Decision::answer`]. The model gets the
//! tool only if somebody answers questions, so set [`Options::questions`] as well; that callback is called if a question is allowed without
//! answers.
//!
//! A plan (`ExitPlanMode`) is approved by [`Decision::allow`], and [`Options::plans`] is not asked about it. The plan is part of the input of the call: one
//! that was changed meanwhile is asked about anew.
//!
//! Elicitations of MCP servers, and dialogs, cannot wait: they come from calls that run already.

mod approval;
mod approval_store;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use outrigger::hooks::{self, HookOutput, PreToolUseInput, PreToolUseOutput};
use outrigger::options::Options;
use outrigger::permissions::{PlanReply, PlanRequest};
use outrigger::protocol::shared::JsonObject;
use outrigger::protocol::{RawJson, walk};
use outrigger::sessions::place::project_dir_name;
use outrigger::{Ambient, AmbientEvent, Outcome, Session, SessionId};
use tokio::sync::Notify;

use self::approval::CallVerdict;
pub use self::approval::{Approval, ApprovalId, ApprovalState, Decided, Decision, TooLate};
pub use self::approval_store::{ApprovalFiles, ApprovalStore, ApprovalStoreError, MemoryApprovals};

/// How often a change is tried against changes of others.
const TRIES: usize = 16;

/// How long a resumed session has to ask about its open call. The CLI asks first of all, and once its MCP servers have started.
const ASKS_WITHIN: Duration = Duration::from_secs(120);

/// Asks about tool calls, and has decisions carried out. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Approvals {
    store: Arc<dyn ApprovalStore>,
    matcher: Option<String>,
    expires_after: Option<Duration>,
    /// Calls are taken in one after the other: of those that come at once, the last one is left open, and supersedes the others.
    asking: Arc<tokio::sync::Mutex<()>>,
}

/// Why a decision was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// There is no approval of this id.
    #[error("there is no approval {0}")]
    Unknown(ApprovalId),
    /// It comes too late.
    #[error(transparent)]
    TooLate(#[from] TooLate),
    /// The store failed.
    #[error("the approvals cannot be read or written")]
    Store(#[source] ApprovalStoreError),
}

/// Why a decision was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CarryOutError {
    /// Nobody has decided, or the session was told already.
    #[error("the approval {0} has no decision that its session was not told")]
    NothingToDo(ApprovalId),
    /// The session did not ask about the call: it has gone on without it. The approval is [superseded](ApprovalState::Superseded) now.
    #[error("the session did not ask about the call of approval {0} within {within} s: it went on without the call", within = ASKS_WITHIN.as_secs())]
    NotAsked(ApprovalId),
    /// The store failed, so that it is not known whether there is a decision.
    #[error("the approvals cannot be read or written")]
    Store(#[source] ApprovalStoreError),
    /// The session could not be resumed, or ended before the turn did.
    #[error(transparent)]
    Session(#[from] outrigger::Error),
}

/// Why a session was not resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The store failed, so that it is not known whether calls wait for somebody.
    #[error("the approvals cannot be read or written")]
    Store(#[source] ApprovalStoreError),
    /// The session could not be resumed.
    #[error(transparent)]
    Session(#[from] outrigger::Error),
}

/// A session that was resumed, and asks about its open call, if it has one.
#[derive(Debug)]
#[must_use = "the session ends when this is dropped"]
pub struct Resumed {
    approvals: Approvals,
    id: SessionId,
    session: Session,
    ambient: Ambient,
    /// A call was allowed or denied.
    applied: Arc<Notify>,
    /// Whether a call is open.
    is_open: bool,
}

impl Resumed {
    /// The session. If its call was decided, it goes on with the turn of that call, which is an ambient one: [`Session::ambient`] and
    /// [`Session::tail`] have its events.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Waits until the CLI has asked about the open call, and the call is deferred again or runs; at once if no call is open.
    ///
    /// A session that asks nothing within two minutes went on without its call; then the approval is
    /// [superseded](ApprovalState::Superseded).
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// When the future is dropped, so is what this was called on, and the session ends unless the program has a clone of it.
    pub async fn asked(mut self) -> Result<Session, ApprovalStoreError> {
        if self.is_open {
            let asked = async {
                tokio::select! {
                    () = self.applied.notified() => {}
                    () = async {
                        while !matches!(self.ambient.next().await, Some(AmbientEvent::TurnEnded(_)) | None) {}
                    } => {}
                }
            };
            if tokio::time::timeout(ASKS_WITHIN, asked).await.is_err() {
                self.approvals.supersede(&self.id).await?;
            }
        }
        Ok(self.session)
    }
}

/// A session that has carried a decision out.
#[derive(Debug)]
#[non_exhaustive]
pub struct CarriedOut {
    /// The session, which goes on.
    pub session: Session,
    /// How the turn ended. It is [deferred](Outcome::deferred) again if the model called another tool that needs an approval.
    pub outcome: Outcome,
}

impl Approvals {
    /// Approvals in this store: for all tools, without an end of the time to decide.
    pub fn new(store: impl ApprovalStore) -> Self {
        Self {
            store: Arc::new(store),
            matcher: None,
            expires_after: None,
            asking: Arc::default(),
        }
    }

    /// Asks only about these tools: the matcher of a `PreToolUse` hook, such as `Bash|Write`.
    pub fn matcher(mut self, matcher: impl Into<String>) -> Self {
        self.matcher = Some(matcher.into());
        self
    }

    /// How long there is to decide; after that the call is denied.
    pub fn expires_after(mut self, time: Duration) -> Self {
        self.expires_after = Some(time);
        self
    }

    /// Options of a session that asks: with a `PreToolUse` hook, which defers calls without a decision and carries out the others.
    ///
    /// The CLI has to keep the session on disk, and to know `defer` (2.1.150 and newer do; see docs/callbacks.md). To resume a session,
    /// [`resume`](Self::resume) is safer.
    pub fn ask_in(&self, options: Options) -> Options {
        self.ask_and_tell(options, Arc::default())
    }

    fn ask_and_tell(&self, options: Options, applied: Arc<Notify>) -> Options {
        let this = self.clone();
        let plans = ApprovedPlans::default();
        let approved = plans.clone();
        let hook = hooks::pre_tool_use(move |input: PreToolUseInput, _| {
            let (this, applied, plans) = (this.clone(), Arc::clone(&applied), plans.clone());
            async move {
                let call =
                    (input.tool_name == PLAN).then(|| (input.tool_use_id.clone(), input.tool_input.clone()));
                let asked = this.asked(input).await;
                if let (Some((id, input)), Ok(CallVerdict::Apply(Decision::Allow { updated_input }))) =
                    (call, &asked)
                {
                    plans.add(id, input, updated_input.as_ref());
                }
                if !matches!(asked, Ok(CallVerdict::Defer)) {
                    applied.notify_one();
                }
                HookOutput::specific(match asked {
                    Ok(CallVerdict::Defer) => PreToolUseOutput::defer(),
                    Ok(CallVerdict::Apply(Decision::Allow { updated_input: None })) => {
                        PreToolUseOutput::allow()
                    }
                    Ok(CallVerdict::Apply(Decision::Allow {
                        updated_input: Some(input),
                    })) => PreToolUseOutput::allow()
                        .updated_input(&input)
                        .unwrap_or_else(|error| {
                            PreToolUseOutput::deny(format!("The input cannot be sent: {error}"))
                        }),
                    Ok(CallVerdict::Apply(Decision::Deny { message })) => PreToolUseOutput::deny(message),
                    Err(error) => {
                        tracing::error!(%error, "a call is denied, since nobody can be asked about it");
                        PreToolUseOutput::deny(
                            "Nobody can be asked about this call: the approvals cannot be stored.",
                        )
                    }
                })
            }
        });
        // The CLI asks about a plan once more when the call itself is allowed.
        let options = options.plans_first(move |plan| approved.reply(plan));
        options.hook(match &self.matcher {
            Some(matcher) => hook.matcher(matcher),
            None => hook,
        })
    }

    /// Resumes a session that asks, and keeps the call open that waits for somebody, if there is one.
    ///
    /// The CLI asks about an open call as soon as it is resumed, and a process that is closed in that moment answers the call as
    /// cancelled. So wait for [`Resumed::asked`] before the session is closed. What was decided already is carried out.
    ///
    /// # Errors
    /// When the store fails, or the session cannot be resumed.
    ///
    /// # Cancel safety
    /// When the future is dropped, the session ends, and its open call may be cancelled by that.
    pub async fn resume(&self, options: Options, session: &SessionId) -> Result<Resumed, ResumeError> {
        let stored = self.store.list(Some(session)).await.map_err(ResumeError::Store)?;
        let is_open = |approval: &Approval| approval.is_pending() || approval.waits_for_session();
        let applied = Arc::new(Notify::new());
        let options = self.ask_and_tell(options, Arc::clone(&applied));
        let resumed = options.go_on_with(session.to_string()).start().await?;
        Ok(Resumed {
            approvals: self.clone(),
            id: session.clone(),
            ambient: resumed.ambient(),
            session: resumed,
            applied,
            is_open: stored.iter().any(is_open),
        })
    }

    /// The approvals that somebody can decide, the oldest first.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// The future only reads, and notes whose time is over.
    pub async fn pending(&self) -> Result<Vec<Approval>, ApprovalStoreError> {
        self.listed(Approval::is_pending).await
    }

    /// The approvals whose sessions have to be told: those with a decision, and those whose time is over.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// As [`pending`](Self::pending).
    pub async fn waiting(&self) -> Result<Vec<Approval>, ApprovalStoreError> {
        self.listed(Approval::waits_for_session).await
    }

    /// The approval of this id.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// The future only reads.
    pub async fn get(&self, id: &ApprovalId) -> Result<Option<Approval>, ApprovalStoreError> {
        self.store.get(id).await
    }

    /// Decides, in the name of somebody.
    ///
    /// # Errors
    /// When somebody else was first, the time is over, or the session went on without the call; and when the store fails.
    ///
    /// # Cancel safety
    /// When the future is dropped, the decision is taken or not.
    pub async fn decide(
        &self,
        id: &ApprovalId,
        decision: Decision,
        by: &str,
    ) -> Result<Approval, DecideError> {
        for _ in 0..TRIES {
            let stored = self.store.get(id).await.map_err(DecideError::Store)?;
            let approval = stored.ok_or_else(|| DecideError::Unknown(id.clone()))?;
            let decided = approval.decided(decision.clone(), by, SystemTime::now())?;
            if self.store.replace(&decided).await.map_err(DecideError::Store)? {
                return Ok(decided);
            }
        }
        Err(DecideError::Store("the approval changes all the time".into()))
    }

    /// Resumes the session of an approval, which carries the decision out and goes on with its turn, and waits for the end of the turn.
    ///
    /// The options are those of the session; the working directory is that of the approval. No prompt is sent.
    ///
    /// # Errors
    /// When there is nothing to tell the session, or the store fails; when the session cannot be resumed, or ends before the turn; and when
    /// the session does not ask about the call within two minutes, since it went on without it. The turn itself has no deadline: a tool
    /// may run for hours.
    ///
    /// # Cancel safety
    /// When the future is dropped, the session ends. The decision is carried out or not; a later call finds out.
    pub async fn carry_out(
        &self,
        options: Options,
        approval: &Approval,
    ) -> Result<CarriedOut, CarryOutError> {
        if self.open(&approval.id).await?.is_none() {
            return Err(CarryOutError::NothingToDo(approval.id.clone()));
        }
        let options = self
            .ask_in(options)
            .cwd(&approval.cwd)
            .go_on_with(approval.session_id.to_string());
        let session = options.start().await?;
        let mut ambient = session.ambient();
        let watched = session.clone();
        let ended = async move {
            loop {
                match ambient.next().await {
                    Some(AmbientEvent::TurnEnded(outcome)) => return Ok(outcome),
                    Some(_) => {}
                    None => return Err(CarryOutError::from(watched.wait_ended().await)),
                }
            }
        };
        let mut ended = pin!(ended);
        let outcome = match tokio::time::timeout(ASKS_WITHIN, &mut ended).await {
            Ok(outcome) => outcome?,
            Err(_) => match self.open(&approval.id).await? {
                // The session was told: a tool runs, or the model answers.
                None => ended.await?,
                Some(open) => {
                    if let Some(superseded) = open.superseded(None) {
                        let replaced = self.store.replace(&superseded).await;
                        replaced.map_err(CarryOutError::Store)?;
                    }
                    return Err(CarryOutError::NotAsked(approval.id.clone()));
                }
            },
        };
        Ok(CarriedOut { session, outcome })
    }

    /// The approval as it is stored, if its session was not told.
    async fn open(&self, id: &ApprovalId) -> Result<Option<Approval>, CarryOutError> {
        let stored = self.store.get(id).await.map_err(CarryOutError::Store)?;
        Ok(stored.filter(Approval::waits_for_session))
    }

    /// Notes that a session went on without its open calls, for example since it got another prompt.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// When the future is dropped, some are noted and some not; call it again.
    pub async fn supersede(&self, session: &SessionId) -> Result<(), ApprovalStoreError> {
        self.supersede_but(session, None).await
    }

    async fn supersede_but(
        &self,
        session: &SessionId,
        by: Option<&Approval>,
    ) -> Result<(), ApprovalStoreError> {
        for mut approval in self.store.list(Some(session)).await? {
            if by.is_some_and(|by| by.id == approval.id) {
                continue;
            }
            let anew = by.filter(|by| by.tool_use_id == approval.tool_use_id);
            for _ in 0..TRIES {
                let Some(next) = approval.superseded(anew.map(|by| by.id.clone())) else {
                    break;
                };
                if self.store.replace(&next).await? {
                    break;
                }
                match self.store.get(&approval.id).await? {
                    Some(newer) => approval = newer,
                    None => break,
                }
            }
        }
        Ok(())
    }

    async fn listed(&self, wanted: impl Fn(&Approval) -> bool) -> Result<Vec<Approval>, ApprovalStoreError> {
        let now = SystemTime::now();
        let mut found = Vec::new();
        for approval in self.store.list(None).await? {
            let approval = match approval.expired(now) {
                Some(expired) if self.store.replace(&expired).await? => expired,
                // Somebody was faster.
                Some(_) => match self.store.get(&approval.id).await? {
                    Some(newer) => newer,
                    None => continue,
                },
                None => approval,
            };
            if wanted(&approval) {
                found.push(approval);
            }
        }
        found.sort_by_key(|approval| approval.asked_at);
        Ok(found)
    }

    /// The CLI asks about a call.
    async fn asked(&self, input: PreToolUseInput) -> Result<CallVerdict, Unasked> {
        let tool_use_id = input.tool_use_id.ok_or(Unasked::NoId)?;
        let session = SessionId::new(&input.session_id).map_err(|error| Unasked::Store(error.into()))?;
        if input.agent_id.is_some() {
            let message = "This call needs an approval, and a subagent cannot wait for one. Leave the call to the main conversation.";
            return Ok(CallVerdict::Apply(Decision::deny(message)));
        }
        let _alone = self.asking.lock().await;
        let now = SystemTime::now();
        for approval in self.store.list(Some(&session)).await? {
            if approval.tool_use_id != tool_use_id {
                continue;
            }
            match approval.on_request(&input.tool_input, now) {
                Some((verdict, None)) => return Ok(verdict),
                // What somebody else has changed meanwhile is asked about anew.
                Some((verdict, Some(next))) if self.store.replace(&next).await? => return Ok(verdict),
                _ => {}
            }
        }
        let approval = Approval {
            id: ApprovalId::new(),
            version: 0,
            session_id: session.clone(),
            cwd: directory_of_session(&input.cwd, &input.transcript_path),
            tool_use_id,
            tool_name: input.tool_name,
            tool_input: input.tool_input,
            asked_at: now,
            expires_at: self.expires_after.and_then(|after| now.checked_add(after)),
            state: ApprovalState::Pending,
        };
        self.store.add(&approval).await?;
        self.supersede_but(&session, Some(&approval)).await?;
        Ok(CallVerdict::Defer)
    }
}

/// The directory that a session can be resumed from: that of its transcript. Commands of the session may have gone on from there to a directory below it.
fn directory_of_session(now: &str, transcript: &str) -> PathBuf {
    let (now, project) = (Path::new(now), Path::new(transcript).parent());
    let name = project.and_then(Path::file_name);
    let is_its = |directory: &&Path| {
        let of_directory = directory.to_str().map(project_dir_name);
        of_directory.is_some_and(|of_directory| name == Some(OsStr::new(&of_directory)))
    };
    now.ancestors().find(is_its).unwrap_or(now).to_owned()
}

const PLAN: &str = "ExitPlanMode";

/// Plans whose calls were allowed just now: the id of the call, and the plan.
#[derive(Clone, Default)]
struct ApprovedPlans(Arc<Mutex<HashMap<String, Option<String>>>>);

impl ApprovedPlans {
    fn add(&self, id: Option<String>, input: RawJson, updated: Option<&JsonObject>) {
        let Some(id) = id else { return };
        let plan = match updated {
            Some(input) => walk::string_at(input.get(), "plan"),
            None => walk::string_at(input.get(), "plan"),
        };
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.insert(id, plan);
    }

    fn reply(&self, asked: &PlanRequest) -> Option<PlanReply> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = plans.remove(asked.request.tool_use_id.as_deref()?)?;
        Some(match plan == asked.plan {
            true => PlanReply::approve(),
            false => PlanReply::KeepPlanning("the plan has changed since it was approved".to_owned()),
        })
    }
}

/// Why nobody can be asked.
#[derive(Debug)]
enum Unasked {
    NoId,
    Store(ApprovalStoreError),
}

impl From<ApprovalStoreError> for Unasked {
    fn from(error: ApprovalStoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoId => f.write_str("the CLI does not name the call; update it"),
            Self::Store(error) => write!(f, "the approvals cannot be stored: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use futures_util::future::BoxFuture;
    use serde_json::json;

    use super::*;

    /// A store that others use while it writes.
    #[derive(Debug, Default)]
    struct Slow(MemoryApprovals);

    impl ApprovalStore for Slow {
        fn add<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, Result<(), ApprovalStoreError>> {
            Box::pin(async {
                self.0.add(approval).await?;
                tokio::task::yield_now().await;
                Ok(())
            })
        }

        fn get<'a>(
            &'a self,
            id: &'a ApprovalId,
        ) -> BoxFuture<'a, Result<Option<Approval>, ApprovalStoreError>> {
            self.0.get(id)
        }

        fn list<'a>(
            &'a self,
            session: Option<&'a SessionId>,
        ) -> BoxFuture<'a, Result<Vec<Approval>, ApprovalStoreError>> {
            self.0.list(session)
        }

        fn replace<'a>(&'a self, approval: &'a Approval) -> BoxFuture<'a, Result<bool, ApprovalStoreError>> {
            self.0.replace(approval)
        }
    }

    fn call(id: &str, agent: Option<&str>) -> PreToolUseInput {
        let input = json!({
            "session_id": "00000000-0000-4000-8000-000000000001", "transcript_path": "", "cwd": "/", "tool_name": "Bash",
            "tool_input": {"command": "ls"}, "tool_use_id": id, "agent_id": agent,
        });
        serde_json::from_value(input).unwrap()
    }

    #[tokio::test]
    async fn of_calls_that_come_at_once_the_last_one_waits() {
        let approvals = Approvals::new(Slow::default());
        let (first, second) = tokio::join!(
            approvals.asked(call("toolu_1", None)),
            approvals.asked(call("toolu_2", None))
        );
        assert!(matches!(
            (first, second),
            (Ok(CallVerdict::Defer), Ok(CallVerdict::Defer))
        ));
        let pending = approvals.pending().await.unwrap();
        let pending: Vec<_> = pending.iter().map(|approval| &*approval.tool_use_id).collect();
        assert_eq!(pending, ["toolu_2"]);
    }

    /// It cannot be resumed from where a command went.
    #[test]
    fn an_approval_has_the_directory_that_its_session_began_in() {
        let of = |now: &str, project: &str| {
            let transcript = format!("/home/ada/.claude/projects/{project}/s.jsonl");
            directory_of_session(now, &transcript)
        };
        for now in ["/srv/shop", "/srv/shop/src", "/srv/shop/src/a-b"] {
            assert_eq!(of(now, "-srv-shop"), Path::new("/srv/shop"), "{now}");
        }
        // Of what is stored elsewhere nothing else is known.
        assert_eq!(of("/srv/shop/src", "-elsewhere"), Path::new("/srv/shop/src"));
        assert_eq!(directory_of_session("/srv/shop", ""), Path::new("/srv/shop"));
    }

    #[tokio::test]
    async fn a_call_of_a_subagent_is_denied_and_supersedes_nothing() {
        let approvals = Approvals::new(MemoryApprovals::new());
        approvals.asked(call("toolu_1", None)).await.unwrap();
        let denied = approvals.asked(call("toolu_2", Some("agent"))).await.unwrap();
        assert!(
            matches!(denied, CallVerdict::Apply(Decision::Deny { .. })),
            "{denied:?}"
        );
        let pending = approvals.pending().await.unwrap();
        assert_eq!(pending.len(), 1);
        assert_eq!(pending[0].tool_use_id, "toolu_1");
    }
}
