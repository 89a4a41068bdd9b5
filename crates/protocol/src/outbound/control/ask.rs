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
    /// The answer; `None` if there is none.
    pub response: Option<String>,
    /// Whether it is the CLI's own text and not the model's.
    pub synthetic: Option<bool>,
    /// Set if another model answered because the first refused.
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
    /// Says whether an answer was good.
    pub struct MessageRated {
        required {
            /// The `assistant` message.
            message_uuid: "messageUuid" => String,
            /// Whether it was.
            sentiment: "sentiment" => Sentiment,
        }
        optional {
            /// Where it was said.
            surface: "surface" => RatedSurface,
            /// Takes the rating back.
            cleared: "cleared" => bool,
        }
    }
}

closed_enum! {
    /// Whether an answer was good.
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
            /// Where it was given; `sdk` by default.
            surface: "surface" => FeedbackSurface,
            /// A draft of the model's to send.
            draft_id: "draft_id" => String,
            /// The kind of feedback.
            kind: "type" => FeedbackKind,
            /// A title.
            title: "title" => String,
            /// What it is about.
            area: "area" => String,
            /// Sends the conversation along.
            attach_transcript: "attach_transcript" => bool,
            /// Writes it to a file instead of sending it.
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
    /// What feedback is.
    #[non_exhaustive]
    pub enum FeedbackKind {
        /// Something is wrong.
        Bug = "bug",
        /// Something could be.
        Idea = "idea",
        /// Something is not there.
        MissingCapability = "missing_capability",
    }
}

request! {
    /// Sends the answer to a survey.
    pub struct SubmitSurveyFeedback {
        required {
            /// What was written; may be empty.
            description: "description" => String,
            /// The survey, as its event named it.
            appearance_id: "appearance_id" => String,
            /// What was chosen.
            survey_response: "survey_response" => SurveyResponse,
            /// What kind of survey.
            survey_type: "survey_type" => SurveyType,
        }
        optional {
            /// Where it was given.
            surface: "surface" => FeedbackSurface,
        }
    }
}

closed_enum! {
    /// What was chosen in a survey.
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

/// What became of feedback.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SubmitFeedbackReply {
    /// The id of the feedback; `None` if it was not sent.
    pub feedback_id: Option<String>,
    /// Why feedback cannot be sent here.
    pub unavailable_reason: Option<String>,
    /// Whether the organization wants nothing kept.
    pub is_zdr_org: Option<bool>,
    /// Why sending failed.
    pub failure_reason: Option<String>,
    /// What the server answered.
    pub status_code: Option<i64>,
    /// Where the conversation is shared.
    pub ccshare_url: Option<String>,
    /// Where it was written to.
    pub bundle_path: Option<String>,
}

request! {
    /// Turns speech into text, piece by piece. Needs a signed-in account.
    pub struct Dictate {
        required {
            /// What to do.
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
    /// What to do about speech.
    #[non_exhaustive]
    pub enum DictateOp {
        /// Begin.
        Start = "start",
        /// Take this.
        Audio = "audio",
        /// End, and give all words.
        Stop = "stop",
        /// End, and give none.
        Cancel = "cancel",
    }
}

wire_enum! {
    /// What became of speech.
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
    /// Words that stay.
    pub text: String,
    /// Words that may still change; to be shown after the others.
    pub interim: String,
    /// Whether that was all.
    pub done: bool,
}

/// Dictation cannot be done here.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct DictationUnavailable {
    /// The reason.
    pub reason: String,
    /// Words that were found before.
    pub text: String,
}
