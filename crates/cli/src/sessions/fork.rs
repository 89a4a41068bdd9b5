//! `outrigger sessions fork`.

use outrigger::sessions::write::ForkOptions;

use super::find::Named;
use super::made::{Made, MadeOutput};
use super::progress::Bar;
use crate::exit::CommandResult;

/// Copy a conversation into a new session of the same project, which goes its own way from there; its id is written.
#[derive(Debug, clap::Args)]
pub(super) struct Fork {
    #[command(flatten)]
    named: Named,
    /// The id of the message that is to be the last one; `show --json` has them.
    #[arg(long, value_name = "UUID")]
    up_to: Option<String>,
    /// The title; that of the session with ` (fork)` behind it unless given.
    #[arg(long)]
    title: Option<String>,
    #[command(flatten)]
    output: MadeOutput,
}

impl Fork {
    pub(super) fn run(self) -> CommandResult {
        let (_, file) = self.named.find()?;
        let mut options = ForkOptions::new();
        options.up_to_message_id = self.up_to;
        options.title = self.title;
        let progress = Bar::of_work(file.size, "forks", self.output.is_json());
        let fork = file.fork(&options)?;
        progress.finish_and_clear();
        self.output.write(&Made::new(&fork))
    }
}
