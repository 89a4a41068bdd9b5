//! What all parts of a running agent share.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::background::{Finished, Task};
use super::brain::Brain;
use super::hooks::Hook;
use super::ids::{Ids, timestamp};
use super::mcp::{self, Server};
use super::permission::Rules;
use super::{Config, payload};
use crate::peer::running::{self, Exit, Log};

/// Shared by the session's loop and its turn.
pub(super) struct Context {
    pub(super) config: Config,
    /// The directory of the session that claimed it.
    pub(super) claimed: OnceLock<PathBuf>,
    pub(super) log: Arc<Log>,
    /// Lines to write; `None` is the end.
    pub(super) out: mpsc::Sender<Option<Vec<u8>>>,
    pub(super) complaints: mpsc::Sender<Option<String>>,
    /// Why the running turn must stop.
    pub(super) abort: watch::Sender<Option<Abort>>,
    pub(super) brain: tokio::sync::Mutex<Box<dyn Brain>>,
    pub(super) finished: mpsc::Sender<Finished>,
    /// How the process is to end at once.
    pub(super) exit: watch::Sender<Option<Exit>>,
    /// Whether no MCP server is connecting.
    pub(super) servers_settled: watch::Sender<bool>,
    state: Mutex<State>,
}

/// Why a turn stops before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abort {
    /// The host asked for it.
    Interrupt,
    /// A prompt of priority `now` took its place.
    Displaced,
    /// SIGINT.
    Signal,
}

/// A prompt that waits for its turn.
#[derive(Debug, Clone)]
pub(super) struct Prompt {
    pub(super) uuid: Option<String>,
    pub(super) text: String,
    /// The line's `message`.
    pub(super) message: Value,
    pub(super) priority: Priority,
    pub(super) query: bool,
}

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
    /// With a notification to the MCP server that it went to.
    Mcp { server: String, id: u64 },
    /// Not at all: it does not belong to the turn.
    Never,
}

/// A request of ours that waits for its answer.
pub(super) struct Pending {
    pub(super) sender: oneshot::Sender<Answer>,
    cancel: Cancel,
}

/// What came back for a request of ours.
#[derive(Debug)]
pub(super) enum Answer {
    Success(Value),
    Error(String),
    /// The client's input has ended.
    Closed,
}

/// What changes while the agent runs.
pub(super) struct State {
    pub(super) ids: Ids,
    pub(super) session_id: String,
    pub(super) model: String,
    pub(super) mode: String,
    pub(super) rules: Rules,
    pub(super) directories: Vec<String>,
    pub(super) files: BTreeMap<String, String>,
    pub(super) queue: VecDeque<Prompt>,
    pub(super) seen: HashSet<String>,
    /// Texts of prompts without a query, for the next request.
    pub(super) unasked: Vec<String>,
    /// Origins of turns that background work has asked for.
    pub(super) wakes: VecDeque<Value>,
    pub(super) tasks: Vec<Task>,
    pub(super) pending: HashMap<String, Pending>,
    pub(super) hooks: Vec<Hook>,
    pub(super) servers: Vec<Server>,
    /// Tasks that talk with MCP servers.
    pub(super) connecting: Vec<AbortHandle>,
    pub(super) closed: bool,
    pub(super) initialized: bool,
    pub(super) session_state: &'static str,
    pub(super) running: bool,
    /// An interrupt came before the turn began.
    pub(super) abort_next: bool,
    /// How the process is to end once the turn is over.
    pub(super) exit_after_turn: Option<Exit>,
    pub(super) turns: usize,
    pub(super) results: u64,
    pub(super) last_is_error: bool,
    /// Tokens in and out, by model, in all and since the last result.
    pub(super) used: BTreeMap<String, (u64, u64)>,
    pub(super) used_since: BTreeMap<String, (u64, u64)>,
}

impl Context {
    pub(super) fn new(
        config: Config,
        brain: Box<dyn Brain>,
        log: Arc<Log>,
        out: mpsc::Sender<Option<Vec<u8>>>,
        complaints: mpsc::Sender<Option<String>>,
        finished: mpsc::Sender<Finished>,
    ) -> Self {
        let mut ids = Ids::new(config.seed);
        let session_id = config.session_id.clone().unwrap_or_else(|| ids.uuid());
        let state = State {
            ids,
            session_id,
            model: config.model.clone(),
            mode: if config.mode == "manual" {
                "default".to_owned()
            } else {
                config.mode.clone()
            },
            rules: Rules::new(&config.allowed, &config.disallowed, &config.asked),
            directories: config.directories.clone(),
            files: initial_files(&config),
            queue: VecDeque::new(),
            seen: HashSet::new(),
            unasked: Vec::new(),
            wakes: VecDeque::new(),
            tasks: Vec::new(),
            pending: HashMap::new(),
            hooks: Vec::new(),
            servers: Vec::new(),
            connecting: Vec::new(),
            closed: false,
            initialized: false,
            session_state: "idle",
            running: false,
            abort_next: false,
            exit_after_turn: None,
            turns: 0,
            results: 0,
            last_is_error: false,
            used: BTreeMap::new(),
            used_since: BTreeMap::new(),
        };
        Self {
            config,
            log,
            out,
            complaints,
            abort: watch::Sender::new(None),
            brain: tokio::sync::Mutex::new(brain),
            finished,
            exit: watch::Sender::new(None),
            servers_settled: watch::Sender::new(true),
            claimed: OnceLock::new(),
            state: Mutex::new(state),
        }
    }

    /// The working directory.
    pub(super) fn cwd(&self) -> &Path {
        self.claimed.get().unwrap_or(&self.config.cwd)
    }

    /// Whether it waits to be claimed.
    pub(super) fn is_parked(&self) -> bool {
        self.config.await_claim && self.claimed.get().is_none()
    }

    /// The state. Never held over an await.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
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

    /// Writes an `assistant` or `user` line.
    pub(super) async fn send_message(&self, kind: &str, message: Value, extra: Value) {
        let mut line = json!({
            "type": kind,
            "message": message,
            "parent_tool_use_id": null,
            "timestamp": self.timestamp(),
        });
        if let (Some(line), Value::Object(extra)) = (line.as_object_mut(), extra) {
            line.extend(extra);
        }
        self.send_stamped(line).await;
    }

    /// Tells how far a prompt has come; only for prompts with a uuid.
    pub(super) async fn send_lifecycle(&self, prompt: &Prompt, stage: &str) {
        if let Some(uuid) = &prompt.uuid {
            self.send_stamped(json!({"type": "command_lifecycle", "command_uuid": uuid, "state": stage}))
                .await;
        }
    }

    /// Changes the session state, and tells if that was asked for.
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

    /// Sends a control request; the answer comes over the channel. An abort drops the channel's sender.
    pub(super) async fn request(
        &self,
        request: Value,
        cancel: Cancel,
    ) -> (String, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut state = self.state();
            let id = state.ids.uuid();
            if state.closed {
                let _ = sender.send(Answer::Closed);
            } else {
                state.pending.insert(id.clone(), Pending { sender, cancel });
            }
            id
        };
        self.send(json!({"type": "control_request", "request_id": id, "request": request}))
            .await;
        (id, receiver)
    }

    /// Takes back the turn's requests that wait for an answer.
    async fn cancel_requests(&self) {
        let cancelled: Vec<(String, Pending)> = {
            let mut state = self.state();
            let of_turn = |_: &String, pending: &mut Pending| !matches!(pending.cancel, Cancel::Never);
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

    pub(super) fn timestamp(&self) -> String {
        timestamp(self.log.elapsed())
    }

    pub(super) fn uuid(&self) -> String {
        self.state().ids.uuid()
    }

    /// Where the CLI would keep the output of a task.
    pub(super) fn output_file(&self, task_id: &str) -> String {
        let project = payload::project_name(&self.cwd().to_string_lossy());
        format!(
            "/tmp/claude-0/{project}/{}/tasks/{task_id}.output",
            self.state().session_id
        )
    }
}

impl State {
    /// What the reply that started it calls the task that is the origin of a turn.
    pub(super) fn tag(&self, origin: &Value) -> Option<u64> {
        self.tasks.iter().find(|task| task.is_origin(origin))?.tag
    }

    /// Counts tokens of a model.
    pub(super) fn use_tokens(&mut self, model: &str, input: u64, output: u64) {
        for used in [&mut self.used, &mut self.used_since] {
            let sum = used.entry(model.to_owned()).or_default();
            *sum = (sum.0 + input, sum.1 + output);
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
