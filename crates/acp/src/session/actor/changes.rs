//! Changes of a running session: its mode, model, options and MCP servers. They are made one after the other.

use std::collections::VecDeque;

use agent_client_protocol::v1::schema as acp;
use futures_util::future::BoxFuture;
use outrigger::Session;
use outrigger::protocol::shared::{Effort, PermissionMode};
use serde_json::json;

use super::Actor;
use super::cli::UNPROVEN;
use crate::choices;
use crate::error;
use crate::response_sender::ResponseSender;
use crate::session::COMMANDS;
use crate::session::flags::{self, RunningSettings};
use crate::session::mcp_servers::{self, RequestSteps, Wish};

/// The changes that are not done.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) running: Option<BoxFuture<'static, Changed>>,
    waiting: VecDeque<Change>,
    /// The change that failed because its process ended, until the end of the process is handled.
    lost: Option<Change>,
    /// How many changes were made.
    made: u64,
}

impl Changes {
    pub(super) fn push(&mut self, what: ChangeKind, reply_to: ReplyTo) {
        self.waiting.push_back(Change::new(what, reply_to));
    }

    pub(super) fn push_first(&mut self, change: Change) {
        self.waiting.push_front(change);
    }

    /// The process ended: the lost change is made in the next one.
    pub(super) fn requeue_lost(&mut self) {
        if let Some(change) = self.lost.take() {
            self.waiting.push_front(change);
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether no more changes may wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= COMMANDS
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some() || self.lost.is_some()
    }

    pub(super) fn is_busy(&self) -> bool {
        self.is_running() || self.is_waiting()
    }

    /// The change to make now.
    pub(super) fn next(&mut self) -> Option<Change> {
        match self.is_running() {
            true => None,
            false => self.waiting.pop_front(),
        }
    }

    pub(super) fn take_waiting(&mut self) -> VecDeque<Change> {
        std::mem::take(&mut self.waiting)
    }

    /// The changes that are lost or waiting, at the end of the session.
    pub(super) fn into_open(self) -> impl Iterator<Item = Change> {
        self.lost.into_iter().chain(self.waiting)
    }
}

/// A change, and the receiver of its result.
pub(super) struct Change {
    pub(super) what: ChangeKind,
    pub(super) reply_to: ReplyTo,
    /// The change's process ended before the change was done. It is retried once.
    pub(super) was_lost: bool,
    /// The number of the change's process.
    pub(super) generation: u64,
}

impl Change {
    pub(super) fn new(what: ChangeKind, reply_to: ReplyTo) -> Self {
        Self {
            what,
            reply_to,
            was_lost: false,
            generation: 0,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum ChangeKind {
    Mode(PermissionMode),
    Model(String),
    Effort(Option<Effort>),
    Fast(bool),
    Agent(Option<String>),
    /// Asks the CLI which agent leads.
    WhichAgent,
    Mcp(Wish),
}

pub(super) enum ReplyTo {
    Mode(ResponseSender<acp::SetSessionModeResponse>),
    Option(ResponseSender<acp::SetSessionConfigOptionResponse>),
    Mcp(mcp_servers::McpReply),
    /// A new process gets the choice of the one before.
    Nobody,
}

impl ReplyTo {
    pub(super) fn failed(self, error: agent_client_protocol::Error) {
        match self {
            Self::Mode(answer) => answer.refuse(error),
            Self::Option(answer) => answer.refuse(error),
            // The caller may have gone.
            Self::Mcp(reply) => drop(reply.send(Err(error))),
            Self::Nobody => tracing::warn!(%error, "what was chosen could not be chosen again"),
        }
    }
}

pub(super) struct Changed {
    pub(super) change: Change,
    pub(super) result: Result<ChangeResult, mcp_servers::McpFailure>,
}

/// What a change returns.
pub(super) enum ChangeResult {
    Nothing,
    Servers(mcp_servers::McpResponse),
    /// The leading agent.
    Agent(Option<String>),
}

impl Actor {
    pub(super) fn option(
        &self,
        request: &acp::SetSessionConfigOptionRequest,
    ) -> Result<ChangeKind, agent_client_protocol::Error> {
        let value = &request.value;
        let unknown = || {
            error::bad(
                "value",
                format!("{} is not a choice of this option", json!(value)),
            )
        };
        if request.config_id.0.as_ref() == choices::FAST && self.choices.has_option(choices::FAST) {
            return self
                .choices
                .find_fast(value)
                .map(ChangeKind::Fast)
                .ok_or_else(unknown);
        }
        let Some(id) = value.as_value_id() else {
            return Err(error::bad("value", "this option takes the id of a choice"));
        };
        let value = id.0.as_ref();
        match request.config_id.0.as_ref() {
            choices::MODE => self
                .choices
                .find_mode(value)
                .map(ChangeKind::Mode)
                .ok_or_else(unknown),
            choices::MODEL if self.choices.has_model(value) => Ok(ChangeKind::Model(value.to_owned())),
            choices::MODEL => Err(unknown()),
            choices::EFFORT if value == "default" => Ok(ChangeKind::Effort(None)),
            choices::EFFORT => {
                let effort = self.choices.find_effort(value).ok_or_else(unknown)?;
                Ok(ChangeKind::Effort(Some(effort)))
            }
            id if !self.choices.has_option(id) => {
                Err(error::bad("configId", format!("there is no option {id:?}")))
            }
            choices::AGENT => self
                .choices
                .find_agent(value)
                .map(ChangeKind::Agent)
                .ok_or_else(unknown),
            id => Err(error::bad("configId", format!("there is no option {id:?}"))),
        }
    }

    pub(super) fn changed(&mut self, Changed { change, result }: Changed) {
        self.changes.running = None;
        let done = match result {
            Ok(done) => done,
            Err(failed) if failed.is_lost && !change.was_lost && self.unproven < UNPROVEN => {
                let is_reported = change.generation != self.generation;
                let change = Change {
                    was_lost: true,
                    ..change
                };
                if is_reported {
                    self.changes.push_first(change);
                } else {
                    self.changes.lost = Some(change);
                }
                return;
            }
            Err(failed) => return self.change_failed(change, failed.error),
        };
        self.changes.made += 1;
        let mut news = match &change.what {
            ChangeKind::Mcp(wish) => {
                self.mcp.done(wish);
                false
            }
            ChangeKind::Fast(on) => {
                self.choices.choose_fast(*on);
                true
            }
            ChangeKind::Agent(_) | ChangeKind::WhichAgent => match &done {
                ChangeResult::Agent(agent) => self.choices.agent_is(agent.clone()),
                _ => false,
            },
            ChangeKind::Mode(mode) => self.choices.mode_is(mode.as_str()),
            ChangeKind::Model(model) => self.choices.model_is(model),
            ChangeKind::Effort(effort) => {
                self.choices.effort_is(*effort);
                true
            }
        };
        self.modes.set(self.choices.mode_ids());
        if matches!(change.what, ChangeKind::Effort(None)) {
            // The settings may name one.
            self.look_up_settings();
        }
        let is_mode = matches!(change.what, ChangeKind::Mode(_));
        if is_mode {
            self.missing_mode = None;
        }
        match change.reply_to {
            ReplyTo::Mode(answer) => answer.give(Ok(acp::SetSessionModeResponse::new())),
            ReplyTo::Option(answer) => {
                let options = self.choices.as_options();
                answer.give(Ok(acp::SetSessionConfigOptionResponse::new(options)));
                if is_mode && news {
                    self.send_mode();
                }
                // The answer has the options.
                news = false;
            }
            ReplyTo::Mcp(reply) => {
                if let ChangeResult::Servers(told) = done {
                    // The caller may have gone.
                    let _ = reply.send(Ok(told));
                }
            }
            ReplyTo::Nobody => {}
        }
        if news {
            self.send_options();
        }
    }

    pub(super) fn change_failed(&mut self, change: Change, error: agent_client_protocol::Error) {
        let is_known = matches!(
            (&change.what, &change.reply_to),
            (ChangeKind::Mode(_), ReplyTo::Nobody)
        );
        change.reply_to.failed(error.clone());
        if !is_known {
            return;
        }
        if self.missing_mode.is_some() {
            // With a change that waits, the user may have chosen another mode.
            if !self.changes.is_waiting() {
                self.mode_is_missing(&error);
            }
            return;
        }
        // The editor was told that this mode is active.
        self.send_mode();
        self.send_options();
    }

    /// Before a prompt is sent: tries again to get the mode that the user chose.
    pub(super) fn restore_mode(&mut self) {
        let Some(mode) = &self.missing_mode else { return };
        match self.choices.find_mode(mode) {
            Some(mode) => self.changes.push(ChangeKind::Mode(mode), ReplyTo::Nobody),
            None => self.mode_is_missing(&error::internal("this agent does not know the mode")),
        }
    }

    /// The mode that the user chose cannot be had: the prompts fail, as another mode may allow more.
    fn mode_is_missing(&mut self, why: &agent_client_protocol::Error) {
        let mode = self.missing_mode.as_deref().unwrap_or_default();
        let message = format!(
            "the new CLI is not in the mode {mode:?} that was chosen, so it gets no prompt: {}; send the prompt again, or choose a mode",
            why.message
        );
        let mut error = agent_client_protocol::Error::new(why.code, message);
        error.data.clone_from(&why.data);
        self.fail_prompts(&error);
    }

    /// The CLI reports this mode, or a plan was approved in it.
    pub(super) fn mode_is(&mut self, mode: &str) {
        if self.choices.mode_is(mode) {
            self.modes.set(self.choices.mode_ids());
            self.send_mode();
            self.send_options();
        }
    }

    /// The CLI reports this model.
    pub(in crate::session) fn model_is(&mut self, model: &str) {
        if self.choices.model_is(model) {
            self.modes.set(self.choices.mode_ids());
            self.send_options();
        }
    }

    /// How many changes were made.
    pub(in crate::session) fn changes_made(&self) -> u64 {
        self.changes.made
    }

    /// The CLI runs with this model and this effort.
    pub(in crate::session) fn settings_are(&mut self, running: &RunningSettings) {
        let given = self.conversation.again.effort;
        let is_effort_set = running.is_effort_set || given.is_some() && given == running.effort;
        // First the effort: whether it is the default depends on the model before.
        let is_news = self
            .choices
            .effort_runs(&running.model, running.effort, is_effort_set);
        if self.choices.model_is(&running.model) || is_news {
            self.modes.set(self.choices.mode_ids());
            self.send_options();
        }
    }

    pub(super) fn send_mode(&mut self) {
        if let Some(update) = self.updates.encoder().mode(self.choices.mode()) {
            self.client.update(&self.id, update);
        }
    }

    pub(super) fn send_options(&mut self) {
        let update = self.updates.encoder().options(self.choices.as_options());
        self.client.update(&self.id, update);
    }
}

pub(super) async fn make(session: Session, change: Change, plan: Option<RequestSteps>) -> Changed {
    if let Some(plan) = plan {
        let result = plan.run(&session).await.map(ChangeResult::Servers);
        return Changed { change, result };
    }
    let result = match &change.what {
        ChangeKind::Mcp(_) => Ok(ChangeResult::Nothing),
        ChangeKind::Mode(mode) => session
            .set_permission_mode(*mode)
            .await
            .map(|_| ChangeResult::Nothing),
        ChangeKind::Model(model) => {
            let model = Some(model.as_str()).filter(|model| *model != "default");
            session.set_model(model).await.map(|_| ChangeResult::Nothing)
        }
        ChangeKind::Effort(effort) => {
            let level = effort.map(Effort::as_str);
            flags::set(&session, "effortLevel", level)
                .await
                .map(|()| ChangeResult::Nothing)
        }
        ChangeKind::Fast(on) => flags::set(&session, "fastMode", on)
            .await
            .map(|()| ChangeResult::Nothing),
        ChangeKind::Agent(agent) => match flags::set(&session, "agent", agent).await {
            Ok(()) => flags::agent(&session).await.map(ChangeResult::Agent),
            Err(error) => Err(error),
        },
        ChangeKind::WhichAgent => flags::agent(&session).await.map(ChangeResult::Agent),
    };
    let result = result.map_err(|error| {
        let is_refused = error.as_refusal().is_some() && !error.is_unsupported();
        let mut failure = mcp_servers::McpFailure::from(error);
        // A choice that the CLI does not take.
        if is_refused {
            failure.error.code = agent_client_protocol::ErrorCode::INVALID_PARAMS;
        }
        failure
    });
    Changed { change, result }
}
