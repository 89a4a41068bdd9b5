//! A conversation, and what holds of all of it.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use outrigger_protocol::check::{Checker, Direction};
use serde_json::Value;

use crate::cassette::{Cassette, CassetteError, Event};
use crate::peer::{Line, Report};

/// How many lines are shown on either side of one that is wrong.
const AROUND: usize = 3;

/// How much of a line is shown, in characters.
const SHOWN: usize = 160;

/// What went through between a client and its CLI, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    lines: Vec<Line>,
}

/// Something that does not hold, with the lines around it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n{around}")]
#[non_exhaustive]
pub struct Violation {
    /// What does not hold.
    pub what: String,
    /// The neighbourhood: a line of text for each line of the conversation.
    pub around: String,
}

/// Reads well in the output of `unwrap`.
impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Trace {
    /// A conversation of these lines.
    pub fn new(lines: impl IntoIterator<Item = Line>) -> Self {
        Self {
            lines: lines.into_iter().collect(),
        }
    }

    /// A conversation of lines of text, each with whether the client wrote it. Text that is no JSON is kept as a JSON string.
    ///
    /// ```
    /// use outrigger_sim::assert::Trace;
    ///
    /// let recorded = [(true, r#"{"type":"user"}"#), (false, r#"{"type":"result","num_turns":2}"#)];
    /// let trace = Trace::of_text(recorded);
    /// assert!(trace.turns_below(2).unwrap_err().to_string().contains("2 turns"));
    /// ```
    pub fn of_text<'t>(lines: impl IntoIterator<Item = (bool, &'t str)>) -> Self {
        Self::new(
            lines
                .into_iter()
                .map(|(from_client, text)| Line::of_text(from_client, text)),
        )
    }

    /// The frames of a cassette. Directories and secrets are placeholders in it: `{{cwd}}/main.rs`.
    ///
    /// ```no_run
    /// use outrigger_sim::assert::{Trace, tool};
    ///
    /// let trace = Trace::from_file("tests/cassettes/hello.ndjson").unwrap();
    /// trace.called([tool("Read")]).unwrap();
    /// trace.cost_below(0.05).unwrap();
    /// trace.nothing_unknown().unwrap();
    /// ```
    ///
    /// # Errors
    /// When the file is no cassette, or cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, CassetteError> {
        Ok(Self::from(&Cassette::read(path)?))
    }

    /// The lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Whether the cost that the CLI reports is below this many dollars. It is the cost of the whole process, from the last result that
    /// has one.
    ///
    /// # Errors
    /// When it is not, or no result has a cost.
    pub fn cost_below(&self, dollars: f64) -> Result<(), Violation> {
        let costs = self
            .results()
            .filter_map(|(n, result)| Some((n, result["total_cost_usd"].as_f64()?)));
        match costs.last() {
            Some((_, cost)) if cost < dollars => Ok(()),
            Some((n, cost)) => {
                Err(self.violation(format!("it cost ${cost}, which is not below ${dollars}"), n))
            }
            None => Err(self.violation("no result tells what it cost".into(), self.lines.len())),
        }
    }

    /// Whether the model was called less often than this: the `num_turns` of all results together.
    ///
    /// # Errors
    /// When it was not, or no result has a number of turns.
    pub fn turns_below(&self, turns: u64) -> Result<(), Violation> {
        let mut sum = None;
        let told = self
            .results()
            .filter_map(|(n, result)| Some((n, result["num_turns"].as_u64()?)));
        for (n, more) in told {
            let so_far = sum.unwrap_or(0) + more;
            if so_far >= turns {
                return Err(self.violation(format!("{so_far} turns, which is not below {turns}"), n));
            }
            sum = Some(so_far);
        }
        match sum {
            Some(_) => Ok(()),
            None => Err(self.violation(
                "no result tells how many turns there were".into(),
                self.lines.len(),
            )),
        }
    }

    /// Whether each control request of either side was answered, or taken back.
    ///
    /// # Errors
    /// The first that was not.
    pub fn all_answered(&self) -> Result<(), Violation> {
        let mut open: HashMap<(bool, String), usize> = HashMap::new();
        for (n, line) in self.lines.iter().enumerate() {
            let id = |value: &Value| value.as_str().map(str::to_owned);
            match line.json["type"].as_str() {
                Some("control_request") => {
                    if let Some(id) = id(&line.json["request_id"]) {
                        open.entry((line.from_client, id)).or_insert(n);
                    }
                }
                Some("control_response") => {
                    if let Some(id) = id(&line.json["response"]["request_id"]) {
                        open.remove(&(!line.from_client, id));
                    }
                }
                Some("control_cancel_request") => {
                    if let Some(id) = id(&line.json["request_id"]) {
                        open.remove(&(line.from_client, id));
                    }
                }
                _ => {}
            }
        }
        match open.values().min() {
            None => Ok(()),
            Some(&first) => {
                let line = &self.lines[first];
                let who = if line.from_client {
                    "the client's"
                } else {
                    "the CLI's"
                };
                let what = format!(
                    "{who} {} {} was never answered ({} were not)",
                    line.kind(),
                    line.json["request_id"],
                    open.len()
                );
                Err(self.violation(what, first))
            }
        }
    }

    /// Whether the protocol crate has types for all that the CLI wrote: each frame decodes, and no part of it is of an unknown kind or
    /// without a type.
    ///
    /// # Errors
    /// The first frame that has an unknown part, with that part.
    pub fn nothing_unknown(&self) -> Result<(), Violation> {
        let mut checker = Checker::new();
        for (n, line) in self.lines.iter().enumerate() {
            let text = match &line.json {
                Value::String(text) => text.clone(),
                json => json.to_string(),
            };
            let direction = if line.from_client {
                Direction::In
            } else {
                Direction::Out
            };
            let found = checker.line(direction, text.as_bytes());
            if let Some(verdict) = found.iter().find(|verdict| verdict.is_failure()) {
                let findings: Vec<String> = verdict.findings.iter().map(ToString::to_string).collect();
                return Err(self.violation(format!("{}: {}", line.kind(), findings.join("; ")), n));
            }
        }
        Ok(())
    }

    fn results(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.of_cli().filter(|(_, json)| json["type"] == "result")
    }

    pub(super) fn of_cli(&self) -> impl Iterator<Item = (usize, &Value)> {
        let lines = self.lines.iter().enumerate();
        lines
            .filter(|(_, line)| !line.from_client)
            .map(|(n, line)| (n, &line.json))
    }

    /// Something wrong at a line; behind the last one, at the end.
    pub(super) fn violation(&self, what: String, at: usize) -> Violation {
        let from = at.saturating_sub(AROUND);
        let to = (at + AROUND + 1).min(self.lines.len());
        let mut around = String::new();
        if from > 0 {
            around.push_str(&format!("    … {from} lines before\n"));
        }
        for (n, line) in self.lines.iter().enumerate().take(to).skip(from) {
            let mark = if n == at { ">" } else { " " };
            let way = if line.from_client { "client" } else { "CLI   " };
            let text = line.json.to_string();
            let mut short: String = text.chars().take(SHOWN).collect();
            if short.len() < text.len() {
                short.push('…');
            }
            around.push_str(&format!("  {mark} {:4} {way} {}  {short}\n", n + 1, line.kind()));
        }
        match self.lines.len() - to.min(self.lines.len()) {
            0 => around.push_str("    the end"),
            more => around.push_str(&format!("    … {more} lines more")),
        }
        Violation { what, around }
    }
}

/// Blank lines are none.
impl From<&Cassette> for Trace {
    fn from(cassette: &Cassette) -> Self {
        let lines = cassette.events.iter().filter_map(Event::said);
        // Of what the CLI writes, empty lines say nothing.
        let lines = lines.filter(|line| {
            let text = line.json.as_str().unwrap_or("?");
            line.from_client || !text.trim().is_empty()
        });
        Self::new(lines)
    }
}

impl From<&Report> for Trace {
    fn from(report: &Report) -> Self {
        Self::new(report.lines.clone())
    }
}

impl From<Report> for Trace {
    fn from(report: Report) -> Self {
        Self::new(report.lines)
    }
}
