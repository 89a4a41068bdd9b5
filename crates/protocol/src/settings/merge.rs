//! Puts the sandbox that a program asked for into the settings that it passes to the CLI.
//!
//! The rules are those of the TypeScript SDK. They make sure that what the program asks for is not undone by what the
//! settings had before, and that refusals of both are kept.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::SandboxSettings;
use crate::RawJson;
use crate::shape::Shape;
use crate::shared::JsonObject;

/// Merges `sandbox` into inline `settings`; the result is what `--settings` takes.
///
/// Settings that are a path to a file cannot be merged; the program that has one puts the sandbox into that file. All
/// keys of `settings` but `sandbox` stay as they are. In `sandbox`:
///
/// * Objects are merged key by key, and what the program asks for wins. A list replaces a list, except that
///   `filesystem.denyRead`, `filesystem.denyWrite`, `network.deniedDomains`, `credentials.files` and
///   `credentials.envVars` are put together.
/// * `ripgrep` and `network.tlsTerminate` are replaced whole.
/// * A `filesystem.disabled` of the settings that is true goes, if the program asks for a `filesystem` or denies a
///   credential file: it would undo either.
/// * The proxy ports of the settings go, if the program asks for `network.allowedDomains`, for
///   `network.strictAllowlist`, or denies a domain: a proxy of one's own would not heed them.
/// * If the program asks for `enabled` and nobody says what to do when there is no sandbox, `failIfUnavailable`
///   becomes true.
/// * Keys that JavaScript takes for an object's prototype are not merged.
///
/// # Errors
/// When `sandbox` does not serialize, which no value that can be made does.
pub fn merge_sandbox(
    settings: Option<&JsonObject>,
    sandbox: &SandboxSettings,
) -> Result<JsonObject, serde_json::Error> {
    merge_sandbox_json(settings, &RawJson::encode(sandbox)?)
}

/// [`merge_sandbox`] with a sandbox that is JSON already.
#[doc(hidden)]
pub fn merge_sandbox_json(
    settings: Option<&JsonObject>,
    asked: &RawJson,
) -> Result<JsonObject, serde_json::Error> {
    let mut settings = match settings {
        Some(settings) => settings.read::<Entries>()?,
        None => Entries::default(),
    };
    let mut had = settings.get("sandbox").and_then(Entries::of).unwrap_or_default();
    let asked = Entries::of(asked).unwrap_or_default();
    give_way(&mut had, &asked)?;
    let mut merged = merge(had, &asked, "")?;
    let on = asked
        .get("enabled")
        .is_some_and(|enabled| enabled.get() == "true");
    if on && merged.get("failIfUnavailable").is_none() {
        merged.set("failIfUnavailable", RawJson::encode(&true)?);
    }
    settings.set("sandbox", RawJson::encode(&merged)?);
    JsonObject::encode(&settings)
}

/// Lists of refusals: those of both sides hold.
const UNITED: [&str; 5] = [
    ".filesystem.denyRead",
    ".filesystem.denyWrite",
    ".network.deniedDomains",
    ".credentials.files",
    ".credentials.envVars",
];

/// Objects whose parts belong together.
const WHOLE: [&str; 2] = [".ripgrep", ".network.tlsTerminate"];

/// Keys that change an object's prototype in JavaScript.
const PROTOTYPE: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// Takes out of the settings what would undo what is asked.
fn give_way(had: &mut Entries, asked: &Entries) -> Result<(), serde_json::Error> {
    let credentials = asked.get("credentials").and_then(Entries::of).unwrap_or_default();
    let denies_file = elements(credentials.get("files")).iter().any(|file| {
        Entries::of(file).is_some_and(|file| file.get("mode").and_then(text).as_deref() == Some("deny"))
    });
    if (asked.get("filesystem").is_some() || denies_file)
        && let Some(mut filesystem) = had.get("filesystem").and_then(Entries::of)
        && filesystem
            .get("disabled")
            .is_some_and(|disabled| disabled.get() == "true")
    {
        filesystem.remove("disabled");
        had.set("filesystem", RawJson::encode(&filesystem)?);
    }
    let network = asked.get("network").and_then(Entries::of).unwrap_or_default();
    let denied = network.get("deniedDomains");
    let limits_domains = network.get("allowedDomains").is_some()
        || network
            .get("strictAllowlist")
            .is_some_and(|strict| strict.get() == "true")
        || !elements(denied).is_empty()
        || denied.and_then(text).is_some_and(|domain| !domain.is_empty());
    if limits_domains && let Some(mut network) = had.get("network").and_then(Entries::of) {
        network.remove("httpProxyPort");
        network.remove("socksProxyPort");
        had.set("network", RawJson::encode(&network)?);
    }
    Ok(())
}

fn merge(mut had: Entries, asked: &Entries, path: &str) -> Result<Entries, serde_json::Error> {
    for (key, value) in &asked.0 {
        if PROTOTYPE.contains(&key.as_str()) {
            continue;
        }
        let here = format!("{path}.{key}");
        let before = had.get(key);
        let lists = before.map(Shape::of) == Some(Shape::Array) && Shape::of(value) == Shape::Array;
        let merged = if UNITED.contains(&here.as_str()) && lists {
            unite(&elements(before), &elements(Some(value)))?
        } else if !WHOLE.contains(&here.as_str())
            && let (Some(before), Some(value)) = (before.and_then(Entries::of), Entries::of(value))
        {
            RawJson::encode(&merge(before, &value, &here)?)?
        } else {
            value.clone()
        };
        had.set(key, merged);
    }
    Ok(had)
}

/// Both lists, the first one first, without the repetition of plain values. Objects count as different.
fn unite(had: &[RawJson], asked: &[RawJson]) -> Result<RawJson, serde_json::Error> {
    let mut united: Vec<&RawJson> = Vec::new();
    for value in had.iter().chain(asked) {
        let plain = !matches!(Shape::of(value), Shape::Object | Shape::Array);
        let same = |other: &&RawJson| {
            **other == *value || text(other).is_some_and(|other| text(value) == Some(other))
        };
        if !(plain && united.iter().any(same)) {
            united.push(value);
        }
    }
    RawJson::encode(&united)
}

fn elements(list: Option<&RawJson>) -> Vec<RawJson> {
    list.and_then(|list| list.read().ok()).unwrap_or_default()
}

fn text(value: &RawJson) -> Option<String> {
    match Shape::of(value) {
        Shape::String => value.read().ok(),
        _ => None,
    }
}

/// An object's keys in their order, with their values as they came.
#[derive(Debug, Clone, Default)]
struct Entries(Vec<(String, RawJson)>);

impl Entries {
    /// The entries of an object; `None` for anything else.
    fn of(raw: &RawJson) -> Option<Self> {
        match Shape::of(raw) {
            Shape::Object => raw.read().ok(),
            _ => None,
        }
    }

    fn get(&self, key: &str) -> Option<&RawJson> {
        self.0
            .iter()
            .find(|(found, _)| found == key)
            .map(|(_, value)| value)
    }

    /// Sets the key where it is, or at the end.
    fn set(&mut self, key: &str, value: RawJson) {
        match self.0.iter_mut().find(|(found, _)| found == key) {
            Some((_, found)) => *found = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    fn remove(&mut self, key: &str) {
        self.0.retain(|(found, _)| found != key);
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Entries::default();
                while let Some((key, value)) = map.next_entry::<String, RawJson>()? {
                    // Of a key that is there twice, JavaScript takes the last value.
                    entries.set(&key, value);
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
