//! `outrigger sessions follow`.

use std::collections::VecDeque;
use std::io::{self, BufWriter};
use std::time::Duration;

use outrigger::sessions::watch::{Change, Event, Follow as Following, WatchOptions};
use outrigger::sessions::{AgentId, MessageKind, SessionMessage};
use serde::Serialize;

use super::find::{Named, line};
use super::interrupt::Interrupt;
use super::show_session::head;
use super::talk::Talk;
use crate::exit::{CommandResult, Failure, Status};
use crate::paint::Paint;
use crate::plain::plain;

/// How long at most until a wish to end, or a closed output, is noticed; and what somebody wrote.
const LOOK: Duration = Duration::from_millis(100);

/// Show what is said in a session from now on, while another process writes it.
///
/// It goes on until Ctrl-C, which is exit status 130, or until the transcript is deleted, which is 1. What is said is shown as it is
/// recorded, a line of the transcript at a time.
#[derive(Debug, clap::Args)]
pub(super) struct Follow {
    #[command(flatten)]
    named: Named,
    /// Show all earlier messages first.
    #[arg(long, conflicts_with = "last")]
    from_start: bool,
    /// Show this many of the earlier messages first.
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    last: usize,
    /// What is said in subagents, too.
    #[arg(long)]
    subagents: bool,
    /// The CLI's notes too, such as the boundaries of compactions.
    #[arg(long)]
    system: bool,
    /// All of what tools gave back and of what the model thought, and what is not meant to be shown.
    #[arg(long)]
    full: bool,
    /// Write a line of JSON for each message: what the TypeScript SDK calls `SessionMessage`, with `agentId` in those of subagents.
    #[arg(long)]
    json: bool,
}

/// A message on its way out.
#[derive(Debug, Serialize)]
struct FollowedMessage {
    #[serde(flatten)]
    message: SessionMessage,
    #[serde(rename = "agentId", skip_serializing_if = "Option::is_none")]
    agent: Option<AgentId>,
}

impl Follow {
    pub(super) fn run(self) -> CommandResult {
        let interrupt = Interrupt::heed();
        let (_, file) = self.named.find()?;
        let options = WatchOptions::new()
            .from_start(self.from_start || self.last > 0)
            .include_subagents(self.subagents)
            .interval(LOOK);
        let mut follow = file.watch(&options)?;
        let stdout = io::stdout();
        let paint = Paint::on(&stdout);
        let mut out = BufWriter::new(stdout.lock());
        if !self.json {
            head(&file, &mut out, paint)?;
        }
        let mut told = FollowOutput {
            talk: Talk::new(&mut out, paint, self.full),
            agent: None,
            json: self.json,
        };
        for said in self.earlier(&mut follow, file.size, &interrupt)? {
            told.write(&said)?;
        }
        loop {
            let mut event = follow.next(Duration::ZERO)?;
            if event.is_none() {
                told.flush()?;
                if is_closed() {
                    return Ok(Status::BrokenPipe);
                }
                event = follow.next(LOOK)?;
            }
            if let Some(status) = interrupt.status() {
                told.flush()?;
                return Ok(status);
            }
            let Some(event) = event else { continue };
            if let Some(note) = note(&event) {
                told.flush()?;
                eprintln!("outrigger: {}", plain(&note));
            }
            if matches!(event.change, Change::Gone) && event.agent.is_none() {
                return Ok(Status::Failed);
            }
            if let Some(said) = self.followed_message(event) {
                told.write(&said)?;
            }
        }
    }

    /// The last messages of those that were there at the beginning, as many as are wanted.
    fn earlier(
        &self,
        follow: &mut Following,
        size: u64,
        interrupt: &Interrupt,
    ) -> Result<VecDeque<FollowedMessage>, Failure> {
        let mut held = VecDeque::new();
        while self.last > 0 && interrupt.status().is_none() {
            let Some(event) = follow.next(Duration::ZERO)? else {
                break;
            };
            // Whoever writes without pause would keep it here for ever.
            let is_new = match &event.change {
                Change::Record(record) => event.agent.is_none() && record.position().offset >= size,
                _ => false,
            };
            held.extend(self.followed_message(event));
            if held.len() > self.last && !is_new {
                held.pop_front();
            }
            if is_new {
                break;
            }
        }
        Ok(held)
    }

    /// The message that an event is, if it is one that is to be shown.
    fn followed_message(&self, event: Event) -> Option<FollowedMessage> {
        let message = event.message()?;
        (message.kind != MessageKind::System || self.system).then_some(FollowedMessage {
            message,
            agent: event.agent,
        })
    }
}

/// What is to be said of what else happened.
fn note(event: &Event) -> Option<String> {
    let of = match &event.agent {
        Some(agent) => format!("the transcript of subagent {}", line(agent.as_str(), 200)),
        None => "the transcript".to_owned(),
    };
    match &event.change {
        Change::Damaged(damage) => Some(format!(
            "a damaged line was left out of {of}: {}",
            plain(&damage.to_string())
        )),
        Change::Replaced => Some(format!("{of} was replaced; here it is from its beginning")),
        Change::Truncated => Some(format!("{of} was cut; here it is from its beginning")),
        Change::Gone => Some(format!("{of} was deleted")),
        _ => None,
    }
}

/// What was told so far, and how.
struct FollowOutput<'o> {
    talk: Talk<'o>,
    /// Who spoke last: a subagent, or none of them.
    agent: Option<AgentId>,
    json: bool,
}

impl FollowOutput<'_> {
    fn write(&mut self, said: &FollowedMessage) -> Result<(), Failure> {
        if self.json {
            let out = self.talk.out();
            serde_json::to_writer(&mut *out, said).map_err(io::Error::from)?;
            return Ok(writeln!(out)?);
        }
        if self.agent != said.agent {
            let who = match &said.agent {
                Some(agent) => format!("subagent {}", line(agent.as_str(), 200)),
                None => "main conversation".to_owned(),
            };
            self.agent.clone_from(&said.agent);
            writeln!(self.talk.out(), "\n[{who}]")?;
        }
        self.talk.message(&said.message)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.talk.out().flush()
    }
}

/// Whether nobody can read standard output any more, which else only the next message would tell.
#[cfg(unix)]
fn is_closed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = io::stdout();
    let mut stdout = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let found = poll(&mut stdout, Some(&now)).is_ok_and(|found| found > 0);
    found && stdout[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

#[cfg(not(unix))]
fn is_closed() -> bool {
    false
}
