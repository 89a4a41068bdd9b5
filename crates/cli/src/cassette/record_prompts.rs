//! `outrigger record --prompt`: a session that is had in order to be recorded.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use outrigger::testing::Recording;
use outrigger::{Local, Session};
use outrigger_sim::cassette::RedactionRules;

use super::Redaction;
use super::cassette_draft::CassetteDraft;
use crate::agent::AgentArgs;
use crate::ask::Responder;
use crate::exit::{CommandResult, Failure, Status};
use crate::paint::Paint;
use crate::screen::{Screen, note};
use crate::signals::{Signals, Watchman};

/// How long agents in the background may take once a turn is over.
const BACKGROUND: Duration = Duration::from_secs(600);

/// Says these prompts, one behind the other, and records what passes.
pub(super) async fn record(
    prompts: &[String],
    agent: &AgentArgs,
    output: Option<&Path>,
    redaction: &Redaction,
) -> CommandResult {
    let mut screen = Screen::new(true, agent.verbose, agent.quiet);
    let asking = if agent.no_ask {
        Responder::nobody()
    } else {
        Responder::at_terminal()
    };
    let options = agent.read()?.hosted(&asking, &screen);
    let mut signals = Signals::catch()?;
    let draft = CassetteDraft::begin(output)?;
    let recording = Recording::new(Local::new(), draft.path()).rules(redaction.rules(RedactionRules::new())?);
    let options = options.transport(recording.clone());
    let session = tokio::select! {
        started = options.start() => started.map_err(Failure::of_start)?,
        signal = signals.next() => return Ok(signal.status()),
    };
    // A session that did not begin is no recording.
    draft
        .put()
        .with_context(|| format!("cannot put the recording {} in its place", draft.path().display()))?;
    let file = draft.path();
    let paint = screen.paint();
    let watchman = Watchman::post(signals, session.clone(), move |text| note(text, paint));
    let said = say(prompts, &session, &mut screen).await;
    let closed = session.close().await;
    let kept = recording.finish();
    if let Some(status) = watchman.status() {
        return Ok(status);
    }
    said?;
    closed?;
    kept.map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    note(
        &format!("recorded in {}", file.display()),
        Paint::on(&std::io::stderr()),
    );
    Ok(Status::Success)
}

async fn say(prompts: &[String], session: &Session, screen: &mut Screen) -> Result<(), Failure> {
    for prompt in prompts {
        let mut turn = session.prompt(prompt.as_str()).await?;
        while let Some(event) = turn.next().await {
            screen.event(&event?)?;
        }
        let outcome = turn.outcome().await?;
        screen.begin_turn();
        screen.end_line()?;
        if !outcome.is_success() {
            outcome.answer()?;
        }
        // What it left in the background belongs to it, and so does that the CLI says that it rests.
        match session.wait_run_end(BACKGROUND).await {
            // What was recorded so far is right, and so is what follows.
            Err(error) if error.is_timeout() && error.stalled().is_none() => note(
                "background work goes on for more than ten minutes; the recording waits no longer for it",
                screen.paint(),
            ),
            ended => ended?,
        }
    }
    Ok(())
}
