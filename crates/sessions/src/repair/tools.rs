//! Calls of tools and their results: the model's API takes neither without the other.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::damaged_lines::Row;
use super::{Finding, Problem};
use crate::record::RecordKind;
use crate::record::object::{Object, elements, quoted};

/// The text that the model reads in place of a lost result.
const LOST: &str = "[The result of this tool call was not recorded: the session ended before it, or the record was lost. What the \
    call has done is unknown.]";

/// The tool calls and results of a record of the main conversation.
#[derive(Debug, Default)]
struct Blocks {
    /// The calls in the message: id and tool.
    calls: Vec<(String, String)>,
    /// The calls that the message has results of.
    results: Vec<String>,
    /// Which answer of the model it is a part of.
    message: Option<String>,
}

/// Mends calls without a result, and results without a call, in the main conversation.
pub(super) fn mend(rows: &mut Vec<Row<'_>>, findings: &mut Vec<Finding>) {
    drop_orphans(rows, findings);
    add_results(rows, findings);
}

fn blocks(row: &Row<'_>) -> Blocks {
    let mut found = Blocks::default();
    let kind = row.links.as_ref().map(|it| &it.kind);
    if !row.is_main() || !matches!(kind, Some(RecordKind::User | RecordKind::Assistant)) {
        return found;
    }
    // Most records have none, and need not be taken apart.
    if memchr::memmem::find(&row.text, b"tool_").is_none() {
        return found;
    }
    let text = String::from_utf8_lossy(&row.text);
    let message = Object::parse(&text).and_then(|record| record.get("message").map(str::to_owned));
    let Some(message) = message.as_deref().and_then(Object::parse) else {
        return found;
    };
    found.message = message.string("id");
    let content = message.get("content").map(elements).unwrap_or_default();
    for block in content.iter().filter_map(|block| Object::parse(block)) {
        match (block.string("type").as_deref(), kind) {
            (Some("tool_use"), Some(RecordKind::Assistant)) => {
                let tool = block.string("name").unwrap_or_default();
                found.calls.extend(block.string("id").map(|id| (id, tool)));
            }
            (Some("tool_result"), Some(RecordKind::User)) => {
                found.results.extend(block.string("tool_use_id"))
            }
            _ => {}
        }
    }
    found
}

/// Removes results without a call. A record whose parent is removed gets the parent of that.
fn drop_orphans(rows: &mut Vec<Row<'_>>, findings: &mut Vec<Finding>) {
    let all: Vec<Blocks> = rows.iter().map(blocks).collect();
    let called: HashSet<&str> = all.iter().flat_map(|it| &it.calls).map(|(id, _)| &**id).collect();
    let mut gone: HashMap<String, Option<String>> = HashMap::new();
    for (row, blocks) in rows.iter_mut().zip(&all) {
        let orphans: HashSet<&str> = blocks
            .results
            .iter()
            .map(|id| &**id)
            .filter(|id| !called.contains(id))
            .collect();
        if orphans.is_empty() {
            continue;
        }
        findings.extend(
            blocks
                .results
                .iter()
                .filter(|id| orphans.contains(&***id))
                .map(|id| Finding {
                    position: row.position,
                    problem: Problem::OrphanResult {
                        tool_use_id: id.clone(),
                    },
                }),
        );
        let is_orphan = |block: &str| {
            let block = Object::parse(block);
            let id = block.filter(|it| it.string("type").as_deref() == Some("tool_result"));
            id.and_then(|it| it.string("tool_use_id"))
                .is_some_and(|id| orphans.contains(&*id))
        };
        let mut is_empty = false;
        row.change(|record| {
            let Some(message) = record.get("message").map(str::to_owned) else {
                return;
            };
            let Some(mut message) = Object::parse(&message) else {
                return;
            };
            let content = message.get("content").map(str::to_owned).unwrap_or_default();
            let mut kept = elements(&content);
            kept.retain(|block| !is_orphan(block));
            is_empty = kept.is_empty();
            message.set("content", format!("[{}]", kept.join(",")));
            let message = message.to_text();
            record.set("message", message);
        });
        if let Some(uuid) = row.uuid().filter(|_| is_empty) {
            gone.insert(uuid.to_owned(), row.parent().map(str::to_owned));
        }
    }
    if gone.is_empty() {
        return;
    }
    rows.retain(|row| row.uuid().is_none_or(|uuid| !gone.contains_key(uuid)));
    for row in rows {
        let mut parent = row.parent().map(str::to_owned);
        let mut is_moved = false;
        while let Some(next) = parent.as_deref().and_then(|parent| gone.get(parent)) {
            parent = next.clone();
            is_moved = true;
        }
        if is_moved && row.uuid().is_some() {
            row.link(parent.as_deref());
        }
    }
}

/// Adds a result for each call without one, behind what there is of the same answer of the model, and before what followed that.
fn add_results(rows: &mut Vec<Row<'_>>, findings: &mut Vec<Finding>) {
    let mut all: Vec<Blocks> = rows.iter().map(blocks).collect();
    let answered: HashSet<String> = all.iter().flat_map(|it| it.results.clone()).collect();
    let mut at = 0;
    while at < rows.len() {
        let missing = all[at].calls.iter().filter(|(id, _)| !answered.contains(id));
        for (id, tool) in missing.cloned().collect::<Vec<_>>() {
            let tip = tip(rows, &all, at);
            let (Some(result), Some(behind)) = (result(&rows[at], &id), rows[tip].uuid().map(str::to_owned))
            else {
                continue;
            };
            let mut result = result;
            result.link(Some(&behind));
            let new = result.uuid().map(str::to_owned);
            for (row, blocks) in rows.iter_mut().zip(&all) {
                if row.is_main() && row.parent() == Some(&behind) && !belongs(blocks, &all[at], &all) {
                    row.link(new.as_deref());
                }
            }
            findings.push(Finding {
                position: rows[at].position,
                problem: Problem::MissingResult {
                    tool_use_id: id.clone(),
                    tool,
                },
            });
            rows.insert(tip + 1, result);
            let results = vec![id];
            all.insert(
                tip + 1,
                Blocks {
                    results,
                    ..Blocks::default()
                },
            );
            // The tip may be before it in the file.
            at += usize::from(tip < at);
        }
        at += 1;
    }
}

/// The last record in a row of those that belong to the same answer of the model, its results included.
fn tip(rows: &[Row<'_>], all: &[Blocks], from: usize) -> usize {
    let mut tip = from;
    let mut seen = HashSet::from([from]);
    loop {
        let uuid = rows[tip].uuid();
        let follows = |row: &Row<'_>| row.is_main() && row.parent().is_some() && row.parent() == uuid;
        let next = (0..rows.len())
            .rev()
            .find(|at| follows(&rows[*at]) && belongs(&all[*at], &all[from], all));
        match next {
            Some(at) if seen.insert(at) => tip = at,
            _ => return tip,
        }
    }
}

/// Whether a record is of the same answer of the model as `of`, or has results of it.
fn belongs(blocks: &Blocks, of: &Blocks, all: &[Blocks]) -> bool {
    if of.message.is_some() && blocks.message == of.message {
        return true;
    }
    let of_it = |id: &String| {
        let in_answer = |it: &Blocks| it.calls.iter().any(|(call, _)| call == id);
        in_answer(of)
            || of.message.is_some() && all.iter().any(|it| it.message == of.message && in_answer(it))
    };
    blocks.results.iter().any(of_it)
}

/// A record with an error result for a call without one.
fn result(call: &Row<'_>, id: &str) -> Option<Row<'static>> {
    let text = std::str::from_utf8(&call.text).ok()?;
    let call_record = Object::parse(text)?;
    let mut record = Object::new();
    record.set("parentUuid", "null");
    record.set("isSidechain", "false");
    record.set_string("type", "user");
    let (id, lost) = (quoted(id), quoted(LOST));
    let block = format!(r#"{{"tool_use_id":{id},"type":"tool_result","content":{lost},"is_error":true}}"#);
    record.set("message", format!(r#"{{"role":"user","content":[{block}]}}"#));
    record.set_string("uuid", &Uuid::new_v4().to_string());
    record.set("toolUseResult", quoted(&format!("Error: {LOST}")));
    record.set_string("sourceToolAssistantUUID", call.uuid()?);
    for key in [
        "timestamp",
        "userType",
        "entrypoint",
        "cwd",
        "sessionId",
        "version",
        "gitBranch",
    ] {
        if let Some(value) = call_record.get(key) {
            record.set(key, value.to_owned());
        }
    }
    let text = record.to_text();
    Row::of(call.position, text.into_bytes().into())
}
