//! Sessions that live on a host, from a terminal elsewhere.

mod access;
mod agent_on_host;
mod approve;
mod attach;
mod conversation;
mod logs;
mod ps;
mod send;
mod stop;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use outrigger_host_client::{Error, HostClient, NewSession, NewWorktree, Session, SessionState, StreamItem};

pub(crate) use access::{HostArgs, TokenFile, Trust, token_file_of};
pub(crate) use agent_on_host::agent_on_host;
pub(crate) use approve::Approve;
pub(crate) use attach::Attach;
pub(crate) use logs::Logs;
pub(crate) use ps::Ps;
pub(crate) use send::Send;
pub(crate) use stop::Stop;

use crate::agent::usage;
use crate::exit::{Failure, Status};
use crate::plain::plain;
use crate::sessions::line;

/// How long a command tries a host that is away for a moment.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a stream tries a host that is away, if nobody sees that it does.
const UNSEEN: Duration = Duration::from_secs(300);

/// The shortest beginning of an id that is taken for one.
const SHORTEST: usize = 4;

/// How many of several things that could be meant an error names.
const MOST_NAMED: usize = 8;

/// How a session of a host is named, and who the client is.
const NAMES: &str = "\
A session is named by its id, by the beginning of it (four characters at least, which no other begins with), or by its exact title.
The token is in OUTRIGGER_TOKEN, or in a file that nobody else can read: that of --token-file, else the one that `outrigger host login` has kept
for this host, below outrigger/tokens in XDG_CONFIG_HOME or ~/.config. It is never a word of the command line, which other users of the machine can read.";

/// An error of a host as one of a command, with its exit status and what to do.
pub(crate) fn failure(error: Error) -> Failure {
    let status = match &error {
        Error::Address { .. } | Error::Invalid(_) => Status::Usage,
        Error::Unreachable { .. } | Error::Lost { .. } | Error::TimedOut(_) => Status::Api,
        Error::Refused(problem) => match problem.status {
            401 | 403 => Status::Refused,
            429 | 500..=599 => Status::Api,
            _ => Status::Failed,
        },
        _ => Status::Failed,
    };
    let hint = match &error {
        Error::Unreachable { .. } => Some("is the host running, and is this its address?"),
        Error::Refused(problem) if problem.status == 401 => {
            Some("the token is not valid there, or was revoked")
        }
        error if error.may_be_done() => Some("the host may have done it; look before you repeat it"),
        _ => None,
    };
    let mut said = plain(&format!("{:#}", anyhow::Error::new(error)));
    if let Some(hint) = hint {
        said.push_str(&format!(" ({hint})"));
    }
    Failure::new(status, anyhow::Error::msg(said))
}

/// The id of the session that is meant. A whole id is not looked up, which takes a token that may read.
///
/// # Errors
/// As [`named`].
async fn id_of(client: &HostClient, name: &str) -> Result<String, Failure> {
    if is_id(name) {
        return Ok(name.to_owned());
    }
    Ok(named(client, name).await?.id)
}

/// The session that is meant.
///
/// # Errors
/// When none is, or several are.
async fn named(client: &HostClient, name: &str) -> Result<Session, Failure> {
    if is_id(name) {
        return client.session(name).await.map_err(failure);
    }
    let all = client.all_sessions().await.map_err(failure)?;
    let mut meant: Vec<Session> = all
        .into_iter()
        .filter(|session| is_meant(session, name))
        .collect();
    if meant.len() > 1 {
        // What is archived stands back.
        let is_ended = |session: &Session| session.state == SessionState::Ended;
        let open = meant.iter().filter(|session| !is_ended(session)).count();
        if open == 1 {
            meant.retain(|session| !is_ended(session));
        }
    }
    match meant.len() {
        1 => Ok(meant.remove(0)),
        0 => Err(Failure::new(
            Status::Failed,
            anyhow::anyhow!(
                "no session of {} has an id that begins with {:?}, or that title; `outrigger ps --all` shows which there are",
                client.address(),
                plain(name)
            ),
        )),
        count => {
            let mut message = format!("{count} sessions could be meant by {:?}:", plain(name));
            for session in meant.iter().take(MOST_NAMED) {
                let title = line(session.title.as_deref().unwrap_or_default(), 60);
                message.push_str(&format!("\n  {}  {title}", plain(&session.id)));
            }
            Err(usage(message))
        }
    }
}

fn is_id(name: &str) -> bool {
    name.len() == 36 && begins_an_id(name)
}

fn begins_an_id(name: &str) -> bool {
    name.len() >= SHORTEST && name.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn begins(id: &str, name: &str) -> bool {
    begins_an_id(name)
        && id
            .get(..name.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(name))
}

fn is_meant(session: &Session, name: &str) -> bool {
    begins(&session.id, name) || session.title.as_deref() == Some(name)
}

/// A session that is made for this command.
#[derive(Debug, clap::Args)]
struct NewArgs {
    /// Makes a session in this directory of the host, in place of one that is there.
    #[arg(long, value_name = "DIR")]
    new: Option<String>,
    /// The title of the new session.
    #[arg(long, value_name = "TEXT", requires = "new")]
    title: Option<String>,
    /// The model of the new session, if the host lets clients choose it.
    #[arg(long, value_name = "NAME", requires = "new")]
    model: Option<String>,
    /// The permission mode of the new session, if the host lets clients choose it.
    #[arg(long, value_name = "MODE", requires = "new")]
    permission_mode: Option<String>,
    /// Has the host make a git worktree for the new session, on a branch of this name, or of one that it makes up.
    #[arg(
        long,
        value_name = "BRANCH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        requires = "new"
    )]
    worktree: Option<String>,
}

impl NewArgs {
    /// The session that is meant: the new one, or that of this name.
    async fn session(&self, client: &HostClient, name: Option<&str>) -> Result<Session, Failure> {
        let Some(dir) = &self.new else {
            let name = name.ok_or_else(|| usage("no session is named".to_owned()))?;
            return named(client, name).await;
        };
        let mut new = NewSession::new(dir);
        new.title.clone_from(&self.title);
        new.model.clone_from(&self.model);
        new.permission_mode.clone_from(&self.permission_mode);
        new.worktree = self.worktree.as_ref().map(|branch| {
            let mut worktree = NewWorktree::default();
            worktree.branch = (!branch.is_empty()).then(|| branch.clone());
            worktree
        });
        client.create_session(&new).await.map_err(failure)
    }
}

/// When a stream whose host is away ends.
#[derive(Debug, Clone, clap::Args)]
struct GiveUpArgs {
    /// Ends when the host has been away for so long, such as 30s or 1h, with exit status 4. At a terminal it tries for ever unless this is given, and
    /// elsewhere for 5m.
    #[arg(long, value_name = "DURATION", value_parser = crate::time::duration)]
    give_up: Option<Duration>,
}

impl GiveUpArgs {
    fn patience(&self) -> Patience {
        // A person sees that the host is away, and can leave.
        let is_seen = io::stdin().is_terminal();
        Patience {
            longest: self.give_up.or((!is_seen).then_some(UNSEEN)),
            since: None,
        }
    }
}

/// How long a stream has been without its host.
#[derive(Debug)]
struct Patience {
    /// `None` is for ever.
    longest: Option<Duration>,
    /// Since when the host is away.
    since: Option<Instant>,
}

impl Patience {
    /// Takes what the stream emits, at this time.
    ///
    /// # Errors
    /// When the host has been away for too long, or would be at the next try.
    fn take(&mut self, item: StreamItem, now: Instant) -> Result<StreamItem, Failure> {
        let (error, retry_in) = match item {
            StreamItem::Disconnected { error, retry_in } => (error, retry_in),
            item => {
                self.since = None;
                return Ok(item);
            }
        };
        let away = now.saturating_duration_since(*self.since.get_or_insert(now));
        match self.longest {
            Some(longest) if away + retry_in > longest => {
                let mut failed = failure(error);
                failed.error = failed.error.context(format!(
                    "the host has been away for {} s, and nothing is tried for longer than {} s (--give-up)",
                    away.as_secs(),
                    longest.as_secs()
                ));
                Err(failed)
            }
            _ => Ok(StreamItem::Disconnected { error, retry_in }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_gives_up_when_its_host_was_away_for_too_long() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let lost = || StreamItem::Disconnected {
            error: Error::TimedOut(Duration::from_secs(1)),
            retry_in: Duration::from_secs(2),
        };
        let mut patience = Patience {
            longest: Some(Duration::from_secs(10)),
            since: None,
        };
        for seconds in [0, 4, 8] {
            patience.take(lost(), at(seconds)).unwrap();
        }
        // It was back for a moment.
        patience.take(StreamItem::Synced { seq: 1 }, at(9)).unwrap();
        patience.take(lost(), at(10)).unwrap();
        patience.take(lost(), at(18)).unwrap();
        let failed = patience.take(lost(), at(19)).unwrap_err();
        assert_eq!(failed.status, Status::Api);
        let said = format!("{:#}", failed.error);
        assert!(
            said.contains("away for 9 s") && said.contains("--give-up"),
            "{said}"
        );
        patience.longest = None;
        patience.take(lost(), at(1_000_000)).unwrap();
    }

    fn session(id: &str, title: &str) -> Session {
        let text = format!(r#"{{"id":"{id}","state":"idle","cwd":"/","title":"{title}"}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_session_is_named_by_the_beginning_of_its_id_or_its_title() {
        let id = "4f3a0000-0000-4000-8000-000000000001";
        for (name, is_named) in [
            ("4f3a", true),
            ("4F3A0000-", true),
            (id, true),
            ("the shop", true),
            ("4f3", false),
            ("shop", false),
            ("4f3b", false),
            ("", false),
        ] {
            assert_eq!(is_meant(&session(id, "the shop"), name), is_named, "{name}");
        }
        assert!(is_id(id) && !is_id("4f3a"));
    }
}
