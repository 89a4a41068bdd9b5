//! Any calls in any order, given up anywhere, with CLIs that report the life of prompts and with such that do not: each prompt ends,
//! and the session goes on.

use std::sync::Arc;
use std::time::Duration;

use outrigger::Turn;
use outrigger::testing::sim::fault::{At, Effect, Schedule};
use outrigger::testing::{Faulty, Simulated};
use proptest::prelude::*;
use tokio::time::{sleep, timeout};

use super::{Cancel, When, closes, still_works};
use crate::support::PATIENCE;

#[derive(Debug, Clone, Copy)]
enum Call {
    Prompt,
    Queue,
    Steer,
    Interrupt,
    /// Of the prompt of this number, if there is one.
    Cancel(usize),
}

/// A call, how often it is polled, and how long nothing is done after it.
type Step = (Call, usize, u64);

fn step() -> impl Strategy<Value = Step> {
    let call = prop_oneof![
        3 => Just(Call::Prompt),
        2 => Just(Call::Queue),
        1 => Just(Call::Steer),
        2 => Just(Call::Interrupt),
        3 => (0usize..4).prop_map(Call::Cancel),
    ];
    (
        call,
        prop_oneof![0usize..4, Just(100)],
        prop_oneof![Just(0), 1u64..60],
    )
}

async fn play(reports: bool, steps: Vec<Step>) {
    let cli = Simulated::agent(|agent| agent);
    let mut schedule = Schedule::new(0);
    if !reports {
        schedule = schedule.with(Effect::Drop {}, At::kind("command_lifecycle"));
    }
    let faulty = Faulty::new(cli.clone(), schedule).unwrap();
    let session = cli.options().transport(faulty).start().await.unwrap();
    let mut turns: Vec<Turn> = Vec::new();
    for (number, (call, polls, pause)) in steps.into_iter().enumerate() {
        let text = format!(
            "{}%slow 5 chunk=1\n%say text {number}",
            ["", "%hang\n"][number % 2]
        );
        let when = When::AtOnce;
        let cancel = Cancel { polls, when };
        match call {
            Call::Prompt => turns.push(session.prompt(text).await.unwrap()),
            Call::Queue => turns.push(session.queue(text).await.unwrap()),
            Call::Steer => turns.push(session.steer(text).await.unwrap()),
            Call::Interrupt => drop(cancel.of(session.interrupt()).await.transpose().unwrap()),
            Call::Cancel(at) => {
                if let Some(turn) = turns.get(at) {
                    cancel.of(turn.cancel()).await.transpose().unwrap();
                }
            }
        }
        sleep(Duration::from_millis(pause)).await;
    }
    // What does not end by itself is ended.
    sleep(Duration::from_secs(2)).await;
    for turn in &mut turns {
        if turn.watch().now().is_none() {
            timeout(PATIENCE, turn.cancel()).await.expect("it ends").unwrap();
        }
        timeout(PATIENCE, turn.outcome())
            .await
            .expect("it ended")
            .unwrap();
    }
    drop(turns);
    still_works(&session, "the program").await;
    let running = Arc::new(cli.started().remove(0));
    closes(session, &running, "the program").await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_prompt_ends_and_the_session_goes_on(
        reports in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..9),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(reports, steps));
    }
}
