//! The tables, and how older ones become them.

use deadpool_postgres::Object;
use outrigger_sessions::store::{Result, StoreError, StoreErrorKind};

/// Each step upgrades the tables by one version. Steps are only added, never changed.
const STEPS: [&str; 3] = [
    "
    CREATE FUNCTION outrigger_now() RETURNS bigint LANGUAGE sql VOLATILE
        AS 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
    CREATE TABLE outrigger_transcript (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        project_key text NOT NULL,
        session_id text NOT NULL,
        subpath text NOT NULL,
        next_seq bigint NOT NULL,
        mtime bigint NOT NULL,
        summary text NOT NULL DEFAULT '{}',
        UNIQUE (project_key, session_id, subpath)
    );
    CREATE TABLE outrigger_entry (
        transcript bigint NOT NULL REFERENCES outrigger_transcript (id) ON DELETE CASCADE,
        seq bigint NOT NULL,
        uuid text,
        entry text NOT NULL,
        PRIMARY KEY (transcript, seq)
    );
    CREATE UNIQUE INDEX outrigger_entry_uuid ON outrigger_entry (transcript, uuid) WHERE uuid IS NOT NULL;
    CREATE TABLE outrigger_lease (
        project_key text NOT NULL,
        session_id text NOT NULL,
        fence bigint NOT NULL,
        owner text NOT NULL,
        expires_at bigint NOT NULL,
        released boolean NOT NULL,
        PRIMARY KEY (project_key, session_id)
    );
",
    "
    CREATE TABLE outrigger_value (
        name text PRIMARY KEY,
        version bigint NOT NULL,
        text text NOT NULL
    );
",
    // The names of its last appends, the newest first.
    "
    ALTER TABLE outrigger_transcript ADD COLUMN appends text NOT NULL DEFAULT '';
",
];

/// Any number that nobody else is likely to lock.
const LOCK: i64 = 0x6f75_7472_6967;

/// Upgrades the tables in one transaction.
pub(super) async fn migrate(client: &mut Object) -> Result<u32> {
    let wrong = |error| super::failed("bring its tables up to date", error);
    let transaction = client.transaction().await.map_err(wrong)?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await
        .map_err(wrong)?;
    let table = "CREATE TABLE IF NOT EXISTS outrigger_schema (version integer NOT NULL)";
    transaction.batch_execute(table).await.map_err(wrong)?;
    let version = transaction
        .query_opt("SELECT version FROM outrigger_schema", &[])
        .await
        .map_err(wrong)?;
    let version = version.map_or(0, |row| row.get::<_, i32>(0)).max(0) as usize;
    let newest = STEPS.len();
    if version > newest {
        let what =
            format!("the session store has version {version}, and this program knows {newest}: update it");
        return Err(StoreError::new(StoreErrorKind::Invalid, what));
    }
    for step in &STEPS[version..] {
        transaction.batch_execute(step).await.map_err(wrong)?;
    }
    if version < newest {
        let set = format!("DELETE FROM outrigger_schema; INSERT INTO outrigger_schema VALUES ({newest})");
        transaction.batch_execute(&set).await.map_err(wrong)?;
    }
    transaction.commit().await.map_err(wrong)?;
    Ok(newest as u32)
}
