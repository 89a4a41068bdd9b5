//! Gates that a test opens by name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use tokio::sync::watch;

use super::check::is_gate_name;

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

/// Holds a reply back until the test opens it. Clones are the same gate.
#[derive(Clone)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
    reached: Arc<watch::Sender<bool>>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self {
            open: Arc::new(watch::Sender::new(false)),
            reached: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Opens it for good.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until a reply stands before it.
    pub async fn reached(&self) {
        // The sender lives as long as `self`.
        let _ = self.reached.subscribe().wait_for(|reached| *reached).await;
    }

    pub(crate) async fn pass(&self) {
        self.reached.send_replace(true);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate(open: {})", *self.open.borrow())
    }
}

/// How often it is looked whether there is a file.
const LOOK: Duration = Duration::from_millis(5);

/// Gates that another program opens: in a directory, `NAME.reached` appears when the gate NAME is reached, and the gate opens once there
/// is a file NAME.
#[derive(Debug, Clone)]
pub struct GateFiles(PathBuf);

impl GateFiles {
    /// In this directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Says that this gate is reached.
    ///
    /// # Errors
    /// When the file cannot be written, or the name is that of no gate.
    pub fn reached(&self, name: &str) -> io::Result<()> {
        if !is_gate_name(name) {
            return Err(io::ErrorKind::InvalidFilename.into());
        }
        fs::write(self.0.join(format!("{name}.reached")), "")
    }

    /// Waits until there is a file for this gate, for as long as it takes.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn opened(&self, name: &str) {
        while !(is_gate_name(name) && self.0.join(name).exists()) {
            tokio::time::sleep(LOOK).await;
        }
    }
}
