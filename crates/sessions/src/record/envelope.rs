//! What reading needs of a record.

use outrigger_protocol::open_enum;

use super::DamageReason;
use super::fields::{fields, is_truthy, text_of};

open_enum! {
    /// The `type` of a record.
    pub enum RecordKind {
        /// What went to the model: prompts and results of tools.
        User = "user",
        /// Output of the model, a block a record.
        Assistant = "assistant",
        /// A note of the CLI within the conversation, such as the boundary of a compaction.
        System = "system",
        /// An addition to a prompt: files, reminders, queued commands.
        Attachment = "attachment",
        /// The progress of a tool or hook, as older CLIs recorded it.
        Progress = "progress",
        /// A title that the user gave.
        CustomTitle = "custom-title",
        /// A title that the model made.
        AiTitle = "ai-title",
        /// A tag that the user gave; empty if it was removed.
        Tag = "tag",
        /// The last prompt, and where the conversation stands.
        LastPrompt = "last-prompt",
        /// A summary of the conversation, as older CLIs recorded it.
        Summary = "summary",
        /// The session continues in another directory.
        Relocated = "relocated",
        /// The conversation continues in another session.
        ContinuedIn = "continued-in",
        /// A prompt entered or left the queue.
        QueueOperation = "queue-operation",
        /// Contents that were replaced after the fact.
        ContentReplacement = "content-replacement",
        /// The metadata of a subagent, as session stores keep it.
        AgentMetadata = "agent_metadata",
        /// What files were like.
        FileHistorySnapshot = "file-history-snapshot",
        /// The cost of the session.
        CostState = "cost-state",
        /// Which tools were called.
        ToolsUsed = "tools-used",
    }
}

impl RecordKind {
    /// Whether records of this type are linked into a conversation by `uuid` and `parentUuid`.
    pub fn is_linked(&self) -> bool {
        use RecordKind::{Assistant, Attachment, Progress, System, User};
        matches!(self, User | Assistant | System | Attachment | Progress)
    }
}

/// What reading needs of a record. A field of an unexpected type counts as one that is not there; flags count as JavaScript counts
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envelope {
    /// `type`; an empty one if there is none.
    pub kind: RecordKind,
    /// `subtype`, of `system` records.
    pub subtype: Option<String>,
    /// The record's own id.
    pub uuid: Option<String>,
    /// The record before this one in its conversation.
    pub parent_uuid: Option<String>,
    /// The record that was before it until a compaction cut the conversation.
    pub logical_parent_uuid: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// When, as ISO 8601.
    pub timestamp: Option<String>,
    /// The subagent that the record belongs to.
    pub agent_id: Option<String>,
    /// The team that the record belongs to.
    pub team_name: Option<String>,
    /// The working directory at the time.
    pub cwd: Option<String>,
    /// The branch at the time; `HEAD` where there was none.
    pub git_branch: Option<String>,
    /// The CLI's version.
    pub version: Option<String>,
    /// The program that started the CLI, such as `cli` or `sdk-py`.
    pub entrypoint: Option<String>,
    /// What kind of session it is, such as `daemon`.
    pub session_kind: Option<String>,
    /// The prompt that the record belongs to.
    pub prompt_id: Option<String>,
    /// The `assistant` record with the call that it is the result of.
    pub source_tool_assistant_uuid: Option<String>,
    /// True for messages beside the main conversation, such as those of a subagent.
    pub is_sidechain: bool,
    /// True for records that are not meant to be shown.
    pub is_meta: bool,
    /// True for the summary that replaces what a compaction cut off.
    pub is_compact_summary: bool,
    /// True for what only the view of the transcript shows.
    pub is_visible_in_transcript_only: bool,
}

impl Envelope {
    /// Reads it from the text of a line.
    ///
    /// # Errors
    /// When the text is no JSON object.
    pub fn read(text: &str) -> Result<Self, DamageReason> {
        let mut read = Self::empty();
        for (key, value) in fields(text)? {
            read.take(&key, &value);
        }
        Ok(read)
    }

    fn empty() -> Self {
        Self {
            kind: RecordKind::from(""),
            subtype: None,
            uuid: None,
            parent_uuid: None,
            logical_parent_uuid: None,
            session_id: None,
            timestamp: None,
            agent_id: None,
            team_name: None,
            cwd: None,
            git_branch: None,
            version: None,
            entrypoint: None,
            session_kind: None,
            prompt_id: None,
            source_tool_assistant_uuid: None,
            is_sidechain: false,
            is_meta: false,
            is_compact_summary: false,
            is_visible_in_transcript_only: false,
        }
    }

    fn take(&mut self, key: &str, value: &str) {
        let field = match key {
            "type" => {
                self.kind = RecordKind::from(&*text_of(value).unwrap_or_default());
                return;
            }
            "isSidechain" => return self.is_sidechain = is_truthy(value),
            "isMeta" => return self.is_meta = is_truthy(value),
            "isCompactSummary" => return self.is_compact_summary = is_truthy(value),
            "isVisibleInTranscriptOnly" => return self.is_visible_in_transcript_only = is_truthy(value),
            "subtype" => &mut self.subtype,
            "uuid" => &mut self.uuid,
            "parentUuid" => &mut self.parent_uuid,
            "logicalParentUuid" => &mut self.logical_parent_uuid,
            "sessionId" => &mut self.session_id,
            "timestamp" => &mut self.timestamp,
            "agentId" => &mut self.agent_id,
            "teamName" => &mut self.team_name,
            "cwd" => &mut self.cwd,
            "gitBranch" => &mut self.git_branch,
            "version" => &mut self.version,
            "entrypoint" => &mut self.entrypoint,
            "sessionKind" => &mut self.session_kind,
            "promptId" => &mut self.prompt_id,
            "sourceToolAssistantUUID" => &mut self.source_tool_assistant_uuid,
            _ => return,
        };
        *field = text_of(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_read_however_they_are_written() {
        let plain = r#"{"type":"user","uuid":"u","parentUuid":null,"isMeta":true,"message":{"uuid":"inner"},"cwd":"/a\nb"}"#;
        // A tab is what the quick reader leaves to the other one.
        let odd = plain.replace(",\"", ",\t\"");
        for text in [plain, &odd] {
            let read = Envelope::read(text).unwrap();
            assert_eq!(
                (read.kind, read.uuid.as_deref(), read.parent_uuid),
                (RecordKind::User, Some("u"), None)
            );
            assert_eq!(
                (read.is_meta, read.is_sidechain, read.cwd.as_deref()),
                (true, false, Some("/a\nb"))
            );
        }
        let read = Envelope::read(r#"{"type":"x-new","uuid":7,"uuid":"a\ud83d","\ud83d":1}"#).unwrap();
        assert_eq!(
            (read.kind.as_str(), read.uuid.as_deref()),
            ("x-new", Some("a\u{fffd}"))
        );
        assert!(!read.kind.is_linked());
        assert_eq!(Envelope::read("{}").unwrap(), Envelope::empty());
    }

    #[test]
    fn what_is_no_object_is_told_apart_from_what_is_no_json() {
        assert_eq!(Envelope::read(" [1] "), Err(DamageReason::NotAnObject));
        assert_eq!(Envelope::read("\"\\ud83d\""), Err(DamageReason::NotAnObject));
        for text in [
            "{\"a\":1",
            "{\"a\":tru}",
            "{} {}",
            "",
            "{\"a\":1}x",
            "\u{0}",
            "{\u{0}}",
        ] {
            assert!(
                matches!(Envelope::read(text), Err(DamageReason::NotJson(_))),
                "{text}"
            );
        }
    }
}
