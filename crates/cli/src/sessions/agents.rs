//! `outrigger sessions agents`.

use std::fs;
use std::time::UNIX_EPOCH;

use outrigger::sessions::Subagent;

use super::find::Named;
use super::table::{self, Column, cell};
use crate::exit::{CommandResult, Status};
use crate::plain::plain;
use crate::time::ago;

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
    /// Do not use a pager.
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
        table::show(&agents, self.json, self.no_pager, &COLUMNS, row)
    }
}

const COLUMNS: [Column; 5] = [
    Column {
        spared: Some(2),
        ..Column::new("WHEN")
    },
    Column {
        look: |paint, text| paint.cyan(text),
        ..Column::new("AGENT")
    },
    Column {
        least: 8,
        most: 20,
        spared: Some(1),
        look: |paint, text| paint.yellow(text),
        ..Column::new("TYPE")
    },
    Column {
        spared: Some(0),
        look: |paint, text| paint.dim(text),
        ..Column::new("PARENT")
    },
    Column {
        least: 16,
        spared: Some(3),
        ..Column::new("TASK")
    },
];

fn row(agent: &Subagent) -> Vec<String> {
    let written = fs::metadata(&agent.path)
        .and_then(|metadata| metadata.modified())
        .ok();
    let millis = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let when = millis.and_then(|time| i64::try_from(time.as_millis()).ok());
    vec![
        when.map(ago).unwrap_or_default(),
        cell(Some(agent.agent_id.as_str())),
        cell(agent.agent_type.as_deref()),
        cell(agent.parent_agent_id.as_deref()),
        cell(agent.description.as_deref()),
    ]
}
