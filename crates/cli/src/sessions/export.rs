//! `outrigger sessions export`.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use outrigger::sessions::{MessageOptions, SessionFile};

use super::find::Named;
use super::markdown;
use super::progress::Progress;
use super::show::tell_of_damage;
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
        let progress = Progress::of_bytes(session.size);
        if self.file == Path::new("-") {
            let stdout = io::stdout().lock();
            if stdout.is_terminal() && !self.markdown {
                return Err(usage("an export is not for terminals: name a file".to_owned()));
            }
            let mut out = BufWriter::new(progress.writer(stdout));
            self.write(&session, &mut out)?;
            out.flush()?;
            return Ok(Status::Success);
        }
        let cannot = || format!("cannot write {}", self.file.display());
        let directory = self.file.parent().filter(|path| !path.as_os_str().is_empty());
        // A temporary file is its owner's alone, and nothing is half there.
        let file =
            tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new("."))).with_context(cannot)?;
        let mut out = BufWriter::new(progress.writer(file.as_file()));
        self.write(&session, &mut out)?;
        out.flush().with_context(cannot)?;
        drop(out);
        file.as_file().sync_all().with_context(cannot)?;
        file.persist_noclobber(&self.file).with_context(cannot)?;
        Ok(Status::Success)
    }

    fn write(&self, session: &SessionFile, out: &mut dyn Write) -> Result<(), Failure> {
        if self.markdown {
            let mut messages = session.messages(&MessageOptions::new())?;
            tell_of_damage(&messages);
            return markdown::write(session, &mut messages, false, out);
        }
        if self.jsonl {
            let reading = || session.path.display().to_string();
            let mut transcript = File::open(&session.path).with_context(reading)?;
            io::copy(&mut transcript, out)?;
            return Ok(());
        }
        session.export_to(out)?;
        Ok(())
    }
}
