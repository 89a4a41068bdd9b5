//! The person at the terminal, a line at a time.

#[cfg(unix)]
mod editor;

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

#[cfg(unix)]
use self::editor::{Editor, Words};
use crate::screen::{TERMINAL, console, is_dumb};

/// How many lines may wait that nobody has read yet.
const LINES: usize = 64;

/// The longest line that is taken, in bytes; the rest of a longer one counts as the next line.
const LONGEST: u64 = 1024 * 1024;

/// What a person is told whose line is not UTF-8.
pub(crate) const NOT_TEXT: &str = "that line is not UTF-8 text, and was not sent";

/// Whether this process has a terminal to ask at.
pub(crate) fn has_terminal() -> bool {
    File::open(TERMINAL.0).is_ok()
}

/// What a person types for the conversation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A prompt, or a command; in an edited one are line breaks.
    Line(String),
    /// A line that is not UTF-8, by its number from 1: what it says is not known, and it is not sent as something else.
    NotText(u64),
    /// Ctrl-C at the edited line, when nothing was typed.
    Interrupt,
    /// Ctrl-D, or the end of the input.
    End,
}

/// Hands each line that is typed to the question that is open, else to the conversation.
#[derive(Clone)]
pub(crate) enum Keyboard {
    Lines(Lines),
    #[cfg(unix)]
    Edited(Editor),
}

impl Keyboard {
    /// Reads from the terminal itself, whatever standard input is. Lines outside of questions are let go: an answer must
    /// never be older than its question.
    ///
    /// # Errors
    /// When this process has no terminal.
    pub(crate) fn of_terminal() -> io::Result<Self> {
        Ok(Self::Lines(Lines::read(File::open(TERMINAL.0)?, None)))
    }

    /// Reads from standard input, and gives the lines of the conversation. Where that and both outputs are a terminal, lines are
    /// edited.
    pub(crate) fn of_stdin() -> (Self, mpsc::Receiver<Input>) {
        #[cfg(unix)]
        {
            let is_terminal =
                io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
            if is_terminal
                && !is_dumb()
                && let Ok((editor, inputs)) = Editor::start()
            {
                return (Self::Edited(editor), inputs);
            }
        }
        let (tx, rx) = mpsc::channel(LINES);
        (Self::Lines(Lines::read(io::stdin(), Some(tx))), rx)
    }

    /// Whether lines are edited.
    pub(crate) fn edits(&self) -> bool {
        !matches!(self, Self::Lines(_))
    }

    /// Shows that a line is awaited. `words` are what can be completed in it: commands with what they do, and the directory of
    /// the files.
    pub(crate) fn shows_prompt(&self, words: impl FnOnce() -> (Vec<(String, String)>, PathBuf)) {
        match self {
            Self::Lines(_) => console().err("> "),
            #[cfg(unix)]
            Self::Edited(editor) => {
                let (commands, directory) = words();
                editor.completes(Words { commands, directory });
                editor.edit();
            }
        }
    }

    /// Gives the terminal back as it was.
    pub(crate) async fn close(&self) {
        #[cfg(unix)]
        if let Self::Edited(editor) = self {
            editor.close().await;
        }
    }

    /// Something is to be asked. Nothing else is written, until [`question_ends`](Self::question_ends) is called, which is due even
    /// if this is dropped.
    pub(crate) async fn question_begins(&self) {
        console().question_begins();
        #[cfg(unix)]
        if let Self::Edited(editor) = self {
            editor.question_begins().await;
        }
    }

    /// The question is answered, or withdrawn.
    pub(crate) fn question_ends(&self) {
        #[cfg(unix)]
        if let Self::Edited(editor) = self {
            editor.question_ends();
        }
        console().question_ends();
    }

    /// The next line is the answer to a question; `None` at the end of the input. Call it before the question is shown: somebody may
    /// answer at once. A question that is given up takes no line away.
    pub(crate) fn expects_answer(&self) -> Expected {
        match self {
            Self::Lines(lines) => lines.expects_answer(),
            #[cfg(unix)]
            Self::Edited(editor) => editor.expects_answer(),
        }
    }

    /// Lets go what has been typed of a line that is not ended: it was meant for a question that is gone, and must not become
    /// the beginning of an answer to the next.
    pub(crate) fn forget(&self) {
        match self {
            #[cfg(unix)]
            Self::Edited(editor) => editor.forget(),
            Self::Lines(_) => {
                #[cfg(unix)]
                if let Ok(terminal) = File::open(TERMINAL.0) {
                    // Input that is no terminal has no line that is being typed.
                    let _ = rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush);
                }
            }
        }
    }
}

/// A line without the end of it.
fn without_end(line: &str) -> String {
    line.trim_end_matches(['\n', '\r']).to_owned()
}

/// The line that answers a question; an error or `None` at the end of the input.
pub(crate) type Expected = oneshot::Receiver<Option<String>>;

/// Reads lines in a thread of its own, which ends with the program: a read cannot be taken back.
#[derive(Clone)]
pub(crate) struct Lines {
    desk: Arc<Mutex<KeyboardState>>,
}

#[derive(Default)]
struct KeyboardState {
    question: Option<oneshot::Sender<Option<String>>>,
    /// The input has ended.
    closed: bool,
}

impl Lines {
    fn read(source: impl Read + Send + 'static, conversation: Option<mpsc::Sender<Input>>) -> Self {
        let lines = Self { desk: Arc::default() };
        let desk = Arc::clone(&lines.desk);
        std::thread::spawn(move || {
            let mut source = BufReader::new(source);
            let (mut number, mut begun) = (1, Vec::new());
            loop {
                let mut line = std::mem::take(&mut begun);
                match (&mut source).take(LONGEST).read_until(b'\n', &mut line) {
                    Ok(0) if line.is_empty() => break,
                    Ok(_) => {}
                    Err(_) => break,
                }
                let is_whole = line.ends_with(b"\n");
                let input = match std::str::from_utf8(&line) {
                    Ok(text) => Input::Line(without_end(text)),
                    // A character that a cut went through is whole with the next part.
                    Err(error) if !is_whole && error.error_len().is_none() && error.valid_up_to() > 0 => {
                        begun = line.split_off(error.valid_up_to());
                        Input::Line(without_end(&String::from_utf8_lossy(&line)))
                    }
                    Err(_) => Input::NotText(number),
                };
                number += u64::from(is_whole);
                let open = desk
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .question
                    .take();
                // A person sees what became of an answer.
                let answer = |open: oneshot::Sender<Option<String>>| {
                    open.send(Some(without_end(&String::from_utf8_lossy(&line))))
                };
                if let Some(Ok(())) = open.map(answer) {
                    continue;
                }
                // No question, or one that was withdrawn.
                if let Some(conversation) = &conversation
                    && conversation.blocking_send(input).is_err()
                {
                    break;
                }
            }
            // An open question gets no answer any more.
            *desk.lock().unwrap_or_else(PoisonError::into_inner) = KeyboardState {
                question: None,
                closed: true,
            };
        });
        lines
    }

    fn expects_answer(&self) -> Expected {
        let (tx, rx) = oneshot::channel();
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        // Where the input has ended, the sender is dropped: no answer.
        if !desk.closed {
            desk.question = Some(tx);
        }
        rx
    }
}
