//! What people see: the answer on stdout, everything else on stderr.

mod console;
mod markdown;
mod status;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use outrigger::protocol::inbound::SystemMessage;
use outrigger::protocol::inbound::system::{HookResponse, InitMcpServer};
use outrigger::protocol::{Message, RawJson};
use outrigger::{BlockKind, Event, ToolUse};
use tokio::task::JoinHandle;
use unicode_width::UnicodeWidthChar as _;

pub(crate) use self::console::{TERMINAL, console, is_dumb, write_to_terminal};
use self::markdown::Markdown;
pub(crate) use self::status::Phase;
use crate::paint::Paint;
use crate::plain::plain;

/// How many characters of a tool's target are shown.
const TARGET_SHOWN: usize = 120;

/// How often the status line is looked at.
const TICK: Duration = Duration::from_millis(100);

/// The two streams of the terminal.
#[derive(Debug)]
pub(crate) struct Screen {
    /// Whether the answer is written as it comes.
    streaming: bool,
    verbose: bool,
    quiet: bool,
    /// Control characters in the answer would reach a terminal.
    guards_stdout: bool,
    paint: Paint,
    /// Renders the answer, where a person reads it.
    markdown: Option<Markdown>,
    /// Draws the status line.
    ticker: Option<JoinHandle<()>>,
    /// Where the CLI works, once that was shown; `None` if it is not to be shown.
    place: Option<String>,
    /// The states of the MCP servers that were shown last.
    servers: BTreeMap<String, String>,
    /// Text came since the last call of [`begin_turn`](Self::begin_turn).
    said_any: bool,
}

impl Screen {
    pub(crate) fn new(streaming: bool, verbose: bool, quiet: bool) -> Self {
        Self {
            streaming,
            verbose,
            quiet,
            guards_stdout: io::stdout().is_terminal(),
            paint: Paint::on(&io::stderr()),
            markdown: None,
            ticker: None,
            place: None,
            servers: BTreeMap::new(),
            said_any: false,
        }
    }

    /// At a terminal also shows what is waited for, and renders the answer's Markdown unless it is wanted `plain`.
    pub(crate) fn live(mut self, plain: bool) -> Self {
        if self.quiet {
            return self;
        }
        if self.streaming && !plain && Paint::on(&io::stdout()).is_on() && !is_dumb() {
            self.markdown = Some(Markdown::default());
        }
        if console().set_live(true) {
            self.ticker = Some(tokio::spawn(async {
                let mut due = tokio::time::interval(TICK);
                due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
                loop {
                    due.tick().await;
                    console().tick();
                }
            }));
        }
        self
    }

    /// Also shows where the CLI works, if that is a place that it chooses.
    pub(crate) fn showing_place(mut self, is_chosen: bool) -> Self {
        self.place = is_chosen.then(String::new);
        self
    }

    /// Something begins that may take long.
    pub(crate) fn waits(&self, phase: Phase) {
        console().board(|board| board.begin(phase));
    }

    /// Nothing is waited for any more.
    pub(crate) fn rests(&self) {
        console().board(|board| board.end());
    }

    /// Forgets whether anything was said.
    pub(crate) fn begin_turn(&mut self) {
        self.said_any = false;
    }

    /// Whether the turn said anything.
    pub(crate) fn said_any(&self) -> bool {
        self.said_any
    }

    /// Shows an event.
    ///
    /// # Errors
    /// When stdout can't be written to.
    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        console().board(|board| board.see(event));
        if !matches!(event, Event::Text(_) | Event::Subagent(_) | Event::Message(..)) {
            self.end_block()?;
        }
        match event {
            Event::Text(text) => return self.say(text),
            // The next text is another one, perhaps of another message.
            Event::ContentBlockStop {
                kind: BlockKind::Text,
                ..
            } => return self.end_line(),
            Event::Thinking(text) if self.verbose => self.note(&format!("thinking: {}", text.trim_end()))?,
            Event::ToolUse(call) => self.note(&shown_call(call))?,
            Event::ToolResult(result) if result.is_error => {
                self.note(&format!("  failed: {}", first_line(&result.text)))?;
            }
            Event::ToolResult(result) if self.verbose => {
                self.note(&format!("  returned: {}", first_line(&result.text)))?;
            }
            Event::Subagent(sub) => match &sub.event {
                Event::ToolUse(call) => self.note(&format!("  subagent: {}", shown_call(call)))?,
                Event::ToolResult(result) if result.is_error => {
                    self.note(&format!("  subagent: failed: {}", first_line(&result.text)))?;
                }
                Event::Text(text) if self.verbose => {
                    self.note(&format!("  subagent: {}", text.trim_end()))?;
                }
                _ => {}
            },
            Event::ApiError { kind, text } if self.verbose => {
                self.note(&format!("API error {kind}: {text}"))?
            }
            Event::Undecodable(frame, misfit) => {
                self.note(&format!(
                    "a `{}` message could not be read: {misfit}",
                    frame.kind()
                ))?;
            }
            Event::Lagged(lag) => self.note(&lag.to_string())?,
            Event::Message(message, _) => {
                if let Message::System(system) = &**message
                    && let SystemMessage::Init(init) = &**system
                {
                    self.works_at(&init.cwd)?;
                    self.servers(&init.mcp_servers)?;
                } else if self.verbose
                    && let Some(shown) = shown_message(message)
                {
                    self.note(&shown)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Shows where the CLI works, if that is to be shown and was not.
    fn works_at(&mut self, directory: &str) -> io::Result<()> {
        match &mut self.place {
            Some(place) if place != directory => {
                directory.clone_into(place);
                self.note(&format!("worktree: {directory}"))
            }
            _ => Ok(()),
        }
    }

    /// Shows the states of MCP servers that have changed, if more is to be shown.
    fn servers(&mut self, servers: &[InitMcpServer]) -> io::Result<()> {
        if !self.verbose {
            return Ok(());
        }
        for server in servers {
            let before = self.servers.insert(server.name.clone(), server.status.clone());
            if before.as_ref() != Some(&server.status) {
                self.note(&format!("MCP server {}: {}", server.name, server.status))?;
            }
        }
        Ok(())
    }

    /// Writes text of the answer, if it is to be written as it comes.
    ///
    /// # Errors
    /// When stdout can't be written to.
    pub(crate) fn say(&mut self, text: &str) -> io::Result<()> {
        self.said_any |= !text.is_empty();
        if !self.streaming {
            return Ok(());
        }
        match &mut self.markdown {
            Some(markdown) => console().out(&markdown.push(&plain(text), width())),
            None => self.print(text),
        }
    }

    /// A block of text has ended: shows what was kept back of it.
    ///
    /// # Errors
    /// When stdout can't be written to.
    pub(crate) fn end_block(&mut self) -> io::Result<()> {
        match &mut self.markdown {
            Some(markdown) => console().out(&markdown.finish(width())),
            None => Ok(()),
        }
    }

    /// Writes to stdout.
    ///
    /// # Errors
    /// When stdout can't be written to.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        if self.guards_stdout {
            console().out(&plain(text))
        } else {
            console().out(text)
        }
    }

    /// Ends the line on stdout if one is begun.
    ///
    /// # Errors
    /// When stdout can't be written to.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        self.end_block()?;
        console().end_line()
    }

    /// Says something beside the answer, unless this is a quiet run.
    ///
    /// # Errors
    /// When stdout can't be written to, where a line may have to be ended first.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        console().end_line()?;
        note(text, self.paint);
        Ok(())
    }

    /// For what happens beside the events.
    pub(crate) fn notes(&self) -> Notes {
        Notes {
            quiet: self.quiet,
            paint: self.paint,
        }
    }

    /// How notes are painted.
    pub(crate) fn paint(&self) -> Paint {
        self.paint
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(ticker) = &self.ticker {
            ticker.abort();
            console().set_live(false);
        }
    }
}

/// Says something beside the answer, from any task.
#[derive(Debug, Clone)]
pub(crate) struct Notes {
    quiet: bool,
    paint: Paint,
}

impl Notes {
    pub(crate) fn say(&self, text: &str) {
        if self.quiet {
            return;
        }
        console().end_line_at_terminal();
        note(text, self.paint);
    }
}

/// Writes a line on stderr. That nobody reads there is no reason to stop.
pub(crate) fn note(text: &str, paint: Paint) {
    let text = plain(text.trim_end());
    console().err(&format!("{}\n", paint.dim(text)));
}

/// How wide the terminal is, in columns.
fn width() -> usize {
    ::console::Term::stdout()
        .size_checked()
        .map_or(80, |(_, columns)| usize::from(columns))
}

/// The begin of a line that fits into so many columns.
fn shortened(line: &str, width: usize) -> String {
    let columns = |char: char| char.width().unwrap_or_default();
    if line.chars().map(columns).sum::<usize>() <= width {
        return line.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let mut shown = String::new();
    for char in line.chars() {
        let Some(rest) = left.checked_sub(columns(char)) else {
            break;
        };
        left = rest;
        shown.push(char);
    }
    shown.push('…');
    shown
}

/// A tool call in a line: its name and what it is about.
fn shown_call(call: &ToolUse) -> String {
    match target(&call.input) {
        target if target.is_empty() => call.name.clone(),
        target => format!("{}: {target}", call.name),
    }
}

/// What a call is about: the field of its input that says most.
pub(crate) fn target(input: &RawJson) -> String {
    const TELLING: &[&str] = &[
        "command",
        "file_path",
        "notebook_path",
        "pattern",
        "path",
        "url",
        "query",
        "skill",
        "description",
        "prompt",
    ];
    let Ok(value) = input.to_value() else {
        return first_line(input.get());
    };
    let telling = TELLING.iter().find_map(|key| value.get(key)?.as_str());
    match telling {
        Some(text) => first_line(text),
        None if value.as_object().is_some_and(serde_json::Map::is_empty) => String::new(),
        None => first_line(input.get()),
    }
}

/// The first line that is not empty, shortened, with what was left out.
fn first_line(text: &str) -> String {
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(TARGET_SHOWN).collect();
    let more = text.lines().count().saturating_sub(1);
    if shown.len() < line.len() {
        shown.push('…');
    }
    if more > 0 {
        let _ = write!(shown, " (+{more} lines)");
    }
    shown
}

/// Another message in a line; nothing for those that only repeat what is shown already.
fn shown_message(message: &Message) -> Option<String> {
    match message {
        Message::System(system) => shown_system(system),
        Message::RateLimitEvent(_) => Some("rate limit: changed".to_owned()),
        Message::AuthStatus(_) => Some("login: changed".to_owned()),
        Message::ConversationReset(_) => Some("the conversation starts from scratch".to_owned()),
        Message::Unknown(raw) => Some(format!("unknown message: {}", first_line(raw.get()))),
        _ => None,
    }
}

fn shown_system(message: &SystemMessage) -> Option<String> {
    match message {
        SystemMessage::HookResponse(hook) => Some(shown_hook(hook)),
        // What came of it is shown.
        SystemMessage::HookStarted(_) | SystemMessage::HookProgress(_) => None,
        SystemMessage::PermissionDenied(denied) => Some(format!(
            "permission: {} denied by the CLI: {}",
            denied.tool_name,
            first_line(denied.decision_reason.as_deref().unwrap_or(&denied.message))
        )),
        SystemMessage::ApiRetry(retry) => Some(format!(
            "{} in {:.1} s",
            status::shown_retry(retry),
            retry.retry_delay_ms / 1000.0
        )),
        other => Some(format!("system: {}", other.tag())),
    }
}

/// How a hook command of the settings ended.
fn shown_hook(hook: &HookResponse) -> String {
    let mut text = format!("hook {}: {}", hook.hook_name, hook.outcome.as_str());
    if let Some(code) = hook.exit_code.filter(|code| *code != 0) {
        let _ = write!(text, ", exit {code}");
    }
    let output = first_line(&hook.output);
    if !output.is_empty() {
        let _ = write!(text, ": {output}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(input: &str) -> String {
        target(&RawJson::from_text(input).unwrap())
    }

    #[test]
    fn a_call_is_shown_by_what_it_is_about() {
        assert_eq!(shown(r#"{"description":"List","command":"ls -l"}"#), "ls -l");
        assert_eq!(shown(r#"{"command":"set -e\nls\npwd"}"#), "set -e (+2 lines)");
        assert_eq!(shown(r#"{"file_path":"/a","old_string":"x"}"#), "/a");
        assert_eq!(shown("{}"), "");
        assert_eq!(shown(r#"{"n":1}"#), r#"{"n":1}"#);
        let long = "x".repeat(500);
        assert_eq!(
            shown(&format!(r#"{{"query":"{long}"}}"#)).chars().count(),
            TARGET_SHOWN + 1
        );
    }
}
