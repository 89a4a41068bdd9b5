//! The metrics of what sessions share, and of sessions that outlive their processes: read at the moment of an export.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};
use outrigger_fleet::budget::Budget;
use outrigger_fleet::gate::{Gate, GatePhase, WaitEnd};
use outrigger_fleet::supervise::{Health, HealthState, Supervised};

use crate::names;

/// What is measured. A thing of the same name takes the place of the one before.
#[derive(Debug, Clone, Default)]
pub(crate) struct MeasuredSources(Arc<Mutex<Watched>>);

#[derive(Default)]
struct Watched {
    /// The waits at a gate are measured for as long as the second lives.
    gates: Vec<(String, (Gate, Arc<()>))>,
    budgets: Vec<(String, Budget)>,
    /// `None` once the session is gone.
    supervised: Vec<(String, HealthSource)>,
}

type HealthSource = Arc<dyn Fn() -> Option<Health> + Send + Sync>;

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("gates", &self.gates)
            .field("budgets", &self.budgets)
            .finish_non_exhaustive()
    }
}

fn put<T>(things: &mut Vec<(String, T)>, name: &str, thing: T) {
    things.retain(|(known, _)| known != name);
    things.push((name.to_owned(), thing));
}

impl MeasuredSources {
    fn with<R>(&self, of: impl FnOnce(&mut Watched) -> R) -> R {
        of(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add_gate(&self, name: &str, gate: &Gate, waits: &Histogram<f64>) {
        let is_measured = Arc::new(());
        // Another gate of this name takes the place of this one.
        let still = Arc::downgrade(&is_measured);
        let (waits, attribute) = (waits.clone(), KeyValue::new(names::GATE, name.to_owned()));
        gate.watch_waits(move |wait| {
            let is_measured = still.strong_count() > 0;
            if is_measured {
                let mut attributes = vec![attribute.clone()];
                if wait.end != WaitEnd::Entered {
                    attributes.push(KeyValue::new(names::ERROR_TYPE, wait.end.name()));
                }
                waits.record(wait.waited.as_secs_f64(), &attributes);
            }
            is_measured
        });
        self.with(|watched| put(&mut watched.gates, name, (gate.clone(), is_measured)));
    }

    pub(crate) fn add_budget(&self, name: &str, budget: &Budget) {
        self.with(|watched| put(&mut watched.budgets, name, budget.clone()));
    }

    pub(crate) fn add_supervised(&self, name: &str, session: &Supervised) {
        let changes = session.changes();
        let health = move || changes.has_changed().is_ok().then(|| changes.borrow().clone());
        self.with(|watched| {
            // Those that are gone are not asked any more.
            watched.supervised.retain(|(_, health)| health().is_some());
            put(&mut watched.supervised, name, Arc::new(health));
        });
    }

    /// The health of the sessions that are not gone.
    fn healths(&self) -> Vec<(String, Health)> {
        // Nothing is asked under the lock.
        let supervised = self.with(|watched| watched.supervised.clone());
        let healths = supervised.into_iter();
        healths
            .filter_map(|(name, health)| Some((name, health()?)))
            .collect()
    }

    pub(crate) fn register(&self, meter: &Meter) {
        for (name, unit, about, of) in GATES {
            let shared = self.clone();
            let gauge = meter
                .f64_observable_gauge(name)
                .with_unit(unit)
                .with_description(about);
            gauge
                .with_callback(move |observer| {
                    for (name, (gate, _)) in shared.with(|watched| watched.gates.clone()) {
                        observer.observe(of(&gate), &[KeyValue::new(names::GATE, name)]);
                    }
                })
                .build();
        }
        for (name, unit, about, of) in BUDGETS {
            let shared = self.clone();
            let gauge = meter
                .f64_observable_gauge(name)
                .with_unit(unit)
                .with_description(about);
            gauge
                .with_callback(move |observer| {
                    for (name, budget) in shared.with(|watched| watched.budgets.clone()) {
                        observer.observe(of(&budget), &[KeyValue::new(names::BUDGET, name)]);
                    }
                })
                .build();
        }
        for (name, unit, about, of) in SUPERVISED {
            let shared = self.clone();
            let gauge = meter
                .u64_observable_gauge(name)
                .with_unit(unit)
                .with_description(about);
            gauge
                .with_callback(move |observer| {
                    for (name, health) in shared.healths() {
                        observer.observe(of(&health), &[KeyValue::new(names::SUPERVISED, name)]);
                    }
                })
                .build();
        }
    }
}

/// The name, the unit, the description and the value of a metric.
type Metric<T, N> = (&'static str, &'static str, &'static str, fn(&T) -> N);

const GATES: [Metric<Gate, f64>; 3] = [
    (
        names::METRIC_GATE_RUNNING,
        "{turn}",
        "Turns that have a place at the gate",
        |gate| gate.state().running as f64,
    ),
    (
        names::METRIC_GATE_WAITING,
        "{turn}",
        "Turns that wait at the gate",
        |gate| gate.state().waiting as f64,
    ),
    (
        names::METRIC_GATE_CLOSED,
        "s",
        "Time until the gate lets turns probe; 0 if it is not closed",
        |gate| match gate.state().phase {
            GatePhase::Closed(until) => {
                let left = until.into_std().saturating_duration_since(Instant::now());
                left.as_secs_f64()
            }
            _ => 0.0,
        },
    ),
];

const BUDGETS: [Metric<Budget, f64>; 4] = [
    (
        names::METRIC_BUDGET_SPENT,
        "{USD}",
        "Spent, of all days",
        |budget| budget.spent().usd.dollars(),
    ),
    (
        names::METRIC_BUDGET_RESERVED,
        "{USD}",
        "Reserved for turns that run",
        |budget| budget.reserved().usd.dollars(),
    ),
    (
        names::METRIC_BUDGET_TOKENS,
        "{token}",
        "Tokens spent, of all days",
        |budget| budget.spent().tokens as f64,
    ),
    (
        names::METRIC_BUDGET_TOKENS_RESERVED,
        "{token}",
        "Tokens reserved for turns that run",
        |budget| budget.reserved().tokens as f64,
    ),
];

const SUPERVISED: [Metric<Health, u64>; 3] = [
    (
        names::METRIC_SUPERVISED,
        "{session}",
        "1 if the session has a process, by what is known of it",
        |health| u64::from(health.state == HealthState::Running),
    ),
    (
        names::METRIC_DEATHS,
        "{process}",
        "Processes of the session that died",
        |health| health.deaths,
    ),
    (
        names::METRIC_ROTATIONS,
        "{rotation}",
        "Times that the conversation was compacted or handed over",
        |health| health.rotations,
    ),
];

#[cfg(test)]
mod tests {
    use outrigger::Agent;
    use outrigger_fleet::supervise::{IdFiles, Supervision};

    use super::*;

    #[test]
    fn sessions_that_are_gone_are_forgotten() {
        let sources = MeasuredSources::default();
        let add = |name: &str| {
            let session = Supervised::new(name, Agent::builder(), Supervision::new(), IdFiles::new("unused"));
            sources.add_supervised(name, &session);
            session
        };
        let names = || -> Vec<String> {
            let names =
                |watched: &mut Watched| watched.supervised.iter().map(|(name, _)| name.clone()).collect();
            sources.with(names)
        };
        let stays = add("stays");
        drop(add("goes"));
        let new = add("new");
        assert_eq!(names(), ["stays", "new"]);
        drop((stays, new));
    }
}
