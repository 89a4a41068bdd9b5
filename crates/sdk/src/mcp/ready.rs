//! Waiting for MCP servers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::outbound::control::{ControlRequest, McpStatus};
use outrigger_protocol::shared::{McpServerState, McpServerStatus};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::conn::Conn;
use crate::conn::core::Input;
use crate::conn::encode_request;
use crate::error::{Error, ModuleProblem, Result};
use crate::spawn::spawn;

/// The first and the last delay between two `mcp_status` requests.
const SOON: Duration = Duration::from_millis(20);
const LATE: Duration = Duration::from_millis(500);

/// MCP servers that are not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpNotReady {
    /// The servers that failed, need a sign-in, or are switched off, with the CLI's reason or status.
    pub failed: BTreeMap<String, String>,
    /// The servers that were still connecting at the deadline, or that the CLI does not know.
    pub pending: Vec<String>,
    /// How long the SDK waited.
    pub after: Duration,
}

impl fmt::Display for McpNotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MCP servers are not ready: ")?;
        let mut sep = "";
        for (name, why) in &self.failed {
            write!(f, "{sep}{name} ({why})")?;
            sep = ", ";
        }
        for name in &self.pending {
            write!(f, "{sep}{name} (not connected after {:?})", self.after)?;
            sep = ", ";
        }
        Ok(())
    }
}

impl std::error::Error for McpNotReady {}

impl ModuleProblem for McpNotReady {}

impl Error {
    /// The MCP servers that are not ready, if the error is about that.
    pub fn as_mcp_not_ready(&self) -> Option<&McpNotReady> {
        self.problem()
    }
}

/// The result of waiting for MCP servers before the first prompt; from
/// [`Session::mcp_startup`](crate::Session::mcp_startup).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpStartup {
    /// Prompts do not wait: there are no servers, or the options disable it.
    NotAwaited,
    /// The servers are connecting; prompts wait.
    Waiting,
    /// All servers have connected.
    Ready,
    /// These servers have not connected, and prompts were sent all the same.
    NotReady(McpNotReady),
    /// Not known, because `mcp_status` failed.
    Unknown,
}

/// The CLI's status of the servers to wait for.
pub(crate) struct ServerReadiness {
    ready: Vec<McpServerStatus>,
    failed: BTreeMap<String, String>,
    pending: Vec<String>,
}

impl ServerReadiness {
    /// The readiness of the servers of these names, or of all.
    fn of(names: &[String], statuses: Vec<McpServerStatus>) -> Self {
        let mut standing = Self {
            ready: Vec::new(),
            failed: BTreeMap::new(),
            pending: Vec::new(),
        };
        let known = |name: &String| statuses.iter().any(|status| status.name == *name);
        standing
            .pending
            .extend(names.iter().filter(|name| !known(name)).cloned());
        for status in statuses {
            if !names.is_empty() && !names.contains(&status.name) {
                continue;
            }
            match status.status {
                McpServerState::Connected => standing.ready.push(status),
                McpServerState::Pending => standing.pending.push(status.name),
                ref other => {
                    let why = status.error.clone().unwrap_or_else(|| other.as_str().to_owned());
                    standing.failed.insert(status.name, why);
                }
            }
        }
        standing
    }

    pub(crate) fn result(self, after: Duration) -> Result<Vec<McpServerStatus>, McpNotReady> {
        if self.failed.is_empty() && self.pending.is_empty() {
            return Ok(self.ready);
        }
        Err(McpNotReady {
            failed: self.failed,
            pending: self.pending,
            after,
        })
    }
}

/// Waits until no server is connecting any more, or the deadline passes.
pub(crate) async fn settle(
    conn: &Arc<Conn>,
    names: &[String],
    deadline: Duration,
) -> Result<ServerReadiness> {
    let begun = Instant::now();
    let until = begun.checked_add(deadline);
    let request = encode_request(McpStatus::SUBTYPE, &McpStatus::new())?;
    let mut pause = SOON;
    let mut last = None;
    loop {
        let asked = conn.request(
            McpStatus::SUBTYPE,
            request.clone(),
            Some(conn.limits.control_deadline),
        );
        let answer = match until {
            Some(until) => match timeout_at(until, asked).await {
                Ok(answer) => answer?,
                Err(_) => {
                    let nothing = || ServerReadiness::of(names, Vec::new());
                    return Ok(last.unwrap_or_else(nothing));
                }
            },
            None => asked.await?,
        };
        let reply = McpStatus::read_reply(Some(&answer));
        let reply = reply.map_err(|error| Error::misfit("the answer to `mcp_status`", error))?;
        let standing = ServerReadiness::of(names, reply.mcp_servers);
        let next = Instant::now() + pause;
        if standing.pending.is_empty() || until.is_some_and(|until| next >= until && Instant::now() >= until)
        {
            return Ok(standing);
        }
        last = Some(standing);
        pause = (pause * 2).min(LATE);
        sleep_until(until.map_or(next, |until| next.min(until))).await;
    }
}

/// Holds prompts back until the servers have connected or the deadline passes. Returns a watch of the result.
pub(crate) fn hold_prompts(
    conn: &Arc<Conn>,
    names: Vec<String>,
    wait: Option<Duration>,
) -> watch::Receiver<McpStartup> {
    let Some(wait) = wait.filter(|_| !names.is_empty()) else {
        return watch::channel(McpStartup::NotAwaited).1;
    };
    let (told, startup) = watch::channel(McpStartup::Waiting);
    conn.note(Input::HoldBack(true));
    let conn = Arc::clone(conn);
    spawn(async move {
        let became = tokio::select! {
            settled = settle(&conn, &names, wait) => match settled.map(|standing| standing.result(wait)) {
                Ok(Ok(_)) => McpStartup::Ready,
                Ok(Err(problem)) => {
                    tracing::warn!(parent: &conn.span, "{problem}; prompts are sent all the same");
                    McpStartup::NotReady(problem)
                }
                Err(error) => {
                    tracing::warn!(parent: &conn.span, %error, "the CLI does not say how its MCP servers fare");
                    McpStartup::Unknown
                }
            },
            _ = conn.wait_ended() => McpStartup::Unknown,
        };
        told.send_replace(became);
        conn.note(Input::HoldBack(false));
    });
    startup
}
