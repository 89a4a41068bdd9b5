//! Finds the recorded answer to a request.

use std::collections::{HashMap, HashSet};
use std::env;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::asked::Asked;
use super::recording::{Exchange, Recording, RecordingError};
use super::redact::{Place, Redaction};
use crate::api::request::{ApiRequest, Route};

/// Replays recorded traffic to the CLI.
///
/// A request gets the reply of the first recorded exchange with the same content: from the main loop or a
/// subagent, with the same model, last prompt and new tool results. Ids, dates, durations, the directories of paths, the system
/// prompt and the tools' descriptions don't count. Within a session each exchange is replayed once, so that repeated requests get
/// their replies in the recorded order. Every session replays the recording from its beginning; if the recording has several sessions,
/// each takes one that no other has taken, if it can.
///
/// The working directory and the home directory of the current session replace the recorded ones in replies.
#[derive(Debug)]
#[must_use]
pub struct Replay {
    recording: Recording,
    redaction: Redaction,
    home: Option<String>,
    pace: f64,
    tool_results: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sessions: HashMap<Option<String>, Session>,
    /// Recorded sessions that a session plays.
    taken: HashSet<Option<String>>,
}

#[derive(Debug, Default)]
struct Session {
    /// The recorded session that it plays.
    plays: Option<Option<String>>,
    used: HashSet<u64>,
    cwd: Option<String>,
}

/// A recorded exchange, and where it is to be played.
#[derive(Debug)]
pub(in crate::api) struct Found {
    pub(in crate::api) exchange: Arc<Exchange>,
    pub(in crate::api) place: Place,
}

impl Replay {
    /// Plays this recording.
    pub fn new(recording: Recording) -> Self {
        Self {
            recording,
            redaction: Redaction::new(),
            home: env::var(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).ok(),
            pace: 0.0,
            tool_results: true,
            state: Mutex::default(),
        }
    }

    /// Plays this file.
    ///
    /// # Errors
    /// When it cannot be read, or is no recording.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, RecordingError> {
        Recording::read(path).map(Self::new)
    }

    /// Sets the home directory of the CLI, where that differs from the one of this process.
    pub fn home(mut self, directory: impl Into<String>) -> Self {
        let directory = directory.into();
        self.redaction = self.redaction.home(&directory);
        self.home = Some(directory);
        self
    }

    /// Sets the redaction for comparisons, if the recording was made with rules of its own.
    pub fn redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = match &self.home {
            Some(home) => redaction.home(home),
            None => redaction,
        };
        self
    }

    pub(in crate::api) fn scaled(&self, ms: u64) -> std::time::Duration {
        // Recorded times are small enough for a float to hold.
        std::time::Duration::try_from_secs_f64(ms as f64 / 1000.0 * self.pace).unwrap_or_default()
    }

    /// The exchange that answers this request, or why there is none.
    pub(in crate::api) fn find(&self, request: &ApiRequest) -> Result<Found, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { sessions, taken } = &mut *state;
        let session = sessions
            .entry(request.session_id().map(str::to_owned))
            .or_default();
        if let Some(directory) = request.working_directory() {
            session.cwd = Some(directory);
        }
        let redaction = match &session.cwd {
            Some(directory) => self.redaction.clone().working_directory(directory),
            None => self.redaction.clone(),
        };
        let asked = Asked::of(request, &redaction);
        let found = |exchange: &Arc<Exchange>, session: &mut Session| {
            session.used.insert(exchange.number);
            let place = Place {
                cwd: session.cwd.clone(),
                home: self.home.clone(),
            };
            Found {
                exchange: Arc::clone(exchange),
                place,
            }
        };
        let path = request.path.split('?').next().unwrap_or_default();
        let same_place: Vec<_> = self
            .recording
            .exchanges
            .iter()
            .filter(|exchange| exchange.method == request.method && exchange.path == path)
            .collect();
        if request.route() != Route::Messages {
            // These requests belong to no conversation: replies come in order, and the last one repeats.
            let unused = same_place
                .iter()
                .find(|exchange| !session.used.contains(&exchange.number));
            let Some(exchange) = unused.or(same_place.last()) else {
                return Err(format!("the recording has no {} {path}", request.method));
            };
            return Ok(found(exchange, session));
        }

        let alike: Vec<_> = same_place
            .iter()
            .filter(|exchange| exchange.asked.difference(&asked, self.tool_results).is_none())
            .collect();
        // First what belongs to the recorded session that this one plays, then what no other plays.
        let rank = |exchange: &&&&Arc<Exchange>| match &session.plays {
            Some(plays) if *plays == exchange.session => 0,
            _ if !taken.contains(&exchange.session) => 1,
            _ => 2,
        };
        let unused = alike
            .iter()
            .filter(|exchange| !session.used.contains(&exchange.number));
        if let Some(exchange) = unused.min_by_key(rank) {
            if session.plays.is_none() {
                session.plays = Some(exchange.session.clone());
                taken.insert(exchange.session.clone());
            }
            return Ok(found(exchange, session));
        }
        let description = asked.describe();
        if let Some(played) = alike.last() {
            let times = alike.len();
            return Err(format!(
                "the recording has no further answer to {description}: it was asked {times} times when recorded, last in exchange {}, and this session has asked once more",
                played.number
            ));
        }
        let nearest = same_place.iter().max_by_key(|exchange| {
            let unused = !session.used.contains(&exchange.number);
            (
                exchange.asked.likeness(&asked),
                unused,
                u64::MAX - exchange.number,
            )
        });
        let Some(nearest) = nearest else {
            return Err(format!(
                "the recording has no answer to {description}: it has no requests for messages at all"
            ));
        };
        let difference = nearest
            .asked
            .difference(&asked, self.tool_results)
            .unwrap_or_default();
        Err(format!(
            "the recording has no answer to {description}; the nearest is exchange {}, but {difference}",
            nearest.number
        ))
    }

    /// The numbers of the exchanges for messages that no session has played, in order.
    pub(in crate::api) fn unplayed(&self) -> Vec<u64> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let exchanges = self.recording.exchanges.iter();
        let messages =
            exchanges.filter(|exchange| exchange.method == "POST" && exchange.path == "/v1/messages");
        let unplayed = messages.filter(|exchange| {
            let played = |session: &Session| session.used.contains(&exchange.number);
            !state.sessions.values().any(played)
        });
        unplayed.map(|exchange| exchange.number).collect()
    }
}

setters! { Replay:
    /// Sets how long answers take: 1 for as long as they took, 2 for twice as long; by default 0, for at once.
    pace(factor: f64) = if factor.is_finite() { factor.max(0.0) } else { 0.0 };

    /// Accepts any results of tools, as long as their number is the same; for tools whose results depend on the machine.
    any_tool_results() => tool_results = false;
}
