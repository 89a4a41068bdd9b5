//! A host with the real CLI, behind a scripted API.

use std::time::Duration;

use outrigger::protocol::RawJson;
use outrigger::sessions::Sessions;
use outrigger::testing::RealCli;
use outrigger_host::log::SqliteLog;
use outrigger_host::{Delivered, HostPolicy, NewSession, SessionHost, Subscription};
use serde_json::json;
use uuid::Uuid;

/// Longer than anything here takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(90);

fn user(text: &str, uuid: Uuid) -> RawJson {
    json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}}).into()
}

async fn until(events: &mut Subscription, kind: &str, status: &str) {
    let found = async {
        loop {
            if let Delivered::Event(event) = events.next().await.unwrap()
                && event.kind == kind
                && (status.is_empty() || event.payload.to_value().unwrap()["status"] == status)
            {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found)
        .await
        .unwrap_or_else(|_| panic!("no {kind} {status}"));
}

#[tokio::test]
async fn a_session_is_leased_asks_and_goes_on_in_another_process() {
    let real = RealCli::directives().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let project = real.sandbox().project().to_owned();
    let policy = HostPolicy::new(real.options(), [&project]);
    let log = SqliteLog::open(place.path().join("host.db")).unwrap();
    let host = SessionHost::open(policy, log).await.unwrap();
    let id = host.create(NewSession::new(&project), "ada").await.unwrap().id;
    let mut events = host.subscribe(&id, 0).await.unwrap();
    let call = "%tool Bash {\"command\": \"touch made\", \"description\": \"Make it\"}\n%say done";
    host.send(&id, user(call, Uuid::new_v4()), "ada").await.unwrap();
    until(&mut events, "approval_opened", "").await;
    // Nobody else may drive it.
    let sessions = Sessions::at(real.sandbox().config());
    assert!(sessions.claim(&id).take().is_err(), "the host has the lease");
    let pending = host.approvals(None, None, None, 10).await.unwrap();
    assert_eq!(pending.len(), 1);
    assert!(!project.join("made").exists());
    let allow: RawJson =
        json!({"behavior": "allow", "updatedInput": {"command": "touch made", "description": "Make it"}})
            .into();
    host.decide(pending[0].id, allow, "ada").await.unwrap();
    until(&mut events, "delivery_update", "processed").await;
    assert!(project.join("made").exists());

    host.stop(&id).await.unwrap();
    until(&mut events, "process_exited", "").await;
    host.send(&id, user("%say again", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    until(&mut events, "delivery_update", "processed").await;
    host.shutdown().await;
    drop(sessions.claim(&id).take().expect("the lease is released"));
}
