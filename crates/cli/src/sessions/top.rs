//! `outrigger top`: the sessions whose processes run on this machine, and the latest of those that are stored.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use outrigger::sessions::lease::{CliProcess, cli_processes};
use outrigger::sessions::{ListOptions, SessionId, Sessions, Tally};
use serde::Serialize;

use super::find::Beginnings;
use super::table::{self, Column, Cut, cell};
use crate::exit::{CommandResult, Status};
use crate::paint::Paint;
use crate::screen::is_dumb;
use crate::signals::Signals;
use crate::time;

/// Watch the sessions of this machine: state, turns, tokens, cost, memory, age.
///
/// Shows the sessions whose Claude Code runs, whoever started it, and the latest of those that are only stored. At a terminal the list is
/// drawn again and again until Ctrl-C; elsewhere it is written once. The cost is what the CLI has recorded, which it does when a process
/// ends.
#[derive(Debug, clap::Args)]
pub(crate) struct Top {
    /// One JSON object for each session; with --every again and again.
    #[arg(long)]
    json: bool,
    /// How often the list is drawn again, such as `5s`; 2 s at a terminal.
    #[arg(long, value_name = "DURATION", value_parser = time::duration)]
    every: Option<Duration>,
    /// Writes the list once, at a terminal, too.
    #[arg(long, conflicts_with = "every")]
    once: bool,
    /// How many of the sessions that do not run are shown, the latest first.
    #[arg(long, value_name = "N", default_value_t = 10)]
    stored: usize,
    /// What the list is sorted by, the greatest first; those that run come first.
    #[arg(long, value_enum, default_value = "age", value_name = "WHAT")]
    sort: TopSort,
}

/// `--sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TopSort {
    /// The youngest first.
    Age,
    /// Tokens of all kinds.
    Tokens,
    /// The cost.
    Cost,
    /// The resident memory.
    Memory,
}

/// A session, as `--json` has it.
#[derive(Debug, Clone, Serialize)]
struct Row {
    session_id: SessionId,
    /// `busy`, `idle`, `waiting` and others of the CLI's words, `started` before the first turn, `stored` without a process.
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// Whether a program of ours started it.
    driven_by_outrigger: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_bytes: Option<u64>,
    /// Since when the session runs; when it was last written, without a process. Milliseconds since 1970.
    since_ms: u64,
    turns: u64,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<PathBuf>,
}

impl Top {
    pub(crate) async fn run(self) -> CommandResult {
        let mut signals = Signals::catch()?;
        let sessions = Sessions::from_env()?;
        // A terminal that draws nothing twice gets the list as a file does.
        let is_live = io::stdout().is_terminal() && !self.json && !self.once && !is_dumb();
        let every = self.every.or(is_live.then_some(Duration::from_secs(2)));
        let screen = is_live.then(OtherScreen::take).transpose()?;
        let mut watch = Watch {
            sessions,
            tallies: HashMap::new(),
        };
        loop {
            let (stored, sort) = (self.stored, self.sort);
            let looked = tokio::task::spawn_blocking(move || {
                let rows = watch.rows(stored, sort);
                (watch, rows)
            });
            let rows;
            (watch, rows) = tokio::select! {
                looked = looked => looked?,
                signal = signals.next() => return Ok(signal.status()),
            };
            match &screen {
                Some(screen) => screen.draw(&rows, &Beginnings::of(&watch.sessions))?,
                None => table::show(&rows, self.json, true, &COLUMNS, |row| cells(row, None)).map(drop)?,
            }
            let Some(every) = every else {
                return Ok(Status::Success);
            };
            tokio::select! {
                signal = signals.next() => return Ok(signal.status()),
                () = tokio::time::sleep(every) => {}
            }
        }
    }
}

/// What is remembered from one look to the next.
struct Watch {
    sessions: Sessions,
    tallies: HashMap<SessionId, Tally>,
}

impl Watch {
    fn rows(&mut self, stored: usize, sort: TopSort) -> Vec<Row> {
        let mut running: Vec<Row> = cli_processes(self.sessions.config_dir())
            .into_iter()
            .map(|process| self.running(process))
            .collect();
        let options = ListOptions::new().limit(stored + running.len());
        let infos = if stored == 0 {
            Vec::new()
        } else {
            self.sessions.list(&options).unwrap_or_default()
        };
        let mut rest: Vec<Row> = Vec::new();
        for info in infos {
            if let Some(row) = running.iter_mut().find(|row| row.session_id == info.session_id) {
                row.title = Some(info.summary);
                continue;
            }
            if rest.len() < stored {
                let cwd = info.cwd.map(PathBuf::from);
                let since_ms = u64::try_from(info.last_modified).unwrap_or_default();
                rest.push(Row {
                    title: Some(info.summary),
                    cwd,
                    ..self.counted(info.session_id, since_ms)
                });
            }
        }
        let seen: Vec<&SessionId> = running.iter().chain(&rest).map(|row| &row.session_id).collect();
        self.tallies.retain(|id, _| seen.contains(&id));
        let by = |row: &Row| match sort {
            TopSort::Age => row.since_ms,
            TopSort::Tokens => row.tokens,
            TopSort::Cost => (row.cost_usd.unwrap_or_default().max(0.0) * 1e6) as u64,
            TopSort::Memory => row.resident_bytes.unwrap_or_default(),
        };
        running.sort_by_key(|row| std::cmp::Reverse(by(row)));
        rest.sort_by_key(|row| std::cmp::Reverse(by(row)));
        running.extend(rest);
        running
    }

    fn running(&mut self, process: CliProcess) -> Row {
        let since = process
            .started_at
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Row {
            state: process.status.unwrap_or_else(|| "started".to_owned()),
            pid: Some(process.pid),
            driven_by_outrigger: process.entrypoint.as_deref() == Some("sdk-rust"),
            resident_bytes: resident(process.pid),
            cwd: process.cwd,
            ..self.counted(
                process.session_id,
                u64::try_from(since.as_millis()).unwrap_or_default(),
            )
        }
    }

    /// A stored session, with what its transcript shows.
    fn counted(&mut self, id: SessionId, since_ms: u64) -> Row {
        let tally = self.tallies.entry(id.clone()).or_default();
        // A session that was not stored yet has used nothing.
        if let Ok(file) = self.sessions.find(&id) {
            drop(tally.update(&file));
        }
        Row {
            session_id: id,
            state: "stored".to_owned(),
            pid: None,
            driven_by_outrigger: false,
            resident_bytes: None,
            since_ms,
            turns: tally.prompts,
            tokens: tally.tokens,
            cost_usd: tally.cost_usd,
            model: tally.model.clone(),
            title: None,
            cwd: None,
        }
    }
}

/// The resident memory of a process, without what it started; Linux tells it.
fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

const COLUMNS: [Column; 9] = [
    Column {
        look: |paint, text| match text {
            "busy" => paint.green(text),
            "waiting" => paint.yellow(text),
            "stored" => paint.dim(text),
            _ => text.to_owned(),
        },
        ..Column::new("STATE")
    },
    Column {
        look: |paint, text| paint.cyan(text),
        ..Column::new("SESSION")
    },
    Column {
        spared: Some(5),
        ..Column::new("AGE")
    },
    Column {
        spared: Some(6),
        ..Column::new("MEMORY")
    },
    Column {
        spared: Some(3),
        ..Column::new("TURNS")
    },
    Column {
        spared: Some(7),
        ..Column::new("TOKENS")
    },
    Column {
        spared: Some(4),
        ..Column::new("COST")
    },
    Column {
        least: 12,
        most: 40,
        spared: Some(8),
        ..Column::new("TITLE")
    },
    Column {
        least: 12,
        spared: Some(1),
        cut: Cut::Head,
        look: |paint, text| paint.dim(text),
        ..Column::new("DIRECTORY")
    },
];

fn cells(row: &Row, beginnings: Option<&Beginnings>) -> Vec<String> {
    let id = row.session_id.as_str();
    let since = i64::try_from(row.since_ms).unwrap_or(i64::MAX);
    vec![
        cell(Some(&row.state)),
        beginnings
            .map_or(id, |beginnings| beginnings.shortest(id))
            .to_owned(),
        time::ago(since).trim_end_matches(" ago").to_owned(),
        row.resident_bytes
            .map(|bytes| format!("{} MB", bytes / 1_000_000))
            .unwrap_or_default(),
        row.turns.to_string(),
        short(row.tokens),
        row.cost_usd.map(|usd| format!("${usd:.2}")).unwrap_or_default(),
        cell(row.title.as_deref()),
        cell(row.cwd.as_ref().and_then(|cwd| cwd.to_str())),
    ]
}

/// A count in few characters.
fn short(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{}k", count / 1000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// The terminal's other screen, until this is dropped.
struct OtherScreen;

impl OtherScreen {
    fn take() -> io::Result<Self> {
        let mut out = io::stdout().lock();
        // The other screen, no cursor, and what is too wide for the terminal is cut.
        out.write_all(b"\x1b[?1049h\x1b[?25l\x1b[?7l")?;
        out.flush()?;
        Ok(Self)
    }

    fn draw(&self, rows: &[Row], beginnings: &Beginnings) -> io::Result<()> {
        let cells: Vec<_> = rows.iter().map(|row| cells(row, Some(beginnings))).collect();
        let running = rows.iter().filter(|row| row.pid.is_some()).count();
        let memory: u64 = rows.iter().filter_map(|row| row.resident_bytes).sum();
        let mut text = format!("{running} run, {} MB; Ctrl-C ends\n\n", memory / 1_000_000).into_bytes();
        table::write(
            &COLUMNS,
            &cells,
            table::width(),
            &mut text,
            Paint::on(&io::stdout()),
        )?;
        let height = table::height();
        let mut out = io::stdout().lock();
        out.write_all(b"\x1b[H")?;
        for line in text.split(|byte| *byte == b'\n').take(height.saturating_sub(1)) {
            out.write_all(line)?;
            // The rest of an older line goes.
            out.write_all(b"\x1b[K\r\n")?;
        }
        out.write_all(b"\x1b[J")?;
        out.flush()
    }
}

impl Drop for OtherScreen {
    fn drop(&mut self) {
        let mut out = io::stdout().lock();
        drop(
            out.write_all(b"\x1b[?7h\x1b[?25h\x1b[?1049l")
                .and_then(|()| out.flush()),
        );
    }
}
