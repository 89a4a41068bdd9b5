//! The updates of a session: from frames to steps, events and updates.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use outrigger::Session;
use outrigger::permissions::PermissionRequest;
use outrigger::protocol::inbound::Message;
use outrigger::protocol::inbound::system::{FastModeDisabledReason, FastModeState, SystemMessage};
use outrigger::protocol::{Frame, RawJson};
use tokio::time::Instant;

use super::tail::{Tailed, Tails};
use crate::ask::Decision;
use crate::children::{Addressed, Children};
use crate::client::Client;
use crate::coalesce::Coalescer;
use crate::event::{CallChange, Event, Extra, Notice, RecordedAgent, Status, Topic};
use crate::reduce::{self, BackgroundCall, Effect, ReducedStep, Reducer, TaskPlan};
use crate::wire::{Encoder, PermissionCall, Update};

/// An update for the editor, or a state that the session's task handles first.
pub(crate) enum Output {
    Update(Update),
    /// An update of the session of a subagent.
    Child(acp::SessionId, Update),
    /// The CLI reports this mode.
    Mode(String),
    /// The CLI reports this model.
    Model(String),
    /// The state of fast mode, and why it is off.
    Fast(Option<FastModeState>, Option<FastModeDisabledReason>),
}

pub(crate) struct Updates {
    cwd: PathBuf,
    /// Whether files and slash commands are those of a host.
    is_on_host: bool,
    reducer: Reducer,
    coalescer: Coalescer,
    encoder: Encoder,
    tails: Tails,
    /// The sessions of subagents, if the editor shows them.
    children: Option<Children>,
}

impl Updates {
    /// For a session in this directory.
    pub(crate) fn new(session: &acp::SessionId, cwd: PathBuf, client: &Client) -> Self {
        Self {
            children: client.shows_children().then(|| Children::new(session)),
            reducer: Reducer::new(cwd.clone()),
            cwd,
            is_on_host: false,
            coalescer: Coalescer::default(),
            encoder: client.encoder(),
            tails: Tails::default(),
        }
    }

    /// The session is on a host: no file that it names is read, and its slash commands cannot be run.
    pub(crate) fn on_host(mut self) -> Self {
        self.is_on_host = true;
        self
    }

    /// The subagents of the stored session.
    pub(super) fn knows(&mut self, agents: Vec<RecordedAgent>) {
        if let Some(children) = &mut self.children {
            children.knows(agents);
        }
    }

    /// The subagents that work, for an editor that opens the session again.
    pub(super) fn children_again(&mut self) -> Vec<Output> {
        let again = self.children.as_mut().map(Children::again);
        self.addressed(again.unwrap_or_default())
    }

    /// The number of open questions of each subagent.
    pub(super) fn children_wait(&mut self, questions: &HashMap<Arc<str>, usize>) -> Vec<Output> {
        let waits = self.children.as_mut().map(|children| children.wait(questions));
        let waits = waits.unwrap_or_default();
        if waits.is_empty() {
            return Vec::new();
        }
        // The state follows the updates that it is about.
        let mut told = self.flush();
        told.extend(self.addressed(waits));
        told
    }

    /// The editor cancels a subagent, or all: their tasks.
    pub(super) fn stop_children(&mut self, agent: Option<&str>) -> Vec<Arc<str>> {
        let stopped = self.children.as_mut().map(|children| children.stop(agent));
        stopped.unwrap_or_default()
    }

    /// The session of a subagent, if it has one.
    pub(super) fn child(&self, agent: &str) -> Option<acp::SessionId> {
        let (session, _) = self.children.as_ref()?.session_of(agent)?;
        Some(session)
    }

    /// The session goes on with this plan.
    pub(super) fn goes_on_with(&mut self, plan: TaskPlan) {
        self.reducer.goes_on_with(plan);
    }

    /// The slash commands at the start.
    pub(super) fn commands(&mut self, session: &Session) -> Vec<Output> {
        let steps = self.reducer.commands(&session.initialized().commands);
        self.steps(steps)
    }

    /// The mode at the start, which is not reported.
    pub(super) fn begins_in(&mut self, mode: &str) {
        drop(self.reducer.mode_is(mode));
    }

    pub(super) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The CLI continues with this conversation.
    pub(super) fn conversation(&mut self, id: &str) -> Vec<Output> {
        let Ok(data) = RawJson::encode(id) else {
            return Vec::new();
        };
        let extra = Extra {
            topic: Topic::ConversationId,
            call: None,
            data,
        };
        self.all(vec![ReducedStep::Event(Event::Extra(Box::new(extra)))])
    }

    /// A prompt was sent with this uuid.
    pub(super) fn prompted(&mut self, id: &str) {
        self.reducer.prompted(id);
    }

    /// The updates for a frame.
    pub(crate) fn frame(&mut self, frame: &Frame) -> Vec<Output> {
        let steps = self.reducer.frame(frame, now());
        let mut told = self.steps(steps);
        if frame.kind() == "result" {
            self.coalescer.drop_estimate();
            told.extend(self.flush());
        }
        if frame.kind() == "system"
            && frame.subtype() == Some("init")
            && let Ok(Message::System(system)) = frame.decode()
            && let SystemMessage::Init(init) = *system
        {
            told.push(Output::Model(init.model));
            told.push(Output::Fast(init.fast_mode_state, init.fast_mode_disabled_reason));
        }
        told
    }

    /// When to call [`tick`](Self::tick).
    pub(super) fn due(&self) -> Option<Instant> {
        let due = [self.reducer.due(), self.coalescer.due()];
        due.into_iter().flatten().min().map(Instant::from_std)
    }

    pub(super) fn tick(&mut self) -> Vec<Output> {
        let steps = self.reducer.tick(now());
        let mut told = self.steps(steps);
        for event in self.coalescer.tick(now()) {
            told.extend(self.event(event));
        }
        told
    }

    pub(super) fn cancelled(&mut self) -> Vec<Output> {
        let steps = self.reducer.cancelled();
        self.all(steps)
    }

    pub(super) fn ended(&mut self) -> Vec<Output> {
        self.coalescer.drop_estimate();
        let steps = self.reducer.died();
        let mut told = self.all(steps);
        let over = self.children.as_mut().map(Children::over);
        told.extend(self.addressed(over.unwrap_or_default()));
        told
    }

    /// The user is about to be asked about a call: the updates before the question, and the view of the call.
    pub(super) fn asked(&mut self, request: &PermissionRequest) -> (Vec<Output>, PermissionCall) {
        let id: Arc<str> = request.call_id().into();
        let agent = request.agent_id.as_deref();
        let child = agent.and_then(|agent| self.children.as_ref()?.session_of(agent));
        let parent = child.map(|(_, call)| call);
        let steps = self
            .reducer
            .asked(&id, &request.tool_name, parent, &request.input, now());
        let told = self.all(steps);
        let view = reduce::view(&request.tool_name, &request.input, &self.cwd);
        let question = request
            .title
            .clone()
            .filter(|_| request.tool_name == "AskUserQuestion");
        let change = CallChange {
            id: Arc::clone(&id),
            tool: request.tool_name.as_str().into(),
            title: Some(question.unwrap_or(view.title)),
            kind: Some(view.kind),
            status: Some(Status::Pending),
            // An empty list would remove the terminal of a command.
            content: Some(view.content).filter(|content| !content.is_empty()),
            locations: Some(view.locations),
            input: Some(view.input),
            ..CallChange::default()
        };
        (told, self.encoder.shown(change))
    }

    pub(super) fn decided(&mut self, call: &str, decision: Decision) -> Vec<Output> {
        match decision {
            Decision::Allowed => {
                let steps = self.reducer.runs(call);
                return self.steps(steps);
            }
            Decision::Rejected { .. } => self.reducer.rejected(call),
            Decision::Denied { .. } => {}
        }
        // The result of the call reports the rest.
        Vec::new()
    }

    /// The plan of a call was approved, although its turn was ended.
    pub(super) fn approved(&mut self, call: &str) -> Vec<Output> {
        let steps = self.reducer.approved(call);
        self.all(steps)
    }

    /// An empty conversation replaces this one.
    pub(super) fn begins_anew(&mut self) -> Vec<Output> {
        let steps = self.reducer.begins_anew();
        self.all(steps)
    }

    /// The title on disk, which may be known.
    pub(super) fn titled(&mut self, title: String) -> Vec<Output> {
        let steps = self.reducer.titled(title);
        self.all(steps)
    }

    /// Whether to ask the CLI for the context window.
    pub(super) fn wants_size(&mut self) -> bool {
        self.reducer.wants_size()
    }

    /// The CLI's reply.
    pub(super) fn sized(&mut self, model: &str, size: u64, used: u64) -> Vec<Output> {
        let steps = self.reducer.sized(model, size, used);
        self.steps(steps)
    }

    /// The tokens in the context, if they are known.
    pub(super) fn used(&self) -> Option<u64> {
        self.reducer.used()
    }

    /// The conversation will be compacted after this time, unless the user does something.
    pub(super) fn will_compact(&mut self, tokens: u64, after: Duration) -> Vec<Output> {
        let title = format!(
            "This conversation of {tokens} tokens is compacted in {} s",
            after.as_secs()
        );
        let why =
            "The next prompt is cheaper then. Send a prompt or cancel to keep the conversation as it is.";
        let mut notice = Notice::info(Topic::IdleCompaction, title).important();
        notice.description = Some(why.to_owned());
        let data = serde_json::json!({ "tokens": tokens, "after_ms": after.as_millis() });
        notice.data = RawJson::encode(&data).ok();
        self.all(vec![ReducedStep::Event(Event::Notice(notice))])
    }

    /// The fill of the context in percent, if it is known.
    pub(super) fn fullness(&self) -> Option<u64> {
        self.reducer.fullness()
    }

    /// Waits for output of a background command; for ever if none is followed.
    pub(super) async fn tailed(&mut self) -> Tailed {
        self.tails.next().await
    }

    /// The updates for that output.
    pub(super) fn output(&mut self, tailed: Tailed) -> Vec<Output> {
        let steps = match tailed {
            Tailed::More { call, bytes } => self.reducer.tailed(&call, bytes),
            Tailed::Ended { call } => self.reducer.tail_ended(&call),
        };
        self.steps(steps)
    }

    /// The updates for steps, with any held event.
    fn all(&mut self, steps: Vec<ReducedStep>) -> Vec<Output> {
        let mut told = self.steps(steps);
        told.extend(self.flush());
        told
    }

    /// The calls in the background.
    pub(super) fn background(&self) -> Vec<BackgroundCall> {
        self.reducer.background()
    }

    /// The updates for a held event.
    pub(crate) fn flush(&mut self) -> Vec<Output> {
        let held = self.coalescer.flush();
        held.map(|event| self.event(event)).unwrap_or_default()
    }

    fn steps(&mut self, steps: Vec<ReducedStep>) -> Vec<Output> {
        let mut told = Vec::new();
        for step in steps {
            match step {
                ReducedStep::Event(event) => {
                    for event in self.coalescer.push(event, now()) {
                        told.extend(self.event(event));
                    }
                }
                ReducedStep::Effect(Effect::Tail { .. }) if self.is_on_host => {}
                ReducedStep::Effect(Effect::Untail { call }) if self.is_on_host => {
                    let steps = self.reducer.tail_ended(&call);
                    told.extend(self.steps(steps));
                }
                ReducedStep::Effect(Effect::Tail { call, file }) => self.tails.follow(call, file),
                ReducedStep::Effect(Effect::Untail { call }) => self.tails.finish(&call),
            }
        }
        told
    }

    fn event(&mut self, event: Event) -> Vec<Output> {
        match event {
            Event::Mode(mode) => return vec![Output::Mode(mode)],
            Event::Commands(_) if self.is_on_host => return Vec::new(),
            _ => {}
        }
        match &mut self.children {
            Some(children) => {
                let routed = children.route(event);
                self.addressed(routed)
            }
            None => {
                let updates = self.encoder.encode(event).into_iter();
                updates.map(Output::Update).collect()
            }
        }
    }

    fn addressed(&mut self, events: Vec<Addressed>) -> Vec<Output> {
        let mut told = Vec::new();
        for Addressed { child, event } in events {
            for update in self.encoder.encode(event) {
                told.push(match &child {
                    Some(child) => Output::Child(child.clone(), update),
                    None => Output::Update(update),
                });
            }
        }
        told
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}
