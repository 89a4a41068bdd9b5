//! `ReportFindings`: what a code review found.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/findings.toml: change that instead.

use serde::{Deserialize, Serialize};

use super::agent::EffortLevel;

/// Input of `ReportFindings`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReportFindingsInput {
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// How thorough the review was.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub level: Option<EffortLevel>,
}

impl ReportFindingsInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(findings: Vec<Finding>) -> Self {
        Self {
            findings,
            level: None,
        }
    }
}

/// Output of `ReportFindings`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReportFindingsOutput {
    /// How many findings were reported.
    pub count: u64,
    /// How thorough the review was.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub level: Option<EffortLevel>,
    /// The findings.
    pub findings: Vec<Finding>,
}

/// One thing that a review found.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The file, relative to the repository.
    pub file: String,
    /// The line, from 1.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub line: Option<u64>,
    /// What is wrong.
    pub summary: String,
    /// A summary of at most 60 characters.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub short_summary: Option<String>,
    /// What has to happen for the problem to show, and what happens then.
    pub failure_scenario: String,
    /// The kind of defect.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub category: Option<String>,
    /// How bad the problem is.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub severity: Option<FindingSeverity>,
    /// What a second look said.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub verdict: Option<FindingVerdict>,
    /// What was done about the problem.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub outcome: Option<FindingOutcome>,
}

impl Finding {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(
        file: impl Into<String>,
        summary: impl Into<String>,
        failure_scenario: impl Into<String>,
    ) -> Self {
        Self {
            file: file.into(),
            line: None,
            summary: summary.into(),
            short_summary: None,
            failure_scenario: failure_scenario.into(),
            category: None,
            severity: None,
            verdict: None,
            outcome: None,
        }
    }
}

crate::open_enum! {
    /// How bad a finding is.
    pub enum FindingSeverity {
        /// The change causes the problem or makes it worse.
        Important = "important",
        /// The problem existed before the change.
        PreExisting = "pre_existing",
        /// A small thing.
        Nit = "nit",
    }
}

crate::open_enum! {
    /// What a second look at a finding said.
    pub enum FindingVerdict {
        /// The problem is real.
        Confirmed = "CONFIRMED",
        /// The problem may be real.
        Plausible = "PLAUSIBLE",
    }
}

crate::open_enum! {
    /// What was done about a finding.
    pub enum FindingOutcome {
        /// The problem was fixed.
        Fixed = "fixed",
        /// The problem was left as it is.
        Skipped = "skipped",
        /// There was nothing to do.
        NoChangeNeeded = "no_change_needed",
    }
}
