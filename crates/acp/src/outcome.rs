//! The outcome of a turn as the answer to its prompt.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error, ErrorCode};
use outrigger::{Cause, Outcome, Tokens, Verdict};
use serde_json::{Map, Value, json};

pub(crate) type End = Result<acp::PromptResponse, Error>;

/// The answer to a cancelled prompt, with its usage.
pub(crate) fn cancelled(outcome: Option<&Outcome>) -> acp::PromptResponse {
    respond(acp::StopReason::Cancelled, outcome)
}

/// The answer for the outcome of a turn.
///
/// # Errors
/// When the turn failed; with the CLI's message and codes.
pub(crate) fn of(outcome: &Outcome) -> Result<acp::PromptResponse, Error> {
    let reason = match outcome.verdict() {
        Verdict::Interrupted | Verdict::Cancelled => acp::StopReason::Cancelled,
        Verdict::Failed(Cause::MaxTurns | Cause::Budget | Cause::StructuredOutput) => {
            acp::StopReason::MaxTurnRequests
        }
        Verdict::Failed(Cause::Refused) => acp::StopReason::Refusal,
        Verdict::Failed(Cause::MaxOutputTokens) => acp::StopReason::MaxTokens,
        verdict if verdict.is_success() => by_stop_reason(outcome),
        // A hook ended the turn on purpose, and its message was shown.
        Verdict::NotRun | Verdict::StoppedByHook | Verdict::Failed(Cause::NoStructuredOutput) => {
            by_stop_reason(outcome)
        }
        // The API reports a refusal by an error or by the stop reason.
        verdict => match by_stop_reason(outcome) {
            acp::StopReason::EndTurn => return Err(failed(verdict, outcome)),
            told => told,
        },
    };
    Ok(respond(reason, Some(outcome)))
}

/// The stop reason of the API.
fn by_stop_reason(outcome: &Outcome) -> acp::StopReason {
    let told = outcome.result().and_then(Result::ok);
    match told.and_then(|result| result.stop_reason).as_deref() {
        Some("max_tokens" | "model_context_window_exceeded") => acp::StopReason::MaxTokens,
        Some("refusal") => acp::StopReason::Refusal,
        _ => acp::StopReason::EndTurn,
    }
}

fn respond(reason: acp::StopReason, outcome: Option<&Outcome>) -> acp::PromptResponse {
    let response = acp::PromptResponse::new(reason);
    let Some(outcome) = outcome else { return response };
    let usage = outcome.usage();
    let total = usage.total();
    let by_model = usage.by_model.iter();
    let by_model: Vec<Value> = by_model
        .map(|(model, tokens)| json!({ "model": model, "token_count": counts(tokens) }))
        .collect();
    let mut meta = Map::new();
    meta.insert(
        "quota".to_owned(),
        json!({ "token_count": counts(&total), "model_usage": by_model }),
    );
    let mut own = Map::new();
    own.insert("costUsd".to_owned(), json!(outcome.cost()));
    if let Some(output) = outcome.structured_output() {
        own.insert(
            "structuredOutput".to_owned(),
            output.decode().unwrap_or(Value::Null),
        );
    }
    meta.insert("claudeCode".to_owned(), Value::Object(own));
    response.usage(tally(&total)).meta(meta)
}

fn all(tokens: &Tokens) -> u64 {
    [
        tokens.input,
        tokens.output,
        tokens.cache_read,
        tokens.cache_creation,
    ]
    .into_iter()
    .fold(0, u64::saturating_add)
}

fn tally(tokens: &Tokens) -> acp::Usage {
    acp::Usage::new(all(tokens), tokens.input, tokens.output)
        .cached_read_tokens(tokens.cache_read)
        .cached_write_tokens(tokens.cache_creation)
}

fn counts(tokens: &Tokens) -> Value {
    json!({
        "totalTokens": all(tokens),
        "inputTokens": tokens.input,
        "cachedInputTokens": tokens.cache_read,
        "cachedWriteTokens": tokens.cache_creation,
        "outputTokens": tokens.output,
    })
}

fn failed(verdict: &Verdict, outcome: &Outcome) -> Error {
    let said = match (outcome.result_text().trim(), outcome.errors()) {
        ("", []) => verdict.to_string(),
        ("", errors) => errors.join("\n"),
        (text, _) => text.to_owned(),
    };
    let code = match verdict.cause() {
        Some(Cause::NotLoggedIn | Cause::InvalidKey) => ErrorCode::AUTH_REQUIRED,
        // A 403 can have other reasons, which the CLI's text tells apart.
        _ if said.starts_with("Failed to authenticate") => ErrorCode::AUTH_REQUIRED,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    let mut data = Map::new();
    data.insert("verdict".to_owned(), json!(verdict.to_string()));
    if let Some(cause) = verdict.cause() {
        data.insert("cause".to_owned(), json!(cause.name()));
    }
    if let Some(reason) = outcome.terminal_reason() {
        data.insert("terminalReason".to_owned(), json!(reason));
    }
    if let Some(status) = outcome.api_error_status() {
        data.insert("apiErrorStatus".to_owned(), json!(status));
    }
    if !outcome.errors().is_empty() {
        data.insert("errors".to_owned(), json!(outcome.errors()));
    }
    if let Some(Ok(result)) = outcome.result() {
        data.insert("subtype".to_owned(), json!(result.subtype));
        data.insert("apiErrorType".to_owned(), json!(result.api_error_type));
    }
    if let Some(wait) = outcome.retry_after() {
        data.insert("retryAfterSeconds".to_owned(), json!(wait.as_secs()));
    }
    data.insert("costUsd".to_owned(), json!(outcome.cost()));
    Error::new(code, said).data(Value::Object(data))
}
