//! `--otel`: the telemetry of a run.

use anyhow::Context as _;
use outrigger::Session;
use outrigger::options::Options;
use outrigger_otel::{Otlp, SessionTelemetry};

use crate::exit::Failure;
use crate::plain::plain;

/// The flags of telemetry.
#[derive(Debug, clap::Args)]
pub(crate) struct OtelArgs {
    /// Sends traces, metrics and logs to an OpenTelemetry collector, as `OTEL_EXPORTER_OTLP_ENDPOINT` and the other variables say.
    #[arg(long, help_heading = "Telemetry")]
    otel: bool,
    /// Sends prompts, answers, and inputs and results of tools, too; what looks like a secret is redacted.
    #[arg(long, requires = "otel", help_heading = "Telemetry")]
    otel_content: bool,
    /// Has Claude Code send its own telemetry, too, in the same trace.
    #[arg(long, requires = "otel", help_heading = "Telemetry")]
    otel_cli: bool,
}

/// The telemetry of a run.
pub(crate) struct RunTelemetry {
    exporter: Otlp,
    trace: SessionTelemetry,
}

impl OtelArgs {
    /// Begins the trace, if there should be one.
    pub(crate) fn begin(&self) -> Result<Option<RunTelemetry>, Failure> {
        if !self.otel {
            return Ok(None);
        }
        let exporter = Otlp::from_env("outrigger").context("--otel")?;
        let telemetry = exporter
            .telemetry()
            .with_content(self.otel_content)
            .with_cli_telemetry(self.otel_cli);
        let trace = telemetry.session();
        Ok(Some(RunTelemetry { exporter, trace }))
    }
}

impl RunTelemetry {
    pub(crate) fn options(&self, options: Options) -> Options {
        self.trace.options(options)
    }

    pub(crate) fn observe(&self, session: &Session) {
        self.trace.observe(session);
    }

    /// Ends the trace, and sends the rest.
    ///
    /// # Errors
    /// With the collector's address, if that did not take all of it. Why not is not known here.
    pub(crate) async fn end(self) -> Result<(), String> {
        drop(self.trace);
        self.exporter.shutdown().await.map_err(|_| {
            format!(
                "the telemetry did not all reach the collector at {}; check that it runs there, or set {ENDPOINT}",
                collector()
            )
        })
    }
}

/// The variable that says where the collector is, for signals that have none of their own.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Where the telemetry goes, as the variables say.
fn collector() -> String {
    let set = |name: &str| std::env::var(name).ok().filter(|address| !address.is_empty());
    let usual = set(ENDPOINT).unwrap_or_else(|| "http://localhost:4318".to_owned());
    let mut addresses: Vec<String> = ["TRACES", "METRICS", "LOGS"]
        .iter()
        .map(|signal| set(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")).unwrap_or_else(|| usual.clone()))
        .map(|address| without_password(&address))
        .collect();
    addresses.dedup();
    addresses.join(", ")
}

/// The address without a user and a password in it.
fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return plain(address);
    };
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    plain(&format!("{scheme}://{host}{path}"))
}
