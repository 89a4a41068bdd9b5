//! What of a session the editor sees: frames to steps, steps to events, events to updates.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger::Session;
use outrigger::permissions::PermissionRequest;
use outrigger::protocol::inbound::Message;
use outrigger::protocol::inbound::system::{FastModeDisabledReason, FastModeState, SystemMessage};
use outrigger::protocol::{Frame, RawJson};
use tokio::time::Instant;

use super::tail::{Tailed, Tails};
use crate::client::Client;
use crate::coalesce::Coalescer;
use crate::event::{CallChange, Event, Extra, Status, Topic};
use crate::reduce::{self, Effect, Going, Reducer, Step};
use crate::wire::{Encoder, Shown, Update};

/// Something that the editor is told, or that the session has to know first.
pub(super) enum Tell {
    Update(Update),
    /// The CLI works in this mode.
    Mode(String),
    /// The CLI uses this model.
    Model(String),
    /// Fast mode is so, and why it is off.
    Fast(Option<FastModeState>, Option<FastModeDisabledReason>),
}

/// Turns what happens into updates.
pub(super) struct Updates {
    cwd: PathBuf,
    reducer: Reducer,
    coalescer: Coalescer,
    encoder: Encoder,
    tails: Tails,
}

impl Updates {
    pub(super) fn new(session: &Session, client: &Client) -> Self {
        let cwd = session.options().cwd.clone().unwrap_or_default();
        Self {
            reducer: Reducer::new(cwd.clone()),
            cwd,
            coalescer: Coalescer::default(),
            encoder: client.encoder(),
            tails: Tails::default(),
        }
    }

    /// The commands that there are at the beginning.
    pub(super) fn commands(&mut self, session: &Session) -> Vec<Tell> {
        let steps = self.reducer.commands(&session.initialized().commands);
        self.steps(steps)
    }

    /// The CLI begins in this mode, which is no news to anybody.
    pub(super) fn begins_in(&mut self, mode: &str) {
        drop(self.reducer.mode_is(mode));
    }

    /// Writes in the words of the editor's version.
    pub(super) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The CLI goes on with this conversation.
    pub(super) fn conversation(&mut self, id: &str) -> Vec<Tell> {
        let Ok(data) = RawJson::encode(id) else {
            return Vec::new();
        };
        let extra = Extra {
            topic: Topic::ConversationId,
            call: None,
            data,
        };
        self.all(vec![Step::Event(Event::Extra(Box::new(extra)))])
    }

    /// A prompt was sent under this id.
    pub(super) fn prompted(&mut self, id: &str) {
        self.reducer.prompted(id);
    }

    /// The CLI said something.
    pub(super) fn frame(&mut self, frame: &Frame) -> Vec<Tell> {
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
            told.push(Tell::Model(init.model));
            told.push(Tell::Fast(init.fast_mode_state, init.fast_mode_disabled_reason));
        }
        told
    }

    /// When [`tick`](Self::tick) is to be called, if nothing happens before.
    pub(super) fn due(&self) -> Option<Instant> {
        let due = [self.reducer.due(), self.coalescer.due()];
        due.into_iter().flatten().min().map(Instant::from_std)
    }

    /// Does what is due.
    pub(super) fn tick(&mut self) -> Vec<Tell> {
        let steps = self.reducer.tick(now());
        let mut told = self.steps(steps);
        for event in self.coalescer.tick(now()) {
            told.extend(self.event(event));
        }
        told
    }

    /// The turn was cancelled.
    pub(super) fn cancelled(&mut self) -> Vec<Tell> {
        let steps = self.reducer.cancelled();
        self.all(steps)
    }

    /// The process ended.
    pub(super) fn ended(&mut self) -> Vec<Tell> {
        self.coalescer.drop_estimate();
        let steps = self.reducer.died();
        self.all(steps)
    }

    /// The user is to be asked about a call: what comes before, and the call as it is shown with the question.
    pub(super) fn asked(&mut self, request: &PermissionRequest) -> (Vec<Tell>, Shown) {
        let id: Arc<str> = request.call_id().into();
        let steps = self.reducer.asked(&id, &request.tool_name, &request.input, now());
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
            // A command's terminal is there already, and nothing in its place would take it away.
            content: Some(view.content).filter(|content| !content.is_empty()),
            locations: Some(view.locations),
            input: Some(view.input),
            ..CallChange::default()
        };
        (told, self.encoder.shown(change))
    }

    /// It was decided about a call.
    pub(super) fn decided(&mut self, call: &str, allowed: bool) -> Vec<Tell> {
        if !allowed {
            // Its result says so.
            return Vec::new();
        }
        let steps = self.reducer.runs(call);
        self.steps(steps)
    }

    /// The plan of a call was approved, although its turn is ended.
    pub(super) fn approved(&mut self, call: &str) -> Vec<Tell> {
        let steps = self.reducer.approved(call);
        self.all(steps)
    }

    /// Another conversation begins in the place of this one.
    pub(super) fn begins_anew(&mut self) -> Vec<Tell> {
        let steps = self.reducer.begins_anew();
        self.all(steps)
    }

    /// The session is called this, which may be no news.
    pub(super) fn titled(&mut self, title: String) -> Vec<Tell> {
        let steps = self.reducer.titled(title);
        self.all(steps)
    }

    /// Whether the CLI is to be asked how much the model takes.
    pub(super) fn wants_size(&mut self) -> bool {
        self.reducer.wants_size()
    }

    /// What the CLI said of that.
    pub(super) fn sized(&mut self, model: &str, size: u64, used: u64) -> Vec<Tell> {
        let steps = self.reducer.sized(model, size, used);
        self.steps(steps)
    }

    /// How full the context is, in percent, if that is known.
    pub(super) fn fullness(&self) -> Option<u64> {
        self.reducer.fullness()
    }

    /// More of the output of a command in the background. Waits for ever if none is followed.
    pub(super) async fn tailed(&mut self) -> Tailed {
        self.tails.next().await
    }

    /// Takes that in.
    pub(super) fn output(&mut self, tailed: Tailed) -> Vec<Tell> {
        let steps = match tailed {
            Tailed::More { call, bytes } => self.reducer.tailed(&call, bytes),
            Tailed::Ended { call } => self.reducer.tail_ended(&call),
        };
        self.steps(steps)
    }

    /// Steps, and whatever was held back.
    fn all(&mut self, steps: Vec<Step>) -> Vec<Tell> {
        let mut told = self.steps(steps);
        told.extend(self.flush());
        told
    }

    /// What goes on in the background.
    pub(super) fn going(&self) -> Vec<Going> {
        self.reducer.going()
    }

    /// Whatever was held back.
    pub(super) fn flush(&mut self) -> Vec<Tell> {
        let held = self.coalescer.flush();
        held.map(|event| self.event(event)).unwrap_or_default()
    }

    fn steps(&mut self, steps: Vec<Step>) -> Vec<Tell> {
        let mut told = Vec::new();
        for step in steps {
            match step {
                Step::Event(event) => {
                    for event in self.coalescer.push(event, now()) {
                        told.extend(self.event(event));
                    }
                }
                Step::Effect(Effect::Tail { call, file }) => self.tails.follow(call, file),
                Step::Effect(Effect::Untail { call }) => self.tails.finish(&call),
            }
        }
        told
    }

    fn event(&mut self, event: Event) -> Vec<Tell> {
        if let Event::Mode(mode) = event {
            return vec![Tell::Mode(mode)];
        }
        let updates = self.encoder.encode(event).into_iter();
        updates.map(Tell::Update).collect()
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}
