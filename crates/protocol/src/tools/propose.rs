//! `SetGoal` (schema `ProposeGoal`) and `propose_skills` (schema `ProposeSkills`).
// Written by `cargo xtask types` from what upstream declares and upstream/tools/propose.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `SetGoal`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProposeGoalInput {
    /// When the goal is reached.
    pub condition: String,
    /// Whether the user is asked first; true if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ask_user: Option<bool>,
}

impl ProposeGoalInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(condition: impl Into<String>) -> Self {
        Self {
            condition: condition.into(),
            ask_user: None,
        }
    }
}

/// Output of `SetGoal`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ProposeGoalOutput {
    /// When the goal is reached.
    pub condition: String,
    /// Whether the user was asked.
    pub ask_user: bool,
}

/// Input of `propose_skills`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ProposeSkillsInput {
    /// One to three skills.
    pub proposals: Vec<SkillProposal>,
}

impl ProposeSkillsInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(proposals: Vec<SkillProposal>) -> Self {
        Self { proposals }
    }
}

/// Output of `propose_skills`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ProposeSkillsOutput {
    /// How many were shown to the user.
    pub proposal_count: u64,
}

/// A skill that might be saved.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SkillProposal {
    /// The skill's name.
    pub name: String,
    /// Whether the skill is new.
    pub kind: SkillProposalKind,
    /// The skill to improve.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub target: Option<String>,
    /// When to use the skill.
    pub description: String,
    /// Files in which the procedure was seen.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub evidence: Option<Vec<String>>,
    /// Changes to the skill's file, in order.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub edits: Option<Vec<SkillEdit>>,
    /// The skill's whole file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub skill_md: Option<String>,
}

impl SkillProposal {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(name: impl Into<String>, kind: SkillProposalKind, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind,
            target: None,
            description: description.into(),
            evidence: None,
            edits: None,
            skill_md: None,
        }
    }
}

crate::open_enum! {
    /// Whether a proposed skill is new.
    pub enum SkillProposalKind {
        /// The skill is new.
        New = "new",
        /// The proposal changes an existing skill.
        Improvement = "improvement",
    }
}

/// A change to a skill's file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SkillEdit {
    /// The text to replace, which has to be there exactly once.
    pub old_string: String,
    /// The new text.
    pub new_string: String,
}

impl SkillEdit {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(old_string: impl Into<String>, new_string: impl Into<String>) -> Self {
        Self {
            old_string: old_string.into(),
            new_string: new_string.into(),
        }
    }
}
