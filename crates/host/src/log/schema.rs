//! The tables.

use rusqlite::Connection;

use crate::error::{HostError, Result};

/// Each brings the tables from one version to the next. What was released is never changed.
const MIGRATIONS: &[&str] = &["
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, cwd TEXT NOT NULL, title TEXT, model TEXT, permission_mode TEXT,
    epoch INTEGER NOT NULL DEFAULT 0, head_seq INTEGER NOT NULL DEFAULT 0, trimmed_seq INTEGER NOT NULL DEFAULT 0,
    has_history INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL, created_by TEXT, created_as TEXT NOT NULL, initialized TEXT,
    forked_from TEXT, worktree TEXT, adopted INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE events (
    session_id TEXT NOT NULL, seq INTEGER NOT NULL, epoch INTEGER NOT NULL, event_id TEXT NOT NULL, at INTEGER NOT NULL,
    source TEXT NOT NULL, actor TEXT, type TEXT NOT NULL, payload TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;
-- The ids of clients' events, which outlive retention: a prompt that is repeated a month later is not run again.
CREATE TABLE accepted (
    session_id TEXT NOT NULL, event_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, payload_hash TEXT NOT NULL,
    actor TEXT, epoch INTEGER NOT NULL, at INTEGER NOT NULL, payload TEXT, delivery TEXT,
    PRIMARY KEY (session_id, event_id)
) WITHOUT ROWID;
CREATE INDEX undelivered ON accepted (session_id, seq) WHERE delivery IN ('received', 'processing');
CREATE TABLE approvals (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL, session_id TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
    epoch INTEGER NOT NULL, request_id TEXT NOT NULL, tool_name TEXT, tool_use_id TEXT, input_hash TEXT NOT NULL,
    request TEXT NOT NULL, opened_at INTEGER NOT NULL, decided_by TEXT, decided_at INTEGER, decision TEXT, supersedes TEXT,
    applied INTEGER NOT NULL DEFAULT 0, closed_event TEXT, closed_seq INTEGER, UNIQUE (session_id, epoch, request_id)
) WITHOUT ROWID;
CREATE INDEX approvals_by_number ON approvals (number);
CREATE INDEX approvals_by_session ON approvals (session_id, state);
CREATE INDEX approvals_by_state ON approvals (state, number);
CREATE INDEX approvals_by_request ON approvals (session_id, request_id);
CREATE TABLE records (kind TEXT NOT NULL, id TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY, url TEXT NOT NULL, secret TEXT NOT NULL, events TEXT NOT NULL, content INTEGER NOT NULL,
    created_at INTEGER NOT NULL, created_by TEXT, failing_since INTEGER, last_error TEXT, disabled_at INTEGER
) WITHOUT ROWID;
CREATE TABLE webhook_cursors (
    webhook_id TEXT NOT NULL, session_id TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (webhook_id, session_id)
) WITHOUT ROWID;
CREATE TABLE schedules (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, cron TEXT NOT NULL, time_zone TEXT NOT NULL, prompt TEXT NOT NULL,
    missed TEXT NOT NULL, next_at INTEGER, enabled INTEGER NOT NULL, created_at INTEGER NOT NULL, created_by TEXT
) WITHOUT ROWID;
CREATE INDEX schedules_by_session ON schedules (session_id);
-- By session and model. The model '' is the whole of the session, whose cost need not be the sum of the models. The session '' has what
-- sessions that were deleted had used.
CREATE TABLE usage (
    session_id TEXT NOT NULL, model TEXT NOT NULL, results INTEGER NOT NULL, cost_usd REAL NOT NULL, input INTEGER NOT NULL,
    output INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_creation INTEGER NOT NULL, web_searches INTEGER NOT NULL,
    PRIMARY KEY (session_id, model)
) WITHOUT ROWID;
", "
ALTER TABLE approvals ADD COLUMN deferred INTEGER NOT NULL DEFAULT 0;
CREATE INDEX approvals_deferred ON approvals (session_id) WHERE deferred = 1 AND applied = 0;
", "
-- Of what an event was when it was stored; null for those of before.
ALTER TABLE events ADD COLUMN sum INTEGER;
", "
-- Who did what. What clients send to sessions is in the events.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, token_id TEXT NOT NULL, actor TEXT NOT NULL, method TEXT NOT NULL,
    route TEXT NOT NULL, object TEXT, status INTEGER NOT NULL
);
", "
-- The CLI may use the id of a request again. A number is never used again, whatever is removed: clients read on from behind it.
CREATE TABLE numbered_approvals (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
    epoch INTEGER NOT NULL, request_id TEXT NOT NULL, tool_name TEXT, tool_use_id TEXT, input_hash TEXT NOT NULL,
    request TEXT NOT NULL, opened_at INTEGER NOT NULL, decided_by TEXT, decided_at INTEGER, decision TEXT, supersedes TEXT,
    applied INTEGER NOT NULL DEFAULT 0, closed_event TEXT, closed_seq INTEGER, deferred INTEGER NOT NULL DEFAULT 0
);
INSERT INTO numbered_approvals (number, id, session_id, kind, state, epoch, request_id, tool_name, tool_use_id, input_hash, request, opened_at,
    decided_by, decided_at, decision, supersedes, applied, closed_event, closed_seq, deferred)
SELECT number, id, session_id, kind, state, epoch, request_id, tool_name, tool_use_id, input_hash, request, opened_at,
    decided_by, decided_at, decision, supersedes, applied, closed_event, closed_seq, deferred FROM approvals ORDER BY number;
DROP TABLE approvals;
ALTER TABLE numbered_approvals RENAME TO approvals;
CREATE INDEX approvals_by_session ON approvals (session_id, state);
CREATE INDEX approvals_by_state ON approvals (state, number);
CREATE INDEX approvals_by_request ON approvals (session_id, request_id);
CREATE INDEX approvals_deferred ON approvals (session_id) WHERE deferred = 1 AND applied = 0;
-- What a process waits for is looked for each time that its session has news.
CREATE INDEX approvals_unapplied ON approvals (session_id) WHERE applied = 0 AND state IN ('allowed', 'denied', 'answered', 'expired');
", "
-- The earlier approval of the same call is looked for each time that one is opened.
CREATE INDEX approvals_by_call ON approvals (session_id, tool_use_id);
CREATE INDEX approvals_by_input ON approvals (session_id, input_hash);
"];

/// The newest version.
pub(super) fn version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Refuses a database of another program, whose tables would be mixed with these.
fn check_owner(connection: &Connection, version: u32) -> Result<()> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE name = 'accepted') FROM sqlite_schema";
    let (all, own): (u64, u64) = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_own = if version == 0 { all == 0 } else { own > 0 };
    if is_own {
        return Ok(());
    }
    Err(HostError::Log(
        "the file is the database of another program".to_owned(),
    ))
}

/// Brings the tables to the newest version, each step in a transaction of its own.
pub(super) fn migrate(connection: &mut Connection) -> Result<()> {
    loop {
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let found: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found > version() {
            return Err(HostError::NewerLog {
                found,
                known: version(),
            });
        }
        check_owner(&transaction, found)?;
        let Some(step) = MIGRATIONS.get(found as usize) else {
            return Ok(());
        };
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", found + 1)?;
        transaction.commit()?;
    }
}
