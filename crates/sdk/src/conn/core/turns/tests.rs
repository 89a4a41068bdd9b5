use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use super::*;
use crate::cause::Cause;

/// What readers were told, by the numbers of their prompts.
type ReaderLog = Rc<RefCell<HashMap<u64, (Vec<String>, Option<Result<Outcome, Error>>)>>>;

/// Turns, and who reads them.
struct TurnsCase {
    turns: Turns,
    next: u64,
    told: ReaderLog,
    /// What belongs to no prompt, though it was taken for one's: how many frames, and outcomes.
    disowned: (usize, usize),
    unsure: Option<u64>,
}

impl Deref for TurnsCase {
    type Target = Turns;

    fn deref(&self) -> &Turns {
        &self.turns
    }
}

impl DerefMut for TurnsCase {
    fn deref_mut(&mut self) -> &mut Turns {
        &mut self.turns
    }
}

impl TurnsCase {
    fn new() -> Self {
        Self {
            turns: Turns::new(Span::none()),
            next: 0,
            told: ReaderLog::default(),
            disowned: (0, 0),
            unsure: None,
        }
    }

    fn accept(&mut self, id: &str, line: Vec<u8>, room: usize, dispatch: Dispatch) -> Result<u64, Error> {
        self.next += 1;
        let prompt = Accept {
            id: id.to_owned(),
            line,
            dispatch,
            wanted_output: false,
            prompt: crate::prompt::Prompt::text(id),
        };
        self.turns.accept(self.next, prompt, room).map(|()| self.next)
    }

    /// Hands on what came of what was done.
    fn tell(&mut self) {
        let mut told = self.told.borrow_mut();
        for output in self.turns.outputs() {
            match output {
                Output::Deliver { prompt, frame } => {
                    let (kinds, settled) = told.entry(prompt).or_default();
                    assert!(settled.is_none(), "nothing comes after the end");
                    kinds.push(frame.kind().to_owned());
                }
                Output::Settle { prompt, settled } => {
                    let before = told.entry(prompt).or_default().1.replace(settled);
                    assert!(before.is_none(), "it ends once");
                }
                Output::Ambient(_) => self.disowned.0 += 1,
                Output::AmbientEnded(outcome) => {
                    assert!(outcome.prompts().is_empty());
                    self.disowned.1 += 1;
                }
                Output::Unsure(turn) => self.unsure = Some(turn),
                Output::Changed => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn confirm(&mut self, turn: Option<u64>) -> bool {
        let confirmed = self.turns.confirm(turn);
        self.tell();
        confirmed
    }

    fn take_back(&mut self, id: &str) -> Option<SentPrompt> {
        self.turns.take_back(id);
        self.tell();
        self.turns.place(id)
    }

    fn end(&mut self, id: &str) {
        self.turns
            .end(id, Outcome::without_result(Verdict::NoResult, [id]));
        self.tell();
    }
}

struct Prompt {
    number: u64,
    told: ReaderLog,
}

impl Prompt {
    fn outcome(&self) -> Option<Outcome> {
        let told = self.told.borrow();
        let settled = told.get(&self.number)?.1.as_ref()?;
        Some(settled.as_ref().unwrap().clone())
    }

    fn verdict(&self) -> Option<Verdict> {
        self.outcome().map(|outcome| outcome.verdict().clone())
    }

    /// Of the frames that came since this was last asked.
    fn kinds(&mut self) -> Vec<String> {
        let mut told = self.told.borrow_mut();
        std::mem::take(&mut told.entry(self.number).or_default().0)
    }
}

/// Accepts a prompt and sends it if it may be sent.
fn prompt(turns: &mut TurnsCase, id: &str, dispatch: Dispatch) -> Prompt {
    let number = turns.accept(id, id.into(), ROOM, dispatch).unwrap();
    send(turns);
    let told = Rc::clone(&turns.told);
    Prompt { number, told }
}

fn send(turns: &mut TurnsCase) -> Vec<String> {
    std::iter::from_fn(|| turns.next_to_send())
        .map(|line| String::from_utf8(line).unwrap())
        .collect()
}

fn feed(turns: &mut TurnsCase, fields: &str) -> Route {
    let frame = Frame::from_line(format!("{{{fields}}}").into_bytes()).remove(0);
    assert!(frame.flaw().is_none(), "{fields}");
    let (route, _) = turns.on_frame(&frame, None, |_| TurnUsage::default());
    turns.tell();
    route
}

fn life(turns: &mut TurnsCase, id: &str, state: &str) {
    feed(
        turns,
        &format!(r#""type":"command_lifecycle","command_uuid":"{id}","state":"{state}""#),
    );
}

const ROOM: usize = 1 << 20;
const INIT: &str = r#""type":"system","subtype":"init""#;
const ASSISTANT: &str = r#""type":"assistant","parent_tool_use_id":null"#;

fn result(ids: &str) -> String {
    let done =
        r#""type":"result","subtype":"success","is_error":false,"terminal_reason":"completed","num_turns":1"#;
    if ids.is_empty() {
        done.to_owned()
    } else {
        format!(r#"{done},"user_message_uuids":[{ids}]"#)
    }
}

fn foreign() -> String {
    format!(r#"{},"origin":{{"kind":"task-notification"}}"#, result(""))
}

fn aborted(id: &str) -> String {
    format!(
        r#""type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","num_turns":2,"user_message_uuids":["{id}"]"#
    )
}

#[test]
fn a_prompt_gets_its_own_turn_and_the_next_waits_for_it() {
    let mut turns = TurnsCase::new();
    let mut a = prompt(&mut turns, "a", Dispatch::Alone);
    let mut b = prompt(&mut turns, "b", Dispatch::Alone);
    assert!(send(&mut turns).is_empty(), "b must wait");
    life(&mut turns, "a", "queued");
    life(&mut turns, "a", "started");
    feed(&mut turns, INIT);
    feed(&mut turns, ASSISTANT);
    feed(&mut turns, &result(r#""a""#));
    assert_eq!(a.verdict(), Some(Verdict::Completed));
    assert_eq!(
        a.kinds(),
        [
            "command_lifecycle",
            "command_lifecycle",
            "system",
            "assistant",
            "result"
        ]
    );
    assert_eq!(send(&mut turns), ["b"]);
    life(&mut turns, "a", "completed");
    life(&mut turns, "b", "started");
    feed(&mut turns, &result(r#""b""#));
    assert_eq!((b.verdict(), b.kinds().len()), (Some(Verdict::Completed), 2));
    assert!(!turns.any_open());
}

#[test]
fn merged_prompts_share_the_result() {
    let mut turns = TurnsCase::new();
    let [a, b, c] = ["a", "b", "c"].map(|id| prompt(&mut turns, id, Dispatch::AtOnce));
    life(&mut turns, "a", "started");
    feed(&mut turns, &result(r#""a""#));
    assert_eq!((a.verdict(), b.verdict()), (Some(Verdict::Completed), None));
    life(&mut turns, "b", "started");
    life(&mut turns, "c", "started");
    feed(&mut turns, &result(r#""b","c""#));
    assert_eq!(
        (b.verdict(), c.verdict()),
        (Some(Verdict::Completed), Some(Verdict::Completed))
    );
    assert_eq!(c.outcome().unwrap().prompts(), ["b", "c"]);
}

#[test]
fn a_folded_prompt_ends_with_the_turn_that_took_it_in() {
    let mut turns = TurnsCase::new();
    let a = prompt(&mut turns, "a", Dispatch::Alone);
    life(&mut turns, "a", "started");
    feed(&mut turns, INIT);
    let mut steer = prompt(&mut turns, "s", Dispatch::AtOnce);
    life(&mut turns, "s", "queued");
    feed(&mut turns, ASSISTANT);
    life(&mut turns, "s", "started");
    feed(&mut turns, ASSISTANT);
    life(&mut turns, "s", "completed");
    assert_eq!((a.verdict(), steer.verdict()), (None, None));
    // The CLI lists only the folded prompt in such results at times.
    feed(&mut turns, &result(r#""s""#));
    assert_eq!(
        (a.verdict(), steer.verdict()),
        (Some(Verdict::Completed), Some(Verdict::Completed))
    );
    assert_eq!(
        steer.kinds(),
        [
            "command_lifecycle",
            "command_lifecycle",
            "assistant",
            "command_lifecycle",
            "result"
        ]
    );
}

/// The CLI lists only the folded prompt, which has ended already.
#[test]
fn a_result_that_names_only_what_the_running_turn_has_dropped_ends_the_turn() {
    let mut turns = TurnsCase::new();
    let a = prompt(&mut turns, "a", Dispatch::Alone);
    life(&mut turns, "a", "started");
    let steer = prompt(&mut turns, "s", Dispatch::AtOnce);
    life(&mut turns, "s", "started");
    life(&mut turns, "s", "discarded");
    assert_eq!(steer.verdict(), Some(Verdict::Dropped("discarded".to_owned())));
    assert_eq!(feed(&mut turns, &result(r#""s","never seen""#)), Route::Ambient);
    assert_eq!(feed(&mut turns, &result(r#""s""#)), Route::Turn);
    assert_eq!(a.verdict(), Some(Verdict::Completed));
    assert_eq!(a.outcome().unwrap().prompts(), ["a"]);
    assert!(!turns.is_running() && !turns.any_open());
}

#[test]
fn a_result_of_foreign_origin_resolves_nobody() {
    let mut turns = TurnsCase::new();
    feed(&mut turns, INIT);
    let mut mine = prompt(&mut turns, "a", Dispatch::Alone);
    life(&mut turns, "a", "queued");
    assert_eq!(feed(&mut turns, ASSISTANT), Route::Ambient);
    let foreign = format!(r#"{},"origin":{{"kind":"task-notification"}}"#, result(""));
    assert_eq!(feed(&mut turns, &foreign), Route::Ambient);
    assert_eq!(
        (mine.verdict(), mine.kinds()),
        (None, vec!["command_lifecycle".to_owned()])
    );
    life(&mut turns, "a", "started");
    feed(&mut turns, &result(r#""a""#));
    assert_eq!(mine.verdict(), Some(Verdict::Completed));
}

#[test]
fn a_turn_of_nobodys_before_the_first_prompts_does_not_adopt_it() {
    let mut turns = TurnsCase::new();
    let mut mine = prompt(&mut turns, "a", Dispatch::Alone);
    feed(&mut turns, ANNOUNCING);
    feed(&mut turns, ASSISTANT);
    feed(&mut turns, &result(""));
    assert_eq!((mine.verdict(), mine.kinds()), (None, vec![]));
    life(&mut turns, "a", "queued");
    assert_eq!(turns.disowned, (3, 1));
    assert!(!turns.confirm(Some(1)));
    life(&mut turns, "a", "started");
    feed(&mut turns, ANNOUNCING);
    assert_eq!(mine.verdict(), None);
    feed(&mut turns, &result(r#""a""#));
    assert_eq!(mine.verdict(), Some(Verdict::Completed));
    let kinds = ["command_lifecycle", "command_lifecycle", "system", "result"];
    assert_eq!(mine.kinds(), kinds);
    assert!(turns.disowned == (3, 1) && !turns.confirm(None));
}

#[test]
fn a_result_of_another_turn_does_not_end_the_running_one() {
    let foreign = format!(r#"{},"origin":{{"kind":"task-notification"}}"#, result(""));
    let mut turns = TurnsCase::new();
    let first = prompt(&mut turns, "a", Dispatch::Alone);
    life(&mut turns, "a", "started");
    feed(&mut turns, &result(r#""a""#));
    life(&mut turns, "a", "completed");
    assert_eq!(first.verdict(), Some(Verdict::Completed));
    let second = prompt(&mut turns, "b", Dispatch::Alone);
    life(&mut turns, "b", "started");
    // The first one's once more, and one of work in the background.
    assert_eq!(feed(&mut turns, &result(r#""a""#)), Route::Ambient);
    assert_eq!(feed(&mut turns, &foreign), Route::Ambient);
    assert_eq!(second.verdict(), None);
    assert_eq!(feed(&mut turns, &aborted("b")), Route::Turn);
    assert_eq!(second.verdict(), Some(Verdict::Interrupted));
    assert!(!turns.is_running());
}

#[test]
fn a_prompt_in_a_turn_of_foreign_origin_ends_with_it() {
    let foreign = format!(r#"{},"origin":{{"kind":"task-notification"}}"#, result(""));
    // The result names nobody, and comes after the CLI was through with the prompt, or before.
    for through_first in [true, false] {
        let mut turns = TurnsCase::new();
        feed(&mut turns, INIT);
        let folded = prompt(&mut turns, "a", Dispatch::AtOnce);
        life(&mut turns, "a", "started");
        if through_first {
            life(&mut turns, "a", "completed");
        }
        feed(&mut turns, &foreign);
        if !through_first {
            assert_eq!(folded.verdict(), None);
            life(&mut turns, "a", "completed");
        }
        assert_eq!(folded.verdict(), Some(Verdict::Completed));
        let outcome = folded.outcome().unwrap();
        assert_eq!(outcome.prompts(), ["a"], "the outcome is about the prompt");
        assert!(!turns.is_running() && !turns.any_open());
    }
}

#[test]
fn a_cancelled_queued_prompt_ends_without_a_result_and_an_aborted_one_with_it() {
    let mut turns = TurnsCase::new();
    let a = prompt(&mut turns, "a", Dispatch::AtOnce);
    let b = prompt(&mut turns, "b", Dispatch::AtOnce);
    life(&mut turns, "a", "started");
    life(&mut turns, "b", "cancelled");
    assert_eq!(b.verdict(), Some(Verdict::Cancelled));
    feed(&mut turns, &aborted("a"));
    life(&mut turns, "a", "cancelled");
    assert_eq!(a.verdict(), Some(Verdict::Interrupted));
}

const IDLE: &str = r#""type":"system","subtype":"session_state_changed","state":"idle""#;

/// A turn of `a` that was reported to be over, and whose result was lost.
fn lost(turns: &mut TurnsCase, state: &str) -> Prompt {
    let a = prompt(turns, "a", Dispatch::AtOnce);
    life(turns, "a", "started");
    feed(turns, INIT);
    feed(turns, ASSISTANT);
    life(turns, "a", state);
    assert_eq!(a.verdict(), None, "its result may still come");
    a
}

#[test]
fn a_prompt_whose_result_is_lost_ends_with_the_begin_of_the_next_turn() {
    // The next turn is another prompt's, or nobody's. That the first was over may be lost, too.
    for (state, is_mine) in [("completed", true), ("completed", false), ("queued", true)] {
        let mut turns = TurnsCase::new();
        let a = lost(&mut turns, state);
        let mut b = prompt(&mut turns, "b", Dispatch::AtOnce);
        let first = turns.current();
        if is_mine {
            life(&mut turns, "b", "started");
        }
        assert_eq!(a.verdict(), None);
        feed(&mut turns, INIT);
        assert_eq!(a.verdict(), Some(Verdict::NoResult), "{state}");
        assert!(turns.is_running() && turns.current() != first);
        let route = feed(&mut turns, ASSISTANT);
        assert_eq!(route == Route::Turn, is_mine);
        if is_mine {
            feed(&mut turns, &result(r#""b""#));
            assert_eq!(b.verdict(), Some(Verdict::Completed));
            assert_eq!(b.outcome().unwrap().prompts(), ["b"]);
            assert_eq!(b.kinds(), ["command_lifecycle", "system", "assistant", "result"]);
        } else {
            assert_eq!(feed(&mut turns, &foreign()), Route::Ambient);
            assert_eq!((b.verdict(), b.kinds()), (None, vec![]));
        }
    }
}

#[test]
fn a_prompt_whose_result_is_lost_ends_when_the_cli_is_idle() {
    for state in ["completed", "cancelled", "queued"] {
        let mut turns = TurnsCase::new();
        let a = lost(&mut turns, state);
        feed(&mut turns, IDLE);
        assert_eq!(a.verdict(), Some(Verdict::NoResult), "{state}");
        assert!(!turns.is_running() && !turns.any_open());
        // It comes late after all.
        assert_eq!(feed(&mut turns, &result(r#""a""#)), Route::Ambient);
    }
}

/// A CLI that reports its state, and nothing of the life of prompts.
#[test]
fn a_prompt_whose_result_is_lost_ends_without_reports_of_its_life() {
    let mut turns = TurnsCase::new();
    let a = prompt(&mut turns, "a", Dispatch::AtOnce);
    let b = prompt(&mut turns, "b", Dispatch::AtOnce);
    feed(&mut turns, INIT);
    feed(&mut turns, ASSISTANT);
    feed(&mut turns, IDLE);
    assert_eq!(a.verdict(), Some(Verdict::NoResult));
    feed(&mut turns, INIT);
    feed(&mut turns, &result(""));
    assert_eq!(b.verdict(), Some(Verdict::Completed));
}

#[test]
fn a_prompt_whose_result_is_lost_ends_with_the_end_of_the_following_turn() {
    let mut turns = TurnsCase::new();
    let a = lost(&mut turns, "completed");
    let b = prompt(&mut turns, "b", Dispatch::AtOnce);
    life(&mut turns, "b", "started");
    feed(&mut turns, ASSISTANT);
    feed(&mut turns, &result(r#""b""#));
    assert_eq!(a.verdict(), Some(Verdict::NoResult));
    assert_eq!(b.outcome().unwrap().prompts(), ["b"]);
    let mut turns = TurnsCase::new();
    let a = lost(&mut turns, "completed");
    assert_eq!(feed(&mut turns, &foreign()), Route::Ambient);
    assert_eq!(a.verdict(), Some(Verdict::NoResult));
    assert!(!turns.is_running() && !turns.any_open());
}

#[test]
fn an_ambient_turn_whose_result_is_lost_ends_when_the_cli_is_idle() {
    let mut turns = TurnsCase::new();
    feed(&mut turns, INIT);
    let waiting = prompt(&mut turns, "a", Dispatch::AtOnce);
    life(&mut turns, "a", "queued");
    feed(&mut turns, IDLE);
    assert_eq!((turns.is_running(), turns.disowned.1), (false, 1));
    assert_eq!(waiting.verdict(), None, "its turn has not begun");
    life(&mut turns, "a", "started");
    feed(&mut turns, INIT);
    feed(&mut turns, &result(r#""a""#));
    assert_eq!(waiting.verdict(), Some(Verdict::Completed));
}

#[test]
fn a_cancelled_prompt_in_a_turn_whose_result_is_lost_is_interrupted() {
    let mut turns = TurnsCase::new();
    let a = prompt(&mut turns, "a", Dispatch::Alone);
    life(&mut turns, "a", "started");
    feed(&mut turns, INIT);
    turns.interrupt();
    life(&mut turns, "a", "cancelled");
    assert_eq!(a.verdict(), None);
    feed(&mut turns, IDLE);
    assert_eq!(a.verdict(), Some(Verdict::Interrupted));
}

#[test]
fn a_turn_behind_one_whose_result_is_lost_is_another_one() {
    let mut turns = TurnsCase::new();
    // Of nobody's.
    feed(&mut turns, INIT);
    feed(&mut turns, ASSISTANT);
    let first = turns.current();
    let mut a = prompt(&mut turns, "a", Dispatch::AtOnce);
    life(&mut turns, "a", "started");
    feed(&mut turns, INIT);
    assert_eq!(turns.disowned.1, 1);
    let agents = Frame::from_line(br#"{"type":"assistant","parent_tool_use_id":"t"}"#.as_slice()).remove(0);
    let (route, _) = turns.on_frame(&agents, first, |_| TurnUsage::default());
    assert_eq!(route, Route::Ambient, "its agent is not that of the prompt");
    feed(&mut turns, &result(r#""a""#));
    assert_eq!(a.verdict(), Some(Verdict::Completed));
    assert_eq!(a.kinds(), ["command_lifecycle", "system", "result"]);
}

/// It was taken for the one that began the turn.
#[test]
fn a_prompt_that_is_folded_into_a_turn_that_it_was_guessed_to_have_begun_gets_its_result() {
    let mut turns = TurnsCase::new();
    let a = prompt(&mut turns, "a", Dispatch::AtOnce);
    feed(&mut turns, ANNOUNCING);
    for state in ["queued", "started", "completed"] {
        life(&mut turns, "a", state);
    }
    feed(&mut turns, &foreign());
    assert_eq!(a.verdict(), Some(Verdict::Completed));
}

/// Behind the end of its input the CLI lets results wait for agents, and runs turns meanwhile.
#[test]
fn the_result_of_a_turn_may_come_behind_the_next_once_stdin_is_closed() {
    let mut turns = TurnsCase::new();
    let a = lost(&mut turns, "completed");
    turns.is_closing = true;
    feed(&mut turns, IDLE);
    feed(&mut turns, INIT);
    feed(&mut turns, &result(r#""a""#));
    assert_eq!(a.verdict(), Some(Verdict::Completed));
}

#[test]
fn nothing_is_sent_while_an_interrupt_is_carried_out() {
    let mut turns = TurnsCase::new();
    let _a = prompt(&mut turns, "a", Dispatch::Alone);
    life(&mut turns, "a", "started");
    turns.interrupting = 1;
    let _b = prompt(&mut turns, "b", Dispatch::AtOnce);
    assert!(send(&mut turns).is_empty());
    feed(&mut turns, &aborted("a"));
    turns.interrupting = 0;
    assert_eq!(send(&mut turns), ["b"]);
}

#[test]
fn prompts_can_be_taken_back_until_their_turn_begins() {
    let mut turns = TurnsCase::new();
    let _a = prompt(&mut turns, "a", Dispatch::Alone);
    let held = prompt(&mut turns, "b", Dispatch::Alone);
    let _sent = prompt(&mut turns, "c", Dispatch::AtOnce);
    life(&mut turns, "a", "started");
    assert_eq!(turns.take_back("a"), Some(SentPrompt::Running));
    assert_eq!(
        (turns.take_back("b"), held.verdict()),
        (None, Some(Verdict::Cancelled))
    );
    send(&mut turns);
    assert_eq!(turns.take_back("c"), Some(SentPrompt::Queued));
}

#[test]
fn a_cli_that_reports_no_lifecycle_is_taken_in_order() {
    let mut turns = TurnsCase::new();
    let mut a = prompt(&mut turns, "a", Dispatch::AtOnce);
    let mut b = prompt(&mut turns, "b", Dispatch::AtOnce);
    for number in 0..2 {
        feed(&mut turns, INIT);
        feed(&mut turns, ASSISTANT);
        feed(&mut turns, &result(""));
        assert_eq!(b.verdict().is_some(), number == 1);
    }
    for mine in [&mut a, &mut b] {
        assert_eq!(mine.verdict(), Some(Verdict::Completed));
        assert_eq!(mine.kinds(), ["system", "assistant", "result"]);
    }
}

const ANNOUNCING: &str = r#""type":"system","subtype":"init","capabilities":["msg_lifecycle_v1"]"#;

/// Recorded conversations are such, whose prompts had no id.
#[test]
fn a_cli_that_announces_a_lifecycle_and_reports_none_is_taken_in_order() {
    let mut turns = TurnsCase::new();
    let mut first = prompt(&mut turns, "a", Dispatch::Alone);
    let second = prompt(&mut turns, "b", Dispatch::Alone);
    // A turn of foreign origin is nobody's all the same.
    feed(&mut turns, ANNOUNCING);
    let foreign = format!(r#"{},"origin":{{"kind":"task-notification"}}"#, result(""));
    assert_eq!(feed(&mut turns, &foreign), Route::Ambient);
    assert_eq!(turns.disowned.0, 1);
    feed(&mut turns, ANNOUNCING);
    feed(&mut turns, ASSISTANT);
    assert_eq!(feed(&mut turns, &result("")), Route::Turn);
    // It may still say that this was nobody's.
    assert_eq!((first.verdict(), first.kinds()), (None, vec![]));
    assert!(send(&mut turns).is_empty() && turns.confirm(Some(2)));
    assert_eq!(first.verdict(), Some(Verdict::Completed));
    assert_eq!(first.kinds(), ["system", "assistant", "result"]);
    // After that it is known not to report any.
    assert_eq!(send(&mut turns), ["b"]);
    assert_eq!(second.verdict(), None);
    feed(&mut turns, ANNOUNCING);
    feed(&mut turns, &result(""));
    assert_eq!(second.verdict(), Some(Verdict::Completed));
}

/// What takes long is told before it ends.
#[test]
fn a_turn_that_is_taken_for_a_prompts_is_told_once_that_is_sure() {
    let mut turns = TurnsCase::new();
    let mut first = prompt(&mut turns, "a", Dispatch::Alone);
    feed(&mut turns, ANNOUNCING);
    let number = turns.unsure;
    assert_eq!((number, first.kinds()), (Some(1), vec![]));
    assert!(!turns.confirm(number));
    assert_eq!(first.kinds(), ["system"]);
    feed(&mut turns, ASSISTANT);
    assert_eq!(first.kinds(), ["assistant"]);
    feed(&mut turns, &result(""));
    assert_eq!(first.verdict(), Some(Verdict::Completed));
}

/// What is heard of a prompt later tells that the turn was not its own.
#[test]
fn a_turn_of_nobodys_gives_a_prompt_back_that_it_was_taken_for() {
    for state in ["queued", "started"] {
        let mut turns = TurnsCase::new();
        let first = prompt(&mut turns, "a", Dispatch::Alone);
        feed(&mut turns, ANNOUNCING);
        life(&mut turns, "a", "queued");
        assert_eq!(feed(&mut turns, &result("")), Route::Ambient, "{state}");
        assert_eq!(first.verdict(), None);
        if state == "started" {
            life(&mut turns, "a", "started");
        }
        feed(&mut turns, ANNOUNCING);
        feed(&mut turns, &result(r#""a""#));
        assert_eq!(first.verdict(), Some(Verdict::Completed), "{state}");
    }
}

/// A turn that names another prompt than the one that it was taken for is that one's.
#[test]
fn a_turn_is_told_to_the_prompt_that_it_names_and_not_to_the_one_it_was_taken_for() {
    let naming = r#","user_message_uuids":["b"]"#;
    for (said, named) in [(ASSISTANT, ""), (ASSISTANT, naming), (INIT, naming)] {
        let mut turns = TurnsCase::new();
        let mut first = prompt(&mut turns, "a", Dispatch::AtOnce);
        let mut second = prompt(&mut turns, "b", Dispatch::AtOnce);
        feed(&mut turns, ANNOUNCING);
        feed(&mut turns, &format!("{said}{named}"));
        feed(&mut turns, &result(r#""b""#));
        assert_eq!((first.verdict(), first.kinds()), (None, vec![]), "{said}{named}");
        assert_eq!(second.verdict(), Some(Verdict::Completed), "{said}{named}");
        assert_eq!(second.kinds().len(), 3, "{said}{named}");
        feed(&mut turns, ANNOUNCING);
        feed(&mut turns, &result(r#""a""#));
        assert_eq!(first.verdict(), Some(Verdict::Completed));
    }
}

/// A result of foreign origin is that of the prompts that it names, however sure it was that the turn is another's.
#[test]
fn a_report_of_a_named_prompt_gives_back_only_the_one_that_was_guessed() {
    for (id, state) in [
        ("b", "started"),
        ("b", "queued"),
        ("c", "queued"),
        ("c", "started"),
    ] {
        let mut turns = TurnsCase::new();
        let first = prompt(&mut turns, "a", Dispatch::AtOnce);
        let second = prompt(&mut turns, "b", Dispatch::AtOnce);
        let third = prompt(&mut turns, "c", Dispatch::AtOnce);
        // The second `init` confirms the guess, and the third one names another prompt.
        feed(&mut turns, ANNOUNCING);
        feed(&mut turns, ANNOUNCING);
        feed(&mut turns, &format!(r#"{INIT},"user_message_uuids":["b"]"#));
        life(&mut turns, id, state);
        feed(&mut turns, &result(""));
        assert_eq!(first.verdict(), None, "{id} {state}");
        assert_eq!(second.verdict(), Some(Verdict::Completed), "{id} {state}");
        let begun = state == "started" && id == "c";
        assert_eq!(
            third.verdict(),
            begun.then_some(Verdict::Completed),
            "{id} {state}"
        );
    }
}

#[test]
fn a_result_of_foreign_origin_ends_no_prompt_that_it_does_not_name() {
    let mut turns = TurnsCase::new();
    let first = prompt(&mut turns, "a", Dispatch::AtOnce);
    let second = prompt(&mut turns, "b", Dispatch::AtOnce);
    feed(&mut turns, ANNOUNCING);
    feed(&mut turns, ANNOUNCING);
    feed(
        &mut turns,
        &format!(r#"{},"origin":{{"kind":"task-notification"}}"#, result(r#""b""#)),
    );
    assert_eq!(
        (first.verdict(), second.verdict()),
        (None, Some(Verdict::Completed))
    );
    feed(&mut turns, INIT);
    feed(&mut turns, &result(""));
    assert_eq!(first.verdict(), Some(Verdict::Completed));
}

#[test]
fn frames_of_an_earlier_turns_background_agent_are_ambient() {
    let mut turns = TurnsCase::new();
    let mut a = prompt(&mut turns, "a", Dispatch::Alone);
    life(&mut turns, "a", "started");
    let frame = Frame::from_line(br#"{"type":"assistant","parent_tool_use_id":"t"}"#.as_slice()).remove(0);
    let now = turns.current();
    assert_eq!(
        turns.on_frame(&frame, now, |_| TurnUsage::default()).0,
        Route::Turn
    );
    assert_eq!(
        turns.on_frame(&frame, Some(99), |_| TurnUsage::default()).0,
        Route::Ambient
    );
    turns.tell();
    assert_eq!(a.kinds(), ["command_lifecycle", "assistant"]);
}

#[test]
fn an_id_is_sent_once() {
    let mut turns = TurnsCase::new();
    let again = |turns: &mut TurnsCase| turns.accept("a", "a".into(), ROOM, Dispatch::Alone);
    let _b = prompt(&mut turns, "b", Dispatch::Alone);
    let _waiting = prompt(&mut turns, "a", Dispatch::Alone);
    assert!(again(&mut turns).unwrap_err().is_invalid(), "it waits");
    assert_eq!(turns.take_back("a"), None);
    again(&mut turns).expect("it was never sent");
    turns.end("b");
    assert_eq!(send(&mut turns), ["a"]);
    turns.end("a");
    let error = again(&mut turns).unwrap_err();
    assert!(
        error.is_invalid() && error.to_string().contains("used before"),
        "{error}"
    );
}

#[test]
fn prompts_that_wait_have_a_bound_in_bytes_and_one_may_always_wait() {
    let mut turns = TurnsCase::new();
    let accept = |turns: &mut TurnsCase, id: &str, length: usize| {
        turns.accept(id, vec![b'x'; length], 100, Dispatch::Alone)
    };
    accept(&mut turns, "a", 1000).expect("nothing else waits");
    assert!(accept(&mut turns, "b", 1).unwrap_err().is_busy());
    assert_eq!(turns.held_bytes(), 1000);
    assert_eq!(turns.take_back("a"), None);
    accept(&mut turns, "c", 60).unwrap();
    accept(&mut turns, "d", 40).unwrap();
    assert!(accept(&mut turns, "e", 1).unwrap_err().is_busy());
}

const BROKE: &str =
    r#""type":"result","subtype":"error_during_execution","is_error":true,"num_turns":2,"errors":[]"#;

/// The CLI says that the turn broke; that it was asked to end it is known here.
#[test]
fn an_interrupted_turn_of_an_older_cli_is_interrupted() {
    let mut turns = TurnsCase::new();
    let a = prompt(&mut turns, "a", Dispatch::Alone);
    feed(&mut turns, INIT);
    feed(&mut turns, ASSISTANT);
    turns.interrupt();
    feed(&mut turns, BROKE);
    assert_eq!(a.verdict(), Some(Verdict::Interrupted));
    // The next turn was not asked to end.
    let b = prompt(&mut turns, "b", Dispatch::Alone);
    feed(&mut turns, INIT);
    feed(&mut turns, BROKE);
    assert!(
        matches!(b.verdict(), Some(Verdict::Failed(_))),
        "{:?}",
        b.verdict()
    );
    // Nor was one whose interrupt the CLI refused.
    let c = prompt(&mut turns, "c", Dispatch::Alone);
    feed(&mut turns, INIT);
    turns.interrupt();
    turns.interrupt_refused();
    feed(&mut turns, BROKE);
    assert!(
        matches!(c.verdict(), Some(Verdict::Failed(_))),
        "{:?}",
        c.verdict()
    );
    // A prompt that was interrupted before its turn began.
    let d = prompt(&mut turns, "d", Dispatch::Alone);
    turns.interrupt();
    feed(&mut turns, INIT);
    feed(&mut turns, BROKE);
    assert_eq!(d.verdict(), Some(Verdict::Interrupted));
}

/// The interrupt was under way as the turn ended by itself.
#[test]
fn an_interrupt_that_came_too_late_changes_nothing() {
    let failed = r#""type":"result","subtype":"success","is_error":true,"num_turns":1,"result":"API Error: Connection error.""#;
    let done = r#""type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"done""#;
    for (ends, verdict) in [
        (done.to_owned(), Verdict::Completed),
        (result(r#""a""#), Verdict::Completed),
        (failed.to_owned(), Verdict::Failed(Cause::ConnectionFailed)),
    ] {
        let mut turns = TurnsCase::new();
        let a = prompt(&mut turns, "a", Dispatch::Alone);
        feed(&mut turns, INIT);
        feed(&mut turns, ASSISTANT);
        turns.interrupt();
        feed(&mut turns, &ends);
        assert_eq!(a.verdict(), Some(verdict), "{ends}");
    }
}

/// What the CLI said before the result counts for the turn in which it said it.
#[test]
fn a_failure_is_told_by_the_message_of_its_own_turn() {
    let login = r#""type":"assistant","parent_tool_use_id":null,"error":"authentication_failed""#;
    let failed =
        r#""type":"result","subtype":"success","is_error":true,"num_turns":1,"terminal_reason":"api_error""#;
    let mut turns = TurnsCase::new();
    let a = prompt(&mut turns, "a", Dispatch::Alone);
    life(&mut turns, "a", "started");
    feed(&mut turns, INIT);
    feed(&mut turns, login);
    // The result of work in the background comes meanwhile.
    feed(
        &mut turns,
        &format!(
            "{},\"origin\":{{\"kind\":\"task-notification\"}}",
            result(r#""other""#)
        ),
    );
    assert_eq!(a.verdict(), None);
    feed(&mut turns, failed);
    assert_eq!(a.verdict(), Some(Verdict::Failed(Cause::NotLoggedIn)));
    let b = prompt(&mut turns, "b", Dispatch::Alone);
    life(&mut turns, "b", "started");
    feed(&mut turns, INIT);
    feed(&mut turns, failed);
    assert_eq!(b.verdict(), Some(Verdict::Failed(Cause::Api { status: None })));
}
