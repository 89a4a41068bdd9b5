//! What the CLI does not say by itself: it is asked, or looked up where the CLI writes it down. Nothing waits for it.

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger::Session;
use outrigger::protocol::Frame;
use outrigger::protocol::inbound::Message;
use outrigger::protocol::outbound::control::{ContextDetail, GetContextUsage};

use super::actor::Actor;
use crate::stored;

/// What is being looked up.
pub(super) type Lookups = FuturesUnordered<BoxFuture<'static, Option<Found>>>;

/// What was found.
pub(super) enum Found {
    /// How many tokens the model takes, and how many the context has.
    Context { model: String, size: u64, used: u64 },
    /// Which model answers.
    Model(String),
    /// What to call the session.
    Title(String),
}

impl Actor {
    /// Asks how much the model takes: a turn says so only at its end.
    pub(super) fn look_up_context(&self) {
        if let Some(session) = self.process.running().cloned() {
            self.lookups.push(context(session));
        }
    }

    /// Asks which model answers, once a turn is over that the API had no part in: a slash command may have chosen another.
    pub(super) fn look_up_model(&self, result: &Frame) {
        let Some(session) = self.process.running().cloned() else {
            return;
        };
        let turns = match result.decode() {
            Ok(Message::Result(result)) => result.num_turns,
            _ => return,
        };
        if turns > 0 {
            return;
        }
        self.lookups.push(Box::pin(async move {
            let settings = session.get_settings().await;
            let settings = settings.inspect_err(|error| tracing::debug!(%error, "the model is not known"));
            settings.ok()?.applied.map(|applied| Found::Model(applied.model))
        }));
    }

    /// Looks for the title that the model gave the session, which the CLI writes down without a word.
    pub(super) fn look_up_title(&self) {
        let options = self.conversation.again.clone();
        let conversation = self.conversation.id.clone();
        self.lookups.push(Box::pin(async move {
            let title = stored::title_of(&options, &conversation).await;
            let title = title.inspect_err(|error| tracing::debug!(%error, "the title is not known"));
            title.ok().flatten().map(Found::Title)
        }));
    }

    /// Tells what was found.
    pub(super) fn found(&mut self, found: Found) {
        match found {
            Found::Context { model, size, used } => {
                let updates = self.updates.sized(&model, size, used);
                self.tell(updates);
            }
            Found::Model(model) => self.model_is(&model),
            Found::Title(title) => {
                let updates = self.updates.titled(title);
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
