//! Who may write to a session: a hash beside it, which only scripts change.

use std::sync::LazyLock;
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_sessions::store::{BoxFuture, LeaseStore, Result, SessionKey, StoreLease};

use super::server::NamedScript;
use super::{RedisStore, damaged, strange};

static ACQUIRE: LazyLock<NamedScript> =
    LazyLock::new(|| NamedScript::new("acquire a lease", include_str!("acquire.lua")));
static RENEW: LazyLock<NamedScript> =
    LazyLock::new(|| NamedScript::new("renew a lease", include_str!("renew.lua")));
static RELEASE: LazyLock<NamedScript> =
    LazyLock::new(|| NamedScript::new("release a lease", include_str!("release.lua")));

impl RedisStore {
    async fn take(&self, key: &SessionKey, owner: &str, ttl: Duration, by_force: bool) -> Result<StoreLease> {
        let lease = self.names(key).lease;
        let (ttl, by_force) = (crate::millis(ttl).to_string(), if by_force { "1" } else { "0" });
        let answer = self
            .shared
            .server
            .write(&ACQUIRE, &[&lease], &[owner, &ttl, by_force])
            .await?;
        let number = |text: &String| text.parse::<u64>().map_err(|_| strange(&ACQUIRE, &answer));
        match (answer.first().map(String::as_str), &answer[..]) {
            (Some("ok"), [_, fence, until]) => {
                Ok(StoreLease::new(key, owner, number(fence)?, number(until)?))
            }
            (Some("held"), [_, by, until]) => Err(crate::is_held(key, Some((by.clone(), number(until)?)))),
            _ => Err(strange(&ACQUIRE, &answer)),
        }
    }
}

impl RedisStore {
    /// As [`take`](Self::take), to its end.
    fn acquired<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
        by_force: bool,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        let (store, key, owner) = (self.clone(), key.main(), owner.to_owned());
        let of = key.clone();
        let acquire = async move { store.take(&of, &owner, ttl, by_force).await };
        Box::pin(self.shared.acquisitions.run(self.clone(), key, acquire))
    }
}

impl LeaseStore for RedisStore {
    fn acquire<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        self.acquired(key, owner, ttl, false)
    }

    fn renew<'a>(&'a self, lease: &'a StoreLease, ttl: Duration) -> BoxFuture<'a, Result<StoreLease>> {
        Box::pin(async move {
            let key = SessionKey::new(&lease.project_key, &lease.session_id);
            let (fence, ttl) = (lease.fence.to_string(), crate::millis(ttl).to_string());
            let arguments = [fence.as_str(), &lease.owner, &ttl];
            let names = self.names(&key);
            let answer = self
                .shared
                .server
                .write(&RENEW, &[&names.lease], &arguments)
                .await?;
            match (answer.first().map(String::as_str), &answer[..]) {
                (Some("ok"), [_, until]) => {
                    let until = until.parse().map_err(|_| strange(&RENEW, &answer))?;
                    Ok(StoreLease::new(&key, &lease.owner, lease.fence, until))
                }
                (Some("fenced"), _) => Err(crate::is_over(lease)),
                _ => Err(strange(&RENEW, &answer)),
            }
        })
    }

    fn release<'a>(&'a self, lease: &'a StoreLease) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let key = SessionKey::new(&lease.project_key, &lease.session_id);
            let fence = lease.fence.to_string();
            let names = self.names(&key);
            let arguments = [fence.as_str(), &lease.owner];
            self.shared
                .server
                .write(&RELEASE, &[&names.lease], &arguments)
                .await
                .map(drop)
        })
    }

    fn append_fenced<'a>(
        &'a self,
        lease: &'a StoreLease,
        key: &'a SessionKey,
        entries: &'a [RawJson],
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            crate::covered(lease, key)?;
            self.add(key, entries, Some(lease)).await
        })
    }

    fn take_over<'a>(
        &'a self,
        key: &'a SessionKey,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<StoreLease>> {
        self.acquired(key, owner, ttl, true)
    }

    fn holder<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<StoreLease>>> {
        Box::pin(async move {
            let mut command = redis::cmd("HMGET");
            let fields = ["owner", "fence", "expires_at", "released"];
            command.arg(self.names(key).lease).arg(&fields);
            let held: Vec<Option<String>> = self.shared.server.query("look at a lease", &command).await?;
            let [Some(owner), Some(fence), Some(until), Some(released)] = &held[..] else {
                return Ok(None);
            };
            let number = |text: &String| text.parse().map_err(|_| damaged(key));
            let lease = StoreLease::new(key, owner, number(fence)?, number(until)?);
            Ok((released == "0").then_some(lease))
        })
    }
}
