//! What to show of what came of a tool call, without saying again what its input said already.

use std::path::{Path, PathBuf};

use outrigger::protocol::RawJson;
use outrigger::protocol::shared::{ContentBlock, ImageSource, MessageContent, TextOr};
use outrigger::protocol::tools::{
    AgentOutput, BashOutput, PatchHunk, ToolOutput, WebSearchResult, canonical_name,
};

use super::input::at;
use super::markdown::{fenced, unwrapped, without_last_number, without_reminders};
use super::{Role, WorkDir, role};
use crate::event::{CallContent, Content, Diff, Location};

/// What came of a call, as a person sees it. What is `None` stays as the call's input had it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Shown {
    /// What to show from now on.
    pub(crate) content: Option<Vec<CallContent>>,
    /// Which files it touched.
    pub(crate) locations: Option<Vec<Location>>,
    /// What its terminal shows.
    pub(crate) printed: Option<Printed>,
    /// What it gave to programs.
    pub(crate) output: Option<RawJson>,
    /// It goes on.
    pub(crate) background: Option<Background>,
}

/// What a command printed, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Printed {
    /// Both streams.
    pub(crate) text: String,
    /// The exit code, where it is known.
    pub(crate) code: Option<i32>,
}

/// A call whose result is only that it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Background {
    /// The CLI's id of the task.
    pub(crate) task: String,
    /// The file that a command's output goes to.
    pub(crate) file: Option<PathBuf>,
}

/// Looks at a result: the text that the model sees, and the tool's own structure if the CLI gave it.
pub(crate) fn result(
    tool: &str,
    content: Option<&MessageContent>,
    output: Option<&RawJson>,
    is_error: bool,
    dir: &WorkDir,
) -> Shown {
    let said = blocks(content);
    let text = text_of(&said);
    if role(tool) == Role::Shell {
        return shell(&text, said, output, is_error);
    }
    if is_error {
        return Shown {
            content: Some(vec![plain(fenced("", failure(&text)))]),
            ..Shown::default()
        };
    }
    let typed = output.map(|output| ToolOutput::read(tool, output));
    match typed {
        Some(ToolOutput::Edit(edit)) => patched(&dir.absolute(&edit.file_path), &edit.structured_patch),
        Some(ToolOutput::Write(write)) => patched(&dir.absolute(&write.file_path), &write.structured_patch),
        Some(ToolOutput::NotebookEdit(edit)) => {
            let path = dir.absolute(&edit.notebook_path);
            let new = if edit.edit_mode == "delete" {
                String::new()
            } else {
                edit.new_source
            };
            let old = edit.old_source.filter(|_| edit.edit_mode != "insert");
            let diff = Diff {
                path,
                old,
                new,
                line: None,
            };
            Shown {
                content: Some(vec![CallContent::Diff(diff)]),
                ..Shown::default()
            }
        }
        Some(ToolOutput::Agent(agent)) => of_agent(*agent, said),
        Some(ToolOutput::Monitor(monitor)) => Shown {
            background: Some(Background {
                task: monitor.task_id,
                file: None,
            }),
            ..Shown::default()
        },
        Some(ToolOutput::WebSearch(search)) => {
            let lines = search.results.iter().flat_map(search_lines);
            let lines: Vec<_> = lines.collect();
            Shown {
                content: Some(if lines.is_empty() {
                    said
                } else {
                    vec![plain(lines.join("\n"))]
                }),
                ..Shown::default()
            }
        }
        Some(ToolOutput::AskUserQuestion(asked)) => {
            let answers = asked.answers.iter();
            let lines: Vec<_> = answers
                .map(|(question, answer)| format!("{question} {answer}"))
                .collect();
            Shown {
                content: Some(if lines.is_empty() {
                    said
                } else {
                    vec![plain(lines.join("\n\n"))]
                }),
                ..Shown::default()
            }
        }
        Some(ToolOutput::Mcp(mcp)) => Shown {
            // Servers often say the same as text.
            output: mcp
                .structured_content()
                .filter(|structured| !says_the_same(structured, &text)),
            content: Some(said),
            ..Shown::default()
        },
        // A tool that this build does not know the output of may go on all the same.
        _ if canonical_name(tool) == "Agent" && is_internal(&text) => Shown {
            background: agent_in(&text),
            ..Shown::default()
        },
        _ => match canonical_name(tool) {
            // The plan, and the changes, stay.
            "ExitPlanMode" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => Shown::default(),
            "Read" | "NotebookRead" => Shown {
                content: Some(said.into_iter().map(numbered).collect()),
                ..Shown::default()
            },
            "Glob" | "Grep" | "LS" | "TaskOutput" | "BashOutput" => Shown {
                content: Some(said.into_iter().map(verbatim).collect()),
                ..Shown::default()
            },
            _ => Shown {
                content: Some(said),
                ..Shown::default()
            },
        },
    }
}

/// Whether the text is the same JSON value.
fn says_the_same(structured: &RawJson, text: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    value(text).is_some_and(|said| value(structured.get()) == Some(said))
}

/// The blocks that a person can see.
pub(crate) fn blocks(content: Option<&MessageContent>) -> Vec<CallContent> {
    let shown = |text: &str| Some(unwrapped(without_reminders(text))).filter(|text| !text.trim().is_empty());
    match content {
        None => Vec::new(),
        Some(TextOr::Text(text)) => shown(text).map(plain).into_iter().collect(),
        Some(TextOr::Blocks(blocks)) => blocks
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(block) => shown(&block.text).map(plain),
                ContentBlock::Image(image) => match &image.source {
                    ImageSource::Base64(bytes) => Some(CallContent::Content(Content::Image {
                        media_type: bytes.media_type.clone(),
                        data: bytes.data.clone(),
                    })),
                    ImageSource::Url(source) => Some(link(&source.url, &source.url)),
                    _ => None,
                },
                ContentBlock::ToolReference(tool) => Some(plain(tool.tool_name.clone())),
                ContentBlock::SearchResult(hit) => Some(link(&hit.source, &hit.title)),
                _ => None,
            })
            .collect(),
    }
}

fn plain(text: impl Into<String>) -> CallContent {
    CallContent::Content(Content::Text(text.into()))
}

fn link(uri: &str, name: &str) -> CallContent {
    CallContent::Content(Content::Link {
        uri: uri.to_owned(),
        name: name.to_owned(),
    })
}

/// Text that is no Markdown of somebody's, such as a file.
fn verbatim(content: CallContent) -> CallContent {
    match content {
        CallContent::Content(Content::Text(text)) => plain(fenced("", &text)),
        other => other,
    }
}

/// A file, as the model gets it.
fn numbered(content: CallContent) -> CallContent {
    match content {
        CallContent::Content(Content::Text(text)) => plain(fenced("", without_last_number(&text))),
        other => other,
    }
}

fn text_of(blocks: &[CallContent]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        CallContent::Content(Content::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The text of a failure, without the tags that the model gets it in.
fn failure(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("<tool_use_error>");
    inner
        .and_then(|inner| inner.strip_suffix("</tool_use_error>"))
        .unwrap_or(text)
}

/// What the model is told of a call that the user refused.
pub(crate) const REFUSED: &str = "User refused permission to run tool";

/// Whether a result says only that the user refused the call, in the agent's words or in the CLI's own.
pub(crate) fn is_refusal(content: Option<&MessageContent>) -> bool {
    let text = text_of(&blocks(content));
    let text = failure(&text);
    text == REFUSED || text.starts_with("The user doesn't want to proceed with this tool use.")
}

/// What the model is told of a command that printed nothing.
const NOTHING: &str = "(Bash completed with no output)";

/// `Bash` and its like.
fn shell(text: &str, said: Vec<CallContent>, output: Option<&RawJson>, is_error: bool) -> Shown {
    // A tool that failed has a text in place of its structure.
    let typed = output.and_then(|output| output.decode::<BashOutput>().ok());
    if let Some(task) = typed.as_ref().and_then(|typed| typed.background_task_id.clone()) {
        let file = file_in(text, &task);
        return Shown {
            background: Some(Background { task, file }),
            ..Shown::default()
        };
    }
    let has_image = said
        .iter()
        .any(|block| matches!(block, CallContent::Content(Content::Image { .. })));
    if has_image {
        return Shown {
            content: Some(said),
            printed: Some(Printed {
                text: String::new(),
                code: Some(0),
            }),
            ..Shown::default()
        };
    }
    let printed = match typed {
        Some(typed) => {
            let mut printed = both(&typed.stdout, &typed.stderr);
            if let Some(file) = &typed.persisted_output_path {
                let size = typed.persisted_output_size.unwrap_or_default();
                printed = both(
                    &printed,
                    &format!("… all of the output, {size} bytes, is in {file}"),
                );
            }
            // An odd exit code that the CLI explains is no failure, and not told.
            let is_plain = !is_error && !typed.interrupted && typed.return_code_interpretation.is_none();
            Printed {
                text: printed,
                code: is_plain.then_some(0),
            }
        }
        None => match exit_code(text) {
            Some((code, rest)) => Printed {
                text: rest.to_owned(),
                code: Some(code),
            },
            None => Printed {
                text: Some(failure(text))
                    .filter(|text| *text != NOTHING)
                    .unwrap_or_default()
                    .to_owned(),
                code: (!is_error).then_some(0),
            },
        },
    };
    Shown {
        printed: Some(printed),
        ..Shown::default()
    }
}

fn both(first: &str, second: &str) -> String {
    match (first.is_empty(), second.is_empty()) {
        (_, true) => first.to_owned(),
        (true, _) => second.to_owned(),
        _ => format!("{}\n{second}", first.trim_end_matches('\n')),
    }
}

/// `Exit code 7`, and what follows on the next lines.
fn exit_code(text: &str) -> Option<(i32, &str)> {
    let rest = failure(text).strip_prefix("Exit code ")?;
    let (code, rest) = rest.split_once('\n').unwrap_or((rest, ""));
    Some((code.trim().parse().ok()?, rest))
}

/// The file that a command in the background writes to, out of the sentence that names it.
fn file_in(text: &str, task: &str) -> Option<PathBuf> {
    let name = format!("{task}.output");
    let (_, rest) = text.split_once("Output is being written to: ")?;
    let end = rest.find(&name)? + name.len();
    let path = PathBuf::from(&rest[..end]);
    // Nothing but the task's own file: what a command printed must not make us read another.
    let is_own = path.is_absolute() && path.file_name().is_some_and(|file| file == name.as_str());
    is_own.then_some(path)
}

/// The changes of a file, hunk by hunk. A file that is new has none, and its call shows it already.
fn patched(path: &Path, hunks: &[PatchHunk]) -> Shown {
    if hunks.is_empty() {
        return Shown::default();
    }
    let diffs = hunks.iter().map(|hunk| {
        let side = |drop: char| {
            let lines = hunk.lines.iter().filter(|line| !line.starts_with([drop, '\\']));
            let mut text = String::new();
            for line in lines {
                text.push_str(line.get(1..).unwrap_or_default());
                text.push('\n');
            }
            text
        };
        CallContent::Diff(Diff {
            path: path.to_owned(),
            old: Some(side('+')),
            new: side('-'),
            line: at(path, hunk.new_start).line,
        })
    });
    Shown {
        content: Some(diffs.collect()),
        locations: Some(hunks.iter().map(|hunk| at(path, changed(hunk))).collect()),
        ..Shown::default()
    }
}

/// The first line that a hunk changes.
fn changed(hunk: &PatchHunk) -> u64 {
    let before = hunk.lines.iter().take_while(|line| line.starts_with(' ')).count();
    hunk.new_start.saturating_add(before as u64)
}

fn of_agent(agent: AgentOutput, said: Vec<CallContent>) -> Shown {
    match agent {
        AgentOutput::Completed(done) => {
            // Around the answer stand notes of the CLI to the model.
            let count = |count: Option<u64>| usize::try_from(count.unwrap_or_default()).unwrap_or_default();
            let notes = count(done.harness_note_count);
            let end = done.content.len().saturating_sub(count(done.harness_tail_count));
            let answer = done.content.into_iter().take(end).skip(notes);
            Shown {
                content: Some(answer.map(|text| plain(text.text)).collect()),
                ..Shown::default()
            }
        }
        AgentOutput::AsyncLaunched(launched) => Shown {
            // Its file is the agent's transcript, and no output that somebody could follow.
            background: Some(Background {
                task: launched.agent_id,
                file: None,
            }),
            ..Shown::default()
        },
        AgentOutput::RemoteLaunched(launched) => Shown {
            content: Some(vec![link(&launched.session_url, "The agent's session")]),
            background: Some(Background {
                task: launched.task_id,
                file: None,
            }),
            ..Shown::default()
        },
        _ => match is_internal(&text_of(&said)) {
            true => Shown {
                background: agent_in(&text_of(&said)),
                ..Shown::default()
            },
            false => Shown {
                content: Some(said),
                ..Shown::default()
            },
        },
    }
}

/// What the CLI tells the model about an agent in the background, and asks it to tell nobody.
fn is_internal(text: &str) -> bool {
    text.contains("This tool result is internal metadata")
}

fn agent_in(text: &str) -> Option<Background> {
    let (_, rest) = text.split_once("agentId: ")?;
    let task = rest.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    Some(Background {
        task: task.to_owned(),
        file: None,
    })
}

fn search_lines(result: &WebSearchResult) -> Vec<String> {
    match result {
        WebSearchResult::Hits(hits) => {
            let lines = hits.content.iter();
            lines
                .map(|hit| format!("- [{}]({})", hit.title, hit.url))
                .collect()
        }
        WebSearchResult::Text(text) => vec![text.clone()],
        _ => Vec::new(),
    }
}

/// The exit code in what the CLI says of a command's end: `… completed (exit code 0)`.
pub(crate) fn code_in(summary: &str) -> Option<i32> {
    let (_, rest) = summary.rsplit_once("exit code ")?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '-')
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests;
