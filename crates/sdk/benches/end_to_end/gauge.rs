//! CPU time and memory of this process.

use std::time::Duration;

/// CPU time that all threads of this process have taken, user and system.
pub(crate) fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs().try_into().unwrap(),
    )
}

/// Memory that is resident now, in KiB.
pub(crate) fn rss() -> u64 {
    status("VmRSS:")
}

/// The most memory that was ever resident, in KiB.
pub(crate) fn peak() -> u64 {
    status("VmHWM:")
}

fn status(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
