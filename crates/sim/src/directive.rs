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
//! | `%sse-error TYPE n=N` | N responses break off with an `error` event first |
//! | `%drop n=N`, `%cut n=N` | N connections are closed before, or in the middle of, the response first |
//! | `%stop REASON` | the stop reason |
//! | `%usage in=N out=N` | the token counts |

use std::time::Duration;

use serde_json::Value;

/// One response of the model.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Response {
    /// Its content, in order. May be empty.
    pub blocks: Vec<Block>,
    /// How long to wait before the first byte.
    pub delay: Duration,
    /// How fast it comes; all at once unless given.
    pub pace: Option<Pace>,
    /// Its faults before it succeeds, in order.
    pub faults: Vec<Fault>,
    /// Whether it stays open for ever once its content is out.
    pub hang: bool,
    /// Its stop reason; `tool_use` or `end_turn`, as the blocks demand, unless given.
    pub stop_reason: Option<String>,
    /// Its token counts; 10 in and 5 out unless given.
    pub usage: Usage,
}

/// One content block of a response.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Block {
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// Thinking that cannot be read.
    Redacted(String),
    /// A tool call.
    ToolUse {
        /// The tool's name.
        name: String,
        /// Its input.
        input: Value,
    },
    /// A block word for word.
    Raw(Value),
}

/// How fast a response comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Time between two deltas.
    pub every: Duration,
    /// Characters in a delta.
    pub chunk: usize,
}

/// Token counts of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 10, output: 5 }
    }
}

/// Something that goes wrong before a response succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// How often it does, one after the other.
    pub times: u32,
}

/// What can go wrong with a request to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// An HTTP error.
    Status {
        /// The HTTP status.
        status: u16,
        /// The error's message, if one was given.
        message: Option<String>,
    },
    /// An `error` event of this type in the stream.
    SseError(String),
    /// The connection is closed before a byte was sent.
    Drop,
    /// The connection is closed in the middle of the response.
    Cut,
}

/// A line that begins with `%` and is no directive, or has wrong arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("directive `{line}`: {reason}")]
pub struct DirectiveError {
    /// The line.
    pub line: String,
    /// The problem.
    pub reason: String,
}

impl Response {
    /// A response of one text block.
    pub fn say(text: impl Into<String>) -> Self {
        Self::default().and(Block::Text(text.into()))
    }

    /// A response of one tool call.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::default().and(Block::ToolUse {
            name: name.into(),
            input,
        })
    }

    /// A response of one thinking block; add what follows with [`and`](Self::and).
    pub fn think(text: impl Into<String>) -> Self {
        Self::default().and(Block::Thinking(text.into()))
    }

    /// A response that fails with this HTTP status however often it is requested.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        Self {
            faults: vec![Fault {
                kind: FaultKind::Status {
                    status,
                    message: Some(message.into()),
                },
                times: u32::MAX,
            }],
            ..Self::default()
        }
    }

    /// A response that never begins.
    pub fn stall() -> Self {
        Self {
            hang: true,
            ..Self::default()
        }
    }

    /// Adds a block.
    #[must_use]
    pub fn and(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Lets it come slowly: `chunk` characters every `every`.
    #[must_use]
    pub fn slowly(mut self, every: Duration, chunk: usize) -> Self {
        self.pace = Some(Pace {
            every,
            chunk: chunk.max(1),
        });
        self
    }

    /// Its stop reason: the given one, or the one that its blocks demand.
    pub fn stop_reason(&self) -> &str {
        match &self.stop_reason {
            Some(reason) => reason,
            None if self.blocks.iter().any(Block::is_tool_use) => "tool_use",
            None => "end_turn",
        }
    }
}

impl Block {
    fn is_tool_use(&self) -> bool {
        match self {
            Self::ToolUse { .. } => true,
            Self::Raw(value) => value["type"] == "tool_use",
            _ => false,
        }
    }
}

/// Whether a text holds directives at all.
pub fn present(text: &str) -> bool {
    text.lines().any(|line| line.starts_with('%'))
}

/// Reads all directives of a text. A text without any gives no responses.
///
/// # Errors
///
/// The first line that begins with `%` and cannot be understood.
pub fn parse(text: &str) -> Result<Vec<Response>, DirectiveError> {
    let mut responses: Vec<Response> = Vec::new();
    let mut next = Response::default();
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
            modify(&mut next, name, rest).map_err(fail)?;
            pending = true;
        }
    }
    if pending {
        responses.push(next);
    }
    Ok(responses)
}

/// The blocks of a block directive; none if it is not one.
fn blocks(name: &str, rest: &str) -> Result<Option<Vec<Block>>, String> {
    let block = match name {
        "say" => Block::Text(text(rest)?),
        "think" => Block::Thinking(text(rest)?),
        "redacted" => Block::Redacted(rest.trim().to_owned()),
        "big" => Block::Text("x".repeat(number(rest)?)),
        "tool" => {
            let (tool, input) = rest.trim().split_once(' ').unwrap_or((rest.trim(), "{}"));
            if tool.is_empty() {
                return Err("names no tool".into());
            }
            Block::ToolUse {
                name: tool.to_owned(),
                input: serde_json::from_str(input).map_err(|error| format!("input is not JSON: {error}"))?,
            }
        }
        "json" => {
            let blocks: Vec<Value> =
                serde_json::from_str(rest).map_err(|error| format!("not a list: {error}"))?;
            return Ok(Some(blocks.into_iter().map(Block::Raw).collect()));
        }
        _ => return Ok(None),
    };
    Ok(Some(vec![block]))
}

fn modify(next: &mut Response, name: &str, rest: &str) -> Result<(), String> {
    let arguments = Arguments::read(rest)?;
    let fault = |kind| Fault {
        kind,
        times: arguments.times,
    };
    match name {
        "slow" => {
            next.pace = Some(Pace {
                every: Duration::from_millis(number(&arguments.plain)?),
                chunk: arguments.chunk.unwrap_or(8).max(1),
            });
        }
        "delay" => next.delay = Duration::from_millis(number(&arguments.plain)?),
        "hang" => next.hang = true,
        "stop" => next.stop_reason = Some(arguments.plain.clone()),
        "usage" => {
            let default = Usage::default();
            next.usage = Usage {
                input: arguments.input.unwrap_or(default.input),
                output: arguments.output.unwrap_or(default.output),
            };
        }
        "error" => next.faults.push(fault(FaultKind::Status {
            status: number(&arguments.plain)?,
            message: arguments.message.clone(),
        })),
        "sse-error" => next
            .faults
            .push(fault(FaultKind::SseError(arguments.plain.clone()))),
        "drop" => next.faults.push(fault(FaultKind::Drop)),
        "cut" => next.faults.push(fault(FaultKind::Cut)),
        _ => return Err("no such directive".into()),
    }
    Ok(())
}

/// The arguments of a directive: a plain word and `key=value` pairs.
#[derive(Debug)]
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
            plain: String::new(),
            times: 1,
            chunk: None,
            input: None,
            output: None,
            message: None,
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

/// A text, plain or as a JSON string.
fn text(rest: &str) -> Result<String, String> {
    let rest = rest.trim();
    if rest.len() > 1 && rest.starts_with('"') && rest.ends_with('"') {
        return serde_json::from_str(rest).map_err(|error| format!("not a JSON string: {error}"));
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

    #[test]
    fn responses_blocks_and_modifiers() {
        let text = "please\n%slow 100 chunk=4\n%say a b \n%+tool Bash {\"command\":\"ls\"}\n%usage in=7\n%stop refusal\n%think \"x\\ny\"";
        let expected = vec![
            Response::say("a b")
                .and(Block::ToolUse {
                    name: "Bash".into(),
                    input: json!({"command": "ls"}),
                })
                .slowly(Duration::from_millis(100), 4),
            Response {
                usage: Usage { input: 7, output: 5 },
                stop_reason: Some("refusal".into()),
                ..Response::think("x\ny")
            },
        ];
        assert_eq!(parse(text), Ok(expected));
        assert_eq!(parse("nothing of the kind"), Ok(Vec::new()));
    }

    #[test]
    fn faults_may_stand_alone() {
        let responses = parse("%error 400 n=99 msg=\"bad request\"\n%cut").unwrap();
        assert_eq!(responses.len(), 1);
        assert_eq!(
            responses[0].faults,
            [
                Fault {
                    kind: FaultKind::Status {
                        status: 400,
                        message: Some("bad request".into())
                    },
                    times: 99
                },
                Fault {
                    kind: FaultKind::Cut,
                    times: 1
                }
            ]
        );
    }

    #[test]
    fn what_cannot_be_understood_is_an_error() {
        for line in [
            "%sya hi",
            "%tool",
            "%tool X {",
            "%slow fast",
            "%+say x",
            "%error 400 what=1",
            "%json {}",
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.line, line);
        }
    }
}
