//! The person at the terminal, a line at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

/// How many lines may wait that nobody has read yet.
const LINES: usize = 64;

/// The longest line that is taken, in bytes; the rest of a longer one counts as the next line.
const LONGEST: u64 = 1024 * 1024;

/// The terminal of this process, for reading, and for writing.
const TERMINAL: (&str, &str) = if cfg!(windows) {
    ("CONIN$", "CONOUT$")
} else {
    ("/dev/tty", "/dev/tty")
};

/// Whether this process has a terminal to ask at.
pub(crate) fn has_terminal() -> bool {
    File::open(TERMINAL.0).is_ok()
}

/// Reads lines in a thread of its own, and hands each to the question that is open, else to the conversation.
///
/// The thread ends with the program: a read from a terminal cannot be taken back.
#[derive(Clone)]
pub(crate) struct Keyboard {
    desk: Arc<Mutex<Desk>>,
}

#[derive(Default)]
struct Desk {
    question: Option<oneshot::Sender<String>>,
    /// The input has ended.
    closed: bool,
}

impl Keyboard {
    /// Reads from the terminal itself, whatever standard input is. Lines outside of questions are let go: an answer must
    /// never be older than its question.
    ///
    /// # Errors
    /// When this process has no terminal.
    pub(crate) fn of_terminal() -> io::Result<Self> {
        Ok(Self::read(File::open(TERMINAL.0)?, None))
    }

    /// Reads from standard input, and gives the lines of the conversation.
    pub(crate) fn of_stdin() -> (Self, mpsc::Receiver<String>) {
        let (tx, rx) = mpsc::channel(LINES);
        (Self::read(io::stdin(), Some(tx)), rx)
    }

    fn read(source: impl Read + Send + 'static, conversation: Option<mpsc::Sender<String>>) -> Self {
        let keyboard = Self { desk: Arc::default() };
        let desk = Arc::clone(&keyboard.desk);
        std::thread::spawn(move || {
            let mut source = BufReader::new(source);
            loop {
                let mut line = Vec::new();
                match (&mut source).take(LONGEST).read_until(b'\n', &mut line) {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end_matches(['\n', '\r']).to_owned();
                let open = desk
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .question
                    .take();
                let line = match open.map(|open| open.send(line.clone())) {
                    Some(Ok(())) => continue,
                    // No question, or one that was withdrawn.
                    Some(Err(_)) | None => line,
                };
                if let Some(conversation) = &conversation
                    && conversation.blocking_send(line).is_err()
                {
                    break;
                }
            }
            // An open question gets no answer any more.
            *desk.lock().unwrap_or_else(PoisonError::into_inner) = Desk {
                question: None,
                closed: true,
            };
        });
        keyboard
    }

    /// The next line, as the answer to a question; `None` at the end of the input. Cancel safe: a question that is given up
    /// takes no line away.
    pub(crate) async fn answer(&self) -> Option<String> {
        let (tx, rx) = oneshot::channel();
        {
            let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
            if desk.closed {
                return None;
            }
            desk.question = Some(tx);
        }
        rx.await.ok()
    }

    /// Lets go what has been typed of a line that is not ended: it was meant for a question that is gone, and must not become
    /// the beginning of an answer to the next.
    pub(crate) fn forget(&self) {
        #[cfg(unix)]
        if let Ok(terminal) = File::open(TERMINAL.0) {
            // Input that is no terminal has no line that is being typed.
            let _ = rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush);
        }
    }
}

/// Writes to the terminal itself, or to stderr where that is not possible.
pub(crate) fn tell(text: &str) {
    let terminal = File::options().write(true).open(TERMINAL.1);
    // Without a terminal nobody sees it anyhow.
    let _ = match terminal {
        Ok(mut terminal) => terminal.write_all(text.as_bytes()),
        Err(_) => io::stderr().write_all(text.as_bytes()),
    };
}
