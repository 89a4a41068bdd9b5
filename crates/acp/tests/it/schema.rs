//! Validates lines by the protocol's JSON Schema, and by its types, which have all fields.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use agent_client_protocol::{v1, v2};
use jsonschema::Validator;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The validator of one type.
pub(crate) struct Judge {
    schema: Validator,
    through_type: fn(&Value) -> Result<Value, serde_json::Error>,
}

impl Judge {
    fn of<T: JsonSchema + Serialize + DeserializeOwned>() -> Self {
        let schema = serde_json::to_value(schema_for!(T)).expect("a schema is JSON");
        Self {
            schema: jsonschema::validator_for(&schema).expect("a valid schema"),
            through_type: |value| serde_json::to_value(serde_json::from_value::<T>(value.clone())?),
        }
    }

    fn judge(&self, what: &str, value: &Value) {
        let errors: Vec<String> = self
            .schema
            .iter_errors(value)
            .map(|error| error.to_string())
            .collect();
        assert!(
            errors.is_empty(),
            "{what} is not what the schema wants: {errors:?}\n{value:#}"
        );
        let read = (self.through_type)(value).unwrap_or_else(|error| panic!("{what}: {error}\n{value:#}"));
        is_covered(what, value, &read);
    }
}

/// Whether the types have all fields of the value. They may add defaults.
fn is_covered(at: &str, said: &Value, known: &Value) {
    match (said, known) {
        (Value::Object(said), Value::Object(known)) => {
            for (key, said) in said {
                match known.get(key) {
                    Some(known) => is_covered(&format!("{at}.{key}"), said, known),
                    // `null` counts as missing.
                    None => assert!(
                        said.is_null() || *said == Value::Array(Vec::new()),
                        "{at}.{key} is not in the protocol: {said}"
                    ),
                }
            }
        }
        (Value::Array(said), Value::Array(known)) => {
            assert_eq!(said.len(), known.len(), "{at}: some of it is not in the protocol");
            for (position, (said, known)) in said.iter().zip(known).enumerate() {
                is_covered(&format!("{at}[{position}]"), said, known);
            }
        }
        (said, known) => assert!(
            said == known || said.as_f64() == known.as_f64(),
            "{at}: {said} is read as {known}"
        ),
    }
}

struct Method {
    params: Judge,
    /// None for notifications.
    result: Option<Judge>,
}

type Methods = BTreeMap<&'static str, Method>;

/// The version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    Draft,
}

macro_rules! methods {
    ($types:path: $($name:literal $params:ident $($result:ident)?,)+) => {{
        use $types as types;
        let mut methods = BTreeMap::new();
        $(
            let result: Option<Judge> = None $(.or(Some(Judge::of::<types::$result>())))?;
            methods.insert($name, Method { params: Judge::of::<types::$params>(), result });
        )+
        methods
    }};
}

static METHODS: LazyLock<Methods> = LazyLock::new(|| {
    methods! { v1::schema:
        "initialize" InitializeRequest InitializeResponse,
        "authenticate" AuthenticateRequest AuthenticateResponse,
        "logout" LogoutRequest LogoutResponse,
        "session/new" NewSessionRequest NewSessionResponse,
        "session/load" LoadSessionRequest LoadSessionResponse,
        "session/resume" ResumeSessionRequest ResumeSessionResponse,
        "session/fork" ForkSessionRequest ForkSessionResponse,
        "session/list" ListSessionsRequest ListSessionsResponse,
        "session/delete" DeleteSessionRequest DeleteSessionResponse,
        "session/close" CloseSessionRequest CloseSessionResponse,
        "session/set_title" SetSessionTitleRequest SetSessionTitleResponse,
        "session/archive" ArchiveSessionRequest ArchiveSessionResponse,
        "session/unarchive" UnarchiveSessionRequest UnarchiveSessionResponse,
        "session/status" SessionStatusRequest SessionStatusResponse,
        "auth/status" AuthStatusRequest AuthStatusResponse,
        "auth/status_update" AuthStatusUpdateNotification,
        "fs/read_text_file" ReadTextFileRequest ReadTextFileResponse,
        "fs/write_text_file" WriteTextFileRequest WriteTextFileResponse,
        "mcp/message" MessageMcpRequest MessageMcpResponse,
        "mcp/message, as a notification" MessageMcpNotification,
        "session/set_mode" SetSessionModeRequest SetSessionModeResponse,
        "session/set_config_option" SetSessionConfigOptionRequest SetSessionConfigOptionResponse,
        "session/prompt" PromptRequest PromptResponse,
        "session/request_permission" RequestPermissionRequest RequestPermissionResponse,
        "elicitation/create" CreateElicitationRequest CreateElicitationResponse,
        "session/cancel" CancelNotification,
        "session/update" SessionNotification,
        "$/cancel_request" CancelRequestNotification,
    }
});

static DRAFT: LazyLock<Methods> = LazyLock::new(|| {
    methods! { v2::schema:
        "initialize" InitializeRequest InitializeResponse,
        "auth/login" LoginAuthRequest LoginAuthResponse,
        "auth/logout" LogoutAuthRequest LogoutAuthResponse,
        "session/new" NewSessionRequest NewSessionResponse,
        "session/resume" ResumeSessionRequest ResumeSessionResponse,
        "session/fork" ForkSessionRequest ForkSessionResponse,
        "session/list" ListSessionsRequest ListSessionsResponse,
        "session/delete" DeleteSessionRequest DeleteSessionResponse,
        "session/close" CloseSessionRequest CloseSessionResponse,
        "session/set_title" SetSessionTitleRequest SetSessionTitleResponse,
        "session/archive" ArchiveSessionRequest ArchiveSessionResponse,
        "session/unarchive" UnarchiveSessionRequest UnarchiveSessionResponse,
        "session/status" SessionStatusRequest SessionStatusResponse,
        "auth/status" AuthStatusRequest AuthStatusResponse,
        "auth/status_update" AuthStatusUpdateNotification,
        "mcp/message" MessageMcpRequest MessageMcpResponse,
        "mcp/message, as a notification" MessageMcpNotification,
        "session/set_config_option" SetSessionConfigOptionRequest SetSessionConfigOptionResponse,
        "session/prompt" PromptRequest PromptResponse,
        "session/request_permission" RequestPermissionRequest RequestPermissionResponse,
        "elicitation/create" CreateElicitationRequest CreateElicitationResponse,
        "session/cancel" CancelSessionNotification,
        "session/update" UpdateSessionNotification,
        "$/cancel_request" CancelRequestNotification,
    }
});

/// The only method that is a request and a notification.
const MCP_NOTIFICATION: &str = "mcp/message, as a notification";

static ERROR: LazyLock<Judge> = LazyLock::new(Judge::of::<v1::schema::Error>);

/// Validates a line. `method_of` returns the method of a response's request.
pub(crate) fn judge(version: Version, line: &Value, method_of: impl FnOnce(&Value) -> Option<String>) {
    assert_eq!(line["jsonrpc"], "2.0", "{line}");
    let methods = match version {
        Version::V1 => &METHODS,
        Version::Draft => &DRAFT,
    };
    if let Some(method) = line["method"].as_str() {
        if method.starts_with('_') {
            return;
        }
        let is_of_server = method == "mcp/message" && line.get("id").is_none();
        let method = if is_of_server { MCP_NOTIFICATION } else { method };
        let known = methods
            .get(method)
            .unwrap_or_else(|| panic!("{method} is not in the protocol"));
        known.params.judge(method, &line["params"]);
        assert_eq!(known.result.is_some(), line.get("id").is_some(), "{line}");
        return;
    }
    if let Some(error) = line.get("error") {
        return ERROR.judge("an error", error);
    }
    let method = method_of(&line["id"]).unwrap_or_else(|| panic!("nobody asked for this: {line}"));
    if method.starts_with('_') {
        // The schema does not have extensions.
        return;
    }
    let known = methods
        .get(method.as_str())
        .and_then(|known| known.result.as_ref());
    let known = known.unwrap_or_else(|| panic!("{method} has no answer"));
    known.judge(&format!("the answer to {method}"), &line["result"]);
}
