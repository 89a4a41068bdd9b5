//! The answer of a turn.

use std::fmt;

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::{JsonObject, OutputFormat};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cause::Cause;
use crate::error::{Error, Kind, Result};
use crate::outcome::{Outcome, Verdict};
use crate::usage::TurnUsage;

/// The answer of a turn, from [`Turn::answer`](crate::Turn::answer) and [`Options::query_text`](crate::Options::query_text): the
/// model's text, and the cost.
///
/// `T` is the text, or the requested type ([`Turn::answer_as`](crate::Turn::answer_as),
/// [`Options::query_as`](crate::Options::query_as)). Not every turn has an answer: see
/// [`Verdict::has_answer`](crate::Verdict::has_answer). `Display` writes the text.
#[derive(Debug, Clone)]
pub struct Answer<T = String> {
    value: T,
    text: String,
    outcome: Outcome,
    others: Vec<Outcome>,
    usage: TurnUsage,
}

impl Outcome {
    /// The answer, or the error that explains why there is none.
    ///
    /// The answer is the text of a turn that [`Completed`](Verdict::Completed), or the output of a
    /// [`LocalCommand`](Verdict::LocalCommand). See [`Verdict::has_answer`] for the others.
    ///
    /// # Errors
    /// When the turn has no answer; [`Error::outcome`] returns this outcome, and [`Error::cause`] is why the turn failed.
    pub fn answer(self) -> Result<Answer> {
        Answer::of(self)
    }

    /// The structured output as a `T`; see [`Options::output_as`](crate::Options::output_as).
    ///
    /// If the model wrote the object as text instead of structured output, or wrapped it in another object, that is accepted, too.
    ///
    /// # Errors
    /// When the turn failed, and when the output does not have the shape of `T` ([`Error::raw_output`] is the model's text). Both
    /// errors carry the outcome.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T> {
        read_output(self)?.map_err(|unfit| unfit.into_error(self.clone()))
    }
}

impl Answer {
    /// The answer of one turn.
    pub(crate) fn of(outcome: Outcome) -> Result<Self> {
        Self::of_run(outcome, Vec::new())
    }

    /// The answer of a turn and of those that its background work began. The last turn with a text has the text.
    pub(crate) fn of_run(outcome: Outcome, follow_ups: Vec<Outcome>) -> Result<Self> {
        if !outcome.verdict().has_answer() {
            return Err(Error::turn_failed(outcome));
        }
        if let Some(failed) = follow_ups.iter().find(|outcome| !outcome.is_success()) {
            return Err(Error::turn_failed(failed.clone()));
        }
        let says = |turn: &&Outcome| turn.verdict().has_answer() && !turn.result_text().is_empty();
        let last = follow_ups.iter().rev().find(says).unwrap_or(&outcome);
        let text = last.result_text().to_owned();
        Ok(Self::with(text.clone(), text, outcome, follow_ups))
    }
}

impl<T> Answer<T> {
    fn with(value: T, text: String, outcome: Outcome, others: Vec<Outcome>) -> Self {
        let mut usage = outcome.usage().clone();
        for other in &others {
            usage.add(other.usage());
        }
        Self {
            value,
            text,
            outcome,
            others,
            usage,
        }
    }

    /// The text, or the value of the type.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Returns the text, or the value of the type.
    pub fn into_value(self) -> T {
        self.value
    }

    /// The model's text. With a value of a type it is often empty, or the value as JSON.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The usage, of all models together and of each.
    ///
    /// It is that of one turn; for a query also of the turns that its background work began, and of the turn in which the answer
    /// was repaired.
    pub fn usage(&self) -> &TurnUsage {
        &self.usage
    }

    /// The cost in US dollars, by the CLI's price table, of the same turns as [`usage`](Self::usage).
    pub fn cost(&self) -> f64 {
        self.usage.cost_usd
    }

    /// How the turn ended.
    ///
    /// For [`query_as`](crate::Options::query_as) this is the turn with the value, for other queries the prompt's own turn.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The outcomes of the other turns of a query: those that its background work began, or the turn whose answer did not fit.
    /// Empty for the answer of one turn.
    pub fn other_outcomes(&self) -> &[Outcome] {
        &self.others
    }

    /// The ids of all prompts that this answers; see [`Outcome::prompts`].
    pub fn prompts(&self) -> &[String] {
        self.outcome.prompts()
    }

    /// The id of the session; see [`Outcome::session_id`].
    pub fn session_id(&self) -> Option<&str> {
        self.outcome.session_id()
    }
}

impl<T: DeserializeOwned> Answer<T> {
    /// The answer of a turn whose output is a `T`, and of the turns before it. The inner error is a misfit of the output.
    pub(crate) fn of_output(
        outcome: Outcome,
        others: Vec<Outcome>,
    ) -> Result<std::result::Result<Self, Unfit>> {
        Ok(read_output(&outcome)?.map(|value| {
            let text = outcome.result_text().to_owned();
            Self::with(value, text, outcome, others)
        }))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.value)
    }
}

/// The JSON schema of a type, for the CLI.
pub(crate) fn schema_of<T: JsonSchema>() -> OutputFormat {
    let mut schema = schemars::schema_for!(T);
    OutputFormat::JsonSchema {
        schema: JsonObject::from(std::mem::take(schema.ensure_object())),
    }
}

/// An answer that does not have the required shape.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) text: String,
    pub(crate) reason: String,
}

impl Unfit {
    pub(crate) fn into_error(self, outcome: Outcome) -> Error {
        Error::new(Kind::Output {
            text: self.text,
            reason: self.reason,
            outcome,
        })
    }
}

/// Decodes the structured output. The outer error is that of a turn without an answer.
pub(crate) fn read_output<T: DeserializeOwned>(outcome: &Outcome) -> Result<std::result::Result<T, Unfit>> {
    let text = outcome.result_text();
    let unfit = |reason: String, said: &str| {
        Ok(Err(Unfit {
            text: said.to_owned(),
            reason,
        }))
    };
    match outcome.verdict() {
        Verdict::Failed(Cause::NoStructuredOutput) => {}
        Verdict::Failed(Cause::StructuredOutput) => return unfit(outcome.errors().join("; "), text),
        verdict if verdict.has_answer() => {}
        _ => return Err(Error::turn_failed(outcome.clone())),
    }
    let output = match outcome.structured_output() {
        Some(output) => output.clone(),
        // Some models write the object out instead of calling the tool for it.
        None => match json_in(text) {
            Some(output) => output,
            None => return unfit("there is no structured output".to_owned(), text),
        },
    };
    match output.decode::<T>() {
        Ok(value) => Ok(Ok(value)),
        Err(error) => match unwrapped(&output).and_then(|inner| serde_json::from_value(inner).ok()) {
            Some(value) => Ok(Ok(value)),
            None => unfit(error.to_string(), output.get()),
        },
    }
}

/// The JSON object in a text, perhaps in a code fence.
fn json_in(text: &str) -> Option<RawJson> {
    let body = text
        .find('{')
        .zip(text.rfind('}'))
        .and_then(|(from, to)| text.get(from..=to))?;
    RawJson::from_text(body).ok()
}

/// The value inside of `{"output": …}` and the like, or of a JSON string that holds JSON.
fn unwrapped(output: &RawJson) -> Option<Value> {
    match output.to_value().ok()? {
        Value::Object(fields) if fields.len() == 1 => match fields.into_iter().next()? {
            (_, Value::String(text)) => serde_json::from_str(&text).ok(),
            (_, value) => Some(value),
        },
        Value::String(text) => serde_json::from_str(&text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Around;
    use outrigger_protocol::Frame;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Point {
        x: i32,
        y: i32,
    }

    fn read(fields: &str) -> std::result::Result<Point, String> {
        let line = format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":1,{fields}}}"#
        );
        let frame = Frame::from_line(line.into_bytes()).remove(0);
        let outcome = Outcome::of_result(
            &frame,
            TurnUsage::default(),
            Vec::new(),
            &Around {
                wanted_output: true,
                ..Around::default()
            },
        );
        read_output(&outcome).unwrap().map_err(|unfit| unfit.text)
    }

    #[test]
    fn output_is_taken_from_where_models_put_it() {
        let point = Ok(Point { x: 1, y: 2 });
        assert_eq!(read(r#""result":"","structured_output":{"x":1,"y":2}"#), point);
        assert_eq!(
            read(r#""result":"","structured_output":{"output":{"x":1,"y":2}}"#),
            point
        );
        assert_eq!(
            read(r#""result":"","structured_output":{"output":"{\"x\":1,\"y\":2}"}"#),
            point
        );
        assert_eq!(
            read(r#""result":"","structured_output":"{\"x\":1,\"y\":2}""#),
            point
        );
        assert_eq!(
            read(r#""result":"Sure:\n```json\n{\"x\":1,\"y\":2}\n```""#),
            point
        );
    }

    #[test]
    fn what_does_not_fit_is_given_back() {
        assert_eq!(
            read(r#""result":"","structured_output":{"x":1}"#),
            Err(r#"{"x":1}"#.to_owned())
        );
        assert_eq!(
            read(r#""result":"I would rather not""#),
            Err("I would rather not".to_owned())
        );
    }

    fn turn(fields: &str, cost: f64) -> Outcome {
        let frame = Frame::from_line(format!(r#"{{"type":"result",{fields}}}"#).into_bytes()).remove(0);
        let usage = TurnUsage {
            cost_usd: cost,
            ..TurnUsage::default()
        };
        Outcome::of_result(&frame, usage, Vec::new(), &Around::default())
    }

    #[test]
    fn a_run_says_what_its_last_turn_said_and_costs_what_all_did() {
        let said = |text: &str, cost| {
            let fields = format!(
                r#""subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":1,"result":"{text}""#
            );
            turn(&fields, cost)
        };
        let answer =
            Answer::of_run(said("I'll wait", 0.5), vec![said("found", 0.25), said("", 1.0)]).unwrap();
        assert_eq!(answer.text(), "found");
        assert_eq!(answer.cost(), 1.75);
        assert_eq!(answer.outcome().cost(), 0.5);
        assert_eq!(answer.other_outcomes().len(), 2);

        // What the background work failed at is no answer either.
        let failed = turn(
            r#""subtype":"success","is_error":true,"terminal_reason":"api_error","api_error_status":529,"result":"API Error: 529""#,
            0.0,
        );
        let error = Answer::of_run(said("I'll wait", 0.5), vec![failed]).unwrap_err();
        assert_eq!(error.cause(), Some(Cause::Api { status: Some(529) }));
        assert_eq!(error.outcome().unwrap().error_text(), Some("API Error: 529"));
    }
}
