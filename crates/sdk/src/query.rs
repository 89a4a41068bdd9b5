//! One prompt, one answer: the short way.

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::answer::{self, Answer};
use crate::env::Surroundings;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::event::Event;
use crate::location;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::peer::{BoxFuture, Exit};
use crate::prompt::Prompt;
use crate::session::{Session, Turn};
use crate::streams::{Ambient, AmbientEvent};

/// How long the agents that a turn left in the background may take: the CLI's own ceiling, and the variable that changes it.
const RUN_CEILING: Duration = Duration::from_secs(600);
const RUN_CEILING_MS: &str = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS";

/// A one-shot query that is over: the prompt's own turn, and the turns that its background work began.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run {
    /// The outcome of the prompt's own turn.
    pub outcome: Outcome,
    /// The outcomes of the turns that its background work began, in order.
    pub follow_ups: Vec<Outcome>,
    /// Whether background work took longer than the CLI's ceiling, and was ended with the process.
    pub ceiling_reached: bool,
    /// How the process ended.
    pub exit: Exit,
}

impl Run {
    /// The answer: the text of the last turn with a text, and the cost of the whole run.
    ///
    /// # Errors
    /// When the prompt's own turn has no answer, or a turn that its background work began failed: [`Error::outcome`] is that turn's.
    pub fn answer(self) -> Result<Answer> {
        Answer::of_run(self.outcome, self.follow_ups)
    }

    /// What the whole run cost in US dollars, by the CLI's price table, whether it succeeded or not.
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
    ceiling: Option<Duration>,
    outcome: Option<Outcome>,
    follow_ups: Vec<Outcome>,
    ceiling_reached: bool,
    /// The CLI is done; some events are not emitted yet.
    run_over: bool,
    over: bool,
}

impl Query {
    /// The next event: of the prompt's own turn, then of those that its background work begins. `None` when the run is over.
    ///
    /// The run is also over when background work alone takes longer than the ceiling that the CLI has for it: 10 minutes, or
    /// `CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS` in the environment of the CLI (0: no ceiling). [`Run::ceiling_reached`] says so.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was not returned is returned by the next call.
    ///
    /// # Errors
    /// When the session ends too early. An error is the last element.
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

    /// Boxed, so that the future is compiled with this crate and not with each that awaits it.
    #[inline(never)]
    fn advance(&mut self) -> BoxFuture<'_, Result<Option<Event>>> {
        Box::pin(self.advance_now())
    }

    async fn advance_now(&mut self) -> Result<Option<Event>> {
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
                    match ended {
                        // What the turns answered counts all the same.
                        Err(error) if error.is_timeout() && !error.is_closed() => self.ceiling_reached = true,
                        ended => ended?,
                    }
                    // What came before the end may have come since the events were looked at.
                    self.run_over = true;
                }
                () = std::future::ready(()), if self.run_over => return Ok(self.ambient.last()),
            }
        }
    }

    /// Waits for the end of the run, ends the process, and returns the outcomes of the turns. Events that were not read are dropped.
    ///
    /// A failed turn is not an error here; [`Run::answer`] makes it one.
    ///
    /// # Cancel safety
    /// Dropping the future ends the process, as dropping the query does.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn finish(self) -> Result<Run> {
        self.finish_boxed().await
    }

    #[inline(never)]
    fn finish_boxed(self) -> BoxFuture<'static, Result<Run>> {
        Box::pin(self.finish_now())
    }

    async fn finish_now(mut self) -> Result<Run> {
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
            ceiling_reached,
            ..
        } = self;
        drop((turn, ambient));
        let exit = session.close().await?;
        Ok(Run {
            outcome,
            follow_ups,
            ceiling_reached,
            exit,
        })
    }

    /// The session of the query, for control requests.
    pub fn session(&self) -> &Session {
        &self.session
    }
}

impl Options {
    /// Starts an agent, sends one prompt, and streams the events until the end of the run.
    ///
    /// # Cancel safety
    /// Dropping the future ends what was started.
    ///
    /// # Errors
    /// As [`start`](Self::start) and [`Session::prompt`].
    pub async fn query(self, prompt: impl Into<Prompt>) -> Result<Query> {
        self.query_boxed(prompt.into()).await
    }

    #[inline(never)]
    fn query_boxed(self, prompt: Prompt) -> BoxFuture<'static, Result<Query>> {
        Box::pin(self.query_now(prompt))
    }

    async fn query_now(self, prompt: Prompt) -> Result<Query> {
        let ceiling = self.run_ceiling();
        let session = self.start().await?;
        let ambient = session.ambient();
        let turn = session.prompt(prompt).await?;
        Ok(Query {
            session,
            turn,
            ambient,
            ceiling,
            outcome: None,
            follow_ups: Vec::new(),
            ceiling_reached: false,
            run_over: false,
            over: false,
        })
    }

    /// The ceiling for background work that the CLI reads from its environment.
    fn run_ceiling(&self) -> Option<Duration> {
        let set = location::variable(self, &Surroundings::of_this_process(), RUN_CEILING_MS);
        match set.and_then(|value| value.to_str()?.trim().parse().ok()) {
            Some(0) => None,
            Some(ms) => Some(Duration::from_millis(ms)),
            None => Some(RUN_CEILING),
        }
    }

    /// Starts an agent, sends one prompt, and returns the answer.
    ///
    /// It waits for the background agents of the turn, as long as [`Query::next`] says: the text is that of the last turn with a text,
    /// and the cost is that of all turns.
    ///
    /// ```no_run
    /// # async fn example() -> outrigger::Result<()> {
    /// let answer = outrigger::Agent::builder().query_text("What does the build script do?").await?;
    /// println!("{answer}");
    /// eprintln!("${:.4}", answer.cost());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future ends the process.
    ///
    /// # Errors
    /// As [`query`](Self::query) and [`Run::answer`].
    pub async fn query_text(self, prompt: impl Into<Prompt>) -> Result<Answer> {
        self.query_text_boxed(prompt.into()).await
    }

    #[inline(never)]
    fn query_text_boxed(self, prompt: Prompt) -> BoxFuture<'static, Result<Answer>> {
        Box::pin(async move { self.query(prompt).await?.finish().await?.answer() })
    }

    /// Makes the turns of the session answer with a `T`: [`Turn::answer_as`] decodes it.
    ///
    /// Sets [`output_format`](Self::output_format) to the JSON schema of `T`. The schema has to be that of an object, so `T` is a
    /// struct or a map.
    ///
    /// ```no_run
    /// # async fn example() -> outrigger::Result<()> {
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Triage {
    ///     is_bug: bool,
    ///     why: String,
    /// }
    ///
    /// let session = outrigger::Agent::builder().output_as::<Triage>().start().await?;
    /// for report in ["It hangs.", "I want a feature."] {
    ///     let answer = session.prompt(report).await?.answer_as::<Triage>().await?;
    ///     println!("{}: {} (${:.4})", answer.value().is_bug, answer.value().why, answer.cost());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn output_as<T: JsonSchema>(self) -> Self {
        self.output_format(answer::schema_of::<T>())
    }

    /// Starts an agent, sends one prompt, and returns the answer as a `T`.
    ///
    /// The JSON schema is that of `T`, and the answer is validated by decoding it as `T`. If the answer does not fit, the SDK
    /// sends one prompt to repair it; the cost of that turn is part of the answer's.
    ///
    /// ```no_run
    /// # async fn example() -> outrigger::Result<()> {
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Release {
    ///     version: String,
    ///     breaking: bool,
    /// }
    ///
    /// let answer = outrigger::Agent::builder().query_as::<Release>("What does the changelog say of the last release?").await?;
    /// let release = answer.into_value();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The process ends with the turn of the answer, and so does background work that the turn began.
    ///
    /// # Cancel safety
    /// Dropping the future ends the process.
    ///
    /// # Errors
    /// As [`query`](Self::query); when the turn fails ([`Error::outcome`]); and when the repaired answer does not fit
    /// either ([`Error::raw_output`] is the model's text).
    pub async fn query_as<T: JsonSchema + DeserializeOwned>(
        self,
        prompt: impl Into<Prompt>,
    ) -> Result<Answer<T>> {
        let session = self.output_as::<T>().start().await?;
        let outcome = session.prompt(prompt).await?.outcome().await?;
        let answer = match Answer::of_output(outcome.clone(), Vec::new())? {
            Ok(answer) => answer,
            Err(unfit) => {
                let ask = format!(
                    "Your last answer is not of the required shape ({}). Give the answer again as structured output that fits the schema.",
                    unfit.reason
                );
                let repaired = session.prompt(Prompt::text(ask)).await?.outcome().await?;
                Answer::of_output(repaired.clone(), vec![outcome])?
                    .map_err(|unfit| unfit.into_error(repaired))?
            }
        };
        session.close().await?;
        Ok(answer)
    }
}
