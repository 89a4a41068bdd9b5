//! Searches for conversations that break a session; see `outrigger_fuzz::session`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outrigger_fuzz::session::run(data));
