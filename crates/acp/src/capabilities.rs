//! What this agent says of itself. It says so at once, from what is written here: no process is asked.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema as acp;
use serde_json::json;

/// The answer to `initialize`.
pub(crate) fn answer(client: &acp::ClientCapabilities) -> acp::InitializeResponse {
    let capabilities = acp::AgentCapabilities::new()
        .load_session(true)
        .auth(acp::AgentAuthCapabilities::new().logout(acp::LogoutCapabilities::new()))
        .prompt_capabilities(acp::PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(acp::McpCapabilities::new().http(true).sse(true).acp(true))
        .session_capabilities(
            acp::SessionCapabilities::new()
                .list(acp::SessionListCapabilities::new())
                .delete(acp::SessionDeleteCapabilities::new())
                .resume(acp::SessionResumeCapabilities::new())
                .fork(acp::SessionForkCapabilities::new())
                .close(acp::SessionCloseCapabilities::new())
                .archive(acp::SessionArchiveCapabilities::new())
                .status(acp::SessionStatusCapabilities::new())
                .title(acp::SessionTitleCapabilities::new())
                .additional_directories(acp::SessionAdditionalDirectoriesCapabilities::new()),
        )
        .meta(
            json!({ "claudeCode": {
                "promptQueueing": true,
                "delivery": ["queue", "steer", "now"],
                "rewind": { "files": true, "conversation": true, "dryRun": true },
                "forkUpToMessageId": true,
            } })
            .as_object()
            .cloned()
            .unwrap_or_default(),
        );
    let this = acp::Implementation::new("outrigger-acp", env!("CARGO_PKG_VERSION"))
        .title("Claude Code (Outrigger)".to_owned());
    acp::InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(this)
        .auth_methods(sign_ins(client))
}

/// The ways to sign in: the CLI's own, in a terminal. The editor starts this program for that as it started it before, with these
/// arguments behind its own.
fn sign_ins(client: &acp::ClientCapabilities) -> Vec<acp::AuthMethod> {
    if !client.auth.terminal {
        return Vec::new();
    }
    let method = |id: &str, name: &str, what: &str, how: &str| {
        let arguments = ["--cli", "auth", "login", how].map(str::to_owned).to_vec();
        acp::AuthMethod::Terminal(
            acp::AuthMethodTerminal::new(id.to_owned(), name)
                .description(what.to_owned())
                .args(arguments),
        )
    };
    vec![
        method(
            "claude-ai-login",
            "Claude Subscription",
            "Use a Claude subscription",
            "--claudeai",
        ),
        method(
            "console-login",
            "Anthropic Console",
            "Use the Anthropic Console, which bills what is used",
            "--console",
        ),
    ]
}
