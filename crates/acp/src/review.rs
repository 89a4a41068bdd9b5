//! Edits in the editor's own review: what the CLI's tools write goes through `fs/write_text_file` of the editor.
//!
//! The CLI decides, asks the user and writes, as always. Behind that, a hook puts the old text back and lets the editor write the new one.
//! The CLI waits for the hook, and then knows what is on the disk. Whatever goes wrong, the file has the CLI's text in the end: after an
//! error or a cancel at once, and after a crash as soon as a session is opened (see [`pending`]).

mod pending;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use outrigger::Options;
use outrigger::hooks::{
    self, HookOutput, OnFailure, PostToolUseInput, PostToolUseOutput, PreToolUseInput, PreToolUseOutput,
    event,
};
use outrigger::protocol::RawJson;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::pending::{FinalText, Pending};
use crate::buffers;
use crate::client::{Client, Connection};
use crate::config::Config;

/// The tools whose edits are reviewed. Editors show a notebook in another form than its file.
const TOOLS: &str = "Write|Edit|MultiEdit";

/// How long the editor may take to write, which may include a review. The hook has ten minutes.
const REVIEW: Duration = Duration::from_secs(9 * 60);

/// How long the editor may take to tell its text of a file.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest text that goes through the editor, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// How many calls may be between their two hooks. A call beyond that is not reviewed.
const MOST: usize = 16;

/// Whether edits go through the editor: the configuration or the editor wants it, and the editor can write files.
fn is_wanted(config: &Config, client: &Client) -> bool {
    let capabilities = client.capabilities();
    let own = capabilities.meta.as_ref().and_then(|meta| meta.get("claudeCode"));
    let told = own.and_then(|own| own.get("reviewEdits")?.as_bool());
    let can = capabilities.fs.write_text_file && matches!(client.connection(), Connection::V1(_));
    can && told.unwrap_or(config.review_edits)
}

/// Adds the hooks for a session, if its edits go through the editor.
pub(crate) fn add_to(
    options: Options,
    config: &Config,
    client: &Client,
    session: &acp::SessionId,
    tasks: &TaskTracker,
) -> Options {
    if !is_wanted(config, client) {
        return options;
    }
    let Some(place) = place(&options) else {
        tracing::warn!("edits are not reviewed: the CLI's config directory is not known");
        return options;
    };
    let reviewer = Arc::new(Reviewer {
        client: client.clone(),
        session: session.clone(),
        place,
        tasks: tasks.clone(),
        before: Mutex::default(),
        turn: tokio::sync::Mutex::default(),
    });
    let first = Arc::clone(&reviewer);
    let before = hooks::pre_tool_use(move |input, _| {
        let reviewer = Arc::clone(&first);
        async move { reviewer.before(input).await }
    });
    let after = hooks::post_tool_use(move |input, _| {
        let reviewer = Arc::clone(&reviewer);
        async move { reviewer.after(input).await }
    });
    options
        // A review guards nothing: the CLI has decided about the call.
        .hook(before.matcher(TOOLS).on_failure(OnFailure::Continue))
        .hook(after.matcher(TOOLS).on_failure(OnFailure::Continue))
}

/// Finishes the edits that a crash of this program interrupted.
pub(crate) async fn recover(options: &Options) {
    if let Some(place) = place(options)
        && let Err(error) = tokio::task::spawn_blocking(move || pending::recover(&place)).await
    {
        tracing::warn!(%error, "interrupted edits were not looked for");
    }
}

/// Where pending edits are kept.
fn place(options: &Options) -> Option<PathBuf> {
    let sessions = options.sessions().ok()?;
    Some(sessions.config_dir().join("outrigger").join("acp").join("edits"))
}

struct Reviewer {
    client: Client,
    session: acp::SessionId,
    place: PathBuf,
    /// The end of the connection waits for these.
    tasks: TaskTracker,
    /// The texts before calls that run.
    before: Mutex<VecDeque<FileBefore>>,
    /// One review at a time.
    turn: tokio::sync::Mutex<()>,
}

/// A file before a call.
struct FileBefore {
    call: String,
    path: PathBuf,
    /// `None` if there is no such file.
    text: Option<String>,
}

/// How a review ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Review {
    /// The file has the CLI's text.
    Kept,
    /// The file has the old text.
    Rejected,
    /// The file has another text.
    Changed,
}

impl Reviewer {
    /// A tool is about to write: remembers the text on disk. Denies the call if the editor has unsaved changes, which would be lost.
    async fn before(&self, input: PreToolUseInput) -> HookOutput<event::PreToolUse> {
        let (Some(call), Some(path)) = (input.tool_use_id, target(&input.tool_input)) else {
            return HookOutput::none();
        };
        // Several subagents may edit at once.
        if input.agent_id.is_some() {
            return HookOutput::none();
        }
        let Ok(text) = read(&path).await else {
            return HookOutput::none();
        };
        if self.is_unsaved(&path, text.as_deref().unwrap_or_default()).await {
            return HookOutput::specific(PreToolUseOutput::deny(format!(
                "{} has unsaved changes in the user's editor, which an edit would overwrite. Ask the user to save or to discard them.",
                path.display()
            )));
        }
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        if before.len() == MOST {
            before.pop_front();
        }
        before.push_back(FileBefore { call, path, text });
        HookOutput::none()
    }

    async fn is_unsaved(&self, path: &Path, saved: &str) -> bool {
        if !self.client.capabilities().fs.read_text_file {
            return false;
        }
        let Some(asked) = self.client.read_text_file(&self.session, path) else {
            return false;
        };
        // An editor has no text of a file that does not exist.
        matches!(tokio::time::timeout(PATIENCE, asked).await,
            Ok(Ok(text)) if buffers::plain(&text.content) != buffers::plain(saved))
    }

    /// A tool has written: lets the editor write it.
    async fn after(self: Arc<Self>, input: PostToolUseInput) -> HookOutput<event::PostToolUse> {
        let Some(before) = input.tool_use_id.and_then(|call| self.take(&call)) else {
            return HookOutput::none();
        };
        // When this future is dropped, the review ends at once; but it ends.
        let stop = CancellationToken::new();
        let _dropped = stop.clone().drop_guard();
        let path = before.path.clone();
        let told = match self.tasks.spawn(Arc::clone(&self).review(before, stop)).await {
            Ok(Ok(Review::Kept)) => return HookOutput::none(),
            Ok(Ok(Review::Rejected)) => {
                "The user rejected this edit in the editor, or has not saved it: on disk, the file is as it was before."
            }
            Ok(Ok(Review::Changed)) => {
                "The user or the editor changed this edit while it was written: the file has another text now. Read it before you edit it again."
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, path = %path.display(), "an edit did not go through the editor");
                return HookOutput::none();
            }
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "the review of an edit broke off");
                return HookOutput::none();
            }
        };
        let told = format!("{}: {told}", path.display());
        HookOutput::specific(PostToolUseOutput::default().additional_context(told))
    }

    fn take(&self, call: &str) -> Option<FileBefore> {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let position = before.iter().position(|before| before.call == call)?;
        before.remove(position)
    }

    async fn review(self: Arc<Self>, before: FileBefore, stop: CancellationToken) -> std::io::Result<Review> {
        let FileBefore { path, text: old, .. } = before;
        let _turn = tokio::select! {
            turn = self.turn.lock() => turn,
            () = stop.cancelled() => return Ok(Review::Kept),
        };
        let new = match read(&path).await {
            Ok(Some(new)) if old.as_ref() != Some(&new) => new,
            _ => return Ok(Review::Kept),
        };
        let (place, text) = (self.place.clone(), new.clone());
        let at = path.clone();
        let pending = blocking(move || Pending::begin(&place, &at, old, text)).await?;
        let is_written = match self.client.write_text_file(&self.session, &path, new) {
            None => false,
            Some(asked) => tokio::select! {
                told = tokio::time::timeout(REVIEW, asked) => match told {
                    Ok(Ok(())) => true,
                    Ok(Err(error)) => {
                        tracing::info!(%error, path = %path.display(), "the editor did not write a file");
                        false
                    }
                    Err(_) => {
                        tracing::warn!(path = %path.display(), "the editor did not write a file in time");
                        false
                    }
                },
                () = stop.cancelled() => false,
            },
        };
        let ending = blocking(move || pending.end(is_written)).await?;
        Ok(match ending {
            FinalText::New => Review::Kept,
            FinalText::Old => Review::Rejected,
            FinalText::Other => Review::Changed,
        })
    }
}

/// The file that a call writes.
fn target(input: &RawJson) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct FilePathInput {
        file_path: PathBuf,
    }
    let target = input.decode::<FilePathInput>().ok()?.file_path;
    target.is_absolute().then_some(target)
}

/// The text of a file; `None` if there is none.
///
/// # Errors
/// When it can't be read, is too long, or is no text that an editor would write as it is.
async fn read(path: &Path) -> std::io::Result<Option<String>> {
    let path = path.to_owned();
    blocking(move || {
        let text = pending::text_of(&path, LONGEST)?;
        match text {
            // Editors do not show it, and may drop or double it.
            Some(text) if text.starts_with('\u{feff}') => {
                Err(std::io::Error::other("it has a byte order mark"))
            }
            text => Ok(text),
        }
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(std::io::Error::other(error)),
    }
}
