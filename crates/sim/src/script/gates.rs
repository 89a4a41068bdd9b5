//! Gates that a test opens by name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use tokio::sync::{Semaphore, watch};

use super::check::is_gate_name;

/// The gates of a script, by name. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Gates(Arc<Mutex<BTreeMap<String, Gate>>>);

impl Gates {
    /// The gate of this name, which is closed until the test opens it.
    pub fn gate(&self, name: &str) -> Gate {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = gates.entry(name.to_owned());
        gate.or_insert_with(|| Gate::new(name)).clone()
    }

    /// Opens the gate of this name.
    pub fn open(&self, name: &str) {
        self.gate(name).open();
    }
}

/// A named place in replies where they wait until the test lets them through.
///
/// A gate starts closed. Replies that reach it wait in order of arrival; [`release`](Self::release) lets one through, now or when it
/// arrives, and [`open`](Self::open) lets everything through from now on. A reply whose client goes away while it waits stops waiting
/// and uses up no release. Clones are the same gate.
#[derive(Clone)]
pub struct Gate {
    name: Arc<str>,
    arrivals: watch::Sender<u64>,
    passes: Arc<Semaphore>,
}

/// Something that a test waited for did not happen in time.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[error("waited {within:?} for {what}; {seen}")]
pub struct WaitError {
    /// The condition that did not come true.
    pub what: String,
    /// How long.
    pub within: Duration,
    /// What had happened up to then.
    pub seen: String,
}

impl Gate {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            arrivals: watch::Sender::new(0),
            passes: Arc::new(Semaphore::new(0)),
        }
    }

    /// Lets one reply through: the one that has waited longest, or the next to arrive.
    pub fn release(&self) {
        self.passes.add_permits(1);
    }

    /// Lets everything through, now and later. A gate that was opened stays open.
    pub fn open(&self) {
        self.passes.close();
    }

    /// How many replies have reached this gate so far, those that went on included.
    pub fn arrivals(&self) -> u64 {
        *self.arrivals.borrow()
    }

    /// Waits until a reply has reached this gate, for as long as it takes.
    pub async fn arrival(&self) {
        // The sender lives as long as `self`.
        let _ = self.arrivals.subscribe().wait_for(|arrived| *arrived > 0).await;
    }

    /// Waits until `count` replies in all have reached this gate.
    ///
    /// # Errors
    /// When that does not happen `within` the given time.
    pub async fn reached(&self, count: u64, within: Duration) -> Result<(), WaitError> {
        let mut arrivals = self.arrivals.subscribe();
        let arrived = tokio::time::timeout(within, arrivals.wait_for(|arrived| *arrived >= count)).await;
        match arrived {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(WaitError {
                what: format!("{count} replies to reach the gate {:?}", self.name),
                within,
                seen: format!("{} did", self.arrivals()),
            }),
        }
    }

    /// Stops here until let through.
    pub(crate) async fn pass(&self) {
        self.arrivals.send_modify(|arrivals| *arrivals += 1);
        // An error means that the gate is open.
        if let Ok(permit) = self.passes.acquire().await {
            permit.forget();
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("name", &self.name)
            .field("arrivals", &self.arrivals())
            .field("open", &self.passes.is_closed())
            .finish()
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
