//! `SendFeedback`: drafts a report about the CLI itself.

use serde::{Deserialize, Serialize};

/// Input of `SendFeedback`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SendFeedbackInput {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: FeedbackKind,
    /// One line about it.
    pub title: String,
    /// All of it.
    pub details: String,
    /// The part of the CLI it is about.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub area: Option<String>,
    /// How the model went wrong, if it did.
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
    /// Whether it was taken.
    pub success: bool,
    /// What happened.
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
        /// It did not do as told.
        InstructionFollowing = "instruction_following",
        /// It destroyed something.
        DestructiveActions = "destructive_actions",
        /// It wrote bad code.
        CodeQuality = "code_quality",
        /// It did the same over and over.
        RepetitionAndLooping = "repetition_and_looping",
        /// It did worse than earlier models.
        ModelRegression = "model_regression",
        /// It made things up.
        OverconfidenceAndHallucination = "overconfidence_and_hallucination",
        /// It forgot.
        ContextAndMemory = "context_and_memory",
        /// It did more than asked.
        Overeager = "overeager",
        /// It gave in too readily.
        OverCorrection = "over_correction",
        /// It stopped too early.
        StoppingShort = "stopping_short",
        /// It argued or refused.
        DisputeOrDecline = "dispute_or_decline",
        /// It started too many subagents.
        SubagentOverspawn = "subagent_overspawn",
        /// It took the wrong tone.
        ToneOrPreachiness = "tone_or_preachiness",
        /// It asked too much.
        ExcessiveQuestions = "excessive_questions",
        /// It widened the task.
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
