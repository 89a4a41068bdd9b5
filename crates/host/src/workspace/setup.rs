//! The operator's command for new worktrees.

use std::process::Stdio;

use outrigger::SessionId;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::WorkspacePolicy;
use crate::event::Worktree;

/// How much of the end of what the command wrote is told, in bytes.
const LAST_WORDS: usize = 4096;

/// Kills the processes of the command when it is dropped. The processes are a group of their own.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = self.0.and_then(|pid| i32::try_from(pid).ok())
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
        {
            // The group is empty if the command has ended with all that it started.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The end of what a pipe brings.
async fn last_words(pipe: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let (mut words, mut piece) = (Vec::new(), [0; 8192]);
    let Some(mut pipe) = pipe else { return words };
    while let Ok(length @ 1..) = pipe.read(&mut piece).await {
        words.extend_from_slice(&piece[..length]);
        words.drain(..words.len().saturating_sub(LAST_WORDS));
    }
    words
}

/// Runs the command in the worktree. Dropped, the command is killed.
pub(super) async fn run(
    policy: &WorkspacePolicy,
    session: &SessionId,
    worktree: &Worktree,
) -> Result<(), String> {
    let Some((program, args)) = policy.setup.split_first() else {
        return Ok(());
    };
    let kept = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "SYSTEMROOT",
    ];
    let kept = kept
        .into_iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(kept)
        .env("OUTRIGGER_SESSION_ID", session.as_str())
        .env("OUTRIGGER_BRANCH", &worktree.branch)
        .envs(policy.setup_env.iter().map(|(name, value)| (name, value)))
        .current_dir(&worktree.path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| format!("the set-up command {program} does not start: {error}"))?;
    let group = Group(child.id());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let run = async {
        // What it started and left running may hold the pipes: then they end with the group.
        let words = async { tokio::join!(last_words(stdout), last_words(stderr)) };
        tokio::pin!(words);
        let status = tokio::select! {
            status = child.wait() => status,
            words = &mut words => return (child.wait().await, words),
        };
        drop(group);
        (status, words.await)
    };
    let Ok((status, (stdout, stderr))) = tokio::time::timeout(policy.setup_deadline, run).await else {
        return Err(format!(
            "the set-up command took longer than {:?}, and was killed",
            policy.setup_deadline
        ));
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let words = if stderr.is_empty() { stdout } else { stderr };
            let words = String::from_utf8_lossy(&words).trim().to_owned();
            Err(format!("the set-up command failed ({status}): {words}"))
        }
        Err(error) => Err(format!("the set-up command: {error}")),
    }
}
