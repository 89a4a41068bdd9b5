//! A stand-in as a process.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use outrigger_protocol::framer::{Framed, LineFramer};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use rustix::stdio;

use super::faulty_play::{FaultyPlay, FaultyStage};
use super::faulty_step::{Death, Note};
use super::{FaultyScript, LOG, SCRIPT};
use crate::inject::grandchild::{start, survive};
use crate::inject::{Grandchild, be_grandchild};

/// The `main` of the executable `outrigger-sim-faulty`.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Lets a caller check the build.
    if arguments
        .first()
        .is_some_and(|argument| argument == "--fingerprint")
    {
        let _ = writeln!(std::io::stdout(), "{}", super::fingerprint());
        return ExitCode::SUCCESS;
    }
    if let Some(end) = be_grandchild() {
        return end;
    }
    let script = std::env::var(SCRIPT)
        .map_err(|error| format!("{SCRIPT}: {error}"))
        .and_then(|path| std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}")))
        .and_then(|text| FaultyScript::from_json(&text).map_err(|error| error.to_string()));
    let script = match script {
        Ok(script) => script,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "no script: {error}");
            return ExitCode::from(2);
        }
    };
    let log =
        std::env::var_os(LOG).and_then(|path| File::options().append(true).create(true).open(path).ok());
    let mut stage = Process {
        framer: LineFramer::new(LineFramer::DEFAULT_CAP),
        lines: VecDeque::new(),
        ended: false,
        log,
        children: Vec::new(),
    };
    stage.note(&Note::Began(std::process::id()));
    let death = FaultyPlay::new(&mut stage).all(script.steps());
    match death {
        Death::Code(code) => std::process::exit(code),
        Death::Signal(number) => {
            let signal = Signal::from_named_raw(number).unwrap_or(Signal::KILL);
            loop {
                // The first of a signal that Rust's runtime handles only takes its handler away.
                let _ = kill_process(getpid(), signal);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

struct Process {
    framer: LineFramer,
    lines: VecDeque<Vec<u8>>,
    ended: bool,
    log: Option<File>,
    /// The processes that were started, kept so that their handles are not dropped.
    children: Vec<std::process::Child>,
}

impl FaultyStage for Process {
    fn read(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 4096];
        while self.lines.is_empty() && !self.ended {
            let lines = &mut self.lines;
            let keep = |framed| {
                if let Framed::Line(line) = framed {
                    lines.push_back(line.to_vec());
                }
            };
            match rustix::io::read(stdio::stdin(), &mut buffer) {
                Err(Errno::INTR) => {}
                Ok(read @ 1..) => self.framer.feed(&buffer[..read], keep),
                Ok(0) | Err(_) => {
                    self.ended = true;
                    self.framer.finish(keep);
                }
            }
        }
        self.lines.pop_front()
    }

    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match rustix::io::write(stdio::stdout(), bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.note(&Note::NobodyReads);
                    return;
                }
            }
        }
    }

    fn until_taken(&mut self) {
        // Nothing announces that a pipe is empty.
        while rustix::io::ioctl_fionread(stdio::stdout()).is_ok_and(|left| left > 0) {
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn complain(&mut self, bytes: &[u8]) {
        let _ = std::io::stderr().write_all(bytes);
    }

    fn note(&mut self, note: &Note) {
        if let (Some(log), Ok(mut line)) = (&mut self.log, serde_json::to_vec(note)) {
            line.push(b'\n');
            // In one write, so that it is there whole or not at all, whatever comes next.
            let _ = log.write_all(&line);
        }
    }

    fn close_stdout(&mut self) {
        if let Ok(null) = File::options().write(true).open("/dev/null") {
            let _ = stdio::dup2_stdout(null);
        }
    }

    fn close_stdin(&mut self) {
        self.ended = true;
        if let Ok(null) = File::open("/dev/null") {
            let _ = stdio::dup2_stdin(null);
        }
    }

    fn survive(&mut self) {
        survive();
    }

    fn grandchild(&mut self, grandchild: Grandchild) {
        let started = start(grandchild);
        match started {
            Ok(child) => {
                self.note(&Note::Grandchild(child.id()));
                self.children.push(child);
            }
            Err(error) => self.complain(format!("no grandchild: {error}\n").as_bytes()),
        }
    }

    fn hold(&mut self) {
        loop {
            std::thread::park();
        }
    }
}
