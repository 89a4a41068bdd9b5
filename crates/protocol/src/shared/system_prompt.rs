//! The system prompt.

/// The system prompt.
///
/// Not a frame of its own: `initialize` spreads it over several fields. If none is given the
/// prompt is *empty*, not the preset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemPrompt {
    /// One text instead of any other.
    Text(String),
    /// Several texts, each a block of its own, so that a stable part can be cached.
    List(Vec<String>),
    /// Own texts that may be kept with the session.
    Custom {
        /// The texts.
        prompt: Vec<String>,
        /// Whether the session keeps the prompt it was started with when it is resumed; the CLI's default if `None`.
        snapshot: Option<bool>,
    },
    /// The prompt of Claude Code.
    Preset {
        /// The text to append.
        append: Option<String>,
        /// Leaves out what changes from session to session (directory, date, git state), so that the prompt can be cached
        /// across them; the CLI's default if `None`.
        exclude_dynamic_sections: Option<bool>,
        /// Whether the session keeps the prompt it was started with when it is resumed; the CLI's default if `None`.
        snapshot: Option<bool>,
    },
}

impl SystemPrompt {
    /// The prompt of Claude Code as it is.
    pub const PRESET: Self = Self::Preset {
        append: None,
        exclude_dynamic_sections: None,
        snapshot: None,
    };

    /// The prompt of Claude Code with this text behind it.
    pub fn preset_and(append: impl Into<String>) -> Self {
        Self::Preset {
            append: Some(append.into()),
            exclude_dynamic_sections: None,
            snapshot: None,
        }
    }
}

impl From<&str> for SystemPrompt {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SystemPrompt {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for SystemPrompt {
    fn from(texts: Vec<String>) -> Self {
        Self::List(texts)
    }
}
