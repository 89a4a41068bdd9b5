//! What clients send, and what the CLI asks, as far as the host has to understand it.

use outrigger::protocol::outbound::InitializeReply;
use outrigger::protocol::shared::PermissionResult;
use outrigger::protocol::{Frame, RawJson};
use outrigger::{ElicitationResult, Prompt, SessionId, UserDialogResult};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::approval::{Approval, ApprovalKind, ApprovalState};
use crate::error::{HostError, Result};
use crate::event::Source;
use crate::log::NewEvent;
use crate::policy::HostPolicy;

/// Something that a client sent.
pub(crate) enum Sent {
    /// An event that waits for the owner of the session.
    Accept(NewEvent),
    /// A decision, or why the client has none.
    Decision {
        request: String,
        answer: Result<RawJson, String>,
    },
}

/// A request of a client.
#[derive(Deserialize)]
pub(crate) struct Request {
    pub(crate) request_id: String,
    pub(crate) request: RawJson,
}

impl Request {
    /// Its `subtype`, and its other fields.
    pub(crate) fn parts(&self) -> Result<(String, Map<String, Value>)> {
        let mut fields: Map<String, Value> = self.request.decode().map_err(invalid)?;
        match fields.remove("subtype") {
            Some(Value::String(subtype)) => Ok((subtype, fields)),
            _ => Err(invalid("the request has no `subtype`")),
        }
    }
}

fn invalid(error: impl std::fmt::Display) -> HostError {
    HostError::Invalid(error.to_string())
}

/// Whether the host takes a frame of a client as a decision; `None` if it does not take the frame.
#[cfg(feature = "fuzzing")]
pub fn is_decision(frame: RawJson) -> Option<bool> {
    sent(frame).ok().map(|sent| matches!(sent, Sent::Decision { .. }))
}

/// Reads what a client sent.
pub(crate) fn sent(frame: RawJson) -> Result<Sent> {
    #[derive(Deserialize)]
    struct Head {
        r#type: String,
        uuid: Option<Uuid>,
        request_id: Option<String>,
    }
    let head: Head = frame.decode().map_err(invalid)?;
    let id = match head.r#type.as_str() {
        "user" => {
            let id = head.uuid.unwrap_or_else(Uuid::new_v4);
            prompt(&frame, id)?;
            id
        }
        "control_request" => {
            let request = request(&frame)?;
            request.parts()?;
            id_of("control_request", &request.request_id)
        }
        "control_cancel_request" => {
            let request = head.request_id.filter(|id| !id.is_empty());
            id_of(
                "control_cancel_request",
                &request.ok_or_else(|| invalid("the frame has no `request_id`"))?,
            )
        }
        "control_response" => {
            let (request, answer) = response(&frame)?;
            return Ok(Sent::Decision { request, answer });
        }
        kind => {
            return Err(HostError::Invalid(format!(
                "clients send `user`, `control_request`, `control_cancel_request` and `control_response`, not `{kind}`"
            )));
        }
    };
    let mut event = NewEvent::new(Source::Client, head.r#type, frame);
    event.event_id = id;
    Ok(Sent::Accept(event))
}

/// The id of an event that has no `uuid`, so that it is known when it is sent again.
pub(crate) fn id_of(kind: &str, request: &str) -> Uuid {
    let hash = Sha256::digest(format!("{kind} {request}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

pub(crate) fn request(frame: &RawJson) -> Result<Request> {
    let request: Request = frame.decode().map_err(invalid)?;
    if request.request_id.is_empty() {
        return Err(invalid("the frame has no `request_id`"));
    }
    Ok(request)
}

/// The request that a client withdraws.
pub(crate) fn cancelled(frame: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    struct Cancel {
        request_id: String,
    }
    Some(frame.decode::<Cancel>().ok()?.request_id)
}

/// What clients may ask of the process of a session, beside `initialize`, `set_model` and `set_permission_mode`. It reads, or does what a prompt
/// could do; nothing in it gives the session more than the policy does.
pub(crate) const FOR_CLIENTS: &[&str] = &[
    "interrupt",
    "cancel_async_message",
    "stop_task",
    "rewind_files",
    "set_max_thinking_tokens",
    "background_tasks",
    "get_context_usage",
    "get_plan",
    "get_session_cost",
    "get_task_output",
    "list_models",
    "list_permission_rules",
    "mcp_status",
];

/// The fields of a client's `initialize` that say something, and are the operator's.
pub(crate) fn ignored(fields: &Map<String, Value>) -> Vec<&str> {
    let says_something = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    };
    fields
        .iter()
        .filter(|(_, value)| says_something(value))
        .map(|(name, _)| name.as_str())
        .collect()
}

/// What clients are told of a process that started. The account is the operator's.
pub(crate) fn initialized(reply: &InitializeReply) -> Option<RawJson> {
    let mut reply = serde_json::to_value(reply).ok()?;
    let fields = reply.as_object_mut()?;
    for hidden in ["account", "pid", "pending_permission_requests"] {
        fields.remove(hidden);
    }
    fields.insert("account".to_owned(), json!({}));
    Some(reply.into())
}

/// The reply to a request of a client.
pub(crate) fn reply(request: &str, result: Result<RawJson, String>) -> NewEvent {
    let response = match result {
        Ok(response) => json!({"subtype": "success", "request_id": request, "response": response}),
        Err(error) => json!({"subtype": "error", "request_id": request, "error": error}),
    };
    NewEvent::host(
        "control_response",
        json!({"type": "control_response", "response": response}),
    )
}

/// The prompt that a `user` frame of a client is.
pub(crate) fn prompt(payload: &RawJson, id: Uuid) -> Result<Prompt> {
    #[derive(Deserialize)]
    struct User {
        message: Message,
    }
    #[derive(Deserialize)]
    struct Message {
        content: Content,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Blocks(Vec<Value>),
    }
    let user: User = payload.decode().map_err(invalid)?;
    let prompt = match user.message.content {
        Content::Text(text) if !text.is_empty() => Prompt::text(text),
        Content::Blocks(blocks) if !blocks.is_empty() => {
            let mut prompt: Option<Prompt> = None;
            for block in blocks {
                let block = serde_json::from_value(block).map_err(invalid)?;
                prompt = Some(match prompt {
                    None => Prompt::of_block(block),
                    Some(prompt) => prompt.block(block),
                });
            }
            prompt.ok_or_else(|| invalid("the prompt is empty"))?
        }
        _ => return Err(invalid("the prompt is empty")),
    };
    // The CLI would read the files that a text names by `@`, wherever they are, and asks nobody.
    Ok(prompt.uuid(id).verbatim())
}

/// The approval that a request of the CLI opens; `None` if the request is for the host itself.
pub(crate) fn approval(session: &SessionId, frame: &Frame) -> Option<Approval> {
    #[derive(Deserialize)]
    struct Asked {
        request_id: String,
        request: Request,
    }
    #[derive(Deserialize)]
    struct Request {
        tool_name: Option<String>,
        tool_use_id: Option<String>,
        input: Option<RawJson>,
    }
    let kind = match frame.subtype()? {
        "can_use_tool" => ApprovalKind::Tool,
        "elicitation" => ApprovalKind::Form,
        "request_user_dialog" => ApprovalKind::Dialog,
        _ => return None,
    };
    let request = RawJson::from_text(frame.text()).ok()?;
    let asked: Asked = request.decode().ok()?;
    let tool = asked.request.tool_name;
    let kind = match tool.as_deref() {
        Some("AskUserQuestion") => ApprovalKind::Question,
        Some("ExitPlanMode") => ApprovalKind::Plan,
        _ => kind,
    };
    let input = asked
        .request
        .input
        .as_ref()
        .map_or_else(|| request.get(), RawJson::get);
    Some(Approval {
        id: Uuid::new_v4(),
        session_id: session.clone(),
        kind,
        state: ApprovalState::Pending,
        epoch: 0,
        request_id: asked.request_id,
        tool_name: tool,
        tool_use_id: asked.request.tool_use_id,
        input_hash: Sha256::digest(input)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        request,
        opened_at: 0,
        decided_by: None,
        decided_at: None,
        decision: None,
        supersedes: None,
    })
}

/// The state that an answer leads to, if it is an answer to this kind of question and the policy allows what it changes.
pub(crate) fn verdict(policy: &HostPolicy, kind: ApprovalKind, answer: &RawJson) -> Result<ApprovalState> {
    Ok(match kind {
        ApprovalKind::Tool | ApprovalKind::Plan | ApprovalKind::Question => {
            match answer.decode::<PermissionResult>().map_err(invalid)? {
                PermissionResult::Deny(_) => ApprovalState::Denied,
                PermissionResult::Allow(allow) => {
                    policy.check_changes(allow.updated_permissions.as_deref().unwrap_or_default())?;
                    match kind {
                        ApprovalKind::Question => ApprovalState::Answered,
                        _ => ApprovalState::Allowed,
                    }
                }
            }
        }
        ApprovalKind::Form => {
            answer.decode::<ElicitationResult>().map_err(invalid)?;
            ApprovalState::Answered
        }
        ApprovalKind::Dialog => {
            answer.decode::<UserDialogResult>().map_err(invalid)?;
            ApprovalState::Answered
        }
    })
}

/// Whether an answer has another input for a call than the one that was asked about. Answers to questions and plans are inputs, too.
pub(crate) fn changes_input(approval: &Approval, answer: &RawJson) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "updatedInput")]
        input: Option<RawJson>,
    }
    #[derive(Deserialize)]
    struct Asked {
        request: Call,
    }
    #[derive(Deserialize)]
    struct Call {
        input: RawJson,
    }
    if approval.kind != ApprovalKind::Tool {
        return false;
    }
    let Ok(Answer { input: Some(changed) }) = answer.decode() else {
        return false;
    };
    let Ok(Asked { request }) = approval.request.decode() else {
        return true;
    };
    // Clients write the same input in their own way.
    let value = |input: &RawJson| input.to_value().ok();
    changed.get() != request.input.get()
        && (value(&changed).is_none() || value(&changed) != value(&request.input))
}

/// The request of a client's `control_response`, and the answer, or why the client has none.
fn response(payload: &RawJson) -> Result<(String, Result<RawJson, String>)> {
    #[derive(Deserialize)]
    struct Frame {
        response: Response,
    }
    #[derive(Deserialize)]
    struct Response {
        request_id: String,
        response: Option<RawJson>,
        error: Option<String>,
    }
    let Frame { response } = payload.decode().map_err(invalid)?;
    match (response.response, response.error) {
        (_, Some(error)) => Ok((response.request_id, Err(error))),
        (Some(answer), None) => Ok((response.request_id, Ok(answer))),
        (None, None) => Err(invalid("the response has neither `response` nor `error`")),
    }
}

/// The answer for a client that failed: the question must not stay open, and nothing is allowed.
pub(crate) fn refusal(kind: ApprovalKind, error: String) -> RawJson {
    RawJson::from(match kind {
        ApprovalKind::Tool | ApprovalKind::Plan | ApprovalKind::Question => {
            json!({"behavior": "deny", "message": error})
        }
        ApprovalKind::Form => json!({"action": "decline"}),
        ApprovalKind::Dialog => json!({"behavior": "cancelled"}),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_client_that_fails_refuses_each_kind_of_question() {
        let failed = json!({"type": "control_response", "response": {"subtype": "error", "request_id": "r", "error": "no"}});
        let (request, answer) = response(&failed.into()).unwrap();
        assert_eq!((&*request, &answer), ("r", &Err("no".to_owned())));
        let policy = HostPolicy::new(outrigger::Agent::builder(), ["/"]);
        for (kind, state) in [
            (ApprovalKind::Tool, ApprovalState::Denied),
            (ApprovalKind::Plan, ApprovalState::Denied),
            (ApprovalKind::Question, ApprovalState::Denied),
            (ApprovalKind::Form, ApprovalState::Answered),
            (ApprovalKind::Dialog, ApprovalState::Answered),
        ] {
            let refusal = refusal(kind, "no".to_owned());
            assert_eq!(verdict(&policy, kind, &refusal).unwrap(), state, "{kind:?}");
            match kind {
                ApprovalKind::Form => assert_eq!(
                    refusal.decode::<ElicitationResult>().unwrap(),
                    ElicitationResult::Decline
                ),
                ApprovalKind::Dialog => {
                    assert_eq!(
                        refusal.decode::<UserDialogResult>().unwrap(),
                        UserDialogResult::Cancelled
                    );
                }
                _ => {}
            }
        }
        let empty =
            json!({"type": "control_response", "response": {"subtype": "success", "request_id": "r"}});
        response(&empty.into()).unwrap_err();
    }
}
