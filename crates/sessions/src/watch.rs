//! Following a transcript while another process writes it.
//!
//! The file is looked at again and again, in an interval of one's choice: that works on every file system, and needs no help from the
//! system that could be missing.

mod tail;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::id::{AgentId, SessionId};
use crate::place::{SessionFile, Sessions};
use crate::read::SessionMessage;
use crate::record::{Damage, Record};
use tail::Tail;

/// How to follow a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchOptions {
    /// Looks for the session in the project at this directory, and in the other worktrees of its repository; in all projects unless
    /// it is set.
    pub dir: Option<PathBuf>,
    /// Tells what is there already too, from the beginning. False unless it is set.
    pub from_start: bool,
    /// Follows the transcripts of subagents too, those that begin later as well. False unless it is set.
    pub include_subagents: bool,
    /// How long to wait between two looks at the files. 250 ms unless it is set.
    pub interval: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            dir: None,
            from_start: false,
            include_subagents: false,
            interval: Duration::from_millis(250),
        }
    }
}

impl WatchOptions {
    /// Tells what is appended from now on to the main transcript.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for the session in the project at this directory, and in the other worktrees of its repository.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Sets whether what is there already is told too.
    pub fn from_start(mut self, from_start: bool) -> Self {
        self.from_start = from_start;
        self
    }

    /// Sets whether the transcripts of subagents are followed too.
    pub fn include_subagents(mut self, include: bool) -> Self {
        self.include_subagents = include;
        self
    }

    /// Sets how long to wait between two looks at the files.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }
}

/// What happened to a transcript that is followed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    /// The subagent whose transcript it is; none for the main one.
    pub agent: Option<AgentId>,
    /// What happened.
    pub change: Change,
}

/// What happened to a file that is followed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// A record was appended. Its line is counted from where following began.
    Record(Record),
    /// A line was appended that is none.
    Damaged(Damage),
    /// Another file was put in its place. That one is told from its beginning.
    Replaced,
    /// The transcript became shorter than what was read of it. It is read from its beginning again.
    Truncated,
    /// The transcript was deleted. If it was the main one, nothing else comes.
    Gone,
}

impl Event {
    /// The message that was appended, if one was: a prompt, an answer, a result of a tool, a note of the CLI. `None` for all else, and
    /// for what a team or, in the main transcript, a subagent said.
    ///
    /// It is told as it is recorded, so a rewind does not take it back. `parent_tool_use_id` and `parent_agent_id` are null: what began
    /// a subagent is not in its transcript ([`SessionFile::subagent`] knows it).
    pub fn message(&self) -> Option<SessionMessage> {
        let Change::Record(record) = &self.change else {
            return None;
        };
        let envelope = record.envelope();
        let is_beside = self.agent.is_none() && (envelope.is_sidechain || envelope.team_name.is_some());
        if is_beside {
            return None;
        }
        SessionMessage::of(record.clone())
    }
}

/// A session that is followed. It holds the files open and nothing else; no thread runs.
#[derive(Debug)]
pub struct Follow {
    file: SessionFile,
    options: WatchOptions,
    tails: Vec<(Option<AgentId>, Tail)>,
    /// Which transcript to read first, so that none that grows fast keeps the others waiting.
    turn: usize,
    is_gone: bool,
}

impl Sessions {
    /// Follows a session while somebody writes it; by default only what is appended from now on.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use outrigger_sessions::Sessions;
    /// use outrigger_sessions::watch::{Change, WatchOptions};
    ///
    /// # fn main() -> outrigger_sessions::Result<()> {
    /// # let id = outrigger_sessions::SessionId::random();
    /// let mut follow = Sessions::from_env()?.watch(&id, &WatchOptions::new())?;
    /// while let Some(event) = follow.next(Duration::from_secs(60))? {
    ///     match event.change {
    ///         Change::Record(record) => println!("{}", record.text()),
    ///         Change::Gone => break,
    ///         other => eprintln!("{other:?}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such session (yet), or its transcript cannot be opened.
    pub fn watch(&self, id: &SessionId, options: &WatchOptions) -> Result<Follow> {
        self.locate(id, options.dir.as_deref())?.watch(options)
    }
}

impl SessionFile {
    /// Follows the session while somebody writes it. Of the options, `dir` has no meaning.
    ///
    /// # Errors
    /// When its transcript cannot be opened.
    pub fn watch(&self, options: &WatchOptions) -> Result<Follow> {
        let main = Tail::open(&self.path, options.from_start)?;
        let mut follow = Follow {
            file: self.clone(),
            options: options.clone(),
            tails: vec![(None, main)],
            turn: 0,
            is_gone: false,
        };
        follow.find_subagents(options.from_start)?;
        Ok(follow)
    }
}

impl Follow {
    /// The next thing that happens; `None` if nothing does within `timeout`. It blocks for that long at most, and reading besides;
    /// with [`Duration::ZERO`] it looks once.
    ///
    /// A line is told when it is whole: one that is still being written is waited for. What is written and taken back between two
    /// looks is not seen, and neither is it that a file was cut and has grown beyond where it was again: its lines are then read
    /// from the middle, and the first one may be damaged. After [`Change::Gone`] of the main transcript, that is told again.
    ///
    /// # Errors
    /// When a file cannot be read. Trying again is possible.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Event>> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(event) = self.poll()? {
                return Ok(Some(event));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            // An interval of 0 would keep a processor busy.
            let interval = self.options.interval.max(Duration::from_millis(1));
            thread::sleep(left.map_or(interval, |left| left.min(interval)));
        }
    }

    /// The session that is followed.
    pub fn session(&self) -> &SessionId {
        &self.file.id
    }

    fn poll(&mut self) -> Result<Option<Event>> {
        if self.is_gone {
            return Ok(Some(Event {
                agent: None,
                change: Change::Gone,
            }));
        }
        if let Some(event) = self.poll_tails()? {
            return Ok(Some(event));
        }
        if self.find_subagents(true)? {
            return self.poll_tails();
        }
        Ok(None)
    }

    /// Asks each file for what is new, beginning with another one each time.
    fn poll_tails(&mut self) -> Result<Option<Event>> {
        for _ in 0..self.tails.len() {
            self.turn = (self.turn + 1) % self.tails.len();
            let Some((agent, tail)) = self.tails.get_mut(self.turn) else {
                continue;
            };
            let Some(change) = tail.next()? else {
                continue;
            };
            let agent = agent.clone();
            if matches!(change, Change::Gone) {
                if agent.is_none() {
                    self.is_gone = true;
                } else {
                    self.tails.remove(self.turn);
                }
            }
            return Ok(Some(Event { agent, change }));
        }
        Ok(None)
    }

    /// Takes up the subagents that are not followed yet; whether there are any.
    fn find_subagents(&mut self, from_start: bool) -> Result<bool> {
        let mut is_new = false;
        if self.options.include_subagents {
            for (id, path) in self.file.subagent_paths() {
                let is_known = |(agent, tail): &(Option<AgentId>, Tail)| {
                    agent.as_ref() == Some(&id) && tail.path() == path
                };
                if !self.tails.iter().any(is_known) {
                    let tail = match Tail::open(&path, from_start) {
                        // The file was there a moment ago, and has been removed since.
                        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => continue,
                        tail => tail?,
                    };
                    self.tails.push((Some(id), tail));
                    is_new = true;
                }
            }
        }
        Ok(is_new)
    }
}
