//! Compares the agent with the CLI that it drives, and with another agent.
//!
//! `cargo bench -p outrigger-acp --bench beside [-- RUNS]` starts the program, built for release, with the real, pinned CLI
//! against a scripted API on this machine, ten times unless said otherwise. `OUTRIGGER_ACP` names another build of the program,
//! and `OUTRIGGER_ACP_OTHER` is the command line of another agent, its parts separated by spaces; then the two take turns. Run it
//! inside of `cargo xtask isolated`, which leaves it no network but the loopback. Printed are medians, and ratios to the first row
//! of each table.
//!
//! * *initialize*: from the start of the process to the answer.
//! * *session/new*: from the request to the answer. The *floor* is the CLI by itself, from its start to its answer to
//!   `initialize`. With *spare ready* it is the client's second session, two seconds behind the first, which is closed by then; the
//!   others ask as soon as they can.
//! * *first chunk*: from a prompt to the first piece of the answer's text, in the second turn of a session. The floor is the CLI
//!   by itself, from the line that it is sent to the first piece of text that it says.
//! * *cancel*: from `session/cancel` in the middle of an answer to the answer of the prompt.
//! * *exit*: from the end of the input to the end of the process.
//! * *memory*: what is resident of the agent's process after all that, the CLI not included.
//! * *starts*: how often the CLI was started from the beginning to the end of a session with five prompts. A spare is one more, if that
//!   takes longer than a second.
//! * *bytes*: what the agent writes for a turn that reads a file, edits it, and runs a command that prints 600 lines; and for one
//!   that thinks in 400 pieces.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "its only input is what it has set up itself"
)]

mod client;
mod floor;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outrigger_sim::api::MessagesApi;
use outrigger_sim::claude::{Sandbox, executable};
use serde_json::json;

use crate::client::Client;
use crate::table::{Table, median};

/// How long a spare may take, which is started one second after a session was opened.
const PAUSE: Duration = Duration::from_secs(2);

/// An agent to measure.
#[derive(Clone)]
struct Subject {
    name: &'static str,
    command: Vec<String>,
    /// Whether the client has had a session before the one that is measured.
    pauses: bool,
}

/// The results of one run, in milliseconds unless stated otherwise.
struct Run {
    initialize: f64,
    session: f64,
    chunk: f64,
    cancel: f64,
    exit: f64,
    memory_mb: f64,
    starts: f64,
    bytes: f64,
    thinking: f64,
}

struct Place {
    api: MessagesApi,
    cli: PathBuf,
}

impl Place {
    async fn run(&self, subject: &Subject) -> Run {
        let sandbox = Sandbox::new().unwrap();
        let log = sandbox.path().join("starts");
        let cli = counted(&sandbox, &self.cli, &log);
        let began = Instant::now();
        let mut client = Client::start(&subject.command, &sandbox, &self.api.base_url(), &cli);
        let hello = json!({
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}},
        });
        client.call("initialize", hello).await;
        let initialize = ms(began.elapsed());
        let new = json!({"cwd": sandbox.project(), "mcpServers": []});
        if subject.pauses {
            let before = client.call("session/new", new.clone()).await;
            let before = json!({"sessionId": before["sessionId"]});
            tokio::time::sleep(PAUSE).await;
            client.call("session/close", before).await;
        }
        let began = Instant::now();
        let answer = client.call("session/new", new).await;
        let session = ms(began.elapsed());
        let id = answer["sessionId"].as_str().unwrap().to_owned();

        // The first turn of a CLI reads more than those after it.
        client.turn(&id, "%say first").await;
        let began = Instant::now();
        let prompt = client.prompt(&id, "%say second").await;
        client.chunk().await;
        let chunk = ms(began.elapsed());
        client.answer(prompt).await;

        let bytes = self.bytes(&mut client, &id, &sandbox).await;
        let before = client.bytes();
        let thought = "Some more of a thought. ".repeat(400);
        client
            .turn(&id, &format!("%slow 1 chunk=24\n%think {thought}\n%+say done"))
            .await;
        let thinking = (client.bytes() - before) as f64;

        let prompt = client.prompt(&id, "%hang\n%say beginning").await;
        client.chunk().await;
        let began = Instant::now();
        client.notify("session/cancel", json!({"sessionId": id})).await;
        let answer = client.answer(prompt).await;
        assert_eq!(answer["stopReason"], "cancelled", "{answer}");
        let cancel = ms(began.elapsed());

        let memory_mb = client.resident_mb();
        let began = Instant::now();
        client.end().await;
        let exit = ms(began.elapsed());
        let started = std::fs::read_to_string(&log).unwrap_or_default();
        Run {
            initialize,
            session,
            chunk,
            cancel,
            exit,
            memory_mb,
            starts: started.lines().count() as f64,
            bytes,
            thinking,
        }
    }

    async fn bytes(&self, client: &mut Client, id: &str, sandbox: &Sandbox) -> f64 {
        let lines: String = (1..=200).map(|line| format!("line {line} of a file\n")).collect();
        let file = sandbox.write("notes.txt", lines).unwrap();
        let read = json!({"file_path": file});
        let edit = json!({
            "file_path": file,
            "old_string": "line 100 of a file",
            "new_string": "the hundredth line",
        });
        let run = json!({"command": "seq 1 600", "description": "Count"});
        let said = "Some text that an answer ends with. ".repeat(20);
        let before = client.bytes();
        let turn = format!("%tool Read {read}\n%tool Edit {edit}\n%tool Bash {run}\n%say {said}");
        client.turn(id, &turn).await;
        let edited = std::fs::read_to_string(&file).unwrap();
        assert!(edited.contains("the hundredth line"), "nothing was edited");
        (client.bytes() - before) as f64
    }
}

/// A script that records each start of the CLI.
fn counted(sandbox: &Sandbox, cli: &Path, log: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let script = sandbox.path().join("claude");
    let text = format!(
        "#!/bin/sh\necho \"$1\" >> '{}'\nexec '{}' \"$@\"\n",
        log.display(),
        cli.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// The program to measure.
fn ours() -> String {
    std::env::var("OUTRIGGER_ACP").unwrap_or_else(|_| env!("CARGO_BIN_EXE_outrigger-acp").to_owned())
}

fn subjects() -> Vec<Subject> {
    let ours = ours();
    let mut subjects = vec![
        Subject {
            name: "outrigger-acp",
            command: vec![ours.clone()],
            pauses: false,
        },
        Subject {
            name: "outrigger-acp, spare ready",
            command: vec![ours.clone()],
            pauses: true,
        },
        Subject {
            name: "outrigger-acp --no-spare",
            command: vec![ours, "--no-spare".to_owned()],
            pauses: false,
        },
    ];
    if let Ok(other) = std::env::var("OUTRIGGER_ACP_OTHER") {
        subjects.push(Subject {
            name: "the other",
            command: other.split_whitespace().map(str::to_owned).collect(),
            pauses: false,
        });
    }
    subjects
}

#[tokio::main]
async fn main() {
    let runs = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(10);
    let place = Place {
        api: MessagesApi::builder().directives(true).start().await.unwrap(),
        cli: executable().await.unwrap(),
    };
    let subjects = subjects();
    let mut floors = Vec::new();
    let mut all: Vec<Vec<Run>> = subjects.iter().map(|_| Vec::new()).collect();
    for _ in 0..runs {
        floors.push(floor::run(&place.api, &place.cli).await);
        for (subject, runs) in subjects.iter().zip(&mut all) {
            runs.push(place.run(subject).await);
        }
    }

    let of = |runs: &[Run], what: fn(&Run) -> f64| median(runs.iter().map(what).collect());
    let each = |table: &mut Table, what: fn(&Run) -> f64| {
        for (subject, runs) in subjects.iter().zip(&all) {
            table.row(subject.name, of(runs, what));
        }
    };
    let bare = |table: &mut Table, what: fn(&floor::Floor) -> f64| {
        table.row("the CLI by itself", median(floors.iter().map(what).collect()));
    };
    println!("{runs} runs, medians");
    let mut table = Table::new("initialize, ms");
    each(&mut table, |run| run.initialize);
    table.print();
    let mut table = Table::new("session/new, ms");
    bare(&mut table, |floor| floor.start);
    each(&mut table, |run| run.session);
    table.print();
    let mut table = Table::new("first chunk, ms");
    bare(&mut table, |floor| floor.chunk);
    each(&mut table, |run| run.chunk);
    table.print();
    let mut table = Table::new("cancel, ms");
    each(&mut table, |run| run.cancel);
    table.print();
    let mut table = Table::new("exit, ms");
    each(&mut table, |run| run.exit);
    table.print();
    let mut table = Table::new("memory, MB");
    each(&mut table, |run| run.memory_mb);
    table.print();
    let mut table = Table::new("starts of the CLI");
    each(&mut table, |run| run.starts);
    table.print();
    let mut table = Table::new("bytes of a turn");
    each(&mut table, |run| run.bytes);
    table.print();
    let mut table = Table::new("bytes of a turn that thinks");
    each(&mut table, |run| run.thinking);
    table.print();
    let program = std::fs::metadata(ours()).unwrap();
    println!("\nthe program: {:.1} MB", program.len() as f64 / 1e6);
}
