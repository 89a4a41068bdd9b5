//! Links: every record follows one that is there, and none follows itself.

use std::collections::HashMap;

use super::damaged_lines::Row;
use super::{Finding, Problem};

/// Mends the links between records.
pub(super) fn mend(rows: &mut Vec<Row<'_>>, findings: &mut Vec<Finding>) {
    drop_duplicates(rows, findings);
    link_orphans(rows, findings);
    cut_cycles(rows, findings);
}

/// Of several records with one uuid the last one counts, in the place of the first one.
fn drop_duplicates(rows: &mut Vec<Row<'_>>, findings: &mut Vec<Finding>) {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut at = 0;
    while at < rows.len() {
        let Some(uuid) = rows[at].uuid().map(str::to_owned) else {
            at += 1;
            continue;
        };
        let Some(&earlier) = first.get(&uuid) else {
            first.insert(uuid, at);
            at += 1;
            continue;
        };
        let row = rows.remove(at);
        findings.push(Finding {
            position: row.position,
            problem: Problem::DuplicateUuid {
                uuid,
                first: rows[earlier].position.line,
                is_same: rows[earlier].text == row.text,
            },
        });
        rows[earlier].text = row.text;
        rows[earlier].links = row.links;
    }
}

/// The record before one in the same conversation.
fn before(rows: &[Row<'_>], at: usize) -> Option<usize> {
    rows[..at]
        .iter()
        .rposition(|row| row.uuid().is_some() && row.is_beside(&rows[at]))
}

fn uuid_at(rows: &[Row<'_>], at: usize) -> Option<String> {
    rows[at].uuid().map(str::to_owned)
}

fn link_orphans(rows: &mut [Row<'_>], findings: &mut Vec<Finding>) {
    // Also those of unknown types: the program that wrote them may link them.
    let known: std::collections::HashSet<String> = rows
        .iter()
        .filter_map(|row| Some(row.links.as_ref()?.uuid.as_deref()?.to_owned()))
        .collect();
    for at in 0..rows.len() {
        let Some(uuid) = uuid_at(rows, at) else { continue };
        let Some(parent) = rows[at]
            .parent()
            .filter(|parent| !known.contains(*parent))
            .map(str::to_owned)
        else {
            continue;
        };
        let linked_to = before(rows, at).and_then(|earlier| uuid_at(rows, earlier));
        rows[at].link(linked_to.as_deref());
        findings.push(Finding {
            position: rows[at].position,
            problem: Problem::MissingParent {
                uuid,
                parent,
                linked_to,
            },
        });
    }
}

fn cut_cycles(rows: &mut [Row<'_>], findings: &mut Vec<Finding>) {
    let places: HashMap<String, usize> = (0..rows.len())
        .filter_map(|at| Some((uuid_at(rows, at)?, at)))
        .collect();
    let mut parents: Vec<Option<usize>> = rows
        .iter()
        .map(|row| row.parent().and_then(|parent| places.get(parent).copied()))
        .collect();
    // Which walk came by, from 1; 0 for none.
    let mut seen = vec![0; rows.len()];
    for start in 0..rows.len() {
        if rows[start].uuid().is_none() {
            continue;
        }
        let mut at = start;
        while seen[at] == 0 {
            seen[at] = start + 1;
            match parents[at] {
                Some(parent) => at = parent,
                None => break,
            }
        }
        if parents[at].is_none() || seen[at] != start + 1 {
            continue;
        }
        // The circle is cut at its first record in the file.
        let mut first = at;
        let mut next = parents[at];
        while let Some(place) = next.filter(|place| *place != at) {
            first = first.min(place);
            next = parents[place];
        }
        let earlier = before(rows, first).filter(|earlier| !leads_to(&parents, *earlier, first));
        let linked_to = earlier.and_then(|earlier| uuid_at(rows, earlier));
        parents[first] = earlier;
        rows[first].link(linked_to.as_deref());
        findings.push(Finding {
            position: rows[first].position,
            problem: Problem::Cycle {
                uuid: uuid_at(rows, first).unwrap_or_default(),
                linked_to,
            },
        });
    }
}

/// Whether a record follows another one, or follows something for ever.
fn leads_to(parents: &[Option<usize>], from: usize, to: usize) -> bool {
    let mut at = from;
    for _ in 0..=parents.len() {
        if at == to {
            return true;
        }
        match parents[at] {
            Some(parent) => at = parent,
            None => return false,
        }
    }
    true
}
