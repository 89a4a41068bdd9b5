//! The real CLI and sessions that are somebody's: on two machines with one store, and on one disk.

use std::sync::Arc;
use std::time::Duration;

use outrigger::sessions::lease::driven_by_cli;
use outrigger::sessions::place::{project_dir_name, real_path};
use outrigger::sessions::store::{LeaseStore as _, MemoryStore, SessionKey};
use outrigger::sessions::{SessionId, Sessions};
use outrigger::{LeaseOptions, LeaseProblem, OnBusy, Options, Prompt};
use tempfile::TempDir;

use crate::history::{frames, live, without_prompts};
use crate::real::rig::{PATIENCE, Rig, turn};

/// A machine of its own: another home and config directory, the same project and store.
fn machine(rig: &Rig, store: &Arc<MemoryStore>, name: &str, on_busy: OnBusy) -> (Options, TempDir) {
    let home = tempfile::tempdir().unwrap();
    let options = rig
        .options()
        .env("HOME", home.path())
        .env("CLAUDE_CONFIG_DIR", home.path().join("config"))
        .session_store(Arc::clone(store) as _)
        .lease(lease(name, on_busy));
    (options, home)
}

fn lease(name: &str, on_busy: OnBusy) -> LeaseOptions {
    LeaseOptions::new().owner(name).on_busy(on_busy)
}

fn texts(store: &MemoryStore, key: &SessionKey) -> String {
    let entries = store.entries(key);
    entries
        .iter()
        .map(|entry| entry.get().to_owned() + "\n")
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_machines_has_a_session() {
    let rig = Rig::start().await;
    let store = Arc::new(MemoryStore::new());
    let (here, _here) = machine(&rig, &store, "here", OnBusy::Fail);
    let session = here.start().await.unwrap();
    turn(&session, "%say one").await;
    // The CLI has the id that it was given.
    let id = session.id().unwrap();
    let key = SessionKey::new(
        project_dir_name(&real_path(rig.sandbox().project().as_ref())),
        &id,
    );
    let holder = store.holder(&key).await.unwrap().expect("it is claimed");
    assert!(holder.owner.starts_with("here (process "), "{}", holder.owner);

    let (there, _there) = machine(&rig, &store, "there", OnBusy::Fail);
    let there = there.resume(&id);
    let error = there.clone().start().await.unwrap_err();
    let Some(LeaseProblem::Held { by, .. }) = error.as_lease_problem() else {
        panic!("{error}")
    };
    assert_eq!(by.who, holder.owner);

    // Beside it.
    let fork = there
        .clone()
        .lease(lease("there", OnBusy::Fork))
        .start()
        .await
        .unwrap();
    assert_eq!(fork.forked_from().as_deref(), Some(id.as_str()));
    turn(&fork, "%say beside").await;
    let fork_id = fork.id().unwrap();
    fork.close().await.unwrap();
    let forked = SessionKey::new(&key.project_key, &fork_id);
    assert!(texts(&store, &forked).contains("%say beside"));
    assert!(!texts(&store, &key).contains("%say beside"));

    // In its place, while a turn runs here: that turn is lost, and nothing of it gets into the store.
    let running = session
        .prompt("%tool Bash {\"command\":\"sleep 20\",\"description\":\"wait\"}\n%say late")
        .await
        .unwrap();
    let taken = there
        .clone()
        .lease(lease("there", OnBusy::TakeOver))
        .start()
        .await
        .unwrap();
    assert!(taken.fence() > session.fence());
    let told = live(&taken, &["%say three"]).await;
    // The one here finds out with what it is to store next, or when it renews.
    let stop = session.interrupt();
    let (_, error) = tokio::join!(stop, session.wait_ended());
    drop(running);
    let Some(LeaseProblem::TakenOver { by: Some(by), .. }) = error.as_lease_problem() else {
        panic!("{error}")
    };
    assert!(by.who.starts_with("there (process "), "{error}");
    assert!(session.stats().mirror_errors > 0);
    let stored = texts(&store, &key);
    assert!(
        stored.contains("%say three") && !stored.contains("%say late"),
        "{stored}"
    );

    // What was told is the history: as it runs, and from the store once its directory is gone.
    let last = |mut all: Vec<serde_json::Value>| all.split_off(all.len() - told.len());
    let history = taken.history().await.unwrap();
    assert!(!history.is_behind());
    assert_eq!(last(without_prompts(frames(history).await)), told);
    taken.clone().close().await.unwrap();
    let history = taken.history().await.unwrap();
    assert_eq!(last(without_prompts(frames(history).await)), told);
    assert!(store.holder(&key).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_on_disk_is_handed_over_and_its_history_is_what_was_told() {
    let rig = Rig::start().await;
    let session = rig.options().lease(OnBusy::Fail).start().await.unwrap();
    let told = live(
        &session,
        &[
            "%tool Bash {\"command\":\"true\",\"description\":\"try\"}\n%say one",
            "%say two",
        ],
    )
    .await;
    let history = session.history().await.unwrap();
    assert!(!history.is_behind(), "{history:?}");
    assert_eq!(without_prompts(frames(history).await), told);
    let id = session.id().unwrap();
    let options = rig.options().resume(&id);
    let error = options.clone().lease(OnBusy::Fail).start().await.unwrap_err();
    assert!(error.to_string().contains("nothing was started"), "{error}");
    let taken = options.lease(OnBusy::TakeOver).start().await.unwrap();
    let error = session.wait_ended().await;
    assert!(
        matches!(error.as_lease_problem(), Some(LeaseProblem::HandedOver { .. })),
        "{error}"
    );
    let more = live(&taken, &["%say three"]).await;
    assert_eq!(
        without_prompts(frames(taken.history().await.unwrap()).await),
        [told, more].concat()
    );
    taken.close().await.unwrap();
    let sessions = Sessions::at(rig.sandbox().config());
    drop(sessions.claim(&SessionId::new(&id).unwrap()).take().unwrap());
}

/// The CLI lists itself with the new id before it tells that id: it is no other program that drives the session.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_on_disk_that_is_cleared_gets_a_lease_on_its_new_id() {
    let rig = Rig::start().await;
    let session = rig.options().lease(OnBusy::Fail).start().await.unwrap();
    turn(&session, "%say one").await;
    let first = session.id().unwrap();
    let mut cleared = session.prompt(Prompt::command("clear", "")).await.unwrap();
    assert!(cleared.outcome().await.unwrap().is_success());
    turn(&session, "%say two").await;
    let second = session.id().unwrap();
    assert_ne!(second, first);
    // The lease on the first id is given back once there is one on the second.
    let sessions = Sessions::at(rig.sandbox().config());
    let id = SessionId::new(&first).unwrap();
    let given_back = async {
        while sessions.claim(&id).take().is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, given_back).await.unwrap();
    let id = SessionId::new(&second).unwrap();
    let Err(outrigger::sessions::Error::Busy(busy)) = sessions.claim(&id).take() else {
        panic!("the session has a lease")
    };
    assert_eq!(busy.fence.map(|fence| fence.0), Some(1), "{busy}");
    session.close().await.unwrap();
    drop(sessions.claim(&id).take().unwrap());
}

/// Without patience nobody waits for the holder to end its CLI: as that of a program that hangs, it is ended from outside.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_on_disk_is_taken_by_force_and_its_cli_is_gone_by_then() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .lease(lease("first", OnBusy::Fail))
        .start()
        .await
        .unwrap();
    let told = live(&session, &["%say one"]).await;
    let id = session.id().unwrap();
    let of = SessionId::new(&id).unwrap();
    let driver = driven_by_cli(rig.sandbox().config(), &of).unwrap();
    assert!(driver.owner.name.contains("a program drives"), "{driver}");
    let by_force = lease("second", OnBusy::TakeOver).patience(Duration::ZERO);
    let taken = rig.options().resume(&id).lease(by_force).start().await.unwrap();
    let error = session.wait_ended().await;
    let Some(LeaseProblem::TakenOver {
        fence: Some(1),
        by: Some(by),
        ..
    }) = error.as_lease_problem()
    else {
        panic!("{error}")
    };
    assert!(by.who.starts_with("second (process "), "{error}");
    let more = live(&taken, &["%say two"]).await;
    assert_eq!(
        without_prompts(frames(taken.history().await.unwrap()).await),
        [told, more].concat()
    );
    let now = driven_by_cli(rig.sandbox().config(), &of).unwrap();
    assert_ne!(now.owner.pid, driver.owner.pid);
    taken.close().await.unwrap();
}

/// Composed, the name of the directory would be that of another one, except on macOS.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_directory_with_a_decomposed_name_is_resumed_from_a_store() {
    let rig = Rig::start().await;
    let store = Arc::new(MemoryStore::new());
    let dir = rig.sandbox().path().join("cafe\u{301} x");
    std::fs::create_dir(&dir).unwrap();
    let (here, _home) = machine(&rig, &store, "here", OnBusy::Fail);
    let session = here.cwd(&dir).start().await.unwrap();
    live(&session, &["%say one"]).await;
    let id = session.id().unwrap();
    session.close().await.unwrap();
    let (there, _other_home) = machine(&rig, &store, "there", OnBusy::Fail);
    let session = there.cwd(&dir).resume(&id).start().await.unwrap();
    live(&session, &["%say two"]).await;
    session.close().await.unwrap();
    let key = SessionKey::new(project_dir_name(&real_path(&dir)), &id);
    let texts = texts(&store, &key);
    assert!(
        texts.contains("%say one") && texts.contains("%say two"),
        "{texts}"
    );
}
