//! The model and how it thinks.
// Written by `cargo xtask types` from what upstream declares and upstream/requests/model.toml: change that instead.

use serde::{Deserialize, Serialize};

crate::outbound::control::request! {
    /// Changes the model from the next call on.
    pub struct SetModel {
        optional {
            /// The system prompt for the model. The CLI sends it from the next compaction on.
            system_prompt: "system_prompt" => String,
            /// Sets the system prompt alone, and does nothing if the session has another model.
            only_if_model_is_current: "only_if_model_is_current" => bool,
        }
        nullable {
            /// The model. Unset, `None` and `default` all mean the session's default.
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
    /// The value for `set_model`: an alias or a full id.
    pub value: String,
    /// The full id of the model.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub resolved_model: Option<String>,
    /// The model's name for people.
    pub display_name: String,
    /// A description for people.
    pub description: String,
    /// Whether the model can have an effort.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supports_effort: Option<bool>,
    /// Which efforts the model can have.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supported_effort_levels: Option<Vec<String>>,
    /// Whether the model decides itself how much to think.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supports_adaptive_thinking: Option<bool>,
    /// Whether the model has a fast mode.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supports_fast_mode: Option<bool>,
    /// Whether auto mode works with the model.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supports_auto_mode: Option<bool>,
    /// Whether thinking can be switched off.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub supports_thinking_off: Option<bool>,
    /// Whether the model cannot be chosen at the moment.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub disabled: Option<bool>,
    /// The ordinary price, while a lower one applies.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub promo_list_price: Option<String>,
}

crate::outbound::control::request! {
    /// Changes how the model thinks.
    pub struct SetMaxThinkingTokens {
        nullable {
            /// The most tokens that the model thinks with. 0 switches thinking off; `None` is the default.
            max_thinking_tokens: "max_thinking_tokens" => u64,
            /// What is shown of the thinking; `None` is the default.
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
