//! What the gate, a budget and telemetry add to a turn, and to a permission round trip.
//!
//! `cargo bench -p outrigger-otel --bench cost [-- TURNS]` runs turns with a simulated CLI in this process, 2000 of each kind unless said
//! otherwise, with and without in turn. Printed are the medians in microseconds, and what is added in percent. The simulated CLI
//! takes some milliseconds for a turn: beside a real one, whose turns take longer, the same microseconds are a smaller part.
//!
//! `-- real [TURNS]` does the same with the real CLI and a scripted API, 100 turns of each kind.

#![expect(clippy::print_stdout, reason = "a program for a terminal")]
#![expect(clippy::unwrap_used, reason = "its only input is what it has set up itself")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogExporter, SdkLoggerProvider};
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use outrigger::permissions::PermissionDecision;
use outrigger::testing::{RealCli, Simulated};
use outrigger::{Options, Session};
use outrigger_fleet::GuardedTurn;
use outrigger_fleet::budget::{Amount, Budget, Cap, Usd};
use outrigger_fleet::gate::{Gate, GateLimits, Visitor};
use outrigger_otel::Telemetry;

/// The turns of a session.
const ROUND: usize = 20;

const SAY: &str = "%say done";
const ASK: &str = "%tool Bash {\"command\":\"true >> x\",\"description\":\"try\"}\n%say done";

/// Takes everything and keeps nothing, as an exporter does whose collector is fast.
#[derive(Debug, Clone, Copy)]
struct Discard;

impl SpanExporter for Discard {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        Ok(())
    }
}

impl LogExporter for Discard {
    async fn export(&self, _: LogBatch<'_>) -> OTelSdkResult {
        Ok(())
    }
}

impl PushMetricExporter for Discard {
    async fn export(&self, _: &ResourceMetrics) -> OTelSdkResult {
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

/// What a turn is guarded by.
struct Guards {
    gate: Gate,
    budget: Budget,
}

impl Guards {
    fn new() -> Self {
        let mut limits = GateLimits::default();
        limits.max_running = 8;
        limits.by_model.insert("opus".to_owned(), 8);
        let cap = || Cap::usd(Usd::from_dollars(1e6).unwrap()).per_day();
        Self {
            gate: Gate::new(limits),
            budget: Budget::new("tenant", cap()).child("project", cap()),
        }
    }
}

/// A session that measures.
struct Measured {
    session: Session,
    guards: Option<Guards>,
    asked: Arc<AtomicUsize>,
}

impl Measured {
    async fn start(options: Options, telemetry: Option<&Telemetry>, guards: Option<Guards>) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let options = options.can_use_tool(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { PermissionDecision::allow() }
        });
        let trace = telemetry.map(Telemetry::session);
        let options = match &trace {
            Some(trace) => trace.options(options),
            None => options,
        };
        let session = options.start().await.unwrap();
        if let Some(trace) = &trace {
            trace.observe(&session);
        }
        Self {
            session,
            guards,
            asked,
        }
    }

    async fn turn(&self, prompt: &str) -> Duration {
        let began = Instant::now();
        let outcome = match &self.guards {
            None => self.session.prompt(prompt).await.unwrap().outcome().await,
            Some(Guards { gate, budget }) => {
                let reservation = budget.reserve(Amount::usd(Usd::from_cents(50))).unwrap();
                let pass = gate.enter(Visitor::new("bench").model("opus")).await.unwrap();
                let turn = self.session.prompt(prompt).await.unwrap();
                let mut turn = GuardedTurn::new(turn).pass(pass).reservation(reservation);
                turn.outcome().await
            }
        };
        assert!(outcome.unwrap().is_success());
        began.elapsed()
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

async fn measure(kind: &str, prompt: &str, turns: usize, options: impl Fn() -> Options) {
    let spans = SdkTracerProvider::builder().with_batch_exporter(Discard).build();
    let logs = SdkLoggerProvider::builder().with_batch_exporter(Discard).build();
    let metrics = SdkMeterProvider::builder()
        .with_periodic_exporter(Discard)
        .build();
    let telemetry = Telemetry::new(&spans, &metrics, &logs);
    let mut times: [(&str, Vec<Duration>); 4] =
        ["plain", "gate and budget", "telemetry", "all"].map(|with| (with, Vec::new()));
    let mut left = turns;
    while left > 0 {
        // A turn takes longer the longer the conversation is.
        let round = left.min(ROUND);
        left -= round;
        let sessions = [
            Measured::start(options(), None, None).await,
            Measured::start(options(), None, Some(Guards::new())).await,
            Measured::start(options(), Some(&telemetry), None).await,
            Measured::start(options(), Some(&telemetry), Some(Guards::new())).await,
        ];
        for turn in 0..round {
            // Whoever comes first has the coldest caches.
            for which in (0..sessions.len()).map(|which| (which + turn) % sessions.len()) {
                let took = sessions[which].turn(prompt).await;
                times[which].1.push(took);
            }
        }
        for session in sessions {
            let asked = session.asked.load(Ordering::Relaxed);
            assert_eq!(asked, if prompt == ASK { round } else { 0 });
            session.session.close().await.unwrap();
        }
    }
    let plain = median(times[0].1.clone());
    for (with, times) in times {
        let took = median(times);
        let added = (took / plain - 1.0) * 100.0;
        println!("| {kind} | {with} | {took:.0} | {added:+.1} % |");
    }
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let is_real = arguments.iter().any(|one| one == "real");
        // `cargo bench` adds a flag of its own.
        let turns = arguments.iter().find_map(|one| one.parse().ok());
        println!("| | with | microseconds | added |");
        println!("|---|---|---|---|");
        for (kind, prompt) in [("a turn", SAY), ("a turn with a permission round trip", ASK)] {
            if is_real {
                let cli = RealCli::directives().await.unwrap();
                measure(kind, prompt, turns.unwrap_or(100), || cli.options()).await;
            } else {
                let cli = Simulated::agent(|agent| agent);
                measure(kind, prompt, turns.unwrap_or(2000), || cli.options()).await;
            }
        }
    });
}
