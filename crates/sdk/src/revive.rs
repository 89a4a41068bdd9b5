//! Going on with a session whose process died.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use outrigger_protocol::RawJson;
use outrigger_protocol::outbound::control::{ApplyFlagSettings, ControlRequest, McpSetServers};
use outrigger_protocol::shared::{JsonObject, PermissionMode};
use outrigger_sessions::MessageId;

use crate::cause::Cause;
use crate::conn::Conn;
use crate::conn::changes::Changes;
use crate::conn::core::Input;
use crate::conn::encode_request;
use crate::error::{Error, ModuleProblem, Result};
use crate::lost::Lost;
use crate::options::{Isolation, Options};
use crate::session::Session;
use crate::start::{Opened, Role};

/// A session with a new process, from [`Session::revive`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Revived {
    /// The session, with the conversation as far as it was written down. No prompt was sent.
    pub session: Session,
    /// What the end of the old process interrupted.
    pub lost: Lost,
}

/// Why a session can't be revived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReviveProblem {
    /// The session's process has not ended.
    #[error("the session can't be revived: its process runs")]
    Alive,
    /// The session was revived already: go on with that session.
    #[error("the session can't be revived: it was revived already")]
    AlreadyRevived,
    /// Nothing was said that could be gone on with. Begin anew with [`Session::options`].
    #[error(
        "the session can't be revived: no conversation had begun that could be gone on with; start a new one with its options"
    )]
    NeverBegan,
    /// The conversation is not kept: `persist_session` is off, or the session was hermetic without a home that is kept. Begin
    /// anew with [`Session::options`].
    #[error("the session can't be revived: its conversation was not kept; start a new one with its options")]
    NotKept,
    /// The session's transport is good for one session.
    #[error("the session can't be revived: its transport is good for one session")]
    TransportSpent,
    /// The new process works in another permission mode than the old one did; it was ended.
    #[error("the session can't be revived in the permission mode {asked:?}: the CLI chose {got:?}")]
    ModeDiffers {
        /// The mode to go on with.
        asked: String,
        /// The mode of the new process, if it reported it.
        got: Option<String>,
    },
}

impl ModuleProblem for ReviveProblem {}

impl Error {
    /// Why a session can't be revived, if that is what went wrong.
    pub fn as_revive_problem(&self) -> Option<&ReviveProblem> {
        self.problem()
    }
}

impl Session {
    /// Goes on with a session whose process ended: crashed, killed, ended by a watchdog, or closed. Starts a process with the
    /// same options that resumes the conversation by its current id, without forking it.
    ///
    /// The permission mode is the one that the session had last, and is held against what the new process says. What was changed
    /// by control requests is changed again before this returns: settings, model, thinking, MCP servers and whether they are on.
    /// Nothing else is repeated: no prompt, and no background work. [`Lost`] lists what was open. A tool that was running when the
    /// process was killed has no result; the CLI adds one with the next prompt.
    ///
    /// The old handle stays as it was. The usage goes on from that of the old process; the counters begin at zero. The temporary
    /// home of a hermetic session is gone.
    ///
    /// # Cancel safety
    /// Dropping the future ends the new process; the session can then be revived again.
    ///
    /// # Errors
    /// With a [`ReviveProblem`] ([`Error::as_revive_problem`]) when reviving is not possible; as [`Options::start`]; and when the
    /// CLI rejects a change that was made before.
    pub async fn revive(&self) -> Result<Revived> {
        self.revive_behind(None).await
    }

    /// As [`revive`](Self::revive), but the conversation goes on after an earlier answer: the later messages stay in the
    /// transcript, and the next prompt begins another branch. `message_id` is the id of a message of the model.
    ///
    /// The CLI writes the branch with the next prompt: if the session ends before, it is resumed where it was.
    ///
    /// # Cancel safety
    /// As [`revive`](Self::revive).
    ///
    /// # Errors
    /// As [`revive`](Self::revive), and when the conversation has no such answer.
    pub async fn revive_at(&self, message_id: impl Into<MessageId>) -> Result<Revived> {
        self.revive_behind(Some(message_id.into())).await
    }

    async fn revive_behind(&self, message_id: Option<MessageId>) -> Result<Revived> {
        let conn = self.conn();
        if conn.core().ended().is_none() {
            return Err(problem(ReviveProblem::Alive));
        }
        // Those who wait are told a moment before the last files are gone.
        conn.wait_ended().await;
        let origin = Arc::clone(self.origin());
        if !origin.hosting.can_reopen() {
            return Err(problem(ReviveProblem::TransportSpent));
        }
        let ids = self.ids();
        let Some(id) = ids.last() else {
            return Err(problem(ReviveProblem::NeverBegan));
        };
        let unkept = origin.isolation == Isolation::Hermetic
            && origin.hermetic_home.is_none()
            && !origin.hosting.store.is_set();
        if unkept || origin.persist_session == Some(false) {
            return Err(problem(ReviveProblem::NotKept));
        }
        let once = ReviveRight::take(conn)?;
        let changes = conn.changes(|changes| changes.clone());
        let mut lost = conn.core().lost().clone();

        let mut options = resuming(&origin, id, changes.mode.as_deref())?;
        let goes_back = message_id.is_some();
        options.resume_session_at = message_id.map(String::from);
        let asked = options.permission_mode;
        let mut opened = Opened::open(options, Role::Session).await?;
        let initialized = opened.initialize().await.map_err(|error| match error.cause() {
            Some(Cause::UnknownSession) if !goes_back => problem(ReviveProblem::NeverBegan),
            _ => error,
        })?;
        let got = initialized.current_permission_mode.as_ref();
        let got = got.map(|mode| mode.as_str().to_owned());
        if let Some(asked) = asked.map(PermissionMode::as_str)
            && got.as_deref() != Some(asked)
        {
            return Err(problem(ReviveProblem::ModeDiffers {
                asked: asked.to_owned(),
                got,
            }));
        }
        opened.bridge.add(&self.bridge().recipes());
        repeat(&opened, &changes, &mut lost).await?;

        // Revived or started again, it is what it was first started as, but for the rules of its handler.
        let handlers = std::mem::take(&mut opened.options.hosting.handlers);
        opened.options = Options::clone(&origin);
        opened.options.hosting.handlers = handlers;
        let session = opened.into_session(initialized);
        for id in &ids {
            session.conn().note(Input::SessionId(id));
        }
        session.conn().note(Input::UsedEarlier(&self.usage()));
        session.conn().changes(|kept| *kept = changes.repeated());
        once.keep();
        Ok(Revived { session, lost })
    }
}

/// The options that resume the conversation.
fn resuming(origin: &Options, id: &str, mode: Option<&str>) -> Result<Options> {
    let mut options = origin.clone().go_on_with(id);
    if let Some(mode) = mode {
        let known: Result<PermissionMode, _> = RawJson::encode(mode).and_then(|mode| mode.read());
        options.permission_mode = Some(
            known.map_err(|error| Error::misfit(format!("the session's permission mode {mode:?}"), error))?,
        );
    }
    Ok(options)
}

/// Repeats the changes that were made at run time.
async fn repeat(opened: &Opened, changes: &Changes, lost: &mut Lost) -> Result<()> {
    let conn = &opened.conn;
    let deadline = Some(conn.limits.control_deadline);
    lost.not_repeated = changes
        .not_repeated
        .iter()
        .map(|subtype| (*subtype).to_owned())
        .collect();
    if !changes.settings.is_empty() {
        let settings = JsonObject::encode(&changes.settings);
        let settings = settings.map_err(|error| Error::invalid_because("settings", error))?;
        let request = encode_request(ApplyFlagSettings::SUBTYPE, &ApplyFlagSettings::new(settings))?;
        conn.request(ApplyFlagSettings::SUBTYPE, request, deadline)
            .await?;
    }
    // In the order of their names: servers are set before they are turned off.
    let order = [
        "mcp_set_servers",
        "mcp_toggle",
        "set_mcp_permission_mode_override",
        "set_model",
        "set_max_thinking_tokens",
    ];
    for subtype in order {
        let of_kind = changes.requests.iter().filter(|((kind, _), _)| *kind == subtype);
        for ((_, about), request) in of_kind {
            let answer = conn.request(subtype, request.clone(), deadline).await;
            match (subtype, answer) {
                ("mcp_set_servers", Ok(payload)) => {
                    let reply = McpSetServers::read_reply(Some(&payload));
                    let reply =
                        reply.map_err(|error| Error::misfit("the answer to `mcp_set_servers`", error))?;
                    lost.mcp_servers.extend(reply.errors);
                }
                // A server that is not there can't be turned off, and need not be.
                ("mcp_toggle", Err(error)) if error.as_refusal().is_some() => {
                    lost.mcp_servers.insert(about.clone(), error.to_string());
                }
                (_, answer) => drop(answer?),
            }
        }
    }
    Ok(())
}

/// The right to revive a session, released if it was not used: two processes must not write to one conversation.
struct ReviveRight<'a>(Option<&'a Arc<Conn>>);

impl<'a> ReviveRight<'a> {
    fn take(conn: &'a Arc<Conn>) -> Result<Self> {
        if conn.revived.swap(true, Ordering::SeqCst) {
            return Err(problem(ReviveProblem::AlreadyRevived));
        }
        Ok(Self(Some(conn)))
    }

    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for ReviveRight<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.0 {
            conn.revived.store(false, Ordering::SeqCst);
        }
    }
}

fn problem(problem: ReviveProblem) -> Error {
    Error::of(problem)
}
