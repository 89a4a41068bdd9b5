//! Flag settings, which the CLI accepts at run time.

use std::collections::BTreeMap;

use outrigger::Session;
use outrigger::protocol::shared::JsonObject;
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
