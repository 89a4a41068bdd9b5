//! `outrigger cassette`: recorded sessions, looked at and changed. `outrigger record` and `outrigger replay` make and play them.

mod cassette_draft;
mod check_cassette;
pub(crate) mod record;
mod record_prompts;
pub(crate) mod replay;
mod show_cassette;

use std::path::{Path, PathBuf};

use outrigger_sim::cassette::{Cassette, CassetteError, RedactionRules};

use crate::exit::{CommandResult, Failure, Status};

/// What `outrigger cassette` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Show(show_cassette::ShowCassette),
    Check(check_cassette::CheckCassette),
    Trim(Trim),
    EditIds(EditIds),
}

/// Cut a cassette to its first turns, or leave things out of it; what is left can be played.
#[derive(Debug, clap::Args)]
struct Trim {
    /// The cassette.
    file: PathBuf,
    /// Keep this many turns: up to the result of the last of them, with the end of the session behind it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    turns: Option<u32>,
    /// Leave out partial messages; the whole messages stay.
    #[arg(long)]
    no_stream_events: bool,
    /// Leave out stderr.
    #[arg(long)]
    no_stderr: bool,
    /// Write the cassette here; over the old one unless given.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Replace the ids in a cassette by ones that depend on their order alone, so that recording again changes little of the file.
#[derive(Debug, clap::Args)]
struct EditIds {
    /// The cassette.
    file: PathBuf,
    /// Write the cassette here; over the old one unless given.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What is taken out besides keys, tokens, addresses and the like.
#[derive(Debug, clap::Args)]
struct Redaction {
    /// Take out this text, too.
    #[arg(long = "redact", value_name = "TEXT")]
    literals: Vec<String>,
    /// Take out what matches this regular expression, too.
    #[arg(long = "redact-pattern", value_name = "REGEX")]
    patterns: Vec<String>,
    /// Take out the strings at this place of frames, too: a JSON pointer, in which * stands for any key or index.
    #[arg(long = "redact-pointer", value_name = "POINTER")]
    pointers: Vec<String>,
}

impl Redaction {
    /// Adds these rules to others.
    fn rules(&self, rules: RedactionRules) -> Result<RedactionRules, Failure> {
        let usage = |error| Failure::new(Status::Usage, anyhow::Error::new(error));
        let mut rules = rules;
        for literal in &self.literals {
            rules = rules.literal(literal);
        }
        for pattern in &self.patterns {
            rules = rules.pattern(pattern).map_err(usage)?;
        }
        for pointer in &self.pointers {
            rules = rules.pointer(pointer).map_err(usage)?;
        }
        Ok(rules)
    }
}

/// Runs a subcommand.
pub(crate) async fn run(args: Args) -> CommandResult {
    // Reading files blocks.
    tokio::task::spawn_blocking(move || match args.command {
        Command::Show(show) => show.run(),
        Command::Check(check) => check.run(),
        Command::Trim(trim) => trim.run(),
        Command::EditIds(edit) => edit.run(),
    })
    .await?
}

impl Trim {
    fn run(self) -> CommandResult {
        let mut cassette = read(&self.file)?;
        if let Some(turns) = self.turns {
            cassette.trim_to_turns(turns as usize);
        }
        if self.no_stream_events {
            cassette.without_stream_events();
        }
        if self.no_stderr {
            cassette.without_stderr();
        }
        write(&cassette, self.output.as_deref().unwrap_or(&self.file))
    }
}

impl EditIds {
    fn run(self) -> CommandResult {
        let mut cassette = read(&self.file)?;
        cassette.edit_ids();
        write(&cassette, self.output.as_deref().unwrap_or(&self.file))
    }
}

/// Reads a cassette; the failure has the path.
fn read(path: &Path) -> Result<Cassette, Failure> {
    Cassette::read(path).map_err(|error| {
        let names_path = matches!(error, CassetteError::Unreadable { .. });
        let error = anyhow::Error::new(error);
        let error = match names_path {
            true => error,
            false => error.context(format!("cannot use {}", path.display())),
        };
        Failure::new(Status::Usage, error)
    })
}

/// Writes a cassette so that the file is never half there.
fn write(cassette: &Cassette, path: &Path) -> CommandResult {
    cassette_draft::replace(path, &cassette.to_text())?;
    Ok(Status::Success)
}
