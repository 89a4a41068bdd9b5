//! What options with a store may not be.

use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{BoxFuture, MemoryStore, Result, SessionKey};

use super::*;
use crate::options::{Auth, Isolation, Secret};

/// Append and load alone.
struct Minimal;

impl SessionStore for Minimal {
    fn append<'a>(&'a self, _: &'a SessionKey, _: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn load<'a>(&'a self, _: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

fn options() -> Options {
    Options::new(Auth::ApiKey(Secret::new("k")))
}

fn stored() -> Options {
    options().session_store(Arc::new(MemoryStore::new()))
}

const ID: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";

#[test]
fn what_contradicts_a_store_is_found_before_anything_starts() {
    let minimal = || options().session_store(Arc::new(Minimal));
    for (options, names) in [
        (
            stored().persist_session(false),
            ["session_store", "persist_session"],
        ),
        (
            stored().enable_file_checkpointing(true),
            ["session_store", "enable_file_checkpointing"],
        ),
        (stored().worktree("w"), ["session_store", "worktree"]),
        (
            minimal().continue_conversation(true),
            ["continue_conversation", "session_store"],
        ),
        (
            options().session_store_flush(StoreFlush::Eager),
            ["session_store_flush", "session_store"],
        ),
        (
            options().load_timeout(Duration::from_secs(1)),
            ["load_timeout", "session_store"],
        ),
    ] {
        let said = options.check().unwrap_err().to_string();
        for name in names {
            assert!(said.contains(&format!("`{name}`")), "{said}");
        }
    }
    assert_eq!(stored().continue_conversation(true).check(), Ok(()));
    assert_eq!(minimal().resume(ID).check(), Ok(()));
    assert_eq!(stored().check(), Ok(()));
    assert!(stored().resume(ID).check_store(true).is_err());
}

#[test]
fn a_hermetic_session_can_go_on_from_a_store_and_from_nothing_else() {
    let hermetic = |options: Options| options.isolation(Isolation::Hermetic).resume(ID).check();
    assert!(hermetic(options()).is_err());
    assert_eq!(hermetic(stored()), Ok(()));
}
