//! Extended thinking.

use serde::{Deserialize, Deserializer, Serialize};

use super::closed_enum::closed_enum;
use crate::RawJson;

/// Whether and how the model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum ThinkingConfig {
    /// The model decides how much.
    Adaptive {
        /// What is shown of the thinking; the model's default if `None`.
        #[serde(skip_serializing_if = "crate::whole::unset")]
        display: Option<ThinkingDisplay>,
    },
    /// On, with a budget.
    Enabled {
        /// The most tokens to think with; `None` is as `Adaptive`.
        #[serde(skip_serializing_if = "crate::whole::unset")]
        budget_tokens: Option<u64>,
        /// What is shown of the thinking; the model's default if `None`.
        #[serde(skip_serializing_if = "crate::whole::unset")]
        display: Option<ThinkingDisplay>,
    },
    /// The model does not think.
    Disabled,
}

closed_enum! {
    /// What is shown of the model's thinking.
    #[non_exhaustive]
    pub enum ThinkingDisplay {
        /// A summary.
        Summarized = "summarized",
        /// Thinking is omitted.
        Omitted = "omitted",
    }
}

impl<'de> Deserialize<'de> for ThinkingConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields {
            r#type: String,
            budget_tokens: Option<u64>,
            display: Option<ThinkingDisplay>,
        }
        let raw = RawJson::deserialize(deserializer)?;
        let fields: Fields = raw.read().map_err(serde::de::Error::custom)?;
        let Fields {
            budget_tokens,
            display,
            ..
        } = fields;
        match fields.r#type.as_str() {
            "adaptive" => Ok(Self::Adaptive { display }),
            "enabled" => Ok(Self::Enabled {
                budget_tokens,
                display,
            }),
            "disabled" => Ok(Self::Disabled),
            other => Err(serde::de::Error::unknown_variant(
                other,
                &["adaptive", "enabled", "disabled"],
            )),
        }
    }
}
