//! `AskUserQuestion`: asks the user to choose.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/question.toml: change that instead.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Input of `AskUserQuestion`. To answer the questions, allow the call with `answers` filled in.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct AskUserQuestionInput {
    /// One to four questions.
    pub questions: Vec<Question>,
    /// Answers by question; several choices are separated by commas, or a list.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub answers: Option<BTreeMap<String, GivenAnswer>>,
    /// Notes to the answers, by question.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub annotations: Option<BTreeMap<String, AnswerNote>>,
    /// Where the questions come from.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub metadata: Option<QuestionMetadata>,
    /// A heading over the questions. With `CLAUDE_CODE_QUESTION_EXTENDED`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
}

impl AskUserQuestionInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(questions: Vec<Question>) -> Self {
        Self {
            questions,
            answers: None,
            annotations: None,
            metadata: None,
            title: None,
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
    /// Answers by question: texts, or lists where the program answered with lists.
    pub answers: BTreeMap<String, GivenAnswer>,
    /// What the user wrote instead of choosing.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub response: Option<String>,
    /// Notes to the answers, by question.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub annotations: Option<BTreeMap<String, AnswerNote>>,
    /// After how many milliseconds without the user the model went on.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub afk_timeout_ms: Option<u64>,
    /// Whether the user wants more questions. Undeclared upstream.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub follow_up: Option<bool>,
}

/// An answer to a question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum GivenAnswer {
    /// A choice, several with commas between them, or the user's own words.
    Text(String),
    /// Choices, where the program answered with a list.
    List(Vec<String>),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(GivenAnswer {
    String => Text,
    Array => List,
});

/// A question with choices.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The question.
    pub question: String,
    /// A heading of one or two words.
    pub header: String,
    /// Two to four choices; none for a question of another kind.
    #[serde(default)]
    pub options: Vec<QuestionOption>,
    /// Whether more than one may be chosen.
    #[serde(default)]
    pub multi_select: bool,
    /// How the user answers: `choice`, `text` or `number`. This and the fields below come with `CLAUDE_CODE_QUESTION_EXTENDED`.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub kind: Option<String>,
    /// A line below the question.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub description: Option<String>,
    /// What an empty box for a text shows.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub placeholder: Option<String>,
    /// The least number.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub min: Option<f64>,
    /// The greatest number.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub max: Option<f64>,
    /// The distance between numbers.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub step: Option<f64>,
    /// The number to begin with.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub default_value: Option<f64>,
    /// The unit of the number.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub unit: Option<String>,
}

impl Question {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(question: impl Into<String>, header: impl Into<String>) -> Self {
        Self {
            question: question.into(),
            header: header.into(),
            options: Default::default(),
            multi_select: Default::default(),
            kind: None,
            description: None,
            placeholder: None,
            min: None,
            max: None,
            step: None,
            default_value: None,
            unit: None,
        }
    }
}

/// A choice.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct QuestionOption {
    /// The choice.
    pub label: String,
    /// What the option means; empty if the model did not say.
    #[serde(default)]
    pub description: String,
    /// What the option would look like.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub preview: Option<String>,
}

impl QuestionOption {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            description: Default::default(),
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
