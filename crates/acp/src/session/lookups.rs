//! What the CLI does not say by itself: it is asked, or looked up where the CLI writes it down. Nothing waits for it.

use std::future::ready;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger::Session;
use outrigger::protocol::outbound::control::{ContextDetail, GetContextUsage};

use super::actor::Actor;
use crate::rest;

/// What is being looked up.
pub(super) type Lookups = FuturesUnordered<BoxFuture<'static, Option<Found>>>;

/// What was found.
pub(super) enum Found {
    /// How many tokens the model takes, and how many the context has.
    Context { model: String, size: u64, used: u64 },
    /// What to call the session.
    Title(String),
}

impl Actor {
    /// Asks how much the model takes: a turn says so only at its end.
    pub(super) fn look_up_context(&self) {
        let lookup = self.life.running().cloned().map(context);
        self.lookups.push(lookup.unwrap_or_else(|| Box::pin(ready(None))));
    }

    /// Looks for the title that the model gave the session, which the CLI writes down without a word.
    pub(super) fn look_up_title(&self) {
        let options = self.again.clone();
        let conversation = self.conversation.clone();
        self.lookups.push(Box::pin(async move {
            let title = rest::title_of(&options, &conversation).await;
            let title = title.inspect_err(|error| tracing::debug!(%error, "the title is not known"));
            title.ok().flatten().map(Found::Title)
        }));
    }

    /// Tells what was found.
    pub(super) fn found(&mut self, found: Found) {
        match found {
            Found::Context { model, size, used } => {
                let updates = self.show.sized(&model, size, used);
                self.tell(updates);
            }
            Found::Title(title) => {
                let updates = self.show.titled(title);
                self.tell(updates);
            }
        }
    }
}

fn context(session: Session) -> BoxFuture<'static, Option<Found>> {
    Box::pin(async move {
        // In detail the CLI would have the API count.
        let asked = GetContextUsage::new().detail(ContextDetail::Summary);
        let told = session.request(&asked).await;
        let told = told.inspect_err(|error| tracing::debug!(%error, "the size of the context is not known"));
        let told = told.ok()?;
        Some(Found::Context {
            model: told.model,
            size: u64::try_from(told.raw_max_tokens).ok()?,
            used: u64::try_from(told.total_tokens).unwrap_or_default(),
        })
    })
}
