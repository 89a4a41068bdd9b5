//! Scripts in Rust.

use std::time::Duration;

use serde_json::{Map, Value};

use super::assertion::{Assert, Permitted};
use super::expect::{Expect, ToolCalled};
use super::rule::{Asker, Rule, Times};
use super::step::{
    ApiError, Ask, Background, Call, Choice, ChoiceQuestion, Elicitation, ExitStep, Permission, RateLimit,
    Raw, ResponsePace, Run, Step, Subagent, Usage, Wait,
};
use super::text::TextMatch;
use super::{Clock, Pacing, Placed, Script, Unmatched};
use crate::inject::Fault;

/// The fields of an object; nothing of any other value.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

setters! { Script:
    /// Adds a rule. Rules are used in their order, unless one is for [any time](Rule::anytime).
    rule(rule: Rule) => prompts.push(rule.into());
    /// Counts times instead of measuring them, so that they repeat.
    virtual_clock() => clock = Clock::Virtual;
    /// Adds a file that exists at the beginning, by its path relative to the working directory.
    file(path: impl Into<String>, content: impl Into<String>) => files.insert(path.into(), content.into());
    /// Adds something that goes wrong on the pipes, or with the process.
    fault(fault: Fault) => faults.push(fault);
    /// Sets the model.
    model(model: impl Into<String>) = Some(model.into());
    /// Sets the permission mode at the beginning.
    permission_mode(mode: impl Into<String>) = Some(mode.into());
    /// Sets what ids are made from.
    seed(seed: u64) = Some(seed);
    /// Sets how slowly everything comes.
    pacing(pacing: Pacing) = pacing;
    /// Lets tools really run.
    real_tools(real: bool) = Some(real);
    /// Sets how long a wait for the client lasts before it is a failure.
    patience(patience: Duration) = patience;
    /// Sets the reply to a prompt without a rule.
    unmatched(unmatched: Unmatched) = unmatched;
    /// Sets what must have happened in the end.
    expect(expect: Expect) = expect;
}

impl Pacing {
    /// Pieces of `chunk` characters, `every` so often.
    pub fn pieces(chunk: usize, every: Duration) -> Self {
        Self {
            chunk: Some(chunk),
            every,
            turn: Duration::ZERO,
        }
    }
}

setters! { Pacing:
    /// Sets the time before each turn, and before each response of the model.
    turn(turn: Duration) = turn;
}

constructors! { Rule:
    /// A rule for a prompt that is like this; a bare text means the whole text.
    of(prompt: impl Into<TextMatch>) { prompt: Some(prompt.into()) }
}

impl Rule {
    /// A rule for any prompt.
    pub fn any() -> Self {
        Self::default()
    }

    /// A rule for a prompt in which this occurs.
    pub fn containing(part: impl Into<String>) -> Self {
        Self::of(TextMatch::Contains(part.into()))
    }

    /// Adds text of the model.
    #[must_use]
    pub fn say(self, text: impl Into<String>) -> Self {
        self.step(Step::Say(text.into()))
    }

    /// Adds thinking of the model.
    #[must_use]
    pub fn think(self, text: impl Into<String>) -> Self {
        self.step(Step::Think(text.into()))
    }

    /// Adds a tool call, which is run. The input is a JSON object.
    #[must_use]
    pub fn call(self, tool: impl Into<String>, input: Value) -> Self {
        self.step(Call::new(tool, input))
    }

    /// Adds a wait.
    #[must_use]
    pub fn wait(self, wait: Wait) -> Self {
        self.step(wait)
    }

    /// Adds something that must be true there.
    #[must_use]
    pub fn assert(self, assert: Assert) -> Self {
        self.step(assert)
    }
}

setters! { Rule:
    /// Adds a step.
    step(step: impl Into<Step>) => steps.push(Placed::from(step.into()));
    /// Makes it a rule for subagents.
    from_subagent() => from = Asker::Subagent;
    /// Sets the result of a tool that it is for.
    tool_result(result: impl Into<TextMatch>) = Some(result.into());
    /// Sets how many prompts it is for.
    times(times: Times) = times;
    /// Makes it a rule for a prompt at any time.
    anytime() = true;
}

constructors! { Call:
    /// A call of this tool. The input is a JSON object; any other value counts as an empty one.
    new(tool: impl Into<String>, input: Value) { tool: tool.into(), input: object(input) }
}

impl Call {
    /// Sets a failure that comes out of it instead of running it.
    #[must_use]
    pub fn error(mut self, result: impl Into<Value>) -> Self {
        self.result = Some(result.into());
        self.is_error = true;
        self
    }
}

setters! { Call:
    /// Sets the result instead of running the tool: a text or content blocks.
    result(result: impl Into<Value>) = Some(result.into());
    /// Sets the structured result for the client.
    details(details: Value) = Some(details);
    /// Sets how it is run.
    run(run: Run) = Some(run);
}

impl ChoiceQuestion {
    /// A question with these answers to choose from.
    pub fn new<S: Into<String>>(question: impl Into<String>, options: impl IntoIterator<Item = S>) -> Self {
        let choice = |label: S| Choice {
            label: label.into(),
            description: String::new(),
        };
        Self {
            question: question.into(),
            options: options.into_iter().map(choice).collect(),
            ..Self::default()
        }
    }
}

impl Elicitation {
    /// A question of this server.
    pub fn new(server: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            message: message.into(),
            schema: None,
        }
    }
}

setters! { Elicitation:
    /// Sets the JSON schema of the requested value.
    schema(schema: Value) = Some(object(schema));
}

impl Permission {
    /// A question about this tool. The input is a JSON object.
    pub fn new(tool: impl Into<String>, input: Value) -> Self {
        Self {
            tool: tool.into(),
            input: object(input),
            suggestions: Vec::new(),
        }
    }
}

setters! { Permission:
    /// Adds a permission update that is suggested: a JSON object.
    suggest(update: Value) => suggestions.push(object(update));
}

constructors! { Subagent:
    /// One that is to do this.
    new(description: impl Into<String>) { description: description.into() }
}

setters! { Subagent:
    /// Adds a step that it takes.
    step(step: impl Into<Step>) => steps.push(Placed::from(step.into()));
    /// Adds a step of the agent after the end of a background subagent.
    then(step: impl Into<Step>).push(Placed::from(step.into()));
    /// Sets its prompt.
    prompt(prompt: impl Into<String>) = Some(prompt.into());
    /// Sets what kind of agent it is.
    kind(kind: impl Into<String>) = Some(kind.into());
    /// Lets it work in the background.
    background() = true;
}

constructors! { Background:
    /// A command that ends at once, with success and without output.
    new(command: impl Into<String>) { command: command.into() }
}

setters! { Background:
    /// Adds a step of the agent after the end of the command.
    then(step: impl Into<Step>).push(Placed::from(step.into()));
    /// Sets how long it runs.
    after(after: Duration) = after;
    /// Sets its output.
    output(output: impl Into<String>) = output.into();
    /// Sets its exit code.
    exit(code: i32) = code;
}

constructors! { ApiError:
    /// A failure with this HTTP status, however often it is tried.
    new(status: u16) { status }
}

setters! { ApiError:
    /// Sets its message.
    message(message: impl Into<String>) = Some(message.into());
    /// Sets how many requests fail before one succeeds.
    times(times: u32) = Some(times);
    /// Sets the header `retry-after`, in seconds.
    retry_after(seconds: u32) = Some(seconds);
}

impl Usage {
    /// So many tokens read and written.
    pub fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            output,
            cache_creation: 0,
            cache_read: 0,
        }
    }
}

impl ResponsePace {
    /// Pieces of `chunk` characters, `every` so often.
    pub fn new(chunk: usize, every: Duration) -> Self {
        Self { chunk, every }
    }
}

constructors! { ExitStep:
    /// With this exit code, at once.
    code(code: i32) { code }
    /// By this signal, at once.
    signal(number: i32) { signal: Some(number) }
}

setters! { ExitStep:
    /// Lets the turn finish first.
    after_result() = true;
}

constructors! { Assert:
    /// The client answered the last question about a tool like this.
    permission(permitted: Permitted) { permission: Some(permitted) }
    /// So many prompts have come.
    prompts(prompts: usize) { prompts: Some(prompts) }
    /// The model last read this of a tool.
    result(result: impl Into<TextMatch>) { result: Some(result.into()) }
    /// The client's last answer fits this pattern.
    answer(pattern: Value) { answer: Some(pattern) }
}

setters! { Assert:
    /// So many control requests of this subtype have come.
    requests(subtype: impl Into<String>, times: usize).insert(subtype.into(), times);
    /// The last answer about a tool put an input in place that fits this pattern.
    updated_input(pattern: Value) = Some(pattern);
}

impl Expect {
    /// A tool must have been called, with an input that fits the pattern.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<String>, input: Value) -> Self {
        let called = ToolCalled {
            tool: tool.into(),
            input: Some(input),
            ..ToolCalled::default()
        };
        self.tools.push(called.into());
        self
    }
}

setters! { Expect:
    /// So many control requests of this subtype must have come.
    requests(subtype: impl Into<String>, times: usize).insert(subtype.into(), times);
    /// Some tool must have had this result.
    tool_result(text: impl Into<TextMatch>) => tool_results.push(text.into());
    /// So many prompts must have come.
    prompts(prompts: usize) = Some(prompts);
    /// So many requests for a message must have come; for the scripted API.
    api_requests(count: u64) = Some(count);
    /// So many sessions must have sent requests; for the scripted API.
    sessions(count: usize) = Some(count);
    /// So many subagents must have sent requests; for the scripted API.
    subagents(count: usize) = Some(count);
}

macro_rules! steps {
    ($($part:ident: $type:ident => $step:expr;)+) => {
        $(impl From<$type> for Step {
            fn from($part: $type) -> Self {
                $step
            }
        })+
    };
}

steps! {
    call: Call => Step::Call(call);
    ask: Ask => Step::Ask(ask);
    question: ChoiceQuestion => Step::Ask(Ask::Question(question));
    elicitation: Elicitation => Step::Ask(Ask::Elicitation(elicitation));
    permission: Permission => Step::Ask(Ask::Permission(permission));
    subagent: Subagent => Step::Subagent(subagent);
    background: Background => Step::Background(background);
    error: ApiError => Step::ApiError(error);
    limit: RateLimit => Step::RateLimit(limit);
    usage: Usage => Step::Usage(usage);
    pace: ResponsePace => Step::Pace(pace);
    wait: Wait => Step::Wait(wait);
    assert: Assert => Step::Assert(Box::new(assert));
    raw: Raw => Step::Raw(raw);
    fault: Fault => Step::Fault(Box::new(fault));
    exit: ExitStep => Step::Exit(exit);
}
