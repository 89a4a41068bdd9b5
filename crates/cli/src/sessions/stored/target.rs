//! Which session store is meant.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use outrigger::sessions::store::SessionStore;

/// A session store, by its address. It may have a password in it, so that it is shown without one.
#[derive(Clone)]
pub(super) struct StoreAddress(String);

impl std::str::FromStr for StoreAddress {
    type Err = anyhow::Error;

    fn from_str(address: &str) -> anyhow::Result<Self> {
        let scheme = address.split_once(':').map(|(scheme, _)| scheme);
        match scheme {
            Some("dir" | "sqlite" | "postgres" | "postgresql" | "redis" | "rediss" | "redis+unix" | "s3") => {
                Ok(Self(address.to_owned()))
            }
            _ => bail!(
                "a session store is dir:PATH, sqlite:PATH, postgres://…, redis://…, rediss://…, redis+unix://… or s3://BUCKET/PREFIX"
            ),
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for StoreAddress {
    /// Without what may be secret: user, password and settings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return f.write_str(&self.0);
        };
        // In this order: a password that was not encoded may have any character in it.
        let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
        let rest = rest.split('?').next().unwrap_or_default();
        write!(f, "{scheme}://{rest}")
    }
}

impl StoreAddress {
    /// Opens it. What is not there yet is made only if `create` says so.
    pub(super) async fn open(&self, create: bool) -> anyhow::Result<Arc<dyn SessionStore>> {
        let opened = self.try_open(create).await;
        opened.with_context(|| format!("the session store {self} can't be opened"))
    }

    async fn try_open(&self, create: bool) -> anyhow::Result<Arc<dyn SessionStore>> {
        let (scheme, rest) = self.0.split_once(':').unwrap_or_default();
        if ["dir", "sqlite"].contains(&scheme) {
            is_meant(rest, create)?;
        }
        match scheme {
            #[cfg(feature = "store-directory")]
            "dir" => Ok(Arc::new(outrigger_stores::DirectoryStore::open(rest)?)),
            #[cfg(feature = "store-sqlite")]
            "sqlite" => Ok(Arc::new(outrigger_stores::SqliteStore::open(rest)?)),
            #[cfg(feature = "store-postgres")]
            "postgres" | "postgresql" => {
                Ok(Arc::new(outrigger_stores::PostgresStore::connect(&self.0).await?))
            }
            #[cfg(feature = "store-redis")]
            "redis" | "rediss" | "redis+unix" => redis(&self.0).await,
            #[cfg(feature = "store-s3")]
            "s3" => s3(&self.0).await,
            scheme => {
                let feature = match scheme {
                    "dir" => "store-directory",
                    "postgres" | "postgresql" => "store-postgres",
                    "redis" | "rediss" | "redis+unix" => "store-redis",
                    "s3" => "store-s3",
                    _ => "store-sqlite",
                };
                bail!(
                    "this outrigger was built without the feature `{feature}`; in a clone of its repository: cargo install --locked --path \
                     crates/cli --features {feature}"
                )
            }
        }
    }
}

/// A store that is misspelt is no empty one.
fn is_meant(path: &str, create: bool) -> anyhow::Result<()> {
    if path.is_empty() {
        bail!("its path is missing");
    }
    if !create && !Path::new(path).exists() {
        bail!("there is no {path}");
    }
    Ok(())
}

/// `?prefix=…` is for the names of the keys.
#[cfg(feature = "store-redis")]
async fn redis(address: &str) -> anyhow::Result<Arc<dyn SessionStore>> {
    let (address, settings) = split(address);
    let mut options = outrigger_stores::RedisOptions::new();
    for (name, value) in settings {
        match name {
            "prefix" => options = options.prefix(value),
            other => bail!("{other:?} is no setting of such a store: prefix"),
        }
    }
    Ok(Arc::new(options.connect(address).await?))
}

/// `?endpoint=…&region=…` say where the bucket is. Credentials are those of the environment.
#[cfg(feature = "store-s3")]
async fn s3(address: &str) -> anyhow::Result<Arc<dyn SessionStore>> {
    let (address, settings) = split(address);
    let place = address.trim_start_matches("s3:").trim_start_matches('/');
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    let mut s3 = outrigger_stores::S3::new(bucket);
    if !prefix.is_empty() {
        s3 = s3.prefix(prefix);
    }
    for (name, value) in settings {
        s3 = match name {
            "endpoint" => s3.endpoint(value),
            "region" => s3.region(value),
            other => bail!("{other:?} is no setting of such a store: endpoint, region"),
        };
    }
    let secret = |name: &str| std::env::var(name).ok();
    if let (Some(key), Some(secret)) = (secret("AWS_ACCESS_KEY_ID"), secret("AWS_SECRET_ACCESS_KEY")) {
        s3 = s3.credentials(key, secret);
    }
    Ok(Arc::new(s3.open().await?))
}

#[cfg(any(feature = "store-redis", feature = "store-s3"))]
fn split(address: &str) -> (&str, Vec<(&str, &str)>) {
    let (address, settings) = address.split_once('?').unwrap_or((address, ""));
    let settings = settings.split('&').filter(|setting| !setting.is_empty());
    (
        address,
        settings
            .map(|setting| setting.split_once('=').unwrap_or((setting, "")))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As this program is tested, it has no clients of servers.
    #[cfg(not(feature = "store-redis"))]
    #[tokio::test]
    async fn what_was_left_out_is_told_with_its_feature() {
        let target: StoreAddress = "rediss://:secret@host".parse().unwrap();
        let error = target.open(true).await.map(drop).unwrap_err();
        let told = format!("{error:#}");
        assert!(
            told.contains("--features store-redis") && !told.contains("secret"),
            "{told}"
        );
    }

    #[test]
    fn addresses_are_shown_without_what_is_secret() {
        for (address, shown) in [
            ("dir:/var/x", "dir:/var/x"),
            ("sqlite:x@y.db", "sqlite:x@y.db"),
            (
                "postgres://me:secret@host/db?sslmode=require",
                "postgres://host/db",
            ),
            ("redis://:se@cret@host:1", "redis://host:1"),
            ("redis://:se?cret@host:1?prefix=x", "redis://host:1"),
        ] {
            let target: StoreAddress = address.parse().unwrap();
            assert_eq!(target.to_string(), shown);
            assert_eq!(format!("{target:?}"), shown);
        }
        for wrong in ["", "x", "/path", "http://x", "C:\\x"] {
            assert!(wrong.parse::<StoreAddress>().is_err(), "{wrong}");
        }
    }
}
