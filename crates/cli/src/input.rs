//! The prompt: from the command line, from standard input, from files.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use outrigger::{Prompt, Session};
use tokio::sync::oneshot;

use crate::agent::usage;
use crate::exit::{Failure, Status};

/// The most that is read from standard input, in bytes.
const MOST: u64 = 10 * 1024 * 1024;

/// How long standard input may stay silent when there is a prompt besides: a pipe that somebody left open is no input.
const SILENCE: Duration = Duration::from_secs(3);

/// What was asked, not yet a prompt: whether it is a command only the session can tell.
#[derive(Debug)]
pub(crate) struct PromptInput {
    /// The text of the command line.
    argument: Option<String>,
    /// What came on standard input.
    piped: Option<String>,
}

impl PromptInput {
    /// Takes the prompt from the command line, and from standard input where that is a pipe or a file.
    ///
    /// # Errors
    /// When there is none, or standard input is too long or no text.
    pub(crate) async fn read(argument: Option<String>) -> Result<Self, Failure> {
        let (argument, wait) = match argument {
            Some(dash) if dash == "-" => (None, None),
            Some(text) if text.trim().is_empty() => return Err(usage("the prompt is empty".to_owned())),
            Some(text) => (Some(text), Some(SILENCE)),
            None if io::stdin().is_terminal() => {
                return Err(usage(
                    "there is no prompt: give one as the argument, or pipe it in".to_owned(),
                ));
            }
            None => (None, None),
        };
        if argument.is_some() && !is_piped() {
            return Ok(Self {
                argument,
                piped: None,
            });
        }
        let piped = read_stdin(wait).await?.filter(|text| !text.trim().is_empty());
        if argument.is_none() && piped.is_none() {
            return Err(usage("there is no prompt: standard input is empty".to_owned()));
        }
        Ok(Self { argument, piped })
    }

    /// How a command is run that the prompt only looks like.
    pub(crate) fn way_on(&self) -> &'static str {
        match self.argument {
            Some(_) => WITHOUT_BLANK,
            None => "as the argument of `outrigger run`, it is run",
        }
    }

    /// The prompt, with images and files.
    ///
    /// # Errors
    /// When one of them can't be taken.
    pub(crate) async fn prompt(
        self,
        session: &Session,
        images: &[PathBuf],
        files: &[PathBuf],
    ) -> Result<Prompt, Failure> {
        let mut prompt = match (self.argument, self.piped) {
            (Some(text), None) => prompt_of(session, &text),
            // As a document: what somebody pipes in is to be looked at, and no `@file` in it is opened.
            (Some(text), Some(piped)) => prompt_of(session, &text).document(piped),
            (None, piped) => Prompt::text(piped.unwrap_or_default()),
        };
        for image in images {
            prompt = prompt.image_file(image).await?;
        }
        for file in files {
            prompt = prompt.file(file).await?;
        }
        Ok(prompt)
    }
}

/// A text that somebody typed: a command if it begins with `/` and the CLI knows it, else text.
pub(crate) fn prompt_of(session: &Session, text: &str) -> Prompt {
    if let Some(rest) = text.strip_prefix('/') {
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if session.command_names().iter().any(|known| known == name) {
            return Prompt::command(name, arguments.trim());
        }
    }
    Prompt::text(text)
}

/// How a command in a text that begins so is run, where [`prompt_of`] takes it for none.
pub(crate) const WITHOUT_BLANK: &str = "without the blank before it, it is run";

/// Whether standard input is something that ends: a pipe, a socket or a file, but no terminal and no device.
fn is_piped() -> bool {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        use std::os::unix::fs::FileTypeExt as _;

        let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else {
            return false;
        };
        let kind = std::fs::File::from(stdin).metadata().map(|meta| meta.file_type());
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket() || kind.is_file())
    }
    #[cfg(not(unix))]
    {
        !io::stdin().is_terminal()
    }
}

/// Reads standard input to its end; `None` if not a byte came in time.
async fn read_stdin(silence: Option<Duration>) -> Result<Option<String>, Failure> {
    let (began, begun) = oneshot::channel();
    let (ended, end) = oneshot::channel();
    // A thread of its own: a read from a pipe cannot be taken back, and must not keep this program from ending.
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut bytes = vec![0; 1];
        let read = match stdin.read(&mut bytes) {
            Ok(count) => {
                bytes.truncate(count);
                // If nobody waits any more, nobody needs to know.
                let _ = began.send(());
                stdin.take(MOST).read_to_end(&mut bytes).map(|_| bytes)
            }
            Err(error) => Err(error),
        };
        let _ = ended.send(read);
    });
    if let Some(silence) = silence
        && tokio::time::timeout(silence, begun).await.is_err()
    {
        eprintln!("outrigger: nothing comes on standard input; going on without it");
        return Ok(None);
    }
    let bytes = end
        .await
        .context("the reader of standard input is gone")?
        .context("cannot read standard input")?;
    if bytes.len() as u64 > MOST {
        return Err(usage(format!(
            "standard input is longer than {MOST} bytes; put it into a file and name that in the prompt"
        )));
    }
    let text = String::from_utf8(bytes)
        .context("standard input is not UTF-8 text; attach files by --file")
        .map_err(|error| Failure::new(Status::Usage, error))?;
    Ok(Some(text))
}
