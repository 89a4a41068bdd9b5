//! The text of a module.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail, ensure};

use super::WRITTEN;
use super::declared::{Declared, Field, camel, pascal};
use super::overlay::{Overlay, Type};

/// How wide docs are.
const WIDTH: usize = 130;

/// How absence is written, where a field may be absent.
const SKIP: &str = "skip_serializing_if = \"crate::whole::unset\"";

pub(crate) fn module<'a>(overlay: &'a Overlay, declared: &Declared<'a>, folder: &str) -> Result<String> {
    let mut types = String::new();
    let mut used = BTreeSet::new();
    for (name, ty) in &overlay.types {
        let wrong = || format!("[{name}]");
        let text = match (&ty.values, &ty.by) {
            (Some(_), None) => set(name, ty, declared),
            (None, Some(by)) => union(name, ty, by),
            (None, None) => object(overlay, name, ty, declared),
            (Some(_), Some(_)) => bail!("[{name}] is a set and a union"),
        };
        let text = text.with_context(wrong)?;
        used.extend(identifiers(&text).map(str::to_owned));
        types += &text;
    }
    let file = format!("{folder}/{}.toml", overlay.module);
    let mut text = docs("//!", "", &overlay.doc);
    writeln!(
        text,
        "{WRITTEN} from what upstream declares and {file}: change that instead.\n"
    )?;
    text += &uses(overlay, declared, &used);
    Ok(text + &types)
}

/// The imports that the types need.
fn uses(overlay: &Overlay, declared: &Declared<'_>, used: &BTreeSet<String>) -> String {
    let mut text = String::new();
    let uses = |name: &str| used.contains(name);
    if uses("BTreeMap") {
        text += "use std::collections::BTreeMap;\n\n";
    }
    if uses("Deserialize") {
        text += "use serde::{Deserialize, Serialize};\n\n";
    }
    let mut siblings = BTreeMap::<&str, Vec<&str>>::new();
    for name in used {
        if let Some(module) = declared.module(name).filter(|module| *module != overlay.module) {
            siblings.entry(module).or_default().push(name);
        }
    }
    for (module, names) in siblings {
        text += &format!("use super::{module}::{{{}}};\n", names.join(", "));
    }
    if uses("RawJson") {
        text += "use crate::RawJson;\n";
    }
    text
}

fn object<'a>(overlay: &'a Overlay, name: &str, ty: &'a Type, declared: &Declared<'a>) -> Result<String> {
    let fields = declared.fields(overlay, name, ty)?;
    let mut text = String::from("\n");
    if ty.open {
        text += "crate::open_struct::open_struct! {\n";
        text += &docs("///", "    ", &ty.doc);
        let within = declared.tag(name).map(|tag| format!(" in \"{tag}\""));
        writeln!(text, "    pub struct {name}{} {{", within.unwrap_or_default())?;
        for field in &fields {
            text += &docs("///", "        ", field.entry.doc());
            writeln!(
                text,
                "        {}: \"{}\" => {},",
                field.name, field.wire, field.ty
            )?;
        }
        return Ok(text + "    }\n}\n");
    }
    if ty.request {
        return request(name, ty, &fields);
    }
    let is_camel = fields
        .iter()
        .any(|field| field.wire != field.name && field.wire == camel(&field.name));
    text += &docs("///", "", &ty.doc);
    let has_default = fields.iter().all(|field| field.is_optional || field.is_nullable);
    let default = if has_default { "Default, " } else { "" };
    let derived = ty
        .derive
        .as_ref()
        .map(|derived| format!("{derived}, "))
        .unwrap_or_default();
    writeln!(
        text,
        "#[derive(Debug, Clone, {default}{derived}Deserialize, Serialize)]\n#[non_exhaustive]"
    )?;
    if is_camel {
        text += "#[serde(rename_all = \"camelCase\")]\n";
    }
    writeln!(text, "pub struct {name} {{")?;
    for field in &fields {
        text += &docs("///", "    ", field.entry.doc());
        let given = if is_camel {
            camel(&field.name)
        } else {
            field.name.clone()
        };
        let attributes = [
            (given != field.wire).then(|| format!("rename = \"{}\"", field.wire)),
            field.has_default().then(|| "default".to_owned()),
            field.is_optional.then(|| SKIP.to_owned()),
        ];
        let attributes: Vec<String> = attributes.into_iter().flatten().collect();
        if !attributes.is_empty() {
            writeln!(text, "    #[serde({})]", attributes.join(", "))?;
        }
        writeln!(text, "    pub {}: {},", field.name, whole(field))?;
    }
    text += "}\n";
    if ty.new {
        text += &constructor(name, &fields)?;
    }
    Ok(text)
}

/// A control request, which is written by a macro: fields by how much they have to be there.
fn request(name: &str, ty: &Type, fields: &[Field<'_>]) -> Result<String> {
    let mut text = String::from("\ncrate::outbound::control::request! {\n");
    text += &docs("///", "    ", &ty.doc);
    let mut groups = String::new();
    for (group, is_optional, is_nullable) in [
        ("required", false, None),
        ("optional", true, Some(false)),
        ("nullable", true, Some(true)),
    ] {
        let is_in = |field: &&Field<'_>| {
            field.is_optional == is_optional
                && is_nullable.is_none_or(|is_nullable| field.is_nullable == is_nullable)
        };
        let mut rows = String::new();
        for field in fields.iter().filter(is_in) {
            let ty = if is_optional {
                field.ty.clone()
            } else {
                whole(field)
            };
            rows += &docs("///", "            ", field.entry.doc());
            writeln!(rows, "            {}: \"{}\" => {ty},", field.name, field.wire)?;
        }
        if !rows.is_empty() {
            writeln!(groups, "        {group} {{\n{rows}        }}")?;
        }
    }
    if !groups.is_empty() {
        groups = format!("\n{groups}    ");
    }
    Ok(format!("{text}    pub struct {name} {{{groups}}}\n}}\n"))
}

/// The type of a field with what absence and null make of it.
fn whole(field: &Field<'_>) -> String {
    if field.is_optional || field.is_nullable {
        format!("Option<{}>", field.ty)
    } else {
        field.ty.clone()
    }
}

fn constructor(name: &str, fields: &[Field<'_>]) -> Result<String> {
    let (mut parameters, mut values) = (Vec::new(), String::new());
    for field in fields {
        let Field { name, ty, .. } = field;
        if field.is_optional {
            writeln!(values, "            {name}: None,")?;
        } else if field.has_default() {
            writeln!(values, "            {name}: Default::default(),")?;
        } else if ty == "String" {
            parameters.push(format!("{name}: impl Into<String>"));
            writeln!(values, "            {name}: {name}.into(),")?;
        } else {
            parameters.push(format!("{name}: {}", whole(field)));
            writeln!(values, "            {name},")?;
        }
    }
    Ok(format!(
        "\nimpl {name} {{\n    /// Makes one of what is required, and leaves the rest out.\n    pub fn new({}) -> Self {{\n        \
         Self {{\n{values}        }}\n    }}\n}}\n",
        parameters.join(", ")
    ))
}

fn set(name: &str, ty: &Type, declared: &Declared<'_>) -> Result<String> {
    let values = ty.values.as_ref().context("no values")?;
    for value in declared.values(name, ty) {
        ensure!(
            values.contains_key(value),
            "upstream declares '{value}': add `{value} = \"what it means\"` to [{name}.values]"
        );
    }
    let mut text = String::from("\n");
    text += if ty.closed {
        "crate::shared::closed_enum::closed_enum! {\n"
    } else {
        "crate::open_enum! {\n"
    };
    text += &docs("///", "    ", &ty.doc);
    if ty.closed {
        text += "    #[non_exhaustive]\n";
    }
    writeln!(text, "    pub enum {name} {{")?;
    for (wire, entry) in values {
        text += &docs("///", "        ", entry.doc());
        let name = entry.name().map_or_else(|| pascal(wire), str::to_owned);
        writeln!(text, "        {name} = \"{wire}\",")?;
    }
    Ok(text + "    }\n}\n")
}

fn union(name: &str, ty: &Type, by: &str) -> Result<String> {
    let mut members = Vec::new();
    for (key, entry) in ty.members.as_ref().context("a union has members")? {
        let name = entry.name().with_context(|| format!("{key} has no `name`"))?;
        let ty = entry.ty().with_context(|| format!("{key} has no `type`"))?;
        members.push((key, name, ty, docs("///", "        ", entry.doc())));
    }
    let mut text = String::from("\n");
    if let Some(tag) = by.strip_prefix("tag ") {
        text += "crate::wire_enum! {\n";
        text += &docs("///", "    ", &ty.doc);
        writeln!(text, "    pub enum {name} by \"{tag}\" {{")?;
        for (key, name, ty, docs) in members {
            writeln!(text, "{docs}        \"{key}\" => {name}({ty}),")?;
        }
        return Ok(text + "    }\n}\n");
    }
    let quote = match by {
        "key" => "\"",
        "shape" => "",
        other => bail!("{other:?} is not `tag NAME`, `key` or `shape`"),
    };
    text += &docs("///", "", &ty.doc);
    writeln!(
        text,
        "#[derive(Debug, Clone)]\n#[non_exhaustive]\npub enum {name} {{"
    )?;
    for (_, name, ty, docs) in &members {
        writeln!(text, "{docs}        {name}({ty}),")?;
    }
    text += "/// Anything else, as it came.\nUnknown(RawJson),\n}\n\n";
    writeln!(text, "crate::shape::by_{by}!({name} {{")?;
    for (key, name, ..) in &members {
        writeln!(text, "    {quote}{key}{quote} => {name},")?;
    }
    Ok(text + "});\n")
}

/// Docs as comments, no wider than they may be; an empty line begins a paragraph.
fn docs(mark: &str, indent: &str, doc: &str) -> String {
    let mut text = String::new();
    for (index, paragraph) in doc.split("\n\n").enumerate() {
        if index > 0 {
            text += &format!("{indent}{mark}\n");
        }
        let mut line = format!("{indent}{mark}");
        for word in paragraph.split_whitespace() {
            if line.len() + 1 + word.len() > WIDTH {
                text += &line;
                text.push('\n');
                line = format!("{indent}{mark}");
            }
            line.push(' ');
            line += word;
        }
        text += &line;
        text.push('\n');
    }
    text
}

/// The words of a text that may be names of types, outside of its docs. A variant's name has a parenthesis behind it.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let is_mark = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    text.lines()
        .filter(|line| !line.trim_start().starts_with("///"))
        .flat_map(move |line| line.split_inclusive(is_mark))
        .filter(|word| !word.ends_with('('))
        .map(move |word| word.trim_end_matches(is_mark))
}
