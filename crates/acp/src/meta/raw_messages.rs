//! `_meta.claudeCode.emitRawSDKMessages`: the CLI's messages as raw JSON, beside the updates.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error, JsonRpcNotification};
use outrigger::protocol::{Frame, RawJson};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::bad;

#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_claude/sdkMessage")]
#[serde(rename_all = "camelCase")]
pub(crate) struct SdkMessage {
    pub(crate) session_id: acp::SessionId,
    pub(crate) message: Value,
}

/// Which messages the editor gets.
#[derive(Debug, Clone, Default)]
pub(crate) enum RawMessages {
    #[default]
    None,
    All,
    /// Messages that match one of the filters.
    Some(Vec<Filter>),
}

/// A kind of messages. A missing field matches everything.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter {
    r#type: String,
    subtype: Option<String>,
    /// `origin.kind` of a user message.
    origin: Option<String>,
}

impl Filter {
    fn fits(&self, frame: &Frame) -> bool {
        if self.r#type != frame.kind() {
            return false;
        }
        let subtype = self.subtype.as_deref();
        if subtype.is_some() && subtype != frame.subtype() {
            return false;
        }
        match &self.origin {
            None => true,
            Some(kind) => message(frame).is_some_and(|message| message["origin"]["kind"] == kind.as_str()),
        }
    }
}

impl RawMessages {
    pub(super) fn of(told: Option<&Value>) -> Result<Self, Error> {
        match told {
            None | Some(Value::Null | Value::Bool(false)) => Ok(Self::None),
            Some(Value::Bool(true)) => Ok(Self::All),
            Some(told) => {
                let filters = serde_json::from_value(told.clone()).map_err(|error| {
                    let why = format!("it is neither true, false nor a list of filters: {error}");
                    bad("_meta.claudeCode.emitRawSDKMessages", why)
                })?;
                Ok(Self::Some(filters))
            }
        }
    }

    /// The message to send for a frame, if any. Frames of the control protocol are no messages.
    pub(crate) fn message(&self, frame: &Frame) -> Option<Value> {
        let is_wanted = match self {
            Self::None => false,
            Self::All => true,
            Self::Some(filters) => filters.iter().any(|filter| filter.fits(frame)),
        };
        let is_message = !frame.kind().starts_with("control_") && frame.kind() != "keep_alive";
        (is_wanted && is_message).then(|| message(frame)).flatten()
    }
}

fn message(frame: &Frame) -> Option<Value> {
    let text = serde_json::from_str::<RawJson>(&frame.text()).ok()?;
    text.decode().ok()
}
