//! `outrigger sessions export`.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use outrigger::sessions::{Error, MessageOptions, SessionFile};

use super::conversation_markdown;
use super::find::Named;
use super::progress::Bar;
use super::show_session::tell_of_damage;
use crate::agent::usage;
use crate::exit::{CommandResult, Failure, Status};

/// Write a session as one file, which `import` takes here or on another machine.
///
/// The file has the transcript, subagents, the undo history of files and the list of tasks. It has all that was said, so only its owner can read it. A file that is there already is left alone.
#[derive(Debug, clap::Args)]
pub(super) struct Export {
    #[command(flatten)]
    named: Named,
    /// The file to write; `-` is standard output.
    file: PathBuf,
    /// The transcript alone as it is, in JSON with a record a line. `import` takes that, too.
    #[arg(long, conflicts_with = "markdown")]
    jsonl: bool,
    /// The conversation as Markdown, for people. `import` does not take that.
    #[arg(long)]
    markdown: bool,
}

impl Export {
    pub(super) fn run(self) -> CommandResult {
        let (_, session) = self.named.find()?;
        let mut bar = Bar::new(false);
        if self.file == Path::new("-") {
            let stdout = io::stdout().lock();
            if stdout.is_terminal() && !self.markdown {
                return Err(usage("an export is not for terminals: name a file".to_owned()));
            }
            let mut out = BufWriter::new(stdout);
            self.write(&session, &mut out, &mut bar)?;
            out.flush()?;
            return Ok(Status::Success);
        }
        let shown = self.file.display();
        let cannot = || format!("cannot write {shown}");
        let is_there =
            || anyhow::anyhow!("{shown} is there already, and an export replaces no file: name another");
        if self.file.is_dir() {
            return Err(anyhow::anyhow!("{shown} is a directory: name a file in it").into());
        }
        // Before all of a session is written.
        if self.file.symlink_metadata().is_ok() {
            return Err(is_there().into());
        }
        let directory = self.file.parent().filter(|path| !path.as_os_str().is_empty());
        // A temporary file is its owner's alone, and nothing is half there.
        let file =
            tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new("."))).with_context(cannot)?;
        let mut out = BufWriter::new(file.as_file());
        self.write(&session, &mut out, &mut bar)?;
        out.flush().with_context(cannot)?;
        drop(out);
        file.as_file().sync_all().with_context(cannot)?;
        match file.persist_noclobber(&self.file) {
            Ok(_) => Ok(Status::Success),
            Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Err(is_there().into()),
            Err(failed) => Err(anyhow::Error::new(failed.error).context(cannot()).into()),
        }
    }

    fn write(&self, session: &SessionFile, out: &mut dyn Write, bar: &mut Bar) -> Result<(), Failure> {
        if self.markdown {
            let mut messages = session.messages(&MessageOptions::new())?;
            tell_of_damage(&messages);
            let (mut nth, of) = (0, messages.count_all());
            return conversation_markdown::write(session, &mut messages, false, out, &mut || {
                nth += 1;
                bar.message(nth, of, session.size)
            });
        }
        let mut observe = |progress| bar.observe(progress);
        let written = if self.jsonl {
            session.export_jsonl_to_observed(out, &mut observe)
        } else {
            session.export_to_observed(out, &mut observe)
        };
        written.map_err(|error| match error {
            // Nobody reads standard output any more, which is told by its own status.
            Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => source.into(),
            error => bar.failure(error),
        })
    }
}
