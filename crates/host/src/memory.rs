//! How much memory a process takes with all that it started.

use std::time::Duration;

/// Limits for the memory of each process of a host: resident, with all that the process started. Measured on Linux; elsewhere there are none.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemoryLimits {
    /// A process with more than these bytes ends when it has nothing to do, or after its turn and the agents that it left in the background. The next prompt
    /// waits for that, and starts another one.
    pub soft: Option<u64>,
    /// A process with more than these bytes is killed. A turn that runs is interrupted.
    pub hard: Option<u64>,
    /// How often memory is measured; every 10 s by default.
    pub every: Duration,
}

impl MemoryLimits {
    /// No limits.
    pub fn new() -> Self {
        Self {
            soft: None,
            hard: None,
            every: Duration::from_secs(10),
        }
    }
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self::new()
    }
}

/// The resident memory of a process and of all that descend from it, in bytes; `None` if it is gone, or where the system does not say it. Blocks for
/// a few milliseconds.
#[cfg(target_os = "linux")]
pub(crate) fn of_tree(root: u32) -> Option<u64> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        if let Some(parent) = status(pid, "PPid:") {
            parents.push((pid, u32::try_from(parent).unwrap_or_default()));
        }
    }
    let mut family = vec![root];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        // A process has one parent, so that none is found twice.
        family.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    let of_root = status(root, "VmRSS:")?;
    let rest = family[1..].iter().filter_map(|pid| status(*pid, "VmRSS:"));
    Some((of_root + rest.sum::<u64>()) * 1024)
}

/// A number in the status of a process; of memory in KiB.
#[cfg(target_os = "linux")]
fn status(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn of_tree(_: u32) -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::BufRead as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_a_process_started_counts() {
        // A shell whose child has a shell as its child.
        let script = "sh -c 'echo up; read x; :' ; :";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let alone = status(child.id(), "VmRSS:").unwrap() * 1024;
        let tree = of_tree(child.id()).unwrap();
        assert!(tree > alone, "{tree} {alone}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(of_tree(u32::MAX), None);
    }
}
