//! The process of a session: how it starts and ends.

use std::sync::Arc;

use outrigger::Session;
use outrigger::protocol::Frame;
use serde_json::json;
use tokio::sync::{TryAcquireError, mpsc};
use tokio::task::JoinSet;

use super::{LEASE_POLL, Owner, REQUESTS, ROOM_POLL, Running};
use crate::core::{Call, Input};
use crate::error::{HostError, Result};
use crate::event::SessionState;
use crate::handler;
use crate::log::{NewEvent, Write};
use crate::wire;
use crate::workspace;

/// Why a start fails that a client stopped.
const STOPPED: &str = "stopped by a client";

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
            prepared = workspace::prepare(workspaces, &record) => Ok(prepared),
            _ = closing.wait_for(|closing| *closing) => Err(HostError::Closed),
            _ = stops.wait_for(|stops| *stops > 0) => Ok(Err(STOPPED.to_owned())),
        }
    }

    pub(super) async fn start(&mut self) -> Result<Input> {
        self.undecided.clear();
        self.early.clear();
        self.taken_up = None;
        // A process of before asks nothing any more.
        self.hooks = mpsc::channel(REQUESTS);
        self.expiring.retain(|(_, approval)| approval.deferred);
        if let Err(error) = self.prepare().await? {
            let payload = json!({"type": "workspace_failed", "error": error});
            self.failure = Some(error);
            self.write(vec![Write::Append(NewEvent::host("workspace_failed", payload))])
                .await?;
            return Ok(Input::StartFailed);
        }
        let mut closing = self.shared.closing.subscribe();
        let mut stops = self.contact.stops.subscribe();
        // Without a deadline: a place gets free when a turn ends.
        let place = loop {
            match Arc::clone(&self.shared.places).try_acquire_owned() {
                Ok(place) => break place,
                Err(TryAcquireError::Closed) => return Err(HostError::Closed),
                Err(TryAcquireError::NoPermits) => (self.shared.make_room)(),
            }
            let free = Arc::clone(&self.shared.places).acquire_owned();
            let is_stopped = tokio::select! {
                place = free => break place.map_err(|_| HostError::Closed)?,
                () = tokio::time::sleep(ROOM_POLL) => false,
                _ = closing.wait_for(|closing| *closing) => return Err(HostError::Closed),
                _ = stops.wait_for(|stops| *stops > 0) => true,
            };
            if is_stopped {
                let epoch = self.shared.log.session(&self.id).await?.epoch;
                return self.start_failed("start_failed", epoch, STOPPED.to_owned()).await;
            }
        };
        self.write(vec![Write::NextEpoch]).await?;
        let record = self.shared.log.session(&self.id).await?;
        // Without a stored turn it is not known whether the CLI has stored the session.
        let ways: &[bool] = match (record.has_history, record.epoch) {
            (true, _) => &[true],
            (false, 0 | 1) => &[false],
            (false, _) => &[true, false],
        };
        let is_open = self.state.call == Call::Decided && self.is_call_open(&record).await;
        let mut error = String::new();
        for resume in ways {
            match self.try_start(&record, *resume).await? {
                Ok(session) => {
                    let payload = json!({"type": "process_started", "epoch": record.epoch, "pid": session.pid(), "resumed": resume});
                    let frames = session.frames();
                    let ambient = (self.state.call == Call::Decided).then(|| session.ambient());
                    let mut steps = vec![Write::Append(NewEvent::host("process_started", payload))];
                    steps.extend(wire::initialized(session.initialized()).map(Write::Initialized));
                    self.counted = session.usage();
                    self.running = Some(Running {
                        session,
                        frames,
                        turn: None,
                        ambient,
                        may_ask: *resume && is_open,
                        asked: JoinSet::new(),
                        asks: Arc::default(),
                        _place: place,
                    });
                    self.write(steps).await?;
                    self.failure = None;
                    return Ok(Input::Started);
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

    async fn start_failed(&mut self, kind: &str, epoch: u64, error: String) -> Result<Input> {
        let payload = json!({"type": kind, "epoch": epoch, "error": error});
        self.write(vec![Write::Append(NewEvent::host(kind, payload))])
            .await?;
        self.failure = Some(error);
        Ok(Input::StartFailed)
    }

    pub(super) async fn try_start(
        &self,
        record: &crate::event::SessionRecord,
        resume: bool,
    ) -> Result<Result<Session, String>> {
        let mut closing = self.shared.closing.subscribe();
        let mut stops = self.contact.stops.subscribe();
        let until = tokio::time::Instant::now() + self.shared.policy.lease_patience;
        loop {
            let options = match self.shared.policy.options_of(record, resume) {
                Ok(options) => options,
                Err(error) => return Ok(Err(error.to_string())),
            };
            let mut options = options
                .permissions(handler::of(&self.shared.policy, self.for_people.0.clone()))
                .elicitation(|_| async { outrigger::Reply::Parked });
            if let Some(matcher) = &self.deferred_tools() {
                let to_owner = self.hooks.0.clone();
                options = options.hook(handler::hook(
                    &self.shared.policy,
                    self.id.clone(),
                    matcher,
                    to_owner,
                ));
            }
            match options.start().await {
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
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
    }

    /// Ends the process, and keeps what it still said.
    pub(super) async fn close(&mut self) -> Result<()> {
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        let Running {
            session,
            mut frames,
            turn,
            asked,
            ambient,
            may_ask: _,
            asks: _,
            _place,
        } = running;
        drop((turn, asked, ambient));
        let ended = session.clone();
        // A process that is closed while it asks about its call answers the call as cancelled. One that is killed leaves it open.
        let closed = match self.state.call {
            Call::Offered => session.kill().await.map(drop),
            _ => session.close().await.map(drop),
        };
        if let Err(error) = closed {
            tracing::debug!(%error, session = %self.id, "closing");
        }
        let mut steps = Vec::new();
        while let Some(Ok(frame)) = frames.next().await {
            self.note(&ended, &frame, &mut steps);
        }
        steps.push(Write::Append(NewEvent::host(
            "process_exited",
            json!({"type": "process_exited", "reason": "released"}),
        )));
        self.write(steps).await
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
        self.state.queue.clear();
        self.feed(Input::Exited, steps).await?;
        self.write(vec![Write::Enter(SessionState::Failed)]).await
    }

    pub(super) async fn exited(&mut self) -> Result<()> {
        let Some(running) = self.running.take() else {
            return Ok(());
        };
        let error = running.session.wait_ended().await;
        drop(running);
        let payload = json!({"type": "process_exited", "reason": error.to_string()});
        self.feed(
            Input::Exited,
            vec![Write::Append(NewEvent::host("process_exited", payload))],
        )
        .await
    }
}
