//! Sessions that batches and supervised sessions start.

use std::time::Duration;

use futures_util::stream;
use opentelemetry_proto::tonic::trace::v1::Span;
use outrigger::Retry;
use outrigger::testing::Simulated;
use outrigger_fleet::batch::{Batch, BatchJob};
use outrigger_fleet::supervise::{HealthState, IdFiles, Rotation, Supervised, Supervision};
use outrigger_sim::peer::Signal;

use crate::collector::{Collector, Received, of};

/// What each session of this name was started for, in order.
fn starts<'a>(received: &'a Received, name: &str) -> Vec<(String, String, &'a Span)> {
    let spans = received.spans.iter().map(|(_, span)| span);
    let mut starts: Vec<_> = spans
        .filter(|span| of(span, "outrigger.start.name").as_deref() == Some(name))
        .map(|span| {
            let of = |key| of(span, key).unwrap();
            (of("outrigger.start.number"), of("outrigger.start.reason"), span)
        })
        .collect();
    starts.sort_by(|one, other| one.0.cmp(&other.0));
    starts
}

#[tokio::test]
async fn each_try_of_a_job_is_a_session_with_its_turn() {
    let collector = Collector::start().await;
    let exporter = collector.exporter();
    let cli = Simulated::agent(|agent| agent.directives().max_retries(0));
    let delay = Duration::from_millis(1);
    let batch = Batch::new(cli.options())
        .retry(Retry::new().tries(3).delays(delay, delay))
        .watch(exporter.telemetry().watch());
    let jobs = [
        BatchJob::new("good", "%say one"),
        BatchJob::new("bad", "%error 529 n=9\n%say never"),
    ];
    let mut run = batch.run(stream::iter(jobs)).unwrap();
    let mut tries = Vec::new();
    while let Some(result) = run.next().await {
        assert_eq!(result.result.is_ok(), result.id == "good", "{result:?}");
        tries.push((result.id, result.tries));
    }
    run.finish().await.unwrap();
    exporter.shutdown().await.unwrap();

    let received = collector.received();
    let turns: Vec<&Span> = received
        .spans
        .iter()
        .map(|(_, span)| span)
        .filter(|span| span.name.starts_with("invoke_agent"))
        .collect();
    let mut sessions = 0;
    for (id, tries) in tries {
        let starts = starts(&received, &id);
        let told: Vec<_> = starts
            .iter()
            .map(|(number, reason, _)| (number.clone(), reason.as_str()))
            .collect();
        let expected: Vec<_> = (1..=tries)
            .map(|number| (number.to_string(), "attempt"))
            .collect();
        assert_eq!(told, expected, "{id}");
        for (_, _, session) in starts {
            sessions += 1;
            let below = turns.iter().filter(|turn| turn.parent_span_id == session.span_id);
            assert_eq!(below.count(), 1, "{id}");
        }
    }
    assert_eq!(sessions, 4);
}

#[tokio::test]
async fn restarts_and_rotations_are_told_in_the_trace_of_a_supervised_session() {
    let collector = Collector::start().await;
    let exporter = collector.exporter();
    let cli = Simulated::agent(|agent| agent.directives());
    let ids = tempfile::tempdir().unwrap();
    let delay = Duration::from_millis(1);
    let rotation = Rotation::hand_over()
        .asking("%say a summary")
        .older_than(Duration::ZERO);
    let supervision = Supervision::new()
        .delays(delay, delay)
        .rotate(rotation)
        .watch(exporter.telemetry().watch());
    let session = Supervised::new("helper", cli.options(), supervision, IdFiles::new(ids.path()));
    session.turn("%say one").await.unwrap();
    cli.started()[0].signal(Signal::Kill);
    while session.health().state != HealthState::Down {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Restarted, and handed over.
    session.turn("%say two").await.unwrap();
    session.close().await.unwrap();
    drop(session);
    exporter.shutdown().await.unwrap();

    let received = collector.received();
    let starts = starts(&received, "helper");
    let told: Vec<_> = starts
        .iter()
        .map(|(number, reason, _)| (number.as_str(), reason.as_str()))
        .collect();
    assert_eq!(told, [("1", "first"), ("3", "rotation")]);
    let (before, after) = (starts[0].2, starts[1].2);
    let events: Vec<_> = before.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(events, ["restart"]);
    assert_eq!(after.links.len(), 1);
    assert_eq!(after.links[0].span_id, before.span_id);
    assert_eq!(received.sums["outrigger.restarts"], 1.0);
    let turns = |session: &Span| {
        let spans = received.spans.iter();
        spans
            .filter(|(_, span)| span.parent_span_id == session.span_id)
            .count()
    };
    // The summary is a turn of the conversation before.
    assert_eq!((turns(before), turns(after)), (2, 1));
}
