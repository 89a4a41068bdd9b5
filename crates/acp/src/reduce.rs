//! Reduces the CLI's frames to steps. Each event comes once, in whichever ways the CLI reports it.
//!
//! No I/O, no clock, no randomness: the same frames at the same times give the same steps. The caller calls [`tick`](Reducer::tick) at
//! the time of [`due`](Reducer::due), and executes the [`Effect`]s.

mod calls;
mod commands;
mod compaction;
mod messages;
mod plan;
mod recent_set;
mod step;
mod system;
mod text;
mod usage;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use outrigger::protocol::inbound::{
    AuthStatus, Message, RateLimitEvent, RateLimitStatus, ResultMessage, TerminalReason, ToolProgress,
};
use outrigger::protocol::{Frame, RawJson};

use self::calls::Calls;
use self::commands::Commands;
use self::compaction::Compactions;
pub(crate) use self::plan::TaskPlan;
use self::recent_set::RecentSet;
use self::step::Steps;
pub(crate) use self::step::{Effect, ReducedStep};
use self::text::Streams;
use self::usage::Meter;
use crate::event::{AgentDetails, Event, Notice, Status, Subagent, Topic};
use crate::timestamp;
use crate::tool::{self, WorkDir};

/// How many frames are remembered to detect duplicates.
const REMEMBERED: usize = 1024;

/// For how many subagents the last text is kept.
const MOST_AGENTS: usize = 1024;

/// A call in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BackgroundCall {
    /// The call.
    pub(crate) call: Arc<str>,
    /// Whether the call has a terminal, with the id of the call.
    pub(crate) is_terminal: bool,
}

/// The reducer of one session.
#[derive(Debug)]
pub(crate) struct Reducer {
    dir: WorkDir,
    streams: Streams,
    calls: Calls,
    plan: TaskPlan,
    compactions: Compactions,
    meter: Meter,
    commands: Commands,
    mode: Option<String>,
    model: Option<String>,
    title: Option<String>,
    /// Whether the CLI reported the title itself.
    is_named: bool,
    /// Hashes of the uuids of frames.
    frames: RecentSet<u64>,
    /// The uuids of this client's prompts.
    prompts: RecentSet<String>,
    /// Notices that a session gets only once.
    notices: RecentSet<String>,
    /// The last output of a slash command in this turn.
    local: Option<String>,
    /// The last text of each subagent, by its call.
    last_words: HashMap<Arc<str>, String>,
    subagents: HashMap<Arc<str>, String>,
    /// Whether this is a replay.
    is_history: bool,
}

impl Reducer {
    /// For a session with this working directory, an absolute path.
    pub(crate) fn new(cwd: PathBuf) -> Self {
        Self {
            dir: WorkDir { cwd },
            streams: Streams::default(),
            calls: Calls::new(),
            plan: TaskPlan::default(),
            compactions: Compactions::default(),
            meter: Meter::default(),
            commands: Commands::default(),
            mode: None,
            model: None,
            title: None,
            is_named: false,
            frames: RecentSet::new(REMEMBERED),
            prompts: RecentSet::new(REMEMBERED),
            notices: RecentSet::new(REMEMBERED),
            local: None,
            last_words: HashMap::new(),
            subagents: HashMap::new(),
            is_history: false,
        }
    }

    pub(crate) fn frame(&mut self, frame: &Frame, now: Instant) -> Vec<ReducedStep> {
        let mut steps = Steps::default();
        if frame.uuid().is_some_and(|uuid| !self.frames.insert(hash(uuid))) {
            tracing::debug!(uuid = frame.uuid(), "a frame came twice");
            return steps.0;
        }
        let parent = frame.parent_tool_use_id();
        match frame.event_type() {
            // Even if the frame does not decode.
            Some("message_start") => self.streams.begin(parent),
            Some("message_stop") => self.streams.over(parent),
            _ => {}
        }
        match frame.delta() {
            Some(delta) => {
                self.delta(parent, delta.index, delta.kind, &delta.text, &mut steps);
            }
            None => match frame.decode() {
                Ok(message) => self.reduce(message, now, &mut steps),
                Err(misfit) => {
                    // Nothing is lost silently: programs get the raw JSON, and the log has the reason.
                    tracing::warn!(%misfit, kind = frame.kind(), "a frame could not be read");
                    let line = RawJson::from_text(frame.text().into_owned());
                    let line = line.or_else(|_| RawJson::encode(&frame.text()));
                    if let Ok(line) = line {
                        steps.raw_extra(Topic::Misfit, line);
                    }
                }
            },
        }
        steps.0
    }

    /// The steps of one event.
    fn collect(&mut self, event: impl FnOnce(&mut Self, &mut Steps)) -> Vec<ReducedStep> {
        let mut steps = Steps::default();
        event(self, &mut steps);
        steps.0
    }

    /// Takes the next message of a stored session: nothing of it streams, runs, or waits for the user.
    pub(crate) fn recorded(&mut self, message: Message, now: Instant) -> Vec<ReducedStep> {
        let mut steps = Steps::default();
        self.is_history = true;
        self.reduce(message, now, &mut steps);
        steps.0
    }

    /// The replay ends: calls that are still open never end.
    pub(crate) fn history_over(&mut self) -> Vec<ReducedStep> {
        let mut steps = Steps::default();
        self.calls.give_up(true, Status::Cancelled, &mut steps);
        self.compactions.turn_over(&mut steps);
        self.is_history = false;
        steps.0
    }

    /// The plan, for the session that goes on.
    pub(crate) fn into_plan(self) -> TaskPlan {
        self.plan
    }

    /// The session goes on with this plan, which the editor knows.
    pub(crate) fn goes_on_with(&mut self, plan: TaskPlan) {
        self.plan = plan;
    }

    /// This client sent a prompt with this uuid, so its echo is dropped.
    pub(crate) fn prompted(&mut self, uuid: &str) {
        self.prompts.insert(uuid.to_owned());
    }

    /// The slash commands at the start.
    pub(crate) fn commands(
        &mut self,
        commands: &[outrigger::protocol::inbound::system::SlashCommand],
    ) -> Vec<ReducedStep> {
        self.collect(|this, steps| this.commands.changed(commands, steps))
    }

    /// Reports the permission mode if it is new.
    pub(crate) fn mode_is(&mut self, mode: &str) -> Vec<ReducedStep> {
        self.collect(|this, steps| this.mode(mode, steps))
    }

    /// The user is about to be asked about this call: reports the call, if it was not.
    /// `parent` is the call that started the subagent which makes the call.
    pub(crate) fn asked(
        &mut self,
        id: &str,
        tool: &str,
        parent: Option<Arc<str>>,
        input: &RawJson,
        now: Instant,
    ) -> Vec<ReducedStep> {
        let mut steps = Steps::default();
        self.calls.begin(id, tool, parent, now, &mut steps);
        self.calls.asked(id, input, &self.dir, now, &mut steps);
        steps.0
    }

    /// The call runs.
    pub(crate) fn runs(&mut self, id: &str) -> Vec<ReducedStep> {
        self.collect(|this, steps| this.calls.run(id, &this.dir, steps))
    }

    /// The user rejected the call. Its result may only report that the turn was stopped.
    pub(crate) fn rejected(&mut self, id: &str) {
        self.calls.reject(id);
    }

    /// The plan of this call was approved, although its turn was ended.
    pub(crate) fn approved(&mut self, id: &str) -> Vec<ReducedStep> {
        self.collect(|this, steps| this.calls.approve(id, &this.dir, steps))
    }

    /// An empty conversation replaces this one.
    pub(crate) fn begins_anew(&mut self) -> Vec<ReducedStep> {
        let mut steps = Steps::default();
        self.plan.clear(&mut steps);
        self.streams = Streams::default();
        self.meter.context(0, &mut steps);
        self.is_named = false;
        steps.0
    }

    /// Reports the title on disk if it is new. It may be older than a title that the CLI reported.
    pub(crate) fn titled(&mut self, title: String) -> Vec<ReducedStep> {
        let mut steps = Steps::default();
        if !self.is_named {
            self.title(title, &mut steps);
        }
        steps.0
    }

    /// Whether to ask the CLI for the context size of the model. True once for each model.
    pub(crate) fn wants_size(&mut self) -> bool {
        self.meter.wants_size()
    }

    /// The CLI's reply: the size of the context window, and the tokens in use.
    pub(crate) fn sized(&mut self, model: &str, size: u64, used: u64) -> Vec<ReducedStep> {
        self.collect(|this, steps| this.meter.asked(model, size, used, steps))
    }

    /// The tokens in the context, if they are known.
    pub(crate) fn used(&self) -> Option<u64> {
        self.meter.used()
    }

    /// The fill of the context in percent, if it is known.
    pub(crate) fn fullness(&self) -> Option<u64> {
        self.meter.fullness()
    }

    /// More output of a background command; see [`Effect::Tail`].
    pub(crate) fn tailed(&mut self, call: &str, bytes: Vec<u8>) -> Vec<ReducedStep> {
        self.collect(|this, steps| this.calls.output(call, bytes, steps))
    }

    /// The output of a background command is complete, or can't be read; see [`Effect::Untail`].
    pub(crate) fn tail_ended(&mut self, call: &str) -> Vec<ReducedStep> {
        self.collect(|this, steps| this.calls.tail_ended(call, &this.dir, steps))
    }

    /// The turn was cancelled: ends its calls, whatever the CLI still reports.
    pub(crate) fn cancelled(&mut self) -> Vec<ReducedStep> {
        self.collect(|this, steps| this.turn_over(Status::Cancelled, steps))
    }

    /// The process ended, with all calls.
    pub(crate) fn died(&mut self) -> Vec<ReducedStep> {
        let mut steps = Steps::default();
        self.turn_over(Status::Failed, &mut steps);
        self.meter.died();
        self.calls.give_up(true, Status::Failed, &mut steps);
        self.subagents.clear();
        steps.0
    }

    /// The calls in the background, oldest first.
    pub(crate) fn background(&self) -> Vec<BackgroundCall> {
        self.calls.background()
    }

    /// When to call [`tick`](Self::tick).
    pub(crate) fn due(&self) -> Option<Instant> {
        self.calls.due()
    }

    pub(crate) fn tick(&mut self, now: Instant) -> Vec<ReducedStep> {
        self.collect(|this, steps| this.calls.tick(now, &this.dir, steps))
    }

    fn reduce(&mut self, message: Message, now: Instant, steps: &mut Steps) {
        match message {
            Message::Assistant(message) => self.assistant(*message, now, steps),
            Message::User(message) => self.user(*message, now, steps),
            Message::StreamEvent(event) => self.stream(*event, now, steps),
            Message::System(message) => self.system(*message, now, steps),
            Message::Result(result) => self.result(&result, steps),
            Message::ToolProgress(progress) => self.progress(&progress, steps),
            Message::ToolUseSummary(summary) => steps.extra(Topic::ToolUseSummary, &*summary),
            Message::AuthStatus(status) => auth(&status, steps),
            Message::RateLimitEvent(event) => rate_limit(&event, steps),
            Message::PromptSuggestion(prompt) => steps.extra(Topic::PromptSuggestion, &*prompt),
            Message::ConversationReset(reset) => {
                self.plan.clear(steps);
                self.streams = Streams::default();
                self.is_named = false;
                steps.extra(Topic::ConversationReset, &*reset);
            }
            Message::ActiveGoal(goal) => steps.extra(Topic::ActiveGoal, &*goal),
            Message::AutocompactState(state) => steps.extra(Topic::Autocompact, &*state),
            // The SDK or the session's task handles these.
            Message::ControlRequest(_)
            | Message::ControlResponse(_)
            | Message::ControlCancelRequest(_)
            | Message::CommandLifecycle(_)
            | Message::KeepAlive(_)
            | Message::TranscriptMirror(_) => {}
            Message::Unknown(raw) => steps.raw_extra(Topic::Unknown, raw),
            // The union may grow: a message without an arm here goes to programs only.
            other => {
                if let Ok(data) = other.to_body() {
                    steps.raw_extra(Topic::Unknown, data);
                }
            }
        }
    }

    fn result(&mut self, result: &ResultMessage, steps: &mut Steps) {
        self.meter.result(result, steps);
        if let Some(output) = &result.structured_output {
            steps.raw_extra(Topic::StructuredOutput, output.clone());
        }
        let status = match &result.terminal_reason {
            // A deferred call may continue in another process.
            Some(TerminalReason::ToolDeferred) => return,
            _ => Status::Cancelled,
        };
        self.turn_over(status, steps);
    }

    /// Ends the calls and compactions of the turn, except those in the background.
    fn turn_over(&mut self, status: Status, steps: &mut Steps) {
        self.local = None;
        self.calls.give_up(false, status, steps);
        self.compactions.turn_over(steps);
    }

    fn progress(&mut self, progress: &ToolProgress, steps: &mut Steps) {
        let id = match (progress.heartbeat, &progress.parent_tool_use_id) {
            (Some(true), Some(call)) => call,
            _ => &progress.tool_use_id,
        };
        self.calls
            .progress(id, progress.elapsed_time_seconds, &self.dir, steps);
        if progress.subagent_retry.is_some() {
            steps.extra_of(Some(id), Topic::SubagentRetry, progress);
        }
    }

    /// Reports the state of a subagent.
    fn subagent(
        &mut self,
        call: &str,
        task: Option<Arc<str>>,
        title: &str,
        status: Status,
        more: AgentDetails,
        steps: &mut Steps,
    ) {
        let call: Arc<str> = call.into();
        let title = match self.subagents.get(&call) {
            Some(known) => known.clone(),
            None => title.to_owned(),
        };
        if status == Status::InProgress && self.subagents.len() < MOST_AGENTS {
            self.subagents.insert(call.clone(), title.clone());
        } else {
            self.subagents.remove(&call);
        }
        steps.event(Event::Subagent(Box::new(Subagent {
            call,
            task,
            title,
            status,
            more,
        })));
    }
}

fn auth(status: &AuthStatus, steps: &mut Steps) {
    match &status.error {
        Some(error) => {
            let notice = Notice::error(Topic::AuthStatus, "The login failed");
            steps.notice(notice.description(Some(error.clone())).important(), status);
        }
        None => steps.extra(Topic::AuthStatus, status),
    }
}

fn rate_limit(event: &RateLimitEvent, steps: &mut Steps) {
    let info = &event.rate_limit_info;
    let limit = info
        .rate_limit_type
        .as_ref()
        .map_or("usage", |kind| kind.as_str());
    let limit = limit.replace('_', " ");
    let notice = match info.status {
        RateLimitStatus::Rejected => {
            let title = format!("The {limit} limit is reached{}", resets(info.resets_at));
            Notice::error(Topic::RateLimit, title).important()
        }
        RateLimitStatus::AllowedWarning => {
            let used = info
                .utilization
                .map(|used| format!(" ({:.0} % used)", used * 100.0));
            let (used, resets) = (used.unwrap_or_default(), resets(info.resets_at));
            let title = format!("The {limit} limit is close{used}{resets}");
            Notice::warning(Topic::RateLimit, title)
        }
        _ => return steps.extra(Topic::RateLimit, event),
    };
    steps.notice(notice, event);
}

/// When a limit starts again, for a title.
fn resets(at: Option<u64>) -> String {
    at.and_then(|seconds| i64::try_from(seconds).ok())
        .map(|seconds| format!("; it resets at {}", timestamp::minute(seconds)))
        .unwrap_or_default()
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The view of a call, for a permission request.
pub(crate) fn view(tool: &str, input: &RawJson, cwd: &std::path::Path) -> tool::CallView {
    let dir = WorkDir { cwd: cwd.to_owned() };
    tool::view(tool, input, &dir)
}

#[cfg(test)]
pub(crate) use self::tests::support as testing;

#[cfg(test)]
mod tests;
