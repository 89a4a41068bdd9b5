//! The gate's state machine, without I/O: times are durations since the gate was made, or since 1970 by the clock of a store.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::GateLimits;

/// How long the gate is closed at most. No limit of the API lasts so long, and every clock can count it.
pub(super) const LONGEST_CLOSED: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Who waits at the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waiter {
    pub(super) session: String,
    pub(super) model: Option<String>,
    pub(super) priority: i32,
}

/// Whether turns may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Mode {
    Open,
    /// No turn begins before this time.
    Closed(Duration),
    /// A few turns may begin, to find out whether the API accepts requests again.
    Probing,
}

#[derive(Debug, Serialize, Deserialize)]
struct RunningTurn {
    model: Option<String>,
    probe: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct WaiterId(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct PassId(u64);

/// Its maps are sorted, so that the same state is the same text.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GateCore {
    #[serde(skip)]
    limits: GateLimits,
    mode: Mode,
    /// Closings since the API last answered: the exponent of the backoff.
    closings: u32,
    running: BTreeMap<PassId, RunningTurn>,
    by_model: BTreeMap<String, usize>,
    /// In the order of arrival.
    waiting: BTreeMap<WaiterId, (Waiter, Duration)>,
    /// The number of the admission that each session got last. Bounded: see `forget`.
    last_admitted: BTreeMap<String, u64>,
    admissions: u64,
    next_id: u64,
}

impl GateCore {
    pub(super) fn new(limits: GateLimits) -> Self {
        Self {
            limits,
            mode: Mode::Open,
            closings: 0,
            running: BTreeMap::new(),
            by_model: BTreeMap::new(),
            waiting: BTreeMap::new(),
            last_admitted: BTreeMap::new(),
            admissions: 0,
            next_id: 0,
        }
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn running_by_model(&self) -> &BTreeMap<String, usize> {
        &self.by_model
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// For a state that comes from a store, which has none.
    pub(super) fn set_limits(&mut self, limits: GateLimits) {
        self.limits = limits;
    }

    /// A turn runs that was given up for lost. It takes a place, whether one is free or not.
    pub(super) fn rejoin(&mut self, model: Option<String>) -> PassId {
        self.run(model, false)
    }

    fn run(&mut self, model: Option<String>, probe: bool) -> PassId {
        if let Some(model) = &model {
            *self.by_model.entry(model.clone()).or_default() += 1;
        }
        let pass = PassId(self.id());
        self.running.insert(pass, RunningTurn { model, probe });
        pass
    }

    /// Somebody wants to begin a turn; `None` if too many wait.
    pub(super) fn arrive(&mut self, now: Duration, waiter: Waiter) -> Option<WaiterId> {
        if self.waiting.len() >= self.limits.max_waiting {
            return None;
        }
        let id = WaiterId(self.id());
        self.waiting.insert(id, (waiter, now));
        Some(id)
    }

    /// A waiter goes away.
    pub(super) fn withdraw(&mut self, waiter: WaiterId) {
        self.waiting.remove(&waiter);
    }

    /// Admits one waiter, if a turn may begin. Call this until it returns `None`.
    pub(super) fn admit(&mut self, now: Duration) -> Option<(WaiterId, PassId)> {
        if let Mode::Closed(until) = self.mode
            && now >= until
        {
            self.mode = Mode::Probing;
        }
        let probe = match self.mode {
            Mode::Closed(_) => return None,
            Mode::Open => false,
            Mode::Probing => {
                if self.running.values().filter(|pass| pass.probe).count() >= self.limits.probes {
                    return None;
                }
                true
            }
        };
        if self.running.len() >= self.limits.max_running {
            return None;
        }
        let (&chosen, _) = self
            .waiting
            .iter()
            .filter(|(_, (waiter, _))| self.has_room_for(waiter.model.as_deref()))
            .min_by_key(|(id, (waiter, since))| {
                let last = self.last_admitted.get(&waiter.session).copied();
                (
                    std::cmp::Reverse(self.urgency(waiter, now.saturating_sub(*since))),
                    last,
                    **id,
                )
            })?;
        let (waiter, _) = self.waiting.remove(&chosen)?;
        self.admissions += 1;
        self.last_admitted.insert(waiter.session, self.admissions);
        self.forget();
        let pass = self.run(waiter.model, probe);
        Some((chosen, pass))
    }

    /// The API refused a request of a running turn, for want of capacity. `wait` is the time that the API gave; `jitter` is
    /// between 0 and 1, for times that the gate chooses itself.
    pub(super) fn limited(&mut self, now: Duration, wait: Option<Duration>, jitter: f64) {
        if let Mode::Closed(until) = self.mode
            && now < until
        {
            // The same incident, seen by another session.
            if let Some(wait) = wait {
                self.mode = Mode::Closed(until.max(now.saturating_add(wait.min(LONGEST_CLOSED))));
            }
            return;
        }
        self.closings = self.closings.saturating_add(1);
        let backoff = self.limits.backoff(self.closings, jitter);
        let wait = match wait {
            // The API's time counts. If it proves too short, the gate backs off from it.
            Some(wait) if self.closings == 1 => wait,
            Some(wait) => wait.max(backoff),
            None => backoff,
        };
        let wait = wait.max(self.limits.min_closed).min(LONGEST_CLOSED);
        self.mode = Mode::Closed(now.saturating_add(wait));
        // Turns that began before find out nothing about the time after this closing.
        for pass in self.running.values_mut() {
            pass.probe = false;
        }
    }

    /// The API answered a request of this turn. That opens the gate if the turn began after the last closing: the API may have
    /// accepted the requests of others earlier.
    pub(super) fn answered(&mut self, pass: PassId) {
        let is_probe = self.running.get(&pass).is_some_and(|pass| pass.probe);
        match self.mode {
            Mode::Open => self.closings = 0,
            Mode::Probing if is_probe => self.open(),
            Mode::Probing | Mode::Closed(_) => {}
        }
    }

    /// Turns may begin, whatever the gate knows.
    pub(super) fn open(&mut self) {
        self.mode = Mode::Open;
        self.closings = 0;
        for pass in self.running.values_mut() {
            pass.probe = false;
        }
    }

    /// A turn is over.
    pub(super) fn leave(&mut self, pass: PassId) {
        let Some(running) = self.running.remove(&pass) else {
            return;
        };
        if let Some(model) = running.model
            && let Some(count) = self.by_model.get_mut(&model)
        {
            *count -= 1;
            if *count == 0 {
                self.by_model.remove(&model);
            }
        }
    }

    fn has_room_for(&self, model: Option<&str>) -> bool {
        let Some(model) = model else { return true };
        let Some(most) = self.limits.of_model(model) else {
            return true;
        };
        self.by_model.get(model).copied().unwrap_or_default() < most
    }

    /// The priority, which grows while somebody waits.
    fn urgency(&self, waiter: &Waiter, waited: Duration) -> i64 {
        let grown = waited.as_nanos() / self.limits.aging.as_nanos().max(1);
        i64::from(waiter.priority).saturating_add(i64::try_from(grown).unwrap_or(i64::MAX))
    }

    /// Sessions that were admitted long ago rank with those that never were. So the list need not grow with each session that
    /// there ever was.
    fn forget(&mut self) {
        let most = 2 * (self.waiting.len() + self.running.len()) + 256;
        if self.last_admitted.len() > 2 * most {
            let mut admissions: Vec<u64> = self.last_admitted.values().copied().collect();
            admissions.sort_unstable();
            let oldest = admissions[admissions.len() - most];
            self.last_admitted.retain(|_, admission| *admission >= oldest);
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn waiter(session: &str, priority: i32) -> Waiter {
        Waiter {
            session: session.to_owned(),
            model: None,
            priority,
        }
    }

    fn admit_all(core: &mut GateCore, now: Duration) -> Vec<(WaiterId, PassId)> {
        std::iter::from_fn(|| core.admit(now)).collect()
    }

    #[test]
    fn sessions_take_turns_and_priority_goes_first_but_not_for_ever() {
        let mut core = GateCore::new(GateLimits {
            max_running: 1,
            aging: seconds(30),
            ..GateLimits::default()
        });
        let arrive = |core: &mut GateCore, session, priority, at| {
            core.arrive(seconds(at), waiter(session, priority)).unwrap()
        };
        let greedy = [(); 3].map(|()| arrive(&mut core, "greedy", 0, 0));
        let modest = arrive(&mut core, "modest", 0, 0);
        let urgent = arrive(&mut core, "urgent", 1, 1);
        let mut order = Vec::new();
        let mut now = 1;
        while let Some((waiter, pass)) = core.admit(seconds(now)) {
            assert_eq!(core.admit(seconds(now)), None);
            order.push(waiter);
            core.leave(pass);
            now += 1;
        }
        assert_eq!(order, [urgent, greedy[0], modest, greedy[1], greedy[2]]);

        let patient = arrive(&mut core, "patient", 0, 100);
        let important = arrive(&mut core, "important", 1, 161);
        assert_eq!(core.admit(seconds(161)).unwrap().0, patient);
        let _ = important;
    }

    #[test]
    fn a_full_model_does_not_hold_up_the_others() {
        let mut core = GateCore::new(GateLimits {
            by_model: BTreeMap::from([("opus".to_owned(), 1)]),
            ..GateLimits::default()
        });
        let of = |model: &str| Waiter {
            model: Some(model.to_owned()),
            ..waiter(model, 0)
        };
        let first = core.arrive(Duration::ZERO, of("opus")).unwrap();
        let second = core.arrive(Duration::ZERO, of("opus")).unwrap();
        let other = core.arrive(Duration::ZERO, of("haiku")).unwrap();
        let admitted = admit_all(&mut core, Duration::ZERO);
        assert_eq!(
            admitted.iter().map(|one| one.0).collect::<Vec<_>>(),
            [first, other]
        );
        core.leave(admitted[0].1);
        assert_eq!(admit_all(&mut core, Duration::ZERO)[0].0, second);
        assert_eq!(core.running_by_model().len(), 2);
    }

    #[test]
    fn the_gate_backs_off_until_a_turn_that_began_after_the_closing_is_answered() {
        let mut core = GateCore::new(GateLimits::default());
        let admit = |core: &mut GateCore, at: u64| {
            core.arrive(seconds(at), waiter("any", 0)).unwrap();
            core.admit(seconds(at)).map(|(_, pass)| pass)
        };
        let (early, other) = (admit(&mut core, 0).unwrap(), admit(&mut core, 0).unwrap());
        core.limited(seconds(1), Some(seconds(2)), 0.0);
        // Others see the same, with a longer time, a shorter one, and none.
        for wait in [Some(seconds(4)), Some(seconds(1)), None] {
            core.limited(seconds(1), wait, 0.0);
        }
        assert_eq!(core.mode(), Mode::Closed(seconds(5)));
        core.answered(early);
        assert_eq!(admit(&mut core, 4), None);

        // The first probe is refused, with a time that has proved too short. The second one is answered.
        let probe = core.admit(seconds(5)).unwrap().1;
        assert_eq!(core.mode(), Mode::Probing);
        core.limited(seconds(5), Some(seconds(1)), 0.0);
        assert_eq!(core.mode(), Mode::Closed(seconds(7)));
        assert_eq!(admit(&mut core, 6), None);
        let second = core.admit(seconds(7)).unwrap().1;
        for stale in [early, other, probe] {
            core.answered(stale);
            assert_eq!(core.mode(), Mode::Probing);
        }
        core.answered(second);
        assert_eq!(core.mode(), Mode::Open);
        core.limited(seconds(8), None, 0.0);
        assert_eq!(core.mode(), Mode::Closed(seconds(9)));
    }

    /// What can happen at the gate.
    #[derive(Debug, Clone)]
    enum GateAction {
        Arrives { session: u8, priority: i32, model: bool },
        Withdraws(usize),
        Limited(Option<u64>),
        Answered(usize),
        Leaves(usize),
        Passes(u64),
    }

    fn happens() -> impl Strategy<Value = GateAction> {
        prop_oneof![
            4 => (0u8..5, -2i32..3, any::<bool>())
                .prop_map(|(session, priority, model)| GateAction::Arrives { session, priority, model }),
            1 => (0usize..8).prop_map(GateAction::Withdraws),
            1 => proptest::option::of(0u64..60).prop_map(GateAction::Limited),
            2 => (0usize..8).prop_map(GateAction::Answered),
            3 => (0usize..8).prop_map(GateAction::Leaves),
            2 => (0u64..40).prop_map(GateAction::Passes),
        ]
    }

    proptest! {
        /// No limit is passed, nobody is admitted while the gate is closed, at most `probes` begin between two closings without
        /// an answer, and whoever neither withdraws nor is admitted still waits.
        #[test]
        fn the_limits_hold(script in proptest::collection::vec(happens(), 0..120)) {
            let limits = GateLimits {
                max_running: 4,
                by_model: BTreeMap::from([("opus".to_owned(), 2)]),
                probes: 2,
                max_waiting: 6,
                ..GateLimits::default()
            };
            let mut core = GateCore::new(limits);
            let mut now = Duration::ZERO;
            let (mut waiting, mut running) = (Vec::new(), Vec::new());
            let mut probes = None::<usize>;
            for step in script {
                match step {
                    GateAction::Arrives { session, priority, model } => {
                        let full = waiting.len() == 6;
                        let id = core.arrive(now, Waiter {
                            session: session.to_string(),
                            model: model.then(|| "opus".to_owned()),
                            priority,
                        });
                        prop_assert_eq!(id.is_none(), full);
                        waiting.extend(id);
                    }
                    GateAction::Withdraws(index) if index < waiting.len() => {
                        core.withdraw(waiting.remove(index));
                    }
                    GateAction::Limited(wait) if !running.is_empty() => {
                        let wait = wait.map(seconds);
                        core.limited(now, wait, 0.5);
                        let Mode::Closed(until) = core.mode() else { panic!("not closed") };
                        prop_assert!(until >= now + wait.unwrap_or_default());
                        probes = Some(0);
                    }
                    GateAction::Answered(index) if index < running.len() => {
                        core.answered(running[index]);
                        if core.mode() == Mode::Open {
                            probes = None;
                        }
                    }
                    GateAction::Leaves(index) if index < running.len() => {
                        core.leave(running.remove(index));
                    }
                    GateAction::Passes(time) => now += seconds(time),
                    _ => {}
                }
                let closed = matches!(core.mode(), Mode::Closed(until) if now < until);
                let admitted = admit_all(&mut core, now);
                prop_assert!(!closed || admitted.is_empty());
                for (waiter, pass) in admitted {
                    waiting.retain(|one| *one != waiter);
                    running.push(pass);
                    if let Some(count) = &mut probes {
                        *count += 1;
                    }
                }
                prop_assert_eq!(core.waiting(), waiting.len());
                prop_assert_eq!(core.running(), running.len());
                prop_assert!(core.running() <= 4);
                prop_assert!(core.running_by_model().values().all(|count| *count <= 2));
                let probing = core.running.values().filter(|pass| pass.probe).count();
                prop_assert!(probing <= 2);
            }
            // Whatever happened: when the turns end and time passes, everybody gets in.
            core.open();
            for pass in running {
                core.leave(pass);
            }
            while let Some((waiter, pass)) = core.admit(now) {
                waiting.retain(|one| *one != waiter);
                core.leave(pass);
            }
            prop_assert!(waiting.is_empty());
        }
    }
}
