//! The contracts of the official SDKs.

use super::{Contract, ContractResult, Probe, contracts, ensure, entry, key, same, with_uuid};
use crate::store::{SessionKey, fold_summary};

pub(super) const CONTRACTS: &[Contract] = contracts! {
    "what was appended is loaded, in order", Nothing => appended_is_loaded;
    "what was never written is not there", Nothing => unknown_is_none;
    "appends follow each other", Nothing => appends_follow;
    "appending nothing changes nothing", Nothing => nothing_is_nothing;
    "parts are kept apart from their session", Nothing => parts_are_apart;
    "projects are kept apart", Nothing => projects_are_apart;
    "list_sessions has the sessions of the project, with times", Sessions => sessions_are_listed;
    "list_sessions leaves parts out", Sessions => parts_are_not_listed;
    "delete removes a session", Delete => deleted_is_gone;
    "delete of a session removes its parts, and nothing else", Delete => delete_takes_parts;
    "delete of a part removes that part alone", Delete => delete_of_a_part;
    "list_subkeys has the parts of the session", Subkeys => parts_are_listed;
    "list_subkeys leaves the session itself out", Subkeys => session_is_no_part;
    "list_session_summaries has what the fold made, by the clock of list_sessions", Summaries => summaries_are_kept;
};

/// Later than any number of seconds since 1970 that is not far in the future.
const MILLISECONDS: u64 = 1_000_000_000_000;

async fn appended_is_loaded(probe: &Probe) -> ContractResult {
    let entries = [with_uuid("b", 1), with_uuid("a", 2)];
    probe.append(&key(), &entries).await?;
    probe.has(&key(), &entries).await
}

async fn unknown_is_none(probe: &Probe) -> ContractResult {
    probe.lacks(&SessionKey::new("proj", "nope")).await?;
    probe.append(&key(), &[with_uuid("x", 1)]).await?;
    probe.lacks(&key().with_subpath("nope")).await
}

async fn appends_follow(probe: &Probe) -> ContractResult {
    let entries: Vec<_> = ["z", "a", "m", "b"]
        .iter()
        .zip(1..)
        .map(|(uuid, n)| with_uuid(uuid, n))
        .collect();
    probe.append(&key(), &entries[..1]).await?;
    probe.append(&key(), &entries[1..3]).await?;
    probe.append(&key(), &entries[3..]).await?;
    probe.has(&key(), &entries).await
}

async fn nothing_is_nothing(probe: &Probe) -> ContractResult {
    let entries = [with_uuid("a", 1)];
    probe.append(&key(), &entries).await?;
    probe.append(&key(), &[]).await?;
    probe.has(&key(), &entries).await?;
    let never = SessionKey::new("proj", "empty");
    probe.append(&never, &[]).await?;
    probe.lacks(&never).await
}

async fn parts_are_apart(probe: &Probe) -> ContractResult {
    let sub = key().with_subpath("subagents/agent-1");
    probe.append(&key(), &[with_uuid("m", 1)]).await?;
    probe.append(&sub, &[with_uuid("s", 1)]).await?;
    probe.has(&key(), &[with_uuid("m", 1)]).await?;
    probe.has(&sub, &[with_uuid("s", 1)]).await
}

async fn projects_are_apart(probe: &Probe) -> ContractResult {
    for project in ["A", "B"] {
        let from = entry(&format!(r#""from":"{project}""#));
        probe.append(&SessionKey::new(project, "s1"), &[from]).await?;
    }
    for project in ["A", "B"] {
        let from = entry(&format!(r#""from":"{project}""#));
        probe.has(&SessionKey::new(project, "s1"), &[from]).await?;
        if probe.has.list_sessions {
            same(
                "sessions of one project",
                &probe.sessions(project).await?.len(),
                &1,
            )?;
        }
    }
    Ok(())
}

async fn sessions_are_listed(probe: &Probe) -> ContractResult {
    for (project, session) in [("proj", "a"), ("proj", "b"), ("other", "c")] {
        probe
            .append(&SessionKey::new(project, session), &[entry(r#""n":1"#)])
            .await?;
    }
    let sessions = probe.sessions("proj").await?;
    let ids: Vec<_> = sessions.iter().map(|(id, _)| id.as_str()).collect();
    same("sessions", &ids, &vec!["a", "b"])?;
    let times_are_ms = sessions.iter().all(|(_, mtime)| *mtime > MILLISECONDS);
    ensure(times_are_ms, || {
        format!("times are no milliseconds since 1970: {sessions:?}")
    })?;
    same(
        "sessions of a project without any",
        &probe.sessions("never").await?,
        &Vec::new(),
    )
}

async fn parts_are_not_listed(probe: &Probe) -> ContractResult {
    let main = SessionKey::new("proj", "main");
    probe.append(&main, &[entry(r#""n":1"#)]).await?;
    probe
        .append(&main.with_subpath("subagents/agent-1"), &[entry(r#""n":1"#)])
        .await?;
    let ids: Vec<_> = probe
        .sessions("proj")
        .await?
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    same("sessions", &ids, &vec!["main".to_owned()])
}

async fn deleted_is_gone(probe: &Probe) -> ContractResult {
    probe.delete(&SessionKey::new("proj", "never")).await?;
    probe.append(&key(), &[entry(r#""n":1"#)]).await?;
    probe.delete(&key()).await?;
    probe.lacks(&key()).await
}

async fn delete_takes_parts(probe: &Probe) -> ContractResult {
    let parts = [
        key().with_subpath("subagents/agent-1"),
        key().with_subpath("subagents/agent-2"),
    ];
    let others = [SessionKey::new("proj", "sess2"), SessionKey::new("other", "sess")];
    for key in [key()].iter().chain(&parts).chain(&others) {
        probe.append(key, &[entry(r#""n":1"#)]).await?;
    }
    probe.delete(&key()).await?;
    for gone in [key()].iter().chain(&parts) {
        probe.lacks(gone).await?;
    }
    for stays in &others {
        probe.has(stays, &[entry(r#""n":1"#)]).await?;
    }
    if probe.has.list_subkeys {
        same(
            "parts of a deleted session",
            &probe.subkeys(&key()).await?,
            &Vec::new(),
        )?;
    }
    if probe.has.list_sessions {
        let ids: Vec<_> = probe
            .sessions("proj")
            .await?
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        same("sessions after one was deleted", &ids, &vec!["sess2".to_owned()])?;
    }
    Ok(())
}

async fn delete_of_a_part(probe: &Probe) -> ContractResult {
    let (one, two) = (
        key().with_subpath("subagents/agent-1"),
        key().with_subpath("subagents/agent-2"),
    );
    for key in [&key(), &one, &two] {
        probe.append(key, &[entry(r#""n":1"#)]).await?;
    }
    probe.delete(&one).await?;
    probe.lacks(&one).await?;
    probe.has(&two, &[entry(r#""n":1"#)]).await?;
    probe.has(&key(), &[entry(r#""n":1"#)]).await?;
    if probe.has.list_subkeys {
        same(
            "parts",
            &probe.subkeys(&key()).await?,
            &vec!["subagents/agent-2".to_owned()],
        )?;
    }
    Ok(())
}

async fn parts_are_listed(probe: &Probe) -> ContractResult {
    let other = SessionKey::new("proj", "other");
    let keys = [
        key(),
        key().with_subpath("subagents/agent-1"),
        key().with_subpath("subagents/agent-2"),
        other.with_subpath("subagents/agent-x"),
    ];
    for key in &keys {
        probe.append(key, &[entry(r#""n":1"#)]).await?;
    }
    let parts = vec!["subagents/agent-1".to_owned(), "subagents/agent-2".to_owned()];
    same("parts", &probe.subkeys(&key()).await?, &parts)
}

async fn session_is_no_part(probe: &Probe) -> ContractResult {
    probe.append(&key(), &[entry(r#""n":1"#)]).await?;
    same("parts", &probe.subkeys(&key()).await?, &Vec::new())?;
    let never = SessionKey::new("proj", "never");
    same(
        "parts of what isn't there",
        &probe.subkeys(&never).await?,
        &Vec::new(),
    )
}

async fn summaries_are_kept(probe: &Probe) -> ContractResult {
    let key = SessionKey::new("proj", "summ");
    let first = [
        entry(r#""timestamp":"2024-01-01T00:00:00.000Z","customTitle":"first""#),
        entry(r#""timestamp":"2024-01-01T00:00:01.000Z""#),
    ];
    let second = [entry(
        r#""timestamp":"2024-01-01T00:00:02.000Z","customTitle":"second""#,
    )];
    probe.append(&key, &first).await?;
    probe.append(&key, &second).await?;
    probe
        .append(&SessionKey::new("other", "elsewhere"), &first)
        .await?;
    let list = summaries(probe, "proj").await?;
    let [summary] = &list[..] else {
        return Err(format!("summaries of one session: {list:?}"));
    };
    same("session of the summary", &summary.session_id, &key.session_id)?;
    ensure(summary.mtime > MILLISECONDS, || {
        format!("its time is no milliseconds: {}", summary.mtime)
    })?;
    if probe.has.list_sessions {
        let sessions = probe.sessions("proj").await?;
        let newest = sessions.iter().map(|(_, mtime)| *mtime).max().unwrap_or(0);
        ensure(summary.mtime >= newest, || {
            format!(
                "the summary's time {} is before its session's {newest}",
                summary.mtime
            )
        })?;
    }
    let folded = fold_summary(Some(&fold_summary(None, &key, &first)), &key, &second);
    same(
        "data",
        &summary.data.to_value().ok(),
        &folded.data.to_value().ok(),
    )?;

    let part = key.with_subpath("subagents/agent-1");
    probe
        .append(&part, &[entry(r#""customTitle":"a part's""#)])
        .await?;
    let after = summaries(probe, "proj").await?;
    same("summaries after a part was appended to", &after, &list)?;
    same(
        "summaries of a project without sessions",
        &summaries(probe, "never").await?,
        &Vec::new(),
    )?;
    if probe.has.delete {
        probe.delete(&key).await?;
        same(
            "summaries of a deleted session",
            &summaries(probe, "proj").await?,
            &Vec::new(),
        )?;
    }
    Ok(())
}

async fn summaries(probe: &Probe, project: &str) -> Result<Vec<crate::store::SummaryEntry>, String> {
    let list = probe.store.list_session_summaries(project).await;
    list.map_err(super::failed("list_session_summaries"))
}
