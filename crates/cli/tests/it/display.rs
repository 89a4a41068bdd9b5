//! A terminal as a person sees it: the program at a pseudo-terminal, and an emulator that makes a screen of what it writes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rexpect::process::{PtyProcess, Signal, WaitStatus};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::rig::{PATIENCE, Rig};

/// A program, and the screen in front of it.
pub(crate) struct Display {
    process: PtyProcess,
    keys: File,
    seen: Arc<Seen>,
}

struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: vt100::Parser<Asked>,
    /// All that was written.
    bytes: Vec<u8>,
    ended: bool,
}

/// What the program asks the terminal.
#[derive(Default)]
struct Asked {
    answers: Vec<u8>,
}

impl vt100::Callbacks for Asked {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        _: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        what: char,
    ) {
        if what == 'n' && params == [[6]] {
            let (row, column) = screen.cursor_position();
            let answer = format!("\x1b[{};{}R", row + 1, column + 1);
            self.answers.extend(answer.as_bytes());
        }
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

impl Display {
    /// Starts it at a terminal of so many columns, and 24 rows.
    pub(crate) fn start(rig: &Rig, subcommand: &str, columns: u16, args: &[&str]) -> Self {
        Self::with(rig, subcommand, columns, args, &[])
    }

    /// With these variables in its environment.
    pub(crate) fn with(
        rig: &Rig,
        subcommand: &str,
        columns: u16,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let program = rig.std_command(subcommand, args);
        // The size is there before the program is.
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!(
                "stty rows 24 columns {columns} echo && exec \"$0\" \"$@\""
            ))
            .arg(program.get_program())
            .args(program.get_args());
        Self::spawn(command, &program, columns, variables)
    }

    /// Starts it with these arguments alone: for commands that drive no CLI.
    pub(crate) fn alone(rig: &Rig, columns: u16, args: &[&str]) -> Self {
        Self::alone_with(rig, columns, args, &[])
    }

    /// The same with these variables in its environment.
    pub(crate) fn alone_with(rig: &Rig, columns: u16, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let program = rig.std_command("", &[]);
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!(
                "stty rows 24 columns {columns} echo && exec \"$0\" \"$@\""
            ))
            .arg(program.get_program())
            .args(args);
        Self::spawn(command, &program, columns, variables)
    }

    /// Starts a shell with job control, which runs it from the file `run.sh`.
    pub(crate) fn in_shell(rig: &Rig, subcommand: &str) -> Self {
        let program = rig.std_command(subcommand, &[]);
        let words: Vec<String> = std::iter::once(program.get_program())
            .chain(program.get_args())
            .map(|word| format!("{word:?}"))
            .collect();
        rig.sandbox
            .write("run.sh", format!("exec {}\n", words.join(" ")))
            .unwrap();
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "stty rows 24 columns 80 echo && exec bash --norc --noediting -i",
        ]);
        Self::spawn(command, &program, 80, &[("PS1", "$ ")])
    }

    /// Starts a command at a terminal, in the surroundings of the program.
    fn spawn(mut command: Command, program: &Command, columns: u16, variables: &[(&str, &str)]) -> Self {
        command
            .env_clear()
            .env("TERM", "xterm-256color")
            .current_dir(program.get_current_dir().unwrap());
        for (name, value) in program.get_envs() {
            command.env(name, value.unwrap());
        }
        command.envs(variables.iter().copied());
        let mut process = PtyProcess::new(command).expect("a terminal");
        // A shell that talks to a person does not end by SIGTERM.
        process.set_kill_timeout(Some(1000));
        let keys = process.get_file_handle().unwrap();
        let seen = Arc::new(Seen {
            state: Mutex::new(State {
                parser: vt100::Parser::new_with_callbacks(cells(24), cells(columns), 1000, Asked::default()),
                bytes: Vec::new(),
                ended: false,
            }),
            changed: Condvar::new(),
        });
        let watched = Arc::clone(&seen);
        let mut output = process.get_file_handle().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let count = output.read(&mut bytes).unwrap_or_default();
                let mut state = watched.state.lock().unwrap_or_else(PoisonError::into_inner);
                if count == 0 {
                    state.ended = true;
                    watched.changed.notify_all();
                    return;
                }
                state.bytes.extend_from_slice(&bytes[..count]);
                state.parser.process(&bytes[..count]);
                let answers = std::mem::take(&mut state.parser.callbacks_mut().answers);
                watched.changed.notify_all();
                drop(state);
                // A program that has ended needs no answer.
                let _ = output.write_all(&answers);
            }
        });
        Self { process, keys, seen }
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types a line.
    pub(crate) fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Waits until the screen is as is wanted, and returns it.
    pub(crate) fn wait(&self, what: &str, is_there: impl Fn(&vt100::Screen) -> bool) -> String {
        let state = self.seen.state.lock().unwrap();
        let (state, timeout) = self
            .seen
            .changed
            .wait_timeout_while(state, PATIENCE / 3, |state| {
                !state.ended && !is_there(state.parser.screen())
            })
            .unwrap();
        let contents = state.parser.screen().contents();
        assert!(
            !timeout.timed_out() && is_there(state.parser.screen()),
            "no {what} on the screen:\n{contents}\n{:?}",
            String::from_utf8_lossy(&state.bytes)
        );
        contents
    }

    /// Waits until the screen has this text.
    pub(crate) fn shows(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contents().contains(text))
    }

    /// Waits until the line with the cursor is this one: the cursor stands behind it.
    pub(crate) fn at(&self, line: &str) -> String {
        self.wait(line, |screen| {
            let (row, column) = screen.cursor_position();
            let before = screen.contents_between(row, 0, row, column);
            before == line
        })
    }

    /// Waits for a question: the line with the cursor ends like this.
    pub(crate) fn asks(&self, end: &str) -> String {
        self.wait(end, |screen| {
            let (row, column) = screen.cursor_position();
            screen.contents_between(row, 0, row, column).ends_with(end)
        })
    }

    /// Changes the size of the terminal, as a person does who drags its window.
    pub(crate) fn resize(&mut self, columns: u16) {
        let mut state = self.seen.state.lock().unwrap();
        state.parser.set_size(cells(24), cells(columns));
        drop(state);
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.keys, size).unwrap();
        self.signal(Signal::SIGWINCH);
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.process.signal(signal).unwrap();
    }

    /// All that was written so far.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.seen.state.lock().unwrap().bytes).into_owned()
    }

    /// The screen with its colours, as far as a snapshot can show them: `*bold*`, `/italic/`, `` `coloured` ``, `_underlined_`.
    pub(crate) fn styled(&self) -> String {
        let state = self.seen.state.lock().unwrap();
        let screen = state.parser.screen();
        let (rows, columns) = screen.size();
        let mut text = String::new();
        for row in 0..rows.get() {
            let mut line = String::new();
            let mut marks: Vec<char> = Vec::new();
            for column in 0..columns.get() {
                let Some(cell) = screen.cell(row, column) else {
                    continue;
                };
                let styles = [
                    (cell.bold(), '*'),
                    (cell.italic(), '/'),
                    (cell.fgcolor() != vt100::Color::Default, '`'),
                    (cell.underline(), '_'),
                ];
                let now: Vec<char> = styles
                    .iter()
                    .filter(|(is, _)| *is)
                    .map(|(_, mark)| *mark)
                    .collect();
                if now != marks {
                    line.extend(marks.iter().rev());
                    line.extend(now.iter());
                    marks = now;
                }
                line.push_str(if cell.has_contents() { cell.contents() } else { " " });
            }
            line.extend(marks.iter().rev());
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.trim_end().to_owned()
    }

    /// Waits for the end, and returns the screen as it is left.
    pub(crate) fn ends_with(&mut self, code: i32) -> String {
        let contents = {
            let state = self.seen.state.lock().unwrap();
            let (state, timeout) = self
                .seen
                .changed
                .wait_timeout_while(state, PATIENCE / 3, |state| !state.ended)
                .unwrap();
            let contents = state.parser.screen().contents();
            assert!(!timeout.timed_out(), "it does not end:\n{contents}");
            contents
        };
        let status = self.process.wait().expect("it can be waited for");
        assert!(
            matches!(status, WaitStatus::Exited(_, found) if found == code),
            "{status:?}:\n{contents}"
        );
        contents
    }
}

/// Costs and times, which differ from run to run, as `N`.
pub(crate) fn timeless(text: &str) -> String {
    let mut out = String::new();
    let mut number = String::new();
    for char in text.chars().chain(['\n']) {
        if char.is_ascii_digit() || (char == '.' && !number.is_empty()) {
            number.push(char);
            continue;
        }
        let whole = number.trim_end_matches('.');
        if whole.contains('.') {
            number.replace_range(..whole.len(), "N");
        }
        out.push_str(&std::mem::take(&mut number));
        out.push(char);
    }
    out.pop();
    out
}
