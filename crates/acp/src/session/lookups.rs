//! Data that the CLI does not report by itself: requests to the CLI, and reads of its transcript. Nothing waits for them.

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger::Session;
use outrigger::protocol::Frame;
use outrigger::protocol::inbound::Message;
use outrigger::protocol::outbound::control::{ContextDetail, GetContextUsage};

use super::actor::Actor;
use crate::stored;

pub(super) type Lookups = FuturesUnordered<BoxFuture<'static, Option<LookupResult>>>;

pub(super) enum LookupResult {
    /// The context window of the model, and the tokens in use.
    Context { model: String, size: u64, used: u64 },
    /// The current model.
    Model(String),
    /// The title of the session.
    Title(String),
}

impl Actor {
    /// Asks for the context window: a turn reports it only at its end.
    pub(super) fn look_up_context(&self) {
        if let Some(session) = self.process.running().cloned() {
            self.lookups.push(context(session));
        }
    }

    /// Asks for the model after a turn without API requests: a slash command may have changed it.
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
            settings
                .ok()?
                .applied
                .map(|applied| LookupResult::Model(applied.model))
        }));
    }

    /// Reads the title that the model gave the session. The CLI writes it to the transcript and does not report it.
    pub(super) fn look_up_title(&self) {
        if self.link.is_some() {
            return;
        }
        let options = self.conversation.again.clone();
        let conversation = self.conversation.id.clone();
        self.lookups.push(Box::pin(async move {
            let title = stored::title_of(&options, &conversation).await;
            let title = title.inspect_err(|error| tracing::debug!(%error, "the title is not known"));
            title.ok().flatten().map(LookupResult::Title)
        }));
    }

    /// Sends the updates for it.
    pub(super) fn found(&mut self, found: LookupResult) {
        match found {
            LookupResult::Context { model, size, used } => {
                self.show(|updates| updates.sized(&model, size, used));
            }
            LookupResult::Model(model) => self.model_is(&model),
            LookupResult::Title(title) => {
                self.show(|updates| updates.titled(title));
            }
        }
    }
}

fn context(session: Session) -> BoxFuture<'static, Option<LookupResult>> {
    Box::pin(async move {
        // For details, the CLI would send token counts to the API.
        let asked = GetContextUsage::new().detail(ContextDetail::Summary);
        let told = session.request(&asked).await;
        let told = told.inspect_err(|error| tracing::debug!(%error, "the size of the context is not known"));
        let told = told.ok()?;
        Some(LookupResult::Context {
            model: told.model,
            size: u64::try_from(told.raw_max_tokens).ok()?,
            used: u64::try_from(told.total_tokens).unwrap_or_default(),
        })
    })
}
