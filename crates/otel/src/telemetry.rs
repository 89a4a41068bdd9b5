//! Where telemetry goes, and the telemetry of one session.

mod spans;
mod start_telemetry;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use opentelemetry::logs::LoggerProvider as _;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use outrigger::{Options, Session};
use outrigger_fleet::Starting;
use outrigger_fleet::budget::Budget;
use outrigger_fleet::gate::Gate;
use outrigger_fleet::supervise::Supervised;

use self::spans::SessionSpans;
pub use self::start_telemetry::StartTelemetry;
use crate::instruments::{Instruments, Sessions};
use crate::measured_sources::MeasuredSources;
use crate::names;

const SCOPE: &str = "outrigger";

/// Where telemetry goes: the tracer, the instruments and the logger. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Telemetry {
    pub(crate) tracer: SdkTracer,
    pub(crate) logger: SdkLogger,
    pub(crate) instruments: Arc<Instruments>,
    sessions: Sessions,
    shared: MeasuredSources,
    /// Prompts, answers, inputs and results are emitted.
    pub(crate) content: bool,
    /// The CLI emits its own telemetry, too.
    of_cli: bool,
}

impl Telemetry {
    /// Telemetry for providers of the program; [`Otlp`](crate::Otlp) brings its own.
    ///
    /// The program flushes and shuts down its providers itself.
    pub fn new(traces: &SdkTracerProvider, metrics: &SdkMeterProvider, logs: &SdkLoggerProvider) -> Self {
        let sessions = Sessions::default();
        let shared = MeasuredSources::default();
        let meter = metrics.meter(SCOPE);
        shared.register(&meter);
        Self {
            tracer: traces.tracer(SCOPE),
            logger: logs.logger(SCOPE),
            instruments: Arc::new(Instruments::new(&meter, &sessions)),
            sessions,
            shared,
            content: false,
            of_cli: false,
        }
    }

    /// Emits prompts, answers, inputs and results of tools as well, with what looks like a secret redacted, and each cut at 16 KiB.
    /// The default is that no content is emitted.
    pub fn with_content(mut self, content: bool) -> Self {
        self.content = content;
        self
    }

    /// Has the CLI emit its own telemetry to the same collector: the CLI's variables for that are set by
    /// [`SessionTelemetry::options`]. The default is that the CLI only learns the trace context.
    ///
    /// Where to is said by `OTEL_EXPORTER_OTLP_ENDPOINT` and its like in the environment, which the CLI inherits.
    pub fn with_cli_telemetry(mut self, of_cli: bool) -> Self {
        self.of_cli = of_cli;
        self
    }

    /// Measures a gate from now on, under this name: turns that run and wait, how long they waited, and how long it stays closed. The gate lives at least as
    /// long as this and its clones.
    pub fn gate(&self, name: &str, gate: &Gate) {
        self.shared.add_gate(name, gate, &self.instruments.gate_wait);
    }

    /// Measures a budget from now on, under this name: what is spent and reserved in it and in all below it.
    pub fn budget(&self, name: &str, budget: &Budget) {
        self.shared.add_budget(name, budget);
    }

    /// Measures a supervised session from now on, under this name: whether it runs, its deaths, and its rotations. Until it is dropped.
    pub fn supervised(&self, name: &str, session: &Supervised) {
        self.shared.add_supervised(name, session);
    }

    /// For [`Batch::watch`](outrigger_fleet::batch::Batch::watch) and [`Supervision::watch`](outrigger_fleet::supervise::Supervision::watch): each try of a
    /// job is a session of its own, and a supervised session is one over all its processes, until it is handed over to another conversation. Their
    /// spans are under the span that is current now; without one each is the first of a trace of its own.
    pub fn watch(&self) -> StartTelemetry {
        StartTelemetry::new(self.clone(), current())
    }

    /// Begins the trace of a session, under the span that is current. Without one the variables `TRACEPARENT` and `TRACESTATE` of this
    /// process name the parent, if they are set.
    pub fn session(&self) -> SessionTelemetry {
        SessionTelemetry::begin(self, &current())
    }
}

/// The span that is current, or the one that the environment names.
fn current() -> Context {
    let current = Context::current();
    if current.span().span_context().is_valid() {
        return current;
    }
    let variables = ["traceparent", "tracestate"].into_iter();
    let carrier: HashMap<String, String> = variables
        .filter_map(|name| Some((name.to_owned(), std::env::var(name.to_ascii_uppercase()).ok()?)))
        .collect();
    TraceContextPropagator::new().extract(&carrier)
}

/// The telemetry of one session over all its processes.
///
/// The span of the session ends when this and its clones are dropped and the observed processes have ended.
#[derive(Debug, Clone)]
pub struct SessionTelemetry {
    spans: Arc<SessionSpans>,
    /// Whether a process was observed.
    started: Arc<AtomicBool>,
}

impl SessionTelemetry {
    pub(crate) fn begin(telemetry: &Telemetry, parent: &Context) -> Self {
        Self {
            spans: Arc::new(SessionSpans::begin(telemetry.clone(), parent)),
            started: Arc::default(),
        }
    }

    /// Notes what the session was started for, and which session it follows.
    pub(crate) fn started_for(&self, starting: &Starting, follows: Option<&Self>) {
        self.spans.started_for(
            vec![
                KeyValue::new(names::START_NAME, starting.name.clone()),
                KeyValue::new(names::START_NUMBER, i64::from(starting.number)),
                KeyValue::new(names::START_REASON, starting.reason.name()),
            ],
            follows.map(|before| before.spans.context().clone()),
        );
    }

    /// Notes on the span of the session that another process takes its place.
    pub(crate) fn restarted(&self, starting: &Starting) {
        let number = KeyValue::new(names::START_NUMBER, i64::from(starting.number));
        self.spans.event(starting.reason.name(), vec![number]);
    }

    /// Adds the trace context to the environment of the CLI, as `TRACEPARENT` and `TRACESTATE`, so that the CLI's own spans belong to
    /// the trace. With [`Telemetry::with_cli_telemetry`], switches the CLI's telemetry on.
    pub fn options(&self, mut options: Options) -> Options {
        let mut carrier = HashMap::new();
        let context = Context::new().with_remote_span_context(self.spans.context().clone());
        TraceContextPropagator::new().inject_context(&context, &mut carrier);
        for (name, value) in carrier {
            if !value.is_empty() {
                options = options.env(name.to_ascii_uppercase(), value);
            }
        }
        if self.spans.telemetry().of_cli {
            for (name, value) in [
                ("CLAUDE_CODE_ENABLE_TELEMETRY", "1"),
                ("CLAUDE_CODE_ENHANCED_TELEMETRY_BETA", "1"),
                ("OTEL_TRACES_EXPORTER", "otlp"),
                ("OTEL_METRICS_EXPORTER", "otlp"),
                ("OTEL_LOGS_EXPORTER", "otlp"),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ] {
                options = options.env(name, value);
            }
        }
        options
    }

    /// Emits spans, metrics and logs of this session from now on. Call it right after the start, and again with the new session after
    /// [`Session::revive`]: that counts as a restart.
    pub fn observe(&self, session: &Session) {
        let telemetry = self.spans.telemetry();
        if self.started.swap(true, Ordering::Relaxed) {
            telemetry.instruments.restarts.add(1, &[]);
        }
        telemetry.sessions.add(session);
        session.observe(Arc::clone(&self.spans) as _);
    }
}
