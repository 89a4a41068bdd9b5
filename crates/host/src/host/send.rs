//! What clients send to a session: prompts, requests and decisions, and what they want of its process.

use std::sync::atomic::Ordering;

use outrigger::SessionId;
use outrigger::protocol::RawJson;
use serde_json::json;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::SessionHost;
use super::create::check_title;
use crate::approval::{Approval, ApprovalState};
use crate::error::{HostError, Result};
use crate::event::{Accepted, SessionRecord, SessionState, Source};
use crate::log::{NewEvent, Update, Write};
use crate::owner::{Command, give_up_interrupted};
use crate::schedule::{DueRun, Schedule};
use crate::wire::{self, ClientFrame};

impl SessionHost {
    /// Takes a frame of a client; see [`send_all`](Self::send_all).
    ///
    /// # Cancel safety
    /// As [`send_all`](Self::send_all).
    ///
    /// # Errors
    /// As [`send_all`](Self::send_all).
    pub async fn send(
        &self,
        session: &SessionId,
        frame: RawJson,
        actor: impl Into<String>,
    ) -> Result<Accepted> {
        let mut accepted = self.send_all(session, vec![frame], actor).await?;
        // One for each frame.
        accepted.pop().ok_or(HostError::Closed)
    }

    /// Takes frames of a client, all of them or none: a prompt (`user`), a request (`control_request`), its withdrawal (`control_cancel_request`),
    /// or a decision (`control_response`).
    ///
    /// When this returns, they are on disk. A prompt with a `uuid`, and a request with its `request_id`, may be sent again: the log takes them once.
    /// The reply to a request is an event, `control_response`. Clients may ask for `initialize`, `interrupt`, `set_model` and `set_permission_mode`,
    /// and of the process that runs for what does not widen the policy, see `docs/host.md`. A decision about an approval that was decided
    /// before is no error; the result has who decided.
    ///
    /// # Cancel safety
    /// Dropped, it may have stored the frames or not. Send them again to be sure.
    ///
    /// # Errors
    /// When a frame makes no sense or the policy does not allow it, the session is missing or archived, or the log fails. [`HostError::Busy`] when 1000 frames
    /// of the session wait or are at work, or 32 MiB of them. Then nothing was stored.
    pub async fn send_all(
        &self,
        session: &SessionId,
        frames: Vec<RawJson>,
        actor: impl Into<String>,
    ) -> Result<Vec<Accepted>> {
        if self.0.closed.load(Ordering::Acquire) {
            return Err(HostError::Closed);
        }
        let actor = actor.into();
        let mut steps = Vec::new();
        for frame in frames {
            steps.push(match wire::read_client_frame(frame)? {
                ClientFrame::Accept(mut event) => {
                    event.actor = Some(actor.clone());
                    Write::Accept(event)
                }
                ClientFrame::Decision { request, answer } => {
                    let Some(approval) = self.log().approval_of(session, &request).await? else {
                        return Err(HostError::Invalid(format!(
                            "no request {request} waits for a response"
                        )));
                    };
                    let answer = answer.unwrap_or_else(|error| wire::refusal(approval.kind, error));
                    self.decision(&approval, answer, actor.clone(), false)?
                }
            });
        }
        Ok(self.write_and_wake(session, steps).await?.accepted)
    }

    /// Carries out what is due of a schedule, in one transaction: sets when it is due next, reports what was missed, and takes the prompt.
    /// `false` if it was not due any more, because this was done before.
    ///
    /// # Cancel safety
    /// Dropped, it may have done it or not. Repeated, it does nothing twice.
    ///
    /// # Errors
    /// When the session is missing or archived, or the log fails. Then nothing was stored.
    pub async fn run_schedule(&self, schedule: &Schedule, due: DueRun) -> Result<bool> {
        if self.0.closed.load(Ordering::Acquire) {
            return Err(HostError::Closed);
        }
        let mut steps = vec![Write::Reschedule {
            id: schedule.id,
            due: schedule.next_at,
            next_at: due.next_at,
            enabled: schedule.enabled,
        }];
        if let Some((first, last, count)) = due.missed {
            let payload = json!({
                "type": "schedule_missed", "schedule_id": schedule.id, "first": first, "last": last, "count": count,
                "runs": due.run == Some(last),
            });
            steps.push(Write::Append(NewEvent::host("schedule_missed", payload)));
        }
        if let Some(at) = due.run {
            let uuid = schedule.prompt_id(at);
            let frame = json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": schedule.prompt}});
            let mut event = NewEvent::new(Source::Client, "user", frame.into());
            event.event_id = uuid;
            event.actor = Some(format!("schedule:{}", schedule.id));
            steps.push(Write::Accept(event));
        }
        match self.write_and_wake(&schedule.session_id, steps).await {
            Ok(_) => Ok(true),
            Err(HostError::NoSchedule(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Decides about an approval. `answer` is the `response` that the CLI gets: for tools, questions and plans `{"behavior": "allow" | "deny", …}`, for forms
    /// `{"action": …}`. The first decision counts. The same actor may repeat the same decision.
    ///
    /// # Errors
    /// [`HostError::TooLate`] with who decided, when it is not pending any more; when the answer is none to such a question; when the policy does
    /// not allow a change of permissions that is in it ([`HostPolicy`](crate::HostPolicy)); when the log fails.
    pub async fn decide(&self, id: Uuid, answer: RawJson, actor: impl Into<String>) -> Result<Approval> {
        let approval = self.log().approval(id).await?;
        let step = self.decision(&approval, answer, actor.into(), true)?;
        self.write_and_wake(&approval.session_id, vec![step]).await?;
        self.log().approval(id).await
    }

    fn decision(
        &self,
        approval: &Approval,
        answer: RawJson,
        actor: String,
        must_be_first: bool,
    ) -> Result<Write> {
        let policy = &self.0.shared.policy;
        let mut verdict = wire::verdict(policy, approval.kind, &answer);
        if !policy.changed_inputs && wire::changes_input(approval, &answer) {
            let what = "a changed input of a call, which no rule would be asked about";
            verdict = Err(HostError::NotAllowed(what.to_owned()));
        }
        Ok(Write::Decide {
            id: approval.id,
            // A late answer is told that it is late, whatever it says.
            state: match verdict {
                Err(_) if approval.state != ApprovalState::Pending => approval.state,
                state => state?,
            },
            actor: Some(actor),
            decision: Some(answer),
            must_be_first,
        })
    }

    /// Changes what clients may change of a session. A new model or permission mode holds for the process that runs, too; one that was
    /// removed holds from the next process on. If the process does not take it over, that is an event (`change_not_applied`), and the process ends as soon as
    /// it is not at work.
    ///
    /// # Errors
    /// When the policy does not allow it, the session is missing, or the log fails.
    pub async fn update(&self, session: &SessionId, update: Update) -> Result<SessionRecord> {
        let policy = &self.0.shared.policy;
        let (model, mode) = (
            update.model.clone().flatten(),
            update.permission_mode.clone().flatten(),
        );
        policy.check(model.as_deref(), mode.as_deref())?;
        check_title(update.title.as_ref().and_then(Option::as_deref))?;
        self.log()
            .write(session, vec![Write::Update(update.clone())])
            .await?;
        self.command(session, Command::Apply(update))?;
        self.session(session).await
    }

    /// Starts a process, if the session has none. The session is `starting` then, and `idle` when the process is there. While a deferred call waits, no
    /// process is started.
    ///
    /// # Errors
    /// When the session is missing or archived.
    pub async fn resume(&self, session: &SessionId) -> Result<()> {
        if self.session(session).await?.state == SessionState::Ended {
            return Err(HostError::Archived(session.clone()));
        }
        self.reach(session, None, true)
    }

    /// Interrupts the turn that runs; does nothing if none does. A deferred call that waits is denied, and its turn ends. One that was decided, and that no
    /// process has got, is not carried out (`decision_not_applied`). A start ends, as by [`stop`](Self::stop): prompts that wait are given to the
    /// next process.
    ///
    /// # Errors
    /// When the CLI does not confirm it, or too many commands wait.
    pub async fn interrupt(&self, session: &SessionId) -> Result<()> {
        let (reply, done) = oneshot::channel();
        let state = self.session(session).await?.state;
        if state == SessionState::RequiresAction {
            // A call that waits has a turn without a process, and may have no owner.
            self.reach(session, Some(Command::Interrupt(reply)), false)?;
        } else if !self.command(session, Command::Interrupt(reply))? {
            // Its turn has failed to go on, and would with the next prompt.
            let decided = self.log().waiting(session, u64::MAX).await?.decided;
            if state == SessionState::Failed && decided.iter().any(|approval| approval.deferred) {
                self.write_and_wake(session, vec![give_up_interrupted()]).await?;
            }
            return Ok(());
        }
        // Without a reply the process is gone, and the turn with it.
        done.await.unwrap_or(Ok(()))
    }

    /// Kills the process. Its turn is interrupted; prompts that wait are given to the next process. A deferred call that waits for a decision goes on
    /// waiting: [`interrupt`](Self::interrupt) ends it.
    ///
    /// # Errors
    /// When the session is missing, or too many commands wait.
    pub async fn stop(&self, session: &SessionId) -> Result<()> {
        let (reply, done) = oneshot::channel();
        if !self.command(session, Command::Stop(reply))? {
            return self.session(session).await.map(drop);
        }
        // Without a reply the process is gone.
        let _ = done.await;
        Ok(())
    }

    /// Brings the files that the CLI changed back to what they were before a prompt, given by its `uuid`. The conversation stays. With `dry_run`
    /// nothing is changed. Returns what the CLI answers (`rewind_files`).
    ///
    /// Needs [`enable_file_checkpointing`](outrigger::Options::enable_file_checkpointing) in the options of the policy. A process is started if there is
    /// none. What was done is an event (`files_rewound`).
    ///
    /// # Cancel safety
    /// Dropped, the files may be changed, without an event of it.
    ///
    /// # Errors
    /// When a turn runs, unless it is a dry run; when the CLI refuses, or the log fails.
    pub async fn rewind(
        &self,
        session: &SessionId,
        prompt: Uuid,
        dry_run: bool,
        actor: impl Into<String>,
    ) -> Result<RawJson> {
        let fields = json!({"user_message_id": prompt, "dry_run": dry_run});
        let answer = self.ask(session, "rewind_files", fields, !dry_run).await?;
        if !dry_run {
            let payload = json!({"type": "files_rewound", "event_id": prompt, "answer": answer});
            let mut event = NewEvent::new(Source::Client, "files_rewound", payload.into());
            event.actor = Some(actor.into());
            self.log().write(session, vec![Write::Append(event)]).await?;
        }
        Ok(answer)
    }
}
