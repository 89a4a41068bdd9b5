//! Laws of the foreground state for any order of events.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Happening {
    Begins,
    Ends,
    TurnBegins,
    TurnEnds,
    Asks(usize),
    Background(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        3 => Just(Happening::Begins),
        3 => Just(Happening::Ends),
        1 => Just(Happening::TurnBegins),
        2 => Just(Happening::TurnEnds),
        2 => (0_usize..3).prop_map(Happening::Asks),
        1 => (0_usize..3).prop_map(Happening::Background),
    ]
}

fn calls(count: usize) -> Vec<BackgroundCall> {
    let all = (0..count).map(|number| BackgroundCall {
        call: number.to_string().into(),
        is_terminal: number % 2 == 0,
    });
    all.collect()
}

proptest! {
    #[test]
    fn work_begins_before_it_ends_and_ends_once(happenings in prop::collection::vec(happening(), 0..60)) {
        let mut activity = Activity::default();
        let (mut begun, mut own, mut background, mut number) = (0_usize, false, 0, 0_u32);
        let mut doing = State::Idle;
        let mut last_end = None;
        let mut asked = 0;
        for happening in happenings {
            match happening {
                Happening::Begins => {
                    begun += 1;
                    activity.begins();
                }
                Happening::Ends if begun > 0 => {
                    begun -= 1;
                    number += 1;
                    last_end = Some(number);
                    activity.ends(number);
                }
                // A prompt ends only after it began.
                Happening::Ends => continue,
                Happening::TurnBegins => {
                    own = true;
                    activity.turn_begins();
                }
                Happening::TurnEnds => {
                    if own {
                        number += 1;
                        last_end = Some(number);
                    }
                    own = false;
                    activity.turn_ends(|| number);
                }
                Happening::Asks(questions) => {
                    asked = questions;
                    activity.asks(questions);
                }
                Happening::Background(count) => background = count,
            }
            let is_active = begun > 0 || own;
            let Some(news) = activity.news(calls(background)) else {
                // No change: the last report is still true.
                prop_assert_eq!(doing != State::Idle, is_active);
                continue;
            };
            prop_assert_eq!(&news.background, &calls(background));
            match news.doing {
                State::Idle => {
                    prop_assert!(!is_active);
                    // The report of the end has the result; an idle session has no further end.
                    prop_assert_eq!(news.end, last_end.take().filter(|_| doing != State::Idle));
                }
                State::Running => prop_assert!(is_active && asked == 0 && news.end.is_none()),
                State::RequiresAction => prop_assert!(is_active && asked > 0 && news.end.is_none()),
            }
            doing = news.doing;
            prop_assert_eq!(activity.news(calls(background)), None, "it is told once");
        }
    }
}

#[test]
fn a_question_of_work_in_the_background_leaves_the_session_idle() {
    let mut activity: Activity<()> = Activity::default();
    activity.asks(1);
    assert_eq!(activity.news(Vec::new()), None);
}

#[test]
fn prompts_that_share_a_turn_end_with_it_once() {
    let mut activity = Activity::default();
    activity.begins();
    activity.begins();
    assert_eq!(activity.news(Vec::new()).unwrap().doing, State::Running);
    activity.ends("first");
    assert_eq!(activity.news(Vec::new()), None);
    activity.ends("second");
    let news = activity.news(Vec::new()).unwrap();
    assert_eq!((news.doing, news.end), (State::Idle, Some("second")));
}
