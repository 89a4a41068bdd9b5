//! Searches for bytes that break the codec; see `outrigger_fuzz::codec`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outrigger_fuzz::codec::run(data));
