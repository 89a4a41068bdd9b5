//! Feeds a reducer, and prints its events as comparable lines.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use outrigger::protocol::Frame;
use serde_json::Value;

use crate::event::*;
use crate::reduce::{Effect, ReducedStep, Reducer};

/// A reducer with a manual clock.
pub(crate) struct Run {
    pub(crate) reducer: Reducer,
    pub(crate) now: Instant,
    pub(crate) steps: Vec<ReducedStep>,
}

pub(crate) fn frames(text: &str) -> Vec<Frame> {
    text.lines().flat_map(Frame::from_line).collect()
}

/// The frames of one of the conversations in `fixtures`.
pub(crate) fn fixture(name: &str) -> Vec<Frame> {
    let file = format!("{}/src/fixtures/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    frames(&std::fs::read_to_string(file).unwrap())
}

impl Run {
    pub(crate) fn new() -> Self {
        Self {
            reducer: Reducer::new("/home/user/project".into()),
            now: Instant::now(),
            steps: Vec::new(),
        }
    }

    pub(crate) fn frame(&mut self, frame: &Frame) {
        let steps = self.reducer.frame(frame, self.now);
        self.steps.extend(steps);
    }

    pub(crate) fn json(&mut self, frame: Value) {
        for frame in Frame::from_line(frame.to_string()) {
            self.frame(&frame);
        }
    }

    pub(crate) fn take(&mut self, steps: Vec<ReducedStep>) {
        self.steps.extend(steps);
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        let steps = self.reducer.tick(self.now);
        self.steps.extend(steps);
    }

    /// The events since the last call, a line each.
    pub(crate) fn story(&mut self) -> String {
        let mut story = String::new();
        for step in self.steps.drain(..) {
            let _ = writeln!(story, "{}", line(&step));
        }
        story
    }
}

/// The events of a whole conversation, without pauses.
pub(crate) fn events(frames: &[Frame]) -> Vec<Event> {
    let mut run = Run::new();
    for frame in frames {
        run.frame(frame);
    }
    let events = run.steps.into_iter().filter_map(|step| match step {
        ReducedStep::Event(event) => Some(event),
        ReducedStep::Effect(_) => None,
    });
    events.collect()
}

pub(crate) fn line(step: &ReducedStep) -> String {
    match step {
        ReducedStep::Effect(Effect::Tail { call, file }) => format!("! tail {call} {}", file.display()),
        ReducedStep::Effect(Effect::Untail { call }) => format!("! untail {call}"),
        ReducedStep::Event(event) => of_event(event),
    }
}

fn of_event(event: &Event) -> String {
    match event {
        Event::User(chunk) => format!("user {}", of_chunk(chunk)),
        Event::Text(chunk) => format!("text {}", of_chunk(chunk)),
        Event::Thought(chunk) => format!("thought {}", of_chunk(chunk)),
        Event::Call(call) => format!(
            "call {} {} {:?} {:?} {:?}{}{}{}{}",
            call.id,
            call.tool,
            call.kind,
            call.status,
            call.title,
            under(call.parent.as_deref()),
            of_locations(Some(&call.locations)),
            of_contents(Some(&call.content)),
            call.input
                .as_ref()
                .map_or(String::new(), |input| format!(" in={}", input.get())),
        ),
        Event::CallChanged(change) => {
            let mut line = format!("  call {}{}", change.id, under(change.parent.as_deref()));
            for part in [
                change.status.map(|status| format!("{status:?}")),
                change.title.as_ref().map(|title| format!("{title:?}")),
                change.kind.map(|kind| format!("{kind:?}")),
                change.elapsed.map(|elapsed| format!("{elapsed} s")),
            ] {
                line.extend(part.map(|part| format!(" {part}")));
            }
            line += &of_locations(change.locations.as_deref());
            line += &of_contents(change.content.as_deref());
            line.extend(change.input.as_ref().map(|input| format!(" in={}", input.get())));
            line.extend(
                change
                    .output
                    .as_ref()
                    .map(|output| format!(" out={}", output.get())),
            );
            line
        }
        Event::Terminal(change) => match &change.what {
            TerminalEvent::Opened { command, cwd } => {
                format!("  terminal {} runs {command:?} in {cwd:?}", change.id)
            }
            TerminalEvent::Output { bytes, is_live } => {
                let text = String::from_utf8_lossy(bytes);
                format!(
                    "  terminal {} {}{:?}",
                    change.id,
                    if *is_live { "live " } else { "" },
                    cut(&text)
                )
            }
            TerminalEvent::Exited { code, signal } => {
                format!("  terminal {} exits {code:?} {signal:?}", change.id)
            }
        },
        Event::Plan(entries) => {
            let entries = entries
                .iter()
                .map(|entry| format!("[{:?}] {}", entry.status, entry.content));
            format!("plan {}", entries.collect::<Vec<_>>().join(", "))
        }
        Event::Commands(commands) => {
            let names = commands.iter().map(|command| command.name.as_str());
            format!("commands {}", names.collect::<Vec<_>>().join(" "))
        }
        Event::Notice(notice) => format!(
            "notice {:?} {} {:?} {:?}{}",
            notice.severity,
            notice.topic,
            notice.title,
            notice.description,
            if notice.important { " !" } else { "" }
        ),
        Event::Extra(extra) => format!("extra {} {:?}", extra.topic, extra.call),
        Event::Usage(usage) => format!(
            "usage {}/{} {:?} {:?}",
            usage.used, usage.size, usage.cost, usage.model
        ),
        Event::RecordedAgent(agent) => format!(
            "agent {} of {} by {}",
            agent.agent,
            agent.call,
            agent.parent.as_deref().unwrap_or("-")
        ),
        Event::AgentPrompt(prompt) => format!(
            "prompt {} of {} {:?}",
            prompt.message_id, prompt.call, prompt.text
        ),
        other => format!("{other:?}"),
    }
}

fn under(parent: Option<&str>) -> String {
    parent.map_or(String::new(), |parent| format!(" under {parent}"))
}

fn of_chunk(chunk: &Chunk) -> String {
    let id = chunk.message_id.as_deref().unwrap_or("-");
    format!(
        "{id}{} {}",
        under(chunk.parent.as_deref()),
        of_content(&chunk.content)
    )
}

fn of_content(content: &Content) -> String {
    match content {
        Content::Text(text) => format!("{:?}", cut(text)),
        other => format!("{other:?}"),
    }
}

fn of_locations(locations: Option<&[Location]>) -> String {
    let shown = locations.into_iter().flatten();
    let shown = shown.map(|at| {
        format!(
            " @{}{}",
            at.path.display(),
            at.line.map_or(String::new(), |line| format!(":{line}"))
        )
    });
    shown.collect()
}

fn of_contents(contents: Option<&[CallContent]>) -> String {
    let Some(contents) = contents else {
        return String::new();
    };
    let shown = contents.iter().map(|content| match content {
        CallContent::Content(content) => of_content(content),
        CallContent::Diff(diff) => {
            format!(
                "diff {}:{:?} {:?} -> {:?}",
                diff.path.display(),
                diff.line,
                diff.old,
                diff.new
            )
        }
        CallContent::Terminal(id) => format!("terminal {id}"),
    });
    format!(" [{}]", shown.collect::<Vec<_>>().join(", "))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}… {}", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
