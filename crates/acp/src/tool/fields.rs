//! The fields of a tool call's input, which may be partial.

use std::collections::HashMap;

use outrigger::protocol::RawJson;

/// The fields of an input. A field of an unexpected type counts as missing: a title can do without it.
#[derive(Debug, Default)]
pub(crate) struct Fields(HashMap<String, RawJson>);

impl Fields {
    pub(crate) fn of(input: &RawJson) -> Self {
        Self(input.decode().unwrap_or_default())
    }

    /// The first non-blank text under one of these names.
    pub(crate) fn text(&self, names: &[&str]) -> Option<String> {
        names
            .iter()
            .filter_map(|name| self.0.get(*name)?.decode::<String>().ok())
            .find(|text| !text.trim().is_empty())
    }

    /// The text under this name, even if it is empty.
    pub(crate) fn exact(&self, name: &str) -> Option<String> {
        self.0.get(name)?.decode().ok()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.decode().ok()
    }

    pub(crate) fn list(&self, name: &str) -> Vec<Fields> {
        let list: Option<Vec<RawJson>> = self.0.get(name).and_then(|raw| raw.decode().ok());
        list.unwrap_or_default().iter().map(Self::of).collect()
    }

    /// The input without these fields; `None` if it has none of them.
    pub(crate) fn without(&self, names: &[&str]) -> Option<RawJson> {
        if !names.iter().any(|name| self.0.contains_key(*name)) {
            return None;
        }
        let kept = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        let kept: std::collections::BTreeMap<_, _> = kept.collect();
        RawJson::encode(&kept).ok()
    }
}
