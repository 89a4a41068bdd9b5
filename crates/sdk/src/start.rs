//! From options to a running session.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_protocol::framer::LineFramer;
use outrigger_protocol::outbound::{ApplyFlagSettings, ControlRequest as _, InitializeReply};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::child::Local;
use crate::conn::budget::SlowReader;
use crate::conn::core::Input;
use crate::conn::encode_request;
use crate::conn::{Closing, Conn, Limits};
use crate::discover::{self, VersionAnswer};
use crate::env::Surroundings;
use crate::error::{Error, Kind, Result};
use crate::fields::Fields;
use crate::lease;
use crate::location;
use crate::mcp::{Bridge, hold_prompts};
use crate::options::transport::Transport;
use crate::options::{Auth, Host, Launch, Options, OtherAccount, PermissionPrompts};
use crate::peer::BoxFuture;
use crate::phase::{Phase, Stall};
use crate::session::{Session, SessionSettings};
use crate::spawn::{spawn, spawn_in};
use crate::store::{self, Mirror, Places, Source};
use crate::usage::SessionUsage;
use crate::version::{AWAITS_INITIALIZE, CliVersion};

/// How long the CLI may take to reply to `initialize` unless set, and how much longer with hooks.
const INITIALIZE: Duration = Duration::from_secs(60);
const HOOKS: Duration = Duration::from_secs(600);

impl Options {
    /// What the command line announces for a session with these options.
    pub(crate) fn host(&self) -> Host {
        let asks_host = self.permission_prompt_tool_name.is_none()
            && self.permission_prompts != Some(PermissionPrompts::None);
        let host = if asks_host {
            Host::answering_permissions()
        } else {
            Host::default()
        };
        if self.hosting.is_local() {
            host
        } else {
            host.remote()
        }
    }
}

/// Starts the builder of a session: `Agent::builder()`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Agent;

impl Agent {
    /// Options with their defaults: Claude Code's own system prompt and tools, no settings files, no permissions beyond those that
    /// the CLI grants by itself, and the account that `claude` itself would use here ([`Auth::Inherit`]): a key or token of the
    /// environment, else the stored login. [`Options::auth`] chooses another one.
    pub fn builder() -> Options {
        Options::new(Auth::Inherit)
    }
}

/// Callbacks, transport and limits.
impl Options {
    /// The transport, which starts the CLI; [`Local`] unless set.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.hosting.transport = Some(Arc::new(transport));
        self
    }

    /// How long the transport may take to start the CLI; 30 s unless set.
    pub fn start_deadline(mut self, deadline: Duration) -> Self {
        self.hosting.start_deadline = deadline;
        self
    }

    /// How long the CLI may take to reply to `initialize`. With many plugins or MCP servers it can be slow.
    ///
    /// The default is 60 s, without the time in which `SessionStart` and `Setup` hooks run, up to ten minutes of that. A deadline
    /// that is set includes the hooks.
    pub fn initialize_deadline(mut self, deadline: Duration) -> Self {
        self.hosting.initialize_deadline = Some(deadline);
        self
    }

    /// How long the CLI may take to reply to a control request; 60 s unless set.
    pub fn control_deadline(mut self, deadline: Duration) -> Self {
        self.hosting.control_deadline = deadline;
        self
    }

    /// How long the CLI may take to confirm an interrupt, and then again to end the turn; 10 s unless set.
    pub fn interrupt_deadline(mut self, deadline: Duration) -> Self {
        self.hosting.interrupt_deadline = deadline;
        self
    }

    /// How long the model may take to begin its answer, at the beginning of a turn and after each round of tools; 10 minutes
    /// unless set, `None` for no limit. The time starts anew with each sign of life of the main conversation: a retry of the API
    /// request, a compaction, a hook. Frames about background work are none.
    ///
    /// After that the SDK interrupts the turn, which ends with an error whose [`stalled`](crate::Error::stalled) names the phase;
    /// the session goes on. If the CLI does not end the turn (see [`interrupt_deadline`](Self::interrupt_deadline)), the SDK ends
    /// its process by SIGTERM, and by SIGKILL after [`term_grace`](Self::term_grace).
    ///
    /// The time does not run while a tool of the main conversation runs (a subagent in the foreground is one), or while the CLI
    /// waits for a reply of this program or of a person. Without partial messages the whole answer of the model counts as its
    /// first token.
    pub fn first_token_deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.hosting.patience.first_token = deadline.into();
        self
    }

    /// How long the model may be silent in the middle of an answer; 5 minutes unless set, `None` for no limit. This needs partial
    /// messages ([`include_partial_messages`](Self::include_partial_messages)). See
    /// [`first_token_deadline`](Self::first_token_deadline) for what happens after that.
    pub fn between_events_deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.hosting.patience.between_events = deadline.into();
        self
    }

    /// How long a turn may take in all, whatever it waits for: the model, tools, a person. `None`, the default, for no limit.
    ///
    /// The time begins when the prompt is sent to the CLI, or when the turn before it ends. After that the SDK interrupts the turn, which
    /// ends with an error: its [`cause`](crate::Error::cause) is [`DeadlinePassed`](crate::Cause::DeadlinePassed), and
    /// [`outcome`](crate::Error::outcome) has the usage. The session goes on. If the CLI does not end the turn within
    /// [`interrupt_deadline`](Self::interrupt_deadline), its process is ended by SIGTERM, and by SIGKILL after
    /// [`term_grace`](Self::term_grace). Turns that background work begins have the same limit.
    pub fn turn_deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.hosting.patience.turn = deadline.into();
        self
    }

    /// How long the session may take in all, background work included, counted from its start (from the claim, for one that claims a
    /// spare). `None`, the default, for no limit.
    ///
    /// After that the SDK interrupts the turn that runs, and ends the process as [`turn_deadline`](Self::turn_deadline) does. All that
    /// waits gets an error of the [`cause`](crate::Error::cause) [`DeadlinePassed`](crate::Cause::DeadlinePassed). See
    /// [`Session::set_run_deadline`] for another time.
    pub fn run_deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.hosting.run_deadline = deadline.into();
        self
    }

    /// What earlier processes of the session that is resumed have used, so that [`Session::usage`] goes on from there.
    ///
    /// Give what [`Session::usage`] returned in the program before, from where the program has kept it (with the feature `serde` it can
    /// be written). Or give what the CLI recorded, `SessionUsage::from(&cost)` for the
    /// [`cost`](outrigger_sessions::Sessions::cost) of the stored session: the CLI records it when it ends in good order, so what a
    /// killed process has used is missing there, and a fork's record has the cost of the session that it was forked from.
    ///
    /// [`Session::revive`] goes on by itself. Budgets are not charged with it. Only for a session that goes on: with `resume` or
    /// `continue_conversation`.
    pub fn usage_so_far(mut self, usage: SessionUsage) -> Self {
        self.hosting.usage_so_far = Some(usage);
        self
    }

    /// Clears what says how the session begins, so that it begins as a new one: `resume`, `continue_conversation`, `fork_session`,
    /// `session_id`, `resume_session_at`, `resume_drops_turn`, and [`usage_so_far`](Self::usage_so_far).
    ///
    /// See also [`go_on_with`](Self::go_on_with).
    pub fn begin_anew(mut self) -> Self {
        self.resume = None;
        self.continue_conversation = false;
        self.fork_session = false;
        self.session_id = None;
        self.resume_session_at = None;
        self.resume_drops_turn = None;
        self.hosting.usage_so_far = None;
        self
    }

    /// Resumes this session, whatever the options say of how a session begins: they may be those with which it was started. Also clears
    /// `title` and `worktree`, since the session has its own.
    ///
    /// See also [`begin_anew`](Self::begin_anew).
    pub fn go_on_with(self, session_id: impl Into<String>) -> Self {
        let mut options = self.begin_anew().resume(session_id);
        // It may have been changed.
        options.title = None;
        // The CLI goes back to that of the session by itself; without a name it would make another one.
        options.worktree = None;
        options
    }

    /// How long the CLI may take to end after its stdin closed, before SIGTERM; 5 s unless set.
    pub fn close_grace(mut self, grace: Duration) -> Self {
        self.hosting.close_grace = grace;
        self
    }

    /// How long the CLI may take to end after SIGTERM, before SIGKILL; 5 s unless set.
    pub fn term_grace(mut self, grace: Duration) -> Self {
        self.hosting.term_grace = grace;
        self
    }

    /// How many bytes may wait in memory for all readers of the session together (turns, [`Frames`](crate::Frames),
    /// [`Ambient`](crate::Ambient)), and the same number again for prompts that wait to be sent; 64 MiB unless set.
    /// [`slow_reader`](Self::slow_reader) decides what happens to more frames. A prompt beyond the limit is rejected with an error
    /// that [`is_busy`](crate::Error::is_busy), unless it is the only one.
    ///
    /// In addition, the line that is being read takes up to twice [`max_line_bytes`](Self::max_line_bytes).
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.hosting.buffer_bytes = bytes;
        self
    }

    /// What happens to frames beyond [`buffer_bytes`](Self::buffer_bytes); they wait on disk unless set.
    pub fn slow_reader(mut self, policy: SlowReader) -> Self {
        self.hosting.slow_reader = policy;
        self
    }

    /// Sets a callback for each line that the CLI writes on stderr, without its line ending.
    ///
    /// The lines are not redacted, unlike those of [`Error::stderr_tail`](crate::Error::stderr_tail), so they may have secrets.
    /// Bytes that are not UTF-8 are replaced, and a line of more than 16 KiB comes in parts.
    ///
    /// The callback runs on its own thread and may block; that only delays its next line. Up to 1024 lines, and 1 MiB, wait for
    /// it. Lines beyond that are dropped, and one line in their place has their number:
    /// `[outrigger: 12 lines of 345 bytes were dropped here]`. A panic only affects its line. The last lines may arrive after the
    /// end of the session. Lines of processes that [outlive the CLI](crate::Detached::Leave) do not.
    ///
    /// A session that [claims](crate::Spare::claim) a spare has the callback of the spare's options.
    pub fn stderr(mut self, callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.hosting.stderr = Some(crate::stderr::StderrCallback::new(callback));
        self
    }

    /// Starts the CLI and returns when it has replied to `initialize`.
    ///
    /// # Cancel safety
    /// Dropping the future ends the process in the background, as [`Session::close`] does. No process, task or temporary file is
    /// left.
    ///
    /// # Errors
    /// When the options contradict each other or the CLI is not found (then nothing was started); when the CLI does not start,
    /// ends early (the error has its exit and stderr), or does not reply in time; when it does not confirm an option that the
    /// session depends on, or uses another account than the chosen one; and when it reports that it has no account
    /// ([`Cause::NotLoggedIn`](crate::Cause::NotLoggedIn), see [`Auth`]).
    ///
    /// The session is warm: the process runs, and the first prompt only waits for the model. A session that is started early and
    /// kept is what the official SDK calls a warm start; see [`prewarm`](Self::prewarm) for a process that starts before the
    /// directory of its session is known.
    pub async fn start(self) -> Result<Session> {
        self.start_boxed().await
    }

    /// A crate that awaits an async function compiles all of its body anew. Boxed here, it is compiled once, with this crate.
    #[inline(never)]
    fn start_boxed(self) -> BoxFuture<'static, Result<Session>> {
        Box::pin(async move {
            let opened = Opened::open(self, Role::Session).await?;
            let initialized = opened.initialize().await?;
            let going_on = opened.source.going_on().cloned();
            let used = opened.options.hosting.usage_so_far.clone();
            let session = opened.into_session(initialized);
            if let Some(used) = used {
                session.conn().note(Input::UsedEarlier(&used));
            }
            if let Some(id) = going_on {
                session.conn().note(Input::ExpectedSessionId(&id));
            }
            Ok(session)
        })
    }

    /// The same as [`start`](Self::start), under the official SDK's name: there a query starts its process late, and `startup`
    /// starts it early. Here every session starts early.
    ///
    /// # Cancel safety
    /// As [`start`](Self::start).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn startup(self) -> Result<Session> {
        self.start().await
    }
}

/// The purpose of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A session.
    Session,
    /// A spare, to be claimed.
    Spare,
}

/// A CLI that runs and is not a session yet. Every session is made by [`open`](Self::open),
/// [`initialize`](Self::initialize) and [`into_session`](Self::into_session). Dropping it ends the process.
pub(crate) struct Opened {
    pub(crate) conn: Arc<Conn>,
    /// The MCP servers in this program.
    pub(crate) bridge: Arc<Bridge>,
    /// The launch without its files, which live as long as the process.
    pub(crate) launch: Launch,
    /// The options that the process was started with.
    pub(crate) options: Options,
    /// The id for a new session that the process was started with, also one that was chosen here.
    pub(crate) session_id: Option<String>,
    /// The location of the session's conversation.
    pub(crate) source: Source,
    /// The lease of the session. The lease of a spare is acquired by the claim.
    ownership: Option<Arc<lease::Ownership>>,
    role: Role,
    /// The CLI's version, if `--version` ran beside the start.
    version: Arc<OnceLock<CliVersion>>,
    asking: Option<AbortHandle>,
    /// Whether a session has taken over, which then ends the process.
    is_session: bool,
}

impl Opened {
    /// Starts the CLI. Boxed for the same reason as [`Options::start_boxed`].
    #[inline(never)]
    pub(crate) fn open(options: Options, role: Role) -> BoxFuture<'static, Result<Self>> {
        Box::pin(Self::open_now(options, role))
    }

    async fn open_now(mut options: Options, role: Role) -> Result<Self> {
        // Once: a handler may change its rules at any time.
        options.hosting.handlers.take_rules();
        let hosting = options.hosting.clone();
        options.warn();
        let mut host = options.host();
        if role == Role::Spare {
            host = host.awaiting_claim();
        }

        // What contradicts is found before a store is asked.
        let surroundings = hosting.surroundings();
        let checked = options.rules(&surroundings, host);
        checked.map_err(Error::of)?;
        let mut concrete = options.clone();
        let found = match host.remote {
            false => store::find(&mut concrete, &surroundings).await?,
            true => None,
        };
        // Before it is loaded: what is loaded is to be the last that was said.
        let ownership = match role {
            Role::Session => lease::claim(&mut concrete, &surroundings, host.remote).await?,
            Role::Spare => lease::for_spare(&mut concrete, &surroundings)?,
        };
        let session_id = concrete.session_id.clone();
        let healed = match found {
            Some(found) => {
                let config = location::users_config(&concrete, &surroundings);
                let (is_fork, user) = (concrete.fork_session, concrete.user);
                store::heal(found, config, is_fork, user, ownership.as_ref()).await?
            }
            None => store::Healed::default(),
        };
        let (restored, notes) = (healed.restored, healed.notes);
        let mut source = Source::of(&concrete, &surroundings, host.remote);

        // Looks at the disk, and may look at many places.
        let handlers = hosting.handlers.clone();
        let (mut options, launch) = tokio::task::spawn_blocking(move || {
            let announced = handlers.announced(concrete, host.answers_permissions);
            let wrong = |error| Error::of(error);
            let draft = announced.draft(&surroundings, host).map_err(wrong);
            let launch = draft.and_then(|mut draft| {
                if !host.remote && restored.is_none() {
                    store::house(&announced, &mut draft.launch)?;
                }
                if let Some(restored) = restored {
                    restored.put(&announced, &mut draft.launch)?;
                }
                draft.hand_over().map_err(wrong)
            });
            (options, launch)
        })
        .await
        .map_err(|error| Error::invalid_because("options", error))?;
        let mut launch = launch?;
        hosting.handlers.introduce(&mut launch.initialize);
        if role == Role::Session && !host.remote {
            await_initialize(&mut launch, &options).await;
        }
        // This process may change its directory; what is started again later is to find the session where it was.
        if role == Role::Session {
            options.cwd = Some(launch.cwd.clone());
        }

        let transport = hosting.transport.unwrap_or_else(|| Arc::new(Local::new()));
        let opened = tokio::time::timeout(hosting.start_deadline, transport.open(&launch)).await;
        let connection = opened
            .map_err(|_| Error::stalled_at_start(Phase::Start, hosting.start_deadline))?
            .map_err(|source| {
                Error::new(Kind::Spawn {
                    program: launch.program.clone(),
                    cwd: launch.cwd.clone(),
                    source,
                })
            })?;
        let mirror = hosting.store.keeping().map(|keeping| {
            let config = location::config_dir(&launch.env).unwrap_or_default();
            Mirror::new(
                &keeping,
                Places::below(&config, host.remote),
                (hosting.buffer_bytes, &hosting.slow_reader),
                ownership.as_ref(),
                launch.guard.settled(),
                notes,
            )
        });
        // A home that the transport names is on this machine.
        if !host.remote || transport.home().is_some() {
            source.config = location::config_dir(&launch.env);
        }
        let bridge = Arc::new(Bridge::new(hosting.mcp.servers()));
        let conn = Conn::start(
            connection,
            crate::conn::Answerers {
                mcp: Arc::clone(&bridge) as _,
                ..hosting.handlers.host()
            },
            Limits {
                max_line: options.max_line_bytes.unwrap_or(LineFramer::DEFAULT_CAP),
                buffer: hosting.buffer_bytes,
                slow_reader: hosting.slow_reader,
                stderr_tail: hosting.stderr_tail_bytes,
                control_deadline: hosting.control_deadline,
                interrupt_deadline: hosting.interrupt_deadline,
                patience: hosting.patience,
            },
            Closing {
                grace: hosting.close_grace,
                term_grace: hosting.term_grace,
            },
            launch
                .secrets
                .iter()
                .map(|secret| secret.reveal().to_owned())
                .collect(),
            crate::conn::Attached {
                guard: Box::new(std::mem::take(&mut launch.guard)),
                mirror: mirror.map(|mirror| mirror as _),
                ownership: ownership.clone().map(|ownership| ownership as _),
                stderr: hosting.stderr,
            },
        );
        if let Some(ownership) = &ownership
            && role == Role::Session
        {
            spawn_in(conn.span.clone(), Arc::clone(ownership).keep(Arc::clone(&conn)));
        }
        bridge.attach(&conn);
        let version = Arc::default();
        let cli = if host.remote {
            None
        } else {
            started_by(&launch, &options)
        };
        let asking = cli.map(|cli| {
            let asking = ask_version(Arc::clone(&conn), cli, Arc::clone(&version));
            spawn_in(conn.span.clone(), asking).abort_handle()
        });
        Ok(Self {
            conn,
            bridge,
            launch,
            options,
            session_id,
            source,
            ownership,
            role,
            version,
            asking,
            is_session: false,
        })
    }

    /// Sends the first request, and checks its reply against the options.
    pub(crate) async fn initialize(&self) -> Result<InitializeReply> {
        Ok(self.initialize_raw().await?.0)
    }

    /// The same, with the raw reply. Boxed for the same reason as [`Options::start_boxed`].
    #[inline(never)]
    pub(crate) fn initialize_raw(&self) -> BoxFuture<'_, Result<(InitializeReply, RawJson)>> {
        Box::pin(self.initialize_now())
    }

    async fn initialize_now(&self) -> Result<(InitializeReply, RawJson)> {
        let mut request = self.launch.initialize.clone();
        self.bridge
            .introduce(&mut request, self.options.hosting.mcp.manifests)
            .await;
        let request = encode_request("initialize", &request)?;
        let exchange = self.conn.request("initialize", request, None);
        let payload = match self.in_time(exchange).await {
            Ok(answered) => answered?,
            Err(after) => {
                // Its last words tell why, so its end is waited for.
                let stall = Stall {
                    phase: Phase::Initialize,
                    after,
                };
                return Err(self.conn.end_stalled(stall).await);
            }
        };
        self.bridge.introduced();
        let initialized = self.read(&payload);
        self.launch.confirm(&initialized).map_err(Error::of)?;
        check_account(&self.launch.auth, &initialized)?;
        // What a spare is claimed for may bring the account: the settings of a directory, or of the claim.
        if self.role == Role::Session {
            self.require_account(&initialized).await?;
        }
        if let Some(version) = &initialized.claude_code_version {
            if let (Some(asking), Some(cli)) = (&self.asking, started_by(&self.launch, &self.options)) {
                asking.abort();
                cli.note(version, &Surroundings::of_this_process()).await;
            }
            CliVersion::new(version.as_str()).warn();
        }
        if initialized.has_capability("msg_lifecycle_v1") {
            self.conn.note(Input::Lifecycle);
        }
        self.settle_plan_mode().await?;
        Ok((initialized, payload))
    }

    /// Has the permission handler decide in plan mode, too, where the settings of the start are a file.
    async fn settle_plan_mode(&self) -> Result<()> {
        let Some(settings) = self.options.late_settings() else {
            return Ok(());
        };
        let request = ApplyFlagSettings::new(settings);
        let request = encode_request(ApplyFlagSettings::SUBTYPE, &request)?;
        let deadline = Some(self.options.hosting.control_deadline);
        match self
            .conn
            .request(ApplyFlagSettings::SUBTYPE, request, deadline)
            .await
        {
            // A CLI that does not know the request has no classifier either.
            Err(error) if error.as_refusal().is_none() => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits for the reply to `initialize`; the error is the time after which it gave up.
    async fn in_time<T>(&self, exchange: impl Future<Output = T>) -> Result<T, Duration> {
        let set = self.options.hosting.initialize_deadline;
        let mut left = set.unwrap_or(INITIALIZE);
        let mut left_for_hooks = if set.is_none() { HOOKS } else { Duration::ZERO };
        tokio::pin!(exchange);
        loop {
            let changed = self.conn.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let for_hooks = left_for_hooks > Duration::ZERO && self.conn.core().runs_hooks();
            let budget = if for_hooks { &mut left_for_hooks } else { &mut left };
            let since = Instant::now();
            tokio::select! {
                biased;
                done = &mut exchange => return Ok(done),
                () = &mut changed => {}
                () = tokio::time::sleep(*budget) => {}
            }
            *budget = budget.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(set.unwrap_or(INITIALIZE));
            }
        }
    }

    /// Decodes a reply to `initialize`, and counts misfits.
    pub(crate) fn read(&self, payload: &RawJson) -> InitializeReply {
        let (initialized, misfits) = read_reply(payload);
        self.conn.note(Input::Decoded { misfits, drift: &[] });
        initialized
    }

    /// Acquires the lease of the session that a spare becomes, whose options these are. Nothing is sent before.
    pub(crate) async fn take_lease(&self, session: &Options) -> Result<()> {
        let Some(ownership) = &self.ownership else {
            return Ok(());
        };
        let (id, surroundings) = (self.session_id.as_ref(), session.hosting.surroundings());
        lease::claim_for(ownership, id, session, &surroundings, session.host().remote).await?;
        let keep = Arc::clone(ownership).keep(Arc::clone(&self.conn));
        spawn_in(self.conn.span.clone(), keep);
        Ok(())
    }

    /// The session that a spare becomes, whose options these are, is filed in the store under its own directory.
    pub(crate) async fn file(&mut self, session: &Options) -> Result<()> {
        if !session.has_session_store() {
            return Ok(());
        }
        let session = session.clone();
        // Looks at the disk.
        let source = tokio::task::spawn_blocking(move || {
            let is_far = session.host().remote;
            Source::of(&session, &session.hosting.surroundings(), is_far)
        });
        let source = source.await;
        self.source.store = source
            .map_err(|error| Error::invalid_because("claim", error))?
            .store;
        Ok(())
    }

    /// Makes the session, which ends the process from now on.
    pub(crate) fn into_session(mut self, initialized: InitializeReply) -> Session {
        self.is_session = true;
        let conn = Arc::clone(&self.conn);
        spawn(watch_account(
            Arc::clone(&conn),
            self.launch.auth.clone(),
            initialized.claude_code_version.is_some(),
        ));
        let hosting = &self.options.hosting;
        let awaited = self.options.mcp_servers.keys().cloned().collect();
        let settings = SessionSettings {
            mcp: Arc::clone(&self.bridge),
            mcp_startup: hold_prompts(&conn, awaited, hosting.mcp.wait),
            control_deadline: hosting.control_deadline,
            verbatim_prompts: self.launch.verbatim_prompts,
            wants_output: self.options.output_format.is_some(),
            origin: Arc::new(self.options.clone()),
            initialize: Arc::new(self.launch.initialize.clone()),
            source: Arc::new(self.source.clone()),
            asked_version: Arc::clone(&self.version),
        };
        let deadline = hosting.run_deadline;
        let session = Session::new(conn, initialized, settings);
        if deadline.is_some() {
            session.set_run_deadline(deadline);
        }
        session
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if !self.is_session {
            self.conn.abandon();
            if let Some(asking) = &self.asking {
                asking.abort();
            }
        }
    }
}

/// What starts this CLI, if it may be started once more to be asked for its version. Not for one of another user, with whose rights
/// it would have to run, nor behind arguments of which nobody knows what they do.
fn started_by(launch: &Launch, options: &Options) -> Option<discover::Command> {
    if launch.run_as.is_some() || !options.executable_args.is_empty() {
        return None;
    }
    let is_script = |argument: &&OsString| !argument.to_string_lossy().starts_with('-');
    Some(discover::Command {
        program: launch.program.clone(),
        before: launch.args.iter().take_while(is_script).cloned().collect(),
    })
}

/// A session that goes on may begin with a tool call that a hook deferred. The CLI is to know of this program's hooks before it
/// decides about the call, unless it is too old to wait for that.
async fn await_initialize(launch: &mut Launch, options: &Options) {
    let goes_on = options.resume.is_some() || options.continue_conversation;
    if launch.await_initialize || !goes_on || options.hosting.handlers.hooks.is_empty() {
        return;
    }
    let Some(cli) = started_by(launch, options) else {
        return;
    };
    let waits = match cli.version(&Surroundings::of_this_process()).await {
        VersionAnswer::Version(said) => CliVersion::new(said).is_since(AWAITS_INITIALIZE),
        // One that is too old refuses to start; without the flag the others could pass over the hooks.
        VersionAnswer::Silent => true,
        VersionAnswer::Unasked => false,
    };
    if waits {
        launch.args.push("--await-initialize".into());
        launch.await_initialize = true;
    }
}

/// Asks the CLI for its version, beside its start: those before 2.1.330 say it only in the first turn, when it is late to warn. Ends
/// with the session's process.
async fn ask_version(conn: Arc<Conn>, cli: discover::Command, version: Arc<OnceLock<CliVersion>>) {
    let surroundings = Surroundings::of_this_process();
    let mut ended = conn.ended.clone();
    tokio::select! {
        said = cli.version(&surroundings) => if let VersionAnswer::Version(said) = said {
            version.get_or_init(|| CliVersion::new(said)).warn();
        },
        _ = ended.wait_for(Option::is_some) => {}
    }
}

/// Reads the answer to `initialize`. A field that does not fit is left out and counted, rather than that the session cannot
/// start: nothing in it is needed to talk, and what must be confirmed is checked apart.
fn read_reply(payload: &RawJson) -> (InitializeReply, u64) {
    if let Ok(reply) = payload.read() {
        return (reply, 0);
    }
    let mut fields: BTreeMap<String, RawJson> = payload.read().unwrap_or_default();
    let all = fields.len();
    fields.retain(|name, value| {
        let alone = BTreeMap::from([(name, value)]);
        RawJson::encode(&alone).is_ok_and(|alone| alone.read::<InitializeReply>().is_ok())
    });
    let misfits = (all - fields.len()).max(1) as u64;
    (
        RawJson::encode(&fields)
            .ok()
            .and_then(|kept| kept.read().ok())
            .unwrap_or_default(),
        misfits,
    )
}

/// Ends the session when the first turn reports another account than was chosen. Looks at the version, too, for a CLI that tells
/// it only here.
async fn watch_account(conn: Arc<Conn>, auth: Auth, told_version: bool) {
    let mut init = conn.init();
    let mut ended = conn.ended.clone();
    let source = tokio::select! {
        init = init.wait_for(Option::is_some) => {
            let frame = init.ok().and_then(|init| init.clone());
            frame.and_then(|frame| {
                let fields = Fields::of(&frame);
                match fields.get::<String>("claude_code_version") {
                    Some(version) => CliVersion::new(version).warn(),
                    None if told_version => {}
                    None => CliVersion::warn_of_untold(),
                }
                fields.get::<String>("apiKeySource")
            })
        }
        _ = ended.wait_for(Option::is_some) => None,
    };
    if let Some(Err(mismatch)) = source.map(|source| auth.matches(&source)) {
        conn.kill(&mismatch.to_string()).await;
    }
}

/// What the CLI reports before the first prompt.
pub(crate) fn check_account(auth: &Auth, initialized: &InitializeReply) -> Result<()> {
    let account = &initialized.account;
    auth.matches_account(
        account.token_source.as_deref(),
        account.api_key_source.as_deref(),
        account.api_provider.as_ref().map(|provider| provider.as_str()),
    )
    .map_err(|error| Error::of(OtherAccount(error)))
}

#[cfg(test)]
mod tests;
