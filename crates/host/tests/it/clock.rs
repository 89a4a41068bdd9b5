//! The wall clock of this process, which can be set back. On Linux, the functions of libc come from the program itself if it has them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// By how many seconds the clock is behind.
static BEHIND: AtomicI64 = AtomicI64::new(0);

/// Sets the clock of this process back, elsewhere than on Linux by nothing.
pub(crate) fn set_back(by: Duration) {
    BEHIND.fetch_add(i64::try_from(by.as_secs()).unwrap(), Ordering::Relaxed);
}

#[cfg(target_os = "linux")]
mod shim {
    use std::ffi::{c_int, c_long};
    use std::sync::atomic::Ordering;

    #[repr(C)]
    struct Time {
        seconds: i64,
        nanoseconds: c_long,
    }

    #[cfg(target_arch = "x86_64")]
    const CLOCK_GETTIME: c_long = 228;
    #[cfg(target_arch = "aarch64")]
    const CLOCK_GETTIME: c_long = 113;

    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }

    /// Takes the place of libc's. The standard library asks it for the time.
    ///
    /// # Safety
    /// As that of libc: `time` is a place for a time.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Time) -> c_int {
        // SAFETY: the kernel writes one time to it, as the caller asks for.
        let result = unsafe { syscall(CLOCK_GETTIME, clock, time) };
        const REALTIME: c_int = 0;
        if result == 0 && clock == REALTIME {
            // SAFETY: the kernel has just written it.
            unsafe { (*time).seconds -= super::BEHIND.load(Ordering::Relaxed) };
        }
        if result == 0 { 0 } else { -1 }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_clock_can_be_set_back() {
    use std::time::{Instant, SystemTime};

    // In a process of its own, since the others have the same clock.
    const ALONE: &str = "OUTRIGGER_HOST_CLOCK_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        alone
            .args(["--exact", "clock::the_clock_can_be_set_back"])
            .env(ALONE, "1");
        assert!(alone.status().unwrap().success());
        return;
    }
    let (before, began) = (SystemTime::now(), Instant::now());
    set_back(Duration::from_secs(7200));
    let behind = before.duration_since(SystemTime::now()).unwrap();
    assert!(behind > Duration::from_secs(7100), "{behind:?}");
    assert!(began.elapsed() < Duration::from_secs(60));
}
