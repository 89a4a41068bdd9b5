//! The real CLI takes the trace context, and its own telemetry goes to the same collector.

use outrigger::testing::RealCli;

use crate::collector::Collector;

#[tokio::test]
async fn the_clis_own_spans_belong_to_the_trace_of_the_session() {
    let collector = Collector::start().await;
    let real = RealCli::directives().await.unwrap();
    let exporter = collector.exporter();
    let trace = exporter.telemetry().with_cli_telemetry(true).session();
    let options = trace
        .options(real.options())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    let session = options.start().await.unwrap();
    trace.observe(&session);
    let mut turn = session.prompt("%say done").await.unwrap();
    assert!(turn.outcome().await.unwrap().is_success());
    drop(turn);
    session.close().await.unwrap();
    drop(trace);
    exporter.shutdown().await.unwrap();

    let received = collector.received();
    let session = received.span("session");
    let theirs: Vec<_> = received
        .spans
        .iter()
        .filter(|(service, _)| service != "test")
        .collect();
    let names: Vec<_> = theirs
        .iter()
        .map(|(service, span)| (service, &span.name))
        .collect();
    assert!(!theirs.is_empty(), "the CLI sent no spans");
    for (_, span) in &theirs {
        assert_eq!(span.trace_id, session.trace_id, "{names:?}");
    }
    assert!(
        theirs
            .iter()
            .any(|(_, span)| span.parent_span_id == session.span_id),
        "{names:?}"
    );
}
