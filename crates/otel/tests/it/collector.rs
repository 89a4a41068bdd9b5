//! A collector of OpenTelemetry on the loopback.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use outrigger_otel::Otlp;
use prost::Message as _;

/// All that came.
#[derive(Default)]
pub(crate) struct Received {
    /// With the name of the service.
    pub(crate) spans: Vec<(String, Span)>,
    /// The attributes of the points, by metric.
    pub(crate) metrics: BTreeMap<String, BTreeSet<String>>,
    /// The sum of a counter's last points.
    pub(crate) sums: BTreeMap<String, f64>,
    /// The number of values in the last points of a histogram.
    pub(crate) counts: BTreeMap<String, u64>,
    /// The last points of a gauge: the value of the first attribute, and the number.
    pub(crate) gauges: BTreeMap<String, Vec<(String, f64)>>,
    /// The attributes of the logs, by event.
    pub(crate) logs: BTreeMap<String, BTreeSet<String>>,
    /// All texts of ours, to search for what must not be there.
    pub(crate) raw: Vec<u8>,
}

#[derive(Clone, Default)]
pub(crate) struct Collector {
    received: Arc<Mutex<Received>>,
    pub(crate) url: String,
}

fn keys(attributes: &[KeyValue]) -> impl Iterator<Item = String> + '_ {
    attributes.iter().map(|attribute| attribute.key.clone())
}

pub(crate) fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(any_value::Value::DoubleValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// The attribute of a span.
pub(crate) fn of(span: &Span, key: &str) -> Option<String> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == key)?;
    Some(text(attribute.value.as_ref()))
}

impl Received {
    fn take(&mut self, signal: &str, body: &Bytes) {
        let is_ours = match signal {
            "traces" => {
                let request = ExportTraceServiceRequest::decode(body.clone()).unwrap();
                let mut is_ours = false;
                for resource in request.resource_spans {
                    let of = resource.resource.unwrap_or_default();
                    let service = of
                        .attributes
                        .iter()
                        .find(|attribute| attribute.key == "service.name");
                    let service = text(service.and_then(|service| service.value.as_ref()));
                    is_ours |= service == "test";
                    let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                    self.spans.extend(spans.map(|span| (service.clone(), span)));
                }
                is_ours
            }
            "metrics" => {
                let request = ExportMetricsServiceRequest::decode(body.clone()).unwrap();
                let scopes = request
                    .resource_metrics
                    .into_iter()
                    .flat_map(|of| of.scope_metrics);
                for metric in scopes.flat_map(|scope| scope.metrics) {
                    let seen = self.metrics.entry(metric.name.clone()).or_default();
                    match metric.data.unwrap() {
                        Data::Histogram(data) => {
                            let points = &data.data_points;
                            points
                                .iter()
                                .for_each(|point| seen.extend(keys(&point.attributes)));
                            let count = points.iter().map(|point| point.count).sum();
                            self.counts.insert(metric.name, count);
                        }
                        Data::Sum(data) => {
                            use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
                            let mut sum = 0.0;
                            for point in data.data_points {
                                seen.extend(keys(&point.attributes));
                                sum += match point.value {
                                    Some(Value::AsDouble(number)) => number,
                                    Some(Value::AsInt(number)) => number as f64,
                                    None => 0.0,
                                };
                            }
                            self.sums.insert(metric.name, sum);
                        }
                        Data::Gauge(data) => {
                            use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
                            let points = data.data_points.into_iter().map(|point| {
                                seen.extend(keys(&point.attributes));
                                let name = point.attributes.first();
                                let number = match point.value {
                                    Some(Value::AsDouble(number)) => number,
                                    Some(Value::AsInt(number)) => number as f64,
                                    None => 0.0,
                                };
                                (text(name.and_then(|name| name.value.as_ref())), number)
                            });
                            self.gauges.insert(metric.name, points.collect());
                        }
                        other => panic!("{other:?}"),
                    }
                }
                true
            }
            _ => {
                let request = ExportLogsServiceRequest::decode(body.clone()).unwrap();
                let scopes = request.resource_logs.into_iter().flat_map(|of| of.scope_logs);
                for log in scopes.flat_map(|scope| scope.log_records) {
                    assert!(!log.trace_id.is_empty() || log.event_name.is_empty());
                    self.logs
                        .entry(log.event_name)
                        .or_default()
                        .extend(keys(&log.attributes));
                }
                true
            }
        };
        if is_ours {
            self.raw.extend_from_slice(body);
        }
    }

    /// The only span of this name.
    pub(crate) fn span(&self, name: &str) -> &Span {
        let mut found = self.spans.iter().filter(|(_, span)| span.name == name);
        let names: Vec<&str> = self.spans.iter().map(|(_, span)| span.name.as_str()).collect();
        let (_, span) = found.next().unwrap_or_else(|| panic!("no {name}: {names:?}"));
        assert!(found.next().is_none(), "{name} twice: {names:?}");
        span
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.raw
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    }
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let collector = Self {
            received: Arc::default(),
            url: format!("http://{}", listener.local_addr().unwrap()),
        };
        let take =
            async |State(received): State<Arc<Mutex<Received>>>, Path(signal): Path<String>, body: Bytes| {
                received.lock().unwrap().take(&signal, &body);
            };
        let app = Router::new()
            .route("/v1/{signal}", axum::routing::post(take))
            .with_state(Arc::clone(&collector.received));
        tokio::spawn(async move { axum::serve(listener, app).await });
        collector
    }

    pub(crate) fn exporter(&self) -> Otlp {
        Otlp::to_endpoint("test", &self.url).unwrap()
    }

    /// What came so far.
    pub(crate) fn received(&self) -> std::sync::MutexGuard<'_, Received> {
        self.received.lock().unwrap()
    }
}
