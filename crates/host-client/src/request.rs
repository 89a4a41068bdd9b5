//! What a program asks a host for.

use outrigger_json::RawJson;
use serde::Serialize;
use uuid::Uuid;

use crate::address::encoded;
use crate::document::ApprovalState;

/// What a new session is.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct NewSession {
    /// The id, a UUID; the host draws one if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The working directory on the host, which has to be where the operator lets sessions be.
    pub cwd: String,
    /// A title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The model, if the operator lets clients choose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The permission mode, if the operator lets clients choose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// A git worktree that is made for the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<NewWorktree>,
}

impl NewSession {
    /// A session in this directory of the host.
    pub fn new(cwd: impl Into<String>) -> Self {
        Self {
            id: None,
            cwd: cwd.into(),
            title: None,
            model: None,
            permission_mode: None,
            worktree: None,
        }
    }

    /// Sets the title.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

/// A git worktree for a session.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct NewWorktree {
    /// The branch; the host names one if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that the branch begins at; `HEAD` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// A fork of a session.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Fork {
    /// The id of the new session, a UUID; the client draws one if unset. The host knows a repetition by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The title of the new session; that of the other one if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// A token to be issued.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct NewToken {
    /// The name of the token. It is the `actor` of events.
    pub label: String,
    /// What the token allows: `read`, `send`, `approve`, `admin`. None includes another.
    pub scopes: Vec<String>,
    /// When the token expires, in milliseconds since 1970; never if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

impl NewToken {
    /// A token with these scopes that does not expire.
    pub fn new(label: impl Into<String>, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            label: label.into(),
            scopes: scopes.into_iter().map(Into::into).collect(),
            expires_at: None,
        }
    }
}

/// A prompt, with the id by which a host knows a repetition.
///
/// To be sure of a prompt over the end of a program, store [`uuid`](Self::uuid) before the send, and send the same text with it again.
#[derive(Debug, Clone)]
pub struct Prompt {
    uuid: Uuid,
    content: RawJson,
}

impl Prompt {
    /// A prompt of text, with a random id.
    pub fn text(text: impl Into<String>) -> Self {
        Self::content(RawJson::from(serde_json::Value::String(text.into())))
    }

    /// A prompt with this `content` of a `user` message: a string, or a list of content blocks.
    pub fn content(content: RawJson) -> Self {
        Self {
            uuid: Uuid::new_v4(),
            content,
        }
    }

    /// The same prompt with this id.
    pub fn with_uuid(mut self, uuid: Uuid) -> Self {
        self.uuid = uuid;
        self
    }

    /// The id.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The frame. It is the same text each time: a host compares it.
    pub(crate) fn frame(&self) -> Result<RawJson, serde_json::Error> {
        #[derive(Serialize)]
        struct User<'a> {
            r#type: &'a str,
            uuid: Uuid,
            message: Message<'a>,
        }
        #[derive(Serialize)]
        struct Message<'a> {
            role: &'a str,
            content: &'a RawJson,
        }
        RawJson::encode(&User {
            r#type: "user",
            uuid: self.uuid,
            message: Message {
                role: "user",
                content: &self.content,
            },
        })
    }
}

/// A webhook to be added.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct NewWebhook {
    /// Where the events are sent. The operator says which addresses are allowed.
    pub url: String,
    /// The events: `session_state_changed`, `approval_opened`, `approval_decided`, `approval_superseded`, `approval_expired`, `turn_result`.
    pub events: Vec<String>,
    /// Whether messages have parts of the conversation; not unless set.
    pub content: bool,
}

impl NewWebhook {
    /// A webhook that is told of these events, without parts of the conversation.
    pub fn new(url: impl Into<String>, events: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            url: url.into(),
            events: events.into_iter().map(Into::into).collect(),
            content: false,
        }
    }
}

/// A schedule to be added.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct NewSchedule {
    /// The session that gets the prompt.
    pub session_id: String,
    /// The times, as a cron expression of five fields, or a nickname such as `@daily`.
    pub cron: String,
    /// The IANA name of the time zone of the times, such as `Europe/Berlin`.
    pub time_zone: String,
    /// The text of the prompt.
    pub prompt: String,
    /// What becomes of times that passed while the host was down: `skip`, which holds if unset, or `latest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
}

impl NewSchedule {
    /// A prompt that is sent to a session at these times. Times that are missed are skipped.
    pub fn new(
        session_id: impl Into<String>,
        cron: impl Into<String>,
        time_zone: impl Into<String>,
        prompt: impl Into<String>,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            cron: cron.into(),
            time_zone: time_zone.into(),
            prompt: prompt.into(),
            missed: None,
        }
    }
}

/// Which approvals are wanted; all by default.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ApprovalFilter {
    /// Only approvals in this state.
    pub state: Option<ApprovalState>,
    /// Only approvals of this session.
    pub session: Option<String>,
    /// Only approvals after this number: `next` of the page before.
    pub after: Option<u64>,
    /// How many approvals at most; as many as the host gives at once if unset.
    pub limit: Option<usize>,
}

impl ApprovalFilter {
    /// Approvals that nobody has decided.
    pub fn pending() -> Self {
        Self {
            state: Some(ApprovalState::Pending),
            ..Self::default()
        }
    }

    /// Asks for the approvals of this session only.
    pub fn of_session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    pub(crate) fn query(&self) -> String {
        let limit = self.limit.map(|limit| limit.to_string());
        let after = self.after.map(|after| after.to_string());
        query([
            ("state", self.state.as_ref().map(ApprovalState::as_str)),
            ("session", self.session.as_deref()),
            ("after", after.as_deref()),
            ("limit", limit.as_deref()),
        ])
    }
}

/// Where a diff begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiffFrom {
    /// Where the last turn began.
    Turn,
    /// Where the session began.
    Start,
}

impl DiffFrom {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Start => "start",
        }
    }
}

/// The values that are there, as a query with its question mark; empty if none is.
pub(crate) fn query<'a>(values: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut text = String::new();
    for (name, value) in values {
        if let Some(value) = value {
            text.push(if text.is_empty() { '?' } else { '&' });
            text.push_str(&format!("{name}={}", encoded(value)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_query_has_what_is_there() {
        assert_eq!(ApprovalFilter::default().query(), "");
        let filter = ApprovalFilter {
            limit: Some(3),
            ..ApprovalFilter::pending().of_session("a b&c")
        };
        assert_eq!(filter.query(), "?state=pending&session=a%20b%26c&limit=3");
    }

    #[test]
    fn a_prompt_is_the_same_text_each_time() {
        let prompt = Prompt::text("Say \"hi\".").with_uuid(Uuid::nil());
        let frame = prompt.frame().unwrap();
        assert_eq!(
            frame.get(),
            r#"{"type":"user","uuid":"00000000-0000-0000-0000-000000000000","message":{"role":"user","content":"Say \"hi\"."}}"#
        );
        assert_eq!(prompt.frame().unwrap(), frame);
    }
}
