//! What can be done with sessions on disk, done with those in a store.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use outrigger_protocol::RawJson;

use super::checkout::Checkout;
use super::import_from_disk::{Batches, ImportOptions};
use super::summary::info;
use super::{Result, SessionKey, SessionStore, StoreError, StoreErrorKind, SummaryEntry, fold_summary};
use crate::id::{AgentId, SessionId};
use crate::read::{ListOptions, MessageOptions, SessionInfo, SessionMessage};
use crate::record::object::Object;
use crate::write::{ForkOptions, clean_tag};

/// The sessions of one project in a store: the functions of [`Sessions`](crate::Sessions), by their names.
///
/// What needs a conversation as a whole is done on a private copy in the system's directory for temporary files, by the same
/// code as for sessions on disk; writing and reading it blocks the calling task. Archiving is not there: a store has no place
/// for it.
#[derive(Clone)]
pub struct StoreSessions {
    store: Arc<dyn SessionStore>,
    project_key: String,
}

impl std::fmt::Debug for StoreSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreSessions")
            .field("project_key", &self.project_key)
            .finish_non_exhaustive()
    }
}

impl StoreSessions {
    /// The sessions under this project key.
    pub fn new(store: Arc<dyn SessionStore>, project_key: impl Into<String>) -> Self {
        Self {
            store,
            project_key: project_key.into(),
        }
    }

    /// The CLI's sessions of this directory, under the key that the SDK uses.
    pub fn of_dir(store: Arc<dyn SessionStore>, dir: impl AsRef<Path>) -> Self {
        let real = crate::place::real_path(dir.as_ref());
        Self::new(store, crate::place::project_dir_name(&real))
    }

    fn key(&self, id: &SessionId) -> SessionKey {
        SessionKey::new(&self.project_key, id.as_str())
    }

    /// The sessions, the most recently appended first. Only the options `limit` and `offset` have an effect.
    ///
    /// If the store has summaries, only those are read; without one, or with one that is old or damaged, the session is loaded.
    /// One that can't be loaded is listed with its id and time alone. `file_size` and `archived` are not known.
    ///
    /// # Cancel safety
    /// It only reads.
    ///
    /// # Errors
    /// [`Unsupported`](StoreErrorKind::Unsupported) when the store can't list sessions, or when listing fails.
    pub async fn list(&self, options: &ListOptions) -> Result<Vec<SessionInfo>> {
        let listed = self.store.list_sessions(&self.project_key).await?;
        let summaries: HashMap<String, SummaryEntry> = if self.store.capabilities().list_session_summaries {
            let list = self.store.list_session_summaries(&self.project_key).await?;
            list.into_iter()
                .map(|summary| (summary.session_id.clone(), summary))
                .collect()
        } else {
            HashMap::new()
        };
        let mut rows = Vec::new();
        for session in listed {
            // A session that is not the CLI's has no valid id.
            let Ok(id) = SessionId::new(&session.session_id) else {
                continue;
            };
            let summary = summaries
                .get(&session.session_id)
                // What is no object is damaged, and would hide the session.
                .filter(|summary| summary.mtime >= session.mtime && summary.data.get().starts_with('{'));
            let known = summary.map(|summary| info(&id, summary, session.mtime));
            // A side chain, or a session with nothing to show, is neither listed nor counted.
            if known != Some(None) {
                rows.push((session.mtime, id, known.flatten()));
            }
        }
        rows.sort_by(|a, b| (b.0, b.1.as_str()).cmp(&(a.0, a.1.as_str())));
        let limit = if options.limit == 0 {
            usize::MAX
        } else {
            options.limit
        };
        let mut list = Vec::new();
        for (mtime, id, known) in rows.into_iter().skip(options.offset).take(limit) {
            match known {
                Some(known) => list.push(known),
                None => match self.store.load(&self.key(&id)).await {
                    Ok(entries) => {
                        let folded = fold_summary(None, &self.key(&id), &entries.unwrap_or_default());
                        list.extend(info(&id, &folded, mtime));
                    }
                    Err(_) => list.push(SessionInfo::bare(id, mtime)),
                },
            }
        }
        Ok(list)
    }

    /// One session; `None` if the store doesn't have it, or it has nothing to show.
    ///
    /// # Cancel safety
    /// It only reads.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn info(&self, id: &SessionId) -> Result<Option<SessionInfo>> {
        let Some(entries) = self.store.load(&self.key(id)).await? else {
            return Ok(None);
        };
        let folded = fold_summary(None, &self.key(id), &entries);
        let mtime = match self.store.capabilities().list_sessions {
            true => {
                let listed = self.store.list_sessions(&self.project_key).await?;
                listed
                    .into_iter()
                    .find(|session| session.session_id == id.as_str())
                    .map(|session| session.mtime)
            }
            false => None,
        };
        Ok(info(id, &folded, mtime.unwrap_or(folded.mtime)))
    }

    /// The messages of the main conversation; see [`Sessions::messages`](crate::Sessions::messages).
    ///
    /// # Cancel safety
    /// It only reads. The copy is removed.
    ///
    /// # Errors
    /// [`NotFound`](StoreErrorKind::NotFound) when the store doesn't have the session, or when it or the copy fails.
    pub async fn messages(&self, id: &SessionId, options: &MessageOptions) -> Result<Vec<SessionMessage>> {
        let checkout = self.checkout(id, &[]).await?;
        let messages = checkout.file()?.messages(options).map_err(unreadable)?;
        messages.collect::<crate::Result<_>>().map_err(unreadable)
    }

    /// The ids of the session's subagents, in order; none if the store can't list parts.
    ///
    /// # Cancel safety
    /// It only reads.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn subagents(&self, id: &SessionId) -> Result<Vec<AgentId>> {
        let parts = self.agents(id).await?;
        Ok(parts.into_iter().map(|(agent, _)| agent).collect())
    }

    /// The messages of a subagent; see [`Sessions::subagent_messages`](crate::Sessions::subagent_messages).
    ///
    /// # Cancel safety
    /// As [`messages`](Self::messages).
    ///
    /// # Errors
    /// As [`messages`](Self::messages), and [`NotFound`](StoreErrorKind::NotFound) for a subagent that the session doesn't have. A
    /// subagent of a workflow is not found in a store that can't list parts.
    pub async fn subagent_messages(
        &self,
        id: &SessionId,
        agent: &AgentId,
        options: &MessageOptions,
    ) -> Result<Vec<SessionMessage>> {
        let none = || {
            StoreError::new(
                StoreErrorKind::NotFound,
                format!("the session {id} has no subagent {agent} in the store"),
            )
        };
        let subpath = if self.store.capabilities().list_subkeys {
            let parts = self.agents(id).await?;
            let found = parts.into_iter().find(|(found, _)| found == agent);
            found.ok_or_else(none)?.1
        } else {
            let direct = format!("subagents/agent-{agent}");
            let entries = self.store.load(&self.key(id).with_subpath(&direct)).await?;
            entries.filter(|entries| !entries.is_empty()).ok_or_else(none)?;
            direct
        };
        let checkout = self.checkout(id, &[subpath]).await?;
        let subagent = checkout.file()?.subagent(agent).map_err(unreadable)?;
        let messages = subagent.messages(options).map_err(unreadable)?;
        messages.collect::<crate::Result<_>>().map_err(unreadable)
    }

    async fn agents(&self, id: &SessionId) -> Result<Vec<(AgentId, String)>> {
        if !self.store.capabilities().list_subkeys {
            return Ok(Vec::new());
        }
        let mut parts = self.store.list_subkeys(&self.key(id)).await?;
        parts.sort();
        let agent = |part: String| {
            let name = part.strip_prefix("subagents/")?.rsplit('/').next()?;
            Some((AgentId::of_file_name(&format!("{name}.jsonl"))?, part))
        };
        Ok(parts.into_iter().filter_map(agent).collect())
    }

    async fn checkout(&self, id: &SessionId, parts: &[String]) -> Result<Checkout> {
        Checkout::of(&*self.store, &self.key(id), parts).await
    }

    /// Gives the session a title; see [`SessionFile::rename`](crate::SessionFile::rename).
    ///
    /// # Cancel safety
    /// Dropped, it may have happened.
    ///
    /// # Errors
    /// When the title is empty, the store knows that there is no such session, or it fails.
    pub async fn rename(&self, id: &SessionId, title: &str) -> Result<()> {
        let title = title.trim();
        if title.is_empty() {
            return Err(StoreError::new(StoreErrorKind::Invalid, "the title is empty"));
        }
        self.mark(id, "custom-title", "customTitle", title).await
    }

    /// Gives the session a tag, or takes it off; see [`SessionFile::tag`](crate::SessionFile::tag).
    ///
    /// # Cancel safety
    /// Dropped, it may have happened.
    ///
    /// # Errors
    /// When nothing that can be seen is in the tag, the store knows that there is no such session, or it fails.
    pub async fn tag(&self, id: &SessionId, tag: Option<&str>) -> Result<()> {
        let cleaned = tag.map(clean_tag);
        if cleaned.as_deref() == Some("") {
            return Err(StoreError::new(
                StoreErrorKind::Invalid,
                "nothing in the tag can be seen",
            ));
        }
        self.mark(id, "tag", "tag", &cleaned.unwrap_or_default()).await
    }

    async fn mark(&self, id: &SessionId, kind: &str, field: &'static str, value: &str) -> Result<()> {
        if self.store.capabilities().list_sessions {
            let listed = self.store.list_sessions(&self.project_key).await?;
            if !listed.iter().any(|session| session.session_id == id.as_str()) {
                return Err(super::checkout::not_found(&self.key(id)));
            }
        }
        let mut record = Object::new();
        record.set_string("type", kind);
        record.set_string(field, value);
        record.set_string("sessionId", id.as_str());
        record.set_string("uuid", SessionId::random().as_str());
        record.set_string("timestamp", &crate::clock::now());
        let record = RawJson::from_text(record.to_text());
        let record = record.map_err(|error| StoreError::failed("the record can't be written", error))?;
        self.store.append(&self.key(id), &[record]).await
    }

    /// Removes the session with its parts, if the store removes anything; whether it does.
    ///
    /// # Cancel safety
    /// Dropped, it may have happened.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn delete(&self, id: &SessionId) -> Result<bool> {
        let can = self.store.capabilities().delete;
        if can {
            self.store.delete(&self.key(id)).await?;
        }
        Ok(can)
    }

    /// Forks the session within the store; see [`SessionFile::fork`](crate::SessionFile::fork). Returns the new session's id.
    ///
    /// # Cancel safety
    /// Dropped, a part of the fork may be in the store.
    ///
    /// # Errors
    /// As [`messages`](Self::messages); when the session can't be forked with these options, or the store has a session of the given id
    /// ([`Invalid`](StoreErrorKind::Invalid)). What is stored of a fork when the store fails is removed, if the store can do that.
    pub async fn fork(&self, id: &SessionId, options: &ForkOptions) -> Result<SessionId> {
        if let Some(new) = &options.id
            && self.store.load(&self.key(new)).await?.is_some()
        {
            let what = format!("the session {new} is in the store already");
            return Err(StoreError::new(StoreErrorKind::Invalid, what));
        }
        let checkout = self.checkout(id, &[]).await?;
        let fork = checkout.file()?.fork(options).map_err(unreadable)?;
        let import = ImportOptions::default().include_subagents(false);
        for batch in Batches::of(&fork.path, import)? {
            let (_, entries) = batch?;
            if let Err(error) = self.store.append(&self.key(&fork.id), &entries).await {
                // The first error counts.
                let _ = self.delete(&fork.id).await;
                return Err(error);
            }
        }
        Ok(fork.id)
    }
}

fn unreadable(error: crate::Error) -> StoreError {
    StoreError::failed("the session in the store can't be worked on", error)
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
