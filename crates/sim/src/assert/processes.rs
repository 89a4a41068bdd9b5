//! Finds processes that are left.

use std::time::{Duration, Instant};

/// How often the table of processes is looked at: nothing announces that it changes.
const LOOK: Duration = Duration::from_millis(5);

/// The living processes of a CLI that was started as this process: itself, and those of its process group or session. Each with
/// its command line.
///
/// A command that the CLI ran in a session of its own is not found. Linux only.
pub fn living_of(pid: u32) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut living = Vec::new();
    for entry in entries.flatten() {
        let Some(one) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        // One that ends while it is looked at is gone.
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The name stands in parentheses, and may hold anything.
        let Some((_, rest)) = stat.rsplit_once(") ") else {
            continue;
        };
        let fields: Vec<&str> = rest.split(' ').collect();
        let is_dead = matches!(fields.first(), Some(&("Z" | "X")));
        let number = |n: usize| fields.get(n).and_then(|field| field.parse::<u32>().ok());
        let belongs = one == pid || number(2) == Some(pid) || number(3) == Some(pid);
        if belongs && !is_dead {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            living.push(format!("process {one}: {}", command.trim_end()));
        }
    }
    living
}

/// Whether no process of a CLI that was started as this process is left, see [`living_of`]. Checks repeatedly for this long, because
/// a killed process takes a moment to be gone; blocks its thread meanwhile.
///
/// # Errors
/// The processes that are left.
pub fn no_process_left(pid: u32, within: Duration) -> Result<(), String> {
    let deadline = Instant::now() + within;
    loop {
        let living = living_of(pid);
        if living.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(format!(
                "of the CLI of process {pid} there is left:\n  {}",
                living.join("\n  ")
            ));
        }
        std::thread::sleep(LOOK);
    }
}
