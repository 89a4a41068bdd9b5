//! Faults around the real CLI: whatever happens in the middle of a turn, every wait ends, and no process is left.

use std::time::Duration;

use outrigger::testing::Faulty;
use outrigger::testing::sim::fault::{At, Effect, Phase as FaultPhase, Profile, Schedule, chaos};
use outrigger::{Local, Options, Policy};

use crate::real::rig::Rig;
use crate::witness::{living_in, none_left, until};

/// Longer than any wait of a session with these options.
const ETERNITY: Duration = Duration::from_secs(60);

/// A command that would run for ever, with another one beside it.
const ENDLESS: &str =
    "%say begun\n%+tool Bash {\"command\":\"tail -f /dev/null & tail -f /dev/null\"}\n%say done";

/// A turn with a tool.
const TOOL: &str = "%say begun\n%+tool Bash {\"command\":\"echo ok\"}\n%say done";

fn impatient(rig: &Rig) -> Options {
    rig.options()
        .include_partial_messages(true)
        .permissions(Policy::allow_all())
        .close_grace(Duration::from_millis(500))
        .term_grace(Duration::from_secs(2))
}

/// Runs a prompt under faults and closes the session. Gives how the turn ended, and what was struck.
async fn ended(rig: &Rig, schedule: Schedule, prompt: &str) -> (Result<String, outrigger::Error>, String) {
    let faulty = Faulty::new(Local::new(), &schedule).unwrap();
    let all = async {
        let session = impatient(rig).transport(faulty.clone()).start().await.unwrap();
        let mut running = session.prompt(prompt).await.unwrap();
        let outcome = running.outcome().await;
        // Whatever became of the turn, the end of the session comes, and says what it was.
        let _ = session.close().await;
        outcome.map(|outcome| outcome.result_text().to_owned())
    };
    let outcome = tokio::time::timeout(ETERNITY, all)
        .await
        .unwrap_or_else(|_| panic!("it hangs: {}", faulty.story()));
    none_left(&rig.sandbox().home()).await;
    (outcome, faulty.story())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_the_real_cli_in_a_turn_ends_the_turn_and_all_that_it_started() {
    let rig = Rig::start().await;
    for (effect, place) in [
        (Effect::Signal { signal: 9 }, At::phase(FaultPhase::MidStream)),
        (Effect::Exit { code: 0 }, At::phase(FaultPhase::Result)),
        (Effect::End {}, At::phase(FaultPhase::Result)),
        (Effect::End {}, At::kind("assistant").after_bytes(6_000)),
        // Its stdin ends behind the prompt: it goes on, finishes and ends, and so does the session.
        (Effect::End {}, At::anywhere().input().nth(2).behind()),
    ] {
        let is_input = place.direction != outrigger::testing::sim::fault::FrameDirection::Output;
        let schedule = Schedule::new(1).with(effect.clone(), place);
        let (outcome, story) = ended(&rig, schedule, TOOL).await;
        assert!(story.contains("\n  fault 0"), "nothing was struck: {story}");
        match outcome {
            Ok(text) => assert!(is_input && text == "done", "{text}\n{story}"),
            Err(error) => assert!(error.is_closed(), "{error}\n{story}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_cli_that_dies_while_a_tool_runs_takes_the_tool_with_it() {
    let rig = Rig::start().await;
    // The first of these answers `initialize`.
    let schedule = Schedule::new(1).with(Effect::Signal { signal: 9 }, At::kind("control_response").nth(2));
    let faulty = Faulty::new(Local::new(), &schedule).unwrap();
    let session = impatient(&rig).transport(faulty.clone()).start().await.unwrap();
    let mut running = session.prompt(ENDLESS).await.unwrap();
    let home = rig.sandbox().home();
    until("both commands", || {
        let all = living_in(&home);
        let tails = all
            .values()
            .filter(|command| command.starts_with("tail -f"))
            .count();
        if tails == 2 {
            Ok(())
        } else {
            Err(format!("{all:#?}"))
        }
    })
    .await;
    // It is asked something, and dies of the answer.
    let asked = tokio::time::timeout(ETERNITY, session.set_model(Some("sonnet"))).await;
    assert!(asked.expect("the request ends").is_err());
    let outcome = tokio::time::timeout(ETERNITY, running.outcome()).await;
    assert!(
        outcome.expect("the turn ends").unwrap_err().is_closed(),
        "{}",
        faulty.story()
    );
    none_left(&home).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_cli_that_says_nothing_more_is_ended_by_closing() {
    let rig = Rig::start().await;
    let schedule = Schedule::new(1)
        .with(Effect::IgnoreTerm {}, At::anywhere().nth(1))
        .with(Effect::Stall { ms: None }, At::phase(FaultPhase::MidStream));
    let faulty = Faulty::new(Local::new(), &schedule).unwrap();
    let session = impatient(&rig).transport(faulty.clone()).start().await.unwrap();
    let mut running = session.prompt(TOOL).await.unwrap();
    // The first frames of the turn came; what stands still is behind them.
    tokio::time::timeout(ETERNITY, running.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let exit = tokio::time::timeout(ETERNITY, session.close()).await;
    exit.expect("closing ends").unwrap();
    let outcome = tokio::time::timeout(ETERNITY, running.outcome()).await;
    assert!(outcome.expect("the turn ends").is_err(), "{}", faulty.story());
    none_left(&rig.sandbox().home()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_loses_nothing_changes_nothing_for_the_real_cli() {
    let rig = Rig::start().await;
    let schedule = Schedule::new(3)
        .with(Effect::Chop { bytes: 7 }, At::anywhere().probability(0.5))
        .with(Effect::Chop { bytes: 3 }, At::anywhere().input())
        .with(Effect::Merge { frames: 3 }, At::kind("stream_event"))
        .with(Effect::Insert { frame: None }, At::anywhere().probability(0.3))
        .with(
            Effect::AddFields {
                fields: Default::default(),
            },
            At::anywhere(),
        )
        .with(Effect::Stderr { bytes: 200_000 }, At::anywhere().nth(5));
    let (outcome, story) = ended(&rig, schedule, TOOL).await;
    assert_eq!(outcome.unwrap(), "done", "{story}");
}

/// A few seeds of everything: each takes a process.
#[test]
fn whatever_breaks_around_the_real_cli_everything_ends() {
    let summary = chaos(Profile::everything())
        .seeds(4)
        .real_time()
        .run(|case| async move {
            let rig = Rig::start().await;
            let faulty = Faulty::new(Local::new(), case)?;
            let options = impatient(&rig).transport(faulty.clone());
            // Whether they succeed is another matter; a wait that does not end is what is looked for.
            if let Ok(session) = options.start_deadline(Duration::from_secs(10)).start().await {
                for prompt in ["%say one", TOOL] {
                    if let Ok(mut running) = session.prompt(prompt).await {
                        let _ = tokio::time::timeout(Duration::from_secs(3), running.outcome()).await;
                    }
                }
                let _ = tokio::time::timeout(ETERNITY, session.close())
                    .await
                    .map_err(|_| "closing hangs")?;
            }
            none_left(&rig.sandbox().home()).await;
            Ok(())
        });
    assert!(summary.unwrap().strikes > 0);
}
