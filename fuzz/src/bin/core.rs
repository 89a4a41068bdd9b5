//! Searches for inputs that break the state machine of a connection; its laws are in `crates/sdk/src/conn/core/laws.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| outrigger::core_laws(data));
