//! Errors of the agent itself.

use agent_client_protocol::Error;
use agent_client_protocol::ErrorCode;
use serde_json::json;

/// An invalid parameter, with the reason.
pub(crate) fn bad(parameter: &str, why: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorCode::INVALID_PARAMS,
        format!("Invalid params: {parameter}: {why}"),
    )
    .data(json!({ "parameter": parameter, "reason": why.to_string() }))
}

pub(crate) fn no_session(id: &str) -> Error {
    Error::new(
        ErrorCode::RESOURCE_NOT_FOUND,
        format!("Resource not found: session {id}"),
    )
    .data(json!({ "sessionId": id }))
}

/// Something that sessions of a host do not have.
pub(crate) fn not_on_host(what: &str) -> Error {
    let said = format!("Method not found: {what} is not there for sessions of a host");
    Error::new(ErrorCode::METHOD_NOT_FOUND, said)
}

/// An error of the agent, not of the CLI.
pub(crate) fn internal(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::INTERNAL_ERROR, what.to_string())
}
