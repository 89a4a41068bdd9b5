//! What a host answers.

use outrigger_json::{RawJson, open_enum, walk};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

open_enum! {
    /// What a session does.
    pub enum SessionState {
        /// A process is being started.
        Starting = "starting",
        /// The session waits for a prompt.
        Idle = "idle",
        /// A turn runs.
        Running = "running",
        /// A turn waits for a person.
        RequiresAction = "requires_action",
        /// The last turn was cut off: its process, or the host, ended.
        Interrupted = "interrupted",
        /// The session was archived: it takes no prompts.
        Ended = "ended",
        /// The session's process could not be started. The next prompt tries again.
        Failed = "failed",
    }
}

impl Default for SessionState {
    /// That of a session of which it was not told.
    fn default() -> Self {
        Self::from("")
    }
}

open_enum! {
    /// Who wrote an event.
    pub enum EventSource {
        /// A client: the payload is what it sent.
        Client = "client",
        /// The CLI: the payload is its frame.
        Worker = "worker",
        /// The host itself.
        Host = "host",
    }
}

open_enum! {
    /// What a session asks for.
    pub enum ApprovalKind {
        /// A tool call may run.
        Tool = "tool",
        /// The model asks the user (`AskUserQuestion`).
        Question = "question",
        /// A plan may be carried out (`ExitPlanMode`).
        Plan = "plan",
        /// An MCP server asks for values (`elicitation`).
        Form = "form",
        /// The CLI shows a dialog (`request_user_dialog`).
        Dialog = "dialog",
    }
}

open_enum! {
    /// Where an approval stands. Only `pending` ever changes.
    pub enum ApprovalState {
        /// Nobody has decided yet.
        Pending = "pending",
        /// The call may run.
        Allowed = "allowed",
        /// The call was denied.
        Denied = "denied",
        /// The question, the form or the dialog was answered.
        Answered = "answered",
        /// Nobody decided in time.
        Expired = "expired",
        /// The process that asked has ended, or it withdrew the question.
        Superseded = "superseded",
    }
}

open_enum! {
    /// What became of a frame that was sent.
    pub enum Effect {
        /// The host stored a new event.
        Stored = "stored",
        /// The session had the event already.
        Repeated = "repeated",
        /// The event is a decision, and somebody else decided first.
        Decided = "decided",
    }
}

/// Declares documents of a host: the fields that they must have, those that they may have, and the text that they were read from.
macro_rules! documents {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            $( $(#[$field_doc:meta])* $field:ident: $ty:ty, )*
        } maybe {
            $( $(#[$maybe_doc:meta])* $maybe:ident: $maybe_ty:ty, )*
        }
    )+) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $ty, )*
            $( $(#[$maybe_doc])* pub $maybe: $maybe_ty, )*
            /// The document as it came, with what this version does not know.
            pub raw: RawJson,
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(Deserialize)]
                struct Fields {
                    $( $field: $ty, )*
                    $( #[serde(default)] $maybe: $maybe_ty, )*
                }
                let raw = RawJson::deserialize(deserializer)?;
                let fields: Fields = raw.decode().map_err(de::Error::custom)?;
                Ok(Self {
                    $( $field: fields.$field, )*
                    $( $maybe: fields.$maybe, )*
                    raw,
                })
            }
        }

        /// Writes the document as it came.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.raw.serialize(serializer)
            }
        }
    )+ };
}

documents! {
    /// A session of a host. In the answer to a change, a token without the scope `read` is told the id alone.
    Session {
        /// The id, which is the CLI's id, too.
        id: String,
    } maybe {
        /// What the session does; an empty text if the host did not send it.
        state: SessionState,
        /// The working directory, on the host; empty if it was not told.
        cwd: String,
        /// The title.
        title: Option<String>,
        /// The model that a client asked for.
        model: Option<String>,
        /// The permission mode that a client asked for.
        permission_mode: Option<String>,
        /// The newest process, counted from 1.
        epoch: u64,
        /// The sequence number of the newest event.
        head_seq: u64,
        /// Events up to this sequence number were removed.
        trimmed_seq: u64,
        /// Approvals that are pending.
        pending_approvals: u64,
        /// When the session was created, in milliseconds since 1970.
        created_at: u64,
        /// Who created the session.
        created_by: Option<String>,
    }

    /// A page of sessions, in the order of their ids.
    SessionPage {
        /// The sessions.
        sessions: Vec<Session>,
    } maybe {
        /// The id after which the next page begins; `None` on the last page.
        next: Option<String>,
    }

    /// A durable event of a session.
    Envelope {
        /// The id. Of a prompt it is the prompt's `uuid`.
        event_id: String,
        /// The number in the session, from 1 without gaps. It is the cursor of readers.
        sequence_num: u64,
        /// Who wrote the event.
        source: EventSource,
        /// The event itself. What the CLI wrote is its frame, byte for byte.
        payload: RawJson,
    } maybe {
        /// When the event became durable (RFC 3339).
        created_at: String,
        /// The label of the token that it was sent with.
        actor: Option<String>,
    }

    /// A page of the durable events of a session.
    EventPage {
        /// The events, the oldest first.
        events: Vec<Envelope>,
        /// The sequence number of the newest event of the session.
        head_seq: u64,
    } maybe {
        /// The sequence number of the oldest event that is kept.
        first_seq: u64,
        /// The sequence number after which the next page begins: how far the host has read.
        cursor: u64,
    }

    /// What became of a frame that was sent. It is durable.
    Accepted {
        /// The id of the event.
        event_id: String,
        /// The sequence number of the event.
        sequence_num: u64,
        /// What the frame does.
        effect: Effect,
    } maybe {
        /// Who decided first, if somebody did.
        decided_by: Option<String>,
    }

    /// A question of a session to a person. In the answer to a decision, a token without the scope `read` is not told what was asked.
    Approval {
        /// The id.
        id: String,
        /// The session that asks.
        session_id: String,
        /// What the approval is for.
        kind: ApprovalKind,
        /// The state of the approval.
        state: ApprovalState,
    } maybe {
        /// The CLI's request (`control_request`), byte for byte; `null` if it was not told.
        request: RawJson,
        /// The place of the approval among all of the host.
        number: u64,
        /// Whether the approval outlives the process that asked, and the host.
        deferred: bool,
        /// The process that asked, counted from 1 in the session.
        epoch: u64,
        /// The `request_id` of the CLI's request.
        request_id: String,
        /// The tool, if the approval is about a call.
        tool_name: Option<String>,
        /// The id of the call.
        tool_use_id: Option<String>,
        /// When the approval was opened, in milliseconds since 1970.
        opened_at: u64,
        /// Who decided.
        decided_by: Option<String>,
        /// When the approval left `pending`, in milliseconds since 1970.
        decided_at: Option<u64>,
        /// What was decided: the answer that the CLI gets.
        decision: Option<RawJson>,
        /// The superseded approval that was about the same call.
        supersedes: Option<String>,
    }

    /// A page of approvals, the oldest first.
    ApprovalPage {
        /// The approvals.
        approvals: Vec<Approval>,
    } maybe {
        /// The number after which the next page begins; `None` on the last page.
        next: Option<u64>,
    }

    /// What a session does, on the stream of all sessions.
    SessionHint {
        /// The session.
        session_id: String,
        /// What the session does.
        state: SessionState,
    } maybe {
        /// The sequence number of its newest event; 0 if the session was deleted.
        head_seq: u64,
        /// How many approvals of the session are pending.
        pending_approvals: u64,
    }

    /// What has changed in the working directory of a session.
    Diff {
        /// A unified diff, new files included.
        diff: String,
    } maybe {
        /// Whether the diff was cut at the host's limit.
        truncated: bool,
        /// Whether files could not be read, and are missing.
        incomplete: bool,
    }

    /// A session that the CLI left on the machine of the host.
    AdoptableSession {
        /// The id.
        id: String,
    } maybe {
        /// The working directory.
        cwd: Option<String>,
        /// The title.
        title: Option<String>,
        /// When the transcript was last written to, in milliseconds since 1970.
        modified_at: Option<u64>,
        /// The process that drives it. While there is one, the session cannot be adopted.
        driven_by: Option<String>,
    }

    /// What is known of a token. The token itself is known to its owner alone.
    TokenRecord {
        /// The id.
        id: String,
    } maybe {
        /// The name of the token. It is the `actor` of events.
        label: String,
        /// What the token allows: `read`, `send`, `approve`, `admin`.
        scopes: Vec<String>,
        /// When the token expires, in milliseconds since 1970.
        expires_at: Option<u64>,
        /// Whether the token was revoked.
        revoked: bool,
    }

    /// Who is told of the events of all sessions by a POST.
    Webhook {
        /// The id.
        id: String,
        /// Where the events are sent.
        url: String,
    } maybe {
        /// The events that are sent, such as `approval_opened`.
        events: Vec<String>,
        /// Whether messages have parts of the conversation.
        content: bool,
        /// Whether the webhook is on. The host disables a webhook whose address is dead.
        enabled: bool,
        /// When the webhook was created, in milliseconds since 1970.
        created_at: u64,
        /// Who created the webhook.
        created_by: Option<String>,
    }

    /// A prompt that is sent to a session at times.
    Schedule {
        /// The id.
        id: String,
        /// The session.
        session_id: String,
        /// The times, as a cron expression.
        cron: String,
        /// The IANA name of the time zone of the times.
        time_zone: String,
        /// The text of the prompt.
        prompt: String,
    } maybe {
        /// What becomes of times that passed while the host was down: `skip` or `latest`.
        missed: String,
        /// When the schedule is due next, in milliseconds since 1970. `None` if there is no such time.
        next_at: Option<u64>,
        /// Whether the schedule runs.
        enabled: bool,
        /// When the schedule was created, in milliseconds since 1970.
        created_at: u64,
        /// Who created the schedule.
        created_by: Option<String>,
    }
}

impl Envelope {
    /// The `type` of the payload; empty if it has none.
    pub fn kind(&self) -> String {
        walk::string_at(self.payload.get(), "type").unwrap_or_default()
    }

    /// The frame, if it is of the conversation or explains it: what the CLI wrote, prompts, and what clients asked the CLI for. An `EventReader` of the
    /// crate `outrigger` makes the events of a session of these frames.
    pub fn conversation(&self) -> Option<&RawJson> {
        let counts = match self.source {
            EventSource::Worker => true,
            EventSource::Client => matches!(self.kind().as_str(), "user" | "control_request"),
            _ => false,
        };
        counts.then_some(&self.payload)
    }

    /// Whether the event ends the process of the session, in a turn or before it could go on: no frame of that process follows.
    pub fn ends_process(&self) -> bool {
        self.source == EventSource::Host
            && self.kind() == "session_state_changed"
            && matches!(
                walk::string_at(self.payload.get(), "state").as_deref(),
                Some("interrupted" | "failed" | "ended")
            )
    }
}

/// A token that was issued just now. The host shows it once. It has no `Debug` and no `raw`, which would show it.
#[derive(Deserialize)]
#[non_exhaustive]
pub struct IssuedToken {
    /// The id, to revoke it.
    pub id: String,
    /// The name of the token.
    #[serde(default)]
    pub label: String,
    /// What the token allows.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// When the token expires, in milliseconds since 1970.
    #[serde(default)]
    pub expires_at: Option<u64>,
    /// The token itself, for [`Token::new`](crate::Token::new).
    pub token: String,
}

impl std::fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedToken")
            .field("id", &self.id)
            .field("label", &self.label)
            .field("scopes", &self.scopes)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// A webhook that was added just now. The host shows its secret once. Its `Debug` does not show it.
#[derive(Deserialize)]
#[non_exhaustive]
pub struct AddedWebhook {
    /// The id, to remove it.
    pub id: String,
    /// Where the events are sent.
    pub url: String,
    /// The secret by which the receiver verifies messages (Standard Webhooks).
    pub secret: String,
}

impl std::fmt::Debug for AddedWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddedWebhook")
            .field("id", &self.id)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn what_is_not_known_stays() {
        let text = r#"{"sessions": [{"id":"a", "state":"hibernating","cwd":"/x","new": [1e400,"\ud83d"]}],"next":null, "more":1}"#;
        let page: SessionPage = serde_json::from_str(text).unwrap();
        let session = &page.sessions[0];
        assert_eq!(session.state.as_str(), "hibernating");
        assert_eq!((session.head_seq, &session.title), (0, &None));
        assert_eq!(
            session.raw.get(),
            r#"{"id":"a", "state":"hibernating","cwd":"/x","new": [1e400,"\ud83d"]}"#
        );
        assert_eq!(serde_json::to_string(&page).unwrap(), text);
        serde_json::from_str::<Session>(r#"{"state":"idle","cwd":"/x"}"#).unwrap_err();
    }

    #[test]
    fn what_the_host_shows_once_is_not_shown() {
        let token: IssuedToken = serde_json::from_str(r#"{"id":"1","token":"hidden"}"#).unwrap();
        let webhook = r#"{"id":"1","url":"https://example.com","secret":"hidden"}"#;
        let webhook: AddedWebhook = serde_json::from_str(webhook).unwrap();
        assert!(!format!("{token:?} {webhook:?}").contains("hidden"));
    }
}
