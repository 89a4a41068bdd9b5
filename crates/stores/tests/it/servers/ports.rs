//! Ports for servers.

use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port that is given out, and how many there are. The system gives connections ports from 32,768 on, so that none of these
/// is taken while a server starts.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// How many were looked at.
static LOOKED_AT: AtomicU16 = AtomicU16::new(0);

/// Ports that nobody has, and that no other test of this process gets.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    // Other processes begin elsewhere.
    let offset = u16::try_from(process::id() * 64 % u32::from(COUNT)).unwrap();
    [(); N].map(|()| {
        loop {
            let looked_at = LOOKED_AT.fetch_add(1, Ordering::Relaxed) % COUNT;
            let port = FIRST + (offset + looked_at) % COUNT;
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                return port;
            }
        }
    })
}
