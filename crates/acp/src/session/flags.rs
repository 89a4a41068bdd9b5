//! Flag settings, which the CLI accepts at run time.

use std::collections::BTreeMap;

use outrigger::Session;
use outrigger::protocol::shared::{Effort, JsonObject};
use serde::{Deserialize, Serialize};

/// Sets a flag setting; `null` removes it, so that the other settings apply.
pub(super) async fn set(session: &Session, name: &str, value: impl Serialize) -> outrigger::Result<()> {
    match JsonObject::encode(&BTreeMap::from([(name, value)])) {
        Ok(settings) => session.apply_flag_settings(settings).await.map(drop),
        Err(error) => {
            tracing::warn!(name, %error, "a setting could not be written");
            Ok(())
        }
    }
}

/// The leading agent in the effective settings.
pub(super) async fn agent(session: &Session) -> outrigger::Result<Option<String>> {
    #[derive(Deserialize, Default)]
    struct Effective {
        #[serde(default)]
        agent: Option<String>,
    }
    let settings = session.get_settings().await?;
    let effective = settings.effective.decode::<Effective>().unwrap_or_default();
    Ok(effective.agent)
}

/// What the CLI runs with.
pub(super) struct RunningSettings {
    pub(super) model: String,
    pub(super) effort: Option<Effort>,
    /// Whether the settings name this effort.
    pub(super) is_effort_set: bool,
}

/// What the CLI runs with; `None` if it does not say.
pub(super) async fn running(session: &Session) -> outrigger::Result<Option<RunningSettings>> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase")]
    struct EffectiveEffort {
        #[serde(default)]
        effort_level: Option<String>,
    }
    let settings = session.get_settings().await?;
    let Some(applied) = settings.applied else {
        return Ok(None);
    };
    let effective = settings.effective.decode::<EffectiveEffort>().unwrap_or_default();
    Ok(Some(RunningSettings {
        is_effort_set: applied.effort.is_some() && applied.effort == effective.effort_level,
        effort: applied.effort.as_deref().and_then(Effort::from_wire),
        model: applied.model,
    }))
}
