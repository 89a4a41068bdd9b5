//! The handle of a running agent.

mod mcp_servers;
mod turn;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_protocol::drift::Drift;
use outrigger_protocol::inbound::system::{CommandsChanged, Init};
use outrigger_protocol::outbound::control::{ControlRequest, Interrupt};
use outrigger_protocol::outbound::{Initialize, InitializeReply, Priority};
use outrigger_sessions::SessionId;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

pub use self::turn::{OutcomeWatch, Turn};
use crate::conn::core::{Accept, Dispatch, Input};
use crate::conn::{Conn, Context, encode_request};
use crate::error::{Error, Kind, Result};
use crate::ledger::Tasks;
use crate::mcp::{Bridge, McpStartup};
use crate::options::Options;
use crate::peer::Exit;
use crate::permissions::Explanation;
use crate::prompt::{Prompt, PromptWarning};
use crate::stats::Stats;
use crate::store::Source;
use crate::streams::{Ambient, Frames};
use crate::usage::SessionUsage;
use crate::version::CliVersion;

pub use crate::conn::core::SessionState;
pub use crate::conn::interrupt::Interrupted;

/// A running agent: one CLI process, many turns.
///
/// A cheap handle; clones share the agent. All methods work at any time and from any task, whether or not anybody reads
/// events.
///
/// What ends what:
///
/// | | the running turn | background agents | background shells | the process |
/// |---|---|---|---|---|
/// | [`interrupt`](Self::interrupt) | ends | end | run on | lives |
/// | [`stop_task`](Self::stop_task) | runs on | the one that is named | the one that is named | lives |
/// | [`drain_and_close`](Self::drain_and_close) | is waited for | are waited for, up to a ceiling | end | ends |
/// | [`close`](Self::close) | has the grace of 5 s to finish | end | end | ends |
/// | [`kill`](Self::kill) | ends | end | end | ends at once |
///
/// What a command detached on purpose (`setsid`, `nohup … &`) runs on after all of them, as it does when the CLI ends by itself; unless
/// [`Detached::End`](crate::Detached::End) is chosen, then it ends with the process.
///
/// When the last handle (a [`Turn`] holds one) is dropped, the process is ended in the background in the order of
/// [`close`](Self::close), and killed at once if no runtime is left to do that.
#[derive(Debug, Clone)]
pub struct Session(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    conn: Arc<Conn>,
    initialized: Arc<InitializeReply>,
    settings: Settings,
}

/// A session, without keeping it from ending.
#[derive(Debug)]
pub(crate) struct WeakSession(Weak<Handle>);

impl WeakSession {
    pub(crate) fn upgrade(&self) -> Option<Session> {
        self.0.upgrade().map(Session)
    }
}

/// How [`Session::drain_and_close`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Whether background work was ended because it took longer than the ceiling.
    pub ceiling_reached: bool,
    /// How the process ended.
    pub exit: Exit,
}

/// What of the options the running session needs.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) control_deadline: Duration,
    pub(crate) verbatim_prompts: bool,
    pub(crate) wants_output: bool,
    /// The MCP servers in this program, and what became of those that prompts wait for.
    pub(crate) mcp: Arc<Bridge>,
    pub(crate) mcp_startup: watch::Receiver<McpStartup>,
    /// What it was started with.
    pub(crate) origin: Arc<Options>,
    /// How it introduced itself.
    pub(crate) initialize: Arc<Initialize>,
    /// Where its conversation is found.
    pub(crate) source: Arc<Source>,
    /// The CLI's version, once it was asked.
    pub(crate) asked_version: Arc<OnceLock<CliVersion>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.conn.abandon();
    }
}

impl Session {
    pub(crate) fn new(conn: Arc<Conn>, initialized: InitializeReply, settings: Settings) -> Self {
        let session = Self(Arc::new(Handle {
            conn,
            initialized: Arc::new(initialized),
            settings,
        }));
        session.conn().set_handle(WeakSession(Arc::downgrade(&session.0)));
        session
    }

    pub(crate) fn conn(&self) -> &Arc<Conn> {
        &self.0.conn
    }

    pub(crate) fn bridge(&self) -> &Arc<Bridge> {
        &self.0.settings.mcp
    }

    /// Where its conversation is found.
    pub(crate) fn source(&self) -> &Source {
        &self.0.settings.source
    }

    pub(crate) fn startup_of_mcp(&self) -> &watch::Receiver<McpStartup> {
        &self.0.settings.mcp_startup
    }

    // ---- Prompts ------------------------------------------------------------------------------------------------

    /// Sends a prompt that gets a turn of its own.
    ///
    /// While other prompts of this session wait or run, it waits here for its turn, so that the CLI neither merges it with
    /// them nor folds it into theirs; prompts go in the order of the calls. Returns at once; the [`Turn`] tells what becomes
    /// of it.
    ///
    /// A string is text for the model, also if it begins with `/`; [`Prompt::command`] makes a prompt that runs a slash command. A text
    /// that looks like one is sent, with a [warning](Turn::warnings).
    ///
    /// # Cancel safety
    /// The future is done when it is first polled: dropped before, nothing was sent; after that there is a [`Turn`],
    /// which runs on unwatched when it is dropped.
    ///
    /// # Errors
    /// When the prompt is empty, or is a command that the CLI does not know; when more than 1024 prompts are open; when the
    /// session has ended.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        // `later`, so that it is not folded into a turn that background work began.
        self.send(prompt.into(), Dispatch::Alone, Priority::Later)
    }

    /// Hands a prompt to the CLI's own queue at once: it runs after the turn that is running, perhaps merged with other
    /// prompts that wait there.
    ///
    /// # Cancel safety
    /// As [`prompt`](Self::prompt).
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub async fn queue(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        self.send(prompt.into(), Dispatch::AtOnce, Priority::Later)
    }

    /// Steers the turn that is running: the prompt is folded into it at the next tool boundary, and ends with it. With no
    /// such boundary ahead, or nothing running, it gets a turn.
    ///
    /// # Cancel safety
    /// As [`prompt`](Self::prompt).
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub async fn steer(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        self.send(prompt.into(), Dispatch::AtOnce, Priority::Next)
    }

    /// Ends the turn that is running and begins this one. The other ends as
    /// [`Interrupted`](crate::Verdict::Interrupted).
    ///
    /// # Cancel safety
    /// As [`prompt`](Self::prompt).
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub async fn prompt_now(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        self.send(prompt.into(), Dispatch::AtOnce, Priority::Now)
    }

    fn send(&self, prompt: Prompt, dispatch: Dispatch, priority: Priority) -> Result<Turn> {
        if let Some(name) = prompt.command_name() {
            self.check_command(name)?;
        }
        let warnings = self.warnings_of(&prompt);
        let id = prompt.id();
        let line = prompt.line(id, priority, self.0.settings.verbatim_prompts)?;
        let (frames, settled) = self.conn().accept(Accept {
            id: id.to_string(),
            line,
            dispatch,
            wanted_output: self.0.settings.wants_output,
            prompt,
        })?;
        for warning in &warnings {
            tracing::warn!(prompt = %id, "{warning}");
        }
        Ok(Turn::new(self.clone(), id, frames, settled, warnings))
    }

    fn warnings_of(&self, prompt: &Prompt) -> Vec<PromptWarning> {
        let command = prompt
            .looks_like_command()
            .filter(|_| !self.0.settings.verbatim_prompts)
            .filter(|name| self.command_names().iter().any(|known| known == name));
        let warning = command.map(|command| PromptWarning::CommandAsText {
            command: command.to_owned(),
        });
        warning.into_iter().collect()
    }

    fn check_command(&self, name: &str) -> Result<()> {
        let known = self.command_names();
        if known.iter().any(|known| known == name) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "command `/{name}`: the CLI reported no such command, but {}",
            known.join(", ")
        )))
    }

    /// The names and aliases of all slash commands that the CLI has reported so far, sorted.
    pub fn command_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let changed = self.conn().core().commands().cloned();
        let changed: Option<CommandsChanged> = changed.and_then(|frame| frame.decode_as().ok());
        let commands = changed.map(|changed| changed.commands);
        for command in commands.as_ref().unwrap_or(&self.0.initialized.commands) {
            names.push(command.name.clone());
            names.extend(command.aliases.iter().flatten().cloned());
        }
        if let Some(init) = self.init() {
            names.extend(init.slash_commands.iter().cloned());
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    // ---- Ending turns -------------------------------------------------------------------------------------------

    /// Interrupts the turn that is running, and returns when it has ended. A prompt that was given just before counts as
    /// running: it ends as [`Interrupted`](crate::Verdict::Interrupted), or as [`Cancelled`](crate::Verdict::Cancelled) if
    /// its turn had not begun.
    ///
    /// Until then no further prompt is sent, so that the next turn begins only after this one has drained. Foreground and
    /// background agents end with it, background shells do not. Prompts that wait in the CLI's queue survive and run next.
    /// With nothing running it does nothing.
    ///
    /// The CLI has a deadline of 10 seconds (set by `interrupt_deadline`) to confirm, and as long again to end the turn.
    ///
    /// # Cancel safety
    /// Dropped before the request was written, nothing happens. Dropped later, the turn may end as interrupted or run
    /// on: the CLI is told to forget the request, which may come too late. Prompts are sent again from then on.
    ///
    /// # Errors
    /// When a deadline passes, or the session has ended.
    pub async fn interrupt(&self) -> Result<Interrupted> {
        self.conn().interrupt(Interrupt::default()).await
    }

    /// Like [`interrupt`](Self::interrupt), and takes the prompts back that wait in the CLI's queue.
    ///
    /// # Cancel safety
    /// As [`interrupt`](Self::interrupt); likewise for the queued prompts, each of whose turns tells what became of it.
    ///
    /// # Errors
    /// As [`interrupt`](Self::interrupt), and when the CLI lacks the capability `interrupt_cancel_queued_v1`.
    pub async fn interrupt_and_cancel_queued(&self) -> Result<Interrupted> {
        self.require("cancelling queued prompts", "interrupt_cancel_queued_v1")?;
        self.conn()
            .interrupt(Interrupt::default().cancel_queued(true))
            .await
    }

    // ---- The run ------------------------------------------------------------------------------------------------

    /// Waits for the end of the run: no prompt of ours is open, no turn runs, and no agent is left in the background whose
    /// end would begin another turn. Background shells do not count; they may run for ever.
    ///
    /// A turn's outcome is often not the end of the run: agents may go on in the background, and what they find comes in
    /// ambient turns. The CLI's own word (`session_state_changed`) is followed; for a CLI that does not give it, the tasks
    /// that it reported.
    ///
    /// `ceiling` is how long background work alone may keep the run from ending, counted from the last result on. While a turn
    /// runs, and while somebody is asked, it does not count; a turn has the watchdogs
    /// ([`first_token_deadline`](crate::Options::first_token_deadline)). `None` is for ever.
    ///
    /// # Cancel safety
    /// Dropping the future stops nothing; a new one goes on waiting. The ceiling is not counted anew.
    ///
    /// # Errors
    /// When the ceiling is reached ([`Error::is_timeout`]), or the session ends first.
    pub async fn wait_run_end(&self, ceiling: impl Into<Option<Duration>>) -> Result<()> {
        let (ceiling, begun) = (ceiling.into(), Instant::now());
        loop {
            let changed = self.conn().changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (due, settles_at) = {
                let core = self.conn().core();
                if let Some(ended) = core.ended() {
                    return Err(ended.clone());
                }
                let run = core.run(Instant::now().into_std());
                if run.is_over {
                    return Ok(());
                }
                let quiet_since = run.quiet_since.map(Instant::from_std);
                // What ran before this session was resumed shows no result here.
                let since = run.is_quiet.then(|| quiet_since.unwrap_or(begun));
                let due = since
                    .zip(ceiling)
                    .and_then(|(since, ceiling)| since.checked_add(ceiling));
                (due, run.settles_at.map(Instant::from_std))
            };
            let at = |time: Option<Instant>| async move {
                match time {
                    Some(time) => sleep_until(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = at(settles_at) => {}
                () = at(due) => {
                    // A turn that began meanwhile wakes nobody.
                    if self.conn().core().run(Instant::now().into_std()).is_quiet {
                        let after = ceiling.unwrap_or_default();
                        return Err(Error::timeout("the background work after the last result", after));
                    }
                }
            }
        }
    }

    /// Waits for the end of the run as [`wait_run_end`](Self::wait_run_end) does, then ends the session as
    /// [`close`](Self::close) does. When the ceiling is reached, what still runs is ended with it, and the answer says so.
    ///
    /// # Cancel safety
    /// Dropped while the run goes on, nothing but this handle is given up, and the session goes on if there is another.
    /// Dropped once the closing has begun, the closing goes on.
    ///
    /// # Errors
    /// When the session ended before the run did, or the process could not be seen ending.
    pub async fn drain_and_close(self, ceiling: impl Into<Option<Duration>>) -> Result<Drained> {
        let ceiling_reached = match self.wait_run_end(ceiling).await {
            Ok(()) => false,
            Err(error) if error.is_timeout() && !error.is_closed() => true,
            Err(error) => return Err(error),
        };
        Ok(Drained {
            ceiling_reached,
            exit: self.close().await?,
        })
    }

    /// What the CLI says it is doing; `None` before it said anything, and for CLIs that never do.
    pub fn state(&self) -> Option<SessionState> {
        self.conn().core().state()
    }

    /// Waits for the process to end, and tells how it did. Has no deadline: a session may live for days.
    ///
    /// # Cancel safety
    /// Dropping the future stops nothing.
    pub async fn wait_ended(&self) -> Error {
        self.conn().wait_ended().await
    }

    /// Ends the session: closes the CLI's stdin, gives it time to finish (5 s unless set), then SIGTERM, then (after another
    /// 5 s) SIGKILL, to the whole process group, and reaps it. Whatever of ours waits gets an error.
    ///
    /// A turn that is running is let finish within the grace; interrupt it first if it should not.
    ///
    /// Returns how the process ended. The CLI exits with code 1 when the last result was an error; that is no crash.
    ///
    /// # Cancel safety
    /// Dropped before it is first polled, only this handle goes. Dropped later, the closing goes on.
    ///
    /// # Errors
    /// When the process could not be seen ending, or the session was lost to somebody else
    /// ([`Error::as_lease_problem`]).
    pub async fn close(self) -> Result<Exit> {
        self.conn().close().await;
        exit_of(self.conn().wait_ended().await)
    }

    /// Ends the session at once by SIGKILL to the whole process group.
    ///
    /// # Cancel safety
    /// Dropped before it is first polled, only this handle goes. Dropped later, the process is killed all the same.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub async fn kill(self) -> Result<Exit> {
        self.conn().kill("it was killed").await;
        exit_of(self.conn().wait_ended().await)
    }

    // ---- Streams ------------------------------------------------------------------------------------------------

    /// Every frame from now on, as it came: of all turns, ambient ones, and control traffic.
    ///
    /// A reader may fall behind: what does not fit into the session's memory waits on disk, and if that has no room either
    /// it is told in place how much it missed. See [`SlowReader`](crate::SlowReader).
    pub fn frames(&self) -> Frames {
        Frames::new(self.conn().tap())
    }

    /// What belongs to no prompt of this session, from now on: turns that background work or schedules begin, and notices
    /// between turns.
    ///
    /// A reader may fall behind, as with [`frames`](Self::frames).
    pub fn ambient(&self) -> Ambient {
        Ambient::new(self.conn().listen())
    }

    // ---- What is known ------------------------------------------------------------------------------------------

    /// The CLI's id of the conversation. Known at once for a session that goes on by its id ([`Options::resume`]) or that
    /// claimed a spare; of others `None` until the first turn began, since only the CLI knows it. It may change (`/clear`): see
    /// [`ids`](Self::ids). An id that could not be the name of a file is left out.
    pub fn id(&self) -> Option<SessionId> {
        self.conn().core().session_id().and_then(SessionId::from_wire)
    }

    /// The ids that the conversation had, oldest first; the last 64 are remembered.
    pub fn ids(&self) -> Vec<SessionId> {
        let core = self.conn().core();
        core.session_ids().filter_map(SessionId::from_wire).collect()
    }

    /// The number of the claim on the session, where it is claimed ([`Options::lease`]): of two claims the later one has the greater
    /// number, so that what else belongs to the conversation can be fenced by it too.
    pub fn fence(&self) -> Option<u64> {
        self.conn().ownership.as_ref()?.fence()
    }

    /// The session that this one is a fork of, as its options named it: because they asked for a fork
    /// ([`fork_session`](Options#structfield.fork_session)), or because somebody else has it
    /// ([`OnBusy::Fork`](crate::OnBusy::Fork)). `None` for the fork of a conversation that was
    /// [continued](Options#structfield.continue_conversation) or named by its title: the CLI does not say which one it was.
    pub fn forked_from(&self) -> Option<SessionId> {
        let claimed = self.conn().ownership.as_ref().and_then(|own| own.fork_of());
        let options = self.origin();
        let asked = || SessionId::from_wire(options.resume.as_deref().filter(|_| options.fork_session)?);
        claimed.or_else(asked)
    }

    /// What the session was started with; for one that [claimed](crate::Spare::claim) a spare, with the claim in it. Their
    /// `cwd` is where it was started, as an absolute path.
    ///
    /// Started with [`Options::start`], they make a new session; what was changed at run time is not in them.
    pub fn options(&self) -> &Options {
        self.origin()
    }

    pub(crate) fn origin(&self) -> &Arc<Options> {
        &self.0.settings.origin
    }

    /// The CLI's answer to `initialize`: commands, models, agents, account, …
    pub fn initialized(&self) -> &InitializeReply {
        &self.0.initialized
    }

    /// Introduces this program to the CLI again, with the same hooks and servers, and returns what the CLI says now.
    ///
    /// For when something may have got lost on the way to a CLI elsewhere: requests that it lists as open and that never came here
    /// reach their handlers, the others do not come twice. A hook that is being called at that time is called off; its tool call is
    /// refused, and the model told to try again.
    ///
    /// # Cancel safety
    /// As [`request`](Self::request).
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn reinitialize(&self) -> Result<InitializeReply> {
        self.request(&*self.0.settings.initialize).await
    }

    /// The latest `system/init`; the CLI sends one at the start of every turn, so `None` before the first.
    pub fn init(&self) -> Option<Init> {
        let frame = self.conn().init().borrow().clone()?;
        frame.decode_as().ok()
    }

    /// The CLI's version, from its answer to `initialize`; for a CLI that does not tell it there, from the latest `system/init`,
    /// or from what it answered to `--version`. A CLI on this machine is asked that beside its start, once for each program file,
    /// unless it runs as another user, or behind a wrapper or [`executable_args`](Options::executable_args). `None` as long as nothing told it.
    ///
    /// An untested one is logged as a warning, each version once in a process, and never refused; what one lacks is said by
    /// [`CliVersion::lacks`].
    pub fn cli_version(&self) -> Option<CliVersion> {
        let told = self.0.initialized.claude_code_version.clone();
        let version = told.or_else(|| self.init()?.claude_code_version);
        version
            .map(CliVersion::new)
            .or_else(|| self.0.settings.asked_version.get().cloned())
    }

    /// Whether the CLI announced a capability, such as `interrupt_receipt_v1`.
    pub fn has_capability(&self, capability: &str) -> bool {
        let in_init = |init: Init| {
            init.capabilities
                .iter()
                .flatten()
                .any(|listed| listed == capability)
        };
        self.0.initialized.has_capability(capability) || self.init().is_some_and(in_init)
    }

    fn require(&self, feature: &'static str, capability: &'static str) -> Result<()> {
        if self.has_capability(capability) {
            Ok(())
        } else {
            Err(Error::new(Kind::Unsupported { feature, capability }))
        }
    }

    /// The process id of the CLI, where there is one on this machine.
    pub fn pid(&self) -> Option<u32> {
        self.conn().pid
    }

    /// Background work, subagents and tasks as they stand.
    pub fn tasks(&self) -> Tasks {
        self.conn().core().tasks()
    }

    /// What the session used since it was started or resumed here.
    pub fn usage(&self) -> SessionUsage {
        self.conn().core().usage()
    }

    /// Counts: frames, lag, bytes held, unanswered requests, unknown kinds, misfits.
    pub fn stats(&self) -> Stats {
        self.conn().stats()
    }

    pub(crate) fn note_decoded(&self, drift: &[Drift], misfit: bool) {
        let misfits = u64::from(misfit);
        // It is counted whatever has happened.
        self.conn().note(Input::Decoded { misfits, drift });
    }

    // ---- Control ------------------------------------------------------------------------------------------------

    /// Sends a control request and waits for its typed answer, at most for the control deadline (60 s unless set).
    ///
    /// Every request that an SDK may send is a type in [`outrigger_protocol::outbound`]; the common ones have methods here.
    ///
    /// # Cancel safety
    /// Dropped before the request was written, nothing is sent. Dropped later, the CLI is told by
    /// `control_cancel_request` that the answer is not wanted; what it did already stays done.
    ///
    /// # Errors
    /// When the CLI refuses ([`Error::as_refusal`]), the deadline passes, the answer has an unexpected shape, or the session
    /// has ended.
    pub async fn request<R: ControlRequest>(&self, request: &R) -> Result<R::Reply> {
        self.request_within(request, self.0.settings.control_deadline)
            .await
    }

    /// Like [`request`](Self::request) with a deadline of its own, for requests that take long (`mcp_call`, a sign-in).
    ///
    /// # Cancel safety
    /// As [`request`](Self::request).
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn request_within<R: ControlRequest>(
        &self,
        request: &R,
        deadline: Duration,
    ) -> Result<R::Reply> {
        let body = encode_request(R::SUBTYPE, request)?;
        let payload = self
            .conn()
            .request(R::SUBTYPE, body.clone(), Some(deadline))
            .await?;
        self.conn().changes(|changes| changes.note(R::SUBTYPE, &body));
        R::read_reply(Some(&payload))
            .map_err(|error| Error::misfit(format!("the answer to `{}`", R::SUBTYPE), error))
    }

    /// Sends a control request that has no type, and returns its payload as it came (`null` when there is none).
    ///
    /// `fields` must be a JSON object, without the `subtype`.
    ///
    /// # Cancel safety
    /// As [`request`](Self::request).
    ///
    /// # Errors
    /// As [`request`](Self::request), and when `fields` is no object.
    pub async fn raw_request(&self, subtype: &str, fields: impl Serialize) -> Result<RawJson> {
        let body = encode_request(subtype, &fields)?;
        let payload = self
            .conn()
            .request(subtype, body.clone(), Some(self.0.settings.control_deadline))
            .await?;
        self.conn().changes(|changes| changes.note(subtype, &body));
        Ok(payload)
    }
}

impl Session {
    /// Who would decide about a call of this tool with this input, by the options that the session was started with; see
    /// [`Options::explain`]. What was changed since (the mode, rules, settings) is not known here.
    pub fn explain(&self, tool: &str, input: &RawJson) -> Explanation {
        self.origin().explain(tool, input)
    }
}

impl Context {
    /// The session that asks. Its control methods may be called from within a callback.
    ///
    /// `None` while the session is being started (a hook or an MCP server may be called before), and once its last handle was
    /// dropped. Holding the session keeps it from ending.
    pub fn session(&self) -> Option<Session> {
        self.conn()?.handle::<WeakSession>()?.upgrade()
    }
}

pub(crate) fn exit_of(ended: Error) -> Result<Exit> {
    // What was said last may be lost with the session.
    let is_ours = ended.as_lease_problem().is_none();
    ended.exit().filter(|_| is_ours).ok_or(ended)
}
