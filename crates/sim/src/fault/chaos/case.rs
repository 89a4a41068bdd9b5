//! One schedule, for one run of a test.

use std::sync::{Arc, Mutex, PoisonError};

use crate::fault::{Schedule, Stage, Strike, Unfit, Wire};

/// A schedule, and the record of what its faults struck. Clones share the record.
#[derive(Debug, Clone, Default)]
pub struct Case {
    schedule: Schedule,
    wires: Arc<Mutex<Vec<Wire>>>,
}

impl Case {
    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// A new wire on which these faults strike, for one connection.
    ///
    /// # Errors
    /// When a fault cannot be done there.
    pub fn wire(&self, stage: Stage) -> Result<Wire, Unfit> {
        let wire = Wire::new(&self.schedule, stage)?;
        self.wires
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(wire.clone());
        Ok(wire)
    }

    /// The strikes so far, of all wires in order.
    pub fn strikes(&self) -> Vec<Strike> {
        let wires = self.wires.lock().unwrap_or_else(PoisonError::into_inner);
        wires.iter().flat_map(Wire::strikes).collect()
    }

    /// The schedule and its strikes, for the text of a failure.
    pub fn story(&self) -> String {
        let mut story = format!("the faults: {}", self.schedule);
        for strike in self.strikes() {
            story.push_str("\n  ");
            story.push_str(&strike.to_string());
        }
        story
    }
}

impl From<Schedule> for Case {
    fn from(schedule: Schedule) -> Self {
        Self {
            schedule,
            wires: Arc::default(),
        }
    }
}

impl From<&Schedule> for Case {
    fn from(schedule: &Schedule) -> Self {
        schedule.clone().into()
    }
}
