//! Values that processes share: a table of their own.

use std::time::Duration;

use outrigger_sessions::store::{BoxFuture, Result, StoredValue, ValueStore};

use super::PostgresStore;

impl ValueStore for PostgresStore {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StoredValue>> {
        Box::pin(async move {
            let text = "SELECT outrigger_now(), v.version, v.text
                        FROM (SELECT 1) one LEFT JOIN outrigger_value v ON v.name = $1";
            let rows = self.query("read a value", text, &[&name]).await?;
            let row = rows.first();
            let now = row.map_or(0, |row| row.get::<_, i64>(0));
            let version = row.and_then(|row| row.get::<_, Option<i64>>(1)).unwrap_or(0);
            let text = row
                .and_then(|row| row.get::<_, Option<String>>(2))
                .unwrap_or_default();
            Ok(StoredValue::new(
                version as u64,
                text,
                Duration::from_millis(now as u64),
            ))
        })
    }

    fn replace<'a>(&'a self, name: &'a str, version: u64, text: &'a str) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let what = "replace a value";
            let written = if version == 0 {
                let insert = "INSERT INTO outrigger_value (name, version, text) VALUES ($1, 1, $2)
                              ON CONFLICT DO NOTHING RETURNING 1";
                self.query(what, insert, &[&name, &text]).await?
            } else {
                let update = "UPDATE outrigger_value SET version = version + 1, text = $3
                              WHERE name = $1 AND version = $2 RETURNING 1";
                self.query(what, update, &[&name, &(version as i64), &text])
                    .await?
            };
            Ok(!written.is_empty())
        })
    }
}
