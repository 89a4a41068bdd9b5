//! Files, in memory or for real, and the tools that read and change them.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::brain::{CallPlan, ToolOutcome};
use super::caller::ModelCall;
use super::context::{AgentState, Context};
use super::models::Model;
use super::paths::Area;
use super::rules::{Access, Accessed, RuleRoots, Subject};
use super::{BYPASS, background, commands, edits, files, not_simulated, paths, payload, plans, shell};
use crate::word_list::WordList;

/// A path as the tools take it.
pub(super) fn absolute(ctx: &Context, path: &str) -> String {
    let path = paths::absolute(path, &ctx.cwd(), Path::new(&ctx.config.home));
    path.to_string_lossy().into_owned()
}

/// What the system has against something that was done with a path, as Node says it.
fn told(error: &std::io::Error, doing: &str, path: &str) -> String {
    let what = match error.kind() {
        ErrorKind::NotADirectory => "ENOTDIR: not a directory",
        ErrorKind::InvalidFilename => "ENAMETOOLONG: name too long",
        ErrorKind::PermissionDenied => "EACCES: permission denied",
        ErrorKind::IsADirectory => "EISDIR: illegal operation on a directory",
        ErrorKind::AlreadyExists => "EEXIST: file already exists",
        ErrorKind::NotFound => "ENOENT: no such file or directory",
        ErrorKind::ReadOnlyFilesystem => "EROFS: read-only file system",
        ErrorKind::StorageFull => "ENOSPC: no space left on device",
        _ => "EIO: i/o error",
    };
    format!("{what}, {doing} '{path}'")
}

/// Why there cannot be a file of this path.
fn impossible(path: &str, doing: &str, real: bool) -> Option<String> {
    let error = std::fs::metadata(path).err().filter(|_| real)?;
    let counts = matches!(
        error.kind(),
        ErrorKind::NotADirectory | ErrorKind::InvalidFilename | ErrorKind::PermissionDenied
    );
    counts.then(|| told(&error, doing, path))
}

/// The contents of a file, if it exists. What is no text is shown as far as it can be.
pub(super) async fn load(ctx: &Context, path: &str, real: bool) -> Option<String> {
    Some(edits::decoded(&load_bytes(ctx, path, real).await?).0)
}

/// Why a file must not be changed: it is no text that can be written again.
async fn unwritable(ctx: &Context, path: &str, real: bool) -> Option<String> {
    let (_, flaw) = edits::decoded(&load_bytes(ctx, path, real).await?);
    flaw.map(|flaw| format!("File {flaw}. Nothing was written, since it would be something else then."))
}

/// Why nothing can be written there: a directory on the way is a link to nothing.
fn no_way(path: &str, real: bool) -> Option<String> {
    let is_dangling = |above: &Path| above.is_symlink() && !above.exists();
    let mut above = Path::new(path).ancestors().skip(1);
    let is_found = real && above.any(is_dangling);
    is_found.then(|| format!("Refusing to write {path}: a directory on the way is a link to nothing."))
}

/// The contents of a file, if it exists. What is no file, such as a pipe, might never end.
pub(super) async fn load_bytes(ctx: &Context, path: &str, real: bool) -> Option<Vec<u8>> {
    if real {
        let is_file = tokio::fs::metadata(path).await.ok()?.is_file();
        if !is_file {
            return None;
        }
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
        let before = tokio::fs::read(path).await.unwrap_or_default();
        tokio::fs::write(path, edits::encoded(content, &before)).await
    } else {
        ctx.state().files.insert(path.to_owned(), content.to_owned());
        Ok(())
    }
}

/// A result without `is_error`, as the file tools give them.
fn file_outcome(content: String, details: Value) -> ToolOutcome {
    ToolOutcome::text(content).with_details(details)
}

/// The largest file that is read as a whole, and how many tokens of a file the model gets.
const LARGEST: usize = 256 << 10;
const MOST_TOKENS: usize = 25_000;

/// What the CLI has the API count, and the scripted API answers: a quarter of the length of the request.
fn tokens_of(text: &str) -> usize {
    (json!([{"role": "user", "content": text}]).to_string().len() + REST_OF_COUNT) / 4
}

/// The length of the rest of such a request.
const REST_OF_COUNT: usize = 50;

/// A number of bytes, as the CLI writes it.
pub(super) fn size(bytes: usize) -> String {
    let kilobytes = bytes as f64 / 1024.0;
    let (number, unit) = if kilobytes < 1024.0 {
        (kilobytes, "KB")
    } else {
        (kilobytes / 1024.0, "MB")
    };
    let number = format!("{number:.1}");
    format!("{}{unit}", number.strip_suffix(".0").unwrap_or(&number))
}

/// Behind a result: the model knows what is in the file now.
const KNOWN: &str = " (file state is current in your context — no need to Read it back)";

/// Behind a result: the model does not know all of the file.
const RECOVERED: &str = " (note: the file has been modified since you read it; read it again before edits that depend on what is \
                         around them.)";

fn no_such_file(ctx: &Context, path: &str, real: bool) -> String {
    let similar = similar_file(ctx, Path::new(path), real);
    let similar = similar.map_or_else(String::new, |name| format!(" Did you mean {name}?"));
    format!(
        "File does not exist. Note: your current working directory is {}.{similar}",
        ctx.cwd().display()
    )
}

/// The first file beside this one that differs from it in its kind alone.
fn similar_file(ctx: &Context, path: &Path, real: bool) -> Option<String> {
    let directory = path.parent()?;
    let beside: Vec<PathBuf> = if real {
        let entries = std::fs::read_dir(directory).ok()?.flatten();
        entries.map(|entry| entry.path()).collect()
    } else {
        ctx.state().files.keys().map(PathBuf::from).collect()
    };
    let is_similar = |other: &PathBuf| {
        other.parent() == Some(directory) && other != path && other.file_stem() == path.file_stem()
    };
    let found = beside.into_iter().filter(is_similar).min()?;
    found.file_name().map(|name| name.to_string_lossy().into_owned())
}

const UNREAD: &str = "File has not been read yet. Read it first before writing to it.";

const CHANGED: &str = "File has been modified since read, either by the user or by a linter. Read it again before \
                       attempting to write it.";

/// Whether a file must be read before it is changed: the agent has not seen it, and may not read it unasked. Older models have to read
/// each file.
fn is_strange(ctx: &Context, by: &Viewer, path: &str, real: bool) -> bool {
    let state = ctx.state();
    let unread = real && Path::new(path).is_file() && seen(&state, by, path).is_none();
    let path = Path::new(path);
    let inside = || {
        let (project, cwd) = (ctx.project(), ctx.cwd());
        let area = paths::Area::new(ctx, &state);
        let place = RuleRoots::new(ctx, &state, (&project, &cwd), Some(&area));
        let read = Subject {
            tool: "Read",
            what: Accessed::File(Access::Read, &path.to_string_lossy()),
        };
        let asks = state.rules.ask.iter().any(|rule| rule.touches(&read, &place));
        let mut rules = state.rules.allow.iter();
        let mut allows = || rules.any(|rule| rule.allows_file(Access::Read, path, &place));
        !asks && (area.includes(path) || allows())
    };
    let trusted = Model::of(&state.model).has_auto_mode();
    unread && !(trusted && (state.mode == BYPASS || inside()))
}

/// Why a file must not be replaced: the model does not know what is in it.
async fn unknown(ctx: &Context, by: &Viewer, path: &str, real: bool) -> Option<&'static str> {
    match is_stale(ctx, by, path, real).await {
        true => Some(CHANGED),
        false => is_strange(ctx, by, path, real).then_some(UNREAD),
    }
}

/// Who has seen a file: the subagent of this id, or the main agent.
pub(super) type Viewer = Option<String>;

/// The files that each agent has seen.
pub(super) type FilesSeen = BTreeMap<Viewer, BTreeMap<String, SeenFile>>;

fn seen<'a>(state: &'a AgentState, by: &Viewer, path: &str) -> Option<&'a SeenFile> {
    state.files_seen.get(by)?.get(path)
}

fn has_seen(state: &mut AgentState, by: &Viewer, path: String, seen: SeenFile) {
    state.files_seen.entry(by.clone()).or_default().insert(path, seen);
}

/// What the model has seen of a file.
#[derive(Debug, Clone)]
pub(super) struct SeenFile {
    /// What was in the file then.
    content: String,
    /// Whether the model has seen all of the file.
    whole: bool,
    /// Whether the model has seen the file by `Read`. Only then the CLI refuses to replace the file once something else is in it.
    by_read: bool,
}

/// Remembers the files that a command line has shown: those of one command that prints files.
pub(super) async fn show(ctx: &Context, by: &Viewer, line: &str, real: bool) {
    let line = shell::parse(line, Path::new(&ctx.config.home));
    let [command] = &line.commands[..] else { return };
    let Some(whole) = command.shows() else { return };
    for path in command.paths(&ctx.cwd(), Path::new(&ctx.config.home)).read {
        let path = path.to_string_lossy().into_owned();
        if let Some(content) = load(ctx, &path, real).await {
            let seen = SeenFile {
                content,
                whole,
                by_read: false,
            };
            has_seen(&mut ctx.state(), by, path, seen);
        }
    }
}

/// Whether a file has something else in it than the model has seen.
async fn is_other(ctx: &Context, by: &Viewer, path: &str, real: bool) -> bool {
    let seen = seen(&ctx.state(), by, path).cloned();
    match seen {
        Some(seen) => load(ctx, path, real)
            .await
            .is_some_and(|content| content != seen.content),
        None => false,
    }
}

/// Whether a file has something else in it than the model has read.
async fn is_stale(ctx: &Context, by: &Viewer, path: &str, real: bool) -> bool {
    let by_read = seen(&ctx.state(), by, path).is_some_and(|seen| seen.by_read);
    by_read && is_other(ctx, by, path, real).await
}

/// The files that the model has seen and that are others by now.
pub(super) async fn stale(ctx: &Context, by: &Viewer, real: bool) -> Vec<String> {
    let seen = ctx.state().files_seen.get(by).cloned().unwrap_or_default();
    let mut stale = Vec::new();
    for path in seen.into_keys() {
        if is_other(ctx, by, &path, real).await {
            stale.push(path);
        }
    }
    stale
}

/// Why a call cannot be made, whatever is decided about it; nothing for calls that a test answers itself.
pub(super) async fn unfit(ctx: &Context, by: &Viewer, call: &ModelCall) -> Option<String> {
    let handled = ctx.config.handlers.iter().any(|(tool, _)| *tool == call.name);
    if handled || matches!(call.plan, CallPlan::Outcome(_)) {
        return None;
    }
    let real = match call.plan {
        CallPlan::RunReal => true,
        CallPlan::RunSimulated => false,
        _ => ctx.config.real_tools,
    };
    let text = |key: &str| call.used[key].as_str().unwrap_or_default();
    let path = absolute(ctx, text("file_path"));
    let name = &call.name;
    if matches!(&**name, "Edit" | "Read" | "Write") && path.contains('\0') {
        return Some(format!("{name} file_path cannot contain null bytes (\\0)."));
    }
    if real && matches!(&**name, "Edit" | "Write") {
        let why = match Area::new(ctx, &ctx.state()).is_endless(Path::new(&path)) {
            true => Some(format!(
                "ELOOP: too many symbolic links encountered, stat '{path}'"
            )),
            false => impossible(&path, "stat", real),
        };
        if let Some(why) = why {
            return Some(format!("Error calling tool ({name}): {why}"));
        }
    }
    if let Some(why) = outside_worktree(ctx, &call.name, &call.used) {
        return Some(why);
    }
    match call.name.as_str() {
        "Bash" if call.used["run_in_background"] != true => shell::long_sleep(text("command")),
        "TaskStop" => background::unfit(ctx, &call.used),
        "WebSearch" => {
            let names = |key: &str| call.used[key].as_array().is_some_and(|names| !names.is_empty());
            (names("allowed_domains") && names("blocked_domains")).then(|| {
                "Error: Cannot specify both allowed_domains and blocked_domains in the same request".to_owned()
            })
        }
        "ExitPlanMode" if ctx.state().mode != "plan" => Some(
            "You are not in plan mode. To enter plan mode, call the EnterPlanMode tool first. If your plan was already \
             approved, continue with implementation."
                .to_owned(),
        ),
        "Skill" if !payload::skills().iter().any(|skill| skill == text("skill"))
            && !commands::is_skill(&ctx.config, &ctx.project(), text("skill")) =>
        {
            Some(format!("Unknown skill: {}", text("skill")))
        }
        "Write" if real && Path::new(&path).is_dir() => {
            let path = text("file_path");
            Some(format!(
                "{path} is a directory, not a file. To create a file inside it, include the file name in file_path."
            ))
        }
        "Write" => unknown(ctx, by, &path, real).await.map(str::to_owned),
        "Read" => {
            let is_there = match real {
                true => Path::new(&path).is_file(),
                false => ctx.state().files.contains_key(&path),
            };
            let kind = kind_of(&path);
            let lower = kind.to_ascii_lowercase();
            if is_there && KINDS.contains(&&*lower) {
                return Some(not_simulated::call(&format!("Read of a .{kind} file")));
            }
            BINARY.has(&lower).then(|| {
                format!("This tool cannot read binary files. The file appears to be a binary .{lower} file.")
            })
        }
        "Edit" if kind_of(&path) == "ipynb" => {
            Some("File is a Jupyter Notebook. Use the NotebookEdit to edit this file.".to_owned())
        }
        "Edit" => {
            let (old, new) = (text("old_string"), text("new_string"));
            if old == new {
                return Some("No changes to make: old_string and new_string are exactly the same.".to_owned());
            }
            if real && Path::new(&path).is_dir() {
                return Some("Error calling tool (Edit): EISDIR: illegal operation on a directory, read".to_owned());
            }
            if !old.is_empty() && is_strange(ctx, by, &path, real) {
                return Some(UNREAD.to_owned());
            }
            if let Some(why) = unwritable(ctx, &path, real).await {
                return Some(why);
            }
            let content = load(ctx, &path, real).await;
            let content = content.as_deref().map(edits::plain);
            let matches = |content: &String| {
                let meant = edits::meant(content, old)?;
                Some(content.matches(meant.as_str()).count())
            };
            match content {
                None if old.is_empty() => None,
                None => Some(no_such_file(ctx, &path, real)),
                Some(content) if old.is_empty() => {
                    let is_empty = content.trim().is_empty();
                    (!is_empty).then(|| "Cannot create new file - file already exists.".to_owned())
                }
                Some(content) => match matches(&content).unwrap_or_default() {
                    0 if is_stale(ctx, by, &path, real).await => Some(CHANGED.to_owned()),
                    0 => Some(format!("String to replace not found in file.\nString: {old}")),
                    1 => None,
                    _ if call.used["replace_all"] == true => None,
                    many => Some(format!(
                        "Found {many} matches of the string to replace, but replace_all is false. To replace all \
                         occurrences, set replace_all to true. To replace only one occurrence, please provide more context to \
                         uniquely identify the instance.\nString: {old}"
                    )),
                },
            }
        }
        _ => None,
    }
}

/// Why a file of the checkout must not be changed by a session that works in a worktree of the checkout.
pub(super) fn outside_worktree(ctx: &Context, tool: &str, input: &Value) -> Option<String> {
    let key = match tool {
        "Edit" | "Write" => "file_path",
        "NotebookEdit" => "notebook_path",
        _ => return None,
    };
    let path = absolute(ctx, input[key].as_str()?);
    let state = ctx.state();
    let worktree = state.worktree.as_ref()?["worktreePath"].as_str()?;
    let (checkout, _) = worktree.rsplit_once("/.claude/worktrees/")?;
    let path = Path::new(&path);
    (path.starts_with(checkout) && !path.starts_with(worktree)).then(|| {
        format!(
            "This session is isolated in the worktree {worktree}. Edit the worktree copy of this file instead of the shared-checkout path."
        )
    })
}

/// Kinds of files that are not read, whatever is in them.
const BINARY: WordList = WordList(
    "3ds 7z a aac ai aiff app avi avif bin blend bmp bz2 class dat data db deb dll doc docx dylib ear eot eps exe fig fla \
     flac flv gz heic ico idx iso jar lib lockb m4a m4v max mdb mkv mov mp3 mp4 mpeg mpg msi node o obj odp ods odt ogg opus \
     otf ppt pptx psd pyc pyo rar rlib rpm sketch so sqlite sqlite3 swf tar tgz tif tiff ttf war wasm wav webm wma wmv woff \
     woff2 xd xls xlsx xz z zip",
);

/// What is shown otherwise than as text.
const KINDS: &[&str] = &["gif", "ipynb", "jpeg", "jpg", "pdf", "png", "webp"];

/// The kind of file that a name promises.
fn kind_of(path: &str) -> &str {
    let end = Path::new(path).extension();
    end.and_then(std::ffi::OsStr::to_str).unwrap_or_default()
}

/// Whether a path leads to the outputs of tasks through a link: such an output is not read.
fn is_linked_output(ctx: &Context, path: &Path) -> bool {
    let output = ctx.output_file("");
    let Some(tasks) = Path::new(&output).parent() else {
        return false;
    };
    let leads_there = tasks
        .canonicalize()
        .is_ok_and(|tasks| path.canonicalize().is_ok_and(|path| path.starts_with(tasks)));
    leads_there && !path.starts_with(tasks)
}

/// `Read`.
pub(super) async fn read(ctx: &Context, by: &Viewer, input: &Value, real: bool) -> ToolOutcome {
    let given = input["file_path"].as_str().unwrap_or_default();
    let path = absolute(ctx, given);
    if real && Path::new(&path).is_dir() {
        return ToolOutcome::error(format!("EISDIR: illegal operation on a directory, read '{path}'"));
    }
    if real && is_linked_output(ctx, Path::new(&path)) {
        return ToolOutcome::error(format!("task output swap refused: {path} is a link"));
    }
    let Some(bytes) = load_bytes(ctx, &path, real).await else {
        let why = impossible(&path, "open", real);
        return ToolOutcome::error(why.unwrap_or_else(|| no_such_file(ctx, &path, real)));
    };
    let (content, flaw) = edits::decoded(&bytes);
    let (is_limited, is_all) = (input["limit"].is_u64(), input["allow_large"] == true);
    let too_much = |what: String, most: &str| {
        ToolOutcome::error(format!(
            "File content ({what}) exceeds maximum allowed {most}. Read parts of it by offset and limit, or all that fits by \
             allow_large."
        ))
    };
    if content.len() > LARGEST && !is_limited && !is_all {
        return too_much(size(content.len()), "size (256KB)");
    }
    let seen = content.clone();
    let content = edits::plain(content.trim_start_matches(edits::MARK));
    let content = content.strip_suffix('\r').unwrap_or(&content);
    let lines: Vec<&str> = content.split('\n').collect();
    let first = input["offset"].as_u64().unwrap_or(1) as usize;
    let most = input["limit"].as_u64().map_or(usize::MAX, |most| most as usize);
    let mut shown: Vec<&str> = lines
        .iter()
        .skip(first.saturating_sub(1))
        .take(most)
        .copied()
        .collect();
    let tokens = tokens_of(&shown.join("\n"));
    let is_cut = tokens > MOST_TOKENS && !is_all;
    if is_cut && (is_limited || first > 1) {
        return too_much(format!("{tokens} tokens"), "tokens (25000)");
    }
    if is_cut {
        shown.truncate(shown.len() * MOST_TOKENS * 85 / 100 / tokens);
    }
    let numbered = shown.iter().enumerate();
    let numbered =
        numbered.map(|(n, line)| format!("{}\t{}", n + first, line.strip_suffix('\r').unwrap_or(line)));
    let numbered: Vec<String> = numbered.collect();
    let seen = SeenFile {
        content: seen,
        whole: shown.len() == lines.len(),
        by_read: true,
    };
    has_seen(&mut ctx.state(), by, path, seen);
    let part = shown.join("\n");
    let mut details = json!({"type": "text", "file": {
        "filePath": given, "content": part, "numLines": shown.len(), "startLine": first, "totalLines": lines.len(),
    }});
    if is_cut {
        details["file"]["truncatedByTokenCap"] = json!(true);
    }
    let warning = match lines.len() {
        count if first > count => format!(
            "the file exists but is shorter than the provided offset ({first}). The file has {count} lines."
        ),
        _ if content.is_empty() => "the file exists but the contents are empty.".to_owned(),
        _ => {
            let note =
                flaw.map(|flaw| format!("\n\n[This file {flaw}. Edit and Write refuse to change it.]"));
            return file_outcome(numbered.join("\n") + &note.unwrap_or_default(), details);
        }
    };
    let text = format!("<system-reminder>Warning: {warning}</system-reminder>");
    file_outcome(text, details)
}

/// `Write`.
pub(super) async fn write(ctx: &Context, by: &Viewer, input: &Value, real: bool) -> ToolOutcome {
    let given = input["file_path"].as_str().unwrap_or_default();
    let path = absolute(ctx, given);
    let content = input["content"].as_str().unwrap_or_default();
    // Somebody may have named another file behind the check.
    if let Some(why) = unknown(ctx, by, &path, real).await {
        return ToolOutcome::error(why);
    }
    if let Some(why) = no_way(&path, real).or(unwritable(ctx, &path, real).await) {
        return ToolOutcome::error(why);
    }
    let original = load(ctx, &path, real).await;
    files::remember(ctx, &path, original.as_ref(), real);
    let is_marked = |text: &str| text.starts_with(edits::MARK);
    let content = match &original {
        Some(original) if is_marked(original) && !is_marked(content) => format!("{}{content}", edits::MARK),
        _ => content.to_owned(),
    };
    let content = content.as_str();
    if path.starts_with(&plans::directory(ctx)) {
        ctx.state().plan = Some((path.clone(), real));
    }
    if let Err(error) = store(ctx, &path, content, real).await {
        return ToolOutcome::error(told(&error, "open", &path));
    }
    let seen = SeenFile {
        content: content.to_owned(),
        whole: true,
        by_read: false,
    };
    has_seen(&mut ctx.state(), by, path, seen);
    // A file with nothing in it counts as new.
    let original = original.filter(|original| !original.is_empty());
    let original = original.as_deref().map(edits::plain);
    let (kind, text, changes) = match &original {
        None => (
            "create",
            format!("File created successfully at: {given}{KNOWN}"),
            json!([]),
        ),
        Some(before) => (
            "update",
            format!("The file {given} has been updated successfully.{KNOWN}"),
            edits::patch(before, content),
        ),
    };
    let details = json!({
        "type": kind, "filePath": given, "content": content, "structuredPatch": changes, "originalFile": original,
        "userModified": false,
    });
    file_outcome(text, details)
}

/// `Edit`.
pub(super) async fn edit(ctx: &Context, by: &Viewer, input: &Value, real: bool) -> ToolOutcome {
    let given = input["file_path"].as_str().unwrap_or_default();
    let path = absolute(ctx, given);
    let (old, new) = (
        input["old_string"].as_str().unwrap_or_default(),
        input["new_string"].as_str().unwrap_or_default(),
    );
    let all = input["replace_all"] == true;
    let content = load(ctx, &path, real).await;
    files::remember(ctx, &path, content.as_ref(), real);
    let is_new = content.is_none();
    let is_stale = is_stale(ctx, by, &path, real).await;
    // Somebody may have changed the input behind the check.
    let content = match content {
        None if !old.is_empty() => return ToolOutcome::error(no_such_file(ctx, &path, real)),
        Some(content) if old.is_empty() && !content.trim().is_empty() => {
            return ToolOutcome::error("Cannot create new file - file already exists.");
        }
        content => content.unwrap_or_default(),
    };
    let text = edits::plain(&content);
    let (meant, edited) = if old.is_empty() {
        (String::new(), new.to_owned())
    } else {
        let Some(meant) = edits::meant(&text, old) else {
            return ToolOutcome::error(format!("String to replace not found in file.\nString: {old}"));
        };
        let edited = edits::replaced(&text, old, &meant, new, all);
        (meant, edited)
    };
    let stored = edits::with_ends_of(&content, &edited);
    if let Some(why) = no_way(&path, real) {
        return ToolOutcome::error(why);
    }
    if let Err(error) = store(ctx, &path, &stored, real).await {
        return ToolOutcome::error(told(&error, "open", &path));
    }
    let known = {
        let mut state = ctx.state();
        let before = seen(&state, by, &path);
        let whole = is_new || before.is_some_and(|seen| seen.whole && !is_stale);
        if is_new || before.is_some() {
            let seen = SeenFile {
                content: stored,
                whole,
                by_read: false,
            };
            has_seen(&mut state, by, path, seen);
        }
        whole
    };
    let mut details = json!({
        "filePath": given, "oldString": meant, "newString": new, "originalFile": text,
        "structuredPatch": edits::patch(&text, &edited), "userModified": false, "replaceAll": all,
    });
    if !known {
        details["contentNotInModelContext"] = json!(true);
        if is_stale {
            details["staleRecovered"] = json!(true);
        }
    }
    let done = if all {
        format!("The file {given} has been updated. All occurrences were successfully replaced.")
    } else {
        format!("The file {given} has been updated successfully.")
    };
    let note = match (known, is_stale) {
        (true, _) => KNOWN,
        (false, true) => RECOVERED,
        (false, false) => "",
    };
    file_outcome(format!("{done}{note}"), details)
}
