//! `outrigger attach`.

use std::collections::{HashSet, VecDeque};
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Instant;

use outrigger::protocol::walk;
use outrigger::transport::BoxFuture;
use outrigger_host_client::{
    Accepted, Approval, ApprovalFilter, ApprovalState, Envelope, Error, HostClient, Prompt, Session,
    StreamItem,
};
use tokio::sync::mpsc;

use super::approve::{frame, summary};
use super::conversation::Conversation;
use super::{GiveUpArgs, HostArgs, NAMES, NewArgs, Patience, failure};
use crate::ask::Responder;
use crate::exit::{CommandResult, Failure, Status};
use crate::keyboard::{Input, Keyboard, NOT_TEXT};
use crate::screen::Screen;
use crate::signals::{Signal, Signals};

/// How many prompts may wait to be sent; beyond that the keyboard waits.
const WAITING: usize = 64;

/// What can be typed beside prompts.
const COMMANDS: &[(&str, &str)] = &[
    ("interrupt", "interrupts the turn that runs"),
    ("help", "lists these commands"),
    ("quit", "leaves; the session goes on"),
];

/// Talk in a session of a host: shows what was said and what is said, sends what you type, and asks you what the session asks.
///
/// It shows the conversation from its beginning, or the events after `--after`. Ctrl-C, Ctrl-D and `/quit` leave; the session goes on without you.
/// `/interrupt` interrupts its turn. Without a terminal it only shows, until Ctrl-C, the end of the session, or a host that stays away.
#[derive(Debug, clap::Args)]
#[command(after_help = NAMES)]
pub(crate) struct Attach {
    /// The session.
    #[arg(required_unless_present = "new", conflicts_with = "new")]
    session: Option<String>,
    /// Shows the events after this number only.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
    /// Does not ask you what the session asks; somebody else may answer.
    #[arg(long)]
    no_ask: bool,
    /// Shows the answer as the model writes it, without rendering its Markdown at a terminal.
    #[arg(long)]
    plain: bool,
    /// Shows the model's thinking, what tools return, and what the host does.
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// Shows no tool calls.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    new: NewArgs,
    #[command(flatten)]
    give_up: GiveUpArgs,
    #[command(flatten)]
    host: HostArgs,
}

impl Attach {
    pub(crate) async fn run(self) -> CommandResult {
        let client = self.host.client()?;
        let mut signals = Signals::catch()?;
        let session = tokio::select! {
            session = self.new.session(&client, self.session.as_deref()) => session?,
            signal = signals.next() => return Ok(signal.status()),
        };
        let is_person = io::stdin().is_terminal();
        let (keyboard, inputs) = if is_person {
            let (keyboard, inputs) = Keyboard::of_stdin();
            (Some(keyboard), Some(inputs))
        } else {
            (None, None)
        };
        let ask = match &keyboard {
            Some(keyboard) if !self.no_ask => Responder::by(keyboard.clone()),
            _ => Responder::nobody(),
        };
        let screen = Screen::new(true, self.verbose, self.quiet).live(self.plain);
        let mut visit = Visit {
            conversation: Conversation::new(screen, self.verbose),
            keyboard: keyboard.clone(),
            ask,
            client,
            session,
            cursor: self.after,
            patience: self.give_up.patience(),
            is_synced: false,
            unfinished: String::new(),
            prompts: VecDeque::new(),
            open: VecDeque::new(),
            known: HashSet::new(),
            own: HashSet::new(),
            sending: None,
            looking: None,
            asking: None,
            acting: None,
        };
        let visited = visit.go(inputs, &mut signals).await;
        if let Some(keyboard) = keyboard {
            keyboard.close().await;
        }
        // Who is told that the host stays away can come back, too.
        if visited
            .as_ref()
            .map_or_else(|failed| failed.status == Status::Api, |_| true)
        {
            visit.goodbye()?;
        }
        visited
    }
}

type MaybeFuture<T> = Option<BoxFuture<'static, T>>;

/// A question that the person is asked, or that is being decided.
type Asking = (Approval, BoxFuture<'static, Result<Option<Approval>, Error>>);

/// Somebody looks at a session, and talks in it.
struct Visit {
    conversation: Conversation,
    /// Where a person types.
    keyboard: Option<Keyboard>,
    ask: Responder,
    client: HostClient,
    session: Session,
    /// The last event that was shown.
    cursor: u64,
    patience: Patience,
    /// What was there at the beginning is shown.
    is_synced: bool,
    /// Lines that end in a backslash, until one comes that does not.
    unfinished: String,
    prompts: VecDeque<Prompt>,
    /// Approvals that the person is not asked about yet.
    open: VecDeque<Approval>,
    /// Approvals that were told, or are about to be.
    known: HashSet<String>,
    /// Approvals that were answered here.
    own: HashSet<String>,
    sending: MaybeFuture<Result<Accepted, Error>>,
    looking: MaybeFuture<Result<Vec<Approval>, Error>>,
    asking: Option<Asking>,
    acting: MaybeFuture<Result<Session, Error>>,
}

/// What a line asks this program to do next.
#[derive(PartialEq, Eq)]
enum AfterAttachLine {
    GoOn,
    Leave,
}

impl Visit {
    async fn go(
        &mut self,
        mut inputs: Option<mpsc::Receiver<Input>>,
        signals: &mut Signals,
    ) -> CommandResult {
        let mut stream = self
            .client
            .stream(&self.session.id, self.cursor)
            .map_err(failure)?;
        if self.keyboard.is_some() {
            self.conversation.screen.note(
                "/help lists commands; Alt-Enter, or a backslash at the end, begins another line; Ctrl-C leaves, and the session goes on",
            )?;
        }
        loop {
            self.begin();
            tokio::select! {
                item = stream.next() => {
                    let item = self.patience.take(item.map_err(failure)?, Instant::now())?;
                    self.cursor = stream.cursor();
                    self.item(item)?;
                    if self.session.state.as_str() == "ended" && self.is_synced {
                        return Ok(Status::Success);
                    }
                }
                sent = finished(&mut self.sending) => self.on_sent(sent)?,
                looked = finished(&mut self.looking) => match looked {
                    Ok(approvals) => approvals.into_iter().try_for_each(|approval| self.opened(approval))?,
                    Err(error) => self.note_failure("the approvals are not known", error)?,
                },
                acted = finished(&mut self.acting) => match acted {
                    Ok(_) => {}
                    Err(error) => self.note_failure("it was not interrupted", error)?,
                },
                answered = answered(&mut self.asking) => self.answered(answered)?,
                input = next_input(&mut inputs), if self.prompts.len() < WAITING => match input {
                    Input::Line(line) => {
                        if self.line(&line)? == AfterAttachLine::Leave {
                            return self.leave(Status::Success, signals).await;
                        }
                        self.show_prompt();
                    }
                    Input::NotText(_) => {
                        self.conversation.screen.note(NOT_TEXT)?;
                        self.show_prompt();
                    }
                    Input::Interrupt => return self.leave(Status::Interrupted, signals).await,
                    Input::End => return self.leave(Status::Success, signals).await,
                },
                signal = signals.next() => {
                    return match signal {
                        Signal::Interrupt => self.leave(Status::Interrupted, signals).await,
                        signal => Ok(signal.status()),
                    };
                }
            }
        }
    }

    /// Begins what waits.
    fn begin(&mut self) {
        if self.sending.is_none()
            && let Some(prompt) = self.prompts.pop_front()
        {
            let (client, session) = (self.client.clone(), self.session.id.clone());
            self.sending = Some(Box::pin(
                async move { client.send_prompt(&session, &prompt).await },
            ));
        }
        if self.asking.is_none()
            && matches!(self.ask, Responder::Person(_))
            && let Some(approval) = self.open.pop_front()
            && let Some(request) = frame(&approval)
        {
            let (client, ask, id) = (self.client.clone(), self.ask.clone(), approval.id.clone());
            let asking = async move {
                match ask.about(&request).await {
                    Some(answer) => client.decide(&id, &answer).await.map(Some),
                    None => Ok(None),
                }
            };
            self.asking = Some((approval, Box::pin(asking)));
        }
    }

    fn item(&mut self, item: StreamItem) -> Result<(), Failure> {
        match item {
            StreamItem::Event(event) => self.event(&event)?,
            StreamItem::Ephemeral(frame) => self.conversation.piece(&frame)?,
            StreamItem::Truncated { first_sequence_num } => self.conversation.screen.note(&format!(
                "the host does not keep what was before the event {first_sequence_num}"
            ))?,
            StreamItem::Synced { .. } => {
                if !self.is_synced {
                    self.is_synced = true;
                    self.conversation.screen.end_line()?;
                    self.show_prompt();
                }
                self.fetch_approvals();
            }
            StreamItem::Disconnected { error, retry_in } => {
                self.conversation.lost_pieces()?;
                self.conversation.screen.note(&format!(
                    "{:#}; again in {:.1} s",
                    anyhow::Error::new(error),
                    retry_in.as_secs_f64()
                ))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, event: &Envelope) -> Result<(), Failure> {
        let text = |key: &str| walk::string_at(event.payload.get(), key).unwrap_or_default();
        match event.kind().as_str() {
            "approval_opened" if self.is_synced => self.fetch_approvals(),
            "approval_decided" | "approval_superseded" => {
                let id = text("approval_id");
                // A list from before may still come.
                self.known.insert(id.clone());
                self.open.retain(|approval| approval.id != id);
                // Its end drops the question, and says so.
                if self
                    .asking
                    .as_ref()
                    .is_some_and(|(approval, _)| approval.id == id)
                    && !self.own.contains(&id)
                {
                    self.asking = None;
                }
                if self.own.remove(&id) {
                    return Ok(());
                }
            }
            "session_state_changed" => self.session.state = text("state").as_str().into(),
            _ => {}
        }
        Ok(self.conversation.event(event)?)
    }

    /// Asks the host what is open.
    fn fetch_approvals(&mut self) {
        let (client, session) = (self.client.clone(), self.session.id.clone());
        self.looking = Some(Box::pin(async move {
            client
                .all_approvals(&ApprovalFilter::pending().of_session(session))
                .await
        }));
    }

    /// An approval that is open.
    fn opened(&mut self, approval: Approval) -> Result<(), Failure> {
        if approval.state != ApprovalState::Pending || !self.known.insert(approval.id.clone()) {
            return Ok(());
        }
        let can_ask = matches!(self.ask, Responder::Person(_)) && frame(&approval).is_some();
        if can_ask {
            self.open.push_back(approval);
        } else {
            self.leave_open(&approval)?;
        }
        Ok(())
    }

    fn leave_open(&mut self, approval: &Approval) -> Result<(), Failure> {
        self.conversation.screen.note(&format!(
            "it asks: {}; `outrigger approve {}` answers",
            summary(approval),
            approval.id
        ))?;
        Ok(())
    }

    fn answered(&mut self, answered: (Approval, Result<Option<Approval>, Error>)) -> Result<(), Failure> {
        let (approval, result) = answered;
        match result {
            Ok(Some(decided)) => {
                self.own.insert(decided.id);
            }
            Ok(None) => self.leave_open(&approval)?,
            Err(error) => match error.decided_before() {
                // The event that tells who decided comes, or came.
                Some(_) => {}
                None => {
                    self.note_failure("the answer was not taken", error)?;
                    self.leave_open(&approval)?;
                }
            },
        }
        self.show_prompt();
        Ok(())
    }

    fn on_sent(&mut self, sent: Result<Accepted, Error>) -> Result<(), Failure> {
        match sent {
            Ok(_) => Ok(()),
            Err(error) => self.note_failure("the prompt was not sent", error),
        }
    }

    fn note_failure(&mut self, what: &str, error: Error) -> Result<(), Failure> {
        self.conversation
            .screen
            .note(&format!("{what}: {}", failure(error).error))?;
        Ok(())
    }

    /// Takes a line: joins continued ones, and queues it, or carries it out.
    fn line(&mut self, line: &str) -> Result<AfterAttachLine, Failure> {
        if let Some(begun) = line.strip_suffix('\\') {
            self.unfinished.push_str(begun);
            self.unfinished.push('\n');
            return Ok(AfterAttachLine::GoOn);
        }
        let line = std::mem::take(&mut self.unfinished) + line;
        match line.trim() {
            "" => {}
            "/quit" | "/exit" => return Ok(AfterAttachLine::Leave),
            "/interrupt" => {
                let (client, session) = (self.client.clone(), self.session.id.clone());
                self.acting = Some(Box::pin(async move { client.interrupt(&session).await }));
            }
            "/help" => {
                let mut help = String::new();
                for (name, does) in COMMANDS {
                    help.push_str(&format!("/{name:<12} {does}\n"));
                }
                help.push_str("Other commands are the CLI's.");
                self.conversation.screen.note(&help)?;
            }
            _ => {
                let prompt = Prompt::text(line);
                self.conversation.typed(prompt.uuid());
                self.prompts.push_back(prompt);
            }
        }
        Ok(AfterAttachLine::GoOn)
    }

    /// Leaves. What was typed is still sent, unless the person leaves again.
    async fn leave(&mut self, status: Status, signals: &mut Signals) -> CommandResult {
        self.ask.leave();
        self.asking = None;
        while self.sending.is_some() || !self.prompts.is_empty() {
            self.begin();
            tokio::select! {
                sent = finished(&mut self.sending) => self.on_sent(sent)?,
                _ = signals.next() => {
                    let left = self.prompts.len() + 1;
                    self.conversation.screen.note(&format!("{left} prompts may not have been sent"))?;
                    break;
                }
            }
        }
        Ok(status)
    }

    /// Says how to come back.
    fn goodbye(&mut self) -> Result<(), Failure> {
        self.conversation.screen.end_line()?;
        self.conversation.screen.rests();
        if self.session.state.as_str() == "ended" {
            return Ok(());
        }
        self.conversation.screen.note(&format!(
            "the session goes on; `outrigger attach {} --after {}` comes back to it",
            self.session.id, self.cursor
        ))?;
        Ok(())
    }

    /// Has the person type.
    fn show_prompt(&self) {
        if let Some(keyboard) = &self.keyboard
            && self.is_synced
        {
            keyboard.shows_prompt(|| {
                let commands = COMMANDS.iter();
                let commands = commands.map(|(name, does)| ((*name).to_owned(), (*does).to_owned()));
                // The files are elsewhere.
                (commands.collect(), PathBuf::new())
            });
        }
    }
}

/// What was waited for, once it is there; never if nothing is.
async fn finished<T>(waiting: &mut MaybeFuture<T>) -> T {
    let Some(future) = waiting else {
        return std::future::pending().await;
    };
    let value = future.await;
    *waiting = None;
    value
}

async fn answered(asking: &mut Option<Asking>) -> (Approval, Result<Option<Approval>, Error>) {
    let Some((approval, future)) = asking else {
        return std::future::pending().await;
    };
    let result = future.await;
    let approval = approval.clone();
    *asking = None;
    (approval, result)
}

async fn next_input(inputs: &mut Option<mpsc::Receiver<Input>>) -> Input {
    match inputs {
        Some(inputs) => inputs.recv().await.unwrap_or(Input::End),
        None => std::future::pending().await,
    }
}
