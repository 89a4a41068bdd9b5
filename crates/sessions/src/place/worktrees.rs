//! The worktrees of a repository, from git.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::composed;

/// How long git may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// More than this is no list of worktrees.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// The roots of all worktrees of the repository that `dir` is in, by the names that [`real_path`](super::real_path) gives them and in
/// git's order: the main one first. Empty if there is no repository, no git, or no answer within five seconds.
pub fn worktrees(dir: &Path) -> Vec<String> {
    let mut git = Command::new("git");
    git.args(["worktree", "list", "--porcelain"]).current_dir(dir);
    listed(&mut git, DEADLINE).map_or_else(Vec::new, |listed| parse(&listed))
}

fn parse(listed: &[u8]) -> Vec<String> {
    let listed = String::from_utf8_lossy(listed);
    listed
        .split('\n')
        .filter_map(|line| line.strip_prefix("worktree "))
        .map(|path| composed(path).into_owned())
        .collect()
}

/// The output of a command, if it succeeds in time. Otherwise it is killed.
fn listed(command: &mut Command, deadline: Duration) -> Option<Vec<u8>> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.map(|stdout| stdout.take(MOST_BYTES).read_to_end(&mut bytes));
        // Nobody listens any more when the deadline is over.
        let _ = sender.send(read.filter(Result::is_ok).map(|_| bytes));
    });
    let Ok(bytes) = receiver.recv_timeout(deadline) else {
        let _ = child.kill();
        let _ = child.wait();
        return None;
    };
    // The command has closed its output, so it should end now; if it hangs, it is killed.
    let mut waited = Duration::ZERO;
    let step = Duration::from_millis(5);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return bytes.filter(|_| status.success()),
            Ok(None) if waited < deadline => {
                thread::sleep(step);
                waited += step;
            }
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn the_roots_are_taken_from_gits_list() {
        let listed = b"worktree /a/main\nHEAD 1\nbranch refs/heads/main\n\nworktree /a/e\xcc\x81 x\nHEAD 2\ndetached\n";
        assert_eq!(parse(listed), ["/a/main", &*composed("/a/e\u{301} x")]);
        assert_eq!(parse(b""), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_repository_has_none() {
        let place = tempfile::tempdir().unwrap();
        // A repository around the temporary directory would be one of this machine's.
        if !place.path().ancestors().any(|dir| dir.join(".git").exists()) {
            assert_eq!(worktrees(place.path()), Vec::<String>::new());
        }
        assert_eq!(worktrees(&place.path().join("gone")), Vec::<String>::new());
    }

    #[cfg(unix)]
    #[test]
    fn a_git_that_hangs_is_given_up() {
        let begun = Instant::now();
        let mut sleeper = Command::new("sleep");
        assert_eq!(listed(sleeper.arg("60"), Duration::from_millis(50)), None);
        let mut mute = Command::new("sh");
        assert_eq!(
            listed(
                mute.args(["-c", "exec >&-; exec sleep 60"]),
                Duration::from_millis(50)
            ),
            None
        );
        assert!(begun.elapsed() < Duration::from_secs(30));
        let mut failing = Command::new("sh");
        assert_eq!(
            listed(failing.args(["-c", "echo worktree /x; exit 1"]), DEADLINE),
            None
        );
    }
}
