//! What options with a lease may not be, and what is said of one that is lost.

use std::sync::Arc;

use outrigger_sessions::store::MemoryStore;

use super::*;
use crate::OnBusy;
use crate::options::{Auth, Secret};
use crate::ownership::{Holder, LeaseProblem};

const ID: &str = "0f6d8a6e-2f55-4a9c-8d3c-0d3a7c8f1b22";

fn leased() -> Options {
    Options::new(Auth::ApiKey(Secret::new("k"))).lease(OnBusy::Fail)
}

#[test]
fn what_contradicts_a_lease_is_found_before_anything_starts() {
    let too_short = LeaseOptions::new().ttl(Duration::from_millis(99));
    for (options, names) in [
        (leased().persist_session(false), ["lease", "persist_session"]),
        (
            leased().continue_conversation(true),
            ["lease", "continue_conversation"],
        ),
        (leased().resume("a title"), ["lease", "resume"]),
        (leased().lease(too_short), ["lease", "ttl"]),
    ] {
        let said = options.check().unwrap_err().to_string();
        for name in names {
            assert!(said.contains(name), "{said}");
        }
    }
    assert_eq!(leased().check(), Ok(()));
    assert_eq!(leased().resume(ID).check(), Ok(()));
    let stored = leased().session_store(Arc::new(MemoryStore::new()));
    assert_eq!(stored.clone().continue_conversation(true).check(), Ok(()));
    assert_eq!(stored.check_lease(true), Ok(()));
    let said = leased().check_lease(true).unwrap_err().to_string();
    assert!(said.contains("session_store"), "{said}");
}

#[test]
fn a_loss_is_told_with_who_and_since_when() {
    let by = Holder {
        who: "worker 3 (process 7 on far, since 2026-01-31T12:34:56.789Z)".to_owned(),
        fence: Some(5),
        until: None,
    };
    let session = || ID.to_owned();
    let all = [
        LeaseProblem::Held {
            session: session(),
            by: by.clone(),
        },
        LeaseProblem::TakenOver {
            session: session(),
            fence: Some(4),
            by: Some(by.clone()),
        },
        LeaseProblem::HandedOver {
            session: session(),
            to: by,
        },
    ];
    for problem in all {
        let said = problem.to_string();
        assert!(said.contains(ID), "{said}");
        assert!(
            said.contains("worker 3 (process 7 on far, since 2026-01-31T12:34:56.789Z), with fence 5"),
            "{said}"
        );
        assert!(!problem.advice().is_empty());
    }
}
