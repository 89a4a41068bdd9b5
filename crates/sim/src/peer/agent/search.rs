//! Searching files, by name and by content.

use std::path::{Path, PathBuf};

use regex_lite::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::brain::Outcome;
use super::context::Context;
use super::disk;

/// No more files than these are looked at.
const MOST: usize = 10_000;

/// The files below a directory, sorted, without hidden directories.
pub(super) fn files(ctx: &Context, directory: &Path, real: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if real {
        walk(directory, &mut found);
    } else {
        let state = ctx.state();
        let files = state.files.keys().map(PathBuf::from);
        found.extend(files.filter(|file| file.starts_with(directory)));
    }
    found.sort();
    found
}

fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if found.len() >= MOST {
            return;
        }
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        match entry.file_type() {
            // Links are not followed, so that it ends.
            Ok(kind) if kind.is_dir() && !hidden => walk(&entry.path(), found),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

/// A pattern for paths as a regular expression: `*`, `**`, `?`, `{a,b}` and `[abc]` are understood.
fn glob(pattern: &str) -> Option<Regex> {
    let mut regex = String::from("^");
    let mut characters = pattern.chars().peekable();
    let mut braces = 0;
    while let Some(c) = characters.next() {
        match c {
            '*' if characters.peek() == Some(&'*') => {
                characters.next();
                if characters.peek() == Some(&'/') {
                    characters.next();
                    regex.push_str("(.*/)?");
                } else {
                    regex.push_str(".*");
                }
            }
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '{' => {
                braces += 1;
                regex.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                regex.push(')');
            }
            ',' if braces > 0 => regex.push('|'),
            '[' | ']' => regex.push(c),
            c if c.is_alphanumeric() || c == '/' || c == '-' || c == '_' => regex.push(c),
            c => {
                regex.push('\\');
                regex.push(c);
            }
        }
    }
    regex.push('$');
    Regex::new(&regex).ok()
}

fn directory(ctx: &Context, input: &Value) -> PathBuf {
    match input["path"].as_str() {
        Some(path) => ctx.cwd().join(path),
        None => ctx.cwd(),
    }
}

/// The tool that finds files by their names.
pub(super) fn glob_tool(ctx: &Context, input: &Value, real: bool) -> Outcome {
    let pattern = input["pattern"].as_str().unwrap_or_default();
    let Some(regex) = glob(pattern) else {
        return Outcome::error(format!("not a pattern: {pattern}"));
    };
    let directory = directory(ctx, input);
    let fits = |path: &PathBuf| {
        let relative = path.strip_prefix(&directory).unwrap_or(path).to_string_lossy();
        regex.is_match(&relative) || regex.is_match(&path.to_string_lossy())
    };
    let found: Vec<String> = files(ctx, &directory, real)
        .into_iter()
        .filter(fits)
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let truncated = found.len() > 100;
    let shown: Vec<String> = found.into_iter().take(100).collect();
    let text = if shown.is_empty() {
        "No files found".to_owned()
    } else {
        shown.join("\n")
    };
    let count = shown.len();
    Outcome::text(text).with_details(json!({
        "filenames": shown, "durationMs": 0, "numFiles": count, "truncated": truncated,
    }))
}

/// The tool that finds files by their contents.
pub(super) async fn grep_tool(ctx: &Context, input: &Value, real: bool) -> Outcome {
    let pattern = input["pattern"].as_str().unwrap_or_default();
    let regex = RegexBuilder::new(pattern)
        .case_insensitive(input["-i"] == true)
        .build();
    let regex = match regex {
        Ok(regex) => regex,
        Err(error) => return Outcome::error(format!("not a regular expression: {error}")),
    };
    let filter = input["glob"].as_str().and_then(glob);
    let directory = directory(ctx, input);
    let paths = match directory.is_file() {
        true => vec![directory.clone()],
        false => files(ctx, &directory, real),
    };
    let mode = input["output_mode"].as_str().unwrap_or("files_with_matches");
    let most = input["head_limit"].as_u64().unwrap_or(250).max(1) as usize;
    let (mut lines, mut hits, mut names) = (Vec::new(), 0, Vec::new());
    for path in paths {
        let relative = path
            .strip_prefix(&directory)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if filter
            .as_ref()
            .is_some_and(|filter| !filter.is_match(&relative) && !filter.is_match(&name))
        {
            continue;
        }
        let path = path.to_string_lossy().into_owned();
        let Some(content) = disk::load(ctx, &path, real).await else {
            continue;
        };
        let before = hits;
        for (n, line) in content
            .lines()
            .enumerate()
            .filter(|(_, line)| regex.is_match(line))
        {
            hits += 1;
            if mode == "content" {
                lines.push(if input["-n"] == false {
                    format!("{path}:{line}")
                } else {
                    format!("{path}:{}:{line}", n + 1)
                });
            }
        }
        match (hits - before, mode) {
            (0, _) => continue,
            (count, "count") => lines.push(format!("{path}:{count}")),
            (_, "content") => {}
            _ => lines.push(path.clone()),
        }
        names.push(path);
    }
    lines.truncate(most);
    let text = match (lines.is_empty(), mode) {
        (true, "content" | "count") => "No matches found".to_owned(),
        (true, _) => "No files found".to_owned(),
        (false, "files_with_matches") => {
            let files = if names.len() == 1 { "file" } else { "files" };
            format!("Found {} {files}\n{}", names.len(), lines.join("\n"))
        }
        (false, _) => lines.join("\n"),
    };
    Outcome::text(text).with_details(json!({
        "mode": mode, "numFiles": names.len(), "filenames": names, "content": lines.join("\n"), "numLines": lines.len(),
        "numMatches": hits,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, path, fits) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/a.rs", false),
            ("**/*.rs", "a.rs", true),
            ("**/*.rs", "src/deep/a.rs", true),
            ("src/**", "src/deep/a.rs", true),
            ("*.{ts,js}", "a.js", true),
            ("?.txt", "ab.txt", false),
            ("[ab].txt", "b.txt", true),
        ] {
            assert_eq!(glob(pattern).unwrap().is_match(path), fits, "{pattern} {path}");
        }
    }
}
