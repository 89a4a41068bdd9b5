//! `outrigger sessions agents`.

use std::fs;
use std::io;
use std::time::UNIX_EPOCH;

use outrigger::sessions::Subagent;

use super::find::{Named, line};
use super::pager::Pager;
use super::table::{self, Column, Cut};
use crate::exit::{CommandResult, Status};
use crate::screen::plain;
use crate::time::ago;

/// How much of a text is looked at, in characters; the terminal may show less.
const LOOKED_AT: usize = 200;

/// List the subagents of a session, which `show --agent` reads.
///
/// Ends with 1 if there are none.
#[derive(Debug, clap::Args)]
pub(super) struct Agents {
    #[command(flatten)]
    named: Named,
    /// Write a line of JSON for each.
    #[arg(long)]
    json: bool,
    /// Never through a pager.
    #[arg(long)]
    no_pager: bool,
}

impl Agents {
    pub(super) fn run(self) -> CommandResult {
        let (_, file) = self.named.find()?;
        let agents = file.subagents();
        if agents.is_empty() {
            eprintln!("outrigger: session {} has no subagents", plain(file.id.as_str()));
            return Ok(Status::Failed);
        }
        Pager::show(self.no_pager || self.json, |out, paint| {
            if self.json {
                for agent in &agents {
                    serde_json::to_writer(&mut *out, agent).map_err(io::Error::from)?;
                    writeln!(out)?;
                }
                return Ok(());
            }
            let rows: Vec<_> = agents.iter().map(row).collect();
            Ok(table::write(&COLUMNS, &rows, table::width(), out, paint)?)
        })
    }
}

const COLUMNS: [Column; 5] = [
    Column {
        name: "WHEN",
        least: 0,
        most: usize::MAX,
        spared: Some(2),
        cut: Cut::Tail,
        look: |_, text| text.to_owned(),
    },
    Column {
        name: "AGENT",
        least: 0,
        most: usize::MAX,
        spared: None,
        cut: Cut::Tail,
        look: |paint, text| paint.cyan(text),
    },
    Column {
        name: "TYPE",
        least: 8,
        most: 20,
        spared: Some(1),
        cut: Cut::Tail,
        look: |paint, text| paint.yellow(text),
    },
    Column {
        name: "PARENT",
        least: 0,
        most: usize::MAX,
        spared: Some(0),
        cut: Cut::Tail,
        look: |paint, text| paint.dim(text),
    },
    Column {
        name: "TASK",
        least: 16,
        most: usize::MAX,
        spared: Some(3),
        cut: Cut::Tail,
        look: |_, text| text.to_owned(),
    },
];

fn row(agent: &Subagent) -> Vec<String> {
    let written = fs::metadata(&agent.path)
        .and_then(|metadata| metadata.modified())
        .ok();
    let millis = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let when = millis.and_then(|time| i64::try_from(time.as_millis()).ok());
    let text = |text: Option<&str>| line(text.unwrap_or_default(), LOOKED_AT);
    vec![
        when.map(ago).unwrap_or_default(),
        text(Some(agent.agent_id.as_str())),
        text(agent.agent_type.as_deref()),
        text(agent.parent_agent_id.as_deref()),
        text(agent.description.as_deref()),
    ]
}
