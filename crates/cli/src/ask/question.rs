//! Has the person at the terminal answer what the model asks: choices by number, or own words.

use std::fmt::Write as _;

use outrigger::permissions::{Answers, QuestionReply, QuestionRequest};
use outrigger::protocol::tools::Question;

use super::{Attention, NO_ANSWER, Person, by_subagent};

/// What a line means.
#[derive(Debug, PartialEq, Eq)]
enum QuestionLine {
    Choose(Vec<usize>),
    Write(String),
    Skip,
    /// The line cannot be meant, for this reason.
    Again(String),
}

pub(super) async fn answer(person: &Person, request: &QuestionRequest) -> QuestionReply {
    let Some(attention) = person.attention().await else {
        return QuestionReply::Declined("the terminal can't be read, so nobody answers".to_owned());
    };
    let reply = answers(&attention, request).await;
    attention.done();
    reply
}

async fn answers(attention: &Attention<'_>, request: &QuestionRequest) -> QuestionReply {
    let mut answers = request.answers();
    attention.show(&format!(
        "\nThe model asks{}:\n",
        by_subagent(request.request.agent_id.as_ref())
    ));
    for (number, question) in request.questions.iter().enumerate() {
        let mut text = described(question);
        let with_answer = loop {
            text.push_str(prompt(question));
            let Some(line) = attention.ask(&text).await else {
                return QuestionReply::Declined(NO_ANSWER.to_owned());
            };
            match choice(question, &line) {
                QuestionLine::Again(why) => text = format!("{why}\n"),
                choice => break given(answers, number, choice),
            }
        };
        answers = match with_answer {
            Ok(answers) => answers,
            error => return error.into(),
        };
    }
    answers.into()
}

fn given(answers: Answers, number: usize, choice: QuestionLine) -> outrigger::Result<Answers> {
    match choice {
        QuestionLine::Choose(choices) => answers.choose(number, choices),
        QuestionLine::Write(words) => answers.write(number, words),
        QuestionLine::Skip | QuestionLine::Again(_) => answers.skip(number),
    }
}

fn described(question: &Question) -> String {
    let mut text = format!("\n{}\n", question.question);
    for (number, option) in question.options.iter().enumerate() {
        let _ = write!(text, "  {}. {}", number + 1, option.label);
        if !option.description.is_empty() {
            let _ = write!(text, " - {}", option.description);
        }
        text.push('\n');
        for line in option.preview.iter().flat_map(|preview| preview.lines()) {
            let _ = writeln!(text, "       {line}");
        }
    }
    text
}

fn prompt(question: &Question) -> &'static str {
    if question.multi_select {
        "Numbers separated by commas, or own words (nothing: skip): "
    } else {
        "A number, or own words (nothing: skip): "
    }
}

fn choice(question: &Question, line: &str) -> QuestionLine {
    if line.is_empty() {
        return QuestionLine::Skip;
    }
    let numbers: Option<Vec<usize>> = line.split(',').map(|number| number.trim().parse().ok()).collect();
    let Some(numbers) = numbers else {
        return QuestionLine::Write(line.to_owned());
    };
    let mut choices = Vec::new();
    for number in numbers {
        match number.checked_sub(1) {
            Some(choice) if choice < question.options.len() => {
                if !choices.contains(&choice) {
                    choices.push(choice);
                }
            }
            _ => {
                return QuestionLine::Again(format!(
                    "There is no choice {number}. If the number itself is the answer, put a word to it."
                ));
            }
        }
    }
    if choices.len() > 1 && !question.multi_select {
        return QuestionLine::Again("This takes one choice.".to_owned());
    }
    QuestionLine::Choose(choices)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(multi_select: bool) -> Question {
        let text = format!(
            r#"{{"question":"Which?","header":"W","multiSelect":{multi_select},"options":[{{"label":"Red","description":"r"}},{{"label":"Blue","description":"b"}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn numbers_choose_and_words_stand() {
        let (one, many) = (question(false), question(true));
        assert_eq!(choice(&one, "2"), QuestionLine::Choose(vec![1]));
        assert_eq!(choice(&one, ""), QuestionLine::Skip);
        assert_eq!(
            choice(&one, "green, rather"),
            QuestionLine::Write("green, rather".into())
        );
        assert_eq!(choice(&many, "1, 2,1"), QuestionLine::Choose(vec![0, 1]));
        assert_eq!(
            choice(&many, "1 and more"),
            QuestionLine::Write("1 and more".into())
        );
    }

    #[test]
    fn a_number_that_is_no_choice_is_asked_again() {
        for line in ["3", "0", "1,2"] {
            assert!(
                matches!(choice(&question(false), line), QuestionLine::Again(_)),
                "{line}"
            );
        }
    }

    #[test]
    fn choices_are_counted_from_one_and_previews_are_shown() {
        let mut question = question(false);
        question.options[1].preview = Some("a\nb".to_owned());
        assert_eq!(
            described(&question),
            "\nWhich?\n  1. Red - r\n  2. Blue - b\n       a\n       b\n"
        );
    }
}
