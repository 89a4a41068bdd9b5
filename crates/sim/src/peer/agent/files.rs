//! The earlier states of files.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::context::Context;
use super::control::ControlReply;
use super::disk;

/// How files were before a prompt changed them.
#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    prompt: String,
    before: BTreeMap<String, Before>,
}

/// How a file was.
#[derive(Debug, Clone)]
struct Before {
    /// The contents of the file; `None` if there was no file.
    content: Option<String>,
    real: bool,
}

/// Begins a checkpoint with a prompt, if they are kept.
pub(super) fn checkpoint(ctx: &Context, prompt: &str) {
    if ctx.config.checkpoints {
        ctx.state().checkpoints.push(Checkpoint {
            prompt: prompt.to_owned(),
            before: BTreeMap::new(),
        });
    }
}

/// Remembers how a file was before it is changed.
pub(super) fn remember(ctx: &Context, path: &str, content: Option<&String>, real: bool) {
    if let Some(checkpoint) = ctx.state().checkpoints.last_mut() {
        let before = || Before {
            content: content.cloned(),
            real,
        };
        checkpoint.before.entry(path.to_owned()).or_insert_with(before);
    }
}

/// Brings files back to their state before a prompt.
pub(super) async fn rewind(ctx: &Context, request: &Value) -> ControlReply {
    let unknown = match ctx.config.checkpoints {
        true => "No file checkpoint found for this message.",
        false => "File rewinding is not enabled.",
    };
    let before = {
        let state = ctx.state();
        let position = state
            .checkpoints
            .iter()
            .position(|checkpoint| request["user_message_id"] == checkpoint.prompt);
        position.map(|position| {
            let mut before: BTreeMap<String, Before> = BTreeMap::new();
            for checkpoint in &state.checkpoints[position..] {
                for (path, file) in &checkpoint.before {
                    before.entry(path.clone()).or_insert_with(|| file.clone());
                }
            }
            before
        })
    };
    let dry = request["dry_run"] == true;
    let Some(before) = before else {
        return if dry {
            ControlReply::Payload(json!({"canRewind": false, "error": unknown}))
        } else {
            ControlReply::Error(unknown.to_owned())
        };
    };
    let (mut changed, mut insertions, mut deletions) = (Vec::new(), 0, 0);
    for (path, Before { content, real }) in before {
        let now = disk::load(ctx, &path, real).await;
        if now == content {
            continue;
        }
        let (added, removed) = difference(
            now.as_deref().unwrap_or_default(),
            content.as_deref().unwrap_or_default(),
        );
        insertions += added;
        deletions += removed;
        if !dry {
            let restored = match &content {
                Some(content) => disk::store(ctx, &path, content, real).await,
                None => disk::remove(ctx, &path, real).await,
            };
            if let Err(error) = restored {
                return ControlReply::Error(format!("cannot restore {path}: {error}"));
            }
        }
        changed.push(path);
    }
    ControlReply::Payload(if dry {
        json!({"canRewind": true, "filesChanged": changed, "insertions": insertions, "deletions": deletions})
    } else {
        json!({"canRewind": true, "skippedLinks": 0})
    })
}

/// How many lines are added and removed from one text to another, apart from what both begin and end with.
fn difference(from: &str, to: &str) -> (usize, usize) {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.lines().collect(), to.lines().collect());
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let (from, to) = (&from[same..], &to[same..]);
    let same = from
        .iter()
        .rev()
        .zip(to.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    (to.len() - same, from.len() - same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ() {
        assert_eq!(difference("a\nb\nc\n", "a\nx\ny\nc\n"), (2, 1));
        assert_eq!(difference("hello\n", ""), (0, 1));
        assert_eq!(difference("a\n", "a\n"), (0, 0));
    }
}
