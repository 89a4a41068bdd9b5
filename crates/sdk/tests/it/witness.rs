//! Who still lives: processes that are told by the home in their environment, which all that a CLI starts inherits.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::support::PATIENCE;

/// The living processes of this home, with their command lines.
pub(crate) fn living_in(home: &Path) -> BTreeMap<i32, String> {
    let home = format!("HOME={}", home.display());
    let mut found = BTreeMap::new();
    for pid in pids() {
        // A process may end while it is looked at; it then has no environment.
        let environment = read(pid, "environ");
        if environment
            .split(|byte| *byte == 0)
            .any(|line| line == home.as_bytes())
        {
            found.insert(pid, command_line(pid));
        }
    }
    found
}

/// The children of a process that are not reaped, dead ones among them, with their command lines.
pub(crate) fn children_of(parent: i32) -> BTreeMap<i32, String> {
    let is_child = |pid: &i32| {
        let stat = String::from_utf8_lossy(&read(*pid, "stat")).into_owned();
        let rest = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        rest.and_then(|rest| rest.split(' ').nth(1)?.parse().ok()) == Some(parent)
    };
    pids()
        .filter(is_child)
        .map(|pid| (pid, command_line(pid)))
        .collect()
}

/// Empty for the dead.
pub(crate) fn command_line(pid: i32) -> String {
    String::from_utf8_lossy(&read(pid, "cmdline")).replace('\0', " ")
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read(pid: i32, file: &str) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

/// Waits until the answer is there. Nothing announces changes of the process table, so it is looked at again and again.
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(now) => assert!(Instant::now() < deadline, "waiting for {what}, there is: {now}"),
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until nothing lives in this home.
pub(crate) async fn none_left(home: &Path) {
    until("no process", || {
        let left = living_in(home);
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:#?}"))
        }
    })
    .await;
}
