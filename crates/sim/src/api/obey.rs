//! Replies by the directives in the prompt.
//!
//! The conversation alone determines the current script and the position in it, so that a resumed session continues
//! and one server can serve any number of processes. Only faults and messages without content leave no trace in the
//! conversation; those are counted here.

use serde_json::Value;

use super::conversation::{Conversations, DirectivePlace, Spent};
use super::message::ApiAnswer;
use super::play::compose_alone;
use super::request::{ApiRequest, user_texts};
use crate::directive::{self, DirectiveError};
use crate::script::{Placed, Step, Wait};

/// The answer that the conversation's script has for this request; `None` when there is no script or it is used up.
pub(super) fn obey(
    request: &ApiRequest,
    conversations: &mut Conversations,
    home: &str,
) -> Option<Result<ApiAnswer, DirectiveError>> {
    let (anchor, text) = find(request)?;
    let script = match directive::parse(text) {
        Ok(script) => script,
        Err(error) => return Some(Err(error)),
    };
    let place = |what| DirectivePlace::new(request, anchor, text, what);
    let position = answers_since(request.messages(), anchor) + *conversations.spent(place(Spent::Empty));
    let position = usize::try_from(position).ok()?;
    let response = script.into_iter().nth(position)?;

    let attempts = *conversations.spent(place(Spent::Attempts(position)));
    let composed = compose_alone(with_gates(response), attempts, request, home);
    if composed.failed && !composed.stalls {
        *conversations.spent(place(Spent::Attempts(position))) += 1;
    } else if !composed.leaves_trace {
        *conversations.spent(place(Spent::Empty)) += 1;
    }
    Some(Ok(composed.answer))
}

/// The script in force, and the index of its message.
fn find(request: &ApiRequest) -> Option<(usize, &str)> {
    let mut messages = request.messages().iter().enumerate().rev();
    messages.find_map(|(index, message)| {
        let text = user_texts(message)
            .into_iter()
            .rev()
            .find(|text| directive::present(text))?;
        // The CLI puts a newline behind a text when it joins messages; that must not make another script of it.
        Some((index, text.trim_end()))
    })
}

/// How often the model has answered since the message at `anchor`. Neighbouring assistant messages are one answer.
fn answers_since(messages: &[Value], anchor: usize) -> u64 {
    let role = |message: &Value| message.get("role").and_then(Value::as_str).map(str::to_owned);
    let roles = messages.iter().skip(anchor + 1).filter_map(role);
    let mut answers = 0;
    let mut before = String::new();
    // Notes that the CLI puts in between, with the role `system`, do not part an answer.
    for role in roles.filter(|role| role != "system") {
        if role == "assistant" && before != role {
            answers += 1;
        }
        before = role;
    }
    answers
}

/// The steps with gates in the middle of their texts.
fn with_gates(response: Step) -> Step {
    let Step::Response(steps) = response else {
        return response;
    };
    let steps = steps.into_iter().flat_map(|step| match step.value {
        Step::Say(text) => spoken(&text),
        other => vec![other],
    });
    Step::Response(steps.map(Placed::from).collect())
}

/// Text with `{{gate:NAME}}` in it. An opening without its end is text.
fn spoken(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = text;
    let say = |first: bool, text: &str| match first {
        true => Step::Say(text.to_owned()),
        false => Step::More(text.to_owned()),
    };
    while let Some((before, (name, behind))) = rest
        .split_once("{{gate:")
        .and_then(|(before, behind)| Some((before, behind.split_once("}}")?)))
    {
        steps.push(say(steps.is_empty(), before));
        steps.push(Wait::Gate(name.to_owned()).into());
        rest = behind;
    }
    steps.push(say(steps.is_empty(), rest));
    steps
}
