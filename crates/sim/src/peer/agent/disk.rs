//! Files, in memory or for real, and the tools that read and change them.

use serde_json::{Value, json};

use super::brain::Outcome;
use super::context::Context;
use super::{files, plans};

/// A path as the tools take it.
pub(super) fn absolute(ctx: &Context, path: &str) -> String {
    ctx.cwd().join(path).to_string_lossy().into_owned()
}

/// The contents of a file, if it exists and is text.
pub(super) async fn load(ctx: &Context, path: &str, real: bool) -> Option<String> {
    String::from_utf8(load_bytes(ctx, path, real).await?).ok()
}

/// The contents of a file, if it exists.
pub(super) async fn load_bytes(ctx: &Context, path: &str, real: bool) -> Option<Vec<u8>> {
    if real {
        tokio::fs::read(path).await.ok()
    } else {
        let state = ctx.state();
        let content = state.files.get(path);
        content.map(|content| content.clone().into_bytes())
    }
}

/// Takes a file away.
pub(super) async fn remove(ctx: &Context, path: &str, real: bool) -> std::io::Result<()> {
    if real {
        tokio::fs::remove_file(path).await
    } else {
        ctx.state().files.remove(path);
        Ok(())
    }
}

/// Puts something into a file.
pub(super) async fn store(ctx: &Context, path: &str, content: &str, real: bool) -> std::io::Result<()> {
    if real {
        if let Some(parent) = std::path::Path::new(path).parent() {
            tokio::fs::create_dir_all(parent).await?;
        }
        tokio::fs::write(path, content).await
    } else {
        ctx.state().files.insert(path.to_owned(), content.to_owned());
        Ok(())
    }
}

/// A result without `is_error`, as the file tools give them.
fn file_outcome(content: String, details: Value) -> Outcome {
    Outcome::text(content).with_details(details)
}

/// `Read`.
pub(super) async fn read(ctx: &Context, input: &Value, real: bool) -> Outcome {
    let path = absolute(ctx, input["file_path"].as_str().unwrap_or_default());
    let Some(content) = load(ctx, &path, real).await else {
        let cwd = ctx.cwd();
        return Outcome::error(format!(
            "File does not exist. Note: your current working directory is {}.",
            cwd.display()
        ));
    };
    let lines: Vec<&str> = content.split('\n').collect();
    let first = input["offset"].as_u64().unwrap_or(1).max(1) as usize;
    let most = input["limit"].as_u64().map_or(usize::MAX, |most| most as usize);
    let shown: Vec<&str> = lines.iter().skip(first - 1).take(most).copied().collect();
    let numbered: Vec<String> = shown
        .iter()
        .enumerate()
        .map(|(n, line)| format!("{}\t{line}", n + first))
        .collect();
    let part = shown.join("\n");
    let details = json!({"type": "text", "file": {
        "filePath": path, "content": part, "numLines": shown.len(), "startLine": first, "totalLines": lines.len(),
    }});
    file_outcome(numbered.join("\n"), details)
}

/// `Write`.
pub(super) async fn write(ctx: &Context, input: &Value, real: bool) -> Outcome {
    let path = absolute(ctx, input["file_path"].as_str().unwrap_or_default());
    let content = input["content"].as_str().unwrap_or_default();
    let original = load(ctx, &path, real).await;
    files::remember(ctx, &path, original.as_ref(), real);
    if path.starts_with(&plans::directory(ctx)) {
        ctx.state().plan = Some((path.clone(), real));
    }
    if let Err(error) = store(ctx, &path, content, real).await {
        return Outcome::error(error.to_string());
    }
    // A file with nothing in it counts as new.
    let original = original.filter(|original| !original.is_empty());
    let note = "(file state is current in your context — no need to Read it back)";
    let (kind, text) = match &original {
        None => ("create", format!("File created successfully at: {path} {note}")),
        Some(_) => (
            "update",
            format!("The file {path} has been updated successfully. {note}"),
        ),
    };
    let details = json!({
        "type": kind, "filePath": path, "content": content, "structuredPatch": [], "originalFile": original,
        "userModified": false,
    });
    file_outcome(text, details)
}

/// `Edit`.
pub(super) async fn edit(ctx: &Context, input: &Value, real: bool) -> Outcome {
    let path = absolute(ctx, input["file_path"].as_str().unwrap_or_default());
    let (old, new) = (
        input["old_string"].as_str().unwrap_or_default(),
        input["new_string"].as_str().unwrap_or_default(),
    );
    let all = input["replace_all"] == true;
    let Some(content) = load(ctx, &path, real).await else {
        return Outcome::error("File does not exist.");
    };
    if old.is_empty() || !content.contains(old) {
        return Outcome::error(format!("String to replace not found in file.\nString: {old}"));
    }
    let edited = if all {
        content.replace(old, new)
    } else {
        content.replacen(old, new, 1)
    };
    files::remember(ctx, &path, Some(&content), real);
    if let Err(error) = store(ctx, &path, &edited, real).await {
        return Outcome::error(error.to_string());
    }
    let details = json!({
        "filePath": path, "oldString": old, "newString": new, "originalFile": content, "structuredPatch": [],
        "userModified": false, "replaceAll": all,
    });
    let note = "(file state is current in your context — no need to Read it back)";
    file_outcome(
        format!("The file {path} has been updated successfully. {note}"),
        details,
    )
}
