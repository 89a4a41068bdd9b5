//! The process of a session: how it starts and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use outrigger::protocol::Frame;
use outrigger::{Cause, Claim, Session, Spare};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinSet;

use super::{AfterTurn, LEASE_POLL, Owner, Place, REQUESTS, ROOM_POLL, RunningProcess, STOPPED};
use crate::core::{Input, WaitingCall};
use crate::error::{HostError, Result};
use crate::event::{Delivery, SessionRecord, SessionState};
use crate::handler::{self, OwnerSlot, ToOwner};
use crate::log::{NewEvent, Write};
use crate::spares::Taken;
use crate::stored;
use crate::wire;
use crate::workspace;

/// How long a spare has to become the process of a session, which takes about 0.1 s.
const CLAIM: Duration = Duration::from_secs(10);

/// How the process of a session came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    New,
    Resumed,
    Spare,
}

/// Counts a start that waits for a place, for as long as it does.
struct WaitingStart(Arc<AtomicUsize>);

impl WaitingStart {
    fn new(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(waiting))
    }
}

impl Drop for WaitingStart {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Owner {
    /// Makes what is missing of the files.
    pub(super) async fn prepare(&self) -> Result<Result<(), String>> {
        let Some(workspaces) = &self.shared.policy.workspaces else {
            return Ok(Ok(()));
        };
        let record = self.shared.log.session(&self.id).await?;
        let mut closing = self.shared.closing.subscribe();
        let mut stops = self.contact.stops.subscribe();
        tokio::select! {
            prepared = workspace::prepare(workspaces, &record, &self.shared.worktrees) => Ok(prepared),
            _ = closing.wait_for(|closing| *closing) => Err(HostError::Closed),
            _ = stops.wait_for(|stops| *stops > 0) => Ok(Err(STOPPED.to_owned())),
        }
    }

    pub(super) async fn start(&mut self) -> Result<Input> {
        self.undecided.clear();
        self.early.clear();
        self.contact.is_leaving.store(false, Ordering::Release);
        (self.taken_up, self.given) = (None, None);
        // A process of before asks nothing any more.
        self.hooks = mpsc::channel(REQUESTS);
        self.for_people = mpsc::channel(REQUESTS);
        self.expiring.retain(|(_, approval)| approval.deferred);
        if let Err(error) = self.prepare().await? {
            let payload = json!({"type": "workspace_failed", "error": error});
            self.failure = Some(error);
            self.write(vec![Write::Append(NewEvent::host("workspace_failed", payload))])
                .await?;
            return Ok(Input::StartFailed);
        }
        let (spare, place) = match self.shared.spares.take(&self.id) {
            Some(Taken { spare, seat, place }) => (Some((spare, seat)), Ok(place)),
            None => (None, self.place().await?),
        };
        let place = match place {
            Ok(permit) => Place {
                permit: Some(permit),
                contact: Arc::clone(&self.contact),
            },
            Err(stopped) => {
                let epoch = self.shared.log.session(&self.id).await?.epoch;
                return self.start_failed("start_failed", epoch, stopped).await;
            }
        };
        self.write(vec![Write::NextEpoch]).await?;
        let record = self.shared.log.session(&self.id).await?;
        let mut error = String::new();
        if let Some((spare, seat)) = spare {
            match Box::pin(self.claim(&record, spare, seat)).await? {
                Ok(Some(session)) => return self.started(session, &record, Start::Spare, false, place).await,
                Ok(None) => {}
                Err(stopped) => return self.start_failed("start_failed", record.epoch, stopped).await,
            }
        }
        // Without a stored turn it is not known whether the CLI has stored the session.
        let ways: &[Start] = match (record.has_history, record.epoch) {
            (true, _) => &[Start::Resumed],
            (false, 0 | 1) => &[Start::New],
            (false, _) => &[Start::Resumed, Start::New],
        };
        let noted = match self.state.call {
            WaitingCall::Decided => self.note_of_call(&record).await,
            _ => None,
        };
        for way in ways {
            let is_resumed = *way == Start::Resumed;
            match self.try_start(&record, is_resumed).await? {
                Ok(session) => {
                    // The process of a host that was killed may note the call in the moment in which it ends, and has the lease until then. What has become
                    // of the call since, the new process has done.
                    let is_open = match noted {
                        None if self.state.call == WaitingCall::Decided => {
                            self.note_of_call(&record).await.is_some()
                        }
                        noted => noted == Some(true),
                    };
                    let may_ask = is_resumed && is_open;
                    return self.started(session, &record, *way, may_ask, place).await;
                }
                Err(failed) => error = failed,
            }
        }
        let kind = if record.has_history {
            "resume_failed"
        } else {
            "start_failed"
        };
        self.start_failed(kind, record.epoch, error).await
    }

    /// A place among the processes of the host, or why the start was stopped.
    async fn place(&self) -> Result<Result<OwnedSemaphorePermit, String>> {
        let mut closing = self.shared.closing.subscribe();
        let mut stops = self.contact.stops.subscribe();
        let free = Arc::clone(&self.shared.places).acquire_owned();
        // One future for the whole wait, since it is the place in the queue.
        let mut free = std::pin::pin!(free);
        if let Some(place) = free.as_mut().now_or_never() {
            return place.map(Ok).map_err(|_| HostError::Closed);
        }
        let _waits = WaitingStart::new(&self.shared.waiting_starts);
        // Without a deadline: a place gets free when a turn ends.
        loop {
            if !self.shared.spares.make_room() {
                (self.shared.make_room)();
            }
            tokio::select! {
                biased;
                place = &mut free => return place.map(Ok).map_err(|_| HostError::Closed),
                _ = closing.wait_for(|closing| *closing) => return Err(HostError::Closed),
                _ = stops.wait_for(|stops| *stops > 0) => return Ok(Err(STOPPED.to_owned())),
                () = tokio::time::sleep(ROOM_POLL) => {}
            }
        }
    }

    /// There is a process.
    async fn started(
        &mut self,
        session: Session,
        record: &SessionRecord,
        start: Start,
        may_ask: bool,
        place: Place,
    ) -> Result<Input> {
        let payload = json!({
            "type": "process_started", "epoch": record.epoch, "pid": session.pid(), "resumed": start == Start::Resumed,
            "spare": start == Start::Spare,
        });
        let frames = session.frames();
        let ambient = (self.state.call == WaitingCall::Decided).then(|| session.ambient());
        let mut steps = vec![Write::Append(NewEvent::host("process_started", payload))];
        steps.extend(wire::initialized(session.initialized()).map(Write::Initialized));
        self.counted = session.usage();
        self.running = Some(RunningProcess {
            session,
            frames,
            turn: None,
            ambient,
            goes_on: None,
            may_ask,
            asked: JoinSet::new(),
            asks: Arc::default(),
            place,
        });
        self.write(steps).await?;
        self.failure = None;
        Ok(Input::Started)
    }

    /// The channels of this owner, for the handlers of its process.
    fn channels(&self) -> ToOwner {
        ToOwner {
            for_people: self.for_people.0.clone(),
            hooks: self.hooks.0.clone(),
        }
    }

    /// Makes a spare the process of the session. `None` if that fails and the spare has ended, so that another process may be started. Only a session that
    /// has nothing that a spare lacks gets one.
    async fn claim(
        &self,
        record: &SessionRecord,
        spare: Spare,
        seat: OwnerSlot,
    ) -> Result<Result<Option<Session>, String>> {
        let ended = spare.wait_ended();
        let is_new = !record.has_history && record.epoch <= 1 && self.state.call == WaitingCall::None;
        let has_own = record.model.is_some() || record.permission_mode.is_some();
        let allowed = self.shared.policy.options_of(record, false);
        match allowed.ok().and_then(|options| options.cwd) {
            Some(cwd) if is_new && !has_own => {
                let claimed = tokio::time::timeout(CLAIM, spare.claim(Claim::new(cwd))).await;
                let why = match claimed {
                    Ok(Ok(session)) => {
                        if let Err(error) = self.shared.policy.check_process(record, session.pid()) {
                            drop(session.kill().await);
                            return Ok(Err(error.to_string()));
                        }
                        // What it asks from now on is a question of the session.
                        seat.take(self.channels());
                        self.shared.spares.was_claimed();
                        return Ok(Ok(Some(session)));
                    }
                    Ok(Err(failed)) => {
                        self.shared.spares.was_refused(Some(&failed.error));
                        failed.to_string()
                    }
                    Err(_) => {
                        self.shared.spares.was_refused(None);
                        format!("the CLI did not answer the claim within {CLAIM:?}")
                    }
                };
                tracing::warn!(session = %self.id, why, "a spare did not become the process of a session, which starts its own");
            }
            _ => drop(spare),
        }
        let mut closing = self.shared.closing.subscribe();
        let mut stops = self.contact.stops.subscribe();
        // The SDK kills it after the graces of the options.
        tokio::select! {
            _ = ended => Ok(Ok(None)),
            _ = closing.wait_for(|closing| *closing) => Err(HostError::Closed),
            _ = stops.wait_for(|stops| *stops > 0) => Ok(Err(STOPPED.to_owned())),
        }
    }

    async fn start_failed(&mut self, kind: &str, epoch: u64, error: String) -> Result<Input> {
        let payload = json!({"type": kind, "epoch": epoch, "error": error});
        self.write(vec![Write::Append(NewEvent::host(kind, payload))])
            .await?;
        self.failure = Some(error);
        Ok(Input::StartFailed)
    }

    pub(super) async fn try_start(
        &self,
        record: &SessionRecord,
        resume: bool,
    ) -> Result<Result<Session, String>> {
        let mut closing = self.shared.closing.subscribe();
        let mut stops = self.contact.stops.subscribe();
        let until = tokio::time::Instant::now() + self.shared.policy.lease_patience;
        let mut may_put_away = !resume && !record.has_history && record.epoch > 1;
        loop {
            let options = match self.shared.policy.options_of(record, resume) {
                Ok(options) => options,
                Err(error) => return Ok(Err(error.to_string())),
            };
            let seat = OwnerSlot::default();
            seat.take(self.channels());
            let deferred = self.deferred_tools();
            let options =
                handler::with_handlers(&self.shared.policy, options, &self.id, &seat, deferred.as_deref());
            let started = tokio::select! {
                started = options.start() => started,
                // Dropped, the process ends: a CLI that takes long to start must not hold up the end of the host, or a client.
                _ = closing.wait_for(|closing| *closing) => return Err(HostError::Closed),
                _ = stops.wait_for(|stops| *stops > 0) => return Ok(Err(STOPPED.to_owned())),
            };
            match started {
                Ok(session) => {
                    let Err(error) = self.shared.policy.check_process(record, session.pid()) else {
                        return Ok(Ok(session));
                    };
                    drop(session.kill().await);
                    return Ok(Err(error.to_string()));
                }
                // A process of a host that was killed ends by itself when it sees that its input ended.
                Err(error) if error.as_lease_problem().is_some() && tokio::time::Instant::now() < until => {
                    tokio::select! {
                        () = tokio::time::sleep(LEASE_POLL) => {}
                        _ = closing.wait_for(|closing| *closing) => return Err(HostError::Closed),
                        _ = stops.wait_for(|stops| *stops > 0) => return Ok(Err(STOPPED.to_owned())),
                    }
                }
                Err(error) => {
                    let is_there = error.cause() == Some(Cause::SessionInUse);
                    if !(is_there && std::mem::take(&mut may_put_away) && self.put_away(record).await) {
                        return Ok(Err(error.to_string()));
                    }
                }
            }
        }
    }

    /// Whether a file of the CLI was in the way that has nothing of the session.
    async fn put_away(&self, record: &SessionRecord) -> bool {
        let (shared, record) = (Arc::clone(&self.shared), record.clone());
        let put = tokio::task::spawn_blocking(move || stored::put_away(&shared.policy, &record)).await;
        match put {
            Ok(Ok(is_put)) => is_put,
            Ok(Err(error)) => {
                tracing::warn!(%error, session = %self.id, "a transcript that has nothing in it stays");
                false
            }
            Err(_) => false,
        }
    }

    /// Ends the process, and keeps what it still said.
    pub(super) async fn close(&mut self) -> Result<()> {
        if self.running.is_none() {
            return Ok(());
        }
        // A process that is closed while it asks about its call answers the call as cancelled. One that is killed leaves it open.
        self.end_process(self.state.call == WaitingCall::Offered).await?;
        let payload = json!({"type": "process_exited", "reason": "released"});
        self.write(vec![Write::Append(NewEvent::host("process_exited", payload))])
            .await
    }

    /// Ends the process, if there is one, and keeps what it still said. Its place is free then: the next process of the session may be started at once.
    pub(super) async fn end_process(&mut self, is_killed: bool) -> Result<()> {
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        let RunningProcess {
            session,
            mut frames,
            turn,
            asked,
            ambient,
            goes_on: _,
            may_ask: _,
            asks: _,
            place: _place,
        } = running;
        drop((turn, asked, ambient));
        let ended = match is_killed {
            true => session.clone().kill().await.map(drop),
            false => session.clone().close().await.map(drop),
        };
        if let Err(error) = ended {
            tracing::debug!(%error, session = %self.id, "ending the process");
        }
        self.last_frames(&session, &mut frames).await
    }

    /// The CLI runs another conversation than the one it was told to resume.
    pub(super) async fn wrong_session(&mut self, init: &Frame) -> Result<()> {
        if let Some(running) = self.running.take() {
            drop(running.session.kill().await);
        }
        let error = "the CLI runs another session";
        self.failure = Some(error.to_owned());
        let payload = json!({"type": "resume_failed", "error": error, "session_id": init.session_id()});
        let steps = vec![Write::Append(NewEvent::host("resume_failed", payload))];
        // They are read again with the next news.
        self.state.queue.clear();
        self.read_to = 0;
        self.feed(Input::Exited, steps).await?;
        self.write(vec![Write::Enter(SessionState::Failed)]).await
    }

    pub(super) async fn exited(&mut self) -> Result<()> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        let (session, turn) = (running.session.clone(), running.turn.take());
        let error = session.wait_ended().await;
        // A process may have ended its turn before it ended.
        let outcome = match turn {
            Some(turn) => turn.await.ok(),
            None => None,
        };
        // The end of a turn may be known before all that the process said was read.
        self.end_process(true).await?;
        let payload = json!({"type": "process_exited", "reason": error.to_string()});
        let mut steps = vec![Write::Append(NewEvent::host("process_exited", payload))];
        match outcome {
            Some(Ok(None)) if self.state.call == WaitingCall::None => {
                self.state.taken_up = false;
                let prompt = self.state.running.take();
                steps.extend(prompt.map(|prompt| Write::Mark(prompt, Delivery::Processed)));
            }
            Some(Err((error, AfterTurn::Killed))) => {
                let payload =
                    json!({"type": "prompt_failed", "event_id": self.state.running, "error": error});
                steps.insert(0, Write::Append(NewEvent::host("prompt_failed", payload)));
            }
            _ => {}
        }
        self.feed(Input::Exited, steps).await
    }
}
