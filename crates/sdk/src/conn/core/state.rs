//! What the core knows: questions that change nothing.

use std::time::{Duration, Instant};

use outrigger_protocol::Frame;
use outrigger_protocol::shared::RequestId;

use super::{Core, SentPrompt, Serial};
use crate::end::FrameNote;
use crate::error::Error;
use crate::ledger::Tasks;
use crate::lost::Lost;
use crate::outcome::Outcome;
use crate::phase::Stall;
use crate::stats::Stats;
use crate::usage::SessionUsage;

/// How long after the end of its last background agent a CLI that never reports its state may take to begin a turn.
const SETTLE: Duration = Duration::from_secs(2);

/// What the CLI says it is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// Nothing runs, except perhaps shells in the background.
    Idle,
    /// A turn runs, or background agents do.
    Running,
    /// A question to the host is open.
    RequiresAction,
}

/// How far the run is from its end.
#[derive(Debug)]
pub(crate) struct RunState {
    /// Nothing of ours waits, no turn runs, no agent that would begin another is left.
    pub(crate) is_over: bool,
    /// Only background work keeps the run from ending: no turn runs, none waits, and nobody is asked.
    pub(crate) is_quiet: bool,
    /// Since when the main conversation has said nothing and nobody decided anything; from the first result on.
    pub(crate) quiet_since: Option<Instant>,
    /// Until when a CLI that never reports its state may take to begin the turn in which an agent that has ended reports.
    pub(crate) settles_at: Option<Instant>,
}

impl Core {
    /// Why it is over, if it is.
    pub(crate) fn ended(&self) -> Option<&Error> {
        self.ended.as_ref()
    }

    /// What was open at the end.
    pub(crate) fn lost(&self) -> &Lost {
        &self.lost
    }

    /// What the CLI says it is doing; `None` before it said anything.
    pub(crate) fn state(&self) -> Option<SessionState> {
        self.state
    }

    /// What the CLI said last about its commands, if they changed.
    pub(crate) fn commands(&self) -> Option<&Frame> {
        self.commands.as_ref()
    }

    /// Background work, subagents and tasks.
    pub(crate) fn tasks(&self) -> Tasks {
        self.ledger.tasks()
    }

    pub(crate) fn usage(&self) -> SessionUsage {
        self.meter.session()
    }

    /// The last result, whoever's it was.
    pub(crate) fn last_result(&self) -> Option<&Outcome> {
        self.last_result.as_ref()
    }

    /// The kinds of the last frames.
    pub(crate) fn recent(&self) -> Vec<FrameNote> {
        self.recent.notes()
    }

    /// Whether the CLI, before it has answered `initialize`, waits for hooks of the user's.
    pub(crate) fn runs_hooks(&self) -> bool {
        self.startup.runs_hooks()
    }

    /// The last thing that the CLI said it had done for its start.
    pub(crate) fn startup_mark(&self) -> Option<&str> {
        self.startup.mark()
    }

    /// The number of the turn that is running.
    pub(crate) fn current_turn(&self) -> Option<u64> {
        self.turns.current()
    }

    /// Whether a turn runs, or a prompt waits.
    pub(crate) fn is_mid_turn(&self) -> bool {
        self.turns.any_open() || self.turns.is_running()
    }

    /// The prompts that an interrupt now is about, by number and id.
    pub(crate) fn interruptible(&self) -> Vec<(u64, String)> {
        self.turns.interruptible()
    }

    /// Where a prompt is that was sent; `None` once it has ended.
    pub(crate) fn place(&self, prompt: &str) -> Option<SentPrompt> {
        self.turns.place(prompt)
    }

    /// The requests of the CLI that nobody has decided yet.
    pub(crate) fn undecided(&self) -> impl Iterator<Item = (Serial, &RequestId, &Frame)> {
        self.open_requests.undecided()
    }

    /// One of them.
    pub(crate) fn request(&self, id: &str) -> Option<(Serial, &RequestId, &Frame)> {
        self.open_requests.request(id)
    }

    /// The ids that the conversation had, the current one last.
    pub(crate) fn session_ids(&self) -> impl Iterator<Item = &str> {
        self.session_ids.iter().map(String::as_str)
    }

    /// The id that the conversation has now.
    pub(crate) fn session_id(&self) -> Option<&str> {
        self.session_ids.back().map(String::as_str)
    }

    /// The id of the last message of the main conversation that the CLI told.
    pub(crate) fn last_told(&self) -> Option<&str> {
        Some(self.last_told.as_str()).filter(|uuid| !uuid.is_empty())
    }

    /// What is counted here.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            open_prompts: self.turns.open(),
            held_prompt_bytes: self.turns.held_bytes(),
            unanswered_by_cli: self.pending.len(),
            unanswered_by_us: self.open_requests.len(),
            ..self.stats.clone()
        }
    }

    /// How far the run is from its end.
    pub(crate) fn run(&self, now: Instant) -> RunState {
        let is_idle = !self.is_mid_turn() && self.open_requests.is_empty();
        let settles_at = self
            .agents_ended
            .filter(|_| self.state.is_none())
            .map(|ended| ended + SETTLE)
            .filter(|at| *at > now);
        let is_still = match self.state {
            // The CLI says so itself.
            Some(state) => state == SessionState::Idle,
            // One that never reports its state: by the tasks that it reported.
            None => settles_at.is_none(),
        };
        RunState {
            is_over: is_idle && is_still && !self.ledger.has_background_agents(),
            is_quiet: is_idle && self.state != Some(SessionState::RequiresAction),
            quiet_since: self.quiet_since,
            settles_at,
        }
    }

    /// Until when something has to happen, and what it means if it does not.
    pub(crate) fn due(&self) -> Option<(Instant, Stall)> {
        let in_turn = self.turns.is_running() || self.turns.any_sent();
        let host_decides =
            self.open_requests.is_deciding() || self.state == Some(SessionState::RequiresAction);
        self.watchdog.due(in_turn, host_decides)
    }
}
