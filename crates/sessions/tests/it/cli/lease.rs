//! Leases, with the real CLI as somebody who asked for none.

use std::time::Duration;

use outrigger_sessions::Error;
use outrigger_sessions::lease::{OnBusy, driven_by_cli};
use outrigger_sessions::relocate::RelocateOptions;

use super::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_a_cli_drives_is_busy() {
    let rig = Rig::start().await;
    let mut claude = rig.spawn(&rig.sandbox.project(), &[]);
    claude.prompt("%say one").await.unwrap();
    let id = claude.result().await.unwrap().value["session_id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let busy = driven_by_cli(rig.sandbox.config(), &id).unwrap();
    assert_eq!((Some(busy.owner.pid), busy.fence), (claude.id(), None));

    let file = rig.sessions.find(&id).unwrap();
    let claim = || rig.sessions.claim(&id);
    assert!(matches!(claim().take(), Err(Error::Busy(_))));
    let by_force = claim()
        .on_busy(OnBusy::TakeOver)
        .patience(Duration::from_millis(50));
    assert!(matches!(by_force.take(), Err(Error::Busy(_))));
    let fork = claim().on_busy(OnBusy::Fork).take().unwrap();
    assert_eq!(fork.forked_from(), Some(&id));
    let elsewhere = file.relocate(&rig.sessions, rig.sandbox.home(), &RelocateOptions::new());
    assert!(matches!(elsewhere, Err(Error::Busy(_))));
    rig.sessions.append_torn_line(&id);
    assert!(matches!(file.repair().unwrap().in_place(), Err(Error::Busy(_))));

    claude.finish().await.unwrap();
    assert_eq!(driven_by_cli(rig.sandbox.config(), &id), None);
    let lease = claim().take().unwrap();
    assert_eq!(rig.resume(&id).await.len(), 3);
    lease.check().unwrap();
    assert_eq!(rig.resume(fork.id()).await.len(), 3);
}

trait Torn {
    fn append_torn_line(&self, id: &outrigger_sessions::SessionId);
}

impl Torn for outrigger_sessions::Sessions {
    fn append_torn_line(&self, id: &outrigger_sessions::SessionId) {
        let path = self.find(id).unwrap().path;
        let mut file = std::fs::File::options().append(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, b"{\"torn").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cli_that_was_killed_has_nothing() {
    let rig = Rig::start().await;
    let mut claude = rig.spawn(&rig.sandbox.project(), &[]);
    claude.prompt("%say one").await.unwrap();
    let id = claude.result().await.unwrap().value["session_id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(driven_by_cli(rig.sandbox.config(), &id).is_some());
    // Dropping it kills it.
    drop(claude);
    let until = std::time::Instant::now() + Duration::from_secs(30);
    while driven_by_cli(rig.sandbox.config(), &id).is_some() {
        assert!(std::time::Instant::now() < until, "it counts for ever");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let lease = rig.sessions.claim(&id).take().unwrap();
    assert_eq!(rig.resume(lease.id()).await.len(), 3);
}
