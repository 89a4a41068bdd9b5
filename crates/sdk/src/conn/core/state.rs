//! The state of the core, for reading.

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

/// How long a CLI that never reports its state may take to begin a turn after its last background agent ended.
const SETTLE: Duration = Duration::from_secs(2);

/// The state that the CLI reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionState {
    /// Nothing runs, except perhaps background shells.
    Idle,
    /// A turn runs, or background agents do.
    Running,
    /// A request to the program is open.
    RequiresAction,
}

/// Whether the run has ended, and what it waits for.
#[derive(Debug)]
pub(crate) struct RunState {
    /// No prompt waits, no turn runs, and no agent is left that would begin one.
    pub(crate) is_over: bool,
    /// Only background work is left: no turn runs, no prompt waits, no CLI request is open.
    pub(crate) is_quiet: bool,
    /// When the last result came, or later by the time that requests were open since; `None` before the first result.
    pub(crate) quiet_since: Option<Instant>,
    /// Until when a CLI that never reports its state may begin the turn in which an ended agent reports.
    pub(crate) settles_at: Option<Instant>,
}

impl Core {
    /// The error of the end, after it.
    pub(crate) fn ended(&self) -> Option<&Error> {
        self.ended.as_ref()
    }

    /// What was open at the end.
    pub(crate) fn lost(&self) -> &Lost {
        &self.lost
    }

    /// The last reported state; `None` before the first.
    pub(crate) fn state(&self) -> Option<SessionState> {
        self.state
    }

    /// The last `commands_changed`.
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

    /// The last result of any turn.
    pub(crate) fn last_result(&self) -> Option<&Outcome> {
        self.last_result.as_ref()
    }

    /// The kinds of the last frames.
    pub(crate) fn recent(&self) -> Vec<FrameNote> {
        self.recent.notes()
    }

    /// Whether the CLI runs the user's hooks before its reply to `initialize`.
    pub(crate) fn runs_hooks(&self) -> bool {
        self.startup.runs_hooks()
    }

    /// The last step of its start that the CLI reported.
    pub(crate) fn startup_mark(&self) -> Option<&str> {
        self.startup.mark()
    }

    /// The number of the current turn.
    pub(crate) fn current_turn(&self) -> Option<u64> {
        self.turns.current()
    }

    /// Whether a turn runs, or a prompt waits.
    pub(crate) fn is_mid_turn(&self) -> bool {
        self.turns.any_open() || self.turns.is_running()
    }

    /// The prompts that an interrupt would end now, by number and id.
    pub(crate) fn interruptible(&self) -> Vec<(u64, String)> {
        self.turns.interruptible()
    }

    /// Where a sent prompt is; `None` once it has ended.
    pub(crate) fn place(&self, prompt: &str) -> Option<SentPrompt> {
        self.turns.place(prompt)
    }

    /// The CLI requests without a decision.
    pub(crate) fn undecided(&self) -> impl Iterator<Item = (Serial, &RequestId, &Frame)> {
        self.open_requests.undecided()
    }

    /// The open request with this id.
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

    /// The id of the last message of the main conversation that the CLI sent.
    pub(crate) fn last_told(&self) -> Option<&str> {
        Some(self.last_told.as_str()).filter(|uuid| !uuid.is_empty())
    }

    /// The counters.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            open_prompts: self.turns.open(),
            held_prompt_bytes: self.turns.held_bytes(),
            unanswered_by_cli: self.pending.len(),
            unanswered_by_us: self.open_requests.len(),
            ..self.stats.clone()
        }
    }

    /// Whether the run has ended, and what it waits for.
    pub(crate) fn run(&self, now: Instant) -> RunState {
        let is_idle = !self.is_mid_turn() && self.open_requests.is_empty();
        let settles_at = self
            .agents_ended
            .filter(|_| self.state.is_none())
            .map(|ended| ended + SETTLE)
            .filter(|at| *at > now);
        let is_still = match self.state {
            // The CLI reports it.
            Some(state) => state == SessionState::Idle,
            // The CLI never reports its state: by its background tasks.
            None => settles_at.is_none(),
        };
        RunState {
            is_over: is_idle && is_still && !self.ledger.has_background_agents(),
            is_quiet: is_idle && self.state != Some(SessionState::RequiresAction),
            quiet_since: self.quiet_since,
            settles_at,
        }
    }

    /// The next deadline, and the stall if it passes.
    pub(crate) fn due(&self) -> Option<(Instant, Stall)> {
        self.watchdog.due(self.turns.is_busy(), self.host_decides())
    }

    /// Whether the CLI waits for this program, or for a person.
    pub(super) fn host_decides(&self) -> bool {
        self.open_requests.is_deciding() || self.state == Some(SessionState::RequiresAction)
    }
}
