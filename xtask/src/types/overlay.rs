//! What people say of the types: their names in Rust, their docs, and where a type is not what upstream's declaration suggests.

use std::path::Path;

use anyhow::{Context as _, Result};
use indexmap::IndexMap;
use serde::Deserialize;

/// One module.
#[derive(Debug, Deserialize)]
pub(crate) struct Overlay {
    /// The module's name, which is the file's.
    #[serde(skip)]
    pub(crate) module: String,
    /// The module's docs.
    pub(crate) doc: String,
    /// The fields that the module's structs begin with.
    #[serde(default)]
    pub(crate) common: IndexMap<String, Entry>,
    /// The field that says which struct it is, and that the structs themselves do not have.
    pub(crate) tag: Option<String>,
    /// Types that are no leaves: what upstream calls them, and their paths in Rust.
    #[serde(default)]
    pub(crate) elsewhere: IndexMap<String, String>,
    /// The module's types, by their name in Rust, in the order in which they are written.
    #[serde(flatten)]
    pub(crate) types: IndexMap<String, Type>,
}

/// One type. It has `fields`, `values` or `members`; a struct without fields has none of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Type {
    pub(crate) doc: String,
    /// What upstream calls it, where that is not its name in Rust: a type, or the path of a field. Several, where one type here
    /// stands for several there.
    #[serde(default)]
    pub(crate) of: Of,
    /// Whether it keeps the keys that it has no field for.
    #[serde(default)]
    pub(crate) open: bool,
    /// Whether it has `new`, with what is required.
    #[serde(default)]
    pub(crate) new: bool,
    /// Whether it is a control request: `new` takes what is required, and a setter each what is not.
    #[serde(default)]
    pub(crate) request: bool,
    /// Whether a set has no other strings: one that programs send and do not read.
    #[serde(default)]
    pub(crate) closed: bool,
    /// Whether it does without the module's common fields.
    #[serde(default)]
    pub(crate) alone: bool,
    /// What it derives besides what all do.
    pub(crate) derive: Option<String>,
    /// The fields of a struct, by their names on the wire.
    pub(crate) fields: Option<IndexMap<String, Entry>>,
    /// The strings of a set.
    pub(crate) values: Option<IndexMap<String, Entry>>,
    /// How the members of a union are told apart: `tag NAME`, `key` or `shape`.
    pub(crate) by: Option<String>,
    /// The members of a union, by tag, key or shape.
    pub(crate) members: Option<IndexMap<String, Entry>>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Of {
    #[default]
    Same,
    One(String),
    Several(Vec<String>),
}

/// A field, a string or a member: its docs alone, or more.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Entry {
    Doc(String),
    More(More),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct More {
    pub(crate) doc: String,
    /// The name in Rust, where it is not the one on the wire in Rust's case.
    pub(crate) name: Option<String>,
    /// The type in Rust, without its `Option`, where it does not follow from the declaration.
    #[serde(rename = "type")]
    pub(crate) ty: Option<String>,
    /// Whether it may be absent, whatever upstream declares.
    #[serde(default)]
    pub(crate) optional: bool,
    /// Whether it may be null, whatever upstream declares.
    #[serde(default)]
    pub(crate) nullable: bool,
    /// Whether its type's default stands for it where it is absent.
    #[serde(default)]
    pub(crate) default: bool,
}

impl Overlay {
    /// The overlays of a folder, by name.
    pub(crate) fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let mut files = std::fs::read_dir(folder)
            .and_then(|entries| {
                entries
                    .map(|entry| Ok(entry?.path()))
                    .collect::<std::io::Result<Vec<_>>>()
            })
            .with_context(|| format!("{}", folder.display()))?;
        files.sort();
        let read = |file: &Path| {
            let mut overlay: Self = toml::from_str(&std::fs::read_to_string(file)?)?;
            overlay.module = file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            anyhow::Ok(overlay)
        };
        files
            .iter()
            .map(|file| read(file).with_context(|| format!("{}", file.display())))
            .collect()
    }
}

impl Type {
    /// What upstream calls the type.
    pub(crate) fn names<'a>(&'a self, rust: &'a str) -> Vec<&'a str> {
        match &self.of {
            Of::Same => vec![rust],
            Of::One(name) => vec![name],
            Of::Several(names) => names.iter().map(String::as_str).collect(),
        }
    }
}

impl Entry {
    pub(crate) fn doc(&self) -> &str {
        match self {
            Self::Doc(doc) | Self::More(More { doc, .. }) => doc,
        }
    }

    pub(crate) fn more(&self) -> Option<&More> {
        match self {
            Self::Doc(_) => None,
            Self::More(more) => Some(more),
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.more()?.name.as_deref()
    }

    pub(crate) fn ty(&self) -> Option<&str> {
        self.more()?.ty.as_deref()
    }
}
