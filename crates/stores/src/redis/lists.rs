//! The sessions of a project: a set of their names, which in a cluster is on another node than they.

use std::collections::HashSet;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use outrigger_sessions::store::{Result, SessionKey};

use super::server::is_of_wrong_type;
use super::{CachedSession, RedisStore, keys};

/// How many sessions are looked at together when they are listed.
const TOGETHER: usize = 64;

impl RedisStore {
    /// Puts a session on the list of its project, unless we know that it is there. `born` is the name of its first append, empty if
    /// there was none.
    pub(super) async fn list(&self, key: &SessionKey, born: &str, mut known: CachedSession) -> Result<()> {
        if !born.is_empty() && known.listed.as_deref() != Some(born) {
            let mut command = redis::cmd("SADD");
            command
                .arg(keys::index(&self.shared.prefix, &key.project_key))
                .arg(listing(born, key));
            let _: i64 = self.shared.server.execute("list a session", &command).await?;
            known.listed = Some(born.to_owned());
        }
        self.remember(key, known);
        Ok(())
    }

    /// The sessions of a project, with these fields of their infos.
    pub(super) async fn listed(
        &self,
        project: &str,
        fields: &[&str],
    ) -> Result<Vec<(String, Vec<Option<Vec<u8>>>)>> {
        let index = keys::index(&self.shared.prefix, project);
        let mut listings = HashSet::new();
        let mut cursor = "0".to_owned();
        loop {
            let mut command = redis::cmd("SSCAN");
            command.arg(&index).arg(&cursor).arg("COUNT").arg(1000);
            let (next, some): (String, Vec<Vec<u8>>) =
                self.shared.server.query("list sessions", &command).await?;
            // A name that is no UTF-8 is not the name of a session.
            listings.extend(some.into_iter().filter_map(|name| String::from_utf8(name).ok()));
            if next == "0" {
                break;
            }
            cursor = next;
        }
        let index = &index;
        let looks = listings.into_iter().map(|listing| async move {
            let Some((born, session)) = listing.split_once('/') else {
                return Ok(None);
            };
            let key = SessionKey::new(project, session);
            let mut command = redis::cmd("HMGET");
            command.arg(self.names(&key).info).arg("born").arg(fields);
            let found = self.shared.server.query("list sessions", &command).await;
            let mut found: Vec<Option<Vec<u8>>> = match found {
                // The others are listed all the same, and whoever loads this one is told.
                Err(error) if is_of_wrong_type(&error) => return Ok(Some((key.session_id, Vec::new()))),
                found => found?,
            };
            if found
                .first()
                .is_some_and(|found| found.as_deref() == Some(born.as_bytes()))
            {
                return Ok(Some((key.session_id, found.split_off(1))));
            }
            // The session was deleted, perhaps during its first append. No other session ever gets the same name.
            let mut command = redis::cmd("SREM");
            command.arg(index).arg(&listing);
            let _: i64 = self
                .shared
                .server
                .query("tidy a list of sessions", &command)
                .await?;
            Ok(None)
        });
        let looks = stream::iter(looks).buffer_unordered(TOGETHER);
        looks
            .try_filter_map(|found| std::future::ready(Ok(found)))
            .try_collect()
            .await
    }

    /// Takes a session from the list, if it was put there by this name: nothing else is ever listed under it, so this takes nobody else's.
    pub(super) async fn unlist(&self, key: &SessionKey, born: &str) -> Result<()> {
        let mut command = redis::cmd("SREM");
        command
            .arg(keys::index(&self.shared.prefix, &key.project_key))
            .arg(listing(born, key));
        let _: i64 = self.shared.server.execute("delete", &command).await?;
        Ok(())
    }
}

/// The entry of a session on the list of its project.
fn listing(born: &str, key: &SessionKey) -> String {
    format!("{born}/{}", key.session_id)
}
