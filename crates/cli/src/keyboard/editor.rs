//! The line that a person edits in a conversation, and the same terminal while that person is asked something or waits.
//!
//! One thread reads the terminal. While the conversation waits for a prompt, it edits a line. Else the terminal collects whole lines
//! and shows nothing of them, so that what is typed ahead does not mix with the answer; while a question is open, it shows them.
//! What is half typed when that changes is kept, and is the begin of the next line that is edited.

mod complete;
mod history;
mod terminal;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reedline::{
    ColumnarMenu, EditCommand, Emacs, KeyCode, KeyModifiers, MenuBuilder as _, Prompt, PromptEditMode,
    PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, SimpleMatchHighlighter,
    ValidationResult, Validator, default_emacs_keybindings,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};

use self::complete::Completer;
pub(crate) use self::complete::Words;
use self::history::open_history;
use self::terminal::{Mode, Terminal, Typed};
use super::{Expected, Input, LINES};
use crate::paint::Paint;
use crate::screen::console;

/// How often the editor looks whether it is to make room.
const LOOKS: Duration = Duration::from_millis(40);

/// How long the end of the program waits for the terminal to be as it was.
const GOODBYE: Duration = Duration::from_secs(2);

const MENU: &str = "completions";
const SUSPEND: &str = "suspend";
const INTERRUPT: &str = "interrupt";

/// The handle of the thread that reads the terminal.
#[derive(Clone)]
pub(crate) struct Editor {
    shared: Arc<EditorInner>,
}

struct EditorInner {
    desk: Mutex<EditorState>,
    /// Ends the line that is edited, and keeps it.
    stop: Arc<AtomicBool>,
    /// Wakes the thread where it waits for a line.
    wake: terminal::Wake,
    /// What the thread does.
    does: watch::Sender<Does>,
    words: Arc<Mutex<Words>>,
}

#[derive(Default)]
struct EditorState {
    /// A line is to be edited.
    edit: bool,
    /// How many questions are open.
    questions: usize,
    /// What waits for the next line.
    answer: Option<oneshot::Sender<Option<String>>>,
    /// What was typed for a question that is gone is to be let go.
    forget: bool,
    end: bool,
    /// The thread is gone.
    closed: bool,
}

/// What the thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Edits,
    Collects,
    Answers,
    Ended,
}

impl Editor {
    /// Takes the terminal, if it is one in which lines can be edited.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn start() -> io::Result<(Self, mpsc::Receiver<Input>)> {
        let (terminal, wake) = Terminal::open()?;
        let (tx, rx) = mpsc::channel(LINES);
        let editor = Self {
            shared: Arc::new(EditorInner {
                desk: Mutex::default(),
                stop: Arc::default(),
                wake,
                does: watch::Sender::new(Does::Collects),
                words: Arc::default(),
            }),
        };
        let shared = Arc::clone(&editor.shared);
        let mut resumed = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
        let (goes_on, went_on) = std::sync::mpsc::sync_channel(1);
        tokio::spawn(async move {
            while resumed.recv().await.is_some() {
                let _ = goes_on.try_send(());
                shared.wake.wake();
            }
        });
        let shared = Arc::clone(&editor.shared);
        std::thread::Builder::new()
            .name("keyboard".to_owned())
            .spawn(move || {
                let mut hand = Hand {
                    shared: Arc::clone(&shared),
                    terminal,
                    went_on,
                    inputs: tx,
                    lines: None,
                    away: None,
                    draft: String::new(),
                    continued: Arc::default(),
                    can_edit: true,
                };
                hand.work();
                hand.terminal.restore();
                let mut desk = shared.desk();
                desk.closed = true;
                desk.answer = None;
                drop(desk);
                shared.does.send_replace(Does::Ended);
            })?;
        Ok((editor, rx))
    }

    /// What the conversation may complete: commands with what they do, and the directory of its files.
    pub(crate) fn completes(&self, words: Words) {
        *self.shared.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// Has a line edited.
    pub(crate) fn edit(&self) {
        self.shared.change(|desk| desk.edit = true);
    }

    /// A question is to be asked: has the terminal show what is typed for it. Cancel safe: [`question_ends`](Self::question_ends)
    /// is due in any case.
    pub(super) async fn question_begins(&self) {
        self.shared.change(|desk| desk.questions += 1);
        let ready = |does: &Does| matches!(does, Does::Answers | Does::Ended);
        // The sender is in `self`.
        let _ = self.shared.does.subscribe().wait_for(ready).await;
    }

    /// The question is answered or withdrawn.
    pub(super) fn question_ends(&self) {
        self.shared.change(|desk| {
            desk.questions = desk.questions.saturating_sub(1);
            if desk.questions == 0 {
                desk.answer = None;
            }
        });
    }

    /// The next line is the answer to the open question.
    pub(super) fn expects_answer(&self) -> Expected {
        let (tx, rx) = oneshot::channel();
        let mut desk = self.shared.desk();
        // Where the input has ended, the sender is dropped: no answer.
        if !desk.closed {
            desk.answer = Some(tx);
        }
        rx
    }

    /// Lets go what was typed of a line that is not ended.
    pub(super) fn forget(&self) {
        self.shared.change(|desk| desk.forget = true);
    }

    /// Gives the terminal back as it was.
    pub(crate) async fn close(&self) {
        self.shared.change(|desk| desk.end = true);
        let mut does = self.shared.does.subscribe();
        let ended = does.wait_for(|does| *does == Does::Ended);
        // A thread that hangs in a read leaves the terminal to the end of the program.
        let _ = tokio::time::timeout(GOODBYE, ended).await;
    }
}

impl EditorInner {
    fn desk(&self) -> MutexGuard<'_, EditorState> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut EditorState)) {
        let mut desk = self.desk();
        change(&mut desk);
        if desk.wants() != Does::Edits {
            self.stop.store(true, Ordering::Relaxed);
        }
        drop(desk);
        self.wake.wake();
    }
}

impl EditorState {
    fn wants(&self) -> Does {
        if self.end {
            Does::Ended
        } else if self.questions > 0 {
            Does::Answers
        } else if self.edit {
            Does::Edits
        } else {
            Does::Collects
        }
    }
}

/// The thread.
struct Hand {
    shared: Arc<EditorInner>,
    terminal: Terminal,
    /// Gets something whenever the program goes on after it was stopped.
    went_on: std::sync::mpsc::Receiver<()>,
    inputs: mpsc::Sender<Input>,
    lines: Option<Reedline>,
    /// The line was put away for a moment, with the cursor here.
    away: Option<usize>,
    /// What was typed of a line that is not ended.
    draft: String,
    continued: Arc<Mutex<VecDeque<String>>>,
    /// The terminal can do what an editor needs.
    can_edit: bool,
}

impl Hand {
    fn work(&mut self) {
        loop {
            let wants = self.shared.desk().wants();
            if wants == Does::Ended {
                return;
            }
            let goes_on = if wants == Does::Edits && self.can_edit {
                self.edits()
            } else {
                self.collects(wants)
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Hands on what was typed. False if nobody takes it any more.
    fn gives(&self, input: Input) -> bool {
        if !matches!(input, Input::Interrupt) {
            // The next line is edited when the conversation says so.
            self.shared.desk().edit = false;
        }
        self.inputs.blocking_send(input).is_ok()
    }

    /// Collects lines, until something else is wanted.
    fn collects(&mut self, wants: Does) -> bool {
        self.away = None;
        if wants == Does::Answers {
            // An answer is never older than its question.
            if !self.takes_half_a_line() {
                return false;
            }
        } else if wants == Does::Edits {
            // A terminal without an editor.
            console().ask(&format!("> {}", self.draft));
        }
        let mode = if wants == Does::Collects {
            Mode::Hidden
        } else {
            Mode::Shown
        };
        self.terminal.set(mode);
        self.shared.does.send_replace(wants);
        loop {
            {
                let mut desk = self.shared.desk();
                if std::mem::take(&mut desk.forget) {
                    self.terminal.forget();
                }
                if desk.wants() != wants {
                    return true;
                }
            }
            match self.terminal.line(&self.shared.wake) {
                // The terminal may have been another program's.
                Typed::Woken => self.terminal.set(mode),
                Typed::Gone => {
                    self.gives(Input::End);
                    return false;
                }
                // What is typed when nothing is asked at the moment answers nothing.
                Typed::Line(line) if wants == Does::Answers => self.answers(Some(line)),
                Typed::End if wants == Does::Answers => self.answers(None),
                Typed::Line(line) => {
                    let line = std::mem::take(&mut self.draft) + &line;
                    if !self.gives(Input::Line(line)) {
                        return false;
                    }
                }
                Typed::End => return self.gives(Input::End),
            }
        }
    }

    fn answers(&self, line: Option<String>) {
        if let Some(answer) = self.shared.desk().answer.take() {
            // It may have been withdrawn.
            let _ = answer.send(line);
        }
    }

    /// Takes what is typed so far out of the terminal: whole lines for the conversation, and the begin of one for later.
    fn takes_half_a_line(&mut self) -> bool {
        let typed = self.terminal.rest();
        let mut lines: VecDeque<&str> = typed.split('\n').collect();
        let begun = lines.pop_back().unwrap_or_default();
        // What was edited may have several lines, and is one prompt all the same.
        for line in lines {
            let line = std::mem::take(&mut self.draft) + line;
            if !self.gives(Input::Line(line)) {
                return false;
            }
        }
        self.draft.push_str(begun);
        true
    }

    /// Has a line edited, until it is ended or something else is wanted.
    fn edits(&mut self) -> bool {
        // The keys that are pressed while the line is away are still the editor's.
        let cursor = self.away.take();
        if cursor.is_none() && !self.takes_half_a_line() {
            return false;
        }
        let mut editor = match self.lines.take() {
            Some(editor) => editor,
            None => self.begins(),
        };
        if !self.draft.is_empty() {
            let mut edits = vec![EditCommand::InsertString(std::mem::take(&mut self.draft))];
            edits.extend(cursor.map(|position| EditCommand::MoveToPosition {
                position,
                select: false,
            }));
            editor.run_edit_commands(&edits);
        }
        let stop = Arc::clone(&self.shared.stop);
        {
            // Whatever is wanted from now on stops the line.
            let desk = self.shared.desk();
            if desk.wants() != Does::Edits {
                self.draft = editor.current_buffer_contents().to_owned();
                return true;
            }
            stop.store(false, Ordering::Relaxed);
        }
        console().editing_begins(Box::new(move || stop.store(true, Ordering::Relaxed)));
        self.shared.does.send_replace(Does::Edits);
        let signal = editor.read_line(&Mark);
        let text = editor.current_buffer_contents().to_owned();
        let cursor = editor.current_insertion_point();
        let _ = editor.sync_history();
        match signal {
            Ok(Signal::Success(line)) => {
                console().editing_ends(false);
                self.lines = Some(editor);
                let continued = self.continued.lock().unwrap_or_else(PoisonError::into_inner);
                let line = joined(&line, &continued);
                drop(continued);
                self.gives(Input::Line(line))
            }
            Ok(Signal::CtrlD) => {
                console().editing_ends(false);
                self.lines = Some(editor);
                self.gives(Input::End)
            }
            Ok(Signal::HostCommand(command)) if command == INTERRUPT && !text.is_empty() => {
                terminal::leave_line("^C");
                console().editing_ends(true);
                true
            }
            Ok(Signal::HostCommand(command)) if command == INTERRUPT => {
                terminal::erase_line(&text, cursor);
                console().editing_ends(true);
                self.gives(Input::Interrupt)
            }
            Ok(Signal::HostCommand(_)) => {
                terminal::leave_line("");
                console().editing_ends(true);
                self.draft = text;
                self.terminal.suspend(&self.went_on);
                true
            }
            Ok(_) => {
                terminal::erase_line(&text, cursor);
                console().editing_ends(true);
                self.away = Some(cursor);
                self.draft = text;
                true
            }
            Err(_) => {
                // A terminal that does not say where its cursor is.
                console().editing_ends(true);
                self.draft = text;
                self.can_edit = false;
                true
            }
        }
    }

    fn begins(&self) -> Reedline {
        let mut keys = default_emacs_keybindings();
        let newline = || ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline());
        keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('j'), newline());
        let host = |command: &str| ReedlineEvent::ExecuteHostCommand(command.to_owned());
        keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('z'), host(SUSPEND));
        keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('c'), host(INTERRUPT));
        let menu = vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext];
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(menu));
        Reedline::create()
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_history(open_history())
            .with_history_exclusion_prefix(Some(" ".to_owned()))
            .with_validator(Box::new(Continued(Arc::clone(&self.continued))))
            .with_completer(Box::new(Completer::new(Arc::clone(&self.shared.words))))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(
                ColumnarMenu::default().with_name(MENU),
            )))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_highlighter(Box::new(SimpleMatchHighlighter::default()))
            .with_ansi_colors(Paint::on(&io::stderr()).is_on())
            .with_break_signal(Arc::clone(&self.shared.stop))
            .with_poll_interval(LOOKS)
            .use_bracketed_paste(true)
    }
}

/// How many texts are remembered that a backslash continued: lines come back from the history.
const CONTINUED: usize = 256;

/// A backslash at the end of a line says that the prompt goes on. Remembers the texts up to such a backslash: in a pasted text, it is text.
struct Continued(Arc<Mutex<VecDeque<String>>>);

impl Validator for Continued {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') {
            let mut continued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if continued.len() == CONTINUED {
                continued.pop_front();
            }
            continued.push_back(line.to_owned());
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// A text without the backslashes that continued it.
fn joined(text: &str, continued: &VecDeque<String>) -> String {
    let is_sign =
        |at: usize| text[at..].starts_with("\\\n") && continued.iter().any(|begun| *begun == text[..=at]);
    let chars = text.char_indices().filter(|(at, _)| !is_sign(*at));
    chars.map(|(_, char)| char).collect()
}

/// What stands before the line.
struct Mark;

impl Prompt for Mark {
    fn render_prompt_left(&self) -> std::borrow::Cow<'_, str> {
        "".into()
    }

    fn render_prompt_right(&self) -> std::borrow::Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> std::borrow::Cow<'_, str> {
        "> ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> std::borrow::Cow<'_, str> {
        "  ".into()
    }

    fn render_prompt_history_search_indicator(
        &self,
        search: PromptHistorySearch,
    ) -> std::borrow::Cow<'_, str> {
        format!("(search: {}) ", search.term).into()
    }
}
