//! `outrigger send`.

use std::io::{self, IsTerminal as _, Read as _, Write as _};

use anyhow::Context as _;
use outrigger::MessageId;
use outrigger_host_client::{Effect, Prompt};

use super::{HostArgs, NAMES, NewArgs, failure, id_of};
use crate::agent::usage;
use crate::exit::{CommandResult, Failure, Status};
use crate::paint::Paint;
use crate::plain::plain;
use crate::screen::note;

/// The most that is read from standard input, in bytes. A host takes no more.
const MOST: u64 = 1024 * 1024;

/// Send a prompt to a session of a host.
///
/// It returns when the host has stored the prompt; the answer is seen by `outrigger attach` or `outrigger logs --follow`. A prompt whose answer is lost
/// is sent again, and counts once.
#[derive(Debug, clap::Args)]
#[command(
    after_help = NAMES,
    override_usage = "outrigger send [OPTIONS] SESSION [PROMPT]\n       outrigger send [OPTIONS] --new DIR [PROMPT]"
)]
pub(crate) struct Send {
    /// The session, and the prompt; with `--new` only the prompt. `-` or no prompt reads it from standard input.
    #[arg(value_name = "SESSION PROMPT", num_args = 0..=2)]
    words: Vec<String>,
    /// The id of the prompt. With the same id and the same text it is stored once, however often it is sent.
    #[arg(long, value_name = "UUID")]
    id: Option<MessageId>,
    /// Writes what became of the prompt as JSON, as the host wrote it.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    new: NewArgs,
    #[command(flatten)]
    host: HostArgs,
}

impl Send {
    pub(crate) async fn run(self) -> CommandResult {
        let mut words = self.words.iter();
        let name = if self.new.new.is_some() {
            None
        } else {
            words.next()
        };
        let given = words.next().cloned();
        if words.next().is_some() {
            return Err(usage("with --new there is one word, the prompt".to_owned()));
        }
        if self.new.new.is_none() && name.is_none() {
            return Err(usage(
                "no session is named; `outrigger ps` lists them, and --new DIR makes one".to_owned(),
            ));
        }
        let mut prompt = Prompt::text(text(given)?);
        if let Some(id) = &self.id {
            let id = id
                .as_str()
                .parse()
                .context("--id")
                .map_err(|error| Failure::new(Status::Usage, error))?;
            prompt = prompt.with_uuid(id);
        }
        let client = self.host.client()?;
        let session = match name {
            Some(name) => id_of(&client, name).await?,
            None => self.new.session(&client, None).await?.id,
        };
        let sent = client.send_prompt(&session, &prompt).await.map_err(failure)?;
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", sent.raw.get())?;
        } else if self.new.new.is_some() {
            writeln!(out, "{}", plain(&session))?;
        }
        let stored = match sent.effect {
            Effect::Repeated => "was stored before",
            _ => "is stored",
        };
        if !self.json {
            note(
                &format!(
                    "the prompt {stored}, as event {}; `outrigger attach {} --after {}` shows what comes of it",
                    sent.sequence_num,
                    session,
                    sent.sequence_num.saturating_sub(1)
                ),
                Paint::on(&io::stderr()),
            );
        }
        Ok(Status::Success)
    }
}

/// The prompt: the word, or what comes on standard input.
fn text(given: Option<String>) -> Result<String, Failure> {
    let text = match given {
        Some(dash) if dash == "-" => None,
        given => given,
    };
    let text = match text {
        Some(text) => text,
        None if io::stdin().is_terminal() => {
            return Err(usage("there is no prompt: give one, or pipe it in".to_owned()));
        }
        None => {
            let mut text = String::new();
            let mut stdin = io::stdin().lock().take(MOST + 1);
            stdin
                .read_to_string(&mut text)
                .context("standard input is no text")
                .map_err(|error| Failure::new(Status::Usage, error))?;
            if text.len() as u64 > MOST {
                return Err(usage(format!(
                    "standard input is longer than {MOST} bytes; a host takes no such prompt"
                )));
            }
            text
        }
    };
    if text.trim().is_empty() {
        return Err(usage("the prompt is empty".to_owned()));
    }
    Ok(text)
}
