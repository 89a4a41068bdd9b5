use super::*;
use crate::cause::Cause;
use crate::conn::budget::{Budget, SlowReader};
use crate::conn::lane::{LaneIn, LaneOut, lane};

fn a_lane() -> (LaneIn, LaneOut) {
    lane(&std::sync::Arc::new(Budget::new(1 << 20, SlowReader::LeaveOut)))
}

struct Prompt {
    settled: watch::Receiver<Settled>,
    lane: LaneOut,
}

impl Prompt {
    fn verdict(&self) -> Option<Verdict> {
        self.settled
            .borrow()
            .as_ref()
            .map(|settled| settled.as_ref().unwrap().verdict().clone())
    }

    fn kinds(&mut self) -> Vec<String> {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let mut kinds = Vec::new();
        while let std::task::Poll::Ready(Some(crate::conn::lane::Item::Frame(frame))) =
            self.lane.poll_next(&mut cx)
        {
            kinds.push(frame.kind().to_owned());
        }
        kinds
    }
}

/// Accepts a prompt and sends it if it may be sent.
fn prompt(turns: &mut Turns, id: &str, dispatch: Dispatch) -> Prompt {
    let (tx, rx) = a_lane();
    let settled = turns.accept(id, id.into(), ROOM, dispatch, tx, false).unwrap();
    send(turns);
    Prompt { settled, lane: rx }
}

fn send(turns: &mut Turns) -> Vec<String> {
    std::iter::from_fn(|| turns.next_to_send().map(|(id, _)| id)).collect()
}

fn feed(turns: &mut Turns, fields: &str) -> Route {
    let frame = Frame::from_line(format!("{{{fields}}}").into_bytes()).remove(0);
    assert!(frame.flaw().is_none(), "{fields}");
    let (route, _) = turns.on_frame(&frame, None, |_| TurnUsage::default());
    turns.lanes().for_each(LaneIn::flush);
    route
}

fn life(turns: &mut Turns, id: &str, state: &str) {
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

fn aborted(id: &str) -> String {
    format!(
        r#""type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","num_turns":2,"user_message_uuids":["{id}"]"#
    )
}

#[test]
fn a_prompt_gets_its_own_turn_and_the_next_waits_for_it() {
    let mut turns = Turns::new(Span::none());
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
    let mut turns = Turns::new(Span::none());
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
    assert_eq!(
        c.settled.borrow().as_ref().unwrap().as_ref().unwrap().prompts(),
        ["b", "c"]
    );
}

#[test]
fn a_folded_prompt_ends_with_the_turn_that_took_it_in() {
    let mut turns = Turns::new(Span::none());
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

#[test]
fn a_result_of_foreign_origin_resolves_nobody() {
    let mut turns = Turns::new(Span::none());
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
    let mut turns = Turns::new(Span::none());
    let mut mine = prompt(&mut turns, "a", Dispatch::Alone);
    feed(&mut turns, ANNOUNCING);
    feed(&mut turns, ASSISTANT);
    feed(&mut turns, &result(""));
    assert_eq!((mine.verdict(), mine.kinds()), (None, vec![]));
    life(&mut turns, "a", "queued");
    let (frames, outcome) = turns.disowned();
    assert_eq!((frames.len(), outcome.unwrap().prompts().len()), (3, 0));
    assert!(!turns.confirm(Some(1)));
    life(&mut turns, "a", "started");
    feed(&mut turns, ANNOUNCING);
    assert_eq!(mine.verdict(), None);
    feed(&mut turns, &result(r#""a""#));
    assert_eq!(mine.verdict(), Some(Verdict::Completed));
    let kinds = ["command_lifecycle", "command_lifecycle", "system", "result"];
    assert_eq!(mine.kinds(), kinds);
    assert!(turns.disowned().0.is_empty() && !turns.confirm(None));
}

#[test]
fn a_result_of_another_turn_does_not_end_the_running_one() {
    let foreign = format!(r#"{},"origin":{{"kind":"task-notification"}}"#, result(""));
    let mut turns = Turns::new(Span::none());
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
        let mut turns = Turns::new(Span::none());
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
        let outcome = folded.settled.borrow().clone().unwrap().unwrap();
        assert_eq!(outcome.prompts(), ["a"], "the outcome is about the prompt");
        assert!(!turns.is_running() && !turns.any_open());
    }
}

#[test]
fn a_cancelled_queued_prompt_ends_without_a_result_and_an_aborted_one_with_it() {
    let mut turns = Turns::new(Span::none());
    let a = prompt(&mut turns, "a", Dispatch::AtOnce);
    let b = prompt(&mut turns, "b", Dispatch::AtOnce);
    life(&mut turns, "a", "started");
    life(&mut turns, "b", "cancelled");
    assert_eq!(b.verdict(), Some(Verdict::Cancelled));
    feed(&mut turns, &aborted("a"));
    life(&mut turns, "a", "cancelled");
    assert_eq!(a.verdict(), Some(Verdict::Interrupted));
}

#[test]
fn nothing_is_sent_while_an_interrupt_is_carried_out() {
    let mut turns = Turns::new(Span::none());
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
    let mut turns = Turns::new(Span::none());
    let _a = prompt(&mut turns, "a", Dispatch::Alone);
    let held = prompt(&mut turns, "b", Dispatch::Alone);
    let _sent = prompt(&mut turns, "c", Dispatch::AtOnce);
    life(&mut turns, "a", "started");
    assert_eq!(turns.take_back("a"), TakeBack::Running);
    assert_eq!(
        (turns.take_back("b"), held.verdict()),
        (TakeBack::Done, Some(Verdict::Cancelled))
    );
    assert_eq!(turns.take_back("b"), TakeBack::Ended);
    send(&mut turns);
    assert_eq!(turns.take_back("c"), TakeBack::AskCli);
}

#[test]
fn a_cli_that_reports_no_lifecycle_is_taken_in_order() {
    let mut turns = Turns::new(Span::none());
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
    let mut turns = Turns::new(Span::none());
    let mut first = prompt(&mut turns, "a", Dispatch::Alone);
    let second = prompt(&mut turns, "b", Dispatch::Alone);
    // A turn of foreign origin is nobody's all the same.
    feed(&mut turns, ANNOUNCING);
    let foreign = format!(r#"{},"origin":{{"kind":"task-notification"}}"#, result(""));
    assert_eq!(feed(&mut turns, &foreign), Route::Ambient);
    assert_eq!(turns.disowned().0.len(), 1);
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
    let mut turns = Turns::new(Span::none());
    let mut first = prompt(&mut turns, "a", Dispatch::Alone);
    feed(&mut turns, ANNOUNCING);
    let number = turns.new_guess();
    assert_eq!((number, first.kinds()), (Some(1), vec![]));
    assert!(!turns.confirm(number));
    turns.lanes().for_each(LaneIn::flush);
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
        let mut turns = Turns::new(Span::none());
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
        let mut turns = Turns::new(Span::none());
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
fn a_result_of_foreign_origin_ends_no_prompt_that_it_does_not_name() {
    let mut turns = Turns::new(Span::none());
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
    let mut turns = Turns::new(Span::none());
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
    turns.lanes().for_each(LaneIn::flush);
    assert_eq!(a.kinds(), ["command_lifecycle", "assistant"]);
}

#[test]
fn an_id_is_sent_once() {
    let mut turns = Turns::new(Span::none());
    let again = |turns: &mut Turns| {
        let (tx, _rx) = a_lane();
        turns.accept("a", Vec::new(), ROOM, Dispatch::Alone, tx, false)
    };
    let _b = prompt(&mut turns, "b", Dispatch::Alone);
    let _waiting = prompt(&mut turns, "a", Dispatch::Alone);
    assert!(again(&mut turns).unwrap_err().is_invalid(), "it waits");
    assert_eq!(turns.take_back("a"), TakeBack::Done);
    again(&mut turns).expect("it was never sent");
    turns.end("b", Outcome::without_result(Verdict::NoResult, "b"));
    assert_eq!(send(&mut turns), ["a"]);
    turns.end("a", Outcome::without_result(Verdict::NoResult, "a"));
    let error = again(&mut turns).unwrap_err();
    assert!(
        error.is_invalid() && error.to_string().contains("used before"),
        "{error}"
    );
}

#[test]
fn prompts_that_wait_have_a_bound_in_bytes_and_one_may_always_wait() {
    let mut turns = Turns::new(Span::none());
    let mut accept = |id: &str, length: usize| {
        let (tx, _rx) = a_lane();
        turns.accept(id, vec![b'x'; length], 100, Dispatch::Alone, tx, false)
    };
    accept("a", 1000).expect("nothing else waits");
    assert!(accept("b", 1).unwrap_err().is_busy());
    assert_eq!(turns.held_bytes(), 1000);
    assert_eq!(turns.take_back("a"), TakeBack::Done);
    let mut accept = |id: &str, length: usize| {
        let (tx, _rx) = a_lane();
        turns.accept(id, vec![b'x'; length], 100, Dispatch::Alone, tx, false)
    };
    accept("c", 60).unwrap();
    accept("d", 40).unwrap();
    assert!(accept("e", 1).unwrap_err().is_busy());
}

const BROKE: &str =
    r#""type":"result","subtype":"error_during_execution","is_error":true,"num_turns":2,"errors":[]"#;

/// The CLI says that the turn broke; that it was asked to end it is known here.
#[test]
fn an_interrupted_turn_of_an_older_cli_is_interrupted() {
    let mut turns = Turns::new(Span::none());
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
        let mut turns = Turns::new(Span::none());
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
    let mut turns = Turns::new(Span::none());
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
