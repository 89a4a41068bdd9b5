//! The answer to `initialize`. It is constant, so that it needs no process.

mod host_capabilities;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use serde_json::json;

pub(crate) use self::host_capabilities::{answer_on_host, draft_answer_on_host};

const NAME: &str = "outrigger-acp";
const TITLE: &str = "Claude Code (Outrigger)";

/// Capabilities of this agent that the protocol does not have.
fn ours(has_files: bool) -> acp::Meta {
    json!({ "claudeCode": {
        "promptQueueing": true,
        "delivery": ["queue", "steer", "now"],
        "rewind": { "files": true, "conversation": true, "dryRun": true },
        "forkUpToMessageId": true,
        "replay": { "limit": true, "history": true },
        "unsavedBuffers": has_files,
        "reviewEdits": has_files,
        "mcpServers": { "set": true, "status": true, "reconnect": true, "toggle": true },
        "options": true,
        "emitRawSDKMessages": true,
    } })
    .as_object()
    .cloned()
    .unwrap_or_default()
}

/// The answer to `initialize` in the draft of version 2. It has no SSE servers; `session/list`, `session/resume` and `session/close` are
/// no capabilities there, as every agent has them.
pub(crate) fn draft_answer(client: &acp::ClientCapabilities) -> draft::InitializeResponse {
    let modes = draft::SessionSystemPromptModeCapabilities::new()
        .override_(draft::SessionSystemPromptOverrideCapabilities::new());
    let session = draft::SessionCapabilities::new()
        .prompt(
            draft::PromptCapabilities::new()
                .image(draft::PromptImageCapabilities::new())
                .embedded_context(draft::PromptEmbeddedContextCapabilities::new()),
        )
        .mcp(
            draft::McpCapabilities::new()
                .stdio(draft::McpStdioCapabilities::new())
                .http(draft::McpHttpCapabilities::new())
                .acp(draft::McpAcpCapabilities::new()),
        )
        .delete(draft::SessionDeleteCapabilities::new())
        .fork(draft::SessionForkCapabilities::new())
        .archive(draft::SessionArchiveCapabilities::new())
        .status(draft::SessionStatusCapabilities::new())
        .title(draft::SessionTitleCapabilities::new())
        .additional_directories(draft::SessionAdditionalDirectoriesCapabilities::new())
        .system_prompt(draft::SessionSystemPromptCapabilities::new().mode(modes));
    let this = draft::Implementation::new(NAME, env!("CARGO_PKG_VERSION")).title(TITLE.to_owned());
    draft::InitializeResponse::new(ProtocolVersion::V2, this)
        .capabilities(
            draft::AgentCapabilities::new()
                .session(session)
                .auth(draft::AgentAuthCapabilities::new().status(draft::AuthStatusCapabilities::new()))
                // The draft has no request for a file of the editor.
                .meta(ours(false)),
        )
        .auth_methods(draft_sign_ins(client))
}

/// The ways to sign in, in types of the draft.
pub(crate) fn draft_sign_ins(client: &acp::ClientCapabilities) -> Vec<draft::AuthMethod> {
    let methods = sign_ins(client).into_iter().filter_map(|method| match method {
        acp::AuthMethod::Terminal(method) => Some(draft::AuthMethod::Terminal(
            draft::AuthMethodTerminal::new(method.id.0, method.name)
                .description(method.description)
                .args(method.args)
                .meta(method.meta),
        )),
        _ => None,
    });
    methods.collect()
}

/// The answer to `initialize`.
pub(crate) fn answer(client: &acp::ClientCapabilities) -> acp::InitializeResponse {
    let capabilities = acp::AgentCapabilities::new()
        .load_session(true)
        .auth(
            acp::AgentAuthCapabilities::new()
                .logout(acp::LogoutCapabilities::new())
                .status(acp::AuthStatusCapabilities::new()),
        )
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
                .additional_directories(acp::SessionAdditionalDirectoriesCapabilities::new())
                .system_prompt(
                    acp::SessionSystemPromptCapabilities::new().mode(
                        acp::SessionSystemPromptModeCapabilities::new()
                            .override_(acp::SessionSystemPromptOverrideCapabilities::new()),
                    ),
                ),
        )
        .meta(ours(true));
    let this = acp::Implementation::new(NAME, env!("CARGO_PKG_VERSION")).title(TITLE.to_owned());
    acp::InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(this)
        .auth_methods(sign_ins(client))
        // The TypeScript adapter has it at this place.
        .meta(json!({ "steering": { "supported": true } }).as_object().cloned())
}

/// The ways to sign in: the CLI's own, in a terminal. For it the editor starts this program once more, with these arguments behind the
/// usual ones.
///
/// Editors older than the capability `auth.terminal` send `_meta.terminal-auth`; they get the whole command in `_meta`.
pub(crate) fn sign_ins(client: &acp::ClientCapabilities) -> Vec<acp::AuthMethod> {
    let has_meta = client
        .meta
        .as_ref()
        .and_then(|meta| meta.get("terminal-auth"))
        .and_then(serde_json::Value::as_bool)
        == Some(true);
    if !client.auth.terminal && !has_meta {
        return Vec::new();
    }
    let method = |id: &str, name: &str, what: &str, how: &str| {
        let arguments = ["--cli", "auth", "login", how].map(str::to_owned).to_vec();
        let whole = has_meta.then(|| command(&arguments)).flatten();
        let meta = whole.map(|(command, arguments)| {
            let mut whole = json!({ "command": command, "args": arguments, "label": name });
            // The editor may start the command in another environment than this process, such as one without the CLI that came along.
            if let Ok(cli) = std::env::var("CLAUDE_CODE_EXECUTABLE") {
                whole["env"] = json!({ "CLAUDE_CODE_EXECUTABLE": cli });
            }
            let mut meta = acp::Meta::new();
            meta.insert("terminal-auth".to_owned(), whole);
            meta
        });
        acp::AuthMethod::Terminal(
            acp::AuthMethodTerminal::new(id.to_owned(), name)
                .description(what.to_owned())
                .args(arguments)
                .meta(meta),
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

/// The command line of this program, with these arguments behind it.
fn command(more: &[String]) -> Option<(String, Vec<String>)> {
    let program = std::env::current_exe().ok()?.to_str()?.to_owned();
    let own = std::env::args_os().skip(1);
    let own = own
        .map(|argument| argument.into_string().ok())
        .collect::<Option<Vec<_>>>()?;
    Some((program, own.into_iter().chain(more.iter().cloned()).collect()))
}
