//! `outrigger ps`.

use outrigger_host_client::{Session, SessionState};

use super::{HostArgs, NAMES, failure};
use crate::exit::CommandResult;
use crate::sessions::Beginnings;
use crate::sessions::table::{self, Column, Cut, cell};
use crate::time;

/// List the sessions of a host: what they do, and what waits for a person.
#[derive(Debug, clap::Args)]
#[command(after_help = NAMES)]
pub(crate) struct Ps {
    /// List archived sessions, too.
    #[arg(short, long)]
    all: bool,
    /// One JSON object for each session, as the host wrote it.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

impl Ps {
    pub(crate) async fn run(self) -> CommandResult {
        let client = self.host.client()?;
        let sessions = client.all_sessions().await.map_err(failure)?;
        let beginnings = Beginnings::among(sessions.iter().map(|session| session.id.clone()));
        let mut shown: Vec<&Session> = sessions
            .iter()
            .filter(|session| self.all || session.state != SessionState::Ended)
            .collect();
        // What waits for a person first, then the youngest.
        shown.sort_by_key(|session| {
            let waits = session.pending_approvals > 0;
            (!waits, std::cmp::Reverse(session.created_at))
        });
        table::show(&shown, self.json, true, &COLUMNS, |session| {
            let pending = session.pending_approvals;
            let created = i64::try_from(session.created_at).unwrap_or(i64::MAX);
            vec![
                cell(Some(session.state.as_str())),
                cell(Some(beginnings.shortest(&session.id))),
                time::ago(created).trim_end_matches(" ago").to_owned(),
                if pending > 0 {
                    pending.to_string()
                } else {
                    String::new()
                },
                session.head_seq.to_string(),
                cell(session.title.as_deref()),
                cell(Some(&session.cwd)),
            ]
        })
    }
}

const COLUMNS: [Column; 7] = [
    Column {
        look: |paint, text| match text {
            "running" | "starting" => paint.green(text),
            "requires_action" => paint.yellow(text),
            "failed" | "interrupted" => paint.red(text),
            "ended" => paint.dim(text),
            _ => text.to_owned(),
        },
        ..Column::new("STATE")
    },
    Column {
        look: |paint, text| paint.cyan(text),
        ..Column::new("SESSION")
    },
    Column {
        spared: Some(2),
        ..Column::new("AGE")
    },
    Column {
        look: |paint, text| paint.yellow(text),
        ..Column::new("ASKS")
    },
    Column {
        spared: Some(1),
        ..Column::new("EVENTS")
    },
    Column {
        least: 12,
        most: 40,
        spared: Some(4),
        ..Column::new("TITLE")
    },
    Column {
        least: 12,
        spared: Some(3),
        cut: Cut::Head,
        look: |paint, text| paint.dim(text),
        ..Column::new("DIRECTORY")
    },
];
