//! Whether the system killed for lack of memory.

use std::fs;
use std::path::{Path, PathBuf};

/// The kills for lack of memory that a control group has counted so far.
#[derive(Debug)]
pub(super) struct Kills {
    file: PathBuf,
    before: u64,
}

impl Kills {
    /// The kills of the control group that this process is in, and so what it starts; `None` where they are not counted.
    pub(super) fn counted() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        candidates(&groups, Path::new("/sys/fs/cgroup"))
            .into_iter()
            .find_map(|file| {
                Some(Self {
                    before: count(&file)?,
                    file,
                })
            })
    }

    /// Whether there were more since.
    pub(super) fn happened(&self) -> Option<bool> {
        Some(count(&self.file)? > self.before)
    }
}

/// The files that may have the count. Inside a container the group's path is often not that of the mount.
fn candidates(groups: &str, root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        // `0::/path` in version 2, `5:memory:/path` in version 1.
        let mut fields = line.splitn(3, ':');
        let (_, Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let path = path.trim_start_matches('/');
        if controllers.is_empty() {
            files.push(root.join(path).join("memory.events"));
            files.push(root.join("memory.events"));
        } else if controllers.split(',').any(|controller| controller == "memory") {
            let root = root.join("memory");
            files.push(root.join(path).join("memory.oom_control"));
            files.push(root.join("memory.oom_control"));
        }
    }
    files
}

/// Both versions have the count in a line `oom_kill N`.
fn count(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_looked_for() {
        let root = Path::new("/r");
        assert_eq!(
            candidates("0::/user/a\n", root),
            [
                PathBuf::from("/r/user/a/memory.events"),
                PathBuf::from("/r/memory.events")
            ]
        );
        assert_eq!(
            candidates("3:cpu:/x\n5:memory,blkio:/docker/1\nodd\n", root),
            [
                PathBuf::from("/r/memory/docker/1/memory.oom_control"),
                PathBuf::from("/r/memory/memory.oom_control")
            ]
        );
    }

    #[test]
    fn a_count_that_rises_is_a_kill() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("memory.events");
        let write = |kills: u64| {
            fs::write(
                &file,
                format!("low 0\noom 9\noom_kill {kills}\noom_group_kill 7\n"),
            )
            .unwrap()
        };
        write(3);
        let kills = Kills {
            before: count(&file).unwrap(),
            file: file.clone(),
        };
        assert_eq!(kills.happened(), Some(false));
        write(4);
        assert_eq!(kills.happened(), Some(true));
        fs::remove_file(&file).unwrap();
        assert_eq!(kills.happened(), None);
        fs::write(&file, "oom 1\n").unwrap();
        assert_eq!(count(&file), None);
    }
}
