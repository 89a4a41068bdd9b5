//! The session ends, and the CLI does not want to.

use std::time::{Duration, Instant};

use outrigger::Options;
use outrigger::transport::Exit;
use outrigger_sim::peer::faulty::{FaultyScript, FaultyStep, Grandchild};

use super::stand::{Stand, on_both_runtimes, turn};

/// Grandchildren of all kinds.
fn family() -> FaultyScript {
    let mut script = FaultyScript::new();
    for own_session in [false, true] {
        for survives in [false, true] {
            script = script.grandchild(Grandchild {
                survives,
                own_session,
                holds_pipes: survives,
            });
        }
    }
    script
}

/// A CLI that does one turn and then ignores everything.
fn stubborn() -> FaultyScript {
    family()
        .step(FaultyStep::Survive)
        .initialize()
        .turn("fine")
        .step(FaultyStep::Hold)
}

fn impatient(stand: &Stand) -> Options {
    stand
        .options()
        .close_grace(Duration::from_millis(100))
        .term_grace(Duration::from_millis(100))
}

async fn ignoring_eof_and_sigterm_ends_in_a_kill_of_all() {
    let stand = Stand::new(&stubborn());
    let session = impatient(&stand).start().await.unwrap();
    turn(&session, "go").await;
    assert_eq!(stand.grandchildren().len(), 4);
    let exit = session.close().await.unwrap();
    assert_eq!(exit, Exit::with_signal(9));
    stand.gone().await;
}

/// It ends at once on SIGTERM, its children do not.
async fn ignoring_eof_alone_ends_in_sigterm() {
    let stand = Stand::new(
        &FaultyScript::new()
            .initialize()
            .turn("fine")
            .step(FaultyStep::Hold),
    );
    let session = impatient(&stand)
        .term_grace(Duration::from_secs(30))
        .start()
        .await
        .unwrap();
    turn(&session, "go").await;
    assert_eq!(session.close().await.unwrap(), Exit::with_signal(15));
    stand.gone().await;
}

async fn killing_leaves_nothing_of_the_family() {
    let stand = Stand::new(&stubborn());
    let session = stand.session().await;
    turn(&session, "go").await;
    assert_eq!(session.kill().await.unwrap(), Exit::with_signal(9));
    stand.gone().await;
}

/// What is in the CLI's process group ends with it, however it ends.
async fn an_orderly_end_leaves_nothing_of_the_group() {
    let held = |survives| Grandchild {
        survives,
        holds_pipes: true,
        ..Grandchild::default()
    };
    let stand = Stand::new(
        &FaultyScript::new()
            .grandchild(held(false))
            .grandchild(held(true))
            .initialize()
            .turn("fine"),
    );
    let session = stand.session().await;
    turn(&session, "go").await;
    let began = Instant::now();
    assert_eq!(session.close().await.unwrap(), Exit::with_code(0));
    // With the group the pipes are gone, and nobody waits for their end.
    assert!(began.elapsed() < Duration::from_secs(20));
    stand.gone().await;
}

async fn dropping_without_close_leaves_nothing() {
    let stand = Stand::new(&stubborn());
    let session = impatient(&stand).start().await.unwrap();
    turn(&session, "go").await;
    drop(session);
    stand.gone().await;

    // In mid-turn, with a turn and the streams dropped after the session.
    let stand = Stand::new(
        &family()
            .step(FaultyStep::Survive)
            .initialize()
            .prompt()
            .step(FaultyStep::Hold),
    );
    let session = impatient(&stand).start().await.unwrap();
    let streams = (session.frames(), session.ambient());
    let mut running = session.prompt("go").await.unwrap();
    assert!(running.next().await.is_some());
    drop(session);
    drop(running);
    stand.gone().await;
    drop(streams);
}

async fn a_start_that_is_given_up_leaves_nothing() {
    let stand = Stand::new(
        &family()
            .step(FaultyStep::Survive)
            .request("initialize")
            .step(FaultyStep::Hold),
    );
    let starting = tokio::spawn(impatient(&stand).start());
    stand
        .noted(|note| matches!(note, outrigger_sim::peer::faulty::Note::Received(_)))
        .await;
    starting.abort();
    assert!(starting.await.is_err());
    stand.gone().await;
}

async fn a_close_that_is_given_up_goes_on() {
    let stand = Stand::new(&stubborn());
    let session = impatient(&stand).start().await.unwrap();
    turn(&session, "go").await;
    let other = session.clone();
    let closing = tokio::time::timeout(Duration::from_millis(1), session.close()).await;
    assert!(closing.is_err(), "it takes longer");
    assert_eq!(other.wait_ended().await.exit(), Some(Exit::with_signal(9)));
    stand.gone().await;
}

on_both_runtimes!(
    ignoring_eof_and_sigterm_ends_in_a_kill_of_all,
    ignoring_eof_alone_ends_in_sigterm,
    killing_leaves_nothing_of_the_family,
    an_orderly_end_leaves_nothing_of_the_group,
    dropping_without_close_leaves_nothing,
    a_start_that_is_given_up_leaves_nothing,
    a_close_that_is_given_up_goes_on,
);

/// The runtime goes away first; nothing is left to ask the process in an orderly way.
#[test]
fn dropping_without_a_runtime_leaves_nothing() {
    for threads in [1, 2] {
        let stand = Stand::new(&stubborn());
        let runtime = match threads {
            1 => tokio::runtime::Builder::new_current_thread().enable_all().build(),
            _ => tokio::runtime::Runtime::new(),
        }
        .unwrap();
        let session = runtime.block_on(async {
            let session = impatient(&stand).start().await.unwrap();
            turn(&session, "go").await;
            session
        });
        drop(runtime);
        drop(session);
        let other = tokio::runtime::Runtime::new().unwrap();
        other.block_on(super::stand::within_reason(stand.gone()));
    }
}

/// A blocking wrapper keeps a runtime of one thread and drives it during its calls only. The session is dropped in between, or
/// in the last call.
#[test]
fn dropping_where_nobody_drives_the_runtime_leaves_nothing() {
    for within_a_call in [true, false] {
        let stand = Stand::new(&stubborn());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let session = runtime.block_on(async {
            let session = impatient(&stand).start().await.unwrap();
            turn(&session, "go").await;
            (!within_a_call).then_some(session)
        });
        drop(session);
        let other = tokio::runtime::Runtime::new().unwrap();
        other.block_on(super::stand::within_reason(stand.gone()));
        drop(runtime);
    }
}
