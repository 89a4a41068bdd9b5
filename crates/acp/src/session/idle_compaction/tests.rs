use proptest::prelude::*;

use super::*;

const AFTER: Duration = Duration::from_secs(3300);

fn idle() -> Idle {
    Idle::new(Some(IdleCompaction::new(AFTER).from_tokens(1000)))
}

#[test]
fn a_large_conversation_is_compacted_after_an_announcement() {
    let begin = Instant::now();
    let mut idle = idle();
    idle.follow(true, begin);
    assert_eq!(idle.due(), None);
    idle.follow(false, begin);
    let announce = begin + AFTER - NOTICE;
    assert_eq!(idle.due(), Some(announce));
    let told = IdleAction::Announce {
        tokens: 5000,
        after: NOTICE,
    };
    assert_eq!(idle.reached(Some(5000), announce), Some(told));
    assert_eq!(idle.due(), Some(begin + AFTER));
    assert_eq!(idle.reached(Some(5000), begin + AFTER), Some(IdleAction::Compact));
    // Its own turn begins no other, whether it succeeds or not.
    idle.follow(true, begin + AFTER);
    idle.follow(false, begin + AFTER);
    assert_eq!(idle.due(), None);
    idle.prompted();
    idle.follow(false, begin + AFTER);
    assert!(idle.due().is_some());
}

#[test]
fn work_and_a_cancel_call_it_off() {
    let begin = Instant::now();
    for is_cancelled in [true, false] {
        let mut idle = idle();
        idle.follow(false, begin);
        let announce = idle.due().unwrap();
        assert!(idle.reached(Some(5000), announce).is_some());
        match is_cancelled {
            true => idle.cancelled(),
            false => idle.follow(true, announce),
        }
        assert_eq!(idle.due(), None);
        assert_eq!(idle.reached(Some(5000), begin + AFTER), None);
    }
}

#[test]
fn nothing_happens_unless_it_is_wanted_and_worth_it() {
    let begin = Instant::now();
    let mut off = Idle::new(None);
    off.follow(false, begin);
    assert_eq!(off.due(), None);
    for tokens in [None, Some(999)] {
        let mut small = idle();
        small.follow(false, begin);
        let due = small.due().unwrap();
        assert_eq!(small.reached(tokens, due), None);
        assert_eq!(small.due(), None);
    }
}

#[derive(Debug, Clone)]
enum Input {
    Prompted,
    Cancelled,
    Follow(bool),
    Reached(Option<u64>),
    Wait(u64),
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        Just(Input::Prompted),
        Just(Input::Cancelled),
        any::<bool>().prop_map(Input::Follow),
        proptest::option::of(0u64..3000).prop_map(Input::Reached),
        (0u64..4000).prop_map(Input::Wait),
    ]
}

proptest! {
    /// For any inputs: a compaction is announced a minute before, with nothing between that calls it off, and there is one per prompt.
    #[test]
    fn no_compaction_comes_unannounced(inputs in proptest::collection::vec(input(), 0..60)) {
        let mut now = Instant::now();
        let mut idle = idle();
        let (mut announced, mut prompts, mut compactions) = (None, 1, 0);
        for input in inputs {
            match input {
                Input::Prompted => {
                    idle.prompted();
                    (announced, prompts) = (None, prompts + 1);
                }
                Input::Cancelled => {
                    idle.cancelled();
                    announced = None;
                }
                Input::Follow(is_busy) => {
                    idle.follow(is_busy, now);
                    if is_busy {
                        announced = None;
                    }
                }
                Input::Wait(seconds) => now += Duration::from_secs(seconds),
                Input::Reached(tokens) => match idle.reached(tokens, now) {
                    Some(IdleAction::Announce { .. }) => announced = Some(now),
                    Some(IdleAction::Compact) => {
                        prop_assert!(tokens.is_some_and(|tokens| tokens >= 1000));
                        prop_assert!(announced.take().is_some_and(|then| now >= then + NOTICE));
                        compactions += 1;
                        prop_assert!(compactions <= prompts);
                    }
                    None => {}
                },
            }
        }
    }
}
