//! OpenTelemetry for sessions of the Claude Code CLI that Outrigger drives: traces, metrics and logs by the
//! [semantic conventions for generative AI](https://github.com/open-telemetry/semantic-conventions-genai).
//!
//! [`Telemetry`] holds the providers. [`Telemetry::session`] begins the trace of one session; its [`SessionTelemetry`] adds the trace
//! context to the options and observes the session. docs/telemetry.md lists all names.
//!
//! Nothing of prompts, answers, inputs or results is emitted unless [`Telemetry::with_content`] is called; then secrets are redacted.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # #[cfg(feature = "otlp")] {
//! // Where to: the variables `OTEL_EXPORTER_OTLP_*`, by default the collector at http://localhost:4318.
//! let exporter = outrigger_otel::Otlp::from_env("my-service")?;
//! let trace = exporter.telemetry().session();
//! let session = trace.options(outrigger::Agent::builder()).start().await?;
//! trace.observe(&session);
//! session.prompt("Which tests fail?").await?.outcome().await?;
//! session.close().await?;
//! drop(trace);
//! exporter.shutdown().await?;
//! # }
//! # Ok(())
//! # }
//! ```

mod content;
mod frame_fields;
mod instruments;
mod measured_sources;
pub mod names;
#[cfg(feature = "otlp")]
mod otlp;
mod resident;
mod telemetry;

#[cfg(feature = "otlp")]
pub use otlp::{Otlp, OtlpError};
pub use telemetry::{SessionTelemetry, StartTelemetry, Telemetry};

/// The examples of the page on telemetry, compiled.
#[cfg(all(doctest, feature = "otlp"))]
#[doc = include_str!("../../../docs/telemetry.md")]
struct TelemetryPage;
