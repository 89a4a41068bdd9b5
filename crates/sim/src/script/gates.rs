//! Gates that a test opens by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::peer::agent::Gate;

/// The gates of a script, by name. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Gates(Arc<Mutex<BTreeMap<String, Gate>>>);

impl Gates {
    /// The gate of this name, which is closed until the test opens it.
    pub fn gate(&self, name: &str) -> Gate {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(name.to_owned()).or_default().clone()
    }

    /// Opens the gate of this name.
    pub fn open(&self, name: &str) {
        self.gate(name).open();
    }
}
