//! `outrigger sessions list`.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use outrigger::sessions::{ListOptions, SessionInfo, Sessions};

use super::find::{here, line};
use super::pager::Pager;
use super::when::ago;
use crate::exit::{CommandResult, Status};
use crate::paint::Paint;

/// How much of a summary is shown, in characters.
const SUMMARY_SHOWN: usize = 80;

/// List the sessions of this project and of its other worktrees, the one that was written to last first.
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Those of the project at this directory instead.
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    dir: Option<PathBuf>,
    /// Those of all projects, and where they ran.
    #[arg(long)]
    all: bool,
    /// So many at most; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    limit: usize,
    /// Leave out so many of the newest.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    offset: usize,
    /// Leave out those of the repository's other worktrees.
    #[arg(long)]
    no_worktrees: bool,
    /// Leave out those that programs and daemons ran.
    #[arg(long)]
    no_programmatic: bool,
    /// Write them as a JSON list of what the TypeScript SDK calls `SDKSessionInfo`.
    #[arg(long)]
    json: bool,
    /// Never through a pager.
    #[arg(long)]
    no_pager: bool,
}

impl List {
    pub(super) fn run(self) -> CommandResult {
        let mut options = ListOptions::new()
            .limit(self.limit)
            .offset(self.offset)
            .include_worktrees(!self.no_worktrees)
            .include_programmatic(!self.no_programmatic);
        if !self.all {
            options = options.dir(self.dir.unwrap_or_else(here));
        }
        let infos = Sessions::from_env()?.list(&options)?;
        if !self.json && infos.is_empty() && io::stdout().is_terminal() {
            let more = if self.all {
                ""
            } else {
                " of this project; --all shows the others"
            };
            eprintln!("no sessions{more}");
            return Ok(Status::Success);
        }
        Pager::show(self.no_pager || self.json, |out, paint| {
            if self.json {
                serde_json::to_writer_pretty(&mut *out, &infos).map_err(io::Error::from)?;
                writeln!(out)?;
                return Ok(());
            }
            for info in &infos {
                writeln!(out, "{}", shown(info, self.all, paint))?;
            }
            Ok(())
        })
    }
}

/// A session in a line.
fn shown(info: &SessionInfo, with_dir: bool, paint: Paint) -> String {
    let mut text = format!(
        "{}  {:>10}  {}",
        paint.cyan(info.session_id.as_str()),
        ago(info.last_modified),
        line(&info.summary, SUMMARY_SHOWN)
    );
    let mut add = |more: String| text.push_str(&format!("  {more}"));
    if let Some(tag) = info.tag.as_deref().filter(|tag| !tag.is_empty()) {
        add(paint.yellow(format!("#{}", line(tag, SUMMARY_SHOWN))));
    }
    if info.archived == Some(true) {
        add(paint.dim("archived"));
    }
    if let Some(branch) = info.git_branch.as_deref().filter(|branch| *branch != "HEAD") {
        add(paint.dim(format!("({})", line(branch, SUMMARY_SHOWN))));
    }
    if let Some(cwd) = info.cwd.as_deref().filter(|_| with_dir) {
        add(paint.dim(line(cwd, 200)));
    }
    text
}
