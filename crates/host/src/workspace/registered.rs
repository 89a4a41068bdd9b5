//! What a repository knows of the worktree of a session: somebody may have moved it, and go on to work there.

use std::path::PathBuf;

use super::WorkspacePolicy;
use crate::event::Worktree;
use crate::git::Git;

/// The most that is read of the list of worktrees, in bytes.
const LIST: u64 = 16 * 1024 * 1024;

/// Where git has the branch of a session checked out, or the worktree at its old place, whether it is there or not: git does not see that a worktree was
/// moved by another program.
pub(super) async fn find(policy: &WorkspacePolicy, worktree: &Worktree) -> Result<Option<PathBuf>, String> {
    let git = Git::new("worktree", worktree.repository.as_ref(), policy.git_deadline);
    let list = git.args(["list", "--porcelain"]).limit(LIST).run().await?;
    if !list.success || list.truncated {
        return Err(format!("git worktree list: {}", list.stderr));
    }
    let list = String::from_utf8_lossy(&list.bytes);
    let branch = format!("branch refs/heads/{}", worktree.branch);
    let found = list.split("\n\n").find_map(|entry| {
        let place = entry.lines().next()?.strip_prefix("worktree ")?;
        let is_it = place == worktree.path || entry.lines().any(|line| line == branch);
        is_it.then(|| PathBuf::from(place))
    });
    Ok(found)
}

/// Why the directory of a session is gone, if git knows it.
pub(super) async fn explain(policy: &WorkspacePolicy, worktree: &Worktree, gone: String) -> String {
    match find(policy, worktree).await {
        Ok(Some(place)) if place.is_dir() => format!(
            "{gone}: its worktree was moved to {}; move it back with `git worktree move`",
            place.display()
        ),
        _ => gone,
    }
}
