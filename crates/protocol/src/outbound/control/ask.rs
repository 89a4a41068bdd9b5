//! Side questions, and what people say about answers.

use serde::{Deserialize, Serialize};

use super::request;
use crate::RawJson;
use crate::shared::closed_enum::closed_enum;
use crate::wire_enum;

request! {
    /// Asks the model something beside the conversation, which does not learn of it. `control_request_progress` comes meanwhile. Can
    /// be taken back.
    pub struct SideQuestion {
        required {
            /// The question.
            question: "question" => String,
        }
        optional {
            /// Earlier side questions and their answers.
            history: "history" => Vec<RawJson>,
        }
    }
}

/// The answer to a side question.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SideQuestionReply {
    /// The answer; `None` if the model gave none.
    pub response: Option<String>,
    /// Whether the answer is the CLI's text and not the model's.
    pub synthetic: Option<bool>,
    /// Present if another model answered because the first refused.
    pub refusal_fallback: Option<RefusalFallback>,
}

/// Another model answered because the first refused.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct RefusalFallback {
    /// The model that refused.
    pub original_model: String,
    /// The model that answered.
    pub fallback_model: String,
    /// Text for the user.
    pub content: String,
}

request! {
    /// Rates what the model said.
    pub struct MessageRated {
        required {
            /// The `assistant` message.
            message_uuid: "messageUuid" => String,
            /// Whether the rating is positive.
            sentiment: "sentiment" => Sentiment,
        }
        optional {
            /// What is rated.
            surface: "surface" => RatedSurface,
            /// Takes the rating back.
            cleared: "cleared" => bool,
        }
    }
}

closed_enum! {
    /// A rating.
    pub enum Sentiment {
        /// The feedback is positive.
        Positive = "positive",
        /// The feedback is negative.
        Negative = "negative",
    }
}

closed_enum! {
    /// What was rated.
    #[non_exhaustive]
    pub enum RatedSurface {
        /// A tool call.
        ToolUse = "tool_use",
        /// The assistant's text.
        AssistantText = "assistant_text",
    }
}

request! {
    /// Sends feedback to the maker of the CLI.
    pub struct SubmitFeedback {
        required {
            /// The feedback.
            description: "description" => String,
        }
        optional {
            /// Where the user gave the feedback; `sdk` by default.
            surface: "surface" => FeedbackSurface,
            /// The draft to send, which the model wrote.
            draft_id: "draft_id" => String,
            /// The kind of feedback.
            kind: "type" => FeedbackKind,
            /// A title.
            title: "title" => String,
            /// The subject of the feedback.
            area: "area" => String,
            /// Also sends the conversation.
            attach_transcript: "attach_transcript" => bool,
            /// Writes the feedback to a file instead of sending it.
            save_locally: "save_locally" => bool,
        }
    }
}

closed_enum! {
    /// Where feedback was given.
    #[non_exhaustive]
    pub enum FeedbackSurface {
        /// The terminal.
        Cli = "cli",
        /// The desktop application.
        Ccd = "ccd",
        /// The web.
        Ccr = "ccr",
        /// An editor.
        Ide = "ide",
        /// A program.
        Sdk = "sdk",
        /// Cowork.
        Cowork = "cowork",
    }
}

closed_enum! {
    /// The kind of feedback.
    #[non_exhaustive]
    pub enum FeedbackKind {
        /// Something is wrong.
        Bug = "bug",
        /// An idea.
        Idea = "idea",
        /// Something is missing.
        MissingCapability = "missing_capability",
    }
}

request! {
    /// Sends the answer to a survey.
    pub struct SubmitSurveyFeedback {
        required {
            /// The text of the answer; may be empty.
            description: "description" => String,
            /// The survey, as its event named it.
            appearance_id: "appearance_id" => String,
            /// The choice of the user.
            survey_response: "survey_response" => SurveyResponse,
            /// The subject of the survey.
            survey_type: "survey_type" => SurveyType,
        }
        optional {
            /// Where the user gave the answer.
            surface: "surface" => FeedbackSurface,
        }
    }
}

closed_enum! {
    /// The choice of a user in a survey.
    pub enum SurveyResponse {
        /// Bad.
        Bad = "bad",
        /// Fine.
        Fine = "fine",
        /// Good.
        Good = "good",
    }
}

closed_enum! {
    /// What a survey is about.
    #[non_exhaustive]
    pub enum SurveyType {
        /// The session.
        Session = "session",
        /// A compaction.
        PostCompact = "post_compact",
        /// Memory.
        Memory = "memory",
        /// A long conversation.
        LongContext = "long_context",
    }
}

/// Whether the feedback was sent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SubmitFeedbackReply {
    /// The id of the feedback; `None` if it was not sent.
    pub feedback_id: Option<String>,
    /// Why feedback cannot be sent here.
    pub unavailable_reason: Option<String>,
    /// Whether Anthropic stores no data of the organization.
    pub is_zdr_org: Option<bool>,
    /// Why sending failed.
    pub failure_reason: Option<String>,
    /// The HTTP status of the server's response.
    pub status_code: Option<i64>,
    /// The address of the shared conversation.
    pub ccshare_url: Option<String>,
    /// The file that the feedback was written to.
    pub bundle_path: Option<String>,
}

request! {
    /// Turns speech into text, piece by piece. Needs a signed-in account.
    pub struct Dictate {
        required {
            /// The step of the dictation.
            op: "op" => DictateOp,
        }
        optional {
            /// With `Start`: the language, as a code or a name; that of the settings by default.
            language: "language" => String,
            /// With `Audio`: base64 of 16 kHz mono 16-bit little-endian samples, two seconds at most.
            pcm: "pcm" => String,
        }
    }
}

closed_enum! {
    /// A step of a dictation.
    #[non_exhaustive]
    pub enum DictateOp {
        /// Begins the dictation.
        Start = "start",
        /// Hands over a piece of speech.
        Audio = "audio",
        /// Ends the dictation, and requests all words.
        Stop = "stop",
        /// Ends the dictation without words.
        Cancel = "cancel",
    }
}

wire_enum! {
    /// The words of a dictation so far.
    pub enum DictateReply by "status" {
        /// The words that were recognised.
        "ok" => Words(Dictated),
        /// Dictation is not available.
        "unavailable" => Unavailable(DictationUnavailable),
    }
}

/// The words that were recognised.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Dictated {
    /// Words that are final.
    pub text: String,
    /// Words that may still change. Show these after the others.
    pub interim: String,
    /// Whether the dictation has ended.
    pub done: bool,
}

/// Dictation is not available here.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DictationUnavailable {
    /// Why dictation is not available.
    pub reason: String,
    /// Words that were recognised before.
    pub text: String,
}
