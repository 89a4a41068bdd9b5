//! The audit, as SQL.

use rusqlite::{Connection, Row, params};

use super::rows;
use super::steps::signed;
use crate::audit::AuditEntry;
use crate::clock::now;
use crate::error::Result;

/// How many entries are kept.
const KEPT: u64 = 1_000_000;

pub(super) fn add(connection: &Connection, entry: &AuditEntry) -> Result<()> {
    connection.execute(
        "INSERT INTO audit (at, token_id, actor, method, route, object, status) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            signed(now()),
            entry.token_id.to_string(),
            entry.actor,
            entry.method,
            entry.route,
            entry.object,
            entry.status,
        ],
    )?;
    let oldest = connection.last_insert_rowid() - signed(KEPT);
    connection.execute("DELETE FROM audit WHERE number <= ?1", [oldest])?;
    Ok(())
}

/// The newest first.
pub(super) fn read(connection: &Connection, before: Option<u64>, limit: i64) -> Result<Vec<AuditEntry>> {
    let mut statement = connection.prepare_cached(
        "SELECT number, at, token_id, actor, method, route, object, status FROM audit WHERE number < ?1 ORDER BY number DESC LIMIT ?2",
    )?;
    let entries = statement.query_map([before.map_or(i64::MAX, signed), limit], entry)?;
    Ok(entries.collect::<rusqlite::Result<_>>()?)
}

fn entry(row: &Row<'_>) -> rows::RowResult<AuditEntry> {
    Ok(AuditEntry {
        number: rows::number(row, 0)?,
        at: rows::number(row, 1)?,
        token_id: rows::uuid(row, 2)?,
        actor: row.get(3)?,
        method: row.get(4)?,
        route: row.get(5)?,
        object: row.get(6)?,
        status: row.get(7)?,
    })
}
