//! Supervision and batches with the real CLI, behind a scripted API.

use std::process::Command;
use std::time::Duration;

use futures_util::stream;
use outrigger::testing::RealCli;
use outrigger::{AfterTools, Detached, Local, Policy, Retry};
use outrigger_fleet::batch::{Batch, BatchJob, Journal};
use outrigger_fleet::supervise::{AfterLoss, IdFiles, Rotation, Supervised, Supervision};

/// Longer than anything here takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(90);

fn kill(pid: u32) {
    let killed = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

#[tokio::test]
async fn a_process_that_is_killed_in_a_tool_is_followed_by_another() {
    let real = RealCli::directives().await.unwrap();
    let ids = tempfile::tempdir().unwrap();
    let options = real
        .options()
        .transport(Local::new().detached(Detached::End))
        .permissions(Policy::allow_all());
    let supervision = Supervision::new()
        .delays(Duration::from_millis(10), Duration::from_millis(10))
        .after_loss(AfterLoss::GoOn("%say went on".to_owned()));
    let session = Supervised::new("helper", options, supervision, IdFiles::new(ids.path()));
    let mark = real.sandbox().project().join("mark");
    let call = format!(
        "%tool Bash {{\"command\": \"touch {}; sleep 100\", \"description\": \"Wait\"}}\n%say never",
        mark.display()
    );
    let turn = session.turn(call);
    let killer = async {
        while !mark.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        kill(session.changes().borrow().pid.unwrap());
    };
    let (outcome, ()) = tokio::time::timeout(PATIENCE, async { tokio::join!(turn, killer) })
        .await
        .unwrap();
    assert_eq!(outcome.unwrap().result_text(), "went on");
    let health = session.health();
    assert_eq!((health.deaths, health.turns), (1, 1));
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_conversation_that_is_too_large_is_compacted() {
    let real = RealCli::directives().await.unwrap();
    let ids = tempfile::tempdir().unwrap();
    let rotation = Rotation::compact().above_tokens(1);
    let supervision = Supervision::new().rotate(rotation);
    let session = Supervised::new("helper", real.options(), supervision, IdFiles::new(ids.path()));
    let turns = async {
        session.turn("%say hello").await.unwrap();
        let id = session.health().session_id;
        assert_eq!(session.health().rotations, 0);
        assert_eq!(session.turn("%say again").await.unwrap().result_text(), "again");
        let health = session.health();
        assert_eq!((health.rotations, health.session_id.clone()), (1, id));
        assert!(
            health.context_tokens.is_some_and(|tokens| tokens > 1),
            "{health:?}"
        );
    };
    tokio::time::timeout(PATIENCE, turns).await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_batch_that_is_dropped_in_a_tool_goes_on_in_its_session() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let options = real
        .options()
        .transport(Local::new().detached(Detached::End))
        .permissions(Policy::allow_all());
    let mark = real.sandbox().project().join("mark");
    let call = format!(
        "%tool Bash {{\"command\": \"touch {}; sleep 100\", \"description\": \"Wait\"}}\n%say never",
        mark.display()
    );
    let jobs = || stream::iter([BatchJob::new("a", "%say one"), BatchJob::new("b", call.clone())]);
    let path = place.path().join("journal");
    let batch = |journal| {
        let retry = Retry::new().after_tools(AfterTools::GoOn("%say went on".to_owned()));
        Batch::new(options.clone()).jobs(2).retry(retry).journal(journal)
    };

    let mut run = batch(Journal::open(&path).await.unwrap()).run(jobs()).unwrap();
    let first = tokio::time::timeout(PATIENCE, run.next()).await.unwrap().unwrap();
    assert_eq!(first.result.unwrap().text, "one");
    let begun = async {
        while !mark.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, begun).await.unwrap();
    drop(run);

    let mut journal = Journal::open(&path).await;
    while journal.is_err() {
        // The tasks of the first run end in their own time.
        tokio::time::sleep(Duration::from_millis(20)).await;
        journal = Journal::open(&path).await;
    }
    let mut run = batch(journal.unwrap()).run(jobs()).unwrap();
    let mut texts = Vec::new();
    while let Some(result) = tokio::time::timeout(PATIENCE, run.next()).await.unwrap() {
        texts.push((
            result.id,
            result.result.unwrap().text,
            result.tries,
            result.is_replayed,
        ));
    }
    texts.sort();
    let expected = [("a", "one", 1, true), ("b", "went on", 2, false)];
    assert_eq!(
        texts,
        expected.map(|(id, text, tries, again)| (id.to_owned(), text.to_owned(), tries, again))
    );
    run.finish().await.unwrap();
}
