//! Asks the user of the editor what the CLI asks.
//!
//! Nothing fails open: an answer that was not offered, a failing or missing editor and a cancelled turn all reject.

mod asker;
mod form;
pub(crate) mod permission_options;
mod question;

use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema as acp;
use outrigger::permissions::{
    PermissionDecision, PermissionRequest, PersonReply, PlanRequest, QuestionReply, QuestionRequest,
};
use outrigger::{CallbackReply, Callbacks, ElicitationRequest, ElicitationResult};
use tokio::sync::mpsc;

use self::asker::Asker;
pub(crate) use self::asker::{Handled, QuestionCancel, QuestionSlot, SentQuestion};
pub(crate) use self::form::{Filled, Form, Forms};
pub(crate) use self::permission_options::Approved;
use self::permission_options::PermissionChoice;
use crate::client::Client;

/// How many questions may wait for the session's task.
pub(crate) const WAITING: usize = 256;

/// A question to the editor. It goes through the session's task, so that it is sent behind the updates that it is about.
pub(crate) enum EditorQuestion {
    /// May this call run?
    Permission {
        request: Box<PermissionRequest>,
        options: Vec<acp::PermissionOption>,
        /// Gets the answer, and the options that were offered.
        reply: QuestionSlot<(acp::RequestPermissionResponse, Vec<acp::PermissionOption>)>,
    },
    /// A form to fill in, or a URL to open.
    Elicitation {
        request: Box<acp::CreateElicitationRequest>,
        /// The subagent that asks.
        agent: Option<String>,
        reply: QuestionSlot<acp::CreateElicitationResponse>,
    },
    Decided {
        call: String,
        decision: Decision,
        handled: Handled,
    },
    /// A plan was approved for a new conversation. The turn ends.
    Approved {
        call: String,
        approved: Approved,
        handled: Handled,
    },
}

/// The decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed,
    /// The user chose to reject the call.
    Rejected {
        ends_turn: bool,
    },
    /// Denied for another reason: the question was cancelled, or the editor failed.
    Denied {
        ends_turn: bool,
    },
}

/// Answers the CLI for one session.
pub(crate) struct CliResponder {
    asker: Asker,
    session: acp::SessionId,
    client: Client,
    /// The modes of the session, which its task keeps up to date.
    modes: Modes,
    /// Whether a plan can be carried out in a new conversation.
    begins_anew: bool,
}

/// The modes that a plan can be approved in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Modes(Arc<Mutex<Vec<String>>>);

impl Modes {
    pub(crate) fn set(&self, modes: Vec<&str>) {
        let modes = modes.into_iter().map(str::to_owned).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = modes;
    }

    fn get(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl CliResponder {
    /// The callbacks of a session, and their questions for its task.
    pub(crate) fn new(
        session: acp::SessionId,
        client: Client,
        modes: Modes,
    ) -> (Self, mpsc::Receiver<EditorQuestion>) {
        let (task, asked) = mpsc::channel(WAITING);
        let desk = Self {
            asker: Asker::new(task),
            session,
            client,
            modes,
            begins_anew: true,
        };
        (desk, asked)
    }

    /// Plans are carried out in their own conversation.
    pub(crate) fn without_new_conversations(mut self) -> Self {
        self.begins_anew = false;
        self
    }

    /// Cancels the questions of this session.
    pub(crate) fn cancel(&self) -> QuestionCancel {
        self.asker.cancel()
    }

    /// Asks the user about a call.
    async fn choose(&self, request: PermissionRequest, options: Vec<acp::PermissionOption>) -> Chosen {
        let agent = request.agent_id.clone();
        let request = Box::new(request);
        let ask = |reply| EditorQuestion::Permission {
            request,
            options,
            reply,
        };
        match self.asker.ask(agent.as_deref(), ask).await {
            Ok(Some((response, offered))) => chosen(&response, &offered),
            // The cancel ends the work of a subagent, not the turn.
            Ok(None) if agent.is_some() => Chosen::Failed("the user cancelled this agent".to_owned()),
            Ok(None) => Chosen::Cancelled,
            Err(error) => {
                tracing::warn!(%error, "the editor did not decide about a call; it is refused");
                Chosen::Failed(failed(&error))
            }
        }
    }

    /// Lets the user decide about a call.
    async fn decide(&self, request: PermissionRequest, choices: Vec<PermissionChoice>) -> PermissionDecision {
        let call = request.call_id().to_owned();
        let options = choices.iter().map(|choice| choice.option.clone()).collect();
        let mut anew = None;
        let chosen = self.choose(request, options).await;
        let is_choice = matches!(chosen, Chosen::Option(_));
        let reply = match chosen {
            Chosen::Option(id) => {
                let mut choices = choices.into_iter();
                let choice = choices.find(|choice| choice.option.option_id == id);
                choice.map(|choice| {
                    anew = choice.anew;
                    choice.reply
                })
            }
            Chosen::Cancelled => Some(PersonReply::Stop),
            Chosen::Failed(why) => Some(PersonReply::No(why)),
        };
        let reply = reply.unwrap_or_else(|| PersonReply::no(""));
        if let Some(approved) = anew {
            let told = |handled| EditorQuestion::Approved {
                call,
                approved,
                handled,
            };
            self.asker.tell(told).await;
            return reply.into();
        }
        let ends_turn = matches!(reply, PersonReply::Stop);
        let answer = PermissionDecision::from(reply);
        let decision = match (answer.is_allow(), is_choice) {
            (true, _) => Decision::Allowed,
            (false, true) => Decision::Rejected { ends_turn },
            (false, false) => Decision::Denied { ends_turn },
        };
        self.decided(call, decision).await;
        answer
    }

    async fn decided(&self, call: String, decision: Decision) {
        let told = |handled| EditorQuestion::Decided {
            call,
            decision,
            handled,
        };
        self.asker.tell(told).await;
    }
}

/// Sends a form or a URL to the editor, behind the updates of the session. `agent` is the subagent that asks.
async fn elicit(
    asker: &Asker,
    request: acp::CreateElicitationRequest,
    agent: Option<String>,
) -> Result<acp::CreateElicitationResponse, Error> {
    let request = Box::new(request);
    let asking = agent.clone();
    let ask = |reply| EditorQuestion::Elicitation {
        request,
        agent,
        reply,
    };
    let answer = asker.ask(asking.as_deref(), ask).await?;
    let cancelled = || acp::CreateElicitationResponse::new(acp::ElicitationAction::Cancel);
    Ok(answer.unwrap_or_else(cancelled))
}

/// Has a question come from another session.
pub(crate) fn address(request: &mut acp::CreateElicitationRequest, session: acp::SessionId) {
    if let acp::ElicitationMode::Form(acp::ElicitationFormMode { scope, .. })
    | acp::ElicitationMode::Url(acp::ElicitationUrlMode { scope, .. }) = &mut request.mode
        && let acp::ElicitationScope::Session(scope) = scope
    {
        scope.session_id = session;
    }
}

fn failed(error: &Error) -> String {
    format!("the editor could not be asked: {}", error.message)
}

/// What the user chose.
#[derive(Debug, PartialEq, Eq)]
enum Chosen {
    /// The id of the option.
    Option(acp::PermissionOptionId),
    /// The turn was cancelled.
    Cancelled,
    /// Why there is no valid answer.
    Failed(String),
}

/// Reads the editor's answer. The id of an option that was not offered is invalid.
fn chosen(response: &acp::RequestPermissionResponse, offered: &[acp::PermissionOption]) -> Chosen {
    match &response.outcome {
        acp::RequestPermissionOutcome::Selected(selected) => {
            let id = &selected.option_id;
            if offered.iter().any(|option| option.option_id == *id) {
                return Chosen::Option(id.clone());
            }
            tracing::warn!(option = %id.0, "the editor chose what was not offered; the call is refused");
            Chosen::Failed(format!("the editor answered {:?}, which was not offered", id.0))
        }
        acp::RequestPermissionOutcome::Cancelled => Chosen::Cancelled,
        _ => Chosen::Failed("the editor gave an answer that is not known".to_owned()),
    }
}

impl Callbacks for CliResponder {
    async fn permission(&self, request: PermissionRequest) -> PermissionDecision {
        let choices = permission_options::choices(&request);
        self.decide(request, choices).await
    }

    async fn plan(&self, request: PlanRequest) -> PermissionDecision {
        let modes = self.modes.get();
        let modes: Vec<&str> = modes.iter().map(String::as_str).collect();
        // The plan of a subagent does not stand for the whole prompt.
        let plan = request
            .plan
            .as_deref()
            .filter(|_| self.begins_anew && request.request.agent_id.is_none());
        let choices = permission_options::plan_choices(&modes, plan);
        self.decide(request.request, choices).await
    }

    fn answers_questions(&self) -> bool {
        true
    }

    async fn question(&self, request: QuestionRequest) -> QuestionReply {
        let call = request.request.call_id().to_owned();
        let reply = if self.client.has_forms() {
            self.question_by_form(&request).await
        } else {
            self.question_by_choices(&request).await
        };
        let decision = match PermissionDecision::from(reply.clone()).is_allow() {
            true => Decision::Allowed,
            false => Decision::Denied { ends_turn: false },
        };
        self.decided(call, decision).await;
        reply
    }

    async fn elicitation(&self, request: ElicitationRequest) -> CallbackReply<ElicitationResult> {
        CallbackReply::Now(self.elicitation_of_server(&request).await)
    }
}

#[cfg(test)]
mod tests;
