//! The hooks of a session: registers them in `initialize`, and answers the CLI's calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outrigger_protocol::outbound::{HookCallbackMatcher, HookFailure};
use outrigger_protocol::shared::PermissionUpdate;
use outrigger_protocol::shared::hook::{AnyHookOutput, HookEvent, HookOutput, event};
use outrigger_protocol::{Frame, RawJson, walk};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tracing::{Instrument, Span};

use super::events::row;
use super::failure::{self, Failure};
use super::handler::{HookCall, HookFn};
use super::{MARGIN, OnFailure, Registration, TIMEOUT};
use crate::conn::Context;
use crate::conn::cli_requests::{Answerer, CliReply, CliRequest};
use crate::deadline::{self, AbortOnDrop, NoResult};
use crate::fields::Fields;
use crate::peer::BoxFuture;
use crate::rule::refused_change;
use crate::spawn::spawn_in;

/// How many hooks may run in the background at once.
const IN_BACKGROUND: usize = 256;

/// The hooks of one session. An id is the index in the options, so equal options have equal ids.
#[derive(Clone)]
pub(crate) struct Hooks {
    table: Arc<[Registration]>,
    background: Arc<Semaphore>,
}

/// The hooks for `initialize`.
pub(crate) fn matchers(hooks: &[Registration]) -> BTreeMap<String, Vec<HookCallbackMatcher>> {
    let mut matchers: BTreeMap<String, Vec<HookCallbackMatcher>> = BTreeMap::new();
    for (index, hook) in hooks.iter().enumerate() {
        let mut told = HookCallbackMatcher::new([id(index)]).timeout(hook.patience().as_secs_f64());
        told.matcher = hook.matcher.clone();
        if hook.on_failure() == OnFailure::Block && row(&hook.event).failure.has_switch() {
            told = told.on_failure(HookFailure::Block);
        }
        matchers
            .entry(hook.event.as_str().to_owned())
            .or_default()
            .push(told);
    }
    matchers
}

fn id(index: usize) -> String {
    format!("hook_{index}")
}

impl Registration {
    fn time(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }

    /// How long the CLI waits.
    fn patience(&self) -> Duration {
        if self.is_background() {
            MARGIN
        } else {
            self.time() + MARGIN
        }
    }
}

/// A call of the CLI.
struct Request {
    callback_id: String,
    input: RawJson,
    event: Option<HookEvent>,
    /// The time that is left, if the CLI reported it.
    left: Option<Duration>,
}

impl Request {
    fn read(frame: &Frame) -> Result<Self, String> {
        if let Some(flaw) = frame.flaw() {
            return Err(flaw.to_string());
        }
        let fields = Fields::of(frame).get::<BTreeMap<String, RawJson>>("request");
        let mut fields = fields.ok_or("it has no `request`")?;
        let number = |key: &str| fields.get(key).and_then(|value| value.decode::<f64>().ok());
        let left = left(number("deadline_ms"), number("issued_at"));
        let id = fields.get("callback_id").and_then(|id| id.decode().ok());
        let input = fields.remove("input").unwrap_or_default();
        let event =
            walk::string_at(input.get(), "hook_event_name").map(|name| HookEvent::from(name.as_str()));
        Ok(Self {
            callback_id: id.ok_or("it has no `callback_id`")?,
            input,
            event,
            left,
        })
    }

    /// The changes of permissions that the CLI suggests.
    fn suggestions(&self) -> Vec<PermissionUpdate> {
        Fields::of_object(&self.input)
            .get("permission_suggestions")
            .unwrap_or_default()
    }
}

/// The time that is left of `deadline_ms`, less what the answer takes to get there.
fn left(deadline_ms: Option<f64>, issued_at: Option<f64>) -> Option<Duration> {
    let total = deadline_ms.filter(|ms| ms.is_finite() && *ms >= 0.0)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64() * 1000.0;
    // Two clocks that disagree say nothing.
    let gone = issued_at.map_or(0.0, |then| now - then);
    let gone = if (0.0..=total).contains(&gone) { gone } else { 0.0 };
    let left = Duration::try_from_secs_f64((total - gone) / 1000.0).ok()?;
    Some(left - MARGIN.min(left / 5))
}

impl Hooks {
    pub(crate) fn new(hooks: &[Registration]) -> Self {
        Self {
            table: hooks.into(),
            background: Arc::new(Semaphore::new(IN_BACKGROUND)),
        }
    }

    fn find(&self, callback_id: &str) -> Option<&Registration> {
        let index: usize = callback_id.strip_prefix("hook_")?.parse().ok()?;
        // `hook_01` is no id of ours.
        (id(index) == callback_id).then(|| self.table.get(index))?
    }

    async fn answer(self, asking: CliRequest) -> CliReply {
        let CliRequest { frame, context } = asking;
        let request = match Request::read(&frame) {
            Ok(request) => request,
            Err(why) => {
                return self.refuse(&frame, &format!("the call of the hook could not be read: {why}"));
            }
        };
        let Some(hook) = self.find(&request.callback_id) else {
            return self.refuse(&frame, "no hook has this id");
        };
        if request.event.as_ref().is_some_and(|event| *event != hook.event) {
            return self.refuse(&frame, "the hook with this id is for another event");
        }
        match &hook.call {
            HookCall::Answer(run) => {
                let on_failure = hook.on_failure();
                let input = (on_failure == OnFailure::Block).then(|| request.input.clone());
                let suggestions = request.suggestions();
                let answered = in_time(hook, run, request, context).await;
                match answered.and_then(|output| checked(hook, output, &suggestions)) {
                    Ok(output) => CliReply::Success(output),
                    Err(why) => failed(on_failure, &hook.event, input.as_ref(), &why),
                }
            }
            HookCall::Background(run) => {
                self.run_in_background(hook, run, request.input, context);
                let output = AnyHookOutput::from(HookOutput::<event::Stop>::in_background());
                CliReply::success(&output)
            }
        }
    }

    fn run_in_background(&self, hook: &Registration, run: &HookFn<()>, input: RawJson, context: Context) {
        let Ok(room) = Arc::clone(&self.background).try_acquire_owned() else {
            tracing::warn!(
                event = hook.event.as_str(),
                "too many hooks run in the background; this call is dropped"
            );
            return;
        };
        let ended = context.session_end();
        let cancelled = context.cancelled().clone();
        let running = AbortOnDrop(tokio::spawn(run(input, context).in_current_span()));
        let (event, time) = (hook.event.clone(), hook.timeout);
        // Bounded by the room; ends with the session.
        let work = async move {
            let mut running = running;
            let in_time = async {
                match time {
                    Some(time) => tokio::time::timeout(time, &mut running.0).await.map_err(|_| time),
                    None => Ok((&mut running.0).await),
                }
            };
            let outcome = tokio::select! {
                biased;
                () = ended => None,
                done = in_time => Some(done),
            };
            let why = match outcome {
                // Nobody is left to be told.
                None | Some(Ok(Ok(Ok(())))) => None,
                Some(Ok(Ok(Err(failure)))) => Some(failure.to_string()),
                Some(Ok(Err(error))) if error.is_panic() => Some(PANICKED.to_owned()),
                Some(Ok(Err(_))) => Some(STOPPED.to_owned()),
                Some(Err(time)) => Some(late(time)),
            };
            cancelled.cancel();
            if let Some(why) = why {
                tracing::warn!(event = event.as_str(), why, "a hook in the background failed");
            }
            drop(room);
        };
        spawn_in(Span::current(), work);
    }
}

/// The answer of a hook, unless it changes permissions in a way in which no answer may.
fn checked(
    hook: &Registration,
    output: RawJson,
    suggestions: &[PermissionUpdate],
) -> Result<RawJson, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Output {
        hook_specific_output: Option<Specific>,
    }
    #[derive(Deserialize)]
    struct Specific {
        decision: Option<Decision>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Decision {
        updated_permissions: Option<Vec<PermissionUpdate>>,
    }
    if hook.event != HookEvent::PermissionRequest {
        return Ok(output);
    }
    let read: Output = output
        .decode()
        .map_err(|error| format!("its answer cannot be read: {error}"))?;
    let decision = read.hook_specific_output.and_then(|specific| specific.decision);
    let updates = decision.and_then(|decision| decision.updated_permissions);
    let refused = updates
        .iter()
        .flatten()
        .find_map(|update| refused_change(update, suggestions));
    match refused {
        Some(why) => Err(format!("it allowed the call {why}")),
        None => Ok(output),
    }
}

async fn in_time(
    hook: &Registration,
    run: &HookFn<RawJson>,
    request: Request,
    context: Context,
) -> Result<RawJson, String> {
    let time = request.left.map_or(hook.time(), |left| left.min(hook.time()));
    let cancelled = context.cancelled().clone();
    let done = deadline::in_time(time, run(request.input, context)).await;
    match done {
        Ok(output) => output.map_err(|failure| failure.to_string()),
        Err(NoResult::Panicked(_)) => Err(PANICKED.to_owned()),
        Err(NoResult::Stopped) => Err(STOPPED.to_owned()),
        Err(NoResult::Late(time)) => {
            cancelled.cancel();
            Err(late(time))
        }
    }
}

fn late(time: Duration) -> String {
    format!("it was not done within {time:?}")
}

const PANICKED: &str = "it panicked";
const STOPPED: &str = "it was stopped";

/// The answer to a call that failed.
fn failed(on_failure: OnFailure, event: &HookEvent, input: Option<&RawJson>, why: &str) -> CliReply {
    let event_name = event.as_str();
    match on_failure {
        OnFailure::Block => {
            tracing::error!(event = event_name, why, "a hook failed, so it blocks");
            let why = format!("the {event_name} hook failed: {why}");
            CliReply::success(&row(event).failure.refusal(input, &why))
        }
        OnFailure::Continue => {
            tracing::warn!(event = event_name, why, "a hook failed; it decides nothing");
            CliReply::success(&failure::nothing())
        }
    }
}

impl Answerer for Hooks {
    fn accept(&self, asking: CliRequest) -> BoxFuture<'static, CliReply> {
        Box::pin(self.clone().answer(asking))
    }

    fn refuse(&self, frame: &Frame, why: &str) -> CliReply {
        let request = Request::read(frame).ok();
        let hook = request
            .as_ref()
            .and_then(|request| self.find(&request.callback_id));
        let told = request.as_ref().and_then(|request| request.event.as_ref());
        let input = request.as_ref().map(|request| &request.input);
        match (hook, told) {
            (Some(hook), None) => failed(hook.on_failure(), &hook.event, input, why),
            (Some(hook), Some(event)) if *event == hook.event => failed(hook.on_failure(), event, input, why),
            // Nobody would be refused anything, so the CLI may know that something is wrong.
            (_, Some(event)) if !matches!(row(event).failure, Failure::Guards(_)) => {
                CliReply::Error(why.to_owned())
            }
            (_, Some(event)) => failed(row(event).failure.by_default(), event, input, why),
            // It may be a guard.
            (None, None) => CliReply::success(&row(&HookEvent::from("")).failure.refusal(None, why)),
        }
    }
}
