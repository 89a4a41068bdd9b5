//! What this crate promises besides.

use outrigger_protocol::RawJson;

use super::{Contract, ContractResult, Probe, all, contracts, ensure, entry, key, same, with_uuid};
use crate::store::{SessionKey, StoreErrorKind, fold_summary};

pub(super) const CONTRACTS: &[Contract] = contracts! {
    "entries come back as the same text", Nothing => texts_are_kept;
    "an entry with a uuid is stored once", Nothing => uuids_are_stored_once;
    "a uuid counts for its own transcript alone", Nothing => uuids_are_of_a_transcript;
    "an entry without a uuid is always stored", Nothing => others_are_always_stored;
    "keys are kept apart whatever is in them", Nothing => keys_are_apart;
    "a NUL in a key is kept, or refused for good", Nothing => nuls_in_keys;
    "many and large entries are kept", Nothing => size_is_no_matter;
    "appends at once are each whole and in order", Nothing => appends_at_once;
    "a deleted transcript can be written anew", Delete => deleted_can_be_written;
    "keys are listed whatever is in them", Subkeys => keys_are_listed;
    "times do not go back", Sessions => times_grow;
    "an entry that comes twice counts once in the summary", Summaries => summary_of_what_is_stored;
    "appends at once are all in the summary", Summaries => summaries_at_once;
};

/// Entries that break a store which does not treat them as text.
fn odd_entries() -> Vec<RawJson> {
    let deep = format!(
        r#"{{"type":"x","deep":{}{}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let texts = [
        r#"{"type":"x","nul":"a\u0000b"}"#,
        r#"{"type":"x","lone":"\ud800","other":"\udfff\ud83d"}"#,
        r#"{"type":"x","numbers":[1.0,1e2,1E400,-0,0.1000,12345678901234567890123]}"#,
        r#"{ "z" : 1 , "type" : "x" , "a" : [ ] }"#,
        r#"{"type":"x","twice":1,"twice":2}"#,
        r#"{"type":"x","text":"é 😀 \u00e9 \/ \" \\ \t   '' $1 %s ; --"}"#,
        "{\"type\":\"x\",\"raw\":\"\u{7f}\u{85}\u{2028}\u{feff}\u{10ffff}\"}",
        "{\"type\":\"x\",\n \"lines\":\r\n1}",
        r#"{}"#,
        &deep,
    ];
    texts
        .iter()
        .filter_map(|text| RawJson::from_text(*text).ok())
        .collect()
}

/// Keys that a store that makes paths, patterns or separators of them mixes up.
fn odd_keys() -> Vec<SessionKey> {
    let names = [
        "a",
        "A",
        "a/b",
        "a-b",
        "a%2Fb",
        "a:b",
        "..",
        ".",
        "%",
        "_",
        "*",
        "é",
        "e\u{301}",
        "a b",
        " a",
        "a\\b",
        "a'b\"",
        "a\u{1f600}",
        "-",
        "main",
        "a.jsonl",
        "{a}",
        "~",
        "CON",
    ];
    let long = "x".repeat(180);
    let mut keys = Vec::new();
    for name in names.into_iter().chain([long.as_str()]) {
        keys.push(SessionKey::new(name, "s"));
        keys.push(SessionKey::new("p", name));
        keys.push(SessionKey::new("p", "s").with_subpath(name));
    }
    keys.push(SessionKey::new("p", "s").with_subpath("a/b/c"));
    keys.push(SessionKey::new("p", "s/a"));
    keys.push(SessionKey::new("p/s", "a"));
    keys.sort();
    keys.dedup();
    keys
}

async fn texts_are_kept(probe: &Probe) -> ContractResult {
    let entries = odd_entries();
    probe.append(&key(), &entries).await?;
    probe.has_exactly(&key(), &entries).await?;
    for entry in &entries {
        probe
            .append(&key().with_subpath("one/by-one"), std::slice::from_ref(entry))
            .await?;
    }
    probe
        .has_exactly(&key().with_subpath("one/by-one"), &entries)
        .await
}

async fn uuids_are_stored_once(probe: &Probe) -> ContractResult {
    let entries = [with_uuid("a", 1), entry(r#""n":2"#), with_uuid("b", 3)];
    probe
        .append(&key(), &[entries[0].clone(), entries[0].clone()])
        .await?;
    probe.append(&key(), &entries[1..]).await?;
    probe
        .append(&key(), &[entries[0].clone(), entries[2].clone()])
        .await?;
    probe.has_exactly(&key(), &entries).await?;
    // Halves of UTF-16 pairs are no text, and differ all the same.
    let odd = [
        entry(r#""uuid":"\ud800""#),
        entry(r#""uuid":"\ud801""#),
        entry(r#""uuid":"\ufffd""#),
    ];
    let other = SessionKey::new("proj", "odd");
    probe.append(&other, &odd).await?;
    probe.append(&other, &odd).await?;
    probe.has_exactly(&other, &odd).await
}

async fn uuids_are_of_a_transcript(probe: &Probe) -> ContractResult {
    let entries = [with_uuid("a", 1)];
    let keys = [
        key(),
        key().with_subpath("subagents/agent-1"),
        SessionKey::new("proj", "other"),
    ];
    for key in &keys {
        probe.append(key, &entries).await?;
    }
    for key in &keys {
        probe.has_exactly(key, &entries).await?;
    }
    Ok(())
}

async fn others_are_always_stored(probe: &Probe) -> ContractResult {
    let entries = [
        entry(r#""n":1"#),
        entry(r#""n":1"#),
        entry(r#""uuid":"""#),
        entry(r#""uuid":"""#),
        entry(r#""uuid":null"#),
    ];
    probe.append(&key(), &entries).await?;
    probe.append(&key(), &entries).await?;
    probe
        .has_exactly(&key(), &[&entries[..], &entries[..]].concat())
        .await
}

async fn keys_are_apart(probe: &Probe) -> ContractResult {
    let keys = odd_keys();
    let mine = |key: &SessionKey| {
        entry(&format!(
            r#""key":{}"#,
            serde_json::Value::from(format!("{key:?}"))
        ))
    };
    for key in &keys {
        probe.append(key, &[mine(key)]).await?;
    }
    for key in &keys {
        probe.has_exactly(key, &[mine(key)]).await?;
    }
    Ok(())
}

async fn nuls_in_keys(probe: &Probe) -> ContractResult {
    let keys = [
        SessionKey::new("p\0", "s"),
        SessionKey::new("p", "s\0"),
        SessionKey::new("p", "s").with_subpath("a\0"),
    ];
    for key in &keys {
        let mine = [entry("")];
        match probe.store.append(key, &mine).await {
            Ok(()) => probe.has_exactly(key, &mine).await?,
            // Trying again does not help.
            Err(error) => same("error", error.kind(), &StoreErrorKind::Invalid)?,
        }
        probe.lacks(&SessionKey::new("p", "s")).await?;
    }
    Ok(())
}

async fn keys_are_listed(probe: &Probe) -> ContractResult {
    let session = SessionKey::new("p", "s");
    let mut wanted: Vec<String> = odd_keys()
        .into_iter()
        .filter(|key| key.main() == session)
        .filter_map(|key| key.subpath)
        .collect();
    wanted.sort();
    for subpath in &wanted {
        probe.append(&session.with_subpath(subpath), &[entry("")]).await?;
    }
    same("parts", &probe.subkeys(&session).await?, &wanted)
}

async fn size_is_no_matter(probe: &Probe) -> ContractResult {
    let many: Vec<_> = (0..2000).map(|n| with_uuid(&format!("u{n}"), n)).collect();
    probe.append(&key(), &many).await?;
    probe.has_exactly(&key(), &many).await?;
    let large = key().with_subpath("large");
    let entries = [entry(&format!(r#""text":"{}""#, "y".repeat(4 << 20)))];
    probe.append(&large, &entries).await?;
    probe.has_exactly(&large, &entries).await
}

async fn appends_at_once(probe: &Probe) -> ContractResult {
    const WRITERS: u64 = 16;
    const OF_EACH: u64 = 5;
    let batches: Vec<Vec<_>> = (0..WRITERS)
        .map(|writer| {
            (0..OF_EACH)
                .map(|n| with_uuid(&format!("{writer}-{n}"), writer * OF_EACH + n))
                .collect()
        })
        .collect();
    let key = key();
    let futures = batches
        .iter()
        .map(|batch| probe.store.append(&key, batch))
        .collect();
    all(futures)
        .await
        .map_err(super::failed("one of several appends at once"))?;
    let loaded = probe.load(&key).await?.unwrap_or_default();
    same("entries", &loaded.len(), &((WRITERS * OF_EACH) as usize))?;
    for batch in loaded.chunks(OF_EACH as usize) {
        ensure(batches.iter().any(|written| written == batch), || {
            format!("entries of several appends are mixed: {batch:?}")
        })?;
    }
    Ok(())
}

async fn deleted_can_be_written(probe: &Probe) -> ContractResult {
    let entries = [with_uuid("a", 1)];
    for _ in 0..2 {
        probe.append(&key(), &entries).await?;
        probe.has_exactly(&key(), &entries).await?;
        probe.delete(&key()).await?;
    }
    probe.lacks(&key()).await
}

async fn times_grow(probe: &Probe) -> ContractResult {
    let mut before = 0;
    for n in 0..5 {
        probe.append(&key(), &[with_uuid(&n.to_string(), n)]).await?;
        let sessions = probe.sessions("proj").await?;
        let now = sessions.first().map_or(0, |(_, mtime)| *mtime);
        ensure(now >= before, || format!("the time went from {before} to {now}"))?;
        before = now;
    }
    Ok(())
}

async fn summary_of_what_is_stored(probe: &Probe) -> ContractResult {
    let entries = [
        entry(r#""uuid":"a","customTitle":"old""#),
        entry(r#""uuid":"b","customTitle":"new""#),
    ];
    probe.append(&key(), &entries).await?;
    // Sent again in doubt, the first must not win: neither with something new nor alone.
    let entries = [&entries[..], &[entry(r#""uuid":"c","aiTitle":"new, too""#)]].concat();
    probe
        .append(&key(), &[entries[0].clone(), entries[2].clone()])
        .await?;
    probe.append(&key(), &entries[..1]).await?;
    let list = probe
        .store
        .list_session_summaries("proj")
        .await
        .map_err(super::failed("list_session_summaries"))?;
    let folded = fold_summary(None, &key(), &entries);
    let data: Vec<_> = list.iter().map(|summary| summary.data.to_value().ok()).collect();
    same("data", &data, &vec![folded.data.to_value().ok()])
}

async fn summaries_at_once(probe: &Probe) -> ContractResult {
    let fields = [
        r#""customTitle":"t""#,
        r#""aiTitle":"a""#,
        r#""lastPrompt":"l""#,
        r#""summary":"s""#,
        r#""gitBranch":"b""#,
    ];
    let batches: Vec<_> = fields.iter().map(|field| [entry(field)]).collect();
    let key = key();
    let futures = batches
        .iter()
        .map(|batch| probe.store.append(&key, batch))
        .collect();
    all(futures)
        .await
        .map_err(super::failed("one of several appends at once"))?;
    let list = probe
        .store
        .list_session_summaries("proj")
        .await
        .map_err(super::failed("list_session_summaries"))?;
    let folded = fold_summary(None, &key, &batches.concat());
    let data: Vec<_> = list.iter().map(|summary| summary.data.to_value().ok()).collect();
    same("data", &data, &vec![folded.data.to_value().ok()])
}
