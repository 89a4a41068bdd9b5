//! Small frames that stand alone.

use serde::{Deserialize, Serialize};

/// `keep_alive`: a sign of life, one every 30 s while a control request of ours is in progress. Needs no answer.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct KeepAlive {
    /// Where start-up has got to; only when asked for by `CLAUDE_CODE_SDK_READS_STARTUP_MARKS`.
    pub startup_mark: Option<String>,
}

/// `prompt_suggestion`: what the user might ask next. Comes after the `result`, when asked for in `initialize`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PromptSuggestion {
    /// The suggested prompt.
    pub suggestion: String,
    /// This frame's id.
    pub uuid: String,
    /// The session it belongs to.
    pub session_id: String,
}
