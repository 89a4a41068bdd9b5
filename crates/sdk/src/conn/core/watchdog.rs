//! Detects stalls. A state machine without I/O.
//!
//! The CLI waits for the API without a limit: a half-open connection would keep a turn for ever. So each wait for the model has a
//! deadline. A tool may run for hours and a person may think for days, so these have none.

use std::time::{Duration, Instant};

use outrigger_protocol::Frame;
use tracing::Span;

use super::running_tools::OpenTools;
use crate::phase::{Phase, Stall};

/// The deadline of each wait for the model; `None` for no limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Patience {
    pub(crate) first_token: Option<Duration>,
    pub(crate) between_events: Option<Duration>,
    /// The time for a turn in all, whatever it waits for.
    pub(crate) turn: Option<Duration>,
}

/// What the main conversation is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AwaitedOutput {
    /// Nothing that has a deadline.
    Nothing,
    /// The beginning of the model's answer.
    Answer,
    /// The next piece of a response.
    Piece,
}

#[derive(Debug)]
pub(crate) struct Watchdog {
    patience: Patience,
    step: AwaitedOutput,
    /// The last sign of life.
    since: Instant,
    tools: OpenTools,
    /// When the turn began that runs or comes next.
    begun: Option<Instant>,
    /// The time in all for the session, and since when.
    run: Option<(Instant, Duration)>,
}

impl Watchdog {
    pub(crate) fn new(patience: Patience, now: Instant) -> Self {
        Self {
            patience,
            step: AwaitedOutput::Nothing,
            since: now,
            tools: OpenTools::default(),
            begun: None,
            run: None,
        }
    }

    /// From now on the session has this time in all.
    pub(crate) fn set_run(&mut self, time: Option<Duration>, now: Instant) {
        self.run = time.map(|time| (now, time));
    }

    /// A deadline has passed: it does not pass again at once.
    pub(crate) fn on_stall(&mut self, phase: Phase, now: Instant) {
        match phase {
            Phase::Run => self.run = None,
            Phase::Turn => self.begun = Some(now),
            _ => {}
        }
    }

    /// A prompt was sent to a CLI that had nothing to do.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.step = AwaitedOutput::Answer;
        self.since = now;
        self.begun = Some(now);
    }

    /// The CLI waited for this program since then, and does no longer.
    pub(crate) fn on_unblocked(&mut self, stopped: Instant, now: Instant) {
        self.since = goes_on(self.since, stopped, now);
    }

    /// The turn ended.
    pub(crate) fn on_turn_end(&mut self, now: Instant, another_waits: bool) {
        self.tools.clear();
        self.since = now;
        self.begun = another_waits.then_some(now);
        self.step = if another_waits {
            AwaitedOutput::Answer
        } else {
            AwaitedOutput::Nothing
        };
    }

    /// The session has ended.
    pub(crate) fn end(&mut self) {
        self.tools.clear();
        self.run = None;
    }

    /// Takes a frame. Returns whether the deadline has changed. `turn` is the span of the running turn, for tools.
    pub(crate) fn on_frame(&mut self, frame: &Frame, turn: Option<&Span>, now: Instant) -> bool {
        let was_blocked = self.tools.is_running();
        self.tools.on_frame(frame, turn);
        // Frames of a subagent do not count: for the conversation it is a running tool.
        let has_moved = frame.parent_tool_use_id().is_none() && self.step(frame, turn.is_some(), now);
        has_moved || was_blocked && !self.tools.is_running()
    }

    /// The same for a frame of the main conversation.
    fn step(&mut self, frame: &Frame, in_turn: bool, now: Instant) -> bool {
        if !is_sign_of_life(frame) {
            return false;
        }
        self.since = now;
        let before = self.step;
        if before == AwaitedOutput::Nothing && !in_turn {
            // Between turns the CLI reports changes, and nobody waits for the model.
            return false;
        }
        self.step = match frame.kind() {
            "stream_event" if frame.event_type() == Some("message_stop") => AwaitedOutput::Answer,
            "stream_event" => AwaitedOutput::Piece,
            // One comes for each block, in between the partial messages if there are any.
            "assistant" if before == AwaitedOutput::Piece => AwaitedOutput::Piece,
            "assistant" | "user" => AwaitedOutput::Answer,
            "system" => match frame.subtype() {
                // A request to the model begins, or begins again.
                Some("init" | "api_retry" | "compact_boundary" | "status") => AwaitedOutput::Answer,
                _ => before,
            },
            _ => before,
        };
        // A turn that no prompt of this session began.
        if before == AwaitedOutput::Nothing && self.step != before {
            self.begun = Some(now);
        }
        self.step != before
    }

    /// Until when something has to happen. `in_turn`: whether a turn runs or a prompt waits for its turn at the CLI;
    /// `host_decides`: whether the CLI waits for us.
    pub(crate) fn due(&self, in_turn: bool, host_decides: bool) -> Option<(Instant, Stall)> {
        // A deadline beyond the range of the clock is none.
        let at = |since: Instant, after, phase| Some((since.checked_add(after)?, Stall { phase, after }));
        let run = self.run.and_then(|(since, time)| at(since, time, Phase::Run));
        let turn = self.begun.zip(self.patience.turn).filter(|_| in_turn);
        let turn = turn.and_then(|(since, time)| at(since, time, Phase::Turn));
        let silence = self.due_in_silence(in_turn, host_decides);
        run.into_iter()
            .chain(turn)
            .chain(silence)
            .min_by_key(|(at, _)| *at)
    }

    /// The same for silence alone.
    fn due_in_silence(&self, in_turn: bool, host_decides: bool) -> Option<(Instant, Stall)> {
        if !in_turn || host_decides || self.tools.is_running() {
            return None;
        }
        let (phase, after) = match self.step {
            AwaitedOutput::Nothing => return None,
            AwaitedOutput::Answer => (Phase::FirstToken, self.patience.first_token?),
            AwaitedOutput::Piece => (Phase::BetweenEvents, self.patience.between_events?),
        };
        // A deadline beyond the range of the clock is none.
        Some((self.since.checked_add(after)?, Stall { phase, after }))
    }
}

/// Whether a frame shows that the main conversation goes on. Others are about background work, MCP servers or the account, or come
/// whatever happens. A hook may run for minutes before the model is asked, and its frames do not say whose it is.
fn is_sign_of_life(frame: &Frame) -> bool {
    match frame.kind() {
        "stream_event" | "assistant" | "user" => true,
        "system" => matches!(
            frame.subtype(),
            Some(
                "init"
                    | "status"
                    | "thinking_tokens"
                    | "api_retry"
                    | "api_error"
                    | "model_fallback"
                    | "model_refusal_fallback"
                    | "compact_boundary"
                    | "hook_started"
                    | "hook_progress"
                    | "hook_response"
            )
        ),
        _ => false,
    }
}

/// The beginning of a time that stood still from `stopped` until now: later by that.
pub(super) fn goes_on(begun: Instant, stopped: Instant, now: Instant) -> Instant {
    begun + now.saturating_duration_since(stopped.max(begun))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(60);
    const NEXT: Duration = Duration::from_secs(5);

    struct WatchdogCase {
        watchdog: Watchdog,
        now: Instant,
    }

    impl WatchdogCase {
        fn new() -> Self {
            let patience = Patience {
                first_token: Some(FIRST),
                between_events: Some(NEXT),
                turn: None,
            };
            let now = Instant::now();
            Self {
                watchdog: Watchdog::new(patience, now),
                now,
            }
        }

        /// A second later, a frame.
        fn frame(&mut self, line: &str) {
            self.now += Duration::from_secs(1);
            let frame = Frame::from_line(line.as_bytes()).remove(0);
            self.watchdog.on_frame(&frame, Some(&Span::none()), self.now);
        }

        /// What is waited for, and that it counts from the last frame on.
        fn waits_for(&self) -> Option<Phase> {
            let (at, stall) = self.watchdog.due(true, false)?;
            assert_eq!(at, self.now + stall.after);
            Some(stall.phase)
        }
    }

    const TOOL: &str = r#"{"type":"assistant","parent_tool_use_id":null,"message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}"#;
    const RESULT: &str = r#"{"type":"user","parent_tool_use_id":null,"message":{"content":[{"tool_use_id":"t1","type":"tool_result","content":"x"}]}}"#;

    #[test]
    fn each_wait_for_the_model_is_watched_and_no_tool_is() {
        let mut case = WatchdogCase::new();
        assert_eq!(case.waits_for(), None);
        case.watchdog.on_sent(case.now);
        assert_eq!(case.waits_for(), Some(Phase::FirstToken));
        case.frame(r#"{"type":"system","subtype":"init"}"#);
        assert_eq!(case.waits_for(), Some(Phase::FirstToken));
        case.frame(r#"{"type":"stream_event","event":{"type":"message_start"}}"#);
        assert_eq!(case.waits_for(), Some(Phase::BetweenEvents));
        case.frame(TOOL);
        assert_eq!(case.waits_for(), None, "a tool runs");
        case.frame(r#"{"type":"stream_event","event":{"type":"message_stop"}}"#);
        assert_eq!(case.waits_for(), None, "it still does");
        case.frame(RESULT);
        assert_eq!(case.waits_for(), Some(Phase::FirstToken));
        case.frame(r#"{"type":"system","subtype":"api_retry"}"#);
        assert_eq!(case.waits_for(), Some(Phase::FirstToken));
        case.frame(r#"{"type":"assistant","parent_tool_use_id":null,"message":{"content":[]}}"#);
        assert_eq!(
            case.waits_for(),
            Some(Phase::FirstToken),
            "the turn has not ended"
        );
        case.watchdog.on_turn_end(case.now, false);
        assert_eq!(case.waits_for(), None);
    }

    #[test]
    fn a_retry_in_mid_answer_waits_for_a_first_token_again() {
        let mut case = WatchdogCase::new();
        case.frame(r#"{"type":"stream_event","event":{"type":"message_start"}}"#);
        case.frame(r#"{"type":"system","subtype":"api_retry"}"#);
        assert_eq!(case.waits_for(), Some(Phase::FirstToken));
    }

    #[test]
    fn only_the_main_conversation_gives_signs_of_life() {
        let mut case = WatchdogCase::new();
        case.watchdog.on_sent(case.now);
        let system = |subtype: &str| format!(r#"{{"type":"system","subtype":"{subtype}"}}"#);
        for subtype in ["status", "thinking_tokens", "hook_progress", "model_fallback"] {
            case.frame(&system(subtype));
            assert_eq!(case.waits_for(), Some(Phase::FirstToken), "{subtype}");
        }
        let due = case.watchdog.due(true, false);
        for subtype in [
            "task_started",
            "task_progress",
            "task_updated",
            "task_notification",
            "background_tasks_changed",
            "commands_changed",
            "session_state_changed",
        ] {
            case.frame(&system(subtype));
            assert_eq!(case.watchdog.due(true, false), due, "{subtype}");
        }
        for line in [
            r#"{"type":"rate_limit_event"}"#,
            r#"{"type":"command_lifecycle","command_uuid":"p","state":"queued"}"#,
            r#"{"type":"tool_progress","tool_use_id":"t","parent_tool_use_id":null}"#,
            r#"{"type":"assistant","parent_tool_use_id":"agent","message":{"content":[]}}"#,
            r#"{"type":"something_new"}"#,
        ] {
            case.frame(line);
            assert_eq!(case.watchdog.due(true, false), due, "{line}");
        }
    }

    #[test]
    fn nothing_is_watched_while_somebody_decides_or_no_turn_runs() {
        let mut case = WatchdogCase::new();
        case.watchdog.on_sent(case.now);
        assert!(case.watchdog.due(true, true).is_none());
        assert!(case.watchdog.due(false, false).is_none());
        assert!(case.watchdog.due(true, false).is_some());
        case.watchdog.patience.first_token = None;
        assert!(case.watchdog.due(true, false).is_none());
    }

    #[test]
    fn time_in_all_runs_whatever_is_waited_for() {
        let mut case = WatchdogCase::new();
        let (turn, run) = (Duration::from_secs(100), Duration::from_secs(250));
        case.watchdog.patience.turn = Some(turn);
        case.watchdog.set_run(Some(run), case.now);
        let start = case.now;
        let due = |case: &WatchdogCase, in_turn, blocked| {
            let (at, stall) = case.watchdog.due(in_turn, blocked).unwrap();
            (at.duration_since(start).as_secs(), stall.phase)
        };
        assert_eq!(due(&case, false, false), (250, Phase::Run));
        case.watchdog.on_sent(case.now);
        assert_eq!(due(&case, true, true), (100, Phase::Turn), "somebody decides");
        case.frame(TOOL);
        assert_eq!(due(&case, true, false), (100, Phase::Turn), "a tool runs");
        case.now += Duration::from_secs(49);
        case.watchdog.on_turn_end(case.now, true);
        assert_eq!(due(&case, true, true), (150, Phase::Turn), "the next turn");
        case.watchdog.on_turn_end(case.now, false);
        assert_eq!(due(&case, false, false), (250, Phase::Run));
        // One that began by itself.
        case.frame(r#"{"type":"system","subtype":"init"}"#);
        assert_eq!(due(&case, true, true), (151, Phase::Turn));
        case.watchdog.on_stall(Phase::Run, case.now);
        case.watchdog.on_stall(Phase::Turn, case.now);
        assert_eq!(due(&case, true, true), (151, Phase::Turn), "not again at once");
        case.watchdog.set_run(Some(Duration::MAX), case.now);
        assert!(case.watchdog.due(false, false).is_none());
    }
}
