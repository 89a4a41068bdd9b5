//! The metrics.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};
use outrigger::{Session, WeakSession};

use crate::names;
use crate::resident::resident_bytes;

/// The conventions' buckets for durations.
const SECONDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
/// Turns and tools take longer than requests.
const LONG: [f64; 12] = [
    0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
];
/// The conventions' buckets for tokens.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The sessions whose state is measured, at the moment of an export.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sessions(Arc<Mutex<Vec<WeakSession>>>);

impl Sessions {
    pub(crate) fn add(&self, session: &Session) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.upgrade().is_some());
        sessions.push(session.downgrade());
    }

    /// The sum over the sessions that run.
    fn sum(&self, of: impl Fn(&Session) -> u64) -> u64 {
        // Nothing is asked under the lock: a session may end with the handle that is dropped here.
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let alive = sessions.iter().filter_map(WeakSession::upgrade);
        alive.map(|session| of(&session)).sum()
    }
}

/// What is measured when it happens.
#[derive(Debug)]
pub(crate) struct Instruments {
    pub(crate) tokens: Histogram<u64>,
    pub(crate) chat: Histogram<f64>,
    pub(crate) turn: Histogram<f64>,
    pub(crate) tool: Histogram<f64>,
    pub(crate) wait: Histogram<f64>,
    pub(crate) permission: Histogram<f64>,
    pub(crate) hook: Histogram<f64>,
    pub(crate) gate_wait: Histogram<f64>,
    pub(crate) cost: Counter<f64>,
    pub(crate) restarts: Counter<u64>,
}

impl Instruments {
    pub(crate) fn new(meter: &Meter, sessions: &Sessions) -> Self {
        let seconds = |name: &'static str, about: &'static str, bounds: &[f64]| {
            meter
                .f64_histogram(name)
                .with_unit("s")
                .with_description(about)
                .with_boundaries(bounds.to_vec())
                .build()
        };
        gauge(
            meter,
            names::METRIC_SESSIONS,
            "{session}",
            "Sessions that run",
            sessions,
            |session| u64::from(session.pid().is_some()),
        );
        gauge(
            meter,
            names::METRIC_PROMPTS,
            "{prompt}",
            "Prompts that wait or run",
            sessions,
            |session| session.stats().open_prompts as u64,
        );
        gauge(
            meter,
            names::METRIC_FRAMES,
            "{frame}",
            "Frames not read yet",
            sessions,
            |session| session.stats().lagging_frames,
        );
        gauge(
            meter,
            names::METRIC_REQUESTS,
            "{request}",
            "Requests of the CLI without a reply",
            sessions,
            |session| session.stats().unanswered_by_us as u64,
        );
        gauge(
            meter,
            names::METRIC_MEMORY,
            "By",
            "Resident memory of the CLI",
            sessions,
            |session| session.pid().and_then(resident_bytes).unwrap_or(0),
        );
        Self {
            tokens: meter
                .u64_histogram(names::METRIC_TOKENS)
                .with_unit("{token}")
                .with_description("Tokens of a turn")
                .with_boundaries(TOKENS.to_vec())
                .build(),
            chat: seconds(names::METRIC_CHAT, "Duration of requests to the model", &SECONDS),
            turn: seconds(names::METRIC_TURN, "Duration of turns", &LONG),
            tool: seconds(names::METRIC_TOOL, "Duration of tool calls", &LONG),
            wait: seconds(
                names::METRIC_WAIT,
                "Time from the prompt to the first sign of the model",
                &SECONDS,
            ),
            permission: seconds(
                names::METRIC_PERMISSION,
                "Time until a permission request was answered",
                &LONG,
            ),
            gate_wait: seconds(
                names::METRIC_GATE_WAIT,
                "How long visitors of a gate waited",
                &LONG,
            ),
            hook: seconds(names::METRIC_HOOK, "Duration of hooks of this program", &SECONDS),
            cost: meter
                .f64_counter(names::METRIC_COST)
                .with_unit("{USD}")
                .with_description("Cost by the CLI's price table")
                .build(),
            restarts: meter
                .u64_counter(names::METRIC_RESTARTS)
                .with_unit("{process}")
                .with_description("Processes of the CLI in place of one that had ended")
                .build(),
        }
    }
}

fn gauge(
    meter: &Meter,
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    sessions: &Sessions,
    of: fn(&Session) -> u64,
) {
    let sessions = sessions.clone();
    meter
        .u64_observable_gauge(name)
        .with_unit(unit)
        .with_description(about)
        .with_callback(move |observer| observer.observe(sessions.sum(of), &[]))
        .build();
}

/// Records a duration.
pub(crate) fn record(histogram: &Histogram<f64>, took: Duration, attributes: &[KeyValue]) {
    histogram.record(took.as_secs_f64(), attributes);
}
