//! `SendFeedback`: drafts a report about the CLI itself.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/feedback.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `SendFeedback`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SendFeedbackInput {
    /// The kind of feedback.
    #[serde(rename = "type")]
    pub kind: FeedbackKind,
    /// One line about the problem.
    pub title: String,
    /// The whole description.
    pub details: String,
    /// The part of the CLI that this is about.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub area: Option<String>,
    /// What the model did wrong, if it did something wrong.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub failure_mode: Option<FailureMode>,
    /// What the session was doing.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub task_category: Option<FeedbackTask>,
}

impl SendFeedbackInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(kind: FeedbackKind, title: impl Into<String>, details: impl Into<String>) -> Self {
        Self {
            kind,
            title: title.into(),
            details: details.into(),
            area: None,
            failure_mode: None,
            task_category: None,
        }
    }
}

/// Output of `SendFeedback`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SendFeedbackOutput {
    /// Whether the feedback was accepted.
    pub success: bool,
    /// The result, for people.
    pub message: String,
}

crate::open_enum! {
    /// What feedback is.
    pub enum FeedbackKind {
        /// A defect.
        Bug = "bug",
        /// A wish.
        Idea = "idea",
        /// Something that cannot be done.
        MissingCapability = "missing_capability",
    }
}

crate::open_enum! {
    /// How a model went wrong.
    pub enum FailureMode {
        /// The agent did not follow instructions.
        InstructionFollowing = "instruction_following",
        /// The agent destroyed something.
        DestructiveActions = "destructive_actions",
        /// The agent wrote bad code.
        CodeQuality = "code_quality",
        /// The agent repeated itself.
        RepetitionAndLooping = "repetition_and_looping",
        /// The agent was worse than with earlier models.
        ModelRegression = "model_regression",
        /// The agent made things up.
        OverconfidenceAndHallucination = "overconfidence_and_hallucination",
        /// The agent forgot something.
        ContextAndMemory = "context_and_memory",
        /// The agent did more than asked.
        Overeager = "overeager",
        /// The agent gave in too readily.
        OverCorrection = "over_correction",
        /// The agent stopped too early.
        StoppingShort = "stopping_short",
        /// The agent argued or refused.
        DisputeOrDecline = "dispute_or_decline",
        /// The agent started too many subagents.
        SubagentOverspawn = "subagent_overspawn",
        /// The agent took the wrong tone.
        ToneOrPreachiness = "tone_or_preachiness",
        /// The agent asked too many questions.
        ExcessiveQuestions = "excessive_questions",
        /// The agent widened the task.
        UnwantedScope = "unwanted_scope",
        /// None of these.
        Unlisted = "other",
    }
}

crate::open_enum! {
    /// What a session was doing.
    pub enum FeedbackTask {
        /// Changing code.
        CodeEdit = "code_edit",
        /// Looking for a defect.
        Debug = "debug",
        /// Explaining.
        Explain = "explain",
        /// Planning.
        Plan = "plan",
        /// Running commands.
        Shell = "shell",
        /// Searching.
        Search = "search",
        /// Reviewing.
        Review = "review",
        /// None of these.
        Unlisted = "other",
    }
}
