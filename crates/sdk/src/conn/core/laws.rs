//! The laws of the core, for any inputs in any order. A broken law is a panic.
//!
//! The test below draws inputs at random; the fuzz target `core` searches for them, guided by coverage.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a law that does not hold is a panic"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::*;
use crate::prompt::Prompt;

/// What has come out, held against what went in.
struct CoreCase {
    core: Core,
    now: Instant,
    /// The prompts that were accepted, and whether they have ended.
    prompts: BTreeMap<u64, bool>,
    sent: BTreeSet<Vec<u8>>,
    gates: usize,
    is_held: bool,
    /// The requests of ours that wait for a reply.
    waiting: BTreeSet<String>,
    requests: usize,
    /// The requests of the CLI.
    cli_requests: BTreeMap<u64, CliRequestState>,
    is_over: bool,
    /// Since when the CLI has something to do.
    busy_since: Option<Instant>,
}

/// What callers wait for with [`Output::Changed`].
#[derive(Debug, PartialEq)]
struct AwaitedState {
    is_over: bool,
    is_quiet: bool,
    turn: Option<u64>,
    places: [Option<SentPrompt>; 6],
}

impl AwaitedState {
    /// Whether somebody may have waited for the change from this to `now`.
    fn is_left_for(&self, now: &Self) -> bool {
        let has_come = (now.is_over && !self.is_over) || (now.is_quiet && !self.is_quiet);
        let has_ended = self.turn.is_some() && self.turn != now.turn;
        let mut places = self.places.iter().zip(&now.places);
        has_come || has_ended || places.any(|(was, is)| was.is_some() && was != is)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum CliRequestState {
    Open(Serial),
    Claimed(Serial),
    Closed(Serial),
}

impl CoreCase {
    fn new() -> Self {
        let now = Instant::now();
        let patience = Patience {
            first_token: Some(Duration::from_secs(3)),
            turn: Some(Duration::from_secs(20)),
            between_events: Some(Duration::from_secs(2)),
        };
        Self {
            core: Core::new(patience, 1 << 20, Span::none(), now),
            now,
            prompts: BTreeMap::new(),
            sent: BTreeSet::new(),
            gates: 0,
            is_held: false,
            waiting: BTreeSet::new(),
            requests: 0,
            cli_requests: BTreeMap::new(),
            is_over: false,
            busy_since: None,
        }
    }

    fn awaited(&self) -> AwaitedState {
        let run = self.core.run(self.now);
        AwaitedState {
            is_over: run.is_over,
            is_quiet: run.is_quiet,
            turn: self.core.current_turn(),
            places: [0, 1, 2, 3, 4, 5].map(|number| self.core.place(&format!("p{number}"))),
        }
    }

    fn note_busy(&mut self) {
        let is_busy = self.core.turns.is_busy();
        self.busy_since = is_busy.then(|| self.busy_since.unwrap_or(self.now));
    }

    fn step(&mut self, input: Input<'_>) -> bool {
        let is_end = matches!(input, Input::End(_));
        let before = self.awaited();
        let (shown, wakes) = match &input {
            Input::Frame(frame) => (frame.text().into_owned(), changes_run(frame)),
            other => (format!("{other:?}"), is_end),
        };
        let taken = self.core.handle(input, self.now).is_ok();
        self.note_busy();
        let outputs: Vec<Output> = self.core.outputs().collect();
        let wakes = wakes || outputs.iter().any(|output| matches!(output, Output::Changed));
        let after = self.awaited();
        assert!(
            wakes || !before.is_left_for(&after),
            "{shown}: {before:?} to {after:?} wakes nobody"
        );
        assert!(!self.is_over || outputs.is_empty(), "{outputs:?} after the end");
        self.is_over |= is_end;
        for output in outputs {
            match output {
                Output::Deliver { prompt, .. } => assert!(!self.prompts[&prompt], "told after its end"),
                Output::Settle { prompt, .. } => {
                    let before = self.prompts.insert(prompt, true);
                    assert_eq!(before, Some(false), "it ends once");
                }
                Output::Reply { id, .. } => assert!(self.waiting.remove(&id), "nobody waits for {id}"),
                Output::CliRequest { serial, .. } | Output::RefuseRequest { serial, .. } => {
                    let number = self.cli_requests.len() as u64;
                    self.cli_requests.insert(number, CliRequestState::Open(serial));
                }
                Output::Withdrawn(serial) => {
                    let mut request = self.cli_requests.values_mut();
                    let request = request.find(|request| request.serial() == serial).unwrap();
                    let was_open = matches!(request, CliRequestState::Open(_)) || is_end;
                    assert!(was_open, "its answer is on its way");
                    *request = CliRequestState::Closed(serial);
                }
                Output::Ended => assert!(is_end),
                _ => {}
            }
        }
        taken
    }

    fn frame(&mut self, line: &str) {
        for frame in Frame::from_line(line.as_bytes()) {
            assert!(frame.flaw().is_none(), "{line}");
            self.step(Input::Frame(&frame));
        }
    }

    fn prompt(&mut self, id: &str, dispatch: Dispatch) {
        let number = self.prompts.len() as u64;
        let prompt = Accept {
            id: id.to_owned(),
            line: id.into(),
            dispatch,
            wanted_output: false,
            prompt: Prompt::text(id),
        };
        if self.step(Input::Prompt { number, prompt }) {
            self.prompts.insert(number, false);
        }
    }

    fn send(&mut self) {
        while let Some(line) = self.core.poll_send(self.now) {
            assert!(self.gates == 0 && !self.is_held && !self.is_over);
            assert!(self.sent.insert(line), "an id is sent once");
            self.note_busy();
        }
    }

    /// Something about the request of the CLI of this number.
    fn decide(&mut self, number: u8, how: u8) {
        let Some(request) = self.cli_requests.values().nth(usize::from(number)).copied() else {
            return;
        };
        let serial = request.serial();
        let (input, becomes) = match how % 3 {
            0 => (Input::Claim(serial), CliRequestState::Claimed(serial)),
            1 => (Input::Leave(serial), CliRequestState::Closed(serial)),
            _ => (Input::Written(serial), CliRequestState::Closed(serial)),
        };
        let is_claim = matches!(input, Input::Claim(_));
        let applies = !self.is_over
            && match request {
                CliRequestState::Open(_) => how % 3 < 2,
                CliRequestState::Claimed(_) => how % 3 == 2,
                CliRequestState::Closed(_) => false,
            };
        let taken = self.step(input);
        assert!(!is_claim || taken == applies, "{request:?} was claimed: {taken}");
        if applies {
            self.cli_requests.insert(u64::from(number), becomes);
        }
    }

    /// What the bytes of a step stand for.
    fn act(&mut self, (kind, a, b): (u8, u8, u8)) {
        let dispatch = if b.is_multiple_of(2) {
            Dispatch::Alone
        } else {
            Dispatch::AtOnce
        };
        let prompt = format!("p{}", a % 6);
        let turn = u64::from(a % 5);
        let done = r#""type":"result","subtype":"success","is_error":false,"num_turns":1"#;
        match kind % 24 {
            0 | 1 => self.prompt(&prompt, dispatch),
            2 | 3 => self.send(),
            4 => drop(self.step(Input::TakeBack { prompt: &prompt })),
            5 => drop(self.step(Input::TakenBack { prompt: &prompt })),
            6 => {
                let is_shut = self.gates == 0;
                if self.step(Input::Gate(is_shut)) {
                    self.gates = usize::from(is_shut);
                }
            }
            7 => {
                let is_held = a.is_multiple_of(4);
                if self.step(Input::HoldBack(is_held)) {
                    self.is_held = is_held;
                }
            }
            8 if b.is_multiple_of(2) => drop(self.step(Input::Interrupt)),
            8 => drop(self.step(Input::InterruptByReply)),
            9 if b.is_multiple_of(2) => {
                let state = if b.is_multiple_of(4) { "idle" } else { "running" };
                self.frame(&format!(
                    r#"{{"type":"system","subtype":"session_state_changed","state":"{state}"}}"#
                ));
            }
            9 => drop(self.step(Input::InterruptRefused { turn: Some(turn) })),
            10 => drop(self.step(Input::Confirm { turn })),
            11 => {
                let id = format!("r{}", self.requests);
                self.requests += 1;
                if self.step(Input::Request {
                    id: &id,
                    subtype: "x",
                }) {
                    self.waiting.insert(id);
                }
            }
            12 if b.is_multiple_of(2) => {
                let id = format!("r{a}");
                self.step(Input::Forget { id: &id });
                self.waiting.remove(&id);
            }
            12 => self.frame(&format!(
                r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"r{a}"}}}}"#
            )),
            13 | 14 => self.frame(&format!(
                r#"{{"type":"control_request","request_id":"q{}","request":{{"subtype":"can_use_tool"}}}}"#,
                a % 4
            )),
            15 => self.frame(&format!(
                r#"{{"type":"control_cancel_request","request_id":"q{}"}}"#,
                a % 4
            )),
            16 | 17 => self.decide(a % 16, b),
            18 => {
                let states = ["queued", "started", "completed", "cancelled", "discarded"];
                let state = states[usize::from(b) % states.len()];
                self.frame(&format!(
                    r#"{{"type":"command_lifecycle","command_uuid":"{prompt}","state":"{state}"}}"#
                ));
            }
            19 if b.is_multiple_of(3) => {
                self.frame(r#"{"type":"system","subtype":"init","capabilities":["msg_lifecycle_v1"]}"#);
            }
            19 => self.frame(r#"{"type":"system","subtype":"init"}"#),
            20 if b.is_multiple_of(4) => self.frame(r#"{"type":"system","subtype":"status"}"#),
            20 if b % 4 == 1 => self.frame(r#"{"type":"user","parent_tool_use_id":null}"#),
            20 => self.frame(r#"{"type":"assistant","parent_tool_use_id":null}"#),
            21 if b.is_multiple_of(3) => self.frame(&format!("{{{done}}}")),
            21 => self.frame(&format!(r#"{{{done},"user_message_uuids":["{prompt}"]}}"#)),
            22 => self.frame(&format!(r#"{{{done},"origin":{{"kind":"task-notification"}}}}"#)),
            _ => {
                self.now += Duration::from_secs(u64::from(a % 4));
                let due = self.core.due().filter(|(at, _)| *at <= self.now);
                assert_eq!(self.core.poll_stall(self.now).is_some(), due.is_some());
            }
        }
        self.check();
    }

    fn check(&self) {
        let stats = self.core.stats();
        let open = self.prompts.values().filter(|ended| !**ended).count();
        assert_eq!(stats.open_prompts, open);
        assert_eq!(stats.unanswered_by_cli, self.waiting.len());
        let request = self.cli_requests.values();
        let closed = request
            .filter(|request| matches!(request, CliRequestState::Closed(_)))
            .count();
        assert_eq!(stats.unanswered_by_us, self.cli_requests.len() - closed);
        let run = self.core.run(self.now);
        let nothing_waits = open == 0 && closed == self.cli_requests.len();
        assert!(nothing_waits || !(run.is_over || run.is_quiet));
        if let (Some((at, stall)), Some(since)) = (self.core.due(), self.busy_since) {
            assert!(at >= since + stall.after, "{stall:?} counts from before the turn");
        }
    }
}

impl CliRequestState {
    fn serial(self) -> Serial {
        let (Self::Open(serial) | Self::Claimed(serial) | Self::Closed(serial)) = self;
        serial
    }
}

/// Each prompt ends once, and nothing is delivered to it afterwards. Each SDK request gets one reply. Each CLI request is answered once,
/// and never after it was withdrawn. What callers wait for is announced. No deadline counts from before there was something to do.
/// Nothing comes after the end, which leaves nothing open.
///
/// The first byte is the number of steps after the end; each step is three bytes.
pub fn run(data: &[u8]) {
    let Some((late, steps)) = data.split_first() else {
        return;
    };
    let steps: Vec<_> = steps
        .chunks_exact(3)
        .map(|step| (step[0], step[1], step[2]))
        .collect();
    let late = steps.len().saturating_sub(usize::from(*late % 20));
    let mut case = CoreCase::new();
    for step in &steps[..late] {
        case.act(*step);
    }
    case.step(Input::End(&Error::new(Kind::Closed)));
    assert!(case.prompts.values().all(|ended| *ended));
    assert!(case.waiting.is_empty());
    let mut requests = case.cli_requests.values();
    assert!(requests.all(|request| matches!(request, CliRequestState::Closed(_))));
    for step in &steps[late..] {
        case.act(*step);
    }
}

#[cfg(test)]
proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig {
        failure_persistence: None,
        ..proptest::prelude::ProptestConfig::default()
    })]

    #[test]
    fn everything_ends_once(data in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..900)) {
        run(&data);
    }
}

#[test]
fn the_result_of_another_turn_leaves_the_clocks_of_the_running_one_alone() {
    let mut case = CoreCase::new();
    let start = case.now;
    case.prompt("p0", Dispatch::Alone);
    case.send();
    case.frame(r#"{"type":"command_lifecycle","command_uuid":"p0","state":"started"}"#);
    case.frame(r#"{"type":"system","subtype":"init"}"#);
    case.now += Duration::from_secs(15);
    case.frame(r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"origin":{"kind":"task-notification"}}"#);
    case.now += Duration::from_secs(4);
    case.frame(r#"{"type":"assistant","parent_tool_use_id":null}"#);
    assert_eq!(case.core.current_turn(), Some(1));
    let due = case.core.due().map(|(at, stall)| (at - start, stall.phase));
    assert_eq!(due, Some((Duration::from_secs(20), crate::phase::Phase::Turn)));
}

/// The time of requests does not count, and the time before them does.
#[test]
fn requests_stop_the_clocks_and_do_not_set_them_back() {
    let seconds = Duration::from_secs;
    let mut case = CoreCase::new();
    let start = case.now;
    case.frame(r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1}"#);
    for number in 0..3 {
        case.now += seconds(100);
        case.frame(&format!(
            r#"{{"type":"control_request","request_id":"q{number}","request":{{"subtype":"hook_callback"}}}}"#
        ));
        case.now += seconds(7);
        case.decide(number, 0);
        case.decide(number, 2);
    }
    let state =
        |state: &str| format!(r#"{{"type":"system","subtype":"session_state_changed","state":"{state}"}}"#);
    case.frame(&state("requires_action"));
    case.now += seconds(1000);
    case.frame(&state("running"));
    let quiet_since = case.core.run(case.now).quiet_since;
    assert_eq!(quiet_since, Some(start + seconds(1021)));

    let start = case.now;
    case.prompt("p0", Dispatch::Alone);
    case.send();
    case.frame(r#"{"type":"system","subtype":"init"}"#);
    case.now += seconds(1);
    case.frame(r#"{"type":"control_request","request_id":"q","request":{"subtype":"hook_callback"}}"#);
    case.now += seconds(10);
    case.decide(3, 0);
    case.now += seconds(1);
    case.frame(r#"{"type":"control_cancel_request","request_id":"another"}"#);
    let due = case.core.due().map(|(at, stall)| (at - start, stall.phase));
    assert_eq!(due, Some((seconds(13), crate::phase::Phase::FirstToken)));
}

#[test]
fn a_request_whose_id_is_a_number_is_withdrawn() {
    let mut case = CoreCase::new();
    case.frame(r#"{"type":"control_request","request_id":7,"request":{"subtype":"can_use_tool"}}"#);
    assert!(matches!(case.cli_requests[&0], CliRequestState::Open(_)));
    case.frame(r#"{"type":"control_cancel_request","request_id":7}"#);
    assert!(matches!(case.cli_requests[&0], CliRequestState::Closed(_)));
}
