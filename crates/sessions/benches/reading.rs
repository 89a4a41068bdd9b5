//! How fast sessions are listed and read, as ratios in one run.
//!
//! `cargo bench -p outrigger-sessions --bench reading`; `OUTRIGGER_PYTHON` names an interpreter with the official SDK (after
//! `cargo xtask clients python` there is one in `target/clients/python/venv/bin/python`), and without it there is no comparison
//! with that. `OUTRIGGER_BENCH_SESSIONS` (10000), `OUTRIGGER_BENCH_MIB` (256) and `OUTRIGGER_BENCH_LONG_MIB` (500) make it larger
//! or smaller. The data are made in the temporary directory.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "this is a program for a terminal, which ends when something fails"
)]

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use outrigger_sessions::{ListOptions, MessageOptions, SessionId, Sessions};
use serde_json::json;

const ROUNDS: usize = 5;

fn main() {
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().map_or(default, |it| {
            it.parse().unwrap_or_else(|_| panic!("{name} is no number"))
        })
    };
    let (many, mib) = (
        number("OUTRIGGER_BENCH_SESSIONS", 10_000),
        number("OUTRIGGER_BENCH_MIB", 256),
    );
    let long = number("OUTRIGGER_BENCH_LONG_MIB", 500);
    println!(
        "load {}",
        fs::read_to_string("/proc/loadavg").unwrap_or_default().trim()
    );
    let place = tempfile::tempdir().unwrap();
    listing(place.path(), many, mib);
    let place = tempfile::tempdir().unwrap();
    reading(place.path(), long);
}

fn listing(config: &Path, many: usize, mib: usize) {
    let paths = make_sessions(config, many, mib * 1024 * 1024);
    let bytes: u64 = paths.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    println!(
        "\nlist {many} sessions, {} MiB in all, best of {ROUNDS}",
        bytes >> 20
    );
    let sessions = Sessions::at(config);
    let plain = best(|| plain_reads(&paths));
    let ours = best(|| sessions.list(&ListOptions::new()).unwrap().len());
    let page = best(|| sessions.list(&ListOptions::new().limit(50)).unwrap().len());
    show("plain reads of 64 KiB of each end", plain, None);
    show("list", ours, Some((plain, "plain reads")));
    show("list, 50 newest", page, Some((ours, "list")));
    if let Some(python) = std::env::var_os("OUTRIGGER_PYTHON") {
        let script = "import time\nfrom claude_agent_sdk import list_sessions\nbest=9e9\nfor _ in range(3):\n  a=time.perf_counter()\n  \
                      n=len(list_sessions())\n  best=min(best,time.perf_counter()-a)\nprint(best,n)";
        let output = Command::new(python)
            .args(["-c", script])
            .env("CLAUDE_CONFIG_DIR", config)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut told = text.split_whitespace();
        let seconds: f64 = told
            .next()
            .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)))
            .parse()
            .unwrap();
        assert_eq!(told.next(), Some(many.to_string().as_str()), "both list the same");
        let theirs = Duration::from_secs_f64(seconds);
        show("list_sessions of the Python SDK", theirs, Some((ours, "list")));
    }
    assert_eq!(sessions.list(&ListOptions::new()).unwrap().len(), many);
}

fn reading(config: &Path, mib: usize) {
    let id = SessionId::random();
    let sessions = Sessions::at(config);
    let dir = sessions.projects_dir().join("-a-long-session");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(id.file_name());
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let records = write_conversation(&mut file, &id, mib * 1024 * 1024);
    file.flush().unwrap();
    drop(file);
    println!("\nmessages of one session of {mib} MiB, {records} records");
    let before = resident("VmHWM");
    let plain = best(|| {
        let mut file = File::open(&path).unwrap();
        let mut buffer = vec![0; 256 * 1024];
        let mut read = 0;
        loop {
            match file.read(&mut buffer).unwrap() {
                0 => return read,
                more => read += more,
            }
        }
    });
    let begun = Instant::now();
    let messages = sessions.messages(&id, &MessageOptions::new()).unwrap();
    let opened = begun.elapsed();
    let peak = resident("VmHWM");
    let count = messages.count_all();
    let last = messages.get(count - 1).unwrap().unwrap();
    assert!(last.message.is_some());
    let begun = Instant::now();
    let bytes: usize = messages
        .map(|message| message.unwrap().record.bytes().len())
        .sum();
    let all = begun.elapsed();
    show("read the file, plainly", plain, None);
    show("open: find the conversation", opened, Some((plain, "plain read")));
    show(
        &format!("read all {count} messages, {} MiB", bytes >> 20),
        all,
        Some((plain, "plain read")),
    );
    println!(
        "  memory at most: {} MiB before, {} MiB when open, {} MiB when read",
        before >> 10,
        peak >> 10,
        resident("VmHWM") >> 10
    );
}

fn best<T>(mut run: impl FnMut() -> T) -> Duration {
    let rounds = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        std::hint::black_box(run());
        begun.elapsed()
    });
    rounds.min().unwrap_or_default()
}

fn show(what: &str, time: Duration, against: Option<(Duration, &str)>) {
    let millis = time.as_secs_f64() * 1000.0;
    match against {
        Some((other, name)) => println!(
            "  {what:<42} {millis:>9.1} ms  {:>7.2} × {name}",
            time.as_secs_f64() / other.as_secs_f64()
        ),
        None => println!("  {what:<42} {millis:>9.1} ms"),
    }
}

/// The same bytes as listing reads, one file after the other.
fn plain_reads(paths: &[PathBuf]) -> usize {
    let mut buffer = vec![0; 64 * 1024];
    let mut read = 0;
    for path in paths {
        let mut file = File::open(path).unwrap();
        let size = file.metadata().unwrap().len();
        read += fill(&mut file, &mut buffer);
        if size > buffer.len() as u64 {
            file.seek(SeekFrom::Start(size - buffer.len() as u64)).unwrap();
            read += fill(&mut file, &mut buffer);
        }
    }
    read
}

fn fill(file: &mut File, buffer: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]).unwrap() {
            0 => break,
            more => filled += more,
        }
    }
    filled
}

/// In KiB, from what the system says of this process; 0 where it says nothing.
fn resident(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok())
        .unwrap_or(0)
}

/// Sessions in 50 projects, most of them short and some long.
fn make_sessions(config: &Path, many: usize, bytes: usize) -> Vec<PathBuf> {
    let sessions = Sessions::at(config);
    let mut paths = Vec::with_capacity(many);
    for nth in 0..many {
        let dir = sessions.project_dir(format!("/home/somebody/project-{}", nth % 50));
        if nth < 50 {
            fs::create_dir_all(&dir).unwrap();
        }
        let id = SessionId::random();
        let path = dir.join(id.file_name());
        let mut file = BufWriter::new(File::create(&path).unwrap());
        // One in ten has half of it all.
        let share = if nth % 10 == 0 {
            bytes / 2 / (many / 10).max(1)
        } else {
            bytes / 2 / (many * 9 / 10).max(1)
        };
        write_conversation(&mut file, &id, share);
        file.flush().unwrap();
        paths.push(path);
    }
    paths
}

/// Turns with calls, two at a time, and what the CLI notes, until there are so many bytes; how many records.
fn write_conversation(into: &mut impl std::io::Write, id: &SessionId, bytes: usize) -> usize {
    let (mut written, mut records) = (0, 0);
    let mut parent: Option<String> = None;
    let text = "What somebody would say about the code, which goes on for a while. ".repeat(12);
    let mut put = |line: String| {
        written += line.len() + 1;
        into.write_all(line.as_bytes()).unwrap();
        into.write_all(b"\n").unwrap();
        written
    };
    let uuid = |nth: usize| format!("{nth:08x}-1111-4222-8333-444444444444");
    loop {
        let mut record = |kind: &str, after: Option<String>, message: serde_json::Value| {
            records += 1;
            let own = uuid(records);
            // In the CLI's order.
            let mut line = format!(
                "{{\"parentUuid\":{},\"isSidechain\":false,\"type\":\"{kind}\",\"message\":{message}",
                json!(after)
            );
            line += &format!(
                ",\"uuid\":\"{own}\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"userType\":\"external\",\"entrypoint\":\"cli\",\
                 \"cwd\":\"/home/somebody/project\",\"sessionId\":\"{id}\",\"version\":\"2.1.330\",\"gitBranch\":\"main\"}}"
            );
            (own, put(line))
        };
        let (prompt, _) = record(
            "user",
            parent.take(),
            json!({"role": "user", "content": "Why does the build fail?"}),
        );
        let answer = |nth: usize, block: serde_json::Value| json!({"id": format!("msg_{nth}"), "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": {"input_tokens": 10, "output_tokens": 5}});
        let of = prompt[..8].to_owned();
        let call = |nth: usize| json!({"type": "tool_use", "id": format!("toolu_{of}_{nth}"), "name": "Bash", "input": {"command": text}});
        let result = |nth: usize| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{of}_{nth}"), "content": text.repeat(3)}]});
        let turn = usize::from_str_radix(&of, 16).unwrap();
        let (first, _) = record("assistant", Some(prompt), answer(turn, call(1)));
        let (second, _) = record("assistant", Some(first.clone()), answer(turn, call(2)));
        record("user", Some(first), result(1));
        let (last, _) = record("user", Some(second), result(2));
        let (tip, written) = record(
            "assistant",
            Some(last),
            answer(turn + 1, json!({"type": "text", "text": text})),
        );
        if written >= bytes {
            put(format!(
                "{{\"type\":\"ai-title\",\"aiTitle\":\"Why the build fails\",\"sessionId\":\"{id}\"}}"
            ));
            put(format!(
                "{{\"type\":\"last-prompt\",\"lastPrompt\":\"Why does the build fail?\",\"leafUuid\":\"{tip}\",\"sessionId\":\"{id}\"}}"
            ));
            return records;
        }
        parent = Some(tip);
    }
}
