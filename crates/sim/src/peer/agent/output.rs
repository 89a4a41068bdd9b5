//! The output of a command: the result of its call, and the file of its task.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;

use super::brain::ToolOutcome;
use super::context::Context;
use super::{disk, shell};
use crate::fields::JsonFields as _;

/// What a command has written so far. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Output(Arc<Mutex<Written>>);

#[derive(Default)]
struct Written {
    /// The file of the command's task, which the CLI has for each command while it runs.
    file: PathBuf,
    /// Whether the file is on the disk; otherwise it is in memory.
    real: bool,
    /// Whether the command is a task in the background, which keeps its file.
    is_of_task: bool,
    /// Whether the file has what was written, and not `bytes`.
    in_file: bool,
    bytes: Vec<u8>,
    /// The directory that the shell was taken back to, as it had left those that it may use.
    reset: Option<String>,
}

impl Written {
    /// Adds to the output. Gives the content of a file in memory. Where the disk takes no more, the command goes on all the same.
    fn push(&mut self, bytes: &[u8]) -> Option<(String, String)> {
        if self.in_file {
            let file = OpenOptions::new().append(true).open(&self.file);
            let _ = file.and_then(|mut file| file.write_all(bytes));
            return None;
        }
        self.bytes.extend_from_slice(bytes);
        let path = || self.file.to_string_lossy().into_owned();
        self.is_of_task.then(|| (path(), self.text()))
    }

    fn text(&self) -> String {
        let on_disk = self.in_file.then(|| fs::read(&self.file).unwrap_or_default());
        String::from_utf8_lossy(on_disk.as_ref().unwrap_or(&self.bytes)).into_owned()
    }

    fn create(&mut self) -> io::Result<File> {
        let open = || {
            if let Some(directory) = self.file.parent() {
                fs::create_dir_all(directory)?;
            }
            OpenOptions::new().create(true).append(true).open(&self.file)
        };
        // A session that ends may take an empty directory away in between.
        let file = open().or_else(|_| open())?;
        self.in_file = true;
        Ok(file)
    }
}

impl Output {
    /// The output of a command with this file.
    pub(super) fn new(file: &str, real: bool, in_background: bool) -> Self {
        let output = Self::default();
        let written = Written {
            file: PathBuf::from(file),
            real,
            is_of_task: in_background,
            ..Written::default()
        };
        *output.written() = written;
        output
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what the command has written. Nobody may hold the state.
    pub(super) fn push(&self, ctx: &Context, bytes: &[u8]) {
        let in_memory = self.written().push(bytes);
        ctx.state().files.extend(in_memory);
    }

    /// What the command has written so far.
    pub(super) fn text(&self) -> String {
        self.written().text()
    }

    /// Adds that the shell was taken back to this directory.
    pub(super) fn set_reset(&self, directory: &Path) {
        self.written().reset = Some(directory.display().to_string());
    }

    /// The file that a shell writes to. Commands that it leaves running may go on writing there, and nobody waits for them.
    pub(super) fn open(&self) -> io::Result<(File, OpenOutput<'_>)> {
        let file = self.written().create()?;
        Ok((file, OpenOutput(self)))
    }

    /// Takes the file away, unless it is that of a task in the background.
    fn close(&self) {
        let mut written = self.written();
        if written.in_file && !written.is_of_task {
            written.bytes = fs::read(&written.file).unwrap_or_default();
            written.in_file = false;
            let _ = fs::remove_file(&written.file);
        }
    }

    /// Whether the command is a task in the background.
    pub(super) fn is_of_task(&self) -> bool {
        self.written().is_of_task
    }

    /// The command goes on in the background. Nobody may hold the state.
    pub(super) fn keep(&self, ctx: &Context) {
        let mut written = self.written();
        written.is_of_task = true;
        let so_far = std::mem::take(&mut written.bytes);
        if written.real {
            // Where there is no file, the output is in memory.
            let _ = written.create();
        }
        let in_memory = written.push(&so_far);
        drop(written);
        ctx.state().files.extend(in_memory);
    }

    /// Ends the file of a task with a line about the end of the command. Nobody may hold the state.
    pub(super) fn end(&self, ctx: &Context, how: &str) {
        self.push(ctx, format!("\n[{how}]\n").as_bytes());
    }
}

/// An output that a shell writes to. Dropping it takes the file away, unless it is that of a task in the background.
pub(super) struct OpenOutput<'a>(&'a Output);

impl Drop for OpenOutput<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Commands that write nothing if they succeed.
const SILENT: &[&str] = &[
    "cd", "chgrp", "chmod", "chown", "cp", "export", "ln", "mkdir", "mv", "rm", "rmdir", "touch", "unset",
    "wait",
];

/// Whether a line has only commands that write nothing if they succeed.
pub(super) fn is_silent(line: &str) -> bool {
    let mut commands = shell::parse(line, Path::new("~")).commands;
    // The CLI does not look into `$(…)`, and takes no command in brackets for a silent one.
    commands.retain(|command| !command.nested);
    let is_silent = |command: &shell::ShellCommand| {
        let name = command.name();
        SILENT.contains(&name) && command.text.split_whitespace().any(|word| word == name)
    };
    !commands.is_empty() && commands.iter().all(is_silent) && !line.trim_start().starts_with(['{', '!'])
}

/// The result of a command that has ended with this code.
pub(super) fn command_outcome(command: &str, code: i32, output: &Output) -> ToolOutcome {
    let (text, reset) = {
        let written = output.written();
        (written.text(), written.reset.clone())
    };
    let stdout = text.trim_end().trim_start_matches(['\r', '\n']);
    let stderr = reset.map_or_else(String::new, |directory| {
        format!("\nShell cwd was reset to {directory}")
    });
    let text = format!("{stdout}{stderr}");
    let text = text.trim_start_matches('\n');
    let meaning = shell::meaning(command, code);
    if code != 0 && meaning.is_none() {
        return ToolOutcome::error(format!("Exit code {code}\n{text}").trim_end());
    }
    let mut outcome = ToolOutcome::text(match text {
        "" => "(Bash completed with no output)",
        text => text,
    });
    outcome.is_error = Some(false);
    let mut details = json!({
        "stdout": stdout, "stderr": stderr, "interrupted": false, "isImage": false, "noOutputExpected": is_silent(command),
    });
    details.put("returnCodeInterpretation", meaning);
    outcome.with_details(details)
}

/// How much of an output the model reads, in characters; of a longer one it reads the beginning.
const LONGEST: usize = 30_000;
const BEGINNING: usize = 2_000;

/// How much of an error it reads: as much from both ends.
const LONGEST_ERROR: usize = 10_000;

fn beginning(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map_or(text.len(), |(end, _)| end);
    &text[..end]
}

/// Keeps a long output in a file, and shows the beginning of it.
pub(super) async fn bounded(
    ctx: &Context,
    mut outcome: ToolOutcome,
    output: &Output,
    real: bool,
) -> ToolOutcome {
    if let Some(text) = outcome
        .content
        .as_str()
        .filter(|_| outcome.is_error == Some(true))
    {
        let (text, half) = (beginning(text, LONGEST), LONGEST_ERROR / 2);
        let length = text.chars().count();
        if length > LONGEST_ERROR {
            let left_out = length - LONGEST_ERROR;
            let end: String = text.chars().skip(length - half).collect();
            let text = format!(
                "{}\n\n... [{left_out} characters truncated] ...\n\n{end}",
                beginning(text, half)
            );
            outcome.content = json!(text);
        }
        return outcome;
    }
    let Some(shown) = outcome.details["stdout"].as_str().map(str::to_owned) else {
        return outcome;
    };
    if shown.chars().count() <= LONGEST {
        return outcome;
    }
    let whole = output.written().text();
    let path = ctx.result_file();
    // Without the file the model still has the beginning.
    let _ = disk::store(ctx, &path, &whole, real).await;
    outcome.content = json!(format!(
        "<persisted-output>\nOutput too large ({}). Full output saved to: {path}\n\nPreview (first 2KB):\n{}\n...\n\
         </persisted-output>",
        disk::size(whole.len()),
        beginning(&shown, BEGINNING)
    ));
    outcome.details["stdout"] = json!(beginning(&shown, LONGEST));
    outcome.details["persistedOutputPath"] = json!(path);
    outcome.details["persistedOutputSize"] = json!(whole.len());
    outcome
}
