//! `--otel`: the telemetry of a run.

use anyhow::Context as _;
use outrigger::Session;
use outrigger::options::Options;
use outrigger_otel::{Otlp, OtlpError, SessionTelemetry};

use crate::exit::Failure;

/// The flags of telemetry.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Telemetry")]
pub(crate) struct OtelArgs {
    /// Sends traces, metrics and logs to an OpenTelemetry collector, as `OTEL_EXPORTER_OTLP_ENDPOINT` and the other variables say.
    #[arg(long)]
    otel: bool,
    /// Sends prompts, answers, and inputs and results of tools, too; what looks like a secret is redacted.
    #[arg(long, requires = "otel")]
    otel_content: bool,
    /// Has Claude Code send its own telemetry, too, in the same trace.
    #[arg(long, requires = "otel")]
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
    pub(crate) async fn end(self) -> Result<(), OtlpError> {
        drop(self.trace);
        self.exporter.shutdown().await
    }
}
