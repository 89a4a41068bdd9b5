//! From what the editor wants to a session that runs.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use outrigger::Options;
use outrigger::protocol::outbound::InitializeReply;
use outrigger::protocol::shared::SystemPrompt;

use crate::ask::{Desk, Modes};
use crate::choices::Choices;
use crate::config::may_bypass;
use crate::error::{self, bad};
use crate::mcp;
use crate::rest;
use crate::serve::answer::Answer;
use crate::serve::client::Client;
use crate::serve::hub::{Hub, directory};
use crate::session::{self, Actor, Parts};

/// A session that the editor wants, whatever the request.
#[derive(Debug)]
pub(crate) struct Wanted {
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    servers: Vec<acp::McpServer>,
    system_prompt: Option<acp::SystemPrompt>,
    origin: Origin,
}

/// Where its conversation comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It has none yet.
    New,
    /// It goes on with this session.
    Resume(acp::SessionId),
    /// The same, and what was said in it is told again first.
    Load(acp::SessionId),
    /// It goes on with a copy of this session, up to a message if one is given.
    Fork(acp::SessionId, Option<String>),
}

/// What is said of a session that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: acp::SessionId,
    pub(crate) choices: Choices,
    pub(crate) meta: acp::Meta,
}

/// The requests differ in nothing but what is gone on with.
macro_rules! wanted {
    ($($name:ident($request:ident) = $origin:ident;)+) => {
        $(
            pub(crate) fn $name(request: acp::$request) -> Self {
                Self {
                    cwd: request.cwd,
                    directories: request.additional_directories,
                    servers: request.mcp_servers,
                    system_prompt: request.system_prompt,
                    origin: Origin::$origin(request.session_id),
                }
            }
        )+
    };
}

impl Wanted {
    wanted! {
        load(LoadSessionRequest) = Load;
        resume(ResumeSessionRequest) = Resume;
    }

    /// # Errors
    /// When the message to fork at is no id.
    pub(crate) fn fork(request: acp::ForkSessionRequest) -> Result<Self, Error> {
        let up_to = up_to(request.meta.as_ref())?;
        Ok(Self {
            cwd: request.cwd,
            directories: request.additional_directories,
            servers: request.mcp_servers,
            system_prompt: request.system_prompt,
            origin: Origin::Fork(request.session_id, up_to),
        })
    }

    pub(crate) fn new(request: acp::NewSessionRequest) -> Self {
        Self {
            cwd: request.cwd,
            directories: request.additional_directories,
            servers: request.mcp_servers,
            system_prompt: request.system_prompt,
            origin: Origin::New,
        }
    }

    /// What to start the CLI with, and the id of the session.
    async fn options(&self, base: &Options) -> Result<(acp::SessionId, Options), Error> {
        let mut options = base.clone();
        options.cwd = Some(directory("cwd", &self.cwd).await?);
        for (position, path) in self.directories.iter().enumerate() {
            let parameter = format!("additionalDirectories[{position}]");
            options
                .additional_directories
                .push(directory(&parameter, path).await?);
        }
        if let Some(prompt) = &self.system_prompt {
            options.system_prompt = Some(system_prompt(prompt)?);
        }
        let id = match &self.origin {
            Origin::New => {
                let id = uuid::Uuid::new_v4().to_string();
                options.session_id = Some(id.clone());
                acp::SessionId::new(id)
            }
            Origin::Resume(id) | Origin::Load(id) => {
                options.resume = Some(rest::find(base, id).await?);
                id.clone()
            }
            Origin::Fork(id, up_to) => {
                let fork = rest::fork(base, id, up_to.as_deref()).await?;
                options.resume = Some(fork.0.to_string());
                fork
            }
        };
        options.include_partial_messages = true;
        options.forward_subagent_text = true;
        // As in a terminal: so that files can be taken back. A session store has no place for the copies.
        options.enable_file_checkpointing |= !base.has_session_store();
        options.allow_dangerously_skip_permissions = may_bypass(base);
        Ok((id, options))
    }
}

/// The message that a fork ends with: `_meta.claudeCode.upToMessageId`.
fn up_to(meta: Option<&acp::Meta>) -> Result<Option<String>, Error> {
    match meta.and_then(|meta| meta.get("claudeCode")?.get("upToMessageId")) {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::String(id)) => Ok(Some(id.clone())),
        Some(_) => Err(bad("_meta.claudeCode.upToMessageId", "it is no text")),
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

/// Opens a session, answers, and lets it run.
pub(crate) fn open(hub: &Arc<Hub>, wanted: Wanted, client: Client, answer: Answer<Opened>) {
    let work = Arc::clone(hub);
    let stop = hub.stop().clone();
    hub.spawn(async move {
        let cancellation = answer.cancellation();
        let ready = cancellation.run_until_cancelled(prepare(&work, wanted, client));
        let ready = tokio::select! {
            ready = ready => ready,
            // What was started ends as it is dropped.
            () = stop.cancelled() => return,
        };
        let ready = match ready {
            Ok(ready) => ready,
            Err(error) => return answer.refuse(error),
        };
        answer.give(Ok(ready.opened));
        let (id, handle) = (ready.id, ready.handle);
        let actor = Actor::new(ready.parts);
        work.spawn({
            let hub = Arc::clone(&work);
            async move {
                actor.run().await;
                hub.leave(&id, &handle);
            }
        });
    });
}

/// Who pays, by the CLI's own word: `_meta.claudeCode.account`, without what it does not say.
fn account(told: &InitializeReply) -> acp::Meta {
    let account = serde_json::to_value(&told.account).unwrap_or_default();
    let mut said = account.as_object().cloned().unwrap_or_default();
    said.retain(|_, value| !value.is_null());
    let mut meta = acp::Meta::new();
    meta.insert("claudeCode".to_owned(), serde_json::json!({ "account": said }));
    meta
}

/// A session that is ready to run.
struct Ready {
    id: acp::SessionId,
    opened: Opened,
    handle: session::Handle,
    parts: Parts,
}

async fn prepare(hub: &Arc<Hub>, wanted: Wanted, client: Client) -> Result<Ready, Error> {
    let servers = mcp::Servers::of(&wanted.servers)?;
    let (id, options) = wanted.options(&hub.config.options).await?;
    let modes = Modes::default();
    let (desk, asks) = Desk::new(id.clone(), client.clone(), modes.clone());
    let roots = options.cwd.iter().chain(&options.additional_directories);
    let host = mcp::Host::new(
        client.clone(),
        hub.routes.clone(),
        desk.forms(),
        roots.cloned().collect(),
    );
    let options = servers.add_to(options, &host).callbacks(desk);
    // Two processes must not write to one conversation.
    let before = hub.sessions().remove(id.0.as_ref());
    if let Some(before) = before {
        before.close().await;
    }
    let starting = options.clone();
    let start = async { starting.start().await.map_err(|error| error::of_sdk(&error)) };
    let session = match &wanted.origin {
        Origin::Load(loaded) => {
            let again = rest::tell_again(&hub.config.options, loaded, &wanted.cwd, &client);
            let (session, again) = tokio::join!(start, again);
            again?;
            session?
        }
        _ => start.await?,
    };
    let choices = Choices::new(session.initialized(), options.allow_dangerously_skip_permissions);
    let meta = account(session.initialized());
    let (handle, orders, cancel) = session::orders();
    hub.enter(&id, handle.clone())?;
    let parts = Parts {
        id: id.clone(),
        client,
        session,
        again: options,
        choices: choices.clone(),
        modes,
        asks,
        orders,
        cancel,
        stop: hub.stop().clone(),
        cancel_floor: hub.config.cancel_floor,
    };
    let opened = Opened {
        id: id.clone(),
        choices,
        meta,
    };
    Ok(Ready {
        id,
        opened,
        handle,
        parts,
    })
}
