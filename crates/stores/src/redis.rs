//! Sessions in Redis: for machines that have one anyway.

mod keys;
mod lease_hash;
mod lists;
mod options;
mod server;
mod value_scripts;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{
    BoxFuture, Capabilities, LeaseStore, Result, SessionKey, SessionStore, StoreError, StoreErrorKind,
    StoreLease, StoredSession, SummaryEntry, fold_summary, uuid,
};

use self::keys::Names;
pub use self::options::RedisOptions;
use self::server::{NamedScript, Server};
use crate::acquisitions::Acquisitions;
use crate::unsure::UnsureAppends;

/// How much of a transcript is read at once, in bytes.
const PAGE: &str = "1048576";

/// Of how many sessions it is remembered how far they are, which saves a question with each append.
const MAX_KNOWN: usize = 1024;

/// How often something is begun anew that others change meanwhile. Each time, one of the others has come further.
const ATTEMPTS: usize = 1000;

/// The most entries that the server takes at once, with their uuids: it counts to 2^20.
const MAX_ENTRIES: usize = 500_000;

/// The version of what is stored.
const VERSION: u32 = 1;

static APPEND: LazyLock<NamedScript> =
    LazyLock::new(|| NamedScript::new("append", include_str!("redis/append.lua")));
static READ: LazyLock<NamedScript> =
    LazyLock::new(|| NamedScript::new("load a session", include_str!("redis/page.lua")));
static DELETE: LazyLock<NamedScript> =
    LazyLock::new(|| NamedScript::new("delete", include_str!("redis/delete.lua")));
static DELETE_PART: LazyLock<NamedScript> =
    LazyLock::new(|| NamedScript::new("delete", include_str!("redis/delete_part.lua")));
static STEP: LazyLock<NamedScript> =
    LazyLock::new(|| NamedScript::new("bring what is stored up to date", include_str!("redis/step.lua")));

/// Keeps sessions in Redis or Valkey: one server or a cluster. Cheap to clone; all clones share a connection. Tested with Redis 7.0; it
/// uses only commands of Redis 5.
///
/// # Durability
///
/// Redis replies when a write is in memory. The server's configuration decides what an acknowledged append survives:
///
/// * The end of a program, however it ends: always.
/// * The end of the server, or of its machine: with `appendonly yes` and `appendfsync always` everything; with `everysec`, Redis'
///   default for append-only files, all but the last second or two; without `appendonly` only the last snapshot.
/// * A failover to a replica: what the replica had received. [`RedisOptions::replicas`] waits for it.
///
/// Lost data includes fencing numbers: two owners may then hold leases of the same number, which differ only in the owners' names. If
/// this is not acceptable, use `appendfsync always`, or another store.
///
/// Everything is in memory, each `uuid` twice. A server that evicts keys when its memory is full (`maxmemory-policy allkeys-…`)
/// is rejected; keys of this store never expire.
///
/// # Keys
///
/// `outrigger:{<project>/<session>}:` with `info`, `entries`, `uuids`, `parts` and `lease`, those of a part with its name behind;
/// `outrigger:{<project>}:sessions`, `outrigger:value:<name>` for shared values, and `outrigger:version`. `%`, `/` and braces in names are written as `%XX`.
///
/// The text in braces makes a cluster keep all of a session on one node, where each change is one script: an append compares the
/// lease, skips entries that are stored, and writes the summary, or does nothing at all. The list of a project is on a node of its own: it
/// may name deleted sessions, which are filtered out. A session whose first append was cut off between the two is listed
/// after the next program's append. Times are those of the node.
#[derive(Debug, Clone)]
pub struct RedisStore {
    shared: Arc<RedisInner>,
}

#[derive(Debug)]
struct RedisInner {
    server: Server,
    prefix: String,
    known: Mutex<HashMap<SessionKey, CachedSession>>,
    /// The names of appends. Sent again, one has the same name, and the server does not do it twice.
    unsure: UnsureAppends<String>,
    acquisitions: Acquisitions,
}

/// How far a session is, as far as this process knows. The script notices and reports what is stale.
#[derive(Debug, Clone, Default)]
struct CachedSession {
    /// The name of the newest append.
    newest: String,
    summary: String,
    /// The name of the first append of the transcript that we have put on the list of its project.
    listed: Option<String>,
}

impl RedisStore {
    /// Connects to one server: `redis://host:6379`. [`RedisOptions`] has more settings.
    ///
    /// # Cancel safety
    /// Dropped, the stored data is unchanged or upgraded.
    ///
    /// # Errors
    /// As [`RedisOptions::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        RedisOptions::new().connect(url).await
    }

    fn new(server: Server, prefix: String) -> Self {
        let shared = RedisInner {
            server,
            prefix,
            known: Mutex::default(),
            unsure: UnsureAppends::default(),
            acquisitions: Acquisitions::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Upgrades the stored data, safely beside other processes that do the same, and returns its version. Connecting does this too.
    ///
    /// # Cancel safety
    /// Dropped, the stored data is unchanged or upgraded.
    ///
    /// # Errors
    /// When the server fails, or the data was stored by a newer version of this crate.
    pub async fn migrate(&self) -> Result<u32> {
        let server = &self.shared.server;
        let key = keys::version(&self.shared.prefix);
        let mut ask = redis::cmd("GET");
        ask.arg(&key);
        loop {
            let version: Option<String> = server.query("look at its version", &ask).await?;
            let version = version.unwrap_or_else(|| "0".to_owned());
            let now: u32 = version.parse().map_err(|_| {
                let what = format!("{key} in Redis is {version:?}, which is no version of a session store");
                StoreError::new(StoreErrorKind::Damaged, what)
            })?;
            if now > VERSION {
                let what = format!(
                    "the session store has version {now}, and this program knows {VERSION}: update it"
                );
                return Err(StoreError::new(StoreErrorKind::Invalid, what));
            }
            if now == VERSION {
                return Ok(VERSION);
            }
            // Before the first version there was nothing that would have to be changed.
            let next = (now + 1).to_string();
            server.write(&STEP, &[&key], &[&version, &next]).await?;
        }
    }

    fn cached_sessions(&self) -> MutexGuard<'_, HashMap<SessionKey, CachedSession>> {
        // Nothing panics while it is held.
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, key: &SessionKey, known: CachedSession) {
        let mut all = self.cached_sessions();
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.insert(key.clone(), known);
    }

    fn names(&self, key: &SessionKey) -> Names {
        Names::of(&self.shared.prefix, key)
    }

    /// Appends, under the lease if there is one.
    async fn add(&self, key: &SessionKey, entries: &[RawJson], lease: Option<&StoreLease>) -> Result<()> {
        if entries.len() > MAX_ENTRIES {
            let what = format!(
                "{} entries are too many for Redis at once: append {MAX_ENTRIES} at most",
                entries.len()
            );
            return Err(StoreError::new(StoreErrorKind::Invalid, what));
        }
        let again = self.shared.unsure.take(key, entries);
        let is_repeated = again.is_some();
        let mut known = self.cached_sessions().get(key).cloned().unwrap_or_default();
        if is_repeated {
            // If it was done, it is not known here what the summary became.
            (known.newest, known.summary) = Default::default();
        }
        let name = again.unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string());
        let under_way = self.shared.unsure.begin(key, entries, name.clone());
        let done = self.add_as(&name, is_repeated, key, entries, lease, known).await;
        under_way.end(&done);
        done
    }

    /// Appends under this name: the same for all attempts, so that a repeated command does not add the entries twice.
    async fn add_as(
        &self,
        name: &str,
        is_repeated: bool,
        key: &SessionKey,
        entries: &[RawJson],
        lease: Option<&StoreLease>,
        mut known: CachedSession,
    ) -> Result<()> {
        let names = self.names(key);
        let keys = [
            names.lease.as_str(),
            &names.info,
            &names.entries,
            &names.uuids,
            &names.parts,
        ];
        let fence = lease.map(|lease| lease.fence.to_string()).unwrap_or_default();
        let owner = lease.map_or("", |lease| lease.owner.as_str());
        let part = key.subpath.as_deref().unwrap_or_default();
        let mut left = distinct(entries);
        for _ in 0..ATTEMPTS {
            let summary = match key.is_main() {
                true => Some(self.folded(key, &names, &known, &left).await?),
                false => None,
            };
            let mut arguments = vec![
                fence.as_str(),
                owner,
                name,
                &known.newest,
                summary.as_deref().unwrap_or_default(),
                part,
            ];
            for (uuid, entry) in &left {
                arguments.extend([uuid.as_deref().unwrap_or_default(), entry.get()]);
            }
            let answer = self.shared.server.write(&APPEND, &keys, &arguments).await?;
            match (answer.first().map(String::as_str), &answer[..]) {
                (Some("ok"), [_, born]) => {
                    let Some(summary) = summary else { return Ok(()) };
                    if !left.is_empty() && !is_repeated {
                        known.newest = name.to_owned();
                        known.summary = summary;
                    }
                    return self.list(key, born, known).await;
                }
                (Some("fenced"), _) => {
                    return Err(lease.map_or_else(|| strange(&APPEND, &answer), crate::is_over));
                }
                (Some("changed"), [_, newest, summary, present]) => {
                    known.newest.clone_from(newest);
                    known.summary.clone_from(summary);
                    let mut present = present.bytes();
                    left.retain(|_| present.next() != Some(b'1'));
                }
                _ => return Err(strange(&APPEND, &answer)),
            }
        }
        let what = format!("too many write to {key} at once: try again");
        Err(StoreError::new(StoreErrorKind::Failed, what))
    }

    /// The summary once these are added.
    async fn folded(
        &self,
        key: &SessionKey,
        names: &Names,
        known: &CachedSession,
        added: &[(Option<String>, &RawJson)],
    ) -> Result<String> {
        let added = added.iter().map(|(_, entry)| (*entry).clone());
        let before = crate::summary_data(known.summary.as_bytes());
        let folded = if let Some(before) = before {
            let before = SummaryEntry::new(&key.session_id, 0, before);
            fold_summary(Some(&before), key, &added.collect::<Vec<_>>())
        } else if known.newest.is_empty() {
            fold_summary(None, key, &added.collect::<Vec<_>>())
        } else {
            // It is damaged. If others append meanwhile, the script says so.
            let stored = self.read(names).await?.flatten().unwrap_or_default();
            let all = stored.into_iter().filter_map(decode).chain(added);
            fold_summary(None, key, &all.collect::<Vec<_>>())
        };
        Ok(folded.data.get().to_owned())
    }

    async fn parts(&self, key: &SessionKey) -> Result<Vec<String>> {
        let mut command = redis::cmd("SMEMBERS");
        command.arg(self.names(key).parts);
        let server = &self.shared.server;
        server.query("list the parts of a session", &command).await
    }

    async fn delete_part(&self, key: &SessionKey, part: &str) -> Result<()> {
        let names = self.names(key);
        let keys = [names.info.as_str(), &names.entries, &names.uuids, &names.parts];
        self.shared
            .server
            .write(&DELETE_PART, &keys, &[part])
            .await
            .map(drop)
    }

    async fn delete_session(&self, key: &SessionKey) -> Result<()> {
        let names = self.names(key);
        for _ in 0..ATTEMPTS {
            let parts = self.parts(key).await?;
            let of_parts: Vec<Names> = parts
                .iter()
                .map(|part| self.names(&key.with_subpath(part)))
                .collect();
            let mut keys = vec![names.info.as_str(), &names.entries, &names.uuids, &names.parts];
            for part in &of_parts {
                keys.extend([part.info.as_str(), &part.entries, &part.uuids]);
            }
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            let answer = self.shared.server.write(&DELETE, &keys, &parts).await?;
            match (answer.first().map(String::as_str), &answer[..]) {
                (Some("ok"), [_, born]) => {
                    self.cached_sessions().remove(key);
                    return self.unlist(key, born).await;
                }
                // Another process has added a part.
                (Some("changed"), _) => {}
                _ => return Err(strange(&DELETE, &answer)),
            }
        }
        let what = format!("others add parts to {key} faster than it can be deleted: try again");
        Err(StoreError::new(StoreErrorKind::Failed, what))
    }

    /// All of a transcript; the outer `None` if it was deleted meanwhile.
    async fn read(&self, names: &Names) -> Result<Option<Option<Vec<Vec<u8>>>>> {
        let keys = [names.info.as_str(), &names.entries];
        let mut entries: Vec<Vec<u8>> = Vec::new();
        let mut began: Option<Vec<u8>> = None;
        loop {
            let at = entries.len().to_string();
            let mut page = self
                .shared
                .server
                .read(&READ, &keys, &[&at, PAGE])
                .await?
                .into_iter();
            let born = page.next();
            match (&began, born) {
                (None, None) => return Ok(Some(None)),
                (None, born) => began = born,
                (Some(_), born) if born != began => return Ok(None),
                (Some(_), _) => {}
            }
            let before = entries.len();
            entries.extend(page);
            if entries.len() == before {
                return Ok(Some(Some(entries)));
            }
        }
    }
}

/// Each with its uuid; of those with the same one the first.
fn distinct(entries: &[RawJson]) -> Vec<(Option<String>, &RawJson)> {
    let mut seen = HashSet::new();
    let entries = entries.iter().map(|entry| (uuid(entry), entry));
    entries
        .filter(|(uuid, _)| uuid.as_ref().is_none_or(|uuid| seen.insert(uuid.clone())))
        .collect()
}

fn strange(work: &NamedScript, answer: &[String]) -> StoreError {
    let what = format!("{work:?} answered {answer:.200?}");
    StoreError::new(StoreErrorKind::Damaged, what)
}

/// An entry; `None` if it is damaged.
fn decode(entry: Vec<u8>) -> Option<RawJson> {
    RawJson::from_text(String::from_utf8(entry).ok()?).ok()
}

fn damaged(key: &SessionKey) -> StoreError {
    StoreError::new(
        StoreErrorKind::Damaged,
        format!("{key} can't be read from the session store"),
    )
}

impl SessionStore for RedisStore {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if entries.is_empty() {
                return Ok(());
            }
            self.add(key, entries, None).await
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        Box::pin(async move {
            let names = self.names(key);
            for _ in 0..ATTEMPTS {
                let Some(found) = self.read(&names).await? else {
                    continue;
                };
                let entries = found.map(|found| found.into_iter().map(decode).collect::<Option<_>>());
                return entries
                    .map(|entries| entries.ok_or_else(|| damaged(key)))
                    .transpose();
            }
            let what = format!("{key} is deleted again and again while it is loaded");
            Err(StoreError::new(StoreErrorKind::Failed, what))
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        Box::pin(async move {
            let listed = self.listed(project_key, &["mtime"]).await?;
            let session = |(id, fields): (String, Vec<_>)| StoredSession::new(id, time(&fields));
            Ok(listed.into_iter().map(session).collect())
        })
    }

    fn list_session_summaries<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SummaryEntry>>> {
        Box::pin(async move {
            let listed = self.listed(project_key, &["mtime", "summary"]).await?;
            let summary = |(id, mut fields): (String, Vec<Option<Vec<u8>>>)| {
                let data = crate::summary_data(&fields.pop().flatten()?)?;
                Some(SummaryEntry::new(id, time(&fields), data))
            };
            Ok(listed.into_iter().filter_map(summary).collect())
        })
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match &key.subpath {
                Some(part) => self.delete_part(key, part).await,
                None => self.delete_session(key).await,
            }
        })
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(self.parts(key))
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

/// The first of the fields.
fn time(fields: &[Option<Vec<u8>>]) -> u64 {
    let time = fields.first().and_then(Option::as_deref);
    let time = time.and_then(|time| std::str::from_utf8(time).ok());
    time.and_then(|time| time.parse().ok()).unwrap_or_default()
}
