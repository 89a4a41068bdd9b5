//! `outrigger sessions search`.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use outrigger::sessions::Sessions;
use outrigger::sessions::search::{ConversationPart, Hit, Search};
use serde_json::json;

use super::find::{here, line};
use super::pager::Pager;
use super::progress::Bar;
use crate::exit::{CommandResult, Status};
use crate::paint::Paint;
use crate::plain::plain;
use crate::time::{self, minute};

/// Look for a text in what was said in the sessions of this project, the one that was written to last first.
///
/// Ends with 1 if it was found nowhere.
#[derive(Debug, clap::Args)]
pub(super) struct Find {
    /// The text. An empty one fits everywhere, so that the filters choose alone.
    text: String,
    /// Search the sessions of the project at this directory instead.
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    dir: Option<PathBuf>,
    /// Search the sessions of all projects.
    #[arg(long)]
    all: bool,
    /// Only in this part of conversations; may be given several times.
    #[arg(long = "in", value_name = "PART", value_enum)]
    parts: Vec<Where>,
    /// Upper and lower case differ.
    #[arg(long)]
    case_sensitive: bool,
    /// Search what subagents said, too.
    #[arg(long)]
    subagents: bool,
    /// Only sessions that called this tool.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only sessions in which a tool was called for this file, or one whose path ends so.
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Only what was said on this branch.
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Only sessions with this tag.
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only what was said since then: so long ago (90m, 12h, 7d, 4w), or a date.
    #[arg(long, value_name = "WHEN", value_parser = time::point)]
    since: Option<SystemTime>,
    /// Only what was said before then.
    #[arg(long, value_name = "WHEN", value_parser = time::point)]
    until: Option<SystemTime>,
    /// At most this many places; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    limit: usize,
    /// Write a line of JSON for each place.
    #[arg(long)]
    json: bool,
    /// Do not use a pager.
    #[arg(long)]
    no_pager: bool,
}

/// Parts of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Where {
    Prompts,
    Answers,
    Thinking,
    ToolInputs,
    ToolResults,
}

impl From<Where> for ConversationPart {
    fn from(part: Where) -> Self {
        match part {
            Where::Prompts => Self::Prompt,
            Where::Answers => Self::Answer,
            Where::Thinking => Self::Thinking,
            Where::ToolInputs => Self::ToolInput,
            Where::ToolResults => Self::ToolResult,
        }
    }
}

impl Find {
    pub(super) fn run(self) -> CommandResult {
        let sessions = Sessions::from_env()?;
        // It has the terminal until the first hit is there.
        let bar = Arc::new(Mutex::new(Some(Bar::alone(
            self.json || !io::stdout().is_terminal(),
        ))));
        let observed = bar.clone();
        let hits =
            sessions.search_observed(&self.search(), move |progress| match &mut *locked(&observed) {
                Some(bar) => bar.observe(progress),
                None => ControlFlow::Continue(()),
            })?;
        let mut hits = hits.peekable();
        hits.peek();
        drop(locked(&bar).take());
        let most = if self.limit == 0 { usize::MAX } else { self.limit };
        let (mut found, mut failed) = (0_usize, 0_usize);
        let hit_lines = Pager::show(self.no_pager || self.json, |out, paint| {
            let mut last = None;
            for hit in hits {
                let hit = match hit {
                    Ok(hit) => hit,
                    Err(error) => {
                        eprintln!("outrigger: {}", plain(&error.to_string()));
                        failed += 1;
                        continue;
                    }
                };
                found += 1;
                if self.json {
                    writeln!(out, "{}", as_json(&hit))?;
                } else {
                    if last.as_ref() != Some(&hit.session.session_id) {
                        let id = paint.cyan(hit.session.session_id.as_str());
                        writeln!(out, "{id}  {}", line(&hit.session.summary, 80))?;
                        last = Some(hit.session.session_id.clone());
                    }
                    writeln!(out, "  {}", shown(&hit, paint))?;
                }
                if found >= most {
                    break;
                }
            }
            Ok(())
        })?;
        if found == 0 && failed == 0 {
            eprintln!("outrigger: {:?} was found nowhere", plain(&self.text));
        }
        if failed > 0 || found == 0 {
            return Ok(Status::Failed);
        }
        Ok(hit_lines)
    }

    fn search(&self) -> Search {
        let mut search = Search::new(&self.text)
            .case_sensitive(self.case_sensitive)
            .include_subagents(self.subagents);
        if !self.all {
            search = search.dir(self.dir.clone().unwrap_or_else(here));
        }
        if !self.parts.is_empty() {
            search = search.parts(self.parts.iter().map(|part| ConversationPart::from(*part)));
        }
        search.tool = self.tool.clone();
        search.file = self.file.clone();
        search.branch = self.branch.clone();
        search.tag = self.tag.clone();
        search.since = self.since;
        search.until = self.until;
        search
    }
}

fn locked(bar: &Mutex<Option<Bar>>) -> MutexGuard<'_, Option<Bar>> {
    bar.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When, who, and the text around.
fn shown(hit: &Hit, paint: Paint) -> String {
    let part = match (&hit.part, &hit.tool) {
        (ConversationPart::Prompt, _) => "asked".to_owned(),
        (ConversationPart::Answer, _) => "said".to_owned(),
        (ConversationPart::Thinking, _) => "thought".to_owned(),
        (ConversationPart::ToolInput, Some(tool)) => line(tool, 40),
        (ConversationPart::ToolInput, None) => "called".to_owned(),
        _ => "got".to_owned(),
    };
    let when = hit
        .timestamp
        .as_deref()
        .map(|time| line(&minute(time), 30))
        .unwrap_or_default();
    // Kept as it is but for line breaks: the spaces around what was found count.
    let text = |part: Option<&str>| plain(&part.unwrap_or_default().replace(['\n', '\r', '\t'], " "));
    let (before, found, behind) = (
        text(hit.snippet.get(..hit.range.start)),
        text(hit.snippet.get(hit.range.clone())),
        text(hit.snippet.get(hit.range.end..)),
    );
    format!(
        "{}  {part}: {before}{}{behind}",
        paint.dim(when),
        paint.yellow(found)
    )
}

fn as_json(hit: &Hit) -> serde_json::Value {
    json!({
        "sessionId": hit.session.session_id.as_str(),
        "summary": hit.session.summary,
        "path": hit.path.display().to_string(),
        "agentId": hit.agent.as_ref().map(|agent| agent.as_str()),
        "uuid": hit.uuid,
        "timestamp": hit.timestamp,
        "part": hit.part,
        "tool": hit.tool,
        "snippet": hit.snippet,
        "range": [hit.range.start, hit.range.end],
    })
}
