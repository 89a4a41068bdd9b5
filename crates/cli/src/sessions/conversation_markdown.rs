//! A conversation as Markdown.

use std::io::Write;

use outrigger::sessions::{Messages, SessionFile};

use super::find::line;
use super::message_pieces::{Calls, MessagePiece, pieces};
use super::show_session::facts;
use super::talk::{Speaker, is_for_people};
use crate::exit::Failure;
use crate::plain::plain;
use crate::time::minute_with_zone;

/// Writes it, one message in memory at a time, and asks `each` before each of them whether to go on. With `full`, what is not meant to be shown is in it too. Characters that would be
/// commands for a terminal are replaced.
pub(super) fn write(
    file: &SessionFile,
    messages: &mut Messages,
    full: bool,
    out: &mut dyn Write,
    each: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (title, facts) = facts(file)?;
    writeln!(out, "# {title}\n")?;
    for (name, value) in facts {
        writeln!(out, "- {name}: `{}`", value.replace('`', "'"))?;
    }
    let mut last = None;
    let mut calls = Calls::default();
    for message in messages {
        let message = message?;
        each()?;
        if !full && !is_for_people(&message) {
            continue;
        }
        let pieces = pieces(&message);
        let speaker = Speaker::of(&message, &pieces);
        if let Some(heading) = speaker.heading(&message)
            && (speaker == Speaker::User || last != Some(speaker))
        {
            let at = message.timestamp.as_deref().map(minute_with_zone);
            let at = at.map(|at| format!(" ({})", line(&at, 40))).unwrap_or_default();
            writeln!(out, "\n## {heading}{at}")?;
        }
        if speaker != Speaker::Tool {
            last = Some(speaker);
        }
        for piece in &pieces {
            if let Some(text) = text_of(piece, &mut calls) {
                writeln!(out, "\n{text}")?;
            }
        }
    }
    Ok(())
}

fn text_of(piece: &MessagePiece, calls: &mut Calls) -> Option<String> {
    Some(match piece {
        MessagePiece::Text(text) => plain(text.trim_end()),
        MessagePiece::Thinking(text) if text.trim().is_empty() => return None,
        MessagePiece::Thinking(text) => folded("Thinking", &fenced("", text)),
        MessagePiece::Call { id, tool, input } => {
            let mark = calls.begin(id, tool, input);
            let tool = line(tool, 200).replace('`', "'");
            format!("**Calls `{tool}`**{mark}\n\n{}", fenced("json", input.get()))
        }
        MessagePiece::Result { of, text, is_error } => {
            let name = if *is_error { "Error" } else { "Result" };
            let name = match calls.end(of) {
                Some(call) => format!("{name} of {}", escaped(&call)),
                None => name.to_owned(),
            };
            folded(&name, &fenced("", text))
        }
        MessagePiece::Other(what) => format!("*[{}]*", line(what, 200)),
    })
}

/// Text that is no markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn folded(name: &str, text: &str) -> String {
    format!("<details><summary>{name}</summary>\n\n{text}\n\n</details>")
}

/// A block of code with a fence that is longer than any in it.
fn fenced(language: &str, text: &str) -> String {
    let text = plain(text.trim_end());
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_fence_cannot_end_it() {
        let text = fenced("", "a\n````\nb\x1b[31m");
        assert_eq!(text, "`````\na\n````\nb\\u{1b}[31m\n`````");
        assert_eq!(fenced("json", "{}"), "```json\n{}\n```");
    }
}
