//! The model and how it thinks.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/model.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Changes the model from the next call on.
    pub struct SetModel {
        optional {
            /// The system prompt that goes with the model. Sent from the next compaction on.
            system_prompt: "system_prompt" => String,
            /// Does nothing but set the system prompt unless the session has that model already.
            only_if_model_is_current: "only_if_model_is_current" => bool,
        }
        nullable {
            /// The model; unset, `None` and `default` are all the session's default.
            model: "model" => String,
        }
    }
}

/// The model in force.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SetModelReply {
    /// The model's full id.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub model: Option<String>,
}

crate::outbound::control::request! {
    /// Lists the models.
    pub struct ListModels {}
}

/// The models.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ListModelsReply {
    /// The models.
    pub models: Vec<ModelInfo>,
}

/// A model that the session could use.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// What to give to `set_model`: an alias or a full id.
    pub value: String,
    /// The full id behind it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub resolved_model: Option<String>,
    /// What to call it.
    pub display_name: String,
    /// What is to be said about it.
    pub description: String,
    /// Whether it takes an effort.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supports_effort: Option<bool>,
    /// Which efforts it takes.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supported_effort_levels: Option<Vec<String>>,
    /// Whether it decides itself how much to think.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supports_adaptive_thinking: Option<bool>,
    /// Whether it has a fast mode.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supports_fast_mode: Option<bool>,
    /// Whether auto mode works with it.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supports_auto_mode: Option<bool>,
    /// Whether thinking can be switched off.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supports_thinking_off: Option<bool>,
    /// Whether it cannot be chosen at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub disabled: Option<bool>,
    /// The ordinary price, while there is a lower one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub promo_list_price: Option<String>,
}

crate::outbound::control::request! {
    /// Changes how the model thinks.
    pub struct SetMaxThinkingTokens {
        nullable {
            /// The most tokens to think with; 0 for none, `None` for the default.
            max_thinking_tokens: "max_thinking_tokens" => u64,
            /// What is shown of it; `None` for the default.
            thinking_display: "thinking_display" => LiveThinkingDisplay,
        }
    }
}

crate::shared::closed_enum::closed_enum! {
    /// What is shown of the model's thinking, as a running session takes it.
    #[non_exhaustive]
    pub enum LiveThinkingDisplay {
        /// A summary.
        Summarized = "summarized",
        /// Thinking is omitted.
        Omitted = "omitted",
        /// The main points.
        Highlights = "highlights",
    }
}
