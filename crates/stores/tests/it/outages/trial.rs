//! One session, its turns, and a store that is not always there.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outrigger::options::{Auth, Launch, Secret};
use outrigger::testing::Simulated;
use outrigger::transport::{BoxFuture, Connection, Transport};
use outrigger::{Agent, Options, Session};
use outrigger_sessions::place::{project_dir_name, real_path};
use outrigger_sessions::store::{Result, SessionKey, SessionStore, Transcripts};

/// What takes the store away.
pub(crate) trait Outage: Send {
    fn begin(&mut self, rng: &mut Rng);
    fn end(&mut self);
}

/// The same numbers for the same seed.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        (self.next() >> 33) as usize % most
    }
}

/// A CLI in memory that works on the files of this machine.
struct Near(Simulated);

impl Transport for Near {
    fn open<'a>(&'a self, launch: &'a Launch) -> BoxFuture<'a, std::io::Result<Connection>> {
        self.0.open(launch)
    }

    fn is_local(&self) -> bool {
        true
    }
}

fn machine(home: &Path, project: &Path, store: &Arc<dyn SessionStore>) -> Options {
    Agent::builder()
        .auth(Auth::ApiKey(Secret::new("simulated")))
        // It is not run.
        .cli_path(std::env::current_exe().unwrap())
        .cwd(project)
        .env("HOME", home)
        .env("CLAUDE_CONFIG_DIR", home.join("config"))
        .transport(Near(Simulated::agent(|agent| {
            // Its ids come from its seed, and no two processes have the same.
            static STARTED: AtomicU64 = AtomicU64::new(1);
            agent.seed(STARTED.fetch_add(1, Ordering::Relaxed))
        })))
        .session_store(Arc::clone(store))
        .session_store_patience(Duration::from_millis(20))
        .session_store_grace(Duration::from_millis(100))
        .load_timeout(Duration::from_secs(5))
}

/// Asks until it succeeds: a server that was started may not be ready.
pub(crate) async fn again<T, F: Future<Output = Result<T>>>(mut of: impl FnMut() -> F) -> T {
    for _ in 0..600 {
        match of().await {
            Ok(done) => return done,
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    of().await.unwrap()
}

/// Starts a session of a store that is there, or is about to be.
pub(crate) async fn start(options: &Options) -> Session {
    for _ in 0..100 {
        match options.clone().start().await {
            Ok(session) => return session,
            Err(error) => assert!(error.as_store_error().is_some() || error.is_timeout(), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    options.clone().start().await.unwrap()
}

/// A session with turns and outages, then one on another machine that goes on with it.
pub(crate) async fn trial(store: Arc<dyn SessionStore>, outage: &mut dyn Outage, seed: u64) {
    let rng = &mut Rng::new(seed);
    let root = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let place = root.path().join(name);
        std::fs::create_dir_all(&place).unwrap();
        place
    };
    let project = place("project");
    let here = machine(&place("here"), &project, &store);
    let mut session = start(&here).await;
    let mut said = Vec::new();
    let mut is_away = false;
    let mut outages = 0;
    let mut id = None;
    for nth in 0..8 {
        // There is an outage in each trial, however the dice fall.
        let change = rng.below(3) == 0 || (nth == 3 && outages == 0);
        if change && is_away {
            outage.end();
            is_away = false;
        } else if change {
            outage.begin(rng);
            (is_away, outages) = (true, outages + 1);
        }
        let word = format!("w{seed}x{nth}x");
        let mut turn = session.prompt(format!("%say {word}").as_str()).await.unwrap();
        let outcome = turn.outcome().await.unwrap();
        assert_eq!(outcome.result_text(), word, "seed {seed}");
        said.push(word);
        id = session.id();
        if rng.below(4) == 0 {
            session.close().await.unwrap();
            if is_away {
                outage.end();
                is_away = false;
            }
            session = start(&here.clone().resume(id.as_deref().unwrap())).await;
        }
    }
    session.close().await.unwrap();
    let id = id.unwrap();
    if is_away {
        outage.end();
    }
    // What the end left is brought.
    let session = start(&here.clone().resume(&id)).await;
    session.close().await.unwrap();

    let key = SessionKey::new(project_dir_name(&real_path(&project)), &id);
    let stored = again(|| Transcripts::of_store(&*store, &key)).await.unwrap();
    let places: Vec<_> = said.iter().map(|word| at(&stored, word)).collect();
    assert!(places.is_sorted(), "seed {seed}: {places:?}");

    let there = machine(&place("there"), &project, &store);
    let session = start(&there.resume(&id)).await;
    let last = format!("w{seed}xlast");
    let mut turn = session.prompt(format!("%say {last}").as_str()).await.unwrap();
    turn.outcome().await.unwrap();
    said.push(last);
    let mut history = session.history().await.unwrap();
    let mut text = String::new();
    while let Some(event) = history.next().await {
        text.push_str(&format!("{:?}\n", event.unwrap()));
    }
    let places: Vec<_> = said
        .iter()
        .map(|word| {
            let place = text.find(word.as_str());
            place.unwrap_or_else(|| panic!("seed {seed}: {word} is not in the history: {text}"))
        })
        .collect();
    assert!(places.is_sorted(), "seed {seed}: {places:?}");
    session.close().await.unwrap();
}

/// Where the store has the answer with this word: of what has a uuid, once.
fn at(stored: &Transcripts, word: &str) -> usize {
    let has = |kind: &str| {
        let of = |(nth, entry): (usize, &outrigger_protocol::RawJson)| {
            let text = entry.get();
            (text.contains(word) && text.contains(&format!(r#""type":"{kind}""#))).then_some(nth)
        };
        let found: Vec<_> = stored.main.iter().enumerate().filter_map(of).collect();
        found
    };
    let (asked, answered) = (has("user"), has("assistant"));
    assert_eq!((asked.len(), answered.len()), (1, 1), "{word}: {stored:#?}");
    assert!(asked[0] < answered[0]);
    asked[0]
}
