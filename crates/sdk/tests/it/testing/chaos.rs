//! The SDK under faults: `testing::Faulty`, and what must hold under any schedule of them.

use std::time::Duration;

use outrigger::Session;
use outrigger::testing::sim::fault::{At, Case, Effect, Phase as FaultPhase, Profile, Schedule, chaos};
use outrigger::testing::{Faulty, Recording, Replay, Simulated};
use outrigger::transport::Exit;
use tokio::time::timeout;

type Done = Result<(), Box<dyn std::error::Error>>;

/// Longer than all deadlines of a session together, on its clock.
const ETERNITY: Duration = Duration::from_secs(100_000);

/// How many seeds are tried in each test: enough to meet every effect, few enough for every run of the suite.
const SEEDS: u64 = 80;

async fn under(schedule: Schedule) -> (outrigger::Result<Session>, Faulty<Simulated>) {
    let cli = Simulated::agent(|agent| agent);
    let faulty = Faulty::new(cli.clone(), schedule).unwrap();
    (cli.options().transport(faulty.clone()).start().await, faulty)
}

/// Three turns, one with a tool and one interrupted, and a few requests. Each future must resolve, and each turn that has a result must
/// have its own. With `whole`, each must have one.
async fn conversation(case: Case, whole: bool) -> Done {
    let cli = Simulated::agent(|agent| agent);
    let faulty = Faulty::new(cli.clone(), case)?;
    let options = cli
        .options()
        .transport(faulty.clone())
        .include_partial_messages(true);
    let started = timeout(ETERNITY, options.start())
        .await
        .map_err(|_| "starting hangs")?;
    let session = match started {
        Ok(session) => session,
        Err(error) if whole => return Err(error.into()),
        Err(_) => return Ok(()),
    };
    for n in 0..3 {
        let text = format!("answer {n}");
        let turn = async {
            let mut turn = session.prompt(format!("%say {text}")).await?;
            turn.outcome().await
        };
        match timeout(ETERNITY, turn)
            .await
            .map_err(|_| format!("turn {n} hangs"))?
        {
            Ok(outcome) => {
                let said = outcome.result_text();
                let of_another = said
                    .strip_prefix("answer ")
                    .is_some_and(|other| ["0", "1", "2"].contains(&other))
                    && said != text;
                if of_another {
                    return Err(format!("turn {n} got what is another's: {said:?}").into());
                }
                if whole && said != text {
                    return Err(format!("turn {n} lost its answer: {outcome:?}").into());
                }
            }
            Err(error) if whole => return Err(error.into()),
            Err(_) => {}
        }
        let request = timeout(ETERNITY, session.set_model(Some("claude-sonnet-4-5"))).await;
        let request = request.map_err(|_| "a request hangs")?;
        if whole {
            request?;
        }
    }
    let interrupted = async {
        let mut turn = session.prompt("%hang\n%say begun").await?;
        let _ = session.interrupt().await;
        turn.outcome().await
    };
    let interrupted = timeout(ETERNITY, interrupted)
        .await
        .map_err(|_| "an interrupted turn hangs")?;
    if whole {
        interrupted?;
    }
    let closed = timeout(ETERNITY, session.close())
        .await
        .map_err(|_| "closing hangs")?;
    if whole {
        closed?;
    }
    Ok(())
}

#[test]
fn what_loses_nothing_changes_nothing() {
    let summary = chaos(Profile::harmless())
        .seeds(SEEDS)
        .run(|case| conversation(case, true))
        .unwrap();
    assert!(summary.strikes > SEEDS / 2, "{summary:?}");
}

#[test]
fn whatever_breaks_everything_ends_and_nobody_gets_what_is_anothers() {
    let summary = chaos(Profile::everything())
        .seeds(SEEDS)
        .run(|case| conversation(case, false))
        .unwrap();
    assert!(summary.strikes > SEEDS / 2, "{summary:?}");
}

/// What was recorded once is played under each schedule: no simulator is needed, nor the CLI that it was recorded with.
#[test]
fn a_session_over_a_cassette_comes_to_an_end_whatever_happens() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it.ndjson");
    let record = async {
        let cli = Simulated::agent(|agent| agent);
        let recording = Recording::new(cli.clone(), &path);
        let session = cli.options().transport(recording.clone()).start().await.unwrap();
        for prompt in ["%say one", "%say two"] {
            session.prompt(prompt).await.unwrap().outcome().await.unwrap();
        }
        session.close().await.unwrap();
        recording.finish().unwrap();
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(record);

    let conversation = move |case: Case, whole: bool| {
        let replay = Replay::open(&path);
        async move {
            let replay = replay?;
            let faulty = Faulty::new(replay.clone(), case)?;
            let session = match replay.options().transport(faulty).start().await {
                Err(_) if !whole => return Ok(()),
                started => started?,
            };
            for text in ["one", "two"] {
                let turn = async {
                    let mut turn = session.prompt(format!("%say {text}")).await?;
                    turn.outcome().await
                };
                let outcome = timeout(ETERNITY, turn).await.map_err(|_| "a turn hangs")?;
                match outcome {
                    Ok(outcome) if whole => assert_eq!(outcome.result_text(), text),
                    Err(error) if whole => return Err(error.into()),
                    _ => {}
                }
            }
            let closed = timeout(ETERNITY, session.close())
                .await
                .map_err(|_| "closing hangs")?;
            if whole {
                closed?;
                replay.check()?;
            }
            Done::Ok(())
        }
    };
    let everything = conversation.clone();
    let summary = chaos(Profile::everything())
        .seeds(SEEDS)
        .run(move |case| everything(case, false));
    assert!(summary.unwrap().strikes > SEEDS / 2);
    let harmless = conversation.clone();
    let summary = chaos(Profile::harmless())
        .seeds(SEEDS)
        .run(move |case| harmless(case, true));
    assert!(summary.unwrap().strikes > SEEDS / 2);
    // What loses something is found, and comes down to one fault.
    let failure = chaos(Profile::harmful().output_only()).run(move |case| conversation(case, true));
    let failure = failure.unwrap_err();
    assert_eq!(failure.schedule.faults.len(), 1, "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_ends_the_process_is_told_as_its_end() {
    for (effect, exit) in [
        (Effect::Exit { code: 0 }, Exit::with_code(0)),
        (Effect::Exit { code: 7 }, Exit::with_code(7)),
        (Effect::Signal { signal: 9 }, Exit::with_signal(9)),
    ] {
        let schedule = Schedule::new(1).with(effect, At::phase(FaultPhase::Result));
        let (session, faulty) = under(schedule).await;
        let mut turn = session.unwrap().prompt("%say hello").await.unwrap();
        let error = turn.outcome().await.unwrap_err();
        assert!(error.is_closed(), "{error}\n{}", faulty.story());
        assert_eq!(error.exit(), Some(exit), "{error}\n{}", faulty.story());
        assert_eq!(faulty.strikes().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cli_that_stands_still_and_ignores_sigterm_is_killed() {
    let schedule = Schedule::new(1)
        .with(Effect::IgnoreTerm {}, At::anywhere().nth(1))
        .with(Effect::Stall { ms: None }, At::phase(FaultPhase::Result))
        .with(Effect::Stall { ms: None }, At::anywhere().input().nth(2).behind());
    let (session, faulty) = under(schedule).await;
    let session = session.unwrap();
    let _turn = session.prompt("%say hello").await.unwrap();
    let exit = timeout(ETERNITY, session.close())
        .await
        .expect("it ends")
        .unwrap();
    assert_eq!(exit, Exit::with_signal(9), "{}", faulty.story());
}

#[tokio::test]
async fn what_takes_a_real_process_is_refused() {
    let schedule: Schedule = r#"{"faults": [{"fault": "grandchild", "survives": true}]}"#
        .parse()
        .unwrap();
    let error = Faulty::new(Simulated::agent(|agent| agent), schedule).unwrap_err();
    assert!(
        error.to_string().contains("only a real process can start one"),
        "{error}"
    );
}
