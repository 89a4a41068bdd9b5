//! From rows to values.

use std::sync::Arc;

use outrigger::protocol::RawJson;
use outrigger::{SessionId, SessionUsage, Tokens};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use uuid::Uuid;

use super::sum;
use crate::approval::{Approval, ApprovalKind, ApprovalState};
use crate::event::{Delivery, LogEvent, SessionRecord, SessionState, Source, Worktree};
use crate::log::{Counts, PendingWork, Received};

const SESSION: &str = "id, state, cwd, title, model, permission_mode, epoch, head_seq, trimmed_seq, has_history, created_at, created_by, forked_from, worktree, adopted, \
    (SELECT count(*) FROM approvals a WHERE a.session_id = sessions.id AND a.state = 'pending')";

const EVENT: &str = "session_id, seq, epoch, event_id, at, source, actor, type, payload, sum";

pub(super) const APPROVAL: &str = "id, session_id, kind, state, epoch, request_id, tool_name, tool_use_id, input_hash, request, \
    opened_at, decided_by, decided_at, decision, supersedes, deferred, number";

pub(super) type RowResult<T> = rusqlite::Result<T>;

fn wrong(at: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error))
}

pub(super) fn named<T>(row: &Row<'_>, at: usize, of_name: fn(&str) -> Option<T>) -> RowResult<T> {
    let name: String = row.get(at)?;
    of_name(&name).ok_or_else(|| {
        wrong(
            at,
            std::io::Error::other(format!("`{name}` is no value that this program knows")),
        )
    })
}

pub(super) fn number(row: &Row<'_>, at: usize) -> RowResult<u64> {
    Ok(row.get::<_, i64>(at)?.unsigned_abs())
}

pub(super) fn id(row: &Row<'_>, at: usize) -> RowResult<SessionId> {
    SessionId::new(&row.get::<_, String>(at)?).map_err(|error| wrong(at, error))
}

pub(super) fn uuid(row: &Row<'_>, at: usize) -> RowResult<Uuid> {
    Uuid::parse_str(&row.get::<_, String>(at)?).map_err(|error| wrong(at, error))
}

pub(super) fn json(row: &Row<'_>, at: usize) -> RowResult<RawJson> {
    RawJson::from_text(row.get::<_, String>(at)?).map_err(|error| wrong(at, error))
}

fn worktree(row: &Row<'_>, at: usize) -> RowResult<Worktree> {
    serde_json::from_str(&row.get::<_, String>(at)?).map_err(|error| wrong(at, error))
}

pub(super) fn optional<T>(
    row: &Row<'_>,
    at: usize,
    get: fn(&Row<'_>, usize) -> RowResult<T>,
) -> RowResult<Option<T>> {
    if row.get_ref(at)? == rusqlite::types::ValueRef::Null {
        return Ok(None);
    }
    get(row, at).map(Some)
}

fn record(row: &Row<'_>) -> RowResult<SessionRecord> {
    Ok(SessionRecord {
        id: id(row, 0)?,
        state: named(row, 1, SessionState::of_name)?,
        cwd: row.get(2)?,
        title: row.get(3)?,
        model: row.get(4)?,
        permission_mode: row.get(5)?,
        epoch: number(row, 6)?,
        head_seq: number(row, 7)?,
        trimmed_seq: number(row, 8)?,
        has_history: row.get(9)?,
        created_at: number(row, 10)?,
        created_by: row.get(11)?,
        forked_from: optional(row, 12, id)?,
        worktree: optional(row, 13, worktree)?,
        adopted: row.get(14)?,
        pending_approvals: number(row, 15)?,
    })
}

pub(super) fn session(connection: &Connection, id: &str) -> RowResult<Option<SessionRecord>> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {SESSION} FROM sessions WHERE id = ?1"))?;
    statement.query_row([id], record).optional()
}

pub(super) fn sessions(connection: &Connection, after: &str, limit: i64) -> RowResult<Vec<SessionRecord>> {
    let sql = format!("SELECT {SESSION} FROM sessions WHERE id > ?1 ORDER BY id LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_map(params![after, limit], record)?.collect()
}

/// Of sessions that are not archived.
pub(super) fn worktrees(connection: &Connection) -> RowResult<Vec<Worktree>> {
    let sql = "SELECT DISTINCT worktree FROM sessions WHERE worktree IS NOT NULL AND state != 'ended'";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map([], |row| worktree(row, 0))?.collect()
}

pub(super) fn event(row: &Row<'_>) -> RowResult<Arc<LogEvent>> {
    let event = LogEvent {
        session_id: id(row, 0)?,
        seq: number(row, 1)?,
        epoch: number(row, 2)?,
        event_id: uuid(row, 3)?,
        at: number(row, 4)?,
        source: named(row, 5, Source::of_name)?,
        actor: row.get(6)?,
        kind: row.get(7)?,
        payload: json(row, 8)?,
    };
    match row.get::<_, Option<i64>>(9)? {
        Some(stored) if stored != sum::of(&event) => {
            let what = format!(
                "the event {} of the session {} is not what was stored",
                event.seq, event.session_id
            );
            Err(wrong(9, std::io::Error::other(what)))
        }
        _ => Ok(Arc::new(event)),
    }
}

/// Whether a result ends the turn of this prompt, and does not leave a call open.
pub(super) fn ends_turn_of(result: &RawJson, prompt: Uuid) -> bool {
    #[derive(serde::Deserialize)]
    struct EndedPrompts {
        user_message_uuids: Vec<String>,
        deferred_tool_use: Option<RawJson>,
    }
    let ended = result.read::<EndedPrompts>();
    ended.is_ok_and(|ended| {
        let is_of_prompt = |id: &String| Uuid::parse_str(id).is_ok_and(|id| id == prompt);
        ended.deferred_tool_use.is_none() && ended.user_message_uuids.iter().any(is_of_prompt)
    })
}

/// All rows of a table, each of which is read as it would be for a caller. Tells what can't be.
pub(super) fn check_rows(connection: &Connection, mut tell: impl FnMut(String)) -> RowResult<()> {
    let mut check = |what: &str, sql: &str, read: fn(&Row<'_>) -> RowResult<()>| -> RowResult<()> {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Err(error) = read(row) {
                tell(format!("{what}: {error}"));
            }
        }
        Ok(())
    };
    check("a session", &format!("SELECT {SESSION} FROM sessions"), |row| {
        record(row).map(drop)
    })?;
    check("an event", &format!("SELECT {EVENT} FROM events"), |row| {
        event(row).map(drop)
    })?;
    check(
        "an approval",
        &format!("SELECT {APPROVAL} FROM approvals"),
        |row| approval(row).map(drop),
    )?;
    check("a record", "SELECT value FROM records", |row| {
        json(row, 0).map(drop)
    })?;
    check("a prompt", "SELECT event_id, payload FROM accepted", |row| {
        uuid(row, 0)?;
        optional(row, 1, json).map(drop)
    })
}

/// How long the events of a page are together, in bytes, before no other is added. One that is longer is a page of its own.
const PAGE_BYTES: usize = 4 << 20;

pub(super) fn events(
    connection: &Connection,
    session: &str,
    after: u64,
    limit: i64,
) -> RowResult<Vec<Arc<LogEvent>>> {
    let sql = format!("SELECT {EVENT} FROM events WHERE session_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let (mut events, mut bytes) = (Vec::new(), 0);
    for read in statement.query_map(params![session, after, limit], event)? {
        let event = read?;
        bytes += event.payload.get().len();
        events.push(event);
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(events)
}

pub(super) fn approval(row: &Row<'_>) -> RowResult<Approval> {
    Ok(Approval {
        id: uuid(row, 0)?,
        session_id: id(row, 1)?,
        kind: named(row, 2, ApprovalKind::of_name)?,
        state: named(row, 3, ApprovalState::of_name)?,
        epoch: number(row, 4)?,
        request_id: row.get(5)?,
        tool_name: row.get(6)?,
        tool_use_id: row.get(7)?,
        input_hash: row.get(8)?,
        request: json(row, 9)?,
        opened_at: number(row, 10)?,
        decided_by: row.get(11)?,
        decided_at: optional(row, 12, number)?,
        decision: optional(row, 13, json)?,
        supersedes: optional(row, 14, uuid)?,
        deferred: row.get(15)?,
        number: number(row, 16)?,
    })
}

/// How much there is, at one moment.
pub(super) fn counts(connection: &Transaction<'_>) -> RowResult<Counts> {
    let mut counts = Counts::default();
    let mut statement = connection.prepare_cached("SELECT state, count(*) FROM sessions GROUP BY state")?;
    let states = statement.query_map([], |row| {
        Ok((named(row, 0, SessionState::of_name)?, number(row, 1)?))
    })?;
    counts.sessions = states.collect::<RowResult<_>>()?;
    let one = |sql: &str| connection.query_row(sql, [], |row| number(row, 0));
    counts.pending_approvals = one("SELECT count(*) FROM approvals WHERE state = 'pending'")?;
    // The first condition is that of the index `undelivered`; without it, SQLite reads all prompts that ever were.
    counts.waiting_prompts = one(
        "SELECT count(*) FROM accepted WHERE delivery IN ('received', 'processing') AND delivery = 'received' AND type = 'user'",
    )?;
    Ok(counts)
}

/// The event that ended an approval, behind the columns of the approval.
pub(super) fn closed(row: &Row<'_>) -> RowResult<(Uuid, u64)> {
    Ok((uuid(row, 17)?, number(row, 18)?))
}

/// Of a session, or of all.
pub(super) fn usage(connection: &Connection, session: Option<&str>) -> RowResult<SessionUsage> {
    let mut usage = SessionUsage::default();
    let mut statement = connection.prepare_cached(
        "SELECT model, sum(results), sum(cost_usd), sum(input), sum(output), sum(cache_read), sum(cache_creation), sum(web_searches)
         FROM usage WHERE ?1 IS NULL OR session_id = ?1 GROUP BY model",
    )?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let (model, cost_usd): (String, f64) = (row.get(0)?, row.get(2)?);
        if model.is_empty() {
            (usage.results, usage.cost_usd) = (number(row, 1)?, cost_usd);
            continue;
        }
        let mut tokens = Tokens::default();
        tokens.cost_usd = cost_usd;
        tokens.input = number(row, 3)?;
        tokens.output = number(row, 4)?;
        tokens.cache_read = number(row, 5)?;
        tokens.cache_creation = number(row, 6)?;
        tokens.web_searches = number(row, 7)?;
        usage.by_model.insert(model, tokens);
    }
    Ok(usage)
}

/// What waits for the process of a session, at one moment.
pub(super) fn waiting(connection: &Transaction<'_>, session: &str, after: u64) -> RowResult<PendingWork> {
    let mut waiting = PendingWork::default();
    let mut statement = connection.prepare_cached(
        "SELECT event_id, type, payload, delivery, seq FROM accepted
         WHERE session_id = ?1 AND delivery IN ('received', 'processing') AND seq > ?2 ORDER BY seq",
    )?;
    let read = |row: &Row<'_>| {
        let received = Received {
            id: uuid(row, 0)?,
            seq: number(row, 4)?,
            kind: row.get(1)?,
            payload: json(row, 2)?,
        };
        Ok((received, named(row, 3, Delivery::of_name)?))
    };
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    for row in statement.query_map(params![session, after], read)? {
        match row? {
            (received, Delivery::Received) => waiting.received.push(received),
            (received, _) => waiting.processing.push(received),
        }
    }
    let sql = format!(
        "SELECT {APPROVAL} FROM approvals WHERE session_id = ?1 AND applied = 0 AND state IN ('allowed', 'denied', 'answered', 'expired')
         AND (deferred = 1 OR epoch = (SELECT epoch FROM sessions WHERE id = ?1)) ORDER BY number"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    for row in statement.query_map([session], approval)? {
        waiting.decided.push(row?);
    }
    let sql = format!(
        "SELECT {APPROVAL} FROM approvals WHERE session_id = ?1 AND deferred = 1 AND applied = 0 AND state = 'pending' ORDER BY number"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    for row in statement.query_map([session], approval)? {
        waiting.deferred.push(row?);
    }
    let mut statement = connection.prepare_cached("SELECT state = 'ended' FROM sessions WHERE id = ?1")?;
    waiting.is_ended = statement
        .query_row([session], |row| row.get(0))
        .optional()?
        .unwrap_or_default();
    Ok(waiting)
}
