//! A small shell that outlives this program by a few seconds if need be.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::mark::Mark;
use crate::options::RunAs;

/// Reads the group's id, waits for the end of the pipe, then ends the group: SIGTERM, three seconds, SIGKILL. The CLI ends the
/// commands that it runs at once, but itself only after two seconds when nobody reads its stdout any more. Then it removes what the
/// session had in places of its own, which are its arguments: there may be credentials in them.
///
/// The signals that end whole sessions and services do not end it, since what it watches over may ignore them. It stops looking
/// as soon as the group is empty, because its id may be given to others then. Where the system shows them (Linux), those whom
/// the group started outside of it are killed with it; a CLI that still lives after SIGTERM did not do that itself.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM USR1 USR2
mark=$1
shift
end_marked() {
    [ -n "$mark" ] || return 0
    tries=16
    while [ "$tries" -gt 0 ]; do
        found=
        for environ in $(grep -lF -e "$mark" /proc/[0-9]*/environ 2>/dev/null); do
            pid=${environ#/proc/}
            found="$found ${pid%/environ}"
        done
        [ -n "$found" ] || return 0
        kill -KILL $found
        tries=$((tries - 1))
    done
}
# Transcripts that were written to may have what no store has: they stay, and nothing beside them. The mark is newer than what the
# store had. It stands above a directory that was made for another user.
clear() {
    left=0
    for place; do
        owned=$place/.outrigger-owned
        case $place in */config) [ -f "$owned" ] || owned=${place%/config}/.outrigger-owned ;; esac
        if [ -f "$owned" ] && [ -n "$(find "$place/projects" -type f -newer "$owned" 2>/dev/null | head -n 1)" ]; then
            find "$place" -mindepth 1 -maxdepth 1 ! -name projects ! -name .outrigger-owned -exec rm -rf -- {} + || left=1
        else
            rm -rf -- "$place" || left=1
        fi
    done
    return "$left"
}
leave() {
    end_marked
    # What was killed may write its last.
    tries=10
    until clear "$@" || [ "$tries" -eq 0 ]; do
        sleep 0.1 || sleep 1
        tries=$((tries - 1))
    done
    exit 0
}
# Without a group there was no CLI.
read -r group || leave "$@"
while read -r _; do :; done
kin() {
    for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
        echo "$child"
        kin "$child"
    done
}
kill -TERM "-$group" || leave "$@"
left=30
while [ "$left" -gt 0 ]; do
    sleep 0.1 || { sleep 1; left=$((left - 9)); }
    left=$((left - 1))
    kill -0 "-$group" || leave "$@"
done
kill -KILL "-$group" $(kin "$group")
leave "$@"
"#;

pub(super) struct Guardian(Child);

impl Guardian {
    /// `leftovers` is what is to be removed if this program dies: absolute paths, since it works elsewhere. It has the rights of
    /// the CLI's user: not every `rm` is safe against links that somebody puts in its way.
    pub(super) fn start(
        mark: Option<&Mark>,
        leftovers: &[PathBuf],
        run_as: Option<RunAs>,
    ) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, "outrigger-guardian"])
            .arg(mark.map_or("", Mark::as_str))
            .args(leftovers)
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin")
            // It is not to keep a file system busy.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What ends this program's group is not for it. A session of its own would have to be made after a fork, which
            // costs a large program much, and gives no more: the signals of a terminal are ignored.
            .process_group(0);
        if let Some(user) = run_as {
            command.uid(user.uid).gid(user.gid);
        }
        command.spawn().map(Self)
    }

    /// Tells which group to end.
    pub(super) fn watch_over(&mut self, group: Pid) {
        if let Some(pipe) = &mut self.0.stdin {
            // One that is gone already can't watch; nothing else is lost by that.
            let told = writeln!(pipe, "{}", group.as_raw_pid());
            if let Err(error) = told {
                tracing::warn!(%error, "no guardian watches over the CLI");
            }
        }
    }

    /// Ends the guardian before it can act. Call this before the group's id can become somebody else's.
    pub(super) fn dismiss(mut self) -> Dismissed {
        // Only one that ended by itself can't be killed.
        let _ = self.0.kill();
        Dismissed(self.0)
    }
}

/// A guardian that was killed and is to be reaped.
pub(super) struct Dismissed(Child);

impl Dismissed {
    /// Reaps the guardian if it is gone in time; else gives the guardian back.
    pub(super) fn gone_within(mut self, patience: Duration) -> Option<Self> {
        let until = Instant::now() + patience;
        loop {
            match self.0.try_wait() {
                Ok(None) if Instant::now() < until => thread::sleep(Duration::from_micros(500)),
                Ok(None) => return Some(self),
                Ok(Some(_)) | Err(_) => return None,
            }
        }
    }

    /// Reaps the guardian, however long that takes.
    pub(super) fn wait(mut self) {
        // Somebody else may have reaped it.
        let _ = self.0.wait();
    }
}
