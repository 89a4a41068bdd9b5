//! Files for the host, and their earlier states.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use serde_json::{Value, json};

use super::context::Context;
use super::control::Reply;
use super::disk;

/// As much of a file as the host gets at most.
const MOST: usize = 1024 * 1024;

/// How files were before a prompt changed them.
#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    prompt: String,
    before: BTreeMap<String, Before>,
}

/// How a file was.
#[derive(Debug, Clone)]
struct Before {
    /// Its contents; `None` if it did not exist.
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

/// Answers a request about files; `None` is about something else.
pub(super) async fn handle(ctx: &Context, subtype: &str, request: &Value) -> Option<Reply> {
    Some(match subtype {
        "rewind_files" => rewind(ctx, request).await,
        "read_file" => read(ctx, request).await,
        "file_suggestions" => Reply::Payload(suggest(ctx, request["query"].as_str().unwrap_or_default())),
        "register_repo_root" => register(ctx, request["directory"].as_str().unwrap_or_default()),
        _ => return None,
    })
}

/// Whether a path is in the working directory, or in one that was added.
pub(super) fn is_inside(ctx: &Context, path: &Path) -> bool {
    let goes_up = path
        .components()
        .any(|part| part == std::path::Component::ParentDir);
    let directories: Vec<String> = ctx.state().all_directories().cloned().collect();
    let cwd = ctx.cwd();
    !goes_up && (path.starts_with(&cwd) || directories.iter().any(|directory| path.starts_with(directory)))
}

async fn rewind(ctx: &Context, request: &Value) -> Reply {
    const UNKNOWN: &str = "No file checkpoint found for this message.";
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
            Reply::Payload(json!({"canRewind": false, "error": UNKNOWN}))
        } else {
            Reply::Error(UNKNOWN.to_owned())
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
                return Reply::Error(format!("cannot restore {path}: {error}"));
            }
        }
        changed.push(path);
    }
    Reply::Payload(if dry {
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

async fn read(ctx: &Context, request: &Value) -> Reply {
    let asked = request["path"].as_str().unwrap_or_default();
    let path = ctx.cwd().join(asked);
    let content = if is_inside(ctx, &path) {
        disk::load_bytes(ctx, &path.to_string_lossy(), ctx.config.real_tools).await
    } else {
        None
    };
    let Some(mut content) = content else {
        return Reply::Error(format!("read denied: {asked}"));
    };
    let most = request["max_bytes"]
        .as_u64()
        .map_or(MOST, |most| most as usize)
        .min(MOST);
    let truncated = content.len() > most;
    content.truncate(most);
    let mut payload = json!({"absPath": path.to_string_lossy(), "requested_path": asked});
    if truncated {
        payload["truncated"] = json!(true);
    }
    if request["encoding"] == "base64" {
        payload["contents"] = json!(base64::engine::general_purpose::STANDARD.encode(&content));
        payload["encoding"] = json!("base64");
    } else {
        let text = String::from_utf8_lossy(&content);
        payload["lossy"] = json!(text.contains('\u{fffd}'));
        payload["contents"] = json!(text);
    }
    Reply::Payload(payload)
}

fn suggest(ctx: &Context, query: &str) -> Value {
    let query = query.to_lowercase();
    let cwd = ctx.cwd();
    let suggestions: Vec<Value> = super::search::files(ctx, &cwd, ctx.config.real_tools)
        .into_iter()
        .filter_map(|path| Some(path.strip_prefix(&cwd).ok()?.to_string_lossy().into_owned()))
        .filter(|path| path.to_lowercase().contains(&query))
        .take(20)
        .map(|path| json!({"path": path}))
        .collect();
    json!({"suggestions": suggestions, "cwd": cwd.to_string_lossy()})
}

fn register(ctx: &Context, directory: &str) -> Reply {
    let path = ctx.cwd().join(directory);
    if directory.is_empty() || !is_inside(ctx, &path) {
        return Reply::Error(format!(
            "register_repo_root: {directory} is not a subdirectory of the session's working directory or of a launch-time \
             --add-dir root that still leads where it first did"
        ));
    }
    let directory = path.to_string_lossy().into_owned();
    let mut state = ctx.state();
    if !state.directories.contains(&directory) {
        state.directories.push(directory.clone());
    }
    Reply::Payload(json!({"directory": directory}))
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
