//! Handles the editor's requests to a session.

use agent_client_protocol::v1::schema as acp;
use outrigger::Session;

use super::Actor;
use super::changes::{ChangeKind, ReplyTo};
use super::turns::run;
use crate::session::prompt_reply::PromptReply;
use crate::session::prompts::{How, MOST, ToSend};
use crate::session::{COMMANDS, SessionCommand};
use crate::steer::{Steer, Steered};
use crate::{error, prompt, sdk_error, steer};

impl Actor {
    pub(super) fn command(&mut self, command: SessionCommand) {
        match command {
            SessionCommand::SetMode { .. }
            | SessionCommand::SetOption { .. }
            | SessionCommand::Mcp { .. }
                if self.changes.is_full() =>
            {
                command.refuse(error::internal(format!(
                    "{COMMANDS} changes wait already; wait for some of them to be made"
                )));
            }
            SessionCommand::Prompt { request, answer } => {
                self.idle.prompted();
                self.prompt(request, answer);
            }
            SessionCommand::Steer { request, reply } => {
                // The caller may have gone.
                let _ = reply.send(self.steer(request));
            }
            SessionCommand::Cancel => self.cancel_all(),
            SessionCommand::CancelAgent(agent) => self.cancel_children(Some(&agent)),
            SessionCommand::SetMode { request, answer } => {
                let id = request.mode_id.0.as_ref();
                match self.choices.find_mode(id) {
                    Some(mode) => self.changes.push(ChangeKind::Mode(mode), ReplyTo::Mode(answer)),
                    None => {
                        let known = self.choices.mode_ids().join(", ");
                        answer.refuse(error::bad("modeId", format!("{id:?} is not one of {known}")));
                    }
                }
            }
            SessionCommand::SetOption { request, answer } => match self.option(&request) {
                Ok(what) => self.changes.push(what, ReplyTo::Option(answer)),
                Err(error) => answer.refuse(error),
            },
            SessionCommand::Rewind { request, reply } => self.rewind(request, reply),
            SessionCommand::SetTitle { title, reply } => self.set_title(title, reply),
            SessionCommand::Mcp { wish, reply } => {
                self.changes.push(ChangeKind::Mcp(wish), ReplyTo::Mcp(reply))
            }
        }
    }

    /// Whether a prompt, a turn of the CLI's own or a change is open.
    pub(in crate::session) fn is_busy(&self) -> bool {
        let is_prompted = self.prompts.is_running() || self.prompts.is_waiting();
        is_prompted || self.activity.has_own() || self.changes.is_busy()
    }

    fn steer(&mut self, request: Steer) -> Result<Steered, agent_client_protocol::Error> {
        let outcome = if self.prompts.is_running() || self.activity.has_own() {
            steer::Outcome::Injected
        } else if request.begins_a_turn()? {
            steer::Outcome::StartedNewTurn
        } else {
            return Ok(Steered {
                outcome: steer::Outcome::PromptRequired,
                reason: Some("noRunningTurn".to_owned()),
            });
        };
        prompt::of(&request.prompt, |_| false)?;
        if self.prompts.is_full() {
            return Err(too_many_prompts());
        }
        self.idle.prompted();
        self.prompt(request.into_prompt(), PromptReply::nothing());
        Ok(Steered {
            outcome,
            reason: None,
        })
    }

    pub(in crate::session) fn prompt(&mut self, request: acp::PromptRequest, answer: PromptReply) {
        let commands = self.process.session().command_names();
        let is_command = |name: &str| commands.iter().any(|known| known == name);
        let (prompt, how) = match (
            prompt::of(&request.prompt, is_command),
            delivery(request.meta.as_ref()),
        ) {
            (Ok(_), Ok(How::Steer | How::Now)) if self.link.is_some() => {
                let why = "a host gives each prompt a turn of its own";
                return answer.refuse(error::bad("_meta.claudeCode.delivery", why));
            }
            (Ok(prompt), Ok(how)) => (prompt, how),
            (Err(error), _) | (_, Err(error)) => return answer.refuse(error),
        };
        let withdrawn = answer.withdrawn();
        match self.prompts.accept(prompt.from_person(), how, answer) {
            Ok(number) => {
                self.withdrawn
                    .push(Box::pin(async move { withdrawn.await.then_some(number) }));
                let files = self.buffers_of(&request);
                if !files.is_empty() {
                    self.prompts.hold(number);
                    self.reading.push(self.read_buffers(number, request, files));
                }
            }
            Err(answer) => answer.refuse(too_many_prompts()),
        }
    }

    pub(super) async fn send(&mut self, session: &Session, to_send: ToSend) {
        let ToSend {
            attempt,
            prompt,
            how,
            stop,
        } = to_send;
        let sent = match how {
            How::Alone => session.prompt(prompt).await,
            How::Steer => session.steer(prompt).await,
            How::Now => session.prompt_now(prompt).await,
        };
        match sent {
            Ok(turn) => {
                if self.choices.settle_agent() {
                    self.send_options();
                }
                let id = turn.id().to_string();
                self.updates.prompted(&id);
                self.prompts.sent_as(attempt, id);
                self.turns.open.push((attempt, turn.watch()));
                self.turns.running.spawn(run(attempt, turn, stop));
            }
            // The end of the process follows, after which the prompt is sent again.
            Err(error) if error.is_closed() => {}
            Err(error) => {
                if let Some(ended) = self.prompts.end(attempt) {
                    self.finish(ended, Err(sdk_error::of_sdk(&error)));
                }
            }
        }
    }
}

fn too_many_prompts() -> agent_client_protocol::Error {
    error::internal(format!(
        "{MOST} prompts are open already; wait for one of them to end"
    ))
}

/// How a prompt is delivered: `_meta.claudeCode.delivery`, which is `queue` (the default), `steer` or `now`.
fn delivery(meta: Option<&acp::Meta>) -> Result<How, agent_client_protocol::Error> {
    let delivery = meta.and_then(|meta| meta.get("claudeCode")?.get("delivery"));
    match delivery.map(serde_json::Value::as_str) {
        None | Some(Some("queue")) => Ok(How::Alone),
        Some(Some("steer")) => Ok(How::Steer),
        Some(Some("now")) => Ok(How::Now),
        Some(_) => Err(error::bad(
            "_meta.claudeCode.delivery",
            "it is not \"queue\", \"steer\" or \"now\"",
        )),
    }
}
