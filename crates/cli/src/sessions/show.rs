//! `outrigger sessions show`: a conversation, to be read.

use std::io::{self, Write};

use outrigger::sessions::{AgentId, MessageKind, MessageOptions, Messages, SessionFile, SessionMessage};

use super::find::{Named, line};
use super::markdown;
use super::pager::Pager;
use super::said::{Piece, pieces};
use super::when::minute;
use crate::exit::{CommandResult, Failure};
use crate::paint::Paint;
use crate::screen::{plain, target};

/// How many lines of a tool's result are shown.
const RESULT_SHOWN: usize = 8;

/// Show what was said in a session.
///
/// What is not meant as somebody's words is left out, except with --json and --full.
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    #[command(flatten)]
    named: Named,
    /// What was said in this subagent of the session instead.
    #[arg(long, value_name = "AGENT", value_parser = AgentId::new)]
    agent: Option<AgentId>,
    /// So many messages at most; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    limit: usize,
    /// Leave out so many messages at the beginning.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    offset: usize,
    /// The CLI's notes too, such as the boundaries of compactions.
    #[arg(long, conflicts_with = "agent")]
    system: bool,
    /// All of what tools gave back and of what the model thought, and what is not meant to be shown.
    #[arg(long)]
    full: bool,
    /// Write it as Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write it as a JSON list of what the TypeScript SDK calls `SessionMessage`.
    #[arg(long)]
    json: bool,
    /// Never through a pager.
    #[arg(long)]
    no_pager: bool,
}

impl Show {
    pub(super) fn run(self) -> CommandResult {
        let (_, file) = self.named.find()?;
        let options = MessageOptions::new()
            .limit(self.limit)
            .offset(self.offset)
            .include_system_messages(self.system);
        let mut messages = match &self.agent {
            Some(agent) => file.subagent(agent)?.messages(&options)?,
            None => file.messages(&options)?,
        };
        tell_of_damage(&messages);
        Pager::show(self.no_pager || self.json, |out, paint| {
            if self.json {
                return json(&mut messages, out);
            }
            if self.markdown {
                return markdown::write(&file, &mut messages, self.full, out);
            }
            head(&file, out, paint)?;
            let mut talk = Talk {
                out,
                paint,
                full: self.full,
                speaker: None,
            };
            messages.try_for_each(|message| talk.message(&message?))
        })
    }
}

/// Says which lines could not be read.
pub(super) fn tell_of_damage(messages: &Messages) {
    if let Some(first) = messages.damage().first() {
        let count = messages.damaged();
        eprintln!(
            "outrigger: {count} damaged lines were left out, the first: {}; `outrigger sessions repair` tells more",
            plain(&first.to_string())
        );
    }
}

/// Writes one at a time: there may be more than fit the memory.
fn json(messages: &mut Messages, out: &mut dyn Write) -> Result<(), Failure> {
    write!(out, "[")?;
    for (nth, message) in messages.enumerate() {
        writeln!(out, "{}", if nth == 0 { "" } else { "," })?;
        serde_json::to_writer(&mut *out, &message?).map_err(io::Error::from)?;
    }
    writeln!(out, "\n]")?;
    Ok(())
}

/// What is known of a session, each with its name.
type Facts = Vec<(&'static str, String)>;

/// The title, and what is known of the session.
pub(super) fn facts(file: &SessionFile) -> Result<(String, Facts), Failure> {
    let mut facts = vec![("session", file.id.to_string())];
    let mut title = "a session".to_owned();
    if let Some(info) = file.info()? {
        title = line(&info.summary, 200);
        // `HEAD` is what there is where there is no branch.
        let branch = info.git_branch.filter(|branch| branch != "HEAD");
        let known = [("directory", info.cwd), ("branch", branch), ("tag", info.tag)];
        let known = known.map(|(name, value)| (name, value.filter(|value| !value.is_empty())));
        facts.extend(
            known
                .into_iter()
                .filter_map(|(name, value)| Some((name, line(&value?, 400)))),
        );
        if info.archived == Some(true) {
            facts.push(("archived", "yes".to_owned()));
        }
    }
    if let Some(cost) = file.cost()? {
        facts.push(("cost", format!("${:.4}", cost.total_cost_usd)));
    }
    let agents: Vec<String> = file
        .subagents()
        .iter()
        .map(|agent| line(agent.agent_id.as_str(), 200))
        .collect();
    if !agents.is_empty() {
        facts.push(("subagents", agents.join(", ")));
    }
    Ok((title, facts))
}

fn head(file: &SessionFile, out: &mut dyn Write, paint: Paint) -> Result<(), Failure> {
    let (title, facts) = facts(file)?;
    writeln!(out, "{}", paint.bold(title))?;
    for (name, value) in facts {
        writeln!(out, "{}", paint.dim(format!("{name:<10} {value}")))?;
    }
    Ok(())
}

/// Whether a message is shown to people.
pub(super) fn is_for_people(message: &SessionMessage) -> bool {
    !message.is_meta || message.is_compact_summary
}

/// Who says something; a tool's result is nobody's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Model,
    Tool,
    Note,
}

impl Speaker {
    pub(super) fn of(message: &SessionMessage, pieces: &[Piece]) -> Self {
        let is_result = |piece: &Piece| matches!(piece, Piece::Result { .. });
        match message.kind {
            MessageKind::User if !pieces.is_empty() && pieces.iter().all(is_result) => Self::Tool,
            MessageKind::User => Self::User,
            MessageKind::Assistant => Self::Model,
            _ => Self::Note,
        }
    }

    /// The heading above what it says, if it has one.
    pub(super) fn heading(self, message: &SessionMessage) -> Option<&'static str> {
        match self {
            Self::User if message.is_compact_summary => Some("Summary of what was said before"),
            Self::User => Some("You"),
            Self::Model => Some("Claude"),
            Self::Tool | Self::Note => None,
        }
    }
}

/// A conversation on its way to people.
struct Talk<'o> {
    out: &'o mut dyn Write,
    paint: Paint,
    full: bool,
    /// Who spoke last.
    speaker: Option<Speaker>,
}

impl Talk<'_> {
    fn message(&mut self, message: &SessionMessage) -> Result<(), Failure> {
        if !self.full && !is_for_people(message) {
            return Ok(());
        }
        let pieces = pieces(message);
        let speaker = Speaker::of(message, &pieces);
        if let Some(heading) = speaker.heading(message)
            && (speaker == Speaker::User || self.speaker != Some(speaker))
        {
            let at = message.timestamp.as_deref().map(minute).unwrap_or_default();
            let (heading, at) = (self.paint.bold(heading), self.paint.dim(line(&at, 40)));
            writeln!(self.out, "\n{heading}  {at}")?;
        }
        // Results stand below their calls, and the model goes on behind them.
        if speaker != Speaker::Tool {
            self.speaker = Some(speaker);
        }
        pieces.iter().try_for_each(|piece| self.piece(piece))
    }

    fn piece(&mut self, piece: &Piece) -> Result<(), Failure> {
        let paint = self.paint;
        match piece {
            Piece::Text(text) => writeln!(self.out, "{}", plain(text.trim_end()))?,
            Piece::Thinking(text) if text.trim().is_empty() => {}
            Piece::Thinking(text) if self.full => {
                writeln!(self.out, "{}", paint.dim(plain(text.trim_end())))?;
            }
            Piece::Thinking(text) => writeln!(
                self.out,
                "{}",
                paint.dim(format!("(thought: {})", line(text, 80)))
            )?,
            Piece::Call { tool, input } => {
                let tool = paint.yellow(line(tool, 200));
                let input = if self.full {
                    plain(input.get())
                } else {
                    plain(&target(input))
                };
                writeln!(self.out, "> {tool} {input}")?;
            }
            Piece::Result { text, is_error } => self.result(&plain(text.trim_end()), *is_error)?,
            Piece::Other(what) => writeln!(self.out, "{}", paint.dim(format!("[{}]", line(what, 200))))?,
        }
        Ok(())
    }

    fn result(&mut self, text: &str, is_error: bool) -> io::Result<()> {
        let most = if self.full { usize::MAX } else { RESULT_SHOWN };
        for line in text.lines().take(most) {
            let line = if is_error {
                self.paint.red(line)
            } else {
                self.paint.dim(line)
            };
            writeln!(self.out, "  {line}")?;
        }
        match text.lines().count().saturating_sub(most) {
            0 => Ok(()),
            more => writeln!(self.out, "  {}", self.paint.dim(format!("(+{more} lines)"))),
        }
    }
}
