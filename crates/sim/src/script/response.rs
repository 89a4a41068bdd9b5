//! One response of the model, as steps.

use serde_json::{Value, json};

use super::course::{Engine, ModelCaller, NextStep};
use super::place::Placed;
use super::rule::Rule;
use super::step::{ApiError, Ask, Background, Call, ChoiceQuestion, Step, Subagent, Wait};
use super::{Script, ScriptPlayer};

/// What the model says in one response: for a [simulated agent](crate::peer::Agent), and for the
/// [scripted API](crate::api::MessagesApi).
///
/// It has the steps of a [script](Script) for one response. Without any, the response has no content.
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use]
pub struct Reply {
    pub(crate) steps: Vec<Placed<Step>>,
}

impl Reply {
    /// A response without content yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Text.
    pub fn say(text: impl Into<String>) -> Self {
        Self::new().and_say(text)
    }

    /// Thinking, to be followed by [`and_say`](Self::and_say) or [`and_call`](Self::and_call).
    pub fn think(text: impl Into<String>) -> Self {
        Self::new().step(Step::Think(text.into()))
    }

    /// A tool call; its result is that of the tool, unless there is a [`result`](Self::result). The input is a JSON object.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::new().and_call(name, input)
    }

    /// Adds text.
    pub fn and_say(self, text: impl Into<String>) -> Self {
        self.step(Step::Say(text.into()))
    }

    /// Adds a tool call. Several in one reply are calls that the model makes in parallel.
    pub fn and_call(self, name: impl Into<String>, input: Value) -> Self {
        self.step(Call::new(name, input))
    }

    /// Sets the result of the last call, instead of running the tool: a text or content blocks. Only for a simulated agent.
    pub fn result(mut self, result: impl Into<Value>) -> Self {
        let last = self.steps.last_mut();
        if let Some(Step::Call(call)) = last.map(|step| &mut step.value) {
            call.result = Some(result.into());
        }
        self
    }

    /// Waits here until the test opens the gate of this name. At the beginning, nothing of the response is sent before.
    pub fn hold(self, gate: impl Into<String>) -> Self {
        self.step(Wait::Gate(gate.into()))
    }
    /// Why this player cannot play the response.
    pub(crate) fn unfit(&self, player: ScriptPlayer) -> Option<String> {
        let script = Script::new().rule(Rule::any().step(self.clone()));
        script.check(player).err().map(|error| error.to_string())
    }
}

setters! { Reply:
    /// Adds a step. A reply with a step that its player cannot play, see [`Script::check`], is an error with the reason.
    step(step: impl Into<Step>) => steps.push(Placed::from(step.into()));
}

/// A failure of the API.
impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        Self::new().step(error)
    }
}

impl From<Reply> for Step {
    fn from(reply: Reply) -> Self {
        Self::Response(reply.steps)
    }
}

/// One content block of a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Text(String),
    Thinking(String),
    Redacted(String),
    ToolUse { name: String, input: Value },
    Raw(Value),
}

impl Block {
    pub(crate) fn is_tool_use(&self) -> bool {
        match self {
            Self::ToolUse { .. } => true,
            Self::Raw(value) => value["type"] == "tool_use",
            _ => false,
        }
    }

    /// The events of the stream for a block that was given as a whole: the block at its start, and the deltas. Clients take what the
    /// model writes from the deltas alone.
    pub(crate) fn streamed(block: &Value) -> (Value, Vec<Value>) {
        let (mut start, mut deltas) = (block.clone(), Vec::new());
        let kind = block["type"].as_str().unwrap_or_default();
        for (of, key, delta, piece) in [
            ("text", "text", "text_delta", "text"),
            ("thinking", "thinking", "thinking_delta", "thinking"),
            ("thinking", "signature", "signature_delta", "signature"),
            ("tool_use", "input", "input_json_delta", "partial_json"),
        ] {
            let Some(written) = start.get_mut(key).filter(|_| kind.ends_with(of)) else {
                continue;
            };
            let (written, empty) = match written.take() {
                Value::String(text) => (text, json!("")),
                input => (input.to_string(), json!({})),
            };
            start[key] = empty;
            deltas.push(json!({"type": delta, piece: written}));
        }
        (start, deltas)
    }

    /// Whether a user sees something of it, so that the CLI takes it for an answer and keeps it in the conversation.
    pub(crate) fn is_seen(&self) -> bool {
        let text = match self {
            Self::Text(text) => text,
            Self::Raw(value) => value["text"].as_str().unwrap_or_default(),
            _ => "",
        };
        self.is_tool_use() || !text.trim().is_empty()
    }
}

impl From<Call> for Block {
    fn from(call: Call) -> Self {
        Self::ToolUse {
            name: call.tool,
            input: call.input.into(),
        }
    }
}

impl Engine {
    /// The blocks of a step that is content. What is started by it has a tag.
    pub(crate) fn blocks(&mut self, who: &ModelCaller, next: &NextStep) -> (Vec<Block>, Option<u64>) {
        let mut tag = None;
        let blocks = match next.step.clone() {
            Step::Say(text) => vec![Block::Text(text)],
            Step::Think(text) => vec![Block::Thinking(text)],
            Step::Redacted(data) => vec![Block::Redacted(data)],
            Step::Block(block) => vec![Block::Raw(block.into())],
            Step::Call(call) => vec![call.into()],
            Step::Parallel(calls) => calls.into_iter().map(Block::from).collect(),
            Step::Plan(plan) => vec![Call::new("ExitPlanMode", json!({"plan": plan})).into()],
            Step::Ask(Ask::Question(question)) => vec![questions(&[question]).into()],
            Step::Ask(Ask::Questions(asked)) => vec![questions(&asked).into()],
            Step::Subagent(subagent) => {
                tag = Some(self.hand(who, &subagent, next));
                vec![agent_call(&subagent).into()]
            }
            Step::Background(background) => {
                tag = Some(self.set_off(&background, next));
                vec![command_call(&background).into()]
            }
            _ => Vec::new(),
        };
        (blocks, tag)
    }
}

/// The call of `Agent` that starts a subagent.
fn agent_call(subagent: &Subagent) -> Call {
    let input = json!({
        "description": subagent.description,
        "prompt": subagent.prompt.as_ref().unwrap_or(&subagent.description),
        "subagent_type": subagent.kind.as_deref().unwrap_or("general-purpose"),
        "run_in_background": subagent.background,
    });
    Call::new("Agent", input)
}

/// The call of `Bash` that starts a command in the background.
fn command_call(background: &Background) -> Call {
    let description = background.description.as_ref().unwrap_or(&background.command);
    let input = json!({"command": background.command, "description": description, "run_in_background": true});
    Call::new("Bash", input)
}

/// The call of `AskUserQuestion` with these questions.
fn questions(asked: &[ChoiceQuestion]) -> Call {
    let questions: Vec<Value> = asked
        .iter()
        .map(|question| {
            let options = question.options.iter();
            let options: Vec<Value> = options
                .map(|choice| json!({"label": choice.label, "description": choice.description}))
                .collect();
            json!({
                "question": question.question, "header": question.header.as_deref().unwrap_or("Question"),
                "options": options, "multiSelect": question.multi_select,
            })
        })
        .collect();
    Call::new("AskUserQuestion", json!({"questions": questions}))
}
