//! `outrigger chat`: a conversation, a prompt at a time.

mod local;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use outrigger::{AmbientEvent, Error, Event, Outcome, Prompt, Session, Turn};
use tokio::sync::mpsc;

use crate::agent::{AgentArgs, ReadArgs, usage};
use crate::ask::Responder;
use crate::config::ConfigArgs;
use crate::exit::{CommandResult, Failure, Status};
use crate::input::{WITHOUT_BLANK, prompt_of};
use crate::keyboard::{Input, Keyboard, NOT_TEXT};
use crate::report::text;
use crate::run::{warn_of_prompt, warn_of_version};
use crate::screen::{Phase, Screen, console};
use crate::signals::{Signal, Signals};
use crate::words;

/// How many lines may wait for the turn before them. Beyond that a pipe waits, and a person is told that a line is dropped.
const WAITING: usize = 64;

/// What `outrigger chat` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long agents in the background may take once the input has ended, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, help_heading = "Limits")]
    wait_limit: u64,
    /// Shows the answer as the model writes it, without rendering its Markdown at a terminal.
    #[arg(long)]
    plain: bool,

    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    _config: ConfigArgs,
}

/// Talks until the input ends.
pub(crate) async fn run(args: Args) -> CommandResult {
    let read = args.agent.read()?;
    let mut signals = Signals::catch()?;
    let (keyboard, inputs) = Keyboard::of_stdin();
    let interactive = io::stdin().is_terminal();
    let talked = talk(&args, read, &mut signals, keyboard.clone(), inputs, interactive).await;
    keyboard.close().await;
    talked
}

async fn talk(
    args: &Args,
    read: ReadArgs,
    signals: &mut Signals,
    keyboard: Keyboard,
    inputs: mpsc::Receiver<Input>,
    interactive: bool,
) -> CommandResult {
    let asking = match (args.agent.no_ask, interactive) {
        (true, _) => Responder::nobody(),
        // Two readers of one terminal would take each other's lines.
        (false, true) => Responder::by(keyboard.clone()),
        (false, false) => Responder::at_terminal(),
    };
    let mut screen = Screen::new(true, args.agent.verbose, args.agent.quiet)
        .live(args.plain)
        .showing_place(args.agent.is_in_worktree());
    let options = read.hosted(&asking, &screen);
    let directory = options.cwd.clone().or_else(|| std::env::current_dir().ok());
    screen.waits(Phase::Starting);
    let session = tokio::select! {
        started = options.start() => started.map_err(Failure::of_start)?,
        signal = signals.next() => return Ok(signal.status()),
    };
    warn_of_version(&session, &mut screen)?;
    screen.rests();
    let mut chat = Chat {
        session: session.clone(),
        screen,
        keyboard,
        directory: directory.unwrap_or_default(),
        interactive,
        waiting: VecDeque::new(),
        unfinished: String::new(),
        turn: None,
        interrupts: 0,
        status: Status::Success,
        refused: None,
    };
    let talked = chat
        .talk(inputs, signals, Duration::from_secs(args.wait_limit))
        .await;
    let closed = session.close();
    tokio::pin!(closed);
    let closed = tokio::select! {
        closed = &mut closed => closed,
        _ = signals.next() => return Ok(Status::Interrupted),
    };
    let status = talked?;
    closed?;
    Ok(status)
}

struct Chat {
    session: Session,
    screen: Screen,
    keyboard: Keyboard,
    /// Where the names of files begin.
    directory: PathBuf,
    /// A person types; else lines come from a pipe.
    interactive: bool,
    waiting: VecDeque<String>,
    /// Lines that end in a backslash, until one comes that does not.
    unfinished: String,
    turn: Option<Turn>,
    /// How often Ctrl-C was pressed since the last line or turn.
    interrupts: u32,
    /// The status of the last turn that failed, for input that nobody types.
    status: Status,
    /// The line of such input that is no text, at which it ends.
    refused: Option<u64>,
}

/// How a command in piped input is run.
const AT_TERMINAL: &str = "typed at a terminal, it is run";

/// What a line asks this program to do next.
enum AfterLine {
    GoOn,
    Quit,
    /// A signal ends the program.
    Signalled(Status),
}

impl Chat {
    async fn talk(
        &mut self,
        mut inputs: mpsc::Receiver<Input>,
        signals: &mut Signals,
        limit: Duration,
    ) -> CommandResult {
        let session = self.session.clone();
        let mut ambient = session.ambient();
        let mut open = true;
        if self.interactive {
            let lines = match self.keyboard.edits() {
                true => "Alt-Enter, or a backslash at the end, begins another line; ",
                false => "",
            };
            self.screen
                .note(&format!("/help lists commands; {lines}Ctrl-D ends"))?;
        }
        self.show_prompt();
        loop {
            while self.turn.is_none()
                && let Some(line) = self.waiting.pop_front()
            {
                match self.begin(&line, signals).await? {
                    AfterLine::GoOn if self.turn.is_none() && self.waiting.is_empty() => self.show_prompt(),
                    AfterLine::GoOn => {}
                    AfterLine::Quit => return Ok(self.status),
                    AfterLine::Signalled(status) => return Ok(status),
                }
            }
            let busy = self.turn.is_some();
            // A person may be asked something, and answers with the keys that are read here.
            let takes = self.interactive || self.waiting.len() < WAITING;
            tokio::select! {
                input = inputs.recv(), if open && takes => match input {
                    Some(Input::Line(line)) => match self.line(&line, signals).await? {
                        AfterLine::GoOn => {}
                        AfterLine::Quit => return Ok(self.status),
                        AfterLine::Signalled(status) => return Ok(status),
                    },
                    Some(Input::NotText(_)) if self.interactive => {
                        self.screen.note(NOT_TEXT)?;
                        self.show_prompt();
                    }
                    Some(Input::NotText(line)) => {
                        open = false;
                        self.refused = Some(line);
                        // It was to go on in the line that is no text.
                        self.unfinished.clear();
                    }
                    Some(Input::Interrupt) => if let Some(status) = self.signal(Signal::Interrupt).await? {
                        return Ok(status);
                    },
                    Some(Input::End) | None => {
                        open = false;
                        let rest = std::mem::take(&mut self.unfinished);
                        if !rest.is_empty() {
                            self.waiting.push_back(rest);
                        }
                    }
                },
                event = next_of(&mut self.turn), if busy => match event {
                    Some(event) => self.screen.event(&event?)?,
                    None => self.end_turn().await?,
                },
                event = ambient.next() => match event {
                    Some(AmbientEvent::Event(event)) => self.ambient(&event)?,
                    Some(AmbientEvent::TurnEnded(outcome)) => {
                        self.ended(&outcome)?;
                        self.show_prompt();
                    }
                    Some(_) => {}
                    None => return Err(session.wait_ended().await.into()),
                },
                signal = signals.next() => if let Some(status) = self.signal(signal).await? {
                    return Ok(status);
                },
                ended = session.wait_run_end(limit), if !open && !busy => {
                    match ended {
                        Err(error) if error.is_timeout() && !error.is_closed() => self.screen.note("agents in the background are ended")?,
                        ended => ended?,
                    }
                    return match self.refused {
                        Some(line) => Err(usage(format!(
                            "line {line} of standard input is not UTF-8 text; it was not sent, nor was what follows it"
                        ))),
                        None => Ok(self.status),
                    };
                }
            }
        }
    }

    /// Takes a line: joins continued ones, and queues it. A person's commands to this program are not queued.
    async fn line(&mut self, line: &str, signals: &mut Signals) -> Result<AfterLine, Failure> {
        self.interrupts = 0;
        if let Some(begun) = line.strip_suffix('\\') {
            self.unfinished.push_str(begun);
            self.unfinished.push('\n');
            return Ok(AfterLine::GoOn);
        }
        let line = std::mem::take(&mut self.unfinished) + line;
        if line.trim().is_empty() {
            if self.turn.is_none() {
                self.show_prompt();
            }
            return Ok(AfterLine::GoOn);
        }
        if self.interactive && self.turn.is_some() && local::is_local(&line) {
            return self.begin(&line, signals).await;
        }
        if self.interactive && self.waiting.len() >= WAITING {
            self.screen
                .note(&format!("(not queued: {WAITING} messages wait already) {line}"))?;
            return Ok(AfterLine::GoOn);
        }
        if self.turn.is_some() && self.interactive {
            // It was not shown while it was typed.
            self.screen.note(&format!("(queued) {line}"))?;
        }
        self.waiting.push_back(line);
        Ok(AfterLine::GoOn)
    }

    /// Carries out a line: a command to this program, or a prompt. What nobody types is always a prompt: what is piped in may come from
    /// anywhere, and commands change what the agent may do.
    async fn begin(&mut self, line: &str, signals: &mut Signals) -> Result<AfterLine, Failure> {
        if !self.interactive {
            self.prompt(Prompt::text(line), AT_TERMINAL).await?;
            if let Some(turn) = &self.turn
                && turn.warnings().is_empty()
                && let Some(name) = local::name(line)
            {
                self.screen.note(&format!(
                    "warning: /{name} is a command of `outrigger chat`, and was sent as text; {AT_TERMINAL}"
                ))?;
            }
            return Ok(AfterLine::GoOn);
        }
        if local::read(line).is_none()
            && let Some(tip) = local::unknown(line, &self.session.command_names())
        {
            self.screen.end_line()?;
            console().err(&format!("{}\n", crate::plain::plain(&tip)));
            return Ok(AfterLine::GoOn);
        }
        match local::read(line) {
            Some(local::LocalCommand::Quit) => return Ok(AfterLine::Quit),
            Some(command) => {
                let said = tokio::select! {
                    said = command.run(&self.session) => said,
                    // The CLI may take long to reply, or for ever.
                    signal = signals.next() => {
                        if signal != Signal::Interrupt {
                            return Ok(AfterLine::Signalled(signal.status()));
                        }
                        self.screen.note("given up; the CLI may do it all the same")?;
                        return Ok(AfterLine::GoOn);
                    }
                };
                self.screen.end_line()?;
                match said {
                    Ok(said) => self.screen.print(&said)?,
                    Err(error) if error.is_closed() => return Err(error.into()),
                    Err(error) => self.show_error(error),
                }
                self.screen.end_line()?;
            }
            None => self.prompt(prompt_of(&self.session, line), WITHOUT_BLANK).await?,
        }
        Ok(AfterLine::GoOn)
    }

    /// Begins a turn; `way_on` is how a command is run that is sent as text.
    async fn prompt(&mut self, prompt: Prompt, way_on: &str) -> Result<(), Failure> {
        match self.session.prompt(prompt).await {
            Ok(turn) => {
                warn_of_prompt(&turn, way_on, &mut self.screen)?;
                self.turn = Some(turn);
                self.screen.waits(Phase::Waiting);
            }
            Err(error) if error.is_closed() => return Err(error.into()),
            Err(error) => self.show_error(error),
        }
        Ok(())
    }

    async fn end_turn(&mut self) -> Result<(), Failure> {
        self.interrupts = 0;
        if let Some(mut turn) = self.turn.take() {
            let outcome = turn.outcome().await?;
            self.ended(&outcome)?;
            if self.waiting.is_empty() {
                self.show_prompt();
            }
        }
        Ok(())
    }

    /// Shows how a turn ended.
    fn ended(&mut self, outcome: &Outcome) -> io::Result<()> {
        if !self.screen.said_any() {
            self.screen.say(text(outcome))?;
        }
        self.screen.begin_turn();
        self.screen.end_line()?;
        self.screen.rests();
        if !outcome.is_success()
            && let Err(error) = outcome.clone().answer()
        {
            if !self.interactive {
                self.status = Status::of(outcome);
            }
            self.show_error(error);
        }
        Ok(())
    }

    /// Something that no prompt of ours began: what an agent in the background found, usually.
    fn ambient(&mut self, event: &Event) -> io::Result<()> {
        let says = matches!(event, Event::Text(_));
        if says && !self.screen.said_any() && self.turn.is_none() {
            if self.interactive && !self.keyboard.edits() {
                // Off the line with the prompt.
                console().err("\n");
            }
            self.screen.note("(from the background)")?;
        }
        self.screen.event(event)
    }

    async fn signal(&mut self, signal: Signal) -> Result<Option<Status>, Failure> {
        if signal != Signal::Interrupt {
            return Ok(Some(signal.status()));
        }
        self.interrupts += 1;
        if self.turn.is_none() {
            if self.interrupts > 1 || !self.interactive {
                return Ok(Some(Status::Interrupted));
            }
            self.unfinished.clear();
            let newline = if self.keyboard.edits() { "" } else { "\n" };
            self.screen.note(&format!(
                "{newline}(Ctrl-C again, or Ctrl-D, ends the conversation)"
            ))?;
            self.show_prompt();
            return Ok(None);
        }
        if self.interrupts > 1 {
            // Its end shows where the turn is read.
            self.session.clone().kill().await?;
            return Ok(Some(Status::Interrupted));
        }
        let dropped = self.waiting.len();
        self.waiting.clear();
        if dropped > 0 {
            self.screen
                .note(&format!("interrupting; {dropped} queued messages are dropped"))?;
        } else {
            self.screen.note("interrupting")?;
        }
        let session = self.session.clone();
        tokio::spawn(async move {
            // A turn that can't be interrupted leaves nothing to talk to.
            if session.interrupt().await.is_err() {
                let _ = session.close().await;
            }
        });
        Ok(None)
    }

    fn show_error(&self, error: Error) {
        console().err(&words::describe(&error.into()));
    }

    /// Has the person type.
    fn show_prompt(&self) {
        if self.interactive {
            self.keyboard
                .shows_prompt(|| (local::completions(&self.session), self.directory.clone()));
        }
    }
}

/// The next event of the turn, where there is one.
async fn next_of(turn: &mut Option<Turn>) -> Option<outrigger::Result<Event>> {
    match turn {
        Some(turn) => turn.next().await,
        None => None,
    }
}
