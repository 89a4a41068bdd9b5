//! Webhooks and schedules, as SQL.

use outrigger::SessionId;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::rows::{self, RowResult};
use super::steps::signed;
use crate::error::{HostError, Result};
use crate::schedule::{MissedRuns, Schedule};
use crate::webhook::{Webhook, WebhookEvent, WebhookSecret, WebhookWrite};

const WEBHOOK: &str =
    "id, url, secret, events, content, created_at, created_by, failing_since, last_error, disabled_at";

const SCHEDULE: &str =
    "id, session_id, cron, time_zone, prompt, missed, next_at, enabled, created_at, created_by";

pub(super) fn write_webhook(connection: &Connection, write: &WebhookWrite) -> Result<()> {
    let (id, changed) = match write {
        WebhookWrite::Add(webhook) => {
            let events: Vec<&str> = webhook.events.iter().map(|event| event.as_str()).collect();
            connection.execute(
                &format!(
                    "INSERT INTO webhooks ({WEBHOOK}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, NULL, NULL)"
                ),
                params![
                    webhook.id.to_string(),
                    webhook.url,
                    webhook.secret.reveal(),
                    events.join(" "),
                    webhook.content,
                    signed(webhook.created_at),
                    webhook.created_by,
                ],
            )?;
            connection.execute(
                "INSERT INTO webhook_cursors (webhook_id, session_id, seq) SELECT ?1, id, head_seq FROM sessions",
                [webhook.id.to_string()],
            )?;
            return Ok(());
        }
        WebhookWrite::Remove(id) => {
            connection.execute(
                "DELETE FROM webhook_cursors WHERE webhook_id = ?1",
                [id.to_string()],
            )?;
            (
                id,
                connection.execute("DELETE FROM webhooks WHERE id = ?1", [id.to_string()])?,
            )
        }
        WebhookWrite::Cursor {
            webhook,
            session,
            seq,
        } => {
            // A webhook or a session that was removed in the meantime gets no cursor.
            connection
                .prepare_cached(
                    "INSERT INTO webhook_cursors (webhook_id, session_id, seq) SELECT w.id, s.id, ?3 FROM webhooks w, sessions s
                     WHERE w.id = ?1 AND s.id = ?2 ON CONFLICT DO UPDATE SET seq = max(seq, excluded.seq)",
                )?
                .execute(params![webhook.to_string(), session.as_str(), signed(*seq)])?;
            return Ok(());
        }
        WebhookWrite::Failing { webhook, failing } => {
            let (since, error) = match failing {
                Some((since, error)) => (Some(signed(*since)), Some(error)),
                None => (None, None),
            };
            let changed = connection.execute(
                "UPDATE webhooks SET failing_since = ?2, last_error = ?3 WHERE id = ?1",
                params![webhook.to_string(), since, error],
            )?;
            (webhook, changed)
        }
        WebhookWrite::Unsendable { webhook, error } => {
            let changed = connection.execute(
                "UPDATE webhooks SET last_error = ?2 WHERE id = ?1",
                params![webhook.to_string(), error],
            )?;
            (webhook, changed)
        }
        WebhookWrite::Disable { webhook, at, reason } => {
            let changed = connection.execute(
                "UPDATE webhooks SET disabled_at = ?2, last_error = ?3 WHERE id = ?1",
                params![webhook.to_string(), signed(*at), reason],
            )?;
            (webhook, changed)
        }
        WebhookWrite::Enable(id) => {
            let changed = connection.execute(
                "UPDATE webhooks SET disabled_at = NULL, failing_since = NULL, last_error = NULL WHERE id = ?1",
                [id.to_string()],
            )?;
            (id, changed)
        }
    };
    if changed == 0 {
        return Err(HostError::NoWebhook(*id));
    }
    Ok(())
}

fn webhook(row: &Row<'_>) -> RowResult<Webhook> {
    let names: String = row.get(3)?;
    // An event that only a newer program knows is never sent by this one.
    let events = names.split(' ').filter_map(WebhookEvent::of_name).collect();
    Ok(Webhook {
        id: rows::uuid(row, 0)?,
        url: row.get(1)?,
        secret: WebhookSecret::new(row.get::<_, String>(2)?),
        events,
        content: row.get(4)?,
        created_at: rows::number(row, 5)?,
        created_by: row.get(6)?,
        failing_since: rows::optional(row, 7, rows::number)?,
        last_error: row.get(8)?,
        disabled_at: rows::optional(row, 9, rows::number)?,
    })
}

pub(super) fn webhooks(connection: &Connection) -> Result<Vec<Webhook>> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {WEBHOOK} FROM webhooks ORDER BY created_at, id"))?;
    let found = statement.query_map([], webhook)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn behind(connection: &Connection, id: Uuid, after: &str, limit: i64) -> Result<Vec<SessionId>> {
    let mut statement = connection.prepare_cached(
        "SELECT s.id FROM sessions s LEFT JOIN webhook_cursors c ON c.webhook_id = ?1 AND c.session_id = s.id
         WHERE s.id > ?2 AND s.head_seq > coalesce(c.seq, 0) ORDER BY s.id LIMIT ?3",
    )?;
    let found = statement.query_map(params![id.to_string(), after, limit], |row| rows::id(row, 0))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn cursor(connection: &Connection, id: Uuid, session: &str) -> Result<u64> {
    let mut statement = connection.prepare_cached(
        "SELECT coalesce(max(seq), 0) FROM webhook_cursors WHERE webhook_id = ?1 AND session_id = ?2",
    )?;
    Ok(statement.query_row(params![id.to_string(), session], |row| rows::number(row, 0))?)
}

pub(super) fn add_schedule(connection: &Connection, session: &SessionId, schedule: &Schedule) -> Result<()> {
    let added = connection.execute(
        &format!(
            "INSERT INTO schedules ({SCHEDULE}) SELECT ?1, id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM sessions WHERE id = ?2"
        ),
        params![
            schedule.id.to_string(),
            session.as_str(),
            schedule.cron,
            schedule.time_zone,
            schedule.prompt,
            schedule.missed.as_str(),
            schedule.next_at.map(signed),
            schedule.enabled,
            signed(schedule.created_at),
            schedule.created_by,
        ],
    )?;
    if added == 0 {
        return Err(HostError::NoSession(session.clone()));
    }
    Ok(())
}

/// Whether the schedule was due at `due` until now.
pub(super) fn reschedule(
    connection: &Connection,
    id: Uuid,
    due: Option<u64>,
    next_at: Option<u64>,
    enabled: bool,
) -> Result<()> {
    let changed = connection.execute(
        "UPDATE schedules SET next_at = ?3, enabled = ?4 WHERE id = ?1 AND next_at IS ?2",
        params![id.to_string(), due.map(signed), next_at.map(signed), enabled],
    )?;
    if changed == 0 {
        return Err(HostError::NoSchedule(id));
    }
    Ok(())
}

pub(super) fn remove_schedule(connection: &Connection, session: &SessionId, id: Uuid) -> Result<()> {
    let removed = connection.execute(
        "DELETE FROM schedules WHERE id = ?1 AND session_id = ?2",
        params![id.to_string(), session.as_str()],
    )?;
    if removed == 0 {
        return Err(HostError::NoSchedule(id));
    }
    Ok(())
}

pub(super) fn schedules(connection: &Connection) -> Result<Vec<Schedule>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {SCHEDULE} FROM schedules ORDER BY created_at, id"
    ))?;
    let found = statement.query_map([], |row| {
        Ok(Schedule {
            id: rows::uuid(row, 0)?,
            session_id: rows::id(row, 1)?,
            cron: row.get(2)?,
            time_zone: row.get(3)?,
            prompt: row.get(4)?,
            missed: rows::named(row, 5, MissedRuns::of_name)?,
            next_at: rows::optional(row, 6, rows::number)?,
            enabled: row.get(7)?,
            created_at: rows::number(row, 8)?,
            created_by: row.get(9)?,
        })
    })?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}
