//! Webhooks, with a receiver in memory, and pauses of milliseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use outrigger_host::log::BoxFuture;
use outrigger_host::{
    AddressRule, HostError, NewSession, SessionHost, Source, Webhook, WebhookEvent, WebhookSecret,
};
use outrigger_host_hooks::{Deliver, DeliveryError, Message, NewWebhook, WebhookLimits, Webhooks};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::receiver::{Answer, Attempts, Receiver};
use crate::rig::{Rig, append, payloads, state};

const URL: &str = "https://hooks.example.com/in";

const OTHER_URL: &str = "https://hooks.example.com/other";

fn limits() -> WebhookLimits {
    let mut limits = WebhookLimits::default();
    limits.first_pause = Duration::from_millis(1);
    limits.longest_pause = Duration::from_millis(4);
    limits
}

fn webhooks(rig: &Rig, host: &SessionHost) -> Webhooks {
    Webhooks::with_clock(host, AddressRule::public(), limits(), rig.clock())
}

/// A receiver that refuses everything until the switch is on.
fn switched(error: &'static str) -> (Arc<AtomicBool>, Arc<Receiver>, Attempts) {
    let switch = Arc::new(AtomicBool::new(false));
    let is_on = Arc::clone(&switch);
    let (receiver, attempts) = Receiver::new(move |_| {
        if is_on.load(Ordering::SeqCst) {
            Answer::Taken
        } else {
            Answer::Refused(DeliveryError::new(error))
        }
    });
    (switch, receiver, attempts)
}

async fn add(webhooks: &Webhooks) -> (Webhook, WebhookSecret) {
    let new = NewWebhook::new(URL, [WebhookEvent::SessionStateChanged]);
    webhooks.add(new, "ada").await.unwrap()
}

fn run(webhooks: &Webhooks, receiver: &Arc<Receiver>) -> JoinHandle<std::convert::Infallible> {
    let (webhooks, receiver) = (webhooks.clone(), Arc::clone(receiver));
    tokio::spawn(async move { webhooks.run(receiver).await })
}

/// Waits until a webhook is what the test expects.
async fn until(webhooks: &Webhooks, wanted: impl Fn(&Webhook) -> bool) -> Webhook {
    loop {
        let found = webhooks.list().await.unwrap().remove(0);
        if wanted(&found) {
            return found;
        }
        tokio::task::yield_now().await;
    }
}

fn verify(secret: &WebhookSecret, message: &Message) {
    let key = STANDARD
        .decode(secret.reveal().strip_prefix("whsec_").unwrap())
        .unwrap();
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{}.{}.{}", message.id, message.timestamp, message.body).as_bytes());
    let signature = STANDARD
        .decode(message.signature.strip_prefix("v1,").unwrap())
        .unwrap();
    mac.verify_slice(&signature).unwrap();
}

#[tokio::test]
async fn what_is_sent_is_signed_and_has_ids_and_states_and_no_conversation() {
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    state(&host, &session, "before").await;
    let webhooks = webhooks(&rig, &host);
    let (receiver, mut attempts) = Receiver::new(|_| Answer::Taken);
    let _running = run(&webhooks, &receiver);
    let (plain, secret) = webhooks
        .add(NewWebhook::new(URL, WebhookEvent::ALL), "ada")
        .await
        .unwrap();
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "num_turns": 3, "result": "a secret answer"});
    append(
        &host,
        &session,
        Source::Worker,
        json!({"type": "assistant", "message": "a secret answer"}),
    )
    .await;
    append(&host, &session, Source::Worker, result.clone()).await;
    let message = attempts.next().await;
    verify(&secret, &message);
    assert_eq!(message.url, URL);
    let body: serde_json::Value = serde_json::from_str(&message.body).unwrap();
    assert_eq!(body["type"], "turn_result");
    let expected = json!({"session_id": session.as_str(), "sequence_num": 4, "subtype": "success", "is_error": false, "num_turns": 3});
    assert_eq!(body["data"], expected, "the conversation is left out");
    let expired = json!({"type": "approval_decided", "approval_id": uuid::Uuid::nil(), "state": "expired"});
    append(&host, &session, Source::Host, expired).await;
    assert_eq!(attempts.body().await["type"], "approval_expired");
    // A frame of the CLI is no event of the host, whatever its type is.
    append(
        &host,
        &session,
        Source::Worker,
        json!({"type": "session_state_changed", "state": "forged"}),
    )
    .await;
    webhooks.remove(plain.id).await.unwrap();

    let mut new = NewWebhook::new(URL, [WebhookEvent::TurnResult]);
    new.content = true;
    webhooks.add(new, "ada").await.unwrap();
    append(&host, &session, Source::Worker, result.clone()).await;
    assert_eq!(attempts.body().await["data"]["event"], result);
    assert!(attempts.is_empty());
    host.shutdown().await;
}

#[tokio::test]
async fn a_restart_goes_on_from_the_cursors_and_nothing_is_lost() {
    let rig = Rig::new();
    let host = rig.host().await;
    let sessions = [rig.session(&host).await, rig.session(&host).await];
    let hooks = webhooks(&rig, &host);
    add(&hooks).await;
    let (receiver, mut attempts) = Receiver::new(|_| Answer::Taken);
    for number in 0..150 {
        state(&host, &sessions[number % 2], &format!("s{number}")).await;
    }
    let running = run(&hooks, &receiver);
    for _ in 0..40 {
        attempts.next().await;
    }
    // Wherever it is just now.
    running.abort();
    let _ = running.await;
    host.shutdown().await;
    drop((host, hooks));

    let host = rig.host().await;
    let hooks = webhooks(&rig, &host);
    for number in 150..160 {
        state(&host, &sessions[number % 2], &format!("s{number}")).await;
    }
    let (again, mut rest) = Receiver::new(|_| Answer::Taken);
    let _running = run(&hooks, &again);
    let mut last = [0; 2];
    loop {
        let body = rest.body().await;
        let number: usize = body["data"]["state"].as_str().unwrap()[1..].parse().unwrap();
        assert!(number == 0 || number > last[number % 2], "in order");
        last[number % 2] = number;
        if last.iter().all(|last| *last >= 158) {
            break;
        }
    }
    let (first, second) = (receiver.seen.lock().unwrap(), again.seen.lock().unwrap());
    let all: std::collections::HashSet<_> = first.keys().chain(second.keys()).collect();
    assert_eq!(all.len(), 160, "each event was delivered");
    // One of each session may have been delivered and not confirmed.
    let twice = first.keys().filter(|id| second.contains_key(*id)).count();
    assert!(twice <= 2, "{twice} were sent twice");
}

#[tokio::test]
async fn an_address_that_fails_is_tried_again_and_order_is_kept() {
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let hooks = webhooks(&rig, &host);
    add(&hooks).await;
    for name in ["a", "b", "c"] {
        state(&host, &session, name).await;
    }
    let (switch, receiver, mut attempts) = switched("the address answered 500");
    let _running = run(&hooks, &receiver);
    assert_eq!(attempts.states(3).await, ["a"; 3]);
    let failing = until(&hooks, |hook| hook.failing_since.is_some()).await;
    assert_eq!(failing.last_error.as_deref(), Some("the address answered 500"));
    switch.store(true, Ordering::SeqCst);
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "c") {
        names.extend(attempts.states(1).await);
    }
    names.dedup();
    assert_eq!(names, ["a", "b", "c"]);
    until(&hooks, |hook| {
        hook.failing_since.is_none() && hook.last_error.is_none()
    })
    .await;
}

#[tokio::test]
async fn a_message_that_is_never_taken_holds_back_its_own_session_alone() {
    struct Picky(Arc<Receiver>);

    impl Deliver for Picky {
        fn deliver(&self, message: Message) -> BoxFuture<'_, Result<(), DeliveryError>> {
            let is_odd = message.body.contains("odd");
            Box::pin(async move {
                self.0.deliver(message).await?;
                match is_odd {
                    true => Err(DeliveryError::new("the address answered 400")),
                    false => Ok(()),
                }
            })
        }
    }

    let rig = Rig::new();
    let host = rig.host().await;
    let mut sessions = [rig.session(&host).await, rig.session(&host).await];
    // The first one that is looked at.
    sessions.sort();
    let [odd, other] = sessions;
    let hooks = webhooks(&rig, &host);
    add(&hooks).await;
    state(&host, &odd, "odd").await;
    let (receiver, mut attempts) = Receiver::new(|_| Answer::TakenLater);
    let (running, picky) = (hooks.clone(), Arc::new(Picky(receiver)));
    let _running = tokio::spawn(async move { running.run(picky).await });
    until(&hooks, |hook| hook.failing_since.is_some()).await;
    for round in 0..3 {
        let name = format!("good {round}");
        state(&host, &other, &name).await;
        while !attempts.is_empty() {}
        // One attempt may have been under way, and one the next in turn.
        let states = attempts.states(4).await;
        assert!(states.contains(&name), "{states:?}");
    }
}

/// Sessions that have news again each time that one of their events is delivered keep no other from its turn.
#[tokio::test]
async fn busy_sessions_do_not_hold_back_the_others() {
    struct Busy {
        receiver: Arc<Receiver>,
        host: SessionHost,
        sessions: Vec<outrigger::SessionId>,
    }

    impl Deliver for Busy {
        fn deliver(&self, message: Message) -> BoxFuture<'_, Result<(), DeliveryError>> {
            Box::pin(async move {
                for session in &self.sessions {
                    state(&self.host, session, "busy").await;
                }
                self.receiver.deliver(message).await
            })
        }
    }

    let rig = Rig::new();
    let host = rig.host().await;
    let mut sessions = [
        rig.session(&host).await,
        rig.session(&host).await,
        rig.session(&host).await,
    ];
    // The first ones that are looked at.
    sessions.sort();
    let [first, second, quiet] = sessions;
    let mut limits = limits();
    limits.parallel = 1;
    let hooks = Webhooks::with_clock(&host, AddressRule::public(), limits, rig.clock());
    add(&hooks).await;
    state(&host, &quiet, "quiet").await;
    state(&host, &first, "busy").await;
    let (receiver, mut attempts) = Receiver::new(|_| Answer::Taken);
    let busy = Arc::new(Busy {
        receiver,
        host: host.clone(),
        sessions: vec![first, second],
    });
    let running = hooks.clone();
    let _running = tokio::spawn(async move { running.run(busy).await });
    let states = attempts.states(500).await;
    assert!(states.contains(&"quiet".to_owned()));
}

#[tokio::test]
async fn an_address_is_left_alone_for_as_long_as_it_asks() {
    const ASKED: Duration = Duration::from_millis(60);
    let start = Instant::now();
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let hooks = webhooks(&rig, &host);
    add(&hooks).await;
    state(&host, &session, "a").await;
    let (receiver, mut attempts) = Receiver::new(|number| match number {
        0 => {
            let mut busy = DeliveryError::new("the address answered 429");
            busy.retry_after = Some(ASKED);
            Answer::Refused(busy)
        }
        _ => Answer::Taken,
    });
    let _running = run(&hooks, &receiver);
    assert_eq!(attempts.states(2).await, ["a", "a"]);
    assert!(start.elapsed() >= ASKED);
}

#[tokio::test]
async fn an_address_that_does_not_answer_is_given_up_at_the_deadline() {
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let mut limits = limits();
    limits.attempt = Duration::from_millis(20);
    let hooks = Webhooks::with_clock(&host, AddressRule::public(), limits, rig.clock());
    add(&hooks).await;
    state(&host, &session, "a").await;
    let (receiver, mut attempts) = Receiver::new(|number| match number {
        0 => Answer::Silence,
        _ => Answer::Taken,
    });
    let _running = run(&hooks, &receiver);
    assert_eq!(attempts.states(2).await, ["a", "a"]);
    let healthy = until(&hooks, |hook| hook.failing_since.is_none()).await;
    assert_eq!(healthy.disabled_at, None);
}

#[tokio::test]
async fn a_dead_address_is_disabled_and_told_and_gets_what_it_missed_when_it_is_enabled() {
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let hooks = webhooks(&rig, &host);
    let (hook, _) = add(&hooks).await;
    state(&host, &session, "a").await;
    let (switch, receiver, mut attempts) = switched("nobody there");
    let _running = run(&hooks, &receiver);
    assert_eq!(attempts.states(3).await, ["a"; 3]);
    rig.advance(3 * 24 * 3600 - 1);
    // Some of these were tried before that, and not all.
    while !attempts.is_empty() {}
    assert_eq!(attempts.states(3).await, ["a"; 3]);
    let failing = until(&hooks, |hook| hook.failing_since.is_some()).await;
    assert_eq!(failing.disabled_at, None);
    rig.advance(1);
    until(&hooks, |hook| hook.disabled_at.is_some()).await;
    while payloads(&host, &session, "webhook_disabled").await.is_empty() {
        tokio::task::yield_now().await;
    }
    let told = payloads(&host, &session, "webhook_disabled").await;
    assert_eq!((told.len(), &told[0]["webhook_id"]), (1, &json!(hook.id)));
    // Nothing is sent to it any more; another one gets the next event.
    while !attempts.is_empty() {}
    let other = NewWebhook::new(OTHER_URL, [WebhookEvent::SessionStateChanged]);
    let (other, _) = hooks.add(other, "ada").await.unwrap();
    switch.store(true, Ordering::SeqCst);
    state(&host, &session, "b").await;
    assert_eq!(attempts.next().await.url, OTHER_URL);
    hooks.remove(other.id).await.unwrap();

    hooks.enable(hook.id).await.unwrap();
    assert_eq!(attempts.states(2).await, ["a", "b"]);
}

#[tokio::test]
async fn an_address_that_wants_nothing_any_more_is_disabled_at_once() {
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let hooks = webhooks(&rig, &host);
    add(&hooks).await;
    state(&host, &session, "a").await;
    let (receiver, mut attempts) = Receiver::new(|_| {
        let mut gone = DeliveryError::new("the address answered 410 Gone");
        gone.is_gone = true;
        Answer::Refused(gone)
    });
    let _running = run(&hooks, &receiver);
    assert_eq!(attempts.states(1).await, ["a"]);
    let disabled = until(&hooks, |hook| hook.disabled_at.is_some()).await;
    assert_eq!(
        disabled.last_error.as_deref(),
        Some("the address answered 410 Gone")
    );
}

#[tokio::test]
async fn events_that_were_removed_before_they_were_sent_are_told() {
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let hooks = webhooks(&rig, &host);
    add(&hooks).await;
    for name in ["a", "b", "c"] {
        state(&host, &session, name).await;
    }
    host.trim(&session, 3).await.unwrap();
    let (receiver, mut attempts) = Receiver::new(|_| Answer::Taken);
    let _running = run(&hooks, &receiver);
    let truncated = attempts.body().await;
    assert_eq!(
        (&truncated["type"], &truncated["data"]["sequence_num"]),
        (&"events_truncated".into(), &3.into())
    );
    assert_eq!(attempts.states(1).await, ["c"]);
}

#[tokio::test]
async fn a_webhook_has_few_messages_on_their_way_and_one_while_it_fails() {
    let rig = Rig::new();
    let host = rig.host().await;
    let hooks = webhooks(&rig, &host);
    add(&hooks).await;
    let mut sessions = Vec::new();
    for _ in 0..20 {
        let session = rig.session(&host).await;
        for name in ["a", "b"] {
            state(&host, &session, name).await;
        }
        sessions.push(session);
    }
    let (receiver, mut attempts) = Receiver::new(|_| Answer::TakenLater);
    let running = run(&hooks, &receiver);
    for _ in 0..40 {
        attempts.next().await;
    }
    let most = receiver.most_at_once.load(Ordering::SeqCst);
    assert!((2..=4).contains(&most), "{most} at once");
    running.abort();
    let _ = running.await;

    // It fails at first: from then on there is one at a time, until one is taken.
    let (failing, mut tried) = Receiver::new(|number| match number {
        0..=9 => Answer::RefusedLater(DeliveryError::new("no")),
        _ => Answer::TakenLater,
    });
    for session in &sessions {
        state(&host, session, "c").await;
    }
    let _running = run(&hooks, &failing);
    // As many as were on their way when the first one failed, and each of the rest alone.
    while failing.answered.load(Ordering::SeqCst) < 4 {
        tokio::task::yield_now().await;
    }
    failing.most_at_once.store(0, Ordering::SeqCst);
    for _ in 0..10 {
        tried.next().await;
    }
    assert_eq!(failing.most_at_once.load(Ordering::SeqCst), 1);
    while failing.seen.lock().unwrap().len() < 20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn webhooks_that_the_rule_or_a_bound_does_not_allow_are_refused() {
    let rig = Rig::new();
    let host = rig.host().await;
    let mut limits = WebhookLimits::default();
    limits.webhooks = 1;
    let hooks = Webhooks::new(&host, AddressRule::public(), limits);
    for url in [
        "http://example.com/",
        "https://127.0.0.1/",
        "https://[fd00::1]/",
        "example.com",
    ] {
        let refused = hooks
            .add(NewWebhook::new(url, WebhookEvent::ALL), "ada")
            .await
            .unwrap_err();
        assert!(matches!(refused, HostError::Invalid(_)), "{url}: {refused}");
    }
    hooks.add(NewWebhook::new(URL, []), "ada").await.unwrap_err();
    let (hook, _) = hooks
        .add(NewWebhook::new(URL, WebhookEvent::ALL), "ada")
        .await
        .unwrap();
    hooks
        .add(NewWebhook::new(URL, WebhookEvent::ALL), "ada")
        .await
        .unwrap_err();
    hooks.remove(hook.id).await.unwrap();
    assert!(matches!(
        hooks.remove(hook.id).await.unwrap_err(),
        HostError::NoWebhook(_)
    ));
}

#[tokio::test]
async fn another_session_with_the_id_of_a_deleted_one_is_told_from_its_beginning() {
    let rig = Rig::new();
    let host = rig.host().await;
    let mut limits = limits();
    (limits.first_pause, limits.longest_pause) = (Duration::from_secs(60), Duration::from_secs(60));
    let webhooks = Webhooks::with_clock(&host, AddressRule::public(), limits, rig.clock());
    let (switch, receiver, mut attempts) = switched("not now");
    let _running = run(&webhooks, &receiver);
    add(&webhooks).await;
    switch.store(true, Ordering::SeqCst);
    let (session, other) = (rig.session(&host).await, rig.session(&host).await);
    for name in ["one", "two"] {
        state(&host, &session, name).await;
        assert_eq!(attempts.body().await["data"]["state"], name);
    }
    // Nothing is sent for a while, in which the session is deleted and another one gets its id, and more events.
    switch.store(false, Ordering::SeqCst);
    state(&host, &other, "other").await;
    attempts.next().await;
    until(&webhooks, |webhook| webhook.failing_since.is_some()).await;
    host.archive(&session).await.unwrap();
    host.delete(&session).await.unwrap();
    let mut new = NewSession::new(rig.dir());
    new.id = Some(session.clone());
    host.create(new, "bob").await.unwrap();
    let names = ["first", "second", "third"];
    for name in names {
        state(&host, &session, name).await;
    }
    switch.store(true, Ordering::SeqCst);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    let mut told = Vec::new();
    while told.last().is_none_or(|last| last != "third") {
        let body = attempts.body().await;
        if body["data"]["session_id"] == session.as_str() {
            told.push(body["data"]["state"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(told, names);
    host.shutdown().await;
}

#[tokio::test]
async fn a_damaged_event_ends_the_messages_of_its_own_session_alone_and_is_told() {
    let rig = Rig::new();
    let host = rig.host().await;
    let webhooks = webhooks(&rig, &host);
    add(&webhooks).await;
    let (damaged, sound) = (rig.session(&host).await, rig.session(&host).await);
    state(&host, &damaged, "lost").await;
    state(&host, &sound, "one").await;
    let connection = rusqlite::Connection::open(rig.dir().join("host.db")).unwrap();
    let changed = connection.execute(
        "UPDATE events SET payload = replace(payload, 'lost', 'last') WHERE session_id = ?1",
        [damaged.as_str()],
    );
    assert!(changed.unwrap() > 0);
    let (receiver, mut attempts) = Receiver::new(|_| Answer::Taken);
    let _running = run(&webhooks, &receiver);
    let told = tokio::time::timeout(
        Duration::from_secs(60),
        until(&webhooks, |webhook| webhook.last_error.is_some()),
    );
    let told = told.await.expect("it is told");
    assert!(told.last_error.unwrap().contains(damaged.as_str()));
    assert_eq!(
        (told.failing_since, told.disabled_at),
        (None, None),
        "the address does its part"
    );
    // News of the session do not change that.
    state(&host, &damaged, "behind").await;
    state(&host, &sound, "two").await;
    for name in ["one", "two"] {
        assert_eq!(attempts.body().await["data"]["state"], name);
    }
    host.shutdown().await;
}
