//! `outrigger sessions list`.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use outrigger::sessions::{ListOptions, SessionInfo, Sessions};

use super::find::{Beginnings, here};
use super::table::{self, Column, Cut, cell};
use crate::exit::{CommandResult, Status};
use crate::plain::plain;
use crate::time::{self, ago};

/// List the sessions of this project and of its other worktrees, the one that was written to last first.
///
/// At a terminal the table is as wide as the terminal, and each id is cut to the shortest that names its session; elsewhere nothing is
/// cut. Ends with 1 if there are none.
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// List the sessions of the project at this directory instead.
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    dir: Option<PathBuf>,
    /// List the sessions of all projects, and where they ran.
    #[arg(long)]
    all: bool,
    /// Only sessions with this tag.
    #[arg(long, value_name = "TAG", help_heading = "Filters")]
    tag: Option<String>,
    /// Only sessions that were on this branch last.
    #[arg(long, value_name = "NAME", help_heading = "Filters")]
    branch: Option<String>,
    /// Only sessions whose title has this text in it, in upper or lower case.
    #[arg(long, value_name = "TEXT", help_heading = "Filters")]
    title: Option<String>,
    /// Only sessions that were written to since then: so long ago (90m, 12h, 2d, 4w), or a date.
    #[arg(long, value_name = "WHEN", value_parser = time::point, help_heading = "Filters")]
    since: Option<SystemTime>,
    /// Only archived sessions.
    #[arg(long, help_heading = "Filters")]
    archived: bool,
    /// Leave out archived sessions.
    #[arg(long, conflicts_with = "archived", help_heading = "Filters")]
    no_archived: bool,
    /// Leave out sessions of the repository's other worktrees.
    #[arg(long, help_heading = "Filters")]
    no_worktrees: bool,
    /// Leave out sessions that programs and daemons ran.
    #[arg(long, help_heading = "Filters")]
    no_programmatic: bool,
    /// The order of the list.
    #[arg(long, value_enum, default_value = "modified")]
    sort: ListSort,
    /// At most this many; 0 is all.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    limit: usize,
    /// Leave out this many at the beginning.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    offset: usize,
    /// Write a line of JSON for each: what the TypeScript SDK calls `SDKSessionInfo`.
    #[arg(long)]
    json: bool,
    /// Do not use a pager.
    #[arg(long)]
    no_pager: bool,
}

/// `--sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListSort {
    /// That which was written to last first.
    Modified,
    /// That which began last first.
    Created,
    /// By title, from A to Z.
    Title,
    /// The longest transcript first.
    Size,
}

impl List {
    pub(super) fn run(self) -> CommandResult {
        let sessions = Sessions::from_env()?;
        let infos = self.listed(&sessions)?;
        if infos.is_empty() {
            eprintln!("outrigger: {}", plain(&self.nothing()));
            return Ok(Status::Failed);
        }
        let is_short = table::width().is_some() && !self.json;
        let beginnings = is_short.then(|| Beginnings::of(&sessions));
        table::show(&infos, self.json, self.no_pager, &COLUMNS, |info| {
            row(info, self.all, beginnings.as_ref())
        })
    }

    fn listed(&self, sessions: &Sessions) -> outrigger::sessions::Result<Vec<SessionInfo>> {
        let mut options = ListOptions::new()
            .include_worktrees(!self.no_worktrees)
            .include_programmatic(!self.no_programmatic);
        if !self.all {
            options = options.dir(self.dir.clone().unwrap_or_else(here));
        }
        if !self.is_filtered() && self.sort == ListSort::Modified {
            // Then no more is read than is shown.
            return sessions.list(&options.limit(self.limit).offset(self.offset));
        }
        let mut infos = sessions.list(&options)?;
        infos.retain(|info| self.fits(info));
        match self.sort {
            ListSort::Modified => {}
            ListSort::Created => infos.sort_by_key(|info| Reverse(info.created_at)),
            ListSort::Title => infos.sort_by_key(|info| info.summary.to_lowercase()),
            ListSort::Size => infos.sort_by_key(|info| Reverse(info.file_size)),
        }
        let most = if self.limit == 0 { usize::MAX } else { self.limit };
        Ok(infos.into_iter().skip(self.offset).take(most).collect())
    }

    fn is_filtered(&self) -> bool {
        let texts = [&self.tag, &self.branch, &self.title];
        texts.into_iter().any(Option::is_some) || self.since.is_some() || self.archived || self.no_archived
    }

    fn fits(&self, info: &SessionInfo) -> bool {
        let equal = |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let title = self.title.as_ref().is_none_or(|text| {
            let text = text.to_lowercase();
            let titles = [Some(&info.summary), info.custom_title.as_ref()];
            titles
                .into_iter()
                .flatten()
                .any(|title| title.to_lowercase().contains(&text))
        });
        let since = self.since.is_none_or(|since| {
            let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            i64::try_from(since).is_ok_and(|since| info.last_modified >= since)
        });
        let is_archived = info.archived == Some(true);
        equal(&self.tag, &info.tag)
            && equal(&self.branch, &info.git_branch)
            && title
            && since
            && (!self.archived || is_archived)
            && !(self.no_archived && is_archived)
    }

    /// What is said where there is nothing to list.
    fn nothing(&self) -> String {
        let such = if self.is_filtered() || self.offset > 0 {
            "such "
        } else {
            ""
        };
        let missing = |dir: &Path| !dir.is_dir();
        match &self.dir {
            _ if self.all => format!("there are no {such}sessions"),
            Some(dir) if missing(dir) => format!(
                "{} is no directory here, and no {such}sessions are kept of it; --all lists those of all projects",
                dir.display()
            ),
            Some(dir) => format!(
                "there are no {such}sessions of {}; --all lists those of all projects",
                dir.display()
            ),
            None => format!("there are no {such}sessions of this project; --all lists those of all projects"),
        }
    }
}

const COLUMNS: [Column; 7] = [
    Column {
        spared: Some(4),
        ..Column::new("WHEN")
    },
    Column {
        look: |paint, text| paint.cyan(text),
        ..Column::new("ID")
    },
    Column {
        least: 8,
        most: 24,
        spared: Some(0),
        look: |paint, text| paint.dim(text),
        ..Column::new("BRANCH")
    },
    Column {
        least: 6,
        most: 16,
        spared: Some(1),
        look: |paint, text| paint.yellow(text),
        ..Column::new("TAG")
    },
    Column {
        least: 16,
        ..Column::new("TITLE")
    },
    Column {
        spared: Some(2),
        look: |paint, text| paint.dim(text),
        ..Column::new("")
    },
    Column {
        least: 16,
        spared: Some(3),
        cut: Cut::Head,
        look: |paint, text| paint.dim(text),
        ..Column::new("DIRECTORY")
    },
];

/// A session in a row.
fn row(info: &SessionInfo, with_dir: bool, beginnings: Option<&Beginnings>) -> Vec<String> {
    let id = info.session_id.as_str();
    // `HEAD` is what there is where there is no branch.
    let branch = info.git_branch.as_deref().filter(|branch| *branch != "HEAD");
    let tag = info.tag.as_deref().filter(|tag| !tag.is_empty());
    vec![
        ago(info.last_modified),
        beginnings
            .map_or(id, |beginnings| beginnings.shortest(id))
            .to_owned(),
        cell(branch),
        tag.map(|tag| format!("#{}", cell(Some(tag)))).unwrap_or_default(),
        cell(Some(&info.summary)),
        if info.archived == Some(true) {
            "archived"
        } else {
            ""
        }
        .to_owned(),
        cell(info.cwd.as_deref().filter(|_| with_dir)),
    ]
}
