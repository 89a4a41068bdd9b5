//! What leases promise.

use std::time::Duration;

use super::{Contract, ContractResult, Probe, contracts, ensure, key, same, with_uuid};
use crate::store::{LeaseStore, Result, SessionKey, StoreErrorKind};

pub(super) const CONTRACTS: &[Contract] = contracts! {
    "a leased session is not leased to another owner", Leases => held_is_held;
    "a lease that ran out, or was given back, can be taken", Leases => over_can_be_taken;
    "fencing numbers grow and are never used twice", Leases => fences_grow;
    "who was overtaken writes nothing any more", Leases => overtaken_is_refused;
    "a lease that runs can be taken over, and its holder is refused then", Leases => can_be_taken_over;
    "a lease that nobody has taken can be renewed and written under, even if it ran out", Leases => late_is_not_overtaken;
    "a lease covers its session with all parts, and no other", Leases => a_lease_covers_its_session;
};

const LONG: Duration = Duration::from_secs(3600);
const OVER: Duration = Duration::ZERO;

fn leases(probe: &Probe) -> Result<&dyn LeaseStore, String> {
    probe
        .store
        .leases()
        .ok_or_else(|| "the store has leases no more".to_owned())
}

fn refused<T: std::fmt::Debug>(
    what: &str,
    got: Result<T>,
    is: fn(&StoreErrorKind) -> bool,
) -> ContractResult {
    match got {
        Err(error) if is(error.kind()) => Ok(()),
        other => Err(format!("{what} gave {other:?}")),
    }
}

fn fenced(kind: &StoreErrorKind) -> bool {
    *kind == StoreErrorKind::Fenced
}

fn held(kind: &StoreErrorKind) -> bool {
    matches!(kind, StoreErrorKind::Held { .. })
}

async fn held_is_held(probe: &Probe) -> ContractResult {
    let leases = leases(probe)?;
    let lease = leases
        .acquire(&key(), "one", LONG)
        .await
        .map_err(super::failed("acquire"))?;
    same("owner", &lease.owner.as_str(), &"one")?;
    let second = leases.acquire(&key(), "two", LONG).await;
    match &second {
        Err(error) => match error.kind() {
            StoreErrorKind::Held { owner, .. } => same("owner that is named", &owner.as_str(), &"one")?,
            other => return Err(format!("a second owner got {other:?}")),
        },
        Ok(_) => return Err("a second owner got the lease".to_owned()),
    }
    let part = leases
        .acquire(&key().with_subpath("subagents/agent-1"), "two", LONG)
        .await;
    refused("a second owner's acquire of a part", part, held)?;
    let other = SessionKey::new("proj", "other");
    leases
        .acquire(&other, "two", Duration::MAX)
        .await
        .map_err(super::failed("acquire of another session"))?;
    refused(
        "acquire of what somebody has for ever",
        leases.acquire(&other, "three", LONG).await,
        held,
    )
}

async fn over_can_be_taken(probe: &Probe) -> ContractResult {
    let leases = leases(probe)?;
    leases
        .acquire(&key(), "one", OVER)
        .await
        .map_err(super::failed("acquire"))?;
    let second = leases.acquire(&key(), "two", LONG).await;
    let second = second.map_err(super::failed("acquire of a lease that ran out"))?;
    leases.release(&second).await.map_err(super::failed("release"))?;
    leases
        .release(&second)
        .await
        .map_err(super::failed("release of what was given back"))?;
    let third = leases.acquire(&key(), "three", LONG).await;
    let third = third.map_err(super::failed("acquire of a lease that was given back"))?;
    // A late release of an old lease must not release another owner's.
    leases
        .release(&second)
        .await
        .map_err(super::failed("release of what was given back"))?;
    refused(
        "acquire after a stale release",
        leases.acquire(&key(), "four", LONG).await,
        held,
    )?;
    leases.renew(&third, LONG).await.map_err(super::failed("renew"))?;
    Ok(())
}

async fn fences_grow(probe: &Probe) -> ContractResult {
    let leases = leases(probe)?;
    let mut before = 0;
    for (round, owner) in ["one", "one", "two", "one"].into_iter().enumerate() {
        let lease = leases
            .acquire(&key(), owner, if round == 0 { LONG } else { OVER })
            .await;
        let lease = lease.map_err(super::failed("acquire"))?;
        ensure(lease.fence > before, || {
            format!("the number went from {before} to {}", lease.fence)
        })?;
        before = lease.fence;
        if round == 2 {
            leases.release(&lease).await.map_err(super::failed("release"))?;
            if probe.has.delete {
                probe.delete(&key()).await?;
            }
        }
    }
    Ok(())
}

async fn overtaken_is_refused(probe: &Probe) -> ContractResult {
    let leases = leases(probe)?;
    let old = leases
        .acquire(&key(), "one", OVER)
        .await
        .map_err(super::failed("acquire"))?;
    let written = [with_uuid("a", 1)];
    leases
        .append_fenced(&old, &key(), &written)
        .await
        .map_err(super::failed("append_fenced"))?;
    let new = leases
        .acquire(&key(), "two", OVER)
        .await
        .map_err(super::failed("acquire"))?;
    let late = [with_uuid("late", 2)];
    refused(
        "a write of who was overtaken",
        leases.append_fenced(&old, &key(), &late).await,
        fenced,
    )?;
    refused(
        "a renewal of who was overtaken",
        leases.renew(&old, LONG).await,
        fenced,
    )?;
    let more = [with_uuid("b", 3)];
    leases
        .append_fenced(&new, &key(), &more)
        .await
        .map_err(super::failed("append_fenced"))?;
    // The same owner's new lease overtakes his old one, too.
    let newer = leases
        .acquire(&key(), "two", LONG)
        .await
        .map_err(super::failed("acquire"))?;
    refused(
        "a write under an owner's older lease",
        leases.append_fenced(&new, &key(), &late).await,
        fenced,
    )?;
    leases.release(&newer).await.map_err(super::failed("release"))?;
    refused(
        "a write under a lease that was given back",
        leases.append_fenced(&newer, &key(), &late).await,
        fenced,
    )?;
    probe.has_exactly(&key(), &[written, more].concat()).await
}

async fn can_be_taken_over(probe: &Probe) -> ContractResult {
    let leases = leases(probe)?;
    let free = leases.take_over(&key(), "one", LONG).await;
    let old = free.map_err(super::failed("take_over of what nobody has"))?;
    let new = leases.take_over(&key(), "two", LONG).await;
    let new = new.map_err(super::failed("take_over"))?;
    same("owner", &new.owner.as_str(), &"two")?;
    ensure(new.fence > old.fence, || {
        format!("the number went from {} to {}", old.fence, new.fence)
    })?;
    refused(
        "a write of who was taken over",
        leases.append_fenced(&old, &key(), &[with_uuid("late", 1)]).await,
        fenced,
    )?;
    refused(
        "a renewal of who was taken over",
        leases.renew(&old, LONG).await,
        fenced,
    )?;
    let known = leases.holder(&key()).await.map_err(super::failed("holder"))?;
    if let Some(known) = known {
        same("holder", &known.owner.as_str(), &"two")?;
        same("number of the holder's lease", &known.fence, &new.fence)?;
    }
    let written = [with_uuid("a", 2)];
    leases
        .append_fenced(&new, &key(), &written)
        .await
        .map_err(super::failed("append_fenced"))?;
    leases.release(&new).await.map_err(super::failed("release"))?;
    let known = leases.holder(&key()).await.map_err(super::failed("holder"))?;
    ensure(known.is_none(), || format!("given back, it is held by {known:?}"))?;
    probe.has_exactly(&key(), &written).await
}

async fn late_is_not_overtaken(probe: &Probe) -> ContractResult {
    let leases = leases(probe)?;
    let lease = leases
        .acquire(&key(), "one", OVER)
        .await
        .map_err(super::failed("acquire"))?;
    let entries = [with_uuid("a", 1)];
    leases
        .append_fenced(&lease, &key(), &entries)
        .await
        .map_err(super::failed("append_fenced"))?;
    let renewed = leases.renew(&lease, LONG).await.map_err(super::failed("renew"))?;
    same("number of a renewed lease", &renewed.fence, &lease.fence)?;
    ensure(renewed.expires_at > lease.expires_at, || {
        "renewing did not make it longer".to_owned()
    })?;
    refused(
        "acquire of a renewed lease",
        leases.acquire(&key(), "two", LONG).await,
        held,
    )?;
    // Entries that came twice are stored once here, too.
    leases
        .append_fenced(&renewed, &key(), &entries)
        .await
        .map_err(super::failed("append_fenced"))?;
    probe.has_exactly(&key(), &entries).await
}

async fn a_lease_covers_its_session(probe: &Probe) -> ContractResult {
    let leases = leases(probe)?;
    let lease = leases
        .acquire(&key(), "one", LONG)
        .await
        .map_err(super::failed("acquire"))?;
    let part = key().with_subpath("subagents/agent-1");
    leases
        .append_fenced(&lease, &part, &[with_uuid("a", 1)])
        .await
        .map_err(super::failed("append_fenced"))?;
    probe.has_exactly(&part, &[with_uuid("a", 1)]).await?;
    let other = SessionKey::new("proj", "other");
    let wrong = leases.append_fenced(&lease, &other, &[with_uuid("a", 1)]).await;
    refused("a write to another session", wrong, |kind| {
        *kind == StoreErrorKind::Invalid
    })?;
    probe.lacks(&other).await?;
    // Nothing to write is no reason to make a session.
    leases
        .append_fenced(&lease, &key(), &[])
        .await
        .map_err(super::failed("append_fenced of nothing"))?;
    probe.lacks(&key()).await?;
    if probe.has.list_sessions {
        same(
            "sessions after nothing was written",
            &probe.sessions("proj").await?,
            &Vec::new(),
        )?;
    }
    Ok(())
}
