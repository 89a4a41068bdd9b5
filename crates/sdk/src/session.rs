//! The handle of a running agent.

mod mcp_servers;
mod turn;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_protocol::drift::Drift;
use outrigger_protocol::inbound::system::{CommandsChanged, Init};
use outrigger_protocol::outbound::control::{ApplyFlagSettings, ControlRequest, Interrupt};
use outrigger_protocol::outbound::{Initialize, InitializeReply, Priority};
use outrigger_protocol::shared::JsonObject;
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
use crate::observer::Observer;
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
/// The handle is cheap to clone; clones share the agent. All methods work at any time and from any task, whether or not the program
/// reads events.
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
/// Processes that a command detached on purpose (`setsid`, `nohup … &`) survive all of these, as they do when the CLI ends by
/// itself. With [`Detached::End`](crate::Detached::End) they end with the process.
///
/// When the last handle (a [`Turn`] holds one) is dropped, the SDK ends the process in the background as [`close`](Self::close)
/// does, or kills it at once if no runtime is left.
#[derive(Debug, Clone)]
pub struct Session(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    conn: Arc<Conn>,
    initialized: Arc<InitializeReply>,
    settings: SessionSettings,
}

/// A handle that does not keep the session alive; of [`Session::downgrade`].
#[derive(Debug, Clone)]
pub struct WeakSession(Weak<Handle>);

impl WeakSession {
    /// A handle that keeps the session alive; `None` once the last of those was dropped.
    pub fn upgrade(&self) -> Option<Session> {
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

/// The options that the running session needs.
#[derive(Debug, Clone)]
pub(crate) struct SessionSettings {
    pub(crate) control_deadline: Duration,
    pub(crate) verbatim_prompts: bool,
    pub(crate) wants_output: bool,
    /// The MCP servers in this program, and the result of waiting for MCP servers before the first prompt.
    pub(crate) mcp: Arc<Bridge>,
    pub(crate) mcp_startup: watch::Receiver<McpStartup>,
    /// The options that the session was started with.
    pub(crate) origin: Arc<Options>,
    /// The `initialize` request that was sent.
    pub(crate) initialize: Arc<Initialize>,
    /// Where the session's conversation is found.
    pub(crate) source: Arc<Source>,
    /// The CLI's version, once `--version` has reported it.
    pub(crate) asked_version: Arc<OnceLock<CliVersion>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.conn.abandon();
    }
}

impl Session {
    pub(crate) fn new(conn: Arc<Conn>, initialized: InitializeReply, settings: SessionSettings) -> Self {
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

    /// Where the session's conversation is found.
    pub(crate) fn source(&self) -> &Source {
        &self.0.settings.source
    }

    pub(crate) fn startup_of_mcp(&self) -> &watch::Receiver<McpStartup> {
        &self.0.settings.mcp_startup
    }

    // ---- Prompts ------------------------------------------------------------------------------------------------

    /// Sends a prompt that gets a turn of its own.
    ///
    /// While other prompts of this session wait or run, the SDK holds the prompt back, so that the CLI neither merges it with them
    /// nor folds it into their turns. Prompts are sent in the order of the calls. The call returns at once; the [`Turn`] reports
    /// the rest.
    ///
    /// A string is text for the model, also if it begins with `/`; [`Prompt::command`] makes a prompt that runs a slash command. A text
    /// that looks like one is sent, with a [warning](Turn::warnings).
    ///
    /// # Cancel safety
    /// The future completes at its first poll. Dropped before, it sends nothing. The [`Turn`] that it returns runs on when it is
    /// dropped.
    ///
    /// # Errors
    /// When the prompt is empty, or is a command that the CLI does not know; when more than 1024 prompts are open; when the
    /// session has ended.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        // `later`, so that it is not folded into a turn that background work began.
        self.send(prompt.into(), Dispatch::Alone, Priority::Later)
    }

    /// Sends a prompt to the CLI's own queue at once. It runs after the current turn, perhaps merged with other prompts in the
    /// queue.
    ///
    /// # Cancel safety
    /// As [`prompt`](Self::prompt).
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub async fn queue(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        self.send(prompt.into(), Dispatch::AtOnce, Priority::Later)
    }

    /// Steers the current turn: the CLI folds the prompt into it at the next tool boundary, and the prompt ends with that turn.
    /// Without such a boundary, or without a current turn, the prompt gets a turn of its own.
    ///
    /// # Cancel safety
    /// As [`prompt`](Self::prompt).
    ///
    /// # Errors
    /// As [`prompt`](Self::prompt).
    pub async fn steer(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        self.send(prompt.into(), Dispatch::AtOnce, Priority::Next)
    }

    /// Ends the current turn and begins a turn for this prompt. The other turn ends as
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

    /// Interrupts the current turn, and returns when it has ended. A prompt that was sent just before counts as running: it ends
    /// as [`Interrupted`](crate::Verdict::Interrupted), or as [`Cancelled`](crate::Verdict::Cancelled) if
    /// its turn had not begun.
    ///
    /// Until then the SDK sends no further prompt, so the next turn begins only after this one has drained. Foreground and
    /// background agents end with the turn, background shells do not. Prompts in the CLI's queue survive and run next. Without a
    /// current turn the call does nothing.
    ///
    /// The CLI has a deadline of 10 seconds (set by `interrupt_deadline`) to confirm, and as long again to end the turn.
    ///
    /// # Cancel safety
    /// Dropped before the request was written, nothing happens. Dropped later, the turn may end as interrupted or run on: the SDK
    /// cancels the request, which may come too late. From then on prompts are sent again.
    ///
    /// # Errors
    /// When a deadline passes, or the session has ended.
    pub async fn interrupt(&self) -> Result<Interrupted> {
        self.conn().interrupt(Interrupt::default()).await
    }

    /// Like [`interrupt`](Self::interrupt), and also takes back the prompts in the CLI's queue.
    ///
    /// # Cancel safety
    /// As [`interrupt`](Self::interrupt). The turn of each queued prompt reports whether it was taken back.
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

    /// Waits for the end of the run: no prompt is open, no turn runs, and no background agent is left whose end would begin
    /// another turn. Background shells do not count; they may run for ever.
    ///
    /// A turn's outcome is often not the end of the run: agents may go on in the background, and report in ambient turns. The SDK
    /// follows the CLI's `session_state_changed`; for a CLI that does not send it, the tasks that the CLI reported.
    ///
    /// `ceiling` limits how long background work alone may keep the run from ending, counted from the last result. The clock stops
    /// while a turn runs and while a request is open; a turn has the watchdogs
    /// ([`first_token_deadline`](crate::Options::first_token_deadline)). `None` waits for ever.
    ///
    /// # Cancel safety
    /// Dropping the future stops nothing; a new one goes on waiting. The ceiling does not start anew.
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
    /// [`close`](Self::close) does. When the ceiling is reached, the SDK ends what still runs; [`Drained`] reports it.
    ///
    /// # Cancel safety
    /// Dropped while the run goes on, only this handle is dropped: the session goes on if there is another. Dropped once the
    /// closing has begun, the closing goes on.
    ///
    /// # Errors
    /// When the session ended before the run did, or the SDK could not observe the end of the process.
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

    /// How long the session may take in all from now on, in place of [`run_deadline`](Options::run_deadline); `None` for no limit.
    pub fn set_run_deadline(&self, deadline: impl Into<Option<Duration>>) {
        self.conn().note(Input::RunDeadline(deadline.into()));
    }

    /// The state that the CLI reported last; `None` before its first report, and for CLIs that never report it.
    pub fn state(&self) -> Option<SessionState> {
        self.conn().core().state()
    }

    /// Waits for the process to end, and returns how it ended. There is no deadline: a session may live for days.
    ///
    /// # Cancel safety
    /// Dropping the future stops nothing.
    pub async fn wait_ended(&self) -> Error {
        self.conn().wait_ended().await
    }

    /// Ends the session: closes the CLI's stdin, gives it time to finish (5 s unless set), then SIGTERM, then (after another
    /// 5 s) SIGKILL, to the whole process group, and reaps it. All that waits gets an error.
    ///
    /// The current turn may finish within that time; interrupt it first if it should not.
    ///
    /// Returns how the process ended. The CLI exits with code 1 when the last result was an error; that is not a crash.
    ///
    /// # Cancel safety
    /// Dropped before its first poll, only this handle is dropped. Dropped later, the closing goes on.
    ///
    /// # Errors
    /// When the SDK could not observe the end of the process, or another holder has taken the session
    /// ([`Error::as_lease_problem`]).
    pub async fn close(self) -> Result<Exit> {
        self.conn().close().await;
        exit_of(self.conn().wait_ended().await)
    }

    /// Ends the session at once by SIGKILL to the whole process group.
    ///
    /// # Cancel safety
    /// Dropped before its first poll, only this handle is dropped. Dropped later, the process is killed all the same.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub async fn kill(self) -> Result<Exit> {
        self.conn().kill("it was killed").await;
        exit_of(self.conn().wait_ended().await)
    }

    // ---- Streams ------------------------------------------------------------------------------------------------

    /// Every frame from now on, as it came: frames of all turns, ambient turns included, and of control traffic.
    ///
    /// A reader may fall behind: frames that do not fit into the session's memory wait on disk. If the disk has no room either,
    /// they are dropped, and the reader gets their number in their place. See [`SlowReader`](crate::SlowReader).
    pub fn frames(&self) -> Frames {
        Frames::new(self.conn().tap())
    }

    /// The events that belong to no prompt of this session, from now on: turns that background work or schedules begin, and
    /// notices between turns.
    ///
    /// A session that was resumed may begin with the turn of a call that a hook deferred, before this can be called. The first call
    /// also has the events of that turn, if no prompt was sent before and they are not more than 1 MiB.
    ///
    /// A reader may fall behind, as with [`frames`](Self::frames).
    pub fn ambient(&self) -> Ambient {
        Ambient::new(self.conn().listen())
    }

    /// A handle that does not keep the session alive, for what watches sessions.
    pub fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.0))
    }

    /// Tells an observer at once of all that happens from now on, until the session ends.
    ///
    /// The observer is kept until then, and must not wait or call the session; see [`Observer`].
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.conn().observe(observer);
    }

    // ---- What is known ------------------------------------------------------------------------------------------

    /// The CLI's id of the conversation. It is known at once for a session that was resumed by its id ([`Options::resume`]) or
    /// that claimed a spare. For others it is `None` until the first turn begins, since only the CLI knows it. It may change
    /// (`/clear`): see [`ids`](Self::ids). An id that could not be a file name is dropped.
    pub fn id(&self) -> Option<SessionId> {
        self.conn().core().session_id().and_then(SessionId::from_wire)
    }

    /// The ids that the conversation had, oldest first; the last 64 are remembered.
    pub fn ids(&self) -> Vec<SessionId> {
        let core = self.conn().core();
        core.session_ids().filter_map(SessionId::from_wire).collect()
    }

    /// The number of the session's lease, if it has one ([`Options::lease`]). A later lease has a greater number, so the program
    /// can fence other data of the conversation by it, too.
    pub fn fence(&self) -> Option<u64> {
        self.conn().ownership.as_ref()?.fence()
    }

    /// The session that this one is a fork of, as its options named it: because they set
    /// [`fork_session`](Options#structfield.fork_session), or because another holder has the session
    /// ([`OnBusy::Fork`](crate::OnBusy::Fork)). `None` for the fork of a conversation that was
    /// [continued](Options#structfield.continue_conversation) or named by its title: the CLI does not say which one it was.
    pub fn forked_from(&self) -> Option<SessionId> {
        let claimed = self.conn().ownership.as_ref().and_then(|own| own.fork_of());
        let options = self.origin();
        let asked = || SessionId::from_wire(options.resume.as_deref().filter(|_| options.fork_session)?);
        claimed.or_else(asked)
    }

    /// The options that the session was started with; for one that [claimed](crate::Spare::claim) a spare, with the claim in them.
    /// Their `cwd` is absolute.
    ///
    /// [`Options::start`] makes a new session of them. They do not have the changes made at run time.
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

    /// Sends `initialize` again, with the same hooks and servers, and returns the CLI's reply.
    ///
    /// Use it when frames may have been lost on the way to a CLI on another machine: requests that the CLI lists as open and that
    /// never came here reach their callbacks, the others do not come twice. The CLI cancels a hook call that is open at that time;
    /// it denies the tool call, and the model reads that it may try again.
    ///
    /// # Cancel safety
    /// As [`request`](Self::request).
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn reinitialize(&self) -> Result<InitializeReply> {
        let mut request = Initialize::clone(&self.0.settings.initialize);
        // It may have been changed since.
        request.title = None;
        self.bridge().introduce(&mut request, false).await;
        self.request(&request).await
    }

    /// The latest `system/init`; the CLI sends one at the start of every turn, so `None` before the first.
    pub fn init(&self) -> Option<Init> {
        let frame = self.conn().init().borrow().clone()?;
        frame.decode_as().ok()
    }

    /// The CLI's version, from its reply to `initialize`; if that does not have it, from the latest `system/init`, or from
    /// `--version`. The SDK runs a CLI on this machine with `--version` beside its start, once for each program file, unless the
    /// CLI runs as another user, or behind a wrapper or [`executable_args`](Options::executable_args). `None` while the version is
    /// not known.
    ///
    /// The SDK logs a warning for an untested version, once per process, and never rejects it; [`CliVersion::lacks`] lists what a
    /// version lacks.
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

    /// The process id of the CLI, if it runs on this machine.
    pub fn pid(&self) -> Option<u32> {
        self.conn().pid
    }

    /// The background tasks and subagents, with their current state.
    pub fn tasks(&self) -> Tasks {
        self.conn().core().tasks()
    }

    /// The tokens and cost of the session since this program started or resumed it, those of the processes before a
    /// [`revive`](Self::revive) included.
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

    /// Sends a control request and waits for its typed reply, at most for the control deadline (60 s unless set).
    ///
    /// Every SDK request is a type in [`outrigger_protocol::outbound`]; the common ones have methods here.
    ///
    /// # Cancel safety
    /// Dropped before the request was written, nothing is sent. Dropped later, the SDK sends `control_cancel_request`; what the
    /// CLI did already stays done.
    ///
    /// # Errors
    /// When the CLI rejects the request ([`Error::as_refusal`]), the deadline passes, the reply has an unexpected shape, or the
    /// session has ended.
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
        let body = self.with_hooks_kept(R::SUBTYPE, encode_request(R::SUBTYPE, request)?)?;
        let payload = self
            .conn()
            .request(R::SUBTYPE, body.clone(), Some(deadline))
            .await?;
        self.conn().changes(|changes| changes.note(R::SUBTYPE, &body));
        R::read_reply(Some(&payload))
            .map_err(|error| Error::misfit(format!("the answer to `{}`", R::SUBTYPE), error))
    }

    /// Refuses a change of settings that would switch the hooks of this program off, and has them kept on by any other of the variables.
    fn with_hooks_kept(&self, subtype: &str, body: RawJson) -> Result<RawJson> {
        if subtype != ApplyFlagSettings::SUBTYPE || self.origin().hosting.handlers.hooks.is_empty() {
            return Ok(body);
        }
        let unwritable = |error| Error::invalid_because("settings", error);
        let mut fields: BTreeMap<String, RawJson> = body.read().map_err(unwritable)?;
        // The CLI refuses what is no object.
        let Some(settings) = fields.get("settings").cloned().map(JsonObject::try_from) else {
            return Ok(body);
        };
        let Ok(settings) = settings else { return Ok(body) };
        let settings = self.origin().with_hooks_kept(settings).map_err(Error::of)?;
        fields.insert("settings".to_owned(), settings.into());
        RawJson::encode(&fields).map_err(unwritable)
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
        let body = self.with_hooks_kept(subtype, encode_request(subtype, &fields)?)?;
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
