//! Settings of the session's own layer, which the CLI takes while it runs.

use std::collections::BTreeMap;

use outrigger::Session;
use outrigger::protocol::shared::JsonObject;
use serde::{Deserialize, Serialize};

/// Sets one; null is what the other settings say.
pub(super) async fn set(session: &Session, name: &str, value: impl Serialize) -> outrigger::Result<()> {
    match JsonObject::encode(&BTreeMap::from([(name, value)])) {
        Ok(settings) => session.apply_flag_settings(settings).await.map(drop),
        Err(error) => {
            tracing::warn!(name, %error, "a setting could not be written");
            Ok(())
        }
    }
}

/// The agent that leads the conversation, by all settings together.
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
