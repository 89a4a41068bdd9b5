//! Where two runs of a program part, for people.

use std::fmt::Write as _;

use serde_json::Value;

use super::compare::{Difference, DifferenceKind, DifferenceSide, Spoken, beside, compare};
use super::differences::Listed;
use super::kinds::{Kinds, placeless};
use crate::peer::Report;

/// What a program and its CLIs said to each other, process after process.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Conversation {
    /// The frames that the CLIs wrote.
    pub cli: Spoken,
    /// The frames that the program wrote.
    pub client: Spoken,
}

impl Conversation {
    /// The frames of these processes, with names in place of texts that are others in each run. A process that exchanged no frame,
    /// such as one that was asked for its version, does not count.
    pub fn new(processes: &[Report], places: &[(&str, &str)]) -> Self {
        let mut conversation = Self::default();
        let spoke = |report: &&Report| report.lines.iter().any(|line| line.json.is_object());
        for (number, report) in processes.iter().filter(spoke).enumerate() {
            if number > 0 {
                for spoken in [&mut conversation.cli, &mut conversation.client] {
                    spoken.frames.push(("(next process)".to_owned(), Value::Null));
                }
            }
            let mut kinds = Kinds::default();
            for line in &report.lines {
                let (kind, spoken) = if line.from_client {
                    (kinds.of_client(&line.json), &mut conversation.client)
                } else {
                    (kinds.of_cli(&line.json), &mut conversation.cli)
                };
                spoken.frames.push((kind, placeless(&line.json, places)));
            }
        }
        conversation
    }
}

/// Where a program went another way with the simulated CLI than with the real one.
#[derive(Debug, Clone)]
pub struct Comparison {
    sides: Vec<Side>,
    listed: Listed,
}

#[derive(Debug, Clone)]
struct Side {
    whose: &'static str,
    kinds: Vec<(String, Option<DifferenceSide>)>,
    differences: Vec<Difference>,
}

impl Comparison {
    /// Compares the same program with both.
    ///
    /// # Errors
    /// When the list of known differences is not well-formed.
    pub fn new(real: &Conversation, simulated: &Conversation) -> Result<Self, toml::de::Error> {
        let side = |whose, real: &Spoken, simulated: &Spoken| Side {
            whose,
            kinds: beside(real, simulated),
            differences: compare(whose, real, simulated),
        };
        Ok(Self {
            sides: vec![
                side("CLI", &real.cli, &simulated.cli),
                side("program", &real.client, &simulated.client),
            ],
            listed: Listed::read()?,
        })
    }

    /// The differences that are not known to occur whatever is played.
    pub fn unknown(&self) -> impl Iterator<Item = &Difference> {
        self.all()
            .filter(|difference| self.listed.reason(difference).is_none())
    }

    /// Whether all differences, if there are any, are known.
    pub fn is_equal(&self) -> bool {
        self.unknown().next().is_none()
    }

    fn all(&self) -> impl Iterator<Item = &Difference> {
        self.sides.iter().flat_map(|side| &side.differences)
    }

    /// The differences as lines of text; nothing if there are none.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for side in &self.sides {
            self.show(side, &mut text);
        }
        text
    }

    fn show(&self, side: &Side, text: &mut String) {
        // Writing to a string does not fail.
        if side.kinds.iter().any(|(_, who)| who.is_some()) {
            let _ = writeln!(
                text,
                "The frames of the {}, in order (-: only with the real CLI, +: only with the simulated one):",
                side.whose
            );
            let mut left_out = false;
            for (n, (kind, who)) in side.kinds.iter().enumerate() {
                let around = n.saturating_sub(2)..(n + 3).min(side.kinds.len());
                let near = side.kinds.get(around).unwrap_or_default();
                if near.iter().all(|(_, who)| who.is_none()) {
                    if !left_out {
                        let _ = writeln!(text, "    …");
                    }
                    left_out = true;
                    continue;
                }
                left_out = false;
                let sign = match who {
                    None => ' ',
                    Some(DifferenceSide::Real) => '-',
                    Some(DifferenceSide::Simulator) => '+',
                };
                let _ = writeln!(text, "  {sign} {kind}");
            }
        }
        if !side.differences.is_empty() {
            let _ = writeln!(text, "Differences in what the {} wrote:", side.whose);
        }
        for difference in &side.differences {
            let with = match difference.who {
                DifferenceSide::Real => "the real CLI",
                DifferenceSide::Simulator => "the simulated CLI",
            };
            let what = match &difference.what {
                DifferenceKind::Frame(kind) => kind.clone(),
                DifferenceKind::Field { kind, field } => format!("in {kind}: {field}"),
            };
            let _ = writeln!(text, "  only with {with}: {what}");
            if let Some(reason) = self.listed.reason(difference) {
                let _ = writeln!(text, "    known: {reason}");
            } else if let Some((scenario, reason)) = self.listed.elsewhere(difference) {
                let _ = writeln!(text, "    known in the scenario {scenario}: {reason}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::peer::Line;

    fn report(lines: &[(bool, Value)]) -> Report {
        let lines = lines
            .iter()
            .map(|(client, json)| Line::new(*client, json.clone()));
        Report::new(lines, None)
    }

    #[test]
    fn a_program_that_answers_otherwise_is_seen() {
        let asked =
            json!({"type": "control_request", "request_id": "a", "request": {"subtype": "can_use_tool"}});
        let answer = |behavior: &str| {
            let payload = json!({"behavior": behavior});
            let response = json!({"subtype": "success", "request_id": "a", "response": payload});
            json!({"type": "control_response", "response": response})
        };
        let run = |behavior: &str, root: &str| {
            let init = json!({"type": "system", "subtype": "init", "cwd": root});
            let lines = [
                (true, json!({"type": "user"})),
                (false, init),
                (false, asked.clone()),
                (true, answer(behavior)),
            ];
            Conversation::new(&[report(&lines), report(&[])], &[(root, "{root}")])
        };
        let same = Comparison::new(&run("allow", "/a"), &run("allow", "/b")).unwrap();
        assert_eq!((same.is_equal(), same.text()), (true, String::new()));
        let other = Comparison::new(&run("allow", "/a"), &run("deny", "/b")).unwrap();
        assert!(!other.is_equal());
        let shown = other.text();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[1..4],
            [
                "    user",
                "  - control_response/can_use_tool/success/allow",
                "  + control_response/can_use_tool/success/deny"
            ],
            "{shown}"
        );
    }

    #[test]
    fn what_is_known_everywhere_is_no_difference() {
        let listed = Listed::read().unwrap();
        let difference = |who, field: &str| Difference {
            scenario: "any".to_owned(),
            what: DifferenceKind::Field {
                kind: "control_response/get_context_usage/success".to_owned(),
                field: field.to_owned(),
            },
            who,
        };
        let grid = "response.response.gridRows: []";
        assert!(
            listed
                .reason(&difference(DifferenceSide::Simulator, grid))
                .is_some()
        );
        assert_eq!(listed.reason(&difference(DifferenceSide::Real, grid)), None);
        assert_eq!(
            listed.reason(&difference(DifferenceSide::Simulator, "response.x: []")),
            None
        );
    }
}
