//! What a session does next: a state machine without I/O and without a clock.
//!
//! [`transition`] gets the state and what happened, and returns the state and what to do. Effects that write come before effects that
//! act, so that the caller can commit the former in one transaction before it does the latter.

use std::collections::{BTreeSet, VecDeque};

use uuid::Uuid;

use crate::event::{Delivery, SessionState};

/// Where the process of a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Process {
    #[default]
    Absent,
    Starting,
    Up,
    /// The process was told to end.
    Closing,
}

/// Whether a turn may begin, as far as the limits that all sessions share are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Admission {
    /// Nobody has asked.
    #[default]
    None,
    Waiting,
    Granted,
}

/// A call that outlives its process while it waits for a decision. A turn is open as long as there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum WaitingCall {
    #[default]
    None,
    /// Nobody has decided.
    Waits,
    /// There is a decision, and no process was started for it.
    Decided,
    /// A process was started for the decision, and has not asked about the call.
    Offered,
}

/// What the host knows of a session that lives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LiveState {
    pub(crate) process: Process,
    /// Prompts that no process has got, in the order of the log.
    pub(crate) queue: VecDeque<Uuid>,
    /// The prompt whose turn runs.
    pub(crate) running: Option<Uuid>,
    /// The call that waits.
    pub(crate) call: WaitingCall,
    /// Whether the process goes on with a turn of an earlier process, whose call was decided.
    pub(crate) taken_up: bool,
    /// Whether the next turn may begin: that of the call that was decided, or of the first prompt of the queue.
    pub(crate) admission: Admission,
    /// Whether the process is at work, for a prompt or in the background: a turn runs, or an agent whose end will begin one.
    pub(crate) works: bool,
    /// Whether the process is to be replaced as soon as it is not at work.
    pub(crate) retire: bool,
    /// Requests of the CLI that wait for a person.
    pub(crate) open: BTreeSet<String>,
}

impl LiveState {
    /// Whether a turn runs, or is about to begin. One whose call waits for a decision does not. What goes on in the background counts: it will begin one.
    pub(crate) fn has_turn(&self) -> bool {
        self.admission == Admission::Granted
            || self.works
            || self.taken_up
            || self.call == WaitingCall::Offered
            || (self.running.is_some() && self.call == WaitingCall::None)
    }

    /// Whether a turn is open, so that no prompt may begin.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.is_some() || self.taken_up || self.call != WaitingCall::None
    }
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// The host has read its log after a start. Any process of before is gone.
    Recovered {
        /// Whether the session was in the middle of something.
        was_busy: bool,
        /// The call that waits: decided or not.
        call: WaitingCall,
    },
    /// A prompt is durable.
    Accepted(Uuid),
    /// A client wants a process, without a prompt.
    Wanted,
    Started,
    StartFailed,
    /// The CLI asks.
    Asked(String),
    /// A person, or nobody any more, answers this request.
    Closed(String),
    TurnEnded {
        /// Whether the call that waits was left open, so that another process can take it up.
        deferred: bool,
    },
    /// Whether the process is at work.
    Works(bool),
    Exited,
    /// The host closes, and the process has ended. The next host goes on.
    HostCloses,
    /// A call waits for a decision, and is about to be left open.
    Deferred,
    /// The decision about the call that waits is durable.
    Decided,
    /// The process that was started for the decision asks about the call.
    TakenUp,
    /// The call will not be carried out, for this reason.
    Dropped(&'static str),
    /// The turn that was asked for may begin.
    Admitted,
    /// The turn that was asked for may not begin.
    Refused,
    /// The process must not have another turn.
    Retire,
    /// The process is not needed for now: it is idle, or another session needs its place.
    Release,
    /// The session was archived: no prompt begins any more.
    Archived,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CoreEffect {
    /// Writes how far a prompt got.
    Mark(Uuid, Delivery),
    /// Writes that no pending approval of this session can be decided any more.
    Supersede,
    /// Writes the state.
    Enter(SessionState),
    /// Asks whether a turn may begin.
    Admit,
    /// Gives up what was granted.
    Yield,
    /// Writes that the decision about the call is applied.
    Apply,
    /// Writes that nobody can decide about the call any more, or that its decision is never applied.
    GiveUp(&'static str),
    /// Starts a process.
    Start,
    /// Gives the prompt to the process.
    Deliver(Uuid),
    /// Waits for the process to ask about the call.
    TakeUp,
    /// Ends the process.
    Close,
}

/// The next state, and what to do.
pub(crate) fn transition(mut state: LiveState, input: Input) -> (LiveState, Vec<CoreEffect>) {
    let mut effects = Vec::new();
    match input {
        Input::Recovered { was_busy, call } => {
            state.process = Process::Absent;
            state.taken_up = false;
            state.call = call;
            end_process(&mut state, was_busy, &mut effects);
        }
        Input::Accepted(id) => {
            if state.running != Some(id) && !state.queue.contains(&id) {
                state.queue.push_back(id);
            }
        }
        // A process would take up the call that waits.
        Input::Wanted if state.call == WaitingCall::None => start(&mut state, &mut effects),
        Input::Started if state.process == Process::Starting => {
            state.process = Process::Up;
            if state.call == WaitingCall::Decided {
                state.call = WaitingCall::Offered;
                state.admission = Admission::None;
                effects.push(CoreEffect::Enter(SessionState::Running));
                effects.push(CoreEffect::TakeUp);
            } else if state.queue.is_empty() {
                effects.push(CoreEffect::Enter(SessionState::Idle));
            }
        }
        Input::StartFailed if state.process == Process::Starting => {
            state.process = Process::Absent;
            give_up(&mut state, &mut effects);
            effects.push(CoreEffect::Enter(SessionState::Failed));
            return (state, effects);
        }
        Input::Asked(request) if state.process == Process::Up => {
            if state.open.insert(request) && state.open.len() == 1 {
                effects.push(CoreEffect::Enter(SessionState::RequiresAction));
            }
        }
        Input::Closed(request) => {
            if state.open.remove(&request) && state.open.is_empty() {
                effects.push(CoreEffect::Enter(match state.call {
                    WaitingCall::Waits => SessionState::RequiresAction,
                    _ if state.is_busy() => SessionState::Running,
                    _ => SessionState::Idle,
                }));
            }
        }
        Input::Deferred if state.process == Process::Up && state.call == WaitingCall::None => {
            state.call = WaitingCall::Waits;
            effects.push(CoreEffect::Enter(SessionState::RequiresAction));
        }
        Input::Decided if state.call == WaitingCall::Waits => {
            state.call = WaitingCall::Decided;
            if state.open.is_empty() {
                effects.push(CoreEffect::Enter(SessionState::Running));
            }
        }
        Input::TakenUp if state.call == WaitingCall::Offered && state.process == Process::Up => {
            state.call = WaitingCall::None;
            state.taken_up = true;
            effects.push(CoreEffect::Apply);
        }
        Input::Dropped(why) if state.call != WaitingCall::None => {
            // The turn goes on without the call, if its process is there.
            let goes_on = state.process == Process::Up && state.call != WaitingCall::Offered;
            drop_call(&mut state, why, &mut effects);
            if !goes_on {
                lose_turn(&mut state, true, &mut effects);
            }
        }
        Input::TurnEnded { deferred } => {
            if deferred && state.call != WaitingCall::None {
                // This process cannot go on with the call: only one that resumes the session is asked about it again.
                state.taken_up = false;
                if state.process == Process::Up {
                    state.process = Process::Closing;
                    effects.push(CoreEffect::Close);
                }
            } else {
                let had_call = state.call != WaitingCall::None;
                drop_call(&mut state, "the turn ended without the call", &mut effects);
                let was_taken_up = std::mem::take(&mut state.taken_up);
                let ended = state.running.take();
                effects.extend(ended.map(|id| CoreEffect::Mark(id, Delivery::Processed)));
                if ended.is_some() || was_taken_up || had_call {
                    effects.push(CoreEffect::Enter(SessionState::Idle));
                }
            }
        }
        Input::Exited => {
            let was_starting = state.process == Process::Starting;
            state.process = Process::Absent;
            if state.call == WaitingCall::Offered {
                drop_call(
                    &mut state,
                    "the process ended before it asked about the call",
                    &mut effects,
                );
            }
            end_process(&mut state, true, &mut effects);
            state.retire = false;
            if was_starting {
                give_up(&mut state, &mut effects);
                effects.push(CoreEffect::Enter(SessionState::Failed));
                return (state, effects);
            }
        }
        Input::HostCloses => {
            state.process = Process::Absent;
            if state.call == WaitingCall::Offered {
                state.call = WaitingCall::Decided;
            }
            end_process(&mut state, true, &mut effects);
            return (state, effects);
        }
        Input::Admitted => {
            if state.admission == Admission::Waiting {
                state.admission = Admission::Granted;
            }
        }
        Input::Refused => {
            if state.admission == Admission::Waiting {
                state.admission = Admission::None;
                effects.push(CoreEffect::Enter(SessionState::Failed));
                return (state, effects);
            }
        }
        Input::Works(works) => state.works = works && state.process == Process::Up,
        Input::Retire => state.retire = state.process == Process::Up,
        Input::Release => {
            if state.process == Process::Up
                && !state.works
                && !state.is_busy()
                && state.queue.is_empty()
                && state.open.is_empty()
            {
                state.process = Process::Closing;
                effects.push(CoreEffect::Close);
            }
        }
        Input::Archived => state.queue.clear(),
        Input::Wanted
        | Input::Started
        | Input::StartFailed
        | Input::Asked(_)
        | Input::Deferred
        | Input::Decided
        | Input::TakenUp
        | Input::Dropped(_) => {}
    }
    retire(&mut state, &mut effects);
    go_on(&mut state, &mut effects);
    (state, effects)
}

/// There is no process any more. Of its turn a call may be left.
fn end_process(state: &mut LiveState, was_busy: bool, effects: &mut Vec<CoreEffect>) {
    state.works = false;
    if state.call == WaitingCall::None {
        lose_turn(state, was_busy, effects);
        return;
    }
    state.open.clear();
    state.taken_up = false;
    effects.push(CoreEffect::Supersede);
    effects.push(CoreEffect::Enter(match state.call {
        WaitingCall::Waits => SessionState::RequiresAction,
        _ => SessionState::Running,
    }));
}

/// No process knows of the turn and of the questions any more.
fn lose_turn(state: &mut LiveState, was_busy: bool, effects: &mut Vec<CoreEffect>) {
    state.open.clear();
    effects.push(CoreEffect::Supersede);
    let was_taken_up = std::mem::take(&mut state.taken_up);
    if let Some(id) = state.running.take() {
        effects.push(CoreEffect::Mark(id, Delivery::Interrupted));
        effects.push(CoreEffect::Enter(SessionState::Interrupted));
    } else if was_taken_up {
        effects.push(CoreEffect::Enter(SessionState::Interrupted));
    } else if was_busy {
        effects.push(CoreEffect::Enter(SessionState::Idle));
    }
}

/// The call is never carried out.
fn drop_call(state: &mut LiveState, why: &'static str, effects: &mut Vec<CoreEffect>) {
    if std::mem::take(&mut state.call) != WaitingCall::None {
        effects.push(CoreEffect::GiveUp(why));
    }
}

fn start(state: &mut LiveState, effects: &mut Vec<CoreEffect>) {
    if state.process == Process::Absent {
        state.process = Process::Starting;
        effects.push(CoreEffect::Enter(SessionState::Starting));
        effects.push(CoreEffect::Start);
    }
}

/// What was granted is for a turn that does not begin now.
fn give_up(state: &mut LiveState, effects: &mut Vec<CoreEffect>) {
    if std::mem::take(&mut state.admission) != Admission::None {
        effects.push(CoreEffect::Yield);
    }
}

fn retire(state: &mut LiveState, effects: &mut Vec<CoreEffect>) {
    if state.retire
        && state.process == Process::Up
        && !state.works
        && !state.is_busy()
        && state.open.is_empty()
    {
        state.retire = false;
        state.process = Process::Closing;
        effects.push(CoreEffect::Close);
    }
}

/// The call that was decided, or the next prompt, if there is one and no turn is open.
fn go_on(state: &mut LiveState, effects: &mut Vec<CoreEffect>) {
    let has_next = match state.call {
        // The process in which the call was made has to end first.
        WaitingCall::Decided => state.process != Process::Up,
        // A process that is to be replaced gets no other turn.
        _ => !(state.is_busy() || state.queue.is_empty() || state.retire && state.works),
    };
    if !has_next {
        give_up(state, effects);
        return;
    }
    match state.admission {
        Admission::None => {
            state.admission = Admission::Waiting;
            effects.push(CoreEffect::Admit);
            return;
        }
        Admission::Waiting => return,
        Admission::Granted => {}
    }
    match state.process {
        Process::Absent => start(state, effects),
        Process::Up => {
            if let Some(id) = state.queue.pop_front() {
                state.running = Some(id);
                state.admission = Admission::None;
                effects.push(CoreEffect::Mark(id, Delivery::Processing));
                effects.push(CoreEffect::Enter(SessionState::Running));
                effects.push(CoreEffect::Deliver(id));
            }
        }
        Process::Starting | Process::Closing => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn inputs() -> impl Strategy<Value = Vec<(u8, u8)>> {
        proptest::collection::vec((0..18u8, 0..6u8), 0..60)
    }

    fn input(kind: u8, of: u8) -> Input {
        match kind {
            0 => Input::Recovered {
                was_busy: of.is_multiple_of(2),
                call: match of / 2 {
                    0 => WaitingCall::None,
                    1 => WaitingCall::Waits,
                    _ => WaitingCall::Decided,
                },
            },
            1 => Input::Accepted(Uuid::from_u128(of.into())),
            2 => Input::Started,
            3 => Input::StartFailed,
            4 => Input::Asked(of.to_string()),
            5 => Input::Closed(of.to_string()),
            6 => Input::TurnEnded {
                deferred: of.is_multiple_of(2),
            },
            7 => Input::Exited,
            8 => Input::Wanted,
            9 => Input::Admitted,
            10 => Input::Refused,
            11 => Input::Retire,
            12 => Input::Release,
            13 => Input::Deferred,
            14 => Input::Decided,
            15 => Input::TakenUp,
            16 => Input::Works(of.is_multiple_of(2)),
            _ => Input::Dropped("why"),
        }
    }

    proptest! {
        #[test]
        fn no_prompt_is_given_out_twice_and_none_is_forgotten(steps in inputs()) {
            let mut state = LiveState::default();
            let mut accepted = BTreeSet::new();
            let mut marks: BTreeMap<Uuid, Vec<Delivery>> = BTreeMap::new();
            let mut granted = false;
            let mut decisions = 0;
            for (kind, of) in steps {
                let input = input(kind, of);
                if let Input::Accepted(id) = input
                    && !accepted.insert(id)
                {
                    // The log refuses an id that it has.
                    continue;
                }
                let (had_process, had_call) = (state.process, state.call);
                match (&input, had_call) {
                    (Input::Decided, WaitingCall::Waits) => decisions += 1,
                    // The log has one that was not applied.
                    (Input::Recovered { call: WaitingCall::Decided, .. }, _) => decisions += 1,
                    _ => {}
                }
                let is_recovery = matches!(input, Input::Recovered { .. });
                let is_retired = matches!(input, Input::Retire) && state.process == Process::Up;
                if matches!(input, Input::Admitted) && state.admission == Admission::Waiting {
                    prop_assert!(!granted);
                    granted = true;
                }
                let (next, effects) = transition(state, input);
                for (at, effect) in effects.iter().enumerate() {
                    match effect {
                        CoreEffect::Mark(id, delivery) => marks.entry(*id).or_default().push(*delivery),
                        CoreEffect::Admit => prop_assert!(!granted && (next.call == WaitingCall::Decided || !next.is_busy())),
                        CoreEffect::Yield => granted = false,
                        CoreEffect::Deliver(id) => {
                            prop_assert!(std::mem::take(&mut granted), "one turn for each admission");
                            prop_assert_eq!(next.process, Process::Up);
                            prop_assert!(effects[..at].contains(&CoreEffect::Mark(*id, Delivery::Processing)), "written first");
                        }
                        CoreEffect::Start => prop_assert!(next.process == Process::Starting),
                        CoreEffect::Close => prop_assert!(had_process == Process::Up || had_process == Process::Starting),
                        CoreEffect::TakeUp => {
                            prop_assert!(std::mem::take(&mut granted), "one turn for each admission");
                            prop_assert_eq!((next.process, next.call), (Process::Up, WaitingCall::Offered));
                        }
                        CoreEffect::Apply => {
                            prop_assert_eq!((had_call, next.process), (WaitingCall::Offered, Process::Up));
                            prop_assert!(decisions > 0, "nothing is applied that nobody decided, or twice");
                            decisions = 0;
                        }
                        CoreEffect::GiveUp(_) => decisions = 0,
                        CoreEffect::Supersede | CoreEffect::Enter(_) => {}
                    }
                }
                let settled = effects.iter().any(|effect| matches!(effect, CoreEffect::Apply | CoreEffect::GiveUp(_)));
                prop_assert!(had_call == WaitingCall::None || next.call != WaitingCall::None || settled || is_recovery, "no call is forgotten");
                if is_retired && !next.works && !next.is_busy() && next.open.is_empty() {
                    prop_assert!(effects.contains(&CoreEffect::Close));
                }
                state = next;
                prop_assert_eq!(granted, state.admission == Admission::Granted);
                let has_process = state.process == Process::Up || state.process == Process::Closing;
                prop_assert!(has_process || state.call != WaitingCall::None || !state.is_busy());
                prop_assert!(state.call != WaitingCall::Offered || has_process);
            }
            for marks in marks.values() {
                prop_assert_eq!(marks[0], Delivery::Processing);
                prop_assert!(marks.len() <= 2);
            }
            for id in accepted {
                let waits = state.queue.contains(&id);
                prop_assert_eq!(waits, !marks.contains_key(&id), "a prompt waits or was given out, never both");
            }
        }

        #[test]
        fn prompts_that_wait_have_a_process_or_one_is_on_its_way(steps in inputs()) {
            let mut state = LiveState::default();
            for (kind, of) in steps {
                // A start that failed waits for the next prompt, on purpose.
                let failed = kind == 3 || kind == 7 || kind == 10;
                state = transition(state, input(kind, of)).0;
                let has_next = match state.call {
                    WaitingCall::Decided => state.process != Process::Up,
                    _ => !(state.is_busy() || state.queue.is_empty() || state.retire && state.works),
                };
                if !failed && has_next {
                    let is_on_its_way = [Process::Starting, Process::Closing].contains(&state.process);
                    prop_assert!(is_on_its_way || state.admission == Admission::Waiting);
                }
            }
        }
    }
}
