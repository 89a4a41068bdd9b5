//! What the log keeps of webhooks and schedules.

use outrigger::testing::Simulated;
use outrigger_host::log::{SqliteLog, Write};
use outrigger_host::{
    DueRun, HostError, HostPolicy, NewSession, Schedule, SessionHost, SessionState, Webhook, WebhookEvent,
    WebhookSecret, WebhookWrite,
};

struct Place {
    cli: Simulated,
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            cli: Simulated::agent(|agent| agent.directives()),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn log(&self) -> SqliteLog {
        SqliteLog::open(self.dir.path().join("host.db")).unwrap()
    }

    async fn host(&self) -> SessionHost {
        let mut policy = HostPolicy::new(self.cli.options(), [self.dir.path()]);
        policy.lease = false;
        SessionHost::open(policy, self.log()).await.unwrap()
    }
}

fn webhook() -> Webhook {
    let events = vec![WebhookEvent::TurnResult, WebhookEvent::ApprovalOpened];
    Webhook::new(
        "https://example.com/hook",
        WebhookSecret::new("whsec_secret"),
        events,
    )
}

#[tokio::test]
async fn a_webhook_begins_at_the_newest_event_and_keeps_its_cursors() {
    let place = Place::new();
    let host = place.host().await;
    let log = host.event_log();
    let before = host
        .create(NewSession::new(place.dir.path()), "ada")
        .await
        .unwrap();
    let webhook = webhook();
    log.write_webhook(WebhookWrite::Add(Box::new(webhook.clone())))
        .await
        .unwrap();
    let after = host
        .create(NewSession::new(place.dir.path()), "ada")
        .await
        .unwrap();
    assert_eq!(
        log.behind(webhook.id, None, 10).await.unwrap(),
        vec![after.id.clone()]
    );
    assert_eq!(
        log.webhook_cursor(webhook.id, &before.id).await.unwrap(),
        before.head_seq
    );
    assert_eq!(log.webhook_cursor(webhook.id, &after.id).await.unwrap(), 0);

    let cursor = |seq| WebhookWrite::Cursor {
        webhook: webhook.id,
        session: after.id.clone(),
        seq,
    };
    log.write_webhook(cursor(after.head_seq)).await.unwrap();
    // A cursor does not go back.
    log.write_webhook(cursor(0)).await.unwrap();
    assert!(log.behind(webhook.id, None, 10).await.unwrap().is_empty());
    let failing = Some((5, "no answer".to_owned()));
    log.write_webhook(WebhookWrite::Failing {
        webhook: webhook.id,
        failing,
    })
    .await
    .unwrap();
    host.shutdown().await;
    drop((host, log));

    let log = place.log();
    let found = log.webhooks().await.unwrap();
    let mut expected = webhook.clone();
    expected.failing_since = Some(5);
    expected.last_error = Some("no answer".to_owned());
    assert_eq!(found, vec![expected]);
    assert_eq!(
        log.webhook_cursor(webhook.id, &after.id).await.unwrap(),
        after.head_seq
    );
    // Neither of the two ways to show a webhook shows its secret.
    assert!(!format!("{found:?}").contains("whsec_secret"));
    assert!(!serde_json::to_string(&found).unwrap().contains("whsec_secret"));

    log.write(&after.id, vec![Write::Delete]).await.unwrap();
    assert_eq!(log.webhook_cursor(webhook.id, &after.id).await.unwrap(), 0);
    log.write_webhook(cursor(9)).await.unwrap();
    assert_eq!(
        log.webhook_cursor(webhook.id, &after.id).await.unwrap(),
        0,
        "the session is gone"
    );
    log.write_webhook(WebhookWrite::Remove(webhook.id)).await.unwrap();
    let gone = log
        .write_webhook(WebhookWrite::Enable(webhook.id))
        .await
        .unwrap_err();
    assert!(
        matches!(gone, HostError::NoWebhook(id) if id == webhook.id),
        "{gone}"
    );
}

#[tokio::test]
async fn a_time_of_a_schedule_is_run_once() {
    let place = Place::new();
    let host = place.host().await;
    let log = host.event_log();
    let session = host
        .create(NewSession::new(place.dir.path()), "ada")
        .await
        .unwrap();
    let schedule = Schedule::new(session.id.clone(), "0 * * * *", "UTC", "%say hi", Some(1000));
    log.write(&session.id, vec![Write::Schedule(Box::new(schedule.clone()))])
        .await
        .unwrap();
    let mut due = DueRun::new(Some(2000));
    due.run = Some(1000);
    due.missed = Some((400, 900, 3));
    assert!(host.run_schedule(&schedule, due.clone()).await.unwrap());
    assert!(
        !host.run_schedule(&schedule, due.clone()).await.unwrap(),
        "it was done before"
    );
    let events = host.events(&session.id, 0, 1000).await.unwrap().events;
    let prompts: Vec<_> = events
        .iter()
        .filter(|event| event.kind == "user" && event.actor.is_some())
        .collect();
    assert_eq!(prompts.len(), 1);
    assert_eq!(prompts[0].event_id, schedule.prompt_id(1000));
    assert_eq!(
        prompts[0].actor.as_deref(),
        Some(&*format!("schedule:{}", schedule.id))
    );
    let missed: Vec<_> = events
        .iter()
        .filter(|event| event.kind == "schedule_missed")
        .collect();
    assert_eq!(missed.len(), 1);
    let payload = missed[0].payload.to_value().unwrap();
    assert_eq!((&payload["count"], &payload["runs"]), (&3.into(), &false.into()));
    assert_eq!(log.schedules().await.unwrap()[0].next_at, Some(2000));

    // What is refused leaves no trace.
    host.archive(&session.id).await.unwrap();
    let now = log.schedules().await.unwrap().remove(0);
    let mut due = DueRun::new(Some(3000));
    due.run = Some(2000);
    let refused = host.run_schedule(&now, due).await.unwrap_err();
    assert!(matches!(refused, HostError::Archived(_)), "{refused}");
    assert_eq!(log.schedules().await.unwrap(), vec![now]);
    assert_eq!(
        host.session(&session.id).await.unwrap().state,
        SessionState::Ended
    );
    host.delete(&session.id).await.unwrap();
    assert_eq!(log.schedules().await.unwrap(), vec![]);
    host.shutdown().await;
}
