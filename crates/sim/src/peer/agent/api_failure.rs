//! What becomes of a failure of the API: it is tried again, or ends the turn.

use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::brain::{FaultKind, ModelResponse};
use super::context::ConversationLine;
use super::not_simulated::{self, Feature};
use super::payload;
use super::turn::{End, Turn};
use crate::fields::JsonFields as _;
use crate::flaw::Flaw;
use crate::script::ApiError;

/// A failure of the API, as the host gets to see it.
pub(super) struct ApiFailure {
    pub(super) status: Option<u16>,
    /// The `error` of the assistant line.
    pub(super) error: &'static str,
    pub(super) text: String,
    /// What else the assistant line has, and the result.
    pub(super) fields: Value,
    pub(super) ended: Value,
    pub(super) stop_reason: &'static str,
    pub(super) terminal_reason: &'static str,
    /// The `error` of `api_retry`.
    retry_error: &'static str,
    /// After how many seconds at least the request is sent once more, if it is at all. The host hears of it.
    retry: Option<u64>,
    repair: Repair,
    /// Whether the model was stopped by a filter.
    is_filtered: bool,
}

/// Whether the request is sent once more in another form, without a word to the host.
#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Repair {
    #[default]
    None,
    /// Without what the API may not know.
    Betas,
    /// The same, but only without the first of these things.
    FirstBeta,
    /// With room for fewer tokens.
    Room,
    /// Not as a stream.
    Whole,
}

/// How often an API may be overloaded that is asked again.
const OVERLOADS: u32 = 2;

/// Longer than so many seconds the CLI does not wait for the API.
const LONGEST_WAIT: u64 = 60;

/// What requests leave out because the API may not know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LeftOut {
    token_count: bool,
    thinking_display: bool,
    tool_search: bool,
}

/// The first that fits counts.
static KNOWN: LazyLock<Vec<KnownProblem>> =
    LazyLock::new(|| serde_json::from_str(include_str!("api_failures.json")).unwrap_or_default());

/// A problem that the CLI knows by the API's text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownProblem {
    /// What the text has in it, in lower case.
    marks: Vec<String>,
    /// With which statuses; with any but 429 if there are none.
    #[serde(default)]
    statuses: Vec<u16>,
    error: &'static str,
    api_error: Option<&'static str>,
    terminal_reason: Option<&'static str>,
    #[serde(default)]
    repair: Repair,
    /// The text that the host gets.
    text: &'static str,
}

impl KnownProblem {
    fn of(status: u16, message: &str) -> Option<&'static Self> {
        let message = message.to_lowercase();
        KNOWN.iter().find(|known| {
            let fits = known.statuses.contains(&status) || (known.statuses.is_empty() && status != 429);
            fits && known.marks.iter().all(|mark| message.contains(mark.as_str()))
        })
    }
}

/// The forms that a request has been sent in.
struct Forms {
    /// What the session leaves out.
    session: LeftOut,
    /// The same, and the search for tools where nothing else has helped.
    base: LeftOut,
    left_out: LeftOut,
    /// What the session leaves out if the request succeeds: beside the base only what was left out last.
    proved: LeftOut,
    has_room: bool,
    is_whole: bool,
}

impl Forms {
    fn new(session: LeftOut) -> Self {
        Self {
            session,
            base: session,
            left_out: session,
            proved: session,
            has_room: false,
            is_whole: false,
        }
    }

    /// Changes the form; false if there is no other one.
    fn change(&mut self, repair: Repair) -> bool {
        match repair {
            Repair::None => false,
            Repair::Room => !std::mem::replace(&mut self.has_room, true),
            Repair::Whole => !std::mem::replace(&mut self.is_whole, true),
            Repair::FirstBeta if self.left_out.token_count => false,
            Repair::FirstBeta | Repair::Betas => self.leave_out(),
        }
    }

    fn leave_out(&mut self) -> bool {
        if !self.left_out.token_count {
            self.left_out.token_count = true;
            self.proved = LeftOut {
                token_count: true,
                ..self.base
            };
        } else if !self.left_out.thinking_display {
            self.left_out.thinking_display = true;
            self.proved = LeftOut {
                thinking_display: true,
                ..self.base
            };
        } else if !self.left_out.tool_search {
            self.base = LeftOut {
                tool_search: true,
                ..self.session
            };
            self.left_out = self.base;
            self.proved = self.base;
        } else {
            return false;
        }
        true
    }
}

impl Turn {
    /// Plays the faults before the response succeeds. Gives whether it then comes whole, not as a stream.
    pub(super) async fn fail(&mut self, model: &str, response: &ModelResponse) -> Result<bool, End> {
        let mut max_retries = self.ctx.config.max_retries;
        let who = self.agent.as_ref().map(|agent| agent.id.clone());
        let mut forms = Forms::new(self.ctx.state().left_out.get(&who).copied().unwrap_or_default());
        let (mut attempt, mut overloads) = (0, 0);
        for fault in &response.faults {
            let mut acts = fault.acts.as_slice();
            for _ in 0..fault.times {
                let comes = fault.kind.breaks_off() && !forms.is_whole;
                // Those behind the blocks that come are done as they come.
                let first = acts.iter().filter(|(index, _)| *index == 0 || !comes);
                if let Err(why) = self.perform(first.map(|(_, act)| act)).await {
                    return Err(self.cut_short(why, None, None).await);
                }
                let acts = std::mem::take(&mut acts);
                let mut failure = ApiFailure::new(&fault.kind, model);
                overloads += u32::from(failure.is_overloaded());
                if comes {
                    let broken = ModelResponse {
                        blocks: fault.came.clone(),
                        breaks: Some(fault.kind.clone()),
                        pace: response.pace,
                        usage: response.usage,
                        ..ModelResponse::default()
                    };
                    self.message(model, &broken, acts, false).await?;
                    self.broken = None;
                    // Streams have had their chance: at once where the API has ended one, and else with the last retry. The retries that
                    // are left are counted anew.
                    let is_ended = matches!(fault.kind, FaultKind::SseError(_));
                    if is_ended || attempt >= max_retries {
                        max_retries = max_retries.saturating_sub(attempt + 1);
                        attempt = 0;
                        forms.is_whole = true;
                        continue;
                    }
                }
                if forms.change(failure.repair) {
                    continue;
                }
                let is_last = match failure.retry {
                    None => true,
                    Some(_) if failure.is_overloaded() && overloads > OVERLOADS => {
                        failure.text = "API Error: Repeated 529 Overloaded errors".to_owned();
                        true
                    }
                    Some(_) => attempt >= max_retries,
                };
                if is_last && failure.is_overloaded() && self.fall_back().await {
                    return Ok(forms.is_whole);
                }
                if is_last {
                    return Err(self.give_up(failure).await);
                }
                attempt += 1;
                let after = 1000 * failure.retry.unwrap_or_default();
                let delay = (500_u64 << (attempt - 1).min(6)).max(after);
                let fields = json!({
                    "attempt": attempt, "max_retries": max_retries, "retry_delay_ms": delay,
                    "error_status": failure.status, "error": failure.retry_error,
                });
                self.ctx.send_system("api_retry", fields).await;
                if let Err(why) = self.or_abort(self.ctx.pause(Duration::from_millis(delay))).await {
                    return Err(self.cut_short(why, None, None).await);
                }
            }
        }
        self.ctx.state().left_out.insert(who, forms.proved);
        Ok(forms.is_whole)
    }

    /// Ends the turn, as no other attempt is left.
    async fn give_up(&mut self, failure: ApiFailure) -> End {
        let is_too_much = failure.terminal_reason != "api_error";
        let is_behind_others = self.ctx.state().prompts > 1 || self.tally().user_lines > 0;
        if is_too_much && is_behind_others && self.agent.is_none() {
            let text = not_simulated::feature(Feature::Compaction);
            self.ctx.log.flaw(Flaw::new("prompt", text.clone()));
            return End::NotSimulated(text);
        }
        if failure.is_filtered {
            self.ctx.state().refusals += 1;
        }
        self.send_api_error(&failure).await;
        End::Api(Box::new(failure))
    }

    /// Switches to the other model, if there is another.
    async fn fall_back(&mut self) -> bool {
        let Some(fallback) = self.ctx.config.fallback.clone() else {
            return false;
        };
        let original = self.ctx.state().model.clone();
        if original == fallback {
            return false;
        }
        self.ctx.state().model.clone_from(&fallback);
        let fields = json!({
            "trigger": "overloaded", "original_model": original, "fallback_model": fallback,
            "content": format!("Switched to {fallback} because {original} is overloaded"),
        });
        self.ctx.send_system("model_fallback", fields).await;
        true
    }

    pub(super) async fn send_api_error(&mut self, failure: &ApiFailure) {
        let id = self.ctx.uuid();
        let mut extra = json!({"error": failure.error, "is_api_error_message": true});
        extra.merge(failure.fields.clone());
        self.mark(&mut extra);
        let mut message = payload::synthetic_message(&id, &failure.text);
        message["stop_reason"] = json!(failure.stop_reason);
        if failure.stop_reason == "tool_use" {
            message["stop_sequence"] = Value::Null;
        }
        message["content"][0].put("text", self.display(&failure.text).await);
        self.ctx
            .say(ConversationLine {
                agent: self.agent.as_deref(),
                kind: "assistant",
                kept: Some(json!({
                    "message": message, "error": failure.error, "isApiErrorMessage": true,
                    "apiErrorStatus": failure.status,
                })),
                message,
                extra,
                shown: self.agent.as_ref().is_none_or(|agent| agent.shows_text()),
            })
            .await;
    }
}

impl ApiFailure {
    fn is_overloaded(&self) -> bool {
        self.retry_error == "overloaded"
    }

    /// The limit of tokens has cut too many responses.
    pub(super) fn of_limit() -> Self {
        let ended = json!({"api_error": "max_output_tokens"});
        let mut fields = ended.clone();
        fields["api_error_params"] = json!({"cut": "output_limit"});
        Self {
            error: "max_output_tokens",
            text: "API Error: the responses have exceeded the limit of output tokens".to_owned(),
            fields,
            ended,
            ..Self::new(&FaultKind::Cut, "")
        }
    }

    /// The model has been stopped by its safeguards once more.
    pub(super) fn of_refusal(message: &str) -> Self {
        Self {
            error: "invalid_request",
            text: "API Error: the safeguards of the model have stopped the response".to_owned(),
            fields: json!({"request_id": format!("req_sim_{message}"), "refused_message_id": message}),
            ended: json!({}),
            stop_reason: "refusal",
            ..Self::new(&FaultKind::Cut, "")
        }
    }

    /// The response has broken off behind blocks that count. With calls among them, the turn goes on all the same.
    pub(super) fn of_break(fault: &FaultKind, has_calls: bool) -> Self {
        let (text, ended) = match fault {
            FaultKind::Cut => (
                "the connection was lost amid the response",
                json!({"api_error": "connection_failed"}),
            ),
            _ => ("the API has failed amid the response", json!({})),
        };
        Self {
            text: format!("API Error: {text}"),
            fields: ended.clone(),
            ended,
            stop_reason: if has_calls { "tool_use" } else { "stop_sequence" },
            ..Self::new(&FaultKind::Cut, "")
        }
    }

    fn new(fault: &FaultKind, model: &str) -> Self {
        match fault {
            FaultKind::Status(error) => return Self::of_status(error, model),
            // So the API refuses a request that is not for a stream.
            FaultKind::SseError(kind) => {
                let status = if kind == "overloaded_error" { 529 } else { 500 };
                let mut error = ApiError::new(status).message("by the script");
                error.kind = Some(kind.clone());
                return Self::of_status(&error, model);
            }
            FaultKind::Drop | FaultKind::Cut => {}
        }
        let ended = json!({"api_error": "connection_failed"});
        let mut fields = ended.clone();
        if !matches!(fault, FaultKind::Cut) {
            fields["request_id"] = json!("req_sim_failed");
        }
        Self {
            status: None,
            error: "server_error",
            text: "API Error: connection closed".to_owned(),
            fields,
            ended,
            stop_reason: "stop_sequence",
            terminal_reason: "api_error",
            retry_error: "unknown",
            retry: Some(0),
            repair: Repair::None,
            is_filtered: false,
        }
    }

    /// What the CLI makes of a refusal with a status.
    fn of_status(refusal: &ApiError, model: &str) -> Self {
        let status = refusal.status;
        let (usual_kind, usual_message) = ApiError::usual(status);
        let kind = refusal.kind.as_deref().unwrap_or(usual_kind);
        let message = refusal.message.as_deref().unwrap_or(usual_message);
        let known = KnownProblem::of(status, message);
        let (error, text) = match (known, status) {
            (Some(known), _) => (known.error, known.text.to_owned()),
            (_, 401 | 403) => (
                "authentication_failed",
                format!("Failed to authenticate. API Error: {status} {message}"),
            ),
            (_, 404) => (
                "model_not_found",
                format!("API Error: 404 there may be no model {model}, or none for this account"),
            ),
            (_, 429) => (
                "rate_limit",
                format!("API Error: Request rejected (429) · {message}"),
            ),
            (_, 500..) => ("server_error", format!("API Error: {status} {message}")),
            _ => ("unknown", format!("API Error: {status} {message}")),
        };
        let is_filtered = message.contains("Output blocked by content filtering policy");
        let repair = match (known.map(|known| known.repair), status) {
            (None, 400) if is_filtered || kind == "billing_error" => Repair::None,
            (None, 422) if is_filtered => Repair::FirstBeta,
            (None | Some(Repair::Betas), 400 | 422) => Repair::Betas,
            (Some(Repair::FirstBeta), 422) => Repair::FirstBeta,
            (Some(Repair::Room), 400) => Repair::Room,
            (_, 404) => Repair::Whole,
            _ => Repair::None,
        };
        let overloaded = status == 529 || kind == "overloaded_error";
        let after = u64::from(refusal.retry_after.unwrap_or_default());
        let retry = match status {
            _ if after > LONGEST_WAIT || refusal.forbids_retry() => None,
            _ if overloaded => Some(after),
            401 | 408 | 409 | 429 | 500.. => Some(after),
            _ => None,
        };
        let mut ended = json!({"api_error_type": kind});
        ended.put("api_error", known.and_then(|known| known.api_error));
        let mut fields = ended.clone();
        fields["api_error_status"] = json!(status);
        fields["request_id"] = json!("req_sim_failed");
        if ended["api_error"] == "media_removed" {
            fields["api_error_params"] = json!({"media": "image", "media_reason": "unprocessable"});
        }
        Self {
            status: Some(status),
            error,
            text,
            fields,
            ended,
            stop_reason: "stop_sequence",
            terminal_reason: match (status, known) {
                (413, _) => "image_error",
                (_, known) => known
                    .and_then(|known| known.terminal_reason)
                    .unwrap_or("api_error"),
            },
            retry_error: match status {
                _ if overloaded => "overloaded",
                401 => "authentication_failed",
                429 => "rate_limit",
                408 | 409 | 500.. => "server_error",
                _ => "unknown",
            },
            retry,
            repair,
            is_filtered: is_filtered && status == 400,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_problems_are_read() {
        assert_eq!(KNOWN.len(), 17);
    }
}
