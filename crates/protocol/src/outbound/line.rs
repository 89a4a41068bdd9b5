//! Lines of stdin as bytes, and back.

use serde::Serialize;

use super::{
    BashCommand, ControlCancel, ControlRequest, ControlRequestLine, ControlResponse, KeepAliveLine,
    RawRequest, UpdateEnvironmentVariables, UserMessage,
};
use crate::shared::RequestId;
use crate::wire_enum;

wire_enum! {
    /// Any line that a program may write, by its `type`.
    ///
    /// The CLI ignores a `type` that it does not know, but a line that is no JSON object with the fields of its type ends it.
    pub enum OutboundLine by "type" {
        /// A prompt.
        "user" => User(Box<UserMessage>),
        /// Something that we ask.
        "control_request" => ControlRequest(Box<ControlRequestLine>),
        /// Our answer to what the CLI asks.
        "control_response" => ControlResponse(ControlResponse),
        /// Takes back what we asked.
        "control_cancel_request" => ControlCancelRequest(ControlCancel),
        /// Keeps the connection alive.
        "keep_alive" => KeepAlive(KeepAliveLine),
        /// Changes variables of the CLI's environment.
        "update_environment_variables" => UpdateEnvironmentVariables(UpdateEnvironmentVariables),
        /// Runs a command.
        "bash_command" => BashCommand(BashCommand),
    }
}

macro_rules! lines {
    ($( $var:ident($ty:ty) ),+ $(,)?) => { $(
        impl From<$ty> for OutboundLine {
            fn from(line: $ty) -> Self {
                Self::$var(line.into())
            }
        }
    )+ };
}

lines! {
    User(UserMessage),
    ControlRequest(ControlRequestLine),
    ControlResponse(ControlResponse),
    ControlCancelRequest(ControlCancel),
    KeepAlive(KeepAliveLine),
    UpdateEnvironmentVariables(UpdateEnvironmentVariables),
    BashCommand(BashCommand),
}

/// Encodes any line: one line of JSON with its end of line.
///
/// # Errors
/// When the value does not serialize. The types of this crate all do.
pub fn encode_line<T: Serialize + ?Sized>(line: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec(line)?;
    // Only JSON that came from elsewhere as text can hold line breaks, and only between tokens: within strings they are escaped.
    for byte in &mut bytes {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    bytes.push(b'\n');
    Ok(bytes)
}

/// Encodes a prompt as a line: as [`OutboundLine::User`], without the code that writes the other lines.
///
/// # Errors
/// When the prompt does not serialize, which does not happen.
pub fn encode_prompt(prompt: &UserMessage) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Tagged<'a> {
        r#type: &'static str,
        #[serde(flatten)]
        prompt: &'a UserMessage,
    }
    encode_line(&Tagged {
        r#type: "user",
        prompt,
    })
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "control_request")]
struct Envelope<'a, T> {
    request_id: &'a RequestId,
    request: T,
}

/// Encodes a request of ours as a line.
///
/// # Errors
/// When the request does not serialize. The types of this crate all do.
pub fn encode_request<R: ControlRequest>(
    request_id: &RequestId,
    request: &R,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Tagged<'a, R> {
        subtype: &'static str,
        #[serde(flatten)]
        request: &'a R,
    }
    encode_line(&Envelope {
        request_id,
        request: Tagged {
            subtype: R::SUBTYPE,
            request,
        },
    })
}

/// Encodes a request that has no type here as a line.
///
/// # Errors
/// When it does not serialize, which does not happen.
pub fn encode_raw_request(
    request_id: &RequestId,
    request: &RawRequest,
) -> Result<Vec<u8>, serde_json::Error> {
    encode_line(&Envelope { request_id, request })
}
