//! A CLI that is started ahead, for the session that the editor opens next.
//!
//! It is the CLI's own kind of spare (`--await-claim`): no session, in no list, without transcript, hooks or MCP servers until it is
//! claimed. A full session that is started ahead would be a few milliseconds faster, but other programs would see it, `SessionStart`
//! hooks would run for nobody, and what it had read of its directory would be old.
//!
//! There is one at most. It is started after each session that it could have been: the first session of an editor does not compete with it,
//! and an editor whose sessions no spare can be, since they are loaded or have MCP servers of the editor, has none. A new session that asks
//! for what no spare can have is started as usual, and with it ends the spare, since the next is likely to be like it.

mod staleness;

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use outrigger::Options;
use tokio::sync::oneshot;

use self::staleness::Marks;
use crate::ask::{Desk, Modes};
use crate::client::Client;
use crate::config;
use crate::hub::{Hub, SpareRequest, WarmSpare};

/// How long to wait after a session was opened before the next spare is started: its start takes a core for a while, which is better
/// left to the first turn.
const REST: Duration = Duration::from_secs(1);

/// A session was opened that a spare could have been: has one started for the next, unless there is one.
pub(crate) fn warm(hub: &Arc<Hub>, client: Client) {
    if !hub.config.spare {
        return;
    }
    if let Some(wishes) = hub.spare().fill() {
        hub.spawn(keep(Arc::clone(hub), client, wishes));
    }
}

/// Starts a spare, and keeps it until it is wanted, dies, becomes too old, or the connection ends.
async fn keep(hub: Arc<Hub>, client: Client, mut wishes: oneshot::Receiver<SpareRequest>) {
    tokio::select! {
        // Somebody wants a session before the start of the spare: that one is not slower.
        _ = &mut wishes => return,
        () = hub.stop().cancelled() => return,
        () = tokio::time::sleep(REST) => {}
    }
    let config = hub.config.options.clone();
    let Ok(marks) = tokio::task::spawn_blocking(move || Marks::of(&config)).await else {
        return;
    };
    let mut wish = None;
    let starting = start(&hub.config.options, client);
    tokio::pin!(starting);
    let warm = loop {
        tokio::select! {
            warm = &mut starting => break warm,
            wished = &mut wishes, if wish.is_none() => match wished {
                Ok(wished) => wish = Some(wished),
                // What was started ends as it is dropped.
                Err(_) => return,
            },
            () = hub.stop().cancelled() => return,
        }
    };
    let warm = match warm {
        Ok(warm) => warm,
        // A session that is started as usual fails as well, and says so to somebody.
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
        tracing::debug!(%error, "a spare CLI was not seen ending");
    }
}

async fn start(options: &Options, client: Client) -> outrigger::Result<WarmSpare> {
    let id = acp::SessionId::new(uuid::Uuid::new_v4().to_string());
    let modes = Modes::default();
    let (desk, asks) = Desk::new(id.clone(), client, modes.clone());
    let forms = desk.forms();
    let mut options = config::always(options.clone()).callbacks(desk);
    options.session_id = Some(id.0.to_string());
    let spare = options.clone().prewarm().await?;
    Ok(WarmSpare {
        id,
        spare,
        options,
        modes,
        asks,
        forms,
    })
}
