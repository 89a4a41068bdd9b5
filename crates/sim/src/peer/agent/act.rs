//! Side effects of a reply: waits, checks, requests, and faults.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::context::{Abort, Cancel};
use super::ids::wall_ms;
use super::turn::Turn;
use crate::fields::JsonFields as _;
use crate::flaw::Flaw;
use crate::inject::Fault;
use crate::running::{Exit, Line};
use crate::script::Gate;

/// Something that a reply does.
#[derive(Debug, Clone)]
pub(crate) struct Act {
    /// The place in the script, for complaints.
    pub(crate) place: String,
    pub(crate) deed: Deed,
}

/// What looks at lines.
type Looks<T> = dyn Fn(&[Line]) -> T + Send + Sync;

/// A look at what went through so far.
#[derive(Clone)]
pub(crate) struct Look<T>(pub(crate) Arc<Looks<T>>);

impl<T> Look<T> {
    pub(crate) fn new(look: impl Fn(&[Line]) -> T + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }
}

impl<T> fmt::Debug for Look<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Look(..)")
    }
}

/// A side effect.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// So long.
    Sleep(Duration),
    /// Until the gate is open.
    Pass(Gate),
    /// Until that is true of what went through.
    Until {
        what: String,
        ready: Look<bool>,
        patience: Duration,
    },
    /// Until the turn is stopped.
    Interrupt { patience: Duration },
    /// Records a flaw, if the check finds one.
    Check(Look<Option<String>>),
    /// A line with `uuid` and `session_id` added.
    Stamped(Value),
    /// Bytes as they are.
    Bytes(Vec<u8>),
    /// A line on stderr.
    Complain(String),
    /// A control request, whose answer is waited for.
    Request(Value),
    /// A compaction.
    Compact {
        pre_tokens: u64,
        post_tokens: u64,
        summary: String,
    },
    /// A fault, from here on.
    Arm(Fault),
    /// The end of the process.
    Exit { exit: Exit, after_result: bool },
}

impl Turn {
    /// Does all this, unless the turn is to stop.
    pub(super) async fn perform<'a>(&mut self, acts: impl Iterator<Item = &'a Act>) -> Result<(), Abort> {
        for act in acts {
            self.perform_one(act).await?;
        }
        Ok(())
    }

    async fn perform_one(&mut self, act: &Act) -> Result<(), Abort> {
        let flaw = |what: String| self.ctx.log.flaw(Flaw::new(&act.place, what));
        match &act.deed {
            Deed::Sleep(time) => self.or_abort(self.ctx.pause(*time)).await?,
            Deed::Pass(gate) => self.or_abort(gate.pass()).await?,
            Deed::Until {
                what,
                ready,
                patience,
            } => {
                let wait = tokio::time::timeout(*patience, self.ctx.log.until(&*ready.0));
                if self.or_abort(wait).await?.is_err() {
                    flaw(format!("waited {patience:?} for {what} in vain"));
                }
            }
            Deed::Interrupt { patience } => {
                self.or_abort(tokio::time::sleep(*patience)).await?;
                flaw(format!("waited {patience:?} for an interrupt in vain"));
            }
            Deed::Check(look) => {
                let wrong = (look.0)(&self.ctx.log.lock().lines);
                if let Some(wrong) = wrong {
                    flaw(wrong);
                }
            }
            Deed::Stamped(line) => self.ctx.send_stamped(line.clone()).await,
            Deed::Bytes(bytes) => self.ctx.send_bytes(bytes.clone()).await,
            Deed::Complain(text) => self.ctx.complain(text.clone()).await,
            Deed::Request(request) => {
                let asks = request["subtype"] == "can_use_tool";
                if asks {
                    self.ctx.await_action().await;
                }
                let (_, answer) = self.ctx.request(request.clone(), Cancel::Request).await;
                let answered = self.or_abort(answer).await;
                if asks {
                    self.ctx.resume_action().await;
                }
                // The log has the client's reply, for checks.
                answered?.ok();
            }
            Deed::Compact {
                pre_tokens,
                post_tokens,
                summary,
            } => self.compact(*pre_tokens, *post_tokens, summary).await,
            Deed::Arm(fault) => {
                let armed = self.ctx.config.wire.as_ref().map(|wire| wire.arm(fault.clone()));
                if let Some(Err(unfit)) = armed {
                    flaw(unfit.to_string());
                }
            }
            Deed::Exit { exit, after_result } => {
                if *after_result {
                    self.ctx.state().exit_after_turn = Some(*exit);
                } else {
                    self.ctx.exit.send_replace(Some(*exit));
                    // The session drops this turn where it stands.
                    std::future::pending::<()>().await;
                }
            }
        }
        Ok(())
    }

    /// The CLI's frames when it compacts on its own, before a response.
    async fn compact(&mut self, pre_tokens: u64, post_tokens: u64, summary: &str) {
        let status = json!({"status": "compacting", "compact_output_chars": 0});
        self.ctx.send_system("status", status).await;
        let status = json!({"status": null, "compact_result": "success"});
        self.ctx.send_system("status", status).await;
        let dropped = pre_tokens.saturating_sub(post_tokens);
        let boundary = json!({
            "compact_metadata": {
                "trigger": "auto", "pre_tokens": pre_tokens, "post_tokens": post_tokens,
                "cumulative_dropped_tokens": dropped, "duration_ms": 1,
            },
            "logical_parent_uuid": self.ctx.uuid(),
        });
        self.ctx.send_system("compact_boundary", boundary).await;
        let text = format!(
            "This session is being continued from a previous conversation that ran out of context. The summary below covers \
             the earlier portion of the conversation.\n\n{summary}"
        );
        let content = json!([{"type": "text", "text": text}]);
        self.send_user(content, json!({"isSynthetic": true})).await;
    }
}

/// A `rate_limit_event`, without its `uuid`.
pub(crate) fn rate_limit(status: &str, limit: &str, utilization: Option<f64>, resets_in: Duration) -> Value {
    let resets = (wall_ms(Duration::ZERO) / 1000).saturating_add(resets_in.as_secs());
    let mut window = json!({"resetsAt": resets, "status": status});
    let mut info =
        json!({"status": status, "resetsAt": resets, "rateLimitType": limit, "isUsingOverage": false});
    window.put("utilization", utilization);
    info.put("utilization", utilization);
    info["unifiedWindows"] = json!({limit: window});
    json!({"type": "rate_limit_event", "rate_limit_info": info})
}
