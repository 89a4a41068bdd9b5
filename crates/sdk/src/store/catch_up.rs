//! Appends to a store what it lacks and this machine still has, when a session is resumed here.
//!
//! A session in the user's config directory has its transcripts there. A session in a private directory leaves its transcripts
//! there, and nothing else, if it ends before the store has everything.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outrigger_protocol::RawJson;
use outrigger_sessions::SessionId;
use outrigger_sessions::store::{
    Difference, SessionKey, StoreComparison, StoreError, Transcripts, compare, portions,
};

use super::resume::{Restored, StoredSession, load};
use super::resume_dir::{GIVEN, OWNED, PREFIX, is_left_behind, is_own};
use crate::error::Result;
use crate::lease::Ownership;
use crate::options::RunAs;
use crate::options::handover::as_user;
use crate::remove_tree::remove_tree;
use crate::store_config::{Keeping, StoreFailure, call, failed};

/// How long unused transcripts are kept: the CLI's own default for a config directory.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The result.
#[derive(Debug, Default)]
pub(crate) struct Healed {
    /// Messages for the user: what stays here, and why.
    pub(crate) notes: Vec<(SessionKey, String)>,
    /// The session as the store has it now.
    pub(crate) restored: Option<Restored>,
}

/// Loads a session to resume, after appending to the store what it lacks. `config` is the user's config directory, if the session
/// may be there; with `is_fork` the session itself is not resumed.
pub(crate) async fn heal(
    found: StoredSession,
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
    // What the store got of a session that stays on the user's disk.
    let mut only_here = None;
    for place in places.await.unwrap_or_default() {
        // A session that only the user's disk has goes on there: the store gets the beginning, too.
        let stays = healed.restored.is_none() && !place.is_private;
        if stays && is_fork {
            continue;
        }
        let there = healed.restored.as_ref().or(only_here.as_ref());
        let Some(missing) = read(&place, &key, there).await else {
            continue;
        };
        let Brought {
            entries: brought,
            refused,
        } = bring(&keeping, &key, &missing, ownership).await?;
        if brought > 0 {
            tracing::info!(%key, entries = brought, file = %place.file.display(), "brought into the session store");
        }
        if brought > 0 {
            let loaded = load(StoredSession::of(&keeping, &key)).await?;
            match stays {
                true => only_here = loaded,
                false => healed.restored = loaded,
            }
        }
        let mut is_kept = !refused.is_empty();
        for (key, why) in refused {
            let file = place.file.display();
            let note = format!(
                "the session store refuses for good what {file} has and it lacks ({why}): it stays there"
            );
            healed.notes.push((key, note));
        }
        for found in missing
            .iter()
            .filter(|found| found.standing == StoreComparison::Diverged)
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
    /// Removes the file, and its directory if nothing else is in it.
    fn remove(&self) {
        let _ = as_user(self.user, || {
            fs::remove_file(&self.file)?;
            remove_tree(&self.file.with_extension(""))
        });
        if newest_below(&config_in(&self.root).join("projects")).is_none()
            && let Err(error) = remove_tree(&self.root)
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
        // another user is read with that user's rights, and for that user's sessions only: who shares a group with another could
        // plant something for that one.
        if is_ours
            && is_private(&root)
            && is_for(&root, &config, user)
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

/// The CLI's directory in a private one: its own, where that was made for another user, who may be this one.
fn config_in(root: &Path) -> PathBuf {
    let given = root.join(GIVEN);
    let is_given = fs::symlink_metadata(&given)
        .is_ok_and(|meta| meta.is_dir() && (!is_own(&meta) || !root.join("projects").exists()));
    if is_given { given } else { root.to_owned() }
}

/// Whether the CLI's directory in a private one was made for this user.
fn is_for(root: &Path, config: &Path, user: Option<RunAs>) -> bool {
    match user {
        None => config == root,
        #[cfg(unix)]
        Some(user) => {
            let uid = fs::symlink_metadata(config).map(|meta| std::os::unix::fs::MetadataExt::uid(&meta));
            config != root && uid.is_ok_and(|uid| uid == user.uid)
        }
        #[cfg(not(unix))]
        Some(_) => false,
    }
}

/// Whether the path is a directory of this program's user that nobody else can change.
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

/// Whether the path is of the right kind, and no link.
fn is_real(path: &Path, is_kind: impl Fn(&fs::FileType) -> bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| is_kind(&meta.file_type()))
}

/// The entries that the store lacks; `None` if the transcript cannot be read, which is reported to the user.
async fn read(place: &Left, key: &SessionKey, restored: Option<&Restored>) -> Option<Vec<Difference>> {
    let (file, wanted) = (place.file.clone(), key.clone());
    let there = restored
        .map(|restored| Arc::clone(restored.transcripts()))
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

/// The appended entries, and the transcripts that a store rejects, with the reason.
#[derive(Default)]
struct Brought {
    entries: usize,
    refused: Vec<(SessionKey, String)>,
}

/// Appends the missing entries. Entries that the store rejects for good do not prevent a resume.
async fn bring(
    keeping: &Keeping,
    key: &SessionKey,
    missing: &[Difference],
    ownership: Option<&Arc<Ownership>>,
) -> Result<Brought> {
    let ownership = ownership.filter(|own| own.is_in_store());
    let mut brought = Brought::default();
    for difference in missing {
        let key = match &difference.subpath {
            Some(subpath) => key.with_subpath(subpath),
            None => key.clone(),
        };
        for portion in portions(difference.to_push()) {
            let entries = Arc::new(portion.to_vec());
            match append(keeping, &key, entries, ownership).await {
                Ok(()) => brought.entries += portion.len(),
                Err(failure) if failure.may_pass() || failure.is_refusal() => {
                    let what = format!("append of what this machine has of {key} and the store lacks");
                    return Err(failed(what, failure));
                }
                Err(failure) => {
                    brought.refused.push((key.clone(), failure.text()));
                    break;
                }
            }
        }
    }
    Ok(brought)
}

async fn append(
    keeping: &Keeping,
    key: &SessionKey,
    entries: Arc<Vec<RawJson>>,
    ownership: Option<&Arc<Ownership>>,
) -> std::result::Result<(), StoreFailure> {
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

/// Makes the transcripts below, which the store has, a second older than `age`. Nobody else can enter yet.
pub(super) fn set_times(directory: &Path, age: SystemTime) -> io::Result<()> {
    let Some(older) = age.checked_sub(Duration::from_secs(1)) else {
        return Ok(());
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() => set_times(&entry.path(), age)?,
            _ => fs::File::options()
                .write(true)
                .open(entry.path())?
                .set_modified(older)?,
        }
    }
    Ok(())
}

/// Removes a private directory, except for transcripts that are newer than what its store had. Those go, too, when they are old.
///
/// The owner of the CLI's directory may plant links in it. No link is followed: the time is that of the directory entry, and a
/// link is removed as a link.
pub(super) fn strip(directory: &Path) -> io::Result<()> {
    let written = fs::symlink_metadata(directory.join(OWNED)).and_then(|meta| meta.modified());
    let config = config_in(directory);
    let newest = newest_below(&config.join("projects"));
    let is_news = match (&written, newest) {
        (_, None) => false,
        (Ok(written), Some(newest)) => {
            newest > *written && SystemTime::now().duration_since(newest).unwrap_or_default() < KEPT
        }
        // Nobody can tell what is new in it.
        (Err(_), Some(_)) => true,
    };
    if !is_news {
        return remove_tree(directory);
    }
    let mut done = Ok(());
    for entry in fs::read_dir(&config)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "projects" || name == OWNED {
            continue;
        }
        let removed = match entry.file_type()?.is_dir() {
            true => remove_tree(&entry.path()),
            false => fs::remove_file(entry.path()),
        };
        done = done.and(removed);
    }
    done
}

/// How deep transcripts lie at most, and how many files are looked at: whoever has the directory may fill it.
const MOST_DEPTH: usize = 16;
const MOST_FILES: usize = 100_000;

/// When the newest of the files below was written to; `None` where there is none. Where there is more than can be looked at, one may be
/// as new as can be.
#[cfg(unix)]
fn newest_below(directory: &Path) -> Option<SystemTime> {
    use rustix::fs::{AtFlags, Dir, FileType, Mode, open, openat, statat};

    use crate::options::handover::on_a_directory;

    let mut newest = None;
    let mut files = 0;
    let top = open(directory, on_a_directory(), Mode::empty()).and_then(Dir::new);
    let mut above: Vec<Dir> = top.into_iter().collect();
    loop {
        let depth = above.len();
        let Some(here) = above.last_mut() else {
            return newest;
        };
        let Some(Ok(entry)) = here.next() else {
            above.pop();
            continue;
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        files += 1;
        if files > MOST_FILES || depth > MOST_DEPTH {
            return Some(SystemTime::now());
        }
        let Ok(at) = here.fd() else { continue };
        let Ok(stat) = statat(at, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let below = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => openat(at, name, on_a_directory(), Mode::empty()).and_then(Dir::new),
            FileType::RegularFile => {
                newest = newest.max(Some(time(stat.st_mtime, stat.st_mtime_nsec as u32)));
                continue;
            }
            _ => continue,
        };
        above.extend(below);
    }
}

/// A point in time as the system tells it of a file. Whoever has the file may say anything.
#[cfg(unix)]
fn time(seconds: i64, nanos: u32) -> SystemTime {
    let since = u64::try_from(seconds).map(|seconds| Duration::new(seconds, nanos));
    let time = since
        .ok()
        .and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(not(unix))]
fn newest_below(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let time = |entry: fs::DirEntry| match entry.file_type().ok()? {
        kind if kind.is_dir() => newest_below(&entry.path()),
        kind if kind.is_file() => entry.metadata().ok()?.modified().ok(),
        _ => None,
    };
    entries.filter_map(time).max()
}

#[cfg(test)]
mod tests {
    use super::super::resume_dir::Filled;
    use super::*;
    use crate::options::Resumed as _;

    fn names(place: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(place)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

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

    /// The clock may be set back while the CLI writes.
    #[test]
    fn what_is_written_under_an_older_clock_is_news() {
        let parent = tempfile::tempdir().unwrap();
        let made = || {
            let filled = Filled::make_in(parent.path(), None).unwrap();
            let project = filled.config().join("projects/-p");
            fs::create_dir_all(&project).unwrap();
            fs::write(project.join("x.jsonl"), "{}\n").unwrap();
            let place = filled.hand_over().unwrap();
            (place.owned_by_user()[0].clone(), place)
        };
        // What the store has is no news.
        let (path, place) = made();
        place.settled().store(false, std::sync::atomic::Ordering::Release);
        drop(place);
        assert!(!path.exists());
        let (path, place) = made();
        place.settled().store(false, std::sync::atomic::Ordering::Release);
        let file = path.join("projects/-p/x.jsonl");
        fs::write(&file, "{}\n{}\n").unwrap();
        let file = fs::File::options().write(true).open(file).unwrap();
        let before = SystemTime::now() - Duration::from_secs(3 * 3600);
        file.set_modified(before).unwrap();
        drop(place);
        assert_eq!(names(&path), [OWNED, "projects"]);
    }

    /// Whoever has the directory may put links in it, and more than anybody can look at.
    #[test]
    #[cfg(unix)]
    fn what_is_looked_at_for_news_is_no_link_and_has_a_bound() {
        use std::os::unix::fs::symlink;

        let parent = tempfile::tempdir().unwrap();
        let elsewhere = parent.path().join("elsewhere");
        fs::create_dir_all(elsewhere.join("deep")).unwrap();
        fs::write(elsewhere.join("deep/x.jsonl"), "{}").unwrap();
        assert!(newest_below(&elsewhere).is_some());
        symlink(&elsewhere, parent.path().join("projects")).unwrap();
        assert_eq!(newest_below(&parent.path().join("projects")), None);
        fs::create_dir(parent.path().join("inner")).unwrap();
        symlink(&elsewhere, parent.path().join("inner/link")).unwrap();
        symlink(
            elsewhere.join("deep/x.jsonl"),
            parent.path().join("inner/x.jsonl"),
        )
        .unwrap();
        assert_eq!(newest_below(&parent.path().join("inner")), None);
        // Too deep to look: it is kept.
        let deep = parent.path().join("deep");
        fs::create_dir_all(deep.join("d/".repeat(MOST_DEPTH + 2))).unwrap();
        assert!(newest_below(&deep).is_some());
        assert_eq!(time(-1, 0), SystemTime::UNIX_EPOCH);
        assert!(time(i64::MAX, 0) >= SystemTime::UNIX_EPOCH);
    }

    /// A program may say that its CLIs run as the user that it has itself.
    #[test]
    #[cfg(unix)]
    fn a_place_for_the_same_user_is_known_again() {
        let parent = tempfile::tempdir().unwrap();
        let user = RunAs {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        };
        let filled = Filled::make_in(parent.path(), Some(user)).unwrap();
        let root = filled.config().parent().unwrap().to_owned();
        assert_eq!(config_in(&root), filled.config());
        let (own, other) = (
            Some(user),
            Some(RunAs {
                uid: user.uid + 1,
                ..user
            }),
        );
        assert!(is_for(&root, filled.config(), own));
        assert!(!is_for(&root, filled.config(), other) && !is_for(&root, filled.config(), None));
        assert!(is_for(&root, &root, None) && !is_for(&root, &root, own));
    }
}
