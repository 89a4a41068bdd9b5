//! One prompt, one answer: the short way.

use std::time::Duration;

use outrigger_protocol::RawJson;
use outrigger_protocol::shared::{JsonObject, OutputFormat};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Kind, Result};
use crate::event::Event;
use crate::options::Options;
use crate::outcome::{Outcome, Verdict};
use crate::prompt::Prompt;
use crate::session::Session;
use crate::streams::{Ambient, AmbientEvent};
use crate::transport::Exit;
use crate::turn::Turn;

/// How long the agents that a turn left in the background may take: the CLI's own ceiling.
const RUN_CEILING: Duration = Duration::from_secs(600);

/// The answer to a one-shot query: the prompt's own turn, and the turns that its background work began.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Answer {
    /// The outcome of the prompt's own turn.
    pub outcome: Outcome,
    /// The outcomes of the turns that its background work began, in order.
    pub follow_ups: Vec<Outcome>,
    /// How the process ended.
    pub exit: Exit,
}

impl Answer {
    /// The final text: that of the last turn that said anything.
    pub fn text(&self) -> &str {
        let turns = || std::iter::once(&self.outcome).chain(&self.follow_ups);
        turns()
            .rev()
            .map(Outcome::text)
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    }

    /// What the whole run cost in US dollars.
    pub fn cost(&self) -> f64 {
        std::iter::once(&self.outcome)
            .chain(&self.follow_ups)
            .map(Outcome::cost)
            .sum()
    }
}

/// A one-shot query that is running: a stream of what happens until the run ends.
///
/// Dropping it ends the process.
#[derive(Debug)]
pub struct Query {
    session: Session,
    turn: Turn,
    ambient: Ambient,
    ceiling: Duration,
    outcome: Option<Outcome>,
    follow_ups: Vec<Outcome>,
    /// The CLI is done; what it said is still to be told.
    run_over: bool,
    over: bool,
}

impl Query {
    /// The next event: of the prompt's own turn, then of those that its background work begins. `None` when the run is over.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was not returned is returned by the next call.
    ///
    /// # Errors
    /// When the session ends too early, or the background work takes longer than the ceiling (10 minutes unless set). An
    /// error is the last element.
    pub async fn next(&mut self) -> Option<Result<Event>> {
        if self.over {
            return None;
        }
        match self.advance().await {
            Ok(Some(event)) => Some(Ok(event)),
            Ok(None) => {
                self.over = true;
                None
            }
            Err(error) => {
                self.over = true;
                Some(Err(error))
            }
        }
    }

    async fn advance(&mut self) -> Result<Option<Event>> {
        if self.outcome.is_none() {
            if let Some(event) = self.turn.next().await {
                return event.map(Some);
            }
            self.outcome = Some(self.turn.outcome().await?);
        }
        loop {
            tokio::select! {
                biased;
                event = self.ambient.next() => match event {
                    Some(AmbientEvent::Event(event)) => return Ok(Some(event)),
                    Some(AmbientEvent::TurnEnded(outcome)) => self.follow_ups.push(outcome),
                    None => return Err(self.session.wait_ended().await),
                },
                ended = self.session.wait_run_end(self.ceiling), if !self.run_over => {
                    ended?;
                    // What came before the end may have come since the events were looked at.
                    self.run_over = true;
                }
                () = std::future::ready(()), if self.run_over => return Ok(self.ambient.last()),
            }
        }
    }

    /// Waits for the end of the run, ends the process, and returns the answer. Events that were not taken are let go.
    ///
    /// # Cancel safety
    /// Dropping the future ends the process, as dropping the query does.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn finish(mut self) -> Result<Answer> {
        while let Some(event) = self.next().await {
            event?;
        }
        let Some(outcome) = self.outcome.take() else {
            return Err(self.session.wait_ended().await);
        };
        let Self {
            session,
            turn,
            ambient,
            follow_ups,
            ..
        } = self;
        drop((turn, ambient));
        let exit = session.close().await?;
        Ok(Answer {
            outcome,
            follow_ups,
            exit,
        })
    }

    /// The session that carries it out, for control requests.
    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl Options {
    /// Starts an agent, asks it one thing, and streams what happens until the run is over.
    ///
    /// # Cancel safety
    /// Dropping the future ends what was started.
    ///
    /// # Errors
    /// As [`start`](Self::start) and [`Session::prompt`].
    pub async fn query(self, prompt: impl Into<Prompt>) -> Result<Query> {
        let session = self.start().await?;
        let ambient = session.ambient();
        let turn = session.prompt(prompt).await?;
        Ok(Query {
            session,
            turn,
            ambient,
            ceiling: RUN_CEILING,
            outcome: None,
            follow_ups: Vec::new(),
            run_over: false,
            over: false,
        })
    }

    /// Starts an agent, asks it one thing, and returns its final text.
    ///
    /// "Final" is after the agents that the turn left in the background have reported.
    ///
    /// # Cancel safety
    /// Dropping the future ends the process.
    ///
    /// # Errors
    /// As [`query`](Self::query), and when the turn does not succeed ([`Error::outcome`]).
    pub async fn query_text(self, prompt: impl Into<Prompt>) -> Result<String> {
        let answer = self.query(prompt).await?.finish().await?;
        let text = answer.text().to_owned();
        answer.outcome.into_success()?;
        Ok(text)
    }

    /// Starts an agent, asks it one thing, and returns the answer as a `T`.
    ///
    /// The JSON schema comes from `T`, and the answer is validated by reading it as `T`. An answer that does not fit gets
    /// one turn to be repaired.
    ///
    /// ```no_run
    /// # async fn example() -> outrigger::Result<()> {
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Release {
    ///     version: String,
    ///     breaking: bool,
    /// }
    ///
    /// let release: Release = outrigger::Agent::builder().query_as("What does the changelog say of the last release?").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future ends the process.
    ///
    /// # Errors
    /// As [`query`](Self::query); when the turn fails ([`Error::outcome`]); and when the repaired answer does not fit
    /// either ([`Error::raw_output`] is what the model said).
    pub async fn query_as<T: JsonSchema + DeserializeOwned>(self, prompt: impl Into<Prompt>) -> Result<T> {
        let session = self.output_format(schema_of::<T>()?).start().await?;
        let mut turn = session.prompt(prompt).await?;
        let mut outcome = turn.outcome().await?;
        let value = match read_output(&outcome)? {
            Ok(value) => value,
            Err(unfit) => {
                let ask = format!(
                    "Your last answer is not of the required shape ({}). Give the answer again as structured output that fits the schema.",
                    unfit.reason
                );
                turn = session.prompt(Prompt::text(ask)).await?;
                outcome = turn.outcome().await?;
                read_output(&outcome)?.map_err(|unfit| {
                    Error::new(Kind::Output {
                        text: unfit.text,
                        reason: unfit.reason,
                    })
                })?
            }
        };
        drop(turn);
        session.close().await?;
        Ok(value)
    }
}

fn schema_of<T: JsonSchema>() -> Result<OutputFormat> {
    let mut schema = schemars::schema_for!(T);
    // The API takes plain schemas; which draft they follow is not for it to know.
    schema.remove("$schema");
    let schema = JsonObject::encode(&schema).map_err(|error| {
        Error::invalid_because(format!("JSON schema of {}", std::any::type_name::<T>()), error)
    })?;
    Ok(OutputFormat::JsonSchema { schema })
}

/// An answer that is not of the required shape.
#[derive(Debug)]
struct Unfit {
    text: String,
    reason: String,
}

/// Reads the structured output; the outer error is a turn that failed for another reason.
fn read_output<T: DeserializeOwned>(outcome: &Outcome) -> Result<std::result::Result<T, Unfit>> {
    let text = outcome.text();
    let unfit = |reason: String, said: &str| {
        Ok(Err(Unfit {
            text: said.to_owned(),
            reason,
        }))
    };
    match outcome.verdict() {
        Verdict::Completed | Verdict::NoStructuredOutput => {}
        Verdict::StructuredOutputFailed => return unfit(outcome.errors().join("; "), text),
        _ => {
            outcome.clone().into_success()?;
        }
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
    use crate::usage::TurnUsage;
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
        let outcome = Outcome::of_result(&frame, TurnUsage::default(), Vec::new(), true);
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
}
