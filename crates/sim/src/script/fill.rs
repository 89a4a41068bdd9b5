//! Variables in the strings of steps: `{{name}}`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::assertion::Assert;
use super::place::Placed;
use super::step::{Ask, Call, ChoiceQuestion, Raw, Step};
use super::text::TextMatch;

/// What variables are worth.
pub(crate) type Variables = BTreeMap<String, String>;

/// The next `{{name}}` in a text: what stands before it, the name, what stands behind it. Other braces are text.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find("{{").map(|at| from + at) {
        let rest = &text[open + 2..];
        let length = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        if length > 0 && rest[length..].starts_with("}}") {
            return Some((&text[..open], &rest[..length], &rest[length + 2..]));
        }
        from = open + 1;
    }
    None
}

/// The names of the variables in a step, but not in the steps inside of it.
pub(super) fn names(step: &Step) -> Vec<String> {
    let mut found = Vec::new();
    // The walk is the same as for filling in, which needs a step of its own.
    strings(&mut step.clone(), &mut |text| {
        let mut rest = text.as_str();
        while let Some((_, name, behind)) = next(rest) {
            found.push(name.to_owned());
            rest = behind;
        }
    });
    found
}

/// Puts the values in the place of the variables. What has no value stays as it is.
pub(super) fn fill(step: &mut Step, variables: &Variables) {
    strings(step, &mut |text| {
        let mut filled = String::new();
        let mut rest = text.as_str();
        while let Some((before, name, behind)) = next(rest) {
            filled.push_str(before);
            match variables.get(name) {
                Some(value) => filled.push_str(value),
                None => filled.push_str(&rest[before.len()..rest.len() - behind.len()]),
            }
            rest = behind;
        }
        if !filled.is_empty() || rest.len() < text.len() {
            filled.push_str(rest);
            *text = filled;
        }
    });
}

type Visit<'a> = &'a mut dyn FnMut(&mut String);

fn strings(step: &mut Step, visit: Visit<'_>) {
    match step {
        Step::Say(text)
        | Step::More(text)
        | Step::Think(text)
        | Step::Plan(text)
        | Step::Redacted(text)
        | Step::ErrorEvent(text)
        | Step::StopReason(text)
        | Step::StopSequence(text)
        | Step::ContentType(text)
        | Step::Stderr(text)
        | Step::Raw(Raw::Line(text) | Raw::Event(text) | Raw::Block(text)) => visit(text),
        Step::Call(call) => in_call(call, visit),
        Step::Parallel(calls) => calls.iter_mut().for_each(|call| in_call(call, visit)),
        Step::Ask(ask) => match ask {
            Ask::Question(question) => in_question(question, visit),
            Ask::Questions(questions) => questions
                .iter_mut()
                .for_each(|question| in_question(question, visit)),
            Ask::Elicitation(asked) => {
                visit(&mut asked.server);
                visit(&mut asked.message);
                asked.schema.iter_mut().for_each(|schema| in_map(schema, visit));
            }
            Ask::Permission(asked) => {
                visit(&mut asked.tool);
                in_map(&mut asked.input, visit);
                asked
                    .suggestions
                    .iter_mut()
                    .for_each(|update| in_map(update, visit));
            }
            Ask::Request(request) => in_map(request, visit),
        },
        // Their steps are filled when their time comes.
        Step::Response(_) => {}
        Step::Subagent(subagent) => {
            visit(&mut subagent.description);
            subagent.prompt.iter_mut().for_each(&mut *visit);
            subagent.kind.iter_mut().for_each(visit);
        }
        Step::Background(background) => {
            visit(&mut background.command);
            visit(&mut background.output);
            background.description.iter_mut().for_each(visit);
        }
        Step::ApiError(error) => {
            error.message.iter_mut().for_each(&mut *visit);
            error.kind.iter_mut().for_each(&mut *visit);
            error.headers.values_mut().for_each(visit);
        }
        Step::RateLimit(limit) => {
            visit(&mut limit.status);
            visit(&mut limit.limit);
        }
        Step::Compact(compact) => visit(&mut compact.summary),
        Step::Headers(headers) => headers.values_mut().for_each(visit),
        Step::Block(block) | Step::Raw(Raw::Frame(block)) => in_map(block, visit),
        Step::Assert(assert) => in_assert(assert, visit),
        Step::Usage(_)
        | Step::Cost(_)
        | Step::Pace(_)
        | Step::Wait(_)
        | Step::Fault(_)
        | Step::Raw(Raw::Base64(_))
        | Step::Exit(_)
        | Step::Drop
        | Step::Cut
        | Step::Stall
        | Step::Truncated
        | Step::MalformedEvent => {}
    }
}

fn in_call(call: &mut Call, visit: Visit<'_>) {
    visit(&mut call.tool);
    in_map(&mut call.input, visit);
    call.result
        .iter_mut()
        .for_each(|result| each_string(result, visit));
    call.details
        .iter_mut()
        .for_each(|details| each_string(details, visit));
}

fn in_question(question: &mut ChoiceQuestion, visit: Visit<'_>) {
    visit(&mut question.question);
    question.header.iter_mut().for_each(&mut *visit);
    for choice in &mut question.options {
        visit(&mut choice.label);
        visit(&mut choice.description);
    }
}

fn in_assert(assert: &mut Assert, visit: Visit<'_>) {
    for text in [&mut assert.message, &mut assert.result].into_iter().flatten() {
        match text {
            TextMatch::Exact(text) | TextMatch::Contains(text) => visit(text),
            TextMatch::Regex(_) => {}
        }
    }
    let Assert {
        updated_input,
        hook,
        mcp,
        answer,
        received,
        ..
    } = assert;
    for pattern in [updated_input, hook, mcp, answer, received].into_iter().flatten() {
        each_string(pattern, visit);
    }
}

fn in_map(map: &mut Map<String, Value>, visit: Visit<'_>) {
    map.values_mut().for_each(|value| each_string(value, visit));
}

/// Visits all strings in a value; keys are none.
pub(crate) fn each_string(value: &mut Value, visit: Visit<'_>) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_string(item, visit)),
        Value::Object(map) => in_map(map, visit),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The steps inside a step, by the name of their field.
pub(super) fn inside(step: &Step) -> Vec<(&'static str, &[Placed<Step>])> {
    match step {
        Step::Response(steps) => vec![("response", steps)],
        Step::Subagent(subagent) => vec![("steps", &subagent.steps), ("then", &subagent.then)],
        Step::Background(background) => vec![("then", &background.then)],
        _ => Vec::new(),
    }
}
