//! The names of branches: what git can make, beside the branches that there are.

use std::ffi::OsStr;
use std::path::Path;

use super::WorkspacePolicy;
use crate::error::{HostError, Result};
use crate::event::Worktree;
use crate::git::Git;

/// The most that is read of the names of a repository's branches, in bytes.
const NAMES: u64 = 64 * 1024 * 1024;

/// Whether a name can be given to git as a branch.
pub(super) fn check_name(name: &str) -> Result<()> {
    // A file system may know no case.
    let is_lock = |part: &str| part.to_ascii_lowercase().ends_with(".lock");
    let is_bad =
        |part: &str| part.is_empty() || part.starts_with('.') || part.ends_with('.') || is_lock(part);
    let has_bad = |char: char| char.is_control() || " ~^:?*[\\".contains(char);
    if name.len() > 200
        || name.starts_with('-')
        || ["@", "HEAD"].contains(&name)
        || name.contains("..")
        || name.contains("@{")
        || name.contains(has_bad)
        || name.split('/').any(is_bad)
    {
        return Err(HostError::Invalid(format!("`{name}` is no name of a branch")));
    }
    Ok(())
}

/// Whether git cannot have both branches: they are the same, one is a file where the other needs a directory, or they differ only in the case.
fn collide(one: &str, other: &str, ignores_case: bool) -> bool {
    for (part, beside) in one.split('/').zip(other.split('/')) {
        if part != beside {
            return ignores_case && part.to_lowercase() == beside.to_lowercase();
        }
    }
    true
}

/// Refuses a branch that git cannot make, now or when the other sessions have made theirs.
pub(super) async fn check_room(
    policy: &WorkspacePolicy,
    cwd: &Path,
    branch: &str,
    common: &Path,
    others: &[Worktree],
) -> Result<()> {
    let git = |name: &str, directory: &Path| Git::new(name, directory, policy.git_deadline);
    let asked = git("config", cwd).args(["--type=bool", "--get", "core.ignorecase"]);
    let ignores_case = asked.text().await.is_ok_and(|value| value == "true");
    let failed = |error: String| HostError::Workspace(format!("the branches of the repository: {error}"));
    let list = git("for-each-ref", cwd).args(["--format=%(refname:lstrip=2)", "refs/heads"]);
    let list = list.limit(NAMES).run().await.map_err(failed)?;
    if !list.success || list.truncated {
        return Err(failed(list.stderr));
    }
    let names = String::from_utf8_lossy(&list.bytes);
    if let Some(taken) = names.lines().find(|name| collide(name, branch, ignores_case)) {
        return Err(HostError::Invalid(match taken == branch {
            true => format!("the branch `{branch}` exists already"),
            false => format!("git cannot make the branch `{branch}` beside `{taken}`, which exists already"),
        }));
    }
    for other in others {
        let is_made = || Path::new(&other.path).with_file_name("made").exists();
        if !collide(&other.branch, branch, ignores_case) || is_made() {
            continue;
        }
        let theirs = git("rev-parse", Path::new(&other.repository));
        let theirs = theirs.args(["--path-format=absolute", "--git-common-dir"]).text();
        if theirs.await.is_ok_and(|theirs| Path::new(&theirs) == common) {
            return Err(HostError::Invalid(format!(
                "git cannot make the branch `{branch}` beside `{}`, which another session will have",
                other.branch
            )));
        }
    }
    Ok(())
}

/// Removes the lock that a git has left on the branch of a session, as it does when the machine loses its power. No git of this host has one for longer than
/// the deadline, and only a name that the host has chosen is surely no one else's.
pub(super) fn break_lock(policy: &WorkspacePolicy, session: Option<&OsStr>, common: &Path, branch: &str) {
    let Some(session) = session.and_then(OsStr::to_str) else {
        return;
    };
    if branch != format!("outrigger/{session}") {
        return;
    }
    let lock = common.join("refs/heads").join(format!("{branch}.lock"));
    let modified = lock.symlink_metadata().and_then(|metadata| metadata.modified());
    let is_old = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > policy.git_deadline));
    if is_old {
        // A lock that stays is an error of the git that comes next.
        let _ = std::fs::remove_file(lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_collide_where_one_is_the_directory_of_the_other() {
        for (one, other, collides, ignoring_case) in [
            ("fix", "fix", true, true),
            ("fix", "fix/a", true, true),
            ("fix/a/b", "fix/a", true, true),
            ("fix", "fixes", false, false),
            ("fix/a", "fix/b", false, false),
            ("Fix", "fix", false, true),
            ("Fix/a", "fix/b", false, true),
            ("fix/a", "fix/A/b", false, true),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                assert_eq!(collide(one, other, false), collides, "{one} {other}");
                assert_eq!(collide(one, other, true), ignoring_case, "{one} {other}");
            }
        }
    }
}
