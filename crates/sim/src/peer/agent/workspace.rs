//! The working directory: switching to another one, and its changes.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::context::Context;
use super::control::Reply;
use super::session::success;
use super::turn::{End, Turn};

/// Answers a request about the working directory; `None` is about something else.
pub(super) async fn handle(
    ctx: &Arc<Context>,
    id: Option<&Value>,
    subtype: &str,
    request: &Value,
) -> Option<Reply> {
    Some(match subtype {
        "set_cwd" => set(ctx, id, request).await,
        "get_workspace_diff" => Reply::Payload(difference(ctx).await),
        _ => return None,
    })
}

async fn set(ctx: &Arc<Context>, id: Option<&Value>, request: &Value) -> Reply {
    let Some(asked) = request["path"].as_str().filter(|path| !path.is_empty()) else {
        return Reply::Error("set_cwd: invalid request — path must be a non-empty string".to_owned());
    };
    let rejected =
        |reason, message| Reply::Payload(json!({"status": "rejected", "reason": reason, "message": message}));
    let busy = {
        let state = ctx.state();
        state.running || !state.queue.is_empty()
    };
    if busy {
        let message = "A turn is in progress — the working directory can only change while the session is idle. Wait for the \
                       turn to finish (or interrupt it), then retry.";
        return rejected("busy", message.to_owned());
    }
    let path = ctx.cwd().join(asked);
    if !path.is_dir() {
        let message = format!("Couldn't find a directory at {}.", path.display());
        return rejected("not_found", message);
    }
    if request["trust_accepted"] != true {
        return Reply::Payload(json!({"status": "needs_trust", "directory": path.to_string_lossy()}));
    }
    ctx.send_system("ui_invalidate", json!({"event": "ui.render"}))
        .await;
    let command = ctx.uuid();
    let lifecycle = |state| json!({"type": "command_lifecycle", "command_uuid": command, "state": state});
    ctx.send_stamped(lifecycle("started")).await;
    let relocated = ctx.move_to(path.clone());
    // It is a turn of its own, without a call of the model.
    let turn = Turn::new(ctx.clone(), ctx.abort.clone(), ctx.uuid());
    turn.send_init().await;
    let payload = json!({
        "status": "ok", "cwd": path.to_string_lossy(), "changed": true, "transcript_relocated": relocated,
    });
    ctx.send(success(id, Some(payload))).await;
    turn.finish(Some(End::NoQuery(String::new()))).await;
    ctx.send_stamped(lifecycle("completed")).await;
    Reply::Later
}

/// What git writes, if there is a repository.
async fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let output = tokio::process::Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

/// The differences between the files and the last commit.
async fn difference(ctx: &Context) -> Value {
    let none = json!({"diff": null, "noDiffReason": "no-repository"});
    // Files that are only pretended are in no repository.
    if !ctx.config.real_tools {
        return none;
    }
    let cwd = ctx.cwd();
    let (Some(root), Some(numbers), Some(text), Some(new)) = (
        git(&cwd, &["rev-parse", "--show-toplevel"]).await,
        git(&cwd, &["diff", "HEAD", "--numstat", "--no-renames"]).await,
        git(&cwd, &["diff", "HEAD", "--no-color", "--no-renames"]).await,
        git(&cwd, &["ls-files", "--others", "--exclude-standard"]).await,
    ) else {
        return none;
    };
    let (mut files, mut added, mut removed) = (Vec::new(), 0, 0);
    for line in numbers.lines() {
        let mut parts = line.splitn(3, '\t');
        let (Some(plus), Some(minus), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (more, less): (u64, u64) = (plus.parse().unwrap_or(0), minus.parse().unwrap_or(0));
        (added, removed) = (added + more, removed + less);
        let status = if Path::new(root.trim_end()).join(path).exists() {
            "modified"
        } else {
            "deleted"
        };
        files.push(json!({
            "path": path, "added": more, "removed": less, "isBinary": plus == "-", "isUntracked": false, "status": status,
            "uncommittedStatus": status,
        }));
    }
    for path in new.lines() {
        files.push(json!({
            "path": path, "added": 0, "removed": 0, "isBinary": false, "isUntracked": true, "status": "added",
            "uncommittedStatus": "added",
        }));
    }
    json!({"diff": {
        "stats": {"filesCount": files.len(), "linesAdded": added, "linesRemoved": removed}, "perFileStats": files,
        "omitted": {"files": 0, "exact": true}, "hunks": hunks(&text), "lineCapped": [], "skippedLarge": [], "restricted": [],
        "source": {"kind": "working-tree"}, "rootId": super::transcript::project_name(root.trim_end()),
    }})
}

/// The hunks of a diff, by file.
fn hunks(text: &str) -> Vec<Value> {
    let mut files: Vec<Value> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            files.push(json!({"path": path, "hunks": []}));
            continue;
        }
        let Some(hunks) = files.last_mut().and_then(|file| file["hunks"].as_array_mut()) else {
            continue;
        };
        let range = |part: &str| -> (u64, u64) {
            let part = part.trim_start_matches(['-', '+']);
            let (start, lines) = part.split_once(',').unwrap_or((part, "1"));
            (start.parse().unwrap_or(0), lines.parse().unwrap_or(0))
        };
        if let Some(head) = line.strip_prefix("@@ ") {
            let mut parts = head.split(' ');
            let old = range(parts.next().unwrap_or_default());
            let new = range(parts.next().unwrap_or_default());
            hunks.push(json!({
                "oldStart": old.0, "oldLines": old.1, "newStart": new.0, "newLines": new.1, "lines": [],
            }));
        } else if line.starts_with("diff --git ") {
            files.push(Value::Null);
        } else if let Some(lines) = hunks.last_mut().and_then(|hunk| hunk["lines"].as_array_mut()) {
            lines.push(json!(line));
        }
    }
    files.retain(|file| file["hunks"].as_array().is_some_and(|hunks| !hunks.is_empty()));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_of_two_files() {
        let text = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@ fn f\n one\n two\n+three\n\
                    diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n";
        let expected = json!([
            {"path": "x", "hunks": [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 3, "lines": [" one", " two", "+three"]}]},
            {"path": "y", "hunks": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}]},
        ]);
        assert_eq!(json!(hunks(text)), expected);
    }
}
