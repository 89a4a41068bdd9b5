//! `outrigger host`: the log of a host, and its tokens.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueHint;
use outrigger_host::log::SqliteLog;
use outrigger_host_client::{HostClient, IssuedToken, NewToken};

use crate::exit::{CommandResult, Failure, Status};
use crate::remote::{HostArgs, failure, usual_token_file};
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
        place: Place,
    },
    /// Read the whole log and look for what must not be: gaps, decisions that are there twice, a file that is damaged.
    Check {
        #[command(flatten)]
        place: Place,
    },
    /// Exchange the link of a first start for a token, and keep the token for the other commands.
    ///
    /// The link is read from standard input, so that no other user of the machine sees it.
    Login {
        /// Where the token is kept; outrigger/token in XDG_CONFIG_HOME or ~/.config, unless given.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        token_file: Option<PathBuf>,
    },
    /// List, issue and revoke tokens. Needs one with the scope `admin`.
    Token {
        #[command(subcommand)]
        command: Tokens,
    },
}

#[derive(Debug, clap::Subcommand)]
enum Tokens {
    /// List them, without their text.
    List {
        #[command(flatten)]
        host: HostArgs,
    },
    /// Issue one, and print it. It is shown this once.
    New {
        /// What it is for, or whose it is: the actor of what is sent with it.
        label: String,
        /// What it allows. May be given several times.
        #[arg(long, required = true, value_parser = ["read", "send", "approve", "admin"])]
        scope: Vec<String>,
        #[command(flatten)]
        host: HostArgs,
    },
    /// Revoke one, and end its streams.
    Revoke {
        /// Its id.
        id: String,
        #[command(flatten)]
        host: HostArgs,
    },
}

/// Where the log is.
#[derive(Debug, clap::Args)]
struct Place {
    /// The directory that `outrigger serve` keeps its log in.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    data: Option<PathBuf>,
}

impl Place {
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
            SqliteLog::backup_of(&log, &to)?;
            writeln!(out, "{} is a copy of {}", to.display(), log.display())?;
        }
        Command::Check { place } => {
            let check = SqliteLog::check_of(place.log()?)?;
            writeln!(out, "{} sessions, {} events", check.sessions, check.events)?;
            for problem in &check.problems {
                writeln!(out, "{problem}")?;
            }
            if !check.problems.is_empty() {
                return Ok(Status::Failed);
            }
        }
        Command::Login { token_file } => {
            let path = token_file
                .or_else(usual_token_file)
                .context("there is no directory for configuration; name a file by --token-file")?;
            let (host, issued) = login().await?;
            keep(&path, &issued.token).with_context(|| format!("cannot write {}", path.display()))?;
            writeln!(
                out,
                "the token is in {}\nexport OUTRIGGER_HOST={host}",
                path.display()
            )?;
        }
        Command::Token { command } => return tokens(command).await,
    }
    Ok(Status::Success)
}

/// The host, and the token that its link gives.
async fn login() -> Result<(String, IssuedToken), Failure> {
    if io::stdin().is_terminal() {
        eprint!("the link: ");
    }
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let link = line.trim().split_once("/welcome#code=");
    let (host, code) = link.context("that is no link of a host: it ends with /welcome#code=…")?;
    let client = HostClient::builder(host).build().map_err(failure)?;
    let issued = client.exchange_code(code).await.map_err(failure)?;
    Ok((host.to_owned(), issued))
}

/// Writes a token into a file that nobody else can read.
fn keep(path: &Path, token: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let draft = path.with_extension("new");
    // One of before may be readable for others.
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = std::fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    writeln!(options.open(&draft)?, "{token}")?;
    std::fs::rename(&draft, path)
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
                    crate::screen::plain(&token.label)
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
