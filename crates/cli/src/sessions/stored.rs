//! `outrigger sessions status`, `push` and `pull`: between this machine's transcripts and a session store.

mod target;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use outrigger::sessions::lease::OnBusy;
use outrigger::sessions::place::{project_dir_name, real_path};
use outrigger::sessions::store::{
    Difference, SessionKey, SessionStore, StoreComparison, StoreLease, Transcripts, compare, portions,
    pull_into,
};
use outrigger::sessions::{ListOptions, SessionFile, SessionId, Sessions};
use serde_json::{Value, json};

use self::target::StoreAddress;
use super::find::{ProjectArgs, here};
use crate::exit::{CommandResult, Failure, Status as Exit};

/// How long a push has a session in a store that has leases, unless it is done before.
const LEASE: Duration = Duration::from_secs(300);

/// A session store and what is meant of it.
#[derive(Debug, clap::Args)]
struct Store {
    /// The session store: dir:PATH, sqlite:PATH, postgres://…, redis://…, s3://BUCKET/PREFIX?endpoint=…&region=….
    #[arg(long, value_name = "ADDRESS", env = "OUTRIGGER_STORE", hide_env_values = true)]
    store: StoreAddress,
    #[command(flatten)]
    place: ProjectArgs,
    /// Write a line of JSON for each session.
    #[arg(long)]
    json: bool,
}

/// Say what a session store lacks of this machine's sessions, and what they lack of it; nothing is changed.
#[derive(Debug, clap::Args)]
pub(super) struct StoreStatus {
    /// The sessions; all of this directory's project unless given.
    #[arg(value_name = "SESSION")]
    sessions: Vec<String>,
    #[command(flatten)]
    store: Store,
}

/// Bring into a session store what it lacks of this machine's sessions.
///
/// A session that somebody went on with elsewhere, from the store, before the store had all of it, is left alone: `import` makes a
/// session of its own of the transcript here. The exit status is 1 then.
#[derive(Debug, clap::Args)]
pub(super) struct Push {
    /// The sessions.
    #[arg(value_name = "SESSION", required_unless_present = "all")]
    sessions: Vec<String>,
    /// All of this directory's project.
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
    #[command(flatten)]
    store: Store,
}

/// Bring sessions from a session store to this machine, or what it has beyond those that are here.
///
/// They are named by their whole ids, and filed for this directory or the one that is given.
#[derive(Debug, clap::Args)]
pub(super) struct Pull {
    /// The sessions' ids.
    #[arg(value_name = "SESSION", required_unless_present = "all")]
    sessions: Vec<String>,
    /// All that the store has of this directory's project.
    #[arg(long, conflicts_with = "sessions")]
    all: bool,
    #[command(flatten)]
    store: Store,
}

/// A session here, or in the store, or both.
struct Pair {
    key: SessionKey,
    id: SessionId,
    /// Where the transcript is here, or would be.
    file: PathBuf,
    is_here: bool,
    is_there: bool,
    differences: Vec<Difference>,
}

impl Pair {
    async fn of(store: &dyn SessionStore, file: PathBuf, key: SessionKey) -> Result<Self, Failure> {
        let id = SessionId::new(&key.session_id)?;
        let is_here = file.exists();
        let here = match is_here {
            true => Transcripts::of_file(&file)?.1,
            false => Transcripts::default(),
        };
        let there = Transcripts::of_store(store, &key)
            .await
            .context("the session store failed")?;
        Ok(Self {
            is_there: there.is_some(),
            differences: compare(&here, &there.unwrap_or_default()),
            key,
            id,
            file,
            is_here,
        })
    }

    async fn of_file(store: &dyn SessionStore, file: &SessionFile) -> Result<Self, Failure> {
        let project = file.project_dir().file_name().unwrap_or_default();
        let key = SessionKey::new(project.to_string_lossy(), file.id.as_str());
        Self::of(store, file.path.clone(), key).await
    }

    /// The worst standing of the session's transcripts.
    fn standing(&self) -> StoreComparison {
        let all = self.differences.iter().map(|difference| difference.standing);
        all.max().unwrap_or(StoreComparison::Same)
    }

    fn sum(&self, of: impl Fn(&Difference) -> usize) -> usize {
        self.differences.iter().map(of).sum()
    }

    /// How many entries a push would bring.
    fn wanted(&self) -> usize {
        self.sum(|one| one.to_push().len())
    }

    fn line(&self) -> String {
        let (lacks, holes) = (self.sum(|one| one.lacks.len()), self.sum(|one| one.holes));
        let beyond = self.sum(|one| one.beyond.len());
        let entries = |count: usize| match count {
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        };
        let also = match beyond {
            0 => String::new(),
            beyond => format!(", and {} are only in the store", entries(beyond)),
        };
        match self.standing() {
            _ if !self.is_there => format!("only here: {}", entries(lacks)),
            _ if !self.is_here => format!("only in the store: {}", entries(beyond)),
            StoreComparison::Same => "same".to_owned(),
            StoreComparison::Ahead => format!("ahead: {} are only in the store", entries(beyond)),
            StoreComparison::Behind => format!("behind: the store lacks the last {}{also}", entries(lacks)),
            StoreComparison::Holes => {
                format!(
                    "holes: the store lacks {}, {holes} of them from the midst{also}",
                    entries(lacks)
                )
            }
            _ => format!("diverged: {} are only here{also}", entries(lacks)),
        }
    }

    fn name(&self) -> &'static str {
        match self.standing() {
            _ if !self.is_there => "only-here",
            _ if !self.is_here => "only-there",
            StoreComparison::Same => "same",
            StoreComparison::Ahead => "ahead",
            StoreComparison::Behind => "behind",
            StoreComparison::Holes => "holes",
            _ => "diverged",
        }
    }

    fn json(&self) -> Value {
        json!({
            "sessionId": self.id, "projectKey": self.key.project_key, "path": self.is_here.then_some(&self.file),
            "standing": self.name(), "lacks": self.sum(|one| one.lacks.len()), "holes": self.sum(|one| one.holes),
            "beyond": self.sum(|one| one.beyond.len()),
        })
    }
}

impl Store {
    fn project(&self) -> (Sessions, String, PathBuf) {
        let dir = self.place.dir.clone().unwrap_or_else(here);
        let sessions = Sessions::from_env();
        let name = project_dir_name(&real_path(&dir));
        let (sessions, at) = match sessions {
            Ok(sessions) => {
                let at = sessions.projects_dir().join(&name);
                (sessions, at)
            }
            Err(_) => (Sessions::at(&dir), PathBuf::new()),
        };
        (sessions, name, at)
    }

    /// The sessions that are named, or all that are here.
    fn files(&self, names: &[String]) -> Result<Vec<SessionFile>, Failure> {
        let sessions = Sessions::from_env()?;
        if !names.is_empty() {
            return self.place.find_each(&sessions, names);
        }
        let dir = self.place.dir.clone().unwrap_or_else(here);
        let options = ListOptions::new().dir(dir.clone()).include_worktrees(false);
        let ids = sessions.list(&options)?.into_iter();
        // Another project may have one with the same id.
        let files = ids.filter_map(|info| sessions.find_in(&info.session_id, &dir).ok());
        Ok(files.collect())
    }

    /// The sessions that the store has of this directory's project.
    async fn listed(&self, store: &dyn SessionStore) -> Result<Vec<SessionId>, Failure> {
        if !store.capabilities().list_sessions {
            return Ok(Vec::new());
        }
        let (_, project, _) = self.project();
        let listed = store.list_sessions(&project).await;
        let mut ids: Vec<_> = listed
            .context("the session store can't be listed")?
            .into_iter()
            .filter_map(|session| SessionId::new(&session.session_id).ok())
            .collect();
        ids.sort();
        Ok(ids)
    }

    fn write(&self, done: &[(Pair, String)]) -> CommandResult {
        let mut out = io::stdout().lock();
        if self.json {
            for (pair, _) in done {
                writeln!(out, "{}", pair.json())?;
            }
        } else {
            for (pair, what) in done {
                writeln!(out, "{}  {what}", pair.id)?;
            }
        }
        Ok(Exit::Success)
    }
}

/// Runs what asks a store; commands have a thread of their own.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Handle::current().block_on(future)
}

impl StoreStatus {
    pub(super) fn run(self) -> CommandResult {
        wait(async {
            let store = self.store.store.open(false).await?;
            let mut pairs = Vec::new();
            for file in self.store.files(&self.sessions)? {
                pairs.push(Pair::of_file(&*store, &file).await?);
            }
            if self.sessions.is_empty() {
                let (_, project, at) = self.store.project();
                for id in self.store.listed(&*store).await? {
                    if pairs.iter().all(|pair| pair.id != id) {
                        let key = SessionKey::new(&project, id.as_str());
                        pairs.push(Pair::of(&*store, at.join(format!("{id}.jsonl")), key).await?);
                    }
                }
            }
            let done: Vec<_> = pairs
                .into_iter()
                .map(|pair| {
                    let line = pair.line();
                    (pair, line)
                })
                .collect();
            self.store.write(&done)
        })
    }
}

impl Push {
    pub(super) fn run(self) -> CommandResult {
        wait(async {
            let store = self.store.store.open(true).await?;
            let mut done = Vec::new();
            let mut exit = Exit::Success;
            for file in self.store.files(&self.sessions)? {
                let pushed = push(&store, &file).await?;
                let pair = Pair::of_file(&*store, &file).await?;
                let mut what = format!("brought {pushed}");
                if pair.standing() == StoreComparison::Diverged {
                    exit = Exit::Failed;
                    what = format!(
                        "{what}, {}: left alone, see `outrigger sessions import`",
                        pair.line()
                    );
                }
                done.push((pair, what));
            }
            self.store.write(&done)?;
            Ok(exit)
        })
    }
}

/// Appends what the store lacks, under a lease where it has some; how many entries that were.
async fn push(store: &Arc<dyn SessionStore>, file: &SessionFile) -> Result<usize, Failure> {
    let pair = Pair::of_file(&**store, file).await?;
    if pair.wanted() == 0 {
        return Ok(0);
    }
    let key = pair.key.main();
    let Some(leases) = store.leases() else {
        return append(store, &pair, None).await;
    };
    let owner = format!("outrigger sessions push (process {})", std::process::id());
    let taken = leases.acquire(&key, &owner, LEASE).await;
    let lease = taken.with_context(|| format!("session {} can't be brought", pair.id))?;
    let pushed = async {
        // Whoever had it until now may have gone on with it.
        let pair = Pair::of_file(&**store, file).await?;
        append(store, &pair, Some(&lease)).await
    };
    let pushed = pushed.await;
    // Else it runs out.
    let _ = leases.release(&lease).await;
    pushed
}

async fn append(
    store: &Arc<dyn SessionStore>,
    pair: &Pair,
    lease: Option<&StoreLease>,
) -> Result<usize, Failure> {
    let pushed = async {
        for difference in &pair.differences {
            let key = match &difference.subpath {
                Some(subpath) => pair.key.with_subpath(subpath),
                None => pair.key.main(),
            };
            for entries in portions(difference.to_push()) {
                match (lease, store.leases()) {
                    (Some(lease), Some(leases)) => leases.append_fenced(lease, &key, entries).await?,
                    _ => store.append(&key, entries).await?,
                }
            }
        }
        Ok::<_, outrigger::sessions::store::StoreError>(pair.wanted())
    };
    let pushed = pushed.await;
    Ok(pushed.with_context(|| format!("session {} is in the store in part; push again", pair.id))?)
}

impl Pull {
    pub(super) fn run(self) -> CommandResult {
        wait(async {
            let store = self.store.store.open(false).await?;
            let (sessions, project, at) = self.store.project();
            let ids = match self.all {
                true => self.store.listed(&*store).await?,
                false => {
                    let ids = self.sessions.iter().map(|id| SessionId::new(id.as_str()));
                    ids.collect::<Result<Vec<_>, _>>()?
                }
            };
            let mut done = Vec::new();
            let mut exit = Exit::Success;
            for id in ids {
                let key = SessionKey::new(&project, id.as_str());
                let file = at.join(format!("{id}.jsonl"));
                let pair = Pair::of(&*store, file.clone(), key.clone()).await?;
                if !pair.is_there {
                    let why = anyhow::anyhow!(
                        "the store {} has no session {id} of the project {project}",
                        self.store.store
                    );
                    return Err(Failure::new(Exit::Failed, why));
                }
                let pulled = pull(&sessions, &*store, &pair, &at).await?;
                let pair = Pair::of(&*store, file, key).await?;
                let left = pair.sum(|one| one.beyond.len());
                let mut what = format!("brought {pulled}");
                if left > 0 {
                    exit = Exit::Failed;
                    what = format!("{what}, {}: the rest is left alone", pair.line());
                }
                done.push((pair, what));
            }
            self.store.write(&done)?;
            Ok(exit)
        })
    }
}

/// Writes what the store has beyond; how many entries that were.
async fn pull(
    sessions: &Sessions,
    store: &dyn SessionStore,
    pair: &Pair,
    project: &Path,
) -> Result<usize, Failure> {
    // No CLI may write to it meanwhile.
    let claim = sessions.claim(&pair.id).owner("outrigger sessions pull");
    let lease = claim.on_busy(OnBusy::Fail).take()?;
    // One may have done until now.
    let pair = Pair::of(store, pair.file.clone(), pair.key.clone()).await?;
    let pulled = pull_into(&pair.differences, project, &pair.id);
    drop(lease);
    Ok(pulled?)
}

#[cfg(test)]
mod tests {
    use outrigger::protocol::RawJson;
    use outrigger::sessions::store::{BoxFuture, LeaseStore, MemoryStore, Result};

    use super::*;

    const ID: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";

    /// A store whose sessions somebody else had until a moment ago, who went on with them.
    #[derive(Default)]
    struct Overtaken(MemoryStore);

    fn entry(uuid: &str) -> RawJson {
        RawJson::from_text(format!(r#"{{"type":"user","uuid":"{uuid}"}}"#)).unwrap()
    }

    impl SessionStore for Overtaken {
        fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
            self.0.append(key, entries)
        }

        fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
            self.0.load(key)
        }

        fn leases(&self) -> Option<&dyn LeaseStore> {
            Some(self)
        }
    }

    impl LeaseStore for Overtaken {
        fn acquire<'a>(
            &'a self,
            key: &'a SessionKey,
            owner: &'a str,
            ttl: Duration,
        ) -> BoxFuture<'a, Result<StoreLease>> {
            Box::pin(async move {
                self.0.append(key, &[entry("elsewhere")]).await?;
                self.0.acquire(key, owner, ttl).await
            })
        }

        fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>> {
            self.0.renew(lease, ttl)
        }

        fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>> {
            self.0.release(lease)
        }

        fn append_fenced<'a>(
            &'a self,
            lease: &'a StoreLease,
            key: &'a SessionKey,
            entries: &'a [RawJson],
        ) -> BoxFuture<'a, Result<()>> {
            self.0.append_fenced(lease, key, entries)
        }
    }

    fn session(root: &Path) -> SessionFile {
        let sessions = Sessions::at(root);
        let project = sessions.projects_dir().join("-p");
        std::fs::create_dir_all(&project).unwrap();
        let lines = format!("{}\n{}\n", entry("a").get(), entry("here").get());
        std::fs::write(project.join(format!("{ID}.jsonl")), lines).unwrap();
        sessions.find(&SessionId::new(ID).unwrap()).unwrap()
    }

    /// What a push found before it had the session is no longer true when it has it.
    #[tokio::test]
    async fn a_push_mixes_nothing_into_what_somebody_else_just_said() {
        let root = tempfile::tempdir().unwrap();
        let file = session(root.path());
        let store = Arc::new(Overtaken::default());
        let key = SessionKey::new("-p", ID);
        store.0.append(&key, &[entry("a")]).await.unwrap();
        let shared: Arc<dyn SessionStore> = store.clone();
        assert_eq!(push(&shared, &file).await.unwrap(), 0);
        assert_eq!(store.0.entries(&key), [entry("a"), entry("elsewhere")]);
        // The lease was given back.
        let again = store.0.acquire(&key, "another", LEASE).await;
        assert_eq!(again.unwrap().owner, "another");
        // While somebody has it, nothing is brought at all.
        assert!(
            push(&shared, &file).await.is_ok(),
            "it has diverged: there is nothing to bring"
        );
        let fresh = Arc::new(MemoryStore::new());
        fresh.acquire(&key, "another", LEASE).await.unwrap();
        let shared: Arc<dyn SessionStore> = fresh.clone();
        assert!(push(&shared, &file).await.is_err());
        assert!(fresh.entries(&key).is_empty());
    }
}
