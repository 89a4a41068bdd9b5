//! What fills the context, and what has been used up: answers of `/context` and `/usage` as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::open_enum;
use crate::shared::ModelUsage;

/// What fills the model's context.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextUsage {
    /// The model.
    pub model: String,
    /// Tokens in use.
    pub total_tokens: u64,
    /// Tokens that fit.
    pub raw_max_tokens: u64,
    /// Share in use, 0 to 100; may be above.
    pub percentage: f64,
    /// Set if more is in use than fits.
    pub over_limit: Option<OverLimit>,
    /// The parts.
    #[serde(default)]
    pub categories: Vec<ContextCategory>,
    /// Definitions of MCP tools.
    #[serde(default)]
    pub mcp_tools: Vec<ContextMcpTool>,
    /// Memory files.
    #[serde(default)]
    pub memory_files: Vec<ContextMemoryFile>,
    /// Definitions of agents.
    #[serde(default)]
    pub agents: Vec<ContextAgent>,
    /// Descriptions of skills.
    pub skills: Option<Vec<ContextSkill>>,
}

/// By how much the context is too full.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct OverLimit {
    /// Tokens above the limit.
    pub tokens_over: u64,
    /// Which limit: `hard_limit` or `compaction_window`.
    pub kind: String,
}

/// One part of the context.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextCategory {
    /// The category's name for people.
    pub name: String,
    /// The category's tokens.
    pub tokens: u64,
    /// Whether the content takes room in the context.
    pub kind: ContextCategoryKind,
}

open_enum! {
    /// How a part of the context counts.
    pub enum ContextCategoryKind {
        /// In use.
        Used = "used",
        /// Free.
        Free = "free",
        /// Kept free for compaction.
        Buffer = "buffer",
        /// Not loaded yet.
        Deferred = "deferred",
    }
}

/// An MCP tool in the context.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextMcpTool {
    /// The tool's name.
    pub name: String,
    /// The tool's server.
    pub server_name: String,
    /// The tool's tokens.
    pub tokens: u64,
}

/// A memory file in the context.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextMemoryFile {
    /// The file's path.
    pub path: String,
    /// The file's kind, such as `Project`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The file's tokens.
    pub tokens: u64,
}

/// An agent in the context.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextAgent {
    /// The subagent's name.
    pub agent_type: String,
    /// Where the subagent comes from.
    pub source: String,
    /// The subagent's tokens.
    pub tokens: u64,
}

/// A skill in the context.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContextSkill {
    /// The skill's name.
    pub name: String,
    /// Where the skill comes from.
    pub source: String,
    /// The plugin that the skill comes from.
    pub plugin_name: Option<String>,
    /// The skill's tokens.
    pub tokens: u64,
}

/// What has been used up.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageReport {
    /// In this session.
    pub session: SessionUsage,
    /// Of the subscription; null without one.
    pub rate_limits: Option<UsageRateLimits>,
}

/// What a session has used.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SessionUsage {
    /// Money in US dollars.
    pub total_cost_usd: f64,
    /// Time spent on API requests, in milliseconds.
    pub total_api_duration_ms: f64,
    /// Time since the session began, in milliseconds.
    pub total_duration_ms: f64,
    /// Lines of code added.
    pub total_lines_added: u64,
    /// Lines of code removed.
    pub total_lines_removed: u64,
    /// Tokens by model.
    #[serde(default)]
    pub model_usage: BTreeMap<String, ModelUsage>,
}

/// How far a subscription's limits are used up.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageRateLimits {
    /// The limits; null if the CLI could not read the limits.
    pub limits: Option<Vec<UsageLimit>>,
    /// Usage beyond the subscription.
    pub extra_usage: Option<ExtraUsage>,
}

/// One limit of a subscription.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageLimit {
    /// Which limit.
    pub kind: String,
    /// The group under which the limit is shown.
    pub group: String,
    /// Share used, 0 to 100.
    pub percent: f64,
    /// When the limit starts anew, as ISO 8601.
    pub resets_at: Option<String>,
    /// What the limit is for; null for everything.
    pub scope: Option<UsageLimitScope>,
    /// How urgent the limit is.
    pub severity: String,
    /// Whether the limit applies at the moment.
    pub is_active: bool,
}

/// What a limit applies to.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UsageLimitScope {
    /// A model.
    pub model: Option<NamedScope>,
    /// A product.
    pub surface: Option<NamedScope>,
}

/// Something that a limit applies to.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct NamedScope {
    /// The scope's name for people.
    pub display_name: String,
}

/// Usage beyond the subscription.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ExtraUsage {
    /// Whether usage beyond the limits is allowed.
    pub is_enabled: bool,
    /// The monthly limit of extra usage.
    pub monthly_limit: Option<f64>,
    /// How much of the credits is used.
    pub used_credits: Option<f64>,
    /// The same as a share, 0 to 100.
    pub utilization: Option<f64>,
    /// The currency of these.
    pub currency: Option<String>,
}
