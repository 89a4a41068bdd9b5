//! Prompts.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_protocol::outbound::{Priority, UserMessage, encode_prompt};
use outrigger_protocol::shared::{ContentBlock, MessageContent};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::regular_file;

/// The largest file that [`Prompt::file`] takes, in bytes: 32 MiB.
const MAX_FILE: u64 = 32 * 1024 * 1024;

/// A probable mistake in a prompt. The prompt was sent all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptWarning {
    /// The text begins like a slash command of the CLI, and was sent as text: [`Prompt::command`] makes a prompt that runs a
    /// command. A [`verbatim`](Prompt::verbatim) prompt has no such warning.
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

/// A prompt: text, images and documents, and how to send it.
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

    /// A prompt of one content block, for prompts that do not begin with text.
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

    /// Adds a text before all that the prompt has. A [`command`](Self::command) must not get one: it would be no command any more.
    pub fn before(mut self, text: impl Into<String>) -> Self {
        self.blocks.insert(0, ContentBlock::text(text));
        self
    }

    /// Adds an image by its bytes. `media_type`: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub fn image(self, media_type: &str, bytes: &[u8]) -> Self {
        self.block(ContentBlock::image_base64(media_type, STANDARD.encode(bytes)))
    }

    /// Adds an image by its URL, which the API fetches.
    pub fn image_url(self, url: impl Into<String>) -> Self {
        self.block(ContentBlock::image_url(url))
    }

    /// Adds a PDF by its bytes.
    pub fn pdf(self, bytes: &[u8]) -> Self {
        self.block(ContentBlock::pdf_base64(STANDARD.encode(bytes)))
    }

    /// Adds a PDF by its URL, which the API fetches.
    pub fn pdf_url(self, url: impl Into<String>) -> Self {
        self.block(ContentBlock::pdf_url(url))
    }

    /// Adds a document of plain text.
    pub fn document(self, text: impl Into<String>) -> Self {
        self.block(ContentBlock::text_document(text))
    }

    /// Adds a file. The first bytes decide whether it is an image (PNG, JPEG, GIF or WebP) or a PDF; anything else is a document
    /// of text. A name such as `a.png` for another kind is an error.
    ///
    /// # Cancel safety
    /// Dropping the future drops the prompt, too. The file is only read.
    ///
    /// # Errors
    /// When the file can't be read, is no regular file, is larger than 32 MiB, is neither image nor PDF nor UTF-8 text, or has the extension
    /// of another kind.
    pub async fn file(self, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read_file(path).await?;
        let extension = path
            .extension()
            .map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        let named = match extension.as_deref() {
            Some("png" | "jpg" | "jpeg" | "gif" | "webp") => Some("an image"),
            Some("pdf") => Some("a PDF"),
            _ => None,
        };
        match (MediaType::of(&bytes), named) {
            (Some(MediaType::Image(media_type)), _) => Ok(self.image(media_type, &bytes)),
            (Some(MediaType::Pdf), _) => Ok(self.pdf(&bytes)),
            (None, Some(kind)) => {
                let message = format!("it is named as {kind}, and {NO_MEDIA}");
                Err(bad_file(path, invalid_data(message)))
            }
            (None, None) => {
                let text = String::from_utf8(bytes)
                    .map_err(|_| bad_file(path, invalid_data(format!("{NO_MEDIA}, and no UTF-8 text"))))?;
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
                Ok(self.block(ContentBlock::text_document(text).titled(name)))
            }
        }
    }

    /// Adds the image in a file: PNG, JPEG, GIF or WebP by its first bytes, whatever its name.
    ///
    /// # Cancel safety
    /// Dropping the future drops the prompt, too. The file is only read.
    ///
    /// # Errors
    /// When the file can't be read, is no regular file, is larger than 32 MiB, or is none of these.
    pub async fn image_file(self, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read_file(path).await?;
        match MediaType::of(&bytes) {
            Some(MediaType::Image(media_type)) => Ok(self.image(media_type, &bytes)),
            Some(MediaType::Pdf) => Err(bad_file(
                path,
                invalid_data("it is a PDF, and no image".to_owned()),
            )),
            None => Err(bad_file(path, invalid_data(NO_IMAGE.to_owned()))),
        }
    }

    /// Adds any content block, for kinds without a method here.
    pub fn block(mut self, block: ContentBlock) -> Self {
        self.blocks.push(block);
        self
    }

    /// Sends the text verbatim: no `@file` expansion, no command.
    pub fn verbatim(mut self) -> Self {
        self.verbatim = true;
        self
    }

    /// Declares that a person wrote the prompt (`origin`). The CLI trusts a person's text more than a program's: some features can
    /// only be turned on by a person. Do not set it for text that a program made.
    pub fn from_person(mut self) -> Self {
        self.human = true;
        self
    }

    /// Adds the prompt to the conversation without calling the model; the turn ends at once as
    /// [`Appended`](crate::Verdict::Appended).
    pub fn without_query(mut self) -> Self {
        self.query = false;
        self
    }

    /// Uses this id instead of a fresh one.
    ///
    /// The CLI drops a prompt whose id it has seen before. The SDK rejects an id that this session has sent already; an id from
    /// before the session was resumed ends as [`NoResult`](crate::Verdict::NoResult).
    pub fn uuid(mut self, uuid: Uuid) -> Self {
        self.uuid = Some(uuid);
        self
    }

    /// The command that this prompt is, without its `/`.
    pub fn command_name(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// The name of a command that the prompt's text begins with, if the prompt was not made as a command.
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

    /// The same prompt, to be sent again: with a fresh id, since the CLI drops a prompt whose id it has seen before.
    pub fn without_id(mut self) -> Self {
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

const NO_IMAGE: &str = "its content is no image that the API takes: PNG, JPEG, GIF or WebP";
const NO_MEDIA: &str = "its content is none that the API takes: no PNG, JPEG, GIF or WebP, no PDF";

/// The kinds of content that the API accepts, except text.
enum MediaType {
    /// An image, with its media type.
    Image(&'static str),
    Pdf,
}

impl MediaType {
    /// The kind by the first bytes. File names may be wrong, and the API rejects an image of another kind.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Image("image/png")),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Image("image/jpeg")),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Image("image/gif")),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
                Some(Self::Image("image/webp"))
            }
            [b'%', b'P', b'D', b'F', b'-', ..] => Some(Self::Pdf),
            _ => None,
        }
    }
}

fn bad_file(path: &Path, error: std::io::Error) -> Error {
    Error::invalid_because(format!("prompt file {}", path.display()), error)
}

fn invalid_data(message: String) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, message)
}

async fn read_file(path: &Path) -> Result<Vec<u8>> {
    let path_buf = path.to_owned();
    let read = tokio::task::spawn_blocking(move || regular_file::read(&path_buf, MAX_FILE)).await;
    read.map_err(|error| bad_file(path, error.into()))?
        .map_err(|error| bad_file(path, error))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a file of this name with this content: the media types of the blocks behind the text, or the error.
    async fn taken(name: &str, content: &[u8], as_image: bool) -> std::result::Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        let prompt = Prompt::text("look");
        let prompt = match as_image {
            true => prompt.image_file(&path).await,
            false => prompt.file(&path).await,
        };
        let prompt = prompt.map_err(|error| {
            assert!(error.is_invalid());
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            cause.unwrap_or_else(|| error.to_string())
        })?;
        let blocks = prompt.blocks[1..].iter();
        Ok(blocks
            .map(|block| {
                let block = serde_json::to_value(block).unwrap();
                block["source"]["media_type"].as_str().unwrap().to_owned()
            })
            .collect())
    }

    const IMAGES: [(&str, &[u8]); 5] = [
        ("image/png", b"\x89PNG\r\n\x1a\n..."),
        ("image/jpeg", b"\xff\xd8\xff\xe0..."),
        ("image/gif", b"GIF87a..."),
        ("image/gif", b"GIF89a..."),
        ("image/webp", b"RIFF\x10\0\0\0WEBPVP8 "),
    ];

    #[tokio::test]
    async fn a_file_is_what_it_begins_like() {
        for (media_type, content) in IMAGES {
            for name in ["picture", "picture.png", "picture.jpg", "notes.toml"] {
                for as_image in [false, true] {
                    let taken = taken(name, content, as_image).await;
                    assert_eq!(taken, Ok(vec![media_type.to_owned()]), "{name}");
                }
            }
        }
        let pdf = taken("paper", b"%PDF-1.7\n", false).await;
        assert_eq!(pdf, Ok(vec!["application/pdf".to_owned()]));
        let text = taken("notes.toml", b"a = 1", false).await;
        assert_eq!(text, Ok(vec!["text/plain".to_owned()]));
    }

    #[tokio::test]
    async fn what_is_no_image_is_not_sent_as_one() {
        for (name, content, as_image, why) in [
            ("notes.toml", &b"a = 1"[..], true, "no image that the API takes"),
            ("random.png", b"\x01\x02\x03", true, "no image that the API takes"),
            ("empty.png", b"", true, "no image that the API takes"),
            ("paper.pdf", b"%PDF-1.7", true, "it is a PDF"),
            ("random.png", b"\x01\x02\x03", false, "it is named as an image"),
            ("text.pdf", b"text", false, "it is named as a PDF"),
            ("picture.bmp", b"BM\xff\xfe", false, "and no UTF-8 text"),
        ] {
            let error = taken(name, content, as_image).await.unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
    }

    #[tokio::test]
    #[cfg(unix)]
    async fn what_is_no_file_is_not_read() {
        for prompt in [
            Prompt::text("look").file("/dev/null").await,
            Prompt::text("look").image_file("/dev/null").await,
        ] {
            let cause = std::error::Error::source(&prompt.unwrap_err()).map(ToString::to_string);
            let cause = cause.unwrap();
            assert!(cause.contains("no regular file"), "{cause}");
        }
    }
}
