//! The files that a session works on: git worktrees made for sessions, and what turns changed.
//!
//! All of this is outside of the log. The log has what is to be there ([`Worktree`]); what is missing of it is made before a process starts. So a host
//! that is killed at any point begins the missing part anew.

mod branches;
mod registered;
mod setup;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use outrigger::SessionId;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::error::{HostError, Result};
use crate::event::{SessionRecord, Worktree};
use crate::git::Git;

/// Where the tree is that a session began with.
const START: &str = "refs/outrigger/start";

/// Where the tree is that the last turn began with.
const TURN: &str = "refs/outrigger/turn";

/// The longest list of what the user of a repository ignores that is copied, in bytes.
const EXCLUDE_LIMIT: u64 = 1024 * 1024;

/// What is kept of the files of sessions, and the git worktrees that sessions may have.
///
/// Nothing that a repository says is run: no hooks, filters, drivers or monitors, and nothing is fetched. So files that a filter would change (as
/// Git LFS does) are in a new worktree as they are stored; the set-up command may change that.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkspacePolicy {
    /// Where the host keeps worktrees and the state of files. It should be in no root, and in no repository. It is created for this user alone.
    pub directory: PathBuf,
    /// Whether clients may have worktrees made; on by default.
    pub worktrees: bool,
    /// Whether the state of the files is recorded before each turn, for [`SessionHost::diff`](crate::SessionHost::diff); on by default. Files that
    /// git ignores are not in it. Files that are in no repository are copied into [`directory`](Self::directory), compressed.
    pub snapshots: bool,
    /// A program with its arguments that is run in a new worktree before the first process starts; none by default. When it fails, the session is
    /// `failed`, and the next prompt runs it again. Its environment has `PATH`, `HOME`, `USER`, `LANG`, `TMPDIR`, the ids of the session and the
    /// branch (`OUTRIGGER_SESSION_ID`, `OUTRIGGER_BRANCH`), and [`setup_env`](Self::setup_env).
    pub setup: Vec<String>,
    /// More variables for the set-up command.
    pub setup_env: Vec<(String, String)>,
    /// How long the set-up command may take; 10 minutes by default. Then it is killed with all that it started.
    pub setup_deadline: Duration,
    /// How long one run of git may take; 60 s by default.
    pub git_deadline: Duration,
    /// How long a diff may be, in bytes; 4 MiB by default. A longer one is cut.
    pub diff_limit: u64,
    /// The most worktrees at once; 256 by default. Those count that sessions have, made or not yet made, and those that were kept since there is work in
    /// them. A session with a further one is refused.
    pub max_worktrees: usize,
    /// When a worktree without work in it is removed. One with changes, with commits of its own, or with repositories in it, such as submodules that
    /// somebody has checked out, is kept.
    pub clean_up: CleanUp,
}

/// When a worktree without work in it is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CleanUp {
    /// The worktree is removed when its session is archived.
    Archived,
    /// The worktree is removed when its session is deleted.
    #[default]
    Deleted,
    /// The workspace is never removed.
    Never,
}

impl WorkspacePolicy {
    /// Worktrees and states of files in this directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            worktrees: true,
            snapshots: true,
            setup: Vec::new(),
            setup_env: Vec::new(),
            setup_deadline: Duration::from_secs(600),
            git_deadline: Duration::from_secs(60),
            diff_limit: 4 * 1024 * 1024,
            max_worktrees: 256,
            clean_up: CleanUp::default(),
        }
    }

    /// A worktree without links, if it is where the host makes worktrees. Beside it is the git directory of the host, whose configuration nobody else
    /// may write.
    pub(crate) fn tree(&self, worktree: &Worktree) -> Option<PathBuf> {
        let path = Path::new(&worktree.path);
        let own = self.directory.canonicalize().ok()?;
        let own = SessionWorkspace(own.join(path.parent()?.file_name()?)).tree();
        (path.canonicalize().ok()? == own).then_some(own)
    }
}

/// A git worktree that is to be made for a new session.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NewWorktree {
    /// The name of the new branch; `outrigger/` and the session's id if unset.
    pub branch: Option<String>,
    /// The commit that the branch begins at, in any form that git knows; `HEAD` if unset.
    pub base: Option<String>,
}

/// The most diffs that a host makes at once.
const DIFFS: usize = 4;

/// The diffs that are made: of a session one at a time, and of all sessions a few, since each is as much work for the machine as all files of a session.
#[derive(Debug)]
pub(crate) struct DiffTurns {
    of_sessions: Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>,
    all: Arc<Semaphore>,
}

impl Default for DiffTurns {
    fn default() -> Self {
        Self {
            of_sessions: Mutex::default(),
            all: Arc::new(Semaphore::new(DIFFS)),
        }
    }
}

/// A diff is made until this is dropped.
pub(crate) struct DiffTurn {
    _of_session: OwnedMutexGuard<()>,
    _of_all: OwnedSemaphorePermit,
}

impl DiffTurns {
    /// Waits for the other diffs of the session, and then for those of others.
    pub(crate) async fn enter(&self, session: &SessionId) -> Result<DiffTurn> {
        let turn = {
            let mut turns = self.of_sessions.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(session.clone()).or_default())
        };
        Ok(DiffTurn {
            _of_session: turn.lock_owned().await,
            _of_all: Arc::clone(&self.all)
                .acquire_owned()
                .await
                .map_err(|_| HostError::Closed)?,
        })
    }
}

/// Since when a diff is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DiffFrom {
    /// Since the last turn began.
    #[default]
    Turn,
    /// Since the first turn began; for a worktree since the commit that it was made from.
    Start,
}

/// What changed in the files of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct WorkspaceDiff {
    /// The changes as a unified diff, new files included. Bytes that are not UTF-8 are replaced.
    pub diff: String,
    /// Whether the diff was cut at the limit of the policy.
    pub truncated: bool,
    /// Whether files could not be read and are missing in the diff.
    pub incomplete: bool,
}

/// The directory of a session below that of the policy.
struct SessionWorkspace(PathBuf);

impl SessionWorkspace {
    fn of(policy: &WorkspacePolicy, session: &SessionId) -> Self {
        Self(policy.directory.join(session.as_str()))
    }

    fn tree(&self) -> PathBuf {
        self.0.join("tree")
    }

    /// The git directory of the host.
    fn git(&self) -> PathBuf {
        self.0.join("git")
    }

    /// A file that says how far the making of the worktree got.
    fn mark(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

fn create_private(directory: &Path) -> Result<(), String> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(directory)
        .map_err(|error| format!("{}: {error}", directory.display()))
}

/// Writes a mark, with its name and that of its directory: no power loss takes it and leaves what is made afterwards.
fn write_mark(path: &Path) -> Result<(), String> {
    let made = File::create(path).and_then(|file| {
        file.sync_all()?;
        path.ancestors().skip(1).take(2).try_for_each(sync_directory)
    });
    made.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// Brings to disk what git has made in these directories: the files of a worktree, and what the repository knows of it. Git itself syncs neither.
async fn sync_all(directories: Vec<PathBuf>) -> Result<(), String> {
    let synced = tokio::task::spawn_blocking(move || {
        directories.iter().try_for_each(|directory| {
            sync_disk(directory).map_err(|error| format!("{}: {error}", directory.display()))
        })
    });
    synced.await.unwrap_or_else(|error| Err(error.to_string()))
}

#[cfg(target_os = "linux")]
fn sync_disk(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(directory)?)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_disk(_directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    rustix::fs::sync();
    Ok(())
}

/// Removes a directory with all that is in it. That may take long, and is done to its end also if nobody waits for it any more.
async fn remove_all(directory: PathBuf) -> Result<(), String> {
    let removed = tokio::task::spawn_blocking(move || match std::fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", directory.display()))
        }
        _ => Ok(()),
    });
    removed.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Copies the list of what the user of a repository ignores. Somebody may have put a FIFO there, which would keep its reader waiting, or a file without
/// an end. Blocks.
fn copy_exclude(from: &Path, to: &Path) -> io::Result<()> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(from)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() <= EXCLUDE_LIMIT {
        io::copy(&mut file.take(EXCLUDE_LIMIT), &mut File::create(to)?)?;
    }
    Ok(())
}

/// A worktree for a new session, and the session's directory in it. Makes nothing. `others` are those of other sessions.
pub(crate) async fn plan(
    policy: &WorkspacePolicy,
    is_allowed: impl Fn(&Path) -> Result<PathBuf>,
    session: &SessionId,
    cwd: &Path,
    new: &NewWorktree,
    others: &[Worktree],
) -> Result<(Worktree, PathBuf)> {
    if !policy.worktrees {
        return Err(HostError::NotAllowed("git worktrees".to_owned()));
    }
    if count(policy, others) >= policy.max_worktrees {
        return Err(HostError::NotAllowed(format!(
            "more than {} git worktrees; remove those of archived sessions",
            policy.max_worktrees
        )));
    }
    let asked = |args: &[&str]| Git::new("rev-parse", cwd, policy.git_deadline).args(args).text();
    let no_repository = |error: String| {
        HostError::Invalid(format!(
            "{} is in no git repository with files: {error}",
            cwd.display()
        ))
    };
    // A repository may be elsewhere than the directory: it must be in a root, too.
    let top = asked(&["--show-toplevel"]).await.map_err(no_repository)?;
    let common = asked(&["--path-format=absolute", "--git-common-dir"])
        .await
        .map_err(no_repository)?;
    let repository = is_allowed(Path::new(&top))?;
    is_allowed(Path::new(&common))?;
    let prefix = asked(&["--show-prefix"]).await.map_err(no_repository)?;
    let branch = match &new.branch {
        Some(branch) => branch.clone(),
        None => format!("outrigger/{session}"),
    };
    branches::check_name(&branch)?;
    let base = new.base.as_deref().unwrap_or("HEAD");
    let commit = format!("{base}^{{commit}}");
    let base = asked(&["--verify", "--quiet", "--end-of-options", &commit])
        .await
        .map_err(|_| HostError::Invalid(format!("`{base}` is no commit of {top}")))?;
    branches::check_room(policy, cwd, &branch, Path::new(&common), others).await?;
    // Where it will be without links, so that the CLI calls it by the same name.
    create_private(&policy.directory).map_err(HostError::Workspace)?;
    // Who may not open the directory above has it made by somebody else.
    let _ = policy.directory.parent().map(sync_directory);
    let directory = policy.directory.canonicalize();
    let directory = directory.map_err(|error| HostError::Workspace(error.to_string()))?;
    let path = directory.join(session.as_str()).join("tree");
    let cwd = if prefix.is_empty() {
        path.clone()
    } else {
        path.join(prefix)
    };
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| HostError::Invalid(format!("the directory {} is not UTF-8", path.display())))
    };
    let worktree = Worktree {
        path: text(&path)?,
        repository: text(&repository)?,
        branch,
        base,
    };
    Ok((worktree, cwd))
}

/// How many worktrees there are, with those that are not made yet.
fn count(policy: &WorkspacePolicy, planned: &[Worktree]) -> usize {
    let homes = std::fs::read_dir(&policy.directory)
        .into_iter()
        .flatten()
        .flatten();
    let trees = homes.map(|home| SessionWorkspace(home.path()).tree());
    let mut all: HashSet<PathBuf> = trees.filter(|tree| tree.exists()).collect();
    let below = |worktree: &Worktree| {
        let home = Path::new(&worktree.path).parent()?.file_name()?;
        Some(SessionWorkspace(policy.directory.join(home)).tree())
    };
    all.extend(planned.iter().filter_map(below));
    all.len()
}

/// Makes what is missing of a session's worktree. `making` is held while git makes a worktree.
pub(crate) async fn prepare(
    policy: &WorkspacePolicy,
    session: &SessionRecord,
    making: &tokio::sync::Mutex<()>,
) -> Result<(), String> {
    let place = SessionWorkspace::of(policy, &session.id);
    if let Some(worktree) = &session.worktree
        && Path::new(&worktree.path).parent().and_then(Path::file_name) == place.0.file_name()
        && !place.mark("ready").exists()
    {
        if !place.mark("made").exists() {
            make(policy, &place, worktree, making).await?;
            write_mark(&place.mark("made"))?;
        }
        if !policy.setup.is_empty() {
            setup::run(policy, &session.id, worktree).await?;
        }
        write_mark(&place.mark("ready"))?;
    }
    let cwd = Path::new(&session.cwd);
    if !cwd.is_dir() {
        let gone = format!("the directory {} is gone", cwd.display());
        return Err(match &session.worktree {
            Some(worktree) => registered::explain(policy, worktree, gone).await,
            None => gone,
        });
    }
    Ok(())
}

/// Makes the git directory of the host, which finds the objects of the repository that the directory is in, if it is in one.
async fn create_git(
    policy: &WorkspacePolicy,
    place: &SessionWorkspace,
    directory: &Path,
) -> Result<(), String> {
    let git = place.git();
    let _ = std::fs::remove_dir_all(&git);
    create_private(&place.0)?;
    let asked = |args: &[&str]| {
        Git::new("rev-parse", directory, policy.git_deadline)
            .args(args)
            .text()
    };
    let common = asked(&["--path-format=absolute", "--git-common-dir"]).await.ok();
    let format = match common {
        Some(_) => asked(&["--show-object-format"]).await?,
        None => "sha1".to_owned(),
    };
    // Under another name until it is whole.
    let draft = place.mark("git.new");
    let _ = std::fs::remove_dir_all(&draft);
    Git::new("init", &place.0, policy.git_deadline)
        .args([
            "--quiet",
            "--bare",
            "--template=",
            &format!("--object-format={format}"),
        ])
        .args([&draft])
        .text()
        .await?;
    let failed = |error: std::io::Error| format!("{}: {error}", draft.display());
    let own = |name: &str, args: &[&str]| {
        let index = draft.join("index");
        Git::new(name, &draft, policy.git_deadline)
            .env("GIT_DIR", &draft)
            .env("GIT_INDEX_FILE", index)
            .args(args)
            .text()
    };
    if let Some(common) = &common {
        std::fs::create_dir_all(draft.join("objects/info")).map_err(failed)?;
        std::fs::create_dir_all(draft.join("info")).map_err(failed)?;
        std::fs::write(
            draft.join("objects/info/alternates"),
            format!("{common}/objects\n"),
        )
        .map_err(failed)?;
        let ignored = Path::new(common).join("info/exclude");
        let own_ignored = draft.join("info/exclude");
        // Without it there are more files in the diffs.
        let _ = tokio::task::spawn_blocking(move || copy_exclude(&ignored, &own_ignored)).await;
        // Files that are tracked although they are ignored.
        if let Ok(tree) = asked(&["--verify", "--quiet", "HEAD^{tree}"]).await {
            own("read-tree", &[&tree]).await?;
        }
    }
    std::fs::rename(&draft, &git).map_err(failed)
}

/// Makes the worktree. What an earlier try left is removed.
async fn make(
    policy: &WorkspacePolicy,
    place: &SessionWorkspace,
    worktree: &Worktree,
    making: &tokio::sync::Mutex<()>,
) -> Result<(), String> {
    create_private(&place.0)?;
    let repository = Path::new(&worktree.repository);
    let run = |name: &str, args: &[&str]| Git::new(name, repository, policy.git_deadline).args(args).text();
    let tree = place.tree();
    // A git that looks at the worktrees of a repository fails at one that another git is making.
    let turn = making.lock().await;
    if tree.exists() {
        // The repository may know of it or not.
        drop(run("worktree", &["remove", "--force", "--force", &worktree.path]).await);
        if tree.exists() {
            // Out of the way first: the next try must not wait for its end, nor lose what it makes.
            let gone = place.mark(&format!("gone-{}", Uuid::new_v4()));
            std::fs::rename(&tree, &gone).map_err(|error| format!("{}: {error}", tree.display()))?;
            remove_all(gone).await?;
        }
    }
    let (branch, base) = (worktree.branch.as_str(), worktree.base.as_str());
    let reference = format!("refs/heads/{branch}");
    let found = run(
        "rev-parse",
        &["--verify", "--quiet", "--end-of-options", &reference],
    )
    .await;
    let making = place.mark("making");
    let common = run("rev-parse", &["--path-format=absolute", "--git-common-dir"]).await?;
    match found {
        Err(_) => {
            branches::break_lock(policy, place.0.file_name(), Path::new(&common), branch);
            // On disk before the branch is: without the mark the branch would be taken for somebody else's.
            write_mark(&making)?;
            let create = Git::new("branch", repository, policy.git_deadline);
            // A git that was killed may have made it.
            let created = create.args(["--no-track", branch, base]).run().await?;
            if !created.success {
                // Somebody else, such as another session, may have made it at the same time. Then it must not go with this session.
                std::fs::remove_file(&making).map_err(|error| format!("{}: {error}", making.display()))?;
                return Err(format!("git branch: {}", created.stderr));
            }
        }
        // An earlier try made it.
        Ok(commit) if commit == base && making.exists() => {}
        Ok(_) => return Err(format!("the branch `{branch}` exists already")),
    }
    let add = [
        "add",
        "--quiet",
        "--force",
        "--no-checkout",
        &worktree.path,
        branch,
    ];
    run("worktree", &add).await?;
    drop(turn);
    create_git(policy, place, &tree).await?;
    // The files are written by a git directory without configuration, and so without filters.
    Git::new("read-tree", &tree, policy.git_deadline)
        .env("GIT_DIR", place.git())
        .env("GIT_WORK_TREE", &tree)
        .args(["-u", "--reset", base])
        .text()
        .await?;
    Git::new("read-tree", &tree, policy.git_deadline)
        .args([base])
        .text()
        .await?;
    own(policy, place, "update-ref", &[START, &format!("{base}^{{tree}}")]).await?;
    sync_all(vec![place.0.clone(), PathBuf::from(common)]).await
}

/// Runs git on the git directory of the host.
async fn own(
    policy: &WorkspacePolicy,
    place: &SessionWorkspace,
    name: &str,
    args: &[&str],
) -> Result<String, String> {
    Git::new(name, &place.git(), policy.git_deadline)
        .env("GIT_DIR", place.git())
        .args(args)
        .text()
        .await
}

/// The most that is read of an index, in bytes: some two million files.
const INDEX_LIMIT: u64 = 256 * 1024 * 1024;

/// How the entry of a nested repository begins in an index.
const NESTED: &[u8] = b"160000 ";

/// A repository in the files, such as a submodule. Git records its commit, and none of its files.
struct NestedRepository {
    /// What the index has of it behind its mode: `COMMIT STAGE\tPATH`.
    entry: Vec<u8>,
}

impl NestedRepository {
    /// Those of an index that `git ls-files --stage -z` lists.
    async fn list(listing: Git) -> Result<Vec<Self>, String> {
        let listed = listing.limit(INDEX_LIMIT).run().await?;
        if !listed.success || listed.truncated {
            return Err(format!("git ls-files: {}", listed.stderr));
        }
        let entries = listed.bytes.split(|byte| *byte == 0);
        let nested = entries.filter_map(|entry| entry.strip_prefix(NESTED));
        Ok(nested
            .map(|entry| Self {
                entry: entry.to_vec(),
            })
            .collect())
    }

    /// A line for `git update-index --index-info`.
    fn line(&self, mode: &[u8]) -> Vec<u8> {
        [mode, &self.entry, b"\0"].concat()
    }

    /// Whether nobody has checked it out: there is an empty directory, as git makes it for a submodule.
    fn is_absent(&self, root: &Path) -> bool {
        let path = self.entry.splitn(2, |byte| *byte == b'\t').nth(1);
        let Some(Ok(path)) = path.map(std::str::from_utf8) else {
            return false;
        };
        let directory = root.join(path);
        // Not behind a link to another place.
        directory.canonicalize().is_ok_and(|real| real == directory)
            && std::fs::read_dir(&directory).is_ok_and(|mut entries| entries.next().is_none())
    }
}

/// The state of the files.
struct Snapshot {
    tree: String,
    /// Whether files are missing in it.
    incomplete: bool,
}

/// Tells the indexes of this process from those that an earlier host left.
static HOST: LazyLock<Uuid> = LazyLock::new(Uuid::new_v4);

/// An index of its own for a snapshot, so that no other run is in the way. Dropped, it is gone, with the lock of a git that was killed.
struct DraftIndex(PathBuf);

impl DraftIndex {
    fn new(git: &Path) -> Self {
        Self(git.join(format!("index-{}-{}", *HOST, Uuid::new_v4())))
    }
}

impl Drop for DraftIndex {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(self.0.with_extension("lock"));
    }
}

/// Removes what runs of git left that were killed: indexes of an earlier host, and locks of refs. Only turns change refs.
fn sweep(git: &Path) {
    let own = format!("index-{}", *HOST);
    let is_left = |name: &str| match name.starts_with("index") {
        true => name.starts_with("index-") && !name.starts_with(&own),
        false => name.ends_with(".lock"),
    };
    for directory in [git, &git.join("refs/outrigger")] {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(is_left) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Records the files below `root`, which has no links in it.
async fn snapshot(
    policy: &WorkspacePolicy,
    place: &SessionWorkspace,
    root: &Path,
) -> Result<Snapshot, String> {
    let git = place.git();
    let index = DraftIndex::new(&git);
    let kept = git.join("index");
    let _ = std::fs::copy(&kept, &index.0);
    let run = |name: &str, args: &[&str]| {
        Git::new(name, root, policy.git_deadline)
            .env("GIT_DIR", &git)
            .env("GIT_WORK_TREE", root)
            .env("GIT_INDEX_FILE", &index.0)
            .args(args)
    };
    let nested = || NestedRepository::list(run("ls-files", &["--stage", "-z"]));
    let change = async |lines: Vec<u8>| {
        if lines.is_empty() {
            return Ok(());
        }
        let changed = run("update-index", &["-z", "--index-info"]).input(lines);
        changed.text().await.map(drop)
    };
    let taken = async {
        // In a repository that the index has, git runs `git status`, with the filters of that repository.
        let before = nested().await?;
        change(before.iter().flat_map(|nested| nested.line(b"0 ")).collect()).await?;
        let added = run("add", &["--all", "--ignore-errors", "--", "."]).run().await?;
        let after = nested().await?;
        // Where nothing is checked out, git has found no repository.
        let absent = before.into_iter().filter(|nested| nested.is_absent(root));
        change(absent.flat_map(|nested| nested.line(NESTED)).collect()).await?;
        let tree = run("write-tree", &[]).text().await?;
        Ok(Snapshot {
            tree,
            incomplete: !added.success || !after.is_empty(),
        })
    };
    let taken: Result<Snapshot, String> = taken.await;
    if taken.is_ok() {
        // Without it the next snapshot reads more files.
        let _ = std::fs::rename(&index.0, &kept);
    }
    taken
}

/// Records the files of a session, which have to be where sessions may be, before and after: a directory can become a link to another place, whose
/// files are nobody's business here.
async fn snapshot_inside(
    policy: &WorkspacePolicy,
    session: &SessionRecord,
    files: impl Fn() -> Result<PathBuf>,
) -> Result<Snapshot> {
    let root = files()?;
    let taken = snapshot(policy, &SessionWorkspace::of(policy, &session.id), &root).await;
    match files() {
        Ok(after) if after == root => taken.map_err(HostError::Workspace),
        _ => Err(HostError::Workspace(format!(
            "the directory {} became another one",
            root.display()
        ))),
    }
}

/// Records the state of the files before a turn. `files` is where they are, if they may be there.
pub(crate) async fn begin_turn(
    policy: &WorkspacePolicy,
    session: &SessionRecord,
    files: impl Fn() -> Result<PathBuf>,
) -> Result<(), String> {
    let place = SessionWorkspace::of(policy, &session.id);
    if place.git().join("HEAD").exists() {
        sweep(&place.git());
    } else {
        let root = files().map_err(|error| error.to_string())?;
        create_git(policy, &place, &root).await?;
    }
    let now = snapshot_inside(policy, session, files).await;
    let now = now.map_err(|error| error.to_string())?;
    if own(policy, &place, "rev-parse", &["--verify", "--quiet", START])
        .await
        .is_err()
    {
        own(policy, &place, "update-ref", &[START, &now.tree]).await?;
    }
    own(policy, &place, "update-ref", &[TURN, &now.tree]).await?;
    if let Err(error) = prune(policy, &place).await {
        // The state of the files is recorded all the same.
        tracing::warn!(%error, session = %session.id, "states of files of before are kept");
    }
    Ok(())
}

/// How often what no state of the files has any more is removed. A diff that runs may need what is younger.
const PRUNE_EVERY: Duration = Duration::from_secs(3600);

/// Removes what turns of before, and diffs, have recorded, and no state of the files has any more.
async fn prune(policy: &WorkspacePolicy, place: &SessionWorkspace) -> Result<(), String> {
    let mark = place.mark("pruned");
    let last = std::fs::metadata(&mark).and_then(|mark| mark.modified());
    // Also if the clock was set back.
    if last.is_ok_and(|last| last.elapsed().is_ok_and(|age| age < PRUNE_EVERY)) {
        return Ok(());
    }
    // Before: one that takes too long is not tried again with each turn.
    std::fs::write(&mark, "").map_err(|error| format!("{}: {error}", mark.display()))?;
    own(policy, place, "prune", &["--expire=1.hour.ago"])
        .await
        .map(drop)
}

/// What changed since. `files` is where the files are, if they may be there.
pub(crate) async fn diff(
    policy: &WorkspacePolicy,
    session: &SessionRecord,
    files: impl Fn() -> Result<PathBuf>,
    from: DiffFrom,
) -> Result<WorkspaceDiff> {
    let place = SessionWorkspace::of(policy, &session.id);
    let reference = match from {
        DiffFrom::Turn => TURN,
        DiffFrom::Start => START,
    };
    let Ok(before) = own(policy, &place, "rev-parse", &["--verify", "--quiet", reference]).await else {
        return Err(HostError::Invalid(
            "no turn of the session has begun, so no state of its files is recorded".to_owned(),
        ));
    };
    let now = snapshot_inside(policy, session, files).await?;
    let output = Git::new("diff-tree", &place.git(), policy.git_deadline)
        .env("GIT_DIR", place.git())
        .args([
            "-r",
            "-p",
            "-M",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            &before,
            &now.tree,
        ])
        .limit(policy.diff_limit)
        .run()
        .await
        .map_err(HostError::Workspace)?;
    if !output.success {
        return Err(HostError::Workspace(format!("git diff-tree: {}", output.stderr)));
    }
    Ok(WorkspaceDiff {
        diff: String::from_utf8_lossy(&output.bytes).into_owned(),
        truncated: output.truncated,
        incomplete: now.incomplete,
    })
}

/// Why a worktree is kept; `None` if nothing in it would be lost. `home` is where the host has made it, with a git directory beside it: the session that
/// is removed may be a fork, which has none of its own before its first turn.
async fn work_in(
    policy: &WorkspacePolicy,
    home: &SessionWorkspace,
    worktree: &Worktree,
) -> Result<Option<&'static str>, String> {
    let tree = Path::new(&worktree.path);
    let head = Git::new("rev-parse", tree, policy.git_deadline);
    if head.args(["--verify", "HEAD"]).text().await? != worktree.base {
        return Ok(Some("it has commits of its own"));
    }
    let base = format!("{}^{{tree}}", worktree.base);
    let base = own(policy, home, "rev-parse", &[&base]).await?;
    let now = snapshot(policy, home, tree).await?;
    if now.tree != base {
        return Ok(Some("it has changes"));
    }
    Ok(now.incomplete.then_some("it has files that cannot be compared"))
}

/// Removes the branch of a session if it is where the host put it: a commit that somebody added stays.
async fn remove_branch(
    policy: &WorkspacePolicy,
    home: &SessionWorkspace,
    worktree: &Worktree,
) -> Result<(), String> {
    let repository = Path::new(&worktree.repository);
    let run = |name: &str, args: &[&str]| Git::new(name, repository, policy.git_deadline).args(args).text();
    let reference = format!("refs/heads/{}", worktree.branch);
    let common = run("rev-parse", &["--path-format=absolute", "--git-common-dir"]).await?;
    branches::break_lock(policy, home.0.file_name(), Path::new(&common), &worktree.branch);
    let Err(error) = run("update-ref", &["-d", &reference, &worktree.base]).await else {
        return Ok(());
    };
    let found = run(
        "rev-parse",
        &["--verify", "--quiet", "--end-of-options", &reference],
    );
    match found.await {
        Ok(commit) if commit == worktree.base => Err(error),
        _ => Ok(()),
    }
}

/// Removes what the host keeps of the files of a session, and its worktree with its branch, unless another session works in it, or there is work in it
/// and `force` is not set. Returns why the worktree was kept. What the host keeps for a fork is not beside the worktree, and goes in any case.
pub(crate) async fn remove(
    policy: &WorkspacePolicy,
    session: &SessionRecord,
    is_shared: bool,
    force: bool,
    making: &tokio::sync::Mutex<()>,
) -> Result<Option<&'static str>, String> {
    let place = SessionWorkspace::of(policy, &session.id);
    let worktree = session.worktree.as_ref();
    let made = worktree.and_then(|worktree| Some((worktree, Path::new(&worktree.path).parent()?)));
    let Some((worktree, home)) = made.filter(|(_, home)| home.exists()) else {
        return remove_all(place.0).await.map(|()| None);
    };
    let home = SessionWorkspace(home.to_owned());
    if home.0.file_name() != place.0.file_name() {
        remove_all(place.0.clone()).await?;
    }
    if is_shared {
        return Ok(Some("another session works in it"));
    }
    let tree = home.tree();
    if tree.exists()
        && home.mark("made").exists()
        && !force
        && let Some(why) = work_in(policy, &home, worktree).await?
    {
        return Ok(Some(why));
    }
    let repository = Path::new(&worktree.repository);
    let run = |name: &str, args: &[&str]| Git::new(name, repository, policy.git_deadline).args(args).text();
    // Only if the host began to make it: what is there otherwise is somebody else's. A repository that is gone has nothing to forget.
    if home.mark("making").exists() && repository.is_dir() {
        let turn = making.lock().await;
        let was_there = tree.exists();
        let removed = match was_there {
            true => run("worktree", &["remove", "--force", "--force", &worktree.path]).await,
            false => Ok(String::new()),
        };
        match (registered::find(policy, worktree).await, removed) {
            // If git could not remove it, the repository may not have known of it.
            (Ok(None), _) => remove_branch(policy, &home, worktree).await?,
            (Err(_), _) | (Ok(Some(_)), Err(_)) if force => {}
            (Err(error), _) | (Ok(Some(_)), Err(error)) => return Err(error),
            // Somebody has moved it, and works there. What git keeps of it is needed there, and so is its branch.
            (Ok(Some(_)), Ok(_)) if !was_there && !force => {
                return Ok(Some("it is not where the host has made it"));
            }
            // Its branch is needed elsewhere.
            (Ok(Some(_)), Ok(_)) => {}
        }
        drop(turn);
    }
    remove_all(home.0).await?;
    remove_all(place.0).await.map(|()| None)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_session_has_one_diff_at_a_time_and_nothing_is_kept_of_those_before() -> Result<()> {
        let turns = DiffTurns::default();
        let (one, other) = (SessionId::random(), SessionId::random());
        let first = turns.enter(&one).await?;
        let mut second = Box::pin(turns.enter(&one));
        assert!(second.as_mut().now_or_never().is_none());
        // Those of other sessions do not wait for it.
        drop(turns.enter(&other).await?);
        drop(first);
        drop(second.await?);
        drop(turns.enter(&one).await?);
        let known = turns.of_sessions.lock().map(|turns| turns.len());
        assert_eq!(known.ok(), Some(1), "the last one");
        Ok(())
    }

    /// Two gits that make worktrees in one repository at once can fail at each other's.
    #[tokio::test]
    async fn one_worktree_of_a_host_is_made_at_a_time() -> Result<()> {
        let failed = HostError::Workspace;
        let place = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
        let repository = place.path().join("shop");
        create_private(&repository).map_err(failed)?;
        let policy = WorkspacePolicy::new(place.path().join("trees"));
        let git = |name: &str, args: &[&str]| Git::new(name, &repository, policy.git_deadline).args(args);
        git("init", &["--quiet"]).text().await.map_err(failed)?;
        let commit = ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"]
            .into_iter()
            .fold(
                git("commit", &["--quiet", "--allow-empty", "-m", "first"]),
                |commit, name| commit.env(&format!("GIT_{name}"), "ada"),
            );
        commit.text().await.map_err(failed)?;
        let id = SessionId::random();
        let is_allowed = |directory: &Path| Ok(directory.to_owned());
        let new = NewWorktree::default();
        let (worktree, cwd) = plan(&policy, is_allowed, &id, &repository, &new, &[]).await?;
        let place = SessionWorkspace::of(&policy, &id);
        let making = tokio::sync::Mutex::new(());
        let mut made = Box::pin(make(&policy, &place, &worktree, &making));
        assert!(made.as_mut().now_or_never().is_none());
        assert!(making.try_lock().is_err());
        made.await.map_err(failed)?;
        assert!(making.try_lock().is_ok() && cwd.is_dir());
        Ok(())
    }

    #[tokio::test]
    async fn a_host_makes_a_few_diffs_at_a_time() -> Result<()> {
        let turns = DiffTurns::default();
        let mut running = Vec::new();
        for _ in 0..DIFFS {
            running.push(turns.enter(&SessionId::random()).await?);
        }
        let next = SessionId::random();
        let mut waiting = Box::pin(turns.enter(&next));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(running.pop());
        drop(waiting.await?);
        Ok(())
    }
}
