//! Spares: processes that start before their session is known.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::InitializeReply;
use outrigger_protocol::outbound::control::{
    ApplyFlagSettings, ControlRequest, SetMaxThinkingTokens, SetModel,
};
use outrigger_protocol::shared::{McpServerConfig, PermissionMode};
use serde::Deserialize;
use tokio::time::Instant;

use crate::claim::{Claim, ClaimProblem, Cold, Prepared};
use crate::conn::core::Input;
use crate::conn::encode_request;
use crate::error::{Error, Result};
use crate::options::{Options, SettingsInput};
use crate::peer::Exit;
use crate::session::{Session, exit_of};
use crate::start::{Opened, Role};

impl Options {
    /// Starts a spare, which becomes a session by a [claim](Spare::claim): once the directory is known, the session begins without
    /// waiting for the start of a process. `--await-claim`.
    ///
    /// All that a [`Claim`] does not have is fixed now: the executable, environment and account, tools and their
    /// rules, MCP servers, plugins, settings files, permission handler. [`cwd`](Self::cwd) is only the base of relative paths in
    /// these options: the process runs in an empty private directory below the CLI's config directory, which is removed when the
    /// process has ended. MCP servers start there. (A transport to another machine gets `cwd` as it is; it should be a directory
    /// there that no session uses.) The claim reads what belongs to the session's directory: its settings files, `CLAUDE.md`, its
    /// agents and MCP servers; and `SessionStart` hooks run then.
    ///
    /// A [`session_id`](Self::session_id) is that of the session that the spare becomes. With a [`lease`](Self::lease) the SDK chooses
    /// an id if there is none, and the claim acquires the lease before it sends anything.
    ///
    /// A spare uses almost no CPU, and 160 to 260 MB of memory. It ends with its handle. A [`Pool`](crate::Pool) keeps several,
    /// and replaces used ones.
    ///
    /// # Cancel safety
    /// Dropping the future ends the process.
    ///
    /// # Errors
    /// As [`start`](Self::start); also for `resume`, `continue_conversation` and `fork_session`, and when the CLI does not know
    /// `--await-claim`. A CLI without an account is not an error here, since the settings of a claim may have one; if not, the
    /// claim fails.
    pub async fn prewarm(self) -> Result<Spare> {
        let opened = Opened::open(self.anchored()?, Role::Spare).await?;
        let (initialized, payload) = opened.initialize_raw().await?;
        Ok(Spare {
            opened,
            initialized,
            payload,
            since: Instant::now(),
        })
    }

    /// The first option because of which a spare would be another session than [`start`](Self::start) in the directory of the claim:
    /// a relative path, which the spare reads from its own [`cwd`](Self::cwd), or what may start MCP servers, which then work in
    /// the directory of the spare. `None` if the directory makes no difference.
    ///
    /// A program that promises its sessions the same options with and without a spare asks this before [`prewarm`](Self::prewarm).
    pub fn bound_to_directory(&self) -> Option<&'static str> {
        let mut anchored = self.clone();
        let relative = anchored.paths().find(|(_, path)| path.is_relative());
        let relative = relative.map(|(option, _)| option);
        let config = crate::env::get(self.environment.own(), "CLAUDE_CONFIG_DIR");
        let has_programs = self.mcp_servers.values().any(|server| match server {
            McpServerConfig::Http(server) | McpServerConfig::Sse(server) | McpServerConfig::Ws(server) => {
                server.headers_helper.is_some()
            }
            _ => true,
        });
        let others = [
            ("mcp_servers", has_programs),
            ("mcp_config_files", !self.mcp_config_files.is_empty()),
            ("plugins", !self.plugins.is_empty()),
            (
                "environment",
                config.is_some_and(|path| Path::new(&path).is_relative()),
            ),
        ];
        let bound = others.into_iter().find(|(_, is_bound)| *is_bound);
        relative.or(bound.map(|(option, _)| option))
    }

    /// The paths that are read from `cwd` if they are relative.
    fn paths(&mut self) -> impl Iterator<Item = (&'static str, &mut PathBuf)> {
        let lists = [
            ("additional_directories", &mut self.additional_directories),
            ("mcp_config_files", &mut self.mcp_config_files),
        ];
        let single = [
            ("project_config_root", &mut self.project_config_root),
            ("system_prompt_file", &mut self.system_prompt_file),
            ("hermetic_home", &mut self.hermetic_home),
            ("debug_file", &mut self.debug_file),
        ];
        let file = match &mut self.settings {
            Some(SettingsInput::File(path)) => Some(("settings", path)),
            _ => None,
        };
        let lists = lists
            .into_iter()
            .flat_map(|(option, paths)| paths.iter_mut().map(move |path| (option, path)));
        let single = single
            .into_iter()
            .filter_map(|(option, path)| Some((option, path.as_mut()?)));
        lists.chain(single).chain(file)
    }

    /// Makes relative paths absolute, so that they mean the same wherever the process works.
    pub(crate) fn anchored(mut self) -> Result<Self> {
        if self.host().remote {
            return Ok(self);
        }
        let base = self
            .working_directory(&self.hosting.surroundings())
            .map_err(Error::of)?;
        for (_, path) in self.paths() {
            *path = base.join(&path);
        }
        for plugin in &mut self.plugins {
            if Path::new(&plugin.path).is_relative() && !plugin.path.is_empty() {
                plugin.path = base.join(&plugin.path).to_string_lossy().into_owned();
            }
        }
        self.cwd = Some(base);
        Ok(self)
    }
}

/// A process that waits to become a session; from [`Options::prewarm`].
///
/// It becomes a session once. Dropping it ends the process in the background, as [`close`](Self::close) does.
pub struct Spare {
    opened: Opened,
    initialized: InitializeReply,
    /// The reply as it came.
    payload: RawJson,
    since: Instant,
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spare")
            .field("pid", &self.pid())
            .field("age", &self.age())
            .finish_non_exhaustive()
    }
}

/// A claim that failed.
#[non_exhaustive]
pub struct ClaimFailed {
    /// The error: of the claim itself ([`Error::is_invalid`]), the CLI's answer ([`Error::as_claim_problem`]), the account,
    /// a deadline, or the end of the spare ([`Error::is_closed`]).
    pub error: Error,
    /// The spare, if nothing was sent to it, so that it can still be claimed. Otherwise its process is ending.
    pub spare: Option<Spare>,
}

impl fmt::Debug for ClaimFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl fmt::Display for ClaimFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for ClaimFailed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl From<ClaimFailed> for Error {
    fn from(failed: ClaimFailed) -> Self {
        failed.error
    }
}

impl Spare {
    /// Makes it a session: sends settings, claim, model and thinking, and the CLI has to accept each. If the CLI rejects a part,
    /// there is no session: no prompt was sent, and the process ends.
    ///
    /// The CLI rejects a directory whose own settings set something that is fixed in a spare (`env`, `model`, `agent`, …); start
    /// such a session with [`Options::start`]. The session's id is known at once. Reviving it uses the spare's options and the
    /// claim together.
    ///
    /// Each request has the control deadline.
    ///
    /// # Cancel safety
    /// Dropping the future ends the process.
    ///
    /// # Errors
    /// See [`ClaimFailed`].
    pub async fn claim(self, claim: Claim) -> Result<Session, ClaimFailed> {
        let base = self.opened.options.clone();
        let prepared = tokio::task::spawn_blocking(move || claim.prepare(&base)).await;
        let prepared = prepared
            .map_err(|error| Error::invalid_because("claim", error))
            .and_then(|prepared| prepared);
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let spare = Some(self);
                return Err(ClaimFailed { error, spare });
            }
        };
        if let Err(error) = self.opened.take_lease(&prepared.cold.options).await {
            let spare = Some(self);
            return Err(ClaimFailed { error, spare });
        }
        let claimed = self.send(prepared).await;
        claimed.map_err(|error| ClaimFailed { error, spare: None })
    }

    pub(crate) async fn claim_prepared(self, claim: Prepared) -> Result<Session> {
        self.opened.take_lease(&claim.cold.options).await?;
        self.send(claim).await
    }

    async fn send(mut self, claim: Prepared) -> Result<Session> {
        let settings = |error: Error| match error.as_refusal() {
            Some(refusal) => problem(ClaimProblem::SettingsNotApplied {
                message: refusal.message.clone(),
            }),
            None => error,
        };
        self.opened.file(&claim.cold.options).await?;
        self.opened.conn.add_secrets(claim.secrets);
        if let Some(early) = claim.early {
            self.ask(&ApplyFlagSettings::new(early)).await.map_err(settings)?;
        }
        self.opened.bridge.add(&claim.servers);
        let reply = self
            .ask(&claim.request)
            .await
            .map_err(|error| match error.as_refusal() {
                Some(refusal) => problem(ClaimProblem::refused(&refusal.message, refusal.code.as_deref())),
                None => error,
            })?;
        let initialized = self.check(claim.request.permission_mode, &reply).await?;
        if let Some(late) = claim.late {
            self.ask(&ApplyFlagSettings::new(late)).await.map_err(settings)?;
        }
        let refused = |option| {
            move |error: Error| match error.as_refusal() {
                Some(refusal) => problem(ClaimProblem::OptionNotApplied {
                    option,
                    message: refusal.message.clone(),
                }),
                None => error,
            }
        };
        if let Some(model) = claim.model {
            let request = SetModel::new().model(Some(model));
            self.ask(&request).await.map_err(refused("model"))?;
        }
        if let Some(tokens) = claim.max_thinking_tokens {
            let request = SetMaxThinkingTokens::new().max_thinking_tokens(Some(tokens));
            self.ask(&request).await.map_err(refused("max_thinking_tokens"))?;
        }
        let Cold { mut options, overlay } = claim.cold;
        self.opened.launch.auth = options.auth.clone();
        // With the rules that the process got: those of the claim's options are the handler's of another moment.
        options.hosting.handlers = std::mem::take(&mut self.opened.options.hosting.handlers);
        self.opened.options = options;
        let session = self.opened.into_session(initialized);
        if let Some(overlay) = overlay {
            session.conn().changes(|changes| changes.note_settings(&overlay));
        }
        Ok(session)
    }

    /// Compares the reply to the claim with the claim.
    async fn check(&self, mode: Option<PermissionMode>, payload: &RawJson) -> Result<InitializeReply> {
        /// The part of the reply that is needed. The rest is read as leniently as the reply to `initialize` always is.
        #[derive(Deserialize)]
        struct ClaimReply {
            session_id: String,
            initialize: RawJson,
        }
        let reply: ClaimReply = payload
            .read()
            .map_err(|error| Error::misfit("the answer to `claim_session`", error))?;
        let initialized = self.opened.read(&self.with_what_was_applied(reply.initialize));
        self.opened.check_account(&initialized).await?;
        let got = initialized.current_permission_mode.as_ref();
        let got = got.map_or("unsaid", |mode| mode.as_str());
        if let Some(asked) = mode.map(PermissionMode::as_str)
            && asked != got
        {
            return Err(problem(ClaimProblem::Differs {
                option: "permission_mode",
                asked: asked.to_owned(),
                got: got.to_owned(),
            }));
        }
        // Its lease, and what the program knows of it, are of the id that it was started with.
        if let Some(asked) = &self.opened.session_id
            && *asked != reply.session_id
        {
            return Err(problem(ClaimProblem::Differs {
                option: "session_id",
                asked: asked.clone(),
                got: reply.session_id,
            }));
        }
        self.opened.conn.note(Input::SessionId(&reply.session_id));
        Ok(initialized)
    }

    /// What was confirmed when the process was started is not repeated in the answer to a claim.
    fn with_what_was_applied(&self, claimed: RawJson) -> RawJson {
        let parked: BTreeMap<String, RawJson> = self.payload.read().unwrap_or_default();
        let mut all: BTreeMap<String, RawJson> = claimed.decode().unwrap_or_default();
        for (field, value) in parked {
            if field.ends_with("_applied") && all.get(&field).is_none_or(|value| value.is_null()) {
                all.insert(field, value);
            }
        }
        RawJson::encode(&all).unwrap_or(claimed)
    }

    async fn ask<R: ControlRequest>(&self, request: &R) -> Result<RawJson> {
        let deadline = self.opened.conn.limits.control_deadline;
        let body = encode_request(R::SUBTYPE, request)?;
        self.opened.conn.request(R::SUBTYPE, body, Some(deadline)).await
    }

    /// The CLI's answer to `initialize`, for the parked process: a session's agents, commands and mode may be others.
    pub fn initialized(&self) -> &InitializeReply {
        &self.initialized
    }

    /// The process id, if the process is on this machine.
    pub fn pid(&self) -> Option<u32> {
        self.opened.conn.pid
    }

    /// How long the spare has been waiting.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether the process runs, as far as is known.
    pub fn is_alive(&self) -> bool {
        self.opened.conn.ended.borrow().is_none()
    }

    /// How the spare ended, if it has.
    pub(crate) fn end_error(&self) -> Error {
        self.opened.conn.end_error()
    }

    /// Waits for the process to end, and returns how it ended. There is no deadline: a spare may wait for days.
    ///
    /// # Cancel safety
    /// Dropping the future stops nothing.
    pub fn wait_ended(&self) -> impl Future<Output = Error> + Send + 'static {
        let conn = std::sync::Arc::clone(&self.opened.conn);
        async move { conn.wait_ended().await }
    }

    /// Ends the process: closes its stdin, then SIGTERM and SIGKILL after their times.
    ///
    /// # Cancel safety
    /// The process ends all the same when the future is dropped.
    ///
    /// # Errors
    /// When the SDK could not observe the end of the process.
    pub async fn close(self) -> Result<Exit> {
        self.opened.conn.close().await;
        exit_of(self.opened.conn.wait_ended().await)
    }
}

fn problem(problem: ClaimProblem) -> Error {
    Error::of(problem)
}
