//! The terminal, between two edited lines.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcsetattr,
};

use unicode_width::UnicodeWidthStr as _;

use crate::keyboard::LONGEST;
use crate::screen::write_to_terminal;

/// How long a program may take to stop.
const STOPS_WITHIN: Duration = Duration::from_secs(1);

/// How many columns stand before each line that is edited.
const MARK: usize = 2;

/// Wakes what waits for a line.
pub(super) struct Wake {
    sender: UnixStream,
    receiver: UnixStream,
}

impl Wake {
    pub(super) fn wake(&self) {
        // A full pipe wakes, too.
        let _ = (&self.sender).write(&[0]);
    }

    fn settle(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.receiver).read(&mut bytes), Ok(count) if count > 0) {}
    }
}

/// Whether what is typed is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Shown,
    Hidden,
}

/// What came of waiting for a line.
#[derive(Debug)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-D.
    End,
    /// Something else is to be done.
    Woken,
    /// There is no terminal any more.
    Gone,
}

pub(super) struct Terminal {
    fd: OwnedFd,
    before: Termios,
}

impl Terminal {
    /// The terminal at standard input, and what wakes it.
    pub(super) fn open() -> io::Result<(Self, Wake)> {
        let fd = io::stdin().as_fd().try_clone_to_owned()?;
        let before = tcgetattr(&fd)?;
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok((Self { fd, before }, Wake { sender, receiver }))
    }

    /// Has it collect whole lines.
    pub(super) fn set(&self, mode: Mode) {
        let mut termios = self.before.clone();
        termios.local_modes |= LocalModes::ICANON | LocalModes::ISIG;
        termios.local_modes.set(LocalModes::ECHO, mode == Mode::Shown);
        // A terminal that is gone is found out when it is read.
        let _ = tcsetattr(&self.fd, OptionalActions::Now, &termios);
    }

    /// Sets the terminal as it was before this program.
    pub(super) fn restore(&self) {
        let _ = tcsetattr(&self.fd, OptionalActions::Now, &self.before);
    }

    /// Lets go what was typed and not read.
    pub(super) fn forget(&self) {
        let _ = tcflush(&self.fd, QueueSelector::IFlush);
    }

    /// What was typed and not read, whether its line is ended or not. What is typed from now on comes key by key.
    pub(super) fn rest(&self) -> String {
        let mut termios = self.before.clone();
        termios.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        // The key that ends a line stays what it is for an editor.
        termios.input_modes -= InputModes::ICRNL;
        termios.special_codes[SpecialCodeIndex::VMIN] = 0;
        termios.special_codes[SpecialCodeIndex::VTIME] = 0;
        if tcsetattr(&self.fd, OptionalActions::Now, &termios).is_err() {
            return String::new();
        }
        let mut typed = Vec::new();
        let mut bytes = [0; 4096];
        while let Ok(count) = rustix::io::read(&self.fd, &mut bytes) {
            typed.extend_from_slice(&bytes[..count]);
            if count == 0 || typed.len() > LONGEST as usize {
                break;
            }
        }
        words(&typed)
    }

    /// Waits for a line.
    pub(super) fn line(&self, wake: &Wake) -> Typed {
        let mut line = Vec::new();
        loop {
            let mut fds = [
                PollFd::new(&self.fd, PollFlags::IN),
                PollFd::new(&wake.receiver, PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return Typed::Gone,
            }
            let (terminal, woken) = (fds[0].revents(), fds[1].revents());
            if terminal.contains(PollFlags::IN) {
                let mut bytes = [0; 4096];
                match rustix::io::read(&self.fd, &mut bytes) {
                    Ok(0) if line.is_empty() => return Typed::End,
                    Ok(count) => line.extend_from_slice(&bytes[..count]),
                    Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                    Err(_) => return Typed::Gone,
                }
                if line.ends_with(b"\n") || line.len() > LONGEST as usize {
                    return Typed::Line(words(&line).trim_end_matches('\n').to_owned());
                }
                continue;
            }
            if terminal.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                return Typed::Gone;
            }
            if woken.contains(PollFlags::IN) {
                wake.settle();
                return Typed::Woken;
            }
        }
    }

    /// Stops this program as Ctrl-Z does, with the terminal as it was, until it goes on.
    pub(super) fn suspend(&self, went_on: &Receiver<()>) {
        self.restore();
        while went_on.try_recv().is_ok() {}
        // Like the terminal itself, which stops all programs of a command line.
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        // Another thread may take the signal, and this one would draw the line again before the program stops. Nobody stops a program
        // that no shell looks after, so there is an end to it.
        let _ = went_on.recv_timeout(STOPS_WITHIN);
    }
}

/// What was typed, without what keys such as the arrows say.
fn words(typed: &[u8]) -> String {
    let text = String::from_utf8_lossy(typed);
    let text = console::strip_ansi_codes(&text);
    text.chars()
        .filter(|char| !char.is_control() || matches!(char, '\n' | '\t'))
        .collect()
}

/// Leaves the lines of an editor on the screen, down to the cursor.
pub(super) fn leave_line(mark: &str) {
    write_to_terminal(&format!("{mark}\r\n\x1b[J"));
}

/// Takes the lines of an editor from the screen: `text`, with the cursor behind so many bytes of it.
pub(super) fn erase_line(text: &str, cursor: usize) {
    let columns = console::Term::stderr()
        .size_checked()
        .map_or(80, |(_, columns)| usize::from(columns).max(1));
    let up = rows_above(text.get(..cursor).unwrap_or(text), columns);
    let up = if up > 0 {
        format!("\x1b[{up}A")
    } else {
        String::new()
    };
    write_to_terminal(&format!("\r{up}\x1b[J"));
}

/// How many rows of the editor stand above the row in which `before` ends.
fn rows_above(before: &str, columns: usize) -> usize {
    let mut lines: Vec<usize> = before
        .split('\n')
        .map(|line| (MARK + line.width()).saturating_sub(1) / columns)
        .collect();
    let last = lines.pop().unwrap_or_default();
    lines.iter().map(|rows| rows + 1).sum::<usize>() + last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_the_terminal_wraps_them() {
        assert_eq!(rows_above("", 20), 0);
        assert_eq!(rows_above("x", 20), 0);
        assert_eq!(rows_above(&"x".repeat(18), 20), 0);
        assert_eq!(rows_above(&"x".repeat(19), 20), 1);
        assert_eq!(rows_above("a\nb\n", 20), 2);
        assert_eq!(rows_above(&format!("{}\nb", "x".repeat(50)), 20), 3);
        assert_eq!(rows_above("日本語", 5), 1);
    }
}
