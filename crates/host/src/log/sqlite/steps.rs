//! The steps of a transaction, as SQL.

use std::sync::Arc;

use outrigger::protocol::RawJson;
use outrigger::{SessionId, SessionUsage, Tokens};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{hooks, rows, sum};
use crate::approval::{Approval, ApprovalState};
use crate::clock::now;
use crate::error::{HostError, Result};
use crate::event::{Accepted, Delivery, Effect, LogEvent, SessionRecord, SessionState, Source};
use crate::log::{NewEvent, Receipt, Update, Write};

const USAGE: &str =
    "session_id, model, results, cost_usd, input, output, cache_read, cache_creation, web_searches";

const ADD_USAGE: &str = "ON CONFLICT (session_id, model) DO UPDATE SET results = results + excluded.results, cost_usd = cost_usd + excluded.cost_usd,
    input = input + excluded.input, output = output + excluded.output, cache_read = cache_read + excluded.cache_read,
    cache_creation = cache_creation + excluded.cache_creation, web_searches = web_searches + excluded.web_searches";

/// Does all steps. After an error the caller rolls back.
pub(super) fn apply(connection: &Connection, session: &SessionId, steps: &[Write]) -> Result<Receipt> {
    let mut work = StepWriter {
        connection,
        session,
        receipt: Receipt::default(),
    };
    for step in steps {
        work.step(step)?;
    }
    Ok(work.receipt)
}

/// Sets a record, or removes it.
pub(super) fn put_record(
    connection: &Connection,
    kind: &str,
    id: &str,
    value: Option<&RawJson>,
) -> Result<Receipt> {
    match value {
        Some(value) => connection.execute(
            "INSERT OR REPLACE INTO records (kind, id, value) VALUES (?1, ?2, ?3)",
            params![kind, id, value.get()],
        )?,
        None => connection.execute("DELETE FROM records WHERE kind = ?1 AND id = ?2", [kind, id])?,
    };
    Ok(Receipt::default())
}

/// How many frames of clients may wait for a session, or be at work in it.
const WAITING: u64 = 1000;

/// How long these frames may be together, in bytes.
const WAITING_BYTES: u64 = 32 << 20;

/// The type of a prompt.
const PROMPT: &str = "user";

/// The earlier approval about the same call. Two parts, so that each has its index: SQLite would read all approvals of the session for one condition.
const EARLIER: &str = "SELECT id FROM (
     SELECT id, number FROM approvals WHERE session_id = ?1 AND state != 'pending' AND tool_use_id = ?2
     UNION ALL
     SELECT id, number FROM approvals WHERE session_id = ?1 AND state != 'pending' AND input_hash = ?4 AND tool_name = ?3
     AND (state = 'superseded' OR applied = 0)
 ) ORDER BY number DESC LIMIT 1";

struct StepWriter<'a> {
    connection: &'a Connection,
    session: &'a SessionId,
    receipt: Receipt,
}

impl StepWriter<'_> {
    fn step(&mut self, step: &Write) -> Result<()> {
        let id = self.session.as_str();
        match step {
            Write::Create { record, request } => self.create(record, request)?,
            Write::Append(event) => {
                self.append(event)?;
            }
            Write::Accept(event) => self.accept(event)?,
            Write::Mark(event_id, delivery) => self.mark(*event_id, *delivery)?,
            Write::Enter(state) => {
                let changed = self.connection.execute(
                    "UPDATE sessions SET state = ?2 WHERE id = ?1 AND state NOT IN (?2, 'ended')",
                    params![id, state.as_str()],
                )?;
                if changed == 1 {
                    let payload =
                        json!({"type": "session_state_changed", "session_id": id, "state": state.as_str()});
                    self.append(&NewEvent::host("session_state_changed", payload))?;
                }
                if changed == 1 && *state == SessionState::Ended {
                    self.drop_prompts()?;
                }
            }
            Write::NextEpoch => {
                self.connection
                    .execute("UPDATE sessions SET epoch = epoch + 1 WHERE id = ?1", [id])?;
            }
            Write::HasHistory => {
                self.connection
                    .execute("UPDATE sessions SET has_history = 1 WHERE id = ?1", [id])?;
            }
            Write::Initialized(reply) => {
                self.connection.execute(
                    "UPDATE sessions SET initialized = ?2 WHERE id = ?1",
                    params![id, reply.get()],
                )?;
            }
            Write::Update(update) => self.update(update)?,
            Write::Spend(spent) => self.spend(spent)?,
            Write::Open(approval) => self.open(approval)?,
            Write::Decide {
                id,
                state,
                actor,
                decision,
                must_be_first,
            } => self.decide(*id, *state, actor.as_deref(), decision.as_ref(), *must_be_first)?,
            Write::Applied(id) => {
                self.connection
                    .execute("UPDATE approvals SET applied = 1 WHERE id = ?1", [id.to_string()])?;
            }
            Write::Withdraw(request) => {
                let found = self.pending("AND request_id = ?2", request)?;
                self.supersede(found)?;
            }
            Write::SupersedeAll => {
                let found = self.pending("AND ?2 = '' AND deferred = 0", "")?;
                self.supersede(found)?;
            }
            Write::GiveUp { id, reason } => self.give_up("AND id = ?2", &id.to_string(), reason)?,
            Write::GiveUpAll { reason } => self.give_up("AND ?2 = ''", "", reason)?,
            Write::Schedule(schedule) => hooks::add_schedule(self.connection, self.session, schedule)?,
            Write::Reschedule {
                id,
                due,
                next_at,
                enabled,
            } => hooks::reschedule(self.connection, *id, *due, *next_at, *enabled)?,
            Write::Unschedule(id) => hooks::remove_schedule(self.connection, self.session, *id)?,
            Write::Trim(seq) => {
                let record = rows::session(self.connection, id)?.ok_or_else(|| self.missing())?;
                let seq = (*seq).min(record.head_seq).max(record.trimmed_seq);
                self.connection.execute(
                    "DELETE FROM events WHERE session_id = ?1 AND seq <= ?2",
                    params![id, signed(seq)],
                )?;
                self.connection.execute(
                    "UPDATE sessions SET trimmed_seq = ?2 WHERE id = ?1",
                    params![id, signed(seq)],
                )?;
            }
            Write::Delete => {
                self.connection.execute(
                    &format!(
                        "INSERT INTO usage ({USAGE}) SELECT '', model, results, cost_usd, input, output, cache_read, cache_creation, web_searches
                         FROM usage WHERE session_id = ?1 {ADD_USAGE}"
                    ),
                    [id],
                )?;
                for table in [
                    "usage",
                    "events",
                    "accepted",
                    "approvals",
                    "webhook_cursors",
                    "schedules",
                ] {
                    self.connection
                        .execute(&format!("DELETE FROM {table} WHERE session_id = ?1"), [id])?;
                }
                if self
                    .connection
                    .execute("DELETE FROM sessions WHERE id = ?1", [id])?
                    == 0
                {
                    return Err(self.missing());
                }
            }
        }
        Ok(())
    }

    fn create(&mut self, record: &SessionRecord, request: &str) -> Result<()> {
        let id = self.session.as_str();
        let inserted = self.connection.execute(
            "INSERT OR IGNORE INTO sessions (id, state, cwd, title, model, permission_mode, has_history, created_at, created_by, created_as, forked_from, worktree, adopted)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            params![
                id,
                record.state.as_str(),
                record.cwd,
                record.title,
                record.model,
                record.permission_mode,
                record.has_history,
                signed(record.created_at),
                record.created_by,
                request,
                record.forked_from.as_ref().map(SessionId::as_str),
                record.worktree.as_ref().map(|worktree| json!(worktree).to_string()),
                record.adopted,
            ],
        )?;
        if inserted == 0 {
            let known: String =
                self.connection
                    .query_row("SELECT created_as FROM sessions WHERE id = ?1", [id], |row| {
                        row.get(0)
                    })?;
            return if known == request {
                Ok(())
            } else {
                Err(HostError::Reused(format!("the session id {id}")))
            };
        }
        let payload = json!({"type": "session_created", "session_id": id, "cwd": record.cwd, "title": record.title, "forked_from": record.forked_from, "adopted": record.adopted});
        let mut event = NewEvent::host("session_created", payload);
        event.actor.clone_from(&record.created_by);
        self.append(&event)?;
        Ok(())
    }

    fn spend(&self, spent: &SessionUsage) -> Result<()> {
        let mut whole = Tokens::default();
        whole.cost_usd = spent.cost_usd;
        let models = spent.by_model.iter().filter(|(model, _)| !model.is_empty());
        let models = models.map(|(model, tokens)| (model.as_str(), 0, tokens));
        for (model, results, tokens) in std::iter::once(("", spent.results, &whole)).chain(models) {
            let sql = format!(
                "INSERT INTO usage ({USAGE}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) {ADD_USAGE}"
            );
            self.connection.prepare_cached(&sql)?.execute(params![
                self.session.as_str(),
                model,
                signed(results),
                tokens.cost_usd,
                signed(tokens.input),
                signed(tokens.output),
                signed(tokens.cache_read),
                signed(tokens.cache_creation),
                signed(tokens.web_searches),
            ])?;
        }
        Ok(())
    }

    fn missing(&self) -> HostError {
        HostError::NoSession(self.session.clone())
    }

    /// Takes the next number of the session, in the same transaction as the insert.
    fn append(&mut self, event: &NewEvent) -> Result<Arc<LogEvent>> {
        let taken = self
            .connection
            .prepare_cached(
                "UPDATE sessions SET head_seq = head_seq + 1 WHERE id = ?1 RETURNING head_seq, epoch",
            )?
            .query_row([self.session.as_str()], |row| {
                Ok((rows::number(row, 0)?, rows::number(row, 1)?))
            })
            .optional()?;
        let (seq, epoch) = taken.ok_or_else(|| self.missing())?;
        let stored = Arc::new(LogEvent {
            session_id: self.session.clone(),
            seq,
            epoch,
            event_id: event.event_id,
            at: now(),
            source: event.source,
            actor: event.actor.clone(),
            kind: event.kind.clone(),
            payload: event.payload.clone(),
        });
        self.connection
            .prepare_cached("INSERT INTO events (session_id, seq, epoch, event_id, at, source, actor, type, payload, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?
            .execute(params![
                self.session.as_str(),
                signed(seq),
                signed(epoch),
                event.event_id.to_string(),
                signed(stored.at),
                event.source.as_str(),
                event.actor,
                event.kind,
                event.payload.get(),
                sum::of(&stored),
            ])?;
        self.receipt.events.push(Arc::clone(&stored));
        Ok(stored)
    }

    fn accept(&mut self, event: &NewEvent) -> Result<()> {
        let id = self.session.as_str();
        let hash = hash(event.payload.get());
        let known = self
            .connection
            .prepare_cached("SELECT seq, payload_hash FROM accepted WHERE session_id = ?1 AND event_id = ?2")?
            .query_row([id, &event.event_id.to_string()], |row| {
                Ok((rows::number(row, 0)?, row.get::<_, String>(1)?))
            })
            .optional()?;
        if let Some((seq, known_hash)) = known {
            if known_hash != hash {
                return Err(HostError::Reused(format!("the event id {}", event.event_id)));
            }
            self.receipt.accepted.push(Accepted {
                event_id: event.event_id,
                seq,
                effect: Effect::Repeated,
            });
            return Ok(());
        }
        let is_prompt = event.kind == PROMPT;
        let record = rows::session(self.connection, id)?.ok_or_else(|| self.missing())?;
        if is_prompt && record.state == SessionState::Ended {
            return Err(HostError::Archived(self.session.clone()));
        }
        self.check_room(event)?;
        let stored = self.append(event)?;
        self.connection.execute(
            "INSERT INTO accepted (session_id, event_id, seq, type, payload_hash, actor, epoch, at, payload, delivery) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                id,
                event.event_id.to_string(),
                signed(stored.seq),
                event.kind,
                hash,
                event.actor,
                signed(stored.epoch),
                signed(stored.at),
                event.payload.get(),
                Delivery::Received.as_str(),
            ],
        )?;
        if is_prompt {
            self.tell_delivery(event.event_id, Delivery::Received)?;
        }
        self.receipt.accepted.push(Accepted {
            event_id: event.event_id,
            seq: stored.seq,
            effect: Effect::Stored,
        });
        Ok(())
    }

    /// What waits is read by the owner of the session again and again, and is in memory there.
    fn check_room(&self, event: &NewEvent) -> Result<()> {
        let sql = "SELECT count(*), coalesce(sum(octet_length(payload)), 0) FROM accepted
             WHERE session_id = ?1 AND delivery IN ('received', 'processing')";
        let (count, bytes) = self
            .connection
            .prepare_cached(sql)?
            .query_row([self.session.as_str()], |row| {
                Ok((rows::number(row, 0)?, rows::number(row, 1)?))
            })?;
        let size = event.payload.get().len() as u64;
        // One that is large by itself has room when nothing else waits.
        if count >= WAITING || (count > 0 && bytes.saturating_add(size) > WAITING_BYTES) {
            return Err(HostError::Busy("the session"));
        }
        Ok(())
    }

    fn update(&mut self, update: &Update) -> Result<()> {
        for (column, value) in [
            ("title", &update.title),
            ("model", &update.model),
            ("permission_mode", &update.permission_mode),
        ] {
            if let Some(value) = value {
                self.connection.execute(
                    &format!("UPDATE sessions SET {column} = ?2 WHERE id = ?1"),
                    params![self.session.as_str(), value],
                )?;
            }
        }
        let mut payload =
            serde_json::to_value(update).map_err(|error| HostError::Invalid(error.to_string()))?;
        payload["type"] = "session_updated".into();
        self.append(&NewEvent::host("session_updated", payload))?;
        Ok(())
    }

    fn tell_delivery(&mut self, event_id: Uuid, delivery: Delivery) -> Result<()> {
        let payload = json!({"type": "delivery_update", "event_id": event_id, "status": delivery.as_str()});
        self.append(&NewEvent::host("delivery_update", payload))?;
        Ok(())
    }

    /// No process gets the prompts that wait in an archived session.
    fn drop_prompts(&mut self) -> Result<()> {
        let sql =
            "SELECT event_id FROM accepted WHERE session_id = ?1 AND delivery IN ('received', 'processing')
             AND delivery = 'received' AND type = ?2 ORDER BY seq";
        let waiting: Vec<Uuid> = self
            .connection
            .prepare_cached(sql)?
            .query_map([self.session.as_str(), PROMPT], |row| rows::uuid(row, 0))?
            .collect::<rusqlite::Result<_>>()?;
        for prompt in waiting {
            self.mark(prompt, Delivery::NotBegun)?;
        }
        Ok(())
    }

    /// What has come to its end stays there.
    fn mark(&mut self, event_id: Uuid, delivery: Delivery) -> Result<()> {
        let changed: rusqlite::Result<String> = self.connection.query_row(
            "UPDATE accepted SET delivery = ?3 WHERE session_id = ?1 AND event_id = ?2 AND delivery IS NOT ?3
             AND delivery IN ('received', 'processing') RETURNING type",
            params![self.session.as_str(), event_id.to_string(), delivery.as_str()],
            |row| row.get(0),
        );
        if changed.optional()?.as_deref() == Some(PROMPT) {
            self.tell_delivery(event_id, delivery)?;
        }
        Ok(())
    }

    fn open(&mut self, approval: &Approval) -> Result<()> {
        let id = self.session.as_str();
        let earlier: Option<String> = self
            .connection
            .prepare_cached(EARLIER)?
            .query_row(
                params![id, approval.tool_use_id, approval.tool_name, approval.input_hash],
                |row| row.get(0),
            )
            .optional()?;
        self.connection.execute(
            "INSERT INTO approvals (id, session_id, kind, state, epoch, request_id, tool_name, tool_use_id, input_hash, request, opened_at, supersedes, deferred)
             VALUES (?1, ?2, ?3, 'pending', (SELECT epoch FROM sessions WHERE id = ?2), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                approval.id.to_string(),
                id,
                approval.kind.as_str(),
                approval.request_id,
                approval.tool_name,
                approval.tool_use_id,
                approval.input_hash,
                approval.request.get(),
                signed(now()),
                earlier,
                approval.deferred,
            ],
        )?;
        let payload = json!({
            "type": "approval_opened", "approval_id": approval.id, "kind": approval.kind.as_str(),
            "request_id": approval.request_id, "supersedes": earlier, "deferred": approval.deferred,
        });
        self.append(&NewEvent::host("approval_opened", payload))?;
        Ok(())
    }

    fn decide(
        &mut self,
        id: Uuid,
        state: ApprovalState,
        actor: Option<&str>,
        decision: Option<&RawJson>,
        must_be_first: bool,
    ) -> Result<()> {
        let changed = self.connection.execute(
            "UPDATE approvals SET state = ?3, decided_by = ?4, decided_at = ?5, decision = ?6 WHERE id = ?1 AND session_id = ?2 AND state = 'pending'",
            params![
                id.to_string(),
                self.session.as_str(),
                state.as_str(),
                actor,
                signed(now()),
                decision.map(RawJson::get),
            ],
        )?;
        if changed == 0 {
            return self.late(id, actor, decision, must_be_first);
        }
        let payload = json!({"type": "approval_decided", "approval_id": id, "state": state.as_str()});
        let mut event = NewEvent::host("approval_decided", payload);
        event.actor = actor.map(str::to_owned);
        if actor.is_some() {
            event.source = Source::Client;
        }
        let stored = self.close_approval(&id.to_string(), &event)?;
        self.receipt.accepted.push(Accepted {
            event_id: stored.event_id,
            seq: stored.seq,
            effect: Effect::Stored,
        });
        Ok(())
    }

    /// A decision about an approval that is not pending.
    fn late(
        &mut self,
        id: Uuid,
        actor: Option<&str>,
        decision: Option<&RawJson>,
        must_be_first: bool,
    ) -> Result<()> {
        let sql = format!(
            "SELECT {}, closed_event, closed_seq FROM approvals WHERE id = ?1",
            rows::APPROVAL
        );
        let found = self.connection.query_row(&sql, [id.to_string()], |row| {
            Ok((rows::approval(row)?, rows::closed(row)?))
        });
        let (found, (event_id, seq)) = found.optional()?.ok_or(HostError::NoApproval(id))?;
        let is_same = actor.is_some()
            && found.decided_by.as_deref() == actor
            && found.decision.as_ref().map(RawJson::get) == decision.map(RawJson::get);
        if must_be_first && !is_same {
            return Err(HostError::TooLate(Box::new(found)));
        }
        let effect = if is_same {
            Effect::Repeated
        } else {
            Effect::Decided { by: found.decided_by }
        };
        self.receipt.accepted.push(Accepted {
            event_id,
            seq,
            effect,
        });
        Ok(())
    }

    /// Appends the event that ends an approval, and tells the clients that still show the question.
    fn close_approval(&mut self, id: &str, event: &NewEvent) -> Result<Arc<LogEvent>> {
        let stored = self.append(event)?;
        let request: String = self.connection.query_row(
            "UPDATE approvals SET closed_event = ?2, closed_seq = ?3 WHERE id = ?1 RETURNING request_id",
            params![id, stored.event_id.to_string(), signed(stored.seq)],
            |row| row.get(0),
        )?;
        let payload = json!({"type": "control_cancel_request", "request_id": request});
        self.append(&NewEvent::host("control_cancel_request", payload))?;
        Ok(stored)
    }

    fn pending(&self, filter: &str, of: &str) -> Result<Vec<String>> {
        let sql = format!(
            "SELECT id FROM approvals WHERE session_id = ?1 AND state = 'pending' {filter} ORDER BY number"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let found = statement.query_map([self.session.as_str(), of], |row| row.get(0))?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }

    /// Deferred approvals that match are never carried out.
    fn give_up(&mut self, filter: &str, of: &str, reason: &str) -> Result<()> {
        let deferred = format!("AND deferred = 1 {filter}");
        let pending = self.pending(&deferred, of)?;
        self.supersede(pending)?;
        let sql = format!(
            "UPDATE approvals SET applied = 1 WHERE session_id = ?1 AND applied = 0 AND state NOT IN ('pending', 'superseded') {deferred} RETURNING id"
        );
        let decided: Vec<String> = self
            .connection
            .prepare_cached(&sql)?
            .query_map([self.session.as_str(), of], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for id in decided {
            let payload = json!({"type": "decision_not_applied", "approval_id": id, "error": reason});
            self.append(&NewEvent::host("decision_not_applied", payload))?;
        }
        Ok(())
    }

    fn supersede(&mut self, approvals: Vec<String>) -> Result<()> {
        for id in approvals {
            self.connection.execute(
                "UPDATE approvals SET state = 'superseded', decided_at = ?2 WHERE id = ?1",
                params![id, signed(now())],
            )?;
            let payload = json!({"type": "approval_superseded", "approval_id": id});
            self.close_approval(&id, &NewEvent::host("approval_superseded", payload))?;
        }
        Ok(())
    }
}

/// SQLite's numbers have a sign.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn hash(text: &str) -> String {
    Sha256::digest(text)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session of months has many approvals.
    #[test]
    fn the_earlier_approval_is_found_without_reading_all_of_the_session() -> Result<()> {
        let mut connection = Connection::open_in_memory()?;
        crate::log::schema::migrate(&mut connection)?;
        let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {EARLIER}"))?;
        let steps = plan.query_map(params!["", "", "", ""], |row| row.get::<_, String>(3))?;
        let steps: Vec<_> = steps.collect::<rusqlite::Result<_>>()?;
        let read: Vec<_> = steps.iter().filter(|step| step.contains("approvals")).collect();
        let by_index = |step: &&String| step.contains("tool_use_id=?") || step.contains("input_hash=?");
        assert!(read.len() == 2 && read.iter().all(by_index), "{steps:?}");
        Ok(())
    }
}
