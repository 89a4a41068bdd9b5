//! Schedules. Time is paused, so that a runner looks at its clock again at once; the test sets that clock.

use std::convert::Infallible;
use std::future::Future as _;
use std::task::Poll;
use std::time::Duration;

use outrigger::SessionId;
use outrigger_host::log::{NewEvent, Write};
use outrigger_host::{HostError, MissedRuns, Schedule, SessionHost, Source};
use outrigger_host_hooks::{NewSchedule, Schedules};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::rig::{Rig, payloads};

fn hourly(session: &SessionId) -> NewSchedule {
    NewSchedule::new(session.clone(), "0 * * * *", "UTC", "%say hi")
}

fn run(schedules: &Schedules) -> JoinHandle<Infallible> {
    let schedules = schedules.clone();
    tokio::spawn(async move { schedules.run().await })
}

async fn prompts(host: &SessionHost, session: &SessionId) -> Vec<uuid::Uuid> {
    let page = host.events(session, 0, 1000).await.unwrap();
    let prompts = page
        .events
        .iter()
        .filter(|event| event.kind == "user" && event.actor.is_some());
    prompts.map(|event| event.event_id).collect()
}

/// Waits for so long that a runner has looked at its clock.
async fn looked() {
    tokio::time::sleep(Duration::from_secs(3600)).await;
}

/// Waits until a schedule is due at another time than before.
async fn moved(schedules: &Schedules, before: &Schedule) -> Schedule {
    loop {
        let now = schedules.list().await.unwrap().remove(0);
        if now.next_at != before.next_at {
            return now;
        }
        // Time goes on only while nobody has anything to do.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_is_sent_at_its_times() {
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let schedules = Schedules::with_clock(&host, rig.clock());
    let _running = run(&schedules);
    let first = schedules.add(hourly(&session), "ada").await.unwrap();
    rig.advance(3599);
    looked().await;
    assert!(prompts(&host, &session).await.is_empty());
    rig.advance(1);
    let second = moved(&schedules, &first).await;
    rig.advance(3630);
    let third = moved(&schedules, &second).await;
    let due = |schedule: &Schedule| first.prompt_id(schedule.next_at.unwrap());
    assert_eq!(prompts(&host, &session).await, [due(&first), due(&second)]);
    assert!(payloads(&host, &session, "schedule_missed").await.is_empty());

    schedules.remove(third.id).await.unwrap();
    rig.advance(7200);
    looked().await;
    assert_eq!(prompts(&host, &session).await.len(), 2);
    assert!(matches!(
        schedules.remove(third.id).await.unwrap_err(),
        HostError::NoSchedule(_)
    ));
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn times_that_passed_while_the_host_was_down_are_told() {
    for (missed, runs) in [(MissedRuns::Skip, 0), (MissedRuns::Latest, 1)] {
        let rig = Rig::new();
        let host = rig.host().await;
        let session = rig.session(&host).await;
        let mut new = hourly(&session);
        new.missed = missed;
        let schedules = Schedules::with_clock(&host, rig.clock());
        let before = schedules.add(new, "ada").await.unwrap();
        host.shutdown().await;
        drop((host, schedules));

        rig.advance(4 * 3600 + 600);
        let host = rig.host().await;
        let schedules = Schedules::with_clock(&host, rig.clock());
        let _running = run(&schedules);
        moved(&schedules, &before).await;
        let told = payloads(&host, &session, "schedule_missed").await;
        assert_eq!(told.len(), 1);
        assert_eq!(
            (&told[0]["count"], &told[0]["runs"]),
            (&4.into(), &(runs == 1).into())
        );
        assert_eq!(prompts(&host, &session).await.len(), runs);
        host.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_doubles_nothing_and_silences_no_schedule() {
    const YEAR: i64 = 365 * 24 * 3600;
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let schedules = Schedules::with_clock(&host, rig.clock());
    let first = schedules.add(hourly(&session), "ada").await.unwrap();
    let mut running = run(&schedules);
    rig.advance(3600);
    let second = moved(&schedules, &first).await;
    let due = |schedule: &Schedule| first.prompt_id(schedule.next_at.unwrap());
    // A little, so that the time comes again.
    rig.advance(-10);
    assert_eq!(moved(&schedules, &second).await.next_at, first.next_at);
    rig.advance(10);
    let again = moved(&schedules, &first).await;
    assert_eq!(again.next_at, second.next_at);
    assert_eq!(prompts(&host, &session).await, [due(&first)]);
    assert!(payloads(&host, &session, "schedule_missed").await.is_empty());

    // A year, while the host runs, and while it is down.
    let mut before = again;
    for is_down in [false, true] {
        rig.advance(YEAR);
        let ahead = moved(&schedules, &before).await;
        rig.advance(-YEAR);
        if is_down {
            running.abort();
            running = run(&schedules);
        }
        before = moved(&schedules, &ahead).await;
        assert_eq!(before.next_at, second.next_at);
    }
    let known = prompts(&host, &session).await.len();
    rig.advance(3600);
    let third = moved(&schedules, &before).await;
    assert_eq!(prompts(&host, &session).await[known..], [due(&second)]);
    assert_eq!(third.next_at.unwrap() - second.next_at.unwrap(), 3_600_000);
    host.shutdown().await;
}

/// Whatever the runner was doing when it was dropped, the next one sends the prompt once.
#[tokio::test(start_paused = true)]
async fn a_time_is_run_once_wherever_the_runner_is_dropped() {
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let schedules = Schedules::with_clock(&host, rig.clock());
    let mut schedule = schedules.add(hourly(&session), "ada").await.unwrap();
    let mut expected = Vec::new();
    for polls in 0..12 {
        rig.advance(3600);
        {
            let mut running = std::pin::pin!(schedules.run());
            let mut left = polls;
            std::future::poll_fn(|context| {
                if left == 0 {
                    return Poll::Ready(());
                }
                left -= 1;
                let Poll::Pending = running.as_mut().poll(context);
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
        expected.push(schedule.prompt_id(schedule.next_at.unwrap()));
        let running = run(&schedules);
        schedule = moved(&schedules, &schedule).await;
        running.abort();
        let _ = running.await;
        assert_eq!(
            prompts(&host, &session).await,
            expected,
            "dropped after {polls} polls"
        );
    }
    assert!(payloads(&host, &session, "schedule_missed").await.is_empty());
    host.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_of_an_archived_session_is_disabled_and_told() {
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let schedules = Schedules::with_clock(&host, rig.clock());
    schedules.add(hourly(&session), "ada").await.unwrap();
    host.archive(&session).await.unwrap();
    assert!(matches!(
        schedules.add(hourly(&session), "ada").await.unwrap_err(),
        HostError::Archived(_)
    ));
    let _running = run(&schedules);
    rig.advance(3600);
    while schedules.list().await.unwrap()[0].enabled {
        looked().await;
    }
    assert_eq!(payloads(&host, &session, "schedule_disabled").await.len(), 1);
    assert!(prompts(&host, &session).await.is_empty());
    host.shutdown().await;
}

#[tokio::test]
async fn schedules_that_make_no_sense_are_refused() {
    let rig = Rig::new();
    let host = rig.host().await;
    let session = rig.session(&host).await;
    let schedules = Schedules::new(&host);
    let with = |change: fn(&mut NewSchedule)| {
        let mut new = hourly(&session);
        change(&mut new);
        new
    };
    for new in [
        with(|new| new.cron = "every day".to_owned()),
        with(|new| new.cron = "0 0 30 2 *".to_owned()),
        with(|new| new.time_zone = "Europe/Nowhere".to_owned()),
        with(|new| new.prompt = "  ".to_owned()),
        with(|new| new.prompt = "x".repeat(100_000)),
    ] {
        let refused = schedules.add(new, "ada").await.unwrap_err();
        assert!(matches!(refused, HostError::Invalid(_)), "{refused}");
    }
    let missing = NewSchedule::new(SessionId::random(), "0 * * * *", "UTC", "hi");
    assert!(matches!(
        schedules.add(missing, "ada").await.unwrap_err(),
        HostError::NoSession(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_session_without_room_holds_up_no_other_schedule() {
    let rig = Rig::new();
    let host = rig.host().await;
    let (full, other) = (rig.session(&host).await, rig.session(&host).await);
    // Nobody is told of them, so that they wait.
    let many = (0..1000).map(|n| {
        let event = NewEvent::new(Source::Client, "user", json!({"type": "user", "n": n}).into());
        Write::Accept(event)
    });
    host.event_log().write(&full, many.collect()).await.unwrap();
    let schedules = Schedules::with_clock(&host, rig.clock());
    let first = schedules.add(hourly(&full), "ada").await.unwrap();
    schedules.add(hourly(&other), "ada").await.unwrap();
    let _running = run(&schedules);
    rig.advance(3600);
    while prompts(&host, &other).await.is_empty() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // It is due still, and comes when there is room.
    let listed = schedules.list().await.unwrap();
    let still = listed.iter().find(|schedule| schedule.id == first.id).unwrap();
    assert_eq!(still.next_at, first.next_at);
    assert!(prompts(&host, &full).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_be_read_holds_up_no_other_schedule() {
    let rig = Rig::new();
    let host = rig.host().await;
    let (damaged, sound) = (rig.session(&host).await, rig.session(&host).await);
    let schedules = Schedules::with_clock(&host, rig.clock());
    schedules.add(hourly(&damaged), "ada").await.unwrap();
    schedules.add(hourly(&sound), "ada").await.unwrap();
    let connection = rusqlite::Connection::open(rig.dir().join("host.db")).unwrap();
    let changed = connection.execute(
        "UPDATE sessions SET state = 'confused' WHERE id = ?1",
        [damaged.as_str()],
    );
    assert_eq!(changed.unwrap(), 1);
    let _running = run(&schedules);
    rig.advance(3600);
    // Time goes on only while nobody has anything to do.
    let sent = async {
        while prompts(&host, &sound).await.is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(3600), sent)
        .await
        .unwrap();
    host.shutdown().await;
}
