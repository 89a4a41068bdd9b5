//! How much memory a process takes.

/// The resident memory of a process, in bytes, where that can be seen.
pub(super) fn resident(pid: u32) -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn this_process_takes_some() {
        let bytes = super::resident(std::process::id()).unwrap();
        assert!(bytes > 1024 * 1024, "{bytes}");
        assert_eq!(super::resident(u32::MAX), None);
    }
}
