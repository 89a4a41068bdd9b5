//! Searches for bodies, cursors, cron expressions and addresses that break a host; its laws are in `crates/host-http/src/api/laws.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outrigger_host_http::laws(data));
