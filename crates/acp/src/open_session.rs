//! Opens sessions: from a request to a session with its CLI.

#[cfg_attr(
    not(feature = "host"),
    allow(unreachable_code, unused, reason = "a host has no values then")
)]
mod on_host;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use agent_client_protocol::{Error, ErrorCode};
use outrigger::protocol::outbound::InitializeReply;
use outrigger::protocol::shared::SystemPrompt;
use outrigger::{Cause, Claim, Options, Session, Spare};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use crate::ask::{CliResponder, EditorQuestion, Forms, Modes};
use crate::auth;
use crate::choices::Choices;
use crate::client::Client;
use crate::config;
use crate::error::bad;
use crate::event::RecordedAgent;
use crate::hub::{Hub, OpeningSession};
use crate::mcp;
use crate::meta::{RawMessages, SessionMeta};
use crate::reduce::TaskPlan;
use crate::replay;
use crate::response_sender::ResponseSender;
use crate::review;
use crate::sdk_error;
use crate::session::mcp_servers::Mcp;
use crate::session::{self, Actor, Inbox, OnHost, Parts};
use crate::spare;
use crate::stored::{self, Replayed};
use crate::wire::v2::convert;

/// The time limit for a spare to become a session, which takes about 0.1 s. After that, a new process replaces it.
const CLAIM: Duration = Duration::from_secs(5);

/// The session that a request asks for.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) servers: Vec<acp::McpServer>,
    pub(crate) system_prompt: Option<acp::SystemPrompt>,
    pub(crate) origin: Origin,
    pub(crate) meta: Option<acp::Meta>,
}

/// The origin of the session's conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A new conversation.
    New,
    /// Continue this session.
    Resume(acp::SessionId),
    /// Replay this session, and continue it.
    Load(acp::SessionId),
    /// Continue a copy of this session, which ends with this message if there is one.
    Fork(acp::SessionId, Option<String>),
}

/// The data of the answer.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: acp::SessionId,
    pub(crate) choices: Choices,
    pub(crate) meta: acp::Meta,
}

impl Wanted {
    /// From the fields of a request of the draft.
    ///
    /// # Errors
    /// When a field has no counterpart in version 1.
    pub(crate) fn of_draft(
        cwd: draft::AbsolutePath,
        directories: Vec<draft::AbsolutePath>,
        servers: &[draft::McpServer],
        system_prompt: Option<&draft::SystemPrompt>,
        origin: Origin,
        meta: Option<acp::Meta>,
    ) -> Result<Self, Error> {
        Ok(Self {
            cwd: cwd.0,
            directories: directories.into_iter().map(|directory| directory.0).collect(),
            servers: convert::servers(servers)?,
            system_prompt: convert::system_prompt(system_prompt)?,
            origin,
            meta,
        })
    }

    /// Checks the directories.
    async fn check(&self) -> Result<(), Error> {
        directory("cwd", &self.cwd).await?;
        for (position, path) in self.directories.iter().enumerate() {
            let parameter = format!("additionalDirectories[{position}]");
            directory(&parameter, path).await?;
        }
        Ok(())
    }

    /// The system prompt, from the request or its `_meta`.
    fn prompt(&self, given: &SessionMeta) -> Result<Option<SystemPrompt>, Error> {
        match (&self.system_prompt, &given.system_prompt) {
            (None, given) => Ok(given.clone()),
            (Some(prompt), None) => system_prompt(prompt).map(Some),
            (Some(_), Some(_)) => Err(bad("_meta.systemPrompt", "the request has systemPrompt, too")),
        }
    }

    /// The claim that turns a spare into this session; `None` if no spare can.
    fn claim(&self, base: &Options, given: &SessionMeta, prompt: Option<&SystemPrompt>) -> Option<Claim> {
        if self.origin != Origin::New || !self.servers.is_empty() || given.has_options() {
            return None;
        }
        let claim = Claim::new(&self.cwd).additional_directories(self.directories.iter().cloned());
        match prompt {
            None => Some(claim),
            Some(SystemPrompt::Preset {
                append: Some(text),
                exclude_dynamic_sections: None,
                snapshot: None,
            }) if base.system_prompt.is_none() => Some(claim.append_system_prompt(text)),
            Some(_) => None,
        }
    }

    /// Adds everything to the options but the origin.
    fn put(
        &self,
        options: Options,
        given: &SessionMeta,
        prompt: Option<SystemPrompt>,
    ) -> Result<Options, Error> {
        let mut options = given.put(options)?;
        options.cwd = Some(self.cwd.clone());
        options
            .additional_directories
            .extend(self.directories.iter().cloned());
        options.system_prompt = prompt.or(options.system_prompt);
        Ok(options)
    }

    /// Adds the origin, and the id of the session, which is `fresh` for a new conversation.
    async fn from(
        &self,
        base: &Options,
        mut options: Options,
        fresh: acp::SessionId,
    ) -> Result<(acp::SessionId, Options), Error> {
        let id = match &self.origin {
            Origin::New => {
                options.session_id = Some(fresh.0.to_string());
                fresh
            }
            Origin::Resume(id) | Origin::Load(id) => {
                options.resume = Some(stored::find(base, id).await?);
                id.clone()
            }
            Origin::Fork(id, up_to) => {
                stored::fork(base, id, up_to.as_deref(), &fresh).await?;
                options.resume = Some(fresh.0.to_string());
                fresh
            }
        };
        Ok((id, options))
    }
}

/// The last message of a fork: `_meta.claudeCode.upToMessageId`.
pub(crate) fn up_to(meta: Option<&acp::Meta>) -> Result<Option<String>, Error> {
    match meta.and_then(|meta| meta.get("claudeCode")?.get("upToMessageId")) {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::String(id)) => Ok(Some(id.clone())),
        Some(_) => Err(bad("_meta.claudeCode.upToMessageId", "it is not a string")),
    }
}

fn system_prompt(prompt: &acp::SystemPrompt) -> Result<SystemPrompt, Error> {
    let mut texts = Vec::new();
    for block in &prompt.content {
        match block {
            acp::ContentBlock::Text(text) => texts.push(text.text.as_str()),
            _ => return Err(bad("systemPrompt", "only text is taken")),
        }
    }
    let text = texts.join("\n\n");
    if text.trim().is_empty() {
        return Err(bad("systemPrompt.content", "it is empty"));
    }
    match &prompt.mode {
        acp::SystemPromptMode::Append => Ok(SystemPrompt::Preset {
            append: Some(text),
            exclude_dynamic_sections: None,
            snapshot: None,
        }),
        acp::SystemPromptMode::Override => Ok(SystemPrompt::Text(text)),
        mode => Err(bad(
            "systemPrompt.mode",
            format!("{mode:?} is neither append nor override"),
        )),
    }
}

/// Checks a directory of a session.
///
/// # Errors
/// When the path is not absolute, or there is no such directory.
async fn directory(parameter: &str, path: &Path) -> Result<PathBuf, Error> {
    if !path.is_absolute() {
        return Err(bad(parameter, format!("{} is not absolute", path.display())));
    }
    match tokio::fs::metadata(path).await {
        Ok(found) if found.is_dir() => Ok(path.to_owned()),
        Ok(_) => Err(bad(parameter, format!("{} is not a directory", path.display()))),
        Err(why) => Err(bad(parameter, format!("{}: {why}", path.display()))),
    }
}

/// Opens a session, answers the request, and runs the session.
pub(crate) fn open(hub: &Arc<Hub>, wanted: Wanted, client: Client, answer: ResponseSender<Opened>) {
    let work = Arc::clone(hub);
    let stop = hub.stop().clone();
    let opening = match &wanted.origin {
        Origin::Resume(id) | Origin::Load(id) => Some(OpeningSession::new(hub, id)),
        Origin::New | Origin::Fork(..) => None,
    };
    hub.spawn(async move {
        let _opening = opening;
        let cancellation = answer.cancellation();
        let ready = cancellation.run_until_cancelled(prepare(&work, wanted, client.clone()));
        let ready = tokio::select! {
            ready = ready => ready,
            // A process that was started ends when it is dropped.
            () = stop.cancelled() => return,
        };
        let ready = match ready {
            Ok(ready) => ready,
            Err(mut error) => {
                if work.config.host.is_none() && auth::with_methods(&mut error, &client) {
                    client.learned_auth(auth::nobody());
                }
                return answer.refuse(error);
            }
        };
        answer.give(Ok(Opened {
            id: ready.id.clone(),
            choices: ready.choices.clone(),
            meta: ready.meta.clone(),
        }));
        work.spawn(live(Arc::clone(&work), ready));
    });
}

/// Runs an opened session to its end.
async fn live(hub: Arc<Hub>, ready: Ready) {
    let Ready {
        id,
        client,
        choices: told,
        handle,
        opening,
        again,
        mcp,
        modes,
        asks,
        mut inbox,
        ended,
        raw,
        on_host,
        agents,
        plan,
        ..
    } = ready;
    let arrived = match opening {
        Opening::Started(session) => Some((session, Default::default())),
        Opening::Claimed(start) => session::arrival(start, &mut inbox).await,
    };
    if let Some((session, early)) = arrived {
        let choices = Choices::new(session.initialized(), again.allow_dangerously_skip_permissions)
            .switches(client.has_switches());
        let parts = Parts {
            id: id.clone(),
            client,
            session,
            again,
            told,
            choices,
            mcp,
            modes,
            early,
            raw,
            inbox,
            asks,
            cancel_floor: hub.config.cancel_floor,
            idle_compaction: hub.config.idle_compaction.filter(|_| on_host.is_none()),
            on_host,
            agents,
            plan,
        };
        Actor::run(parts).await;
    }
    hub.leave(&id, &handle);
    drop(ended);
}

/// The account that the CLI reports: `_meta.claudeCode.account`, without empty fields.
fn account(told: &InitializeReply) -> acp::Meta {
    let account = serde_json::to_value(&told.account).unwrap_or_default();
    let mut said = account.as_object().cloned().unwrap_or_default();
    said.retain(|_, value| !value.is_null());
    let mut meta = acp::Meta::new();
    meta.insert("claudeCode".to_owned(), serde_json::json!({ "account": said }));
    meta
}

/// A session that is ready for the answer.
struct Ready {
    id: acp::SessionId,
    client: Client,
    choices: Choices,
    meta: acp::Meta,
    handle: session::Handle,
    opening: Opening,
    /// For a new process, should this one end before the conversation has a message.
    again: Options,
    mcp: Mcp,
    modes: Modes,
    asks: mpsc::Receiver<EditorQuestion>,
    inbox: Inbox,
    /// Dropped when the session has ended.
    ended: DropGuard,
    raw: RawMessages,
    on_host: Option<OnHost>,
    /// The subagents of the stored session.
    agents: Vec<RecordedAgent>,
    /// The plan of the stored session.
    plan: Option<TaskPlan>,
}

enum Opening {
    Started(Session),
    /// A spare is about to become the session. The answer needs only what the spare has reported.
    Claimed(session::Start),
}

async fn prepare(hub: &Arc<Hub>, wanted: Wanted, client: Client) -> Result<Ready, Error> {
    // Two processes must not write to one conversation.
    let _lock = match &wanted.origin {
        Origin::Resume(id) | Origin::Load(id) => Some(hub.lock_of(id).await),
        Origin::New | Origin::Fork(..) => None,
    };
    if let Some(host) = &hub.config.host {
        return on_host::prepare(hub, host, wanted, client).await;
    }
    let servers = mcp::Servers::of(&wanted.servers)?;
    let given = SessionMeta::of(wanted.meta.as_ref())?;
    let prompt = wanted.prompt(&given)?;
    wanted.check().await?;
    if given.replay_limit.is_some() && !matches!(wanted.origin, Origin::Load(_)) {
        return Err(bad("_meta.claudeCode.replay", "this request replays nothing"));
    }
    let base = &hub.config.options;
    review::recover(base).await;
    let claim = wanted.claim(base, &given, prompt.as_ref());
    let spare = match &claim {
        // Without an account, the claim would fail after the answer. A normal start fails before it.
        Some(_) => {
            let warm = hub.spare().take().await;
            warm.filter(|warm| !auth::is_nobody(&warm.spare.initialized().account))
        }
        None => {
            // The next session is probably similar.
            if wanted.origin == Origin::New {
                hub.spare().clear();
            }
            None
        }
    };
    let can_be_claimed = claim.is_some();
    let ready = match claim.zip(spare) {
        Some((claim, warm)) => {
            let again = wanted.put(warm.options, &given, prompt)?;
            let host = host(hub, &client, warm.forms, &again);
            let (handle, inbox, ended) = session::new(warm.questions, hub.stop(), hub.handled());
            hub.enter(&warm.id, handle.clone())?;
            let told = warm.spare.initialized();
            let known = auth::of_account(&told.account);
            client.learned_auth(known);
            Ready {
                choices: Choices::new(told, again.allow_dangerously_skip_permissions)
                    .switches(client.has_switches()),
                meta: account(told),
                opening: Opening::Claimed(becomes(hub, warm.spare, claim, again.clone())),
                id: warm.id,
                client: client.clone(),
                handle,
                again,
                mcp: Mcp::new(host, servers),
                modes: warm.modes,
                asks: warm.asks,
                inbox,
                ended,
                raw: given.raw,
                on_host: None,
                agents: Vec::new(),
                plan: None,
            }
        }
        None => {
            let options = wanted.put(config::always(base.clone()), &given, prompt)?;
            let fresh = acp::SessionId::new(uuid::Uuid::new_v4().to_string());
            let is_fork = matches!(wanted.origin, Origin::Fork(..));
            let copy = is_fork.then(|| UnopenedSession::new(hub, fresh.clone()));
            let (id, options) = wanted.from(base, options, fresh).await?;
            let modes = Modes::default();
            let (desk, asks) = CliResponder::new(id.clone(), client.clone(), modes.clone());
            let host = host(hub, &client, desk.forms(), &options);
            let (handle, inbox, ended) = session::new(desk.cancel(), hub.stop(), hub.handled());
            let again = servers.add_to(options, &host).callbacks(desk);
            let again = review::add_to(again, &hub.config, &client, &id, hub.tasks());
            let (session, replayed) = start(hub, &wanted, &client, &id, &again, &given).await?;
            let agents = match &wanted.origin {
                Origin::Load(_) | Origin::Resume(_) if client.shows_children() => {
                    stored::agents(base, &id).await?
                }
                _ => Vec::new(),
            };
            let mut meta = account(session.initialized());
            if given.replay_limit.is_some() {
                replay::add_to(&mut meta, replayed.before);
            }
            hub.enter(&id, handle.clone())?;
            UnopenedSession::opened(copy);
            let known = auth::of_account(&session.initialized().account);
            client.learned_auth(known);
            Ready {
                choices: Choices::new(session.initialized(), again.allow_dangerously_skip_permissions)
                    .switches(client.has_switches()),
                meta,
                opening: Opening::Started(session),
                id,
                client: client.clone(),
                handle,
                again,
                mcp: Mcp::new(host, servers),
                modes,
                asks,
                inbox,
                ended,
                raw: given.raw,
                on_host: None,
                agents,
                plan: Some(replayed.plan),
            }
        }
    };
    if can_be_claimed {
        spare::warm(hub, client);
    }
    Ok(ready)
}

/// A session that was made for a request. It is deleted unless it is opened: nobody knows of it.
struct UnopenedSession(Option<(Arc<Hub>, acp::SessionId)>);

impl UnopenedSession {
    fn new(hub: &Arc<Hub>, id: acp::SessionId) -> Self {
        Self(Some((Arc::clone(hub), id)))
    }

    fn opened(unopened: Option<Self>) {
        if let Some(mut unopened) = unopened {
            unopened.0 = None;
        }
    }
}

impl Drop for UnopenedSession {
    fn drop(&mut self) {
        let Some((hub, id)) = self.0.take() else { return };
        let work = Arc::clone(&hub);
        hub.spawn(async move {
            let deleted = match &work.config.host {
                Some(host) => host.delete(&id).await,
                None => stored::delete(&work.config.options, &id).await,
            };
            if let Err(error) = deleted {
                tracing::debug!(%error, "a session that was not opened is not deleted");
            }
        });
    }
}

/// Makes the MCP servers in the editor.
fn host(hub: &Hub, client: &Client, forms: Forms, options: &Options) -> mcp::ServerMaker {
    let roots = options.cwd.iter().chain(&options.additional_directories);
    mcp::ServerMaker::new(
        client.clone(),
        hub.routes.clone(),
        forms,
        roots.cloned().collect(),
    )
}

/// Starts a CLI, and reads the stored session meanwhile: replays it, or only looks for its plan.
async fn start(
    hub: &Arc<Hub>,
    wanted: &Wanted,
    client: &Client,
    id: &acp::SessionId,
    options: &Options,
    given: &SessionMeta,
) -> Result<(Session, Replayed), Error> {
    hub.ended_of(id).await;
    let starting = options.clone();
    let start = async {
        starting.start().await.map_err(|error| {
            let mut told = sdk_error::of_sdk(&error);
            // Those of the agent's environment had this error in each session.
            let is_of_options = error.as_options_error().is_some() || error.cause() == Some(Cause::Settings);
            if given.has_options() && is_of_options {
                told.code = ErrorCode::INVALID_PARAMS;
            }
            told
        })
    };
    let limit = given.replay_limit;
    match &wanted.origin {
        Origin::Load(loaded) => {
            let again = stored::replay(&hub.config.options, loaded, &wanted.cwd, client, limit);
            let (session, again) = tokio::join!(start, again);
            let replayed = again?;
            Ok((session?, replayed))
        }
        Origin::Resume(resumed) => {
            let last = stored::last(&hub.config.options, resumed, &wanted.cwd, None, 1);
            let (session, last) = tokio::join!(start, last);
            let last = last.inspect_err(|error| tracing::debug!(%error, "the plan is not known"));
            let plan = last.map(|page| page.plan).unwrap_or_default();
            Ok((session?, Replayed { before: None, plan }))
        }
        _ => Ok((start.await?, Replayed::default())),
    }
}

/// Turns a spare into the session. If that fails, starts a new process.
fn becomes(hub: &Arc<Hub>, spare: Spare, claim: Claim, options: Options) -> session::Start {
    let mut first = Some((spare, claim));
    // Weak, as the hub waits for the session's task.
    let hub = Arc::downgrade(hub);
    Box::new(move || {
        let (first, options, hub) = (first.take(), options.clone(), hub.clone());
        Box::pin(async move {
            if let Some((spare, claim)) = first {
                match tokio::time::timeout(CLAIM, spare.claim(claim)).await {
                    Ok(Ok(session)) => return Ok(session),
                    // No failure: the project's settings may differ from what the spare has read.
                    Ok(Err(failed)) => {
                        tracing::info!(why = %failed.error, "the spare CLI did not become the session")
                    }
                    Err(_) => tracing::warn!("the spare CLI did not become the session in time"),
                }
                if let Some(hub) = hub.upgrade() {
                    hub.spare().give_up();
                }
            }
            options.start().await.map_err(|error| sdk_error::of_sdk(&error))
        })
    })
}
