//! Whether a store does as it must: a test to run against one of your own.
//!
//! ```
//! # use std::sync::Arc;
//! # use outrigger_sessions::store::{MemoryStore, SessionStore, conformance};
//! # async fn test() {
//! // An empty store each time, so that no contract sees what another one wrote.
//! let make = || async { Ok(Arc::new(MemoryStore::new()) as Arc<dyn SessionStore>) };
//! let report = conformance::check(make).await.unwrap();
//! assert!(report.skipped.is_empty());
//! # }
//! ```

mod faulty;
mod leases;
mod official;
mod strict;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use outrigger_protocol::RawJson;

pub use self::faulty::{Fault, FaultyStore};
use super::{BoxFuture, Capabilities, Result, SessionKey, SessionStore, StoreError};

/// The checked and the skipped contracts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// The contracts that the store keeps.
    pub kept: Vec<&'static str>,
    /// Contracts about functions that the store doesn't have.
    pub skipped: Vec<&'static str>,
}

/// A contract that the store breaks.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the store breaks the contract \"{contract}\": {seen}")]
#[non_exhaustive]
pub struct Broken {
    /// The name of the check, which is the promise.
    pub contract: &'static str,
    /// What happened instead.
    pub seen: String,
}

/// Checks all contracts: the fourteen of the official SDKs, those of this crate, and leases if the store has them.
/// `make` returns an empty store for each of them. Stops at the first broken contract.
///
/// Contracts about functions that the store doesn't have ([`SessionStore::capabilities`]) are skipped, and listed as such.
///
/// # Cancel safety
/// Dropping the future leaves behind the data of the current contract.
///
/// # Errors
/// The first contract that is broken, or that could not be checked because the store, or `make`, failed.
pub async fn check<M, F>(make: M) -> Result<Report, Broken>
where
    M: Fn() -> F,
    F: Future<Output = Result<Arc<dyn SessionStore>>>,
{
    let contracts = [official::CONTRACTS, strict::CONTRACTS, leases::CONTRACTS];
    run(make, contracts.concat()).await
}

/// Checks only the official SDKs' contracts, for a store that is made for them: entries come back equal as JSON, but
/// not as text, and repeated entries may be stored twice.
///
/// # Cancel safety
/// As [`check`].
///
/// # Errors
/// As [`check`].
pub async fn check_official<M, F>(make: M) -> Result<Report, Broken>
where
    M: Fn() -> F,
    F: Future<Output = Result<Arc<dyn SessionStore>>>,
{
    run(make, official::CONTRACTS.to_vec()).await
}

/// A promise, the functions that it is about, and what holds a store against it.
#[derive(Clone, Copy)]
struct Contract {
    name: &'static str,
    needs: Needs,
    check: fn(Probe) -> BoxFuture<'static, ContractResult>,
}

#[derive(Clone, Copy)]
enum Needs {
    Nothing,
    Sessions,
    Summaries,
    Delete,
    Subkeys,
    Leases,
}

/// Contracts, a line each: the promise, what the store has to have for it, and the function that checks it.
macro_rules! contracts {
    ($( $name:literal, $needs:ident => $check:ident; )+) => {
        &[$( $crate::store::conformance::Contract {
            name: $name,
            needs: $crate::store::conformance::Needs::$needs,
            check: |probe| Box::pin(async move { $check(&probe).await }),
        } ),+]
    };
}
use contracts;

/// No objection, or what happened instead.
type ContractResult = Result<(), String>;

async fn run<M, F>(make: M, contracts: Vec<Contract>) -> Result<Report, Broken>
where
    M: Fn() -> F,
    F: Future<Output = Result<Arc<dyn SessionStore>>>,
{
    let mut report = Report::default();
    for contract in contracts {
        let broken = |seen| Broken {
            contract: contract.name,
            seen,
        };
        let store = make()
            .await
            .map_err(|error| broken(format!("no store could be made: {}", error.chain())))?;
        let has = store.capabilities();
        let is_checked = match contract.needs {
            Needs::Nothing => true,
            Needs::Sessions => has.list_sessions,
            Needs::Summaries => has.list_session_summaries,
            Needs::Delete => has.delete,
            Needs::Subkeys => has.list_subkeys,
            Needs::Leases => store.leases().is_some(),
        };
        if is_checked {
            (contract.check)(Probe { store, has }).await.map_err(broken)?;
            report.kept.push(contract.name);
        } else {
            report.skipped.push(contract.name);
        }
    }
    Ok(report)
}

/// The store, with failures that name the call.
struct Probe {
    store: Arc<dyn SessionStore>,
    has: Capabilities,
}

impl Probe {
    async fn append(&self, key: &SessionKey, entries: &[RawJson]) -> ContractResult {
        let appended = self.store.append(key, entries).await;
        appended.map_err(failed(&format!("append of {} entries to {key}", entries.len())))
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<Vec<RawJson>>, String> {
        self.store
            .load(key)
            .await
            .map_err(failed(&format!("load of {key}")))
    }

    async fn delete(&self, key: &SessionKey) -> ContractResult {
        self.store
            .delete(key)
            .await
            .map_err(failed(&format!("delete of {key}")))
    }

    async fn sessions(&self, project: &str) -> Result<Vec<(String, u64)>, String> {
        let list = self
            .store
            .list_sessions(project)
            .await
            .map_err(failed("list_sessions"))?;
        let mut list: Vec<_> = list
            .into_iter()
            .map(|session| (session.session_id, session.mtime))
            .collect();
        list.sort();
        Ok(list)
    }

    async fn subkeys(&self, key: &SessionKey) -> Result<Vec<String>, String> {
        let mut list = self
            .store
            .list_subkeys(key)
            .await
            .map_err(failed("list_subkeys"))?;
        list.sort();
        Ok(list)
    }

    /// Checks that a transcript has these entries, as JSON.
    async fn has(&self, key: &SessionKey, entries: &[RawJson]) -> ContractResult {
        let loaded = self
            .load(key)
            .await?
            .ok_or_else(|| format!("{key} isn't there"))?;
        let values =
            |list: &[RawJson]| -> Vec<_> { list.iter().map(|entry| entry.to_value().ok()).collect() };
        same(&format!("entries of {key}"), &values(&loaded), &values(entries))
    }

    /// Checks that a transcript has these entries, as text.
    async fn has_exactly(&self, key: &SessionKey, entries: &[RawJson]) -> ContractResult {
        let loaded = self
            .load(key)
            .await?
            .ok_or_else(|| format!("{key} isn't there"))?;
        same(
            &format!("number of entries of {key}"),
            &loaded.len(),
            &entries.len(),
        )?;
        match loaded.iter().zip(entries).find(|(got, put)| got != put) {
            Some((got, put)) => Err(format!(
                "an entry of {key} came back as {got:.200?}, it was {put:.200?}"
            )),
            None => Ok(()),
        }
    }

    async fn lacks(&self, key: &SessionKey) -> ContractResult {
        match self.load(key).await? {
            None => Ok(()),
            Some(entries) => Err(format!("{key} is there, with {} entries", entries.len())),
        }
    }
}

fn failed(what: &str) -> impl Fn(StoreError) -> String {
    move |error| format!("{what} failed: {}", error.chain())
}

fn same<T: PartialEq + fmt::Debug>(what: &str, got: &T, wanted: &T) -> ContractResult {
    if got == wanted {
        return Ok(());
    }
    Err(format!("{what}: {got:.500?} instead of {wanted:.500?}"))
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> ContractResult {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// An entry with these fields.
fn entry(fields: &str) -> RawJson {
    let text = if fields.is_empty() {
        r#"{"type":"x"}"#.to_owned()
    } else {
        format!(r#"{{"type":"x",{fields}}}"#)
    };
    // Nothing but texts of this module.
    RawJson::from_text(text).unwrap_or_default()
}

fn with_uuid(uuid: &str, n: u64) -> RawJson {
    entry(&format!(r#""uuid":"{uuid}","n":{n}"#))
}

fn key() -> SessionKey {
    SessionKey::new("proj", "sess")
}

/// Drives all at once, on the caller's task.
async fn all(futures: Vec<BoxFuture<'_, Result<()>>>) -> Result<()> {
    let mut open: Vec<Pin<Box<_>>> = futures;
    let mut error = Ok(());
    std::future::poll_fn(move |cx| {
        open.retain_mut(|future| match future.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(done) => {
                if error.is_ok() {
                    error = done;
                }
                false
            }
        });
        if open.is_empty() {
            Poll::Ready(std::mem::replace(&mut error, Ok(())))
        } else {
            Poll::Pending
        }
    })
    .await
}

#[cfg(test)]
pub(crate) mod tests;
