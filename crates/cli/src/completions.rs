//! `outrigger completions` and `outrigger man`: what a shell and `man` know of the command line.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::command_line::{NAME, command};
use crate::exit::{CommandResult, Status};

/// What `outrigger completions` takes.
///
/// Writes what the shell is to read: `source <(outrigger completions bash)` in `.bashrc`, `outrigger completions fish >
/// ~/.config/fish/completions/outrigger.fish`, a file `_outrigger` in a directory of zsh's `$fpath`, or `outrigger completions powershell |
/// Out-String | Invoke-Expression` in the profile of PowerShell.
#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

/// What `outrigger man` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Manual {
    /// Write a page for each command into this directory, such as `~/.local/share/man/man1`; made if it is missing. The page of
    /// `outrigger` itself goes to standard output unless given.
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Writes the completions of a shell.
pub(crate) fn complete(args: &Completions) -> CommandResult {
    // Into memory first: the generator panics where it can't write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), NAME, &mut script);
    let mut stdout = io::stdout().lock();
    stdout.write_all(&script)?;
    stdout.flush()?;
    Ok(Status::Success)
}

/// Writes the pages.
pub(crate) fn man(args: &Manual) -> CommandResult {
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        Man::new(command()).render(&mut page)?;
        let mut stdout = io::stdout().lock();
        stdout.write_all(&page)?;
        stdout.flush()?;
        return Ok(Status::Success);
    };
    let cannot = || format!("cannot write to {}", directory.display());
    fs::create_dir_all(directory).with_context(cannot)?;
    clap_mangen::generate_to(command(), directory).with_context(cannot)?;
    Ok(Status::Success)
}
