//! Scripts for a stand-in, put together.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::faulty_step::{Death, FaultyStep, Piece};
use super::frames;
use crate::inject::Grandchild;

/// The steps of a stand-in; see [the module](super).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
#[must_use]
pub struct FaultyScript {
    steps: Vec<FaultyStep>,
}

impl FaultyScript {
    /// A script without steps: it reads to the end of its input, answers nothing, and exits with 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a script.
    ///
    /// # Errors
    /// When it is no JSON, or has steps that do not exist.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The script as JSON.
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists of ours can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The steps.
    pub fn steps(&self) -> &[FaultyStep] {
        &self.steps
    }

    /// Adds another script's steps, to be done so many times.
    pub fn repeat(self, times: usize, what: Self) -> Self {
        self.step(FaultyStep::Repeat {
            times,
            steps: what.steps,
        })
    }

    // ---- What a well-behaved CLI does ---------------------------------------------------------------------------

    /// Takes the `initialize` request and answers it.
    pub fn initialize(self) -> Self {
        self.request("initialize").line(frames::initialized())
    }

    /// Takes a prompt and begins its turn: `command_lifecycle` queued and started, and `system/init`.
    pub fn prompt(self) -> Self {
        self.take_prompt()
            .line(frames::lifecycle("queued"))
            .line(frames::lifecycle("started"))
            .line(frames::init())
    }

    /// Takes a prompt, and does not react.
    pub fn take_prompt(self) -> Self {
        self.take(json!({"type": "user"}))
    }

    /// The model writes a text.
    pub fn say(self, text: &str) -> Self {
        self.line(frames::text(text))
    }

    /// The turn ends well with this answer: `result`, and `command_lifecycle` completed.
    pub fn result(self, text: &str) -> Self {
        self.line(frames::result(text))
            .line(frames::lifecycle("completed"))
    }

    /// A whole turn: takes a prompt and answers with this.
    pub fn turn(self, text: &str) -> Self {
        self.prompt().say(text).result(text)
    }

    /// Takes a control request of this subtype.
    pub fn request(self, subtype: &str) -> Self {
        self.take(json!({"type": "control_request", "request": {"subtype": subtype}}))
    }

    /// Answers the last control request.
    pub fn reply(self, payload: Value) -> Self {
        self.line(frames::success("$request", payload))
    }

    /// Requests permission for a tool, under this id.
    pub fn ask(self, id: &str, tool: &str) -> Self {
        self.line(frames::ask(id, tool))
    }

    /// Takes the reply to the request of this id.
    pub fn answer_to(self, id: &str) -> Self {
        self.take(json!({"type": "control_response", "response": {"request_id": id}}))
    }

    // ---- Anything else ------------------------------------------------------------------------------------------

    /// Takes a line that has at least this in it.
    pub fn take(self, like: Value) -> Self {
        self.step(FaultyStep::Await(like))
    }

    /// Waits for the end of the input.
    pub fn take_end(self) -> Self {
        self.step(FaultyStep::AwaitEnd)
    }

    /// Writes a frame.
    pub fn line(self, frame: Value) -> Self {
        self.step(FaultyStep::Line(frame))
    }

    /// Writes bytes.
    pub fn raw(self, piece: impl Into<Piece>) -> Self {
        self.step(FaultyStep::Raw(vec![piece.into()]))
    }

    /// Writes pieces.
    pub fn pieces(self, pieces: impl IntoIterator<Item = Piece>) -> Self {
        self.step(FaultyStep::Raw(pieces.into_iter().collect()))
    }

    /// Writes bytes, so many at a time, each once the client has taken those before.
    pub fn cut(self, every: usize, piece: impl Into<Piece>) -> Self {
        self.step(FaultyStep::Cut {
            pieces: vec![piece.into()],
            every,
        })
    }

    /// Writes to stderr.
    pub fn complain(self, piece: impl Into<Piece>) -> Self {
        self.step(FaultyStep::Stderr(vec![piece.into()]))
    }

    /// Starts a process.
    pub fn grandchild(self, grandchild: Grandchild) -> Self {
        self.step(FaultyStep::Grandchild(grandchild))
    }

    /// Ends.
    pub fn die(self, death: Death) -> Self {
        self.step(FaultyStep::Die(death))
    }
}

setters! { FaultyScript:
    /// Adds a step.
    step(step: FaultyStep) => steps.push(step);
    /// Adds the steps of another script.
    then(other: Self) => steps.extend(other.steps);
}

impl From<Vec<FaultyStep>> for FaultyScript {
    fn from(steps: Vec<FaultyStep>) -> Self {
        Self { steps }
    }
}
