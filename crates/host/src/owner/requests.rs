//! What clients want of a session now: their requests, and commands of the host.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt as _;
use outrigger::protocol::RawJson;
use serde_json::{Map, Value, json};

use super::{ClientControlRequest, Command, ControlResult, Owner};
use crate::core::{Input, WaitingCall};
use crate::error::{HostError, Result};
use crate::event::{Delivery, SessionState};
use crate::log::{NewEvent, Received, Update, Write};
use crate::wire;

/// How long a request that must not come in the way of work waits for its end. The CLI reports the end of a turn a moment after its result.
const AT_REST: Duration = Duration::from_secs(1);

impl Owner {
    /// Does what a client asks for. The reply is an event.
    pub(super) async fn request(&mut self, received: Received) -> Result<()> {
        let id = received.id;
        let (request, subtype, mut fields) = match wire::request(&received.payload).and_then(|request| {
            let (subtype, fields) = request.parts()?;
            Ok((request.request_id, subtype, fields))
        }) {
            Ok(parts) => parts,
            // It was checked before it was accepted.
            Err(_) => return self.write(vec![Write::Mark(id, Delivery::Processed)]).await,
        };
        self.requests.insert(id, request);
        let mut update = Update::default();
        let done = |result: Result<Value, String>| ControlResult {
            id: Some(id),
            result: result.map(RawJson::from),
            update: None,
        };
        match subtype.as_str() {
            "initialize" => {
                let result = self.initialize(&fields).await?;
                return self.reply(done(result)).await;
            }
            "set_model" | "set_permission_mode" => {
                let field = if subtype == "set_model" { "model" } else { "mode" };
                // The default of the CLI is not that of the policy, and what is no text could be read in two ways.
                let Some(Value::String(value)) = fields.remove(field) else {
                    let error = format!("`{subtype}` needs a text as `{field}`");
                    return self.reply(done(Err(error))).await;
                };
                fields = Map::from_iter([(field.to_owned(), Value::from(value.as_str()))]);
                match field {
                    "model" => update.model = Some(Some(value)),
                    _ => update.permission_mode = Some(Some(value)),
                }
            }
            subtype if wire::FOR_CLIENTS.contains(&subtype) => {}
            subtype => {
                let error = format!("the host takes no requests `{subtype}` from clients");
                return self.reply(done(Err(error))).await;
            }
        }
        let is_change = update.model.is_some() || update.permission_mode.is_some();
        if is_change {
            let (model, mode) = (
                update.model.clone().flatten(),
                update.permission_mode.clone().flatten(),
            );
            if let Err(error) = self.shared.policy.check(model.as_deref(), mode.as_deref()) {
                return self.reply(done(Err(error.to_string()))).await;
            }
        }
        let update = is_change.then_some(update);
        if subtype == "interrupt" && self.interrupt_call().await? {
            self.reply(done(Ok(json!({})))).await?;
            self.contact.calls.fetch_add(1, Ordering::AcqRel);
            self.contact.wake.notify_one();
            return Ok(());
        }
        let Some(running) = &mut self.running else {
            let result = match subtype.as_str() {
                "interrupt" => Ok(json!({})),
                _ if is_change => Ok(json!({})),
                _ => Err("the session has no process; a prompt starts one".to_owned()),
            };
            let reply = ControlResult {
                update,
                ..done(result)
            };
            return self.reply(reply).await;
        };
        let session = running.session.clone();
        running.asked.spawn(begun(async move {
            let result = match subtype.as_str() {
                "interrupt" => session.interrupt().await.map(|_| json!({}).into()),
                subtype => session.raw_request(subtype, fields).await,
            };
            let result = result.map_err(|error| error.to_string());
            ControlResult {
                id: Some(id),
                result: result
                    .and_then(|reply| wire::for_clients(&subtype, reply).map_err(|error| error.to_string())),
                update,
            }
        }));
        // A host that is killed now does not ask the process again.
        self.write(vec![Write::Mark(id, Delivery::Processing)]).await
    }

    /// What a process of the session said when it started. The first client that asks starts one.
    pub(super) async fn initialize(&mut self, fields: &Map<String, Value>) -> Result<Result<Value, String>> {
        let ignored = wire::ignored(fields);
        if !ignored.is_empty() {
            return Ok(Err(format!(
                "the host does not take {} from clients; they are the operator's",
                ignored.join(", ")
            )));
        }
        let mut known = self.shared.log.initialized(&self.id).await?;
        if known.is_none() {
            self.want().await?;
            known = self.shared.log.initialized(&self.id).await?;
        }
        Ok(match known {
            Some(reply) => reply.to_value().map_err(|error| error.to_string()),
            None => Err(self
                .failure
                .clone()
                .unwrap_or_else(|| "no process of the session has started".to_owned())),
        })
    }

    pub(super) async fn reply(&mut self, reply: ControlResult) -> Result<()> {
        let Some(id) = reply.id else {
            return self.changed(reply.result).await;
        };
        let Some(request) = self.requests.remove(&id) else {
            return Ok(());
        };
        let mut steps = vec![Write::Mark(id, Delivery::Processed)];
        if let Some(update) = reply.update
            && reply.result.is_ok()
        {
            steps.push(Write::Update(update));
        }
        steps.push(Write::Append(wire::reply(&request, reply.result)));
        self.write(steps).await
    }

    /// A client does not wait for the reply to its request any more. What the process does already, it does.
    pub(super) async fn cancel(&mut self, received: Received) -> Result<()> {
        let mut steps = vec![Write::Mark(received.id, Delivery::Processed)];
        if let Some(request) = wire::cancelled(&received.payload) {
            let id = wire::id_of("control_request", &request);
            if self.requests.remove(&id).is_some() {
                steps.push(Write::Mark(id, Delivery::Interrupted));
                let error = "the client withdrew the request".to_owned();
                steps.push(Write::Append(wire::reply(&request, Err(error))));
            }
        }
        self.write(steps).await
    }

    /// No process will reply to the requests of clients any more.
    pub(super) fn lose_requests(&mut self) -> Vec<Write> {
        let mut steps = Vec::new();
        for (id, request) in self.requests.drain() {
            steps.push(Write::Mark(id, Delivery::Interrupted));
            let error = "the process ended before it replied".to_owned();
            steps.push(Write::Append(wire::reply(&request, Err(error))));
        }
        steps
    }

    /// Passes a request on to the CLI. Frames go on while it answers.
    pub(super) async fn ask(&mut self, ask: ClientControlRequest) -> Result<()> {
        if self.state.call != WaitingCall::None || ask.needs_rest && self.state.is_busy() {
            // Who asked may be gone.
            drop(ask.reply.send(Err(HostError::TurnRuns(self.id.clone()))));
            return Ok(());
        }
        if self.running.is_none() {
            self.want().await?;
        }
        let Some(running) = &self.running else {
            let why = "no process could be started; the log of the session has why".to_owned();
            drop(ask.reply.send(Err(HostError::Cli(why))));
            return Ok(());
        };
        let (session, waits) = (running.session.clone(), Arc::clone(&running.asks));
        let contact = Arc::clone(&self.contact);
        let id = self.id.clone();
        tokio::spawn(async move {
            let mut reply = ask.reply;
            let answer = async {
                let at_rest = session.wait_run_end(None::<Duration>);
                if ask.needs_rest && tokio::time::timeout(AT_REST, at_rest).await.is_err() {
                    return Err(HostError::TurnRuns(id));
                }
                let answer = session.raw_request(ask.subtype, &ask.fields).await;
                answer.map_err(|error| HostError::Cli(error.to_string()))
            };
            tokio::select! {
                answer = answer => drop(reply.send(answer)),
                // Nobody waits for it any more.
                () = reply.closed() => {}
            }
            drop((session, waits));
            contact.wake.notify_one();
        });
        Ok(())
    }

    pub(super) async fn command(&mut self, command: Option<Command>) -> Result<()> {
        match command {
            None => Err(HostError::Closed),
            Some(Command::Shutdown(reply)) => {
                self.admission = None;
                // A call that waits has ended its turn, or does so now.
                let waits = self.state.call == WaitingCall::Waits && self.state.open.is_empty();
                if self.state.is_busy() && !waits {
                    // Closed, the CLI would tell the model that open calls were denied, and go on with the turn for a while.
                    self.kill("the host closes", Input::HostCloses).await?;
                } else {
                    self.close().await?;
                    let lost = self.lose_requests();
                    self.feed(Input::HostCloses, lost).await?;
                }
                // Nothing is waited for any more.
                self.expiring.clear();
                let _ = reply.send(());
                Ok(())
            }
            Some(Command::Interrupt(reply)) => {
                self.contact.stop_taken();
                match self.interrupt_call().await {
                    Ok(false) => {}
                    Ok(true) => {
                        drop(reply.send(Ok(())));
                        return self.read_news().await;
                    }
                    Err(error) => {
                        // Without a reply it would count as done.
                        drop(reply.send(Err(HostError::Log(error.to_string()))));
                        return Err(error);
                    }
                }
                if let Some(running) = &self.running {
                    let session = running.session.clone();
                    // Frames go on while the CLI is told.
                    tokio::spawn(async move {
                        let done = match session.interrupt().await {
                            // The process has ended, and the turn with it.
                            Err(error) if error.end().is_none() => Err(HostError::Cli(error.to_string())),
                            _ => Ok(()),
                        };
                        drop(reply.send(done));
                    });
                }
                Ok(())
            }
            Some(Command::Apply(update)) => self.change(update).await,
            Some(Command::Ask(ask)) => self.ask(ask).await,
            Some(Command::Stop(reply)) => {
                self.contact.stop_taken();
                // An archived session does not go on.
                if self.shared.log.session(&self.id).await?.state == SessionState::Ended {
                    self.read_news().await?;
                }
                self.kill("stopped by a client", Input::Exited).await?;
                let _ = reply.send(());
                Ok(())
            }
        }
    }

    /// Has the process take over what clients have changed. The log has the values, and may have newer ones than those of this change.
    async fn change(&mut self, changed: Update) -> Result<()> {
        if self.running.is_none() {
            return Ok(());
        }
        let record = self.shared.log.session(&self.id).await?;
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        let model = record.model.filter(|_| changed.model.is_some());
        let mode = record
            .permission_mode
            .filter(|_| changed.permission_mode.is_some());
        let requests = [
            ("set_model", "model", model),
            ("set_permission_mode", "mode", mode),
        ];
        for (subtype, field, value) in requests {
            // Without a value the CLI would take its own default, and not the policy's.
            let Some(value) = value else { continue };
            let session = running.session.clone();
            running.asked.spawn(begun(async move {
                let done = session.raw_request(subtype, json!({(field): value})).await;
                let result = match done {
                    // A process that has ended needs no change, and the next one has it.
                    Err(error) if error.end().is_none() => Err(format!("`{subtype}`: {error}")),
                    _ => Ok(RawJson::from(Value::Null)),
                };
                ControlResult {
                    id: None,
                    result,
                    update: None,
                }
            }));
        }
        Ok(())
    }

    /// A process that did not take over a change may do more than it should: the next one begins with it.
    async fn changed(&mut self, result: Result<RawJson, String>) -> Result<()> {
        let Err(error) = result else { return Ok(()) };
        let payload = json!({"type": "change_not_applied", "error": error});
        let told = Write::Append(NewEvent::host("change_not_applied", payload));
        self.feed(Input::Retire, vec![told]).await
    }

    /// Ends the process at once, and its turn.
    async fn kill(&mut self, reason: &str, input: Input) -> Result<()> {
        if self.running.is_none() {
            return Ok(());
        }
        self.end_process(true).await?;
        let payload = json!({"type": "process_exited", "reason": reason});
        let mut steps = vec![Write::Append(NewEvent::host("process_exited", payload))];
        steps.extend(self.lose_requests());
        self.feed(input, steps).await
    }
}

/// Begins something before anything else is begun, so that the process gets what it is asked in the order of these calls. A task of its own may go on
/// with it.
fn begun<T: Send>(asked: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
    let mut asked = Box::pin(tokio::task::coop::unconstrained(asked));
    let done = asked.as_mut().now_or_never();
    async move {
        match done {
            Some(done) => done,
            None => asked.await,
        }
    }
}
