//! The exporter to an OpenTelemetry collector: OTLP, by protobuf over HTTP.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, MetricExporter, Protocol, SpanExporter, WithExportConfig as _,
    WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;

use crate::telemetry::Telemetry;

/// An answer of a collector is short.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// All of a request. The exporter's own time limit is shorter unless it is set.
const DEADLINE: Duration = Duration::from_secs(30);

/// Sends telemetry to an OpenTelemetry collector.
///
/// Spans and logs wait in queues of the SDK of OpenTelemetry, 2048 of each; what comes when a queue is full is dropped, and nothing
/// waits for the collector. [`shutdown`](Self::shutdown) sends the rest.
#[derive(Debug)]
pub struct Otlp {
    traces: SdkTracerProvider,
    metrics: SdkMeterProvider,
    logs: SdkLoggerProvider,
    telemetry: Telemetry,
}

/// Why telemetry could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("the telemetry exporter {what}: {source}")]
pub struct OtlpError {
    what: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl OtlpError {
    fn new(what: &'static str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let source = source.into();
        Self { what, source }
    }
}

impl Otlp {
    /// An exporter as the standard variables say: `OTEL_EXPORTER_OTLP_ENDPOINT` (by default `http://localhost:4318`),
    /// `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_BSP_*`, `OTEL_METRIC_EXPORT_INTERVAL` and the others.
    /// `service` is the name of the service unless `OTEL_SERVICE_NAME` is set.
    ///
    /// # Errors
    ///
    /// If there is no tokio runtime, which sends the requests, or if a variable is wrong.
    pub fn from_env(service: &'static str) -> Result<Self, OtlpError> {
        Self::build(service, None)
    }

    /// The same for the collector at this URL, such as `http://collector:4318`, whatever the variables say about the endpoint.
    ///
    /// # Errors
    ///
    /// As [`from_env`](Self::from_env), and if the URL is none.
    pub fn to_endpoint(service: &'static str, url: &str) -> Result<Self, OtlpError> {
        Self::build(service, Some(url.trim_end_matches('/')))
    }

    fn build(service: &'static str, url: Option<&str>) -> Result<Self, OtlpError> {
        let build = |error: ExporterBuildError| {
            OtlpError::new("is not set up; see the variables OTEL_EXPORTER_OTLP_*", error)
        };
        let client = RuntimeClient::new()?;
        let mut spans = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(client.clone());
        let mut metrics = MetricExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(client.clone());
        let mut logs = LogExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(client);
        if let Some(url) = url {
            spans = spans.with_endpoint(format!("{url}/v1/traces"));
            metrics = metrics.with_endpoint(format!("{url}/v1/metrics"));
            logs = logs.with_endpoint(format!("{url}/v1/logs"));
        }
        let (spans, metrics, logs) = (
            spans.build().map_err(build)?,
            metrics.build().map_err(build)?,
            logs.build().map_err(build)?,
        );
        let mut resource = Resource::builder();
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(service);
        }
        let resource = resource.build();
        let traces = SdkTracerProvider::builder()
            .with_resource(resource.clone())
            .with_batch_exporter(spans)
            .build();
        let metrics = SdkMeterProvider::builder()
            .with_resource(resource.clone())
            .with_periodic_exporter(metrics)
            .build();
        let logs = SdkLoggerProvider::builder()
            .with_resource(resource)
            .with_batch_exporter(logs)
            .build();
        Ok(Self {
            telemetry: Telemetry::new(&traces, &metrics, &logs),
            traces,
            metrics,
            logs,
        })
    }

    /// Where the sessions send their telemetry.
    pub fn telemetry(&self) -> Telemetry {
        self.telemetry.clone()
    }

    /// Sends what waits, for at most 10 seconds, and ends the exporter. Drop every [`SessionTelemetry`](crate::SessionTelemetry)
    /// before, so that the spans of the sessions have ended.
    ///
    /// # Errors
    ///
    /// If the collector did not accept all of it.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the exporter ends all the same, on a thread of its own.
    pub async fn shutdown(self) -> Result<(), OtlpError> {
        // For each of the three.
        const PATIENCE: Duration = Duration::from_secs(3);
        let Self {
            traces,
            metrics,
            logs,
            ..
        } = self;
        // It blocks, while this runtime sends the requests.
        let ended = tokio::task::spawn_blocking(move || {
            let metrics = metrics.shutdown_with_timeout(PATIENCE);
            let logs = logs.shutdown_with_timeout(PATIENCE);
            traces.shutdown_with_timeout(PATIENCE).and(logs).and(metrics)
        });
        match ended.await {
            Ok(ended) => ended.map_err(|error| OtlpError::new("lost telemetry at its end", error)),
            Err(error) => Err(OtlpError::new("lost telemetry at its end", error)),
        }
    }
}

/// A client whose requests run on the runtime of the program: the threads of the SDK of OpenTelemetry have none.
#[derive(Debug, Clone)]
struct RuntimeClient {
    runtime: Handle,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl RuntimeClient {
    fn new() -> Result<Self, OtlpError> {
        let runtime =
            Handle::try_current().map_err(|error| OtlpError::new("needs a tokio runtime", error))?;
        let connector = HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(|error| OtlpError::new("found no certificates of the system", error))?
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { runtime, client })
    }
}

#[async_trait]
impl HttpClient for RuntimeClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let exchange = async move {
            let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        // The clock of the deadline is that of the runtime, too.
        let bounded = async move { tokio::time::timeout(DEADLINE, exchange).await };
        self.runtime.spawn(bounded).await??
    }
}
