//! The answer to `initialize` of an agent whose sessions live on a host: what is the operator's choice is not offered.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use serde_json::json;

use super::{NAME, TITLE};

fn ours() -> acp::Meta {
    json!({ "claudeCode": { "promptQueueing": true, "delivery": ["queue"], "emitRawSDKMessages": true } })
        .as_object()
        .cloned()
        .unwrap_or_default()
}

/// The answer in version 1.
pub(crate) fn answer_on_host() -> acp::InitializeResponse {
    let session = acp::SessionCapabilities::new()
        .list(acp::SessionListCapabilities::new())
        .delete(acp::SessionDeleteCapabilities::new())
        .resume(acp::SessionResumeCapabilities::new())
        .fork(acp::SessionForkCapabilities::new())
        .close(acp::SessionCloseCapabilities::new())
        .status(acp::SessionStatusCapabilities::new())
        .title(acp::SessionTitleCapabilities::new());
    let capabilities = acp::AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(acp::PromptCapabilities::new().image(true).embedded_context(true))
        .session_capabilities(session)
        .meta(ours());
    let this = acp::Implementation::new(NAME, env!("CARGO_PKG_VERSION")).title(TITLE.to_owned());
    acp::InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(this)
}

/// The answer in the draft of version 2.
pub(crate) fn draft_answer_on_host() -> draft::InitializeResponse {
    let session = draft::SessionCapabilities::new()
        .prompt(
            draft::PromptCapabilities::new()
                .image(draft::PromptImageCapabilities::new())
                .embedded_context(draft::PromptEmbeddedContextCapabilities::new()),
        )
        .delete(draft::SessionDeleteCapabilities::new())
        .fork(draft::SessionForkCapabilities::new())
        .status(draft::SessionStatusCapabilities::new())
        .title(draft::SessionTitleCapabilities::new());
    let this = draft::Implementation::new(NAME, env!("CARGO_PKG_VERSION")).title(TITLE.to_owned());
    draft::InitializeResponse::new(ProtocolVersion::V2, this)
        .capabilities(draft::AgentCapabilities::new().session(session).meta(ours()))
}
