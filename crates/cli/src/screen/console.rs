//! The one place that writes to the terminal while a session runs. The answer, notes, questions, the status line and the line that
//! a person types share it, so none of them may write in the middle of another.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::status::Board;
use crate::paint::Paint;
use crate::plain::plain;

/// How much text is held back while a question is open or a line is edited, in bytes. More is written in spite of a question.
const HELD: usize = 256 * 1024;

/// The status line is drawn only when nothing was written for this long: it does not flicker between pieces of text.
const QUIET: Duration = Duration::from_millis(300);

/// The terminal of this process, for reading, and for writing.
pub(crate) const TERMINAL: (&str, &str) = if cfg!(windows) {
    ("CONIN$", "CONOUT$")
} else {
    ("/dev/tty", "/dev/tty")
};

/// The terminal of this process.
pub(crate) fn console() -> &'static Console {
    static CONSOLE: LazyLock<Console> = LazyLock::new(Console::new);
    &CONSOLE
}

/// Has whoever shows an edited line take it away for a moment.
pub(crate) type MakeRoom = Box<dyn Fn() + Send>;

/// The streams of this process, where they are terminals.
pub(crate) struct Console {
    state: Mutex<ConsoleState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

struct ConsoleState {
    out_is_terminal: bool,
    err_is_terminal: bool,
    /// Text on stdout has not ended its line.
    in_line: bool,
    /// What there is to wait for. Empty unless the status line is wanted.
    board: Board,
    /// The status line is wanted, and the terminal can erase it.
    live: bool,
    paint: Paint,
    /// The status line that is on the screen.
    drawn: Option<String>,
    written: Instant,
    /// How many questions are open.
    questions: usize,
    held: Vec<(Stream, String)>,
    held_bytes: usize,
    /// A line is edited.
    editing: Option<MakeRoom>,
}

impl Console {
    fn new() -> Self {
        Self {
            state: Mutex::new(ConsoleState {
                out_is_terminal: io::stdout().is_terminal(),
                err_is_terminal: io::stderr().is_terminal(),
                in_line: false,
                board: Board::default(),
                live: false,
                paint: Paint::on(&io::stderr()),
                drawn: None,
                written: Instant::now(),
                questions: 0,
                held: Vec::new(),
                held_bytes: 0,
                editing: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, ConsoleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes text to stdout.
    ///
    /// # Errors
    /// When stdout can't be written to.
    pub(crate) fn out(&self, text: &str) -> io::Result<()> {
        self.write(Stream::Out, text)
    }

    /// Ends the line on stdout if one is begun.
    ///
    /// # Errors
    /// When stdout can't be written to.
    pub(crate) fn end_line(&self) -> io::Result<()> {
        let begun = self.state().in_line;
        if begun { self.out("\n") } else { Ok(()) }
    }

    /// As [`end_line`](Self::end_line), but only where stdout is a terminal: the lines of a file are its own.
    pub(crate) fn end_line_at_terminal(&self) {
        if self.state().out_is_terminal {
            let _ = self.end_line();
        }
    }

    /// Writes text to stderr. That nobody reads there is no reason to stop.
    pub(crate) fn err(&self, text: &str) {
        let _ = self.write(Stream::Err, text);
    }

    /// Writes a question, or what belongs to one, to the terminal itself, or to stderr where that is not possible.
    pub(crate) fn ask(&self, text: &str) {
        let mut state = self.state();
        state.erase();
        state.in_line = false;
        write_to_terminal(text);
        state.written = Instant::now();
    }

    fn write(&self, stream: Stream, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        loop {
            let mut state = self.state();
            if stream == Stream::Out {
                state.in_line = !text.ends_with('\n');
            }
            if !state.is_terminal(stream) {
                return state.through(stream, text);
            }
            let must_wait = state.questions > 0 || state.editing.is_some();
            if !must_wait || (state.questions > 0 && state.held_bytes >= HELD) {
                return state.through(stream, text);
            }
            if state.held_bytes < HELD {
                state.held_bytes += text.len();
                state.held.push((stream, text.to_owned()));
                if text.contains('\n')
                    && let Some(make_room) = &state.editing
                {
                    make_room();
                }
                return Ok(());
            }
            // The editor makes room within some milliseconds.
            drop(state);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A question is open: nothing else is written until it is answered or withdrawn.
    pub(crate) fn question_begins(&self) {
        let mut state = self.state();
        state.erase();
        state.questions += 1;
    }

    /// The question is answered or withdrawn.
    pub(crate) fn question_ends(&self) {
        let mut state = self.state();
        state.questions = state.questions.saturating_sub(1);
        if state.questions == 0 && state.editing.is_none() {
            state.release(true);
        }
    }

    /// A person begins to edit a line.
    pub(crate) fn editing_begins(&self, make_room: MakeRoom) {
        let mut state = self.state();
        state.erase();
        if state.held.iter().any(|(_, text)| text.contains('\n')) {
            state.release(false);
        }
        if state.in_line && state.held.is_empty() && state.out_is_terminal {
            let _ = state.through(Stream::Out, "\n");
            state.in_line = false;
        }
        state.editing = Some(make_room);
    }

    /// The line is gone from the screen; what was held back is written. If it is to come back, a line of text that is not ended
    /// waits for its end.
    pub(crate) fn editing_ends(&self, comes_back: bool) {
        let mut state = self.state();
        state.editing = None;
        if state.questions == 0 {
            state.release(!comes_back);
        }
    }

    /// What there is to wait for has changed.
    pub(crate) fn board(&self, change: impl FnOnce(&mut Board)) {
        change(&mut self.state().board);
    }

    /// Whether the status line is wanted, and can be drawn.
    pub(crate) fn set_live(&self, wanted: bool) -> bool {
        let mut state = self.state();
        state.live = wanted && state.err_is_terminal && !is_dumb();
        state.erase();
        state.live
    }

    /// Draws the status line, or erases it, as is due.
    pub(crate) fn tick(&self) {
        let mut state = self.state();
        let busy = (state.in_line && state.out_is_terminal) || state.questions > 0 || state.editing.is_some();
        if !state.live || busy || state.written.elapsed() < QUIET {
            return;
        }
        let line = state.board.line(Instant::now());
        if line == state.drawn {
            return;
        }
        state.erase();
        if let Some(line) = line {
            state.draw(line);
        }
    }
}

impl ConsoleState {
    fn is_terminal(&self, stream: Stream) -> bool {
        match stream {
            Stream::Out => self.out_is_terminal,
            Stream::Err => self.err_is_terminal,
        }
    }

    /// Writes, whatever is going on. The status line makes room.
    fn through(&mut self, stream: Stream, text: &str) -> io::Result<()> {
        if self.is_terminal(stream) {
            self.erase();
            self.written = Instant::now();
        }
        match stream {
            Stream::Out => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(text.as_bytes())?;
                stdout.flush()
            }
            Stream::Err => io::stderr().write_all(text.as_bytes()),
        }
    }

    /// Writes what was held back: all of it, or only whole lines.
    fn release(&mut self, all: bool) {
        let mut held = std::mem::take(&mut self.held);
        let last = held.iter().rposition(|(_, text)| text.contains('\n'));
        let mut rest = Vec::new();
        if !all {
            rest = held.split_off(last.map_or(0, |last| last + 1));
            if let Some((stream, text)) = held.last_mut()
                && let Some(end) = text.rfind('\n')
            {
                let begun = text.split_off(end + 1);
                if !begun.is_empty() {
                    rest.insert(0, (*stream, begun));
                }
            }
        }
        for (stream, text) in held {
            // Who wrote it is not waiting any more; the next write fails in the same way.
            let _ = self.through(stream, &text);
        }
        self.held_bytes = rest.iter().map(|(_, text)| text.len()).sum();
        self.held = rest;
    }

    fn draw(&mut self, line: String) {
        let width = ::console::Term::stderr()
            .size_checked()
            .map_or(80, |(_, columns)| usize::from(columns));
        // The last column stays free: some terminals wrap as soon as it is written.
        let shown = super::shortened(&in_a_line(&line), width.saturating_sub(1));
        let _ = write!(io::stderr(), "\r{}", self.paint.dim(shown));
        self.drawn = Some(line);
    }

    fn erase(&mut self) {
        if self.drawn.take().is_some() {
            let _ = io::stderr().write_all(b"\r\x1b[2K");
        }
    }
}

/// Text from outside, in one line that commands no terminal.
fn in_a_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}

/// Whether the terminal can't be told to erase a line.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty())
}

/// Writes to the terminal itself, or to stderr where that is not possible.
pub(crate) fn write_to_terminal(text: &str) {
    let terminal = File::options().write(true).open(TERMINAL.1);
    // Without a terminal nobody sees it anyhow.
    let _ = match terminal {
        Ok(mut terminal) => terminal.write_all(text.as_bytes()),
        Err(_) => io::stderr().write_all(text.as_bytes()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_commands_no_terminal() {
        assert_eq!(
            in_a_line("Bash: echo \x1b]0;me\x07\rrm\n\tls"),
            "Bash: echo \\u{1b}]0;me\\u{7}\\rrm  ls"
        );
    }
}
