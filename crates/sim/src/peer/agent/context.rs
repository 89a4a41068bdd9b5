//! What all parts of a running agent share.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::api_failure::LeftOut;
use super::background::{Finished, Task};
use super::cost::Used;
use super::decision::CallMode;
use super::disk;
use super::files::Checkpoint;
use super::hooks::Hook;
use super::ids::{Ids, timestamp};
use super::mcp::{self, Server};
use super::models;
use super::not_simulated::Feature;
use super::played::ModelPlayer;
use super::rules::{PermissionRules, RuleSource};
use super::settings::Settings;
use super::structured::Schema;
use super::subagent::{self, Definition, RunningSubagent, Stats};
use super::todos::Todos;
use super::transcript::{self, Deferred, Record, SessionTranscript};
use super::{BYPASS, Config};
use crate::fields::JsonFields as _;
use crate::running::{self, Exit, Log};

/// Shared by the session's loop and its turn.
pub(super) struct Context {
    pub(super) config: Config,
    /// The directory in which it was claimed, if it was.
    moved_to: Mutex<Option<PathBuf>>,
    /// Where the last command of the main agent has gone, inside of the project.
    shell_at: Mutex<Option<PathBuf>>,
    /// Whether the agent was claimed.
    claimed: AtomicBool,
    /// Whether the agent is to end once the command that runs has been stopped.
    pub(super) terminating: watch::Sender<bool>,
    pub(super) log: Arc<Log>,
    /// Lines to write; `None` is the end.
    pub(super) out: mpsc::Sender<Option<Vec<u8>>>,
    pub(super) complaints: mpsc::Sender<Option<String>>,
    /// Why the running turn must stop.
    pub(super) abort: StopTurn,
    pub(super) brain: tokio::sync::Mutex<ModelPlayer>,
    pub(super) finished: mpsc::Sender<Finished>,
    /// How the process is to end at once.
    pub(super) exit: watch::Sender<Option<Exit>>,
    /// Whether no MCP server is connecting.
    pub(super) servers_settled: watch::Sender<bool>,
    state: Mutex<AgentState>,
    /// The session on disk, if it is kept.
    transcript: Mutex<Option<SessionTranscript>>,
}

/// Stops a turn.
pub(super) type StopTurn = Arc<watch::Sender<Option<Abort>>>;

/// A line of the conversation: an `assistant` or a `user`.
pub(super) struct ConversationLine<'a> {
    /// The agent that writes it; none is the main agent.
    pub(super) agent: Option<&'a RunningSubagent>,
    pub(super) kind: &'static str,
    pub(super) message: Value,
    pub(super) extra: Value,
    /// Whether the host gets to see it.
    pub(super) shown: bool,
    /// The line's record in the transcript, with its `message`; none is no record.
    pub(super) kept: Option<Value>,
}

/// Why a turn stops before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abort {
    /// The host requested the stop.
    Interrupt,
    /// A prompt of priority `now` took its place.
    Displaced,
    /// SIGINT.
    Signal,
    /// The agent is killed as a task.
    Killed,
}

/// A prompt that waits for its turn.
#[derive(Debug, Clone)]
pub(super) struct QueuedPrompt {
    pub(super) uuid: Option<String>,
    pub(super) text: String,
    /// The line's `message`.
    pub(super) message: Value,
    pub(super) priority: Priority,
    /// Who wrote the prompt, as far as its result tells.
    pub(super) origin: Option<&'static str>,
    pub(super) query: bool,
    /// A client has put it together, and it holds no commands.
    pub(super) composed: bool,
}

/// The origin of a prompt that the host has made up.
pub(super) const UNCLASSIFIED: &str = "unclassified";

/// When a queued prompt is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priority {
    Now,
    Next,
    Later,
}

/// How a request of ours is taken back when the turn stops.
#[derive(Debug)]
pub(super) enum Cancel {
    /// With a `control_cancel_request`.
    Request,
    /// The same, but for a subagent, whose turn decides.
    OfAgent(String),
    /// With a notification to the MCP server that it went to.
    Mcp { server: String, id: u64 },
    /// Not at all: it does not belong to the turn.
    Never,
}

/// A request of ours that waits for its answer.
pub(super) struct Pending {
    pub(super) sender: oneshot::Sender<HostReply>,
    cancel: Cancel,
    /// The tool call that the request is about.
    tool_use_id: Option<String>,
}

/// What came back for a request of ours.
#[derive(Debug)]
pub(super) enum HostReply {
    Success(Value),
    Error(String),
    /// The client's input has ended.
    Closed,
}

/// What changes while the agent runs.
#[derive(Default)]
pub(super) struct AgentState {
    pub(super) ids: Ids,
    pub(super) session_id: String,
    pub(super) model: String,
    pub(super) mode: String,
    /// Whether the answer to a permission request has set the mode.
    pub(super) is_mode_answered: bool,
    pub(super) rules: PermissionRules,
    pub(super) directories: Vec<String>,
    /// Directories that were added for good, and where they stand.
    pub(super) granted: Vec<(String, RuleSource)>,
    pub(super) files: BTreeMap<String, String>,
    pub(super) queue: VecDeque<QueuedPrompt>,
    pub(super) seen: HashSet<String>,
    /// Texts of prompts without a query, for the next request.
    pub(super) unasked: Vec<String>,
    /// The origins of the tasks that have ended, of which the model hears with its next request.
    pub(super) unheard: Vec<Value>,
    /// Origins of turns that background work started.
    pub(super) wakes: VecDeque<Value>,
    /// Agents that were stopped with the turn, whose commands are killed behind the results of their calls.
    pub(super) leaving: Vec<String>,
    /// Agents of which a task has ended that they have not heard of, each with the tag of that task.
    pub(super) notes: Vec<(String, Option<u64>)>,
    pub(super) tasks: Vec<Task>,
    pub(super) pending: HashMap<String, Pending>,
    pub(super) hooks: Vec<Hook>,
    pub(super) servers: Vec<Server>,
    /// Tasks that talk with MCP servers.
    pub(super) connecting: Vec<AbortHandle>,
    /// Calls of the turn that servers of their own process are at: the server, and the id of the request.
    pub(super) piped: Vec<(String, u64)>,
    /// How many commands run in the foreground.
    pub(super) commands: usize,
    pub(super) closed: bool,
    pub(super) initialized: bool,
    pub(super) session_state: &'static str,
    /// How many permission requests wait for their answers.
    awaited: usize,
    pub(super) running: bool,
    /// An interrupt came before the turn began.
    pub(super) abort_next: bool,
    /// How the process is to end once the turn is over.
    pub(super) exit_after_turn: Option<Exit>,
    pub(super) turns: usize,
    pub(super) results: u64,
    /// Results that wait for agents. No more turns begin than agents have ended.
    pub(super) results_due: Vec<Map<String, Value>>,
    pub(super) last_is_error: bool,
    /// Whether the API has failed the last turn for good.
    pub(super) last_failed_at_api: bool,
    /// Whether the last turn was stopped before its end.
    pub(super) last_aborted: bool,
    /// The usage, by model, in all and since the last result.
    pub(super) used: BTreeMap<String, Used>,
    pub(super) used_since: BTreeMap<String, Used>,
    /// How long the API took in all.
    pub(super) api_time: std::time::Duration,
    /// How many prompts and answers the conversation has.
    pub(super) history: usize,
    /// How many prompts the turn has.
    pub(super) prompts: usize,
    /// How many tokens the last request and its answer had.
    pub(super) context: u64,
    /// The id of the last prompt.
    pub(super) prompt_id: Option<String>,
    /// Why files with instructions are to be loaded before the next prompt, if they are.
    pub(super) instructions: Option<&'static str>,
    /// The change of model to report before the next prompt.
    pub(super) switched: Option<Value>,
    /// How often its safeguards have stopped the model.
    pub(super) refusals: u64,
    /// What requests of the main agent and of each other leave out because the API has refused it.
    pub(super) left_out: HashMap<Option<String>, LeftOut>,
    /// Whether the session was resumed.
    pub(super) resumed: bool,
    /// The call of the resumed session that a hook has deferred, until it is taken up.
    pub(super) deferred: Option<Deferred>,
    /// The worktree that the session works in, as the transcript has it.
    pub(super) worktree: Option<Value>,
    /// The uuids of the prompts and answers of the resumed session.
    pub(super) past: HashSet<String>,
    /// What structured output has to look like.
    pub(super) schema: Option<Schema>,
    /// The kinds of subagents that the host has defined.
    pub(super) agents: BTreeMap<String, Definition>,
    pub(super) subagents: Stats,
    /// Whether text of subagents in the foreground is shown.
    pub(super) forward_text: bool,
    /// Whether the host wants the calls of agents that agents have started.
    pub(super) forward_nested_calls: bool,
    /// Whether an interrupt spares agents in the background.
    pub(super) spares_agents: bool,
    pub(super) title: Option<String>,
    /// The prompts of servers of which the host knows.
    pub(super) told_prompts: Vec<String>,
    /// Whether the host knows that there is no check of actions.
    pub(super) told_unchecked: bool,
    /// Other names of tools.
    pub(super) tool_aliases: BTreeMap<String, String>,
    pub(super) todos: Todos,
    /// The variables that the host has changed.
    pub(super) environment: BTreeMap<String, String>,
    /// The files that the model has seen, with their contents then.
    pub(super) files_seen: disk::FilesSeen,
    /// The file of the plan that the model has written, and whether it is a real one.
    pub(super) plan: Option<(String, bool)>,
    /// MCP servers of the configuration that have not been connected yet.
    pub(super) configured: Vec<(String, Value)>,
    /// What is wrong with those that cannot be.
    pub(super) server_errors: Vec<Value>,
    pub(super) system_prompt: Option<String>,
    pub(super) appended_prompt: Option<String>,
    /// The limit of thinking tokens, if it was set.
    pub(super) thinking: Option<u64>,
    pub(super) settings: Settings,
    /// What the client has brought that is not simulated.
    pub(super) unsimulated: Option<Feature>,
    pub(super) checkpoints: Vec<Checkpoint>,
    /// Tool calls of the host that are at work, by the id of its request: the server, and how they are stopped.
    pub(super) calls: HashMap<String, (String, AbortHandle)>,
}

impl Context {
    pub(super) fn new(
        config: Config,
        brain: ModelPlayer,
        log: Arc<Log>,
        out: mpsc::Sender<Option<Vec<u8>>>,
        complaints: mpsc::Sender<Option<String>>,
        finished: mpsc::Sender<Finished>,
    ) -> Self {
        let mut ids = Ids::new(config.seed);
        let session_id = config.session_id.clone().unwrap_or_else(|| ids.uuid());
        let mut state = AgentState {
            ids,
            worktree: config.worktree.clone(),
            session_id,
            directories: config.directories.clone(),
            files: initial_files(&config),
            session_state: "idle",
            instructions: Some("session_start"),
            schema: config.schema.clone(),
            agents: subagent::known(&config),
            forward_text: config.forward_text,
            title: config.title.clone(),
            configured: config.servers.clone(),
            server_errors: config.server_errors.clone(),
            system_prompt: config.system_prompt.clone(),
            appended_prompt: config.appended_prompt.clone(),
            settings: Settings::new(&config),
            ..AgentState::default()
        };
        state.configure(&config, &config.disallowed);
        Self {
            config,
            log,
            out,
            complaints,
            abort: Arc::new(watch::Sender::new(None)),
            brain: tokio::sync::Mutex::new(brain),
            finished,
            exit: watch::Sender::new(None),
            servers_settled: watch::Sender::new(true),
            moved_to: Mutex::new(None),
            shell_at: Mutex::new(None),
            claimed: AtomicBool::new(false),
            terminating: watch::Sender::new(false),
            state: Mutex::new(state),
            transcript: Mutex::new(None),
        }
    }

    /// Finds the session to resume, and begins to record it, if these were set.
    pub(super) fn open(&self) -> Result<(), transcript::LoadFailure> {
        let kept = transcript::load(&self.config)?;
        let mut state = self.state();
        if let Some(kept) = &kept {
            state.ids.go_on(kept.messages, kept.seen.len());
            if self.config.fork && self.config.session_id.is_none() {
                state.session_id = state.ids.uuid();
            }
            if !self.config.fork {
                state.session_id.clone_from(&kept.session_id);
                state.past.clone_from(&kept.seen);
            }
            let message = |record: &&Value| record["type"] == "user" || record["type"] == "assistant";
            state.history = kept.chain.iter().filter(message).count();
            let prompt = |record: &&Value| transcript::is_prompt(record);
            state.prompts = kept.chain.iter().filter(prompt).count();
            if let Some(deferred) = &kept.deferred {
                state.deferred = Some(deferred.clone());
            }
            let last = kept.chain.iter().rev();
            let mut models = last
                .clone()
                .filter_map(|record| record["message"]["model"].as_str());
            let of_model = |model: &&str| !model.starts_with('<');
            let chosen = self.config.model_given || state.settings.get(&["model"]).is_some();
            if let (Some(model), false) = (models.find(of_model), chosen) {
                model.clone_into(&mut state.model);
            }
            let plans = last
                .clone()
                .find(prompt)
                .is_some_and(|prompt| prompt["permissionMode"] == "plan");
            if plans && !self.config.fork && !self.config.mode_given {
                "plan".clone_into(&mut state.mode);
            }
            state.resumed = true;
            state.used.clone_from(&kept.used);
            state.title = kept.title.clone().or(state.title.take());
            if let (None, Some(worktree)) = (&state.worktree, &kept.worktree)
                && let Some(place) = worktree["worktreePath"].as_str().map(PathBuf::from)
                && place.is_dir()
            {
                *self.moved_to.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
                state.worktree = Some(worktree.clone());
            }
        }
        if let (Some(config_dir), true) = (&self.config.config_dir, self.config.persist) {
            let mut transcript = SessionTranscript::new(&transcript::SessionSurroundings {
                config_dir,
                cwd: &self.project(),
                session_id: &state.session_id,
                entrypoint: &self.config.entrypoint,
                mirrored: self.config.mirror,
            });
            match &kept {
                Some(kept) => transcript.resume(kept, self.config.fork),
                None if self.config.session_id.is_some() && transcript.exists() => {
                    return Err(transcript::LoadFailure::taken(&state.session_id));
                }
                None => {}
            }
            if let Some(worktree) = &state.worktree {
                let mut worktree = worktree.clone();
                worktree["sessionId"] = json!(state.session_id);
                transcript.note("worktree-state", json!({"worktreeSession": worktree}));
            }
            *self.lock_transcript() = Some(transcript);
        }
        Ok(())
    }

    fn lock_transcript(&self) -> MutexGuard<'_, Option<SessionTranscript>> {
        self.transcript.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the transcript, if there is one.
    pub(super) fn keep<T>(&self, work: impl FnOnce(&mut SessionTranscript) -> T) -> Option<T> {
        self.lock_transcript().as_mut().map(work)
    }

    /// Sends the records since the last time to the host, if it mirrors them, and complains if they could not be written.
    pub(super) async fn send_mirror(&self) {
        let (frames, complaint) = self
            .keep(|transcript| (transcript.take_mirror(), transcript.complaint()))
            .unwrap_or_default();
        for frame in frames {
            self.send(frame).await;
        }
        if let Some(complaint) = complaint {
            self.complain(complaint).await;
        }
    }

    /// Where the CLI keeps the session.
    pub(super) fn transcript_path(&self) -> PathBuf {
        let kept = self.keep(|transcript| transcript.path().to_owned());
        kept.unwrap_or_else(|| {
            let name = format!("{}.jsonl", self.state().session_id);
            transcript::project(&self.config_dir(), &self.project()).join(name)
        })
    }

    /// Where the CLI keeps what it has for its user.
    pub(super) fn config_dir(&self) -> PathBuf {
        let named = self.config.config_dir.clone();
        named.unwrap_or_else(|| Path::new(&self.config.home).join(".claude"))
    }

    /// The directory in which commands run, and from which paths are read.
    pub(super) fn cwd(&self) -> PathBuf {
        let shell_at = self
            .shell_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        shell_at.unwrap_or_else(|| self.project())
    }

    /// The directory of the session, wherever its commands are.
    pub(super) fn project(&self) -> PathBuf {
        let moved_to = self.moved_to.lock().unwrap_or_else(PoisonError::into_inner);
        moved_to.as_ref().unwrap_or(&self.config.cwd).clone()
    }

    /// The next commands run there.
    pub(super) fn shell_goes_to(&self, directory: PathBuf) {
        *self.shell_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
    }

    /// Becomes a session in this directory.
    pub(super) fn claim(&self, directory: PathBuf) {
        if let Some(config_dir) = &self.config.config_dir {
            self.keep(|transcript| transcript.relocate(config_dir, &directory));
        }
        *self.moved_to.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
        self.claimed.store(true, Ordering::Relaxed);
    }

    /// Whether the agent waits to be claimed.
    pub(super) fn is_parked(&self) -> bool {
        self.config.await_claim && !self.claimed.load(Ordering::Relaxed)
    }

    /// The state. Never held over an await.
    pub(super) fn state(&self) -> MutexGuard<'_, AgentState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line, and waits while the client does not read.
    pub(super) async fn send(&self, line: Value) {
        let mut bytes = line.to_string().into_bytes();
        bytes.push(b'\n');
        self.log.add(false, line);
        // The writer only goes away at the very end.
        let _ = self.out.send(Some(bytes)).await;
    }

    /// Writes bytes as they are.
    pub(super) async fn send_bytes(&self, bytes: Vec<u8>) {
        let text = String::from_utf8_lossy(&bytes);
        self.log
            .add(false, running::read_json(text.trim_end_matches('\n')));
        let _ = self.out.send(Some(bytes)).await;
    }

    /// Writes a line with `uuid` and `session_id` added.
    pub(super) async fn send_stamped(&self, mut line: Value) {
        {
            let mut state = self.state();
            line["uuid"] = json!(state.ids.uuid());
            line["session_id"] = json!(state.session_id);
        }
        self.send(line).await;
    }

    /// Writes a `system` line.
    pub(super) async fn send_system(&self, subtype: &str, mut fields: Value) {
        fields["type"] = json!("system");
        fields["subtype"] = json!(subtype);
        self.send_stamped(fields).await;
    }

    /// Writes an `assistant` or `user` line, and keeps it. Gives its uuid.
    pub(super) async fn say(&self, said: ConversationLine<'_>) -> String {
        let uuid = self.uuid();
        let mut line = json!({
            "type": said.kind,
            "message": said.message,
            "parent_tool_use_id": null,
            "timestamp": self.timestamp(),
            "uuid": uuid,
            "session_id": self.state().session_id,
        });
        if let Some(agent) = said.agent {
            line["parent_tool_use_id"] = json!(agent.tool_use_id);
            line["agent_id"] = json!(agent.id);
            line["subagent_type"] = json!(agent.kind);
            line["task_description"] = json!(agent.description);
        }
        line.merge(said.extra);
        if let Some(fields) = said.kept {
            self.record(said.agent, said.kind, &uuid, fields);
        }
        if said.shown && !said.agent.is_some_and(RunningSubagent::is_hidden) {
            self.send(line).await;
        }
        uuid
    }

    /// Keeps a prompt or an answer, or what belongs to one.
    pub(super) fn record(
        &self,
        agent: Option<&RunningSubagent>,
        kind: &'static str,
        uuid: &str,
        fields: Value,
    ) {
        if agent.is_none() && kind != "attachment" {
            self.state().history += 1;
        }
        let timestamp = self.timestamp();
        self.keep(|transcript| {
            transcript.record(Record {
                agent,
                kind,
                uuid,
                timestamp,
                fields,
            });
        });
    }

    /// Reports the progress of a prompt; only for prompts with a uuid.
    pub(super) async fn send_lifecycle(&self, prompt: &QueuedPrompt, stage: &str) {
        if let Some(uuid) = &prompt.uuid {
            self.send_stamped(json!({"type": "command_lifecycle", "command_uuid": uuid, "state": stage}))
                .await;
        }
    }

    /// Changes the session state, and reports it if the host wants that.
    pub(super) async fn set_session_state(&self, session_state: &'static str) {
        let old = std::mem::replace(&mut self.state().session_state, session_state);
        if let (Some(host_only), true) = (self.config.session_state, old != session_state) {
            let mut fields = json!({"state": session_state});
            if host_only {
                fields["sdk_host_only"] = json!(true);
            }
            self.send_system("session_state_changed", fields).await;
        }
    }

    /// A permission request is about to be sent: somebody has to act.
    pub(super) async fn await_action(&self) {
        {
            let mut state = self.state();
            state.awaited += 1;
            // Each request is reported.
            state.session_state = "running";
        }
        self.set_session_state("requires_action").await;
    }

    /// A permission request has been answered.
    pub(super) async fn resume_action(&self) {
        let last = {
            let mut state = self.state();
            state.awaited = state.awaited.saturating_sub(1);
            state.awaited == 0
        };
        if last {
            self.set_session_state("running").await;
        }
    }

    /// Sends a control request; the answer comes over the channel. An abort drops the channel's sender.
    pub(super) async fn request(
        &self,
        request: Value,
        cancel: Cancel,
    ) -> (String, oneshot::Receiver<HostReply>) {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut state = self.state();
            let id = state.ids.uuid();
            if state.closed {
                let _ = sender.send(HostReply::Closed);
            } else {
                let tool_use_id = request["tool_use_id"].as_str().map(str::to_owned);
                let pending = Pending {
                    sender,
                    cancel,
                    tool_use_id,
                };
                state.pending.insert(id.clone(), pending);
            }
            id
        };
        self.send(json!({"type": "control_request", "request_id": id, "request": request}))
            .await;
        (id, receiver)
    }

    /// Takes back a request that waits for an answer, if it still does.
    pub(super) async fn withdraw(&self, id: &str) {
        if self.state().pending.remove(id).is_some() {
            self.send(json!({"type": "control_cancel_request", "request_id": id}))
                .await;
        }
    }

    /// Lets the requests about a tool call that is over wait for their answers, even if the turn stops.
    pub(super) fn keep_requests_about(&self, tool_use_id: &str) {
        let mut state = self.state();
        let about = state
            .pending
            .values_mut()
            .filter(|pending| pending.tool_use_id.as_deref() == Some(tool_use_id));
        about.for_each(|pending| pending.cancel = Cancel::Never);
    }

    /// Takes back the requests of a subagent.
    pub(super) async fn withdraw_of(&self, agent: &str) {
        let cancelled: Vec<String> = {
            let state = self.state();
            let pending = state.pending.iter();
            pending
                .filter(|(_, pending)| matches!(&pending.cancel, Cancel::OfAgent(id) if id == agent))
                .map(|(id, _)| id.clone())
                .collect()
        };
        for id in cancelled {
            self.withdraw(&id).await;
        }
    }

    /// Takes back the turn's requests that wait for an answer.
    pub(super) async fn cancel_requests(&self) {
        let cancelled: Vec<(String, Pending)> = {
            let mut state = self.state();
            let of_turn = |_: &String, pending: &mut Pending| {
                matches!(pending.cancel, Cancel::Request | Cancel::Mcp { .. })
            };
            state.pending.extract_if(of_turn).collect()
        };
        for (id, pending) in cancelled {
            match pending.cancel {
                Cancel::Mcp { server, id } => mcp::cancel_call(self, &server, id).await,
                _ => {
                    self.send(json!({"type": "control_cancel_request", "request_id": id}))
                        .await
                }
            }
        }
        let piped = std::mem::take(&mut self.state().piped);
        for (server, id) in piped {
            mcp::cancel_call(self, &server, id).await;
        }
    }

    /// Stops the turn, if one runs and is not stopping yet.
    pub(super) async fn abort_turn(&self, why: Abort) {
        self.cancel_requests().await;
        if self.state().running {
            self.abort.send_if_modified(|abort| {
                let first = abort.is_none();
                abort.get_or_insert(why);
                first
            });
        }
    }

    /// Writes to stderr.
    pub(super) async fn complain(&self, text: impl Into<String>) {
        let _ = self.complaints.send(Some(text.into())).await;
    }

    /// Lets time pass, in which nothing else is to happen. On a virtual clock it has passed at once.
    pub(super) async fn pause(&self, time: std::time::Duration) {
        // Even a sleep of no time takes a tick of the clock.
        if time.is_zero() {
            return;
        }
        if self.config.virtual_clock {
            self.log.skip(time);
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(time).await;
        }
    }

    pub(super) fn timestamp(&self) -> String {
        timestamp(self.log.elapsed())
    }

    pub(super) fn uuid(&self) -> String {
        self.state().ids.uuid()
    }

    /// The file for the output of a task of this session.
    pub(super) fn output_file(&self, task_id: &str) -> String {
        self.output_file_of(&self.state().session_id, task_id)
    }

    /// Where the next long result of a tool is kept.
    pub(super) fn result_file(&self) -> String {
        let mut state = self.state();
        let project = transcript::project(&self.config_dir(), &self.project());
        let (id, _) = state.ids.task();
        let file = project
            .join(&state.session_id)
            .join("tool-results")
            .join(format!("{id}.txt"));
        file.to_string_lossy().into_owned()
    }

    /// The same for those who hold the state.
    pub(super) fn output_file_of(&self, session_id: &str, task_id: &str) -> String {
        let project = transcript::project_name(&self.project().to_string_lossy());
        let root = self.config.temp_dir.as_deref().unwrap_or(Path::new("/tmp"));
        let place = format!("claude-{}/{project}/{session_id}/tasks/{task_id}.output", user());
        root.join(place).to_string_lossy().into_owned()
    }
}

impl AgentState {
    /// Sets what flags and settings decide: rules, directories, the model and the mode.
    pub(super) fn configure(&mut self, config: &Config, disallowed: &[String]) {
        self.rules = PermissionRules::new(&config.allowed, disallowed);
        self.granted = self.settings.grant(&mut self.rules);
        let set = |path: &[&str], given: bool| {
            let value = self.settings.get(path).filter(|_| !given);
            value.and_then(|value| value.as_str().map(str::to_owned))
        };
        let model = set(&["model"], config.model_given).map(|model| models::resolve(&model));
        let mode = set(&["permissions", "defaultMode"], config.mode_given);
        self.model = model.unwrap_or_else(|| config.model.clone());
        self.mode = match mode.unwrap_or_else(|| config.mode.clone()) {
            mode if mode == "manual" || self.settings.disable(&mode) => "default".to_owned(),
            mode => mode,
        };
    }

    pub(super) fn server(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }

    pub(super) fn server_mut(&mut self, name: &str) -> Option<&mut Server> {
        self.servers.iter_mut().find(|server| server.name == name)
    }

    pub(super) fn task(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    pub(super) fn task_mut(&mut self, id: &str) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.id == id)
    }

    /// The mode in which a call of an agent is decided: the agent's own, unless that of the session allows more.
    pub(super) fn mode_of<'a>(&'a self, agent: Option<&'a RunningSubagent>) -> CallMode<'a> {
        let allows = matches!(self.mode.as_str(), BYPASS | "acceptEdits" | "auto");
        match agent.and_then(|agent| agent.mode.as_deref()).filter(|_| !allows) {
            Some(name) => CallMode { name, is_own: true },
            None => CallMode {
                name: &self.mode,
                is_own: false,
            },
        }
    }

    /// All directories that were added, for this session or for good.
    pub(super) fn all_directories(&self) -> impl Iterator<Item = &String> {
        self.directories
            .iter()
            .chain(self.granted.iter().map(|(path, _)| path))
    }

    /// The model hears of the tasks that have ended. Gives their tags.
    pub(super) fn hear(&mut self) -> Vec<u64> {
        let origins = std::mem::take(&mut self.unheard);
        origins.iter().filter_map(|origin| self.tag(origin)).collect()
    }

    /// The tag of the task that is the origin of a turn, as given by the reply that started it.
    pub(super) fn tag(&self, origin: &Value) -> Option<u64> {
        self.origin_task(origin)?.tag
    }

    /// The task that is the origin of a turn.
    pub(super) fn origin_task(&self, origin: &Value) -> Option<&Task> {
        self.tasks.iter().find(|task| task.is_origin(origin))
    }

    /// Counts tokens of a model, at the list price unless they cost something else.
    pub(super) fn use_tokens(&mut self, model: &str, input: u64, output: u64, cost: Option<f64>) {
        for used in [&mut self.used, &mut self.used_since] {
            let used = used.entry(model.to_owned()).or_default();
            match cost {
                Some(cost) => used.add_at(cost, input, output),
                None => used.add(model, input, output),
            }
        }
    }

    /// The uuids of the prompts that wait.
    pub(super) fn queued_uuids(&self) -> Vec<String> {
        self.queue
            .iter()
            .filter_map(|prompt| prompt.uuid.clone())
            .collect()
    }
}

/// The files that exist at the beginning, where tools that are only pretended look for them.
fn initial_files(config: &Config) -> BTreeMap<String, String> {
    let files = config.files.iter();
    files
        .map(|(path, content)| {
            (
                config.cwd.join(path).to_string_lossy().into_owned(),
                content.clone(),
            )
        })
        .collect()
}

/// The number of this user, in the name of the directory for temporary files.
#[cfg(unix)]
fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

#[cfg(not(unix))]
fn user() -> u32 {
    0
}
