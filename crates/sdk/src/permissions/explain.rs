//! Who would decide about a call, and what keeps a handler from being asked.

use std::path::PathBuf;

use super::rules::Place;
use crate::env;
use crate::options::{Isolation, Options};

impl Options {
    /// Where tools are called, as far as the options say.
    pub(crate) fn place(&self) -> Place {
        // A private home is made for each process.
        let private = self.isolation == Isolation::Hermetic;
        let home = env::get(self.environment.own(), "HOME").map(PathBuf::from);
        let base = std::env::current_dir().ok();
        let cwd = match (&self.cwd, base) {
            (Some(cwd), _) if cwd.is_absolute() => Some(cwd.clone()),
            (Some(cwd), Some(base)) => Some(base.join(cwd)),
            (None, base) => base,
            (Some(_), None) => None,
        };
        let place = Place {
            cwd,
            home: home.or_else(|| if private { None } else { std::env::home_dir() }),
            is_remote: false,
        };
        if self.hosting.is_local() {
            place
        } else {
            place.remote()
        }
    }
}
