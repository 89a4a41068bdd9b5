//! `AskUserQuestion`: as a form if the editor has forms, else as one permission request after the other.

use agent_client_protocol::v1::schema as acp;
use outrigger::permissions::{Answers, QuestionReply, QuestionRequest};
use outrigger::protocol::tools::Question;

use super::{Chosen, CliResponder, elicit};

/// The names of the fields of a question: the choice, and the user's own text.
fn field(question: usize) -> String {
    format!("question_{question}")
}

fn own_words(question: usize) -> String {
    format!("question_{question}_custom")
}

/// The id of an answer, where the answers are options.
fn answer_id(number: usize) -> String {
    format!("answer-{number}")
}

impl CliResponder {
    /// All questions in one form.
    pub(super) async fn question_by_form(&self, request: &QuestionRequest) -> QuestionReply {
        let scope = acp::ElicitationSessionScope::new(self.session.clone())
            .tool_call_id(acp::ToolCallId::new(request.request.call_id()));
        let message = match request.questions.as_slice() {
            [only] => only.question.clone(),
            _ => "Please answer the following questions.".to_owned(),
        };
        let mode = acp::ElicitationFormMode::new(scope, form(&request.questions));
        let form = acp::CreateElicitationRequest::new(mode, message);
        match elicit(&self.asker, form, request.request.agent_id.clone()).await {
            Ok(response) => match response.action {
                acp::ElicitationAction::Accept(accepted) => {
                    filled_in(request, &accepted.content.unwrap_or_default())
                }
                acp::ElicitationAction::Decline => {
                    QuestionReply::Declined("the user declined to answer".to_owned())
                }
                _ => QuestionReply::Declined("the user closed the questions without an answer".to_owned()),
            },
            Err(error) => QuestionReply::Declined(super::failed(&error)),
        }
    }

    /// Each question as a permission request whose options are the answers.
    pub(super) async fn question_by_choices(&self, request: &QuestionRequest) -> QuestionReply {
        let mut answers = request.answers();
        let last = request.questions.len().saturating_sub(1);
        let mut given = false;
        for (position, question) in request.questions.iter().enumerate() {
            let mut options = Vec::new();
            for (number, option) in question.options.iter().enumerate() {
                let name = match option.description.trim() {
                    "" => option.label.clone(),
                    description => format!("{}: {description}", option.label),
                };
                let kind = acp::PermissionOptionKind::AllowOnce;
                options.push(acp::PermissionOption::new(answer_id(number), name, kind));
            }
            let skip = if position == last {
                "None of these"
            } else {
                "None of these, next question"
            };
            let kind = acp::PermissionOptionKind::RejectOnce;
            options.push(acp::PermissionOption::new("skip", skip, kind));
            let mut shown = request.request.clone();
            shown.title = Some(question.question.clone());
            let answered = match self.choose(shown, options).await {
                Chosen::Option(id) => {
                    let mut numbers = 0..question.options.len();
                    match numbers.find(|number| *id.0 == *answer_id(*number)) {
                        Some(number) => {
                            given = true;
                            answers.choose(position, [number])
                        }
                        None => answers.skip(position),
                    }
                }
                Chosen::Cancelled => return QuestionReply::Declined("the turn was cancelled".to_owned()),
                Chosen::Failed(why) => return QuestionReply::Declined(why),
            };
            answers = match answered {
                Ok(answers) => answers,
                Err(error) => return QuestionReply::Declined(error.to_string()),
            };
        }
        if !given {
            return QuestionReply::Declined("the user chose none of the answers".to_owned());
        }
        QuestionReply::Answered(answers)
    }
}

/// The form: for each question a choice, and a line for the user's own text.
fn form(questions: &[Question]) -> acp::ElicitationSchema {
    let mut schema = acp::ElicitationSchema::new();
    let is_single = questions.len() == 1;
    for (position, question) in questions.iter().enumerate() {
        let options: Vec<acp::EnumOption> = question
            .options
            .iter()
            .map(|option| {
                let choice = acp::EnumOption::new(option.label.clone(), option.label.clone());
                match option.description.trim() {
                    "" => choice,
                    description => choice.description(description.to_owned()),
                }
            })
            .collect();
        let title = (!question.header.is_empty()).then(|| question.header.clone());
        let description = (!is_single).then(|| question.question.clone());
        let property = if question.multi_select {
            let mut property = acp::MultiSelectPropertySchema::titled(options);
            (property.title, property.description) = (title, description);
            acp::ElicitationPropertySchema::Array(property)
        } else {
            let mut property = acp::StringPropertySchema::new();
            property.one_of = Some(options);
            (property.title, property.description) = (title, description);
            acp::ElicitationPropertySchema::String(property)
        };
        let mut words = acp::StringPropertySchema::new();
        words.title = Some("Other".to_owned());
        words.description = Some(if question.multi_select {
            "Your own answer, in addition to what is selected (optional)".to_owned()
        } else {
            "Your own answer, or a note on the one that is selected (optional)".to_owned()
        });
        schema.properties.insert(field(position), property);
        schema
            .properties
            .insert(own_words(position), acp::ElicitationPropertySchema::String(words));
    }
    schema
}

/// The answers in a form.
fn filled_in(
    request: &QuestionRequest,
    content: &std::collections::BTreeMap<String, acp::ElicitationContentValue>,
) -> QuestionReply {
    let mut answers = request.answers();
    let mut given = false;
    for (position, question) in request.questions.iter().enumerate() {
        let selected: Vec<&str> = match content.get(&field(position)) {
            Some(acp::ElicitationContentValue::String(one)) => vec![one],
            Some(acp::ElicitationContentValue::StringArray(many)) => {
                many.iter().map(String::as_str).collect()
            }
            _ => Vec::new(),
        };
        let words = match content.get(&own_words(position)) {
            Some(acp::ElicitationContentValue::String(words)) => words.trim(),
            _ => "",
        };
        let answered = answer_one(answers, position, question, &selected, words);
        answers = match answered {
            Ok((answers, some)) => {
                given |= some;
                answers
            }
            Err(error) => return QuestionReply::Declined(error.to_string()),
        };
    }
    if given {
        QuestionReply::Answered(answers)
    } else {
        QuestionReply::Declined("the user left all questions open".to_owned())
    }
}

/// The answer to one question, if any.
fn answer_one(
    answers: Answers,
    position: usize,
    question: &Question,
    selected: &[&str],
    words: &str,
) -> outrigger::Result<(Answers, bool)> {
    let index = |label: &&str| question.options.iter().position(|option| option.label == **label);
    let known: Vec<usize> = selected.iter().filter_map(index).collect();
    let strange = selected.iter().find(|label| index(label).is_none());
    match (strange, known.is_empty(), words) {
        // Some editors put the user's own text into the field of the choice.
        (Some(own), true, "") => Ok((answers.write(position, *own)?, true)),
        (_, true, "") => Ok((answers.skip(position)?, false)),
        (_, true, words) => Ok((answers.write(position, words)?, true)),
        (_, false, "") => Ok((answers.choose(position, known)?, true)),
        (_, false, words) if question.multi_select => {
            let labels = known.iter().filter_map(|number| question.options.get(*number));
            let labels: Vec<&str> = labels
                .map(|option| option.label.as_str())
                .chain([words])
                .collect();
            Ok((answers.write(position, labels.join(", "))?, true))
        }
        (_, false, words) => Ok((answers.choose(position, known)?.note(position, words)?, true)),
    }
}
