//! The view of a tool call's result, without what the view of the input shows.

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

/// A result for the user. `None` means that the view of the input stays.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ToolResultView {
    /// The new content.
    pub(crate) content: Option<Vec<CallContent>>,
    pub(crate) locations: Option<Vec<Location>>,
    /// The output of the call's terminal.
    pub(crate) printed: Option<Printed>,
    /// The output for programs.
    pub(crate) output: Option<RawJson>,
    /// The call continues in the background.
    pub(crate) background: Option<Background>,
}

/// The output of a command, and its exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Printed {
    /// stdout and stderr.
    pub(crate) text: String,
    pub(crate) code: Option<i32>,
}

/// A call that continues in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Background {
    pub(crate) task: String,
    /// The output file of a command.
    pub(crate) file: Option<PathBuf>,
}

/// The view of a result: from the text for the model, and the structured output if there is one.
pub(crate) fn result(
    tool: &str,
    content: Option<&MessageContent>,
    output: Option<&RawJson>,
    is_error: bool,
    dir: &WorkDir,
) -> ToolResultView {
    let said = blocks(content);
    let text = text_of(&said);
    if role(tool) == Role::Shell {
        return shell(&text, said, output, is_error);
    }
    if is_error {
        return ToolResultView {
            content: Some(vec![plain(fenced("", failure(&text)))]),
            ..ToolResultView::default()
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
            ToolResultView {
                content: Some(vec![CallContent::Diff(diff)]),
                ..ToolResultView::default()
            }
        }
        Some(ToolOutput::Agent(agent)) => of_agent(*agent, said),
        Some(ToolOutput::Monitor(monitor)) => ToolResultView {
            background: Some(Background {
                task: monitor.task_id,
                file: None,
            }),
            ..ToolResultView::default()
        },
        Some(ToolOutput::WebSearch(search)) => {
            let lines = search.results.iter().flat_map(search_lines);
            let lines: Vec<_> = lines.collect();
            ToolResultView {
                content: Some(if lines.is_empty() {
                    said
                } else {
                    vec![plain(lines.join("\n"))]
                }),
                ..ToolResultView::default()
            }
        }
        Some(ToolOutput::AskUserQuestion(asked)) => {
            let answers = asked.answers.iter();
            let lines: Vec<_> = answers
                .map(|(question, answer)| format!("{question} {answer}"))
                .collect();
            ToolResultView {
                content: Some(if lines.is_empty() {
                    said
                } else {
                    vec![plain(lines.join("\n\n"))]
                }),
                ..ToolResultView::default()
            }
        }
        Some(ToolOutput::Mcp(mcp)) => ToolResultView {
            // Servers often repeat the structure as text.
            output: mcp
                .structured_content()
                .filter(|structured| !says_the_same(structured, &text)),
            content: Some(said),
            ..ToolResultView::default()
        },
        // A tool with unknown output may continue in the background, too.
        _ if canonical_name(tool) == "Agent" && is_internal(&text) => ToolResultView {
            background: agent_in(&text),
            ..ToolResultView::default()
        },
        _ => match canonical_name(tool) {
            // The view of the input stays.
            "ExitPlanMode" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => ToolResultView::default(),
            "Read" | "NotebookRead" => ToolResultView {
                content: Some(said.into_iter().map(numbered).collect()),
                ..ToolResultView::default()
            },
            "Glob" | "Grep" | "LS" | "TaskOutput" | "BashOutput" => ToolResultView {
                content: Some(said.into_iter().map(verbatim).collect()),
                ..ToolResultView::default()
            },
            _ => ToolResultView {
                content: Some(said),
                ..ToolResultView::default()
            },
        },
    }
}

/// Whether the text is the same JSON value.
fn says_the_same(structured: &RawJson, text: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    value(text).is_some_and(|said| value(structured.get()) == Some(said))
}

/// The blocks with a view.
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

/// Text that is not Markdown, such as a file.
fn verbatim(content: CallContent) -> CallContent {
    match content {
        CallContent::Content(Content::Text(text)) => plain(fenced("", &text)),
        other => other,
    }
}

/// The text of a file, in the model's form.
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

/// The text of an error, without the tags for the model.
fn failure(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("<tool_use_error>");
    inner
        .and_then(|inner| inner.strip_suffix("</tool_use_error>"))
        .unwrap_or(text)
}

/// The agent's text for the model about a rejected call.
pub(crate) const REFUSED: &str = "User refused permission to run tool";

/// Whether a result only reports that the user rejected the call, in the agent's or the CLI's text.
pub(crate) fn is_refusal(content: Option<&MessageContent>) -> bool {
    let text = text_of(&blocks(content));
    let text = failure(&text);
    text == REFUSED || text.starts_with("The user doesn't want to proceed with this tool use.")
}

/// The CLI's text for the model about a command without output.
const NOTHING: &str = "(Bash completed with no output)";

/// `Bash` and similar tools.
fn shell(text: &str, said: Vec<CallContent>, output: Option<&RawJson>, is_error: bool) -> ToolResultView {
    // A failed tool has a text instead of a structure.
    let typed = output.and_then(|output| output.decode::<BashOutput>().ok());
    if let Some(task) = typed.as_ref().and_then(|typed| typed.background_task_id.clone()) {
        let file = file_in(text, &task);
        return ToolResultView {
            background: Some(Background { task, file }),
            ..ToolResultView::default()
        };
    }
    let has_image = said
        .iter()
        .any(|block| matches!(block, CallContent::Content(Content::Image { .. })));
    if has_image {
        return ToolResultView {
            content: Some(said),
            printed: Some(Printed {
                text: String::new(),
                code: Some(0),
            }),
            ..ToolResultView::default()
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
            // The CLI explains an exit code that is no failure, without the number.
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
    ToolResultView {
        printed: Some(printed),
        ..ToolResultView::default()
    }
}

fn both(first: &str, second: &str) -> String {
    match (first.is_empty(), second.is_empty()) {
        (_, true) => first.to_owned(),
        (true, _) => second.to_owned(),
        _ => format!("{}\n{second}", first.trim_end_matches('\n')),
    }
}

/// Splits `Exit code 7` from the lines behind it.
fn exit_code(text: &str) -> Option<(i32, &str)> {
    let rest = failure(text).strip_prefix("Exit code ")?;
    let (code, rest) = rest.split_once('\n').unwrap_or((rest, ""));
    Some((code.trim().parse().ok()?, rest))
}

/// The output file of a background command, from the sentence that names it.
fn file_in(text: &str, task: &str) -> Option<PathBuf> {
    let name = format!("{task}.output");
    let (_, rest) = text.split_once("Output is being written to: ")?;
    let end = rest.find(&name)? + name.len();
    let path = PathBuf::from(&rest[..end]);
    // Only the task's own file: output of a command must not make the agent read another.
    let is_own = path.is_absolute() && path.file_name().is_some_and(|file| file == name.as_str());
    is_own.then_some(path)
}

/// The changes of a file by hunks. A new file has none, and the view of its input shows it.
fn patched(path: &Path, hunks: &[PatchHunk]) -> ToolResultView {
    if hunks.is_empty() {
        return ToolResultView::default();
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
    ToolResultView {
        content: Some(diffs.collect()),
        locations: Some(hunks.iter().map(|hunk| at(path, changed(hunk))).collect()),
        ..ToolResultView::default()
    }
}

fn changed(hunk: &PatchHunk) -> u64 {
    let before = hunk.lines.iter().take_while(|line| line.starts_with(' ')).count();
    hunk.new_start.saturating_add(before as u64)
}

fn of_agent(agent: AgentOutput, said: Vec<CallContent>) -> ToolResultView {
    match agent {
        AgentOutput::Completed(done) => {
            // The CLI wraps the answer in notes to the model.
            let count = |count: Option<u64>| usize::try_from(count.unwrap_or_default()).unwrap_or_default();
            let notes = count(done.harness_note_count);
            let end = done.content.len().saturating_sub(count(done.harness_tail_count));
            let answer = done.content.into_iter().take(end).skip(notes);
            ToolResultView {
                content: Some(answer.map(|text| plain(text.text)).collect()),
                ..ToolResultView::default()
            }
        }
        AgentOutput::AsyncLaunched(launched) => ToolResultView {
            // Its file is the subagent's transcript, not its output.
            background: Some(Background {
                task: launched.agent_id,
                file: None,
            }),
            ..ToolResultView::default()
        },
        AgentOutput::RemoteLaunched(launched) => ToolResultView {
            content: Some(vec![link(&launched.session_url, "The agent's session")]),
            background: Some(Background {
                task: launched.task_id,
                file: None,
            }),
            ..ToolResultView::default()
        },
        _ => match is_internal(&text_of(&said)) {
            true => ToolResultView {
                background: agent_in(&text_of(&said)),
                ..ToolResultView::default()
            },
            false => ToolResultView {
                content: Some(said),
                ..ToolResultView::default()
            },
        },
    }
}

/// The CLI's internal notes to the model about a background agent.
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

/// The exit code in the CLI's summary of a command: `… completed (exit code 0)`.
pub(crate) fn code_in(summary: &str) -> Option<i32> {
    let (_, rest) = summary.rsplit_once("exit code ")?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '-')
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests;
