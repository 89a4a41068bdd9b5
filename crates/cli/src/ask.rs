//! Asks the person at the terminal: whether a tool call may run, what the model wants to know, whether its plan is good, and what
//! MCP servers want to be told.

mod form;
mod permission;
mod plan;
mod question;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use outrigger::ElicitationRequest;
use outrigger::options::Options;
use outrigger::permissions::{
    Decided, Foreseen, Outlook, PermissionDecision, PermissionHandler, PermissionRequest, PermissionResult,
    PlanRequest, Policy, QuestionRequest, chain, record,
};
use outrigger::protocol::{Frame, RawJson};
use outrigger::transport::BoxFuture;
use tokio::sync::{Mutex, MutexGuard};

use crate::keyboard::{self, Keyboard};
use crate::plain::plain;
use crate::screen::{Notes, console};

/// What records call the rules of `--policy`.
const POLICY: &str = "--policy";

const NO_ANSWER: &str = "the person at the terminal gave no answer";

/// Who answers what the CLI asks.
#[derive(Clone)]
pub(crate) enum Responder {
    Person(Arc<Person>),
    /// Nobody, and why.
    Nobody(&'static str),
}

impl Responder {
    /// Asks at the terminal of this process, if it has one.
    pub(crate) fn at_terminal() -> Self {
        if keyboard::has_terminal() {
            Self::Person(Person::new(Source::Terminal(OnceLock::new())))
        } else {
            Self::Nobody(
                "there is no terminal to ask at, and no rule allows this call (see `outrigger run --allow`)",
            )
        }
    }

    /// Asks whoever types the conversation.
    pub(crate) fn by(keyboard: Keyboard) -> Self {
        Self::Person(Person::new(Source::Shared(keyboard)))
    }

    /// Asks nobody, and refuses.
    pub(crate) fn nobody() -> Self {
        Self::Nobody("outrigger was told not to ask anybody (--no-ask), and no rule allows this call")
    }

    /// Has all that the CLI asks answered in this way, after the rules of `policy`. Where nobody is there the model does not get
    /// the tool that asks the user, plans are refused as tool calls are, and MCP servers are declined. `notes` are told who
    /// decided.
    pub(crate) fn answers(&self, options: Options, policy: Option<Policy>, notes: Option<Notes>) -> Options {
        let rules = match policy {
            None => chain(),
            Some(policy) => chain().layer(POLICY, policy),
        };
        let options = recorded(options, rules.last(self.name(), self.clone()), notes);
        let Self::Person(person) = self else {
            return options;
        };
        let (questions, plans, forms) = (Arc::clone(person), Arc::clone(person), Arc::clone(person));
        options
            .questions(move |asked| {
                let person = Arc::clone(&questions);
                async move { question::answer(&person, &asked).await }
            })
            .plans(move |plan| {
                let person = Arc::clone(&plans);
                async move { plan::decide(&person, &plan).await }
            })
            .elicitation(move |request| {
                let person = Arc::clone(&forms);
                async move { form::answer(&person, &request).await }
            })
    }

    /// Asks the person about a request of a CLI elsewhere, and returns the answer for it; `None` if nothing was answered, or if it is of a kind that
    /// nobody can be asked about here.
    pub(crate) async fn about(&self, request: &Frame) -> Option<RawJson> {
        let Self::Person(person) = self else {
            return None;
        };
        person.is_silent.store(false, Ordering::Relaxed);
        let answer = match request.subtype()? {
            "can_use_tool" => {
                let request = PermissionRequest::from_frame(request).ok()?;
                let decision: PermissionDecision = if let Some(asked) = QuestionRequest::of(&request) {
                    question::answer(person, &asked).await.into()
                } else if let Some(plan) = PlanRequest::of(&request) {
                    plan::decide(person, &plan).await.into()
                } else {
                    permission::decide(person, &request).await.into()
                };
                let result = match decision {
                    PermissionDecision::Allow(allow) => PermissionResult::from(allow),
                    PermissionDecision::Deny(deny) => PermissionResult::from(deny),
                    PermissionDecision::Parked => return None,
                };
                RawJson::encode(&result)
            }
            "elicitation" => {
                let request = ElicitationRequest::from_frame(request).ok()?;
                RawJson::encode(&form::answer(person, &request).await)
            }
            _ => return None,
        };
        // Who says nothing has not refused.
        let is_answered = !person.is_silent.load(Ordering::Relaxed);
        is_answered.then_some(answer.ok()).flatten()
    }

    /// The person goes: an open question is not withdrawn, only left.
    pub(crate) fn leave(&self) {
        if let Self::Person(person) = self {
            person.has_left.store(true, Ordering::Relaxed);
        }
    }

    /// Who decides, for records.
    fn name(&self) -> &'static str {
        match self {
            Self::Person(_) => "the person at the terminal",
            Self::Nobody(_) => "nobody",
        }
    }
}

/// Has the handler asked, and who decided noted.
fn recorded(options: Options, handler: impl PermissionHandler, notes: Option<Notes>) -> Options {
    let Some(notes) = notes else {
        return options.permissions(handler);
    };
    options.permissions(record(handler, move |decided: Decided| {
        let verdict = if decided.decision.is_allow() {
            "allowed"
        } else {
            "denied"
        };
        let mut text = format!("permission: {} {verdict}", decided.request.tool_name);
        if let Some(layer) = &decided.by.layer {
            let _ = write!(text, " by {layer}");
        }
        if let Some(rule) = &decided.by.rule {
            let _ = write!(text, " ({rule})");
        }
        notes.say(&text);
    }))
}

impl PermissionHandler for Responder {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async move {
            match self {
                Self::Person(person) => permission::decide(person, &request).await.into(),
                Self::Nobody(why) => PermissionDecision::deny(*why),
            }
        })
    }

    fn foresee(&self, _: &str, _: &RawJson) -> Foreseen {
        match self {
            Self::Person(_) => Foreseen::new(Outlook::Asked, "the person at the terminal is asked"),
            Self::Nobody(why) => Foreseen::new(Outlook::Refused, *why),
        }
    }
}

/// The person at the terminal. One thing is asked at a time.
pub(crate) struct Person {
    source: Source,
    turn: Mutex<()>,
    /// The question that was asked last got no answer.
    is_silent: AtomicBool,
    /// The person has left.
    has_left: AtomicBool,
}

enum Source {
    /// The terminal, opened when it is first asked something.
    Terminal(OnceLock<Option<Keyboard>>),
    /// What also carries the conversation.
    Shared(Keyboard),
}

impl Person {
    fn new(source: Source) -> Arc<Self> {
        Arc::new(Self {
            source,
            turn: Mutex::default(),
            is_silent: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
        })
    }

    /// Waits until nothing else is being asked. `None` if the terminal can't be read.
    async fn attention(&self) -> Option<Attention<'_>> {
        let keyboard = match &self.source {
            Source::Shared(keyboard) => Some(keyboard),
            Source::Terminal(terminal) => terminal.get_or_init(|| Keyboard::of_terminal().ok()).as_ref(),
        };
        let Some(keyboard) = keyboard else {
            self.is_silent.store(true, Ordering::Relaxed);
            return None;
        };
        let turn = self.turn.lock().await;
        if matches!(self.source, Source::Terminal(_)) {
            // An answer is never older than its question.
            keyboard.forget();
        }
        let mut attention = Attention {
            keyboard,
            person: self,
            _turn: turn,
            open: false,
        };
        keyboard.question_begins().await;
        attention.open = true;
        Some(attention)
    }
}

/// The person looks at one thing that is asked. Says so if that is withdrawn, which drops it: the CLI no longer waits.
struct Attention<'a> {
    keyboard: &'a Keyboard,
    person: &'a Person,
    _turn: MutexGuard<'a, ()>,
    open: bool,
}

impl Attention<'_> {
    /// Shows `text` and returns the line that is typed then, without the spaces around it; `None` at the end of the input.
    async fn ask(&self, text: &str) -> Option<String> {
        let answer = self.keyboard.expects_answer();
        console().ask(&plain(text));
        let answer = answer.await.ok().flatten();
        if answer.is_none() {
            self.person.is_silent.store(true, Ordering::Relaxed);
        }
        Some(answer?.trim().to_owned())
    }

    fn show(&self, text: &str) {
        console().ask(&plain(text));
    }

    /// Closes the question, which is answered.
    fn done(mut self) {
        self.open = false;
    }
}

impl Drop for Attention<'_> {
    fn drop(&mut self) {
        if self.open {
            self.keyboard.forget();
            console().ask(match self.person.has_left.load(Ordering::Relaxed) {
                true => "\n",
                false => "\n(withdrawn: nobody waits for an answer to this any more)\n",
            });
        }
        self.keyboard.question_ends();
    }
}

/// What is said about who asks, where that is not the main conversation.
fn by_subagent(agent: Option<&String>) -> String {
    agent
        .map(|agent| format!(" (subagent {agent})"))
        .unwrap_or_default()
}
