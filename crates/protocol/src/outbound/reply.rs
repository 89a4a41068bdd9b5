//! The envelopes: requests of ours, answers to the CLI's, and what else goes in a line of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::OutboundRequest;
use crate::RawJson;
use crate::shared::RequestId;
use crate::wire_enum;

/// `control_request`: something that we ask of the CLI.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct ControlRequestLine {
    /// The id that the answer will have.
    pub request_id: RequestId,
    /// What we ask.
    pub request: OutboundRequest,
}

/// A request that has no type here, by its `subtype` and fields.
#[derive(Debug, Clone, Serialize)]
pub struct RawRequest {
    /// The request's subtype.
    pub subtype: String,
    /// The fields of the request. A field called `subtype` is not written.
    #[serde(flatten, serialize_with = "without_subtype")]
    pub fields: BTreeMap<String, RawJson>,
}

impl RawRequest {
    /// A request without fields.
    pub fn new(subtype: impl Into<String>) -> Self {
        Self {
            subtype: subtype.into(),
            fields: BTreeMap::new(),
        }
    }

    /// Adds a field.
    pub fn field(mut self, name: impl Into<String>, value: impl Into<RawJson>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }
}

fn without_subtype<S: serde::Serializer>(
    fields: &BTreeMap<String, RawJson>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().filter(|(name, _)| *name != "subtype"))
}

/// `control_response`: our answer to a request of the CLI.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ControlResponse {
    /// The answer.
    pub response: ControlAnswer,
}

wire_enum! {
    /// Our answer to a request of the CLI.
    pub enum ControlAnswer by "subtype" {
        /// The request succeeded.
        "success" => Success(SuccessAnswer),
        /// The request failed.
        "error" => Error(ErrorAnswer),
    }
}

/// The request was done.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct SuccessAnswer {
    /// The request.
    pub request_id: RequestId,
    /// The payload of the reply, as the subtype of the request demands.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub response: Option<RawJson>,
}

/// The request was not done.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct ErrorAnswer {
    /// The request.
    pub request_id: RequestId,
    /// The error message.
    pub error: String,
    /// Why, as a code.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub error_code: Option<String>,
}

impl ControlResponse {
    /// The request was done. See [`check_answer`](super::check_answer) for what answers there are.
    ///
    /// # Errors
    /// When the payload does not serialize.
    pub fn success<T: Serialize + ?Sized>(
        request_id: impl Into<RequestId>,
        payload: &T,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            response: ControlAnswer::Success(SuccessAnswer {
                request_id: request_id.into(),
                response: Some(RawJson::encode(payload)?),
            }),
        })
    }

    /// The request was not done.
    pub fn error(request_id: impl Into<RequestId>, error: impl Into<String>) -> Self {
        Self {
            response: ControlAnswer::Error(ErrorAnswer {
                request_id: request_id.into(),
                error: error.into(),
                error_code: None,
            }),
        }
    }

    /// We do not know what the CLI asks. The CLI understands this one, and so does not wait for ever.
    pub fn unsupported(request_id: impl Into<RequestId>, subtype: &str) -> Self {
        Self {
            response: ControlAnswer::Error(ErrorAnswer {
                request_id: request_id.into(),
                error: format!("Unsupported control request subtype: {subtype}"),
                error_code: Some("unsupported_request".to_owned()),
            }),
        }
    }
}

/// `control_cancel_request`: takes back a request of ours. The CLI answers it with an error, or not at all.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct ControlCancel {
    /// The request.
    pub request_id: RequestId,
}

/// `keep_alive`: nothing. The CLI ignores it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct KeepAliveLine {}

/// `update_environment_variables`: changes variables of the CLI's own environment. It takes only some of them, and tells which if there
/// is a `request_id`.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
pub struct UpdateEnvironmentVariables {
    /// The variables.
    pub variables: BTreeMap<String, String>,
    /// The id that the answer will have; without one there is none.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub request_id: Option<RequestId>,
}

/// What comes of an [`UpdateEnvironmentVariables`] with an id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct EnvironmentVariablesUpdated {
    /// The variables that were taken.
    pub applied: Vec<String>,
}

/// `bash_command`: runs a command without the model and without asking. Only certain hosts may.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct BashCommand {
    /// The command.
    pub command: String,
    /// The directory to run the command in.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub cwd: Option<String>,
    /// The id of this frame.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub uuid: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub session_id: Option<String>,
}

impl BashCommand {
    /// Runs a command in the session's directory.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            cwd: None,
            uuid: None,
            session_id: None,
        }
    }
}
