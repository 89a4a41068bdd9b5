//! What clients send, and what the CLI asks, as far as the host has to understand it.

use outrigger::protocol::shared::PermissionResult;
use outrigger::protocol::{Frame, RawJson};
use outrigger::{ElicitationResult, Prompt, SessionId, UserDialogResult};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::approval::{Approval, ApprovalKind, ApprovalState};
use crate::error::{HostError, Result};
use crate::policy::HostPolicy;

/// The `type` and the `uuid` of what a client sends.
#[derive(Deserialize)]
pub(crate) struct Head {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) uuid: Option<Uuid>,
}

fn invalid(error: impl std::fmt::Display) -> HostError {
    HostError::Invalid(error.to_string())
}

pub(crate) fn head(payload: &RawJson) -> Result<Head> {
    payload.decode().map_err(invalid)
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
    Ok(prompt.uuid(id))
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

/// The request of a client's `control_response`, and the answer, or why the client has none.
pub(crate) fn response(payload: &RawJson) -> Result<(String, Result<RawJson, String>)> {
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
