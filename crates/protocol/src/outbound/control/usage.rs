//! What was used up, and what it cost.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/usage.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Reports what the session has cost, as text.
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
    /// Reports what was used of the account's limits. Upstream calls the request experimental.
    pub struct GetUsage {
        optional {
            /// Leaves `behaviors` out, which the CLI computes from old transcripts; this takes time.
            skip_behaviors: "skip_behaviors" => bool,
            /// Lets the CLI reply to other requests meanwhile.
            detached: "detached" => bool,
        }
    }
}

/// What was used of the account's limits.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct GetUsageReply {
    /// What this session used.
    pub session: crate::inbound::SessionUsage,
    /// The account's plan.
    pub subscription_type: Option<String>,
    /// Whether the account has limits.
    pub rate_limits_available: bool,
    /// The limits.
    pub rate_limits: Option<UsageWindows>,
    /// What used the limits most.
    pub behaviors: Option<UsageBehaviors>,
}

/// How much of each of the account's limits is used.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageWindows {
    /// The limit for five hours.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub five_hour: Option<UsageWindow>,
    /// The limit for seven days.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seven_day: Option<UsageWindow>,
    /// The limit for seven days of applications that use the account.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seven_day_oauth_apps: Option<UsageWindow>,
    /// The limit for seven days of Opus.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seven_day_opus: Option<UsageWindow>,
    /// The limit for seven days of Sonnet.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seven_day_sonnet: Option<UsageWindow>,
    /// The limits of single models.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub model_scoped: Option<Vec<ModelUsageWindow>>,
    /// What was used beyond the limits and is paid for.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub extra_usage: Option<crate::inbound::ExtraUsage>,
}

/// How much of one limit is used.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageWindow {
    /// The used part, in percent.
    pub utilization: Option<f64>,
    /// When the limit starts anew, as ISO 8601.
    pub resets_at: Option<String>,
}

/// How much of a model's limit is used.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ModelUsageWindow {
    /// The model's name for people.
    pub display_name: String,
    /// The used part, in percent.
    pub utilization: Option<f64>,
    /// When the limit starts anew, as ISO 8601.
    pub resets_at: Option<String>,
}

/// What used the limits most, by time.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageBehaviors {
    /// Today.
    pub day: UsagePeriod,
    /// This week.
    pub week: UsagePeriod,
}

/// What used the limits in some time.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsagePeriod {
    /// How many requests were sent to the API.
    pub request_count: u64,
    /// How many sessions there were.
    pub session_count: u64,
    /// The habits that used most.
    pub behaviors: Vec<UsageBehavior>,
    /// What the user can do about these habits.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub recommendations: Option<Vec<UsageRecommendation>>,
    /// What the CLI can do about these habits.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub fix: Option<UsageFix>,
    /// The share of each subagent.
    pub agents: Vec<UsageShare>,
    /// The share of each skill.
    pub skills: Vec<UsageShare>,
    /// The share of each plugin.
    pub plugins: Vec<UsageShare>,
    /// The share of each MCP server.
    pub mcp_servers: Vec<UsageShare>,
}

/// A habit that used much.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageBehavior {
    /// The habit.
    pub key: UsageBehaviorKey,
    /// The share of the habit, in percent.
    pub pct: f64,
    /// How often the habit was seen.
    pub count: u64,
}

crate::open_enum! {
    /// Which habit.
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
        /// Much that is always in the context.
        AlwaysOnContext = "always_on_context",
        /// Large results of tools.
        LargeToolResults = "large_tool_results",
    }
}

/// What the user can do about a habit.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageRecommendation {
    /// Which habit.
    pub key: String,
    /// The share of the habit, in percent.
    pub pct: f64,
    /// The recommendation in a few words.
    pub title: String,
    /// Details of the recommendation.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub detail: Option<String>,
}

/// What the CLI can do about habits.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageFix {
    /// Which habits.
    pub keys: Vec<String>,
    /// What the CLI would say about them.
    pub messages: Vec<String>,
}

/// The share of one subagent, skill, plugin or MCP server.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageShare {
    /// Its name.
    pub name: String,
    /// The share, in percent.
    pub pct: f64,
}
