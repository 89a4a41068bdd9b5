//! What goes wrong, in a form that an editor can show.

use agent_client_protocol::Error;
use agent_client_protocol::ErrorCode;
use outrigger::advice::reworded;
use serde_json::{Map, Value, json};

use crate::words;

/// A parameter that can't be used, and why.
pub(crate) fn bad(parameter: &str, why: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorCode::INVALID_PARAMS,
        format!("Invalid params: {parameter}: {why}"),
    )
    .data(json!({ "parameter": parameter, "reason": why.to_string() }))
}

/// There is no such session.
pub(crate) fn no_session(id: &str) -> Error {
    Error::new(
        ErrorCode::RESOURCE_NOT_FOUND,
        format!("Resource not found: session {id}"),
    )
    .data(json!({ "sessionId": id }))
}

/// Something went wrong on this side of the CLI.
pub(crate) fn internal(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::INTERNAL_ERROR, what.to_string())
}

/// What the SDK says, with its evidence: what failed, why as far as that is known, and what to do about it.
pub(crate) fn of_sdk(error: &outrigger::Error) -> Error {
    use outrigger::Cause;

    let mut data = Map::new();
    let mut put = |key: &str, value: Value| {
        data.insert(key.to_owned(), value);
    };
    let cause = error.cause();
    if let Some(cause) = &cause {
        put("cause", json!(cause.to_string()));
    }
    let told = error.told(words::setting);
    let advice = error.hint().map(|hint| reworded(hint, words::setting));
    if let Some(advice) = advice {
        put("advice", json!(advice));
    }
    if let Some(exit) = error.exit() {
        put("exit", json!(exit.to_string()));
    }
    if let Some(stderr) = error.stderr_tail().filter(|tail| !tail.trim().is_empty()) {
        put("stderr", json!(stderr));
    }
    let code = match cause {
        Some(Cause::NotLoggedIn | Cause::InvalidKey) => ErrorCode::AUTH_REQUIRED,
        Some(Cause::UnknownSession) => ErrorCode::RESOURCE_NOT_FOUND,
        // What is wrong with the options is the surroundings' fault, not the request's.
        _ if error.is_invalid() && error.as_options_error().is_none() => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    let mut message = told.message;
    for behind in &told.because {
        message.push_str(": ");
        message.push_str(behind);
    }
    if let Some(hint) = told.hint {
        message.push_str(&format!(" ({hint})"));
    }
    Error::new(code, message).data(Value::Object(data))
}
