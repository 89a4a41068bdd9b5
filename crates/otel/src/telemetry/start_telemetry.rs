//! The telemetry of sessions that a batch or a supervised session starts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::Context;
use outrigger::options::Options;
use outrigger_fleet::{OnStarted, SessionWatch, StartReason, Starting};

use super::{SessionTelemetry, Telemetry};

/// Telemetry for the sessions of batches and of supervised sessions, by [`Telemetry::watch`]. Cloning is cheap.
///
/// The span of a session has what it was started for. That of a supervised session lasts until this and its clones are dropped, over restarts, which
/// are events of it; the span of a conversation that was handed over has a link to the one before.
#[derive(Debug, Clone)]
pub struct StartTelemetry {
    telemetry: Telemetry,
    parent: Context,
    /// The newest session of each supervised one.
    supervised: Arc<Mutex<HashMap<String, SessionTelemetry>>>,
}

impl StartTelemetry {
    pub(super) fn new(telemetry: Telemetry, parent: Context) -> Self {
        Self {
            telemetry,
            parent,
            supervised: Arc::default(),
        }
    }
}

impl SessionWatch for StartTelemetry {
    fn starting(&self, starting: &Starting, options: Options) -> (Options, OnStarted) {
        let mut supervised = self.supervised.lock().unwrap_or_else(PoisonError::into_inner);
        let before = supervised.get(&starting.name);
        let trace = match before {
            Some(same) if starting.reason == StartReason::Restart => {
                same.restarted(starting);
                same.clone()
            }
            _ => {
                let trace = SessionTelemetry::begin(&self.telemetry, &self.parent);
                let follows = before.filter(|_| starting.reason == StartReason::Rotation);
                trace.started_for(starting, follows);
                trace
            }
        };
        if starting.reason != StartReason::Attempt {
            supervised.insert(starting.name.clone(), trace.clone());
        }
        let options = trace.options(options);
        (options, Box::new(move |session| trace.observe(session)))
    }
}
