//! `AskUserQuestion`: asks the user to choose.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/question.toml: change that instead.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Input of `AskUserQuestion`. To answer the questions, allow the call with `answers` filled in.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AskUserQuestionInput {
    /// One to four questions.
    pub questions: Vec<Question>,
    /// Answers by question; several choices are separated by commas.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub answers: Option<BTreeMap<String, String>>,
    /// Notes to the answers, by question.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub annotations: Option<BTreeMap<String, AnswerNote>>,
    /// Where the questions come from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub metadata: Option<QuestionMetadata>,
}

impl AskUserQuestionInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(questions: Vec<Question>) -> Self {
        Self {
            questions,
            answers: None,
            annotations: None,
            metadata: None,
        }
    }
}

/// Output of `AskUserQuestion`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct AskUserQuestionOutput {
    /// What was asked.
    pub questions: Vec<Question>,
    /// Answers by question.
    pub answers: BTreeMap<String, String>,
    /// What the user wrote instead of choosing.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub response: Option<String>,
    /// Notes to the answers, by question.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub annotations: Option<BTreeMap<String, AnswerNote>>,
    /// After how many milliseconds without the user the model went on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub afk_timeout_ms: Option<u64>,
}

/// A question with choices.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The question.
    pub question: String,
    /// A heading of one or two words.
    pub header: String,
    /// Two to four choices.
    pub options: Vec<QuestionOption>,
    /// Whether more than one may be chosen.
    #[serde(default)]
    pub multi_select: bool,
}

impl Question {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(question: impl Into<String>, header: impl Into<String>, options: Vec<QuestionOption>) -> Self {
        Self {
            question: question.into(),
            header: header.into(),
            options,
            multi_select: Default::default(),
        }
    }
}

/// A choice.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct QuestionOption {
    /// The choice.
    pub label: String,
    /// What the option means.
    pub description: String,
    /// What the option would look like.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub preview: Option<String>,
}

impl QuestionOption {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(label: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            description: description.into(),
            preview: None,
        }
    }
}

/// A note to an answer.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AnswerNote {
    /// The preview of what was chosen.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub preview: Option<String>,
    /// What the user added.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub notes: Option<String>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub unanswered: Option<Unanswered>,
}

crate::open_enum! {
    /// Why a question has no answer.
    pub enum Unanswered {
        /// The user skipped the question.
        Skipped = "skipped",
        /// The user wrote a message instead.
        RepliedInChat = "replied_in_chat",
        /// The user closed the question.
        Dismissed = "dismissed",
    }
}

/// Where questions come from.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct QuestionMetadata {
    /// The feature that asks.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub source: Option<String>,
}
