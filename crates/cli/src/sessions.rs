//! `outrigger sessions`: the conversations that the CLI keeps on disk, without starting it.

mod agents;
mod confirm;
mod conversation_markdown;
mod delete;
mod export;
mod find;
mod follow;
mod fork;
mod import;
mod interrupt;
mod list;
mod made;
mod mark;
mod message_pieces;
mod moving;
mod pager;
mod progress;
mod repair;
mod search;
mod show_session;
mod stored;
pub(crate) mod table;
mod talk;
mod top;

use crate::exit::CommandResult;

pub(crate) use find::{Beginnings, Offered, line, offered, offered_agents};
pub(crate) use top::Top;

/// How sessions are found.
const NAMES: &str = "\
A session is named by its id, by the beginning of it (four characters at least, which no other begins with), or by its exact title.
It is looked for in the project at this directory and in the other worktrees of its repository, then in all projects; with --dir in
that project alone. The config directory is that of the CLI: CLAUDE_CONFIG_DIR, or .claude in the home directory.";

/// What `outrigger sessions` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = NAMES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    #[command(visible_alias = "ls")]
    List(list::List),
    Show(show_session::ShowSession),
    Agents(agents::Agents),
    Search(search::Find),
    Follow(follow::Follow),
    Export(export::Export),
    Import(import::Import),
    Fork(fork::Fork),
    Rename(mark::Rename),
    Tag(mark::Tag),
    Archive(mark::Archive),
    Unarchive(mark::Unarchive),
    #[command(visible_alias = "mv")]
    Move(moving::Move),
    Repair(repair::Repair),
    #[command(visible_alias = "rm")]
    Delete(delete::Delete),
    Status(stored::StoreStatus),
    Push(stored::Push),
    Pull(stored::Pull),
}

/// Runs a subcommand.
pub(crate) async fn run(args: Args) -> CommandResult {
    // Reading files blocks.
    tokio::task::spawn_blocking(move || match args.command {
        Command::List(list) => list.run(),
        Command::Show(show) => show.run(),
        Command::Agents(agents) => agents.run(),
        Command::Search(find) => find.run(),
        Command::Follow(follow) => follow.run(),
        Command::Export(export) => export.run(),
        Command::Import(import) => import.run(),
        Command::Fork(fork) => fork.run(),
        Command::Rename(rename) => rename.run(),
        Command::Tag(tag) => tag.run(),
        Command::Archive(archive) => archive.run(),
        Command::Unarchive(unarchive) => unarchive.run(),
        Command::Move(moving) => moving.run(),
        Command::Repair(repair) => repair.run(),
        Command::Delete(delete) => delete.run(),
        Command::Status(status) => status.run(),
        Command::Push(push) => push.run(),
        Command::Pull(pull) => pull.run(),
    })
    .await?
}
