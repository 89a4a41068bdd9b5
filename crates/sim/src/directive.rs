//! The directives by which a prompt controls the model's replies: steps of a [script](crate::script), written in the prompt.
//!
//! One directive a line; lines that do not begin with `%` are prose and ignored. A block directive starts a new
//! response of the model, the same with a `+` adds a block to the response before it:
//!
//! | directive | meaning |
//! |---|---|
//! | `%say TEXT` | a text block; TEXT may be a JSON string, for line breaks and outer spaces |
//! | `%think TEXT` | a thinking block |
//! | `%redacted DATA` | a redacted thinking block |
//! | `%tool NAME {JSON}` | a tool call |
//! | `%json [BLOCK, …]` | content blocks, unchanged |
//! | `%big N` | a text block of N characters |
//!
//! The others change the response that follows them:
//!
//! | directive | meaning |
//! |---|---|
//! | `%slow MS chunk=N` | a delta of N characters every MS milliseconds |
//! | `%delay MS` | MS milliseconds before the first byte |
//! | `%hang` | after its content the response never ends |
//! | `%error STATUS n=N msg="…"` | N requests (one by default) fail with this HTTP status first |
//! | `%sse-error TYPE n=N` | N responses break off with an `error` event first; at most 1000 |
//! | `%drop n=N`, `%cut n=N` | N connections are closed before, or in the middle of, the response first; at most 1000 |
//! | `%stop REASON` | the stop reason |
//! | `%usage in=N out=N` | the token counts |
//!
//! The variables of a script (`{{result}}`, `{{cwd}}` and so on) are variables here, too; `{{last}}` is another name of
//! `{{result}}`.

use std::time::Duration;

use outrigger_protocol::repair;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::script::{ApiError, Call, Placed, ResponsePace, Step, Usage, Wait};

/// A line that begins with `%` and is no directive, or has wrong arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("directive `{line}`: {reason}")]
pub struct DirectiveError {
    /// The line.
    pub line: String,
    /// The problem.
    pub reason: String,
}

/// Whether a text holds directives at all.
pub fn present(text: &str) -> bool {
    text.lines().any(|line| line.starts_with('%'))
}

/// Reads all directives of a text: a [`Step::Response`] for each response. A text without any gives none.
///
/// # Errors
///
/// The first line that begins with `%` and cannot be understood.
pub fn parse(text: &str) -> Result<Vec<Step>, DirectiveError> {
    let mut responses: Vec<DirectiveResponse> = Vec::new();
    let mut next = DirectiveResponse::default();
    let mut pending = false;
    for line in text.lines().filter(|line| line.starts_with('%')) {
        let fail = |reason: String| DirectiveError {
            line: line.chars().take(200).collect(),
            reason,
        };
        let (name, rest) = line[1..].split_once(' ').unwrap_or((&line[1..], ""));
        let (name, joined) = match name.strip_prefix('+') {
            Some(name) => (name, true),
            None => (name, false),
        };
        if let Some(blocks) = blocks(name, rest).map_err(fail)? {
            if joined && !pending {
                let last = responses
                    .last_mut()
                    .ok_or_else(|| fail("there is no response before it to add to".into()))?;
                last.blocks.extend(blocks);
            } else {
                next.blocks = blocks;
                responses.push(std::mem::take(&mut next));
                pending = false;
            }
        } else {
            next.modify(name, rest).map_err(fail)?;
            pending = true;
        }
    }
    if pending {
        responses.push(next);
    }
    Ok(responses.into_iter().map(DirectiveResponse::into_step).collect())
}

/// A response that is being read.
#[derive(Default)]
struct DirectiveResponse {
    /// The steps of the content.
    blocks: Vec<Step>,
    /// The steps that say how the response comes.
    manner: Vec<Step>,
    /// What goes wrong before it succeeds, in order, each as often as it does.
    faults: Vec<Step>,
    /// The steps of the response's end: its stop reason, and what keeps it from its end.
    end: Vec<Step>,
}

impl DirectiveResponse {
    /// The steps of all attempts, one behind the other.
    fn into_step(self) -> Step {
        let mut steps = Vec::new();
        for fault in self.faults {
            match &fault {
                Step::ApiError(_) => steps.push(fault),
                Step::Drop => {
                    let waits = self.manner.iter().filter(|step| matches!(step, Step::Wait(_)));
                    steps.extend(waits.cloned());
                    steps.push(fault);
                }
                _ => {
                    steps.extend(self.manner.iter().cloned());
                    steps.extend(half(&self.blocks));
                    steps.push(fault);
                }
            }
        }
        steps.extend(self.manner);
        steps.extend(self.blocks);
        steps.extend(self.end);
        Step::Response(steps.into_iter().map(Placed::from).collect())
    }

    fn modify(&mut self, name: &str, rest: &str) -> Result<(), String> {
        let arguments = Arguments::read(rest)?;
        let mut breaks = |fault: Step| {
            if arguments.times > MOST_FAULTS {
                return Err(format!("`n` is at most {MOST_FAULTS} here"));
            }
            let times = arguments.times as usize;
            self.faults.extend(std::iter::repeat_n(fault, times));
            Ok(())
        };
        match name {
            "slow" => {
                let every = Duration::from_millis(number(&arguments.plain)?);
                let chunk = arguments.chunk.unwrap_or(8).max(1);
                self.manner.push(ResponsePace::new(chunk, every).into());
            }
            "delay" => {
                let time = Duration::from_millis(number(&arguments.plain)?);
                self.manner.retain(|step| !matches!(step, Step::Wait(_)));
                self.manner.insert(0, Wait::Time(time).into());
            }
            "hang" => self.end.push(Step::Stall),
            "stop" => self.end.insert(0, Step::StopReason(arguments.plain)),
            "usage" => {
                let default = Usage::default();
                let input = arguments.input.unwrap_or(default.input);
                let output = arguments.output.unwrap_or(default.output);
                self.manner.push(Usage::new(input, output).into());
            }
            "error" => {
                let mut error = ApiError::new(number(&arguments.plain)?).times(arguments.times);
                error.message = arguments.message;
                if arguments.times > 0 {
                    self.faults.push(error.into());
                }
            }
            "sse-error" => breaks(Step::ErrorEvent(arguments.plain.clone()))?,
            "drop" => breaks(Step::Drop)?,
            "cut" => breaks(Step::Cut)?,
            _ => return Err("no such directive".into()),
        }
        Ok(())
    }
}

/// How often a response may break off: each time is a step.
const MOST_FAULTS: u32 = 1000;

/// The content up to the middle of its first text; none without a text.
fn half(blocks: &[Step]) -> Vec<Step> {
    let first = blocks.iter().position(|block| matches!(block, Step::Say(_)));
    let mut blocks = blocks[..first.map_or(0, |first| first + 1)].to_vec();
    if let Some(Step::Say(text)) = blocks.last_mut() {
        let half = text.chars().count().div_ceil(2);
        *text = text.chars().take(half).collect();
    }
    blocks
}

/// The blocks of a block directive; none if it is not one.
fn blocks(name: &str, rest: &str) -> Result<Option<Vec<Step>>, String> {
    let block = match name {
        "say" => Step::Say(text(rest)?),
        "think" => Step::Think(text(rest)?),
        "redacted" => Step::Redacted(rest.trim().to_owned()),
        "big" => Step::Say("x".repeat(number(rest)?)),
        "tool" => {
            let (tool, input) = rest.trim().split_once(' ').unwrap_or((rest.trim(), "{}"));
            if tool.is_empty() {
                return Err("names no tool".into());
            }
            let input: Map<String, Value> =
                json(input).map_err(|error| format!("input is no JSON object{}", why(&error)))?;
            Call::new(tool, Value::Object(input)).into()
        }
        "json" => {
            let blocks: Vec<Map<String, Value>> =
                json(rest).map_err(|error| format!("not a list of objects{}", why(&error)))?;
            return Ok(Some(blocks.into_iter().map(Step::Block).collect()));
        }
        _ => return Ok(None),
    };
    Ok(Some(vec![block]))
}

/// The arguments of a directive: a plain word and `key=value` pairs.
#[derive(Debug, Default)]
struct Arguments {
    plain: String,
    times: u32,
    chunk: Option<usize>,
    input: Option<u64>,
    output: Option<u64>,
    message: Option<String>,
}

impl Arguments {
    fn read(rest: &str) -> Result<Self, String> {
        let mut arguments = Self {
            times: 1,
            ..Self::default()
        };
        let mut rest = rest.trim();
        while !rest.is_empty() {
            // The message comes last and may hold spaces.
            if let Some(message) = rest.strip_prefix("msg=") {
                arguments.message = Some(text(message)?);
                break;
            }
            let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = behind.trim_start();
            match word.split_once('=') {
                None if arguments.plain.is_empty() => arguments.plain = word.to_owned(),
                Some(("n", value)) => arguments.times = number(value)?,
                Some(("chunk", value)) => arguments.chunk = Some(number(value)?),
                Some(("in", value)) => arguments.input = Some(number(value)?),
                Some(("out", value)) => arguments.output = Some(number(value)?),
                _ => return Err(format!("does not know what to do with `{word}`")),
            }
        }
        Ok(arguments)
    }
}

/// Where JSON is wrong. That it is something else than was wanted is told already, in other words than those of Rust.
fn why(error: &serde_json::Error) -> String {
    if error.is_data() {
        String::new()
    } else {
        format!(": {error}")
    }
}

/// JSON as JavaScript writes it: lone surrogates in it are replaced.
fn json<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(repair::lone_surrogates(text).as_deref().unwrap_or(text))
}

/// A text, plain or as a JSON string.
fn text(rest: &str) -> Result<String, String> {
    let rest = rest.trim();
    if rest.len() > 1 && rest.starts_with('"') && rest.ends_with('"') {
        return json(rest).map_err(|error| format!("not a JSON string: {error}"));
    }
    Ok(rest.to_owned())
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let text = text.trim();
    text.parse()
        .map_err(|_| format!("`{text}` is not a number that fits here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn response(steps: impl IntoIterator<Item = Step>) -> Step {
        Step::Response(steps.into_iter().map(Placed::from).collect())
    }

    #[test]
    fn responses_blocks_and_modifiers() {
        let text = "please\n%slow 100 chunk=4\n%say a b \n%+tool Bash {\"command\":\"ls\"}\n%usage in=7\n%stop refusal\n%think \"x\\ny\"";
        let expected = vec![
            response([
                ResponsePace::new(4, Duration::from_millis(100)).into(),
                Step::Say("a b".into()),
                Call::new("Bash", json!({"command": "ls"})).into(),
            ]),
            response([
                Usage::new(7, 5).into(),
                Step::Think("x\ny".into()),
                Step::StopReason("refusal".into()),
            ]),
        ];
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse("nothing of the kind"), Ok(Vec::new()));
    }

    #[test]
    fn faults_may_stand_alone() {
        let failure = ApiError::new(400).times(99).message("bad request");
        let expected = response([failure.into(), Step::Cut]);
        assert_eq!(
            parse("%error 400 n=99 msg=\"bad request\"\n%cut"),
            Ok(vec![expected])
        );
    }

    #[test]
    fn each_attempt_that_breaks_off_comes_as_the_response_does() {
        let wait = || Step::from(Wait::Time(Duration::from_millis(5)));
        let expected = response([
            wait(),
            Step::Drop,
            wait(),
            Step::Say("hal".into()),
            Step::Cut,
            wait(),
            Step::Say("halves".into()),
            Step::Stall,
        ]);
        assert_eq!(
            parse("%drop\n%delay 5\n%hang\n%cut\n%say halves"),
            Ok(vec![expected])
        );
    }

    #[test]
    fn what_cannot_be_understood_is_an_error() {
        for line in [
            "%sya hi",
            "%tool",
            "%tool X {",
            "%tool X 5",
            "%slow fast",
            "%+say x",
            "%error 400 what=1",
            "%json {}",
            "%json [1]",
            "%cut n=1001",
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.line, line);
            assert!(!error.to_string().contains("invalid type"), "{error}");
        }
    }
}
