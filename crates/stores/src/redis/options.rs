//! How the store is reached, and how careful it is.

use std::time::Duration;

use outrigger_sessions::store::{Result, StoreError, StoreErrorKind};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClientBuilder;
use redis::{Client, Value};

use super::RedisStore;
use super::server::{RedisConnection, Server, failed};

/// How a [`RedisStore`] is reached, and how careful it is.
#[derive(Debug, Clone)]
#[must_use = "nothing is connected until `connect` is called"]
pub struct RedisOptions {
    prefix: String,
    replicas: usize,
    patience: Duration,
    #[cfg(feature = "redis-tls")]
    authorities: Option<std::path::PathBuf>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: "outrigger".to_owned(),
            replicas: 0,
            patience: Duration::from_secs(30),
            #[cfg(feature = "redis-tls")]
            authorities: None,
        }
    }
}

impl RedisOptions {
    /// All as it is by default.
    pub fn new() -> Self {
        Self::default()
    }

    /// The prefix of the names of all keys, so that several stores, and other data, can be in one database. By default
    /// `outrigger`. No braces.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How many replicas must have a write before it counts as done (`WAIT`). None by default. With as many as the server has, what
    /// was acknowledged survives the loss of the server if one of them takes over; each write then waits for the slowest.
    ///
    /// If fewer have it in half of the [patience](Self::patience), the write fails although the server has it: as after a lost
    /// answer, send it again.
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// The most time that the answer to one command may take, and a new connection. Half a minute by default.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the PEM file with the authorities that may sign the server's certificate (`rediss://`). The default is
    /// the system's authorities.
    #[cfg(feature = "redis-tls")]
    pub fn authorities(mut self, file: impl AsRef<std::path::Path>) -> Self {
        self.authorities = Some(file.as_ref().to_owned());
        self
    }

    /// Connects to one server: `redis://user:password@host:6379/0`, `redis+unix:///run/redis/redis.sock`; with the feature
    /// `redis-tls` also `rediss://host:6379`. A lost connection is opened again.
    ///
    /// # Cancel safety
    /// Dropped, the stored data is unchanged or upgraded.
    ///
    /// # Errors
    /// When the address is malformed, the server can't be reached or evicts keys when its memory is full, or its data
    /// was stored by a newer version of this crate.
    pub async fn connect(&self, url: &str) -> Result<RedisStore> {
        let client = self.client(url)?;
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(self.patience))
            .set_connection_timeout(Some(self.patience))
            .set_number_of_retries(2);
        let connecting = self.in_time(ConnectionManager::new_with_config(client, config));
        let link = connecting.await?.map_err(|error| failed("connect", error))?;
        self.store(RedisConnection::One(link)).await
    }

    /// Connects to a cluster, of which some nodes are named by their addresses.
    ///
    /// All that belongs to a session is on one node; the sessions of a project are spread over all.
    ///
    /// # Cancel safety
    /// As [`connect`](Self::connect).
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_cluster(
        &self,
        urls: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<RedisStore> {
        let urls: Vec<String> = urls.into_iter().map(|url| url.as_ref().to_owned()).collect();
        #[cfg(feature = "redis-tls")]
        let has_tls = urls.iter().any(|url| is_tls(url));
        let client = ClusterClientBuilder::new(urls)
            .response_timeout(self.patience)
            .connection_timeout(self.patience)
            .retries(5);
        #[cfg(feature = "redis-tls")]
        let client = if has_tls {
            client.certs(self.certificates()?)
        } else {
            client
        };
        let client = client
            .build()
            .map_err(|error| failed("read its addresses", error))?;
        let link = self.in_time(client.get_async_connection()).await?;
        let link = link.map_err(|error| failed("connect to the cluster", error))?;
        self.store(RedisConnection::Cluster(link)).await
    }

    #[cfg(not(feature = "redis-tls"))]
    #[expect(clippy::unused_self, reason = "with TLS it says whom to trust")]
    fn client(&self, url: &str) -> Result<Client> {
        Client::open(url).map_err(|error| failed("read its address", error))
    }

    #[cfg(feature = "redis-tls")]
    fn client(&self, url: &str) -> Result<Client> {
        let client = if is_tls(url) {
            Client::build_with_tls(url, self.certificates()?)
        } else {
            Client::open(url)
        };
        client.map_err(|error| failed("read its address", error))
    }

    /// Whom to trust.
    #[cfg(feature = "redis-tls")]
    fn certificates(&self) -> Result<redis::TlsCertificates> {
        use rustls::crypto::{CryptoProvider, ring};
        if CryptoProvider::get_default().is_none() {
            // The client uses the provider of the process, and panics if it can't choose one. Another thread may be faster, which is fine.
            let _ = ring::default_provider().install_default();
        }
        let read = |file: &std::path::PathBuf| {
            std::fs::read(file).map_err(|error| {
                let what = format!(
                    "the authorities of a Redis session store can't be read from {}",
                    file.display()
                );
                StoreError::failed(what, error)
            })
        };
        Ok(redis::TlsCertificates {
            client_tls: None,
            root_cert: self.authorities.as_ref().map(read).transpose()?,
        })
    }

    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let done = tokio::time::timeout(self.patience, work).await;
        done.map_err(|_| {
            let what = format!(
                "the Redis session store could not connect within {:?}",
                self.patience
            );
            StoreError::new(StoreErrorKind::Failed, what)
        })
    }

    async fn store(&self, link: RedisConnection) -> Result<RedisStore> {
        if self.prefix.contains(['{', '}']) {
            let what = format!("the prefix {:?} of a Redis session store has braces", self.prefix);
            return Err(StoreError::new(StoreErrorKind::Invalid, what));
        }
        let server = Server {
            link,
            patience: self.patience,
            replicas: self.replicas,
        };
        keeps_what_it_has(&server).await?;
        let store = RedisStore::new(server, self.prefix.clone());
        store.migrate().await?;
        Ok(store)
    }
}

#[cfg(feature = "redis-tls")]
fn is_tls(url: &str) -> bool {
    url.starts_with("rediss:") || url.starts_with("valkeys:")
}

/// Checks that the server does not evict sessions. A server that does not report its policy passes.
async fn keeps_what_it_has(server: &Server) -> Result<()> {
    let mut info = redis::cmd("INFO");
    info.arg("memory");
    let answer = server.query::<Value>("look at the server", &info).await;
    let Ok(answer) = answer else {
        // A user without the right to read the policy may still have a good server. A server that can't be reached fails again later.
        return Ok(());
    };
    let mut texts = Vec::new();
    collect(answer, &mut texts);
    match texts.iter().find_map(|text| evicting(text)) {
        Some(policy) => {
            let what = format!(
                "the Redis server throws keys away when its memory is full (maxmemory-policy {policy}), and sessions with them: \
                 set it to noeviction"
            );
            Err(StoreError::new(StoreErrorKind::Invalid, what))
        }
        None => Ok(()),
    }
}

/// The texts in an answer, which is one of each node in a cluster.
fn collect(value: Value, texts: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.into_iter().for_each(|value| collect(value, texts)),
        Value::Map(pairs) => pairs.into_iter().for_each(|(_, value)| collect(value, texts)),
        Value::BulkString(bytes) => texts.push(String::from_utf8_lossy(&bytes).into_owned()),
        Value::VerbatimString { text, .. } => texts.push(text),
        _ => {}
    }
}

/// The policy by which keys without an expiry are evicted. Without a memory limit there is no eviction.
fn evicting(info: &str) -> Option<&str> {
    let field = |name: &str| {
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
    };
    let policy = field("maxmemory_policy").filter(|policy| policy.starts_with("allkeys"));
    policy.filter(|_| field("maxmemory") != Some("0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_throws_keys_away_is_known() {
        let info = |limit: &str, policy: &str| {
            format!("# Memory\r\nmaxmemory:{limit}\r\nmaxmemory_human:1M\r\nmaxmemory_policy:{policy}\r\n")
        };
        assert_eq!(evicting(&info("1000000", "allkeys-lru")), Some("allkeys-lru"));
        assert_eq!(evicting(&info("0", "allkeys-lru")), None);
        assert_eq!(
            evicting(&info("1000000", "volatile-lru")),
            None,
            "nothing of ours runs out"
        );
        assert_eq!(evicting(&info("1000000", "noeviction")), None);
        assert_eq!(evicting("# Memory\r\n"), None);
    }
}
