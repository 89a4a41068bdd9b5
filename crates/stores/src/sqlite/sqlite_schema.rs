//! The tables, and how older ones become them.

use outrigger_sessions::store::{Result, StoreError, StoreErrorKind};
use rusqlite::Connection;

/// Each step upgrades the tables by one version, in a transaction. Steps are only added, never changed.
const STEPS: [&str; 1] = ["
    CREATE TABLE transcript (
        id INTEGER PRIMARY KEY,
        project_key TEXT NOT NULL,
        session_id TEXT NOT NULL,
        subpath TEXT NOT NULL,
        mtime INTEGER NOT NULL,
        summary TEXT NOT NULL DEFAULT '{}',
        UNIQUE (project_key, session_id, subpath)
    ) STRICT;
    CREATE TABLE entry (
        transcript INTEGER NOT NULL REFERENCES transcript (id),
        seq INTEGER NOT NULL,
        uuid TEXT,
        entry TEXT NOT NULL,
        PRIMARY KEY (transcript, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX entry_uuid ON entry (transcript, uuid) WHERE uuid IS NOT NULL;
    CREATE TABLE lease (
        project_key TEXT NOT NULL,
        session_id TEXT NOT NULL,
        fence INTEGER NOT NULL,
        owner TEXT NOT NULL,
        expires_at INTEGER NOT NULL,
        released INTEGER NOT NULL,
        PRIMARY KEY (project_key, session_id)
    ) STRICT, WITHOUT ROWID;
"];

/// Upgrades the tables, safely beside other processes that do the same.
pub(super) fn migrate(connection: &Connection) -> Result<u32> {
    let failed = |error| super::failed("bring its tables up to date", error);
    connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
    let migrated = steps(connection);
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    connection.execute_batch(end).map_err(failed)?;
    migrated
}

fn steps(connection: &Connection) -> Result<u32> {
    let failed = |error| super::failed("bring its tables up to date", error);
    let version: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(failed)?;
    let newest = STEPS.len() as u32;
    if version > newest {
        let what =
            format!("the session store has version {version}, and this program knows {newest}: update it");
        return Err(StoreError::new(StoreErrorKind::Invalid, what));
    }
    let sql = "SELECT count(*), count(*) FILTER (WHERE name = 'entry') FROM sqlite_schema";
    let (all, own): (u64, u64) = connection
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(failed)?;
    // The tables of another program are not to be mixed with these.
    let is_own = if version == 0 { all == 0 } else { own > 0 };
    if !is_own {
        let what = "the file is the database of another program, and no session store";
        return Err(StoreError::new(StoreErrorKind::Invalid, what));
    }
    for step in &STEPS[version as usize..] {
        connection.execute_batch(step).map_err(failed)?;
    }
    connection
        .pragma_update(None, "user_version", newest)
        .map_err(failed)?;
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_another_program_is_left_as_it_was() {
        for version in [0, 1] {
            let connection = Connection::open_in_memory().unwrap();
            connection
                .execute_batch("CREATE TABLE notes (text TEXT)")
                .unwrap();
            connection.pragma_update(None, "user_version", version).unwrap();
            let error = migrate(&connection).unwrap_err();
            assert_eq!(*error.kind(), StoreErrorKind::Invalid);
            let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0));
            assert_eq!(tables, Ok(1));
        }
    }

    #[test]
    fn tables_are_made_once_and_newer_ones_are_left_alone() {
        let connection = Connection::open_in_memory().unwrap();
        assert_eq!(migrate(&connection).unwrap(), 1);
        assert_eq!(migrate(&connection).unwrap(), 1);
        connection.pragma_update(None, "user_version", 99).unwrap();
        let error = migrate(&connection).unwrap_err();
        assert_eq!(*error.kind(), StoreErrorKind::Invalid);
        assert!(error.to_string().contains("99"), "{error}");
    }
}
