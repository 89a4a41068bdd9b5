//! How fast sessions are searched, as ratios in one run.
//!
//! `cargo bench -p outrigger-sessions --bench searching`; ripgrep is compared with if `rg` is on the `PATH`. `OUTRIGGER_BENCH_MIB`
//! (1024) and `OUTRIGGER_BENCH_SESSIONS` (2000) make it larger or smaller. The data are made in the temporary directory.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "this is a program for a terminal, which ends when something fails"
)]

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outrigger_sessions::search::Search;
use outrigger_sessions::{SessionId, Sessions};
use serde_json::json;

const ROUNDS: usize = 5;

fn main() {
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().map_or(default, |it| {
            it.parse().unwrap_or_else(|_| panic!("{name} is no number"))
        })
    };
    let mib = number("OUTRIGGER_BENCH_MIB", 1024);
    let many = number("OUTRIGGER_BENCH_SESSIONS", 2000);
    println!(
        "load {}",
        fs::read_to_string("/proc/loadavg").unwrap_or_default().trim()
    );
    let place = tempfile::tempdir().unwrap();
    let (paths, bytes) = make(place.path(), many, mib * 1024 * 1024);
    println!(
        "\nsearch {many} sessions, {} MiB in all, best of {ROUNDS}",
        bytes >> 20
    );
    let sessions = Sessions::at(place.path());
    let plain = best(|| plain_reads(&paths));
    println!("  {:<46} {:>9.1} ms", "read all of it, plainly", millis(plain.0));
    for (what, text, exactly) in [
        ("a text that is nowhere", "Quetzalcoatl rides", false),
        ("the same, case sensitive", "Quetzalcoatl rides", true),
        (
            "a text that is in each hundredth session",
            "The Rare Remark",
            false,
        ),
        ("a text that is in each turn", "Why does the build", false),
    ] {
        let search = Search::new(text).case_sensitive(exactly);
        let (ours, hits) = best(|| sessions.search(&search).unwrap().map(Result::unwrap).count());
        show(what, "outrigger", ours, hits, plain.0, "plain reads");
        if let Some((theirs, lines)) = ripgrep(place.path(), text, exactly) {
            show("", "rg", theirs, lines, plain.0, "plain reads");
            println!("  {:>56.2} × rg", ours.as_secs_f64() / theirs.as_secs_f64());
        }
    }
}

fn show(what: &str, who: &str, time: Duration, found: usize, against: Duration, name: &str) {
    println!(
        "  {what:<40} {who:<9} {found:>8} found {:>9.1} ms  {:>6.2} × {name}",
        millis(time),
        time.as_secs_f64() / against.as_secs_f64()
    );
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn best(mut run: impl FnMut() -> usize) -> (Duration, usize) {
    let rounds = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        let told = std::hint::black_box(run());
        (begun.elapsed(), told)
    });
    rounds.min().unwrap_or_default()
}

/// Ripgrep's time for the same text in the same files, with what it prints read and thrown away; how many lines it finds. `None` if
/// there is none.
fn ripgrep(config: &Path, text: &str, exactly: bool) -> Option<(Duration, usize)> {
    let run = || {
        let mut rg = Command::new("rg");
        rg.args(["--fixed-strings", "--no-ignore", "--hidden", "--no-config"]);
        rg.arg(if exactly {
            "--case-sensitive"
        } else {
            "--ignore-case"
        });
        let output = rg.arg("--").arg(text).arg(config).output().ok()?;
        Some(output.stdout.iter().filter(|byte| **byte == b'\n').count())
    };
    run()?;
    Some(best(|| run().unwrap_or_default()))
}

/// Reads all files by as many threads as there are processors.
fn plain_reads(paths: &[PathBuf]) -> usize {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut buffer = vec![0; 512 * 1024];
        let mut read = 0;
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut file = File::open(path).unwrap();
            loop {
                match file.read(&mut buffer).unwrap() {
                    0 => break,
                    more => read += more,
                }
            }
        }
        read
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    })
}

/// Sessions in 20 projects, all of about the same length.
fn make(config: &Path, many: usize, bytes: usize) -> (Vec<PathBuf>, u64) {
    let sessions = Sessions::at(config);
    let share = bytes / many.max(1);
    let text = "What somebody would say about the code, which goes on for a while. ".repeat(12);
    let mut paths = Vec::with_capacity(many);
    let mut all = 0;
    for nth in 0..many {
        let dir = sessions.project_dir(format!("/home/somebody/project-{}", nth % 20));
        fs::create_dir_all(&dir).unwrap();
        let id = SessionId::random();
        let path = dir.join(id.file_name());
        let mut file = BufWriter::new(File::create(&path).unwrap());
        let mut written = 0;
        let mut put = |kind: &str, content: serde_json::Value| {
            let line = format!(
                "{{\"parentUuid\":null,\"isSidechain\":false,\"type\":\"{kind}\",\"message\":{},\"uuid\":\"{}\",\
                 \"timestamp\":\"2026-01-01T00:00:00.000Z\",\"userType\":\"external\",\"entrypoint\":\"cli\",\
                 \"cwd\":\"/home/somebody/project\",\"sessionId\":\"{id}\",\"version\":\"2.1.330\",\"gitBranch\":\"main\"}}\n",
                json!({"role": kind, "content": content}),
                SessionId::random()
            );
            file.write_all(line.as_bytes()).unwrap();
            written += line.len();
            written
        };
        if nth % 100 == 0 {
            put("user", json!("This is the rare remark."));
        }
        loop {
            put("user", json!("Why does the build fail?"));
            put(
                "assistant",
                json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": text}}]),
            );
            put(
                "user",
                json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": text.repeat(8)}]),
            );
            if put("assistant", json!([{"type": "text", "text": text}])) >= share {
                break;
            }
        }
        all += written as u64;
        file.flush().unwrap();
        paths.push(path);
    }
    (paths, all)
}
