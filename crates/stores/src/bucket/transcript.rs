//! Transcripts as objects: adding to one, reading one.

use std::collections::HashSet;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::PutMode;
use outrigger_protocol::RawJson;
use outrigger_sessions::store::{
    BoxFuture, Result, SessionKey, StoreError, StoreErrorKind, StoreLease, SummaryEntry, fold_summary, uuid,
};

use super::bucket_inner::{Attempts, BucketInner, BucketSession, Uuids, lock};
use super::head::{MAX_PART, SessionHead, Transcript, TranscriptPart, subpath, unique};
use super::objects::Put;
use crate::lines::{lines, write_line};

/// How many parts are read or written at once.
const AT_ONCE: usize = 4;

/// What reading a transcript came to.
enum TranscriptRead {
    /// The part was read to its end.
    Whole,
    /// A part was merged into another meanwhile.
    Stale,
}

/// An entry and its uuid.
type Entry = (RawJson, Option<String>);

/// A part that is to be written, and its text.
struct Draft {
    part: TranscriptPart,
    text: Bytes,
}

impl BucketInner {
    /// Appends, under the lease if there is one.
    pub(super) async fn append(
        &self,
        key: &SessionKey,
        entries: &[RawJson],
        lease: Option<&StoreLease>,
    ) -> Result<()> {
        let again = self.unsure.take(key, entries);
        let is_repeated = again.is_some();
        let name = again.unwrap_or_else(unique);
        let under_way = self.unsure.begin(key, entries, name.clone());
        let done = self.append_as(&name, is_repeated, key, entries, lease).await;
        under_way.end(&done);
        done
    }

    /// Appends under this name, unless that was done before.
    async fn append_as(
        &self,
        name: &str,
        is_repeated: bool,
        key: &SessionKey,
        entries: &[RawJson],
        lease: Option<&StoreLease>,
    ) -> Result<()> {
        let session = self.session(key);
        let known = &mut *lock(key, &session).await?;
        if is_repeated {
            known.found = None;
        }
        let mut attempts = Attempts::new();
        let mut is_fresh = false;
        loop {
            let head = match &known.found {
                Some(found) => found.head.clone(),
                None => {
                    is_fresh = true;
                    known.found.insert(self.fetch(key).await?).head.clone()
                }
            };
            if let Some(lease) = lease
                && !head.is_held_by(lease)
            {
                if is_fresh {
                    return Err(crate::is_over(lease));
                }
                known.found = None;
                continue;
            }
            if head
                .transcript(key)
                .is_some_and(|transcript| transcript.has_append(name))
            {
                return Ok(());
            }
            if let TranscriptRead::Stale = self.learn(key, known, &head).await? {
                known.found = None;
                attempts.again(key).await?;
                continue;
            }
            let mut uuids = HashSet::new();
            let stored = known.uuids.get(subpath(key)).map(|uuids| &uuids.all);
            let is_new = |entry: &&RawJson| {
                uuid(entry).is_none_or(|uuid| {
                    !stored.is_some_and(|stored| stored.contains(&uuid)) && uuids.insert(uuid)
                })
            };
            let added: Vec<RawJson> = entries.iter().filter(is_new).cloned().collect();
            if added.is_empty() {
                if is_fresh {
                    return Ok(());
                }
                // The session may have been deleted, or the lease taken over.
                known.found = None;
                continue;
            }
            let is_done = self.add(name, key, known, head, &added).await?;
            is_fresh = true;
            if is_done {
                let transcript = known.found.as_ref().and_then(|found| found.head.transcript(key));
                if let (Some(transcript), Some(known)) = (transcript, known.uuids.get_mut(subpath(key))) {
                    known.born.clone_from(&transcript.born);
                    known.entries += added.len() as u64;
                    known.all.extend(uuids);
                }
                return Ok(());
            }
            attempts.again(key).await?;
        }
    }

    /// Writes these entries as parts and names them in the head; returns whether that was possible.
    async fn add(
        &self,
        name: &str,
        key: &SessionKey,
        known: &mut BucketSession,
        head: SessionHead,
        added: &[RawJson],
    ) -> Result<bool> {
        let mut next = head;
        let before = next.readable_summary().cloned();
        let mut folded = Vec::new();
        if key.is_main()
            && before.is_none()
            && let Some(transcript) = next.transcript(key)
        {
            // The summary is damaged, and made anew.
            let mut take = |entry, _| folded.push(entry);
            if let TranscriptRead::Stale = self.read(key, transcript, &mut 0, &mut take).await? {
                known.found = None;
                return Ok(false);
            }
        }
        let base = next.revision;
        let now = self.clock.now();
        let transcript = next.transcripts.entry(subpath(key).to_owned());
        let transcript = transcript.or_insert_with(Transcript::new);
        let Some((drafts, gone)) = self.drafts(key, transcript, base, added).await? else {
            known.found = None;
            return Ok(false);
        };
        transcript
            .parts
            .extend(drafts.iter().map(|draft| draft.part.clone()));
        transcript.mtime = now.max(transcript.mtime + 1);
        transcript.add_append(name);
        if key.is_main() {
            folded.extend_from_slice(added);
            let before = before.map(|data| SummaryEntry::new(&key.session_id, 0, data));
            next.summary = Some(fold_summary(before.as_ref(), key, &folded).data);
        }
        let ids: Vec<String> = drafts.iter().map(|draft| draft.part.id.clone()).collect();
        let puts: Vec<BoxFuture<'_, Result<()>>> =
            drafts.into_iter().map(|draft| self.put(key, draft)).collect();
        let puts = futures_util::stream::iter(puts).buffer_unordered(AT_ONCE);
        puts.try_collect::<()>().await?;
        let is_done = self.replace(key, known, next).await?;
        if is_done {
            self.discard(key, gone.iter().map(|part| part.id.as_str())).await;
        } else {
            self.discard(key, ids.iter().map(String::as_str)).await;
        }
        Ok(is_done)
    }

    /// The parts for these entries, merged with small parts before them, which are read from the transcript. `None` if
    /// another writer has merged those meanwhile.
    async fn drafts(
        &self,
        key: &SessionKey,
        transcript: &mut Transcript,
        base: u64,
        added: &[RawJson],
    ) -> Result<Option<(Vec<Draft>, Vec<TranscriptPart>)>> {
        let mut texts = vec![(0, String::new())];
        for entry in added {
            let is_full = texts
                .last()
                .is_some_and(|(n, text)| *n > 0 && (text.len() + entry.get().len()) as u64 > MAX_PART);
            if is_full {
                texts.push((0, String::new()));
            }
            if let Some((n, text)) = texts.last_mut() {
                write_line(text, entry);
                *n += 1;
            }
        }
        let [(n, text)] = &mut texts[..] else {
            let drafts = texts.into_iter().map(|(n, text)| Draft {
                part: TranscriptPart::new(base, n, text.len() as u64, None),
                text: text.into(),
            });
            return Ok(Some((drafts.collect(), Vec::new())));
        };
        let (from, tier) = transcript.merged(text.len() as u64);
        let gone = transcript.parts.split_off(from);
        let read: Vec<BoxFuture<'_, Result<Option<Bytes>>>> =
            gone.iter().map(|part| self.text(key, part)).collect();
        let read = futures_util::stream::iter(read).buffered(AT_ONCE);
        let read: Vec<Option<Bytes>> = read.try_collect().await?;
        let mut whole = Vec::new();
        for old in read {
            let Some(old) = old else { return Ok(None) };
            whole.extend_from_slice(&old);
        }
        whole.extend_from_slice(text.as_bytes());
        let entries = *n + gone.iter().map(|part| part.entries).sum::<u64>();
        let draft = Draft {
            part: TranscriptPart::new(base, entries, whole.len() as u64, Some(tier)),
            text: whole.into(),
        };
        Ok(Some((vec![draft], gone)))
    }

    /// Sees to it that the uuids of all entries are known.
    async fn learn(
        &self,
        key: &SessionKey,
        known: &mut BucketSession,
        head: &SessionHead,
    ) -> Result<TranscriptRead> {
        let uuids = known.uuids.entry(subpath(key).to_owned()).or_default();
        let Some(transcript) = head.transcript(key) else {
            *uuids = Uuids::default();
            return Ok(TranscriptRead::Whole);
        };
        if uuids.born != transcript.born {
            *uuids = Uuids::of(transcript);
        }
        let Uuids { entries, all, .. } = uuids;
        self.read(key, transcript, entries, &mut |_, uuid| all.extend(uuid))
            .await
    }

    pub(super) async fn load(&self, key: &SessionKey) -> Result<Option<Vec<RawJson>>> {
        let mut attempts = Attempts::new();
        let mut entries = Vec::new();
        let mut uuids = Uuids::default();
        loop {
            let head = self.fetch(key).await?.head;
            let Some(transcript) = head.transcript(key) else {
                return Ok(None);
            };
            if uuids.born != transcript.born {
                entries.clear();
                uuids = Uuids::of(transcript);
            }
            let mut take = |entry, uuid| {
                entries.push(entry);
                uuids.all.extend(uuid);
            };
            match self.read(key, transcript, &mut uuids.entries, &mut take).await? {
                TranscriptRead::Whole => {
                    // A program that resumes a session appends to it, and then need not read the session again.
                    if let Ok(mut known) = self.session(key).try_lock() {
                        known.uuids.insert(subpath(key).to_owned(), uuids);
                    }
                    return Ok(Some(entries));
                }
                // The entries that were read are the same, in whatever part they are now.
                TranscriptRead::Stale => attempts.again(key).await?,
            }
        }
    }

    /// Reads from the entry `from` on; `from` advances as entries are passed on.
    async fn read(
        &self,
        key: &SessionKey,
        transcript: &Transcript,
        from: &mut u64,
        take: &mut (dyn FnMut(RawJson, Option<String>) + Send),
    ) -> Result<TranscriptRead> {
        let mut end = 0;
        let wanted: Vec<(u64, &TranscriptPart)> = transcript
            .parts
            .iter()
            .filter_map(|part| {
                let begin = end;
                end += part.entries;
                (end > *from).then_some((begin, part))
            })
            .collect();
        let parts: Vec<BoxFuture<'_, Result<Option<Vec<Entry>>>>> =
            wanted.iter().map(|(_, part)| self.entries(key, part)).collect();
        let mut parts = futures_util::stream::iter(parts).buffered(AT_ONCE);
        for (begin, _) in &wanted {
            let Some(entries) = parts.try_next().await?.flatten() else {
                return Ok(TranscriptRead::Stale);
            };
            for (n, (entry, uuid)) in (*begin..).zip(entries) {
                if n >= *from {
                    take(entry, uuid);
                    *from = n + 1;
                }
            }
        }
        Ok(TranscriptRead::Whole)
    }

    /// Writes a part.
    fn put<'a>(&'a self, key: &'a SessionKey, draft: Draft) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let path = self.root.part(key, &draft.part.id);
            // Nobody else has that name, so nothing is replaced, except by another try of the same request.
            match self.objects.put(&path, draft.text, PutMode::Overwrite).await? {
                Put::Stored(_) => Ok(()),
                Put::Refused(error) => Err(error),
            }
        })
    }

    /// The entries of a part; `None` if it isn't there.
    fn entries<'a>(
        &'a self,
        key: &'a SessionKey,
        part: &'a TranscriptPart,
    ) -> BoxFuture<'a, Result<Option<Vec<Entry>>>> {
        Box::pin(async move {
            let Some(text) = self.text(key, part).await? else {
                return Ok(None);
            };
            let decoded = tokio::task::spawn_blocking(move || decode(&text)).await;
            let decoded = decoded.map_err(|error| StoreError::failed("a part can't be decoded", error))?;
            let entries = decoded.filter(|entries| entries.len() as u64 == part.entries);
            entries.map(Some).ok_or_else(|| self.damaged(key, part))
        })
    }

    /// The text of a part; `None` if it isn't there.
    fn text<'a>(
        &'a self,
        key: &'a SessionKey,
        part: &'a TranscriptPart,
    ) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            let read = self
                .objects
                .get(&self.root.part(key, &part.id), part.bytes)
                .await?;
            match read {
                Some((text, _)) if text.len() as u64 != part.bytes => Err(self.damaged(key, part)),
                read => Ok(read.map(|(text, _)| text)),
            }
        })
    }

    fn damaged(&self, key: &SessionKey, part: &TranscriptPart) -> StoreError {
        let what = format!(
            "{} in the bucket is not what the head of {key} says: {} bytes with {} entries",
            self.root.part(key, &part.id),
            part.bytes,
            part.entries
        );
        StoreError::new(StoreErrorKind::Damaged, what)
    }

    pub(super) async fn delete(&self, key: &SessionKey) -> Result<()> {
        let session = self.session(key);
        let known = &mut *lock(key, &session).await?;
        let mut attempts = Attempts::new();
        loop {
            let found = known.found.insert(self.fetch(key).await?);
            if found.version.is_none() {
                return Ok(());
            }
            let mut next = found.head.clone();
            let is_there = if key.is_main() {
                next.summary = None;
                let is_there = !next.transcripts.is_empty();
                next.transcripts.clear();
                is_there
            } else {
                next.transcripts.remove(subpath(key)).is_some()
            };
            if !is_there || self.replace(key, known, next).await? {
                break;
            }
            attempts.again(key).await?;
        }
        if key.is_main() {
            known.uuids.clear();
        } else {
            known.uuids.remove(subpath(key));
        }
        // Also what an earlier deletion could not remove.
        match &known.found {
            Some(found) => self.sweep(key, &found.head).await,
            None => Ok(()),
        }
    }
}

/// The entries of a part, with their uuids; `None` if it has something else.
fn decode(text: &[u8]) -> Option<Vec<Entry>> {
    let entries = lines(text).map(|entry| {
        let entry = entry?;
        let uuid = uuid(&entry);
        Ok((entry, uuid))
    });
    entries.collect::<Result<_, ()>>().ok()
}
