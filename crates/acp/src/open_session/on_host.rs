//! Opens sessions that live on a host.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Error;
use outrigger::options::Auth;
use outrigger::{Agent, Options};
use tokio::sync::oneshot;

use super::{Opening, Origin, Ready, UnopenedSession, Wanted};
use crate::ask::{CliResponder, Modes};
use crate::choices::Choices;
use crate::client::Client;
use crate::error::{self, bad};
use crate::host::{Host, HostSession};
use crate::hub::Hub;
use crate::mcp;
use crate::meta::SessionMeta;
use crate::sdk_error;
use crate::session::mcp_servers::Mcp;
use crate::session::{self, Output, Updates};

/// How long the host may take to start a process, for which it may have to make a worktree first.
const START: Duration = Duration::from_secs(300);

/// How long the host may take to end a turn. It ends the process before that.
const INTERRUPT: Duration = Duration::from_secs(60);

const OPERATORS: &str = "it is the choice of the host's operator";

/// What of a request cannot be had on a host.
fn check(wanted: &Wanted, given: &SessionMeta) -> Result<(), Error> {
    if !wanted.cwd.is_absolute() {
        return Err(bad("cwd", format!("{} is not absolute", wanted.cwd.display())));
    }
    if !wanted.directories.is_empty() {
        return Err(bad("additionalDirectories", OPERATORS));
    }
    if wanted.prompt(given)?.is_some() {
        return Err(bad("systemPrompt", OPERATORS));
    }
    if given.has_options() {
        return Err(bad("_meta.claudeCode.options", OPERATORS));
    }
    if given.replay_limit.is_some() {
        return Err(bad(
            "_meta.claudeCode.replay",
            "a session of a host is replayed as a whole",
        ));
    }
    Ok(())
}

/// The options of a session behind a link. Deadlines of the model are the host's.
fn options(seat: &HostSession) -> Options {
    Agent::builder()
        .auth(Auth::Unchecked)
        .session_id(seat.id().0.to_string())
        .cwd(seat.cwd())
        .first_token_deadline(None)
        .between_events_deadline(None)
        .initialize_deadline(START)
        .interrupt_deadline(INTERRUPT)
}

/// Makes a session on the host. The editor may withdraw its request meanwhile: the host may have made the session by then, so its answer
/// is awaited all the same, and the session deleted.
async fn make(
    hub: &Arc<Hub>,
    making: impl Future<Output = Result<HostSession, Error>> + Send + 'static,
) -> Result<(HostSession, Option<UnopenedSession>), Error> {
    let (reply, made) = oneshot::channel();
    let work = Arc::clone(hub);
    hub.spawn(async move {
        let seat = making.await;
        let made = seat.map(|seat| {
            let unopened = UnopenedSession::new(&work, seat.id());
            (seat, Some(unopened))
        });
        // If nobody waits any more, this drops what was made.
        let _ = reply.send(made);
    });
    let gone = |_| Err(error::internal("the agent is ending"));
    made.await.unwrap_or_else(gone)
}

pub(super) async fn prepare(
    hub: &Arc<Hub>,
    host: &Host,
    wanted: Wanted,
    client: Client,
) -> Result<Ready, Error> {
    let given = SessionMeta::of(wanted.meta.as_ref())?;
    check(&wanted, &given)?;
    let (mut seat, made) = match &wanted.origin {
        Origin::New => {
            let (host, cwd) = (host.clone(), wanted.cwd.clone());
            make(hub, async move { host.create(&cwd).await }).await?
        }
        Origin::Resume(id) | Origin::Load(id) => (host.find(id).await?, None),
        Origin::Fork(id, None) => {
            let (host, id) = (host.clone(), id.clone());
            make(hub, async move { host.fork(&id).await }).await?
        }
        Origin::Fork(_, Some(_)) => {
            return Err(bad(
                "_meta.claudeCode.upToMessageId",
                "a host copies whole sessions",
            ));
        }
    };
    let id = seat.id();
    // The editor has a session once.
    hub.ended_of(&id).await;
    let mut updates = Updates::new(&id, seat.cwd().to_owned(), &client).on_host();
    let (mut mode, mut model) = (seat.mode().map(str::to_owned), seat.model().map(str::to_owned));
    let is_load = matches!(wanted.origin, Origin::Load(_));
    // A turn that runs can only be followed with what was before.
    if is_load || seat.is_working() {
        while let Some(frames) = seat.page().await? {
            let mut outputs: Vec<Output> = frames.iter().flat_map(|frame| updates.frame(frame)).collect();
            outputs.extend(updates.flush());
            for output in outputs {
                match output {
                    Output::Update(update) if is_load => client.update(&id, update),
                    Output::Child(child, update) if is_load => client.update(&child, update),
                    Output::Mode(now) => mode = Some(now),
                    Output::Model(now) => model = Some(now),
                    Output::Update(_) | Output::Child(..) | Output::Fast(..) => {}
                }
            }
            client.gate().opened().await;
        }
    }
    let mut first = Vec::new();
    if !wanted.servers.is_empty() {
        let said =
            "The MCP servers of the editor are not there: a session of a host has those of its operator";
        first = seat.notice(said);
    }
    let is_working = seat.is_working();
    let options = options(&seat);
    let link = seat.link(hub.stop().child_token());
    let modes = Modes::default();
    let (desk, asks) = CliResponder::new(id.clone(), client.clone(), modes.clone());
    let (forms, questions) = (desk.forms(), desk.cancel());
    let again = options
        .transport(link.clone())
        .callbacks(desk.without_new_conversations());
    let session = again.clone().start().await;
    let session = session.map_err(|error| sdk_error::of_sdk(&error))?;
    let mut choices = Choices::new(session.initialized(), false).switches(client.has_switches());
    if let Some(mode) = mode {
        choices.mode_is(&mode);
    }
    if let Some(model) = model {
        choices.model_is(&model);
    }
    let (handle, inbox, ended) = session::new(questions, hub.stop(), hub.handled());
    hub.enter(&id, handle.clone())?;
    UnopenedSession::opened(made);
    let editor = super::host(hub, &client, forms, &again);
    Ok(Ready {
        choices,
        meta: Default::default(),
        opening: Opening::Started(session),
        id,
        client: client.clone(),
        handle,
        again,
        mcp: Mcp::new(editor, mcp::Servers::of(&[])?),
        modes,
        asks,
        inbox,
        ended,
        raw: given.raw,
        on_host: Some(session::OnHost {
            link,
            updates,
            is_working,
            first,
        }),
        agents: Vec::new(),
        plan: None,
    })
}
