//! What upstream declares, and what that is in Rust.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value};

use super::overlay::{Entry, Of, Overlay, Type};

/// The declarations of a section of the inventory, and which of them are which type in Rust.
#[derive(Debug)]
pub(crate) struct Declared<'a> {
    types: &'a Map<String, Value>,
    /// The Rust type for what upstream calls so, and its module.
    rust: BTreeMap<&'a str, &'a str>,
    modules: BTreeMap<&'a str, &'a str>,
    /// The keys by which unions tell these apart; a member does not have the key itself.
    tags: BTreeMap<&'a str, &'a str>,
}

/// A field as it is written.
#[derive(Debug)]
pub(crate) struct Field<'a> {
    pub(crate) wire: &'a str,
    pub(crate) name: String,
    /// The type, without the `Option` that absence or null make of it.
    pub(crate) ty: String,
    pub(crate) is_optional: bool,
    pub(crate) is_nullable: bool,
    pub(crate) entry: &'a Entry,
}

impl Field<'_> {
    /// Whether its type's default stands for it where it is absent.
    pub(crate) fn has_default(&self) -> bool {
        self.entry.more().is_some_and(|more| more.default)
    }
}

impl<'a> Declared<'a> {
    pub(crate) fn new(inventory: &'a Value, section: &str, overlays: &'a [Overlay]) -> Result<Self> {
        let types = inventory[section]
            .as_object()
            .with_context(|| format!("the inventory has no {section}"))?;
        let (mut rust, mut modules, mut tags) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for overlay in overlays {
            let elsewhere = overlay.elsewhere.iter();
            rust.extend(elsewhere.map(|(declared, path)| (declared.as_str(), path.as_str())));
            for (name, ty) in &overlay.types {
                tags.extend(overlay.tag.as_deref().map(|tag| (name.as_str(), tag)));
                for declared in ty.names(name) {
                    // A type without `of` may be only on the wire.
                    ensure!(
                        matches!(ty.of, Of::Same) || has_place(types, declared),
                        "[{name}] is of {declared}, which upstream does not declare"
                    );
                    if let Some(earlier) = rust.insert(declared, name.as_str()) {
                        bail!("two types are of {declared}: {earlier} and {name}");
                    }
                }
                if let Some(earlier) = modules.insert(name.as_str(), overlay.module.as_str()) {
                    bail!("{earlier}.toml and {}.toml have a type {name}", overlay.module);
                }
                let tag = ty.by.as_deref().and_then(|by| by.strip_prefix("tag "));
                for member in ty.members.iter().flatten().filter_map(|(_, member)| member.ty()) {
                    tags.extend(tag.map(|tag| (bare(member), tag)));
                }
            }
        }
        Ok(Self {
            types,
            rust,
            modules,
            tags,
        })
    }

    /// Fails if something that upstream lists has no type. What holds anything at all needs none.
    pub(crate) fn all_have_a_type(&self, inventory: &Value, roots: &[&str]) -> Result<()> {
        let listed = roots
            .iter()
            .filter_map(|root| inventory[*root].as_object())
            .flatten()
            .flat_map(|(_, names)| names.as_array().into_iter().flatten())
            .filter_map(Value::as_str);
        let missing: Vec<&str> = listed.filter(|name| !self.has_a_type(name)).collect();
        ensure!(
            missing.is_empty(),
            "no overlay has a type of {}",
            missing.join(", ")
        );
        Ok(())
    }

    fn has_a_type(&self, name: &str) -> bool {
        self.rust.contains_key(name)
            || match self.types.get(name) {
                Some(Value::Object(fields)) => fields.contains_key("[string]"),
                Some(Value::Array(atoms)) => atoms
                    .iter()
                    .filter_map(Value::as_str)
                    .all(|atom| self.has_a_type(atom.trim_end_matches("[]"))),
                _ => false,
            }
    }

    /// The module of a type that an overlay has.
    pub(crate) fn module(&self, rust: &str) -> Option<&'a str> {
        self.modules.get(rust).copied()
    }

    /// The key by which a union tells a member of it apart.
    pub(crate) fn tag(&self, rust: &str) -> Option<&'a str> {
        self.tags.get(rust).copied()
    }

    /// The fields of a struct, in the order of the overlay.
    pub(crate) fn fields(&self, overlay: &'a Overlay, rust: &str, ty: &'a Type) -> Result<Vec<Field<'a>>> {
        let objects: Vec<_> = ty
            .names(rust)
            .into_iter()
            .flat_map(|name| self.objects(name))
            .collect();
        let common = (!ty.alone).then_some(&overlay.common);
        let fields = common.into_iter().chain(&ty.fields).flatten();
        let named: BTreeSet<&str> = fields.clone().map(|(wire, _)| wire.as_str()).collect();
        for (path, object) in &objects {
            for (key, written) in *object {
                let wire = key.trim_end_matches('?');
                let is_known = named.contains(wire) || self.tag(rust) == Some(wire) || wire == "[string]";
                ensure!(
                    is_known,
                    "upstream declares `{path}.{wire}`, {written}: add `{wire} = \"what it is\"` to [{rust}.fields]"
                );
            }
        }
        fields
            .map(|(wire, entry)| {
                self.field(&objects, wire, entry)
                    .with_context(|| format!("[{rust}.fields] {wire}"))
            })
            .collect()
    }

    fn field(
        &self,
        objects: &[(&str, &Map<String, Value>)],
        wire: &'a str,
        entry: &'a Entry,
    ) -> Result<Field<'a>> {
        let mut types = BTreeSet::new();
        let mut is_optional = entry.more().is_some_and(|more| more.optional);
        let mut is_nullable = entry.more().is_some_and(|more| more.nullable);
        let mut found = 0;
        for (path, object) in objects {
            let optional = object.get(&format!("{wire}?"));
            let Some(written) = optional.or_else(|| object.get(wire)).and_then(Value::as_str) else {
                continue;
            };
            found += 1;
            is_optional |= optional.is_some();
            is_nullable |= written.split(" | ").any(|atom| atom == "null");
            if entry.ty().is_none() {
                types.extend(self.rust_type(&format!("{path}.{wire}"), written)?);
            }
        }
        is_optional |= (1..objects.len()).contains(&found);
        types.extend(entry.ty().map(str::to_owned));
        let mut types = types.into_iter();
        let ty = match (types.next(), types.next()) {
            (Some(ty), None) => ty,
            (None, _) => bail!("upstream does not declare it: take it away, or give it a `type`"),
            (Some(one), Some(other)) => {
                bail!("upstream declares it as {one} and as {other}: give it a `type`")
            }
        };
        let name = entry.name().map(str::to_owned);
        Ok(Field {
            wire,
            name: name.unwrap_or_else(|| match wire {
                "type" => "kind".to_owned(),
                wire => snake(wire),
            }),
            ty,
            is_optional,
            is_nullable,
            entry,
        })
    }

    /// The types that something declared is in Rust: one, unless it is a union that has none.
    fn rust_type(&self, path: &str, written: &str) -> Result<BTreeSet<String>> {
        // A set that is written where it is used has no name but that of the place.
        if let Some(set) = self.rust.get(path).filter(|_| !self.types.contains_key(path)) {
            return Ok([(*set).to_owned()].into());
        }
        let atoms = written.split(" | ").filter(|atom| *atom != "null");
        atoms.map(|atom| self.atom(atom)).collect()
    }

    fn atom(&self, atom: &str) -> Result<String> {
        if let Some(element) = atom.strip_suffix("[]") {
            return Ok(format!("Vec<{}>", self.atom(element)?));
        }
        if let Some(value) = atom.strip_prefix('{').and_then(|atom| atom.strip_suffix('}')) {
            return Ok(match value {
                "any" => "RawJson".to_owned(),
                value => format!("BTreeMap<String, {}>", self.atom(value)?),
            });
        }
        Ok(match atom {
            "string" => "String",
            "number" => "u64",
            "boolean" | "true" | "false" => "bool",
            "any" | "object" => "RawJson",
            atom if atom.starts_with('\'') => "String",
            atom => match self.rust.get(atom) {
                Some(rust) => rust,
                None => bail!("no overlay has a type of {atom}: add one, or give the field a `type`"),
            },
        }
        .to_owned())
    }

    /// The objects that something declared is: itself, or the members of a union.
    fn objects(&self, name: &'a str) -> Vec<(&'a str, &'a Map<String, Value>)> {
        match self.types.get(name) {
            Some(Value::Object(fields)) => vec![(name, fields)],
            Some(Value::Array(atoms)) => atoms
                .iter()
                .filter_map(Value::as_str)
                .map(|atom| atom.trim_end_matches("[]"))
                .filter(|atom| *atom != name)
                .flat_map(|atom| self.objects(atom))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The strings that upstream declares for a set.
    pub(crate) fn values(&self, rust: &'a str, ty: &'a Type) -> BTreeSet<&'a str> {
        let written = |name: &'a str| -> Vec<&'a str> {
            if let Some(Value::Array(atoms)) = self.types.get(name) {
                return atoms.iter().filter_map(Value::as_str).collect();
            }
            let Some((object, field)) = name.rsplit_once('.') else {
                return Vec::new();
            };
            let fields = self.objects(object).into_iter().map(|(_, object)| object);
            fields
                .filter_map(|fields| fields.get(field).or_else(|| fields.get(&format!("{field}?"))))
                .filter_map(Value::as_str)
                .flat_map(|written| written.split(" | "))
                .collect()
        };
        ty.names(rust)
            .into_iter()
            .flat_map(written)
            .filter_map(|atom| atom.strip_prefix('\'')?.strip_suffix('\''))
            .collect()
    }
}

/// Whether a type is called so, or a field of one is there.
fn has_place(types: &Map<String, Value>, name: &str) -> bool {
    let is_field = |(object, field): (&str, &str)| {
        types
            .get(object)
            .is_some_and(|fields| fields.get(field).is_some() || fields.get(format!("{field}?")).is_some())
    };
    types.contains_key(name) || name.rsplit_once('.').is_some_and(is_field)
}

/// A type without what is around it.
fn bare(ty: &str) -> &str {
    match ty.split_once('<') {
        Some((_, inner)) => bare(inner.trim_end_matches('>')),
        None => ty,
    }
}

/// `fooBarBaz` as `foo_bar_baz`.
pub(crate) fn snake(wire: &str) -> String {
    let mut name = String::new();
    let mut before = '_';
    for c in wire.chars() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
        before = c;
    }
    name
}

/// `foo_bar_baz` as serde's camelCase has it.
pub(crate) fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + &capitalized(part))
}

/// `foo-bar_baz` as `FooBarBaz`.
pub(crate) fn pascal(wire: &str) -> String {
    wire.split(['_', '-']).map(capitalized).collect()
}

fn capitalized(part: &str) -> String {
    let mut chars = part.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_ascii_uppercase().to_string() + chars.as_str()
    })
}
