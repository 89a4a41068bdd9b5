//! What a store did not take in time and is still on this machine: found, and brought, when its session goes on from here.
//!
//! A session in the user's config directory has its transcripts there. Of one in a private directory they are kept in that
//! directory, without anything else, when it ends before the store has everything, however it ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outrigger_protocol::RawJson;
use outrigger_sessions::SessionId;
use outrigger_sessions::store::{Difference, SessionKey, Standing, StoreError, Transcripts, compare};

use super::Keeping;
use super::call::{Failure, call};
use super::place::{GIVEN, OWNED, PREFIX, is_left_behind, is_own};
use super::resume::{Found, Restored, failed, load};
use crate::error::Result;
use crate::lease::Ownership;
use crate::options::RunAs;
use crate::options::handover::as_user;

/// How long transcripts that nobody asks for are kept, like those in a config directory unless the user says otherwise.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// How much one append brings at most, unless one entry is larger.
const MOST_ENTRIES: usize = 500;
const MOST_BYTES: usize = 1 << 20;

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Healed {
    /// What to tell the user: what is kept here, and why.
    pub(crate) notes: Vec<(SessionKey, String)>,
    /// The session as the store has it now.
    pub(crate) restored: Option<Restored>,
}

/// Loads a session that is gone on with, after what this machine has and the store lacks was brought there. `config` is the user's
/// config directory, if the session may be there; `is_fork` says that the session itself does not go on.
pub(crate) async fn heal(
    found: Found,
    config: Option<PathBuf>,
    is_fork: bool,
    user: Option<RunAs>,
    ownership: Option<&Arc<Ownership>>,
) -> Result<Healed> {
    let (keeping, key) = (found.keeping().clone(), found.key().clone());
    let mut healed = Healed {
        restored: load(found).await?,
        ..Healed::default()
    };
    let wanted = key.clone();
    let places = tokio::task::spawn_blocking(move || places_of(&wanted, config.as_deref(), user));
    for place in places.await.unwrap_or_default() {
        // A session that only the user's disk has goes on there: the store gets the beginning, too.
        let stays = healed.restored.is_none() && !place.is_private;
        if stays && is_fork {
            continue;
        }
        let Some(missing) = read(&place, &key, healed.restored.as_ref()).await else {
            continue;
        };
        let brought = bring(&keeping, &key, &missing, ownership).await?;
        if brought > 0 {
            tracing::info!(%key, entries = brought, file = %place.file.display(), "brought into the session store");
        }
        if brought > 0 && !stays {
            healed.restored = load(Found::of(&keeping, &key)).await?;
        }
        let mut is_kept = false;
        for found in missing
            .iter()
            .filter(|found| found.standing == Standing::Diverged)
        {
            is_kept = true;
            healed.notes.push((key.clone(), diverged(&place.file, found)));
        }
        if place.is_private && !is_kept {
            let _ = tokio::task::spawn_blocking(move || place.remove()).await;
        }
    }
    Ok(healed)
}

fn diverged(file: &Path, found: &Difference) -> String {
    format!(
        "{} has {} entries that the session store lacks, and the session went on elsewhere before the store had them. The session goes \
         on from the store; the file is kept as it is. `outrigger sessions import` makes a session of its own of it",
        file.display(),
        found.lacks.len()
    )
}

/// A transcript on this machine that may have more than the store.
#[derive(Debug)]
struct Left {
    file: PathBuf,
    /// The private directory that was kept for it.
    root: PathBuf,
    is_private: bool,
    /// Who can write there, and with whose rights it is read.
    user: Option<RunAs>,
}

impl Left {
    /// Removes it, and its directory if nothing else is in it.
    fn remove(&self) {
        let _ = as_user(self.user, || {
            fs::remove_file(&self.file)?;
            fs::remove_dir_all(self.file.with_extension(""))
        });
        if transcripts_below(&config_in(&self.root).join("projects")).is_empty()
            && let Err(error) = fs::remove_dir_all(&self.root)
        {
            tracing::warn!(%error, path = %self.root.display(), "what was kept for a session store can't be removed");
        }
    }
}

fn places_of(key: &SessionKey, config: Option<&Path>, user: Option<RunAs>) -> Vec<Left> {
    // The names become a path.
    let is_name = |name: &str| !name.contains(['/', '\\']) && !matches!(name, "" | "." | "..");
    if SessionId::new(&key.session_id).is_err() || !is_name(&key.project_key) {
        return Vec::new();
    }
    let name = Path::new("projects")
        .join(&key.project_key)
        .join(format!("{}.jsonl", key.session_id));
    let is_there = |file: &Path| as_user(user, || fs::metadata(file)).is_ok_and(|meta| meta.is_file());
    let mut places = Vec::new();
    if let Some(config) = config
        && is_there(&config.join(&name))
    {
        places.push(Left {
            file: config.join(&name),
            root: config.to_owned(),
            is_private: false,
            user,
        });
    }
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in entries {
        let is_ours = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(PREFIX));
        let root = entry.path();
        let config = config_in(&root);
        // The directory for temporary files is everybody's, and what is taken from here becomes a conversation. What was made for
        // another user is read with that user's rights, and for that user's sessions only.
        if is_ours
            && is_private(&root)
            && (config != root) == user.is_some()
            && is_real(&root.join(OWNED), fs::FileType::is_file)
            && is_real(&config.join("projects"), fs::FileType::is_dir)
            && is_real(&config.join(&name), fs::FileType::is_file)
            && is_left_behind(&root)
        {
            places.push(Left {
                file: config.join(&name),
                root,
                is_private: true,
                user,
            });
        }
    }
    places
}

/// The CLI's directory in a private one: its own, where that was made for another user.
fn config_in(root: &Path) -> PathBuf {
    let given = root.join(GIVEN);
    let is_given = fs::symlink_metadata(&given).is_ok_and(|meta| meta.is_dir() && !is_own(&meta));
    if is_given { given } else { root.to_owned() }
}

/// Whether it is a directory of this program's user that nobody else can change.
fn is_private(root: &Path) -> bool {
    let Ok(meta) = fs::symlink_metadata(root) else {
        return false;
    };
    #[cfg(unix)]
    let is_closed = std::os::unix::fs::MetadataExt::mode(&meta) & 0o067 == 0;
    #[cfg(not(unix))]
    let is_closed = true;
    meta.is_dir() && is_own(&meta) && is_closed
}

/// Whether it is what it should be, and no link.
fn is_real(path: &Path, is_kind: impl Fn(&fs::FileType) -> bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| is_kind(&meta.file_type()))
}

/// What the place has and the store lacks; `None` where it can't be read, which the user is told.
async fn read(place: &Left, key: &SessionKey, restored: Option<&Restored>) -> Option<Vec<Difference>> {
    let (file, wanted) = (place.file.clone(), key.clone());
    let there = restored
        .map(|restored| restored.transcripts().clone())
        .unwrap_or_default();
    let user = place.user;
    let compared = tokio::task::spawn_blocking(move || {
        let read = as_user(user, || Ok(Transcripts::of_file(&file)));
        let (_, here) = read.map_err(|error| {
            StoreError::failed(
                "a transcript here cannot be read with the rights of its user",
                error,
            )
        })??;
        Ok::<_, StoreError>(compare(&here, &there))
    });
    match compared.await {
        Ok(Ok(differences)) => Some(differences),
        Ok(Err(error)) => {
            tracing::warn!(key = %wanted, error = error.chain(), "a transcript here can't be held against the session store");
            None
        }
        Err(_) => None,
    }
}

/// Appends what is missing; how many entries that were.
async fn bring(
    keeping: &Keeping,
    key: &SessionKey,
    missing: &[Difference],
    ownership: Option<&Arc<Ownership>>,
) -> Result<usize> {
    let ownership = ownership.filter(|own| own.is_in_store());
    let mut brought = 0;
    for difference in missing {
        let key = match &difference.subpath {
            Some(subpath) => key.with_subpath(subpath),
            None => key.clone(),
        };
        let mut rest = difference.to_push();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(batch(rest));
            rest = later;
            brought += batch.len();
            let entries = Arc::new(batch.to_vec());
            append(keeping, &key, entries, ownership)
                .await
                .map_err(|failure| {
                    failed(
                        format!("append of what this machine has of {key} and the store lacks"),
                        failure,
                    )
                })?;
        }
    }
    Ok(brought)
}

async fn append(
    keeping: &Keeping,
    key: &SessionKey,
    entries: Arc<Vec<RawJson>>,
    ownership: Option<&Arc<Ownership>>,
) -> std::result::Result<(), Failure> {
    match ownership {
        Some(own) => {
            own.append(keeping.load_timeout, &keeping.store, key, entries)
                .await
        }
        None => {
            let (store, key) = (Arc::clone(&keeping.store), key.clone());
            call(
                keeping.load_timeout,
                async move { store.append(&key, &entries).await },
            )
            .await
        }
    }
}

/// How many entries go into one append.
fn batch(entries: &[RawJson]) -> usize {
    let mut bytes = 0;
    let fits = entries.iter().take(MOST_ENTRIES).take_while(|entry| {
        bytes += entry.get().len();
        bytes <= MOST_BYTES
    });
    fits.count().max(1)
}

/// Removes a private directory, except for transcripts that are newer than what its store had. Those go, too, when they are old.
///
/// Whoever has the CLI's directory may plant links in it. None is followed: what is looked at is the time of a file's own entry, and
/// what has the name of a link is removed as one.
pub(super) fn strip(directory: &Path) -> io::Result<()> {
    let written = fs::symlink_metadata(directory.join(OWNED)).and_then(|meta| meta.modified());
    let config = config_in(directory);
    let newest = transcripts_below(&config.join("projects")).into_iter().max();
    let is_news = match (&written, newest) {
        (_, None) => false,
        (Ok(written), Some(newest)) => {
            newest > *written && SystemTime::now().duration_since(newest).unwrap_or_default() < KEPT
        }
        // Nobody can tell what is new in it.
        (Err(_), Some(_)) => true,
    };
    if !is_news {
        return fs::remove_dir_all(directory);
    }
    let mut done = Ok(());
    for entry in fs::read_dir(&config)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "projects" || name == OWNED {
            continue;
        }
        let removed = match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        };
        done = done.and(removed);
    }
    done
}

/// When the files below were written to.
fn transcripts_below(directory: &Path) -> Vec<SystemTime> {
    let mut times = Vec::new();
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => times.extend(transcripts_below(&entry.path())),
            Ok(kind) if kind.is_file() => {
                times.extend(entry.metadata().and_then(|meta| meta.modified()));
            }
            _ => {}
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transcripts_with_news_stay() {
        let parent = tempfile::tempdir().unwrap();
        let made = |name: &str, transcript: bool, age: Duration| {
            let place = parent.path().join(name);
            fs::create_dir_all(place.join("projects/-p/x/subagents")).unwrap();
            fs::create_dir_all(place.join("plugins/deep")).unwrap();
            fs::write(place.join(".credentials.json"), "secret").unwrap();
            fs::write(place.join(OWNED), "").unwrap();
            let file = place.join("projects/-p/x/subagents/agent.jsonl");
            if transcript {
                fs::write(&file, "{}\n").unwrap();
                let at = SystemTime::now() - age;
                let file = fs::File::options().write(true).open(&file).unwrap();
                file.set_modified(at).unwrap();
                let owned = fs::File::options().write(true).open(place.join(OWNED));
                owned.unwrap().set_modified(at - Duration::from_secs(1)).unwrap();
            }
            place
        };
        let names = |place: &Path| {
            let mut names: Vec<_> = fs::read_dir(place)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let news = made("news", true, Duration::ZERO);
        for _ in 0..2 {
            strip(&news).unwrap();
            assert_eq!(names(&news), [OWNED, "projects"]);
        }
        let none = made("none", false, Duration::ZERO);
        strip(&none).unwrap();
        assert!(!none.exists());
        let old = made("old", true, KEPT + Duration::from_secs(9));
        strip(&old).unwrap();
        assert!(!old.exists());
        // What the store had is no news.
        let same = made("same", true, Duration::from_secs(60));
        let owned = fs::File::options().write(true).open(same.join(OWNED)).unwrap();
        owned.set_modified(SystemTime::now()).unwrap();
        strip(&same).unwrap();
        assert!(!same.exists());
    }

    #[test]
    fn appends_are_cut() {
        let entry = |size: usize| RawJson::from_text(format!("\"{}\"", "x".repeat(size))).unwrap();
        assert_eq!(batch(&vec![entry(1); 900]), 500);
        assert_eq!(batch(&vec![entry(400 << 10); 5]), 2);
        assert_eq!(batch(&[entry(3 << 20)]), 1);
    }
}
