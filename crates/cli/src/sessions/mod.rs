//! `outrigger sessions`: the conversations that the CLI keeps on disk, without starting it.

mod find;
mod list;
mod markdown;
mod pager;
mod said;
mod show;
mod when;

use crate::exit::CommandResult;

/// What `outrigger sessions` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// A session is named by its id, by the beginning of it (four characters at least, no other may begin so), or by its exact title. It
/// is looked for in the project at this directory and in the other worktrees of its repository, then in all projects; with --dir in
/// that project alone. The config directory is that of the CLI: `CLAUDE_CONFIG_DIR`, or `.claude` in the home directory.
#[derive(Debug, clap::Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
}

/// Runs a subcommand.
pub(crate) async fn run(args: Args) -> CommandResult {
    // Reading files blocks.
    tokio::task::spawn_blocking(move || match args.command {
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
    })
    .await?
}
