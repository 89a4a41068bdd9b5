//! Values that processes share: a hash for each.

use std::sync::LazyLock;
use std::time::Duration;

use outrigger_sessions::store::{BoxFuture, Result, StoredValue, ValueStore};

use super::server::NamedScript;
use super::{RedisStore, keys, strange};

static READ: LazyLock<NamedScript> =
    LazyLock::new(|| NamedScript::new("read a value", include_str!("value.lua")));
static REPLACE: LazyLock<NamedScript> =
    LazyLock::new(|| NamedScript::new("replace a value", include_str!("replace_value.lua")));

impl ValueStore for RedisStore {
    fn read<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<StoredValue>> {
        Box::pin(async move {
            let key = keys::value(&self.shared.prefix, name);
            let answer: Vec<String> = self.shared.server.read(&READ, &[&key], &[]).await?;
            let number = |text: &String| text.parse::<u64>().map_err(|_| strange(&READ, &answer));
            let [version, text, now] = &answer[..] else {
                return Err(strange(&READ, &answer));
            };
            let now = Duration::from_millis(number(now)?);
            Ok(StoredValue::new(number(version)?, text, now))
        })
    }

    fn replace<'a>(&'a self, name: &'a str, version: u64, text: &'a str) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let key = keys::value(&self.shared.prefix, name);
            let arguments = [&version.to_string(), text];
            let answer = self.shared.server.write(&REPLACE, &[&key], &arguments).await?;
            match answer.first().map(String::as_str) {
                Some("ok") => Ok(true),
                Some("changed") => Ok(false),
                _ => Err(strange(&REPLACE, &answer)),
            }
        })
    }
}
