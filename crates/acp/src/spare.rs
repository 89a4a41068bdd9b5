//! The spare: a CLI that is started ahead, for the session that the editor opens next.
//!
//! It runs with `--await-claim`: no session, in no list, without transcript, hooks or MCP servers until it is claimed. A full session
//! would open a few milliseconds faster, but other programs would see it, `SessionStart` hooks would run for no session, and its view of
//! the directory would be stale.
//!
//! There is at most one. It is started after each session that a spare could have served: so it does not compete with the first session
//! of an editor, and an editor whose sessions no spare can serve (they are loaded, or have MCP servers of the editor) has none. A new
//! session that no spare can serve is started as usual and ends the spare, since the next one is probably similar.

mod staleness;

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use tokio::sync::oneshot;

use self::staleness::Marks;
use crate::ask::{CliResponder, Modes};
use crate::client::Client;
use crate::config;
use crate::hub::{Hub, SpareRequest, WarmSpare};
use crate::review;

/// How long to wait after a session was opened before a spare is started: the start would compete with the first turn.
const REST: Duration = Duration::from_secs(1);

/// A session was opened that a spare could have served: starts a spare for the next, unless there is one.
pub(crate) fn warm(hub: &Arc<Hub>, client: Client) {
    if !hub.config.spare {
        return;
    }
    if let Some(wishes) = hub.spare().fill() {
        hub.spawn(keep(Arc::clone(hub), client, wishes));
    }
}

/// Starts a spare, and keeps it until it is requested, dies, becomes too old, or the connection ends.
async fn keep(hub: Arc<Hub>, client: Client, mut wishes: oneshot::Receiver<SpareRequest>) {
    tokio::select! {
        // Requested before its start: a normal start is as fast.
        _ = &mut wishes => return,
        () = hub.stop().cancelled() => return,
        () = tokio::time::sleep(REST) => {}
    }
    let config = hub.config.options.clone();
    let Ok(marks) = tokio::task::spawn_blocking(move || Marks::of(&config)).await else {
        return;
    };
    let mut wish = None;
    let starting = start(&hub, client);
    tokio::pin!(starting);
    let warm = loop {
        tokio::select! {
            warm = &mut starting => break warm,
            wished = &mut wishes, if wish.is_none() => match wished {
                Ok(wished) => wish = Some(wished),
                // A process that was started ends when it is dropped.
                Err(_) => return,
            },
            () = hub.stop().cancelled() => return,
        }
    };
    let warm = match warm {
        Ok(warm) => warm,
        // A normal start fails as well, and reports the error.
        Err(error) => return tracing::debug!(%error, "there is no spare CLI"),
    };
    tracing::debug!(spare = ?warm.spare, "a spare CLI is ready");
    if wish.is_none() {
        tokio::select! {
            wished = wishes => wish = wished.ok(),
            error = warm.spare.wait_ended() => return tracing::debug!(%error, "the spare CLI ended"),
            () = hub.stop().cancelled() => {}
            () = tokio::time::sleep(hub.config.spare_age) => tracing::debug!("the spare CLI is too old"),
        }
    }
    let unwanted = match wish {
        Some(wish) if warm.spare.is_alive() && !marks.have_changed().await => wish.send(warm).err(),
        _ => Some(warm),
    };
    if let Some(warm) = unwanted
        && let Err(error) = warm.spare.close().await
    {
        tracing::debug!(%error, "a spare CLI could not be closed");
    }
}

async fn start(hub: &Hub, client: Client) -> outrigger::Result<WarmSpare> {
    let id = acp::SessionId::new(uuid::Uuid::new_v4().to_string());
    let modes = Modes::default();
    let (desk, asks) = CliResponder::new(id.clone(), client.clone(), modes.clone());
    let (forms, questions) = (desk.forms(), desk.cancel());
    let options = config::always(hub.config.options.clone()).callbacks(desk);
    let mut options = review::add_to(options, &hub.config, &client, &id, hub.tasks());
    options.session_id = Some(id.0.to_string());
    let spare = options.clone().prewarm().await?;
    Ok(WarmSpare {
        id,
        spare,
        options,
        modes,
        asks,
        forms,
        questions,
    })
}
