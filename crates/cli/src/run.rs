//! `outrigger run`: one prompt, one answer.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::ValueEnum;
use outrigger::options::Options;
use outrigger::{AmbientEvent, Cause, Event, EventLine, Frames, Outcome, Session, Turn};

use crate::agent::{AgentArgs, schema};
use crate::ask::Responder;
use crate::config::ConfigArgs;
use crate::event_lines::write_event;
use crate::exit::{CommandResult, Failure, Status};
use crate::input::PromptInput;
use crate::paint::Paint;
use crate::report::{Report, final_text, text};
use crate::screen::{Phase, Screen, note};
use crate::signals::{Signals, Watchman};
use crate::telemetry::{OtelArgs, RunTelemetry};
use crate::{time, words};

/// What `outrigger run` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to ask; `-` or nothing reads it from standard input. With both, what is piped in is attached to the prompt.
    prompt: Option<String>,
    /// An image to show: PNG, JPEG, GIF or WebP. Can be repeated.
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,
    /// A file to attach: an image, a PDF, or any text. Can be repeated.
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,

    /// What goes to standard output.
    #[arg(long, value_enum, default_value = "stream", help_heading = "Output")]
    output: Output,
    /// Writes JSON lines to standard output: the CLI's frames as they came, or with `--json=events` the events made of them.
    #[arg(
        long,
        value_enum,
        value_name = "LINES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "frames",
        conflicts_with = "output",
        help_heading = "Output"
    )]
    json: Option<JsonLines>,
    /// A file with the JSON schema that the answer must fit; the answer is then written as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    schema: Option<PathBuf>,
    /// Shows the answer as the model writes it, without rendering its Markdown at a terminal.
    #[arg(long, help_heading = "Output")]
    plain: bool,
    /// Ends with the prompt's own turn, and does not wait for agents that it left in the background.
    #[arg(long, help_heading = "Output")]
    no_wait: bool,
    /// How long agents in the background may take once the turn is over, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, help_heading = "Limits")]
    wait_limit: u64,

    /// How long the whole run may take, such as `90s`, `10m` or `1h 30m`; the turn is interrupted then, and the session ended.
    #[arg(long, value_name = "DURATION", value_parser = time::duration, help_heading = "Limits")]
    timeout: Option<Duration>,

    #[command(flatten)]
    otel: OtelArgs,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    _config: ConfigArgs,
}

/// `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// The answer as it is written.
    Stream,
    /// The final text alone, at the end.
    Text,
    /// One JSON object at the end: text, verdict, cost, usage, …
    Json,
}

/// `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum JsonLines {
    /// The CLI's frames, byte for byte.
    Frames,
    /// The events, and how each turn ended.
    Events,
}

/// Asks, shows what happens, and waits until it is over.
pub(crate) async fn run(args: Args) -> CommandResult {
    let writes_events = args.writes_events();
    let (telemetry, quiet) = (args.otel.begin()?, args.agent.quiet);
    let ran = answer(args, telemetry.as_ref()).await;
    if let Some(telemetry) = telemetry
        && let Err(error) = telemetry.end().await
        && !quiet
    {
        // What the run did counts, not who watched it.
        note(&format!("outrigger: {error}"), Paint::on(&io::stderr()));
    }
    if let Err(failure) = &ran
        && writes_events
        && let Some(error) = failure.error.downcast_ref::<outrigger::Error>()
    {
        let report = error.report();
        // How a turn failed was told at its end.
        if report.kind != "turn_failed" {
            write_line(&EventLine::Error(Box::new(report)))?;
        }
    }
    ran
}

async fn answer(args: Args, telemetry: Option<&RunTelemetry>) -> CommandResult {
    let mut screen = Screen::new(args.streams(), args.agent.verbose, args.agent.quiet)
        .live(args.plain)
        .showing_place(args.agent.is_in_worktree());
    let mut options = args.options(&screen)?;
    let started = Instant::now();
    let mut signals = Signals::catch()?.within(args.timeout);
    screen.waits(Phase::Starting);
    let early = async {
        let asked = PromptInput::read(args.prompt.clone()).await?;
        if let Some(telemetry) = telemetry {
            options = telemetry.options(options);
        }
        let session = options.start().await.map_err(Failure::of_start)?;
        if let Some(telemetry) = telemetry {
            telemetry.observe(&session);
        }
        Ok::<_, Failure>((asked, session))
    };
    let (asked, session) = tokio::select! {
        started = early => started?,
        signal = signals.next() => return Ok(signal.status()),
    };
    // From here on the session ends itself in time.
    session.set_run_deadline(args.timeout.map(|time| time.saturating_sub(started.elapsed())));
    let signals = signals.later();
    warn_of_version(&session, &mut screen)?;
    let (paint, quiet) = (screen.paint(), args.agent.quiet);
    let mut watchman = Watchman::post(signals, session.clone(), move |text| {
        if !quiet {
            note(text, paint);
        }
    });

    let frames = (args.json == Some(JsonLines::Frames)).then(|| {
        let (frames, session) = (session.frames(), session.clone());
        tokio::spawn(async move {
            let written = write_frames(frames).await;
            if written.is_err() {
                // Nobody sees what the agent would do. How the session ended is told by whoever reads the turn.
                let _ = session.close().await;
            }
            written
        })
    });
    let began = Instant::now();
    let turns = ask(&args, asked, &session, &mut screen, &mut watchman).await;
    let took = began.elapsed();
    // A turn that ended is told of whatever happens now; one that did not is ended by this.
    let closed = session.clone().close().await;
    if let Some(frames) = frames {
        frames.await.context("the writer of frames failed")??;
    }
    let turns = match (turns, watchman.status()) {
        (Ok(turns), _) => turns,
        // The session died of the signal.
        (Err(failure), Some(status)) if !failure.is_broken_pipe() => return Ok(status),
        (Err(failure), _) => return Err(failure),
    };

    let report = Report::new(&session, &turns.outcome, &turns.follow_ups, took);
    args.finish(&report, &turns, &mut screen)?;
    screen.note(&report.summary())?;
    if let Some(status) = watchman.status() {
        return Ok(status);
    }
    if turns.timed_out {
        return Ok(Status::TimedOut);
    }
    if !turns.outcome.is_success() {
        turns.outcome.clone().answer()?;
    }
    if turns.out_of_time {
        return Err(Failure::new(
            Status::Limit,
            anyhow::anyhow!(
                "agents in the background took longer than {} s (--wait-limit), and were ended",
                args.wait_limit
            ),
        ));
    }
    closed?;
    Ok(Status::Success)
}

/// Says what does not work with the CLI, if that is too old for something.
pub(crate) fn warn_of_version(session: &Session, screen: &mut Screen) -> io::Result<()> {
    let Some(version) = session.cli_version() else {
        return Ok(());
    };
    let lacks = version.lacks();
    if lacks.is_empty() {
        return Ok(());
    }
    screen.note(&format!(
        "warning: Claude Code {version} is old: {}; update Claude Code",
        lacks.join("; ")
    ))
}

/// Says what may not be meant about the prompt of a turn; `way_on` is how a command is run that was sent as text.
pub(crate) fn warn_of_prompt(turn: &Turn, way_on: &str, screen: &mut Screen) -> io::Result<()> {
    let mut warnings = turn.warnings().iter();
    warnings.try_for_each(|warning| screen.note(&words::warning(warning, way_on)))
}

/// The turns of a run.
struct Turns {
    outcome: Outcome,
    follow_ups: Vec<Outcome>,
    /// Background work was not over in time.
    out_of_time: bool,
    /// The time of `--timeout` was over.
    timed_out: bool,
}

/// Whether the time of `--timeout` was over.
fn is_timeout(error: &outrigger::Error) -> bool {
    error.cause() == Some(Cause::DeadlinePassed)
}

async fn ask(
    args: &Args,
    asked: PromptInput,
    session: &Session,
    screen: &mut Screen,
    watchman: &mut Watchman,
) -> Result<Turns, Failure> {
    let way_on = asked.way_on();
    let prompt = asked.prompt(session, &args.image, &args.file).await?;
    let mut ambient = session.ambient();
    let mut turn = session.prompt(prompt).await?;
    warn_of_prompt(&turn, way_on, screen)?;
    screen.waits(Phase::Waiting);
    while let Some(event) = turn.next().await {
        match event {
            Err(error) if is_timeout(&error) => break,
            event => args.emit(event?, screen)?,
        }
    }
    let (outcome, timed_out) = match turn.outcome().await {
        // The interrupted turn.
        Err(error) if is_timeout(&error) && !error.is_closed() => match error.outcome() {
            Some(outcome) => (outcome.clone(), true),
            None => return Err(error.into()),
        },
        outcome => (outcome?, false),
    };
    let mut turns = Turns {
        outcome,
        follow_ups: Vec::new(),
        out_of_time: false,
        timed_out,
    };
    args.end_turn(screen, &turns.outcome)?;
    show_background(screen, session);
    if args.no_wait || timed_out || watchman.status().is_some() {
        return Ok(turns);
    }

    let limit = Duration::from_secs(args.wait_limit);
    let mut told = false;
    let over = session.wait_run_end(limit);
    tokio::pin!(over);
    loop {
        tokio::select! {
            biased;
            event = ambient.next() => match event {
                Some(AmbientEvent::Event(event)) => args.emit(event, screen)?,
                Some(AmbientEvent::TurnEnded(outcome)) => {
                    args.end_turn(screen, &outcome)?;
                    show_background(screen, session);
                    turns.follow_ups.push(outcome);
                }
                Some(_) => {}
                None => {
                    let error = session.wait_ended().await;
                    turns.timed_out = is_timeout(&error);
                    return if turns.timed_out { Ok(turns) } else { Err(error.into()) };
                }
            },
            ended = &mut over => {
                match ended {
                    Err(error) if is_timeout(&error) => turns.timed_out = true,
                    Err(error) if error.is_timeout() && !error.is_closed() => turns.out_of_time = true,
                    ended => ended?,
                }
                return Ok(turns);
            }
            () = watchman.done() => return Ok(turns),
            () = tokio::time::sleep(Duration::from_secs(1)), if !told => {
                told = true;
                for task in session.tasks().running().filter(|task| task.is_agent()) {
                    screen.note(&format!("waiting for a background agent: {}", task.description))?;
                }
            }
        }
    }
}

/// The turn is over; agents in the background may not be.
fn show_background(screen: &Screen, session: &Session) {
    screen.rests();
    let tasks = session.tasks();
    let agents: Vec<&str> = tasks
        .running()
        .filter(|task| task.is_agent())
        .map(|task| task.description.as_str())
        .collect();
    match agents.as_slice() {
        [] => {}
        [only] => screen.waits(Phase::Background(format!("a background agent: {only}"))),
        several => screen.waits(Phase::Background(format!("{} background agents", several.len()))),
    }
}

impl Args {
    /// Whether the answer is written as it comes.
    fn streams(&self) -> bool {
        self.output == Output::Stream && self.json.is_none() && self.schema.is_none()
    }

    fn writes_events(&self) -> bool {
        self.json == Some(JsonLines::Events)
    }

    /// Shows an event.
    fn emit(&self, event: Event, screen: &mut Screen) -> io::Result<()> {
        screen.event(&event)?;
        if self.writes_events() {
            write_line(&EventLine::Event(event))?;
        }
        Ok(())
    }

    /// Ends what a turn wrote. What was not streamed (the output of a local command) is written whole.
    fn end_turn(&self, screen: &mut Screen, outcome: &Outcome) -> io::Result<()> {
        if !screen.said_any() {
            screen.say(text(outcome))?;
        }
        screen.begin_turn();
        screen.end_line()?;
        if self.writes_events() {
            write_line(&EventLine::TurnEnded(outcome.clone()))?;
        }
        Ok(())
    }

    fn options(&self, screen: &Screen) -> Result<Options, Failure> {
        let asking = if self.agent.no_ask {
            Responder::nobody()
        } else {
            Responder::at_terminal()
        };
        let options = self.agent.read()?.hosted(&asking, screen);
        let Some(path) = &self.schema else {
            return Ok(options);
        };
        Ok(options.output_format(schema(path)?))
    }

    /// Writes what belongs on stdout at the end.
    fn finish(&self, report: &Report, turns: &Turns, screen: &mut Screen) -> Result<(), Failure> {
        if self.json.is_some() {
            return Ok(());
        }
        if self.output == Output::Json {
            let mut line = serde_json::to_vec(report)?;
            line.push(b'\n');
            io::stdout().write_all(&line)?;
        } else if self.schema.is_some() {
            if let Some(output) = turns.outcome.structured_output() {
                writeln!(io::stdout(), "{}", output.get())?;
            }
        } else if self.output == Output::Text && turns.outcome.is_success() {
            screen.print(final_text(&turns.outcome, &turns.follow_ups))?;
            screen.end_line()?;
        }
        Ok(())
    }
}

/// Writes an event, at once.
fn write_line(line: &EventLine) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    write_event(&mut stdout, &[], line)?;
    stdout.flush()
}

/// Writes every frame as it came. The frames end with the session.
async fn write_frames(mut frames: Frames) -> io::Result<()> {
    while let Some(frame) = frames.next().await {
        match frame {
            Ok(frame) => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(frame.bytes())?;
                stdout.write_all(b"\n")?;
                stdout.flush()?;
            }
            Err(lag) => note(
                &format!("outrigger: standard output is too slow: {lag}"),
                Paint::on(&io::stderr()),
            ),
        }
    }
    Ok(())
}
