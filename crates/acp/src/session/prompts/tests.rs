//! For any order of events, each prompt is answered once.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// The events. The numbers choose among the prompts.
#[derive(Debug, Clone)]
enum Happening {
    Prompt(How),
    Send,
    /// An attempt ended: a current one, an old one, or the same again.
    End(usize),
    Cancel(usize),
    CancelAll,
    Floor,
    Begun(usize),
    /// The running turn ends with its conversation, and its prompt continues with new content.
    PlanHandover,
    Word,
    Death,
}

fn happening() -> impl Strategy<Value = Happening> {
    let how = prop_oneof![Just(How::Alone), Just(How::Steer), Just(How::Now)];
    prop_oneof![
        4 => how.prop_map(Happening::Prompt),
        4 => Just(Happening::Send),
        4 => any::<usize>().prop_map(Happening::End),
        2 => any::<usize>().prop_map(Happening::Cancel),
        1 => Just(Happening::CancelAll),
        1 => Just(Happening::Floor),
        3 => any::<usize>().prop_map(Happening::Begun),
        1 => Just(Happening::PlanHandover),
        2 => Just(Happening::Word),
        1 => Just(Happening::Death),
    ]
}

/// Compares the machine with the prompts and answers so far.
#[derive(Default)]
struct Watch {
    prompts: Prompts<u64>,
    asked: u64,
    attempts: Vec<Attempt>,
    answered: BTreeMap<u64, u32>,
    cancelled: BTreeSet<u64>,
}

impl Watch {
    fn answer(&mut self, ended: impl IntoIterator<Item = EndedPrompt<u64>>) {
        for ended in ended {
            *self.answered.entry(ended.answer).or_default() += 1;
            assert_eq!(
                ended.cancelled,
                self.cancelled.contains(&ended.answer),
                "prompt {} is told as cancelled if and only if it was",
                ended.answer
            );
        }
    }

    fn open(&self) -> Vec<u64> {
        (1..=self.asked)
            .filter(|number| !self.answered.contains_key(number))
            .collect()
    }

    fn happens(&mut self, happening: &Happening) {
        let now = Instant::now();
        match happening {
            Happening::Prompt(how) => {
                self.asked += 1;
                let number = self.prompts.accept(Prompt::text("x"), *how, self.asked);
                assert_eq!(number, Ok(self.asked));
            }
            Happening::Send => {
                if let Some(sent) = self.prompts.send() {
                    assert!(!sent.stop.is_cancelled());
                    self.prompts.sent_as(sent.attempt, format!("{:?}", sent.attempt));
                    self.attempts.push(sent.attempt);
                }
            }
            Happening::End(which) => {
                if !self.attempts.is_empty() {
                    let attempt = self.attempts[which % self.attempts.len()];
                    let ended = self.prompts.end(attempt);
                    self.answer(ended);
                }
            }
            Happening::Cancel(which) => {
                let open = self.open();
                if !open.is_empty() {
                    let number = open[which % open.len()];
                    self.cancelled.insert(number);
                    let ended = self.prompts.cancel(number, now);
                    self.answer(ended);
                }
            }
            Happening::CancelAll => {
                self.cancelled.extend(self.open());
                let ended = self.prompts.cancel_all(now);
                self.answer(ended);
            }
            Happening::Floor => {
                let due = self.prompts.floor(Duration::ZERO).is_some();
                let ended = self.prompts.give_up_cancelled();
                assert_eq!(due, !ended.is_empty());
                self.answer(ended);
                assert!(self.prompts.floor(Duration::ZERO).is_none());
            }
            Happening::Begun(which) => {
                if !self.attempts.is_empty() {
                    let attempt = self.attempts[which % self.attempts.len()];
                    self.prompts.begun(&format!("{attempt:?}"));
                }
            }
            Happening::PlanHandover => {
                if let Some(attempt) = self.prompts.hold_others() {
                    let cancelled = self.prompts.give_up_cancelled();
                    self.answer(cancelled);
                    assert!(self.prompts.replace(attempt, Prompt::text("y")));
                    assert!(!self.prompts.is_running());
                    assert!(self.prompts.end(attempt).is_none(), "it was given up");
                }
            }
            Happening::Word => self.prompts.process_reacted(),
            Happening::Death => {
                let ended = self.prompts.lose();
                self.answer(ended);
                assert!(!self.prompts.is_running());
            }
        }
    }
}

proptest! {
    #[test]
    fn each_prompt_is_answered_once(happenings in proptest::collection::vec(happening(), 0..200)) {
        let mut watch = Watch::default();
        for happening in &happenings {
            watch.happens(happening);
        }
        let rest = watch.prompts.take_all();
        watch.answer(rest);
        prop_assert!(watch.open().is_empty(), "left without an answer: {:?}", watch.open());
        prop_assert!(watch.answered.values().all(|times| *times == 1));
        prop_assert!(watch.prompts.is_empty());
    }
}

#[test]
fn a_death_fails_the_turn_that_ran_and_no_other() {
    let mut watch = Watch::default();
    for _ in 0..3 {
        watch.happens(&Happening::Prompt(How::Alone));
    }
    watch.happens(&Happening::Send);
    watch.happens(&Happening::Send);
    watch.happens(&Happening::Word);
    watch.happens(&Happening::Death);
    assert_eq!(watch.answered.keys().copied().collect::<Vec<_>>(), [1]);
    // A late event of the former process.
    watch.happens(&Happening::End(1));
    assert_eq!(watch.open(), [2, 3]);
    assert!(watch.prompts.is_waiting());
}

#[test]
fn a_prompt_that_has_begun_is_not_sent_again() {
    let mut watch = Watch::default();
    for _ in 0..3 {
        watch.happens(&Happening::Prompt(How::Alone));
        watch.happens(&Happening::Send);
    }
    watch.happens(&Happening::Word);
    // The end of the first one is not known yet.
    watch.happens(&Happening::Begun(1));
    watch.happens(&Happening::Death);
    assert_eq!(watch.open(), [3]);
}

#[test]
fn a_prompt_goes_on_as_another_before_those_that_wait() {
    let mut prompts = Prompts::default();
    for name in ["one", "two", "three"] {
        prompts.accept(name.into(), How::Alone, name).unwrap();
    }
    let first = prompts.send().unwrap();
    let second = prompts.send().unwrap();
    prompts.sent_as(first.attempt, "first".to_owned());
    prompts.sent_as(second.attempt, "second".to_owned());
    assert_eq!(prompts.hold_others(), None, "none of them runs");
    prompts.begun("first");
    assert_eq!(prompts.hold_others(), Some(first.attempt));
    assert!(second.stop.is_cancelled() && !first.stop.is_cancelled());
    assert!(prompts.end(second.attempt).is_none(), "it waits again");
    assert!(prompts.replace(first.attempt, "plan".into()));
    assert!(!prompts.replace(first.attempt, "plan".into()));
    let again = prompts.send().unwrap();
    assert_eq!(prompts.end(again.attempt).unwrap().answer, "one");
    // A cancelled prompt does not continue.
    let running = prompts.send().unwrap();
    prompts.sent_as(running.attempt, "running".to_owned());
    prompts.begun("running");
    assert_eq!(prompts.hold_others(), Some(running.attempt));
    prompts.cancel_all(Instant::now());
    assert!(!prompts.replace(running.attempt, "plan".into()));
    assert!(prompts.end(running.attempt).unwrap().cancelled);
    assert!(prompts.is_empty());
}

#[test]
fn there_is_a_bound() {
    let mut prompts = Prompts::default();
    for number in 0..MOST {
        assert!(prompts.accept(Prompt::text("x"), How::Alone, number).is_ok());
    }
    assert_eq!(prompts.accept(Prompt::text("x"), How::Alone, MOST), Err(MOST));
}

#[test]
fn a_prompt_that_the_process_never_said_anything_about_is_sent_once_more() {
    let mut prompts = Prompts::default();
    prompts.accept("one".into(), How::Alone, "one").unwrap();
    prompts.accept("two".into(), How::Alone, "two").unwrap();
    let sent = |prompts: &mut Prompts<&str>| [prompts.send().is_some(), prompts.send().is_some()];
    assert_eq!(sent(&mut prompts), [true, true]);
    assert!(prompts.lose().is_empty(), "nothing was begun");
    assert_eq!(sent(&mut prompts), [true, true]);
    let lost: Vec<_> = prompts.lose().into_iter().map(|ended| ended.answer).collect();
    assert_eq!(
        lost,
        ["one"],
        "a prompt that ends every process is not sent for ever"
    );
    assert_eq!(sent(&mut prompts), [true, false]);
    prompts.process_reacted();
    let lost: Vec<_> = prompts.lose().into_iter().map(|ended| ended.answer).collect();
    assert_eq!(lost, ["two"], "its turn may have begun");
}
