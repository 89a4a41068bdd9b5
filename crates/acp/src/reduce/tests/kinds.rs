//! Each kind of message becomes what `docs/acp-extensions.md` says.

use std::collections::BTreeSet;

use outrigger::protocol::Frame;
use outrigger::protocol::inbound::{Message, SystemMessage};

use super::support::Run;
use crate::event::Event;
use crate::event::Topic;
use crate::reduce::ReducedStep;

const DOC: &str = include_str!("../../../../../docs/acp-extensions.md");

/// The rows of the table below this heading, as cells.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, rest) = DOC.split_once(heading).expect(heading);
    let rows = rest.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let cells = rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect());
    cells.collect()
}

/// The text in backticks.
fn code(cell: &str) -> BTreeSet<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn each_topic_is_in_the_table_and_each_row_is_a_topic() {
    let rows = table("## Topics");
    let documented: Vec<&str> = rows.iter().flat_map(|row| code(row[0])).collect();
    let topics: Vec<&str> = Topic::ALL.iter().map(|topic| topic.as_str()).collect();
    assert_eq!(documented, topics);
    for row in rows {
        assert_eq!(row.len(), 4, "{row:?}");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
}

#[test]
fn each_kind_is_in_the_table() {
    let rows = table("## What becomes of each message");
    let documented: BTreeSet<&str> = rows.iter().flat_map(|row| code(row[0])).collect();
    let system = SystemMessage::KNOWN.iter().map(|kind| format!("system/{kind}"));
    let plain = Message::KNOWN.iter().filter(|kind| **kind != "system");
    let kinds: BTreeSet<String> = plain.map(|kind| (*kind).to_owned()).chain(system).collect();
    let documented: BTreeSet<String> = documented.into_iter().map(str::to_owned).collect();
    assert_eq!(documented, kinds);
}

/// The smallest message of each kind, built from the required fields of its type, has exactly the events of the table.
#[test]
fn what_the_table_says_is_so() {
    let mut wrong = Vec::new();
    for row in table("## What becomes of each message") {
        let kind = code(row[0]).into_iter().next().expect("a kind");
        // A kind without events has its reason in the table.
        let said = if row[1].starts_with('–') {
            BTreeSet::new()
        } else {
            code(row[1])
        };
        let mut told = BTreeSet::new();
        let lines = smallest(kind);
        if lines.is_empty() {
            wrong.push(format!("{kind}: no message of it could be made"));
        }
        for line in lines {
            let mut run = Run::new();
            run.json(serde_json::from_str(&line).expect("JSON"));
            told.extend(run.steps.iter().filter_map(name));
        }
        // Placeholders stand for kinds that no build knows.
        told.remove(Topic::Unknown.as_str());
        let unsaid: Vec<_> = told.iter().filter(|name| !said.contains(**name)).collect();
        let silent = told.is_empty() && !said.is_empty() && !row[1].contains("only");
        if !unsaid.is_empty() || silent {
            wrong.push(format!("{kind}: told {told:?}, and the table says {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn name(step: &ReducedStep) -> Option<&'static str> {
    let ReducedStep::Event(event) = step else {
        return None;
    };
    Some(match event {
        Event::Notice(notice) => notice.topic.as_str(),
        Event::Extra(extra) => extra.topic.as_str(),
        Event::User(_) => "user_message_chunk",
        Event::Text(_) => "agent_message_chunk",
        Event::Thought(_) => "agent_thought_chunk",
        Event::Call(_) => "tool_call",
        Event::CallChanged(_) => "tool_call_update",
        Event::Terminal(_) => "terminal",
        Event::Plan(_) => "plan",
        Event::Commands(_) => "available_commands_update",
        Event::Mode(_) => "current_mode_update",
        Event::ConfigChanged => "config_option_update",
        Event::Title(_) => "session_info_update",
        Event::Usage(_) => "usage_update",
        Event::Compaction(_) => "compaction_update",
        Event::Subagent(_) => "subagent",
        // Of a replay, and of what is made of all these.
        Event::RecordedAgent(_)
        | Event::AgentPrompt(_)
        | Event::Child(_)
        | Event::ChildState(_)
        | Event::Told(_) => return None,
    })
}

/// Messages of this kind with only the required fields; several where a string is one of a set.
fn smallest(kind: &str) -> Vec<String> {
    let (kind, subtype) = kind.split_once('/').unwrap_or((kind, ""));
    let begin = match subtype {
        "" => format!(r#"{{"type":"{kind}"}}"#),
        _ => format!(r#"{{"type":"{kind}","subtype":"{subtype}"}}"#),
    };
    let mut open = vec![begin];
    let mut done = Vec::new();
    while let Some(line) = open.pop() {
        assert!(line.len() < 4000 && done.len() < 64, "{line}");
        match misfit(&line) {
            None => done.push(line),
            Some(why) => open.extend(more(&line, &why)),
        }
    }
    done
}

/// The error of decoding the line.
fn misfit(line: &str) -> Option<String> {
    let frame = Frame::from_line(line).into_iter().next().expect("a frame");
    match frame.decode() {
        Ok(Message::System(system)) => match *system {
            SystemMessage::Misfit(misfit) => Some(misfit.reason),
            _ => None,
        },
        Ok(_) => None,
        Err(misfit) => Some(misfit.reason),
    }
}

/// The line with the missing field, with each value of the right type.
fn more(line: &str, why: &str) -> Vec<String> {
    let Some((_, rest)) = why.split_once("missing field `") else {
        return Vec::new();
    };
    let (field, rest) = rest.split_once('`').expect("a name");
    let (_, column) = rest.rsplit_once("column ").expect("a place");
    let at: usize = column.trim().parse::<usize>().expect("a number") - 1;
    let (before, after) = line.split_at(at);
    assert!(after.starts_with('}'), "{line} {why}");
    let comma = if before.ends_with('{') { "" } else { "," };
    let with = |value: &str| format!("{before}{comma}\"{field}\":{value}{after}");
    let values = [
        "\"x\"",
        "1",
        "true",
        "[]",
        "{}",
        r#"{"type":"x"}"#,
        r#"{"kind":"x"}"#,
        r#"{"subtype":"x"}"#,
    ];
    for value in values {
        let line = with(value);
        match misfit(&line) {
            Some(why) if why.contains("unknown variant") => {
                let known = why.split_once("expected").map_or("", |(_, known)| known);
                let known = known.split('`').skip(1).step_by(2);
                return known.map(|known| with(&format!("\"{known}\""))).collect();
            }
            Some(why) if !why.contains("missing field") => {}
            _ => return vec![line],
        }
    }
    Vec::new()
}
