//! Asks the person at the terminal: whether a tool call may run, what the model wants to know, whether its plan is good, and what
//! MCP servers want to be told.

mod form;
mod permission;
mod plan;
mod question;

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use outrigger::options::Options;
use outrigger::permissions::{
    Decided, Foreseen, Outlook, PermissionDecision, PermissionHandler, PermissionRequest, Policy, chain,
    record,
};
use outrigger::protocol::RawJson;
use outrigger::transport::BoxFuture;
use tokio::sync::{Mutex, MutexGuard};

use crate::keyboard::{self, Keyboard};
use crate::screen::{Notes, console, plain};

/// What records call the rules of `--policy`.
const POLICY: &str = "--policy";

const NO_ANSWER: &str = "the person at the terminal gave no answer";

/// Who answers what the CLI asks.
#[derive(Clone)]
pub(crate) enum Ask {
    Person(Arc<Person>),
    /// Nobody, and why.
    Nobody(&'static str),
}

impl Ask {
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
            "refused"
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

impl PermissionHandler for Ask {
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
        })
    }

    /// Waits until nothing else is being asked. `None` if the terminal can't be read.
    async fn attention(&self) -> Option<Attention<'_>> {
        let keyboard = match &self.source {
            Source::Shared(keyboard) => keyboard,
            Source::Terminal(terminal) => terminal.get_or_init(|| Keyboard::of_terminal().ok()).as_ref()?,
        };
        let turn = self.turn.lock().await;
        if matches!(self.source, Source::Terminal(_)) {
            // An answer is never older than its question.
            keyboard.forget();
        }
        let mut attention = Attention {
            keyboard,
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
    _turn: MutexGuard<'a, ()>,
    open: bool,
}

impl Attention<'_> {
    /// Shows `text` and returns the line that is typed then, without the spaces around it; `None` at the end of the input.
    async fn ask(&self, text: &str) -> Option<String> {
        let answer = self.keyboard.expects_answer();
        console().ask(&plain(text));
        let answer = answer.await.ok().flatten()?;
        Some(answer.trim().to_owned())
    }

    fn tell(&self, text: &str) {
        console().ask(&plain(text));
    }

    /// It is decided.
    fn done(mut self) {
        self.open = false;
    }
}

impl Drop for Attention<'_> {
    fn drop(&mut self) {
        if self.open {
            self.keyboard.forget();
            console().ask("\n(withdrawn: nobody waits for an answer to this any more)\n");
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
