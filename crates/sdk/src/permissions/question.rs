//! What the model asks the user: `AskUserQuestion`, typed.

use std::collections::BTreeMap;

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::{PermissionAllow, PermissionDeny, PermissionResult};
use outrigger_protocol::tools::{AnswerNote, AskUserQuestionInput, Question, Unanswered};

use super::{PermissionDecision, PermissionRequest, QUESTION};
use crate::error::{Error, Result};

/// Questions of the model to the user, with choices. Answer with [`answers`](Self::answers).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QuestionRequest {
    /// The questions, one to four.
    pub questions: Vec<Question>,
    /// The request as all requests are: its id, who asks, whether it was withdrawn.
    pub request: PermissionRequest,
}

impl QuestionRequest {
    /// The questions of a request; `None` if it is about another tool, or they can't be read.
    pub fn of(request: &PermissionRequest) -> Option<Self> {
        let input: AskUserQuestionInput = request.tool_as(QUESTION)?;
        Some(Self {
            questions: input.questions,
            request: request.clone(),
        })
    }

    /// Answers, none of them given yet.
    pub fn answers(&self) -> Answers {
        Answers {
            questions: self.questions.clone(),
            input: self.request.input.clone(),
            given: BTreeMap::new(),
            notes: BTreeMap::new(),
        }
    }
}

/// Answers to the questions of a [`QuestionRequest`]. Questions are counted from 0, and so are the choices of each.
///
/// Questions may be left without an answer, but not all of them: nothing at all is a refusal.
#[derive(Debug, Clone)]
pub struct Answers {
    questions: Vec<Question>,
    input: RawJson,
    given: BTreeMap<String, String>,
    notes: BTreeMap<String, AnswerNote>,
}

impl Answers {
    /// Answers to the questions in the input of a call of `AskUserQuestion`, none of them given yet; `None` if it is no such input.
    pub fn to(input: &RawJson) -> Option<Self> {
        let asked: AskUserQuestionInput = input.decode().ok()?;
        Some(Self {
            questions: asked.questions,
            input: input.clone(),
            given: BTreeMap::new(),
            notes: BTreeMap::new(),
        })
    }

    /// The questions.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Answers a question with some of its choices; more than one only where the question lets them.
    ///
    /// # Errors
    /// When there is no such question or choice, when none is given, or too many are.
    pub fn choose(mut self, question: usize, choices: impl IntoIterator<Item = usize>) -> Result<Self> {
        let asked = self.question(question)?.clone();
        let mut labels = Vec::new();
        let mut preview = None;
        for choice in choices {
            let option = asked.options.get(choice).ok_or_else(|| {
                Error::invalid(format!(
                    "answer: question {question} has {} choices, there is no {choice}",
                    asked.options.len()
                ))
            })?;
            labels.push(option.label.as_str());
            preview = option.preview.clone();
        }
        if labels.is_empty() {
            return Err(Error::invalid(format!(
                "answer: nothing is chosen for question {question}; use `skip`"
            )));
        }
        if labels.len() > 1 && !asked.multi_select {
            return Err(Error::invalid(format!(
                "answer: question {question} takes one choice, not {}",
                labels.len()
            )));
        }
        self.given.insert(asked.question.clone(), labels.join(", "));
        if preview.is_some() {
            self.notes.entry(asked.question).or_default().preview = preview;
        }
        Ok(self)
    }

    /// Answers a question in one's own words.
    ///
    /// # Errors
    /// When there is no such question, or the text is blank.
    pub fn write(mut self, question: usize, text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        if text.trim().is_empty() {
            return Err(Error::invalid(format!(
                "answer: the text for question {question} is blank; use `skip`"
            )));
        }
        let asked = self.question(question)?.question.clone();
        self.given.insert(asked, text);
        Ok(self)
    }

    /// Adds a remark to the answer of a question.
    ///
    /// # Errors
    /// When there is no such question.
    pub fn note(mut self, question: usize, text: impl Into<String>) -> Result<Self> {
        let asked = self.question(question)?.question.clone();
        self.notes.entry(asked).or_default().notes = Some(text.into());
        Ok(self)
    }

    /// Says that a question was passed over.
    ///
    /// # Errors
    /// When there is no such question.
    pub fn skip(mut self, question: usize) -> Result<Self> {
        let asked = self.question(question)?.question.clone();
        self.given.remove(&asked);
        self.notes.entry(asked).or_default().unanswered = Some(Unanswered::Skipped);
        Ok(self)
    }

    fn question(&self, question: usize) -> Result<&Question> {
        self.questions.get(question).ok_or_else(|| {
            Error::invalid(format!(
                "answer: there are {} questions, there is no {question}",
                self.questions.len()
            ))
        })
    }
}

/// The input of the call with the answers in it; a refusal if there are none.
impl From<Answers> for PermissionResult {
    fn from(answers: Answers) -> Self {
        if answers.given.is_empty() {
            return Self::deny(UNANSWERED);
        }
        let filled = || -> std::result::Result<PermissionAllow, serde_json::Error> {
            let mut input: BTreeMap<String, RawJson> = answers.input.decode()?;
            input.insert("answers".to_owned(), RawJson::encode(&answers.given)?);
            if !answers.notes.is_empty() {
                input.insert("annotations".to_owned(), RawJson::encode(&answers.notes)?);
            }
            PermissionAllow::default().updated_input(input)
        };
        match filled() {
            Ok(allow) => allow.into(),
            Err(error) => Self::deny(format!("the answers could not be written: {error}")),
        }
    }
}

pub(crate) const UNANSWERED: &str = "the user did not answer; do not take that for consent";

/// What becomes of questions to the user.
#[derive(Debug, Clone)]
pub enum QuestionReply {
    /// At least one of the questions is answered.
    Answered(Answers),
    /// Nobody answers the questions; the model reads why.
    Declined(String),
    /// The questions wait: somebody answers later, by [`Session::decide`](crate::Session::decide).
    Parked,
}

impl From<Answers> for QuestionReply {
    fn from(answers: Answers) -> Self {
        Self::Answered(answers)
    }
}

/// An error is no answer; the model reads its words.
impl<E: std::fmt::Display> From<Result<Answers, E>> for QuestionReply {
    fn from(answers: Result<Answers, E>) -> Self {
        answers.map_or_else(
            |error| Self::Declined(format!("the question could not be answered: {error}")),
            Self::Answered,
        )
    }
}

impl From<QuestionReply> for PermissionDecision {
    fn from(reply: QuestionReply) -> Self {
        match reply {
            QuestionReply::Answered(answers) => PermissionResult::from(answers).into(),
            QuestionReply::Declined(why) => PermissionDeny::new(why).into(),
            QuestionReply::Parked => Self::Parked,
        }
    }
}
