//! The state of a gate that several processes share, as their store keeps it. A state machine without I/O: times are those of the
//! store's clock.
//!
//! A process does not say what has changed: it says who waits and who runs, and the state is brought in line with that. So nothing is
//! wrong when it says the same twice, which it has to after a lost reply.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::gate_core::{GateCore, PassId, Waiter, WaiterId};
use super::limits::GateLimits;

/// The form of the state. Another one is refused.
const FORM: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SharedCore {
    form: u32,
    pub(super) core: GateCore,
    members: BTreeMap<String, Member>,
}

/// A process.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Member {
    /// When the process's lease ends.
    until: Duration,
    waiting: BTreeMap<u64, WaiterId>,
    running: BTreeMap<u64, PassId>,
}

/// Who waits and who runs in one process, by its own numbers, and what it has learned since it last said so.
#[derive(Debug, Clone, Default)]
pub(super) struct Presence {
    /// Who waits, and for how long.
    pub(super) waiting: BTreeMap<u64, (Waiter, Duration)>,
    /// Who runs, with the model.
    pub(super) running: BTreeMap<u64, Option<String>>,
    /// Somebody has opened the gate.
    pub(super) opened: bool,
    /// Turns whose request the API answered, also if they have ended since. Before the refusal, if there is one.
    pub(super) answered: BTreeSet<u64>,
    /// The API refused a request; and for how long, if it said so.
    pub(super) limited: Option<Option<Duration>>,
}

/// What one process learns from a sync.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Synced {
    /// Who waited, and runs now.
    pub(super) admitted: Vec<u64>,
    /// Who wanted to wait when too many did.
    pub(super) refused: Vec<u64>,
}

impl SharedCore {
    /// What the store has; or an open gate, if it has nothing.
    pub(super) fn read(text: &str, limits: &GateLimits) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self {
                form: FORM,
                core: GateCore::new(limits.clone()),
                members: BTreeMap::new(),
            });
        }
        let mut state: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if state.form != FORM {
            let form = state.form;
            return Err(format!("its form is {form}, and this program knows {FORM}"));
        }
        state.core.set_limits(limits.clone());
        Ok(state)
    }

    pub(super) fn text(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }

    /// Brings the state in line with a process, and admits whoever may begin in any process.
    pub(super) fn sync(
        &mut self,
        now: Duration,
        process: &str,
        lease: Duration,
        presence: &Presence,
        jitter: f64,
    ) -> Synced {
        let mut synced = Synced::default();
        self.expire(now, process);
        let mut me = self.members.remove(process).unwrap_or_default();
        let core = &mut self.core;
        // First of all: a turn that was answered may have ended since.
        if presence.opened {
            core.open();
        }
        for number in &presence.answered {
            if let Some(id) = me.running.get(number) {
                core.answered(*id);
            }
        }
        me.waiting.retain(|number, id| {
            let stays = presence.waiting.contains_key(number);
            if !stays {
                core.withdraw(*id);
            }
            stays
        });
        me.running.retain(|number, id| {
            // Whoever was admitted by another process waits, as far as this one knows.
            let stays = presence.running.contains_key(number) || presence.waiting.contains_key(number);
            if !stays {
                core.leave(*id);
            }
            stays
        });
        for (number, model) in &presence.running {
            // The lease had run out. What runs has a place, whether there is one or not.
            me.running
                .entry(*number)
                .or_insert_with(|| core.rejoin(model.clone()));
        }
        for (number, (waiter, waited)) in &presence.waiting {
            if me.waiting.contains_key(number) || me.running.contains_key(number) {
                continue;
            }
            match core.arrive(now.saturating_sub(*waited), waiter.clone()) {
                Some(id) => {
                    me.waiting.insert(*number, id);
                }
                None => synced.refused.push(*number),
            }
        }
        if let Some(wait) = presence.limited {
            core.limited(now, wait, jitter);
        }
        if me.until < now.saturating_add(lease * 2 / 3) {
            me.until = now.saturating_add(lease);
        }
        self.members.insert(process.to_owned(), me);
        while let Some((waiter, pass)) = self.core.admit(now) {
            for member in self.members.values_mut() {
                let number = member.waiting.iter().find(|(_, id)| **id == waiter);
                if let Some((&number, _)) = number {
                    member.waiting.remove(&number);
                    member.running.insert(number, pass);
                    break;
                }
            }
        }
        if let Some(me) = self.members.get(process) {
            let admitted = me.running.keys().copied();
            synced.admitted = admitted
                .filter(|number| presence.waiting.contains_key(number))
                .collect();
            if me.waiting.is_empty() && me.running.is_empty() {
                self.members.remove(process);
            }
        }
        synced
    }

    /// Frees the places of processes whose lease has ended.
    fn expire(&mut self, now: Duration, but: &str) {
        let core = &mut self.core;
        self.members.retain(|process, member| {
            let stays = member.until > now || process == but;
            if !stays {
                member.waiting.values().for_each(|id| core.withdraw(*id));
                member.running.values().for_each(|id| core.leave(*id));
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::gate_core::Mode;
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn waiter(session: &str) -> Waiter {
        Waiter {
            session: session.to_owned(),
            model: None,
            priority: 0,
        }
    }

    #[test]
    fn another_form_is_refused() {
        let limits = GateLimits::default();
        let text = SharedCore::read("", &limits).unwrap().text().unwrap();
        SharedCore::read(&text, &limits).unwrap();
        let newer = text.replace("\"form\":1", "\"form\":2");
        let error = SharedCore::read(&newer, &limits).unwrap_err();
        assert!(error.contains("form is 2"), "{error}");
    }

    /// What a process of the test has.
    #[derive(Debug, Default)]
    struct Process {
        presence: Presence,
        next: u64,
    }

    /// What can happen. The first number is the process.
    #[derive(Debug, Clone)]
    enum SharedGateAction {
        Arrives(usize),
        Withdraws(usize),
        Leaves(usize),
        Limited(usize),
        Answered(usize),
        /// It says what it has. The reply may be lost after the write: then it knows nothing about it.
        Syncs(usize, bool),
        /// It dies, and comes back as another one.
        Dies(usize),
        Passes(u64),
    }

    fn happens() -> impl Strategy<Value = SharedGateAction> {
        prop_oneof![
            4 => (0usize..3).prop_map(SharedGateAction::Arrives),
            1 => (0usize..3).prop_map(SharedGateAction::Withdraws),
            2 => (0usize..3).prop_map(SharedGateAction::Leaves),
            1 => (0usize..3).prop_map(SharedGateAction::Limited),
            1 => (0usize..3).prop_map(SharedGateAction::Answered),
            8 => ((0usize..3), any::<bool>()).prop_map(|(process, lost)| SharedGateAction::Syncs(process, lost)),
            1 => (0usize..3).prop_map(SharedGateAction::Dies),
            1 => (1u64..9).prop_map(SharedGateAction::Passes),
        ]
    }

    /// A process says what it has, and learns what came of it unless the reply is lost.
    fn sync(
        state: &mut String,
        now: Duration,
        name: &str,
        process: &mut Process,
        lost: bool,
        limits: &GateLimits,
    ) {
        let mut core = SharedCore::read(state, limits).unwrap();
        let before = core.core.running();
        let synced = core.sync(now, name, LEASE, &process.presence, 0.5);
        assert!(synced.refused.is_empty());
        if matches!(core.core.mode(), Mode::Closed(until) if now < until) {
            assert!(
                core.core.running() <= before,
                "somebody began while the gate is closed"
            );
        } else {
            assert!(process.presence.limited.is_none(), "the gate is not closed");
        }
        *state = core.text().unwrap();
        if lost {
            return;
        }
        for number in synced.admitted {
            process.presence.waiting.remove(&number).unwrap();
            process.presence.running.insert(number, None);
        }
        process.presence.limited = None;
        process.presence.answered.clear();
    }

    proptest! {
        /// Processes that keep their leases never run more turns than the limit, whatever replies are lost and whoever dies; nobody
        /// begins while the gate is closed; and in the end everybody has got in.
        #[test]
        fn the_limits_hold_between_processes(script in proptest::collection::vec(happens(), 0..150)) {
            let limits = GateLimits { max_running: 3, ..GateLimits::default() };
            let mut state = String::new();
            let mut now = Duration::from_secs(1_000_000);
            let mut processes: [Process; 3] = Default::default();
            let mut names = ["a0".to_owned(), "b0".to_owned(), "c0".to_owned()];
            let mut deaths = 0;
            for step in script {
                match step {
                    SharedGateAction::Arrives(at) => {
                        let process = &mut processes[at];
                        process.next += 1;
                        process.presence.waiting.insert(process.next, (waiter(&names[at]), Duration::ZERO));
                    }
                    SharedGateAction::Withdraws(at) => {
                        processes[at].presence.waiting.pop_first();
                    }
                    SharedGateAction::Leaves(at) => {
                        processes[at].presence.running.pop_first();
                    }
                    SharedGateAction::Limited(at) => {
                        processes[at].presence.limited = Some(Some(Duration::from_secs(5)));
                    }
                    SharedGateAction::Answered(at) => {
                        let presence = &mut processes[at].presence;
                        if presence.limited.is_none() {
                            presence.answered = presence.running.keys().copied().collect();
                        }
                    }
                    SharedGateAction::Syncs(at, lost) => {
                        sync(&mut state, now, &names[at], &mut processes[at], lost, &limits);
                    }
                    SharedGateAction::Dies(at) => {
                        deaths += 1;
                        processes[at] = Process::default();
                        names[at] = format!("{at}-{deaths}");
                    }
                    SharedGateAction::Passes(seconds) => {
                        now += Duration::from_secs(seconds);
                        // Processes that live renew their leases in time.
                        for (at, process) in processes.iter_mut().enumerate() {
                            sync(&mut state, now, &names[at], process, false, &limits);
                        }
                    }
                }
                let running: usize = processes.iter().map(|process| process.presence.running.len()).sum();
                prop_assert!(running <= 3, "{running} run");
            }
            // The leases of the dead end, and the API answers.
            for _ in 0..1000 {
                now += Duration::from_secs(10);
                for (at, process) in processes.iter_mut().enumerate() {
                    process.presence.answered = process.presence.running.keys().copied().collect();
                    sync(&mut state, now, &names[at], process, false, &limits);
                    process.presence.running.clear();
                }
                if processes.iter().all(|process| process.presence.waiting.is_empty()) {
                    break;
                }
            }
            prop_assert!(processes.iter().all(|process| process.presence.waiting.is_empty()));
            now += LEASE * 2;
            for (at, process) in processes.iter_mut().enumerate() {
                sync(&mut state, now, &names[at], process, false, &limits);
            }
            let last = SharedCore::read(&state, &limits).unwrap();
            prop_assert_eq!((last.core.running(), last.core.waiting(), last.members.len()), (0, 0, 0));
        }
    }
}
