//! `outrigger protocol`: what was said, held against the types.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use outrigger_protocol::check::{Checker, Direction, Recorded, Report, Verdict, recorded};
use outrigger_protocol::framer::{Framed, LineFramer};
use serde::Serialize;

use crate::exit::{CommandResult, Status};
use crate::plain::plain;

/// What `outrigger protocol` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(CheckRecordings),
}

/// Tell whether recorded conversations are fully typed, and whether anything of them would be lost.
///
/// A recording has one JSON object a line: the frames themselves, or {"dir": "in" | "out", "msg": FRAME}, where "out" is what the
/// CLI wrote. Each file is a conversation of its own. What the CLI wrote has to be fully typed: every field has a type, every kind
/// and every value a name. That goes for the inputs and results of the CLI's own tools, for what hooks get of them, and for MCP
/// messages; what a tool of an MCP server takes and gives has any form. What a client wrote only has to be lossless, since clients
/// may write what they like.
///
/// The exit status is 0 if all is typed and lossless, 1 if something is not or there is not a frame, 2 if a file could not be read.
#[derive(Debug, clap::Args)]
struct CheckRecordings {
    /// Recordings; directories are searched for *.jsonl and *.ndjson; `-` is standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print the report, with all failures, as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs a subcommand.
pub(crate) async fn run(args: Args) -> CommandResult {
    let Command::Check(check) = args.command;
    // Reading files blocks.
    tokio::task::spawn_blocking(move || check.run()).await?
}

/// What is said about all files together.
#[derive(Debug, Default, Serialize)]
struct Findings {
    passed: bool,
    frames: u64,
    failed: u64,
    files: Vec<FileFindings>,
    unreadable: Vec<Unreadable>,
    /// How many failures of a file, and how many findings of a failure, are told one by one.
    #[serde(skip)]
    told: usize,
    report: Report,
}

#[derive(Debug, Serialize)]
struct FileFindings {
    path: String,
    frames: u64,
    failed: u64,
    /// Where the failures are, the first `told` of them.
    failures: Vec<Failed>,
    #[serde(skip)]
    told: usize,
}

#[derive(Debug, Serialize)]
struct Failed {
    line: u64,
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
    found: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Unreadable {
    path: String,
    reason: String,
}

/// How many of them a person is told; a program gets all.
const TOLD: usize = 10;

/// The most characters of a finding that are told.
const TEXT: usize = 400;

impl CheckRecordings {
    fn run(self) -> CommandResult {
        let mut checker = Checker::new();
        let mut findings = Findings {
            told: if self.json { usize::MAX } else { TOLD },
            ..Findings::default()
        };
        for argument in &self.files {
            match recordings(argument) {
                Ok(paths) => paths.iter().for_each(|path| findings.file(&mut checker, path)),
                Err(error) => findings.unreadable(argument, &error),
            }
        }
        findings.passed = findings.failed == 0 && findings.frames > 0 && findings.unreadable.is_empty();
        findings.report = checker.report().clone();
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, &findings).map_err(io::Error::from)?;
            writeln!(out)?;
        } else {
            findings.write(&mut out)?;
        }
        out.flush()?;
        Ok(if !findings.unreadable.is_empty() {
            Status::Usage
        } else if findings.passed {
            Status::Success
        } else {
            Status::Failed
        })
    }
}

/// The files that an argument means.
fn recordings(argument: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if argument == Path::new("-") || !argument.is_dir() {
        return Ok(vec![argument.to_owned()]);
    }
    let mut found = Vec::new();
    let mut open = vec![argument.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = directory.read_dir();
        let entries = entries.with_context(|| format!("cannot list {}", directory.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", directory.display()))?;
            let path = entry.path();
            let recording = path
                .extension()
                .is_some_and(|extension| extension == "jsonl" || extension == "ndjson");
            // Links to directories are not followed: they may lead back here.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            } else if recording {
                found.push(path);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        anyhow::bail!("it has no *.jsonl and no *.ndjson");
    }
    Ok(found)
}

impl Findings {
    fn unreadable(&mut self, path: &Path, error: &anyhow::Error) {
        self.unreadable.push(Unreadable {
            path: name(path),
            reason: format!("{error:#}"),
        });
    }

    fn file(&mut self, checker: &mut Checker, path: &Path) {
        let source: io::Result<Box<dyn Read>> = if path == Path::new("-") {
            Ok(Box::new(io::stdin().lock()))
        } else {
            File::open(path).map(|file| Box::new(file) as Box<dyn Read>)
        };
        let mut file = FileFindings {
            path: name(path),
            frames: 0,
            failed: 0,
            failures: Vec::new(),
            told: self.told,
        };
        checker.conversation();
        let read = source.and_then(|source| lines(source, |line, framed| file.line(checker, line, framed)));
        if let Err(error) = read {
            self.unreadable(path, &error.into());
            if file.frames == 0 {
                return;
            }
        }
        self.frames += file.frames;
        self.failed += file.failed;
        self.files.push(file);
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{}", self.report)?;
        for file in &self.files {
            for failure in &file.failures {
                let mut kind = match failure.kind.as_str() {
                    "" => "(no type)",
                    kind => kind,
                }
                .to_owned();
                if let Some(subtype) = &failure.subtype {
                    kind = format!("{kind}/{subtype}");
                }
                for found in &failure.found {
                    let found = format!("{}:{}: {kind}: {found}", file.path, failure.line);
                    writeln!(out, "{}", plain(&found))?;
                }
            }
            let more = file.failed - file.failures.len() as u64;
            if more > 0 {
                writeln!(out, "{}: {more} more frames fail", plain(&file.path))?;
            }
        }
        for unreadable in &self.unreadable {
            let reason = format!("{}: cannot be read: {}", unreadable.path, unreadable.reason);
            writeln!(out, "{}", plain(&reason))?;
        }
        if self.files.is_empty() {
            // Nothing was read, which is told already.
            return Ok(());
        }
        let files = match self.files.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let verdict = match (self.frames, self.failed) {
            (0, _) => "nothing to judge".to_owned(),
            (_, 0) => "all that the CLI wrote is fully typed, all is lossless".to_owned(),
            (_, 1) => "1 fails".to_owned(),
            (_, failed) => format!("{failed} fail"),
        };
        writeln!(out, "{} frames in {files}: {verdict}", self.frames)
    }
}

impl FileFindings {
    fn line(&mut self, checker: &mut Checker, number: u64, framed: Framed) {
        let verdicts = match framed {
            Framed::Line(line) => match recorded(&line) {
                Recorded::Frame(direction, frame) => checker.line(direction, frame.get().as_bytes()),
                Recorded::Text(direction, text) => checker.raw_text(direction, &text),
                Recorded::Plain => checker.line(Direction::Unknown, &line),
                Recorded::Start => {
                    checker.conversation();
                    return;
                }
                _ => return,
            },
            oversized => checker.framed(Direction::Unknown, oversized),
        };
        for verdict in &verdicts {
            self.frames += 1;
            if verdict.is_failure() {
                self.failed += 1;
                if self.failures.len() < self.told {
                    self.failures.push(Failed::new(number, verdict, self.told));
                }
            }
        }
    }
}

impl Failed {
    fn new(line: u64, verdict: &Verdict, told: usize) -> Self {
        Self {
            line,
            kind: short(&verdict.kind),
            subtype: verdict.subtype.as_deref().map(short),
            found: verdict
                .findings
                .iter()
                .take(told)
                .map(|finding| short(&finding.to_string()))
                .collect(),
        }
    }
}

/// Cuts a file into lines and hands each on with its number, blank lines counted. Holds no more than the longest line.
fn lines(mut source: impl Read, mut each: impl FnMut(u64, Framed)) -> io::Result<()> {
    let mut framer = LineFramer::new(LineFramer::DEFAULT_CAP);
    let mut chunk = vec![0; 256 * 1024];
    let mut number = 1;
    loop {
        let length = match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        for part in chunk[..length].split_inclusive(|byte| *byte == b'\n') {
            framer.feed(part, |framed| each(number, framed));
            number += u64::from(part.ends_with(b"\n"));
        }
    }
    framer.finish(|framed| each(number, framed));
    Ok(())
}

fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".to_owned()
    } else {
        plain(&path.to_string_lossy())
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        Some((end, _)) => format!("{}…", plain(&text[..end]).replace('\n', "\\n")),
        None => plain(text).replace('\n', "\\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_numbers_that_an_editor_shows() {
        struct OneByOne<'a>(&'a [u8]);
        impl Read for OneByOne<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let length = self.0.len().min(1);
                buffer[..length].copy_from_slice(&self.0[..length]);
                self.0 = &self.0[length..];
                Ok(length)
            }
        }
        let text = b"a\n\n\r\nb\nc";
        let mut whole = Vec::new();
        lines(&text[..], |number, framed| whole.push((number, framed))).unwrap();
        let mut single = Vec::new();
        lines(OneByOne(text), |number, framed| single.push((number, framed))).unwrap();
        let numbers: Vec<u64> = whole.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 4, 5]);
        assert_eq!(whole, single);
    }
}
