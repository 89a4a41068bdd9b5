//! Converts between the types of version 1, which this crate uses, and those of the draft of version 2.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v2::schema as draft;
use agent_client_protocol::{Error, ErrorCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{bad, internal};

/// Converts through JSON that is alike in both versions.
fn same<A: Serialize, B: DeserializeOwned>(value: &A) -> Result<B, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(value)?)
}

/// The content of a prompt.
///
/// # Errors
/// When version 1 does not have the kind of a block.
pub(crate) fn prompt_blocks(blocks: Vec<draft::ContentBlock>) -> Result<Vec<acp::ContentBlock>, Error> {
    let blocks = blocks.into_iter().enumerate();
    blocks
        .map(|(position, block)| {
            let kind = "blocks of this type are not known";
            content(block).ok_or_else(|| bad(&format!("prompt[{position}]"), kind))
        })
        .collect()
}

/// Not through JSON, since the data may be long.
fn content(block: draft::ContentBlock) -> Option<acp::ContentBlock> {
    Some(match block {
        draft::ContentBlock::Text(text) => acp::ContentBlock::Text(acp::TextContent::new(text.text)),
        draft::ContentBlock::Image(image) => acp::ContentBlock::Image(
            acp::ImageContent::new(image.data, image.mime_type.0.to_string()).uri(image.uri),
        ),
        draft::ContentBlock::Audio(audio) => {
            acp::ContentBlock::Audio(acp::AudioContent::new(audio.data, audio.mime_type.0.to_string()))
        }
        draft::ContentBlock::ResourceLink(link) => {
            acp::ContentBlock::ResourceLink(acp::ResourceLink::new(link.name, link.uri))
        }
        draft::ContentBlock::Resource(resource) => {
            acp::ContentBlock::Resource(acp::EmbeddedResource::new(match resource.resource {
                draft::EmbeddedResourceResource::TextResourceContents(text) => {
                    let kind = text.mime_type.map(|kind| kind.0.to_string());
                    acp::EmbeddedResourceResource::TextResourceContents(
                        acp::TextResourceContents::new(text.text, text.uri).mime_type(kind),
                    )
                }
                draft::EmbeddedResourceResource::BlobResourceContents(blob) => {
                    let kind = blob.mime_type.map(|kind| kind.0.to_string());
                    acp::EmbeddedResourceResource::BlobResourceContents(
                        acp::BlobResourceContents::new(blob.blob, blob.uri).mime_type(kind),
                    )
                }
                _ => return None,
            }))
        }
        _ => return None,
    })
}

/// The MCP servers of the editor.
///
/// # Errors
/// When the draft does not have the kind of a server.
pub(crate) fn servers(servers: &[draft::McpServer]) -> Result<Vec<acp::McpServer>, Error> {
    let servers = servers.iter().enumerate();
    servers
        .map(|(position, server)| {
            let parameter = format!("mcpServers[{position}]");
            match server {
                draft::McpServer::Stdio(_) | draft::McpServer::Http(_) | draft::McpServer::Acp(_) => {
                    same(server).map_err(|error| bad(&parameter, error))
                }
                _ => Err(bad(&parameter, "servers of this kind can't be reached")),
            }
        })
        .collect()
}

///
/// # Errors
/// When version 1 lacks a part of it.
pub(crate) fn system_prompt(
    prompt: Option<&draft::SystemPrompt>,
) -> Result<Option<acp::SystemPrompt>, Error> {
    let prompt = prompt.map(same).transpose();
    prompt.map_err(|error| bad("systemPrompt", error))
}

/// The value for an option.
///
/// # Errors
/// When the kind of the value is unknown.
pub(crate) fn chosen(value: draft::SessionConfigOptionValue) -> Result<acp::SessionConfigOptionValue, Error> {
    match value {
        draft::SessionConfigOptionValue::Id { value } => Ok(acp::SessionConfigOptionValue::ValueId {
            value: acp::SessionConfigValueId::new(value.0),
        }),
        draft::SessionConfigOptionValue::Boolean { value } => {
            Ok(acp::SessionConfigOptionValue::Boolean { value })
        }
        _ => Err(bad("value", "values of this type are not known")),
    }
}

/// The config options, whose ids have other names.
pub(crate) fn options(options: &[acp::SessionConfigOption]) -> Vec<draft::SessionConfigOption> {
    let options = options.iter().filter_map(|option| {
        let mut json = serde_json::to_value(option).ok()?;
        rename(&mut json, "id", "configId");
        for group in json
            .get_mut("options")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            rename(group, "group", "groupId");
        }
        serde_json::from_value(json)
            .inspect_err(
                |error| tracing::warn!(%error, id = %option.id.0, "an option can't be converted to this version"),
            )
            .ok()
    });
    options.collect()
}

fn rename(object: &mut Value, from: &str, to: &str) {
    if let Some(fields) = object.as_object_mut()
        && let Some(value) = fields.remove(from)
    {
        fields.insert(to.to_owned(), value);
    }
}

/// The editor's capabilities.
pub(crate) fn capabilities(told: draft::ClientCapabilities) -> acp::ClientCapabilities {
    let mut client = acp::ClientCapabilities::new().meta(told.meta);
    client.auth.terminal = told.auth.is_some_and(|auth| auth.terminal.is_some());
    client.elicitation = told.elicitation.map(|told| {
        let form = told.form.map(|_| acp::ElicitationFormCapabilities::new());
        let url = told.url.map(|_| acp::ElicitationUrlCapabilities::new());
        acp::ElicitationCapabilities::new().form(form).url(url)
    });
    client
}

pub(crate) fn permission_options(options: Vec<acp::PermissionOption>) -> Vec<draft::PermissionOption> {
    let options = options.into_iter().map(|option| {
        let kind = match option.kind {
            acp::PermissionOptionKind::AllowOnce => draft::PermissionOptionKind::AllowOnce,
            acp::PermissionOptionKind::AllowAlways => draft::PermissionOptionKind::AllowAlways,
            acp::PermissionOptionKind::RejectAlways => draft::PermissionOptionKind::RejectAlways,
            _ => draft::PermissionOptionKind::RejectOnce,
        };
        draft::PermissionOption::new(option.option_id.0, option.name, kind).meta(option.meta)
    });
    options.collect()
}

/// The answer to a permission request. An unknown outcome counts as cancelled.
pub(crate) fn permission(answer: draft::RequestPermissionResponse) -> acp::RequestPermissionResponse {
    acp::RequestPermissionResponse::new(match answer.outcome {
        draft::RequestPermissionOutcome::Selected(selected) => {
            acp::RequestPermissionOutcome::Selected(acp::SelectedPermissionOutcome::new(selected.option_id.0))
        }
        _ => acp::RequestPermissionOutcome::Cancelled,
    })
}

/// A form or a URL.
///
/// # Errors
/// When the draft has no counterpart.
pub(crate) fn elicitation(
    question: &acp::CreateElicitationRequest,
) -> Result<draft::CreateElicitationRequest, Error> {
    same(question).map_err(|error| internal(format!("the question can't be put in this version: {error}")))
}

/// The response.
///
/// # Errors
/// When version 1 has no counterpart.
pub(crate) fn elicited(
    answer: &draft::CreateElicitationResponse,
) -> Result<acp::CreateElicitationResponse, Error> {
    same(answer).map_err(|error| {
        Error::new(
            ErrorCode::INVALID_PARAMS,
            format!("the answer can't be read: {error}"),
        )
    })
}

pub(crate) fn sessions(page: acp::ListSessionsResponse) -> draft::ListSessionsResponse {
    let sessions = page.sessions.into_iter().map(|info| {
        draft::SessionInfo::new(draft::SessionId::new(info.session_id.0), info.cwd)
            .additional_directories(info.additional_directories)
            .title(info.title)
            .updated_at(info.updated_at)
            .archived(info.archived)
            .meta(info.meta)
    });
    draft::ListSessionsResponse::new(sessions.collect())
        .next_cursor(page.next_cursor.map(draft::SessionListCursor::new))
        .meta(page.meta)
}

pub(crate) fn reason(reason: acp::StopReason) -> draft::StopReason {
    match reason {
        acp::StopReason::MaxTokens => draft::StopReason::MaxTokens,
        acp::StopReason::MaxTurnRequests => draft::StopReason::MaxTurnRequests,
        acp::StopReason::Refusal => draft::StopReason::Refusal,
        acp::StopReason::Cancelled => draft::StopReason::Cancelled,
        _ => draft::StopReason::EndTurn,
    }
}

pub(crate) fn usage(usage: &acp::Usage) -> draft::Usage {
    draft::Usage::new(usage.total_tokens, usage.input_tokens, usage.output_tokens)
        .thought_tokens(usage.thought_tokens)
        .cached_read_tokens(usage.cached_read_tokens)
        .cached_write_tokens(usage.cached_write_tokens)
}

/// A request to an MCP server in the editor.
pub(crate) fn mcp_request(request: acp::MessageMcpRequest) -> draft::MessageMcpRequest {
    draft::MessageMcpRequest::new(request.server_id.0, request.request_id.0, request.method)
        .params(request.params)
        .meta(request.meta)
}

/// The response.
///
/// # Errors
/// When version 1 has no counterpart.
pub(crate) fn mcp_response(answer: &draft::MessageMcpResponse) -> Result<acp::MessageMcpResponse, Error> {
    same(answer).map_err(|error| internal(format!("the server's answer can't be read: {error}")))
}

/// A notification of an MCP server.
pub(crate) fn mcp_notification(told: draft::MessageMcpNotification) -> acp::MessageMcpNotification {
    acp::MessageMcpNotification::new(told.server_id.0, told.request_id.0, told.method)
        .params(told.params)
        .meta(told.meta)
}

pub(crate) fn auth_status(told: acp::AuthStatusResponse) -> draft::AuthStatusResponse {
    let accounts = told.accounts.into_iter().map(|account| {
        draft::AuthAccount::new(account.label)
            .active(account.active)
            .email(account.email)
            .organization(account.organization)
    });
    draft::AuthStatusResponse::new(match told.state {
        acp::AuthState::Authenticated => draft::AuthState::Authenticated,
        acp::AuthState::Unauthenticated => draft::AuthState::Unauthenticated,
        acp::AuthState::NotRequired => draft::AuthState::NotRequired,
        _ => draft::AuthState::Unknown,
    })
    .accounts(accounts.collect())
    .meta(told.meta)
}

pub(crate) fn filter(filter: draft::SessionArchiveFilter) -> Option<acp::SessionArchiveFilter> {
    same(&filter).ok()
}

pub(crate) fn status(told: &acp::SessionStatusResponse) -> draft::SessionStatusResponse {
    draft::SessionStatusResponse::new(match told.status {
        acp::SessionStatus::Open => draft::SessionStatus::Open,
        _ => draft::SessionStatus::Saved,
    })
}

#[cfg(test)]
mod tests;
