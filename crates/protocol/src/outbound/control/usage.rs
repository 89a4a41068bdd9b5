//! What was used up, and what it cost.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/usage.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Tells what the session has cost, as text.
    pub struct GetSessionCost {}
}

/// What the session has cost.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetSessionCostReply {
    /// The text that `/cost` shows.
    pub text: String,
}

crate::outbound::control::request! {
    /// Tells what was used up. Upstream calls it experimental.
    pub struct GetUsage {
        optional {
            /// Leaves out what is worked out from old transcripts, which takes time.
            skip_behaviors: "skip_behaviors" => bool,
            /// Answers without holding up other requests.
            detached: "detached" => bool,
        }
    }
}

/// What was used up.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetUsageReply {
    /// By this session.
    pub session: crate::inbound::SessionUsage,
    /// The account's plan.
    pub subscription_type: Option<String>,
    /// Whether the account has limits.
    pub rate_limits_available: bool,
    /// The limits.
    pub rate_limits: Option<UsageWindows>,
    /// What uses up the limits.
    pub behaviors: Option<UsageBehaviors>,
}

/// How much of the account's limits is used.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageWindows {
    /// In five hours.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub five_hour: Option<UsageWindow>,
    /// In seven days.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seven_day: Option<UsageWindow>,
    /// In seven days, by applications signed in.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seven_day_oauth_apps: Option<UsageWindow>,
    /// In seven days, with Opus.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seven_day_opus: Option<UsageWindow>,
    /// In seven days, with Sonnet.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seven_day_sonnet: Option<UsageWindow>,
    /// By model.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub model_scoped: Option<Vec<ModelUsageWindow>>,
    /// Beyond the limits, against payment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub extra_usage: Option<crate::inbound::ExtraUsage>,
}

/// How much of one limit is used.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageWindow {
    /// How much, in percent.
    pub utilization: Option<f64>,
    /// When it starts again, as ISO 8601.
    pub resets_at: Option<String>,
}

/// How much of a model's limit is used.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ModelUsageWindow {
    /// What to call the model.
    pub display_name: String,
    /// How much, in percent.
    pub utilization: Option<f64>,
    /// When it starts again, as ISO 8601.
    pub resets_at: Option<String>,
}

/// What uses up the limits.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageBehaviors {
    /// Today.
    pub day: UsagePeriod,
    /// This week.
    pub week: UsagePeriod,
}

/// What used up the limits in some time.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsagePeriod {
    /// How many calls.
    pub request_count: u64,
    /// How many sessions.
    pub session_count: u64,
    /// Habits that cost.
    pub behaviors: Vec<UsageBehavior>,
    /// What to do about them.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub recommendations: Option<Vec<UsageRecommendation>>,
    /// What the CLI could do about them.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub fix: Option<UsageFix>,
    /// By subagent.
    pub agents: Vec<UsageShare>,
    /// By skill.
    pub skills: Vec<UsageShare>,
    /// By plugin.
    pub plugins: Vec<UsageShare>,
    /// By MCP server.
    pub mcp_servers: Vec<UsageShare>,
}

/// A habit that costs.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageBehavior {
    /// The habit.
    pub key: UsageBehaviorKey,
    /// The share of the habit, in percent.
    pub pct: f64,
    /// How often.
    pub count: u64,
}

crate::open_enum! {
    /// Habits that cost.
    pub enum UsageBehaviorKey {
        /// The API had forgotten the conversation.
        CacheMiss = "cache_miss",
        /// Long conversations.
        LongContext = "long_context",
        /// Many subagents.
        SubagentHeavy = "subagent_heavy",
        /// Many sessions at once.
        HighParallel = "high_parallel",
        /// Sessions that start by themselves.
        Cron = "cron",
        /// The highest effort.
        MaxEffort = "max_effort",
        /// Workflows.
        Workflow = "workflow",
        /// Much that is always there.
        AlwaysOnContext = "always_on_context",
        /// Large results of tools.
        LargeToolResults = "large_tool_results",
    }
}

/// What to do about a habit.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageRecommendation {
    /// Which habit.
    pub key: String,
    /// The share of the habit, in percent.
    pub pct: f64,
    /// What to do.
    pub title: String,
    /// Details of the recommendation.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub detail: Option<String>,
}

/// What the CLI could do about habits.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageFix {
    /// Which habits.
    pub keys: Vec<String>,
    /// What it would say.
    pub messages: Vec<String>,
}

/// The part that something used.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageShare {
    /// What the share is of.
    pub name: String,
    /// The share, in percent.
    pub pct: f64,
}
