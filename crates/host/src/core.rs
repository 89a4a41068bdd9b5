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
    /// It was told to end.
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

/// What the host knows of a session that lives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) process: Process,
    /// Prompts that no process has got, in the order of the log.
    pub(crate) queue: VecDeque<Uuid>,
    /// The prompt whose turn runs.
    pub(crate) running: Option<Uuid>,
    /// Whether the first prompt of the queue may begin.
    pub(crate) admission: Admission,
    /// Whether the process is to be replaced as soon as no turn runs.
    pub(crate) retire: bool,
    /// Requests of the CLI that wait for a person.
    pub(crate) open: BTreeSet<String>,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// The host has read its log after a start. Any process of before is gone.
    Recovered {
        /// Whether the session was in the middle of something.
        was_busy: bool,
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
    TurnEnded,
    Exited,
    /// The turn that was asked for may begin.
    Admitted,
    /// The turn that was asked for may not begin.
    Refused,
    /// The process must not have another turn.
    Retire,
    /// The process is not needed for now: it is idle, or another session needs its place.
    Release,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
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
    /// Starts a process.
    Start,
    /// Gives the prompt to the process.
    Deliver(Uuid),
    /// Ends the process.
    Close,
}

/// The next state, and what to do.
pub(crate) fn transition(mut state: State, input: Input) -> (State, Vec<Effect>) {
    let mut effects = Vec::new();
    match input {
        Input::Recovered { was_busy } => {
            state.process = Process::Absent;
            lose_turn(&mut state, was_busy, &mut effects);
        }
        Input::Accepted(id) => {
            if state.running != Some(id) && !state.queue.contains(&id) {
                state.queue.push_back(id);
            }
        }
        Input::Wanted => start(&mut state, &mut effects),
        Input::Started if state.process == Process::Starting => {
            state.process = Process::Up;
            if state.queue.is_empty() {
                effects.push(Effect::Enter(SessionState::Idle));
            }
        }
        Input::StartFailed if state.process == Process::Starting => {
            state.process = Process::Absent;
            give_up(&mut state, &mut effects);
            effects.push(Effect::Enter(SessionState::Failed));
            return (state, effects);
        }
        Input::Asked(request) if state.process == Process::Up => {
            if state.open.insert(request) && state.open.len() == 1 {
                effects.push(Effect::Enter(SessionState::RequiresAction));
            }
        }
        Input::Closed(request) => {
            if state.open.remove(&request) && state.open.is_empty() {
                effects.push(Effect::Enter(if state.running.is_some() {
                    SessionState::Running
                } else {
                    SessionState::Idle
                }));
            }
        }
        Input::TurnEnded => {
            if let Some(id) = state.running.take() {
                effects.push(Effect::Mark(id, Delivery::Processed));
                effects.push(Effect::Enter(SessionState::Idle));
            }
        }
        Input::Exited => {
            let was_starting = state.process == Process::Starting;
            state.process = Process::Absent;
            lose_turn(&mut state, true, &mut effects);
            state.retire = false;
            if was_starting {
                give_up(&mut state, &mut effects);
                effects.push(Effect::Enter(SessionState::Failed));
                return (state, effects);
            }
        }
        Input::Admitted => {
            if state.admission == Admission::Waiting {
                state.admission = Admission::Granted;
            }
        }
        Input::Refused => {
            if state.admission == Admission::Waiting {
                state.admission = Admission::None;
                effects.push(Effect::Enter(SessionState::Failed));
                return (state, effects);
            }
        }
        Input::Retire => state.retire = state.process == Process::Up,
        Input::Release => {
            if state.process == Process::Up
                && state.running.is_none()
                && state.queue.is_empty()
                && state.open.is_empty()
            {
                state.process = Process::Closing;
                effects.push(Effect::Close);
            }
        }
        Input::Started | Input::StartFailed | Input::Asked(_) => {}
    }
    retire(&mut state, &mut effects);
    go_on(&mut state, &mut effects);
    (state, effects)
}

/// No process knows of the turn and of the questions any more.
fn lose_turn(state: &mut State, was_busy: bool, effects: &mut Vec<Effect>) {
    state.open.clear();
    effects.push(Effect::Supersede);
    if let Some(id) = state.running.take() {
        effects.push(Effect::Mark(id, Delivery::Interrupted));
        effects.push(Effect::Enter(SessionState::Interrupted));
    } else if was_busy {
        effects.push(Effect::Enter(SessionState::Idle));
    }
}

fn start(state: &mut State, effects: &mut Vec<Effect>) {
    if state.process == Process::Absent {
        state.process = Process::Starting;
        effects.push(Effect::Enter(SessionState::Starting));
        effects.push(Effect::Start);
    }
}

/// What was granted is for a turn that does not begin now.
fn give_up(state: &mut State, effects: &mut Vec<Effect>) {
    if std::mem::take(&mut state.admission) != Admission::None {
        effects.push(Effect::Yield);
    }
}

fn retire(state: &mut State, effects: &mut Vec<Effect>) {
    if state.retire && state.process == Process::Up && state.running.is_none() && state.open.is_empty() {
        state.retire = false;
        state.process = Process::Closing;
        effects.push(Effect::Close);
    }
}

/// The next prompt, if there is one and none runs.
fn go_on(state: &mut State, effects: &mut Vec<Effect>) {
    if state.queue.is_empty() {
        give_up(state, effects);
        return;
    }
    if state.running.is_some() {
        return;
    }
    match state.admission {
        Admission::None => {
            state.admission = Admission::Waiting;
            effects.push(Effect::Admit);
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
                effects.push(Effect::Mark(id, Delivery::Processing));
                effects.push(Effect::Enter(SessionState::Running));
                effects.push(Effect::Deliver(id));
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
        proptest::collection::vec((0..13u8, 0..6u8), 0..60)
    }

    fn input(kind: u8, of: u8) -> Input {
        match kind {
            0 => Input::Recovered {
                was_busy: of.is_multiple_of(2),
            },
            1 => Input::Accepted(Uuid::from_u128(of.into())),
            2 => Input::Started,
            3 => Input::StartFailed,
            4 => Input::Asked(of.to_string()),
            5 => Input::Closed(of.to_string()),
            6 => Input::TurnEnded,
            7 => Input::Exited,
            8 => Input::Wanted,
            9 => Input::Admitted,
            10 => Input::Refused,
            11 => Input::Retire,
            _ => Input::Release,
        }
    }

    proptest! {
        #[test]
        fn no_prompt_is_given_out_twice_and_none_is_forgotten(steps in inputs()) {
            let mut state = State::default();
            let mut accepted = BTreeSet::new();
            let mut marks: BTreeMap<Uuid, Vec<Delivery>> = BTreeMap::new();
            let mut granted = false;
            for (kind, of) in steps {
                let input = input(kind, of);
                if let Input::Accepted(id) = input
                    && !accepted.insert(id)
                {
                    // The log refuses an id that it has.
                    continue;
                }
                let had_process = state.process;
                let is_retired = matches!(input, Input::Retire) && state.process == Process::Up;
                if matches!(input, Input::Admitted) && state.admission == Admission::Waiting {
                    prop_assert!(!granted);
                    granted = true;
                }
                let (next, effects) = transition(state, input);
                for (at, effect) in effects.iter().enumerate() {
                    match effect {
                        Effect::Mark(id, delivery) => marks.entry(*id).or_default().push(*delivery),
                        Effect::Admit => prop_assert!(!granted && next.running.is_none()),
                        Effect::Yield => granted = false,
                        Effect::Deliver(id) => {
                            prop_assert!(std::mem::take(&mut granted), "one turn for each admission");
                            prop_assert_eq!(next.process, Process::Up);
                            prop_assert!(effects[..at].contains(&Effect::Mark(*id, Delivery::Processing)), "written first");
                        }
                        Effect::Start => prop_assert!(next.process == Process::Starting),
                        Effect::Close => prop_assert!(had_process == Process::Up || had_process == Process::Starting),
                        Effect::Supersede | Effect::Enter(_) => {}
                    }
                }
                if is_retired && next.running.is_none() && next.open.is_empty() {
                    prop_assert!(effects.contains(&Effect::Close));
                }
                state = next;
                prop_assert_eq!(granted, state.admission == Admission::Granted);
                prop_assert!(state.running.is_none() || state.process == Process::Up || state.process == Process::Closing);
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
            let mut state = State::default();
            for (kind, of) in steps {
                // A start that failed waits for the next prompt, on purpose.
                let failed = kind == 3 || kind == 7 || kind == 10;
                state = transition(state, input(kind, of)).0;
                if !failed && !state.queue.is_empty() && state.running.is_none() {
                    let is_on_its_way = [Process::Starting, Process::Closing].contains(&state.process);
                    prop_assert!(is_on_its_way || state.admission == Admission::Waiting);
                }
            }
        }
    }
}
