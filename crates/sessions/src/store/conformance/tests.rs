//! A store that breaks a contract is told so, by name.

use std::future::ready;
use std::task::{Context, Waker};

use super::*;
use crate::store::{MemoryStore, StoredSession, SummaryEntry};

/// Drives a future that never really waits.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
    }
}

/// Spoils what a good store does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    OrderTurned,
    EmptyForUnknown,
    EmptyMade,
    PartsMixedIn,
    ProjectsMixed,
    Seconds,
    PartsListed,
    NotDeleted,
    PartsNotDeleted,
    DeletesAll,
    OthersListed,
    MainListed,
    SummaryOld,
    Reformatted,
    Doubled,
    EqualLeftOut,
    SlashesLost,
    Truncates,
}

struct Faulty {
    inner: MemoryStore,
    fault: Fault,
}

impl Faulty {
    fn key(&self, key: &SessionKey) -> SessionKey {
        let mut key = key.clone();
        match self.fault {
            Fault::PartsMixedIn => key.subpath = None,
            Fault::ProjectsMixed => key.project_key = "all".to_owned(),
            Fault::SlashesLost => key.session_id = key.session_id.replace('/', "-"),
            _ => {}
        }
        key
    }
}

impl SessionStore for Faulty {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut entries = entries.to_vec();
            match self.fault {
                Fault::OrderTurned => entries.reverse(),
                Fault::EmptyMade if entries.is_empty() => entries.push(entry("")),
                Fault::Reformatted => {
                    entries = entries
                        .iter()
                        .map(|entry| entry.to_value().map_or_else(|_| entry.clone(), RawJson::from))
                        .collect();
                }
                Fault::Doubled => {
                    entries = entries
                        .iter()
                        .map(|entry| renamed(entry, "uuid", "uuiD"))
                        .collect();
                }
                Fault::EqualLeftOut => {
                    let there = self.inner.entries(key);
                    entries.retain(|entry| !there.contains(entry));
                }
                Fault::Truncates => entries.truncate(1000),
                _ => {}
            }
            self.inner.append(&self.key(key), &entries).await
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        Box::pin(async move {
            let loaded = self.inner.load(&self.key(key)).await?;
            Ok(match self.fault {
                Fault::EmptyForUnknown => Some(loaded.unwrap_or_default()),
                Fault::Doubled => loaded.map(|entries| {
                    entries
                        .iter()
                        .map(|entry| renamed(entry, "uuiD", "uuid"))
                        .collect()
                }),
                _ => loaded,
            })
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn list_sessions<'a>(&'a self, project_key: &'a str) -> BoxFuture<'a, Result<Vec<StoredSession>>> {
        Box::pin(async move {
            let mut list = self.inner.list_sessions(project_key).await?;
            match self.fault {
                Fault::Seconds => list.iter_mut().for_each(|session| session.mtime /= 1000),
                Fault::PartsListed => {
                    let parts = self.inner.keys().into_iter().filter_map(|key| key.subpath);
                    list.extend(parts.map(|part| StoredSession::new(part, u64::MAX)));
                }
                _ => {}
            }
            Ok(list)
        })
    }

    fn list_session_summaries<'a>(
        &'a self,
        project_key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<SummaryEntry>>> {
        Box::pin(async move {
            let mut list = self.inner.list_session_summaries(project_key).await?;
            if self.fault == Fault::SummaryOld {
                list.iter_mut().for_each(|summary| summary.mtime -= 1);
            }
            Ok(list)
        })
    }

    fn delete<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.fault {
                Fault::NotDeleted => {}
                Fault::DeletesAll => self.inner.clear(),
                Fault::PartsNotDeleted if key.is_main() => {
                    let parts: Vec<_> = self
                        .inner
                        .keys()
                        .into_iter()
                        .filter(|other| !other.is_main())
                        .collect();
                    let kept: Vec<_> = parts
                        .iter()
                        .map(|key| (key.clone(), self.inner.entries(key)))
                        .collect();
                    self.inner.delete(key).await?;
                    for (key, entries) in kept {
                        self.inner.append(&key, &entries).await?;
                    }
                }
                _ => self.inner.delete(key).await?,
            }
            Ok(())
        })
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(async move {
            match self.fault {
                Fault::OthersListed => Ok(self
                    .inner
                    .keys()
                    .into_iter()
                    .filter_map(|key| key.subpath)
                    .collect()),
                Fault::MainListed => {
                    let mut list = self.inner.list_subkeys(key).await?;
                    list.push(String::new());
                    Ok(list)
                }
                _ => self.inner.list_subkeys(key).await,
            }
        })
    }
}

fn renamed(entry: &RawJson, from: &str, to: &str) -> RawJson {
    let text = entry
        .get()
        .replace(&format!("\"{from}\":"), &format!("\"{to}\":"));
    RawJson::from_text(text).unwrap()
}

fn broken_by(fault: Fault) -> &'static str {
    let make = move || {
        ready(Ok(Arc::new(Faulty {
            inner: MemoryStore::new(),
            fault,
        }) as Arc<dyn SessionStore>))
    };
    match block_on(check(make)) {
        Err(broken) => broken.contract,
        Ok(_) => panic!("{fault:?} was not noticed"),
    }
}

#[test]
fn each_fault_breaks_the_contract_that_names_it() {
    for (fault, contract) in [
        (Fault::OrderTurned, "what was appended is loaded, in order"),
        (Fault::EmptyForUnknown, "what was never written is not there"),
        (Fault::EmptyMade, "appending nothing changes nothing"),
        (Fault::PartsMixedIn, "what was never written is not there"),
        (Fault::ProjectsMixed, "projects are kept apart"),
        (
            Fault::Seconds,
            "list_sessions has the sessions of the project, with times",
        ),
        (Fault::PartsListed, "list_sessions leaves parts out"),
        (Fault::NotDeleted, "delete removes a session"),
        (
            Fault::PartsNotDeleted,
            "delete of a session removes its parts, and nothing else",
        ),
        (
            Fault::DeletesAll,
            "delete of a session removes its parts, and nothing else",
        ),
        (Fault::OthersListed, "list_subkeys has the parts of the session"),
        (
            Fault::MainListed,
            "delete of a session removes its parts, and nothing else",
        ),
        (
            Fault::SummaryOld,
            "list_session_summaries has what the fold made, by the clock of list_sessions",
        ),
        (Fault::Reformatted, "entries come back as the same text"),
        (Fault::Doubled, "an entry with a uuid is stored once"),
        (Fault::EqualLeftOut, "an entry without a uuid is always stored"),
        (Fault::SlashesLost, "keys are kept apart whatever is in them"),
        (Fault::Truncates, "many and large entries are kept"),
    ] {
        assert_eq!(broken_by(fault), contract);
    }
}

/// Append and load alone.
struct Minimal(MemoryStore);

impl SessionStore for Minimal {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [RawJson]) -> BoxFuture<'a, Result<()>> {
        self.0.append(key, entries)
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<Vec<RawJson>>>> {
        self.0.load(key)
    }
}

#[test]
fn what_a_store_has_not_is_skipped_and_said() {
    let make = || ready(Ok(Arc::new(Minimal(MemoryStore::new())) as Arc<dyn SessionStore>));
    let report = block_on(check(make)).unwrap();
    assert_eq!(report.skipped.len(), 20);
    let report = block_on(check_official(make)).unwrap();
    assert_eq!((report.kept.len(), report.skipped.len()), (6, 8));
    let store = Minimal(MemoryStore::new());
    let refused = block_on(store.list_sessions("p")).unwrap_err();
    assert_eq!(*refused.kind(), crate::store::StoreErrorKind::Unsupported);
}

#[test]
fn a_store_that_fails_is_named_with_what_it_said() {
    let make = || {
        ready(Err(StoreError::failed(
            "opening the store",
            std::io::Error::other("no disk"),
        )))
    };
    let broken = block_on(check(make)).unwrap_err();
    assert!(
        broken.to_string().contains("opening the store: no disk"),
        "{broken}"
    );
}
