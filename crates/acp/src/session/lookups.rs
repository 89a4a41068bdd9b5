//! Data that the CLI does not report by itself: requests to the CLI, and reads of its transcript. Nothing waits for them.

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger::Session;
use outrigger::protocol::Frame;
use outrigger::protocol::inbound::Message;
use outrigger::protocol::outbound::control::{ContextDetail, GetContextUsage};

use super::actor::Actor;
use super::flags::{self, RunningSettings};
use crate::stored;

pub(super) type Lookups = FuturesUnordered<BoxFuture<'static, Option<LookupResult>>>;

pub(super) enum LookupResult {
    /// The context window of the model, and the tokens in use.
    Context { model: String, size: u64, used: u64 },
    /// The model and the effort with which the CLI runs.
    Settings {
        running: RunningSettings,
        /// How many changes were made when they were asked for.
        changes: u64,
    },
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

    /// Asks for the model and the effort after a turn without API requests: a slash command may have changed them.
    pub(super) fn look_up_after(&self, result: &Frame) {
        match result.decode() {
            Ok(Message::Result(result)) if result.num_turns == 0 => self.look_up_settings(),
            _ => {}
        }
    }

    /// Asks for the model and the effort, which the CLI takes from flags, the environment and settings.
    pub(super) fn look_up_settings(&self) {
        // A host says what its sessions have.
        let Some(session) = self.process.running().filter(|_| self.link.is_none()).cloned() else {
            return;
        };
        let changes = self.changes_made();
        self.lookups.push(Box::pin(async move {
            let running = flags::running(&session).await;
            let running = running.inspect_err(|error| tracing::debug!(%error, "the model is not known"));
            let running = running.ok()??;
            Some(LookupResult::Settings { running, changes })
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
            // The CLI may have replied before a change, of which the editor knows.
            LookupResult::Settings { changes, .. } if changes != self.changes_made() => {
                self.look_up_settings();
            }
            LookupResult::Settings { running, .. } => self.settings_are(&running),
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
