//! What is said to the agent.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_protocol::outbound::{Priority, UserMessage, encode_prompt};
use outrigger_protocol::shared::{ContentBlock, MessageContent};
use uuid::Uuid;

use crate::error::{Error, Result};

/// The largest file that [`Prompt::file`] takes, in bytes: 32 MiB.
const MAX_FILE: u64 = 32 * 1024 * 1024;

/// Something about a prompt that may not be what was meant. It was sent all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptWarning {
    /// The text begins like a slash command that the CLI has, and was sent as text: [`Prompt::command`] makes prompts that are
    /// run. A prompt that is [`verbatim`](Prompt::verbatim) means what it says, and is not warned of.
    CommandAsText {
        /// The command's name, without its `/`.
        command: String,
    },
}

impl std::fmt::Display for PromptWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CommandAsText { command } => write!(
                f,
                "`/{command}` is a slash command, and was sent as text; `Prompt::command(\"{command}\", …)` runs it"
            ),
        }
    }
}

/// A prompt: text, images and documents, and how it is to be handed over.
///
/// Text is text: one that begins with `/` is not run as a slash command (such a prompt is sent [`verbatim`](Self::verbatim)), and
/// commands are made by [`command`](Self::command). If it looks like a command of the CLI, the turn
/// [warns](crate::Turn::warnings). In other texts the CLI expands `@file` as usual.
///
/// ```
/// use outrigger::Prompt;
///
/// let prompt = Prompt::text("What is wrong in this picture?").image_url("https://example.com/a.png");
/// let from_str: Prompt = "Why does the build fail?".into();
/// # let _ = (prompt, from_str);
/// ```
#[derive(Debug, Clone)]
pub struct Prompt {
    blocks: Vec<ContentBlock>,
    command: Option<String>,
    verbatim: bool,
    query: bool,
    human: bool,
    uuid: Option<Uuid>,
}

impl Prompt {
    /// A prompt of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::empty().and_text(text)
    }

    /// A slash command, such as `/compact keep the decisions`: the name with or without its `/`, and its arguments.
    ///
    /// Sending it fails, before anything is written, when the CLI did not report a command of this name.
    pub fn command(name: impl Into<String>, arguments: impl AsRef<str>) -> Self {
        let name: String = name.into();
        let name = name.trim_start_matches('/').to_owned();
        let text = format!("/{name} {}", arguments.as_ref());
        Self {
            command: Some(name),
            ..Self::text(text.trim_end())
        }
    }

    /// A prompt of one content block, for one that does not begin with text.
    pub fn of_block(block: ContentBlock) -> Self {
        Self::empty().block(block)
    }

    fn empty() -> Self {
        Self {
            blocks: Vec::new(),
            command: None,
            verbatim: false,
            query: true,
            human: false,
            uuid: None,
        }
    }

    /// Adds a text.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.block(ContentBlock::text(text))
    }

    /// Adds an image by its bytes. `media_type`: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub fn image(self, media_type: &str, bytes: &[u8]) -> Self {
        self.block(ContentBlock::image_base64(media_type, STANDARD.encode(bytes)))
    }

    /// Adds an image by its address, which the API fetches.
    pub fn image_url(self, url: impl Into<String>) -> Self {
        self.block(ContentBlock::image_url(url))
    }

    /// Adds a PDF by its bytes.
    pub fn pdf(self, bytes: &[u8]) -> Self {
        self.block(ContentBlock::pdf_base64(STANDARD.encode(bytes)))
    }

    /// Adds a PDF by its address, which the API fetches.
    pub fn pdf_url(self, url: impl Into<String>) -> Self {
        self.block(ContentBlock::pdf_url(url))
    }

    /// Adds a document of plain text.
    pub fn document(self, text: impl Into<String>) -> Self {
        self.block(ContentBlock::text_document(text))
    }

    /// Adds a file: an image or a PDF by its extension, anything else as a document of text.
    ///
    /// # Cancel safety
    /// Dropping the future drops the prompt, too. The file is only read.
    ///
    /// # Errors
    /// When the file can't be read, is larger than 32 MiB, or is neither image nor PDF nor UTF-8 text.
    pub async fn file(self, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |error| Error::invalid_because(format!("prompt file {}", path.display()), error);
        let (path_buf, max) = (path.to_owned(), MAX_FILE);
        let read = move || {
            let size = std::fs::metadata(&path_buf)?.len();
            if size > max {
                let message = format!("it has {size} bytes, and the limit is {max}");
                return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, message));
            }
            std::fs::read(&path_buf)
        };
        let bytes = tokio::task::spawn_blocking(read)
            .await
            .map_err(|error| failed(error.into()))?
            .map_err(failed)?;
        let extension = path
            .extension()
            .map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        Ok(match extension.as_deref() {
            Some("png") => self.image("image/png", &bytes),
            Some("jpg" | "jpeg") => self.image("image/jpeg", &bytes),
            Some("gif") => self.image("image/gif", &bytes),
            Some("webp") => self.image("image/webp", &bytes),
            Some("pdf") => self.pdf(&bytes),
            _ => {
                let text = String::from_utf8(bytes)
                    .map_err(|error| failed(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))?;
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
                self.block(ContentBlock::text_document(text).titled(name))
            }
        })
    }

    /// Adds a content block as it is, for kinds that have no method here.
    pub fn block(mut self, block: ContentBlock) -> Self {
        self.blocks.push(block);
        self
    }

    /// Has the CLI take the text word for word: no `@file` expansion, no command.
    pub fn verbatim(mut self) -> Self {
        self.verbatim = true;
        self
    }

    /// Says that a person wrote it (`origin`). The CLI gives the words of a person more weight than those of a program: some of
    /// what they may turn on, it turns on for them alone. Do not say it of text that a program made.
    pub fn from_person(mut self) -> Self {
        self.human = true;
        self
    }

    /// Adds it to the conversation without asking the model for an answer; the turn ends at once as
    /// [`Appended`](crate::Verdict::Appended).
    pub fn without_query(mut self) -> Self {
        self.query = false;
        self
    }

    /// Uses this id instead of a fresh one.
    ///
    /// The CLI drops a prompt whose id it has seen before. One that this session has sent already is refused; one from before
    /// the session was resumed ends as [`NoResult`](crate::Verdict::NoResult).
    pub fn uuid(mut self, uuid: Uuid) -> Self {
        self.uuid = Some(uuid);
        self
    }

    /// The command that this prompt is, without its `/`.
    pub(crate) fn command_name(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// The name that its text begins with, if that looks like a command and was not made as one.
    pub(crate) fn looks_like_command(&self) -> Option<&str> {
        let first = self
            .blocks
            .first()
            .filter(|_| self.command.is_none() && !self.verbatim)?;
        let ContentBlock::Text(block) = first else {
            return None;
        };
        let name = block.text.trim_start().strip_prefix('/')?;
        name.split_whitespace()
            .next()
            .filter(|_| !name.starts_with(char::is_whitespace))
    }

    /// The same, to be sent under another id.
    pub(crate) fn without_id(mut self) -> Self {
        self.uuid = None;
        self
    }

    pub(crate) fn id(&self) -> Uuid {
        self.uuid.unwrap_or_else(Uuid::new_v4)
    }

    /// The line on the CLI's stdin.
    pub(crate) fn line(&self, id: Uuid, priority: Priority, verbatim: bool) -> Result<Vec<u8>> {
        // The API refuses blank texts, after the CLI has made a turn of them.
        let blank =
            |block: &ContentBlock| matches!(block, ContentBlock::Text(block) if block.text.trim().is_empty());
        if self.blocks.iter().all(blank) {
            return Err(Error::invalid("prompt: it is empty"));
        }
        // The CLI would run a text that begins with a slash as a command; told that it is composed, it takes it as it is.
        let looks_like_command = self.blocks.iter().any(
            |block| matches!(block, ContentBlock::Text(block) if block.text.trim_start().starts_with('/')),
        );
        let mut message = UserMessage::new(MessageContent::Blocks(self.blocks.clone()))
            .uuid(id.to_string())
            .priority(priority);
        if verbatim || self.verbatim || (self.command.is_none() && looks_like_command) {
            message = message.verbatim();
        }
        if !self.query {
            message = message.without_turn();
        }
        if self.human {
            message = message.from_person();
        }
        encode_prompt(&message).map_err(|error| Error::invalid_because("prompt", error))
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&String> for Prompt {
    fn from(text: &String) -> Self {
        Self::text(text.as_str())
    }
}
