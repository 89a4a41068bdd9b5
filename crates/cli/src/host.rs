//! `outrigger host`: the log of a host, and its tokens.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::ValueHint;
use jiff::Timestamp;
use outrigger_host::HostError;
use outrigger_host::log::SqliteLog;
use outrigger_host_client::{HostClient, NewToken};

use crate::agent::usage;
use crate::exit::{CommandResult, Failure, Status};
use crate::plain::plain;
use crate::remote::{HostArgs, TokenFile, Trust, failure, token_file_of};
use crate::serve::log_file;

/// Look after a host: the log of one on this machine, and the tokens of any.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Copy the log to a new file, also while the host runs.
    Backup {
        /// The new file.
        #[arg(value_hint = ValueHint::FilePath)]
        to: PathBuf,
        #[command(flatten)]
        place: HostDataArgs,
    },
    /// Read the whole log and look for what must not be: gaps, decisions that are there twice, a file that is damaged.
    Check {
        #[command(flatten)]
        place: HostDataArgs,
    },
    /// List who did what with the host, the newest last: tokens, what they did and were refused. What was sent to sessions is in their events.
    Audit {
        /// How many entries.
        #[arg(long, default_value_t = 50, value_name = "COUNT")]
        last: usize,
        #[command(flatten)]
        place: HostDataArgs,
    },
    /// Exchange the link of a first start for a token, and keep the token for the other commands.
    ///
    /// The link is read from standard input, so that no other user of the machine sees it.
    Login {
        /// Where the token is kept; in a file for this host, below outrigger/tokens in XDG_CONFIG_HOME or ~/.config, unless given.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        token_file: Option<PathBuf>,
        #[command(flatten)]
        trust: Trust,
    },
    /// List, issue and revoke tokens. Needs one with the scope `admin`.
    Token {
        #[command(subcommand)]
        command: Tokens,
    },
}

#[derive(Debug, clap::Subcommand)]
enum Tokens {
    /// List the tokens, without their text.
    List {
        #[command(flatten)]
        host: HostArgs,
    },
    /// Issue a token, and print it. It is shown this once.
    New {
        /// What the token is for, or whose it is: the actor of what is sent with it.
        label: String,
        /// What the token allows. May be given several times.
        #[arg(long, required = true, value_parser = ["read", "send", "approve", "admin"])]
        scope: Vec<String>,
        #[command(flatten)]
        host: HostArgs,
    },
    /// Revoke a token, and end its streams.
    Revoke {
        /// The id of the token.
        id: String,
        #[command(flatten)]
        host: HostArgs,
    },
}

/// Where the log is.
#[derive(Debug, clap::Args)]
struct HostDataArgs {
    /// The directory that `outrigger serve` keeps its log in.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,
}

impl HostDataArgs {
    fn log(self) -> Result<PathBuf, Failure> {
        let path = log_file(self.data)?;
        if path.is_file() {
            Ok(path)
        } else {
            Err(anyhow::anyhow!("{}: there is no log", path.display()).into())
        }
    }
}

pub(crate) async fn run(args: Args) -> CommandResult {
    let mut out = io::stdout();
    match args.command {
        Command::Backup { to, place } => {
            let log = place.log()?;
            SqliteLog::backup_of(&log, &to)
                .with_context(|| format!("cannot copy the log {} to {}", log.display(), to.display()))?;
            writeln!(out, "{} is a copy of {}", to.display(), log.display())?;
        }
        Command::Check { place } => {
            let log = place.log()?;
            let check = match SqliteLog::check_of(&log) {
                Ok(check) => check,
                // So damaged that there is nothing to count. The error itself refers to this command.
                Err(HostError::Damaged(what)) => {
                    return Err(anyhow::anyhow!(
                        "{} is damaged: {what}; end the host, keep the file, and restore a backup",
                        log.display()
                    )
                    .into());
                }
                Err(error) => return Err(error.into()),
            };
            writeln!(out, "sessions: {}; events: {}", check.sessions, check.events)?;
            for problem in &check.problems {
                writeln!(out, "{problem}")?;
            }
            if !check.problems.is_empty() {
                return Ok(Status::Failed);
            }
        }
        Command::Audit { last, place } => {
            let mut entries = SqliteLog::audit_of(place.log()?, last)?;
            entries.reverse();
            for entry in entries {
                let at = i64::try_from(entry.at)
                    .ok()
                    .and_then(|at| Timestamp::from_millisecond(at).ok());
                writeln!(
                    out,
                    "{} {} {} {} {} {} {}",
                    at.map_or_else(|| entry.at.to_string(), |at| at.to_string()),
                    plain(&entry.actor),
                    entry.token_id,
                    plain(&entry.method),
                    plain(&entry.route),
                    plain(entry.object.as_deref().unwrap_or("-")),
                    entry.status,
                )?;
            }
        }
        Command::Login { token_file, trust } => {
            let login = Login::read(&trust)?;
            let path = token_file
                .or_else(|| token_file_of(&login.origin))
                .context("there is no directory for configuration; name a file by --token-file")?;
            let cannot = format!("cannot write {}", path.display());
            let file = TokenFile::new(path).with_context(|| cannot.clone())?;
            let exchanged = login.client.exchange_code(&login.code).await;
            let issued = exchanged.map_err(|error| match error.problem() {
                Some(problem) if problem.status == 401 => Failure::new(
                    Status::Refused,
                    anyhow::anyhow!(
                        "{error}; `outrigger serve --link`, on the machine of the host, prints another link"
                    ),
                ),
                _ => failure(error),
            })?;
            let path = file.keep(&issued.token).context(cannot)?;
            writeln!(
                out,
                "the token is in {}, for {} alone\nexport OUTRIGGER_HOST={}",
                path.display(),
                login.origin,
                login.host
            )?;
        }
        Command::Token { command } => return tokens(command).await,
    }
    Ok(Status::Success)
}

/// The link of a host, and the host.
struct Login {
    host: String,
    origin: String,
    code: String,
    client: HostClient,
}

impl Login {
    /// Reads the link, and finds out for whom the token will be before the code is spent.
    fn read(trust: &Trust) -> Result<Self, Failure> {
        if io::stdin().is_terminal() {
            eprint!("the link: ");
        }
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        let link = line.trim().split_once("/welcome#code=");
        let (host, code) = link.ok_or_else(|| {
            usage("standard input has no link of a host, which ends with /welcome#code=…".to_owned())
        })?;
        let builder = trust.builder(host)?;
        Ok(Self {
            host: host.to_owned(),
            origin: builder.origin().map_err(failure)?,
            code: code.to_owned(),
            client: builder.build().map_err(failure)?,
        })
    }
}

async fn tokens(command: Tokens) -> CommandResult {
    let mut out = io::stdout();
    match command {
        Tokens::List { host } => {
            for token in host.client()?.tokens().await.map_err(failure)? {
                let state = if token.revoked { "revoked" } else { "valid" };
                writeln!(
                    out,
                    "{}  {state}  {}  {}",
                    token.id,
                    token.scopes.join(","),
                    crate::plain::plain(&token.label)
                )?;
            }
        }
        Tokens::New { label, scope, host } => {
            let new = NewToken::new(label, scope);
            let issued = host.client()?.issue_token(&new).await.map_err(failure)?;
            writeln!(out, "{}", issued.token)?;
        }
        Tokens::Revoke { id, host } => {
            host.client()?.revoke_token(&id).await.map_err(failure)?;
        }
    }
    Ok(Status::Success)
}
